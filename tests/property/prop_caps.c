/* SPDX-License-Identifier: MIT */
/*
 * A cap on cost under calls that tell what they cost only when they end: chapter 7, "Cost".
 *
 * Calls come with an estimate, run beside each other, and settle with an actual cost. Beside the engine stands the
 * obvious model: the sum of what runs (its estimate) and of what is over (its actual cost). Where no estimate is below
 * its actual cost, that sum, and what it will have become, never passes the cap. Else it passes it by what was missing
 * from estimates and no more, and nobody is granted until that has been made up.
 */
#include "support/check.h"
#include "support/property.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <ration/engine.h>

#include "base/text.h"
#include "base/units.h"

#define UNIT RATION_UNIT
#define MS INT64_C(1000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)
#define CALLS 256
#define MAX (100 * UNIT)
#define EARN INT64_C(10)  /* of a bucket, micro-units a microsecond */
#define WIDTH (1500 * MS) /* of a part of a rolling window of 90 s */
#define COUNTS (91500 * MS)

typedef enum cap { A_MINUTE = 0, ROLLING, BUCKET } cap;

typedef enum stage { OVER = 0, WAITS, RUNS } stage;

typedef struct one {
    stage stage;
    ration_lease lease;
    bool granted;
    int64_t at_us;
    int64_t estimate, actual;
    int64_t charge; /* the estimate, then the actual cost */
} one;

typedef struct world {
    choices *c;
    cap cap;
    bool honest; /* no estimate is below its actual cost */
    ration_engine *engine;
    int64_t now;
    one of[CALLS];
    size_t count, waiting;
    int64_t credit, credit_at; /* of the bucket */
    int64_t reported;
} world;

static void engine_new(world *w)
{
    const ration_limit_rule limits[] = {
        [A_MINUTE] = {.name = "cap",
                      .kind = RATION_KIND_QUOTA,
                      .counts = RATION_COUNTS_COST,
                      .max = MAX,
                      .window = {.period = RATION_PERIOD_MINUTE},
                      .when_exhausted = RATION_EXHAUSTED_WAIT},
        [ROLLING] = {.name = "cap",
                     .kind = RATION_KIND_QUOTA,
                     .counts = RATION_COUNTS_COST,
                     .max = MAX,
                     .window = {.rolling_us = 90 * SECOND},
                     .when_exhausted = RATION_EXHAUSTED_WAIT},
        [BUCKET] = {.name = "cap",
                    .kind = RATION_KIND_RATE,
                    .counts = RATION_COUNTS_COST,
                    .rate = {.units = EARN * SECOND, .per_us = SECOND},
                    .burst = MAX,
                    .margin = 0},
    };
    const ration_provider_rule provider = {.name = "p", .limits = &limits[w->cap], .limit_count = 1};
    const ration_account_rule account = {.name = "acc", .provider = "p"};
    const ration_rules rules = {
        .retry_reserve = {0, 1}, .providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options options = {.rules = &rules};

    if (ration_engine_new(&options, ration_time_of(w->now), &w->engine, NULL) != RATION_OK)
        abort();
}

/* ---- the model */

static bool counts(const world *w, const one *call, int64_t at_us)
{
    if (!call->granted)
        return false;
    if (w->cap == A_MINUTE)
        return call->at_us >= rn_div_floor(at_us, MINUTE) * MINUTE;
    return rn_div_floor(call->at_us, WIDTH) >= rn_div_floor(at_us - COUNTS, WIDTH);
}

/* What is used; `later`: what it will be when all that runs is over. */
static int64_t used(const world *w, int64_t at_us, bool later)
{
    int64_t sum = 0;

    for (size_t i = 0; i < w->count; i++) {
        if (counts(w, &w->of[i], at_us))
            sum += later ? w->of[i].actual : w->of[i].charge;
    }
    return sum;
}

/* What was missing from the estimates of calls that are over. */
static int64_t missing(const world *w, int64_t at_us)
{
    int64_t sum = 0;

    for (size_t i = 0; i < w->count; i++) {
        if (counts(w, &w->of[i], at_us) && w->of[i].stage == OVER)
            sum += rn_max(0, w->of[i].actual - w->of[i].estimate);
    }
    return sum;
}

static void earn(world *w, int64_t at_us)
{
    w->credit = rn_min(MAX, w->credit + (at_us - w->credit_at) * EARN);
    w->credit_at = at_us;
}

static void pay(world *w, int64_t cost)
{
    w->credit = rn_max(-MAX, rn_min(MAX, w->credit - cost)); /* a debt beyond a burst is forgiven */
}

/* Whether a call of that cost may go at that instant. */
static bool fits(world *w, int64_t at_us, int64_t cost)
{
    if (w->cap != BUCKET)
        return used(w, at_us, false) + cost <= MAX;
    earn(w, at_us);
    return w->credit >= cost;
}

static void granted(world *w, one *call, int64_t at_us)
{
    HOLDS(w->c, fits(w, at_us, call->estimate));
    call->stage = RUNS;
    call->granted = true;
    call->at_us = at_us;
    pay(w, w->cap == BUCKET ? call->estimate : 0);
}

/* ---- what always holds */

static void found(void *ctx, const ration_counter_report *report)
{
    world *w = ctx;

    w->reported = w->cap == BUCKET ? report->available : report->used;
}

static void check(world *w)
{
    const ration_reporter reporter = {.ctx = w, .counter = found};

    w->reported = w->cap == BUCKET ? MAX : 0;
    if (ration_engine_report(w->engine, ration_time_of(w->now), RATION_REPORT_LIMITS, &reporter) != RATION_OK)
        abort();
    if (w->cap == BUCKET) {
        earn(w, w->now);
        HOLDS(w->c, w->reported == w->credit);
        HOLDS(w->c, !w->honest || w->credit >= 0);
        return;
    }
    HOLDS(w->c, w->reported == used(w, w->now, false));
    HOLDS(w->c, w->reported - MAX <= missing(w, w->now));
    HOLDS(w->c, !w->honest || (w->reported <= MAX && used(w, w->now, true) <= MAX));
}

static void events(world *w)
{
    ration_event event;

    while (ration_engine_next_event(w->engine, &event)) {
        one *call = event.user;

        HOLDS(w->c, call->stage == WAITS);
        w->waiting--;
        call->stage = OVER;
        NOTE(w->c, "  %" PRId64 " %s %g", event.at.us, event.type == RATION_EVENT_GRANTED ? "granted" : "refused",
             (double)call->estimate / 1e6);
        if (event.type == RATION_EVENT_GRANTED)
            granted(w, call, event.at.us);
    }
}

/* ---- what happens */

/* Half units, and now and then the least there is. */
static int64_t cost(world *w, int64_t low, int64_t high)
{
    const int64_t odd = choose(w->c, 9) == 9 ? 1 : 0;

    return rn_max(low, choose_from(w->c, low * 2 / UNIT, high * 2 / UNIT) * UNIT / 2 - odd);
}

static void ask(world *w)
{
    ration_request request = RATION_REQUEST_INIT;
    const bool alone = w->waiting == 0;
    ration_decision d;

    if (w->count == CALLS)
        return;
    one *call = &w->of[w->count++];
    *call = (one){.estimate = cost(w, 0, 60 * UNIT)};
    call->actual = cost(w, 0, w->honest ? call->estimate : 120 * UNIT);
    call->actual = w->honest ? rn_min(call->actual, call->estimate) : call->actual;
    call->charge = call->estimate;
    request.account = ration_text_of("acc");
    request.cost = call->estimate;
    request.wait_us = (int64_t)choose(w->c, 2) * MINUTE;
    request.user = call;
    if (ration_engine_submit(w->engine, ration_time_of(w->now), &request, &d) != RATION_OK)
        abort();
    NOTE(w->c, "%" PRId64 " asks for %g (will be %g): %d", w->now, (double)call->estimate / 1e6,
         (double)call->actual / 1e6, (int)d.result);
    HOLDS(w->c, !alone || (d.result == RATION_GRANTED) == fits(w, w->now, call->estimate));
    call->lease = d.lease;
    if (d.result == RATION_GRANTED)
        granted(w, call, w->now);
    if (d.result == RATION_QUEUED) {
        call->stage = WAITS;
        w->waiting++;
    }
    events(w);
}

static void settle(world *w, one *call)
{
    ration_completion how = RATION_COMPLETION_INIT;

    NOTE(w->c, "%" PRId64 " settles %g with %g", w->now, (double)call->estimate / 1e6, (double)call->actual / 1e6);
    how.cost = call->actual;
    if (w->cap == BUCKET) {
        earn(w, w->now);
        pay(w, call->actual - call->charge);
    }
    call->charge = call->actual;
    call->stage = OVER;
    HOLDS(w->c, ration_engine_release(w->engine, ration_time_of(w->now), call->lease, &how) == RATION_OK);
    events(w);
}

static void act(world *w)
{
    static const int64_t spans[] = {0, 1, 100 * MS, SECOND, 7 * SECOND, 40 * SECOND, 100 * SECOND};

    w->now += spans[choose(w->c, 6)];
    HOLDS(w->c, ration_engine_advance(w->engine, ration_time_of(w->now)) == RATION_OK);
    events(w);
    if (choose(w->c, 2) != 0) {
        ask(w);
    } else if (w->count > 0) {
        one *call = &w->of[choose(w->c, w->count - 1)];

        if (call->stage == RUNS)
            settle(w, call);
    }
    check(w);
}

static void never_passed(choices *c, void *context)
{
    static world w;

    memset(&w, 0, sizeof w);
    w.c = c;
    w.cap = *(const cap *)context;
    w.honest = choose(c, 1) != 0;
    w.now = w.credit_at = SECOND; /* 0 is no instant */
    w.credit = MAX;
    engine_new(&w);
    while (choose(c, 80) != 0)
        act(&w);
    for (size_t i = 0; i < w.count; i++) {
        if (w.of[i].stage == RUNS)
            settle(&w, &w.of[i]);
    }
    check(&w);
    ration_engine_free(w.engine);
}

static void of_a_minute(void **state)
{
    cap kind = A_MINUTE;

    (void)state;
    property_check("a minute's cap", never_passed, &kind, 4000);
}

static void rolling(void **state)
{
    cap kind = ROLLING;

    (void)state;
    property_check("a rolling cap", never_passed, &kind, 4000);
}

static void bucket(void **state)
{
    cap kind = BUCKET;

    (void)state;
    property_check("a bucket", never_passed, &kind, 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_minute),
        cmocka_unit_test(rolling),
        cmocka_unit_test(bucket),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
