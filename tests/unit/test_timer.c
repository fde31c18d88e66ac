/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"

#include "base/mem.h"
#include "core/timer.h"

static ration_time us(int64_t at)
{
    return ration_time_of(at);
}

static rn_timer_kind fire(rn_timers *timers)
{
    rn_timer *const first = rn_timers_first(timers);

    CHECK(first != NULL);
    CHECK_EQ(rn_timers_next(timers).us, first->at.us);
    rn_timer_disarm(timers, first);
    return first->kind;
}

static void the_earliest_fires_first_and_ties_by_kind_then_in_order_of_arming(void **state)
{
    rn_timer ttl;
    rn_timer wake;
    rn_timer penalty;
    rn_timer deadline;
    rn_timers timers;

    (void)state;
    rn_timers_init(&timers, rn_mem_default());
    CHECK_EQ(rn_timers_reserve(&timers, 4), RATION_OK);
    rn_timer_init(&ttl, RN_TIMER_TTL);
    rn_timer_init(&wake, RN_TIMER_WAKE);
    rn_timer_init(&penalty, RN_TIMER_PENALTY);
    rn_timer_init(&deadline, RN_TIMER_DEADLINE);
    CHECK(rn_timers_first(&timers) == NULL);
    CHECK_EQ(rn_timers_next(&timers).us, RATION_NEVER_US);

    rn_timer_arm(&timers, &deadline, us(7));
    rn_timer_arm(&timers, &wake, us(7));
    rn_timer_arm(&timers, &ttl, us(7));
    rn_timer_arm(&timers, &penalty, us(-5));
    rn_timer_arm(&timers, &deadline, us(7)); /* armed anew: now the last */
    CHECK_EQ(fire(&timers), RN_TIMER_PENALTY);
    CHECK_EQ(fire(&timers), RN_TIMER_TTL);
    CHECK_EQ(fire(&timers), RN_TIMER_WAKE);
    CHECK_EQ(fire(&timers), RN_TIMER_DEADLINE);
    CHECK(rn_timers_first(&timers) == NULL);
    rn_timers_fini(&timers);
}

static void moving_and_disarming(void **state)
{
    rn_timer a;
    rn_timer b;
    rn_timers timers;

    (void)state;
    rn_timers_init(&timers, rn_mem_default());
    CHECK_EQ(rn_timers_reserve(&timers, 2), RATION_OK);
    rn_timer_init(&a, RN_TIMER_TTL);
    rn_timer_init(&b, RN_TIMER_WAKE);
    rn_timer_arm(&timers, &a, us(10));
    rn_timer_arm(&timers, &b, us(20));
    rn_timer_arm(&timers, &b, us(5));
    CHECK(rn_timers_first(&timers) == &b);
    rn_timer_arm(&timers, &b, us(15));
    CHECK(rn_timers_first(&timers) == &a);
    rn_timer_arm(&timers, &a, us(RATION_NEVER_US));
    CHECK(rn_timers_first(&timers) == &b);
    rn_timer_arm(&timers, &a, us(RATION_NEVER_US));
    rn_timer_disarm(&timers, &a);
    CHECK_EQ(a.at.us, RATION_NEVER_US);
    rn_timer_disarm(&timers, &b);
    CHECK_EQ(rn_timers_next(&timers).us, RATION_NEVER_US);
    rn_timers_fini(&timers);
}

static void room_comes_first(void **state)
{
    failalloc memory;
    rn_timer timer;
    rn_timers timers;

    (void)state;
    failalloc_init(&memory, 0);
    rn_timers_init(&timers, &memory.allocator);
    CHECK_EQ(rn_timers_reserve(&timers, 1), RATION_ERR_NOMEM);
    failalloc_init(&memory, 1);
    CHECK_EQ(rn_timers_reserve(&timers, 1), RATION_OK);
    rn_timer_init(&timer, RN_TIMER_TTL);
    rn_timer_arm(&timers, &timer, us(1));
    CHECK(!memory.failed);
    CHECK(rn_timers_first(&timers) == &timer);
    rn_timers_fini(&timers);
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
