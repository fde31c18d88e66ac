/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_SCAN_H
#define RN_CORE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ration/types.h>

/*
 * Reading a header value from its front. Each takes what it accepts off `*text` and says so; what it does not accept it
 * leaves alone.
 */

/* A decimal number without a sign. Digits behind the sixth place round up. */
typedef struct rn_number {
    int64_t whole; /* INT64_MAX: that or more */
    int64_t micro; /* 0 to 1 000 000 */
    bool fraction; /* it was written with a point */
    bool rounded;  /* `micro` is one more than what was written */
} rn_number;

bool rn_scan_char(ration_text *text, char c);
bool rn_scan_number(ration_text *text, rn_number *out);
/* `least` to `most` digits, as many as there are up to `most`; `most` at most 9. */
bool rn_scan_digits(ration_text *text, size_t least, size_t most, int64_t *out);
/* ASCII letters, perhaps none. */
ration_text rn_scan_letters(ration_text *text);

/* The number times `unit`, rounded up; saturates. */
int64_t rn_number_times(const rn_number *number, int64_t unit);
bool rn_number_above(const rn_number *number, int64_t bound);

#endif
