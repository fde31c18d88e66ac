/* SPDX-License-Identifier: MIT */
/*
 * JSON going out. Numbers are made by the exact builders of base, never by printf; no locale, no float.
 *
 * Invariant: `size <= capacity <= max`; `comma` is true exactly when the next name or element needs one before it.
 */
#include "trace/output.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define CAPACITY_MIN 512u

void rn_output_init(rn_output *out, const ration_allocator *mem, size_t max)
{
    *out = (rn_output){.mem = mem, .max = max};
}

void rn_output_fini(rn_output *out)
{
    rn_mem_free(out->mem, out->data);
    out->data = NULL;
    out->size = 0;
    out->capacity = 0;
}

void rn_output_clear(rn_output *out)
{
    out->size = 0;
    out->comma = false;
    out->err = RATION_OK;
}

/* Grow to have room for `more` bytes; false, and `err`, if there is none. */
static bool output_grow(rn_output *out, size_t more)
{
    if (more > out->max - out->size) {
        out->err = RATION_ERR_FULL;
        return false;
    }

    const size_t doubled = out->capacity > out->max / 2 ? out->max : out->capacity * 2;
    const size_t needed = out->size + more > CAPACITY_MIN ? out->size + more : CAPACITY_MIN;
    const size_t capacity = doubled > needed ? doubled : needed;
    char *const data = rn_mem_resize(out->mem, out->data, capacity, 1);

    if (data == NULL) {
        out->err = RATION_ERR_NOMEM;
        return false;
    }
    out->data = data;
    out->capacity = capacity;
    return true;
}

/* Where `more` bytes may be written, which then count; NULL, and `err`, if there is no room. */
static char *output_take(rn_output *out, size_t more)
{
    if (out->err != RATION_OK || (more > out->capacity - out->size && !output_grow(out, more)))
        return NULL;
    out->size += more;
    return out->data + (out->size - more);
}

static void output_bytes(rn_output *out, const char *data, size_t size)
{
    char *const to = size > 0 ? output_take(out, size) : NULL;

    if (to != NULL)
        memcpy(to, data, size);
}

static void output_char(rn_output *out, char c)
{
    char *const to = output_take(out, 1);

    if (to != NULL)
        *to = c;
}

void rn_output_raw(rn_output *out, ration_text bytes)
{
    output_bytes(out, bytes.data, bytes.size);
}

static void output_escape(rn_output *out, unsigned char c)
{
    static const char named[] = "\"\\\b\f\n\r\t";
    static const char names[] = "\"\\bfnrt";
    static const char hex[] = "0123456789abcdef";
    const char *const found = c != 0 ? strchr(named, c) : NULL;

    if (found != NULL) {
        const char escape[] = {'\\', names[found - named]};

        output_bytes(out, escape, sizeof escape);
    } else {
        const char escape[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

        output_bytes(out, escape, sizeof escape);
    }
}

/* A text that may have anything in it. */
static void output_quoted_any(rn_output *out, ration_text text)
{
    output_char(out, '"');
    while (text.size > 0 && out->err == RATION_OK) {
        size_t size = rn_text_plain(text);

        if (size == 0 && (unsigned char)text.data[0] >= 0x80)
            size = rn_text_character(text);
        if (size > 0) {
            output_bytes(out, text.data, size);
        } else if ((unsigned char)text.data[0] >= 0x80) {
            output_bytes(out, "\xef\xbf\xbd", 3);
            size = 1;
        } else {
            output_escape(out, (unsigned char)text.data[0]);
            size = 1;
        }
        text = rn_text_slice(text, size, text.size);
    }
    output_char(out, '"');
}

static void output_quoted(rn_output *out, ration_text text)
{
    if (text.size == 0 || rn_text_plain(text) < text.size) {
        output_quoted_any(out, text);
        return;
    }

    char *const to = output_take(out, text.size + 2);
    if (to == NULL)
        return;
    to[0] = '"';
    memcpy(to + 1, text.data, text.size);
    to[text.size + 1] = '"';
}

/* The comma and the name that stand before a value. */
static void output_before(rn_output *out, const char *name)
{
    if (out->comma)
        output_char(out, ',');
    out->comma = true;
    if (name == NULL)
        return;

    const ration_text text = ration_text_of(name);
    char *const to = output_take(out, text.size + 3);
    if (to == NULL)
        return;
    to[0] = '"';
    memcpy(to + 1, text.data, text.size);
    to[text.size + 1] = '"';
    to[text.size + 2] = ':';
}

void rn_output_element(rn_output *out, ration_text json)
{
    output_before(out, NULL);
    output_bytes(out, json.data, json.size);
}

void rn_output_key(rn_output *out, ration_text name)
{
    output_before(out, NULL);
    output_quoted(out, name);
    output_char(out, ':');
    out->comma = false;
}

void rn_output_open(rn_output *out, const char *name, char bracket)
{
    output_before(out, name);
    output_char(out, bracket);
    out->comma = false;
}

void rn_output_close(rn_output *out, char bracket)
{
    output_char(out, bracket);
    out->comma = true;
}

void rn_output_newline(rn_output *out)
{
    output_char(out, '\n');
    out->comma = false;
}

void rn_output_text(rn_output *out, const char *name, ration_text value)
{
    output_before(out, name);
    output_quoted(out, value);
}

void rn_output_str(rn_output *out, const char *name, const char *value)
{
    rn_output_text(out, name, ration_text_of(value));
}

void rn_output_bool(rn_output *out, const char *name, bool value)
{
    output_before(out, name);
    output_bytes(out, value ? "true" : "false", value ? 4 : 5);
}

void rn_output_null(rn_output *out, const char *name)
{
    output_before(out, name);
    output_bytes(out, "null", 4);
}

static void output_number(rn_output *out, const char *name, int64_t value, void (*build)(rn_builder *b, int64_t value))
{
    char digits[40];
    rn_builder b;

    rn_builder_init(&b, digits, sizeof digits);
    build(&b, value);
    output_before(out, name);
    output_bytes(out, digits, b.used);
}

void rn_output_int(rn_output *out, const char *name, int64_t value)
{
    output_number(out, name, value, rn_builder_int);
}

void rn_output_nano(rn_output *out, const char *name, int64_t whole, int64_t rest)
{
    char point[] = ".000000000";
    size_t size = sizeof point - 1;

    rn_output_int(out, name, whole);
    for (size_t i = size - 1; i > 0; i--, rest /= 10)
        point[i] = (char)('0' + rest % 10);
    while (point[size - 1] == '0')
        size--;
    output_bytes(out, point, size > 1 ? size : 0);
}

void rn_output_micro(rn_output *out, const char *name, int64_t micro)
{
    output_number(out, name, micro, rn_builder_micro);
}

void rn_output_ms(rn_output *out, const char *name, int64_t us)
{
    output_number(out, name, us, rn_builder_ms);
}
