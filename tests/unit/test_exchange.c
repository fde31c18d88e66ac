/* SPDX-License-Identifier: MIT */
/*
 * What a call owes to a decider, whatever happens to it: a waiter is cancelled, a lease is released once and with the
 * right outcome. The decider is a script, client and provider are raw sockets in the loop of the test.
 */
#include "base/text.h"
#include "serve/gateway.h"

#include "support/check.h"
#include "support/wire.h"

typedef struct script {
    rn_decider base;
    /* what it answers */
    int submit_err;
    ration_result result;
    int cancel_err;
    ration_event event; /* once, if `due` */
    bool due;
    /* what it heard */
    void *user;
    size_t submits, cancels, releases, observes;
    int status;
    ration_outcome outcome;
    char seen[16];
} script;

static script *script_of(rn_decider *d)
{
    return (script *)(void *)d;
}

static int script_submit(rn_decider *d, ration_time now, const ration_request *request, ration_decision *out)
{
    script *s = script_of(d);

    s->submits++;
    s->user = request->user;
    if (s->submit_err == RATION_OK)
        *out = (ration_decision){.result = s->result, .lease = {1, 7}, .at = now, .retry_at = {RATION_NEVER_US}};
    return s->submit_err;
}

static int script_release(rn_decider *d, ration_time now, ration_lease lease, const ration_completion *completion)
{
    (void)now;
    CHECK_EQ(lease.generation, 7);
    CHECK_EQ(completion->cost, RATION_UNSET);
    script_of(d)->outcome = completion->outcome;
    script_of(d)->releases++;
    return RATION_OK;
}

static int script_observe(rn_decider *d, ration_time now, ration_lease lease, const ration_response *response)
{
    script *s = script_of(d);
    rn_builder b;

    (void)now;
    CHECK_EQ(lease.generation, 7);
    rn_builder_init(&b, s->seen, sizeof s->seen);
    rn_builder_text(&b, response->body);
    s->status = response->status;
    s->observes++;
    return RATION_OK;
}

static int script_cancel(rn_decider *d, ration_time now, ration_lease lease)
{
    (void)now;
    CHECK_EQ(lease.generation, 7);
    script_of(d)->cancels++;
    return script_of(d)->cancel_err;
}

static int script_advance(rn_decider *d, ration_time now)
{
    (void)d;
    (void)now;
    return RATION_OK;
}

static ration_time script_next_deadline(const rn_decider *d)
{
    (void)d;
    return (ration_time){RATION_NEVER_US};
}

static bool script_next_event(rn_decider *d, ration_event *out)
{
    script *s = script_of(d);

    if (!s->due)
        return false;
    s->due = false;
    *out = s->event;
    out->user = s->user;
    return true;
}

static const rn_decider_ops script_ops = {
    .submit = script_submit,
    .release = script_release,
    .observe = script_observe,
    .cancel = script_cancel,
    .advance = script_advance,
    .next_deadline = script_next_deadline,
    .next_event = script_next_event,
};

/* ---- a gateway between a client and a provider */

typedef struct stage {
    rn_loop *loop;
    ration_config *config;
    rn_log log;
    script decider;
    rn_gateway *gateway;
    int listener;
    wire client;
    wire provider;
} stage;

static void stage_open(stage *s, const char *errors)
{
    ration_config_faults faults = {NULL, 0, NULL};
    rn_net_error error;
    char config[512];
    uint16_t port;

    memset(s, 0, sizeof *s);
    s->decider.base.ops = &script_ops;
    s->log.descriptor = -1;
    s->listener = wire_listener(&port);
    (void)snprintf(config, sizeof config,
                   "{settings: {listen: {gateway: \"127.0.0.1:0\", control: \"127.0.0.1:0\"}}, "
                   "providers: [{name: p, baseUrl: \"http://127.0.0.1:%u\"%s}], "
                   "accounts: [{name: a, provider: p}]}",
                   (unsigned)port, errors);
    CHECK_EQ(ration_config_parse(ration_text_of(config), "test", NULL, &s->config, &faults), RATION_OK);
    ration_config_faults_fini(&faults);
    CHECK_EQ(rn_loop_new(&s->loop), RATION_OK);

    const rn_gateway_options options = {
        .loop = s->loop, .decider = &s->decider.base, .config = s->config, .log = &s->log};
    CHECK_EQ(rn_gateway_new(&options, &s->gateway, &error), RATION_OK);
    wire_connect(&s->client, s->loop, rn_gateway_port(s->gateway));
}

static void stage_close(stage *s)
{
    wire_close(&s->client);
    wire_close(&s->provider);
    rn_gateway_free(s->gateway);
    (void)close(s->listener);
    rn_loop_free(s->loop);
    ration_config_free(s->config);
}

static size_t calls(const stage *s)
{
    size_t count = 0;

    for (int i = 0; i < RN_EXCHANGE_STATES; i++)
        count += rn_gateway_in_state(s->gateway, (rn_exchange_state)i);
    return count;
}

/* A request that waits. */
static void stage_wait(stage *s, ration_result result)
{
    s->decider.result = result;
    wire_send(&s->client, "GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(s->loop, rn_gateway_in_state(s->gateway, RN_EXCHANGE_WAITING) == 1);
}

static void stage_event(stage *s, ration_event_type type)
{
    s->decider.event = (ration_event){.type = type, .lease = {1, 7}, .waited_us = 1500};
    s->decider.event.decision =
        (ration_decision){.result = RATION_REFUSED, .reason = RATION_REASON_DEADLINE, .retry_at = {RATION_NEVER_US}};
    s->decider.due = true;
    rn_gateway_touch(s->gateway);
}

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
        s.decider.due = late;
        rn_gateway_free(s.gateway);
        s.gateway = NULL;
        CHECK_EQ(s.decider.cancels, 1);
        CHECK_EQ(s.decider.releases, late);
        stage_close(&s);
    }
}

/* ---- leases */

static void stage_send(stage *s)
{
    s->decider.result = RATION_GRANTED;
    wire_send(&s->client, "GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(s->loop, wire_accept(&s->provider, s->loop, s->listener));
    RUN_UNTIL(s->loop, wire_has(&s->provider, "GET /x HTTP/1.1\r\n"));
}

#define REPLY(status, more) "HTTP/1.1 " status " X\r\n" more "Content-Length: 4\r\n\r\n"

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
    RUN_UNTIL(s.loop, !s.decider.due);
    wire_send(&s.provider, REPLY("200", "") "body");
    RUN_UNTIL(s.loop, wire_has(&s.client, "\r\n\r\nbody"));
    RUN_UNTIL(s.loop, calls(&s) == 0);
    CHECK_EQ(s.decider.releases + s.decider.observes, 0);
    CHECK_EQ(rn_gateway_counts(s.gateway)->errors, 0);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leaving_cancels),      cmocka_unit_test(test_leaving_too_late),
        cmocka_unit_test(test_a_refusal_by_event),   cmocka_unit_test(test_a_decider_that_fails),
        cmocka_unit_test(test_freed_while_waiting),  cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_leaving_with_a_lease), cmocka_unit_test(test_a_lease_that_is_lost),
    };

    return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}
