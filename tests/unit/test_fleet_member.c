/* SPDX-License-Identifier: MIT */
/* What a member counts, and by what members see that they differ. */
#include "fleet/member_parts.h"

#include <string.h>

#include "support/check.h"

static void times_are_exact_to_an_eighth(void **state)
{
    static rn_member_times times;

    (void)state;
    CHECK_EQ(rn_member_times_percentile(&times, 50), 0);
    for (int64_t us = 1; us <= 1000; us++)
        rn_member_times_add(&times, us);
    CHECK_EQ(times.calls, 1000);
    CHECK(rn_member_times_percentile(&times, 50) >= 500 && rn_member_times_percentile(&times, 50) <= 562);
    CHECK(rn_member_times_percentile(&times, 99) >= 990 && rn_member_times_percentile(&times, 99) <= 1114);
    rn_member_times_add(&times, INT64_MAX);
    rn_member_times_add(&times, -1);
    CHECK(rn_member_times_percentile(&times, 100) > 1000000);
}

static void urls_and_rules_are_looked_at_beforehand(void **state)
{
    static const ration_rules none;
    char fault[RN_MEMBER_TEXT];

    (void)state;
    CHECK_EQ(rn_member_may("redis://127.0.0.1:1", &none, fault), RATION_OK);
    CHECK_EQ(rn_member_may("redis://127.0.0.1:port", &none, fault), RATION_ERR_CONFIG);
    CHECK(strncmp(fault, "settings.fleet.redis: ", 22) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_exact_to_an_eighth),
        cmocka_unit_test(urls_and_rules_are_looked_at_beforehand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
