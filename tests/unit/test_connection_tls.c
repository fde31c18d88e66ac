/* SPDX-License-Identifier: MIT */
/*
 * Requests over TLS to a server that is not ours (`support/tls_peer.py`), driven by events as everywhere.
 */

#include "support/check.h"
#include "support/wire.h"

#include <stdio.h>
#include <sys/wait.h>

#include "net/connection.h"

typedef struct peer {
    pid_t pid;
    int input; /* it ends when this is closed */
    uint16_t port;
    uint16_t slow_port;
    char ca_file[256];
} peer;

typedef struct call {
    rn_upstream *up;
    char heard[512];
    size_t body_bytes;
    bool over;
    bool pause_at_head;
} call;

typedef struct stage {
    rn_loop *loop;
    rn_upstream_pool *pool;
    rn_origin *origin;
} stage;

static peer the_peer;

static int start_peer(void **state)
{
    int in[2];
    int out[2];

    (void)state;
    CHECK_EQ(pipe(in), 0);
    CHECK_EQ(pipe(out), 0);
    the_peer.pid = fork();
    CHECK(the_peer.pid >= 0);
    if (the_peer.pid == 0) {
        (void)dup2(in[0], 0);
        (void)dup2(out[1], 1);
        (void)close(in[1]);
        (void)close(out[0]);
        (void)execlp("python3", "python3", "tests/support/tls_peer.py", (char *)NULL);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    the_peer.input = in[1];

    char line[512] = "";
    char *rest = line;
    FILE *told = fdopen(out[0], "r");

    assert_non_null(told);
    CHECK(fgets(line, sizeof line, told) != NULL);
    (void)fclose(told);
    the_peer.port = (uint16_t)strtoul(rest, &rest, 10);
    the_peer.slow_port = (uint16_t)strtoul(rest, &rest, 10);
    CHECK(the_peer.port > 0 && the_peer.slow_port > 0 && *rest == ' ');
    rest[strcspn(rest, "\n")] = '\0';
    CHECK(strlen(rest + 1) < sizeof the_peer.ca_file);
    memcpy(the_peer.ca_file, rest + 1, strlen(rest + 1) + 1);
    (void)rn_process_prepare();
    return 0;
}

static int stop_peer(void **state)
{
    (void)state;
    (void)close(the_peer.input);
    (void)waitpid(the_peer.pid, NULL, 0);
    return 0;
}

static void hear(call *c, const char *what)
{
    const size_t used = strlen(c->heard);
    const size_t size = strlen(what);

    assert_true(used + size < sizeof c->heard);
    memcpy(c->heard + used, what, size + 1);
}

static void on_head(void *user, rn_upstream *up, const rn_http_head *head)
{
    call *c = user;
    char status[16];

    (void)snprintf(status, sizeof status, "%d ", head->status);
    hear(c, status);
    if (c->pause_at_head)
        rn_upstream_pause(up);
}

static void on_body(void *user, rn_upstream *up, ration_text bytes)
{
    call *c = user;
    char part[32];

    (void)up;
    c->body_bytes += bytes.size;
    if (bytes.size < sizeof part) {
        memcpy(part, bytes.data, bytes.size);
        part[bytes.size] = '\0';
        hear(c, part);
    }
}

static void on_end(void *user, rn_upstream *up, rn_http_fields trailers)
{
    call *c = user;

    (void)up;
    (void)trailers;
    hear(c, " end");
    c->over = true;
}

static void on_error(void *user, rn_upstream *up, rn_upstream_fault fault, const char *text)
{
    call *c = user;

    (void)up;
    hear(c, rn_upstream_fault_name(fault));
    hear(c, ": ");
    hear(c, text);
    c->over = true;
}

static const rn_upstream_handlers handlers = {on_head, on_body, on_end, on_error, NULL};

static void open_stage(stage *s, const char *host, uint16_t port, const char *ca_file)
{
    const rn_origin_options options = {.tls = true, .host = host, .port = port, .ca_file = ca_file};

    CHECK_EQ(rn_loop_new(&s->loop), RATION_OK);
    CHECK_EQ(rn_upstream_pool_new(s->loop, NULL, &s->pool), RATION_OK);
    CHECK_EQ(rn_origin_acquire(s->pool, &options, &s->origin), RATION_OK);
}

static void close_stage(stage *s)
{
    rn_origin_release(s->origin);
    rn_upstream_pool_free(s->pool);
    rn_loop_free(s->loop);
}

static void ask(stage *s, call *c, const char *target, ration_text body)
{
    const rn_upstream_request request = {.origin = s->origin,
                                         .method = ration_text_of(body.size > 0 ? "POST" : "GET"),
                                         .target = ration_text_of(target),
                                         .body = body,
                                         .repeatable = true};

    CHECK_EQ(rn_upstream_start(s->pool, &request, &handlers, c, &c->up), RATION_OK);
}

static const ration_text none = {NULL, 0};

static void answers_over_tls(void **state)
{
    static const struct {
        const char *target, *want;
        size_t body_bytes;
    } rows[] = {
        {"/", "200 0 end", 1},
        {"/trickle", "200 hello end", 5},
        {"/big", "200  end", 3000000},
        {"/cut", "200 helupstream_broken: connection closed amid the body", 3},
        {"/whole", "200 hello end", 5},
        {"/short", "200 helupstream_broken: connection closed without TLS close_notify", 3},
    };
    rn_upstream_stats stats;
    stage s;

    (void)state;
    open_stage(&s, "localhost", the_peer.port, the_peer.ca_file);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        call c = {.up = NULL};

        CHECK_ROW(rows[i].target);
        ask(&s, &c, rows[i].target, none);
        RUN_UNTIL(s.loop, c.over);
        CHECK_EQ(c.body_bytes, rows[i].body_bytes);
        if (c.body_bytes < 32)
            CHECK_STR(c.heard, rows[i].want);
    }
    CHECK_ROW(NULL);
    rn_upstream_pool_stats(s.pool, &stats);
    CHECK_EQ(stats.connects, 3);
    CHECK_EQ(stats.reuses, 3);
    close_stage(&s);
}

/* A body that does not fit anywhere, so that sends are cut in the middle of a record. */
static void a_large_body_is_sent(void **state)
{
    char *body = malloc(5000000);
    call c = {.up = NULL};
    stage s;

    (void)state;
    assert_non_null(body);
    memset(body, 'x', 5000000);
    open_stage(&s, "localhost", the_peer.port, the_peer.ca_file);
    ask(&s, &c, "/", (ration_text){body, 5000000});
    RUN_UNTIL(s.loop, c.over);
    CHECK_STR(c.heard, "200 5000000 end");
    close_stage(&s);
    free(body);
}

static void a_slow_handshake(void **state)
{
    call c = {.up = NULL};
    stage s;

    (void)state;
    open_stage(&s, "localhost", the_peer.slow_port, the_peer.ca_file);
    ask(&s, &c, "/", none);
    RUN_UNTIL(s.loop, c.over);
    CHECK_STR(c.heard, "200 0 end");
    close_stage(&s);
}

/* Paused with bytes that TLS has read and the socket does not tell of; meanwhile another connection is made, which
 * makes libcurl look for dead ones. */
static void a_paused_connection_survives(void **state)
{
    call paused = {.pause_at_head = true};
    call other = {.up = NULL};
    stage s;

    (void)state;
    open_stage(&s, "localhost", the_peer.port, the_peer.ca_file);
    ask(&s, &paused, "/big", none);
    RUN_UNTIL(s.loop, strcmp(paused.heard, "200 ") == 0);
    ask(&s, &other, "/", none);
    RUN_UNTIL(s.loop, other.over);
    CHECK_STR(other.heard, "200 0 end");
    CHECK_EQ(paused.body_bytes, 0);
    rn_upstream_resume(paused.up);
    RUN_UNTIL(s.loop, paused.over);
    CHECK_EQ(paused.body_bytes, 3000000);
    close_stage(&s);
}

static void a_kept_connection_that_dies(void **state)
{
    rn_upstream_stats stats;
    call c = {.up = NULL};
    stage s;

    (void)state;
    open_stage(&s, "localhost", the_peer.port, the_peer.ca_file);
    ask(&s, &c, "/", none);
    RUN_UNTIL(s.loop, c.over);
    c = (call){.up = NULL};
    ask(&s, &c, "/gone", none);
    RUN_UNTIL(s.loop, c.over);
    CHECK(strncmp(c.heard, "upstream_broken: ", 17) == 0);
    rn_upstream_pool_stats(s.pool, &stats);
    CHECK_EQ(stats.retries, 1);
    CHECK_EQ(stats.open, 0);
    close_stage(&s);
}

static void who_is_not_trusted(void **state)
{
    static const struct {
        const char *why, *host, *ca_file, *want;
    } rows[] = {
        {"a CA that is not ours", "localhost", NULL, "upstream_tls: SSL certificate problem: "},
        {"another name", "127.0.0.1", "", "upstream_tls: SSL: no alternative certificate subject name matches target"},
        {"no such CA file", "localhost", "/no/such/file", "upstream_tls: error setting certificate"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool ours = rows[i].ca_file != NULL && rows[i].ca_file[0] == '\0';
        call c = {.up = NULL};
        stage s;

        CHECK_ROW(rows[i].why);
        open_stage(&s, rows[i].host, the_peer.port, ours ? the_peer.ca_file : rows[i].ca_file);
        ask(&s, &c, "/", none);
        RUN_UNTIL(s.loop, c.over);
        CHECK(strncmp(c.heard, rows[i].want, strlen(rows[i].want)) == 0);
        close_stage(&s);
    }
    CHECK_ROW(NULL);
}

static void aborted_in_the_handshake(void **state)
{
    call c = {.up = NULL};
    stage s;

    (void)state;
    open_stage(&s, "localhost", the_peer.slow_port, the_peer.ca_file);
    ask(&s, &c, "/", none);
    for (int i = 0; i < 8 && !c.over; i++)
        (void)uv_run(rn_loop_uv(s.loop), UV_RUN_ONCE);
    if (!c.over) {
        rn_upstream_abort(c.up);
        CHECK_STR(c.heard, "");
    }
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_over_tls),
        cmocka_unit_test(a_large_body_is_sent),
        cmocka_unit_test(a_slow_handshake),
        cmocka_unit_test(a_paused_connection_survives),
        cmocka_unit_test(a_kept_connection_that_dies),
        cmocka_unit_test(who_is_not_trusted),
        cmocka_unit_test(aborted_in_the_handshake),
    };

    return cmocka_run_group_tests(tests, start_peer, stop_peer);
}
