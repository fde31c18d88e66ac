/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a number: what is accepted lies within its range, and writing it and reading it again gives the same.
 *
 * Errors leave the result alone.
 */

#include <stdlib.h>

#include "base/text.h"
#include "base/units.h"

#define MUST(condition) ((condition) ? (void)0 : abort())
#define UNTOUCHED INT64_C(-77)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int parser(ration_text text, int64_t *out);
typedef void writer(rn_builder *b, int64_t value);

static void check_number(ration_text text, parser *parse, writer *write, int64_t low, int64_t high)
{
    char buffer[64];
    int64_t value = UNTOUCHED;
    int64_t again = UNTOUCHED;
    rn_builder b;
    const int rc = parse(text, &value);

    MUST(rc == RATION_OK || rc == RATION_ERR_SYNTAX || rc == RATION_ERR_RANGE);
    if (rc != RATION_OK) {
        MUST(value == UNTOUCHED);
        return;
    }
    MUST(value >= low && value <= high);
    if (write == NULL)
        return;
    rn_builder_init(&b, buffer, sizeof(buffer));
    write(&b, value);
    MUST(!b.full);
    MUST(parse(ration_text_of(buffer), &again) == RATION_OK && again == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ration_text text = {(const char *)data, size};
    ration_rate rate = {0, 0};
    ration_ratio ratio = {0, 0};

    check_number(text, rn_parse_int, rn_builder_int, INT64_MIN, INT64_MAX);
    check_number(text, rn_parse_micro, rn_builder_micro, 0, RATION_UNITS_MAX);
    check_number(text, rn_parse_ms, rn_builder_ms, -RATION_TIME_MAX_US, RATION_TIME_MAX_US);
    check_number(text, rn_parse_duration, NULL, 0, RATION_TIME_MAX_US);
    if (rn_parse_rate(text, &rate) == RATION_OK)
        MUST(rate.units > 0 && rate.units <= RATION_UNITS_MAX && rate.per_us > 0 && rate.per_us <= RATION_TIME_MAX_US);
    if (rn_parse_ratio(text, &ratio) == RATION_OK) {
        MUST(ratio.num >= 0 && ratio.den >= 1 && ratio.num <= ratio.den && ratio.den <= RATION_UNIT);
        MUST(rn_gcd((uint64_t)ratio.num, (uint64_t)ratio.den) == 1);
    }
    (void)rn_text_is_utf8(text);
    return 0;
}
