/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_ACQUIRE_H
#define RN_FLEET_ACQUIRE_H

#include <ration/fleet.h>

/* As `ration_semaphore_acquire`; the wait is refused with `cancelled` by `also`, too. NULL: by nothing else. */
int rn_semaphore_acquire(ration_semaphore *semaphore, const ration_acquire *how, ration_cancel *also,
                         ration_decision *out);
/* What `fn` has come to, for whoever acquired with `how`. */
ration_outcome rn_acquire_outcome(const ration_acquire *how, int result);

#endif
