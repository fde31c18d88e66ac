/* SPDX-License-Identifier: MIT */
/*
 * The listener: accepts, bounds the number of connections, keeps their time, and closes in order.
 *
 * Each kind of waiting has one duration, so its connections stand in a list in order of their deadlines and one timer
 * serves all: filing a deadline is O(1), and nothing is scanned. Beyond `max_connections` a client is told 503 in the
 * kernel's own time, without a connection object; out of descriptors, accepting pauses for a moment.
 *
 * Invariants: a connection is in `connections` from its opening to its closing, and in at most one of `waits`; `sweep`
 * is set no later than the earliest deadline; `on_closed` comes once, when `closing` and no connection is left.
 */

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "net/inbound.h"

#define ACCEPTS_PER_TURN 64
#define ACCEPT_PAUSE_US INT64_C(100000)
#define LINGER_US INT64_C(5000000)

/* ---- time */

static int64_t wait_us(const rn_server *server, rn_inbound_wait wait)
{
    switch (wait) {
    case RN_WAIT_HEAD:
        return server->options.head_timeout_us;
    case RN_WAIT_IDLE:
        return server->options.idle_timeout_us;
    case RN_WAIT_BODY:
        return server->options.body_timeout_us;
    case RN_WAIT_WRITE:
        return server->options.write_timeout_us;
    case RN_WAIT_LINGER:
        return LINGER_US;
    case RN_WAIT_NONE:
    case RN_WAIT_COUNT:
        break;
    }
    return RATION_FOREVER_US;
}

void rn_server_wait(rn_server *server, rn_inbound *c, rn_inbound_wait wait)
{
    const bool renewed = c->moved && (wait == RN_WAIT_IDLE || wait == RN_WAIT_BODY || wait == RN_WAIT_WRITE);

    c->moved = false;
    if (wait == c->wait && !renewed)
        return;
    if (c->wait != RN_WAIT_NONE)
        TAILQ_REMOVE(&server->waits[c->wait], c, wait_link);
    c->wait = wait;
    if (wait == RN_WAIT_NONE)
        return;
    c->deadline_us = rn_loop_now(server->loop).us + wait_us(server, wait);
    TAILQ_INSERT_TAIL(&server->waits[wait], c, wait_link);
    if (!rn_timer_is_set(&server->sweep) || server->sweep.at_us > c->deadline_us)
        (void)rn_timer_set(&server->sweep, (ration_time){c->deadline_us});
}

/* Those whose time is up leave their list here; the earliest of the others sets the timer. */
static void server_sweep(void *user, ration_time now)
{
    rn_server *server = user;
    int64_t next_us = RATION_NEVER_US;

    for (rn_inbound_wait wait = RN_WAIT_NONE; wait < RN_WAIT_COUNT; wait++) {
        rn_inbound *c;

        while ((c = TAILQ_FIRST(&server->waits[wait])) != NULL && c->deadline_us <= now.us) {
            TAILQ_REMOVE(&server->waits[wait], c, wait_link);
            rn_inbound_expire(c);
            c->wait = RN_WAIT_NONE;
        }
        if (c != NULL && c->deadline_us < next_us)
            next_us = c->deadline_us;
    }
    (void)rn_timer_set(&server->sweep, (ration_time){next_us});
}

/* ---- accepting */

static void server_turn_away(rn_server *server, int fd)
{
    static const char answer[] =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 21\r\n"
        "Connection: close\r\n\r\ntoo many connections\n";

    server->refused++;
    (void)send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    (void)close(fd);
}

static void server_accepts(uv_poll_t *poll, int status, int events)
{
    rn_server *server = poll->data;

    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        const int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            /* Level-triggered: without a pause the loop would spin. */
            server->refused++;
            (void)uv_poll_stop(poll);
            (void)rn_timer_set(&server->accept_again, (ration_time){rn_loop_now(server->loop).us + ACCEPT_PAUSE_US});
            return;
        }
        if (fd < 0)
            return;
        if (server->count >= server->options.max_connections) {
            server_turn_away(server, fd);
            continue;
        }
        if (server->port != 0) {
            const int on = 1;

            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        }
        if (rn_inbound_open(server, fd) != RATION_OK)
            server->refused++;
    }
}

static void server_accept_again(void *user, ration_time now)
{
    rn_server *server = user;

    (void)now;
    if (server->listener != NULL)
        (void)uv_poll_start(server->listener, UV_READABLE, server_accepts);
}

/* ---- listening */

static int fail(rn_net_error *error, const char *what, const char *where, const char *why)
{
    if (error != NULL) {
        rn_builder b;

        rn_builder_init(&b, error->text, sizeof error->text);
        rn_builder_str(&b, what);
        rn_builder_str(&b, " ");
        rn_builder_str(&b, where);
        rn_builder_str(&b, ": ");
        rn_builder_str(&b, why);
    }
    return RATION_ERR_IO;
}

/* A socket file that nobody answers at is the trace of a process that died. */
static int path_clear(const struct sockaddr_un *address, rn_net_error *error)
{
    struct stat info;

    if (lstat(address->sun_path, &info) != 0)
        return RATION_OK;
    if (!S_ISSOCK(info.st_mode))
        return fail(error, "cannot listen on", address->sun_path, "it exists and is no socket");

    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(error, "cannot listen on", address->sun_path, strerror(errno));
    const bool dead = connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
    (void)close(fd);
    if (!dead)
        return fail(error, "cannot listen on", address->sun_path, "another process listens on it");
    (void)unlink(address->sun_path);
    return RATION_OK;
}

static int server_listen_unix(rn_server *server, const rn_server_options *options, rn_net_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t size = strlen(options->path);
    const mode_t mode = options->path_mode != 0 ? (mode_t)options->path_mode : 0600;

    if (size == 0 || size >= sizeof address.sun_path) {
        (void)fail(error, "cannot listen on", options->path, "the path is empty or too long");
        return RATION_ERR_INVALID;
    }
    memcpy(address.sun_path, options->path, size);
    const int err = path_clear(&address, error);
    if (err != RATION_OK)
        return err;

    server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* On Linux the file takes the socket's mode less the umask: it is never more open than asked for. */
    if (server->fd < 0 || fchmod(server->fd, mode) != 0 ||
        bind(server->fd, (const struct sockaddr *)&address, sizeof address) != 0 || chmod(options->path, mode) != 0 ||
        listen(server->fd, server->options.backlog) != 0)
        return fail(error, "cannot listen on", options->path, strerror(errno));
    server->path = strdup(options->path);
    return server->path != NULL ? RATION_OK : RATION_ERR_NOMEM;
}

static void port_text(uint16_t port, char out[8])
{
    rn_builder b;

    rn_builder_init(&b, out, 8);
    rn_builder_int(&b, port);
}

static int server_listen_tcp(rn_server *server, const rn_server_options *options, rn_net_error *error)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    const char *host = options->host != NULL ? options->host : "127.0.0.1";
    struct addrinfo *found = NULL;
    const int on = 1;
    char where[300];
    char port[8];
    rn_builder b;

    port_text(options->port, port);
    rn_builder_init(&b, where, sizeof where);
    rn_builder_str(&b, host);
    rn_builder_str(&b, ":");
    rn_builder_str(&b, port);
    const int status = getaddrinfo(host, port, &hints, &found);
    if (status != 0)
        return fail(error, "cannot listen on", where, gai_strerror(status));

    int why = 0;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        server->fd = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
        if (server->fd >= 0 && setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
            bind(server->fd, at->ai_addr, at->ai_addrlen) == 0 && listen(server->fd, server->options.backlog) == 0)
            break;
        why = errno;
        if (server->fd >= 0)
            (void)close(server->fd);
        server->fd = -1;
    }
    freeaddrinfo(found);
    return server->fd >= 0 ? RATION_OK : fail(error, "cannot listen on", where, strerror(why));
}

/* The port that is bound, 0 for what is not TCP. */
static uint16_t socket_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage room;
    } address;
    socklen_t size = sizeof address;

    memset(&address, 0, sizeof address);
    if (getsockname(fd, &address.any, &size) != 0)
        return 0;
    if (address.any.sa_family == AF_INET)
        return ntohs(address.v4.sin_port);
    return address.any.sa_family == AF_INET6 ? ntohs(address.v6.sin6_port) : 0;
}

static size_t default_connections(void)
{
    struct rlimit limit = {0, 0};

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < 256)
        return 96;
    return limit.rlim_cur > 2000000 ? 1000000 : ((size_t)limit.rlim_cur - 64) / 2;
}

static void options_fill(rn_server_options *o)
{
    o->backlog = o->backlog > 0 ? o->backlog : 4096;
    o->max_connections = o->max_connections > 0 ? o->max_connections : default_connections();
    o->full_bytes = o->full_bytes > 0 ? o->full_bytes : 65536;
    o->head_timeout_us = o->head_timeout_us > 0 ? o->head_timeout_us : 30000000;
    o->idle_timeout_us = o->idle_timeout_us > 0 ? o->idle_timeout_us : 75000000;
    o->body_timeout_us = o->body_timeout_us > 0 ? o->body_timeout_us : 60000000;
    o->write_timeout_us = o->write_timeout_us > 0 ? o->write_timeout_us : 60000000;
    o->host = o->path = NULL;
}

/* Who has been waited for began when it did, so the order of a list stays. */
static void waits_shift(rn_server *server, rn_inbound_wait wait, int64_t by_us)
{
    rn_inbound *c;

    TAILQ_FOREACH (c, &server->waits[wait], wait_link)
        c->deadline_us = rn_add(c->deadline_us, by_us);
}

void rn_server_retime(rn_server *server, const rn_server_options *options)
{
    rn_server_options filled = *options;

    options_fill(&filled);
    waits_shift(server, RN_WAIT_HEAD, filled.head_timeout_us - server->options.head_timeout_us);
    waits_shift(server, RN_WAIT_IDLE, filled.idle_timeout_us - server->options.idle_timeout_us);
    waits_shift(server, RN_WAIT_BODY, filled.body_timeout_us - server->options.body_timeout_us);
    waits_shift(server, RN_WAIT_WRITE, filled.write_timeout_us - server->options.write_timeout_us);
    server->options.head_timeout_us = filled.head_timeout_us;
    server->options.idle_timeout_us = filled.idle_timeout_us;
    server->options.body_timeout_us = filled.body_timeout_us;
    server->options.write_timeout_us = filled.write_timeout_us;
    (void)rn_timer_set(&server->sweep, rn_loop_now(server->loop));
}

static int server_listen(rn_server *server, const rn_server_options *options, rn_net_error *error)
{
    int err = RATION_OK;

    if (options->descriptor > 0) {
        server->fd = options->descriptor;
    } else if (options->path != NULL) {
        err = server_listen_unix(server, options, error);
    } else {
        err = server_listen_tcp(server, options, error);
    }
    if (err != RATION_OK)
        return err;

    server->listener = calloc(1, sizeof *server->listener);
    if (server->listener == NULL)
        return RATION_ERR_NOMEM;
    if (uv_poll_init(rn_loop_uv(server->loop), server->listener, server->fd) != 0) {
        free(server->listener);
        server->listener = NULL;
        return fail(error, "cannot listen on", "socket", "not a socket that can be polled");
    }
    server->listener->data = server;
    server->port = socket_port(server->fd);
    return uv_poll_start(server->listener, UV_READABLE, server_accepts) == 0 ? RATION_OK : RATION_ERR_IO;
}

static void server_is_closed(rn_deferred *work)
{
    rn_server *server = (rn_server *)(void *)((char *)work - offsetof(rn_server, closed));
    void (*on_closed)(void *) = server->on_closed;

    server->on_closed = NULL;
    if (on_closed != NULL)
        on_closed(server->user);
}

static void server_takes(rn_deferred *work)
{
    rn_inbound_take_all((rn_server *)(void *)((char *)work - offsetof(rn_server, take)));
}

int rn_server_new(rn_loop *loop, const rn_server_options *options, const rn_server_handlers *handlers, void *user,
                  rn_server **out, rn_net_error *error)
{
    if (error != NULL)
        error->text[0] = '\0';
    if (loop == NULL || options == NULL || handlers == NULL || handlers->on_request == NULL || options->backlog < 0)
        return RATION_ERR_INVALID;

    rn_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return RATION_ERR_NOMEM;
    server->loop = loop;
    server->options = *options;
    options_fill(&server->options);
    server->handlers = *handlers;
    server->user = user;
    server->fd = -1;
    server->closed.fn = server_is_closed;
    server->take.fn = server_takes;
    TAILQ_INIT(&server->connections);
    TAILQ_INIT(&server->arrived);
    for (size_t i = 0; i < RN_WAIT_COUNT; i++)
        TAILQ_INIT(&server->waits[i]);
    rn_timer_init(&server->sweep, loop, server_sweep, server);
    rn_timer_init(&server->accept_again, loop, server_accept_again, server);

    const int err = server_listen(server, options, error);
    if (err != RATION_OK) {
        rn_server_free(server);
        return err;
    }
    *out = server;
    return RATION_OK;
}

/* ---- the end */

static void listener_closed(uv_handle_t *handle)
{
    free(handle);
}

static void server_stop_listening(rn_server *server)
{
    rn_timer_stop(&server->accept_again);
    if (server->listener != NULL)
        uv_close((uv_handle_t *)server->listener, listener_closed);
    server->listener = NULL;
    if (server->fd >= 0)
        (void)close(server->fd);
    server->fd = -1;
    if (server->path != NULL)
        (void)unlink(server->path);
    free(server->path);
    server->path = NULL;
}

void rn_server_close(rn_server *server, void (*on_closed)(void *user))
{
    rn_inbound *c;
    rn_inbound *next;

    server_stop_listening(server);
    server->closing = true;
    server->on_closed = on_closed;
    for (c = TAILQ_FIRST(&server->connections); c != NULL; c = next) {
        next = TAILQ_NEXT(c, link);
        rn_inbound_retire(c);
    }
    if (server->count == 0)
        rn_loop_defer(server->loop, &server->closed);
}

void rn_server_abort(rn_server *server)
{
    rn_inbound *c;
    rn_inbound *next;

    for (c = TAILQ_FIRST(&server->connections); c != NULL; c = next) {
        next = TAILQ_NEXT(c, link);
        rn_inbound_break(c, true);
    }
}

void rn_server_forget(rn_server *server, rn_inbound *c)
{
    TAILQ_REMOVE(&server->connections, c, link);
    server->count--;
    if (server->closing && server->count == 0)
        rn_loop_defer(server->loop, &server->closed);
}

void rn_server_free(rn_server *server)
{
    rn_inbound *c;

    if (server == NULL)
        return;
    server_stop_listening(server);
    server->on_closed = NULL;
    while ((c = TAILQ_FIRST(&server->connections)) != NULL)
        rn_inbound_close_now(c);
    rn_loop_forget(server->loop, &server->closed);
    rn_loop_forget(server->loop, &server->take);
    rn_timer_stop(&server->sweep);
    rn_spare_fini(&server->spare);
    free(server);
}

uint16_t rn_server_port(const rn_server *server)
{
    return server->port;
}

size_t rn_server_connections(const rn_server *server)
{
    return server->count;
}

uint64_t rn_server_refused(const rn_server *server)
{
    return server->refused;
}
