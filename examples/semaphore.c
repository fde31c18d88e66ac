/* SPDX-License-Identifier: MIT */
/*
 * A semaphore that all processes of a fleet share, for a provider that takes so much at once and says so to nobody.
 *
 * Six threads make thirty calls between them. Whoever has a lease calls; a call that finds more than four others there
 * is refused by the provider ("too many"), which halves the limit, for this process and for all others that use the
 * same id. Start it several times at once to see that.
 *
 *     redis-server --port 6379 &
 *     cc semaphore.c $(pkg-config --cflags --libs ration-fleet) -pthread
 *     ./a.out redis://127.0.0.1:6379
 */
#include <ration/fleet.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 6
#define CALLS 5
#define SECOND INT64_C(1000000)

enum { TOO_MANY = 429 };

static atomic_int inside, succeeded, too_many;

/* The provider, as far as anybody knows it. */
static int call_provider(void *ctx)
{
    const struct timespec span = {0, 20000000L};
    int others = atomic_fetch_add(&inside, 1);

    (void)ctx;
    (void)nanosleep(&span, NULL);
    (void)atomic_fetch_sub(&inside, 1);
    return others < 4 ? 0 : TOO_MANY;
}

/* The library looks at no error: this says what one means. */
static ration_outcome outcome_of(void *ctx, int error)
{
    (void)ctx;
    return error == TOO_MANY ? RATION_OUTCOME_THROTTLED : RATION_OUTCOME_FAILURE;
}

static void *worker(void *ctx)
{
    ration_semaphore *const semaphore = ctx;
    ration_acquire how = RATION_ACQUIRE_INIT;

    how.timeout_us = 30 * SECOND;
    how.outcome_on_error = outcome_of;
    for (int i = 0; i < CALLS; i++) {
        ration_decision decision;
        int result = 0;
        const int err = ration_semaphore_with_lease(semaphore, &how, call_provider, NULL, &result, &decision);

        if (err != RATION_OK) {
            (void)fprintf(stderr, "%s\n", ration_err_text(err));
        } else if (decision.result != RATION_GRANTED) {
            (void)fprintf(stderr, "not called: %s\n", ration_reason_name(decision.reason));
        } else {
            (void)atomic_fetch_add(result == 0 ? &succeeded : &too_many, 1);
        }
    }
    return NULL;
}

static void on_limit(void *ctx, int64_t limit)
{
    (void)ctx;
    (void)printf("the limit is now %" PRId64 "\n", limit);
}

int main(int argc, char **argv)
{
    const ration_fleet_options where = {
        .redis = argc > 1 ? argv[1] : "redis://127.0.0.1:6379",
        .connect_timeout_us = 5 * SECOND,
        .command_timeout_us = 5 * SECOND,
    };
    ration_semaphore_options options = RATION_SEMAPHORE_OPTIONS_INIT;
    ration_fault fault = {.path = ""};
    ration_fleet *fleet = NULL;
    ration_semaphore *semaphore = NULL;
    pthread_t threads[THREADS];

    options.id = "my-provider";
    options.rule.initial_limit = 6;
    options.on_limit_change = on_limit;
    if (ration_fleet_new(&where, &fleet) != RATION_OK)
        return EXIT_FAILURE;
    if (ration_semaphore_new(fleet, &options, &semaphore, &fault) != RATION_OK) {
        (void)fprintf(stderr, "%s: %s\n", fault.path, fault.text);
        ration_fleet_free(fleet);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, worker, semaphore) != 0)
            return EXIT_FAILURE;
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    (void)printf("%d calls succeeded, %d were too many\n", atomic_load(&succeeded), atomic_load(&too_many));
    ration_semaphore_free(semaphore);
    ration_fleet_free(fleet);
    return EXIT_SUCCESS;
}
