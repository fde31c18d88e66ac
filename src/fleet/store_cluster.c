/* SPDX-License-Identifier: MIT */
/*
 * Which server of a cluster has which slots.
 *
 * The map is what one of them says to CLUSTER SLOTS: whoever is connected is asked first. It is asked for anew when a
 * call was sent elsewhere (and that slot is known at once), and when a server that has slots is lost; not more often
 * than PAUSE_MS. Connections are made when the first call needs them.
 *
 * Invariants: a node in `slots` is in `nodes`; only nodes without slots and without calls are removed, and those of
 * the URL never.
 */
#include "fleet/store_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "fleet/store_backoff.h"

#define PAUSE_MS 50

static void map_ask(rn_store *store);

/* ---- nodes ---- */

rn_store_node *rn_cluster_node_at(rn_store *store, const rn_store_place *place)
{
    rn_store_node *node;

    TAILQ_FOREACH (node, &store->nodes, link) {
        if (rn_store_place_eq(&node->place, place))
            return node;
    }
    if (store->node_count == RN_STORE_NODES_MAX)
        return NULL;
    node = rn_node_new(store, RN_NODE_DATA, place);
    if (node != NULL) {
        TAILQ_INSERT_TAIL(&store->nodes, node, link);
        store->node_count++;
    }
    return node;
}

static rn_store_node *any_node(rn_store *store)
{
    rn_store_node *node;

    TAILQ_FOREACH (node, &store->nodes, link) {
        if (node->mapped && node->state == RN_NODE_UP)
            return node;
    }
    TAILQ_FOREACH (node, &store->nodes, link) {
        if (node->mapped)
            return node;
    }
    return NULL;
}

rn_store_node *rn_cluster_node_of(rn_store *store, int slot)
{
    if (!store->map_known)
        return NULL;

    rn_store_node *const node = slot >= 0 ? store->slots[slot] : NULL;

    return node != NULL ? node : any_node(store);
}

rn_store_state rn_cluster_state(const rn_store *store, const char **text)
{
    const rn_store_node *node;
    bool hope = false;
    bool up = false;

    TAILQ_FOREACH (node, &store->nodes, link) {
        if (store->map_known && !node->mapped)
            continue;
        up = up || (store->map_known && node->state == RN_NODE_UP);
        hope = hope || (!node->down && !store->map_refused);
        if (node->down)
            *text = node->text;
    }
    if (store->map_refused)
        *text = store->map_text;
    if (up)
        return RN_STORE_UP;
    return hope ? RN_STORE_CONNECTING : RN_STORE_DOWN;
}

/* ---- the map ---- */

static bool is_text(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
}

/* "HOST PORT ...": the host is empty or absent if it is that of who says so. */
static bool server_read(const rn_store *store, const redisReply *server, rn_store_place *place)
{
    ration_text host = ration_text_of(store->map_from->place.host);

    if (server->type != REDIS_REPLY_ARRAY || server->elements < 2 || server->element[1]->type != REDIS_REPLY_INTEGER)
        return false;
    if (is_text(server->element[0]) && server->element[0]->len > 0)
        host = (ration_text){server->element[0]->str, (size_t)server->element[0]->len};
    return rn_store_place_set(place, host, server->element[1]->integer);
}

/* "FIRST LAST MASTER REPLICA..." */
static bool range_read(rn_store *store, const redisReply *range)
{
    rn_store_place place;

    if (range->type != REDIS_REPLY_ARRAY || range->elements < 3 || range->element[0]->type != REDIS_REPLY_INTEGER ||
        range->element[1]->type != REDIS_REPLY_INTEGER || !server_read(store, range->element[2], &place))
        return false;

    const long long first = range->element[0]->integer;
    const long long last = range->element[1]->integer;
    rn_store_node *const node = rn_cluster_node_at(store, &place);

    if (first < 0 || last < first || last >= RN_STORE_SLOTS || node == NULL)
        return false;
    for (long long slot = first; slot <= last; slot++)
        store->slots[slot] = node;
    node->mapped = node->wanted = true;
    return true;
}

/* Servers that are no part of it any more. */
static void nodes_prune(rn_store *store)
{
    rn_store_node *node;
    rn_store_node *next;

    for (node = TAILQ_FIRST(&store->nodes); node != NULL; node = next) {
        next = TAILQ_NEXT(node, link);
        node->wanted = node->mapped;
        if (node->mapped || node->seed || !TAILQ_EMPTY(&node->queued) || !TAILQ_EMPTY(&node->sent) ||
            !TAILQ_EMPTY(&node->held))
            continue;
        TAILQ_REMOVE(&store->nodes, node, link);
        store->node_count--;
        rn_node_close(node, "");
    }
}

static bool map_read(rn_store *store, const redisReply *reply)
{
    rn_store_node *node;
    bool good = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0;

    if (!good)
        return false;
    memset(store->slots, 0, RN_STORE_SLOTS * sizeof(rn_store_node *));
    TAILQ_FOREACH (node, &store->nodes, link) {
        node->mapped = node->asked = false;
    }
    for (size_t i = 0; i < reply->elements; i++)
        good = range_read(store, reply->element[i]) && good;
    nodes_prune(store);
    return good;
}

static void map_ring(uv_timer_t *timer)
{
    rn_store *const store = timer->data;

    if (store->map_wanted && !store->map_asked)
        map_ask(store);
}

static void map_done(rn_store *store)
{
    rn_store_call *call;

    store->map_known = true;
    store->map_refused = false;
    store->map_failures = 0;
    rn_store_timer_start(&store->map_timer, map_ring, PAUSE_MS);
    while ((call = TAILQ_FIRST(&store->homeless)) != NULL)
        rn_store_call_route(call);
    rn_store_look(store);
    rn_channels_follow(store);
}

/* Nobody has a map, or each that was asked says no. */
static void map_failed(rn_store *store)
{
    store->map_refused = !store->map_known && store->map_text[0] != '\0';
    store->map_wanted = true;
    store->map_failures++;
    rn_store_timer_start(
        &store->map_timer, map_ring,
        rn_backoff_ms(store->map_failures, (uint64_t)store->options.backoff_us / 1000, rn_store_random(store)));
    rn_store_look(store);
    rn_store_kick(store);
}

static void map_answered(void *ctx, int err, const redisReply *reply, const char *text)
{
    rn_store *const store = ctx;
    char place[RN_STORE_PLACE_TEXT];
    char said[RN_STORE_TEXT];

    if (store->closing)
        return;
    store->map_asked = false;
    if (err == RATION_OK && map_read(store, reply)) {
        map_done(store);
        return;
    }
    rn_store_place_text(&store->map_from->place, place);
    if (err != RATION_OK) {
        rn_store_say(store->map_text, sizeof store->map_text, ration_text_of(text));
    } else {
        rn_store_say(said, sizeof said,
                     ration_text_of(reply->type == REDIS_REPLY_ERROR ? reply->str : "has no map of a cluster"));
        (void)snprintf(store->map_text, sizeof store->map_text, "%.264s: %.160s", place, said);
    }
    map_ask(store);
}

/* Whom to ask: of those who have not been asked yet, one that is connected, or one that may be. */
static rn_store_node *map_candidate(rn_store *store)
{
    rn_store_node *best = NULL;
    rn_store_node *node;

    TAILQ_FOREACH (node, &store->nodes, link) {
        if (node->asked || node->down)
            continue;
        if (best == NULL || (node->state == RN_NODE_UP && best->state != RN_NODE_UP))
            best = node;
    }
    return best;
}

static void nodes_forget_asked(rn_store *store)
{
    rn_store_node *node;

    TAILQ_FOREACH (node, &store->nodes, link) {
        node->asked = false;
    }
}

/* Ask the next one. */
static void map_ask(rn_store *store)
{
    static const ration_text words[] = {RN_TEXT("CLUSTER"), RN_TEXT("SLOTS")};
    rn_store_node *const node = map_candidate(store);
    rn_store_call *const call = node != NULL ? rn_store_call_own(store, 2, words, map_answered, store) : NULL;

    if (call == NULL) {
        nodes_forget_asked(store);
        map_failed(store);
        return;
    }
    node->asked = true;
    store->map_asked = true;
    store->map_wanted = false;
    store->map_from = node;
    rn_store_call_file(call, &node->queued, node);
    rn_store_kick(store);
}

void rn_cluster_refresh(rn_store *store)
{
    store->map_wanted = true;
    if (!store->map_asked && !store->closing && uv_is_active((uv_handle_t *)&store->map_timer) == 0)
        map_ask(store);
}

void rn_cluster_changed(rn_store *store, rn_store_node *node)
{
    if (store->url.kind != RN_STORE_CLUSTER || store->closing)
        return;
    if (!store->map_known || (node->down && node->mapped))
        rn_cluster_refresh(store);
}
