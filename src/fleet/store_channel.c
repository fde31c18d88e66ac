/* SPDX-License-Identifier: MIT */
/*
 * What is published, heard on a connection of its own: one that has subscribed can do nothing else.
 *
 * It goes to where the calls go, and follows them. Every second it is asked whether it is still there; a connection
 * that has said nothing since is made anew. What was published meanwhile is lost, as the protocol has it; who listens
 * looks from time to time by itself.
 *
 * Invariant: on a connection that stands every channel has been asked for.
 */
#include "fleet/store_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

bool rn_channels_place(const rn_store *store, rn_store_place *place)
{
    const rn_store_node *node;

    TAILQ_FOREACH (node, &store->nodes, link) {
        if (node->state == RN_NODE_UP) {
            *place = node->place;
            return true;
        }
    }
    return false;
}

void rn_channels_follow(rn_store *store)
{
    rn_store_node *const node = store->channels;
    rn_store_place place;

    if (node == NULL || store->closing || !rn_channels_place(store, &place))
        return;
    /* Any server of a cluster hears what any other is told. */
    if (node->state == RN_NODE_UP && store->main != NULL && !rn_store_place_eq(&place, &node->place))
        rn_node_break(node, "the calls go elsewhere");
    rn_node_want(node);
}

void rn_channels_up(rn_store_node *node)
{
    const rn_store *const store = node->store;
    ration_text words[RN_STORE_CHANNELS_MAX + 1] = {RN_TEXT("SUBSCRIBE")};

    for (size_t i = 0; i < store->subscribed_count; i++)
        words[i + 1] = (ration_text){store->subscribed[i].name, store->subscribed[i].size};
    rn_node_shout(node, store->subscribed_count + 1, words);
}

void rn_channels_beat(rn_store_node *node)
{
    static const ration_text ping[] = {RN_TEXT("PING")};

    if (!node->heard) {
        rn_node_break(node, "no answer within a second");
        return;
    }
    node->heard = false;
    rn_node_shout(node, 1, ping);
}

static ration_text part_of(const redisReply *reply, size_t index)
{
    const redisReply *const part = reply->element[index];

    if (part->type != REDIS_REPLY_STRING && part->type != REDIS_REPLY_STATUS)
        return (ration_text)RN_TEXT("");
    return (ration_text){part->str, (size_t)part->len};
}

void rn_channels_hear(rn_store_node *node, redisReply *reply)
{
    rn_store *const store = node->store;

    if (reply->type == REDIS_REPLY_ERROR) {
        rn_node_break(node, reply->str);
        return;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0)
        return;
    rn_node_prove(node);
    if (reply->elements != 3 || !rn_text_is(part_of(reply, 0), "message"))
        return;

    const ration_text channel = part_of(reply, 1);

    for (size_t i = 0; i < store->subscribed_count; i++) {
        const rn_store_channel *const one = &store->subscribed[i];

        if (rn_text_eq((ration_text){one->name, one->size}, channel)) {
            one->message(one->ctx, channel, part_of(reply, 2));
            return;
        }
    }
}

static int channel_add(rn_store *store, ration_text channel, rn_store_message *message, void *ctx)
{
    rn_store_channel *const one = &store->subscribed[store->subscribed_count];

    if (store->subscribed_count == RN_STORE_CHANNELS_MAX)
        return RATION_ERR_FULL;
    one->name = malloc(channel.size + 1);
    if (one->name == NULL)
        return RATION_ERR_NOMEM;
    memcpy(one->name, channel.data, channel.size);
    one->size = channel.size;
    one->message = message;
    one->ctx = ctx;
    store->subscribed_count++;
    return RATION_OK;
}

int rn_store_subscribe(rn_store *store, ration_text channel, rn_store_message *message, void *ctx)
{
    const ration_text words[] = {RN_TEXT("SUBSCRIBE"), channel};
    rn_store_node *node = store->channels;

    if (store->closing)
        return RATION_ERR_INVALID;

    const int err = channel_add(store, channel, message, ctx);

    if (err != RATION_OK)
        return err;
    if (node == NULL) {
        node = store->channels = rn_node_new(store, RN_NODE_CHANNELS, &store->url.places[0]);
        if (node == NULL) {
            free(store->subscribed[--store->subscribed_count].name);
            return RATION_ERR_NOMEM;
        }
        node->wanted = true;
    }
    if (node->state == RN_NODE_UP) {
        rn_node_shout(node, 2, words);
    } else {
        rn_channels_follow(store);
    }
    return RATION_OK;
}
