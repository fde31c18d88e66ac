/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_RELOAD_H
#define TESTS_SUPPORT_RELOAD_H

/* One world whose rules are reloaded: accounts "acc" and "bcc" at provider "p", limits by account, named "l". */

#include <ration/operate.h>
#include <ration/state.h>

#include "support/check.h"
#include "support/world.h"

#include <stdio.h>

#define MS(n) ((int64_t)(n)*1000)
#define UNIT RATION_UNIT
#define HOUR_US (3600 * INT64_C(1000000))

static world w;

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"account", "var:x"};

#define LIMIT(NAME, KIND, ...)                                                                                         \
    {                                                                                                                  \
        .name = (NAME), .kind = RATION_KIND_##KIND, .scope = by_account, .scope_count = 1, .arrival_us = RATION_UNSET, \
        __VA_ARGS__                                                                                                    \
    }
#define SLOTS(MAX) LIMIT("l", CONCURRENCY, .max = (MAX)*UNIT)
#define RATE(UNITS, BURST) LIMIT("l", RATE, .rate = {(UNITS)*UNIT, 1000000}, .burst = (BURST)*UNIT, .margin = 0)
#define QUOTA(MAX, ...) LIMIT("l", QUOTA, .max = (MAX)*UNIT, __VA_ARGS__)
#define HOURLY .window = {.period = RATION_PERIOD_HOUR}

static inline void rules_of(ration_rules *rules, ration_provider_rule *provider, ration_account_rule accounts[2],
                            const ration_limit_rule *limits, size_t count)
{
    world_rules(rules, provider, accounts, limits, count);
    accounts[1].share = (ration_ratio){1, 1};
}

/* One limit, or none. */
static inline void begin(const ration_limit_rule *limit)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    rules_of(&rules, &provider, accounts, limit, limit != NULL ? 1 : 0);
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
}

static inline int reload_rules(int64_t at_us, const ration_rules *rules)
{
    return ration_engine_reload(w.engine, ration_time_of(at_us), rules, NULL);
}

static inline void reload(int64_t at_us, const ration_limit_rule *limits, size_t count)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    rules_of(&rules, &provider, accounts, limits, count);
    CHECK_EQ(reload_rules(at_us, &rules), RATION_OK);
}

static inline const char *ask(int64_t at_us, const char *request)
{
    return world_ask(&w, at_us, request);
}

static inline const char *end(int64_t at_us, const char *name)
{
    return world_release(&w, at_us, name, RATION_OUTCOME_SUCCESS, RATION_UNSET);
}

static inline void row_take(void *ctx, const ration_counter_report *row)
{
    *(ration_counter_report *)ctx = *row;
}

/* The last counter that there is; its limit is absent where there is none. */
static inline ration_counter_report report(int64_t at_us)
{
    ration_counter_report row = {0};
    const ration_reporter reporter = {.ctx = &row, .counter = row_take};

    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(at_us), RATION_REPORT_STATS, &reporter), RATION_OK);
    return row;
}

#define SHARE(TENANTS, COUNT, ...)                                                                                     \
    LIMIT("l", SHARE, .counts = RATION_COUNTS_COST,                                                                    \
          .share = {.tenants = (TENANTS),                                                                              \
                    .tenant_count = (COUNT),                                                                           \
                    .reclaim_horizon_us = MS(100),                                                                     \
                    .idle_after_us = MS(200),                                                                          \
                    __VA_ARGS__})

#endif
