/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_ZONE_POSIX_H
#define RN_CORE_ZONE_POSIX_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/types.h>

/* The rule of a zone for all the time after its table: POSIX TZ as RFC 8536 and 9636 extend it,
 * "CET-1CEST,M3.5.0,M10.5.0/3". */

typedef enum rn_posix_form {
    RN_POSIX_JULIAN = 0, /* Jn: 1 to 365, 29 February never counts */
    RN_POSIX_DAY,        /* n: 0 to 365, it does */
    RN_POSIX_WEEKDAY,    /* Mm.w.d: the w-th weekday d of month m, week 5 the last */
} rn_posix_form;

typedef struct rn_posix_change {
    rn_posix_form form;
    int32_t day; /* of the year; of the week from 0 Sunday */
    int32_t week;
    int32_t month;
    int32_t time_s; /* after local midnight, -167 h to 167 h */
} rn_posix_change;

typedef struct rn_posix_zone {
    int32_t standard; /* seconds east of UTC */
    int32_t summer;
    bool has_summer; /* the rest means something */
    rn_posix_change begin;
    rn_posix_change end;
} rn_posix_zone;

/* RATION_ERR_SYNTAX: no such rule, a summer time without dates, or an offset beyond 24 h (25 h in summer). */
int rn_posix_zone_parse(ration_text text, rn_posix_zone *out);

/* Like `rn_zone_segment`. A stretch without end may be given in pieces of years. */
int32_t rn_posix_zone_segment(const rn_posix_zone *zone, int64_t utc_s, int64_t *from_s, int64_t *to_s);

#endif
