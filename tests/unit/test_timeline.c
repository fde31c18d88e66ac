/* SPDX-License-Identifier: MIT */
/* Consumption by time: the array of what was spent, and what a quota tells of its windows. */
#include "support/counter.h"
#include "support/failalloc.h"
#include "support/quota_steps.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/quota_parts.h"
#include "core/timeline.h"

/* ---- the array ---- */

static const char *show(const rn_timeline *timeline)
{
    static char text[512];
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < timeline->count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%" PRId64 ":%" PRId64 " ", timeline->ticks[i].number,
                                 timeline->ticks[i].units);
    }
    return text;
}

static void test_adding(void **state)
{
    static const struct {
        const char *why;
        int64_t number, amount;
        const char *want;
    } rows[] = {
        {"nothing is not kept", 5, 0, ""},
        {"nor is what comes back of nothing", 5, -3, ""},
        {"the first", 5, 3, "5:3 "},
        {"more of it", 5, 4, "5:7 "},
        {"after it", 9, 1, "5:7 9:1 "},
        {"between", 7, 2, "5:7 7:2 9:1 "},
        {"before", -2, 2, "-2:2 5:7 7:2 9:1 "},
        {"it grows", 8, 1, "-2:2 5:7 7:2 8:1 9:1 "},
        {"what comes back", 5, -3, "-2:2 5:4 7:2 8:1 9:1 "},
        {"no more than there is", 7, -3, "-2:2 5:4 7:0 8:1 9:1 "},
        {"the ends do not wrap", 9, INT64_MAX, "-2:2 5:4 7:0 8:1 9:9223372036854775807 "},
    };
    rn_timeline timeline = {.ticks = NULL};
    int64_t bytes = 0;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        rn_timeline_add(&timeline, rn_mem_default(), &bytes, rows[i].number, rows[i].amount);
        CHECK_STR(show(&timeline), rows[i].want);
    }
    CHECK_ROW(NULL);
    CHECK_EQ(bytes, 8 * (int64_t)sizeof(rn_tick));
    rn_timeline_forget(&timeline, 7);
    CHECK_STR(show(&timeline), "7:0 8:1 9:9223372036854775807 ");
    rn_timeline_forget(&timeline, 100);
    CHECK_STR(show(&timeline), "");
    CHECK(!timeline.lost);
    rn_timeline_fini(&timeline, rn_mem_default(), &bytes);
    CHECK_EQ(bytes, 0);
}

/* Once it has seen two windows it allocates no more. */
static void test_warm(void **state)
{
    rn_timeline timeline = {.ticks = NULL};
    int64_t bytes = 0;
    failalloc memory;

    (void)state;
    failalloc_init(&memory, UINT64_MAX);
    for (int64_t number = 0; number < 2880; number++)
        rn_timeline_add(&timeline, &memory.allocator, &bytes, number, 1);
    memory.countdown = 0;
    for (int64_t number = 2880; number < 9 * INT64_C(1440); number++) {
        if (number % 1440 == 0)
            rn_timeline_forget(&timeline, number - 1440);
        rn_timeline_add(&timeline, &memory.allocator, &bytes, number, 1);
    }
    CHECK(!timeline.lost);
    CHECK_EQ(timeline.count, 2880);
    rn_timeline_fini(&timeline, &memory.allocator, &bytes);
    CHECK_EQ(memory.live, 0);
}

/* Without memory, or beyond the bound of the limit, the older half goes. */
static void test_short_of_memory(void **state)
{
    rn_timeline timeline = {.ticks = NULL};
    int64_t bytes = RN_TIMELINE_BYTES_MAX;

    (void)state;
    rn_timeline_add(&timeline, rn_mem_default(), &bytes, 1, 1);
    CHECK_STR(show(&timeline), "");
    CHECK(timeline.lost);
    timeline.lost = false;
    bytes = RN_TIMELINE_BYTES_MAX - 4 * (int64_t)sizeof(rn_tick);
    for (int64_t number = 1; number <= 4; number++)
        rn_timeline_add(&timeline, rn_mem_default(), &bytes, number, number);
    CHECK_EQ(bytes, RN_TIMELINE_BYTES_MAX);
    CHECK(!timeline.lost);
    rn_timeline_add(&timeline, rn_mem_default(), &bytes, 5, 5);
    CHECK_STR(show(&timeline), "3:3 4:4 5:5 ");
    CHECK(timeline.lost);
    rn_timeline_add(&timeline, rn_mem_default(), &bytes, 6, 6);
    rn_timeline_add(&timeline, rn_mem_default(), &bytes, 2, 2); /* of what is forgotten by then */
    CHECK_STR(show(&timeline), "5:5 6:6 ");
    rn_timeline_fini(&timeline, rn_mem_default(), &bytes);
}

/* ---- quotas ---- */

/* The timeline as "start/width: units..." in seconds and whole units. */
static const char *tell(lone *l, int64_t now_us)
{
    static char text[4096];
    static int64_t units[4000];
    const ration_time now = {now_us};
    ration_timeline timeline;
    size_t used;

    CHECK(rn_quota_timeline_count(&l->counter, now) <= 4000);
    rn_quota_timeline(&l->counter, now, units, &timeline);
    used = (size_t)snprintf(text, sizeof text, "%" PRId64 "/%" PRId64 ":", timeline.start.us / SECOND_US,
                            timeline.width_us / SECOND_US);
    for (size_t i = 0; i < timeline.count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %g", (double)timeline.units[i] / (double)UNIT);
    return text;
}

static void take(lone *l, int64_t at_us, char id, int64_t charge)
{
    const rn_ask ask = {.charge = charge * UNIT};

    lone_force(l, at_us, &ask, id, RATION_UNSET);
}

static void test_minutes(void **state)
{
    const ration_limit_rule rule = quota_rule(1000 * UNIT, RATION_COUNTS_COST, RATION_PERIOD_MINUTE, 0);
    lone l;

    (void)state;
    lone_init(&l, &rule, 30 * SECOND_US);
    CHECK_STR(tell(&l, 30 * SECOND_US), "0/60: 0");
    take(&l, 31 * SECOND_US, 'a', 2);
    take(&l, 59 * SECOND_US, 'b', 3);
    CHECK_STR(tell(&l, 59 * SECOND_US), "0/60: 5");
    take(&l, MINUTE_US, 'c', 1);
    CHECK_STR(tell(&l, MINUTE_US), "0/60: 5 1");
    lone_settle(&l, MINUTE_US, 'c', 4 * UNIT);
    CHECK_STR(tell(&l, MINUTE_US), "0/60: 5 4");
    lone_settle(&l, MINUTE_US, 'a', 9 * UNIT); /* its window is over, so nothing changes */
    CHECK_STR(tell(&l, MINUTE_US), "0/60: 5 4");
    CHECK_STR(tell(&l, 2 * MINUTE_US), "60/60: 4 0");
    CHECK_EQ(l.counter.u.quota->timeline.count, 1); /* what is older is forgotten */
    CHECK_STR(tell(&l, 9 * MINUTE_US), "480/60: 0 0");
    lone_fini(&l);
}

/* Settling changes the bucket of the grant. */
static void test_settling(void **state)
{
    const ration_limit_rule rule = quota_rule(1000 * UNIT, RATION_COUNTS_COST, RATION_PERIOD_HOUR, 0);
    lone l;

    (void)state;
    lone_init(&l, &rule, 0);
    take(&l, 0, 'a', 2);
    take(&l, 2 * MINUTE_US, 'b', 3);
    lone_settle(&l, 4 * MINUTE_US, 'a', 5 * UNIT);
    lone_settle(&l, 4 * MINUTE_US, 'b', UNIT);
    CHECK_STR(tell(&l, 4 * MINUTE_US), "0/60: 5 0 1 0 0");
    lone_fini(&l);
}

static void test_width(void **state)
{
    static const struct {
        const char *why;
        ration_window window;
        int64_t width_us;
        size_t most;
    } rows[] = {
        {"a minute", {.period = RATION_PERIOD_MINUTE}, MINUTE_US, 2},
        {"an hour", {.period = RATION_PERIOD_HOUR}, MINUTE_US, 120},
        {"a day", {.period = RATION_PERIOD_DAY}, MINUTE_US, 2880},
        {"a week, of which six days", {.period = RATION_PERIOD_WEEK}, HOUR_US, 7 * 24 + 6 * 24},
        {"a month", {.period = RATION_PERIOD_MONTH}, HOUR_US, (size_t)(31 + 28) * 24},
        {"rolling, a day", {.rolling_us = DAY_US}, MINUTE_US, 2880},
        {"a little more", {.rolling_us = DAY_US + 1}, HOUR_US, 49},
        {"a second", {.rolling_us = SECOND_US}, MINUTE_US, 1},
        {"as long as can be", {.rolling_us = RATION_TIME_MAX_US}, HOUR_US, 20000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_limit_rule rule = quota_rule(1000 * UNIT, RATION_COUNTS_COST, RATION_PERIOD_NONE, 0);
        const int64_t end_us = 59 * DAY_US - 1; /* of February 1970 */
        lone l;

        CHECK_ROW(rows[i].why);
        rule.window = rows[i].window;
        CHECK_EQ(lone_prepare(&l, &rule), RATION_OK);
        l.counter.started_at.us = rows[i].window.rolling_us == RATION_TIME_MAX_US ? -RATION_TIME_MAX_US : -900 * DAY_US;
        CHECK_EQ(l.limit.kind->init(&l.counter, ration_time_of(0)), RATION_OK);
        CHECK_EQ(l.limit.spec.quota.tick_us, rows[i].width_us);

        const size_t count = rn_quota_timeline_count(&l.counter, ration_time_of(end_us));

        /* A rolling window begins within a bucket. */
        CHECK(count == rows[i].most || (rows[i].window.rolling_us != 0 && count == rows[i].most + 1));
        lone_fini(&l);
    }
    CHECK_ROW(NULL);
}

/* A rolling window of two minutes: its buckets of 2 s, and what has left them, together. */
static void test_rolling(void **state)
{
    ration_limit_rule rule = quota_rule(1000 * UNIT, RATION_COUNTS_COST, RATION_PERIOD_NONE, 0);
    lone l;

    (void)state;
    rule.window = (ration_window){.rolling_us = 2 * MINUTE_US};
    lone_init(&l, &rule, 0);
    take(&l, SECOND_US, 'a', 2);
    take(&l, MINUTE_US - 1, 'b', 3);
    take(&l, MINUTE_US + SECOND_US, 'c', 4);
    lone_settle(&l, MINUTE_US + SECOND_US, 'a', UNIT);
    CHECK_STR(tell(&l, 2 * MINUTE_US), "0/60: 4 4 0");
    CHECK_STR(tell(&l, 2 * MINUTE_US + 5 * SECOND_US), "0/60: 4 4 0"); /* a has left the count */
    CHECK_EQ(lone_report(&l, 2 * MINUTE_US + 5 * SECOND_US).used, 7 * UNIT);
    CHECK_STR(tell(&l, 4 * MINUTE_US), "0/60: 4 4 0 0 0");
    CHECK_EQ(lone_report(&l, 4 * MINUTE_US).used, 0);
    CHECK_STR(tell(&l, 5 * MINUTE_US), "60/60: 4 0 0 0 0");
    CHECK_STR(tell(&l, 6 * MINUTE_US), "120/60: 0 0 0 0 0");
    take(&l, 6 * MINUTE_US, 'd', 5);
    CHECK_STR(tell(&l, 9 * MINUTE_US), "300/60: 0 5 0 0 0");
    CHECK_EQ(l.counter.u.quota->timeline.count, 1); /* what is older is forgotten */
    lone_fini(&l);
}

/* A header moves the window; what was spent when does not move. */
static void test_moved(void **state)
{
    ration_limit_rule rule = quota_rule(1000 * UNIT, RATION_COUNTS_COST, RATION_PERIOD_HOUR, 0);
    const ration_header header = {ration_text_of("x-reset"), ration_text_of("300")};
    const ration_response response = {.status = 200, .headers = &header, .header_count = 1};
    lone l;

    (void)state;
    rule.sync = (ration_sync){.reset_header = "x-reset", .reset_format = RATION_RESET_EPOCH};
    lone_init(&l, &rule, 0);
    take(&l, 2 * MINUTE_US, 'a', 2);
    take(&l, 6 * MINUTE_US, 'b', 3);
    lone_observe(&l, 7 * MINUTE_US, 'b', &response, false); /* a window began at five */
    CHECK_EQ(lone_report(&l, 7 * MINUTE_US).used, 3 * UNIT);
    CHECK_STR(tell(&l, 7 * MINUTE_US), "0/60: 0 0 2 0 0 0 3 0");
    /* The window before the one that begins at 01:05 began at 00:05. */
    CHECK_EQ(strncmp(tell(&l, 65 * MINUTE_US), "300/60: 0 3 0 ", 14), 0);
    CHECK_EQ(rn_quota_timeline_count(&l.counter, ration_time_of(65 * MINUTE_US)), 61);
    lone_fini(&l);
}

/* Nothing is known of what was before the engine, but what a record tells. */
static void test_known(void **state)
{
    static const ration_part timeline[] = {{{-HOUR_US}, 7 * UNIT}, {{HOUR_US}, 2 * UNIT}};
    const ration_limit_rule rule = quota_rule(1000 * UNIT, RATION_COUNTS_COST, RATION_PERIOD_DAY, 0);
    ration_record record = {.at = {2 * HOUR_US}};
    lone l;

    (void)state;
    CHECK_EQ(lone_prepare(&l, &rule), RATION_OK);
    l.counter.started_at.us = 3 * HOUR_US;
    l.counter.lost_at.us = RN_NEVER_LOST;
    CHECK_EQ(l.limit.kind->init(&l.counter, ration_time_of(3 * HOUR_US)), RATION_OK);
    CHECK_STR(tell(&l, 3 * HOUR_US + 2 * MINUTE_US), "10800/60: 0 0 0");
    record.u.quota = (ration_quota_record){.window_end = {DAY_US},
                                           .used = 2 * UNIT,
                                           .max = RATION_UNSET,
                                           .mark = RATION_UNSET,
                                           .timeline = timeline,
                                           .timeline_count = 2};
    l.limit.kind->load(&l.counter, ration_time_of(3 * HOUR_US), &record);
    CHECK_EQ(rn_quota_timeline_count(&l.counter, ration_time_of(3 * HOUR_US)), 4 * 60 + 1);
    CHECK_EQ(strncmp(tell(&l, 3 * HOUR_US), "-3600/60: 7 0 0 ", 16), 0);
    /* With less memory less is known. */
    l.counter.u.quota->timeline.lost = true;
    rn_timeline_forget(&l.counter.u.quota->timeline, 0);
    CHECK_EQ(strncmp(tell(&l, 3 * HOUR_US), "3600/60: 2 0 0 ", 15), 0);
    lone_fini(&l);
}

/* Out into a record and back: the same is told. */
static void test_kept(void **state)
{
    static const ration_window windows[] = {{.period = RATION_PERIOD_HOUR}, {.rolling_us = HOUR_US}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        ration_limit_rule rule = quota_rule(1000 * UNIT, RATION_COUNTS_COST, RATION_PERIOD_NONE, 0);
        static ration_part parts[400];
        static char before[4096];
        ration_record record = {.at = {70 * MINUTE_US}};
        lone l;
        lone again;

        rule.window = windows[i];
        lone_init(&l, &rule, 0);
        take(&l, MINUTE_US, 'a', 2);
        take(&l, 61 * MINUTE_US, 'b', 3);
        take(&l, 70 * MINUTE_US, 'c', 4);
        snprintf(before, sizeof before, "%s", tell(&l, 70 * MINUTE_US) + 8);
        CHECK(l.limit.kind->save(&l.counter, record.at, parts, &record));
        CHECK_EQ(record.u.quota.timeline_count, 3);
        CHECK_EQ(record.u.quota.timeline[0].last.us, 2 * MINUTE_US - 1);
        CHECK_EQ(record.u.quota.timeline[2].last.us, 70 * MINUTE_US);
        CHECK(record.u.quota.part_count + record.u.quota.timeline_count <= rn_quota_parts_max(&l.counter));

        lone_init(&again, &rule, 70 * MINUTE_US);
        again.counter.lost_at.us = RN_NEVER_LOST;
        again.limit.kind->load(&again.counter, ration_time_of(70 * MINUTE_US), &record);
        CHECK_STR(tell(&again, 70 * MINUTE_US) + 8, before);
        CHECK_EQ(lone_report(&again, 70 * MINUTE_US).used, lone_report(&l, 70 * MINUTE_US).used);
        lone_fini(&l);
        lone_fini(&again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adding),  cmocka_unit_test(test_warm),     cmocka_unit_test(test_short_of_memory),
        cmocka_unit_test(test_minutes), cmocka_unit_test(test_settling), cmocka_unit_test(test_width),
        cmocka_unit_test(test_rolling), cmocka_unit_test(test_moved),    cmocka_unit_test(test_known),
        cmocka_unit_test(test_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
