/* SPDX-License-Identifier: MIT */
/* The public breaker: what is due comes first, time never runs back, and no argument can hurt. */
#include "support/check.h"
#include "support/failalloc.h"

#include <ration/circuit.h>

#define S INT64_C(1000000)
#define NEVER RATION_NEVER_US
#define CLOSED RATION_BREAKER_CLOSED
#define OPEN RATION_BREAKER_OPEN
#define HALF RATION_BREAKER_HALF_OPEN

static const ration_breaker_rule probing = {
    .strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 2, .probes = 2, .backoff_multiplier = {2, 1}};

static ration_time at(int64_t us)
{
    return ration_time_of(us);
}

static ration_circuit *breaker_of(const ration_breaker_rule *rule)
{
    ration_circuit *breaker = NULL;

    CHECK_EQ(ration_circuit_new(rule, at(0), NULL, &breaker, NULL), RATION_OK);
    return breaker;
}

static ration_circuit_pass pass_at(ration_circuit *breaker, int64_t us, bool probe)
{
    ration_circuit_pass pass = {0, false};
    ration_circuit_status status;

    CHECK(ration_circuit_enter(breaker, at(us), &pass, &status));
    CHECK_EQ(pass.probe, probe);
    CHECK_EQ(pass.generation, status.generation);
    return pass;
}

static void check_status(ration_circuit *breaker, int64_t us, ration_circuit_state state, int64_t retry_us,
                         const char *cause)
{
    ration_circuit_status status;

    ration_circuit_get(breaker, at(us), &status);
    CHECK_EQ(status.state, state);
    CHECK_EQ(status.retry_at.us, retry_us);
    CHECK_STR(status.cause, cause);
}

static void check_barred(ration_circuit *breaker, int64_t us, ration_circuit_state state, int64_t retry_us)
{
    ration_circuit_pass pass = {77, true};
    ration_circuit_status status;

    CHECK(!ration_circuit_enter(breaker, at(us), &pass, &status));
    CHECK_EQ(pass.generation, 77);
    CHECK_EQ(status.state, state);
    CHECK_EQ(status.retry_at.us, retry_us);
    CHECK(!ration_circuit_enter(breaker, at(us), &pass, NULL));
}

static void test_life(void **state)
{
    ration_circuit *const b = breaker_of(&probing);

    (void)state;
    check_status(b, 0, CLOSED, NEVER, "");
    CHECK_EQ(ration_circuit_next_deadline(b).us, NEVER);

    const ration_circuit_pass first = pass_at(b, 0, false);
    const ration_circuit_pass second = pass_at(b, 0, false);
    const ration_circuit_pass third = pass_at(b, 0, false);

    CHECK(!ration_circuit_result(b, at(0), &first, false));
    CHECK(ration_circuit_result(b, at(0), &second, false));
    check_status(b, 0, OPEN, S, "2 failures in a row");
    CHECK_EQ(ration_circuit_next_deadline(b).us, S);
    check_barred(b, S - 1, OPEN, S);
    CHECK(!ration_circuit_advance(b, at(S - 1)));
    CHECK(ration_circuit_advance(b, at(S)));
    CHECK(!ration_circuit_advance(b, at(S)));
    check_status(b, S, HALF, NEVER, "the back-off is over");

    const ration_circuit_pass probe = pass_at(b, S, true);
    const ration_circuit_pass other = pass_at(b, S + 5, true);

    check_barred(b, S + 5, HALF, 2 * S);
    CHECK(!ration_circuit_result(b, at(S + 6), &third, false)); /* of an earlier generation */
    ration_circuit_leave(b, at(S + 6), &third);
    check_barred(b, S + 6, HALF, 2 * S);
    ration_circuit_leave(b, at(S + 6), &other);
    check_status(b, S + 6, HALF, NEVER, "the back-off is over");

    const ration_circuit_pass again = pass_at(b, S + 7, true);

    CHECK(!ration_circuit_result(b, at(S + 8), &again, true));
    CHECK(ration_circuit_result(b, at(S + 9), &probe, true));
    check_status(b, S + 9, CLOSED, NEVER, "2 probes succeeded");
    ration_circuit_free(b);
}

/* What is due comes before the call that finds it, whichever call that is. */
static void test_due_first(void **state)
{
    ration_circuit *const b = breaker_of(&probing);
    ration_circuit_pass a = pass_at(b, 0, false);

    (void)state;
    CHECK(!ration_circuit_result(b, at(0), &a, false));
    CHECK(ration_circuit_result(b, at(0), &a, false));
    CHECK(ration_circuit_result(b, at(S), &a, false)); /* half-open by time; the result is late */
    check_status(b, S, HALF, NEVER, "the back-off is over");
    a = pass_at(b, S, true);

    const ration_circuit_pass c = pass_at(b, S, true);

    ration_circuit_leave(b, at(2 * S), &a); /* lost at that very instant */
    check_status(b, 2 * S, HALF, NEVER, "probes were lost");

    const ration_circuit_pass d = pass_at(b, 2 * S, true);

    CHECK(!ration_circuit_result(b, at(2 * S), &c, false));
    CHECK(ration_circuit_result(b, at(2 * S), &d, false));
    check_status(b, 2 * S, OPEN, 4 * S, "a probe failed");
    CHECK(ration_circuit_health(b, at(4 * S), true)); /* half-open by time; its probes will tell */
    check_status(b, 4 * S, HALF, NEVER, "the back-off is over");
    (void)pass_at(b, 4 * S, true);
    (void)pass_at(b, 6 * S, true); /* of fresh permits, for the first is lost */
    (void)pass_at(b, 6 * S, true);
    check_barred(b, 6 * S, HALF, 8 * S);
    CHECK(!ration_circuit_advance(b, at(8 * S))); /* replaced, but as half-open as before */
    check_status(b, 8 * S, HALF, NEVER, "probes were lost");
    ration_circuit_free(b);
}

static void test_checks(void **state)
{
    const ration_breaker_rule rule = {
        .strategy = RATION_BREAKER_CONSECUTIVE,
        .threshold = 1,
        .recovery = RATION_RECOVERY_HEALTH_CHECK,
        .check_path = "/health",
        .idle_interval_us = 10 * S,
    };
    ration_circuit *const b = breaker_of(&rule);
    ration_circuit_status status;

    (void)state;
    CHECK_EQ(ration_circuit_next_deadline(b).us, 10 * S);
    CHECK(!ration_circuit_advance(b, at(10 * S - 1)));
    ration_circuit_get(b, at(10 * S - 1), &status);
    CHECK(!status.check_due);
    CHECK(ration_circuit_advance(b, at(12 * S)));
    ration_circuit_get(b, at(12 * S), &status);
    CHECK(status.check_due);
    CHECK_EQ(status.state, CLOSED);
    CHECK_EQ(ration_circuit_next_deadline(b).us, 22 * S);
    CHECK(ration_circuit_health(b, at(13 * S), false));
    ration_circuit_get(b, at(13 * S), &status);
    CHECK(!status.check_due);
    CHECK_EQ(status.state, OPEN);
    CHECK_EQ(status.retry_at.us, 14 * S);
    CHECK(ration_circuit_advance(b, at(14 * S)));
    CHECK(!ration_circuit_advance(b, at(14 * S)));
    CHECK(ration_circuit_advance(b, at(15 * S))); /* no answer: due again */
    CHECK(!ration_circuit_health(b, at(15 * S), false));
    check_status(b, 15 * S, OPEN, 16 * S, "1 health check failed while idle");
    CHECK(ration_circuit_health(b, at(15 * S), true));
    check_status(b, 15 * S, CLOSED, NEVER, "health check succeeded");
    ration_circuit_free(b);
}

static void test_time_back(void **state)
{
    ration_circuit *const b = breaker_of(&probing);
    const ration_circuit_pass a = pass_at(b, 5 * S, false);
    const ration_breaker_rule rule = {
        .strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 1, .idle_interval_us = 2 * S};
    ration_circuit *made = NULL;

    (void)state;
    CHECK(!ration_circuit_result(b, at(-7 * S), &a, false));
    CHECK(ration_circuit_result(b, at(0), &a, false));
    check_status(b, 0, OPEN, 6 * S, "2 failures in a row"); /* from 5 s */
    CHECK(ration_circuit_advance(b, at(6 * S)));
    check_status(b, 0, HALF, NEVER, "the back-off is over");
    (void)pass_at(b, 0, true);
    (void)pass_at(b, 0, true);
    check_barred(b, 0, HALF, 7 * S);
    ration_circuit_free(b);

    CHECK_EQ(ration_circuit_new(&rule, at(5 * S), NULL, &made, NULL), RATION_OK);
    CHECK_EQ(ration_circuit_next_deadline(made).us, 7 * S);
    CHECK(!ration_circuit_health(made, at(0), true));

    const ration_circuit_pass pass = pass_at(made, 0, false);

    CHECK(ration_circuit_result(made, at(0), &pass, false));
    check_status(made, 0, OPEN, 6 * S, "1 failure");
    ration_circuit_free(made);
}

static void test_arguments(void **state)
{
    static const int64_t no_instants[] = {RATION_NEVER_US, RATION_TIME_MAX_US + 1, -RATION_TIME_MAX_US - 1, INT64_MIN};
    ration_breaker_rule rule = probing;
    ration_circuit *b = NULL;
    ration_fault fault = {{0}, {0}};
    ration_circuit_pass pass = {0, false};
    ration_circuit_status status = {.generation = 77};

    (void)state;
    CHECK_EQ(ration_circuit_new(NULL, at(0), NULL, &b, &fault), RATION_ERR_INVALID);
    CHECK_EQ(ration_circuit_new(&rule, at(0), NULL, NULL, &fault), RATION_ERR_INVALID);
    CHECK_EQ(ration_circuit_new(&rule, at(NEVER), NULL, &b, &fault), RATION_ERR_INVALID);
    rule.probes = -1;
    CHECK_EQ(ration_circuit_new(&rule, at(0), NULL, &b, &fault), RATION_ERR_CONFIG);
    CHECK_STR(fault.path, "breaker.probe.n");
    CHECK_EQ(ration_circuit_new(&rule, at(0), NULL, &b, NULL), RATION_ERR_CONFIG);
    CHECK(b == NULL);

    CHECK(!ration_circuit_enter(NULL, at(0), &pass, &status));
    CHECK(!ration_circuit_result(NULL, at(0), &pass, false));
    ration_circuit_leave(NULL, at(0), &pass);
    CHECK(!ration_circuit_health(NULL, at(0), false));
    CHECK(!ration_circuit_advance(NULL, at(0)));
    CHECK_EQ(ration_circuit_next_deadline(NULL).us, NEVER);
    ration_circuit_get(NULL, at(0), &status);
    CHECK_EQ(status.generation, 77);
    ration_circuit_free(NULL);

    b = breaker_of(&probing);
    CHECK(!ration_circuit_enter(b, at(0), NULL, &status));
    CHECK(!ration_circuit_result(b, at(0), NULL, false));
    ration_circuit_leave(b, at(0), NULL);
    ration_circuit_get(b, at(0), NULL);
    CHECK(!ration_circuit_result(b, at(0), &pass, false)); /* zeroed: nothing */
    CHECK(!ration_circuit_result(b, at(0), &pass, false));
    pass = pass_at(b, 0, false);
    CHECK(!ration_circuit_result(b, at(0), &pass, false));
    for (size_t i = 0; i < sizeof no_instants / sizeof no_instants[0]; i++) {
        CHECK(!ration_circuit_enter(b, at(no_instants[i]), &pass, &status));
        CHECK(!ration_circuit_result(b, at(no_instants[i]), &pass, false));
        ration_circuit_leave(b, at(no_instants[i]), &pass);
        CHECK(!ration_circuit_health(b, at(no_instants[i]), false));
        CHECK(!ration_circuit_advance(b, at(no_instants[i])));
        ration_circuit_get(b, at(no_instants[i]), &status);
        CHECK_EQ(status.generation, 77);
    }
    ration_circuit_get(b, at(-RATION_TIME_MAX_US), &status);
    CHECK_EQ(status.generation, 1);
    check_status(b, 0, CLOSED, NEVER, "");
    CHECK(ration_circuit_result(b, at(0), &pass, false));
    CHECK(ration_circuit_advance(b, at(RATION_TIME_MAX_US)));
    ration_circuit_free(b);
}

/* The rule is copied, and what it points to is not looked at again. */
static void test_borrows_nothing(void **state)
{
    char path[] = "/health";
    int expect[] = {200};
    ration_breaker_rule rule = probing;

    (void)state;
    rule.check_path = path;
    rule.check_expect = expect;
    rule.check_expect_count = 1;

    ration_circuit *const b = breaker_of(&rule);

    memset(path, 0, sizeof path);
    memset(expect, 0, sizeof expect);
    memset(&rule, 0, sizeof rule);

    const ration_circuit_pass pass = pass_at(b, 0, false);

    CHECK(!ration_circuit_result(b, at(0), &pass, false));
    CHECK(ration_circuit_result(b, at(0), &pass, false));
    ration_circuit_free(b);
}

static void test_no_memory(void **state)
{
    const ration_breaker_rule rule = {.strategy = RATION_BREAKER_SAMPLING, .minimum_calls = 20};
    failalloc fail = {.failed = true};
    uint64_t runs = 0;

    (void)state;
    for (uint64_t i = 0; fail.failed; i++) {
        ration_circuit *b = NULL;

        failalloc_init(&fail, i);

        const int err = ration_circuit_new(&rule, at(0), &fail.allocator, &b, NULL);

        CHECK_EQ(err, b == NULL ? RATION_ERR_NOMEM : RATION_OK);
        CHECK(b != NULL || fail.failed);
        if (b != NULL) {
            /* Twenty instants outgrow the first ring twice; without memory it counts all the same. */
            ration_circuit_pass pass = pass_at(b, 0, false);

            for (int64_t k = 0; k < 19; k++)
                CHECK(!ration_circuit_result(b, at(k), &pass, false));
            CHECK(ration_circuit_result(b, at(19), &pass, false));
        }
        ration_circuit_free(b);
        CHECK_EQ(fail.live, 0);
        runs++;
    }
    CHECK_EQ(runs, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),      cmocka_unit_test(test_due_first), cmocka_unit_test(test_checks),
        cmocka_unit_test(test_time_back), cmocka_unit_test(test_arguments), cmocka_unit_test(test_borrows_nothing),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
