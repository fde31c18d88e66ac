/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_QUOTA_BUDGET_H
#define RN_CORE_QUOTA_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/rules.h>

#include "core/zone.h"

/*
 * What a quota may spend, from its rule alone. Specification chapter 3, "Usable and reserve". Pure; the engine's
 * counters and the planner, which has none, both ask here.
 */

/* U and R of chapter 3, in micro-units. */
typedef struct rn_quota_budget {
    int64_t usable;  /* U: the account's share of the maximum */
    int64_t reserve; /* R: what of it only retries and critical requests may spend */
} rn_quota_budget;

/*
 * Of a maximum that is not the rule's, for a response may have taught another. `learned`: it may be learned anew, so
 * U - R is at least one unit. `share` den 0: all of it. `reserve`: see `rn_quota_reserve`.
 */
rn_quota_budget rn_quota_budget_of(const ration_limit_rule *rule, int64_t max, bool learned, ration_ratio share,
                                   ration_ratio reserve);

/* Of a counter that nobody has asked for yet. */
rn_quota_budget rn_quota_budget_fresh(const ration_limit_rule *rule, ration_ratio share, ration_ratio reserve);

/* `ration_rules.retry_reserve`, or the default where it is not given. */
ration_ratio rn_quota_reserve(ration_ratio given);

/* Whether headers of responses teach it anything. */
bool rn_quota_learns(const ration_limit_rule *rule);

/* The usual length of the rule's window: "one window length" of header sync, or the rolling one. */
int64_t rn_quota_length(const ration_limit_rule *rule);

/*
 * The calendar window that `now` is in, as long as no header has moved one: [*start, *end). `zone` is the one that
 * `window.zone` names, NULL for UTC. False, and nothing written: the window is rolling.
 */
bool rn_quota_window_at(const ration_limit_rule *rule, const rn_zone *zone, ration_time now, ration_time *start,
                        ration_time *end);

#endif
