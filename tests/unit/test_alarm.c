/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"

#include "base/mem.h"
#include "core/alarm.h"

static ration_time us(int64_t at)
{
    return ration_time_of(at);
}

static rn_alarm_kind fire(rn_alarms *alarms)
{
    rn_alarm *const first = rn_alarms_first(alarms);

    CHECK(first != NULL);
    CHECK_EQ(rn_alarms_next(alarms).us, first->at.us);
    rn_alarm_disarm(alarms, first);
    return first->kind;
}

static void the_earliest_fires_first_and_ties_by_kind_then_in_order_of_arming(void **state)
{
    rn_alarm ttl;
    rn_alarm wake;
    rn_alarm penalty;
    rn_alarm deadline;
    rn_alarms alarms;

    (void)state;
    rn_alarms_init(&alarms, rn_mem_default());
    CHECK_EQ(rn_alarms_reserve(&alarms, 4), RATION_OK);
    rn_alarm_init(&ttl, RN_ALARM_TTL);
    rn_alarm_init(&wake, RN_ALARM_WAKE);
    rn_alarm_init(&penalty, RN_ALARM_PENALTY);
    rn_alarm_init(&deadline, RN_ALARM_DEADLINE);
    CHECK(rn_alarms_first(&alarms) == NULL);
    CHECK_EQ(rn_alarms_next(&alarms).us, RATION_NEVER_US);

    rn_alarm_arm(&alarms, &deadline, us(7));
    rn_alarm_arm(&alarms, &wake, us(7));
    rn_alarm_arm(&alarms, &ttl, us(7));
    rn_alarm_arm(&alarms, &penalty, us(-5));
    rn_alarm_arm(&alarms, &deadline, us(7)); /* armed anew: now the last */
    CHECK_EQ(fire(&alarms), RN_ALARM_PENALTY);
    CHECK_EQ(fire(&alarms), RN_ALARM_TTL);
    CHECK_EQ(fire(&alarms), RN_ALARM_WAKE);
    CHECK_EQ(fire(&alarms), RN_ALARM_DEADLINE);
    CHECK(rn_alarms_first(&alarms) == NULL);
    rn_alarms_fini(&alarms);
}

static void moving_and_disarming(void **state)
{
    rn_alarm a;
    rn_alarm b;
    rn_alarms alarms;

    (void)state;
    rn_alarms_init(&alarms, rn_mem_default());
    CHECK_EQ(rn_alarms_reserve(&alarms, 2), RATION_OK);
    rn_alarm_init(&a, RN_ALARM_TTL);
    rn_alarm_init(&b, RN_ALARM_WAKE);
    rn_alarm_arm(&alarms, &a, us(10));
    rn_alarm_arm(&alarms, &b, us(20));
    rn_alarm_arm(&alarms, &b, us(5));
    CHECK(rn_alarms_first(&alarms) == &b);
    rn_alarm_arm(&alarms, &b, us(15));
    CHECK(rn_alarms_first(&alarms) == &a);
    rn_alarm_arm(&alarms, &a, us(RATION_NEVER_US));
    CHECK(rn_alarms_first(&alarms) == &b);
    rn_alarm_arm(&alarms, &a, us(RATION_NEVER_US));
    rn_alarm_disarm(&alarms, &a);
    CHECK_EQ(a.at.us, RATION_NEVER_US);
    rn_alarm_disarm(&alarms, &b);
    CHECK_EQ(rn_alarms_next(&alarms).us, RATION_NEVER_US);
    rn_alarms_fini(&alarms);
}

static void room_comes_first(void **state)
{
    failalloc memory;
    rn_alarm alarm;
    rn_alarms alarms;

    (void)state;
    failalloc_init(&memory, 0);
    rn_alarms_init(&alarms, &memory.allocator);
    CHECK_EQ(rn_alarms_reserve(&alarms, 1), RATION_ERR_NOMEM);
    failalloc_init(&memory, 1);
    CHECK_EQ(rn_alarms_reserve(&alarms, 1), RATION_OK);
    rn_alarm_init(&alarm, RN_ALARM_TTL);
    rn_alarm_arm(&alarms, &alarm, us(1));
    CHECK(!memory.failed);
    CHECK(rn_alarms_first(&alarms) == &alarm);
    rn_alarms_fini(&alarms);
    CHECK_EQ(memory.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_earliest_fires_first_and_ties_by_kind_then_in_order_of_arming),
        cmocka_unit_test(moving_and_disarming),
        cmocka_unit_test(room_comes_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
