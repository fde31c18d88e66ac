/* SPDX-License-Identifier: MIT */
/*
 * Dates without a library: years are counted from 1 March, so that the leap day is a year's last, in eras of 400 years,
 * which all have the same number of days. Inside an era everything is small and positive.
 *
 * Invariant: rn_civil_to_days(rn_civil_of_days(d)) == d.
 */
#include "base/civil.h"

#include "base/units.h"

#define DAYS_PER_ERA 146097
#define MARCH_0_TO_1970 719468 /* days from 0000-03-01 to 1970-01-01 */

rn_civil rn_civil_of_days(int64_t days)
{
    const int64_t since = days + MARCH_0_TO_1970;
    const int64_t era = rn_div_floor(since, DAYS_PER_ERA);
    const int32_t day = (int32_t)(since - era * DAYS_PER_ERA);
    const int32_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    const int32_t day_of_year = day - (365 * year + year / 4 - year / 100);
    const int32_t month = (5 * day_of_year + 2) / 153; /* 0 March to 11 February */
    const rn_civil date = {
        .year = era * 400 + year + (month >= 10 ? 1 : 0),
        .month = month < 10 ? month + 3 : month - 9,
        .day = day_of_year - (153 * month + 2) / 5 + 1,
    };

    return date;
}

int64_t rn_civil_to_days(int64_t year, int32_t month, int32_t day)
{
    const int64_t from_march = month > 2 ? year : year - 1;
    const int64_t era = rn_div_floor(from_march, 400);
    const int64_t year_of_era = from_march - era * 400;
    const int32_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - MARCH_0_TO_1970;
}

int32_t rn_civil_month_length(int64_t year, int32_t month)
{
    if (month == 2)
        return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

int32_t rn_civil_weekday(int64_t days)
{
    /* 1970-01-01 was a Thursday. */
    return (int32_t)(days + 3 - rn_div_floor(days + 3, 7) * 7);
}
