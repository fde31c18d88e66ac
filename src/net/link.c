/* SPDX-License-Identifier: MIT */
/*
 * A wire to an origin that carries one request at a time.
 *
 * Invariant: what the wire tells goes to the request that the link carries; an idle link is dropped, whatever it says.
 */

#include "net/upstream.h"

#include <stdlib.h>

static void link_connected(void *user)
{
    rn_link *link = user;

    link->stands = true;
    rn_upstream_connected(link->up);
}

static void link_refused(void *user, rn_wire_fault kind, const char *text, int os_error)
{
    static const rn_upstream_fault faults[] = {
        [RN_WIRE_CONNECT] = RN_UPSTREAM_CONNECT,
        [RN_WIRE_TLS] = RN_UPSTREAM_TLS,
        [RN_WIRE_TIMEOUT] = RN_UPSTREAM_TIMEOUT,
    };
    rn_link *link = user;
    rn_upstream *up = link->up;
    rn_fault fault;

    (void)os_error;
    rn_fault_set(&fault, faults[kind], text);
    rn_link_close(link);
    rn_upstream_refused(up, &fault);
}

static void link_ready(void *user, int status, int events)
{
    rn_link *link = user;

    if (link->up != NULL) {
        rn_upstream_ready(link->up, status, events);
    } else {
        rn_pool_drop(link);
    }
}

rn_link *rn_link_open(rn_upstream_pool *pool, rn_origin *origin, rn_upstream *up)
{
    static const rn_wire_handlers handlers = {link_connected, link_refused, link_ready};
    const rn_wire_options options = {
        .url = origin->url,
        .ca_file = origin->ca_file,
        .proxy = origin->proxy,
        .tls = origin->tls,
        .alpn = true,
        .connect_timeout_us = pool->options.connect_timeout_us,
    };
    rn_link *link = calloc(1, sizeof *link);

    if (link == NULL)
        return NULL;
    link->pool = pool;
    link->origin = origin;
    link->up = up;
    rn_origin_hold(origin);
    TAILQ_INSERT_TAIL(&pool->links, link, link);
    pool->stats.open++;
    pool->stats.connects++;
    link->wire = rn_wire_open(pool->connector, &options, &handlers, link);
    if (link->wire == NULL) {
        rn_link_close(link);
        return NULL;
    }
    return link;
}

void rn_link_close(rn_link *link)
{
    rn_pool_forget_link(link);
    if (link->wire != NULL)
        rn_wire_close(link->wire);
    rn_origin_drop(link->origin);
    free(link);
}
