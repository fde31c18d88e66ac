/* SPDX-License-Identifier: MIT */
/*
 * One connection of the server, and the one request that it carries at a time.
 *
 * Calls from outside only change state and ask for `settle`, which runs once at the end of the turn and does everything
 * that follows: parse what was left over, send what is queued, say on_drain, change what is polled for, file the
 * deadline, close. So no handler is called from inside a call, and nothing dies while something of it is on the stack.
 *
 * What comes in one turn is first read from all sockets, then parsed and acted on, then answered: the kernel's code and
 * ours are each more than the processor's first cache holds, and would drive one another out at every request. The
 * bytes lie side by side in the server's read buffer, which parts of a turn share when much comes.
 *
 * While a request waits, nothing is read: the socket is polled for the peer's hanging up alone, and the read buffer is
 * the server's, so a waiting connection owns its head and no more. A peer that closes its sending side has gone, as
 * other proxies see it too.
 *
 * Invariants: state CALL means that the handlers own the request; `in` is only filled while the parser may not go on;
 * `arrived` is in the read buffer, and not empty exactly while the connection is in the server's list of that name;
 * the next request is parsed only when the response before it is finished and the queue is not full.
 */

#include "net/inbound.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/text.h"
#include "net/http1_write.h"

#define MAX_QUEUED (8U << 20)   /* of a handler that does not mind RN_FLOW_FULL */
#define MAX_DRAINED (256 << 10) /* of a body nobody wants, to keep the connection */
#define MAX_LINGERED (1U << 20)
#define DIRECT_BYTES 8192 /* parts from here on are sent without a copy */

static void inbound_settle(rn_deferred *work);

static rn_inbound *inbound_of(rn_deferred *work)
{
    return (rn_inbound *)(void *)((char *)work - offsetof(rn_inbound, settle));
}

/* Settle at the end of this turn. What asks while settling is served in the next turn, so that a fast peer and a
 * willing handler leave room for the others. */
static void inbound_touch(rn_inbound *c)
{
    if (c->settling) {
        rn_loop_defer_next(c->server->loop, &c->settle);
    } else {
        rn_loop_defer(c->server->loop, &c->settle);
    }
}

static void inbound_enter(rn_inbound *c, rn_inbound_state state)
{
    c->state = state;
    inbound_touch(c);
}

/* Closing will be a reset. Where the end of the connection ends the body, nothing else tells that it is not
 * complete. */
static void inbound_reset(rn_inbound *c)
{
    const struct linger now = {1, 0};

    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

/* The one exit of a request that was not answered to its end. */
static void inbound_gone(rn_inbound *c, rn_gone why, rn_inbound_state next)
{
    const bool running = c->state == RN_INBOUND_CALL;

    if (running && c->started && c->until_close)
        inbound_reset(c);
    inbound_enter(c, next);
    if (running && c->server->handlers.on_gone != NULL)
        c->server->handlers.on_gone(c->server->user, c, why);
}

/* ---- sending */

/* Whether a call that failed may succeed later. */
static bool is_transient(int err)
{
    return err == EAGAIN || err == EINTR;
}

static void inbound_sent(rn_inbound *c, ssize_t sent)
{
    if (sent > 0) {
        c->moved = true;
    } else if (sent < 0 && !is_transient(errno)) {
        c->lost = true;
    }
}

static void inbound_flush(rn_inbound *c)
{
    while (rn_buffer_size(&c->out) > 0 && !c->lost) {
        const ration_text bytes = rn_buffer_bytes(&c->out);
        const ssize_t sent = send(c->fd, bytes.data, bytes.size, MSG_NOSIGNAL);

        inbound_sent(c, sent);
        if (sent <= 0)
            return;
        rn_buffer_consume(&c->out, (size_t)sent);
        if ((size_t)sent < bytes.size)
            return;
    }
}

/* A large part of the body goes out with what is queued in one call; only what the socket does not take is copied. */
static void inbound_send_parts(rn_inbound *c, struct iovec *parts, size_t count)
{
    const ration_text queued = rn_buffer_bytes(&c->out);
    struct iovec all[4];
    struct msghdr message = {.msg_iov = all, .msg_iovlen = count + 1};

    /* NOLINTNEXTLINE(performance-no-int-to-ptr): iovec has no const. */
    all[0] = (struct iovec){(void *)(uintptr_t)queued.data, queued.size};
    memcpy(all + 1, parts, count * sizeof *parts);

    const ssize_t sent = sendmsg(c->fd, &message, MSG_NOSIGNAL);
    inbound_sent(c, sent);
    size_t left = sent > 0 ? (size_t)sent : 0;
    const size_t of_queue = left < queued.size ? left : queued.size;
    if (of_queue > 0)
        rn_buffer_consume(&c->out, of_queue);
    left -= of_queue;
    for (size_t i = 0; i < count; i++) {
        const size_t done = left < parts[i].iov_len ? left : parts[i].iov_len;

        left -= done;
        if (!rn_buffer_append(&c->out, (const char *)parts[i].iov_base + done, parts[i].iov_len - done))
            c->lost = true;
    }
}

/* ---- responses */

static bool is_bodiless(const rn_inbound *c, int status)
{
    return rn_text_is(c->parser.head.method, "HEAD") || status == 204 || status == 304;
}

/* What is still to come of the request is too much to be dropped, or may never come. */
static bool rest_is_dear(const rn_inbound *c)
{
    const int64_t body = c->parser.head.body_bytes;

    if (c->request_done || body == 0)
        return false;
    return (c->parser.head.expect && !c->continued && c->body_seen == 0) || body - c->body_seen > MAX_DRAINED;
}

/* How the response to this request is framed. */
static void inbound_frame(rn_inbound *c, const rn_response *response, int64_t length, rn_http1_out *out)
{
    const bool unknown = length == RN_LENGTH_UNKNOWN;

    c->bodiless = is_bodiless(c, response->status);
    c->chunked = unknown && !c->bodiless && c->parser.head.minor > 0;
    c->until_close = unknown && !c->bodiless && !c->chunked;
    c->close_after =
        c->close_after || !c->parser.head.keep_alive || c->server->closing || c->until_close || rest_is_dear(c);
    c->body_left = length;

    out->status = response->status;
    out->reason = response->reason;
    out->fields = response->fields;
    out->framing = c->chunked ? RN_HTTP1_FRAMING_CHUNKED : RN_HTTP1_FRAMING_LENGTH;
    if (unknown && !c->chunked)
        out->framing = RN_HTTP1_FRAMING_NONE;
    if (response->status == 204 || (response->status == 304 && length == 0))
        out->framing = RN_HTTP1_FRAMING_NONE;
    out->length = length;
    if (c->close_after) {
        out->connection = "close";
    } else if (c->parser.head.minor == 0) {
        out->connection = "keep-alive";
    }
}

static int inbound_write_head(rn_inbound *c, const rn_response *response, int64_t length)
{
    rn_http1_out out = {0};

    if (response->status < 200 || response->status > 599 || length < RN_LENGTH_UNKNOWN)
        return RATION_ERR_INVALID;
    inbound_frame(c, response, length, &out);
    return rn_http1_write_response(&c->out, &out);
}

/* Request and response are both complete. */
static void inbound_next(rn_inbound *c)
{
    if (c->server->closing) {
        inbound_enter(c, RN_INBOUND_CLOSING);
        return;
    }
    rn_http1_begin(&c->parser, false);
    c->request_done = false;
    inbound_enter(c, RN_INBOUND_HEAD);
}

/* The response is complete: what becomes of the connection? */
static void inbound_answered(rn_inbound *c)
{
    c->user = NULL;
    c->reading = c->started = c->said_full = false;
    c->dropped = 0;
    if (c->close_after) {
        inbound_enter(c, RN_INBOUND_CLOSING);
    } else if (c->request_done) {
        inbound_next(c);
    } else {
        inbound_enter(c, RN_INBOUND_DRAIN);
    }
}

int rn_inbound_respond(rn_inbound *in, const rn_response *response, ration_text body)
{
    if (in->state != RN_INBOUND_CALL || in->started || body.size > INT64_MAX)
        return RATION_ERR_INVALID;
    /* Room for both at once: a head without its body must not be left behind. */
    if (!rn_buffer_reserve(&in->out, body.size + 512))
        return RATION_ERR_NOMEM;

    const int err = inbound_write_head(in, response, (int64_t)body.size);
    if (err != RATION_OK)
        return err;
    if (!in->bodiless && !rn_buffer_append(&in->out, body.data, body.size))
        in->lost = true;
    inbound_answered(in);
    return RATION_OK;
}

int rn_inbound_start(rn_inbound *in, const rn_response *response)
{
    if (in->state != RN_INBOUND_CALL || in->started)
        return RATION_ERR_INVALID;

    const int err = inbound_write_head(in, response, response->body_bytes);
    if (err != RATION_OK)
        return err;
    in->started = true;
    inbound_touch(in);
    return RATION_OK;
}

bool rn_inbound_started(const rn_inbound *in)
{
    return in->started;
}

static int inbound_queue(rn_inbound *c, ration_text bytes)
{
    char head[RN_HTTP1_CHUNK_HEAD];
    const size_t head_size = c->chunked ? rn_http1_chunk_head(head, bytes.size) : 0;
    char tail[] = {'\r', '\n'};
    const size_t tail_size = c->chunked ? sizeof tail : 0;

    if (bytes.size >= DIRECT_BYTES && !c->lost) {
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): iovec has no const. */
        struct iovec parts[] = {{head, head_size}, {(void *)(uintptr_t)bytes.data, bytes.size}, {tail, tail_size}};

        inbound_send_parts(c, parts, sizeof parts / sizeof parts[0]);
        return RATION_OK;
    }
    if (!rn_buffer_reserve(&c->out, head_size + bytes.size + tail_size))
        return RATION_ERR_NOMEM;
    rn_buffer_put(&c->out, (ration_text){head, head_size});
    rn_buffer_put(&c->out, bytes);
    rn_buffer_put(&c->out, (ration_text){tail, tail_size});
    return RATION_OK;
}

int rn_inbound_write(rn_inbound *in, ration_text bytes)
{
    if (in->state != RN_INBOUND_CALL || !in->started)
        return RATION_ERR_INVALID;
    if (in->body_left >= 0 && !in->bodiless && bytes.size > (uint64_t)in->body_left)
        return RATION_ERR_INVALID;
    if (bytes.size > MAX_QUEUED || rn_buffer_size(&in->out) > MAX_QUEUED - bytes.size)
        return RATION_ERR_FULL;
    if (!in->bodiless && bytes.size > 0) {
        const int err = inbound_queue(in, bytes);

        if (err != RATION_OK)
            return err;
        if (in->body_left >= 0)
            in->body_left -= (int64_t)bytes.size;
        inbound_touch(in);
    }
    if (rn_buffer_size(&in->out) < in->server->options.full_bytes)
        return RN_FLOW_MORE;
    in->said_full = true;
    return RN_FLOW_FULL;
}

size_t rn_inbound_queued(const rn_inbound *in)
{
    return rn_buffer_size(&in->out);
}

void rn_inbound_finish(rn_inbound *in, rn_http_fields trailers)
{
    if (in->state != RN_INBOUND_CALL)
        return;

    const bool cut_short = !in->started || (in->body_left > 0 && !in->bodiless);
    if (cut_short || (in->chunked && rn_http1_write_last_chunk(&in->out, trailers) != RATION_OK)) {
        rn_inbound_abort(in);
        return;
    }
    inbound_answered(in);
}

void rn_inbound_abort(rn_inbound *in)
{
    if (in->state != RN_INBOUND_CALL)
        return;
    inbound_flush(in);
    if (in->until_close || !in->started)
        inbound_reset(in);
    in->user = NULL;
    inbound_enter(in, RN_INBOUND_DEAD);
}

/* An answer of our own to what is no request, or to one that took too long; then the connection ends. */
static void inbound_refuse(rn_inbound *c, int status, const char *text, rn_gone why)
{
    if (!c->started) {
        char body[160];
        rn_builder b;
        static const rn_http_field plain = {{"Content-Type", 12}, {"text/plain", 10}};

        rn_builder_init(&b, body, sizeof body);
        rn_builder_str(&b, text);
        rn_builder_char(&b, '\n');
        const rn_http1_out out = {.status = status,
                                  .framing = RN_HTTP1_FRAMING_LENGTH,
                                  .length = (int64_t)b.used,
                                  .connection = "close",
                                  .fields = {&plain, 1}};
        if (rn_http1_write_response(&c->out, &out) != RATION_OK || !rn_buffer_append(&c->out, body, b.used))
            c->lost = true;
    }
    c->dropped = 0;
    inbound_gone(c, why, c->started ? RN_INBOUND_DEAD : RN_INBOUND_CLOSING);
}

/* ---- requests */

const rn_http_head *rn_inbound_head(const rn_inbound *in)
{
    return &in->parser.head;
}

rn_server *rn_inbound_server(const rn_inbound *in)
{
    return in->server;
}

void rn_inbound_set_user(rn_inbound *in, void *user)
{
    in->user = user;
}

void *rn_inbound_user(const rn_inbound *in)
{
    return in->user;
}

void rn_inbound_resume(rn_inbound *in)
{
    if (in->state != RN_INBOUND_CALL || in->request_done)
        return;
    in->reading = true;
    inbound_touch(in);
}

/* The body is wanted, its sender waits to hear so, and none of it has come. */
static void inbound_continue(rn_inbound *c)
{
    if (!c->parser.head.expect || c->state != RN_INBOUND_CALL || !c->reading)
        return;
    if (c->continued || c->started || c->body_seen > 0 || c->parser.head.body_bytes == 0)
        return;
    c->continued = true;
    if (!rn_buffer_append(&c->out, "HTTP/1.1 100 Continue\r\n\r\n", 25))
        c->lost = true;
}

void rn_inbound_pause(rn_inbound *in)
{
    in->reading = false;
    inbound_touch(in);
}

static void inbound_begin_request(rn_inbound *c)
{
    const rn_http_head *head = &c->parser.head;
    const int64_t max_body = c->server->options.max_body_bytes;

    c->served = true;
    c->reading = c->request_done = c->continued = c->started = c->chunked = c->bodiless = c->until_close = false;
    c->said_full = false;
    c->body_seen = c->body_left = 0;
    /* An offer of h2c may be passed over (RFC 9110, 7.8), and Java's client makes it with every request. */
    if (head->upgrade.data != NULL && !rn_text_is_nocase(head->upgrade, "h2c")) {
        inbound_refuse(c, 501, "Upgrade is not supported", RN_GONE_MALFORMED);
        return;
    }
    if (max_body > 0 && head->body_bytes > max_body) {
        inbound_refuse(c, 413, "body too large", RN_GONE_MALFORMED);
        return;
    }
    c->state = RN_INBOUND_CALL;
    c->server->handlers.on_request(c->server->user, c, head);
}

static void inbound_take_body(rn_inbound *c, ration_text body)
{
    const int64_t max_body = c->server->options.max_body_bytes;

    c->body_seen += (int64_t)body.size;
    if (c->state == RN_INBOUND_DRAIN) {
        c->dropped += body.size;
        if (c->dropped > MAX_DRAINED)
            inbound_enter(c, RN_INBOUND_CLOSING);
        return;
    }
    if (max_body > 0 && c->body_seen > max_body) {
        inbound_refuse(c, 413, "body too large", RN_GONE_MALFORMED);
    } else if (c->server->handlers.on_body != NULL) {
        c->server->handlers.on_body(c->server->user, c, body);
    }
}

static void inbound_end_request(rn_inbound *c)
{
    c->request_done = true;
    c->reading = false;
    if (c->state == RN_INBOUND_DRAIN) {
        inbound_next(c);
    } else if (c->server->handlers.on_end != NULL) {
        c->server->handlers.on_end(c->server->user, c, c->parser.trailers);
    }
}

/* Whether the parser may go on now. */
static bool inbound_may_parse(const rn_inbound *c)
{
    switch (c->state) {
    case RN_INBOUND_HEAD:
        return rn_buffer_size(&c->out) < c->server->options.full_bytes;
    case RN_INBOUND_CALL:
        return c->reading;
    case RN_INBOUND_DRAIN:
        return true;
    case RN_INBOUND_CLOSING:
    case RN_INBOUND_LINGER:
    case RN_INBOUND_DEAD:
        return false;
    }
    assert(false && "no such state");
    return false;
}

static void inbound_parse(rn_inbound *c, ration_text *input)
{
    while (inbound_may_parse(c)) {
        ration_text body = {NULL, 0};

        switch (rn_http1_next(&c->parser, input, &body)) {
        case RN_HTTP1_MORE:
            return;
        case RN_HTTP1_HEAD:
            inbound_begin_request(c);
            break;
        case RN_HTTP1_BODY:
            inbound_take_body(c, body);
            break;
        case RN_HTTP1_END:
            inbound_end_request(c);
            break;
        case RN_HTTP1_FAILED:
            if (c->state == RN_INBOUND_DRAIN) {
                inbound_enter(c, RN_INBOUND_CLOSING);
            } else {
                inbound_refuse(c, c->parser.status, c->parser.text, RN_GONE_MALFORMED);
            }
            break;
        }
    }
}

/* Parse what was left over; what is left again stays. */
static void inbound_parse_rest(rn_inbound *c)
{
    rn_buffer rest = c->in;
    ration_text input = rn_buffer_bytes(&rest);
    const size_t before = input.size;

    memset(&c->in, 0, sizeof c->in);
    inbound_parse(c, &input);
    rn_buffer_consume(&rest, before - input.size);
    c->in = rest;
}

/* Parse what was read; it stays if the parser may not go on. */
static void inbound_take(rn_inbound *c)
{
    ration_text input = c->arrived;

    TAILQ_REMOVE(&c->server->arrived, c, arrived_link);
    c->arrived = (ration_text){NULL, 0};
    inbound_parse(c, &input);
    if (input.size > 0 && !rn_buffer_append(&c->in, input.data, input.size))
        c->lost = true;
}

void rn_inbound_take_all(rn_server *server)
{
    while (!TAILQ_EMPTY(&server->arrived))
        inbound_take(TAILQ_FIRST(&server->arrived));
    server->scratch_used = 0;
}

static void inbound_receive(rn_inbound *c)
{
    rn_server *server = c->server;

    if (server->scratch_used > RN_SERVER_SCRATCH / 2)
        rn_inbound_take_all(server);
    char *to = server->scratch + server->scratch_used;
    const ssize_t got = recv(c->fd, to, RN_SERVER_SCRATCH - server->scratch_used, 0);

    if (got < 0) {
        if (!is_transient(errno))
            inbound_gone(c, RN_GONE_CLIENT, RN_INBOUND_DEAD);
        return;
    }
    if (got == 0) {
        /* What is answered may still be sent; the rest has nobody to answer to. */
        inbound_gone(c, RN_GONE_CLIENT, c->state == RN_INBOUND_DRAIN ? RN_INBOUND_CLOSING : RN_INBOUND_DEAD);
        return;
    }
    c->moved = true;
    if (c->state == RN_INBOUND_LINGER) {
        c->dropped += (size_t)got;
        if (c->dropped > MAX_LINGERED)
            inbound_enter(c, RN_INBOUND_DEAD);
        return;
    }
    c->arrived = (ration_text){to, (size_t)got};
    server->scratch_used += (size_t)got;
    TAILQ_INSERT_TAIL(&server->arrived, c, arrived_link);
    rn_loop_defer(server->loop, &server->take);
}

/* ---- the turn's end */

static bool inbound_reads(const rn_inbound *c)
{
    return c->state == RN_INBOUND_LINGER || (inbound_may_parse(c) && rn_buffer_size(&c->in) == 0);
}

static void inbound_ready(uv_poll_t *poll, int status, int events)
{
    rn_inbound *c = poll->data;

    if (c->arrived.size > 0)
        inbound_take(c);
    if (c->state == RN_INBOUND_DEAD)
        return;
    /* Who reads sees the end by reading, behind the bytes before it. */
    if (status >= 0 && (events & UV_READABLE) != 0 && inbound_reads(c)) {
        inbound_receive(c);
    } else if (status < 0 || (events & UV_DISCONNECT) != 0) {
        inbound_gone(c, RN_GONE_CLIENT, RN_INBOUND_DEAD);
    } else if ((events & UV_READABLE) != 0) {
        c->untimely = true;
    }
    inbound_touch(c);
}

/* Changing what is polled for costs libuv two or three system calls. So the socket is polled for bytes also while none
 * are wanted, until some come. */
static int inbound_events(rn_inbound *c)
{
    const int writes = rn_buffer_size(&c->out) > 0 ? UV_WRITABLE : 0;

    if (inbound_reads(c))
        c->untimely = false;
    return writes | UV_DISCONNECT | (c->untimely ? 0 : UV_READABLE);
}

static rn_inbound_wait inbound_waits_for(const rn_inbound *c)
{
    if (rn_buffer_size(&c->out) > 0)
        return RN_WAIT_WRITE;
    switch (c->state) {
    case RN_INBOUND_HEAD:
        return c->served && !rn_http1_is_amid(&c->parser) ? RN_WAIT_IDLE : RN_WAIT_HEAD;
    case RN_INBOUND_CALL:
        return c->reading ? RN_WAIT_BODY : RN_WAIT_NONE;
    case RN_INBOUND_DRAIN:
        return RN_WAIT_BODY;
    case RN_INBOUND_CLOSING:
    case RN_INBOUND_LINGER:
        return RN_WAIT_LINGER;
    case RN_INBOUND_DEAD:
        return RN_WAIT_NONE;
    }
    assert(false && "no such state");
    return RN_WAIT_NONE;
}

/* All is sent, and no more will be. With bytes unread, closing would send a reset that may overtake the answer. */
static void inbound_end_sending(rn_inbound *c)
{
    const bool all_read = c->request_done && rn_buffer_size(&c->in) == 0;

    if (all_read) {
        c->state = RN_INBOUND_DEAD;
        return;
    }
    (void)shutdown(c->fd, SHUT_WR);
    rn_buffer_fini(&c->in);
    c->dropped = 0;
    c->state = RN_INBOUND_LINGER;
}

static void inbound_poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void rn_inbound_close_now(rn_inbound *c)
{
    rn_server *server = c->server;

    if (c->arrived.size > 0)
        TAILQ_REMOVE(&server->arrived, c, arrived_link);
    rn_loop_forget(server->loop, &c->settle);
    rn_server_wait(server, c, RN_WAIT_NONE);
    rn_server_forget(server, c);
    rn_http1_fini(&c->parser);
    rn_buffer_fini(&c->in);
    rn_buffer_fini(&c->out);
    uv_close((uv_handle_t *)&c->poll, inbound_poll_closed);
    (void)close(c->fd);
}

static void inbound_settle(rn_deferred *work)
{
    rn_inbound *c = inbound_of(work);

    c->settling = true;
    /* A request without a body owes its end even if nothing is left over. */
    if (inbound_may_parse(c) && (c->state != RN_INBOUND_HEAD || rn_buffer_size(&c->in) > 0))
        inbound_parse_rest(c);
    const bool choked = c->state == RN_INBOUND_HEAD && !inbound_may_parse(c);
    inbound_continue(c);
    inbound_flush(c);
    if (c->lost && c->state != RN_INBOUND_DEAD)
        inbound_gone(c, RN_GONE_CLIENT, RN_INBOUND_DEAD);

    const bool sent = rn_buffer_size(&c->out) == 0;
    if (sent && c->said_full && c->state == RN_INBOUND_CALL) {
        c->said_full = false;
        if (c->server->handlers.on_drain != NULL)
            c->server->handlers.on_drain(c->server->user, c);
    }
    if (sent && c->state == RN_INBOUND_CLOSING)
        inbound_end_sending(c);
    c->settling = false;
    if (c->state == RN_INBOUND_DEAD) {
        rn_inbound_close_now(c);
        return;
    }

    const int events = inbound_events(c);
    if (events != c->watched && uv_poll_start(&c->poll, events, inbound_ready) == 0)
        c->watched = events;
    rn_server_wait(c->server, c, inbound_waits_for(c));
    /* Requests that came before their turn wait here and not in the socket: no event would call for them. */
    if (choked && inbound_may_parse(c) && rn_buffer_size(&c->in) > 0)
        rn_loop_defer_next(c->server->loop, &c->settle);
}

/* ---- for the server */

int rn_inbound_open(rn_server *server, int fd)
{
    rn_inbound *c = calloc(1, sizeof *c);

    if (c == NULL || uv_poll_init(rn_loop_uv(server->loop), &c->poll, fd) != 0) {
        free(c);
        (void)close(fd);
        return RATION_ERR_NOMEM;
    }
    c->server = server;
    c->fd = fd;
    c->poll.data = c;
    c->settle.fn = inbound_settle;
    c->out.spare = &server->spare;
    rn_http1_init(&c->parser, false, server->options.max_head_bytes);
    TAILQ_INSERT_TAIL(&server->connections, c, link);
    server->count++;
    inbound_touch(c);
    return RATION_OK;
}

void rn_inbound_expire(rn_inbound *c)
{
    switch (c->wait) {
    case RN_WAIT_HEAD:
        if (rn_http1_is_amid(&c->parser)) {
            inbound_refuse(c, 408, "request took too long", RN_GONE_TIMEOUT);
        } else {
            inbound_enter(c, RN_INBOUND_DEAD);
        }
        return;
    case RN_WAIT_BODY:
        if (c->state == RN_INBOUND_CALL) {
            inbound_refuse(c, 408, "request took too long", RN_GONE_TIMEOUT);
        } else {
            inbound_enter(c, RN_INBOUND_CLOSING);
        }
        return;
    case RN_WAIT_IDLE:
    case RN_WAIT_WRITE:
    case RN_WAIT_LINGER:
        inbound_gone(c, RN_GONE_TIMEOUT, RN_INBOUND_DEAD);
        return;
    case RN_WAIT_NONE:
    case RN_WAIT_COUNT:
        break;
    }
    assert(false && "nothing was waited for");
}

void rn_inbound_retire(rn_inbound *c)
{
    if (c->state == RN_INBOUND_HEAD) {
        inbound_enter(c, RN_INBOUND_DEAD);
    } else {
        inbound_touch(c);
    }
}

void rn_inbound_break(rn_inbound *c, bool tell)
{
    if (c->state == RN_INBOUND_DEAD)
        return;
    if (tell) {
        inbound_gone(c, RN_GONE_ABORTED, RN_INBOUND_DEAD);
    } else {
        inbound_enter(c, RN_INBOUND_DEAD);
    }
}
