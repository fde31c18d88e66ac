/* SPDX-License-Identifier: MIT */
/*
 * The engine by itself: no thread, no clock, no socket.
 *
 * A provider allows two calls a second. Three are asked for at the same instant: one may leave, one waits for its turn,
 * and one that does not want to wait is told how long it would be. Time is a number that the program hands over, so the
 * second that passes here takes none.
 *
 *     cc decide.c $(pkg-config --cflags --libs ration)
 */
#include <ration/ration.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static ration_engine *engine_make(ration_time now)
{
    const ration_limit_rule limits[] = {{
        .name = "per-second",
        .kind = RATION_KIND_RATE,
        .rate = {.units = 2 * RATION_UNIT, .per_us = 1000000},
        .burst = RATION_UNIT,
        .margin = 0,
    }};
    const ration_provider_rule providers[] = {{.name = "api", .limits = limits, .limit_count = 1}};
    const ration_account_rule accounts[] = {{.name = "mine", .provider = "api"}};
    const ration_rules rules = {.providers = providers, .provider_count = 1, .accounts = accounts, .account_count = 1};
    const ration_engine_options options = {.rules = &rules};
    ration_engine *engine = NULL;
    ration_fault fault = {.path = ""};

    if (ration_engine_new(&options, now, &engine, &fault) != RATION_OK) {
        (void)fprintf(stderr, "%s: %s\n", fault.path, fault.text);
        exit(EXIT_FAILURE);
    }
    return engine;
}

/* Asks for one call that would wait at most `wait_us`, and says what came of it. */
static ration_decision ask(ration_engine *engine, ration_time now, int64_t wait_us)
{
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision;

    request.account = ration_text_of("mine");
    request.wait_us = wait_us;

    const int err = ration_engine_submit(engine, now, &request, &decision);

    if (err != RATION_OK) {
        (void)fprintf(stderr, "%s\n", ration_err_text(err));
        exit(EXIT_FAILURE);
    }
    if (decision.result == RATION_REFUSED) {
        char why[256];

        (void)ration_decision_explain(&decision, why, sizeof why);
        (void)printf("refused (%s): %s\n", ration_reason_name(decision.reason), why);
    } else {
        (void)printf("%s\n", decision.result == RATION_GRANTED ? "granted" : "queued");
    }
    return decision;
}

int main(void)
{
    ration_time now = ration_time_of(0);
    ration_engine *engine = engine_make(now);
    const ration_completion done = RATION_COMPLETION_INIT;
    const ration_decision first = ask(engine, now, 0);
    ration_event event;

    (void)ask(engine, now, 1000000);
    (void)ask(engine, now, 0);
    (void)ration_engine_release(engine, now, first.lease, &done);

    /* An event loop would sleep until then. */
    now = ration_engine_next_deadline(engine);
    (void)ration_engine_advance(engine, now);
    while (ration_engine_next_event(engine, &event)) {
        if (event.type == RATION_EVENT_GRANTED) {
            (void)printf("granted after %" PRId64 " ms\n", event.waited_us / 1000);
            (void)ration_engine_release(engine, now, event.lease, &done);
        }
    }
    ration_engine_free(engine);
    return EXIT_SUCCESS;
}
