/* SPDX-License-Identifier: MIT */
/*
 * From a script's answer to a decision.
 *
 * Limits come back by their place in the call, numbers as they are; whatever is neither a number nor there counts as
 * not known. Nothing of an answer is trusted further than its shape.
 */
#include "fleet/answer.h"

#include <string.h>

#include "core/engine.h"
#include "fleet/answer_share.h"

enum { RESULT, AT, LOST, REST, EVENTS, PARTS };

/* Two numbers and three lists, or the numbers alone. */
bool rn_answer_is(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || (reply->elements != PARTS && reply->elements != LOST))
        return false;
    for (size_t i = 0; i < reply->elements; i++) {
        if (reply->element[i]->type != (i < LOST ? REDIS_REPLY_INTEGER : REDIS_REPLY_ARRAY))
            return false;
    }
    return true;
}

static const redisReply *list_of(const redisReply *reply, size_t part)
{
    static const redisReply nothing = {.type = REDIS_REPLY_ARRAY};

    return part < reply->elements ? reply->element[part] : &nothing;
}

const redisReply *rn_answer_rest(const redisReply *reply)
{
    return list_of(reply, REST);
}

const redisReply *rn_answer_salt(const redisReply *reply)
{
    return list_of(reply, LOST); /* a beat loses no leases */
}

int64_t rn_answer_result(const redisReply *reply)
{
    return reply->element[RESULT]->integer;
}

ration_time rn_answer_at(const redisReply *reply)
{
    return ration_time_of(reply->element[AT]->integer);
}

static const redisReply *item_of(const redisReply *items, size_t index)
{
    return index < items->elements ? items->element[index] : NULL;
}

static int64_t number_of(const redisReply *items, size_t index, int64_t none)
{
    const redisReply *const number = item_of(items, index);

    return number != NULL && number->type == REDIS_REPLY_INTEGER ? number->integer : none;
}

int64_t rn_answer_number(const redisReply *reply, size_t index, int64_t none)
{
    return number_of(rn_answer_rest(reply), index, none);
}

int rn_answer_operated(const redisReply *reply)
{
    static const int errors[] = {RATION_OK, RATION_ERR_RANGE, RATION_ERR_INVALID};
    const int64_t said = rn_answer_number(reply, 0, -1);

    if (rn_answer_result(reply) == RN_ANSWER_UNKNOWN)
        return RATION_ERR_UNKNOWN;
    return said >= 0 && (size_t)said < sizeof errors / sizeof errors[0] ? errors[said] : RATION_ERR_IO;
}

bool rn_answer_lost(const redisReply *reply, size_t index, rn_fleet_lost *out)
{
    const redisReply *const lost = list_of(reply, LOST);

    if (2 * index + 1 >= lost->elements || lost->element[2 * index]->type != REDIS_REPLY_STRING)
        return false;
    out->id = (ration_text){lost->element[2 * index]->str, (size_t)lost->element[2 * index]->len};
    out->at = ration_time_of(lost->element[2 * index + 1]->integer);
    return true;
}

static ration_text text_of(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING ? (ration_text){reply->str, (size_t)reply->len} : (ration_text){"", 0};
}

ration_text rn_answer_text(const redisReply *reply, size_t index)
{
    const redisReply *const text = item_of(rn_answer_rest(reply), index);

    return text != NULL ? text_of(text) : (ration_text){"", 0};
}

bool rn_answer_event(const redisReply *reply, size_t index, rn_fleet_event *out)
{
    const redisReply *const event = item_of(list_of(reply, EVENTS), index);

    if (event == NULL || event->type != REDIS_REPLY_ARRAY || event->elements < 3)
        return false;
    *out = (rn_fleet_event){
        .what = text_of(event->element[0]),
        .at = {number_of(event, 1, 0)},
        .key = text_of(event->element[2]),
        .before = number_of(event, 3, 0),
        .value = number_of(event, 4, RATION_NEVER_US),
    };
    if (event->elements == 6)
        out->cause = text_of(event->element[5]);
    if (event->elements == 4 && event->element[3]->type == REDIS_REPLY_ARRAY)
        out->why = event->element[3];
    return true;
}

bool rn_answer_collected(const redisReply *reply, size_t index, rn_fleet_collected *out)
{
    const redisReply *const one = item_of(rn_answer_rest(reply), index);

    if (one == NULL || one->type != REDIS_REPLY_ARRAY)
        return false;
    *out = (rn_fleet_collected){
        .result = number_of(one, 0, RN_ANSWER_UNKNOWN),
        .at = {number_of(one, 1, RATION_NEVER_US)},
        .why = item_of(one, 2),
    };
    if (out->why != NULL && out->why->type != REDIS_REPLY_ARRAY)
        out->why = NULL;
    return true;
}

bool rn_answer_window(const redisReply *reply, rn_call_window *windows, size_t *count)
{
    const redisReply *const limit = item_of(rn_answer_rest(reply), 0);
    rn_call_window *const window = &windows[*count];

    if (*count == RN_CALL_WINDOWS_MAX || limit == NULL || limit->type != REDIS_REPLY_STRING ||
        limit->len >= RN_CALL_LIMIT_MAX)
        return false;
    window->at.us = rn_answer_number(reply, 1, RATION_NEVER_US);
    memcpy(window->limit, limit->str, (size_t)limit->len + 1);
    (*count)++;
    return true;
}

/* One that is none, or of a later version, is the store's fault: a refusal has a reason, always. */
static ration_reason reason_of(const redisReply *name)
{
    for (unsigned i = RATION_REASON_NONE + 1;
         name != NULL && name->type == REDIS_REPLY_STRING && i < RATION_REASON_COUNT; i++) {
        if (strcmp(ration_reason_name((ration_reason)i), name->str) == 0)
            return (ration_reason)i;
    }
    return RATION_REASON_STORE_UNAVAILABLE;
}

/* The limit by its place in the call, if it is one. */
static const rn_counter *name_limit(const rn_route *route, int64_t index, ration_decision *out)
{
    if (index < 1 || (size_t)index > route->count)
        return NULL;

    const rn_counter *const counter = route->links[index - 1].counter;

    out->limit = counter->limit->rule->name;
    out->key = counter->key;
    return counter;
}

static void refuse(const redisReply *why, const rn_route *route, const rn_call_ask *ask, ration_decision *out)
{
    out->reason = reason_of(item_of(why, 0));
    out->facts = (ration_facts)RN_NO_FACTS;
    if (ration_reason_retryable(out->reason))
        out->retry_at.us = number_of(why, 2, RATION_NEVER_US);
    out->estimate = number_of(why, 3, 0) != 0 && rn_time_known(out->retry_at);

    const rn_counter *const counter = name_limit(route, number_of(why, 1, 0), out);

    if (number_of(why, 1, 0) < 0 && route->circuit != NULL)
        out->key = route->circuit->key;

    if (counter != NULL && number_of(why, 4, 0) != 0) {
        out->facts = (ration_facts){
            .charge = counter->limit->rule->counts == RATION_COUNTS_COST ? ask->cost : RATION_UNIT,
            .available = number_of(why, 5, RATION_UNSET),
            .capacity = number_of(why, 6, RATION_UNSET),
            .ahead = ask->enforcer ? RATION_UNSET : number_of(why, 9, 0),
        };
        rn_answer_facts_of_share(item_of(why, 7), &route->links[number_of(why, 1, 0) - 1], ask, &out->facts);
    }
}

void rn_answer_refuse(const redisReply *why, ration_time at, const rn_route *route, const rn_call_ask *ask,
                      ration_decision *out)
{
    *out = (ration_decision){.result = RATION_REFUSED,
                             .at = at,
                             .reason = RATION_REASON_STORE_UNAVAILABLE,
                             .retry_at = {RATION_NEVER_US},
                             .facts = RN_NO_FACTS};
    if (why != NULL)
        refuse(why, route, ask, out);
}

void rn_answer_decide(const redisReply *reply, const rn_route *route, const rn_call_ask *ask, ration_decision *out)
{
    const int64_t result = rn_answer_result(reply);

    *out = (ration_decision){
        .result = result == RN_ANSWER_REFUSED  ? RATION_REFUSED
                  : result == RN_ANSWER_QUEUED ? RATION_QUEUED
                                               : RATION_GRANTED,
        .at = rn_answer_at(reply),
        .priority = result == RN_ANSWER_REFUSED ? RATION_PRIORITY_UNSET : ask->priority,
        .retry_at = {RATION_NEVER_US},
    };
    if (result == RN_ANSWER_REFUSED) {
        refuse(rn_answer_rest(reply), route, ask, out);
    } else if (result == RN_ANSWER_QUEUED) {
        (void)name_limit(route, rn_answer_number(reply, 1, 0), out);
    }
}
