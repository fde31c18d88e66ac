/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_HTTP1_H
#define RN_NET_HTTP1_H

#include <llhttp.h>

#include "net/http.h"

/*
 * HTTP/1.1 codec without sockets: bytes in, events out, for both sides.
 *
 * The caller owns the input and calls `rn_http1_next` until it says RN_HTTP1_MORE; what is left of the input then (and
 * after every other event) stays the caller's. Not calling is back-pressure.
 */

#define RN_HTTP1_MAX_HEAD 65536
#define RN_HTTP1_MAX_FIELDS 256

typedef enum rn_http1_event {
    RN_HTTP1_MORE = 0, /* all of the input is used (or the message is over and `rn_http1_begin` is due) */
    RN_HTTP1_HEAD,     /* `head` is filled */
    RN_HTTP1_BODY,     /* a part of the body, never empty, borrowed from the input */
    RN_HTTP1_END,      /* the message is complete; `trailers` are filled; what is left of the input follows it */
    RN_HTTP1_FAILED,   /* `status` and `text` say why; no further event comes */
} rn_http1_event;

typedef enum rn_http1_stage {
    RN_HTTP1_AT_HEAD = 0,
    RN_HTTP1_AT_BODY,
    RN_HTTP1_AT_TRAILERS,
    RN_HTTP1_AT_END,
    RN_HTTP1_AT_REST,
    RN_HTTP1_AT_FAULT,
} rn_http1_stage;

/* A section of lines that is being gathered, then the fields found in it. */
typedef struct rn_http1_lines {
    char *data;
    size_t used;
    size_t capacity;
    size_t line;    /* where the line that is being gathered begins */
    size_t skipped; /* empty lines before the first */
    rn_http_field *fields;
    size_t field_count;
    size_t field_capacity;
} rn_http1_lines;

typedef struct rn_http1 {
    rn_http_head head;       /* valid from HEAD until the next begin or fini */
    rn_http_fields trailers; /* from END */
    int status;              /* of FAILED: the status to answer a request with */
    const char *text;        /* of FAILED: static */

    /* private */
    llhttp_t parser;
    rn_http1_stage stage;
    bool response;
    bool answers_head;
    bool until_close;
    bool saw_head; /* llhttp's callbacks leave their news here */
    bool saw_end;
    bool saw_last_chunk;
    ration_text saw_body;
    size_t framing_bytes; /* of chunk heads, less what the body has paid for */
    size_t max_head_bytes;
    rn_http1_lines head_lines;
    rn_http1_lines trailer_lines;
} rn_http1;

/** For requests (`response` false) or responses. `max_head_bytes` 0: RN_HTTP1_MAX_HEAD. Allocates nothing. */
void rn_http1_init(rn_http1 *h, bool response, size_t max_head_bytes);
void rn_http1_fini(rn_http1 *h);

/** Forget the message that is over and make ready for the next. `answers_head`: the response to come answers a HEAD. */
void rn_http1_begin(rn_http1 *h, bool answers_head);

/**
 * The next event in `*input`, which moves on behind what was used.
 *
 * Strict on purpose: the head is gathered up to a bound; any CR without LF, LF without CR, folded line, NUL, white
 * space before a colon, doubled or doubtful framing is refused before a parser that might read it differently sees it.
 */
rn_http1_event rn_http1_next(rn_http1 *h, ration_text *input, ration_text *body);

/** The peer has closed: END where that ends the body, MORE between messages, else FAILED. */
rn_http1_event rn_http1_finish(rn_http1 *h);

/** Whether something of a message has arrived that is not complete. */
bool rn_http1_is_amid(const rn_http1 *h);

#endif
