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
    int64_t now_us;
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
    put(ctx, "%s %.*s %lld %lld %llu;", report->limit, (int)report->key.size, report->key.data,
        (long long)report->used + (long long)report->held, (long long)report->available + (long long)report->remaining,
        (unsigned long long)report->shadowed);
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

/* ---- ceilings, limits that learn, and circuits ---- */

#define CROWD 90 /* tenants: a loan from all of them needs more slices than there are in a block */

static ration_tenant_share crowd[CROWD];
static char crowd_names[CROWD][8];

static const ration_class_rule classes[] = {{"fast", {1, 4}}, {"bulk", {0, 0}}};
static const ration_limit_rule crowded[] = {
    {.name = "fair",
     .kind = RATION_KIND_SHARE,
     .counts = RATION_COUNTS_COST,
     .scope = by_account,
     .scope_count = 1,
     .share = {.ceiling = CROWD * UNIT,
               .tenants = crowd,
               .tenant_count = CROWD,
               .reclaim_horizon_us = MS(50),
               .idle_after_us = MS(60)}},
    {.name = "follows",
     .kind = RATION_KIND_SHARE,
     .counts = RATION_COUNTS_REQUESTS,
     .scope = by_account,
     .scope_count = 1,
     .enforce = RATION_ENFORCE_SHADOW,
     .share = {.follows = "learns",
               .tenants = crowd,
               .tenant_count = CROWD,
               .reclaim_horizon_us = MS(50),
               .idle_after_us = MS(60),
               .unknown_tenant = "t0"}},
    {.name = "learns",
     .kind = RATION_KIND_ADAPTIVE,
     .scope = by_account,
     .scope_count = 1,
     .adaptive = {.initial_limit = 4,
                  .window_us = MS(90),
                  .cooldown_us = MS(200),
                  .classes = classes,
                  .class_count = 2,
                  .lend_horizon_us = MS(50),
                  .lend_idle_us = MS(60)}},
};

static void crowd_ask(script *s, int which)
{
    static const char *const class_names[] = {NULL, "fast", "bulk", NULL, "other"};
    static const int64_t holds[] = {40, 40, 49, 51, 5};
    ration_request r = RATION_REQUEST_INIT;
    ration_decision d = {.result = RATION_REFUSED};

    r.account = ration_text_of(which % 11 == 10 ? "bcc" : "acc");
    r.tenant = ration_text_of(crowd_names[which % 5]);
    r.class_name = ration_text_of(class_names[which / 3 % (which % 17 == 16 ? 5 : 4)]);
    r.priority = which % 7 == 6 ? RATION_PRIORITY_HIGH : RATION_PRIORITY_UNSET;
    r.cost = which % 4 == 1 ? 85 * UNIT : which % 3 * UNIT / 2;
    r.hold_us = MS(holds[which % 5]);
    r.wait_us = which % 2 == 1 ? MS(120) : 0;
    r.ttl_us = which % 6 == 5 ? MS(30) : RATION_UNSET;
    r.health = which % 19 == 18;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, not a place. A call that fails uses up its serial. */
    r.user = (void *)(intptr_t)which;
    TWICE(s, ration_engine_submit(s->engine, ration_time_of(s->now_us), &r, &d));
    put(s, "%d %s %s %d;", (int)d.result, ration_reason_name(d.reason), d.limit != NULL ? d.limit : "-",
        (int)d.blocking_count);
    if (d.result == RATION_GRANTED && s->count < 64)
        s->leases[s->count++] = d.lease;
}

static void crowd_end(script *s, int which)
{
    static const ration_outcome outcomes[] = {RATION_OUTCOME_SUCCESS, RATION_OUTCOME_FAILURE, RATION_OUTCOME_CANCELLED,
                                              RATION_OUTCOME_SUCCESS};
    const ration_completion how = {outcomes[which % 4], which % 5 == 2 ? 3 * UNIT : RATION_UNSET};
    const ration_response throttled = {529, NULL, 0, {NULL, 0}};

    if (s->count == 0)
        return;
    if (which % 16 == 9)
        TWICE(s, ration_engine_observe(s->engine, ration_time_of(s->now_us), s->leases[0], &throttled));
    TWICE(s, ration_engine_release(s->engine, ration_time_of(s->now_us), s->leases[0], &how));
    s->leases[0] = s->leases[--s->count];
}

/* A borrower for whose loan there was no memory goes a microsecond later. Of what may be lost for want of memory, the
 * news of limits and circuits, nothing is written down: the reports at the end tell where they stand. */
static void crowd_time(script *s, int64_t us)
{
    ration_event event;

    for (int i = 0; i < 2; i++) {
        s->now_us += i == 0 ? us : 1;
        TWICE(s, ration_engine_advance(s->engine, ration_time_of(s->now_us)));
    }
    while (ration_engine_next_event(s->engine, &event)) {
        if (event.type > RATION_EVENT_LOST)
            continue;
        put(s, "!%d %s %d;", (int)event.type, ration_reason_name(event.decision.reason), (int)(intptr_t)event.user);
        if (event.type == RATION_EVENT_GRANTED && s->count < 64)
            s->leases[s->count++] = event.lease;
    }
}

static void crowd_play(script *s, int rounds)
{
    crowd_ask(s, 1); /* its loan is written when all the others have become idle, by nobody's call */
    crowd_time(s, MS(60));
    for (int i = 0; i < rounds; i++) {
        crowd_ask(s, i);
        crowd_ask(s, 3 * i + 1);
        crowd_time(s, i % 3 * MS(7));
        crowd_end(s, i);
        crowd_time(s, i % 9 == 8 ? MS(130) : MS(3));
        if (i % 5 == 4)
            crowd_end(s, i / 2);
        if (i % 13 == 12)
            TWICE(s, ration_engine_health(s->engine, ration_time_of(s->now_us), ration_text_of("acc"), i % 2 == 0));
    }
}

static void crowd_row(void *ctx, const ration_counter_report *r)
{
    put(ctx, "%s %lld %lld %llu;", r->limit, (long long)r->held, (long long)r->current,
        (unsigned long long)r->shadowed);
    for (size_t i = 0; i < r->tenant_count && i < 5; i++) {
        const ration_tenant_report *t = &r->tenants[i];

        put(ctx, "%lld %lld %lld %llu %llu,", (long long)t->own, (long long)t->lent, (long long)t->want,
            (unsigned long long)t->granted, (unsigned long long)t->reclaims);
    }
}

static void crowd_circuit(void *ctx, const ration_breaker_report *r)
{
    put(ctx, "%.*s %d %llu;", (int)r->key.size, r->key.data, (int)r->state, (unsigned long long)r->generation);
}

static void crowd_report(script *s)
{
    const ration_reporter reporter = {.ctx = s, .counter = crowd_row, .breaker = crowd_circuit};
    const size_t before = s->used;
    int err = ration_engine_report(s->engine, ration_time_of(s->now_us), RATION_REPORT_LIMITS, &reporter);

    if (err == RATION_ERR_NOMEM) {
        s->used = before; /* some rows may have been told */
        err = ration_engine_report(s->engine, ration_time_of(s->now_us), RATION_REPORT_LIMITS, &reporter);
    }
    CHECK_EQ(err, RATION_OK);
}

static int crowd_begin(script *s, failalloc *memory)
{
    static const int throttled[] = {529};
    static const ration_provider_rule providers[] = {
        {.name = "p",
         .limits = crowded,
         .limit_count = 3,
         .errors = {.throttled = throttled, .throttled_count = 1},
         .breaker = {.strategy = RATION_BREAKER_COUNT,
                     .ratio = {1, 2},
                     .size = 4,
                     .minimum_calls = 3,
                     .backoff_initial_us = MS(40),
                     .probes = 2}},
    };
    static const ration_account_rule accounts[] = {{.name = "acc", .provider = "p"}, {.name = "bcc", .provider = "p"}};
    static const ration_rules rules = {
        .providers = providers, .provider_count = 1, .accounts = accounts, .account_count = 2};
    const ration_engine_options options = {.rules = &rules, .allocator = &memory->allocator};

    for (int i = 0; i < CROWD; i++) {
        snprintf(crowd_names[i], sizeof crowd_names[i], "t%d", i);
        crowd[i] = (ration_tenant_share){.name = crowd_names[i], .weight = 1};
    }
    memset(s, 0, sizeof *s);
    s->memory = memory;
    return ration_engine_new(&options, ration_time_of(0), &s->engine, NULL);
}

static script usual;
static script failing;

/* What is played, over and over. */
static const struct {
    const char *why;
    int (*begin)(script *s, failalloc *memory);
    void (*play)(script *s, int rounds);
    void (*report)(script *s);
    bool lanes; /* and nobody is rate limited */
} scripts[] = {
    {"rates, slots, quotas", begin, play, report, false},
    {"ceilings, limits that learn, circuits", crowd_begin, crowd_play, crowd_report, true},
};

/* Whatever allocation fails, only the call that needed it knows: made again, all is as if it had not happened. */
static void fail_each(size_t which)
{
    failalloc memory;
    bool failed = true;

    failalloc_init(&memory, UINT64_MAX);
    CHECK_EQ(scripts[which].begin(&usual, &memory), RATION_OK);
    scripts[which].play(&usual, 60);
    scripts[which].report(&usual);
    ration_engine_free(usual.engine);
    CHECK_EQ(memory.live, 0);

    for (uint64_t at = 0; failed; at++) {
        failalloc_init(&memory, at);

        const int err = scripts[which].begin(&failing, &memory);

        failed = memory.failed;
        if (err != RATION_OK) {
            CHECK_EQ(err, RATION_ERR_NOMEM);
            CHECK(failed);
            CHECK(failing.engine == NULL);
            CHECK_EQ(memory.live, 0);
            continue;
        }
        scripts[which].play(&failing, 60);
        scripts[which].report(&failing);
        failed = memory.failed;
        CHECK_STR(failing.text, usual.text);
        ration_engine_free(failing.engine);
        CHECK_EQ(memory.live, 0);
    }
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        CHECK_ROW(scripts[i].why);
        fail_each(i);
    }
    CHECK_ROW(NULL);
}

/* Play often, writing nothing down. */
static void play_on(size_t which)
{
    for (int i = 0; i < 4; i++) {
        usual.used = 0;
        scripts[which].play(&usual, 210);
    }
}

/* The same again and again: once every counter and the most leases, waiters and events have been seen, no more. */
static void allocates_nothing(size_t which)
{
    ration_totals before;
    ration_totals after;
    failalloc memory;

    failalloc_init(&memory, UINT64_MAX);
    CHECK_EQ(scripts[which].begin(&usual, &memory), RATION_OK);
    play_on(which);
    memory.countdown = 0;
    ration_engine_totals(usual.engine, &before);
    play_on(which);
    CHECK(!memory.failed);
    ration_engine_totals(usual.engine, &after);
    CHECK(after.granted - before.granted > 300);
    CHECK(after.queued - before.queued > 100);
    CHECK(after.refused - before.refused > 100);
    CHECK(after.released - before.released > 100);
    CHECK(after.lost - before.lost > 20);
    CHECK(after.rate_limited - before.rate_limited > 10 || scripts[which].lanes);
    ration_engine_free(usual.engine);
    CHECK_EQ(memory.live, 0);
}

static void after_warm_up_nothing_is_allocated(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        CHECK_ROW(scripts[i].why);
        allocates_nothing(i);
    }
    CHECK_ROW(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(after_warm_up_nothing_is_allocated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
