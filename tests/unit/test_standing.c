/* SPDX-License-Identifier: MIT */
/* Where the limits of a call stand: which are told, in which order, with which numbers. */
#include <stdio.h>
#include <string.h>

#include "core/standing.h"
#include "support/check.h"
#include "support/world.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define UNIT RATION_UNIT

static world w;
static char text[4096];

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"account", "var:x"};

static const ration_limit_rule limits[] = {
    {.name = "third", .kind = RATION_KIND_RATE, .rate = {3 * UNIT, SECOND}, .burst = 3 * UNIT},
    {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .max = 9 * UNIT},
    {.name = "hour",
     .kind = RATION_KIND_QUOTA,
     .scope = by_account,
     .scope_count = 1,
     .max = 100 * UNIT,
     .window = {.period = RATION_PERIOD_HOUR}},
    {.name = "cost",
     .kind = RATION_KIND_QUOTA,
     .counts = RATION_COUNTS_COST,
     .scope = by_account,
     .scope_count = 1,
     .max = 1000 * UNIT,
     .window = {.rolling_us = 60 * SECOND}},
    {.name = "shadow",
     .kind = RATION_KIND_QUOTA,
     .max = UNIT,
     .enforce = RATION_ENFORCE_SHADOW,
     .window = {.period = RATION_PERIOD_HOUR}},
    {.name = "of-x",
     .kind = RATION_KIND_QUOTA,
     .scope = by_x,
     .scope_count = 2,
     .max = 2 * UNIT,
     .window = {.period = RATION_PERIOD_HOUR}},
};

static void say(const rn_standing *all, size_t count)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s %lld of %lld in %lld, more in %lld; ", all[i].limit,
                             all[i].cost ? " cost" : "", (long long)(all[i].remaining / UNIT),
                             (long long)(all[i].quota / UNIT), (long long)all[i].window_us, (long long)all[i].reset_us);
    }
}

static const char *standing(const char *name, size_t max)
{
    rn_standing all[RN_STANDINGS_MAX + 1];
    ration_lease lease = {0, 0};

    for (size_t i = 0; i < w.count; i++) {
        if (strcmp(w.names[i].name, name) == 0)
            lease = w.names[i].lease;
    }
    const size_t count = rn_engine_standing(w.engine, lease, all, max);
    say(all, count);
    return text;
}

static const char *standing_of_refusal(void)
{
    rn_standing one = {.limit = NULL};
    const size_t count = rn_engine_standing_of(w.engine, &w.last, &one);

    say(&one, count);
    return text;
}

static void the_tightest_come_first(void **state)
{
    (void)state;
    world_init(&w, limits, sizeof limits / sizeof limits[0]);
    CHECK_STR(world_ask(&w, HOUR, "a cost=10"), "granted");
    CHECK_STR(standing("a", RN_STANDINGS_MAX), "third 2 of 3 in 1000000, more in 333334; "
                                               "hour 99 of 100 in 3600000000, more in 3600000000; "
                                               "cost cost 990 of 1000 in 60000000, more in -1; ");
    CHECK_STR(standing("a", 1), "third 2 of 3 in 1000000, more in 333334; ");
    CHECK_STR(standing("a", 0), "");

    /* As seen by a call that costs more: calls like it are counted, and not units. */
    CHECK_STR(world_ask(&w, HOUR + 1800 * SECOND, "b cost=900 x=1"), "granted");
    CHECK_STR(standing("b", 2),
              "cost cost 100 of 1000 in 60000000, more in -1; of-x 1 of 2 in 3600000000, more in 1800000000; ");
    world_fini(&w);
}

static void a_lease_that_is_over_stands_nowhere(void **state)
{
    (void)state;
    world_init(&w, limits, sizeof limits / sizeof limits[0]);
    CHECK_STR(world_ask(&w, HOUR, "a"), "granted");
    CHECK_STR(world_release(&w, HOUR, "a", RATION_OUTCOME_SUCCESS, RATION_UNSET), "released");
    CHECK_STR(standing("a", 3), "");
    CHECK_STR(standing("nobody", 3), "");
    world_fini(&w);
}

static void a_refusal_tells_of_the_limit_that_it_names(void **state)
{
    (void)state;
    world_init(&w, limits, sizeof limits / sizeof limits[0]);
    for (int i = 0; i < 3; i++)
        CHECK_STR(world_ask(&w, HOUR, "a"), "granted");
    CHECK_STR(world_ask(&w, HOUR, "b"), "rate_limited third local 333334us");
    CHECK_STR(standing_of_refusal(), "third 0 of 3 in 1000000, more in 333334; ");
    CHECK_STR(world_ask(&w, HOUR + SECOND, "c x=7"), "granted");
    CHECK_STR(world_ask(&w, HOUR + SECOND, "d x=7"), "granted");
    CHECK_STR(world_ask(&w, HOUR + 2 * SECOND, "e x=7"), "quota_exhausted of-x acc/x=7 3598000000us");
    CHECK_STR(standing_of_refusal(), "of-x 0 of 2 in 3600000000, more in 3598000000; ");
    CHECK_STR(world_ask(&w, HOUR + 2 * SECOND, "f account=nobody"), "unknown_account - - -");
    CHECK_STR(standing_of_refusal(), "");
    world_fini(&w);
}

static void slots_are_not_told(void **state)
{
    static const ration_limit_rule one = {.name = "one", .kind = RATION_KIND_CONCURRENCY, .max = UNIT};

    (void)state;
    world_init(&w, &one, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(standing("a", 3), "");
    CHECK_STR(world_ask(&w, 0, "b"), "concurrency_full one local -");
    CHECK_STR(standing_of_refusal(), "");
    world_fini(&w);
}

/* What is kept for retries, and a margin, is not told to those who may not have it. */
static void reserves_are_left_out(void **state)
{
    static const ration_limit_rule two[] = {
        {.name = "rate", .kind = RATION_KIND_RATE, .rate = {UNIT, SECOND}, .burst = 10 * UNIT, .margin = UNIT},
        {.name = "hour",
         .kind = RATION_KIND_QUOTA,
         .scope = by_account,
         .scope_count = 1,
         .max = 100 * UNIT,
         .window = {.period = RATION_PERIOD_HOUR}},
    };
    ration_rules rules;
    ration_provider_rule provider;
    ration_account_rule accounts[2];

    (void)state;
    world_rules(&rules, &provider, accounts, two, 2);
    rules.retry_reserve = (ration_ratio){10, 100};
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, HOUR, "a"), "granted");
    CHECK_STR(standing("a", 2),
              "rate 8 of 9 in 10000000, more in 1000000; hour 89 of 90 in 3600000000, more in 3600000000; ");
    world_fini(&w);
}

/* However often it is asked: what was decided stays. */
static void asking_changes_nothing(void **state)
{
    (void)state;
    world_init(&w, limits, sizeof limits / sizeof limits[0]);
    CHECK_STR(world_ask(&w, HOUR, "a"), "granted");
    for (int i = 0; i < 100; i++)
        (void)standing("a", 3);
    CHECK_STR(world_ask(&w, HOUR, "b"), "granted");
    CHECK_STR(standing("b", 1), "third 1 of 3 in 1000000, more in 666667; "); /* one fits: the burst is what lacks */
    CHECK_STR(world_ask(&w, HOUR, "c"), "granted");
    CHECK_STR(world_ask(&w, HOUR, "d"), "rate_limited third local 333334us");
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tightest_come_first),
        cmocka_unit_test(a_lease_that_is_over_stands_nowhere),
        cmocka_unit_test(a_refusal_tells_of_the_limit_that_it_names),
        cmocka_unit_test(slots_are_not_told),
        cmocka_unit_test(reserves_are_left_out),
        cmocka_unit_test(asking_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
