/* SPDX-License-Identifier: MIT */
/*
 * What a limit makes of a hidden ceiling that moves: 60 callers who want more than it, for 30 minutes of virtual time,
 * under fixed limits and under adaptive ones. The engine decides, observes each answer and pauses after a 429 as it
 * does in the gateway. No socket and no clock: the same table on every machine.
 *
 * usage: bench_adaptive [SEED]
 */
#include <stdio.h>
#include <stdlib.h>

#include "simulate/closed_loop.h"

#define UNIT RATION_UNIT
#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)

/* The limits, as a config has them. `adaptive.initial_limit` 0: fixed at `max`. */
static const struct {
    const char *name;
    int64_t max;
    ration_adaptive_rule adaptive;
} limits[] = {
    {"fixed 40", 40, {0}},
    {"fixed 20", 20, {0}},
    {"adaptive, defaults", 0, {.initial_limit = 20}},
    {"adaptive, recovery: fast", 0, {.initial_limit = 20, .recovery_fast = true}},
    {"adaptive, decreaseFactor: 0.9", 0, {.initial_limit = 20, .decrease_factor = {9, 10}}},
    {"the same, window: 2s, cooldown: 2s",
     0,
     {.initial_limit = 20, .decrease_factor = {9, 10}, .window_us = 2 * SECOND, .cooldown_us = 2 * SECOND}},
    {"adaptive, 0.75, 1s, 3s, recovery: fast",
     0,
     {.initial_limit = 20,
      .decrease_factor = {3, 4},
      .window_us = SECOND,
      .cooldown_us = 3 * SECOND,
      .recovery_fast = true}},
};

/* The providers. */
static const struct {
    const char *what;
    rn_capacity ceiling;
    int64_t retry_us;   /* what a 429 says; 0: nothing */
    int64_t penalty_us; /* errors.rateLimited.defaultPenalty; 0: as it is without */
} worlds[] = {
    {"20..40/60s, 429 with Retry-After: 1", {20, 40, MINUTE}, SECOND, 0},
    {"20..40/60s, 429 without Retry-After", {20, 40, MINUTE}, 0, 0},
    {"20..40/60s, 429 without Retry-After, defaultPenalty: 100ms", {20, 40, MINUTE}, 0, 100 * MS},
    {"20..40/10m, 429 with Retry-After: 1", {20, 40, 10 * MINUTE}, SECOND, 0},
};
enum { LIMITS = sizeof limits / sizeof limits[0], WORLDS = sizeof worlds / sizeof worlds[0] };

static double percent(int64_t part, int64_t whole)
{
    return 100.0 * (double)part / (double)whole;
}

static void play(size_t world, size_t i, uint64_t seed)
{
    const bool is_adaptive = limits[i].adaptive.initial_limit > 0;
    const ration_limit_rule limit = {
        .name = "at-once",
        .kind = is_adaptive ? RATION_KIND_ADAPTIVE : RATION_KIND_CONCURRENCY,
        .max = limits[i].max * UNIT,
        .adaptive = limits[i].adaptive,
        .margin = RATION_UNSET,
        .arrival_us = RATION_UNSET,
    };
    const ration_provider_rule provider = {
        .name = "p",
        .limits = &limit,
        .limit_count = 1,
        .errors = {.default_penalty_us = worlds[world].penalty_us},
        .defaults = {.cost = RATION_UNSET, .hold_us = RATION_UNSET},
    };
    const ration_account_rule account = {.name = "a", .provider = "p"};
    const ration_rules rules = {.providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const rn_behaviour behaviour = {
        .seed = seed,
        .latency = {500 * MS, 100 * MS},
        .ceiling = worlds[world].ceiling,
        .retry_us = worlds[world].retry_us,
    };
    const rn_closed_options options = {
        .rules = &rules, .behaviour = &behaviour, .callers = 60, .refusal_us = 20 * MS, .span_us = 30 * MINUTE};
    rn_closed_result r;

    if (rn_closed_loop_run(&options, &r) != 0)
        abort();
    (void)printf("| %-38s | %5.1f %% | %5.1f %% | %5.1f %% | %5llu | %6llu | %lld-%lld |\n", limits[i].name,
                 percent(r.limit.above_us, r.limit.at_us), percent(r.held.above_us, r.held.at_us),
                 percent(r.accepted.used_us, r.accepted.ceiling_us), (unsigned long long)r.rate_limited,
                 (unsigned long long)r.done, (long long)r.limit_low, (long long)r.limit_high);
}

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;

    for (size_t world = 0; world < WORLDS; world++) {
        (void)printf("%s\n\n| %-38s | limit above | held above | utilisation | 429s | done | limit |\n"
                     "|---|---|---|---|---|---|---|\n",
                     worlds[world].what, "limit");
        for (size_t i = 0; i < LIMITS; i++)
            play(world, i, seed);
        (void)printf("\n");
    }
    return EXIT_SUCCESS;
}
