/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_TIMER_H
#define RN_CORE_TIMER_H

#include "base/heap.h"
#include "base/units.h"

/* Instants at which the engine has something to do, in one heap. Equal instants fire by kind, then in order of arming. */

/* In the order in which they pass at one instant. */
typedef enum rn_timer_kind {
    RN_TIMER_TTL = 0,  /* a lease is lost */
    RN_TIMER_WAKE,     /* a counter's first waiter may go */
    RN_TIMER_PENALTY,  /* a penalty ends */
    RN_TIMER_DEADLINE, /* a waiter's time is up */
} rn_timer_kind;

typedef struct rn_timer {
    rn_heap_node node;
    ration_time at;
    uint64_t order;
    rn_timer_kind kind;
} rn_timer;

typedef struct rn_timers {
    rn_heap heap;
    uint64_t order;
} rn_timers;

void rn_timers_init(rn_timers *timers, const ration_allocator *mem);
void rn_timers_fini(rn_timers *timers);
void rn_timer_init(rn_timer *timer, rn_timer_kind kind);
/* Room for `count` armed timers, so that arming cannot fail. */
int rn_timers_reserve(rn_timers *timers, size_t count);
/* Arm or move; RATION_NEVER_US disarms. There must be room. */
void rn_timer_arm(rn_timers *timers, rn_timer *timer, ration_time at);
void rn_timer_disarm(rn_timers *timers, rn_timer *timer);
rn_timer *rn_timers_first(const rn_timers *timers); /* NULL: none */
ration_time rn_timers_next(const rn_timers *timers);

#endif
