/* SPDX-License-Identifier: MIT */
/*
 * A connection to one server, and how it is kept.
 *
 * Calls wait in `queued` until the connection stands and has been greeted, go out together once a turn of the loop, and
 * are in `sent` in the order in which they will be answered. Whatever breaks, breaks the whole connection: what was
 * sent fails, since nobody knows what became of it, and no answer that comes later can be taken for another's. What was
 * not sent waits for the next connection, which is made at once where the last one has been of use; else after a pause.
 *
 * Invariants: `node_enter` alone sets the state; there is a wire exactly in CONNECTING, GREETING and UP, a reader in
 * the last two; the timer stands for the pause, the time to connect and greet, or the beat of a connection for
 * channels; a wire is opened in a turn of the loop that the last one's end does not belong to.
 */
#include "fleet/store_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fleet/store_backoff.h"

#define PARTS_MAX 65536
#define BEAT_MS 1000
#define WAIT_HALVINGS 16 /* of patience, until none is left */
#define PATIENCE 3       /* connections in a row to who is not the master, before calls do not wait for a better one */

static void node_ring(uv_timer_t *timer);

static void node_enter(rn_store_node *node, rn_node_state state)
{
    node->state = state;
    rn_store_look(node->store);
}

/* ---- life ---- */

rn_store_node *rn_node_new(rn_store *store, rn_node_role role, const rn_store_place *place)
{
    rn_store_node *const node = calloc(1, sizeof *node);

    if (node == NULL)
        return NULL;
    node->store = store;
    node->role = role;
    node->place = *place;
    TAILQ_INIT(&node->queued);
    TAILQ_INIT(&node->sent);
    TAILQ_INIT(&node->held);
    (void)uv_timer_init(store->loop, &node->timer);
    node->timer.data = node;
    store->handles++;
    return node;
}

/* Let go of the connection. */
static void node_drop(rn_store_node *node)
{
    if (node->wire != NULL)
        rn_wire_close(node->wire);
    if (node->reader != NULL)
        redisReaderFree(node->reader);
    rn_buffer_fini(&node->out);
    node->wire = NULL;
    node->reader = NULL;
    node->greetings = 0;
    node->answer_bytes = 0;
    node->stale = node->proven = node->too_many = false;
    memset(node->loading, 0, sizeof node->loading);
}

static void node_closed(uv_handle_t *timer)
{
    rn_store_node *const node = timer->data;
    rn_store *const store = node->store;

    free(node);
    rn_store_handle_closed(store);
}

void rn_node_close(rn_store_node *node, const char *text)
{
    node_drop(node);
    node->wanted = false;
    node_enter(node, RN_NODE_OFF);
    uv_close((uv_handle_t *)&node->timer, node_closed);
    rn_store_calls_fail(&node->sent, text);
    rn_store_calls_fail(&node->held, text);
    rn_store_calls_fail(&node->queued, text);
}

static void node_tell(rn_store_node *node, const char *text)
{
    char place[RN_STORE_PLACE_TEXT];
    char said[RN_STORE_TEXT];
    rn_builder b;

    rn_store_say(said, sizeof said, ration_text_of(text));
    rn_store_place_text(&node->place, place);
    rn_builder_init(&b, node->text, sizeof node->text);
    /* Of Sentinel's search the text says itself whom it is about. */
    if (node->state != RN_NODE_FINDING) {
        rn_builder_str(&b, place);
        rn_builder_str(&b, ": ");
    }
    rn_builder_str(&b, said);
}

/* ---- connecting ---- */

static void *array_new(const redisReadTask *task, rn_array_size elements)
{
    rn_store_node *const node = task->privdata;

    if (elements > PARTS_MAX) {
        node->too_many = true;
        return NULL;
    }
    return node->array_new(task, elements);
}

static bool node_make_reader(rn_store_node *node)
{
    node->reader = redisReaderCreate();
    if (node->reader == NULL)
        return false;
    node->objects = *node->reader->fn;
    node->array_new = node->objects.createArray;
    node->objects.createArray = array_new;
    node->reader->fn = &node->objects;
    node->reader->privdata = node;
    return true;
}

static void node_stands(rn_store_node *node)
{
    (void)uv_timer_stop(&node->timer);
    node->down = false;
    node->text[0] = '\0';
    node->store->stats.connects++;
    if (node->role == RN_NODE_DATA)
        node->store->places_tried = 0;
    node_enter(node, RN_NODE_UP);
    if (node->role == RN_NODE_CHANNELS) {
        node->heard = true;
        rn_store_timer_start(&node->timer, node_ring, BEAT_MS);
        rn_channels_up(node);
        return;
    }
    rn_node_flush(node);
    if (node->role == RN_NODE_DATA)
        rn_cluster_changed(node->store, node);
    rn_channels_follow(node->store);
}

static void node_greeted(void *ctx, int err, const redisReply *reply, const char *text)
{
    rn_store_node *const node = ctx;

    (void)text;
    if (err != RATION_OK)
        return; /* the connection is over */
    if (reply->type == REDIS_REPLY_ERROR) {
        rn_node_break(node, reply->str);
    } else if (reply->type == REDIS_REPLY_ARRAY &&
               (reply->elements == 0 || reply->element[0]->type != REDIS_REPLY_STRING ||
                strcmp(reply->element[0]->str, "master") != 0)) {
        rn_node_break(node, "is not the master that the Sentinels take it for");
    } else if (--node->greetings == 0) {
        node_stands(node);
    }
}

/* A password is in no other place than the bytes that are sent. */
static void node_say_hello(rn_store_node *node)
{
    const rn_store_options *const options = &node->store->options;
    const bool asks_role = node->role == RN_NODE_DATA && node->store->url.kind == RN_STORE_SENTINEL;
    const bool knows = node->role != RN_NODE_SENTINEL && options->password != NULL;
    ration_text words[3] = {RN_TEXT("AUTH")};
    size_t count = 1;

    node->greetings = knows ? 2 : 1;
    if (knows) {
        if (options->user != NULL)
            words[count++] = ration_text_of(options->user);
        words[count++] = ration_text_of(options->password);
        rn_node_say(node, count, words, node_greeted);
    }
    words[0] = ration_text_of(asks_role ? "ROLE" : "PING");
    rn_node_say(node, 1, words, node_greeted);
}

void rn_node_greet(rn_store_node *node)
{
    if (!node_make_reader(node)) {
        rn_node_break(node, "out of memory");
        return;
    }
    node_enter(node, RN_NODE_GREETING);
    node_say_hello(node);
}

static void node_connected(void *user)
{
    rn_node_greet(user);
}

static void node_refused(void *user, rn_wire_fault fault, const char *text, int os_error)
{
    rn_store_node *const node = user;
    char late[64];

    if (fault == RN_WIRE_TIMEOUT) {
        (void)snprintf(late, sizeof late, "no connection within %lld ms",
                       (long long)(node->store->options.connect_timeout_us / 1000));
        text = late;
    } else if (fault == RN_WIRE_CONNECT && os_error != 0) {
        text = strerror(os_error);
    }
    rn_node_break(node, text);
}

static void node_ready(void *user, int status, int events)
{
    rn_store_node *const node = user;

    (void)events;
    rn_node_read(node);
    /* libuv knows of an error only that it is one; reading has said which. */
    if (status < 0)
        rn_node_break(node, uv_strerror(status));
    rn_node_flush(node);
}

void rn_node_dial(rn_store_node *node)
{
    static const rn_wire_handlers handlers = {node_connected, node_refused, node_ready};
    const rn_store *const store = node->store;
    const bool is_socket = node->place.port == 0;
    char place[RN_STORE_PLACE_TEXT];
    char url[RN_STORE_PLACE_TEXT + 16];
    const rn_wire_options options = {
        .url = url,
        .unix_path = is_socket ? node->place.host : NULL,
        .ca_file = store->options.ca_file,
        .cert_file = store->options.cert_file,
        .key_file = store->options.key_file,
        .tls = store->url.tls,
        .connect_timeout_us = store->options.connect_timeout_us,
    };

    rn_store_place_text(&node->place, place);
    (void)snprintf(url, sizeof url, "%s://%s", store->url.tls ? "https" : "http", is_socket ? "localhost" : place);
    rn_store_timer_start(&node->timer, node_ring, (uint64_t)store->options.connect_timeout_us / 1000);
    node_enter(node, RN_NODE_CONNECTING);
    node->wire = rn_wire_open(store->connector, &options, &handlers, node);
    if (node->wire == NULL)
        rn_node_break(node, "out of memory");
}

static void node_begin(rn_store_node *node)
{
    rn_store *const store = node->store;

    if (node->role == RN_NODE_DATA && store->url.kind == RN_STORE_SENTINEL) {
        node_enter(node, RN_NODE_FINDING);
        rn_sentinel_find(store, node);
        return;
    }
    if (node->role == RN_NODE_DATA && store->url.kind == RN_STORE_SINGLE)
        node->place = store->url.places[store->place];
    if (node->role == RN_NODE_CHANNELS)
        (void)rn_channels_place(store, &node->place);
    rn_node_dial(node);
}

void rn_node_want(rn_store_node *node)
{
    if (node->state == RN_NODE_OFF && !node->store->closing)
        node_begin(node);
}

static void node_ring(uv_timer_t *timer)
{
    rn_store_node *const node = timer->data;
    char late[64];

    if (node->state == RN_NODE_PAUSING && !node->wanted && TAILQ_EMPTY(&node->queued)) {
        node->down = false;
        node_enter(node, RN_NODE_OFF);
    } else if (node->state == RN_NODE_PAUSING) {
        node_begin(node);
    } else if (node->state == RN_NODE_UP) {
        rn_store_timer_start(&node->timer, node_ring, BEAT_MS);
        rn_channels_beat(node);
    } else {
        const char *const what = node->state == RN_NODE_GREETING ? "answer" : "connection";

        rn_node_read(node);
        if (node->state != RN_NODE_CONNECTING && node->state != RN_NODE_GREETING)
            return;
        (void)snprintf(late, sizeof late, "no %s within %lld ms", what,
                       (long long)(node->store->options.connect_timeout_us / 1000));
        rn_node_break(node, late);
    }
}

/* ---- breaking ---- */

/* True: there is another place to try before it counts as down. */
static bool node_has_other_place(const rn_store_node *node)
{
    rn_store *const store = node->store;

    if (node->role != RN_NODE_DATA || store->url.kind != RN_STORE_SINGLE)
        return false;
    store->place = (store->place + 1) % store->url.count;
    return ++store->places_tried < store->url.count;
}

void rn_node_break(rn_store_node *node, const char *text)
{
    rn_store *const store = node->store;
    const bool again = node->state == RN_NODE_UP && node->proven;
    const bool retired = node->stale;
    rn_store_calls failing = TAILQ_HEAD_INITIALIZER(failing);
    rn_store_call *call;
    uint64_t pause_ms = 0;

    if (node->state == RN_NODE_OFF || node->state == RN_NODE_PAUSING)
        return;
    node_tell(node, text);
    node_drop(node);
    if (!again && !node_has_other_place(node)) {
        node->failures++;
        node->down = !retired || node->failures > PATIENCE;
        pause_ms = rn_backoff_ms(node->failures, (uint64_t)store->options.backoff_us / 1000, rn_store_random(store));
    }
    while ((call = TAILQ_FIRST(&node->held)) != NULL || (call = TAILQ_FIRST(&node->sent)) != NULL ||
           (node->down && (call = TAILQ_FIRST(&node->queued)) != NULL))
        rn_store_call_file(call, &failing, NULL);
    if (node->wanted || !TAILQ_EMPTY(&node->queued)) {
        rn_store_timer_start(&node->timer, node_ring, pause_ms);
        node_enter(node, RN_NODE_PAUSING);
    } else {
        (void)uv_timer_stop(&node->timer);
        node->down = false;
        node_enter(node, RN_NODE_OFF);
    }

    char said[RN_STORE_TEXT];

    memcpy(said, node->text, sizeof said);
    rn_store_calls_fail(&failing, said);
    if (node->role == RN_NODE_DATA && !store->closing)
        rn_cluster_changed(store, node);
}

void rn_node_retire(rn_store_node *node, const char *text)
{
    if (node->state != RN_NODE_UP)
        return;
    (void)snprintf(node->text, sizeof node->text, "%s", text);
    node->stale = true;
    node->proven = false;
    rn_store_kick(node->store);
}

void rn_node_prove(rn_store_node *node)
{
    if (node->stale)
        return;
    node->proven = true;
    node->failures = 0;
}

/* ---- sending ---- */

static void node_write(rn_store_node *node)
{
    while (node->wire != NULL && rn_buffer_size(&node->out) > 0) {
        const ration_text bytes = rn_buffer_bytes(&node->out);
        const ssize_t sent = rn_wire_send(node->wire, bytes.data, bytes.size);

        node->store->stats.writes++;
        if (sent == RN_IO_AGAIN)
            break;
        if (sent < 0) {
            /* It may have said why. */
            rn_node_read(node);
            if (node->wire != NULL)
                rn_node_break(node, rn_wire_error(node->wire));
            return;
        }
        rn_buffer_consume(&node->out, (size_t)sent);
    }
    if (node->wire != NULL)
        rn_wire_watch(node->wire, UV_READABLE | (rn_buffer_size(&node->out) > 0 ? UV_WRITABLE : 0));
}

/* To those that wait for their answers. */
static void node_put(rn_store_node *node, rn_store_call *call)
{
    if (!rn_buffer_append(&node->out, call->bytes, call->size)) {
        rn_store_call_end(call, RATION_ERR_IO, NULL, "out of memory");
        return;
    }
    rn_store_call_file(call, &node->sent, node);
}

static bool node_put_own(rn_store_node *node, size_t count, const ration_text *words, rn_store_answered *answered)
{
    rn_store_call *const call = rn_store_call_own(node->store, count, words, answered, node);

    if (call != NULL) {
        node_put(node, call);
    } else {
        node->stale = true;
    }
    return call != NULL;
}

void rn_node_shout(rn_store_node *node, size_t count, const ration_text *words)
{
    rn_store_call *const call = rn_store_call_own(node->store, count, words, NULL, NULL);

    if (call == NULL || !rn_buffer_append(&node->out, call->bytes, call->size))
        node->stale = true;
    if (call != NULL)
        rn_store_call_end(call, RATION_OK, NULL, "");
    node_write(node);
}

void rn_node_say(rn_store_node *node, size_t count, const ration_text *words, rn_store_answered *answered)
{
    (void)node_put_own(node, count, words, answered);
    node_write(node);
}

static void node_put_script(rn_store_node *node, rn_store_call *call)
{
    const rn_script *const script = &rn_scripts[call->script];
    const ration_text words[] = {RN_TEXT("SCRIPT"), RN_TEXT("LOAD"), {script->text, script->size}};

    if (call->loads > 0 && !node->loading[call->script]) {
        node->loading[call->script] = true;
        (void)node_put_own(node, 3, words, rn_store_loaded);
    }
}

/* A WAIT holds up what is behind it. So each has half the patience of the one before it that is not answered yet, and
 * all of them together take half of a command's time at most. While replicas are known to be missing there is none. */
static void node_put_wait(rn_store_node *node)
{
    const rn_store_options *const options = &node->store->options;
    char count[16];
    char wait[24];
    const unsigned halvings = node->short_of || node->waits > WAIT_HALVINGS ? WAIT_HALVINGS : node->waits;
    const long long wait_ms = ((long long)options->command_timeout_us / 4000 >> halvings) + 1;
    const ration_text words[] = {
        RN_TEXT("WAIT"),
        {count, (size_t)snprintf(count, sizeof count, "%u", options->wait)},
        {wait, (size_t)snprintf(wait, sizeof wait, "%lld", wait_ms)},
    };

    node->waits += node_put_own(node, 3, words, rn_store_waited) ? 1 : 0;
}

void rn_node_flush(rn_store_node *node)
{
    static const ration_text asking[] = {RN_TEXT("ASKING")};
    bool waits = false;
    rn_store_call *call;

    if (node->down && !TAILQ_EMPTY(&node->queued)) {
        char said[RN_STORE_TEXT];

        memcpy(said, node->text, sizeof said);
        rn_store_calls_fail(&node->queued, said);
    }
    if (node->state == RN_NODE_UP && node->stale && TAILQ_EMPTY(&node->sent) && TAILQ_EMPTY(&node->held)) {
        char said[RN_STORE_TEXT];

        memcpy(said, node->text, sizeof said);
        rn_node_break(node, said);
    }
    if (!TAILQ_EMPTY(&node->queued))
        rn_node_want(node);
    while (node->state == RN_NODE_UP && !node->stale && (call = TAILQ_FIRST(&node->queued)) != NULL) {
        if (call->script >= 0)
            node_put_script(node, call);
        if (call->asking)
            node_put_own(node, 1, asking, NULL);
        call->waits = call->script >= 0 && node->store->options.wait > 0;
        waits = waits || call->waits;
        node_put(node, call);
    }
    if (waits)
        node_put_wait(node);
    node_write(node);
}

/* ---- reading ---- */

static void node_take(rn_store_node *node, redisReply *reply)
{
    rn_store_call *const call = TAILQ_FIRST(&node->sent);

    node->store->stats.replies++;
    node->heard = true;
    if (node->role == RN_NODE_CHANNELS && node->state == RN_NODE_UP) {
        rn_channels_hear(node, reply);
        freeReplyObject(reply);
    } else if (call == NULL) {
        /* Redis says why it hangs up. */
        rn_node_break(node, reply->type == REDIS_REPLY_ERROR ? reply->str : "an answer that nobody has asked for");
        freeReplyObject(reply);
    } else {
        rn_store_call_file(call, NULL, NULL);
        rn_store_answer(node, call, reply);
    }
}

void rn_node_feed(rn_store_node *node, const char *data, size_t size)
{
    redisReader *const reader = node->reader;
    void *reply = NULL;
    char text[192];

    node->answer_bytes += size;
    if (redisReaderFeed(reader, data, size) != REDIS_OK) {
        rn_node_break(node, "out of memory");
        return;
    }
    while (node->reader == reader) {
        if (redisReaderGetReply(reader, &reply) != REDIS_OK) {
            (void)snprintf(text, sizeof text, "an answer that is not Redis': %s",
                           node->too_many ? "too many parts" : reader->errstr);
            rn_node_break(node, text);
            return;
        }
        if (reply == NULL)
            break;
        node->answer_bytes = reader->len - reader->pos;
        node_take(node, reply);
    }
    if (node->reader == reader && node->answer_bytes > RN_STORE_ANSWER_MAX)
        rn_node_break(node, "an answer that is not Redis': more than 8 MiB");
}

void rn_node_read(rn_store_node *node)
{
    char *const scratch = node->store->scratch;

    while (node->reader != NULL) {
        const ssize_t got = rn_wire_receive(node->wire, scratch, RN_STORE_SCRATCH);

        if (got == RN_IO_AGAIN)
            return;
        if (got == RN_IO_END) {
            rn_node_break(node, "the connection was closed");
        } else if (got < 0) {
            rn_node_break(node, rn_wire_error(node->wire));
        } else {
            rn_node_feed(node, scratch, (size_t)got);
        }
    }
}
