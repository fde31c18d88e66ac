/* SPDX-License-Identifier: MIT */
/*
 * Requests over loopback, in the loop of the test: the other side is a wire that says what the row says. What the
 * handlers hear is written down and compared.
 */

#include "support/check.h"
#include "support/wire.h"

#include "net/connection.h"

typedef struct stage {
    rn_loop *loop;
    rn_upstream_pool *pool;
    rn_origin *origin;
    int listener;
    wire w; /* the connection accepted last */
    rn_upstream *up;
    char heard[2048];
    size_t body_bytes;
    size_t drains;
    bool over;
    bool pause_at_head;
    bool abort_at_head;
} stage;

static void hear(stage *s, const char *what, size_t size)
{
    const size_t used = strlen(s->heard);

    assert_true(used + size < sizeof s->heard);
    memcpy(s->heard + used, what, size);
    s->heard[used + size] = '\0';
}

static void hear_str(stage *s, const char *what)
{
    hear(s, what, strlen(what));
}

static void on_head(void *user, rn_upstream *up, const rn_http_head *head)
{
    stage *s = user;
    char line[64];

    CHECK(up == s->up);
    (void)snprintf(line, sizeof line, "%d %lld ", head->status, (long long)head->body_bytes);
    hear_str(s, line);
    if (s->pause_at_head)
        rn_upstream_pause(up);
    if (s->abort_at_head) {
        rn_upstream_abort(up);
        s->up = NULL;
        s->over = true;
    }
}

static void on_body(void *user, rn_upstream *up, ration_text bytes)
{
    stage *s = user;

    CHECK(up == s->up);
    s->body_bytes += bytes.size;
    if (bytes.size < 64)
        hear(s, bytes.data, bytes.size);
}

static void on_end(void *user, rn_upstream *up, rn_http_fields trailers)
{
    stage *s = user;

    CHECK(up == s->up);
    hear_str(s, trailers.count > 0 ? " end+trailers" : " end");
    s->up = NULL;
    s->over = true;
}

static void on_error(void *user, rn_upstream *up, rn_upstream_fault fault, const char *text)
{
    stage *s = user;

    CHECK(up == s->up);
    hear_str(s, rn_upstream_fault_name(fault));
    hear_str(s, ": ");
    hear_str(s, text);
    s->up = NULL;
    s->over = true;
}

static void on_drain(void *user, rn_upstream *up)
{
    stage *s = user;

    CHECK(up == s->up);
    s->drains++;
}

static const rn_upstream_handlers handlers = {on_head, on_body, on_end, on_error, on_drain};

static ration_text text(const char *s)
{
    return ration_text_of(s);
}

static void open_stage(stage *s, const rn_upstream_options *options)
{
    rn_origin_options origin = {.host = "127.0.0.1"};

    memset(s, 0, sizeof *s);
    s->listener = wire_listener(&origin.port);
    CHECK_EQ(rn_loop_new(&s->loop), RATION_OK);
    CHECK_EQ(rn_upstream_pool_new(s->loop, options, &s->pool), RATION_OK);
    CHECK_EQ(rn_origin_acquire(s->pool, &origin, &s->origin), RATION_OK);
}

static void close_stage(stage *s)
{
    wire_close(&s->w);
    (void)close(s->listener);
    rn_origin_release(s->origin);
    rn_upstream_pool_free(s->pool);
    rn_loop_free(s->loop);
}

static void ask(stage *s, const rn_upstream_request *request)
{
    s->heard[0] = '\0';
    s->over = false;
    s->body_bytes = 0;
    CHECK_EQ(rn_upstream_start(s->pool, request, &handlers, s, &s->up), RATION_OK);
}

static void get(stage *s)
{
    const rn_upstream_request request = {
        .origin = s->origin, .method = text("GET"), .target = text("/x"), .repeatable = true};

    ask(s, &request);
}

/* Accept, replacing the connection before; until the request has come. */
static void meet(stage *s, const char *request)
{
    wire_close(&s->w);
    RUN_UNTIL(s->loop, wire_accept(&s->w, s->loop, s->listener));
    RUN_UNTIL(s->loop, wire_has(&s->w, request));
}

#define END "\r\n\r\n"

static const struct {
    const char *why, *method, *answer, *want;
    bool closes; /* the other side, after its answer */
    bool kept;   /* the connection, afterwards */
} answers[] = {
    {"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2" END "hi", "200 2 hi end", false, true},
    {"chunks and trailers", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked" END "2\r\nhi\r\n0\r\nT: 1" END,
     "200 -1 hi end+trailers", false, true},
    {"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2" END, "200 0  end", false, true},
    {"204", "GET", "HTTP/1.1 204 No Content" END, "204 0  end", false, true},
    {"304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9" END, "304 0  end", false, true},
    {"1xx are passed over", "GET",
     "HTTP/1.1 100 Continue" END "HTTP/1.1 103 Early Hints\r\nLink: x" END "HTTP/1.1 200 OK\r\nContent-Length: 0" END,
     "200 0  end", false, true},
    {"close", "GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2" END "hi", "200 2 hi end", false,
     false},
    {"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 2" END "hi", "200 2 hi end", false, false},
    {"until close", "GET", "HTTP/1.1 200 OK" END "hi", "200 -1 hi end", true, false},
    {"bytes behind the answer", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2" END "hiHTTP/1.1 200 OK" END,
     "200 2 hi end", false, false},
    {"closed at once", "GET", "", "upstream_broken: connection closed before the first byte of a response", true,
     false},
    {"closed in the head", "GET", "HTTP/1.1 200 O", "upstream_broken: connection closed amid the head", true, false},
    {"closed in the body", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5" END "hi",
     "200 5 hiupstream_broken: connection closed amid the body", true, false},
    {"closed in a chunk", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked" END "5\r\nhi",
     "200 -1 hiupstream_broken: connection closed amid the body", true, false},
    {"no HTTP", "GET", "SSH-2.0-OpenSSH_9.2\r\n", "upstream_broken: no HTTP", false, false},
    {"folded line", "GET", "HTTP/1.1 200 OK\r\nA: b\r\n c" END, "upstream_broken: folded line", false, false},
    {"101", "GET", "HTTP/1.1 101 Switching Protocols" END, "upstream_broken: protocol switched unasked", false, false},
};

static void answers_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        rn_upstream_stats stats;
        stage s;

        CHECK_ROW(answers[i].why);
        open_stage(&s, NULL);
        const rn_upstream_request request = {
            .origin = s.origin, .method = text(answers[i].method), .target = text("/x"), .repeatable = true};
        ask(&s, &request);
        meet(&s, END);
        wire_send(&s.w, answers[i].answer);
        if (answers[i].closes)
            (void)shutdown(s.w.fd, SHUT_WR);
        RUN_UNTIL(s.loop, s.over);
        CHECK_STR(s.heard, answers[i].want);
        rn_upstream_pool_stats(s.pool, &stats);
        CHECK_EQ(stats.idle, answers[i].kept ? 1 : 0);
        if (!answers[i].kept)
            RUN_UNTIL(s.loop, s.w.closed);
        close_stage(&s);
    }
    CHECK_ROW(NULL);
}

static void requests_are_written(void **state)
{
    static const rn_http_field items[] = {{{"A", 1}, {"b", 1}}, {{"Connection", 10}, {"x", 1}}};
    char authority[32];
    char want[256];
    stage s;

    (void)state;
    open_stage(&s, NULL);
    const ration_text host = rn_origin_authority(s.origin);
    (void)snprintf(authority, sizeof authority, "%.*s", (int)host.size, host.data);
    rn_upstream_request request = {.origin = s.origin,
                                   .method = text("POST"),
                                   .target = text("/a?b"),
                                   .fields = {items, 2},
                                   .body = text("hello")};
    ask(&s, &request);
    (void)snprintf(want, sizeof want, "POST /a?b HTTP/1.1\r\nHost: %s\r\nA: b\r\nContent-Length: 5\r\n\r\nhello",
                   authority);
    meet(&s, "hello");
    CHECK_STR(s.w.got, want);
    wire_send(&s.w, "HTTP/1.1 204 No Content" END);
    RUN_UNTIL(s.loop, s.over);

    /* A stream in chunks, on the same connection. */
    wire_clear(&s.w);
    request = (rn_upstream_request){.origin = s.origin,
                                    .method = text("PUT"),
                                    .target = text("/s"),
                                    .stream = true,
                                    .body_bytes = RN_LENGTH_UNKNOWN};
    ask(&s, &request);
    CHECK_EQ(rn_upstream_write(s.up, text("one")), RN_FLOW_MORE);
    CHECK_EQ(rn_upstream_write(s.up, text("")), RN_FLOW_MORE);
    RUN_UNTIL(s.loop, wire_has(&s.w, "3\r\none\r\n"));
    CHECK_EQ(rn_upstream_finish(s.up, (rn_http_fields){items, 1}), RATION_OK);
    CHECK_EQ(rn_upstream_write(s.up, text("late")), RATION_ERR_INVALID);
    CHECK_EQ(rn_upstream_finish(s.up, (rn_http_fields){NULL, 0}), RATION_ERR_INVALID);
    (void)snprintf(want, sizeof want,
                   "PUT /s HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\nA: b\r\n\r\n",
                   authority);
    RUN_UNTIL(s.loop, strcmp(s.w.got, want) == 0);

    /* A stream of a told length. */
    wire_send(&s.w, "HTTP/1.1 204 No Content" END);
    RUN_UNTIL(s.loop, s.over);
    wire_clear(&s.w);
    request.body_bytes = 4;
    ask(&s, &request);
    CHECK_EQ(rn_upstream_write(s.up, text("five5")), RATION_ERR_INVALID);
    CHECK_EQ(rn_upstream_write(s.up, text("fo")), RN_FLOW_MORE);
    CHECK_EQ(rn_upstream_finish(s.up, (rn_http_fields){NULL, 0}), RATION_ERR_INVALID);
    CHECK_EQ(rn_upstream_write(s.up, text("ur")), RN_FLOW_MORE);
    CHECK_EQ(rn_upstream_finish(s.up, (rn_http_fields){NULL, 0}), RATION_OK);
    RUN_UNTIL(s.loop, wire_has(&s.w, "Content-Length: 4" END "four"));
    close_stage(&s);
}

static void smuggling_is_refused(void **state)
{
    static const rn_http_field bad = {{"A", 1}, {"b\r\nC: d", 7}};
    stage s;

    (void)state;
    open_stage(&s, NULL);
    const rn_upstream_request requests[] = {
        {.origin = s.origin, .method = text("GET"), .target = text("/"), .fields = {&bad, 1}},
        {.origin = s.origin, .method = text("GET"), .target = text("/ HTTP/1.1\r\nA: b")},
        {.origin = s.origin, .method = text("G T"), .target = text("/")},
        {.origin = s.origin, .method = text("GET"), .target = text("")},
        {.method = text("GET"), .target = text("/")},
    };
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        CHECK_EQ(rn_upstream_start(s.pool, &requests[i], &handlers, &s, &s.up), RATION_ERR_INVALID);
    close_stage(&s);
}

static void connections_are_reused(void **state)
{
    rn_upstream_stats stats;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    for (int i = 0; i < 3; i++) {
        get(&s);
        if (i == 0)
            meet(&s, END);
        RUN_UNTIL(s.loop, wire_has(&s.w, END));
        wire_clear(&s.w);
        wire_send(&s.w, "HTTP/1.1 200 OK\r\nContent-Length: 2" END "hi");
        RUN_UNTIL(s.loop, s.over);
        CHECK_STR(s.heard, "200 2 hi end");
    }
    rn_upstream_pool_stats(s.pool, &stats);
    CHECK_EQ(stats.connects, 1);
    CHECK_EQ(stats.reuses, 2);
    CHECK_EQ(stats.open, 1);
    /* The other side closes it: it goes at once. */
    wire_close(&s.w);
    RUN_UNTIL(s.loop, (rn_upstream_pool_stats(s.pool, &stats), stats.open == 0));
    close_stage(&s);
}

static void idle_connections_are_bounded_in_time(void **state)
{
    const rn_upstream_options options = {.idle_keep_us = 20000};
    rn_upstream_stats stats;
    stage s;

    (void)state;
    open_stage(&s, &options);
    get(&s);
    meet(&s, END);
    wire_send(&s.w, "HTTP/1.1 200 OK\r\nContent-Length: 0" END);
    RUN_UNTIL(s.loop, s.over && s.w.closed);
    rn_upstream_pool_stats(s.pool, &stats);
    CHECK_EQ(stats.open, 0);
    CHECK_EQ(stats.idle, 0);
    close_stage(&s);
}

/* Leave one idle connection behind, on which the next request finds its end. */
static void serve_once(stage *s)
{
    get(s);
    meet(s, END);
    wire_send(&s->w, "HTTP/1.1 200 OK\r\nContent-Length: 0" END);
    RUN_UNTIL(s->loop, s->over);
    wire_clear(&s->w);
}

/* The other side closes a kept connection when it gets the next request. */
static void a_kept_connection_that_dies(void **state)
{
    static const struct {
        const char *why, *method, *body, *said;
        bool repeatable;
        bool retried;
    } rows[] = {
        {"no body", "GET", "", "", true, true},
        {"a body that is kept", "POST", "hello", "", true, true},
        {"must not be repeated", "POST", "hello", "", false, false},
        {"a byte had come", "GET", "", "H", true, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_upstream_stats stats;
        stage s;

        CHECK_ROW(rows[i].why);
        open_stage(&s, NULL);
        serve_once(&s);
        const rn_upstream_request request = {.origin = s.origin,
                                             .method = text(rows[i].method),
                                             .target = text("/again"),
                                             .body = text(rows[i].body),
                                             .repeatable = rows[i].repeatable};
        ask(&s, &request);
        RUN_UNTIL(s.loop, wire_has(&s.w, END));
        if (rows[i].said[0] != '\0') {
            wire_send(&s.w, rows[i].said);
            RUN_UNTIL(s.loop, !s.over);
        }
        (void)shutdown(s.w.fd, SHUT_WR);
        if (rows[i].retried) {
            meet(&s, rows[i].body[0] != '\0' ? rows[i].body : END);
            CHECK(wire_has(&s.w, " /again HTTP/1.1\r\n"));
            wire_send(&s.w, "HTTP/1.1 200 OK\r\nContent-Length: 2" END "ok");
        }
        RUN_UNTIL(s.loop, s.over);
        CHECK(strncmp(s.heard, rows[i].retried ? "200 2 ok end" : "upstream_broken: connection closed ", 12) == 0);
        rn_upstream_pool_stats(s.pool, &stats);
        CHECK_EQ(stats.retries, rows[i].retried ? 1 : 0);
        close_stage(&s);
    }
    CHECK_ROW(NULL);
}

/* Once only: a second death is a fault. */
static void retries_once(void **state)
{
    stage s;

    (void)state;
    open_stage(&s, NULL);
    serve_once(&s);
    get(&s);
    RUN_UNTIL(s.loop, wire_has(&s.w, END));
    (void)shutdown(s.w.fd, SHUT_WR);
    meet(&s, END);
    (void)shutdown(s.w.fd, SHUT_WR);
    RUN_UNTIL(s.loop, s.over);
    CHECK_STR(s.heard, "upstream_broken: connection closed before the first byte of a response");
    close_stage(&s);
}

/* An answer that is there before its question is somebody else's: nobody gets it, and the connection goes. */
static void a_kept_connection_that_speaks(void **state)
{
    static const struct {
        const char *why, *method;
        bool asked; /* the next request is made before the loop has seen the bytes */
        bool repeatable;
        bool stream;
    } rows[] = {
        {"while it is idle", "GET", false, true, false},
        {"in the turn of the next request", "GET", true, true, false},
        {"in the turn of one that must not be repeated", "POST", true, false, false},
        {"in the turn of one whose body follows", "POST", true, false, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_upstream_stats stats;
        stage s;

        CHECK_ROW(rows[i].why);
        open_stage(&s, NULL);
        serve_once(&s);
        wire_send(&s.w, "HTTP/1.1 200 OK\r\nContent-Length: 5" END "wrong");
        if (!rows[i].asked)
            RUN_UNTIL(s.loop, (rn_upstream_pool_stats(s.pool, &stats), stats.open == 0));
        const rn_upstream_request request = {.origin = s.origin,
                                             .method = text(rows[i].method),
                                             .target = text("/again"),
                                             .repeatable = rows[i].repeatable,
                                             .stream = rows[i].stream,
                                             .body_bytes = 4};
        ask(&s, &request);
        if (rows[i].stream) {
            CHECK_EQ(rn_upstream_write(s.up, text("four")), RN_FLOW_MORE);
            CHECK_EQ(rn_upstream_finish(s.up, (rn_http_fields){NULL, 0}), RATION_OK);
        }
        meet(&s, rows[i].stream ? END "four" : END);
        wire_send(&s.w, "HTTP/1.1 200 OK\r\nContent-Length: 5" END "right");
        RUN_UNTIL(s.loop, s.over);
        CHECK_STR(s.heard, "200 5 right end");
        rn_upstream_pool_stats(s.pool, &stats);
        CHECK_EQ(stats.connects, 2);
        close_stage(&s);
    }
    CHECK_ROW(NULL);
}

static void interim_answers_have_an_end(void **state)
{
    stage s;

    (void)state;
    open_stage(&s, NULL);
    get(&s);
    meet(&s, END);
    for (int i = 0; i < 65; i++)
        wire_send(&s.w, "HTTP/1.1 102 Processing" END);
    RUN_UNTIL(s.loop, s.over);
    CHECK_STR(s.heard, "upstream_broken: too many interim responses");
    RUN_UNTIL(s.loop, s.w.closed);
    close_stage(&s);
}

static void faults_of_connecting(void **state)
{
    stage s;
    uint16_t port;
    rn_origin *origin;

    (void)state;
    open_stage(&s, NULL);
    (void)close(wire_listener(&port));
    const rn_origin_options nobody = {.host = "127.0.0.1", .port = port};
    CHECK_EQ(rn_origin_acquire(s.pool, &nobody, &origin), RATION_OK);
    rn_upstream_request request = {.origin = origin, .method = text("GET"), .target = text("/")};
    ask(&s, &request);
    RUN_UNTIL(s.loop, s.over);
    CHECK(strncmp(s.heard, "upstream_connect: Failed to connect to 127.0.0.1 port ", 54) == 0);
    rn_origin_release(origin);

    const rn_origin_options nowhere = {.host = "no-such-host.invalid"};
    CHECK_EQ(rn_origin_acquire(s.pool, &nowhere, &origin), RATION_OK);
    request.origin = origin;
    ask(&s, &request);
    RUN_UNTIL(s.loop, s.over);
    CHECK_STR(s.heard, "upstream_connect: Could not resolve host: no-such-host.invalid");
    rn_origin_release(origin);

    rn_upstream_stats stats;
    rn_upstream_pool_stats(s.pool, &stats);
    CHECK_EQ(stats.open, 0);
    close_stage(&s);
}

static void tls_where_there_is_none(void **state)
{
    stage s;
    rn_origin *origin;
    rn_origin_options options = {.tls = true, .host = "127.0.0.1"};

    (void)state;
    open_stage(&s, NULL);
    (void)close(s.listener);
    s.listener = wire_listener(&options.port);
    CHECK_EQ(rn_origin_acquire(s.pool, &options, &origin), RATION_OK);
    const rn_upstream_request request = {.origin = origin, .method = text("GET"), .target = text("/")};
    ask(&s, &request);
    RUN_UNTIL(s.loop, wire_accept(&s.w, s.loop, s.listener));
    wire_send(&s.w, "HTTP/1.1 400 Bad Request\r\n\r\n");
    RUN_UNTIL(s.loop, s.over);
    CHECK(strncmp(s.heard, "upstream_tls: ", 14) == 0);
    rn_origin_release(origin);
    close_stage(&s);
}

static void time_outs(void **state)
{
    static const struct {
        const char *why, *answer, *want;
    } rows[] = {
        {"no byte", "", "upstream_timeout: no byte of a response within 20 ms"},
        {"a head that stops", "HTTP/1.1 2", "upstream_timeout: no byte within 20 ms"},
        {"a body that stops", "HTTP/1.1 200 OK\r\nContent-Length: 5" END "hi",
         "200 5 hiupstream_timeout: no byte within 20 ms"},
    };
    const rn_upstream_options options = {.first_byte_timeout_us = 20000, .idle_timeout_us = 20000};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;

        CHECK_ROW(rows[i].why);
        open_stage(&s, &options);
        get(&s);
        RUN_UNTIL(s.loop, wire_accept(&s.w, s.loop, s.listener));
        wire_send(&s.w, rows[i].answer);
        RUN_UNTIL(s.loop, s.over);
        CHECK_STR(s.heard, rows[i].want);
        RUN_UNTIL(s.loop, s.w.closed);
        close_stage(&s);
    }
    CHECK_ROW(NULL);
}

static void a_paused_answer_waits(void **state)
{
    char *big = malloc(3000001);
    const rn_upstream_options options = {.idle_timeout_us = 20000};
    rn_upstream_stats stats;
    stage s;
    size_t sent = 0;

    (void)state;
    assert_non_null(big);
    memset(big, 'x', 3000000);
    open_stage(&s, &options);
    s.pause_at_head = true;
    get(&s);
    meet(&s, END);
    wire_send(&s.w, "HTTP/1.1 200 OK\r\nContent-Length: 3000000" END);
    RUN_UNTIL(s.loop, strcmp(s.heard, "200 3000000 ") == 0);
    /* What the kernel takes is not read; that nothing comes for longer than the time-out is the caller's own doing. */
    for (;;) {
        const ssize_t took = send(s.w.fd, big + sent, 3000000 - sent, MSG_NOSIGNAL);

        if (took <= 0)
            break;
        sent += (size_t)took;
    }
    bool rested = false;
    rn_timer rest;
    rn_timer_init(&rest, s.loop, wire_guard, &rested);
    CHECK_EQ(rn_timer_set(&rest, (ration_time){rn_loop_now(s.loop).us + 40000}), RATION_OK);
    RUN_UNTIL(s.loop, rested);
    CHECK_EQ(s.body_bytes, 0);
    CHECK(!s.over);
    rn_upstream_resume(s.up);
    while (sent < 3000000) {
        const ssize_t took = send(s.w.fd, big + sent, 3000000 - sent, MSG_NOSIGNAL);

        sent += took > 0 ? (size_t)took : 0;
        (void)uv_run(rn_loop_uv(s.loop), UV_RUN_NOWAIT);
    }
    RUN_UNTIL(s.loop, s.over);
    CHECK_EQ(s.body_bytes, 3000000);
    CHECK_STR(s.heard, "200 3000000  end");
    rn_upstream_pool_stats(s.pool, &stats);
    CHECK_EQ(stats.idle, 1);
    free(big);
    close_stage(&s);
}

static void a_stream_has_back_pressure(void **state)
{
    static char part[65536];
    stage s;
    size_t written = 0;
    int flow = RN_FLOW_MORE;

    (void)state;
    open_stage(&s, NULL);
    const rn_upstream_request request = {.origin = s.origin,
                                         .method = text("PUT"),
                                         .target = text("/"),
                                         .stream = true,
                                         .body_bytes = RN_LENGTH_UNKNOWN};
    ask(&s, &request);
    meet(&s, END);
    wire_listen(&s.w, false);
    memset(part, 'x', sizeof part);
    /* As much as the kernel takes, and then the bound. */
    for (int turns = 0; turns < 2000 && !(flow == RN_FLOW_FULL && s.drains > 0 && turns > 1000); turns++) {
        if (flow == RN_FLOW_MORE || s.drains > 0) {
            s.drains = 0;
            flow = rn_upstream_write(s.up, (ration_text){part, sizeof part});
            CHECK(flow >= 0);
            written += sizeof part;
        }
        (void)uv_run(rn_loop_uv(s.loop), UV_RUN_NOWAIT);
    }
    CHECK_EQ(flow, RN_FLOW_FULL);
    CHECK_EQ(s.drains, 0);
    wire_listen(&s.w, true);
    RUN_UNTIL(s.loop, s.drains > 0);
    CHECK_EQ(rn_upstream_finish(s.up, (rn_http_fields){NULL, 0}), RATION_OK);
    RUN_UNTIL(s.loop, s.w.size > written && wire_has(&s.w, "\r\n0\r\n\r\n"));
    close_stage(&s);
}

static void an_early_answer_counts(void **state)
{
    rn_upstream_stats stats;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    const rn_upstream_request request = {
        .origin = s.origin, .method = text("PUT"), .target = text("/"), .stream = true, .body_bytes = 100000};
    ask(&s, &request);
    meet(&s, END);
    wire_send(&s.w, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2" END "no");
    RUN_UNTIL(s.loop, s.over);
    CHECK_STR(s.heard, "413 2 no end");
    rn_upstream_pool_stats(s.pool, &stats);
    CHECK_EQ(stats.open, 0); /* half a request was sent on it */
    close_stage(&s);
}

static void aborting(void **state)
{
    rn_upstream_stats stats;
    stage s;

    (void)state;
    /* while connecting, */
    open_stage(&s, NULL);
    get(&s);
    rn_upstream_abort(s.up);
    for (int i = 0; i < 5; i++)
        (void)uv_run(rn_loop_uv(s.loop), UV_RUN_NOWAIT);
    CHECK_STR(s.heard, "");
    /* while the answer is awaited, */
    get(&s);
    meet(&s, END);
    rn_upstream_abort(s.up);
    RUN_UNTIL(s.loop, s.w.closed);
    CHECK_STR(s.heard, "");
    /* and from inside a handler. */
    s.abort_at_head = true;
    get(&s);
    meet(&s, END);
    wire_send(&s.w, "HTTP/1.1 200 OK\r\nContent-Length: 2" END "hi");
    RUN_UNTIL(s.loop, s.over && s.w.closed);
    CHECK_STR(s.heard, "200 2 ");
    rn_upstream_pool_stats(s.pool, &stats);
    CHECK_EQ(stats.open, 0);
    /* What still runs dies with the pool, in silence. */
    s.abort_at_head = false;
    get(&s);
    close_stage(&s);
    CHECK_STR(s.heard, "");
}

static void connections_are_bounded(void **state)
{
    const rn_upstream_options options = {.max_connections = 1};
    stage s;
    rn_upstream *first;

    (void)state;
    open_stage(&s, &options);
    get(&s);
    first = s.up;
    get(&s);
    RUN_UNTIL(s.loop, s.over);
    CHECK_STR(s.heard, "upstream_connect: all connections that may be open are in use");
    rn_upstream_abort(first);
    close_stage(&s);
}

static void origins_are_shared(void **state)
{
    static const struct {
        const char *why;
        rn_origin_options options;
        const char *authority; /* NULL: refused */
    } rows[] = {
        {"http", {.host = "example.com"}, "example.com"},
        {"its usual port", {.host = "example.com", .port = 80}, "example.com"},
        {"https", {.host = "example.com", .tls = true, .port = 443}, "example.com"},
        {"another port", {.host = "example.com", .port = 8080}, "example.com:8080"},
        {"IPv6", {.host = "::1", .port = 8080}, "[::1]:8080"},
        {"no host", {.host = ""}, NULL},
        {"absent host", {.host = NULL}, NULL},
        {"a host with a path", {.host = "a/b"}, NULL},
        {"a host with a user", {.host = "a@b"}, NULL},
        {"a host with CR LF", {.host = "a\r\nb"}, NULL},
    };
    stage s;
    rn_origin *a;
    rn_origin *b;

    (void)state;
    open_stage(&s, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        if (rows[i].authority == NULL) {
            CHECK_EQ(rn_origin_acquire(s.pool, &rows[i].options, &a), RATION_ERR_INVALID);
            continue;
        }
        CHECK_EQ(rn_origin_acquire(s.pool, &rows[i].options, &a), RATION_OK);
        CHECK_EQ(rn_origin_acquire(s.pool, &rows[i].options, &b), RATION_OK);
        CHECK(a == b);
        CHECK_TEXT(rn_origin_authority(a), rows[i].authority);
        rn_origin_release(a);
        rn_origin_release(b);
    }
    CHECK_ROW(NULL);
    const rn_origin_options plain = {.host = "h", .port = 443};
    const rn_origin_options tls = {.host = "h", .tls = true};
    CHECK_EQ(rn_origin_acquire(s.pool, &plain, &a), RATION_OK);
    CHECK_EQ(rn_origin_acquire(s.pool, &tls, &b), RATION_OK);
    CHECK(a != b);
    rn_origin_release(a);
    rn_origin_release(b);
    rn_origin_release(NULL);
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_read),
        cmocka_unit_test(requests_are_written),
        cmocka_unit_test(smuggling_is_refused),
        cmocka_unit_test(connections_are_reused),
        cmocka_unit_test(idle_connections_are_bounded_in_time),
        cmocka_unit_test(a_kept_connection_that_dies),
        cmocka_unit_test(retries_once),
        cmocka_unit_test(a_kept_connection_that_speaks),
        cmocka_unit_test(interim_answers_have_an_end),
        cmocka_unit_test(faults_of_connecting),
        cmocka_unit_test(tls_where_there_is_none),
        cmocka_unit_test(time_outs),
        cmocka_unit_test(a_paused_answer_waits),
        cmocka_unit_test(a_stream_has_back_pressure),
        cmocka_unit_test(an_early_answer_counts),
        cmocka_unit_test(aborting),
        cmocka_unit_test(connections_are_bounded),
        cmocka_unit_test(origins_are_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
