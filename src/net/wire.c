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
 * It also takes an end without a closing alert of TLS for a proper one, which would let anybody on the way cut a
 * response that only ends with its connection (RFC 9112, 9.8). So OpenSSL is asked to tell of that alert, and an end
 * without one is an error.
 *
 * Invariants: libcurl polls the socket until the connection stands, then we do, never both; a wire is closed outside of
 * libcurl's callbacks only.
 */

#include "net/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <curl/curl.h>
#include <openssl/ssl.h>
#include <uv.h>

#include "net/clock.h"

#define STAGE_BYTES 16384 /* one record of TLS */

struct rn_connector {
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t timer; /* the connector is freed with its closing */
};

struct rn_wire {
    rn_connector *connector;
    const rn_wire_handlers *handlers;
    void *user;
    bool tls;
    bool tells_end; /* TLS: it will be known whether the peer has said that it ends */
    bool ended;     /* and it has */
    CURL *easy;     /* NULL once a plain connection stands */
    CURLSH *share;  /* TLS: a connection cache with this one connection */
    int fd;         /* -1: not connected */
    uv_poll_t poll; /* the wire is freed with its closing */
    bool polling;
    int watched;
    char *stage; /* TLS: bytes on their way; a send that has to be tried again must find them where they were */
    size_t staged;
    char error[CURL_ERROR_SIZE];
};

_Static_assert(CURL_ERROR_SIZE <= RN_WIRE_TEXT, "an error of libcurl fits");

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

static void curl_time_is_up(uv_timer_t *timer)
{
    curl_act(timer->data, CURL_SOCKET_TIMEOUT, 0);
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
    if (uv_poll_init(c->loop, &watch->poll, fd) != 0) {
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

/* libcurl sets no timer anew that comes too early, and libuv counts from when this turn of the loop began. */
static int curl_wants_timer(CURLM *multi, long wait_ms, void *user)
{
    rn_connector *c = user;

    (void)multi;
    if (wait_ms < 0)
        return uv_timer_stop(&c->timer);

    const uint64_t late_ms = rn_clock_turn_age_ms(c->loop) + 1;

    return uv_timer_start(&c->timer, curl_time_is_up, wait_ms == 0 ? 0 : (uint64_t)wait_ms + late_ms, 0);
}

int rn_connector_new(uv_loop_t *loop, rn_connector **out)
{
    rn_connector *c = calloc(1, sizeof *c);

    if (c == NULL)
        return RATION_ERR_NOMEM;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(c);
        return RATION_ERR_NOMEM;
    }
    c->multi = curl_multi_init();
    if (c->multi == NULL) {
        curl_global_cleanup();
        free(c);
        return RATION_ERR_NOMEM;
    }
    c->loop = loop;
    (void)uv_timer_init(loop, &c->timer);
    c->timer.data = c;
    (void)curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, curl_wants_socket);
    (void)curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    (void)curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, curl_wants_timer);
    (void)curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    *out = c;
    return RATION_OK;
}

static void connector_closed(uv_handle_t *timer)
{
    free(timer->data);
}

void rn_connector_free(rn_connector *c)
{
    if (c == NULL)
        return;
    (void)curl_multi_cleanup(c->multi);
    curl_global_cleanup();
    uv_close((uv_handle_t *)&c->timer, connector_closed);
}

/* ---- connecting */

/* The kinds of failure that libcurl tells apart, where they are not plain connecting. */
static rn_wire_fault fault_of(CURLcode code)
{
    static const struct {
        CURLcode code;
        rn_wire_fault fault;
    } table[] = {
        {CURLE_OPERATION_TIMEDOUT, RN_WIRE_TIMEOUT},   {CURLE_SSL_CONNECT_ERROR, RN_WIRE_TLS},
        {CURLE_PEER_FAILED_VERIFICATION, RN_WIRE_TLS}, {CURLE_SSL_CACERT_BADFILE, RN_WIRE_TLS},
        {CURLE_SSL_CERTPROBLEM, RN_WIRE_TLS},          {CURLE_SSL_CIPHER, RN_WIRE_TLS},
        {CURLE_SSL_ISSUER_ERROR, RN_WIRE_TLS},         {CURLE_SSL_INVALIDCERTSTATUS, RN_WIRE_TLS},
        {CURLE_SSL_ENGINE_INITFAILED, RN_WIRE_TLS},    {CURLE_SSL_PINNEDPUBKEYNOTMATCH, RN_WIRE_TLS},
        {CURLE_SSL_CRL_BADFILE, RN_WIRE_TLS},          {CURLE_USE_SSL_FAILED, RN_WIRE_TLS},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].code == code)
            return table[i].fault;
    }
    return RN_WIRE_CONNECT;
}

static void wire_ready(uv_poll_t *poll, int status, int events)
{
    rn_wire *wire = poll->data;

    if (status < 0)
        wire->watched = 0; /* libuv has stopped polling */
    wire->handlers->ready(wire->user, status, events);
}

/* Let go of what libcurl holds of a wire. */
static void wire_drop_curl(rn_wire *wire)
{
    if (wire->easy != NULL) {
        (void)curl_multi_remove_handle(wire->connector->multi, wire->easy);
        curl_easy_cleanup(wire->easy);
        wire->easy = NULL;
    }
    if (wire->share != NULL) {
        (void)curl_share_cleanup(wire->share);
        wire->share = NULL;
    }
}

/* The connection stands: from here on it is ours to poll. */
static bool wire_take_over(rn_wire *wire)
{
    curl_socket_t fd = CURL_SOCKET_BAD;

    if (curl_easy_getinfo(wire->easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd == CURL_SOCKET_BAD)
        return false;
    if (!wire->tls) {
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
            return false;
        wire_drop_curl(wire);
    }
    wire->fd = fd;
    if (uv_poll_init(wire->connector->loop, &wire->poll, fd) != 0)
        return false;
    wire->poll.data = wire;
    wire->polling = true;
    return true;
}

static void wire_connected(rn_wire *wire, CURLcode code)
{
    long os_error = 0;

    if (code == CURLE_OK && wire_take_over(wire)) {
        wire->handlers->connected(wire->user);
    } else if (code == CURLE_OK) {
        wire->handlers->refused(wire->user, RN_WIRE_CONNECT, "no descriptor for the connection", 0);
    } else {
        (void)curl_easy_getinfo(wire->easy, CURLINFO_OS_ERRNO, &os_error);
        wire->handlers->refused(wire->user, fault_of(code),
                                wire->error[0] != '\0' ? wire->error : curl_easy_strerror(code), (int)os_error);
    }
}

static void connector_read_news(rn_connector *c)
{
    const CURLMsg *news;
    int left = 0;

    while ((news = curl_multi_info_read(c->multi, &left)) != NULL) {
        char *wire = NULL;

        if (news->msg != CURLMSG_DONE)
            continue;
        const CURLcode code = news->data.result;
        if (curl_easy_getinfo(news->easy_handle, CURLINFO_PRIVATE, &wire) == CURLE_OK && wire != NULL)
            wire_connected((rn_wire *)(void *)wire, code);
    }
}

static int tls_wire_index(void)
{
    static int index = -1;

    if (index < 0)
        index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    return index;
}

static void tls_told(const SSL *ssl, int where, int value)
{
    rn_wire *wire = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), tls_wire_index());

    if ((where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT && (value & 0xFF) == SSL_AD_CLOSE_NOTIFY && wire != NULL)
        wire->ended = true;
}

/* OpenSSL's context of this one connection, before it begins. */
static CURLcode tls_context_made(CURL *easy, void *context, void *user)
{
    rn_wire *wire = user;

    (void)easy;
    if (SSL_CTX_set_ex_data(context, tls_wire_index(), wire) != 1)
        return CURLE_OUT_OF_MEMORY;
    SSL_CTX_set_info_callback(context, tls_told);
    wire->tells_end = true;
    return CURLE_OK;
}

/* Another library's context is none of OpenSSL's. */
static bool tls_is_openssl(void)
{
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);

    return info->ssl_version != NULL && strncmp(info->ssl_version, "OpenSSL/3", 9) == 0;
}

static bool wire_set_trust(rn_wire *wire, const rn_wire_options *options)
{
    CURL *easy = wire->easy;
    bool ok = curl_easy_setopt(easy, CURLOPT_SSL_ENABLE_ALPN, options->alpn ? 1L : 0L) == CURLE_OK;

    if (options->tls && tls_is_openssl()) {
        ok = ok && curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, tls_context_made) == CURLE_OK;
        ok = ok && curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, wire) == CURLE_OK;
    }
    if (options->ca_file != NULL) {
        ok = ok && curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca_file) == CURLE_OK;
        ok = ok && curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
    }
    if (options->cert_file != NULL)
        ok = ok && curl_easy_setopt(easy, CURLOPT_SSLCERT, options->cert_file) == CURLE_OK;
    if (options->key_file != NULL)
        ok = ok && curl_easy_setopt(easy, CURLOPT_SSLKEY, options->key_file) == CURLE_OK;
    return ok;
}

static bool wire_set_up(rn_wire *wire, const rn_wire_options *options)
{
    const long timeout_ms = (long)(options->connect_timeout_us / 1000);
    CURL *easy = wire->easy;
    bool ok = true;

    ok = ok && curl_easy_setopt(easy, CURLOPT_URL, options->url) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_PRIVATE, wire) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, wire->error) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms > 0 ? timeout_ms : 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK;
    /* An empty text, not NULL: NULL would look into the environment. */
    ok = ok && curl_easy_setopt(easy, CURLOPT_PROXY, options->proxy != NULL ? options->proxy : "") == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_NOPROXY, "") == CURLE_OK;
    if (options->proxy != NULL)
        ok = ok && curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L) == CURLE_OK;
    if (options->unix_path != NULL)
        ok = ok && curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, options->unix_path) == CURLE_OK;
    if (wire->share != NULL)
        ok = ok && curl_easy_setopt(easy, CURLOPT_SHARE, wire->share) == CURLE_OK;
#if LIBCURL_VERSION_NUM >= 0x075700
    /* A name that is still being looked up when the handle goes must not stop the loop until it is found. */
    ok = ok && curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK;
#endif
    return ok && wire_set_trust(wire, options);
}

rn_wire *rn_wire_open(rn_connector *c, const rn_wire_options *options, const rn_wire_handlers *handlers, void *user)
{
    rn_wire *wire = calloc(1, sizeof *wire);

    if (wire == NULL)
        return NULL;
    wire->connector = c;
    wire->handlers = handlers;
    wire->user = user;
    wire->tls = options->tls;
    wire->fd = -1;
    wire->easy = curl_easy_init();
    wire->share = wire->tls ? curl_share_init() : NULL;

    bool ok = wire->easy != NULL && (!wire->tls || wire->share != NULL);

    if (ok && wire->tls)
        ok = curl_share_setopt(wire->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) == CURLSHE_OK;
    if (!ok || !wire_set_up(wire, options) || curl_multi_add_handle(c->multi, wire->easy) != CURLM_OK) {
        rn_wire_close(wire);
        return NULL;
    }
    return wire;
}

static void wire_poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void rn_wire_close(rn_wire *wire)
{
    if (wire->polling)
        uv_close((uv_handle_t *)&wire->poll, wire_poll_closed);
    wire_drop_curl(wire);
    if (wire->fd >= 0 && !wire->tls)
        (void)close(wire->fd);
    free(wire->stage);
    if (!wire->polling)
        free(wire);
}

/* ---- bytes */

static ssize_t wire_broke(rn_wire *wire, const char *text)
{
    const size_t size = strlen(text);
    const size_t fits = size < sizeof wire->error ? size : sizeof wire->error - 1;

    memmove(wire->error, text, fits);
    wire->error[fits] = '\0';
    return RN_IO_BROKEN;
}

static ssize_t wire_curl_result(rn_wire *wire, CURLcode code, size_t moved)
{
    if (code == CURLE_OK)
        return moved > 0 ? (ssize_t)moved : RN_IO_END;
    if (code == CURLE_AGAIN)
        return RN_IO_AGAIN;
    return wire_broke(wire, wire->error[0] != '\0' ? wire->error : curl_easy_strerror(code));
}

static ssize_t wire_socket_result(rn_wire *wire, ssize_t moved)
{
    if (moved > 0)
        return moved;
    if (moved == 0)
        return RN_IO_END;
    return errno == EAGAIN || errno == EINTR ? RN_IO_AGAIN : wire_broke(wire, strerror(errno));
}

/* OpenSSL wants a send that it could not finish repeated with the same bytes at the same place, but queues move. What
 * is staged is the beginning of what the caller has to send, now and when it comes again. */
static bool wire_stage(rn_wire *wire, const char *data, size_t size)
{
    if (wire->staged > 0)
        return true;
    if (wire->stage == NULL)
        wire->stage = malloc(STAGE_BYTES);
    if (wire->stage == NULL)
        return false;
    wire->staged = size < STAGE_BYTES ? size : STAGE_BYTES;
    memcpy(wire->stage, data, wire->staged);
    return true;
}

ssize_t rn_wire_send(rn_wire *wire, const char *data, size_t size)
{
    size_t moved = 0;

    if (wire->easy == NULL)
        return wire_socket_result(wire, send(wire->fd, data, size, MSG_NOSIGNAL));
    wire->error[0] = '\0';
    if (!wire_stage(wire, data, size))
        return wire_broke(wire, "out of memory");
    const CURLcode code = curl_easy_send(wire->easy, wire->stage, wire->staged, &moved);
    if (code == CURLE_OK && moved == 0)
        return RN_IO_AGAIN;
    if (code != CURLE_AGAIN)
        wire->staged = 0;
    return wire_curl_result(wire, code, moved);
}

ssize_t rn_wire_receive(rn_wire *wire, char *data, size_t size)
{
    size_t moved = 0;

    if (wire->easy == NULL)
        return wire_socket_result(wire, recv(wire->fd, data, size, 0));
    wire->error[0] = '\0';
    const CURLcode code = curl_easy_recv(wire->easy, data, size, &moved);
    if (code == CURLE_OK && moved == 0 && wire->tells_end && !wire->ended)
        return wire_broke(wire, "connection closed without TLS close_notify");
    return wire_curl_result(wire, code, moved);
}

void rn_wire_watch(rn_wire *wire, int events)
{
    if (!wire->polling || events == wire->watched)
        return;
    if (events == 0) {
        (void)uv_poll_stop(&wire->poll);
    } else {
        (void)uv_poll_start(&wire->poll, events, wire_ready);
    }
    wire->watched = events;
}

bool rn_wire_is_quiet(const rn_wire *wire)
{
    char byte;

    return recv(wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

const char *rn_wire_error(const rn_wire *wire)
{
    return wire->error;
}
