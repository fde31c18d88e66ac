/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_REDIS_H
#define RN_FLEET_REDIS_H

#include <hiredis/hiredis.h>

#include <ration/engine.h>

#include "fleet/scripts.h"
#include "fleet/store.h"

/* A store that waits for its answers, for replay and tests: one thread, one call at a time. */

typedef struct rn_redis_options {
    const char *url;      /* as `rn_store_url_read` reads it */
    const char *user;     /* NULL: none */
    const char *password; /* NULL: none; appears in no text */
    const char *ca_file;  /* of trusted CAs, for TLS; NULL: the system's */
    int64_t timeout_us;   /* of connecting, and of each answer */
} rn_redis_options;

typedef struct rn_redis {
    struct uv_loop_s *loop;
    rn_store *store;
    bool answered; /* the call that is being made */
    int err;       /* and with what */
    redisReply *reply;
    char text[RN_STORE_TEXT]; /* what went wrong */
} rn_redis;

/* RATION_ERR_INVALID: not such a URL; RATION_ERR_IO; RATION_ERR_NOMEM. `redis->text` says what. It stays where it is
 * until it is closed. */
int rn_redis_open(rn_redis *redis, const rn_redis_options *options);
void rn_redis_close(rn_redis *redis);

/* Any command, at the server that has `key`; empty: at any. RATION_ERR_IO with `redis->text`, for an answer that is an
 * error too; else `*out` is freed with `freeReplyObject`. */
int rn_redis_command(rn_redis *redis, ration_text key, size_t count, const ration_text *words, redisReply **out);

/* Run a script at the server that has `keys[0]`. */
int rn_redis_run(rn_redis *redis, const rn_store_script *script, redisReply **out);

#endif
