/* SPDX-License-Identifier: MIT */
/*
 * Times to retry that are no estimate are exact: if nothing else happens, asking again then is granted and asking one
 * microsecond before is refused. Chapter 1, "Numbers".
 *
 * Where a refusal has no exact time although time alone may help (lenders become idle, a limit may grow), a request
 * that waits is granted at the first instant at which one that does not wait would have been.
 *
 * An engine cannot be copied, so each question is put to one that has been through the same calls again.
 */
#include "support/check.h"
#include "support/property.h"

#include <stdio.h>

#include <ration/engine.h>

#define UNIT RATION_UNIT
#define MS INT64_C(1000)
#define SECOND (1000 * MS)
#define CALLS 40

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};
static const ration_limit_rule limits[] = {
    {.name = "thirds",
     .kind = RATION_KIND_RATE,
     .scope = by_account,
     .scope_count = 1,
     .rate = {3 * UNIT, SECOND},
     .burst = 4 * UNIT,
     .margin = RATION_UNSET},
    {.name = "cost",
     .kind = RATION_KIND_RATE,
     .counts = RATION_COUNTS_COST,
     .scope = by_x,
     .scope_count = 1,
     .rate = {7 * UNIT, 11 * SECOND},
     .burst = 5 * UNIT,
     .margin = RATION_UNSET},
    {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = 3 * UNIT},
    {.name = "minute",
     .kind = RATION_KIND_QUOTA,
     .scope = by_account,
     .scope_count = 1,
     .max = 12 * UNIT,
     .window = {.period = RATION_PERIOD_MINUTE},
     .arrival_us = RATION_UNSET,
     .sync = {.limit_header = "x-limit", .remaining_header = "x-left", .reset_header = "x-reset"}},
    {.name = "rolling",
     .kind = RATION_KIND_QUOTA,
     .counts = RATION_COUNTS_COST,
     .scope = by_x,
     .scope_count = 1,
     .max = 20 * UNIT,
     .window = {.rolling_us = 10 * SECOND},
     .arrival_us = RATION_UNSET,
     .sync = {.remaining_header = "x-rolling"}},
};

/* One call of a stream. What it is about was drawn when it was made. */
typedef struct call {
    enum { ASK, RELEASE, OBSERVE } what;
    int64_t at_us;
    size_t about; /* the request that it releases or answers */
    int x;        /* -1: none */
    int64_t cost;
    int64_t wait_us;
    int64_t hold_us;
    bool retry;
    ration_priority priority;
    int status;
    const char *header;
    const char *value;
} call;

typedef struct stream {
    call calls[CALLS];
    size_t count;
} stream;

static ration_engine *engine_new(const ration_limit_rule *kept, size_t count)
{
    static const ration_account_rule account = {.name = "acc", .provider = "p"};
    const ration_provider_rule provider = {.name = "p", .limits = kept, .limit_count = count};
    const ration_rules rules = {.providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options options = {.rules = &rules};
    ration_engine *engine = NULL;

    if (ration_engine_new(&options, ration_time_of(0), &engine, NULL) != RATION_OK)
        abort();
    return engine;
}

static ration_decision ask(ration_engine *engine, const call *a, int64_t at_us)
{
    static const char *const values[] = {"0", "1"};
    const ration_var var = {ration_text_of("x"), ration_text_of(values[a->x > 0])};
    ration_request r = RATION_REQUEST_INIT;
    ration_decision d = {.result = RATION_REFUSED};

    r.account = ration_text_of("acc");
    r.vars = &var;
    r.var_count = a->x >= 0 ? 1 : 0;
    r.cost = a->cost;
    r.hold_us = a->hold_us;
    r.wait_us = a->wait_us;
    r.retry = a->retry;
    r.priority = a->priority;
    if (ration_engine_submit(engine, ration_time_of(at_us), &r, &d) != RATION_OK)
        abort();
    return d;
}

/* An engine that has been through all calls; `*last` is the answer to the last one, if that asked. */
static ration_engine *replay(const stream *s, ration_decision *last)
{
    ration_engine *engine = engine_new(limits, sizeof limits / sizeof limits[0]);
    ration_lease leases[CALLS] = {{0, 0}};

    for (size_t i = 0; i < s->count; i++) {
        const call *c = &s->calls[i];
        const ration_time at = {c->at_us};
        const ration_header header = {ration_text_of(c->header), ration_text_of(c->value)};
        const ration_response response = {c->status, &header, c->header != NULL ? 1 : 0, {NULL, 0}};

        switch (c->what) {
        case ASK:
            *last = ask(engine, c, c->at_us);
            leases[i] = last->lease;
            break;
        case RELEASE:
            (void)ration_engine_release(engine, at, leases[c->about], NULL);
            break;
        case OBSERVE:
            (void)ration_engine_observe(engine, at, leases[c->about], &response);
            break;
        }
    }
    return engine;
}

/* The answer to the last request of the stream, had it been made at `at_us` once more. */
static ration_result asked_again(const stream *s, int64_t at_us)
{
    call again = s->calls[s->count - 1];
    ration_decision d;
    ration_engine *engine = replay(s, &d);

    again.wait_us = 0;

    const ration_result result = ask(engine, &again, at_us).result;

    ration_engine_free(engine);
    return result;
}

static call call_draw(choices *c, const stream *s, int64_t at_us)
{
    static const char *const headers[] = {"x-limit", "x-left", "x-reset", "x-rolling", "Retry-After"};
    static const char *const values[] = {"0", "1", "3", "9", "30", "70"};
    static const int64_t waits[] = {0, 0, 0, 500 * MS, 70 * SECOND};
    static const int64_t holds[] = {RATION_UNSET, 100 * MS, 3 * SECOND};
    static const int statuses[] = {200, 429, 200, 0};
    const uint64_t what = choose(c, 5);
    call drawn = {.what = s->count == 0 || what < 4 ? ASK : what == 4 ? RELEASE : OBSERVE, .at_us = at_us};

    if (drawn.what == ASK) {
        drawn.x = (int)choose(c, 2) - 1;
        drawn.cost = (int64_t)choose(c, 11) * UNIT / 2;
        drawn.wait_us = waits[choose(c, 4)];
        drawn.hold_us = holds[choose(c, 2)];
        drawn.retry = choose(c, 3) == 3;
        drawn.priority = (ration_priority)choose(c, 4);
        return drawn;
    }
    drawn.about = (size_t)choose(c, s->count - 1);
    if (drawn.what == OBSERVE) {
        drawn.status = statuses[choose(c, 3)];
        drawn.header = choose(c, 1) != 0 ? headers[choose(c, 4)] : NULL;
        drawn.value = values[choose(c, 5)];
    }
    return drawn;
}

static void exact_times_are_exact(choices *c, void *context)
{
    uint64_t *exact = context;
    int64_t at_us = 0;
    stream s = {.count = 0};

    while (choose(c, 60) != 0 && s.count < CALLS) {
        ration_decision d = {.result = RATION_GRANTED};

        at_us += choose(c, 2) == 2 ? (int64_t)choose_wide(c, 40 * SECOND) : 0;
        s.calls[s.count] = call_draw(c, &s, at_us);
        s.count++;

        const call *last = &s.calls[s.count - 1];

        if (last->what != ASK)
            continue;
        ration_engine_free(replay(&s, &d));
        NOTE(c, "%lld ask x %d cost %lld wait %lld retry %d priority %d: %d %s, again in %lld%s", (long long)at_us,
             last->x, (long long)last->cost, (long long)last->wait_us, last->retry, (int)last->priority, (int)d.result,
             ration_reason_name(d.reason), d.retry_at.us == RATION_NEVER_US ? -1LL : (long long)(d.retry_at.us - at_us),
             d.estimate ? "~" : "");
        if (d.result != RATION_REFUSED || d.retry_at.us == RATION_NEVER_US || d.estimate)
            continue;
        HOLDS(c, d.retry_at.us > at_us);
        HOLDS(c, asked_again(&s, d.retry_at.us) == RATION_GRANTED);
        HOLDS(c, asked_again(&s, d.retry_at.us - 1) == RATION_REFUSED);
        exact[d.reason]++;
    }
}

/* ---- share and adaptive: what time alone brings ---- */

#define WINDOW (600 * MS)

static const ration_tenant_share tenants[] = {
    {.name = "a", .weight = 1}, {.name = "b", .weight = 2}, {.name = "c", .weight = 2}};
static const ration_class_rule classes[] = {{"fast", {1, 3}}, {"bulk", {0, 0}}};
static const ration_limit_rule lenders[] = {
    {.name = "fair",
     .kind = RATION_KIND_SHARE,
     .counts = RATION_COUNTS_COST,
     .share = {.ceiling = 10 * UNIT,
               .tenants = tenants,
               .tenant_count = 3,
               .reclaim_horizon_us = 100 * MS,
               .idle_after_us = 300 * MS}},
    {.name = "learns",
     .kind = RATION_KIND_ADAPTIVE,
     .adaptive = {.initial_limit = 3,
                  .max_limit = 6,
                  .window_us = WINDOW,
                  .cooldown_us = WINDOW,
                  .classes = classes,
                  .class_count = 2,
                  .lend_horizon_us = 100 * MS,
                  .lend_idle_us = 300 * MS}},
};

/* One call: ends a lease, or asks. */
typedef struct turn {
    int64_t at_us;
    bool ends;
    size_t about;
    ration_request request;
} turn;

typedef struct turns {
    turn list[CALLS];
    size_t count;
} turns;

/* The first `count` turns. */
static ration_engine *lenders_replay(const turns *t, size_t count)
{
    ration_engine *engine = engine_new(lenders, sizeof lenders / sizeof lenders[0]);
    ration_lease leases[CALLS] = {{0, 0}};
    ration_decision d;

    for (size_t i = 0; i < count; i++) {
        const ration_time at = {t->list[i].at_us};

        if (t->list[i].ends) {
            (void)ration_engine_release(engine, at, leases[t->list[i].about], NULL);
            continue;
        }
        if (ration_engine_submit(engine, at, &t->list[i].request, &d) != RATION_OK)
            abort();
        leases[i] = d.lease;
    }
    return engine;
}

/* What the last request would be answered at `at_us`, had it not been made before. */
static ration_result foretold(const turns *t, int64_t at_us)
{
    ration_engine *engine = lenders_replay(t, t->count - 1);
    ration_request r = t->list[t->count - 1].request;
    ration_decision d = {.result = RATION_PENDING};

    r.wait_us = 0;
    if (ration_engine_check(engine, ration_time_of(at_us), &r, RATION_CHECK_ACQUIRE, &d) != RATION_OK)
        abort();
    ration_engine_free(engine);
    return d.result;
}

static turn turn_draw(choices *c, const turns *t, int64_t at_us)
{
    static const char *const names[] = {"a", "b", "c"};
    static const char *const class_names[] = {NULL, "fast", "bulk"};
    turn drawn = {.at_us = at_us, .ends = t->count > 0 && choose(c, 2) == 2, .request = RATION_REQUEST_INIT};

    if (drawn.ends) {
        drawn.about = (size_t)choose(c, t->count - 1);
        return drawn;
    }
    drawn.request.account = ration_text_of("acc");
    drawn.request.tenant = ration_text_of(names[choose(c, 2)]);
    drawn.request.class_name = ration_text_of(class_names[choose(c, 2)]);
    drawn.request.cost = (int64_t)choose(c, 12) * UNIT / 2;
    drawn.request.hold_us = choose(c, 2) == 2 ? RATION_UNSET : (int64_t)choose(c, 120) * MS;
    drawn.request.wait_us = choose(c, 3) == 3 ? WINDOW - 1 : 0;
    return drawn;
}

/* The instant at which the last request is granted by time alone; -1: never. */
static int64_t granted_by_time(const turns *t)
{
    const turn *last = &t->list[t->count - 1];
    ration_engine *engine = lenders_replay(t, t->count);
    ration_event event;
    int64_t at = -1;

    (void)ration_engine_advance(engine, ration_time_of(last->at_us + WINDOW));
    while (ration_engine_next_event(engine, &event)) {
        if (event.type == RATION_EVENT_GRANTED && event.user == last->request.user && event.user != NULL)
            at = event.at.us;
    }
    ration_engine_free(engine);
    return at;
}

static void waiters_go_at_once(choices *c, void *context)
{
    static char last_one;
    uint64_t *granted = context;
    int64_t at_us = 0;
    turns t = {.count = 0};

    while (choose(c, 40) != 0 && t.count < CALLS) {
        at_us += choose(c, 2) == 2 ? (int64_t)choose_wide(c, 900 * MS) : 0;
        t.list[t.count] = turn_draw(c, &t, at_us);
        t.count++;

        turn *last = &t.list[t.count - 1];

        if (last->ends || last->request.wait_us == 0)
            continue;
        /* Only this one waits: others would be served before it, or make the limit grow. */
        last->request.user = &last_one;

        const int64_t at = granted_by_time(&t);

        NOTE(c, "%" PRId64 " ask of %.*s cost %" PRId64 " hold %" PRId64 ": granted at %" PRId64, at_us,
             (int)last->request.tenant.size, last->request.tenant.data, last->request.cost, last->request.hold_us, at);
        last->request.user = NULL;
        if (at > at_us) {
            HOLDS(c, foretold(&t, at) == RATION_GRANTED);
            HOLDS(c, foretold(&t, at - 1) == RATION_REFUSED);
            ++*granted;
        }
        last->request.wait_us = 0;
    }
}

static void waiting(void **state)
{
    uint64_t granted = 0;

    (void)state;
    property_check("waiting", waiters_go_at_once, &granted, 1500);
    if (getenv("PROPERTY_SEED") == NULL)
        CHECK(granted > 100);
}

static void retry(void **state)
{
    uint64_t exact[RATION_REASON_COUNT] = {0};

    (void)state;
    property_check("retry", exact_times_are_exact, exact, 2000);
    if (getenv("PROPERTY_SEED") != NULL)
        return;
    CHECK(exact[RATION_REASON_RATE_LIMITED] > 100);
    CHECK(exact[RATION_REASON_QUOTA_EXHAUSTED] > 100);
    CHECK(exact[RATION_REASON_PENALIZED] > 100);
    CHECK(exact[RATION_REASON_DEADLINE] > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(retry), cmocka_unit_test(waiting)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
