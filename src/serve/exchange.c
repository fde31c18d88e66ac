/* SPDX-License-Identifier: MIT */
/*
 * One call's life: from the head of a request to the end of its response.
 *
 * What a call holds follows from its state: nothing in OPEN, a body in ESTIMATING, a waiter in WAITING, a lease and
 * perhaps an upstream in SENDING, LOOKING and RESPONDING, a timer in RESTING. From the first attempt on it may also
 * keep its body, and between two attempts what the last one came to (attempt.c). Whatever ends it (an answer, a client
 * that leaves, a broken provider, a refusal, a shutdown) ends it through `rn_exchange_end`, so no path can forget a
 * lease, a waiter or a body.
 *
 * A client may leave in the same turn in which its waiter is granted: the cancel then comes too late, and the event
 * with this exchange in it is on its way. LEAVING keeps the memory until that event has been taken.
 *
 * Invariants: in exactly one list of the gateway; `in` and `up` are NULL as soon as net has declared them dead; a lease
 * is released exactly once, before the next one is asked for.
 */
#include "serve/exchange.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/trace_context.h"

#define NAME_BYTES 48
#define STAMP_BYTES 96
#define SEEN_MAX_BYTES ((size_t)1 << 20)
#define LONG_TARGET_BYTES 8000 /* RFC 9112, 3: up to here a target ought to be taken */

static const char *const state_names[RN_EXCHANGE_STATES] = {"open",    "estimating", "waiting", "sending",
                                                            "looking", "responding", "resting", "leaving"};

const char *rn_exchange_state_name(rn_exchange_state state)
{
    return state_names[state];
}

void rn_exchange_enter(rn_exchange *x, rn_exchange_state state)
{
    rn_gateway *gw = x->gateway;

    TAILQ_REMOVE(&gw->states[x->state], x, link);
    gw->state_sizes[x->state]--;
    x->state = state;
    TAILQ_INSERT_TAIL(&gw->states[state], x, link);
    gw->state_sizes[state]++;
}

static void on_event(rn_party *party, const ration_event *event);
static void on_rested(void *user, ration_time now);

static rn_exchange *exchange_new(rn_gateway *gw, rn_inbound *in)
{
    rn_exchange *x = rn_mem_zalloc(rn_mem_default(), 1, sizeof *x);

    if (x == NULL)
        return NULL;
    rn_output_init(&x->seen, rn_mem_default(), SEEN_MAX_BYTES);
    rn_output_init(&x->kept.bytes, rn_mem_default(), SIZE_MAX);
    rn_timer_init(&x->timer, gw->loop, on_rested, x);
    x->party.event = on_event;
    x->gateway = gw;
    x->in = in;
    x->id = gw->counts.requests;
    x->waited_us = RATION_UNSET;
    x->cost = RATION_UNSET;
    x->job = RN_NO_JOB;
    rn_inbound_set_user(in, x);
    TAILQ_INSERT_TAIL(&gw->states[RN_EXCHANGE_OPEN], x, link);
    gw->state_sizes[RN_EXCHANGE_OPEN]++;
    return x;
}

static void exchange_free(rn_exchange *x)
{
    rn_mem_free(rn_mem_default(), x->usage);
    if (x->job != RN_NO_JOB)
        rn_planning_leaves(x->gateway->planning, x->job, x->attempts > 0);
    rn_mem_free(rn_mem_default(), x->span);
    TAILQ_REMOVE(&x->gateway->states[x->state], x, link);
    x->gateway->state_sizes[x->state]--;
    rn_output_fini(&x->seen);
    rn_exchange_bind(x, NULL);
    rn_mem_free(rn_mem_default(), x->own_tenant);
    rn_mem_free(rn_mem_default(), x);
}

int64_t rn_exchange_charged(const rn_exchange *x)
{
    return x->cost != RATION_UNSET ? x->cost : rn_costs_find(x->to->costs, x->route.path).usual;
}

/* What the response has told of its cost; RATION_UNSET: nothing, the estimate stands. Counts it. */
static int64_t exchange_usage(rn_exchange *x)
{
    rn_usage_told told = {RN_COST_ESTIMATE, RN_USAGE_FINE, RATION_UNSET};

    if (x->cost_rule == NULL || !rn_cost_is_told(x->cost_rule))
        return RATION_UNSET;
    if (x->usage != NULL)
        told = rn_usage_end(x->usage, x->ended);
    rn_spending_settle(x->to->costs->spending, &told, rn_exchange_charged(x), x->status / 100 == 2);
    return told.micro;
}

void rn_exchange_release(rn_exchange *x, ration_outcome outcome)
{
    rn_decider *d = x->gateway->decider;
    const ration_time now = rn_loop_now(x->gateway->loop);
    const ration_completion completion = {.outcome = outcome, .cost = exchange_usage(x)};

    x->gateway->counts.outcomes[outcome]++;
    rn_span_add(x, &completion);
    if (x->attempts > 1)
        x->gateway->counts.retries[outcome]++;
    if (x->hold != NULL)
        rn_hold_learn(x->hold, now, rn_sub(now.us, x->granted_at.us), outcome == RATION_OUTCOME_SUCCESS);
    if (d->ops->release(d, now, x->lease, &completion) != RATION_OK)
        x->gateway->counts.errors++;
    x->lease = (ration_lease){0, 0};
    rn_gateway_touch(x->gateway);
}

void rn_exchange_end(rn_exchange *x, ration_outcome outcome)
{
    rn_gateway *gw = x->gateway;
    rn_decider *d = gw->decider;

    if (x->in != NULL)
        rn_inbound_abort(x->in);
    if (x->up != NULL)
        rn_upstream_abort(x->up);
    x->in = NULL;
    x->up = NULL;
    rn_timer_stop(&x->timer);
    rn_estimate_free(x->estimate);
    x->estimate = NULL;
    rn_kept_forget(x);
    rn_fallen_forget(x);

    if (x->state == RN_EXCHANGE_WAITING) {
        const int err = d->ops->cancel(d, rn_loop_now(gw->loop), x->lease);
        rn_gateway_touch(gw);
        if (err != RATION_OK) {
            rn_exchange_enter(x, RN_EXCHANGE_LEAVING);
            return;
        }
    } else if (x->lease.generation != 0) {
        rn_exchange_release(x, outcome);
    }
    rn_span_tell(x);
    exchange_free(x);
}

/* ---- what the client gets to hear */

ration_text rn_exchange_name(const rn_exchange *x, char *buffer, size_t size)
{
    rn_builder b;

    rn_builder_init(&b, buffer, size);
    rn_builder_str(&b, x->gateway->run_id);
    rn_builder_char(&b, '-');
    rn_builder_int(&b, (int64_t)x->id);
    return (ration_text){b.data, b.used};
}

static void field_add(rn_http_field *fields, size_t *count, const char *name, ration_text value)
{
    fields[(*count)++] = (rn_http_field){ration_text_of(name), value};
}

size_t rn_exchange_stamp(const rn_exchange *x, rn_http_field *fields, char *buffer, size_t size)
{
    const ration_text name = rn_exchange_name(x, buffer, size);
    size_t count = 0;
    rn_builder b;

    field_add(fields, &count, "Ration-Request-Id", name);
    if (x->waited_us == RATION_UNSET)
        return count;
    rn_builder_init(&b, buffer + name.size + 1, size - name.size - 1);
    rn_builder_ms(&b, x->waited_us);
    field_add(fields, &count, "Ration-Waited", (ration_text){b.data, b.used});
    return count;
}

size_t rn_exchange_rate_limits(rn_exchange *x, const ration_decision *refused, rn_http_field *fields, char *buffer)
{
    rn_decider *d = x->gateway->decider;
    rn_standing standings[RN_RATELIMIT_SHOWN];

    if (d->ops->standing == NULL || (refused == NULL && x->lease.generation == 0))
        return 0;
    return rn_ratelimit_write(standings, d->ops->standing(d, x->lease, refused, standings, RN_RATELIMIT_SHOWN), buffer,
                              fields);
}

/* The fields of a problem response, and its status. */
static rn_response problem_response(rn_exchange *x, const rn_problem *problem, rn_http_field *fields, char *stamp,
                                    char *after, char *limits)
{
    const ration_decision *d = problem->decision;
    size_t count = rn_exchange_stamp(x, fields, stamp, STAMP_BYTES);

    field_add(fields, &count, "Content-Type", ration_text_of(RN_PROBLEM_TYPE));
    field_add(fields, &count, "Cache-Control", ration_text_of("no-store"));
    if (d != NULL) {
        const int64_t seconds = rn_refusal_retry_after(d, rn_loop_now(x->gateway->loop));
        rn_builder b;

        field_add(fields, &count, "Ration-Refused", ration_text_of(ration_reason_name(d->reason)));
        rn_builder_init(&b, after, NAME_BYTES);
        rn_builder_int(&b, seconds);
        if (seconds > 0)
            field_add(fields, &count, "Retry-After", (ration_text){b.data, b.used});
        count += rn_exchange_rate_limits(x, d, fields + count, limits);
    }
    return (rn_response){.status = d != NULL ? rn_refusal_status(d->reason) : problem->status,
                         .fields = {fields, count}};
}

void rn_exchange_fail(rn_exchange *x, const rn_problem *problem)
{
    char name[NAME_BYTES], stamp[STAMP_BYTES], after[NAME_BYTES], limits[RN_RATELIMIT_BYTES];
    rn_http_field fields[8];
    rn_problem full = *problem;
    rn_output body;

    if (x->in == NULL)
        return;
    if (rn_inbound_started(x->in)) {
        rn_inbound_abort(x->in);
        x->in = NULL;
        return;
    }
    full.request_id = rn_exchange_name(x, name, sizeof name);
    if (x->to != NULL)
        full.account = ration_text_of(x->to->account->name);
    full.waited_us = x->waited_us;

    rn_output_init(&body, rn_mem_default(), RN_PROBLEM_MAX);
    rn_problem_write(&body, &full);
    const rn_response response = problem_response(x, &full, fields, stamp, after, limits);
    if (body.err != RATION_OK ||
        rn_inbound_respond(x->in, &response, (ration_text){body.data, body.size}) != RATION_OK) {
        rn_inbound_abort(x->in);
    } else {
        x->gateway->counts.responses[response.status / 100]++;
    }
    x->in = NULL;
    rn_output_fini(&body);
}

/* ---- refusals */

/* Tell the client and the operator, and end. `detail` absent: the decision's explanation. */
static void exchange_refuse(rn_exchange *x, const ration_decision *decision, ration_text detail, const char *field)
{
    const rn_problem problem = {.decision = decision, .detail = detail, .field = ration_text_of(field)};
    const rn_http_fields fields =
        x->in != NULL ? rn_inbound_head(x->in)->fields : (rn_http_fields){.items = NULL, .count = 0};
    char name[NAME_BYTES];
    const rn_refused refused = {.request_id = rn_exchange_name(x, name, sizeof name),
                                .account = ration_text_of(x->to != NULL ? x->to->account->name : NULL),
                                .tenant = rn_http_find(fields, "Ration-Tenant"),
                                .traceparent = rn_trace_context_find(fields),
                                .waited_us = x->waited_us,
                                .decision = decision,
                                .detail = detail};

    rn_gateway_refused(x->gateway, &refused);
    rn_exchange_fail(x, &problem);
    rn_exchange_end(x, RATION_OUTCOME_CANCELLED);
}

/* The decider has refused the call, or another attempt of it. */
static void exchange_refused(rn_exchange *x, const ration_decision *decision)
{
    char buffer[RN_MEANT_BYTES];
    const char *field = NULL;

    if (x->attempts > 0) {
        rn_attempt_give(x, RN_RETRY_REFUSED);
        return;
    }
    const ration_text detail = rn_exchange_explain(x, decision, buffer, &field);
    exchange_refuse(x, decision, detail, field);
}

void rn_exchange_turn_away(rn_exchange *x, ration_reason reason, const char *detail, const char *field)
{
    const ration_decision decision = rn_refusal_of(reason, rn_loop_now(x->gateway->loop));

    rn_gateway_turned_away(x->gateway, reason);
    exchange_refuse(x, &decision, ration_text_of(detail), field);
}

void rn_exchange_drain(rn_exchange *x)
{
    rn_exchange_turn_away(x, RATION_REASON_DRAINING, "the gateway is shutting down", NULL);
}

void rn_exchange_reject(rn_exchange *x, int status, const char *title, const char *detail, ration_text field)
{
    rn_gateway *gw = x->gateway;
    const rn_problem problem = {.status = status,
                                .name = status == 501 ? "not_implemented" : "bad_request",
                                .title = title,
                                .detail = ration_text_of(detail),
                                .field = field};

    gw->counts.malformed++;
    rn_log_gated(gw->log, &gw->malformed_gate, rn_loop_now(gw->loop), "warn", "rejected", "title", title, "detail",
                 detail, NULL);
    rn_exchange_fail(x, &problem);
    rn_exchange_end(x, RATION_OUTCOME_CANCELLED);
}

/* Something of ours failed: no memory, or an error code where none was expected. */
static void exchange_error(rn_exchange *x, int err)
{
    rn_gateway *gw = x->gateway;
    const rn_problem problem = {.status = 503,
                                .name = "internal",
                                .title = "The gateway could not carry out the request",
                                .detail = ration_text_of(ration_err_text(err))};

    gw->counts.errors++;
    rn_log_gated(gw->log, &gw->error_gate, rn_loop_now(gw->loop), "error", "cannot carry out a request", "error",
                 ration_err_text(err), NULL);
    rn_exchange_fail(x, &problem);
    rn_exchange_end(x, RATION_OUTCOME_CANCELLED);
}

void rn_exchange_unsent(rn_exchange *x, int err)
{
    if (err == RATION_ERR_INVALID) {
        rn_exchange_reject(x, 400, "Request cannot be passed on", "a method, target or field is outside HTTP/1.1",
                           (ration_text){NULL, 0});
    } else {
        exchange_error(x, err);
    }
}

void rn_exchange_note(rn_exchange *x, rn_upstream_fault fault, const char *words)
{
    rn_gateway *gw = x->gateway;

    gw->counts.faults[fault]++;
    rn_log_gated(gw->log, &gw->fault_gates[fault], rn_loop_now(gw->loop), "warn", "upstream fault", "kind",
                 rn_upstream_fault_name(fault), "account", x->to->account->name, "words", words, NULL);
}

void rn_exchange_blame(rn_exchange *x, rn_upstream_fault fault, const char *words)
{
    static const char *const titles[RN_FAULT_KINDS] = {
        [RN_UPSTREAM_CONNECT] = "The provider cannot be reached",
        [RN_UPSTREAM_TLS] = "No secure connection to the provider",
        [RN_UPSTREAM_TIMEOUT] = "The provider took too long",
        [RN_UPSTREAM_BROKEN] = "The provider's answer broke off or is no HTTP",
    };
    const rn_problem problem = {.status = fault == RN_UPSTREAM_TIMEOUT ? 504 : 502,
                                .name = rn_upstream_fault_name(fault),
                                .title = titles[fault],
                                .detail = ration_text_of(words)};

    rn_exchange_fail(x, &problem);
    rn_exchange_end(x, RATION_OUTCOME_FAILURE);
}

void rn_exchange_broken(rn_exchange *x, rn_upstream_fault fault, const char *words)
{
    rn_exchange_note(x, fault, words);
    rn_exchange_blame(x, fault, words);
}

/* ---- from the head to the decider */

/* The parts of a request that concern ration. False: it was rejected, and the exchange is over. */
static bool exchange_read(rn_exchange *x, const rn_http_head *head)
{
    rn_gateway *gw = x->gateway;
    const ration_text no_field = {NULL, 0};
    rn_directive_fault fault;
    char detail[160];
    rn_builder b;

    /* Its answer would show the client the credential that was added. */
    if (rn_text_is(head->method, "TRACE")) {
        rn_exchange_reject(x, 501, "Method not supported", "TRACE would show the account's credential", no_field);
        return false;
    }
    if (rn_route_parse(head->target, &x->route) != RATION_OK) {
        rn_exchange_reject(x, 400, "Malformed target",
                           "the target must be /ACCOUNT/PATH; the gateway is no forward proxy", no_field);
        return false;
    }
    if (rn_gateway_reserve(gw, head->fields.count) != RATION_OK) {
        exchange_error(x, RATION_ERR_NOMEM);
        return false;
    }
    for (size_t i = 0; i < head->fields.count; i++)
        gw->headers[i] = (ration_header){head->fields.items[i].name, head->fields.items[i].value};
    if (rn_directives_read(gw->headers, head->fields.count, &x->directives, &fault) == RATION_OK)
        return true;

    rn_builder_init(&b, detail, sizeof detail);
    rn_builder_text(&b, rn_text_slice(fault.field, 0, 64));
    rn_builder_str(&b, " must be ");
    rn_builder_str(&b, fault.want);
    rn_exchange_reject(x, 400, "Malformed request field", detail, fault.field);
    return false;
}

/* So long more was it held back, by the decider or between two attempts. */
static void exchange_waited(rn_exchange *x, int64_t us)
{
    x->waited_us = rn_add(rn_max(x->waited_us, 0), us);
}

static void exchange_granted(rn_exchange *x, ration_lease lease, int64_t waited_us)
{
    x->lease = lease;
    x->granted_at = rn_loop_now(x->gateway->loop);
    x->status = 0;
    exchange_waited(x, waited_us);
    rn_histogram_add(&x->gateway->counts.waits[x->priority], waited_us);
    if (x->job != RN_NO_JOB)
        rn_planning_sent(x->gateway->planning, x->job, x->directives.retry || x->attempts > 0);
    x->gateway->counts.sent_again += x->attempts > 0;
    x->attempts++;
    rn_fallen_forget(x);
    rn_exchange_send(x);
}

/* The hold that is declared: the client's word, else what was learned where the config says so. */
static int64_t exchange_hold(rn_exchange *x)
{
    if (x->directives.hold_us != RATION_UNSET)
        return x->directives.hold_us;
    x->hold = rn_holds_find(x->to->holds, x->route.path);
    return x->hold != NULL ? rn_hold_declare(x->hold) : RATION_UNSET;
}

/* How many retries there may be and until when, once it is known whom the call is for. */
static void exchange_begin(rn_exchange *x)
{
    const rn_destination *to = x->to;
    const rn_provider *provider = to->costs->provider;
    const int64_t wait_us = x->directives.wait_us;
    const size_t endpoint = to->costs->any_retries ? rn_costs_endpoint(to->costs, x->route.path) : SIZE_MAX;

    x->retries = rn_retries_allowed(provider, endpoint, to->account);
    x->deadline = rn_time_add(rn_loop_now(x->gateway->loop),
                              wait_us != RATION_UNSET ? wait_us : rn_config_settings(x->gateway->config)->wait_us);
    rn_span_begin(x);
}

static ration_request exchange_request(rn_exchange *x)
{
    const rn_directives *directives = &x->directives;

    return (ration_request){
        .account = ration_text_of(x->to->account->name),
        .method = rn_inbound_head(x->in)->method,
        .path = x->route.path,
        .tenant = directives->tenant,
        .class_name = directives->class_name,
        .priority = directives->priority,
        .retry = directives->retry || x->attempts > 0,
        .cost = x->cost,
        .hold_us = exchange_hold(x),
        .wait_us = rn_max(0, rn_sub(x->deadline.us, rn_loop_now(x->gateway->loop).us)),
        .ttl_us = RATION_UNSET,
        .user = x,
    };
}

/* The decider could not be asked. */
static void exchange_unasked(rn_exchange *x, int err)
{
    if (x->attempts > 0) {
        rn_attempt_give(x, RN_RETRY_REFUSED);
    } else if (err == RATION_ERR_INVALID) {
        rn_exchange_reject(x, rn_inbound_head(x->in)->target.size > LONG_TARGET_BYTES ? 414 : 400,
                           "Request cannot be decided on",
                           "its path, its names or a number in its fields are beyond what limits can be kept by",
                           (ration_text){NULL, 0});
    } else {
        exchange_error(x, err);
    }
}

/* A reload has taken its account away while it held nothing. */
static void exchange_homeless(rn_exchange *x)
{
    if (x->attempts > 0) {
        rn_attempt_give(x, RN_RETRY_REFUSED);
    } else {
        rn_exchange_turn_away(x, RATION_REASON_UNKNOWN_ACCOUNT, "no account of this name is configured any more", NULL);
    }
}

void rn_exchange_submit(rn_exchange *x)
{
    rn_gateway *gw = x->gateway;
    ration_decision decision;

    if (x->to->all != gw->destinations && !rn_exchange_rebind(x)) {
        exchange_homeless(x);
        return;
    }
    if (x->attempts == 0)
        exchange_begin(x);
    const ration_request request = exchange_request(x);
    const int err = gw->decider->ops->submit(gw->decider, rn_loop_now(gw->loop), &request, &decision);
    rn_gateway_touch(gw);
    if (err != RATION_OK) {
        exchange_unasked(x, err);
        return;
    }
    x->priority = decision.priority;
    switch (decision.result) {
    case RATION_GRANTED:
        exchange_granted(x, decision.lease, 0);
        return;
    case RATION_QUEUED:
    case RATION_PENDING:
        x->lease = decision.lease;
        rn_span_waits(x, decision.limit);
        rn_exchange_enter(x, RN_EXCHANGE_WAITING);
        return;
    case RATION_REFUSED:
        exchange_refused(x, &decision);
        return;
    }
}

/* The pause between two attempts is over. */
static void on_rested(void *user, ration_time now)
{
    rn_exchange *x = user;

    exchange_waited(x, rn_max(0, rn_sub(now.us, x->rests_at.us)));
    rn_exchange_submit(x);
}

static void on_event(rn_party *party, const ration_event *event)
{
    rn_exchange *x = (rn_exchange *)(void *)party;
    const bool leaving = x->state == RN_EXCHANGE_LEAVING;

    switch (event->type) {
    case RATION_EVENT_GRANTED:
        if (!leaving) {
            exchange_granted(x, event->lease, event->waited_us);
            return;
        }
        x->lease = event->lease;
        x->granted_at = event->at;
        exchange_waited(x, event->waited_us);
        rn_exchange_end(x, RATION_OUTCOME_CANCELLED);
        return;
    case RATION_EVENT_REFUSED:
        x->lease = (ration_lease){0, 0};
        exchange_waited(x, event->waited_us);
        if (leaving) {
            rn_exchange_end(x, RATION_OUTCOME_CANCELLED);
            return;
        }
        rn_exchange_enter(x, RN_EXCHANGE_OPEN);
        exchange_refused(x, &event->decision);
        return;
    case RATION_EVENT_LOST:
        x->lease = (ration_lease){0, 0};
        return;
    case RATION_EVENT_PENALTY:
    case RATION_EVENT_LIMIT:
    case RATION_EVENT_BREAKER:
    case RATION_EVENT_HEALTH:
        return;
    }
}

/* ---- what it will cost */

/* The number was found, or there is none: ask the decider. */
static void exchange_estimated(rn_exchange *x, rn_estimate_source source)
{
    x->to->costs->spending->counts.estimates[source]++;
    rn_estimate_free(x->estimate);
    x->estimate = NULL;
    rn_exchange_submit(x);
}

static void exchange_estimate_feed(rn_exchange *x, ration_text bytes)
{
    const int err = rn_kept_add(x, bytes);

    if (err == RATION_ERR_NOMEM) {
        exchange_error(x, err);
        return;
    }
    rn_estimate_feed(x->estimate, bytes);
    if (err == RATION_OK && x->kept.bytes.size <= (uint64_t)x->cost_rule->estimate_body)
        return;
    rn_inbound_pause(x->in);
    exchange_estimated(x, RN_ESTIMATE_DEFAULT);
}

static void exchange_estimate_end(rn_exchange *x, rn_http_fields trailers)
{
    x->kept.whole = true;
    x->kept.trailers = trailers;
    exchange_estimated(x, rn_cost_in_body(x->estimate, &x->cost) ? RN_ESTIMATE_POINTER : RN_ESTIMATE_DEFAULT);
}

/* Whether there is a body to look for the number in, and room for it. */
static bool exchange_may_read(const rn_exchange *x, const rn_http_head *head)
{
    return x->cost_rule->estimate_pointer != NULL && head->body_bytes != 0 &&
           head->body_bytes <= x->cost_rule->estimate_body && x->gateway->kept_bytes < RN_KEPT_MAX_BYTES;
}

/* The client's word, else what the config says where to look; a body is read first. */
static void exchange_price(rn_exchange *x, const rn_http_head *head)
{
    const rn_cost_rule *rule = x->to->costs->any ? rn_costs_find(x->to->costs, x->route.path).rule : NULL;

    x->cost_rule = rule;
    x->cost = x->directives.cost;
    if (x->cost != RATION_UNSET || rule == NULL || !rn_cost_is_estimated(rule)) {
        rn_exchange_submit(x);
        return;
    }
    x->cost = rule->estimate_default;
    if (rn_cost_in_fields(rule, head->fields, &x->cost)) {
        x->to->costs->spending->counts.estimates[RN_ESTIMATE_HEADER]++;
    } else if (exchange_may_read(x, head)) {
        x->estimate = rn_estimate_new(rule);
        if (x->estimate == NULL) {
            exchange_error(x, RATION_ERR_NOMEM);
            return;
        }
        rn_exchange_enter(x, RN_EXCHANGE_ESTIMATING);
        rn_inbound_resume(x->in);
        return;
    } else {
        x->to->costs->spending->counts.estimates[RN_ESTIMATE_DEFAULT]++;
    }
    rn_exchange_submit(x);
}

/* ---- what net says about the client */

static void on_request(void *user, rn_inbound *in, const rn_http_head *head)
{
    rn_gateway *gw = user;
    const rn_client *client;

    gw->counts.requests++;
    rn_exchange *x = exchange_new(gw, in);
    if (x == NULL) {
        gw->counts.errors++;
        rn_inbound_abort(in);
        return;
    }
    if (!exchange_read(x, head))
        return;
    if (!rn_exchange_identify(x, &client))
        return;
    if (rn_gateway_draining(gw)) {
        rn_exchange_drain(x);
        return;
    }
    if (rn_exchange_address(x, client) && rn_exchange_permit(x, client))
        exchange_price(x, head);
}

static void on_body(void *user, rn_inbound *in, ration_text bytes)
{
    rn_exchange *x = rn_inbound_user(in);

    (void)user;
    if (x->state == RN_EXCHANGE_ESTIMATING) {
        exchange_estimate_feed(x, bytes);
    } else {
        rn_exchange_relay(x, bytes);
    }
}

static void on_end(void *user, rn_inbound *in, rn_http_fields trailers)
{
    rn_exchange *x = rn_inbound_user(in);

    (void)user;
    if (x->state == RN_EXCHANGE_ESTIMATING) {
        exchange_estimate_end(x, trailers);
    } else {
        rn_exchange_relay_end(x, trailers);
    }
}

static void on_drain(void *user, rn_inbound *in)
{
    rn_exchange *x = rn_inbound_user(in);

    (void)user;
    if (x->up != NULL)
        rn_upstream_resume(x->up);
}

static void on_gone(void *user, rn_inbound *in, rn_gone why)
{
    rn_exchange *x = rn_inbound_user(in);
    rn_gateway *gw = user;

    (void)why;
    if (x->state == RN_EXCHANGE_WAITING || x->state == RN_EXCHANGE_ESTIMATING || x->state == RN_EXCHANGE_RESTING) {
        gw->counts.gone_waiting++;
    } else {
        gw->counts.gone_running++;
    }
    x->in = NULL;
    rn_exchange_end(x, RATION_OUTCOME_CANCELLED);
}

const rn_server_handlers rn_exchange_handlers = {
    .on_request = on_request,
    .on_body = on_body,
    .on_end = on_end,
    .on_drain = on_drain,
    .on_gone = on_gone,
};
