/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_PROJECTIONS_H
#define RN_SERVE_PROJECTIONS_H

#include <ration/plan.h>

#include "trace/output.h"

/* How a quota fares, from its row of a report. Chapter 3, "Timeline and projections". */

/*
 * With more counters than these in all, a page that shows all of them asks for no timelines: each costs its length.
 * Rates of the last 15 minutes are then absent, and so is what follows from them.
 */
#define RN_PROJECTED_MAX 2000

/* False: no quota, or nothing can be said of it. */
bool rn_quota_project(const ration_counter_report *counter, ration_time now, ration_projection *out);
/* A pace as units in so long, rounded down; its span is known. */
int64_t rn_quota_rate(const ration_forecast *pace, int64_t span_us);
/* Members of a quota's row: "recent" and "average"; `whole`: also "timeline". */
void rn_quota_write(rn_output *out, const ration_counter_report *counter, ration_time now, bool whole);
/*
 * A provider tells a maximum that is none of those which the rules declare for the limit (an account may have a rule
 * of its own): by how much it is above (or, negative, below) the nearest of them. False: they agree.
 */
bool rn_quota_disagrees(const ration_rules *rules, const ration_counter_report *counter, int64_t *by);

#endif
