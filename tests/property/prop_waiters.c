/* SPDX-License-Identifier: MIT */

/*
 * Waiters under pressure: requests over x, y and a bucket in any mix, of several tenants, dear and cheap, in a stream
 * that always wants more than there is. Newcomers that need not wait try to slip in between.
 *
 *     Nobody is overtaken: when a request is granted, waiting or new, no waiter ahead of it keeps a place on any of
 *     its counters.
 *     A short set only grows, and whoever waits is short of something that it keeps a place for.
 *     Nobody starves: no more requests pass a waiter than were ahead of it when it came, plus one for each tenant and
 *     each unit of its tag above V; and the first of those who wait is granted within a few holds.
 *
 * The first is looked at from inside, in the heaps that the engine decides by. What costs nothing is left out: it adds
 * nothing to a tag, so a stream of it passes everybody, as chapter 11 has it.
 *
 * Waiting for several counters at once costs capacity: a slot may be free while the waiter that keeps a place for it
 * lacks another. How much is measured at the end, and stated in docs/internals/core.md.
 */
#include "support/check.h"
#include "support/property.h"

#include <stdlib.h>

#include "core/engine.h"

#define UNIT RATION_UNIT
#define MS INT64_C(1000)
#define REQUESTS 512
#define COUNTERS 3
#define TENANTS 4
#define COST_MAX 5
#define HOLD_MAX (50 * MS)
#define PATIENCE (HOLD_MAX * COUNTERS * COST_MAX)

static const char *const by_x[] = {"var:x"};
static const char *const by_y[] = {"var:y"};
static const char *const by_b[] = {"var:b"};
/* The bucket earns its burst in HOLD_MAX. */
static const ration_limit_rule limits[COUNTERS] = {
    {.name = "x", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = 3 * UNIT},
    {.name = "y",
     .kind = RATION_KIND_CONCURRENCY,
     .counts = RATION_COUNTS_COST,
     .scope = by_y,
     .scope_count = 1,
     .max = COST_MAX * UNIT},
    {.name = "b",
     .kind = RATION_KIND_RATE,
     .counts = RATION_COUNTS_COST,
     .scope = by_b,
     .scope_count = 1,
     .rate = {100 * UNIT, 1000000},
     .burst = COST_MAX * UNIT,
     .margin = 0},
};

typedef struct request {
    ration_lease lease;
    bool waits, holds;
    int64_t since, ends_at;
    bool kept[COUNTERS];
    rn_rank rank;
    int64_t may_pass; /* at most so many */
    int64_t passed;
    int64_t passed_at; /* the last of them, or when it came */
} request;

typedef struct world {
    choices *c;
    ration_engine *engine;
    bool priorities;
    uint64_t rare; /* one in so many may wait */
    request requests[REQUESTS];
    int count;
    int asking; /* the request that is being submitted; -1: none */
    int64_t now;
} world;

/* Over all runs. */
static struct {
    uint64_t waited, passed;
    int64_t longest_us;
} seen;

/* ---- from inside ---- */

/* Does a waiter ahead keep a place on one of its counters? */
static bool overtakes(const rn_lease *lease)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_heap *places = &lease->places[i].lane->places;

        for (size_t j = 0; j < places->size; j++) {
            const rn_place *other = (const rn_place *)(const void *)places->items[j];

            if (other->lease != lease && rn_rank_before(&other->lease->rank, &lease->rank))
                return true;
        }
    }
    return false;
}

/* Does a waiter keep a place on one of the counters of `lease`? */
static bool is_passed(const world *w, const request *r, const rn_lease *lease)
{
    const rn_lease *waiter = rn_leases_find(&w->engine->leases, r->lease);

    for (size_t i = 0; i < lease->place_count; i++) {
        for (size_t j = 0; j < waiter->place_count; j++) {
            if (waiter->places[j].counter == lease->places[i].counter && rn_heap_contains(&waiter->places[j].node))
                return true;
        }
    }
    return false;
}

/* A request has been granted, waiting or new: those behind it who keep a place where it takes have let it pass. */
static void passes(world *w, const rn_lease *lease)
{
    HOLDS(w->c, !overtakes(lease));
    for (int i = 0; i < w->count; i++) {
        request *r = &w->requests[i];

        if (!r->waits || !rn_rank_before(&lease->rank, &r->rank) || !is_passed(w, r, lease))
            continue;
        r->passed++;
        r->passed_at = w->now;
        seen.passed++;
        HOLDS(w->c, w->priorities || r->passed <= r->may_pass);
    }
}

static request *request_of(world *w, ration_lease lease)
{
    for (int i = 0; i < w->count; i++) {
        request *r = &w->requests[i];

        if (r->lease.index == lease.index && r->lease.generation == lease.generation)
            return r;
    }
    abort();
}

static void starts(world *w, request *r, int64_t at)
{
    r->waits = false;
    r->holds = true;
    r->ends_at = at + 1 + (int64_t)choose(w->c, (uint64_t)HOLD_MAX - 1);
}

static void on_event(void *ctx, const ration_event *event)
{
    world *w = ctx;
    request *r = request_of(w, event->lease);

    HOLDS(w->c, event->type == RATION_EVENT_GRANTED);
    w->now = event->at.us;
    starts(w, r, event->at.us);
    seen.longest_us = event->waited_us > seen.longest_us ? event->waited_us : seen.longest_us;
    NOTE(w->c, "%lld grant %d, passed by %d", (long long)event->at.us, (int)(r - w->requests), (int)r->passed);
    passes(w, rn_leases_find(&w->engine->leases, event->lease));
}

static void on_answer(void *ctx, const ration_call *call, int err, const ration_decision *decision)
{
    world *w = ctx;

    if (call->op == RATION_OP_SUBMIT && err == RATION_OK && decision->result == RATION_GRANTED)
        passes(w, rn_leases_find(&w->engine->leases, decision->lease));
}

/* How many may pass: those ahead of it now, and of each tenant as many as there are tags between V and its own. */
static int64_t passers(const world *w, const rn_lease *lease)
{
    const rn_queue *queue = &lease->route->provider->queue;
    const uint64_t units = (lease->rank.tag - queue->of[lease->rank.priority].virtual_time) / UNIT;
    int64_t ahead = 0;

    for (int i = 0; i < w->count; i++)
        ahead += w->requests[i].waits && rn_rank_before(&w->requests[i].rank, &lease->rank) ? 1 : 0;
    return ahead + TENANTS * (int64_t)units;
}

/* Between two calls. */
static void waiters_hold(world *w)
{
    for (int i = 0; i < w->count; i++) {
        request *r = &w->requests[i];
        bool short_of = false;

        if (!r->waits)
            continue;

        const rn_lease *lease = rn_leases_find(&w->engine->leases, r->lease);

        for (size_t p = 0; p < lease->place_count; p++) {
            const bool keeps = rn_heap_contains(&lease->places[p].node);

            HOLDS(w->c, keeps || !r->kept[p]);
            r->kept[p] = keeps;
            short_of = short_of || (keeps && !rn_place_can_take(w->engine, lease, &lease->places[p]));
        }
        HOLDS(w->c, short_of);
        HOLDS(w->c, w->priorities || w->now - r->passed_at <= PATIENCE);
    }
}

/* ---- the stream ---- */

static void ask(world *w)
{
    static const char *const tenants[TENANTS] = {"a", "b", "c", "d"};
    static const char *const names[COUNTERS] = {"x", "y", "b"};
    request *r = &w->requests[w->count];
    ration_request how = RATION_REQUEST_INIT;
    ration_var vars[COUNTERS];
    const uint64_t mix = 1 + choose(w->c, 6);
    ration_decision d;

    *r = (request){0};
    how.account = ration_text_of("acc");
    how.tenant = ration_text_of(tenants[choose(w->c, TENANTS - 1)]);
    how.vars = vars;
    for (int i = 0; i < COUNTERS; i++) {
        if ((mix >> i & 1) != 0)
            vars[how.var_count++] = (ration_var){ration_text_of(names[i]), ration_text_of("1")};
    }
    how.cost = choose_from(w->c, 1, COST_MAX) * UNIT;
    how.wait_us = choose(w->c, w->rare) == w->rare ? RATION_FOREVER_US : 0;
    if (w->priorities)
        how.priority = (ration_priority)choose_from(w->c, RATION_PRIORITY_CRITICAL, RATION_PRIORITY_LOW);
    HOLDS(w->c, ration_engine_submit(w->engine, ration_time_of(w->now), &how, &d) == RATION_OK);
    NOTE(w->c, "%lld ask %d of %.1s, mix %d cost %d: %s", (long long)w->now, w->count, how.tenant.data, (int)mix,
         (int)(how.cost / UNIT),
         d.result == RATION_GRANTED  ? "granted"
         : d.result == RATION_QUEUED ? "queued"
                                     : "refused");
    if (d.result == RATION_REFUSED)
        return;
    r->lease = d.lease;
    if (d.result == RATION_GRANTED) {
        starts(w, r, w->now);
    } else {
        const rn_lease *lease = rn_leases_find(&w->engine->leases, d.lease);

        r->rank = lease->rank;
        r->may_pass = passers(w, lease);
        r->since = r->passed_at = w->now;
        r->waits = true;
        seen.waited++;
    }
    w->count++;
}

/* The next end of a hold, wake of the engine, or `until`. */
static void pass(world *w, int64_t until)
{
    for (;;) {
        const int64_t due = ration_engine_next_deadline(w->engine).us;
        int64_t first = due < until ? due : until;
        request *ends = NULL;
        ration_event event;

        for (int i = 0; i < w->count; i++) {
            if (w->requests[i].holds && w->requests[i].ends_at <= first) {
                ends = &w->requests[i];
                first = ends->ends_at;
            }
        }
        w->now = first;
        if (ends != NULL) {
            ends->holds = false;
            NOTE(w->c, "%lld end %d", (long long)w->now, (int)(ends - w->requests));
            HOLDS(w->c, ration_engine_release(w->engine, ration_time_of(w->now), ends->lease, NULL) == RATION_OK);
        } else {
            HOLDS(w->c, ration_engine_advance(w->engine, ration_time_of(w->now)) == RATION_OK);
        }
        while (ration_engine_next_event(w->engine, &event)) {
        }
        waiters_hold(w);
        if (ends == NULL && first == until)
            return;
    }
}

static ration_engine *engine_new(const ration_limit_rule *rules, size_t count, const ration_sink *sink)
{
    const ration_provider_rule provider = {.name = "p", .limits = rules, .limit_count = count};
    const ration_account_rule account = {.name = "acc", .provider = "p"};
    const ration_rules all = {.providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options options = {.rules = &all, .sink = sink};
    ration_engine *engine = NULL;

    if (ration_engine_new(&options, ration_time_of(0), &engine, NULL) != RATION_OK)
        abort();
    return engine;
}

static void nobody_is_overtaken_or_starves(choices *c, void *context)
{
    world *w = calloc(1, sizeof *w);
    const ration_sink sink = {.ctx = w, .answer = on_answer, .event = on_event};

    (void)context;
    if (w == NULL)
        abort();
    w->c = c;
    w->priorities = choose(c, 3) == 3;
    w->rare = choose_wide(c, 200);
    w->engine = engine_new(limits, COUNTERS, &sink);

    const int64_t pace_us = 1 + (int64_t)choose(c, 20 * MS);

    while (choose(c, 1000) != 0 && w->count < REQUESTS - 1) {
        pass(w, w->now + (int64_t)choose(c, (uint64_t)pace_us));
        ask(w);
        waiters_hold(w);
    }
    ration_engine_free(w->engine);
    free(w);
}

static void waiters(void **state)
{
    (void)state;
    property_check("waiters", nobody_is_overtaken_or_starves, NULL, 500);
    print_message("# %" PRIu64 " waited, passed %" PRIu64 " times, the longest %d ms (holds up to %d ms)\n",
                  seen.waited, seen.passed, (int)(seen.longest_us / MS), (int)(HOLD_MAX / MS));
}

/* ---- what mixed short sets cost ---- */

#define SLOTS 4
#define CALLERS 64
#define CALLS_MEASURED 40000

/* Callers of whom each asks again as soon as it has been served. */
typedef struct caller {
    ration_lease lease;
    bool needs[2]; /* x, y */
    bool holds;
    int64_t ends_at;
} caller;

typedef struct mill {
    ration_engine *engine;
    caller callers[CALLERS];
    int count;
    int both_percent; /* of the calls; the rest needs x or y in equal parts */
    uint64_t random;
    int64_t now, held_us, idle_us;
} mill;

static int64_t random_below(mill *m, int64_t bound)
{
    m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)(m->random >> 33) % bound;
}

static void caller_starts(mill *m, caller *k)
{
    k->holds = true;
    k->ends_at = m->now + 1 + random_below(m, 100 * MS);
}

static void caller_asks(mill *m, caller *k)
{
    const int64_t which = random_below(m, 200);
    ration_request how = RATION_REQUEST_INIT;
    ration_var vars[2];
    ration_decision d;

    k->needs[0] = which < 100 + m->both_percent;
    k->needs[1] = which >= 100 - m->both_percent;
    how.account = ration_text_of("acc");
    how.wait_us = RATION_FOREVER_US;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, not a place. */
    how.user = (void *)(intptr_t)(k - m->callers);
    how.vars = vars;
    for (int i = 0; i < 2; i++) {
        if (k->needs[i])
            vars[how.var_count++] = (ration_var){ration_text_of(i == 0 ? "x" : "y"), ration_text_of("1")};
    }
    if (ration_engine_submit(m->engine, ration_time_of(m->now), &how, &d) != RATION_OK || d.result == RATION_REFUSED)
        abort();
    k->lease = d.lease;
    k->holds = false;
    if (d.result == RATION_GRANTED)
        caller_starts(m, k);
}

/* A slot is idle for somebody while it is free and one who waits needs it. */
static void mill_count(mill *m, int64_t span_us)
{
    for (int i = 0; i < 2; i++) {
        int64_t held = 0;
        int64_t wanted = 0;

        for (int j = 0; j < m->count; j++) {
            held += m->callers[j].needs[i] && m->callers[j].holds ? 1 : 0;
            wanted += m->callers[j].needs[i] && !m->callers[j].holds ? 1 : 0;
        }
        m->held_us += held * span_us;
        m->idle_us += (SLOTS - held < wanted ? SLOTS - held : wanted) * span_us;
    }
}

/* Idle slot-time in thousandths of all slot-time. */
static int mill_run(int callers, int both_percent)
{
    static const ration_limit_rule slots[2] = {
        {.name = "x", .kind = RATION_KIND_CONCURRENCY, .scope = by_x, .scope_count = 1, .max = SLOTS * UNIT},
        {.name = "y", .kind = RATION_KIND_CONCURRENCY, .scope = by_y, .scope_count = 1, .max = SLOTS * UNIT},
    };
    mill m = {.engine = engine_new(slots, 2, NULL), .count = callers, .both_percent = both_percent, .random = 1};

    for (int i = 0; i < callers; i++)
        caller_asks(&m, &m.callers[i]);
    for (int i = 0; i < CALLS_MEASURED; i++) {
        caller *next = NULL;
        ration_event event;

        for (int j = 0; j < callers; j++) {
            if (m.callers[j].holds && (next == NULL || m.callers[j].ends_at < next->ends_at))
                next = &m.callers[j];
        }
        if (next == NULL)
            abort();
        mill_count(&m, next->ends_at - m.now);
        m.now = next->ends_at;
        (void)ration_engine_release(m.engine, ration_time_of(m.now), next->lease, NULL);
        while (ration_engine_next_event(m.engine, &event))
            caller_starts(&m, &m.callers[(intptr_t)event.user]);
        caller_asks(&m, next);
    }
    ration_engine_free(m.engine);
    return (int)(1000 * m.idle_us / (m.now * 2 * SLOTS));
}

static void idle_capacity(void **state)
{
    static const int crowds[] = {9, 16, 32, 64};

    (void)state;
    for (size_t i = 0; i < sizeof crowds / sizeof crowds[0]; i++) {
        const int few = mill_run(crowds[i], 10);
        const int third = mill_run(crowds[i], 33);
        const int most = mill_run(crowds[i], 80);

        print_message(
            "# %d callers, %d slots of x and of y: idle though wanted %d.%d %%, %d.%d %%, %d.%d %% of slot-time "
            "where 10 %%, 33 %%, 80 %% need both\n",
            crowds[i], SLOTS, few / 10, few % 10, third / 10, third % 10, most / 10, most % 10);
        assert_in_range(few, 0, 150);
        assert_in_range(third, 0, 150);
        assert_in_range(most, 0, 150);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waiters), cmocka_unit_test(idle_capacity)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
