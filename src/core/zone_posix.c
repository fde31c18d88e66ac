/* SPDX-License-Identifier: MIT */
/*
 * The rule behind a zone's table.
 *
 * Each year has two changes, named by a date and a wall-clock time that may lie up to a week outside the year. So the
 * changes of five years around an instant are put in order, and its neighbours read from them. That covers every form,
 * summer time in the south, winter time that is "saved" (Dublin), and years without standard time, where the end of one
 * summer and the beginning of the next are one instant.
 *
 * Invariants: no loop depends on the input but by its length; years are kept so small that no product overflows.
 */
#include "core/zone_posix.h"

#include <stddef.h>

#include "base/civil.h"
#include "base/text.h"
#include "base/units.h"

#define DAY_S 86400
#define YEAR_MAX INT64_C(1000000000)
#define YEARS_AROUND 2
#define CHANGES ((size_t)2 * (2 * YEARS_AROUND + 1))

static bool take_char(ration_text *text, char c)
{
    if (text->size == 0 || text->data[0] != c)
        return false;
    *text = rn_text_slice(*text, 1, text->size);
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* A number of 1 to 3 digits from `low` to `high`. */
static bool take_number(ration_text *text, int32_t low, int32_t high, int32_t *out)
{
    int32_t value = 0;
    size_t size = 0;

    while (size < 3 && size < text->size && is_digit(text->data[size]))
        value = value * 10 + (text->data[size++] - '0');
    if (size == 0 || value < low || value > high)
        return false;
    *text = rn_text_slice(*text, size, text->size);
    *out = value;
    return true;
}

/* "EST" or "<+03>": three characters or more. */
static bool take_name(ration_text *text)
{
    const bool quoted = take_char(text, '<');
    size_t size = 0;

    while (size < text->size) {
        const char c = text->data[size];

        if (!is_letter(c) && !(quoted && (is_digit(c) || c == '+' || c == '-')))
            break;
        size++;
    }
    *text = rn_text_slice(*text, size, text->size);
    return size >= 3 && (!quoted || take_char(text, '>'));
}

/* "[+-]h[:mm[:ss]]" in seconds. */
static bool take_clock(ration_text *text, int32_t hours_max, int32_t *out)
{
    const bool negative = take_char(text, '-');
    int32_t hours = 0;
    int32_t minutes = 0;
    int32_t seconds = 0;

    if (!negative)
        (void)take_char(text, '+');
    if (!take_number(text, 0, hours_max, &hours))
        return false;
    if (take_char(text, ':')) {
        if (!take_number(text, 0, 59, &minutes))
            return false;
        if (take_char(text, ':') && !take_number(text, 0, 59, &seconds))
            return false;
    }

    const int32_t total = hours * 3600 + minutes * 60 + seconds;

    *out = negative ? -total : total;
    return true;
}

/* ",M3.2.0/2": a date and perhaps a time. */
static bool take_change(ration_text *text, rn_posix_change *out)
{
    rn_posix_change change = {.form = RN_POSIX_DAY, .time_s = 2 * 3600};
    bool good = false;

    if (!take_char(text, ','))
        return false;
    if (take_char(text, 'M')) {
        change.form = RN_POSIX_WEEKDAY;
        good = take_number(text, 1, 12, &change.month) && take_char(text, '.') &&
               take_number(text, 1, 5, &change.week) && take_char(text, '.') && take_number(text, 0, 6, &change.day);
    } else if (take_char(text, 'J')) {
        change.form = RN_POSIX_JULIAN;
        good = take_number(text, 1, 365, &change.day);
    } else {
        good = take_number(text, 0, 365, &change.day);
    }
    if (good && take_char(text, '/'))
        good = take_clock(text, 167, &change.time_s);
    *out = change;
    return good;
}

int rn_posix_zone_parse(ration_text text, rn_posix_zone *out)
{
    rn_posix_zone zone = {.has_summer = false};
    int32_t west = 0;

    if (!take_name(&text) || !take_clock(&text, 24, &west))
        return RATION_ERR_SYNTAX;
    zone.standard = -west;
    zone.summer = zone.standard + 3600;
    if (text.size > 0) {
        zone.has_summer = true;
        if (!take_name(&text))
            return RATION_ERR_SYNTAX;
        if (text.size > 0 && text.data[0] != ',') {
            if (!take_clock(&text, 24, &west))
                return RATION_ERR_SYNTAX;
            zone.summer = -west;
        }
        if (!take_change(&text, &zone.begin) || !take_change(&text, &zone.end) || text.size > 0)
            return RATION_ERR_SYNTAX;
    }
    *out = zone;
    return RATION_OK;
}

/* The day, since 1970, on which a change falls in a year. */
static int64_t change_day(const rn_posix_change *change, int64_t year)
{
    const int64_t first = rn_civil_to_days(year, 1, 1);

    switch (change->form) {
    case RN_POSIX_JULIAN:
        return first + change->day - 1 + (change->day >= 60 && rn_civil_month_length(year, 2) == 29 ? 1 : 0);
    case RN_POSIX_DAY:
        return first + change->day;
    case RN_POSIX_WEEKDAY:
        break;
    }

    const int64_t month = rn_civil_to_days(year, change->month, 1);
    const int32_t sunday_based = (rn_civil_weekday(month) + 1) % 7;
    const int32_t day = (change->day - sunday_based + 7) % 7 + (change->week - 1) * 7;

    return month + (day < rn_civil_month_length(year, change->month) ? day : day - 7);
}

typedef struct posix_turn {
    int64_t at;
    int32_t offset; /* from then on */
} posix_turn;

/* All changes of the years around `year`, in order; of two at one instant, the later year's is the last. */
static void zone_turns(const rn_posix_zone *zone, int64_t year, posix_turn turns[static CHANGES])
{
    size_t count = 0;

    for (int64_t y = year - YEARS_AROUND; y <= year + YEARS_AROUND; y++) {
        const int64_t begin = change_day(&zone->begin, y) * DAY_S + zone->begin.time_s - zone->standard;
        const int64_t end = change_day(&zone->end, y) * DAY_S + zone->end.time_s - zone->summer;
        const posix_turn pair[2] = {{begin, zone->summer}, {end, zone->standard}};

        for (size_t i = 0; i < 2; i++) {
            const posix_turn turn = pair[end < begin ? 1 - i : i];
            size_t place = count++;

            for (; place > 0 && turns[place - 1].at > turn.at; place--)
                turns[place] = turns[place - 1];
            turns[place] = turn;
        }
    }
}

/* Drops what changes nothing, or only for no time at all. */
static size_t turns_compact(posix_turn turns[static CHANGES])
{
    size_t kept = 0;

    for (size_t i = 0; i < CHANGES; i++) {
        const bool overruled = i + 1 < CHANGES && turns[i + 1].at == turns[i].at;

        if (!overruled && (kept == 0 || turns[kept - 1].offset != turns[i].offset))
            turns[kept++] = turns[i];
    }
    return kept;
}

int32_t rn_posix_zone_segment(const rn_posix_zone *zone, int64_t utc_s, int64_t *from_s, int64_t *to_s)
{
    posix_turn turns[CHANGES] = {{0, 0}};
    size_t next = 0;

    *from_s = INT64_MIN;
    *to_s = INT64_MAX;
    if (!zone->has_summer || zone->standard == zone->summer)
        return zone->standard;

    const int64_t year = rn_civil_of_days(rn_div_floor(utc_s, DAY_S)).year;

    zone_turns(zone, rn_min(rn_max(year, -YEAR_MAX), YEAR_MAX), turns);

    const int64_t horizon = turns[CHANGES - 1].at;
    const size_t count = turns_compact(turns);

    while (next < count && turns[next].at <= utc_s)
        next++;
    if (next > 0)
        *from_s = turns[next - 1].at;
    if (next < count) {
        *to_s = turns[next].at;
    } else if (utc_s < horizon) {
        *to_s = horizon; /* what comes later was not looked at */
    }
    return next > 0 ? turns[next - 1].offset : zone->standard;
}
