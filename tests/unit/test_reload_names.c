/* SPDX-License-Identifier: MIT */
/* Other rules for a running engine: tenants, classes, circuits and accounts go on by their names. Decision 0017. */
#include "support/reload.h"

static void an_adaptive_limit_stands_where_it_stood(void **state)
{
    static const ration_class_rule ab[] = {{"a", {1, 4}}, {"b", {0, 0}}};
    static const ration_class_rule ba[] = {{"b", {1, 2}}, {"a", {0, 0}}};
    static const ration_limit_rule from =
        LIMIT("l", ADAPTIVE, .adaptive = {.initial_limit = 8, .classes = ab, .class_count = 2});
    static const ration_limit_rule to =
        LIMIT("l", ADAPTIVE, .adaptive = {.initial_limit = 20, .classes = ba, .class_count = 2});
    static const ration_limit_rule low =
        LIMIT("l", ADAPTIVE, .adaptive = {.initial_limit = 1, .max_limit = 3, .classes = ba, .class_count = 1});
    ration_counter_report row;

    (void)state;
    begin(&from);
    CHECK_STR(ask(0, "a class=a"), "granted");
    CHECK_STR(ask(0, "b class=b"), "granted");
    CHECK_STR(ask(0, "c"), "granted");
    CHECK_STR(world_release(&w, 0, "c", RATION_OUTCOME_THROTTLED, RATION_UNSET), "released");
    CHECK_STR(world_events(&w), "limit l 4;");
    CHECK_STR(ask(MS(3000), "c wait=9000 class=a"), "granted");
    reload(MS(3000), &to, 1);
    row = report(MS(3000));
    CHECK_EQ(row.current, 4 * UNIT);
    CHECK_EQ(row.held, 3 * UNIT);
    /* Half of four is kept for b, which holds one of these two; a holds the others. */
    CHECK_STR(ask(MS(3000), "d class=a"), "adaptive_full l acc -");
    CHECK_STR(ask(MS(3000), "d class=b"), "granted");
    reload(MS(3001), &low, 1);
    CHECK_STR(world_events(&w), "limit l 3;");
    CHECK_EQ(report(MS(3001)).held, 4 * UNIT);
    CHECK_STR(end(MS(3002), "a"), "released");
    CHECK_STR(end(MS(3002), "b"), "released");
    CHECK_STR(end(MS(3002), "c"), "released");
    CHECK_STR(end(MS(3002), "d"), "released");
    CHECK_EQ(report(MS(3002)).held, 0);
    world_fini(&w);
}

static void guarantees_move_by_epochs(void **state)
{
    static const ration_tenant_share even[] = {{"s", 1, {0, 0}}, {"t", 1, {0, 0}}};
    static const ration_tenant_share odd[] = {{"s", 1, {0, 0}}, {"t", 3, {0, 0}}};
    static const ration_limit_rule from = SHARE(even, 2, .ceiling = 8 * UNIT);
    static const ration_limit_rule to = SHARE(odd, 2, .ceiling = 8 * UNIT);
    static const ration_limit_rule small = SHARE(odd, 2, .ceiling = 4 * UNIT);
    ration_counter_report row;

    (void)state;
    begin(&from);
    CHECK_STR(ask(0, "a tenant=s cost=4 hold=90"), "granted");
    CHECK_STR(ask(0, "b tenant=s cost=2 hold=90"), "granted"); /* on loan from t */
    reload(MS(10), &to, 1);
    row = report(MS(10));
    CHECK_EQ(row.tenants[0].guarantee, 2 * UNIT);
    CHECK_EQ(row.tenants[0].own, 4 * UNIT);
    CHECK_EQ(row.tenants[0].borrowed, 2 * UNIT);
    CHECK_EQ(row.tenants[1].guarantee, 6 * UNIT);
    CHECK_EQ(row.tenants[1].lent, 2 * UNIT);
    CHECK_EQ(row.draining, 2 * UNIT);
    CHECK_EQ(row.tenants[0].granted, 2);
    /* t has two under the ceiling, the rest when s has drained. */
    CHECK_STR(ask(MS(10), "c tenant=t cost=2"), "granted");
    CHECK_STR(ask(MS(10), "d tenant=t cost=4 wait=500"), "queued");
    CHECK_STR(end(MS(20), "b"), "released");
    CHECK_STR(world_events(&w), "");
    CHECK_STR(end(MS(30), "a"), "released");
    CHECK_STR(world_events(&w), "granted d 20;");
    reload(MS(40), &small, 1);
    CHECK_EQ(report(MS(40)).draining, 3 * UNIT);
    CHECK_STR(ask(MS(40), "e tenant=s cost=1"), "guarantee_on_loan l acc -");
    CHECK_STR(end(MS(50), "d"), "released");
    CHECK_STR(ask(MS(50), "e tenant=s cost=1"), "granted");
    CHECK_STR(end(MS(60), "c"), "released");
    CHECK_STR(end(MS(60), "e"), "released");
    CHECK_EQ(report(MS(60)).held, 0);
    CHECK_EQ(report(MS(60)).draining, 0);
    world_fini(&w);
}

static void tenants_come_and_go(void **state)
{
    static const ration_tenant_share three[] = {{"s", 1, {0, 0}}, {"t", 1, {0, 0}}, {"u", 2, {0, 0}}};
    static const ration_tenant_share others[] = {{"v", 2, {0, 0}}, {"u", 1, {0, 0}}, {"s", 1, {0, 0}}};
    static const ration_limit_rule from = SHARE(three, 3, .ceiling = 8 * UNIT);
    static const ration_limit_rule to = SHARE(others, 3, .ceiling = 8 * UNIT);
    static const ration_limit_rule known = SHARE(others, 3, .ceiling = 8 * UNIT, .unknown_tenant = "v");
    const ration_limit_rule *const targets[] = {&to, &known};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const bool counts = i == 1;
        ration_counter_report row;

        CHECK_ROW(counts ? "unknown ones count as v" : "unknown ones are refused");
        begin(&from);
        CHECK_STR(ask(0, "a tenant=t cost=2 hold=90"), "granted");
        CHECK_STR(ask(0, "b tenant=s cost=2 hold=90"), "granted");
        CHECK_STR(ask(0, "c tenant=s cost=3 hold=90"), "granted"); /* on loan from u */
        CHECK_STR(ask(1, "w tenant=t cost=1 wait=500"), "queued");
        CHECK_STR(ask(1, "u tenant=u cost=4 wait=500"), "queued");
        reload(MS(10), targets[i], 1);
        row = report(MS(10));
        CHECK_EQ(row.tenant_count, 3);
        CHECK_EQ(row.tenants[0].guarantee, 4 * UNIT);
        CHECK_EQ(row.tenants[0].held, counts ? 3 * UNIT : 0); /* t's, and what has waited */
        CHECK_EQ(row.tenants[1].lent, 3 * UNIT);
        CHECK_EQ(row.tenants[2].own, 2 * UNIT);
        CHECK_EQ(row.tenants[2].borrowed, 3 * UNIT);
        CHECK_EQ(row.tenants[2].granted, 2);
        CHECK_EQ(row.held, counts ? 8 * UNIT : 5 * UNIT);
        /* u's own is now too little for its waiter, whose hold is too long to borrow. */
        CHECK_STR(world_events(&w), counts
                                        ? "refused u hold_exceeds_reclaim_horizon l 9;granted w 9;"
                                        : "refused w unknown_tenant l 9;refused u hold_exceeds_reclaim_horizon l 9;");
        CHECK_STR(end(MS(20), "a"), "released");
        CHECK_STR(end(MS(20), "c"), "released");
        CHECK_EQ(report(MS(20)).tenants[1].lent, 0);
        CHECK_STR(end(MS(20), "b"), "released");
        CHECK_STR(end(MS(20), "w"), counts ? "released" : "unknown");
        CHECK_EQ(report(MS(20)).held, 0);
        /* Who is quiet lends again. */
        CHECK_STR(ask(MS(100), "y tenant=s cost=8 hold=50"), "nothing_to_borrow l acc -");
        CHECK_STR(ask(MS(400), "y tenant=s cost=8 hold=50"), "granted");
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

/* A lender that is gone leaves what it lent to the borrower, above its guarantee. */
static void a_lender_that_is_gone_is_owed_nothing(void **state)
{
    static const ration_tenant_share two[] = {{"s", 1, {0, 0}}, {"t", 1, {0, 0}}};
    static const ration_tenant_share one[] = {{"v", 3, {0, 0}}, {"s", 1, {0, 0}}};
    static const ration_limit_rule from = SHARE(two, 2, .ceiling = 8 * UNIT);
    static const ration_limit_rule to = SHARE(one, 2, .ceiling = 8 * UNIT);
    ration_counter_report row;

    (void)state;
    begin(&from);
    CHECK_STR(ask(0, "a tenant=s cost=7 hold=90"), "granted");
    reload(MS(1), &to, 1);
    row = report(MS(1));
    CHECK_EQ(row.tenants[1].guarantee, 2 * UNIT);
    CHECK_EQ(row.tenants[1].own, 7 * UNIT);
    CHECK_EQ(row.tenants[1].borrowed, 0);
    CHECK_EQ(row.draining, 5 * UNIT);
    CHECK_STR(ask(MS(1), "b tenant=v cost=2"), "guarantee_on_loan l acc 89000us~");
    CHECK_STR(world_release(&w, MS(2), "a", RATION_OUTCOME_SUCCESS, 3 * UNIT), "released");
    CHECK_EQ(report(MS(2)).held, 0);
    world_fini(&w);
}

static void a_ceiling_follows_another_way(void **state)
{
    static const ration_tenant_share two[] = {{"s", 1, {0, 0}}, {"t", 1, {0, 0}}};
    static const ration_limit_rule fixed = SHARE(two, 2, .ceiling = 8 * UNIT);
    static const ration_limit_rule follows[] = {LIMIT("m", ADAPTIVE, .adaptive = {.initial_limit = 4}),
                                                SHARE(two, 2, .follows = "m")};
    static const ration_limit_rule beside[] = {LIMIT("m", ADAPTIVE, .adaptive = {.initial_limit = 4}),
                                               SHARE(two, 2, .ceiling = 8 * UNIT)};

    (void)state;
    begin(&fixed);
    CHECK_STR(ask(0, "a tenant=s cost=3"), "granted");
    reload(MS(1), follows, 2);
    CHECK_EQ(report(MS(1)).tenants[0].guarantee, 2 * UNIT);
    CHECK_EQ(report(MS(1)).draining, UNIT);
    CHECK_STR(ask(MS(1), "b tenant=t cost=1"), "granted");
    CHECK_STR(world_release(&w, MS(2), "b", RATION_OUTCOME_THROTTLED, RATION_UNSET), "released");
    CHECK_EQ(report(MS(2)).tenants[1].guarantee, UNIT);
    reload(MS(3), follows, 2);
    CHECK_EQ(report(MS(3)).tenants[1].guarantee, UNIT);
    reload(MS(4), &fixed, 1);
    CHECK_EQ(report(MS(4)).tenants[1].guarantee, 4 * UNIT);
    world_fini(&w);

    /* One that has moved before anybody followed it. */
    begin(&fixed);
    reload(0, beside, 2);
    CHECK_STR(ask(0, "a tenant=s cost=3"), "granted");
    CHECK_STR(world_release(&w, 0, "a", RATION_OUTCOME_THROTTLED, RATION_UNSET), "released");
    reload(MS(1), follows, 2);
    CHECK_EQ(report(MS(1)).tenants[1].guarantee, UNIT);
    world_fini(&w);
}

static void circuits_go_on(void **state)
{
    static const char *const by_instance[] = {"instance"};
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    (void)state;
    rules_of(&rules, &provider, accounts, NULL, 0);
    provider.breaker =
        (ration_breaker_rule){.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 2, .backoff_initial_us = MS(1000)};
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(ask(0, "b"), "granted");
    CHECK_STR(world_release(&w, 0, "a", RATION_OUTCOME_FAILURE, RATION_UNSET), "released");
    /* Failures in a row are counted on, and a call of before counts. */
    provider.breaker.backoff_initial_us = MS(2000);
    CHECK_EQ(reload_rules(MS(1), &rules), RATION_OK);
    CHECK_STR(world_release(&w, MS(2), "b", RATION_OUTCOME_FAILURE, RATION_UNSET), "released");
    CHECK_STR(world_events(&w), "open acc;");
    CHECK_STR(ask(MS(3), "c"), "circuit_open - acc 1999000us");
    /* An open one stays open, to the instant that it had, whatever it counts from now on. */
    provider.breaker = (ration_breaker_rule){.strategy = RATION_BREAKER_SAMPLING, .backoff_initial_us = MS(5)};
    CHECK_EQ(reload_rules(MS(4), &rules), RATION_OK);
    CHECK_STR(ask(MS(4), "c"), "circuit_open - acc 1998000us");
    CHECK_STR(ask(MS(2002), "c"), "granted");
    CHECK_STR(world_events(&w), "half-open acc;");
    CHECK_STR(ask(MS(2002), "d"), "circuit_open - acc 2000000us");
    /* The probe's result closes it. */
    CHECK_EQ(reload_rules(MS(2003), &rules), RATION_OK);
    CHECK_STR(end(MS(2004), "c"), "released");
    CHECK_STR(world_events(&w), "closed acc;");
    /* Another scope, then none at all. */
    provider.breaker.scope = by_instance;
    provider.breaker.scope_count = 1;
    CHECK_STR(ask(MS(2005), "e"), "granted");
    CHECK_EQ(reload_rules(MS(2006), &rules), RATION_OK);
    CHECK_STR(world_release(&w, MS(2007), "e", RATION_OUTCOME_FAILURE, RATION_UNSET), "released");
    CHECK_STR(ask(MS(2008), "f"), "granted");
    provider.breaker = (ration_breaker_rule){.strategy = RATION_BREAKER_NONE};
    CHECK_EQ(reload_rules(MS(2009), &rules), RATION_OK);
    CHECK_STR(end(MS(2010), "f"), "released");
    world_fini(&w);
}

static void accounts_and_providers_come_and_go(void **state)
{
    static const ration_limit_rule one = SLOTS(1);
    static const ration_limit_rule own = SLOTS(2);
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;
    ration_event event;

    (void)state;
    rules_of(&rules, &provider, accounts, &one, 1);
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(ask(0, "b account=bcc ttl=500"), "granted");
    CHECK_STR(ask(0, "c account=bcc wait=1000 priority=low"), "queued");
    CHECK_STR(ask(0, "d account=bcc wait=1000"), "queued");
    CHECK_STR(ask(0, "e wait=1000"), "queued");
    rules.account_count = 1;
    CHECK_EQ(reload_rules(MS(1), &rules), RATION_OK);
    CHECK_STR(world_events(&w), "refused d unknown_account - 1;refused c unknown_account - 1;");
    CHECK_STR(ask(MS(2), "f account=bcc"), "unknown_account - - -");
    /* Its lease ends as ever; it may even be penalized, which concerns nobody. */
    CHECK_STR(world_observe(&w, MS(3), "b", 429, "Retry-After", "9"), "observed");
    CHECK_STR(world_renew(&w, MS(3), "b"), "renewed");
    /* Back again, with a limit of its own: its slot is counted on, if the lease held it all the time. */
    accounts[1].limits = &own;
    accounts[1].limit_count = 1;
    rules.account_count = 2;
    CHECK_EQ(reload_rules(MS(4), &rules), RATION_OK);
    CHECK_STR(ask(MS(4), "g account=bcc"), "penalized l bcc 8999000us");
    accounts[0].limits = &own;
    accounts[0].limit_count = 1;
    CHECK_EQ(reload_rules(MS(5), &rules), RATION_OK);
    CHECK_STR(world_events(&w), "granted e 5;");
    /* And no provider at all. */
    rules.account_count = rules.provider_count = 0;
    CHECK_EQ(reload_rules(MS(6), &rules), RATION_OK);
    CHECK_STR(ask(MS(6), "h"), "unknown_account - - -");
    CHECK_STR(end(MS(7), "a"), "released");
    world_advance(&w, MS(600));
    CHECK_STR(world_events(&w), "lost b;");
    CHECK_STR(end(MS(601), "e"), "released");
    CHECK(!ration_engine_next_event(w.engine, &event));
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_adaptive_limit_stands_where_it_stood),
        cmocka_unit_test(guarantees_move_by_epochs),
        cmocka_unit_test(tenants_come_and_go),
        cmocka_unit_test(a_lender_that_is_gone_is_owed_nothing),
        cmocka_unit_test(a_ceiling_follows_another_way),
        cmocka_unit_test(circuits_go_on),
        cmocka_unit_test(accounts_and_providers_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
