/* SPDX-License-Identifier: MIT */
#include "support/stream_rules.h"

#include <string.h>

#define UNIT RATION_UNIT
#define MS INT64_C(1000)
#define SECOND (1000 * MS)

const char *const stream_accounts[STREAM_ACCOUNTS] = {"one", "two", "three"};
const char *const stream_tenants[STREAM_TENANTS + 1] = {"a", "b", "heavy", "c", "nobody"};
const char *const stream_classes[STREAM_CLASSES + 1] = {"fast", "bulk", "other"};

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};
static const char *const by_both[] = {"account", "var:x"};
static const char *const by_tenant[] = {"tenant"};
static const char *const by_provider[] = {"provider"};
static const char *const gets[] = {"GET"};

static const ration_tenant_share shares[STREAM_TENANTS] = {
    {.name = "a", .weight = 1}, {.name = "b", .weight = 2}, {.name = "heavy", .weight = 3}, {.name = "c", .weight = 1}};
static const ration_class_rule classes[STREAM_CLASSES] = {{"fast", {2, 5}}, {"bulk", {0, 0}}};

#define SHARE_OF(...)                                                                                                  \
    {                                                                                                                  \
        .tenants = shares, .tenant_count = STREAM_TENANTS, .reclaim_horizon_us = 100 * MS, .idle_after_us = 400 * MS,  \
        __VA_ARGS__                                                                                                    \
    }

/* Every kind, overlapping scopes. */
static const ration_limit_rule limits[] = {
    {.name = "calls",
     .kind = RATION_KIND_RATE,
     .scope = by_account,
     .scope_count = 1,
     .rate = {30 * UNIT, 7 * SECOND},
     .burst = 6 * UNIT,
     .margin = RATION_UNSET},
    {.name = "cost",
     .kind = RATION_KIND_RATE,
     .counts = RATION_COUNTS_COST,
     .scope = by_x,
     .scope_count = 1,
     .rate = {11 * UNIT, SECOND},
     .burst = 9 * UNIT,
     .margin = RATION_UNSET},
    {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = 5 * UNIT},
    {.name = "tokens",
     .kind = RATION_KIND_CONCURRENCY,
     .counts = RATION_COUNTS_COST,
     .scope = by_x,
     .scope_count = 1,
     .max = 8 * UNIT},
    {.name = "minute",
     .kind = RATION_KIND_QUOTA,
     .scope = by_account,
     .scope_count = 1,
     .max = 40 * UNIT,
     .window = {.period = RATION_PERIOD_MINUTE},
     .arrival_us = RATION_UNSET,
     .sync = {.limit_header = "x-limit", .remaining_header = "x-left", .reset_header = "x-reset"}},
    {.name = "patient",
     .kind = RATION_KIND_QUOTA,
     .counts = RATION_COUNTS_COST,
     .scope = by_both,
     .scope_count = 2,
     .max = 30 * UNIT,
     .window = {.rolling_us = 30 * SECOND},
     .when_exhausted = RATION_EXHAUSTED_WAIT,
     .arrival_us = RATION_UNSET,
     .sync = {.standard = true}},
    {.name = "reads",
     .kind = RATION_KIND_CONCURRENCY,
     .scope = by_tenant,
     .scope_count = 1,
     .max = 2 * UNIT,
     .methods = gets,
     .method_count = 1},
    {.name = "watched",
     .kind = RATION_KIND_CONCURRENCY,
     .scope = by_provider,
     .scope_count = 1,
     .max = 2 * UNIT,
     .enforce = RATION_ENFORCE_SHADOW},
    {.name = "fair",
     .kind = RATION_KIND_SHARE,
     .counts = RATION_COUNTS_COST,
     .scope = by_account,
     .scope_count = 1,
     .share = SHARE_OF(.ceiling = 12 * UNIT)},
    {.name = "follows",
     .kind = RATION_KIND_SHARE,
     .counts = RATION_COUNTS_REQUESTS,
     .scope = by_account,
     .scope_count = 1,
     .share = SHARE_OF(.follows = "learns", .unknown_tenant = "b")},
    {.name = "fancied",
     .kind = RATION_KIND_SHARE,
     .counts = RATION_COUNTS_REQUESTS,
     .scope = by_provider,
     .scope_count = 1,
     .enforce = RATION_ENFORCE_SHADOW,
     .share = SHARE_OF(.ceiling = 3 * UNIT)},
    {.name = "learns",
     .kind = RATION_KIND_ADAPTIVE,
     .scope = by_account,
     .scope_count = 1,
     .adaptive = {.initial_limit = 3, .max_limit = 9, .window_us = 600 * MS, .cooldown_us = SECOND}},
};
static const ration_limit_rule limits_q[] = {
    {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = 2 * UNIT},
};
static const ration_endpoint_rule endpoints[] = {
    {.path = "/x/{x}", .defaults = {.cost = 2 * UNIT, .hold_us = 40 * MS}},
    {.path = "/free", .defaults = {.has_cost = true, .priority = RATION_PRIORITY_LOW}},
};
static const ration_account_rule accounts[STREAM_ACCOUNTS] = {{.name = "one", .provider = "p"},
                                                              {.name = "two", .provider = "p", .share = {3, 4}},
                                                              {.name = "three", .provider = "q"}};
static const ration_tenant_rule weights[] = {{"heavy", 3}};

static const ration_breaker_rule breakers[] = {
    {.strategy = RATION_BREAKER_NONE},
    {.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 2, .backoff_initial_us = 300 * MS},
    {.strategy = RATION_BREAKER_COUNT,
     .ratio = {1, 2},
     .size = 5,
     .minimum_calls = 3,
     .backoff_initial_us = 200 * MS,
     .backoff_multiplier = {3, 2},
     .backoff_max_us = 2 * SECOND},
    {.strategy = RATION_BREAKER_SAMPLING,
     .ratio = {1, 3},
     .duration_us = 2 * SECOND,
     .minimum_calls = 2,
     .backoff_initial_us = 500 * MS},
};

const ration_limit_rule *stream_limit(const stream_rules *rules, const char *name)
{
    for (size_t i = 0; i < rules->limit_count; i++) {
        if (strcmp(rules->limits[i].name, name) == 0)
            return &rules->limits[i];
    }
    return NULL;
}

static void share_draw(ration_share_rule *share, stream_choose_fn *choose, void *ctx)
{
    const ration_ratio half = {1, 2};

    if (choose(ctx, 1) != 0)
        share->unknown_tenant = "b";
    share->freeze_wanted = choose(ctx, 2) == 2;
    if (choose(ctx, 3) == 3)
        share->cooldown_us = SECOND;
    if (choose(ctx, 3) == 3)
        share->lend = half;
}

static void adaptive_draw(ration_adaptive_rule *adaptive, stream_choose_fn *choose, void *ctx)
{
    if (choose(ctx, 1) != 0) {
        adaptive->classes = classes;
        adaptive->class_count = STREAM_CLASSES;
    }
    if (choose(ctx, 1) != 0) {
        adaptive->lend_horizon_us = 100 * MS;
        adaptive->lend_idle_us = 400 * MS;
    }
    adaptive->recovery_fast = choose(ctx, 1) != 0;
    adaptive->pause_on_retry_after = choose(ctx, 2) == 2;
}

static void breaker_draw(ration_breaker_rule *breaker, stream_choose_fn *choose, void *ctx)
{
    static const char *const *const scopes[] = {NULL, by_provider, by_x};

    *breaker = breakers[choose(ctx, 3)];
    if (breaker->strategy == RATION_BREAKER_NONE)
        return;
    breaker->probes = 1 + (int64_t)choose(ctx, 1);
    breaker->scope = scopes[choose(ctx, 2)];
    breaker->scope_count = breaker->scope != NULL ? 1 : 0;
    breaker->check_path = "/health";
    if (choose(ctx, 2) == 2)
        breaker->recovery = RATION_RECOVERY_HEALTH_CHECK;
    if (choose(ctx, 2) == 2)
        breaker->idle_interval_us = 3 * SECOND;
}

void stream_rules_draw(stream_rules *out, stream_choose_fn *choose, void *ctx)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        ration_limit_rule *limit = &out->limits[out->limit_count];

        *limit = limits[i];
        /* Who follows needs whom it follows, which comes last. */
        if (choose(ctx, 1) == 0 && !(i > 0 && strcmp(limit->name, "learns") == 0 && stream_limit(out, "follows")))
            continue;
        out->limit_count++;
        if (limit->kind == RATION_KIND_SHARE)
            share_draw(&limit->share, choose, ctx);
        if (limit->kind == RATION_KIND_ADAPTIVE)
            adaptive_draw(&limit->adaptive, choose, ctx);
    }
    breaker_draw(&out->breaker, choose, ctx);
    out->providers[0] = (ration_provider_rule){
        .name = "p",
        .limits = out->limits,
        .limit_count = out->limit_count,
        .endpoints = endpoints,
        .endpoint_count = 2,
        .breaker = out->breaker,
    };
    out->providers[1] = (ration_provider_rule){
        .name = "q", .limits = limits_q, .limit_count = 1, .errors = {.penalize = RATION_PENALIZE_ALL}};
    out->rules = (ration_rules){
        .providers = out->providers,
        .provider_count = 2,
        .accounts = accounts,
        .account_count = STREAM_ACCOUNTS,
        .tenants = weights,
        .tenant_count = 1,
        .max_waiters = 12,
        .max_waiters_per_tenant = 8,
    };
}
