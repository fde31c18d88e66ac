/* SPDX-License-Identifier: MIT */
/*
 * A connection to another server: libcurl makes it, we speak over it.
 *
 * libcurl's multi with CONNECT_ONLY knows names, address races, proxies, TLS, verification and how to say what failed.
 * When the connection stands, a plain one is taken out of its hands (its descriptor is duplicated and the easy handle
 * goes); one with TLS stays in the multi, because curl_easy_send and curl_easy_recv need it there.
 *
 * libcurl looks through its cache at each new connection, closes what it takes for dead or has not used itself for two
 * minutes, whatever we do with it, and finds a connection by walking the cache. So each TLS connection has a cache of
 * its own, in a share that holds nothing else: nothing is looked through, and finding is O(1).
 *
 * Invariants: libcurl polls the socket until the connection stands, then we do, never both; a link is closed outside of
 * libcurl's callbacks only.
 */

#include "net/upstream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STAGE_BYTES 16384 /* one record of TLS */

/* ---- libcurl's part of the loop */

typedef struct rn_curl_watch {
    uv_poll_t poll;
    rn_connector *connector;
    curl_socket_t fd;
} rn_curl_watch;

static void connector_read_news(rn_connector *c);

static void curl_act(rn_connector *c, curl_socket_t fd, int events)
{
    int running = 0;

    (void)curl_multi_socket_action(c->multi, fd, events, &running);
    connector_read_news(c);
}

static void curl_socket_ready(uv_poll_t *poll, int status, int events)
{
    rn_curl_watch *watch = poll->data;
    int what = status < 0 ? CURL_CSELECT_ERR : 0;

    what |= (events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0;
    what |= (events & UV_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0;
    curl_act(watch->connector, watch->fd, what);
}

static void curl_time_is_up(void *user, ration_time now)
{
    (void)now;
    curl_act(user, CURL_SOCKET_TIMEOUT, 0);
}

static void curl_watch_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static rn_curl_watch *curl_watch_new(rn_connector *c, curl_socket_t fd)
{
    rn_curl_watch *watch = calloc(1, sizeof *watch);

    if (watch == NULL)
        return NULL;
    if (uv_poll_init(rn_loop_uv(c->loop), &watch->poll, fd) != 0) {
        free(watch);
        return NULL;
    }
    watch->poll.data = watch;
    watch->connector = c;
    watch->fd = fd;
    return watch;
}

/* libcurl wants a socket polled, or no more. */
static int curl_wants_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *of_socket)
{
    rn_connector *c = user;
    rn_curl_watch *watch = of_socket;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch != NULL) {
            (void)curl_multi_assign(c->multi, fd, NULL);
            uv_close((uv_handle_t *)&watch->poll, curl_watch_closed);
        }
        return 0;
    }
    if (watch == NULL) {
        watch = curl_watch_new(c, fd);
        if (watch == NULL)
            return -1;
        (void)curl_multi_assign(c->multi, fd, watch);
    }
    const int events = ((what & CURL_POLL_IN) != 0 ? UV_READABLE : 0) | ((what & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0);
    return uv_poll_start(&watch->poll, events, curl_socket_ready) == 0 ? 0 : -1;
}

static int curl_wants_timer(CURLM *multi, long wait_ms, void *user)
{
    rn_connector *c = user;

    (void)multi;
    if (wait_ms < 0) {
        rn_timer_stop(&c->timer);
        return 0;
    }
    return rn_timer_set(&c->timer, (ration_time){rn_loop_now(c->loop).us + wait_ms * INT64_C(1000)}) == RATION_OK ? 0
                                                                                                                  : -1;
}

int rn_connector_init(rn_connector *c, rn_loop *loop, int64_t connect_timeout_us)
{
    c->loop = loop;
    c->connect_timeout_us = connect_timeout_us;
    rn_timer_init(&c->timer, loop, curl_time_is_up, c);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return RATION_ERR_NOMEM;
    c->multi = curl_multi_init();
    if (c->multi == NULL) {
        curl_global_cleanup();
        return RATION_ERR_NOMEM;
    }
    (void)curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, curl_wants_socket);
    (void)curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    (void)curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, curl_wants_timer);
    (void)curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    return RATION_OK;
}

void rn_connector_fini(rn_connector *c)
{
    if (c->multi == NULL)
        return;
    rn_timer_stop(&c->timer);
    (void)curl_multi_cleanup(c->multi);
    curl_global_cleanup();
    c->multi = NULL;
}

/* ---- connecting */

/* The kinds of failure that libcurl tells apart, where they are not plain connecting. */
static rn_upstream_fault fault_of(CURLcode code)
{
    static const struct {
        CURLcode code;
        rn_upstream_fault fault;
    } table[] = {
        {CURLE_OPERATION_TIMEDOUT, RN_UPSTREAM_TIMEOUT},   {CURLE_SSL_CONNECT_ERROR, RN_UPSTREAM_TLS},
        {CURLE_PEER_FAILED_VERIFICATION, RN_UPSTREAM_TLS}, {CURLE_SSL_CACERT_BADFILE, RN_UPSTREAM_TLS},
        {CURLE_SSL_CERTPROBLEM, RN_UPSTREAM_TLS},          {CURLE_SSL_CIPHER, RN_UPSTREAM_TLS},
        {CURLE_SSL_ISSUER_ERROR, RN_UPSTREAM_TLS},         {CURLE_SSL_INVALIDCERTSTATUS, RN_UPSTREAM_TLS},
        {CURLE_SSL_ENGINE_INITFAILED, RN_UPSTREAM_TLS},    {CURLE_SSL_PINNEDPUBKEYNOTMATCH, RN_UPSTREAM_TLS},
        {CURLE_SSL_CRL_BADFILE, RN_UPSTREAM_TLS},          {CURLE_USE_SSL_FAILED, RN_UPSTREAM_TLS},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].code == code)
            return table[i].fault;
    }
    return RN_UPSTREAM_CONNECT;
}

static void link_poll_ready(uv_poll_t *poll, int status, int events)
{
    rn_link *link = poll->data;

    if (status < 0)
        link->watched = 0; /* libuv has stopped polling */
    if (link->up != NULL) {
        rn_upstream_ready(link->up, status, events);
    } else {
        rn_pool_drop(link);
    }
}

/* Let go of what libcurl holds of a link. */
static void link_drop_curl(rn_link *link)
{
    if (link->easy != NULL) {
        (void)curl_multi_remove_handle(link->pool->connector.multi, link->easy);
        curl_easy_cleanup(link->easy);
        link->easy = NULL;
    }
    if (link->share != NULL) {
        (void)curl_share_cleanup(link->share);
        link->share = NULL;
    }
}

/* The connection stands: from here on it is ours to poll. */
static bool link_take_over(rn_link *link)
{
    curl_socket_t fd = CURL_SOCKET_BAD;

    if (curl_easy_getinfo(link->easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd == CURL_SOCKET_BAD)
        return false;
    if (!link->origin->tls) {
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
            return false;
        link_drop_curl(link);
    }
    link->fd = fd;
    if (uv_poll_init(rn_loop_uv(link->pool->loop), &link->poll, fd) != 0)
        return false;
    link->poll.data = link;
    link->polling = true;
    return true;
}

static void link_connected(rn_link *link, CURLcode code)
{
    rn_upstream *up = link->up;
    rn_fault fault;

    if (code == CURLE_OK && link_take_over(link)) {
        rn_upstream_connected(up);
        return;
    }
    if (code == CURLE_OK) {
        rn_fault_set(&fault, RN_UPSTREAM_CONNECT, "no descriptor for the connection");
    } else {
        rn_fault_set(&fault, fault_of(code), link->error[0] != '\0' ? link->error : curl_easy_strerror(code));
    }
    rn_link_close(link);
    rn_upstream_refused(up, &fault);
}

static void connector_read_news(rn_connector *c)
{
    const CURLMsg *news;
    int left = 0;

    while ((news = curl_multi_info_read(c->multi, &left)) != NULL) {
        char *link = NULL;

        if (news->msg != CURLMSG_DONE)
            continue;
        const CURLcode code = news->data.result;
        if (curl_easy_getinfo(news->easy_handle, CURLINFO_PRIVATE, &link) == CURLE_OK && link != NULL)
            link_connected((rn_link *)(void *)link, code);
    }
}

static bool link_set_up(rn_link *link)
{
    const rn_origin *origin = link->origin;
    const long timeout_ms = (long)(link->pool->connector.connect_timeout_us / 1000);
    CURL *easy = link->easy;
    bool ok = true;

    ok = ok && curl_easy_setopt(easy, CURLOPT_URL, origin->url) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_PRIVATE, link) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, link->error) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms > 0 ? timeout_ms : 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK;
    /* An empty text, not NULL: NULL would look into the environment. */
    ok = ok && curl_easy_setopt(easy, CURLOPT_PROXY, origin->proxy != NULL ? origin->proxy : "") == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_NOPROXY, "") == CURLE_OK;
    if (origin->proxy != NULL)
        ok = ok && curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L) == CURLE_OK;
    if (origin->ca_file != NULL) {
        ok = ok && curl_easy_setopt(easy, CURLOPT_CAINFO, origin->ca_file) == CURLE_OK;
        ok = ok && curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
    }
    if (link->share != NULL)
        ok = ok && curl_easy_setopt(easy, CURLOPT_SHARE, link->share) == CURLE_OK;
#if LIBCURL_VERSION_NUM >= 0x075700
    /* A name that is still being looked up when the handle goes must not stop the loop until it is found. */
    ok = ok && curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK;
#endif
    return ok;
}

rn_link *rn_link_open(rn_upstream_pool *pool, rn_origin *origin, rn_upstream *up)
{
    rn_link *link = calloc(1, sizeof *link);

    if (link == NULL)
        return NULL;
    link->pool = pool;
    link->origin = origin;
    link->up = up;
    link->fd = -1;
    rn_origin_hold(origin);
    TAILQ_INSERT_TAIL(&pool->links, link, link);
    pool->stats.open++;
    pool->stats.connects++;

    link->easy = curl_easy_init();
    link->share = origin->tls ? curl_share_init() : NULL;
    bool ok = link->easy != NULL && (!origin->tls || link->share != NULL);
    if (ok && origin->tls)
        ok = curl_share_setopt(link->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) == CURLSHE_OK;
    if (!ok || !link_set_up(link) || curl_multi_add_handle(pool->connector.multi, link->easy) != CURLM_OK) {
        rn_link_close(link);
        return NULL;
    }
    return link;
}

static void link_poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void rn_link_close(rn_link *link)
{
    const bool owns_fd = link->fd >= 0 && !link->origin->tls;

    rn_pool_forget_link(link);
    if (link->polling)
        uv_close((uv_handle_t *)&link->poll, link_poll_closed);
    link_drop_curl(link);
    if (owns_fd)
        (void)close(link->fd);
    free(link->stage);
    rn_origin_drop(link->origin);
    if (!link->polling)
        free(link);
}

/* ---- bytes */

static ssize_t link_broke(rn_link *link, const char *text)
{
    const size_t size = strlen(text);
    const size_t fits = size < sizeof link->error ? size : sizeof link->error - 1;

    memmove(link->error, text, fits);
    link->error[fits] = '\0';
    return RN_IO_BROKEN;
}

static ssize_t link_curl_result(rn_link *link, CURLcode code, size_t moved)
{
    if (code == CURLE_OK)
        return moved > 0 ? (ssize_t)moved : RN_IO_END;
    if (code == CURLE_AGAIN)
        return RN_IO_AGAIN;
    return link_broke(link, link->error[0] != '\0' ? link->error : curl_easy_strerror(code));
}

static ssize_t link_socket_result(rn_link *link, ssize_t moved)
{
    if (moved > 0)
        return moved;
    if (moved == 0)
        return RN_IO_END;
    return errno == EAGAIN || errno == EINTR ? RN_IO_AGAIN : link_broke(link, strerror(errno));
}

/* OpenSSL wants a send that it could not finish repeated with the same bytes at the same place, but queues move. What
 * is staged is the beginning of what the caller has to send, now and when it comes again. */
static bool link_stage(rn_link *link, const char *data, size_t size)
{
    if (link->staged > 0)
        return true;
    if (link->stage == NULL)
        link->stage = malloc(STAGE_BYTES);
    if (link->stage == NULL)
        return false;
    link->staged = size < STAGE_BYTES ? size : STAGE_BYTES;
    memcpy(link->stage, data, link->staged);
    return true;
}

ssize_t rn_link_send(rn_link *link, const char *data, size_t size)
{
    size_t moved = 0;

    if (link->easy == NULL)
        return link_socket_result(link, send(link->fd, data, size, MSG_NOSIGNAL));
    link->error[0] = '\0';
    if (!link_stage(link, data, size))
        return link_broke(link, "out of memory");
    const CURLcode code = curl_easy_send(link->easy, link->stage, link->staged, &moved);
    if (code == CURLE_OK && moved == 0)
        return RN_IO_AGAIN;
    if (code != CURLE_AGAIN)
        link->staged = 0;
    return link_curl_result(link, code, moved);
}

ssize_t rn_link_receive(rn_link *link, char *data, size_t size)
{
    size_t moved = 0;

    if (link->easy == NULL)
        return link_socket_result(link, recv(link->fd, data, size, 0));
    link->error[0] = '\0';
    const CURLcode code = curl_easy_recv(link->easy, data, size, &moved);
    return link_curl_result(link, code, moved);
}

void rn_link_watch(rn_link *link, int events)
{
    if (!link->polling || events == link->watched)
        return;
    if (events == 0) {
        (void)uv_poll_stop(&link->poll);
    } else {
        (void)uv_poll_start(&link->poll, events, link_poll_ready);
    }
    link->watched = events;
}

bool rn_link_is_alive(rn_link *link)
{
    char byte;

    return recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}
