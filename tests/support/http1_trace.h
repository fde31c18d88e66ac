/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_HTTP1_TRACE_H
#define TESTS_SUPPORT_HTTP1_TRACE_H

/* The codec's events as text, however its input is cut. */

#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "net/http1.h"

typedef struct trace {
    char text[65536];
    size_t used;
    bool in_body;
    bool failed;
} trace;

static inline void trace_add(trace *t, const char *s, size_t size)
{
    assert_true(t->used + size < sizeof t->text);
    if (size > 0)
        memcpy(t->text + t->used, s, size);
    t->used += size;
    t->text[t->used] = '\0';
}

static inline void trace_str(trace *t, const char *s)
{
    trace_add(t, s, strlen(s));
}

static inline void trace_fields(trace *t, rn_http_fields fields)
{
    for (size_t i = 0; i < fields.count; i++) {
        trace_str(t, " ");
        trace_add(t, fields.items[i].name.data, fields.items[i].name.size);
        trace_str(t, "=");
        trace_add(t, fields.items[i].value.data, fields.items[i].value.size);
    }
}

static inline void trace_head(trace *t, const rn_http1 *h)
{
    char line[128];

    if (h->response) {
        (void)snprintf(line, sizeof line, "%d", h->head.status);
        trace_str(t, line);
    } else {
        trace_add(t, h->head.method.data, h->head.method.size);
        trace_str(t, " ");
        trace_add(t, h->head.target.data, h->head.target.size);
    }
    (void)snprintf(line, sizeof line, " 1.%d %lld%s%s%s", h->head.minor, (long long)h->head.body_bytes,
                   h->head.keep_alive ? " keep" : "", h->head.expect ? " expect" : "",
                   h->head.upgrade.data != NULL ? " upgrade" : "");
    trace_str(t, line);
    trace_fields(t, h->head.fields);
    trace_str(t, "\n");
}

/* One event into the trace; parts of a body run together. False: no more to come. */
static inline bool trace_event(trace *t, rn_http1 *h, rn_http1_event event, ration_text body)
{
    if (t->in_body && event != RN_HTTP1_BODY && event != RN_HTTP1_MORE) {
        t->in_body = false;
        trace_str(t, "]\n");
    }
    switch (event) {
    case RN_HTTP1_MORE:
        return true;
    case RN_HTTP1_HEAD:
        trace_head(t, h);
        return true;
    case RN_HTTP1_BODY:
        assert_true(body.size > 0);
        if (!t->in_body)
            trace_str(t, "[");
        t->in_body = true;
        trace_add(t, body.data, body.size);
        return true;
    case RN_HTTP1_END:
        trace_str(t, "end");
        trace_fields(t, h->trailers);
        trace_str(t, "\n");
        return true;
    case RN_HTTP1_FAILED: {
        char line[128];

        (void)snprintf(line, sizeof line, "%d %s\n", h->status, h->text);
        trace_str(t, line);
        t->failed = true;
        return false;
    }
    }
    return false;
}

/* Feed a part, in a block of its own, so that a read past it is seen; at each end begin the next message. */
static inline bool trace_feed(trace *t, rn_http1 *h, ration_text part, bool answers_head)
{
    char *copy = malloc(part.size);
    ration_text left = {copy, part.size};
    ration_text body = {NULL, 0};
    bool on = true;

    assert_non_null(copy);
    memcpy(copy, part.data, part.size);
    while (on) {
        const rn_http1_event event = rn_http1_next(h, &left, &body);

        if (event == RN_HTTP1_MORE)
            break;
        on = trace_event(t, h, event, body);
        if (event == RN_HTTP1_END)
            rn_http1_begin(h, answers_head);
    }
    if (on)
        CHECK_EQ(left.size, 0);
    free(copy);
    return on;
}

/* How an input comes: in two parts, the first of `first` bytes; or in many, of up to `most` bytes each. */
typedef struct cuts {
    size_t first;
    size_t most;
    uint64_t seed;
} cuts;

static inline size_t cuts_next(cuts *c, size_t at, size_t left)
{
    size_t size = left;

    if (c->most > 0) {
        c->seed = c->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size = 1 + (size_t)(c->seed >> 33) % c->most;
    } else if (at == 0 && c->first > 0) {
        size = c->first;
    }
    return size < left ? size : left;
}

/* The whole input, and then the connection closes. */
static inline void trace_run(trace *t, bool response, bool answers_head, ration_text input, cuts how)
{
    rn_http1 h;
    bool on = true;

    memset(t, 0, sizeof *t);
    rn_http1_init(&h, response, 0);
    rn_http1_begin(&h, answers_head);
    for (size_t at = 0; on && at < input.size;) {
        const size_t size = cuts_next(&how, at, input.size - at);

        on = trace_feed(t, &h, (ration_text){input.data + at, size}, answers_head);
        at += size;
    }
    if (on)
        (void)trace_event(t, &h, rn_http1_finish(&h), (ration_text){NULL, 0});
    if (t->in_body)
        trace_str(t, "]\n");
    rn_http1_fini(&h);
}

#endif
