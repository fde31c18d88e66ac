/* SPDX-License-Identifier: MIT */
/*
 * A program that uses breakers with semaphores, from many threads, and from the wrong places: `guarded_client URL
 * SCENARIO`. It prints a line for each thing that has happened, which tests/e2e/test_breaker_client.py compares.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "breaker_house.h"

/* ---- scenarios: with a semaphore */

typedef struct waiting {
    process *p;
    ration_decision decision;
    int64_t ended_us;
    pthread_t thread;
} waiting;

static void *wait_main(void *ctx)
{
    waiting *const w = ctx;

    w->decision = call(w->p, 0, 60000 * MS);
    w->ended_us = clock_us();
    return NULL;
}

static void wait_begin(waiting *w, process *p)
{
    *w = (waiting){.p = p};
    must(pthread_create(&w->thread, NULL, wait_main, w) == 0 ? RATION_OK : RATION_ERR_NOMEM, "thread");
    pause_ms(300);
}

static ration_lease take(process *p)
{
    ration_decision decision;

    must(ration_semaphore_acquire(p->semaphore, NULL, &decision), "acquire");
    return decision.lease;
}

/* An open circuit blocks before the slot, and every failure of the function is one of the breaker. */
static ration_outcome mapped(void *ctx, int error)
{
    (void)ctx;
    return error == TOO_MANY ? RATION_OUTCOME_THROTTLED : RATION_OUTCOME_SUCCESS;
}

static void guarded(const char *url)
{
    ration_breaker_options options = options_of();

    options.outcome_on_error = mapped;

    process a = start(url, &options, 8);

    say("a", &a, 0);
    say("a", &a, TOO_MANY);
    for (int i = 0; i < 1200 && ration_semaphore_limit(a.semaphore) == 8; i++)
        pause_ms(50);
    (void)printf("limit %lld\n", (long long)ration_semaphore_limit(a.semaphore));
    say("a", &a, WRONG);
    say("a", &a, WRONG);
    await_state(&a, RATION_BREAKER_OPEN);
    for (int i = 0; i < 3; i++)
        say("a", &a, 0);
    (void)printf("blocked %d acquired %d refused %d held %lld\n", seen(&metrics[RATION_BREAKER_METRIC_BLOCKED]),
                 seen(&slots[RATION_SEMAPHORE_ACQUIRED]), seen(&slots[RATION_SEMAPHORE_REFUSED]),
                 (long long)ration_semaphore_held(a.semaphore));
    ration_breaker_free(a.breaker);
    a.breaker = NULL;
    (void)take(&a); /* it is there still */
    (void)printf("held %lld\n", (long long)ration_semaphore_held(a.semaphore));
    stop(&a);
}

/* A lease's own options: class, time-out and mapper; without a mapper an error is a failure, which teaches the limit
 * nothing. */
static void per_call(const char *url)
{
    ration_breaker_options options = options_of();

    options.rule.threshold = 9;

    process a = start(url, &options, 8);
    ration_acquire how = RATION_ACQUIRE_INIT;
    ration_decision decision;
    int result = 0, code = TOO_MANY;

    say("a", &a, TOO_MANY);
    (void)printf("limit %lld\n", (long long)ration_semaphore_limit(a.semaphore));
    how.class_name = ration_text_of("fast");
    how.outcome_on_error = mapped;
    must(ration_breaker_execute(a.breaker, give, &code, &how, &result, &decision), "execute");
    for (int i = 0; i < 1200 && ration_semaphore_limit(a.semaphore) == 8; i++)
        pause_ms(50);
    (void)printf("limit %lld\n", (long long)ration_semaphore_limit(a.semaphore));
    how.class_name = ration_text_of("none");
    must(ration_breaker_execute(a.breaker, give, &code, &how, &result, &decision), "execute");
    (void)printf("a %s\n", outcome_of(&decision));
    how.timeout_us = -5;
    (void)printf("a %s\n", ration_err_text(ration_breaker_execute(a.breaker, give, &code, &how, &result, &decision)));
    stop(&a);
}

/* Those who get no slot are no failures, and no calls. */
static void saturated(const char *url)
{
    ration_breaker_options options = options_of();

    options.rule.threshold = 1;

    process a = start(url, &options, 1);
    const ration_lease held = take(&a);

    for (int i = 0; i < 3; i++)
        say_within("a", &a, WRONG, 100 * MS);
    must(ration_semaphore_release(a.semaphore, held, RATION_OUTCOME_SUCCESS), "release");
    must(ration_breaker_stop(a.breaker), "stop");
    must(ration_breaker_start(a.breaker), "start");
    say_state("a", &a);
    (void)printf("called %d blocked %d\n", seen(&metrics[RATION_BREAKER_METRIC_CALLED]),
                 seen(&metrics[RATION_BREAKER_METRIC_BLOCKED]));
    stop(&a);
}

/* The circuit opens for who waits for a slot, and it does not run out its minute. */
static void opening(const char *url)
{
    const ration_breaker_options options = options_of();
    process a = start(url, &options, 1), b = start(url, &options, 0);
    const ration_lease held = take(&a);
    const int64_t began_us = clock_us();
    waiting w[2];

    wait_begin(&w[0], &a);
    wait_begin(&w[1], &a);
    fail(&b, 3);
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(w[i].thread, NULL);
        (void)printf("waited %s at once %d\n", outcome_of(&w[i].decision), w[i].ended_us - began_us < 50000 * MS);
    }
    (void)printf("blocked %d called %d held %lld\n", seen(&metrics[RATION_BREAKER_METRIC_BLOCKED]),
                 seen(&metrics[RATION_BREAKER_METRIC_CALLED]), (long long)ration_semaphore_held(a.semaphore));
    (void)printf("had waited %d\n", span_of(RATION_BREAKER_METRIC_BLOCKED) >= 250 * MS);
    must(ration_semaphore_release(a.semaphore, held, RATION_OUTCOME_SUCCESS), "release");
    stop(&b);
    stop(&a);
}

typedef struct cancelled_wait {
    process *p;
    ration_cancel *cancel;
    ration_decision decision;
    pthread_t thread;
} cancelled_wait;

static int fire(void *ctx)
{
    ration_cancel_fire(ctx);
    return 0;
}

static void *cancelled_main(void *ctx)
{
    cancelled_wait *const w = ctx;
    ration_acquire how = RATION_ACQUIRE_INIT;
    int result = 0;

    how.timeout_us = 60000 * MS;
    how.cancel = w->cancel;
    must(ration_breaker_execute(w->p->breaker, fire, w->cancel, &how, &result, &w->decision), "execute");
    return NULL;
}

/* Given up by another thread at every stage: 30 waits for a slot, each a little later; before; and within the call,
 * which goes on. No slot and no pass stays behind, and nothing of it counts. */
static void cancelled(const char *url)
{
    const ration_breaker_options options = options_of();
    process a = start(url, &options, 1);
    const ration_lease held = take(&a);
    cancelled_wait w = {.p = &a};
    int ended = 0;

    must(ration_cancel_new(&w.cancel), "cancel");
    for (int i = 0; i < 30; i++) {
        ration_cancel_free(w.cancel);
        must(ration_cancel_new(&w.cancel), "cancel");
        must(pthread_create(&w.thread, NULL, cancelled_main, &w) == 0 ? RATION_OK : RATION_ERR_NOMEM, "thread");
        pause_ms(i / 5);
        ration_cancel_fire(w.cancel);
        (void)pthread_join(w.thread, NULL);
        ended += w.decision.result == RATION_REFUSED && w.decision.reason == RATION_REASON_CANCELLED;
    }
    (void)printf("cancelled %d called %d\n", ended, seen(&metrics[RATION_BREAKER_METRIC_CALLED]));
    must(ration_semaphore_release(a.semaphore, held, RATION_OUTCOME_SUCCESS), "release");
    (void)cancelled_main(&w);
    (void)printf("before %s\n", outcome_of(&w.decision));
    ration_cancel_free(w.cancel);
    must(ration_cancel_new(&w.cancel), "cancel");
    (void)cancelled_main(&w);
    (void)printf("within %s held %lld\n", outcome_of(&w.decision), (long long)ration_semaphore_held(a.semaphore));
    ration_cancel_free(w.cancel);
    stop(&a);
}

/* What a call took is without its wait for the slot. */
static void spans(const char *url)
{
    const ration_breaker_options options = options_of();
    process a = start(url, &options, 1);
    const ration_lease held = take(&a);
    waiting w;

    wait_begin(&w, &a);
    pause_ms(3000);
    must(ration_semaphore_release(a.semaphore, held, RATION_OUTCOME_SUCCESS), "release");
    (void)pthread_join(w.thread, NULL);
    (void)printf("waited %s without the wait %d\n", outcome_of(&w.decision),
                 span_of(RATION_BREAKER_METRIC_CALLED) < 3000 * MS);
    stop(&a);
}

/* ---- scenarios: life */

static void *crowd_main(void *ctx)
{
    for (int i = 0; i < 25; i++)
        (void)call(ctx, i % 5 == 4 ? WRONG : 0, 60000 * MS);
    return NULL;
}

/* Many threads at once: each call is counted once. */
static void crowd(const char *url)
{
    const ration_breaker_options options = options_of();
    process a = start(url, &options, 3);
    pthread_t threads[8];

    for (int i = 0; i < 8; i++)
        must(pthread_create(&threads[i], NULL, crowd_main, &a) == 0 ? RATION_OK : RATION_ERR_NOMEM, "thread");
    for (int i = 0; i < 8; i++)
        (void)pthread_join(threads[i], NULL);

    const int called = seen(&metrics[RATION_BREAKER_METRIC_CALLED]);

    (void)printf("all %d counted %d held %lld\n", called + seen(&metrics[RATION_BREAKER_METRIC_BLOCKED]),
                 called == atomic_load(&calls), (long long)ration_semaphore_held(a.semaphore));
    stop(&a);
}

static int try_inside(void *ctx)
{
    process *const p = ctx;

    must(ration_breaker_stop(p->breaker), "stop");
    return WRONG;
}

static process *inside_of;
static atomic_int inside_err[3];

static void change_inside(void *ctx, ration_circuit_state from, ration_circuit_state to, const char *cause)
{
    int result, code = 0;
    ration_decision decision;

    (void)ctx;
    (void)from;
    (void)to;
    (void)cause;
    atomic_store(&inside_err[0], ration_breaker_start(inside_of->breaker));
    atomic_store(&inside_err[1], ration_breaker_stop(inside_of->breaker));
    atomic_store(&inside_err[2], ration_breaker_execute(inside_of->breaker, give, &code, NULL, &result, &decision));
}

/* Before it is started, twice, after it is stopped, and again. */
static void life(const char *url)
{
    ration_breaker_options options = options_of();
    process a = {.fleet = fleet_of(url)};
    int result = 0, code = 0;
    ration_decision decision;

    options.on_state_change = change_inside;
    inside_of = &a;
    must(ration_breaker_new(a.fleet, &options, &a.breaker, NULL), "breaker");
    (void)printf("before %s\n",
                 ration_err_text(ration_breaker_execute(a.breaker, give, &code, NULL, &result, &decision)));
    must(ration_breaker_stop(a.breaker), "stop");
    say_state("before", &a);
    for (int i = 0; i < 2; i++)
        must(ration_breaker_start(a.breaker), "start");
    say("started", &a, 0);
    for (int i = 0; i < 2; i++)
        must(ration_breaker_stop(a.breaker), "stop");
    say("stopped", &a, 0);
    must(ration_breaker_start(a.breaker), "start");
    must(ration_breaker_execute(a.breaker, try_inside, &a, NULL, &result, &decision), "execute");
    (void)printf("stopped by it %s %d\n", outcome_of(&decision), result);
    must(ration_breaker_start(a.breaker), "start");
    fail(&a, 3);
    await_state(&a, RATION_BREAKER_OPEN);
    for (int i = 0; i < 1200 && atomic_load(&inside_err[2]) == 0; i++)
        pause_ms(50);
    for (int i = 0; i < 3; i++)
        (void)printf("inside %s\n", ration_err_text(atomic_load(&inside_err[i])));
    stop(&a);
    ration_breaker_free(NULL);
}

/* It is stopped while one waits, and while one is inside. */
static void draining(const char *url)
{
    const ration_breaker_options options = options_of();
    process a = start(url, &options, 1);
    const ration_lease held = take(&a);
    waiting w;

    wait_begin(&w, &a);
    must(ration_breaker_stop(a.breaker), "stop");
    (void)pthread_join(w.thread, NULL);
    (void)printf("waited %s blocked %d\n", outcome_of(&w.decision), seen(&metrics[RATION_BREAKER_METRIC_BLOCKED]));
    must(ration_semaphore_release(a.semaphore, held, RATION_OUTCOME_SUCCESS), "release");
    stop(&a);
}

static process *stops;
static atomic_int check_stop, entered;

static bool stopping_health(void *ctx)
{
    (void)ctx;
    atomic_store(&check_stop, ration_breaker_stop(stops->breaker));
    (void)atomic_fetch_add(&entered, 1);
    pause_ms(500);
    return true;
}

/* A check that runs is awaited by whoever stops it, and what it came to counts. It cannot stop the breaker itself. */
static void last_check(const char *url)
{
    ration_breaker_options options = options_of();

    options.health = stopping_health;
    options.rule.recovery = RATION_RECOVERY_HEALTH_CHECK;
    options.rule.backoff_initial_us = 100 * MS;

    process a = start(url, &options, 0);

    stops = &a;
    fail(&a, 3);
    for (int i = 0; i < 1200 && atomic_load(&entered) == 0; i++)
        pause_ms(20);
    must(ration_breaker_stop(a.breaker), "stop");
    (void)printf("inside %s checked %d\n", ration_err_text(atomic_load(&check_stop)),
                 seen(&metrics[RATION_BREAKER_METRIC_CHECKED]));
    must(ration_breaker_start(a.breaker), "start");
    say_state("a", &a);
    stop(&a);
}

static void try_new(ration_fleet *fleet, const ration_breaker_options *options)
{
    ration_breaker *breaker = NULL;
    ration_fault fault = {.path = ""};
    const int err = ration_breaker_new(fleet, options, &breaker, &fault);

    (void)printf("%s %s\n", ration_err_text(err), fault.path);
}

/* Options that make no sense. */
static void faults(const char *url)
{
    const ration_fleet_options nowhere = {.redis = "http://x"};
    ration_breaker_options options = options_of();
    ration_fleet *fleet = fleet_of(url);

    options.id = "";
    try_new(fleet, &options);
    options = options_of();
    options.rule.strategy = RATION_BREAKER_NONE;
    try_new(fleet, &options);
    options = options_of();
    options.rule.quorum = 1001;
    try_new(fleet, &options);
    options = options_of();
    options.health = NULL;
    options.rule.recovery = RATION_RECOVERY_HEALTH_CHECK;
    try_new(fleet, &options);
    ration_fleet_free(fleet);
    must(ration_fleet_new(&nowhere, &fleet), "fleet");
    options = options_of();
    try_new(fleet, &options);
    ration_fleet_free(fleet);
}

int main(int argc, char **argv)
{
    static const scenario scenarios[] = {
        {"guarded", guarded},       {"per_call", per_call}, {"saturated", saturated}, {"opening", opening},
        {"spans", spans},           {"crowd", crowd},       {"life", life},           {"draining", draining},
        {"last_check", last_check}, {"faults", faults},     {"cancelled", cancelled},
    };

    return scenario_run(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
}
