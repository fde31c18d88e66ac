/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_BLOCK_H
#define RN_FLEET_BLOCK_H

#include <stdbool.h>

#include <ration/types.h>

/*
 * Units that a process has taken at once and spends by itself: the arithmetic of settings.fleet.prefetch. Pure; amounts
 * of cost are micro-units.
 *
 * Invariants: 0 <= under_way <= used <= units, and units is what was taken at the store. `used_cost` is the declared
 * cost of those under way and the actual cost of those that have ended.
 */
typedef struct rn_block {
    int64_t units; /* requests that it was taken for */
    int64_t used;
    int64_t under_way;
    int64_t unit_cost; /* 0: nothing counts cost */
    int64_t used_cost;
    ration_time until; /* nothing is granted from it from then on */
} rn_block;

void rn_block_init(rn_block *block, int64_t units, int64_t unit_cost, ration_time until);
/* Is there nothing more for a request like the one that it was taken for, or is its time over? */
bool rn_block_is_over(const rn_block *block, ration_time now);
/* A request leaves. False: it does not fit, and nothing has changed. */
bool rn_block_take(rn_block *block, ration_time now, int64_t cost);
/* One under way cost something else than it was declared. */
void rn_block_settle(rn_block *block, int64_t declared, int64_t actual);
/* It has ended. */
void rn_block_end(rn_block *block);
/* What was taken of cost, and what is left of it; the latter may be below 0. */
int64_t rn_block_cost(const rn_block *block);

#endif
