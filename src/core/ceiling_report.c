/* SPDX-License-Identifier: MIT */
/*
 * What a ceiling tells of itself. Reports are the only place that goes through all tenants; they may allocate and sort.
 *
 * Shares are millionths, rounded to the nearest, and 0 where nothing was granted. Whether the two vectors of shares
 * disagree is decided on the exact fractions. So that all products fit into 128 bits, costs lose their lowest bits
 * where they add up to more than 2^60 (a million million units).
 */
#include "core/ceiling_parts.h"

#include "base/mem.h"
#include "base/units.h"

__extension__ typedef unsigned __int128 wide;

#define MILLION 1000000u

/* What all tenants have together. */
typedef struct sums {
    uint64_t weight;
    uint64_t cost; /* shifted */
    uint64_t requests;
    unsigned shift;
} sums;

/* n / d in millionths, to the nearest; halves up. */
static int64_t millionths(wide n, wide d)
{
    return d == 0 ? 0 : (int64_t)((n * MILLION + d / 2) / d);
}

static uint64_t cost_of(const rn_tenant *tenant, const sums *s)
{
    return (uint64_t)tenant->granted_cost >> s->shift;
}

static sums sum_up(const rn_ceiling *ceiling)
{
    sums s = {0};
    wide cost = 0;

    for (uint32_t i = 0; i < ceiling->count; i++) {
        const rn_tenant *const tenant = &ceiling->tenants[i];

        s.weight += (uint64_t)rn_tenant_rule(ceiling, tenant)->weight;
        s.requests += tenant->granted;
        cost += (uint64_t)tenant->granted_cost;
    }
    while ((cost >> s.shift) > UINT64_C(1) << 60)
        s.shift++;
    for (uint32_t i = 0; i < ceiling->count; i++)
        s.cost += cost_of(&ceiling->tenants[i], &s);
    return s;
}

static void put_shares(const rn_tenant *tenant, uint64_t weight, const sums *s, ration_tenant_report *out)
{
    const uint64_t cost = cost_of(tenant, s);

    out->configured_share = millionths(weight, s->weight);
    out->cost_share = millionths(cost, s->cost);
    out->request_share = millionths(tenant->granted, s->requests);
    out->cost_skew = millionths((wide)cost * s->weight, (wide)s->cost * weight);
    out->request_skew = millionths((wide)tenant->granted * s->weight, (wide)s->requests * weight);
}

/* Do its two shares differ by more than one percentage point? */
static bool disagrees(const rn_tenant *tenant, const sums *s)
{
    const wide by_cost = (wide)cost_of(tenant, s) * s->requests;
    const wide by_requests = (wide)tenant->granted * s->cost;
    const wide difference = by_cost > by_requests ? by_cost - by_requests : by_requests - by_cost;

    return difference * 100 > (wide)s->cost * s->requests;
}

static bool is_quiet(const rn_ceiling *ceiling, const rn_tenant *tenant, ration_time now)
{
    return tenant->lease_count == 0 && tenant->waiting == 0 &&
           !rn_time_before(now, rn_time_add(tenant->asked_at, ceiling->spec->rule->idle_after_us));
}

static void put_row(const rn_ceiling *ceiling, const rn_tenant *tenant, ration_time now, const sums *s,
                    ration_tenant_report *out)
{
    const ration_tenant_share *const rule = rn_tenant_rule(ceiling, tenant);

    *out = (ration_tenant_report){
        .name = ration_text_of(rule->name),
        .guarantee = tenant->guarantee,
        .held = tenant->held,
        .own = tenant->own,
        .lent = tenant->lent,
        .borrowed = tenant->held - tenant->own,
        .want = tenant->want,
        .target = tenant->part,
        .idle = is_quiet(ceiling, tenant, now),
        .waiting = (uint64_t)tenant->waiting,
        .deficit_unit_ms = tenant->deficit,
        .deficit_rest = tenant->deficit_rest,
        .reclaims = tenant->reclaims,
        .worst_reclaim_us = tenant->worst_reclaim_us,
        .granted = tenant->granted,
        .granted_cost = tenant->granted_cost,
    };
    for (size_t i = 0; i < RATION_REASON_COUNT; i++)
        out->refused[i] = tenant->refused[i];
    put_shares(tenant, (uint64_t)rule->weight, s, out);
}

/* One row a tenant, as of `now`. */
static int rows_fill(rn_ceiling *ceiling, ration_time now, const sums *s)
{
    if (ceiling->rows == NULL)
        ceiling->rows = rn_mem_zalloc(ceiling->mem, ceiling->count, sizeof *ceiling->rows);
    if (ceiling->rows == NULL || rn_heap_reserve(&ceiling->order, ceiling->count) != RATION_OK)
        return RATION_ERR_NOMEM;
    for (uint32_t i = 0; i < ceiling->count; i++)
        rn_want_settle(ceiling, &ceiling->tenants[i], now);
    rn_split_demands(ceiling);
    for (uint32_t i = 0; i < ceiling->count; i++)
        put_row(ceiling, &ceiling->tenants[i], now, s, &ceiling->rows[i]);
    return RATION_OK;
}

/* ---- overruns ---- */

static rn_tenant *tenant_in_order(const rn_heap_node *node)
{
    return rn_around(node, offsetof(rn_tenant, in_order));
}

static bool overrun_less(const rn_heap_node *a, const rn_heap_node *b)
{
    return rn_hold_before(rn_hold_of_lease(tenant_in_order(a)->next_lease),
                          rn_hold_of_lease(tenant_in_order(b)->next_lease));
}

static bool is_overrun(const rn_tree_node *lease, ration_time now)
{
    return lease != NULL && rn_time_before(rn_hold_of_lease(lease)->ends_at, now);
}

/* Put each tenant with leases past their ends at the first of them; how many leases there are. */
static size_t overruns_begin(rn_ceiling *ceiling, ration_time now)
{
    size_t count = 0;

    ceiling->order.less = overrun_less;
    for (uint32_t i = 0; i < ceiling->count; i++) {
        rn_tenant *const tenant = &ceiling->tenants[i];
        const rn_tree_node *lease = rn_tree_first(&tenant->leases);

        tenant->next_lease = lease;
        if (is_overrun(lease, now))
            (void)rn_heap_push(&ceiling->order, &tenant->in_order);
        for (; is_overrun(lease, now); lease = rn_tree_next(lease))
            count++;
    }
    return count;
}

/* Merge them in order of their ends, and put the tenants back to their first leases. */
static void overruns_fill(rn_ceiling *ceiling, ration_time now)
{
    size_t count = 0;

    for (rn_heap_node *top = rn_heap_top(&ceiling->order); top != NULL; top = rn_heap_top(&ceiling->order)) {
        rn_tenant *const tenant = tenant_in_order(top);

        ceiling->overrun[count++] = rn_hold_of_lease(tenant->next_lease)->serial;
        tenant->next_lease = rn_tree_next(tenant->next_lease);
        if (is_overrun(tenant->next_lease, now)) {
            rn_heap_moved(&ceiling->order, top);
        } else {
            (void)rn_heap_pop(&ceiling->order);
            tenant->next_lease = rn_tree_first(&tenant->leases);
        }
    }
}

static int overruns_list(rn_ceiling *ceiling, ration_time now, size_t *out)
{
    if (rn_heap_reserve(&ceiling->order, ceiling->count) != RATION_OK)
        return RATION_ERR_NOMEM;

    const size_t count = overruns_begin(ceiling, now);
    uint64_t *grown = ceiling->overrun;

    if (count > ceiling->overrun_room)
        grown = rn_mem_resize(ceiling->mem, ceiling->overrun, count, sizeof *grown);
    if (count > 0 && grown == NULL)
        return RATION_ERR_NOMEM;
    ceiling->overrun = grown;
    ceiling->overrun_room = count > ceiling->overrun_room ? count : ceiling->overrun_room;
    overruns_fill(ceiling, now);
    *out = count;
    return RATION_OK;
}

/* ---- reports ---- */

/* What is used above guarantees. */
static int64_t draining(const rn_ceiling *ceiling)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < ceiling->count; i++)
        sum += rn_max(0, -rn_tenant_free(&ceiling->tenants[i]));
    return sum;
}

int rn_ceiling_stats(rn_ceiling *ceiling, ration_time now, ration_counter_report *out)
{
    const sums s = sum_up(ceiling);
    size_t overrun_count = 0;

    rn_pool_advance(ceiling, now);

    int err = rows_fill(ceiling, now, &s);

    if (err == RATION_OK)
        err = overruns_list(ceiling, now, &overrun_count);
    rn_heap_fini(&ceiling->order);
    if (err != RATION_OK)
        return err;
    out->max = ceiling->size;
    out->held = ceiling->held;
    out->draining = draining(ceiling);
    out->tenants = ceiling->rows;
    out->tenant_count = ceiling->count;
    out->overrun = ceiling->overrun;
    out->overrun_count = overrun_count;
    return RATION_OK;
}

int rn_ceiling_shares(rn_ceiling *ceiling, ration_time now, ration_share_report *out)
{
    const sums s = sum_up(ceiling);
    bool disagree = false;

    rn_pool_advance(ceiling, now);

    const int err = rows_fill(ceiling, now, &s);

    rn_heap_fini(&ceiling->order);
    if (err != RATION_OK)
        return err;
    for (uint32_t i = 0; i < ceiling->count; i++)
        disagree = disagree || disagrees(&ceiling->tenants[i], &s);
    out->tenants = ceiling->rows;
    out->tenant_count = ceiling->count;
    out->units_disagree = disagree;
    return RATION_OK;
}
