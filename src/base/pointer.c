/* SPDX-License-Identifier: MIT */
/*
 * JSON pointers, read once and compared often: steps are unescaped here, so that whoever walks a text compares bytes.
 *
 * "" is the whole text; each step begins with '/'; "~1" stands for '/' and "~0" for '~'. "-" (the element behind the
 * last) is a step like any other, which no element has.
 */
#include "base/pointer.h"

#include <string.h>

#include "base/text.h"

/* Unescapes in place of `to`; false: a '~' that stands for nothing. */
static bool token_unescape(ration_text from, char *to, size_t *size)
{
    size_t used = 0;

    for (size_t i = 0; i < from.size; i++) {
        char c = from.data[i];

        if (c == '~') {
            if (++i == from.size || (from.data[i] != '0' && from.data[i] != '1'))
                return false;
            c = from.data[i] == '0' ? '~' : '/';
        }
        to[used++] = c;
    }
    *size = used;
    return true;
}

int rn_pointer_parse(rn_arena *arena, ration_text text, rn_pointer *out)
{
    size_t count = 0;
    size_t at = 0;

    for (size_t i = 0; i < text.size; i++)
        count += text.data[i] == '/';
    if (text.size > 0 && text.data[0] != '/')
        return RATION_ERR_SYNTAX;
    if (text.size > RN_POINTER_BYTES || count > RN_POINTER_TOKENS)
        return RATION_ERR_RANGE;

    ration_text *tokens = rn_arena_zalloc(arena, count + 1, sizeof *tokens);
    char *bytes = rn_arena_zalloc(arena, text.size + 1, 1);
    const char *copy = rn_arena_textdup(arena, text.size > 0 ? text : ration_text_of(""));

    if (tokens == NULL || bytes == NULL || copy == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const ration_text rest = rn_text_slice(text, at + 1, text.size);
        size_t end = rest.size;

        (void)rn_text_find(rest, ration_text_of("/"), &end);
        tokens[i].data = bytes;
        if (!token_unescape(rn_text_slice(rest, 0, end), bytes, &tokens[i].size))
            return RATION_ERR_SYNTAX;
        bytes += tokens[i].size;
        at += end + 1;
    }
    *out = (rn_pointer){copy, tokens, count};
    return RATION_OK;
}

bool rn_pointer_is_index(ration_text token, uint64_t index)
{
    char digits[20];
    size_t used = sizeof digits;

    do {
        digits[--used] = (char)('0' + index % 10);
        index /= 10;
    } while (index > 0);
    return rn_text_eq(token, (ration_text){digits + used, sizeof digits - used});
}
