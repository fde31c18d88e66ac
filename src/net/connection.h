/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_CONNECTION_H
#define RN_NET_CONNECTION_H

#include "net/http.h"
#include "net/loop.h"
#include "net/server.h" /* rn_flow */

/*
 * Requests to other servers over pooled connections: HTTP/1.1, plain or TLS.
 *
 * `rn_upstream_pool` holds connections and origins, `rn_origin` is where to (scheme, host, port, trust), `rn_upstream`
 * is one request and its response. An upstream is the caller's from `rn_upstream_start` until `on_end` or `on_error`
 * returns or `rn_upstream_abort` is called, whichever comes first; after that it is dead. No handler is called inside
 * `rn_upstream_start`.
 */
typedef struct rn_upstream_pool rn_upstream_pool;
typedef struct rn_origin rn_origin;
typedef struct rn_upstream rn_upstream;

typedef enum rn_upstream_fault {
    RN_UPSTREAM_CONNECT = 0, /* "upstream_connect": no name, no route, refused, no descriptor */
    RN_UPSTREAM_TLS,         /* "upstream_tls": handshake or verification */
    RN_UPSTREAM_TIMEOUT,     /* "upstream_timeout": to connect, to the first byte, or between bytes */
    RN_UPSTREAM_BROKEN,      /* "upstream_broken": closed early, or no HTTP */
} rn_upstream_fault;

/** The name of a fault as it stands in problem documents. */
const char *rn_upstream_fault_name(rn_upstream_fault fault);

/** Zeroed members mean the default named beside them. */
typedef struct rn_upstream_options {
    size_t max_connections;     /* RLIMIT_NOFILE less 64, halved; beyond it a request fails with RN_UPSTREAM_CONNECT */
    size_t max_idle;            /* kept open without a request, in all; 256 */
    int64_t idle_keep_us;       /* and for how long; 50 s */
    int64_t connect_timeout_us; /* 10 s */
    int64_t
        first_byte_timeout_us; /* 60 s from the request's end, or its last byte sent, to the response's first byte */
    int64_t idle_timeout_us;   /* 60 s without a byte in either direction while one is wanted */
    size_t max_head_bytes;     /* 64 KiB */
    size_t full_bytes;         /* 64 KiB queued: RN_FLOW_FULL */
} rn_upstream_options;

RATION_MUST_CHECK int rn_upstream_pool_new(rn_loop *loop, const rn_upstream_options *options, rn_upstream_pool **out);
/** Breaks what still runs, without any callback. NULL is fine. */
void rn_upstream_pool_free(rn_upstream_pool *pool);

typedef struct rn_upstream_stats {
    size_t open; /* connections, idle ones included */
    size_t idle;
    uint64_t connects; /* attempts */
    uint64_t reuses;   /* requests on a connection that had served before */
    uint64_t retries;  /* requests sent again because a reused connection had died */
} rn_upstream_stats;

void rn_upstream_pool_stats(const rn_upstream_pool *pool, rn_upstream_stats *out);

/** Where to. Texts are copied. */
typedef struct rn_origin_options {
    bool tls;
    const char *host;    /* a name or address, IPv6 without brackets */
    uint16_t port;       /* 0: 80 or 443 */
    const char *ca_file; /* PEM file of trusted CAs; NULL: the system's */
    const char *proxy;   /* as curl writes it; NULL: none, whatever the environment says */
} rn_origin_options;

/** The pool's origin with these options, made at the first call; each call needs its `rn_origin_release`.
 *  RATION_ERR_INVALID (no host, or one with characters that no host has), RATION_ERR_NOMEM. */
RATION_MUST_CHECK int rn_origin_acquire(rn_upstream_pool *pool, const rn_origin_options *options, rn_origin **out);
/** Idle connections are closed with the last holder; running requests go on. NULL is fine. */
void rn_origin_release(rn_origin *origin);
/** `host` or `host:port` as it stands in the Host field. */
ration_text rn_origin_authority(const rn_origin *origin);

typedef struct rn_upstream_handlers {
    /** The response's head (1xx are skipped), borrowed until `on_end`. Required. */
    void (*on_head)(void *user, rn_upstream *up, const rn_http_head *head);
    /** A part of its body, borrowed for the call. Required. */
    void (*on_body)(void *user, rn_upstream *up, ration_text bytes);
    /** The response is complete. The upstream dies when this returns, its request sent or not. Required. */
    void (*on_end)(void *user, rn_upstream *up, rn_http_fields trailers);
    /** It broke: before the head, or amid the body. `text` is curl's or the parser's. The upstream dies. Required. */
    void (*on_error)(void *user, rn_upstream *up, rn_upstream_fault fault, const char *text);
    /** The request's queue has emptied after a write said RN_FLOW_FULL. */
    void (*on_drain)(void *user, rn_upstream *up);
} rn_upstream_handlers;

/** A request. All is copied but `body`. */
typedef struct rn_upstream_request {
    rn_origin *origin;
    ration_text method;
    ration_text target;
    rn_http_fields fields; /* Host is added if absent; Connection, Content-Length, Transfer-Encoding left out */
    ration_text body;      /* all of the body, borrowed until the upstream dies */
    bool stream;           /* or the body comes by `rn_upstream_write` */
    int64_t body_bytes;    /* with `stream`: its length, or RN_LENGTH_UNKNOWN for chunked */
    bool repeatable; /* not `stream`: may be sent again if a reused connection died before the first byte came back */
} rn_upstream_request;

/** RATION_ERR_INVALID (CR, LF, NUL, a method that is no token, a target with spaces), RATION_ERR_NOMEM. */
RATION_MUST_CHECK int rn_upstream_start(rn_upstream_pool *pool, const rn_upstream_request *request,
                                        const rn_upstream_handlers *handlers, void *user, rn_upstream **out);
/** A part of a streamed body. `rn_flow`; RATION_ERR_INVALID (not streaming, more than told), RATION_ERR_FULL (8 MiB
 *  queued), RATION_ERR_NOMEM; then nothing of it was taken. */
RATION_MUST_CHECK int rn_upstream_write(rn_upstream *up, ration_text bytes);
/** The end of a streamed body; trailers where it is chunked. RATION_ERR_INVALID: shorter than told; abort it then. */
RATION_MUST_CHECK int rn_upstream_finish(rn_upstream *up, rn_http_fields trailers);
/** No more events after this call, until resume. */
void rn_upstream_pause(rn_upstream *up);
/** Handlers are called after this returns, never inside. */
void rn_upstream_resume(rn_upstream *up);
/** Forget it: the connection is closed, no handler is called any more. */
void rn_upstream_abort(rn_upstream *up);

#endif
