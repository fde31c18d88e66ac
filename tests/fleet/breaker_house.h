/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FLEET_BREAKER_HOUSE_H
#define TESTS_FLEET_BREAKER_HOUSE_H

#include <stdatomic.h>

#include "stranger.h"

/* What the programs that use breakers in tests have in common. */

enum { WRONG = 7, TOO_MANY = 429 };

/* What breakers have told, by kind; read with `seen` and `span_of`, or once nobody tells any more. */
extern int errors, metrics[RATION_BREAKER_METRIC_BACK + 1], slots[RATION_SEMAPHORE_BACK + 1];
extern ration_breaker_metric last[RATION_BREAKER_METRIC_BACK + 1];
extern atomic_int well, most_looking; /* what `health` says, and how many have run at once */
extern atomic_int calls;              /* of `give` */

typedef struct process {
    ration_fleet *fleet;
    ration_semaphore *semaphore;
    ration_breaker *breaker;
} process;

const char *name_of(ration_circuit_state state);
int seen(const int *count);
int64_t span_of(ration_breaker_metric_kind kind);
bool health(void *ctx);

/* It opens after three failures in a row, and stays so long that nothing happens by itself. */
ration_breaker_options options_of(void);
/* `limit` 0: without a semaphore. */
process start(const char *url, const ration_breaker_options *from, int64_t limit);
void stop(process *p);

/* Returns the number that it is given. */
int give(void *ctx);
const char *outcome_of(const ration_decision *decision);
ration_decision call(process *p, int code, int64_t timeout_us);
void say(const char *who, process *p, int code);
void say_within(const char *who, process *p, int code, int64_t timeout_us);
void fail(process *p, int times);
void await_state(process *p, ration_circuit_state state);
void say_state(const char *who, process *p);
void say_changes(void);

#endif
