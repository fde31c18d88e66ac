/* SPDX-License-Identifier: MIT */
/* The server, when much comes in one turn, or again and again. Each request is answered with its own body. */

#include "support/check.h"
#include "support/wire.h"

#include "net/server.h"

#define HEAD "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: "

typedef struct stage {
    rn_loop *loop;
    rn_server *server;
    size_t answered;
} stage;

static void on_request(void *user, rn_inbound *in, const rn_http_head *head)
{
    const rn_response response = {.status = 200, .body_bytes = head->body_bytes};

    (void)user;
    CHECK_EQ(rn_inbound_start(in, &response), RATION_OK);
    rn_inbound_resume(in);
}

static void on_body(void *user, rn_inbound *in, ration_text bytes)
{
    (void)user;
    CHECK(rn_inbound_write(in, bytes) >= 0);
}

static void on_end(void *user, rn_inbound *in, rn_http_fields trailers)
{
    stage *s = user;

    s->answered++;
    rn_inbound_finish(in, trailers);
}

static void open_stage(stage *s, const rn_server_options *options)
{
    static const rn_server_handlers handlers = {.on_request = on_request, .on_body = on_body, .on_end = on_end};
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

/* Nobody who asks again and again is idle. A client that the machine kept from asking for so long may be. */
static void a_busy_connection_is_not_idle(void **state)
{
    const int64_t timeout_us = 50000;
    const rn_server_options options = {.idle_timeout_us = timeout_us};
    stage s;
    wire w;

    (void)state;
    open_stage(&s, &options);
    wire_connect(&w, s.loop, rn_server_port(s.server));

    const int64_t begin_us = rn_loop_now(s.loop).us;
    int64_t sent_us = begin_us;
    while (!w.closed && sent_us < begin_us + 4 * timeout_us) {
        const size_t before = s.answered;

        sent_us = rn_loop_now(s.loop).us;
        wire_clear(&w);
        wire_send(&w, HEAD "1\r\n\r\nx");
        RUN_UNTIL(s.loop, s.answered > before || w.closed);
        for (int i = 0; i < 10 && !w.closed; i++)
            (void)uv_run(rn_loop_uv(s.loop), UV_RUN_NOWAIT);
    }
    CHECK(!w.closed || rn_loop_now(s.loop).us >= sent_us + timeout_us);
    wire_close(&w);
    close_stage(&s);
}

/* More than is read at once comes from many at once, and nobody gets what another sent. */
static void many_at_once(void **state)
{
    enum { CLIENTS = 24, BODY = 4000 };
    const rn_server_options options = {0};
    char request[BODY + 256];
    char body[BODY + 1] = "";
    wire w[CLIENTS];
    stage s;

    (void)state;
    open_stage(&s, &options);
    for (size_t i = 0; i < CLIENTS; i++)
        wire_connect(&w[i], s.loop, rn_server_port(s.server));
    RUN_UNTIL(s.loop, rn_server_connections(s.server) == CLIENTS);
    for (size_t i = 0; i < CLIENTS; i++) {
        memset(body, 'a' + (int)i, BODY);
        (void)snprintf(request, sizeof request, HEAD "%d\r\n\r\n%s", BODY, body);
        wire_send(&w[i], request);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        memset(body, 'a' + (int)i, BODY);
        RUN_UNTIL(s.loop, wire_has(&w[i], body) || w[i].closed);
        CHECK(wire_has(&w[i], body));
        wire_close(&w[i]);
    }
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_connection_is_not_idle),
        cmocka_unit_test(many_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
