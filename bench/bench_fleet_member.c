/* SPDX-License-Identifier: MIT */
/*
 * What one process of a fleet admits a second, with `prefetch` and without: 64 requests under way, each released as
 * soon as it is granted, and nothing else beside. By turns in one run, a second each; printed are the medians.
 *
 * usage: bench_fleet_member URL     URL: of a Redis that does nothing else
 */
#include <stdio.h>
#include <stdlib.h>

#include <ration/config.h>

#include "base/units.h"
#include "fleet/member.h"

#define UNDER_WAY 64
#define ROUNDS 5
#define SECOND_US INT64_C(1000000)

static const char rules[] = "providers: [ { name: p, baseUrl: 'http://127.0.0.1:1', limits: [\n"
                            "  { name: rate, kind: rate, rate: 1000000/s, burst: 1000000, scope: { by: [account] } },\n"
                            "  { name: daily, kind: quota, max: 9000000000, window: { period: day },\n"
                            "    scope: { by: [account] } } ] } ]\n"
                            "accounts: [ { name: a, provider: p } ]\n";

typedef struct bench {
    rn_deferred more;
    rn_loop *loop;
    rn_decider *decider;
    int pending;
    uint64_t granted;
    ration_time until;
} bench;

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_fleet_member: %s\n", what);
    exit(EXIT_FAILURE);
}

static void granted(bench *b, ration_lease lease)
{
    const ration_completion how = RATION_COMPLETION_INIT;

    b->granted++;
    if (b->decider->ops->release(b->decider, rn_loop_now(b->loop), lease, &how) != RATION_OK)
        die("a lease is unknown");
}

/* As many as may be under way; where all are granted at once, as many and then a look at what else there is. */
static void go_on(rn_deferred *work)
{
    bench *const b = (bench *)(void *)work;
    ration_event event;

    while (b->decider->ops->next_event(b->decider, &event)) {
        if (event.type == RATION_EVENT_GRANTED) {
            b->pending--;
            granted(b, event.lease);
        } else if (event.type == RATION_EVENT_REFUSED) {
            die("a request was refused");
        }
    }
    if (!rn_time_before(rn_loop_now(b->loop), b->until)) {
        if (b->pending == 0)
            rn_loop_stop(b->loop);
        return;
    }
    for (int i = b->pending; i < UNDER_WAY; i++) {
        ration_request request = RATION_REQUEST_INIT;
        ration_decision decision;

        request.account = (ration_text){"a", 1};
        request.wait_us = 60 * SECOND_US;
        if (b->decider->ops->submit(b->decider, rn_loop_now(b->loop), &request, &decision) != RATION_OK)
            die("no memory");
        if (decision.result == RATION_GRANTED) {
            granted(b, decision.lease);
        } else if (decision.result == RATION_PENDING || decision.result == RATION_QUEUED) {
            b->pending++;
        } else {
            die("a request was refused");
        }
    }
    if (b->pending < UNDER_WAY)
        rn_loop_defer_next(b->loop, work);
}

static void on_woken(void *ctx)
{
    bench *const b = ctx;

    rn_loop_defer(b->loop, &b->more);
}

static void on_changed(void *ctx, rn_member_state state, const char *text)
{
    bench *const b = ctx;

    (void)text;
    if (state == RN_MEMBER_UP)
        rn_loop_defer(b->loop, &b->more);
}

static double admissions(const char *url, const ration_rules *of, int64_t prefetch)
{
    const rn_member_settings settings = {
        .url = url,
        .name = "bench",
        .connect_us = SECOND_US,
        .command_us = 5 * SECOND_US,
        .backoff_us = SECOND_US,
        .local_limit = RATION_UNSET,
        .lease_ttl_us = 30 * SECOND_US,
        .waiter_ttl_us = 3 * SECOND_US,
        .prefetch = prefetch,
        .prefetch_ttl_us = SECOND_US,
    };
    bench b = {.more.fn = go_on};
    char fault[RN_MEMBER_TEXT];
    rn_member *member = NULL;

    if (rn_loop_new(&b.loop) != RATION_OK)
        die("no loop");

    const rn_member_options options = {.loop = b.loop,
                                       .settings = &settings,
                                       .rules = of,
                                       .config = "bench",
                                       .instance = "bench",
                                       .woken = on_woken,
                                       .changed = on_changed,
                                       .ctx = &b};

    if (rn_member_new(&options, &member, fault) != RATION_OK)
        die(fault);
    b.decider = rn_member_decider(member);

    const ration_time begun = rn_loop_now(b.loop);

    b.until = rn_time_add(begun, SECOND_US);
    rn_loop_run(b.loop);

    const double took = (double)(rn_loop_now(b.loop).us - begun.us) / (double)SECOND_US;

    rn_member_free(member);
    rn_loop_free(b.loop);
    return (double)b.granted / took;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    double single[ROUNDS];
    double many[ROUNDS];
    double ratio[ROUNDS];
    ration_config_faults faults = {0};
    ration_config *config = NULL;

    if (argc != 2)
        die("usage: bench_fleet_member URL");
    if (ration_config_parse(ration_text_of(rules), "bench", NULL, &config, &faults) != RATION_OK)
        die("its own rules");
    for (int i = 0; i < ROUNDS; i++) {
        single[i] = admissions(argv[1], ration_config_rules(config), 1);
        many[i] = admissions(argv[1], ration_config_rules(config), 100);
        ratio[i] = many[i] / single[i];
    }
    ration_config_free(config);
    (void)printf("admissions/s: %.0f one by one, %.0f with prefetch 100: %.1f times (aim 10)\n", median(single),
                 median(many), median(ratio));
    return EXIT_SUCCESS;
}
