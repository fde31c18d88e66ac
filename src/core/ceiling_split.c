/* SPDX-License-Identifier: MIT */
/*
 * Splits by weight, in whole micro-units.
 *
 * Each gets its part rounded down; what is left over goes, one micro-unit each, to those whose parts were rounded down
 * by most, ties to those declared first. So the parts add up to the whole, always the same way. Whose turn that is, is
 * found by halving the span of the remainders: no sorting, and no memory, for which a resize could not ask.
 *
 * Max-min fairness by progressive filling: whoever wants least for its weight is served first, as long as its demand
 * fits into its part of what is left; what those leave is split among the others, none of whom reaches its demand. A
 * part that was rounded up is no more than the demand, which is whole and above it.
 *
 * Products are at most 2^54 (amounts) times 2^40 (sums of weights), so they are computed in 128 bits.
 */
#include "core/ceiling_parts.h"

#include "base/units.h"

__extension__ typedef unsigned __int128 wide;

static int64_t weight_of(const rn_ceiling *ceiling, const rn_tenant *tenant)
{
    return rn_tenant_rule(ceiling, tenant)->weight;
}

static bool is_open(const rn_tenant *tenant)
{
    return tenant->part == RATION_UNSET;
}

static int64_t open_weight(const rn_ceiling *ceiling)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < ceiling->count; i++)
        sum += is_open(&ceiling->tenants[i]) ? weight_of(ceiling, &ceiling->tenants[i]) : 0;
    return sum;
}

/* How many were rounded down by at least `least`. */
static int64_t rests_from(const rn_ceiling *ceiling, int64_t least)
{
    int64_t count = 0;

    for (uint32_t i = 0; i < ceiling->count; i++)
        count += ceiling->tenants[i].rest >= least;
    return count;
}

/* The smallest remainder such that no more than `most` tenants have it or a larger one. */
static int64_t rest_for(const rn_ceiling *ceiling, int64_t most, int64_t sum)
{
    int64_t low = 0; /* too many, unless all of them may */
    int64_t high = sum;

    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;

        if (rests_from(ceiling, middle) > most) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}

/* Split `amount` by weight among the tenants whose part is not known. */
static void split(rn_ceiling *ceiling, int64_t amount)
{
    const int64_t sum = open_weight(ceiling);
    int64_t left = amount;

    for (uint32_t i = 0; i < ceiling->count; i++) {
        rn_tenant *const tenant = &ceiling->tenants[i];

        tenant->rest = RATION_UNSET;
        if (!is_open(tenant))
            continue;

        const wide product = (wide)(uint64_t)amount * (uint64_t)weight_of(ceiling, tenant);

        tenant->part = (int64_t)(product / (uint64_t)sum);
        tenant->rest = (int64_t)(product % (uint64_t)sum);
        left -= tenant->part;
    }
    if (left == 0)
        return;

    const int64_t threshold = rest_for(ceiling, left, sum);
    int64_t equal = left - rests_from(ceiling, threshold);

    for (uint32_t i = 0; i < ceiling->count; i++) {
        rn_tenant *const tenant = &ceiling->tenants[i];

        if (tenant->rest >= threshold) {
            tenant->part++;
        } else if (tenant->rest == threshold - 1 && equal > 0) {
            tenant->part++;
            equal--;
        }
    }
}

static void parts_forget(rn_ceiling *ceiling)
{
    for (uint32_t i = 0; i < ceiling->count; i++)
        ceiling->tenants[i].part = RATION_UNSET;
}

void rn_split_guarantees(rn_ceiling *ceiling)
{
    parts_forget(ceiling);
    split(ceiling, ceiling->size);
}

static int64_t demand_of(const rn_tenant *tenant)
{
    return rn_add(tenant->held, tenant->want);
}

/* By demand for its weight; ties do not matter. The weight is looked up where the order is made. */
static bool demand_less(const rn_heap_node *a, const rn_heap_node *b)
{
    const rn_tenant *const x = rn_around(a, offsetof(rn_tenant, in_order));
    const rn_tenant *const y = rn_around(b, offsetof(rn_tenant, in_order));

    return (wide)(uint64_t)demand_of(x) * (uint64_t)y->rest < (wide)(uint64_t)demand_of(y) * (uint64_t)x->rest;
}

void rn_split_demands(rn_ceiling *ceiling)
{
    int64_t left = ceiling->size;
    int64_t sum = 0;

    parts_forget(ceiling);
    ceiling->order.less = demand_less;
    for (uint32_t i = 0; i < ceiling->count; i++) {
        rn_tenant *const tenant = &ceiling->tenants[i];

        tenant->rest = weight_of(ceiling, tenant);
        sum += tenant->rest;
        (void)rn_heap_push(&ceiling->order, &tenant->in_order);
    }
    for (rn_heap_node *node = rn_heap_top(&ceiling->order); node != NULL; node = rn_heap_top(&ceiling->order)) {
        rn_tenant *const tenant = rn_around(node, offsetof(rn_tenant, in_order));
        const int64_t demand = demand_of(tenant);

        if ((wide)(uint64_t)demand * (uint64_t)sum > (wide)(uint64_t)left * (uint64_t)tenant->rest)
            break;
        (void)rn_heap_pop(&ceiling->order);
        tenant->part = demand;
        left -= demand;
        sum -= tenant->rest;
    }
    if (ceiling->order.size > 0)
        split(ceiling, left);
    rn_heap_fini(&ceiling->order);
}
