/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_CALL_PARTS_H
#define RN_FLEET_CALL_PARTS_H

#include "fleet/call.h"

/* Between call.c (calls about requests) and call_plain.c (calls about none). */

/* The call is written anew; its first key is the provider's head. */
void rn_call_head(rn_call *call, ration_text provider);
/* One more key: of a lease; of a circuit; of a counter, `account` absent where it is the provider's own limit. */
void rn_call_lease_key(rn_call *call, ration_text provider, ration_text id);
void rn_call_circuit_key(rn_call *call, const rn_route *route);
void rn_call_limit_key(rn_call *call, ration_text provider, ration_text limit, ration_text account, ration_text key);
/* What every call begins with: see call.lua. */
void rn_call_common(rn_call *call);
void rn_call_owner(rn_pack *out, const rn_account *account);
/* The rules of a counter, for nobody's request. */
void rn_call_rules(rn_call *call, rn_call_counter *at);
/* Has all of it been written? */
int rn_call_written(const rn_call *call);

#endif
