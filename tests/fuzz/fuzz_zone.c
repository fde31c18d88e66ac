/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a zone: it is refused, or its stretches and windows keep their promises at any instant.
 *
 * Eight bytes choose an instant; the rest is the file.
 */

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/window.h"
#include "core/zone.h"

#define MUST(condition) ((condition) ? (void)0 : abort())
#define SECOND_US INT64_C(1000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_stretch(const rn_zone *zone, int64_t at_s)
{
    int64_t from = 0;
    int64_t to = 0;
    const int32_t offset = rn_zone_segment(zone, at_s, &from, &to);

    MUST(from <= at_s && (at_s < to || at_s == INT64_MAX));
    MUST(offset >= -26 * 3600 && offset <= 26 * 3600);
    MUST(rn_zone_offset(zone, from) == offset);
    MUST(rn_zone_offset(zone, to == INT64_MAX ? to : to - 1) == offset);
}

static void check_windows(const rn_calendar *calendar, ration_time at)
{
    ration_time start = {0};
    ration_time end = {0};
    ration_time other_start = {0};
    ration_time other_end = {0};

    rn_calendar_window(calendar, at, &start, &end);
    MUST(start.us <= at.us && at.us < end.us);
    if (end.us == INT64_MAX)
        return;

    /* Every instant of a window has that window, and the next begins where it ends. */
    rn_calendar_window(calendar, ration_time_of(end.us - 1), &other_start, &other_end);
    MUST(other_start.us == start.us && other_end.us == end.us);
    rn_calendar_window(calendar, start.us == INT64_MIN ? at : start, &other_start, &other_end);
    MUST(other_start.us == start.us && other_end.us == end.us);
    rn_calendar_window(calendar, end, &other_start, &other_end);
    MUST(other_start.us == end.us && other_end.us > end.us);
}

static void check_at(const rn_zone *zone, ration_time at)
{
    const uint64_t bits = (uint64_t)at.us;
    rn_calendar calendar = {
        .reset_minute = (int32_t)(bits % 1440),
        .week_start = (int32_t)(bits % 7),
        .month_day = (int32_t)(bits % 31) + 1,
        .zone = zone,
    };

    for (int period = RATION_PERIOD_MINUTE; period <= RATION_PERIOD_MONTH; period++) {
        calendar.period = (ration_period)period;
        check_windows(&calendar, at);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t chosen = 0;
    rn_zone *zone = NULL;

    if (size < sizeof(chosen))
        return 0;
    memcpy(&chosen, data, sizeof(chosen));
    if (rn_zone_new(rn_mem_default(), data + sizeof(chosen), size - sizeof(chosen), &zone) != RATION_OK)
        return 0;

    const int64_t capped = chosen % RATION_TIME_MAX_US;
    const int64_t instants[] = {capped, -RATION_TIME_MAX_US, 0, INT64_C(1711846799999999), RATION_TIME_MAX_US};
    int64_t from = 0;
    int64_t to = 0;

    check_stretch(zone, chosen);
    check_stretch(zone, INT64_MIN);
    check_stretch(zone, INT64_MAX);
    for (size_t i = 0; i < sizeof(instants) / sizeof(instants[0]); i++) {
        check_stretch(zone, instants[i] / SECOND_US);
        check_at(zone, ration_time_of(instants[i]));
    }
    (void)rn_zone_segment(zone, capped / SECOND_US, &from, &to);
    if (to < RATION_TIME_MAX_US / SECOND_US) {
        check_at(zone, ration_time_of(to * SECOND_US));
        check_at(zone, ration_time_of(to * SECOND_US - 1));
        check_at(zone, ration_time_of((to + chosen % 200000) * SECOND_US));
    }
    rn_zone_free(zone);
    return 0;
}
