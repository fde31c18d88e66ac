/* SPDX-License-Identifier: MIT */
/* Asking, waiting, wanting; reclaims and deficits; who is to be looked at again. */
#include "support/lone_ceiling.h"

#include "base/units.h"

#define A 0
#define B 1

/* b has all of its own until 1000 and all of a's until 100. */
static void lend_all(lone_ceiling *l)
{
    CHECK_EQ(lone_acquire(l, 0, 'B', B, 50, 1000), RATION_REASON_NONE);
    CHECK_EQ(lone_acquire(l, 0, 'L', B, 50, 100), RATION_REASON_NONE);
}

static void a_want_is_the_largest_refused(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    lend_all(&l);
    CHECK_EQ(lone_acquire(&l, 10, 'x', A, 20, 50), RATION_REASON_GUARANTEE_ON_LOAN);
    CHECK_EQ(lone_row(&l, 10, A).want, 20);
    CHECK_EQ(lone_acquire(&l, 20, 'x', A, 40, 50), RATION_REASON_GUARANTEE_ON_LOAN);
    CHECK_EQ(lone_row(&l, 20, A).want, 40);
    CHECK_EQ(lone_acquire(&l, 30, 'x', A, 10, 50), RATION_REASON_GUARANTEE_ON_LOAN);
    CHECK_EQ(lone_row(&l, 30, A).want, 40);
    CHECK_ROW("it lapses idleAfter after the last refusal");
    CHECK_EQ(lone_row(&l, 229, A).want, 40);
    CHECK_EQ(lone_row(&l, 230, A).want, 0);
    CHECK_ROW("20 for 10 us, then 40 for 210 us");
    CHECK_EQ(lone_row(&l, 230, A).deficit_rest, 20 * 10 + 40 * 210);
    CHECK_EQ(lone_row(&l, 10000, A).deficit_rest, 20 * 10 + 40 * 210);
    CHECK_ROW(NULL);
    lone_fini(&l);
}

static void what_can_never_fit_is_not_wanted(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    CHECK_EQ(lone_check(&l, 0, A, 101, 50), RATION_REASON_COST_EXCEEDS_LIMIT);
    CHECK_EQ(l.retry_us, -1);
    CHECK_EQ(lone_check(&l, 0, A, 100, 50), RATION_REASON_NONE);

    const rn_ceiling_ask ask = lone_ask(A, 101, 50);

    rn_ceiling_asked(l.c, ration_time_of(0), &ask, RATION_REASON_COST_EXCEEDS_LIMIT, false);
    CHECK_EQ(lone_row(&l, 0, A).want, 0);
    CHECK(!lone_row(&l, 0, A).idle);
    lone_fini(&l);
}

/* A deficit is cut at the lapse, whoever looks when, and kept exactly where one micro-unit is missing for one us. */
static void deficits_are_exact(void **state)
{
    static const int64_t looks[] = {10, 11, 50, 209, 210, 211, 5000};
    const ration_share_rule rule = lone_rule(2);

    (void)state;
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        const int64_t until = rn_min(looks[i], 210);
        lone_ceiling l;

        lone_init(&l, &rule);
        lend_all(&l);
        CHECK_EQ(lone_acquire(&l, 10, 'x', A, 1, 50), RATION_REASON_GUARANTEE_ON_LOAN);
        CHECK_EQ(lone_row(&l, looks[i], A).deficit_rest, until - 10);
        CHECK_EQ(lone_row(&l, 6000, A).deficit_rest, 200);
        lone_fini(&l);
    }
}

/* What it holds counts against its guarantee; what it wants beyond is no deficit. */
static void deficits_end_at_the_guarantee(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    CHECK_EQ(lone_acquire(&l, 0, 'A', A, 30, 1000), RATION_REASON_NONE);
    CHECK_EQ(lone_acquire(&l, 0, 'x', A, 60, 1000), RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    CHECK_EQ(lone_row(&l, 100, A).want, 60);
    CHECK_EQ(lone_row(&l, 100, A).deficit_rest, 20 * 100);
    CHECK_ROW("more than its guarantee: none");
    CHECK_EQ(lone_acquire(&l, 100, 'C', A, 70, 100), RATION_REASON_NONE);
    CHECK_EQ(lone_acquire(&l, 100, 'x', A, 1, 1000), RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    CHECK_EQ(lone_row(&l, 200, A).deficit_rest, 20 * 100);
    CHECK_ROW(NULL);
    lone_fini(&l);
}

/* 2^52 micro-units for 2^52 us: both parts of the product matter, and a sum that is too large stops. */
static void deficits_of_any_size(void **state)
{
    const int64_t span = INT64_C(1) << 52;
    ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    rule.ceiling = RATION_UNITS_MAX;
    rule.idle_after_us = RATION_TIME_MAX_US;
    lone_init(&l, &rule);
    CHECK_EQ(lone_acquire(&l, 0, 'A', B, 1, RATION_UNSET), RATION_REASON_NONE);
    CHECK_EQ(lone_acquire(&l, 0, 'x', A, rule.ceiling / 2 + 1, RATION_UNSET),
             RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    /* 2^52 · 1 999 999 999 = 9 007 199 250 237 392 · 10^9 + 372 629 504 */
    CHECK_EQ(lone_row(&l, 1999999999, A).deficit_unit_ms, INT64_C(9007199250237392));
    CHECK_EQ(lone_row(&l, 1999999999, A).deficit_rest, 372629504);
    CHECK_EQ(lone_row(&l, span, A).deficit_unit_ms, INT64_MAX);
    lone_fini(&l);
}

static void reclaims(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    lend_all(&l);
    CHECK_ROW("from the first refusal of a want");
    CHECK_EQ(lone_acquire(&l, 10, 'x', A, 50, 50), RATION_REASON_GUARANTEE_ON_LOAN);
    CHECK_EQ(lone_acquire(&l, 60, 'x', A, 50, 50), RATION_REASON_GUARANTEE_ON_LOAN);
    lone_end(&l, 100, 'L');
    CHECK_EQ(lone_acquire(&l, 100, 'A', A, 50, 50), RATION_REASON_NONE);
    CHECK_EQ(lone_row(&l, 100, A).reclaims, 1);
    CHECK_EQ(lone_row(&l, 100, A).worst_reclaim_us, 90);
    lone_end(&l, 150, 'A');

    CHECK_ROW("the worst stays");
    CHECK_EQ(lone_acquire(&l, 400, 'L', B, 50, 100), RATION_REASON_NONE);
    CHECK_EQ(lone_acquire(&l, 450, 'x', A, 50, 50), RATION_REASON_GUARANTEE_ON_LOAN);
    lone_end(&l, 460, 'L');
    CHECK_EQ(lone_acquire(&l, 460, 'A', A, 50, 50), RATION_REASON_NONE);
    CHECK_EQ(lone_row(&l, 460, A).reclaims, 2);
    CHECK_EQ(lone_row(&l, 460, A).worst_reclaim_us, 90);
    lone_end(&l, 500, 'A');

    CHECK_ROW("one that lapsed is dropped, at the very instant");
    CHECK_EQ(lone_acquire(&l, 800, 'L', B, 50, 100), RATION_REASON_NONE);
    CHECK_EQ(lone_acquire(&l, 810, 'x', A, 50, 50), RATION_REASON_GUARANTEE_ON_LOAN);
    lone_end(&l, 900, 'L');
    CHECK_EQ(lone_acquire(&l, 1010, 'A', A, 50, 50), RATION_REASON_NONE);
    CHECK_EQ(lone_row(&l, 1010, A).reclaims, 2);
    lone_end(&l, 1020, 'A');

    CHECK_ROW("and recorded one microsecond before");
    CHECK_EQ(lone_acquire(&l, 1800, 'L', B, 50, 100), RATION_REASON_NONE);
    CHECK_EQ(lone_acquire(&l, 1810, 'x', A, 50, 50), RATION_REASON_GUARANTEE_ON_LOAN);
    lone_end(&l, 1900, 'L');
    CHECK_EQ(lone_acquire(&l, 2009, 'A', A, 50, 50), RATION_REASON_NONE);
    CHECK_EQ(lone_row(&l, 2009, A).reclaims, 3);
    CHECK_EQ(lone_row(&l, 2009, A).worst_reclaim_us, 199);
    CHECK_ROW(NULL);
    lone_fini(&l);
}

/* Another refusal than `guarantee_on_loan` begins none. */
static void no_reclaim_for_what_is_not_guaranteed(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    CHECK_EQ(lone_acquire(&l, 0, 'x', A, 60, 1000), RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    CHECK_EQ(lone_acquire(&l, 10, 'A', A, 50, 1000), RATION_REASON_NONE);
    CHECK_EQ(lone_row(&l, 10, A).reclaims, 0);
    lone_fini(&l);
}

/* ---- waiting ---- */

static void waiting_is_asking(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    lend_all(&l);
    lone_wait(&l, 10, A, 30);
    rn_ceiling_found(l.c, ration_time_of(10), A, RATION_REASON_GUARANTEE_ON_LOAN);
    CHECK_ROW("its want does not lapse while it waits");
    CHECK_EQ(lone_row(&l, 5000, A).want, 30);
    CHECK_EQ(lone_row(&l, 5000, A).waiting, 1);
    CHECK(!lone_row(&l, 5000, A).idle);
    CHECK_EQ(lone_row(&l, 5000, A).deficit_rest, 30 * 4990);
    lone_end(&l, 5000, 'L');
    CHECK_ROW("and it does not lend");
    CHECK_EQ(lone_check(&l, 5000, B, 1, 100), RATION_REASON_NOTHING_TO_BORROW);
    CHECK_ROW("one that gives up has asked until then");
    lone_leave(&l, 5000, A, 30, false);
    CHECK_EQ(lone_row(&l, 5199, A).want, 30);
    CHECK_EQ(lone_row(&l, 5200, A).want, 0);
    CHECK(lone_row(&l, 5200, A).idle);
    CHECK_EQ(lone_row(&l, 5200, A).reclaims, 0);
    CHECK_EQ(lone_check(&l, 5199, B, 1, 100), RATION_REASON_NONE);
    CHECK_ROW(NULL);
    lone_fini(&l);
}

/* For something else: no want, but no lender either, until `idleAfter` after it has left. */
static void waiting_for_another_limit(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    const rn_ceiling_ask ask = lone_ask(A, 30, RATION_UNSET);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    rn_ceiling_wait(l.c, ration_time_of(0), &ask);
    CHECK_EQ(lone_row(&l, 1000, A).want, 0);
    CHECK_EQ(rn_ceiling_pool(l.c, ration_time_of(1000)), 50);
    CHECK_EQ(rn_ceiling_pool_change(l.c, ration_time_of(1000)).us, RATION_NEVER_US);
    rn_ceiling_leave(l.c, ration_time_of(1000), &ask, false, false);
    CHECK_EQ(lone_row(&l, 1000, A).want, 0);
    CHECK_EQ(rn_ceiling_pool_change(l.c, ration_time_of(1000)).us, 1200);
    CHECK_EQ(rn_ceiling_pool(l.c, ration_time_of(1199)), 50);
    CHECK_EQ(rn_ceiling_pool(l.c, ration_time_of(1200)), 100);
    lone_fini(&l);
}

/* A waiter that is served long after it was refused still ends a reclaim. */
static void a_waiter_is_served(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    lend_all(&l);
    lone_wait(&l, 10, A, 30);
    lone_wait(&l, 10, A, 20);
    rn_ceiling_found(l.c, ration_time_of(10), A, RATION_REASON_GUARANTEE_ON_LOAN);
    lone_end(&l, 1000, 'L');
    lone_leave(&l, 1000, A, 30, true);
    lone_take(&l, 1000, 'A', lone_ask(A, 30, 50), 20);
    CHECK_EQ(lone_row(&l, 1000, A).reclaims, 1);
    CHECK_EQ(lone_row(&l, 1000, A).worst_reclaim_us, 990);
    CHECK_ROW("what the other waits for is wanted on");
    CHECK_EQ(lone_row(&l, 9000, A).want, 20);
    CHECK_EQ(lone_row(&l, 9000, A).deficit_rest, 30 * 990 + 20 * 8000);
    CHECK_ROW("that is no reclaim unless it is found on loan");
    lone_leave(&l, 9000, A, 20, true);
    lone_take(&l, 9000, 'C', lone_ask(A, 20, 50), 0);
    CHECK_EQ(lone_row(&l, 9000, A).reclaims, 1);
    CHECK_EQ(lone_row(&l, 9000, A).want, 0);
    CHECK_ROW(NULL);
    lone_fini(&l);
}

static void a_want_that_has_lapsed_begins_no_reclaim(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    lend_all(&l);
    CHECK_EQ(lone_acquire(&l, 10, 'x', A, 60, 1000), RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    rn_ceiling_found(l.c, ration_time_of(210), A, RATION_REASON_GUARANTEE_ON_LOAN);
    lone_end(&l, 210, 'L');
    CHECK_EQ(lone_acquire(&l, 220, 'A', A, 50, 50), RATION_REASON_NONE);
    CHECK_EQ(lone_row(&l, 220, A).reclaims, 0);
    lone_fini(&l);
}

/* ---- whom to look at again ---- */

static void those_with_more_room_are_named(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    lend_all(&l);
    lone_end(&l, 5, 'B');
    CHECK_ROW("nobody waits");
    CHECK_EQ(rn_ceiling_touched(l.c), RN_TENANT_NONE);
    CHECK_EQ(lone_acquire(&l, 5, 'B', B, 50, 1000), RATION_REASON_NONE);
    lone_wait(&l, 10, A, 50);
    lone_wait(&l, 10, B, 50);
    CHECK_EQ(rn_ceiling_touched(l.c), RN_TENANT_NONE);

    CHECK_ROW("a part that comes back is enough to look");
    rn_ceiling_settle(l.c, ration_time_of(20), lone_hold(&l, 'L'), 30);
    CHECK_EQ(rn_ceiling_touched(l.c), A);
    CHECK_EQ(rn_ceiling_touched(l.c), RN_TENANT_NONE);

    CHECK_ROW("once, however much comes back");
    rn_ceiling_settle(l.c, ration_time_of(20), lone_hold(&l, 'L'), 20);
    lone_end(&l, 30, 'L');
    CHECK_EQ(rn_ceiling_touched(l.c), A);
    CHECK_EQ(rn_ceiling_touched(l.c), RN_TENANT_NONE);

    CHECK_ROW("its own");
    rn_ceiling_settle(l.c, ration_time_of(40), lone_hold(&l, 'B'), 49);
    CHECK_EQ(rn_ceiling_touched(l.c), B);
    lone_end(&l, 50, 'B');
    CHECK_EQ(rn_ceiling_touched(l.c), B);

    CHECK_ROW("a larger guarantee, and one that gave up meanwhile");
    lone_leave(&l, 60, A, 50, false);
    rn_ceiling_resize(l.c, ration_time_of(60), 200);
    CHECK_EQ(rn_ceiling_touched(l.c), B);
    CHECK_EQ(rn_ceiling_touched(l.c), RN_TENANT_NONE);
    rn_ceiling_resize(l.c, ration_time_of(60), 300);
    lone_leave(&l, 60, B, 50, false);
    CHECK_EQ(rn_ceiling_touched(l.c), RN_TENANT_NONE);
    CHECK_ROW(NULL);
    lone_fini(&l);
}

static void what_must_be_borrowed(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    CHECK_EQ(lone_acquire(&l, 0, 'B', B, 30, 1000), RATION_REASON_NONE);

    const rn_ceiling_ask own = lone_ask(B, 20, RATION_UNSET);
    const rn_ceiling_ask more = lone_ask(B, 25, 100);
    const rn_ceiling_ask long_one = lone_ask(B, 25, 101);
    const rn_ceiling_ask endless = lone_ask(B, 25, RATION_UNSET);
    const rn_ceiling_ask forever = lone_ask(B, 25, RATION_FOREVER_US);

    CHECK_EQ(rn_ceiling_need(l.c, &own), 0);
    CHECK_EQ(rn_ceiling_need(l.c, &more), 5);
    CHECK_EQ(rn_ceiling_need(l.c, &long_one), RATION_FOREVER_US);
    CHECK_EQ(rn_ceiling_need(l.c, &endless), RATION_FOREVER_US);
    CHECK_EQ(rn_ceiling_need(l.c, &forever), RATION_FOREVER_US);
    lone_fini(&l);
}

static void as_good_as_new(void **state)
{
    const ration_share_rule rule = lone_rule(2);
    lone_ceiling l;

    (void)state;
    lone_init(&l, &rule);
    CHECK(!rn_ceiling_is_fresh(l.c, ration_time_of(-900)));
    CHECK(rn_ceiling_is_fresh(l.c, ration_time_of(-800)));
    CHECK_EQ(lone_acquire(&l, 0, 'A', A, 0, 1000), RATION_REASON_NONE);
    CHECK(!rn_ceiling_is_fresh(l.c, ration_time_of(500)));
    lone_end(&l, 500, 'A');
    CHECK(!rn_ceiling_is_fresh(l.c, ration_time_of(699)));
    CHECK(rn_ceiling_is_fresh(l.c, ration_time_of(700)));
    CHECK_EQ(lone_acquire(&l, 800, 'x', A, 60, 1000), RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    CHECK(!rn_ceiling_is_fresh(l.c, ration_time_of(999)));
    CHECK(rn_ceiling_is_fresh(l.c, ration_time_of(1000)));
    lone_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_want_is_the_largest_refused),
        cmocka_unit_test(what_can_never_fit_is_not_wanted),
        cmocka_unit_test(deficits_are_exact),
        cmocka_unit_test(deficits_end_at_the_guarantee),
        cmocka_unit_test(deficits_of_any_size),
        cmocka_unit_test(reclaims),
        cmocka_unit_test(no_reclaim_for_what_is_not_guaranteed),
        cmocka_unit_test(waiting_is_asking),
        cmocka_unit_test(waiting_for_another_limit),
        cmocka_unit_test(a_waiter_is_served),
        cmocka_unit_test(a_want_that_has_lapsed_begins_no_reclaim),
        cmocka_unit_test(those_with_more_room_are_named),
        cmocka_unit_test(what_must_be_borrowed),
        cmocka_unit_test(as_good_as_new),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
