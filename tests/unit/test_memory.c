/* SPDX-License-Identifier: MIT */
/*
 * The engine and its memory: any allocation may fail, and after warm-up there is none.
 *
 * A script goes through everything that an engine does. Its answers and events are written down as one text, so that
 * two runs can be compared to the letter.
 */
#include "support/check.h"
#include "support/failalloc.h"
#include "support/tzif.h"

#include <stdio.h>

#define MS(n) ((int64_t)(n)*1000)
#define UNIT RATION_UNIT

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"account", "var:x"};
static const ration_endpoint_rule endpoints[] = {{.path = "/o/{x}/**"}, {.path = "/n/{y}"}};
static const ration_limit_rule limits[] = {
    {.name = "rate",
     .kind = RATION_KIND_RATE,
     .scope = by_account,
     .scope_count = 1,
     .rate = {100 * UNIT, 1000000},
     .burst = 4 * UNIT,
     .margin = RATION_UNSET},
    {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 2, .max = 2 * UNIT},
    {.name = "day",
     .kind = RATION_KIND_QUOTA,
     .scope = by_account,
     .scope_count = 1,
     .max = 1000 * UNIT,
     .window = {.period = RATION_PERIOD_DAY, .zone = "Z"},
     .arrival_us = RATION_UNSET,
     .sync = {.limit_header = "x-limit", .remaining_header = "x-left", .reset_header = "x-reset"}},
    {.name = "hour",
     .kind = RATION_KIND_QUOTA,
     .counts = RATION_COUNTS_COST,
     .scope = by_x,
     .scope_count = 2,
     .max = 500 * UNIT,
     .window = {.rolling_us = MS(3600000)},
     .arrival_us = RATION_UNSET},
    {.name = "shadow", .kind = RATION_KIND_CONCURRENCY, .max = UNIT, .enforce = RATION_ENFORCE_SHADOW},
};
static const char *const tenants[] = {"a", "b",
                                      "a tenant whose name is longer than most, and so needs a line of its own"};

typedef struct script {
    ration_engine *engine;
    failalloc *memory;
    ration_lease leases[64];
    size_t count;
    int64_t now_ms;
    char text[65536];
    size_t used;
} script;

static void put(script *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(script *s, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    s->used += (size_t)vsnprintf(s->text + s->used, sizeof s->text - s->used, format, arguments);
    va_end(arguments);
    CHECK(s->used < sizeof s->text);
}

static void events(script *s)
{
    ration_event event;

    while (ration_engine_next_event(s->engine, &event)) {
        put(s, "!%d %s %lld;", (int)event.type, ration_reason_name(event.decision.reason),
            (long long)(event.at.us - MS(s->now_ms)));
        if (event.type == RATION_EVENT_GRANTED && s->count < 64)
            s->leases[s->count++] = event.lease;
    }
}

/* Call once more where the memory failed: then it must go well. Answers whether it had failed. */
#define TWICE(s, call)                                                                                                 \
    do {                                                                                                               \
        int err = (call);                                                                                              \
        if (err == RATION_ERR_NOMEM) {                                                                                 \
            CHECK((s)->memory->failed);                                                                                \
            err = (call);                                                                                              \
        }                                                                                                              \
        put((s), "=%d ", err);                                                                                         \
    } while (0)

static void ask(script *s, int which, int64_t wait_ms)
{
    const ration_var y = {ration_text_of("y"), ration_text_of("1")};
    ration_request r = RATION_REQUEST_INIT;
    ration_decision d = {.result = RATION_REFUSED};
    char path[32];

    snprintf(path, sizeof path, which % 5 == 4 ? "/n/%d" : "/o/%d/z", which % 3);
    r.account = ration_text_of(which % 4 == 3 ? "bcc" : "acc");
    r.path = ration_text_of(path);
    r.tenant = ration_text_of(tenants[which % 3]);
    r.priority = which % 7 == 6 ? RATION_PRIORITY_HIGH : RATION_PRIORITY_UNSET;
    r.cost = which % 2 == 0 ? UNIT : 3 * UNIT;
    r.wait_us = MS(wait_ms);
    r.ttl_us = which % 3 == 0 ? MS(12) : RATION_UNSET;
    if (which % 6 == 5) {
        r.vars = &y;
        r.var_count = 1;
    }
    TWICE(s, ration_engine_submit(s->engine, ration_time_of(MS(s->now_ms)), &r, &d));
    put(s, "%d %s %s;", (int)d.result, ration_reason_name(d.reason), d.limit != NULL ? d.limit : "-");
    if (d.result == RATION_GRANTED && s->count < 64)
        s->leases[s->count++] = d.lease;
}

static void give_back(script *s, size_t which)
{
    const ration_completion how = {which % 3 == 0 ? RATION_OUTCOME_FAILURE : RATION_OUTCOME_SUCCESS,
                                   which % 2 == 0 ? 2 * UNIT : RATION_UNSET};

    if (which >= s->count)
        return;
    TWICE(s, ration_engine_release(s->engine, ration_time_of(MS(s->now_ms)), s->leases[which], &how));
    s->leases[which] = s->leases[--s->count];
}

static void answer(script *s, size_t which, int status)
{
    const ration_header headers[] = {{ration_text_of("X-Left"), ration_text_of("700")},
                                     {ration_text_of("Retry-After"), ration_text_of("0.05")}};
    const ration_response response = {status, headers, status == 200 ? 1 : 2, {NULL, 0}};

    if (which < s->count)
        TWICE(s, ration_engine_observe(s->engine, ration_time_of(MS(s->now_ms)), s->leases[which], &response));
}

static void count_rows(void *ctx, const ration_counter_report *report)
{
    put(ctx, "%s %.*s %lld %lld;", report->limit, (int)report->key.size, report->key.data,
        (long long)report->used + (long long)report->held, (long long)report->available + (long long)report->remaining);
}

static void report(script *s)
{
    const ration_reporter reporter = {.ctx = s, .counter = count_rows};

    TWICE(s, ration_engine_report(s->engine, ration_time_of(MS(s->now_ms)), RATION_REPORT_STATS, &reporter));
}

/* Requests that are granted, queued and refused; releases, answers, pauses, losses, deadlines. */
static void play(script *s, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        ask(s, i, i % 3 * INT64_C(30));
        ask(s, 2 * i + 1, 15);
        if (i % 3 == 1)
            give_back(s, 0);
        if (i % 4 == 2)
            answer(s, s->count - 1, i % 12 == 10 ? 429 : 200);
        if (i % 5 == 4 && s->count > 0)
            (void)ration_engine_renew(s->engine, ration_time_of(MS(s->now_ms)), s->leases[0]);
        s->now_ms += i % 4 * INT64_C(5);
        TWICE(s, ration_engine_advance(s->engine, ration_time_of(MS(s->now_ms))));
        events(s);
        while (s->count > 20)
            give_back(s, s->count / 2);
    }
}

static int begin(script *s, failalloc *memory)
{
    static const ration_tenant_rule weights[] = {{"a", 2}};
    static const ration_provider_rule providers[] = {
        {.name = "p", .limits = limits, .limit_count = 5, .endpoints = endpoints, .endpoint_count = 2},
    };
    static const ration_account_rule accounts[] = {
        {.name = "acc", .provider = "p"},
        {.name = "bcc", .provider = "p", .share = {1, 2}, .target = "eu", .credential_key = "k"}};
    tzif zone;

    tzif_write_rule(&zone, "<+03>-3");

    const ration_zone_data zones[] = {{"Z", zone.bytes, zone.size}};
    const ration_rules rules = {.providers = providers,
                                .provider_count = 1,
                                .accounts = accounts,
                                .account_count = 2,
                                .tenants = weights,
                                .tenant_count = 1,
                                .zones = zones,
                                .zone_count = 1};
    const ration_engine_options options = {.rules = &rules, .allocator = &memory->allocator};

    memset(s, 0, sizeof *s);
    s->memory = memory;
    return ration_engine_new(&options, ration_time_of(0), &s->engine, NULL);
}

static script usual;
static script failing;

/* Whatever allocation fails, only the call that needed it knows: made again, all is as if it had not happened. */
static void any_allocation_may_fail(void **state)
{
    failalloc memory;
    bool failed = true;

    (void)state;
    failalloc_init(&memory, UINT64_MAX);
    CHECK_EQ(begin(&usual, &memory), RATION_OK);
    play(&usual, 60);
    report(&usual);
    ration_engine_free(usual.engine);
    CHECK_EQ(memory.live, 0);

    for (uint64_t at = 0; failed; at++) {
        failalloc_init(&memory, at);

        const int err = begin(&failing, &memory);

        failed = memory.failed;
        if (err != RATION_OK) {
            CHECK_EQ(err, RATION_ERR_NOMEM);
            CHECK(failed);
            CHECK(failing.engine == NULL);
            CHECK_EQ(memory.live, 0);
            continue;
        }
        play(&failing, 60);
        report(&failing);
        failed = memory.failed;
        CHECK_STR(failing.text, usual.text);
        ration_engine_free(failing.engine);
        CHECK_EQ(memory.live, 0);
    }
}

/* The same again and again: once every counter and the most leases, waiters and events have been seen, no more. */
static void after_warm_up_nothing_is_allocated(void **state)
{
    ration_totals before;
    ration_totals after;
    failalloc memory;

    (void)state;
    failalloc_init(&memory, UINT64_MAX);
    CHECK_EQ(begin(&usual, &memory), RATION_OK);
    for (int i = 0; i < 4; i++) {
        usual.used = 0;
        play(&usual, 210);
    }
    memory.countdown = 0;
    ration_engine_totals(usual.engine, &before);
    for (int i = 0; i < 4; i++) {
        usual.used = 0;
        play(&usual, 210);
    }
    CHECK(!memory.failed);
    ration_engine_totals(usual.engine, &after);
    CHECK(after.granted - before.granted > 300);
    CHECK(after.queued - before.queued > 100);
    CHECK(after.refused - before.refused > 100);
    CHECK(after.released - before.released > 100);
    CHECK(after.lost - before.lost > 20);
    CHECK(after.rate_limited - before.rate_limited > 10);
    ration_engine_free(usual.engine);
    CHECK_EQ(memory.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(after_warm_up_nothing_is_allocated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
