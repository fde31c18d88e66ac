/* SPDX-License-Identifier: MIT */
/* What is off by default: lend, freeze, cooldown, other weights, another size; and leases that cost more than asked. */
#include "support/lone_ceiling.h"
#include "support/tenants.h"

#define MS INT64_C(1000)
#define A 0
#define B 1
#define C 2

static void lend(void **state)
{
    static const ration_tenant_share four[] = {{"a", 1, {0, 0}}, {"b", 1, {1, 5}}, {"c", 1, {0, 1}}, {"d", 1, {1, 1}}};
    static const tenants_step steps[] = {
        {"d is there", 0, "acquire d0 d 0 -", "granted"},
        {"80% of a, a fifth of b, nothing of c", 0, "acquire x d 50.000001 100", "nothing_to_borrow -"},
        {"all of it", 0, "acquire d1 d 50 100", "granted"},
        {"a", 0, "state a", "guarantee 25 held 0 own 0 lent 20 borrowed 0 want 0 idle"},
        {"b", 0, "state b", "guarantee 25 held 0 own 0 lent 5 borrowed 0 want 0 idle"},
        {"what was kept back is there at once", 1 * MS, "acquire b1 b 20 1000", "granted"},
        {"all of c", 1 * MS, "acquire c1 c 25 1000", "granted"},
        {"a part of a", 1 * MS, "acquire a1 a 6 1000", "guarantee_on_loan 99 d1"},
    };
    static const tenants_step all[] = {
        {"a fifth, nothing, all and what is not said: all", 0, "acquire d1 a 55 100", "granted"},
        {"d", 0, "state d", "guarantee 25 held 0 own 0 lent 25 borrowed 0 want 0 idle"},
        {"b", 0, "state b", "guarantee 25 held 0 own 0 lent 5 borrowed 0 want 0 idle"},
        {"c", 0, "state c", "guarantee 25 held 0 own 0 lent 0 borrowed 0 want 0 idle"},
    };
    ration_ceiling_options options = tenants_two();

    (void)state;
    options.rule.tenants = four;
    options.rule.tenant_count = 4;
    TENANTS_RUN(&options, all);
    options.rule.lend = (ration_ratio){4, 5};
    TENANTS_RUN(&options, steps);
}

static void freeze_wanted(void **state)
{
    static const tenants_step steps[] = {
        {"b takes its own", 0, "acquire b1 b 50 5000", "granted"},
        {"and all of a's", 0, "acquire b2 b 50 100", "granted"},
        {"a wants 20", 10 * MS, "acquire a1 a 20 50", "guarantee_on_loan 90 b2"},
        {"the loan ends", 100 * MS, "release b2", "released"},
        {"30 are not wanted", 100 * MS, "acquire x b 31 100", "nothing_to_borrow 4900"},
        {"they are lent on", 100 * MS, "acquire b3 b 30 100", "granted"},
        {"the 20 are there", 110 * MS, "acquire a1 a 20 50", "granted"},
        {"who holds something lends nothing", 110 * MS, "acquire x b 1 50", "nothing_to_borrow 4890"},
        {"it ends", 120 * MS, "release a1", "released"},
        {"quiet is counted from there", 320 * MS - 1, "acquire x b 1 50", "nothing_to_borrow 4680.001"},
        {"b3 has overrun; asking does not end idleness", 300 * MS, "acquire x a 25 50", "guarantee_on_loan - b3"},
        {"b gives back 30", 310 * MS, "release b3", "released"},
        {"asked again at 319.999 by then, 25 stay out", 320 * MS, "acquire x b 26 50", "nothing_to_borrow 4680"},
        {"25 do not", 320 * MS, "acquire b4 b 25 100", "granted"},
        {"its want lapses: the rest may be lent", 519999, "acquire b5 b 25 100", "granted"},
    };
    ration_ceiling_options options = tenants_two();

    (void)state;
    options.rule.freeze_wanted = true;
    TENANTS_RUN(&options, steps);
}

/* What it waits with stays out too, whatever it waits for. */
static void freeze_wanted_while_it_waits(void **state)
{
    ration_share_rule rule = lone_rule(2);
    const rn_ceiling_ask ten = lone_ask(A, 10, RATION_UNSET);
    const rn_ceiling_ask thirty = lone_ask(A, 30, RATION_UNSET);
    lone_ceiling l;

    (void)state;
    rule.freeze_wanted = true;
    lone_init(&l, &rule);
    CHECK_EQ(lone_acquire(&l, 0, 'B', B, 50, 5000), RATION_REASON_NONE);
    rn_ceiling_wait(l.c, ration_time_of(0), &ten);
    CHECK_EQ(rn_ceiling_pool(l.c, ration_time_of(0)), 40);
    rn_ceiling_wait(l.c, ration_time_of(10), &thirty);
    CHECK_EQ(rn_ceiling_pool(l.c, ration_time_of(10)), 20);
    CHECK_ROW("the largest since somebody waits");
    rn_ceiling_leave(l.c, ration_time_of(20), &thirty, false, false);
    CHECK_EQ(rn_ceiling_pool(l.c, ration_time_of(20)), 20);
    CHECK_EQ(rn_ceiling_pool_change(l.c, ration_time_of(20)).us, RATION_NEVER_US);
    rn_ceiling_leave(l.c, ration_time_of(30), &ten, false, false);
    CHECK_EQ(rn_ceiling_pool(l.c, ration_time_of(30)), 50);

    CHECK_ROW("a want, while it waits short and idleAfter after");
    rn_ceiling_wait(l.c, ration_time_of(40), &thirty);
    rn_ceiling_short(l.c, ration_time_of(40), &thirty);
    CHECK_EQ(rn_ceiling_pool(l.c, ration_time_of(1000)), 20);
    CHECK(!rn_ceiling_is_fresh(l.c, ration_time_of(1000)));
    rn_ceiling_leave(l.c, ration_time_of(1000), &thirty, true, false);
    CHECK_EQ(rn_ceiling_pool(l.c, ration_time_of(1000)), 20);
    CHECK_EQ(rn_ceiling_pool_change(l.c, ration_time_of(1000)).us, 1200);
    CHECK_EQ(rn_ceiling_pool(l.c, ration_time_of(1199)), 20);
    CHECK_EQ(rn_ceiling_pool(l.c, ration_time_of(1200)), 50);
    CHECK_ROW(NULL);
    lone_fini(&l);
}

/* Nothing is as new while something is wanted. */
static void freeze_wanted_remembers(void **state)
{
    ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    rule.freeze_wanted = true;
    lone_init(&l, &rule);
    CHECK(rn_ceiling_is_fresh(l.c, ration_time_of(0)));
    CHECK_EQ(lone_acquire(&l, 10, 'x', A, 60, 1000), RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    CHECK(!rn_ceiling_is_fresh(l.c, ration_time_of(209)));
    CHECK(rn_ceiling_is_fresh(l.c, ration_time_of(210)));
    lone_fini(&l);
}

static void cooldown(void **state)
{
    static const tenants_step steps[] = {
        {"b takes its own", 0, "acquire b1 b 50 9000", "granted"},
        {"and a's", 0, "acquire b2 b 50 100", "granted"},
        {"a comes back", 10 * MS, "acquire a1 a 50 50", "guarantee_on_loan 90 b2"},
        {"", 100 * MS, "release b2", "released"},
        {"the reclaim ends", 100 * MS, "acquire a1 a 50 50", "granted"},
        {"and a", 110 * MS, "release a1", "released"},
        {"it is idle", 310 * MS, "state a", "guarantee 50 held 0 own 0 lent 0 borrowed 0 want 0 idle"},
        {"but does not lend", 1100 * MS - 1, "acquire b3 b 50 100", "nothing_to_borrow 7900.001"},
        {"until its second is over", 1100 * MS, "acquire b3 b 50 100", "granted"},
        {"a reclaim that is given up", 1110 * MS, "acquire a1 a 50 50", "guarantee_on_loan 90 b3"},
        {"", 1200 * MS, "release b3", "released"},
        {"cools nothing", 1310 * MS, "acquire b4 b 50 100", "granted"},
    };
    ration_ceiling_options options = tenants_two();

    (void)state;
    options.rule.cooldown_us = 1000 * MS;
    TENANTS_RUN(&options, steps);
}

/* ---- other guarantees ---- */

static void reweight(void **state)
{
    static const ration_tenant_share heavier[] = {{"a", 4, {0, 0}}, {"b", 1, {0, 0}}};
    static const tenants_step before[] = {
        {"b has its own", 0, "acquire b1 b 50 300", "granted"},
        {"and 30 of a's", 0, "acquire b2 b 30 100", "granted"},
        {"a has the rest", 0, "acquire a1 a 20 1000", "granted"},
    };
    static const tenants_step after[] = {
        {"nothing is taken from b", 10 * MS, "state b", "guarantee 20 held 80 own 50 lent 0 borrowed 30 want 0 busy"},
        {"a has a larger part", 10 * MS, "state a", "guarantee 80 held 20 own 20 lent 30 borrowed 0 want 0 busy"},
        {"30 are above b's", 10 * MS, "total", "100 of 100 draining 30 overrun"},
        {"a is entitled to 30 more, but the ceiling is full", 10 * MS, "acquire a2 a 30 50", "guarantee_on_loan 90 b2"},
        {"for more, the one that drains must end too", 10 * MS, "acquire a2 a 31 50", "guarantee_on_loan 290 b2 b1"},
        {"b is told when its own will be there", 10 * MS, "acquire x b 1 50", "nothing_to_borrow 290"},
        {"a loan ends", 100 * MS, "release b2", "released"},
        {"a has 30 more", 100 * MS, "acquire a2 a 30 50", "granted"},
        {"no more", 100 * MS, "acquire a3 a 1 50", "guarantee_on_loan 200 b1"},
        {"the old guarantee is given back", 300 * MS, "release b1", "released"},
        {"all has drained", 300 * MS, "total", "50 of 100 draining 0 overrun a2"},
        {"a has its own", 300 * MS, "acquire a3 a 30 500", "granted"},
        {"b too", 300 * MS, "acquire b3 b 20 500", "granted"},
        {"31 for 90 ms, 1 for 200 ms; that one has lapsed", 300 * MS, "toll a",
         "deficit 2990 reclaims 1 worst 90 granted 3 refused guarantee_on_loan:3"},
    };
    ration_ceiling_options options = tenants_two();
    tenants t;

    (void)state;
    tenants_init(&t, &options);
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        CHECK_STR(tenants_call(&t, before[i].at_us, before[i].call), before[i].want);
    options.rule.tenants = heavier;
    CHECK_EQ(ration_ceiling_reweight(t.ceiling, ration_time_of(10 * MS), &options.rule, NULL), RATION_OK);
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++) {
        CHECK_ROW(after[i].why);
        CHECK_STR(tenants_call(&t, after[i].at_us, after[i].call), after[i].want);
    }
    CHECK_ROW(NULL);
    tenants_fini(&t);
}

/* Everything but the tenants may change. */
static void reweight_to_another_rule(void **state)
{
    ration_ceiling_options options = tenants_two();
    tenants t;

    (void)state;
    tenants_init(&t, &options);
    CHECK_STR(tenants_call(&t, 0, "acquire b1 b 50 5000"), "granted");
    options.rule.lend = (ration_ratio){1, 2};
    options.rule.idle_after_us = 3000 * MS;
    CHECK_EQ(ration_ceiling_reweight(t.ceiling, ration_time_of(0), &options.rule, NULL), RATION_OK);
    CHECK_ROW("a has been quiet since -1000");
    CHECK_STR(tenants_call(&t, 2000 * MS - 1, "acquire b2 b 25 100"), "nothing_to_borrow 3000.001");
    CHECK_STR(tenants_call(&t, 2000 * MS, "acquire x b 26 100"), "nothing_to_borrow 3000");
    CHECK_STR(tenants_call(&t, 2000 * MS, "acquire b2 b 25 100"), "granted");
    CHECK_ROW("a longer horizon, a larger ceiling");
    options.rule.reclaim_horizon_us = 1000 * MS;
    options.rule.ceiling = 200 * RATION_UNIT;
    CHECK_EQ(ration_ceiling_reweight(t.ceiling, ration_time_of(2000 * MS), &options.rule, NULL), RATION_OK);
    CHECK_STR(tenants_call(&t, 2000 * MS, "acquire b3 b 75 1000"), "granted");
    CHECK_STR(tenants_call(&t, 2000 * MS, "state a"), "guarantee 100 held 0 own 0 lent 50 borrowed 0 want 0 idle");
    CHECK_ROW(NULL);
    tenants_fini(&t);
}

/* A want that is older than the new idleAfter has lapsed, with what it was short of until then. */
static void reweight_to_a_shorter_patience(void **state)
{
    ration_ceiling_options options = tenants_two();
    tenants t;

    (void)state;
    tenants_init(&t, &options);
    CHECK_STR(tenants_call(&t, 0, "acquire b1 b 100 100"), "granted");
    CHECK_STR(tenants_call(&t, 0, "acquire a1 a 10 100"), "guarantee_on_loan 100 b1");
    options.rule.reclaim_horizon_us = 10 * MS;
    options.rule.idle_after_us = 20 * MS;
    CHECK_EQ(ration_ceiling_reweight(t.ceiling, ration_time_of(50 * MS), &options.rule, NULL), RATION_OK);
    CHECK_STR(tenants_call(&t, 50 * MS, "state a"), "guarantee 50 held 0 own 0 lent 50 borrowed 0 want 0 idle");
    CHECK_STR(tenants_call(&t, 60 * MS, "toll a"),
              "deficit 500 reclaims 0 worst 0 granted 0 refused guarantee_on_loan:1");
    tenants_fini(&t);
}

/* More is on loan than may be lent: what comes back covers that first. */
static void reweight_to_lend_less(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    ration_share_rule less = rule;
    rn_ceiling_spec spec;
    lone_ceiling l;

    (void)state;
    less.lend = (ration_ratio){1, 2};
    lone_init(&l, &rule);
    CHECK_EQ(rn_ceiling_spec_init(&spec, rn_mem_default(), &less, NULL), RATION_OK);
    CHECK_EQ(lone_acquire(&l, 0, 'B', B, 50, 5000), RATION_REASON_NONE);
    CHECK_EQ(lone_acquire(&l, 0, 'C', B, 10, 10), RATION_REASON_NONE);
    CHECK_EQ(lone_acquire(&l, 0, 'D', B, 10, 20), RATION_REASON_NONE);
    CHECK_EQ(lone_acquire(&l, 0, 'E', B, 30, 30), RATION_REASON_NONE);
    CHECK_EQ(rn_ceiling_reweight(l.c, ration_time_of(0), &spec, 100), RATION_OK);
    CHECK_EQ(lone_check(&l, 0, B, 1, 100), RATION_REASON_NOTHING_TO_BORROW);
    CHECK_EQ(l.retry_us, 30);
    CHECK_EQ(lone_check(&l, 0, B, 25, 100), RATION_REASON_NOTHING_TO_BORROW);
    CHECK_EQ(l.retry_us, 30);
    CHECK_ROW("25 may be lent, the 26th is its own");
    CHECK_EQ(lone_check(&l, 0, B, 26, 100), RATION_REASON_NOTHING_TO_BORROW);
    CHECK_EQ(l.retry_us, 5000);
    CHECK_ROW("asking twice changes nothing");
    CHECK_EQ(lone_check(&l, 0, B, 25, 100), RATION_REASON_NOTHING_TO_BORROW);
    CHECK_EQ(l.retry_us, 30);
    CHECK_ROW(NULL);
    lone_fini(&l);
    rn_ceiling_spec_fini(&spec);
}

static uint64_t digest_of(const ration_share_rule *rule)
{
    rn_ceiling_spec spec;
    uint64_t digest = 0;

    CHECK_EQ(rn_ceiling_spec_init(&spec, rn_mem_default(), rule, NULL), RATION_OK);
    digest = spec.digest;
    rn_ceiling_spec_fini(&spec);
    return digest;
}

/* Whatever differs, the digest does; the same rule elsewhere in memory has the same. */
static void digests(void **state)
{
    static const ration_tenant_share usual[] = {{"a", 1, {0, 0}}, {"b", 2, {1, 2}}};
    static const ration_tenant_share again[] = {{"a", 1, {0, 0}}, {"b", 2, {1, 2}}};
    static const ration_tenant_share others[][2] = {
        {{"a", 1, {0, 0}}, {"c", 2, {1, 2}}}, {{"a", 1, {0, 0}}, {"b", 1, {1, 2}}},
        {{"a", 2, {0, 0}}, {"b", 2, {1, 2}}}, {{"b", 1, {0, 0}}, {"a", 2, {1, 2}}},
        {{"a", 1, {0, 0}}, {"b", 2, {1, 3}}}, {{"a", 1, {1, 1}}, {"b", 2, {1, 2}}},
        {{"a", 1, {0, 0}}, {"b", 2, {0, 2}}},
    };
    const ration_share_rule rule = {
        .ceiling = 100, .tenants = usual, .tenant_count = 2, .reclaim_horizon_us = 10, .idle_after_us = 20};
    ration_share_rule various[16];
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        various[count] = rule;
        various[count++].tenants = others[i];
    }
    for (size_t i = 0; i < 8; i++)
        various[count + i] = rule;
    various[count++].ceiling = 101;
    various[count++].tenant_count = 1;
    various[count++].reclaim_horizon_us = 11;
    various[count++].idle_after_us = 21;
    various[count++].cooldown_us = 1;
    various[count++].freeze_wanted = true;
    various[count++].unknown_tenant = "a";
    various[count++].lend = (ration_ratio){1, 2};
    for (size_t i = 0; i < count; i++) {
        CHECK(digest_of(&various[i]) != digest_of(&rule));
        for (size_t j = 0; j < i; j++)
            CHECK(digest_of(&various[i]) != digest_of(&various[j]));
    }
    various[0] = rule;
    various[0].tenants = again;
    CHECK_EQ(digest_of(&various[0]), digest_of(&rule));
}

static void reweight_refuses_other_tenants(void **state)
{
    static const ration_tenant_share swapped[] = {{"b", 1, {0, 0}}, {"a", 1, {0, 0}}};
    static const ration_tenant_share more[] = {{"a", 1, {0, 0}}, {"b", 1, {0, 0}}, {"c", 1, {0, 0}}};
    ration_ceiling_options options = tenants_two();
    ration_fault fault = {.path = ""};
    tenants t;

    (void)state;
    tenants_init(&t, &options);
    options.rule.tenants = swapped;
    CHECK_EQ(ration_ceiling_reweight(t.ceiling, ration_time_of(0), &options.rule, &fault), RATION_ERR_CONFIG);
    CHECK_STR(fault.path, "tenants");
    CHECK_STR(fault.text, "a reweighted ceiling keeps its tenants, in the same order");
    options.rule.tenants = more;
    options.rule.tenant_count = 3;
    CHECK_EQ(ration_ceiling_reweight(t.ceiling, ration_time_of(0), &options.rule, NULL), RATION_ERR_CONFIG);
    options.rule.tenant_count = 1;
    CHECK_EQ(ration_ceiling_reweight(t.ceiling, ration_time_of(0), &options.rule, NULL), RATION_ERR_CONFIG);
    options = tenants_two();
    options.rule.idle_after_us = options.rule.reclaim_horizon_us;
    CHECK_EQ(ration_ceiling_reweight(t.ceiling, ration_time_of(0), &options.rule, &fault), RATION_ERR_CONFIG);
    CHECK_STR(fault.path, "idleAfter");
    CHECK_EQ(ration_ceiling_reweight(t.ceiling, ration_time_of(0), NULL, NULL), RATION_ERR_INVALID);
    CHECK_STR(tenants_call(&t, 0, "targets"), "a:0 b:0");
    tenants_fini(&t);
}

/* A ceiling that shrinks and grows under leases, as one that follows an adaptive limit does. */
static void resize(void **state)
{
    const ration_share_rule rule = lone_rule(3);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    CHECK_EQ(lone_row(&l, 0, A).guarantee, 34);
    CHECK_EQ(lone_acquire(&l, 0, 'A', A, 30, 500), RATION_REASON_NONE);
    CHECK_EQ(lone_acquire(&l, 0, 'B', B, 30, 300), RATION_REASON_NONE);
    CHECK_EQ(lone_acquire(&l, 0, 'L', B, 20, 100), RATION_REASON_NONE);
    rn_ceiling_resize(l.c, ration_time_of(10), 60);
    CHECK_ROW("a and b are 10 above their 20 each, c has lent 17 of 20");
    CHECK_EQ(lone_row(&l, 10, C).lent, 17);
    CHECK_EQ(lone_stats(&l, 10).draining, 13 + 10);
    CHECK_EQ(lone_stats(&l, 10).max, 60);

    CHECK_ROW("c has 3 free, but 80 are held under 60: b's first, for it ends first");
    CHECK_EQ(lone_check(&l, 10, C, 3, RATION_UNSET), RATION_REASON_GUARANTEE_ON_LOAN);
    CHECK_STR(l.blocking, "LB");
    CHECK_EQ(l.retry_us, 290);
    CHECK_ROW("more than all of it");
    CHECK_EQ(lone_check(&l, 10, C, 61, 10), RATION_REASON_COST_EXCEEDS_LIMIT);
    CHECK_ROW("b needs what it is above its guarantee");
    CHECK_EQ(lone_check(&l, 10, B, 1, 10), RATION_REASON_NOTHING_TO_BORROW);
    CHECK_EQ(l.retry_us, 290);
    CHECK_ROW("one that waits hears of it as soon as there is room for it");
    lone_wait(&l, 20, C, 3);
    CHECK_EQ(lone_check(&l, 20, C, 3, RATION_UNSET), RATION_REASON_GUARANTEE_ON_LOAN);
    lone_end(&l, 100, 'L');
    CHECK_ROW("17 have come back to c, who must look, but 60 of 60 are held");
    CHECK_EQ(rn_ceiling_touched(l.c), C);
    CHECK_EQ(rn_ceiling_touched(l.c), RN_TENANT_NONE);
    CHECK_EQ(lone_check(&l, 100, C, 3, RATION_UNSET), RATION_REASON_GUARANTEE_ON_LOAN);
    rn_ceiling_settle(l.c, ration_time_of(110), lone_hold(&l, 'A'), 28);
    CHECK_EQ(rn_ceiling_touched(l.c), RN_TENANT_NONE);
    rn_ceiling_settle(l.c, ration_time_of(110), lone_hold(&l, 'A'), 27);
    CHECK_EQ(rn_ceiling_touched(l.c), C);
    CHECK_EQ(rn_ceiling_touched(l.c), RN_TENANT_NONE);
    CHECK_EQ(lone_check(&l, 110, C, 3, RATION_UNSET), RATION_REASON_NONE);

    CHECK_ROW("it grows: everybody is within the guarantee again");
    rn_ceiling_resize(l.c, ration_time_of(120), 99);
    CHECK_EQ(lone_stats(&l, 120).draining, 0);
    CHECK_EQ(lone_check(&l, 120, A, 6, RATION_UNSET), RATION_REASON_NONE);
    CHECK_EQ(lone_check(&l, 120, A, 7, RATION_UNSET), RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    CHECK_ROW(NULL);
    lone_fini(&l);
}

/* A request whose hold is too long waits for its own leases, unless it is above the guarantee. */
static void hopeless_or_not(void **state)
{
    static const struct {
        const char *why;
        int64_t charge;
        ration_reason reason;
        bool hopeless;
    } rows[] = {
        {"its own will come back", 50, RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON, false},
        {"its own will never be enough", 51, RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON, true},
        {"nor will all", 101, RATION_REASON_COST_EXCEEDS_LIMIT, true},
    };
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    CHECK_EQ(lone_acquire(&l, 0, 'A', A, 10, 500), RATION_REASON_NONE);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_ceiling_ask ask = lone_ask(A, rows[i].charge, 1000);
        rn_ceiling_verdict verdict;

        CHECK_ROW(rows[i].why);
        rn_ceiling_check(l.c, ration_time_of(0), &ask, &verdict);
        CHECK_EQ(verdict.reason, rows[i].reason);
        CHECK_EQ(verdict.hopeless, rows[i].hopeless);
    }
    CHECK_ROW(NULL);
    lone_fini(&l);
}

/* ---- actual costs ---- */

static void settling(void **state)
{
    const ration_share_rule rule = lone_rule(3);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    CHECK_EQ(lone_acquire(&l, 0, 'B', B, 80, 100), RATION_REASON_NONE);
    CHECK_EQ(lone_row(&l, 0, B).own, 33);
    CHECK_EQ(lone_row(&l, 0, A).lent, 34);
    CHECK_EQ(lone_row(&l, 0, C).lent, 13);
    CHECK_ROW("loans go back first, the last lender's before the first's");
    rn_ceiling_settle(l.c, ration_time_of(1), lone_hold(&l, 'B'), 70);
    CHECK_EQ(lone_row(&l, 1, C).lent, 3);
    CHECK_EQ(lone_row(&l, 1, A).lent, 34);
    rn_ceiling_settle(l.c, ration_time_of(2), lone_hold(&l, 'B'), 60);
    CHECK_EQ(lone_row(&l, 2, C).lent, 0);
    CHECK_EQ(lone_row(&l, 2, A).lent, 27);
    CHECK_ROW("then its own");
    rn_ceiling_settle(l.c, ration_time_of(3), lone_hold(&l, 'B'), 30);
    CHECK_EQ(lone_row(&l, 3, A).lent, 0);
    CHECK_EQ(lone_row(&l, 3, B).own, 30);
    CHECK_ROW("what is more is its own, above the guarantee too");
    rn_ceiling_settle(l.c, ration_time_of(4), lone_hold(&l, 'B'), 40);
    CHECK_EQ(lone_row(&l, 4, B).own, 40);
    CHECK_EQ(lone_stats(&l, 4).draining, 7);
    CHECK_ROW("who would borrow must cover that as well: 34 and 33 are there");
    CHECK_EQ(lone_check(&l, 4, B, 61, 100), RATION_REASON_NOTHING_TO_BORROW);
    CHECK_EQ(lone_check(&l, 4, B, 60, 100), RATION_REASON_NONE);
    CHECK_EQ(lone_check(&l, 4, B, 0, RATION_UNSET), RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    lone_take(&l, 4, 'L', lone_ask(B, 60, 100), 0);
    CHECK_EQ(lone_row(&l, 4, B).borrowed, 60);
    CHECK_EQ(lone_row(&l, 4, B).own, 40);
    CHECK_ROW("a comes back, 34 are on loan; then 66 are held and 34 are there");
    CHECK_EQ(lone_check(&l, 5, A, 34, 100), RATION_REASON_GUARANTEE_ON_LOAN);
    CHECK_STR(l.blocking, "BL");
    rn_ceiling_settle(l.c, ration_time_of(5), lone_hold(&l, 'L'), 26);
    CHECK_EQ(lone_row(&l, 5, A).lent, 26);
    CHECK_ROW(NULL);
    lone_fini(&l);
}

/* A shadow limit takes what is not there: it is the tenant's own, and drains. */
static void what_does_not_bind(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    lone_take(&l, 0, 'B', lone_ask(B, 70, 1000), 0);
    CHECK_EQ(lone_row(&l, 0, B).own, 70);
    CHECK_EQ(lone_row(&l, 0, A).lent, 0);
    lone_take(&l, 0, 'C', lone_ask(B, 70, 10), 0);
    CHECK_EQ(lone_row(&l, 0, B).own, 140);
    CHECK_EQ(lone_stats(&l, 0).draining, 90);
    CHECK_EQ(lone_check(&l, 0, A, 10, 10), RATION_REASON_GUARANTEE_ON_LOAN);
    CHECK_STR(l.blocking, "C");
    CHECK_EQ(l.retry_us, 10);
    CHECK_ROW("not even for nothing");
    CHECK_EQ(lone_check(&l, 0, A, 0, RATION_UNSET), RATION_REASON_GUARANTEE_ON_LOAN);
    CHECK_STR(l.blocking, "C");
    CHECK_ROW(NULL);
    lone_end(&l, 5, 'C');
    CHECK_EQ(lone_check(&l, 5, A, 10, 10), RATION_REASON_NONE);
    lone_end(&l, 5, 'B');
    CHECK_EQ(lone_stats(&l, 5).held, 0);
    lone_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lend),
        cmocka_unit_test(freeze_wanted),
        cmocka_unit_test(freeze_wanted_while_it_waits),
        cmocka_unit_test(freeze_wanted_remembers),
        cmocka_unit_test(cooldown),
        cmocka_unit_test(reweight),
        cmocka_unit_test(reweight_to_another_rule),
        cmocka_unit_test(reweight_to_a_shorter_patience),
        cmocka_unit_test(reweight_to_lend_less),
        cmocka_unit_test(reweight_refuses_other_tenants),
        cmocka_unit_test(digests),
        cmocka_unit_test(resize),
        cmocka_unit_test(hopeless_or_not),
        cmocka_unit_test(settling),
        cmocka_unit_test(what_does_not_bind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
