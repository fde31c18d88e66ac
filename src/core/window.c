/* SPDX-License-Identifier: MIT */
/*
 * Calendar windows.
 *
 * A calendar and a zone give a set of boundaries on the line of instants; the window of an instant lies between its
 * neighbours in that set. So windows cannot be empty, overlap or go back, whatever the zone does: two boundaries at one
 * instant are one, and a clock that falls back across midnight passes no boundary again.
 *
 * Days, weeks and months: each date has one boundary, the first instant at which the local clock shows the reset time;
 * if it never does, the reset time as the clock before the gap would have counted it, which is forward by the gap.
 * Minutes and hours: all instants at which the local clock shows a whole one, and the skipped ones, moved the same way.
 *
 * Where no offset changes near, one division does. Near a change, boundaries are looked for among the dates, or the
 * stretches, that are within reach: two offsets differ by 52 hours at most (core/zone.c), so that is a handful.
 *
 * Inside, instants are seconds: no boundary has a fraction.
 */
#include "core/window.h"

#include <assert.h>

#include "base/civil.h"
#include "base/units.h"

#define MINUTE_S INT64_C(60)
#define HOUR_S INT64_C(3600)
#define DAY_S INT64_C(86400)
#define SECOND_US INT64_C(1000000)
#define OFFSET_MAX_S (26 * HOUR_S)
#define GAP_MAX_S (2 * OFFSET_MAX_S)
/* In twice the largest gap the local clock moves on, and what it skips is moved by one gap more. */
#define REACH_S (4 * GAP_MAX_S)

typedef struct span {
    int64_t start;
    int64_t end;
} span;

/* The last multiple of `step` up to `at`, on a clock that is `offset` ahead. */
static int64_t grid_last(int64_t at, int64_t offset, int64_t step)
{
    return rn_div_floor(at + offset, step) * step - offset;
}

/* Narrow `window` around `at` by the whole steps, on a clock that is `offset` ahead, of [from, to). */
static void grid_narrow(int64_t at, int64_t from, int64_t to, int64_t offset, int64_t step, span *window)
{
    const int64_t last = grid_last(to <= at ? to - 1 : at, offset, step);
    const int64_t next = grid_last(from > at ? from - 1 : at, offset, step) + step;

    if (last >= from && last <= at)
        window->start = rn_max(window->start, last);
    if (next < to)
        window->end = rn_min(window->end, next);
}

/* The slow road: all stretches from the first that can matter until nothing nearer can come. */
static span grid_search(const rn_zone *zone, int64_t at, int64_t step)
{
    span window = {INT64_MIN, INT64_MAX};
    int64_t from = 0;
    int64_t to = 0;
    int64_t offset = rn_zone_segment(zone, at - REACH_S, &from, &to);

    for (;;) {
        grid_narrow(at, from, to, offset, step, &window);
        if (to > at && (to >= window.end || to == INT64_MAX))
            return window;

        const int64_t turn = to;
        const int64_t before = offset;

        offset = rn_zone_segment(zone, turn, &from, &to);
        if (offset > before)
            grid_narrow(at, turn, turn + offset - before, before, step, &window);
    }
}

static span grid_window(const rn_zone *zone, int64_t at, int64_t step)
{
    int64_t from = 0;
    int64_t to = 0;
    const int64_t offset = rn_zone_segment(zone, at, &from, &to);
    const int64_t start = grid_last(at, offset, step);
    const span window = {start, start + step};

    return from <= start - GAP_MAX_S && window.end < to ? window : grid_search(zone, at, step);
}

/* The reset time of date number `index` as the local clock writes it. */
static int64_t date_reset(const rn_calendar *calendar, int64_t index)
{
    int64_t day = index;

    if (calendar->period == RATION_PERIOD_WEEK) {
        day = index * 7 + calendar->week_start - rn_civil_weekday(0);
    } else if (calendar->period == RATION_PERIOD_MONTH) {
        const int64_t year = rn_div_floor(index, 12);
        const int32_t month = (int32_t)(index - year * 12) + 1;
        const int32_t length = rn_civil_month_length(year, month);

        day = rn_civil_to_days(year, month, calendar->month_day < length ? calendar->month_day : length);
    }
    return day * DAY_S + calendar->reset_minute * MINUTE_S;
}

/* The number of the last date whose reset time is not after `local`. */
static int64_t date_index(const rn_calendar *calendar, int64_t local)
{
    const int64_t day = rn_div_floor(local - calendar->reset_minute * MINUTE_S, DAY_S);

    if (calendar->period == RATION_PERIOD_DAY)
        return day;
    if (calendar->period == RATION_PERIOD_WEEK)
        return rn_div_floor(day - calendar->week_start + rn_civil_weekday(0), 7);

    const rn_civil date = rn_civil_of_days(day);
    const int64_t index = date.year * 12 + date.month - 1;

    return date_reset(calendar, index) <= local ? index : index - 1;
}

/*
 * When the local clock first shows `local`, or would have without the gap that skips it.
 *
 * In each stretch that the loop enters, the clock is not yet beyond `local`: it reaches it there, or jumps over it at
 * the stretch's end, or goes on below it.
 */
static int64_t clock_first_shows(const rn_zone *zone, int64_t local)
{
    int64_t from = 0;
    int64_t to = 0;
    int64_t offset = rn_zone_segment(zone, local - OFFSET_MAX_S, &from, &to);

    for (;;) {
        const int64_t at = local - offset;

        if (at < to)
            return at;

        const int64_t turn = to;

        offset = rn_zone_segment(zone, turn, &from, &to);
        if (local < turn + offset)
            return at;
    }
}

static span date_search(const rn_calendar *calendar, int64_t at)
{
    /* Days are shorter than the largest gap, so more of them can have been moved to near `at`. */
    const int64_t reach = calendar->period == RATION_PERIOD_DAY ? 5 : 2;
    const int64_t index = date_index(calendar, at);
    span window = {INT64_MIN, INT64_MAX};

    for (int64_t i = index - reach; i <= index + reach; i++) {
        const int64_t boundary = clock_first_shows(calendar->zone, date_reset(calendar, i));

        if (boundary <= at) {
            window.start = rn_max(window.start, boundary);
        } else {
            window.end = rn_min(window.end, boundary);
        }
    }
    return window;
}

static span date_window(const rn_calendar *calendar, int64_t at)
{
    int64_t from = 0;
    int64_t to = 0;
    const int64_t offset = rn_zone_segment(calendar->zone, at, &from, &to);
    const int64_t index = date_index(calendar, at + offset);
    const span window = {date_reset(calendar, index) - offset, date_reset(calendar, index + 1) - offset};

    /* No other date's reset can have been moved into a window that begins this long after a change. */
    return from <= window.start - GAP_MAX_S && window.end < to ? window : date_search(calendar, at);
}

rn_calendar rn_calendar_of(const ration_window *window, const rn_zone *zone)
{
    return (rn_calendar){
        .period = window->period,
        .reset_minute = window->reset_minute,
        .week_start = window->week_start,
        .month_day = window->month_day != 0 ? window->month_day : 1,
        .zone = zone,
    };
}

void rn_calendar_window(const rn_calendar *calendar, ration_time at, ration_time *start, ration_time *end)
{
    const int64_t at_s = rn_div_floor(at.us, SECOND_US);
    span window = {0, 0};

    switch (calendar->period) {
    case RATION_PERIOD_NONE:
        assert(calendar->period != RATION_PERIOD_NONE);
        break;
    case RATION_PERIOD_MINUTE:
        window = grid_window(calendar->zone, at_s, MINUTE_S);
        break;
    case RATION_PERIOD_HOUR:
        window = grid_window(calendar->zone, at_s, HOUR_S);
        break;
    case RATION_PERIOD_DAY:
    case RATION_PERIOD_WEEK:
    case RATION_PERIOD_MONTH:
        window = date_window(calendar, at_s);
        break;
    }
    start->us = rn_mul(window.start, SECOND_US);
    end->us = rn_mul(window.end, SECOND_US);
}

int64_t rn_calendar_length(const rn_calendar *calendar)
{
    static const int64_t lengths_s[] = {
        [RATION_PERIOD_NONE] = 0,    [RATION_PERIOD_MINUTE] = MINUTE_S, [RATION_PERIOD_HOUR] = HOUR_S,
        [RATION_PERIOD_DAY] = DAY_S, [RATION_PERIOD_WEEK] = 7 * DAY_S,  [RATION_PERIOD_MONTH] = 31 * DAY_S,
    };

    return lengths_s[calendar->period] * SECOND_US;
}
