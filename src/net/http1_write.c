/* SPDX-License-Identifier: MIT */
/*
 * Writing heads: check and measure first, then one reservation and plain copies.
 *
 * Framing is never taken from the fields that the caller relays: Content-Length, Transfer-Encoding and Connection in
 * them are left out and written from `framing`, `length` and `connection`, so that what is announced is what is sent.
 *
 * Invariant: the bytes measured are the bytes copied (asserted), so a head is in the buffer whole or not at all.
 */

#include "net/http1_write.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

static const ration_text crlf = {"\r\n", 2};
static const ration_text colon = {": ", 2};

static bool is_framing(ration_text name)
{
    /* Lengths first: most names are none of these. */
    return (name.size == 10 && rn_text_is_nocase(name, "connection")) ||
           (name.size == 14 && rn_text_is_nocase(name, "content-length")) ||
           (name.size == 17 && rn_text_is_nocase(name, "transfer-encoding"));
}

static bool field_is_valid(const rn_http_field *field)
{
    return rn_http_is_token(field->name) && rn_http_is_value(field->value);
}

/* Parts of a head in order: either counted or copied, by the same code. */
typedef struct rn_parts {
    rn_buffer *to; /* NULL: only count */
    size_t size;
} rn_parts;

static void parts_text(rn_parts *parts, ration_text text)
{
    parts->size += text.size;
    if (parts->to != NULL)
        rn_buffer_put(parts->to, text);
}

static void parts_str(rn_parts *parts, const char *s)
{
    parts_text(parts, ration_text_of(s));
}

static void parts_int(rn_parts *parts, int64_t value)
{
    char digits[24];
    rn_builder b;

    rn_builder_init(&b, digits, sizeof digits);
    rn_builder_int(&b, value);
    parts_text(parts, (ration_text){digits, b.used});
}

static void parts_field(rn_parts *parts, ration_text name, ration_text value)
{
    parts_text(parts, name);
    parts_text(parts, colon);
    parts_text(parts, value);
    parts_text(parts, crlf);
}

static void parts_fields(rn_parts *parts, const rn_http1_out *head)
{
    if (head->host.data != NULL && rn_http_count(head->fields, "host") == 0)
        parts_field(parts, ration_text_of("Host"), head->host);
    for (size_t i = 0; i < head->fields.count; i++) {
        if (!is_framing(head->fields.items[i].name))
            parts_field(parts, head->fields.items[i].name, head->fields.items[i].value);
    }
    if (head->framing == RN_HTTP1_FRAMING_LENGTH) {
        parts_str(parts, "Content-Length: ");
        parts_int(parts, head->length);
        parts_text(parts, crlf);
    } else if (head->framing == RN_HTTP1_FRAMING_CHUNKED) {
        parts_str(parts, "Transfer-Encoding: chunked\r\n");
    }
    if (head->connection != NULL)
        parts_field(parts, ration_text_of("Connection"), ration_text_of(head->connection));
    parts_text(parts, crlf);
}

static void parts_request(rn_parts *parts, const rn_http1_out *head)
{
    parts_text(parts, head->method);
    parts_str(parts, " ");
    parts_text(parts, head->target);
    parts_str(parts, " HTTP/1.1\r\n");
    parts_fields(parts, head);
}

static void parts_response(rn_parts *parts, const rn_http1_out *head)
{
    parts_str(parts, "HTTP/1.1 ");
    parts_int(parts, head->status);
    parts_str(parts, " ");
    if (head->reason.data != NULL) {
        parts_text(parts, head->reason);
    } else {
        parts_str(parts, rn_http_reason(head->status));
    }
    parts_text(parts, crlf);
    parts_fields(parts, head);
}

static int write_parts(rn_buffer *to, const rn_http1_out *head, void (*parts)(rn_parts *, const rn_http1_out *))
{
    rn_parts count = {NULL, 0};

    for (size_t i = 0; i < head->fields.count; i++) {
        if (!field_is_valid(&head->fields.items[i]))
            return RATION_ERR_INVALID;
    }
    parts(&count, head);
    if (!rn_buffer_reserve(to, count.size))
        return RATION_ERR_NOMEM;

    rn_parts copy = {to, 0};
    parts(&copy, head);
    assert(copy.size == count.size);
    return RATION_OK;
}

static bool target_is_valid(ration_text target)
{
    for (size_t i = 0; i < target.size; i++) {
        const unsigned char c = (unsigned char)target.data[i];

        if (c <= ' ' || c >= 0x7f)
            return false;
    }
    return target.size > 0;
}

int rn_http1_write_request(rn_buffer *to, const rn_http1_out *head)
{
    if (!rn_http_is_token(head->method) || !target_is_valid(head->target) || !rn_http_is_value(head->host))
        return RATION_ERR_INVALID;
    return write_parts(to, head, parts_request);
}

int rn_http1_write_response(rn_buffer *to, const rn_http1_out *head)
{
    if (head->status < 100 || head->status > 999 || !rn_http_is_value(head->reason))
        return RATION_ERR_INVALID;
    return write_parts(to, head, parts_response);
}

size_t rn_http1_chunk_head(char out[RN_HTTP1_CHUNK_HEAD], size_t size)
{
    char digits[16];
    size_t count = 0;
    size_t used = 0;

    do {
        digits[count++] = "0123456789abcdef"[size & 15];
        size >>= 4;
    } while (size > 0);
    while (count > 0)
        out[used++] = digits[--count];
    out[used++] = '\r';
    out[used++] = '\n';
    return used;
}

static bool trailer_may_go(const rn_http_field *field)
{
    return field_is_valid(field) && !is_framing(field->name) && !rn_http_is_of_head(field->name) &&
           !rn_text_is_nocase(field->name, "trailer");
}

int rn_http1_write_last_chunk(rn_buffer *to, rn_http_fields trailers)
{
    size_t size = 5;

    for (size_t i = 0; i < trailers.count; i++) {
        if (trailer_may_go(&trailers.items[i]))
            size += trailers.items[i].name.size + trailers.items[i].value.size + 4;
    }
    if (!rn_buffer_reserve(to, size))
        return RATION_ERR_NOMEM;

    rn_parts copy = {to, 0};
    parts_str(&copy, "0\r\n");
    for (size_t i = 0; i < trailers.count; i++) {
        if (trailer_may_go(&trailers.items[i]))
            parts_field(&copy, trailers.items[i].name, trailers.items[i].value);
    }
    parts_text(&copy, crlf);
    assert(copy.size == size);
    return RATION_OK;
}
