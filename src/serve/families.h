/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_FAMILIES_H
#define RN_SERVE_FAMILIES_H

#include "core/decider.h"
#include "serve/series.h"

/* The metrics of share and adaptive limits and of breakers, gathered from one report. */
typedef enum rn_family {
    RN_FAMILY_ADAPTIVE_LIMIT = 0,
    RN_FAMILY_SHARE_DEFICIT,
    RN_FAMILY_SHARE_WORST_RECLAIM,
    RN_FAMILY_LEASES_OVERRUN,
    RN_FAMILY_BREAKER_STATE,
    RN_FAMILY_COUNT,
} rn_family;

typedef struct rn_families {
    rn_series series[RN_FAMILY_COUNT];
    const char *last_provider, *last_limit; /* of the counter before */
    ration_text last_key;
} rn_families;

const char *rn_family_name(rn_family family);
const char *rn_family_help(rn_family family);

/* `fini` always. Calls the decider's report; errors are its own. Linear in the counters of these kinds. */
int rn_families_gather(rn_families *families, rn_decider *decider, ration_time now);
void rn_families_fini(rn_families *families);

#endif
