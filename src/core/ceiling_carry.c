/* SPDX-License-Identifier: MIT */
/*
 * A ceiling goes on under other tenants. Chapter 2, "reweighting on reload by epochs"; decision 0017.
 *
 * Every lease is written down anew, with the loans that are left of it: a loan whose lender is gone has become the
 * borrower's own, above its guarantee, and drains as anything that is. Slices move with the blocks that they live in,
 * so nothing is allocated, and nothing can fail.
 */
#include "core/ceiling_parts.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"

int64_t rn_ceiling_size(const rn_ceiling *ceiling)
{
    return ceiling->size;
}

void rn_ceiling_move(rn_ceiling *ceiling, rn_ceiling_hold *from, rn_ceiling_hold *to)
{
    rn_tenant *const tenant = &ceiling->tenants[from->tenant];
    rn_slice *slice;

    rn_tree_remove(&tenant->leases, &from->by_end);
    rn_tree_node_init(&to->by_end);
    rn_tree_add(&tenant->leases, &to->by_end, 0);
    SLIST_FOREACH (slice, &to->slices, next)
        slice->hold = to;
    rn_tenant_changed(ceiling, tenant);
}

/* The tenant of the same name; NULL: there is none. */
static rn_tenant *same_name(rn_ceiling *ceiling, const rn_ceiling *from, const rn_tenant *tenant)
{
    const ration_text name = ration_text_of(rn_tenant_rule(from, tenant)->name);
    const uint32_t index = rn_ceiling_spec_find(ceiling->spec, name);
    rn_tenant *const found = index == RN_TENANT_NONE ? NULL : &ceiling->tenants[index];

    return found != NULL && rn_text_is(name, rn_tenant_rule(ceiling, found)->name) ? found : NULL;
}

/* What is told of it, and when it was last heard of. */
static void tenant_carry(rn_tenant *tenant, const rn_tenant *from)
{
    tenant->asked_at = from->asked_at;
    tenant->used_at = from->used_at;
    tenant->cool_until = from->cool_until;
    tenant->wanting = from->wanting;
    tenant->want = from->want;
    tenant->refused_at = from->refused_at;
    tenant->reclaiming = from->reclaiming;
    tenant->reclaim_at = from->reclaim_at;
    tenant->counted_at = from->counted_at;
    tenant->deficit = from->deficit;
    tenant->deficit_rest = from->deficit_rest;
    tenant->reclaims = from->reclaims;
    tenant->worst_reclaim_us = from->worst_reclaim_us;
    tenant->granted = from->granted;
    tenant->granted_cost = from->granted_cost;
    memcpy(tenant->refused, from->refused, sizeof tenant->refused);
}

/* The loans that are left of a lease; what is not on loan any more is its own. */
static void slices_carry(rn_ceiling *ceiling, const rn_ceiling *from, rn_ceiling_hold *hold)
{
    SLIST_HEAD(, rn_slice) slices = SLIST_HEAD_INITIALIZER(slices);
    rn_slice *slice;

    while ((slice = SLIST_FIRST(&hold->slices)) != NULL) {
        rn_tenant *const lender = hold->tenant == RN_TENANT_NONE ? NULL : same_name(ceiling, from, slice->lender);

        SLIST_REMOVE_HEAD(&hold->slices, next);
        rn_tree_remove(&slice->lender->loans, &slice->by_end);
        /* Who counts as its own lender owes itself nothing. */
        if (lender == NULL || lender->index == hold->tenant) {
            hold->own += slice->units;
            SLIST_INSERT_HEAD(&ceiling->spare, slice, next);
            ceiling->spare_count++;
            continue;
        }
        slice->lender = lender;
        lender->lent += slice->units;
        SLIST_INSERT_HEAD(&slices, slice, next);
    }
    /* In the order in which they stood. */
    while ((slice = SLIST_FIRST(&slices)) != NULL) {
        SLIST_REMOVE_HEAD(&slices, next);
        SLIST_INSERT_HEAD(&hold->slices, slice, next);
        rn_tree_add(&slice->lender->loans, &slice->by_end, 0);
    }
}

static void lease_carry(rn_ceiling *ceiling, const rn_ceiling *from, const rn_tenant *was, rn_ceiling_hold *hold)
{
    const rn_tenant *const named = same_name(ceiling, from, was);

    hold->tenant = named != NULL ? named->index : ceiling->spec->unknown;
    slices_carry(ceiling, from, hold);
    if (hold->tenant == RN_TENANT_NONE)
        return;

    rn_tenant *const tenant = &ceiling->tenants[hold->tenant];

    rn_tree_add(&tenant->leases, &hold->by_end, 0);
    tenant->lease_count++;
    tenant->own += hold->own;
    tenant->held += hold->charge;
    ceiling->held += hold->charge;
}

/* Memory moves on with what is in it. */
static void blocks_carry(rn_ceiling *ceiling, rn_ceiling *from)
{
    while (!SLIST_EMPTY(&from->blocks)) {
        struct rn_slice_block *const block = SLIST_FIRST(&from->blocks);

        SLIST_REMOVE_HEAD(&from->blocks, next);
        SLIST_INSERT_HEAD(&ceiling->blocks, block, next);
    }
    while (!SLIST_EMPTY(&from->spare)) {
        rn_slice *const slice = SLIST_FIRST(&from->spare);

        SLIST_REMOVE_HEAD(&from->spare, next);
        SLIST_INSERT_HEAD(&ceiling->spare, slice, next);
        ceiling->spare_count++;
    }
    from->spare_count = 0;
}

void rn_ceiling_carry(rn_ceiling *ceiling, ration_time now, rn_ceiling *from)
{
    rn_pool_advance(from, now);
    for (uint32_t i = 0; i < from->count; i++) {
        rn_tenant *const tenant = same_name(ceiling, from, &from->tenants[i]);

        rn_want_settle(from, &from->tenants[i], now);
        if (tenant != NULL)
            tenant_carry(tenant, &from->tenants[i]);
    }
    blocks_carry(ceiling, from);
    for (uint32_t i = 0; i < from->count; i++) {
        rn_tenant *const was = &from->tenants[i];
        rn_tree_node *node;

        while ((node = rn_tree_first(&was->leases)) != NULL) {
            rn_tree_remove(&was->leases, node);
            lease_carry(ceiling, from, was, rn_hold_of_lease(node));
        }
    }
    for (uint32_t i = 0; i < ceiling->count; i++)
        rn_tenant_changed(ceiling, &ceiling->tenants[i]);
    rn_pool_restart(ceiling);
}
