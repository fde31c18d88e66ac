/* SPDX-License-Identifier: MIT */
/*
 * Health checks: when a breaker wants to know whether a provider is well, the gateway asks it.
 *
 * A check is a request like any other but that it has no client: it goes through the decider, so limits and penalties
 * apply to it, and it carries the account's credential. What it comes to is told the decider: healthy (an expected
 * status), or not (another one, no connection, no answer in time). Where the provider could not be asked, because a
 * limit or its own "too many" was in the way, nothing is told: saturation is no result, and the decider asks again.
 *
 * There is one deadline for the wait and the call: as long as the breaker takes until it asks again. A check that is
 * still out when that happens is left alone.
 *
 * Invariants: one check an account; IDLE holds nothing; a lease is released exactly once; `up` is NULL as soon as net
 * has declared it dead.
 */
#include "serve/exchange.h"

#include "base/text.h"
#include "base/units.h"
#include "serve/outcome.h"

#define DELAY_DEFAULT_US INT64_C(1000000) /* of a breaker whose rule has none */

static const char *check_method(const rn_check *check)
{
    const char *method = check->to->breaker->check_method;

    return method != NULL ? method : "GET";
}

static const char *check_path(const rn_check *check)
{
    const char *path = check->to->breaker->check_path;

    return path != NULL ? path : "/";
}

/* Its destinations are held from when it is asked for to its end. */
static void check_enter(rn_check *check, rn_check_state state)
{
    const bool idled = check->state == RN_CHECK_IDLE;

    check->state = state;
    if (idled && state != RN_CHECK_IDLE)
        rn_destinations_hold(check->to->all);
    if (!idled && state == RN_CHECK_IDLE)
        rn_destinations_release(check->to->all);
}

/* ---- how it ends */

static void check_log(const rn_check *check, const char *message, const char *words)
{
    rn_gateway *gw = check->gateway;

    rn_log_gated(gw->log, &gw->check_gate, rn_loop_now(gw->loop), "warn", message, "account", check->to->account->name,
                 "words", words, NULL);
}

/* The one way out. */
static void check_end(rn_check *check, ration_outcome outcome, rn_check_result result)
{
    rn_gateway *gw = check->gateway;
    rn_decider *d = gw->decider;
    const ration_time now = rn_loop_now(gw->loop);
    const ration_completion completion = {.outcome = outcome, .cost = RATION_UNSET};

    rn_timer_stop(&check->timer);
    if (check->up != NULL)
        rn_upstream_abort(check->up);
    check->up = NULL;
    if (check->lease.generation != 0 && d->ops->release(d, now, check->lease, &completion) != RATION_OK)
        gw->counts.errors++;
    check->lease = (ration_lease){0, 0};
    check_enter(check, RN_CHECK_IDLE);

    gw->counts.checks[result]++;
    /* A breaker that is no more need not hear of it. */
    if (result != RN_CHECK_NO_RESULT)
        (void)d->ops->health(d, now, ration_text_of(check->to->account->name), result == RN_CHECK_HEALTHY);
    rn_gateway_touch(gw);
}

static void check_fail(rn_check *check, const char *words)
{
    check_log(check, "a health check failed", words);
    check_end(check, RATION_OUTCOME_FAILURE, RN_CHECK_UNHEALTHY);
}

/* Nobody was asked. */
static void check_drop(rn_check *check, const char *words)
{
    check_log(check, "a health check was not made", words);
    check_end(check, RATION_OUTCOME_CANCELLED, RN_CHECK_NO_RESULT);
}

static void check_error(rn_check *check, int err)
{
    check->gateway->counts.errors++;
    check_drop(check, ration_err_text(err));
}

/* ---- the call */

/* What the status comes to. The body is not looked into: where that would be needed, the status says nothing of it. */
static bool check_throttled(const rn_check *check)
{
    const ration_error_rule *errors = check->to->errors;

    return errors->body_contains == NULL && rn_status_says_wait(errors, check->status);
}

static void check_judge(rn_check *check)
{
    const ration_outcome outcome = rn_outcome_of(check->to->errors, check->status, check_throttled(check));
    char words[32];
    rn_builder b;

    rn_builder_init(&b, words, sizeof words);
    rn_builder_str(&b, "status ");
    rn_builder_int(&b, check->status);
    if (rn_status_is_healthy(check->to->breaker, check->status)) {
        check_end(check, outcome, RN_CHECK_HEALTHY);
    } else if (outcome == RATION_OUTCOME_THROTTLED) {
        check_end(check, outcome, RN_CHECK_NO_RESULT);
    } else {
        check_log(check, "a health check failed", words);
        check_end(check, outcome, RN_CHECK_UNHEALTHY);
    }
}

static void on_head(void *user, rn_upstream *up, const rn_http_head *head)
{
    rn_check *check = user;

    (void)up;
    check->status = head->status;
    if (rn_gateway_reserve(check->gateway, head->fields.count) == RATION_OK) {
        rn_gateway_observe(check->gateway, check->lease, head, (ration_text){NULL, 0});
    } else {
        check->gateway->counts.errors++;
    }
}

static void on_body(void *user, rn_upstream *up, ration_text bytes)
{
    (void)user;
    (void)up;
    (void)bytes;
}

static void on_end(void *user, rn_upstream *up, rn_http_fields trailers)
{
    rn_check *check = user;

    (void)up;
    (void)trailers;
    check->up = NULL;
    check_judge(check);
}

static void on_error(void *user, rn_upstream *up, rn_upstream_fault fault, const char *text)
{
    rn_check *check = user;

    (void)up;
    (void)fault;
    check->up = NULL;
    check_fail(check, text);
}

static const rn_upstream_handlers handlers = {
    .on_head = on_head,
    .on_body = on_body,
    .on_end = on_end,
    .on_error = on_error,
};

/* A body that does not end is no worse than one that does: what counts is the status. */
static void on_deadline(void *user, ration_time now)
{
    rn_check *check = user;

    (void)now;
    if (check->status != 0) {
        check_judge(check);
    } else {
        check_fail(check, "no answer in time");
    }
}

static void check_send(rn_check *check)
{
    rn_gateway *gw = check->gateway;
    const rn_destination *to = check->to;
    const ration_text method = ration_text_of(check_method(check));
    rn_http_field fields[2] = {{ration_text_of("User-Agent"), ration_text_of("ration/" RATION_VERSION)}};
    const size_t count = 1 + rn_gateway_credential(to, fields + 1);

    check_enter(check, RN_CHECK_SENDING);
    check->status = 0;
    rn_output_clear(&gw->target);
    rn_output_raw(&gw->target, ration_text_of(to->account->base_url.prefix));
    rn_output_raw(&gw->target, ration_text_of(check_path(check)));

    const rn_upstream_request request = {
        .origin = to->origin,
        .method = method,
        .target = {gw->target.data, gw->target.size},
        .fields = {fields, count},
        .repeatable = rn_text_is(method, "GET") || rn_text_is(method, "HEAD"),
    };
    int err = gw->target.err != RATION_OK ? RATION_ERR_NOMEM : rn_timer_set(&check->timer, check->deadline);
    if (err == RATION_OK)
        err = rn_upstream_start(to->pool, &request, &handlers, check, &check->up);
    if (err != RATION_OK)
        check_error(check, err);
}

/* ---- the decider */

static void on_event(rn_party *party, const ration_event *event)
{
    rn_check *check = (rn_check *)(void *)party;

    switch (event->type) {
    case RATION_EVENT_GRANTED:
        check->lease = event->lease;
        if (check->state == RN_CHECK_LEAVING) {
            check_end(check, RATION_OUTCOME_CANCELLED, RN_CHECK_NO_RESULT);
        } else {
            check_send(check);
        }
        return;
    case RATION_EVENT_REFUSED:
        check->lease = (ration_lease){0, 0};
        check_drop(check, ration_reason_name(event->decision.reason));
        return;
    case RATION_EVENT_LOST:
        check->lease = (ration_lease){0, 0};
        return;
    case RATION_EVENT_PENALTY:
    case RATION_EVENT_LIMIT:
    case RATION_EVENT_BREAKER:
    case RATION_EVENT_HEALTH:
        return;
    }
}

/* How long the breaker takes until it asks again. */
static int64_t check_delay(const rn_check *check, const ration_event *event)
{
    const ration_breaker_rule *rule = check->to->breaker;
    const int64_t usual_us =
        event->breaker == RATION_BREAKER_CLOSED ? rule->idle_interval_us : rule->backoff_initial_us;

    if (rn_time_known(event->decision.retry_at) && rn_time_before(event->at, event->decision.retry_at))
        return rn_sub(event->decision.retry_at.us, event->at.us);
    return usual_us > 0 ? usual_us : DELAY_DEFAULT_US;
}

void rn_check_start(rn_check *check, const ration_event *event)
{
    rn_gateway *gw = check->gateway;
    const ration_time now = rn_loop_now(gw->loop);
    const int64_t delay_us = check_delay(check, event);
    const ration_request request = {
        .account = ration_text_of(check->to->account->name),
        .method = ration_text_of(check_method(check)),
        .path = ration_text_of(check_path(check)),
        .priority = RATION_PRIORITY_CRITICAL,
        .health = true,
        .cost = RATION_UNSET,
        .hold_us = RATION_UNSET,
        .wait_us = delay_us,
        .ttl_us = RATION_UNSET,
        .user = check,
    };
    ration_decision decision;

    if (check->state != RN_CHECK_IDLE || rn_gateway_draining(gw))
        return;
    check->deadline = rn_time_add(now, delay_us);
    const int err = gw->decider->ops->submit(gw->decider, now, &request, &decision);
    rn_gateway_touch(gw);
    if (err != RATION_OK) {
        check_error(check, err);
        return;
    }
    check->lease = decision.lease;
    switch (decision.result) {
    case RATION_GRANTED:
        check_send(check);
        return;
    case RATION_QUEUED:
    case RATION_PENDING:
        check_enter(check, RN_CHECK_WAITING);
        return;
    case RATION_REFUSED:
        check->lease = (ration_lease){0, 0};
        check_drop(check, ration_reason_name(decision.reason));
        return;
    }
}

void rn_check_stop(rn_check *check)
{
    rn_decider *d = check->gateway->decider;

    if (check->state == RN_CHECK_WAITING) {
        if (d->ops->cancel(d, rn_loop_now(check->gateway->loop), check->lease) != RATION_OK) {
            check_enter(check, RN_CHECK_LEAVING);
            rn_gateway_touch(check->gateway);
            return;
        }
        check->lease = (ration_lease){0, 0};
    }
    if (check->state == RN_CHECK_WAITING || check->state == RN_CHECK_SENDING)
        check_end(check, RATION_OUTCOME_CANCELLED, RN_CHECK_NO_RESULT);
}

void rn_check_init(rn_check *check, rn_gateway *gw, const rn_destination *to)
{
    *check = (rn_check){.party = {on_event}, .gateway = gw, .to = to};
    rn_timer_init(&check->timer, gw->loop, on_deadline, check);
}
