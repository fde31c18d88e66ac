/* SPDX-License-Identifier: MIT */
/*
 * The idle lenders, and the loans that they give. Chapter 2, "Idle" and step 4.
 *
 * A tenant is idle while it holds no lease, has no request waiting and has been quiet for `idleAfter`; under `freeze:
 * wanted` asking does not end that, only what it asks for stays out of the pool. Those with something to lend stand in
 * a tree, the largest first, ties declared first; what they have together is kept as a sum.
 *
 * Time makes tenants idle without anybody calling. The heap `quiet` knows when: each operation takes out those that are
 * due. A key there may be too early, since asking again does not move it, nor does taking a lease; one that comes up is
 * looked at and goes back with its true instant, or stays out until it rests again. So a busy tenant costs one look in
 * every `idleAfter`, whatever it does, and nobody is ever scanned.
 *
 * Invariants: a tenant that is not idle and could become so by time alone is in `quiet`, with a key that is not after
 * that instant. `available` is what it can lend now, 0 unless it is idle; `pool` is the sum.
 */
#include "core/ceiling_parts.h"

#include <assert.h>

#include "base/mem.h"
#include "base/units.h"

#define BLOCK 64u

static rn_tenant *tenant_in_pool(const rn_tree_node *node)
{
    return rn_around(node, offsetof(rn_tenant, in_pool));
}

static bool lender_before(const rn_tree_node *a, const rn_tree_node *b)
{
    const rn_tenant *const x = tenant_in_pool(a);
    const rn_tenant *const y = tenant_in_pool(b);

    return x->available != y->available ? x->available > y->available : x->index < y->index;
}

static rn_tenant *tenant_in_quiet(const rn_heap_node *node)
{
    return rn_around(node, offsetof(rn_tenant, in_quiet));
}

static bool quiet_less(const rn_heap_node *a, const rn_heap_node *b)
{
    return rn_time_before(tenant_in_quiet(a)->quiet_at, tenant_in_quiet(b)->quiet_at);
}

static rn_tenant *tenant_in_lapses(const rn_heap_node *node)
{
    return rn_around(node, offsetof(rn_tenant, in_lapses));
}

static bool lapse_less(const rn_heap_node *a, const rn_heap_node *b)
{
    return rn_time_before(tenant_in_lapses(a)->lapse_at, tenant_in_lapses(b)->lapse_at);
}

int rn_pool_init(rn_ceiling *ceiling)
{
    rn_tree_init(&ceiling->lenders_by, lender_before);
    rn_heap_init(&ceiling->quiet, ceiling->mem, quiet_less);
    rn_heap_init(&ceiling->lapses, ceiling->mem, lapse_less);
    if (rn_heap_reserve(&ceiling->quiet, ceiling->count) != RATION_OK)
        return RATION_ERR_NOMEM;
    return rn_heap_reserve(&ceiling->lapses, ceiling->count);
}

void rn_pool_fini(rn_ceiling *ceiling)
{
    while (!SLIST_EMPTY(&ceiling->blocks)) {
        struct rn_slice_block *const block = SLIST_FIRST(&ceiling->blocks);

        SLIST_REMOVE_HEAD(&ceiling->blocks, next);
        rn_mem_free(ceiling->mem, block);
    }
    rn_heap_fini(&ceiling->quiet);
    rn_heap_fini(&ceiling->lapses);
}

static bool keeps_wanted(const rn_ceiling *ceiling)
{
    return ceiling->spec->rule->freeze_wanted;
}

/* The instant at which it has been quiet for long enough; RATION_NEVER_US: not by time alone. */
static ration_time idle_from(const rn_ceiling *ceiling, const rn_tenant *tenant)
{
    const int64_t after_us = ceiling->spec->rule->idle_after_us;

    if (tenant->lease_count > 0 || (tenant->waiting > 0 && !keeps_wanted(ceiling)))
        return ration_time_of(RATION_NEVER_US);
    return rn_time_max(rn_time_add(keeps_wanted(ceiling) ? tenant->used_at : tenant->asked_at, after_us),
                       tenant->cool_until);
}

int64_t rn_pool_cap(const rn_ceiling *ceiling, const rn_tenant *tenant)
{
    return tenant->lendable - (keeps_wanted(ceiling) ? rn_max(tenant->want, tenant->wait_most) : 0);
}

void rn_pool_renew(rn_ceiling *ceiling, rn_tenant *tenant)
{
    const int64_t available = tenant->idle ? rn_max(0, rn_pool_cap(ceiling, tenant) - tenant->lent) : 0;

    if (available == tenant->available)
        return;
    rn_tree_remove(&ceiling->lenders_by, &tenant->in_pool);
    ceiling->pool += available - tenant->available;
    tenant->available = available;
    if (available > 0)
        rn_tree_add(&ceiling->lenders_by, &tenant->in_pool, 0);
}

void rn_pool_rest(rn_ceiling *ceiling, rn_tenant *tenant)
{
    const ration_time at = idle_from(ceiling, tenant);

    if (rn_heap_contains(&tenant->in_quiet) || !rn_time_known(at))
        return;
    tenant->quiet_at = at;
    (void)rn_heap_push(&ceiling->quiet, &tenant->in_quiet);
}

void rn_pool_wake(rn_ceiling *ceiling, rn_tenant *tenant)
{
    if (tenant->idle) {
        tenant->idle = false;
        ceiling->idle_count--;
        rn_tenant_changed(ceiling, tenant);
    }
    rn_pool_rest(ceiling, tenant);
}

void rn_pool_lapse(rn_ceiling *ceiling, rn_tenant *tenant)
{
    const ration_time at = rn_want_lapse(ceiling, tenant);

    if (!keeps_wanted(ceiling) || rn_heap_contains(&tenant->in_lapses) || !rn_time_known(at))
        return;
    tenant->lapse_at = at;
    (void)rn_heap_push(&ceiling->lapses, &tenant->in_lapses);
}

/* The first who becomes idle, unless that is after `until`; NULL: nobody. Its key is then its true instant. */
static rn_tenant *quiet_first(rn_ceiling *ceiling, ration_time until)
{
    for (rn_heap_node *top = rn_heap_top(&ceiling->quiet); top != NULL; top = rn_heap_top(&ceiling->quiet)) {
        rn_tenant *const tenant = tenant_in_quiet(top);

        /* No key is too late, so nobody behind it is earlier. */
        if (rn_time_before(until, tenant->quiet_at))
            return NULL;

        const ration_time at = idle_from(ceiling, tenant);

        if (!rn_time_known(at)) {
            (void)rn_heap_pop(&ceiling->quiet);
        } else if (rn_time_before(tenant->quiet_at, at)) {
            tenant->quiet_at = at;
            rn_heap_moved(&ceiling->quiet, top);
        } else {
            return tenant;
        }
    }
    return NULL;
}

/* The first whose want lapses, likewise. */
static rn_tenant *lapses_first(rn_ceiling *ceiling, ration_time until)
{
    for (rn_heap_node *top = rn_heap_top(&ceiling->lapses); top != NULL; top = rn_heap_top(&ceiling->lapses)) {
        rn_tenant *const tenant = tenant_in_lapses(top);

        if (rn_time_before(until, tenant->lapse_at))
            return NULL;

        const ration_time at = rn_want_lapse(ceiling, tenant);

        if (!rn_time_known(at)) {
            (void)rn_heap_pop(&ceiling->lapses);
        } else if (rn_time_before(tenant->lapse_at, at)) {
            tenant->lapse_at = at;
            rn_heap_moved(&ceiling->lapses, top);
        } else {
            return tenant;
        }
    }
    return NULL;
}

void rn_pool_advance(rn_ceiling *ceiling, ration_time now)
{
    rn_tenant *tenant = NULL;

    while ((tenant = quiet_first(ceiling, now)) != NULL) {
        (void)rn_heap_pop(&ceiling->quiet);
        tenant->idle = true;
        ceiling->idle_count++;
        rn_tenant_changed(ceiling, tenant);
    }
    while ((tenant = lapses_first(ceiling, now)) != NULL) {
        (void)rn_heap_pop(&ceiling->lapses);
        rn_want_settle(ceiling, tenant, now);
    }
}

ration_time rn_ceiling_pool_change(rn_ceiling *ceiling, ration_time now)
{
    const ration_time never = {RATION_NEVER_US};

    rn_pool_advance(ceiling, now);

    const rn_tenant *const quiet = quiet_first(ceiling, never);
    const rn_tenant *const lapse = lapses_first(ceiling, never);

    return rn_time_min(quiet == NULL ? never : quiet->quiet_at, lapse == NULL ? never : lapse->lapse_at);
}

int64_t rn_ceiling_pool(rn_ceiling *ceiling, ration_time now)
{
    rn_pool_advance(ceiling, now);
    return ceiling->pool;
}

void rn_pool_restart(rn_ceiling *ceiling)
{
    while (rn_heap_pop(&ceiling->quiet) != NULL) {
    }
    while (rn_heap_pop(&ceiling->lapses) != NULL) {
    }
    ceiling->idle_count = 0;
    for (uint32_t i = 0; i < ceiling->count; i++) {
        ceiling->tenants[i].idle = false;
        rn_tenant_changed(ceiling, &ceiling->tenants[i]);
        rn_pool_rest(ceiling, &ceiling->tenants[i]);
        rn_pool_lapse(ceiling, &ceiling->tenants[i]);
    }
}

/* ---- loans ---- */

/* How many lenders a loan of `units` would have. */
static size_t lenders_for(const rn_ceiling *ceiling, const rn_tenant *borrower, int64_t units)
{
    size_t count = 0;

    for (const rn_tree_node *at = rn_tree_first(&ceiling->lenders_by); at != NULL && units > 0; at = rn_tree_next(at)) {
        const rn_tenant *const lender = tenant_in_pool(at);

        if (lender == borrower)
            continue;
        units -= lender->available;
        count++;
    }
    return count;
}

/* Room for `more` slices, or for a whole block of them. */
static int slices_add(rn_ceiling *ceiling, size_t more)
{
    const size_t count = more > BLOCK ? more : BLOCK;
    struct rn_slice_block *const block =
        count > (PTRDIFF_MAX - sizeof *block) / sizeof block->slices[0]
            ? NULL
            : rn_mem_zalloc(ceiling->mem, 1, sizeof *block + count * sizeof block->slices[0]);

    if (block == NULL)
        return RATION_ERR_NOMEM;
    SLIST_INSERT_HEAD(&ceiling->blocks, block, next);
    for (size_t i = 0; i < count; i++)
        SLIST_INSERT_HEAD(&ceiling->spare, &block->slices[i], next);
    ceiling->spare_count += count;
    return RATION_OK;
}

int rn_pool_reserve(rn_ceiling *ceiling, const rn_tenant *borrower, int64_t units)
{
    const size_t needed = lenders_for(ceiling, borrower, units);

    return needed <= ceiling->spare_count ? RATION_OK : slices_add(ceiling, needed - ceiling->spare_count);
}

int64_t rn_pool_lend(rn_ceiling *ceiling, rn_ceiling_hold *hold, int64_t units)
{
    while (units > 0 && (ceiling->spare_count > 0 || slices_add(ceiling, 1) == RATION_OK)) {
        rn_tree_node *const first = rn_tree_first(&ceiling->lenders_by);
        rn_slice *const slice = SLIST_FIRST(&ceiling->spare);

        assert(first != NULL && slice != NULL);

        rn_tenant *const lender = tenant_in_pool(first);

        SLIST_REMOVE_HEAD(&ceiling->spare, next);
        ceiling->spare_count--;
        slice->hold = hold;
        slice->lender = lender;
        slice->units = rn_min(units, lender->available);
        SLIST_INSERT_HEAD(&hold->slices, slice, next);
        rn_tree_add(&lender->loans, &slice->by_end, 0);
        lender->lent += slice->units;
        units -= slice->units;
        rn_tenant_changed(ceiling, lender);
    }
    return units;
}

void rn_pool_repay(rn_ceiling *ceiling, rn_ceiling_hold *hold, int64_t units)
{
    while (units > 0) {
        rn_slice *const slice = SLIST_FIRST(&hold->slices);
        rn_tenant *const lender = slice->lender;
        const int64_t part = rn_min(units, slice->units);

        slice->units -= part;
        lender->lent -= part;
        units -= part;
        if (slice->units == 0) {
            SLIST_REMOVE_HEAD(&hold->slices, next);
            rn_tree_remove(&lender->loans, &slice->by_end);
            SLIST_INSERT_HEAD(&ceiling->spare, slice, next);
            ceiling->spare_count++;
        }
        rn_tenant_changed(ceiling, lender);
        rn_tenant_freed(ceiling, lender);
    }
}
