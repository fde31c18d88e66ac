/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/world.h"

#include <stdio.h>

#define MS(n) ((int64_t)(n)*1000)

static world w;

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};
static const char *const by_y[] = {"var:y"};

static const ration_limit_rule one_slot = {
    .name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = RATION_UNIT};

/* 10 a second, burst 3: two at once, one in hand. */
static const ration_limit_rule rate_10 = {.name = "rate",
                                          .kind = RATION_KIND_RATE,
                                          .scope = by_account,
                                          .scope_count = 1,
                                          .rate = {10 * RATION_UNIT, 1000000},
                                          .burst = 3 * RATION_UNIT,
                                          .margin = RATION_UNSET};

static const char *end(int64_t at_ms, const char *name)
{
    return world_release(&w, MS(at_ms), name, RATION_OUTCOME_SUCCESS, RATION_UNSET);
}

static void note_lease(void *ctx, const ration_lease_report *report)
{
    *(ration_lease_report *)ctx = *report;
}

/* The last lease of the report: the one that is held, in a test that holds one. */
static ration_lease_report only_lease(void)
{
    ration_lease_report last = {.cost = -1};
    const ration_reporter reporter = {.ctx = &last, .lease = note_lease};

    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(0), RATION_REPORT_LEASES, &reporter), RATION_OK);
    return last;
}

static void leases_end_once(void **state)
{
    (void)state;
    world_init(&w, &one_slot, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "b"), "concurrency_full slots acc -");
    CHECK_STR(end(1, "a"), "released");
    CHECK_STR(end(1, "a"), "unknown");
    CHECK_STR(world_renew(&w, MS(1), "a"), "unknown");
    CHECK_STR(world_cancel(&w, MS(1), "a"), "unknown");
    CHECK_STR(world_ask(&w, MS(1), "c"), "granted");
    CHECK_EQ(w.last.lease.index, 0); /* the same slot in a new life */
    CHECK_STR(end(2, "a"), "unknown");
    CHECK_STR(end(2, "c"), "released");
    world_fini(&w);
}

static void a_ttl_takes_back_unless_renewed_before_it_ends(void **state)
{
    (void)state;
    world_init(&w, &one_slot, 1);
    CHECK_STR(world_ask(&w, 0, "a ttl=100"), "granted");
    CHECK_STR(world_ask(&w, 0, "b wait=1000"), "queued");
    CHECK_STR(world_renew(&w, MS(99), "a"), "renewed");
    world_advance(&w, MS(198));
    CHECK_STR(world_events(&w), "");
    CHECK_STR(world_renew(&w, MS(199), "a"), "unknown"); /* at its expiry it is lost */
    CHECK_STR(world_events(&w), "lost a;granted b 199;");
    CHECK_STR(end(199, "a"), "unknown");
    CHECK_STR(end(200, "b"), "released");
    world_fini(&w);
}

static void a_waiter_is_granted_at_its_deadline_if_its_token_comes_then(void **state)
{
    (void)state;
    world_init(&w, &rate_10, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "b"), "granted");
    CHECK_STR(world_ask(&w, 0, "c wait=100"), "queued");
    CHECK_STR(world_ask(&w, 0, "d wait=199"), "deadline rate acc 200000us~");
    CHECK_STR(world_ask(&w, 0, "e wait=200"), "queued");
    CHECK_STR(world_ask(&w, 0, "f wait=0"), "rate_limited rate acc 300000us~");
    CHECK_EQ(ration_engine_next_deadline(w.engine).us, MS(100));
    world_advance(&w, MS(100));
    CHECK_STR(world_events(&w), "granted c 100;");
    world_advance(&w, MS(5000));
    CHECK_STR(world_events(&w), "granted e 200;");
    world_fini(&w);
}

static void a_later_one_with_priority_pushes_one_past_its_deadline(void **state)
{
    (void)state;
    world_init(&w, &rate_10, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "b"), "granted");
    CHECK_STR(world_ask(&w, 0, "c wait=150"), "queued");
    CHECK_STR(world_ask(&w, 0, "d wait=1000 priority=high"), "queued");
    /* It stays until its own next token lies behind its deadline: when d has taken the one at 100. */
    world_advance(&w, MS(99));
    CHECK_STR(world_events(&w), "");
    world_advance(&w, MS(100));
    CHECK_STR(world_events(&w), "granted d 100;refused c deadline rate 100;");
    world_fini(&w);
}

static void deadlines_pass_before_the_call_of_that_instant(void **state)
{
    (void)state;
    world_init(&w, &one_slot, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "b wait=10"), "queued");
    CHECK_STR(world_ask(&w, 0, "c wait=11"), "queued");
    CHECK_STR(end(10, "a"), "released");
    CHECK_STR(world_events(&w), "refused b deadline slots 10;granted c 10;");
    CHECK_STR(world_cancel(&w, MS(10), "b"), "unknown");
    world_fini(&w);
}

static void nobody_is_held_up_by_one_that_is_short_of_something_else(void **state)
{
    const ration_limit_rule limits[] = {
        {.name = "x", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = RATION_UNIT},
        {.name = "y", .kind = RATION_KIND_CONCURRENCY, .scope = by_y, .scope_count = 1, .max = RATION_UNIT},
    };

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(world_ask(&w, 0, "x x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "both x=1 y=1 wait=900"), "queued");
    CHECK_STR(world_ask(&w, 1, "y y=1"), "granted");
    CHECK_STR(world_ask(&w, 2, "z y=1 wait=900"), "queued");
    CHECK_STR(end(1, "x"), "released"); /* both grows by y, behind which z stands later */
    CHECK_STR(world_events(&w), "");
    CHECK_STR(end(2, "y"), "released");
    CHECK_STR(world_events(&w), "granted both 2;");
    CHECK_STR(end(3, "both"), "released");
    CHECK_STR(world_events(&w), "granted z 2;");
    world_fini(&w);
}

static void a_penalty_holds_back_and_its_end_lets_go_in_order(void **state)
{
    const ration_limit_rule limits[] = {
        {.name = "slots",
         .kind = RATION_KIND_CONCURRENCY,
         .scope = by_account,
         .scope_count = 1,
         .max = 2 * RATION_UNIT},
    };

    (void)state;
    world_init(&w, limits, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "early wait=1500"), "granted");
    CHECK_STR(world_ask(&w, 0, "w0 wait=1500"), "queued");
    CHECK_STR(world_observe(&w, MS(1), "a", 429, NULL, NULL), "observed");
    CHECK_STR(world_events(&w), "refused w0 deadline slots 1;"); /* the penalty outlasts it */
    CHECK_STR(world_ask(&w, MS(1), "n"), "penalized slots acc -");
    CHECK_STR(end(2, "a"), "released");
    CHECK_STR(end(2, "early"), "released");
    CHECK_STR(world_ask(&w, MS(2), "n"), "penalized slots acc 1999000us");
    CHECK_STR(world_ask(&w, MS(2), "late wait=1998"), "penalized slots acc 1999000us");
    CHECK_STR(world_ask(&w, MS(2), "w1 wait=1999"), "queued");
    CHECK_STR(world_ask(&w, MS(2), "w2 wait=3000 priority=high"), "queued");
    CHECK_STR(world_ask(&w, MS(2), "w3 wait=3000"), "queued");
    world_advance(&w, MS(2000));
    CHECK_STR(world_events(&w), "");
    world_advance(&w, MS(2001));
    CHECK_STR(world_events(&w), "granted w2 1999;granted w1 1999;");
    CHECK_STR(end(2002, "w1"), "released");
    CHECK_STR(world_events(&w), "granted w3 2000;");
    world_fini(&w);
}

static void where_no_limit_applies_the_account_is_penalized(void **state)
{
    (void)state;
    world_init(&w, &one_slot, 0);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, "Retry-After", "3"), "observed");
    CHECK_STR(world_ask(&w, 0, "b"), "penalized - - 3000000us");
    CHECK_STR(world_ask(&w, 0, "other account=bcc"), "granted");
    CHECK_STR(world_ask(&w, 0, "c wait=3000"), "queued");
    CHECK_STR(world_ask(&w, 0, "d wait=9000"), "queued");
    CHECK_STR(world_observe(&w, 0, "a", 429, "Retry-After", "9"), "observed"); /* a status counts once */
    world_advance(&w, MS(3000));
    CHECK_STR(world_events(&w), "granted c 3000;granted d 3000;");
    world_fini(&w);
}

static void what_cannot_be_named_is_refused(void **state)
{
    (void)state;
    world_init(&w, &one_slot, 1);
    CHECK_STR(world_ask(&w, 0, "a account=nobody"), "unknown_account - - -");
    CHECK_STR(world_ask(&w, 0, "a provider=q"), "unknown_provider - - -");
    CHECK_STR(world_ask(&w, 0, "a provider=p"), "granted");
    world_fini(&w);
}

static void queues_are_bounded(void **state)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    (void)state;
    world_rules(&rules, &provider, accounts, &one_slot, 1);
    rules.max_waiters = 3;
    rules.max_waiters_per_tenant = 2;
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "b wait=99 tenant=t"), "queued");
    CHECK_STR(world_ask(&w, 0, "c wait=99 tenant=t priority=low"), "queued");
    CHECK_STR(world_ask(&w, 0, "d wait=99 tenant=t"), "queue_full - - -");
    CHECK_STR(world_ask(&w, 0, "e wait=99 tenant=u"), "queued");
    CHECK_STR(world_ask(&w, 0, "f wait=99 tenant=v"), "queue_full - - -");
    CHECK_STR(world_cancel(&w, 0, "b"), "cancelled");
    CHECK_STR(world_ask(&w, 0, "g wait=99 tenant=t"), "queued");
    world_fini(&w);
}

static void keys_are_bounded_and_fresh_ones_make_room(void **state)
{
    ration_limit_rule slots = {.name = "x",
                               .kind = RATION_KIND_CONCURRENCY,
                               .scope = by_x,
                               .scope_count = 1,
                               .max = RATION_UNIT,
                               .max_keys = 2};

    (void)state;
    world_init(&w, &slots, 1);
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b x=2"), "granted");
    CHECK_STR(world_ask(&w, 0, "c x=3"), "too_many_keys x - -");
    CHECK_STR(end(1, "b"), "released");
    CHECK_STR(world_ask(&w, MS(1), "c x=3"), "granted");
    CHECK_STR(world_ask(&w, MS(1), "d x=2"), "too_many_keys x - -");
    CHECK_STR(world_ask(&w, MS(1), "e x=1"), "concurrency_full x x=1 -");
    world_fini(&w);
}

static void time_that_goes_back_counts_as_the_newest(void **state)
{
    ration_totals totals;

    (void)state;
    world_init(&w, &rate_10, 1);
    CHECK_STR(world_ask(&w, MS(500), "a"), "granted");
    CHECK_STR(world_ask(&w, MS(0), "b"), "granted");
    CHECK_EQ(w.last.at.us, MS(500));
    CHECK_STR(world_ask(&w, MS(0), "c"), "rate_limited rate acc 100000us");
    ration_engine_totals(w.engine, &totals);
    CHECK_EQ(totals.clock_went_back, 2);
    world_fini(&w);
}

static void a_shadow_limit_never_binds(void **state)
{
    ration_limit_rule shadow = one_slot;

    (void)state;
    shadow.enforce = RATION_ENFORCE_SHADOW;
    world_init(&w, &shadow, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "b"), "granted");

    ration_totals totals;

    ration_engine_totals(w.engine, &totals);
    CHECK_EQ(totals.shadowed, 1); /* but it counts what it would have done */
    CHECK_STR(end(1, "a"), "released");
    CHECK_STR(end(1, "b"), "released");
    world_fini(&w);
}

static void requests_out_of_range_are_errors(void **state)
{
    const ration_text name = ration_text_of("acc");
    const ration_var no_name = {{NULL, 0}, {"v", 1}};
    const ration_var no_value = {{"n", 1}, {NULL, 0}};
    const struct {
        const char *why;
        ration_request request;
        int64_t now;
    } rows[] = {
        {"a negative cost", {.account = name, .cost = -2, .hold_us = -1, .ttl_us = -1}, 0},
        {"a cost beyond 2^53", {.account = name, .cost = RATION_UNITS_MAX + 1, .hold_us = -1, .ttl_us = -1}, 0},
        {"a negative wait", {.account = name, .cost = -1, .hold_us = -1, .ttl_us = -1, .wait_us = -1}, 0},
        {"a negative hold", {.account = name, .cost = -1, .hold_us = -2, .ttl_us = -1}, 0},
        {"a ttl of nothing", {.account = name, .cost = -1, .hold_us = -1, .ttl_us = 0}, 0},
        {"a hold beyond 2^53 us", {.account = name, .cost = -1, .hold_us = RATION_TIME_MAX_US + 1, .ttl_us = -1}, 0},
        {"a negative ttl", {.account = name, .cost = -1, .hold_us = -1, .ttl_us = -2}, 0},
        {"no such auth", {.account = name, .cost = -1, .hold_us = -1, .ttl_us = -1, .auth = (ration_auth)3}, 0},
        {"a variable without a name",
         {.account = name, .cost = -1, .hold_us = -1, .ttl_us = -1, .vars = &no_name, .var_count = 1},
         0},
        {"a variable without a value",
         {.account = name, .cost = -1, .hold_us = -1, .ttl_us = -1, .vars = &no_value, .var_count = 1},
         0},
        {"no such priority", {.account = name, .cost = -1, .hold_us = -1, .ttl_us = -1, .priority = 9}, 0},
        {"never", {.account = name, .cost = -1, .hold_us = -1, .ttl_us = -1}, RATION_NEVER_US},
        {"beyond 2^53 us", {.account = name, .cost = -1, .hold_us = -1, .ttl_us = -1}, RATION_TIME_MAX_US + 1},
        {"a length without bytes", {.account = {NULL, 3}, .cost = -1, .hold_us = -1, .ttl_us = -1}, 0},
        {"variables without an array", {.account = name, .cost = -1, .hold_us = -1, .ttl_us = -1, .var_count = 1}, 0},
    };

    (void)state;
    world_init(&w, &one_slot, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_decision out = {.serial = 77};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(ration_engine_submit(w.engine, ration_time_of(rows[i].now), &rows[i].request, &out),
                 RATION_ERR_INVALID);
        CHECK_EQ(
            ration_engine_check(w.engine, ration_time_of(rows[i].now), &rows[i].request, RATION_CHECK_ACQUIRE, &out),
            RATION_ERR_INVALID);
        CHECK_EQ(out.serial, 77);
    }
    CHECK_ROW(NULL);
    CHECK_STR(world_ask(&w, 0, "a"), "granted"); /* nothing was taken */
    world_fini(&w);
}

/* cost and hold of a request: its own, its endpoint's, its provider's, else one unit and no end. */
static void defaults_come_from_the_endpoint_then_the_provider(void **state)
{
    static const ration_endpoint_rule endpoints[] = {
        {.path = "/dear", .defaults = {.cost = 3 * RATION_UNIT, .hold_us = MS(30), .priority = RATION_PRIORITY_HIGH}},
        {.path = "/free", .defaults = {.has_cost = true, .hold_us = RATION_FOREVER_US}},
        {.path = "/unset", .defaults = {.cost = RATION_UNSET, .hold_us = RATION_UNSET}},
    };
    static const struct {
        const char *why;
        const char *ask;
        bool provider; /* has defaults: cost 2, hold 20 ms, low */
        int64_t cost;
        int64_t hold_ms; /* -1: none */
        ration_priority priority;
    } rows[] = {
        {"nothing said anywhere", "a", false, 1, -1, RATION_PRIORITY_NORMAL},
        {"the provider's", "a", true, 2, 20, RATION_PRIORITY_LOW},
        {"the endpoint's", "a path=/dear", true, 3, 30, RATION_PRIORITY_HIGH},
        {"a free endpoint, without end", "a path=/free", true, 0, -1, RATION_PRIORITY_LOW},
        {"an endpoint that says nothing", "a path=/unset", true, 2, 20, RATION_PRIORITY_LOW},
        {"an endpoint that says nothing, nor does the provider", "a path=/unset", false, 1, -1, RATION_PRIORITY_NORMAL},
        {"the request's", "a path=/dear cost=5 hold=50 priority=critical", true, 5, 50, RATION_PRIORITY_CRITICAL},
        {"nothing is a cost and a hold", "a path=/dear cost=0 hold=0", true, 0, 0, RATION_PRIORITY_HIGH},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_account_rule accounts[2];
        ration_provider_rule provider;
        ration_rules rules;

        CHECK_ROW(rows[i].why);
        world_rules(&rules, &provider, accounts, &one_slot, 1);
        provider.endpoints = endpoints;
        provider.endpoint_count = 3;
        if (rows[i].provider) {
            provider.defaults = (ration_defaults){
                .cost = 2 * RATION_UNIT, .hold_us = MS(20), .priority = RATION_PRIORITY_LOW, .class_name = "batch"};
        }
        CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
        CHECK_STR(world_ask(&w, 0, rows[i].ask), "granted");

        const ration_lease_report lease = only_lease();

        CHECK_EQ(lease.cost, rows[i].cost * RATION_UNIT);
        CHECK_EQ(lease.ends_at.us, rows[i].hold_ms < 0 ? RATION_NEVER_US : MS(rows[i].hold_ms));
        CHECK_EQ(lease.priority, rows[i].priority);
        CHECK_TEXT(lease.class_name, rows[i].provider ? "batch" : NULL);
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

static void instants_end_where_doubles_are_exact(void **state)
{
    (void)state;
    world_init(&w, &one_slot, 1);
    CHECK_STR(world_ask(&w, RATION_TIME_MAX_US - 5, "a hold=1 ttl=1"), "granted");
    CHECK_EQ(only_lease().ends_at.us, RATION_TIME_MAX_US);
    CHECK_EQ(only_lease().ttl_until.us, RATION_TIME_MAX_US);
    CHECK_STR(world_ask(&w, RATION_TIME_MAX_US - 5, "b wait=1"), "queued");
    CHECK_STR(world_renew(&w, RATION_TIME_MAX_US - 1, "a"), "renewed");
    CHECK_EQ(ration_engine_next_deadline(w.engine).us, RATION_TIME_MAX_US);
    world_advance(&w, RATION_TIME_MAX_US);
    CHECK_STR(world_events(&w), "lost a;granted b 0;");
    CHECK_STR(world_ask(&w, RATION_TIME_MAX_US, "c wait=5"), "concurrency_full slots acc -");
    world_fini(&w);
}

static void leases_are_bounded(void **state)
{
    static const ration_limit_rule many = {.name = "many", .kind = RATION_KIND_CONCURRENCY, .max = 9 * RATION_UNIT};
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    (void)state;
    world_rules(&rules, &provider, accounts, &many, 1);
    rules.max_leases = 2;
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "b"), "granted");
    CHECK_STR(world_ask(&w, 0, "c"), "error -5");
    CHECK_STR(end(0, "a"), "released");
    CHECK_STR(world_ask(&w, 0, "c"), "granted");
    world_fini(&w);
}

static void totals_count(void **state)
{
    ration_totals t;

    (void)state;
    world_init(&w, &one_slot, 1);
    CHECK_STR(world_ask(&w, 0, "a ttl=50"), "granted");
    CHECK_STR(world_ask(&w, 0, "b"), "concurrency_full slots acc -");
    CHECK_STR(world_ask(&w, 0, "c wait=9"), "queued");
    CHECK_STR(world_ask(&w, 0, "d wait=99"), "queued");
    CHECK_STR(world_ask(&w, 0, "e wait=99"), "queued");
    CHECK_STR(world_ask(&w, 0, "f account=x"), "unknown_account - - -");
    CHECK_STR(world_cancel(&w, 0, "e"), "cancelled");
    world_advance(&w, MS(60));
    CHECK_STR(end(61, "d"), "released");
    ration_engine_totals(w.engine, &t);
    CHECK_EQ(t.submitted, 6);
    CHECK_EQ(t.granted, 2);
    CHECK_EQ(t.queued, 3);
    CHECK_EQ(t.refused, 3);
    CHECK_EQ(t.refusals[RATION_REASON_CONCURRENCY_FULL], 1);
    CHECK_EQ(t.refusals[RATION_REASON_UNKNOWN_ACCOUNT], 1);
    CHECK_EQ(t.refusals[RATION_REASON_DEADLINE], 1);
    CHECK_EQ(t.cancelled, 1);
    CHECK_EQ(t.lost, 1);
    CHECK_EQ(t.released, 1);
    CHECK_EQ(t.held, 0);
    CHECK_EQ(t.waiting, 0);
    CHECK_EQ(t.counters, 1);
    CHECK_EQ(t.events_pending, 3);
    world_fini(&w);
}

/* ---- the recorder's sink ---- */

static char seen[2048];

static void see(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void see(const char *format, ...)
{
    const size_t used = strlen(seen);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(seen + used, sizeof seen - used, format, arguments);
    va_end(arguments);
}

static void see_call(void *ctx, const ration_call *call)
{
    (void)ctx;
    see("%d#%d@%d ", (int)call->op, (int)call->serial, (int)(call->at.us / 1000));
}

static void see_answer(void *ctx, const ration_call *call, int err, const ration_decision *decision)
{
    (void)ctx;
    (void)call;
    see("=%d%s ", err, decision == NULL ? "" : decision->result == RATION_GRANTED ? "granted" : "other");
}

static void see_event(void *ctx, const ration_event *event)
{
    (void)ctx;
    see("!%d#%d@%d ", (int)event->type, (int)event->serial, (int)(event->at.us / 1000));
}

static void the_sink_sees_calls_then_events_then_answers(void **state)
{
    const ration_sink sink = {NULL, see_call, see_answer, see_event};
    ration_engine_options options = {.sink = &sink};
    const ration_reporter none = {0};
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    (void)state;
    world_rules(&rules, &provider, accounts, &one_slot, 1);
    options.rules = &rules;
    memset(&w, 0, sizeof w);
    seen[0] = '\0';
    CHECK_EQ(ration_engine_new(&options, ration_time_of(0), &w.engine, NULL), RATION_OK);
    world_ask(&w, MS(1), "a ttl=50");
    world_ask(&w, MS(2), "b wait=500");
    world_ask(&w, MS(3), "c wait=7 account=x");
    world_advance(&w, MS(40)); /* nothing is due: nothing to record */
    world_observe(&w, MS(0), "a", 200, NULL, NULL);
    world_advance(&w, MS(52));
    world_renew(&w, MS(53), "a");
    end(54, "b");
    world_cancel(&w, MS(55), "b");
    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(MS(56)), RATION_REPORT_STATS, &none), RATION_OK);
    CHECK_STR(seen, "0#1@1 =0granted 0#2@2 =0other 0#3@3 =0other 2#1@40 =0 5#0@52 !2#1@51 !0#2@51 =0 3#0@53 =-4 "
                    "1#2@54 =0 4#0@55 =-4 6#0@56 =0 ");
    world_fini(&w);
}

static void what_is_not_there_is_an_error(void **state)
{
    const ration_completion bad_outcome = {(ration_outcome)4, RATION_UNSET};
    const ration_completion bad_cost = {RATION_OUTCOME_SUCCESS, RATION_UNITS_MAX + 1};
    const ration_completion negative = {RATION_OUTCOME_SUCCESS, -2};
    const ration_header no_name = {{NULL, 0}, {"v", 1}};
    const ration_header no_value = {{"n", 1}, {NULL, 1}};
    const ration_response responses[] = {
        {.status = -1},
        {.status = 1000},
        {.header_count = 1},
        {.headers = &no_name, .header_count = 1},
        {.headers = &no_value, .header_count = 1},
    };
    const ration_time now = {0};
    const ration_time never = {RATION_NEVER_US};
    const ration_request request = RATION_REQUEST_INIT;
    const ration_rules rules = {0};
    const ration_engine_options options = {.rules = &rules};
    const ration_engine_options no_rules = {.rules = NULL};
    ration_engine *engine = NULL;
    ration_decision decision;
    ration_event event;

    (void)state;
    CHECK_EQ(ration_engine_new(NULL, now, &engine, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_new(&no_rules, now, &engine, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_new(&options, now, NULL, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_new(&options, never, &engine, NULL), RATION_ERR_INVALID);
    CHECK(engine == NULL);
    ration_engine_free(NULL);
    CHECK_EQ(ration_engine_submit(NULL, now, &request, &decision), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_release(NULL, now, (ration_lease){0, 1}, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_observe(NULL, now, (ration_lease){0, 1}, &responses[0]), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_renew(NULL, now, (ration_lease){0, 1}), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_cancel(NULL, now, (ration_lease){0, 1}), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_advance(NULL, now), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_next_deadline(NULL).us, RATION_NEVER_US);
    CHECK(!ration_engine_next_event(NULL, &event));

    world_init(&w, &one_slot, 1);
    CHECK_EQ(ration_engine_submit(w.engine, now, NULL, &decision), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_submit(w.engine, now, &request, NULL), RATION_ERR_INVALID);
    CHECK(!ration_engine_next_event(w.engine, NULL));
    CHECK_STR(world_ask(&w, 0, "a"), "granted");

    const ration_lease a = w.last.lease;

    CHECK_EQ(ration_engine_release(w.engine, now, a, &bad_outcome), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_release(w.engine, now, a, &bad_cost), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_release(w.engine, now, a, &negative), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_release(w.engine, never, a, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_renew(w.engine, never, a), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_cancel(w.engine, never, a), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_advance(w.engine, never), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_observe(w.engine, now, a, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_observe(w.engine, never, a, &(ration_response){0}), RATION_ERR_INVALID);
    for (size_t i = 0; i < sizeof responses / sizeof responses[0]; i++)
        CHECK_EQ(ration_engine_observe(w.engine, now, a, &responses[i]), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_observe(w.engine, now, a, &(ration_response){0}), RATION_OK);
    CHECK_EQ(ration_engine_release(w.engine, now, a, NULL), RATION_OK);
    world_fini(&w);
}

static void what_was_really_spent_is_settled(void **state)
{
    static const ration_limit_rule limits[] = {
        {.name = "tokens",
         .kind = RATION_KIND_CONCURRENCY,
         .counts = RATION_COUNTS_COST,
         .scope = by_account,
         .scope_count = 1,
         .max = 10 * RATION_UNIT},
        {.name = "minute",
         .kind = RATION_KIND_QUOTA,
         .counts = RATION_COUNTS_COST,
         .scope = by_account,
         .scope_count = 1,
         .max = 20 * RATION_UNIT,
         .window = {.period = RATION_PERIOD_MINUTE}},
        {.name = "calls",
         .kind = RATION_KIND_QUOTA,
         .scope = by_account,
         .scope_count = 1,
         .max = 5 * RATION_UNIT,
         .window = {.period = RATION_PERIOD_MINUTE}},
    };

    (void)state;
    world_init(&w, limits, 3);
    CHECK_STR(world_ask(&w, 0, "a cost=8"), "granted");
    CHECK_STR(world_ask(&w, 0, "w cost=9 wait=900"), "queued");
    CHECK_STR(world_release(&w, MS(1), "a", RATION_OUTCOME_SUCCESS, 15 * RATION_UNIT), "released");
    CHECK_STR(world_events(&w), "refused w quota_exhausted minute 1;"); /* 5 are left */
    CHECK_STR(world_ask(&w, MS(2), "b cost=5"), "granted");
    CHECK_STR(world_release(&w, MS(3), "b", RATION_OUTCOME_CANCELLED, 1 * RATION_UNIT), "released");
    CHECK_STR(world_ask(&w, MS(4), "c cost=5"), "quota_exhausted minute acc 59996000us");
    CHECK_STR(world_ask(&w, MS(4), "c cost=4"), "granted");
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leases_end_once),
        cmocka_unit_test(a_ttl_takes_back_unless_renewed_before_it_ends),
        cmocka_unit_test(a_waiter_is_granted_at_its_deadline_if_its_token_comes_then),
        cmocka_unit_test(a_later_one_with_priority_pushes_one_past_its_deadline),
        cmocka_unit_test(deadlines_pass_before_the_call_of_that_instant),
        cmocka_unit_test(nobody_is_held_up_by_one_that_is_short_of_something_else),
        cmocka_unit_test(a_penalty_holds_back_and_its_end_lets_go_in_order),
        cmocka_unit_test(where_no_limit_applies_the_account_is_penalized),
        cmocka_unit_test(what_cannot_be_named_is_refused),
        cmocka_unit_test(queues_are_bounded),
        cmocka_unit_test(keys_are_bounded_and_fresh_ones_make_room),
        cmocka_unit_test(time_that_goes_back_counts_as_the_newest),
        cmocka_unit_test(a_shadow_limit_never_binds),
        cmocka_unit_test(requests_out_of_range_are_errors),
        cmocka_unit_test(defaults_come_from_the_endpoint_then_the_provider),
        cmocka_unit_test(instants_end_where_doubles_are_exact),
        cmocka_unit_test(leases_are_bounded),
        cmocka_unit_test(totals_count),
        cmocka_unit_test(the_sink_sees_calls_then_events_then_answers),
        cmocka_unit_test(what_is_not_there_is_an_error),
        cmocka_unit_test(what_was_really_spent_is_settled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
