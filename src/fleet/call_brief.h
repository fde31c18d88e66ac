/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_CALL_BRIEF_H
#define RN_FLEET_CALL_BRIEF_H

#include "fleet/call.h"

/* Each writes `call->brief`, of a call whose keys have been written, or nothing where the quick path is not for it. */
void rn_call_brief_admit(rn_call *call, const rn_route *route, const rn_call_ask *ask);
/* A response, or the end of a lease at its own cost; `success`: of a call whose status is known by it. */
void rn_call_brief_news(rn_call *call, const rn_route *route, bool success);

#endif
