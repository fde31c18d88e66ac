/* SPDX-License-Identifier: MIT */
/*
 * What operators do in a fleet: one call, answered when the store has. It holds for all members.
 *
 * Nothing of it is repeated by itself, for a grant is once: where no answer comes it is not known whether it was done,
 * and whoever asked is told so. Who waits at another member and may go by it hears of it as of any grant.
 */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/engine.h"
#include "fleet/member_parts.h"

/* An event with texts of its own. */
typedef struct told {
    rn_member_event event;
    char text[];
} told;

static ration_text put(char **at, ration_text text)
{
    const ration_text copy = {text.data != NULL ? *at : NULL, text.size};

    if (text.data != NULL && text.size > 0)
        memcpy(*at, text.data, text.size);
    *at += text.size;
    return copy;
}

static bool counter_copy(rn_member *m, rn_member_call *call, const ration_counter_name *from)
{
    char *at = rn_mem_alloc(&m->mem, from->provider.size + from->limit.size + from->key.size + 1);

    call->block = at;
    if (at == NULL)
        return false;
    call->counter.provider = put(&at, from->provider);
    call->counter.limit = put(&at, from->limit);
    call->counter.key = put(&at, from->key);
    return true;
}

/* To a name that the rules alone lead to others may have asked: a counter as new leaves nothing in the store. */
int rn_member_counter(const rn_member_world *world, const ration_counter_name *name, rn_call_counter *out)
{
    const int err = rn_fleet_rules_counter(&world->rules, name, out);

    if (err == RATION_OK)
        out->known = out->known || rn_book_leads(&world->rules.book, out->counter.limit, name->key);
    return err;
}

int rn_member_operate(rn_member *m, ration_op op, const ration_counter_name *counter, int64_t units,
                      rn_member_listener *listener)
{
    rn_call_counter at;
    const int err = rn_member_counter(m->world, counter, &at);

    if (err != RATION_OK)
        return err;

    rn_member_call *const call = rn_member_call_plain(m, RN_SCRIPT_OPERATE, m->world);

    if (call == NULL || !counter_copy(m, call, counter)) {
        if (call != NULL)
            rn_member_call_free(call);
        return RATION_ERR_NOMEM;
    }
    call->op = op;
    call->units = units;
    call->listener = listener;
    listener->call = call;
    rn_member_blocks_close(m); /* so that what is done holds here at once */
    rn_member_call_send(m, call);
    return RATION_OK;
}

void rn_member_forget(rn_member_listener *listener)
{
    if (listener->call != NULL)
        listener->call->listener = NULL;
    listener->call = NULL;
    if (listener->member != NULL)
        TAILQ_REMOVE(&listener->member->listeners, listener, link);
    listener->member = NULL;
}

void rn_member_call_tell(rn_member_call *call, int err)
{
    rn_member_listener *const listener = call->listener;

    if (listener == NULL)
        return;
    rn_member_forget(listener);
    listener->told(listener, err);
}

/* By a reset: of no request, so its key is told by a copy. */
void rn_member_tell_reset(rn_member *m, const rn_member_call *call, const rn_fleet_event *what)
{
    rn_call_counter at;
    told *one = NULL;
    char *texts;

    if (rn_member_counter(call->world, &call->counter, &at) == RATION_OK)
        one = rn_mem_zalloc(&m->mem, 1, sizeof *one + call->counter.key.size + what->cause.size + 1);
    if (one == NULL)
        return;
    texts = one->text;
    one->event.world = call->world;
    one->event.event = (ration_event){
        .type = RATION_EVENT_LIMIT,
        .at = rn_member_local(m, what->at),
        .value = what->value,
        .before = what->before,
        .decision = {.limit = at.counter.limit->rule->name,
                     .key = put(&texts, call->counter.key),
                     .retry_at = {RATION_NEVER_US}},
    };
    one->event.event.cause = put(&texts, what->cause).data; /* ends with the block's last byte */
    rn_member_tell(m, &one->event);
}
