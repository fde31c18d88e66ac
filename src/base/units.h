/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_UNITS_H
#define RN_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/rules.h>
#include <ration/types.h>

/* Exact arithmetic. Sums and products saturate at the ends of int64; nothing wraps or divides inexactly by accident. */

int64_t rn_add(int64_t a, int64_t b);
int64_t rn_sub(int64_t a, int64_t b);
int64_t rn_mul(int64_t a, int64_t b);
int64_t rn_min(int64_t a, int64_t b);
int64_t rn_max(int64_t a, int64_t b);
int64_t rn_div_ceil(int64_t a, int64_t b);  /* a >= 0, b > 0 */
int64_t rn_div_floor(int64_t a, int64_t b); /* any a, b > 0; towards minus infinity */
uint64_t rn_gcd(uint64_t a, uint64_t b);
/* floor(m * ratio) without overflow: floor(m/b)*a + floor((m mod b)*a/b). m >= 0; den 0 counts as 1/1. */
int64_t rn_ratio_of(int64_t m, ration_ratio ratio);
ration_ratio rn_ratio_min(ration_ratio a, ration_ratio b); /* the smaller; den 0 counts as 1/1 */
int64_t rn_whole_units(int64_t micro);                     /* floored to whole units */

/* Instants. Sums saturate at RATION_NEVER_US, which stays what it is. */
static inline ration_time rn_time_add(ration_time t, int64_t us)
{
    ration_time sum = {t.us == RATION_NEVER_US ? RATION_NEVER_US : rn_add(t.us, us)};

    return sum;
}

static inline bool rn_time_before(ration_time a, ration_time b)
{
    return a.us < b.us;
}

static inline ration_time rn_time_min(ration_time a, ration_time b)
{
    return a.us < b.us ? a : b;
}

static inline ration_time rn_time_max(ration_time a, ration_time b)
{
    return a.us > b.us ? a : b;
}

static inline bool rn_time_known(ration_time t)
{
    return t.us != RATION_NEVER_US;
}

/*
 * Readers of numbers as people write them. Each takes the whole text, returns 0, RATION_ERR_SYNTAX or RATION_ERR_RANGE
 * and leaves `*out` untouched on error. None accepts a sign unless it says so, nor spaces, exponents, NaN or an empty
 * text.
 */
int rn_parse_micro(ration_text text,
                   int64_t *out);                 /* "48.5" -> 48500000; at most six places; at most RATION_UNITS_MAX */
int rn_parse_int(ration_text text, int64_t *out); /* "-12" too */
int rn_parse_ms(ration_text text, int64_t *out_us);    /* "333.334" and "-1000" -> microseconds; at most three places */
int rn_parse_duration(ration_text text, int64_t *out); /* "250us" "10s" "1h30m" "7d", fractions "1.5s"; a bare "0" */
int rn_parse_rate(ration_text text, ration_rate *out); /* "10/s" "100/15m" "0.5/h" */
int rn_parse_ratio(ration_text text, ration_ratio *out); /* "80%" "0.8" "4/5", reduced, 0 to 1 */

#endif
