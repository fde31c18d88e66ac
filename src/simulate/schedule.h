/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_SCHEDULE_H
#define RN_SIMULATE_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include <ration/engine.h>
#include <ration/types.h>

/* Which calls are made when: drawn once from a seed, then played as often as one likes. */

/* Calls of one tenant that come in bursts. Texts are borrowed. */
typedef struct rn_stream_spec {
    const char *tenant;
    ration_priority priority;
    uint32_t calls; /* in all, at least 1 */
    uint32_t burst; /* at once, at least 1; the last burst may be shorter */
    const char *path;
} rn_stream_spec;

typedef struct rn_scheduled_call {
    int64_t at_us; /* after the start */
    const rn_stream_spec *stream;
    uint32_t number; /* in its stream, from 0 */
} rn_scheduled_call;

typedef struct rn_schedule {
    const ration_allocator *mem;
    rn_scheduled_call *calls; /* in order of time */
    size_t count;
    const rn_stream_spec *streams;
    size_t stream_count;
    int64_t span_us;
} rn_schedule;

/*
 * Draw a schedule: the bursts of each stream spread over the span, each somewhere in its own part of it.
 *
 * Ownership  Borrows the streams for its life; freed with `rn_schedule_fini`.
 * Errors     RATION_ERR_NOMEM; RATION_ERR_INVALID for a stream without calls, or a span below a second.
 */
int rn_schedule_init(rn_schedule *schedule, const ration_allocator *mem, const rn_stream_spec *streams,
                     size_t stream_count, int64_t span_us, uint64_t seed);
void rn_schedule_fini(rn_schedule *schedule);

#endif
