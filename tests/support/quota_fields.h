/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_QUOTA_FIELDS_H
#define TESTS_SUPPORT_QUOTA_FIELDS_H

/*
 * The header fields of one response, as a provider writes them.
 *
 * A whole number of seconds from now is rounded down, for readers add the second that may have been cut off; but never
 * to 0, which they take for now: below it is a fraction, or 1 where there are none. All other forms round up.
 */

#include <ration/engine.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/civil.h"

typedef enum quota_form {
    FORM_EPOCH = 0,
    FORM_EPOCH_EXACT, /* with a fraction */
    FORM_EPOCH_MS,
    FORM_ISO8601,
    FORM_DELTA, /* the first of those that count from now */
    FORM_DELTA_EXACT,
    FORM_STANDARD,
    FORM_COUNT,
} quota_form;

typedef struct quota_fields {
    ration_header items[12];
    size_t count;
    char text[12][96];
} quota_fields;

#define FIELD_LIMIT "X-Limit"
#define FIELD_LEFT "X-Remaining"
#define FIELD_RESET "X-Reset"

/* What the client's rule has to say of such fields. */
static inline ration_sync quota_fields_sync(quota_form form)
{
    static const ration_reset_format formats[FORM_COUNT] = {
        RATION_RESET_EPOCH, RATION_RESET_EPOCH, RATION_RESET_EPOCH_MS, RATION_RESET_ISO8601,
        RATION_RESET_DELTA, RATION_RESET_DELTA, RATION_RESET_AUTO};
    const ration_sync standard = {.standard = true};
    const ration_sync plain = {FIELD_LIMIT, FIELD_LEFT, FIELD_RESET, formats[form], false};

    return form == FORM_STANDARD ? standard : plain;
}

__attribute__((format(printf, 3, 4))) static inline void quota_fields_add(quota_fields *f, const char *name,
                                                                          const char *format, ...)
{
    va_list arguments;

    if (f->count == sizeof f->items / sizeof f->items[0])
        return;
    va_start(arguments, format);
    (void)vsnprintf(f->text[f->count], sizeof f->text[0], format, arguments);
    va_end(arguments);
    f->items[f->count] = (ration_header){ration_text_of(name), ration_text_of(f->text[f->count])};
    f->count++;
}

static inline void quota_fields_iso8601(quota_fields *f, int64_t at_us)
{
    const int64_t second = at_us / 1000000;
    const rn_civil date = rn_civil_of_days(second / 86400);

    quota_fields_add(f, FIELD_RESET, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", (int)date.year, (int)date.month,
                     (int)date.day, (int)(second / 3600 % 24), (int)(second / 60 % 60), (int)(second % 60),
                     (int)(at_us % 1000000));
}

/* The reset alone; `at` may be before `now`, but not before 1970. */
static inline void quota_fields_reset(quota_fields *f, quota_form form, int64_t at_us, int64_t now_us)
{
    const int64_t left_us = at_us > now_us ? at_us - now_us : 0;

    switch (form) {
    case FORM_EPOCH:
        quota_fields_add(f, FIELD_RESET, "%" PRId64, (at_us + 999999) / 1000000);
        break;
    case FORM_EPOCH_EXACT:
        quota_fields_add(f, FIELD_RESET, "%" PRId64 ".%06d", at_us / 1000000, (int)(at_us % 1000000));
        break;
    case FORM_EPOCH_MS:
        quota_fields_add(f, FIELD_RESET, "%" PRId64, (at_us + 999) / 1000);
        break;
    case FORM_ISO8601:
        quota_fields_iso8601(f, at_us);
        break;
    case FORM_DELTA:
        if (left_us >= 1000000 || left_us == 0) {
            quota_fields_add(f, FIELD_RESET, "%" PRId64, left_us / 1000000);
            break;
        }
        quota_fields_add(f, FIELD_RESET, "0.%06d", (int)left_us);
        break;
    case FORM_DELTA_EXACT:
        quota_fields_add(f, FIELD_RESET, "%" PRId64 ".%06d", left_us / 1000000, (int)(left_us % 1000000));
        break;
    case FORM_STANDARD:
    case FORM_COUNT:
        break;
    }
}

/* Limit and remaining, in whole units, and the reset; RATION_NEVER_US: none. */
static inline void quota_fields_write(quota_fields *f, quota_form form, int64_t max, int64_t left, int64_t reset_us,
                                      int64_t now_us)
{
    const bool ends = reset_us != RATION_NEVER_US;
    const int64_t left_s = (reset_us - now_us) / 1000000;

    f->count = 0;
    if (form != FORM_STANDARD) {
        quota_fields_add(f, FIELD_LIMIT, "%" PRId64, max);
        quota_fields_add(f, FIELD_LEFT, "%" PRId64, left);
        if (ends)
            quota_fields_reset(f, form, reset_us, now_us);
        return;
    }
    quota_fields_add(f, "RateLimit-Policy", "\"quota\";q=%" PRId64, max);
    if (ends) {
        quota_fields_add(f, "RateLimit", "\"quota\";r=%" PRId64 ";t=%" PRId64, left, left_s > 0 ? left_s : 1);
    } else {
        quota_fields_add(f, "RateLimit", "\"quota\";r=%" PRId64, left);
    }
}

#endif
