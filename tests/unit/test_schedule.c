/* SPDX-License-Identifier: MIT */
/* Schedules drawn from a seed, percentiles, and what a load came to. */
#include "simulate/schedule.h"

#include "base/mem.h"
#include "simulate/summary.h"
#include "support/check.h"

#define S INT64_C(1000000)

static const rn_stream_spec streams[] = {
    {"web", RATION_PRIORITY_HIGH, 10, 1, "/a"},
    {"batch", RATION_PRIORITY_LOW, 25, 10, "/b"},
    {"web", RATION_PRIORITY_LOW, 5, 5, "/c"},
};

static void test_same_seed_same_schedule(void **state)
{
    rn_schedule a, b, c;
    size_t moved = 0;

    (void)state;
    CHECK_EQ(rn_schedule_init(&a, rn_mem_default(), streams, 3, 8 * S, 1), 0);
    CHECK_EQ(rn_schedule_init(&b, rn_mem_default(), streams, 3, 8 * S, 1), 0);
    CHECK_EQ(rn_schedule_init(&c, rn_mem_default(), streams, 3, 8 * S, 2), 0);
    CHECK_EQ(a.count, 40);
    for (size_t i = 0; i < a.count; i++) {
        CHECK_EQ(a.calls[i].at_us, b.calls[i].at_us);
        CHECK(a.calls[i].stream == b.calls[i].stream);
        CHECK_EQ(a.calls[i].number, b.calls[i].number);
        moved += a.calls[i].at_us != c.calls[i].at_us;
    }
    CHECK(moved > 0);
    rn_schedule_fini(&a);
    rn_schedule_fini(&b);
    rn_schedule_fini(&c);
}

static void test_bursts_in_their_parts_of_the_span(void **state)
{
    rn_schedule schedule;

    (void)state;
    CHECK_EQ(rn_schedule_init(&schedule, rn_mem_default(), streams, 3, 9 * S, 77), 0);
    for (size_t i = 0; i < schedule.count; i++) {
        const rn_scheduled_call *call = &schedule.calls[i];
        const int64_t bursts = (call->stream->calls + call->stream->burst - 1) / call->stream->burst;
        const int64_t part = call->number / call->stream->burst;

        CHECK(call->at_us >= 9 * S / bursts * part);
        CHECK(call->at_us < 9 * S / bursts * (part + 1));
        CHECK(i == 0 || call[-1].at_us <= call->at_us);
    }
    rn_schedule_fini(&schedule);
    rn_schedule_fini(&schedule);
}

static void test_bad_schedules(void **state)
{
    static const rn_stream_spec none = {"web", RATION_PRIORITY_HIGH, 0, 1, "/a"};
    static const rn_stream_spec still = {"web", RATION_PRIORITY_HIGH, 1, 0, "/a"};
    static const struct {
        const char *why;
        const rn_stream_spec *stream;
        int64_t span_us;
    } rows[] = {
        {"no calls", &none, 8 * S},
        {"bursts of nothing", &still, 8 * S},
        {"a span of nothing", streams, 0},
        {"a negative span", streams, -S},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rn_schedule schedule = {.count = 99};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_schedule_init(&schedule, rn_mem_default(), rows[i].stream, 1, rows[i].span_us, 1),
                 RATION_ERR_INVALID);
        CHECK_EQ(schedule.count, 99);
    }
}

static void test_percentiles_by_nearest_rank(void **state)
{
    static const struct {
        const char *why;
        size_t count;
        int64_t values[10];
        unsigned percent;
        int64_t want;
    } rows[] = {
        {"none", 0, {0}, 50, 0},
        {"one", 1, {7}, 99, 7},
        {"one, from the bottom", 1, {7}, 0, 7},
        {"half of two is the first", 2, {9, 3}, 50, 3},
        {"half of three is the second", 3, {9, 3, 5}, 50, 5},
        {"99 of ten is the last", 10, {10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 99, 10},
        {"90 of ten is the last but one", 10, {10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 90, 9},
        {"all of ten", 10, {1, 1, 1, 1, 1, 1, 1, 1, 1, 2}, 100, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t values[10];

        CHECK_ROW(rows[i].why);
        memcpy(values, rows[i].values, sizeof values);
        CHECK_EQ(rn_percentile(values, rows[i].count, rows[i].percent), rows[i].want);
    }
}

static void test_summary(void **state)
{
    static const rn_stream_spec two[] = {
        {"web", RATION_PRIORITY_HIGH, 3, 1, "/a"},
        {"batch", RATION_PRIORITY_LOW, 2, 2, "/b"},
    };
    rn_scheduled_call calls[] = {{0, &two[0], 0}, {1, &two[1], 0}, {1, &two[1], 1}, {2, &two[0], 1}, {3, &two[0], 2}};
    const rn_schedule schedule = {.calls = calls, .count = 5, .streams = two, .stream_count = 2, .span_us = 100};
    const rn_load_result results[] = {
        {.status = 200, .done_us = 50, .waited_us = 0},   {.status = 200, .done_us = 100, .waited_us = 90},
        {.status = 429, .done_us = 10, .waited_us = 0},   {.status = 204, .done_us = 101, .waited_us = 40},
        {.status = 0, .done_us = 300, .waited_us = 1000},
    };
    rn_summary summary;

    (void)state;
    CHECK_EQ(rn_summary_make(&schedule, results, &summary), 0);
    CHECK_EQ(summary.took_us, 300);
    CHECK_EQ(summary.all.sent, 5);
    CHECK_EQ(summary.all.answered, 3);
    CHECK_EQ(summary.all.rate_limited, 1);
    CHECK_EQ(summary.all.failed, 1);
    CHECK_EQ(summary.all.early, 2);
    CHECK_EQ(summary.all.wait_p50_us, 40);
    CHECK_EQ(summary.all.wait_p99_us, 90);
    CHECK_EQ(summary.tenant_count, 2);
    CHECK_STR(summary.tenants[0].tenant, "web");
    CHECK_EQ(summary.tenants[0].sent, 3);
    CHECK_EQ(summary.tenants[0].answered, 2);
    CHECK_EQ(summary.tenants[0].wait_p99_us, 40);
    CHECK_STR(summary.tenants[1].tenant, "batch");
    CHECK_EQ(summary.tenants[1].rate_limited, 1);
    CHECK_EQ(summary.tenants[1].early, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_schedule),
        cmocka_unit_test(test_bursts_in_their_parts_of_the_span),
        cmocka_unit_test(test_bad_schedules),
        cmocka_unit_test(test_percentiles_by_nearest_rank),
        cmocka_unit_test(test_summary),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
