/* SPDX-License-Identifier: MIT */
#include <ration/operate.h>

#include "support/stream.h"
#include "support/stream_rules.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT RATION_UNIT
#define MS INT64_C(1000)
#define SECOND (1000 * MS)
#define REQUESTS 160
#define ACCOUNTS STREAM_ACCOUNTS
#define TENANTS STREAM_TENANTS
#define CLASSES STREAM_CLASSES
#define KEYS 3

/* ---- the stream ---- */

typedef enum stage { NEW = 0, WAITS, HELD, OVER } stage;

typedef struct request {
    stage stage;
    ration_lease lease;
    int account;
    int x;          /* -1: none */
    int tenant;     /* -1: none */
    int class_name; /* -1: none */
    int64_t cost;
} request;

typedef struct stream {
    stream_driver driver;
    stream_rules rules;
    ration_engine *engine;
    ration_engine *twin;
    ration_time now;
    request requests[REQUESTS];
    size_t count;
    uint64_t hash;
} stream;

#define HOLDS(s, condition) (s)->driver.hold((s)->driver.ctx, (condition), #condition, __LINE__)

static uint64_t pick(const stream *s, uint64_t bound)
{
    return s->driver.choose(s->driver.ctx, bound);
}

static void note(const stream *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(const stream *s, const char *format, ...)
{
    char line[256];
    va_list arguments;

    if (s->driver.note == NULL)
        return;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    s->driver.note(s->driver.ctx, line);
}

/* FNV-1a over values, not over structs: padding is nobody's. */
static uint64_t mix(uint64_t hash, int64_t value)
{
    for (int i = 0; i < 8; i++) {
        hash ^= (uint64_t)value >> (8 * i) & 0xff;
        hash *= UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t mix_text(uint64_t hash, const char *data, size_t size)
{
    hash = mix(hash, (int64_t)size);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t mix_decision(uint64_t hash, const ration_decision *d)
{
    char why[512] = "";

    hash = mix(hash, d->result);
    hash = mix(hash, d->lease.index);
    hash = mix(hash, d->lease.generation);
    hash = mix(hash, (int64_t)d->serial);
    hash = mix(hash, d->at.us);
    hash = mix(hash, d->reason);
    hash = mix(hash, d->retry_at.us);
    hash = mix(hash, d->estimate);
    hash = mix_text(hash, d->limit != NULL ? d->limit : "-", d->limit != NULL ? strlen(d->limit) : 1);
    hash = mix_text(hash, d->key.data, d->key.size);
    return mix_text(hash, why, ration_decision_explain(d, why, sizeof why));
}

static uint64_t mix_event(uint64_t hash, const ration_event *e)
{
    hash = mix(hash, e->type);
    hash = mix(hash, e->at.us);
    hash = mix(hash, (int64_t)e->serial);
    hash = mix(hash, e->waited_us);
    hash = mix(hash, e->value);
    hash = mix(hash, e->breaker);
    hash = mix_text(hash, e->account.data, e->account.size);
    if (e->cause != NULL)
        hash = mix_text(hash, e->cause, strlen(e->cause));
    return mix_decision(hash, &e->decision);
}

/* ---- what a report says ---- */

typedef struct dump {
    const stream *s;
    uint64_t hash;             /* of all there is */
    uint64_t spent;            /* of what a refusal may not change: it may be asking, and demand */
    int64_t held[2][ACCOUNTS]; /* slots of p and q */
    int64_t tokens[KEYS];
    int64_t fair[ACCOUNTS][TENANTS];
    int64_t learns[ACCOUNTS][CLASSES];
    int64_t learned[ACCOUNTS];
    uint64_t leases;
    uint64_t waiters;
} dump;

static int place_of(const char *const *names, int count, ration_text name)
{
    for (int i = 0; i < count; i++) {
        if (strlen(names[i]) == name.size && memcmp(names[i], name.data, name.size) == 0)
            return i;
    }
    return -1;
}

static int account_named(ration_text name)
{
    return place_of(stream_accounts, ACCOUNTS, name);
}

/* What one tenant of a ceiling says of itself, and what must be so. */
static void dump_tenant(dump *d, const ration_counter_report *r, const ration_tenant_report *t)
{
    const int64_t spent[] = {t->held, t->own, t->lent, t->borrowed, (int64_t)t->waiting, (int64_t)t->granted};
    const int64_t rest[] = {t->guarantee,
                            t->want,
                            t->target,
                            t->idle,
                            t->deficit_unit_ms,
                            t->deficit_rest,
                            (int64_t)t->reclaims,
                            t->worst_reclaim_us,
                            t->cost_share,
                            t->request_share,
                            t->cost_skew,
                            t->request_skew};

    for (size_t i = 0; i < sizeof spent / sizeof spent[0]; i++)
        d->spent = mix(d->spent, spent[i]);
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        d->hash = mix(d->hash, rest[i]);
    for (size_t i = 0; i < RATION_REASON_COUNT; i++)
        d->hash = mix(d->hash, (int64_t)t->refused[i]);
    HOLDS(d->s, t->held == t->own + t->borrowed);
    HOLDS(d->s, t->own >= 0 && t->lent >= 0 && t->borrowed >= 0 && t->want >= 0);
    HOLDS(d->s, r->enforce == RATION_ENFORCE_SHADOW || r->draining > 0 || t->own + t->lent <= t->guarantee);
}

static void dump_tenants(dump *d, const ration_counter_report *r)
{
    int64_t guarantee = 0;
    int64_t lent = 0;
    int64_t borrowed = 0;
    int64_t held = 0;

    for (size_t i = 0; i < r->tenant_count; i++) {
        const ration_tenant_report *t = &r->tenants[i];

        dump_tenant(d, r, t);
        guarantee += t->guarantee;
        lent += t->lent;
        borrowed += t->borrowed;
        held += t->held;
        if (strcmp(r->limit, "fair") == 0)
            d->fair[account_named(r->key)][place_of(stream_tenants, TENANTS, t->name)] = t->held;
    }
    for (size_t i = 0; i < r->overrun_count; i++)
        d->hash = mix(d->hash, (int64_t)r->overrun[i]);
    HOLDS(d->s, guarantee == r->max);
    HOLDS(d->s, lent == borrowed);
    HOLDS(d->s, held == r->held);
    HOLDS(d->s, r->enforce == RATION_ENFORCE_SHADOW || strcmp(r->limit, "follows") == 0 ||
                    (r->held <= r->max && r->draining == 0));
}

static void dump_classes(dump *d, const ration_counter_report *r)
{
    for (size_t i = 0; i < r->class_count; i++) {
        const ration_class_report *of = &r->classes[i];

        d->spent = mix(d->spent, of->held);
        d->hash = mix(d->hash, of->reserved);
        d->learns[account_named(r->key)][i] = of->held;
    }
    d->learned[account_named(r->key)] = r->held;
}

static void dump_counter(void *ctx, const ration_counter_report *r)
{
    dump *d = ctx;
    const int64_t spent[] = {r->kind,     r->available, r->held,       r->usable,          r->reserve,      r->used,
                             r->external, r->remaining, r->has_window, r->window_start.us, r->window_end.us};
    const int64_t rest[] = {(int64_t)r->waiting, r->max, r->current, r->draining};

    d->hash = mix_text(d->hash, r->limit, strlen(r->limit));
    d->hash = mix_text(d->hash, r->key.data, r->key.size);
    for (size_t i = 0; i < sizeof spent / sizeof spent[0]; i++)
        d->spent = mix(d->spent, spent[i]);
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        d->hash = mix(d->hash, rest[i]);
    if (r->kind == RATION_KIND_QUOTA)
        d->spent = mix(d->spent, r->max);
    if (strcmp(r->limit, "slots") == 0)
        d->held[strcmp(r->provider, "q") == 0][account_named(r->key)] = r->held;
    if (strcmp(r->limit, "tokens") == 0)
        d->tokens[r->key.data[2] - '0'] = r->held;
    if (r->kind == RATION_KIND_SHARE)
        dump_tenants(d, r);
    if (r->kind == RATION_KIND_ADAPTIVE)
        dump_classes(d, r);
}

static void dump_penalty(void *ctx, const ration_penalty_report *r)
{
    dump *d = ctx;

    d->spent = mix_text(d->spent, r->key.data, r->key.size);
    d->spent = mix(d->spent, r->until.us);
    d->spent = mix(d->spent, r->events);
}

static void dump_breaker(void *ctx, const ration_breaker_report *r)
{
    dump *d = ctx;

    d->spent = mix_text(d->spent, r->key.data, r->key.size);
    d->spent = mix(d->spent, r->state);
    d->spent = mix(d->spent, (int64_t)r->generation);
    d->spent = mix(d->spent, r->retry_at.us);
}

static void dump_lease(void *ctx, const ration_lease_report *r)
{
    dump *d = ctx;

    if (r->waiting) {
        d->waiters++;
    } else {
        d->leases++;
    }
    d->spent = mix(d->spent, (int64_t)r->serial);
    d->spent = mix(d->spent, r->since.us);
    d->spent = mix(d->spent, r->ttl_until.us);
}

static dump dump_engine(const stream *s, ration_engine *engine)
{
    const uint64_t basis = UINT64_C(0xcbf29ce484222325);
    dump d = {.s = s, .hash = basis, .spent = basis};
    const ration_reporter reporter = {
        .ctx = &d, .counter = dump_counter, .penalty = dump_penalty, .breaker = dump_breaker, .lease = dump_lease};

    HOLDS(s, ration_engine_report(engine, s->now, RATION_REPORT_LIMITS, &reporter) == RATION_OK);
    HOLDS(s, ration_engine_report(engine, s->now, RATION_REPORT_LEASES, &reporter) == RATION_OK);
    d.hash = mix(d.hash, (int64_t)d.spent);
    return d;
}

static dump dump_of(const stream *s)
{
    return dump_engine(s, s->engine);
}

/* What `r` counts as at limit `name`, or -1: it holds nothing there. */
static int tenant_at(const stream *s, const char *name, const request *r)
{
    const ration_limit_rule *limit = stream_limit(&s->rules, name);

    if (r->tenant >= 0 && r->tenant < TENANTS)
        return r->tenant;
    return limit->share.unknown_tenant != NULL
               ? place_of(stream_tenants, TENANTS, ration_text_of(limit->share.unknown_tenant))
               : -1;
}

/* What the live leases must hold at the limits that count them simply. */
static void expect(const stream *s, dump *out)
{
    const bool classed =
        stream_limit(&s->rules, "learns") != NULL && stream_limit(&s->rules, "learns")->adaptive.class_count > 0;

    for (size_t i = 0; i < s->count; i++) {
        const request *r = &s->requests[i];

        out->waiters += r->stage == WAITS;
        out->leases += r->stage == HELD;
        if (r->stage != HELD)
            continue;
        if (r->account == 2 || stream_limit(&s->rules, "slots") != NULL)
            out->held[r->account == 2][r->account] += UNIT;
        if (r->account == 2)
            continue;
        if (r->x >= 0 && stream_limit(&s->rules, "tokens") != NULL)
            out->tokens[r->x] += r->cost;
        if (stream_limit(&s->rules, "fair") != NULL)
            out->fair[r->account][tenant_at(s, "fair", r)] += r->cost;
        if (stream_limit(&s->rules, "learns") != NULL)
            out->learned[r->account] += UNIT;
        if (classed && r->class_name >= 0)
            out->learns[r->account][r->class_name] += UNIT;
    }
}

static void invariants(stream *s)
{
    ration_totals t;
    dump want = {.s = s};
    const dump d = dump_of(s);

    expect(s, &want);
    HOLDS(s, memcmp(want.held, d.held, sizeof d.held) == 0);
    HOLDS(s, memcmp(want.tokens, d.tokens, sizeof d.tokens) == 0);
    HOLDS(s, memcmp(want.fair, d.fair, sizeof d.fair) == 0);
    HOLDS(s, memcmp(want.learns, d.learns, sizeof d.learns) == 0);
    HOLDS(s, memcmp(want.learned, d.learned, sizeof d.learned) == 0);
    HOLDS(s, want.waiters == d.waiters);
    HOLDS(s, want.leases == d.leases);

    ration_engine_totals(s->engine, &t);
    HOLDS(s, t.held == want.leases);
    HOLDS(s, t.waiting == want.waiters);
    HOLDS(s, t.granted - t.released - t.lost == t.held);
    HOLDS(s, t.clock_went_back == 0);
    s->hash = mix(s->hash, (int64_t)d.hash);
}

/* ---- what happens ---- */

static request *of_lease(stream *s, ration_lease lease)
{
    for (size_t i = s->count; i-- > 0;) {
        if (s->requests[i].lease.index == lease.index && s->requests[i].lease.generation == lease.generation)
            return &s->requests[i];
    }
    return NULL;
}

/* Both engines tell the same; each request does what it can do in its stage. */
static void events(stream *s)
{
    ration_event event;
    ration_event other;

    for (;;) {
        const bool more = ration_engine_next_event(s->engine, &event);

        HOLDS(s, ration_engine_next_event(s->twin, &other) == more);
        if (!more)
            return;
        HOLDS(s, mix_event(0, &event) == mix_event(0, &other));
        s->hash = mix_event(s->hash, &event);

        request *r = of_lease(s, event.lease);

        HOLDS(s, r != NULL || event.type >= RATION_EVENT_PENALTY);
        note(s, "  event %d of %d at %" PRId64 " %s", (int)event.type, r != NULL ? (int)(r - s->requests) : -1,
             event.at.us, ration_reason_name(event.decision.reason));
        switch (event.type) {
        case RATION_EVENT_GRANTED:
            HOLDS(s, r->stage == WAITS);
            r->stage = HELD;
            break;
        case RATION_EVENT_REFUSED:
            HOLDS(s, r->stage == WAITS);
            r->stage = OVER;
            break;
        case RATION_EVENT_LOST:
            HOLDS(s, r->stage == HELD);
            r->stage = OVER;
            break;
        case RATION_EVENT_PENALTY:
        case RATION_EVENT_LIMIT:
        case RATION_EVENT_BREAKER:
        case RATION_EVENT_HEALTH:
            break;
        }
    }
}

static int64_t random_span(const stream *s)
{
    static const int64_t spans[] = {0, 1, MS, 20 * MS, 333 * MS, 2 * SECOND, 10 * SECOND, 70 * SECOND};

    return spans[pick(s, 7)] + (int64_t)pick(s, 3) * MS;
}

static void ask(stream *s)
{
    static const char *const values[KEYS] = {"0", "1", "2"};
    static const char *const paths[] = {"/x/0", "/x/1", "/x/2"};
    ration_var var = {ration_text_of("x"), {NULL, 0}};
    ration_request ask = RATION_REQUEST_INIT;
    ration_decision d = {.at = {0}};
    ration_decision other = {.at = {0}};
    ration_totals t;
    request *r = &s->requests[s->count];

    if (s->count == REQUESTS)
        return;
    *r = (request){.account = (int)pick(s, ACCOUNTS - 1), .x = (int)pick(s, KEYS) - 1, .cost = UNIT};
    ask.account = ration_text_of(stream_accounts[r->account]);
    ask.method = ration_text_of(pick(s, 1) == 0 ? "GET" : "POST");
    if (r->x >= 0 && pick(s, 1) == 0) {
        ask.path = ration_text_of(paths[r->x]);
        r->cost = r->account == 2 ? UNIT : 2 * UNIT; /* only p has the endpoint */
    } else if (r->x >= 0) {
        var.value = ration_text_of(values[r->x]);
        ask.vars = &var;
        ask.var_count = 1;
    }
    if (pick(s, 2) != 0)
        r->cost = ask.cost = (int64_t)pick(s, 7) * UNIT / 2;
    r->tenant = (int)pick(s, TENANTS + 1) - 1;
    if (r->tenant >= 0)
        ask.tenant = ration_text_of(stream_tenants[r->tenant]);
    r->class_name = (int)pick(s, 2 * CLASSES + 1) % (CLASSES + 2) - 1;
    if (r->class_name >= 0)
        ask.class_name = ration_text_of(stream_classes[r->class_name]);
    ask.health = pick(s, 15) == 15;
    ask.priority = (ration_priority)pick(s, 4);
    ask.retry = pick(s, 3) == 3;
    ask.hold_us = pick(s, 1) != 0 ? random_span(s) : RATION_UNSET;
    ask.ttl_us = pick(s, 2) == 2 ? 1 + random_span(s) : RATION_UNSET;
    ask.wait_us = pick(s, 1) != 0 ? random_span(s) : 0;

    const dump before = dump_of(s);

    HOLDS(s, ration_engine_check(s->engine, s->now, &ask, RATION_CHECK_ENFORCER, &other) == RATION_OK);
    HOLDS(s, ration_engine_check(s->engine, s->now, &ask, RATION_CHECK_ACQUIRE, &other) == RATION_OK);
    for (int i = 0; i < 2; i++) /* a check has a serial of its own */
        HOLDS(s, ration_engine_check(s->twin, s->now, &ask, RATION_CHECK_ACQUIRE, &d) == RATION_OK);
    HOLDS(s, dump_of(s).hash == before.hash);

    const ration_decision foretold = other;
    const int err = ration_engine_submit(s->engine, s->now, &ask, &d);

    HOLDS(s, ration_engine_submit(s->twin, s->now, &ask, &other) == err);
    HOLDS(s, err == RATION_OK);
    note(s,
         "%" PRId64 " ask %zu account %d x %d tenant %d class %d cost %" PRId64 " hold %" PRId64 " wait %" PRId64
         " ttl %" PRId64 ": %d %s %s",
         s->now.us, s->count, r->account, r->x, r->tenant, r->class_name, r->cost, ask.hold_us, ask.wait_us, ask.ttl_us,
         (int)d.result, ration_reason_name(d.reason), d.limit != NULL ? d.limit : "-");
    HOLDS(s, foretold.result == d.result && foretold.reason == d.reason && foretold.retry_at.us == d.retry_at.us);
    HOLDS(s, mix_decision(0, &d) == mix_decision(0, &other));
    s->hash = mix_decision(s->hash, &d);
    ration_engine_totals(s->engine, &t);
    /* Its demand may have made a limit grow, and so let somebody go. */
    if (d.result == RATION_REFUSED && t.events_pending == 0)
        HOLDS(s, dump_of(s).spent == before.spent);
    r->lease = d.lease;
    r->stage = d.result == RATION_GRANTED ? HELD : d.result == RATION_QUEUED ? WAITS : OVER;
    s->count++;
}

/* A request in the stage, or NULL. */
static request *one(stream *s, stage wanted)
{
    const size_t start = s->count > 0 ? (size_t)pick(s, s->count - 1) : 0;

    for (size_t i = 0; i < s->count; i++) {
        request *r = &s->requests[(start + i) % s->count];

        if (r->stage == wanted && r->lease.generation != 0)
            return r;
    }
    return NULL;
}

static void release(stream *s)
{
    request *r = one(s, HELD);
    ration_completion how = RATION_COMPLETION_INIT;

    if (r == NULL)
        return;
    how.outcome = (ration_outcome)pick(s, RATION_OUTCOME_CANCELLED);
    how.cost = pick(s, 1) != 0 ? (int64_t)pick(s, 16) * UNIT / 4 : RATION_UNSET;
    note(s, "%" PRId64 " release %d outcome %d cost %" PRId64, s->now.us, (int)(r - s->requests), (int)how.outcome,
         how.cost);
    r->stage = OVER;
    HOLDS(s, ration_engine_release(s->engine, s->now, r->lease, &how) == RATION_OK);
    HOLDS(s, ration_engine_release(s->twin, s->now, r->lease, &how) == RATION_OK);
    HOLDS(s, ration_engine_release(s->engine, s->now, r->lease, &how) == RATION_ERR_UNKNOWN);
}

static void observe(stream *s)
{
    static const char *const names[] = {"X-Limit", "x-left", "x-reset", "Retry-After", "RateLimit", "RateLimit-Policy"};
    static const char *const values[] = {
        "0", "1", "7", "39", "1000", "-1", "x", "", "0.05", "2", "\"patient\";r=3;t=9", "\"patient\";q=20;w=30"};
    static const int statuses[] = {0, 200, 404, 429, 500, 503, 429};
    ration_header headers[4];
    ration_response response = {.headers = headers};
    request *r = one(s, HELD);

    if (r == NULL)
        return;
    response.status = statuses[pick(s, 6)];
    response.header_count = (size_t)pick(s, 4);
    for (size_t i = 0; i < response.header_count; i++)
        headers[i] = (ration_header){ration_text_of(names[pick(s, 5)]), ration_text_of(values[pick(s, 11)])};
    note(s, "%" PRId64 " observe %d: %d, %zu headers", s->now.us, (int)(r - s->requests), response.status,
         response.header_count);
    HOLDS(s, ration_engine_observe(s->engine, s->now, r->lease, &response) == RATION_OK);
    HOLDS(s, ration_engine_observe(s->twin, s->now, r->lease, &response) == RATION_OK);
}

static void small_call(stream *s)
{
    const stage wanted = (stage)(WAITS + pick(s, 2));
    request *r = one(s, wanted);

    if (r == NULL)
        return;

    const bool renew = pick(s, 1) == 0;
    const int want = wanted == (renew ? HELD : WAITS) ? RATION_OK : RATION_ERR_UNKNOWN;

    note(s, "%" PRId64 " %s %d", s->now.us, renew ? "renew" : "cancel", (int)(r - s->requests));
    if (renew) {
        HOLDS(s, ration_engine_renew(s->engine, s->now, r->lease) == want);
        HOLDS(s, ration_engine_renew(s->twin, s->now, r->lease) == want);
        return;
    }
    r->stage = want == RATION_OK ? OVER : r->stage;
    HOLDS(s, ration_engine_cancel(s->engine, s->now, r->lease) == want);
    HOLDS(s, ration_engine_cancel(s->twin, s->now, r->lease) == want);
}

/* A health check comes back, asked for or not. */
static void health(stream *s)
{
    const ration_text account = ration_text_of(stream_accounts[pick(s, ACCOUNTS - 1)]);
    const bool ok = pick(s, 1) == 0;
    const int err = ration_engine_health(s->engine, s->now, account, ok);

    note(s, "%" PRId64 " health %s %d: %d", s->now.us, account.data, ok, err);
    HOLDS(s, ration_engine_health(s->twin, s->now, account, ok) == err);
}

/* Time passes; the twin is looked at in between. */
static void pass(stream *s)
{
    const ration_time from = s->now;

    s->now.us += random_span(s);
    note(s, "%" PRId64 " pass", s->now.us);
    for (uint64_t looks = pick(s, 3); looks > 0; looks--) {
        const ration_time due = ration_engine_next_deadline(s->twin);
        ration_time at = {from.us + (s->now.us - from.us) / (int64_t)(looks + 1)};

        if (pick(s, 1) == 0 && due.us < s->now.us)
            at = due;
        HOLDS(s, ration_engine_advance(s->twin, at.us > from.us ? at : from) == RATION_OK);
    }
    if (pick(s, 1) != 0)
        HOLDS(s, ration_engine_advance(s->engine, s->now) == RATION_OK);
    HOLDS(s, ration_engine_report(s->engine, s->now, RATION_REPORT_LEASES, &(ration_reporter){0}) == RATION_OK);
    HOLDS(s, ration_engine_advance(s->twin, s->now) == RATION_OK);
    /* A reload forgets instants at which nothing would have happened. */
    HOLDS(s, s->driver.reloads || ration_engine_next_deadline(s->engine).us == ration_engine_next_deadline(s->twin).us);
    HOLDS(s, ration_engine_next_deadline(s->engine).us > s->now.us);
}

static void step(stream *s)
{
    switch (pick(s, 10)) {
    case 0:
    case 1:
    case 2:
    case 3:
        ask(s);
        break;
    case 4:
    case 5:
        release(s);
        break;
    case 6:
        observe(s);
        break;
    case 7:
        small_call(s);
        break;
    case 8:
        health(s);
        break;
    default:
        pass(s);
        break;
    }
    events(s);
    invariants(s);
    if (s->driver.look != NULL)
        s->driver.look(s->driver.ctx, s->engine);
}

/* Every counter is there from the beginning, so that a refusal cannot make one. */
static void warm_up(const stream *s)
{
    static const char *const values[KEYS] = {"0", "1", "2"};

    for (int i = 0; i < ACCOUNTS * KEYS * (TENANTS + 1); i++) {
        const ration_var var = {ration_text_of("x"), ration_text_of(values[i % KEYS])};
        ration_request r = RATION_REQUEST_INIT;
        ration_decision d;

        r.account = ration_text_of(stream_accounts[i / KEYS % ACCOUNTS]);
        r.method = ration_text_of("GET");
        r.tenant = ration_text_of(stream_tenants[i / KEYS / ACCOUNTS]);
        r.vars = &var;
        r.var_count = 1;
        for (int k = 0; k < 2; k++) {
            ration_engine *engine = k == 0 ? s->engine : s->twin;

            if (ration_engine_submit(engine, s->now, &r, &d) == RATION_OK && d.result == RATION_GRANTED)
                (void)ration_engine_release(engine, s->now, d.lease, NULL);
        }
    }
}

uint64_t stream_play(const stream_driver *driver)
{
    stream *s = calloc(1, sizeof *s);

    if (s == NULL)
        abort();
    stream_rules_draw(&s->rules, driver->choose, driver->ctx);

    const ration_engine_options options = {.rules = &s->rules.rules, .sink = driver->sink};
    const ration_engine_options unwatched = {.rules = &s->rules.rules};

    s->driver = *driver;
    s->now.us = 1700000000 * SECOND;
    s->hash = UINT64_C(0xcbf29ce484222325);
    HOLDS(s, ration_engine_new(&options, s->now, &s->engine, NULL) == RATION_OK);
    HOLDS(s, ration_engine_new(&unwatched, s->now, &s->twin, NULL) == RATION_OK);
    if (driver->look != NULL)
        driver->look(driver->ctx, s->engine);
    warm_up(s);
    for (size_t i = 0; i < s->rules.limit_count; i++)
        note(s, "limit %s", s->rules.limits[i].name);
    while (pick(s, 300) != 0 && s->count < REQUESTS) {
        step(s);
        if (driver->reloads && pick(s, 5) == 0) {
            note(s, "%" PRId64 " reload", s->now.us);
            HOLDS(s, ration_engine_reload(s->twin, s->now, &s->rules.rules, NULL) == RATION_OK);
        }
    }
    HOLDS(s, dump_engine(s, s->engine).hash == dump_engine(s, s->twin).hash);

    const uint64_t hash = s->hash;

    ration_engine_free(s->engine);
    ration_engine_free(s->twin);
    free(s);
    return hash;
}
