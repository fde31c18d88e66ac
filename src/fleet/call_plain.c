/* SPDX-License-Identifier: MIT */
/*
 * Calls that are about no request: leases by their names, what time and health checks bring, counters.
 *
 * A counter that an operator names need not have been asked for here, so its rules are written of a bare one, which
 * stands nowhere.
 */
#include "base/text.h"
#include "core/engine.h"
#include "fleet/call_parts.h"

int rn_call_leases(rn_call *call, ration_text provider, const ration_text *ids, size_t count)
{
    if (count > RN_CALL_IDS_MAX)
        return RATION_ERR_FULL;
    rn_call_head(call, provider);
    for (size_t i = 0; i < count; i++)
        rn_call_lease_key(call, provider, ids[i]);
    rn_call_common(call);
    rn_pack_map(&call->argument, 1);
    rn_pack_key(&call->argument, "ids");
    rn_pack_array(&call->argument, count);
    for (size_t i = 0; i < count; i++)
        rn_pack_text(&call->argument, ids[i]);
    return rn_call_written(call);
}

int rn_call_cancel(rn_call *call, const rn_route *route, ration_text id)
{
    rn_call_head(call, route->provider->name);
    rn_call_lease_key(call, route->provider->name, id);
    rn_call_common(call);
    return rn_call_written(call);
}

int rn_call_health_write(rn_call *call, const rn_call_health *health)
{
    rn_pack *const out = &call->argument;
    const rn_scope *const scope = &health->account->provider->circuit->scope;

    rn_call_head(call, health->account->provider->name);
    rn_call_common(call);
    rn_pack_map(out, 5);
    rn_pack_key_bool(out, "ok", health->ok);
    rn_pack_key(out, "account");
    rn_call_owner(out, health->account);
    rn_pack_key(out, "by");
    rn_pack_array(out, 3);
    rn_pack_bool(out, rn_scope_has(scope, RN_DIMENSION_ACCOUNT));
    rn_pack_bool(out, rn_scope_has(scope, RN_DIMENSION_TARGET));
    rn_pack_bool(out, rn_scope_has(scope, RN_DIMENSION_CREDENTIAL));
    rn_pack_key(out, "key");
    if (health->circuit.data == NULL) {
        rn_pack_bool(out, false);
    } else {
        rn_pack_text(out, health->circuit);
    }
    rn_pack_key_int(out, "number", health->number);
    return rn_call_written(call);
}

int rn_call_advance(rn_call *call, ration_text provider, ration_text circuit)
{
    rn_call_head(call, provider);
    if (circuit.data != NULL)
        rn_call_circuit_key(call, provider, circuit);
    rn_call_common(call);
    rn_pack_map(&call->argument, circuit.data != NULL);
    if (circuit.data != NULL)
        rn_pack_key_text(&call->argument, "key", circuit);
    return rn_call_written(call);
}

int rn_call_tenants(rn_call *call, const ration_counter_name *counter, ration_text account)
{
    rn_call_head(call, counter->provider);
    rn_call_limit_key(call, counter->provider, counter->limit, account, counter->key);
    rn_call_common(call);
    return rn_call_written(call);
}

int rn_call_operate(rn_call *call, const rn_call_operation *operation)
{
    static const char *const names[] = {[RATION_OP_PAUSE] = "pause",
                                        [RATION_OP_RESUME] = "resume",
                                        [RATION_OP_RESET] = "reset",
                                        [RATION_OP_GRANT] = "grant"};
    rn_call_counter *const at = operation->at;
    const rn_limit *const limit = at->counter.limit;
    const bool whole = limit->rule->counts == RATION_COUNTS_COST || operation->units % RATION_UNIT == 0;
    rn_pack *const out = &call->argument;

    rn_call_head(call, ration_text_of(limit->provider));
    rn_call_limit_key(call, call->provider, ration_text_of(limit->rule->name), at->owner, at->counter.key);
    rn_call_common(call);
    rn_pack_map(out, 4);
    rn_pack_key_text(out, "op", ration_text_of(names[operation->op]));
    rn_pack_key_bool(out, "known", at->known);
    rn_pack_key_bool(out, "countable", whole && operation->units > 0 && operation->units <= RATION_UNITS_MAX);
    rn_pack_key_int(out, "units", operation->units);
    rn_call_rules(call, at);
    return rn_call_written(call);
}

int rn_call_inspect(rn_call *call, const rn_call_inspection *what)
{
    rn_call_head(call, ration_text_of(what->counters[0].counter.limit->provider));
    for (size_t i = 0; i < what->count; i++) {
        const rn_counter *const counter = &what->counters[i].counter;

        rn_call_limit_key(call, call->provider, ration_text_of(counter->limit->rule->name), what->counters[i].owner,
                          counter->key);
    }
    rn_call_common(call);
    rn_pack_map(&call->argument, 0);
    for (size_t i = 0; i < what->count; i++)
        rn_call_rules(call, &what->counters[i]);
    return rn_call_written(call);
}
