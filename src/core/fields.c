/* SPDX-License-Identifier: MIT */
/*
 * What a provider's header fields say, read without trust. Chapter 3, "Header sync" and "429".
 *
 * Providers write resets as seconds, milliseconds, instants, durations and dates, and some change their mind. Every
 * reader here takes a whole value and either understands all of it or none. What is understood is an instant within
 * the range of the engine or a count of micro-units; nothing else leaves this file.
 *
 * Waits round up, so that what is read as "then" is never before what was meant.
 */
#include "core/fields.h"

#include "base/text.h"
#include "base/units.h"
#include "core/scan.h"

#define SECOND_US INT64_C(1000000)
#define MS_US INT64_C(1000)

rn_field rn_field_find(const ration_response *response, const char *name, ration_text *out)
{
    rn_field found = RN_FIELD_ABSENT;
    ration_text value = {0};

    if (name == NULL || name[0] == '\0')
        return RN_FIELD_ABSENT;
    for (size_t i = 0; i < response->header_count; i++) {
        if (!rn_text_is_nocase(response->headers[i].name, name))
            continue;
        if (found != RN_FIELD_ABSENT)
            return RN_FIELD_BAD;
        found = RN_FIELD_OK;
        value = rn_text_trim(response->headers[i].value);
    }
    if (found == RN_FIELD_OK)
        *out = value;
    return found;
}

/* A text that is a number and nothing else. */
static bool number_of(ration_text value, rn_number *out)
{
    ration_text text = rn_text_trim(value);

    return rn_scan_number(&text, out) && text.size == 0;
}

rn_field rn_field_count(ration_text value, int64_t *out)
{
    rn_number number;

    if (!number_of(value, &number))
        return RN_FIELD_BAD;

    /* A count is what one may use: it rounds down. */
    const int64_t micro = rn_add(rn_mul(number.whole, RATION_UNIT), number.micro - (number.rounded ? 1 : 0));

    if (micro > RATION_UNITS_MAX)
        return RN_FIELD_BAD;
    *out = micro;
    return RN_FIELD_OK;
}

static rn_field instant_of(int64_t us, ration_time *out)
{
    if (us > RATION_TIME_MAX_US)
        return RN_FIELD_BAD;
    out->us = us;
    return RN_FIELD_OK;
}

/* Seconds from now. Without a fraction the provider may have cut one off. */
static rn_field delta_of(const rn_number *number, ration_time now, ration_time *out)
{
    const bool truncated = !number->fraction && number->whole > 0;
    const int64_t delta_us = rn_add(rn_number_times(number, SECOND_US), truncated ? SECOND_US : 0);

    return instant_of(rn_add(now.us, delta_us), out);
}

/* "6m0s", "1h2m", "20ms", "350us" (also with a Greek or a micro sign): parts in any order, fractions anywhere. */
static rn_field duration_of(ration_text value, ration_time now, ration_time *out)
{
    static const struct {
        const char *name;
        int64_t us;
    } units[] = {
        {"d", 86400 * SECOND_US}, {"h", 3600 * SECOND_US}, {"m", 60 * SECOND_US},
        {"s", SECOND_US},         {"ms", MS_US},           {"us", 1},
        {"\xc2\xb5s", 1},         {"\xce\xbcs", 1},
    };
    ration_text text = value;
    int64_t sum = 0;

    do {
        rn_number number;
        size_t size = 0;
        size_t unit = 0;

        if (!rn_scan_number(&text, &number))
            return RN_FIELD_BAD;
        while (size < text.size && (text.data[size] < '0' || text.data[size] > '9'))
            size++;
        while (unit < sizeof units / sizeof units[0] && !rn_text_is(rn_text_slice(text, 0, size), units[unit].name))
            unit++;
        if (unit == sizeof units / sizeof units[0])
            return RN_FIELD_BAD;
        sum = rn_add(sum, rn_number_times(&number, units[unit].us));
        text = rn_text_slice(text, size, text.size);
    } while (text.size > 0);
    return instant_of(rn_add(now.us, sum), out);
}

/* Which of the formats a value without one is in, by its looks. */
static ration_reset_format format_of(ration_text text)
{
    ration_text rest = text;
    rn_number number;

    if (number_of(text, &number)) {
        if (rn_number_above(&number, INT64_C(1000000000000)))
            return RATION_RESET_EPOCH_MS;
        return rn_number_above(&number, INT64_C(1000000000)) ? RATION_RESET_EPOCH : RATION_RESET_DELTA;
    }
    if (rn_scan_letters(&rest).size > 0)
        return RATION_RESET_HTTP_DATE;
    return text.size > 4 && text.data[4] == '-' ? RATION_RESET_ISO8601 : RATION_RESET_DURATION;
}

rn_field rn_field_reset(ration_text value, ration_reset_format format, ration_time now, ration_time *out)
{
    const ration_text text = rn_text_trim(value);
    rn_number number = {0};
    const bool is_number = number_of(text, &number);

    switch (format == RATION_RESET_AUTO ? format_of(text) : format) {
    case RATION_RESET_EPOCH:
        return is_number ? instant_of(rn_number_times(&number, SECOND_US), out) : RN_FIELD_BAD;
    case RATION_RESET_EPOCH_MS:
        return is_number ? instant_of(rn_number_times(&number, MS_US), out) : RN_FIELD_BAD;
    case RATION_RESET_DELTA:
        return is_number ? delta_of(&number, now, out) : RN_FIELD_BAD;
    case RATION_RESET_DURATION:
        return duration_of(text, now, out);
    case RATION_RESET_ISO8601:
        return rn_field_iso8601(text, out);
    case RATION_RESET_HTTP_DATE:
        return rn_field_http_date(text, now, out);
    case RATION_RESET_AUTO:
        break;
    }
    return RN_FIELD_BAD;
}

/* A wait of so many units from now. A wish without end is one, so it is cut and not refused. */
static rn_field wait_of(ration_text value, int64_t unit_us, ration_time now, ration_time *out)
{
    rn_number number;

    if (!number_of(value, &number))
        return RN_FIELD_BAD;
    out->us = rn_min(rn_add(now.us, rn_number_times(&number, unit_us)), RATION_TIME_MAX_US);
    return RN_FIELD_OK;
}

/* The latest of all Retry-After fields that can be read. */
static rn_field latest_of(const ration_response *response, ration_time now, ration_time *out)
{
    rn_field result = RN_FIELD_ABSENT;
    ration_time latest = {INT64_MIN};

    for (size_t i = 0; i < response->header_count; i++) {
        const ration_text value = response->headers[i].value;
        ration_time at;

        if (!rn_text_is_nocase(response->headers[i].name, "Retry-After"))
            continue;
        if (wait_of(value, SECOND_US, now, &at) == RN_FIELD_OK || rn_field_http_date(value, now, &at) == RN_FIELD_OK) {
            latest = rn_time_max(latest, at);
            result = RN_FIELD_OK;
        } else if (result == RN_FIELD_ABSENT) {
            result = RN_FIELD_BAD;
        }
    }
    if (result == RN_FIELD_OK)
        *out = latest;
    return result;
}

rn_field rn_field_retry_after(const ration_response *response, ration_time now, ration_time *out)
{
    ration_text value = {0};
    const rn_field found = rn_field_find(response, "retry-after-ms", &value);

    if (found == RN_FIELD_OK && wait_of(value, MS_US, now, out) == RN_FIELD_OK)
        return RN_FIELD_OK;

    const rn_field plain = latest_of(response, now, out);

    return plain == RN_FIELD_ABSENT && found != RN_FIELD_ABSENT ? RN_FIELD_BAD : plain;
}
