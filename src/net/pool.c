/* SPDX-License-Identifier: MIT */
/*
 * Origins, the connections to them, and the time of requests.
 *
 * An idle connection stands in two lists: its origin's, the newest first, because the newest is the least likely to
 * have been closed by the peer; and the pool's, the oldest first, for the bound and the time-out. It is polled: what
 * the peer says on it, an end above all, closes it at once. It is looked at once more before a request is sent.
 *
 * As in the server, each kind of waiting has one duration and one list in order of deadlines, and one timer serves all.
 *
 * Invariants: a link is idle exactly if `up` is NULL and it is connected; `stats.open` is the length of `links`,
 * `stats.idle` that of `idle`; an origin lives as long as a caller or a link holds it.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <uv.h>

#include "base/text.h"
#include "net/upstream.h"

const char *rn_upstream_fault_name(rn_upstream_fault fault)
{
    static const char *const names[] = {"upstream_connect", "upstream_tls", "upstream_timeout", "upstream_broken"};

    return names[fault];
}

void rn_fault_set(rn_fault *fault, rn_upstream_fault kind, const char *text)
{
    rn_builder b;

    fault->kind = kind;
    rn_builder_init(&b, fault->text, sizeof fault->text);
    rn_builder_str(&b, text);
}

/* ---- time */

static int64_t wait_us(const rn_upstream_pool *pool, rn_upstream_wait wait)
{
    return wait == RN_UPSTREAM_WAIT_FIRST ? pool->options.first_byte_timeout_us : pool->options.idle_timeout_us;
}

static void pool_wake_by(rn_upstream_pool *pool, int64_t at_us)
{
    if (!rn_timer_is_set(&pool->sweep) || pool->sweep.at_us > at_us)
        (void)rn_timer_set(&pool->sweep, (ration_time){at_us});
}

void rn_pool_wait(rn_upstream_pool *pool, rn_upstream *up, rn_upstream_wait wait)
{
    const bool renewed = up->moved && wait == RN_UPSTREAM_WAIT_IDLE;

    up->moved = false;
    if (wait == up->wait && !renewed)
        return;
    if (up->wait != RN_UPSTREAM_WAIT_NONE)
        TAILQ_REMOVE(&pool->waits[up->wait], up, wait_link);
    up->wait = wait;
    if (wait == RN_UPSTREAM_WAIT_NONE)
        return;
    up->deadline_us = rn_loop_now(pool->loop).us + wait_us(pool, wait);
    TAILQ_INSERT_TAIL(&pool->waits[wait], up, wait_link);
    pool_wake_by(pool, up->deadline_us);
}

static void pool_sweep(void *user, ration_time now)
{
    rn_upstream_pool *pool = user;
    int64_t next_us = RATION_NEVER_US;
    rn_link *link;

    while ((link = TAILQ_FIRST(&pool->idle)) != NULL && link->idle_until_us <= now.us)
        rn_link_close(link);
    if (link != NULL)
        next_us = link->idle_until_us;
    for (rn_upstream_wait wait = RN_UPSTREAM_WAIT_FIRST; wait < RN_UPSTREAM_WAIT_COUNT; wait++) {
        rn_upstream *up;

        while ((up = TAILQ_FIRST(&pool->waits[wait])) != NULL && up->deadline_us <= now.us) {
            TAILQ_REMOVE(&pool->waits[wait], up, wait_link);
            up->wait = RN_UPSTREAM_WAIT_NONE;
            rn_upstream_expire(up);
        }
        if (up != NULL && up->deadline_us < next_us)
            next_us = up->deadline_us;
    }
    (void)rn_timer_set(&pool->sweep, (ration_time){next_us});
}

/* ---- connections */

static void link_leave_idle(rn_link *link)
{
    TAILQ_REMOVE(&link->pool->idle, link, idle_link);
    TAILQ_REMOVE(&link->origin->idle, link, origin_link);
    link->pool->stats.idle--;
}

void rn_pool_forget_link(rn_link *link)
{
    if (link->up == NULL && link->stands)
        link_leave_idle(link);
    TAILQ_REMOVE(&link->pool->links, link, link);
    link->pool->stats.open--;
}

void rn_pool_drop(rn_link *link)
{
    rn_link_close(link);
}

void rn_pool_keep(rn_link *link)
{
    rn_upstream_pool *pool = link->pool;

    if (link->origin->callers == 0) {
        rn_link_close(link);
        return;
    }
    if (pool->stats.idle >= pool->options.max_idle)
        rn_link_close(TAILQ_FIRST(&pool->idle));
    link->up = NULL;
    link->served = true;
    link->idle_until_us = rn_loop_now(pool->loop).us + pool->options.idle_keep_us;
    TAILQ_INSERT_TAIL(&pool->idle, link, idle_link);
    TAILQ_INSERT_HEAD(&link->origin->idle, link, origin_link);
    pool->stats.idle++;
    rn_wire_watch(link->wire, UV_READABLE);
    pool_wake_by(pool, link->idle_until_us);
}

/* The newest idle connection. */
static rn_link *pool_reuse(rn_origin *origin, rn_upstream *up)
{
    rn_link *link = TAILQ_FIRST(&origin->idle);

    if (link == NULL)
        return NULL;
    link_leave_idle(link);
    link->up = up;
    link->pool->stats.reuses++;
    return link;
}

bool rn_pool_connect(rn_upstream_pool *pool, rn_origin *origin, rn_upstream *up, bool fresh, rn_fault *fault)
{
    up->link = fresh ? NULL : pool_reuse(origin, up);
    up->connected = up->link != NULL;
    if (up->connected)
        return true;

    if (pool->stats.open >= pool->options.max_connections && TAILQ_FIRST(&pool->idle) != NULL)
        rn_link_close(TAILQ_FIRST(&pool->idle));
    if (pool->stats.open >= pool->options.max_connections) {
        rn_fault_set(fault, RN_UPSTREAM_CONNECT, "all connections that may be open are in use");
        return false;
    }
    up->link = rn_link_open(pool, origin, up);
    if (up->link == NULL)
        rn_fault_set(fault, RN_UPSTREAM_CONNECT, "no memory for a connection");
    return up->link != NULL;
}

/* ---- origins */

static bool host_is_valid(const char *host)
{
    size_t size = 0;

    for (; host[size] != '\0'; size++) {
        const char c = host[size];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!letter && c != '.' && c != '-' && c != '_' && c != ':')
            return false;
    }
    return size > 0 && size <= 255;
}

/* host, or [host] for IPv6, and the port unless it is the scheme's own and `short_form`. */
static void write_authority(rn_builder *b, const rn_origin_options *o, bool short_form)
{
    const uint16_t usual = o->tls ? 443 : 80;
    const uint16_t port = o->port != 0 ? o->port : usual;
    const bool v6 = strchr(o->host, ':') != NULL;

    rn_builder_str(b, v6 ? "[" : "");
    rn_builder_str(b, o->host);
    rn_builder_str(b, v6 ? "]" : "");
    if (port != usual || !short_form) {
        rn_builder_char(b, ':');
        rn_builder_int(b, port);
    }
}

static char *origin_text(const rn_origin_options *o, const char *scheme, bool short_form)
{
    char text[300];
    rn_builder b;

    rn_builder_init(&b, text, sizeof text);
    rn_builder_str(&b, scheme);
    write_authority(&b, o, short_form);
    rn_builder_str(&b, scheme[0] != '\0' ? "/" : "");
    return strdup(text);
}

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static rn_origin *pool_find_origin(rn_upstream_pool *pool, const char *url, const rn_origin_options *options)
{
    rn_origin *origin;

    TAILQ_FOREACH (origin, &pool->origins, link) {
        if (same(origin->url, url) && same(origin->ca_file, options->ca_file) && same(origin->proxy, options->proxy))
            return origin;
    }
    return NULL;
}

static void origin_free(rn_origin *origin)
{
    free(origin->url);
    free(origin->authority);
    free(origin->ca_file);
    free(origin->proxy);
    free(origin);
}

static rn_origin *origin_new(rn_upstream_pool *pool, const rn_origin_options *options)
{
    rn_origin *origin = calloc(1, sizeof *origin);

    if (origin == NULL)
        return NULL;
    origin->pool = pool;
    origin->tls = options->tls;
    origin->url = origin_text(options, options->tls ? "https://" : "http://", false);
    origin->authority = origin_text(options, "", true);
    origin->ca_file = options->ca_file != NULL ? strdup(options->ca_file) : NULL;
    origin->proxy = options->proxy != NULL ? strdup(options->proxy) : NULL;
    TAILQ_INIT(&origin->idle);
    if (origin->url == NULL || origin->authority == NULL || (options->ca_file != NULL && origin->ca_file == NULL) ||
        (options->proxy != NULL && origin->proxy == NULL)) {
        origin_free(origin);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&pool->origins, origin, link);
    return origin;
}

int rn_origin_acquire(rn_upstream_pool *pool, const rn_origin_options *options, rn_origin **out)
{
    if (options->host == NULL || !host_is_valid(options->host))
        return RATION_ERR_INVALID;

    char *url = origin_text(options, options->tls ? "https://" : "http://", false);
    if (url == NULL)
        return RATION_ERR_NOMEM;
    rn_origin *origin = pool_find_origin(pool, url, options);
    free(url);
    if (origin == NULL)
        origin = origin_new(pool, options);
    if (origin == NULL)
        return RATION_ERR_NOMEM;
    origin->callers++;
    *out = origin;
    return RATION_OK;
}

void rn_origin_hold(rn_origin *origin)
{
    origin->links++;
}

static void origin_free_if_unused(rn_origin *origin)
{
    if (origin->callers > 0 || origin->links > 0)
        return;
    TAILQ_REMOVE(&origin->pool->origins, origin, link);
    origin_free(origin);
}

void rn_origin_drop(rn_origin *origin)
{
    origin->links--;
    origin_free_if_unused(origin);
}

void rn_origin_release(rn_origin *origin)
{
    if (origin == NULL)
        return;

    /* While the idle ones are closed, one hold keeps the origin itself. */
    rn_link *link;
    while (origin->callers == 1 && (link = TAILQ_FIRST(&origin->idle)) != NULL)
        rn_link_close(link);
    origin->callers--;
    origin_free_if_unused(origin);
}

ration_text rn_origin_authority(const rn_origin *origin)
{
    return ration_text_of(origin->authority);
}

/* ---- the pool */

static void options_fill(rn_upstream_options *o)
{
    struct rlimit limit = {0, 0};
    const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= 256;
    const size_t most = limit.rlim_cur > 2000000 ? 2000000 : (size_t)limit.rlim_cur;

    o->max_connections = o->max_connections > 0 ? o->max_connections : known ? (most - 64) / 2 : 96;
    o->max_idle = o->max_idle > 0 ? o->max_idle : 256;
    o->idle_keep_us = o->idle_keep_us > 0 ? o->idle_keep_us : 50000000;
    o->connect_timeout_us = o->connect_timeout_us > 0 ? o->connect_timeout_us : 10000000;
    o->first_byte_timeout_us = o->first_byte_timeout_us > 0 ? o->first_byte_timeout_us : 60000000;
    o->idle_timeout_us = o->idle_timeout_us > 0 ? o->idle_timeout_us : 60000000;
    o->full_bytes = o->full_bytes > 0 ? o->full_bytes : 65536;
}

int rn_upstream_pool_new(rn_loop *loop, const rn_upstream_options *options, rn_upstream_pool **out)
{
    rn_upstream_pool *pool = calloc(1, sizeof *pool);

    if (pool == NULL)
        return RATION_ERR_NOMEM;
    pool->loop = loop;
    if (options != NULL)
        pool->options = *options;
    options_fill(&pool->options);
    TAILQ_INIT(&pool->origins);
    TAILQ_INIT(&pool->links);
    TAILQ_INIT(&pool->idle);
    TAILQ_INIT(&pool->upstreams);
    for (size_t i = 0; i < RN_UPSTREAM_WAIT_COUNT; i++)
        TAILQ_INIT(&pool->waits[i]);
    rn_timer_init(&pool->sweep, loop, pool_sweep, pool);

    const int err = rn_connector_new(rn_loop_uv(loop), &pool->connector);
    if (err != RATION_OK) {
        free(pool);
        return err;
    }
    *out = pool;
    return RATION_OK;
}

void rn_upstream_pool_free(rn_upstream_pool *pool)
{
    rn_upstream *up;
    rn_link *link;
    rn_origin *origin;

    if (pool == NULL)
        return;
    while ((up = TAILQ_FIRST(&pool->upstreams)) != NULL)
        rn_upstream_discard(up);
    while ((link = TAILQ_FIRST(&pool->links)) != NULL)
        rn_link_close(link);
    /* Origins that callers still hold die with the pool: they are of no use without it. */
    while ((origin = TAILQ_FIRST(&pool->origins)) != NULL) {
        TAILQ_REMOVE(&pool->origins, origin, link);
        origin_free(origin);
    }
    rn_timer_stop(&pool->sweep);
    rn_connector_free(pool->connector);
    free(pool);
}

void rn_upstream_pool_stats(const rn_upstream_pool *pool, rn_upstream_stats *out)
{
    *out = pool->stats;
}
