/* SPDX-License-Identifier: MIT */
#include "support/check.h"

#include "base/civil.h"

static void known_days(void **state)
{
    static const struct {
        const char *why;
        int64_t days, year;
        int32_t month, day, weekday;
    } rows[] = {
        {"the epoch, a Thursday", 0, 1970, 1, 1, 3},
        {"the day before", -1, 1969, 12, 31, 2},
        {"a leap day", 11016, 2000, 2, 29, 1},
        {"the day after", 11017, 2000, 3, 1, 2},
        {"no leap day in 1900", -25508, 1900, 3, 1, 3},
        {"no leap day in 2100", 47541, 2100, 3, 1, 0},
        {"the first of the calendar", -719162, 1, 1, 1, 0},
        {"the last with four digits", 2932896, 9999, 12, 31, 4},
        {"year nought", -719528, 0, 1, 1, 5},
        {"below nought", -719529, -1, 12, 31, 4},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const rn_civil date = rn_civil_of_days(rows[i].days);

        CHECK_ROW(rows[i].why);
        CHECK_EQ(date.year, rows[i].year);
        CHECK_EQ(date.month, rows[i].month);
        CHECK_EQ(date.day, rows[i].day);
        CHECK_EQ(rn_civil_to_days(date.year, date.month, date.day), rows[i].days);
        CHECK_EQ(rn_civil_weekday(rows[i].days), rows[i].weekday);
    }
}

/* Each day is the one after the day before, over two eras and at the ends of what is asked for. */
static void days_follow_each_other(void **state)
{
    static const int64_t starts[] = {-200000, -INT64_C(106751991167301), INT64_C(106751990880000)};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        rn_civil yesterday = rn_civil_of_days(starts[i] - 1);

        for (int64_t day = starts[i]; day < starts[i] + 300000; day++) {
            const rn_civil today = rn_civil_of_days(day);
            const bool month_ends = yesterday.day == rn_civil_month_length(yesterday.year, yesterday.month);
            const bool year_ends = month_ends && yesterday.month == 12;

            CHECK_EQ(rn_civil_to_days(today.year, today.month, today.day), day);
            CHECK_EQ(today.day, month_ends ? 1 : yesterday.day + 1);
            CHECK_EQ(today.month, year_ends ? 1 : yesterday.month + (month_ends ? 1 : 0));
            CHECK_EQ(today.year, yesterday.year + (year_ends ? 1 : 0));
            yesterday = today;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_days),
        cmocka_unit_test(days_follow_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
