/* SPDX-License-Identifier: MIT */
/*
 * Where the limits of a call stand, for its client.
 *
 * A name is a structured field's String: printable ASCII, quote and backslash escaped. Names of limits may have any
 * letters; others are percent-encoded, as scope keys are in URLs.
 *
 * Invariant: both fields name the same limits in the same order; an item is written whole or not at all.
 */
#include "serve/ratelimit.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"

#define HALF (RN_RATELIMIT_BYTES / 2) /* of each field */
#define ITEM_BYTES 80                 /* of an item without its name: three numbers of at most 19 digits */
#define SECOND INT64_C(1000000)

/* Where the next byte goes. Room is looked for once an item: these are written for every response. */
typedef struct cursor {
    char *at;
    char *end;
} cursor;

static cursor cursor_at(char *begin)
{
    return (cursor){begin, begin + HALF};
}

static void put(cursor *c, const char *text, size_t size)
{
    memcpy(c->at, text, size);
    c->at += size;
}

#define PUT(c, literal) put((c), (literal), sizeof(literal) - 1)

static void put_number(cursor *c, int64_t value)
{
    char digits[20];
    size_t i = sizeof digits;

    for (uint64_t left = (uint64_t)value; i == sizeof digits || left > 0; left /= 10)
        digits[--i] = (char)('0' + left % 10);
    put(c, digits + i, sizeof digits - i);
}

static void put_byte(cursor *c, char letter)
{
    static const char hex[] = "0123456789ABCDEF";
    const unsigned char byte = (unsigned char)letter;

    if (byte < ' ' || byte > '~') {
        const char escape[] = {'%', hex[byte >> 4], hex[byte & 15]};
        put(c, escape, sizeof escape);
        return;
    }
    if (byte == '"' || byte == '\\')
        *c->at++ = '\\';
    *c->at++ = letter;
}

/* Is there room for an item, whatever is in the name? */
static bool has_room(const cursor *c, ration_text name)
{
    return (size_t)(c->end - c->at) >= 3 * name.size + ITEM_BYTES;
}

static void put_name(cursor *c, bool first, ration_text name)
{
    if (!first)
        PUT(c, ", ");
    *c->at++ = '"';
    for (size_t i = 0; i < name.size; i++)
        put_byte(c, name.data[i]);
    *c->at++ = '"';
}

static void policy_put(cursor *c, bool first, ration_text name, const rn_standing *one)
{
    put_name(c, first, name);
    PUT(c, ";q=");
    put_number(c, one->quota / RATION_UNIT);
    if (one->cost)
        PUT(c, ";qu=\"cost\"");
    PUT(c, ";w=");
    put_number(c, rn_max(1, rn_div_ceil(one->window_us, SECOND)));
}

static void standing_put(cursor *c, bool first, ration_text name, const rn_standing *one)
{
    put_name(c, first, name);
    PUT(c, ";r=");
    put_number(c, one->remaining / RATION_UNIT);
    if (one->reset_us != RATION_UNSET) {
        PUT(c, ";t=");
        put_number(c, rn_div_ceil(one->reset_us, SECOND));
    }
}

size_t rn_ratelimit_write(const rn_standing *standings, size_t count, char buffer[RN_RATELIMIT_BYTES],
                          rn_http_field *fields)
{
    cursor policy = cursor_at(buffer), limit = cursor_at(buffer + HALF);

    for (size_t i = 0; i < count; i++) {
        const ration_text name = ration_text_of(standings[i].limit);

        if (!has_room(&policy, name) || !has_room(&limit, name))
            break;
        policy_put(&policy, i == 0, name, &standings[i]);
        standing_put(&limit, i == 0, name, &standings[i]);
    }
    if (policy.at == buffer)
        return 0;
    fields[0] = (rn_http_field){ration_text_of("RateLimit-Policy"), {buffer, (size_t)(policy.at - buffer)}};
    fields[1] = (rn_http_field){ration_text_of("RateLimit"), {buffer + HALF, (size_t)(limit.at - buffer) - HALF}};
    return RN_RATELIMIT_FIELDS;
}

bool rn_ratelimit_is_told(rn_http_fields fields)
{
    static const char *const names[] = {"RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining",
                                        "RateLimit-Reset"};

    for (size_t i = 0; i < fields.count; i++) {
        const ration_text name = fields.items[i].name;

        for (size_t k = 0; name.size >= 9 && (name.data[0] | 0x20) == 'r' && k < sizeof names / sizeof names[0]; k++) {
            if (rn_text_is_nocase(name, names[k]))
                return true;
        }
    }
    return false;
}
