/* SPDX-License-Identifier: MIT */
#ifndef RN_JOBS_STAND_H
#define RN_JOBS_STAND_H

#include "core/decider.h"
#include "jobs/keys.h"

/* How the quotas of a plan stand: what is usable, spent, left, in which window. */

/*
 * Every quota of `keys` at `now`. `decider` NULL: as if nothing had ever been spent. RATION_ERR_NOMEM.
 */
int rn_plan_keys_stand(rn_plan_keys *keys, ration_time now, rn_decider *decider);

#endif
