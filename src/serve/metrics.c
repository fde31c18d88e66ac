/* SPDX-License-Identifier: MIT */
/*
 * `GET /metrics`: the Prometheus text format, version 0.0.4.
 *
 * One table: a new metric is a row. Label sets are bounded by the tables of reasons, states and faults; names that come
 * from outside become labels only in the families of series.c, which keep to the largest few. Seconds are printed from
 * microseconds by the exact builder, without floats.
 */
#include "serve/snapshot.h"

#include <string.h>

#include "base/text.h"

typedef void metric_series(rn_output *out, const char *name, const rn_snapshot *s);

static void raw(rn_output *out, const char *s)
{
    rn_output_raw(out, ration_text_of(s));
}

static void raw_number(rn_output *out, void (*build)(rn_builder *, int64_t), uint64_t value)
{
    char digits[40];
    rn_builder b;

    rn_builder_init(&b, digits, sizeof digits);
    build(&b, value > INT64_MAX ? INT64_MAX : (int64_t)value);
    rn_output_raw(out, (ration_text){digits, b.used});
}

/* `NAME{LABEL="VALUE"} N`; `label` NULL: without. Values are words of ours, so nothing needs to be escaped. */
static void sample(rn_output *out, const char *name, const char *label, const char *value, uint64_t n)
{
    raw(out, name);
    if (label != NULL) {
        raw(out, "{");
        raw(out, label);
        raw(out, "=\"");
        raw(out, value);
        raw(out, "\"}");
    }
    raw(out, " ");
    raw_number(out, rn_builder_int, n);
    raw(out, "\n");
}

static void refusals_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    for (int i = RATION_REASON_NONE + 1; i < RATION_REASON_COUNT; i++)
        sample(out, name, "reason", ration_reason_name((ration_reason)i), rn_snapshot_refusals(s, (ration_reason)i));
}

static void exchanges_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    for (int i = 0; i < RN_EXCHANGE_STATES; i++)
        sample(out, name, "state", rn_exchange_state_name((rn_exchange_state)i), s->exchanges[i]);
}

static void faults_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    for (int i = 0; i <= RN_UPSTREAM_BROKEN; i++)
        sample(out, name, "kind", rn_upstream_fault_name((rn_upstream_fault)i), s->gateway.faults[i]);
}

static void responses_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    static const char *const classes[] = {"0xx", "1xx", "2xx", "3xx", "4xx", "5xx"};

    for (size_t i = 2; i < sizeof classes / sizeof classes[0]; i++)
        sample(out, name, "class", classes[i], s->gateway.responses[i]);
}

static void gone_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    sample(out, name, "while", "waiting", s->gateway.gone_waiting);
    sample(out, name, "while", "running", s->gateway.gone_running);
}

static void checks_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    for (int i = 0; i < RN_CHECK_RESULTS; i++)
        sample(out, name, "result", rn_check_result_name((rn_check_result)i), s->gateway.checks[i]);
}

static void retries_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    for (int i = 0; i <= RATION_OUTCOME_CANCELLED; i++)
        sample(out, name, "outcome", ration_outcome_name((ration_outcome)i), s->gateway.retries[i]);
}

static void withheld_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    for (int i = RN_RETRY_OFF + 1; i < RN_RETRY_VERDICTS; i++)
        sample(out, name, "reason", rn_retry_verdict_name((rn_retry_verdict)i), s->gateway.withheld[i]);
}

static void breaker_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    for (size_t i = 0; i < sizeof s->gateway.circuits / sizeof s->gateway.circuits[0]; i++)
        sample(out, name, "to", ration_circuit_state_name((ration_circuit_state)i), s->gateway.circuits[i]);
}

static void rejected_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    static const char *const told[RATION_TOLD_COUNT] = {[RATION_TOLD_LIMIT] = "limit",
                                                        [RATION_TOLD_REMAINING] = "remaining",
                                                        [RATION_TOLD_RESET] = "reset",
                                                        [RATION_TOLD_RETRY_AFTER] = "retry_after"};

    for (int i = 0; i < RATION_TOLD_COUNT; i++)
        sample(out, name, "what", told[i], s->totals.sync_rejected[i]);
}

static void clock_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    sample(out, name, "direction", "forward", s->clock_forward);
    sample(out, name, "direction", "backward", s->clock_backward);
}

static void upstream_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    sample(out, name, "state", "idle", s->upstream.idle);
    sample(out, name, "state", "busy", s->upstream.open - s->upstream.idle);
}

static void upstream_requests_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    sample(out, name, "connection", "new", s->upstream.connects);
    sample(out, name, "connection", "reused", s->upstream.reuses);
}

static void runs_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    sample(out, name, "source", "counted", s->planning.counted);
    sample(out, name, "source", "cut", s->planning.cut);
    sample(out, name, "source", "reported", s->planning.reported);
}

static void estimates_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    for (int i = 0; i < RN_ESTIMATE_SOURCES; i++)
        sample(out, name, "source", rn_estimate_source_name((rn_estimate_source)i), s->costs.estimates[i]);
}

static void settled_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    for (int i = 0; i < RN_COST_SOURCES; i++)
        sample(out, name, "source", rn_cost_source_name((rn_cost_source)i), s->costs.settled[i]);
}

static void usage_faults_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    for (int i = 0; i < RN_USAGE_FAULTS; i++)
        sample(out, name, "why", rn_usage_fault_name((rn_usage_fault)i), s->costs.unseen[i]);
}

static void stale_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    sample(out, name, NULL, NULL, s->upstream.retries);
}

static void instant_sample(rn_output *out, const char *name, ration_time at)
{
    raw(out, name);
    raw(out, " ");
    raw_number(out, rn_builder_micro, (uint64_t)at.us);
    raw(out, "\n");
}

static void started_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    instant_sample(out, name, s->started_at);
}

static void reloads_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    sample(out, name, "result", "success", s->reloads.done);
    sample(out, name, "result", "failure", s->reloads.failed);
}

static void loaded_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    instant_sample(out, name, s->reloads.loaded_at);
}

static void load_failed_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    instant_sample(out, name, s->reloads.failed_at);
}

static void build_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    (void)s;
    sample(out, name, "version", RATION_VERSION, 1);
}

/* ---- the ledger; without one there are no samples */

static void ledger_sample(rn_output *out, const char *name, const rn_snapshot *s, uint64_t value)
{
    if (s->keeper.ledger.path != NULL)
        sample(out, name, NULL, NULL, value);
}

static void ledger_seconds(rn_output *out, const char *name, const rn_snapshot *s, int64_t value_us)
{
    if (s->keeper.ledger.path == NULL)
        return;
    raw(out, name);
    raw(out, " ");
    raw_number(out, rn_builder_micro, (uint64_t)value_us);
    raw(out, "\n");
}

static void ledger_flushes_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    ledger_sample(out, name, s, s->keeper.ledger.flushes);
}

static void ledger_faults_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    ledger_sample(out, name, s, s->keeper.ledger.faults);
}

static void ledger_rows_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    ledger_sample(out, name, s, s->keeper.ledger.rows);
}

static void ledger_pending_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    ledger_sample(out, name, s, s->keeper.ledger.pending);
}

static void ledger_failing_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    ledger_sample(out, name, s, s->keeper.attempts > 0);
}

static void ledger_waiting_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    ledger_sample(out, name, s, s->keeper.waiting);
}

static void ledger_age_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    ledger_seconds(out, name, s, s->keeper.age_us);
}

static void ledger_flush_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    ledger_seconds(out, name, s, s->keeper.ledger.flush_us);
}

/* ---- the fleet; without one there are no samples */

static void fleet_sample(rn_output *out, const char *name, const rn_snapshot *s, uint64_t value)
{
    if (s->fleet.id != NULL)
        sample(out, name, NULL, NULL, value);
}

static void fleet_up_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    fleet_sample(out, name, s, s->fleet.state == RN_MEMBER_UP);
}

static void fleet_members_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    fleet_sample(out, name, s, s->fleet.member_count);
}

static void fleet_config_differs_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    fleet_sample(out, name, s, s->fleet.config_differs);
}

static void fleet_local_leases_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    fleet_sample(out, name, s, s->fleet.local_leases);
}

static void fleet_outages_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    fleet_sample(out, name, s, s->fleet.unavailable);
}

static void fleet_failed_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    fleet_sample(out, name, s, s->fleet.failed);
}

static void fleet_unsent_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    fleet_sample(out, name, s, s->fleet.told_late);
}

static void fleet_unsent_dropped_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    fleet_sample(out, name, s, s->fleet.told_never);
}

static void fleet_unreplicated_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    fleet_sample(out, name, s, s->fleet.unreplicated);
}

static void fleet_prefetched_held_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    fleet_sample(out, name, s, s->fleet.prefetched.held);
}

static void fleet_prefetched_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    const rn_member_prefetched *units = &s->fleet.prefetched;

    if (s->fleet.id == NULL)
        return;
    sample(out, name, "what", "taken", units->taken);
    sample(out, name, "what", "spent", units->spent);
    sample(out, name, "what", "returned", units->returned);
    sample(out, name, "what", "lost", units->lost);
}

static void fleet_calls_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    for (size_t i = 0; s->fleet.id != NULL && i < s->fleet.script_count; i++)
        sample(out, name, "script", s->fleet.scripts[i].name, s->fleet.scripts[i].calls);
}

static void fleet_quantile(rn_output *out, const char *name, const char *script, const char *quantile, int64_t us)
{
    raw(out, name);
    raw(out, "{script=\"");
    raw(out, script);
    raw(out, "\",quantile=\"");
    raw(out, quantile);
    raw(out, "\"} ");
    raw_number(out, rn_builder_micro, (uint64_t)us);
    raw(out, "\n");
}

static void fleet_seconds_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    for (size_t i = 0; s->fleet.id != NULL && i < s->fleet.script_count; i++) {
        const rn_member_script *script = &s->fleet.scripts[i];

        fleet_quantile(out, name, script->name, "0.5", script->p50_us);
        fleet_quantile(out, name, script->name, "0.99", script->p99_us);
    }
}

static void wait_series(rn_output *out, const char *name, const rn_snapshot *s)
{
    uint64_t count = 0, sum_us = 0;

    for (size_t i = 0; i <= RN_HISTOGRAM_BUCKETS; i++) {
        for (size_t j = 0; j < RN_PRIORITIES; j++)
            count += s->gateway.waits[j].counts[i];
        raw(out, name);
        raw(out, "_bucket{le=\"");
        if (rn_histogram_bound(i) >= 0) {
            raw_number(out, rn_builder_micro, (uint64_t)rn_histogram_bound(i));
        } else {
            raw(out, "+Inf");
        }
        raw(out, "\"} ");
        raw_number(out, rn_builder_int, count);
        raw(out, "\n");
    }
    raw(out, name);
    raw(out, "_sum ");
    for (size_t j = 0; j < RN_PRIORITIES; j++)
        sum_us += s->gateway.waits[j].sum_us;
    raw_number(out, rn_builder_micro, sum_us);
    raw(out, "\n");
    raw(out, name);
    raw(out, "_count ");
    raw_number(out, rn_builder_int, count);
    raw(out, "\n");
}

/* `series` NULL: one number, the uint64_t at `offset` of the snapshot. */
static const struct metric {
    const char *name;
    const char *type;
    const char *help;
    metric_series *series;
    size_t offset;
} metrics[] = {
    {"ration_build_info", "gauge", "Always 1; the version is a label.", build_series, 0},
    {"ration_start_time_seconds", "gauge", "When the process began, since the Unix epoch.", started_series, 0},
    {"ration_config_reloads_total", "counter", "Times that the config was to be read anew, by what came of it.",
     reloads_series, 0},
    {"ration_config_last_reload_successful", "gauge", "1 unless what runs is older than the last attempt to reload it.",
     NULL, offsetof(rn_snapshot, reloads.well)},
    {"ration_config_loaded_timestamp_seconds", "gauge", "When the config that runs was read, since the Unix epoch.",
     loaded_series, 0},
    {"ration_config_failed_timestamp_seconds", "gauge", "When it last could not be read anew; 0: never.",
     load_failed_series, 0},
    {"ration_draining", "gauge", "1 while the process is shutting down.", NULL, offsetof(rn_snapshot, draining)},
    {"ration_requests_total", "counter", "Requests that reached the gateway.", NULL,
     offsetof(rn_snapshot, gateway.requests)},
    {"ration_tokens_refused_total", "counter", "Requests without a token that is somebody's, at either port.", NULL,
     offsetof(rn_snapshot, gateway.tokens_refused)},
    {"ration_malformed_total", "counter", "Requests that the gateway could not accept, whatever the limits.", NULL,
     offsetof(rn_snapshot, gateway.malformed)},
    {"ration_grants_total", "counter", "Leases granted.", NULL, offsetof(rn_snapshot, totals.granted)},
    {"ration_refusals_total", "counter", "Requests refused, by reason.", refusals_series, 0},
    {"ration_unexpected_429_total", "counter",
     "Responses by which a provider said \"too many\" and that no limit here would have prevented.", NULL,
     offsetof(rn_snapshot, totals.unexpected_429)},
    {"ration_shadowed_total", "counter", "Requests that a shadow limit would have refused or delayed.", NULL,
     offsetof(rn_snapshot, totals.shadowed)},
    {"ration_wait_seconds", "histogram", "How long granted requests had waited.", wait_series, 0},
    {"ration_waiting", "gauge", "Requests that wait for a lease now.", NULL, offsetof(rn_snapshot, totals.waiting)},
    {"ration_held", "gauge", "Leases held now.", NULL, offsetof(rn_snapshot, totals.held)},
    {"ration_counters", "gauge", "Scope keys that have a counter now.", NULL, offsetof(rn_snapshot, totals.counters)},
    {"ration_leases_lost_total", "counter", "Leases taken back because they were not renewed in time.", NULL,
     offsetof(rn_snapshot, totals.lost)},
    {"ration_cancelled_total", "counter", "Waiters withdrawn.", NULL, offsetof(rn_snapshot, totals.cancelled)},
    {"ration_sync_rejected_total", "counter", "Values of providers' headers that were ignored, by what they tell.",
     rejected_series, 0},
    {"ration_clock_went_back_total", "counter", "Calls of the engine with an instant before the last one.", NULL,
     offsetof(rn_snapshot, totals.clock_went_back)},
    {"ration_clock_steps_total", "counter", "Steps of the wall clock that were seen.", clock_series, 0},
    {"ration_exchanges", "gauge", "Calls in the gateway now, by what they are doing.", exchanges_series, 0},
    {"ration_kept_bytes", "gauge", "Bodies and answers that calls keep now, for estimates and for retries.", NULL,
     offsetof(rn_snapshot, kept_bytes)},
    {"ration_responses_total", "counter", "Responses sent to clients, by class of status.", responses_series, 0},
    {"ration_clients_gone_total", "counter", "Clients that left before their response had ended.", gone_series, 0},
    {"ration_upstream_errors_total", "counter", "Calls that broke on the way to a provider, by kind.", faults_series,
     0},
    {"ration_retries_total", "counter", "Calls sent again by the gateway, each time, by what that came to.",
     retries_series, 0},
    {"ration_retries_withheld_total", "counter",
     "Attempts that failed and had none behind them although the config has retries, by why not.", withheld_series, 0},
    {"ration_health_checks_total", "counter", "Health checks of breakers, by what they came to.", checks_series, 0},
    {"ration_breaker_changes_total", "counter", "Changes of circuits, by the state that was entered.", breaker_series,
     0},
    {"ration_upstream_connections", "gauge", "Connections to providers now.", upstream_series, 0},
    {"ration_upstream_requests_total", "counter", "Connections made and connections used again.",
     upstream_requests_series, 0},
    {"ration_upstream_stale_total", "counter", "Requests sent again because a kept connection had died.", stale_series,
     0},
    {"ration_estimates_total", "counter", "Requests whose cost the config estimates, by where the number was found.",
     estimates_series, 0},
    {"ration_costs_settled_total", "counter",
     "Calls whose responses are to tell what they cost, by what they were settled with.", settled_series, 0},
    {"ration_usage_unseen_total", "counter",
     "Successes among them that told none: it was absent, the body encoded, or the number unusable.",
     usage_faults_series, 0},
    {"ration_plan_feasible", "gauge", "1 while jobs, as planned, keep within every quota and rate; also without jobs.",
     NULL, offsetof(rn_snapshot, planning.feasible)},
    {"ration_plans_total", "counter", "Plans of jobs' intervals that were made.", NULL,
     offsetof(rn_snapshot, planning.plans)},
    {"ration_plan_faults_total", "counter", "Plans that could not be made, so that the one before stands.", NULL,
     offsetof(rn_snapshot, planning.faults)},
    {"ration_plan_changes_total", "counter", "Intervals of jobs that a plan has changed, after the first.", NULL,
     offsetof(rn_snapshot, planning.changes)},
    {"ration_runs_total", "counter",
     "Runs of jobs: told of by their requests, these but with a request that was not sent, reported.", runs_series, 0},
    {"ration_connections", "gauge", "Connections of clients now.", NULL, offsetof(rn_snapshot, connections)},
    {"ration_connections_refused_total", "counter", "Connections of clients turned away for lack of descriptors.", NULL,
     offsetof(rn_snapshot, turned_away)},
    {"ration_events_listeners", "gauge", "Those who listen to /v1/events now.", NULL, offsetof(rn_snapshot, listeners)},
    {"ration_events_total", "counter", "Events told while somebody listened.", NULL,
     offsetof(rn_snapshot, events.told)},
    {"ration_events_dropped_total", "counter", "Events that a listener was too slow for, each for each of them.", NULL,
     offsetof(rn_snapshot, events.dropped)},
    {"ration_ledger_flushes_total", "counter", "Times that the ledger was written.", ledger_flushes_series, 0},
    {"ration_ledger_faults_total", "counter", "Times that it could not be.", ledger_faults_series, 0},
    {"ration_ledger_failing", "gauge", "1 while the last attempt to write it has failed.", ledger_failing_series, 0},
    {"ration_ledger_age_seconds", "gauge", "Since nothing was missing in it: so much a kill would take back.",
     ledger_age_series, 0},
    {"ration_ledger_flush_seconds", "gauge", "How long the last write took.", ledger_flush_series, 0},
    {"ration_ledger_rows_total", "counter", "Rows written.", ledger_rows_series, 0},
    {"ration_ledger_pending", "gauge", "Things that wait to be written, or are being written.", ledger_pending_series,
     0},
    {"ration_ledger_waiting", "gauge", "Answers to releases that wait until they are durable.", ledger_waiting_series,
     0},
    {"ration_fleet_up", "gauge", "1 while the fleet's store can be asked.", fleet_up_series, 0},
    {"ration_fleet_members", "gauge",
     "Members of the fleet that have been heard of within a minute, this one included.", fleet_members_series, 0},
    {"ration_fleet_config_differs", "gauge", "1 while some of them goes by other rules than this one.",
     fleet_config_differs_series, 0},
    {"ration_fleet_local_leases", "gauge",
     "Leases that this process has granted by itself and that the store does not know of yet.",
     fleet_local_leases_series, 0},
    {"ration_fleet_outages_total", "counter", "Times that the store went away.", fleet_outages_series, 0},
    {"ration_fleet_failed_total", "counter", "Calls that the store answered with an error, or not in time.",
     fleet_failed_series, 0},
    {"ration_fleet_unsent", "gauge", "What the store has not been told yet because it is away.", fleet_unsent_series,
     0},
    {"ration_fleet_unsent_dropped_total", "counter",
     "What it was never told, because it was away for longer than that meant anything.", fleet_unsent_dropped_series,
     0},
    {"ration_fleet_unreplicated_total", "counter",
     "Calls to the store that fewer replicas confirmed in time than `settings.fleet.wait` asks for.",
     fleet_unreplicated_series, 0},
    {"ration_fleet_prefetched", "gauge", "Units that it has taken at once and that no request has used yet.",
     fleet_prefetched_held_series, 0},
    {"ration_fleet_prefetched_total", "counter",
     "Units that it has taken at once, and what became of them: `spent`, `returned`, or `lost`, since the store had "
     "forgotten who held them.",
     fleet_prefetched_series, 0},
    {"ration_fleet_calls_total", "counter", "Scripts that the store has answered.", fleet_calls_series, 0},
    {"ration_fleet_call_seconds", "gauge",
     "How long that took, from sending to the answer: the median and the 99th percentile.", fleet_seconds_series, 0},
    {"ration_errors_total", "counter", "Failures of the gateway itself: no memory, an unexpected error code.", NULL,
     offsetof(rn_snapshot, gateway.errors)},
};

uint64_t rn_snapshot_refusals(const rn_snapshot *s, ration_reason reason)
{
    return s->totals.refusals[reason] + s->gateway.refusals[reason];
}

static void head_write(rn_output *out, const char *name, const char *type, const char *help)
{
    raw(out, "# HELP ");
    raw(out, name);
    raw(out, " ");
    raw(out, help);
    raw(out, "\n# TYPE ");
    raw(out, name);
    raw(out, " ");
    raw(out, type);
    raw(out, "\n");
}

void rn_metrics_write(const rn_snapshot *s, const rn_families *families, rn_output *out)
{
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        const struct metric *m = &metrics[i];

        head_write(out, m->name, m->type, m->help);
        if (m->series != NULL) {
            m->series(out, m->name, s);
        } else {
            sample(out, m->name, NULL, NULL, *(const uint64_t *)(const void *)((const char *)s + m->offset));
        }
    }
    for (int i = 0; i < RN_FAMILY_COUNT; i++) {
        const rn_output *samples = &families->series[i].out;

        if (rn_family_help((rn_family)i)[0] != '\0')
            head_write(out, rn_family_name((rn_family)i), rn_family_type((rn_family)i), rn_family_help((rn_family)i));
        rn_output_raw(out, (ration_text){samples->data, samples->size});
    }
}

void rn_snapshot_counts(const rn_snapshot *s, rn_history_counts *out)
{
    *out = (rn_history_counts){.refusals = {0}};
    memcpy(out->waits, s->gateway.waits, sizeof out->waits);
    memcpy(out->outcomes, s->gateway.outcomes, sizeof out->outcomes);
    for (size_t i = 0; i < RATION_REASON_COUNT; i++)
        out->refusals[i] = rn_snapshot_refusals(s, (ration_reason)i);
}
