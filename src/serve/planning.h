/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_PLANNING_H
#define RN_SERVE_PLANNING_H

#include "jobs/jobs.h"
#include "net/loop.h"
#include "serve/log.h"

/*
 * The jobs of a running gateway: what their requests tell of runs, and the plan, kept up to date. Chapter 4.
 *
 * It plans at the start, every `settings.budget.replanInterval`, and within a second when an inventory or a quota's
 * maximum has changed.
 */
typedef struct rn_planning rn_planning;
struct rn_gateway;

/* All but the callback is needed. Borrowed for the planning's life. */
typedef struct rn_planning_options {
    rn_loop *loop;
    rn_decider *decider;
    const ration_config *config;
    const rn_log *log;
    void *ctx;
    /* A run is known that the next process should know too: see rn_planning_restore. Must not call the planning. */
    void (*ran)(void *ctx, ration_time begun, ration_text job, const ration_run *run);
} rn_planning_options;

/* Since the start. */
typedef struct rn_planning_counts {
    uint64_t jobs;
    uint64_t feasible; /* 1: the last plan is; also without jobs */
    uint64_t plans;
    uint64_t faults;  /* no plan could be made: the one before stands */
    uint64_t changes; /* of intervals, after the first plan */
    uint64_t counted; /* runs that requests told of */
    uint64_t cut;     /* of those that were not learned from, since a request was not sent */
    uint64_t reported;
} rn_planning_counts;

/* RATION_ERR_NOMEM. Nothing is planned yet. */
RATION_MUST_CHECK int rn_planning_new(const rn_planning_options *options, rn_planning **out);
/* After the gateway whose requests it counts. NULL is fine. */
void rn_planning_free(rn_planning *planning);
/* A run that a process before this one knew of; the oldest first, before the start. RATION_ERR_UNKNOWN: the job is no
 * more; RATION_ERR_INVALID: no such run. */
int rn_planning_restore(rn_planning *planning, ration_text job, ration_time begun, const ration_run *run);
/* The first plan, and all that follow. The gateway hears of the decider's events. */
void rn_planning_start(rn_planning *planning, struct rn_gateway *gateway);

/*
 * Other rules, in two steps: what can fail, and what cannot. `heirs` has for each present job the index of the one
 * that is the same, or SIZE_MAX. RATION_ERR_NOMEM: nothing changed.
 */
typedef struct rn_planning_next {
    const ration_config *config;
    rn_jobs *jobs;
    struct rn_planning_meter *meters;
    size_t *heirs;
} rn_planning_next;

RATION_MUST_CHECK int rn_planning_prepare(const rn_planning *planning, const ration_config *config,
                                          rn_planning_next *out);
/* What has been learned of jobs that are the same goes on, and so do runs under way; then it plans. Takes `*next`. */
void rn_planning_adopt(rn_planning *planning, rn_planning_next *next);
/* Instead of the second step. A zeroed one is fine. */
void rn_planning_forget(rn_planning_next *next);

const rn_jobs *rn_planning_jobs(const rn_planning *planning);
const rn_planning_counts *rn_planning_look(const rn_planning *planning);
/* The name of the job that is nearest to a wrong one, for messages; NULL: none is near. */
const char *rn_planning_nearest(const rn_planning *planning, ration_text name);
/* The status' member "plan"; nothing where there are no jobs. */
void rn_planning_write(const rn_planning *planning, rn_output *out);

/* ---- runs. `job` is an index of rn_planning_jobs. */

/*
 * A run was reported that began `took_us` ago. `children` RATION_UNSET: not told; 0: there was nothing to do, and of
 * the run nothing is learned. RATION_ERR_INVALID: a number beyond what is counted, or no children of a job that has
 * none.
 */
RATION_MUST_CHECK int rn_planning_reported(rn_planning *planning, size_t job, const ration_run *run, int64_t children,
                                           int64_t took_us);
/* A request of the job comes; is sent, first or as a retry; is over. */
void rn_planning_arrives(rn_planning *planning, size_t job);
void rn_planning_sent(rn_planning *planning, size_t job, bool retry);
void rn_planning_leaves(rn_planning *planning, size_t job, bool sent);

#endif
