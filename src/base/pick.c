/* SPDX-License-Identifier: MIT */
/*
 * JSON (RFC 8259) as a machine of bytes: strict, without recursion, without memory.
 *
 * The way of the pointer is followed by a number: `on` lists and maps, counted from the root, are those that the
 * pointer goes through. A value whose container is the innermost of all and on the way, and whose key or index is the
 * next step, is `here`. It takes the place of what an equal key gave before, so the last of several counts.
 *
 * Invariants: on <= depth, and on <= pointer->count: what is below the value itself is not on the way. A text that is
 * no JSON to its end has no value: after the first fault nothing changes any more.
 */
#include "base/pick.h"

#include <string.h>

#include "base/text.h"

void rn_pick_init(rn_pick *pick, const rn_pointer *pointer)
{
    *pick = (rn_pick){.pointer = pointer, .here = true};
}

static void fail(rn_pick *p)
{
    p->state = RN_PICK_FAILED;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool in_object(const rn_pick *p)
{
    return p->depth > 0 && (p->objects[(p->depth - 1) / 8] >> (p->depth - 1) % 8 & 1) != 0;
}

/* True if members of the innermost container can be the pointer's next step. */
static bool on_way(const rn_pick *p)
{
    return p->depth > 0 && p->on == p->depth && p->depth <= p->pointer->count;
}

static void value_ended(rn_pick *p)
{
    p->here = false;
    p->state = p->depth > 0 ? RN_PICK_AFTER : RN_PICK_DONE;
}

/* What an equal key gave before is gone. */
static void value_begins(rn_pick *p)
{
    p->wanted = p->here && p->depth == p->pointer->count;
    if (p->here)
        p->picked = p->wanted ? RN_PICKED_OTHER : RN_PICKED_NONE;
}

static void element_comes(rn_pick *p)
{
    p->here = on_way(p) && rn_pointer_is_index(p->pointer->tokens[p->depth - 1], p->elements[p->depth - 1]);
}

static void container_opens(rn_pick *p, bool object)
{
    if (p->depth == RN_PICK_DEPTH) {
        fail(p);
        return;
    }

    const uint8_t bit = (uint8_t)(1U << p->depth % 8);
    uint8_t *bits = &p->objects[p->depth / 8];

    *bits = (uint8_t)(object ? *bits | bit : *bits & ~bit);
    if (p->here && !p->wanted) {
        p->elements[p->depth] = 0;
        p->on = p->depth + 1;
    }
    p->depth++;
    p->here = false;
    p->state = object ? RN_PICK_KEY_OR_END : RN_PICK_VALUE_OR_END;
    if (!object)
        element_comes(p);
}

static void container_ends(rn_pick *p, bool object)
{
    if (p->depth == 0 || in_object(p) != object) {
        fail(p);
        return;
    }
    p->depth--;
    if (p->on > p->depth)
        p->on = p->depth;
    value_ended(p);
}

static void string_begins(rn_pick *p, bool is_key)
{
    p->is_key = is_key;
    p->matches = is_key && on_way(p);
    p->matched = 0;
    p->state = RN_PICK_STRING;
}

static void number_ends(rn_pick *p)
{
    if (p->wanted) {
        static const rn_picked picked[] = {
            [RN_DECIMAL_IS_BELOW] = RN_PICKED_OTHER,
            [RN_DECIMAL_IS_FINE] = RN_PICKED_NUMBER,
            [RN_DECIMAL_IS_LARGE] = RN_PICKED_LARGE,
        };

        p->picked = picked[rn_decimal_micro(&p->number, &p->micro)];
    }
    value_ended(p);
}

static void take_value(rn_pick *p, char c)
{
    static const struct {
        char first;
        const char *rest;
    } words[] = {{'t', "rue"}, {'f', "alse"}, {'n', "ull"}};

    if (is_blank(c))
        return;
    if (c == ']' && p->state == RN_PICK_VALUE_OR_END) {
        container_ends(p, false);
        return;
    }
    value_begins(p);
    if (c == '{' || c == '[') {
        container_opens(p, c == '{');
        return;
    }
    if (c == '"') {
        string_begins(p, false);
        return;
    }
    p->number = (rn_decimal){.state = RN_DECIMAL_START};
    if (rn_decimal_take(&p->number, c)) {
        p->state = RN_PICK_NUMBER;
        return;
    }
    fail(p);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (c == words[i].first) {
            p->word = words[i].rest;
            p->state = RN_PICK_WORD;
        }
    }
}

static void take_key(rn_pick *p, char c)
{
    if (is_blank(c))
        return;
    if (c == '"') {
        string_begins(p, true);
    } else if (c == '}' && p->state == RN_PICK_KEY_OR_END) {
        container_ends(p, true);
    } else {
        fail(p);
    }
}

static void take_after(rn_pick *p, char c)
{
    if (is_blank(c))
        return;
    if (c == '}' || c == ']') {
        container_ends(p, c == '}');
    } else if (c != ',') {
        fail(p);
    } else if (in_object(p)) {
        p->state = RN_PICK_KEY;
    } else {
        if (on_way(p))
            p->elements[p->depth - 1]++;
        element_comes(p);
        p->state = RN_PICK_VALUE;
    }
}

static void take_word(rn_pick *p, char c)
{
    if (c != *p->word) {
        fail(p);
        return;
    }
    p->word++;
    if (*p->word == '\0')
        value_ended(p);
}

/* A byte of a string, unescaped. */
static void string_byte(rn_pick *p, unsigned char byte)
{
    if (!p->matches)
        return;

    const ration_text token = p->pointer->tokens[p->depth - 1];

    p->matches = p->matched < token.size && (unsigned char)token.data[p->matched] == byte;
    p->matched++;
}

static void string_ends(rn_pick *p)
{
    if (!p->is_key) {
        value_ended(p);
        return;
    }
    p->here = p->matches && p->matched == p->pointer->tokens[p->depth - 1].size;
    p->state = RN_PICK_COLON;
}

/* The first byte of a character of several (RFC 3629); none that is cut, overlong, half a pair or beyond the last. */
static void character_begins(rn_pick *p, unsigned char byte)
{
    p->least = 0x80;
    p->most = 0xBF;
    if (byte >= 0xC2 && byte <= 0xDF) {
        p->more = 1;
    } else if (byte >= 0xE0 && byte <= 0xEF) {
        p->more = 2;
        p->least = byte == 0xE0 ? 0xA0 : 0x80;
        p->most = byte == 0xED ? 0x9F : 0xBF;
    } else if (byte >= 0xF0 && byte <= 0xF4) {
        p->more = 3;
        p->least = byte == 0xF0 ? 0x90 : 0x80;
        p->most = byte == 0xF4 ? 0x8F : 0xBF;
    } else {
        fail(p);
    }
}

static void take_string(rn_pick *p, unsigned char byte)
{
    if (p->more > 0) {
        if (byte < p->least || byte > p->most) {
            fail(p);
            return;
        }
        p->more--;
        p->least = 0x80;
        p->most = 0xBF;
        string_byte(p, byte);
        return;
    }
    if (byte == '\\') {
        p->state = RN_PICK_ESCAPE;
    } else if (byte < 0x20 || p->surrogate != 0) {
        fail(p);
    } else if (byte == '"') {
        string_ends(p);
    } else {
        if (byte >= 0x80)
            character_begins(p, byte);
        string_byte(p, byte);
    }
}

static void take_escape(rn_pick *p, char c)
{
    static const char names[] = "\"\\/bfnrt";
    static const char bytes[] = "\"\\/\b\f\n\r\t";
    const char *name = memchr(names, c, sizeof names - 1);

    if (c == 'u') {
        p->digits = 4;
        p->unit = 0;
        p->state = RN_PICK_UNICODE;
    } else if (name == NULL || p->surrogate != 0) {
        fail(p);
    } else {
        string_byte(p, (unsigned char)bytes[name - names]);
        p->state = RN_PICK_STRING;
    }
}

/* A character as UTF-8. */
static void string_character(rn_pick *p, uint32_t code)
{
    if (code < 0x80) {
        string_byte(p, (unsigned char)code);
        return;
    }

    const unsigned tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint32_t heads[] = {0, 0xC0, 0xE0, 0xF0};

    string_byte(p, (unsigned char)(heads[tail] | code >> 6 * tail));
    for (unsigned i = tail; i > 0; i--)
        string_byte(p, (unsigned char)(0x80 | (code >> 6 * (i - 1) & 0x3F)));
}

static void unit_ended(rn_pick *p)
{
    const bool first = p->unit >= 0xD800 && p->unit <= 0xDBFF;
    const bool second = p->unit >= 0xDC00 && p->unit <= 0xDFFF;

    p->state = RN_PICK_STRING;
    if (second != (p->surrogate != 0)) {
        fail(p);
    } else if (first) {
        p->surrogate = p->unit;
    } else if (second) {
        string_character(p, 0x10000 + ((p->surrogate - 0xD800) << 10) + (p->unit - 0xDC00));
        p->surrogate = 0;
    } else {
        string_character(p, p->unit);
    }
}

static void take_digit(rn_pick *p, char c)
{
    const bool decimal = c >= '0' && c <= '9';
    const char lower = (char)(c | 0x20);

    if (!decimal && (lower < 'a' || lower > 'f')) {
        fail(p);
        return;
    }
    p->unit = p->unit << 4 | (uint32_t)(decimal ? c - '0' : lower - 'a' + 10);
    if (--p->digits == 0)
        unit_ended(p);
}

static void take_byte(rn_pick *p, char c)
{
    if (p->state == RN_PICK_NUMBER) {
        if (rn_decimal_take(&p->number, c))
            return;
        if (!rn_decimal_complete(&p->number)) {
            fail(p);
            return;
        }
        number_ends(p);
    }
    switch (p->state) {
    case RN_PICK_VALUE:
    case RN_PICK_VALUE_OR_END:
        take_value(p, c);
        return;
    case RN_PICK_KEY:
    case RN_PICK_KEY_OR_END:
        take_key(p, c);
        return;
    case RN_PICK_COLON:
        if (c == ':') {
            p->state = RN_PICK_VALUE;
        } else if (!is_blank(c)) {
            fail(p);
        }
        return;
    case RN_PICK_AFTER:
        take_after(p, c);
        return;
    case RN_PICK_STRING:
        take_string(p, (unsigned char)c);
        return;
    case RN_PICK_ESCAPE:
        take_escape(p, c);
        return;
    case RN_PICK_UNICODE:
        take_digit(p, c);
        return;
    case RN_PICK_WORD:
        take_word(p, c);
        return;
    case RN_PICK_DONE:
        if (!is_blank(c))
            fail(p);
        return;
    case RN_PICK_NUMBER:
    case RN_PICK_FAILED:
        return;
    }
}

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* Most of a text is plain characters in strings that nobody looks for: how many of them come here. */
static size_t plain_run(const rn_pick *p, ration_text bytes, size_t from)
{
    size_t at = from;

    if (p->state != RN_PICK_STRING || p->matches || p->more > 0 || p->surrogate != 0)
        return 0;
    while (at < bytes.size && is_plain((unsigned char)bytes.data[at]))
        at++;
    return at - from;
}

void rn_pick_feed(rn_pick *p, ration_text bytes)
{
    for (size_t i = 0; i < bytes.size && p->state != RN_PICK_FAILED; i++) {
        i += plain_run(p, bytes, i);
        if (i < bytes.size)
            take_byte(p, bytes.data[i]);
    }
}

/* The value has begun, and might go on: "12" may be the beginning of 1234. */
static bool value_is_open(const rn_pick *p)
{
    return p->here && p->wanted && p->state >= RN_PICK_STRING && p->state <= RN_PICK_WORD;
}

rn_picked rn_pick_seen(const rn_pick *p, int64_t *micro)
{
    if (p->state == RN_PICK_FAILED || value_is_open(p))
        return RN_PICKED_NONE;
    if (p->picked == RN_PICKED_NUMBER)
        *micro = p->micro;
    return p->picked;
}

rn_picked rn_pick_end(rn_pick *p, int64_t *micro)
{
    if (p->state == RN_PICK_NUMBER && rn_decimal_complete(&p->number))
        number_ends(p);
    return p->state == RN_PICK_DONE ? rn_pick_seen(p, micro) : RN_PICKED_NONE;
}
