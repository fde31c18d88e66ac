/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_RULES_H
#define RN_FLEET_RULES_H

#include "core/book.h"
#include "core/route.h"
#include "fleet/call.h"

/*
 * The rules of a fleet, compiled as the engine compiles them, and the way from a request's names to its counters. These
 * are names here: their states are in the store.
 */
typedef struct rn_fleet_rules {
    ration_allocator mem;
    char *name; /* of the fleet, as keys have it */
    rn_book book;
    rn_routes routes;
    rn_alarms timers;
    size_t timers_needed;
    bool routed;
    char text[256]; /* what is wrong with them */
} rn_fleet_rules;

/*
 * `name` is the fleet's. RATION_ERR_CONFIG: there is what the scripts cannot do yet, `rules->text` says what;
 * RATION_ERR_NOMEM. They may be finished in any case. Not to be moved.
 */
int rn_fleet_rules_init(rn_fleet_rules *rules, const ration_allocator *mem, const char *name, const ration_rules *from,
                        ration_time start);
void rn_fleet_rules_fini(rn_fleet_rules *rules);

/*
 * What a request asks, filled into `ask` (its id, `dry` and `enforcer` are the caller's), and its route with one
 * reference, which `rn_fleet_rules_forget` gives back. NULL: its names lead nowhere, and `*out` refuses it. Errors as
 * of rn_routes_find.
 */
int rn_fleet_rules_ask(rn_fleet_rules *rules, ration_time now, const ration_request *request, rn_call_ask *ask,
                       rn_route **route, ration_decision *out);
/* The counter that an operator's words lead to; its key is the name's. Errors as of rn_book_named, and
 * RATION_ERR_INVALID for absent words. */
int rn_fleet_rules_counter(const rn_fleet_rules *rules, const ration_counter_name *name, rn_call_counter *out);
void rn_fleet_rules_forget(rn_fleet_rules *rules, rn_route *route);

#endif
