/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_FLEET_H
#define RN_FLEET_FLEET_H

#include "fleet/answer.h"
#include "fleet/redis.h"
#include "fleet/rules.h"

/*
 * Limits shared through Redis: the calls of an engine, decided by scripts. Each is one round trip. What a request's
 * names lead to, and what a response says, is found out here; all state is there.
 *
 * So far: rate, concurrency and quota limits, penalties, leases with and without a time to live, requests that
 * wait. One thread at a time.
 */

typedef struct rn_fleet_options {
    const ration_rules *rules;
    const ration_allocator *allocator; /* NULL: the C library's */
    const char *name;                  /* of the fleet */
    rn_redis_options redis;
    bool tells_time;       /* a test: `now` of the calls is the time, not the server's */
    ration_text member;    /* who calls, if it collects what comes of those who wait; borrowed */
    int64_t waiter_ttl_us; /* with it: how long it may be silent */
} rn_fleet_options;

typedef struct rn_fleet {
    rn_fleet_rules rules;
    rn_redis redis;
    int64_t ahead_us; /* of the callers' clock is the server's, by the last answer */
    rn_call call;
    redisReply *reply;             /* to the last call; NULL: there was none */
    int tries;                     /* that it took */
    char text[RN_STORE_TEXT + 16]; /* what went wrong */
} rn_fleet;

/*
 * RATION_ERR_CONFIG: the rules have what the scripts cannot do yet; RATION_ERR_IO, RATION_ERR_INVALID: the store;
 * RATION_ERR_NOMEM. `fleet->text` says what. It may be finished in any case.
 */
int rn_fleet_init(rn_fleet *fleet, const rn_fleet_options *options, ration_time start);
void rn_fleet_fini(rn_fleet *fleet);
/* Removes all that a fleet of this name has in the store: for tests, which have one each. */
int rn_fleet_erase(rn_fleet *fleet);

/*
 * As the engine's calls. A lease is named by the caller, and by the route that its admission came by, which is held
 * for it until `rn_fleet_forget`. `now` is by any clock of the caller's. Errors as the engine's, and
 * RATION_ERR_IO with `fleet->text`: then it is not known whether the call has been carried out; it may be repeated.
 */
int rn_fleet_submit(rn_fleet *fleet, ration_time now, const ration_request *request, ration_text id,
                    ration_decision *out, rn_route **route);
/* A block of so many units, as a member takes it. `*route` NULL: there is none. */
int rn_fleet_prefetch(rn_fleet *fleet, ration_time now, const ration_request *request, ration_text id, int64_t units,
                      rn_route **route);
int rn_fleet_check(rn_fleet *fleet, ration_time now, const ration_request *request, ration_check_mode mode,
                   ration_decision *out);
int rn_fleet_observe(rn_fleet *fleet, ration_time now, rn_route *route, ration_text id,
                     const ration_response *response);
int rn_fleet_release(rn_fleet *fleet, ration_time now, rn_route *route, ration_text id,
                     const ration_completion *completion);
int rn_fleet_renew(rn_fleet *fleet, ration_time now, rn_route *route, ration_text id);
int rn_fleet_cancel(rn_fleet *fleet, ration_time now, rn_route *route, ration_text id);
/* What has come of those who wait there. */
int rn_fleet_collect(rn_fleet *fleet, ration_time now, ration_text provider, const ration_text *ids, size_t count);
bool rn_fleet_collected_at(const rn_fleet *fleet, size_t index, rn_fleet_collected *out);
/* A health check that nobody need have asked for. */
int rn_fleet_health(rn_fleet *fleet, ration_time now, ration_text account, bool ok);
int rn_fleet_advance(rn_fleet *fleet, ration_time now, ration_text provider);
/* Of a share limit's counter: rn_answer_ceiling and what follows it read `fleet->reply`. RATION_ERR_UNKNOWN: there is
 * nothing to tell. */
int rn_fleet_tenants(rn_fleet *fleet, ration_time now, const ration_counter_name *counter, ration_text account);
/* What operators do: RATION_OP_PAUSE, RESUME, RESET, GRANT; ration/operate.h. */
int rn_fleet_operate(rn_fleet *fleet, ration_time now, ration_op op, const ration_counter_name *counter, int64_t units);
/* What counters have to tell: figures.h reads `fleet->reply`. */
int rn_fleet_inspect(rn_fleet *fleet, ration_time now, const rn_call_inspection *what);
void rn_fleet_forget(rn_fleet *fleet, rn_route *route);

/* The leases of that provider that the last call has taken back, in order. False: there are no more. */
bool rn_fleet_next_lost(const rn_fleet *fleet, size_t index, rn_fleet_lost *out);
/* What the last call has brought about, in order. False: there is no more. */
bool rn_fleet_next_event(const rn_fleet *fleet, size_t index, rn_fleet_event *out);

#endif
