/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_TWIN_COUNTERS_H
#define RN_FLEET_TWIN_COUNTERS_H

#include "core/decider.h"
#include "fleet/fleet.h"

typedef struct rn_twin_comparison {
    rn_fleet *fleet;
    ration_time now;
    char *text; /* where they differ; of `text_size` bytes */
    size_t text_size;
    size_t *compared; /* counted up */
    int err;
} rn_twin_comparison;

/* Do all counters tell of themselves in the store what they tell in the engine, and share limits of their tenants?
 * RATION_ERR_INVALID with the text where one does not; else errors as of `rn_fleet_inspect` and `rn_fleet_tenants`. */
int rn_twin_counters(rn_twin_comparison *c, rn_decider *engine);
/* They do not: RATION_ERR_INVALID. */
void rn_twin_differ(rn_twin_comparison *c, const char *core, const char *store);

#endif
