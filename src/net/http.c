/* SPDX-License-Identifier: MIT */
/*
 * What HTTP's words mean, without a parser: tokens, lists, hop-by-hop fields, status phrases (RFC 9110, 9112).
 *
 * Invariant: nothing here allocates or keeps a pointer.
 */

#include "net/http.h"

#include <string.h>

#include "base/text.h"

/* What each byte may stand in: the sum of its kinds. Beyond ASCII there are only values. */
static const unsigned char kinds[256] = {
    0,  0,  0,  0,  0,  0,  0,  0,  0,  2,  0,  0,  0,  0,  0,  0,  /* 00 */
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  /* 10 */
    2,  15, 6,  3,  15, 7,  15, 15, 14, 14, 15, 15, 14, 15, 15, 6,  /* 20 */
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 6,  14, 6,  14, 6,  6,  /* 30 */
    6,  15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, /* 40 */
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 6,  6,  6,  7,  15, /* 50 */
    7,  15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, /* 60 */
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 6,  7,  6,  15, 0,  /* 70 */
    2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  /* 80 */
    2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  /* 90 */
    2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  /* a0 */
    2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  /* b0 */
    2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  /* c0 */
    2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  /* d0 */
    2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  /* e0 */
    2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  2,  /* f0 */
};

size_t rn_http_run(ration_text text, rn_http_kind kind)
{
    size_t size = 0;

    while (size < text.size && (kinds[(unsigned char)text.data[size]] & kind) != 0)
        size++;
    return size;
}

bool rn_http_is_token(ration_text text)
{
    return text.size > 0 && rn_http_run(text, RN_HTTP_TOKEN) == text.size;
}

/* Whether any of eight bytes is a control character, the tab among them. */
static bool has_control(const char *from)
{
    const uint64_t each = UINT64_MAX / 255;
    uint64_t bytes;

    memcpy(&bytes, from, sizeof bytes);
    const uint64_t from_del = bytes ^ each * 0x7f;
    const uint64_t low = (bytes - each * 0x20) & ~bytes;
    const uint64_t del = (from_del - each) & ~from_del;
    return ((low | del) & each * 0x80) != 0;
}

bool rn_http_is_value(ration_text text)
{
    size_t plain = 0;

    while (text.size - plain >= 8 && !has_control(text.data + plain))
        plain += 8;
    const ration_text rest = rn_text_slice(text, plain, text.size);
    return rn_http_run(rest, RN_HTTP_VALUE) == rest.size;
}

static bool is_host_byte(char c)
{
    return (kinds[(unsigned char)c] & RN_HTTP_HOST) != 0;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

bool rn_http_is_host(ration_text text)
{
    size_t at = 0;

    if (rn_http_run(text, RN_HTTP_HOST) == text.size)
        return true;
    if (text.data[0] == '[') {
        for (at = 1; at < text.size && (is_host_byte(text.data[at]) || text.data[at] == ':');)
            at++;
        if (at < 3 || at == text.size || text.data[at++] != ']')
            return false;
    }
    for (; at < text.size && text.data[at] != ':' && text.data[0] != '['; at++) {
        const bool escape =
            text.size - at > 2 && text.data[at] == '%' && is_hex(text.data[at + 1]) && is_hex(text.data[at + 2]);

        if (!escape && !is_host_byte(text.data[at]))
            return false;
        at += escape ? 2 : 0;
    }
    if (at < text.size && text.data[at++] != ':')
        return false;
    while (at < text.size && text.data[at] >= '0' && text.data[at] <= '9')
        at++;
    return at == text.size;
}

ration_text rn_http_find_text(rn_http_fields fields, ration_text name)
{
    for (size_t i = 0; i < fields.count; i++) {
        const rn_http_field *field = &fields.items[i];

        if (field->name.size == name.size && rn_text_eq_nocase(field->name, name))
            return field->value;
    }
    return (ration_text){NULL, 0};
}

size_t rn_http_look_text(rn_http_fields fields, ration_text name, ration_text *first)
{
    size_t count = 0;

    *first = (ration_text){NULL, 0};
    for (size_t i = 0; i < fields.count; i++) {
        const rn_http_field *field = &fields.items[i];

        if (field->name.size == name.size && rn_text_eq_nocase(field->name, name) && count++ == 0)
            *first = field->value;
    }
    return count;
}

size_t rn_http_count_text(rn_http_fields fields, ration_text name)
{
    ration_text first;

    return rn_http_look_text(fields, name, &first);
}

/* The next member of a list, without its parameters; `*at` moves behind it. False at the end. Quoted commas are not
 * minded: the lists that we look into hold tokens. */
static bool list_next(ration_text value, size_t *at, ration_text *out)
{
    if (*at >= value.size)
        return false;

    size_t end = *at;
    while (end < value.size && value.data[end] != ',')
        end++;
    size_t stop = *at;
    while (stop < end && value.data[stop] != ';')
        stop++;
    *out = rn_text_trim((ration_text){value.data + *at, stop - *at});
    *at = end + 1;
    return true;
}

bool rn_http_list_has(ration_text value, const char *token)
{
    ration_text member;

    for (size_t at = 0; list_next(value, &at, &member);) {
        if (rn_text_is_nocase(member, token))
            return true;
    }
    return false;
}

bool rn_http_is_hop_by_hop(rn_http_fields fields, ration_text name)
{
    static const char *const always[] = {
        "connection", "keep-alive", "proxy-connection",    "transfer-encoding",  "te",
        "trailer",    "upgrade",    "proxy-authorization", "proxy-authenticate", "proxy-authentication-info",
    };

    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        if (rn_text_is_nocase(name, always[i]))
            return true;
    }
    for (size_t i = 0; i < fields.count; i++) {
        ration_text member;

        if (!rn_text_is_nocase(fields.items[i].name, "connection"))
            continue;
        for (size_t at = 0; list_next(fields.items[i].value, &at, &member);) {
            if (rn_text_eq_nocase(member, name))
                return true;
        }
    }
    return false;
}

bool rn_http_is_of_head(ration_text name)
{
    static const char *const names[] = {
        "host",          "authorization",    "cookie",        "set-cookie",   "content-type", "content-encoding",
        "content-range", "content-location", "cache-control", "max-forwards", "expect",       "range",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (rn_text_is_nocase(name, names[i]))
            return true;
    }
    return false;
}

const char *rn_http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } table[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {203, "Non-Authoritative Information"},
        {204, "No Content"},
        {205, "Reset Content"},
        {206, "Partial Content"},
        {300, "Multiple Choices"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {402, "Payment Required"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {425, "Too Early"},
        {426, "Upgrade Required"},
        {428, "Precondition Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {451, "Unavailable For Legal Reasons"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].status == status)
            return table[i].reason;
    }
    return "Unknown";
}
