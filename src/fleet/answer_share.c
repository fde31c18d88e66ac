/* SPDX-License-Identifier: MIT */
/*
 * What scripts say of share limits: the numbers behind a refusal, who is in the way, and a whole counter with its
 * tenants. A row that is none is not believed.
 */
#include "fleet/answer_share.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "fleet/answer.h"

/* Numbers of two limbs. */
#define LIMB INT64_C(1000000000)

static const redisReply *member(const redisReply *of, size_t index)
{
    return of != NULL && of->type == REDIS_REPLY_ARRAY && index < of->elements ? of->element[index] : NULL;
}

static size_t count_of(const redisReply *of)
{
    return of != NULL && of->type == REDIS_REPLY_ARRAY ? of->elements : 0;
}

static int64_t number(const redisReply *of, size_t index)
{
    const redisReply *const found = member(of, index);

    return found != NULL && found->type == REDIS_REPLY_INTEGER ? found->integer : 0;
}

static ration_text text(const redisReply *of, size_t index)
{
    const redisReply *const found = member(of, index);

    return found != NULL && found->type == REDIS_REPLY_STRING ? (ration_text){found->str, (size_t)found->len}
                                                              : (ration_text){"", 0};
}

static int64_t limbs(const redisReply *of, size_t index)
{
    return rn_add(rn_mul(number(of, index), LIMB), number(of, index + 1));
}

void rn_answer_facts_of_share(const redisReply *said, const rn_route_link *link, const rn_call_ask *ask,
                              ration_facts *out)
{
    if (count_of(said) != 5 || link->lane == RN_LANE_UNKNOWN)
        return;

    const ration_share_rule *const rule = link->counter->limit->spec.share.ceiling.rule;

    out->tenant = ration_text_of(rule->tenants[link->lane].name);
    out->guarantee = number(said, 0);
    out->own = number(said, 1);
    out->lent = number(said, 2);
    out->pool = number(said, 3);
    out->horizon_us = number(said, 4);
    out->hold_us = ask->hold_us;
    out->ahead = 0; /* whoever is ahead is of the same tenant */
}

size_t rn_answer_blocking(const redisReply *reply, size_t index, ration_text *out)
{
    const redisReply *const blocking = member(rn_answer_rest(reply), 8);

    if (index < count_of(blocking))
        *out = text(blocking, index);
    return count_of(blocking);
}

bool rn_answer_ceiling(const redisReply *reply, rn_answer_share *out)
{
    const redisReply *const rest = rn_answer_rest(reply);

    if (rn_answer_result(reply) != RN_ANSWER_DONE || count_of(rest) != 5)
        return false;
    *out = (rn_answer_share){
        .size = number(rest, 0),
        .held = number(rest, 1),
        .draining = number(rest, 2),
        .overrun_count = count_of(member(rest, 3)),
        .tenant_count = count_of(member(rest, 4)),
    };
    return true;
}

ration_text rn_answer_overrun(const redisReply *reply, size_t index)
{
    return text(member(rn_answer_rest(reply), 3), index);
}

static ration_reason reason_of(ration_text name)
{
    for (unsigned i = 0; i < RATION_REASON_COUNT; i++) {
        if (rn_text_is(name, ration_reason_name((ration_reason)i)))
            return (ration_reason)i;
    }
    return RATION_REASON_NONE;
}

/* In the order of tenants.lua. */
bool rn_answer_tenant(const redisReply *reply, size_t index, ration_tenant_report *out, int64_t *weight)
{
    const redisReply *const row = member(member(rn_answer_rest(reply), 4), index);
    const redisReply *const refused = member(row, 17);

    if (count_of(row) != 18)
        return false;
    *weight = number(row, 1);
    *out = (ration_tenant_report){
        .name = text(row, 0),
        .guarantee = number(row, 2),
        .held = number(row, 3),
        .own = number(row, 4),
        .lent = number(row, 5),
        .borrowed = number(row, 3) - number(row, 4),
        .want = number(row, 6),
        .idle = number(row, 7) != 0,
        .waiting = (uint64_t)number(row, 8),
        .deficit_unit_ms = limbs(row, 9),
        .deficit_rest = number(row, 11),
        .reclaims = (uint64_t)number(row, 12),
        .worst_reclaim_us = number(row, 13),
        .granted = (uint64_t)number(row, 14),
        .granted_cost = limbs(row, 15),
    };
    for (size_t i = 0; i + 1 < count_of(refused); i += 2)
        out->refused[reason_of(text(refused, i))] = (uint64_t)number(refused, i + 1);
    return true;
}
