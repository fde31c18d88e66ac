/* SPDX-License-Identifier: MIT */
/*
 * The metrics of share and adaptive limits, of quotas and of breakers.
 *
 * One report fills all families, each into a text of its own, because Prometheus wants the samples of a metric
 * together. Two accounts may replace a limit by rules of their own, whose counters can have one key: those are counted
 * together, as the rest is.
 */
#include "serve/families.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/projections.h"

#define RN_KINDS ((1u << RATION_KIND_SHARE) | (1u << RATION_KIND_ADAPTIVE) | (1u << RATION_KIND_QUOTA))
#define SECOND_US INT64_C(1000000)
#define RECENT "pace=\"15m\""
#define AVERAGE "pace=\"window\""

/* Of a limit's counters, or of the tenants at them, in millionths. */
#define BY_KEY .labels = {"provider", "limit", "key"}, .fixed = 2, .micro = true
#define BY_TENANT .labels = {"provider", "limit", "key", "tenant"}, .fixed = 2, .micro = true
#define SOONEST .smallest = true, .rest = RN_SERIES_SMALLEST

static const struct family {
    rn_series_kind kind;
    const char *help;
} families_table[RN_FAMILY_COUNT] = {
    [RN_FAMILY_THROTTLED] = {{.name = "ration_rate_limited_total", .labels = {"provider", "limit"}, .fixed = 2},
                             "Responses by which a provider said \"too many\", by the narrowest limit of the call; an "
                             "empty one: it had none."},
    [RN_FAMILY_ADAPTIVE_LIMIT] = {{.name = "ration_adaptive_limit", BY_KEY}, "What an adaptive limit stands at."},
    [RN_FAMILY_SHARE_DEFICIT] = {{.name = "ration_share_deficit", BY_TENANT},
                                 "Unit-seconds that a tenant of a share limit was entitled to, wanted and did not "
                                 "have."},
    [RN_FAMILY_SHARE_WORST_RECLAIM] = {{.name = "ration_share_worst_reclaim_seconds",
                                        BY_TENANT,
                                        .rest = RN_SERIES_LARGEST},
                                       "The longest that a tenant waited for what it had on loan."},
    [RN_FAMILY_LEASES_OVERRUN] = {{.name = "ration_leases_overrun", .labels = {"provider", "limit", "key"}, .fixed = 2},
                                  "Leases at a share limit past their declared end."},
    [RN_FAMILY_BREAKER_STATE] = {{.name = "ration_breaker_state", .labels = {"provider", "key"}, .fixed = 1},
                                 "0 closed, 1 half-open, 2 open."},
    [RN_FAMILY_BUDGET_USED] = {{.name = "ration_budget_used", BY_KEY},
                               "Units of a quota that have been spent here in its window."},
    [RN_FAMILY_BUDGET_REMAINING] = {{.name = "ration_budget_remaining", BY_KEY, .smallest = true},
                                    "Units of a quota that are left, the reserve among them."},
    [RN_FAMILY_BUDGET_EXTERNAL] = {{.name = "ration_budget_external_usage", BY_KEY},
                                   "Units of a quota that others have spent in its window, by the provider's word."},
    [RN_FAMILY_RATE_RECENT] = {{.name = "ration_budget_rate", BY_KEY, .always = RECENT},
                               "Units of a quota spent a second: in the last 15 minutes, and since its window began."},
    [RN_FAMILY_RATE_AVERAGE] = {{.name = "ration_budget_rate", BY_KEY, .always = AVERAGE}, ""},
    [RN_FAMILY_PROJECTED_RECENT] = {{.name = "ration_budget_projected", BY_KEY, .always = RECENT},
                                    "Units of a quota that will have been spent here when its window ends, at either "
                                    "pace."},
    [RN_FAMILY_PROJECTED_AVERAGE] = {{.name = "ration_budget_projected", BY_KEY, .always = AVERAGE}, ""},
    [RN_FAMILY_ETA_RECENT] = {{.name = "ration_budget_exhaustion_eta_seconds", BY_KEY, SOONEST, .always = RECENT},
                              "In how long a quota will be spent but for its reserve, at either pace; absent if not "
                              "within its window."},
    [RN_FAMILY_ETA_AVERAGE] = {{.name = "ration_budget_exhaustion_eta_seconds", BY_KEY, SOONEST, .always = AVERAGE},
                               ""},
    [RN_FAMILY_DISAGREEMENT] = {{.name = "ration_limit_disagreement", BY_KEY},
                                "By how much a provider's own maximum of a quota is above the declared one (below: "
                                "negative); absent where they agree."},
};

const char *rn_family_name(rn_family family)
{
    return families_table[family].kind.name;
}

const char *rn_family_type(rn_family family)
{
    return family == RN_FAMILY_THROTTLED ? "counter" : "gauge";
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

/* What follows from one pace; nothing if it is not known. */
static void forecast_add(rn_families *families, const ration_forecast *pace, const rn_family into[3],
                         const rn_series_sample *labels, bool again)
{
    if (pace->span_us > 0) {
        add(families, into[0], labels, rn_quota_rate(pace, SECOND_US), again);
        add(families, into[1], labels, pace->at_end, again);
    }
    if (rn_time_known(pace->exhausted_at))
        add(families, into[2], labels, rn_sub(pace->exhausted_at.us, families->now.us), again);
}

static void quota_add(rn_families *families, const ration_counter_report *counter, const rn_series_sample *labels,
                      bool again)
{
    static const rn_family recent[] = {RN_FAMILY_RATE_RECENT, RN_FAMILY_PROJECTED_RECENT, RN_FAMILY_ETA_RECENT};
    static const rn_family average[] = {RN_FAMILY_RATE_AVERAGE, RN_FAMILY_PROJECTED_AVERAGE, RN_FAMILY_ETA_AVERAGE};
    ration_projection projection;
    int64_t by = 0;

    add(families, RN_FAMILY_BUDGET_USED, labels, counter->used, again);
    add(families, RN_FAMILY_BUDGET_REMAINING, labels, counter->remaining, again);
    add(families, RN_FAMILY_BUDGET_EXTERNAL, labels, counter->external, again);
    if (rn_quota_disagrees(families->rules, counter, &by))
        add(families, RN_FAMILY_DISAGREEMENT, labels, by, again);
    if (!rn_quota_project(counter, families->now, &projection))
        return;
    if (counter->timeline.count > 0)
        forecast_add(families, &projection.recent, recent, labels, again);
    forecast_add(families, &projection.average, average, labels, again);
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
    case RATION_KIND_QUOTA:
        quota_add(families, counter, &labels, again);
        break;
    case RATION_KIND_NONE:
    case RATION_KIND_RATE:
    case RATION_KIND_CONCURRENCY:
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

static void on_throttled(void *ctx, const ration_throttled_report *throttled)
{
    const rn_series_sample labels = {.labels = {ration_text_of(throttled->provider), ration_text_of(throttled->limit)}};

    add(ctx, RN_FAMILY_THROTTLED, &labels, throttled->count > INT64_MAX ? INT64_MAX : (int64_t)throttled->count, false);
}

static int families_gather(rn_families *families, rn_decider *decider)
{
    ration_totals totals;

    decider->ops->totals(decider, &totals);
    const ration_reporter reporter = {.ctx = families,
                                      .kinds = RN_KINDS,
                                      .timelines = totals.counters <= RN_PROJECTED_MAX,
                                      .counter = on_counter,
                                      .breaker = on_breaker,
                                      .throttled = on_throttled};

    int err = decider->ops->report(decider, families->now, RATION_REPORT_LIMITS, &reporter);
    for (int i = 0; i < RN_FAMILY_COUNT; i++) {
        rn_series_end(&families->series[i]);
        if (err == RATION_OK)
            err = families->series[i].out.err;
    }
    return err;
}

int rn_families_new(rn_decider *decider, const ration_rules *rules, ration_time now, rn_families **out)
{
    rn_families *families = rn_mem_zalloc(rn_mem_default(), 1, sizeof *families);

    if (families == NULL)
        return RATION_ERR_NOMEM;
    families->rules = rules;
    families->now = now;
    for (int i = 0; i < RN_FAMILY_COUNT; i++)
        rn_series_init(&families->series[i], &families_table[i].kind);
    const int err = families_gather(families, decider);
    if (err != RATION_OK) {
        rn_families_free(families);
        return err;
    }
    *out = families;
    return RATION_OK;
}

void rn_families_free(rn_families *families)
{
    if (families == NULL)
        return;
    for (int i = 0; i < RN_FAMILY_COUNT; i++)
        rn_series_fini(&families->series[i]);
    rn_mem_free(rn_mem_default(), families);
}
