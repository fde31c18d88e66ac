/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_ZONE_H
#define RN_CORE_ZONE_H

#include <stddef.h>
#include <stdint.h>

#include <ration/engine.h>

/* Time zones from the bytes of a TZif file (RFC 8536), with its POSIX footer for what follows the table. No globals. */

typedef struct rn_zone rn_zone;

/*
 * Parse. Copies what it keeps. RATION_ERR_SYNTAX for bytes that are no TZif, or one with leap seconds or with more than
 * 4096 changes; RATION_ERR_NOMEM.
 */
int rn_zone_new(const ration_allocator *mem, const void *data, size_t size, rn_zone **out);
void rn_zone_free(rn_zone *zone); /* NULL is fine */

/* Seconds east of UTC in force at `utc_s`. A NULL zone is UTC. */
int32_t rn_zone_offset(const rn_zone *zone, int64_t utc_s);

/*
 * The stretch of one offset around `utc_s`: [*from_s, *to_s). INT64_MIN and INT64_MAX where it has no end. Summer time
 * that never ends, written as a rule, comes in pieces of years.
 */
int32_t rn_zone_segment(const rn_zone *zone, int64_t utc_s, int64_t *from_s, int64_t *to_s);

#endif
