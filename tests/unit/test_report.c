/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"
#include "support/world.h"

#include <ration/operate.h>

#include <stdio.h>
#include <stdlib.h>

#define MS(n) ((int64_t)(n)*1000)
#define UNIT RATION_UNIT

static world w;
static char text[65536];

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - used, format, arguments);
    va_end(arguments);
}

static void say_counter(void *ctx, const ration_counter_report *r)
{
    (void)ctx;
    say("%s/%s@%.*s", r->provider, r->limit, (int)r->key.size, r->key.data);
    switch (r->kind) {
    case RATION_KIND_RATE:
        say(" available %lld", (long long)r->available);
        break;
    case RATION_KIND_CONCURRENCY:
        say(" %lld of %lld", (long long)(r->held / UNIT), (long long)(r->max / UNIT));
        break;
    case RATION_KIND_QUOTA:
        say(" %lld of %lld %s", (long long)(r->used / UNIT), (long long)(r->usable / UNIT),
            r->has_window ? "calendar" : "rolling");
        break;
    case RATION_KIND_NONE:
    case RATION_KIND_SHARE:
    case RATION_KIND_ADAPTIVE:
    case RATION_KIND_COUNT:
        say(" ?");
        break;
    }
    if (r->waiting > 0)
        say(" %llu wait", (unsigned long long)r->waiting);
    if (r->shadowed > 0)
        say(" shadowed %llu", (unsigned long long)r->shadowed);
    say("; ");
}

static void say_penalty(void *ctx, const ration_penalty_report *r)
{
    (void)ctx;
    say("pause %s@%.*s until %lld x%u; ", r->limit != NULL ? r->limit : "-", (int)r->key.size, r->key.data,
        (long long)(r->until.us / 1000), r->events);
}

static void say_lease(void *ctx, const ration_lease_report *r)
{
    (void)ctx;
    say("%llu%s %.*s/%.*s %.*s/%.*s %s cost %lld since %lld", (unsigned long long)r->serial, r->waiting ? " waits" : "",
        (int)r->provider.size, r->provider.data, (int)r->account.size, r->account.data, (int)r->tenant.size,
        r->tenant.data != NULL ? r->tenant.data : "", (int)r->class_name.size,
        r->class_name.data != NULL ? r->class_name.data : "", ration_priority_name(r->priority),
        (long long)(r->cost / UNIT), (long long)(r->since.us / 1000));
    if (r->ends_at.us != RATION_NEVER_US)
        say(" ends %lld", (long long)(r->ends_at.us / 1000));
    if (r->ttl_until.us != RATION_NEVER_US)
        say(" ttl %lld", (long long)(r->ttl_until.us / 1000));
    say("%s; ", r->overrun ? " overrun" : "");
}

static void say_throttled(void *ctx, const ration_throttled_report *r)
{
    (void)ctx;
    say("%s/%s %llu; ", r->provider, r->limit != NULL ? r->limit : "-", (unsigned long long)r->count);
}

static const ration_reporter everything = {.counter = say_counter, .penalty = say_penalty, .lease = say_lease};

static const char *report(int64_t at_ms, ration_report_kind kind, const ration_reporter *reporter)
{
    text[0] = '\0';
    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(MS(at_ms)), kind, reporter), RATION_OK);
    return text;
}

/* Two providers; the second's limits are asked for first, and keys in no order. */
static void begin(const ration_allocator *mem)
{
    static const ration_limit_rule of_p[] = {
        {.name = "zz", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = UNIT},
        {.name = "aa",
         .kind = RATION_KIND_QUOTA,
         .scope = by_account,
         .scope_count = 1,
         .max = 10 * UNIT,
         .window = {.period = RATION_PERIOD_DAY}},
        {.name = "sh", .kind = RATION_KIND_CONCURRENCY, .max = UNIT, .enforce = RATION_ENFORCE_SHADOW},
    };
    static const ration_limit_rule of_q[] = {
        {.name = "r", .kind = RATION_KIND_RATE, .rate = {3 * UNIT, 1000000}, .burst = 4 * UNIT},
        {.name = "day", .kind = RATION_KIND_QUOTA, .max = 10 * UNIT, .window = {.rolling_us = 1000000}},
    };
    static const ration_limit_rule own[] = {{.name = "aa",
                                             .kind = RATION_KIND_QUOTA,
                                             .scope = by_account,
                                             .scope_count = 1,
                                             .max = 5 * UNIT,
                                             .window = {.period = RATION_PERIOD_DAY}}};
    static const ration_provider_rule providers[] = {{.name = "p", .limits = of_p, .limit_count = 3},
                                                     {.name = "q", .limits = of_q, .limit_count = 2}};
    static const ration_account_rule accounts[] = {{.name = "zacc", .provider = "p"},
                                                   {.name = "acc", .provider = "p", .limits = own, .limit_count = 1},
                                                   {.name = "qacc", .provider = "q"}};
    static const ration_rules rules = {
        .providers = providers, .provider_count = 2, .accounts = accounts, .account_count = 3};

    CHECK_EQ(world_init_rules(&w, &rules, mem), RATION_OK);
}

static void counters_come_in_order_of_declaration_and_key(void **state)
{
    (void)state;
    begin(NULL);
    CHECK_STR(report(0, RATION_REPORT_STATS, &everything), "");
    CHECK_STR(world_ask(&w, 0, "a account=qacc"), "granted");
    CHECK_STR(world_ask(&w, 0, "b account=zacc x=9"), "granted");
    CHECK_STR(world_ask(&w, 0, "c account=acc x=10"), "granted");
    CHECK_STR(world_ask(&w, 0, "d account=acc x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "e account=acc x=1 wait=500"), "queued");
    CHECK_STR(report(0, RATION_REPORT_STATS, &everything),
              "p/zz@x=1 1 of 1 1 wait; p/zz@x=10 1 of 1; p/zz@x=9 1 of 1; p/aa@acc 2 of 5 calendar; "
              "p/aa@zacc 1 of 10 calendar; p/sh@local 3 of 1 shadowed 3; q/r@local available 3000000; "
              "q/day@local 1 of 10 rolling; ");
    CHECK_STR(report(0, RATION_REPORT_LIMITS, &everything),
              "p/zz@x=1 1 of 1 1 wait; p/zz@x=10 1 of 1; p/zz@x=9 1 of 1; p/aa@acc 2 of 5 calendar; "
              "p/aa@zacc 1 of 10 calendar; p/sh@local 3 of 1 shadowed 3; q/r@local available 3000000; "
              "q/day@local 1 of 10 rolling; ");
    world_fini(&w);
}

/* By the narrowest limit that binds, once a call; a limit that an account replaces counts with the provider's. */
static void what_providers_refuse_is_counted_by_limit(void **state)
{
    const ration_reporter reporter = {.throttled = say_throttled};

    (void)state;
    begin(NULL);
    CHECK_STR(report(0, RATION_REPORT_LIMITS, &reporter), "p/zz 0; p/aa 0; p/sh 0; p/- 0; q/r 0; q/day 0; q/- 0; ");
    CHECK_STR(world_ask(&w, 0, "a account=qacc"), "granted");
    CHECK_STR(world_ask(&w, 0, "b account=zacc x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "c account=acc x=2"), "granted");
    CHECK_STR(world_ask(&w, 0, "d account=acc"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
    CHECK_STR(world_observe(&w, 0, "b", 429, NULL, NULL), "observed");
    CHECK_STR(world_observe(&w, 0, "b", 429, NULL, NULL), "observed");
    CHECK_STR(world_observe(&w, 0, "c", 200, NULL, NULL), "observed");
    CHECK_STR(world_observe(&w, 0, "d", 429, NULL, NULL), "observed");
    CHECK_STR(report(0, RATION_REPORT_LIMITS, &reporter), "p/zz 1; p/aa 1; p/sh 0; p/- 0; q/r 1; q/day 0; q/- 0; ");
    world_fini(&w);
}

/* Those of the provider and those that an account has in their place; the others are not even looked at. */
static void some_kinds_alone(void **state)
{
    static const struct {
        const char *why;
        uint32_t kinds;
        const char *want;
    } rows[] = {
        {"quotas", 1u << RATION_KIND_QUOTA,
         "p/aa@acc 1 of 5 calendar; p/aa@zacc 1 of 10 calendar; q/day@local 1 of 10 rolling; "},
        {"rates", 1u << RATION_KIND_RATE, "q/r@local available 3000000; "},
        {"two kinds", 1u << RATION_KIND_RATE | 1u << RATION_KIND_CONCURRENCY,
         "p/zz@x=1 1 of 1; p/zz@x=2 1 of 1; p/sh@local 2 of 1 shadowed 1; q/r@local available 3000000; "},
        {"a kind that is not there", 1u << RATION_KIND_SHARE, ""},
    };

    (void)state;
    begin(NULL);
    CHECK_STR(world_ask(&w, 0, "a account=qacc"), "granted");
    CHECK_STR(world_ask(&w, 0, "b account=zacc x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "c account=acc x=2"), "granted");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_reporter reporter = {.kinds = rows[i].kinds, .counter = say_counter};

        CHECK_ROW(rows[i].why);
        CHECK_STR(report(0, RATION_REPORT_LIMITS, &reporter), rows[i].want);
    }
    world_fini(&w);
}

/* Of the limits of one name, or at one key, or both; whose penalties come with them, but none of accounts. */
static void one_limit_or_key_alone(void **state)
{
    static const struct {
        const char *why, *limit, *key;
        uint32_t kinds;
        const char *want;
    } rows[] = {
        {"a limit", "aa", NULL, 0, "p/aa@acc 1 of 5 calendar; p/aa@zacc 1 of 10 calendar; "},
        {"a key of it", "aa", "zacc", 0, "p/aa@zacc 1 of 10 calendar; "},
        {"a key", NULL, "local", 0,
         "p/sh@local 2 of 1 shadowed 1; q/r@local available 2000000; q/day@local 2 of 10 rolling; "
         "pause r@local until 2000 x1; "},
        {"a kind at a key", NULL, "local", 1u << RATION_KIND_RATE,
         "q/r@local available 2000000; pause r@local until 2000 x1; "},
        {"a kind of another name", "aa", NULL, 1u << RATION_KIND_RATE, ""},
        {"an empty key is one", "aa", "", 0, ""},
    };

    (void)state;
    begin(NULL);
    CHECK_STR(world_ask(&w, 0, "a account=qacc"), "granted");
    CHECK_STR(world_ask(&w, 0, "b account=zacc x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "c account=acc x=2"), "granted");
    CHECK_STR(world_ask(&w, 0, "d account=qacc"), "granted");
    CHECK_STR(world_observe(&w, 0, "d", 429, NULL, NULL), "observed");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_reporter reporter = {
            .kinds = rows[i].kinds,
            .limit = rows[i].limit != NULL ? ration_text_of(rows[i].limit) : (ration_text){NULL, 0},
            .key = rows[i].key != NULL ? ration_text_of(rows[i].key) : (ration_text){NULL, 0},
            .counter = say_counter,
            .penalty = say_penalty};

        CHECK_ROW(rows[i].why);
        CHECK_STR(report(0, RATION_REPORT_LIMITS, &reporter), rows[i].want);
    }
    world_fini(&w);
}

static void say_breaker(void *ctx, const ration_breaker_report *r)
{
    (void)ctx;
    say("%s/%.*s %s because %s; ", r->provider, (int)r->key.size, r->key.data, ration_circuit_state_name(r->state),
        r->cause);
}

/* What changed by itself says from where, and why. */
static void changes_say_what_was_before(void **state)
{
    static const ration_limit_rule limit = {
        .name = "l", .kind = RATION_KIND_ADAPTIVE, .adaptive = {.initial_limit = 8}};
    static const ration_reporter breakers = {.breaker = say_breaker};
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;
    ration_event event = {.before = 0};

    (void)state;
    world_rules(&rules, &provider, accounts, &limit, 1);
    provider.breaker = (ration_breaker_rule){.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 1};
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, 0, "a account=acc"), "granted");
    CHECK_STR(world_ask(&w, 0, "b account=acc"), "granted");
    CHECK_STR(report(0, RATION_REPORT_LIMITS, &breakers), "p/acc closed because ; ");
    CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
    CHECK(ration_engine_next_event(w.engine, &event));
    CHECK_EQ(event.type, RATION_EVENT_LIMIT);
    CHECK_EQ(event.before, 8 * UNIT);
    CHECK_EQ(event.value, 4 * UNIT);
    CHECK_STR(world_release(&w, 0, "b", RATION_OUTCOME_FAILURE, RATION_UNSET), "released");
    CHECK_STR(report(0, RATION_REPORT_LIMITS, &breakers), "p/acc open because 1 failure; ");
    world_fini(&w);
}

static void a_report_is_of_its_instant(void **state)
{
    (void)state;
    begin(NULL);
    CHECK_STR(world_ask(&w, 0, "a account=qacc"), "granted");
    CHECK_STR(world_ask(&w, 0, "b account=zacc x=1 ttl=100"), "granted");
    CHECK_STR(world_ask(&w, 0, "c account=zacc x=1 wait=500"), "queued");
    CHECK_STR(report(100, RATION_REPORT_STATS, &everything),
              "p/zz@x=1 1 of 1; p/aa@zacc 2 of 10 calendar; p/sh@local 1 of 1 shadowed 1; "
              "q/r@local available 3300000; q/day@local 1 of 10 rolling; ");
    CHECK_STR(world_events(&w), "lost b;granted c 100;");
    world_fini(&w);
}

static void penalties_follow_and_then_those_of_accounts(void **state)
{
    static const ration_provider_rule bare = {.name = "p"};
    static const ration_account_rule accounts[] = {{.name = "b", .provider = "p"}, {.name = "a", .provider = "p"}};
    static const ration_rules rules = {
        .providers = &bare, .provider_count = 1, .accounts = accounts, .account_count = 2};

    (void)state;
    begin(NULL);
    CHECK_STR(world_ask(&w, 0, "b account=zacc x=2"), "granted");
    CHECK_STR(world_ask(&w, 0, "c account=zacc x=1"), "granted");
    CHECK_STR(world_observe(&w, 0, "b", 429, NULL, NULL), "observed");
    CHECK_STR(world_observe(&w, 0, "c", 429, "Retry-After", "5"), "observed");
    CHECK_STR(report(0, RATION_REPORT_STATS, &(ration_reporter){.penalty = say_penalty}),
              "pause zz@x=1 until 5000 x1; pause zz@x=2 until 2000 x1; ");
    CHECK_STR(report(2000, RATION_REPORT_STATS, &(ration_reporter){.penalty = say_penalty}),
              "pause zz@x=1 until 5000 x1; ");
    world_fini(&w);

    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, 0, "x account=a"), "granted");
    CHECK_STR(world_ask(&w, 0, "y account=b"), "granted");
    CHECK_STR(world_observe(&w, 0, "x", 429, NULL, NULL), "observed");
    CHECK_STR(world_observe(&w, 0, "y", 429, NULL, NULL), "observed");
    CHECK_STR(report(0, RATION_REPORT_STATS, &everything), "pause -@b until 2000 x1; pause -@a until 2000 x1; ");
    CHECK_STR(report(0, RATION_REPORT_STATS, &(ration_reporter){.penalty = say_penalty, .key = ration_text_of("a")}),
              "");
    CHECK_STR(report(0, RATION_REPORT_STATS, &(ration_reporter){.penalty = say_penalty, .limit = ration_text_of("l")}),
              "");
    world_fini(&w);
}

static void leases_come_by_serial(void **state)
{
    (void)state;
    begin(NULL);
    CHECK_STR(world_ask(&w, 0, "a account=acc x=1 tenant=t cost=3 hold=50 ttl=80"), "granted");
    CHECK_STR(world_ask(&w, MS(1), "b account=acc x=1 wait=500 ttl=9 priority=high"), "queued");
    CHECK_STR(world_ask(&w, MS(2), "c account=qacc"), "granted");
    CHECK_STR(world_ask(&w, MS(2), "refused account=acc x=1"), "concurrency_full zz x=1 -");
    CHECK_STR(report(50, RATION_REPORT_LEASES, &everything),
              "1 p/acc t/ normal cost 3 since 0 ends 50 ttl 80; 2 waits p/acc / high cost 1 since 1 ends 501; "
              "3 q/qacc / normal cost 1 since 2; ");
    CHECK_STR(world_renew(&w, MS(51), "a"), "renewed");
    CHECK_STR(world_release(&w, MS(51), "c", RATION_OUTCOME_SUCCESS, RATION_UNSET), "released");
    CHECK_STR(report(51, RATION_REPORT_LEASES, &everything),
              "1 p/acc t/ normal cost 3 since 0 ends 50 ttl 131 overrun; 2 waits p/acc / high cost 1 since 1 ends "
              "501; ");
    CHECK_STR(report(131, RATION_REPORT_LEASES, &everything), "2 p/acc / high cost 1 since 131 ttl 140; ");
    world_fini(&w);
}

static void callbacks_may_be_absent(void **state)
{
    const ration_reporter none = {0};

    (void)state;
    begin(NULL);
    CHECK_STR(world_ask(&w, 0, "a account=acc x=1"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
    CHECK_STR(report(0, RATION_REPORT_STATS, &none), "");
    CHECK_STR(report(0, RATION_REPORT_LEASES, &none), "");
    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(0), RATION_REPORT_STATS, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_report(NULL, ration_time_of(0), RATION_REPORT_STATS, &none), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(0), (ration_report_kind)5, &none), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(RATION_NEVER_US), RATION_REPORT_STATS, &none),
             RATION_ERR_INVALID);
    world_fini(&w);
}

static void many_keys_are_sorted(void **state)
{
    char before[32] = "";

    (void)state;
    begin(NULL);
    for (int i = 0; i < 300; i++) {
        char ask[64];

        snprintf(ask, sizeof ask, "a account=qacc x=%d", i * 7919 % 300);
        (void)world_ask(&w, 0, ask);
        snprintf(ask, sizeof ask, "b%d account=acc x=%d wait=10", i, i * 7919 % 300);
        (void)world_ask(&w, 0, ask);
    }
    report(0, RATION_REPORT_LIMITS, &everything);
    for (const char *at = strstr(text, "p/zz@"); at != NULL; at = strstr(at + 1, "p/zz@")) {
        char key[32];

        snprintf(key, sizeof key, "%.*s", (int)strcspn(at + 5, " "), at + 5);
        CHECK(strcmp(before, key) < 0);
        memcpy(before, key, sizeof before);
    }
    world_fini(&w);
}

/* Every counter that there may be, with what it stands at. */
static void few_stand(const ration_allocator *mem)
{
    static const ration_limit_rule limit = {
        .name = "zz", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = 4 * UNIT};
    static const char *const more[] = {"m account=acc x=3 wait=10", "n account=acc x=5 wait=10",
                                       "o account=acc x=5 wait=10"};
    static const int taken[] = {[3] = 4, [5] = 4, [6] = 4, [100] = 3, [200] = 3};
    const ration_counter_name paused = {.limit = {"zz", 2}, .key = {"x=7", 3}};
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;
    char ask[64];

    world_rules(&rules, &provider, accounts, &limit, 1);
    CHECK_EQ(world_init_rules(&w, &rules, mem), RATION_OK);
    for (int x = 0; x < 300; x++) {
        const int times = x < (int)(sizeof taken / sizeof taken[0]) && taken[x] > 0 ? taken[x] : 1;

        for (int i = 0; i < times; i++) {
            snprintf(ask, sizeof ask, "a%d-%d account=acc x=%d", x, i, x);
            CHECK_STR(world_ask(&w, 0, ask), "granted");
        }
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        CHECK_STR(world_ask(&w, 0, more[i]), "queued");
    CHECK_EQ(ration_engine_pause(w.engine, ration_time_of(0), &paused), RATION_OK);
}

static void the_few_that_matter_most(void **state)
{
    static const struct {
        const char *why;
        size_t most;
        const char *want;
    } rows[] = {
        {"one: it is paused", 1, "p/zz@x=7 1 of 4; "},
        {"two: and the one with the most waiters", 2, "p/zz@x=5 4 of 4 2 wait; p/zz@x=7 1 of 4; "},
        {"three: with a waiter", 3, "p/zz@x=3 4 of 4 1 wait; p/zz@x=5 4 of 4 2 wait; p/zz@x=7 1 of 4; "},
        {"four: full", 4, "p/zz@x=3 4 of 4 1 wait; p/zz@x=5 4 of 4 2 wait; p/zz@x=6 4 of 4; p/zz@x=7 1 of 4; "},
        {"five: nearly full; of equals the first", 5,
         "p/zz@x=100 3 of 4; p/zz@x=3 4 of 4 1 wait; p/zz@x=5 4 of 4 2 wait; p/zz@x=6 4 of 4; p/zz@x=7 1 of 4; "},
    };
    (void)state;

    few_stand(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_reporter some = {.most = rows[i].most, .counter = say_counter};

        CHECK_ROW(rows[i].why);
        CHECK_STR(report(0, RATION_REPORT_LIMITS, &some), rows[i].want);
    }
    world_fini(&w);
}

/* An allocator that knows the largest block that it was asked for. */
static void *measured_allocate(void *ctx, size_t size)
{
    size_t *const largest = ctx;

    *largest = size > *largest ? size : *largest;
    return malloc(size);
}

static void *measured_resize(void *ctx, void *block, size_t size)
{
    size_t *const largest = ctx;

    *largest = size > *largest ? size : *largest;
    return realloc(block, size);
}

static void measured_release(void *ctx, void *block)
{
    (void)ctx;
    free(block);
}

/* What the few are chosen from takes no memory, so nothing of it is sorted either. */
static void what_is_not_wanted_is_not_gathered(void **state)
{
    size_t largest = 0;
    const ration_allocator mem = {measured_allocate, measured_resize, measured_release, &largest};
    const ration_reporter all = {.counter = say_counter};
    const ration_reporter some = {.most = 10, .counter = say_counter};
    (void)state;

    few_stand(&mem);
    largest = 0;
    (void)report(0, RATION_REPORT_LIMITS, &all);
    CHECK(largest > 300 * sizeof(void *));
    largest = 0;
    (void)report(0, RATION_REPORT_LIMITS, &some);
    CHECK(largest > 0 && largest < 30 * sizeof(void *) * 2);
    world_fini(&w);
}

static void a_report_without_memory_is_an_error_and_harmless(void **state)
{
    failalloc memory;

    (void)state;
    failalloc_init(&memory, UINT64_MAX);
    begin(&memory.allocator);
    CHECK_STR(world_ask(&w, 0, "a account=acc x=1"), "granted");
    for (int kind = RATION_REPORT_STATS; kind <= RATION_REPORT_LEASES; kind++) {
        bool failed = true;

        for (uint64_t at = 0; failed; at++) {
            memory.countdown = at;
            memory.failed = false;
            text[0] = '\0';

            const int err = ration_engine_report(w.engine, ration_time_of(0), (ration_report_kind)kind, &everything);

            failed = memory.failed;
            CHECK_EQ(err, failed ? RATION_ERR_NOMEM : RATION_OK);
            CHECK((text[0] == '\0') == failed);
        }
    }
    world_fini(&w);
    CHECK_EQ(memory.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_come_in_order_of_declaration_and_key),
        cmocka_unit_test(what_providers_refuse_is_counted_by_limit),
        cmocka_unit_test(some_kinds_alone),
        cmocka_unit_test(one_limit_or_key_alone),
        cmocka_unit_test(changes_say_what_was_before),
        cmocka_unit_test(a_report_is_of_its_instant),
        cmocka_unit_test(penalties_follow_and_then_those_of_accounts),
        cmocka_unit_test(leases_come_by_serial),
        cmocka_unit_test(callbacks_may_be_absent),
        cmocka_unit_test(many_keys_are_sorted),
        cmocka_unit_test(the_few_that_matter_most),
        cmocka_unit_test(what_is_not_wanted_is_not_gathered),
        cmocka_unit_test(a_report_without_memory_is_an_error_and_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
