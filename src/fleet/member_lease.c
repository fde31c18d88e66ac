/* SPDX-License-Identifier: MIT */
/*
 * Leases and waiters of this process.
 *
 * A handle is a place in a table and the number of its life, as in the engine; the same two numbers behind the
 * member's id are the lease's name in the store, so that an answer finds it by its name alone. A lease whose handle
 * is dead stays until its events have been taken: they name its limit and key.
 *
 * Invariants: in exactly one list of `stages`; in a slot unless OVER; each holds its route and world once. An event
 * is in the list while it is `due`.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/engine.h"
#include "fleet/member_parts.h"

#define NONE UINT32_MAX

/* ---- the table */

static int slots_grow(rn_member *m)
{
    const uint32_t count = m->slot_count + m->slot_count / 2 + 64;
    rn_member_slot *const slots = rn_mem_resize(&m->mem, m->slots, count, sizeof *slots);

    if (slots == NULL)
        return RATION_ERR_NOMEM;
    for (uint32_t i = m->slot_count; i < count; i++)
        slots[i] = (rn_member_slot){.generation = m->first_generation - 1, .next_free = i + 1 < count ? i + 1 : NONE};
    m->first_free = m->slot_count;
    m->slots = slots;
    m->slot_count = count;
    return RATION_OK;
}

static void slot_take(rn_member *m, rn_member_lease *lease)
{
    rn_member_slot *const slot = &m->slots[m->first_free];

    lease->handle.index = m->first_free;
    m->first_free = slot->next_free;
    slot->generation = slot->generation == UINT32_MAX ? 1 : slot->generation + 1;
    lease->handle.generation = slot->generation;
    slot->lease = lease;
}

static void slot_give_back(rn_member *m, const rn_member_lease *lease)
{
    rn_member_slot *const slot = &m->slots[lease->handle.index];

    slot->lease = NULL;
    slot->next_free = m->first_free;
    m->first_free = lease->handle.index;
}

rn_member_lease *rn_member_lease_find(const rn_member *m, ration_lease handle)
{
    if (handle.generation == 0 || handle.index >= m->slot_count ||
        m->slots[handle.index].generation != handle.generation)
        return NULL;
    return m->slots[handle.index].lease;
}

rn_member_lease *rn_member_lease_named(const rn_member *m, ration_text name)
{
    const size_t id = strlen(m->id);
    ration_lease handle = {0, 0};
    char copy[RN_MEMBER_NAME];

    if (name.size <= id || name.size >= sizeof copy || memcmp(name.data, m->id, id) != 0)
        return NULL;
    memcpy(copy, name.data + id, name.size - id);
    copy[name.size - id] = '\0';
    /* NOLINTNEXTLINE(cert-err34-c): whatever it reads, the name of what is found is compared */
    if (sscanf(copy, ".%u.%u", &handle.index, &handle.generation) != 2)
        return NULL;

    rn_member_lease *const lease = rn_member_lease_find(m, handle);

    return lease != NULL && rn_text_is(name, lease->name) ? lease : NULL;
}

/* ---- a lease's life */

static void lease_fill(rn_member *m, rn_member_lease *lease, rn_route *route, const ration_request *request,
                       const rn_call_ask *ask)
{
    const ration_time now = rn_member_now(m);

    lease->serial = m->serial;
    lease->user = request->user;
    lease->world = m->world;
    lease->route = route;
    lease->ask = *ask;
    lease->priority = rn_request_priority(request, route);
    lease->own = ask->ttl_us != RATION_UNSET;
    if (!lease->own)
        lease->ask.ttl_us = m->settings.lease_ttl_us;
    lease->asked_at = now;
    lease->deadline = rn_time_add(now, request->wait_us);
    lease->ends_at.us = RATION_NEVER_US;
    lease->expires_at.us = RATION_NEVER_US;
    lease->answer.lease = lease;
    lease->lost.lease = lease;
    rn_member_hold(lease->world);
}

int rn_member_lease_new(rn_member *m, rn_route *route, const ration_request *request, const rn_call_ask *ask,
                        rn_member_lease **out)
{
    size_t alive = 0;
    int err = RATION_OK;

    for (size_t i = 0; i < RN_OURS_OVER; i++)
        alive += m->stage_sizes[i];
    if (alive >= (size_t)m->world->rules.book.max_leases)
        return RATION_ERR_FULL;
    if (m->first_free == NONE)
        err = slots_grow(m);
    if (err == RATION_OK)
        err = rn_heap_reserve(&m->due, alive + 1);

    rn_member_lease *const lease = err == RATION_OK ? rn_mem_zalloc(&m->mem, 1, sizeof *lease) : NULL;

    if (lease == NULL)
        return RATION_ERR_NOMEM;
    rn_heap_node_init(&lease->node);
    slot_take(m, lease);
    lease_fill(m, lease, route, request, ask);
    (void)snprintf(lease->name, sizeof lease->name, "%s.%u.%u", m->id, lease->handle.index, lease->handle.generation);
    lease->ask.id = ration_text_of(lease->name);
    TAILQ_INSERT_TAIL(&m->stages[RN_OURS_ASKING], lease, link);
    m->stage_sizes[RN_OURS_ASKING]++;
    *out = lease;
    return RATION_OK;
}

void rn_member_lease_enter(rn_member *m, rn_member_lease *lease, rn_member_stage stage)
{
    TAILQ_REMOVE(&m->stages[lease->stage], lease, link);
    m->stage_sizes[lease->stage]--;
    lease->stage = stage;
    TAILQ_INSERT_TAIL(&m->stages[stage], lease, link);
    m->stage_sizes[stage]++;
}

void rn_member_lease_due(rn_member *m, rn_member_lease *lease, ration_time at)
{
    lease->due_at = at;
    if (!rn_time_known(at)) {
        rn_heap_remove(&m->due, &lease->node);
    } else if (rn_heap_contains(&lease->node)) {
        rn_heap_moved(&m->due, &lease->node);
    } else {
        (void)rn_heap_push(&m->due, &lease->node); /* there is room */
    }
}

static void event_forget(rn_member *m, rn_member_event *event)
{
    if (event->due)
        TAILQ_REMOVE(&m->events, event, link);
    event->due = false;
    if (m->taken == event)
        m->taken = NULL;
}

void rn_member_lease_free(rn_member *m, rn_member_lease *lease)
{
    rn_member_block_leave(m, lease);
    if (lease->stage != RN_OURS_OVER)
        slot_give_back(m, lease);
    rn_heap_remove(&m->due, &lease->node);
    event_forget(m, &lease->answer);
    event_forget(m, &lease->lost);
    TAILQ_REMOVE(&m->stages[lease->stage], lease, link);
    m->stage_sizes[lease->stage]--;
    rn_fleet_rules_forget(&lease->world->rules, lease->route);
    rn_member_unhold(m, lease->world);
    rn_mem_free(&m->mem, lease);
}

void rn_member_lease_end(rn_member *m, rn_member_lease *lease)
{
    rn_member_block_leave(m, lease);
    slot_give_back(m, lease);
    rn_heap_remove(&m->due, &lease->node);
    rn_member_lease_enter(m, lease, RN_OURS_OVER);
}

/* Renewed in time for the store to hear of it; what its holder renews, and has not, is over. */
void rn_member_lease_alive(rn_member *m, rn_member_lease *lease)
{
    const ration_time now = rn_member_now(m);
    const int64_t ttl_us = lease->ask.ttl_us;

    lease->expires_at = rn_time_add(now, ttl_us);
    rn_member_lease_due(m, lease, lease->own ? lease->expires_at : rn_time_add(now, ttl_us / 5 * 4));
}

/* ---- events */

static void event_push(rn_member *m, rn_member_event *event)
{
    event->due = true;
    TAILQ_INSERT_TAIL(&m->events, event, link);
    m->woken(m->ctx);
}

static void event_add(rn_member *m, rn_member_event *event, const ration_event *what)
{
    event->event = *what;
    event->event.serial = event->lease->serial;
    event->event.lease = event->lease->handle;
    event->event.user = event->lease->user;
    event_push(m, event);
}

static int64_t waited_us(const rn_member *m, const rn_member_lease *lease)
{
    return lease->waits ? rn_max(0, rn_sub(rn_member_now(m).us, lease->asked_at.us)) : 0;
}

void rn_member_tell_granted(rn_member *m, rn_member_lease *lease)
{
    const ration_event event = {.type = RATION_EVENT_GRANTED, .at = rn_member_now(m), .waited_us = waited_us(m, lease)};

    m->totals.granted += !lease->ask.dry;
    event_add(m, &lease->answer, &event);
}

void rn_member_tell_refused(rn_member *m, rn_member_lease *lease, const ration_decision *decision)
{
    ration_event event = {
        .type = RATION_EVENT_REFUSED, .at = rn_member_now(m), .waited_us = waited_us(m, lease), .decision = *decision};

    event.decision.serial = lease->serial;
    event.decision.lease = (ration_lease){0, 0};
    m->totals.refused += !lease->ask.dry;
    m->totals.refusals[decision->reason] += !lease->ask.dry;
    event_add(m, &lease->answer, &event);
    rn_member_lease_end(m, lease);
}

void rn_member_tell_lost(rn_member *m, rn_member_lease *lease)
{
    const ration_event event = {.type = RATION_EVENT_LOST, .at = rn_member_now(m)};

    m->totals.lost++;
    event_add(m, &lease->lost, &event);
    rn_member_lease_end(m, lease);
}

void rn_member_tell(rn_member *m, rn_member_event *event)
{
    rn_member_hold(event->world);
    if (event->route != NULL)
        event->route->refs++;
    event_push(m, event);
}

/* Is that how the store calls the counter? "limit:NAME:KEY" or "limit:NAME@ACCOUNT:KEY". */
static bool is_named(rn_member *m, const rn_counter *counter, ration_text key)
{
    const size_t tail = counter->key.size + 1;
    bool same = false;
    rn_pack begin;

    if (key.size < tail || key.data[key.size - tail] != ':' ||
        !rn_text_eq(rn_text_slice(key, key.size - counter->key.size, key.size), counter->key))
        return false;
    rn_pack_init(&begin, &m->mem);
    rn_pack_raw(&begin, ration_text_of("limit:"));
    rn_call_name(&begin, ration_text_of(counter->limit->rule->name));
    if (begin.err == RATION_OK && begin.size < key.size && memcmp(begin.data, key.data, begin.size) == 0)
        same = key.data[begin.size] == ':' || key.data[begin.size] == '@';
    rn_pack_fini(&begin);
    return same;
}

/* An event that stands alone. */
typedef struct told {
    rn_member_event event;
    char cause[64];
} told;

void rn_member_tell_limit(rn_member *m, rn_member_world *world, rn_route *route, const rn_fleet_event *what)
{
    told *one = NULL;
    size_t at = 0;
    rn_builder cause;

    while (at < route->count && !is_named(m, route->links[at].counter, what->key))
        at++;
    if (at < route->count)
        one = rn_mem_zalloc(&m->mem, 1, sizeof *one);
    if (one == NULL)
        return;
    rn_builder_init(&cause, one->cause, sizeof one->cause);
    rn_builder_text(&cause, what->cause);

    rn_member_event *const event = &one->event;

    event->world = world;
    event->route = route;
    event->event = (ration_event){.type = RATION_EVENT_LIMIT,
                                  .at = rn_member_local(m, what->at),
                                  .value = what->value,
                                  .before = what->before,
                                  .cause = one->cause,
                                  .decision = {.limit = route->links[at].counter->limit->rule->name,
                                               .key = route->links[at].counter->key,
                                               .retry_at = {RATION_NEVER_US}}};
    rn_member_tell(m, event);
}

static void event_free(rn_member *m, rn_member_event *event)
{
    if (event->route != NULL)
        rn_fleet_rules_forget(&event->world->rules, event->route);
    rn_member_unhold(m, event->world);
    rn_mem_free(&m->mem, event);
}

void rn_member_events_fini(rn_member *m)
{
    rn_member_event *event, *next;

    if (m->taken != NULL && m->taken->lease == NULL)
        event_free(m, m->taken);
    m->taken = NULL;
    for (event = TAILQ_FIRST(&m->events); event != NULL; event = next) {
        next = TAILQ_NEXT(event, link);
        TAILQ_REMOVE(&m->events, event, link);
        event->due = false;
        if (event->lease == NULL)
            event_free(m, event);
    }
}

/* The last one is of no use any more, and neither is its lease if that was the last of it. */
static void taken_forget(rn_member *m)
{
    rn_member_event *const taken = m->taken;

    m->taken = NULL;
    if (taken == NULL)
        return;
    if (taken->lease == NULL) {
        event_free(m, taken);
    } else if (taken->lease->stage == RN_OURS_OVER && !taken->lease->answer.due && !taken->lease->lost.due) {
        rn_member_lease_free(m, taken->lease);
    }
}

bool rn_member_next_event(rn_decider *d, ration_event *out)
{
    rn_member *const m = (rn_member *)(void *)d;
    rn_member_event *const next = TAILQ_FIRST(&m->events);

    taken_forget(m);
    if (next == NULL)
        return false;
    TAILQ_REMOVE(&m->events, next, link);
    next->due = false;
    m->taken = next;
    *out = next->event;
    return true;
}
