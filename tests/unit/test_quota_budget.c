/* SPDX-License-Identifier: MIT */
/* What a quota may spend, from its rule alone. `test_quota` asks the same of counters. */
#include "support/check.h"

#include "core/quota_budget.h"

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static void test_budget(void **state)
{
    static const struct {
        const char *why;
        ration_limit_rule rule;
        ration_ratio share, reserve;
        int64_t usable, kept;
    } rows[] = {
        {"all of it", {.max = 100 * UNIT}, {0, 0}, {1, 10}, 100 * UNIT, 10 * UNIT},
        {"a share, and a reserve of the share", {.max = 100 * UNIT}, {1, 3}, {1, 10}, 33 * UNIT, 3 * UNIT},
        {"cost to micro-units", {.max = 10 * UNIT, .counts = RATION_COUNTS_COST}, {1, 3}, {1, 10}, 3333333, 333333},
        {"one that is learned leaves a unit", {.max = 5 * UNIT, .max_auto = true}, {1, 10}, {1, 10}, UNIT, 0},
        {"beside the reserve", {.max = 2 * UNIT, .max_auto = true}, {1, 1}, {1, 1}, 2 * UNIT, UNIT},
        {"a declared one does not", {.max = 2 * UNIT}, {1, 1}, {1, 1}, 2 * UNIT, 2 * UNIT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);

        const rn_quota_budget got = rn_quota_budget_fresh(&rows[i].rule, rows[i].share, rows[i].reserve);

        CHECK_EQ(got.usable, rows[i].usable);
        CHECK_EQ(got.reserve, rows[i].kept);
    }
}

static void test_a_learned_maximum_counts_instead(void **state)
{
    static const ration_limit_rule rule = {.max = 100 * UNIT};
    const rn_quota_budget got = rn_quota_budget_of(&rule, 41 * UNIT, true, (ration_ratio){1, 2}, (ration_ratio){1, 10});

    (void)state;
    CHECK_EQ(got.usable, 20 * UNIT);
    CHECK_EQ(got.reserve, 2 * UNIT);
}

static void test_default_reserve(void **state)
{
    (void)state;
    CHECK_EQ(rn_quota_reserve((ration_ratio){0, 0}).den, 10);
    CHECK_EQ(rn_quota_reserve((ration_ratio){0, 0}).num, 1);
    CHECK_EQ(rn_quota_reserve((ration_ratio){0, 7}).den, 7);
}

static void test_windows(void **state)
{
    const ration_limit_rule daily = {.window = {.period = RATION_PERIOD_DAY, .reset_minute = 90}};
    const ration_limit_rule monthly = {.window = {.period = RATION_PERIOD_MONTH}};
    const ration_limit_rule rolling = {.window = {.rolling_us = 7 * HOUR}};
    ration_time start = {1};
    ration_time end = {2};

    (void)state;
    CHECK_EQ(rn_quota_length(&daily), DAY);
    CHECK_EQ(rn_quota_length(&rolling), 7 * HOUR);
    CHECK(!rn_quota_window_at(&rolling, NULL, ration_time_of(0), &start, &end));
    CHECK_EQ(start.us, 1);
    CHECK_EQ(end.us, 2);
    CHECK(rn_quota_window_at(&daily, NULL, ration_time_of(HOUR), &start, &end));
    CHECK_EQ(start.us, -DAY + 90 * MINUTE);
    CHECK_EQ(end.us, 90 * MINUTE);
    CHECK(rn_quota_window_at(&daily, NULL, ration_time_of(90 * MINUTE), &start, &end));
    CHECK_EQ(start.us, 90 * MINUTE);
    /* A day that is not given is the first. */
    CHECK(rn_quota_window_at(&monthly, NULL, ration_time_of(0), &start, &end));
    CHECK_EQ(start.us, 0);
    CHECK_EQ(end.us, 31 * DAY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_a_learned_maximum_counts_instead),
        cmocka_unit_test(test_default_reserve),
        cmocka_unit_test(test_windows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
