/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_LEASE_H
#define RN_CORE_LEASE_H

#include "core/limit.h"
#include "core/queue.h"
#include "core/route.h"

/* Requests from their queueing to the end of their lease, named by index and generation. */

typedef enum rn_lease_state {
    RN_LEASE_FREE = 0,
    RN_LEASE_WAITING, /* in its provider's queue; holds nothing */
    RN_LEASE_HELD,    /* granted; holds its charge at every counter of its route */
} rn_lease_state;

/* A request's spot at one counter: a place in the queue while it waits, a hold while it is granted. */
typedef struct rn_place {
    rn_heap_node node;           /* in lane->places while it keeps its place there (its short set) */
    rn_heap_node by_charge;      /* the same, in lane->charges */
    TAILQ_ENTRY(rn_place) watch; /* in counter->watchers or counter->parked while it waits */
    struct rn_lease *lease;
    rn_counter *counter;
    rn_lane *lane;       /* NULL: nobody has ever waited there */
    uint32_t lane_index; /* RN_LANE_UNKNOWN: the limit does not know its tenant or class */
    int64_t charge;
    rn_hold hold;
    struct rn_place *heir; /* during a reload: its like under the new rules, or, of a waiter, where it kept a place */
} rn_place;

typedef struct rn_lease {
    uint32_t index;
    uint32_t generation;
    rn_lease_state state;
    uint64_t serial;
    void *user;
    rn_route *route;
    bool retry;
    bool parked;
    bool doomed;      /* `look` is in the engine's heap of those to refuse */
    bool status_seen; /* an observed status has reached the engine */
    bool health;      /* a breaker's health check */
    bool demands;     /* it is decided as if adaptive limits had grown by it (a check, which changes nothing) */
    rn_breaker_pass pass;
    int64_t cost;
    int64_t hold_us;
    int64_t ttl_us;
    ration_time since;    /* submitted, then granted */
    ration_time deadline; /* while it waits */
    ration_time ends_at;  /* declared */
    rn_alarm timer;       /* the deadline, then the ttl */
    rn_rank rank;
    rn_line *line;
    rn_heap_node look; /* in the engine's heap of waiters to look at */
    TAILQ_ENTRY(rn_lease) in_line;
    TAILQ_ENTRY(rn_lease) in_circuit; /* while it waits */
    TAILQ_ENTRY(rn_lease) in_parked;
    SLIST_ENTRY(rn_lease) in_free; /* or among those whose deadline is this instant */
    rn_place *places;              /* one per counter of the route; memory kept for the next life */
    size_t place_count;
    size_t place_capacity;
} rn_lease;

SLIST_HEAD(rn_lease_free_list, rn_lease);

/* Waiting order: of the places of a counter, and of leases by their `look` (providers in order of declaration). */
rn_heap_less rn_place_less;
rn_heap_less rn_look_less;
/* The place with the largest charge first. */
rn_heap_less rn_charge_more;
rn_place *rn_place_by_charge(rn_heap_node *node); /* NULL for NULL */

typedef struct rn_leases {
    const ration_allocator *mem;
    rn_lease **chunks;
    size_t chunk_count;
    uint32_t size; /* made so far, free ones too */
    uint32_t max;
    uint32_t used;
    uint32_t before; /* the generation of a place that has not lived yet */
    struct rn_lease_free_list free;
} rn_leases;

/* `first`: the generation of every place's first life; 0 is 1. */
void rn_leases_init(rn_leases *leases, const ration_allocator *mem, uint32_t max, uint32_t first);
void rn_leases_fini(rn_leases *leases);
/* Room for one more lease with `places` places: RATION_ERR_NOMEM, or RATION_ERR_FULL at the maximum. Nothing is taken
 * yet. */
int rn_leases_reserve(rn_leases *leases, size_t places);
/* The reserved lease, in a new life, state FREE until the caller enters another. */
rn_lease *rn_leases_take(rn_leases *leases);
void rn_leases_put(rn_leases *leases, rn_lease *lease);
/* Put back what was just taken and never named to anybody: the life does not count. */
void rn_leases_untake(rn_leases *leases, rn_lease *lease);
rn_lease *rn_leases_find(const rn_leases *leases, ration_lease handle); /* NULL: not alive */
rn_lease *rn_leases_at(const rn_leases *leases, uint32_t index);        /* index < size */
ration_lease rn_lease_handle(const rn_lease *lease);

#endif
