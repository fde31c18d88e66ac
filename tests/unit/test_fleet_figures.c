/* SPDX-License-Identifier: MIT */
/* Where a limit stands by figures that were told a while ago. */
#include <stdio.h>

#include "fleet/figures.h"
#include "support/check.h"

#define SECOND INT64_C(1000000)
#define UNIT RATION_UNIT
#define AT (1000 * SECOND)

static const ration_limit_rule rate_rule = {.name = "rate", .kind = RATION_KIND_RATE};
static const ration_limit_rule daily_rule = {.name = "daily", .kind = RATION_KIND_QUOTA};
static const ration_limit_rule rolling_rule = {
    .name = "rolling", .kind = RATION_KIND_QUOTA, .counts = RATION_COUNTS_COST, .window = {.rolling_us = 60 * SECOND}};
static const ration_limit_rule shadow_rule = {
    .name = "shadow", .kind = RATION_KIND_RATE, .enforce = RATION_ENFORCE_SHADOW};
static const ration_limit_rule slots_rule = {.name = "slots", .kind = RATION_KIND_CONCURRENCY};

/* One unit in two seconds, burst 5, of which 1 is margin. */
static const rn_bucket_spec bucket = {.earn = 1, .price = 2, .cap = 10 * UNIT, .burst = 5 * UNIT, .margin = UNIT};

static const struct {
    const char *why;
    const ration_limit_rule *rule;
    int64_t first; /* a rate: credit; a quota: what remains, of 10 of which 1 is reserve, in a window of 100 s */
    int64_t after_us, spent, charge;
    const char *want;
} rows[] = {
    {"as it was told", &rate_rule, 10 * UNIT, 0, 0, UNIT, "rate 4 of 4 in 10000000, more in 0"},
    {"earned since", &rate_rule, 4 * UNIT, 2 * SECOND, 0, UNIT, "rate 2 of 4 in 10000000, more in 4000000"},
    {"no more than the burst", &rate_rule, 9 * UNIT, 9 * SECOND, 0, UNIT, "rate 4 of 4 in 10000000, more in 0"},
    {"spent since", &rate_rule, 10 * UNIT, 0, 3 * UNIT, UNIT, "rate 1 of 4 in 10000000, more in 6000000"},
    {"spent of what was earned", &rate_rule, 9 * UNIT, 9 * SECOND, 4 * UNIT, UNIT,
     "rate 0 of 4 in 10000000, more in 2000000"},
    {"until a dear one fits", &rate_rule, 6 * UNIT, 0, 0, 3 * UNIT, "rate 2 of 4 in 10000000, more in 2000000"},
    {"the store's clock does not go back", &rate_rule, 6 * UNIT, -SECOND, 0, UNIT,
     "rate 2 of 4 in 10000000, more in 4000000"},
    {"a window", &daily_rule, 5 * UNIT, 2 * SECOND, 0, UNIT, "daily 4 of 9 in 100000000, more in 48000000"},
    {"a window, spent since", &daily_rule, 5 * UNIT, 0, 3 * UNIT, UNIT, "daily 1 of 9 in 100000000, more in 50000000"},
    {"no less than nothing", &daily_rule, 5 * UNIT, 0, 9 * UNIT, UNIT, "daily 0 of 9 in 100000000, more in 50000000"},
    {"rolling", &rolling_rule, 5 * UNIT, SECOND, UNIT, UNIT, "rolling 3 of 9 in 60000000, more in -1"},
    {"at most so old", &rolling_rule, 5 * UNIT, RN_FIGURES_OLD_US, 0, UNIT, "rolling 4 of 9 in 60000000, more in -1"},
    {"too old", &rolling_rule, 5 * UNIT, RN_FIGURES_OLD_US + 1, 0, UNIT, "nothing"},
    {"a shadow", &shadow_rule, 10 * UNIT, 0, 0, UNIT, "nothing"},
    {"slots", &slots_rule, UNIT, 0, 0, UNIT, "nothing"},
};

static const char *told(const ration_limit_rule *rule, int64_t first, const rn_figures_since *since, int64_t charge,
                        int64_t ends_us)
{
    static char text[128];
    rn_limit limit = {.rule = rule};
    rn_figures figures = {.numbers = {10 * UNIT, 10 * UNIT, UNIT, 0, 0, 0, first, ends_us - 100 * SECOND, ends_us}};
    rn_standing one = {.limit = NULL};

    if (rule->kind == RATION_KIND_RATE) {
        limit.spec.bucket = bucket;
        figures.numbers[0] = first;
    }
    if (rule == &daily_rule)
        limit.spec.quota.calendar.period = RATION_PERIOD_DAY;
    if (!rn_figures_standing(&figures, &limit, since, charge, &one))
        return "nothing";
    (void)snprintf(text, sizeof text, "%s %lld of %lld in %lld, more in %lld", one.limit,
                   (long long)(one.remaining / UNIT), (long long)(one.quota / UNIT), (long long)one.window_us,
                   (long long)one.reset_us);
    return text;
}

static void test_standings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_figures_since since = {{AT}, {AT + rows[i].after_us}, rows[i].spent};

        CHECK_ROW(rows[i].why);
        CHECK_STR(told(rows[i].rule, rows[i].first, &since, rows[i].charge, AT + 50 * SECOND), rows[i].want);
    }
}

static void test_a_window_that_has_ended(void **state)
{
    const rn_figures_since since = {{AT}, {AT + 2 * SECOND}, 0};

    (void)state;
    CHECK_STR(told(&daily_rule, 5 * UNIT, &since, UNIT, AT + 2 * SECOND), "nothing");
    CHECK_STR(told(&daily_rule, 5 * UNIT, &since, UNIT, AT + 2 * SECOND + 1), "daily 4 of 9 in 100000000, more in 1");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_standings),
        cmocka_unit_test(test_a_window_that_has_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
