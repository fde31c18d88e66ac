/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_SNAPSHOT_H
#define RN_SERVE_SNAPSHOT_H

#include "serve/families.h"
#include "serve/fleet.h"
#include "serve/gateway.h"
#include "serve/history.h"
#include "serve/keeper.h"
#include "serve/planning.h"
#include "serve/reload.h"
#include "trace/output.h"

/* What the process looks like at one instant, gathered once for every page that shows it. */
typedef struct rn_snapshot {
    uint64_t id; /* of the status: one more than that of the one before, in this process */
    ration_time now;
    ration_time started_at;
    ration_totals totals;
    rn_gateway_counters gateway;
    rn_cost_counts costs; /* counts of calls, over all providers */
    rn_planning_counts planning;
    rn_upstream_stats upstream;
    uint64_t exchanges[RN_EXCHANGE_STATES];
    uint64_t kept_bytes; /* of bodies and answers of calls */
    uint64_t connections;
    uint64_t turned_away;
    uint64_t clock_forward;
    uint64_t clock_backward;
    uint64_t draining;
    rn_bulletin_counts events;
    uint64_t listeners;
    rn_reload_counts reloads;
    rn_keeper_status keeper; /* without a path: nothing is kept */
    rn_member_status fleet;  /* without an id: the limits are this process' own */
} rn_snapshot;

/* Refusals with this reason, by the decider and by the gateway itself. */
uint64_t rn_snapshot_refusals(const rn_snapshot *snapshot, ration_reason reason);

/* What the history keeps of it. */
void rn_snapshot_counts(const rn_snapshot *snapshot, rn_history_counts *out);

/* The Prometheus text of `GET /metrics`. */
void rn_metrics_write(const rn_snapshot *snapshot, const rn_families *families, rn_output *out);

#endif
