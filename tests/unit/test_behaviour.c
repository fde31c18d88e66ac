/* SPDX-License-Identifier: MIT */
/* What `ration simulate` may be told, and that chance is even, bounded and the same for the same seed. */
#include "simulate/behaviour.h"

#include "simulate/random.h"
#include "support/check.h"

#define MS INT64_C(1000)
#define S INT64_C(1000000)

static void test_latency_option(void **state)
{
    static const struct {
        const char *why, *text;
        int want;
        int64_t mean_us, spread_us;
    } rows[] = {
        {"a mean alone", "50ms", 0, 50 * MS, 0},
        {"with a spread",
         "50ms\xc2\xb1"
         "20ms",
         0, 50 * MS, 20 * MS},
        {"for keyboards without the sign", "50ms+-20ms", 0, 50 * MS, 20 * MS},
        {"a sum of units", "1m30s+-1s", 0, 90 * S, 1 * S},
        {"none at all", "0", 0, 0, 0},
        {"down to nothing", "20ms+-20ms", 0, 20 * MS, 20 * MS},
        {"below nothing", "20ms+-21ms", RATION_ERR_RANGE, 0, 0},
        {"more than an hour", "61m", RATION_ERR_RANGE, 0, 0},
        {"no spread after the sign", "50ms+-", RATION_ERR_SYNTAX, 0, 0},
        {"no mean before it", "+-5ms", RATION_ERR_SYNTAX, 0, 0},
        {"two signs", "50ms+-5ms+-5ms", RATION_ERR_SYNTAX, 0, 0},
        {"no unit", "50", RATION_ERR_SYNTAX, 0, 0},
        {"negative", "-50ms", RATION_ERR_SYNTAX, 0, 0},
        {"empty", "", RATION_ERR_SYNTAX, 0, 0},
        {"not UTF-8",
         "50ms\xb1"
         "20ms",
         RATION_ERR_SYNTAX, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rn_latency latency = {7, 7};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_latency_parse(ration_text_of(rows[i].text), &latency), rows[i].want);
        CHECK_EQ(latency.mean_us, rows[i].want == 0 ? rows[i].mean_us : 7);
        CHECK_EQ(latency.spread_us, rows[i].want == 0 ? rows[i].spread_us : 7);
    }
}

static void test_retry_option(void **state)
{
    static const struct {
        const char *why, *text;
        int want;
        int64_t retry_us;
    } rows[] = {
        {"seconds", "2s", 0, 2 * S},
        {"the least", "1ms", 0, 1 * MS},
        {"less", "999us", RATION_ERR_RANGE, 7},
        {"none", "0", RATION_ERR_RANGE, 7},
        {"a day", "1d", 0, 86400 * S},
        {"more", "25h", RATION_ERR_RANGE, 7},
        {"no unit", "2", RATION_ERR_SYNTAX, 7},
        {"negative", "-2s", RATION_ERR_SYNTAX, 7},
        {"empty", "", RATION_ERR_SYNTAX, 7},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t retry_us = 7;

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_retry_parse(ration_text_of(rows[i].text), &retry_us), rows[i].want);
        CHECK_EQ(retry_us, rows[i].retry_us);
    }
}

static void test_external_option(void **state)
{
    static const struct {
        const char *why, *text;
        int want;
        int64_t nth, at_us; /* when that call comes */
    } rows[] = {
        {"one in 36 s", "100/h", 0, 1, 36 * S},
        {"and a day later", "100/h", 0, 2400, 86400 * S},
        {"thirds round up", "3/s", 0, 1, 333334},
        {"and are not lost", "3/s", 0, 3, 1 * S},
        {"many in long", "123.456789/d", 0, 1000, INT64_C(699840006369)},
        {"as often as it goes", "10000/s", 0, 1, 100},
        {"more often", "10001/s", RATION_ERR_RANGE, 0, 0},
        {"no rate", "100", RATION_ERR_SYNTAX, 0, 0},
        {"empty", "", RATION_ERR_SYNTAX, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rn_behaviour behaviour = {0};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_external_parse(ration_text_of(rows[i].text), &behaviour.external), rows[i].want);
        if (rows[i].want == 0) {
            CHECK_EQ(rn_behaviour_external_at(&behaviour, rows[i].nth), rows[i].at_us);
        } else {
            CHECK_EQ(rn_behaviour_external_at(&behaviour, 1), RATION_NEVER_US);
        }
    }
}

static void test_seed_option(void **state)
{
    static const struct {
        const char *why, *text;
        int want;
        uint64_t seed;
    } rows[] = {
        {"a number", "42", 0, 42},
        {"the largest", "9223372036854775807", 0, INT64_MAX},
        {"one beyond", "9223372036854775808", RATION_ERR_RANGE, 0},
        {"negative", "-1", RATION_ERR_RANGE, 0},
        {"a word", "luck", RATION_ERR_SYNTAX, 0},
        {"empty", "", RATION_ERR_SYNTAX, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t seed = 0;

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_seed_parse(ration_text_of(rows[i].text), &seed), rows[i].want);
        CHECK_EQ(seed, rows[i].seed);
    }
}

static void test_draws_depend_on_their_names_alone(void **state)
{
    (void)state;
    CHECK_ROW("asked twice");
    CHECK_EQ(rn_random(1, RN_STREAM_LATENCY, 5), rn_random(1, RN_STREAM_LATENCY, 5));
    CHECK_ROW("another seed, stream, index");
    CHECK(rn_random(1, RN_STREAM_LATENCY, 5) != rn_random(2, RN_STREAM_LATENCY, 5));
    CHECK(rn_random(1, RN_STREAM_LATENCY, 5) != rn_random(1, RN_STREAM_ERROR, 5));
    CHECK(rn_random(1, RN_STREAM_LATENCY, 5) != rn_random(1, RN_STREAM_LATENCY, 6));
    CHECK_ROW("a span of one");
    CHECK_EQ(rn_random_between(1, RN_STREAM_ERROR, 0, -3, -3), -3);
}

/* Every value of a small range comes about as often as the others: within a quarter of 1000 each. */
static void test_draws_are_even(void **state)
{
    int counts[8] = {0};

    (void)state;
    for (uint64_t i = 0; i < 8000; i++)
        counts[rn_random_between(42, RN_STREAM_ARRIVAL, i, 0, 7)]++;
    for (size_t i = 0; i < 8; i++) {
        CHECK(counts[i] > 750);
        CHECK(counts[i] < 1250);
    }
}

static void test_latency_stays_within_its_spread(void **state)
{
    const rn_behaviour behaviour = {.seed = 7, .latency = {50 * MS, 20 * MS}};
    int64_t low = INT64_MAX, high = 0;

    (void)state;
    for (uint64_t i = 0; i < 5000; i++) {
        const int64_t latency = rn_behaviour_latency(&behaviour, i);

        low = latency < low ? latency : low;
        high = latency > high ? latency : high;
    }
    CHECK(low >= 30 * MS);
    CHECK(low < 31 * MS);
    CHECK(high <= 70 * MS);
    CHECK(high > 69 * MS);
}

static void test_errors_come_as_often_as_told(void **state)
{
    static const struct {
        const char *why;
        ration_ratio errors;
        int64_t at_least, at_most; /* of 10 000 */
    } rows[] = {
        {"none", {0, 0}, 0, 0},
        {"none of a hundred", {0, 1}, 0, 0},
        {"one in a hundred", {1, 100}, 70, 130},
        {"every one", {1, 1}, 10000, 10000},
    };

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const rn_behaviour behaviour = {.seed = 3, .errors = rows[r].errors};
        int64_t failed = 0;

        CHECK_ROW(rows[r].why);
        for (uint64_t i = 0; i < 10000; i++) {
            uint64_t index = 99;

            if (rn_behaviour_fails(&behaviour, i, 4, &index)) {
                failed++;
                CHECK(index < 4);
            }
        }
        CHECK(failed >= rows[r].at_least);
        CHECK(failed <= rows[r].at_most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_latency_option),
        cmocka_unit_test(test_retry_option),
        cmocka_unit_test(test_external_option),
        cmocka_unit_test(test_seed_option),
        cmocka_unit_test(test_draws_depend_on_their_names_alone),
        cmocka_unit_test(test_draws_are_even),
        cmocka_unit_test(test_latency_stays_within_its_spread),
        cmocka_unit_test(test_errors_come_as_often_as_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
