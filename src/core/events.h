/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_EVENTS_H
#define RN_CORE_EVENTS_H

#include "core/limit.h"

/* What has happened and has not been taken yet, in order. A counter or circuit named by an event is pinned until the
 * event after it is taken. */

typedef struct rn_event {
    ration_event event;
    uint32_t *pin; /* of what its key names; NULL: nothing */
} rn_event;

typedef struct rn_events {
    const ration_allocator *mem;
    rn_event *ring;
    size_t capacity;
    size_t first;
    size_t count;
    uint32_t *taken; /* pinned by the event last taken */
} rn_events;

void rn_events_init(rn_events *events, const ration_allocator *mem);
void rn_events_fini(rn_events *events);
/* Room for `count` events in all, so that as many pushes cannot fail. */
int rn_events_reserve(rn_events *events, size_t count);
/* `pin`: counts the events that name something; NULL: they name nothing that may be forgotten. */
void rn_events_push(rn_events *events, const ration_event *event, uint32_t *pin);
bool rn_events_take(rn_events *events, ration_event *out);

#endif
