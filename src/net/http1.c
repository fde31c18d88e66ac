/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.1 codec without sockets: a strict gate, then llhttp.
 *
 * Two parsers that disagree about where a message ends are a smuggler's road. So a head is first gathered whole, up to
 * a bound, and held against the letter of RFC 9112; only what passes reaches llhttp, which decides about framing. The
 * fields that callers see are the gate's. Trailers take the same way: llhttp stops at the last chunk, the section is
 * gathered, checked, then handed on. Chunk heads are llhttp's alone (compiled strict), with a bound on their cost.
 *
 * llhttp speaks in callbacks. They only leave notes (`saw_...`) and pause it, so that one call of `rn_http1_next` gives
 * one event and the caller decides when the next comes.
 *
 * Invariants: llhttp never sees a byte of a head that the gate has not passed; after FAILED nothing is parsed any more;
 * `head` points into `head_lines`, which changes only in `rn_http1_begin` and while no head is out.
 */

#include "net/http1.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "net/http1_gate.h"

/* Chunk heads may be padded with extensions; this much more than the body pays for is an attack. */
#define MAX_FRAMING_BYTES 4096
#define FRAMING_PER_BYTE 32
/* A block that served one head is kept for the next one up to this size. */
#define KEPT_BYTES 2048
#define MAX_TRAILER_BYTES 16384

static int on_headers_complete(llhttp_t *parser)
{
    rn_http1 *h = parser->data;
    const int status = parser->status_code;
    const bool told = (parser->flags & F_CONTENT_LENGTH) != 0;
    const bool chunked = (parser->flags & F_CHUNKED) != 0;
    const bool bodiless = h->response && (h->answers_head || status < 200 || status == 204 || status == 304);

    h->saw_head = true;
    h->until_close = h->response && !bodiless && !told && !chunked;
    h->head.told_bytes = RN_LENGTH_UNKNOWN;
    if (told)
        h->head.told_bytes = (int64_t)parser->content_length; /* the gate has seen that it fits */
    if (bodiless) {
        h->head.body_bytes = 0;
    } else if (chunked || h->until_close) {
        h->head.body_bytes = RN_LENGTH_UNKNOWN;
    } else {
        h->head.body_bytes = told ? h->head.told_bytes : 0;
    }

    const bool kept = h->head.minor > 0 || (parser->flags & F_CONNECTION_KEEP_ALIVE) != 0;
    h->head.keep_alive = kept && (parser->flags & F_CONNECTION_CLOSE) == 0 && !h->until_close;
    /* An offer to upgrade is ours to answer: to llhttp it must not end the message. */
    parser->upgrade = 0;
    return bodiless ? 1 : 0;
}

static int on_body(llhttp_t *parser, const char *data, size_t size)
{
    rn_http1 *h = parser->data;

    h->saw_body = (ration_text){data, size};
    return size > 0 ? HPE_PAUSED : 0;
}

static int on_chunk_header(llhttp_t *parser)
{
    rn_http1 *h = parser->data;

    h->saw_last_chunk = parser->content_length == 0;
    return h->saw_last_chunk ? HPE_PAUSED : 0;
}

static int on_message_complete(llhttp_t *parser)
{
    rn_http1 *h = parser->data;

    h->saw_end = true;
    return HPE_PAUSED;
}

/* Callbacks that are the same for every parser: written once by the compiler, so no table has to be built at start. */
static const llhttp_settings_t settings = {
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_chunk_header = on_chunk_header,
    .on_message_complete = on_message_complete,
};

static void parser_start(rn_http1 *h)
{
    llhttp_init(&h->parser, h->response ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
    h->parser.data = h;
}

void rn_http1_init(rn_http1 *h, bool response, size_t max_head_bytes)
{
    memset(h, 0, sizeof *h);
    h->response = response;
    h->max_head_bytes = max_head_bytes > 0 ? max_head_bytes : RN_HTTP1_MAX_HEAD;
    rn_http1_begin(h, false);
}

void rn_http1_fini(rn_http1 *h)
{
    rn_http1_lines_fini(&h->head_lines);
    rn_http1_lines_fini(&h->trailer_lines);
}

void rn_http1_begin(rn_http1 *h, bool answers_head)
{
    parser_start(h);
    h->answers_head = answers_head;
    h->stage = RN_HTTP1_AT_HEAD;
    h->until_close = false;
    h->framing_bytes = 0;
    memset(&h->head, 0, sizeof h->head);
    memset(&h->trailers, 0, sizeof h->trailers);
    rn_http1_lines_clear(&h->head_lines, KEPT_BYTES);
    rn_http1_lines_fini(&h->trailer_lines);
}

static rn_http1_event http1_fail(rn_http1 *h, int status, const char *text)
{
    h->stage = RN_HTTP1_AT_FAULT;
    h->status = status;
    h->text = text;
    return RN_HTTP1_FAILED;
}

static rn_http1_event http1_fail_by_parser(rn_http1 *h)
{
    const char *reason = llhttp_get_error_reason(&h->parser);
    const int status = llhttp_get_errno(&h->parser) == HPE_INVALID_METHOD ? 501 : 400;

    return http1_fail(h, status, reason != NULL && reason[0] != '\0' ? reason : "malformed message");
}

/* Hand bytes to llhttp. The number it used, and whether it is content. */
static size_t http1_execute(rn_http1 *h, const char *data, size_t size, bool *ok)
{
    h->saw_head = h->saw_end = h->saw_last_chunk = false;
    h->saw_body = (ration_text){NULL, 0};

    const llhttp_errno_t err = llhttp_execute(&h->parser, data, size);
    *ok = err == HPE_OK || err == HPE_PAUSED;
    if (err != HPE_PAUSED)
        return size;

    const size_t used = (size_t)(llhttp_get_error_pos(&h->parser) - data);
    llhttp_resume(&h->parser);
    return used;
}

/* A gathered section has passed the gate: llhttp must read it to its last byte and not beyond. */
static bool http1_execute_lines(rn_http1 *h, const rn_http1_lines *lines)
{
    bool ok;
    const size_t used = http1_execute(h, lines->data, lines->used, &ok);

    return ok && used == lines->used;
}

static rn_http1_event http1_next_head(rn_http1 *h, ration_text *input)
{
    const rn_http1_gathered got = rn_http1_lines_gather(&h->head_lines, input, h->max_head_bytes,
                                                        h->response ? RN_HTTP1_RESPONSE : RN_HTTP1_REQUEST);

    if (got == RN_HTTP1_GATHER_MORE)
        return RN_HTTP1_MORE;
    if (got != RN_HTTP1_GATHER_DONE)
        return http1_fail(h, rn_http1_gathered_status(got), rn_http1_gathered_text(got));

    rn_http1_fault fault = {0, NULL};
    if (!rn_http1_gate_head(&h->head_lines, h->response, &h->head, &fault))
        return http1_fail(h, fault.status, fault.text);
    if (!http1_execute_lines(h, &h->head_lines) || !h->saw_head)
        return http1_fail_by_parser(h);
    h->stage = h->saw_end ? RN_HTTP1_AT_END : RN_HTTP1_AT_BODY;
    return RN_HTTP1_HEAD;
}

static rn_http1_event http1_next_end(rn_http1 *h)
{
    h->stage = RN_HTTP1_AT_REST;
    return RN_HTTP1_END;
}

static rn_http1_event http1_next_trailers(rn_http1 *h, ration_text *input)
{
    const rn_http1_gathered got = rn_http1_lines_gather(&h->trailer_lines, input, MAX_TRAILER_BYTES, RN_HTTP1_TRAILERS);

    if (got == RN_HTTP1_GATHER_MORE)
        return RN_HTTP1_MORE;
    if (got != RN_HTTP1_GATHER_DONE)
        return http1_fail(h, rn_http1_gathered_status(got), rn_http1_gathered_text(got));

    rn_http1_fault fault = {0, NULL};
    if (!rn_http1_gate_trailers(&h->trailer_lines, &fault))
        return http1_fail(h, fault.status, fault.text);
    if (!http1_execute_lines(h, &h->trailer_lines) || !h->saw_end)
        return http1_fail_by_parser(h);
    h->trailers = (rn_http_fields){h->trailer_lines.fields, h->trailer_lines.field_count};
    return http1_next_end(h);
}

static rn_http1_event http1_next_body(rn_http1 *h, ration_text *input, ration_text *body)
{
    /* Also with no input: llhttp may owe the end of a body whose last byte it has given out. A body that ends with the
     * connection owes nothing. */
    if (input->size == 0 && h->until_close)
        return RN_HTTP1_MORE;

    bool ok;
    const size_t used = http1_execute(h, input->data != NULL ? input->data : "", input->size, &ok);
    if (!ok)
        return http1_fail_by_parser(h);
    if (input->data != NULL) {
        input->data += used;
        input->size -= used;
    }

    h->framing_bytes += used - h->saw_body.size;
    if (h->framing_bytes > MAX_FRAMING_BYTES)
        return http1_fail(h, 400, "chunk heads too large");
    if (h->saw_body.size > 0) {
        const bool paid = h->saw_body.size >= h->framing_bytes / FRAMING_PER_BYTE + 1;

        h->framing_bytes = paid ? 0 : h->framing_bytes - h->saw_body.size * FRAMING_PER_BYTE;
        *body = h->saw_body;
        return RN_HTTP1_BODY;
    }
    if (h->saw_end)
        return http1_next_end(h);
    if (!h->saw_last_chunk)
        return RN_HTTP1_MORE;
    h->stage = RN_HTTP1_AT_TRAILERS;
    return http1_next_trailers(h, input);
}

rn_http1_event rn_http1_next(rn_http1 *h, ration_text *input, ration_text *body)
{
    switch (h->stage) {
    case RN_HTTP1_AT_HEAD:
        return http1_next_head(h, input);
    case RN_HTTP1_AT_BODY:
        return http1_next_body(h, input, body);
    case RN_HTTP1_AT_TRAILERS:
        return http1_next_trailers(h, input);
    case RN_HTTP1_AT_END:
        return http1_next_end(h);
    case RN_HTTP1_AT_REST:
        return RN_HTTP1_MORE;
    case RN_HTTP1_AT_FAULT:
        return RN_HTTP1_FAILED;
    }
    assert(false && "no such stage");
    return RN_HTTP1_FAILED;
}

rn_http1_event rn_http1_finish(rn_http1 *h)
{
    switch (h->stage) {
    case RN_HTTP1_AT_HEAD:
        return rn_http1_is_amid(h) ? http1_fail(h, 400, "connection closed amid the head") : RN_HTTP1_MORE;
    case RN_HTTP1_AT_BODY:
        if (!h->until_close)
            return http1_fail(h, 400, "connection closed amid the body");
        h->stage = RN_HTTP1_AT_REST;
        return RN_HTTP1_END;
    case RN_HTTP1_AT_TRAILERS:
        return http1_fail(h, 400, "connection closed amid the trailers");
    case RN_HTTP1_AT_END:
        return http1_next_end(h);
    case RN_HTTP1_AT_REST:
        return RN_HTTP1_MORE;
    case RN_HTTP1_AT_FAULT:
        return RN_HTTP1_FAILED;
    }
    assert(false && "no such stage");
    return RN_HTTP1_FAILED;
}

bool rn_http1_is_amid(const rn_http1 *h)
{
    if (h->stage == RN_HTTP1_AT_HEAD)
        return h->head_lines.used > 0;
    return h->stage != RN_HTTP1_AT_REST && h->stage != RN_HTTP1_AT_FAULT;
}
