/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_TWIN_EVENTS_H
#define RN_FLEET_TWIN_EVENTS_H

#include <ration/engine.h>

#include "fleet/answer.h"

/*
 * What the engine and a fleet tell of the same happenings: limits that moved, breakers that changed, what came of those
 * who wait. Each is kept as text until the other side has told it, too, for neither knows when the other will.
 */

typedef struct rn_twin_event {
    char *subject; /* what it happened to */
    char *text;
} rn_twin_event;

typedef struct rn_twin_tale {
    rn_twin_event *events; /* in order */
    size_t count, capacity;
} rn_twin_tale;

typedef struct rn_twin_events {
    const ration_allocator *mem;
    rn_twin_tale said; /* by the engine */
    rn_twin_tale told; /* by the store */
    int err;           /* RATION_ERR_NOMEM: something was not kept */
} rn_twin_events;

void rn_twin_events_init(rn_twin_events *events, const ration_allocator *mem);
void rn_twin_events_fini(rn_twin_events *events);

void rn_twin_events_said(rn_twin_events *events, const ration_event *event);
/* Something happened to one of those who wait at a provider, in the words that the other side will use. */
int rn_twin_events_add(rn_twin_events *events, bool by_store, ration_text provider, const char *text);
int rn_twin_events_told(rn_twin_events *events, const rn_fleet_event *event); /* RATION_ERR_NOMEM, RATION_ERR_IO */

/*
 * The engine has told all that it knows of. True: all that the store has told is the same, in the same order for each
 * subject; it is forgotten, and counted in `*compared`. With `all` nothing may be left at the engine either. False:
 * what differs is in `text`.
 */
bool rn_twin_events_agree(rn_twin_events *events, bool all, size_t *compared, char *text, size_t size);

#endif
