/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/world.h"

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
        CHECK_EQ(out.serial, 77);
    }
    CHECK_ROW(NULL);
    CHECK_STR(world_ask(&w, 0, "a"), "granted"); /* nothing was taken */
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
