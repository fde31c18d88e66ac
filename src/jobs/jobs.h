/* SPDX-License-Identifier: MIT */
#ifndef RN_JOBS_JOBS_H
#define RN_JOBS_JOBS_H

/*
 * The jobs of a config, what has been learned of them, and the plan: specification chapter 4. Knows configs, engines'
 * reports and the planner; no clock, no I/O. `ration plan`, `ration validate`, the gateway and the simulated day all go
 * through here.
 */

#include <ration/plan.h>

#include "config/config.h"
#include "core/decider.h"
#include "jobs/scope_name.h"
#include "trace/output.h"

typedef struct rn_jobs rn_jobs;

/* A job's interval has changed: `before_us` is RATION_UNSET in the first plan. */
typedef struct rn_job_change {
    const char *job;
    int64_t before_us, after_us;
    const char *limit; /* that binds; NULL: none, it runs as desired */
} rn_job_change;

/* Everything is borrowed for the life of the jobs. RATION_ERR_NOMEM. A config without jobs is fine. */
RATION_MUST_CHECK int rn_jobs_new(const ration_config *config, rn_jobs **out);
void rn_jobs_free(rn_jobs *jobs); /* NULL is fine */

size_t rn_jobs_count(const rn_jobs *jobs);
const rn_job *rn_jobs_at(const rn_jobs *jobs, size_t index); /* NULL past the end */
size_t rn_jobs_find(const rn_jobs *jobs, ration_text name);  /* SIZE_MAX: there is none */
/* The job's runs that are learned from, the oldest first. */
size_t rn_jobs_runs(const rn_jobs *jobs, size_t index, const ration_run **out);

/*
 * A run has ended. `fan_out` 0: not told. The next plan knows it. RATION_ERR_INVALID: `index`, or a number out of its
 * range. `*replan`: the inventory has changed, so a plan is due now (may be NULL).
 */
RATION_MUST_CHECK int rn_jobs_ran(rn_jobs *jobs, size_t index, const ration_run *run, bool *replan);

/* The inventory of a `fanOut.name` is so large; all jobs that name it have so many children. 0 is allowed: nothing to
 * do. RATION_ERR_UNKNOWN: no job names it. */
RATION_MUST_CHECK int rn_jobs_inventory(rn_jobs *jobs, ration_text name, int64_t children);

/*
 * Plan at `now`. `decider` NULL: every window begins at `now`, as long as the one that `now` is in, with nothing spent.
 * The tightest of the counters that are reported for a key that children leave open stands for each of theirs; keys
 * without a counter count as new.
 * `changed` (may be NULL) is told of every interval that is not as before. On an error the last plan stands.
 *
 * Errors  RATION_ERR_NOMEM; RATION_ERR_CONFIG with `*fault` filled.
 */
RATION_MUST_CHECK int rn_jobs_plan(rn_jobs *jobs, ration_time now, rn_decider *decider, void *ctx,
                                   void (*changed)(void *ctx, const rn_job_change *change), ration_fault *fault);

/* Is it the same job, of another config? Of one name, account, method and path. */
bool rn_jobs_are_same(const rn_jobs *a, size_t i, const rn_jobs *b, size_t k);
/* Of jobs of another config, as after a reload: take over what has been learned and planned of those that are the same.
 */
void rn_jobs_adopt(rn_jobs *jobs, const rn_jobs *from);

/* The last plan; NULL: there has been none. Its jobs are in the order of the config. */
const ration_plan *rn_jobs_planned(const rn_jobs *jobs);
/* What its scopes and rate limits are called; NULL past the end. */
const rn_scope_name *rn_jobs_scope(const rn_jobs *jobs, size_t scope);
const rn_scope_name *rn_jobs_rate(const rn_jobs *jobs, size_t rate);

/*
 * When a runner that asks at `now` should begin the job's next run: the last run's begin, or a multiple of the interval
 * from when the plan first had it, plus the effective interval; never before `now`.
 */
ration_time rn_jobs_next_run(const rn_jobs *jobs, size_t index, ration_time now);
/* A run begins: the gateway saw its first call, or a runner said so. */
void rn_jobs_begins(rn_jobs *jobs, size_t index, ration_time now);

/*
 * What of the last plan does not fit, in the order of the jobs: a scope at the job that uses most of it, a job that
 * takes longer than its interval at itself. `text` says what is wrong, `hint` what would have to change.
 * RATION_ERR_NOMEM.
 */
RATION_MUST_CHECK int rn_jobs_faults(const rn_jobs *jobs, void *ctx,
                                     void (*fault)(void *ctx, size_t index, const char *text, const char *hint));
/* The last plan as a table that a person can read, with what would have to change for it to fit. Appends to `out`. */
void rn_jobs_table(const rn_jobs *jobs, rn_output *out);
/* The plan, or one job of it, as JSON: the bodies of GET /v1/plan and /v1/plan/jobs/{name}, and of `plan --json`. */
void rn_jobs_json(const rn_jobs *jobs, ration_time now, rn_output *out);
void rn_job_json(const rn_jobs *jobs, size_t index, ration_time now, rn_output *out);

#endif
