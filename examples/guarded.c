/* SPDX-License-Identifier: MIT */
/*
 * A breaker and a semaphore that guard the same call, for all processes that use the same ids.
 *
 * Eight threads make forty calls. A call that finds more than three others there is refused by the provider ("too
 * many"): that is a failure of the breaker's, and halves the semaphore's limit. Where half of the last ten calls have
 * failed nobody calls for half a second, and those who wait for a slot wait no longer.
 *
 *     redis-server --port 6379 &
 *     cc guarded.c $(pkg-config --cflags --libs ration-fleet) -pthread
 *     ./a.out redis://127.0.0.1:6379
 */
#include <ration/fleet.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 8
#define CALLS 5
#define SECOND INT64_C(1000000)

enum { TOO_MANY = 429 };

static atomic_int inside, succeeded, failed, not_made;

/* The provider, as far as anybody knows it. */
static int call_provider(void *ctx)
{
    const struct timespec span = {0, 20000000L};
    const int others = atomic_fetch_add(&inside, 1);

    (void)ctx;
    (void)nanosleep(&span, NULL);
    (void)atomic_fetch_sub(&inside, 1);
    return others < 4 ? 0 : TOO_MANY;
}

/* For the slot alone: to the breaker every error is a failure. */
static ration_outcome outcome_of(void *ctx, int error)
{
    (void)ctx;
    return error == TOO_MANY ? RATION_OUTCOME_THROTTLED : RATION_OUTCOME_FAILURE;
}

static void *worker(void *ctx)
{
    ration_breaker *const breaker = ctx;
    ration_acquire lease = RATION_ACQUIRE_INIT;

    lease.timeout_us = 30 * SECOND;
    for (int i = 0; i < CALLS; i++) {
        ration_decision decision;
        int result = 0;

        if (ration_breaker_execute(breaker, call_provider, NULL, &lease, &result, &decision) != RATION_OK ||
            decision.result != RATION_GRANTED) {
            (void)atomic_fetch_add(&not_made, 1);
        } else {
            (void)atomic_fetch_add(result == 0 ? &succeeded : &failed, 1);
        }
    }
    return NULL;
}

static void on_limit(void *ctx, int64_t limit)
{
    (void)ctx;
    (void)printf("the limit is now %" PRId64 "\n", limit);
}

static void on_change(void *ctx, ration_circuit_state from, ration_circuit_state to, const char *cause)
{
    static const char *const names[] = {"closed", "open", "half-open"};

    (void)ctx;
    (void)printf("%s > %s: %s\n", names[from], names[to], cause);
}

static ration_semaphore *semaphore_of(ration_fleet *fleet)
{
    ration_semaphore_options options = RATION_SEMAPHORE_OPTIONS_INIT;
    ration_semaphore *semaphore = NULL;
    ration_fault fault = {.path = ""};

    options.id = "my-provider";
    options.rule.initial_limit = 6;
    options.on_limit_change = on_limit;
    if (ration_semaphore_new(fleet, &options, &semaphore, &fault) != RATION_OK)
        (void)fprintf(stderr, "%s: %s\n", fault.path, fault.text);
    return semaphore;
}

static ration_breaker *breaker_of(ration_fleet *fleet, ration_semaphore *semaphore)
{
    ration_breaker_options options = RATION_BREAKER_OPTIONS_INIT;
    ration_breaker *breaker = NULL;
    ration_fault fault = {.path = ""};

    options.id = "my-provider";
    options.rule.strategy = RATION_BREAKER_COUNT;
    options.rule.size = 10;
    options.rule.backoff_initial_us = SECOND / 2;
    options.semaphore = semaphore;
    options.outcome_on_error = outcome_of;
    options.on_state_change = on_change;
    if (ration_breaker_new(fleet, &options, &breaker, &fault) != RATION_OK)
        (void)fprintf(stderr, "%s: %s\n", fault.path, fault.text);
    return breaker;
}

static bool run(ration_breaker *breaker)
{
    pthread_t threads[THREADS];
    int count = 0;

    if (breaker == NULL || ration_breaker_start(breaker) != RATION_OK)
        return false;
    while (count < THREADS && pthread_create(&threads[count], NULL, worker, breaker) == 0)
        count++;
    for (int i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    return count == THREADS;
}

int main(int argc, char **argv)
{
    const ration_fleet_options where = {
        .redis = argc > 1 ? argv[1] : "redis://127.0.0.1:6379",
        .connect_timeout_us = 5 * SECOND,
        .command_timeout_us = 5 * SECOND,
    };
    ration_fleet *fleet = NULL;

    if (ration_fleet_new(&where, &fleet) != RATION_OK)
        return EXIT_FAILURE;

    ration_semaphore *const semaphore = semaphore_of(fleet);
    ration_breaker *const breaker = semaphore != NULL ? breaker_of(fleet, semaphore) : NULL;
    const bool fine = run(breaker);

    ration_breaker_free(breaker); /* it borrows the semaphore, so it goes first */
    ration_semaphore_free(semaphore);
    ration_fleet_free(fleet);
    (void)printf("%d succeeded, %d failed, %d were not made\n", atomic_load(&succeeded), atomic_load(&failed),
                 atomic_load(&not_made));
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
