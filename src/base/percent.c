/* SPDX-License-Identifier: MIT */
/*
 * Percent-encoding in paths.
 *
 * A provider decodes a segment before it looks for the name, so a client that encodes more than it must means the same.
 * Were its bytes compared as they came, it would find another counter, or no template, and slip past a limit. A %
 * without two digits behind it is itself.
 *
 * Invariant: what rn_percent_key writes depends on the bytes that are meant alone, and two values never give one text.
 */
#include "base/percent.h"

#define CHARACTER_MAX 4 /* bytes of UTF-8 */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t rn_percent_take(ration_text text, size_t at, char *byte)
{
    const bool escape = text.data[at] == '%' && text.size - at > 2;
    const int high = escape ? hex_value(text.data[at + 1]) : -1;
    const int low = escape ? hex_value(text.data[at + 2]) : -1;

    if (high < 0 || low < 0) {
        *byte = text.data[at];
        return 1;
    }
    *byte = (char)(unsigned char)(high * 16 + low);
    return 3;
}

bool rn_percent_eq(ration_text a, ration_text b)
{
    size_t i = 0, k = 0;

    while (i < a.size && k < b.size) {
        char x, y;

        i += rn_percent_take(a, i, &x);
        k += rn_percent_take(b, k, &y);
        if (x != y)
            return false;
    }
    return i == a.size && k == b.size;
}

static size_t take(ration_text value, size_t at, bool encoded, char *byte)
{
    if (encoded)
        return rn_percent_take(value, at, byte);
    *byte = value.data[at];
    return 1;
}

static void byte_put(rn_builder *b, char byte)
{
    static const char digits[] = "0123456789ABCDEF";
    const unsigned char value = (unsigned char)byte;

    rn_builder_char(b, '%');
    rn_builder_char(b, digits[value >> 4]);
    rn_builder_char(b, digits[value & 15]);
}

/* What would end a value, or what a terminal would obey: C0, DEL and C1. */
static bool is_special(const char *character, size_t size)
{
    const unsigned char first = (unsigned char)character[0];

    if (size > 1)
        return first == 0xC2 && (unsigned char)character[1] < 0xA0;
    return first < 0x20 || first == 0x7F || first == '/' || first == '=' || first == '%';
}

void rn_percent_key(rn_builder *b, ration_text value, bool encoded)
{
    for (size_t at = 0; at < value.size;) {
        char bytes[CHARACTER_MAX];
        size_t steps[CHARACTER_MAX] = {0}, ahead = 0, count = 0;

        while (count < CHARACTER_MAX && at + ahead < value.size) {
            steps[count] = take(value, at + ahead, encoded, &bytes[count]);
            ahead += steps[count++];
        }

        const size_t size = rn_text_character((ration_text){bytes, count});

        if (size > 0 && !is_special(bytes, size)) {
            rn_builder_text(b, (ration_text){bytes, size});
        } else {
            for (size_t i = 0; i < (size > 0 ? size : 1); i++)
                byte_put(b, bytes[i]);
        }
        for (size_t i = 0; i < (size > 0 ? size : 1); i++)
            at += steps[i];
    }
}
