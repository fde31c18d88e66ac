/* SPDX-License-Identifier: MIT */
/*
 * A block of units. A request takes one unit, and its own cost of the cost of all: requests of a block need not cost
 * the same. What ends dearer than it was declared leaves less for the others; what ends cheaper leaves more cost, but
 * no more units. All sums saturate, which only makes a block smaller.
 */
#include "fleet/block.h"

#include "base/units.h"

void rn_block_init(rn_block *block, int64_t units, int64_t unit_cost, ration_time until)
{
    *block = (rn_block){.units = units, .unit_cost = unit_cost, .until = until};
}

int64_t rn_block_cost(const rn_block *block)
{
    return rn_mul(block->units, block->unit_cost);
}

static int64_t cost_left(const rn_block *block)
{
    return rn_sub(rn_block_cost(block), block->used_cost);
}

bool rn_block_is_over(const rn_block *block, ration_time now)
{
    return block->used >= block->units || !rn_time_before(now, block->until) || cost_left(block) < block->unit_cost;
}

bool rn_block_take(rn_block *block, ration_time now, int64_t cost)
{
    if (rn_block_is_over(block, now) || (block->unit_cost > 0 && cost > cost_left(block)))
        return false;
    block->used++;
    block->under_way++;
    if (block->unit_cost > 0)
        block->used_cost = rn_add(block->used_cost, cost);
    return true;
}

void rn_block_settle(rn_block *block, int64_t declared, int64_t actual)
{
    if (block->unit_cost > 0)
        block->used_cost = rn_add(block->used_cost, rn_sub(actual, declared));
}

void rn_block_end(rn_block *block)
{
    block->under_way--;
}
