/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_FIELDS_H
#define RN_CORE_FIELDS_H

#include <ration/engine.h>
#include <ration/rules.h>

/*
 * What a provider's header fields say, read without trust: chapter 3, "Header sync" and "429". Nothing in them can
 * crash or hang; a bad value spoils only itself.
 */

typedef enum rn_field {
    RN_FIELD_ABSENT = 0,
    RN_FIELD_OK,
    RN_FIELD_BAD, /* ignored, and counted by the caller */
} rn_field;

/* The one value of a field, without regard to case. RN_FIELD_BAD if it occurs twice. No or an empty `name`: absent. */
rn_field rn_field_find(const ration_response *response, const char *name, ration_text *out);

/* A count: "4990", "12.5"; micro-units. Negative, NaN, empty, too large: RN_FIELD_BAD. */
rn_field rn_field_count(ration_text value, int64_t *out);

/*
 * A reset as an instant, in any of the formats of chapter 3. A delta without a fraction gets a second (it may be
 * truncated); 0 and "0" mean now.
 */
rn_field rn_field_reset(ration_text value, ration_reset_format format, ration_time now, ration_time *out);

/* The two kinds of dates by themselves, before or after 1970. Two-digit years lie at most 50 years ahead of `now`. */
rn_field rn_field_http_date(ration_text value, ration_time now, ration_time *out);
rn_field rn_field_iso8601(ration_text value, ration_time *out); /* without an offset: UTC */

/* `retry-after-ms`, else Retry-After (seconds, fractions, all three HTTP dates; of two, the later end): an instant. */
rn_field rn_field_retry_after(const ration_response *response, ration_time now, ration_time *out);

#endif
