/* SPDX-License-Identifier: MIT */
/*
 * Lanes from inside, after every call of a random stream (support/stream.h) and at every grant.
 *
 * Nobody waits who could go; nobody is overtaken in its lane; no adaptive limit is passed, nor what it keeps for classes;
 * while a tenant waits nothing of its units is lent anew, and what is on loan ends within the horizon. And what makes
 * that cheap is right: every borrower is where it can be found, nothing that time brings is without its alarm.
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
    uint64_t waiters, borrowers, loans, parked, first_in_classes, granted_waiters;
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
    if (counter->limit->kind->lanes == RN_LANES_TENANTS)
        tenants_hold(w, counter);
    else if (counter->limit->kind->lanes == RN_LANES_ONE)
        first_holds(w, counter, &counter->lane);
}

static void look(void *ctx, ration_engine *engine)
{
    watcher *w = ctx;

    w->engine = engine;
    for (uint32_t i = 0; i < engine->leases.size; i++) {
        const rn_lease *lease = rn_leases_at(&engine->leases, i);

        if (lease->state == RN_LEASE_WAITING)
            waiter_holds(w, lease);
    }
    for (rn_map_node *node = rn_map_first(&engine->routes.counters); node != NULL; node = rn_map_next(node))
        counter_holds(w, (rn_counter *)(void *)((char *)node - offsetof(rn_counter, node)));
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

static void lanes(void **state)
{
    (void)state;
    property_check("lanes", lanes_keep_their_word, NULL, 400);
    print_message("# looked at: %" PRIu64 " waiters, of them %" PRIu64 " parked; %" PRIu64 " borrowers, %" PRIu64
                  " loans, %" PRIu64 " first of a class; %" PRIu64 " waiters granted\n",
                  seen.waiters, seen.parked, seen.borrowers, seen.loans, seen.first_in_classes, seen.granted_waiters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lanes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
