/* SPDX-License-Identifier: MIT */
/*
 * A store that waits for its answers: a loop of its own, turned until the answer is there.
 *
 * Everything about Redis is the store's: nothing is known here but how to wait.
 */
#include "fleet/redis.h"

#include <stdio.h>
#include <stdlib.h>

#include <uv.h>

static void say(rn_redis *redis, const char *text)
{
    (void)snprintf(redis->text, sizeof redis->text, "%s", text);
}

static void answered(void *ctx, int err, const redisReply *reply, const char *text)
{
    rn_redis *const redis = ctx;

    (void)reply;
    redis->answered = true;
    redis->err = err;
    redis->reply = rn_store_take_reply(redis->store);
    say(redis, text);
}

int rn_redis_open(rn_redis *redis, const rn_redis_options *options)
{
    const rn_store_options how = {
        .url = options->url,
        .user = options->user,
        .password = options->password,
        .ca_file = options->ca_file,
        .connect_timeout_us = options->timeout_us,
        .command_timeout_us = options->timeout_us,
    };

    *redis = (rn_redis){.loop = malloc(sizeof(uv_loop_t))};
    if (redis->loop == NULL || uv_loop_init(redis->loop) != 0) {
        free(redis->loop);
        redis->loop = NULL;
        return RATION_ERR_NOMEM;
    }

    int err = rn_store_open(redis->loop, &how, &redis->store, redis->text);

    while (err == RATION_OK && rn_store_state_of(redis->store) == RN_STORE_CONNECTING)
        (void)uv_run(redis->loop, UV_RUN_ONCE);
    if (err == RATION_OK && rn_store_state_of(redis->store) == RN_STORE_DOWN) {
        say(redis, rn_store_text(redis->store));
        err = RATION_ERR_IO;
    }
    if (err != RATION_OK)
        rn_redis_close(redis);
    return err;
}

void rn_redis_close(rn_redis *redis)
{
    if (redis->loop == NULL)
        return;
    rn_store_close(redis->store, NULL, NULL);
    redis->store = NULL;
    (void)uv_run(redis->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(redis->loop);
    free(redis->loop);
    redis->loop = NULL;
}

static int answer_wait(rn_redis *redis, int err, redisReply **out)
{
    if (err != RATION_OK)
        return err;
    while (!redis->answered)
        (void)uv_run(redis->loop, UV_RUN_ONCE);
    redis->answered = false;
    if (redis->err == RATION_OK)
        *out = redis->reply;
    redis->reply = NULL;
    return redis->err;
}

int rn_redis_command(rn_redis *redis, ration_text key, size_t count, const ration_text *words, redisReply **out)
{
    return answer_wait(redis, rn_store_command(redis->store, key, count, words, answered, redis), out);
}

int rn_redis_run(rn_redis *redis, const rn_store_script *script, redisReply **out)
{
    return answer_wait(redis, rn_store_run(redis->store, script, answered, redis), out);
}
