/* SPDX-License-Identifier: MIT */
/* Rules of breakers: what is missing, what is wrong, and how their causes read. */
#include "support/check.h"

#include "core/breaker.h"

#define S INT64_C(1000000)
#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

#define CONSECUTIVE .strategy = RATION_BREAKER_CONSECUTIVE
#define BY_COUNT .strategy = RATION_BREAKER_COUNT
#define SAMPLING .strategy = RATION_BREAKER_SAMPLING

typedef struct row {
    const char *why, *path;
    ration_breaker_rule rule;
} row;

static void rows_check(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rn_breaker_spec spec = {.rule = {.probes = 77}};
        ration_fault fault = {{0}, {0}};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_breaker_spec_init(&spec, &rows[i].rule, &fault),
                 rows[i].path == NULL ? RATION_OK : RATION_ERR_CONFIG);
        CHECK_STR(fault.path, rows[i].path == NULL ? "" : rows[i].path);
        CHECK((fault.text[0] == '\0') == (rows[i].path == NULL));
        CHECK(rows[i].path == NULL || spec.rule.probes == 77);
    }
}

static void test_strategies(void **state)
{
    static const row rows[] = {
        {"no strategy", "breaker.strategy", {.strategy = RATION_BREAKER_NONE}},
        {"no such strategy", "breaker.strategy", {.strategy = (ration_breaker_strategy)9}},
        {"defaults", NULL, {CONSECUTIVE}},
        {"defaults", NULL, {BY_COUNT}},
        {"defaults", NULL, {SAMPLING}},
        {"a negative threshold", "breaker.threshold", {CONSECUTIVE, .threshold = -1}},
        {"a million failures", NULL, {CONSECUTIVE, .threshold = 1000000}},
        {"more", "breaker.threshold", {CONSECUTIVE, .threshold = 1000001}},
        {"a ratio of 0", "breaker.threshold", {BY_COUNT, .ratio = {0, 1}}},
        {"a negative ratio", "breaker.threshold", {BY_COUNT, .ratio = {-1, 2}}},
        {"a negative part", "breaker.threshold", {BY_COUNT, .ratio = {1, -2}}},
        {"a ratio of 1", NULL, {BY_COUNT, .ratio = {1, 1}}},
        {"above 1", "breaker.threshold", {BY_COUNT, .ratio = {3, 2}}},
        {"a part above a million", "breaker.threshold", {BY_COUNT, .ratio = {1, 1000001}}},
        {"a negative size", "breaker.size", {BY_COUNT, .size = -1}},
        {"the largest size", NULL, {BY_COUNT, .size = 65536}},
        {"a larger one", "breaker.size", {BY_COUNT, .size = 65537}},
        {"a size below the default minimum", NULL, {BY_COUNT, .size = 1}},
        {"a size below the given minimum", "breaker.minimumCalls", {BY_COUNT, .size = 5, .minimum_calls = 6}},
        {"equal", NULL, {BY_COUNT, .size = 5, .minimum_calls = 5}},
        {"sampling has no size", NULL, {SAMPLING, .size = 5, .minimum_calls = 6}},
        {"a negative quorum", "breaker.quorum", {SAMPLING, .quorum = -1}},
        {"a quorum above a thousand", "breaker.quorum", {SAMPLING, .quorum = 1001}},
        {"a quorum of a thousand", NULL, {SAMPLING, .quorum = 1000}},
        {"a negative minimum", "breaker.minimumCalls", {SAMPLING, .minimum_calls = -1}},
        {"a minimum above a million", "breaker.minimumCalls", {SAMPLING, .minimum_calls = 1000001}},
        {"a negative duration", "breaker.duration", {SAMPLING, .duration_us = -1}},
        {"a duration without end", "breaker.duration", {SAMPLING, .duration_us = RATION_FOREVER_US}},
    };

    (void)state;
    rows_check(rows, COUNT(rows));
}

static void test_recoveries(void **state)
{
    static const row rows[] = {
        {"no such recovery", "breaker.recovery", {CONSECUTIVE, .recovery = (ration_recovery)2}},
        {"a negative number of probes", "breaker.probe.n", {CONSECUTIVE, .probes = -1}},
        {"above a million", "breaker.probe.n", {CONSECUTIVE, .probes = 1000001}},
        {"a negative delay", "breaker.backoff.initial", {CONSECUTIVE, .backoff_initial_us = -1}},
        {"a delay without end", "breaker.backoff.initial", {CONSECUTIVE, .backoff_initial_us = RATION_FOREVER_US}},
        {"a shrinking delay", "breaker.backoff.multiplier", {CONSECUTIVE, .backoff_multiplier = {1, 2}}},
        {"a multiplier of 0", "breaker.backoff.multiplier", {CONSECUTIVE, .backoff_multiplier = {0, 1}}},
        {"a negative one", "breaker.backoff.multiplier", {CONSECUTIVE, .backoff_multiplier = {-3, -2}}},
        {"above a million", "breaker.backoff.multiplier", {CONSECUTIVE, .backoff_multiplier = {1000001, 1}}},
        {"the longest bound", NULL, {CONSECUTIVE, .backoff_max_us = RATION_TIME_MAX_US}},
        {"a negative bound", "breaker.backoff.max", {CONSECUTIVE, .backoff_max_us = -1}},
        {"a bound without end", "breaker.backoff.max", {CONSECUTIVE, .backoff_max_us = RATION_FOREVER_US}},
        {"a bound below the first delay", "breaker.backoff.max", {CONSECUTIVE, .backoff_max_us = S - 1}},
        {"equal to it", NULL, {CONSECUTIVE, .backoff_max_us = S}},
        {"the longest interval", NULL, {CONSECUTIVE, .idle_interval_us = RATION_TIME_MAX_US}},
        {"a negative interval", "breaker.idleProbe.interval", {CONSECUTIVE, .idle_interval_us = -1}},
        {"an interval without end", "breaker.idleProbe.interval", {CONSECUTIVE, .idle_interval_us = RATION_FOREVER_US}},
        {"a negative number of failures",
         "breaker.idleProbe.failures",
         {CONSECUTIVE, .idle_interval_us = S, .idle_failures = -1}},
        {"above a million",
         "breaker.idleProbe.failures",
         {CONSECUTIVE, .idle_interval_us = S, .idle_failures = 1000001}},
    };

    (void)state;
    rows_check(rows, COUNT(rows));
}

static void test_defaults(void **state)
{
    const ration_breaker_rule rule = {BY_COUNT};
    rn_breaker_spec spec;
    ration_fault fault;

    (void)state;
    CHECK_EQ(rn_breaker_spec_init(&spec, &rule, &fault), RATION_OK);
    CHECK_EQ(spec.rule.threshold, 5);
    CHECK_EQ(spec.rule.ratio.num, 1);
    CHECK_EQ(spec.rule.ratio.den, 2);
    CHECK_EQ(spec.rule.size, 100);
    CHECK_EQ(spec.rule.duration_us, 60 * S);
    CHECK_EQ(spec.rule.minimum_calls, 10);
    CHECK_EQ(spec.rule.recovery, RATION_RECOVERY_PROBE);
    CHECK_EQ(spec.rule.probes, 1);
    CHECK_EQ(spec.rule.backoff_initial_us, S);
    CHECK_EQ(spec.rule.backoff_multiplier.den, 0);
    CHECK_EQ(spec.rule.idle_interval_us, 0);
    CHECK_EQ(spec.rule.idle_failures, 1);
}

static void test_texts(void **state)
{
    static const struct {
        const char *why;
        ration_breaker_rule rule;
        const char *tripped, *recovered, *unwell;
    } rows[] = {
        {"in a row",
         {.strategy = RATION_BREAKER_CONSECUTIVE},
         "5 failures in a row",
         "1 probe succeeded",
         "1 health check failed while idle"},
        {"one, three, two",
         {.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 1, .probes = 3, .idle_failures = 2},
         "1 failure",
         "3 probes succeeded",
         "2 health checks in a row failed while idle"},
        {"count",
         {.strategy = RATION_BREAKER_COUNT},
         "failures reached 50 % of the last 100",
         "1 probe succeeded",
         "1 health check failed while idle"},
        {"sampling",
         {.strategy = RATION_BREAKER_SAMPLING, .ratio = {1, 3}},
         "failures reached 1/3 within 1 min",
         "1 probe succeeded",
         "1 health check failed while idle"},
        {"the longest there are",
         {.strategy = RATION_BREAKER_COUNT,
          .ratio = {999999, 1000000},
          .size = 65536,
          .probes = 1000000,
          .idle_failures = 1000000},
         "failures reached 999999/1000000 of the last 65536",
         "1000000 probes succeeded",
         "1000000 health checks in a row failed while idle"},
    };
    rn_breaker_spec spec;
    ration_fault fault;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_breaker_spec_init(&spec, &rows[i].rule, &fault), RATION_OK);
        CHECK_STR(spec.tripped, rows[i].tripped);
        CHECK_STR(spec.recovered, rows[i].recovered);
        CHECK_STR(spec.unwell, rows[i].unwell);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strategies),
        cmocka_unit_test(test_recoveries),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
