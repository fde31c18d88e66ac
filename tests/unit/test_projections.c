/* SPDX-License-Identifier: MIT */
/* A quota's row of a report, its paces as JSON, and the maximum that a provider tells against those declared. */
#include "serve/projections.h"

#include "base/mem.h"

#include "support/check.h"

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

/* An hour of which half is gone: 30 of 100 are spent, 15 of them in the last 15 minutes; 10 are kept back. */
static int64_t minutes[30];

static ration_counter_report hour(void)
{
    for (size_t i = 0; i < 30; i++)
        minutes[i] = UNIT;
    return (ration_counter_report){.provider = "p",
                                   .limit = "hourly",
                                   .kind = RATION_KIND_QUOTA,
                                   .max = 100 * UNIT,
                                   .usable = 100 * UNIT,
                                   .reserve = 10 * UNIT,
                                   .used = 30 * UNIT,
                                   .remaining = 70 * UNIT,
                                   .has_window = true,
                                   .window_end = {HOUR},
                                   .timeline = {.width_us = MINUTE, .units = minutes, .count = 30}};
}

static void check_json(const ration_counter_report *counter, int64_t now_us, bool whole, const char *want)
{
    rn_output out;

    rn_output_init(&out, rn_mem_default(), 65536);
    rn_output_open(&out, NULL, '{');
    rn_quota_write(&out, counter, ration_time_of(now_us), whole);
    rn_output_close(&out, '}');
    CHECK_EQ(out.err, RATION_OK);
    CHECK_TEXT(((ration_text){out.data, out.size}), want);
    rn_output_fini(&out);
}

static void test_json(void **state)
{
    ration_counter_report counter = hour();
    (void)state;

    CHECK_ROW("one a minute lasts to the end");
    check_json(&counter, HOUR / 2, false,
               "{\"recent\":{\"spent\":15,\"spanMs\":900000,\"perHour\":60,\"atEnd\":60},"
               "\"average\":{\"spent\":30,\"spanMs\":1800000,\"perHour\":60,\"atEnd\":60}}");

    CHECK_ROW("two a minute, and 60 - 10 are left: gone after 25 minutes");
    counter.remaining = 60 * UNIT;
    for (size_t i = 15; i < 30; i++)
        minutes[i] = 2 * UNIT;
    check_json(&counter, HOUR / 2, false,
               "{\"recent\":{\"spent\":30,\"spanMs\":900000,\"perHour\":120,\"atEnd\":90,\"exhaustedAt\":3300000},"
               "\"average\":{\"spent\":30,\"spanMs\":1800000,\"perHour\":60,\"atEnd\":60}}");

    CHECK_ROW("what is gone is gone now");
    counter.remaining = 0;
    counter.timeline.count = 0;
    check_json(&counter, HOUR / 2, true,
               "{\"average\":{\"spent\":30,\"spanMs\":1800000,\"perHour\":60,\"atEnd\":60,\"exhaustedAt\":1800000}}");

    CHECK_ROW("a window that begins now has no pace");
    counter = hour();
    counter.used = 0;
    counter.timeline.count = 0;
    check_json(&counter, 0, false, "{\"average\":{\"spent\":0,\"spanMs\":0}}");

    CHECK_ROW("the timeline");
    counter = hour();
    counter.timeline.count = 2;
    minutes[1] = UNIT / 2;
    counter.used = UNIT + UNIT / 2;
    check_json(&counter, 2 * MINUTE, true,
               "{\"recent\":{\"spent\":1.5,\"spanMs\":120000,\"perHour\":45,\"atEnd\":45},"
               "\"average\":{\"spent\":1.5,\"spanMs\":120000,\"perHour\":45,\"atEnd\":45},"
               "\"timeline\":{\"start\":0,\"widthMs\":60000,\"units\":[1,0.5]}}");

    CHECK_ROW("another kind of limit");
    counter.kind = RATION_KIND_RATE;
    check_json(&counter, 2 * MINUTE, true, "{}");
}

static void test_rates(void **state)
{
    static const struct {
        const char *why;
        int64_t units, span_us, per_us, want;
    } rows[] = {
        {"none", 0, SECOND, HOUR, 0},
        {"rounds down", 1, 3, 2, 0},
        {"2 in 3, in 3", 2, 3, 3, 2},
        {"beyond 64 bits", INT64_MAX, 1, 2, INT64_MAX},
        {"the product beyond 64 bits", INT64_MAX / 2, 4, 2, INT64_MAX / 4},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_forecast pace = {.units = rows[i].units, .span_us = rows[i].span_us};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_quota_rate(&pace, rows[i].per_us), rows[i].want);
    }
}

static void test_disagreement(void **state)
{
    static const ration_limit_rule limits[] = {
        {.name = "hourly", .kind = RATION_KIND_QUOTA, .max = 100 * UNIT},
        {.name = "auto", .kind = RATION_KIND_QUOTA, .max = UNIT, .max_auto = true},
        {.name = "rate", .kind = RATION_KIND_RATE, .max = UNIT}};
    static const ration_limit_rule own[] = {{.name = "hourly", .kind = RATION_KIND_QUOTA, .max = 200 * UNIT}};
    static const ration_provider_rule providers[] = {
        {.name = "p", .limits = limits, .limit_count = 3},
        {.name = "q", .limits = own, .limit_count = 1},
    };
    static const ration_account_rule accounts[] = {
        {.name = "a", .provider = "q"},
        {.name = "b", .provider = "p", .limits = own, .limit_count = 1},
    };
    static const struct {
        const char *why, *provider, *limit;
        int64_t max;
        size_t accounts;
        bool disagrees;
        int64_t by;
    } rows[] = {
        {"as declared", "p", "hourly", 100, 1, false, 0},
        {"less", "p", "hourly", 99, 1, true, -1},
        {"more", "p", "hourly", 130, 1, true, 30},
        {"another provider's limit of that name", "q", "hourly", 100, 1, true, -100},
        {"an account's own rule", "p", "hourly", 200, 2, false, 0},
        {"the nearest of both", "p", "hourly", 190, 2, true, -10},
        {"nothing was declared", "p", "auto", 7, 1, false, 0},
        {"no quota", "p", "rate", 7, 1, false, 0},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_rules rules = {
            .providers = providers, .provider_count = 2, .accounts = accounts, .account_count = rows[i].accounts};
        const ration_counter_report counter = {
            .provider = rows[i].provider, .limit = rows[i].limit, .max = rows[i].max * UNIT};
        int64_t by = 0;

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_quota_disagrees(&rules, &counter, &by), rows[i].disagrees);
        CHECK_EQ(by, rows[i].by * UNIT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_disagreement),
    };

    return cmocka_run_group_tests_name("projections", tests, NULL, NULL);
}
