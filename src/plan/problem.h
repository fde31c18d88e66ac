/* SPDX-License-Identifier: MIT */
#ifndef RN_PLAN_PROBLEM_H
#define RN_PLAN_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/plan.h>

#include "base/arena.h"
#include "base/heap.h"
#include "plan/budget.h"

/* The planner's input, checked and laid out for it. */

/* Classes from the highest, which is never stretched. */
#define RN_CLASS_CRITICAL 0
#define RN_CLASSES 4
#define RN_NONE UINT32_MAX

typedef struct rn_plan_job {
    int64_t desired_us;
    int64_t fits_us;  /* the shortest interval into which a run fits at all rates; 0: none applies */
    int64_t least_us; /* the shortest that the plan may give it; a critical job's only one */
    int64_t effective_us;
    int64_t calls;      /* of a run, in millionths */
    uint32_t first_use; /* in `uses` of the problem, in the order given */
    uint32_t use_count;
    uint32_t rate;  /* the one that `fits_us` comes from */
    uint32_t scope; /* the one that the effective interval comes from */
    uint8_t class_number;
    bool decided;
} rn_plan_job;

typedef struct rn_plan_use {
    uint32_t job;
    uint32_t scope;
    int64_t amount; /* of one run */
} rn_plan_use;

typedef struct rn_plan_scope {
    rn_heap_node node;
    rn_budget budget;
    uint64_t factor;                /* by which the class at work must be stretched here, at most; see planner.c */
    bool stale;                     /* jobs were taken from it since: it may be less */
    bool bound;                     /* it has stretched jobs: those of lower classes stay at the utmost */
    rn_wide decided;                /* use by jobs whose interval is known */
    rn_wide sunk;                   /* use by jobs of lower classes, were they stretched to the utmost */
    rn_wide wanted;                 /* use by all at their least intervals */
    rn_wide critical;               /* of that, by critical jobs */
    uint32_t first[RN_CLASSES + 1]; /* its uses by class: places in `by_scope` of the problem */
} rn_plan_scope;

typedef struct rn_plan_problem {
    const ration_plan_options *options;
    int64_t max_stretch;
    rn_plan_job *jobs;
    rn_plan_scope *scopes;
    rn_plan_use *uses;     /* by job */
    rn_plan_use *by_scope; /* by scope, within it by class, within that by job */
    size_t use_count;
} rn_plan_problem;

/* A member of the input: list[index].within[place].member; what is NULL is absent. */
typedef struct rn_plan_place {
    const char *list;
    size_t index;
    const char *within;
    size_t place;
} rn_plan_place;

/* RATION_ERR_CONFIG, and in `*fault` (may be NULL) what is wrong with `member` of `at` (NULL: of the whole input). */
int rn_plan_fault(ration_fault *fault, const rn_plan_place *at, const char *member, const char *text);

/* RATION_ERR_CONFIG with `*fault`, RATION_ERR_INVALID, RATION_ERR_NOMEM. All memory is the arena's. */
int rn_plan_problem_init(rn_plan_problem *problem, const ration_plan_options *options, rn_arena *arena,
                         ration_fault *fault);

/* The next multiple of RATION_PLAN_STEP_US that is not below. */
int64_t rn_plan_round_up(int64_t us);

#endif
