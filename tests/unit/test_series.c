/* SPDX-License-Identifier: MIT */
/* Metrics with labels from outside: the largest few, the rest together; labels that would break a scrape. */
#include <stdio.h>

#include "base/text.h"
#include "serve/families.h"
#include "serve/projections.h"

#include "support/check.h"

static const rn_series_kind sums = {.name = "m", .labels = {"limit", "key"}, .fixed = 1};
static const rn_series_kind largest = {
    .name = "m", .labels = {"limit", "key"}, .fixed = 1, .micro = true, .rest = RN_SERIES_LARGEST};

static const rn_series_kind left = {
    .name = "m", .labels = {"limit", "key"}, .fixed = 1, .micro = true, .smallest = true};
static const rn_series_kind smallest = {.name = "m",
                                        .labels = {"limit", "key"},
                                        .fixed = 1,
                                        .rest = RN_SERIES_SMALLEST,
                                        .smallest = true,
                                        .always = "pace=\"x\""};

static void add(rn_series *series, const char *limit, const char *key, int64_t value, bool again)
{
    const rn_series_sample sample = {.labels = {ration_text_of(limit), ration_text_of(key)}, .value = value};

    rn_series_add(series, &sample, again);
}

static void check_text_of(rn_series *series, const char *want)
{
    rn_series_end(series);
    CHECK_EQ(series->out.err, RATION_OK);
    CHECK_TEXT(((ration_text){series->out.size > 0 ? series->out.data : "", series->out.size}), want);
    rn_series_fini(series);
}

static void test_order(void **state)
{
    rn_series series;
    (void)state;

    CHECK_ROW("nothing");
    rn_series_init(&series, &sums);
    check_text_of(&series, "");

    CHECK_ROW("the largest first, of equals the first come");
    rn_series_init(&series, &sums);
    add(&series, "l", "a", 1, false);
    add(&series, "l", "b", 3, false);
    add(&series, "l", "c", 1, false);
    add(&series, "l", "d", 2, false);
    check_text_of(&series, "m{limit=\"l\",key=\"b\"} 3\nm{limit=\"l\",key=\"d\"} 2\n"
                           "m{limit=\"l\",key=\"a\"} 1\nm{limit=\"l\",key=\"c\"} 1\n");

    CHECK_ROW("each group by itself");
    rn_series_init(&series, &sums);
    add(&series, "l", "a", 1, false);
    add(&series, "k", "a", 2, false);
    check_text_of(&series, "m{limit=\"l\",key=\"a\"} 1\nm{limit=\"k\",key=\"a\"} 2\n");

    CHECK_ROW("the smallest first, and a label that all have");
    rn_series_init(&series, &smallest);
    add(&series, "l", "a", 2, false);
    add(&series, "l", "b", 1, false);
    add(&series, "l", "c", 2, false);
    check_text_of(&series, "m{limit=\"l\",key=\"b\",pace=\"x\"} 1\nm{limit=\"l\",key=\"a\",pace=\"x\"} 2\n"
                           "m{limit=\"l\",key=\"c\",pace=\"x\"} 2\n");

    CHECK_ROW("millionths");
    rn_series_init(&series, &largest);
    add(&series, "l", "a", 1500000, false);
    check_text_of(&series, "m{limit=\"l\",key=\"a\"} 1.5\n");
}

/* `count` keys with the values 1 to count, in this order or the other. */
static void fill(rn_series *series, const char *limit, int64_t count, bool falling)
{
    static char keys[100][8];

    for (int64_t i = 0; i < count; i++) {
        const int64_t value = falling ? count - i : i + 1;

        (void)snprintf(keys[value], sizeof keys[value], "k%d", (int)value);
        add(series, limit, keys[value], value, false);
    }
}

static void test_rest(void **state)
{
    static const struct {
        const char *why;
        const rn_series_kind *kind;
        int64_t count;
        bool falling;
        const char *last; /* line */
        size_t lines;
    } rows[] = {
        {"as many as there is room for", &sums, RN_SERIES_TOP, false, "m{limit=\"l\",key=\"k1\"} 1\n", RN_SERIES_TOP},
        {"one more is the rest", &sums, RN_SERIES_TOP + 1, false, "m{limit=\"l\",key=\"*\"} 1\n", RN_SERIES_TOP + 1},
        {"whichever comes first", &sums, RN_SERIES_TOP + 1, true, "m{limit=\"l\",key=\"*\"} 1\n", RN_SERIES_TOP + 1},
        {"the sum of ten", &sums, RN_SERIES_TOP + 10, false, "m{limit=\"l\",key=\"*\"} 55\n", RN_SERIES_TOP + 1},
        {"the largest of ten", &largest, RN_SERIES_TOP + 10, false, "m{limit=\"l\",key=\"*\"} 0.00001\n",
         RN_SERIES_TOP + 1},
        {"the sum of the ten largest: 21 to 30", &left, RN_SERIES_TOP + 10, false,
         "m{limit=\"l\",key=\"*\"} 0.000255\n", RN_SERIES_TOP + 1},
        {"the smallest of them", &smallest, RN_SERIES_TOP + 10, false, "m{limit=\"l\",key=\"*\",pace=\"x\"} 21\n",
         RN_SERIES_TOP + 1},
        {"the smallest, falling", &smallest, RN_SERIES_TOP + 10, true, "m{limit=\"l\",key=\"*\",pace=\"x\"} 21\n",
         RN_SERIES_TOP + 1},
        {"falling", &largest, RN_SERIES_TOP + 10, true, "m{limit=\"l\",key=\"*\"} 0.00001\n", RN_SERIES_TOP + 1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_series series;
        size_t lines = 0;

        CHECK_ROW(rows[i].why);
        rn_series_init(&series, rows[i].kind);
        fill(&series, "l", rows[i].count, rows[i].falling);
        rn_series_end(&series);
        for (size_t j = 0; j < series.out.size; j++)
            lines += series.out.data[j] == '\n';
        CHECK_EQ(lines, rows[i].lines);
        const size_t size = strlen(rows[i].last);
        CHECK_TEXT(((ration_text){series.out.data + series.out.size - size, size}), rows[i].last);
        rn_series_fini(&series);
    }
}

/* The first come of equals stays. */
static void test_rest_of_equals(void **state)
{
    rn_series series;
    char key[RN_SERIES_TOP + 1][8];
    (void)state;

    rn_series_init(&series, &sums);
    for (size_t i = 0; i < RN_SERIES_TOP + 1; i++) {
        (void)snprintf(key[i], sizeof key[i], "k%zu", i);
        add(&series, "l", key[i], 7, false);
    }
    CHECK_TEXT(series.top[RN_SERIES_TOP - 1].labels[1], key[RN_SERIES_TOP - 1]);
    rn_series_fini(&series);
}

static void test_names(void **state)
{
    static const struct {
        const char *why, *key, *want;
    } rows[] = {
        {"quotes, backslashes, line ends", "a\"b\\c\nd", "m{limit=\"l\",key=\"a\\\"b\\\\c\\nd\"} 1\n"},
        {"UTF-8", "\xC3\xA9", "m{limit=\"l\",key=\"\xC3\xA9\"} 1\n"},
        {"no UTF-8", "\xC3g", "m{limit=\"l\",key=\"?g\"} 1\n"},
        {"one that is called like the rest, alone", "*", "m{limit=\"l\",key=\"*\"} 1\n"},
        {"empty", "", "m{limit=\"l\",key=\"\"} 1\n"},
    };
    rn_series series;
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        rn_series_init(&series, &sums);
        add(&series, "l", rows[i].key, 1, false);
        check_text_of(&series, rows[i].want);
    }
    CHECK_ROW("no two series have the same labels");
    rn_series_init(&series, &sums);
    add(&series, "l", "*", 1, false);
    add(&series, "l", "a", 2, false);
    add(&series, "l", "a", 4, true);
    add(&series, "l", "*", 8, false);
    check_text_of(&series, "m{limit=\"l\",key=\"a\"} 2\nm{limit=\"l\",key=\"*\"} 13\n");
}

/* ---- from a report */

typedef struct reporter_decider {
    rn_decider base;
    uint32_t kinds;
    uint64_t counters;
    bool timelines;
} reporter_decider;

static void fake_totals(const rn_decider *d, ration_totals *out)
{
    *out = (ration_totals){.counters = ((const reporter_decider *)(const void *)d)->counters};
}

/* 100 s into a window of 1000: 60 of 100 are spent, 40 of them in the last 50 s. */
static const int64_t spent[] = {20000000, 40000000};

static int fake_report(rn_decider *d, ration_time now, ration_report_kind kind, const ration_reporter *reporter)
{
    static const ration_tenant_report tenants[] = {
        {.name = {"x", 1}, .deficit_unit_ms = 4500, .worst_reclaim_us = 90000},
        {.name = {"y", 1}},
    };
    const ration_counter_report counters[] = {
        {.provider = "p", .limit = "rate", .kind = RATION_KIND_RATE, .key = {"a", 1}},
        {.provider = "p",
         .limit = "tokens",
         .kind = RATION_KIND_SHARE,
         .key = {"a", 1},
         .tenants = tenants,
         .tenant_count = 2,
         .overrun_count = 3},
        {.provider = "p", .limit = "slots", .kind = RATION_KIND_ADAPTIVE, .key = {"a", 1}, .current = 7000000},
        {.provider = "p", .limit = "slots", .kind = RATION_KIND_ADAPTIVE, .key = {"a", 1}, .current = 2000000},
        {.provider = "q", .limit = "slots", .kind = RATION_KIND_ADAPTIVE, .key = {"a", 1}, .current = 1000000},
        {.provider = "q",
         .limit = "daily",
         .kind = RATION_KIND_QUOTA,
         .key = {"a", 1},
         .max = 120000000,
         .usable = 100000000,
         .used = 60000000,
         .external = 5000000,
         .remaining = 35000000,
         .window_end = {1000000000},
         .timeline = {.width_us = 50000000, .units = spent, .count = reporter->timelines ? 2 : 0}},
        {.provider = "q",
         .limit = "daily",
         .kind = RATION_KIND_QUOTA,
         .key = {"b", 1},
         .max = 100000000,
         .usable = 100000000,
         .remaining = 100000000,
         .window_end = {1000000000}},
    };
    const ration_breaker_report breakers[] = {
        {.provider = "p", .key = {"a", 1}, .state = RATION_BREAKER_CLOSED},
        {.provider = "p", .key = {"b", 1}, .state = RATION_BREAKER_OPEN},
        {.provider = "p", .key = {"c", 1}, .state = RATION_BREAKER_HALF_OPEN},
    };

    (void)now;
    CHECK_EQ(kind, RATION_REPORT_LIMITS);
    ((reporter_decider *)(void *)d)->kinds = reporter->kinds;
    ((reporter_decider *)(void *)d)->timelines = reporter->timelines;
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        reporter->counter(reporter->ctx, &counters[i]);
    for (size_t i = 0; i < sizeof breakers / sizeof breakers[0]; i++)
        reporter->breaker(reporter->ctx, &breakers[i]);
    return RATION_OK;
}

static const rn_decider_ops ops = {.report = fake_report, .totals = fake_totals};
static const ration_limit_rule limits[] = {{.name = "daily", .kind = RATION_KIND_QUOTA, .max = 100000000}};
static const ration_provider_rule providers[] = {{.name = "q", .limits = limits, .limit_count = 1}};
static const ration_rules rules = {.providers = providers, .provider_count = 1};

static void test_families(void **state)
{
    static const struct {
        rn_family family;
        const char *want;
    } rows[] = {
        {RN_FAMILY_ADAPTIVE_LIMIT, "ration_adaptive_limit{provider=\"p\",limit=\"slots\",key=\"a\"} 7\n"
                                   "ration_adaptive_limit{provider=\"p\",limit=\"slots\",key=\"*\"} 2\n"
                                   "ration_adaptive_limit{provider=\"q\",limit=\"slots\",key=\"a\"} 1\n"},
        {RN_FAMILY_SHARE_DEFICIT, "ration_share_deficit{provider=\"p\",limit=\"tokens\",key=\"a\",tenant=\"x\"} 4.5\n"
                                  "ration_share_deficit{provider=\"p\",limit=\"tokens\",key=\"a\",tenant=\"y\"} 0\n"},
        {RN_FAMILY_SHARE_WORST_RECLAIM,
         "ration_share_worst_reclaim_seconds{provider=\"p\",limit=\"tokens\",key=\"a\",tenant=\"x\"} 0.09\n"
         "ration_share_worst_reclaim_seconds{provider=\"p\",limit=\"tokens\",key=\"a\",tenant=\"y\"} 0\n"},
        {RN_FAMILY_LEASES_OVERRUN, "ration_leases_overrun{provider=\"p\",limit=\"tokens\",key=\"a\"} 3\n"},
        {RN_FAMILY_BREAKER_STATE, "ration_breaker_state{provider=\"p\",key=\"b\"} 2\n"
                                  "ration_breaker_state{provider=\"p\",key=\"c\"} 1\n"
                                  "ration_breaker_state{provider=\"p\",key=\"a\"} 0\n"},
        {RN_FAMILY_BUDGET_USED, "ration_budget_used{provider=\"q\",limit=\"daily\",key=\"a\"} 60\n"
                                "ration_budget_used{provider=\"q\",limit=\"daily\",key=\"b\"} 0\n"},
        {RN_FAMILY_BUDGET_REMAINING, "ration_budget_remaining{provider=\"q\",limit=\"daily\",key=\"a\"} 35\n"
                                     "ration_budget_remaining{provider=\"q\",limit=\"daily\",key=\"b\"} 100\n"},
        {RN_FAMILY_BUDGET_EXTERNAL, "ration_budget_external_usage{provider=\"q\",limit=\"daily\",key=\"a\"} 5\n"
                                    "ration_budget_external_usage{provider=\"q\",limit=\"daily\",key=\"b\"} 0\n"},
        {RN_FAMILY_RATE_RECENT, "ration_budget_rate{provider=\"q\",limit=\"daily\",key=\"a\",pace=\"15m\"} 0.6\n"},
        {RN_FAMILY_RATE_AVERAGE, "ration_budget_rate{provider=\"q\",limit=\"daily\",key=\"a\",pace=\"window\"} 0.6\n"
                                 "ration_budget_rate{provider=\"q\",limit=\"daily\",key=\"b\",pace=\"window\"} 0\n"},
        /* 60, and 900 s more at 0.6 a second */
        {RN_FAMILY_PROJECTED_RECENT,
         "ration_budget_projected{provider=\"q\",limit=\"daily\",key=\"a\",pace=\"15m\"} 600\n"},
        {RN_FAMILY_PROJECTED_AVERAGE,
         "ration_budget_projected{provider=\"q\",limit=\"daily\",key=\"a\",pace=\"window\"} 600\n"
         "ration_budget_projected{provider=\"q\",limit=\"daily\",key=\"b\",pace=\"window\"} 0\n"},
        /* 35 are left, and others take 0.05 a second too: 35 / 0.65 */
        {RN_FAMILY_ETA_RECENT,
         "ration_budget_exhaustion_eta_seconds{provider=\"q\",limit=\"daily\",key=\"a\",pace=\"15m\"} 53.846153\n"},
        {RN_FAMILY_ETA_AVERAGE,
         "ration_budget_exhaustion_eta_seconds{provider=\"q\",limit=\"daily\",key=\"a\",pace=\"window\"} 53.846153\n"},
        {RN_FAMILY_DISAGREEMENT, "ration_limit_disagreement{provider=\"q\",limit=\"daily\",key=\"a\"} 20\n"},
    };
    reporter_decider decider = {.base = {&ops}, .counters = RN_PROJECTED_MAX};
    rn_families *families = NULL;
    (void)state;

    CHECK_EQ(rn_families_new(&decider.base, &rules, ration_time_of(100000000), &families), RATION_OK);
    CHECK_EQ(decider.kinds, (1u << RATION_KIND_SHARE) | (1u << RATION_KIND_ADAPTIVE) | (1u << RATION_KIND_QUOTA));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_output *out = &families->series[rows[i].family].out;

        CHECK_ROW(rn_family_name(rows[i].family));
        CHECK_TEXT(((ration_text){out->data, out->size}), rows[i].want);
    }
    rn_families_free(families);
}

/* With very many counters nobody asks for timelines, and what needs them is not told. */
static void test_many_counters(void **state)
{
    reporter_decider decider = {.base = {&ops}, .counters = RN_PROJECTED_MAX + 1};
    rn_families *families = NULL;
    (void)state;

    CHECK_EQ(rn_families_new(&decider.base, &rules, ration_time_of(100000000), &families), RATION_OK);
    CHECK(!decider.timelines);
    CHECK_EQ(families->series[RN_FAMILY_RATE_RECENT].out.size, 0);
    CHECK(families->series[RN_FAMILY_RATE_AVERAGE].out.size > 0);
    rn_families_free(families);

    decider.counters--;
    CHECK_EQ(rn_families_new(&decider.base, &rules, ration_time_of(100000000), &families), RATION_OK);
    CHECK(decider.timelines);
    rn_families_free(families);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order), cmocka_unit_test(test_rest),     cmocka_unit_test(test_rest_of_equals),
        cmocka_unit_test(test_names), cmocka_unit_test(test_families), cmocka_unit_test(test_many_counters),
    };

    return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}
