/* SPDX-License-Identifier: MIT */
/*
 * What would have to change for a job to run as desired, or for a plan to fit at all.
 *
 * Two things can: a limit, or the job's interval. A quota that is short is looked for by halving, with the very
 * functions that say what may be spent of it: so share, reserve, what has been spent, what others take and what comes
 * back in a rolling window are all in it. It is enough for all jobs of the scope as they wish, or as they are planned
 * if this one is not stretched. The interval is the planned one; where not even that fits, the one with which the job
 * leaves to the others what they use.
 */
#include "base/units.h"
#include "core/quota_budget.h"
#include "jobs/parts.h"
#include "plan/budget.h"

#define NAMED_MAX 3 /* limits that are named; of more only the number is told */
#define PARTS_SIZE 2048

void rn_builder_span(rn_builder *b, int64_t us)
{
    static const struct {
        int64_t us;
        char name;
    } units[] = {{INT64_C(86400000000), 'd'}, {INT64_C(3600000000), 'h'}, {60000000, 'm'}};
    const int64_t ms = rn_div_ceil(us, 1000);

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (us % units[i].us == 0 && us / units[i].us > 1) {
            rn_builder_int(b, us / units[i].us);
            rn_builder_char(b, units[i].name);
            return;
        }
    }
    if (ms < 1000) {
        rn_builder_int(b, ms);
        rn_builder_str(b, "ms");
    } else {
        rn_builder_ms(b, ms);
        rn_builder_char(b, 's');
    }
}

/* Can `units` within `horizon_us` be had with a quota of `max`? Every span in which it may be tight is looked at. */
static bool is_enough(const rn_jobs *jobs, const rn_plan_key *key, int64_t max, int64_t units, int64_t horizon_us)
{
    const rn_quota_budget budget =
        rn_quota_budget_of(key->limit->rule, max, key->learns, key->share, rn_plan_keys_reserve(&jobs->keys));
    ration_plan_scope state = key->state;

    state.left = rn_add(state.left, budget.usable - state.usable);
    state.usable = budget.usable;
    state.reserve = budget.reserve;

    const rn_budget had = rn_scope_budget(&state, jobs->plan->made_at);
    const int64_t own = rn_max(0, rn_sub(had.own, had.others));

    return (rn_wide)(uint64_t)units * (uint64_t)had.horizon_us <= (rn_wide)(uint64_t)own * (uint64_t)horizon_us;
}

int64_t rn_scope_enough(const rn_jobs *jobs, size_t scope, int64_t units)
{
    const rn_plan_key *key = jobs->keys.scopes[scope];
    const int64_t horizon_us = jobs->plan->scopes[scope].horizon_us;
    int64_t low = key->max / RATION_UNIT; /* not enough, in whole units */
    int64_t high = RATION_UNITS_MAX / RATION_UNIT;

    if (!is_enough(jobs, key, high * RATION_UNIT, units, horizon_us))
        return RATION_UNSET;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;

        if (is_enough(jobs, key, middle * RATION_UNIT, units, horizon_us)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return high * RATION_UNIT;
}

/* "a, b and 7 more": the parts of a list as they come, of which only the first are written. */
typedef struct part_list {
    rn_builder *b;
    size_t count;
    bool hopeless; /* one of them cannot be had */
} part_list;

static bool part_begin(part_list *list)
{
    list->count++;
    if (list->count > NAMED_MAX)
        return false;
    rn_builder_str(list->b, list->count > 1 ? " and " : "");
    return true;
}

static void name_write(rn_builder *b, const rn_scope_name *name)
{
    rn_builder_str(b, name->limit);
    rn_builder_str(b, " (");
    rn_builder_str(b, name->key);
    rn_builder_str(b, ") is ");
}

/* Quotas of the job that are too small for what is wished, or for what is planned. */
static void quotas_write(const rn_jobs *jobs, const ration_job_plan *job, part_list *list)
{
    const bool stretched = job->effective_us > job->desired_us;

    for (size_t i = 0; i < job->use_count; i++) {
        const size_t place = job->uses[i].scope;
        const ration_scope_plan *scope = &jobs->plan->scopes[place];
        const int64_t units = stretched ? scope->wanted : scope->projected;

        if (units <= scope->budget)
            continue;

        const int64_t enough = rn_scope_enough(jobs, place, units);

        list->hopeless = list->hopeless || enough == RATION_UNSET;
        if (enough != RATION_UNSET && part_begin(list)) {
            name_write(list->b, rn_jobs_scope(jobs, place));
            rn_builder_micro(list->b, enough);
        }
    }
}

/* "1.5/s", "100/15m" */
static void rate_write(rn_builder *b, int64_t units, int64_t per_us)
{
    rn_builder_micro(b, units);
    rn_builder_char(b, '/');
    if (per_us == RATION_UNIT || per_us == 60 * RATION_UNIT || per_us == 3600 * RATION_UNIT) {
        rn_builder_str(b, per_us == RATION_UNIT ? "s" : per_us == 60 * RATION_UNIT ? "m" : "h");
    } else {
        rn_builder_span(b, per_us);
    }
}

/* Rates at which a run takes longer than the job's interval as desired. */
static void rates_write(const rn_jobs *jobs, size_t index, part_list *list)
{
    const ration_job_plan *job = &jobs->plan->jobs[index];
    const rn_job_state *state = &jobs->jobs[index];
    const int64_t children = rn_max(rn_job_children(state), 1);

    for (size_t i = 0; i < state->rate_count && job->least_us > job->desired_us; i++) {
        const ration_plan_use *use = &state->rates[i];
        const ration_rate rate = jobs->keys.rates[use->limit]->limit->rule->rate;
        const int64_t calls = use->children == 1 ? rn_div_ceil(job->calls, children) : job->calls;
        const rn_wide amount = rn_wide_div_ceil((rn_wide)(uint64_t)calls * (uint64_t)use->charge, RATION_UNIT);
        const rn_wide needed = rn_wide_div_ceil(amount * (uint64_t)rate.per_us, (uint64_t)job->desired_us);

        if (needed <= (uint64_t)rate.units || !part_begin(list))
            continue;
        name_write(list->b, rn_jobs_rate(jobs, use->limit));
        rate_write(list->b, rn_wide_int(needed), rate.per_us);
    }
}

/* The interval with which the job would fit while all others stay as planned; RATION_UNSET: there is none. */
static int64_t interval_of(const rn_jobs *jobs, const ration_job_plan *job)
{
    int64_t interval_us = rn_max(job->effective_us, job->least_us);

    for (size_t i = 0; i < job->use_count; i++) {
        const ration_use_plan *use = &job->uses[i];
        const ration_scope_plan *scope = &jobs->plan->scopes[use->scope];
        const int64_t room = rn_sub(scope->budget, rn_sub(scope->projected, use->projected));

        if (scope->feasible)
            continue;
        if (room <= 0)
            return RATION_UNSET;

        const rn_wide us =
            rn_wide_div_ceil((rn_wide)(uint64_t)use->projected * (uint64_t)job->effective_us, (uint64_t)room);

        interval_us = rn_max(interval_us, rn_wide_int(us));
    }
    return interval_us > RATION_TIME_MAX_US ? RATION_UNSET : interval_us;
}

static bool is_short(const rn_jobs *jobs, const ration_job_plan *job)
{
    bool fits = job->feasible && job->effective_us == job->desired_us;

    for (size_t i = 0; i < job->use_count && fits; i++)
        fits = jobs->plan->scopes[job->uses[i].scope].feasible;
    return !fits;
}

bool rn_job_remedy(const rn_jobs *jobs, size_t index, rn_builder *b)
{
    const ration_job_plan *job = &jobs->plan->jobs[index];
    const int64_t interval_us = interval_of(jobs, job);
    char text[PARTS_SIZE];
    rn_builder parts;
    part_list list = {.b = &parts};

    if (!is_short(jobs, job))
        return false;
    rn_builder_init(&parts, text, sizeof text);
    quotas_write(jobs, job, &list);
    rates_write(jobs, index, &list);

    const bool limits = list.count > 0 && !list.hopeless;

    rn_builder_str(b, jobs->jobs[index].job->name);
    rn_builder_str(b, " at ");
    rn_builder_span(b, job->desired_us);
    rn_builder_str(b, limits || interval_us != RATION_UNSET ? " fits when " : " cannot be made to fit");
    rn_builder_str(b, limits ? text : "");
    if (limits && list.count > NAMED_MAX) {
        rn_builder_str(b, " and ");
        rn_builder_int(b, (int64_t)(list.count - NAMED_MAX));
        rn_builder_str(b, " more are larger");
    }
    if (interval_us != RATION_UNSET) {
        rn_builder_str(b, limits ? " or the interval is " : "the interval is ");
        rn_builder_span(b, interval_us);
    }
    return true;
}
