/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/world.h"

#include <stdio.h>

#define MS(n) ((int64_t)(n)*1000)
#define UNIT RATION_UNIT

static world w;

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};

#define ADAPTIVE(...)                                                                                                  \
    {                                                                                                                  \
        .name = "l", .kind = RATION_KIND_ADAPTIVE, .scope = by_account, .scope_count = 1, .adaptive = { __VA_ARGS__ }  \
    }
#define SLOTS(NAME, SCOPE, MAX)                                                                                        \
    {                                                                                                                  \
        .name = (NAME), .kind = RATION_KIND_CONCURRENCY, .scope = (SCOPE), .scope_count = 1, .max = (MAX)*UNIT         \
    }

static const ration_tenant_share one_and_two[] = {{.name = "a", .weight = 1}, {.name = "b", .weight = 2}};
static const ration_tenant_share equals[] = {{.name = "a", .weight = 1}, {.name = "b", .weight = 1}};

#define FOLLOWS(TENANTS)                                                                                               \
    {                                                                                                                  \
        .name = "fair", .kind = RATION_KIND_SHARE, .counts = RATION_COUNTS_REQUESTS, .scope = by_account,              \
        .scope_count = 1, .share = {                                                                                   \
            .follows = "l",                                                                                            \
            .tenants = (TENANTS),                                                                                      \
            .tenant_count = 2,                                                                                         \
            .reclaim_horizon_us = MS(100),                                                                             \
            .idle_after_us = MS(200)                                                                                   \
        }                                                                                                              \
    }

static const char *ask(int64_t at_ms, const char *request)
{
    return world_ask(&w, MS(at_ms), request);
}

static const char *end(int64_t at_ms, const char *name, ration_outcome outcome)
{
    return world_release(&w, MS(at_ms), name, outcome, RATION_UNSET);
}

static const char *done(int64_t at_ms, const char *name)
{
    return end(at_ms, name, RATION_OUTCOME_SUCCESS);
}

static void the_moment_of_growth_wakes_a_waiter(void **state)
{
    static const ration_limit_rule limits[] = {ADAPTIVE(.initial_limit = 1)};

    (void)state;
    world_init(&w, limits, 1);
    CHECK_STR(ask(1000, "a"), "granted");
    CHECK_STR(ask(2000, "b wait=60000"), "queued");
    CHECK_STR(ask(2000, "c wait=60000"), "queued");
    world_advance(&w, MS(6000) - 1);
    CHECK_STR(world_events(&w), "");
    world_advance(&w, MS(6000)); /* one window after the first acquire */
    CHECK_STR(world_events(&w), "limit l 2;granted b 4000;");
    world_advance(&w, MS(11000));
    CHECK_STR(world_events(&w), "limit l 3;granted c 9000;");
    world_advance(&w, MS(60000)); /* nobody wants more: quiet traffic never grows it */
    CHECK_STR(world_events(&w), "");
    CHECK_STR(ask(60000, "d"), "granted"); /* finds the cap full, and it grows at once */
    CHECK_STR(world_events(&w), "limit l 4;");
    world_fini(&w);
}

static void a_decrease_drains_before_anybody_goes(void **state)
{
    static const ration_limit_rule limits[] = {ADAPTIVE(.initial_limit = 4)};
    static const char *const names[] = {"a", "b", "c", "d"};

    (void)state;
    world_init(&w, limits, 1);
    for (int i = 0; i < 4; i++)
        CHECK_STR(ask(0, names[i]), "granted");
    CHECK_STR(ask(0, "w wait=4000"), "queued");
    CHECK_STR(world_observe(&w, MS(100), "a", 429, "Retry-After", "1"), "observed");
    CHECK_STR(world_events(&w), "limit l 2;");
    CHECK_STR(done(1500, "a"), "released");
    CHECK_STR(done(1500, "b"), "released");
    CHECK_STR(world_events(&w), ""); /* two held, two allowed */
    CHECK_STR(done(1600, "c"), "released");
    CHECK_STR(world_events(&w), "granted w 1600;");
    CHECK_STR(ask(1600, "x"), "adaptive_full l acc -");
    CHECK_STR(end(1600, "d", RATION_OUTCOME_FAILURE), "released"); /* changes nothing */
    CHECK_STR(ask(1600, "x"), "granted");
    CHECK_STR(world_events(&w), "");
    world_fini(&w);
}

static void a_burst_of_throttles_is_one_event(void **state)
{
    static const ration_limit_rule limits[] = {ADAPTIVE(.initial_limit = 100)};

    (void)state;
    world_init(&w, limits, 1);
    for (int i = 0; i < 100; i++) {
        char name[16];

        snprintf(name, sizeof name, "r%d", i);
        CHECK_STR(ask(0, name), "granted");
    }
    for (int i = 0; i < 100; i++) {
        char name[16];

        snprintf(name, sizeof name, "r%d", i);
        CHECK_STR(end(10 + i, name, RATION_OUTCOME_THROTTLED), "released");
    }
    CHECK_STR(world_events(&w), "limit l 50;");
    world_fini(&w);
}

/* A class at its own cap is no obstacle for another. */
static void places_are_per_class(void **state)
{
    static const ration_class_rule classes[] = {{"fast", {1, 2}}, {"bulk", {0, 0}}};
    static const ration_limit_rule limits[] = {ADAPTIVE(.initial_limit = 4, .classes = classes, .class_count = 2)};

    (void)state;
    world_init(&w, limits, 1);
    CHECK_STR(ask(0, "b1 class=bulk"), "granted");
    CHECK_STR(ask(0, "b2 class=bulk"), "granted");
    CHECK_STR(ask(0, "b3 class=bulk wait=4000"), "queued"); /* the rest is kept for fast */
    CHECK_STR(ask(0, "f1 class=fast"), "granted");
    CHECK_STR(ask(0, "f2 class=fast"), "granted");
    CHECK_STR(ask(0, "f3 class=fast wait=4000"), "queued");
    CHECK_STR(ask(0, "n"), "adaptive_full l acc -");
    CHECK_STR(ask(0, "q class=other"), "unknown_class l acc -");
    CHECK_STR(done(1, "f1"), "released");
    CHECK_STR(world_events(&w), "granted f3 1;"); /* although b3 came first */
    CHECK_STR(done(2, "b1"), "released");
    CHECK_STR(world_events(&w), "granted b3 2;");
    world_fini(&w);
}

static void no_demand_without_asking(void **state)
{
    static const ration_limit_rule limits[] = {
        ADAPTIVE(.initial_limit = 1),
        {.name = "daily",
         .kind = RATION_KIND_QUOTA,
         .scope = by_x,
         .scope_count = 1,
         .max = 5 * UNIT, /* of which one is ours */
         .window = {.period = RATION_PERIOD_DAY}},
    };

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(ask(0, "a x=1"), "granted");
    CHECK_STR(ask(9000, "b x=1"), "quota_exhausted daily x=1 -");
    CHECK_STR(world_events(&w), ""); /* no wait cures the quota, so it has not asked */
    CHECK_STR(ask(9000, "c"), "granted");
    CHECK_STR(world_events(&w), "limit l 2;");
    world_fini(&w);
}

/* A check answers as an acquire would, and the limit stays where it is. */
static void a_check_foresees_growth(void **state)
{
    static const ration_limit_rule limits[] = {ADAPTIVE(.initial_limit = 1)};
    ration_request r = RATION_REQUEST_INIT;
    ration_decision d;

    (void)state;
    world_init(&w, limits, 1);
    r.account = ration_text_of("acc");
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_EQ(ration_engine_check(w.engine, ration_time_of(MS(4999)), &r, RATION_CHECK_ACQUIRE, &d), RATION_OK);
    CHECK_EQ(d.result, RATION_REFUSED);
    CHECK_EQ(ration_engine_check(w.engine, ration_time_of(MS(5000)), &r, RATION_CHECK_ACQUIRE, &d), RATION_OK);
    CHECK_EQ(d.result, RATION_GRANTED);
    CHECK_EQ(ration_engine_check(w.engine, ration_time_of(MS(5000)), &r, RATION_CHECK_ENFORCER, &d), RATION_OK);
    CHECK_EQ(d.result, RATION_GRANTED); /* the provider knows nothing of it */
    CHECK_STR(world_events(&w), "");
    CHECK_STR(ask(5000, "b"), "granted");
    CHECK_STR(world_events(&w), "limit l 2;");
    world_fini(&w);
}

static void an_idle_class_lends_within_the_horizon(void **state)
{
    static const ration_class_rule classes[] = {{"fast", {1, 2}}, {"bulk", {0, 0}}};
    static const ration_limit_rule limits[] = {ADAPTIVE(.initial_limit = 4, .max_limit = 4, .classes = classes,
                                                        .class_count = 2, .lend_horizon_us = MS(100),
                                                        .lend_idle_us = MS(200))};

    (void)state;
    world_init(&w, limits, 1);
    CHECK_STR(ask(0, "f0 class=fast"), "granted");
    CHECK_STR(done(0, "f0"), "released");
    CHECK_STR(ask(0, "b1 class=bulk"), "granted");
    CHECK_STR(ask(0, "b2 class=bulk"), "granted");
    CHECK_STR(ask(0, "b3 class=bulk hold=100 wait=4000"), "queued"); /* fast is not idle yet */
    CHECK_STR(ask(0, "b4 class=bulk hold=101 wait=4000"), "queued"); /* would hold too long */
    world_advance(&w, MS(200) - 1);
    CHECK_STR(world_events(&w), "");
    world_advance(&w, MS(200));
    CHECK_STR(world_events(&w), "granted b3 200;");
    CHECK_STR(ask(250, "f1 class=fast"), "granted"); /* one was not lent */
    CHECK_STR(ask(250, "f2 class=fast wait=4000"), "queued");
    CHECK_STR(done(300, "b3"), "released");
    CHECK_STR(world_events(&w), "granted f2 50;");
    world_fini(&w);
}

/* A charge that only a loan makes possible is not refused for ever. */
static void a_large_charge_fits_on_loan(void **state)
{
    static const ration_class_rule classes[] = {{"fast", {3, 4}}, {"bulk", {0, 0}}};
    static const ration_limit_rule limits[] = {{.name = "l",
                                                .kind = RATION_KIND_ADAPTIVE,
                                                .counts = RATION_COUNTS_COST,
                                                .scope = by_account,
                                                .scope_count = 1,
                                                .adaptive = {.initial_limit = 4,
                                                             .max_limit = 4,
                                                             .classes = classes,
                                                             .class_count = 2,
                                                             .lend_horizon_us = MS(100),
                                                             .lend_idle_us = MS(200)}}};

    (void)state;
    world_init(&w, limits, 1);
    CHECK_STR(ask(0, "b class=bulk cost=3 hold=101"), "cost_exceeds_limit l acc -");
    CHECK_STR(ask(0, "b class=bulk cost=5 hold=100"), "cost_exceeds_limit l acc -");
    CHECK_STR(ask(0, "b class=bulk cost=3 hold=100"), "granted");
    world_fini(&w);
}

static void a_pause_until_the_providers_time(void **state)
{
    static const ration_limit_rule limits[] = {
        ADAPTIVE(.initial_limit = 8, .pause_on_retry_after = true),
        {.name = "narrow", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = 9 * UNIT},
    };

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(ask(0, "a x=1"), "granted");
    CHECK_STR(ask(0, "b x=1"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, "Retry-After", "3"), "observed");
    /* The penalty falls on the narrowest scope (of equals, the first), and in any case on the adaptive limit. */
    CHECK_STR(ask(0, "c x=2"), "penalized l acc 3000000us");
    CHECK_STR(world_events(&w), "limit l 4;");
    world_fini(&w);
}

static void a_share_follows(void **state)
{
    static const ration_limit_rule limits[] = {
        FOLLOWS(equals),
        ADAPTIVE(.initial_limit = 4),
    };
    static const char *const names[] = {"a1", "a2"};

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(ask(0, "a1 tenant=a hold=1000"), "granted");
    CHECK_STR(ask(0, "a2 tenant=a hold=1000"), "granted");
    CHECK_STR(ask(0, "a3 tenant=a hold=1000"), "hold_exceeds_reclaim_horizon fair acc -"); /* half of 4 is 2 */
    CHECK_STR(ask(0, "b1 tenant=b hold=1000"), "granted");
    CHECK_STR(world_observe(&w, MS(1), "b1", 429, "Retry-After", "0.001"), "observed");
    CHECK_STR(world_events(&w), "limit l 2;");
    CHECK_STR(done(10, "b1"), "released");
    CHECK_STR(ask(10, "b2 tenant=b hold=10 wait=4000"), "queued"); /* a holds two of two */
    for (int i = 0; i < 2; i++)
        CHECK_STR(done(20 + i, names[i]), "released");
    CHECK_STR(world_events(&w), "granted b2 10;");
    world_fini(&w);
}

/* A class asks, and lends no more to one that waits: that finds its cap full at this moment, and the limit grows. */
static void asking_that_fills_a_cap_is_demand(void **state)
{
    static const ration_class_rule classes[] = {{"fast", {1, 2}}};
    static const ration_limit_rule limits[] = {
        ADAPTIVE(.initial_limit = 1, .classes = classes, .class_count = 1, .lend_horizon_us = MS(100),
                 .lend_idle_us = MS(200)),
        SLOTS("slots", by_x, 1),
    };

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(ask(0, "f class=fast account=bcc x=1"), "granted"); /* another limit, the same slot */
    CHECK_STR(ask(0, "f0 class=fast"), "granted");
    CHECK_STR(done(0, "f0"), "released");
    CHECK_STR(ask(0, "w hold=100 x=1 wait=20000"), "queued"); /* short of both */
    world_advance(&w, MS(200));                               /* the reserve is lent to it */
    world_advance(&w, MS(6000));
    CHECK_STR(world_events(&w), "");
    CHECK_STR(ask(7000, "no class=fast x=1"), "concurrency_full slots x=1 -");
    CHECK_STR(world_events(&w), "limit l 2;");
    world_fini(&w);
}

/* One change at a time: the first leaves, the next finds the cap full and is demand, before it must leave too. */
static void who_leaves_makes_room_for_demand(void **state)
{
    static const ration_class_rule classes[] = {{"fast", {1, 2}}};
    static const ration_limit_rule limits[] = {
        SLOTS("slots", by_x, 1),
        ADAPTIVE(.initial_limit = 2, .classes = classes, .class_count = 1, .lend_horizon_us = MS(100),
                 .lend_idle_us = MS(200)),
    };

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(ask(0, "h account=bcc x=1"), "granted");
    CHECK_STR(ask(0, "g"), "granted");
    CHECK_STR(ask(0, "f class=fast"), "granted");
    CHECK_STR(done(0, "f"), "released");
    CHECK_STR(ask(0, "w1 hold=50 x=1 wait=20000"), "queued");
    CHECK_STR(ask(0, "w2 hold=5000 x=1 wait=20000"), "queued");
    world_advance(&w, MS(6000)); /* w1 may have the reserve that is lent */
    CHECK_STR(world_events(&w), "");
    CHECK_STR(world_observe(&w, MS(6000), "h", 429, "Retry-After", "100"), "observed");
    CHECK_STR(world_events(&w),
              "limit l 1;refused w1 deadline slots 6000;limit l 3;refused w2 deadline slots 6000;"); /* 1: of bcc */
    world_fini(&w);
}

/* Chapter 1, step 2, becomes true for who waits: its hold is too long to borrow, and its guarantee has shrunk. */
static void a_guarantee_that_shrinks_refuses_who_cannot_borrow(void **state)
{
    static const ration_limit_rule limits[] = {FOLLOWS(one_and_two), ADAPTIVE(.initial_limit = 3)};

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(ask(0, "a1 tenant=a hold=1000"), "granted");
    CHECK_STR(ask(0, "a2 tenant=a hold=1000 wait=4000"), "queued"); /* its own lease will come back */
    CHECK_STR(ask(0, "a3 tenant=a hold=100 wait=4000"), "queued");
    CHECK_STR(world_observe(&w, MS(1), "a1", 429, "Retry-After", "0.001"), "observed");
    CHECK_STR(world_events(&w), "limit l 1;refused a2 hold_exceeds_reclaim_horizon fair 1;");
    CHECK_STR(done(2, "a1"), "released");
    CHECK_STR(world_events(&w), "granted a3 2;");
    world_fini(&w);
}

/* What its guarantee was enough for must be borrowed now; nobody has told it, but it is told when there is some. */
static void a_guarantee_that_shrinks_makes_a_borrower(void **state)
{
    static const ration_limit_rule limits[] = {FOLLOWS(one_and_two), ADAPTIVE(.initial_limit = 4),
                                               SLOTS("slots", by_x, 1)};

    (void)state;
    world_init(&w, limits, 3);
    CHECK_STR(ask(0, "s tenant=a account=bcc x=1"), "granted"); /* another ceiling, the same slot */
    CHECK_STR(ask(0, "b1 tenant=b"), "granted");
    CHECK_STR(ask(0, "a1 tenant=a"), "granted");
    CHECK_STR(ask(0, "a2 tenant=a x=1 hold=50 wait=4000"), "queued");
    CHECK_STR(done(10, "a1"), "released"); /* now it is short of the slot alone */
    CHECK_STR(world_observe(&w, MS(10), "b1", 429, "Retry-After", "0.001"), "observed");
    CHECK_STR(world_events(&w), "limit l 2;");
    CHECK_STR(done(20, "b1"), "released");
    CHECK_STR(done(30, "s"), "released");
    world_advance(&w, MS(220) - 1);
    CHECK_STR(world_events(&w), "");
    world_advance(&w, MS(220)); /* b has been quiet for long enough */
    CHECK_STR(world_events(&w), "granted a2 220;");
    world_fini(&w);
}

/* What is more than the whole ceiling now may fit when that has grown. */
static void a_ceiling_too_small_may_grow(void **state)
{
    ration_limit_rule limits[] = {FOLLOWS(one_and_two), ADAPTIVE(.initial_limit = 2, .max_limit = 3)};

    (void)state;
    limits[0].counts = RATION_COUNTS_COST;
    world_init(&w, limits, 2);
    CHECK_STR(ask(0, "b1 tenant=b cost=0"), "granted");
    CHECK_STR(ask(0, "b2 tenant=b cost=0"), "granted");
    CHECK_STR(ask(0, "no tenant=a cost=3 hold=50"), "nothing_to_borrow fair acc -");
    CHECK_STR(ask(0, "no tenant=a cost=4 hold=50 wait=9000"), "cost_exceeds_limit fair acc -");
    CHECK_STR(ask(0, "a1 tenant=a cost=3 hold=50 wait=9000"), "queued");
    world_advance(&w, MS(5000));
    CHECK_STR(world_events(&w), "limit l 3;");
    CHECK_STR(done(5100, "b1"), "released");
    CHECK_STR(done(5100, "b2"), "released");
    world_advance(&w, MS(5300));
    CHECK_STR(world_events(&w), "granted a1 5300;");
    world_fini(&w);
}

/* A limit that a ceiling follows stays for as long as the ceiling does, even if it equals a fresh one. */
static void who_is_followed_is_not_forgotten(void **state)
{
    ration_limit_rule limits[] = {FOLLOWS(one_and_two), ADAPTIVE(.initial_limit = 2, .max_limit = 3)};

    (void)state;
    limits[0].counts = RATION_COUNTS_COST;
    limits[0].scope = limits[1].scope = by_x;
    limits[1].max_keys = 1;
    world_init(&w, limits, 2);
    CHECK_STR(ask(0, "no tenant=a cost=9 x=1"), "cost_exceeds_limit fair x=1 -");
    CHECK_STR(ask(0, "no tenant=a cost=1 x=2"), "too_many_keys l - -");
    CHECK_STR(ask(0, "a tenant=a cost=0 x=1"), "granted");
    world_fini(&w);

    limits[0].max_keys = 1; /* then the ceiling goes first, and its leader after it */
    world_init(&w, limits, 2);
    CHECK_STR(ask(0, "no tenant=a cost=9 x=1"), "cost_exceeds_limit fair x=1 -");
    CHECK_STR(ask(0, "a tenant=a cost=0 x=2"), "granted");
    CHECK_STR(ask(0, "no tenant=a cost=0 x=1"), "too_many_keys fair - -");
    world_fini(&w);
}

/* Its ceiling would grow with the limit that it follows: a check says so, and nothing has moved. */
static void a_check_foresees_a_follower(void **state)
{
    static const ration_limit_rule limits[] = {
        FOLLOWS(equals),
        ADAPTIVE(.initial_limit = 2, .increase_step = 2),
    };
    ration_request r = RATION_REQUEST_INIT;
    ration_decision d;

    (void)state;
    world_init(&w, limits, 2);
    r.account = ration_text_of("acc");
    r.tenant = ration_text_of("a");
    CHECK_STR(ask(0, "a1 tenant=a"), "granted");
    CHECK_STR(ask(0, "b1 tenant=b"), "granted");
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(ration_engine_check(w.engine, ration_time_of(MS(5000) - 1), &r, RATION_CHECK_ACQUIRE, &d), RATION_OK);
        CHECK_EQ(d.reason, RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(ration_engine_check(w.engine, ration_time_of(MS(5000)), &r, RATION_CHECK_ACQUIRE, &d), RATION_OK);
        CHECK_EQ(d.result, RATION_GRANTED);
    }
    CHECK_STR(world_events(&w), "");
    CHECK_STR(ask(5000, "a2 tenant=a"), "granted");
    CHECK_STR(world_events(&w), "limit l 4;");
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_moment_of_growth_wakes_a_waiter),
        cmocka_unit_test(a_decrease_drains_before_anybody_goes),
        cmocka_unit_test(a_burst_of_throttles_is_one_event),
        cmocka_unit_test(places_are_per_class),
        cmocka_unit_test(no_demand_without_asking),
        cmocka_unit_test(a_check_foresees_growth),
        cmocka_unit_test(an_idle_class_lends_within_the_horizon),
        cmocka_unit_test(a_large_charge_fits_on_loan),
        cmocka_unit_test(a_pause_until_the_providers_time),
        cmocka_unit_test(a_share_follows),
        cmocka_unit_test(a_guarantee_that_shrinks_refuses_who_cannot_borrow),
        cmocka_unit_test(a_guarantee_that_shrinks_makes_a_borrower),
        cmocka_unit_test(who_leaves_makes_room_for_demand),
        cmocka_unit_test(a_ceiling_too_small_may_grow),
        cmocka_unit_test(who_is_followed_is_not_forgotten),
        cmocka_unit_test(a_check_foresees_a_follower),
        cmocka_unit_test(asking_that_fills_a_cap_is_demand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
