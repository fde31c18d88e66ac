/* SPDX-License-Identifier: MIT */
#ifndef RN_PLAN_BUDGET_H
#define RN_PLAN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/plan.h>

/* What of a scope may still be spent, and by when. The scopes given have been checked. */

__extension__ typedef unsigned __int128 rn_wide;

/* `own` within `horizon_us`, of which others will take `others`. */
typedef struct rn_budget {
    int64_t own; /* may be negative */
    int64_t others;
    int64_t horizon_us;
} rn_budget;

/* What comes back in a rolling window: `units` have left it, all before `after_us` from now. */
typedef struct rn_return {
    int64_t after_us; /* when the next bucket leaves, or the last that will ever have been spent by now */
    int64_t units;
    size_t next; /* bucket; SIZE_MAX: that was all */
} rn_return;

/* Is `scope` as plan.h wants it? NULL, or what is wrong, and `*member` then names where. */
const char *rn_scope_fault(const ration_plan_scope *scope, ration_time now, const char **member);

/* What may be spent of U - R now, before what others will take: min(U - c, left) - R. Negative in debt. */
int64_t rn_scope_left(const ration_plan_scope *scope);
/* What others will spend of a calendar window within `span_us`, at their pace so far. */
int64_t rn_scope_others(const ration_plan_scope *scope, ration_time now, int64_t span_us);
rn_budget rn_scope_budget(const ration_plan_scope *scope, ration_time now);
/* A whole window. */
int64_t rn_scope_window(const ration_plan_scope *scope);

/*
 * Go through the returns of a rolling window: start with `next` 0, until it answers false. Between two answers nothing
 * comes back.
 */
bool rn_scope_return(const ration_plan_scope *scope, ration_time now, rn_return *r);

/* Quotients in 128 bits, in one step of 64 bits where that will do. `b` > 0. */
rn_wide rn_wide_div_ceil(rn_wide a, uint64_t b);
int64_t rn_wide_int(rn_wide a); /* saturates at INT64_MAX */

#endif
