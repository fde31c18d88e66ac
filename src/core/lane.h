/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_LANE_H
#define RN_CORE_LANE_H

#include "core/lease.h"

/* Lanes: who stands in whose way at a counter. Most counters have one; a share limit has one a tenant, an adaptive
 * limit one a class, so that a tenant at its own limit never blocks another. */

/* The counter has its limit and allocator. RATION_ERR_NOMEM: there is nothing to free. */
int rn_lanes_init(rn_counter *counter);
void rn_lanes_fini(rn_counter *counter);

/* The lane of a number; NULL: there is none, or nobody has ever waited there. */
rn_lane *rn_lane_at(rn_counter *counter, uint32_t index);
/* Make the lane if need be, with room for one more waiter. RATION_ERR_NOMEM. */
int rn_lane_reserve(rn_counter *counter, uint32_t index, rn_lane **out);

rn_place *rn_lane_first(const rn_lane *lane); /* NULL: nobody */
/* Does a waiter that is ahead of `rank` keep its place? */
bool rn_lane_is_ahead(const rn_lane *lane, const rn_rank *rank);
/* The charges of those ahead. */
int64_t rn_lane_ahead(const rn_lane *lane, const rn_rank *rank);
/* The largest charge of those that keep a place; 0: nobody. */
int64_t rn_lane_largest(const rn_lane *lane);

/* There is room. */
void rn_lane_enter(rn_lane *lane, rn_place *place);
void rn_lane_leave(rn_lane *lane, rn_place *place); /* it keeps one */

/* Where it stands among those who could borrow: `need` as of rn_share_need, of its first. */
void rn_lane_borrows(rn_lane *lane, int64_t need);
/* The first of the borrowers after `after` (NULL: of all) whose need is at most `pool`; NULL: none. */
rn_lane *rn_lane_borrower(const rn_counter *counter, const rn_rank *after, int64_t pool);

#endif
