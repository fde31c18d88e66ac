/* SPDX-License-Identifier: MIT */
/*
 * An adaptive limit by itself: no config, no thread, no clock, no socket.
 *
 * A provider takes ten calls at once and says so to nobody. Every second sixteen callers want to call it, as many as
 * the limit lets through do, and what is too much is refused by the provider. The limit climbs until that happens,
 * steps back, and climbs again. Time is a number that the program hands over, so the forty seconds take none.
 *
 *     cc adaptive.c $(pkg-config --cflags --libs ration)
 */
#include <ration/adaptive.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SECOND INT64_C(1000000)
#define CALLERS 16
#define HIDDEN_CEILING 10

/* One second: all who are let through call at once, and are done before the next. Returns how many were let through. */
static int second(ration_adaptive *adaptive, ration_time now, int *too_many)
{
    const ration_adaptive_request request = RATION_ADAPTIVE_REQUEST_INIT;
    ration_lease leases[CALLERS];
    ration_decision decision;
    int let = 0;

    for (int i = 0; i < CALLERS; i++) {
        if (ration_adaptive_acquire(adaptive, now, &request, &decision) != RATION_OK)
            exit(EXIT_FAILURE);
        if (decision.result == RATION_GRANTED)
            leases[let++] = decision.lease;
    }
    for (int i = 0; i < let; i++) {
        const bool taken = i < HIDDEN_CEILING;

        *too_many += taken ? 0 : 1;
        (void)ration_adaptive_release(adaptive, now, leases[i],
                                      taken ? RATION_OUTCOME_SUCCESS : RATION_OUTCOME_THROTTLED,
                                      ration_time_of(RATION_NEVER_US));
    }
    return let;
}

int main(void)
{
    const ration_adaptive_rule rule = {
        .initial_limit = 6,
        .max_limit = 100,
        .decrease_factor = {3, 4},
        .window_us = SECOND,
        .cooldown_us = 3 * SECOND,
    };
    ration_adaptive *adaptive = NULL;
    ration_fault fault = {.path = ""};
    int too_many = 0;

    if (ration_adaptive_new(&rule, ration_time_of(0), NULL, &adaptive, &fault) != RATION_OK) {
        (void)fprintf(stderr, "%s: %s\n", fault.path, fault.text);
        return EXIT_FAILURE;
    }
    for (int64_t s = 0; s < 40; s++) {
        const int let = second(adaptive, ration_time_of(s * SECOND), &too_many);

        (void)printf("%3" PRId64 " s  let through %2d, the limit is now %2" PRId64 "\n", s, let,
                     ration_adaptive_limit(adaptive));
    }
    (void)printf("%d calls were too many\n", too_many);
    ration_adaptive_free(adaptive);
    return EXIT_SUCCESS;
}
