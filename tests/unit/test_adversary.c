/* SPDX-License-Identifier: MIT */
/*
 * Borrowers that do all they can, against one tenant that comes back, through the engine.
 *
 * Two tenants of 50 units each. The borrower fills its own and lives on the other's; it moves first at every
 * millisecond, always critical, and releases only when it must. Whoever it is and whenever the other comes back, that
 * one, with low priority, is whole within the horizon: unless a loan has overrun, and then that is reported.
 */
#include "support/check.h"
#include "support/world.h"

#include <stdio.h>

#define MS(n) ((int64_t)(n)*1000)
#define UNIT RATION_UNIT
#define HORIZON 100
#define LEASES 64

static world w;

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};
static const ration_tenant_share two[] = {{.name = "a", .weight = 1}, {.name = "b", .weight = 1}};

/* The borrower's leases, by the number in their names. */
typedef struct greed {
    int64_t ends_ms[LEASES]; /* -1: not held */
    bool waits[LEASES];
    int64_t overrun_ms; /* it holds so much longer than it said */
} greed;

typedef void strategy_fn(greed *g, int64_t now_ms);

static bool ask_for(greed *g, int64_t now_ms, int number, const char *how, int64_t hold_ms)
{
    char text[128];

    snprintf(text, sizeof text, "b%d priority=critical hold=%d %s", number, (int)hold_ms, how);
    if (strcmp(world_ask(&w, MS(now_ms), text), "granted") != 0)
        return false;
    g->ends_ms[number] = now_ms + hold_ms + g->overrun_ms;
    return true;
}

static void end_due(greed *g, int64_t now_ms)
{
    for (int i = 0; i < LEASES; i++) {
        char name[16];

        if (g->ends_ms[i] < 0 || g->ends_ms[i] > now_ms)
            continue;
        snprintf(name, sizeof name, "b%d", i);
        CHECK_STR(world_release(&w, MS(now_ms), name, RATION_OUTCOME_SUCCESS, RATION_UNSET), "released");
        g->ends_ms[i] = -1;
    }
}

/* ---- strategies ---- */

static void renews_at_once(greed *g, int64_t now_ms)
{
    if (g->ends_ms[0] < 0)
        (void)ask_for(g, now_ms, 0, "tenant=b cost=50", HORIZON);
}

static void asks_in_a_loop(greed *g, int64_t now_ms)
{
    for (int i = 0; i < 5; i++)
        (void)ask_for(g, now_ms, LEASES - 1, "tenant=b cost=100", HORIZON);
    renews_at_once(g, now_ms);
}

static void splits_itself(greed *g, int64_t now_ms)
{
    for (int i = 0; i < 50; i++) {
        if (g->ends_ms[i] < 0)
            (void)ask_for(g, now_ms, i, "tenant=b cost=1", now_ms % 7 == 0 ? HORIZON : 1 + (now_ms + i) % HORIZON);
    }
}

static void calls_itself_something_else(greed *g, int64_t now_ms)
{
    if (g->ends_ms[0] < 0 && !ask_for(g, now_ms, 0, "tenant=zed cost=50", HORIZON))
        (void)ask_for(g, now_ms, 0, "cost=50", HORIZON);
}

static void waits_in_front(greed *g, int64_t now_ms)
{
    for (int i = 0; i < 4; i++) {
        char text[64];

        if (g->ends_ms[i] >= 0 || g->waits[i])
            continue;
        snprintf(text, sizeof text, "tenant=b cost=%d wait=9000", i == 0 ? 50 : 10 * i);
        g->waits[i] = !ask_for(g, now_ms, i, text, HORIZON);
    }
}

/* What has been granted to those that waited. */
static void hear(greed *g, const char *events, int64_t now_ms)
{
    for (const char *at = strstr(events, "granted b"); at != NULL; at = strstr(at + 1, "granted b")) {
        const int number = (int)strtol(at + 9, NULL, 10);

        g->waits[number] = false;
        g->ends_ms[number] = now_ms + HORIZON + g->overrun_ms;
    }
}

static void begin(int64_t idle_after_us)
{
    const ration_limit_rule limit = {.name = "tokens",
                                     .kind = RATION_KIND_SHARE,
                                     .counts = RATION_COUNTS_COST,
                                     .scope = by_account,
                                     .scope_count = 1,
                                     .share = {.ceiling = 100 * UNIT,
                                               .tenants = two,
                                               .tenant_count = 2,
                                               .reclaim_horizon_us = MS(HORIZON),
                                               .idle_after_us = idle_after_us,
                                               .unknown_tenant = "b"}};

    world_init(&w, &limit, 1);
    CHECK_STR(world_ask(&w, 0, "own tenant=b cost=50"), "granted");
}

/* a comes back at `back_ms`; how long it waits for all that is its own. */
static int64_t wait_of_a(strategy_fn *act, greed *g, int64_t idle_after_us, int64_t back_ms)
{
    int64_t waited_ms = -1;

    begin(idle_after_us);
    for (int i = 0; i < LEASES; i++)
        g->ends_ms[i] = -1;
    for (int64_t now_ms = 0; waited_ms < 0 && now_ms < back_ms + 3000; now_ms++) {
        end_due(g, now_ms);
        act(g, now_ms);
        if (now_ms == back_ms &&
            strcmp(world_ask(&w, MS(now_ms), "a tenant=a cost=50 hold=5000 wait=9000 priority=low"), "granted") == 0)
            waited_ms = 0;
        world_advance(&w, MS(now_ms));

        const char *events = world_events(&w);

        if (strstr(events, "granted a ") != NULL)
            waited_ms = now_ms - back_ms;
        hear(g, events, now_ms);
    }
    world_fini(&w);
    return waited_ms;
}

static const struct {
    const char *why;
    strategy_fn *act;
} strategies[] = {
    {"renews at once", renews_at_once},
    {"asks in a loop", asks_in_a_loop},
    {"splits itself into many small ones", splits_itself},
    {"calls itself something else", calls_itself_something_else},
    {"waits in front, critical", waits_in_front},
};

static void who_comes_back_is_whole_within_the_horizon(void **state)
{
    static const int64_t idle_after_us[] = {MS(200), MS(HORIZON) + 1};

    (void)state;
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        int64_t longest = 0;

        CHECK_ROW(strategies[i].why);
        for (int64_t back_ms = 400; back_ms < 520; back_ms += 7) {
            greed g = {.overrun_ms = 0};
            const int64_t waited = wait_of_a(strategies[i].act, &g, idle_after_us[back_ms % 2], back_ms);

            CHECK(waited >= 0);
            CHECK(waited <= HORIZON);
            longest = waited > longest ? waited : longest;
        }
        CHECK(longest > HORIZON / 2); /* there was something to wait for */
    }
    CHECK_ROW(NULL);
}

/* Who overruns breaks the bound by as much as it overruns, and gains nothing beyond. */
static void an_overrun_is_all_that_breaks_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        CHECK_ROW(strategies[i].why);
        for (int64_t back_ms = 400; back_ms < 520; back_ms += 7) {
            greed g = {.overrun_ms = 300};
            const int64_t waited = wait_of_a(strategies[i].act, &g, MS(200), back_ms);

            CHECK(waited >= 0);
            CHECK(waited <= HORIZON + g.overrun_ms);
        }
    }
    CHECK_ROW(NULL);
}

static size_t overruns;

static void count_overruns(void *ctx, const ration_counter_report *report)
{
    (void)ctx;
    overruns = report->overrun_count;
}

static void an_overrun_is_reported(void **state)
{
    const ration_reporter reporter = {.counter = count_overruns};

    (void)state;
    begin(MS(200));
    CHECK_STR(world_ask(&w, 0, "b0 tenant=b cost=50 hold=100"), "granted");
    CHECK_STR(world_ask(&w, MS(50), "no tenant=a cost=50 hold=50"), "guarantee_on_loan tokens acc 50000us~");
    CHECK_STR(world_ask(&w, MS(101), "no tenant=a cost=50 hold=50"), "guarantee_on_loan tokens acc -");
    CHECK_EQ(w.last.blocking_count, 1);
    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(MS(101)), RATION_REPORT_STATS, &reporter), RATION_OK);
    CHECK_EQ(overruns, 1);
    world_fini(&w);
}

/* ---- shadows ---- */

/* Limits that only watch bind nobody, whoever waits, and keep nobody's place. */
static void shadows_bind_nobody(void **state)
{
    static const ration_class_rule classes[] = {{"fast", {1, 2}}};
    static const ration_limit_rule limits[] = {
        {.name = "tokens",
         .kind = RATION_KIND_SHARE,
         .counts = RATION_COUNTS_COST,
         .enforce = RATION_ENFORCE_SHADOW,
         .scope = by_account,
         .scope_count = 1,
         .share = {.ceiling = 10 * UNIT,
                   .tenants = two,
                   .tenant_count = 2,
                   .reclaim_horizon_us = MS(HORIZON),
                   .idle_after_us = MS(200)}},
        {.name = "l",
         .kind = RATION_KIND_ADAPTIVE,
         .enforce = RATION_ENFORCE_SHADOW,
         .scope = by_account,
         .scope_count = 1,
         .adaptive = {.initial_limit = 1, .classes = classes, .class_count = 1}},
        {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = UNIT},
    };
    ration_totals totals;

    (void)state;
    world_init(&w, limits, 3);
    CHECK_STR(world_ask(&w, 0, "s tenant=a cost=9 x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "w1 tenant=a cost=9 x=1 wait=9000"), "queued");
    CHECK_STR(world_ask(&w, 0, "w2 tenant=zed class=other cost=99 x=1 wait=9000"), "queued");
    for (int i = 0; i < 20; i++) {
        char text[64];

        snprintf(text, sizeof text, "n%d tenant=%s cost=99 priority=low", i, i % 2 == 0 ? "a" : "zed");
        CHECK_STR(world_ask(&w, MS(1), text), "granted");
    }
    CHECK_STR(world_release(&w, MS(2), "s", RATION_OUTCOME_SUCCESS, RATION_UNSET), "released");
    CHECK_STR(world_events(&w), "granted w1 2;");
    CHECK_STR(world_release(&w, MS(3), "w1", RATION_OUTCOME_THROTTLED, RATION_UNSET), "released");
    CHECK_STR(world_events(&w), ""); /* the slot is paused, and that alone */
    CHECK_STR(world_ask(&w, MS(3), "m tenant=b cost=99"), "granted");
    ration_engine_totals(w.engine, &totals);
    CHECK_EQ(totals.shadowed, 24); /* all of them */
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_comes_back_is_whole_within_the_horizon),
        cmocka_unit_test(an_overrun_is_all_that_breaks_it),
        cmocka_unit_test(an_overrun_is_reported),
        cmocka_unit_test(shadows_bind_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
