/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_HISTORY_H
#define RN_SERVE_HISTORY_H

#include "serve/gateway.h"
#include "trace/output.h"

/*
 * `GET /v1/history`: what was counted in the last quarter of an hour, for whoever begins to look now. Memory is
 * bounded: a ring of samples of one size.
 */
#define RN_HISTORY_STEP_US INT64_C(10000000)
#define RN_HISTORY_MAX 91 /* samples: both ends of 15 minutes */

/* Counts since the start of the process, as the status has them. */
typedef struct rn_history_counts {
    rn_histogram waits[RN_PRIORITIES];
    uint64_t refusals[RATION_REASON_COUNT];
    uint64_t outcomes[RN_OUTCOMES];
} rn_history_counts;

typedef struct rn_history rn_history;

/* RATION_ERR_NOMEM. */
int rn_history_new(rn_history **out);
void rn_history_free(rn_history *history); /* NULL is fine */

/* O(1). Beyond RN_HISTORY_MAX the oldest one goes. */
void rn_history_add(rn_history *history, ration_time at, const rn_history_counts *counts);

/* The body of the page: `{"startedAt":...,"samples":[...]}`, the oldest first. */
void rn_history_write(const rn_history *history, ration_time started_at, rn_output *out);

/* The members "waits", "refusals" and "outcomes" by themselves, into an object that is open. */
void rn_history_waits_write(const rn_history_counts *counts, rn_output *out);
void rn_history_refusals_write(const rn_history_counts *counts, rn_output *out);
void rn_history_outcomes_write(const rn_history_counts *counts, rn_output *out);

#endif
