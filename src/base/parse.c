/* SPDX-License-Identifier: MIT */
/*
 * Readers of numbers as people write them.
 *
 * All of them stand on one scanner: digits, then perhaps a point and more digits, as an exact count of the smallest
 * part. A reader consumes the text from its front and accepts only if nothing is left. Digits beyond the range are read
 * to their end before the answer is "out of range", so "9...9x" is malformed and not too large.
 *
 * Invariant: `*out` is written once, at the end, on success only.
 */
#include "base/units.h"

#include "base/text.h"

#define DIGITS_MAX 6

static const int64_t powers[DIGITS_MAX + 1] = {1, 10, 100, 1000, 10000, 100000, 1000000};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool cursor_skip(ration_text *cursor, char c)
{
    if (cursor->size == 0 || cursor->data[0] != c)
        return false;
    *cursor = rn_text_slice(*cursor, 1, cursor->size);
    return true;
}

/* One or more digits; their value saturates at INT64_MAX, which then counts as out of range everywhere. */
static bool cursor_digits(ration_text *cursor, int64_t *value, size_t *count)
{
    size_t n = 0;
    int64_t sum = 0;

    while (n < cursor->size && is_digit(cursor->data[n])) {
        sum = rn_add(rn_mul(sum, 10), cursor->data[n] - '0');
        n++;
    }
    if (n == 0)
        return false;
    *cursor = rn_text_slice(*cursor, n, cursor->size);
    *value = sum;
    *count = n;
    return true;
}

/* "12" or "12.5" with at most `places` digits behind the point, in units of 10^-places. Saturates as cursor_digits. */
static bool cursor_decimal(ration_text *cursor, size_t places, int64_t *out)
{
    int64_t whole = 0;
    int64_t part = 0;
    size_t count = 0;

    if (!cursor_digits(cursor, &whole, &count))
        return false;
    count = 0;
    if (cursor_skip(cursor, '.') && (!cursor_digits(cursor, &part, &count) || count > places))
        return false;
    *out = rn_add(rn_mul(whole, powers[places]), part * powers[places - count]);
    return true;
}

int rn_parse_micro(ration_text text, int64_t *out)
{
    int64_t value = 0;

    if (!cursor_decimal(&text, 6, &value) || text.size > 0)
        return RATION_ERR_SYNTAX;
    if (value > RATION_UNITS_MAX)
        return RATION_ERR_RANGE;
    *out = value;
    return RATION_OK;
}

int rn_parse_int(ration_text text, int64_t *out)
{
    const bool negative = cursor_skip(&text, '-');
    ration_text rest = text;
    int64_t value = 0;
    size_t count = 0;

    if (!cursor_digits(&rest, &value, &count) || rest.size > 0)
        return RATION_ERR_SYNTAX;
    value = 0;
    for (size_t i = 0; i < count; i++) {
        const int digit = text.data[i] - '0';

        /* Built on its own side of zero: the smallest number has no positive twin. */
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value))
            return RATION_ERR_RANGE;
    }
    *out = value;
    return RATION_OK;
}

int rn_parse_ms(ration_text text, int64_t *out_us)
{
    const bool negative = cursor_skip(&text, '-');
    int64_t us = 0;

    if (!cursor_decimal(&text, 3, &us) || text.size > 0)
        return RATION_ERR_SYNTAX;
    if (us > RATION_TIME_MAX_US)
        return RATION_ERR_RANGE;
    *out_us = negative ? -us : us;
    return RATION_OK;
}

typedef struct time_unit {
    const char *name;
    int64_t us;
} time_unit;

static const time_unit time_units[] = {
    {"d", INT64_C(86400000000)}, {"h", INT64_C(3600000000)}, {"m", INT64_C(60000000)},
    {"s", INT64_C(1000000)},     {"ms", INT64_C(1000)},      {"us", INT64_C(1)},
};

#define TIME_UNIT_COUNT (sizeof(time_units) / sizeof(time_units[0]))

/* The unit's name at the front: letters up to the next digit or the end. */
static const time_unit *cursor_unit(ration_text *cursor)
{
    size_t size = 0;

    while (size < cursor->size && !is_digit(cursor->data[size]))
        size++;
    for (size_t i = 0; i < TIME_UNIT_COUNT; i++) {
        if (rn_text_is(rn_text_slice(*cursor, 0, size), time_units[i].name)) {
            *cursor = rn_text_slice(*cursor, size, cursor->size);
            return &time_units[i];
        }
    }
    return NULL;
}

/* One "1.5s" at the front. Its fraction must come out in whole microseconds. Saturates. */
static bool cursor_span(ration_text *cursor, const time_unit **unit, int64_t *us)
{
    int64_t whole = 0;
    int64_t part = 0;
    size_t count = 0;

    if (!cursor_digits(cursor, &whole, &count))
        return false;
    count = 0;
    if (cursor_skip(cursor, '.') && (!cursor_digits(cursor, &part, &count) || count > DIGITS_MAX))
        return false;
    *unit = cursor_unit(cursor);
    if (*unit == NULL || (part * (*unit)->us) % powers[count] != 0)
        return false;
    /* Only the last part may have a fraction: "1.5h30m" is more likely a slip than a wish. */
    if (count > 0 && cursor->size > 0)
        return false;
    *us = rn_add(rn_mul(whole, (*unit)->us), part * (*unit)->us / powers[count]);
    return true;
}

int rn_parse_duration(ration_text text, int64_t *out)
{
    const time_unit *last = NULL;
    int64_t sum = 0;

    if (rn_text_is(text, "0")) {
        *out = 0;
        return RATION_OK;
    }
    do {
        const time_unit *unit = NULL;
        int64_t us = 0;

        if (!cursor_span(&text, &unit, &us) || (last != NULL && unit <= last))
            return RATION_ERR_SYNTAX;
        last = unit;
        sum = rn_add(sum, us);
    } while (text.size > 0);
    if (sum > RATION_TIME_MAX_US)
        return RATION_ERR_RANGE;
    *out = sum;
    return RATION_OK;
}

/* What stands behind the slash: "s", "m", "h", "d" for one of them, else a duration. */
static int parse_period(ration_text text, int64_t *out)
{
    if (text.size == 1 && !is_digit(text.data[0])) {
        const time_unit *const unit = cursor_unit(&text);

        if (unit == NULL)
            return RATION_ERR_SYNTAX;
        *out = unit->us;
        return RATION_OK;
    }
    return rn_parse_duration(text, out);
}

int rn_parse_rate(ration_text text, ration_rate *out)
{
    ration_rate rate = {0, 0};
    size_t slash = 0;

    if (!rn_text_find(text, ration_text_of("/"), &slash))
        return RATION_ERR_SYNTAX;

    const int left = rn_parse_micro(rn_text_slice(text, 0, slash), &rate.units);
    const int right = parse_period(rn_text_slice(text, slash + 1, text.size), &rate.per_us);

    if (left == RATION_ERR_SYNTAX || right == RATION_ERR_SYNTAX)
        return RATION_ERR_SYNTAX;
    if (left != RATION_OK || right != RATION_OK || rate.units == 0 || rate.per_us == 0)
        return RATION_ERR_RANGE;
    *out = rate;
    return RATION_OK;
}

/* "4/5": numerator and denominator. */
static bool cursor_fraction(ration_text *cursor, int64_t *num, int64_t *den)
{
    size_t count = 0;

    return cursor_digits(cursor, num, &count) && cursor_skip(cursor, '/') && cursor_digits(cursor, den, &count);
}

int rn_parse_ratio(ration_text text, ration_ratio *out)
{
    int64_t num = 0;
    int64_t den = RATION_UNIT;
    ration_text cursor = text;

    if (!cursor_fraction(&cursor, &num, &den)) {
        den = RATION_UNIT;
        cursor = text;
        if (!cursor_decimal(&cursor, DIGITS_MAX, &num))
            return RATION_ERR_SYNTAX;
        if (cursor_skip(&cursor, '%'))
            den *= 100;
    }
    if (cursor.size > 0)
        return RATION_ERR_SYNTAX;
    if (den == 0 || den == INT64_MAX || num > den)
        return RATION_ERR_RANGE;

    const int64_t divisor = (int64_t)rn_gcd((uint64_t)num, (uint64_t)den);

    if (den / divisor > RATION_UNIT)
        return RATION_ERR_RANGE;
    out->num = (int32_t)(num / divisor);
    out->den = (int32_t)(den / divisor);
    return RATION_OK;
}
