/* SPDX-License-Identifier: MIT */
/*
 * A circuit breaker by itself: no config, no thread, no clock, no socket.
 *
 * Something is called twenty times in ten seconds. It is down from the third second to the sixth. After three failures
 * in a row the breaker refuses at once, and says when to ask again; then a single call tries. Time is a number that the
 * program hands over, so the ten seconds take none.
 *
 *     cc breaker.c $(pkg-config --cflags --libs ration)
 */
#include <ration/circuit.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MS INT64_C(1000)

/* Stands for the call: does it succeed at `now`? */
static bool call(ration_time now)
{
    return now.us < 3000 * MS || now.us >= 6000 * MS;
}

static void attempt(ration_circuit *breaker, ration_time now)
{
    ration_circuit_pass pass;
    ration_circuit_status status;

    (void)printf("%5" PRId64 " ms  ", now.us / MS);
    if (!ration_circuit_enter(breaker, now, &pass, &status)) {
        (void)printf("refused: %s; try again in %" PRId64 " ms\n", status.cause, (status.retry_at.us - now.us) / MS);
        return;
    }

    const bool ok = call(now);
    const bool changed = ration_circuit_result(breaker, now, &pass, ok);

    (void)printf("%s%s", pass.probe ? "probe " : "", ok ? "ok" : "failed");
    if (changed) {
        ration_circuit_get(breaker, now, &status);
        (void)printf("; the circuit is now %s (%s)", ration_circuit_state_name(status.state), status.cause);
    }
    (void)printf("\n");
}

int main(void)
{
    const ration_breaker_rule rule = {
        .strategy = RATION_BREAKER_CONSECUTIVE,
        .threshold = 3,
        .backoff_initial_us = 1000 * MS,
        .backoff_multiplier = {2, 1},
        .backoff_max_us = 10000 * MS,
    };
    ration_circuit *breaker = NULL;
    ration_fault fault = {.path = ""};

    if (ration_circuit_new(&rule, ration_time_of(0), NULL, &breaker, &fault) != RATION_OK) {
        (void)fprintf(stderr, "%s: %s\n", fault.path, fault.text);
        return EXIT_FAILURE;
    }
    for (int64_t ms = 500; ms <= 10000; ms += 500)
        attempt(breaker, ration_time_of(ms * MS));
    ration_circuit_free(breaker);
    return EXIT_SUCCESS;
}
