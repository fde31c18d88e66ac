/* SPDX-License-Identifier: MIT */

/*
 * The engine against a slow and obvious one, on random streams over overlapping scopes.
 *
 * The model knows nothing of heaps, marks, bounds or timers: at every millisecond it looks at every waiter in order,
 * over and over, until nothing changes, just as chapter 1 is written. Leases, results, and the events of every instant
 * must be the same, and no limit may be exceeded at any time. Rates and times are chosen so that every token comes on a
 * millisecond.
 */
#include "support/check.h"
#include "support/property.h"

#include <stdio.h>
#include <stdlib.h>

#include <ration/engine.h>

#define UNIT RATION_UNIT
#define MS INT64_C(1000)
#define REQUESTS 96
#define LIMITS 4
#define KEYS 2
#define COUNTERS (LIMITS * KEYS)

typedef enum stage { NEW, WAITS, HOLDS_IT, OVER } stage;

typedef struct request {
    stage state;
    ration_lease lease;
    bool present[LIMITS]; /* applies, at `key` */
    int key[LIMITS];
    bool kept[LIMITS]; /* its short set */
    int64_t cost;
    int64_t deadline_ms;
    int64_t ttl_ms; /* 0: none */
    int64_t lost_at_ms;
    int grant; /* in order of grants */
    ration_priority priority;
    int tenant;
    uint64_t tag;
    bool status_seen;
} request;

typedef struct counter {
    int64_t credit; /* rate: micro-units; concurrency: what is free */
    int64_t until_ms;
} counter;

typedef struct model {
    request requests[REQUESTS];
    int count;
    counter counters[COUNTERS];
    uint64_t virtual_time[5];
    uint64_t granted_tag[5][3];
    int64_t now_ms;
    int grants;
    char events[8192]; /* of one instant, in order */
    size_t events_used;
} model;

/* x: slots by x; y: slots by y, cost; r: a rate by x; all: slots of the account. */
static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};
static const char *const by_y[] = {"var:y"};
static const struct {
    bool rate;
    bool cost;
    int64_t max; /* or burst */
    int64_t earn_ms;
    int64_t margin;
} spec[LIMITS] = {
    {false, false, 2 * UNIT, 0, 0},
    {false, true, 4 * UNIT, 0, 0},
    {true, false, 3 * UNIT, UNIT / 10, UNIT},
    {false, false, 5 * UNIT, 0, 0},
};
static const ration_limit_rule limits[LIMITS] = {
    {.name = "x", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = 2 * UNIT},
    {.name = "y",
     .kind = RATION_KIND_CONCURRENCY,
     .counts = RATION_COUNTS_COST,
     .scope = by_y,
     .scope_count = 1,
     .max = 4 * UNIT},
    {.name = "r",
     .kind = RATION_KIND_RATE,
     .scope = by_x,
     .scope_count = 1,
     .rate = {100 * UNIT, 1000000},
     .burst = 3 * UNIT,
     .margin = RATION_UNSET},
    {.name = "all", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = 5 * UNIT},
};

static counter *counter_of(model *m, const request *r, int limit)
{
    return &m->counters[limit * KEYS + r->key[limit]];
}

static int64_t charge_of(const request *r, int limit)
{
    return spec[limit].cost ? r->cost : UNIT;
}

static bool before(const request *a, const request *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->tag != b->tag ? a->tag < b->tag : a < b;
}

/* What those ahead that keep a place on the counter will take; `*any`: there is one. */
static int64_t ahead_of(const model *m, const request *r, int limit, bool *any)
{
    int64_t sum = 0;

    *any = false;
    for (int i = 0; i < m->count; i++) {
        const request *other = &m->requests[i];

        if (other == r || other->state != WAITS || !other->present[limit] || other->key[limit] != r->key[limit] ||
            !other->kept[limit] || !before(other, r))
            continue;
        *any = true;
        sum += charge_of(other, limit);
    }
    return sum;
}

static bool units_there(model *m, const request *r, int limit)
{
    return counter_of(m, r, limit)->credit >= charge_of(r, limit) + spec[limit].margin;
}

static bool can_take(model *m, const request *r, int limit)
{
    bool any;

    (void)ahead_of(m, r, limit, &any);
    return !any && units_there(m, r, limit);
}

/* When the bucket will have what is asked, after `ahead`. */
static int64_t token_ms(model *m, const request *r, int limit, int64_t ahead)
{
    const int64_t missing = charge_of(r, limit) + ahead + spec[limit].margin - counter_of(m, r, limit)->credit;

    return m->now_ms + (missing <= 0 ? 0 : (missing + spec[limit].earn_ms - 1) / spec[limit].earn_ms);
}

static bool penalized(model *m, const request *r, int64_t after_ms)
{
    for (int i = 0; i < LIMITS; i++) {
        if (r->present[i] && counter_of(m, r, i)->until_ms > after_ms)
            return true;
    }
    return false;
}

static void note_event(model *m, const char *what, int index)
{
    m->events_used +=
        (size_t)snprintf(m->events + m->events_used, sizeof m->events - m->events_used, "%s %d;", what, index);
}

static void take(model *m, request *r)
{
    for (int i = 0; i < LIMITS; i++) {
        if (r->present[i])
            counter_of(m, r, i)->credit -= charge_of(r, i);
    }
    r->state = HOLDS_IT;
    r->grant = m->grants++;
    r->lost_at_ms = r->ttl_ms > 0 ? m->now_ms + r->ttl_ms : INT64_MAX;
}

static void give_back(model *m, request *r)
{
    for (int i = 0; i < LIMITS; i++) {
        if (r->present[i] && !spec[i].rate)
            counter_of(m, r, i)->credit += charge_of(r, i);
    }
    r->state = OVER;
}

static void forget_if_empty(model *m, ration_priority priority)
{
    for (int i = 0; i < m->count; i++) {
        if (m->requests[i].state == WAITS && m->requests[i].priority == priority)
            return;
    }
    m->virtual_time[priority] = 0;
    memset(m->granted_tag[priority], 0, sizeof m->granted_tag[priority]);
}

static bool must_refuse(model *m, const request *r)
{
    for (int i = 0; i < LIMITS; i++) {
        if (r->present[i] && spec[i].rate && !units_there(m, r, i) && token_ms(m, r, i, 0) > r->deadline_ms)
            return true;
    }
    return penalized(m, r, r->deadline_ms);
}

/* The waiters in order. */
static int waiters(model *m, request **out)
{
    int n = 0;

    for (int i = 0; i < m->count; i++) {
        if (m->requests[i].state != WAITS)
            continue;

        int at = n++;

        while (at > 0 && before(&m->requests[i], out[at - 1])) {
            out[at] = out[at - 1];
            at--;
        }
        out[at] = &m->requests[i];
    }
    return n;
}

/* Look at one waiter: its short set may grow, it may go. */
static bool look(model *m, request *r)
{
    bool all = true;

    for (int i = 0; i < LIMITS; i++) {
        if (r->present[i] && r->kept[i] && !can_take(m, r, i))
            return false;
    }
    for (int i = 0; i < LIMITS; i++) {
        if (r->present[i] && !r->kept[i] && !can_take(m, r, i)) {
            r->kept[i] = true;
            all = false;
        }
    }
    if (!all || penalized(m, r, m->now_ms))
        return false;

    take(m, r);
    if (r->tag > m->virtual_time[r->priority])
        m->virtual_time[r->priority] = r->tag;
    if (r->tag > m->granted_tag[r->priority][r->tenant])
        m->granted_tag[r->priority][r->tenant] = r->tag;
    note_event(m, "granted", (int)(r - m->requests));
    forget_if_empty(m, r->priority);
    return true;
}

static void refuse(model *m, request *r)
{
    r->state = OVER;
    note_event(m, "refused", (int)(r - m->requests));
    forget_if_empty(m, r->priority);
}

static void settle(model *m)
{
    request *order[REQUESTS];
    bool changed = true;

    while (changed) {
        const int n = waiters(m, order);

        changed = false;
        for (int i = 0; i < n && !changed; i++) {
            if (must_refuse(m, order[i])) {
                refuse(m, order[i]);
                changed = true;
            }
        }
        for (int i = 0; i < n && !changed; i++)
            changed = look(m, order[i]);
    }
}

/* The lease that is lost now, of several the one granted first. */
static request *next_lost(model *m)
{
    request *first = NULL;

    for (int i = 0; i < m->count; i++) {
        request *r = &m->requests[i];

        if (r->state == HOLDS_IT && r->lost_at_ms == m->now_ms && (first == NULL || r->grant < first->grant))
            first = r;
    }
    return first;
}

static void pass_instant(model *m)
{
    request *lost;

    while ((lost = next_lost(m)) != NULL) {
        give_back(m, lost);
        note_event(m, "lost", (int)(lost - m->requests));
    }
    settle(m);
    for (int i = 0; i < m->count; i++) {
        if (m->requests[i].state == WAITS && m->requests[i].deadline_ms == m->now_ms)
            refuse(m, &m->requests[i]);
    }
    settle(m);
}

static void pass_millisecond(model *m)
{
    m->now_ms++;
    for (int limit = 0; limit < LIMITS; limit++) {
        for (int key = 0; key < KEYS && spec[limit].rate; key++) {
            counter *c = &m->counters[limit * KEYS + key];

            c->credit =
                c->credit + spec[limit].earn_ms > spec[limit].max ? spec[limit].max : c->credit + spec[limit].earn_ms;
        }
    }
    pass_instant(m);
}

static void tag_give(model *m, request *r)
{
    uint64_t last = m->virtual_time[r->priority];

    if (m->granted_tag[r->priority][r->tenant] > last)
        last = m->granted_tag[r->priority][r->tenant];
    for (int i = 0; i < m->count; i++) {
        const request *other = &m->requests[i];

        if (other->state == WAITS && other->tenant == r->tenant && other->priority == r->priority && other->tag > last)
            last = other->tag;
    }
    r->tag = last + (uint64_t)r->cost;
}

/* One that takes what a waiter of its priority, behind it, keeps a place for moves V as if it had waited. */
static void pass_waiters(model *m, const request *r)
{
    for (int i = 0; i < m->count; i++) {
        const request *other = &m->requests[i];

        for (int j = 0; j < LIMITS && other->state == WAITS && other->priority == r->priority; j++) {
            const bool shared = r->present[j] && other->present[j] && r->key[j] == other->key[j];

            if (shared && other->kept[j] && r->tag > m->virtual_time[r->priority])
                m->virtual_time[r->priority] = r->tag;
        }
    }
}

static const char *arrive(model *m, request *r)
{
    const bool may_wait = r->deadline_ms > m->now_ms;
    bool bound = penalized(m, r, m->now_ms);
    bool refuses = penalized(m, r, r->deadline_ms);

    tag_give(m, r);
    for (int i = 0; i < LIMITS; i++) {
        bool any;

        if (!r->present[i])
            continue;

        const int64_t ahead = ahead_of(m, r, i, &any);

        r->kept[i] = any || !units_there(m, r, i);
        bound = bound || r->kept[i];
        refuses = refuses || charge_of(r, i) > spec[i].max - spec[i].margin ||
                  (spec[i].rate && r->kept[i] && token_ms(m, r, i, ahead) > r->deadline_ms);
    }
    if (refuses || (bound && !may_wait)) {
        r->state = OVER;
        return "refused";
    }
    if (bound) {
        r->state = WAITS;
        return "queued";
    }
    pass_waiters(m, r);
    take(m, r);
    return "granted";
}

/* ---- the engine beside it ---- */

static ration_engine *engine_new(void)
{
    const ration_provider_rule provider = {.name = "p", .limits = limits, .limit_count = LIMITS};
    const ration_account_rule account = {.name = "acc", .provider = "p"};
    const ration_rules rules = {.providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options options = {.rules = &rules};
    ration_engine *engine = NULL;

    if (ration_engine_new(&options, ration_time_of(0), &engine, NULL) != RATION_OK)
        abort();
    return engine;
}

static void engine_events(ration_engine *engine, const model *m, char *out, size_t size)
{
    static const char *const names[] = {"granted", "refused", "lost", "penalty"};
    ration_event event;
    size_t used = 0;

    (void)m;
    out[0] = '\0';
    while (ration_engine_next_event(engine, &event)) {
        used += (size_t)snprintf(out + used, size - used, "%s %d;", names[event.type], (int)(intptr_t)event.user - 1);
    }
}

static const char *engine_ask(ration_engine *engine, const model *m, request *r)
{
    static const char *const tenants[] = {"a", "b", "c"};
    static const char *const values[] = {"0", "1"};
    ration_var vars[2];
    ration_request ask = RATION_REQUEST_INIT;
    ration_decision decision;

    ask.account = ration_text_of("acc");
    ask.tenant = ration_text_of(tenants[r->tenant]);
    ask.vars = vars;
    if (r->present[0])
        vars[ask.var_count++] = (ration_var){ration_text_of("x"), ration_text_of(values[r->key[0]])};
    if (r->present[1])
        vars[ask.var_count++] = (ration_var){ration_text_of("y"), ration_text_of(values[r->key[1]])};
    ask.cost = r->cost;
    ask.priority = r->priority;
    ask.wait_us = (r->deadline_ms - m->now_ms) * MS;
    ask.ttl_us = r->ttl_ms > 0 ? r->ttl_ms * MS : RATION_UNSET;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, not a place; 0 is nobody. */
    ask.user = (void *)(intptr_t)(r - m->requests + 1);
    if (ration_engine_submit(engine, ration_time_of(m->now_ms * MS), &ask, &decision) != RATION_OK)
        return "error";
    r->lease = decision.lease;
    return decision.result == RATION_GRANTED ? "granted" : decision.result == RATION_QUEUED ? "queued" : "refused";
}

static void request_draw(choices *c, model *m, request *r)
{
    *r = (request){.cost = choose_from(c, 1, 5) * UNIT, .tenant = (int)choose(c, 2)};
    r->present[0] = r->present[2] = choose(c, 3) != 0;
    r->present[1] = choose(c, 2) != 0;
    r->present[3] = true;
    r->key[0] = r->key[2] = (int)choose(c, 1);
    r->key[1] = (int)choose(c, 1);
    r->deadline_ms = m->now_ms + (int64_t)choose(c, 3) * (int64_t)choose(c, 30);
    r->ttl_ms = choose(c, 3) == 3 ? choose_from(c, 1, 40) : 0;
    r->priority = (ration_priority)choose_from(c, RATION_PRIORITY_CRITICAL, RATION_PRIORITY_LOW);
}

/* A request that is in the state, or NULL. */
static request *pick(choices *c, model *m, stage wanted)
{
    const int start = m->count == 0 ? 0 : (int)choose(c, (uint64_t)m->count - 1);

    for (int i = 0; i < m->count; i++) {
        request *r = &m->requests[(start + i) % m->count];

        if (r->state == wanted)
            return r;
    }
    return NULL;
}

static void limits_hold(choices *c, const model *m)
{
    for (int i = 0; i < COUNTERS; i++)
        HOLDS(c, m->counters[i].credit >= 0);
}

static void penalize(model *m, const request *r, int64_t seconds_ms)
{
    for (int i = 0; i < LIMITS; i++) { /* all have one dimension: the first declared */
        if (r->present[i]) {
            counter *at = counter_of(m, r, i);

            if (m->now_ms + seconds_ms > at->until_ms)
                at->until_ms = m->now_ms + seconds_ms;
            return;
        }
    }
}

static bool engine_penalize(ration_engine *engine, const model *m, const request *r, int64_t ms)
{
    char text[24];
    const ration_header header = {ration_text_of("Retry-After"), {text, 0}};
    ration_header headers[1] = {header};

    snprintf(text, sizeof text, "0.%03d", (int)ms);
    headers[0].value = ration_text_of(text);

    const ration_response response = {.status = 429, .headers = headers, .header_count = 1};

    return ration_engine_observe(engine, ration_time_of(m->now_ms * MS), r->lease, &response) == RATION_OK;
}

static void one_step(choices *c, model *m, ration_engine *engine)
{
    const ration_time now = ration_time_of(m->now_ms * MS);
    request *r;

    switch (choose(c, 9)) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (m->count == REQUESTS)
            return;
        r = &m->requests[m->count];
        request_draw(c, m, r);
        m->count++;
        {
            const char *want = arrive(m, r);
            const char *got = engine_ask(engine, m, r);

            NOTE(c, "%lld ask %d prio %d tenant %d cost %lld wait %lld ttl %lld x %d y %d: %s", (long long)m->now_ms,
                 m->count - 1, (int)r->priority, r->tenant, (long long)(r->cost / UNIT),
                 (long long)(r->deadline_ms - m->now_ms), (long long)r->ttl_ms, r->present[0] ? r->key[0] : -1,
                 r->present[1] ? r->key[1] : -1, got);
            HOLDS(c, strcmp(want, got) == 0);
        }
        break;
    case 4:
    case 5:
    case 6:
        r = pick(c, m, HOLDS_IT);
        if (r == NULL)
            return;
        NOTE(c, "%lld release %d", (long long)m->now_ms, (int)(r - m->requests));
        give_back(m, r);
        HOLDS(c, ration_engine_release(engine, now, r->lease, NULL) == RATION_OK);
        HOLDS(c, ration_engine_release(engine, now, r->lease, NULL) == RATION_ERR_UNKNOWN);
        break;
    case 7:
        r = pick(c, m, WAITS);
        if (r == NULL)
            return;
        NOTE(c, "%lld cancel %d", (long long)m->now_ms, (int)(r - m->requests));
        r->state = OVER;
        forget_if_empty(m, r->priority);
        HOLDS(c, ration_engine_cancel(engine, now, r->lease) == RATION_OK);
        break;
    case 8:
        r = pick(c, m, HOLDS_IT);
        if (r == NULL || r->status_seen)
            return;
        {
            const int64_t ms = choose_from(c, 1, 40);

            NOTE(c, "%lld 429 %d for %lld", (long long)m->now_ms, (int)(r - m->requests), (long long)ms);
            r->status_seen = true;
            penalize(m, r, ms);
            HOLDS(c, engine_penalize(engine, m, r, ms));
        }
        break;
    default:
        return;
    }
    settle(m);
}

static void the_engine_decides_as_the_slow_one_does(choices *c, void *context)
{
    char got[8192];
    ration_engine *engine = engine_new();
    model *m = calloc(1, sizeof *m);

    (void)context;
    if (m == NULL)
        abort();
    for (int i = 0; i < COUNTERS; i++)
        m->counters[i] = (counter){spec[i / KEYS].max, INT64_MIN};

    while (choose(c, 200) != 0 && m->now_ms < 2000) {
        int64_t pause = choose(c, 2) == 2 ? (int64_t)choose(c, 20) : 0;
        const bool often = choose(c, 1) == 1; /* how often time is looked at changes nothing */

        m->events_used = 0;
        m->events[0] = '\0';
        for (; pause > 0; pause--) {
            pass_millisecond(m);
            if (often)
                HOLDS(c, ration_engine_advance(engine, ration_time_of(m->now_ms * MS)) == RATION_OK);
        }
        HOLDS(c, ration_engine_advance(engine, ration_time_of(m->now_ms * MS)) == RATION_OK);
        one_step(c, m, engine);
        engine_events(engine, m, got, sizeof got);
        NOTE(c, "%lld events %s| want %s", (long long)m->now_ms, got, m->events);
        HOLDS(c, strcmp(got, m->events) == 0);
        limits_hold(c, m);
    }
    ration_engine_free(engine);
    free(m);
}

static void admission(void **state)
{
    (void)state;
    property_check("admission", the_engine_decides_as_the_slow_one_does, NULL, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(admission)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
