/* SPDX-License-Identifier: MIT */

/*
 * The blocking door is the one part whose tests need real threads and a real clock. They wait for answers, never for a
 * time to pass, and none of their checks depends on how fast the machine is.
 */
#include "support/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <ration/wait.h>

#define THREADS 8
#define CALLS 300
#define LONG_US INT64_C(60000000)

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};

static const ration_limit_rule limits[] = {
    {.name = "all", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = 3 * RATION_UNIT},
    {.name = "each", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = RATION_UNIT},
    {.name = "rate",
     .kind = RATION_KIND_RATE,
     .scope = by_account,
     .scope_count = 1,
     .rate = {20000 * RATION_UNIT, 1000000},
     .burst = 10 * RATION_UNIT,
     .margin = RATION_UNSET},
};

static ration_wait *door_new(size_t limit_count)
{
    const ration_provider_rule provider = {.name = "p", .limits = limits, .limit_count = limit_count};
    const ration_account_rule account = {.name = "acc", .provider = "p"};
    const ration_rules rules = {.providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options options = {.rules = &rules};
    ration_wait *door = NULL;

    CHECK_EQ(ration_wait_new(&options, &door, NULL), RATION_OK);
    return door;
}

static ration_request request_of(const ration_var *x, int64_t wait_us)
{
    ration_request request = RATION_REQUEST_INIT;

    request.account = ration_text_of("acc");
    request.vars = x;
    request.var_count = x != NULL ? 1 : 0;
    request.wait_us = wait_us;
    return request;
}

typedef struct shared {
    ration_wait *door;
    atomic_int inside;
    atomic_int inside_x[2];
    atomic_int above;
    atomic_int granted;
    atomic_int draining;
} shared;

typedef struct worker {
    shared *s;
    int x;
} worker;

static void *work(void *arg)
{
    const worker *me = arg;
    shared *s = me->s;
    const ration_var x = {ration_text_of("x"), ration_text_of(me->x == 0 ? "0" : "1")};

    for (int i = 0; i < CALLS; i++) {
        const ration_request request = request_of(&x, LONG_US);
        ration_decision decision;

        if (ration_wait_acquire(s->door, &request, &decision, NULL, 0) != RATION_OK ||
            decision.result != RATION_GRANTED)
            continue;
        if (atomic_fetch_add(&s->inside, 1) >= 3 || atomic_fetch_add(&s->inside_x[me->x], 1) >= 1)
            atomic_fetch_add(&s->above, 1);
        atomic_fetch_add(&s->granted, 1);
        atomic_fetch_sub(&s->inside_x[me->x], 1);
        atomic_fetch_sub(&s->inside, 1);
        (void)ration_wait_release(s->door, decision.lease, NULL);
    }
    return NULL;
}

static void eight_threads_never_pass_a_limit_and_all_get_through(void **state)
{
    pthread_t threads[THREADS];
    worker workers[THREADS];
    shared s = {.door = door_new(3)};

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){&s, i % 2};
        CHECK_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(atomic_load(&s.above), 0);
    CHECK_EQ(atomic_load(&s.granted), THREADS * CALLS);
    ration_wait_free(s.door);
}

static void *block(void *arg)
{
    shared *s = arg;
    const ration_request request = request_of(NULL, LONG_US);
    ration_decision decision;

    atomic_fetch_add(&s->inside, 1);
    if (ration_wait_acquire(s->door, &request, &decision, NULL, 0) == RATION_OK &&
        decision.reason == RATION_REASON_DRAINING)
        atomic_fetch_add(&s->draining, 1);
    return NULL;
}

static void closing_refuses_who_blocks_and_who_comes(void **state)
{
    pthread_t threads[4];
    ration_decision decisions[3];
    ration_decision late;
    char why[128];
    shared s = {.door = door_new(1)};
    const ration_request now = request_of(NULL, 0);

    (void)state;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(ration_wait_acquire(s.door, &now, &decisions[i], NULL, 0), RATION_OK);
        CHECK_EQ(decisions[i].result, RATION_GRANTED);
    }
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, block, &s), 0);
    while (atomic_load(&s.inside) < 4) /* they are on their way: refused whether they block already or come later */
        (void)sched_yield();
    ration_wait_close(s.door);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(atomic_load(&s.draining), 4);

    CHECK_EQ(ration_wait_acquire(s.door, &now, &late, why, sizeof why), RATION_OK);
    CHECK_EQ(late.reason, RATION_REASON_DRAINING);
    CHECK_STR(why, "The process is stopping and takes no new requests.");
    CHECK_EQ(ration_wait_release(s.door, decisions[0].lease, NULL), RATION_OK);
    CHECK_EQ(ration_wait_release(s.door, decisions[0].lease, NULL), RATION_ERR_UNKNOWN);
    ration_wait_free(s.door);
}

static void a_refusal_is_explained_and_a_deadline_passes_without_other_calls(void **state)
{
    ration_decision held[3];
    ration_decision refused;
    char why[160];
    ration_wait *door = door_new(1);
    const ration_request now = request_of(NULL, 0);
    const ration_request brief = request_of(NULL, 2000);

    (void)state;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(ration_wait_acquire(door, &now, &held[i], NULL, 0), RATION_OK);
    CHECK_EQ(ration_wait_acquire(door, &now, &refused, why, sizeof why), RATION_OK);
    CHECK_EQ(refused.reason, RATION_REASON_CONCURRENCY_FULL);
    CHECK_STR(refused.limit, "all");
    CHECK(refused.key.data == NULL);
    CHECK_STR(why, "All slots are taken in limit all at acc: needs 1, 0 of 3 left. When that changes is not known.");
    CHECK_EQ(ration_wait_acquire(door, &brief, &refused, why, sizeof why), RATION_OK);
    CHECK_EQ(refused.reason, RATION_REASON_DEADLINE);
    ration_wait_free(door);
}

static void arguments_that_are_missing_are_errors(void **state)
{
    ration_decision decision;
    ration_wait *door = door_new(1);
    const ration_request now = request_of(NULL, 0);

    (void)state;
    CHECK_EQ(ration_wait_new(NULL, NULL, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_wait_acquire(NULL, &now, &decision, NULL, 0), RATION_ERR_INVALID);
    CHECK_EQ(ration_wait_acquire(door, NULL, &decision, NULL, 0), RATION_ERR_INVALID);
    CHECK_EQ(ration_wait_acquire(door, &now, NULL, NULL, 0), RATION_ERR_INVALID);
    CHECK_EQ(ration_wait_release(NULL, decision.lease, NULL), RATION_ERR_INVALID);
    ration_wait_free(door);
    ration_wait_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_threads_never_pass_a_limit_and_all_get_through),
        cmocka_unit_test(closing_refuses_who_blocks_and_who_comes),
        cmocka_unit_test(a_refusal_is_explained_and_a_deadline_passes_without_other_calls),
        cmocka_unit_test(arguments_that_are_missing_are_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
