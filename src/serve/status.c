/* SPDX-License-Identifier: MIT */
/*
 * `GET /v1/status`: what a person asks first.
 *
 * Times are milliseconds as in traces (chapter 9), instants since the Unix epoch. A process with a million scope keys
 * has an answer too: rows beyond RN_STATUS_ROWS are counted instead of written.
 */
#include "serve/status.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/lease_name.h"
#include "serve/projections.h"
#include "trace/writer.h"

/* The rows of the lists, and those that had no more room. */
typedef struct status_rows {
    rn_trace_report report;
    rn_output *out;
    rn_status_room room;
    size_t tenants, tenants_omitted;
    rn_status_filter *only; /* NULL: all of them */
    ration_time now;
} status_rows;

bool rn_status_fits(rn_status_room *room)
{
    if (room->written < RN_STATUS_ROWS) {
        room->written++;
        return true;
    }
    room->omitted++;
    return false;
}

/* ---- leases past their declared end: a list of their own, and by name at the limits that they overrun */

typedef struct overrun {
    uint64_t serial;
    char bytes[RN_LEASE_NAME_BYTES];
    size_t size; /* of its name in `bytes` */
} overrun;

typedef struct overruns {
    rn_output *out;
    rn_decider *decider;
    ration_time now;
    overrun *items; /* by serial; RN_STATUS_OVERRUNS of them */
    size_t count, omitted;
} overruns;

static ration_text overrun_name(void *ctx, uint64_t serial)
{
    const overruns *all = ctx;
    size_t low = 0, high = all->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (all->items[middle].serial < serial) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == all->count || all->items[low].serial != serial)
        return (ration_text){NULL, 0};
    return (ration_text){all->items[low].bytes, all->items[low].size};
}

static void overrun_keep(overrun *item, const ration_lease_report *lease)
{
    item->size = rn_lease_name_write(lease->lease, item->bytes).size;
    item->serial = lease->serial;
}

static void on_lease(void *ctx, const ration_lease_report *lease)
{
    overruns *all = ctx;
    rn_output *out = all->out;

    if (lease->waiting || !lease->overrun)
        return;
    if (all->count == RN_STATUS_OVERRUNS) {
        all->omitted++;
        return;
    }
    overrun *item = &all->items[all->count++];
    overrun_keep(item, lease);
    rn_output_open(out, NULL, '{');
    rn_output_text(out, "lease", (ration_text){item->bytes, item->size});
    rn_output_text(out, "account", lease->account);
    if (lease->tenant.data != NULL)
        rn_output_text(out, "tenant", lease->tenant);
    if (lease->class_name.data != NULL)
        rn_output_text(out, "class", lease->class_name);
    rn_output_micro(out, "cost", lease->cost);
    rn_output_ms(out, "grantedAt", lease->since.us);
    rn_output_ms(out, "endsAt", lease->ends_at.us);
    rn_output_close(out, '}');
}

static int overruns_write(overruns *all)
{
    const ration_reporter reporter = {.ctx = all, .lease = on_lease};

    rn_output_open(all->out, "overruns", '[');
    const int err = all->decider->ops->report(all->decider, all->now, RATION_REPORT_LEASES, &reporter);
    rn_output_close(all->out, ']');
    if (all->omitted > 0)
        rn_output_int(all->out, "overrunsOmitted", (int64_t)all->omitted);
    return err;
}

/* ---- limits, penalties, breakers */

/* Does the reader want to hear of a limit's counter, or of what has no limit (NULL)? */
static bool row_wanted(const status_rows *rows, const char *limit, ration_text key)
{
    return rows->only == NULL ||
           (limit != NULL && rn_text_is(rows->only->limit, limit) && rn_text_eq(rows->only->key, key));
}

static void on_counter(void *ctx, const ration_counter_report *counter)
{
    status_rows *rows = ctx;
    ration_counter_report cut = *counter;

    if (!row_wanted(rows, counter->limit, counter->key) || !rn_status_fits(&rows->room))
        return;
    if (rows->only != NULL)
        rows->only->found++;
    if (cut.tenant_count > RN_STATUS_ROWS - rows->tenants)
        cut.tenant_count = RN_STATUS_ROWS - rows->tenants;
    rows->tenants += cut.tenant_count;
    rows->tenants_omitted += counter->tenant_count - cut.tenant_count;
    rows->report.reporter.counter(&rows->report, &cut);
}

static void on_penalty(void *ctx, const ration_penalty_report *penalty)
{
    status_rows *rows = ctx;

    if (row_wanted(rows, penalty->limit, penalty->key) && rn_status_fits(&rows->room))
        rows->report.reporter.penalty(&rows->report, penalty);
}

static void on_breaker(void *ctx, const ration_breaker_report *breaker)
{
    status_rows *rows = ctx;
    rn_output *out = rows->out;

    if (!row_wanted(rows, NULL, breaker->key) || !rn_status_fits(&rows->room))
        return;
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "provider", breaker->provider);
    rn_output_text(out, "breaker", breaker->key);
    rn_output_str(out, "state", ration_circuit_state_name(breaker->state));
    rn_output_int(out, "generation", (int64_t)breaker->generation);
    if (rn_time_known(breaker->retry_at))
        rn_output_ms(out, "retryAt", breaker->retry_at.us);
    if (breaker->cause[0] != '\0')
        rn_output_str(out, "cause", breaker->cause);
    if (breaker->asleep)
        rn_output_bool(out, "sleeping", true);
    rn_output_close(out, '}');
}

/* Two providers may have limits of one name, and a shadow limit is there to be looked at. */
static void counter_more(void *ctx, rn_output *out, const ration_counter_report *counter)
{
    const status_rows *rows = ctx;

    rn_output_str(out, "provider", counter->provider);
    if (counter->asleep)
        rn_output_bool(out, "sleeping", true);
    rn_output_int(out, "waiting", (int64_t)counter->waiting);
    if (counter->kind == RATION_KIND_RATE) {
        rn_output_micro(out, "burst", counter->max);
        rn_output_micro(out, "margin", counter->reserve);
        rn_output_ms(out, "unitMs", counter->unit_us);
    } else if (counter->kind == RATION_KIND_SHARE) {
        rn_output_micro(out, "max", counter->max);
        rn_output_micro(out, "held", counter->held);
    } else if (counter->has_window) {
        rn_output_str(out, "timeZone", counter->zone != NULL ? counter->zone : "UTC");
    }
    if (counter->enforce == RATION_ENFORCE_SHADOW)
        rn_output_int(out, "shadowed", (int64_t)counter->shadowed);
    rn_quota_write(out, counter, rows->now, rows->only != NULL);
}

/* One list: `reporter` has the one callback that writes its rows. */
static int list_write(overruns *all, const char *name, const char *omitted, rn_status_filter *only,
                      ration_reporter reporter)
{
    const rn_trace_names names = {.ctx = all, .serial = overrun_name};
    status_rows rows = {.out = all->out, .only = only, .now = all->now};
    ration_totals totals;

    all->decider->ops->totals(all->decider, &totals);
    reporter.ctx = &rows;
    if (only != NULL) {
        reporter.limit = only->limit;
        reporter.key = only->key;
    }
    const bool chosen = only == NULL && reporter.counter != NULL && totals.counters > RN_STATUS_ROWS;
    reporter.most = chosen ? RN_STATUS_ROWS : 0;
    reporter.asleep = only != NULL || totals.counters + totals.asleep <= RN_STATUS_ROWS;
    reporter.timelines = only != NULL || totals.counters + (reporter.asleep ? totals.asleep : 0) <= RN_PROJECTED_MAX;
    rn_trace_report_init(&rows.report, all->out, RATION_REPORT_LIMITS, &names);
    rows.report.more = counter_more;
    rows.report.ctx = &rows;
    rn_output_open(all->out, name, '[');
    const int err = all->decider->ops->report(all->decider, all->now, RATION_REPORT_LIMITS, &reporter);
    rn_output_close(all->out, ']');
    if (chosen)
        rows.room.omitted = totals.counters - rows.room.written;
    if (rows.room.omitted > 0)
        rn_output_int(all->out, omitted, (int64_t)rows.room.omitted);
    if (!reporter.asleep && reporter.counter != NULL)
        rn_output_int(all->out, "limitsSleeping", (int64_t)totals.asleep);
    if (rows.tenants_omitted > 0)
        rn_output_int(all->out, "tenantsOmitted", (int64_t)rows.tenants_omitted);
    return err;
}

int rn_status_limits_write(rn_decider *decider, ration_time now, rn_status_filter *only, rn_output *out)
{
    static const struct {
        const char *name, *omitted;
        ration_reporter reporter;
    } lists[] = {
        {"limits", "limitsOmitted", {.counter = on_counter}},
        {"penalties", "penaltiesOmitted", {.penalty = on_penalty}},
        {"breakers", "breakersOmitted", {.breaker = on_breaker}},
    };
    overruns all = {.out = out,
                    .decider = decider,
                    .now = now,
                    .items = rn_mem_alloc(rn_mem_default(), RN_STATUS_OVERRUNS * sizeof(overrun))};
    int err = all.items == NULL ? RATION_ERR_NOMEM : overruns_write(&all);

    for (size_t i = 0; i < sizeof lists / sizeof lists[0] && err == RATION_OK; i++)
        err = list_write(&all, lists[i].name, lists[i].omitted, only, lists[i].reporter);
    rn_mem_free(rn_mem_default(), all.items);
    return err;
}

/* ---- holds that are learned */

static void hold_write(rn_output *out, const rn_holds *holds, size_t index)
{
    const rn_hold_learner *hold = holds->learners[index];
    const int64_t declared_us = rn_hold_declare(hold);

    rn_output_open(out, NULL, '{');
    rn_output_str(out, "provider", holds->rule->name);
    if (index < holds->rule->endpoint_count)
        rn_output_str(out, "endpoint", holds->rule->endpoints[index].path);
    rn_output_int(out, "samples", (int64_t)rn_hold_samples(hold));
    rn_output_ms(out, "floorMs", hold->floor_us);
    if (declared_us != RATION_UNSET) {
        rn_output_ms(out, "p95Ms", hold->p95_us);
        rn_output_ms(out, "declaredMs", declared_us);
    }
    rn_output_close(out, '}');
}

static void holds_write(rn_output *out, const rn_gateway *gateway)
{
    const rn_holds *holds;

    rn_output_open(out, "holds", '[');
    for (size_t i = 0; (holds = rn_gateway_holds(gateway, i)) != NULL; i++) {
        for (size_t j = 0; holds->learners != NULL && j <= holds->rule->endpoint_count; j++) {
            if (holds->learners[j] != NULL)
                hold_write(out, holds, j);
        }
    }
    rn_output_close(out, ']');
}

/* ---- costs */

static void costs_write(rn_output *out, const rn_gateway *gateway)
{
    const rn_costs *costs;

    rn_output_open(out, "costs", '[');
    for (size_t i = 0; (costs = rn_gateway_costs(gateway, i)) != NULL; i++) {
        if (costs->any)
            rn_spending_write(costs->spending, out);
    }
    rn_output_close(out, ']');
}

/* ---- totals */

static void totals_write(const rn_snapshot *s, const rn_history_counts *counts, rn_output *out)
{
    uint64_t rejected = 0;

    for (int i = 0; i < RATION_TOLD_COUNT; i++)
        rejected += s->totals.sync_rejected[i];

    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"submitted", s->totals.submitted},
        {"granted", s->totals.granted},
        {"queued", s->totals.queued},
        {"refused", s->totals.refused},
        {"released", s->totals.released},
        {"cancelled", s->totals.cancelled},
        {"lost", s->totals.lost},
        {"rateLimited", s->totals.rate_limited},
        {"unexpected429", s->totals.unexpected_429},
        {"shadowed", s->totals.shadowed},
        {"syncRejected", rejected},
        {"clockWentBack", s->totals.clock_went_back},
        {"requests", s->gateway.requests},
        {"malformed", s->gateway.malformed},
        {"tokensRefused", s->gateway.tokens_refused},
        {"clientsGoneWaiting", s->gateway.gone_waiting},
        {"clientsGoneRunning", s->gateway.gone_running},
        {"retries", s->gateway.sent_again},
        {"errors", s->gateway.errors},
    };

    rn_output_open(out, "totals", '{');
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        rn_output_int(out, rows[i].name, (int64_t)rows[i].value);
    rn_history_refusals_write(counts, out);
    rn_output_open(out, "upstreamErrors", '{');
    for (int i = 0; i <= RN_UPSTREAM_BROKEN; i++) {
        if (s->gateway.faults[i] > 0)
            rn_output_int(out, rn_upstream_fault_name((rn_upstream_fault)i), (int64_t)s->gateway.faults[i]);
    }
    rn_output_close(out, '}');
    rn_history_outcomes_write(counts, out);
    rn_output_open(out, "healthChecks", '{');
    for (int i = 0; i < RN_CHECK_RESULTS; i++)
        rn_output_int(out, rn_check_result_name((rn_check_result)i), (int64_t)s->gateway.checks[i]);
    rn_output_close(out, '}');
    rn_output_close(out, '}');
}

static void traffic_write(const rn_snapshot *s, rn_output *out)
{
    rn_output_open(out, "exchanges", '{');
    for (int i = 0; i < RN_EXCHANGE_STATES; i++)
        rn_output_int(out, rn_exchange_state_name((rn_exchange_state)i), (int64_t)s->exchanges[i]);
    rn_output_close(out, '}');
    rn_output_int(out, "keptBytes", (int64_t)s->kept_bytes);
    rn_output_open(out, "connections", '{');
    rn_output_int(out, "open", (int64_t)s->connections);
    rn_output_int(out, "turnedAway", (int64_t)s->turned_away);
    rn_output_close(out, '}');
    rn_output_open(out, "upstream", '{');
    rn_output_int(out, "open", (int64_t)s->upstream.open);
    rn_output_int(out, "idle", (int64_t)s->upstream.idle);
    rn_output_int(out, "connects", (int64_t)s->upstream.connects);
    rn_output_int(out, "reuses", (int64_t)s->upstream.reuses);
    rn_output_int(out, "stale", (int64_t)s->upstream.retries);
    rn_output_close(out, '}');
}

static void recording_write(const rn_recording *recording, rn_output *out)
{
    if (recording == NULL)
        return;
    rn_output_open(out, "recording", '{');
    rn_output_str(out, "file", rn_recording_path(recording));
    rn_output_int(out, "bytes", (int64_t)rn_recording_bytes(recording));
    if (rn_recording_error(recording) != NULL)
        rn_output_str(out, "error", rn_recording_error(recording));
    rn_output_close(out, '}');
}

static void config_write(const rn_reload_counts *reloads, rn_output *out)
{
    rn_output_open(out, "config", '{');
    rn_output_ms(out, "loadedAt", reloads->loaded_at.us);
    rn_output_int(out, "reloads", (int64_t)reloads->done);
    rn_output_int(out, "failures", (int64_t)reloads->failed);
    if (reloads->failed > 0) {
        rn_output_ms(out, "failedAt", reloads->failed_at.us);
        rn_output_bool(out, "failing", reloads->well == 0);
    }
    rn_output_close(out, '}');
}

static void ledger_write(const rn_keeper_status *keeper, rn_output *out)
{
    static const char *const strict[] = {
        [RATION_NEED_NOTHING] = "idle", [RATION_NEED_SAVE] = "soon", [RATION_NEED_SAVE_NOW] = "waiting"};
    const rn_ledger_status *ledger = &keeper->ledger;

    if (ledger->path == NULL)
        return;
    rn_output_open(out, "ledger", '{');
    rn_output_str(out, "path", ledger->path);
    rn_output_bool(out, "failing", keeper->attempts > 0);
    rn_output_bool(out, "unclean", ledger->unclean);
    if (rn_time_known(ledger->flushed_at)) {
        rn_output_ms(out, "flushedAt", ledger->flushed_at.us);
        rn_output_ms(out, "flushMs", ledger->flush_us);
    }
    rn_output_ms(out, "ageMs", keeper->age_us);
    rn_output_int(out, "flushes", (int64_t)ledger->flushes);
    rn_output_int(out, "faults", (int64_t)ledger->faults);
    rn_output_int(out, "rows", (int64_t)ledger->rows);
    rn_output_int(out, "pending", (int64_t)ledger->pending);
    rn_output_str(out, "strict", keeper->behind ? "unwritten" : strict[keeper->need]);
    rn_output_int(out, "waiting", (int64_t)keeper->waiting);
    if (ledger->faults > 0)
        rn_output_str(out, "lastError", ledger->error);
    rn_output_close(out, '}');
}

int rn_status_write(const rn_snapshot *s, const rn_status_parts *parts, rn_output *out)
{
    rn_history_counts counts;

    rn_snapshot_counts(s, &counts);
    rn_output_open(out, NULL, '{');
    rn_output_int(out, "snapshot", (int64_t)s->id);
    rn_output_str(out, "version", RATION_VERSION);
    rn_output_ms(out, "startedAt", s->started_at.us);
    rn_output_ms(out, "now", s->now.us);
    rn_output_ms(out, "uptimeMs", rn_sub(s->now.us, s->started_at.us));
    rn_output_bool(out, "draining", s->draining != 0);
    rn_output_int(out, "held", (int64_t)s->totals.held);
    rn_output_int(out, "waiting", (int64_t)s->totals.waiting);
    totals_write(s, &counts, out);
    rn_history_waits_write(&counts, out);
    traffic_write(s, out);
    config_write(&s->reloads, out);
    recording_write(parts->recording, out);
    if (s->fleet.id != NULL)
        rn_fleet_write(&s->fleet, out);
    ledger_write(&s->keeper, out);
    if (parts->planning != NULL)
        rn_planning_write(parts->planning, out);
    holds_write(out, parts->gateway);
    costs_write(out, parts->gateway);
    const int err = rn_status_limits_write(parts->decider, s->now, NULL, out);
    rn_output_close(out, '}');
    rn_output_newline(out);
    return err != RATION_OK ? err : out->err;
}
