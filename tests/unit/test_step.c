/* SPDX-License-Identifier: MIT */
/* A clock that stepped: what buckets have before and after, and calls that are none. */
#include <ration/engine.h>

#include "support/check.h"

#define MS(n) ((int64_t)(n)*1000)
#define SECOND_US MS(1000)
#define UNIT RATION_UNIT

static const char *const by_account[] = {"account"};
static const ration_limit_rule slow = {.name = "slow",
                                       .kind = RATION_KIND_RATE,
                                       .counts = RATION_COUNTS_COST,
                                       .scope = by_account,
                                       .scope_count = 1,
                                       .rate = {UNIT, SECOND_US},
                                       .burst = 4 * UNIT,
                                       .margin = 0};
static const ration_limit_rule own = {.name = "slow",
                                      .kind = RATION_KIND_RATE,
                                      .counts = RATION_COUNTS_COST,
                                      .scope = by_account,
                                      .scope_count = 1,
                                      .rate = {2 * UNIT, SECOND_US},
                                      .burst = 4 * UNIT,
                                      .margin = 0};
static const ration_provider_rule provider = {.name = "p", .limits = &slow, .limit_count = 1};
static const ration_account_rule accounts[] = {{.name = "a", .provider = "p"},
                                               {.name = "b", .provider = "p", .limits = &own, .limit_count = 1}};
static const ration_rules rules = {
    .providers = &provider, .provider_count = 1, .accounts = accounts, .account_count = 2};

static int64_t levels[2];

static void see(void *ctx, const ration_counter_report *report)
{
    (void)ctx;
    levels[report->key.data[0] == 'a' ? 0 : 1] = report->available;
}

static void look(ration_engine *engine, int64_t now_us)
{
    const ration_reporter reporter = {.counter = see};

    CHECK_EQ(ration_engine_report(engine, ration_time_of(now_us), RATION_REPORT_STATS, &reporter), RATION_OK);
}

/* Everything in both buckets is spent at 0, and `cost` - 4 units more of it settled. */
static ration_engine *spent(int64_t cost)
{
    const ration_engine_options options = {.rules = &rules};
    ration_engine *engine = NULL;

    CHECK_EQ(ration_engine_new(&options, ration_time_of(0), &engine, NULL), RATION_OK);
    for (size_t i = 0; i < 2; i++) {
        ration_request request = RATION_REQUEST_INIT;
        ration_completion completion = RATION_COMPLETION_INIT;
        ration_decision decision;

        request.account = ration_text_of(accounts[i].name);
        request.cost = 4 * UNIT;
        completion.cost = cost * UNIT;
        CHECK_EQ(ration_engine_submit(engine, ration_time_of(0), &request, &decision), RATION_OK);
        CHECK_EQ(decision.result, RATION_GRANTED);
        CHECK_EQ(ration_engine_release(engine, ration_time_of(0), decision.lease, &completion), RATION_OK);
    }
    return engine;
}

static void test_levels(void **state)
{
    static const struct {
        const char *why;
        int64_t cost, idle_us, now_us, by_us, look_us, want[2]; /* `idle_us`: last heard of before the step */
    } rows[] = {
        {"nothing is earned in the gap", 4, 0, MS(3600500), MS(3600000), MS(3600500), {UNIT / 2, UNIT}},
        {"and all is earned after it", 4, 0, MS(3600500), MS(3600000), MS(3601000), {UNIT, 2 * UNIT}},
        {"a gap of a microsecond", 4, 0, MS(1000), 1, MS(1000), {999999, 1999998}},
        {"a gap that begins before what is known", 4, MS(1000), MS(3000), MS(5000), MS(3000), {UNIT, 2 * UNIT}},
        {"a gap that is all there is", 4, 0, MS(5000), MS(5000), MS(5000), {0, 0}},
        {"an instant before the last one", 4, MS(2000), MS(1000), MS(500), MS(2000), {2 * UNIT, 4 * UNIT}},
        {"debts stay", 6, 0, MS(60000), MS(60000), MS(60000), {-2 * UNIT, -2 * UNIT}},
        {"full stays full", 4, MS(10000), MS(90000), MS(60000), MS(90000), {4 * UNIT, 4 * UNIT}},
        {"as much as there can be", 4, 0, RATION_TIME_MAX_US, INT64_MAX, RATION_TIME_MAX_US, {0, 0}},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_engine *engine = spent(rows[i].cost);

        CHECK_ROW(rows[i].why);
        look(engine, rows[i].idle_us);
        CHECK_EQ(ration_engine_step(engine, ration_time_of(rows[i].now_us), rows[i].by_us), RATION_OK);
        look(engine, rows[i].look_us);
        CHECK_EQ(levels[0], rows[i].want[0]);
        CHECK_EQ(levels[1], rows[i].want[1]);
        ration_engine_free(engine);
    }
}

static void test_calls_that_are_none(void **state)
{
    ration_engine *engine = spent(4);
    (void)state;

    CHECK_EQ(ration_engine_step(NULL, ration_time_of(0), 1), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_step(engine, ration_time_of(MS(1000)), 0), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_step(engine, ration_time_of(MS(1000)), -1), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_step(engine, ration_time_of(RATION_NEVER_US), 1), RATION_ERR_INVALID);
    look(engine, MS(500));
    CHECK_EQ(levels[0], UNIT / 2);
    ration_engine_free(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_calls_that_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
