/* SPDX-License-Identifier: MIT */
/*
 * Numbers of JSON without floating point.
 *
 * Nineteen significant digits are kept; that is more than the largest number of micro-units has, so what comes after
 * them only tells whether to round up. Zeros before the first significant digit only move the scale. Scale and exponent
 * saturate far beyond anything that a text can hold digits for, so "0.000...1e999" comes out exactly or not at all.
 *
 * What is not a whole micro-unit is rounded up: a cost is never counted as less than was said.
 */
#include "base/decimal.h"

#include <ration/types.h>

#include "base/units.h"

#define DIGITS_MAX 19
#define PLACES 6 /* of a micro-unit */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_digit(rn_decimal *n, char c, rn_decimal_state state)
{
    const bool fraction = state == RN_DECIMAL_FRACTION;

    if (!is_digit(c))
        return false;
    n->state = state;
    if (n->count == DIGITS_MAX) {
        n->lost = n->lost || c != '0';
        n->scale = rn_add(n->scale, fraction ? 0 : 1);
        return true;
    }
    n->digits = n->digits * 10 + (uint64_t)(c - '0');
    n->count += n->digits > 0;
    n->scale = rn_sub(n->scale, fraction ? 1 : 0);
    return true;
}

static bool take_exponent(rn_decimal *n, char c)
{
    if (!is_digit(c))
        return false;
    n->state = RN_DECIMAL_EXPONENT;
    n->exponent = rn_add(rn_mul(n->exponent, 10), c - '0');
    return true;
}

static bool enter(rn_decimal *n, bool fits, rn_decimal_state state)
{
    if (fits)
        n->state = state;
    return fits;
}

bool rn_decimal_take(rn_decimal *n, char c)
{
    const bool e = c == 'e' || c == 'E';

    switch (n->state) {
    case RN_DECIMAL_START:
        n->negative = c == '-';
        return enter(n, c == '-', RN_DECIMAL_SIGN) || take_digit(n, c, c == '0' ? RN_DECIMAL_ZERO : RN_DECIMAL_WHOLE);
    case RN_DECIMAL_SIGN:
        return take_digit(n, c, c == '0' ? RN_DECIMAL_ZERO : RN_DECIMAL_WHOLE);
    case RN_DECIMAL_ZERO:
        return enter(n, c == '.', RN_DECIMAL_POINT) || enter(n, e, RN_DECIMAL_E);
    case RN_DECIMAL_WHOLE:
        return take_digit(n, c, RN_DECIMAL_WHOLE) || enter(n, c == '.', RN_DECIMAL_POINT) || enter(n, e, RN_DECIMAL_E);
    case RN_DECIMAL_POINT:
        return take_digit(n, c, RN_DECIMAL_FRACTION);
    case RN_DECIMAL_FRACTION:
        return take_digit(n, c, RN_DECIMAL_FRACTION) || enter(n, e, RN_DECIMAL_E);
    case RN_DECIMAL_E:
        n->exponent_negative = c == '-';
        return enter(n, c == '-' || c == '+', RN_DECIMAL_E_SIGN) || take_exponent(n, c);
    case RN_DECIMAL_E_SIGN:
    case RN_DECIMAL_EXPONENT:
        return take_exponent(n, c);
    }
    return false;
}

bool rn_decimal_complete(const rn_decimal *n)
{
    return n->state == RN_DECIMAL_ZERO || n->state == RN_DECIMAL_WHOLE || n->state == RN_DECIMAL_FRACTION ||
           n->state == RN_DECIMAL_EXPONENT;
}

rn_decimal_is rn_decimal_micro(const rn_decimal *n, int64_t *micro)
{
    const uint64_t max = (uint64_t)RATION_UNITS_MAX;
    const int64_t exponent = n->exponent_negative ? -n->exponent : n->exponent;
    int64_t shift = rn_add(rn_add(n->scale, exponent), PLACES);
    uint64_t value = n->digits;
    bool rest = n->lost;

    if (n->negative && value > 0)
        return RN_DECIMAL_IS_BELOW;
    for (; shift > 0 && value > 0 && value <= max; shift--)
        value *= 10;
    for (; shift < 0 && value > 0; shift++) {
        rest = rest || value % 10 != 0;
        value /= 10;
    }
    value += rest ? 1 : 0;
    if (value > max)
        return RN_DECIMAL_IS_LARGE;
    *micro = (int64_t)value;
    return RN_DECIMAL_IS_FINE;
}
