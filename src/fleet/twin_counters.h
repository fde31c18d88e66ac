/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_TWIN_COUNTERS_H
#define RN_FLEET_TWIN_COUNTERS_H

#include "core/decider.h"
#include "fleet/fleet.h"

/* Do all counters tell of themselves in the store what they tell in the engine? Of share limits see twin_tenants.h,
 * which this is like. */
int rn_twin_counters(rn_fleet *fleet, rn_decider *engine, ration_time now, char *text, size_t text_size,
                     size_t *compared);

#endif
