/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_WINDOW_H
#define RN_CORE_WINDOW_H

#include <stdint.h>

#include <ration/rules.h>

#include "core/zone.h"

/* Calendar windows: minute, hour, day, week, month in a zone. Specification chapter 3, "Calendar windows". */

typedef struct rn_calendar {
    ration_period period; /* not NONE */
    int32_t reset_minute;
    int32_t week_start;  /* 0 Monday */
    int32_t month_day;   /* 1 to 31 */
    const rn_zone *zone; /* NULL: UTC; borrowed */
} rn_calendar;

/* Of a rule's window. A period of NONE stays one: the window is rolling. */
rn_calendar rn_calendar_of(const ration_window *window, const rn_zone *zone);

/* The window that holds `at`: [*start, *end). Never empty; windows of growing instants never go back. */
void rn_calendar_window(const rn_calendar *calendar, ration_time at, ration_time *start, ration_time *end);

/* A window's usual length in microseconds (an hour, a day, 7 days, 31 days): "one window length" of header sync. */
int64_t rn_calendar_length(const rn_calendar *calendar);

#endif
