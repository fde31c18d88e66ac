/* SPDX-License-Identifier: MIT */
/*
 * Timers: instants in one heap, the engine's whole idea of "later".
 *
 * Nothing fires by itself; the engine takes the first while it is due. At one instant the kinds go in the
 * order of their enumeration (chapter 1, "At one instant": lost leases first, deadlines last); within a kind each arming
 * gets the next number, so that they fire in the order in which they were armed, on every machine. Moving a timer counts as arming it.
 *
 * Invariant: a timer is in the heap exactly while it is armed, with `at` below RATION_NEVER_US.
 */
#include "core/timer.h"

#include <assert.h>

static const rn_timer *timer_of(const rn_heap_node *node)
{
    return (const rn_timer *)(const void *)((const char *)node - offsetof(rn_timer, node));
}

static bool timer_less(const rn_heap_node *a, const rn_heap_node *b)
{
    const rn_timer *const left = timer_of(a);
    const rn_timer *const right = timer_of(b);

    if (left->at.us != right->at.us)
        return left->at.us < right->at.us;
    return left->kind != right->kind ? left->kind < right->kind : left->order < right->order;
}

void rn_timers_init(rn_timers *timers, const ration_allocator *mem)
{
    rn_heap_init(&timers->heap, mem, timer_less);
    timers->order = 0;
}

void rn_timers_fini(rn_timers *timers)
{
    rn_heap_fini(&timers->heap);
}

void rn_timer_init(rn_timer *timer, rn_timer_kind kind)
{
    rn_heap_node_init(&timer->node);
    timer->at = ration_time_of(RATION_NEVER_US);
    timer->order = 0;
    timer->kind = kind;
}

int rn_timers_reserve(rn_timers *timers, size_t count)
{
    return rn_heap_reserve(&timers->heap, count);
}

void rn_timer_arm(rn_timers *timers, rn_timer *timer, ration_time at)
{
    if (!rn_time_known(at)) {
        rn_timer_disarm(timers, timer);
        return;
    }
    timer->at = at;
    timer->order = timers->order++;
    if (rn_heap_contains(&timer->node)) {
        rn_heap_moved(&timers->heap, &timer->node);
        return;
    }

    const int rc = rn_heap_push(&timers->heap, &timer->node);

    assert(rc == RATION_OK);
    (void)rc;
}

void rn_timer_disarm(rn_timers *timers, rn_timer *timer)
{
    rn_heap_remove(&timers->heap, &timer->node);
    timer->at = ration_time_of(RATION_NEVER_US);
}

rn_timer *rn_timers_first(const rn_timers *timers)
{
    rn_heap_node *const top = rn_heap_top(&timers->heap);

    return top == NULL ? NULL : (rn_timer *)(void *)((char *)top - offsetof(rn_timer, node));
}

ration_time rn_timers_next(const rn_timers *timers)
{
    const rn_timer *const first = rn_timers_first(timers);

    return first == NULL ? ration_time_of(RATION_NEVER_US) : first->at;
}
