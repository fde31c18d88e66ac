/* SPDX-License-Identifier: MIT */
/*
 * What the answers of Redis mean for a call.
 *
 * Errors that say "not here", "not yet" or "not known" are between the store and the servers: the call goes elsewhere,
 * waits a little, or brings its script along, all within its time. Every one of these says that nothing was done. Any
 * other error is the caller's to hear.
 *
 * Invariant: a call that comes in is in no list, and leaves ended, held, or in one.
 */
#include "fleet/store_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define REDIRECTS_MAX 8

typedef void answer_means(rn_store_node *node, rn_store_call *call, ration_text error);

static void call_fail(rn_store_call *call, ration_text error)
{
    char text[RN_STORE_TEXT];

    rn_store_say(text, sizeof text, error);
    rn_store_call_end(call, RATION_ERR_IO, NULL, text);
}

/* The script was brought along, or another call has just done it. Twice is enough: then somebody removes them. */
static void answer_unknown_script(rn_store_node *node, rn_store_call *call, ration_text error)
{
    if (call->script < 0 || call->loads == 2) {
        call_fail(call, node->text[0] != '\0' ? ration_text_of(node->text) : error);
        return;
    }
    call->loads++;
    rn_store_call_file(call, &node->queued, node);
    rn_store_kick(node->store);
}

static void answer_later(rn_store_node *node, rn_store_call *call, ration_text error)
{
    (void)node;
    rn_store_call_delay(call, error);
}

/* Whom we speak to is not who it was. */
static void answer_not_the_master(rn_store_node *node, rn_store_call *call, ration_text error)
{
    char text[RN_STORE_TEXT];

    rn_store_say(text, sizeof text, error);
    rn_node_retire(node, text);
    if (node->store->url.kind == RN_STORE_CLUSTER)
        rn_cluster_refresh(node->store);
    rn_store_call_delay(call, error);
}

/* The next word of a text, which loses it. */
static ration_text word_next(ration_text *text)
{
    size_t at = 0;

    if (!rn_text_find(*text, (ration_text)RN_TEXT(" "), &at))
        at = text->size;

    const ration_text word = rn_text_slice(*text, 0, at);

    *text = rn_text_slice(*text, at < text->size ? at + 1 : at, text->size);
    return word;
}

/* "MOVED SLOT HOST:PORT"; the host is empty if it is that of who says so. */
static bool redirect_read(const rn_store_node *node, ration_text error, int *slot, rn_store_place *place)
{
    (void)word_next(&error);

    const int64_t number = rn_store_number(word_next(&error));
    const ration_text at = word_next(&error);
    size_t colon = at.size;

    while (colon > 0 && at.data[colon - 1] != ':')
        colon--;
    if (number < 0 || number >= RN_STORE_SLOTS || colon == 0)
        return false;
    *slot = (int)number;

    const ration_text host = colon > 1 ? rn_text_slice(at, 0, colon - 1) : ration_text_of(node->place.host);

    return rn_store_place_set(place, host, rn_store_number(rn_text_slice(at, colon, at.size)));
}

static void answer_elsewhere(rn_store_node *node, rn_store_call *call, ration_text error)
{
    rn_store *const store = node->store;
    const bool moved = error.data[0] == 'M';
    rn_store_place place;
    int slot = 0;

    if (store->url.kind != RN_STORE_CLUSTER) {
        call_fail(call, (ration_text)RN_TEXT("the store is a cluster; its URL is redis+cluster://"));
        return;
    }
    if (call->redirects == REDIRECTS_MAX || !redirect_read(node, error, &slot, &place)) {
        call_fail(call, error);
        return;
    }

    rn_store_node *const there = rn_cluster_node_at(store, &place);

    if (there == NULL) {
        call_fail(call, error);
        return;
    }
    call->redirects++;
    call->asking = !moved;
    store->stats.redirects++;
    if (moved) {
        store->slots[slot] = there;
        rn_cluster_refresh(store);
    }
    rn_store_call_file(call, &there->queued, there);
    rn_store_kick(store);
}

static answer_means *meaning_of(ration_text error)
{
    static const struct {
        const char *word;
        answer_means *means;
    } table[] = {
        {"NOSCRIPT", answer_unknown_script},
        {"MOVED", answer_elsewhere},
        {"ASK", answer_elsewhere},
        {"TRYAGAIN", answer_later},
        {"CLUSTERDOWN", answer_later},
        {"LOADING", answer_later},
        {"BUSY", answer_later},
        {"READONLY", answer_not_the_master},
        {"MASTERDOWN", answer_not_the_master},
    };
    ration_text rest = error;
    const ration_text word = word_next(&rest);
    size_t at = 0;

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (rn_text_is(word, table[i].word))
            return table[i].means;
    }
    /* Redis 6.2 says that from within a script, with words of its own before it. */
    return rn_text_find(error, (ration_text)RN_TEXT("-READONLY "), &at) ? answer_not_the_master : NULL;
}

void rn_store_answer(rn_store_node *node, rn_store_call *call, redisReply *reply)
{
    if (call->own) {
        rn_store_call_end(call, RATION_OK, reply, "");
        return;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        const ration_text error = {reply->str, (size_t)reply->len};
        answer_means *const means = meaning_of(error);

        if (means != NULL) {
            means(node, call, error);
        } else {
            call_fail(call, error);
        }
        freeReplyObject(reply);
        return;
    }
    rn_node_prove(node);
    if (call->waits) {
        call->held = reply;
        rn_store_call_file(call, &node->held, node);
    } else {
        rn_store_call_end(call, RATION_OK, reply, "");
    }
}

void rn_store_loaded(void *ctx, int err, const redisReply *reply, const char *text)
{
    rn_store_node *const node = ctx;

    (void)text;
    if (err != RATION_OK)
        return;
    memset(node->loading, 0, sizeof node->loading);
    if (reply->type == REDIS_REPLY_ERROR) {
        (void)snprintf(node->text, sizeof node->text, "SCRIPT LOAD: %s", reply->str);
    } else {
        node->store->stats.loads++;
    }
}

/* All that was sent before the WAIT is told; where replicas are missing too, since Redis has it. */
void rn_store_waited(void *ctx, int err, const redisReply *reply, const char *text)
{
    rn_store_node *const node = ctx;
    rn_store *const store = node->store;
    rn_store_call *call;

    (void)text;
    node->waits--;
    if (err != RATION_OK)
        return; /* the connection is over, and they have failed with it */

    const bool enough = reply->type == REDIS_REPLY_INTEGER && reply->integer >= (long long)store->options.wait;

    node->short_of = !enough;
    while ((call = TAILQ_FIRST(&node->held)) != NULL) {
        redisReply *const held = call->held;

        call->held = NULL;
        if (!enough)
            store->stats.unreplicated++;
        rn_store_call_end(call, RATION_OK, held, "");
    }
}
