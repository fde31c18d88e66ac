/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_CALL_PARTS_H
#define RN_FLEET_CALL_PARTS_H

#include "fleet/call.h"

/* Between call.c (calls about requests) and call_plain.c (calls about none). */

/* The call is written anew; its first key is the provider's head. */
void rn_call_head(rn_call *call, ration_text provider);
/* One more key: of a lease; of a circuit; of a counter, `account` absent where it is the provider's own limit. */
void rn_call_lease_key(rn_call *call, ration_text provider, ration_text id);
void rn_call_circuit_key(rn_call *call, ration_text provider, ration_text key);
void rn_call_limit_key(rn_call *call, ration_text provider, ration_text limit, ration_text account, ration_text key);
/* The keys of a call about a lease that came by a route. RATION_ERR_FULL: too many limits. */
int rn_call_route_keys(rn_call *call, const rn_route *route, ration_text id);
/* What every call begins with: see call.lua. */
void rn_call_common(rn_call *call);
void rn_call_owner(rn_pack *out, const rn_account *account);
/* The rules of a counter, for nobody's request. */
void rn_call_rules(rn_call *call, rn_call_counter *at);
/* The rules of a route's counters, which are charged for a request of that cost. */
void rn_call_counters(rn_call *call, const rn_route *route, int64_t cost);
/* Has all of it been written? */
int rn_call_written(const rn_call *call);

/* Units for many requests at once (RN_SCRIPT_PREFETCH), or what of them counts (RN_SCRIPT_SETTLE). Errors as all. */
int rn_call_block(rn_call *call, const rn_call_what *what);
/* What a response means, or, without one, the outcome that stands for it. */
rn_reading rn_call_reading(const rn_route *route, const ration_response *response, const ration_outcome *said);

#endif
