/* SPDX-License-Identifier: MIT */
/*
 * Writing heads: check everything and bound its size first, then one reservation and plain copies.
 *
 * Framing is never taken from the fields that the caller relays: Content-Length, Transfer-Encoding and Connection in
 * them are left out and written from `framing`, `length` and `connection`, so that what is announced is what is sent.
 *
 * Invariant: no more bytes are copied than were reserved (asserted), so a head is in the buffer whole or not at all.
 */

#include "net/http1_write.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

/* More than what a head has beside the caller's texts: its start line, our three fields, the empty line. */
#define OWN_BYTES 192

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

static void put_str(rn_buffer *to, const char *s)
{
    rn_buffer_put(to, ration_text_of(s));
}

static void put_int(rn_buffer *to, int64_t value)
{
    char digits[20];
    size_t at = sizeof digits;

    assert(value >= 0);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    rn_buffer_put(to, (ration_text){digits + at, sizeof digits - at});
}

static void put_field(rn_buffer *to, ration_text name, ration_text value)
{
    rn_buffer_put(to, name);
    put_str(to, ": ");
    rn_buffer_put(to, value);
    put_str(to, "\r\n");
}

static void put_fields(rn_buffer *to, const rn_http1_out *head)
{
    if (head->host.data != NULL && rn_http_count(head->fields, "host") == 0)
        put_field(to, ration_text_of("Host"), head->host);
    for (size_t i = 0; i < head->fields.count; i++) {
        if (!is_framing(head->fields.items[i].name))
            put_field(to, head->fields.items[i].name, head->fields.items[i].value);
    }
    if (head->framing == RN_HTTP1_FRAMING_LENGTH) {
        put_str(to, "Content-Length: ");
        put_int(to, head->length);
        put_str(to, "\r\n");
    } else if (head->framing == RN_HTTP1_FRAMING_CHUNKED) {
        put_str(to, "Transfer-Encoding: chunked\r\n");
    }
    if (head->connection != NULL)
        put_field(to, ration_text_of("Connection"), ration_text_of(head->connection));
    put_str(to, "\r\n");
}

/* Room for the whole head. Errors as the header says. */
static int head_reserve(rn_buffer *to, const rn_http1_out *head, size_t *room)
{
    *room = OWN_BYTES + head->method.size + head->target.size + head->host.size + head->reason.size;
    for (size_t i = 0; i < head->fields.count; i++) {
        const rn_http_field *field = &head->fields.items[i];

        if (!field_is_valid(field))
            return RATION_ERR_INVALID;
        *room += field->name.size + field->value.size + 4;
    }
    return rn_buffer_reserve(to, *room) ? RATION_OK : RATION_ERR_NOMEM;
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
    const size_t before = rn_buffer_size(to);
    size_t room;

    if (!rn_http_is_token(head->method) || !target_is_valid(head->target) || !rn_http_is_value(head->host))
        return RATION_ERR_INVALID;
    const int err = head_reserve(to, head, &room);
    if (err != RATION_OK)
        return err;
    rn_buffer_put(to, head->method);
    put_str(to, " ");
    rn_buffer_put(to, head->target);
    put_str(to, " HTTP/1.1\r\n");
    put_fields(to, head);
    assert(rn_buffer_size(to) - before <= room);
    return RATION_OK;
}

int rn_http1_write_response(rn_buffer *to, const rn_http1_out *head)
{
    const size_t before = rn_buffer_size(to);
    size_t room;

    if (head->status < 100 || head->status > 999 || !rn_http_is_value(head->reason))
        return RATION_ERR_INVALID;
    const int err = head_reserve(to, head, &room);
    if (err != RATION_OK)
        return err;
    put_str(to, "HTTP/1.1 ");
    put_int(to, head->status);
    put_str(to, " ");
    if (head->reason.data != NULL) {
        rn_buffer_put(to, head->reason);
    } else {
        put_str(to, rn_http_reason(head->status));
    }
    put_str(to, "\r\n");
    put_fields(to, head);
    assert(rn_buffer_size(to) - before <= room);
    return RATION_OK;
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

    put_str(to, "0\r\n");
    for (size_t i = 0; i < trailers.count; i++) {
        if (trailer_may_go(&trailers.items[i]))
            put_field(to, trailers.items[i].name, trailers.items[i].value);
    }
    put_str(to, "\r\n");
    return RATION_OK;
}
