/* SPDX-License-Identifier: MIT */
/* The hidden ceiling: how it is asked for, where it stands when, and what a meter makes of it. */
#include "simulate/capacity.h"

#include "support/check.h"

#define MS INT64_C(1000)
#define S INT64_C(1000000)

static void test_option(void **state)
{
    static const struct {
        const char *why, *text;
        int want;
        int64_t low, high, period_us;
    } rows[] = {
        {"as in the manual", "20..40/60s", 0, 20, 40, 60 * S},
        {"one that stays", "30", 0, 30, 30, 0},
        {"the least", "1", 0, 1, 1, 0},
        {"the most", "1000000", 0, 1000000, 1000000, 0},
        {"a range of one", "7..7/1ms", 0, 7, 7, 1 * MS},
        {"as fast as it goes: four steps", "1..3/4ms", 0, 1, 3, 4 * MS},
        {"faster", "1..3/3999us", RATION_ERR_RANGE, 0, 0, 0},
        {"a range of one, too fast", "7..7/999us", RATION_ERR_RANGE, 0, 0, 0},
        {"a week", "1..2/7d", 0, 1, 2, 604800 * S},
        {"more than a week", "1..2/169h", RATION_ERR_RANGE, 0, 0, 0},
        {"upside down", "40..20/60s", RATION_ERR_RANGE, 0, 0, 0},
        {"nothing is let in", "0..20/60s", RATION_ERR_RANGE, 0, 0, 0},
        {"never is anything let in", "0", RATION_ERR_RANGE, 0, 0, 0},
        {"negative", "-1..20/60s", RATION_ERR_RANGE, 0, 0, 0},
        {"too high", "1..1000001/60m", RATION_ERR_RANGE, 0, 0, 0},
        {"too high, and stays", "1000001", RATION_ERR_RANGE, 0, 0, 0},
        {"no period", "20..40", RATION_ERR_SYNTAX, 0, 0, 0},
        {"an empty period", "20..40/", RATION_ERR_SYNTAX, 0, 0, 0},
        {"no high end", "20../60s", RATION_ERR_SYNTAX, 0, 0, 0},
        {"no low end", "..40/60s", RATION_ERR_SYNTAX, 0, 0, 0},
        {"one dot", "20.40/60s", RATION_ERR_SYNTAX, 0, 0, 0},
        {"one that stays has no period", "20/60s", RATION_ERR_SYNTAX, 0, 0, 0},
        {"slash first", "20/60s..40", RATION_ERR_SYNTAX, 0, 0, 0},
        {"half a call", "20.5", RATION_ERR_SYNTAX, 0, 0, 0},
        {"empty", "", RATION_ERR_SYNTAX, 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rn_capacity capacity = {0};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_capacity_parse(ration_text_of(rows[i].text), &capacity), rows[i].want);
        CHECK_EQ(capacity.low, rows[i].low);
        CHECK_EQ(capacity.high, rows[i].high);
        CHECK_EQ(capacity.period_us, rows[i].period_us);
    }
}

/* 20 to 40 in 60 s: forty steps of 1.5 s. */
static void test_where_it_stands(void **state)
{
    static const struct {
        const char *why;
        int64_t at_us, ceiling, moves_at_us;
    } rows[] = {
        {"it begins at the low end", 0, 20, 1500 * MS},
        {"a step before its end", 1500 * MS - 1, 20, 1500 * MS},
        {"and at its end", 1500 * MS, 21, 3000 * MS},
        {"the last step of the way up", 30 * S - 1, 39, 30 * S},
        {"the high end, after half a period", 30 * S, 40, 31500 * MS},
        {"down again", 31500 * MS, 39, 33 * S},
        {"the last step of the way down", 60 * S - 1, 21, 60 * S},
        {"a new period", 60 * S, 20, 61500 * MS},
        {"the thousandth", 60000 * S + 1500 * MS, 21, 60003 * S},
    };
    const rn_capacity capacity = {20, 40, 60 * S};
    const rn_capacity fixed = {30, 30, 0};
    const rn_capacity none = {0, 0, 0};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_capacity_at(&capacity, rows[i].at_us), rows[i].ceiling);
        CHECK_EQ(rn_capacity_moves_at(&capacity, rows[i].at_us), rows[i].moves_at_us);
    }
    CHECK_ROW("one that stays");
    CHECK_EQ(rn_capacity_at(&fixed, 86400 * S), 30);
    CHECK_EQ(rn_capacity_moves_at(&fixed, 86400 * S), INT64_MAX);
    CHECK_ROW("none");
    CHECK_EQ(rn_capacity_at(&none, 0), INT64_MAX);
    CHECK_EQ(rn_capacity_moves_at(&none, 0), INT64_MAX);
}

/* Waves whose steps are no whole number of microseconds: each step is one call, and none is skipped. */
static void test_steps_of_odd_lengths(void **state)
{
    static const rn_capacity rows[] = {
        {1, 2, 2001}, {1, 4, 7 * MS + 1}, {3, 10, 100 * MS + 3}, {1, 1000, 2 * S - 1}, {1, 1000000, 604800 * S}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const rn_capacity *c = &rows[i];
        const int64_t n = c->high - c->low;
        int64_t at_us = 3 * c->period_us;

        for (int64_t step = 0; step < 2 * n && step < 5000; step++) {
            const int64_t next_us = rn_capacity_moves_at(c, at_us);
            const int64_t ceiling = step <= n ? c->low + step : c->high + n - step;

            CHECK_EQ(rn_capacity_at(c, at_us), ceiling);
            CHECK_EQ(rn_capacity_at(c, next_us - 1), ceiling);
            CHECK(next_us - at_us == c->period_us / (2 * n) || next_us - at_us == c->period_us / (2 * n) + 1);
            at_us = next_us;
        }
        if (2 * n < 5000)
            CHECK_EQ(at_us, 4 * c->period_us);
    }
}

/* 2, 3, 4, 3 for 10 ms each. Sums in call-milliseconds, of calls that are there from the start. */
static void test_meter(void **state)
{
    static const struct {
        const char *why;
        int64_t calls, until_ms, above_ms, ceiling, used, over;
    } rows[] = {
        {"nothing has passed", 3, 0, 0, 0, 0, 0},
        {"none in flight", 0, 40, 0, 120, 0, 0},
        {"at the ceiling is not above it", 2, 40, 0, 120, 80, 0},
        {"one above the low end", 3, 40, 10, 120, 110, 10},
        {"above all but the high end", 4, 40, 30, 120, 120, 40},
        {"above it always", 5, 40, 40, 120, 120, 80},
        {"part of a step", 5, 5, 5, 10, 10, 15},
        {"into the third", 3, 25, 10, 70, 65, 10},
        {"a period and a half", 3, 60, 20, 170, 160, 20},
        {"a hundred periods and a half", 3, 4020, 1010, 12050, 11050, 1010},
    };
    const rn_capacity capacity = {2, 4, 40 * MS};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rn_capacity_meter meter;

        CHECK_ROW(rows[i].why);
        rn_capacity_meter_init(&meter, &capacity);
        rn_capacity_meter_set(&meter, 0, rows[i].calls);
        rn_capacity_meter_set(&meter, rows[i].until_ms * MS, 0);
        CHECK_EQ(meter.at_us, rows[i].until_ms * MS);
        CHECK_EQ(meter.above_us, rows[i].above_ms * MS);
        CHECK_EQ(meter.ceiling_us, rows[i].ceiling * MS);
        CHECK_EQ(meter.used_us, rows[i].used * MS);
        CHECK_EQ(meter.over_us, rows[i].over * MS);
    }
}

static void test_meter_as_calls_come_and_go(void **state)
{
    const rn_capacity capacity = {2, 4, 40 * MS};
    const rn_capacity fixed = {3, 3, 0};
    rn_capacity_meter meter;

    (void)state;
    rn_capacity_meter_init(&meter, &capacity);
    rn_capacity_meter_set(&meter, 5 * MS, 3);   /* 0 for 5 ms at 2 */
    rn_capacity_meter_set(&meter, 15 * MS, 4);  /* 3 for 5 ms at 2 and 5 ms at 3 */
    rn_capacity_meter_set(&meter, 25 * MS, 1);  /* 4 for 5 ms at 3 and 5 ms at 4 */
    rn_capacity_meter_set(&meter, 20 * MS, 2);  /* time does not run back */
    rn_capacity_meter_set(&meter, 125 * MS, 0); /* 2 for 5 ms at 4, 10 ms at 3, two periods and 5 ms at 2 */
    CHECK_EQ(meter.above_us, 10 * MS);
    CHECK_EQ(meter.ceiling_us, (25 + 5 + 40 + 20 + 30 + 2 * 120 + 10) * MS);
    CHECK_EQ(meter.used_us, (10 + 15 + 15 + 20 + 2 * 100) * MS);
    CHECK_EQ(meter.over_us, 10 * MS);

    CHECK_ROW("a ceiling that stays");
    rn_capacity_meter_init(&meter, &fixed);
    rn_capacity_meter_set(&meter, 0, 5);
    rn_capacity_meter_set(&meter, 100 * S, 0);
    CHECK_EQ(meter.above_us, 100 * S);
    CHECK_EQ(meter.used_us, 300 * S);
    CHECK_EQ(meter.over_us, 200 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_option),
        cmocka_unit_test(test_where_it_stands),
        cmocka_unit_test(test_steps_of_odd_lengths),
        cmocka_unit_test(test_meter),
        cmocka_unit_test(test_meter_as_calls_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
