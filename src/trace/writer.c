/* SPDX-License-Identifier: MIT */
/*
 * Lines of a trace.
 *
 * One small function a kind of line, each a list of its members in order. Spans print as milliseconds, capacity as
 * units, both exact. A retry time is told as a span from the decision, never below 0.
 *
 * Invariant: what is written is valid JSON whatever the bytes in names are.
 */
#include "trace/writer.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "core/template.h"
#include "trace/state.h"

#define EXPLANATION_MAX 1024

static void line_open(rn_output *out, ration_time at)
{
    rn_output_open(out, NULL, '{');
    rn_output_ms(out, "at", at.us);
}

static void line_close(rn_output *out)
{
    rn_output_close(out, '}');
    rn_output_newline(out);
}

static void optional_text(rn_output *out, const char *name, ration_text value)
{
    if (value.data != NULL)
        rn_output_text(out, name, value);
}

static void optional_str(rn_output *out, const char *name, const char *value)
{
    optional_text(out, name, ration_text_of(value));
}

static void optional_ms(rn_output *out, const char *name, int64_t us)
{
    if (us != RATION_UNSET && us != RATION_FOREVER_US)
        rn_output_ms(out, name, us);
}

static void optional_instant(rn_output *out, const char *name, ration_time at)
{
    if (rn_time_known(at))
        rn_output_ms(out, name, at.us);
}

static void op_open(rn_output *out, ration_time at, const char *op, ration_text id)
{
    line_open(out, at);
    rn_output_str(out, "op", op);
    optional_text(out, "id", id);
}

static void write_blocking(rn_output *out, const ration_decision *decision, const rn_trace_names *names)
{
    if (decision->blocking_count == 0)
        return;
    rn_output_open(out, "blockingLeases", '[');
    for (size_t i = 0; i < decision->blocking_count; i++)
        optional_text(out, NULL, names->name(names->ctx, decision->blocking[i]));
    rn_output_close(out, ']');
}

static void write_explanation(rn_output *out, const ration_decision *decision)
{
    char text[EXPLANATION_MAX];
    const size_t size = ration_decision_explain(decision, text, sizeof text);

    if (size > 0)
        rn_output_text(out, "explanation", (ration_text){text, size});
}

/* Why, and what would help: common to answers and events. */
static void write_refusal(rn_output *out, ration_time at, const ration_decision *decision, const rn_trace_names *names)
{
    rn_output_str(out, "reason", ration_reason_name(decision->reason));
    rn_output_str(out, "category", ration_category_name(ration_reason_category(decision->reason)));
    rn_output_bool(out, "retryable", ration_reason_retryable(decision->reason));
    optional_str(out, "limit", decision->limit);
    optional_text(out, "key", decision->key);
    if (rn_time_known(decision->retry_at))
        rn_output_ms(out, "retryAfterMs", rn_max(0, rn_sub(decision->retry_at.us, at.us)));
    if (decision->estimate)
        rn_output_bool(out, "estimate", true);
    write_blocking(out, decision, names);
}

void rn_trace_write_decision(rn_output *out, ration_time at, const char *op, ration_text id,
                             const ration_decision *decision, const rn_trace_names *names)
{
    static const char *const results[] = {
        [RATION_REFUSED] = "refused",
        [RATION_GRANTED] = "granted",
        [RATION_QUEUED] = "queued",
        [RATION_PENDING] = "pending",
    };

    op_open(out, at, op, id);
    rn_output_str(out, "result", results[decision->result]);
    if (decision->result == RATION_REFUSED) {
        write_refusal(out, at, decision, names);
        write_explanation(out, decision);
    }
    line_close(out);
}

void rn_trace_write_answer(rn_output *out, ration_time at, const char *op, ration_text id, const char *result)
{
    op_open(out, at, op, id);
    rn_output_str(out, "result", result);
    line_close(out);
}

static void health_open(rn_output *out, ration_time at, ration_text account, bool ok)
{
    line_open(out, at);
    rn_output_str(out, "op", "health");
    rn_output_text(out, "account", account);
    rn_output_bool(out, "ok", ok);
}

static void state_open(rn_output *out, ration_time at)
{
    rn_output_open(out, NULL, '{');
    rn_output_ms(out, "at", at.us);
    rn_output_str(out, "op", "state");
}

void rn_trace_write_state_answer(rn_output *out, ration_time at)
{
    state_open(out, at);
    rn_output_str(out, "result", "loaded");
    line_close(out);
}

void rn_trace_write_health_answer(rn_output *out, ration_time at, ration_text account, bool ok, const char *result)
{
    health_open(out, at, account, ok);
    rn_output_str(out, "result", result);
    line_close(out);
}

static void event_open(rn_output *out, ration_text id, const ration_event *event, const char *name)
{
    line_open(out, event->at);
    rn_output_str(out, "event", name);
    rn_output_text(out, "id", id);
}

void rn_trace_write_event(rn_output *out, ration_text id, const ration_event *event, const rn_trace_names *names)
{
    switch (event->type) {
    case RATION_EVENT_GRANTED:
        event_open(out, id, event, "granted");
        rn_output_ms(out, "waitedMs", event->waited_us);
        break;
    case RATION_EVENT_REFUSED:
        event_open(out, id, event, "refused");
        write_refusal(out, event->at, &event->decision, names);
        rn_output_ms(out, "waitedMs", event->waited_us);
        write_explanation(out, &event->decision);
        break;
    case RATION_EVENT_LOST:
        event_open(out, id, event, "lost");
        break;
    case RATION_EVENT_PENALTY:
    case RATION_EVENT_LIMIT:
    case RATION_EVENT_BREAKER:
    case RATION_EVENT_HEALTH:
        return;
    }
    line_close(out);
}

static void write_quota(rn_output *out, const ration_counter_report *counter)
{
    rn_output_micro(out, "max", counter->max);
    rn_output_micro(out, "usable", counter->usable);
    rn_output_micro(out, "reserve", counter->reserve);
    rn_output_micro(out, "used", counter->used);
    rn_output_micro(out, "external", counter->external);
    rn_output_micro(out, "remaining", counter->remaining);
    if (counter->extra > 0)
        rn_output_micro(out, "extra", counter->extra);
    if (counter->has_window) {
        rn_output_ms(out, "windowStart", counter->window_start.us);
        rn_output_ms(out, "windowEnd", counter->window_end.us);
    }
}

static void write_refusals(rn_output *out, const uint64_t *refused)
{
    rn_output_open(out, "refused", '{');
    for (size_t i = RATION_REASON_NONE + 1; i < RATION_REASON_COUNT; i++) {
        if (refused[i] > 0)
            rn_output_int(out, ration_reason_name((ration_reason)i), (int64_t)refused[i]);
    }
    rn_output_close(out, '}');
}

static void write_tenant(rn_output *out, const ration_tenant_report *tenant)
{
    rn_output_key(out, tenant->name);
    rn_output_open(out, NULL, '{');
    rn_output_micro(out, "guarantee", tenant->guarantee);
    rn_output_micro(out, "held", tenant->held);
    rn_output_micro(out, "own", tenant->own);
    rn_output_micro(out, "lent", tenant->lent);
    rn_output_micro(out, "borrowed", tenant->borrowed);
    rn_output_micro(out, "want", tenant->want);
    rn_output_bool(out, "idle", tenant->idle);
    rn_output_micro(out, "target", tenant->target);
    rn_output_nano(out, "deficitUnitMs", tenant->deficit_unit_ms, tenant->deficit_rest);
    rn_output_int(out, "reclaims", (int64_t)tenant->reclaims);
    rn_output_ms(out, "worstReclaimMs", tenant->worst_reclaim_us);
    rn_output_int(out, "granted", (int64_t)tenant->granted);
    write_refusals(out, tenant->refused);
    rn_output_close(out, '}');
}

/* The id of a request of which a report has the number alone. */
static void write_serial(rn_output *out, const rn_trace_names *names, uint64_t serial)
{
    char name[24];
    rn_builder b;

    if (names != NULL && names->serial != NULL) {
        optional_text(out, NULL, names->serial(names->ctx, serial));
        return;
    }
    rn_builder_init(&b, name, sizeof name);
    rn_builder_char(&b, 'r');
    rn_builder_int(&b, (int64_t)serial);
    rn_output_text(out, NULL, (ration_text){name, b.used});
}

static void write_share(rn_output *out, const ration_counter_report *counter, const rn_trace_names *names)
{
    rn_output_open(out, "tenants", '{');
    for (size_t i = 0; i < counter->tenant_count; i++)
        write_tenant(out, &counter->tenants[i]);
    rn_output_close(out, '}');
    rn_output_open(out, "overrunLeases", '[');
    for (size_t i = 0; i < counter->overrun_count; i++)
        write_serial(out, names, counter->overrun[i]);
    rn_output_close(out, ']');
    if (counter->draining > 0)
        rn_output_micro(out, "draining", counter->draining);
}

static void write_adaptive(rn_output *out, const ration_counter_report *counter)
{
    rn_output_micro(out, "current", counter->current);
    rn_output_micro(out, "held", counter->held);
    rn_output_open(out, "classes", '{');
    for (size_t i = 0; i < counter->class_count; i++) {
        rn_output_key(out, counter->classes[i].name);
        rn_output_open(out, NULL, '{');
        rn_output_micro(out, "reserved", counter->classes[i].reserved);
        rn_output_micro(out, "held", counter->classes[i].held);
        rn_output_close(out, '}');
    }
    rn_output_close(out, '}');
}

static const char *kind_name(ration_kind kind)
{
    static const char *const names[RATION_KIND_COUNT] = {
        [RATION_KIND_NONE] = "",       [RATION_KIND_RATE] = "rate",   [RATION_KIND_CONCURRENCY] = "concurrency",
        [RATION_KIND_QUOTA] = "quota", [RATION_KIND_SHARE] = "share", [RATION_KIND_ADAPTIVE] = "adaptive",
    };

    return names[kind];
}

static void report_counter(void *ctx, const ration_counter_report *counter)
{
    const rn_trace_report *const report = ctx;
    rn_output *const out = report->out;

    rn_output_open(out, NULL, '{');
    rn_output_str(out, "limit", counter->limit);
    if (report->kind == RATION_REPORT_LIMITS)
        rn_output_str(out, "kind", kind_name(counter->kind));
    rn_output_text(out, "key", counter->key);
    switch (counter->kind) {
    case RATION_KIND_RATE:
        rn_output_micro(out, "available", counter->available);
        break;
    case RATION_KIND_CONCURRENCY:
        rn_output_micro(out, "max", counter->max);
        rn_output_micro(out, "held", counter->held);
        break;
    case RATION_KIND_QUOTA:
        write_quota(out, counter);
        break;
    case RATION_KIND_SHARE:
        write_share(out, counter, report->names);
        break;
    case RATION_KIND_ADAPTIVE:
        write_adaptive(out, counter);
        break;
    case RATION_KIND_NONE:
    case RATION_KIND_COUNT:
        break;
    }
    if (counter->paused)
        rn_output_bool(out, "paused", true);
    if (report->more != NULL)
        report->more(report->ctx, out, counter);
    rn_output_close(out, '}');
}

static void report_penalty(void *ctx, const ration_penalty_report *penalty)
{
    rn_output *const out = ((const rn_trace_report *)ctx)->out;

    rn_output_open(out, NULL, '{');
    rn_output_text(out, "penalty", penalty->key);
    optional_str(out, "limit", penalty->limit);
    rn_output_ms(out, "until", penalty->until.us);
    rn_output_int(out, "events", penalty->events);
    rn_output_close(out, '}');
}

static void report_breaker(void *ctx, const ration_breaker_report *breaker)
{
    rn_output *const out = ((const rn_trace_report *)ctx)->out;

    rn_output_open(out, NULL, '{');
    rn_output_text(out, "breaker", breaker->key);
    rn_output_str(out, "state", ration_circuit_state_name(breaker->state));
    rn_output_int(out, "generation", (int64_t)breaker->generation);
    optional_instant(out, "retryAt", breaker->retry_at);
    rn_output_close(out, '}');
}

static void write_fairness(rn_output *out, const ration_tenant_report *tenant)
{
    rn_output_open(out, NULL, '{');
    rn_output_micro(out, "costShare", tenant->cost_share);
    rn_output_micro(out, "requestShare", tenant->request_share);
    rn_output_micro(out, "configuredShare", tenant->configured_share);
    rn_output_micro(out, "costSkew", tenant->cost_skew);
    rn_output_micro(out, "requestSkew", tenant->request_skew);
    rn_output_close(out, '}');
}

static void report_share(void *ctx, const ration_share_report *share)
{
    const rn_trace_report *const report = ctx;
    rn_output *const out = report->out;

    rn_output_open(out, NULL, '{');
    rn_output_str(out, "limit", share->limit);
    rn_output_text(out, "key", share->key);
    rn_output_open(out, "tenants", '{');
    for (size_t i = 0; i < share->tenant_count; i++) {
        rn_output_key(out, share->tenants[i].name);
        if (report->kind == RATION_REPORT_ALLOCATION) {
            rn_output_micro(out, NULL, share->tenants[i].target);
        } else {
            write_fairness(out, &share->tenants[i]);
        }
    }
    rn_output_close(out, '}');
    if (report->kind == RATION_REPORT_FAIRNESS)
        rn_output_bool(out, "unitsDisagree", share->units_disagree);
    rn_output_close(out, '}');
}

static void report_lease(void *ctx, const ration_lease_report *lease)
{
    const rn_trace_report *const report = ctx;
    rn_output *const out = report->out;

    if (lease->waiting)
        return;
    rn_output_open(out, NULL, '{');
    optional_text(out, "id", report->names->name(report->names->ctx, lease->lease));
    optional_text(out, "account", lease->account);
    optional_text(out, "tenant", lease->tenant);
    optional_text(out, "class", lease->class_name);
    rn_output_str(out, "priority", ration_priority_name(lease->priority));
    rn_output_micro(out, "cost", lease->cost);
    rn_output_ms(out, "grantedAt", lease->since.us);
    optional_instant(out, "endsAt", lease->ends_at);
    optional_instant(out, "ttlUntil", lease->ttl_until);
    rn_output_bool(out, "overrun", lease->overrun);
    rn_output_close(out, '}');
}

void rn_trace_report_init(rn_trace_report *report, rn_output *out, ration_report_kind kind, const rn_trace_names *names)
{
    *report = (rn_trace_report){
        .out = out,
        .kind = kind,
        .names = names,
        .reporter =
            {
                .ctx = report,
                .counter = report_counter,
                .penalty = report_penalty,
                .lease = report_lease,
                .breaker = report_breaker,
                .share = report_share,
            },
    };
}

void rn_trace_report_begin(rn_trace_report *report, rn_output *out, ration_time at, ration_report_kind kind,
                           const rn_trace_names *names)
{
    static const char *const ops[] = {
        [RATION_REPORT_STATS] = "stats",           [RATION_REPORT_LIMITS] = "limits",
        [RATION_REPORT_LEASES] = "leases",         [RATION_REPORT_FAIRNESS] = "fairness",
        [RATION_REPORT_ALLOCATION] = "allocation",
    };

    rn_trace_report_init(report, out, kind, names);
    op_open(out, at, ops[kind], (ration_text){NULL, 0});
    rn_output_open(out, "result", '{');
    rn_output_open(out, kind == RATION_REPORT_LEASES ? "leases" : "limits", '[');
}

void rn_trace_report_end(rn_trace_report *report)
{
    rn_output_close(report->out, ']');
    rn_output_close(report->out, '}');
    line_close(report->out);
}

/* A program may name a variable twice; a trace may not. The first counts. */
static void write_vars(rn_output *out, const ration_request *request)
{
    if (request->var_count == 0)
        return;
    rn_output_open(out, "vars", '{');
    for (size_t i = 0; i < request->var_count; i++) {
        bool seen = false;

        for (size_t j = 0; j < i && !seen; j++)
            seen = rn_text_eq(request->vars[j].name, request->vars[i].name);
        if (seen)
            continue;
        rn_output_key(out, request->vars[i].name);
        rn_output_text(out, NULL, request->vars[i].value);
    }
    rn_output_close(out, '}');
}

static void write_asked(rn_output *out, const ration_request *request)
{
    optional_text(out, "provider", request->provider);
    optional_text(out, "account", request->account);
    optional_text(out, "target", request->target);
    optional_text(out, "credential", request->credential);
    optional_text(out, "tenant", request->tenant);
    optional_text(out, "class", request->class_name);
    if (request->cost != RATION_UNSET)
        rn_output_micro(out, "cost", request->cost);
    if (request->hold_us == RATION_FOREVER_US) {
        rn_output_null(out, "hold"); /* not the endpoint's default */
    } else {
        optional_ms(out, "hold", request->hold_us);
    }
    rn_output_ms(out, "wait", rn_min(request->wait_us, RATION_TIME_MAX_US));
    optional_ms(out, "ttl", request->ttl_us);
    if (request->priority != RATION_PRIORITY_UNSET)
        rn_output_str(out, "priority", ration_priority_name(request->priority));
    optional_text(out, "method", request->method);
    /* A query may hold a secret, and no decision rests on it. */
    optional_text(out, "path", rn_path_without_query(request->path));
    optional_text(out, "endpoint", request->endpoint);
    write_vars(out, request);
    if (request->retry)
        rn_output_bool(out, "retry", true);
    if (request->auth != RATION_AUTH_UNSET)
        rn_output_bool(out, "auth", request->auth == RATION_AUTH_YES);
    if (request->health)
        rn_output_bool(out, "health", true);
}

void rn_trace_write_acquire(rn_output *out, ration_time at, ration_text id, const ration_request *request)
{
    op_open(out, at, "acquire", id);
    write_asked(out, request);
    line_close(out);
}

void rn_trace_write_check(rn_output *out, ration_time at, ration_text id, const ration_request *request,
                          ration_check_mode mode)
{
    op_open(out, at, "check", id);
    if (mode == RATION_CHECK_ENFORCER)
        rn_output_str(out, "mode", "enforcer");
    write_asked(out, request);
    line_close(out);
}

static bool header_kept(const rn_trace_filter *filter, ration_text name)
{
    return filter->keep == NULL || filter->keep(filter->ctx, name);
}

/* All values of the header `first`, which is the first of its name: a text, or a list of them. */
static void write_header(rn_output *out, const ration_response *response, size_t first)
{
    const ration_header *const headers = response->headers;
    size_t count = 0;

    for (size_t i = first; i < response->header_count; i++)
        count += rn_text_eq(headers[i].name, headers[first].name);
    rn_output_key(out, headers[first].name);
    if (count == 1) {
        rn_output_text(out, NULL, headers[first].value);
        return;
    }
    rn_output_open(out, NULL, '[');
    for (size_t i = first; i < response->header_count; i++) {
        if (rn_text_eq(headers[i].name, headers[first].name))
            rn_output_text(out, NULL, headers[i].value);
    }
    rn_output_close(out, ']');
}

static void write_headers(rn_output *out, const ration_response *response, const rn_trace_filter *filter)
{
    const ration_header *const headers = response->headers;

    rn_output_open(out, "headers", '{');
    for (size_t i = 0; i < response->header_count; i++) {
        bool seen = !header_kept(filter, headers[i].name);

        for (size_t j = 0; j < i && !seen; j++)
            seen = rn_text_eq(headers[j].name, headers[i].name);
        if (!seen)
            write_header(out, response, i);
    }
    rn_output_close(out, '}');
}

void rn_trace_write_observe(rn_output *out, ration_time at, ration_text id, const ration_response *response,
                            const rn_trace_filter *filter)
{
    op_open(out, at, "observe", id);
    if (response->status > 0)
        rn_output_int(out, "status", response->status);
    write_headers(out, response, filter);
    if (filter->body)
        optional_text(out, "body", response->body);
    line_close(out);
}

void rn_trace_write_release(rn_output *out, ration_time at, ration_text id, const ration_completion *completion)
{
    op_open(out, at, "release", id);
    rn_output_str(out, "outcome", ration_outcome_name(completion->outcome));
    if (completion->cost != RATION_UNSET)
        rn_output_micro(out, "cost", completion->cost);
    line_close(out);
}

void rn_trace_write_op(rn_output *out, ration_time at, const char *op, ration_text id)
{
    op_open(out, at, op, id);
    line_close(out);
}

void rn_trace_write_health(rn_output *out, ration_time at, ration_text account, bool ok)
{
    health_open(out, at, account, ok);
    line_close(out);
}

void rn_trace_write_step(rn_output *out, ration_time at, int64_t by_us)
{
    op_open(out, at, "step", (ration_text){NULL, 0});
    rn_output_ms(out, "by", by_us);
    line_close(out);
}

void rn_trace_write_save(rn_output *out, ration_time at, bool all)
{
    op_open(out, at, "save", (ration_text){NULL, 0});
    rn_output_bool(out, "all", all);
    line_close(out);
}

/* What operators do, and what is answered when it is done. */
static const struct {
    const char *op;
    const char *done;
} operations[] = {
    [RATION_OP_PAUSE] = {"pause", "paused"},   [RATION_OP_RESUME] = {"resume", "resumed"},
    [RATION_OP_RESET] = {"reset", "reset"},    [RATION_OP_GRANT] = {"grant", "granted"},
    [RATION_OP_DRAIN] = {"drain", "draining"}, [RATION_OP_RELOAD] = {"reload", "reloaded"},
};

static void operate_open(rn_output *out, const ration_call *call)
{
    line_open(out, call->at);
    rn_output_str(out, "op", operations[call->op].op);
    if (call->counter != NULL) {
        optional_text(out, "provider", call->counter->provider);
        rn_output_text(out, "limit", call->counter->limit);
        rn_output_text(out, "key", call->counter->key);
    }
    if (call->op == RATION_OP_GRANT)
        rn_output_micro(out, "units", call->units);
}

void rn_trace_write_operate(rn_output *out, const ration_call *call)
{
    operate_open(out, call);
    line_close(out);
}

void rn_trace_write_operate_answer(rn_output *out, const ration_call *call, int err)
{
    operate_open(out, call);
    rn_output_str(out, "result", err == RATION_OK ? operations[call->op].done : "unknown");
    line_close(out);
}

void rn_trace_write_state(rn_output *out, ration_time at, const ration_state *state)
{
    state_open(out, at);
    if (state->unclean)
        rn_output_bool(out, "unclean", true);
    if (state->unclean_at.us != 0)
        rn_output_ms(out, "uncleanAt", state->unclean_at.us);
    rn_output_open(out, "records", '[');
    for (size_t i = 0; i < state->count; i++)
        rn_record_write(out, &state->records[i]);
    rn_output_close(out, ']');
    line_close(out);
}

/* The members of the object, without its opening brace, to the end of the line. */
static void config_members(rn_output *out, ration_text json)
{
    if (json.size > 2)
        rn_output_raw(out, (ration_text){",", 1});
    rn_output_raw(out, rn_text_slice(json, 1, json.size));
    rn_output_newline(out);
}

void rn_trace_write_config(rn_output *out, ration_time started_at, ration_text json)
{
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "op", "config");
    rn_output_ms(out, "startedAt", started_at.us);
    config_members(out, json);
}

void rn_trace_write_reload(rn_output *out, ration_time at, ration_text json)
{
    op_open(out, at, "reload", (ration_text){NULL, 0});
    config_members(out, json);
}
