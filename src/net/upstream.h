/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_UPSTREAM_H
#define RN_NET_UPSTREAM_H

#include <sys/queue.h>
#include <sys/types.h>

#include <curl/curl.h>
#include <uv.h>

#include "net/buffer.h"
#include "net/connection.h"
#include "net/http1.h"

/*
 * Between link.c (a connection, made by libcurl), pool.c (origins, idle links, time) and upstream.c (a request's life).
 */

#define RN_POOL_SCRATCH 65536

typedef struct rn_link rn_link;
typedef TAILQ_HEAD(rn_link_list, rn_link) rn_link_list;
typedef TAILQ_HEAD(rn_upstream_list, rn_upstream) rn_upstream_list;

/* A fault and its words. */
typedef struct rn_fault {
    rn_upstream_fault kind;
    char text[CURL_ERROR_SIZE];
} rn_fault;

void rn_fault_set(rn_fault *fault, rn_upstream_fault kind, const char *text);

/* ---- link.c */

/* A connection to an origin: connecting, carrying one request, or idle. */
struct rn_link {
    rn_upstream_pool *pool;
    rn_origin *origin;
    rn_upstream *up; /* NULL: idle */
    CURL *easy;      /* NULL once a plain connection stands */
    CURLSH *share;   /* TLS: a connection cache with this one connection */
    int fd;          /* -1: not connected */
    bool served;     /* it has carried a request to its end */
    uv_poll_t poll;  /* freed with its closing */
    bool polling;
    int watched;
    int64_t idle_until_us;
    char *stage; /* TLS: bytes on their way; a send that has to be tried again must find them where they were */
    size_t staged;
    TAILQ_ENTRY(rn_link) link;        /* of the pool: all */
    TAILQ_ENTRY(rn_link) idle_link;   /* of the pool: idle, the oldest first */
    TAILQ_ENTRY(rn_link) origin_link; /* of the origin: idle, the newest first */
    char error[CURL_ERROR_SIZE];
};

typedef enum rn_io {
    RN_IO_AGAIN = -1,
    RN_IO_END = -2,
    RN_IO_BROKEN = -3, /* `error` of the link says why */
} rn_io;

/* libcurl's part of the loop: sockets that are being connected, and its timer. */
typedef struct rn_connector {
    rn_loop *loop;
    CURLM *multi;
    rn_timer timer;
    int64_t connect_timeout_us;
} rn_connector;

int rn_connector_init(rn_connector *c, rn_loop *loop, int64_t connect_timeout_us);
void rn_connector_fini(rn_connector *c);

/* Start to connect; `rn_upstream_connected` or `rn_upstream_refused` follow, in a later turn. NULL: no memory. */
rn_link *rn_link_open(rn_upstream_pool *pool, rn_origin *origin, rn_upstream *up);
void rn_link_close(rn_link *link);
/* The number of bytes, or an rn_io. */
ssize_t rn_link_send(rn_link *link, const char *data, size_t size);
ssize_t rn_link_receive(rn_link *link, char *data, size_t size);
/* Poll for these events of libuv; 0: none. */
void rn_link_watch(rn_link *link, int events);
/* An idle connection that the peer has closed, or that says something unasked, is of no use. */
bool rn_link_is_alive(rn_link *link);

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
    rn_connector connector;
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
