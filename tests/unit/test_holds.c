/* SPDX-License-Identifier: MIT */
/* `hold: auto`: what is declared after what was seen; against the sorted samples; which learner a path has. */
#include <stdlib.h>

#include "serve/holds.h"

#include "support/check.h"

#define MS INT64_C(1000)
#define FLOOR_US (50 * MS)

/* Learn `count` samples of `us` at `at_us`. */
static void learn(rn_hold_learner *hold, int64_t at_us, int64_t us, size_t count, bool whole)
{
    for (size_t i = 0; i < count; i++)
        rn_hold_learn(hold, ration_time_of(at_us), us, whole);
}

/* ---- what is declared */

static void test_declared(void **state)
{
    static const struct {
        const char *why;
        size_t fast, slow;
        int64_t fast_us, slow_us, want_us;
    } rows[] = {
        {"nothing was seen", 0, 0, 0, 0, RATION_UNSET},
        {"one sample too few", 19, 0, 800 * MS, 0, RATION_UNSET},
        {"enough", 20, 0, 800 * MS, 0, 851967},
        {"19 of 20 are 95 %", 19, 1, 100 * MS, 800 * MS, 106495},
        {"18 of 20 are not", 18, 2, 100 * MS, 800 * MS, 851967},
        {"95 of 100", 95, 5, 100 * MS, 800 * MS, 106495},
        {"94 of 100", 94, 6, 100 * MS, 800 * MS, 851967},
        {"of 39, one may be slower", 38, 1, 100 * MS, 800 * MS, 106495},
        {"two may not", 37, 2, 100 * MS, 800 * MS, 851967},
        {"the floor", 20, 0, 3 * MS, 0, FLOOR_US},
        {"a bucket's last value", 20, 0, 106495, 0, 106495},
        {"the next one's first", 20, 0, 106496, 0, 114687},
        {"below zero counts as zero", 20, 0, -5, 0, FLOOR_US},
        {"beyond the range", 20, 0, INT64_MAX, 0, (INT64_C(1) << 36) - 1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_hold_learner hold;

        CHECK_ROW(rows[i].why);
        rn_hold_init(&hold, FLOOR_US);
        learn(&hold, 0, rows[i].slow_us, rows[i].slow, true);
        learn(&hold, 0, rows[i].fast_us, rows[i].fast, true);
        CHECK_EQ(rn_hold_declare(&hold), rows[i].want_us);
        CHECK_EQ(rn_hold_samples(&hold), rows[i].fast + rows[i].slow);
    }
}

/* Calls cut short teach only that they were longer. */
static void test_cut_short(void **state)
{
    static const struct {
        const char *why;
        size_t whole, cut;
        int64_t cut_us, want_us;
        size_t samples;
    } rows[] = {
        {"before anything is known they say nothing", 19, 50, 900 * MS, RATION_UNSET, 19},
        {"an outage: shorter ones are ignored", 20, 1000, 1 * MS, 106495, 20},
        {"as long as what is declared", 20, 1000, 106495, 106495, 20},
        {"longer ones count, until they are what is declared", 20, 100, 106496, 114687, 22},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_hold_learner hold;

        CHECK_ROW(rows[i].why);
        rn_hold_init(&hold, 1);
        learn(&hold, 0, 100 * MS, rows[i].whole, true);
        learn(&hold, 0, rows[i].cut_us, rows[i].cut, false);
        CHECK_EQ(rn_hold_declare(&hold), rows[i].want_us);
        CHECK_EQ(rn_hold_samples(&hold), rows[i].samples);
    }
}

/* ---- what is forgotten */

static void test_windows(void **state)
{
    const int64_t minute = RN_HOLD_WINDOW_US;
    rn_hold_learner hold;
    (void)state;

    rn_hold_init(&hold, 1);
    learn(&hold, 7, 800 * MS, RN_HOLD_WINDOW_SAMPLES, true);
    CHECK_ROW("200 samples, not yet a minute: the same window");
    learn(&hold, 7 + minute - 1, 100 * MS, 1, true);
    CHECK_EQ(hold.past.samples, 0);

    CHECK_ROW("a minute: a new window, the old one still counts");
    learn(&hold, 7 + minute, 100 * MS, 1, true);
    CHECK_EQ(hold.past.samples, RN_HOLD_WINDOW_SAMPLES + 1);
    CHECK_EQ(rn_hold_samples(&hold), RN_HOLD_WINDOW_SAMPLES + 2);
    CHECK_EQ(rn_hold_declare(&hold), 851967);

    CHECK_ROW("a day, but 199 samples: the same window");
    learn(&hold, 1440 * minute, 100 * MS, RN_HOLD_WINDOW_SAMPLES - 2, true);
    CHECK_EQ(hold.past.samples, RN_HOLD_WINDOW_SAMPLES + 1);
    learn(&hold, 1440 * minute, 100 * MS, 1, true);
    CHECK_EQ(hold.past.samples, RN_HOLD_WINDOW_SAMPLES + 1);
    CHECK_EQ(rn_hold_declare(&hold), 851967);

    CHECK_ROW("200 and a minute: what was slow is forgotten");
    learn(&hold, 1440 * minute, 100 * MS, 1, true);
    CHECK_EQ(hold.past.samples, RN_HOLD_WINDOW_SAMPLES);
    CHECK_EQ(rn_hold_declare(&hold), 106495);
    CHECK_EQ(rn_hold_samples(&hold), RN_HOLD_WINDOW_SAMPLES + 1);

    CHECK_ROW("the minute of a window begins with its first sample");
    learn(&hold, 1441 * minute - 1, 100 * MS, 2 * (size_t)RN_HOLD_WINDOW_SAMPLES, true);
    CHECK_EQ(rn_hold_samples(&hold), 3 * RN_HOLD_WINDOW_SAMPLES + 1);
}

static void test_a_full_bucket(void **state)
{
    rn_hold_learner hold;
    (void)state;

    rn_hold_init(&hold, 1);
    learn(&hold, 0, 7, 20, true);
    hold.present.counts[7] = UINT32_MAX;
    hold.present.samples = UINT32_MAX;
    learn(&hold, 0, 7, 1, true);
    CHECK_EQ(rn_hold_samples(&hold), UINT32_MAX);
    CHECK_EQ(rn_hold_declare(&hold), 7);
}

/* ---- against the samples themselves: never below the true percentile, at most an eighth above */

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void test_error(void **state)
{
    int64_t samples[180];
    uint64_t random = 42;
    (void)state;

    CHECK_ROW("300 random samples of very different lengths");
    for (int round = 0; round < 300; round++) {
        const size_t count = RN_HOLD_SAMPLES_MIN + (size_t)round % 160;
        rn_hold_learner hold;

        rn_hold_init(&hold, 0);
        for (size_t i = 0; i < count; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            samples[i] = (int64_t)((random >> 28) >> (random >> 59));
            rn_hold_learn(&hold, ration_time_of(0), samples[i], true);
        }
        qsort(samples, count, sizeof samples[0], by_value);
        const int64_t exact = samples[(95 * count + 99) / 100 - 1];
        CHECK(rn_hold_declare(&hold) >= exact);
        CHECK(rn_hold_declare(&hold) - exact <= exact / 8);
    }
}

/* ---- which learner */

static void test_find(void **state)
{
    static const ration_endpoint_rule endpoints[] = {
        {.path = "/orders"}, {.path = "/orders/**"}, {.path = "/orders/{id}"}, {.path = "/export"}};
    static const ration_provider_rule rule = {.endpoints = endpoints, .endpoint_count = 4};
    static const rn_hold_default words[] = {{true, 1}, {true, 2}, {false, 3}, {true, 4}};
    static const rn_hold_default silence[] = {{false, 1}, {false, 2}, {false, 3}, {false, 4}};
    static const rn_provider all = {.hold = {true, 9}, .endpoints = words};
    static const rn_provider some = {.hold = {false, 9}, .endpoints = words};
    static const rn_provider rest = {.hold = {true, 9}, .endpoints = silence};
    static const rn_provider none = {.hold = {false, 9}, .endpoints = silence};
    static const struct {
        const char *why, *path;
        const rn_provider *provider;
        int64_t floor_us; /* of the learner; 0: none */
    } rows[] = {
        {"an endpoint", "/orders", &all, 1},
        {"the more specific one declares its hold", "/orders/7", &all, 0},
        {"the longer path", "/orders/7/lines", &all, 2},
        {"no template: the provider's learner", "/else", &all, 9},
        {"a query is no part of it", "/orders?x=1", &all, 1},
        {"endpoints alone", "/export", &some, 4},
        {"and nothing for other paths", "/else", &some, 0},
        {"other paths alone", "/else", &rest, 9},
        {"and nothing for endpoints", "/orders", &rest, 0},
        {"nothing is learned", "/orders", &none, 0},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_holds holds = {.rule = NULL};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_holds_init(&holds, &rule, rows[i].provider), RATION_OK);
        const rn_hold_learner *found = rn_holds_find(&holds, ration_text_of(rows[i].path));
        CHECK_EQ(found != NULL ? found->floor_us : 0, rows[i].floor_us);
        rn_holds_fini(&holds);
    }
}

static void test_too_many_segments(void **state)
{
    static const ration_provider_rule rule = {.endpoint_count = 0};
    static const rn_provider provider = {.hold = {true, 9}};
    rn_holds holds = {.rule = NULL};
    static char path[2 * (size_t)(RN_SEGMENTS_MAX + 1)];
    (void)state;

    CHECK_EQ(rn_holds_init(&holds, &rule, &provider), RATION_OK);
    for (size_t i = 0; i < sizeof path; i++)
        path[i] = i % 2 == 0 ? '/' : 'x';
    CHECK(rn_holds_find(&holds, (ration_text){path, sizeof path - 2}) != NULL);
    CHECK(rn_holds_find(&holds, (ration_text){path, sizeof path}) == NULL);
    rn_holds_fini(&holds);
}

static void test_a_template_that_is_none(void **state)
{
    static const ration_endpoint_rule endpoint = {.path = "orders"};
    static const ration_provider_rule rule = {.endpoints = &endpoint, .endpoint_count = 1};
    static const rn_hold_default word = {true, 1};
    static const rn_provider provider = {.endpoints = &word};
    rn_holds holds = {.rule = NULL};
    (void)state;

    CHECK_EQ(rn_holds_init(&holds, &rule, &provider), RATION_ERR_SYNTAX);
    rn_holds_fini(&holds);
    rn_holds_fini(&holds);
}

static void test_adopt(void **state)
{
    static const ration_endpoint_rule before[] = {{.path = "/kept"}, {.path = "/gone"}, {.path = "/silenced"}};
    static const ration_endpoint_rule after[] = {{.path = "/silenced"}, {.path = "/new"}, {.path = "/kept"}};
    static const rn_hold_default loud[] = {{true, 1}, {true, 1}, {true, 1}};
    static const rn_hold_default quiet[] = {{false, 1}, {true, 1}, {true, 5000}};
    static const ration_provider_rule old_rule = {.endpoints = before, .endpoint_count = 3};
    static const ration_provider_rule new_rule = {.endpoints = after, .endpoint_count = 3};
    static const rn_provider old_words = {.hold = {true, 1}, .endpoints = loud};
    static const rn_provider new_words = {.hold = {true, 7000}, .endpoints = quiet};
    static const struct {
        const char *why, *path, *heir; /* NULL: nobody */
        int64_t declared_us;           /* by the heir */
    } rows[] = {
        {"the same template, under another floor", "/kept", "/kept", 5000},
        {"one that is gone", "/gone", NULL, 0},
        {"one of which nothing is learned any more", "/silenced", NULL, 0},
        {"all other paths", "/else", "/else", 7000},
    };
    rn_holds old, fresh, none = {.rule = &new_rule};
    (void)state;

    CHECK_EQ(rn_holds_init(&old, &old_rule, &old_words), RATION_OK);
    CHECK_EQ(rn_holds_init(&fresh, &new_rule, &new_words), RATION_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_hold_learner *learner = rn_holds_find(&old, ration_text_of(rows[i].path));

        for (uint64_t k = 0; k < RN_HOLD_SAMPLES_MIN + i; k++)
            rn_hold_learn(learner, (ration_time){0}, 1000, true);
    }
    rn_holds_adopt(&fresh, &old);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_hold_learner *learner = rn_holds_find(&old, ration_text_of(rows[i].path));
        const rn_hold_learner *heir = rows[i].heir != NULL ? rn_holds_find(&fresh, ration_text_of(rows[i].heir)) : NULL;

        CHECK_ROW(rows[i].why);
        CHECK(learner->heir == heir);
        if (heir == NULL)
            continue;
        CHECK_EQ(rn_hold_samples(heir), RN_HOLD_SAMPLES_MIN + i);
        CHECK_EQ(rn_hold_declare(heir), rows[i].declared_us);
        CHECK(heir->heir == NULL);
    }
    CHECK_EQ(rn_hold_samples(rn_holds_find(&fresh, ration_text_of("/new"))), 0);
    rn_holds_adopt(&none, &old);
    rn_holds_adopt(&fresh, &none);
    rn_holds_fini(&old);
    rn_holds_fini(&fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declared),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_a_full_bucket),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_too_many_segments),
        cmocka_unit_test(test_a_template_that_is_none),
        cmocka_unit_test(test_adopt),
    };

    return cmocka_run_group_tests_name("holds", tests, NULL, NULL);
}
