/* SPDX-License-Identifier: MIT */
#ifndef RATION_PLAN_H
#define RATION_PLAN_H

/*
 * How often each job may run so that together they keep within every quota, and how a quota will fare at its present
 * pace. Specification chapter 4; chapter 3, "Timeline and projections".
 *
 * Pure functions of plain data: no clock, no I/O, no floating point. Jobs, scopes and rate limits are named by their
 * place in the arrays given, everything in them is borrowed for the call. Amounts are in micro-units, spans and
 * instants in microseconds. Zeroed members mean the default named beside them.
 */

#include <ration/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/** "No scope", "no rate limit". */
#define RATION_PLAN_NONE SIZE_MAX
/** Intervals are at least this long, and those that are stretched are multiples of it. */
#define RATION_PLAN_STEP_US INT64_C(1000)
/** The most jobs, scopes and rate limits, each, and the most uses of all jobs together. */
#define RATION_PLAN_COUNT_MAX 1000000
#define RATION_PLAN_USES_MAX 4000000
/** The most by which a plan may be told to stretch. */
#define RATION_PLAN_STRETCH_MAX 1000

/** A quota limit at one scope key, as it stands. Chapter 3 has the letters. */
typedef struct ration_plan_scope {
    int64_t usable;    /* U */
    int64_t reserve;   /* R: left for retries and critical requests, never planned with */
    int64_t spent;     /* c: our own use in the window */
    bool has_left;     /* the provider has said what is left */
    int64_t left;      /* r_obs, brought up to now */
    int64_t external;  /* what others have spent in the window; a rolling one does not look at it */
    ration_time start; /* of the calendar window; start <= now <= end */
    ration_time end;
    int64_t rolling_us; /* the length of a rolling window; 0: it is a calendar window */
    ration_timeline
        timeline; /* for projections; for plans it tells when a rolling window gets back what it has spent */
} ration_plan_scope;

/** What the calls of a job use of one scope or one rate limit. */
typedef struct ration_plan_use {
    size_t limit;     /* its place in `scopes` or `rates` */
    int64_t charge;   /* of one call; 0: one unit */
    int64_t children; /* so many of the job's children call here; 0: all */
} ration_plan_use;

/** A job. The calls of a run are `requests` times `fan_out`, and retries on top. */
typedef struct ration_plan_job {
    int64_t interval_us; /* as desired; at least RATION_PLAN_STEP_US */
    ration_priority priority;
    int64_t fan_out;               /* children that each run; 0: one. A job with nothing to do has no uses */
    int64_t requests;              /* of one child's run, in millionths; 0: one request */
    ration_ratio retry_overhead;   /* retries to requests, may be above 1; den 0: 5 % */
    const ration_plan_use *scopes; /* a scope may occur twice, with different charges */
    size_t scope_count;
    const ration_plan_use *rates;
    size_t rate_count;
} ration_plan_job;

typedef struct ration_plan_options {
    ration_time now;
    const ration_plan_job *jobs;
    size_t job_count;
    const ration_plan_scope *scopes;
    size_t scope_count;
    const ration_rate *rates; /* of rate limits */
    size_t rate_count;
    int64_t max_stretch;               /* 0: 12 */
    const ration_allocator *allocator; /* NULL: the C library's */
} ration_plan_options;

/** One job's part in one of its scopes. */
typedef struct ration_use_plan {
    size_t scope;
    int64_t per_window; /* projected use in a whole window */
    int64_t projected;  /* projected use within the scope's `horizon_us` */
} ration_use_plan;

/** What has been planned for a job. */
typedef struct ration_job_plan {
    int64_t desired_us;
    int64_t effective_us;
    int64_t stretch;  /* effective / desired in millionths, rounded up */
    int64_t calls;    /* of a run, with children and retries, in millionths */
    size_t scope;     /* whose budget the interval comes from; RATION_PLAN_NONE: no quota's */
    size_t rate;      /* whose rate the interval comes from; RATION_PLAN_NONE: no rate limit's */
    bool feasible;    /* false: critical, and a run does not fit into the interval at one of its rates */
    int64_t least_us; /* the shortest interval into which a run fits at all of its rates; 0: none of them apply */
    const ration_use_plan *uses; /* in the order of its `scopes` */
    size_t use_count;
} ration_job_plan;

/** What has been planned for a scope. */
typedef struct ration_scope_plan {
    int64_t budget;     /* what jobs may use within the horizon; at least 0 */
    int64_t horizon_us; /* to the window's end; of a rolling window, to where the budget is tightest */
    int64_t others;     /* what others are projected to use by then */
    int64_t wanted;     /* what jobs would use at their desired intervals, or the shortest that their rates allow */
    int64_t critical;   /* of that, by critical jobs */
    int64_t projected;  /* what they use as planned */
    bool feasible; /* projected <= budget; else all of its jobs but the critical ones are stretched to the utmost */
    ration_time exhausted_at; /* RATION_NEVER_US: not within the horizon */
} ration_scope_plan;

typedef struct ration_plan {
    bool feasible; /* every scope and every job is */
    ration_time made_at;
    const ration_job_plan *jobs; /* in the order given */
    size_t job_count;
    const ration_scope_plan *scopes; /* in the order given */
    size_t scope_count;
} ration_plan;

/**
 * Plan: the effective interval of every job.
 *
 * Where all that is wanted of a scope fits its budget, min(U - c, left) - R - what others will use, intervals stay as
 * desired. Else jobs are stretched: the lowest class first, all of its jobs in the scope by one factor, the smallest
 * that will do and at most `max_stretch`; then the next class. A job in several scopes takes the largest factor, and
 * what that leaves elsewhere goes to the highest class first. Critical jobs are never stretched. A run must fit into
 * its interval at each of its rates. A plan that is not feasible is a plan all the same: the best there is.
 *
 * Units      Intervals that are stretched round up to the millisecond, what is reported of uses to the micro-unit.
 * Ownership  `*out` and all it points to is the caller's, freed with `ration_plan_free`.
 * Errors     RATION_ERR_CONFIG with `*fault` (may be NULL) naming the first bad member, such as
 *            "jobs[3].scopes[0].limit"; RATION_ERR_INVALID for a missing pointer; RATION_ERR_NOMEM. `*out` is
 *            untouched on error.
 * Cost       Some fifty sums over all uses; a scope is gone through again when its turn comes and others have taken
 *            jobs from it since. 10 000 jobs in 1000 scopes: tens of milliseconds.
 */
RATION_API RATION_MUST_CHECK int ration_plan_new(const ration_plan_options *options, ration_plan **out,
                                                 ration_fault *fault);

/** Free a plan. NULL is fine. */
RATION_API void ration_plan_free(ration_plan *plan);

/** What follows from one pace. */
typedef struct ration_forecast {
    int64_t units;   /* the pace: so much ... */
    int64_t span_us; /* ... in so long; 0: not known, and then nothing is forecast */
    int64_t at_end;  /* our own use when the calendar window ends; of a rolling window, the use of a whole window */
    ration_time exhausted_at; /* when U - R will have been spent, or nothing is left; RATION_NEVER_US: not in sight */
} ration_forecast;

typedef struct ration_projection {
    ration_forecast recent;  /* by the last 15 minutes, or as many of them as the timeline covers */
    ration_forecast average; /* since the window began; of a rolling window, by the last window's length */
} ration_projection;

/**
 * How a scope will fare if things go on as they do.
 *
 * A timeline's bucket that a span cuts counts in proportion; one that `now` is in has been filled up to `now`. The
 * timeline may begin before the window. In a calendar window others go on as in a plan; in a rolling one, what was
 * spent comes back as it leaves the window.
 *
 * Errors     RATION_ERR_CONFIG with `*fault` (may be NULL), RATION_ERR_INVALID; `*out` is then untouched.
 * Cost       Linear in the timeline, no allocation.
 */
RATION_API RATION_MUST_CHECK int ration_scope_project(const ration_plan_scope *scope, ration_time now,
                                                      ration_projection *out, ration_fault *fault);

/** One run of a job, as reported or counted. */
typedef struct ration_run {
    int64_t requests; /* first tries, of all children */
    int64_t retries;  /* on top of them */
    int64_t fan_out;  /* 0: one child */
} ration_run;

/** How many of the last runs are looked at. */
#define RATION_RUNS_MAX 20

/**
 * Learn a job's `requests` (the median of its runs, of one child) and `retry_overhead` (all retries to all requests, at
 * most 1) from its last RATION_RUNS_MAX runs, the newest last. What they do not tell is left as it is: with no
 * run, both; with no request, the overhead. A median of 0 stands for one request, as a job's `requests` do.
 *
 * Errors     RATION_ERR_INVALID: a missing pointer, a negative number, or more than RATION_UNITS_MAX millionths;
 *            nothing is then changed.
 */
RATION_API RATION_MUST_CHECK int ration_job_learn(ration_plan_job *job, const ration_run *runs, size_t count);

#ifdef __cplusplus
}
#endif

#endif
