/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/world.h"

#include <stdio.h>

#define MS(n) ((int64_t)(n)*1000)
#define UNIT RATION_UNIT
#define MINUTE_US (60 * INT64_C(1000000))

static world w;

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};
static const char *const by_y[] = {"var:y"};

#define SLOTS(NAME, SCOPE, MAX)                                                                                        \
    {                                                                                                                  \
        .name = (NAME), .kind = RATION_KIND_CONCURRENCY, .scope = (SCOPE), .scope_count = 1, .max = (MAX)*UNIT         \
    }
/* 10 a second, two at once, one in hand. */
#define RATE(NAME, SCOPE)                                                                                              \
    {                                                                                                                  \
        .name = (NAME), .kind = RATION_KIND_RATE, .scope = (SCOPE), .scope_count = 1, .rate = {10 * UNIT, 1000000},    \
        .burst = 3 * UNIT, .margin = RATION_UNSET                                                                      \
    }
#define PER_MINUTE(NAME, SCOPE, MAX, WHEN)                                                                             \
    {                                                                                                                  \
        .name = (NAME), .kind = RATION_KIND_QUOTA, .scope = (SCOPE), .scope_count = 1, .max = (MAX)*UNIT,              \
        .window = {.period = RATION_PERIOD_MINUTE}, .when_exhausted = (WHEN)                                           \
    }

static const char *end(int64_t at_ms, const char *name)
{
    return world_release(&w, MS(at_ms), name, RATION_OUTCOME_SUCCESS, RATION_UNSET);
}

/* The order in which waiters that were asked for in order go, one release each. */
static void orders(void **state)
{
    static const ration_limit_rule slot = SLOTS("slot", by_account, 1);
    static const struct {
        const char *why;
        bool fifo;
        const char *asks[5];
        const char *order;
    } rows[] = {
        {"without tenants by age", false, {"a", "b", "c cost=9", "d", "e"}, "abcde"},
        {"tenants take turns", false, {"a tenant=s", "b tenant=s", "c tenant=s", "d tenant=t", "e tenant=t"}, "adbec"},
        {"a dear one comes later",
         false,
         {"a tenant=s cost=4", "b tenant=t", "c tenant=t", "d tenant=t", "e tenant=s"},
         "bcdae"},
        {"weights", false, {"a tenant=s", "b tenant=s", "c tenant=heavy", "d tenant=heavy", "e tenant=heavy"}, "cadeb"},
        {"no tags in a fifo", true, {"a tenant=s", "b tenant=s", "c tenant=s", "d tenant=t", "e tenant=t"}, "abcde"},
        {"priorities in a fifo too",
         true,
         {"a priority=low", "b", "c priority=high", "d priority=critical", "e"},
         "dcbea"},
    };
    static const ration_tenant_rule weights[] = {{"heavy", 2}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_account_rule accounts[2];
        ration_provider_rule provider;
        ration_rules rules;
        char order[8] = "";

        CHECK_ROW(rows[i].why);
        world_rules(&rules, &provider, accounts, &slot, 1);
        rules.queue_order = rows[i].fifo ? RATION_QUEUE_FIFO : RATION_QUEUE_FAIR;
        rules.tenants = weights;
        rules.tenant_count = 1;
        CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
        CHECK_STR(world_ask(&w, 0, "z"), "granted");
        for (size_t k = 0; k < 5; k++) {
            char ask[64];

            snprintf(ask, sizeof ask, "%s wait=9000", rows[i].asks[k]);
            CHECK_STR(world_ask(&w, 0, ask), "queued");
        }
        for (char name[2] = "z"; strlen(order) < 5; name[0] = order[strlen(order) - 1]) {
            CHECK_STR(end(1, name), "released");
            CHECK_EQ(sscanf(world_events(&w), "granted %1s", order + strlen(order)), 1);
        }
        CHECK_STR(order, rows[i].order);
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

static void a_newcomer_is_compared_by_the_tag_that_it_would_get(void **state)
{
    static const ration_limit_rule limits[] = {SLOTS("x", by_x, 2), SLOTS("y", by_y, 1)};

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(world_ask(&w, 0, "x1 x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "x2 x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "y1 y=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "dear x=1 y=1 tenant=s cost=5 wait=9000"), "queued"); /* short of both, tag 5 */
    CHECK_STR(end(1, "x1"), "released");
    CHECK_STR(world_events(&w), "");
    CHECK_STR(world_ask(&w, MS(1), "cheap x=1 tenant=t"), "granted"); /* tag 1, and so V */
    CHECK_STR(end(2, "cheap"), "released");
    CHECK_STR(world_ask(&w, MS(2), "equal x=1 tenant=t cost=4"), "concurrency_full x x=1 -"); /* younger */
    CHECK_STR(world_ask(&w, MS(2), "low x=1 priority=low"), "concurrency_full x x=1 -");
    CHECK_STR(world_ask(&w, MS(2), "high x=1 priority=high cost=9"), "granted");
    world_fini(&w);
}

/* Newcomers with smaller tags go before a dear waiter, but each of them moves V: so they cannot do it for ever. */
static void newcomers_do_not_pass_for_ever(void **state)
{
    static const ration_limit_rule limits[] = {
        {.name = "x",
         .kind = RATION_KIND_CONCURRENCY,
         .counts = RATION_COUNTS_COST,
         .scope = by_x,
         .scope_count = 1,
         .max = 5 * UNIT},
        SLOTS("y", by_y, 9),
    };

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(world_ask(&w, 0, "first x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "dear x=1 tenant=s cost=5 wait=9000"), "queued");      /* tag 5 */
    CHECK_STR(world_ask(&w, 0, "elsewhere y=1 tenant=t cost=9"), "granted");          /* passes nobody */
    CHECK_STR(world_ask(&w, 0, "high x=1 tenant=t cost=4 priority=high"), "granted"); /* a V of its own */
    CHECK_STR(end(0, "high"), "released");
    CHECK_STR(world_ask(&w, 0, "n1 x=1 tenant=t"), "granted");
    CHECK_STR(world_ask(&w, 0, "n2 x=1 tenant=u"), "granted");
    CHECK_STR(world_ask(&w, MS(1), "n3 x=1 tenant=t"), "granted");
    CHECK_STR(world_ask(&w, MS(1), "n4 x=1 tenant=u"), "granted");
    CHECK_STR(end(2, "n1"), "released");
    CHECK_STR(world_ask(&w, MS(2), "n5 x=1 tenant=u"), "concurrency_full x x=1 -"); /* tag 5, younger */
    CHECK_STR(end(2, "first"), "released");
    CHECK_STR(end(2, "n2"), "released");
    CHECK_STR(end(2, "n3"), "released");
    CHECK_STR(world_events(&w), "");
    CHECK_STR(end(2, "n4"), "released");
    CHECK_STR(world_events(&w), "granted dear 2;");
    world_fini(&w);
}

static void providers_do_not_wait_for_each_other(void **state)
{
    static const ration_limit_rule slot = SLOTS("slot", by_account, 1);
    static const ration_provider_rule providers[] = {{.name = "p", .limits = &slot, .limit_count = 1},
                                                     {.name = "q", .limits = &slot, .limit_count = 1}};
    static const ration_account_rule accounts[] = {{.name = "acc", .provider = "p"}, {.name = "bcc", .provider = "q"}};
    static const ration_rules rules = {
        .providers = providers, .provider_count = 2, .accounts = accounts, .account_count = 2, .max_waiters = 1};

    (void)state;
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "b account=bcc"), "granted");
    CHECK_STR(world_ask(&w, 0, "c wait=100"), "queued");
    CHECK_STR(world_ask(&w, 0, "d account=bcc wait=100 priority=critical"), "queued"); /* a queue each */
    CHECK_STR(world_ask(&w, 0, "e wait=100"), "queue_full - - -");
    CHECK_STR(end(1, "b"), "released");
    CHECK_STR(world_events(&w), "granted d 1;");
    CHECK_STR(end(2, "a"), "released");
    CHECK_STR(world_events(&w), "granted c 2;");
    world_fini(&w);
}

static void a_waiter_waits_for_the_windows_end(void **state)
{
    static const ration_limit_rule minute = PER_MINUTE("minute", by_account, 2, RATION_EXHAUSTED_WAIT);

    (void)state;
    world_init(&w, &minute, 1);
    CHECK_STR(world_ask(&w, MS(50000), "a"), "granted");
    CHECK_STR(world_ask(&w, MS(50000), "b"), "granted");
    CHECK_STR(world_ask(&w, MS(50000), "c"), "quota_exhausted minute acc 10000000us");
    CHECK_STR(world_ask(&w, MS(50000), "c wait=9999"), "quota_exhausted minute acc 10000000us");
    CHECK_STR(world_ask(&w, MS(50000), "d wait=10000"), "queued");
    CHECK_STR(world_ask(&w, MS(50000), "e wait=90000"), "queued");
    CHECK_STR(world_ask(&w, MS(50000), "f wait=90000"), "queued");
    CHECK_EQ(ration_engine_next_deadline(w.engine).us, MINUTE_US);
    world_advance(&w, MS(119999));
    CHECK_STR(world_events(&w), "granted d 10000;granted e 10000;");
    world_advance(&w, MS(120000));
    CHECK_STR(world_events(&w), "granted f 70000;");
    world_fini(&w);
}

static void a_waiter_is_refused_at_the_end_that_does_not_help(void **state)
{
    static const ration_limit_rule minute = {.name = "minute",
                                             .kind = RATION_KIND_QUOTA,
                                             .scope = by_account,
                                             .scope_count = 1,
                                             .max = UNIT,
                                             .window = {.period = RATION_PERIOD_MINUTE},
                                             .when_exhausted = RATION_EXHAUSTED_WAIT,
                                             .arrival_us = RATION_UNSET};

    (void)state;
    world_init(&w, &minute, 1);
    CHECK_STR(world_ask(&w, MS(59500), "a"), "granted"); /* the provider may count it in the next minute */
    CHECK_STR(world_ask(&w, MS(59600), "b wait=5000"), "queued");
    CHECK_STR(world_ask(&w, MS(59600), "c wait=61000"), "queued");
    CHECK_STR(world_ask(&w, MS(59600), "d"), "quota_exhausted minute acc 400000us~");
    world_advance(&w, MS(60000));
    CHECK_STR(world_events(&w), "refused b quota_exhausted minute 400;");
    world_advance(&w, MS(120000));
    CHECK_STR(world_events(&w), "granted c 60400;");
    world_fini(&w);
}

static void a_waiter_is_refused_when_the_quota_is_used_up(void **state)
{
    static const ration_limit_rule limits[] = {SLOTS("x", by_x, 1),
                                               PER_MINUTE("minute", by_account, 3, RATION_EXHAUSTED_REFUSE)};

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b x=1 wait=70000"), "queued");
    CHECK_STR(world_ask(&w, 0, "c x=1 wait=70000 priority=high"), "queued");
    CHECK_STR(world_ask(&w, MS(1), "d x=2"), "granted");
    CHECK_STR(world_events(&w), "");
    CHECK_STR(world_ask(&w, MS(2), "e x=3"), "granted");
    CHECK_STR(world_events(&w), "refused c quota_exhausted minute 2;refused b quota_exhausted minute 2;");
    CHECK_STR(world_ask(&w, MS(3), "f x=9 wait=70000"), "quota_exhausted minute acc 59997000us");
    world_fini(&w);
}

static void a_cost_of_a_waiter_decides_whether_it_must_go(void **state)
{
    static const ration_limit_rule limits[] = {SLOTS("x", by_x, 1),
                                               {.name = "minute",
                                                .kind = RATION_KIND_QUOTA,
                                                .counts = RATION_COUNTS_COST,
                                                .scope = by_account,
                                                .scope_count = 1,
                                                .max = 10 * UNIT,
                                                .window = {.period = RATION_PERIOD_MINUTE}}};

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b x=1 cost=3 wait=70000"), "queued");
    CHECK_STR(world_ask(&w, 0, "c x=1 cost=4 wait=70000"), "queued");
    CHECK_STR(world_ask(&w, 0, "free x=1 cost=0 wait=70000"), "queued");
    CHECK_STR(world_ask(&w, 0, "d x=2 cost=5"), "granted");
    CHECK_STR(world_events(&w), "");
    CHECK_STR(world_ask(&w, 0, "e x=3 cost=1"), "granted"); /* 3 are left */
    CHECK_STR(world_events(&w), "refused c quota_exhausted minute 0;");
    CHECK_STR(world_release(&w, 0, "e", RATION_OUTCOME_SUCCESS, 2 * UNIT), "released"); /* by a settlement: 2 */
    CHECK_STR(world_events(&w), "refused b quota_exhausted minute 0;");
    CHECK_STR(end(1, "a"), "released");
    CHECK_STR(world_events(&w), "granted free 1;");
    world_fini(&w);
}

/* Each deadline of an instant is told what it was short of, as if the others stayed. */
static void deadlines_of_one_instant_all_say_what_they_were_short_of(void **state)
{
    static const ration_limit_rule limits[] = {SLOTS("x", by_x, 1), SLOTS("y", by_y, 2)};
    ration_event event;
    int refused = 0;

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(world_ask(&w, 0, "a x=1 y=1 hold=50"), "granted");
    CHECK_STR(world_ask(&w, 0, "b y=1 hold=70"), "granted");
    CHECK_STR(world_ask(&w, 0, "both x=1 y=1 wait=10"), "queued");
    CHECK_STR(world_ask(&w, 0, "c y=1 wait=10"), "queued");
    CHECK_STR(end(1, "b"), "released"); /* a slot of y is free, and "both" is before c */
    world_advance(&w, MS(10));
    while (ration_engine_next_event(w.engine, &event)) {
        CHECK_EQ(event.type, RATION_EVENT_REFUSED);
        CHECK_EQ(event.decision.reason, RATION_REASON_DEADLINE);
        CHECK_STR(event.decision.limit, refused == 0 ? "x" : "y");
        CHECK_EQ(event.decision.retry_at.us, MS(50));
        CHECK(event.decision.estimate);
        refused++;
    }
    CHECK_EQ(refused, 2);
    world_fini(&w);
}

/* Every waiter is granted and lost in one advance: two events each. */
static void events_of_many_waiters_are_not_lost(void **state)
{
    static const ration_limit_rule slot = SLOTS("slot", by_account, 1);
    ration_totals totals;
    ration_event event;
    int granted = 0;
    int lost = 0;

    (void)state;
    world_init(&w, &slot, 1);
    CHECK_STR(world_ask(&w, 0, "a ttl=1"), "granted");
    for (int i = 0; i < 1000; i++)
        CHECK_STR(world_ask(&w, 0, "b wait=9000 ttl=1"), "queued");
    world_advance(&w, MS(5000));
    ration_engine_totals(w.engine, &totals);
    CHECK_EQ(totals.events_pending, 2001);
    while (ration_engine_next_event(w.engine, &event)) {
        granted += event.type == RATION_EVENT_GRANTED;
        lost += event.type == RATION_EVENT_LOST;
        CHECK_EQ(event.at.us, MS((granted + lost) / 2 + (event.type == RATION_EVENT_LOST)));
    }
    CHECK_EQ(granted, 1000);
    CHECK_EQ(lost, 1001);
    world_fini(&w);
}

static void one_that_waits_for_a_penalty_keeps_its_place(void **state)
{
    static const ration_limit_rule limits[] = {SLOTS("x", by_x, 1), SLOTS("y", by_y, 1)};

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
    CHECK_STR(end(0, "a"), "released");
    CHECK_STR(world_ask(&w, MS(1), "p x=1 y=1 wait=9000"), "queued"); /* short of nothing, x pauses */
    CHECK_STR(world_ask(&w, MS(2), "b y=1"), "granted");              /* now p is short of y and keeps its place */
    CHECK_STR(world_ask(&w, MS(3), "c y=1 wait=9000"), "queued");
    CHECK_STR(end(4, "b"), "released");
    CHECK_STR(world_events(&w), ""); /* c is behind p */
    CHECK_STR(world_ask(&w, MS(5), "d y=1"), "concurrency_full y y=1 -");
    CHECK_STR(world_ask(&w, MS(5), "e y=1 priority=high"), "granted");
    CHECK_STR(end(6, "e"), "released");
    world_advance(&w, MS(2000));
    CHECK_STR(world_events(&w), "granted p 1999;");
    CHECK_STR(end(2001, "p"), "released");
    CHECK_STR(world_events(&w), "granted c 1998;");
    world_fini(&w);
}

/* One that waits for a penalty and comes behind a dear waiter is short of what that one keeps. */
static void one_that_waits_for_a_penalty_hears_of_a_place_ahead(void **state)
{
    static const ration_limit_rule limits[] = {SLOTS("x", by_x, 1),
                                               {.name = "t",
                                                .kind = RATION_KIND_CONCURRENCY,
                                                .scope = by_account,
                                                .scope_count = 1,
                                                .counts = RATION_COUNTS_COST,
                                                .max = 5 * UNIT}};

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(world_ask(&w, 0, "h cost=3"), "granted");
    CHECK_STR(world_ask(&w, 0, "a x=1 cost=0"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
    CHECK_STR(end(0, "a"), "released");
    CHECK_STR(world_ask(&w, MS(1), "p x=1 cost=1 wait=9000"), "queued");
    CHECK_STR(world_ask(&w, MS(2), "dear cost=3 wait=9000 priority=high"), "queued");
    CHECK_STR(world_cancel(&w, MS(3), "dear"), "cancelled");
    CHECK_STR(world_ask(&w, MS(4), "n cost=1"), "concurrency_full t acc -"); /* p keeps its place since then */
    world_fini(&w);
}

/* The end of one account's pause lets nobody of another account go. */
static void accounts_pause_each_for_itself(void **state)
{
    static const ration_limit_rule limits[] = {SLOTS("x", by_x, 1)};

    (void)state;
    world_init(&w, limits, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "b account=bcc"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, "Retry-After", "9"), "observed");
    CHECK_STR(world_observe(&w, 0, "b", 429, "Retry-After", "5"), "observed");
    CHECK_STR(world_ask(&w, 0, "wa wait=9500"), "queued");
    CHECK_STR(world_ask(&w, 0, "wx x=1 wait=9500"), "queued");
    CHECK_STR(world_ask(&w, 0, "wb account=bcc wait=9500"), "queued");
    CHECK_STR(world_ask(&w, 0, "no wait=8999"), "penalized - - 9000000us");
    CHECK_STR(world_ask(&w, 0, "no account=bcc wait=4999"), "penalized - - 5000000us");
    world_advance(&w, MS(8999));
    CHECK_STR(world_events(&w), "granted wb 5000;");
    world_advance(&w, MS(9000));
    CHECK_STR(world_events(&w), "granted wa 9000;granted wx 9000;");
    world_fini(&w);
}

static void what_a_provider_says_refuses_waiters_at_once(void **state)
{
    static const ration_limit_rule limits[] = {SLOTS("x", by_x, 1),
                                               {.name = "minute",
                                                .kind = RATION_KIND_QUOTA,
                                                .scope = by_account,
                                                .scope_count = 1,
                                                .max = 90 * UNIT,
                                                .window = {.period = RATION_PERIOD_MINUTE},
                                                .sync = {.remaining_header = "left"}}};

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b x=1 wait=70000"), "queued");
    CHECK_STR(world_observe(&w, MS(5), "a", 200, "left", "0"), "observed");
    CHECK_STR(world_events(&w), "refused b quota_exhausted minute 5;");
    world_fini(&w);
}

static void a_settlement_refuses_waiters_at_once(void **state)
{
    static const ration_limit_rule limits[] = {SLOTS("x", by_x, 1),
                                               {.name = "minute",
                                                .kind = RATION_KIND_QUOTA,
                                                .scope = by_account,
                                                .scope_count = 1,
                                                .max = 9 * UNIT,
                                                .counts = RATION_COUNTS_COST,
                                                .window = {.period = RATION_PERIOD_MINUTE}}};

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "other x=2"), "granted");
    CHECK_STR(world_ask(&w, 0, "b x=1 wait=70000"), "queued");
    CHECK_STR(world_release(&w, MS(5), "other", RATION_OUTCOME_CANCELLED, 8 * UNIT), "released");
    CHECK_STR(world_events(&w), "refused b quota_exhausted minute 5;");
    world_fini(&w);
}

static void one_that_waits_for_a_penalty_alone_keeps_no_place(void **state)
{
    static const ration_limit_rule limits[] = {SLOTS("x", by_x, 1), SLOTS("y", by_y, 1)};

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
    CHECK_STR(end(0, "a"), "released");
    CHECK_STR(world_ask(&w, MS(1), "p x=1 y=1 wait=9000"), "queued");
    CHECK_STR(world_cancel(&w, MS(1), "p"), "cancelled"); /* also while it is parked */
    CHECK_STR(world_ask(&w, MS(1), "q x=1 y=1 wait=9000"), "queued");
    CHECK_STR(world_ask(&w, MS(1), "r x=1 y=1 wait=1998"), "penalized x x=1 1999000us~");
    world_fini(&w);
}

/* Many wait for one penalty, and its end costs a look at each, not at each for each. */
static void the_end_of_a_penalty_is_cheap(void **state)
{
    static const ration_limit_rule slots = SLOTS("slots", by_account, 3);
    ration_totals totals;

    (void)state;
    world_init(&w, &slots, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
    CHECK_STR(end(0, "a"), "released");
    for (int i = 0; i < 10000; i++)
        CHECK_STR(world_ask(&w, 0, "w wait=9000"), "queued");
    CHECK_STR(world_ask(&w, 0, "w wait=9000"), "queue_full - - -");
    world_advance(&w, MS(2000));
    ration_engine_totals(w.engine, &totals);
    CHECK_EQ(totals.granted, 4);
    CHECK_EQ(totals.waiting, 9997);
    world_advance(&w, MS(9000));
    ration_engine_totals(w.engine, &totals);
    CHECK_EQ(totals.waiting, 0);
    CHECK_EQ(totals.refusals[RATION_REASON_DEADLINE], 9997);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders),
        cmocka_unit_test(a_newcomer_is_compared_by_the_tag_that_it_would_get),
        cmocka_unit_test(newcomers_do_not_pass_for_ever),
        cmocka_unit_test(providers_do_not_wait_for_each_other),
        cmocka_unit_test(a_waiter_waits_for_the_windows_end),
        cmocka_unit_test(a_waiter_is_refused_at_the_end_that_does_not_help),
        cmocka_unit_test(a_waiter_is_refused_when_the_quota_is_used_up),
        cmocka_unit_test(a_cost_of_a_waiter_decides_whether_it_must_go),
        cmocka_unit_test(deadlines_of_one_instant_all_say_what_they_were_short_of),
        cmocka_unit_test(events_of_many_waiters_are_not_lost),
        cmocka_unit_test(one_that_waits_for_a_penalty_keeps_its_place),
        cmocka_unit_test(one_that_waits_for_a_penalty_hears_of_a_place_ahead),
        cmocka_unit_test(accounts_pause_each_for_itself),
        cmocka_unit_test(what_a_provider_says_refuses_waiters_at_once),
        cmocka_unit_test(a_settlement_refuses_waiters_at_once),
        cmocka_unit_test(one_that_waits_for_a_penalty_alone_keeps_no_place),
        cmocka_unit_test(the_end_of_a_penalty_is_cheap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
