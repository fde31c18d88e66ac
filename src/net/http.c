/* SPDX-License-Identifier: MIT */
/*
 * What HTTP's words mean, without a parser: tokens, lists, hop-by-hop fields, status phrases (RFC 9110, 9112).
 *
 * Invariant: nothing here allocates or keeps a pointer.
 */

#include "net/http.h"

#include "base/text.h"

/* A bit for each byte that may stand in a token: !#$%&'*+-.^_`|~, digits, letters. */
static const uint32_t token_bytes[8] = {0x00000000, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff, 0, 0, 0, 0};

bool rn_http_is_token(ration_text text)
{
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = (unsigned char)text.data[i];

        if ((token_bytes[c >> 5] >> (c & 31) & 1) == 0)
            return false;
    }
    return text.size > 0;
}

bool rn_http_is_value(ration_text text)
{
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = (unsigned char)text.data[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* A bit for each byte of a reg-name, the escapes' own sign aside: unreserved and sub-delims of RFC 3986. */
static const uint32_t host_bytes[8] = {0x00000000, 0x2bff7fd2, 0x87fffffe, 0x47fffffe, 0, 0, 0, 0};

static bool is_host_byte(char c)
{
    return (host_bytes[(unsigned char)c >> 5] >> ((unsigned char)c & 31) & 1) != 0;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

bool rn_http_is_host(ration_text text)
{
    size_t at = 0;

    if (text.size > 0 && text.data[0] == '[') {
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

size_t rn_http_count_text(rn_http_fields fields, ration_text name)
{
    size_t count = 0;

    for (size_t i = 0; i < fields.count; i++) {
        if (fields.items[i].name.size == name.size && rn_text_eq_nocase(fields.items[i].name, name))
            count++;
    }
    return count;
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
