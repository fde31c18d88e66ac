/* SPDX-License-Identifier: MIT */
/*
 * Asking: wants, reclaims, and the deficit while something is wanted. Chapter 2, "Want" and "Deficit".
 *
 * A want is the largest refused charge outstanding. It ends with a grant, or by itself `idleAfter` after the last
 * refusal, unless a request waits short of this ceiling: waiting is asking. Nothing runs when it lapses. Whatever
 * changes what a tenant holds, wants or is guaranteed first counts its deficit up to then, at the rate that was
 * constant since the last count, and no further than the lapse: so it does not matter when somebody looks.
 *
 * The deficit is exact. A micro-unit held back for a microsecond is a thousand-millionth of a unit-millisecond; whole
 * ones and the rest are kept apart, and the product of rate and time is taken in parts that fit.
 */
#include "core/ceiling_parts.h"

#include <string.h>

#include "base/units.h"

/* Thousand-millionths of a unit-millisecond. */
#define WHOLE INT64_C(1000000000)

static rn_tenant *tenant_of(const rn_ceiling *ceiling, uint32_t index)
{
    return &ceiling->tenants[index];
}

ration_time rn_want_lapse(const rn_ceiling *ceiling, const rn_tenant *tenant)
{
    if (!tenant->wanting || tenant->shorts > 0)
        return ration_time_of(RATION_NEVER_US);
    return rn_time_add(tenant->refused_at, ceiling->spec->rule->idle_after_us);
}

/* rate·us = rate·(us / WHOLE)·WHOLE + (rate / WHOLE)·(us mod WHOLE)·WHOLE + (rate mod WHOLE)·(us mod WHOLE) */
static void deficit_add(rn_tenant *tenant, int64_t rate, int64_t us)
{
    const int64_t rest = (rate % WHOLE) * (us % WHOLE) + tenant->deficit_rest;
    const int64_t whole = rn_add(rn_mul(rate, us / WHOLE), rn_add((rate / WHOLE) * (us % WHOLE), rest / WHOLE));

    tenant->deficit = rn_add(tenant->deficit, whole);
    tenant->deficit_rest = rest % WHOLE;
}

void rn_want_settle(rn_ceiling *ceiling, rn_tenant *tenant, ration_time now)
{
    if (!tenant->wanting)
        return;

    const ration_time lapse = rn_want_lapse(ceiling, tenant);
    const ration_time until = rn_time_min(now, lapse);
    const int64_t rate = rn_min(tenant->guarantee - tenant->held, tenant->want);

    if (rate > 0)
        deficit_add(tenant, rate, rn_max(0, until.us - tenant->counted_at.us));
    tenant->counted_at = until;
    if (rn_time_before(now, lapse))
        return;
    tenant->wanting = false;
    tenant->want = 0;
    tenant->reclaiming = false;
    rn_tenant_changed(ceiling, tenant);
}

void rn_want_served(rn_ceiling *ceiling, rn_tenant *tenant, ration_time now, int64_t left)
{
    if (tenant->reclaiming) {
        tenant->reclaims++;
        tenant->worst_reclaim_us = rn_max(tenant->worst_reclaim_us, now.us - tenant->reclaim_at.us);
        tenant->cool_until = rn_time_add(now, ceiling->spec->rule->cooldown_us);
    }
    tenant->reclaiming = false;
    tenant->wanting = tenant->shorts > 0;
    tenant->want = left;
}

/* Something was asked for. */
static void attempt(rn_ceiling *ceiling, rn_tenant *tenant, ration_time now)
{
    tenant->asked_at = now;
    if (!ceiling->spec->rule->freeze_wanted)
        rn_pool_wake(ceiling, tenant);
}

/* It is short of `charge` here. */
static void want_more(rn_ceiling *ceiling, rn_tenant *tenant, ration_time now, int64_t charge)
{
    rn_want_settle(ceiling, tenant, now);
    if (!tenant->wanting)
        tenant->counted_at = now;
    tenant->wanting = true;
    tenant->want = rn_max(tenant->want, charge);
    tenant->refused_at = now;
    rn_pool_lapse(ceiling, tenant);
}

static void reclaim_begin(rn_tenant *tenant, ration_time now, ration_reason reason)
{
    if (reason != RATION_REASON_GUARANTEE_ON_LOAN || tenant->reclaiming || !tenant->wanting)
        return;
    tenant->reclaiming = true;
    tenant->reclaim_at = now;
}

void rn_ceiling_asked(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask, ration_reason reason,
                      bool is_short)
{
    rn_tenant *const tenant = tenant_of(ceiling, ask->tenant);

    rn_pool_advance(ceiling, now);
    attempt(ceiling, tenant, now);
    if (!is_short)
        return;
    want_more(ceiling, tenant, now, ask->charge);
    reclaim_begin(tenant, now, reason);
    rn_pool_renew(ceiling, tenant);
}

void rn_ceiling_wait(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask)
{
    rn_tenant *const tenant = tenant_of(ceiling, ask->tenant);

    rn_pool_advance(ceiling, now);
    tenant->waiting++;
    tenant->wait_most = rn_max(tenant->wait_most, ask->charge);
    attempt(ceiling, tenant, now);
    rn_pool_renew(ceiling, tenant);
}

void rn_ceiling_short(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask)
{
    rn_tenant *const tenant = tenant_of(ceiling, ask->tenant);

    rn_pool_advance(ceiling, now);
    want_more(ceiling, tenant, now, ask->charge);
    tenant->shorts++;
}

void rn_ceiling_found(rn_ceiling *ceiling, ration_time now, uint32_t tenant, ration_reason reason)
{
    rn_pool_advance(ceiling, now);
    reclaim_begin(tenant_of(ceiling, tenant), now, reason);
}

void rn_ceiling_leave(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask, bool was_short, bool granted)
{
    rn_tenant *const tenant = tenant_of(ceiling, ask->tenant);

    rn_pool_advance(ceiling, now);
    rn_want_settle(ceiling, tenant, now);
    tenant->waiting--;
    if (tenant->waiting == 0)
        tenant->wait_most = 0;
    if (was_short) {
        /* It asked until now; if it is granted, what follows at this instant must still find its want. */
        tenant->shorts--;
        tenant->refused_at = now;
        rn_pool_lapse(ceiling, tenant);
    }
    if (!granted)
        attempt(ceiling, tenant, now);
    rn_pool_renew(ceiling, tenant);
}

void rn_ceiling_refused(rn_ceiling *ceiling, uint32_t tenant, ration_reason reason)
{
    if ((unsigned)reason < RATION_REASON_COUNT)
        tenant_of(ceiling, tenant)->refused[reason]++;
}

void rn_ceiling_forget(rn_ceiling *ceiling, ration_time now)
{
    rn_pool_advance(ceiling, now);
    for (uint32_t i = 0; i < ceiling->count; i++) {
        rn_tenant *const tenant = tenant_of(ceiling, i);

        rn_want_settle(ceiling, tenant, now);
        tenant->reclaiming = tenant->reclaiming && tenant->shorts > 0;
        tenant->wanting = tenant->wanting && tenant->shorts > 0;
        tenant->want = tenant->wanting ? tenant->want : 0;
        tenant->deficit = tenant->deficit_rest = 0;
        tenant->reclaims = tenant->granted = 0;
        tenant->worst_reclaim_us = tenant->granted_cost = 0;
        memset(tenant->refused, 0, sizeof tenant->refused);
        rn_tenant_changed(ceiling, tenant);
    }
}
