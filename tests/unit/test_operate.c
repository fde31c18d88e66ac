/* SPDX-License-Identifier: MIT */
#include <ration/operate.h>
#include <ration/state.h>

#include "support/check.h"
#include "support/world.h"

#include <stdio.h>

#define MS(n) ((int64_t)(n)*1000)
#define UNIT RATION_UNIT
#define MINUTE_US (60 * INT64_C(1000000))

static world w;

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};
static const ration_tenant_share tenants[] = {{.name = "s", .weight = 1}, {.name = "t", .weight = 1}};

/* One of each kind; a request names those it needs by their variables. */
static const char *const by_rate[] = {"var:rate"};
static const char *const by_slots[] = {"var:slots"};
static const char *const by_quota[] = {"var:quota"};
static const char *const by_rolling[] = {"var:rolling"};
static const char *const by_share[] = {"var:share"};
static const char *const by_adaptive[] = {"var:adaptive"};
static const ration_limit_rule limits[] = {
    {.name = "rate",
     .kind = RATION_KIND_RATE,
     .scope = by_rate,
     .scope_count = 1,
     .rate = {UNIT, MINUTE_US},
     .burst = 4 * UNIT,
     .margin = 0},
    {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_slots, .scope_count = 1, .max = 2 * UNIT},
    {.name = "quota",
     .kind = RATION_KIND_QUOTA,
     .scope = by_quota,
     .scope_count = 1,
     .max = 2 * UNIT,
     .window = {.period = RATION_PERIOD_HOUR},
     .arrival_us = RATION_UNSET,
     .sync = {.limit_header = "x-limit", .remaining_header = "x-left", .reset_header = "x-reset"}},
    {.name = "rolling",
     .kind = RATION_KIND_QUOTA,
     .counts = RATION_COUNTS_COST,
     .scope = by_rolling,
     .scope_count = 1,
     .max = 2 * UNIT,
     .window = {.rolling_us = MINUTE_US},
     .when_exhausted = RATION_EXHAUSTED_WAIT,
     .sync = {.limit_header = "x-limit"}},
    {.name = "share",
     .kind = RATION_KIND_SHARE,
     .counts = RATION_COUNTS_COST,
     .scope = by_share,
     .scope_count = 1,
     .share = {.ceiling = 4 * UNIT,
               .tenants = tenants,
               .tenant_count = 2,
               .reclaim_horizon_us = MS(100),
               .idle_after_us = MS(200)}},
    {.name = "adaptive",
     .kind = RATION_KIND_ADAPTIVE,
     .scope = by_adaptive,
     .scope_count = 1,
     .adaptive = {.initial_limit = 2, .cooldown_us = MS(1)}},
};
#define LIMITS (sizeof limits / sizeof limits[0])

/* Both accounts have all of it. */
static void whole_rules(ration_rules *rules, ration_provider_rule *provider, ration_account_rule accounts[2])
{
    world_rules(rules, provider, accounts, limits, LIMITS);
    accounts[1].share = (ration_ratio){1, 1};
}

static void begin(void)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    whole_rules(&rules, &provider, accounts);
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
}

static const char *answer_of(int err)
{
    static char text[16];

    if (err == RATION_OK)
        return "ok";
    if (err == RATION_ERR_UNKNOWN)
        return "unknown";
    snprintf(text, sizeof text, "error %d", err);
    return text;
}

/* "pause", "resume", "reset" or "grant". */
static const char *operate(int64_t at_us, const char *what, const char *limit, const char *key, int64_t units)
{
    const ration_counter_name name = {.limit = ration_text_of(limit), .key = ration_text_of(key)};
    const ration_time now = {at_us};

    if (strcmp(what, "pause") == 0)
        return answer_of(ration_engine_pause(w.engine, now, &name));
    if (strcmp(what, "resume") == 0)
        return answer_of(ration_engine_resume(w.engine, now, &name));
    if (strcmp(what, "reset") == 0)
        return answer_of(ration_engine_reset(w.engine, now, &name));
    return answer_of(ration_engine_grant(w.engine, now, &name, units));
}

static const char *end(int64_t at_us, const char *name)
{
    return world_release(&w, at_us, name, RATION_OUTCOME_SUCCESS, RATION_UNSET);
}

static void row_take(void *ctx, const ration_counter_report *report)
{
    *(ration_counter_report *)ctx = *report;
}

/* The only counter that there is. */
static ration_counter_report report(int64_t at_us)
{
    ration_counter_report row = {0};
    const ration_reporter reporter = {.ctx = &row, .counter = row_take};

    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(at_us), RATION_REPORT_STATS, &reporter), RATION_OK);
    return row;
}

static void a_paused_counter_grants_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < LIMITS; i++) {
        const char *name = limits[i].name;
        char ask[64];
        char key[32];
        char want[64];

        CHECK_ROW(name);
        begin();
        snprintf(key, sizeof key, "%s=1", name);
        snprintf(ask, sizeof ask, "a tenant=s %s", key);
        CHECK_STR(world_ask(&w, 0, ask), "granted");
        CHECK_STR(operate(1, "pause", name, key, 0), "ok");
        CHECK(report(1).paused);
        snprintf(ask, sizeof ask, "b tenant=s %s", key);
        snprintf(want, sizeof want, "paused %s %s -", name, key);
        CHECK_STR(world_ask(&w, 2, ask), want);
        snprintf(ask, sizeof ask, "c tenant=s wait=1000 %s", key);
        CHECK_STR(world_ask(&w, 3, ask), "queued");
        snprintf(ask, sizeof ask, "d tenant=s wait=10 %s", key);
        CHECK_STR(world_ask(&w, 4, ask), "queued");
        CHECK_STR(end(5, "a"), "released");
        CHECK_STR(operate(5, "reset", name, key, 0), "ok");
        CHECK_STR(world_events(&w), "");
        world_advance(&w, MS(11));
        snprintf(want, sizeof want, "refused d deadline %s 10;", name);
        CHECK_STR(world_events(&w), want);
        CHECK_STR(operate(MS(20), "resume", name, key, 0), "ok");
        CHECK_STR(world_events(&w), "granted c 19;");
        CHECK(!report(MS(20)).paused);
        CHECK_STR(operate(MS(20), "resume", name, key, 0), "ok");
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

/* A pause and a penalty end each for itself; a pause in the way of somebody does not keep others of the provider. */
static void a_pause_is_of_one_counter(void **state)
{
    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a slots=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b slots=2"), "granted");
    CHECK_STR(operate(0, "pause", "slots", "slots=1", 0), "ok");
    CHECK_STR(world_ask(&w, 1, "c slots=1 wait=60000"), "queued");
    CHECK_STR(world_ask(&w, 1, "d slots=2"), "granted");
    CHECK_STR(world_observe(&w, 2, "a", 429, "Retry-After", "5"), "observed");
    CHECK_STR(operate(MS(10), "resume", "slots", "slots=1", 0), "ok");
    CHECK_STR(world_events(&w), "");
    CHECK_STR(operate(MS(4000), "pause", "slots", "slots=1", 0), "ok");
    world_advance(&w, MS(6000));
    CHECK_STR(world_events(&w), "");
    CHECK_STR(operate(MS(7000), "resume", "slots", "slots=1", 0), "ok");
    CHECK_STR(world_events(&w), "granted c 6999;");
    world_fini(&w);
}

static void a_pause_names_itself_before_what_has_a_time(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 4; i++)
        CHECK_STR(world_ask(&w, 0, "a rate=1 slots=1"), i < 2 ? "granted" : "concurrency_full slots slots=1 -");
    CHECK_STR(operate(0, "pause", "rate", "rate=1", 0), "ok");
    /* Both times are unknown: the first declared. */
    CHECK_STR(world_ask(&w, 0, "b rate=1 slots=1"), "paused rate rate=1 -");
    CHECK_STR(operate(0, "pause", "quota", "quota=1", 0), "unknown");
    CHECK_STR(world_ask(&w, 0, "c quota=1 cost=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "d quota=1 cost=1"), "granted");
    CHECK_STR(operate(0, "pause", "quota", "quota=1", 0), "ok");
    /* What refuses whatever the deadline comes first, and with it nobody knows when. */
    CHECK_STR(world_ask(&w, 0, "e quota=1 wait=100"), "quota_exhausted quota quota=1 -");
    world_fini(&w);
}

static void a_reset_begins_anew(void **state)
{
    ration_counter_report row;

    (void)state;
    begin();
    for (int i = 0; i < 4; i++)
        CHECK_STR(world_ask(&w, 0, "a rate=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b rate=1 wait=300000"), "queued");
    CHECK_STR(operate(1, "reset", "rate", "rate=1", 0), "ok");
    CHECK_STR(world_events(&w), "granted b 0;");
    CHECK_EQ(report(1).available, 3 * UNIT);
    world_fini(&w);

    begin();
    CHECK_STR(world_ask(&w, 0, "a slots=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b slots=1"), "granted");
    CHECK_STR(operate(1, "reset", "slots", "slots=1", 0), "ok");
    CHECK_STR(world_ask(&w, 1, "c slots=1"), "concurrency_full slots slots=1 -");
    CHECK_EQ(report(1).held, 2 * UNIT);
    world_fini(&w);

    begin();
    CHECK_STR(world_ask(&w, 0, "a adaptive=1"), "granted");
    CHECK_STR(world_release(&w, 1, "a", RATION_OUTCOME_THROTTLED, RATION_UNSET), "released");
    CHECK_EQ(report(1).current, UNIT);
    CHECK_STR(world_ask(&w, MS(3000), "b adaptive=1"), "granted");
    CHECK_STR(world_ask(&w, MS(3000), "c adaptive=1 wait=1000"), "queued");
    CHECK_STR(operate(MS(3000), "reset", "adaptive", "adaptive=1", 0), "ok");
    CHECK_STR(world_events(&w), "limit adaptive 1;limit adaptive 2;granted c 0;");
    row = report(MS(3000));
    CHECK_EQ(row.current, 2 * UNIT);
    CHECK_EQ(row.held, 2 * UNIT);
    /* Its first window begins with the reset: it grows a window later, and not before. */
    CHECK_STR(world_ask(&w, MS(7999), "d adaptive=1"), "adaptive_full adaptive adaptive=1 -");
    CHECK_STR(world_ask(&w, MS(8000), "d adaptive=1"), "granted");
    CHECK_STR(end(MS(8000), "b"), "released");
    CHECK_STR(end(MS(8000), "c"), "released");
    CHECK_STR(operate(MS(8000), "reset", "adaptive", "adaptive=1", 0), "ok");
    CHECK_STR(world_ask(&w, MS(9000), "e adaptive=1"), "granted");
    CHECK_STR(world_ask(&w, MS(13000), "f adaptive=1"), "granted");
    world_fini(&w);
}

static void a_reset_ends_a_penalty(void **state)
{
    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a slots=1"), "granted");
    CHECK_STR(world_observe(&w, 1, "a", 429, "Retry-After", "60"), "observed");
    CHECK_STR(world_ask(&w, 2, "b slots=1 wait=90000"), "queued");
    CHECK_STR(operate(3, "reset", "slots", "slots=1", 0), "ok");
    CHECK_STR(world_events(&w), "granted b 0;");
    world_advance(&w, MS(70000));
    CHECK_STR(world_events(&w), "");
    world_fini(&w);
}

static void a_reset_quota_forgets_its_leases(void **state)
{
    ration_counter_report row;

    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a quota=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b quota=1"), "granted");
    CHECK_STR(world_observe(&w, 1, "a", 200, "x-limit", "7"), "observed");
    CHECK_STR(world_observe(&w, 1, "b", 429, "x-left", "0"), "observed");
    CHECK_STR(operate(MS(9000), "reset", "quota", "quota=1", 0), "ok");
    row = report(MS(9000));
    CHECK_EQ(row.max, 2 * UNIT);
    CHECK_EQ(row.used, 0);
    CHECK_EQ(row.remaining, 2 * UNIT);
    CHECK_EQ(row.external, 0);
    /* What the provider says to a lease of before is of a window that is over. */
    CHECK_STR(world_observe(&w, MS(9001), "a", 200, "x-left", "0"), "observed");
    CHECK_EQ(report(MS(9001)).remaining, 2 * UNIT);
    CHECK_STR(world_ask(&w, MS(9002), "c quota=1"), "granted");
    CHECK_STR(world_observe(&w, MS(9003), "c", 200, "x-left", "0"), "observed");
    CHECK_STR(world_ask(&w, MS(9004), "d quota=1"), "quota_exhausted quota quota=1 3590996000us");
    world_fini(&w);

    begin();
    CHECK_STR(world_ask(&w, 0, "a rolling=1 cost=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b rolling=1 cost=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "c rolling=1 cost=2 wait=90000"), "queued");
    CHECK_STR(operate(1, "reset", "rolling", "rolling=1", 0), "ok");
    CHECK_STR(world_events(&w), "granted c 0;");
    /* Settlements of before count nowhere, up or down. */
    CHECK_STR(world_release(&w, 2, "a", RATION_OUTCOME_SUCCESS, 0), "released");
    CHECK_STR(world_release(&w, 2, "b", RATION_OUTCOME_SUCCESS, 9 * UNIT), "released");
    CHECK_EQ(report(3).used, 2 * UNIT);
    CHECK_STR(world_release(&w, 4, "c", RATION_OUTCOME_SUCCESS, UNIT), "released");
    CHECK_EQ(report(4).used, UNIT);
    CHECK_EQ(report(2 * MINUTE_US).used, 0);
    world_fini(&w);

    /* What was on its way is forgotten too. */
    begin();
    CHECK_STR(world_ask(&w, 0, "a quota=1"), "granted");
    CHECK_STR(operate(1, "reset", "quota", "quota=1", 0), "ok");
    CHECK_STR(world_ask(&w, 2, "b quota=1"), "granted");
    CHECK_STR(world_observe(&w, 3, "b", 200, "x-left", "1"), "observed");
    CHECK_EQ(report(3).remaining, UNIT);
    CHECK_STR(end(4, "a"), "released");
    CHECK_EQ(report(4).remaining, UNIT);
    world_fini(&w);
}

/* With the learned maximum goes what only that would hold, and who waits for something else is told so at once. */
static void a_reset_may_be_the_end_of_a_waiter(void **state)
{
    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a rolling=1 slots=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b rolling=1 slots=1 cost=0"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 200, "x-limit", "9"), "observed");
    CHECK_STR(world_ask(&w, 0, "c rolling=1 slots=1 cost=4 wait=1000"), "queued");
    CHECK_STR(operate(MS(2), "reset", "rolling", "rolling=1", 0), "ok");
    CHECK_STR(world_events(&w), "refused c cost_exceeds_limit rolling 2;");
    world_fini(&w);
}

/* An end that headers moved is the calendar's again. */
static void a_reset_window_is_the_calendars(void **state)
{
    ration_counter_report row;

    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a quota=1"), "granted");
    CHECK_STR(world_observe(&w, 1, "a", 200, "x-reset", "2400.5"), "observed");
    CHECK_EQ(report(2).window_end.us, 1 + 2400500000);
    CHECK_STR(operate(3, "reset", "quota", "quota=1", 0), "ok");
    row = report(3);
    CHECK_EQ(row.window_start.us, 0);
    CHECK_EQ(row.window_end.us, 60 * MINUTE_US);
    world_fini(&w);
}

static void a_reset_share_forgets_what_was_wanted(void **state)
{
    ration_counter_report row;

    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a tenant=s cost=2 share=1 hold=90"), "granted");
    CHECK_STR(world_ask(&w, 0, "b tenant=s cost=2 share=1 hold=90"), "granted");
    CHECK_STR(world_ask(&w, MS(1), "c tenant=t cost=2 share=1"), "guarantee_on_loan share share=1 89000us~");
    row = report(MS(10));
    CHECK_EQ(row.tenants[0].granted, 2);
    CHECK_EQ(row.tenants[1].want, 2 * UNIT);
    CHECK_EQ(row.tenants[1].deficit_unit_ms, 18);
    CHECK_STR(operate(MS(10), "reset", "share", "share=1", 0), "ok");
    row = report(MS(20));
    CHECK_EQ(row.tenants[0].granted, 0);
    CHECK_EQ(row.tenants[0].held, 4 * UNIT);
    CHECK_EQ(row.tenants[0].borrowed, 2 * UNIT);
    CHECK_EQ(row.tenants[1].lent, 2 * UNIT);
    CHECK_EQ(row.tenants[1].want, 0);
    CHECK_EQ(row.tenants[1].deficit_unit_ms, 0);
    CHECK_EQ(row.tenants[1].refused[RATION_REASON_GUARANTEE_ON_LOAN], 0);
    CHECK(!row.tenants[1].idle);
    /* Who waits goes on asking. */
    CHECK_STR(world_ask(&w, MS(20), "d tenant=t cost=1 share=1 wait=500"), "queued");
    CHECK_STR(operate(MS(30), "reset", "share", "share=1", 0), "ok");
    CHECK_EQ(report(MS(30)).tenants[1].want, UNIT);
    CHECK_EQ(report(MS(35)).tenants[1].deficit_unit_ms, 5);
    CHECK_STR(end(MS(40), "b"), "released");
    CHECK_STR(world_events(&w), "granted d 20;");
    CHECK_EQ(report(MS(40)).tenants[1].reclaims, 1);
    world_fini(&w);
}

static void more_is_granted_once(void **state)
{
    ration_counter_report row;

    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a quota=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b quota=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "c quota=1"), "quota_exhausted quota quota=1 3600000000us");
    CHECK_STR(operate(0, "grant", "quota", "quota=1", 2 * UNIT), "ok");
    CHECK_STR(operate(0, "grant", "quota", "quota=1", UNIT), "ok");
    row = report(0);
    CHECK_EQ(row.max, 2 * UNIT);
    CHECK_EQ(row.usable, 5 * UNIT);
    CHECK_EQ(row.extra, 3 * UNIT);
    CHECK_EQ(row.remaining, 3 * UNIT);
    for (int i = 0; i < 3; i++)
        CHECK_STR(world_ask(&w, MS(1), "d quota=1"), "granted");
    CHECK_STR(world_ask(&w, MS(1), "e quota=1"), "quota_exhausted quota quota=1 3599999000us");
    /* The next window has no part of it. */
    row = report(60 * MINUTE_US);
    CHECK_EQ(row.usable, 2 * UNIT);
    CHECK_EQ(row.extra, 0);
    /* The provider's word holds. */
    CHECK_STR(world_ask(&w, 61 * MINUTE_US, "f quota=1"), "granted");
    CHECK_STR(world_observe(&w, 61 * MINUTE_US, "f", 200, "x-left", "0"), "observed");
    CHECK_STR(operate(61 * MINUTE_US, "grant", "quota", "quota=1", UNIT), "ok");
    CHECK_STR(world_ask(&w, 61 * MINUTE_US, "g quota=1"), "quota_exhausted quota quota=1 3540000000us");
    /* And a reset ends it. */
    CHECK_STR(operate(61 * MINUTE_US, "reset", "quota", "quota=1", 0), "ok");
    CHECK_EQ(report(61 * MINUTE_US).usable, 2 * UNIT);
    world_fini(&w);
}

static void a_rolling_window_has_more_for_its_length(void **state)
{
    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a rolling=1 cost=2"), "granted");
    CHECK_STR(world_ask(&w, 0, "b rolling=1 cost=1.5 wait=100000"), "queued");
    CHECK_STR(operate(MS(500), "grant", "rolling", "rolling=1", UNIT + UNIT / 2), "ok");
    CHECK_STR(world_events(&w), "granted b 500;");
    CHECK_EQ(report(MS(500)).usable, 3 * UNIT + UNIT / 2);
    /* A bucket of a second counts until all of it is older than a minute and a second: to 62 s. By then the extra is
     * over, so what was granted of it keeps out others to the end. */
    CHECK_STR(world_ask(&w, MS(600), "c rolling=1 cost=2"), "quota_exhausted rolling rolling=1 61400000us");
    CHECK_EQ(report(MS(61499)).extra, UNIT + UNIT / 2);
    CHECK_EQ(report(MS(61500)).extra, 0);
    CHECK_EQ(report(MS(61500)).remaining, 0);
    CHECK_STR(world_ask(&w, MS(62000), "c rolling=1 cost=2"), "granted");
    world_fini(&w);

    /* A time that is told knows that the extra ends. */
    begin();
    CHECK_STR(world_ask(&w, 0, "a rolling=1 cost=2"), "granted");
    CHECK_STR(operate(MS(10000), "grant", "rolling", "rolling=1", 2 * UNIT), "ok");
    CHECK_STR(world_ask(&w, MS(10000), "b rolling=1 cost=2"), "granted");
    CHECK_STR(world_ask(&w, MS(10000), "c rolling=1 cost=2"), "quota_exhausted rolling rolling=1 52000000us");
    CHECK_STR(world_ask(&w, MS(10000), "d rolling=1 cost=4"), "quota_exhausted rolling rolling=1 -");
    world_fini(&w);
}

/* What is said to be granted is there. */
static void no_more_is_granted_than_can_be_counted(void **state)
{
    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a rolling=1 cost=1"), "granted");
    CHECK_STR(operate(0, "grant", "rolling", "rolling=1", RATION_UNITS_MAX - UNIT), "ok");
    CHECK_STR(operate(0, "grant", "rolling", "rolling=1", UNIT + 1), "error -3");
    CHECK_EQ(report(0).extra, RATION_UNITS_MAX - UNIT);
    CHECK_STR(operate(0, "grant", "rolling", "rolling=1", UNIT), "ok");
    CHECK_STR(operate(0, "grant", "rolling", "rolling=1", 1), "error -3");
    CHECK_EQ(report(0).extra, RATION_UNITS_MAX);
    world_fini(&w);
}

static void a_bucket_is_filled_up_to_its_burst(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 4; i++)
        CHECK_STR(world_ask(&w, 0, "a rate=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b rate=1 wait=300000"), "queued");
    CHECK_STR(world_ask(&w, 0, "c rate=1 wait=300000"), "queued");
    CHECK_STR(operate(1, "grant", "rate", "rate=1", UNIT), "ok");
    CHECK_STR(world_events(&w), "granted b 0;");
    CHECK_STR(operate(2, "grant", "rate", "rate=1", 9007199254 * UNIT), "ok");
    CHECK_STR(world_events(&w), "granted c 0;");
    CHECK_EQ(report(2).available, 3 * UNIT);
    world_fini(&w);
}

static void what_makes_no_sense_is_an_error(void **state)
{
    static const struct {
        const char *why;
        const char *what, *limit, *key;
        int64_t units;
        const char *want;
    } rows[] = {
        {"a limit that does not exist", "pause", "slot", "slots=1", 0, "unknown"},
        {"a key that nobody has asked for", "pause", "slots", "slots=2", 0, "unknown"},
        {"nor to resume", "resume", "slots", "slots=2", 0, "unknown"},
        {"nor to reset", "reset", "slots", "", 0, "unknown"},
        {"no limit", "pause", NULL, "slots=1", 0, "error -1"},
        {"no key", "pause", "slots", NULL, 0, "error -1"},
        {"slots are held, not spent", "grant", "slots", "slots=1", UNIT, "error -1"},
        {"so is a ceiling", "grant", "share", "share=1", UNIT, "error -1"},
        {"so is what is learned", "grant", "adaptive", "adaptive=1", UNIT, "error -1"},
        {"nothing more", "grant", "quota", "quota=1", 0, "error -3"},
        {"less", "grant", "quota", "quota=1", -UNIT, "error -3"},
        {"too much", "grant", "rolling", "rolling=1", RATION_UNITS_MAX + 1, "error -3"},
        {"a part of a request", "grant", "quota", "quota=1", UNIT / 2, "error -3"},
        {"a part of a cost", "grant", "rolling", "rolling=1", 1, "ok"},
        {"all that there is", "grant", "rolling", "rolling=1", RATION_UNITS_MAX - 1, "ok"},
        {"and once more", "grant", "rolling", "rolling=1", 1, "error -3"},
    };

    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a tenant=s rate=1 slots=1 quota=1 rolling=1 share=1 adaptive=1"), "granted");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        CHECK_STR(operate(0, rows[i].what, rows[i].limit, rows[i].key, rows[i].units), rows[i].want);
    }
    CHECK_ROW(NULL);
    CHECK_STR(world_ask(&w, 0, "b rolling=1 cost=5"), "granted");
    CHECK_EQ(ration_engine_pause(NULL, ration_time_of(0), NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_pause(w.engine, ration_time_of(0), NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_drain(NULL, ration_time_of(0)), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_drain(w.engine, ration_time_of(RATION_NEVER_US)), RATION_ERR_INVALID);
    world_fini(&w);
}

/* Two providers have a limit of one name; one account replaces it. */
static void names_lead_to_one_counter(void **state)
{
    static const ration_limit_rule slots = {
        .name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = UNIT};
    static const ration_limit_rule more = {
        .name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = 2 * UNIT};
    const ration_provider_rule providers[] = {{.name = "p", .limits = &slots, .limit_count = 1},
                                              {.name = "q", .limits = &slots, .limit_count = 1}};
    const ration_account_rule accounts[] = {{.name = "acc", .provider = "p"},
                                            {.name = "b", .provider = "p", .limits = &more, .limit_count = 1},
                                            {.name = "b/c", .provider = "p", .limits = &more, .limit_count = 1},
                                            {.name = "dcc", .provider = "q"}};
    const ration_rules rules = {.providers = providers, .provider_count = 2, .accounts = accounts, .account_count = 4};
    ration_counter_name name = {.limit = ration_text_of("slots"), .key = ration_text_of("b%2Fc")};
    const ration_time now = {0};

    (void)state;
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, 0, "a account=b/c"), "granted");
    CHECK_EQ(ration_engine_pause(w.engine, now, &name), RATION_ERR_INVALID);
    name.provider = ration_text_of("r");
    CHECK_EQ(ration_engine_pause(w.engine, now, &name), RATION_ERR_UNKNOWN);
    name.provider = ration_text_of("q");
    CHECK_EQ(ration_engine_pause(w.engine, now, &name), RATION_ERR_UNKNOWN);
    name.provider = ration_text_of("p");
    CHECK_EQ(ration_engine_pause(w.engine, now, &name), RATION_OK);
    CHECK_STR(world_ask(&w, 0, "b account=b/c"), "paused slots b%2Fc -");
    CHECK_STR(world_ask(&w, 0, "c account=acc"), "granted");
    world_fini(&w);
}

static void who_drains_takes_nothing_new(void **state)
{
    ration_totals totals;

    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a slots=1 ttl=50"), "granted");
    CHECK_STR(world_ask(&w, 0, "b slots=1"), "granted");
    CHECK_STR(world_ask(&w, 1, "c slots=1 wait=1000 priority=low"), "queued");
    CHECK_STR(world_ask(&w, 1, "d slots=1 wait=1000"), "queued");
    CHECK_STR(world_ask(&w, 1, "e quota=1 cost=1"), "granted");
    CHECK_EQ(ration_engine_drain(w.engine, ration_time_of(MS(5))), RATION_OK);
    CHECK_STR(world_events(&w), "refused d draining - 4;refused c draining - 4;");
    CHECK_STR(world_ask(&w, MS(6), "f slots=2"), "draining - - -");
    CHECK_STR(world_ask(&w, MS(6), "g slots=2 wait=100 health=1"), "draining - - -");
    CHECK_STR(world_renew(&w, MS(7), "a"), "renewed");
    CHECK_STR(end(MS(8), "b"), "released");
    CHECK_EQ(ration_engine_drain(w.engine, ration_time_of(MS(9))), RATION_OK);
    world_advance(&w, MS(57));
    CHECK_STR(world_events(&w), "lost a;");
    ration_engine_totals(w.engine, &totals);
    CHECK_EQ(totals.refusals[RATION_REASON_DRAINING], 4);
    CHECK_EQ(totals.held, 1);
    CHECK_EQ(totals.waiting, 0);
    world_fini(&w);
}

/* ---- a pause outlives the process ---- */

static ration_record kept[8];
static size_t kept_count;

static void keep(void *ctx, const ration_record *record)
{
    (void)ctx;
    if (record->type == RATION_RECORD_PAUSE)
        kept[kept_count++] = *record;
}

static void begin_again(const ration_record *records, size_t count)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;
    const ration_engine_options options = {.rules = &rules, .keeps = true};
    const ration_state state = {.records = records, .count = count};
    size_t unknown = 9;

    whole_rules(&rules, &provider, accounts);
    memset(&w, 0, sizeof w);
    CHECK_EQ(ration_engine_new(&options, ration_time_of(0), &w.engine, NULL), RATION_OK);
    CHECK_EQ(ration_engine_load(w.engine, ration_time_of(0), &state, &unknown), RATION_OK);
    CHECK_EQ(unknown, 0);
    kept_count = 0;
}

static void a_pause_is_kept(void **state)
{
    const ration_record paused = {.type = RATION_RECORD_PAUSE,
                                  .provider = ration_text_of("p"),
                                  .limit = ration_text_of("slots"),
                                  .key = ration_text_of("slots=1"),
                                  .u.paused = true};
    ration_record over = paused;

    (void)state;
    begin_again(NULL, 0);
    CHECK_STR(world_ask(&w, 0, "a slots=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b slots=2"), "granted");
    CHECK_EQ(ration_engine_save(w.engine, ration_time_of(0), false, NULL, keep), RATION_OK);
    CHECK_EQ(kept_count, 0);
    CHECK_STR(operate(0, "pause", "slots", "slots=1", 0), "ok");
    CHECK_EQ(ration_engine_save(w.engine, ration_time_of(1), false, NULL, keep), RATION_OK);
    CHECK_EQ(kept_count, 1);
    CHECK_TEXT(kept[0].key, "slots=1");
    CHECK(kept[0].u.paused);
    CHECK_STR(operate(2, "resume", "slots", "slots=1", 0), "ok");
    CHECK_EQ(ration_engine_save(w.engine, ration_time_of(2), false, NULL, keep), RATION_OK);
    CHECK_EQ(kept_count, 2);
    CHECK(!kept[1].u.paused);
    world_fini(&w);

    begin_again(&paused, 1);
    CHECK_STR(world_ask(&w, 0, "a slots=1"), "paused slots slots=1 -");
    CHECK_STR(world_ask(&w, 0, "b slots=2"), "granted");
    CHECK_STR(operate(0, "resume", "slots", "slots=1", 0), "ok");
    CHECK_STR(world_ask(&w, 0, "c slots=1"), "granted");
    world_fini(&w);

    /* One that nobody has asked for yet can be resumed. */
    begin_again(&paused, 1);
    CHECK_STR(operate(0, "resume", "slots", "slots=1", 0), "ok");
    CHECK_STR(operate(0, "resume", "slots", "slots=3", 0), "unknown");
    CHECK_STR(world_ask(&w, 0, "a slots=1"), "granted");
    CHECK_EQ(ration_engine_save(w.engine, ration_time_of(1), false, NULL, keep), RATION_OK);
    CHECK_EQ(kept_count, 1);
    CHECK(!kept[0].u.paused);
    world_fini(&w);

    over.u.paused = false;
    begin_again(&over, 1);
    CHECK_STR(world_ask(&w, 0, "a slots=1"), "granted");
    world_fini(&w);
}

/* A reset takes nothing back of what a strict quota has promised: grants wait for a mark as before. */
static void a_reset_moves_no_mark(void **state)
{
    static const ration_limit_rule strict = {.name = "quota",
                                             .kind = RATION_KIND_QUOTA,
                                             .scope = by_account,
                                             .scope_count = 1,
                                             .max = 200 * UNIT,
                                             .window = {.period = RATION_PERIOD_HOUR},
                                             .durability = RATION_DURABILITY_STRICT,
                                             .sync = {.reset_header = "x-reset"}};

    (void)state;
    world_init(&w, &strict, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(operate(0, "reset", "quota", "acc", 0), "ok");
    CHECK_STR(world_ask(&w, 0, "b"), "granted");
    CHECK_STR(world_ask(&w, 0, "c"), "store_unavailable quota acc -");
    CHECK_EQ(ration_engine_need(w.engine), RATION_NEED_SAVE);
    CHECK_EQ(ration_engine_save(w.engine, ration_time_of(0), false, NULL, keep), RATION_OK);
    CHECK_EQ(ration_engine_kept(w.engine, ration_time_of(0)), RATION_OK);
    CHECK_EQ(report(0).used, UNIT);
    CHECK_STR(world_ask(&w, 0, "c"), "granted");
    CHECK_STR(world_ask(&w, 0, "d"), "granted");
    CHECK_STR(world_ask(&w, 0, "e"), "store_unavailable quota acc -");
    /* A window that begins elsewhere has a block of its own. */
    CHECK_STR(world_observe(&w, 1, "c", 200, "x-reset", "5400.5"), "observed");
    CHECK_STR(operate(2, "reset", "quota", "acc", 0), "ok");
    CHECK_EQ(report(2).window_start.us, 0);
    CHECK_EQ(report(2).used, 0);
    world_fini(&w);
}

/* A paused counter is never forgotten, or its pause would be. */
static void a_paused_counter_is_not_evicted(void **state)
{
    static const ration_limit_rule slots = {
        .name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = UNIT, .max_keys = 1};

    (void)state;
    world_init(&w, &slots, 1);
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(end(0, "a"), "released");
    CHECK_STR(operate(0, "pause", "slots", "x=1", 0), "ok");
    CHECK_STR(world_ask(&w, 0, "b x=2"), "too_many_keys slots - -");
    CHECK_STR(operate(0, "resume", "slots", "x=1", 0), "ok");
    CHECK_STR(world_ask(&w, 0, "b x=2"), "granted");
    world_fini(&w);
}

/* Nor one that was granted more. */
static void what_was_granted_is_not_evicted(void **state)
{
    static const ration_limit_rule quota = {.name = "quota",
                                            .kind = RATION_KIND_QUOTA,
                                            .scope = by_x,
                                            .scope_count = 1,
                                            .max = 5 * UNIT,
                                            .window = {.period = RATION_PERIOD_HOUR},
                                            .max_keys = 1};

    (void)state;
    world_init(&w, &quota, 1);
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(end(0, "a"), "released");
    CHECK_STR(operate(0, "reset", "quota", "x=1", 0), "ok");
    CHECK_STR(operate(0, "grant", "quota", "x=1", UNIT), "ok");
    CHECK_STR(world_ask(&w, 0, "b x=2"), "too_many_keys quota - -");
    CHECK_STR(operate(0, "reset", "quota", "x=1", 0), "ok");
    CHECK_STR(world_ask(&w, 0, "b x=2"), "granted");
    world_fini(&w);
}

/* A shadow limit binds nobody, paused or not; and what an operator does to it does no harm. */
static void a_paused_shadow_binds_nobody(void **state)
{
    static const ration_limit_rule slots = {.name = "slots",
                                            .kind = RATION_KIND_CONCURRENCY,
                                            .scope = by_account,
                                            .scope_count = 1,
                                            .max = UNIT,
                                            .enforce = RATION_ENFORCE_SHADOW};

    (void)state;
    world_init(&w, &slots, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(operate(0, "pause", "slots", "acc", 0), "ok");
    CHECK_STR(world_ask(&w, 0, "b"), "granted");
    CHECK_EQ(report(0).shadowed, 1);
    CHECK_STR(operate(0, "reset", "slots", "acc", 0), "ok");
    CHECK_EQ(report(0).shadowed, 0);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_paused_counter_grants_nothing),
        cmocka_unit_test(a_pause_is_of_one_counter),
        cmocka_unit_test(a_pause_names_itself_before_what_has_a_time),
        cmocka_unit_test(a_reset_begins_anew),
        cmocka_unit_test(a_reset_ends_a_penalty),
        cmocka_unit_test(a_reset_quota_forgets_its_leases),
        cmocka_unit_test(a_reset_window_is_the_calendars),
        cmocka_unit_test(a_reset_share_forgets_what_was_wanted),
        cmocka_unit_test(more_is_granted_once),
        cmocka_unit_test(a_rolling_window_has_more_for_its_length),
        cmocka_unit_test(no_more_is_granted_than_can_be_counted),
        cmocka_unit_test(a_bucket_is_filled_up_to_its_burst),
        cmocka_unit_test(what_makes_no_sense_is_an_error),
        cmocka_unit_test(names_lead_to_one_counter),
        cmocka_unit_test(who_drains_takes_nothing_new),
        cmocka_unit_test(a_pause_is_kept),
        cmocka_unit_test(a_reset_moves_no_mark),
        cmocka_unit_test(a_paused_counter_is_not_evicted),
        cmocka_unit_test(a_reset_may_be_the_end_of_a_waiter),
        cmocka_unit_test(what_was_granted_is_not_evicted),
        cmocka_unit_test(a_paused_shadow_binds_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
