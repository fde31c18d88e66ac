/* SPDX-License-Identifier: MIT */
/*
 * What of a scope may still be spent, and within what span. Chapter 4, "Mid-window".
 *
 * Of a calendar window that is simply what is left, to its end, less what others will take by then at their pace so
 * far.
 *
 * A rolling window has no end: what was spent comes back, bucket by bucket, and a steady pace must never be ahead of
 * what has come back by then. That is one condition for each bucket, pace * t <= left + returned before t, and one for
 * the span over which a charge counts, within which all of U - R is there. The tightest of them, the smallest
 * quotient, stands for all: so a rolling window is an amount and a span as well. Conditions nearer than a 24th of the
 * window are passed over: a minute with nothing to spend is no reason to stretch a day.
 */
#include "plan/budget.h"

#include "base/units.h"
#include "core/quota_parts.h"

#define PARTS 24

rn_wide rn_wide_div_ceil(rn_wide a, uint64_t b)
{
    if (a >> 64 == 0)
        return (uint64_t)a / b + ((uint64_t)a % b != 0);
    return a / b + (a % b != 0);
}

int64_t rn_wide_int(rn_wide a)
{
    return a > INT64_MAX ? INT64_MAX : (int64_t)a;
}

static bool is_instant(ration_time at)
{
    return at.us >= -RATION_TIME_MAX_US && at.us <= RATION_TIME_MAX_US;
}

static const char *timeline_fault(const ration_timeline *timeline, const char **member)
{
    *member = "timeline.start";
    if (!is_instant(timeline->start))
        return "is no instant";
    *member = "timeline.width_us";
    if (timeline->width_us <= 0 || timeline->width_us > RATION_TIME_MAX_US)
        return "a bucket is longer than 0, and no longer than time is counted";
    *member = "timeline.count";
    if (timeline->count > (uint64_t)(2 * RATION_TIME_MAX_US / timeline->width_us))
        return "the buckets reach farther than time is counted";
    *member = "timeline.units";
    for (size_t i = 0; i < timeline->count; i++) {
        if (timeline->units[i] < 0)
            return "a bucket holds less than 0";
    }
    return NULL;
}

static const char *window_fault(const ration_plan_scope *scope, ration_time now, const char **member)
{
    *member = "rolling_us";
    if (scope->rolling_us < 0 || scope->rolling_us > RATION_TIME_MAX_US)
        return "a rolling window is longer than 0, and no longer than time is counted";
    if (scope->rolling_us > 0)
        return NULL;
    *member = "start";
    if (!is_instant(scope->start) || scope->start.us > now.us)
        return "a window must have begun";
    *member = "end";
    if (!is_instant(scope->end) || scope->end.us < now.us || scope->end.us <= scope->start.us)
        return "a window ends after its start, and not before now";
    return NULL;
}

const char *rn_scope_fault(const ration_plan_scope *scope, ration_time now, const char **member)
{
    *member = "usable";
    if (scope->usable < 0 || scope->usable > RATION_UNITS_MAX)
        return "must be from 0 to 9007199254.740992 units";
    *member = "reserve";
    if (scope->reserve < 0 || scope->reserve > scope->usable)
        return "must be a part of what is usable";
    *member = "spent";
    if (scope->spent < 0)
        return "must not be below 0";
    *member = "external";
    if (scope->external < 0)
        return "must not be below 0";

    const char *const text = window_fault(scope, now, member);

    return text != NULL || scope->timeline.count == 0 ? text : timeline_fault(&scope->timeline, member);
}

int64_t rn_scope_window(const ration_plan_scope *scope)
{
    return scope->rolling_us > 0 ? scope->rolling_us : scope->end.us - scope->start.us;
}

int64_t rn_scope_left(const ration_plan_scope *scope)
{
    const int64_t own = rn_sub(scope->usable, scope->spent);

    return rn_sub(scope->has_left ? rn_min(own, scope->left) : own, scope->reserve);
}

int64_t rn_scope_others(const ration_plan_scope *scope, ration_time now, int64_t span_us)
{
    const int64_t elapsed_us = rn_max(now.us - scope->start.us, rn_div_ceil(rn_scope_window(scope), PARTS));

    return rn_wide_int(rn_wide_div_ceil((rn_wide)(uint64_t)scope->external * (uint64_t)span_us, (uint64_t)elapsed_us));
}

/* For how long a charge counts in a rolling window: `*after_end_us` after its bucket has ended, at most the answer. */
static int64_t counts_for(const ration_plan_scope *scope, int64_t *after_end_us)
{
    rn_quota_spec spec = {.length_us = scope->rolling_us};

    rn_rolling_prepare(&spec, false);
    *after_end_us = spec.counts_us;
    return spec.counts_us + spec.width_us;
}

bool rn_scope_return(const ration_plan_scope *scope, ration_time now, rn_return *r)
{
    const ration_timeline *const timeline = &scope->timeline;
    int64_t after_end_us = 0;
    const int64_t counts_us = counts_for(scope, &after_end_us);
    const int64_t ends_us = timeline->start.us - now.us + after_end_us;

    if (r->next == SIZE_MAX)
        return false;
    if (r->next > 0)
        r->units = rn_add(r->units, timeline->units[r->next - 1]);
    while (r->next < timeline->count) {
        r->after_us = ends_us + (int64_t)(r->next + 1) * timeline->width_us;
        r->next++;
        if (r->after_us > 0 && r->after_us <= counts_us)
            return true;
    }
    /* By then all that has been spent is back. */
    *r = (rn_return){.after_us = counts_us, .units = scope->spent, .next = SIZE_MAX};
    return true;
}

static rn_budget rolling_budget(const ration_plan_scope *scope, ration_time now)
{
    const int64_t least_us = rn_div_ceil(scope->rolling_us, PARTS);
    const int64_t left = rn_scope_left(scope);
    rn_budget tightest = {.own = INT64_MAX, .horizon_us = 1};
    rn_return r = {0};

    while (rn_scope_return(scope, now, &r)) {
        const int64_t own = rn_max(0, rn_add(left, r.units));

        if (r.after_us >= least_us && (rn_wide)(uint64_t)own * (uint64_t)tightest.horizon_us <
                                          (rn_wide)(uint64_t)tightest.own * (uint64_t)r.after_us)
            tightest = (rn_budget){.own = own, .horizon_us = r.after_us};
    }
    return tightest;
}

rn_budget rn_scope_budget(const ration_plan_scope *scope, ration_time now)
{
    if (scope->rolling_us > 0)
        return rolling_budget(scope, now);

    const int64_t left_us = scope->end.us - now.us;

    return (rn_budget){
        .own = rn_scope_left(scope), .others = rn_scope_others(scope, now, left_us), .horizon_us = left_us};
}
