/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_CIVIL_H
#define RN_BASE_CIVIL_H

#include <stdint.h>

/* Dates of the proleptic Gregorian calendar and the count of days since 1970-01-01. Right for any instant in int64
 * seconds. */

typedef struct rn_civil {
    int64_t year;
    int32_t month; /* 1 to 12 */
    int32_t day;   /* 1 to 31 */
} rn_civil;

rn_civil rn_civil_of_days(int64_t days);
int64_t rn_civil_to_days(int64_t year, int32_t month, int32_t day);
int32_t rn_civil_month_length(int64_t year, int32_t month);
int32_t rn_civil_weekday(int64_t days); /* 0 Monday to 6 Sunday */

#endif
