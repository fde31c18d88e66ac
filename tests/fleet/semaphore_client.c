/* SPDX-License-Identifier: MIT */
/*
 * A program that uses semaphores as a stranger would, one scenario a run: `semaphore_client URL SCENARIO`. It prints
 * a line for each thing that has happened, which tests/e2e/test_semaphore.py compares; a lock keeps the lines whole.
 */
#include <ration/fleet.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stranger.h"

/* ---- what a semaphore tells */

static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;
static int errors, lost, metrics[RATION_SEMAPHORE_BACK + 1];
static int64_t told_limit;
static ration_semaphore_metric last[RATION_SEMAPHORE_BACK + 1];

static void on_error(void *ctx, const char *what)
{
    (void)ctx;
    (void)pthread_mutex_lock(&told_lock);
    errors++;
    lost += strstr(what, "a lease was lost") != NULL;
    (void)pthread_mutex_unlock(&told_lock);
    (void)fprintf(stderr, "%s\n", what);
}

static void on_limit(void *ctx, int64_t limit)
{
    (void)ctx;
    (void)pthread_mutex_lock(&told_lock);
    told_limit = limit;
    (void)pthread_mutex_unlock(&told_lock);
}

static void on_metric(void *ctx, const ration_semaphore_metric *metric)
{
    (void)ctx;
    (void)pthread_mutex_lock(&told_lock);
    metrics[metric->kind]++;
    last[metric->kind] = *metric;
    (void)pthread_mutex_unlock(&told_lock);
}

static int seen(const int *count)
{
    int value;

    (void)pthread_mutex_lock(&told_lock);
    value = *count;
    (void)pthread_mutex_unlock(&told_lock);
    return value;
}

static ration_semaphore_metric latest(ration_semaphore_metric_kind kind)
{
    ration_semaphore_metric metric;

    (void)pthread_mutex_lock(&told_lock);
    metric = last[kind];
    (void)pthread_mutex_unlock(&told_lock);
    return metric;
}

static void await(const int *count)
{
    for (int i = 0; i < 1200 && seen(count) == 0; i++)
        pause_ms(50);
}

/* ---- two processes in one */

static const ration_class_rule classes[] = {{"fast", {1, 2}}, {"slow", {0, 0}}, {"idle", {0, 0}}};

typedef struct process {
    ration_fleet *fleet;
    ration_semaphore *semaphore;
} process;

static ration_semaphore_options options_of(int64_t limit)
{
    ration_semaphore_options options = RATION_SEMAPHORE_OPTIONS_INIT;

    options.id = "api";
    options.rule.initial_limit = limit;
    options.rule.window_us = 60000 * MS; /* nothing grows unless a scenario wants it */
    options.on_error = on_error;
    options.on_limit_change = on_limit;
    options.on_metric = on_metric;
    return options;
}

static process start(const char *url, const ration_semaphore_options *options)
{
    process p = {fleet_of(url), NULL};
    ration_fault fault = {.path = ""};

    if (ration_semaphore_new(p.fleet, options, &p.semaphore, &fault) != RATION_OK) {
        (void)printf("%s: %s\n", fault.path, fault.text);
        exit(EXIT_FAILURE);
    }
    return p;
}

static void stop(process *p)
{
    ration_semaphore_free(p->semaphore);
    ration_fleet_free(p->fleet);
}

static ration_decision ask(process *p, const char *class_name, int64_t timeout_us, ration_cancel *cancel)
{
    ration_acquire how = RATION_ACQUIRE_INIT;
    ration_decision decision;

    how.class_name = class_name != NULL ? ration_text_of(class_name) : (ration_text){NULL, 0};
    how.timeout_us = timeout_us;
    how.cancel = cancel;
    must(ration_semaphore_acquire(p->semaphore, &how, &decision), "acquire");
    return decision;
}

static const char *outcome_of(const ration_decision *decision)
{
    return decision->result == RATION_GRANTED ? "granted" : ration_reason_name(decision->reason);
}

static ration_decision say(const char *who, process *p, const char *class_name, int64_t timeout_us)
{
    const ration_decision decision = ask(p, class_name, timeout_us, NULL);

    (void)printf("%s %s\n", who, outcome_of(&decision));
    return decision;
}

/* ---- a thread that waits */

typedef struct waiting {
    process *p;
    ration_cancel *cancel;
    ration_decision decision;
    int64_t ended_us;
    pthread_t thread;
} waiting;

static void *wait_main(void *ctx)
{
    waiting *const w = ctx;

    w->decision = ask(w->p, NULL, 60000 * MS, w->cancel);
    w->ended_us = clock_us();
    return NULL;
}

static void wait_begin(waiting *w, process *p, ration_cancel *cancel)
{
    *w = (waiting){.p = p, .cancel = cancel};
    must(pthread_create(&w->thread, NULL, wait_main, w) == 0 ? RATION_OK : RATION_ERR_NOMEM, "thread");
    pause_ms(300);
}

static void wait_end(waiting *w)
{
    (void)pthread_join(w->thread, NULL);
}

/* ---- scenarios */

/* The limit is the fleet's: what one process holds the other cannot have, until it is released. */
static void shared(const char *url)
{
    const ration_semaphore_options options = options_of(2);
    process a = start(url, &options), b = start(url, &options);
    const ration_decision first = say("a", &a, NULL, 0);
    waiting w;

    (void)say("a", &a, NULL, 0);
    (void)say("b", &b, NULL, 0);
    wait_begin(&w, &b, NULL);
    must(ration_semaphore_release(a.semaphore, first.lease, RATION_OUTCOME_SUCCESS), "release");
    must(ration_semaphore_release(a.semaphore, first.lease, RATION_OUTCOME_THROTTLED), "release again");
    wait_end(&w);
    (void)printf("b waited %s\n", outcome_of(&w.decision));
    (void)printf("held %lld %lld limit %lld\n", (long long)ration_semaphore_held(a.semaphore),
                 (long long)ration_semaphore_held(b.semaphore), (long long)ration_semaphore_limit(a.semaphore));
    stop(&b);
    stop(&a);
}

/* A throttled call halves it, at most once a cooldown, and nothing is paused. */
static void throttled(const char *url)
{
    const ration_semaphore_options options = options_of(8);
    process a = start(url, &options);
    ration_lease leases[2];

    for (int i = 0; i < 2; i++)
        leases[i] = say("a", &a, NULL, 0).lease;
    for (int i = 0; i < 2; i++)
        must(ration_semaphore_release(a.semaphore, leases[i], RATION_OUTCOME_THROTTLED), "release");
    for (int i = 0; i < 5; i++)
        (void)say("a", &a, NULL, 0);
    (void)pthread_mutex_lock(&told_lock);
    (void)printf("limit %lld\n", (long long)told_limit);
    (void)pthread_mutex_unlock(&told_lock);
    stop(&a);
}

/* Waits end by time, by a cancel, by the end of the semaphore. */
static void endings(const char *url)
{
    const ration_semaphore_options options = options_of(1);
    process a = start(url, &options);
    const ration_decision held = say("a", &a, NULL, 0);
    ration_cancel *cancel = NULL;
    waiting w;

    must(ration_cancel_new(&cancel), "cancel");
    (void)say("time", &a, NULL, 100 * MS);
    wait_begin(&w, &a, cancel);
    ration_cancel_fire(cancel);
    wait_end(&w);
    (void)printf("cancel %s\n", outcome_of(&w.decision));
    w.decision = ask(&a, NULL, 60000 * MS, cancel);
    (void)printf("cancel before %s\n", outcome_of(&w.decision));
    wait_begin(&w, &a, NULL);
    ration_semaphore_dispose(a.semaphore);
    wait_end(&w);
    (void)printf("dispose %s\n", outcome_of(&w.decision));
    (void)say("after", &a, NULL, 0);
    must(ration_semaphore_release(a.semaphore, held.lease, RATION_OUTCOME_SUCCESS), "release");
    (void)printf("held %lld\n", (long long)ration_semaphore_held(a.semaphore));
    stop(&a);
    ration_cancel_free(cancel);
}

/* A reserved slice stays free for its class, and a class that nobody has declared is none. */
static void by_class(const char *url)
{
    ration_semaphore_options options = options_of(4);

    options.rule.classes = classes;
    options.rule.class_count = 2;

    process a = start(url, &options);

    for (int i = 0; i < 3; i++)
        (void)say("slow", &a, "slow", 0);
    for (int i = 0; i < 2; i++)
        (void)say("fast", &a, "fast", 0);
    (void)say("other", &a, "other", 0);
    stop(&a);
}

/* Two classes without a slice cannot fill that of a third between them. */
static void crowd(const char *url)
{
    static const char *const order[] = {"slow", "idle", "slow", "idle", "fast", "fast", "fast"};
    ration_semaphore_options options = options_of(4);

    options.rule.classes = classes;
    options.rule.class_count = 3;

    process a = start(url, &options);

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        (void)say(order[i], &a, order[i], 0);
    stop(&a);
}

static int give(void *ctx)
{
    return *(const int *)ctx;
}

static ration_outcome mapped(void *ctx, int error)
{
    *(int *)ctx = error;
    return RATION_OUTCOME_THROTTLED;
}

/* The wrapper: the mapper is asked for errors alone, and an error without one is a failure, which teaches nothing. */
static void wrapped(const char *url)
{
    const ration_semaphore_options options = options_of(8);
    process a = start(url, &options);
    ration_acquire how = RATION_ACQUIRE_INIT;
    ration_decision decision;
    int fine = 0, wrong = 7, result = -1, asked_for = 0;

    must(ration_semaphore_with_lease(a.semaphore, &how, give, &fine, &result, &decision), "with");
    (void)printf("returned %d\n", result);
    must(ration_semaphore_with_lease(a.semaphore, &how, give, &wrong, &result, &decision), "with");
    (void)printf("returned %d limit %lld\n", result, (long long)ration_semaphore_limit(a.semaphore));
    how.outcome_on_error = mapped;
    how.ctx = &asked_for;
    must(ration_semaphore_with_lease(a.semaphore, &how, give, &wrong, &result, &decision), "with");
    for (int i = 0; i < 200 && ration_semaphore_limit(a.semaphore) == 8; i++)
        pause_ms(50);
    (void)printf("returned %d mapped %d limit %lld held %lld\n", result, asked_for,
                 (long long)ration_semaphore_limit(a.semaphore), (long long)ration_semaphore_held(a.semaphore));
    stop(&a);
    (void)printf("acquired %d released %d\n", seen(&metrics[RATION_SEMAPHORE_ACQUIRED]),
                 seen(&metrics[RATION_SEMAPHORE_RELEASED]));
}

/* A lease outlives its time to live as long as its holder lives. */
static void renewed(const char *url)
{
    ration_semaphore_options options = options_of(1);

    options.rule.lease_ttl_us = 3000 * MS;

    process a = start(url, &options), b = start(url, &options);

    (void)say("a", &a, NULL, 0);
    pause_ms(4000);
    (void)printf("lost %d\n", seen(&lost));
    (void)say("b", &b, NULL, 0);
    stop(&b);
    stop(&a);
}

/* Nobody is there: refused at once, or a few granted by this process alone. */
static void away(const char *url)
{
    ration_semaphore_options options = options_of(5);
    process a = start(url, &options);

    (void)say("away", &a, NULL, 0);
    stop(&a);
    (void)printf("told %s\n", seen(&errors) > 0 ? "yes" : "no");
    options.local_limit = 2;
    a = start(url, &options);
    for (int i = 0; i < 3; i++)
        (void)say("local", &a, NULL, 0);
    (void)printf("held %lld\n", (long long)ration_semaphore_held(a.semaphore));
    stop(&a);
}

static void hold(const char *url)
{
    ration_semaphore_options options = options_of(1);

    options.rule.lease_ttl_us = 1500 * MS;

    process a = start(url, &options);

    (void)say("a", &a, NULL, 60000 * MS);
    (void)fflush(stdout);
    pause_ms(120000);
    stop(&a);
}

/* Options that make no sense. */
static void faults(const char *url)
{
    ration_semaphore_options options = options_of(0);
    const ration_fleet_options fleet = {.redis = url};
    const ration_fleet_options none = {.redis = NULL};
    const ration_fleet_options nowhere = {.redis = "http://x"};
    ration_fleet *f = NULL;
    ration_semaphore *s = NULL;
    ration_fault fault = {.path = ""};

    (void)printf("%s\n", ration_err_text(ration_fleet_new(&none, &f)));
    must(ration_fleet_new(&fleet, &f), "fleet");
    (void)printf("%d %s\n", ration_semaphore_new(f, &options, &s, &fault) == RATION_ERR_CONFIG, fault.path);
    options = options_of(1001);
    (void)printf("%d %s\n", ration_semaphore_new(f, &options, &s, &fault) == RATION_ERR_CONFIG, fault.path);
    options = options_of(1);
    options.rule.pause_on_retry_after = true;
    (void)printf("%d %s\n", ration_semaphore_new(f, &options, &s, &fault) == RATION_ERR_CONFIG, fault.path);
    options = options_of(1);
    options.id = "";
    (void)printf("%s\n", ration_err_text(ration_semaphore_new(f, &options, &s, &fault)));
    ration_fleet_free(f);
    must(ration_fleet_new(&nowhere, &f), "fleet");
    options.id = "api";
    (void)printf("%d %s\n", ration_semaphore_new(f, &options, &s, &fault) == RATION_ERR_CONFIG, fault.path);
    ration_fleet_free(f);
}

/* ---- the options, one by one */

static void release(process *p, ration_lease lease, ration_outcome outcome)
{
    must(ration_semaphore_release(p->semaphore, lease, outcome), "release");
}

/* One throttled call, and what the limit is then. */
static void throttle(process *p, int64_t expected)
{
    const ration_decision decision = say("a", p, NULL, 0);

    release(p, decision.lease, RATION_OUTCOME_THROTTLED);
    for (int i = 0; i < 1200 && ration_semaphore_limit(p->semaphore) != expected; i++)
        pause_ms(50);
    (void)printf("limit %lld\n", (long long)ration_semaphore_limit(p->semaphore));
}

/* Attempts at the cap until the limit is there, or there were enough. */
static void demand(process *p, int64_t expected)
{
    for (int i = 0; i < 1200 && ration_semaphore_limit(p->semaphore) < expected; i++) {
        (void)ask(p, NULL, 0, NULL);
        pause_ms(50);
    }
}

/* The floor and the ceiling; a limit of one is the floor where none is given. */
static void bounds(const char *url)
{
    ration_semaphore_options options = options_of(4);

    options.rule.min_limit = 3;
    options.rule.max_limit = 5;
    options.rule.window_us = 100 * MS;
    options.rule.cooldown_us = 1 * MS;

    process a = start(url, &options);

    for (int i = 0; i < 2; i++) {
        throttle(&a, 3);
        pause_ms(50);
    }
    demand(&a, 5);
    for (int i = 0; i < 10; i++) {
        (void)ask(&a, NULL, 0, NULL);
        pause_ms(50);
    }
    (void)printf("limit %lld held %lld\n", (long long)ration_semaphore_limit(a.semaphore),
                 (long long)ration_semaphore_held(a.semaphore));
    stop(&a);
    options = options_of(1);
    options.id = "one";
    a = start(url, &options);
    throttle(&a, 1);
    (void)say("a", &a, NULL, 60000 * MS);
    stop(&a);
}

/* Demand at the cap makes it grow by the step, once a window; without demand it stays. */
static void growth(const char *url)
{
    ration_semaphore_options options = options_of(1);
    process a = start(url, &options);

    for (int i = 0; i < 4; i++)
        (void)say("a", &a, NULL, 0);
    (void)printf("limit %lld\n", (long long)ration_semaphore_limit(a.semaphore));
    stop(&a);
    options.id = "quick";
    options.rule.window_us = 200 * MS;
    options.rule.increase_step = 3;
    a = start(url, &options);
    (void)say("a", &a, NULL, 0);
    pause_ms(1000);
    (void)printf("quiet %lld\n", (long long)ration_semaphore_limit(a.semaphore));
    (void)say("a", &a, NULL, 0);
    (void)printf("limit %lld\n", (long long)ration_semaphore_limit(a.semaphore));
    stop(&a);
}

/* A factor and a cooldown of one's own. */
static void softened(const char *url)
{
    ration_semaphore_options options = options_of(8);

    options.rule.decrease_factor = (ration_ratio){3, 4};
    options.rule.cooldown_us = 50 * MS;

    process a = start(url, &options);

    throttle(&a, 6);
    pause_ms(200);
    throttle(&a, 4);
    stop(&a);
}

/* Two semaphores of one connection, and names of their own. */
static void ids(const char *url)
{
    ration_semaphore_options options = options_of(1);
    process a = start(url, &options);
    process other = {a.fleet, NULL};

    options.id = "other api";
    must(ration_semaphore_new(a.fleet, &options, &other.semaphore, NULL), "semaphore");
    your_turn("made");
    (void)say("a", &a, NULL, 0);
    (void)say("a", &a, NULL, 0);
    (void)say("other", &other, NULL, 0);
    your_turn("held");
    ration_semaphore_free(other.semaphore);
    stop(&a);
}

/* What the metrics hook is told, and the callback of the limit. */
static void measured(const char *url)
{
    const ration_semaphore_options options = options_of(2);
    process a = start(url, &options);
    const ration_decision first = ask(&a, NULL, 0, NULL), second = ask(&a, NULL, 0, NULL);

    (void)ask(&a, NULL, 100 * MS, NULL);
    (void)printf("refused %s waited %d\n", ration_reason_name(latest(RATION_SEMAPHORE_REFUSED).reason),
                 latest(RATION_SEMAPHORE_REFUSED).span_us >= 100 * MS);
    release(&a, first.lease, RATION_OUTCOME_FAILURE);
    (void)printf("released failure %d held %d\n", latest(RATION_SEMAPHORE_RELEASED).outcome == RATION_OUTCOME_FAILURE,
                 latest(RATION_SEMAPHORE_RELEASED).span_us >= 100 * MS);
    release(&a, second.lease, RATION_OUTCOME_THROTTLED);
    release(&a, second.lease, RATION_OUTCOME_SUCCESS);
    await(&metrics[RATION_SEMAPHORE_LIMIT]);
    (void)printf("released throttled %d limit %lld\n",
                 latest(RATION_SEMAPHORE_RELEASED).outcome == RATION_OUTCOME_THROTTLED,
                 (long long)latest(RATION_SEMAPHORE_LIMIT).value);
    (void)printf("acquired %d refused %d released %d\n", seen(&metrics[RATION_SEMAPHORE_ACQUIRED]),
                 seen(&metrics[RATION_SEMAPHORE_REFUSED]), seen(&metrics[RATION_SEMAPHORE_RELEASED]));
    stop(&a);
}

/* What a time is that nobody has said: a wait ends after ten seconds, a window after five, a cooldown after ten. */
static void patient(const char *url)
{
    ration_semaphore_options options = options_of(1);
    process a = start(url, &options), window = {a.fleet, NULL}, cooldown = {a.fleet, NULL};
    waiting w;
    int64_t span_us;

    options.id = "window";
    options.rule.window_us = 0;
    must(ration_semaphore_new(a.fleet, &options, &window.semaphore, NULL), "semaphore");
    options.id = "cooldown";
    options.rule.initial_limit = 8;
    must(ration_semaphore_new(a.fleet, &options, &cooldown.semaphore, NULL), "semaphore");
    throttle(&cooldown, 4);
    (void)say("a", &a, NULL, 0);

    const int64_t begun_us = clock_us();

    (void)say("window", &window, NULL, 0);
    wait_begin(&w, &window, NULL);
    (void)say("a", &a, NULL, RATION_UNSET);
    span_us = latest(RATION_SEMAPHORE_REFUSED).span_us;
    (void)printf("ten seconds %d\n", span_us >= 9900 * MS && span_us < 25000 * MS);
    wait_end(&w);
    span_us = w.ended_us - begun_us;
    (void)printf("window %s five seconds %d\n", outcome_of(&w.decision), span_us >= 4900 * MS && span_us < 20000 * MS);
    throttle(&cooldown, 2);
    ration_semaphore_free(window.semaphore);
    ration_semaphore_free(cooldown.semaphore);
    stop(&a);
}

/* What is held when it is disposed of lapses. */
static void lapse(const char *url)
{
    ration_semaphore_options options = options_of(1);

    options.rule.lease_ttl_us = 1000 * MS;

    process a = start(url, &options), b = start(url, &options);

    (void)say("a", &a, NULL, 0);
    ration_semaphore_dispose(a.semaphore);
    ration_semaphore_dispose(a.semaphore);
    (void)say("b", &b, NULL, 60000 * MS);
    await(&metrics[RATION_SEMAPHORE_LOST]);
    (void)printf("lost %d told %d held %lld\n", seen(&metrics[RATION_SEMAPHORE_LOST]), seen(&lost),
                 (long long)ration_semaphore_held(a.semaphore));
    stop(&b);
    stop(&a);
}

/* The store goes and comes back: what the limit has learned is there still. */
static void healed(const char *url)
{
    ration_semaphore_options options = options_of(8);
    ration_decision decision;

    process a = start(url, &options);

    throttle(&a, 4);
    your_turn("take it away");
    do {
        decision = ask(&a, NULL, 0, NULL);
        if (decision.result == RATION_GRANTED)
            release(&a, decision.lease, RATION_OUTCOME_SUCCESS);
    } while (decision.result == RATION_GRANTED);
    (void)printf("a %s\n", outcome_of(&decision));
    await(&metrics[RATION_SEMAPHORE_AWAY]);
    your_turn("bring it back");
    await(&metrics[RATION_SEMAPHORE_BACK]);
    for (int i = 0; i < 5; i++)
        (void)say("a", &a, NULL, 0);
    (void)printf("away %d back %d told %d\n", seen(&metrics[RATION_SEMAPHORE_AWAY]),
                 seen(&metrics[RATION_SEMAPHORE_BACK]), seen(&errors) > 0);
    stop(&a);
}

/* The store dies and has forgotten a lease; its holder lives, and enters it anew. */
static void bereft(const char *url)
{
    const ration_semaphore_options options = options_of(1);
    process a = start(url, &options), b = start(url, &options);
    ration_decision decision;

    (void)say("a", &a, NULL, 0);
    your_turn("take it away");
    await(&metrics[RATION_SEMAPHORE_AWAY]);
    your_turn("bring it back");
    for (int i = 0; i < 1200; i++) { /* the other may hear of it later */
        decision = ask(&b, NULL, 0, NULL);
        if (decision.reason != RATION_REASON_STORE_UNAVAILABLE)
            break;
        pause_ms(50);
    }
    (void)printf("b %s\n", outcome_of(&decision));
    (void)printf("lost %d held %lld\n", seen(&lost), (long long)ration_semaphore_held(a.semaphore));
    stop(&b);
    stop(&a);
}

/* Nobody listens to errors: standard error has them. User and password are in the environment. */
static void unheard(const char *url)
{
    const ration_fleet_options fleet = {.redis = url,
                                        .user = getenv("STORE_USER"),
                                        .password = getenv("STORE_PASSWORD"),
                                        .connect_timeout_us = 5000 * MS,
                                        .command_timeout_us = 5000 * MS};
    ration_semaphore_options options = options_of(1);
    ration_fault fault = {.path = ""};
    process a = {NULL, NULL};

    options.on_error = NULL;
    must(ration_fleet_new(&fleet, &a.fleet), "fleet");
    if (ration_semaphore_new(a.fleet, &options, &a.semaphore, &fault) == RATION_OK) {
        (void)say("a", &a, NULL, 0);
    } else {
        (void)printf("%s %s\n", fault.path, fault.text);
    }
    stop(&a);
}

int main(int argc, char **argv)
{
    static const scenario scenarios[] = {
        {"shared", shared},   {"throttled", throttled}, {"endings", endings}, {"classes", by_class},
        {"wrapped", wrapped}, {"renewed", renewed},     {"away", away},       {"hold", hold},
        {"faults", faults},   {"bounds", bounds},       {"growth", growth},   {"softened", softened},
        {"ids", ids},         {"measured", measured},   {"patient", patient}, {"lapse", lapse},
        {"healed", healed},   {"bereft", bereft},       {"unheard", unheard}, {"crowd", crowd},
    };

    return scenario_run(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
}
