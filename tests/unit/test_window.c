/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/tzif.h"

#include "base/civil.h"
#include "base/mem.h"
#include "core/window.h"

#define S INT64_C(1000000)
#define H INT64_C(3600)
#define NEW_YORK "EST5EDT,M3.2.0,M11.1.0"
#define PARIS "CET-1CEST,M3.5.0,M10.5.0/3"
#define LORD_HOWE "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"

/* An instant in UTC, as people write it. */
typedef struct utc {
    int32_t year, month, day, hour, minute, second;
} utc;

static ration_time instant(utc t)
{
    const int64_t days = rn_civil_to_days(t.year, t.month, t.day);

    return ration_time_of((days * 86400 + t.hour * H + t.minute * INT64_C(60) + t.second) * S);
}

typedef struct row {
    const char *why;
    utc at;
    utc start;
    utc end;
} row;

/* The instant and the last one of the window give the window; so does the one just before, but for its end. */
static void check_row_of(const rn_calendar *calendar, const row *r)
{
    const ration_time wanted_start = instant(r->start);
    const ration_time wanted_end = instant(r->end);
    const int64_t ask[] = {instant(r->at).us, wanted_start.us, wanted_end.us - 1};
    ration_time start = {0};
    ration_time end = {0};

    CHECK_ROW(r->why);
    for (size_t i = 0; i < 3; i++) {
        rn_calendar_window(calendar, ration_time_of(ask[i]), &start, &end);
        CHECK_EQ(start.us, wanted_start.us);
        CHECK_EQ(end.us, wanted_end.us);
    }
    rn_calendar_window(calendar, ration_time_of(wanted_start.us - 1), &start, &end);
    CHECK_EQ(end.us, wanted_start.us);
}

static rn_zone *zone_from(const tzif *file)
{
    rn_zone *zone = NULL;

    CHECK_EQ(rn_zone_new(rn_mem_default(), file->bytes, file->size, &zone), RATION_OK);
    return zone;
}

static rn_zone *zone_of(const char *rule)
{
    tzif file;

    tzif_write_rule(&file, rule);
    return zone_from(&file);
}

/* One offset until an instant, another from then on. */
static rn_zone *zone_turning(utc at, int64_t before, int64_t after)
{
    const tzif_step steps[] = {{0, (int32_t)before}, {instant(at).us / S, (int32_t)after}};
    tzif file;

    tzif_write(&file, steps, 2, "");
    return zone_from(&file);
}

static void check_rows(rn_zone *zone, rn_calendar calendar, const row *rows, size_t count)
{
    calendar.zone = zone;
    for (size_t i = 0; i < count; i++)
        check_row_of(&calendar, &rows[i]);
    rn_zone_free(zone);
}

#define CHECK_ROWS(zone, calendar, rows) check_rows((zone), (calendar), (rows), sizeof(rows) / sizeof((rows)[0]))

static const rn_calendar minutes = {.period = RATION_PERIOD_MINUTE, .month_day = 1};
static const rn_calendar hours = {.period = RATION_PERIOD_HOUR, .month_day = 1};
static const rn_calendar days = {.period = RATION_PERIOD_DAY, .month_day = 1};

static rn_calendar days_from(int32_t hour, int32_t minute)
{
    rn_calendar calendar = days;

    calendar.reset_minute = hour * 60 + minute;
    return calendar;
}

static rn_calendar weeks_from(int32_t weekday)
{
    const rn_calendar calendar = {.period = RATION_PERIOD_WEEK, .week_start = weekday, .month_day = 1};

    return calendar;
}

static rn_calendar months_from(int32_t day)
{
    const rn_calendar calendar = {.period = RATION_PERIOD_MONTH, .month_day = day};

    return calendar;
}

static void in_utc(void **state)
{
    static const row by_minute[] = {
        {"a minute", {2024, 5, 6, 7, 8, 9}, {2024, 5, 6, 7, 8, 0}, {2024, 5, 6, 7, 9, 0}},
        {"before the epoch", {1969, 12, 31, 23, 59, 59}, {1969, 12, 31, 23, 59, 0}, {1970, 1, 1, 0, 0, 0}},
    };
    static const row by_hour[] = {
        {"an hour", {2024, 5, 6, 7, 8, 9}, {2024, 5, 6, 7, 0, 0}, {2024, 5, 6, 8, 0, 0}},
    };
    static const row by_day[] = {
        {"a leap day", {2024, 2, 29, 12, 0, 0}, {2024, 2, 29, 0, 0, 0}, {2024, 3, 1, 0, 0, 0}},
        {"before the epoch", {1960, 1, 1, 0, 0, 0}, {1960, 1, 1, 0, 0, 0}, {1960, 1, 2, 0, 0, 0}},
    };
    static const row by_late_day[] = {
        {"before the reset", {2024, 5, 6, 17, 29, 59}, {2024, 5, 5, 17, 30, 0}, {2024, 5, 6, 17, 30, 0}},
        {"after the reset", {2024, 5, 6, 17, 30, 0}, {2024, 5, 6, 17, 30, 0}, {2024, 5, 7, 17, 30, 0}},
    };

    (void)state;
    CHECK_ROWS(NULL, minutes, by_minute);
    CHECK_ROWS(NULL, hours, by_hour);
    CHECK_ROWS(NULL, days, by_day);
    CHECK_ROWS(NULL, days_from(17, 30), by_late_day);
}

static void weeks(void **state)
{
    static const row from_monday[] = {
        {"a Wednesday", {2024, 3, 13, 0, 0, 0}, {2024, 3, 11, 0, 0, 0}, {2024, 3, 18, 0, 0, 0}},
        {"the epoch, a Thursday", {1970, 1, 1, 0, 0, 0}, {1969, 12, 29, 0, 0, 0}, {1970, 1, 5, 0, 0, 0}},
    };
    static const row from_sunday[] = {
        {"a Wednesday", {2024, 3, 13, 0, 0, 0}, {2024, 3, 10, 0, 0, 0}, {2024, 3, 17, 0, 0, 0}},
    };
    static const row from_thursday[] = {
        {"the epoch", {1970, 1, 1, 0, 0, 0}, {1970, 1, 1, 0, 0, 0}, {1970, 1, 8, 0, 0, 0}},
    };
    static const row in_new_york[] = {
        {"an hour short", {2024, 3, 13, 0, 0, 0}, {2024, 3, 10, 5, 0, 0}, {2024, 3, 17, 4, 0, 0}},
        {"an hour long", {2024, 11, 7, 0, 0, 0}, {2024, 11, 3, 4, 0, 0}, {2024, 11, 10, 5, 0, 0}},
    };

    (void)state;
    CHECK_ROWS(NULL, weeks_from(0), from_monday);
    CHECK_ROWS(NULL, weeks_from(6), from_sunday);
    CHECK_ROWS(NULL, weeks_from(3), from_thursday);
    CHECK_ROWS(zone_of(NEW_YORK), weeks_from(6), in_new_york);
}

static void months(void **state)
{
    static const row from_1[] = {
        {"December", {2024, 12, 31, 23, 59, 59}, {2024, 12, 1, 0, 0, 0}, {2025, 1, 1, 0, 0, 0}},
    };
    static const row from_29[] = {
        {"28 February stands for it", {2023, 3, 1, 0, 0, 0}, {2023, 2, 28, 0, 0, 0}, {2023, 3, 29, 0, 0, 0}},
        {"not in a leap year", {2024, 3, 1, 0, 0, 0}, {2024, 2, 29, 0, 0, 0}, {2024, 3, 29, 0, 0, 0}},
        {"the month before", {2024, 2, 28, 0, 0, 0}, {2024, 1, 29, 0, 0, 0}, {2024, 2, 29, 0, 0, 0}},
    };
    static const row from_31[] = {
        {"30 April stands for it", {2024, 5, 1, 0, 0, 0}, {2024, 4, 30, 0, 0, 0}, {2024, 5, 31, 0, 0, 0}},
        {"over the new year", {2024, 1, 1, 0, 0, 0}, {2023, 12, 31, 0, 0, 0}, {2024, 1, 31, 0, 0, 0}},
    };
    static const row in_new_york[] = {
        {"March", {2024, 3, 15, 0, 0, 0}, {2024, 3, 1, 5, 0, 0}, {2024, 4, 1, 4, 0, 0}},
    };
    static const row at_five[] = {
        {"a reset later in the day", {2024, 3, 1, 4, 59, 0}, {2024, 2, 1, 5, 0, 0}, {2024, 3, 1, 5, 0, 0}},
    };
    rn_calendar late = months_from(1);

    (void)state;
    late.reset_minute = 300;
    CHECK_ROWS(NULL, months_from(1), from_1);
    CHECK_ROWS(NULL, months_from(29), from_29);
    CHECK_ROWS(NULL, months_from(31), from_31);
    CHECK_ROWS(NULL, late, at_five);
    CHECK_ROWS(zone_of(NEW_YORK), months_from(1), in_new_york);
}

static void days_with_a_gap_or_a_repeat(void **state)
{
    static const row midnight[] = {
        {"23 hours", {2024, 3, 10, 12, 0, 0}, {2024, 3, 10, 5, 0, 0}, {2024, 3, 11, 4, 0, 0}},
        {"25 hours", {2024, 11, 3, 6, 30, 0}, {2024, 11, 3, 4, 0, 0}, {2024, 11, 4, 5, 0, 0}},
        {"24 hours", {2024, 6, 1, 12, 0, 0}, {2024, 6, 1, 4, 0, 0}, {2024, 6, 2, 4, 0, 0}},
    };
    static const row half_past_one[] = {
        {"occurs twice: the first", {2024, 11, 3, 5, 29, 59}, {2024, 11, 2, 5, 30, 0}, {2024, 11, 3, 5, 30, 0}},
        {"the second is nothing", {2024, 11, 3, 6, 30, 0}, {2024, 11, 3, 5, 30, 0}, {2024, 11, 4, 6, 30, 0}},
    };
    static const row half_past_two[] = {
        {"does not exist: half past three", {2024, 3, 10, 7, 29, 0}, {2024, 3, 9, 7, 30, 0}, {2024, 3, 10, 7, 30, 0}},
        {"and is there the day after", {2024, 3, 10, 8, 0, 0}, {2024, 3, 10, 7, 30, 0}, {2024, 3, 11, 6, 30, 0}},
    };
    static const row two[] = {
        {"the first that does not exist", {2024, 3, 10, 6, 59, 0}, {2024, 3, 9, 7, 0, 0}, {2024, 3, 10, 7, 0, 0}},
    };
    static const row three[] = {
        {"the first that exists", {2024, 3, 10, 6, 59, 0}, {2024, 3, 9, 8, 0, 0}, {2024, 3, 10, 7, 0, 0}},
    };

    (void)state;
    CHECK_ROWS(zone_of(NEW_YORK), days, midnight);
    CHECK_ROWS(zone_of(NEW_YORK), days_from(1, 30), half_past_one);
    CHECK_ROWS(zone_of(NEW_YORK), days_from(2, 30), half_past_two);
    CHECK_ROWS(zone_of(NEW_YORK), days_from(2, 0), two);
    CHECK_ROWS(zone_of(NEW_YORK), days_from(3, 0), three);
}

static void a_midnight_that_does_not_exist(void **state)
{
    static const utc turn = {2018, 11, 4, 3, 0, 0};
    static const row rows[] = {
        {"the day before", {2018, 11, 4, 2, 59, 0}, {2018, 11, 3, 3, 0, 0}, {2018, 11, 4, 3, 0, 0}},
        {"begins at one", {2018, 11, 4, 3, 0, 0}, {2018, 11, 4, 3, 0, 0}, {2018, 11, 5, 2, 0, 0}},
    };

    (void)state;
    CHECK_ROWS(zone_turning(turn, -3 * H, -2 * H), days, rows);
}

/* Apia had no 30 December 2011. */
static void a_day_that_does_not_exist(void **state)
{
    static const utc turn = {2011, 12, 30, 10, 0, 0};
    static const row midnight[] = {
        {"the 29th", {2011, 12, 30, 9, 59, 59}, {2011, 12, 29, 10, 0, 0}, {2011, 12, 30, 10, 0, 0}},
        {"the 31st", {2011, 12, 30, 10, 0, 0}, {2011, 12, 30, 10, 0, 0}, {2011, 12, 31, 10, 0, 0}},
    };
    static const row half_past_five[] = {
        {"both at one instant", {2011, 12, 30, 10, 0, 0}, {2011, 12, 29, 15, 30, 0}, {2011, 12, 30, 15, 30, 0}},
        {"one window each", {2011, 12, 30, 15, 30, 0}, {2011, 12, 30, 15, 30, 0}, {2011, 12, 31, 15, 30, 0}},
    };
    static const row month[] = {
        {"a month from the missing day", {2012, 1, 5, 0, 0, 0}, {2011, 12, 30, 10, 0, 0}, {2012, 1, 29, 10, 0, 0}},
    };
    static const row hour[] = {
        {"hours go on", {2011, 12, 30, 10, 30, 0}, {2011, 12, 30, 10, 0, 0}, {2011, 12, 30, 11, 0, 0}},
    };

    (void)state;
    CHECK_ROWS(zone_turning(turn, -10 * H, 14 * H), days, midnight);
    CHECK_ROWS(zone_turning(turn, -10 * H, 14 * H), days_from(5, 30), half_past_five);
    CHECK_ROWS(zone_turning(turn, -10 * H, 14 * H), months_from(30), month);
    CHECK_ROWS(zone_turning(turn, -10 * H, 14 * H), hours, hour);
}

/* Kwajalein could have gone the other way: a day that is there twice is one window. */
static void a_day_that_occurs_twice(void **state)
{
    static const utc turn = {2000, 1, 2, 0, 0, 0};
    static const row rows[] = {
        {"first", {2000, 1, 1, 12, 0, 0}, {2000, 1, 1, 0, 0, 0}, {2000, 1, 3, 0, 0, 0}},
        {"second", {2000, 1, 2, 12, 0, 0}, {2000, 1, 1, 0, 0, 0}, {2000, 1, 3, 0, 0, 0}},
    };

    (void)state;
    CHECK_ROWS(zone_turning(turn, 12 * H, -12 * H), days_from(12, 0), rows);
}

/* At 00:01 the clock goes back to 23:01 of the day before. */
static void a_clock_that_falls_back_across_midnight(void **state)
{
    static const utc turn = {2000, 1, 2, 0, 1, 0};
    static const row by_day[] = {
        {"the new day", {2000, 1, 2, 0, 0, 30}, {2000, 1, 2, 0, 0, 0}, {2000, 1, 3, 1, 0, 0}},
        {"goes on while the clock shows the old", {2000, 1, 2, 0, 30, 0}, {2000, 1, 2, 0, 0, 0}, {2000, 1, 3, 1, 0, 0}},
        {"and over the second midnight", {2000, 1, 2, 1, 0, 0}, {2000, 1, 2, 0, 0, 0}, {2000, 1, 3, 1, 0, 0}},
    };
    static const row by_hour[] = {
        {"midnight begins an hour", {2000, 1, 2, 0, 30, 0}, {2000, 1, 2, 0, 0, 0}, {2000, 1, 2, 1, 0, 0}},
        {"and another", {2000, 1, 2, 1, 0, 0}, {2000, 1, 2, 1, 0, 0}, {2000, 1, 2, 2, 0, 0}},
    };

    (void)state;
    CHECK_ROWS(zone_turning(turn, 0, -H), days, by_day);
    CHECK_ROWS(zone_turning(turn, 0, -H), hours, by_hour);
}

static void hours_with_a_gap_or_a_repeat(void **state)
{
    static const row paris[] = {
        {"before the gap", {2024, 3, 31, 0, 30, 0}, {2024, 3, 31, 0, 0, 0}, {2024, 3, 31, 1, 0, 0}},
        {"two and three are one", {2024, 3, 31, 1, 0, 0}, {2024, 3, 31, 1, 0, 0}, {2024, 3, 31, 2, 0, 0}},
        {"two o'clock", {2024, 10, 27, 0, 30, 0}, {2024, 10, 27, 0, 0, 0}, {2024, 10, 27, 1, 0, 0}},
        {"two o'clock again", {2024, 10, 27, 1, 30, 0}, {2024, 10, 27, 1, 0, 0}, {2024, 10, 27, 2, 0, 0}},
    };
    static const row lord_howe[] = {
        {"a gap of half an hour", {2024, 10, 5, 15, 29, 0}, {2024, 10, 5, 14, 30, 0}, {2024, 10, 5, 15, 30, 0}},
        {"half past two to three", {2024, 10, 5, 15, 45, 0}, {2024, 10, 5, 15, 30, 0}, {2024, 10, 5, 16, 0, 0}},
        {"an hour and a half", {2024, 4, 6, 15, 0, 0}, {2024, 4, 6, 14, 0, 0}, {2024, 4, 6, 15, 30, 0}},
    };

    (void)state;
    CHECK_ROWS(zone_of(PARIS), hours, paris);
    CHECK_ROWS(zone_of(LORD_HOWE), hours, lord_howe);
}

/* Liberia gave up -0:44:30 for UTC in 1972. */
static void offsets_that_are_no_whole_minutes(void **state)
{
    static const utc turn = {1972, 1, 7, 0, 44, 30};
    static const row by_hour[] = {
        {"long before", {1971, 1, 1, 0, 0, 0}, {1970, 12, 31, 23, 44, 30}, {1971, 1, 1, 0, 44, 30}},
        {"midnight moves to the change", {1972, 1, 7, 0, 0, 0}, {1972, 1, 6, 23, 44, 30}, {1972, 1, 7, 0, 44, 30}},
        {"to one o'clock", {1972, 1, 7, 0, 50, 0}, {1972, 1, 7, 0, 44, 30}, {1972, 1, 7, 1, 0, 0}},
    };
    static const row by_minute[] = {
        {"long before", {1971, 1, 1, 0, 0, 0}, {1970, 12, 31, 23, 59, 30}, {1971, 1, 1, 0, 0, 30}},
        {"midnight, moved", {1972, 1, 7, 0, 44, 40}, {1972, 1, 7, 0, 44, 30}, {1972, 1, 7, 0, 45, 0}},
        {"00:45, shown", {1972, 1, 7, 0, 45, 0}, {1972, 1, 7, 0, 45, 0}, {1972, 1, 7, 0, 45, 30}},
        {"00:01, moved", {1972, 1, 7, 0, 45, 40}, {1972, 1, 7, 0, 45, 30}, {1972, 1, 7, 0, 46, 0}},
        {"00:44 is the last", {1972, 1, 7, 1, 28, 40}, {1972, 1, 7, 1, 28, 30}, {1972, 1, 7, 1, 29, 0}},
        {"whole minutes again", {1972, 1, 7, 1, 29, 40}, {1972, 1, 7, 1, 29, 0}, {1972, 1, 7, 1, 30, 0}},
    };
    static const row by_day[] = {
        {"the day of the change", {1972, 1, 7, 12, 0, 0}, {1972, 1, 7, 0, 44, 30}, {1972, 1, 8, 0, 0, 0}},
    };

    (void)state;
    CHECK_ROWS(zone_turning(turn, -2670, 0), hours, by_hour);
    CHECK_ROWS(zone_turning(turn, -2670, 0), minutes, by_minute);
    CHECK_ROWS(zone_turning(turn, -2670, 0), days, by_day);
}

/* From window to window there is no hole, and any instant inside gives the same window. */
static void windows_meet(void **state)
{
    static const int64_t starts[] = {-RATION_TIME_MAX_US, -S, INT64_C(1704067200) * S, RATION_TIME_MAX_US};
    static const char *const rule_of[] = {NEW_YORK, LORD_HOWE, "XXX3EDT4,0/0,J365/23",
                                          "AAA0BBB,M1.1.1/-167,M12.5.0/167"};
    static const int steps[] = {[RATION_PERIOD_MINUTE] = 3000,
                                [RATION_PERIOD_HOUR] = 9000,
                                [RATION_PERIOD_DAY] = 800,
                                [RATION_PERIOD_WEEK] = 110,
                                [RATION_PERIOD_MONTH] = 40};

    (void)state;
    for (size_t z = 0; z < 4; z++) {
        rn_zone *const zone = zone_of(rule_of[z]);

        for (int at = 0; at < 4 * RATION_PERIOD_MONTH; at++) {
            const ration_period period = (ration_period)(at % RATION_PERIOD_MONTH + 1);
            const rn_calendar calendar = {period, 150, 6, 31, zone};
            ration_time now = {starts[at / RATION_PERIOD_MONTH]};

            for (int i = 0; i < steps[period]; i++) {
                ration_time start = {0};
                ration_time end = {0};

                rn_calendar_window(&calendar, now, &start, &end);
                CHECK(start.us <= now.us && now.us < end.us);
                if (i > 0)
                    CHECK_EQ(start.us, now.us);
                now = end;
            }
        }
        rn_zone_free(zone);
    }
}

static void far_out(void **state)
{
    static const int64_t instants[] = {INT64_MIN, INT64_MIN + 1, -1, INT64_MAX - 1, INT64_MAX};
    rn_zone *const zone = zone_of(NEW_YORK);

    (void)state;
    for (int period = RATION_PERIOD_MINUTE; period <= RATION_PERIOD_MONTH; period++) {
        const rn_calendar calendar = {(ration_period)period, 0, 0, 1, zone};

        for (size_t i = 0; i < sizeof(instants) / sizeof(instants[0]); i++) {
            ration_time start = {0};
            ration_time end = {0};

            rn_calendar_window(&calendar, ration_time_of(instants[i]), &start, &end);
            CHECK(start.us < end.us);
            CHECK(start.us <= instants[i] && instants[i] <= end.us);
        }
    }
    rn_zone_free(zone);
}

static void usual_lengths(void **state)
{
    static const int64_t lengths_s[] = {60, H, 24 * H, 168 * H, 744 * H};

    (void)state;
    for (int period = RATION_PERIOD_MINUTE; period <= RATION_PERIOD_MONTH; period++) {
        const rn_calendar calendar = {.period = (ration_period)period};

        CHECK_EQ(rn_calendar_length(&calendar), lengths_s[period - RATION_PERIOD_MINUTE] * S);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_utc),
        cmocka_unit_test(weeks),
        cmocka_unit_test(months),
        cmocka_unit_test(days_with_a_gap_or_a_repeat),
        cmocka_unit_test(a_midnight_that_does_not_exist),
        cmocka_unit_test(a_day_that_does_not_exist),
        cmocka_unit_test(a_day_that_occurs_twice),
        cmocka_unit_test(a_clock_that_falls_back_across_midnight),
        cmocka_unit_test(hours_with_a_gap_or_a_repeat),
        cmocka_unit_test(offsets_that_are_no_whole_minutes),
        cmocka_unit_test(windows_meet),
        cmocka_unit_test(far_out),
        cmocka_unit_test(usual_lengths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
