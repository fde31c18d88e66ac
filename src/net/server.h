/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_SERVER_H
#define RN_NET_SERVER_H

#include "net/http.h"
#include "net/loop.h"

/*
 * HTTP/1.1 server on a TCP port or a Unix socket.
 *
 * `rn_inbound` is one request and its response. It is the handlers' from `on_request` until its response is finished
 * (`rn_inbound_respond`, `rn_inbound_finish`, `rn_inbound_abort`) or until `on_gone` returns, whichever comes first;
 * after that it is dead and no handler hears of it. All calls may be made from any handler or later, in any turn.
 *
 * The body of a request is not read before `rn_inbound_resume`; that call also sends 100 Continue where it is expected.
 * A request that waits costs neither buffer nor time; that its client has gone is noticed all the same.
 */
typedef struct rn_server rn_server;
typedef struct rn_inbound rn_inbound;

typedef enum rn_gone {
    RN_GONE_CLIENT = 0, /* it closed or broke the connection */
    RN_GONE_TIMEOUT,    /* it sent or read nothing for too long */
    RN_GONE_MALFORMED,  /* its body is no HTTP; it was answered where that was possible */
    RN_GONE_ABORTED,    /* `rn_server_abort` */
} rn_gone;

typedef struct rn_server_handlers {
    /** A request. Its head stays readable through `rn_inbound_head` as long as the inbound lives. Required. */
    void (*on_request)(void *user, rn_inbound *in, const rn_http_head *head);
    /** A part of its body, borrowed for the call; only between resume and pause. NULL: bodies are dropped. */
    void (*on_body)(void *user, rn_inbound *in, ration_text bytes);
    /** The request is complete. Comes for each, also without a body, but not before `rn_inbound_resume`. */
    void (*on_end)(void *user, rn_inbound *in, rn_http_fields trailers);
    /** The queue has emptied after a call said RN_FLOW_FULL. */
    void (*on_drain)(void *user, rn_inbound *in);
    /** The client is gone before its response was finished. The inbound dies when this returns. */
    void (*on_gone)(void *user, rn_inbound *in, rn_gone why);
} rn_server_handlers;

/** Zeroed members mean the default named beside them. Texts are copied. */
typedef struct rn_server_options {
    const char *host;         /* TCP: a name or address; NULL: 127.0.0.1 */
    uint16_t port;            /* TCP: 0: any free one, see `rn_server_port` */
    const char *path;         /* a Unix socket in place of TCP; a dead one left there is replaced, removed at the end */
    uint32_t path_mode;       /* its permissions; 0: 0600 */
    int descriptor;           /* a socket that listens already (socket activation) in place of both; 0: none */
    int backlog;              /* 4096 */
    size_t max_connections;   /* RLIMIT_NOFILE less 64, halved: a call may need a second descriptor upstream */
    size_t max_head_bytes;    /* 64 KiB; more is 431 */
    int64_t max_body_bytes;   /* no bound; more is 413 */
    size_t full_bytes;        /* 64 KiB queued: RN_FLOW_FULL */
    int64_t head_timeout_us;  /* 30 s from its first byte (or the connection's beginning) to its end; then 408 */
    int64_t idle_timeout_us;  /* 75 s between requests */
    int64_t body_timeout_us;  /* 60 s without a byte while it is being read; then 408 */
    int64_t write_timeout_us; /* 60 s in which nothing of the queue could be sent */
} rn_server_options;

/** A message for people about a listener that could not be opened. */
typedef struct rn_net_error {
    char text[256];
} rn_net_error;

/** Listen, and call the handlers. `error` may be NULL. RATION_ERR_INVALID, RATION_ERR_NOMEM, RATION_ERR_IO. */
RATION_MUST_CHECK int rn_server_new(rn_loop *loop, const rn_server_options *options, const rn_server_handlers *handlers,
                                    void *user, rn_server **out, rn_net_error *error);
/** Its time-outs are those of `options`, with the same defaults, also for who is waited for already. Linear in them. */
void rn_server_retime(rn_server *server, const rn_server_options *options);
/** The port that is bound; 0 on a Unix socket. */
uint16_t rn_server_port(const rn_server *server);
/** Connections that are open now. */
size_t rn_server_connections(const rn_server *server);
/** Connections turned away because of `max_connections` or for lack of descriptors. */
uint64_t rn_server_refused(const rn_server *server);
/**
 * Stop gracefully: accept no more, close what is idle, let running requests end, then call `on_closed` (may be NULL),
 * once, never from inside this call. After `on_closed` only `rn_server_free` is allowed.
 */
void rn_server_close(rn_server *server, void (*on_closed)(void *user));
/** Break all connections now: `on_gone` for each running request. `rn_server_close` must have been called before. */
void rn_server_abort(rn_server *server);
/** Closes and aborts if that was not done (without any callback). NULL is fine. */
void rn_server_free(rn_server *server);

/* ---- one request */

typedef enum rn_flow {
    RN_FLOW_MORE = 0, /* go on */
    RN_FLOW_FULL = 1, /* taken; now wait for on_drain */
} rn_flow;

/** A response to be sent. Fields called Connection, Content-Length, Transfer-Encoding are left out: framing is ours. */
typedef struct rn_response {
    int status;         /* 200 to 599 */
    ration_text reason; /* absent: the standard phrase */
    rn_http_fields fields;
    int64_t body_bytes; /* for `rn_inbound_start`: RN_LENGTH_UNKNOWN or exact (for HEAD and 304: told, nothing sent) */
} rn_response;

const rn_http_head *rn_inbound_head(const rn_inbound *in);
rn_server *rn_inbound_server(const rn_inbound *in);
void rn_inbound_set_user(rn_inbound *in, void *user);
void *rn_inbound_user(const rn_inbound *in);

/** Read the request's body from now on. Handlers are called after this returns, never inside. */
void rn_inbound_resume(rn_inbound *in);
/** Stop: no on_body and on_end until the next resume. */
void rn_inbound_pause(rn_inbound *in);

/**
 * The whole response. Finishes the inbound.
 * RATION_ERR_INVALID (a status out of range, CR, LF or NUL in a field) and RATION_ERR_NOMEM: nothing was sent, the
 * inbound lives.
 */
RATION_MUST_CHECK int rn_inbound_respond(rn_inbound *in, const rn_response *response, ration_text body);
/** The head of a response whose body follows: chunked where the length is unknown, until close for HTTP/1.0.
 *  Errors as above. */
RATION_MUST_CHECK int rn_inbound_start(rn_inbound *in, const rn_response *response);
bool rn_inbound_started(const rn_inbound *in);
/**
 * A part of the body. Sent in this turn; parts of one turn go out together. Swallowed where no body may follow.
 * `rn_flow`, or RATION_ERR_INVALID (not started, more than the length told), RATION_ERR_FULL (8 MiB queued:
 * RN_FLOW_FULL was not minded), RATION_ERR_NOMEM; then nothing of it was taken.
 */
RATION_MUST_CHECK int rn_inbound_write(rn_inbound *in, ration_text bytes);
/** Bytes that wait to be sent. */
size_t rn_inbound_queued(const rn_inbound *in);
/** The end of the response; `trailers` are sent where it is chunked. Finishes the inbound. If it is shorter than told,
 *  the connection is broken, so that the client sees it. */
void rn_inbound_finish(rn_inbound *in, rn_http_fields trailers);
/** Break the connection: what was sent must not look complete. Finishes the inbound. */
void rn_inbound_abort(rn_inbound *in);

#endif
