/* SPDX-License-Identifier: MIT */
/*
 * What of a plan does not fit, each at the job where one would look for it: a quota at the job that uses most of it (of
 * equal ones the first), a run that takes longer than its interval at itself.
 */
#include "base/mem.h"
#include "jobs/parts.h"

#define TEXT_SIZE 1024
#define HINT_SIZE 3072

/* The job that uses most of a scope. */
typedef struct heaviest {
    size_t job;
    int64_t units;
} heaviest;

static heaviest *heaviest_find(const rn_jobs *jobs)
{
    heaviest *found = rn_mem_zalloc(jobs->mem, jobs->plan->scope_count, sizeof *found);

    for (size_t i = 0; found != NULL && i < jobs->count; i++) {
        const ration_job_plan *job = &jobs->plan->jobs[i];

        for (size_t k = 0; k < job->use_count; k++) {
            heaviest *best = &found[job->uses[k].scope];

            if (job->uses[k].projected > best->units)
                *best = (heaviest){i, job->uses[k].projected};
        }
    }
    return found;
}

static void scope_text(const rn_jobs *jobs, size_t scope, rn_builder *b)
{
    const ration_scope_plan *plan = &jobs->plan->scopes[scope];
    const rn_scope_name *name = rn_jobs_scope(jobs, scope);

    rn_builder_str(b, "the plan does not fit: ");
    rn_builder_str(b, name->limit);
    rn_builder_str(b, " (");
    rn_builder_str(b, name->key);
    rn_builder_str(b, ") has ");
    rn_builder_micro(b, plan->budget);
    rn_builder_str(b, " for jobs in ");
    rn_builder_span(b, plan->horizon_us);
    rn_builder_str(b, " and they use ");
    rn_builder_micro(b, plan->projected);
    rn_builder_str(b, ", stretched to the utmost");
    if (plan->critical > 0) {
        rn_builder_str(b, "; critical ones, which never are, ");
        rn_builder_micro(b, plan->critical);
    }
}

static void run_text(const ration_job_plan *plan, rn_builder *b)
{
    rn_builder_str(b, "the plan does not fit: a run takes ");
    rn_builder_span(b, plan->least_us);
    rn_builder_str(b, ", and its interval is ");
    rn_builder_span(b, plan->effective_us);
}

int rn_jobs_faults(const rn_jobs *jobs, void *ctx,
                   void (*fault)(void *ctx, size_t index, const char *text, const char *hint))
{
    char text[TEXT_SIZE], hint[HINT_SIZE];

    if (jobs->plan == NULL || jobs->plan->feasible)
        return RATION_OK;

    heaviest *found = heaviest_find(jobs);

    if (found == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < jobs->count; i++) {
        const ration_job_plan *job = &jobs->plan->jobs[i];
        rn_builder b, h;

        rn_builder_init(&h, hint, sizeof hint);
        (void)rn_job_remedy(jobs, i, &h);
        for (size_t k = 0; k < job->use_count; k++) {
            const size_t scope = job->uses[k].scope;

            if (jobs->plan->scopes[scope].feasible || found[scope].job != i)
                continue;
            rn_builder_init(&b, text, sizeof text);
            scope_text(jobs, scope, &b);
            fault(ctx, i, text, hint);
        }
        if (!job->feasible) {
            rn_builder_init(&b, text, sizeof text);
            run_text(job, &b);
            fault(ctx, i, text, hint);
        }
    }
    rn_mem_free(jobs->mem, found);
    return RATION_OK;
}
