/* SPDX-License-Identifier: MIT */

/*
 * Lanes of waiters at a counter.
 *
 * A lane holds the waiters that have the counter in their short set, in waiting order. Those of different lanes never
 * wait for each other. A counter whose kind has no lanes has exactly one, inside itself; the others make theirs when
 * somebody begins to wait there, and keep them.
 *
 * Tenants of a share limit borrow from one pool. Whoever of them could go when the pool grows is found in a tree of the
 * lanes, ordered by the rank of their first waiter and searched for the first whose need is small enough: so a release
 * costs O(log tenants), however many wait for more than there is.
 *
 * Invariant: a lane is among the borrowers only while it has a first waiter, and then stands under its rank.
 */

#include "core/lane.h"

#include <assert.h>

#include "base/mem.h"

static const rn_tenant_lane *lane_of_node(const rn_tree_node *node)
{
    return (const rn_tenant_lane *)(const void *)((const char *)node - offsetof(rn_tenant_lane, node));
}

static bool borrower_less(const rn_tree_node *a, const rn_tree_node *b)
{
    return rn_rank_before(&lane_of_node(a)->rank, &lane_of_node(b)->rank);
}

static bool is_tenants(const rn_counter *counter)
{
    return counter->limit->kind->lanes == RN_LANES_TENANTS;
}

static void lane_init(rn_lane *lane, rn_counter *counter)
{
    *lane = (rn_lane){.counter = counter};
    rn_heap_init(&lane->places, counter->mem, rn_place_less);
}

static void lane_free(const rn_counter *counter, rn_lane *lane)
{
    if (lane == NULL)
        return;
    rn_heap_fini(&lane->places);
    if (is_tenants(counter))
        rn_heap_fini(&((rn_tenant_lane *)lane)->charges);
    rn_mem_free(counter->mem, lane);
}

int rn_lanes_init(rn_counter *counter)
{
    const rn_kind *kind = counter->limit->kind;

    lane_init(&counter->lane, counter);
    counter->lanes = NULL;
    if (kind->lanes == RN_LANES_ONE)
        return RATION_OK;

    const size_t count = kind->lane_count(counter->limit);

    counter->lanes = rn_mem_zalloc(counter->mem, 1, sizeof *counter->lanes + count * sizeof(rn_lane *));
    if (counter->lanes == NULL)
        return RATION_ERR_NOMEM;
    counter->lanes->count = count;
    TAILQ_INIT(&counter->lanes->followers);
    rn_tree_init(&counter->lanes->borrowers, borrower_less);
    return RATION_OK;
}

void rn_lanes_fini(rn_counter *counter)
{
    for (size_t i = 0; counter->lanes != NULL && i < counter->lanes->count; i++)
        lane_free(counter, counter->lanes->at[i]);
    rn_mem_free(counter->mem, counter->lanes);
    rn_heap_fini(&counter->lane.places);
}

rn_lane *rn_lane_at(rn_counter *counter, uint32_t index)
{
    if (counter->lanes == NULL)
        return &counter->lane;
    return index < counter->lanes->count ? counter->lanes->at[index] : NULL;
}

static rn_lane *lane_make(rn_counter *counter, uint32_t index)
{
    const bool tenants = is_tenants(counter);
    rn_lane *lane = rn_mem_zalloc(counter->mem, 1, tenants ? sizeof(rn_tenant_lane) : sizeof *lane);

    assert(index < counter->lanes->count);
    if (lane == NULL)
        return NULL;
    lane_init(lane, counter);
    if (tenants) {
        rn_tenant_lane *tenant = (rn_tenant_lane *)lane;

        rn_heap_init(&tenant->charges, counter->mem, rn_charge_more);
        rn_tree_node_init(&tenant->node);
    }
    counter->lanes->at[index] = lane;
    return lane;
}

int rn_lane_reserve(rn_counter *counter, uint32_t index, rn_lane **out)
{
    rn_lane *lane = rn_lane_at(counter, index);

    if (lane == NULL)
        lane = lane_make(counter, index);
    if (lane == NULL)
        return RATION_ERR_NOMEM;

    int err = rn_heap_reserve(&lane->places, lane->waiters + 1);

    if (err == RATION_OK && is_tenants(counter))
        err = rn_heap_reserve(&((rn_tenant_lane *)lane)->charges, lane->waiters + 1);
    if (err == RATION_OK)
        *out = lane;
    return err;
}

rn_place *rn_lane_first(const rn_lane *lane)
{
    return (rn_place *)(void *)rn_heap_top(&lane->places);
}

bool rn_lane_is_ahead(const rn_lane *lane, const rn_rank *rank)
{
    const rn_place *first = lane == NULL ? NULL : rn_lane_first(lane);

    return first != NULL && rn_rank_before(&first->lease->rank, rank);
}

/*
 * Who comes after all has the sum at once; else in O(those ahead): the heap is walked from its top, and what lies below
 * one that is not ahead is not either. Node `at` has the children 2 at + 1 (odd) and 2 at + 2 (even).
 */
int64_t rn_lane_ahead(const rn_lane *lane, const rn_rank *rank)
{
    int64_t sum = 0;
    size_t at = 0;

    if (rn_rank_before(&lane->last, rank))
        return lane->charge;
    for (;;) {
        const rn_place *place = at < lane->places.size ? (const rn_place *)(const void *)lane->places.items[at] : NULL;

        if (place != NULL && rn_rank_before(&place->lease->rank, rank)) {
            sum = rn_add(sum, place->charge);
            at = 2 * at + 1;
            continue;
        }
        while (at > 0 && at % 2 == 0)
            at = (at - 1) / 2;
        if (at == 0)
            return sum;
        at++;
    }
}

int64_t rn_lane_largest(const rn_lane *lane)
{
    if (lane == NULL || !is_tenants(lane->counter))
        return 0;

    const rn_place *place = rn_place_by_charge(rn_heap_top(&((const rn_tenant_lane *)lane)->charges));

    return place == NULL ? 0 : place->charge;
}

void rn_lane_enter(rn_lane *lane, rn_place *place)
{
    int err = rn_heap_push(&lane->places, &place->node);

    if (err == RATION_OK && is_tenants(lane->counter))
        err = rn_heap_push(&((rn_tenant_lane *)lane)->charges, &place->by_charge);
    assert(err == RATION_OK); /* reserved when it began to wait */
    (void)err;
    if (lane->places.size == 1 || rn_rank_before(&lane->last, &place->lease->rank))
        lane->last = place->lease->rank;
    lane->charge = rn_add(lane->charge, place->charge);
    lane->counter->place_count++;
}

void rn_lane_leave(rn_lane *lane, rn_place *place)
{
    rn_heap_remove(&lane->places, &place->node);
    if (is_tenants(lane->counter)) {
        rn_tenant_lane *tenant = (rn_tenant_lane *)lane;

        rn_heap_remove(&tenant->charges, &place->by_charge);
        if (lane->places.size == 0)
            rn_tree_remove(&lane->counter->lanes->borrowers, &tenant->node);
    }
    lane->charge = lane->places.size == 0 ? 0 : rn_sub(lane->charge, place->charge);
    lane->counter->place_count--;
}

void rn_lane_borrows(rn_lane *lane, int64_t need)
{
    rn_tenant_lane *tenant = (rn_tenant_lane *)lane;
    const rn_place *first = rn_lane_first(lane);
    rn_tree *tree = &lane->counter->lanes->borrowers;
    const bool can = first != NULL && need > 0 && need != RATION_FOREVER_US;

    if (can && rn_tree_contains(&tenant->node) && tenant->rank.serial == first->lease->rank.serial) {
        rn_tree_set(&tenant->node, need);
        return;
    }
    rn_tree_remove(tree, &tenant->node);
    if (can) {
        tenant->rank = first->lease->rank;
        rn_tree_add(tree, &tenant->node, need);
    }
}

rn_lane *rn_lane_borrower(const rn_counter *counter, const rn_rank *after, int64_t pool)
{
    const rn_tenant_lane behind = {.rank = after != NULL ? *after : (rn_rank){0}};
    rn_tree_node *node = rn_tree_first_within(&counter->lanes->borrowers, after != NULL ? &behind.node : NULL, pool);
    rn_tenant_lane *lane =
        node == NULL ? NULL : (rn_tenant_lane *)(void *)((char *)node - offsetof(rn_tenant_lane, node));

    return lane == NULL ? NULL : &lane->lane;
}
