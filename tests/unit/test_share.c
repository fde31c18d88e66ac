/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/world.h"

#include <stdio.h>

#define MS(n) ((int64_t)(n)*1000)
#define UNIT RATION_UNIT

static world w;

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};

static const ration_tenant_share two[] = {{.name = "a", .weight = 1}, {.name = "b", .weight = 1}};
static const ration_tenant_share five[] = {{.name = "a", .weight = 1},
                                           {.name = "b", .weight = 1},
                                           {.name = "c", .weight = 1},
                                           {.name = "d", .weight = 1},
                                           {.name = "e", .weight = 1}};

#define SHARE(TENANTS, COUNT, ...)                                                                                     \
    {                                                                                                                  \
        .name = "tokens", .kind = RATION_KIND_SHARE, .counts = RATION_COUNTS_COST, .scope = by_account,                \
        .scope_count = 1, .share = {                                                                                   \
            .ceiling = 100 * UNIT,                                                                                     \
            .tenants = (TENANTS),                                                                                      \
            .tenant_count = (COUNT),                                                                                   \
            .reclaim_horizon_us = MS(100),                                                                             \
            .idle_after_us = MS(200),                                                                                  \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define SLOTS(NAME, SCOPE, MAX)                                                                                        \
    {                                                                                                                  \
        .name = (NAME), .kind = RATION_KIND_CONCURRENCY, .scope = (SCOPE), .scope_count = 1, .max = (MAX)*UNIT         \
    }

static const ration_limit_rule of_two[] = {SHARE(two, 2, .unknown_tenant = NULL), SLOTS("slots", by_x, 1)};
static const ration_limit_rule of_five[] = {SHARE(five, 5, .unknown_tenant = NULL), SLOTS("slots", by_x, 1)};

static const char *ask(int64_t at_ms, const char *request)
{
    return world_ask(&w, MS(at_ms), request);
}

static const char *end(int64_t at_ms, const char *name)
{
    return world_release(&w, MS(at_ms), name, RATION_OUTCOME_SUCCESS, RATION_UNSET);
}

/* ---- what is reported of one tenant ---- */

static ration_tenant_report found;
static const char *wanted;

static void look(void *ctx, const ration_counter_report *report)
{
    (void)ctx;
    for (size_t i = 0; i < report->tenant_count; i++) {
        if (report->tenants[i].name.size == 1 && report->tenants[i].name.data[0] == wanted[0])
            found = report->tenants[i];
    }
}

static const ration_tenant_report *tenant(int64_t at_us, const char *name)
{
    const ration_reporter reporter = {.counter = look};

    wanted = name;
    found = (ration_tenant_report){.held = -1};
    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(at_us), RATION_REPORT_STATS, &reporter), RATION_OK);
    CHECK(found.held >= 0);
    return &found;
}

static void the_chapters_story_with_a_waiter(void **state)
{
    (void)state;
    world_init(&w, of_two, 2);
    CHECK_STR(ask(0, "b1 tenant=b cost=50 hold=1000"), "granted");
    CHECK_STR(ask(0, "no tenant=b cost=50 hold=1000"), "hold_exceeds_reclaim_horizon tokens acc -");
    CHECK_STR(ask(0, "b2 tenant=b cost=50 hold=100"), "granted");
    CHECK_STR(ask(10, "no tenant=a cost=50 hold=50"), "guarantee_on_loan tokens acc 90000us~");
    CHECK_EQ(w.last.blocking_count, 1);
    CHECK_EQ(w.last.blocking[0].index, 1);
    CHECK_STR(ask(10, "a1 tenant=a cost=50 hold=50 wait=2000"), "queued");
    CHECK_STR(ask(60, "no tenant=b cost=50 hold=100"), "nothing_to_borrow tokens acc 940000us~"); /* b2 goes home */
    CHECK_STR(end(100, "b2"), "released");
    CHECK_STR(world_events(&w), "granted a1 90;");
    CHECK_STR(ask(100, "no tenant=b cost=50 hold=100"), "nothing_to_borrow tokens acc 900000us~");
    CHECK_EQ(tenant(MS(100), "a")->deficit_unit_ms, 4500);
    CHECK_EQ(found.reclaims, 1);
    CHECK_EQ(found.worst_reclaim_us, MS(90));
    CHECK_EQ(found.want, 0);
    CHECK_EQ(tenant(MS(100), "b")->deficit_unit_ms, 0);
    CHECK_EQ(found.granted, 2);
    CHECK_EQ(found.refused[RATION_REASON_NOTHING_TO_BORROW], 2);
    CHECK_EQ(found.refused[RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON], 1);
    world_fini(&w);
}

static void a_tenant_at_its_limit_blocks_no_other(void **state)
{
    (void)state;
    world_init(&w, of_two, 2);
    CHECK_STR(ask(0, "a1 tenant=a cost=50"), "granted");
    CHECK_STR(ask(0, "a2 tenant=a cost=50 wait=9000"), "queued"); /* its own leases will come back */
    CHECK_STR(ask(0, "a3 tenant=a cost=51 wait=9000"), "hold_exceeds_reclaim_horizon tokens acc -"); /* never */
    CHECK_STR(ask(0, "b1 tenant=b cost=50"), "granted");
    CHECK_STR(ask(0, "a4 tenant=a cost=1"), "hold_exceeds_reclaim_horizon tokens acc -");
    CHECK_STR(end(5, "a1"), "released");
    CHECK_STR(world_events(&w), "granted a2 5;");
    world_fini(&w);
}

/* The pool grows by time: a tenant has been quiet long enough. */
static void quiet_becomes_idle_and_wakes_a_borrower(void **state)
{
    (void)state;
    world_init(&w, of_two, 2);
    CHECK_STR(ask(0, "a1 tenant=a cost=1"), "granted");
    CHECK_STR(end(50, "a1"), "released");
    CHECK_STR(ask(60, "b1 tenant=b cost=80 hold=100 wait=9000"), "queued");
    world_advance(&w, MS(250) - 1);
    CHECK_STR(world_events(&w), "");
    world_advance(&w, MS(250));
    CHECK_STR(world_events(&w), "granted b1 190;");
    world_fini(&w);
}

/* Of those who could borrow, the first in waiting order for whom there is enough goes. */
static void borrowers_take_turns(void **state)
{
    (void)state;
    world_init(&w, of_five, 2);
    CHECK_STR(ask(0, "a1 tenant=a cost=20"), "granted");
    CHECK_STR(ask(0, "b1 tenant=b cost=20"), "granted");
    CHECK_STR(ask(0, "c1 tenant=c cost=20"), "granted");
    CHECK_STR(ask(0, "d1 tenant=d cost=20"), "granted");
    CHECK_STR(ask(0, "d2 tenant=d cost=20 hold=90"), "granted"); /* from e, which is idle */
    CHECK_STR(ask(1, "a2 tenant=a cost=21 hold=100 wait=9000"), "queued");
    CHECK_STR(ask(1, "b2 tenant=b cost=20 hold=100 wait=9000"), "queued");
    CHECK_STR(ask(1, "c2 tenant=c cost=3 hold=100 wait=9000"), "queued");
    CHECK_STR(ask(1, "c3 tenant=c cost=1 hold=101 wait=9000"), "queued"); /* holds too long to borrow */
    CHECK_STR(end(50, "d2"), "released");
    /* By tags c2 comes first, then b2; a2 wants more than all. What c2 leaves is too little for b2. */
    CHECK_STR(world_events(&w), "granted c2 49;");
    CHECK_STR(end(51, "b1"), "released");
    CHECK_STR(world_events(&w), "granted b2 50;");
    CHECK_STR(end(52, "a1"), "released"); /* a2: 20 of its own, and 1 borrowed */
    CHECK_STR(world_events(&w), "granted a2 51;");
    CHECK_STR(end(53, "c1"), "released");
    CHECK_STR(world_events(&w), "granted c3 52;");
    world_fini(&w);
}

/* One that could borrow but lacks something else does not keep the next from it. */
static void one_short_elsewhere_is_passed(void **state)
{
    (void)state;
    world_init(&w, of_five, 2);
    CHECK_STR(ask(0, "a1 tenant=a cost=20"), "granted");
    CHECK_STR(ask(0, "b1 tenant=b cost=20"), "granted");
    CHECK_STR(ask(0, "c1 tenant=c cost=20"), "granted");
    CHECK_STR(ask(0, "d1 tenant=d cost=20"), "granted");
    CHECK_STR(ask(0, "d2 tenant=d cost=20 hold=90"), "granted");
    CHECK_STR(ask(0, "s tenant=d cost=0 x=1"), "granted");
    CHECK_STR(ask(1, "a2 tenant=a cost=5 hold=100 x=1 wait=9000"), "queued");
    CHECK_STR(ask(1, "b2 tenant=b cost=6 hold=100 wait=9000"), "queued");
    CHECK_STR(end(50, "d2"), "released");
    CHECK_STR(world_events(&w), "granted b2 49;");
    CHECK_STR(end(60, "s"), "released");
    CHECK_STR(world_events(&w), "granted a2 59;");
    world_fini(&w);
}

/* What is on loan goes to its owner, if that waits, and not to the next borrower. */
static void a_loan_goes_home(void **state)
{
    (void)state;
    world_init(&w, of_two, 2);
    CHECK_STR(ask(0, "b1 tenant=b cost=100 hold=100"), "granted");
    CHECK_STR(ask(5, "b2 tenant=b cost=100 hold=100 wait=9000 priority=critical"), "queued");
    CHECK_STR(ask(10, "a1 tenant=a cost=50 hold=9000 wait=9000 priority=low"), "queued");
    CHECK_STR(end(100, "b1"), "released");
    CHECK_STR(world_events(&w), "granted a1 90;");
    CHECK_STR(end(2000, "a1"), "released");
    CHECK_STR(world_events(&w), "");
    world_advance(&w, MS(2200));
    CHECK_STR(world_events(&w), "granted b2 2195;"); /* a has been idle for long enough again */
    world_fini(&w);
}

static void who_waits_for_something_else_asks(void **state)
{
    (void)state;
    world_init(&w, of_two, 2);
    CHECK_STR(ask(0, "s tenant=b cost=1 x=1"), "granted");
    CHECK_STR(ask(1, "w tenant=a cost=1 x=1 wait=1000"), "queued");
    CHECK_STR(ask(500, "b1 tenant=b cost=60 hold=100"), "nothing_to_borrow tokens acc -");
    CHECK(!tenant(MS(1000), "a")->idle);
    CHECK_EQ(found.waiting, 1);
    CHECK_EQ(found.want, 0); /* it is not short of this */
    CHECK(!tenant(MS(1201) - 1, "a")->idle);
    CHECK_STR(world_events(&w), "refused w deadline slots 1000;");
    CHECK(tenant(MS(1201), "a")->idle);
    CHECK_STR(ask(1201, "b1 tenant=b cost=60 hold=100"), "granted");
    world_fini(&w);
}

static void what_a_wait_cannot_cure_is_no_asking(void **state)
{
    static const ration_limit_rule limits[] = {
        SHARE(two, 2, .unknown_tenant = NULL),
        {.name = "daily",
         .kind = RATION_KIND_QUOTA,
         .scope = by_x,
         .scope_count = 1,
         .max = 5 * UNIT, /* of which one is ours */
         .window = {.period = RATION_PERIOD_DAY}},
        SLOTS("slots", (by_x), 1),
    };

    (void)state;
    world_init(&w, limits, 3);
    CHECK_STR(ask(0, "s tenant=b cost=1 x=1"), "granted");
    CHECK_STR(ask(300, "q tenant=a cost=1 x=1"), "quota_exhausted daily x=1 -");
    CHECK(tenant(MS(300), "a")->idle);
    CHECK_STR(ask(300, "n tenant=a cost=101"), "cost_exceeds_limit tokens acc -");
    CHECK(tenant(MS(300), "a")->idle);
    CHECK_EQ(found.refused[RATION_REASON_COST_EXCEEDS_LIMIT], 1);
    CHECK_EQ(found.refused[RATION_REASON_QUOTA_EXHAUSTED], 0); /* named another limit */
    CHECK_STR(ask(300, "l tenant=a cost=60 hold=9000 wait=50"), "hold_exceeds_reclaim_horizon tokens acc -");
    CHECK(!tenant(MS(300), "a")->idle); /* the ceiling's own refusal is an asking, with its want */
    CHECK_EQ(found.want, 60 * UNIT);
    world_fini(&w);
}

static void unknown_tenants(void **state)
{
    static const ration_limit_rule mapped[] = {SHARE(two, 2, .unknown_tenant = "b")};

    (void)state;
    world_init(&w, of_two, 2);
    CHECK_STR(ask(0, "n cost=1"), "unknown_tenant tokens acc -");
    CHECK_STR(ask(0, "n tenant=zed cost=1 wait=100"), "unknown_tenant tokens acc -");
    world_fini(&w);

    world_init(&w, mapped, 1);
    CHECK_STR(ask(0, "n cost=40"), "granted");
    CHECK_STR(ask(0, "z tenant=zed cost=11"), "hold_exceeds_reclaim_horizon tokens acc -");
    CHECK_EQ(tenant(0, "b")->own, 40 * UNIT);
    world_fini(&w);
}

static void wants_of_waiters(void **state)
{
    (void)state;
    world_init(&w, of_two, 2);
    CHECK_STR(ask(0, "a1 tenant=a cost=50"), "granted");
    CHECK_STR(ask(0, "a2 tenant=a cost=30 wait=9000"), "queued");
    CHECK_STR(ask(0, "a3 tenant=a cost=20 wait=9000"), "queued");
    CHECK_STR(ask(0, "a4 tenant=a cost=10 wait=1000"), "queued");
    CHECK_EQ(tenant(0, "a")->want, 30 * UNIT);
    CHECK_EQ(tenant(MS(900), "a")->want, 30 * UNIT); /* waiting is asking: it does not lapse */
    CHECK_STR(end(900, "a1"), "released");
    /* By tags a2 comes first, then a3: together they fill the guarantee. */
    CHECK_STR(world_events(&w), "granted a2 900;granted a3 900;");
    CHECK_EQ(tenant(MS(900), "a")->want, 10 * UNIT); /* the largest that still waits short */
    CHECK_EQ(tenant(MS(1199), "a")->want, 10 * UNIT);
    CHECK_EQ(tenant(MS(1200), "a")->want, 0); /* it asked until 1000, and lapsed */
    world_fini(&w);
}

/* Weights of the share count among the waiters too. */
static void tags_take_their_weights_from_the_share(void **state)
{
    static const ration_tenant_share heavy[] = {{.name = "a", .weight = 1}, {.name = "b", .weight = 3}};
    static const ration_limit_rule limits[] = {SHARE(heavy, 2, .unknown_tenant = NULL), SLOTS("slots", by_x, 1)};
    static const char *const asks[] = {"a1 tenant=a", "a2 tenant=a", "b1 tenant=b", "b2 tenant=b", "b3 tenant=b"};

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(ask(0, "z tenant=a x=1"), "granted");
    for (size_t i = 0; i < 5; i++) {
        char text[64];

        snprintf(text, sizeof text, "%s x=1 wait=9000", asks[i]);
        CHECK_STR(ask(0, text), "queued");
    }
    CHECK_STR(end(1, "z"), "released");
    CHECK_STR(end(1, "b1"), "released");
    CHECK_STR(end(1, "b2"), "released");
    CHECK_STR(world_events(&w), "granted b1 1;granted b2 1;granted a1 1;");
    world_fini(&w);
}

static void a_shadow_share_watches(void **state)
{
    ration_limit_rule limits[] = {SHARE(two, 2, .unknown_tenant = NULL)};

    (void)state;
    limits[0].enforce = RATION_ENFORCE_SHADOW;
    world_init(&w, limits, 1);
    CHECK_STR(ask(0, "a1 tenant=a cost=90"), "granted");
    CHECK_STR(ask(0, "a2 tenant=a cost=90"), "granted");
    CHECK_STR(ask(0, "z tenant=zed cost=1"), "granted");
    CHECK_EQ(tenant(0, "a")->held, 180 * UNIT);
    CHECK_STR(end(0, "a1"), "released");
    CHECK_STR(end(0, "a2"), "released");
    CHECK_STR(end(0, "z"), "released");
    CHECK_EQ(tenant(0, "a")->held, 0);
    world_fini(&w);
}

/* A tenant that no longer waits is no borrower, even if it was the last to wait here. */
static void who_has_left_is_no_borrower(void **state)
{
    (void)state;
    world_init(&w, of_five, 2);
    CHECK_STR(ask(0, "a1 tenant=a cost=20"), "granted");
    CHECK_STR(ask(0, "b1 tenant=b cost=10"), "granted");
    CHECK_STR(ask(0, "c1 tenant=c cost=20"), "granted");
    CHECK_STR(ask(0, "d1 tenant=d cost=20"), "granted");
    CHECK_STR(ask(0, "d2 tenant=d cost=20 hold=90"), "granted");
    CHECK_STR(ask(1, "a2 tenant=a cost=5 hold=100 wait=9000"), "queued");
    CHECK_STR(world_cancel(&w, MS(2), "a2"), "cancelled");
    CHECK_STR(ask(3, "b2 tenant=b cost=16 hold=100 wait=9000"), "queued");
    CHECK_STR(end(50, "d2"), "released");
    CHECK_STR(world_events(&w), "granted b2 47;");
    world_fini(&w);
}

/* Asking takes a tenant's units out of the pool; when they come back, by time alone, who waits for them is told. */
static void quiet_after_asking_wakes_a_borrower(void **state)
{
    (void)state;
    world_init(&w, of_two, 2);
    CHECK_STR(ask(0, "s tenant=b cost=0 x=1 account=bcc"), "granted"); /* another ceiling */
    CHECK_STR(ask(0, "b1 tenant=b cost=50"), "granted");
    CHECK_STR(ask(0, "a1 tenant=a cost=1"), "granted");
    CHECK_STR(end(0, "a1"), "released");
    CHECK_STR(ask(0, "b2 tenant=b cost=40 hold=100 x=1 wait=9000"), "queued"); /* short of both */
    world_advance(&w, MS(300));                                                /* a lends now */
    CHECK_STR(ask(400, "no tenant=a cost=1 x=1"), "concurrency_full slots x=1 -");
    CHECK_STR(end(500, "s"), "released");
    CHECK_STR(world_events(&w), ""); /* a has asked at 400 */
    world_advance(&w, MS(600) - 1);
    CHECK_STR(world_events(&w), "");
    world_advance(&w, MS(600));
    CHECK_STR(world_events(&w), "granted b2 600;");
    world_fini(&w);
}

/* What a shadow share writes down needs no promise that there is room: who waited elsewhere is granted here unasked. */
static void a_shadow_share_lends_to_who_waited(void **state)
{
    ration_limit_rule limits[] = {SHARE(two, 2, .unknown_tenant = NULL), SLOTS("slots", by_x, 1)};

    (void)state;
    limits[0].enforce = RATION_ENFORCE_SHADOW;
    world_init(&w, limits, 2);
    CHECK_STR(ask(0, "s tenant=b cost=1 x=1"), "granted");
    CHECK_STR(ask(0, "a1 tenant=a cost=1"), "granted");
    CHECK_STR(end(0, "a1"), "released");
    CHECK_STR(ask(0, "b1 tenant=b cost=60 hold=100 x=1 wait=9000"), "queued");
    CHECK_STR(end(300, "s"), "released");
    CHECK_STR(world_events(&w), "granted b1 300;");
    CHECK_EQ(tenant(MS(300), "b")->borrowed, 10 * UNIT);
    CHECK_STR(end(301, "b1"), "released");
    CHECK_EQ(tenant(MS(301), "b")->held, 0);
    world_fini(&w);
}

/* Room under the ceiling comes in two steps of one call, the first too small for who waits. */
static void room_that_comes_bit_by_bit_is_noticed(void **state)
{
    (void)state;
    world_init(&w, of_two, 2);
    CHECK_STR(ask(0, "a1 tenant=a cost=40"), "granted");
    CHECK_STR(ask(0, "b1 tenant=b cost=50"), "granted");
    CHECK_STR(ask(0, "no tenant=b cost=15 hold=50"), "nothing_to_borrow tokens acc -");
    CHECK_STR(ask(0, "b2 tenant=b cost=20 hold=50 wait=9000"), "queued");
    CHECK_STR(world_release(&w, MS(10), "a1", RATION_OUTCOME_SUCCESS, 35 * UNIT), "released");
    world_advance(&w, MS(210));
    CHECK_STR(world_events(&w), "granted b2 210;");
    world_fini(&w);
}

/* Nothing bounds what a limit that only watches has to count, and yet no sum overflows, and all of it goes back. */
static void a_shadow_share_counts_no_further_than_it_can(void **state)
{
    ration_limit_rule limits[] = {SHARE(two, 2, .unknown_tenant = NULL)};
    static ration_lease leases[1200];
    ration_request r = RATION_REQUEST_INIT;
    const ration_completion dear = {RATION_OUTCOME_SUCCESS, RATION_UNITS_MAX};
    ration_decision d;

    (void)state;
    limits[0].enforce = RATION_ENFORCE_SHADOW;
    world_init(&w, limits, 1);
    r.account = ration_text_of("acc");
    r.tenant = ration_text_of("a");
    r.cost = RATION_UNITS_MAX;
    for (int i = 0; i < 1200; i++) {
        CHECK_EQ(ration_engine_submit(w.engine, ration_time_of(0), &r, &d), RATION_OK);
        CHECK_EQ(d.result, RATION_GRANTED);
        leases[i] = d.lease;
    }
    CHECK_EQ(tenant(0, "a")->held, INT64_MAX / 4);
    CHECK_EQ(found.own, INT64_MAX / 4);
    for (int i = 0; i < 1200; i++)
        CHECK_EQ(ration_engine_release(w.engine, ration_time_of(0), leases[i], &dear), RATION_OK);
    CHECK_EQ(tenant(0, "a")->held, 0);
    CHECK_EQ(found.own, 0);
    world_fini(&w);
}

/* One that could take everything but for a pause could not any more when its lender asks: from then on it keeps its
 * place, and none of its tenant goes before it. */
static void who_is_paused_hears_that_a_lender_asks(void **state)
{
    static const ration_limit_rule limits[] = {SLOTS("slots", by_x, 5), SHARE(two, 2, .unknown_tenant = NULL)};

    (void)state;
    world_init(&w, limits, 2);
    CHECK_STR(ask(0, "s tenant=b cost=0 account=bcc x=1"), "granted");
    CHECK_STR(world_observe(&w, 0, "s", 429, "Retry-After", "1"), "observed");
    CHECK_STR(ask(300, "p tenant=a cost=60 hold=100 x=1 wait=9000"), "queued");
    CHECK_STR(ask(300, "n1 tenant=a cost=1"), "granted"); /* p is short of nothing */
    CHECK_STR(end(300, "n1"), "released");
    CHECK_STR(ask(300, "no tenant=b cost=60 hold=9000"), "hold_exceeds_reclaim_horizon tokens acc -");
    CHECK_STR(ask(300, "n2 tenant=a cost=1"), "nothing_to_borrow tokens acc -");
    world_advance(&w, MS(1000));
    CHECK_STR(world_events(&w), "granted p 700;");
    world_fini(&w);
}

/* A full queue is no limit's refusal: it names none, and none counts it. */
static void a_full_queue_is_nobodys_refusal(void **state)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    (void)state;
    world_rules(&rules, &provider, accounts, of_two, 2);
    rules.max_waiters = 1;
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_STR(ask(0, "a1 tenant=a cost=50"), "granted");
    CHECK_STR(ask(0, "a2 tenant=a cost=50 wait=9000"), "queued");
    CHECK_STR(ask(0, "a3 tenant=a cost=50 wait=9000"), "queue_full - - -");
    CHECK_EQ(tenant(0, "a")->refused[RATION_REASON_QUEUE_FULL], 0);
    CHECK_EQ(found.want, 50 * UNIT);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_chapters_story_with_a_waiter),
        cmocka_unit_test(a_tenant_at_its_limit_blocks_no_other),
        cmocka_unit_test(quiet_becomes_idle_and_wakes_a_borrower),
        cmocka_unit_test(borrowers_take_turns),
        cmocka_unit_test(one_short_elsewhere_is_passed),
        cmocka_unit_test(a_loan_goes_home),
        cmocka_unit_test(who_waits_for_something_else_asks),
        cmocka_unit_test(what_a_wait_cannot_cure_is_no_asking),
        cmocka_unit_test(unknown_tenants),
        cmocka_unit_test(wants_of_waiters),
        cmocka_unit_test(tags_take_their_weights_from_the_share),
        cmocka_unit_test(a_shadow_share_watches),
        cmocka_unit_test(who_has_left_is_no_borrower),
        cmocka_unit_test(quiet_after_asking_wakes_a_borrower),
        cmocka_unit_test(a_shadow_share_lends_to_who_waited),
        cmocka_unit_test(room_that_comes_bit_by_bit_is_noticed),
        cmocka_unit_test(who_is_paused_hears_that_a_lender_asks),
        cmocka_unit_test(a_full_queue_is_nobodys_refusal),
        cmocka_unit_test(a_shadow_share_counts_no_further_than_it_can),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
