/* SPDX-License-Identifier: MIT */
/*
 * 100 000 tenants: no admission, refusal, release, waiting or passage of time goes through them.
 *
 * What is counted is the pages of memory that an operation touches. The tenants fill thousands; a search in a tree or
 * a heap of them meets one page a level at most.
 */
#include "support/check.h"
#include "support/pages.h"

#include <stdio.h>

#include "core/ceiling_parts.h"

#define TENANTS 100000
#define HORIZON INT64_C(1000)
#define IDLE_AFTER INT64_C(2000)
#define GUARANTEE INT64_C(100)
#define SOME 60
#define MAY_TOUCH 250 /* some searches of 17 levels, each with its neighbours */

static struct {
    ration_tenant_share tenants[TENANTS];
    char names[TENANTS][8];
    ration_share_rule rule;
    rn_ceiling_spec spec;
    rn_ceiling *c;
    rn_ceiling_hold holds[512];
    uint64_t serial;
    size_t most; /* pages that any operation has touched */
    size_t named;
} w;

static int setup(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TENANTS; i++) {
        (void)snprintf(w.names[i], sizeof w.names[i], "%u", i);
        w.tenants[i] = (ration_tenant_share){.name = w.names[i], .weight = 1};
    }
    w.rule = (ration_share_rule){
        .ceiling = (int64_t)TENANTS * GUARANTEE,
        .tenants = w.tenants,
        .tenant_count = TENANTS,
        .reclaim_horizon_us = HORIZON,
        .idle_after_us = IDLE_AFTER,
    };
    if (rn_ceiling_spec_init(&w.spec, pages_allocator(), &w.rule, NULL) != RATION_OK)
        return -1;
    return rn_ceiling_new(pages_allocator(), &w.spec, w.rule.ceiling, ration_time_of(-IDLE_AFTER), &w.c);
}

static int teardown(void **state)
{
    (void)state;
    rn_ceiling_free(w.c);
    rn_ceiling_spec_fini(&w.spec);
    return 0;
}

static void measured(void)
{
    const size_t pages = pages_unlock();

    if (pages > w.most)
        w.most = pages;
    CHECK(pages <= MAY_TOUCH);
}

static void name_count(void *ctx, rn_ceiling_hold *hold)
{
    (void)ctx;
    (void)hold;
    w.named++;
}

/* All that is asked of a ceiling on the way to an answer, whatever it is. */
static ration_reason acquire(int64_t now_us, uint32_t tenant, int64_t charge, int64_t hold_us, size_t at)
{
    const rn_ceiling_ask ask = {.tenant = tenant, .charge = charge, .cost = charge, .hold_us = hold_us};
    const ration_time now = ration_time_of(now_us);
    rn_ceiling_when when = {.blocking = name_count};
    rn_ceiling_verdict verdict;
    ration_facts facts;

    pages_lock();
    rn_ceiling_check(w.c, now, &ask, &verdict);
    if (verdict.reason == RATION_REASON_NONE) {
        rn_ceiling_take(w.c, now, &ask, ++w.serial, 0, &w.holds[at]);
    } else {
        rn_ceiling_when_free(w.c, now, &ask, verdict.reason, &when);
        rn_ceiling_facts(w.c, now, &ask, &facts);
        rn_ceiling_asked(w.c, now, &ask, verdict.reason, true);
    }
    (void)rn_ceiling_pool_change(w.c, now);
    (void)rn_ceiling_is_fresh(w.c, now);
    measured();
    return verdict.reason;
}

static void release(int64_t now_us, size_t at)
{
    pages_lock();
    rn_ceiling_give_back(w.c, ration_time_of(now_us), &w.holds[at]);
    (void)rn_ceiling_touched(w.c);
    measured();
}

static uint32_t spread(uint32_t i)
{
    return (i * 7919u + 13u) % TENANTS;
}

static void nothing_goes_through_all(void **state)
{
    int64_t now = 0;

    (void)state;
    /* All become idle at once: each pays for itself, once. */
    CHECK_EQ(rn_ceiling_pool(w.c, ration_time_of(now)), w.rule.ceiling);
    CHECK(pages_total() / 20 > MAY_TOUCH);

    CHECK_ROW("tenants that come and go");
    for (uint32_t i = 0; i < SOME; i++)
        CHECK_EQ(acquire(now += 10, spread(i), GUARANTEE / 2, HORIZON, i), RATION_REASON_NONE);
    for (uint32_t i = 0; i < SOME; i++)
        release(now += 10, i);
    CHECK_ROW("loans of one and of several lenders");
    for (uint32_t i = 0; i < SOME; i++)
        CHECK_EQ(acquire(now += 1, spread(i), GUARANTEE * (int64_t)(1 + i % 4), HORIZON, i), RATION_REASON_NONE);
    CHECK_ROW("refusals");
    for (uint32_t i = 0; i < SOME; i++)
        CHECK_EQ(acquire(now, spread(i), GUARANTEE, HORIZON + 1, 0), RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    CHECK_ROW("one that waits for a loan");
    for (uint32_t i = 0; i < TENANTS && w.named == 0; i++) {
        if (w.c->tenants[i].lent > 0)
            CHECK_EQ(acquire(now, i, GUARANTEE, HORIZON + 1, 0), RATION_REASON_GUARANTEE_ON_LOAN);
    }
    CHECK_EQ(w.named, 1);
    for (uint32_t i = 0; i < SOME; i++)
        release(now += 1, i);
    CHECK_ROW("those who have been quiet become idle, a few at a time");
    (void)rn_ceiling_pool(w.c, ration_time_of(now += 2 * IDLE_AFTER)); /* those of above, all at once */
    for (uint32_t i = 0; i < SOME; i++)
        CHECK_EQ(acquire(now += IDLE_AFTER / 10, spread(i), GUARANTEE, HORIZON, i), RATION_REASON_NONE);
    for (uint32_t i = 0; i < SOME; i++)
        release(now += IDLE_AFTER / 10, i);
    CHECK_ROW(NULL);
}

/* Everybody has borrowed of everybody, and waits. */
static void waiting_goes_through_none(void **state)
{
    const int64_t now = 1000000;

    (void)state;
    for (uint32_t i = 0; i < SOME; i++) {
        const rn_ceiling_ask ask = {.tenant = spread(i), .charge = GUARANTEE, .hold_us = HORIZON};

        pages_lock();
        rn_ceiling_wait(w.c, ration_time_of(now), &ask);
        rn_ceiling_short(w.c, ration_time_of(now), &ask);
        rn_ceiling_found(w.c, ration_time_of(now), ask.tenant, RATION_REASON_GUARANTEE_ON_LOAN);
        measured();
    }
    for (uint32_t i = 0; i < SOME; i++) {
        const rn_ceiling_ask ask = {.tenant = spread(i), .charge = GUARANTEE, .hold_us = HORIZON};

        pages_lock();
        rn_ceiling_leave(w.c, ration_time_of(now + 10), &ask, true, false);
        measured();
    }
}

/* After a resize half of all tenants are above their guarantees; a refusal names whom it waits for, not all of them. */
static void draining_goes_through_none(void **state)
{
    static rn_ceiling_hold many[TENANTS / 2];
    const int64_t now = 2000000;

    (void)state;
    for (uint32_t i = 0; i < TENANTS / 2; i++) {
        const rn_ceiling_ask ask = {.tenant = i, .charge = GUARANTEE, .hold_us = 100000 + i};

        rn_ceiling_take(w.c, ration_time_of(now), &ask, ++w.serial, 0, &many[i]);
    }
    rn_ceiling_resize(w.c, ration_time_of(now), w.rule.ceiling / 2);
    w.named = 0;
    for (uint32_t i = 0; i < SOME; i++) {
        CHECK_EQ(acquire(now, TENANTS - 1 - i, GUARANTEE / 2, HORIZON, 0), RATION_REASON_GUARANTEE_ON_LOAN);
        CHECK_EQ(w.named, i + 1);
    }
    for (uint32_t i = 0; i < TENANTS / 2; i++)
        rn_ceiling_give_back(w.c, ration_time_of(now), &many[i]);
}

static void how_much_was_touched(void **state)
{
    (void)state;
    print_message("# at most %zu of %zu pages were touched by an operation\n", w.most, pages_total());
    CHECK(w.most > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_goes_through_all),
        cmocka_unit_test(waiting_goes_through_none),
        cmocka_unit_test(draining_goes_through_none),
        cmocka_unit_test(how_much_was_touched),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
