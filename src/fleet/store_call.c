/* SPDX-License-Identifier: MIT */
/*
 * A call's memory: the bytes as they are sent, who asked, in which list it is.
 *
 * The answer is told when the call is gone already: whoever hears it may do anything.
 *
 * Invariant: a call is in `all` of its store from its making to its end, by its deadline.
 */
#include "fleet/store_parts.h"

#include <stdlib.h>

#include "base/text.h"

void rn_store_say(char *out, size_t size, ration_text text)
{
    rn_builder b;

    rn_builder_init(&b, out, size);
    if (text.size == 0)
        rn_builder_str(&b, "an error without words");
    for (size_t i = 0; i < text.size; i++) {
        const bool plain = text.data[i] >= ' ' && text.data[i] <= '~';

        rn_builder_text(&b, plain ? rn_text_slice(text, i, i + 1) : (ration_text)RN_TEXT("?"));
    }
}

void rn_store_call_file(rn_store_call *call, rn_store_calls *list, rn_store_node *node)
{
    if (call->list != NULL)
        TAILQ_REMOVE(call->list, call, link);
    call->list = list;
    call->node = node;
    if (list != NULL)
        TAILQ_INSERT_TAIL(list, call, link);
}

static void call_free(rn_store_call *call)
{
    if (call->held != NULL)
        freeReplyObject(call->held);
    if (call->bytes != NULL)
        redisFreeCommand(call->bytes);
    free(call);
}

void rn_store_call_end(rn_store_call *call, int err, redisReply *reply, const char *text)
{
    rn_store *const store = call->store;
    rn_store_answered *const answered = call->answered;
    void *const ctx = call->ctx;
    redisReply *const outer = store->reply; /* one answer may end other calls */

    rn_store_call_file(call, NULL, NULL);
    TAILQ_REMOVE(&store->all, call, all_link);
    if (!call->own) {
        store->stats.outstanding--;
        store->stats.calls++;
        store->stats.failures += err != RATION_OK ? 1 : 0;
    }
    call_free(call);
    store->reply = reply;
    if (answered != NULL)
        answered(ctx, err, reply, text);
    if (store->reply != NULL)
        freeReplyObject(store->reply);
    store->reply = outer;
}

redisReply *rn_store_take_reply(rn_store *store)
{
    redisReply *const reply = store->reply;

    store->reply = NULL;
    return reply;
}

rn_store_call *rn_store_call_new(rn_store *store, size_t count, const ration_text *words, rn_store_answered *answered,
                                 void *ctx)
{
    rn_store_call *const call = calloc(1, sizeof *call);
    const char *data[RN_STORE_WORDS_MAX];
    size_t sizes[RN_STORE_WORDS_MAX];

    if (call == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        data[i] = words[i].data != NULL ? words[i].data : "";
        sizes[i] = words[i].size;
    }

    const int size = redisFormatCommandArgv(&call->bytes, (int)count, data, sizes);

    if (size < 0) {
        call->bytes = NULL;
        call_free(call);
        return NULL;
    }
    call->store = store;
    call->size = (size_t)size;
    call->script = call->slot = -1;
    call->answered = answered;
    call->ctx = ctx;
    call->serial = ++store->serial;
    call->deadline_ms = rn_store_now_ms() + (uint64_t)store->options.command_timeout_us / 1000;
    TAILQ_INSERT_TAIL(&store->all, call, all_link);
    rn_store_wake(store, call->deadline_ms);
    return call;
}

rn_store_call *rn_store_call_own(rn_store *store, size_t count, const ration_text *words, rn_store_answered *answered,
                                 void *ctx)
{
    rn_store_call *const call = rn_store_call_new(store, count, words, answered, ctx);

    if (call != NULL)
        call->own = true;
    return call;
}
