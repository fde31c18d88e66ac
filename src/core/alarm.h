/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_ALARM_H
#define RN_CORE_ALARM_H

#include "base/heap.h"
#include "base/units.h"

/* Instants at which the engine has something to do, in one heap. Equal instants fire by kind, then in order of
 * arming. */

/* In the order in which they pass at one instant. */
typedef enum rn_alarm_kind {
    RN_ALARM_TTL = 0,  /* a lease is lost */
    RN_ALARM_CIRCUIT,  /* a breaker tries again */
    RN_ALARM_WAKE,     /* a counter's first waiter may go */
    RN_ALARM_PENALTY,  /* a counter's penalty ends */
    RN_ALARM_ACCOUNT,  /* an account's penalty ends */
    RN_ALARM_DEADLINE, /* a waiter's time is up */
} rn_alarm_kind;

typedef struct rn_alarm {
    rn_heap_node node;
    ration_time at;
    uint64_t order;
    rn_alarm_kind kind;
} rn_alarm;

typedef struct rn_alarms {
    rn_heap heap;
    uint64_t order;
} rn_alarms;

void rn_alarms_init(rn_alarms *alarms, const ration_allocator *mem);
void rn_alarms_fini(rn_alarms *alarms);
void rn_alarm_init(rn_alarm *alarm, rn_alarm_kind kind);
/* Room for `count` armed alarms, so that arming cannot fail. */
int rn_alarms_reserve(rn_alarms *alarms, size_t count);
/* Arm or move; RATION_NEVER_US disarms. There must be room. */
void rn_alarm_arm(rn_alarms *alarms, rn_alarm *alarm, ration_time at);
/* It was armed before, in another order among those of its instant, and takes that again. */
void rn_alarm_reorder(rn_alarms *alarms, rn_alarm *alarm, uint64_t order);
void rn_alarm_disarm(rn_alarms *alarms, rn_alarm *alarm);
rn_alarm *rn_alarms_first(const rn_alarms *alarms); /* NULL: none */
ration_time rn_alarms_next(const rn_alarms *alarms);

#endif
