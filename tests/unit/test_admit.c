/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/world.h"

#include <stdio.h>

#define MS(n) ((int64_t)(n)*1000)
#define UNIT RATION_UNIT

static world w;

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};
static const char *const by_y[] = {"var:y"};
static const char *const by_r[] = {"var:r"};
static const char *const by_s[] = {"var:s"};
static const char *const by_q[] = {"var:q"};
static const char *const by_u[] = {"var:u"};
static const char *const by_c[] = {"var:c"};

/* A request takes part in a limit by naming its variable: slots x and y, buckets r and s, quotas q and u, cost c. */
static const ration_limit_rule limits[] = {
    {.name = "x", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = UNIT},
    {.name = "y", .kind = RATION_KIND_CONCURRENCY, .scope = by_y, .scope_count = 1, .max = UNIT},
    {.name = "r",
     .kind = RATION_KIND_RATE,
     .scope = by_r,
     .scope_count = 1,
     .rate = {10 * UNIT, 1000000},
     .burst = UNIT},
    {.name = "s",
     .kind = RATION_KIND_RATE,
     .scope = by_s,
     .scope_count = 1,
     .rate = {2 * UNIT, 1000000},
     .burst = UNIT},
    {.name = "q",
     .kind = RATION_KIND_QUOTA,
     .scope = by_q,
     .scope_count = 1,
     .max = UNIT,
     .window = {.period = RATION_PERIOD_MINUTE}},
    {.name = "u",
     .kind = RATION_KIND_QUOTA,
     .scope = by_u,
     .scope_count = 1,
     .max = UNIT,
     .window = {.period = RATION_PERIOD_HOUR}},
    {.name = "c",
     .kind = RATION_KIND_RATE,
     .counts = RATION_COUNTS_COST,
     .scope = by_c,
     .scope_count = 1,
     .rate = {UNIT, 1000000},
     .burst = 5 * UNIT},
};

/* Everything is used up at 0, by leases with these holds. */
static void begin(const char *hold_x, const char *hold_y)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    world_rules(&rules, &provider, accounts, limits, sizeof limits / sizeof limits[0]);
    accounts[1].share = (ration_ratio){0, 0};
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, 0, hold_x), "granted");
    CHECK_STR(world_ask(&w, 0, hold_y), "granted");
    CHECK_STR(world_ask(&w, 0, "all r=1 s=1 q=1 u=1"), "granted");
}

/* Of several that bind: for good, then refused at once, then an unknown time, then the latest, then as declared. */
static const struct {
    const char *why;
    const char *hold_x;
    const char *hold_y;
    const char *ask;
    const char *answer;
} named[] = {
    {"one bucket", "hx x=1", "hy y=1", "a r=1", "rate_limited r r=1 100000us"},
    {"the later of two buckets", "hx x=1", "hy y=1", "a r=1 s=1", "rate_limited s s=1 500000us"},
    {"slots without a time", "hx x=1", "hy y=1", "a x=1", "concurrency_full x x=1 -"},
    {"an unknown time before the latest", "hx x=1", "hy y=1", "a x=1 s=1", "concurrency_full x x=1 -"},
    {"of two unknown ones the first declared", "hx x=1", "hy y=1", "a x=1 y=1", "concurrency_full x x=1 -"},
    {"slots with a time", "hx x=1 hold=300", "hy y=1", "a x=1", "concurrency_full x x=1 300000us~"},
    {"the latest; its estimate is one", "hx x=1 hold=300", "hy y=1", "a x=1 r=1", "concurrency_full x x=1 300000us~"},
    {"an exact time beside an estimate is an estimate", "hx x=1 hold=300", "hy y=1", "a x=1 s=1",
     "rate_limited s s=1 500000us~"},
    {"of equal times the first declared", "hx x=1 hold=300", "hy y=1 hold=300", "a x=1 y=1",
     "concurrency_full x x=1 300000us~"},
    {"one of two unknown: named, no time", "hx x=1 hold=300", "hy y=1", "a x=1 y=1", "concurrency_full y y=1 -"},
    {"a quota before the rest", "hx x=1 hold=90000", "hy y=1", "a x=1 s=1 q=1", "quota_exhausted q q=1 90000000us~"},
    {"a quota, though a time is unknown", "hx x=1", "hy y=1", "a x=1 q=1", "quota_exhausted q q=1 -"},
    {"the later of two quotas", "hx x=1", "hy y=1", "a q=1 u=1", "quota_exhausted u u=1 3600000000us"},
    {"for good before a quota", "hx x=1", "hy y=1", "a q=1 c=1 cost=6", "cost_exceeds_limit c c=1 -"},
    {"for good, whatever it may wait", "hx x=1", "hy y=1", "a c=1 cost=6 wait=99999", "cost_exceeds_limit c c=1 -"},
    {"a bucket that comes too late counts as refusing", "hx x=1", "hy y=1", "a x=1 s=1 wait=499", "deadline s s=1 -"},
    {"in time it waits", "hx x=1", "hy y=1", "a x=1 s=1 wait=500", "queued"},
    {"of several too late ones the latest", "hx x=1", "hy y=1", "a r=1 s=1 wait=99", "deadline s s=1 500000us"},
    {"a quota and a bucket too late: the later", "hx x=1", "hy y=1", "a s=1 q=1 wait=99",
     "quota_exhausted q q=1 60000000us"},
    {"nothing binds", "hx x=1", "hy y=1", "a x=2 c=1 cost=5", "granted"},
};

static void the_limit_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        CHECK_ROW(named[i].why);
        begin(named[i].hold_x, named[i].hold_y);
        CHECK_STR(world_ask(&w, 0, named[i].ask), named[i].answer);
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

static void penalties_among_what_binds(void **state)
{
    static const struct {
        const char *why;
        const char *ask;
        const char *answer;
    } rows[] = {
        {"a pause", "a y=1", "penalized y y=1 30000000us"},
        {"a pause outlasts the deadline and refuses", "a x=1 y=1 wait=29999", "penalized y y=1 -"},
        {"a bucket beside it", "a y=1 s=1", "penalized y y=1 30000000us"},
        {"a later quota beside it", "a y=1 q=1", "quota_exhausted q q=1 60000000us"},
        {"it may wait for it", "a y=1 wait=30000", "queued"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        begin("hx x=1", "hy y=1");
        CHECK_STR(world_observe(&w, 0, "hy", 429, "Retry-After", "30"), "observed");
        CHECK_STR(world_release(&w, 0, "hy", RATION_OUTCOME_SUCCESS, RATION_UNSET), "released");
        CHECK_STR(world_ask(&w, 0, rows[i].ask), rows[i].answer);
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

static void the_facts_of_a_refusal(void **state)
{
    static const struct {
        const char *why;
        const char *ask;
        struct {
            int64_t charge, available, capacity, ahead;
        } facts;
    } rows[] = {
        {"slots", "a x=1", {UNIT, 0, UNIT, 0}},
        {"a bucket, behind one that waits for four", "a c=1 cost=2", {2 * UNIT, UNIT, 5 * UNIT, 4 * UNIT}},
        {"a quota", "a q=1", {UNIT, 0, UNIT, 0}},
        {"a pause has none", "a y=1", {RATION_UNSET, RATION_UNSET, RATION_UNSET, RATION_UNSET}},
        {"nor has a name", "a account=nobody", {RATION_UNSET, RATION_UNSET, RATION_UNSET, RATION_UNSET}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        begin("hx x=1", "hy y=1");
        CHECK_STR(world_ask(&w, 0, "used c=1 cost=4"), "granted");
        CHECK_STR(world_ask(&w, 0, "first c=1 cost=4 wait=9000"), "queued");
        CHECK_STR(world_observe(&w, 0, "hy", 429, "Retry-After", "30"), "observed");
        CHECK_STR(world_release(&w, 0, "hy", RATION_OUTCOME_SUCCESS, RATION_UNSET), "released");
        world_ask(&w, 0, rows[i].ask);
        CHECK_EQ(w.last.result, RATION_REFUSED);
        CHECK_EQ(w.last.lease.generation, 0);
        CHECK_EQ(w.last.facts.charge, rows[i].facts.charge);
        CHECK_EQ(w.last.facts.available, rows[i].facts.available);
        CHECK_EQ(w.last.facts.capacity, rows[i].facts.capacity);
        CHECK_EQ(w.last.facts.ahead, rows[i].facts.ahead);
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

static void units_with_a_waiter_ahead_are_not_there(void **state)
{
    (void)state;
    begin("hx x=1 hold=100", "hy y=1");
    CHECK_STR(world_ask(&w, 0, "w x=1 r=1 wait=9000"), "queued"); /* short of both */
    CHECK_STR(world_ask(&w, MS(100), "a r=1"), "rate_limited r r=1 100000us~");
    CHECK_STR(world_ask(&w, MS(100), "b r=1 wait=99"), "deadline r r=1 100000us~");
    CHECK_STR(world_ask(&w, MS(100), "d r=1 wait=200"), "queued");
    CHECK_STR(world_ask(&w, MS(101), "e x=1"), "concurrency_full x x=1 -"); /* overrun */
    CHECK_STR(world_release(&w, MS(101), "hx", RATION_OUTCOME_SUCCESS, RATION_UNSET), "released");
    CHECK_STR(world_events(&w), "granted w 101;");
    CHECK_STR(world_ask(&w, MS(101), "f r=1"), "rate_limited r r=1 200000us~");
    world_advance(&w, MS(201));
    CHECK_STR(world_events(&w), "granted d 101;");
    world_fini(&w);
}

/* Chapter 3: a slot that is free but for a waiter that waits for something else: nobody knows how long. */
static void a_free_slot_behind_a_waiter_has_no_time(void **state)
{
    (void)state;
    begin("hx x=1", "hy y=1 hold=50");
    CHECK_STR(world_ask(&w, 0, "w x=1 y=1 wait=9000"), "queued");
    CHECK_STR(world_release(&w, 0, "hy", RATION_OUTCOME_SUCCESS, RATION_UNSET), "released");
    CHECK_STR(world_ask(&w, 0, "a y=1"), "concurrency_full y y=1 -");
    CHECK_STR(world_ask(&w, 0, "b y=1 wait=9"), "queued");
    world_advance(&w, MS(9));
    CHECK_STR(world_events(&w), "refused b deadline y 9;");
    CHECK_STR(world_cancel(&w, MS(9), "w"), "cancelled");
    CHECK_STR(world_ask(&w, MS(9), "c y=1"), "granted");
    world_fini(&w);
}

/* At its deadline too, a bucket behind a waiter is no reason to refuse: the slots are named, whose time is unknown. */
static void what_a_waiter_was_short_of_at_its_deadline(void **state)
{
    (void)state;
    begin("hx x=1", "hy y=1");
    CHECK_STR(world_ask(&w, 0, "w y=1 r=1 wait=9000"), "queued");
    CHECK_STR(world_ask(&w, MS(150), "both x=1 r=1 wait=500"), "queued");
    world_advance(&w, MS(650));
    CHECK_STR(world_events(&w), "refused both deadline x 500;");
    world_fini(&w);
}

/* Whoever is ahead counts, whoever is not does not, wherever they are in the heap. */
static void the_charges_of_those_ahead(void **state)
{
    static const char *const priorities[] = {"critical", "high", "normal", "low"};

    (void)state;
    begin("hx x=1", "hy y=1");
    CHECK_STR(world_ask(&w, 0, "used c=1 cost=5"), "granted");
    for (int64_t i = 0; i < 40; i++) {
        char ask[64];

        (void)snprintf(ask, sizeof ask, "w c=1 cost=%d wait=999999 priority=%s", (int)(i % 5) + 1,
                       priorities[i * 7 % 4]);
        CHECK_STR(world_ask(&w, 0, ask), "queued");
    }
    /* Ten of each priority, whose costs add up to 30. */
    for (int64_t p = 0; p < 4; p++) {
        char ask[64];

        (void)snprintf(ask, sizeof ask, "a c=1 priority=%s", priorities[p]);
        CHECK(strncmp(world_ask(&w, 0, ask), "rate_limited", 12) == 0);
        CHECK_EQ(w.last.facts.ahead, (p + 1) * 30 * UNIT);
    }
    world_fini(&w);
}

static void a_free_waiter_ahead_has_no_time_either(void **state)
{
    static const ration_limit_rule two[] = {
        {.name = "x", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = UNIT},
        {.name = "t",
         .kind = RATION_KIND_CONCURRENCY,
         .counts = RATION_COUNTS_COST,
         .scope = by_account,
         .scope_count = 1,
         .max = 5 * UNIT},
    };

    (void)state;
    world_init(&w, two, 2);
    CHECK_STR(world_ask(&w, 0, "hx x=1 cost=1 hold=500"), "granted");
    CHECK_STR(world_ask(&w, 0, "dear cost=5 wait=9000"), "queued");
    CHECK_STR(world_ask(&w, 0, "free x=1 cost=0 wait=9000"), "queued"); /* behind it, so short of t as well */
    CHECK_STR(world_cancel(&w, 0, "dear"), "cancelled");
    CHECK_STR(world_ask(&w, 0, "a cost=1"), "concurrency_full t acc -");
    CHECK_EQ(w.last.facts.ahead, 0);
    CHECK_STR(world_ask(&w, 0, "b cost=5"), "concurrency_full t acc 500000us~");
    world_fini(&w);
}

static void free_requests_wait_behind_others_too(void **state)
{
    (void)state;
    begin("hx x=1", "hy y=1");
    CHECK_STR(world_ask(&w, 0, "debt c=1 cost=5"), "granted");
    CHECK_STR(world_release(&w, 0, "debt", RATION_OUTCOME_SUCCESS, 7 * UNIT), "released");
    CHECK_STR(world_ask(&w, 0, "free c=1 cost=0 wait=9000"), "queued"); /* in debt even nothing is too much */
    CHECK_STR(world_ask(&w, 0, "later c=1 cost=0"), "rate_limited c c=1 2000000us~");
    world_advance(&w, MS(2000));
    CHECK_STR(world_events(&w), "granted free 2000;");
    world_fini(&w);
}

static void a_refusal_takes_nothing_anywhere(void **state)
{
    (void)state;
    begin("hx x=1", "hy y=1");
    for (int i = 0; i < 5; i++)
        CHECK_STR(world_ask(&w, 0, "a c=1 x=1 cost=5"), "concurrency_full x x=1 -");
    for (int i = 0; i < 5; i++)
        CHECK_STR(world_ask(&w, 0, "a c=1 x=1 cost=5 wait=1"), "queued");
    world_advance(&w, MS(1));
    CHECK_STR(world_events(&w),
              "refused ? deadline x 1;refused ? deadline x 1;refused ? deadline x 1;refused ? deadline x 1;"
              "refused a deadline x 1;");
    CHECK_STR(world_ask(&w, MS(1), "b c=1 cost=5"), "granted");
    world_fini(&w);
}

/* The answer to a check, or the reason and the time of a refusal in milliseconds. */
static const char *checked(const char *limit, int64_t at_ms, int64_t cost, int64_t wait_ms, ration_check_mode mode)
{
    static char text[96];
    const ration_var var = {ration_text_of(limit), ration_text_of("1")};
    ration_request r = RATION_REQUEST_INIT;
    ration_decision d = {.lease = {7, 7}};

    r.account = ration_text_of("acc");
    r.vars = &var;
    r.var_count = 1;
    r.cost = cost * UNIT;
    r.wait_us = MS(wait_ms);
    CHECK_EQ(ration_engine_check(w.engine, ration_time_of(MS(at_ms)), &r, mode, &d), RATION_OK);
    CHECK_EQ(d.lease.generation, 0);
    if (d.result != RATION_REFUSED)
        return d.result == RATION_GRANTED ? "granted" : "queued";
    (void)snprintf(text, sizeof text, "%s %lld", ration_reason_name(d.reason),
                   d.retry_at.us == RATION_NEVER_US ? -1 : (long long)(d.retry_at.us - d.at.us) / 1000);
    return text;
}

static void a_check_takes_nothing(void **state)
{
    static const struct {
        const char *why;
        const char *limit;
        int64_t at_ms;
        int64_t cost;
        int64_t wait_ms;
        const char *acquire;
        const char *enforcer;
    } rows[] = {
        {"room", "c", 0, 5, 0, "granted", "granted"},
        {"too much", "c", 0, 6, 0, "cost_exceeds_limit -1", "cost_exceeds_limit -1"},
        {"it would wait; a provider does not", "r", 0, 1, 500, "queued", "rate_limited 100"},
        {"it may not wait", "r", 0, 1, 0, "rate_limited 100", "rate_limited 100"},
        {"a quota used up", "q", 0, 1, 0, "quota_exhausted 60000", "quota_exhausted 60000"},
        {"behind a waiter; a provider sees none", "s", 600, 1, 0, "rate_limited 500", "granted"},
        {"a pause binds both", "y", 600, 1, 0, "penalized 29400", "penalized 29400"},
    };

    (void)state;
    begin("hx x=1", "hy y=1");
    CHECK_STR(world_ask(&w, 0, "w x=1 s=1 wait=99000"), "queued");
    CHECK_STR(world_observe(&w, 0, "hy", 429, "Retry-After", "30"), "observed");
    CHECK_STR(world_release(&w, 0, "hy", RATION_OUTCOME_SUCCESS, RATION_UNSET), "released");
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            if (again == 1 && rows[i].at_ms == 0)
                continue;
            CHECK_ROW(rows[i].why);
            CHECK_STR(checked(rows[i].limit, rows[i].at_ms, rows[i].cost, rows[i].wait_ms, RATION_CHECK_ACQUIRE),
                      rows[i].acquire);
            CHECK_STR(checked(rows[i].limit, rows[i].at_ms, rows[i].cost, rows[i].wait_ms, RATION_CHECK_ENFORCER),
                      rows[i].enforcer);
        }
    }
    CHECK_ROW(NULL);
    world_fini(&w);
}

/* The provider's own answer knows neither the unit in hand nor the account's share. */
static void an_enforcer_knows_no_margin_and_no_share(void **state)
{
    static const ration_limit_rule two[] = {
        {.name = "r",
         .kind = RATION_KIND_RATE,
         .scope = by_r,
         .scope_count = 1,
         .rate = {10 * UNIT, 1000000},
         .burst = 3 * UNIT,
         .margin = RATION_UNSET},
        {.name = "q",
         .kind = RATION_KIND_QUOTA,
         .scope = by_q,
         .scope_count = 1,
         .max = 10 * UNIT,
         .window = {.period = RATION_PERIOD_MINUTE}},
    };

    (void)state;
    world_init(&w, two, 2); /* the share of "bcc" is a fifth, and it can reach the quota too */
    for (int i = 0; i < 2; i++)
        CHECK_STR(world_ask(&w, 0, "a r=1 q=1"), "granted");
    CHECK_STR(checked("r", 0, 1, 0, RATION_CHECK_ACQUIRE), "rate_limited 100");
    CHECK_STR(checked("r", 0, 1, 0, RATION_CHECK_ENFORCER), "granted");
    CHECK_STR(checked("q", 0, 1, 0, RATION_CHECK_ACQUIRE), "quota_exhausted 60000");
    CHECK_STR(checked("q", 0, 1, 0, RATION_CHECK_ENFORCER), "granted");
    world_fini(&w);
}

static void a_check_of_names_that_lead_nowhere(void **state)
{
    ration_request r = RATION_REQUEST_INIT;
    static char large[20000];
    ration_decision d;

    (void)state;
    begin("hx x=1", "hy y=1");
    r.account = ration_text_of("nobody");
    CHECK_EQ(ration_engine_check(w.engine, ration_time_of(0), &r, RATION_CHECK_ACQUIRE, &d), RATION_OK);
    CHECK_EQ(d.reason, RATION_REASON_UNKNOWN_ACCOUNT);
    r.account = ration_text_of("acc");
    memset(large, 'a', sizeof large);
    r.path = (ration_text){large, sizeof large};
    CHECK_EQ(ration_engine_check(w.engine, ration_time_of(0), &r, RATION_CHECK_ACQUIRE, &d), RATION_ERR_INVALID);
    r.path = (ration_text){NULL, 0};
    CHECK_EQ(ration_engine_check(w.engine, ration_time_of(0), &r, (ration_check_mode)2, &d), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_check(w.engine, ration_time_of(0), &r, RATION_CHECK_ACQUIRE, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_check(NULL, ration_time_of(0), &r, RATION_CHECK_ACQUIRE, &d), RATION_ERR_INVALID);
    world_fini(&w);
}

static void a_shadow_limit_counts_and_never_binds(void **state)
{
    ration_limit_rule shadow = {.name = "shadow",
                                .kind = RATION_KIND_RATE,
                                .scope = by_account,
                                .scope_count = 1,
                                .rate = {UNIT, 1000000},
                                .burst = UNIT,
                                .enforce = RATION_ENFORCE_SHADOW};
    ration_totals totals;

    (void)state;
    world_init(&w, &shadow, 1);
    for (int i = 0; i < 5; i++)
        CHECK_STR(world_ask(&w, 0, "a"), "granted");
    ration_engine_totals(w.engine, &totals);
    CHECK_EQ(totals.shadowed, 4);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_named),
        cmocka_unit_test(penalties_among_what_binds),
        cmocka_unit_test(the_facts_of_a_refusal),
        cmocka_unit_test(units_with_a_waiter_ahead_are_not_there),
        cmocka_unit_test(a_free_slot_behind_a_waiter_has_no_time),
        cmocka_unit_test(what_a_waiter_was_short_of_at_its_deadline),
        cmocka_unit_test(the_charges_of_those_ahead),
        cmocka_unit_test(a_free_waiter_ahead_has_no_time_either),
        cmocka_unit_test(free_requests_wait_behind_others_too),
        cmocka_unit_test(a_refusal_takes_nothing_anywhere),
        cmocka_unit_test(a_check_takes_nothing),
        cmocka_unit_test(an_enforcer_knows_no_margin_and_no_share),
        cmocka_unit_test(a_check_of_names_that_lead_nowhere),
        cmocka_unit_test(a_shadow_limit_counts_and_never_binds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
