/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_HTTP1_WRITE_H
#define RN_NET_HTTP1_WRITE_H

#include "net/buffer.h"
#include "net/http.h"

/*
 * Heads and framing, built anew from parts: no byte of a received message is relayed unread.
 *
 * A head is appended whole or not at all. RATION_ERR_INVALID: a name that is no token, a control character in a value,
 * a method that is no token, a target with white space or control characters, a status out of range. RATION_ERR_NOMEM.
 */

typedef enum rn_http1_framing {
    RN_HTTP1_FRAMING_NONE = 0, /* says nothing: no body, or until close */
    RN_HTTP1_FRAMING_LENGTH,   /* Content-Length */
    RN_HTTP1_FRAMING_CHUNKED,
} rn_http1_framing;

typedef struct rn_http1_out {
    ration_text method; /* request */
    ration_text target;
    ration_text host;   /* request: Host, where the fields have none; absent: none */
    ration_text reason; /* response; absent: the standard phrase */
    int status;         /* response */
    rn_http1_framing framing;
    int64_t length;
    const char *connection; /* "close", "keep-alive" or NULL */
    rn_http_fields fields;  /* Connection, Content-Length, Transfer-Encoding are left out */
} rn_http1_out;

RATION_MUST_CHECK int rn_http1_write_request(rn_buffer *to, const rn_http1_out *head);
RATION_MUST_CHECK int rn_http1_write_response(rn_buffer *to, const rn_http1_out *head);

#define RN_HTTP1_CHUNK_HEAD 20
/* The line before a chunk of `size` > 0 bytes; the chunk's bytes and CR LF follow. Returns its length. */
size_t rn_http1_chunk_head(char out[RN_HTTP1_CHUNK_HEAD], size_t size);
/* The last chunk and the trailers. A trailer that may not be sent (framing, or invalid) is left out. */
RATION_MUST_CHECK int rn_http1_write_last_chunk(rn_buffer *to, rn_http_fields trailers);

#endif
