/* SPDX-License-Identifier: MIT */
/*
 * Dates as header fields write them: the three forms of RFC 9110, section 5.6.7, and ISO 8601 (RFC 3339).
 *
 *     Sun, 06 Nov 1994 08:49:37 GMT       1994-11-06T08:49:37Z
 *     Sunday, 06-Nov-94 08:49:37 GMT      1994-11-06T09:49:37.5+01:00
 *     Sun Nov  6 08:49:37 1994
 *
 * The name of the weekday is not compared with the date: it says nothing that the date does not. A leap second is the
 * second after it, for the epoch does not count it. All arithmetic is on small bounded numbers, whatever is written.
 */
#include "core/fields.h"

#include "base/civil.h"
#include "base/text.h"
#include "base/units.h"
#include "core/scan.h"

#define SECOND_US INT64_C(1000000)
#define DAY_S INT64_C(86400)

typedef struct date {
    int64_t year;
    int64_t month;
    int64_t day;
    int64_t second; /* of the day */
    int64_t us;
    int64_t offset_s; /* east of UTC */
} date;

static rn_field date_to_instant(const date *d, ration_time *out)
{
    if (d->month < 1 || d->month > 12)
        return RN_FIELD_BAD;

    const int32_t month = (int32_t)d->month;

    if (d->day < 1 || d->day > rn_civil_month_length(d->year, month))
        return RN_FIELD_BAD;

    const int64_t second = rn_civil_to_days(d->year, month, (int32_t)d->day) * DAY_S + d->second - d->offset_s;

    out->us = second * SECOND_US + d->us;
    if (out->us > RATION_TIME_MAX_US || out->us < -RATION_TIME_MAX_US)
        return RN_FIELD_BAD;
    return RN_FIELD_OK;
}

static bool scan_month(ration_text *text, int64_t *out)
{
    static const char *const names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
    const ration_text name = rn_scan_letters(text);

    for (int64_t i = 0; i < 12; i++) {
        if (rn_text_is_nocase(name, names[i])) {
            *out = i + 1;
            return true;
        }
    }
    return false;
}

/* "08:49:37"; with `short_form`, the seconds may be missing. */
static bool scan_time(ration_text *text, bool short_form, int64_t *out)
{
    int64_t hour = 0;
    int64_t minute = 0;
    int64_t second = 0;

    if (!rn_scan_digits(text, 2, 2, &hour) || !rn_scan_char(text, ':') || !rn_scan_digits(text, 2, 2, &minute))
        return false;
    if (rn_scan_char(text, ':')) {
        if (!rn_scan_digits(text, 2, 2, &second))
            return false;
    } else if (!short_form) {
        return false;
    }
    if (hour > 23 || minute > 59 || second > 60)
        return false;
    *out = hour * 3600 + minute * 60 + second;
    return true;
}

static bool scan_end(ration_text *text, const char *end)
{
    const bool is = rn_text_is_nocase(*text, end);

    *text = rn_text_slice(*text, text->size, text->size);
    return is;
}

/* "06 Nov 1994 08:49:37 GMT" */
static bool scan_imf(ration_text *text, date *d)
{
    return rn_scan_digits(text, 1, 2, &d->day) && rn_scan_char(text, ' ') && scan_month(text, &d->month) &&
           rn_scan_char(text, ' ') && rn_scan_digits(text, 4, 4, &d->year) && rn_scan_char(text, ' ') &&
           scan_time(text, false, &d->second) && scan_end(text, " GMT");
}

/* "06-Nov-94 08:49:37 GMT". The year is in the century that puts it at most 50 years ahead. */
static bool scan_rfc850(ration_text *text, date *d, ration_time now)
{
    const int64_t this_year = rn_civil_of_days(rn_div_floor(now.us, DAY_S * SECOND_US)).year;

    if (!rn_scan_digits(text, 1, 2, &d->day) || !rn_scan_char(text, '-') || !scan_month(text, &d->month) ||
        !rn_scan_char(text, '-') || !rn_scan_digits(text, 2, 2, &d->year) || !rn_scan_char(text, ' ') ||
        !scan_time(text, false, &d->second) || !scan_end(text, " GMT"))
        return false;
    d->year += rn_div_floor(this_year + 50 - d->year, 100) * 100;
    return true;
}

/* "Nov  6 08:49:37 1994" */
static bool scan_asctime(ration_text *text, date *d)
{
    if (!scan_month(text, &d->month) || !rn_scan_char(text, ' '))
        return false;
    (void)rn_scan_char(text, ' ');
    return rn_scan_digits(text, 1, 2, &d->day) && rn_scan_char(text, ' ') && scan_time(text, false, &d->second) &&
           rn_scan_char(text, ' ') && rn_scan_digits(text, 4, 4, &d->year) && text->size == 0;
}

rn_field rn_field_http_date(ration_text value, ration_time now, ration_time *out)
{
    ration_text text = rn_text_trim(value);
    date d = {0};
    bool read = false;

    if (rn_scan_letters(&text).size < 3)
        return RN_FIELD_BAD;
    if (rn_scan_char(&text, ',')) {
        ration_text other = text;

        read = rn_scan_char(&text, ' ') &&
               (scan_imf(&text, &d) || (rn_scan_char(&other, ' ') && scan_rfc850(&other, &d, now)));
    } else {
        read = rn_scan_char(&text, ' ') && scan_asctime(&text, &d);
    }
    return read ? date_to_instant(&d, out) : RN_FIELD_BAD;
}

/* "Z", "+01:00", "-0530", "+02", or nothing for UTC. */
static bool scan_offset(ration_text *text, int64_t *out)
{
    int64_t hour = 0;
    int64_t minute = 0;
    const bool east = rn_scan_char(text, '+');

    if (!east && !rn_scan_char(text, '-')) {
        *out = 0;
        return text->size == 0 || scan_end(text, "z");
    }
    if (!rn_scan_digits(text, 2, 2, &hour))
        return false;
    if (rn_scan_char(text, ':') ? !rn_scan_digits(text, 2, 2, &minute)
                                : text->size > 0 && !rn_scan_digits(text, 2, 2, &minute))
        return false;
    if (hour > 23 || minute > 59 || text->size > 0)
        return false;
    *out = (hour * 60 + minute) * (east ? 60 : -60);
    return true;
}

/* ".5", rounded up to a microsecond; nothing is no fraction. */
static bool scan_fraction(ration_text *text, int64_t *out)
{
    int64_t us = 0;
    size_t places = 0;
    bool more = false;
    int64_t digit = 0;

    if (!rn_scan_char(text, '.') && !rn_scan_char(text, ','))
        return true;
    for (; rn_scan_digits(text, 1, 1, &digit); places++) {
        if (places < 6) {
            us = us * 10 + digit;
        } else {
            more = more || digit != 0;
        }
    }
    for (size_t i = places; i < 6; i++)
        us *= 10;
    *out = us + (more ? 1 : 0);
    return places > 0;
}

rn_field rn_field_iso8601(ration_text value, ration_time *out)
{
    ration_text text = rn_text_trim(value);
    date d = {0};

    if (!rn_scan_digits(&text, 4, 4, &d.year) || !rn_scan_char(&text, '-') || !rn_scan_digits(&text, 2, 2, &d.month) ||
        !rn_scan_char(&text, '-') || !rn_scan_digits(&text, 2, 2, &d.day))
        return RN_FIELD_BAD;
    if (text.size > 0) {
        if (!rn_scan_char(&text, 'T') && !rn_scan_char(&text, 't') && !rn_scan_char(&text, ' '))
            return RN_FIELD_BAD;
        if (!scan_time(&text, true, &d.second) || !scan_fraction(&text, &d.us) || !scan_offset(&text, &d.offset_s))
            return RN_FIELD_BAD;
    }
    return date_to_instant(&d, out);
}
