/* SPDX-License-Identifier: MIT */
/*
 * The server over loopback, in the loop of the test. Requests name in their target what the handlers shall do with
 * them; what the handlers hear is written down and compared.
 */

#include "support/check.h"
#include "support/wire.h"

#include <sys/stat.h>

#include "net/server.h"

typedef struct stage {
    rn_loop *loop;
    rn_server *server;
    rn_inbound *held; /* the last request that was not answered at once */
    char heard[512];  /* by the handlers */
    size_t body_bytes;
    size_t requests;
    size_t fed; /* of /flood */
    size_t drains;
    bool closed;
} stage;

static void hear(stage *s, const char *what)
{
    const size_t used = strlen(s->heard);
    const int more = snprintf(s->heard + used, sizeof s->heard - used, "%s ", what);

    CHECK(more > 0 && (size_t)more < sizeof s->heard - used);
}

static ration_text text(const char *s)
{
    return ration_text_of(s);
}

static void answer(rn_inbound *in, int status, const char *body)
{
    const rn_response response = {.status = status};

    CHECK_EQ(rn_inbound_respond(in, &response, text(body)), RATION_OK);
}

/* Send until told to stop; /flood is 4 MiB. */
static void flood(stage *s, rn_inbound *in)
{
    static char part[16384];

    memset(part, 'x', sizeof part);
    while (s->fed < 4194304) {
        const int flow = rn_inbound_write(in, (ration_text){part, sizeof part});

        CHECK(flow >= 0);
        s->fed += sizeof part;
        if (flow == RN_FLOW_FULL)
            return;
    }
    rn_inbound_finish(in, (rn_http_fields){NULL, 0});
}

static void on_request(void *user, rn_inbound *in, const rn_http_head *head)
{
    stage *s = user;
    char target[32] = "";

    s->requests++;
    memcpy(target, head->target.data, head->target.size < 31 ? head->target.size : 31);
    hear(s, target);
    s->held = in;
    if (strncmp(target, "/now", 4) == 0) {
        answer(in, 200, target);
        s->held = NULL;
    } else if (strcmp(target, "/echo") == 0) {
        const rn_response response = {.status = 200, .body_bytes = head->body_bytes};

        CHECK_EQ(rn_inbound_start(in, &response), RATION_OK);
        rn_inbound_resume(in);
    } else if (strcmp(target, "/stream") == 0) {
        const rn_response response = {.status = 200, .body_bytes = RN_LENGTH_UNKNOWN};

        CHECK_EQ(rn_inbound_start(in, &response), RATION_OK);
    } else if (strcmp(target, "/flood") == 0) {
        const rn_response response = {.status = 200, .body_bytes = 4194304};

        CHECK_EQ(rn_inbound_start(in, &response), RATION_OK);
        flood(s, in);
    } else if (strcmp(target, "/read") == 0) {
        rn_inbound_resume(in);
    }
}

static void on_body(void *user, rn_inbound *in, ration_text bytes)
{
    stage *s = user;

    s->body_bytes += bytes.size;
    if (rn_inbound_started(in))
        CHECK(rn_inbound_write(in, bytes) >= 0);
}

static void on_end(void *user, rn_inbound *in, rn_http_fields trailers)
{
    stage *s = user;

    hear(s, trailers.count > 0 ? "end+trailers" : "end");
    if (rn_inbound_started(in)) {
        rn_inbound_finish(in, trailers);
    } else {
        answer(in, 200, "done");
    }
    s->held = NULL;
}

static void on_drain(void *user, rn_inbound *in)
{
    stage *s = user;

    s->drains++;
    flood(s, in);
}

static void on_gone(void *user, rn_inbound *in, rn_gone why)
{
    static const char *const names[] = {"client", "timeout", "malformed", "aborted"};
    stage *s = user;

    CHECK(in == s->held);
    s->held = NULL;
    hear(s, "gone:");
    hear(s, names[why]);
}

static void on_closed(void *user)
{
    stage *s = user;

    s->closed = true;
}

static const rn_server_handlers handlers = {on_request, on_body, on_end, on_drain, on_gone};

static void open_stage(stage *s, const rn_server_options *options)
{
    rn_net_error error;

    memset(s, 0, sizeof *s);
    CHECK_EQ(rn_loop_new(&s->loop), RATION_OK);
    CHECK_EQ(rn_server_new(s->loop, options, &handlers, s, &s->server, &error), RATION_OK);
}

static void close_stage(stage *s)
{
    rn_server_free(s->server);
    rn_loop_free(s->loop);
}

static void dial(stage *s, wire *w)
{
    wire_connect(w, s->loop, rn_server_port(s->server));
}

#define HOST "Host: h\r\n"

/* One connection each: what is sent, and what must come back before it is kept or closed. */
static const struct {
    const char *why, *send, *want, *heard;
    bool closes;
} exchanges[] = {
    {"answered at once", "GET /now HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n/now",
     "/now ", false},
    {"HEAD tells the length only", "HEAD /now HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n",
     "/now ", false},
    {"close", "GET /now HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
     "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n/now", "/now ", true},
    {"HTTP/1.0", "GET /now HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n/now",
     "/now ", true},
    {"HTTP/1.0 kept", "GET /now HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
     "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: keep-alive\r\n\r\n/now", "/now ", false},
    {"pipelined", "GET /now1 HTTP/1.1\r\n" HOST "\r\nGET /now2 HTTP/1.1\r\n" HOST "\r\n",
     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n/now1HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n/now2",
     "/now1 /now2 ", false},
    {"read to its end before it is answered, and the connection kept",
     "GET /read HTTP/1.1\r\n" HOST "\r\nPOST /read HTTP/1.1\r\n" HOST
     "Content-Length: 5\r\n\r\nhelloGET /now HTTP/1.1\r\n" HOST "\r\n",
     "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndoneHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"
     "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n/now",
     "/read end /read end /now ", false},
    {"length echoed", "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello",
     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "/echo end ", false},
    {"chunks and trailers echoed",
     "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: 1\r\n\r\n",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: 1\r\n\r\n", "/echo end+trailers ",
     false},
    {"a body nobody reads is dropped, and the connection kept",
     "POST /now1 HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhelloGET /now2 HTTP/1.1\r\n" HOST "\r\n",
     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n/now1HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n/now2",
     "/now1 /now2 ", false},
    {"100 Continue where the body is wanted",
     "POST /read HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
     "HTTP/1.1 100 Continue\r\n\r\n", "/read ", false},
    {"none where it is there already",
     "POST /read HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
     "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone", "/read end ", false},
    {"none where it is not, and the connection ends",
     "POST /now HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
     "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n/now", "/now ", true},
    {"no HTTP", "hello\r\n\r\n",
     "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 21\r\nConnection: close\r\n\r\nmalformed "
     "start line\n",
     "", true},
    {"malformed after an answer", "GET /now HTTP/1.1\r\n" HOST "\r\nnonsense\r\n\r\n", "HTTP/1.1 400 Bad Request",
     "/now ", true},
    {"upgrade", "GET /now HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n", "HTTP/1.1 501 ", "",
     true},
    {"an offer of h2c is passed over", "GET /now HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: h2c\r\n\r\n",
     "HTTP/1.1 200 OK\r\n", "/now ", false},
    {"HTTP/2", "PRI * HTTP/2.0\r\n\r\n", "HTTP/1.1 505 ", "", true},
    {"malformed chunk while reading", "POST /read HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nx\r\n",
     "HTTP/1.1 400 ", "/read gone: malformed ", true},
    {"malformed chunk while answering", "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\naxx", "",
     "/echo gone: malformed ", true},
    {"body over the bound", "POST /read HTTP/1.1\r\n" HOST "Content-Length: 1048577\r\n\r\n", "HTTP/1.1 413 ", "",
     true},
};

static void exchanges_go_well(void **state)
{
    const rn_server_options options = {.max_body_bytes = 1048576};

    (void)state;
    for (size_t i = 0; i < sizeof exchanges / sizeof exchanges[0]; i++) {
        stage s;
        wire w;

        CHECK_ROW(exchanges[i].why);
        open_stage(&s, &options);
        dial(&s, &w);
        wire_send(&w, exchanges[i].send);
        RUN_UNTIL(s.loop, wire_has(&w, exchanges[i].want) && strcmp(s.heard, exchanges[i].heard) == 0);
        if (exchanges[i].closes) {
            (void)shutdown(w.fd, SHUT_WR);
            RUN_UNTIL(s.loop, w.closed && rn_server_connections(s.server) == 0);
        } else {
            CHECK(!w.closed);
            CHECK_EQ(rn_server_connections(s.server), 1);
        }
        CHECK_EQ(strncmp(w.got, exchanges[i].want, strlen(exchanges[i].want)) == 0 || exchanges[i].want[9] == '4', 1);
        wire_close(&w);
        close_stage(&s);
    }
    CHECK_ROW(NULL);
}

/* 300 KiB that nobody reads, answered early: the answer arrives, and then the connection ends. */
static void an_early_answer_arrives(void **state)
{
    const rn_server_options options = {0};
    char *body = malloc(300001);
    stage s;
    wire w;

    (void)state;
    assert_non_null(body);
    memset(body, 'x', 300000);
    body[300000] = '\0';
    open_stage(&s, &options);
    dial(&s, &w);
    wire_send(&w, "POST /now HTTP/1.1\r\n" HOST "Content-Length: 300000\r\n\r\n");
    RUN_UNTIL(s.loop, wire_has(&w, "Connection: close\r\n\r\n/now"));
    wire_send(&w, body);
    RUN_UNTIL(s.loop, w.closed);
    wire_close(&w);
    RUN_UNTIL(s.loop, rn_server_connections(s.server) == 0);
    close_stage(&s);
    free(body);
}

static void a_client_that_waits_may_go(void **state)
{
    static const char *const sent[] = {
        "GET /hold HTTP/1.1\r\n" HOST "\r\n",
        "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nhello",
        "GET /stream HTTP/1.1\r\n" HOST "\r\n",
        "GET /hold HTTP/1.1\r\n" HOST "\r\nGET /next HTTP/1.1\r\n" HOST "\r\n",
        "POST /read HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nhello",
    };
    const rn_server_options options = {0};

    (void)state;
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        stage s;
        wire w;

        CHECK_ROW(sent[i]);
        open_stage(&s, &options);
        dial(&s, &w);
        wire_send(&w, sent[i]);
        RUN_UNTIL(s.loop, s.held != NULL);
        wire_close(&w);
        RUN_UNTIL(s.loop, strstr(s.heard, "gone: client ") != NULL);
        CHECK_EQ(s.requests, 1);
        RUN_UNTIL(s.loop, rn_server_connections(s.server) == 0);
        close_stage(&s);
    }
    CHECK_ROW(NULL);
}

/* The client reads nothing: the server stops at the bound, notices the hanging up, and drains when it is read. */
static void back_pressure(void **state)
{
    const rn_server_options options = {0};
    stage s;
    wire w;

    (void)state;
    open_stage(&s, &options);
    dial(&s, &w);
    wire_listen(&w, false);
    wire_send(&w, "GET /flood HTTP/1.1\r\n" HOST "\r\n");
    RUN_UNTIL(s.loop, s.held != NULL);
    const size_t stuck = s.fed;
    CHECK(rn_inbound_queued(s.held) <= 65536 + 16384);
    if (stuck < 4194304) {
        CHECK(rn_inbound_queued(s.held) >= 65536);
        wire_listen(&w, true);
        RUN_UNTIL(s.loop, s.drains > 0);
    }
    wire_listen(&w, true);
    RUN_UNTIL(s.loop, w.size > 4194304);
    CHECK_EQ(s.fed, 4194304);
    wire_close(&w);

    s.fed = 0;
    s.held = NULL;
    dial(&s, &w);
    wire_listen(&w, false);
    wire_send(&w, "GET /flood HTTP/1.1\r\n" HOST "\r\n");
    RUN_UNTIL(s.loop, s.held != NULL);
    if (s.fed < 4194304) {
        wire_close(&w);
        RUN_UNTIL(s.loop, strstr(s.heard, "gone: client ") != NULL);
    } else {
        wire_close(&w);
    }
    close_stage(&s);
}

static void a_stream_flows_and_breaks(void **state)
{
    const rn_server_options options = {0};
    stage s;
    wire w;

    (void)state;
    open_stage(&s, &options);
    dial(&s, &w);
    wire_send(&w, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    RUN_UNTIL(s.loop, wire_has(&w, "Transfer-Encoding: chunked\r\n\r\n"));
    wire_clear(&w);
    CHECK_EQ(rn_inbound_write(s.held, text("one")), RN_FLOW_MORE);
    CHECK_EQ(rn_inbound_write(s.held, text("")), RN_FLOW_MORE);
    RUN_UNTIL(s.loop, wire_has(&w, "3\r\none\r\n"));
    CHECK_EQ(rn_inbound_write(s.held, text("two")), RN_FLOW_MORE);
    rn_inbound_abort(s.held);
    RUN_UNTIL(s.loop, w.closed);
    CHECK_STR(w.got, "3\r\none\r\n3\r\ntwo\r\n"); /* and no last chunk */
    wire_close(&w);

    /* HTTP/1.0: until close; a break is a reset, so that it does not look like the end. */
    dial(&s, &w);
    s.held = NULL;
    wire_send(&w, "GET /stream HTTP/1.0\r\n\r\n");
    RUN_UNTIL(s.loop, s.held != NULL);
    CHECK_EQ(rn_inbound_write(s.held, text("one")), RN_FLOW_MORE);
    rn_inbound_finish(s.held, (rn_http_fields){NULL, 0});
    RUN_UNTIL(s.loop, w.closed);
    CHECK(!w.reset);
    CHECK(wire_has(&w, "\r\n\r\none"));
    wire_close(&w);
    close_stage(&s);
}

/* Where the end of the connection ends the body, whatever breaks the call off does it with a reset. */
static void a_break_is_no_end(void **state)
{
    static const struct {
        const char *why, *send;
        bool aborts;
    } rows[] = {
        {"a slow client", "POST /stream HTTP/1.0\r\nContent-Length: 5\r\n\r\nhel", false},
        {"a server that is ended", "GET /stream HTTP/1.0\r\n\r\n", true},
    };
    const rn_server_options options = {.body_timeout_us = 20000};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;
        wire w;

        CHECK_ROW(rows[i].why);
        open_stage(&s, &options);
        dial(&s, &w);
        wire_send(&w, rows[i].send);
        RUN_UNTIL(s.loop, s.held != NULL);
        CHECK_EQ(rn_inbound_write(s.held, text("one")), RN_FLOW_MORE);
        RUN_UNTIL(s.loop, wire_has(&w, "one"));
        rn_inbound_resume(s.held);
        if (rows[i].aborts) {
            rn_server_close(s.server, NULL);
            rn_server_abort(s.server);
        }
        RUN_UNTIL(s.loop, w.closed);
        CHECK(w.reset);
        CHECK(s.held == NULL);
        wire_close(&w);
        close_stage(&s);
    }
    CHECK_ROW(NULL);
}

static void calls_out_of_order_are_refused(void **state)
{
    const rn_server_options options = {0};
    const rn_http_field smuggled = {{"A", 1}, {"b\r\nC: d", 7}};
    rn_response response = {.status = 200, .body_bytes = 3};
    stage s;
    wire w;

    (void)state;
    open_stage(&s, &options);
    dial(&s, &w);
    wire_send(&w, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    RUN_UNTIL(s.loop, s.held != NULL);
    CHECK_EQ(rn_inbound_write(s.held, text("x")), RATION_ERR_INVALID);
    response.status = 100;
    CHECK_EQ(rn_inbound_start(s.held, &response), RATION_ERR_INVALID);
    response.status = 200;
    response.fields = (rn_http_fields){&smuggled, 1};
    CHECK_EQ(rn_inbound_start(s.held, &response), RATION_ERR_INVALID);
    CHECK_EQ(rn_inbound_respond(s.held, &response, text("x")), RATION_ERR_INVALID);
    response.fields.count = 0;
    CHECK_EQ(rn_inbound_start(s.held, &response), RATION_OK);
    CHECK_EQ(rn_inbound_start(s.held, &response), RATION_ERR_INVALID);
    CHECK_EQ(rn_inbound_respond(s.held, &response, text("x")), RATION_ERR_INVALID);
    CHECK_EQ(rn_inbound_write(s.held, text("four")), RATION_ERR_INVALID);
    CHECK_EQ(rn_inbound_write(s.held, text("tw")), RN_FLOW_MORE);
    /* One byte short: the client must not take it for complete. */
    rn_inbound_finish(s.held, (rn_http_fields){NULL, 0});
    RUN_UNTIL(s.loop, w.closed);
    CHECK(wire_has(&w, "Content-Length: 3\r\n\r\ntw"));
    wire_close(&w);
    close_stage(&s);
}

/* Each wait of a slow client ends. The times are short, and only the server's timer is waited for. */
static void slow_clients(void **state)
{
    static const struct {
        const char *why, *send, *want, *heard;
    } rows[] = {
        {"nothing at all", "", "", ""},
        {"half a head", "GET / HTTP/1.1\r\nHo", "HTTP/1.1 408 Request Timeout\r\n", ""},
        {"idle", "GET /now HTTP/1.1\r\n" HOST "\r\n", "/now", "/now "},
        {"half a body", "POST /read HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel",
         "HTTP/1.1 408 Request Timeout\r\n", "/read gone: timeout "},
        {"half a body while it is answered", "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel",
         "\r\n\r\nhel", "/echo gone: timeout "},
        {"half a body that is dropped", "POST /now HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel", "/now", "/now "},
    };
    const rn_server_options options = {
        .head_timeout_us = 20000, .idle_timeout_us = 20000, .body_timeout_us = 20000, .write_timeout_us = 20000};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;
        wire w;

        CHECK_ROW(rows[i].why);
        open_stage(&s, &options);
        dial(&s, &w);
        wire_send(&w, rows[i].send);
        RUN_UNTIL(s.loop, w.closed);
        CHECK(wire_has(&w, rows[i].want));
        CHECK_STR(s.heard, rows[i].heard);
        wire_close(&w);
        RUN_UNTIL(s.loop, rn_server_connections(s.server) == 0);
        close_stage(&s);
    }
    CHECK_ROW(NULL);
}

/* A byte now and then: `text` again and again, as often as the loop turns a timer of a millisecond. */
typedef struct trickle {
    wire *w;
    const char *text;
    size_t at;
    rn_timer timer;
} trickle;

static void trickle_on(void *user, ration_time now)
{
    trickle *t = user;

    (void)send(t->w->fd, t->text + t->at, 1, MSG_NOSIGNAL);
    t->at = t->text[t->at + 1] != '\0' ? t->at + 1 : 0;
    (void)rn_timer_set(&t->timer, (ration_time){now.us + 1000});
}

/* What counts is when a head is complete, not that something of it comes. */
static void a_head_that_trickles_is_cut(void **state)
{
    static const struct {
        const char *why, *send, *text, *want;
        int64_t timeout_us;
    } rows[] = {
        {"a field without an end", "GET / HTTP/1.1\r\nX: ", "x", "HTTP/1.1 408 ", 50000},
        {"fields without an end", "GET / HTTP/1.1\r\n", "X: y\r\n", "HTTP/1.1 408 ", 50000},
        {"empty lines", "", "\r\n", "HTTP/1.1 400 ", WIRE_GUARD_US},
        {"empty lines behind a request", "GET /now HTTP/1.1\r\n" HOST "\r\n", "\r\n", "HTTP/1.1 400 ", WIRE_GUARD_US},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stage s;
        wire w;

        CHECK_ROW(rows[i].why);
        const rn_server_options options = {.head_timeout_us = rows[i].timeout_us,
                                           .idle_timeout_us = rows[i].timeout_us};
        open_stage(&s, &options);
        dial(&s, &w);
        wire_send(&w, rows[i].send);

        trickle t = {.w = &w, .text = rows[i].text};
        rn_timer_init(&t.timer, s.loop, trickle_on, &t);
        trickle_on(&t, rn_loop_now(s.loop));
        RUN_UNTIL(s.loop, w.closed);
        rn_timer_stop(&t.timer);
        CHECK(wire_has(&w, rows[i].want));
        wire_close(&w);
        RUN_UNTIL(s.loop, rn_server_connections(s.server) == 0);
        close_stage(&s);
    }
    CHECK_ROW(NULL);
}

static void a_client_that_does_not_read_is_dropped(void **state)
{
    const rn_server_options options = {.write_timeout_us = 20000};
    const int small = 4096;
    stage s;
    wire w;

    (void)state;
    open_stage(&s, &options);
    dial(&s, &w);
    CHECK_EQ(setsockopt(w.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    wire_listen(&w, false);
    wire_send(&w, "GET /flood HTTP/1.1\r\n" HOST "\r\n");
    RUN_UNTIL(s.loop, rn_server_connections(s.server) == 1 && s.fed > 0);
    if (s.fed < 4194304)
        RUN_UNTIL(s.loop, strstr(s.heard, "gone: timeout ") != NULL);
    wire_close(&w);
    close_stage(&s);
}

/* A request that waits is not slow: no time-out runs, however short. */
static void waiting_has_no_time_out(void **state)
{
    const rn_server_options options = {.head_timeout_us = 1, .idle_timeout_us = 1, .body_timeout_us = 1};
    stage s;
    wire w;

    (void)state;
    open_stage(&s, &options);
    dial(&s, &w);
    wire_send(&w, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    /* The head's own time may run out before it is read: then the answer is 408 and the test says nothing. */
    RUN_UNTIL(s.loop, s.held != NULL || w.closed);
    if (s.held != NULL) {
        for (int i = 0; i < 20; i++)
            (void)uv_run(rn_loop_uv(s.loop), UV_RUN_NOWAIT);
        CHECK(s.held != NULL);
        answer(s.held, 200, "late");
        RUN_UNTIL(s.loop, wire_has(&w, "late"));
    }
    wire_close(&w);
    close_stage(&s);
}

static void too_many_connections(void **state)
{
    const rn_server_options options = {.max_connections = 2};
    stage s;
    wire w[3];

    (void)state;
    open_stage(&s, &options);
    for (size_t i = 0; i < 3; i++)
        dial(&s, &w[i]);
    RUN_UNTIL(s.loop, w[2].closed);
    CHECK(wire_has(&w[2], "HTTP/1.1 503 Service Unavailable\r\n") || w[2].size == 0);
    CHECK_EQ(rn_server_refused(s.server), 1);
    CHECK_EQ(rn_server_connections(s.server), 2);
    for (size_t i = 0; i < 3; i++)
        wire_close(&w[i]);
    close_stage(&s);
}

static void closes_in_order(void **state)
{
    const rn_server_options options = {0};
    stage s;
    wire idle;
    wire busy;

    (void)state;
    open_stage(&s, &options);
    dial(&s, &idle);
    dial(&s, &busy);
    wire_send(&idle, "GET /now HTTP/1.1\r\n" HOST "\r\n");
    wire_send(&busy, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    RUN_UNTIL(s.loop, wire_has(&idle, "/now") && s.held != NULL);
    rn_server_close(s.server, on_closed);
    RUN_UNTIL(s.loop, idle.closed);
    CHECK(!busy.closed && !s.closed);
    answer(s.held, 200, "last");
    RUN_UNTIL(s.loop, busy.closed && s.closed);
    CHECK(wire_has(&busy, "Connection: close\r\n\r\nlast"));
    wire_close(&idle);
    wire_close(&busy);
    close_stage(&s);
}

static void closes_at_once_when_nothing_runs(void **state)
{
    const rn_server_options options = {0};
    stage s;

    (void)state;
    open_stage(&s, &options);
    rn_server_close(s.server, on_closed);
    CHECK(!s.closed);
    rn_loop_run(s.loop);
    CHECK(s.closed);
    close_stage(&s);
}

static void aborts(void **state)
{
    const rn_server_options options = {0};
    stage s;
    wire w;

    (void)state;
    open_stage(&s, &options);
    dial(&s, &w);
    wire_send(&w, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    RUN_UNTIL(s.loop, s.held != NULL);
    rn_server_close(s.server, on_closed);
    rn_server_abort(s.server);
    RUN_UNTIL(s.loop, s.closed && w.closed);
    CHECK_STR(s.heard, "/hold gone: aborted ");
    wire_close(&w);
    close_stage(&s);
}

static void listens_on_a_path(void **state)
{
    char path[] = "/tmp/ration-test-XXXXXX";
    char *folder = mkdtemp(path);
    char where[64];
    struct stat info;
    rn_server_options options = {.path = where};
    rn_server *second;
    rn_net_error error;
    stage s;
    wire w;

    (void)state;
    assert_non_null(folder);
    (void)snprintf(where, sizeof where, "%s/socket", folder);
    open_stage(&s, &options);
    CHECK_EQ(rn_server_port(s.server), 0);
    CHECK_EQ(stat(where, &info), 0);
    CHECK_EQ(info.st_mode & 0777, 0600);
    CHECK_EQ(rn_server_new(s.loop, &options, &handlers, &s, &second, &error), RATION_ERR_IO);
    CHECK(strstr(error.text, "another process listens on it") != NULL);

    struct sockaddr_un to = {.sun_family = AF_UNIX};
    CHECK(snprintf(to.sun_path, sizeof to.sun_path, "%s", where) > 0);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_EQ(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    wire_adopt(&w, s.loop, fd);
    wire_send(&w, "GET /now HTTP/1.1\r\n" HOST "\r\n");
    RUN_UNTIL(s.loop, wire_has(&w, "/now"));
    wire_send(&w, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    RUN_UNTIL(s.loop, s.held != NULL);
    wire_close(&w);
    RUN_UNTIL(s.loop, s.held == NULL);
    close_stage(&s);
    CHECK(stat(where, &info) != 0);

    /* One that a dead process left behind is replaced; a file is not. */
    const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_EQ(bind(dead, (const struct sockaddr *)&to, sizeof to), 0);
    (void)close(dead);
    open_stage(&s, &options);
    close_stage(&s);
    const int file = open(where, O_CREAT | O_WRONLY, 0600);
    CHECK(file >= 0);
    (void)close(file);
    CHECK_EQ(rn_loop_new(&s.loop), RATION_OK);
    CHECK_EQ(rn_server_new(s.loop, &options, &handlers, &s, &second, &error), RATION_ERR_IO);
    CHECK(strstr(error.text, "it exists and is no socket") != NULL);
    rn_loop_free(s.loop);
    (void)unlink(where);
    (void)rmdir(folder);
}

static void listeners_that_cannot_be(void **state)
{
    rn_server_options options = {0};
    rn_net_error error;
    rn_server *second;
    stage s;

    (void)state;
    open_stage(&s, &options);
    options.port = rn_server_port(s.server);
    CHECK_EQ(rn_server_new(s.loop, &options, &handlers, &s, &second, &error), RATION_ERR_IO);
    CHECK(strstr(error.text, "Address already in use") != NULL);
    options.host = "no.such.host.invalid";
    CHECK_EQ(rn_server_new(s.loop, &options, &handlers, &s, &second, &error), RATION_ERR_IO);
    CHECK(strstr(error.text, "no.such.host.invalid") != NULL);
    CHECK_EQ(rn_server_new(s.loop, NULL, &handlers, &s, &second, NULL), RATION_ERR_INVALID);
    CHECK_EQ(rn_server_new(s.loop, &options, &(rn_server_handlers){0}, &s, &second, NULL), RATION_ERR_INVALID);
    options = (rn_server_options){.path = ""};
    CHECK_EQ(rn_server_new(s.loop, &options, &handlers, &s, &second, &error), RATION_ERR_INVALID);
    close_stage(&s);
    rn_server_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_go_well),
        cmocka_unit_test(an_early_answer_arrives),
        cmocka_unit_test(a_client_that_waits_may_go),
        cmocka_unit_test(back_pressure),
        cmocka_unit_test(a_stream_flows_and_breaks),
        cmocka_unit_test(a_break_is_no_end),
        cmocka_unit_test(calls_out_of_order_are_refused),
        cmocka_unit_test(slow_clients),
        cmocka_unit_test(a_head_that_trickles_is_cut),
        cmocka_unit_test(a_client_that_does_not_read_is_dropped),
        cmocka_unit_test(waiting_has_no_time_out),
        cmocka_unit_test(too_many_connections),
        cmocka_unit_test(closes_in_order),
        cmocka_unit_test(closes_at_once_when_nothing_runs),
        cmocka_unit_test(aborts),
        cmocka_unit_test(listens_on_a_path),
        cmocka_unit_test(listeners_that_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
