/* SPDX-License-Identifier: MIT */
#include "support/check.h"

#include "base/units.h"

static void sums_and_products_saturate(void **state)
{
    static const struct {
        const char *why;
        int64_t a, b, sum, difference, product;
    } rows[] = {
        {"plain", 7, -3, 4, 10, -21},
        {"nothing", 0, 0, 0, 0, 0},
        {"top plus one", INT64_MAX, 1, INT64_MAX, INT64_MAX - 1, INT64_MAX},
        {"top minus one", INT64_MAX, -1, INT64_MAX - 1, INT64_MAX, -INT64_MAX},
        {"bottom plus one", INT64_MIN, 1, INT64_MIN + 1, INT64_MIN, INT64_MIN},
        {"bottom minus one", INT64_MIN, -1, INT64_MIN, INT64_MIN + 1, INT64_MAX},
        {"top and top", INT64_MAX, INT64_MAX, INT64_MAX, 0, INT64_MAX},
        {"bottom and bottom", INT64_MIN, INT64_MIN, INT64_MIN, 0, INT64_MAX},
        {"top and bottom", INT64_MAX, INT64_MIN, -1, INT64_MAX, INT64_MIN},
        {"bottom and top", INT64_MIN, INT64_MAX, -1, INT64_MIN, INT64_MIN},
        {"nothing less bottom", 0, INT64_MIN, INT64_MIN, INT64_MAX, 0},
        {"two halves", INT64_C(1) << 62, INT64_C(1) << 62, INT64_MAX, 0, INT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_add(rows[i].a, rows[i].b), rows[i].sum);
        CHECK_EQ(rn_sub(rows[i].a, rows[i].b), rows[i].difference);
        CHECK_EQ(rn_mul(rows[i].a, rows[i].b), rows[i].product);
    }
}

static void divisions_round_as_they_say(void **state)
{
    static const struct {
        const char *why;
        int64_t a, b, floor, ceil; /* ceil -1: not for negative a */
    } rows[] = {
        {"even", 6, 3, 2, 2},
        {"a little more", 7, 3, 2, 3},
        {"almost", 8, 3, 2, 3},
        {"nothing", 0, 5, 0, 0},
        {"below nothing", -1, 5, -1, -1},
        {"even below nothing", -10, 5, -2, -1},
        {"the top", INT64_MAX, 2, INT64_MAX / 2, INT64_MAX / 2 + 1},
        {"the bottom", INT64_MIN, 1, INT64_MIN, -1},
        {"by the top", INT64_MIN, INT64_MAX, -2, -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_div_floor(rows[i].a, rows[i].b), rows[i].floor);
        if (rows[i].a >= 0)
            CHECK_EQ(rn_div_ceil(rows[i].a, rows[i].b), rows[i].ceil);
    }
}

static void smallest_and_largest(void **state)
{
    (void)state;
    CHECK_EQ(rn_min(-1, 1), -1);
    CHECK_EQ(rn_min(1, -1), -1);
    CHECK_EQ(rn_max(-1, 1), 1);
    CHECK_EQ(rn_max(1, -1), 1);
    CHECK_EQ(rn_gcd(12, 18), 6);
    CHECK_EQ(rn_gcd(0, 7), 7);
    CHECK_EQ(rn_gcd(7, 0), 7);
    CHECK_EQ(rn_gcd(17, 1000000), 1);
}

static void a_ratio_of_an_amount_is_floored_exactly(void **state)
{
    static const struct {
        const char *why;
        int64_t m;
        ration_ratio ratio;
        int64_t want;
    } rows[] = {
        {"half", 10, {1, 2}, 5},
        {"floored", 10, {1, 3}, 3},
        {"all", 10, {1, 1}, 10},
        {"none", 10, {0, 1}, 0},
        {"not given", 10, {0, 0}, 10},
        {"two thirds of 2^53", RATION_UNITS_MAX, {2, 3}, INT64_C(6004799503160661)},
        {"of the top", INT64_MAX, {999999, 1000000}, INT64_C(9223362813482738952)},
        {"a whole of the top", INT64_MAX, {1000000, 1000000}, INT64_MAX},
        {"more than all saturates", INT64_MAX, {3, 2}, INT64_MAX},
        {"the rest alone counts", 999999, {999999, 1000000}, 999998},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_ratio_of(rows[i].m, rows[i].ratio), rows[i].want);
    }
}

static void the_smaller_ratio(void **state)
{
    const ration_ratio third = {1, 3};
    const ration_ratio half = {1, 2};
    const ration_ratio unset = {0, 0};
    const ration_ratio fine = {333333, 1000000};

    (void)state;
    CHECK_EQ(rn_ratio_min(third, half).den, 3);
    CHECK_EQ(rn_ratio_min(half, third).den, 3);
    CHECK_EQ(rn_ratio_min(third, fine).den, 1000000);
    CHECK_EQ(rn_ratio_min(unset, half).den, 2);
    CHECK_EQ(rn_ratio_min(half, unset).den, 2);
    CHECK_EQ(rn_ratio_min(unset, unset).den, 1);
}

static void whole_units_are_floored(void **state)
{
    (void)state;
    CHECK_EQ(rn_whole_units(1999999), 1000000);
    CHECK_EQ(rn_whole_units(1000000), 1000000);
    CHECK_EQ(rn_whole_units(999999), 0);
    CHECK_EQ(rn_whole_units(-1), -1000000);
    CHECK_EQ(rn_whole_units(INT64_MIN), INT64_MIN);
    CHECK_EQ(rn_whole_units(INT64_MAX), INT64_C(9223372036854000000));
}

static void instants(void **state)
{
    const ration_time never = {RATION_NEVER_US};
    const ration_time one = {1};
    const ration_time two = {2};

    (void)state;
    CHECK_EQ(rn_time_add(one, 5).us, 6);
    CHECK_EQ(rn_time_add(one, RATION_FOREVER_US).us, RATION_NEVER_US);
    CHECK_EQ(rn_time_add(never, -5).us, RATION_NEVER_US);
    CHECK(rn_time_before(one, two) && !rn_time_before(one, one));
    CHECK_EQ(rn_time_min(one, two).us, 1);
    CHECK_EQ(rn_time_min(never, two).us, 2);
    CHECK_EQ(rn_time_max(one, two).us, 2);
    CHECK_EQ(rn_time_max(two, one).us, 2);
    CHECK(rn_time_known(one) && !rn_time_known(never));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products_saturate),
        cmocka_unit_test(divisions_round_as_they_say),
        cmocka_unit_test(smallest_and_largest),
        cmocka_unit_test(a_ratio_of_an_amount_is_floored_exactly),
        cmocka_unit_test(the_smaller_ratio),
        cmocka_unit_test(whole_units_are_floored),
        cmocka_unit_test(instants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
