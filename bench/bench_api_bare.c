/* SPDX-License-Identifier: MIT */
/*
 * What the decision API is measured against: libuv, llhttp, and answers that were written before. It parses requests
 * as a server must and decides nothing.
 *
 * The answers have as many bytes as ration's, whose leases are called so after some seconds. Requests of one read are
 * answered by one write. What is read and written lies in the same two blocks for all connections, which is the best
 * for the cache.
 *
 * usage: bench_api_bare ADDRESS      a port of 127.0.0.1, or a Unix socket's path
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llhttp.h>
#include <uv.h>

#define HEAD(length)                                                                                                   \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: " length "\r\n\r" \
    "\n"
#define ACQUIRED HEAD("67") "{\"result\":\"granted\",\"lease\":\"37-10000\",\"waitedMs\":0,\"ttlMs\":30000}\n"
#define RELEASED HEAD("22") "{\"result\":\"released\"}\n"

typedef struct connection {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } u;
    llhttp_t parser;
    bool release;
} connection;

static llhttp_settings_t settings;
static char in[65536];
static char out[65536];
static size_t used; /* of `out`, in one read */

static int on_url(llhttp_t *parser, const char *at, size_t size)
{
    connection *c = parser->data;

    c->release = size > 4 && at[4] == 'r';
    return 0;
}

static int on_complete(llhttp_t *parser)
{
    const connection *c = parser->data;
    const char *answer = c->release ? RELEASED : ACQUIRED;
    const size_t size = c->release ? sizeof RELEASED - 1 : sizeof ACQUIRED - 1;

    if (used + size <= sizeof out) {
        memcpy(out + used, answer, size);
        used += size;
    }
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buffer)
{
    (void)handle;
    (void)hint;
    *buffer = uv_buf_init(in, sizeof in);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    connection *c = stream->data;

    used = 0;
    if (got < 0 || llhttp_execute(&c->parser, buffer->base, (size_t)got) != HPE_OK) {
        uv_close((uv_handle_t *)stream, on_closed);
        return;
    }

    const uv_buf_t answers = uv_buf_init(out, (unsigned int)used);
    if (used > 0 && uv_try_write(stream, &answers, 1) != (int)used)
        uv_close((uv_handle_t *)stream, on_closed);
}

static void on_connection(uv_stream_t *server, int status)
{
    connection *c = calloc(1, sizeof *c);

    if (c == NULL || status != 0)
        exit(EXIT_FAILURE);
    if (server->type == UV_TCP) {
        (void)uv_tcp_init(server->loop, &c->u.tcp);
    } else {
        (void)uv_pipe_init(server->loop, &c->u.pipe, 0);
    }
    c->u.handle.data = c;
    llhttp_init(&c->parser, HTTP_REQUEST, &settings);
    c->parser.data = c;
    if (uv_accept(server, &c->u.stream) != 0 || uv_read_start(&c->u.stream, on_alloc, on_read) != 0)
        exit(EXIT_FAILURE);
    if (server->type == UV_TCP)
        (void)uv_tcp_nodelay(&c->u.tcp, 1);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    struct sockaddr_in address;
    uv_tcp_t tcp;
    uv_pipe_t local;
    int err;

    if (argc != 2)
        return 2;
    (void)signal(SIGPIPE, SIG_IGN);
    llhttp_settings_init(&settings);
    settings.on_url = on_url;
    settings.on_message_complete = on_complete;
    if (argv[1][0] == '/') {
        (void)uv_pipe_init(loop, &local, 0);
        err = uv_pipe_bind(&local, argv[1]);
        if (err == 0)
            err = uv_listen((uv_stream_t *)&local, 511, on_connection);
    } else {
        (void)uv_tcp_init(loop, &tcp);
        (void)uv_ip4_addr("127.0.0.1", (int)strtol(argv[1], NULL, 10), &address);
        err = uv_tcp_bind(&tcp, (const struct sockaddr *)&address, 0);
        if (err == 0)
            err = uv_listen((uv_stream_t *)&tcp, 511, on_connection);
    }
    if (err != 0) {
        (void)fprintf(stderr, "bench_api_bare: %s: %s\n", argv[1], uv_strerror(err));
        return EXIT_FAILURE;
    }
    return uv_run(loop, UV_RUN_DEFAULT);
}
