/* SPDX-License-Identifier: MIT */
/*
 * When a refused request would fit: the leases in its way, in order of their declared ends.
 *
 * What frees units for it lies in the trees of several tenants: loans of its own guarantee; its own leases and the
 * loans of idle lenders, if it would borrow; leases and loans of those above their guarantee, if the ceiling itself is
 * full.
 * A walk merges these trees. Two heaps keep the tenants of the latter two sorts by the end of their next lease or loan,
 * between walks their first; so a walk costs O(log tenants) for each lease that it looks at, however many tenants there
 * are. It moves tenants on as it goes and puts back those it has moved.
 *
 * A lease that several trees lead to is met several times in a row, and counts once. Where two things are missing, room
 * for the request and room under the ceiling, the walk ends when both are there.
 *
 * Invariant: between walks `next_lease` and `next_loan` of every member of a heap are the first of its trees.
 */
#include "core/ceiling_parts.h"

#include "base/units.h"

SLIST_HEAD(moved_list, rn_tenant);

typedef struct walk {
    rn_ceiling *ceiling;
    rn_tenant *tenant;     /* who asks */
    bool borrows;          /* its own leases and loans of idle lenders help */
    int64_t room;          /* missing for the request */
    int64_t drain;         /* missing under the ceiling */
    rn_ceiling_hold *last; /* the lease met last */
    struct moved_list moved;
} walk;

bool rn_hold_before(const rn_ceiling_hold *a, const rn_ceiling_hold *b)
{
    return a->ends_at.us != b->ends_at.us ? rn_time_before(a->ends_at, b->ends_at) : a->serial < b->serial;
}

/* The earlier of two leases, either of which may be none. */
static rn_ceiling_hold *earlier(rn_ceiling_hold *a, rn_ceiling_hold *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    return rn_hold_before(b, a) ? b : a;
}

/* The next lease that the tenant's trees lead to; NULL: no more. */
static rn_ceiling_hold *next_of(const rn_tenant *tenant)
{
    return earlier(tenant->next_lease == NULL ? NULL : rn_hold_of_lease(tenant->next_lease),
                   tenant->next_loan == NULL ? NULL : rn_slice_of_loan(tenant->next_loan)->hold);
}

/* Those with nothing left come last. */
static bool next_before(const rn_tenant *a, const rn_tenant *b)
{
    const rn_ceiling_hold *const x = next_of(a);
    const rn_ceiling_hold *const y = next_of(b);

    return x != NULL && (y == NULL || rn_hold_before(x, y));
}

static rn_tenant *tenant_in_lenders(const rn_heap_node *node)
{
    return rn_around(node, offsetof(rn_tenant, in_lenders));
}

static rn_tenant *tenant_in_over(const rn_heap_node *node)
{
    return rn_around(node, offsetof(rn_tenant, in_over));
}

static bool lenders_less(const rn_heap_node *a, const rn_heap_node *b)
{
    return next_before(tenant_in_lenders(a), tenant_in_lenders(b));
}

static bool over_less(const rn_heap_node *a, const rn_heap_node *b)
{
    return next_before(tenant_in_over(a), tenant_in_over(b));
}

int rn_walk_init(rn_ceiling *ceiling)
{
    rn_heap_init(&ceiling->lenders, ceiling->mem, lenders_less);
    rn_heap_init(&ceiling->over, ceiling->mem, over_less);
    if (rn_heap_reserve(&ceiling->lenders, ceiling->count) != RATION_OK)
        return RATION_ERR_NOMEM;
    return rn_heap_reserve(&ceiling->over, ceiling->count);
}

void rn_walk_fini(rn_ceiling *ceiling)
{
    rn_heap_fini(&ceiling->lenders);
    rn_heap_fini(&ceiling->over);
}

/* In the heap or not, and at its place there. Room was made for all. */
static void heap_keep(rn_heap *heap, rn_heap_node *node, bool in)
{
    if (!in) {
        rn_heap_remove(heap, node);
    } else if (rn_heap_contains(node)) {
        rn_heap_moved(heap, node);
    } else {
        (void)rn_heap_push(heap, node);
    }
}

void rn_walk_renew(rn_ceiling *ceiling, rn_tenant *tenant)
{
    const bool lends = tenant->idle && tenant->lent > 0;
    const bool over = rn_tenant_free(tenant) < 0;

    if (!lends && !over && !rn_heap_contains(&tenant->in_lenders) && !rn_heap_contains(&tenant->in_over))
        return;
    tenant->next_lease = rn_tree_first(&tenant->leases);
    tenant->next_loan = rn_tree_first(&tenant->loans);
    heap_keep(&ceiling->lenders, &tenant->in_lenders, lends);
    heap_keep(&ceiling->over, &tenant->in_over, over);
}

static void tenant_moved(walk *w, rn_tenant *tenant)
{
    if (!tenant->has_moved)
        SLIST_INSERT_HEAD(&w->moved, tenant, moved);
    tenant->has_moved = true;
    rn_heap_moved(&w->ceiling->lenders, &tenant->in_lenders);
    rn_heap_moved(&w->ceiling->over, &tenant->in_over);
}

static void walk_begin(walk *w)
{
    SLIST_INIT(&w->moved);
    w->tenant->next_loan = rn_tree_first(&w->tenant->loans);
    w->tenant->next_lease = rn_tree_first(&w->tenant->leases);
    /* What it holds itself is not in its way, unless it is one of those who must drain. */
    if (!w->borrows && !rn_heap_contains(&w->tenant->in_over))
        w->tenant->next_lease = NULL;
}

static void walk_end(walk *w)
{
    while (!SLIST_EMPTY(&w->moved)) {
        rn_tenant *const tenant = SLIST_FIRST(&w->moved);

        SLIST_REMOVE_HEAD(&w->moved, moved);
        tenant->has_moved = false;
        tenant->returned = 0;
        tenant->next_lease = rn_tree_first(&tenant->leases);
        tenant->next_loan = rn_tree_first(&tenant->loans);
        rn_heap_moved(&w->ceiling->lenders, &tenant->in_lenders);
        rn_heap_moved(&w->ceiling->over, &tenant->in_over);
    }
}

/* Whose trees lead to the next lease. */
static rn_tenant *walk_source(const walk *w)
{
    rn_tenant *first = w->tenant;

    if (w->borrows && w->ceiling->lenders.size > 0) {
        rn_tenant *const lender = tenant_in_lenders(rn_heap_top(&w->ceiling->lenders));

        first = next_before(lender, first) ? lender : first;
    }
    if (w->drain > 0 && w->ceiling->over.size > 0) {
        rn_tenant *const over = tenant_in_over(rn_heap_top(&w->ceiling->over));

        first = next_before(over, first) ? over : first;
    }
    return first;
}

/* The next lease on the way; NULL: no more. */
static rn_ceiling_hold *walk_next(walk *w)
{
    for (;;) {
        rn_tenant *const source = walk_source(w);
        rn_ceiling_hold *const hold = next_of(source);

        if (hold == NULL)
            return NULL;
        if (source->next_lease != NULL && rn_hold_of_lease(source->next_lease) == hold) {
            source->next_lease = rn_tree_next(source->next_lease);
        } else {
            source->next_loan = rn_tree_next(source->next_loan);
        }
        tenant_moved(w, source);
        if (hold != w->last) {
            w->last = hold;
            return hold;
        }
    }
}

/* What an idle lender can give again when `units` more have come back to it. Less, where more is lent than it may. */
static int64_t room_from_lender(walk *w, rn_tenant *lender, int64_t units)
{
    const int64_t before = rn_pool_cap(w->ceiling, lender) - lender->lent + lender->returned;

    lender->returned += units;
    tenant_moved(w, lender);
    return rn_max(0, before + units) - rn_max(0, before);
}

/* What the end of `hold` gives to the request. */
static int64_t room_from(walk *w, const rn_ceiling_hold *hold)
{
    int64_t room = w->borrows && hold->tenant == w->tenant->index ? hold->own : 0;
    const rn_slice *slice = NULL;

    SLIST_FOREACH (slice, &hold->slices, next) {
        if (slice->lender == w->tenant) {
            room += slice->units;
        } else if (w->borrows && slice->lender->idle) {
            room += room_from_lender(w, slice->lender, slice->units);
        }
    }
    return room;
}

/* Go on until nothing is missing. */
static void walk_go(walk *w, ration_time now, rn_ceiling_when *when)
{
    ration_time at = now;
    bool known = true;

    while (w->room > 0 || w->drain > 0) {
        rn_ceiling_hold *const hold = walk_next(w);

        if (hold == NULL) {
            known = false;
            break;
        }

        const int64_t room = room_from(w, hold);

        if ((room == 0 || w->room <= 0) && (hold->charge == 0 || w->drain <= 0))
            continue;
        w->room -= room;
        w->drain -= hold->charge;
        at = hold->ends_at;
        known = known && rn_time_known(at) && !rn_time_before(at, now);
        if (when->blocking != NULL && !w->borrows)
            when->blocking(when->ctx, hold);
        if (!known && (w->borrows || when->blocking == NULL))
            break;
    }
    when->at = known ? at : ration_time_of(RATION_NEVER_US);
}

void rn_ceiling_when_free(rn_ceiling *ceiling, ration_time now, const rn_ceiling_ask *ask, ration_reason reason,
                          rn_ceiling_when *when)
{
    walk w = {.ceiling = ceiling, .tenant = &ceiling->tenants[ask->tenant]};

    when->at.us = RATION_NEVER_US;
    if (reason != RATION_REASON_GUARANTEE_ON_LOAN && reason != RATION_REASON_NOTHING_TO_BORROW)
        return;
    rn_pool_advance(ceiling, now);
    w.borrows = reason == RATION_REASON_NOTHING_TO_BORROW;
    w.room = rn_sub(ask->charge, rn_tenant_free(w.tenant));
    if (w.borrows)
        w.room = rn_sub(w.room, ceiling->pool - w.tenant->available);
    w.drain = rn_sub(rn_add(ceiling->held, ask->charge), ceiling->size);
    walk_begin(&w);
    walk_go(&w, now, when);
    walk_end(&w);
}
