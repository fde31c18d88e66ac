/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_FAMILIES_H
#define RN_SERVE_FAMILIES_H

#include "core/decider.h"
#include "serve/series.h"

/* The metrics of limits, above all of share and adaptive ones and quotas, and of breakers, gathered from one report.
 * Families of one name follow each other. */
typedef enum rn_family {
    RN_FAMILY_THROTTLED = 0,
    RN_FAMILY_ADAPTIVE_LIMIT,
    RN_FAMILY_SHARE_DEFICIT,
    RN_FAMILY_SHARE_WORST_RECLAIM,
    RN_FAMILY_LEASES_OVERRUN,
    RN_FAMILY_BREAKER_STATE,
    RN_FAMILY_BUDGET_USED,
    RN_FAMILY_BUDGET_REMAINING,
    RN_FAMILY_BUDGET_EXTERNAL,
    RN_FAMILY_RATE_RECENT,
    RN_FAMILY_RATE_AVERAGE,
    RN_FAMILY_PROJECTED_RECENT,
    RN_FAMILY_PROJECTED_AVERAGE,
    RN_FAMILY_ETA_RECENT,
    RN_FAMILY_ETA_AVERAGE,
    RN_FAMILY_DISAGREEMENT,
    RN_FAMILY_COUNT,
} rn_family;

typedef struct rn_families {
    rn_series series[RN_FAMILY_COUNT];
    const ration_rules *rules;
    ration_time now;
    const char *last_provider, *last_limit; /* of the counter before */
    ration_text last_key;
} rn_families;

const char *rn_family_name(rn_family family);
const char *rn_family_type(rn_family family); /* as Prometheus calls it */
const char *rn_family_help(rn_family family); /* "": it goes on with the one before */

/*
 * Gather them, on the heap. Calls the decider's report; its errors, RATION_ERR_NOMEM, and then `*out` is untouched.
 * `rules` are those of the decider, and are borrowed for the call. Linear in the counters of these kinds, and in the
 * timelines of quotas where there are at most RN_PROJECTED_MAX counters.
 */
int rn_families_new(rn_decider *decider, const ration_rules *rules, ration_time now, rn_families **out);
void rn_families_free(rn_families *families); /* NULL is fine */

#endif
