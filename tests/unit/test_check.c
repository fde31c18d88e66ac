/* SPDX-License-Identifier: MIT */
/*
 * Health checks: what the decider and the provider see of one, what its ends come to, and that nothing of it is left
 * when the gateway ends.
 */
#include "support/stage.h"

#define DELAY_US INT64_C(60000000)

/* The decider asks for a check; the next would be due in `delay_us`. */
static void ask(stage *s, int64_t delay_us)
{
    const ration_time now = rn_loop_now(s->loop);

    s->decider.event = (ration_event){.type = RATION_EVENT_HEALTH,
                                      .at = now,
                                      .breaker = RATION_BREAKER_OPEN,
                                      .decision = {.retry_at = {now.us + delay_us}},
                                      .account = ration_text_of("a")};
    s->decider.due = 1;
    rn_gateway_touch(s->gateway);
}

static uint64_t ended(const stage *s)
{
    const rn_gateway_counters *counts = rn_gateway_counts(s->gateway);

    return counts->checks[RN_CHECK_HEALTHY] + counts->checks[RN_CHECK_UNHEALTHY] + counts->checks[RN_CHECK_NO_RESULT];
}

static void stage_check(stage *s, const char *more, ration_result result)
{
    stage_open(s, more);
    s->decider.result = result;
    ask(s, DELAY_US);
    RUN_UNTIL(s->loop, s->decider.submits == 1);
}

static void stage_ask_provider(stage *s)
{
    RUN_UNTIL(s->loop, wire_accept(&s->provider, s->loop, s->listener));
    RUN_UNTIL(s->loop, wire_has(&s->provider, "\r\n\r\n"));
}

#define BREAKER(more) ", breaker: {strategy: consecutive, recovery: healthCheck, healthCheck: {" more "}}"

static void test_what_it_asks(void **state)
{
    static const struct {
        const char *why, *more, *method, *path, *line;
    } rows[] = {
        {"as configured", BREAKER("method: HEAD, path: /ping"), "HEAD", "/ping", "HEAD /ping HTTP/1.1\r\n"},
        {"GET, unless it says otherwise", BREAKER("path: /ping"), "GET", "/ping", "GET /ping HTTP/1.1\r\n"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_check(&s, rows[i].more, RATION_GRANTED);
        CHECK_STR(s.decider.method, rows[i].method);
        CHECK_STR(s.decider.path, rows[i].path);
        CHECK(s.decider.request.health);
        CHECK_EQ(s.decider.request.priority, RATION_PRIORITY_CRITICAL);
        CHECK_EQ(s.decider.request.wait_us, DELAY_US);
        CHECK_EQ(s.decider.request.cost, RATION_UNSET);
        CHECK_EQ(s.decider.request.hold_us, RATION_UNSET);
        stage_ask_provider(&s);
        CHECK(wire_has(&s.provider, rows[i].line));
        CHECK(wire_has(&s.provider, "User-Agent: ration/"));
        stage_close(&s);
        CHECK_EQ(s.decider.releases, 1);
        CHECK_EQ(s.decider.outcome, RATION_OUTCOME_CANCELLED);
        CHECK_EQ(s.decider.healths, 0);
    }
}

static void test_results(void **state)
{
    static const char plain[] = BREAKER("path: /ping");
    static const char choosy[] = BREAKER("path: /ping, expect: [204, 429]");
    static const struct {
        const char *why, *more, *reply;
        bool closes;
        rn_check_result result;
        ration_outcome outcome;
        int status; /* observed */
    } rows[] = {
        {"well", plain, REPLY("200", "") "body", false, RN_CHECK_HEALTHY, RATION_OUTCOME_SUCCESS, 200},
        {"299 is still well", plain, REPLY("299", "") "body", false, RN_CHECK_HEALTHY, RATION_OUTCOME_SUCCESS, 299},
        {"a redirection is not", plain, REPLY("300", "") "body", false, RN_CHECK_UNHEALTHY, RATION_OUTCOME_SUCCESS,
         300},
        {"failing", plain, REPLY("503", "") "body", false, RN_CHECK_UNHEALTHY, RATION_OUTCOME_FAILURE, 503},
        {"gone astray", plain, REPLY("404", "") "body", false, RN_CHECK_UNHEALTHY, RATION_OUTCOME_SUCCESS, 404},
        {"too many is no result", plain, REPLY("429", "") "body", false, RN_CHECK_NO_RESULT, RATION_OUTCOME_THROTTLED,
         429},
        {"unless it is expected", choosy, REPLY("429", "") "body", false, RN_CHECK_HEALTHY, RATION_OUTCOME_THROTTLED,
         429},
        {"200 is not, where others are", choosy, REPLY("200", "") "body", false, RN_CHECK_UNHEALTHY,
         RATION_OUTCOME_SUCCESS, 200},
        {"broken before its head", plain, "", true, RN_CHECK_UNHEALTHY, RATION_OUTCOME_FAILURE, 0},
        {"and amid its body", plain, REPLY("200", "") "bo", true, RN_CHECK_UNHEALTHY, RATION_OUTCOME_FAILURE, 200},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_check(&s, rows[i].more, RATION_GRANTED);
        stage_ask_provider(&s);
        wire_send(&s.provider, rows[i].reply);
        if (rows[i].closes)
            wire_close(&s.provider);
        RUN_UNTIL(s.loop, ended(&s) == 1);
        CHECK_EQ(rn_gateway_counts(s.gateway)->checks[rows[i].result], 1);
        CHECK_EQ(s.decider.releases, 1);
        CHECK_EQ(s.decider.outcome, rows[i].outcome);
        CHECK_EQ(s.decider.status, rows[i].status);
        CHECK_EQ(s.decider.healths, rows[i].result != RN_CHECK_NO_RESULT);
        CHECK_EQ(s.decider.healthy, rows[i].result == RN_CHECK_HEALTHY);
        CHECK_STR(s.decider.account, rows[i].result == RN_CHECK_NO_RESULT ? "" : "a");
        stage_close(&s);
    }
}

/* The deadline of a check is a hundredth of a second away. */
static void test_deadlines(void **state)
{
    static const struct {
        const char *why, *reply;
        rn_check_result result;
        ration_outcome outcome;
    } rows[] = {
        {"no answer", "", RN_CHECK_UNHEALTHY, RATION_OUTCOME_FAILURE},
        {"half a head", "HTTP/1.1 200 OK\r\n", RN_CHECK_UNHEALTHY, RATION_OUTCOME_FAILURE},
        {"a body that does not end: the status counts", REPLY("200", "") "bo", RN_CHECK_HEALTHY,
         RATION_OUTCOME_SUCCESS},
        {"whatever it is", REPLY("503", "") "bo", RN_CHECK_UNHEALTHY, RATION_OUTCOME_FAILURE},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_open(&s, BREAKER("path: /"));
        s.decider.result = RATION_GRANTED;
        ask(&s, 100000);
        stage_ask_provider(&s);
        wire_send(&s.provider, rows[i].reply);
        RUN_UNTIL(s.loop, ended(&s) == 1);
        CHECK_EQ(rn_gateway_counts(s.gateway)->checks[rows[i].result], 1);
        CHECK_EQ(s.decider.outcome, rows[i].outcome);
        RUN_UNTIL(s.loop, s.provider.closed);
        stage_close(&s);
        CHECK_EQ(s.decider.releases, 1);
    }
}

static void test_one_at_a_time(void **state)
{
    stage s;
    (void)state;

    stage_check(&s, BREAKER("path: /"), RATION_GRANTED);
    stage_ask_provider(&s);
    ask(&s, DELAY_US);
    RUN_UNTIL(s.loop, s.decider.due == 0);
    CHECK_EQ(s.decider.submits, 1);
    wire_send(&s.provider, REPLY("200", "") "body");
    RUN_UNTIL(s.loop, ended(&s) == 1);
    ask(&s, DELAY_US);
    RUN_UNTIL(s.loop, s.decider.submits == 2);
    stage_close(&s);
    CHECK_EQ(s.decider.releases, 2);
    CHECK_EQ(s.decider.healths, 1);
}

/* Nothing of one that is over has anything to do with what comes after. */
static void test_over_is_over(void **state)
{
    stage s;
    (void)state;

    stage_open(&s, BREAKER("path: /"));
    s.decider.result = RATION_GRANTED;
    ask(&s, 200000);
    stage_ask_provider(&s);
    const int64_t began_us = rn_loop_now(s.loop).us;
    wire_send(&s.provider, REPLY("200", "") "body");
    RUN_UNTIL(s.loop, ended(&s) == 1);
    RUN_UNTIL(s.loop, rn_loop_now(s.loop).us > began_us + 250000 || (rn_gateway_touch(s.gateway), false));
    CHECK_ROW("its deadline");
    CHECK_EQ(ended(&s), 1);

    CHECK_ROW("its lease");
    s.decider.submit_err = RATION_ERR_NOMEM;
    ask(&s, DELAY_US);
    RUN_UNTIL(s.loop, ended(&s) == 2);
    CHECK_EQ(s.decider.releases, 1);
    CHECK_EQ(s.decider.healths, 1);
    stage_close(&s);
}

static void test_not_asked(void **state)
{
    static const struct {
        const char *why;
        int err;
        ration_result result;
        uint64_t errors;
    } rows[] = {
        {"a limit refuses", RATION_OK, RATION_REFUSED, 0},
        {"no memory", RATION_ERR_NOMEM, RATION_GRANTED, 1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_open(&s, BREAKER("path: /"));
        s.decider.submit_err = rows[i].err;
        s.decider.result = rows[i].result;
        s.decider.reason = RATION_REASON_QUOTA_EXHAUSTED;
        ask(&s, DELAY_US);
        RUN_UNTIL(s.loop, ended(&s) == 1);
        CHECK_EQ(rn_gateway_counts(s.gateway)->checks[RN_CHECK_NO_RESULT], 1);
        CHECK_EQ(rn_gateway_counts(s.gateway)->errors, rows[i].errors);
        CHECK_EQ(s.decider.releases + s.decider.cancels + s.decider.healths, 0);
        stage_close(&s);
    }
}

static void answer(stage *s, ration_event_type type)
{
    s->decider.event = (ration_event){.type = type, .at = rn_loop_now(s->loop), .lease = {1, 7}};
    s->decider.event.decision = (ration_decision){.result = RATION_REFUSED, .reason = RATION_REASON_DEADLINE};
    s->decider.due = 1;
    rn_gateway_touch(s->gateway);
}

static void test_one_that_waits(void **state)
{
    stage s;
    (void)state;

    CHECK_ROW("granted later");
    stage_check(&s, BREAKER("path: /"), RATION_QUEUED);
    answer(&s, RATION_EVENT_GRANTED);
    stage_ask_provider(&s);
    wire_send(&s.provider, REPLY("200", "") "body");
    RUN_UNTIL(s.loop, ended(&s) == 1);
    CHECK_EQ(s.decider.releases, 1);
    CHECK(s.decider.healthy);
    stage_close(&s);

    CHECK_ROW("refused later");
    stage_check(&s, BREAKER("path: /"), RATION_QUEUED);
    answer(&s, RATION_EVENT_REFUSED);
    RUN_UNTIL(s.loop, ended(&s) == 1);
    CHECK_EQ(s.decider.releases + s.decider.cancels + s.decider.healths, 0);
    CHECK_EQ(rn_gateway_counts(s.gateway)->checks[RN_CHECK_NO_RESULT], 1);
    stage_close(&s);
}

/* The gateway drains, or is freed, while a check is out. */
static void test_given_up(void **state)
{
    static const struct {
        const char *why;
        ration_result result;
        bool late; /* its grant is on the way */
        size_t cancels, releases;
    } rows[] = {
        {"that waits", RATION_QUEUED, false, 1, 0},
        {"whose grant is on the way", RATION_QUEUED, true, 1, 1},
        {"that runs", RATION_GRANTED, false, 0, 1},
    };
    (void)state;

    for (size_t i = 0; i < 2 * (sizeof rows / sizeof rows[0]); i++) {
        const size_t r = i / 2;
        stage s;

        CHECK_ROW(rows[r].why);
        stage_check(&s, BREAKER("path: /"), rows[r].result);
        s.decider.cancel_err = rows[r].late ? RATION_ERR_UNKNOWN : RATION_OK;
        if (rows[r].late)
            answer(&s, RATION_EVENT_GRANTED);
        if (i % 2 == 0) {
            rn_gateway_close(s.gateway, NULL, NULL);
            RUN_UNTIL(s.loop, ended(&s) == 1);
            CHECK_EQ(rn_gateway_counts(s.gateway)->checks[RN_CHECK_NO_RESULT], 1);
            CHECK_ROW("none begins while it drains");
            ask(&s, DELAY_US);
            RUN_UNTIL(s.loop, s.decider.due == 0);
        }
        rn_gateway_free(s.gateway);
        s.gateway = NULL;
        CHECK_EQ(s.decider.submits, 1);
        CHECK_EQ(s.decider.cancels, rows[r].cancels);
        CHECK_EQ(s.decider.releases, rows[r].releases);
        CHECK_EQ(s.decider.healths, 0);
        stage_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_asks),   cmocka_unit_test(test_results),      cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_one_at_a_time),  cmocka_unit_test(test_over_is_over), cmocka_unit_test(test_not_asked),
        cmocka_unit_test(test_one_that_waits), cmocka_unit_test(test_given_up),
    };

    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
