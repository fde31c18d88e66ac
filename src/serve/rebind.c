/* SPDX-License-Identifier: MIT */
/*
 * What a call borrows from a config, and what a reload makes of it.
 *
 * A call holds the destinations that it goes by, and with them their config: account, pool, error rules, costs. So one
 * that was sent ends by what it was sent with. One that holds nothing of the decider but its place goes by the present
 * ones: at a reload if it waits, else as soon as it asks for a lease.
 *
 * Invariant: whatever else it has of a config (who learns of its hold, its job) is of the present one at all times, and
 * a tenant that came from a config is its own once that one has been replaced. Without memory for that the call has
 * none in its next attempts.
 */
#include "base/mem.h"
#include "base/text.h"
#include "serve/exchange.h"

void rn_exchange_bind(rn_exchange *x, const rn_destination *to)
{
    if (to != NULL)
        rn_destinations_hold(to->all);
    if (x->to != NULL)
        rn_destinations_release(x->to->all);
    x->to = to;
}

bool rn_exchange_rebind(rn_exchange *x)
{
    const rn_destination *to = rn_destinations_find(x->gateway->destinations, ration_text_of(x->to->account->name));

    if (to == NULL)
        return false;
    rn_exchange_bind(x, to);
    x->cost_rule = to->costs->any ? rn_costs_find(to->costs, x->route.path).rule : NULL;
    return true;
}

/* Whose account has gone is told so by the decider, or when it asks. */
void rn_exchange_reloaded(rn_exchange *x, const size_t *jobs)
{
    x->hold = x->hold != NULL ? x->hold->heir : NULL;
    x->job = x->job != RN_NO_JOB ? jobs[x->job] : RN_NO_JOB;
    if (x->tenant_of_config && x->own_tenant == NULL) {
        x->own_tenant = rn_mem_textdup(rn_mem_default(), x->directives.tenant);
        x->directives.tenant = ration_text_of(x->own_tenant);
    }
    if (x->state == RN_EXCHANGE_WAITING)
        (void)rn_exchange_rebind(x);
}
