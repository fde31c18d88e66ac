/* SPDX-License-Identifier: MIT */
/*
 * U and R of a quota. Chapter 3, "Usable and reserve".
 *
 * U = floor(M * share), R = floor(U * reserve), both floored to whole units where the limit counts requests: a request
 * cannot spend a part of one. A maximum that is learned may be learned anew, from the answer to a request; so it always
 * leaves one unit for that request.
 *
 * Invariant: 0 <= reserve <= usable, for ratios from 0 to 1.
 */
#include "core/quota_budget.h"

#include "base/units.h"
#include "core/window.h"

static int64_t part_of(const ration_limit_rule *rule, int64_t micro, ration_ratio ratio)
{
    const int64_t part = rn_ratio_of(micro, ratio);

    return rule->counts == RATION_COUNTS_COST ? part : rn_whole_units(part);
}

rn_quota_budget rn_quota_budget_of(const ration_limit_rule *rule, int64_t max, bool learned, ration_ratio share,
                                   ration_ratio reserve)
{
    rn_quota_budget budget = {.usable = part_of(rule, max, share)};

    budget.reserve = part_of(rule, budget.usable, reserve);
    if (learned) {
        budget.usable = rn_max(budget.usable, RATION_UNIT);
        budget.reserve = rn_min(budget.reserve, budget.usable - RATION_UNIT);
    }
    return budget;
}

rn_quota_budget rn_quota_budget_fresh(const ration_limit_rule *rule, ration_ratio share, ration_ratio reserve)
{
    return rn_quota_budget_of(rule, rule->max, rule->max_auto, share, reserve);
}

ration_ratio rn_quota_reserve(ration_ratio given)
{
    return given.den == 0 ? (ration_ratio){1, 10} : given;
}

bool rn_quota_learns(const ration_limit_rule *rule)
{
    const ration_sync *const sync = &rule->sync;

    return sync->limit_header != NULL || sync->remaining_header != NULL || sync->reset_header != NULL || sync->standard;
}

int64_t rn_quota_length(const ration_limit_rule *rule)
{
    const rn_calendar calendar = rn_calendar_of(&rule->window, NULL);

    return calendar.period == RATION_PERIOD_NONE ? rule->window.rolling_us : rn_calendar_length(&calendar);
}

bool rn_quota_window_at(const ration_limit_rule *rule, const rn_zone *zone, ration_time now, ration_time *start,
                        ration_time *end)
{
    const rn_calendar calendar = rn_calendar_of(&rule->window, zone);

    if (calendar.period == RATION_PERIOD_NONE)
        return false;
    rn_calendar_window(&calendar, now, start, end);
    return true;
}
