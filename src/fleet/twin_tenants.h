/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_TWIN_TENANTS_H
#define RN_FLEET_TWIN_TENANTS_H

#include "core/decider.h"
#include "fleet/fleet.h"

/* Are the tenants of all share limits, as the engine reports them, those of the store? RATION_ERR_INVALID with `text`
 * where one is not, at limits of providers; else errors as of `rn_fleet_tenants`. `compared` counts the tenants. */
int rn_twin_tenants(rn_fleet *fleet, rn_decider *engine, ration_time now, char *text, size_t text_size,
                    size_t *compared);

#endif
