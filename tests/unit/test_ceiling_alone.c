/* SPDX-License-Identifier: MIT */
/* The public door: what it refuses to do, what its answers carry, and what happens without memory. */
#include "support/check.h"

#include <stdio.h>

#include "support/failalloc.h"
#include "support/tenants.h"

#define MS INT64_C(1000)
#define UNIT RATION_UNIT

static ration_text a_text(const char *s)
{
    return ration_text_of(s);
}

/* ---- making one ---- */

static void options_that_are_wrong(void **state)
{
    static const ration_tenant_share one[] = {{"a", 1, {0, 0}}};
    static const struct {
        const char *why;
        ration_counts counts;
        ration_share_rule rule;
        const char *path;
        const char *text;
    } rows[] = {
        {"nobody said what counts",
         RATION_COUNTS_UNSET,
         {.ceiling = UNIT, .tenants = one, .tenant_count = 1, .reclaim_horizon_us = 1, .idle_after_us = 2},
         "counts",
         "say requests or cost, there is no default: the two admit different calls, and which is fair depends on what "
         "the ceiling protects"},
        {"no such value",
         (ration_counts)3,
         {.ceiling = UNIT, .tenants = one, .tenant_count = 1, .reclaim_horizon_us = 1, .idle_after_us = 2},
         "counts",
         "say requests or cost, there is no default: the two admit different calls, and which is fair depends on what "
         "the ceiling protects"},
        {"nothing to follow",
         RATION_COUNTS_COST,
         {.follows = "L", .tenants = one, .tenant_count = 1, .reclaim_horizon_us = 1, .idle_after_us = 2},
         "follows",
         "there is no other limit here to follow: call ration_ceiling_reweight"},
        {"a count without a list",
         RATION_COUNTS_COST,
         {.ceiling = UNIT, .tenant_count = 1, .reclaim_horizon_us = 1, .idle_after_us = 2},
         "tenants",
         "a count without a list"},
        {"what any rule is told",
         RATION_COUNTS_COST,
         {.ceiling = UNIT, .tenants = one, .reclaim_horizon_us = 1, .idle_after_us = 2},
         "tenants",
         "at least one tenant with its weight is needed to share anything"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_ceiling_options options = {.rule = rows[i].rule, .counts = rows[i].counts};
        ration_ceiling *ceiling = NULL;
        ration_fault fault = {.path = ""};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(ration_ceiling_new(&options, &ceiling, &fault), RATION_ERR_CONFIG);
        CHECK_STR(fault.path, rows[i].path);
        CHECK_STR(fault.text, rows[i].text);
        CHECK_EQ(ration_ceiling_new(&options, &ceiling, NULL), RATION_ERR_CONFIG);
        CHECK(ceiling == NULL);
    }
    CHECK_ROW(NULL);
}

static void arguments_that_are_none(void **state)
{
    ration_ceiling_options options = tenants_two();
    const ration_ceiling_options blank = RATION_CEILING_OPTIONS_INIT;
    ration_ceiling *ceiling = NULL;
    ration_fault fault = {.path = ""};

    (void)state;
    CHECK_EQ(ration_ceiling_new(NULL, &ceiling, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_new(&options, NULL, NULL), RATION_ERR_INVALID);
    options.started_at.us = RATION_TIME_MAX_US + 1;
    CHECK_EQ(ration_ceiling_new(&options, &ceiling, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_new(&blank, &ceiling, &fault), RATION_ERR_CONFIG);
    CHECK_STR(fault.path, "counts");
    ration_ceiling_free(NULL);
}

/* Invalid arguments are no asking. */
static void invalid_calls_change_nothing(void **state)
{
    static const struct {
        const char *why;
        int64_t at_us, cost, hold_us;
    } rows[] = {
        {"no instant", RATION_NEVER_US, UNIT, 1},
        {"too late", RATION_TIME_MAX_US + 1, UNIT, 1},
        {"too early", -RATION_TIME_MAX_US - 1, UNIT, 1},
        {"a cost below 0", 0, -1, 1},
        {"a cost too large", 0, RATION_UNITS_MAX + 1, 1},
        {"a hold below 0", 0, UNIT, -2},
        {"a hold too long", 0, UNIT, RATION_TIME_MAX_US + 1},
    };
    const ration_ceiling_options options = tenants_two();
    const ration_time now = ration_time_of(0);
    const ration_text nowhere = {NULL, 3};
    const ration_reporter reporter = {.ctx = NULL};
    ration_decision decision = {.serial = 77};
    tenants t;

    (void)state;
    tenants_init(&t, &options);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        CHECK_EQ(ration_ceiling_acquire(t.ceiling, ration_time_of(rows[i].at_us), a_text("a"), rows[i].cost,
                                        rows[i].hold_us, &decision),
                 RATION_ERR_INVALID);
    }
    CHECK_ROW("nothing where there should be something");
    CHECK_EQ(ration_ceiling_acquire(NULL, now, a_text("a"), UNIT, 1, &decision), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_acquire(t.ceiling, now, a_text("a"), UNIT, 1, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_acquire(t.ceiling, now, nowhere, UNIT, 1, &decision), RATION_ERR_INVALID);
    CHECK_EQ(decision.serial, 77);
    CHECK_EQ(ration_ceiling_release(NULL, now, decision.lease), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_release(t.ceiling, ration_time_of(RATION_NEVER_US), decision.lease), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_stats(NULL, now, &reporter), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_stats(t.ceiling, now, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_stats(t.ceiling, ration_time_of(RATION_NEVER_US), &reporter), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_fairness(NULL, now, &reporter), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_fairness(t.ceiling, now, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_allocation(t.ceiling, ration_time_of(RATION_NEVER_US), &reporter), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_reweight(NULL, now, &options.rule, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_ceiling_reweight(t.ceiling, ration_time_of(RATION_NEVER_US), &options.rule, NULL),
             RATION_ERR_INVALID);
    CHECK_ROW("a is as quiet as before, and 0 is not too early");
    CHECK_STR(tenants_call(&t, -500 * MS, "state a"), "guarantee 50 held 0 own 0 lent 0 borrowed 0 want 0 idle");
    CHECK_STR(tenants_call(&t, -500 * MS, "acquire b1 b 51 1"), "granted");
    CHECK_EQ(t.last.at.us, -500 * MS);
    CHECK_EQ(t.last.serial, 1);
    CHECK_ROW("who wants no report gets none");
    CHECK_EQ(ration_ceiling_stats(t.ceiling, now, &reporter), RATION_OK);
    CHECK_EQ(ration_ceiling_fairness(t.ceiling, now, &reporter), RATION_OK);
    CHECK_ROW(NULL);
    tenants_fini(&t);
}

/* ---- answers ---- */

static void what_a_grant_carries(void **state)
{
    const ration_ceiling_options options = tenants_two();
    tenants t;

    (void)state;
    tenants_init(&t, &options);
    CHECK_STR(tenants_call(&t, 7, "acquire a1 a 10 100"), "granted");
    CHECK_EQ(t.last.result, RATION_GRANTED);
    CHECK_EQ(t.last.reason, RATION_REASON_NONE);
    CHECK_EQ(t.last.at.us, 7);
    CHECK_EQ(t.last.retry_at.us, RATION_NEVER_US);
    CHECK_EQ(t.last.serial, 1);
    CHECK(t.last.lease.generation > 0);
    CHECK(!t.last.estimate && t.last.blocking == NULL && t.last.blocking_count == 0 && t.last.limit == NULL);
    CHECK_EQ(t.last.facts.charge, RATION_UNSET);
    tenants_fini(&t);
}

static void what_a_refusal_carries(void **state)
{
    const ration_ceiling_options options = tenants_two();
    tenants t;

    (void)state;
    tenants_init(&t, &options);
    CHECK_STR(tenants_call(&t, 0, "acquire b1 b 40 1000"), "granted");
    CHECK_STR(tenants_call(&t, 0, "acquire b2 b 30 80"), "granted");
    CHECK_STR(tenants_call(&t, 0, "acquire x b 50 101"), "hold_exceeds_reclaim_horizon -");
    CHECK_EQ(t.last.result, RATION_REFUSED);
    CHECK_EQ(t.last.serial, 3);
    CHECK_EQ(t.last.lease.generation, 0);
    CHECK(!t.last.estimate);
    CHECK_TEXT(t.last.facts.tenant, "b");
    CHECK_EQ(t.last.facts.charge, 50 * UNIT);
    CHECK_EQ(t.last.facts.available, 0);
    CHECK_EQ(t.last.facts.capacity, 100 * UNIT);
    CHECK_EQ(t.last.facts.guarantee, 50 * UNIT);
    CHECK_EQ(t.last.facts.own, 50 * UNIT);
    CHECK_EQ(t.last.facts.lent, 0);
    CHECK_EQ(t.last.facts.pool, 30 * UNIT);
    CHECK_EQ(t.last.facts.hold_us, 101 * MS);
    CHECK_EQ(t.last.facts.horizon_us, 100 * MS);
    CHECK_STR(tenants_call(&t, 0, "acquire x a 31 -"), "guarantee_on_loan 80 b2");
    CHECK(t.last.estimate);
    CHECK_TEXT(t.last.facts.tenant, "a");
    CHECK_EQ(t.last.facts.available, 30 * UNIT);
    CHECK_EQ(t.last.facts.lent, 20 * UNIT);
    CHECK_EQ(t.last.facts.pool, 0);
    CHECK_EQ(t.last.facts.hold_us, RATION_UNSET);
    CHECK_EQ(t.last.serial, 4);
    CHECK_STR(tenants_call(&t, 0, "acquire x c 31 -"), "unknown_tenant -");
    CHECK_EQ(t.last.serial, 5);
    CHECK(t.last.facts.tenant.data == NULL);
    CHECK_EQ(t.last.facts.charge, RATION_UNSET);
    CHECK_EQ(t.last.facts.horizon_us, RATION_UNSET);
    CHECK_ROW("forever is as good as not declared");
    CHECK_EQ(ration_ceiling_acquire(t.ceiling, ration_time_of(0), a_text("a"), 60 * UNIT, RATION_FOREVER_US, &t.last),
             RATION_OK);
    CHECK_EQ(t.last.reason, RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    CHECK_EQ(t.last.facts.hold_us, RATION_UNSET);
    CHECK_ROW(NULL);
    tenants_fini(&t);
}

/* A hold that would end after the end of time ends there. */
static void ends_of_time(void **state)
{
    const ration_ceiling_options options = tenants_two();
    ration_decision decision;
    tenants t;

    (void)state;
    tenants_init(&t, &options);
    CHECK_EQ(ration_ceiling_acquire(t.ceiling, ration_time_of(RATION_TIME_MAX_US - 5), a_text("b"), 60 * UNIT, 10,
                                    &decision),
             RATION_OK);
    CHECK_EQ(decision.result, RATION_GRANTED);
    CHECK_EQ(ration_ceiling_acquire(t.ceiling, ration_time_of(RATION_TIME_MAX_US - 5), a_text("a"), 50 * UNIT, 10,
                                    &decision),
             RATION_OK);
    CHECK_EQ(decision.retry_at.us, RATION_TIME_MAX_US);
    tenants_fini(&t);
}

static void handles(void **state)
{
    const ration_ceiling_options options = tenants_two();
    const ration_time now = ration_time_of(0);
    ration_lease first;
    tenants t;

    (void)state;
    tenants_init(&t, &options);
    CHECK_STR(tenants_call(&t, 0, "acquire a1 a 1 -"), "granted");
    first = t.last.lease;
    CHECK_EQ(ration_ceiling_release(t.ceiling, now, first), RATION_OK);
    CHECK_EQ(ration_ceiling_release(t.ceiling, now, first), RATION_ERR_UNKNOWN);
    CHECK_STR(tenants_call(&t, 0, "acquire a2 a 1 -"), "granted");
    CHECK_EQ(t.last.lease.index, first.index);
    CHECK(t.last.lease.generation != first.generation);
    CHECK_EQ(ration_ceiling_release(t.ceiling, now, first), RATION_ERR_UNKNOWN);
    CHECK_EQ(ration_ceiling_release(t.ceiling, now, (ration_lease){first.index, 0}), RATION_ERR_UNKNOWN);
    CHECK_EQ(ration_ceiling_release(t.ceiling, now, (ration_lease){first.index + 1, 0}), RATION_ERR_UNKNOWN);
    CHECK_EQ(ration_ceiling_release(t.ceiling, now, (ration_lease){256, 1}), RATION_ERR_UNKNOWN);
    CHECK_EQ(ration_ceiling_release(t.ceiling, now, (ration_lease){UINT32_MAX, 1}), RATION_ERR_UNKNOWN);
    CHECK_STR(tenants_call(&t, 0, "total"), "1 of 100 draining 0 overrun");
    CHECK_STR(tenants_call(&t, 0, "release a2"), "released");
    tenants_fini(&t);
}

/* More leases than one chunk holds, all different, all given back. */
static void many_leases(void **state)
{
    enum { MANY = 600 };
    const ration_ceiling_options options = tenants_two();
    ration_lease leases[MANY];
    tenants t;

    (void)state;
    tenants_init(&t, &options);
    for (uint32_t i = 0; i < MANY; i++) {
        ration_decision decision;

        CHECK_EQ(ration_ceiling_acquire(t.ceiling, ration_time_of(0), a_text(i % 2 == 0 ? "a" : "b"), UNIT / 10,
                                        (int64_t)i * MS, &decision),
                 RATION_OK);
        CHECK_EQ(decision.result, RATION_GRANTED);
        CHECK_EQ(decision.lease.index, i);
        leases[i] = decision.lease;
    }
    CHECK_STR(tenants_call(&t, 0, "state b"), "guarantee 50 held 30 own 30 lent 0 borrowed 0 want 0 busy");
    for (uint32_t i = 0; i < MANY; i++)
        CHECK_EQ(ration_ceiling_release(t.ceiling, ration_time_of(0), leases[(i * 7) % MANY]), RATION_OK);
    CHECK_STR(tenants_call(&t, 0, "total"), "0 of 100 draining 0 overrun");
    tenants_fini(&t);
}

/* More leases in the way than the first list of them has room for. */
static void many_in_the_way(void **state)
{
    const ration_ceiling_options options = tenants_two();
    tenants t;

    (void)state;
    tenants_init(&t, &options);
    CHECK_STR(tenants_call(&t, 0, "acquire b0 b 50 1000"), "granted");
    for (int i = 0; i < 50; i++)
        CHECK_STR(tenants_call(&t, 0, "acquire b b 1 100"), "granted");
    CHECK_STR(tenants_call(&t, 0, "acquire a1 a 48 100"),
              "guarantee_on_loan 100 b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b "
              "b b b b b b b");
    CHECK_EQ(t.last.blocking_count, 48);
    CHECK_EQ(t.last.blocking[0].index, 1);
    CHECK_EQ(t.last.blocking[47].index, 48);
    tenants_fini(&t);
}

/* ---- reports ---- */

static void fairness(void **state)
{
    static const ration_tenant_share weights[] = {{"a", 3, {0, 0}}, {"b", 1, {0, 0}}};
    static const tenants_step steps[] = {
        {"nothing was granted", 0, "fairness", "a 0.75 0 0 0 0; b 0.25 0 0 0 0; agree"},
        {"", 0, "acquire a1 a 2 -", "granted"},
        {"one alone", 0, "fairness", "a 0.75 1 1 1.333333 1.333333; b 0.25 0 0 0 0; agree"},
        {"", 0, "acquire b1 b 1 -", "granted"},
        {"2 of 3 and 1 of 2", 0, "fairness",
         "a 0.75 0.666667 0.5 0.888889 0.666667; b 0.25 0.333333 0.5 1.333333 2; disagree"},
    };
    ration_ceiling_options options = tenants_two();

    (void)state;
    options.rule.tenants = weights;
    TENANTS_RUN(&options, steps);
}

/* The two shares may differ by one percentage point, not by more. */
static void units_disagree(void **state)
{
    static const tenants_step within[] = {
        {"", 0, "acquire a1 a 51 1", "granted"},
        {"", 0, "release a1", "released"},
        {"", 0, "acquire b1 b 49 1", "granted"},
        {"51 and 50 of 100: one point", 0, "fairness", "a 0.5 0.51 0.5 1.02 1; b 0.5 0.49 0.5 0.98 1; agree"},
    };
    static const tenants_step beyond[] = {
        {"", 0, "acquire a1 a 51.000001 1", "granted"},
        {"", 0, "release a1", "released"},
        {"", 0, "acquire b1 b 48.999999 1", "granted"},
        {"a hundred-millionth more", 0, "fairness", "a 0.5 0.51 0.5 1.02 1; b 0.5 0.49 0.5 0.98 1; disagree"},
    };
    const ration_ceiling_options options = tenants_two();

    (void)state;
    TENANTS_RUN(&options, within);
    TENANTS_RUN(&options, beyond);
}

/* Costs that add up to more than 2^60 keep their proportions. */
static void fairness_of_huge_sums(void **state)
{
    ration_ceiling_options options = tenants_two();
    ration_decision decision;
    tenants t;

    (void)state;
    options.rule.ceiling = RATION_UNITS_MAX;
    tenants_init(&t, &options);
    for (int i = 0; i < 900; i++) {
        CHECK_EQ(ration_ceiling_acquire(t.ceiling, ration_time_of(MS * 300 * i), a_text(i % 3 == 0 ? "a" : "b"),
                                        RATION_UNITS_MAX, MS, &decision),
                 RATION_OK);
        CHECK_EQ(decision.result, RATION_GRANTED);
        CHECK_EQ(ration_ceiling_release(t.ceiling, ration_time_of(MS * 300 * i), decision.lease), RATION_OK);
    }
    CHECK_STR(tenants_call(&t, 900000 * MS, "fairness"),
              "a 0.5 0.333333 0.333333 0.666667 0.666667; b 0.5 0.666667 0.666667 1.333333 1.333333; agree");
    CHECK_STR(tenants_call(&t, 900000 * MS, "toll a"), "deficit 0 reclaims 0 worst 0 granted 300 refused");
    tenants_fini(&t);
}

/* Sums that end at the largest number are as large as that, and no more is made of three of them. */
static void fairness_of_sums_without_end(void **state)
{
    static const ration_tenant_share three[] = {{"a", 1, {0, 0}}, {"b", 1, {0, 0}}, {"c", 1, {0, 0}}};
    static const char *const names[] = {"a", "b", "c"};
    ration_ceiling_options options = tenants_two();
    ration_decision decision;
    tenants t;

    (void)state;
    options.rule.tenants = three;
    options.rule.tenant_count = 3;
    options.rule.ceiling = RATION_UNITS_MAX;
    tenants_init(&t, &options);
    for (int i = 0; i < 3 * 1100; i++) {
        CHECK_EQ(ration_ceiling_acquire(t.ceiling, ration_time_of(MS * 300 * i), a_text(names[i % 3]), RATION_UNITS_MAX,
                                        MS, &decision),
                 RATION_OK);
        CHECK_EQ(ration_ceiling_release(t.ceiling, ration_time_of(MS * 300 * i), decision.lease), RATION_OK);
    }
    CHECK_STR(tenants_call(&t, 990000 * MS, "fairness"),
              "a 0.333333 0.333333 0.333333 1 1; b 0.333333 0.333333 0.333333 1 1; c 0.333333 0.333333 0.333333 1 1; "
              "agree");
    tenants_fini(&t);
}

/* A loan of so many lenders that their slices take more than one block, to one who could lend itself. */
static void a_loan_of_many_lenders(void **state)
{
    enum { LENDERS = 150 };
    static ration_tenant_share listed[LENDERS + 1];
    static char names[LENDERS][8];
    ration_ceiling_options options = tenants_two();
    tenants t;

    (void)state;
    for (int i = 0; i < LENDERS; i++) {
        (void)snprintf(names[i], sizeof names[i], "%d", i);
        listed[i] = (ration_tenant_share){names[i], 1, {0, 0}};
    }
    listed[LENDERS] = (ration_tenant_share){"large", LENDERS, {0, 0}};
    options.rule.tenants = listed;
    options.rule.tenant_count = LENDERS + 1;
    options.rule.ceiling = UNIT * 2 * LENDERS;
    tenants_init(&t, &options);
    CHECK_STR(tenants_call(&t, 0, "acquire l large 216 100"), "granted");
    CHECK_STR(tenants_call(&t, 0, "state 65"), "guarantee 1 held 0 own 0 lent 1 borrowed 0 want 0 idle");
    CHECK_STR(tenants_call(&t, 0, "state 66"), "guarantee 1 held 0 own 0 lent 0 borrowed 0 want 0 idle");
    CHECK_STR(tenants_call(&t, 0, "release l"), "released");
    CHECK_STR(tenants_call(&t, 300 * MS, "acquire l large 300 100"), "granted");
    CHECK_STR(tenants_call(&t, 300 * MS, "state large"),
              "guarantee 150 held 300 own 150 lent 0 borrowed 150 want 0 busy");
    CHECK_STR(tenants_call(&t, 300 * MS, "release l"), "released");
    CHECK_STR(tenants_call(&t, 300 * MS, "total"), "0 of 300 draining 0 overrun");
    tenants_fini(&t);
}

static void a_counter(void *ctx, const ration_counter_report *report)
{
    size_t *const calls = ctx;

    ++*calls;
    CHECK_EQ(report->kind, RATION_KIND_SHARE);
    CHECK(report->provider == NULL && report->limit == NULL && report->key.data == NULL);
    CHECK_EQ(report->max, 100 * UNIT);
    CHECK_EQ(report->tenant_count, 2);
    CHECK_TEXT(report->tenants[0].name, "a");
    CHECK_TEXT(report->tenants[1].name, "b");
    CHECK_EQ(report->tenants[0].refused[RATION_REASON_COST_EXCEEDS_LIMIT], 1);
    CHECK_EQ(report->tenants[1].refused[RATION_REASON_COST_EXCEEDS_LIMIT], 0);
}

static void a_share(void *ctx, const ration_share_report *report)
{
    size_t *const calls = ctx;

    ++*calls;
    CHECK_EQ(report->tenant_count, 2);
    CHECK_TEXT(report->tenants[1].name, "b");
}

static void reports_are_given_once(void **state)
{
    const ration_ceiling_options options = tenants_two();
    size_t calls = 0;
    const ration_reporter reporter = {.ctx = &calls, .counter = a_counter, .share = a_share};
    tenants t;

    (void)state;
    tenants_init(&t, &options);
    CHECK_STR(tenants_call(&t, 0, "acquire x a 100.000001 1"), "cost_exceeds_limit -");
    CHECK_EQ(ration_ceiling_stats(t.ceiling, ration_time_of(0), &reporter), RATION_OK);
    CHECK_EQ(calls, 1);
    CHECK_EQ(ration_ceiling_allocation(t.ceiling, ration_time_of(0), &reporter), RATION_OK);
    CHECK_EQ(ration_ceiling_fairness(t.ceiling, ration_time_of(0), &reporter), RATION_OK);
    CHECK_EQ(calls, 3);
    tenants_fini(&t);
}

/* Nothing that the caller gave is needed afterwards. */
static void everything_is_copied(void **state)
{
    char name[] = "acme";
    char stand_in[] = "acme";
    ration_tenant_share listed[] = {{name, 1, {0, 0}}};
    ration_ceiling_options options = tenants_two();
    tenants t;

    (void)state;
    options.rule.tenants = listed;
    options.rule.tenant_count = 1;
    options.rule.unknown_tenant = stand_in;
    tenants_init(&t, &options);
    memset(name, 'x', sizeof name - 1);
    memset(stand_in, 'x', sizeof stand_in - 1);
    memset(listed, 0, sizeof listed);
    CHECK_STR(tenants_call(&t, 0, "acquire a1 acme 60 1"), "granted");
    CHECK_STR(tenants_call(&t, 0, "acquire a2 whoever 50 -"), "hold_exceeds_reclaim_horizon -");
    CHECK_STR(tenants_call(&t, 0, "state acme"), "guarantee 100 held 60 own 60 lent 0 borrowed 0 want 50 busy");
    tenants_fini(&t);
}

/* ---- memory ---- */

/* A story in which everything is needed: chunks, slices, names of those in the way, reports, another rule. */
static const struct {
    int64_t at_us;
    const char *call;
    const char *want;
} story[] = {
    {0, "acquire b1 b 50 1000", "granted"},
    {0, "acquire b2 b 20 100", "granted"},
    {0, "acquire b3 b 30 100", "granted"},
    {10 * MS, "acquire a1 a 50 50", "guarantee_on_loan 90 b2 b3"},
    {10 * MS, "targets", "a:50 b:50"},
    {110 * MS, "total", "100 of 100 draining 0 overrun b2 b3"},
    {110 * MS, "release b2", "released"},
    {110 * MS, "acquire a1 a 20 50", "granted"},
    {110 * MS, "fairness", "a 0.5 0.166667 0.25 0.333333 0.5; b 0.5 0.833333 0.75 1.666667 1.5; disagree"},
    {110 * MS, "toll a", "deficit 5000 reclaims 1 worst 100 granted 1 refused guarantee_on_loan:1"},
};

/* Once more where memory failed: the answer is what it would have been. */
static void story_goes_on(tenants *t, int64_t at_us, const char *call, const char *want)
{
    const char *got = tenants_call(t, at_us, call);

    if (t->err == RATION_ERR_NOMEM)
        got = tenants_call(t, at_us, call);
    CHECK_STR(got, want);
}

static void any_allocation_may_fail(void **state)
{
    failalloc fail = {.failed = true};
    ration_ceiling_options options = tenants_two();

    (void)state;
    options.allocator = &fail.allocator;
    for (uint64_t i = 0; fail.failed; i++) {
        tenants t = {.err = 0};

        failalloc_init(&fail, i);
        if (ration_ceiling_new(&options, &t.ceiling, NULL) == RATION_OK) {
            for (size_t k = 0; k < sizeof story / sizeof story[0]; k++)
                story_goes_on(&t, story[k].at_us, story[k].call, story[k].want);

            int err = ration_ceiling_reweight(t.ceiling, ration_time_of(110 * MS), &options.rule, NULL);

            if (err != RATION_OK) {
                CHECK_EQ(err, RATION_ERR_NOMEM);
                err = ration_ceiling_reweight(t.ceiling, ration_time_of(110 * MS), &options.rule, NULL);
            }
            CHECK_EQ(err, RATION_OK);
            story_goes_on(&t, 120 * MS, "total", "100 of 100 draining 0 overrun b3");
            tenants_fini(&t);
        } else {
            CHECK(fail.failed);
        }
        CHECK_EQ(fail.live, 0);
    }
}

/* After warm-up nothing is allocated but for reports. */
static void no_memory_once_it_is_warm(void **state)
{
    ration_ceiling_options options = tenants_two();
    failalloc fail;
    tenants t;

    (void)state;
    failalloc_init(&fail, UINT64_MAX);
    options.allocator = &fail.allocator;
    tenants_init(&t, &options);
    for (int64_t i = 0; i < 3; i++) {
        const int64_t at = i * 1000 * MS;

        if (i == 1)
            fail.countdown = 0;
        CHECK_STR(tenants_call(&t, at, "acquire b1 b 50 1000"), "granted");
        CHECK_STR(tenants_call(&t, at, "acquire b2 b 50 100"), "granted");
        CHECK_STR(tenants_call(&t, at, "acquire a1 a 50 50"), "guarantee_on_loan 100 b2");
        CHECK_STR(tenants_call(&t, at + 1, "release b2"), "released");
        CHECK_STR(tenants_call(&t, at + 1, "release b1"), "released");
        CHECK_STR(tenants_call(&t, at + 1, "acquire a1 a 50 50"), "granted");
        CHECK_STR(tenants_call(&t, at + 2, "release a1"), "released");
    }
    CHECK(!fail.failed);
    tenants_fini(&t);
    CHECK_EQ(fail.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_are_wrong),
        cmocka_unit_test(arguments_that_are_none),
        cmocka_unit_test(invalid_calls_change_nothing),
        cmocka_unit_test(what_a_grant_carries),
        cmocka_unit_test(what_a_refusal_carries),
        cmocka_unit_test(ends_of_time),
        cmocka_unit_test(handles),
        cmocka_unit_test(many_leases),
        cmocka_unit_test(many_in_the_way),
        cmocka_unit_test(fairness),
        cmocka_unit_test(units_disagree),
        cmocka_unit_test(fairness_of_huge_sums),
        cmocka_unit_test(fairness_of_sums_without_end),
        cmocka_unit_test(a_loan_of_many_lenders),
        cmocka_unit_test(reports_are_given_once),
        cmocka_unit_test(everything_is_copied),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(no_memory_once_it_is_warm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
