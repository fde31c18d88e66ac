/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_REDIS_H
#define RN_FLEET_REDIS_H

#include <hiredis/hiredis.h>

#include <ration/engine.h>

#include "fleet/scripts.h"

/* A connection to one Redis that waits for its answers, for replay and tests. */

typedef struct rn_redis_options {
    const char *url;      /* redis://HOST[:PORT] or unix:PATH */
    const char *user;     /* NULL: none */
    const char *password; /* NULL: none; appears in no text */
    int64_t timeout_us;   /* of connecting, and of each answer */
} rn_redis_options;

typedef struct rn_redis {
    redisContext *context;
    char text[240]; /* what went wrong */
} rn_redis;

/* RATION_ERR_INVALID: not such a URL; RATION_ERR_IO; RATION_ERR_NOMEM. `redis->text` says what. */
int rn_redis_open(rn_redis *redis, const rn_redis_options *options);
void rn_redis_close(rn_redis *redis);

/* Any command. RATION_ERR_IO with `redis->text`, for an answer that is an error too; else `*out` is freed with
 * `freeReplyObject`. */
int rn_redis_command(rn_redis *redis, size_t count, const ration_text *words, redisReply **out);

/* Run a script by its digest; where Redis does not know it, load it and run it once more. */
int rn_redis_run(rn_redis *redis, rn_script_name name, const ration_text *keys, size_t key_count, ration_text argument,
                 redisReply **out);

#endif
