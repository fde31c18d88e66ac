/* SPDX-License-Identifier: MIT */
/*
 * One request to another server, from its start to its end or fault.
 *
 * Calls from outside change state and ask for `settle`, which runs once at the end of the turn: send, read what TLS
 * holds back, parse what was left over, say on_drain, tell a fault, poll, file the deadline, die. Bytes that arrive are
 * parsed where they arrive, so handlers run from there too; they may call anything, for nothing dies before the turn's
 * end.
 *
 * A server may close a connection that it kept just as we use it. If no byte of an answer has come and the connection
 * had served before, the request is sent once more on a fresh one: where the caller said that it may be, or where
 * nothing of it had left us. What a kept connection says before the request has left us is no answer to it: such a
 * connection is dropped too.
 *
 * Sending may fail because the server has answered early and closed; its answer is read before the fault counts.
 *
 * Invariants: `out` is kept whole, and `out_at` counts, while the request may have to be sent again; `dead` is final,
 * and after it no handler is called; a link goes back to the pool only after a complete answer to a completely sent
 * request.
 */

#include "net/upstream.h"

#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/text.h"
#include "net/http1_write.h"

#define MAX_QUEUED (8U << 20)
#define COPIED_BODY 16384 /* up to here a whole body goes out in one piece with its head */
#define READS_PER_TURN 16
#define MAX_STALLS 8
#define MAX_INTERIMS 64

static const char out_of_step[] = "a kept connection spoke before it was asked";
#define STALL_US INT64_C(10000)

static void upstream_settle(rn_deferred *work);

static rn_upstream *upstream_of(rn_deferred *work)
{
    return (rn_upstream *)(void *)((char *)work - offsetof(rn_upstream, settle));
}

static void upstream_touch(rn_upstream *up)
{
    if (up->settling) {
        rn_loop_defer_next(up->pool->loop, &up->settle);
    } else {
        rn_loop_defer(up->pool->loop, &up->settle);
    }
}

static void upstream_drop_link(rn_upstream *up)
{
    rn_link *link = up->link;

    up->link = NULL;
    up->connected = false;
    if (link != NULL)
        rn_link_close(link);
}

static void upstream_die(rn_upstream *up)
{
    up->dead = true;
    upstream_drop_link(up);
    upstream_touch(up);
}

static void upstream_fail(rn_upstream *up, rn_upstream_fault kind, const char *text)
{
    if (!up->failed && !up->dead) {
        up->failed = true;
        rn_fault_set(&up->fault, kind, text);
    }
    upstream_touch(up);
}

/* ---- connecting, and once more */

static void upstream_connect(rn_upstream *up, bool fresh)
{
    rn_fault fault;

    if (!rn_pool_connect(up->pool, up->origin, up, fresh, &fault))
        upstream_fail(up, fault.kind, fault.text);
    upstream_touch(up);
}

void rn_upstream_connected(rn_upstream *up)
{
    up->connected = true;
    upstream_touch(up);
}

void rn_upstream_refused(rn_upstream *up, const rn_fault *fault)
{
    up->link = NULL;
    upstream_fail(up, fault->kind, fault->text);
}

static bool may_repeat(const rn_upstream *up)
{
    return !up->repeated && !up->begun && up->link != NULL && up->link->served && (up->repeatable || !up->sent_any);
}

/* The connection has died: the request goes out again if it may, else `text` is the fault. */
static void upstream_broke(rn_upstream *up, const char *text)
{
    if (!may_repeat(up)) {
        upstream_fail(up, RN_UPSTREAM_BROKEN, text);
        return;
    }
    up->repeated = true;
    up->send_broken = up->sent_any = false;
    up->out_at = up->body_at = 0;
    up->pool->stats.retries++;
    rn_buffer_fini(&up->in);
    rn_http1_begin(&up->parser, up->answers_head);
    upstream_drop_link(up);
    upstream_connect(up, true);
}

/* ---- sending */

static bool upstream_has_more(const rn_upstream *up)
{
    return up->out_at < rn_buffer_size(&up->out) || up->body_at < up->body.size;
}

static bool upstream_sent_all(const rn_upstream *up)
{
    return up->finished && !upstream_has_more(up);
}

/* The bytes that go next: the queue first, then the body that the caller keeps for us. */
static ration_text upstream_next_bytes(const rn_upstream *up)
{
    const ration_text queued = rn_buffer_bytes(&up->out);

    if (up->out_at < queued.size)
        return (ration_text){queued.data + up->out_at, queued.size - up->out_at};
    return (ration_text){up->body.data + up->body_at, up->body.size - up->body_at};
}

static void upstream_mark_sent(rn_upstream *up, size_t size)
{
    up->moved = up->sent_any = true;
    up->stalls = 0;
    if (up->out_at >= rn_buffer_size(&up->out)) {
        up->body_at += size;
    } else if (up->repeatable && !up->begun) {
        up->out_at += size;
    } else {
        rn_buffer_consume(&up->out, up->out_at + size);
        up->out_at = 0;
    }
}

/* What a kept connection has said before the request leaves us is no answer to it, even if it looks like one. */
static bool upstream_is_out_of_step(rn_upstream *up)
{
    return up->link->served && !up->sent_any && !up->begun && !rn_wire_is_quiet(up->link->wire);
}

static void upstream_send(rn_upstream *up)
{
    if (upstream_has_more(up) && upstream_is_out_of_step(up)) {
        upstream_broke(up, out_of_step);
        return;
    }
    while (!up->send_broken && upstream_has_more(up)) {
        const ration_text bytes = upstream_next_bytes(up);
        const ssize_t sent = rn_wire_send(up->link->wire, bytes.data, bytes.size);

        if (sent == RN_IO_AGAIN) {
            up->stalls++;
            return;
        }
        if (sent <= 0) {
            /* Perhaps it has answered before it closed. */
            up->send_broken = true;
            up->try_read = true;
            return;
        }
        upstream_mark_sent(up, (size_t)sent);
    }
}

static int upstream_queue(rn_upstream *up, ration_text bytes)
{
    char head[RN_HTTP1_CHUNK_HEAD];
    const size_t head_size = up->chunked ? rn_http1_chunk_head(head, bytes.size) : 0;
    const ration_text tail = {"\r\n", up->chunked ? 2 : 0};

    if (!rn_buffer_reserve(&up->out, head_size + bytes.size + tail.size))
        return RATION_ERR_NOMEM;
    rn_buffer_put(&up->out, (ration_text){head, head_size});
    rn_buffer_put(&up->out, bytes);
    rn_buffer_put(&up->out, tail);
    return RATION_OK;
}

int rn_upstream_write(rn_upstream *up, ration_text bytes)
{
    if (up->dead || !up->stream || up->finished)
        return RATION_ERR_INVALID;
    if (up->body_left >= 0 && bytes.size > (uint64_t)up->body_left)
        return RATION_ERR_INVALID;
    if (bytes.size > MAX_QUEUED || rn_buffer_size(&up->out) > MAX_QUEUED - bytes.size)
        return RATION_ERR_FULL;
    if (bytes.size > 0 && !up->send_broken) {
        const int err = upstream_queue(up, bytes);

        if (err != RATION_OK)
            return err;
    }
    if (up->body_left >= 0)
        up->body_left -= (int64_t)bytes.size;
    upstream_touch(up);
    if (rn_buffer_size(&up->out) < up->pool->options.full_bytes)
        return RN_FLOW_MORE;
    up->said_full = true;
    return RN_FLOW_FULL;
}

int rn_upstream_finish(rn_upstream *up, rn_http_fields trailers)
{
    if (up->dead || !up->stream || up->finished || up->body_left > 0)
        return RATION_ERR_INVALID;
    if (up->chunked && !up->send_broken) {
        const int err = rn_http1_write_last_chunk(&up->out, trailers);

        if (err != RATION_OK)
            return err;
    }
    up->finished = true;
    upstream_touch(up);
    return RATION_OK;
}

/* ---- receiving */

/* The answer is complete. The connection goes back first, so that the caller's next request finds it. */
static void upstream_complete(rn_upstream *up, bool clean)
{
    rn_link *link = up->link;

    up->link = NULL;
    up->connected = false;
    up->dead = true;
    upstream_touch(up);
    if (link != NULL && clean && up->parser.head.keep_alive && upstream_sent_all(up)) {
        rn_pool_keep(link);
    } else if (link != NULL) {
        rn_link_close(link);
    }
    up->handlers.on_end(up->user, up, up->parser.trailers);
}

/* Each keeps the call alive, so there must be an end to them. */
static void upstream_interim(rn_upstream *up)
{
    if (++up->interims > MAX_INTERIMS) {
        upstream_fail(up, RN_UPSTREAM_BROKEN, "too many interim responses");
    } else {
        rn_http1_begin(&up->parser, up->answers_head);
    }
}

static void upstream_parse(rn_upstream *up, ration_text *input)
{
    while (!up->paused && !up->dead && !up->failed) {
        ration_text body = {NULL, 0};

        switch (rn_http1_next(&up->parser, input, &body)) {
        case RN_HTTP1_MORE:
            return;
        case RN_HTTP1_HEAD:
            if (up->parser.head.status >= 200)
                up->handlers.on_head(up->user, up, &up->parser.head);
            break;
        case RN_HTTP1_BODY:
            up->handlers.on_body(up->user, up, body);
            break;
        case RN_HTTP1_END:
            if (up->parser.head.status < 200) {
                upstream_interim(up);
            } else {
                upstream_complete(up, input->size == 0 && rn_buffer_size(&up->in) == 0);
            }
            break;
        case RN_HTTP1_FAILED:
            upstream_fail(up, RN_UPSTREAM_BROKEN, up->parser.text);
            break;
        }
    }
}

static void upstream_parse_rest(rn_upstream *up)
{
    rn_buffer rest = up->in;
    ration_text input = rn_buffer_bytes(&rest);
    const size_t before = input.size;

    memset(&up->in, 0, sizeof up->in);
    upstream_parse(up, &input);
    rn_buffer_consume(&rest, before - input.size);
    up->in = rest;
}

static void upstream_at_end(rn_upstream *up, const char *text)
{
    switch (rn_http1_finish(&up->parser)) {
    case RN_HTTP1_END:
        upstream_complete(up, false);
        return;
    case RN_HTTP1_FAILED:
        upstream_fail(up, RN_UPSTREAM_BROKEN, up->parser.text);
        return;
    case RN_HTTP1_MORE:
    case RN_HTTP1_HEAD:
    case RN_HTTP1_BODY:
        break;
    }
    upstream_broke(up, text);
}

/* Bytes have come, so nothing will be sent again. */
static void upstream_begin_answer(rn_upstream *up)
{
    if (up->begun)
        return;
    up->begun = true;
    rn_buffer_consume(&up->out, up->out_at);
    up->out_at = 0;
}

/* One read. False: no more for now. */
static bool upstream_receive_part(rn_upstream *up)
{
    char *scratch = up->pool->scratch;
    const bool plain = !up->link->origin->tls;
    const ssize_t got = rn_wire_receive(up->link->wire, scratch, RN_POOL_SCRATCH);

    if (got == RN_IO_AGAIN)
        return false;
    if (got == RN_IO_END) {
        upstream_at_end(up, "connection closed before the first byte of a response");
        return false;
    }
    if (got == RN_IO_BROKEN) {
        upstream_broke(up, rn_wire_error(up->link->wire));
        return false;
    }
    if (up->link->served && !up->sent_any && !up->begun) {
        upstream_broke(up, out_of_step);
        return false;
    }
    up->moved = true;
    upstream_begin_answer(up);

    ration_text input = {scratch, (size_t)got};
    upstream_parse(up, &input);
    if (up->dead)
        return false;
    if (input.size > 0 && !rn_buffer_append(&up->in, input.data, input.size))
        upstream_fail(up, RN_UPSTREAM_BROKEN, "out of memory");
    return !plain || (size_t)got == RN_POOL_SCRATCH;
}

/* TLS may hold bytes that the socket does not tell of: read until there are none, or come back in the next turn. */
static void upstream_receive(rn_upstream *up)
{
    up->try_read = false;
    for (int i = 0; i < READS_PER_TURN; i++) {
        if (!up->connected || up->paused || up->dead || up->failed || rn_buffer_size(&up->in) > 0)
            return;
        if (!upstream_receive_part(up))
            return;
    }
    up->try_read = true;
    rn_loop_defer_next(up->pool->loop, &up->settle);
}

void rn_upstream_pause(rn_upstream *up)
{
    up->paused = true;
    upstream_touch(up);
}

void rn_upstream_resume(rn_upstream *up)
{
    up->paused = false;
    up->try_read = true;
    upstream_touch(up);
}

void rn_upstream_ready(rn_upstream *up, int status, int events)
{
    if (up->dead || up->failed)
        return;
    if (up->paused || rn_buffer_size(&up->in) > 0) {
        up->untimely = (events & UV_READABLE) != 0 || status < 0;
    } else if (status < 0 || (events & UV_READABLE) != 0) {
        upstream_receive(up);
    }
    upstream_touch(up);
}

/* ---- the turn's end */

/* With TLS, a send may wait for the peer to say something while the socket could take bytes all the time. After some
 * vain wake-ups it is tried again at intervals only, and when something can be read. */
static bool upstream_is_stalled(const rn_upstream *up)
{
    return up->stalls >= MAX_STALLS && up->link->origin->tls;
}

static int upstream_events(rn_upstream *up)
{
    const bool sends = upstream_has_more(up) && !up->send_broken;
    const bool reads = !up->paused && rn_buffer_size(&up->in) == 0;

    /* As in the server: polled for bytes until some come untimely. */
    if (reads)
        up->untimely = false;
    const int events = up->untimely ? 0 : UV_READABLE;

    if (!sends)
        return events;
    if (!upstream_is_stalled(up))
        return events | UV_WRITABLE;
    if (!rn_timer_is_set(&up->retry))
        (void)rn_timer_set(&up->retry, (ration_time){rn_loop_now(up->pool->loop).us + STALL_US});
    return events;
}

static void upstream_retry(void *user, ration_time now)
{
    rn_upstream *up = user;

    (void)now;
    upstream_touch(up);
}

static rn_upstream_wait upstream_waits_for(const rn_upstream *up)
{
    if (!up->connected || up->failed)
        return RN_UPSTREAM_WAIT_NONE; /* libcurl keeps the time of connecting */
    if (upstream_has_more(up) && !up->send_broken)
        return RN_UPSTREAM_WAIT_IDLE;
    if (up->paused)
        return RN_UPSTREAM_WAIT_NONE;
    if (up->begun)
        return RN_UPSTREAM_WAIT_IDLE;
    return upstream_sent_all(up) || up->send_broken ? RN_UPSTREAM_WAIT_FIRST : RN_UPSTREAM_WAIT_NONE;
}

void rn_upstream_expire(rn_upstream *up)
{
    const rn_upstream_options *o = &up->pool->options;
    const bool first = !up->begun && !upstream_has_more(up);
    char text[128];
    rn_builder b;

    rn_builder_init(&b, text, sizeof text);
    rn_builder_str(&b, first ? "no byte of a response within " : "no byte within ");
    rn_builder_duration(&b, first ? o->first_byte_timeout_us : o->idle_timeout_us);
    upstream_fail(up, RN_UPSTREAM_TIMEOUT, text);
}

void rn_upstream_discard(rn_upstream *up)
{
    rn_upstream_pool *pool = up->pool;

    up->dead = true;
    upstream_drop_link(up);
    rn_timer_stop(&up->retry);
    rn_loop_forget(pool->loop, &up->settle);
    rn_pool_wait(pool, up, RN_UPSTREAM_WAIT_NONE);
    TAILQ_REMOVE(&pool->upstreams, up, list);
    rn_origin_drop(up->origin);
    rn_http1_fini(&up->parser);
    rn_buffer_fini(&up->out);
    rn_buffer_fini(&up->in);
    free(up);
}

static void upstream_work(rn_upstream *up)
{
    if (up->connected && !up->failed) {
        upstream_send(up);
        if (rn_buffer_size(&up->in) > 0 && !up->paused)
            upstream_parse_rest(up);
        if (up->try_read && !up->dead)
            upstream_receive(up);
    }
    if (up->said_full && !up->dead && !up->failed && rn_buffer_size(&up->out) == 0) {
        up->said_full = false;
        if (up->handlers.on_drain != NULL)
            up->handlers.on_drain(up->user, up);
    }
    if (up->failed && !up->dead && !up->paused) {
        upstream_die(up);
        up->handlers.on_error(up->user, up, up->fault.kind, up->fault.text);
    }
}

static void upstream_settle(rn_deferred *work)
{
    rn_upstream *up = upstream_of(work);

    up->settling = true;
    if (!up->dead)
        upstream_work(up);
    up->settling = false;
    if (up->dead) {
        rn_upstream_discard(up);
        return;
    }
    if (up->connected)
        rn_wire_watch(up->link->wire, up->failed ? 0 : upstream_events(up));
    rn_pool_wait(up->pool, up, upstream_waits_for(up));
}

/* ---- the start */

static int upstream_write_head(rn_upstream *up, const rn_upstream_request *request)
{
    rn_http1_out out = {
        .method = request->method,
        .target = request->target,
        .host = rn_origin_authority(request->origin),
        .fields = request->fields,
    };
    const int64_t length = request->stream ? request->body_bytes : (int64_t)request->body.size;
    const bool usual = rn_text_is(request->method, "POST") || rn_text_is(request->method, "PUT") ||
                       rn_text_is(request->method, "PATCH");

    out.length = length;
    if (length == RN_LENGTH_UNKNOWN) {
        out.framing = RN_HTTP1_FRAMING_CHUNKED;
    } else if (length > 0 || usual) {
        out.framing = RN_HTTP1_FRAMING_LENGTH; /* methods that have no body by nature say nothing of one */
    }
    return rn_http1_write_request(&up->out, &out);
}

static int upstream_init(rn_upstream *up, const rn_upstream_request *request)
{
    const int err = upstream_write_head(up, request);

    if (err != RATION_OK)
        return err;
    up->answers_head = rn_text_is(request->method, "HEAD");
    up->stream = request->stream;
    up->chunked = request->stream && request->body_bytes == RN_LENGTH_UNKNOWN;
    up->body_left = request->stream ? request->body_bytes : 0;
    up->finished = !request->stream;
    up->repeatable = request->repeatable && !request->stream;
    if (!request->stream && request->body.size <= COPIED_BODY)
        return rn_buffer_append(&up->out, request->body.data, request->body.size) ? RATION_OK : RATION_ERR_NOMEM;
    if (!request->stream)
        up->body = request->body;
    return RATION_OK;
}

int rn_upstream_start(rn_upstream_pool *pool, const rn_upstream_request *request, const rn_upstream_handlers *handlers,
                      void *user, rn_upstream **out)
{
    if (request->origin == NULL || handlers->on_head == NULL || handlers->on_body == NULL || handlers->on_end == NULL ||
        handlers->on_error == NULL || (request->stream && request->body_bytes < RN_LENGTH_UNKNOWN))
        return RATION_ERR_INVALID;

    rn_upstream *up = calloc(1, sizeof *up);
    if (up == NULL)
        return RATION_ERR_NOMEM;
    up->pool = pool;
    up->origin = request->origin;
    up->handlers = *handlers;
    up->user = user;
    up->settle.fn = upstream_settle;
    rn_timer_init(&up->retry, pool->loop, upstream_retry, up);

    const int err = upstream_init(up, request);
    if (err != RATION_OK) {
        rn_buffer_fini(&up->out);
        free(up);
        return err;
    }
    rn_http1_init(&up->parser, true, pool->options.max_head_bytes);
    rn_http1_begin(&up->parser, up->answers_head);
    rn_origin_hold(up->origin);
    TAILQ_INSERT_TAIL(&pool->upstreams, up, list);
    upstream_connect(up, false);
    *out = up;
    return RATION_OK;
}

void rn_upstream_abort(rn_upstream *up)
{
    if (!up->dead)
        upstream_die(up);
}
