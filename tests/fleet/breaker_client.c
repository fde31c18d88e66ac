/* SPDX-License-Identifier: MIT */
/*
 * A program that uses breakers as a stranger would, one scenario a run: `breaker_client URL SCENARIO`. It prints a line
 * for each thing that has happened, which tests/e2e/test_breaker_client.py compares.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "breaker_house.h"

/* ---- scenarios: the circuit */

/* What fails here is cut off there, and each call that is blocked counts. */
static void shared(const char *url)
{
    const ration_breaker_options options = options_of();
    process a = start(url, &options, 0);
    process b;

    fail(&a, 2);
    (void)call(&a, 0, RATION_UNSET);
    fail(&a, 2);
    say_state("a", &a);
    b = start(url, &options, 0);
    fail(&a, 1);
    await_state(&a, RATION_BREAKER_OPEN);
    await_state(&b, RATION_BREAKER_OPEN);
    say_state("b", &b);
    say("a", &a, 0);
    say("b", &b, 0);
    say("b", &b, 0);
    (void)printf("calls %d blocked %d called %d\n", atomic_load(&calls), seen(&metrics[RATION_BREAKER_METRIC_BLOCKED]),
                 seen(&metrics[RATION_BREAKER_METRIC_CALLED]));
    say_changes();
    stop(&b);
    stop(&a);
}

/* One who comes to an open circuit knows it when `start` is back, and lets nobody go. */
static void late_comer(const char *url)
{
    const ration_breaker_options options = options_of();
    process a = start(url, &options, 0), b;

    fail(&a, 3);
    await_state(&a, RATION_BREAKER_OPEN);
    say_changes();
    b = start(url, &options, 0);
    say_state("b", &b);
    say_changes();
    say("b", &b, 0);
    stop(&b);
    stop(&a);
}

/* After a back-off one may try; it closes again, for all. */
static void probes(const char *url)
{
    ration_breaker_options options = options_of();

    options.rule.backoff_initial_us = 300 * MS;

    process a = start(url, &options, 0), b = start(url, &options, 0);

    fail(&a, 3);
    await_state(&b, RATION_BREAKER_OPEN);
    await_state(&b, RATION_BREAKER_HALF_OPEN);
    say_state("b", &b);
    say("b", &b, 0);
    await_state(&a, RATION_BREAKER_CLOSED);
    await_state(&b, RATION_BREAKER_CLOSED);
    say_state("a", &a);
    say_state("b", &b);
    say("a", &a, 0);
    stop(&b);
    stop(&a);
}

/* So many calls with and without success, and what the circuit is then. */
static void trip(const char *url, const char *id, ration_breaker_options *options, const char *results)
{
    process a;

    options->id = id;
    a = start(url, options, 0);
    for (const char *at = results; *at != '\0'; at++)
        (void)call(&a, *at == 'x' ? WRONG : 0, RATION_UNSET);
    must(ration_breaker_stop(a.breaker), "stop"); /* the store has all of it */
    must(ration_breaker_start(a.breaker), "start");
    (void)printf("%s %s %s\n", id, results, name_of(ration_breaker_state(a.breaker)));
    stop(&a);
}

static void strategies(const char *url)
{
    ration_breaker_options options = options_of();

    trip(url, "in-a-row", &options, "xxox");
    trip(url, "three", &options, "oxxx");
    options.rule.strategy = RATION_BREAKER_COUNT;
    options.rule.size = 4;
    options.rule.minimum_calls = 4;
    trip(url, "too-few", &options, "xxx");
    trip(url, "a-half", &options, "oxox");
    trip(url, "a-quarter", &options, "ooox");
    options.rule.strategy = RATION_BREAKER_SAMPLING;
    options.rule.duration_us = 600000 * MS;
    options.rule.ratio = (ration_ratio){3, 4};
    trip(url, "some", &options, "ooxx");
    trip(url, "most", &options, "oxxx");
}

/* However often one process fails: another must have seen a failure, too. */
static void quorum(const char *url)
{
    ration_breaker_options options = options_of();

    options.rule.quorum = 2;

    process a = start(url, &options, 0), b = start(url, &options, 0);

    fail(&a, 9);
    must(ration_breaker_stop(a.breaker), "stop");
    must(ration_breaker_start(a.breaker), "start");
    say_state("a", &a);
    fail(&b, 1);
    await_state(&a, RATION_BREAKER_OPEN);
    await_state(&b, RATION_BREAKER_OPEN);
    say_state("a", &a);
    say_state("b", &b);
    stop(&b);
    stop(&a);
}

/* ---- scenarios: the checks */

static int checkers(process *a, process *b)
{
    return (ration_breaker_role(a->breaker) == RATION_ROLE_CHECKER) +
           (ration_breaker_role(b->breaker) == RATION_ROLE_CHECKER);
}

/* Each check is made by one of them, until it is well. */
static void checks(const char *url)
{
    ration_breaker_options options = options_of();

    options.rule.recovery = RATION_RECOVERY_HEALTH_CHECK;
    options.rule.backoff_initial_us = 300 * MS;

    process a = start(url, &options, 0), b = start(url, &options, 0);

    (void)printf("checkers %d\n", checkers(&a, &b));
    fail(&a, 3);
    await_state(&b, RATION_BREAKER_OPEN);
    for (int i = 0; i < 1200 && seen(&metrics[RATION_BREAKER_METRIC_CHECKED]) < 3; i++)
        pause_ms(20);
    (void)printf("checker %d open %d ok %d\n", checkers(&a, &b) > 0,
                 ration_breaker_state(a.breaker) == RATION_BREAKER_OPEN, last[RATION_BREAKER_METRIC_CHECKED].ok);
    say("b", &b, 0);
    atomic_store(&well, 1);
    await_state(&a, RATION_BREAKER_CLOSED);
    await_state(&b, RATION_BREAKER_CLOSED);
    say("a", &a, 0);
    (void)printf("checkers %d\n", checkers(&a, &b));
    stop(&b);
    stop(&a);
    (void)printf("took its time %d\n", span_of(RATION_BREAKER_METRIC_CHECKED) >= 20 * MS);
}

/* However long one takes, a process makes one at a time, and takes part in all else meanwhile. */
static atomic_int entered;

static bool slow_health(void *ctx)
{
    (void)atomic_fetch_add(&entered, 1);
    pause_ms(2500);
    return health(ctx);
}

static void slow_check(const char *url)
{
    ration_breaker_options options = options_of();

    options.health = slow_health;
    options.rule.recovery = RATION_RECOVERY_HEALTH_CHECK;
    options.rule.backoff_initial_us = 200 * MS;

    process a = start(url, &options, 0);

    fail(&a, 3);
    for (int i = 0; i < 1200 && atomic_load(&entered) == 0; i++)
        pause_ms(20);
    say("a", &a, 0); /* the fleet's thread is there */
    atomic_store(&well, 1);
    await_state(&a, RATION_BREAKER_CLOSED);
    say_state("a", &a);
    (void)printf("at once %d\n", atomic_load(&most_looking));
    stop(&a);
}

/* While it is closed and quiet somebody looks after it. */
static void idle(const char *url)
{
    ration_breaker_options options = options_of();

    options.rule.idle_interval_us = 200 * MS;
    options.rule.idle_failures = 2;

    process a = start(url, &options, 0);

    say("a", &a, 0);
    await_state(&a, RATION_BREAKER_OPEN);
    say_state("a", &a);
    say_changes();
    stop(&a);
}

/* One of two processes, one of which is killed: it says when it is asked to look, and is well when it is told so. */
static bool asked_health(void *ctx)
{
    (void)ctx;
    if (atomic_fetch_add(&entered, 1) == 0) {
        (void)puts("asked");
        (void)fflush(stdout);
    }
    return atomic_load(&well) != 0;
}

static void survivor(const char *url)
{
    ration_breaker_options options = options_of();

    options.health = asked_health;
    options.rule.threshold = 1;
    options.rule.recovery = RATION_RECOVERY_HEALTH_CHECK;
    options.rule.backoff_initial_us = 500 * MS;

    process a = start(url, &options, 0);

    your_turn("ready");
    fail(&a, 1);
    await_state(&a, RATION_BREAKER_OPEN);
    your_turn("open");
    atomic_store(&well, 1);
    await_state(&a, RATION_BREAKER_CLOSED);
    say_state("a", &a);
    stop(&a);
}

/* It waits in a check, and the test stops the whole process meanwhile: its answer, that all is well, comes too late. */
static bool told_health(void *ctx)
{
    const bool answer = *(const bool *)ctx;

    if (atomic_fetch_add(&entered, 1) == 0)
        your_turn("asked");
    return answer;
}

static void overtaken_as(const char *url, bool answer)
{
    ration_breaker_options options = options_of();

    options.health = told_health;
    options.on_error = NULL;
    options.on_state_change = NULL;
    options.on_metric = NULL;
    options.ctx = &answer;
    options.rule.threshold = 1;
    options.rule.recovery = RATION_RECOVERY_HEALTH_CHECK;
    options.rule.backoff_initial_us = 1000 * MS;
    options.rule.backoff_multiplier = (ration_ratio){1000, 1};

    process a = start(url, &options, 0);

    fail(&a, 1); /* of the second process, it is blocked already */
    await_state(&a, RATION_BREAKER_OPEN);
    for (int i = 0; i < 1200 && atomic_load(&entered) == 0; i++)
        pause_ms(50);
    must(ration_breaker_stop(a.breaker), "stop"); /* the answer is with the store */
    must(ration_breaker_start(a.breaker), "start");
    say_state("still", &a);
    stop(&a);
}

static void overtaken(const char *url)
{
    overtaken_as(url, true);
}

static void overtakes(const char *url)
{
    overtaken_as(url, false);
}

/* ---- scenarios: the store */

/* Nobody is there: calls go, for nothing is known against it. */
static void away(const char *url)
{
    const ration_breaker_options options = options_of();
    process a = start(url, &options, 0);

    for (int i = 0; i < 5; i++)
        say("a", &a, WRONG);
    say_state("a", &a);
    (void)printf("told %d away %d\n", seen(&errors), seen(&metrics[RATION_BREAKER_METRIC_AWAY]));
    stop(&a);
}

static void await_metric(ration_breaker_metric_kind kind)
{
    for (int i = 0; i < 1200 && seen(&metrics[kind]) == 0; i++)
        pause_ms(50);
}

/* One call is well, the store goes, and three fail: their results are kept. */
static void fail_while_away(process *a)
{
    say("a", a, 0);
    your_turn("take it away");
    await_metric(RATION_BREAKER_METRIC_AWAY);
    for (int i = 0; i < 3; i++)
        say("a", a, WRONG);
}

/* The store goes while the circuit is closed: calls go on, and what came of them is told when it is back. */
static void healed(const char *url)
{
    const ration_breaker_options options = options_of();
    process a = start(url, &options, 0);

    fail_while_away(&a);
    say_state("away", &a);
    your_turn("bring it back");
    await_metric(RATION_BREAKER_METRIC_BACK);
    await_state(&a, RATION_BREAKER_OPEN);
    say_state("back", &a);
    (void)printf("told %d\n", seen(&errors));
    stop(&a);
}

/* It goes while the circuit is open: that it stays, and is forgotten only by a store that has forgotten it. */
static void bereft(const char *url)
{
    ration_breaker_options options = options_of();

    options.rule.backoff_initial_us = 500 * MS;
    options.rule.recovery = RATION_RECOVERY_HEALTH_CHECK;

    process a = start(url, &options, 0);

    fail(&a, 3);
    await_state(&a, RATION_BREAKER_OPEN);
    your_turn("take it away");
    await_metric(RATION_BREAKER_METRIC_AWAY);
    pause_ms(1000); /* the back-off is over */
    say("a", &a, 0);
    your_turn("bring it back");
    await_state(&a, RATION_BREAKER_CLOSED);
    say("a", &a, 0);
    stop(&a);
}

/* More results than are kept, then the store is back, then one more failure: the circuit opens on `threshold`. */
static void kept(const char *url, int64_t threshold, int good, int bad)
{
    ration_breaker_options options = options_of();

    options.rule.threshold = threshold;

    process a = start(url, &options, 0);

    say("a", &a, 0);
    your_turn("take it away");
    await_metric(RATION_BREAKER_METRIC_AWAY);
    for (int i = 0; i < good; i++)
        (void)call(&a, 0, 0);
    for (int i = 0; i < bad; i++)
        (void)call(&a, WRONG, 0);
    say_state("away", &a);
    your_turn("bring it back");
    await_metric(RATION_BREAKER_METRIC_BACK);
    pause_ms(1000);
    say_state("back", &a);
    if (ration_breaker_state(a.breaker) == RATION_BREAKER_CLOSED)
        say("a", &a, WRONG);
    await_state(&a, RATION_BREAKER_OPEN);
    say_state("then", &a);
    stop(&a);
}

/* 600 failures of which 512 are told: one is missing to 513. */
static void bounded(const char *url)
{
    kept(url, 513, 0, 600);
}

/* The newest are told: all 512 failures, and none of the successes before them. */
static void newest(const char *url)
{
    kept(url, 513, 8, 512);
}

/* Opens the circuit and goes. */
static void opens(const char *url)
{
    ration_breaker_options options = options_of();

    options.rule.backoff_initial_us = 500 * MS;

    process a = start(url, &options, 0);

    fail(&a, 3);
    stop(&a);
}

/* When the store is back another process has opened the circuit: what was kept until then is told nobody. */
static void outdated(const char *url)
{
    ration_breaker_options options = options_of();

    options.rule.backoff_initial_us = 500 * MS;

    process a = start(url, &options, 0);

    fail_while_away(&a);
    your_turn("bring it back, open");
    await_metric(RATION_BREAKER_METRIC_BACK);
    for (int i = 0; i < 600 && seen(&metrics[RATION_BREAKER_METRIC_STATE]) == 0; i++)
        pause_ms(20);
    for (int i = 0; i < 600 && ration_breaker_state(a.breaker) != RATION_BREAKER_CLOSED; i++) {
        (void)call(&a, 0, 0);
        pause_ms(100);
    }
    pause_ms(2000);
    /* Open, half-open, closed, and not again. */
    (void)printf("opened again %d\n", seen(&metrics[RATION_BREAKER_METRIC_STATE]) > 3);
    say_state("later", &a);
    stop(&a);
}

/* Nobody listens to errors: standard error has them. */
static void unheard(const char *url)
{
    ration_breaker_options options = options_of();

    options.on_error = NULL;

    process a = start(url, &options, 0);

    say("a", &a, 0);
    stop(&a);
}

int main(int argc, char **argv)
{
    static const scenario scenarios[] = {
        {"shared", shared},     {"late_comer", late_comer}, {"probes", probes},         {"strategies", strategies},
        {"quorum", quorum},     {"checks", checks},         {"slow_check", slow_check}, {"idle", idle},
        {"survivor", survivor}, {"overtaken", overtaken},   {"overtakes", overtakes},   {"away", away},
        {"healed", healed},     {"bereft", bereft},         {"unheard", unheard},       {"bounded", bounded},
        {"newest", newest},     {"opens", opens},           {"outdated", outdated},
    };

    return scenario_run(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
}
