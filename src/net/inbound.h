/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_INBOUND_H
#define RN_NET_INBOUND_H

#include <sys/queue.h>

#include <uv.h>

#include "net/buffer.h"
#include "net/http1.h"
#include "net/server.h"

/* Between server.c, which listens and keeps the time, and inbound.c, which is one connection and its request. */

#define RN_SERVER_SCRATCH 65536

typedef enum rn_inbound_state {
    RN_INBOUND_HEAD = 0, /* a head is awaited or arriving */
    RN_INBOUND_CALL,     /* a request is the handlers' */
    RN_INBOUND_DRAIN,    /* answered; the rest of its body is dropped */
    RN_INBOUND_CLOSING,  /* what is queued is sent, then no more */
    RN_INBOUND_LINGER,   /* all is sent: what still comes is dropped, so that no reset overtakes the answer */
    RN_INBOUND_DEAD,     /* closed at the end of the turn */
} rn_inbound_state;

/* What a connection is waiting for, each with a list in order of deadlines. */
typedef enum rn_inbound_wait {
    RN_WAIT_NONE = 0,
    RN_WAIT_HEAD,
    RN_WAIT_IDLE,
    RN_WAIT_BODY,
    RN_WAIT_WRITE,
    RN_WAIT_LINGER,
    RN_WAIT_COUNT,
} rn_inbound_wait;

struct rn_inbound {
    rn_server *server;
    uv_poll_t poll; /* freed with its closing */
    int fd;
    int watched;   /* the events that are polled for */
    bool untimely; /* bytes came that are not wanted yet */
    rn_inbound_state state;
    rn_deferred settle;
    bool settling;
    TAILQ_ENTRY(rn_inbound) link;
    void *user;

    ration_text arrived; /* in this turn, in the server's scratch; not yet parsed */
    TAILQ_ENTRY(rn_inbound) arrived_link;
    rn_http1 parser;
    rn_buffer in; /* read, but not yet parsed */
    rn_buffer out;
    bool served;       /* a request came before on this connection */
    bool reading;      /* the handlers want the body */
    bool request_done; /* the parser has said END */
    bool continued;    /* 100 Continue was sent */
    int64_t body_seen;

    bool started; /* the response */
    bool chunked;
    bool bodiless;
    bool until_close;
    bool close_after;
    bool said_full;
    bool lost;         /* sending failed */
    int64_t body_left; /* of the length told; RN_LENGTH_UNKNOWN */
    size_t dropped;    /* bytes, in DRAIN and LINGER */

    rn_inbound_wait wait;
    bool moved; /* bytes came or went since the deadline was set */
    int64_t deadline_us;
    TAILQ_ENTRY(rn_inbound) wait_link;
};

typedef TAILQ_HEAD(rn_inbound_list, rn_inbound) rn_inbound_list;

struct rn_server {
    rn_loop *loop;
    rn_server_options options; /* with all defaults filled in; texts are not kept */
    rn_server_handlers handlers;
    void *user;
    uv_poll_t *listener; /* NULL: closed */
    int fd;
    char *path;
    uint16_t port;
    rn_inbound_list connections;
    size_t count;
    uint64_t refused;
    rn_inbound_list waits[RN_WAIT_COUNT];
    rn_timer sweep;
    rn_timer accept_again;
    bool closing;
    void (*on_closed)(void *user);
    rn_deferred closed;
    rn_spare spare;          /* of what its connections send */
    rn_inbound_list arrived; /* what they sent lies in `scratch` */
    rn_deferred take;        /* all that has arrived */
    size_t scratch_used;
    char scratch[RN_SERVER_SCRATCH]; /* reads of this turn */
};

/* A connection that was accepted; takes `fd`, also on failure. */
int rn_inbound_open(rn_server *server, int fd);
/* Parse what has arrived in this turn. */
void rn_inbound_take_all(rn_server *server);
/* Its time is up. */
void rn_inbound_expire(rn_inbound *c);
/* No more requests: close it if none is running. */
void rn_inbound_retire(rn_inbound *c);
/* Break it; `on_gone` if a request is running and `tell`. */
void rn_inbound_break(rn_inbound *c, bool tell);
/* Close it now, not at the end of the turn: no callback of it is on the stack. */
void rn_inbound_close_now(rn_inbound *c);

/* The connection's deadline is put into, or taken out of, the server's lists. */
void rn_server_wait(rn_server *server, rn_inbound *c, rn_inbound_wait wait);
/* A connection is closed and forgotten. */
void rn_server_forget(rn_server *server, rn_inbound *c);

#endif
