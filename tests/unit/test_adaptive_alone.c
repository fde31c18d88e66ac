/* SPDX-License-Identifier: MIT */
/* The public adaptive limit: when it moves, who waits, whose lease is lost, when it pauses; no argument can hurt. */
#include "support/check.h"
#include "support/failalloc.h"

#include <ration/adaptive.h>

#define S INT64_C(1000000)
#define NEVER RATION_NEVER_US
#define NO_RETRY ration_time_of(NEVER)

static ration_time at(int64_t us)
{
    return ration_time_of(us);
}

static ration_adaptive *limit_of(const ration_adaptive_rule *rule)
{
    ration_adaptive *adaptive = NULL;

    CHECK_EQ(ration_adaptive_new(rule, at(0), NULL, &adaptive, NULL), RATION_OK);
    return adaptive;
}

static ration_decision ask_for(ration_adaptive *a, int64_t us, const ration_adaptive_request *request)
{
    ration_decision decision;

    CHECK_EQ(ration_adaptive_acquire(a, at(us), request, &decision), RATION_OK);
    return decision;
}

/* Ask and wait at most `wait_us`. */
static ration_decision ask(ration_adaptive *a, int64_t us, int64_t wait_us)
{
    ration_adaptive_request request = RATION_ADAPTIVE_REQUEST_INIT;

    request.wait_us = wait_us;
    return ask_for(a, us, &request);
}

static ration_lease granted(ration_adaptive *a, int64_t us)
{
    const ration_decision decision = ask(a, us, 0);

    CHECK_EQ(decision.result, RATION_GRANTED);
    return decision.lease;
}

static void check_refused(ration_decision decision, ration_reason reason, int64_t retry_us)
{
    CHECK_EQ(decision.result, RATION_REFUSED);
    CHECK_STR(ration_reason_name(decision.reason), ration_reason_name(reason));
    CHECK_EQ(decision.retry_at.us, retry_us);
}

static void full(ration_adaptive *a, int64_t us)
{
    check_refused(ask(a, us, 0), RATION_REASON_ADAPTIVE_FULL, NEVER);
}

static void check_state(const ration_adaptive *a, int64_t limit, int64_t held)
{
    CHECK_EQ(ration_adaptive_limit(a), limit);
    CHECK_EQ(ration_adaptive_held(a), held);
}

static void end(ration_adaptive *a, int64_t us, ration_lease lease, ration_outcome outcome)
{
    CHECK_EQ(ration_adaptive_release(a, at(us), lease, outcome, NO_RETRY), RATION_OK);
}

static ration_event next_event(ration_adaptive *a, ration_event_type type)
{
    ration_event event;

    CHECK(ration_adaptive_next_event(a, &event));
    CHECK_EQ(event.type, type);
    return event;
}

static void no_event(ration_adaptive *a)
{
    ration_event event;

    CHECK(!ration_adaptive_next_event(a, &event));
}

/* The golden trace aimd-sawtooth, without a config. */
static void test_sawtooth(void **state)
{
    const ration_adaptive_rule rule = {.initial_limit = 4};
    ration_adaptive *const a = limit_of(&rule);
    ration_lease leases[4];

    (void)state;
    check_state(a, 4, 0);
    for (int i = 0; i < 4; i++)
        leases[i] = granted(a, 1 * S);
    check_state(a, 4, 4);
    full(a, 6 * S - 1);
    (void)granted(a, 6 * S);
    full(a, 6 * S);
    full(a, 11 * S - 1);
    (void)granted(a, 11 * S);
    check_state(a, 6, 6);
    end(a, 12 * S, leases[0], RATION_OUTCOME_THROTTLED);
    check_state(a, 3, 5);
    end(a, 22 * S - 1, leases[1], RATION_OUTCOME_THROTTLED);
    check_state(a, 3, 4);
    end(a, 22 * S, leases[2], RATION_OUTCOME_THROTTLED);
    check_state(a, 1, 3);
    full(a, 27 * S - 1);
    check_state(a, 1, 3);
    full(a, 27 * S);
    check_state(a, 2, 3);
    ration_adaptive_free(a);
}

static void test_limit_events(void **state)
{
    const ration_adaptive_rule rule = {.initial_limit = 1};
    ration_adaptive *const a = limit_of(&rule);
    const ration_lease first = granted(a, 0);
    const ration_lease second = granted(a, 5 * S);
    ration_event event = next_event(a, RATION_EVENT_LIMIT);

    (void)state;
    CHECK_EQ(event.at.us, 5 * S);
    CHECK_EQ(event.value, 2 * RATION_UNIT);
    CHECK_STR(event.decision.limit, "adaptive");
    CHECK(event.cause[0] != '\0');
    end(a, 6 * S, first, RATION_OUTCOME_SUCCESS);
    end(a, 6 * S, second, RATION_OUTCOME_THROTTLED);
    event = next_event(a, RATION_EVENT_LIMIT);
    CHECK_EQ(event.at.us, 6 * S);
    CHECK_EQ(event.value, RATION_UNIT);
    no_event(a);
    ration_adaptive_free(a);
}

static void test_waiting(void **state)
{
    static int name;
    const ration_adaptive_rule rule = {.initial_limit = 1};
    ration_adaptive *const a = limit_of(&rule);
    ration_adaptive_request request = RATION_ADAPTIVE_REQUEST_INIT;
    const ration_lease first = granted(a, 0);

    (void)state;
    request.wait_us = 60 * S;
    request.user = &name;

    const ration_decision low = ask_for(a, 1 * S, &request);

    request.priority = RATION_PRIORITY_HIGH;
    request.user = NULL;

    const ration_decision high = ask_for(a, 2 * S, &request);
    const ration_decision late = ask(a, 2 * S, 1 * S);
    const ration_decision gone = ask(a, 2 * S, 60 * S);

    CHECK_EQ(low.result, RATION_QUEUED);
    CHECK_EQ(high.result, RATION_QUEUED);
    CHECK_EQ(late.result, RATION_QUEUED);
    CHECK_EQ(ration_adaptive_cancel(a, at(2 * S), gone.lease), RATION_OK);
    CHECK_EQ(ration_adaptive_cancel(a, at(2 * S), gone.lease), RATION_ERR_UNKNOWN);
    CHECK_EQ(ration_adaptive_release(a, at(2 * S), low.lease, RATION_OUTCOME_THROTTLED, NO_RETRY), RATION_ERR_UNKNOWN);
    CHECK_EQ(ration_adaptive_next_deadline(a).us, 3 * S);
    CHECK_EQ(ration_adaptive_advance(a, at(3 * S)), RATION_OK);

    ration_event event = next_event(a, RATION_EVENT_REFUSED);

    CHECK_EQ(event.serial, late.serial);
    CHECK_EQ(event.decision.reason, RATION_REASON_DEADLINE);
    end(a, 4 * S, first, RATION_OUTCOME_FAILURE);
    event = next_event(a, RATION_EVENT_GRANTED);
    CHECK_EQ(event.serial, high.serial);
    CHECK_EQ(event.waited_us, 2 * S);
    no_event(a);

    /* A waiter is demand at the cap: the limit grows for it, one window after the first acquire. */
    CHECK_EQ(ration_adaptive_next_deadline(a).us, 5 * S);
    CHECK_EQ(ration_adaptive_advance(a, at(5 * S)), RATION_OK);
    (void)next_event(a, RATION_EVENT_LIMIT);
    event = next_event(a, RATION_EVENT_GRANTED);
    CHECK_EQ(event.serial, low.serial);
    CHECK(event.user == &name);
    check_state(a, 2, 2);
    ration_adaptive_free(a);
}

static void test_ttl(void **state)
{
    const ration_adaptive_rule rule = {.initial_limit = 3, .lease_ttl_us = 10 * S};
    ration_adaptive *const a = limit_of(&rule);
    ration_adaptive_request request = RATION_ADAPTIVE_REQUEST_INIT;
    const ration_lease usual = granted(a, 0);

    (void)state;
    request.ttl_us = 3 * S;

    const ration_lease brief = ask_for(a, 0, &request).lease;

    request.ttl_us = RATION_FOREVER_US;

    const ration_lease forever = ask_for(a, 0, &request).lease;

    CHECK_EQ(ration_adaptive_next_deadline(a).us, 3 * S);
    CHECK_EQ(ration_adaptive_advance(a, at(3 * S - 1)), RATION_OK);
    check_state(a, 3, 3);
    CHECK_EQ(ration_adaptive_renew(a, at(3 * S), brief), RATION_ERR_UNKNOWN);

    ration_event event = next_event(a, RATION_EVENT_LOST);

    CHECK_EQ(event.lease.index, brief.index);
    CHECK_EQ(event.at.us, 3 * S);
    check_state(a, 3, 2);
    CHECK_EQ(ration_adaptive_renew(a, at(8 * S), usual), RATION_OK);
    CHECK_EQ(ration_adaptive_renew(a, at(8 * S), forever), RATION_OK);
    CHECK_EQ(ration_adaptive_next_deadline(a).us, 18 * S);
    CHECK_EQ(ration_adaptive_advance(a, at(20 * S)), RATION_OK);
    event = next_event(a, RATION_EVENT_LOST);
    CHECK_EQ(event.lease.index, usual.index);
    CHECK_EQ(event.at.us, 18 * S);
    CHECK_EQ(ration_adaptive_next_deadline(a).us, NEVER);
    check_state(a, 3, 1);
    end(a, 3600 * S, forever, RATION_OUTCOME_SUCCESS);
    check_state(a, 3, 0);
    ration_adaptive_free(a);
}

/* The default is 30 s. */
static void test_default_ttl(void **state)
{
    const ration_adaptive_rule rule = {.initial_limit = 3};
    ration_adaptive *const a = limit_of(&rule);

    (void)state;
    (void)granted(a, 7 * S);
    CHECK_EQ(ration_adaptive_next_deadline(a).us, 37 * S);
    ration_adaptive_free(a);
}

/* Throttling shrinks the limit and does nothing else, whatever time comes with it. */
static void test_no_pause(void **state)
{
    const ration_adaptive_rule rule = {.initial_limit = 8};
    ration_adaptive *const a = limit_of(&rule);
    const ration_lease lease = granted(a, 0);

    (void)state;
    CHECK_EQ(ration_adaptive_release(a, at(0), lease, RATION_OUTCOME_THROTTLED, at(9 * S)), RATION_OK);
    check_state(a, 4, 0);
    (void)granted(a, 0);
    CHECK_EQ(ration_adaptive_release(a, at(0), lease, RATION_OUTCOME_THROTTLED, NO_RETRY), RATION_ERR_UNKNOWN);
    check_state(a, 4, 1);
    ration_adaptive_free(a);
}

static void test_pause(void **state)
{
    const int64_t day = INT64_C(86400) * S;
    const ration_adaptive_rule rule = {.initial_limit = 8, .cooldown_us = 1, .pause_on_retry_after = true};
    ration_adaptive *const a = limit_of(&rule);
    ration_lease leases[6];

    (void)state;
    for (int i = 0; i < 6; i++)
        leases[i] = granted(a, 0);

    CHECK_ROW("an instant exact to the microsecond");
    CHECK_EQ(ration_adaptive_release(a, at(1), leases[0], RATION_OUTCOME_THROTTLED, at(2345678)), RATION_OK);
    check_refused(ask(a, 1, 0), RATION_REASON_PENALIZED, NEVER); /* and five held, four allowed: who knows */
    end(a, 1, leases[1], RATION_OUTCOME_SUCCESS);
    end(a, 1, leases[2], RATION_OUTCOME_SUCCESS);
    check_refused(ask(a, 1, 0), RATION_REASON_PENALIZED, 2345678);
    check_refused(ask(a, 2345677, 0), RATION_REASON_PENALIZED, 2345678);
    end(a, 2345678, granted(a, 2345678), RATION_OUTCOME_SUCCESS);
    check_state(a, 4, 3);

    CHECK_ROW("no time, or one that has passed: no pause");
    end(a, 3 * S, granted(a, 3 * S), RATION_OUTCOME_THROTTLED);
    CHECK_EQ(ration_adaptive_release(a, at(3 * S), leases[3], RATION_OUTCOME_THROTTLED, at(3 * S)), RATION_OK);
    end(a, 3 * S, leases[4], RATION_OUTCOME_SUCCESS);
    check_state(a, 2, 1);
    end(a, 3 * S, granted(a, 3 * S), RATION_OUTCOME_SUCCESS);

    CHECK_ROW("a time with any other outcome: no pause");
    CHECK_EQ(ration_adaptive_release(a, at(3 * S), leases[5], RATION_OUTCOME_FAILURE, at(9 * S)), RATION_OK);

    CHECK_ROW("who waits goes when it is over; time that runs back is the newest seen");
    const ration_lease last = granted(a, 4 * S);

    CHECK_EQ(ration_adaptive_release(a, at(0), last, RATION_OUTCOME_THROTTLED, at(5 * S)), RATION_OK);
    while (ration_adaptive_next_event(a, &(ration_event){0}))
        ;
    CHECK_EQ(ask(a, 4 * S, 10 * S).result, RATION_QUEUED);
    CHECK_EQ(ration_adaptive_next_deadline(a).us, 5 * S);
    CHECK_EQ(ration_adaptive_advance(a, at(5 * S)), RATION_OK);

    const ration_event event = next_event(a, RATION_EVENT_GRANTED);

    CHECK_EQ(event.waited_us, 1 * S);

    CHECK_ROW("as long as it takes");
    CHECK_EQ(ration_adaptive_release(a, at(6 * S), event.lease, RATION_OUTCOME_THROTTLED, at(400 * day)), RATION_OK);
    CHECK_EQ(next_event(a, RATION_EVENT_PENALTY).decision.retry_at.us, 400 * day);
    check_refused(ask(a, 400 * day - 1, 0), RATION_REASON_PENALIZED, 400 * day);
    (void)granted(a, 400 * day);
    ration_adaptive_free(a);
}

static ration_decision ask_as(ration_adaptive *a, int64_t us, const char *class_name, int64_t hold_us)
{
    ration_adaptive_request request = RATION_ADAPTIVE_REQUEST_INIT;

    request.class_name = ration_text_of(class_name);
    request.hold_us = hold_us;
    return ask_for(a, us, &request);
}

static void test_classes(void **state)
{
    static const ration_class_rule classes[] = {{"interactive", {1, 4}}, {"background", {0, 0}}};
    const ration_adaptive_rule rule = {.initial_limit = 4, .classes = classes, .class_count = 2};
    ration_adaptive *const a = limit_of(&rule);

    (void)state;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(ask_as(a, 0, "background", RATION_UNSET).result, RATION_GRANTED);
    check_refused(ask_as(a, 0, "background", RATION_UNSET), RATION_REASON_ADAPTIVE_FULL, NEVER);
    full(a, 0);
    check_refused(ask_as(a, 0, "bulk", RATION_UNSET), RATION_REASON_UNKNOWN_CLASS, NEVER);
    CHECK_EQ(ask_as(a, 0, "interactive", RATION_UNSET).result, RATION_GRANTED);
    check_state(a, 4, 4);
    ration_adaptive_free(a);
}

/* An idle class lends its slice to whoever declares to be back in time. */
static void test_lend(void **state)
{
    static const ration_class_rule classes[] = {{"interactive", {1, 2}}, {"background", {0, 0}}};
    const ration_adaptive_rule rule = {
        .initial_limit = 2, .classes = classes, .class_count = 2, .lend_horizon_us = S, .lend_idle_us = 2 * S};
    ration_adaptive *const a = limit_of(&rule);

    (void)state;
    CHECK_EQ(ask_as(a, 0, "background", S).result, RATION_GRANTED);
    check_refused(ask_as(a, 2 * S - 1, "background", S), RATION_REASON_ADAPTIVE_FULL, NEVER);
    check_refused(ask_as(a, 2 * S, "background", S + 1), RATION_REASON_ADAPTIVE_FULL, NEVER);
    check_refused(ask_as(a, 2 * S, "background", RATION_UNSET), RATION_REASON_ADAPTIVE_FULL, NEVER);
    CHECK_EQ(ask_as(a, 2 * S, "background", S).result, RATION_GRANTED);
    ration_adaptive_free(a);
}

static void test_arguments(void **state)
{
    const ration_adaptive_request request = RATION_ADAPTIVE_REQUEST_INIT;
    ration_adaptive_request bad = RATION_ADAPTIVE_REQUEST_INIT;
    ration_adaptive_rule rule = {.initial_limit = 4};
    const ration_lease nothing = {0, 0};
    ration_adaptive *a = NULL;
    ration_fault fault = {{0}, {0}};
    ration_decision decision;
    ration_event event;

    (void)state;
    CHECK_EQ(ration_adaptive_new(NULL, at(0), NULL, &a, &fault), RATION_ERR_INVALID);
    CHECK_EQ(ration_adaptive_new(&rule, at(0), NULL, NULL, &fault), RATION_ERR_INVALID);
    CHECK_EQ(ration_adaptive_new(&rule, at(NEVER), NULL, &a, &fault), RATION_ERR_INVALID);
    rule.initial_limit = 0;
    CHECK_EQ(ration_adaptive_new(&rule, at(0), NULL, &a, &fault), RATION_ERR_CONFIG);
    CHECK_STR(fault.path, "initialLimit");
    CHECK_EQ(ration_adaptive_new(&rule, at(0), NULL, &a, NULL), RATION_ERR_CONFIG);
    CHECK(a == NULL);

    CHECK_EQ(ration_adaptive_acquire(NULL, at(0), &request, &decision), RATION_ERR_INVALID);
    CHECK_EQ(ration_adaptive_release(NULL, at(0), nothing, RATION_OUTCOME_SUCCESS, NO_RETRY), RATION_ERR_INVALID);
    CHECK_EQ(ration_adaptive_renew(NULL, at(0), nothing), RATION_ERR_INVALID);
    CHECK_EQ(ration_adaptive_cancel(NULL, at(0), nothing), RATION_ERR_INVALID);
    CHECK_EQ(ration_adaptive_advance(NULL, at(0)), RATION_ERR_INVALID);
    CHECK_EQ(ration_adaptive_next_deadline(NULL).us, NEVER);
    CHECK(!ration_adaptive_next_event(NULL, &event));
    check_state(NULL, 0, 0);
    ration_adaptive_free(NULL);

    rule.initial_limit = 4;
    a = limit_of(&rule);
    CHECK_EQ(ration_adaptive_acquire(a, at(0), NULL, &decision), RATION_ERR_INVALID);
    CHECK_EQ(ration_adaptive_acquire(a, at(0), &request, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_adaptive_acquire(a, at(NEVER), &request, &decision), RATION_ERR_INVALID);
    bad.ttl_us = 0;
    CHECK_EQ(ration_adaptive_acquire(a, at(0), &bad, &decision), RATION_ERR_INVALID);
    bad.ttl_us = -2;
    CHECK_EQ(ration_adaptive_acquire(a, at(0), &bad, &decision), RATION_ERR_INVALID);
    bad = request;
    bad.wait_us = -1;
    CHECK_EQ(ration_adaptive_acquire(a, at(0), &bad, &decision), RATION_ERR_INVALID);
    bad = request;
    bad.priority = (ration_priority)99;
    CHECK_EQ(ration_adaptive_acquire(a, at(0), &bad, &decision), RATION_ERR_INVALID);

    const ration_lease lease = granted(a, 0);

    CHECK_EQ(ration_adaptive_release(a, at(NEVER), lease, RATION_OUTCOME_THROTTLED, NO_RETRY), RATION_ERR_INVALID);
    CHECK_EQ(ration_adaptive_release(a, at(0), lease, (ration_outcome)7, NO_RETRY), RATION_ERR_INVALID);
    CHECK_EQ(ration_adaptive_release(a, at(0), nothing, RATION_OUTCOME_THROTTLED, NO_RETRY), RATION_ERR_UNKNOWN);
    CHECK_EQ(ration_adaptive_renew(a, at(NEVER), lease), RATION_ERR_INVALID);
    CHECK_EQ(ration_adaptive_advance(a, at(NEVER)), RATION_ERR_INVALID);
    CHECK(!ration_adaptive_next_event(a, NULL));
    check_state(a, 4, 1);
    CHECK_EQ(ration_adaptive_release(a, at(0), lease, RATION_OUTCOME_THROTTLED, at(INT64_MIN)), RATION_OK);
    check_state(a, 2, 0);
    ration_adaptive_free(a);
}

/* The rule is copied, names and all. */
static void test_borrows_nothing(void **state)
{
    char name[] = "bulk";
    ration_class_rule classes[] = {{name, {1, 2}}};
    ration_adaptive_rule rule = {.initial_limit = 2, .classes = classes, .class_count = 1};
    ration_adaptive *const a = limit_of(&rule);

    (void)state;
    memset(name, 'x', sizeof name - 1);
    memset(classes, 0, sizeof classes);
    memset(&rule, 0, sizeof rule);
    CHECK_EQ(ask_as(a, 0, "bulk", RATION_UNSET).result, RATION_GRANTED);
    CHECK_EQ(ask_as(a, 0, "bulk", RATION_UNSET).result, RATION_GRANTED);
    ration_adaptive_free(a);
}

static void test_no_memory(void **state)
{
    static const ration_class_rule classes[] = {{"bulk", {1, 2}}};
    const ration_adaptive_rule rule = {.initial_limit = 1, .classes = classes, .class_count = 1};
    const ration_adaptive_request request = RATION_ADAPTIVE_REQUEST_INIT;
    failalloc fail = {.failed = true};

    (void)state;
    for (uint64_t i = 0; fail.failed; i++) {
        ration_adaptive *a = NULL;
        ration_decision decision = {.result = RATION_REFUSED};

        failalloc_init(&fail, i);

        int err = ration_adaptive_new(&rule, at(0), &fail.allocator, &a, NULL);

        CHECK_EQ(err, a == NULL ? RATION_ERR_NOMEM : RATION_OK);
        CHECK(a != NULL || fail.failed);
        if (a != NULL) {
            err = ration_adaptive_acquire(a, at(0), &request, &decision);
            CHECK(err == RATION_OK || (err == RATION_ERR_NOMEM && fail.failed));
            if (err == RATION_ERR_NOMEM)
                CHECK_EQ(ration_adaptive_acquire(a, at(0), &request, &decision), RATION_OK);
            CHECK_EQ(decision.result, RATION_REFUSED); /* one slot, and a half of it, rounded up, is bulk's */
        }
        ration_adaptive_free(a);
        CHECK_EQ(fail.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sawtooth),  cmocka_unit_test(test_limit_events),    cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_ttl),       cmocka_unit_test(test_default_ttl),     cmocka_unit_test(test_no_pause),
        cmocka_unit_test(test_pause),     cmocka_unit_test(test_classes),         cmocka_unit_test(test_lend),
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_borrows_nothing), cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
