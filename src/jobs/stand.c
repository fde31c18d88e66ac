/* SPDX-License-Identifier: MIT */
/*
 * How the quotas of a plan stand at an instant.
 *
 * A key for which there are counters stands as the tightest of them: the one that allows the slowest pace. It stands
 * for many where children have keys of their own, and a plan that fits the tightest fits all. A key without a counter
 * has nothing spent yet, of the maximum of the rule; without a decider it has a whole window before it too, so that a
 * plan of the config alone does not depend on the time of day.
 *
 * What the decider reports as remaining has in it all that a provider has said, what is carried over a window's end
 * and what a 429 has exhausted. It is never below 0; a debt shows in what is used.
 */
#include "jobs/stand.h"

#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "core/quota_budget.h"
#include "plan/budget.h"

typedef struct standing {
    rn_plan_keys *keys;
    ration_time now;
    const char *provider, *limit; /* of the report before, by address, and their group */
    const rn_plan_group *group;
    bool nomem;
} standing;

static void stand_fresh(rn_plan_key *key, ration_time now, ration_ratio reserve, bool begins)
{
    const ration_limit_rule *rule = key->limit->rule;
    const rn_quota_budget budget = rn_quota_budget_fresh(rule, key->share, reserve);
    ration_plan_scope *state = &key->state;

    *state = (ration_plan_scope){.usable = budget.usable, .reserve = budget.reserve};
    key->max = rule->max;
    key->learns = rule->max_auto;
    key->counted = false;
    if (!rn_quota_window_at(rule, key->limit->zone, now, &state->start, &state->end))
        state->rolling_us = rule->window.rolling_us;
    if (begins && state->rolling_us == 0) {
        state->end = rn_time_add(now, state->end.us - state->start.us);
        state->start = now;
    }
}

/* `now` may lie before the decider's, whose clock never goes back: then its window has just begun. */
static ration_plan_scope state_of(const ration_counter_report *report, ration_time now)
{
    ration_plan_scope state = {
        .usable = rn_min(report->usable, RATION_UNITS_MAX),
        .spent = rn_max(report->used, 0),
        .has_left = true,
        .left = report->remaining,
        .external = rn_max(report->external, 0),
    };

    state.reserve = rn_min(report->reserve, state.usable);
    if (report->has_window) {
        state.start = rn_time_min(report->window_start, now);
        state.end = report->window_end;
    } else {
        state.rolling_us = report->rolling_us;
        state.timeline = report->timeline;
    }
    return state;
}

/* Does `a` allow less in the same time? */
static bool is_tighter(const ration_plan_scope *a, const ration_plan_scope *b, ration_time now)
{
    const rn_budget x = rn_scope_budget(a, now);
    const rn_budget y = rn_scope_budget(b, now);
    const int64_t own_x = rn_max(0, rn_sub(x.own, x.others));
    const int64_t own_y = rn_max(0, rn_sub(y.own, y.others));

    return (rn_wide)(uint64_t)own_x * (uint64_t)y.horizon_us < (rn_wide)(uint64_t)own_y * (uint64_t)x.horizon_us;
}

/* The report's timeline is gone after the callback. */
static bool timeline_keep(const rn_plan_keys *keys, rn_plan_key *key)
{
    ration_timeline *timeline = &key->state.timeline;

    if (timeline->count > key->unit_room) {
        int64_t *units = rn_mem_resize(keys->mem, key->units, timeline->count, sizeof *units);

        if (units == NULL)
            return false;
        key->units = units;
        key->unit_room = timeline->count;
    }
    if (timeline->count > 0)
        memcpy(key->units, timeline->units, timeline->count * sizeof *key->units);
    timeline->units = key->units;
    return true;
}

static void stand_counter(void *ctx, const ration_counter_report *report)
{
    standing *s = ctx;
    const rn_open *open = NULL;
    rn_plan_key *key;

    if (report->kind != RATION_KIND_QUOTA)
        return;
    if (report->provider != s->provider || report->limit != s->limit) {
        s->group = rn_plan_group_of(s->keys, ration_text_of(report->provider), report->limit);
        s->provider = report->provider;
        s->limit = report->limit;
    }
    if (s->group == NULL)
        return;

    const ration_plan_scope state = state_of(report, s->now);
    const char *member = NULL;

    if (rn_scope_fault(&state, s->now, &member) != NULL)
        return;
    while ((key = rn_plan_keys_next(s->keys, s->group, report->key, &open)) != NULL) {
        if (key->counted && !is_tighter(&state, &key->state, s->now))
            continue;
        key->state = state;
        key->max = report->max;
        key->learns = key->limit->rule->max_auto || report->max != key->limit->rule->max;
        key->counted = true;
        if (!timeline_keep(s->keys, key)) {
            key->state.timeline.count = 0;
            s->nomem = true;
        }
    }
}

int rn_plan_keys_stand(rn_plan_keys *keys, ration_time now, rn_decider *decider)
{
    standing s = {.keys = keys, .now = now};
    const ration_reporter reporter = {
        .ctx = &s, .kinds = 1U << RATION_KIND_QUOTA, .timelines = true, .counter = stand_counter};

    for (size_t i = 0; i < keys->scope_count; i++)
        stand_fresh(keys->scopes[i], now, rn_plan_keys_reserve(keys), decider == NULL);
    if (decider == NULL || keys->scope_count == 0)
        return RATION_OK;

    const int err = decider->ops->report(decider, now, RATION_REPORT_LIMITS, &reporter);

    if (err != RATION_OK)
        return err;
    return s.nomem ? RATION_ERR_NOMEM : RATION_OK;
}
