/* SPDX-License-Identifier: MIT */

/*
 * A ring that only grows. A request may cause two events by itself (granted, then lost), so room for both is made when
 * it comes in and never when they happen: such an event cannot be lost for want of memory.
 */

#include "core/events.h"

#include <assert.h>

#include "base/mem.h"

void rn_events_init(rn_events *events, const ration_allocator *mem)
{
    *events = (rn_events){.mem = mem};
}

void rn_events_fini(rn_events *events)
{
    rn_mem_free(events->mem, events->ring);
    *events = (rn_events){.mem = events->mem};
}

int rn_events_reserve(rn_events *events, size_t count)
{
    size_t capacity = events->capacity == 0 ? 64 : events->capacity;

    if (count <= events->capacity)
        return RATION_OK;
    while (capacity < count)
        capacity *= 2;

    rn_event *ring = rn_mem_zalloc(events->mem, capacity, sizeof *ring);

    if (ring == NULL)
        return RATION_ERR_NOMEM;
    assert(events->count <= events->capacity);
    for (size_t i = 0; i < events->count; i++)
        ring[i] = events->ring[(events->first + i) % events->capacity];
    rn_mem_free(events->mem, events->ring);
    events->ring = ring;
    events->capacity = capacity;
    events->first = 0;
    return RATION_OK;
}

void rn_events_push(rn_events *events, const ration_event *event, uint32_t *pin)
{
    assert(events->count < events->capacity);
    events->ring[(events->first + events->count) % events->capacity] = (rn_event){*event, pin};
    events->count++;
    if (pin != NULL)
        ++*pin;
}

bool rn_events_take(rn_events *events, ration_event *out)
{
    if (events->taken != NULL)
        --*events->taken;
    events->taken = NULL;
    if (events->count == 0)
        return false;

    const rn_event *event = &events->ring[events->first];

    *out = event->event;
    events->taken = event->pin;
    events->first = (events->first + 1) % events->capacity;
    events->count--;
    return true;
}
