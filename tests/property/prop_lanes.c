/* SPDX-License-Identifier: MIT */
/*
 * Lanes from inside, after every call of a random stream (support/stream.h) and at every grant.
 *
 * Nobody waits who could go; nobody is overtaken in its lane; no adaptive limit is passed, nor what it keeps for
 * classes; while a tenant waits nothing of its units is lent anew, and what is on loan ends within the horizon. And
 * what makes that cheap is right: every borrower is where it can be found, nothing that time brings is without its
 * alarm.
 */
#include "support/check.h"
#include "support/property.h"
#include "support/stream.h"

#include "core/ceiling_parts.h"
#include "core/engine.h"

typedef struct watcher {
    choices *c;
    ration_engine *engine;
} watcher;

/* Over all runs. */
static struct {
    uint64_t waiters, borrowers, loans, parked, first_in_classes, granted_waiters, half_open, too_many_keys;
} seen;

/* ---- at a grant ---- */

static rn_place *first_of(rn_counter *counter, uint32_t lane)
{
    const rn_lane *at = rn_lane_at(counter, lane);

    return at == NULL ? NULL : rn_lane_first(at);
}

/* What other classes' reserves keep from it, where they are never lent. */
static int64_t kept_for_classes(const rn_counter *counter, const rn_place *place)
{
    const rn_adaptive *a = counter->u.adaptive;

    return a->use != NULL
               ? 0
               : rn_class_kept(&counter->limit->rule->adaptive, a->aimd.limit, a->held, place->lane_index, 0);
}

/* `taken`: what it is granted is held already. */
static void grant_holds(const watcher *w, const rn_lease *lease, bool taken)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];
        rn_counter *counter = place->counter;
        const rn_place *first = first_of(counter, place->lane_index);

        if (!rn_place_binds(place))
            continue;
        HOLDS(w->c, first == NULL || first->lease == lease || !rn_rank_before(&first->lease->rank, &lease->rank));
        if (counter->limit->rule->kind == RATION_KIND_ADAPTIVE) {
            const int64_t held = counter->u.adaptive->held->total + (taken ? 0 : place->charge);

            HOLDS(w->c, held + kept_for_classes(counter, place) <= counter->u.adaptive->aimd.limit * RATION_UNIT);
        }
    }
}

static void on_event(void *ctx, const ration_event *event)
{
    const watcher *w = ctx;

    if (event->type != RATION_EVENT_GRANTED)
        return;
    seen.granted_waiters++;
    grant_holds(w, rn_leases_find(&w->engine->leases, event->lease), false);
}

static void on_answer(void *ctx, const ration_call *call, int err, const ration_decision *decision)
{
    const watcher *w = ctx;

    if (w->engine != NULL && call->op == RATION_OP_SUBMIT && err == RATION_OK && decision->result == RATION_GRANTED)
        grant_holds(w, rn_leases_find(&w->engine->leases, decision->lease), true);
}

/* ---- between two calls ---- */

static void waiter_holds(const watcher *w, const rn_lease *lease)
{
    bool is_short = false;

    seen.waiters++;
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];

        is_short =
            is_short || (rn_heap_contains(&place->node) && !rn_place_can_take(w->engine, lease, &lease->places[i]));
    }
    seen.parked += lease->parked;
    HOLDS(w->c, lease->parked ? rn_is_penalized(w->engine, lease) : is_short);
    HOLDS(w->c, !rn_must_refuse(w->engine, lease));
    HOLDS(w->c, !rn_heap_contains(&lease->look));
}

static void lane_holds(const watcher *w, const rn_counter *counter, const rn_lane *lane, size_t *places)
{
    int64_t charge = 0;

    for (size_t i = 0; i < lane->places.size; i++) {
        const rn_place *place = (const rn_place *)(const void *)lane->places.items[i];

        HOLDS(w->c, place->lane == lane && place->counter == counter);
        HOLDS(w->c, !rn_rank_before(&lane->last, &place->lease->rank));
        charge += place->charge;
    }
    HOLDS(w->c, lane->charge == charge);
    *places += lane->places.size;
}

/* When some of those who keep a place at a counter could take by time alone, there is an alarm for it. */
static void alarm_holds(const watcher *w, const rn_counter *counter, ration_time at)
{
    if (!rn_time_known(at))
        return;
    HOLDS(w->c, rn_heap_contains(&counter->wake.node));
    HOLDS(w->c, !rn_time_before(rn_time_max(at, ration_time_of(w->engine->now.us + 1)), counter->wake.at));
}

static void first_holds(const watcher *w, rn_counter *counter, const rn_lane *lane)
{
    const rn_place *first = rn_lane_first(lane);

    if (first == NULL || rn_place_can_take(w->engine, first->lease, first))
        return;

    const rn_ask ask = rn_ask_of(first->lease, first);

    alarm_holds(w, counter, counter->limit->kind->next_change(counter, w->engine->now, &ask));
}

static void tenant_lane_holds(const watcher *w, rn_counter *counter, const rn_lane *lane)
{
    const rn_tenant_lane *tenant = (const rn_tenant_lane *)(const void *)lane;
    const rn_place *first = rn_lane_first(lane);
    const bool among = rn_tree_contains(&tenant->node);

    HOLDS(w->c, tenant->charges.size == lane->places.size);
    HOLDS(w->c, first != NULL || !among);
    if (first == NULL)
        return;

    const rn_ask ask = rn_ask_of(first->lease, first);
    const int64_t need = rn_share_need(counter, &ask);

    HOLDS(w->c, !among || (tenant->rank.serial == first->lease->rank.serial && tenant->node.value <= need));
    HOLDS(w->c, among || need == 0 || need == RATION_FOREVER_US);
    seen.borrowers += among;
}

/* The moment since when the tenant has had somebody waiting. */
static ration_time waits_since(const rn_counter *counter, uint32_t tenant)
{
    const struct rn_place_list *const lists[] = {&counter->watchers, &counter->parked};
    ration_time since = {RATION_NEVER_US};
    const rn_place *place;

    for (size_t i = 0; i < 2; i++) {
        TAILQ_FOREACH (place, lists[i], watch) {
            if (place->lane_index == tenant)
                since = rn_time_min(since, place->lease->since);
        }
    }
    return since;
}

/* The bound of chapter 2, where asking keeps the whole guarantee. */
static void bound_holds(const watcher *w, rn_counter *counter)
{
    const rn_ceiling *ceiling = counter->u.share;
    const ration_share_rule *rule = &counter->limit->rule->share;

    for (uint32_t i = 0; i < ceiling->count && !rule->freeze_wanted; i++) {
        const ration_time since = waits_since(counter, i);

        for (rn_tree_node *node = rn_tree_first(&ceiling->tenants[i].loans); node != NULL; node = rn_tree_next(node)) {
            const rn_ceiling_hold *loan = rn_slice_of_loan(node)->hold;
            const rn_hold *hold = (const rn_hold *)(const void *)((const char *)loan - offsetof(rn_hold, share));

            seen.loans++;
            HOLDS(w->c, !rn_time_before(since, hold->granted_at));
            HOLDS(w->c, !rn_time_before(rn_time_add(since, rule->reclaim_horizon_us), loan->ends_at));
        }
    }
}

static void tenants_hold(const watcher *w, rn_counter *counter)
{
    const rn_lanes *lanes = counter->lanes;

    HOLDS(w->c, lanes != NULL);
    if (lanes == NULL)
        return;
    HOLDS(w->c, !lanes->chasing);
    HOLDS(w->c, counter->watcher_count == 0 || lanes->pool_seen <= rn_share_pool(counter, w->engine->now));
    if (rn_tree_first(&lanes->borrowers) != NULL)
        alarm_holds(w, counter, rn_share_pool_change(counter, w->engine->now));
    bound_holds(w, counter);
}

static void counter_holds(const watcher *w, rn_counter *counter)
{
    size_t places = 0;

    HOLDS(w->c, !counter->dirty && !counter->shrunk && !counter->growing);
    lane_holds(w, counter, &counter->lane, &places);
    for (size_t i = 0; counter->lanes != NULL && i < counter->lanes->count; i++) {
        const rn_lane *lane = counter->lanes->at[i];

        if (lane == NULL)
            continue;
        lane_holds(w, counter, lane, &places);
        if (counter->limit->kind->lanes == RN_LANES_TENANTS) {
            tenant_lane_holds(w, counter, lane);
        } else {
            seen.first_in_classes += rn_lane_first(lane) != NULL;
            first_holds(w, counter, lane);
        }
    }
    HOLDS(w->c, counter->place_count == places);
    HOLDS(w->c, counter->place_count <= counter->watcher_count);
    if (counter->limit->kind->lanes == RN_LANES_TENANTS) {
        tenants_hold(w, counter);
    } else if (counter->limit->kind->lanes == RN_LANES_ONE) {
        first_holds(w, counter, &counter->lane);
    }
}

/* Every probe is with somebody, or free to be given out; who waits at a circuit is in its list, and none is open. */
static void circuit_holds(const watcher *w, const rn_circuit *circuit)
{
    const rn_breaker *b = &circuit->breaker;
    const rn_lease *waiter;
    int64_t out = 0;
    size_t waits = 0;

    for (uint32_t i = 0; i < w->engine->leases.size; i++) {
        const rn_lease *lease = rn_leases_at(&w->engine->leases, i);

        if (lease->state == RN_LEASE_FREE || lease->route->circuit != circuit || lease->pass.generation == 0)
            continue;
        out += lease->pass.probe && lease->pass.generation == b->generation;
        waits += lease->state == RN_LEASE_WAITING;
    }
    TAILQ_FOREACH (waiter, &circuit->waiting, in_circuit) {
        HOLDS(w->c, waiter->state == RN_LEASE_WAITING && waiter->pass.generation != 0);
        waits--;
    }
    HOLDS(w->c, waits == 0);
    HOLDS(w->c, b->state != RATION_BREAKER_OPEN || TAILQ_EMPTY(&circuit->waiting));
    HOLDS(w->c, b->state != RATION_BREAKER_HALF_OPEN || b->permits + b->successes + out == b->spec->rule.probes);
    HOLDS(w->c, rn_heap_contains(&circuit->alarm.node) == rn_time_known(rn_breaker_next(b)));
    HOLDS(w->c, !rn_time_known(rn_breaker_next(b)) || circuit->alarm.at.us == rn_breaker_next(b).us);
    HOLDS(w->c, !rn_time_known(rn_breaker_next(b)) || circuit->alarm.at.us > w->engine->now.us);
    seen.half_open += b->state == RATION_BREAKER_HALF_OPEN;
}

static void look(void *ctx, ration_engine *engine)
{
    const rn_circuit *circuit;

    watcher *w = ctx;

    w->engine = engine;
    for (uint32_t i = 0; i < engine->leases.size; i++) {
        const rn_lease *lease = rn_leases_at(&engine->leases, i);

        if (lease->state == RN_LEASE_WAITING)
            waiter_holds(w, lease);
    }
    for (rn_map_node *node = rn_map_first(&engine->world->routes.counters); node != NULL; node = rn_map_next(node))
        counter_holds(w, (rn_counter *)(void *)((char *)node - offsetof(rn_counter, node)));
    TAILQ_FOREACH (circuit, &engine->world->routes.circuits.all, next)
        circuit_holds(w, circuit);
}

/* ---- the stream ---- */

static uint64_t stream_choose(void *ctx, uint64_t bound)
{
    return choose(((watcher *)ctx)->c, bound);
}

static void stream_hold(void *ctx, bool holds, const char *what, int line)
{
    property_hold(((watcher *)ctx)->c, holds, what, "tests/support/stream.c", line);
}

static void stream_note(void *ctx, const char *line)
{
    property_note(((watcher *)ctx)->c, "%s", line);
}

static void lanes_keep_their_word(choices *c, void *context)
{
    watcher w = {.c = c};
    const ration_sink sink = {.ctx = &w, .answer = on_answer, .event = on_event};
    const stream_driver driver = {
        .choose = stream_choose, .hold = stream_hold, .note = stream_note, .look = look, .sink = &sink, .ctx = &w};

    (void)context;
    (void)stream_play(&driver);
}

/* ---- counters that come and go ---- */

#define KEYS 6
#define ASKED 120

static const char *const by_x[] = {"var:x"};
static const char *const by_account[] = {"account"};
static const ration_tenant_share two[] = {{.name = "a", .weight = 1}, {.name = "b", .weight = 2}};
/* A ceiling for each x, of which there may be two, on top of one for all. */
static const ration_limit_rule few[] = {
    {.name = "each",
     .kind = RATION_KIND_SHARE,
     .counts = RATION_COUNTS_REQUESTS,
     .scope = by_x,
     .scope_count = 1,
     .max_keys = 2,
     .share = {.ceiling = 3 * RATION_UNIT,
               .tenants = two,
               .tenant_count = 2,
               .reclaim_horizon_us = 10,
               .idle_after_us = 20}},
    {.name = "all",
     .kind = RATION_KIND_SHARE,
     .counts = RATION_COUNTS_REQUESTS,
     .scope = by_account,
     .scope_count = 1,
     .share = {.follows = "learns", .tenants = two, .tenant_count = 2, .reclaim_horizon_us = 10, .idle_after_us = 20}},
    {.name = "learns",
     .kind = RATION_KIND_ADAPTIVE,
     .scope = by_account,
     .scope_count = 1,
     .adaptive = {.initial_limit = 4, .window_us = 30, .cooldown_us = 30}},
};

/* What is held at the ceilings of each x, as far as they are there. */
static void count_held(void *ctx, const ration_counter_report *r)
{
    if (strcmp(r->limit, "each") == 0)
        *(int64_t *)ctx += r->held;
}

static ration_engine *few_engine(const ration_sink *sink)
{
    static const ration_provider_rule provider = {.name = "p",
                                                  .limits = few,
                                                  .limit_count = 3,
                                                  .breaker = {.strategy = RATION_BREAKER_CONSECUTIVE,
                                                              .threshold = 2,
                                                              .backoff_initial_us = 40,
                                                              .scope = by_x,
                                                              .scope_count = 1}};
    static const ration_account_rule account = {.name = "acc", .provider = "p"};
    static const ration_rules rules = {
        .providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options options = {.rules = &rules, .sink = sink};
    ration_engine *engine = NULL;

    if (ration_engine_new(&options, ration_time_of(0), &engine, NULL) != RATION_OK)
        abort();
    return engine;
}

static ration_lease ask_one(choices *c, ration_engine *engine, ration_time now)
{
    static const char *const values[KEYS] = {"0", "1", "2", "3", "4", "5"};
    const ration_var var = {ration_text_of("x"), ration_text_of(values[choose(c, KEYS - 1)])};
    ration_request r = RATION_REQUEST_INIT;
    ration_decision d;

    r.account = ration_text_of("acc");
    r.tenant = ration_text_of(choose(c, 1) == 0 ? "a" : "b");
    r.vars = &var;
    r.var_count = 1;
    r.hold_us = (int64_t)choose(c, 12);
    r.wait_us = choose(c, 1) != 0 ? (int64_t)choose(c, 60) : 0;
    HOLDS(c, ration_engine_submit(engine, now, &r, &d) == RATION_OK);
    NOTE(c, "%" PRId64 " ask %s of %s for %" PRId64 ": %d %s", now.us, var.value.data, r.tenant.data, r.hold_us,
         (int)d.result, ration_reason_name(d.reason));
    seen.too_many_keys += d.reason == RATION_REASON_TOO_MANY_KEYS;
    return d.result == RATION_REFUSED ? (ration_lease){0, 0} : d.lease;
}

static void counters_come_and_go(choices *c, void *context)
{
    watcher w = {.c = c};
    const ration_sink sink = {.ctx = &w, .answer = on_answer, .event = on_event};
    ration_engine *engine = w.engine = few_engine(&sink);
    ration_lease leases[ASKED];
    ration_time now = {0};
    ration_event event;
    size_t count = 0;

    (void)context;
    while (choose(c, 200) != 0 && count < ASKED) {
        const ration_completion how = {choose(c, 3) == 0 ? RATION_OUTCOME_FAILURE : RATION_OUTCOME_SUCCESS,
                                       RATION_UNSET};
        int64_t held = 0;
        const ration_reporter reporter = {.ctx = &held, .counter = count_held};
        ration_totals totals;

        now.us += choose(c, 1) != 0 ? (int64_t)choose(c, 40) : 0;
        if (choose(c, 1) == 0) {
            leases[count++] = ask_one(c, engine, now);
        } else if (count > 0) {
            (void)ration_engine_release(engine, now, leases[choose(c, count - 1)], &how);
        }
        while (ration_engine_next_event(engine, &event)) {
        }
        look(&w, engine);
        HOLDS(c, ration_engine_report(engine, now, RATION_REPORT_STATS, &reporter) == RATION_OK);
        ration_engine_totals(engine, &totals);
        HOLDS(c, held == (int64_t)totals.held * RATION_UNIT);
        HOLDS(c, totals.counters <= 4);
    }
    ration_engine_free(engine);
}

static void keys(void **state)
{
    (void)state;
    property_check("keys", counters_come_and_go, NULL, 600);
    print_message("# %" PRIu64 " requests found no room for their key\n", seen.too_many_keys);
}

static void lanes(void **state)
{
    (void)state;
    property_check("lanes", lanes_keep_their_word, NULL, 400);
    print_message("# looked at: %" PRIu64 " waiters, of them %" PRIu64 " parked; %" PRIu64 " borrowers, %" PRIu64
                  " loans, %" PRIu64 " first of a class, %" PRIu64 " half-open circuits; %" PRIu64 " waiters granted\n",
                  seen.waiters, seen.parked, seen.borrowers, seen.loans, seen.first_in_classes, seen.half_open,
                  seen.granted_waiters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lanes), cmocka_unit_test(keys)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
