/* SPDX-License-Identifier: MIT */
/*
 * Who the master is, by the Sentinels.
 *
 * They are asked anew for every connection, one after the other, beginning with the one that answered last: a
 * fail-over ends the connections to the old master, or they time out. What a Sentinel says may be old; so the one it
 * names is asked for its role before anything else.
 *
 * Invariant: `sentinel` of the store is there exactly while the main node is FINDING.
 */
#include "fleet/store_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static void sentinel_drop(rn_store *store)
{
    rn_store_node *const asked = store->sentinel;

    store->sentinel = NULL;
    if (asked != NULL)
        rn_node_close(asked, "");
}

/* What the one that was asked has said is of no use. */
static void sentinel_next(rn_store *store, const char *text)
{
    char said[RN_STORE_TEXT];

    (void)snprintf(said, sizeof said, "%s", text);
    sentinel_drop(store);
    store->place = (store->place + 1) % store->url.count;
    if (++store->places_tried < store->url.count) {
        rn_sentinel_find(store, store->main);
        return;
    }
    store->places_tried = 0;
    rn_node_break(store->main, said);
}

static void sentinel_answered(void *ctx, int err, const redisReply *reply, const char *text)
{
    rn_store *const store = ctx;
    rn_store_node *const asked = store->sentinel;
    char place[RN_STORE_PLACE_TEXT];
    char said[RN_STORE_TEXT];
    rn_store_place master;

    if (store->closing || asked == NULL)
        return;
    rn_store_place_text(&asked->place, place);
    if (err != RATION_OK) {
        (void)snprintf(said, sizeof said, "Sentinel %s", text);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        (void)snprintf(said, sizeof said, "Sentinel %s: %s", place, reply->str);
    } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
               reply->element[0]->type == REDIS_REPLY_STRING && reply->element[1]->type == REDIS_REPLY_STRING &&
               rn_store_place_set(
                   &master, (ration_text){reply->element[0]->str, (size_t)reply->element[0]->len},
                   rn_store_number((ration_text){reply->element[1]->str, (size_t)reply->element[1]->len}))) {
        sentinel_drop(store);
        store->main->place = master;
        rn_node_dial(store->main);
        return;
    } else {
        (void)snprintf(said, sizeof said, "Sentinel %s: knows no master '%s'", place, store->url.master);
    }
    sentinel_next(store, said);
}

void rn_sentinel_find(rn_store *store, rn_store_node *node)
{
    const ration_text words[] = {RN_TEXT("SENTINEL"), RN_TEXT("get-master-addr-by-name"),
                                 ration_text_of(store->url.master)};
    rn_store_call *call = NULL;

    (void)node;
    store->sentinel = rn_node_new(store, RN_NODE_SENTINEL, &store->url.places[store->place]);
    if (store->sentinel != NULL)
        call = rn_store_call_own(store, 3, words, sentinel_answered, store);
    if (call == NULL) {
        sentinel_drop(store);
        rn_node_break(store->main, "out of memory");
        return;
    }
    rn_store_call_file(call, &store->sentinel->queued, store->sentinel);
    rn_store_kick(store);
}
