/* SPDX-License-Identifier: MIT */
/*
 * Exact arithmetic on int64.
 *
 * Amounts and instants stay far below 2^63 by the rules of the configuration (2^53), but sums over many of them may
 * not: such a result stops at the end of the range, where every comparison still comes out right, instead of wrapping
 * into its opposite. Divisions say in their name which way they round.
 */
#include "base/units.h"

int64_t rn_add(int64_t a, int64_t b)
{
    int64_t sum = 0;

    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

int64_t rn_sub(int64_t a, int64_t b)
{
    int64_t difference = 0;

    if (__builtin_sub_overflow(a, b, &difference))
        return b < 0 ? INT64_MAX : INT64_MIN;
    return difference;
}

int64_t rn_mul(int64_t a, int64_t b)
{
    int64_t product = 0;

    if (__builtin_mul_overflow(a, b, &product))
        return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
    return product;
}

int64_t rn_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t rn_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t rn_div_ceil(int64_t a, int64_t b)
{
    return a / b + (a % b > 0 ? 1 : 0);
}

int64_t rn_div_floor(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

uint64_t rn_gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

int64_t rn_ratio_of(int64_t m, ration_ratio ratio)
{
    if (ratio.den == 0)
        return m;

    const int64_t whole = m / ratio.den;
    const int64_t rest = m % ratio.den;

    /* Both factors of the second product are below 2^31. */
    return rn_add(rn_mul(whole, ratio.num), rest * ratio.num / ratio.den);
}

static ration_ratio ratio_or_one(ration_ratio ratio)
{
    const ration_ratio one = {1, 1};

    return ratio.den == 0 ? one : ratio;
}

ration_ratio rn_ratio_min(ration_ratio a, ration_ratio b)
{
    const ration_ratio left = ratio_or_one(a);
    const ration_ratio right = ratio_or_one(b);

    return (int64_t)left.num * right.den <= (int64_t)right.num * left.den ? left : right;
}

int64_t rn_whole_units(int64_t micro)
{
    return rn_mul(rn_div_floor(micro, RATION_UNIT), RATION_UNIT);
}
