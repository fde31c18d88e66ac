/* SPDX-License-Identifier: MIT */
#ifndef RN_JOBS_PARTS_H
#define RN_JOBS_PARTS_H

#include "base/text.h"
#include "jobs/jobs.h"
#include "jobs/keys.h"

/* What the files of jobs share. */

/* An inventory that jobs fan out over. */
typedef struct rn_inventory {
    rn_map_node node; /* by name */
    size_t first;     /* job that names it; SIZE_MAX: none */
    bool known;
    int64_t children;
} rn_inventory;

/* A job with what has been learned of it. */
typedef struct rn_job_state {
    rn_map_node node; /* by name */
    const rn_job *job;
    rn_inventory *inventory; /* NULL: it has no children */
    size_t next;             /* job of the same inventory; SIZE_MAX: none */
    ration_plan_use *scopes;
    size_t scope_count;
    ration_plan_use *rates;
    size_t rate_count;
    ration_run runs[RATION_RUNS_MAX];
    size_t run_count;
    int64_t effective_us; /* by the last plan; RATION_UNSET: there has been none */
    ration_time since;    /* the first plan that had it */
    bool has_begun;
    ration_time begun; /* the last run */
} rn_job_state;

struct rn_jobs {
    const ration_allocator *mem;
    const ration_config *config;
    rn_plan_keys keys;
    rn_arena arena;
    rn_map by_name;
    rn_map inventories;
    rn_job_state *jobs;
    size_t count;
    bool too_many; /* uses: nothing can be planned */
    ration_plan *plan;
};

/*
 * How a job could run as desired, or at all: "device-status at 60s fits when daily (acme) is 12600 or the interval is
 * 151.2s". False, and nothing written: it does.
 */
bool rn_job_remedy(const rn_jobs *jobs, size_t index, rn_builder *b);
/* The smallest maximum of a scope's quota with which `units` can be used within its horizon; RATION_UNSET: none. */
int64_t rn_scope_enough(const rn_jobs *jobs, size_t scope, int64_t units);
/* A duration as a config would have it: "60s", "151.2s", "24h". Below a millisecond it rounds up. */
void rn_builder_span(rn_builder *b, int64_t us);
const char *rn_priority_name(ration_priority priority);

/* The calls of a run as planned, in millionths; 0: its inventory is empty. */
int64_t rn_job_calls(const rn_jobs *jobs, size_t index);

/* Children of a run: of the inventory, else as estimated; 1 of a job without. */
int64_t rn_job_children(const rn_job_state *job);

#endif
