/* SPDX-License-Identifier: MIT */

/*
 * No limit is exceeded in any interval: over what the client granted, and at a provider to which calls travel.
 *
 * One limit of a random kind, asked at random instants and at the worst ones: at the time to retry of the last refusal
 * and one microsecond before it. Calls wait or not, and cost more or less in the end than they asked for. After every
 * grant, with what is known by then of what calls cost:
 *
 *     rate      every interval that ends with the grant has granted at most burst - margin + rate * length
 *     rolling   the last window has granted at most U, or U - R to normal requests
 *     calendar  the present window likewise, windows being counted by plain division
 *
 * An enforcer with the same limit judges each call when it arrives, and so does plain arithmetic: every interval at
 * most burst + rate * length, or every window at most U. Neither refuses any if no call cost more than it asked
 * for and each arrived in time: before the bucket earns its margin (one request: one interval of jitter), within a
 * bucket of the rolling window, before `arrival` at a calendar window. (What a call costs less comes back to a bucket
 * later than it would have been there, when the bucket might have been full: there, no call may cost less either.)
 */
#include "support/check.h"
#include "support/property.h"
#include "support/sole.h"

#include <stdlib.h>

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define CALLS 256
#define WAITERS 64
#define NEVER RATION_NEVER_US
#define START (INT64_C(19723) * DAY) /* a Monday, by which weeks are counted */

__extension__ typedef __int128 wide;

typedef struct call {
    ration_lease lease;
    int64_t granted_at, arrives_at, ends_at; /* NEVER: over */
    int64_t asked, actual;
    int64_t charge; /* as known now */
} call;

typedef struct waiter {
    ration_lease lease;
    int64_t asked;
    bool normal;
} waiter;

/* A charge, or what a settlement changed, in the order in which they happened. */
typedef struct entry {
    int64_t at, amount;
} entry;

typedef struct world {
    ration_limit_rule rule;
    ration_engine *client, *provider;
    int64_t burst, margin; /* rate */
    int64_t length_us;     /* of a window */
    int64_t usable, kept;  /* U, R */
    int64_t beat_us;       /* the measure of pauses */
    int64_t jitter_us;     /* less than this on the way */
    int64_t ask_max;       /* units */
    bool settled;          /* a call has cost more or less */
    bool costs_more;       /* some do */
    int more_open;         /* calls that will have cost more and have not ended */
    call calls[CALLS];
    int count;
    waiter waiters[WAITERS];
    int waiting;
    entry log[2 * CALLS];
    int logged;
    entry arrived[CALLS]; /* what each cost in the end */
    int arrived_count;
    int64_t now, retry_at;
} world;

static struct {
    uint64_t grants, arrivals, refusals;
} seen;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- limits ---- */

static void rate_draw(choices *c, world *w)
{
    static const ration_rate rates[] = {
        {10 * UNIT, SECOND},      {UNIT, SECOND},   {100 * UNIT, 15 * MINUTE},
        {1000000 * UNIT, SECOND}, {UNIT, 30 * DAY}, {7 * UNIT, 13 * SECOND},
    };
    const bool cost = w->rule.counts == RATION_COUNTS_COST;

    w->rule.kind = RATION_KIND_RATE;
    w->rule.rate = rates[choose(c, sizeof rates / sizeof rates[0] - 1)];
    w->burst = choose_from(c, 1, 20) * UNIT;
    w->rule.burst = w->burst;
    w->rule.margin = cost && w->burst > UNIT ? choose_from(c, 0, w->burst / UNIT - 1) * UNIT : RATION_UNSET;
    w->margin = w->rule.margin != RATION_UNSET ? w->rule.margin : !cost && w->burst > UNIT ? UNIT : 0;
    w->beat_us = most(1, UNIT * w->rule.rate.per_us / w->rule.rate.units);
    w->jitter_us = w->margin / UNIT * w->rule.rate.per_us / (w->rule.rate.units / UNIT) + 1;
    w->ask_max = cost ? most(1, (w->burst - w->margin) / UNIT / 2) : 1;
}

static void rolling_draw(choices *c, world *w)
{
    static const int64_t lengths[] = {SECOND, MINUTE, HOUR, DAY, 7 * DAY, 100 * SECOND + 1};

    w->length_us = lengths[choose(c, sizeof lengths / sizeof lengths[0] - 1)];
    w->rule.window.rolling_us = w->length_us;
    w->beat_us = w->length_us <= DAY ? least((w->length_us + 59) / 60, MINUTE) : (w->length_us + 1439) / 1440;
    w->jitter_us = w->beat_us + 1;
}

static void calendar_draw(choices *c, world *w)
{
    static const int64_t lengths[] = {MINUTE, HOUR, DAY, 7 * DAY};
    const size_t which = (size_t)choose(c, 3);

    w->length_us = lengths[which];
    w->rule.window.period = (ration_period)(RATION_PERIOD_MINUTE + (int)which);
    w->beat_us = w->length_us / 60;
    w->jitter_us = 2 * SECOND;
}

static void world_start(choices *c, world *w)
{
    const bool rate = choose(c, 2) == 0;
    const ration_ratio reserve = {(int32_t)choose(c, 3), 10};

    w->rule = (ration_limit_rule){
        .name = "limit",
        .kind = RATION_KIND_QUOTA,
        .margin = RATION_UNSET,
        .arrival_us = RATION_UNSET,
        .counts = choose(c, 1) == 1 ? RATION_COUNTS_COST : RATION_COUNTS_REQUESTS,
    };
    if (rate) {
        rate_draw(c, w);
    } else {
        const int64_t max = choose_from(c, 2, 30);
        const int64_t whole = w->rule.counts == RATION_COUNTS_COST ? 1 : UNIT;

        w->rule.max = w->usable = max * UNIT;
        w->kept = max * UNIT * reserve.num / reserve.den / whole * whole;
        w->ask_max = whole == 1 ? most(1, max / 4) : 1;
        w->rule.when_exhausted = choose(c, 1) == 1 ? RATION_EXHAUSTED_WAIT : RATION_EXHAUSTED_REFUSE;
        if (choose(c, 1) == 1) {
            rolling_draw(c, w);
        } else {
            calendar_draw(c, w);
        }
    }
    w->costs_more = choose(c, 1) == 1;
    w->now = w->retry_at = START;
    NOTE(c, "%s of %s, burst %d, margin %d, max %d, reserve %d, length %lld, beat %lld, jitter %lld",
         rate                             ? "rate"
         : w->rule.window.rolling_us != 0 ? "rolling window"
                                          : "calendar window",
         w->rule.counts == RATION_COUNTS_COST ? "cost" : "requests", (int)(w->burst / UNIT), (int)(w->margin / UNIT),
         (int)(w->rule.max / UNIT), (int)(w->kept / UNIT), (long long)w->length_us, (long long)w->beat_us,
         (long long)w->jitter_us);
    w->client = sole_engine(&w->rule, false, reserve, w->now);
    w->provider = sole_engine(&w->rule, true, reserve, w->now);
}

static void world_end(world *w)
{
    ration_engine_free(w->client);
    ration_engine_free(w->provider);
    free(w);
}

/* ---- what must hold at a grant ---- */

static void log_add(world *w, int64_t amount)
{
    w->log[w->logged++] = (entry){w->now, amount};
}

/* However long before now an interval began: amounts times the rate's time against times times its units, exactly. */
static void bucket_holds(choices *c, const world *w, const entry *entries, int count, int64_t burst)
{
    const wide units = w->rule.rate.units;
    const wide per_us = w->rule.rate.per_us;
    wide sum = 0;

    for (int i = count; i-- > 0;) {
        sum += entries[i].amount;
        HOLDS(c, sum * per_us <= burst * per_us + units * (w->now - entries[i].at));
    }
}

/* Where the window that ends with now, or the calendar's, begins: after this instant. */
static int64_t window_before(const world *w)
{
    if (w->rule.window.rolling_us != 0)
        return w->now - w->length_us;
    return (w->now - START) / w->length_us * w->length_us + START - 1;
}

static void window_holds(choices *c, const world *w, bool normal)
{
    const int64_t from = window_before(w);
    int64_t sum = 0;

    for (int i = 0; i < w->count; i++)
        sum += w->calls[i].granted_at > from ? w->calls[i].charge : 0;
    HOLDS(c, sum <= w->usable - (normal ? w->kept : 0));
}

static void arrivals_hold(choices *c, const world *w)
{
    const int64_t from = window_before(w);
    int64_t sum = 0;

    for (int i = w->arrived_count; i-- > 0 && w->arrived[i].at > from;)
        sum += w->arrived[i].amount;
    HOLDS(c, sum <= w->usable);
}

static void granted(choices *c, world *w, const waiter *who)
{
    call *k = &w->calls[w->count++];
    const int64_t units = who->asked / UNIT;

    *k = (call){.lease = who->lease, .granted_at = w->now, .asked = who->asked, .actual = who->asked};
    k->charge = who->asked;
    k->arrives_at = w->now + (int64_t)choose(c, (uint64_t)w->jitter_us - 1);
    k->ends_at = w->now + (int64_t)choose(c, (uint64_t)(4 * w->beat_us));
    /* One that has ended before it arrived has had no answer: nobody knows what it costs. */
    if (w->rule.counts == RATION_COUNTS_COST && k->arrives_at <= k->ends_at && choose(c, 1) == 1) {
        const bool more = w->costs_more && w->more_open == 0;

        k->actual = choose_from(c, 0, more ? 2 * units : units) * UNIT;
        w->more_open += k->actual > k->asked ? 1 : 0;
        w->settled = w->settled || k->actual != k->asked;
    }
    seen.grants++;
    NOTE(c, "%lld grant %d for %d, cost %d, arrives %lld, ends %lld", (long long)(w->now - START), w->count - 1,
         (int)units, (int)(k->actual / UNIT), (long long)(k->arrives_at - START), (long long)(k->ends_at - START));
    log_add(w, k->asked);
    if (w->rule.kind == RATION_KIND_RATE) {
        bucket_holds(c, w, w->log, w->logged, w->burst - w->margin);
    } else {
        window_holds(c, w, who->normal);
    }
}

/* ---- what happens ---- */

static void events(choices *c, world *w)
{
    ration_event e;

    while (ration_engine_next_event(w->client, &e)) {
        for (int i = 0; i < w->waiting; i++) {
            const waiter who = w->waiters[i];

            if (who.lease.index != e.lease.index || who.lease.generation != e.lease.generation)
                continue;
            w->waiters[i] = w->waiters[--w->waiting];
            HOLDS(c, e.at.us == w->now);
            if (e.type == RATION_EVENT_GRANTED)
                granted(c, w, &who);
            break;
        }
    }
}

static void ask(choices *c, world *w)
{
    ration_request how = RATION_REQUEST_INIT;
    waiter who = {.asked = choose_from(c, 1, w->ask_max) * UNIT};

    how.priority = choose(c, 7) == 7 ? RATION_PRIORITY_CRITICAL : RATION_PRIORITY_NORMAL;
    how.retry = choose(c, 7) == 7;
    if (choose(c, 2) == 2 && w->waiting < WAITERS)
        how.wait_us = (int64_t)choose(c, (uint64_t)(w->beat_us * 100));
    who.normal = how.priority == RATION_PRIORITY_NORMAL && !how.retry;

    const ration_decision d = sole_ask(w->client, w->now, who.asked, &how);

    who.lease = d.lease;
    if (d.result == RATION_QUEUED)
        w->waiters[w->waiting++] = who;
    if (d.result == RATION_GRANTED)
        granted(c, w, &who);
    if (d.result == RATION_REFUSED && d.retry_at.us != NEVER)
        w->retry_at = d.retry_at.us;
}

/* At the provider it costs from the start what it will have cost. */
static void arrives(choices *c, world *w, call *k)
{
    const ration_decision d = sole_ask(w->provider, w->now, least(k->asked, k->actual), NULL);

    k->arrives_at = NEVER;
    if (w->costs_more || (w->settled && w->rule.kind == RATION_KIND_RATE))
        return;
    seen.arrivals++;
    NOTE(c, "%lld %d arrives", (long long)(w->now - START), (int)(k - w->calls));
    HOLDS(c, d.result == RATION_GRANTED);
    w->arrived[w->arrived_count++] = (entry){w->now, k->actual};
    if (w->rule.kind == RATION_KIND_RATE) {
        bucket_holds(c, w, w->arrived, w->arrived_count, w->burst);
    } else {
        arrivals_hold(c, w);
    }
}

static void ends(world *w, call *k)
{
    const ration_completion how = {
        .outcome = k->arrives_at == NEVER ? RATION_OUTCOME_SUCCESS : RATION_OUTCOME_FAILURE,
        .cost = k->actual != k->asked ? k->actual : RATION_UNSET,
    };

    k->ends_at = NEVER;
    k->charge = k->actual;
    w->more_open -= k->actual > k->asked ? 1 : 0;
    log_add(w, k->actual - k->asked);
    (void)ration_engine_release(w->client, ration_time_of(w->now), k->lease, &how);
}

/* Everything that happens up to `until`, in order. */
static void pass(choices *c, world *w, int64_t until)
{
    for (;;) {
        int64_t first = least(ration_engine_next_deadline(w->client).us, until);
        call *next = NULL;

        for (int i = 0; i < w->count; i++) {
            const int64_t at = least(w->calls[i].arrives_at, w->calls[i].ends_at);

            if (at < first) {
                first = at;
                next = &w->calls[i];
            }
        }
        w->now = first;
        if (next != NULL && next->arrives_at == first) {
            arrives(c, w, next);
        } else if (next != NULL) {
            ends(w, next);
        } else {
            HOLDS(c, ration_engine_advance(w->client, ration_time_of(first)) == RATION_OK);
        }
        events(c, w);
        if (next == NULL && first == until)
            return;
    }
}

static int64_t pause(choices *c, const world *w)
{
    switch (choose(c, 6)) {
    case 0:
    case 1:
        return w->now;
    case 2:
        return w->now + (int64_t)choose(c, (uint64_t)w->beat_us);
    case 3:
        return w->now + (int64_t)choose(c, (uint64_t)(10 * w->beat_us));
    case 4:
        return w->now + (int64_t)choose(c, (uint64_t)(80 * w->beat_us));
    case 5:
        return most(w->now, w->retry_at);
    default:
        return most(w->now, w->retry_at - 1);
    }
}

static void no_interval_sees_too_much(choices *c, void *context)
{
    world *w = calloc(1, sizeof *w);

    (void)context;
    if (w == NULL)
        abort();
    world_start(c, w);
    while (choose(c, 300) != 0 && w->count + w->waiting + 1 < CALLS && w->now < RATION_TIME_MAX_US / 2) {
        pass(c, w, pause(c, w));
        ask(c, w);
        events(c, w);
    }
    world_end(w);
}

static void windows(void **state)
{
    (void)state;
    property_check("windows", no_interval_sees_too_much, NULL, 3000);
    print_message("# %" PRIu64 " grants, %" PRIu64 " calls judged by the provider\n", seen.grants, seen.arrivals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(windows)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
