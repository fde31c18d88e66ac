/* SPDX-License-Identifier: MIT */
/*
 * A program whose threads make the calls: `ration_wait_acquire` blocks until a call may leave.
 *
 * A provider allows two calls at once; four threads have three each to make. What stands in for the call counts how
 * many are on their way together.
 *
 *     cc threads.c $(pkg-config --cflags --libs ration) -pthread
 */
#include <ration/ration.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, CALLS = 3, AT_ONCE = 2 };

static ration_wait *limits;
static atomic_int on_the_way;
static atomic_int went_wrong;

static void call_the_api(void)
{
    if (atomic_fetch_add(&on_the_way, 1) >= AT_ONCE)
        atomic_store(&went_wrong, 1);
    (void)sched_yield();
    (void)atomic_fetch_sub(&on_the_way, 1);
}

static void *worker(void *unused)
{
    ration_request request = RATION_REQUEST_INIT;
    const ration_completion done = RATION_COMPLETION_INIT;
    ration_decision decision;

    (void)unused;
    request.account = ration_text_of("mine");
    request.wait_us = RATION_FOREVER_US;
    for (int i = 0; i < CALLS; i++) {
        if (ration_wait_acquire(limits, &request, &decision, NULL, 0) != RATION_OK ||
            decision.result != RATION_GRANTED) {
            atomic_store(&went_wrong, 1);
            break;
        }
        call_the_api();
        (void)ration_wait_release(limits, decision.lease, &done);
    }
    return NULL;
}

static int limits_make(void)
{
    const ration_limit_rule rules_of_api[] = {
        {.name = "at-once", .kind = RATION_KIND_CONCURRENCY, .max = AT_ONCE * RATION_UNIT}};
    const ration_provider_rule providers[] = {{.name = "api", .limits = rules_of_api, .limit_count = 1}};
    const ration_account_rule accounts[] = {{.name = "mine", .provider = "api"}};
    const ration_rules rules = {.providers = providers, .provider_count = 1, .accounts = accounts, .account_count = 1};
    const ration_engine_options options = {.rules = &rules};
    ration_fault fault = {.path = ""};
    const int err = ration_wait_new(&options, &limits, &fault);

    if (err != RATION_OK)
        (void)fprintf(stderr, "%s: %s: %s\n", ration_err_text(err), fault.path, fault.text);
    return err;
}

int main(void)
{
    pthread_t threads[THREADS];
    int started = 0;

    if (limits_make() != RATION_OK)
        return EXIT_FAILURE;
    while (started < THREADS && pthread_create(&threads[started], NULL, worker, NULL) == 0)
        started++;
    for (int i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL);
    ration_wait_free(limits);
    (void)printf("%d threads, %d calls each, never more than %d at once\n", started, CALLS, AT_ONCE);
    return started < THREADS || atomic_load(&went_wrong) ? EXIT_FAILURE : EXIT_SUCCESS;
}
