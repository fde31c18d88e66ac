/* SPDX-License-Identifier: MIT */
/*
 * A granted call on its way to the provider and back.
 *
 * Heads are built anew from parsed fields, never relayed as bytes. Bodies are relayed piece by piece: when one side is
 * full, the other is paused until it has drained, so a call holds at most what net queues for each side.
 *
 * The decider hears of the response when its head is there, so that a 429 or a quota header counts before the next call
 * is decided. Where a body has to be looked into (`bodyContains`), the head is kept back until LOOK_BYTES of it have
 * come or it has ended. A response by which the call may be made again is kept back whole, up to HELD_BYTES of its
 * body.
 */
#include "serve/exchange.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/outcome.h"

#define LOOK_BYTES 16384
#define HELD_BYTES 65536
#define STAMP_BYTES 96
#define STAMP_FIELDS (2 + RN_RATELIMIT_FIELDS)
#define OWN_FIELDS 2 /* a request gets: a credential, an encoding */
#define PUMP_BYTES 65536

/* ---- the way out */

/* Whether the response is looked into, which a compressed one cannot be. */
static bool looks_inside(const rn_exchange *x)
{
    return x->to->errors->body_contains != NULL || (x->cost_rule != NULL && x->cost_rule->actual_pointer != NULL);
}

/*
 * Neither this hop's own fields, nor what ration reads or sets itself. For trailers too: a credential there is no less
 * one.
 */
static bool request_field_goes(const rn_exchange *x, rn_http_fields all, ration_text name)
{
    const char *credential = x->to->account->credential.header;

    return !rn_http_is_hop_by_hop(all, name) && !rn_directive_is(name) && !rn_text_is_nocase(name, "Host") &&
           !rn_text_is_nocase(name, "Expect") && (credential == NULL || !rn_text_is_nocase(name, credential));
}

static rn_http_fields request_fields(rn_exchange *x, rn_http_fields given)
{
    rn_http_field *out = x->gateway->fields;
    size_t count = 0;

    const bool plain = looks_inside(x);

    for (size_t i = 0; i < given.count; i++) {
        const ration_text name = given.items[i].name;

        if (request_field_goes(x, given, name) && !(plain && rn_text_is_nocase(name, "Accept-Encoding")))
            out[count++] = given.items[i];
    }
    if (plain)
        out[count++] = (rn_http_field){ration_text_of("Accept-Encoding"), ration_text_of("identity")};
    count += rn_gateway_credential(x->to, out + count);
    return (rn_http_fields){out, count};
}

/* The base URL's path and what followed the account, unchanged. */
static ration_text request_target(rn_exchange *x, ration_text target)
{
    rn_output *out = &x->gateway->target;
    const char *prefix = x->to->account->base_url.prefix;
    rn_route route;

    rn_output_clear(out);
    (void)rn_route_parse(target, &route);
    rn_output_raw(out, ration_text_of(prefix));
    if (prefix[0] == '\0' && (route.rest.size == 0 || route.rest.data[0] != '/'))
        rn_output_raw(out, ration_text_of("/"));
    rn_output_raw(out, route.rest);
    return (ration_text){out->data, out->size};
}

/* The beginning of the body, cut at the same byte however it came. */
static ration_text looked_at(const rn_exchange *x)
{
    return rn_text_slice((ration_text){x->seen.data, x->seen.size}, 0, LOOK_BYTES);
}

static void observe(rn_exchange *x, const rn_http_head *head)
{
    if (x->lease.generation != 0)
        rn_gateway_observe(x->gateway, x->lease, head, looked_at(x));
}

/* ---- the way back */

static bool response_field_goes(rn_http_fields all, ration_text name)
{
    return !rn_http_is_hop_by_hop(all, name) && !rn_text_is_nocase(name, "Ration-Request-Id") &&
           !rn_text_is_nocase(name, "Ration-Waited");
}

/* A part of the body for the client. False: the exchange is over. */
static bool pass_on(rn_exchange *x, ration_text bytes)
{
    const int flow = rn_inbound_write(x->in, bytes);

    if (flow < 0) {
        rn_exchange_broken(x, RN_UPSTREAM_BROKEN, ration_err_text(flow));
        return false;
    }
    if (flow == RN_FLOW_FULL && x->up != NULL)
        rn_upstream_pause(x->up);
    return true;
}

bool rn_exchange_start(rn_exchange *x, const rn_http_head *head)
{
    rn_gateway *gw = x->gateway;
    const bool bodiless = rn_text_is(rn_inbound_head(x->in)->method, "HEAD") || head->status == 304;
    char stamp[STAMP_BYTES], limits[RN_RATELIMIT_BYTES];
    size_t count = 0;

    int err = rn_gateway_reserve(gw, head->fields.count + STAMP_FIELDS);
    for (size_t i = 0; err == RATION_OK && i < head->fields.count; i++) {
        if (response_field_goes(head->fields, head->fields.items[i].name))
            gw->fields[count++] = head->fields.items[i];
    }
    if (err == RATION_OK) {
        count += rn_exchange_stamp(x, gw->fields + count, stamp, sizeof stamp);
        if (!rn_ratelimit_is_told(head->fields))
            count += rn_exchange_rate_limits(x, NULL, gw->fields + count, limits);
        const rn_response response = {.status = head->status,
                                      .reason = head->reason,
                                      .fields = {gw->fields, count},
                                      .body_bytes = bodiless ? head->told_bytes : head->body_bytes};
        err = rn_inbound_start(x->in, &response);
    }
    if (err != RATION_OK) {
        rn_exchange_broken(x, RN_UPSTREAM_BROKEN, "the provider's response cannot be passed on");
        return false;
    }
    gw->counts.responses[head->status / 100]++;
    rn_exchange_enter(x, RN_EXCHANGE_RESPONDING);
    /* No attempt follows: what is still to go on of the body is all that is needed of it. */
    x->kept.again = false;
    if (x->kept.relayed == x->kept.bytes.size)
        rn_kept_forget(x);
    return true;
}

void rn_exchange_finish(rn_exchange *x, rn_http_fields trailers)
{
    size_t count = 0;

    if (rn_gateway_reserve(x->gateway, trailers.count) == RATION_OK) {
        for (size_t i = 0; i < trailers.count; i++) {
            if (response_field_goes(trailers, trailers.items[i].name))
                x->gateway->fields[count++] = trailers.items[i];
        }
    }
    rn_inbound_finish(x->in, (rn_http_fields){x->gateway->fields, count});
    x->in = NULL;
}

/* What has come of the response goes to the client, and what comes will. False: the exchange is over. */
static bool respond(rn_exchange *x)
{
    const ration_text seen = {x->seen.data, x->seen.size};

    return rn_exchange_start(x, x->answer) && (seen.size == 0 || pass_on(x, seen));
}

/* What the response means is known: tell the decider, then the client, unless the call may be made again. False: the
 * exchange is over. */
static bool judge(rn_exchange *x)
{
    const ration_error_rule *errors = x->to->errors;
    size_t at;

    x->throttled =
        rn_status_says_wait(errors, x->status) &&
        (errors->body_contains == NULL || rn_text_find(looked_at(x), ration_text_of(errors->body_contains), &at));
    x->judged = true;
    observe(x, x->answer);
    if (!rn_attempt_may_follow(x))
        return respond(x);
    if (x->state != RN_EXCHANGE_LOOKING)
        rn_exchange_enter(x, RN_EXCHANGE_LOOKING);
    return true;
}

/* Watch for what the call has cost. False: no memory. */
static bool usage_begin(rn_exchange *x, const rn_http_head *head)
{
    if (x->cost_rule == NULL || !rn_cost_is_told(x->cost_rule))
        return true;
    /* What has no body has no usage in it, and nobody misses that. */
    if (x->cost_rule->actual_header == NULL && rn_text_is(rn_inbound_head(x->in)->method, "HEAD"))
        return true;
    x->usage = rn_mem_zalloc(rn_mem_default(), 1, sizeof *x->usage);
    if (x->usage == NULL)
        return false;
    rn_usage_begin(x->usage, x->cost_rule, head->fields);
    return true;
}

static void on_head(void *user, rn_upstream *up, const rn_http_head *head)
{
    rn_exchange *x = user;
    const ration_error_rule *errors = x->to->errors;

    (void)up;
    x->status = head->status;
    x->answer = head;
    if (!usage_begin(x, head) || rn_gateway_reserve(x->gateway, head->fields.count + STAMP_FIELDS) != RATION_OK) {
        rn_exchange_broken(x, RN_UPSTREAM_BROKEN, ration_err_text(RATION_ERR_NOMEM));
        return;
    }
    if (errors->body_contains != NULL && rn_status_says_wait(errors, head->status)) {
        rn_exchange_enter(x, RN_EXCHANGE_LOOKING);
        return;
    }
    (void)judge(x);
}

static void on_body(void *user, rn_upstream *up, ration_text bytes)
{
    rn_exchange *x = user;

    (void)up;
    if (x->usage != NULL)
        rn_usage_feed(x->usage, bytes);
    if (x->state != RN_EXCHANGE_LOOKING) {
        (void)pass_on(x, bytes);
        return;
    }
    rn_output_raw(&x->seen, bytes);
    if (x->seen.err != RATION_OK) {
        rn_exchange_broken(x, RN_UPSTREAM_BROKEN, ration_err_text(RATION_ERR_NOMEM));
    } else if (!x->judged && x->seen.size >= LOOK_BYTES) {
        (void)judge(x);
    } else if (x->judged && x->seen.size > HELD_BYTES) {
        x->gateway->counts.withheld[RN_RETRY_ANSWER]++;
        (void)respond(x);
    }
}

static void on_end(void *user, rn_upstream *up, rn_http_fields trailers)
{
    rn_exchange *x = user;

    (void)up;
    x->up = NULL;
    x->ended = true;
    if (x->state == RN_EXCHANGE_LOOKING && !x->judged && !judge(x))
        return;
    if (x->state == RN_EXCHANGE_LOOKING && (rn_attempt_answered(x, trailers) || !respond(x)))
        return;
    rn_exchange_finish(x, trailers);
    rn_exchange_end(x, rn_outcome_of(x->to->errors, x->status, x->throttled));
}

static void on_error(void *user, rn_upstream *up, rn_upstream_fault fault, const char *text)
{
    rn_exchange *x = user;

    (void)up;
    x->up = NULL;
    if (x->state == RN_EXCHANGE_LOOKING && !x->judged)
        observe(x, x->answer);
    if (x->state == RN_EXCHANGE_RESPONDING || !rn_attempt_broke(x, fault, text))
        rn_exchange_broken(x, fault, text);
}

static void body_finish(rn_exchange *x, rn_http_fields trailers)
{
    size_t count = 0;

    int err = rn_gateway_reserve(x->gateway, trailers.count);
    if (err == RATION_OK) {
        for (size_t i = 0; i < trailers.count; i++) {
            if (request_field_goes(x, trailers, trailers.items[i].name))
                x->gateway->fields[count++] = trailers.items[i];
        }
        err = rn_upstream_finish(x->up, (rn_http_fields){x->gateway->fields, count});
    }
    if (err != RATION_OK)
        rn_exchange_broken(x, RN_UPSTREAM_BROKEN, ration_err_text(err));
}

/* What is kept of the body, as far as the provider takes it; then the rest of it. */
static void body_pump(rn_exchange *x)
{
    rn_kept *kept = &x->kept;

    while (kept->relayed < kept->bytes.size) {
        const ration_text all = {kept->bytes.data, kept->bytes.size};
        const ration_text piece = rn_text_slice(all, kept->relayed, kept->relayed + PUMP_BYTES);
        const int flow = rn_upstream_write(x->up, piece);

        if (flow < 0) {
            rn_exchange_broken(x, RN_UPSTREAM_BROKEN, ration_err_text(flow));
            return;
        }
        kept->relayed += piece.size;
        if (flow == RN_FLOW_FULL)
            return;
    }
    if (!kept->again)
        rn_kept_forget(x);
    if (kept->whole && rn_inbound_head(x->in)->body_bytes != 0) {
        body_finish(x, kept->trailers);
    } else {
        rn_inbound_resume(x->in);
    }
}

/* A part that goes on stays too, if it may be needed again. */
static void body_keep(rn_exchange *x, ration_text bytes)
{
    rn_kept *kept = &x->kept;
    const uint64_t most = (uint64_t)x->to->costs->provider->replay_body;

    if (!kept->again)
        return;
    if (kept->bytes.size + bytes.size <= most && rn_kept_add(x, bytes) == RATION_OK) {
        kept->relayed = kept->bytes.size;
    } else {
        rn_kept_forget(x);
    }
}

/* Whether there could be another attempt behind this one, by what is known before it. */
static bool may_need_body(const rn_exchange *x)
{
    const int64_t most = x->to->costs->provider->replay_body;

    return x->attempts <= x->retries && rn_time_before(rn_loop_now(x->gateway->loop), x->deadline) &&
           rn_inbound_head(x->in)->body_bytes <= most && x->kept.bytes.size <= (uint64_t)most;
}

static void on_drain(void *user, rn_upstream *up)
{
    rn_exchange *x = user;

    (void)up;
    body_pump(x);
}

static const rn_upstream_handlers handlers = {
    .on_head = on_head,
    .on_body = on_body,
    .on_end = on_end,
    .on_error = on_error,
    .on_drain = on_drain,
};

void rn_exchange_send(rn_exchange *x)
{
    rn_gateway *gw = x->gateway;
    const rn_http_head *head = rn_inbound_head(x->in);
    int err = rn_gateway_reserve(gw, head->fields.count + OWN_FIELDS);

    rn_exchange_enter(x, RN_EXCHANGE_SENDING);
    x->kept.again = may_need_body(x);
    if (err == RATION_OK) {
        const rn_upstream_request request = {
            .origin = x->to->origin,
            .method = head->method,
            .target = request_target(x, head->target),
            .fields = request_fields(x, head->fields),
            .stream = head->body_bytes != 0,
            .body_bytes = head->body_bytes,
            .repeatable = head->body_bytes == 0 && rn_request_is_idempotent(head),
        };
        err = gw->target.err != RATION_OK ? RATION_ERR_NOMEM
                                          : rn_upstream_start(x->to->pool, &request, &handlers, x, &x->up);
    }
    if (err == RATION_OK) {
        body_pump(x);
    } else {
        rn_exchange_unsent(x, err);
    }
}

void rn_exchange_relay(rn_exchange *x, ration_text bytes)
{
    body_keep(x, bytes);
    const int flow = rn_upstream_write(x->up, bytes);

    if (flow < 0) {
        rn_exchange_broken(x, RN_UPSTREAM_BROKEN, ration_err_text(flow));
    } else if (flow == RN_FLOW_FULL) {
        rn_inbound_pause(x->in);
    }
}

void rn_exchange_relay_end(rn_exchange *x, rn_http_fields trailers)
{
    x->kept.whole = true;
    x->kept.trailers = trailers;
    if (rn_inbound_head(x->in)->body_bytes != 0)
        body_finish(x, trailers);
}
