/* SPDX-License-Identifier: MIT */
/*
 * Where a scope will be if things go on as they do. Chapter 3, "Timeline and projections".
 *
 * A pace is an amount in a span, never a quotient, so nothing is lost. What will have been used at the end and when
 * nothing is left follow from it by one division each. In a rolling window what was spent comes back in steps:
 * between two of them what is left falls evenly, so it is enough to look at the end of each.
 *
 * What a pace has of a bucket that its span cuts is in proportion, rounded up: a forecast errs towards caution.
 */
#include <ration/plan.h>

#include "base/units.h"
#include "plan/problem.h"

#define RECENT_US (INT64_C(15) * 60 * 1000000)

/* What was spent in the last `span_us`, or as much of them as the timeline covers. */
static ration_forecast pace_of(const ration_timeline *timeline, ration_time now, int64_t span_us)
{
    const int64_t from_us = now.us - rn_min(span_us, rn_max(0, now.us - timeline->start.us));
    ration_forecast pace = {.span_us = timeline->count > 0 ? now.us - from_us : 0};

    for (size_t i = timeline->count; i > 0; i--) {
        const int64_t begin_us = timeline->start.us + (int64_t)(i - 1) * timeline->width_us;
        const int64_t end_us = rn_min(begin_us + timeline->width_us, now.us);
        const int64_t part_us = end_us - rn_max(begin_us, from_us);
        const uint64_t units = (uint64_t)timeline->units[i - 1];

        if (begin_us > now.us)
            continue;
        if (end_us < from_us)
            break;
        if (part_us == end_us - begin_us) {
            pace.units = rn_add(pace.units, timeline->units[i - 1]);
        } else {
            const rn_wide part = rn_wide_div_ceil((rn_wide)units * (uint64_t)part_us, (uint64_t)(end_us - begin_us));

            pace.units = rn_add(pace.units, rn_wide_int(part));
        }
    }
    return pace;
}

/* At a pace, in so long; rounded up. */
static int64_t pace_in(const ration_forecast *pace, int64_t span_us)
{
    return rn_wide_int(rn_wide_div_ceil((rn_wide)(uint64_t)pace->units * (uint64_t)span_us, (uint64_t)pace->span_us));
}

/* When `left`, which is above 0, is gone, if it is before `until_us` from now. */
static bool is_gone(const ration_forecast *pace, int64_t left, int64_t until_us, int64_t *after_us)
{
    const rn_wide have = (rn_wide)(uint64_t)left * (uint64_t)pace->span_us;

    if ((rn_wide)(uint64_t)pace->units * (uint64_t)until_us <= have)
        return false;
    *after_us = (int64_t)(have / (uint64_t)pace->units);
    return true;
}

static ration_time calendar_exhausted(const ration_plan_scope *scope, ration_time now, const ration_forecast *pace)
{
    const int64_t others = rn_scope_others(scope, now, pace->span_us);
    const ration_forecast all = {.units = rn_add(pace->units, others), .span_us = pace->span_us};
    int64_t after_us = 0;

    if (!is_gone(&all, rn_scope_left(scope), scope->end.us - now.us, &after_us))
        return ration_time_of(RATION_NEVER_US);
    return rn_time_add(now, after_us);
}

static ration_time rolling_exhausted(const ration_plan_scope *scope, ration_time now, const ration_forecast *pace)
{
    const int64_t left = rn_scope_left(scope);
    rn_return r = {0};
    int64_t after_us = 0;

    while (rn_scope_return(scope, now, &r)) {
        if (is_gone(pace, rn_add(left, r.units), r.after_us, &after_us))
            return rn_time_add(now, after_us);
    }
    return ration_time_of(RATION_NEVER_US);
}

static ration_time exhausted_at(const ration_plan_scope *scope, ration_time now, const ration_forecast *pace)
{
    if (rn_scope_left(scope) <= 0)
        return now;
    if (pace->span_us == 0)
        return ration_time_of(RATION_NEVER_US);
    return scope->rolling_us > 0 ? rolling_exhausted(scope, now, pace) : calendar_exhausted(scope, now, pace);
}

/* Our own use at the end, or of a whole rolling window. */
static int64_t at_end(const ration_plan_scope *scope, ration_time now, const ration_forecast *pace)
{
    if (pace->span_us == 0)
        return scope->spent;
    if (scope->rolling_us > 0)
        return pace_in(pace, scope->rolling_us);
    return rn_add(scope->spent, pace_in(pace, scope->end.us - now.us));
}

static ration_forecast forecast(const ration_plan_scope *scope, ration_time now, ration_forecast pace)
{
    pace.at_end = at_end(scope, now, &pace);
    pace.exhausted_at = exhausted_at(scope, now, &pace);
    return pace;
}

int ration_scope_project(const ration_plan_scope *scope, ration_time now, ration_projection *out, ration_fault *fault)
{
    const char *member = NULL;

    if (scope == NULL || out == NULL || (scope->timeline.units == NULL && scope->timeline.count > 0))
        return RATION_ERR_INVALID;
    if (now.us < -RATION_TIME_MAX_US || now.us > RATION_TIME_MAX_US)
        return RATION_ERR_INVALID;

    const char *const text = rn_scope_fault(scope, now, &member);

    if (text != NULL)
        return rn_plan_fault(fault, NULL, member, text);

    const ration_forecast since_start = {.units = scope->spent, .span_us = now.us - scope->start.us};
    const bool rolling = scope->rolling_us > 0;

    out->recent = forecast(scope, now, pace_of(&scope->timeline, now, RECENT_US));
    out->average = forecast(scope, now, rolling ? pace_of(&scope->timeline, now, scope->rolling_us) : since_start);
    return RATION_OK;
}
