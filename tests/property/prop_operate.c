/* SPDX-License-Identifier: MIT */
/*
 * What operators do among everything else, against a model of two counters and one queue: slots and an hour's quota,
 * that every request needs, so nobody passes anybody. Whoever can go by a resume, a reset, a grant or a release goes at
 * that instant, in order; a refusal spends nothing; a pause loses nothing and nobody.
 */
#include <ration/operate.h>

#include "support/check.h"
#include "support/property.h"

#include <inttypes.h>

#define UNIT RATION_UNIT
#define MS INT64_C(1000)
#define MANY 64

typedef struct waiter {
    size_t id;
    int64_t deadline;
} waiter;

typedef struct model {
    int64_t held, used, extra;
    bool paused[2]; /* slots, quota */
    bool draining;
    waiter queue[MANY];
    size_t waiting;
    size_t granted[MANY]; /* ids that hold */
    size_t holders;
} model;

/* What happens to whom, in order. */
typedef struct story {
    struct {
        ration_event_type type;
        size_t id;
        ration_reason reason;
    } of[4 * MANY];
    size_t count;
} story;

#define SLOTS 2
#define QUOTA 5

static void tell(story *s, ration_event_type type, size_t id, ration_reason reason)
{
    s->of[s->count].type = type;
    s->of[s->count].id = id;
    s->of[s->count++].reason = reason;
}

static bool used_up(const model *m)
{
    return m->used >= QUOTA + m->extra;
}

static bool can_go(const model *m)
{
    return !m->paused[0] && !m->paused[1] && m->held < SLOTS && !used_up(m);
}

static void grant(model *m, size_t id)
{
    m->held++;
    m->used++;
    m->granted[m->holders++] = id;
}

static size_t leave(model *m, size_t at)
{
    const size_t id = m->queue[at].id;

    m->waiting--;
    memmove(&m->queue[at], &m->queue[at + 1], (m->waiting - at) * sizeof m->queue[0]);
    return id;
}

static void pump(model *m, story *s)
{
    while (m->waiting > 0) {
        if (m->draining || used_up(m)) {
            tell(s, RATION_EVENT_REFUSED, leave(m, 0),
                 m->draining ? RATION_REASON_DRAINING : RATION_REASON_QUOTA_EXHAUSTED);
        } else if (can_go(m)) {
            const size_t id = leave(m, 0);

            grant(m, id);
            tell(s, RATION_EVENT_GRANTED, id, RATION_REASON_NONE);
        } else {
            return;
        }
    }
}

/* Those whose time is up by `now`, in order of their times, those of one instant in the order in which they came. */
static void pass(model *m, int64_t now, story *s)
{
    for (;;) {
        size_t first = m->waiting;

        for (size_t i = 0; i < m->waiting; i++) {
            if (m->queue[i].deadline <= now && (first == m->waiting || m->queue[i].deadline < m->queue[first].deadline))
                first = i;
        }
        if (first == m->waiting)
            return;
        tell(s, RATION_EVENT_REFUSED, leave(m, first), RATION_REASON_DEADLINE);
    }
}

static ration_engine *engine_new(void)
{
    static const ration_limit_rule limits[] = {
        {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .max = SLOTS * UNIT},
        {.name = "quota",
         .kind = RATION_KIND_QUOTA,
         .max = QUOTA * UNIT,
         .window = {.period = RATION_PERIOD_HOUR},
         .arrival_us = RATION_UNSET},
    };
    static const ration_provider_rule provider = {.name = "p", .limits = limits, .limit_count = 2};
    static const ration_account_rule account = {.name = "acc", .provider = "p"};
    static const ration_rules rules = {
        .providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1, .retry_reserve = {0, 1}};
    const ration_engine_options options = {.rules = &rules};
    ration_engine *engine = NULL;

    if (ration_engine_new(&options, ration_time_of(0), &engine, NULL) != RATION_OK)
        abort();
    return engine;
}

typedef struct play {
    choices *c;
    ration_engine *engine;
    model m;
    story want;
    int64_t now;
    ration_lease leases[256];
    size_t asked;
} play;

static void ask(play *p)
{
    const int64_t wait_ms = (int64_t)choose(p->c, 3) * 20;
    const size_t id = p->asked++;
    const bool goes = !p->m.draining && p->m.waiting == 0 && can_go(&p->m);
    ration_request r = RATION_REQUEST_INIT;
    ration_decision d;
    ration_result result = RATION_REFUSED;

    r.account = ration_text_of("acc");
    r.wait_us = wait_ms * MS;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, not a place. */
    r.user = (void *)(intptr_t)id;
    if (goes) {
        result = RATION_GRANTED;
        grant(&p->m, id);
    } else if (!p->m.draining && !used_up(&p->m) && wait_ms > 0) {
        result = RATION_QUEUED;
        p->m.queue[p->m.waiting++] = (waiter){id, p->now + r.wait_us};
    }
    HOLDS(p->c, ration_engine_submit(p->engine, ration_time_of(p->now), &r, &d) == RATION_OK);
    NOTE(p->c, "%" PRId64 " ask %zu wait %" PRId64 ": %d %s", p->now, id, wait_ms, d.result,
         ration_reason_name(d.reason));
    HOLDS(p->c, d.result == result);
    p->leases[id] = d.lease;
    if (result != RATION_REFUSED)
        return;
    if (p->m.draining) {
        HOLDS(p->c, d.reason == RATION_REASON_DRAINING);
    } else if (used_up(&p->m)) {
        HOLDS(p->c, d.reason == RATION_REASON_QUOTA_EXHAUSTED);
    } else {
        HOLDS(p->c, d.reason == RATION_REASON_CONCURRENCY_FULL ||
                        (d.reason == RATION_REASON_PAUSED && (p->m.paused[0] || p->m.paused[1])));
    }
}

static void give_back(play *p)
{
    if (p->m.holders == 0)
        return;

    const size_t at = choose(p->c, p->m.holders - 1);
    const size_t id = p->m.granted[at];

    NOTE(p->c, "%" PRId64 " release %zu", p->now, id);
    p->m.granted[at] = p->m.granted[--p->m.holders];
    p->m.held--;
    HOLDS(p->c, ration_engine_release(p->engine, ration_time_of(p->now), p->leases[id], NULL) == RATION_OK);
}

static void operate(play *p)
{
    static const char *const names[] = {"slots", "quota"};
    static const char *const what[] = {"pause", "resume", "reset", "grant"};
    const size_t which = choose(p->c, 1);
    const size_t op = choose(p->c, 3);
    const int64_t units = op == 3 ? choose_from(p->c, 1, 3) : 0;
    const ration_time now = {p->now};
    const ration_counter_name name = {.limit = ration_text_of(names[which]), .key = ration_text_of("local")};
    const bool known = p->asked > 0;
    int err = known ? RATION_OK : RATION_ERR_UNKNOWN;

    NOTE(p->c, "%" PRId64 " %s %s %" PRId64, p->now, what[op], names[which], units);
    if (known && op == 3 && which == 0)
        err = RATION_ERR_INVALID;
    if (err == RATION_OK && op < 2)
        p->m.paused[which] = op == 0;
    if (err == RATION_OK && op == 2 && which == 1)
        p->m.used = p->m.extra = 0;
    if (err == RATION_OK && op == 3)
        p->m.extra += units;
    HOLDS(p->c, err == (op == 0   ? ration_engine_pause(p->engine, now, &name)
                        : op == 1 ? ration_engine_resume(p->engine, now, &name)
                        : op == 2 ? ration_engine_reset(p->engine, now, &name)
                                  : ration_engine_grant(p->engine, now, &name, units * UNIT)));
}

static void compare_row(void *ctx, const ration_counter_report *r)
{
    play *p = ctx;
    const bool slots = r->kind == RATION_KIND_CONCURRENCY;

    HOLDS(p->c, r->paused == p->m.paused[slots ? 0 : 1]);
    if (slots) {
        HOLDS(p->c, r->held == p->m.held * UNIT);
    } else {
        HOLDS(p->c, r->used == p->m.used * UNIT);
        HOLDS(p->c, r->extra == p->m.extra * UNIT);
        HOLDS(p->c, r->remaining == (QUOTA + p->m.extra - p->m.used) * UNIT);
    }
}

static void compare(play *p)
{
    const ration_reporter reporter = {.ctx = p, .counter = compare_row};
    ration_event event;
    size_t at = 0;

    while (ration_engine_next_event(p->engine, &event)) {
        NOTE(p->c, "  event %d of %d %s", event.type, (int)(intptr_t)event.user,
             ration_reason_name(event.decision.reason));
        HOLDS(p->c, at < p->want.count && p->want.of[at].type == event.type &&
                        p->want.of[at].id == (size_t)(intptr_t)event.user &&
                        p->want.of[at].reason == event.decision.reason);
        at++;
    }
    HOLDS(p->c, at == p->want.count);
    p->want.count = 0;
    HOLDS(p->c, ration_engine_report(p->engine, ration_time_of(p->now), RATION_REPORT_STATS, &reporter) == RATION_OK);
}

static void operators_against_a_model(choices *c, void *context)
{
    play p = {.c = c, .engine = engine_new()};

    (void)context;
    while (p.asked < 256 && p.m.waiting < MANY - 1 && p.m.holders < MANY - 1 && choose(c, 80) != 0) {
        p.now += (int64_t)choose(c, 3) * 10 * MS;
        HOLDS(c, ration_engine_advance(p.engine, ration_time_of(p.now)) == RATION_OK);
        pass(&p.m, p.now, &p.want);
        switch (choose(c, 9)) {
        case 0:
        case 1:
        case 2:
        case 3:
            ask(&p);
            break;
        case 4:
        case 5:
            give_back(&p);
            break;
        case 9:
            if (choose(c, 30) == 30) {
                p.m.draining = true;
                HOLDS(c, ration_engine_drain(p.engine, ration_time_of(p.now)) == RATION_OK);
            }
            break;
        default:
            operate(&p);
            break;
        }
        pump(&p.m, &p.want);
        compare(&p);
    }
    ration_engine_free(p.engine);
}

static void operators(void **state)
{
    (void)state;
    property_check("operators against a model", operators_against_a_model, NULL, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operators)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
