/* SPDX-License-Identifier: MIT */
/*
 * A bounded builder in place of printf: no locale, no format strings, no allocation, the same bytes everywhere.
 *
 * What does not fit is cut, between UTF-8 sequences, and from then on nothing more is written: the result is always a
 * prefix of what was meant.
 *
 * Invariants: `used < size` and data[used] == NUL, unless `size` is 0.
 */
#include "base/text.h"

#include <string.h>

#include "base/civil.h"
#include "base/units.h"

#define US_PER_SECOND INT64_C(1000000)
#define US_PER_DAY (INT64_C(86400) * US_PER_SECOND)

void rn_builder_init(rn_builder *b, char *buffer, size_t size)
{
    b->data = buffer;
    b->size = size;
    b->used = 0;
    b->full = false;
    if (size > 0)
        buffer[0] = '\0';
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

void rn_builder_text(rn_builder *b, ration_text text)
{
    if (b->full || text.size == 0)
        return;

    const size_t room = b->size > 0 ? b->size - 1 - b->used : 0;
    size_t size = text.size;

    if (size > room) {
        b->full = true;
        size = room;
        while (size > 0 && is_continuation(text.data[size]))
            size--;
    }
    if (size == 0)
        return;
    memcpy(b->data + b->used, text.data, size);
    b->used += size;
    b->data[b->used] = '\0';
}

void rn_builder_str(rn_builder *b, const char *s)
{
    rn_builder_text(b, ration_text_of(s));
}

void rn_builder_char(rn_builder *b, char c)
{
    const ration_text text = {&c, 1};

    rn_builder_text(b, text);
}

/* At least `width` digits, with zeros in front. */
static void builder_digits(rn_builder *b, uint64_t value, size_t width)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0 || sizeof(digits) - at < width);

    const ration_text text = {digits + at, sizeof(digits) - at};

    rn_builder_text(b, text);
}

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

void rn_builder_int(rn_builder *b, int64_t value)
{
    if (value < 0)
        rn_builder_char(b, '-');
    builder_digits(b, magnitude(value), 1);
}

/* ".25" for the part `rest` of 10^places, without zeros at its end; nothing for 0. */
static void builder_fraction(rn_builder *b, uint64_t rest, size_t places)
{
    if (rest == 0)
        return;
    while (rest % 10 == 0) {
        rest /= 10;
        places--;
    }
    rn_builder_char(b, '.');
    builder_digits(b, rest, places);
}

static void builder_decimal(rn_builder *b, int64_t value, uint64_t scale, size_t places)
{
    if (value < 0)
        rn_builder_char(b, '-');
    builder_digits(b, magnitude(value) / scale, 1);
    builder_fraction(b, magnitude(value) % scale, places);
}

void rn_builder_micro(rn_builder *b, int64_t value)
{
    builder_decimal(b, value, 1000000, 6);
}

void rn_builder_ms(rn_builder *b, int64_t us)
{
    builder_decimal(b, us, 1000, 3);
}

/* "2 h 5 min": `value` of the small unit, of which the large one has `ratio`. */
static void builder_pair(rn_builder *b, uint64_t value, uint64_t ratio, const char *large, const char *small)
{
    builder_digits(b, value / ratio, 1);
    rn_builder_str(b, large);
    if (value % ratio == 0)
        return;
    rn_builder_char(b, ' ');
    builder_digits(b, value % ratio, 1);
    rn_builder_str(b, small);
}

static uint64_t ceil_to(uint64_t us, uint64_t unit)
{
    return us / unit + (us % unit > 0 ? 1 : 0);
}

/* Two units at most, rounded up, so that who waits as long as it says has waited long enough. */
void rn_builder_duration(rn_builder *b, int64_t us)
{
    const uint64_t span = magnitude(us);
    const uint64_t ms = ceil_to(span, 1000);
    const uint64_t s = ceil_to(span, 1000000);
    const uint64_t min = ceil_to(span, 60 * UINT64_C(1000000));
    const uint64_t h = ceil_to(span, 3600 * UINT64_C(1000000));

    if (us == RATION_FOREVER_US) {
        rn_builder_str(b, "for ever");
        return;
    }
    if (us < 0)
        rn_builder_char(b, '-');
    if (span > 0 && span < 1000) {
        builder_digits(b, span, 1);
        rn_builder_str(b, " us");
    } else if (span > 0 && span < 1000000) {
        builder_decimal(b, (int64_t)span, 1000, 3);
        rn_builder_str(b, " ms");
    } else if (ms < 60000) {
        builder_decimal(b, (int64_t)ms, 1000, 3);
        rn_builder_str(b, " s");
    } else if (s < 3600) {
        builder_pair(b, s, 60, " min", " s");
    } else if (min < UINT64_C(24) * 60) {
        builder_pair(b, min, 60, " h", " min");
    } else {
        builder_pair(b, h, 24, " d", " h");
    }
}

void rn_builder_instant(rn_builder *b, ration_time at)
{
    const int64_t first = INT64_C(-719162) * US_PER_DAY;    /* 0001-01-01 */
    const int64_t last = INT64_C(2932897) * US_PER_DAY - 1; /* the end of 9999-12-31 */

    if (!rn_time_known(at)) {
        rn_builder_str(b, "never");
        return;
    }

    const int64_t us = rn_min(rn_max(at.us, first), last);
    const int64_t days = rn_div_floor(us, US_PER_DAY);
    const uint64_t rest = (uint64_t)(us - days * US_PER_DAY);
    const uint64_t second = rest / 1000000;
    const rn_civil date = rn_civil_of_days(days);

    builder_digits(b, (uint64_t)date.year, 4);
    rn_builder_char(b, '-');
    builder_digits(b, (uint64_t)date.month, 2);
    rn_builder_char(b, '-');
    builder_digits(b, (uint64_t)date.day, 2);
    rn_builder_char(b, 'T');
    builder_digits(b, second / 3600, 2);
    rn_builder_char(b, ':');
    builder_digits(b, second / 60 % 60, 2);
    rn_builder_char(b, ':');
    builder_digits(b, second % 60, 2);
    builder_fraction(b, rest % 1000000, 6);
    rn_builder_char(b, 'Z');
}

void rn_builder_key(rn_builder *b, ration_text text)
{
    size_t done = 0;

    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];
        const char *const code = c == '/' ? "%2F" : c == '=' ? "%3D" : c == '%' ? "%25" : NULL;

        if (code == NULL)
            continue;
        rn_builder_text(b, rn_text_slice(text, done, i));
        rn_builder_str(b, code);
        done = i + 1;
    }
    rn_builder_text(b, rn_text_slice(text, done, text.size));
}
