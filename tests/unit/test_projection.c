/* SPDX-License-Identifier: MIT */
/* Paces and what follows from them, by hand: calendar days and rolling hours. */
#include <ration/plan.h>

#include "support/check.h"

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define NEVER RATION_NEVER_US
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static ration_projection projected(const ration_plan_scope *scope, int64_t now_us)
{
    ration_projection got = {.recent = {.units = -1}};

    CHECK_EQ(ration_scope_project(scope, ration_time_of(now_us), &got, NULL), RATION_OK);
    return got;
}

static void check_forecast(const ration_forecast *got, int64_t units, int64_t span_us, int64_t at_end, int64_t gone_us)
{
    CHECK_EQ(got->units, units);
    CHECK_EQ(got->span_us, span_us);
    CHECK_EQ(got->at_end, at_end);
    CHECK_EQ(got->exhausted_at.us, gone_us);
}

/*
 * A day with U - R = 3600, minute by minute, of which 1000 have been spent by 06:00, the last 15 minutes at 4 a
 * minute.
 */
static int64_t minutes[1440];

static ration_plan_scope morning(void)
{
    memset(minutes, 0, sizeof minutes);
    for (size_t i = 345; i < 360; i++)
        minutes[i] = 4 * UNIT;
    return (ration_plan_scope){
        .usable = 4000 * UNIT,
        .reserve = 400 * UNIT,
        .spent = 1000 * UNIT,
        .end = {DAY},
        .timeline = {.width_us = MINUTE, .units = minutes, .count = 360},
    };
}

/*
 * At 4 a minute the other 18 hours take 4320: 5320 at the end, and 2600 are gone after 650 minutes. At 1000 in 6 hours
 * they take 3000, and 2600 are gone after 15.6 hours.
 */
static void test_a_day(void **state)
{
    (void)state;
    const ration_plan_scope scope = morning();
    const ration_projection got = projected(&scope, 6 * HOUR);

    check_forecast(&got.recent, 60 * UNIT, 15 * MINUTE, 5320 * UNIT, 6 * HOUR + 650 * MINUTE);
    check_forecast(&got.average, 1000 * UNIT, 6 * HOUR, 4000 * UNIT, 6 * HOUR + 156 * HOUR / 10);
}

/* 5320 - 1000 = 4320 are just enough to the end of the day; a millionth less is not. */
static void test_just_enough(void **state)
{
    (void)state;
    ration_plan_scope scope = morning();

    scope.usable = (5320 + 400) * UNIT;
    CHECK_EQ(projected(&scope, 6 * HOUR).recent.exhausted_at.us, NEVER);
    scope.usable--;
    CHECK_EQ(projected(&scope, 6 * HOUR).recent.exhausted_at.us, DAY - 15);
}

/*
 * Others have spent 1800 in these 6 hours, 5 a minute; the provider says that 2200 are left, 1800 without the reserve.
 * Together 9 a minute: gone after 200 minutes. Alone, others still use it up: 1800 / 5 = 360 minutes.
 */
static void test_others(void **state)
{
    (void)state;
    ration_plan_scope scope = morning();

    scope.external = 1800 * UNIT;
    scope.has_left = true;
    scope.left = 2200 * UNIT;
    CHECK_EQ(projected(&scope, 6 * HOUR).recent.exhausted_at.us, 6 * HOUR + 200 * MINUTE);
    CHECK_EQ(projected(&scope, 6 * HOUR).recent.at_end, 5320 * UNIT);
    memset(minutes, 0, sizeof minutes);
    CHECK_EQ(projected(&scope, 6 * HOUR).recent.exhausted_at.us, 12 * HOUR);
}

/* What the last 15 minutes hold, by where buckets begin and end. */
static void test_recent(void **state)
{
    (void)state;
    static const struct {
        const char *why;
        int64_t start_us, width_us;
        int64_t units[3];
        size_t count;
        int64_t want, span_us;
    } rows[] = {
        {"no timeline", 0, 0, {0}, 0, 0, 0},
        {"all in it", 46 * MINUTE, 5 * MINUTE, {1, 2, 4}, 3, 7, 14 * MINUTE},
        {"none has begun", HOUR, MINUTE, {1, 2, 4}, 1, 1, 0},
        {"none will begin soon", HOUR + 1, MINUTE, {1, 2, 4}, 3, 0, 0},
        {"a third of the first: 10 of 15 minutes before", 30 * MINUTE, 15 * MINUTE, {300, 20}, 2, 20, 15 * MINUTE},
        {"it is cut in the middle, and rounds up", 40 * MINUTE, 10 * MINUTE, {7, 20}, 2, 24, 15 * MINUTE},
        {"the last has been filled for 5 minutes", 35 * MINUTE, 20 * MINUTE, {40, 9}, 2, 29, 15 * MINUTE},
        {"an hour's bucket, 40 minutes old", 20 * MINUTE, HOUR, {80}, 1, 30, 15 * MINUTE},
        {"a bucket that begins now is whole", 50 * MINUTE, 10 * MINUTE, {5, 3}, 2, 8, 10 * MINUTE},
        {"buckets to come are none", 50 * MINUTE, 10 * MINUTE, {5, 0, 9}, 3, 5, 10 * MINUTE},
        {"long ago", 0, MINUTE, {5, 5, 5}, 3, 0, 15 * MINUTE},
        {"just out of it", 44 * MINUTE, MINUTE, {5, 1}, 2, 1, 15 * MINUTE},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const ration_plan_scope scope = {
            .usable = 100 * UNIT,
            .end = {DAY},
            .timeline = {{rows[i].start_us}, rows[i].width_us, rows[i].units, rows[i].count},
        };
        const ration_projection got = projected(&scope, HOUR);

        CHECK_ROW(rows[i].why);
        CHECK_EQ(got.recent.units, rows[i].want);
        CHECK_EQ(got.recent.span_us, rows[i].span_us);
    }
    CHECK_ROW(NULL);
}

/* Without a pace nothing is forecast, but what is gone is gone. */
static void test_no_pace(void **state)
{
    (void)state;
    ration_plan_scope scope = {
        .usable = 10 * UNIT, .reserve = UNIT, .spent = 9 * UNIT - 1, .start = {HOUR}, .end = {DAY}};
    ration_projection got = projected(&scope, HOUR);

    check_forecast(&got.recent, 0, 0, 9 * UNIT - 1, NEVER);
    check_forecast(&got.average, 9 * UNIT - 1, 0, 9 * UNIT - 1, NEVER);
    scope.spent++;
    got = projected(&scope, HOUR);
    check_forecast(&got.recent, 0, 0, 9 * UNIT, HOUR);
    scope.spent = INT64_MAX;
    CHECK_EQ(projected(&scope, HOUR).average.exhausted_at.us, HOUR);
    CHECK_EQ(projected(&scope, 2 * HOUR).average.at_end, INT64_MAX);
}

/*
 * A rolling hour with 400. In the last hour 240 were spent, all in its first 20 minutes, 12 a minute; then nothing.
 * So they come back from two minutes from now on (a bucket counts for an hour and a minute after its end), and
 * nothing is ever short. With 30 a minute in the last 15 minutes, 450 come back too late: 400 - 240 = 160 are gone
 * before.
 */
static void test_rolling(void **state)
{
    (void)state;
    int64_t units[60] = {0};
    ration_plan_scope scope = {
        .usable = 400 * UNIT, .spent = 240 * UNIT, .rolling_us = HOUR, .timeline = {{0}, MINUTE, units, 60}};

    for (size_t i = 0; i < 20; i++)
        units[i] = 12 * UNIT;

    ration_projection got = projected(&scope, HOUR);

    check_forecast(&got.recent, 0, 15 * MINUTE, 0, NEVER);
    check_forecast(&got.average, 240 * UNIT, HOUR, 240 * UNIT, NEVER);

    /*
     * 6 a minute for the last 15 minutes: 90, so 330 are spent and 70 left. At 6 a minute they would last 11 minutes
     * and 40 s, but from the second minute on 12 come back each minute for 20 minutes; after them there are
     * 70 + 240 - 21 * 6 = 184, which last to minute 51 and 40 s; what was spent from minute -15 on comes back from 47
     * to 61, and what is spent now later: 62 minutes at 6 are 372, less than 400.
     */
    for (size_t i = 45; i < 60; i++)
        units[i] = 6 * UNIT;
    scope.spent = 330 * UNIT;
    got = projected(&scope, HOUR);
    check_forecast(&got.recent, 90 * UNIT, 15 * MINUTE, 360 * UNIT, NEVER);

    /*
     * 7 a minute: 105 have been spent. 62 * 7 = 434: at 400, after 57 min 8.57 s, the first second's are still
     * counted.
     */
    for (size_t i = 45; i < 60; i++)
        units[i] = 7 * UNIT;
    scope.spent = 345 * UNIT;
    got = projected(&scope, HOUR);
    CHECK_EQ(got.recent.units, 105 * UNIT);
    CHECK_EQ(got.recent.at_end, 420 * UNIT);
    /* 55 and 240 are gone after 42.142857 minutes, before the first of the 105 is back in minute 47. */
    CHECK_EQ(got.recent.exhausted_at.us, HOUR + INT64_C(2528571428));

    /* Nothing was spent before these 15 minutes: 400 - 105 are as much, and gone at the same time. */
    memset(units, 0, 45 * sizeof units[0]);
    scope.spent = 105 * UNIT;
    got = projected(&scope, HOUR);
    CHECK_EQ(got.recent.exhausted_at.us, HOUR + INT64_C(2528571428));
}

/* The steady pace that just fits a rolling hour: 400 in 62 minutes. */
static void test_rolling_steady(void **state)
{
    (void)state;
    const int64_t units[] = {96774193, 96774194};
    ration_plan_scope scope = {
        .usable = 400 * UNIT, .rolling_us = HOUR, .timeline = {{45 * MINUTE}, 15 * MINUTE, units, 1}};

    CHECK_EQ(projected(&scope, HOUR).recent.exhausted_at.us, NEVER);
    scope.timeline.units = &units[1];
    CHECK_EQ(projected(&scope, HOUR).recent.exhausted_at.us, HOUR + INT64_C(3719999982));
}

/* The largest of everything: answers saturate. */
static void test_the_largest(void **state)
{
    (void)state;
    const int64_t units[] = {INT64_MAX, INT64_MAX};
    ration_plan_scope scope = {.usable = RATION_UNITS_MAX,
                               .spent = 1,
                               .external = INT64_MAX,
                               .start = {-RATION_TIME_MAX_US},
                               .end = {RATION_TIME_MAX_US},
                               .timeline = {{-1}, 1, units, 2}};
    ration_projection got = projected(&scope, 0);

    check_forecast(&got.recent, INT64_MAX, 1, INT64_MAX, 0);
    CHECK_EQ(got.average.at_end, 2);
    scope.rolling_us = RATION_TIME_MAX_US;
    got = projected(&scope, 0);
    check_forecast(&got.recent, INT64_MAX, 1, INT64_MAX, 0);
}

static void test_errors(void **state)
{
    (void)state;
    ration_plan_scope scope = morning();
    ration_projection got = {.recent = {.units = -1}};
    ration_fault fault;
    const ration_time now = ration_time_of(HOUR);

    CHECK_EQ(ration_scope_project(NULL, now, &got, &fault), RATION_ERR_INVALID);
    CHECK_EQ(ration_scope_project(&scope, now, NULL, &fault), RATION_ERR_INVALID);
    CHECK_EQ(ration_scope_project(&scope, ration_time_of(RATION_TIME_MAX_US + 1), &got, &fault), RATION_ERR_INVALID);
    CHECK_EQ(ration_scope_project(&scope, ration_time_of(INT64_MIN), &got, &fault), RATION_ERR_INVALID);
    scope.timeline.units = NULL;
    CHECK_EQ(ration_scope_project(&scope, now, &got, &fault), RATION_ERR_INVALID);
    scope = morning();
    scope.end.us = HOUR - 1;
    CHECK_EQ(ration_scope_project(&scope, now, &got, &fault), RATION_ERR_CONFIG);
    CHECK_STR(fault.path, "end");
    CHECK_EQ(ration_scope_project(&scope, now, &got, NULL), RATION_ERR_CONFIG);
    scope = morning();
    scope.timeline.width_us = 0;
    CHECK_EQ(ration_scope_project(&scope, now, &got, &fault), RATION_ERR_CONFIG);
    CHECK_STR(fault.path, "timeline.width_us");
    CHECK_EQ(got.recent.units, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_day),          cmocka_unit_test(test_just_enough), cmocka_unit_test(test_others),
        cmocka_unit_test(test_recent),         cmocka_unit_test(test_no_pace),     cmocka_unit_test(test_rolling),
        cmocka_unit_test(test_rolling_steady), cmocka_unit_test(test_the_largest), cmocka_unit_test(test_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
