/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_STORE_PARTS_H
#define RN_FLEET_STORE_PARTS_H

#include <sys/queue.h>

#include <uv.h>

#include "fleet/store.h"
#include "fleet/store_slot.h"
#include "fleet/store_url.h"
#include "net/buffer.h"
#include "net/wire.h"

/*
 * Between store.c (life, and the time of calls), store_call.c, store_node.c (a connection), store_answer.c (what
 * answers mean), store_cluster.c, store_sentinel.c and store_channel.c.
 *
 * Everything but rn_store_run, rn_store_command and rn_store_subscribe happens in callbacks of the loop. An answer may
 * close the store; nodes and the store live on until their handles are closed, in a later turn.
 */

#define RN_STORE_NODES_MAX 128
#define RN_STORE_WORDS_MAX 264
#define RN_STORE_CHANNELS_MAX 64
#define RN_STORE_TEXTS 5
#define RN_STORE_SCRATCH 65536
#define RN_STORE_ANSWER_MAX (8U << 20)

typedef struct rn_store_call rn_store_call;
typedef struct rn_store_node rn_store_node;
typedef TAILQ_HEAD(rn_store_calls, rn_store_call) rn_store_calls;

/* ---- calls */

struct rn_store_call {
    rn_store *store;
    char *bytes; /* as they are sent */
    size_t size;
    int script; /* -1: none */
    int slot;   /* -1: any */
    bool own;   /* the store's: its answer may be an error of Redis, and it is sent before others */
    bool asking;
    bool waits; /* for replicas, with its answer in `held` */
    unsigned loads;
    unsigned redirects;
    unsigned delays;
    uint64_t serial;
    uint64_t deadline_ms;
    uint64_t retry_ms;
    redisReply *held;
    rn_store_answered *answered;
    void *ctx;
    rn_store_node *node;  /* of `list`, if that is a node's */
    rn_store_calls *list; /* in which it is; NULL: in none */
    char why[96];         /* it is delayed */
    TAILQ_ENTRY(rn_store_call) link;
    TAILQ_ENTRY(rn_store_call) all_link; /* of the store: all, by their deadlines */
};

/* In `all`, and in no other list. NULL: no memory. */
rn_store_call *rn_store_call_new(rn_store *store, size_t count, const ration_text *words, rn_store_answered *answered,
                                 void *ctx);
/* The same, of the store's own. */
rn_store_call *rn_store_call_own(rn_store *store, size_t count, const ration_text *words, rn_store_answered *answered,
                                 void *ctx);
/* Into a list, of this node or NULL; out of the one in which it was. */
void rn_store_call_file(rn_store_call *call, rn_store_calls *list, rn_store_node *node);
/* Tell the caller and free it, and `reply` unless the caller takes it. */
void rn_store_call_end(rn_store_call *call, int err, redisReply *reply, const char *text);
void rn_store_calls_fail(rn_store_calls *list, const char *text);
/* Try it again in a while, if there is time; else it fails with `text`. */
void rn_store_call_delay(rn_store_call *call, ration_text text);
/* To the node that has its slot now. */
void rn_store_call_route(rn_store_call *call);

/* ---- nodes */

typedef enum rn_node_role {
    RN_NODE_DATA = 0,
    RN_NODE_SENTINEL, /* asked who the master is */
    RN_NODE_CHANNELS, /* hears what is published */
} rn_node_role;

typedef enum rn_node_state {
    RN_NODE_OFF = 0, /* nobody wants it */
    RN_NODE_PAUSING, /* until it is tried again */
    RN_NODE_FINDING, /* the Sentinels are asked */
    RN_NODE_CONNECTING,
    RN_NODE_GREETING, /* it stands; user and password, is it Redis */
    RN_NODE_UP,
} rn_node_state;

/* hiredis 1.0 has another type for the number. */
#if HIREDIS_MAJOR >= 1
typedef size_t rn_array_size;
#else
typedef int rn_array_size;
#endif
typedef void *rn_array_new(const redisReadTask *task, rn_array_size elements);

struct rn_store_node {
    rn_store *store;
    rn_node_role role;
    rn_store_place place;
    rn_node_state state;
    bool down;                     /* the last try was vain: calls fail at once */
    bool proven;                   /* this connection has answered a call */
    bool stale;                    /* to be made anew when nothing is outstanding on it */
    bool wanted;                   /* tried again by itself */
    bool seed;                     /* of the URL */
    bool mapped;                   /* has slots of the cluster */
    bool asked;                    /* for the map, in vain */
    bool loading[RN_SCRIPT_COUNT]; /* a script is on its way there */
    bool short_of;                 /* replicas, by the last WAIT */
    unsigned waits;                /* that are not answered yet */
    unsigned failures;
    unsigned greetings; /* outstanding */
    rn_wire *wire;
    redisReader *reader;
    redisReplyObjectFunctions objects; /* the reader's, with a bound to arrays */
    rn_array_new *array_new;           /* without it */
    size_t answer_bytes;               /* of an answer that has not ended */
    bool too_many;                     /* parts of it */
    bool heard;                        /* anything, since the last beat */
    rn_buffer out;
    rn_store_calls queued;
    rn_store_calls sent;
    rn_store_calls held; /* answered, but for the replicas */
    uv_timer_t timer;    /* the node is freed with its closing */
    char text[RN_STORE_TEXT];
    TAILQ_ENTRY(rn_store_node) link;
};

rn_store_node *rn_node_new(rn_store *store, rn_node_role role, const rn_store_place *place);
/* Its calls fail with `text`. */
void rn_node_close(rn_store_node *node, const char *text);
/* Start to connect, unless it does or is; of a node that is down the pause is not cut short. */
void rn_node_want(rn_store_node *node);
/* The place is known: connect. */
void rn_node_dial(rn_store_node *node);
/* The connection, or the try to make one, is over. */
void rn_node_break(rn_store_node *node, const char *text);
/* As rn_node_break, once what has been sent is answered. */
void rn_node_retire(rn_store_node *node, const char *text);
/* Send what is queued. */
void rn_node_flush(rn_store_node *node);
/* Read what is there: before something is thought to be late. */
void rn_node_read(rn_store_node *node);
/* The connection stands: from here on there is a reader. */
void rn_node_greet(rn_store_node *node);
/* Bytes have come, and there is a reader. */
void rn_node_feed(rn_store_node *node, const char *data, size_t size);
/* Send a command whose answer belongs to no call. */
void rn_node_shout(rn_store_node *node, size_t count, const ration_text *words);
/* Send a command of the store's own at once; its answer goes to `answered` with the node. */
void rn_node_say(rn_store_node *node, size_t count, const ration_text *words, rn_store_answered *answered);
/* The connection has done what it is for: its next end is no vain try. */
void rn_node_prove(rn_store_node *node);

/* ---- answers */

/* The answer to a call that is in no list, from this node; frees `reply`. */
void rn_store_answer(rn_store_node *node, rn_store_call *call, redisReply *reply);
/* The answers to a SCRIPT LOAD and to a WAIT. */
void rn_store_loaded(void *ctx, int err, const redisReply *reply, const char *text);
void rn_store_waited(void *ctx, int err, const redisReply *reply, const char *text);

/* ---- cluster */

rn_store_node *rn_cluster_node_of(rn_store *store, int slot);
rn_store_node *rn_cluster_node_at(rn_store *store, const rn_store_place *place);
rn_store_state rn_cluster_state(const rn_store *store, const char **text);
/* Ask for the map, unless somebody is being asked. */
void rn_cluster_refresh(rn_store *store);
void rn_cluster_changed(rn_store *store, rn_store_node *node);

/* ---- Sentinel */

/* Find the master for a node that is FINDING: rn_node_dial or rn_node_break follow, in a later turn. */
void rn_sentinel_find(rn_store *store, rn_store_node *node);

/* ---- channels */

/* Where to. False: nobody is connected. */
bool rn_channels_place(const rn_store *store, rn_store_place *place);
/* On a connection that stands: subscribe. */
void rn_channels_up(rn_store_node *node);
void rn_channels_hear(rn_store_node *node, redisReply *reply);
void rn_channels_beat(rn_store_node *node);
/* A connection for calls stands: be connected to the same. */
void rn_channels_follow(rn_store *store);

/* ---- the store */

typedef struct rn_store_channel {
    char *name;
    size_t size;
    rn_store_message *message;
    void *ctx;
} rn_store_channel;

struct rn_store {
    uv_loop_t *loop;
    rn_store_options options; /* its texts are copies */
    rn_store_url url;
    rn_connector *connector;
    TAILQ_HEAD(, rn_store_node) nodes; /* of data */
    size_t node_count;
    rn_store_node *main;     /* not of a cluster: the only one */
    rn_store_node *sentinel; /* being asked; NULL: none */
    rn_store_node *channels; /* NULL: nobody has subscribed */
    size_t place;            /* of the URL, that is tried */
    size_t places_tried;     /* in vain, in a row */

    rn_store_calls all;
    rn_store_calls delayed;  /* until `retry_ms` of each */
    rn_store_calls homeless; /* until there is a map of the cluster */
    uv_idle_t kick;          /* there is something to send or to tell */
    uv_timer_t timer;        /* of deadlines and delays */
    uint64_t timer_ms;       /* UINT64_MAX: not set */
    redisReply *reply;       /* of the answer that is being told */

    rn_store_node **slots; /* of a cluster; NULL members: nobody's */
    bool map_known;
    bool map_asked;
    bool map_wanted;
    bool map_refused; /* whoever could be asked has none; `map_text` says why */
    char map_text[RN_STORE_TEXT];
    unsigned map_failures;
    rn_store_node *map_from;
    uv_timer_t map_timer;

    rn_store_channel subscribed[RN_STORE_CHANNELS_MAX];
    size_t subscribed_count;

    rn_store_state state;
    rn_store_state told;
    char text[RN_STORE_TEXT];
    rn_store_stats stats;
    uint64_t random;
    uint64_t serial;             /* of the last call */
    char *texts[RN_STORE_TEXTS]; /* those of the options */
    bool closing;
    unsigned handles; /* not yet closed */
    void (*closed)(void *ctx);
    void *closed_ctx;
    char scratch[RN_STORE_SCRATCH];
};

/* What a server has said, for people: in one line, and never empty. */
void rn_store_say(char *out, size_t size, ration_text text);
uint64_t rn_store_now_ms(void);
/* Of libuv's, in `wait_ms` from now and not from the turn's beginning. */
void rn_store_timer_start(uv_timer_t *timer, uv_timer_cb ring, uint64_t wait_ms);
uint32_t rn_store_random(rn_store *store);
/* Look at deadlines and delays by then. */
void rn_store_wake(rn_store *store, uint64_t at_ms);
void rn_store_kick(rn_store *store);
/* A node's state has changed: the store's may have. */
void rn_store_look(rn_store *store);
void rn_store_handle_closed(rn_store *store);

#endif
