/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_TEXT_H
#define RN_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <ration/types.h>

/* Texts without a locale, and a bounded builder in place of printf. */

/* A text in a table. */
#define RN_TEXT(literal)                                                                                               \
    {                                                                                                                  \
        literal, sizeof(literal) - 1                                                                                   \
    }

/* Inline, because most comparisons end with the lengths, and that of a literal is known. */
static inline bool rn_text_eq(ration_text a, ration_text b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool rn_text_is(ration_text a, const char *s)
{
    return rn_text_eq(a, ration_text_of(s));
}

bool rn_text_eq_nocase(ration_text a, ration_text b); /* ASCII only */

static inline bool rn_text_is_nocase(ration_text a, const char *s)
{
    const ration_text b = ration_text_of(s);

    return a.size == b.size && rn_text_eq_nocase(a, b);
}

int rn_text_compare(ration_text a, ration_text b); /* by bytes, then length */
ration_text rn_text_trim(ration_text a);           /* spaces and tabs */
ration_text rn_text_slice(ration_text a, size_t from, size_t to);
bool rn_text_find(ration_text haystack, ration_text needle, size_t *at);
bool rn_text_is_utf8(ration_text a);
size_t rn_text_plain(ration_text a);     /* bytes at the front that JSON writes as they are: ASCII but controls " \\ */
size_t rn_text_character(ration_text a); /* bytes of the UTF-8 character at the front; 0: there is none */

/* Writes into a fixed buffer; what does not fit is cut and `full` set. Always NUL-terminated if size > 0. */
typedef struct rn_builder {
    char *data;
    size_t size; /* of the buffer */
    size_t used; /* without the NUL */
    bool full;
} rn_builder;

void rn_builder_init(rn_builder *b, char *buffer, size_t size);
void rn_builder_text(rn_builder *b, ration_text text);
void rn_builder_str(rn_builder *b, const char *s);
void rn_builder_char(rn_builder *b, char c);
void rn_builder_int(rn_builder *b, int64_t value);
void rn_builder_micro(rn_builder *b, int64_t value);    /* 48500000 -> "48.5", no trailing zeros */
void rn_builder_ms(rn_builder *b, int64_t us);          /* 333334 -> "333.334", milliseconds for traces */
void rn_builder_duration(rn_builder *b, int64_t us);    /* for people: "1.5 s", "250 ms", "2 h 5 min" */
void rn_builder_instant(rn_builder *b, ration_time at); /* "2024-11-03T05:30:00Z", fractions only where there are any */
/* Percent-encodes '/', '=' and '%', as scope keys need. */
void rn_builder_key(rn_builder *b, ration_text text);

#endif
