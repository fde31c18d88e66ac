/* SPDX-License-Identifier: MIT */
/*
 * The calls of a store and their time.
 *
 * All calls have the same time, so one list in the order in which they were made is also in the order of deadlines, and
 * one timer serves it. What a turn of the loop has queued is sent by an idle handle, which runs before the loop waits;
 * the same tells of the store's state, so that nobody is called from within a function of the store.
 *
 * A late look is no late answer: before a call is given up, what has arrived meanwhile is read; and one that a busy
 * loop has not sent yet is not late.
 *
 * Invariants: a call is in `all` from its making to its answer, and in at most one list besides; nothing is called
 * after `closed`.
 */
#include "fleet/store_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "net/clock.h"

#define BACKOFF_US (2 * INT64_C(1000000))
#define TIMEOUT_US INT64_C(250000)
#define CALLS_MAX 4096
#define DELAY_FIRST_MS UINT64_C(5)
#define DELAY_LAST_MS 50

/* ---- time ---- */

uint64_t rn_store_now_ms(void)
{
    return (uint64_t)rn_clock_ticks() / 1000;
}

void rn_store_timer_start(uv_timer_t *timer, uv_timer_cb ring, uint64_t wait_ms)
{
    (void)uv_timer_start(timer, ring, wait_ms + rn_clock_turn_age_ms(timer->loop), 0);
}

/* xorshift: enough for jitter. */
uint32_t rn_store_random(rn_store *store)
{
    store->random ^= store->random << 13;
    store->random ^= store->random >> 7;
    store->random ^= store->random << 17;
    return (uint32_t)(store->random >> 16);
}

static void store_ring(uv_timer_t *timer);

void rn_store_wake(rn_store *store, uint64_t at_ms)
{
    const uint64_t now_ms = rn_store_now_ms();

    if (at_ms >= store->timer_ms)
        return;
    store->timer_ms = at_ms;
    rn_store_timer_start(&store->timer, store_ring, at_ms > now_ms ? at_ms - now_ms : 0);
}

/* Nobody has answered it. */
static void call_expire(rn_store_call *call)
{
    rn_store *const store = call->store;
    rn_store_node *const node = call->node;
    const bool underway = node != NULL && (call->list == &node->sent || call->list == &node->held);
    const long long limit_ms = (long long)(store->options.command_timeout_us / 1000);
    char text[RN_STORE_TEXT];

    store->stats.timeouts++;
    if (underway) {
        (void)snprintf(text, sizeof text, "no answer within %lld ms", limit_ms);
        rn_node_break(node, text);
    } else if (call->why[0] != '\0') {
        (void)snprintf(text, sizeof text, "not done within %lld ms: %s", limit_ms, call->why);
        rn_store_call_end(call, RATION_ERR_IO, NULL, text);
    } else {
        (void)snprintf(text, sizeof text, "no connection within %lld ms", limit_ms);
        rn_store_call_end(call, RATION_ERR_IO, NULL, text);
    }
}

/* It was made, the loop did something else for long, and nothing has been sent: its time begins now. */
static void call_renew(rn_store_call *call, uint64_t now_ms)
{
    rn_store *const store = call->store;

    call->deadline_ms = now_ms + (uint64_t)store->options.command_timeout_us / 1000;
    TAILQ_REMOVE(&store->all, call, all_link);
    TAILQ_INSERT_TAIL(&store->all, call, all_link);
    rn_store_kick(store);
}

static void store_expire(rn_store *store, uint64_t now_ms)
{
    rn_store_call *call;

    while ((call = TAILQ_FIRST(&store->all)) != NULL && call->deadline_ms <= now_ms) {
        const uint64_t serial = call->serial;
        rn_store_node *const node = call->node;

        if (node != NULL && call->list == &node->queued && node->state == RN_NODE_UP && !node->stale) {
            call_renew(call, now_ms);
            continue;
        }
        if (node != NULL)
            rn_node_read(node);
        call = TAILQ_FIRST(&store->all);
        if (call != NULL && call->serial == serial)
            call_expire(call);
    }
    if (call != NULL)
        rn_store_wake(store, call->deadline_ms);
}

static void store_retry(rn_store *store, uint64_t now_ms)
{
    rn_store_call *call;
    rn_store_call *next;

    for (call = TAILQ_FIRST(&store->delayed); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        if (call->retry_ms <= now_ms) {
            rn_store_call_route(call);
        } else {
            rn_store_wake(store, call->retry_ms);
        }
    }
}

static void store_ring(uv_timer_t *timer)
{
    rn_store *const store = timer->data;
    const uint64_t now_ms = rn_store_now_ms();

    store->timer_ms = UINT64_MAX;
    store_retry(store, now_ms);
    store_expire(store, now_ms);
}

/* ---- calls ---- */

void rn_store_calls_fail(rn_store_calls *list, const char *text)
{
    rn_store_call *call;

    while ((call = TAILQ_FIRST(list)) != NULL)
        rn_store_call_end(call, RATION_ERR_IO, NULL, text);
}

void rn_store_call_delay(rn_store_call *call, ration_text text)
{
    rn_store *const store = call->store;
    uint64_t wait_ms = DELAY_FIRST_MS << (call->delays < 4 ? call->delays : 4);

    if (wait_ms > DELAY_LAST_MS)
        wait_ms = DELAY_LAST_MS;
    call->delays++;
    rn_store_say(call->why, sizeof call->why, text);
    call->retry_ms = rn_store_now_ms() + wait_ms / 2 + rn_store_random(store) % (wait_ms / 2 + 1);
    rn_store_call_file(call, &store->delayed, NULL);
    rn_store_wake(store, call->retry_ms);
}

void rn_store_call_route(rn_store_call *call)
{
    rn_store *const store = call->store;
    rn_store_node *const node = store->main != NULL ? store->main : rn_cluster_node_of(store, call->slot);

    call->asking = false;
    if (node != NULL) {
        rn_store_call_file(call, &node->queued, node);
    } else {
        rn_store_call_file(call, &store->homeless, NULL);
        rn_cluster_refresh(store);
    }
    rn_store_kick(store);
}

/* A caller's, which `call_go` sends on its way. */
static int call_begin(rn_store *store, size_t count, const ration_text *words, rn_store_answered *answered, void *ctx,
                      rn_store_call **out)
{
    if (store->closing)
        return RATION_ERR_INVALID;
    if (store->stats.outstanding >= store->options.max_calls || count > RN_STORE_WORDS_MAX)
        return RATION_ERR_FULL;
    *out = rn_store_call_new(store, count, words, answered, ctx);
    return *out != NULL ? RATION_OK : RATION_ERR_NOMEM;
}

static void call_go(rn_store_call *call, int script, ration_text key)
{
    call->script = script;
    call->slot = key.size > 0 ? rn_store_slot(key) : -1;
    call->store->stats.outstanding++;
    rn_store_call_route(call);
}

int rn_store_run(rn_store *store, const rn_store_script *script, rn_store_answered *answered, void *ctx)
{
    const size_t count = script->key_count;
    ration_text words[RN_STORE_WORDS_MAX];
    rn_store_call *call = NULL;
    char number[24];

    if (count + 5 > RN_STORE_WORDS_MAX)
        return RATION_ERR_FULL;
    words[0] = (ration_text)RN_TEXT("EVALSHA");
    words[1] = ration_text_of(rn_scripts[script->name].digest);
    words[2] = (ration_text){number, (size_t)snprintf(number, sizeof number, "%zu", count)};
    for (size_t i = 0; i < count; i++)
        words[3 + i] = script->keys[i];
    words[3 + count] = script->argument;
    words[4 + count] = script->brief;

    const size_t word_count = count + (script->brief.size > 0 ? 5 : 4);
    const int err = call_begin(store, word_count, words, answered, ctx, &call);

    if (err == RATION_OK)
        call_go(call, (int)script->name, count > 0 ? script->keys[0] : (ration_text)RN_TEXT(""));
    return err;
}

int rn_store_command(rn_store *store, ration_text key, size_t count, const ration_text *words,
                     rn_store_answered *answered, void *ctx)
{
    rn_store_call *call = NULL;
    const int err = call_begin(store, count, words, answered, ctx, &call);

    if (err == RATION_OK)
        call_go(call, -1, key);
    return err;
}

/* ---- state ---- */

rn_store_state rn_store_state_of(const rn_store *store)
{
    return store->state;
}

const char *rn_store_text(const rn_store *store)
{
    return store->text;
}

void rn_store_stats_of(const rn_store *store, rn_store_stats *out)
{
    *out = store->stats;
}

void rn_store_look(rn_store *store)
{
    const rn_store_node *const node = store->main;
    rn_store_state state = RN_STORE_CONNECTING;
    const char *text = "";

    if (store->closing)
        return;
    if (node == NULL) {
        state = rn_cluster_state(store, &text);
    } else if (node->state == RN_NODE_UP) {
        state = RN_STORE_UP;
    } else {
        state = node->down ? RN_STORE_DOWN : RN_STORE_CONNECTING;
        text = node->text;
    }
    store->state = state;
    (void)snprintf(store->text, sizeof store->text, "%s", state == RN_STORE_UP ? "" : text);
    if (state != store->told)
        rn_store_kick(store);
}

static void store_kicked(uv_idle_t *kick)
{
    rn_store *const store = kick->data;
    rn_store_node *node;
    rn_store_node *next;

    (void)uv_idle_stop(kick);
    if (store->map_refused)
        rn_store_calls_fail(&store->homeless, store->text);
    for (node = TAILQ_FIRST(&store->nodes); node != NULL && !store->closing; node = next) {
        rn_node_flush(node);
        next = TAILQ_NEXT(node, link);
    }
    if (store->sentinel != NULL && !store->closing)
        rn_node_flush(store->sentinel);
    if (store->state == store->told || store->closing)
        return;
    store->told = store->state;
    if (store->options.changed != NULL)
        store->options.changed(store->options.changed_ctx, store->state, store->text);
}

void rn_store_kick(rn_store *store)
{
    if (!store->closing)
        (void)uv_idle_start(&store->kick, store_kicked);
}

/* ---- life ---- */

/* False: no memory; what was copied is freed with the store. */
static bool options_copy(rn_store *store, const rn_store_options *options)
{
    rn_store_options *const to = &store->options;
    const char **const texts[RN_STORE_TEXTS] = {&to->user, &to->password, &to->ca_file, &to->cert_file, &to->key_file};

    *to = *options;
    to->url = NULL;
    for (size_t i = 0; i < RN_STORE_TEXTS; i++) {
        if (*texts[i] == NULL)
            continue;
        store->texts[i] = strdup(*texts[i]);
        *texts[i] = store->texts[i];
        if (store->texts[i] == NULL)
            return false;
    }
    if (to->connect_timeout_us <= 0)
        to->connect_timeout_us = TIMEOUT_US;
    if (to->command_timeout_us <= 0)
        to->command_timeout_us = TIMEOUT_US;
    if (to->backoff_us <= 0)
        to->backoff_us = BACKOFF_US;
    if (to->max_calls == 0)
        to->max_calls = CALLS_MAX;
    return true;
}

static void store_free(rn_store *store)
{
    for (size_t i = 0; i < RN_STORE_TEXTS; i++)
        free(store->texts[i]);
    for (size_t i = 0; i < store->subscribed_count; i++)
        free(store->subscribed[i].name);
    free(store->slots);
    free(store);
}

static void store_closed(uv_handle_t *handle)
{
    rn_store_handle_closed(handle->data);
}

void rn_store_handle_closed(rn_store *store)
{
    void (*const closed)(void *ctx) = store->closed;
    void *const ctx = store->closed_ctx;

    if (--store->handles > 0 || !store->closing)
        return;
    store_free(store);
    if (closed != NULL)
        closed(ctx);
}

static bool store_seed(rn_store *store)
{
    const size_t count = store->url.kind == RN_STORE_CLUSTER ? store->url.count : 1;

    for (size_t i = 0; i < count; i++) {
        rn_store_node *const node = rn_node_new(store, RN_NODE_DATA, &store->url.places[i]);

        if (node == NULL)
            return false;
        node->seed = true;
        TAILQ_INSERT_TAIL(&store->nodes, node, link);
        store->node_count++;
    }
    if (store->url.kind == RN_STORE_CLUSTER) {
        store->slots = calloc(RN_STORE_SLOTS, sizeof(rn_store_node *));
        return store->slots != NULL;
    }
    store->main = TAILQ_FIRST(&store->nodes);
    store->main->wanted = true;
    return true;
}

static void nodes_close(rn_store *store, const char *text)
{
    rn_store_node *node;

    while ((node = TAILQ_FIRST(&store->nodes)) != NULL) {
        TAILQ_REMOVE(&store->nodes, node, link);
        rn_node_close(node, text);
    }
    if (store->sentinel != NULL)
        rn_node_close(store->sentinel, text);
    if (store->channels != NULL)
        rn_node_close(store->channels, text);
}

static void handles_close(rn_store *store)
{
    rn_connector_free(store->connector);
    uv_close((uv_handle_t *)&store->kick, store_closed);
    uv_close((uv_handle_t *)&store->timer, store_closed);
    uv_close((uv_handle_t *)&store->map_timer, store_closed);
}

int rn_store_open(uv_loop_t *loop, const rn_store_options *options, rn_store **out, char *fault)
{
    rn_store *const store = calloc(1, sizeof *store);

    if (store == NULL)
        return RATION_ERR_NOMEM;

    const char *const wrong = rn_store_url_read(options->url, &store->url);

    if (wrong != NULL || !options_copy(store, options) || rn_connector_new(loop, &store->connector) != RATION_OK) {
        (void)snprintf(fault, RN_STORE_TEXT, "%s", wrong != NULL ? wrong : "");
        store_free(store);
        return wrong != NULL ? RATION_ERR_INVALID : RATION_ERR_NOMEM;
    }
    store->loop = loop;
    store->timer_ms = UINT64_MAX;
    store->random = (uint64_t)rn_clock_ticks() ^ ((uint64_t)getpid() << 32) ^ (uint64_t)(uintptr_t)store;
    store->random |= 1;
    TAILQ_INIT(&store->nodes);
    TAILQ_INIT(&store->all);
    TAILQ_INIT(&store->delayed);
    TAILQ_INIT(&store->homeless);
    (void)uv_idle_init(loop, &store->kick);
    (void)uv_timer_init(loop, &store->timer);
    (void)uv_timer_init(loop, &store->map_timer);
    store->kick.data = store->timer.data = store->map_timer.data = store;
    store->handles = 3;
    if (!store_seed(store)) {
        store->closing = true;
        nodes_close(store, "");
        handles_close(store);
        return RATION_ERR_NOMEM;
    }
    if (store->main != NULL) {
        rn_node_want(store->main);
    } else {
        rn_cluster_refresh(store);
    }
    *out = store;
    return RATION_OK;
}

void rn_store_close(rn_store *store, void (*closed)(void *ctx), void *ctx)
{
    static const char text[] = "the store was closed";
    rn_store_call *call;

    if (store == NULL)
        return;
    store->closing = true;
    store->closed = closed;
    store->closed_ctx = ctx;
    nodes_close(store, text);
    while ((call = TAILQ_FIRST(&store->all)) != NULL)
        rn_store_call_end(call, RATION_ERR_IO, NULL, text);
    handles_close(store);
}
