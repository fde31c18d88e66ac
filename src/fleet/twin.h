/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_TWIN_H
#define RN_FLEET_TWIN_H

#include "core/decider.h"
#include "fleet/fleet.h"
#include "fleet/twin_events.h"

/*
 * The engine and a fleet asked the same: a decider that answers as the engine does, and stops at the first call to
 * which the scripts say something else. For `ration replay --store`.
 */

typedef struct rn_twin_options {
    const ration_allocator *allocator; /* NULL: the C library's */
    rn_redis_options redis;
} rn_twin_options;

typedef struct rn_twin_lease {
    ration_lease handle;
    rn_route *route;
    rn_call_ask ask; /* cost and hold */
    int refusals;    /* sides that have told that it was refused while it waited */
    bool lost;       /* so the engine says; the store has not yet */
    ration_time lost_at;
} rn_twin_lease;

typedef struct rn_twin {
    rn_decider base;
    rn_decider *engine;
    ration_allocator mem;
    rn_fleet fleet;
    ration_time now;
    rn_twin_lease *leases; /* held, waiting, or lost in the engine alone */
    size_t lease_count, lease_capacity;
    size_t lost_count;
    rn_twin_events events;
    size_t compared; /* decisions and answers */
    bool differs;
    char text[1100]; /* what differs, or what went wrong; "": nothing */
} rn_twin;

/* Each twin has a fleet of its own in the store, with a random name. Errors as of `rn_fleet_init`, with `twin->text`.
 * It may be finished in any case, and that removes its fleet. */
int rn_twin_init(rn_twin *twin, const rn_twin_options *options, rn_decider *engine, const ration_rules *rules,
                 ration_time start);
void rn_twin_fini(rn_twin *twin);

/* At the end of a trace: what the engine has lost the store must give up, too. */
int rn_twin_finish(rn_twin *twin);

#endif
