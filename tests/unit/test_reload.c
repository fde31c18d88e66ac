/* SPDX-License-Identifier: MIT */
/* Other rules for a running engine: what becomes of counters and waiters. Decision 0017. */
#include "support/reload.h"

static void slots_move_and_what_is_held_drains(void **state)
{
    static const ration_limit_rule two = SLOTS(2);
    static const ration_limit_rule one = SLOTS(1);
    static const ration_limit_rule three = SLOTS(3);

    (void)state;
    begin(&two);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(ask(0, "b"), "granted");
    CHECK_STR(ask(0, "c wait=1000"), "queued");
    CHECK_STR(ask(0, "d wait=1000"), "queued");
    reload(MS(1), &three, 1);
    CHECK_STR(world_events(&w), "granted c 1;");
    reload(MS(2), &one, 1);
    CHECK_EQ(report(MS(2)).held, 3 * UNIT);
    CHECK_EQ(report(MS(2)).max, UNIT);
    CHECK_STR(ask(MS(2), "e"), "concurrency_full l acc -");
    CHECK_STR(end(MS(3), "a"), "released");
    CHECK_STR(end(MS(3), "b"), "released");
    CHECK_STR(world_events(&w), "");
    CHECK_STR(end(MS(4), "c"), "released");
    CHECK_STR(world_events(&w), "granted d 4;");
    CHECK_STR(end(MS(5), "a"), "unknown");
    CHECK_STR(end(MS(5), "d"), "released");
    CHECK_EQ(report(MS(5)).held, 0);
    world_fini(&w);
}

static void a_waiter_that_never_fits_again_is_told_at_once(void **state)
{
    static const ration_limit_rule five = LIMIT("l", CONCURRENCY, .counts = RATION_COUNTS_COST, .max = 5 * UNIT);
    static const ration_limit_rule two = LIMIT("l", CONCURRENCY, .counts = RATION_COUNTS_COST, .max = 2 * UNIT);

    (void)state;
    begin(&five);
    CHECK_STR(ask(0, "a cost=4"), "granted");
    CHECK_STR(ask(0, "b cost=3 wait=1000"), "queued");
    CHECK_STR(ask(0, "c cost=2 wait=1000"), "queued");
    reload(MS(1), &two, 1);
    CHECK_STR(world_events(&w), "refused b cost_exceeds_limit l 1;");
    CHECK_STR(end(MS(2), "a"), "released");
    CHECK_STR(world_events(&w), "granted c 2;");
    world_fini(&w);
}

static void a_bucket_is_never_refilled(void **state)
{
    static const ration_limit_rule four = RATE(1, 4);
    static const ration_limit_rule more = RATE(1, 9);
    static const ration_limit_rule less = RATE(1, 2);
    static const ration_limit_rule faster = RATE(10, 4);

    (void)state;
    begin(&four);
    CHECK_STR(ask(0, "a"), "granted");
    reload(0, &more, 1);
    CHECK_EQ(report(0).available, 3 * UNIT);
    reload(0, &less, 1);
    CHECK_EQ(report(0).available, 2 * UNIT);
    reload(0, &more, 1);
    CHECK_EQ(report(0).available, 2 * UNIT);
    CHECK_STR(ask(0, "b"), "granted");
    CHECK_STR(ask(0, "c"), "granted");
    CHECK_STR(ask(MS(500), "d wait=1000"), "queued");
    /* Half a unit is there; the other half comes ten times as fast. */
    reload(MS(500), &faster, 1);
    CHECK_EQ(report(MS(500)).available, UNIT / 2);
    world_advance(&w, MS(549));
    CHECK_STR(world_events(&w), "");
    world_advance(&w, MS(550));
    CHECK_STR(world_events(&w), "granted d 50;");
    world_fini(&w);

    /* Until the reload it earns at the old rate. */
    begin(&four);
    for (int i = 0; i < 4; i++)
        CHECK_STR(ask(0, "a"), "granted");
    reload(MS(1000), &faster, 1);
    CHECK_EQ(report(MS(1000)).available, UNIT);
    world_fini(&w);
}

static void what_a_quota_spent_stays_spent(void **state)
{
    static const ration_limit_rule three = QUOTA(3, HOURLY, .sync = {.limit_header = "x-limit"});
    static const ration_limit_rule five = QUOTA(5, HOURLY, .sync = {.limit_header = "x-limit"});
    static const ration_limit_rule one = QUOTA(1, HOURLY, .sync = {.limit_header = "x-limit"});
    ration_counter_report row;

    (void)state;
    begin(&three);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(ask(0, "b"), "granted");
    reload(MS(1), &five, 1);
    row = report(MS(1));
    CHECK_EQ(row.max, 5 * UNIT);
    CHECK_EQ(row.used, 2 * UNIT);
    CHECK_EQ(row.remaining, 3 * UNIT);
    reload(MS(2), &one, 1);
    CHECK_STR(ask(MS(2), "c"), "quota_exhausted l acc 3599998000us");
    CHECK_EQ(report(MS(2)).remaining, 0);
    /* A learned maximum stays learned. */
    reload(MS(3), &three, 1);
    CHECK_STR(world_observe(&w, MS(3), "a", 200, "x-limit", "7"), "observed");
    reload(MS(4), &five, 1);
    CHECK_EQ(report(MS(4)).max, 7 * UNIT);
    CHECK_EQ(report(MS(4)).used, 2 * UNIT);
    /* A lease of before settles nothing twice, and its window ends as ever. */
    CHECK_STR(end(MS(5), "a"), "released");
    CHECK_EQ(report(HOUR_US).used, 0);
    world_fini(&w);
}

/* Whatever the window was and is, what may have been spent in it counts. */
static void another_window_counts_what_it_may_hold(void **state)
{
#define ROLLING(US) .window = {.rolling_us = (US) }
    static const ration_limit_rule hourly = QUOTA(9, HOURLY);
    static const ration_limit_rule taught = QUOTA(9, HOURLY, .sync = {.reset_header = "x-reset"});
    static const ration_limit_rule daily = QUOTA(9, .window = {.period = RATION_PERIOD_DAY});
    static const ration_limit_rule minutes = QUOTA(9, .window = {.period = RATION_PERIOD_MINUTE});
    static const ration_limit_rule rolling = QUOTA(9, ROLLING(HOUR_US));
    static const ration_limit_rule short_rolling = QUOTA(9, ROLLING(60000000));
    static const struct {
        const char *why;
        const ration_limit_rule *from, *to;
        int64_t used; /* of one spent at 0 and two 50 minutes later, a minute before the reload */
    } rows[] = {
        {"longer", &hourly, &daily, 3},
        {"shorter: nobody knows when", &hourly, &minutes, 3},
        {"shorter, with a history: not the first", &taught, &minutes, 0},
        {"the same with a history", &hourly, &taught, 3},
        {"and without again", &taught, &hourly, 3},
        {"rolling: it may all be of now", &hourly, &rolling, 3},
        {"rolling, with a history", &taught, &short_rolling, 2},
        {"a calendar's: all buckets", &rolling, &hourly, 3},
        {"a calendar's: the buckets that reach into it", &rolling, &minutes, 0},
        {"a shorter rolling one", &rolling, &short_rolling, 2},
        {"a longer rolling one", &short_rolling, &rolling, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        begin(rows[i].from);
        CHECK_STR(ask(0, "a"), "granted");
        CHECK_STR(ask(MS(3000000), "b"), "granted");
        CHECK_STR(ask(MS(3000000), "c"), "granted");
        reload(MS(3060000), rows[i].to, 1);
        CHECK_EQ(report(MS(3060000)).used, rows[i].used * UNIT);
        CHECK_STR(ask(MS(3060000), "d"), "granted");
        CHECK_EQ(report(MS(3060000)).used, (rows[i].used + 1) * UNIT);
        CHECK_STR(end(MS(3060001), "a"), "released");
        CHECK_STR(end(MS(3060001), "d"), "released");
        CHECK_EQ(report(INT64_C(3) * 24 * HOUR_US).used, 0);
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

/* What a lease of before the new window costs in the end is no part of it. */
static void leases_of_before_the_window_settle_nothing(void **state)
{
    static const ration_limit_rule taught =
        QUOTA(9, HOURLY, .counts = RATION_COUNTS_COST, .sync = {.reset_header = "x-reset"});
    static const ration_limit_rule minutes =
        QUOTA(9, .counts = RATION_COUNTS_COST, .window = {.period = RATION_PERIOD_MINUTE});

    (void)state;
    begin(&taught);
    CHECK_STR(ask(0, "a cost=2"), "granted");
    reload(MS(3060000), &minutes, 1);
    CHECK_STR(world_release(&w, MS(3060001), "a", RATION_OUTCOME_SUCCESS, 5 * UNIT), "released");
    CHECK_EQ(report(MS(3060001)).used, 0);
    world_fini(&w);
}

/* A counter that has not been given its state yet looks fresh, and is not forgotten for another key. */
static void nothing_makes_room_for_a_new_key(void **state)
{
    static const ration_endpoint_rule before = {.path = "/o/{y}"};
    static const ration_endpoint_rule after = {.path = "/o/{x}"};
    static const ration_limit_rule both[] = {
        {.name = "x", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 2, .max = UNIT, .max_keys = 1},
        SLOTS(1)};
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    (void)state;
    rules_of(&rules, &provider, accounts, both, 2);
    provider.endpoints = &before;
    provider.endpoint_count = 1;
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(ask(0, "a x=1"), "granted");
    CHECK_STR(ask(0, "b path=/o/2 wait=100"), "queued");
    provider.endpoints = &after;
    CHECK_EQ(reload_rules(MS(1), &rules), RATION_OK);
    CHECK_STR(world_events(&w), "refused b too_many_keys - 1;");
    CHECK_STR(end(MS(2), "a"), "released");
    CHECK_STR(ask(MS(2), "c x=2"), "granted");
    world_fini(&w);
}

/* A shadow limit has counted all along. */
static void shadows_go_on(void **state)
{
    static const ration_limit_rule shadow = LIMIT("l", CONCURRENCY, .max = UNIT, .enforce = RATION_ENFORCE_SHADOW);
    static const ration_limit_rule one = SLOTS(1);

    (void)state;
    begin(&shadow);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(ask(0, "b"), "granted");
    reload(MS(1), &one, 1);
    CHECK_EQ(report(MS(1)).shadowed, 1);
    CHECK_EQ(report(MS(1)).held, 2 * UNIT);
    CHECK_STR(ask(MS(1), "c"), "concurrency_full l acc -");
    world_fini(&w);
}

/* A quota that a 429 exhausted is not freed by another window. */
static void exhaustion_holds_to_the_end_that_it_had(void **state)
{
    static const ration_limit_rule hourly = QUOTA(9, HOURLY, .sync = {.remaining_header = "x-left"});
    static const ration_limit_rule daily =
        QUOTA(9, .window = {.period = RATION_PERIOD_DAY}, .sync = {.remaining_header = "x-left"});

    (void)state;
    begin(&hourly);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, "x-left", "0"), "observed");
    reload(MS(10000), &daily, 1);
    CHECK_STR(ask(MS(10000), "b"), "quota_exhausted l acc 3590000000us");
    CHECK_STR(ask(HOUR_US, "b"), "granted");
    world_fini(&w);
}

static void what_is_gone_is_forgotten_and_what_is_new_is_fresh(void **state)
{
    static const ration_limit_rule one = SLOTS(1);
    static const ration_limit_rule renamed = LIMIT("m", CONCURRENCY, .max = UNIT);
    static const ration_limit_rule rescoped = {
        .name = "l", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 2, .max = UNIT};
    static const ration_limit_rule other_kind = LIMIT("l", ADAPTIVE, .adaptive = {.initial_limit = 1});
    static const ration_limit_rule other_counts = LIMIT("l", CONCURRENCY, .counts = RATION_COUNTS_COST, .max = UNIT);
    static const struct {
        const char *why;
        const ration_limit_rule *to;
        const char *again; /* asked after it */
    } rows[] = {
        {"removed", NULL, "granted"},
        {"renamed", &renamed, "granted"},
        {"another scope", &rescoped, "granted"},
        {"another kind", &other_kind, "granted"},
        {"other counts", &other_counts, "granted"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        begin(&one);
        CHECK_STR(ask(0, "a x=1 ttl=50"), "granted");
        CHECK_STR(ask(0, "w x=1 wait=1000"), "queued");
        reload(MS(1), rows[i].to, rows[i].to != NULL ? 1 : 0);
        /* The slot that it waited for is no more; of a new one nothing is held. */
        CHECK_STR(world_events(&w), "granted w 1;");
        CHECK_EQ(report(MS(1)).held, rows[i].to != NULL ? UNIT : 0);
        CHECK_STR(world_renew(&w, MS(20), "a"), "renewed");
        CHECK_STR(world_observe(&w, MS(20), "a", 200, "x", "y"), "observed");
        CHECK_STR(end(MS(30), "a"), "released");
        CHECK_EQ(report(MS(30)).held, rows[i].to != NULL ? UNIT : 0);
        CHECK_STR(end(MS(30), "w"), "released");
        CHECK_EQ(report(MS(30)).held, 0);
        /* And what was removed may come back. */
        reload(MS(40), &one, 1);
        CHECK_STR(ask(MS(40), "b x=1"), rows[i].again);
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

/* A new limit binds those who wait, and counts nothing of those who hold. */
static void a_new_limit_binds_who_waits(void **state)
{
    static const ration_limit_rule one = SLOTS(1);
    static const ration_limit_rule both[] = {SLOTS(1),
                                             LIMIT("m", QUOTA, .counts = RATION_COUNTS_COST, .max = 2 * UNIT, HOURLY)};

    (void)state;
    begin(&one);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(ask(0, "b cost=3 wait=1000"), "queued");
    CHECK_STR(ask(0, "c cost=2 wait=1000"), "queued");
    reload(MS(1), both, 2);
    CHECK_STR(world_events(&w), "refused b cost_exceeds_limit m 1;");
    CHECK_EQ(report(MS(1)).used, 0);
    CHECK_STR(end(MS(2), "a"), "released");
    CHECK_STR(world_events(&w), "granted c 2;");
    CHECK_EQ(report(MS(2)).used, 2 * UNIT);
    world_fini(&w);
}

static void penalties_and_pauses_go_on(void **state)
{
    static const ration_limit_rule two = SLOTS(2);
    static const ration_limit_rule five = SLOTS(5);
    const ration_counter_name name = {.limit = ration_text_of("l"), .key = ration_text_of("acc")};

    (void)state;
    begin(&two);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, "Retry-After", "5"), "observed");
    CHECK_STR(ask(0, "b wait=10000"), "queued");
    reload(MS(1000), &five, 1);
    CHECK_STR(ask(MS(1000), "c"), "penalized l acc 4000000us~");
    CHECK_EQ(ration_engine_pause(w.engine, ration_time_of(MS(1000)), &name), RATION_OK);
    reload(MS(2000), &two, 1);
    CHECK(report(MS(2000)).paused);
    world_advance(&w, MS(6000));
    CHECK_STR(world_events(&w), "");
    CHECK_EQ(ration_engine_resume(w.engine, ration_time_of(MS(7000)), &name), RATION_OK);
    CHECK_STR(world_events(&w), "granted b 7000;");
    /* An account's own, with no limit at all. */
    reload(MS(8000), NULL, 0);
    CHECK_STR(ask(MS(8000), "d"), "granted");
    CHECK_STR(world_observe(&w, MS(8000), "d", 429, "Retry-After", "5"), "observed");
    CHECK_STR(ask(MS(8000), "e wait=10000"), "queued");
    reload(MS(9000), NULL, 0);
    CHECK_STR(ask(MS(9000), "f"), "penalized - - 4000000us");
    world_advance(&w, MS(13000));
    CHECK_STR(world_events(&w), "granted e 5000;");
    world_fini(&w);
}

/* Who waits keeps its place, its deadline and what it was asked for; its path leads where it leads now. */
static void waiters_keep_their_order(void **state)
{
    static const ration_endpoint_rule before = {.path = "/o/{x}", .defaults = {.priority = RATION_PRIORITY_LOW}};
    static const ration_endpoint_rule after = {.path = "/o/{y}", .defaults = {.priority = RATION_PRIORITY_HIGH}};
    static const char *const by_y[] = {"var:y"};
    static const ration_limit_rule one = SLOTS(1);
    static const ration_limit_rule both[] = {
        SLOTS(1), {.name = "y", .kind = RATION_KIND_CONCURRENCY, .scope = by_y, .scope_count = 1, .max = UNIT}};
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    (void)state;
    rules_of(&rules, &provider, accounts, &one, 1);
    provider.endpoints = &before;
    provider.endpoint_count = 1;
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(ask(0, "z"), "granted");
    CHECK_STR(ask(0, "a wait=100 tenant=s path=/o/1"), "queued");
    CHECK_STR(ask(0, "b wait=100 tenant=s"), "queued");
    CHECK_STR(ask(0, "c wait=100 tenant=s"), "queued");
    CHECK_STR(ask(0, "d wait=100 tenant=t"), "queued");
    provider.endpoints = &after;
    provider.limits = both;
    provider.limit_count = 2;
    CHECK_EQ(reload_rules(MS(1), &rules), RATION_OK);
    CHECK_STR(world_events(&w), "");
    CHECK_STR(end(MS(2), "z"), "released");
    CHECK_STR(end(MS(3), "b"), "released");
    CHECK_STR(end(MS(4), "d"), "released");
    CHECK_STR(world_events(&w), "granted b 2;granted d 3;granted c 4;");
    CHECK_STR(end(MS(5), "c"), "released");
    CHECK_STR(world_events(&w), "granted a 5;");
    CHECK_STR(ask(MS(6), "e path=/o/1"), "concurrency_full l acc -");
    CHECK_EQ(report(MS(6)).held, UNIT); /* of y=1 */
    world_fini(&w);
}

/* In a fifo nobody has a tag: who waits keeps its place before those who come. */
static void the_order_of_queues_may_change(void **state)
{
    static const ration_limit_rule one = SLOTS(1);
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    (void)state;
    rules_of(&rules, &provider, accounts, &one, 1);
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(ask(0, "z"), "granted");
    CHECK_STR(ask(0, "a wait=100 tenant=s"), "queued");
    CHECK_STR(ask(0, "b wait=100 tenant=s"), "queued");
    rules.queue_order = RATION_QUEUE_FIFO;
    rules.max_waiters = 1;
    CHECK_EQ(reload_rules(MS(1), &rules), RATION_OK);
    CHECK_STR(ask(MS(1), "c wait=100 tenant=t"), "queue_full - - -");
    rules.max_waiters = 0;
    CHECK_EQ(reload_rules(MS(1), &rules), RATION_OK);
    CHECK_STR(ask(MS(1), "c wait=100 tenant=t"), "queued");
    rules.queue_order = RATION_QUEUE_FAIR;
    CHECK_EQ(reload_rules(MS(2), &rules), RATION_OK);
    CHECK_STR(ask(MS(2), "d wait=100 tenant=t"), "queued");
    for (const char *name = "zabc"; *name != '\0'; name++)
        CHECK_STR(end(MS(3), (char[]){*name, '\0'}), "released");
    CHECK_STR(world_events(&w), "granted a 3;granted b 3;granted c 2;granted d 1;");
    world_fini(&w);
}

static void bad_rules_change_nothing(void **state)
{
    static const ration_limit_rule one = SLOTS(1);
    static const ration_limit_rule none = SLOTS(0);
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;
    ration_fault fault;

    (void)state;
    begin(&one);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(ask(0, "b wait=100"), "queued");
    rules_of(&rules, &provider, accounts, &none, 1);
    CHECK_EQ(ration_engine_reload(w.engine, ration_time_of(MS(1)), &rules, &fault), RATION_ERR_CONFIG);
    CHECK_STR(fault.path, "providers[0].limits[0].max");
    CHECK_EQ(ration_engine_reload(w.engine, ration_time_of(MS(1)), NULL, &fault), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_reload(NULL, ration_time_of(MS(1)), &rules, &fault), RATION_ERR_INVALID);
    CHECK_STR(world_events(&w), "");
    CHECK_STR(end(MS(2), "a"), "released");
    CHECK_STR(world_events(&w), "granted b 2;");
    world_fini(&w);
}

/* What events say stays good until they are taken, however many reloads there are. */
static void events_outlive_their_rules(void **state)
{
    static const ration_limit_rule one = SLOTS(1);

    (void)state;
    begin(&one);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(ask(0, "b wait=10"), "queued");
    world_advance(&w, MS(20));
    reload(MS(20), NULL, 0);
    reload(MS(21), &one, 1);
    reload(MS(22), NULL, 0);
    CHECK_STR(world_events(&w), "refused b deadline l 10;");
    world_fini(&w);
}

typedef struct throttled_counts {
    uint64_t first, last; /* of the first limit; of calls that met none */
    size_t rows;
} throttled_counts;

static void throttled_take(void *ctx, const ration_throttled_report *row)
{
    throttled_counts *out = ctx;

    if (out->rows++ == 0)
        out->first = row->count;
    out->last = row->count;
}

static throttled_counts throttled(int64_t at_us)
{
    throttled_counts out = {.rows = 0};
    const ration_reporter reporter = {.ctx = &out, .throttled = throttled_take};

    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(at_us), RATION_REPORT_LIMITS, &reporter), RATION_OK);
    return out;
}

/* By the name of the limit, whatever it is now; one of a new name begins. */
static void what_providers_refused_stays_counted(void **state)
{
    static const ration_limit_rule two = SLOTS(2);
    static const ration_limit_rule rate = RATE(1, 9);
    static const ration_limit_rule renamed = LIMIT("m", CONCURRENCY, .max = 2 * UNIT);

    (void)state;
    begin(&two);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
    CHECK_EQ(throttled(0).first, 1);
    reload(MS(1), &rate, 1);
    CHECK_EQ(throttled(MS(1)).first, 1);
    CHECK_EQ(throttled(MS(1)).last, 0);
    reload(MS(2), &renamed, 1);
    CHECK_EQ(throttled(MS(2)).first, 0);
    reload(MS(3), NULL, 0);
    CHECK_STR(ask(MS(5000), "b"), "granted");
    CHECK_STR(world_observe(&w, MS(5000), "b", 429, NULL, NULL), "observed");
    CHECK_EQ(throttled(MS(5000)).rows, 1);
    CHECK_EQ(throttled(MS(5000)).last, 1);
    reload(MS(6000), &two, 1);
    CHECK_EQ(throttled(MS(6000)).last, 1);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_move_and_what_is_held_drains),
        cmocka_unit_test(a_waiter_that_never_fits_again_is_told_at_once),
        cmocka_unit_test(a_bucket_is_never_refilled),
        cmocka_unit_test(what_a_quota_spent_stays_spent),
        cmocka_unit_test(another_window_counts_what_it_may_hold),
        cmocka_unit_test(leases_of_before_the_window_settle_nothing),
        cmocka_unit_test(nothing_makes_room_for_a_new_key),
        cmocka_unit_test(shadows_go_on),
        cmocka_unit_test(exhaustion_holds_to_the_end_that_it_had),
        cmocka_unit_test(what_is_gone_is_forgotten_and_what_is_new_is_fresh),
        cmocka_unit_test(a_new_limit_binds_who_waits),
        cmocka_unit_test(penalties_and_pauses_go_on),
        cmocka_unit_test(what_providers_refused_stays_counted),
        cmocka_unit_test(waiters_keep_their_order),
        cmocka_unit_test(the_order_of_queues_may_change),
        cmocka_unit_test(bad_rules_change_nothing),
        cmocka_unit_test(events_outlive_their_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
