/* SPDX-License-Identifier: MIT */
/*
 * A breaker that all processes of a fleet share, for a provider that is ill for a while.
 *
 * It calls once in a tenth of a second. Three failures in a row, of whatever process, and nobody calls any more; then
 * one process looks after it every half second, and once it is well all go on. Start it several times at once, with the
 * same Redis, to see that one is enough to stop the others.
 *
 *     redis-server --port 6379 &
 *     cc fleet_breaker.c $(pkg-config --cflags --libs ration-fleet)
 *     ./a.out redis://127.0.0.1:6379
 */
#include <ration/fleet.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SECOND INT64_C(1000000)

static atomic_int looks;

static void rest(void)
{
    const struct timespec span = {0, 100000000L};

    (void)nanosleep(&span, NULL);
}

/* The provider, as far as anybody knows it: it is well again when it has been looked at twice. */
static bool is_well(void)
{
    return atomic_load(&looks) > 2;
}

static int call_provider(void *ctx)
{
    (void)ctx;
    return is_well() ? 0 : -1;
}

/* Asked of one process of all, in a thread of its own, so it may take its time. */
static bool look_after_it(void *ctx)
{
    (void)ctx;
    (void)atomic_fetch_add(&looks, 1);
    return is_well();
}

static void on_change(void *ctx, ration_circuit_state from, ration_circuit_state to, const char *cause)
{
    static const char *const names[] = {"closed", "open", "half-open"};

    (void)ctx;
    (void)printf("%s > %s: %s\n", names[from], names[to], cause);
}

static int run(ration_breaker *breaker)
{
    int succeeded = 0, failed = 0, blocked = 0;

    while (succeeded < 3) {
        ration_decision decision;
        int result = 0;
        const int err = ration_breaker_execute(breaker, call_provider, NULL, NULL, &result, &decision);

        if (err != RATION_OK) {
            (void)fprintf(stderr, "%s\n", ration_err_text(err));
            return EXIT_FAILURE;
        }
        if (decision.result != RATION_GRANTED) {
            blocked++;
        } else if (result == 0) {
            succeeded++;
        } else {
            failed++;
        }
        rest();
    }
    (void)printf("%d succeeded, %d failed, %d were blocked\n", succeeded, failed, blocked);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const ration_fleet_options where = {
        .redis = argc > 1 ? argv[1] : "redis://127.0.0.1:6379",
        .connect_timeout_us = 5 * SECOND,
        .command_timeout_us = 5 * SECOND,
    };
    ration_breaker_options options = RATION_BREAKER_OPTIONS_INIT;
    ration_fault fault = {.path = ""};
    ration_fleet *fleet = NULL;
    ration_breaker *breaker = NULL;
    int status = EXIT_FAILURE;

    options.id = "my-provider";
    options.rule.strategy = RATION_BREAKER_CONSECUTIVE;
    options.rule.threshold = 3;
    options.rule.recovery = RATION_RECOVERY_HEALTH_CHECK;
    options.rule.backoff_initial_us = SECOND / 2;
    options.health = look_after_it;
    options.on_state_change = on_change;
    if (ration_fleet_new(&where, &fleet) != RATION_OK)
        return EXIT_FAILURE;
    if (ration_breaker_new(fleet, &options, &breaker, &fault) != RATION_OK) {
        (void)fprintf(stderr, "%s: %s\n", fault.path, fault.text);
    } else if (ration_breaker_start(breaker) == RATION_OK) {
        status = run(breaker);
    }
    ration_breaker_free(breaker);
    ration_fleet_free(fleet);
    return status;
}
