/* SPDX-License-Identifier: MIT */
/*
 * The request fields by which a client talks to ration: one table of names, forms and readers.
 *
 * Strict on purpose: a cost that cannot be read must not silently become 1, and a misspelt field must not silently do
 * nothing. A number without a unit is milliseconds where a span is meant, as everywhere in the API.
 */
#include "serve/directives.h"

#include "base/text.h"
#include "base/units.h"

#define NAME_MAX_BYTES 256

typedef int directive_reader(ration_text value, void *out);

static int read_name(ration_text value, void *out)
{
    if (value.size > NAME_MAX_BYTES || !rn_text_is_utf8(value))
        return RATION_ERR_SYNTAX;
    *(ration_text *)out = value;
    return RATION_OK;
}

static int read_token(ration_text value, void *out)
{
    *(ration_text *)out = value;
    return RATION_OK;
}

static int read_priority(ration_text value, void *out)
{
    for (ration_priority p = RATION_PRIORITY_CRITICAL; p <= RATION_PRIORITY_LOW; p++) {
        if (rn_text_is(value, ration_priority_name(p))) {
            *(ration_priority *)out = p;
            return RATION_OK;
        }
    }
    return RATION_ERR_SYNTAX;
}

static int read_cost(ration_text value, void *out)
{
    return rn_parse_micro(value, (int64_t *)out);
}

static int read_span(ration_text value, void *out)
{
    int64_t us;

    if (rn_parse_ms(value, &us) != RATION_OK && rn_parse_duration(value, &us) != RATION_OK)
        return RATION_ERR_SYNTAX;
    if (us < 0 || us > RATION_TIME_MAX_US)
        return RATION_ERR_RANGE;
    *(int64_t *)out = us;
    return RATION_OK;
}

static int read_flag(ration_text value, void *out)
{
    const bool yes = rn_text_is(value, "true");

    if (!yes && !rn_text_is(value, "false"))
        return RATION_ERR_SYNTAX;
    *(bool *)out = yes;
    return RATION_OK;
}

static const struct directive {
    const char *field;
    const char *want;
    directive_reader *read;
    size_t offset;
} directives[] = {
    {"Ration-Tenant", "a name of at most 256 bytes in UTF-8", read_name, offsetof(rn_directives, tenant)},
    {"Ration-Class", "a name of at most 256 bytes in UTF-8", read_name, offsetof(rn_directives, class_name)},
    {"Ration-Job", "a name of at most 256 bytes in UTF-8", read_name, offsetof(rn_directives, job)},
    {"Ration-Priority", "critical, high, normal or low", read_priority, offsetof(rn_directives, priority)},
    {"Ration-Cost", "a number from 0 to 9007199254 with at most six decimal places", read_cost,
     offsetof(rn_directives, cost)},
    {"Ration-Hold", "milliseconds or a duration such as 5s", read_span, offsetof(rn_directives, hold_us)},
    {"Ration-Timeout", "milliseconds or a duration such as 5s", read_span, offsetof(rn_directives, wait_us)},
    {"Ration-Retry", "true or false", read_flag, offsetof(rn_directives, retry)},
    {"Ration-Token", "a token", read_token, offsetof(rn_directives, token)},
};

#define DIRECTIVE_COUNT (sizeof directives / sizeof directives[0])

bool rn_directive_is(ration_text name)
{
    return name.size >= 7 && rn_text_is_nocase(rn_text_slice(name, 0, 7), "Ration-");
}

static size_t directive_find(ration_text name)
{
    size_t i = 0;

    while (i < DIRECTIVE_COUNT && !rn_text_is_nocase(name, directives[i].field))
        i++;
    return i;
}

/* What is wrong with a value of directive `d`; NULL if nothing is, and then it stands in `found`. */
static const char *directive_take(size_t d, ration_text value, bool seen, rn_directives *found)
{
    if (seen)
        return "given once";
    if (value.size == 0 || directives[d].read(value, (char *)found + directives[d].offset) != RATION_OK)
        return directives[d].want;
    return NULL;
}

int rn_directives_read(const ration_header *headers, size_t count, rn_directives *out, rn_directive_fault *fault)
{
    rn_directives found = {.cost = RATION_UNSET, .hold_us = RATION_UNSET, .wait_us = RATION_UNSET};
    bool seen[DIRECTIVE_COUNT] = {false};

    for (size_t i = 0; i < count; i++) {
        if (!rn_directive_is(headers[i].name))
            continue;
        const size_t d = directive_find(headers[i].name);
        const char *want = d == DIRECTIVE_COUNT ? "one of the fields that ration knows"
                                                : directive_take(d, rn_text_trim(headers[i].value), seen[d], &found);
        if (want != NULL) {
            *fault = (rn_directive_fault){headers[i].name, want};
            return RATION_ERR_SYNTAX;
        }
        seen[d] = true;
    }
    *out = found;
    return RATION_OK;
}
