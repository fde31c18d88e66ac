/* SPDX-License-Identifier: MIT */
/*
 * Alarms: instants in one heap, the engine's whole idea of "later".
 *
 * Nothing fires by itself; the engine takes the first while it is due. At one instant the kinds go in the
 * order of their enumeration (chapter 1, "At one instant": lost leases first, deadlines last); within a kind each
 * arming gets the next number, so that they fire in the order in which they were armed, on every machine. Moving a
 * alarm counts as arming it.
 *
 * Invariant: a alarm is in the heap exactly while it is armed, with `at` below RATION_NEVER_US.
 */
#include "core/alarm.h"

#include <assert.h>

static const rn_alarm *alarm_of(const rn_heap_node *node)
{
    return (const rn_alarm *)(const void *)((const char *)node - offsetof(rn_alarm, node));
}

static bool alarm_less(const rn_heap_node *a, const rn_heap_node *b)
{
    const rn_alarm *const left = alarm_of(a);
    const rn_alarm *const right = alarm_of(b);

    if (left->at.us != right->at.us)
        return left->at.us < right->at.us;
    return left->kind != right->kind ? left->kind < right->kind : left->order < right->order;
}

void rn_alarms_init(rn_alarms *alarms, const ration_allocator *mem)
{
    rn_heap_init(&alarms->heap, mem, alarm_less);
    alarms->order = 0;
}

void rn_alarms_fini(rn_alarms *alarms)
{
    rn_heap_fini(&alarms->heap);
}

void rn_alarm_init(rn_alarm *alarm, rn_alarm_kind kind)
{
    rn_heap_node_init(&alarm->node);
    alarm->at = ration_time_of(RATION_NEVER_US);
    alarm->order = 0;
    alarm->kind = kind;
}

int rn_alarms_reserve(rn_alarms *alarms, size_t count)
{
    return rn_heap_reserve(&alarms->heap, count);
}

void rn_alarm_arm(rn_alarms *alarms, rn_alarm *alarm, ration_time at)
{
    if (!rn_time_known(at)) {
        rn_alarm_disarm(alarms, alarm);
        return;
    }
    alarm->at = at;
    alarm->order = alarms->order++;
    if (rn_heap_contains(&alarm->node)) {
        rn_heap_moved(&alarms->heap, &alarm->node);
        return;
    }

    const int rc = rn_heap_push(&alarms->heap, &alarm->node);

    assert(rc == RATION_OK);
    (void)rc;
}

void rn_alarm_disarm(rn_alarms *alarms, rn_alarm *alarm)
{
    rn_heap_remove(&alarms->heap, &alarm->node);
    alarm->at = ration_time_of(RATION_NEVER_US);
}

rn_alarm *rn_alarms_first(const rn_alarms *alarms)
{
    rn_heap_node *const top = rn_heap_top(&alarms->heap);

    return top == NULL ? NULL : (rn_alarm *)(void *)((char *)top - offsetof(rn_alarm, node));
}

ration_time rn_alarms_next(const rn_alarms *alarms)
{
    const rn_alarm *const first = rn_alarms_first(alarms);

    return first == NULL ? ration_time_of(RATION_NEVER_US) : first->at;
}

void rn_alarm_reorder(rn_alarms *alarms, rn_alarm *alarm, uint64_t order)
{
    alarm->order = order;
    rn_heap_moved(&alarms->heap, &alarm->node);
}
