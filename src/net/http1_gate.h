/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_HTTP1_GATE_H
#define RN_NET_HTTP1_GATE_H

#include "net/http1.h"

/* Gathering and checking heads and trailers, before llhttp sees them. */

typedef enum rn_http1_gathered {
    RN_HTTP1_GATHER_MORE = 0,
    RN_HTTP1_GATHER_DONE, /* the empty line has come */
    RN_HTTP1_GATHER_TOO_LARGE,
    RN_HTTP1_GATHER_TOO_LONG, /* the request line alone */
    RN_HTTP1_GATHER_NO_HTTP,
    RN_HTTP1_GATHER_EMPTY_LINES,
    RN_HTTP1_GATHER_BARE_LF,
    RN_HTTP1_GATHER_BARE_CR,
    RN_HTTP1_GATHER_NOMEM,
} rn_http1_gathered;

typedef enum rn_http1_section {
    RN_HTTP1_REQUEST = 0, /* a few empty lines before it do not count */
    RN_HTTP1_RESPONSE,
    RN_HTTP1_TRAILERS,
} rn_http1_section;

typedef struct rn_http1_fault {
    int status;
    const char *text;
} rn_http1_fault;

int rn_http1_gathered_status(rn_http1_gathered got);
const char *rn_http1_gathered_text(rn_http1_gathered got);

/* Move lines from the input up to and with the empty one. */
rn_http1_gathered rn_http1_lines_gather(rn_http1_lines *lines, ration_text *input, size_t max_bytes,
                                        rn_http1_section section);
/* Empty it; keep the block if it is no larger than `keep`. */
void rn_http1_lines_clear(rn_http1_lines *lines, size_t keep);
void rn_http1_lines_fini(rn_http1_lines *lines);

/* Check a gathered head and fill the parts of `head` that stand in it. False: `fault` is filled. */
bool rn_http1_gate_head(rn_http1_lines *lines, bool response, rn_http_head *head, rn_http1_fault *fault);
/* Check gathered trailers and list their fields. */
bool rn_http1_gate_trailers(rn_http1_lines *lines, rn_http1_fault *fault);

#endif
