/* SPDX-License-Identifier: MIT */
/*
 * Health checks of a simulated day: when a breaker wants to know whether a provider is well, the gateway asks it, as
 * any other request, through the engine. What it comes to is told the engine; where the provider could not be asked,
 * or said "too many", nothing is.
 *
 * Invariant: one check an account at a time.
 */
#include "simulate/day_parts.h"

#include "base/text.h"
#include "base/units.h"

#define DELAY_DEFAULT_US INT64_C(1000000) /* of a breaker whose rule has none */

static const ration_breaker_rule *rule_of(const rn_day_check *check)
{
    return &check->provider->rule->breaker;
}

static const char *method_of(const rn_day_check *check)
{
    return rule_of(check)->check_method != NULL ? rule_of(check)->check_method : "GET";
}

static const char *path_of(const rn_day_check *check)
{
    return rule_of(check)->check_path != NULL ? rule_of(check)->check_path : "/";
}

static int on_granted(rn_day *day, rn_day_caller *caller, int64_t waited_us)
{
    const rn_day_check *check = (const rn_day_check *)(void *)caller;
    const char *account = day->rules->accounts[check->account].name;
    const rn_arrival arrival = {
        .account = ration_text_of(account),
        .credential = ration_text_of(account),
        .method = ration_text_of(method_of(check)),
        .path = ration_text_of(path_of(check)),
    };

    (void)waited_us;
    day->result.checks++;
    return rn_day_send(day, caller, check->provider, &arrival, RATION_PRIORITY_UNSET);
}

static int on_refused(rn_day *day, rn_day_caller *caller, ration_reason reason)
{
    (void)day;
    (void)caller;
    (void)reason;
    return 0;
}

static bool is_healthy(const ration_breaker_rule *rule, int status)
{
    bool expected = rule->check_expect_count == 0 && status >= 200 && status < 300;

    for (size_t i = 0; i < rule->check_expect_count; i++)
        expected = expected || rule->check_expect[i] == status;
    return expected;
}

static int on_answered(rn_day *day, rn_day_caller *caller, int status)
{
    const rn_day_check *check = (const rn_day_check *)(void *)caller;
    const ration_error_rule *errors = &check->provider->rule->errors;
    const ration_text account = ration_text_of(day->rules->accounts[check->account].name);

    if (status == (errors->rate_limited_count > 0 ? errors->rate_limited[0] : 429))
        return 0;
    return ration_engine_health(day->gateway.engine, rn_day_clock(day), account, is_healthy(rule_of(check), status));
}

static const rn_day_caller_ops ops = {.granted = on_granted, .refused = on_refused, .answered = on_answered};

int rn_day_checks_init(rn_day *day)
{
    day->checks = rn_arena_zalloc(&day->arena, day->rules->account_count, sizeof *day->checks);
    if (day->checks == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < day->rules->account_count; i++) {
        day->checks[i].caller.ops = &ops;
        day->checks[i].account = i;
        day->checks[i].provider = &day->providers[rn_config_account(day->config, i)->provider];
    }
    return 0;
}

/* How long the breaker takes until it asks again. */
static int64_t delay_of(const rn_day_check *check, const ration_event *event)
{
    const ration_breaker_rule *rule = rule_of(check);
    const int64_t usual_us =
        event->breaker == RATION_BREAKER_CLOSED ? rule->idle_interval_us : rule->backoff_initial_us;

    if (rn_time_known(event->decision.retry_at) && rn_time_before(event->at, event->decision.retry_at))
        return rn_sub(event->decision.retry_at.us, event->at.us);
    return usual_us > 0 ? usual_us : DELAY_DEFAULT_US;
}

int rn_day_check_start(rn_day *day, const ration_event *event)
{
    rn_day_check *check = NULL;
    ration_decision decision;

    for (size_t i = 0; i < day->rules->account_count; i++) {
        if (rn_text_is(event->account, day->rules->accounts[i].name))
            check = &day->checks[i];
    }
    /* A provider that no job calls is not there to be asked. */
    if (check == NULL || check->provider->enforcer == NULL || check->caller.waiting || check->caller.wire != NULL ||
        !rn_day_is_up(day))
        return 0;

    ration_request request = RATION_REQUEST_INIT;
    request.account = ration_text_of(day->rules->accounts[check->account].name);
    request.method = ration_text_of(method_of(check));
    request.path = ration_text_of(path_of(check));
    request.priority = RATION_PRIORITY_CRITICAL;
    request.health = true;
    request.wait_us = delay_of(check, event);
    const int err = rn_day_ask(day, &check->caller, &request, &decision);
    return err == 0 && decision.result == RATION_GRANTED ? on_granted(day, &check->caller, 0) : err;
}

int rn_day_checks_cut(rn_day *day)
{
    int err = 0;

    for (size_t i = 0; i < day->rules->account_count && err == 0; i++)
        err = rn_day_let_go(day, &day->checks[i].caller);
    return err;
}
