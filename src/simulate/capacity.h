/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_CAPACITY_H
#define RN_SIMULATE_CAPACITY_H

#include <stdint.h>

#include <ration/types.h>

/*
 * How many calls at once a provider takes, where nobody has declared it: a hidden ceiling that moves. And a meter of
 * what was made of it. Instants are microseconds since the start.
 */

typedef struct rn_capacity {
    int64_t low;       /* calls; 0: there is no ceiling */
    int64_t high;      /* equal to `low`: it stays */
    int64_t period_us; /* from `low` to `high` and back, in steps of one call; 0 where it stays */
} rn_capacity;

/*
 * "30", or "20..40/60s": 1 to 1 000 000 calls, a period of at most 7 days in which no step is shorter than a
 * millisecond. The whole text; RATION_ERR_SYNTAX or RATION_ERR_RANGE leave `*out` as it was.
 */
int rn_capacity_parse(ration_text text, rn_capacity *out);

/* The ceiling at an instant, from 0; INT64_MAX: there is none. */
int64_t rn_capacity_at(const rn_capacity *capacity, int64_t since_us);
/* The end of the step that this instant lies in; INT64_MAX: it stays as it is. */
int64_t rn_capacity_moves_at(const rn_capacity *capacity, int64_t since_us);

/* Sums over time, of a number of calls against the ceiling. Sums saturate. */
typedef struct rn_capacity_meter {
    const rn_capacity *capacity; /* borrowed */
    int64_t at_us;               /* counted up to here */
    int64_t calls;               /* their number since then */
    int64_t above_us;            /* how long there were more than the ceiling */
    int64_t ceiling_us;          /* calls times microseconds: what the ceiling would have let run, ... */
    int64_t used_us;             /* ... what ran of it, ... */
    int64_t over_us;             /* ... and what ran above it */
} rn_capacity_meter;

/* At 0, with no calls. */
void rn_capacity_meter_init(rn_capacity_meter *meter, const rn_capacity *capacity);
/*
 * From this instant on there are so many calls. One before the last counts as the last.
 *
 * Cost       Linear in the ceiling's steps since the last, at most those of two periods.
 */
void rn_capacity_meter_set(rn_capacity_meter *meter, int64_t since_us, int64_t calls);

#endif
