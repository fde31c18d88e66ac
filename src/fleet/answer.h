/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_ANSWER_H
#define RN_FLEET_ANSWER_H

#include <hiredis/hiredis.h>

#include "core/route.h"
#include "fleet/call.h"

/*
 * What a script has answered: an array of what came of the call, the instant, the leases that were taken back, what
 * belongs to the first, and events.
 */

/* As run.lua numbers them. */
typedef enum rn_answer {
    RN_ANSWER_REFUSED = 0,
    RN_ANSWER_GRANTED,
    RN_ANSWER_WINDOW, /* nothing was done: it lacks a calendar window */
    RN_ANSWER_UNKNOWN,
    RN_ANSWER_DONE,
    RN_ANSWER_QUEUED,
} rn_answer;

/* A lease that the call has taken back. */
typedef struct rn_fleet_lost {
    ration_text id;
    ration_time at;
} rn_fleet_lost;

/* What the call has brought about. Its texts are the reply's. */
typedef struct rn_fleet_event {
    ration_text what; /* "limit": an adaptive limit moved; "breaker": one changed; "health": a check is due;
                         "granted", "refused": somebody who waited was */
    ration_time at;
    ration_text key;   /* limit: of the counter, behind what all keys of the provider begin with; breaker, health: of
                          the circuit; else the lease */
    int64_t before;    /* limit: micro-units; breaker: its state; health: the number of the check */
    int64_t value;     /* limit: micro-units; breaker: when to retry, RATION_NEVER_US: not known */
    ration_text cause; /* limit, breaker; health: the account that is to be checked */
    const redisReply *why; /* refused */
} rn_fleet_event;

/* Is it one at all? Only then may the following be asked. */
bool rn_answer_is(const redisReply *reply);
/* What follows the result and the leases lost: a list, maybe an empty one. */
const redisReply *rn_answer_rest(const redisReply *reply);
/* Of a beat: a list of the salt, or of nothing. */
const redisReply *rn_answer_salt(const redisReply *reply);
int64_t rn_answer_result(const redisReply *reply); /* an rn_answer, of scripts of this version */
ration_time rn_answer_at(const redisReply *reply);
/* A whole number of the rest, or `none` where there is none. */
int64_t rn_answer_number(const redisReply *reply, size_t index, int64_t none);
/* What operate.lua says of what it was to do: as ration/operate.h. */
int rn_answer_operated(const redisReply *reply);
/* A text of the rest, the reply's; empty where there is none. */
ration_text rn_answer_text(const redisReply *reply, size_t index);
/* The leases lost, in order. False: there are no more. Its text is the reply's. */
bool rn_answer_lost(const redisReply *reply, size_t index, rn_fleet_lost *out);
/* The events, in order. False: there are no more. */
bool rn_answer_event(const redisReply *reply, size_t index, rn_fleet_event *out);
/* What a collect says of one of its ids. False: it has none of that index. */
typedef struct rn_fleet_collected {
    int64_t result;        /* GRANTED, QUEUED, REFUSED; DONE: held once and released; UNKNOWN */
    ration_time at;        /* GRANTED, REFUSED: when */
    const redisReply *why; /* REFUSED */
} rn_fleet_collected;

bool rn_answer_collected(const redisReply *reply, size_t index, rn_fleet_collected *out);
/* The window that is asked for is sent with the call from now on. False: it has as many as there may be. */
bool rn_answer_window(const redisReply *reply, rn_call_window *windows, size_t *count);
/* The decision on what was asked; texts are the route's. */
void rn_answer_decide(const redisReply *reply, const rn_route *route, const rn_call_ask *ask, ration_decision *out);
/* The same of a refusal of somebody who waited; of `ask` only cost and hold are needed. */
void rn_answer_refuse(const redisReply *why, ration_time at, const rn_route *route, const rn_call_ask *ask,
                      ration_decision *out);

#endif
