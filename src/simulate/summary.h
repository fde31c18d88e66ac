/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_SUMMARY_H
#define RN_SIMULATE_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include "simulate/load.h"
#include "simulate/schedule.h"

/* What a load came to: counts and waits, in all and by tenant. */

#define RN_SUMMARY_TENANTS_MAX 16

typedef struct rn_tally {
    const char *tenant; /* borrowed from the schedule; NULL: all of them */
    uint64_t sent;
    uint64_t answered;     /* with a 2xx */
    uint64_t rate_limited; /* with a 429 */
    uint64_t failed;       /* otherwise, or not at all */
    uint64_t repeated;     /* broke off and were made again */
    uint64_t early;        /* of the answered: while the schedule was still sending */
    int64_t wait_p50_us;   /* of the answered */
    int64_t wait_p99_us;
} rn_tally;

typedef struct rn_summary {
    rn_tally all;
    rn_tally tenants[RN_SUMMARY_TENANTS_MAX]; /* in order of their first streams */
    size_t tenant_count;
    int64_t took_us; /* to the last answer */
} rn_summary;

/* `results` go with the schedule's calls. RATION_ERR_NOMEM; RATION_ERR_FULL for more tenants than there is room for. */
RATION_MUST_CHECK int rn_summary_make(const rn_schedule *schedule, const rn_load_result *results, rn_summary *out);

/* The smallest of `values` that at least `percent` of 100 do not exceed; sorts them. 0 if there are none. */
int64_t rn_percentile(int64_t *values, size_t count, unsigned percent);

#endif
