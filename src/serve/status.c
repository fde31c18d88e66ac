/* SPDX-License-Identifier: MIT */
/*
 * `GET /v1/status`: what a person asks first.
 *
 * Times are milliseconds as in traces (chapter 9), instants since the Unix epoch. A process with a million scope keys
 * has an answer too: rows beyond RN_STATUS_ROWS are counted instead of written.
 */
#include "serve/status.h"

#include "base/units.h"
#include "trace/writer.h"

/* The rows of one list, and those that had no more room. */
typedef struct status_rows {
    rn_trace_report report;
    size_t written;
    size_t omitted;
} status_rows;

static bool row_fits(status_rows *rows)
{
    if (rows->written < RN_STATUS_ROWS) {
        rows->written++;
        return true;
    }
    rows->omitted++;
    return false;
}

static void on_counter(void *ctx, const ration_counter_report *counter)
{
    status_rows *rows = ctx;

    if (row_fits(rows))
        rows->report.reporter.counter(&rows->report, counter);
}

static void on_penalty(void *ctx, const ration_penalty_report *penalty)
{
    status_rows *rows = ctx;

    if (row_fits(rows))
        rows->report.reporter.penalty(&rows->report, penalty);
}

/* Two providers may have limits of one name, and a shadow limit is there to be looked at. */
static void counter_more(rn_output *out, const ration_counter_report *counter)
{
    rn_output_str(out, "provider", counter->provider);
    rn_output_int(out, "waiting", (int64_t)counter->waiting);
    if (counter->enforce == RATION_ENFORCE_SHADOW)
        rn_output_int(out, "shadowed", (int64_t)counter->shadowed);
}

static int status_rows_write(rn_decider *decider, ration_time now, const char *name, bool counters, rn_output *out)
{
    status_rows rows = {.written = 0};
    const ration_reporter reporter = {
        .ctx = &rows, .counter = counters ? on_counter : NULL, .penalty = counters ? NULL : on_penalty};

    rn_trace_report_init(&rows.report, out, RATION_REPORT_LIMITS, NULL);
    rows.report.more = counter_more;
    rn_output_open(out, name, '[');
    const int err = decider->ops->report(decider, now, RATION_REPORT_LIMITS, &reporter);
    rn_output_close(out, ']');
    if (rows.omitted > 0)
        rn_output_int(out, counters ? "limitsOmitted" : "penaltiesOmitted", (int64_t)rows.omitted);
    return err;
}

static void totals_write(const rn_snapshot *s, rn_output *out)
{
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
        {"syncRejected", s->totals.sync_rejected},
        {"clockWentBack", s->totals.clock_went_back},
        {"requests", s->gateway.requests},
        {"malformed", s->gateway.malformed},
        {"clientsGoneWaiting", s->gateway.gone_waiting},
        {"clientsGoneRunning", s->gateway.gone_running},
        {"errors", s->gateway.errors},
    };

    rn_output_open(out, "totals", '{');
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        rn_output_int(out, rows[i].name, (int64_t)rows[i].value);
    rn_output_open(out, "refusals", '{');
    for (int i = RATION_REASON_NONE + 1; i < RATION_REASON_COUNT; i++) {
        const uint64_t count = rn_snapshot_refusals(s, (ration_reason)i);
        if (count > 0)
            rn_output_int(out, ration_reason_name((ration_reason)i), (int64_t)count);
    }
    rn_output_close(out, '}');
    rn_output_open(out, "upstreamErrors", '{');
    for (int i = 0; i <= RN_UPSTREAM_BROKEN; i++) {
        if (s->gateway.faults[i] > 0)
            rn_output_int(out, rn_upstream_fault_name((rn_upstream_fault)i), (int64_t)s->gateway.faults[i]);
    }
    rn_output_close(out, '}');
    rn_output_close(out, '}');
}

static void traffic_write(const rn_snapshot *s, rn_output *out)
{
    rn_output_open(out, "exchanges", '{');
    for (int i = 0; i < RN_EXCHANGE_STATES; i++)
        rn_output_int(out, rn_exchange_state_name((rn_exchange_state)i), (int64_t)s->exchanges[i]);
    rn_output_close(out, '}');
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

int rn_status_write(const rn_snapshot *s, rn_decider *decider, const rn_recording *recording, rn_output *out)
{
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "version", RATION_VERSION);
    rn_output_ms(out, "startedAt", s->started_at.us);
    rn_output_ms(out, "now", s->now.us);
    rn_output_ms(out, "uptimeMs", rn_sub(s->now.us, s->started_at.us));
    rn_output_bool(out, "draining", s->draining != 0);
    rn_output_int(out, "held", (int64_t)s->totals.held);
    rn_output_int(out, "waiting", (int64_t)s->totals.waiting);
    totals_write(s, out);
    traffic_write(s, out);
    recording_write(recording, out);

    int err = status_rows_write(decider, s->now, "limits", true, out);
    if (err == RATION_OK)
        err = status_rows_write(decider, s->now, "penalties", false, out);
    rn_output_close(out, '}');
    rn_output_newline(out);
    return err != RATION_OK ? err : out->err;
}
