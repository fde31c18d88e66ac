/* SPDX-License-Identifier: MIT */
/*
 * 100 000 tenants and 10 000 waiters: no call goes through them. What is counted is the pages that a call touches.
 *
 * Half of those who wait do so for leases of their own tenant, half for more than all idle lenders can give. Each of
 * them is a tenant of its own, or, at the adaptive limit, one of a few classes.
 */
#include "support/check.h"
#include "support/pages.h"

#include <stdio.h>

#define UNIT RATION_UNIT
#define MS(n) ((int64_t)(n)*1000)
#define TENANTS 100000
#define WAITERS 10000
#define SOME 16
#define MAY_TOUCH 150 /* searches of up to 17 levels in trees and heaps, and what is there */

static const char *const by_account[] = {"account"};
static ration_tenant_share tenants[TENANTS];
static char names[TENANTS][8];
static const ration_class_rule classes[] = {{"fast", {1, 4}}, {"bulk", {0, 0}}};

static struct {
    ration_engine *engine;
    ration_lease held[WAITERS];
    ration_lease waiting[WAITERS];
    ration_lease some[SOME];
    int64_t now_us;
    size_t most;
} w;

static void engine_new(const ration_limit_rule *limit)
{
    const ration_provider_rule provider = {.name = "p", .limits = limit, .limit_count = 1};
    const ration_account_rule account = {.name = "acc", .provider = "p"};
    const ration_rules rules = {.providers = &provider,
                                .provider_count = 1,
                                .accounts = &account,
                                .account_count = 1,
                                .max_waiters = WAITERS + SOME};
    const ration_engine_options options = {.rules = &rules, .allocator = pages_packed()};

    memset(&w, 0, sizeof w);
    CHECK_EQ(ration_engine_new(&options, ration_time_of(0), &w.engine, NULL), RATION_OK);
    w.now_us = MS(1000);
}

static void events(void)
{
    ration_event event;

    while (ration_engine_next_event(w.engine, &event)) {
    }
}

static void measured(void)
{
    const size_t pages = pages_unlock();

    w.most = pages > w.most ? pages : w.most;
    CHECK(pages <= MAY_TOUCH);
}

static ration_request request(const char *tenant, const char *class_name, int64_t cost, int64_t hold_ms,
                              int64_t wait_ms)
{
    ration_request r = RATION_REQUEST_INIT;

    r.account = ration_text_of("acc");
    r.tenant = ration_text_of(tenant);
    r.class_name = ration_text_of(class_name);
    r.cost = cost;
    r.hold_us = hold_ms < 0 ? RATION_UNSET : MS(hold_ms);
    r.wait_us = MS(wait_ms);
    return r;
}

static ration_result ask(const ration_request *r, ration_lease *out)
{
    ration_decision d = {.result = RATION_PENDING};

    w.now_us += 10;
    if (ration_engine_submit(w.engine, ration_time_of(w.now_us), r, &d) != RATION_OK)
        abort();
    *out = d.lease;
    return d.result;
}

/* The same, counted. A name's first request makes its route, whatever happens then, so it is made before. */
static void ask_counted(const ration_request *r, ration_result want, ration_lease *out)
{
    ration_decision d;

    CHECK_EQ(ration_engine_check(w.engine, ration_time_of(w.now_us), r, RATION_CHECK_ACQUIRE, &d), RATION_OK);
    pages_lock();

    const ration_result got = ask(r, out);

    measured();
    CHECK_EQ(got, want);
    events();
}

static void release_counted(ration_lease lease)
{
    w.now_us += 10;
    pages_lock();
    (void)ration_engine_release(w.engine, ration_time_of(w.now_us), lease, NULL);
    measured();
    events();
}

static void cancel_counted(ration_lease lease)
{
    pages_lock();
    (void)ration_engine_cancel(w.engine, ration_time_of(w.now_us), lease);
    measured();
}

static void time_counted(int64_t us)
{
    w.now_us += us;
    pages_lock();
    CHECK_EQ(ration_engine_advance(w.engine, ration_time_of(w.now_us)), RATION_OK);
    measured();
    events();
}

/* Everybody may have a unit of its own, and lends a tenth. The first 10 000 hold theirs and wait for more. */
static void crowd_waits(void)
{
    for (int i = 0; i < WAITERS; i++) {
        const ration_request own = request(names[i], NULL, UNIT, -1, 0);
        const ration_request again = request(names[i], NULL, UNIT / 2, -1, 900000);
        const ration_request more = request(names[i], NULL, TENANTS / 9 * UNIT, 50, 900000);

        CHECK_EQ(ask(&own, &w.held[i]), RATION_GRANTED);
        CHECK_EQ(ask(i % 2 == 0 ? &again : &more, &w.waiting[i]), RATION_QUEUED);
    }
}

static void tenants_come_and_go(void)
{
    CHECK_ROW("an admission");
    for (int i = 0; i < SOME; i++) {
        const ration_request r = request(names[TENANTS - 1 - i], NULL, UNIT, 50, 0);

        ask_counted(&r, RATION_GRANTED, &w.some[i]);
    }
    CHECK_ROW("a release");
    for (int i = 0; i < SOME; i++)
        release_counted(w.some[i]);
    CHECK_ROW("a loan");
    for (int i = 0; i < SOME; i++) {
        const ration_request r = request(names[TENANTS - 1 - i], NULL, UNIT + UNIT / 4, 50, 0);

        ask_counted(&r, RATION_GRANTED, &w.some[i]);
    }
    for (int i = 0; i < SOME; i++)
        release_counted(w.some[i]);
    CHECK_ROW("a refusal");
    for (int i = 0; i < SOME; i++) {
        const ration_request r = request(names[TENANTS - 1 - i], NULL, UNIT + UNIT / 4, 5000, 0);

        ask_counted(&r, RATION_REFUSED, &w.some[i]);
    }
    CHECK_ROW("quiet ones become idle, one by one");
    for (int i = 0; i < 4 * SOME; i++)
        time_counted(MS(1));
}

static void waiters_come_and_go(void)
{
    CHECK_ROW("one more waits");
    for (int i = 0; i < SOME; i++) {
        const ration_request r = request(names[TENANTS - 1 - i], NULL, TENANTS / 9 * UNIT, 50, 900000);

        ask_counted(&r, RATION_QUEUED, &w.some[i]);
    }
    CHECK_ROW("one leaves");
    for (int i = 0; i < SOME; i++)
        cancel_counted(w.some[i]);
    CHECK_ROW("a release by which one who waits goes");
    for (int i = 0; i < SOME; i++)
        release_counted(w.held[(size_t)i * 100]);
    CHECK_ROW("a release that helps nobody");
    for (int i = 0; i < SOME; i++)
        release_counted(w.held[100 * i + 1]);
    CHECK_ROW(NULL);
}

static void many_tenants(void **state)
{
    const ration_limit_rule limit = {.name = "fair",
                                     .kind = RATION_KIND_SHARE,
                                     .counts = RATION_COUNTS_COST,
                                     .scope = by_account,
                                     .scope_count = 1,
                                     .share = {.ceiling = TENANTS * UNIT,
                                               .tenants = tenants,
                                               .tenant_count = TENANTS,
                                               .reclaim_horizon_us = MS(100),
                                               .idle_after_us = MS(200),
                                               .lend = {1, 10}}};

    (void)state;
    for (int i = 0; i < TENANTS; i++) {
        (void)snprintf(names[i], sizeof names[i], "%d", i);
        tenants[i] = (ration_tenant_share){.name = names[i], .weight = 1};
    }
    engine_new(&limit);
    crowd_waits();
    tenants_come_and_go();
    waiters_come_and_go();
    print_message("# share: at most %zu of %zu pages were touched by a call\n", w.most, pages_total());
    CHECK(pages_total() > 50 * w.most);
    ration_engine_free(w.engine);
}

static void many_wait_for_one_that_learns(void **state)
{
    static const char *const class_names[] = {NULL, "fast", "bulk"};
    const ration_limit_rule limit = {.name = "learns",
                                     .kind = RATION_KIND_ADAPTIVE,
                                     .scope = by_account,
                                     .scope_count = 1,
                                     .adaptive = {.initial_limit = 100, .classes = classes, .class_count = 2}};
    const size_t before = pages_total();

    (void)state;
    engine_new(&limit);
    for (int i = 0; i < 100; i++) {
        const ration_request r = request(names[i], "fast", UNIT, -1, 0);

        CHECK_EQ(ask(&r, &w.held[i]), RATION_GRANTED);
    }
    for (int i = 0; i < WAITERS; i++) {
        const ration_request r = request(names[i], class_names[i % 3], UNIT, -1, 900000);

        CHECK_EQ(ask(&r, &w.waiting[i]), RATION_QUEUED);
    }
    CHECK_ROW("a release by which one who waits goes");
    for (int i = 0; i < SOME; i++)
        release_counted(w.held[i]);
    CHECK_ROW("the limit grows, and one who waits goes");
    for (int i = 0; i < 3; i++)
        time_counted(MS(5000));
    CHECK_ROW("one more waits, and leaves");
    for (int i = 0; i < SOME; i++) {
        const ration_request r = request(names[i], class_names[i % 3], UNIT, -1, 900000);

        ask_counted(&r, RATION_QUEUED, &w.some[i]);
        cancel_counted(w.some[i]);
    }
    CHECK_ROW(NULL);
    print_message("# adaptive: at most %zu of %zu pages were touched by a call\n", w.most, pages_total() - before);
    CHECK(pages_total() - before > 10 * w.most);
    ration_engine_free(w.engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_tenants), cmocka_unit_test(many_wait_for_one_that_learns)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
