/* SPDX-License-Identifier: MIT */
/*
 * From the request target of a client to the one of the provider.
 *
 * The account is the first segment, compared after percent-decoding because clients may encode more than they must; all
 * that follows is opaque. So a client can reach every path of the account's host and no other host.
 */
#include "serve/route.h"

#include "base/text.h"

static size_t find_any(ration_text text, size_t from, char a, char b)
{
    while (from < text.size && text.data[from] != a && text.data[from] != b)
        from++;
    return from;
}

/* What may stand in a request line; the rest should have been percent-encoded. */
static bool is_visible(ration_text target)
{
    for (size_t i = 0; i < target.size; i++) {
        if ((unsigned char)target.data[i] <= ' ' || (unsigned char)target.data[i] >= 0x7F)
            return false;
    }
    return true;
}

int rn_route_parse(ration_text target, rn_route *out)
{
    if (target.size < 2 || target.data[0] != '/' || !is_visible(target))
        return RATION_ERR_SYNTAX;

    const size_t end = find_any(target, 1, '/', '?');
    if (end == 1)
        return RATION_ERR_SYNTAX;

    out->account = rn_text_slice(target, 1, end);
    out->rest = rn_text_slice(target, end, target.size);
    out->path = rn_text_slice(target, end, find_any(target, end, '?', '?'));
    if (out->path.size == 0)
        out->path = ration_text_of("/");
    return RATION_OK;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int rn_route_decode(ration_text segment, char *buffer, size_t size, ration_text *out)
{
    size_t used = 0;

    for (size_t i = 0; i < segment.size; i++) {
        char c = segment.data[i];
        if (c == '%') {
            const int high = i + 2 < segment.size ? hex_value(segment.data[i + 1]) : -1;
            const int low = high >= 0 ? hex_value(segment.data[i + 2]) : -1;
            if (low < 0)
                return RATION_ERR_SYNTAX;
            c = (char)(unsigned char)(high * 16 + low);
            i += 2;
        }
        if (used == size)
            return RATION_ERR_RANGE;
        buffer[used++] = c;
    }
    *out = (ration_text){buffer, used};
    return RATION_OK;
}
