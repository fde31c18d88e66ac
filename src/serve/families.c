/* SPDX-License-Identifier: MIT */
/*
 * The metrics of share and adaptive limits and of breakers.
 *
 * One report fills all families, each into a text of its own, because Prometheus wants the samples of a metric
 * together. Two accounts may replace a limit by rules of their own, whose counters can have one key: those are counted
 * together, as the rest is.
 */
#include "serve/families.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"

#define RN_KINDS ((1u << RATION_KIND_SHARE) | (1u << RATION_KIND_ADAPTIVE))

static const struct family {
    rn_series_kind kind;
    const char *help;
} families_table[RN_FAMILY_COUNT] = {
    [RN_FAMILY_ADAPTIVE_LIMIT] = {{"ration_adaptive_limit", {"provider", "limit", "key"}, 2, true, RN_SERIES_SUM},
                                  "What an adaptive limit stands at."},
    [RN_FAMILY_SHARE_DEFICIT] =
        {{"ration_share_deficit", {"provider", "limit", "key", "tenant"}, 2, true, RN_SERIES_SUM},
         "Unit-seconds that a tenant of a share limit was entitled to, wanted and did not have."},
    [RN_FAMILY_SHARE_WORST_RECLAIM] =
        {{"ration_share_worst_reclaim_seconds", {"provider", "limit", "key", "tenant"}, 2, true, RN_SERIES_LARGEST},
         "The longest that a tenant waited for what it had on loan."},
    [RN_FAMILY_LEASES_OVERRUN] = {{"ration_leases_overrun", {"provider", "limit", "key"}, 2, false, RN_SERIES_SUM},
                                  "Leases at a share limit past their declared end."},
    [RN_FAMILY_BREAKER_STATE] = {{"ration_breaker_state", {"provider", "key"}, 1, false, RN_SERIES_SUM},
                                 "0 closed, 1 half-open, 2 open."},
};

const char *rn_family_name(rn_family family)
{
    return families_table[family].kind.name;
}

const char *rn_family_help(rn_family family)
{
    return families_table[family].help;
}

static void add(rn_families *families, rn_family family, const rn_series_sample *labels, int64_t value, bool again)
{
    rn_series_sample sample = *labels;

    sample.value = value;
    rn_series_add(&families->series[family], &sample, again);
}

/* The same labels as the counter before. */
static bool is_again(rn_families *families, const ration_counter_report *counter)
{
    const bool again = families->last_limit != NULL && strcmp(families->last_provider, counter->provider) == 0 &&
                       strcmp(families->last_limit, counter->limit) == 0 &&
                       rn_text_eq(families->last_key, counter->key);

    families->last_provider = counter->provider;
    families->last_limit = counter->limit;
    families->last_key = counter->key;
    return again;
}

static void share_add(rn_families *families, const ration_counter_report *counter, rn_series_sample *labels, bool again)
{
    add(families, RN_FAMILY_LEASES_OVERRUN, labels, (int64_t)counter->overrun_count, again);
    for (size_t i = 0; i < counter->tenant_count; i++) {
        const ration_tenant_report *tenant = &counter->tenants[i];

        labels->labels[3] = tenant->name;
        /* Unit-milliseconds as millionths of a unit-second. */
        add(families, RN_FAMILY_SHARE_DEFICIT, labels, rn_mul(tenant->deficit_unit_ms, 1000), again);
        add(families, RN_FAMILY_SHARE_WORST_RECLAIM, labels, tenant->worst_reclaim_us, again);
    }
}

static void on_counter(void *ctx, const ration_counter_report *counter)
{
    rn_families *families = ctx;
    const bool again = is_again(families, counter);
    rn_series_sample labels = {
        .labels = {ration_text_of(counter->provider), ration_text_of(counter->limit), counter->key}};

    switch (counter->kind) {
    case RATION_KIND_SHARE:
        share_add(families, counter, &labels, again);
        break;
    case RATION_KIND_ADAPTIVE:
        add(families, RN_FAMILY_ADAPTIVE_LIMIT, &labels, counter->current, again);
        break;
    case RATION_KIND_NONE:
    case RATION_KIND_RATE:
    case RATION_KIND_CONCURRENCY:
    case RATION_KIND_QUOTA:
    case RATION_KIND_COUNT:
        break;
    }
}

static void on_breaker(void *ctx, const ration_breaker_report *breaker)
{
    static const int64_t severity[] = {
        [RATION_BREAKER_CLOSED] = 0, [RATION_BREAKER_HALF_OPEN] = 1, [RATION_BREAKER_OPEN] = 2};
    const rn_series_sample labels = {.labels = {ration_text_of(breaker->provider), breaker->key}};

    add(ctx, RN_FAMILY_BREAKER_STATE, &labels, severity[breaker->state], false);
}

int rn_families_gather(rn_families *families, rn_decider *decider, ration_time now)
{
    const ration_reporter reporter = {.ctx = families, .kinds = RN_KINDS, .counter = on_counter, .breaker = on_breaker};

    families->last_provider = NULL;
    families->last_limit = NULL;
    for (int i = 0; i < RN_FAMILY_COUNT; i++)
        rn_series_init(&families->series[i], &families_table[i].kind);
    int err = decider->ops->report(decider, now, RATION_REPORT_LIMITS, &reporter);
    for (int i = 0; i < RN_FAMILY_COUNT; i++) {
        rn_series_end(&families->series[i]);
        if (err == RATION_OK)
            err = families->series[i].out.err;
    }
    return err;
}

void rn_families_fini(rn_families *families)
{
    for (int i = 0; i < RN_FAMILY_COUNT; i++)
        rn_series_fini(&families->series[i]);
}
