/* SPDX-License-Identifier: MIT */
/*
 * The plan as JSON: chapter 9's names, milliseconds and instants.
 *
 * A member that means nothing is left out: `boundBy` of a job that runs as desired, `exhaustedAt` of a scope that
 * lasts.
 */
#include "jobs/parts.h"

const char *rn_priority_name(ration_priority priority)
{
    switch (priority) {
    case RATION_PRIORITY_CRITICAL:
        return "critical";
    case RATION_PRIORITY_HIGH:
        return "high";
    case RATION_PRIORITY_LOW:
        return "low";
    case RATION_PRIORITY_UNSET:
    case RATION_PRIORITY_NORMAL:
        break;
    }
    return "normal";
}

static void names_write(rn_output *out, const rn_scope_name *name)
{
    rn_output_str(out, "provider", name->provider);
    rn_output_str(out, "limit", name->limit);
    rn_output_str(out, "key", name->key);
}

static void uses_write(const rn_jobs *jobs, const ration_job_plan *plan, rn_output *out)
{
    rn_output_open(out, "scopes", '[');
    for (size_t i = 0; i < plan->use_count; i++) {
        const ration_use_plan *use = &plan->uses[i];

        rn_output_open(out, NULL, '{');
        names_write(out, rn_jobs_scope(jobs, use->scope));
        rn_output_micro(out, "perWindow", use->per_window);
        rn_output_micro(out, "projected", use->projected);
        rn_output_close(out, '}');
    }
    rn_output_close(out, ']');
}

/* What of a job the plan says. */
static void planned_write(const rn_jobs *jobs, size_t index, rn_output *out)
{
    const ration_job_plan *plan = &jobs->plan->jobs[index];
    const rn_scope_name *name = plan->scope != RATION_PLAN_NONE  ? rn_jobs_scope(jobs, plan->scope)
                                : plan->rate != RATION_PLAN_NONE ? rn_jobs_rate(jobs, plan->rate)
                                                                 : NULL;

    rn_output_ms(out, "effectiveMs", plan->effective_us);
    rn_output_micro(out, "stretch", plan->stretch);
    rn_output_micro(out, "calls", rn_job_calls(jobs, index));
    if (plan->least_us > 0)
        rn_output_ms(out, "leastMs", plan->least_us);
    rn_output_bool(out, "feasible", plan->feasible);
    if (name != NULL) {
        rn_output_open(out, "boundBy", '{');
        names_write(out, name);
        rn_output_close(out, '}');
    }
    uses_write(jobs, plan, out);
}

void rn_job_json(const rn_jobs *jobs, size_t index, ration_time now, rn_output *out)
{
    const rn_job_state *state = &jobs->jobs[index];
    const rn_job *job = state->job;

    rn_output_open(out, NULL, '{');
    rn_output_str(out, "name", job->name);
    rn_output_str(out, "account", rn_config_account(jobs->config, job->account)->name);
    rn_output_str(out, "priority", rn_priority_name(job->priority));
    rn_output_ms(out, "desiredMs", job->interval_us);
    if (state->inventory != NULL)
        rn_output_int(out, "fanOut", rn_job_children(state));
    if (jobs->plan != NULL)
        planned_write(jobs, index, out);
    rn_output_ms(out, "nextRunAt", rn_jobs_next_run(jobs, index, now).us);
    rn_output_close(out, '}');
}

static void scope_write(const rn_plan_key *key, const ration_scope_plan *plan, rn_output *out)
{
    rn_output_open(out, NULL, '{');
    names_write(out, &key->name);
    rn_output_micro(out, "usable", key->state.usable);
    rn_output_micro(out, "reserve", key->state.reserve);
    rn_output_micro(out, "used", key->state.spent);
    rn_output_micro(out, "budget", plan->budget);
    rn_output_ms(out, "horizonMs", plan->horizon_us);
    rn_output_micro(out, "others", plan->others);
    rn_output_micro(out, "wanted", plan->wanted);
    rn_output_micro(out, "critical", plan->critical);
    rn_output_micro(out, "projected", plan->projected);
    rn_output_bool(out, "feasible", plan->feasible);
    if (plan->exhausted_at.us != RATION_NEVER_US)
        rn_output_ms(out, "exhaustedAt", plan->exhausted_at.us);
    rn_output_close(out, '}');
}

void rn_jobs_json(const rn_jobs *jobs, ration_time now, rn_output *out)
{
    const ration_plan *plan = jobs->plan;

    rn_output_open(out, NULL, '{');
    if (plan != NULL) {
        rn_output_ms(out, "madeAt", plan->made_at.us);
        rn_output_bool(out, "feasible", plan->feasible);
    }
    rn_output_open(out, "jobs", '[');
    for (size_t i = 0; i < jobs->count; i++)
        rn_job_json(jobs, i, now, out);
    rn_output_close(out, ']');
    rn_output_open(out, "scopes", '[');
    for (size_t i = 0; plan != NULL && i < plan->scope_count; i++)
        scope_write(jobs->keys.scopes[i], &plan->scopes[i], out);
    rn_output_close(out, ']');
    rn_output_close(out, '}');
}
