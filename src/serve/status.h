/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_STATUS_H
#define RN_SERVE_STATUS_H

#include "serve/recording.h"
#include "serve/snapshot.h"

/*
 * The JSON of `GET /v1/status`. Counters have the members of chapter 9; at most RN_STATUS_ROWS of them are shown and
 * the rest is counted; so it is with the tenants of all share limits together, and with RN_STATUS_OVERRUNS leases past
 * their declared end. Calls the decider's report.
 */
#define RN_STATUS_ROWS 10000
#define RN_STATUS_OVERRUNS 1000
#define RN_STATUS_MAX ((size_t)16 << 20)

/* The rows of a list that have been written, and those for which there was no more room. */
typedef struct rn_status_room {
    size_t written, omitted;
} rn_status_room;

/* Is there room for one more of RN_STATUS_ROWS? Counts it either way. */
bool rn_status_fits(rn_status_room *room);

/* The counter that a reader asks for; counts those found. */
typedef struct rn_status_filter {
    ration_text limit, key;
    size_t found;
} rn_status_filter;

/* The limits, penalties and breakers of the status alone, into an object that is open. `only` NULL: all of them. */
int rn_status_limits_write(rn_decider *decider, ration_time now, rn_status_filter *only, rn_output *out);

/* What the status is about, beside the snapshot. */
typedef struct rn_status_parts {
    rn_decider *decider;
    const rn_gateway *gateway;
    const rn_planning *planning;   /* NULL: there are no jobs */
    const rn_recording *recording; /* NULL: nothing is recorded */
} rn_status_parts;

int rn_status_write(const rn_snapshot *snapshot, const rn_status_parts *parts, rn_output *out);

#endif
