/* SPDX-License-Identifier: MIT */
/*
 * Calls about blocks: leases that are charged for many requests (member_prefetch.c).
 *
 * Counters are written as for one request; how many times that is taken is decided by the script.
 */
#include "base/text.h"
#include "core/engine.h"
#include "fleet/call_parts.h"

int rn_call_block(rn_call *call, const rn_call_what *what)
{
    const bool asks = what->script == RN_SCRIPT_PREFETCH;
    const int err = rn_call_route_keys(call, what->route, what->id);

    if (err != RATION_OK)
        return err;
    rn_call_common(call);
    rn_pack_int(&call->argument, asks ? what->ask->units : what->end->units);
    rn_pack_int(&call->argument, asks ? what->ask->ttl_us : what->end->cost);
    rn_call_counters(call, what->route, asks ? what->ask->cost : 0);
    return rn_call_written(call);
}

rn_reading rn_call_reading(const rn_route *route, const ration_response *response, const ration_outcome *said)
{
    if (said == NULL)
        return rn_response_read(&route->provider->rule.errors, response);
    return (rn_reading){.rate_limited = *said == RATION_OUTCOME_THROTTLED,
                        .success = *said == RATION_OUTCOME_SUCCESS,
                        .outcome = *said};
}
