/* SPDX-License-Identifier: MIT */
/*
 * Admission under one ceiling: what is granted, from whose units, and what is refused. Chapter 2.
 *
 * A charge is paid from the tenant's own guarantee as far as that is free, and for the rest from idle lenders, if it is
 * held no longer than the horizon. Each borrowed part is a slice that names lease and lender, so a refusal can say who
 * must end before the guarantee is whole again, and a release gives every unit back to whom it belongs.
 *
 * Units are exact. `own + lent <= guarantee` holds for each tenant, and so `held <= size`, as long as guarantees do not
 * shrink and no lease costs more than it asked for. Where one of these has happened, what is above a guarantee drains:
 * no lease is taken back, and nothing is granted that would not fit under the ceiling.
 *
 * Files: `ceiling_pool` who lends, `ceiling_want` who asks, `ceiling_walk` who is in the way and until when,
 * `ceiling_split` guarantees, `ceiling_report` what is told, `ceiling_spec` rules, `ceiling_alone` the public door.
 */
#include "core/ceiling_parts.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

/* What is held above that is not counted. Only a ceiling that binds nobody can come to it; sums must not overflow. */
#define HELD_MAX (INT64_MAX / 4)

/* How a charge can be paid. */
typedef enum fit {
    FIT_NOT = 0,
    FIT_OWN,  /* from what is free of the guarantee */
    FIT_LOAN, /* with a loan */
} fit;

static bool lease_less(const rn_tree_node *a, const rn_tree_node *b)
{
    return rn_hold_before(rn_hold_of_lease(a), rn_hold_of_lease(b));
}

static bool loan_less(const rn_tree_node *a, const rn_tree_node *b)
{
    return rn_hold_before(rn_slice_of_loan(a)->hold, rn_slice_of_loan(b)->hold);
}

static rn_tenant *tenant_in_stalled(const rn_tree_node *node)
{
    return rn_around(node, offsetof(rn_tenant, in_stalled));
}

static bool stalled_less(const rn_tree_node *a, const rn_tree_node *b)
{
    return tenant_in_stalled(a)->index < tenant_in_stalled(b)->index;
}

/* Give everybody the guarantee that follows from size and weights: who gains may go on, who loses may have to borrow
 * what was its own. */
static void guarantees_split(rn_ceiling *ceiling)
{
    rn_split_guarantees(ceiling);
    for (uint32_t i = 0; i < ceiling->count; i++) {
        rn_tenant *const tenant = &ceiling->tenants[i];
        const ration_ratio lend = rn_tenant_rule(ceiling, tenant)->lend;
        const bool moves = tenant->part != tenant->guarantee;

        tenant->guarantee = tenant->part;
        tenant->lendable = rn_ratio_of(tenant->part, lend.den > 0 ? lend : ceiling->spec->rule->lend);
        rn_tenant_changed(ceiling, tenant);
        if (moves)
            rn_tenant_freed(ceiling, tenant);
    }
}

static void tenant_init(rn_tenant *tenant, uint32_t index, ration_time started_at)
{
    tenant->index = index;
    rn_tree_init(&tenant->leases, lease_less);
    rn_tree_init(&tenant->loans, loan_less);
    tenant->asked_at = started_at;
    tenant->used_at = started_at;
    tenant->cool_until = started_at;
    rn_heap_node_init(&tenant->in_cooling);
    rn_heap_node_init(&tenant->in_lapses);
    rn_heap_node_init(&tenant->in_lenders);
    rn_heap_node_init(&tenant->in_over);
    rn_heap_node_init(&tenant->in_order);
}

int rn_ceiling_new(const ration_allocator *mem, const rn_ceiling_spec *spec, int64_t size, ration_time started_at,
                   rn_ceiling **out)
{
    rn_ceiling *const ceiling = rn_mem_zalloc(mem, 1, sizeof *ceiling);

    if (ceiling == NULL)
        return RATION_ERR_NOMEM;
    ceiling->mem = mem;
    ceiling->spec = spec;
    ceiling->size = size;
    ceiling->count = spec->count;
    TAILQ_INIT(&ceiling->touched);
    rn_tree_init(&ceiling->stalled, stalled_less);
    rn_heap_init(&ceiling->order, mem, NULL);
    ceiling->tenants = rn_mem_zalloc(mem, spec->count, sizeof *ceiling->tenants);

    const int pool = rn_pool_init(ceiling);
    const int walk = rn_walk_init(ceiling);

    if (ceiling->tenants == NULL || pool != RATION_OK || walk != RATION_OK) {
        rn_ceiling_free(ceiling);
        return RATION_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < ceiling->count; i++)
        tenant_init(&ceiling->tenants[i], i, started_at);
    guarantees_split(ceiling);
    rn_pool_restart(ceiling);
    *out = ceiling;
    return RATION_OK;
}

void rn_ceiling_free(rn_ceiling *ceiling)
{
    if (ceiling == NULL)
        return;
    rn_pool_fini(ceiling);
    rn_walk_fini(ceiling);
    rn_mem_free(ceiling->mem, ceiling->overrun);
    rn_mem_free(ceiling->mem, ceiling->rows);
    rn_mem_free(ceiling->mem, ceiling->tenants);
    rn_mem_free(ceiling->mem, ceiling);
}

void rn_tenant_changed(rn_ceiling *ceiling, rn_tenant *tenant)
{
    rn_pool_renew(ceiling, tenant);
    rn_walk_renew(ceiling, tenant);
}

void rn_tenant_freed(rn_ceiling *ceiling, rn_tenant *tenant)
{
    if (tenant->waiting == 0 || tenant->touched)
        return;
    tenant->touched = true;
    TAILQ_INSERT_TAIL(&ceiling->touched, tenant, touch);
}

/* ---- admission ---- */

static bool is_full(const rn_ceiling *ceiling, int64_t charge)
{
    return charge > rn_sub(ceiling->size, ceiling->held);
}

static bool may_borrow(const rn_ceiling *ceiling, const rn_ceiling_ask *ask)
{
    return ask->hold_us != RATION_UNSET && ask->hold_us <= ceiling->spec->rule->reclaim_horizon_us;
}

static fit ceiling_fit(const rn_ceiling *ceiling, const rn_tenant *tenant, const rn_ceiling_ask *ask)
{
    const int64_t free = rn_tenant_free(tenant);

    if (is_full(ceiling, ask->charge))
        return FIT_NOT;
    if (ask->charge <= free)
        return FIT_OWN;
    /* It does not lend to itself. What is used above the guarantee must be covered too, but is no part of the loan. */
    return may_borrow(ceiling, ask) && ask->charge - free <= ceiling->pool - tenant->available ? FIT_LOAN : FIT_NOT;
}

static int64_t loan_of(const rn_tenant *tenant, const rn_ceiling_ask *ask)
{
    return ask->charge - rn_max(0, rn_tenant_free(tenant));
}

static void refuse(const rn_ceiling *ceiling, const rn_tenant *tenant, const rn_ceiling_ask *ask,
                   rn_ceiling_verdict *out)
{
    if (ask->charge > ceiling->size) {
        out->reason = RATION_REASON_COST_EXCEEDS_LIMIT;
        out->hopeless = true;
    } else if (ask->charge <= tenant->guarantee - tenant->own) {
        out->reason = RATION_REASON_GUARANTEE_ON_LOAN;
    } else if (!may_borrow(ceiling, ask)) {
        out->reason = RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON;
        out->hopeless = ask->charge > tenant->guarantee;
    } else {
        out->reason = RATION_REASON_NOTHING_TO_BORROW;
    }
}

/* It must be looked at again when there is room for it under the ceiling. */
static void stall(rn_ceiling *ceiling, rn_tenant *tenant, int64_t charge)
{
    if (!rn_tree_contains(&tenant->in_stalled)) {
        rn_tree_add(&ceiling->stalled, &tenant->in_stalled, charge);
    } else if (charge < tenant->in_stalled.value) {
        rn_tree_set(&tenant->in_stalled, charge);
    }
}

void rn_ceiling_check(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask, rn_ceiling_verdict *out)
{
    rn_tenant *const tenant = &ceiling->tenants[ask->tenant];

    *out = (rn_ceiling_verdict){.reason = RATION_REASON_NONE};
    rn_pool_advance(ceiling, now);
    switch (ceiling_fit(ceiling, tenant, ask)) {
    case FIT_OWN:
        break;
    case FIT_LOAN:
        out->nomem = rn_pool_reserve(ceiling, tenant, loan_of(tenant, ask)) != RATION_OK;
        break;
    case FIT_NOT:
        refuse(ceiling, tenant, ask, out);
        if (!out->hopeless && is_full(ceiling, ask->charge))
            stall(ceiling, tenant, ask->charge);
        break;
    }
}

int64_t rn_ceiling_need(rn_ceiling *ceiling, const rn_ceiling_ask *ask)
{
    rn_tenant *const tenant = &ceiling->tenants[ask->tenant];
    const int64_t free = rn_tenant_free(tenant);

    if (is_full(ceiling, ask->charge)) {
        stall(ceiling, tenant, ask->charge);
        return RATION_FOREVER_US;
    }
    if (ask->charge <= free)
        return 0;
    return may_borrow(ceiling, ask) ? ask->charge - free : RATION_FOREVER_US;
}

static ration_time declared_end(const rn_ceiling_ask *ask, ration_time now)
{
    if (ask->hold_us == RATION_UNSET || ask->hold_us == RATION_FOREVER_US)
        return ration_time_of(RATION_NEVER_US);
    return rn_time_min(rn_time_add(now, ask->hold_us), ration_time_of(RATION_TIME_MAX_US));
}

void rn_ceiling_take(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask, uint64_t serial, int64_t left,
                     rn_ceiling_hold *hold)
{
    rn_tenant *const tenant = &ceiling->tenants[ask->tenant];

    rn_pool_advance(ceiling, now);
    rn_want_settle(ceiling, tenant, now);

    const int64_t loan = ceiling_fit(ceiling, tenant, ask) == FIT_LOAN ? loan_of(tenant, ask) : 0;
    const int64_t charge = rn_min(ask->charge, HELD_MAX - ceiling->held);

    *hold = (rn_ceiling_hold){
        .tenant = ask->tenant,
        .charge = charge,
        .own = charge - loan,
        .ends_at = declared_end(ask, now),
        .serial = serial,
    };
    SLIST_INIT(&hold->slices);
    rn_tree_add(&tenant->leases, &hold->by_end, 0);
    tenant->lease_count++;
    tenant->own += hold->own;
    tenant->held += hold->charge;
    ceiling->held += hold->charge;
    tenant->granted++;
    tenant->granted_cost = rn_add(tenant->granted_cost, ask->cost);
    rn_want_served(ceiling, tenant, now, left);
    rn_pool_wake(ceiling, tenant);
    rn_tenant_changed(ceiling, tenant);

    const int64_t unwritten = rn_pool_lend(ceiling, hold, loan);

    if (unwritten > 0) {
        hold->own += unwritten;
        tenant->own += unwritten;
        rn_tenant_changed(ceiling, tenant);
    }
}

void rn_ceiling_settle(rn_ceiling *ceiling, ration_time now, rn_ceiling_hold *hold, int64_t actual)
{
    rn_tenant *const tenant = &ceiling->tenants[hold->tenant];
    const int64_t charge = rn_min(actual, HELD_MAX - (ceiling->held - hold->charge));
    const int64_t less = rn_max(0, hold->charge - charge);
    const int64_t loan = rn_min(less, hold->charge - hold->own);
    const int64_t own = charge - hold->charge + loan;

    rn_pool_advance(ceiling, now);
    rn_want_settle(ceiling, tenant, now);
    rn_pool_repay(ceiling, hold, loan);
    tenant->held += charge - hold->charge;
    ceiling->held += charge - hold->charge;
    tenant->own += own;
    hold->own += own;
    hold->charge = charge;
    rn_tenant_changed(ceiling, tenant);
    if (own < 0)
        rn_tenant_freed(ceiling, tenant);
}

void rn_ceiling_give_back(rn_ceiling *ceiling, ration_time now, rn_ceiling_hold *hold)
{
    rn_tenant *const tenant = &ceiling->tenants[hold->tenant];

    rn_pool_advance(ceiling, now);
    rn_want_settle(ceiling, tenant, now);
    rn_pool_repay(ceiling, hold, hold->charge - hold->own);
    rn_tree_remove(&tenant->leases, &hold->by_end);
    tenant->lease_count--;
    tenant->own -= hold->own;
    tenant->held -= hold->charge;
    ceiling->held -= hold->charge;
    tenant->asked_at = now;
    tenant->used_at = now;
    rn_pool_wake(ceiling, tenant);
    rn_tenant_changed(ceiling, tenant);
    if (hold->own > 0)
        rn_tenant_freed(ceiling, tenant);
}

uint32_t rn_ceiling_touched(rn_ceiling *ceiling)
{
    while (!TAILQ_EMPTY(&ceiling->touched)) {
        rn_tenant *const tenant = TAILQ_FIRST(&ceiling->touched);

        TAILQ_REMOVE(&ceiling->touched, tenant, touch);
        tenant->touched = false;
        if (tenant->waiting > 0)
            return tenant->index;
    }

    const int64_t room = rn_sub(ceiling->size, ceiling->held);

    for (rn_tree_node *node = rn_tree_first_within(&ceiling->stalled, NULL, room); node != NULL;
         node = rn_tree_first_within(&ceiling->stalled, NULL, room)) {
        const rn_tenant *const tenant = tenant_in_stalled(node);

        rn_tree_remove(&ceiling->stalled, node);
        if (tenant->waiting > 0)
            return tenant->index;
    }
    return RN_TENANT_NONE;
}

/* ---- other guarantees ---- */

static void all_settle(rn_ceiling *ceiling, ration_time now)
{
    rn_pool_advance(ceiling, now);
    for (uint32_t i = 0; i < ceiling->count; i++)
        rn_want_settle(ceiling, &ceiling->tenants[i], now);
}

void rn_ceiling_resize(rn_ceiling *ceiling, ration_time now, int64_t size)
{
    all_settle(ceiling, now);
    ceiling->size = size;
    guarantees_split(ceiling);
}

static bool same_tenants(const ration_share_rule *a, const ration_share_rule *b)
{
    if (a->tenant_count != b->tenant_count)
        return false;
    for (size_t i = 0; i < a->tenant_count; i++) {
        if (!rn_text_eq(ration_text_of(a->tenants[i].name), ration_text_of(b->tenants[i].name)))
            return false;
    }
    return true;
}

int rn_ceiling_reweight(rn_ceiling *ceiling, ration_time now, const rn_ceiling_spec *spec, int64_t size)
{
    if (!same_tenants(ceiling->spec->rule, spec->rule))
        return RATION_ERR_INVALID;
    all_settle(ceiling, now);
    ceiling->spec = spec;
    ceiling->size = size;
    guarantees_split(ceiling);
    rn_pool_restart(ceiling);
    return RATION_OK;
}

bool rn_ceiling_is_fresh(rn_ceiling *ceiling, ration_time now)
{
    rn_pool_advance(ceiling, now);
    return ceiling->idle_count == ceiling->count && ceiling->lapses.size == 0;
}

void rn_ceiling_facts(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask, ration_facts *out)
{
    const rn_tenant *const tenant = &ceiling->tenants[ask->tenant];

    rn_pool_advance(ceiling, now);
    *out = (ration_facts){
        .charge = ask->charge,
        .available = rn_max(0, rn_tenant_free(tenant)),
        .capacity = ceiling->size,
        .tenant = ration_text_of(rn_tenant_rule(ceiling, tenant)->name),
        .guarantee = tenant->guarantee,
        .own = tenant->own,
        .lent = tenant->lent,
        .pool = ceiling->pool - tenant->available,
        .hold_us = ask->hold_us == RATION_FOREVER_US ? RATION_UNSET : ask->hold_us,
        .horizon_us = ceiling->spec->rule->reclaim_horizon_us,
    };
}
