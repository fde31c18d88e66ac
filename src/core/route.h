/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_ROUTE_H
#define RN_CORE_ROUTE_H

#include "core/book.h"
#include "core/state.h"

/*
 * What a request's names lead to: its account, endpoint and the counters of every limit that applies. Cached by the
 * names, so that the second request with the same ones costs one hash and one comparison.
 */

typedef struct rn_route_link {
    TAILQ_ENTRY(rn_route_link) next; /* in counter->routes */
    struct rn_route *route;
    rn_counter *counter;
    uint32_t lane; /* of the tenant or class; RN_LANE_UNKNOWN: the limit does not know it */
} rn_route_link;

typedef struct rn_route {
    rn_map_node node;
    TAILQ_ENTRY(rn_route) idle; /* in the cache's list, least recently used first, while `refs` is 0 */
    uint32_t refs;              /* leases and waiters */
    bool cached;
    bool bare;                  /* of leases from before a reload: it leads to no counters */
    struct rn_route *successor; /* during a reload: the bare one of the leases that came by this */
    rn_account *account;
    rn_provider *provider;
    ration_text tenant; /* in `names`; absent: none */
    ration_text class_name;
    int64_t weight;                   /* of the tenant */
    rn_circuit *circuit;              /* NULL: no breaker applies */
    TAILQ_ENTRY(rn_route) in_circuit; /* in circuit->routes */
    const ration_defaults *endpoint;  /* NULL: no template matched */
    bool has_lanes;                   /* some counter has more than one lane */
    bool has_shadows;                 /* some limit does not bind */
    rn_route_link *links;             /* in order of declaration */
    size_t count;
    size_t names_size;
    char *names; /* owns the map's key */
} rn_route;

TAILQ_HEAD(rn_route_list, rn_route);

typedef struct rn_routes {
    const ration_allocator *mem;
    rn_book *book;
    ration_time started_at; /* of the engine */
    rn_alarms *timers;
    size_t *timers_needed; /* how many timers may be armed at once, engine-wide */
    rn_map by_names;
    rn_map counters;
    rn_circuits circuits;
    rn_kept kept;
    bool unclean;
    ration_time lost_at;       /* see rn_counter */
    struct rn_route_list bare; /* in use, through their `idle` */
    struct rn_route_list idle;
    size_t idle_count;
    char *scratch;
} rn_routes;

int rn_routes_init(rn_routes *routes, const ration_allocator *mem, rn_book *book, rn_alarms *timers,
                   size_t *timers_needed);
void rn_routes_fini(rn_routes *routes);

/*
 * The route of a request, with one reference for the caller; NULL with `*reason` saying why there is none:
 * unknown_provider, unknown_account, too_many_keys (then `*limit` is the one). RATION_ERR_INVALID for names beyond
 * their bounds, RATION_ERR_NOMEM.
 */
int rn_routes_find(rn_routes *routes, ration_time now, const ration_request *request, rn_route **out,
                   ration_reason *reason, const rn_limit **limit);
/* The counter of a limit at a key; NULL: there is none. */
rn_counter *rn_routes_counter(const rn_routes *routes, const rn_limit *limit, ration_text key);
/* The same, and one of which something was kept is made. RATION_ERR_UNKNOWN: there is neither; RATION_ERR_NOMEM;
 * RATION_ERR_FULL: the limit is at `maxKeys`. */
int rn_routes_wake(rn_routes *routes, ration_time now, rn_limit *limit, ration_text key, rn_counter **out);
/* A counter as it is before its name, share and state; nobody knows of it yet. RATION_ERR_NOMEM. */
int rn_routes_prepare(const rn_routes *routes, rn_limit *limit, rn_counter *counter);
/*
 * For a reload. A counter that has been, however many there are. The names of a request that led to a route; there is
 * room for RN_REQUEST_VARS_MAX of `vars`. A route for leases from before: an account and names, a circuit (NULL: none),
 * no counters; without references. RATION_ERR_NOMEM.
 */
#define RN_REQUEST_VARS_MAX 2048 /* the names of a route have room for no more */
int rn_routes_make(rn_routes *routes, ration_time now, rn_limit *limit, ration_text key, rn_counter **out);
void rn_route_request(const rn_route *route, ration_request *out, ration_var *vars);
int rn_routes_bare(rn_routes *routes, rn_account *account, rn_circuit *circuit, const rn_route *like, rn_route **out);
/* A ceiling that follows a limit is told where that one stands, if there is one at its key. */
void rn_routes_follow(const rn_routes *routes, ration_time now, rn_counter *counter);
void rn_route_release(rn_routes *routes, rn_route *route);

/*
 * The steps of that, for whoever plans calls that nobody has made yet. Texts are borrowed from the request and the
 * book.
 */

/* Resolve all names but those of counters. False: too many variables or segments. */
bool rn_subject_init(rn_subject *subject, const rn_book *book, const ration_request *request, const rn_account *account,
                     const ration_defaults **endpoint);
/* Of a quota at the subject's key: the smallest among the accounts that can reach it, whoever asks first. */
ration_ratio rn_limit_share(const rn_limit *limit, const rn_book *book, const rn_account *account,
                            const rn_subject *subject);
/* What the request says, else its endpoint (NULL: none), else its provider, else one unit. */
int64_t rn_request_cost(const ration_request *request, const ration_defaults *endpoint, const ration_defaults *general);

#endif
