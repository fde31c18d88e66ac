/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_HISTORY_H
#define RN_SERVE_HISTORY_H

#include "serve/gateway.h"
#include "trace/output.h"

/*
 * `GET /v1/history`: what was counted in the last quarter of an hour, for whoever begins to look now; what adaptive and
 * shared limits stood at; where an adaptive one moved. Memory is bounded: a ring of samples, of which each has rows of
 * RN_HISTORY_ROWS_BYTES at most, and a ring of moves.
 */
#define RN_HISTORY_STEP_US INT64_C(10000000)
#define RN_HISTORY_MAX 91 /* samples: both ends of 15 minutes */
#define RN_HISTORY_ROWS 64
#define RN_HISTORY_TENANTS 16 /* of a shared limit */
#define RN_HISTORY_ROWS_BYTES ((size_t)16 << 10)
#define RN_HISTORY_MOVES 256
#define RN_HISTORY_KEY 256 /* bytes; a move at a longer key is not kept */

/* Counts since the start of the process, as the status has them. */
typedef struct rn_history_counts {
    rn_histogram waits[RN_PRIORITIES];
    uint64_t refusals[RATION_REASON_COUNT];
    uint64_t outcomes[RN_OUTCOMES];
} rn_history_counts;

typedef struct rn_history rn_history;

/* Room for so many samples and moves, at least one of each. RATION_ERR_NOMEM. */
int rn_history_new(size_t most, size_t moves, rn_history **out);
void rn_history_free(rn_history *history); /* NULL is fine */

/*
 * A sample. Beyond `most` the oldest one goes. `decider` is asked for its adaptive and shared limits, at `believed`;
 * NULL: there are none, or nobody to ask. Without memory a sample goes without them.
 */
void rn_history_add(rn_history *history, ration_time at, const rn_history_counts *counts, rn_decider *decider,
                    ration_time believed);
/* An event of the decider: RATION_EVENT_LIMIT is kept, any other is nothing. O(1). */
void rn_history_hear(rn_history *history, const ration_event *event);

/* The body of the page: `{"startedAt":...,"samples":[...],"moves":[...]}`, the oldest first. */
void rn_history_write(const rn_history *history, ration_time started_at, rn_output *out);

/* The members "waits", "refusals" and "outcomes" by themselves, into an object that is open. */
void rn_history_waits_write(const rn_history_counts *counts, rn_output *out);
void rn_history_refusals_write(const rn_history_counts *counts, rn_output *out);
void rn_history_outcomes_write(const rn_history_counts *counts, rn_output *out);

#endif
