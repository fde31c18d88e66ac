/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_TRACE_CONTEXT_H
#define RN_SERVE_TRACE_CONTEXT_H

#include "net/http.h"
#include "trace/output.h"

/* `traceparent` of W3C Trace Context: by its two ids, an event here is joined with the spans of others. */

typedef struct rn_trace_context {
    ration_text trace_id;  /* 32 hexadecimal digits */
    ration_text parent_id; /* 16 of them: the client's span */
} rn_trace_context;

/* The field's value; absent if there is none, or more than one, which says nothing. */
ration_text rn_trace_context_find(rn_http_fields fields);

/* RATION_ERR_SYNTAX for a value that nobody may join a trace by; `*out` is then untouched. Its texts are `value`'s. */
int rn_trace_context_read(ration_text value, rn_trace_context *out);

/* `traceparent` as it came, then `traceId` and `parentId` where it has them. Nothing for an empty text. */
void rn_trace_context_write(ration_text value, rn_output *out);

#endif
