/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_TWIN_TENANTS_H
#define RN_FLEET_TWIN_TENANTS_H

#include "fleet/twin_counters.h"

/* Are the tenants of a share limit's counter, as the engine reports them, those of the store? `err` says. */
void rn_twin_tenants(rn_twin_comparison *c, const ration_counter_name *name, const ration_counter_report *core);

#endif
