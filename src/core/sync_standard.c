/* SPDX-License-Identifier: MIT */
/*
 * The IETF's rate limit fields, in the forms that are in use (draft-ietf-httpapi-ratelimit-headers):
 *
 *     RateLimit-Policy: "burst";q=100;w=60, "daily";q=1000;w=86400      since draft 8
 *     RateLimit: "daily";r=990;t=3600
 *     RateLimit: limit=100, remaining=50, reset=30                      draft 7
 *     RateLimit-Limit: 100, 100;w=60, 1000;w=3600                       to draft 6, with
 *     RateLimit-Remaining: 50                                           or RateLimit-Policy: 100;w=60
 *     RateLimit-Reset: 30
 *
 * All are lists of members with parameters (RFC 9651), so one scanner reads them. Of several policies a limit takes the
 * one of its name, else the one of its window, else the only one; and if none of these exists, nothing.
 *
 * A field that does not follow its grammar to the end tells nothing at all.
 */
#include "core/sync.h"

#include "base/text.h"
#include "base/units.h"
#include "core/scan.h"

#define SECOND_US INT64_C(1000000)
#define DAY_US (86400 * SECOND_US)

typedef struct parameter {
    rn_field is;
    int64_t value;
} parameter;

/* One member of a list: `"name";q=1`, `key=1;q=1` or `1;q=1`. */
typedef struct member {
    ration_text name; /* absent for a number */
    parameter value;
    parameter q, w, r, t;
} member;

/* What "RateLimit-Policy" says. */
typedef struct policies {
    size_t count;
    bool known; /* one of them is this limit's: */
    member own;
} policies;

static bool is_token_char(char c)
{
    static const char also[] = "!#$%&'*+-.^_`|~:/";

    for (size_t i = 0; i + 1 < sizeof also; i++) {
        if (c == also[i])
            return true;
    }
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static ration_text scan_token(ration_text *text)
{
    size_t size = 0;

    while (size < text->size && is_token_char(text->data[size]))
        size++;

    const ration_text token = rn_text_slice(*text, 0, size);

    *text = rn_text_slice(*text, size, text->size);
    return token;
}

/* Up to the next `end`, which is taken too; a backslash hides a quote. */
static bool scan_until(ration_text *text, char end, ration_text *out)
{
    const ration_text whole = *text;

    for (size_t i = 0; i < whole.size; i++) {
        if (whole.data[i] == end) {
            *out = rn_text_slice(whole, 0, i);
            *text = rn_text_slice(whole, i + 1, whole.size);
            return true;
        }
        i += whole.data[i] == '\\' ? 1 : 0;
    }
    return false;
}

static void skip_blanks(ration_text *text)
{
    while (rn_scan_char(text, ' ') || rn_scan_char(text, '\t'))
        continue;
}

/* A bare item. Only a whole number of none or more gives a value; anything else is well-formed and bad. */
static bool scan_item(ration_text *text, parameter *out)
{
    rn_number number;
    ration_text ignored;

    out->is = RN_FIELD_BAD;
    if (rn_scan_number(text, &number)) {
        out->is = number.fraction ? RN_FIELD_BAD : RN_FIELD_OK;
        out->value = number.whole;
        return true;
    }
    if (rn_scan_char(text, '-') || rn_scan_char(text, '@'))
        return rn_scan_number(text, &number);
    if (rn_scan_char(text, '"'))
        return scan_until(text, '"', &ignored);
    if (rn_scan_char(text, ':'))
        return scan_until(text, ':', &ignored);
    if (rn_scan_char(text, '?'))
        return rn_scan_char(text, '0') || rn_scan_char(text, '1');
    return scan_token(text).size > 0;
}

static bool scan_parameters(ration_text *text, member *out)
{
    while (rn_scan_char(text, ';')) {
        parameter value = {RN_FIELD_BAD, 0};

        skip_blanks(text);

        const ration_text key = scan_token(text);

        if (key.size == 0 || (rn_scan_char(text, '=') && !scan_item(text, &value)))
            return false;
        if (rn_text_is(key, "q")) {
            out->q = value;
        } else if (rn_text_is(key, "w")) {
            out->w = value;
        } else if (rn_text_is(key, "r")) {
            out->r = value;
        } else if (rn_text_is(key, "t")) {
            out->t = value;
        }
    }
    return true;
}

/* The next member, and the comma after it. `text` is then empty or at the one after. */
static bool scan_member(ration_text *text, member *out)
{
    member m = {0};

    skip_blanks(text);
    if (rn_scan_char(text, '"')) {
        if (!scan_until(text, '"', &m.name))
            return false;
    } else if (text->size > 0 && text->data[0] >= '0' && text->data[0] <= '9') {
        if (!scan_item(text, &m.value))
            return false;
    } else {
        /* A key or a token: '=' ends it, for no token has one. */
        m.name = scan_token(text);
        if (m.name.size == 0 || (rn_scan_char(text, '=') && !scan_item(text, &m.value)))
            return false;
    }
    if (!scan_parameters(text, &m))
        return false;
    skip_blanks(text);
    if (text->size > 0) {
        if (!rn_scan_char(text, ','))
            return false;
        skip_blanks(text);
        if (text->size == 0)
            return false;
    }
    *out = m;
    return true;
}

/* Whether all of a list is well-formed, and of how many members. */
static bool list_is_sound(ration_text list, size_t *count)
{
    member m;
    size_t members = 0;

    while (list.size > 0) {
        if (!scan_member(&list, &m))
            return false;
        members++;
    }
    *count = members;
    return members > 0;
}

/* The field of that name, if it is a sound list. */
static rn_field find_list(const ration_response *response, const char *name, ration_text *out, size_t *count)
{
    ration_text list = {0};
    const rn_field found = rn_field_find(response, name, &list);

    if (found != RN_FIELD_OK)
        return found;
    if (!list_is_sound(list, count))
        return RN_FIELD_BAD;
    *out = list;
    return RN_FIELD_OK;
}

static bool is_of_window(const member *m, const ration_limit_rule *rule, int64_t window_us)
{
    const int64_t us = rn_mul(m->w.value, SECOND_US);

    if (m->w.is != RN_FIELD_OK)
        return false;
    /* A month may be written as any of its lengths. */
    if (rule->window.period == RATION_PERIOD_MONTH)
        return us >= 28 * DAY_US && us <= window_us;
    return us == window_us;
}

/* The policy of this limit in a sound list: of its name, else of its window, else the only one. */
static bool find_policy(ration_text list, size_t count, const ration_limit_rule *rule, int64_t window_us, member *out)
{
    bool found = false;
    member m;

    while (list.size > 0 && scan_member(&list, &m)) {
        if (m.name.data != NULL && rn_text_is(m.name, rule->name)) {
            *out = m;
            return true;
        }
        if (!found && (count == 1 || is_of_window(&m, rule, window_us))) {
            *out = m;
            found = true;
        }
    }
    return found;
}

static bool find_named(ration_text list, ration_text name, member *out)
{
    member m;

    while (list.size > 0 && scan_member(&list, &m)) {
        if (m.name.data != NULL && rn_text_eq(m.name, name)) {
            *out = m;
            return true;
        }
    }
    return false;
}

static void tell_count(const parameter *count, int64_t least, rn_field *is, int64_t *out)
{
    if (count->is == RN_FIELD_ABSENT)
        return;
    *is = RN_FIELD_BAD;
    if (count->is != RN_FIELD_OK || count->value < least || count->value > RATION_UNITS_MAX / RATION_UNIT)
        return;
    *is = RN_FIELD_OK;
    *out = count->value * RATION_UNIT;
}

/* Whole seconds from now; one more, for the provider may have cut a fraction off. */
static void tell_reset(const parameter *seconds, ration_time now, rn_told *out)
{
    if (seconds->is == RN_FIELD_ABSENT)
        return;

    const int64_t us = rn_mul(seconds->value, SECOND_US);
    const ration_time at = rn_time_add(now, us > 0 ? rn_add(us, SECOND_US) : 0);

    out->reset_is = RN_FIELD_BAD;
    if (seconds->is != RN_FIELD_OK || at.us > RATION_TIME_MAX_US)
        return;
    out->reset_is = RN_FIELD_OK;
    out->reset = at;
}

/* Of several policies without names: the one that the fields are about is the one of their limit. */
static bool is_about_another(const policies *p, const member *limit)
{
    return p->count > 1 && p->own.value.is == RN_FIELD_OK && p->own.value.value != limit->value.value;
}

/* The dictionary of draft 7. */
static void read_dictionary(ration_text list, const policies *p, ration_time now, rn_told *out)
{
    member m = {0};

    if (find_named(list, ration_text_of("limit"), &m)) {
        if (is_about_another(p, &m))
            return;
        tell_count(&m.value, 1, &out->max_is, &out->max);
    }
    if (find_named(list, ration_text_of("remaining"), &m))
        tell_count(&m.value, 0, &out->left_is, &out->left);
    if (find_named(list, ration_text_of("reset"), &m))
        tell_reset(&m.value, now, out);
}

/* "RateLimit": a list of named members, or a dictionary. */
static void read_current(const ration_response *response, const policies *p, const ration_limit_rule *rule,
                         ration_time now, rn_told *out)
{
    ration_text list = {0};
    size_t count = 0;
    member m = {0};
    ration_text rest;

    if (find_list(response, "RateLimit", &list, &count) != RN_FIELD_OK) {
        out->left_is = RN_FIELD_BAD;
        return;
    }
    rest = list;
    if (scan_member(&rest, &m) && m.value.is != RN_FIELD_ABSENT) {
        read_dictionary(list, p, now, out);
        return;
    }

    const bool named = p->own.name.data != NULL;

    if (!find_named(list, named ? p->own.name : ration_text_of(rule->name), &m) && (named || count > 1))
        return;
    tell_count(&m.r, 0, &out->left_is, &out->left);
    tell_reset(&m.t, now, out);
}

/* Three fields. The first may carry the policies that a field of their own carried later. */
static void read_three(const ration_response *response, policies p, const ration_limit_rule *rule, int64_t window_us,
                       ration_time now, rn_told *out)
{
    ration_text list = {0};
    ration_text value = {0};
    size_t count = 0;
    member limit = {0};
    rn_told told = {0};

    told.max_is = find_list(response, "RateLimit-Limit", &list, &count);
    if (told.max_is == RN_FIELD_OK && scan_member(&list, &limit)) {
        tell_count(&limit.value, 1, &told.max_is, &told.max);
        if (p.count == 0 && count > 1) {
            p.count = count - 1;
            p.known = find_policy(list, p.count, rule, window_us, &p.own);
        }
    }
    if (p.count > 0 && (!p.known || is_about_another(&p, &limit)))
        return;

    told.left_is = rn_field_find(response, "RateLimit-Remaining", &value);
    if (told.left_is == RN_FIELD_OK)
        told.left_is = rn_field_count(value, &told.left);
    told.reset_is = rn_field_find(response, "RateLimit-Reset", &value);
    if (told.reset_is == RN_FIELD_OK)
        told.reset_is = rn_field_reset(value, RATION_RESET_DELTA, now, &told.reset);
    *out = told;
}

void rn_sync_standard(const ration_limit_rule *rule, int64_t window_us, const ration_response *response,
                      ration_time now, rn_told *out)
{
    policies p = {0};
    ration_text list = {0};
    ration_text ignored;
    rn_told told = {0};
    const rn_field policies_are = find_list(response, "RateLimit-Policy", &list, &p.count);

    if (policies_are == RN_FIELD_OK)
        p.known = find_policy(list, p.count, rule, window_us, &p.own);
    if (rn_field_find(response, "RateLimit", &ignored) == RN_FIELD_ABSENT) {
        read_three(response, p, rule, window_us, now, &told);
    } else if (p.count == 0 || p.known) {
        read_current(response, &p, rule, now, &told);
    }
    if (p.known && p.own.name.data != NULL)
        tell_count(&p.own.q, 1, &told.max_is, &told.max);
    if (policies_are == RN_FIELD_BAD && told.max_is == RN_FIELD_ABSENT)
        told.max_is = RN_FIELD_BAD;
    *out = told;
}
