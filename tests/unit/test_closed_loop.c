/* SPDX-License-Identifier: MIT */
/*
 * Callers in a closed loop, by hand: a hidden ceiling of 2, calls of 100 ms, refusals of 10 ms. And that a limit which
 * learns does better than fixed ones, under a ceiling that moves.
 */
#include "simulate/closed_loop.h"

#include "support/check.h"

#define MS INT64_C(1000)
#define S INT64_C(1000000)
#define UNIT RATION_UNIT

static const ration_account_rule account = {.name = "acc", .provider = "p"};

static ration_provider_rule provider_of(const ration_limit_rule *limits, size_t count)
{
    return (ration_provider_rule){.name = "p",
                                  .limits = limits,
                                  .limit_count = count,
                                  .defaults = {.cost = RATION_UNSET, .hold_us = RATION_UNSET}};
}

static ration_limit_rule slots_of(int64_t max)
{
    return (ration_limit_rule){.name = "slots",
                               .kind = RATION_KIND_CONCURRENCY,
                               .max = max * UNIT,
                               .margin = RATION_UNSET,
                               .arrival_us = RATION_UNSET};
}

/* Play it for a second under one provider. */
static int run(const ration_provider_rule *provider, const rn_behaviour *behaviour, size_t callers,
               rn_closed_result *out)
{
    const ration_rules rules = {.providers = provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const rn_closed_options options = {
        .rules = &rules, .behaviour = behaviour, .callers = callers, .refusal_us = 10 * MS, .span_us = S};

    return rn_closed_loop_run(&options, out);
}

static void test_by_hand(void **state)
{
    static const struct {
        const char *why;
        int64_t limit;
        size_t callers;
        ration_ratio errors;
        uint64_t done, rate_limited, failed;
        int64_t used_ms;       /* calls times milliseconds that ran below the ceiling of 2 */
        int64_t held_above_ms; /* how long more than 2 leases were out */
        int64_t limit_above_ms;
    } rows[] = {
        {"one caller leaves half of it", 3, 1, {0, 1}, 10, 0, 0, 1000, 0, 1000},
        {"a limit of one too", 1, 3, {0, 1}, 10, 0, 0, 1000, 0, 0},
        {"the ceiling itself", 2, 3, {0, 1}, 20, 0, 0, 2000, 0, 0},
        {"errors take their time", 2, 3, {1, 1}, 0, 0, 20, 2000, 0, 0},
        /* At each multiple of 100 ms three go out; one comes back after 10 ms and is told to wait for the next. */
        {"one more than the ceiling", 3, 3, {0, 1}, 20, 10, 0, 2000, 100, 1000},
        {"however many wait", 3, 30, {0, 1}, 20, 10, 0, 2000, 100, 1000},
        {"two more", 4, 4, {0, 1}, 20, 20, 0, 2000, 100, 1000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ration_limit_rule limit = slots_of(rows[i].limit);
        const ration_provider_rule provider = provider_of(&limit, 1);
        const rn_behaviour behaviour = {
            .latency = {100 * MS, 0}, .ceiling = {2, 2, 0}, .errors = rows[i].errors, .retry_us = 90 * MS};
        rn_closed_result result;

        CHECK_ROW(rows[i].why);
        CHECK_EQ(run(&provider, &behaviour, rows[i].callers, &result), 0);
        CHECK_EQ(result.done, rows[i].done);
        CHECK_EQ(result.rate_limited, rows[i].rate_limited);
        CHECK_EQ(result.failed, rows[i].failed);
        CHECK_EQ(result.accepted.used_us, rows[i].used_ms * MS);
        CHECK_EQ(result.accepted.ceiling_us, 2 * S);
        CHECK_EQ(result.accepted.above_us, 0);
        CHECK_EQ(result.held.above_us, rows[i].held_above_ms * MS);
        CHECK_EQ(result.limit.above_us, rows[i].limit_above_ms * MS);
        CHECK_EQ(result.limit_low, rows[i].limit);
        CHECK_EQ(result.limit_high, rows[i].limit);
        CHECK_EQ(result.limit_rises + result.limit_falls, 0);
    }
}

/* A refusal that tells no time pauses for what the rules say, twice that at the next in a row. */
static void test_the_engine_pauses(void **state)
{
    const ration_limit_rule limit = slots_of(3);
    ration_provider_rule provider = provider_of(&limit, 1);
    const rn_behaviour behaviour = {.latency = {100 * MS, 0}, .ceiling = {2, 2, 0}};
    rn_closed_result result;

    (void)state;
    provider.errors.default_penalty_us = 200 * MS;
    CHECK_EQ(run(&provider, &behaviour, 3, &result), 0);
    /* Refused at 10 ms, again at 220 ms (of what left at 210 ms), and at 630 ms; then not before 1430 ms. */
    CHECK_EQ(result.rate_limited, 3);
    CHECK_EQ(result.done, 6);
    CHECK_EQ(result.accepted.used_us, 600 * MS);
}

static void test_what_was_let_in_stays(void **state)
{
    const ration_limit_rule limit = slots_of(4);
    const ration_provider_rule provider = provider_of(&limit, 1);
    /* 1, 2, 3, 2 for 150 ms each: what is let in from 300 ms on outlives the step down at 450 ms. */
    const rn_behaviour behaviour = {.latency = {200 * MS, 0}, .ceiling = {1, 3, 600 * MS}, .retry_us = 1 * MS};
    rn_closed_result result;

    (void)state;
    CHECK_EQ(run(&provider, &behaviour, 4, &result), 0);
    CHECK(result.accepted.above_us > 0);
    CHECK(result.accepted.over_us > 0);
    CHECK(result.rate_limited > 0);
}

static void test_the_same_seed_again(void **state)
{
    const ration_limit_rule limit = slots_of(3);
    const ration_provider_rule provider = provider_of(&limit, 1);
    rn_behaviour behaviour = {
        .seed = 1, .latency = {10 * MS, 9 * MS}, .errors = {1, 10}, .ceiling = {1, 3, 100 * MS}, .retry_us = 5 * MS};
    rn_closed_result one, two, other;

    (void)state;
    CHECK_EQ(run(&provider, &behaviour, 5, &one), 0);
    CHECK_EQ(run(&provider, &behaviour, 5, &two), 0);
    CHECK_EQ(memcmp(&one, &two, sizeof one), 0);
    behaviour.seed = 2;
    CHECK_EQ(run(&provider, &behaviour, 5, &other), 0);
    CHECK(one.accepted.used_us != other.accepted.used_us);
}

static ration_limit_rule adaptive_of(ration_adaptive_rule rule)
{
    return (ration_limit_rule){.name = "learned",
                               .kind = RATION_KIND_ADAPTIVE,
                               .adaptive = rule,
                               .margin = RATION_UNSET,
                               .arrival_us = RATION_UNSET};
}

/* One at once; two from 300 ms, three from 600 ms, which is refused at 610 ms; one from 700 ms, two from 910 ms. */
static void test_a_limit_that_learns(void **state)
{
    const ration_limit_rule limit =
        adaptive_of((ration_adaptive_rule){.initial_limit = 1, .window_us = 300 * MS, .cooldown_us = S});
    const ration_provider_rule provider = provider_of(&limit, 1);
    const rn_behaviour behaviour = {.latency = {100 * MS, 0}, .ceiling = {2, 2, 0}, .retry_us = 90 * MS};
    rn_closed_result result;

    (void)state;
    CHECK_EQ(run(&provider, &behaviour, 3, &result), 0);
    CHECK_EQ(result.done, 3 + 6 + 2 + 3);
    CHECK_EQ(result.rate_limited, 1);
    CHECK_EQ(result.accepted.used_us, (300 + 600 + 200 + 210 + 180) * MS);
    CHECK_EQ(result.held.above_us, 10 * MS);
    CHECK_EQ(result.limit.above_us, 10 * MS);
    CHECK_EQ(result.limit_low, 1);
    CHECK_EQ(result.limit_high, 3);
    CHECK_EQ(result.limit_rises, 3);
    CHECK_EQ(result.limit_falls, 1);
}

/* Ten minutes against 20..40/60s, as the guide has it. */
static rn_closed_result minutes_of(const ration_limit_rule *limit, uint64_t seed)
{
    static rn_behaviour behaviour;
    const ration_provider_rule provider = provider_of(limit, 1);
    const ration_rules rules = {.providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const rn_closed_options options = {
        .rules = &rules, .behaviour = &behaviour, .callers = 60, .refusal_us = 20 * MS, .span_us = 600 * S};
    rn_closed_result result;

    behaviour =
        (rn_behaviour){.seed = seed, .latency = {500 * MS, 100 * MS}, .ceiling = {20, 40, 60 * S}, .retry_us = S};
    CHECK_EQ(rn_closed_loop_run(&options, &result), 0);
    return result;
}

static void test_learning_beats_guessing(void **state)
{
    static const struct {
        const char *why;
        ration_adaptive_rule rule;
    } rows[] = {
        {"defaults with fast recovery", {.initial_limit = 20, .recovery_fast = true}},
        {"small steps, often",
         {.initial_limit = 20, .decrease_factor = {9, 10}, .window_us = 2 * S, .cooldown_us = 2 * S}},
        {"from far below", {.initial_limit = 1, .decrease_factor = {9, 10}, .window_us = S, .cooldown_us = 2 * S}},
        {"from far above", {.initial_limit = 200, .decrease_factor = {9, 10}, .window_us = S, .cooldown_us = 2 * S}},
    };
    const ration_limit_rule high = slots_of(40);
    const ration_limit_rule low = slots_of(20);

    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const rn_closed_result too_high = minutes_of(&high, seed);
        const rn_closed_result safe = minutes_of(&low, seed);

        CHECK_ROW("what is below the ceiling is never refused, and uses two thirds of it");
        CHECK_EQ(safe.rate_limited, 0);
        CHECK_EQ(safe.accepted.used_us, 12000 * S);
        CHECK_EQ(safe.accepted.ceiling_us, 18000 * S);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const ration_limit_rule limit = adaptive_of(rows[i].rule);
            const rn_closed_result learned = minutes_of(&limit, seed);

            CHECK_ROW(rows[i].why);
            CHECK(learned.rate_limited * 4 < too_high.rate_limited);
            CHECK(learned.limit.above_us * 4 < too_high.limit.above_us);
            CHECK(learned.accepted.used_us > too_high.accepted.used_us);
            CHECK(learned.accepted.used_us > safe.accepted.used_us);
        }
    }
}

/* The faster way back is worth something, and changes nothing where there is no way back. */
static void test_recovery_fast(void **state)
{
    const ration_limit_rule slow = adaptive_of((ration_adaptive_rule){.initial_limit = 20});
    const ration_limit_rule fast = adaptive_of((ration_adaptive_rule){.initial_limit = 20, .recovery_fast = true});
    const ration_limit_rule below =
        adaptive_of((ration_adaptive_rule){.initial_limit = 10, .max_limit = 20, .recovery_fast = true});

    (void)state;
    CHECK(minutes_of(&fast, 1).accepted.used_us > minutes_of(&slow, 1).accepted.used_us);

    const rn_closed_result bounded = minutes_of(&below, 1);
    CHECK_EQ(bounded.rate_limited, 0);
    CHECK_EQ(bounded.limit_rises, 10);
    CHECK_EQ(bounded.limit_high, 20);
}

static void test_what_cannot_be_played(void **state)
{
    const ration_limit_rule limit = slots_of(3);
    const ration_limit_rule rate = {
        .name = "rate", .kind = RATION_KIND_RATE, .rate = {UNIT, S}, .margin = RATION_UNSET};
    const ration_limit_rule used_up[] = {slots_of(3),
                                         {.name = "quota",
                                          .kind = RATION_KIND_QUOTA,
                                          .max = UNIT,
                                          .margin = RATION_UNSET,
                                          .window = {.period = RATION_PERIOD_DAY},
                                          .arrival_us = RATION_UNSET}};
    const ration_provider_rule provider = provider_of(&limit, 1);
    const ration_provider_rule rates = provider_of(&rate, 1);
    const ration_provider_rule refuses = provider_of(used_up, 2);
    const ration_provider_rule none = provider_of(NULL, 0);
    const rn_behaviour fine = {.latency = {100 * MS, 0}};
    const rn_behaviour at_once = {.latency = {100 * MS, 100 * MS}};
    rn_closed_result result = {.done = 7};

    (void)state;
    CHECK_EQ(run(&provider, &fine, 0, &result), RATION_ERR_INVALID);
    CHECK_EQ(run(&provider, &at_once, 1, &result), RATION_ERR_INVALID);
    CHECK_EQ(run(&rates, &fine, 1, &result), RATION_ERR_INVALID);
    CHECK_EQ(run(&none, &fine, 1, &result), RATION_ERR_INVALID);
    CHECK_ROW("a call is refused that would have waited for ever");
    CHECK_EQ(run(&refuses, &fine, 2, &result), RATION_ERR_INVALID);
    CHECK_EQ(result.done, 7);
    CHECK_ROW("without a ceiling nothing is refused");
    CHECK_EQ(run(&provider, &fine, 9, &result), 0);
    CHECK_EQ(result.done, 30);
    CHECK_EQ(result.rate_limited, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_the_engine_pauses),
        cmocka_unit_test(test_what_was_let_in_stays),
        cmocka_unit_test(test_the_same_seed_again),
        cmocka_unit_test(test_a_limit_that_learns),
        cmocka_unit_test(test_learning_beats_guessing),
        cmocka_unit_test(test_recovery_fast),
        cmocka_unit_test(test_what_cannot_be_played),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
