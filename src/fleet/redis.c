/* SPDX-License-Identifier: MIT */
/*
 * A connection to one Redis that waits for its answers.
 *
 * Scripts go by their digest, so that a call carries its own numbers and not the rules of how to count; a Redis that
 * does not know a script says so and has done nothing, and is given it. After an error of the connection nothing is
 * sent any more: whether the last command was carried out is not known, and it is for the caller to ask again.
 */
#include "fleet/redis.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 264
#define PORT 6379

__attribute__((format(printf, 2, 3))) static void say(rn_redis *redis, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    (void)vsnprintf(redis->text, sizeof redis->text, format, values);
    va_end(values);
}

/* "HOST" or "HOST:PORT". False: neither. */
static bool host_read(const char *text, char *host, size_t size, int *port)
{
    const char *const colon = strrchr(text, ':');
    const size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    char *end = NULL;
    long number = PORT;

    if (length == 0 || length >= size || strpbrk(text, "/@?#") != NULL)
        return false;
    if (colon != NULL) {
        number = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end != '\0' || number < 1 || number > 65535)
            return false;
    }
    memcpy(host, text, length);
    host[length] = '\0';
    *port = (int)number;
    return true;
}

static int connect_to(rn_redis *redis, const rn_redis_options *options)
{
    const struct timeval timeout = {(time_t)(options->timeout_us / 1000000),
                                    (suseconds_t)(options->timeout_us % 1000000)};
    char host[256];
    int port = 0;

    if (strncmp(options->url, "unix:", 5) == 0) {
        redis->context = redisConnectUnixWithTimeout(options->url + 5, timeout);
    } else if (strncmp(options->url, "redis://", 8) == 0 && host_read(options->url + 8, host, sizeof host, &port)) {
        redis->context = redisConnectWithTimeout(host, port, timeout);
    } else {
        say(redis, "not a store: redis://HOST:PORT or unix:PATH is (a user and a password come from the environment)");
        return RATION_ERR_INVALID;
    }
    if (redis->context == NULL)
        return RATION_ERR_NOMEM;
    if (redis->context->err != 0) {
        say(redis, "%s", redis->context->errstr);
        return RATION_ERR_IO;
    }
    return redisSetTimeout(redis->context, timeout) == REDIS_OK ? RATION_OK : RATION_ERR_IO;
}

static int authenticate(rn_redis *redis, const rn_redis_options *options)
{
    ration_text words[3] = {{"AUTH", 4}};
    size_t count = 1;
    redisReply *reply = NULL;

    if (options->password == NULL)
        return RATION_OK;
    if (options->user != NULL)
        words[count++] = (ration_text){options->user, strlen(options->user)};
    words[count++] = (ration_text){options->password, strlen(options->password)};

    const int err = rn_redis_command(redis, count, words, &reply);

    if (err == RATION_OK)
        freeReplyObject(reply);
    return err;
}

int rn_redis_open(rn_redis *redis, const rn_redis_options *options)
{
    *redis = (rn_redis){0};

    int err = connect_to(redis, options);

    if (err == RATION_OK)
        err = authenticate(redis, options);
    if (err != RATION_OK && redis->context != NULL) {
        redisFree(redis->context);
        redis->context = NULL;
    }
    return err;
}

void rn_redis_close(rn_redis *redis)
{
    if (redis->context != NULL)
        redisFree(redis->context);
    redis->context = NULL;
}

static redisReply *send_words(rn_redis *redis, size_t count, const ration_text *words)
{
    const char *data[WORDS_MAX];
    size_t sizes[WORDS_MAX];

    assert(count <= WORDS_MAX);
    for (size_t i = 0; i < count; i++) {
        data[i] = words[i].data;
        sizes[i] = words[i].size;
    }
    return redisCommandArgv(redis->context, (int)count, data, sizes);
}

int rn_redis_command(rn_redis *redis, size_t count, const ration_text *words, redisReply **out)
{
    redisReply *const reply = send_words(redis, count, words);

    if (reply == NULL) {
        say(redis, "%s", redis->context->errstr[0] != '\0' ? redis->context->errstr : "no answer");
        return RATION_ERR_IO;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        say(redis, "%.200s", reply->str);
        freeReplyObject(reply);
        return RATION_ERR_IO;
    }
    *out = reply;
    return RATION_OK;
}

static int script_load(rn_redis *redis, const rn_script *script)
{
    const ration_text words[] = {{"SCRIPT", 6}, {"LOAD", 4}, {script->text, script->size}};
    redisReply *reply = NULL;
    const int err = rn_redis_command(redis, 3, words, &reply);

    if (err == RATION_OK)
        freeReplyObject(reply);
    return err;
}

int rn_redis_run(rn_redis *redis, rn_script_name name, const ration_text *keys, size_t key_count, ration_text argument,
                 redisReply **out)
{
    const rn_script *const script = &rn_scripts[name];
    ration_text words[WORDS_MAX];
    char number[24];

    if (key_count + 4 > WORDS_MAX)
        return RATION_ERR_FULL;
    words[0] = (ration_text){"EVALSHA", 7};
    words[1] = (ration_text){script->digest, strlen(script->digest)};
    words[2] = (ration_text){number, (size_t)snprintf(number, sizeof number, "%zu", key_count)};
    for (size_t i = 0; i < key_count; i++)
        words[3 + i] = keys[i];
    words[3 + key_count] = argument;

    int err = rn_redis_command(redis, key_count + 4, words, out);

    if (err == RATION_ERR_IO && strncmp(redis->text, "NOSCRIPT", 8) == 0) {
        err = script_load(redis, script);
        if (err == RATION_OK)
            err = rn_redis_command(redis, key_count + 4, words, out);
    }
    return err;
}
