/* SPDX-License-Identifier: MIT */
/*
 * A plan of the jobs: what is known of them now, asked of the planner.
 *
 * The planner's jobs are in the order of the config, so its faults name them as the file does. What has been learned
 * can never make a plan impossible: a number of requests that no plan could count is cut to the largest that one can.
 */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "jobs/parts.h"
#include "jobs/stand.h"

/* The most requests of one child, in millionths, with which a run can still be counted at all of its limits. */
static int64_t requests_max(const rn_job_state *state, int64_t children)
{
    int64_t charge = RATION_UNIT;

    for (size_t i = 0; i < state->scope_count; i++)
        charge = rn_max(charge, state->scopes[i].charge);
    for (size_t i = 0; i < state->rate_count; i++)
        charge = rn_max(charge, state->rates[i].charge);

    /* Twice as many with retries at most, and rounding. */
    return rn_max(RATION_UNITS_MAX / 4 / rn_max(children, 1) / rn_div_ceil(charge, RATION_UNIT), 1);
}

static int job_fill(const rn_jobs *jobs, const rn_job_state *state, ration_plan_job *out)
{
    const int64_t children = rn_job_children(state);

    *out = (ration_plan_job){
        .interval_us = state->job->interval_us,
        .priority = state->job->priority,
        .fan_out = rn_max(children, 1),
        .requests = state->job->pages_per_run,
        .retry_overhead = rn_config_settings(jobs->config)->retry_overhead,
    };
    if (children > 0) {
        out->scopes = state->scopes;
        out->scope_count = state->scope_count;
        out->rates = state->rates;
        out->rate_count = state->rate_count;
    }

    const int err = ration_job_learn(out, state->runs, state->run_count);

    if (state->run_count > 0)
        out->requests = rn_min(out->requests, requests_max(state, children));
    return err;
}

static int options_fill(const rn_jobs *jobs, rn_arena *work, ration_time now, ration_plan_options *out)
{
    const rn_plan_keys *keys = &jobs->keys;
    ration_plan_job *list = rn_arena_zalloc(work, jobs->count, sizeof *list);
    ration_plan_scope *scopes = rn_arena_zalloc(work, keys->scope_count, sizeof *scopes);
    ration_rate *rates = rn_arena_zalloc(work, keys->rate_count, sizeof *rates);
    int err = RATION_OK;

    if (list == NULL || scopes == NULL || rates == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < jobs->count && err == RATION_OK; i++)
        err = job_fill(jobs, &jobs->jobs[i], &list[i]);
    for (size_t i = 0; i < keys->scope_count; i++)
        scopes[i] = keys->scopes[i]->state;
    for (size_t i = 0; i < keys->rate_count; i++)
        rates[i] = keys->rates[i]->limit->rule->rate;
    *out = (ration_plan_options){.now = now,
                                 .jobs = list,
                                 .job_count = jobs->count,
                                 .scopes = scopes,
                                 .scope_count = keys->scope_count,
                                 .rates = rates,
                                 .rate_count = keys->rate_count,
                                 .max_stretch = rn_config_settings(jobs->config)->max_stretch,
                                 .allocator = jobs->mem};
    return err;
}

/* To the planner a job without children has one that uses nothing. */
int64_t rn_job_calls(const rn_jobs *jobs, size_t index)
{
    return rn_job_children(&jobs->jobs[index]) > 0 ? jobs->plan->jobs[index].calls : 0;
}

/* "jobs[3].scopes[0].charge" is "jobs[3]" to the user. */
static void fault_cut(ration_fault *fault)
{
    char *end = fault != NULL ? strchr(fault->path, ']') : NULL;

    if (end != NULL)
        end[1] = '\0';
}

static int fault_too_many(ration_fault *fault)
{
    rn_builder b;

    if (fault == NULL)
        return RATION_ERR_CONFIG;
    rn_builder_init(&b, fault->path, sizeof fault->path);
    rn_builder_str(&b, "jobs");
    rn_builder_init(&b, fault->text, sizeof fault->text);
    rn_builder_str(&b, "together they use quotas at more than 4000000 keys, one counted for each job");
    return RATION_ERR_CONFIG;
}

/* The limit that a job's interval comes from; NULL: none. */
static const char *limit_of(const rn_jobs *jobs, const ration_job_plan *job)
{
    if (job->scope != RATION_PLAN_NONE)
        return jobs->keys.scopes[job->scope]->name.limit;
    return job->rate != RATION_PLAN_NONE ? jobs->keys.rates[job->rate]->name.limit : NULL;
}

static void plan_take(rn_jobs *jobs, ration_plan *plan, void *ctx,
                      void (*changed)(void *ctx, const rn_job_change *change))
{
    ration_plan_free(jobs->plan);
    jobs->plan = plan;
    for (size_t i = 0; i < jobs->count; i++) {
        rn_job_state *state = &jobs->jobs[i];
        const rn_job_change change = {.job = state->job->name,
                                      .before_us = state->effective_us,
                                      .after_us = plan->jobs[i].effective_us,
                                      .limit = limit_of(jobs, &plan->jobs[i])};

        if (state->effective_us == RATION_UNSET)
            state->since = plan->made_at;
        state->effective_us = change.after_us;
        if (changed != NULL && change.before_us != change.after_us)
            changed(ctx, &change);
    }
}

/*
 * An engine that took over from another has its counters when somebody asks for them, and reports no others. Before the
 * first plan the jobs ask, of the keys that do not differ by child; nothing is taken.
 */
static int keys_wake(const rn_jobs *jobs, ration_time now, rn_decider *decider)
{
    int err = RATION_OK;

    for (size_t i = 0; i < jobs->count && err == RATION_OK; i++) {
        const rn_job *job = jobs->jobs[i].job;
        ration_request request = RATION_REQUEST_INIT;
        ration_decision decision;

        request.account = ration_text_of(rn_config_account(jobs->config, job->account)->name);
        request.method = ration_text_of(job->method);
        if (strchr(job->path, '{') == NULL) {
            request.path = ration_text_of(job->path);
        } else { /* as a path it would make a counter of its own for {name} */
            request.endpoint = ration_text_of(job->path);
            request.vars = job->vars;
            request.var_count = job->var_count;
        }
        request.tenant = ration_text_of(job->tenant);
        request.priority = job->priority;
        request.cost = job->cost;
        err = decider->ops->check(decider, now, &request, RATION_CHECK_ACQUIRE, &decision);
    }
    return err;
}

int rn_jobs_plan(rn_jobs *jobs, ration_time now, rn_decider *decider, void *ctx,
                 void (*changed)(void *ctx, const rn_job_change *change), ration_fault *fault)
{
    ration_plan_options options;
    ration_plan *plan = NULL;
    rn_arena work;

    if (jobs->too_many)
        return fault_too_many(fault);

    int err = decider != NULL && jobs->plan == NULL ? keys_wake(jobs, now, decider) : RATION_OK;

    if (err == RATION_OK)
        err = rn_plan_keys_stand(&jobs->keys, now, decider);
    rn_arena_init(&work, jobs->mem);
    if (err == RATION_OK)
        err = options_fill(jobs, &work, now, &options);
    if (err == RATION_OK)
        err = ration_plan_new(&options, &plan, fault);
    rn_arena_fini(&work);
    if (err == RATION_ERR_CONFIG)
        fault_cut(fault);
    if (err == RATION_OK)
        plan_take(jobs, plan, ctx, changed);
    return err;
}
