/* SPDX-License-Identifier: MIT */
/*
 * From a quota's row of a report to what a person wants to know of it: how fast it goes, and where it will end.
 *
 * A report says what remains with everything taken into account that was learned, so that is what is left, whatever
 * U - c is. Two paces are told side by side, since each is wrong at times: that of the last 15 minutes when a job runs
 * once an hour, that of the window when somebody has just changed something.
 */
#include "serve/projections.h"

#include <string.h>

#include "base/units.h"

#define HOUR_US INT64_C(3600000000)

__extension__ typedef unsigned __int128 wide;

bool rn_quota_project(const ration_counter_report *counter, ration_time now, ration_projection *out)
{
    const ration_plan_scope scope = {.usable = counter->usable,
                                     .reserve = counter->reserve,
                                     .spent = counter->used,
                                     .has_left = true,
                                     .left = counter->remaining,
                                     .external = counter->external,
                                     .start = counter->window_start,
                                     .end = counter->window_end,
                                     .rolling_us = counter->rolling_us,
                                     .timeline = counter->timeline};

    return counter->kind == RATION_KIND_QUOTA && ration_scope_project(&scope, now, out, NULL) == RATION_OK;
}

int64_t rn_quota_rate(const ration_forecast *pace, int64_t span_us)
{
    const wide units = (wide)(uint64_t)pace->units * (uint64_t)span_us / (uint64_t)pace->span_us;

    return units > INT64_MAX ? INT64_MAX : (int64_t)units;
}

static void forecast_write(rn_output *out, const char *name, const ration_forecast *pace)
{
    rn_output_open(out, name, '{');
    rn_output_micro(out, "spent", pace->units);
    rn_output_ms(out, "spanMs", pace->span_us);
    if (pace->span_us > 0) {
        rn_output_micro(out, "perHour", rn_quota_rate(pace, HOUR_US));
        rn_output_micro(out, "atEnd", pace->at_end);
    }
    if (rn_time_known(pace->exhausted_at))
        rn_output_ms(out, "exhaustedAt", pace->exhausted_at.us);
    rn_output_close(out, '}');
}

static void timeline_write(rn_output *out, const ration_timeline *timeline)
{
    rn_output_open(out, "timeline", '{');
    rn_output_ms(out, "start", timeline->start.us);
    rn_output_ms(out, "widthMs", timeline->width_us);
    rn_output_open(out, "units", '[');
    for (size_t i = 0; i < timeline->count; i++)
        rn_output_micro(out, NULL, timeline->units[i]);
    rn_output_close(out, ']');
    rn_output_close(out, '}');
}

void rn_quota_write(rn_output *out, const ration_counter_report *counter, ration_time now, bool whole)
{
    ration_projection projection;

    if (!rn_quota_project(counter, now, &projection))
        return;
    if (counter->timeline.count > 0)
        forecast_write(out, "recent", &projection.recent);
    forecast_write(out, "average", &projection.average);
    if (whole && counter->timeline.count > 0)
        timeline_write(out, &counter->timeline);
}

/* ---- declared and learned maxima */

/* How far a maximum is from the nearest that was declared; `found`: one was. */
typedef struct distance {
    int64_t max;
    int64_t by;
    bool found;
} distance;

static void rules_visit(distance *d, const ration_limit_rule *rules, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        const int64_t by = rn_sub(d->max, rules[i].max);

        if (rules[i].kind != RATION_KIND_QUOTA || rules[i].max_auto || strcmp(rules[i].name, name) != 0)
            continue;
        if (!d->found || rn_max(by, -by) < rn_max(d->by, -d->by))
            d->by = by;
        d->found = true;
    }
}

bool rn_quota_disagrees(const ration_rules *rules, const ration_counter_report *counter, int64_t *by)
{
    distance d = {.max = counter->max};

    for (size_t i = 0; i < rules->provider_count; i++) {
        const ration_provider_rule *provider = &rules->providers[i];
        if (strcmp(provider->name, counter->provider) == 0)
            rules_visit(&d, provider->limits, provider->limit_count, counter->limit);
    }
    for (size_t i = 0; i < rules->account_count; i++) {
        const ration_account_rule *account = &rules->accounts[i];
        if (strcmp(account->provider, counter->provider) == 0)
            rules_visit(&d, account->limits, account->limit_count, counter->limit);
    }
    if (!d.found || d.by == 0)
        return false;
    *by = d.by;
    return true;
}
