/* SPDX-License-Identifier: MIT */
/* Reports of what was kept and nobody has asked for yet: as it will be for the first who asks, and left as it is. */
#include "support/check.h"
#include "support/failalloc.h"
#include "support/world.h"

#include <stdio.h>

#include <ration/operate.h>
#include <ration/state.h>

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)

static world w;

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};

static const ration_limit_rule limits[] = {
    {.name = "daily",
     .kind = RATION_KIND_QUOTA,
     .scope = by_account,
     .scope_count = 1,
     .max = 50 * UNIT,
     .window = {.period = RATION_PERIOD_DAY},
     .arrival_us = RATION_UNSET},
    {.name = "l", .kind = RATION_KIND_ADAPTIVE, .scope = by_x, .scope_count = 1, .adaptive = {.initial_limit = 4}},
    {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = 5 * UNIT},
};

static const ration_limit_rule own_daily = {.name = "daily",
                                            .kind = RATION_KIND_QUOTA,
                                            .scope = by_account,
                                            .scope_count = 1,
                                            .max = 20 * UNIT,
                                            .window = {.period = RATION_PERIOD_DAY},
                                            .arrival_us = RATION_UNSET};

static void begin(const ration_allocator *memory, int *err)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;
    const ration_engine_options options = {.rules = &rules, .allocator = memory, .keeps = true};

    world_rules(&rules, &provider, accounts, limits, 3);
    provider.breaker = (ration_breaker_rule){.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 1};
    /* The second account has a `daily` of its own, so a record of either waits under both. */
    accounts[1].limits = &own_daily;
    accounts[1].limit_count = 1;
    memset(&w, 0, sizeof w);
    *err = ration_engine_new(&options, ration_time_of(HOUR), &w.engine, NULL);
}

static ration_record record_of(ration_record_type type, const char *limit, const char *key)
{
    return (ration_record){.type = type,
                           .provider = ration_text_of("p"),
                           .limit = ration_text_of(limit),
                           .key = ration_text_of(key),
                           .at = {HOUR}};
}

static int load(void)
{
    ration_record records[7];
    const ration_state state = {.records = records, .count = sizeof records / sizeof records[0]};

    records[0] = record_of(RATION_RECORD_QUOTA, "daily", "acc");
    records[0].u.quota = (ration_quota_record){.window_end = {24 * HOUR}, .used = 8 * UNIT, .max = RATION_UNSET};
    records[1] = record_of(RATION_RECORD_QUOTA, "daily", "bcc");
    records[1].u.quota = (ration_quota_record){.window_end = {24 * HOUR}, .used = 3 * UNIT, .max = RATION_UNSET};
    records[2] = record_of(RATION_RECORD_ADAPTIVE, "l", "x=2");
    records[2].u.adaptive = (ration_adaptive_record){.limit = 2, .grown_at = {HOUR}};
    records[3] = record_of(RATION_RECORD_PENALTY, "slots", "x=1");
    records[3].u.penalty = (ration_penalty_record){{HOUR}, {HOUR + 30 * SECOND}, 2, 2};
    records[4] = record_of(RATION_RECORD_PAUSE, "l", "x=1");
    records[4].u.paused = true;
    records[5] = record_of(RATION_RECORD_BREAKER, NULL, "acc");
    records[5].u.breaker =
        (ration_breaker_record){.state = RATION_BREAKER_OPEN, .generation = 2, .until = {2 * HOUR}, .delay_us = SECOND};
    records[6] = record_of(RATION_RECORD_BREAKER, NULL, "bcc");
    records[6].u.breaker = (ration_breaker_record){.state = RATION_BREAKER_CLOSED, .generation = 4};
    return ration_engine_load(w.engine, ration_time_of(HOUR), &state, NULL);
}

/* ---- the report as a text */

static char told[2048];
static size_t told_size;

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void tell(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    told_size += (size_t)vsnprintf(told + told_size, sizeof told - told_size, format, values);
    va_end(values);
}

static void on_counter(void *ctx, const ration_counter_report *r)
{
    (void)ctx;
    tell("%s%s %.*s %d/%d%s;", r->asleep ? "~" : "", r->limit, (int)r->key.size, r->key.data, (int)(r->used / UNIT),
         (int)(r->kind == RATION_KIND_ADAPTIVE ? r->current / UNIT : r->max / UNIT), r->paused ? " paused" : "");
}

static void on_penalty(void *ctx, const ration_penalty_report *r)
{
    (void)ctx;
    tell("!%s %.*s;", r->limit, (int)r->key.size, r->key.data);
}

static void on_breaker(void *ctx, const ration_breaker_report *r)
{
    (void)ctx;
    tell("%s<%.*s %s>", r->asleep ? "~" : "", (int)r->key.size, r->key.data, ration_circuit_state_name(r->state));
}

static const char *report_at(int64_t at_us, bool asleep, const char *limit, const char *key, int *err)
{
    const ration_reporter reporter = {.asleep = asleep,
                                      .limit = ration_text_of(limit),
                                      .key = ration_text_of(key),
                                      .counter = on_counter,
                                      .penalty = on_penalty,
                                      .breaker = on_breaker};

    told_size = 0;
    told[0] = '\0';
    *err = ration_engine_report(w.engine, ration_time_of(at_us), RATION_REPORT_LIMITS, &reporter);
    return told;
}

static const char *report(int64_t at_us, bool asleep, const char *limit, const char *key)
{
    int err;
    const char *text = report_at(at_us, asleep, limit, key, &err);

    CHECK_EQ(err, RATION_OK);
    return text;
}

static uint64_t sleeping(void)
{
    ration_totals totals;

    ration_engine_totals(w.engine, &totals);
    return totals.asleep;
}

#define ALL "~daily acc 8/50;~daily bcc 3/20;~l x=1 0/4 paused;~l x=2 0/2;~slots x=1 0/5;!slots x=1;~<acc open>"

static void what_sleeps_is_shown(void **state)
{
    int err;

    (void)state;
    begin(NULL, &err);
    CHECK_EQ(err, RATION_OK);
    CHECK_EQ(load(), RATION_OK);
    CHECK_STR(report(HOUR, false, NULL, NULL), "");
    CHECK_STR(report(HOUR, true, NULL, NULL), ALL);
    CHECK_STR(report(HOUR, true, "daily", "bcc"), "~daily bcc 3/20;~<acc open>");
    CHECK_STR(report(HOUR, true, "daily", "acc3"), "~<acc open>");
    CHECK_STR(report(HOUR, true, "slots", "x=1"), "~slots x=1 0/5;!slots x=1;~<acc open>");
    /* A look wakes nobody. */
    CHECK_EQ(sleeping(), 7);
    CHECK_STR(report(HOUR, false, NULL, NULL), "");
    CHECK_STR(report(HOUR, true, NULL, NULL), ALL);
    world_fini(&w);
}

static void who_is_asked_for_sleeps_no_more(void **state)
{
    int err;

    (void)state;
    begin(NULL, &err);
    CHECK_EQ(load(), RATION_OK);
    CHECK_STR(report(HOUR, true, NULL, NULL), ALL);
    CHECK_STR(world_ask(&w, HOUR, "a x=2"), "circuit_open - acc 3600000000us");
    CHECK_STR(report(HOUR, true, NULL, NULL),
              "daily acc 8/50;~daily bcc 3/20;~l x=1 0/4 paused;l x=2 0/2;~slots x=1 0/5;slots x=2 0/5;!slots x=1;"
              "<acc open>");
    world_fini(&w);
}

static void what_is_as_new_is_not_shown(void **state)
{
    int err;

    (void)state;
    begin(NULL, &err);
    CHECK_EQ(load(), RATION_OK);
    /* Its window, its penalty and the time until its probe are over. */
    CHECK_STR(report(25 * HOUR, true, NULL, NULL), "~l x=1 0/4 paused;~l x=2 0/2;~<acc half-open>");
    world_fini(&w);
}

/* Every allocation of a report fails in turn: it says so, and leaves nothing behind. */
static void without_memory(void **state)
{
    int err = RATION_ERR_NOMEM;

    (void)state;
    for (uint64_t i = 0; err != RATION_OK; i++) {
        failalloc memory;

        failalloc_init(&memory, UINT64_MAX);
        begin(&memory.allocator, &err);
        CHECK_EQ(err, RATION_OK);
        CHECK_EQ(load(), RATION_OK);

        const size_t live = memory.live;

        memory.countdown = i;
        (void)report_at(HOUR, true, NULL, NULL, &err);
        CHECK(err == RATION_OK || err == RATION_ERR_NOMEM);
        CHECK_EQ(memory.live, live);
        world_fini(&w);
        CHECK_EQ(memory.live, 0);
    }
    CHECK_STR(told, ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_sleeps_is_shown),
        cmocka_unit_test(who_is_asked_for_sleeps_no_more),
        cmocka_unit_test(what_is_as_new_is_not_shown),
        cmocka_unit_test(without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
