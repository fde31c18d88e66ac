/* SPDX-License-Identifier: MIT */
/* When results open a circuit: three strategies, to the result and to the microsecond; the ring that remembers. */
#include "support/check.h"
#include "support/failalloc.h"

#include "base/mem.h"
#include "base/units.h"
#include "core/breaker_ring.h"

#define S INT64_C(1000000)
#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

typedef struct world {
    rn_breaker_spec spec;
    rn_breaker breaker;
} world;

static void world_init(world *w, const ration_breaker_rule *rule, const ration_allocator *mem)
{
    ration_fault fault;

    memset(w, 0, sizeof *w);
    CHECK_EQ(rn_breaker_spec_init(&w->spec, rule, &fault), RATION_OK);
    CHECK_EQ(rn_breaker_init(&w->breaker, &w->spec, mem, ration_time_of(0)), RATION_OK);
}

/* ---- strategies ---- */

typedef struct mark {
    const char *why;
    int64_t at_us;
    const char *results; /* '+' success, '-' failure, in order; the circuit is closed before each */
    bool opens;          /* at the last of them */
} mark;

static void feed(const ration_breaker_rule *rule, const mark *marks, size_t count)
{
    world w;

    world_init(&w, rule, rn_mem_default());
    for (size_t i = 0; i < count; i++) {
        const ration_time now = ration_time_of(marks[i].at_us);

        CHECK_ROW(marks[i].why);
        for (const char *c = marks[i].results; *c != '\0'; c++) {
            const rn_breaker_pass pass = rn_breaker_enter(&w.breaker, now);

            CHECK_EQ(w.breaker.state, RATION_BREAKER_CLOSED);
            CHECK_EQ(rn_breaker_result(&w.breaker, now, &pass, *c == '+'),
                     marks[i].opens && c[1] == '\0' ? RN_BREAKER_OPENED : RN_BREAKER_SAME);
        }
        if (marks[i].opens)
            CHECK_EQ(rn_breaker_health(&w.breaker, now, true), RN_BREAKER_CLOSED);
    }
    CHECK_ROW(NULL);
    rn_breaker_fini(&w.breaker);
}

#define FEED(rule, marks) feed((rule), (marks), COUNT(marks))

static void test_consecutive(void **state)
{
    static const mark five[] = {
        {"four are not enough", 0, "----", false},
        {"a success forgets them", 0, "+", false},
        {"four again", 0, "----", false},
        {"a year later it is the fifth", INT64_C(366) * 86400 * S, "-", true},
        {"opening and closing forget", INT64_C(366) * 86400 * S, "----", false},
        {"five", INT64_C(366) * 86400 * S, "-", true},
    };
    static const mark one[] = {{"a success", 0, "+", false}, {"one", 0, "-", true}};
    ration_breaker_rule rule = {.strategy = RATION_BREAKER_CONSECUTIVE};

    (void)state;
    FEED(&rule, five);
    rule.threshold = 1;
    FEED(&rule, one);
}

static void test_count(void **state)
{
    static const mark ten[] = {
        {"nine failures are too few calls", 0, "---------", false},
        {"a success is no time to open", 0, "+", false},
        {"the next failure is", 0, "-", true},
        {"counts begin anew", 0, "---------", false},
        {"ten of ten", 0, "-", true},
    };
    static const mark last_four[] = {
        {"one of two", 0, "+-", false},
        {"one of four", 0, "++", false},
        {"of the last four one: the first failure has gone", 0, "+-", false},
        {"none of the last three", 0, "+++", false},
        {"two of the last four are half", 0, "--", true},
        {"two of three, but three are too few", 0, "--+", false},
        {"three of four", 0, "-", true},
    };
    static const mark two_thirds[] = {
        {"one of two", 0, "+-", false},
        {"two of three", 0, "-", true},
        {"one of three", 0, "+-+", false},
        {"none of three", 0, "++", false},
        {"the oldest goes: two of three", 0, "--", true},
    };
    static const mark all_seventy[] = {
        {"69 failures in a row", 0, "---------------------------------------------------------------------", false},
        {"and one success", 0, "+", false},
        {"of seventy, 69 failed", 0, "---------------------------------------------------------------------", false},
        {"the success has gone", 0, "-", true},
    };
    ration_breaker_rule rule = {.strategy = RATION_BREAKER_COUNT};

    (void)state;
    FEED(&rule, ten);
    rule.size = 4;
    rule.minimum_calls = 4;
    FEED(&rule, last_four);
    rule.size = 3;
    rule.minimum_calls = 0; /* as large as the size allows */
    rule.ratio = (ration_ratio){2, 3};
    FEED(&rule, two_thirds);
    rule.size = 70;
    rule.minimum_calls = 70;
    rule.ratio = (ration_ratio){1, 1};
    FEED(&rule, all_seventy);
}

/* The golden trace sampling, and more. */
static void test_sampling(void **state)
{
    static const mark two[] = {
        {"one is too few", 0, "-", false},
        {"a result exactly 10 s old is out", 10 * S, "-", false},
        {"1 us less is in", 20 * S - 1, "-", true},
    };
    static const mark half[] = {
        {"two of five", 0, "+++--", false},
        {"three of seven", 1, "+-", false},
        {"four of eight", 2, "-", true},
        {"two of four, of which three are not enough", 3, "+--+", false},
        {"three of five", 3, "-", true},
        {"successes", 4, "+++++++++", false},
        {"and eight failures: not half", 5, "--------", false},
        {"the successes are out at a failure", 10 * S + 4, "-", true},
    };
    static const mark out[] = {
        {"failures", 0, "---", false},
        {"a success is no time to open", 5 * S, "+++", false},
        {"the failures have gone: one of four", 10 * S, "-", false},
        {"one of five", 10 * S, "+", false},
        {"the successes of 5 s have gone too: two of three", 15 * S, "-", false},
        {"three of four", 15 * S, "-", true},
    };
    ration_breaker_rule rule = {.strategy = RATION_BREAKER_SAMPLING, .duration_us = 10 * S, .minimum_calls = 2};

    (void)state;
    FEED(&rule, two);
    rule.minimum_calls = 5;
    FEED(&rule, half);
    rule.minimum_calls = 4;
    FEED(&rule, out);
}

/* ---- the ring of instants ---- */

static void sample(world *w, int64_t at_us, bool ok)
{
    rn_breaker_ring_add(&w->breaker, ration_time_of(at_us), ok);
}

static void test_ring_grows(void **state)
{
    const ration_breaker_rule rule = {.strategy = RATION_BREAKER_SAMPLING, .duration_us = 1000};
    world w;

    (void)state;
    world_init(&w, &rule, rn_mem_default());
    for (int64_t at = 0; at < 5000; at++) {
        sample(&w, at, at % 3 != 0);
        sample(&w, at, true);
        CHECK_EQ(w.breaker.count, rn_min(at + 1, 1000));
        CHECK_EQ(w.breaker.calls, 2 * rn_min(at + 1, 1000));
        CHECK_EQ(w.breaker.failed, at / 3 - (at - 1000 >= 0 ? (at - 1000) / 3 : -1));
    }
    CHECK_EQ(w.breaker.capacity, 1024);
    rn_breaker_fini(&w.breaker);
}

static void test_ring_bound(void **state)
{
    const ration_breaker_rule rule = {.strategy = RATION_BREAKER_SAMPLING, .duration_us = 1000000};
    world w;

    (void)state;
    world_init(&w, &rule, rn_mem_default());
    for (int64_t at = 0; at < RN_BREAKER_ENTRIES_MAX; at++)
        sample(&w, at, false);
    CHECK_EQ(w.breaker.count, RN_BREAKER_ENTRIES_MAX);
    sample(&w, RN_BREAKER_ENTRIES_MAX, true);
    sample(&w, RN_BREAKER_ENTRIES_MAX + 1, true);
    CHECK_EQ(w.breaker.capacity, RN_BREAKER_ENTRIES_MAX);
    CHECK_EQ(w.breaker.count, RN_BREAKER_ENTRIES_MAX);
    CHECK_EQ(w.breaker.calls, RN_BREAKER_ENTRIES_MAX + 2);
    CHECK_EQ(w.breaker.failed, RN_BREAKER_ENTRIES_MAX);

    /* The three oldest have become one, of the latest of them. */
    rn_breaker_ring_expire(&w.breaker, ration_time_of(1000001));
    CHECK_EQ(w.breaker.failed, RN_BREAKER_ENTRIES_MAX);
    rn_breaker_ring_expire(&w.breaker, ration_time_of(1000002));
    CHECK_EQ(w.breaker.failed, RN_BREAKER_ENTRIES_MAX - 3);
    rn_breaker_ring_expire(&w.breaker, ration_time_of(RATION_TIME_MAX_US));
    CHECK_EQ(w.breaker.count, 0);
    CHECK_EQ(w.breaker.calls, 0);
    CHECK_EQ(w.breaker.failed, 0);
    rn_breaker_fini(&w.breaker);
}

/* Without memory nothing is lost but the instants of the oldest results. */
static void test_ring_without_memory(void **state)
{
    const ration_breaker_rule rule = {.strategy = RATION_BREAKER_SAMPLING, .duration_us = 1000};
    failalloc fail;
    world w;

    (void)state;
    failalloc_init(&fail, 1);
    world_init(&w, &rule, &fail.allocator);
    for (int64_t at = 0; at < 8; at++) {
        sample(&w, at, false);
        sample(&w, at, true);
    }
    CHECK(!fail.failed);
    sample(&w, 8, true);
    CHECK(fail.failed);
    CHECK_EQ(w.breaker.capacity, 8);
    CHECK_EQ(w.breaker.calls, 17);
    CHECK_EQ(w.breaker.failed, 8);
    rn_breaker_ring_expire(&w.breaker, ration_time_of(1000));
    CHECK_EQ(w.breaker.calls, 17);
    CHECK_EQ(w.breaker.failed, 8);
    rn_breaker_ring_expire(&w.breaker, ration_time_of(1001));
    CHECK_EQ(w.breaker.calls, 13);
    CHECK_EQ(w.breaker.failed, 6);

    /* And with memory again it grows. */
    for (int64_t at = 1002; at < 1012; at++)
        sample(&w, at, true);
    CHECK_EQ(w.breaker.capacity, 16);
    rn_breaker_fini(&w.breaker);
    CHECK_EQ(fail.live, 0);
}

static void test_no_memory(void **state)
{
    static const ration_breaker_strategy strategies[] = {RATION_BREAKER_COUNT, RATION_BREAKER_SAMPLING};

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        const ration_breaker_rule rule = {.strategy = strategies[i]};
        rn_breaker_spec spec;
        ration_fault fault;
        failalloc fail;
        rn_breaker breaker;

        CHECK_EQ(rn_breaker_spec_init(&spec, &rule, &fault), RATION_OK);
        failalloc_init(&fail, 0);
        CHECK_EQ(rn_breaker_init(&breaker, &spec, &fail.allocator, ration_time_of(0)), RATION_ERR_NOMEM);
        rn_breaker_fini(&breaker);
        CHECK_EQ(fail.live, 0);

        failalloc_init(&fail, UINT64_MAX);
        CHECK_EQ(rn_breaker_init(&breaker, &spec, &fail.allocator, ration_time_of(0)), RATION_OK);
        CHECK_EQ(fail.live, 1);
        rn_breaker_fini(&breaker);
        CHECK_EQ(fail.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_consecutive), cmocka_unit_test(test_count),
        cmocka_unit_test(test_sampling),    cmocka_unit_test(test_ring_grows),
        cmocka_unit_test(test_ring_bound),  cmocka_unit_test(test_ring_without_memory),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
