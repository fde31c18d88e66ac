/* SPDX-License-Identifier: MIT */
/*
 * What the programs that use breakers in tests have in common: processes, of which two in one program stand for two,
 * calls that come to a number, and all that breakers tell, counted under one lock.
 */
#include "breaker_house.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what breakers tell */

static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;
int errors, metrics[RATION_BREAKER_METRIC_BACK + 1], slots[RATION_SEMAPHORE_BACK + 1];
ration_breaker_metric last[RATION_BREAKER_METRIC_BACK + 1];
static char changes[512];
atomic_int well, most_looking;
static atomic_int looking;

const char *name_of(ration_circuit_state state)
{
    static const char *const names[] = {"closed", "open", "half-open"};

    return names[state];
}

static void on_error(void *ctx, const char *what)
{
    (void)ctx;
    (void)pthread_mutex_lock(&told_lock);
    errors++;
    (void)pthread_mutex_unlock(&told_lock);
    (void)fprintf(stderr, "%s\n", what);
}

static void on_change(void *ctx, ration_circuit_state from, ration_circuit_state to, const char *cause)
{
    size_t used;

    (void)ctx;
    (void)pthread_mutex_lock(&told_lock);
    used = strlen(changes);
    (void)snprintf(changes + used, sizeof changes - used, "%s > %s: %s\n", name_of(from), name_of(to), cause);
    (void)pthread_mutex_unlock(&told_lock);
}

static void on_metric(void *ctx, const ration_breaker_metric *metric)
{
    (void)ctx;
    (void)pthread_mutex_lock(&told_lock);
    metrics[metric->kind]++;
    last[metric->kind] = *metric;
    (void)pthread_mutex_unlock(&told_lock);
}

static void on_slot(void *ctx, const ration_semaphore_metric *metric)
{
    (void)ctx;
    (void)pthread_mutex_lock(&told_lock);
    slots[metric->kind]++;
    (void)pthread_mutex_unlock(&told_lock);
}

int seen(const int *count)
{
    int value;

    (void)pthread_mutex_lock(&told_lock);
    value = *count;
    (void)pthread_mutex_unlock(&told_lock);
    return value;
}

int64_t span_of(ration_breaker_metric_kind kind)
{
    int64_t value;

    (void)pthread_mutex_lock(&told_lock);
    value = last[kind].span_us;
    (void)pthread_mutex_unlock(&told_lock);
    return value;
}

/* A health check; who counts sees whether two run at once. */
bool health(void *ctx)
{
    const int now = atomic_fetch_add(&looking, 1) + 1;
    bool answer;

    (void)ctx;
    if (now > atomic_load(&most_looking))
        atomic_store(&most_looking, now);
    pause_ms(20);
    answer = atomic_load(&well) != 0;
    (void)atomic_fetch_sub(&looking, 1);
    return answer;
}

/* ---- two processes in one */

/* It opens after three failures in a row, and stays so long that nothing happens by itself. */
ration_breaker_options options_of(void)
{
    ration_breaker_options options = RATION_BREAKER_OPTIONS_INIT;

    options.id = "api";
    options.rule.strategy = RATION_BREAKER_CONSECUTIVE;
    options.rule.threshold = 3;
    options.rule.backoff_initial_us = 600000 * MS;
    options.health = health;
    options.on_error = on_error;
    options.on_state_change = on_change;
    options.on_metric = on_metric;
    return options;
}

static const ration_class_rule classes[] = {{"fast", {0, 0}}};

static ration_semaphore *slots_of(ration_fleet *fleet, int64_t limit)
{
    ration_semaphore_options options = RATION_SEMAPHORE_OPTIONS_INIT;
    ration_semaphore *semaphore = NULL;

    options.id = "api";
    options.rule.initial_limit = limit;
    options.rule.window_us = 60000 * MS;
    options.rule.classes = classes;
    options.rule.class_count = 1;
    options.on_metric = on_slot;
    must(ration_semaphore_new(fleet, &options, &semaphore, NULL), "semaphore");
    return semaphore;
}

/* `limit` 0: without a semaphore. */
process start(const char *url, const ration_breaker_options *from, int64_t limit)
{
    ration_breaker_options options = *from;
    process p = {.fleet = fleet_of(url)};
    ration_fault fault = {.path = ""};

    if (limit > 0)
        options.semaphore = p.semaphore = slots_of(p.fleet, limit);
    if (ration_breaker_new(p.fleet, &options, &p.breaker, &fault) != RATION_OK) {
        (void)printf("%s: %s\n", fault.path, fault.text);
        exit(EXIT_FAILURE);
    }
    must(ration_breaker_start(p.breaker), "start");
    return p;
}

void stop(process *p)
{
    ration_breaker_free(p->breaker);
    ration_semaphore_free(p->semaphore);
    ration_fleet_free(p->fleet);
}

atomic_int calls;

int give(void *ctx)
{
    (void)atomic_fetch_add(&calls, 1);
    return *(const int *)ctx;
}

const char *outcome_of(const ration_decision *decision)
{
    return decision->result == RATION_GRANTED ? "called" : ration_reason_name(decision->reason);
}

/* One call that returns `code`. */
ration_decision call(process *p, int code, int64_t timeout_us)
{
    ration_acquire how = RATION_ACQUIRE_INIT;
    ration_decision decision;
    int result = -1;

    how.timeout_us = timeout_us;
    must(ration_breaker_execute(p->breaker, give, &code, &how, &result, &decision), "execute");
    if (decision.result == RATION_GRANTED ? result != code : result != -1)
        (void)printf("result %d\n", result);
    return decision;
}

void say_within(const char *who, process *p, int code, int64_t timeout_us)
{
    const ration_decision decision = call(p, code, timeout_us);

    (void)printf("%s %s\n", who, outcome_of(&decision));
}

void say(const char *who, process *p, int code)
{
    say_within(who, p, code, RATION_UNSET);
}

void fail(process *p, int times)
{
    for (int i = 0; i < times; i++)
        (void)call(p, WRONG, RATION_UNSET);
}

void await_state(process *p, ration_circuit_state state)
{
    for (int i = 0; i < 1200 && ration_breaker_state(p->breaker) != state; i++)
        pause_ms(50);
}

void say_state(const char *who, process *p)
{
    (void)printf("%s %s\n", who, name_of(ration_breaker_state(p->breaker)));
}

void say_changes(void)
{
    (void)pthread_mutex_lock(&told_lock);
    (void)printf("%s", changes);
    changes[0] = '\0';
    (void)pthread_mutex_unlock(&told_lock);
}
