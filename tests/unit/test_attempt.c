/* SPDX-License-Identifier: MIT */
/*
 * A call that is made again: what the decider, the provider and the client get to see of each attempt, and that nothing
 * is left of what was kept in between, whatever ends it. The decider is a script, the others are raw sockets.
 */
#include "serve/exchange.h"

#include "support/stage.h"

#define TWO ", retries: 2"
#define TOO_MANY "HTTP/1.1 429 Later\r\nRetry-After: 3\r\nX-Mine: 1\r\nContent-Length: 4\r\n\r\nbusy"
#define POST "POST /a/x HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n"

/* The first attempt is with the provider. */
static void stage_first(stage *s, const char *more, const char *request)
{
    stage_open(s, more);
    s->decider.result = RATION_GRANTED;
    wire_send(&s->client, request);
    RUN_UNTIL(s->loop, wire_accept(&s->provider, s->loop, s->listener));
    RUN_UNTIL(s->loop, wire_has(&s->provider, "\r\n\r\n"));
}

/* The provider answers; the decider then decides on the next attempt like this. */
static void stage_answer(stage *s, const char *answer, ration_result next)
{
    s->decider.result = next;
    wire_clear(&s->provider);
    wire_send(&s->provider, answer);
    RUN_UNTIL(s->loop, s->decider.submits == 2);
}

static void stage_done(stage *s, const char *want)
{
    RUN_UNTIL(s->loop, calls(s) == 0 && wire_has(&s->client, want));
    CHECK_EQ(s->gateway->kept_bytes, 0);
    CHECK_EQ(rn_gateway_counts(s->gateway)->errors, 0);
    stage_close(s);
}

static uint64_t withheld(const stage *s, rn_retry_verdict why)
{
    return rn_gateway_counts(s->gateway)->withheld[why];
}

/* Each attempt has a lease of its own, the second as a retry with what is left of the wait. */
static void test_the_second_succeeds(void **state)
{
    stage s;
    (void)state;

    stage_first(&s, TWO, "GET /a/x HTTP/1.1\r\nHost: h\r\nRation-Timeout: 20s\r\n\r\n");
    CHECK(!s.decider.request.retry);
    CHECK_EQ(s.decider.request.wait_us, 20000000);
    stage_answer(&s, TOO_MANY, RATION_GRANTED);
    CHECK(s.decider.request.retry);
    CHECK(s.decider.request.wait_us > 0 && s.decider.request.wait_us <= 20000000);
    CHECK_EQ(s.decider.status, 429);
    CHECK_EQ(s.decider.releases, 1);
    CHECK_EQ(s.decider.outcome, RATION_OUTCOME_THROTTLED);
    RUN_UNTIL(s.loop, wire_has(&s.provider, "GET /x HTTP/1.1\r\n"));
    CHECK_STR(s.client.got, "");
    wire_send(&s.provider, REPLY("200", "") "body");
    RUN_UNTIL(s.loop, wire_has(&s.client, "\r\n\r\nbody"));
    CHECK(strncmp(s.client.got, "HTTP/1.1 200 X\r\n", 16) == 0 && !wire_has(&s.client, "X-Mine"));
    CHECK_EQ(s.decider.releases, 2);
    CHECK_EQ(s.decider.outcome, RATION_OUTCOME_SUCCESS);
    CHECK_EQ(rn_gateway_counts(s.gateway)->retries[RATION_OUTCOME_SUCCESS], 1);
    stage_done(&s, "body");
}

/* The client of a call that waits for its next attempt gets the provider's own answer, not the refusal. */
static void test_the_second_is_refused(void **state)
{
    static const char chunked[] =
        "HTTP/1.1 429 Later\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbusy\r\n0\r\nX-Behind: 2\r\n\r\n";
    static const struct {
        const char *why, *answer;
        ration_result result;
        int err;
        const char *want, *behind;
    } rows[] = {
        {"at once", TOO_MANY, RATION_REFUSED, RATION_OK, "HTTP/1.1 429 Later\r\nRetry-After: 3\r\nX-Mine: 1\r\n",
         "\r\n\r\nbusy"},
        {"after a wait", TOO_MANY, RATION_QUEUED, RATION_OK, "HTTP/1.1 429 Later\r\nRetry-After: 3\r\nX-Mine: 1\r\n",
         "Ration-Waited: 1.5\r\n"},
        {"with trailers", chunked, RATION_REFUSED, RATION_OK, "HTTP/1.1 429 Later\r\n",
         "4\r\nbusy\r\n0\r\nX-Behind: 2\r\n\r\n"},
        {"it cannot be asked", TOO_MANY, RATION_REFUSED, RATION_ERR_NOMEM, "HTTP/1.1 429 Later\r\n", "\r\n\r\nbusy"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_first(&s, TWO, "GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n");
        s.decider.reason = RATION_REASON_CIRCUIT_OPEN;
        s.decider.submit_err = rows[i].err;
        stage_answer(&s, rows[i].answer, rows[i].result);
        if (rows[i].result == RATION_QUEUED)
            stage_event(&s, RATION_EVENT_REFUSED);
        RUN_UNTIL(s.loop, wire_has(&s.client, rows[i].behind));
        CHECK(strncmp(s.client.got, rows[i].want, strlen(rows[i].want)) == 0);
        CHECK(!wire_has(&s.client, "Ration-Refused"));
        CHECK_EQ(withheld(&s, RN_RETRY_REFUSED), 1);
        CHECK_EQ(s.decider.releases, 1);
        stage_done(&s, rows[i].behind);
    }
    CHECK_ROW(NULL);
}

/* What ends a call between two attempts, and what is left of it then. */
static void test_ended_in_between(void **state)
{
    static const struct {
        const char *why, *answer; /* a 503 rests before it asks again */
        bool late, freed, drained;
        size_t submits, cancels, releases;
    } rows[] = {
        {"the client leaves while it waits", TOO_MANY, false, false, false, 2, 1, 1},
        {"too late: the grant is on its way", TOO_MANY, true, false, false, 2, 1, 2},
        {"the process ends while it waits", TOO_MANY, false, true, false, 2, 1, 1},
        {"the client leaves while it rests", REPLY("503", "") "busy", false, false, false, 1, 0, 1},
        {"the process ends while it rests", REPLY("503", "") "busy", false, true, false, 1, 0, 1},
        {"the gateway drains while it rests", REPLY("503", "") "busy", false, false, true, 1, 0, 1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool rests = rows[i].submits == 1;
        const rn_exchange_state at = rests ? RN_EXCHANGE_RESTING : RN_EXCHANGE_WAITING;
        stage s;

        CHECK_ROW(rows[i].why);
        stage_first(&s, TWO, "PUT /a/x HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabcdef");
        RUN_UNTIL(s.loop, wire_has(&s.provider, "abcdef"));
        s.decider.result = RATION_QUEUED;
        s.decider.cancel_err = rows[i].late ? RATION_ERR_UNKNOWN : RATION_OK;
        wire_send(&s.provider, rows[i].answer);
        RUN_UNTIL(s.loop, rn_gateway_in_state(s.gateway, at) == 1);
        CHECK(s.gateway->kept_bytes > 10);
        if (rows[i].freed) {
            rn_gateway_free(s.gateway);
            s.gateway = NULL;
        } else if (rows[i].drained) {
            rn_gateway_quiesce(s.gateway);
            RUN_UNTIL(s.loop, wire_has(&s.client, "\r\n\r\nbusy"));
            CHECK_EQ(withheld(&s, RN_RETRY_DRAINING), 1);
        } else {
            wire_close(&s.client);
            RUN_UNTIL(s.loop, rn_gateway_counts(s.gateway)->gone_waiting == 1);
            CHECK_EQ(s.gateway->kept_bytes, 0);
        }
        if (rows[i].late)
            stage_event(&s, RATION_EVENT_GRANTED);
        if (s.gateway != NULL)
            RUN_UNTIL(s.loop, calls(&s) == 0 && s.gateway->kept_bytes == 0);
        CHECK_EQ(s.decider.submits, rows[i].submits);
        CHECK_EQ(s.decider.cancels, rows[i].cancels);
        CHECK_EQ(s.decider.releases, rows[i].releases);
        stage_close(&s);
    }
    CHECK_ROW(NULL);
}

/* The whole body goes again, however much of it had been read when the first attempt was over. */
static void test_bodies(void **state)
{
    static const struct {
        const char *why, *more, *head, *before, *behind, *want;
    } rows[] = {
        {"read whole", TWO, POST, "abcdef", "", "Content-Length: 6\r\n\r\nabcdef"},
        {"half read", TWO, POST, "abc", "def", "Content-Length: 6\r\n\r\nabcdef"},
        {"not begun", TWO, POST, "", "abcdef", "Content-Length: 6\r\n\r\nabcdef"},
        {"in pieces", TWO, "POST /a/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", "2\r\nab\r\n",
         "4\r\ncdef\r\n0\r\nX-T: 1\r\n\r\n", "2\r\nab\r\n4\r\ncdef\r\n0\r\nX-T: 1\r\n\r\n"},
        {"in pieces, read whole", TWO, "POST /a/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
         "2\r\nab\r\n0\r\nX-T: 1\r\n\r\n", "", "2\r\nab\r\n0\r\nX-T: 1\r\n\r\n"},
        {"as long as may be", TWO ", replayBody: 6", POST, "abc", "def", "Content-Length: 6\r\n\r\nabcdef"},
        {"as long, in pieces", TWO ", replayBody: 6",
         "POST /a/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", "2\r\nab\r\n4\r\ncdef\r\n", "0\r\n\r\n",
         "6\r\nabcdef\r\n0\r\n\r\n"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_first(&s, rows[i].more, rows[i].head);
        wire_send(&s.client, rows[i].before);
        RUN_UNTIL(s.loop, rows[i].before[0] == '\0' || wire_has(&s.provider, rows[i].before));
        s.decider.result = RATION_QUEUED;
        wire_send(&s.provider, TOO_MANY);
        RUN_UNTIL(s.loop, rn_gateway_in_state(s.gateway, RN_EXCHANGE_WAITING) == 1);
        wire_send(&s.client, rows[i].behind);
        /* It is there to be read, and is not. */
        for (int turn = 0; turn < 20; turn++)
            (void)uv_run(rn_loop_uv(s.loop), UV_RUN_NOWAIT);
        wire_close(&s.provider);
        stage_event(&s, RATION_EVENT_GRANTED);
        RUN_UNTIL(s.loop, wire_accept(&s.provider, s.loop, s.listener));
        RUN_UNTIL(s.loop, wire_has(&s.provider, rows[i].want));
        CHECK(wire_has(&s.provider, "POST /x HTTP/1.1\r\n"));
        wire_send(&s.provider, REPLY("200", "") "body");
        stage_done(&s, "\r\n\r\nbody");
    }
    CHECK_ROW(NULL);
}

/* A failure that is passed on as it is, with the reason that is counted. */
static void test_not_again(void **state)
{
    static const struct {
        const char *why, *more, *request, *answer;
        size_t others; /* bytes that other calls keep */
        rn_retry_verdict verdict;
    } rows[] = {
        {"a POST that the provider failed", TWO, POST "abcdef", REPLY("503", "") "busy", 0, RN_RETRY_UNSAFE},
        {"a body too long", TWO ", replayBody: 5", POST "abcdef", TOO_MANY, 0, RN_RETRY_BODY},
        {"one of unknown length", TWO ", replayBody: 5",
         "POST /a/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n",
         TOO_MANY, 0, RN_RETRY_BODY},
        {"too much is kept", TWO, POST "abcdef", TOO_MANY, RN_KEPT_MAX_BYTES - 5, RN_RETRY_BODY},
        {"no room for the answer", TWO, POST "abcdef", TOO_MANY, RN_KEPT_MAX_BYTES - 6, RN_RETRY_ANSWER},
        {"it may not wait", TWO, "GET /a/x HTTP/1.1\r\nHost: h\r\nRation-Timeout: 0\r\n\r\n", TOO_MANY, 0,
         RN_RETRY_LATE},
        {"not for so long", TWO, "GET /a/x HTTP/1.1\r\nHost: h\r\nRation-Timeout: 2s\r\n\r\n", TOO_MANY, 0,
         RN_RETRY_LATE},
        {"none", ", retries: 0", "GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n", TOO_MANY, 0, RN_RETRY_OFF},
        {"none for the path", TWO ", endpoints: [{path: /x, retries: 0}]", "GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n",
         TOO_MANY, 0, RN_RETRY_OFF},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        stage_open(&s, rows[i].more);
        s.gateway->kept_bytes = rows[i].others;
        s.decider.result = RATION_GRANTED;
        wire_send(&s.client, rows[i].request);
        RUN_UNTIL(s.loop, wire_accept(&s.provider, s.loop, s.listener));
        RUN_UNTIL(s.loop, wire_has(&s.provider, rows[i].request[0] == 'G' ? "\r\n\r\n" : "def"));
        wire_send(&s.provider, rows[i].answer);
        RUN_UNTIL(s.loop, calls(&s) == 0 && wire_has(&s.client, "\r\n\r\nbusy"));
        CHECK_EQ(s.decider.submits, 1);
        CHECK_EQ(s.decider.releases, 1);
        CHECK_EQ(withheld(&s, rows[i].verdict), 1);
        CHECK_EQ(s.gateway->kept_bytes, rows[i].others);
        stage_close(&s);
    }
    CHECK_ROW(NULL);
}

/* An answer that is longer than what is kept back is passed on: as soon as that is known, and whole. */
static void test_a_long_answer(void **state)
{
    const size_t size = 200000;
    char *body = malloc(size + 1);
    stage s;
    (void)state;

    memset(body, 'b', size);
    body[size] = '\0';
    stage_first(&s, TWO, "GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n");
    wire_send(&s.provider, "HTTP/1.1 429 Later\r\nContent-Length: 200004\r\n\r\n");
    RUN_UNTIL(s.loop, rn_gateway_in_state(s.gateway, RN_EXCHANGE_LOOKING) == 1);
    wire_send(&s.provider, body);
    RUN_UNTIL(s.loop, s.client.size >= size);
    CHECK_EQ(withheld(&s, RN_RETRY_ANSWER), 1);
    CHECK_EQ(s.decider.releases, 0);
    wire_send(&s.provider, "last");
    free(body);
    RUN_UNTIL(s.loop, wire_has(&s.client, "bbblast"));
    CHECK_EQ(s.decider.submits, 1);
    CHECK_EQ(s.decider.outcome, RATION_OUTCOME_THROTTLED);
    stage_done(&s, "HTTP/1.1 429 Later\r\n");
}

/* The connection breaks: once before there is an answer, once amid one that was kept back. */
static void test_what_breaks(void **state)
{
    static const struct {
        const char *why, *method, *answer;
        size_t observes;
    } rows[] = {
        {"before the head", "GET", "", 0},
        {"no HTTP", "GET", "what?\r\n\r\n", 0},
        {"amid an answer that is kept back", "GET", REPLY("503", "") "bu", 1},
        {"amid one that says that nothing was done", "POST", REPLY("429", "") "bu", 1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char request[64];
        stage s;

        CHECK_ROW(rows[i].why);
        (void)snprintf(request, sizeof request, "%s /a/x HTTP/1.1\r\nHost: h\r\n\r\n", rows[i].method);
        stage_first(&s, ", retries: 1", request);
        wire_send(&s.provider, rows[i].answer);
        RUN_UNTIL(s.loop, rows[i].observes == 0 || rn_gateway_in_state(s.gateway, RN_EXCHANGE_LOOKING) == 1);
        wire_close(&s.provider);
        RUN_UNTIL(s.loop, wire_accept(&s.provider, s.loop, s.listener));
        RUN_UNTIL(s.loop, wire_has(&s.provider, " /x HTTP/1.1\r\n"));
        CHECK_EQ(s.decider.releases, 1);
        CHECK_EQ(s.decider.outcome, RATION_OUTCOME_FAILURE);
        CHECK_EQ(s.decider.observes, rows[i].observes);
        wire_close(&s.provider);
        RUN_UNTIL(s.loop, wire_has(&s.client, "urn:ration:problem:upstream_broken"));
        CHECK_EQ(rn_gateway_counts(s.gateway)->faults[RN_UPSTREAM_BROKEN], 2);
        CHECK_EQ(withheld(&s, RN_RETRY_SPENT), 1);
        CHECK_EQ(s.decider.releases, 2);
        stage_done(&s, "HTTP/1.1 502 Bad Gateway\r\n");
    }
    CHECK_ROW(NULL);
}

/* A fault is an answer too, if there is no other attempt: told once. */
static void test_a_fault_is_given(void **state)
{
    stage s;
    (void)state;

    stage_first(&s, TWO, "GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n");
    s.decider.result = RATION_REFUSED;
    wire_close(&s.provider);
    RUN_UNTIL(s.loop, wire_has(&s.client, "urn:ration:problem:upstream_broken"));
    CHECK_EQ(s.decider.submits, 2);
    CHECK_EQ(rn_gateway_counts(s.gateway)->faults[RN_UPSTREAM_BROKEN], 1);
    CHECK_EQ(withheld(&s, RN_RETRY_REFUSED), 1);
    stage_done(&s, "HTTP/1.1 502 Bad Gateway\r\n");
}

/* A lease that was taken back is not released; the call is made again all the same. */
static void test_a_lease_that_is_lost(void **state)
{
    stage s;
    (void)state;

    stage_first(&s, TWO, "GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n");
    stage_event(&s, RATION_EVENT_LOST);
    RUN_UNTIL(s.loop, s.decider.due == 0);
    stage_answer(&s, TOO_MANY, RATION_GRANTED);
    CHECK_EQ(s.decider.releases, 0);
    RUN_UNTIL(s.loop, wire_has(&s.provider, "GET /x HTTP/1.1\r\n"));
    wire_send(&s.provider, REPLY("200", "") "body");
    RUN_UNTIL(s.loop, wire_has(&s.client, "\r\n\r\nbody"));
    CHECK_EQ(s.decider.releases, 1);
    stage_done(&s, "HTTP/1.1 200 X\r\n");
}

/* A response that has begun needs no body behind it: what was kept goes, though the call may run for long. */
static void test_nothing_is_kept_for_a_response(void **state)
{
    stage s;
    (void)state;

    stage_first(&s, TWO, POST "abcdef");
    RUN_UNTIL(s.loop, wire_has(&s.provider, "abcdef"));
    CHECK_EQ(rn_gateway_kept(s.gateway), 6);
    wire_send(&s.provider, REPLY("200", "") "bo");
    RUN_UNTIL(s.loop, wire_has(&s.client, "\r\n\r\nbo"));
    CHECK_EQ(rn_gateway_kept(s.gateway), 0);
    wire_send(&s.provider, "dy");
    stage_done(&s, "\r\n\r\nbody");
}

/* Whether it says "too many" is in the body: only then it is made again, and what it cost is settled each time. */
static void test_looked_into(void **state)
{
    static const char more[] = TWO ", errors: {rateLimited: {statuses: [403], bodyContains: busy}}, "
                                   "actual: {header: X-Cost}";
    stage s;
    (void)state;

    stage_first(&s, more, "GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n");
    stage_answer(&s, "HTTP/1.1 403 X\r\nX-Cost: 3\r\nContent-Length: 4\r\n\r\nbusy", RATION_GRANTED);
    CHECK_EQ(s.decider.cost, 3 * RATION_UNIT);
    RUN_UNTIL(s.loop, wire_has(&s.provider, "GET /x HTTP/1.1\r\n"));
    wire_send(&s.provider, "HTTP/1.1 403 X\r\nX-Cost: 2\r\nContent-Length: 4\r\n\r\nnope");
    RUN_UNTIL(s.loop, wire_has(&s.client, "\r\n\r\nnope"));
    CHECK_EQ(s.decider.cost, 2 * RATION_UNIT);
    CHECK_EQ(s.decider.releases, 2);
    CHECK_EQ(s.decider.submits, 2);
    stage_done(&s, "HTTP/1.1 403 X\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_second_succeeds),
        cmocka_unit_test(test_the_second_is_refused),
        cmocka_unit_test(test_ended_in_between),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_not_again),
        cmocka_unit_test(test_a_long_answer),
        cmocka_unit_test(test_what_breaks),
        cmocka_unit_test(test_a_fault_is_given),
        cmocka_unit_test(test_a_lease_that_is_lost),
        cmocka_unit_test(test_nothing_is_kept_for_a_response),
        cmocka_unit_test(test_looked_into),
    };

    return cmocka_run_group_tests_name("attempt", tests, NULL, NULL);
}
