/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_WIRE_H
#define TESTS_SUPPORT_WIRE_H

/*
 * The other end of a connection, in the loop of the test: bytes are sent as they stand, what comes back is collected.
 * Tests wait for events, never for time; a guard of ten seconds turns a wait for what never comes into a failure.
 */

#include "support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <uv.h>

#include "net/loop.h"

#define WIRE_GUARD_US INT64_C(10000000)

/* Turn the loop until `condition` holds. */
#define RUN_UNTIL(loop, condition)                                                                                     \
    do {                                                                                                               \
        bool expired_ = false;                                                                                         \
        bool met_;                                                                                                     \
        rn_timer guard_;                                                                                               \
                                                                                                                       \
        rn_timer_init(&guard_, (loop), wire_guard, &expired_);                                                         \
        CHECK_EQ(rn_timer_set(&guard_, (ration_time){rn_loop_now(loop).us + WIRE_GUARD_US}), RATION_OK);               \
        while (!(met_ = (condition)) && !expired_)                                                                     \
            (void)uv_run(rn_loop_uv(loop), UV_RUN_ONCE);                                                               \
        rn_timer_stop(&guard_);                                                                                        \
        check_true(met_, #condition, __FILE__, __LINE__);                                                              \
    } while (0)

static inline void wire_guard(void *user, ration_time now)
{
    (void)now;
    *(bool *)user = true;
}

typedef struct wire {
    rn_loop *loop;
    uv_poll_t *poll;
    int fd;
    char *got; /* NUL-terminated */
    size_t size;
    bool closed; /* the other side has */
    bool reset;  /* so that it does not look like an end */
    bool deaf;   /* does not read */
} wire;

static inline void wire_ready(uv_poll_t *poll, int status, int events)
{
    wire *w = poll->data;
    char part[8192];
    const ssize_t got = recv(w->fd, part, sizeof part, 0);

    (void)events;
    if (status >= 0 && got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        w->closed = true;
        w->reset = got < 0;
        (void)uv_poll_stop(poll);
        return;
    }
    w->got = realloc(w->got, w->size + (size_t)got + 1);
    assert_non_null(w->got);
    memcpy(w->got + w->size, part, (size_t)got);
    w->size += (size_t)got;
    w->got[w->size] = '\0';
}

/* Read from now on, or no more. */
static inline void wire_listen(wire *w, bool on)
{
    w->deaf = !on;
    if (on) {
        (void)uv_poll_start(w->poll, UV_READABLE, wire_ready);
    } else {
        (void)uv_poll_stop(w->poll);
    }
}

static inline void wire_adopt(wire *w, rn_loop *loop, int fd)
{
    memset(w, 0, sizeof *w);
    CHECK(fd >= 0);
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    w->loop = loop;
    w->fd = fd;
    w->got = calloc(1, 1);
    w->poll = calloc(1, sizeof *w->poll);
    assert_non_null(w->poll);
    w->poll->data = w;
    CHECK_EQ(uv_poll_init(rn_loop_uv(loop), w->poll, fd), 0);
    wire_listen(w, true);
}

static inline void wire_connect(wire *w, rn_loop *loop, uint16_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK_EQ(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    wire_adopt(w, loop, fd);
}

/* A listener on a free port of the loopback. */
static inline int wire_listener(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    CHECK_EQ(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    CHECK_EQ(listen(fd, 16), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static inline bool wire_accept(wire *w, rn_loop *loop, int listener)
{
    const int fd = accept(listener, NULL, NULL);

    if (fd < 0)
        return false;
    wire_adopt(w, loop, fd);
    return true;
}

static inline void wire_send(wire *w, const char *text)
{
    const size_t size = strlen(text);

    CHECK_EQ(send(w->fd, text, size, MSG_NOSIGNAL), size);
}

static inline bool wire_has(const wire *w, const char *text)
{
    return strstr(w->got, text) != NULL;
}

/* Forget what has come so far. */
static inline void wire_clear(wire *w)
{
    w->size = 0;
    w->got[0] = '\0';
}

static inline void wire_poll_closed(uv_handle_t *handle)
{
    free(handle);
}

static inline void wire_close(wire *w)
{
    if (w->poll == NULL)
        return;
    uv_close((uv_handle_t *)w->poll, wire_poll_closed);
    (void)close(w->fd);
    free(w->got);
    w->poll = NULL;
}

#endif
