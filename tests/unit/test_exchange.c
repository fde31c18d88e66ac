/* SPDX-License-Identifier: MIT */
/*
 * What a call owes to a decider, whatever happens to it: a waiter is cancelled, a lease is released once and with the
 * right outcome. The decider is a script, client and provider are raw sockets in the loop of the test.
 */
#include "serve/exchange.h"

#include "support/stage.h"

/* ---- waiters */

static void test_leaving_cancels(void **state)
{
    stage s;
    (void)state;

    stage_open(&s, "");
    stage_wait(&s, RATION_QUEUED);
    wire_close(&s.client);
    RUN_UNTIL(s.loop, calls(&s) == 0);
    CHECK_EQ(s.decider.cancels, 1);
    CHECK_EQ(s.decider.releases, 0);
    CHECK_EQ(rn_gateway_counts(s.gateway)->gone_waiting, 1);
    stage_close(&s);
}

/* The grant, or the refusal, is under way when the client leaves: its memory stays until the event has been taken. */
static void test_leaving_too_late(void **state)
{
    static const struct {
        const char *why;
        ration_result result;
        ration_event_type event;
        size_t releases;
    } rows[] = {
        {"granted meanwhile", RATION_QUEUED, RATION_EVENT_GRANTED, 1},
        {"refused meanwhile", RATION_QUEUED, RATION_EVENT_REFUSED, 0},
        {"granted far away", RATION_PENDING, RATION_EVENT_GRANTED, 1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_open(&s, "");
        stage_wait(&s, rows[i].result);
        s.decider.cancel_err = RATION_ERR_UNKNOWN;
        wire_close(&s.client);
        RUN_UNTIL(s.loop, rn_gateway_in_state(s.gateway, RN_EXCHANGE_LEAVING) == 1);
        CHECK_EQ(s.decider.releases, 0);
        stage_event(&s, rows[i].event);
        RUN_UNTIL(s.loop, calls(&s) == 0);
        CHECK_EQ(s.decider.releases, rows[i].releases);
        CHECK(rows[i].releases == 0 || s.decider.outcome == RATION_OUTCOME_CANCELLED);
        stage_close(&s);
    }
}

static void test_a_refusal_by_event(void **state)
{
    stage s;
    (void)state;

    stage_open(&s, "");
    stage_wait(&s, RATION_QUEUED);
    stage_event(&s, RATION_EVENT_REFUSED);
    RUN_UNTIL(s.loop, wire_has(&s.client, "\"waitedMs\":1.5}\n"));
    CHECK(wire_has(&s.client, "HTTP/1.1 429 Too Many Requests\r\n"));
    CHECK(wire_has(&s.client, "Ration-Refused: deadline\r\n"));
    CHECK(wire_has(&s.client, "Ration-Waited: 1.5\r\n"));
    CHECK_EQ(calls(&s), 0);
    CHECK_EQ(s.decider.cancels + s.decider.releases, 0);
    stage_close(&s);
}

static void test_a_decider_that_fails(void **state)
{
    stage s;
    (void)state;

    stage_open(&s, "");
    s.decider.submit_err = RATION_ERR_NOMEM;
    wire_send(&s.client, "GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(s.loop, wire_has(&s.client, "out of memory"));
    CHECK(wire_has(&s.client, "HTTP/1.1 503 Service Unavailable\r\n"));
    CHECK_EQ(calls(&s), 0);
    CHECK_EQ(rn_gateway_counts(s.gateway)->errors, 1);
    stage_close(&s);
}

/* The process ends with a waiter, and with one whose grant is under way. */
static void test_freed_while_waiting(void **state)
{
    (void)state;

    for (int late = 0; late < 2; late++) {
        stage s;

        CHECK_ROW(late ? "too late to cancel" : "in time");
        stage_open(&s, "");
        stage_wait(&s, RATION_QUEUED);
        s.decider.cancel_err = late ? RATION_ERR_UNKNOWN : RATION_OK;
        s.decider.event = (ration_event){.type = RATION_EVENT_GRANTED, .lease = {1, 7}};
        s.decider.due = late ? 1 : 0;
        rn_gateway_free(s.gateway);
        s.gateway = NULL;
        CHECK_EQ(s.decider.cancels, 1);
        CHECK_EQ(s.decider.releases, late);
        stage_close(&s);
    }
}

/* ---- costs */

#define PRICED ", estimate: {pointer: /n, default: 9}, actual: {pointer: /n}"

static void stage_post(stage *s, const char *body, const char *more)
{
    char head[96];

    (void)snprintf(head, sizeof head, "POST /a/x HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n",
                   strlen(body) + strlen(more));
    wire_send(&s->client, head);
    wire_send(&s->client, body);
}

/* A body that is read, or was, when the call ends: in every state, by whoever ends it. */
static void test_a_kept_body_goes_with_its_call(void **state)
{
    static const struct {
        const char *why, *more; /* what is still to come of the body */
        ration_result result;
        bool late; /* its grant is under way */
        bool freed;
        size_t cancels, releases;
    } rows[] = {
        {"the client leaves while it is read", "}", RATION_GRANTED, false, false, 0, 0},
        {"the process ends while it is read", "}", RATION_GRANTED, false, true, 0, 0},
        {"the client leaves while it waits", "", RATION_QUEUED, false, false, 1, 0},
        {"the process ends while it waits", "", RATION_QUEUED, false, true, 1, 0},
        {"the client leaves too late", "", RATION_QUEUED, true, false, 1, 1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool whole = rows[i].more[0] == '\0';
        stage s;

        CHECK_ROW(rows[i].why);
        stage_open(&s, PRICED);
        s.decider.result = rows[i].result;
        s.decider.cancel_err = rows[i].late ? RATION_ERR_UNKNOWN : RATION_OK;
        stage_post(&s, whole ? "{\"n\":4}" : "{\"n\":4", rows[i].more);
        RUN_UNTIL(s.loop, rn_gateway_in_state(s.gateway, whole ? RN_EXCHANGE_WAITING : RN_EXCHANGE_ESTIMATING) == 1);
        CHECK_EQ(s.decider.submits, whole ? 1 : 0);
        if (rows[i].freed) {
            rn_gateway_free(s.gateway);
            s.gateway = NULL;
        } else {
            wire_close(&s.client);
            RUN_UNTIL(s.loop, rn_gateway_in_state(s.gateway, RN_EXCHANGE_LEAVING) == (rows[i].late ? 1 : 0) &&
                                  calls(&s) == (rows[i].late ? 1 : 0));
            CHECK_EQ(rn_gateway_counts(s.gateway)->gone_waiting, 1);
        }
        if (rows[i].late) {
            stage_event(&s, RATION_EVENT_GRANTED);
            RUN_UNTIL(s.loop, calls(&s) == 0);
        }
        CHECK_EQ(s.decider.cancels, rows[i].cancels);
        CHECK_EQ(s.decider.releases, rows[i].releases);
        stage_close(&s);
    }
}

/* All that is kept at once is bounded: beyond it the default holds, and a body goes on as it comes. */
static void test_bodies_are_bounded_together(void **state)
{
    static const struct {
        const char *why;
        size_t others; /* bytes of other calls */
        int64_t cost;
    } rows[] = {
        {"just room enough", RN_KEPT_MAX_BYTES - 7, 4 * RATION_UNIT},
        {"a byte too few", RN_KEPT_MAX_BYTES - 6, 9 * RATION_UNIT},
        {"no room", RN_KEPT_MAX_BYTES, 9 * RATION_UNIT},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_open(&s, PRICED);
        s.gateway->kept_bytes = rows[i].others;
        s.decider.result = RATION_GRANTED;
        stage_post(&s, "{\"n\":4}", "");
        RUN_UNTIL(s.loop, wire_accept(&s.provider, s.loop, s.listener));
        RUN_UNTIL(s.loop, wire_has(&s.provider, "{\"n\":4}"));
        CHECK_EQ(s.decider.request.cost, rows[i].cost);
        CHECK_EQ(s.gateway->kept_bytes, rows[i].others);
        wire_close(&s.client);
        RUN_UNTIL(s.loop, calls(&s) == 0);
        stage_close(&s);
    }
}

static void test_refused_with_a_body(void **state)
{
    stage s;
    (void)state;

    stage_open(&s, PRICED);
    s.decider.result = RATION_REFUSED;
    s.decider.reason = RATION_REASON_QUOTA_EXHAUSTED;
    stage_post(&s, "{\"n\":4}", "");
    RUN_UNTIL(s.loop, wire_has(&s.client, "Ration-Refused: quota_exhausted\r\n"));
    CHECK_EQ(s.decider.request.cost, 4 * RATION_UNIT);
    CHECK_EQ(calls(&s), 0);
    stage_close(&s);
}

/* What the release says a call has cost: what was seen of it, whatever ended it. */
static void test_what_is_settled(void **state)
{
    static const struct {
        const char *why, *answer;
        bool client; /* it ends the call; else the provider does, or the answer is complete */
        bool whole;
        ration_outcome outcome;
        int64_t cost;
    } rows[] = {
        {"at the end", "Content-Length: 7\r\n\r\n{\"n\":2}", false, true, RATION_OUTCOME_SUCCESS, 2 * RATION_UNIT},
        {"none told", "Content-Length: 2\r\n\r\n{}", false, true, RATION_OUTCOME_SUCCESS, RATION_UNSET},
        {"the client left behind it", "Content-Length: 9\r\n\r\n{\"n\":2,", true, false, RATION_OUTCOME_CANCELLED,
         2 * RATION_UNIT},
        {"the client left before it", "Content-Length: 9\r\n\r\n{\"n\":", true, false, RATION_OUTCOME_CANCELLED,
         RATION_UNSET},
        {"the provider broke behind it", "Content-Length: 9\r\n\r\n{\"n\":2,", false, false, RATION_OUTCOME_FAILURE,
         2 * RATION_UNIT},
        {"the provider broke before its head", "", false, false, RATION_OUTCOME_FAILURE, RATION_UNSET},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_open(&s, PRICED);
        stage_send(&s);
        CHECK_EQ(s.decider.request.cost, 9 * RATION_UNIT);
        if (rows[i].answer[0] != '\0') {
            wire_send(&s.provider, "HTTP/1.1 200 X\r\n");
            wire_send(&s.provider, rows[i].answer);
            RUN_UNTIL(s.loop, wire_has(&s.client, strstr(rows[i].answer, "\r\n\r\n")));
        }
        if (!rows[i].whole)
            wire_close(rows[i].client ? &s.client : &s.provider);
        RUN_UNTIL(s.loop, s.decider.releases == 1);
        CHECK_EQ(s.decider.outcome, rows[i].outcome);
        CHECK_EQ(s.decider.cost, rows[i].cost);
        CHECK_EQ(calls(&s), 0);
        stage_close(&s);
    }
}

/* A flood of events is taken in turns, between which others are served. */
static void test_a_flood_of_events(void **state)
{
    stage s;
    size_t left = SIZE_MAX, turns = 0;
    (void)state;

    stage_open(&s, "");
    s.decider.event = (ration_event){.type = RATION_EVENT_PENALTY, .decision = {.retry_at = {RATION_NEVER_US}}};
    s.decider.due = 5000;
    rn_gateway_touch(s.gateway);
    while (s.decider.due > 0) {
        (void)uv_run(rn_loop_uv(s.loop), UV_RUN_NOWAIT);
        CHECK(left == SIZE_MAX || left - s.decider.due <= 500);
        left = s.decider.due;
        CHECK(++turns < 100);
    }
    CHECK(turns >= 10);
    s.decider.due = 5000;
    stage_close(&s);
    CHECK_ROW("at the end all of them are taken");
    CHECK_EQ(s.decider.due, 0);
}

/* ---- leases */

static void test_outcomes(void **state)
{
    static const struct {
        const char *why, *errors, *reply;
        bool closes;
        int status;       /* observed; 0: nothing was */
        const char *seen; /* of the body */
        ration_outcome outcome;
        const char *client;
    } rows[] = {
        {"success", "", REPLY("200", "") "body", false, 200, "", RATION_OUTCOME_SUCCESS, " 200 X"},
        {"the client's fault", "", REPLY("404", "") "body", false, 404, "", RATION_OUTCOME_SUCCESS, " 404 X"},
        {"too many", "", REPLY("429", "") "body", false, 429, "", RATION_OUTCOME_THROTTLED, " 429 X"},
        {"transient", "", REPLY("502", "") "body", false, 502, "", RATION_OUTCOME_FAILURE, " 502 X"},
        {"not transient", "", REPLY("501", "") "body", false, 501, "", RATION_OUTCOME_SUCCESS, " 501 X"},
        {"another status means too many", ", errors: {rateLimited: {statuses: [503]}}", REPLY("503", "") "body", false,
         503, "", RATION_OUTCOME_THROTTLED, " 503 X"},
        {"429 then does not", ", errors: {rateLimited: {statuses: [503]}}", REPLY("429", "") "body", false, 429, "",
         RATION_OUTCOME_SUCCESS, " 429 X"},
        {"another status is transient", ", errors: {transient: {statuses: [404]}}", REPLY("404", "") "body", false, 404,
         "", RATION_OUTCOME_FAILURE, " 404 X"},
        {"the body says so", ", errors: {rateLimited: {statuses: [403], bodyContains: ody}}", REPLY("403", "") "body",
         false, 403, "body", RATION_OUTCOME_THROTTLED, " 403 X"},
        {"the body does not", ", errors: {rateLimited: {statuses: [403], bodyContains: odd}}", REPLY("403", "") "body",
         false, 403, "body", RATION_OUTCOME_SUCCESS, " 403 X"},
        {"the body breaks off while it is looked at", ", errors: {rateLimited: {statuses: [403], bodyContains: odd}}",
         REPLY("403", "") "bo", true, 403, "bo", RATION_OUTCOME_FAILURE, " 502 Bad Gateway"},
        {"closed before the head", "", "", true, 0, "", RATION_OUTCOME_FAILURE, " 502 Bad Gateway"},
        {"no HTTP", "", "what?\r\n\r\n", false, 0, "", RATION_OUTCOME_FAILURE, " 502 Bad Gateway"},
        {"closed amid the body", "", REPLY("200", "") "bo", true, 200, "", RATION_OUTCOME_FAILURE, " 200 X"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_open(&s, rows[i].errors);
        stage_send(&s);
        wire_send(&s.provider, rows[i].reply);
        if (rows[i].closes)
            wire_close(&s.provider);
        RUN_UNTIL(s.loop, calls(&s) == 0 && wire_has(&s.client, rows[i].client));
        CHECK_EQ(s.decider.releases, 1);
        CHECK_EQ(s.decider.outcome, rows[i].outcome);
        CHECK_EQ(s.decider.observes, rows[i].status != 0);
        CHECK_EQ(s.decider.status, rows[i].status);
        CHECK_STR(s.decider.seen, rows[i].seen);
        stage_close(&s);
    }
}

/* The client leaves in each state in which there is a lease. */
static void test_leaving_with_a_lease(void **state)
{
    static const struct {
        const char *why, *errors, *reply;
        rn_exchange_state at;
    } rows[] = {
        {"before the head", "", "", RN_EXCHANGE_SENDING},
        {"while the body is looked at", ", errors: {rateLimited: {statuses: [403], bodyContains: x}}",
         REPLY("403", "") "bo", RN_EXCHANGE_LOOKING},
        {"amid the body", "", REPLY("200", "") "bo", RN_EXCHANGE_RESPONDING},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_open(&s, rows[i].errors);
        stage_send(&s);
        wire_send(&s.provider, rows[i].reply);
        RUN_UNTIL(s.loop, rn_gateway_in_state(s.gateway, rows[i].at) == 1);
        wire_close(&s.client);
        RUN_UNTIL(s.loop, calls(&s) == 0 && s.provider.closed);
        CHECK_EQ(s.decider.releases, 1);
        CHECK_EQ(s.decider.outcome, RATION_OUTCOME_CANCELLED);
        CHECK_EQ(rn_gateway_counts(s.gateway)->gone_running, 1);
        stage_close(&s);
    }
}

/* A lease that was taken back is not released again; the call goes on. */
static void test_a_lease_that_is_lost(void **state)
{
    stage s;
    (void)state;

    stage_open(&s, "");
    stage_send(&s);
    stage_event(&s, RATION_EVENT_LOST);
    RUN_UNTIL(s.loop, s.decider.due == 0);
    wire_send(&s.provider, REPLY("200", "") "body");
    RUN_UNTIL(s.loop, wire_has(&s.client, "\r\n\r\nbody"));
    RUN_UNTIL(s.loop, calls(&s) == 0);
    CHECK_EQ(s.decider.releases + s.decider.observes, 0);
    CHECK_EQ(rn_gateway_counts(s.gateway)->errors, 0);
    stage_close(&s);
}

/* ---- holds */

static void test_holds_declared_and_learned(void **state)
{
    static const char automatic[] = ", hold: auto, endpoints: [{path: /fixed, hold: 3s}]";
    static const struct {
        const char *why, *more, *head, *reply;
        size_t known;     /* samples of 200 ms before it */
        int64_t declared; /* us */
        size_t samples;   /* after it */
    } rows[] = {
        {"not declared", "", "GET /a/x HTTP/1.1\r\n", REPLY("200", "") "body", 0, RATION_UNSET, 0},
        {"the client's word", "", "GET /a/x HTTP/1.1\r\nRation-Hold: 7ms\r\n", REPLY("200", "") "body", 0, 7000, 0},
        {"nothing is known yet", automatic, "GET /a/x HTTP/1.1\r\n", REPLY("200", "") "body", 19, RATION_UNSET, 20},
        {"what was learned", automatic, "GET /a/x HTTP/1.1\r\n", REPLY("200", "") "body", 20, 212991, 21},
        {"but for the client's word, which teaches nothing", automatic, "GET /a/x HTTP/1.1\r\nRation-Hold: 7ms\r\n",
         REPLY("200", "") "body", 20, 7000, 20},
        {"a path whose hold is the config's", automatic, "GET /a/fixed HTTP/1.1\r\n", REPLY("200", "") "body", 20,
         RATION_UNSET, 20},
        {"a failure that took no longer", automatic, "GET /a/x HTTP/1.1\r\n", REPLY("500", "") "body", 20, 212991, 20},
        {"nor a throttled one", automatic, "GET /a/x HTTP/1.1\r\n", REPLY("429", "") "body", 20, 212991, 20},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_open(&s, rows[i].more);
        const rn_holds *holds = rn_gateway_holds(s.gateway, 0);
        CHECK(rn_gateway_holds(s.gateway, 1) == NULL);
        for (size_t j = 0; j < rows[i].known; j++)
            rn_hold_learn(holds->learners[1], rn_loop_now(s.loop), 200000, true);
        s.decider.result = RATION_GRANTED;
        wire_send(&s.client, rows[i].head);
        wire_send(&s.client, "Host: h\r\n\r\n");
        RUN_UNTIL(s.loop, wire_accept(&s.provider, s.loop, s.listener));
        RUN_UNTIL(s.loop, wire_has(&s.provider, "\r\n\r\n"));
        CHECK_EQ(s.decider.request.hold_us, rows[i].declared);
        wire_send(&s.provider, rows[i].reply);
        RUN_UNTIL(s.loop, calls(&s) == 0);
        CHECK_EQ(holds->learners != NULL ? rn_hold_samples(holds->learners[1]) : 0, rows[i].samples);
        stage_close(&s);
    }
}

/* Only what held a lease teaches. */
static void test_what_never_ran_teaches_nothing(void **state)
{
    stage s;
    (void)state;

    stage_open(&s, ", hold: auto");
    for (size_t i = 0; i < RN_HOLD_SAMPLES_MIN; i++)
        rn_hold_learn(rn_gateway_holds(s.gateway, 0)->learners[0], rn_loop_now(s.loop), 0, true);
    stage_wait(&s, RATION_QUEUED);
    stage_event(&s, RATION_EVENT_REFUSED);
    RUN_UNTIL(s.loop, calls(&s) == 0);
    CHECK_EQ(rn_hold_samples(rn_gateway_holds(s.gateway, 0)->learners[0]), RN_HOLD_SAMPLES_MIN);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leaving_cancels),
        cmocka_unit_test(test_leaving_too_late),
        cmocka_unit_test(test_a_refusal_by_event),
        cmocka_unit_test(test_a_kept_body_goes_with_its_call),
        cmocka_unit_test(test_bodies_are_bounded_together),
        cmocka_unit_test(test_refused_with_a_body),
        cmocka_unit_test(test_what_is_settled),
        cmocka_unit_test(test_a_decider_that_fails),
        cmocka_unit_test(test_freed_while_waiting),
        cmocka_unit_test(test_a_flood_of_events),
        cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_leaving_with_a_lease),
        cmocka_unit_test(test_a_lease_that_is_lost),
        cmocka_unit_test(test_holds_declared_and_learned),
        cmocka_unit_test(test_what_never_ran_teaches_nothing),
    };

    return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}
