/* SPDX-License-Identifier: MIT */
/*
 * What the API owes to a decider and to its clients when things cross: a grant and a client that goes, a release and a
 * lease that is lost, an end amid everything. The decider is a script, the client a raw socket in the loop of the test.
 */
#include "serve/api_parts.h"
#include "serve/control.h"

#include "support/stage.h"

/* What a script of the stage does not answer. */
typedef struct more {
    int release_err, renew_err, observe_err, check_err;
    size_t renews, checks;
    ration_result check; /* what a check is answered */
    int64_t ttl_us;
} more;

static more also;

static int more_submit(rn_decider *d, ration_time now, const ration_request *request, ration_decision *out)
{
    also.ttl_us = request->ttl_us;
    return script_submit(d, now, request, out);
}

static int more_release(rn_decider *d, ration_time now, ration_lease lease, const ration_completion *completion)
{
    (void)now;
    CHECK_EQ(lease.generation, 7);
    if (also.release_err != RATION_OK)
        return also.release_err;
    script_of(d)->outcome = completion->outcome;
    script_of(d)->releases++;
    return RATION_OK;
}

static int more_observe(rn_decider *d, ration_time now, ration_lease lease, const ration_response *response)
{
    return also.observe_err != RATION_OK ? also.observe_err : script_observe(d, now, lease, response);
}

static int more_renew(rn_decider *d, ration_time now, ration_lease lease)
{
    (void)d;
    (void)now;
    CHECK_EQ(lease.generation, 7);
    also.renews++;
    return also.renew_err;
}

static void more_totals(const rn_decider *base, ration_totals *out)
{
    (void)base;
    *out = (ration_totals){.submitted = 0};
}

static int more_check(rn_decider *d, ration_time now, const ration_request *request, ration_check_mode mode,
                      ration_decision *out)
{
    (void)now;
    (void)mode;
    also.checks++;
    script_of(d)->user = request->user;
    if (also.check_err == RATION_OK)
        *out = (ration_decision){.result = also.check, .lease = {1, 7}};
    return also.check_err;
}

typedef struct scene {
    stage stage;
    rn_decider_ops ops;
    rn_control *control;
    wire client;
} scene;

static void scene_open(scene *s)
{
    rn_net_error error;

    also = (more){.release_err = RATION_OK};
    stage_open(&s->stage, "");
    s->ops = script_ops;
    s->ops.submit = more_submit;
    s->ops.release = more_release;
    s->ops.observe = more_observe;
    s->ops.renew = more_renew;
    s->ops.check = more_check;
    s->ops.totals = more_totals;
    s->stage.decider.base.ops = &s->ops;

    const rn_control_options options = {
        .loop = s->stage.loop, .decider = &s->stage.decider.base, .gateway = s->stage.gateway};
    CHECK_EQ(rn_control_new(&options, &s->control, &error), RATION_OK);
    wire_connect(&s->client, s->stage.loop, rn_control_port(s->control));
}

static void scene_close(scene *s)
{
    wire_close(&s->client);
    rn_control_free(s->control);
    stage_close(&s->stage);
}

static void post(scene *s, const char *operation, const char *fields, const char *body)
{
    char request[512];

    wire_clear(&s->client);
    (void)snprintf(
        request, sizeof request,
        "POST /v1/%s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s",
        operation, fields, strlen(body), body);
    wire_send(&s->client, request);
}

/* The answer has this status, and says this. */
static void expect(scene *s, const char *status, const char *words)
{
    RUN_UNTIL(s->stage.loop, wire_has(&s->client, "\r\n\r\n") && wire_has(&s->client, "}\n"));
    CHECK(wire_has(&s->client, status));
    CHECK(wire_has(&s->client, words));
}

static void acquire(scene *s, ration_result result)
{
    s->stage.decider.result = result;
    post(s, "acquire", "", "{\"account\":\"a\"}");
    if (result == RATION_GRANTED)
        expect(s, " 200 ", "\"lease\":\"1-7\"");
}

/* A request that waits. */
static void wait_for(scene *s, ration_result result)
{
    const size_t before = s->stage.decider.submits;

    acquire(s, result);
    RUN_UNTIL(s->stage.loop, s->stage.decider.submits == before + 1);
}

/* The decider's event has been taken. */
static void happens(scene *s, ration_event_type type)
{
    stage_event(&s->stage, type);
    RUN_UNTIL(s->stage.loop, !s->stage.decider.due);
}

static void leave(scene *s)
{
    wire_close(&s->client);
    RUN_UNTIL(s->stage.loop, s->stage.decider.cancels == 1);
}

static void return_to(scene *s)
{
    wire_connect(&s->client, s->stage.loop, rn_control_port(s->control));
}

static void test_leaving_cancels(void **state)
{
    scene s;

    (void)state;
    scene_open(&s);
    wait_for(&s, RATION_QUEUED);
    CHECK_EQ(also.ttl_us, RN_API_TTL_US);
    leave(&s);
    scene_close(&s);
    CHECK_EQ(s.stage.decider.cancels, 1);
    CHECK_EQ(s.stage.decider.releases, 0);
}

/* The grant, or the refusal, is under way when the client leaves. */
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
        {"lost before it was heard of", RATION_PENDING, RATION_EVENT_LOST, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;

        CHECK_ROW(rows[i].why);
        scene_open(&s);
        wait_for(&s, rows[i].result);
        s.stage.decider.cancel_err = RATION_ERR_UNKNOWN;
        leave(&s);
        happens(&s, rows[i].event);
        CHECK_EQ(s.stage.decider.releases, rows[i].releases);
        if (rows[i].releases > 0)
            CHECK_EQ(s.stage.decider.outcome, RATION_OUTCOME_CANCELLED);
        scene_close(&s);
        CHECK_EQ(s.stage.decider.releases, rows[i].releases);
    }
}

/* Granted to somebody who has gone, and lost before that was noticed: both events come. */
static void test_left_granted_and_lost(void **state)
{
    scene s;

    (void)state;
    scene_open(&s);
    wait_for(&s, RATION_QUEUED);
    s.stage.decider.cancel_err = RATION_ERR_UNKNOWN;
    leave(&s);
    also.release_err = RATION_ERR_UNKNOWN;
    happens(&s, RATION_EVENT_GRANTED);
    happens(&s, RATION_EVENT_LOST);
    scene_close(&s);
}

/* A lease that nobody will get is no answer to a key that was its own. */
static void test_a_key_that_left(void **state)
{
    scene s;

    (void)state;
    scene_open(&s);
    s.stage.decider.result = RATION_QUEUED;
    post(&s, "acquire", "Idempotency-Key: k\r\n", "{\"account\":\"a\"}");
    RUN_UNTIL(s.stage.loop, s.stage.decider.submits == 1);
    s.stage.decider.cancel_err = RATION_ERR_UNKNOWN;
    leave(&s);
    return_to(&s);
    s.stage.decider.result = RATION_GRANTED;
    post(&s, "acquire", "Idempotency-Key: k\r\n", "{\"account\":\"a\"}");
    expect(&s, " 200 ", "granted");
    CHECK_EQ(s.stage.decider.submits, 2);
    scene_close(&s);
}

static void test_waiters_hear(void **state)
{
    scene s;

    (void)state;
    scene_open(&s);
    wait_for(&s, RATION_PENDING);
    stage_event(&s.stage, RATION_EVENT_GRANTED);
    expect(&s, " 200 ", "\"waitedMs\":1.5,");
    CHECK(wire_has(&s.client, "\"lease\":\"1-7\""));
    post(&s, "release", "", "{\"lease\":\"1-7\",\"outcome\":\"throttled\"}");
    expect(&s, " 200 ", "\"released\"");
    CHECK_EQ(s.stage.decider.outcome, RATION_OUTCOME_THROTTLED);

    wait_for(&s, RATION_QUEUED);
    stage_event(&s.stage, RATION_EVENT_REFUSED);
    expect(&s, " 429 ", "\"reason\":\"deadline\"");
    CHECK(wire_has(&s.client, "\"waitedMs\":1.5"));
    CHECK(wire_has(&s.client, "Ration-Refused: deadline"));
    scene_close(&s);
    CHECK_EQ(s.stage.decider.cancels, 0);
    CHECK_EQ(s.stage.decider.releases, 1);
}

/* The decider knows that it is over before anybody has heard. */
static void test_the_lease_is_lost(void **state)
{
    static const char *const operations[] = {"release", "renew", "observe"};
    scene s;

    (void)state;
    scene_open(&s);
    acquire(&s, RATION_GRANTED);
    also.release_err = also.renew_err = also.observe_err = RATION_ERR_UNKNOWN;
    for (int heard = 0; heard < 2; heard++) {
        for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
            CHECK_ROW(operations[i]);
            post(&s, operations[i], "", "{\"lease\":\"1-7\"}");
            expect(&s, " 410 ", "lease_ended");
        }
        if (heard == 0)
            happens(&s, RATION_EVENT_LOST);
    }
    CHECK_EQ(also.renews, 1);
    post(&s, "release", "", "{\"lease\":\"1-8\"}");
    expect(&s, " 404 ", "unknown_lease");
    post(&s, "release", "", "{\"lease\":\"1-6\"}");
    expect(&s, " 410 ", "lease_ended");
    post(&s, "release", "", "{\"lease\":\"0-1\"}");
    expect(&s, " 404 ", "unknown_lease");
    scene_close(&s);
    CHECK_EQ(s.stage.decider.releases, 0);
}

static void test_errors_of_the_decider(void **state)
{
    static const struct {
        const char *why;
        int err;
        const char *status, *words;
    } rows[] = {
        {"no memory", RATION_ERR_NOMEM, " 503 ", "out of memory"},
        {"a table is full", RATION_ERR_FULL, " 503 ", "table full"},
        {"out of range", RATION_ERR_INVALID, " 400 ", "bad_request"},
    };
    scene s;

    (void)state;
    scene_open(&s);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        s.stage.decider.submit_err = rows[i].err;
        post(&s, "acquire", "Idempotency-Key: k\r\n", "{\"account\":\"a\"}");
        expect(&s, rows[i].status, rows[i].words);
        also.check_err = rows[i].err;
        post(&s, "check", "", "{}");
        expect(&s, rows[i].status, rows[i].words);
    }
    also.check_err = s.stage.decider.submit_err = RATION_OK;
    also.check = RATION_QUEUED;
    post(&s, "check", "", "{}");
    expect(&s, " 200 ", "{\"result\":\"queued\"}");
    acquire(&s, RATION_GRANTED);
    also.observe_err = RATION_ERR_NOMEM;
    post(&s, "release", "", "{\"lease\":\"1-7\",\"status\":200}");
    expect(&s, " 503 ", "out of memory");
    CHECK_EQ(s.stage.decider.releases, 0);
    scene_close(&s);
    CHECK_EQ(s.stage.decider.releases, 1);
}

/* A check that is answered later. */
static void check(scene *s)
{
    const size_t before = also.checks;

    also.check = RATION_PENDING;
    post(s, "check", "", "{}");
    RUN_UNTIL(s->stage.loop, also.checks == before + 1);
}

static void test_checks_of_a_store(void **state)
{
    scene s;

    (void)state;
    scene_open(&s);
    check(&s);
    happens(&s, RATION_EVENT_GRANTED);
    expect(&s, " 200 ", "{\"result\":\"granted\"}");
    check(&s);
    happens(&s, RATION_EVENT_REFUSED);
    expect(&s, " 200 ", "\"reason\":\"deadline\"");

    /* Clients that go: in time, and while the answer is on its way. */
    check(&s);
    leave(&s);
    return_to(&s);
    s.stage.decider.cancel_err = RATION_ERR_UNKNOWN;
    check(&s);
    wire_close(&s.client);
    RUN_UNTIL(s.stage.loop, s.stage.decider.cancels == 2);
    happens(&s, RATION_EVENT_GRANTED);
    scene_close(&s);
    CHECK_EQ(s.stage.decider.releases, 0);
}

/* Nothing under way when the process ends: held, waiting, leaving, half read. */
static void test_the_end(void **state)
{
    scene s;

    (void)state;
    scene_open(&s);
    acquire(&s, RATION_GRANTED);
    wire_send(&s.client, "POST /v1/acquire HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                         "Content-Length: 9\r\n\r\n{");
    wire_close(&s.client);
    return_to(&s);
    wait_for(&s, RATION_QUEUED);
    scene_close(&s);
    CHECK_EQ(s.stage.decider.cancels, 1);
    CHECK_EQ(s.stage.decider.releases, 1);
    CHECK_EQ(s.stage.decider.outcome, RATION_OUTCOME_CANCELLED);
}

/* The grant is on its way when the process ends: its event is taken before the memory goes. */
static void test_the_end_amid_a_grant(void **state)
{
    scene s;

    (void)state;
    scene_open(&s);
    wait_for(&s, RATION_QUEUED);
    s.stage.decider.cancel_err = RATION_ERR_UNKNOWN;
    s.stage.decider.event = (ration_event){.type = RATION_EVENT_GRANTED, .lease = {1, 7}};
    s.stage.decider.due = true;
    rn_control_free(s.control);
    CHECK_EQ(s.stage.decider.cancels, 1);
    CHECK_EQ(s.stage.decider.releases, 1);
    s.control = NULL;
    scene_close(&s);
}

/* The control port of a process without a config file, such as the demo. */
static void test_a_reload_of_nothing(void **state)
{
    scene s;

    (void)state;
    scene_open(&s);
    post(&s, "reload", "", "{}");
    expect(&s, " 409 ", "urn:ration:problem:no_config_file");
    scene_close(&s);
}

static void test_a_drain(void **state)
{
    scene s;

    (void)state;
    scene_open(&s);
    rn_gateway_close(s.stage.gateway, NULL, NULL);
    post(&s, "acquire", "", "{\"account\":\"a\"}");
    expect(&s, " 503 ", "Ration-Refused: draining");
    CHECK_EQ(s.stage.decider.submits, 0);
    scene_close(&s);
}

/* As many keys as may be; one more is turned away, and a key that is free again makes room. */
static void test_keys_are_bounded(void **state)
{
    scene s;
    char key[64];

    (void)state;
    scene_open(&s);
    s.stage.decider.result = RATION_GRANTED;
    for (int i = 0; i <= RN_API_KEYS_MAX; i++) {
        (void)snprintf(key, sizeof key, "Idempotency-Key: %d\r\n", i);
        post(&s, "acquire", key, "{\"account\":\"a\"}");
        expect(&s, i < RN_API_KEYS_MAX ? " 200 " : " 503 ", i < RN_API_KEYS_MAX ? "granted" : "table full");
    }
    CHECK_EQ(s.stage.decider.submits, RN_API_KEYS_MAX);
    post(&s, "acquire", "", "{\"account\":\"a\"}");
    expect(&s, " 200 ", "granted");
    post(&s, "acquire", "Idempotency-Key: 0\r\n", "{\"account\":\"a\"}");
    expect(&s, " 200 ", "granted");
    CHECK_EQ(s.stage.decider.submits, RN_API_KEYS_MAX + 1);
    scene_close(&s);
    CHECK_EQ(s.stage.decider.releases, RN_API_KEYS_MAX + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leaving_cancels),
        cmocka_unit_test(test_leaving_too_late),
        cmocka_unit_test(test_left_granted_and_lost),
        cmocka_unit_test(test_waiters_hear),
        cmocka_unit_test(test_a_key_that_left),
        cmocka_unit_test(test_the_lease_is_lost),
        cmocka_unit_test(test_errors_of_the_decider),
        cmocka_unit_test(test_the_end),
        cmocka_unit_test(test_checks_of_a_store),
        cmocka_unit_test(test_the_end_amid_a_grant),
        cmocka_unit_test(test_a_drain),
        cmocka_unit_test(test_a_reload_of_nothing),
        cmocka_unit_test(test_keys_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
