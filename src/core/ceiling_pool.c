/* SPDX-License-Identifier: MIT */
/*
 * The idle lenders, and the loans that they give. Chapter 2, "Idle" and step 4.
 *
 * A tenant is idle while it holds no lease, has no request waiting and has been quiet for `idleAfter`; under `freeze:
 * wanted` asking does not end that, only what it asks for stays out of the pool. Those with something to lend stand in
 * a tree, the largest first, ties declared first; what they have together is kept as a sum.
 *
 * Time makes tenants idle without anybody calling. Those who rest stand in a list; who asks or releases goes to its
 * end, who takes a lease or waits leaves it, so that it is in order of time and only its head is ever looked at. One
 * that has been quiet for long enough but must cool down goes on to a heap.
 *
 * Wants that lapse matter here under `freeze: wanted` only. Their heap's keys may be too early, since asking again does
 * not move them; one that comes up is looked at and goes back, or is dropped.
 *
 * Invariants: a tenant is busy, or rests in the list, or cools in the heap, or is idle. `available` is what it can lend
 * now, 0 unless it is idle; `pool` is the sum.
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

    return x->available != y->available ? x->available > y->available : x < y;
}

static rn_tenant *tenant_in_cooling(const rn_heap_node *node)
{
    return rn_around(node, offsetof(rn_tenant, in_cooling));
}

static bool cooling_less(const rn_heap_node *a, const rn_heap_node *b)
{
    return rn_time_before(tenant_in_cooling(a)->quiet_at, tenant_in_cooling(b)->quiet_at);
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
    TAILQ_INIT(&ceiling->quiet);
    rn_heap_init(&ceiling->cooling, ceiling->mem, cooling_less);
    rn_heap_init(&ceiling->lapses, ceiling->mem, lapse_less);
    if (rn_heap_reserve(&ceiling->cooling, ceiling->count) != RATION_OK)
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
    rn_heap_fini(&ceiling->cooling);
    rn_heap_fini(&ceiling->lapses);
}

static bool keeps_wanted(const rn_ceiling *ceiling)
{
    return ceiling->spec->rule->freeze_wanted;
}

static bool is_busy(const rn_ceiling *ceiling, const rn_tenant *tenant)
{
    return tenant->lease_count > 0 || (tenant->waiting > 0 && !keeps_wanted(ceiling));
}

static ration_time quiet_since(const rn_ceiling *ceiling, const rn_tenant *tenant)
{
    return keeps_wanted(ceiling) ? tenant->used_at : tenant->asked_at;
}

/* When one that rests has been quiet for long enough. */
static ration_time quiet_until(const rn_ceiling *ceiling, const rn_tenant *tenant)
{
    return rn_time_add(quiet_since(ceiling, tenant), ceiling->spec->rule->idle_after_us);
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

static void rest_end(rn_ceiling *ceiling, rn_tenant *tenant)
{
    if (tenant->resting)
        TAILQ_REMOVE(&ceiling->quiet, tenant, rests);
    tenant->resting = false;
}

/* Nobody who rests has asked later. */
static void rest_begin(rn_ceiling *ceiling, rn_tenant *tenant)
{
    tenant->resting = true;
    TAILQ_INSERT_TAIL(&ceiling->quiet, tenant, rests);
}

void rn_pool_wake(rn_ceiling *ceiling, rn_tenant *tenant)
{
    rest_end(ceiling, tenant);
    rn_heap_remove(&ceiling->cooling, &tenant->in_cooling);
    if (tenant->idle) {
        tenant->idle = false;
        ceiling->idle_count--;
        rn_tenant_changed(ceiling, tenant);
    }
    if (!is_busy(ceiling, tenant))
        rest_begin(ceiling, tenant);
}

void rn_pool_lapse(rn_ceiling *ceiling, rn_tenant *tenant)
{
    const ration_time at = rn_want_lapse(ceiling, tenant);

    if (!keeps_wanted(ceiling) || rn_heap_contains(&tenant->in_lapses) || !rn_time_known(at))
        return;
    tenant->lapse_at = at;
    (void)rn_heap_push(&ceiling->lapses, &tenant->in_lapses);
}

static void become_idle(rn_ceiling *ceiling, rn_tenant *tenant)
{
    tenant->idle = true;
    ceiling->idle_count++;
    rn_tenant_changed(ceiling, tenant);
}

/* Whoever has been quiet for long enough at `now` rests no longer; those who need not cool down are idle. */
static void quiet_advance(rn_ceiling *ceiling, ration_time now)
{
    for (rn_tenant *tenant = TAILQ_FIRST(&ceiling->quiet); tenant != NULL; tenant = TAILQ_FIRST(&ceiling->quiet)) {
        if (rn_time_before(now, quiet_until(ceiling, tenant)))
            return;
        rest_end(ceiling, tenant);
        if (rn_time_before(now, tenant->cool_until)) {
            tenant->quiet_at = tenant->cool_until;
            (void)rn_heap_push(&ceiling->cooling, &tenant->in_cooling);
        } else {
            become_idle(ceiling, tenant);
        }
    }
}

static void cooling_advance(rn_ceiling *ceiling, ration_time now)
{
    for (rn_heap_node *top = rn_heap_top(&ceiling->cooling); top != NULL; top = rn_heap_top(&ceiling->cooling)) {
        if (rn_time_before(now, tenant_in_cooling(top)->quiet_at))
            return;
        (void)rn_heap_pop(&ceiling->cooling);
        become_idle(ceiling, tenant_in_cooling(top));
    }
}

/* The first whose want lapses, unless that is after `until`; NULL: nobody. Its key is then its true instant. */
static rn_tenant *lapses_first(rn_ceiling *ceiling, ration_time until)
{
    for (rn_heap_node *top = rn_heap_top(&ceiling->lapses); top != NULL; top = rn_heap_top(&ceiling->lapses)) {
        rn_tenant *const tenant = tenant_in_lapses(top);

        /* No key is too late, so nobody behind it is earlier. */
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
    quiet_advance(ceiling, now);
    cooling_advance(ceiling, now);
    for (rn_tenant *tenant = lapses_first(ceiling, now); tenant != NULL; tenant = lapses_first(ceiling, now)) {
        (void)rn_heap_pop(&ceiling->lapses);
        rn_want_settle(ceiling, tenant, now);
    }
}

ration_time rn_ceiling_pool_change(rn_ceiling *ceiling, ration_time now)
{
    ration_time at = {RATION_NEVER_US};

    rn_pool_advance(ceiling, now);

    const rn_tenant *const resting = TAILQ_FIRST(&ceiling->quiet);
    const rn_heap_node *const cooling = rn_heap_top(&ceiling->cooling);
    const rn_tenant *const lapse = lapses_first(ceiling, at);

    if (resting != NULL)
        at = quiet_until(ceiling, resting);
    if (cooling != NULL)
        at = rn_time_min(at, tenant_in_cooling(cooling)->quiet_at);
    return lapse == NULL ? at : rn_time_min(at, lapse->lapse_at);
}

int64_t rn_ceiling_pool(rn_ceiling *ceiling, ration_time now)
{
    rn_pool_advance(ceiling, now);
    return ceiling->pool;
}

/* Those who are not busy rest, in order of the instants since which they do: the heap sorts them. */
void rn_pool_restart(rn_ceiling *ceiling)
{
    while (rn_heap_pop(&ceiling->lapses) != NULL) {
    }
    while (rn_heap_pop(&ceiling->cooling) != NULL) {
    }
    ceiling->idle_count = 0;
    for (uint32_t i = 0; i < ceiling->count; i++) {
        rn_tenant *const tenant = &ceiling->tenants[i];

        rest_end(ceiling, tenant);
        tenant->idle = false;
        rn_tenant_changed(ceiling, tenant);
        rn_pool_lapse(ceiling, tenant);
        tenant->quiet_at = quiet_since(ceiling, tenant);
        if (!is_busy(ceiling, tenant))
            (void)rn_heap_push(&ceiling->cooling, &tenant->in_cooling);
    }
    for (rn_heap_node *top = rn_heap_pop(&ceiling->cooling); top != NULL; top = rn_heap_pop(&ceiling->cooling))
        rest_begin(ceiling, tenant_in_cooling(top));
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
