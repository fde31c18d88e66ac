/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_DECIMAL_H
#define RN_BASE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

/* A number of JSON (RFC 8259, section 6), a byte at a time, as an exact count of micro-units. */

typedef enum rn_decimal_state {
    RN_DECIMAL_START = 0,
    RN_DECIMAL_SIGN,
    RN_DECIMAL_ZERO, /* one zero, behind which no digit may come */
    RN_DECIMAL_WHOLE,
    RN_DECIMAL_POINT,
    RN_DECIMAL_FRACTION,
    RN_DECIMAL_E,
    RN_DECIMAL_E_SIGN,
    RN_DECIMAL_EXPONENT,
} rn_decimal_state;

/* Start from a zeroed one. */
typedef struct rn_decimal {
    rn_decimal_state state;
    bool negative;
    bool lost; /* digits that are not zero came after those kept */
    bool exponent_negative;
    uint32_t count;   /* of significant digits kept */
    uint64_t digits;  /* they themselves: the first nineteen */
    int64_t scale;    /* the value is digits * 10^(scale + exponent) */
    int64_t exponent; /* as written, without its sign */
} rn_decimal;

typedef enum rn_decimal_is {
    RN_DECIMAL_IS_BELOW = 0, /* below zero */
    RN_DECIMAL_IS_FINE,
    RN_DECIMAL_IS_LARGE, /* above RATION_UNITS_MAX */
} rn_decimal_is;

/* False: `c` does not go on with the number, and nothing has changed. */
bool rn_decimal_take(rn_decimal *number, char c);
/* True if it may end here. */
bool rn_decimal_complete(const rn_decimal *number);
/* Of a complete one; `*micro` is set if it is fine, rounded up to a whole micro-unit. */
rn_decimal_is rn_decimal_micro(const rn_decimal *number, int64_t *micro);

#endif
