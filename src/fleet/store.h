/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_STORE_H
#define RN_FLEET_STORE_H

#include <stdbool.h>

#include <hiredis/hiredis.h>

#include <ration/types.h>

#include "fleet/scripts.h"

struct uv_loop_s;

/*
 * Redis as a fleet uses it: calls that are answered later, on an event loop of libuv and in its thread.
 *
 * One server, one that Sentinel names, or a cluster; what of that it is, is the URL's affair and nobody else's. A call
 * is answered within the command's time-out whatever happens, once, and never by the answer to another.
 */
typedef struct rn_store rn_store;

typedef enum rn_store_state {
    RN_STORE_CONNECTING = 0, /* calls wait for the connection, not longer than their time-out */
    RN_STORE_UP,
    RN_STORE_DOWN, /* calls fail at once; it is tried again by itself */
} rn_store_state;

/* Zeroed members mean the default named beside them. All is copied. */
typedef struct rn_store_options {
    const char *url;       /* as `rn_store_url` reads it */
    const char *user;      /* NULL: the default user */
    const char *password;  /* NULL: none; appears in no text */
    const char *ca_file;   /* of trusted CAs, for TLS; NULL: the system's */
    const char *cert_file; /* of a certificate to show, with its key; NULL: none */
    const char *key_file;
    int64_t connect_timeout_us; /* to a connection on which Redis has answered; 250 ms */
    int64_t command_timeout_us; /* 250 ms */
    int64_t backoff_us;         /* the longest pause between two tries to connect; 2 s */
    size_t max_calls;           /* outstanding; 4096 */
    unsigned wait;              /* replicas that should have what a script wrote before it is answered; 0 */
    /* The state has changed; `text` says why it is down. Never from within a function of the store. */
    void (*changed)(void *ctx, rn_store_state state, const char *text);
    void *changed_ctx;
} rn_store_options;

typedef struct rn_store_stats {
    size_t outstanding;    /* calls */
    uint64_t calls;        /* answered, whatever came of them */
    uint64_t failures;     /* of these, those with an error */
    uint64_t timeouts;     /* of these, those that were not answered in time */
    uint64_t connects;     /* connections that stood */
    uint64_t redirects;    /* MOVED and ASK */
    uint64_t loads;        /* scripts that a server did not know */
    uint64_t writes;       /* to sockets, each of the calls of a turn of the loop */
    uint64_t replies;      /* read from sockets */
    uint64_t unreplicated; /* calls that fewer replicas have than `wait` */
} rn_store_stats;

/*
 * The answer to a call. `err` is RATION_OK and `reply` what Redis said, never an error of it, borrowed for the call; or
 * RATION_ERR_IO, `reply` NULL, and `text` says why: then it is not known whether the call was carried out, and it may
 * be made again. Never called from within `rn_store_run` or `rn_store_command`; may call them, and `rn_store_close`.
 */
typedef void rn_store_answered(void *ctx, int err, const redisReply *reply, const char *text);

/* Returns at once. RATION_ERR_INVALID (the URL; `fault`, of RN_STORE_TEXT bytes and not NULL, says what is wrong),
 * RATION_ERR_NOMEM. */
#define RN_STORE_TEXT 448
RATION_MUST_CHECK int rn_store_open(struct uv_loop_s *loop, const rn_store_options *options, rn_store **out,
                                    char *fault);
/* Answers every call outstanding with RATION_ERR_IO, before it returns; `closed` follows in a later turn of the loop,
 * when all is gone. NULL is fine. */
void rn_store_close(rn_store *store, void (*closed)(void *ctx), void *ctx);

typedef struct rn_store_script {
    rn_script_name name;
    const ration_text *keys;
    size_t key_count;
    ration_text argument;
    ration_text brief; /* a second one; empty: there is none */
} rn_store_script;

/*
 * Run a script at the server that has its first key. Everything is copied. A script that the server does not know, a
 * slot that has moved, a server that is not ready: all within, and within the time-out.
 *
 * Errors     RATION_ERR_FULL (too many calls outstanding, or keys), RATION_ERR_NOMEM; then `answered` is not called.
 */
int rn_store_run(rn_store *store, const rn_store_script *script, rn_store_answered *answered, void *ctx);
/* Any command at the server that has `key`; an empty one: at any server. */
int rn_store_command(rn_store *store, ration_text key, size_t count, const ration_text *words,
                     rn_store_answered *answered, void *ctx);
/* Within an answer: the reply is the caller's, to be freed with `freeReplyObject`. NULL: there is none. */
redisReply *rn_store_take_reply(rn_store *store);

/*
 * Hear what is published on a channel, on a connection of its own that is made anew whenever it breaks. Messages may be
 * lost meanwhile. One function for each channel, which is copied. RATION_ERR_NOMEM, RATION_ERR_FULL (64 channels).
 */
typedef void rn_store_message(void *ctx, ration_text channel, ration_text payload);
int rn_store_subscribe(rn_store *store, ration_text channel, rn_store_message *message, void *ctx);

rn_store_state rn_store_state_of(const rn_store *store);
/* Why it is not up; empty: it is. Borrowed until the loop's next turn. */
const char *rn_store_text(const rn_store *store);
void rn_store_stats_of(const rn_store *store, rn_store_stats *out);

#endif
