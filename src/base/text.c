/* SPDX-License-Identifier: MIT */
/*
 * Texts: pointer and length, compared by bytes.
 *
 * Only ASCII letters have two cases, whatever the locale, because what is compared without case is protocol words. An
 * absent text compares like an empty one; who needs to tell them apart looks at `data`. Functions that return a part of
 * a text return a view of it.
 */
#include "base/text.h"

#include <string.h>

static char ascii_lower(char c)
{
    if (c < 'A' || c > 'Z')
        return c;
    return (char)(c - 'A' + 'a');
}

/* The same of eight letters at once: the sums carry into the top bit of those from A on, and of those beyond Z. */
static uint64_t ascii_lower_eight(uint64_t bytes)
{
    const uint64_t each = UINT64_MAX / 255;
    const uint64_t low = bytes & each * 0x7f;
    const uint64_t from_a = low + each * (0x80 - 'A');
    const uint64_t beyond_z = low + each * (0x7f - 'Z');
    return bytes | ((from_a ^ beyond_z) & ~bytes & each * 0x80) >> 2;
}

/* Whether eight bytes are the same but for the case; mostly that is the same too. */
static bool eight_eq_nocase(const char *a, const char *b)
{
    uint64_t x;
    uint64_t y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x == y || ascii_lower_eight(x) == ascii_lower_eight(y);
}

bool rn_text_eq_nocase(ration_text a, ration_text b)
{
    if (a.size != b.size)
        return false;
    if (a.size >= 8) {
        /* The last eight overlap those before them. */
        for (size_t i = 0; i < a.size - 8; i += 8) {
            if (!eight_eq_nocase(a.data + i, b.data + i))
                return false;
        }
        return eight_eq_nocase(a.data + a.size - 8, b.data + b.size - 8);
    }
    for (size_t i = 0; i < a.size; i++) {
        if (a.data[i] != b.data[i] && ascii_lower(a.data[i]) != ascii_lower(b.data[i]))
            return false;
    }
    return true;
}

int rn_text_compare(ration_text a, ration_text b)
{
    const size_t common = a.size < b.size ? a.size : b.size;
    const int order = common > 0 ? memcmp(a.data, b.data, common) : 0;

    if (order != 0)
        return order < 0 ? -1 : 1;
    return (a.size > b.size) - (a.size < b.size);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

ration_text rn_text_trim(ration_text a)
{
    size_t from = 0;
    size_t to = a.size;

    while (from < to && is_blank(a.data[from]))
        from++;
    while (to > from && is_blank(a.data[to - 1]))
        to--;
    return rn_text_slice(a, from, to);
}

/* Bounds beyond the text's are its end; a slice of an absent text is absent. */
ration_text rn_text_slice(ration_text a, size_t from, size_t to)
{
    if (a.data == NULL)
        return a;
    if (to > a.size)
        to = a.size;
    if (from > to)
        from = to;

    const ration_text part = {a.data + from, to - from};

    return part;
}

/* A JSON text stands as it is but for control characters, its quote, its escape, and what is beyond ASCII. */
static const bool plain[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* 00 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* 10 */
    1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* 20 */
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* 30 */
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* 40 */
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, /* 50 */
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* 60 */
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* 70 */
};

size_t rn_text_plain(ration_text a)
{
    size_t size = 0;

    while (size < a.size && plain[(unsigned char)a.data[size]])
        size++;
    return size;
}

/* The first occurrence; an empty needle is everywhere. `at` may be NULL. */
bool rn_text_find(ration_text haystack, ration_text needle, size_t *at)
{
    size_t i = 0;

    while (needle.size > 0 && needle.size <= haystack.size - i) {
        const char *first = memchr(haystack.data + i, needle.data[0], haystack.size - i - needle.size + 1);

        if (first == NULL)
            return false;
        i = (size_t)(first - haystack.data);
        if (memcmp(first, needle.data, needle.size) == 0)
            break;
        i++;
    }
    if (needle.size > haystack.size - i)
        return false;
    if (at != NULL)
        *at = i;
    return true;
}

/* Bytes of the well-formed sequence at the front of `s` (Unicode 15, table 3-7), 0: malformed. */
static size_t utf8_sequence(const unsigned char *s, size_t size)
{
    static const struct {
        unsigned char first, last; /* of the first byte */
        unsigned char low, high;   /* of the second */
        size_t size;
    } forms[] = {
        {0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    size_t form = 0;

    while (form < sizeof(forms) / sizeof(forms[0]) && (s[0] < forms[form].first || s[0] > forms[form].last))
        form++;
    if (form == sizeof(forms) / sizeof(forms[0]) || forms[form].size > size)
        return 0;
    if (forms[form].size > 1 && (s[1] < forms[form].low || s[1] > forms[form].high))
        return 0;
    for (size_t i = 2; i < forms[form].size; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    return forms[form].size;
}

size_t rn_text_character(ration_text a)
{
    return a.size > 0 ? utf8_sequence((const unsigned char *)a.data, a.size) : 0;
}

bool rn_text_is_utf8(ration_text a)
{
    const unsigned char *const bytes = (const unsigned char *)a.data;
    size_t at = 0;

    while (at < a.size) {
        const size_t step = utf8_sequence(bytes + at, a.size - at);

        if (step == 0)
            return false;
        at += step;
    }
    return true;
}
