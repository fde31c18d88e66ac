/* SPDX-License-Identifier: MIT */
/*
 * Any bytes from a server, in pieces, to a store with calls on their way: each of them is answered once.
 *
 * The first byte says what the store is, and how the rest is cut.
 */
#include <stdint.h>
#include <stdlib.h>

#include <uv.h>

#include "base/text.h"
#include "fleet/store_parts.h"

#define MUST(condition) ((condition) ? (void)0 : abort())
#define CALLS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned answers;
static unsigned messages;

static void answered(void *ctx, int err, const redisReply *reply, const char *text)
{
    (void)ctx;
    MUST((err == RATION_OK) == (reply != NULL));
    MUST(err == RATION_OK ? reply->type != REDIS_REPLY_ERROR : err == RATION_ERR_IO && text[0] != '\0');
    answers++;
}

static void heard(void *ctx, ration_text channel, ration_text payload)
{
    (void)ctx;
    MUST(rn_text_is(channel, "c") && (payload.size == 0 || payload.data[payload.size] == '\0'));
    messages++;
}

static void call(rn_store *store)
{
    static const ration_text get[] = {RN_TEXT("GET"), RN_TEXT("{k}")};
    static const ration_text key = RN_TEXT("{k}");

    const rn_store_script admit = {RN_SCRIPT_ADMIT, &key, 1, key, {0}};
    const rn_store_script release = {RN_SCRIPT_RELEASE, &key, 1, key, {0}};

    MUST(rn_store_run(store, &admit, answered, NULL) == RATION_OK);
    MUST(rn_store_run(store, &release, answered, NULL) == RATION_OK);
    MUST(rn_store_command(store, key, 2, get, answered, NULL) == RATION_OK);
    MUST(rn_store_command(store, (ration_text)RN_TEXT(""), 1, get, answered, NULL) == RATION_OK);
}

/* As if it were connected, to nobody. */
static void connect_to_nobody(rn_store_node *node)
{
    if (node->wire != NULL)
        rn_wire_close(node->wire);
    node->wire = NULL;
    rn_node_greet(node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const urls[] = {"unix:/nobody", "redis+cluster://127.0.0.1:1", "unix:/nobody", "unix:/nobody"};
    const unsigned how = size > 0 ? data[0] : 0;
    const size_t step = how / 4 % 32 + 1;
    const rn_store_options options = {.url = urls[how % 4], .wait = how % 4 == 2 ? 1 : 0};
    char fault[RN_STORE_TEXT];
    rn_store *store = NULL;
    uv_loop_t loop;

    answers = messages = 0;
    MUST(uv_loop_init(&loop) == 0 && rn_store_open(&loop, &options, &store, fault) == RATION_OK);
    call(store);

    rn_store_node *node = TAILQ_FIRST(&store->nodes);

    if (how % 4 == 3) {
        MUST(rn_store_subscribe(store, (ration_text)RN_TEXT("c"), heard, NULL) == RATION_OK);
        node = store->channels;
    }
    connect_to_nobody(node);
    for (size_t at = 1; at < size && node->reader != NULL; at += step) {
        rn_node_feed(node, (const char *)data + at, at + step < size ? step : size - at);
        rn_node_flush(node);
    }
    rn_store_close(store, NULL, NULL);
    MUST(answers == CALLS);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    MUST(uv_loop_close(&loop) == 0);
    return 0;
}
