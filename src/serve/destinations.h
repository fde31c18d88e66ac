/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_DESTINATIONS_H
#define RN_SERVE_DESTINATIONS_H

#include <sys/queue.h>

#include "base/map.h"
#include "config/config.h"
#include "net/connection.h"
#include "serve/cost.h"
#include "serve/gateway.h"
#include "serve/holds.h"

/*
 * Where calls go, by one config: its accounts, and what their providers need (connections, learned holds, costs).
 *
 * Held by the gateway while its config is the present one, and by each call and health check that goes by it, to its
 * end: so whatever is in flight ends by what it began with, and a config goes with the last of them.
 */

typedef enum rn_check_state {
    RN_CHECK_IDLE = 0,
    RN_CHECK_WAITING, /* a waiter of the decider */
    RN_CHECK_SENDING, /* it holds a lease */
    RN_CHECK_LEAVING, /* given up while its grant was on the way */
} rn_check_state;

/* The health check of an account's breaker: a request of the gateway's own, one at a time. */
typedef struct rn_check {
    rn_party party;
    rn_gateway *gateway;
    const struct rn_destination *to;
    rn_check_state state;
    ration_lease lease;
    rn_upstream *up;
    rn_timer timer; /* SENDING: the deadline */
    ration_time deadline;
    int status; /* SENDING: of the head, once it is there; 0: not yet */
} rn_check;

typedef struct rn_destinations rn_destinations;

/* An account as the gateway needs it: where to, through which pool, and how its provider says "too many". */
typedef struct rn_destination {
    rn_map_node node;
    rn_destinations *all; /* among which it is */
    const rn_account *account;
    const ration_error_rule *errors;
    const ration_breaker_rule *breaker;
    const rn_holds *holds;
    const rn_costs *costs;
    rn_upstream_pool *pool;
    rn_origin *origin;
    rn_check check;
} rn_destination;

/* The connections of one provider, also across configs, as long as they are made and timed alike. */
typedef struct rn_shared_pool {
    TAILQ_ENTRY(rn_shared_pool) link; /* of the gateway: all */
    rn_upstream_pool *pool;
    size_t holders;
} rn_shared_pool;

TAILQ_HEAD(rn_shared_pools, rn_shared_pool);

struct rn_destinations {
    TAILQ_ENTRY(rn_destinations) link; /* of the gateway: all */
    rn_gateway *gateway;
    const ration_config *config;
    ration_config *owned; /* the same, if it is freed with them; NULL: it is not */
    size_t holders;
    rn_deferred end; /* nobody holds it: freed at the end of the turn, for a pool cannot go in its own callback */
    rn_shared_pool **pools; /* one per provider: time-outs are a provider's */
    size_t pool_count;
    rn_holds *holds; /* one per provider */
    size_t hold_count;
    rn_costs *costs; /* one per provider */
    size_t cost_count;
    rn_destination *items; /* one per account */
    size_t count;
    rn_map accounts;
};

TAILQ_HEAD(rn_destinations_list, rn_destinations);

/*
 * Those of a config, held once, by the caller. `config` is borrowed for their life. Nothing of the gateway changes but
 * the list they are in.
 *
 * Errors  RATION_ERR_NOMEM; RATION_ERR_CONFIG where a base URL cannot be used; `*error` is filled, or untouched.
 */
int rn_destinations_new(rn_gateway *gw, const ration_config *config, rn_destinations **out, rn_net_error *error);
void rn_destinations_hold(rn_destinations *all);
void rn_destinations_release(rn_destinations *all);
/* At once, whoever holds them: for the end of the gateway. */
void rn_destinations_free(rn_destinations *all);

/* NULL: no such account. */
rn_destination *rn_destinations_find(const rn_destinations *all, ration_text name);
/* What `from` has learned of holds goes on here, by the names of providers and templates. */
void rn_destinations_adopt(rn_destinations *all, const rn_destinations *from);
/* Give up all health checks; nobody waits for what they come to. */
void rn_destinations_stop_checks(rn_destinations *all);

#endif
