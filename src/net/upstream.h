/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_UPSTREAM_H
#define RN_NET_UPSTREAM_H

#include <sys/queue.h>

#include "net/buffer.h"
#include "net/connection.h"
#include "net/http1.h"
#include "net/wire.h"

/*
 * Between link.c (a connection), pool.c (origins, idle links, time) and upstream.c (a request's life).
 */

#define RN_POOL_SCRATCH 65536

typedef struct rn_link rn_link;
typedef TAILQ_HEAD(rn_link_list, rn_link) rn_link_list;
typedef TAILQ_HEAD(rn_upstream_list, rn_upstream) rn_upstream_list;

/* A fault and its words. */
typedef struct rn_fault {
    rn_upstream_fault kind;
    char text[RN_WIRE_TEXT];
} rn_fault;

void rn_fault_set(rn_fault *fault, rn_upstream_fault kind, const char *text);

/* ---- link.c */

/* A connection to an origin: connecting, carrying one request, or idle. */
struct rn_link {
    rn_upstream_pool *pool;
    rn_origin *origin;
    rn_upstream *up; /* NULL: idle */
    rn_wire *wire;
    bool stands; /* the wire: it is connected */
    bool served; /* it has carried a request to its end */
    int64_t idle_until_us;
    TAILQ_ENTRY(rn_link) link;        /* of the pool: all */
    TAILQ_ENTRY(rn_link) idle_link;   /* of the pool: idle, the oldest first */
    TAILQ_ENTRY(rn_link) origin_link; /* of the origin: idle, the newest first */
};

/* Start to connect; `rn_upstream_connected` or `rn_upstream_refused` follow, in a later turn. NULL: no memory. */
rn_link *rn_link_open(rn_upstream_pool *pool, rn_origin *origin, rn_upstream *up);
void rn_link_close(rn_link *link);

/* ---- pool.c */

struct rn_origin {
    rn_upstream_pool *pool;
    size_t callers; /* that hold it; with none, its links are not kept */
    size_t links;   /* and running requests, that hold it */
    char *url;
    char *authority;
    char *ca_file;
    char *proxy;
    bool tls;
    rn_link_list idle;
    TAILQ_ENTRY(rn_origin) link;
};

typedef enum rn_upstream_wait {
    RN_UPSTREAM_WAIT_NONE = 0,
    RN_UPSTREAM_WAIT_FIRST, /* byte of the response */
    RN_UPSTREAM_WAIT_IDLE,
    RN_UPSTREAM_WAIT_COUNT,
} rn_upstream_wait;

struct rn_upstream_pool {
    rn_loop *loop;
    rn_upstream_options options; /* with all defaults filled in */
    rn_connector *connector;
    TAILQ_HEAD(, rn_origin) origins;
    rn_link_list links;
    rn_link_list idle;
    rn_upstream_list upstreams;
    rn_upstream_list waits[RN_UPSTREAM_WAIT_COUNT];
    rn_timer sweep;
    rn_upstream_stats stats;
    char scratch[RN_POOL_SCRATCH]; /* one read of any connection */
};

/* A connection for a request: an idle one, unless `fresh`, else a new one. False: `fault` says why. */
bool rn_pool_connect(rn_upstream_pool *pool, rn_origin *origin, rn_upstream *up, bool fresh, rn_fault *fault);
/* A connection whose request is complete is kept for the next one. */
void rn_pool_keep(rn_link *link);
/* An idle connection has said something. */
void rn_pool_drop(rn_link *link);
void rn_pool_forget_link(rn_link *link);
void rn_origin_hold(rn_origin *origin);
void rn_origin_drop(rn_origin *origin);
/* File or take out a deadline. */
void rn_pool_wait(rn_upstream_pool *pool, rn_upstream *up, rn_upstream_wait wait);

/* ---- upstream.c */

struct rn_upstream {
    rn_upstream_pool *pool;
    rn_origin *origin;
    rn_upstream_handlers handlers;
    void *user;
    rn_link *link; /* NULL: dead, or failed */
    bool connected;
    bool dead;
    bool failed; /* `fault` is to be told */
    rn_fault fault;
    rn_deferred settle;
    bool settling;
    TAILQ_ENTRY(rn_upstream) list;

    /* the request */
    rn_buffer out; /* the head, then what waits to be sent of a stream */
    size_t out_at; /* sent of `out`, which is kept whole while it may be needed again */
    ration_text body;
    size_t body_at;
    int64_t body_left; /* of a stream's length told */
    bool stream;
    bool chunked;
    bool finished; /* all of the request is here */
    bool repeatable;
    bool repeated;
    bool said_full;
    bool sent_any;
    unsigned stalls; /* vain attempts to send in a row */
    rn_timer retry;
    bool send_broken; /* no more can be sent; an answer may be there all the same */

    /* the response */
    rn_http1 parser;
    rn_buffer in; /* read, but not yet parsed */
    bool answers_head;
    bool begun;        /* its first byte has come */
    unsigned interims; /* 1xx before it */
    bool paused;
    bool untimely; /* bytes came that are not wanted yet */
    bool try_read; /* TLS: bytes may be there that the socket does not tell of */

    rn_upstream_wait wait;
    bool moved;
    int64_t deadline_us;
    TAILQ_ENTRY(rn_upstream) wait_link;
};

void rn_upstream_connected(rn_upstream *up);
void rn_upstream_refused(rn_upstream *up, const rn_fault *fault);
void rn_upstream_ready(rn_upstream *up, int status, int events);
void rn_upstream_expire(rn_upstream *up);
/* Free it now, without a callback. */
void rn_upstream_discard(rn_upstream *up);

#endif
