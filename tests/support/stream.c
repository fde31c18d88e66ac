/* SPDX-License-Identifier: MIT */
#include "support/stream.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT RATION_UNIT
#define MS INT64_C(1000)
#define SECOND (1000 * MS)
#define REQUESTS 160
#define ACCOUNTS 3
#define KEYS 3

/* ---- the rules: two providers, every kind, overlapping scopes ---- */

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};
static const char *const by_both[] = {"account", "var:x"};
static const char *const by_tenant[] = {"tenant"};
static const char *const by_provider[] = {"provider"};
static const char *const gets[] = {"GET"};

static const ration_limit_rule limits_p[] = {
    {.name = "calls",
     .kind = RATION_KIND_RATE,
     .scope = by_account,
     .scope_count = 1,
     .rate = {30 * UNIT, 7 * SECOND},
     .burst = 6 * UNIT,
     .margin = RATION_UNSET},
    {.name = "cost",
     .kind = RATION_KIND_RATE,
     .counts = RATION_COUNTS_COST,
     .scope = by_x,
     .scope_count = 1,
     .rate = {11 * UNIT, SECOND},
     .burst = 9 * UNIT,
     .margin = RATION_UNSET},
    {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = 5 * UNIT},
    {.name = "tokens",
     .kind = RATION_KIND_CONCURRENCY,
     .counts = RATION_COUNTS_COST,
     .scope = by_x,
     .scope_count = 1,
     .max = 8 * UNIT},
    {.name = "minute",
     .kind = RATION_KIND_QUOTA,
     .scope = by_account,
     .scope_count = 1,
     .max = 40 * UNIT,
     .window = {.period = RATION_PERIOD_MINUTE},
     .arrival_us = RATION_UNSET,
     .sync = {.limit_header = "x-limit", .remaining_header = "x-left", .reset_header = "x-reset"}},
    {.name = "patient",
     .kind = RATION_KIND_QUOTA,
     .counts = RATION_COUNTS_COST,
     .scope = by_both,
     .scope_count = 2,
     .max = 30 * UNIT,
     .window = {.rolling_us = 30 * SECOND},
     .when_exhausted = RATION_EXHAUSTED_WAIT,
     .arrival_us = RATION_UNSET,
     .sync = {.standard = true}},
    {.name = "reads",
     .kind = RATION_KIND_CONCURRENCY,
     .scope = by_tenant,
     .scope_count = 1,
     .max = 2 * UNIT,
     .methods = gets,
     .method_count = 1},
    {.name = "watched",
     .kind = RATION_KIND_CONCURRENCY,
     .scope = by_provider,
     .scope_count = 1,
     .max = 2 * UNIT,
     .enforce = RATION_ENFORCE_SHADOW},
};
static const ration_limit_rule limits_q[] = {
    {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = 2 * UNIT},
};
static const ration_endpoint_rule endpoints[] = {
    {.path = "/x/{x}", .defaults = {.cost = 2 * UNIT, .hold_us = 40 * MS}},
    {.path = "/free", .defaults = {.has_cost = true, .priority = RATION_PRIORITY_LOW}},
};
static const ration_provider_rule providers[] = {
    {.name = "p", .limits = limits_p, .limit_count = 8, .endpoints = endpoints, .endpoint_count = 2},
    {.name = "q", .limits = limits_q, .limit_count = 1, .errors = {.penalize = RATION_PENALIZE_ALL}},
};
static const ration_account_rule accounts[ACCOUNTS] = {{.name = "one", .provider = "p"},
                                                       {.name = "two", .provider = "p", .share = {3, 4}},
                                                       {.name = "three", .provider = "q"}};
static const ration_tenant_rule tenants[] = {{"heavy", 3}};
static const ration_rules rules = {
    .providers = providers,
    .provider_count = 2,
    .accounts = accounts,
    .account_count = ACCOUNTS,
    .tenants = tenants,
    .tenant_count = 1,
    .max_waiters = 12,
    .max_waiters_per_tenant = 8,
};

/* ---- the stream ---- */

typedef enum stage { NEW = 0, WAITS, HELD, OVER } stage;

typedef struct request {
    stage stage;
    ration_lease lease;
    int account;
    int x; /* -1: none */
    int64_t cost;
} request;

typedef struct stream {
    stream_driver driver;
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
    return e->type == RATION_EVENT_REFUSED ? mix_decision(hash, &e->decision) : hash;
}

/* ---- what a report says ---- */

typedef struct dump {
    const stream *s;
    uint64_t hash;
    int64_t held[2][ACCOUNTS]; /* slots of p and q */
    int64_t tokens[KEYS];
    uint64_t leases;
    uint64_t waiters;
} dump;

static int account_named(ration_text name)
{
    for (int i = 0; i < ACCOUNTS; i++) {
        if (strlen(accounts[i].name) == name.size && memcmp(accounts[i].name, name.data, name.size) == 0)
            return i;
    }
    return -1;
}

static void dump_counter(void *ctx, const ration_counter_report *r)
{
    dump *d = ctx;
    const int64_t values[] = {r->kind,       (int64_t)r->waiting, r->available,    r->max,      r->held,
                              r->usable,     r->reserve,          r->used,         r->external, r->remaining,
                              r->has_window, r->window_start.us,  r->window_end.us};

    d->hash = mix_text(d->hash, r->limit, strlen(r->limit));
    d->hash = mix_text(d->hash, r->key.data, r->key.size);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        d->hash = mix(d->hash, values[i]);
    if (strcmp(r->limit, "slots") == 0)
        d->held[strcmp(r->provider, "q") == 0][account_named(r->key)] = r->held;
    if (strcmp(r->limit, "tokens") == 0)
        d->tokens[r->key.data[2] - '0'] = r->held;
}

static void dump_penalty(void *ctx, const ration_penalty_report *r)
{
    dump *d = ctx;

    d->hash = mix_text(d->hash, r->key.data, r->key.size);
    d->hash = mix(d->hash, r->until.us);
    d->hash = mix(d->hash, r->events);
}

static void dump_lease(void *ctx, const ration_lease_report *r)
{
    dump *d = ctx;

    if (r->waiting) {
        d->waiters++;
    } else {
        d->leases++;
    }
    d->hash = mix(d->hash, (int64_t)r->serial);
    d->hash = mix(d->hash, r->since.us);
    d->hash = mix(d->hash, r->ttl_until.us);
}

static dump dump_of(const stream *s)
{
    dump d = {.s = s, .hash = UINT64_C(0xcbf29ce484222325)};
    const ration_reporter reporter = {.ctx = &d, .counter = dump_counter, .penalty = dump_penalty, .lease = dump_lease};

    HOLDS(s, ration_engine_report(s->engine, s->now, RATION_REPORT_STATS, &reporter) == RATION_OK);
    HOLDS(s, ration_engine_report(s->engine, s->now, RATION_REPORT_LEASES, &reporter) == RATION_OK);
    return d;
}

static void invariants(stream *s)
{
    int64_t held[2][ACCOUNTS] = {{0}};
    int64_t tokens[KEYS] = {0};
    uint64_t waiting = 0;
    uint64_t leases = 0;
    ration_totals t;
    const dump d = dump_of(s);

    for (size_t i = 0; i < s->count; i++) {
        const request *r = &s->requests[i];

        waiting += r->stage == WAITS;
        leases += r->stage == HELD;
        if (r->stage != HELD)
            continue;
        held[r->account == 2][r->account] += UNIT;
        if (r->x >= 0 && r->account < 2)
            tokens[r->x] += r->cost;
    }
    HOLDS(s, memcmp(held, d.held, sizeof held) == 0);
    HOLDS(s, memcmp(tokens, d.tokens, sizeof tokens) == 0);
    HOLDS(s, waiting == d.waiters);
    HOLDS(s, leases == d.leases);

    ration_engine_totals(s->engine, &t);
    HOLDS(s, t.held == leases);
    HOLDS(s, t.waiting == waiting);
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

        HOLDS(s, r != NULL || event.type == RATION_EVENT_PENALTY);
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
    static const char *const names[] = {"a", "b", "heavy"};
    static const char *const values[KEYS] = {"0", "1", "2"};
    static const char *const paths[] = {"/x/0", "/x/1", "/x/2"};
    ration_var var = {ration_text_of("x"), {NULL, 0}};
    ration_request ask = RATION_REQUEST_INIT;
    ration_decision d = {.at = {0}};
    ration_decision other = {.at = {0}};
    request *r = &s->requests[s->count];

    if (s->count == REQUESTS)
        return;
    *r = (request){.account = (int)pick(s, ACCOUNTS - 1), .x = (int)pick(s, KEYS) - 1, .cost = UNIT};
    ask.account = ration_text_of(accounts[r->account].name);
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
    if (pick(s, 1) != 0)
        ask.tenant = ration_text_of(names[pick(s, 2)]);
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
    HOLDS(s, foretold.result == d.result && foretold.reason == d.reason && foretold.retry_at.us == d.retry_at.us);
    HOLDS(s, mix_decision(0, &d) == mix_decision(0, &other));
    s->hash = mix_decision(s->hash, &d);
    note(s, "%" PRId64 " ask %zu account %d x %d cost %" PRId64 " wait %" PRId64 " ttl %" PRId64 ": %d %s", s->now.us,
         s->count, r->account, r->x, r->cost, ask.wait_us, ask.ttl_us, (int)d.result, ration_reason_name(d.reason));
    if (d.result == RATION_REFUSED)
        HOLDS(s, dump_of(s).hash == before.hash);
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
    static const int statuses[] = {0, 200, 404, 429, 500};
    ration_header headers[4];
    ration_response response = {.headers = headers};
    request *r = one(s, HELD);

    if (r == NULL)
        return;
    response.status = statuses[pick(s, 4)];
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
    HOLDS(s, ration_engine_next_deadline(s->engine).us == ration_engine_next_deadline(s->twin).us);
    HOLDS(s, ration_engine_next_deadline(s->engine).us > s->now.us);
}

static void step(stream *s)
{
    switch (pick(s, 9)) {
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
    default:
        pass(s);
        break;
    }
    events(s);
    invariants(s);
}

/* Every counter is there from the beginning, so that a refusal cannot make one. */
static void warm_up(const stream *s)
{
    static const char *const values[KEYS] = {"0", "1", "2"};
    static const char *const names[] = {"a", "b", "heavy"};

    for (int i = 0; i < ACCOUNTS * KEYS; i++) {
        const ration_var var = {ration_text_of("x"), ration_text_of(values[i % KEYS])};
        ration_request r = RATION_REQUEST_INIT;
        ration_decision d;

        r.account = ration_text_of(accounts[i / KEYS].name);
        r.method = ration_text_of("GET");
        r.tenant = ration_text_of(names[i % 3]);
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
    const ration_engine_options options = {.rules = &rules};
    stream *s = calloc(1, sizeof *s);

    if (s == NULL)
        abort();
    s->driver = *driver;
    s->now.us = 1700000000 * SECOND;
    s->hash = UINT64_C(0xcbf29ce484222325);
    HOLDS(s, ration_engine_new(&options, s->now, &s->engine, NULL) == RATION_OK);
    HOLDS(s, ration_engine_new(&options, s->now, &s->twin, NULL) == RATION_OK);
    warm_up(s);
    while (pick(s, 300) != 0 && s->count < REQUESTS)
        step(s);

    const uint64_t hash = s->hash;

    ration_engine_free(s->engine);
    ration_engine_free(s->twin);
    free(s);
    return hash;
}
