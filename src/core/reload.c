/* SPDX-License-Identifier: MIT */
/*
 * Other rules for a running engine: all of them, or none. Decision 0017.
 *
 * A second world is built beside the one that runs: the new book, a counter for each one that goes on, a route for each
 * lease and waiter, places for them, room in lanes and queues. All that can fail happens there, and touches nothing of
 * the first world but the marks `successor` and `heir`. Then comes the change, which cannot fail and allocates nothing:
 * waiters leave their places, counters hand over their state, leases their holds, the worlds change places, and the
 * waiters come back in their order, as if they had all come at this instant, one behind the other.
 *
 * The old world is kept until nobody can name it: events that have not been taken yet do.
 *
 * Invariant: between calls no `successor` or `heir` is of any meaning; each reload begins by setting them anew.
 */
#include <ration/operate.h>

#include <assert.h>

#include "base/mem.h"
#include "core/engine.h"

/* A lease or waiter on its way. */
typedef struct move {
    rn_lease *lease;
    rn_route *route; /* NULL: it must be refused with `reason` */
    ration_reason reason;
    rn_counter *named; /* then: that does not know its tenant or class; NULL: nothing is named */
    rn_place *places;
    size_t count;
    uint64_t order; /* of a waiter's deadline among those of its instant */
} move;

typedef struct reload {
    ration_engine *engine;
    rn_world *from;
    rn_world *to;
    move *moves;
    size_t count;
    ration_var *vars; /* of the request at hand */
} reload;

/* ---- worlds ---- */

void rn_world_free(ration_engine *engine, rn_world *world)
{
    const size_t accounts = world->book.account_count;

    if (world->routes.mem != NULL)
        rn_routes_fini(&world->routes);
    engine->timers_needed -= accounts;
    rn_book_fini(&world->book);
    rn_mem_free(&engine->mem, world);
}

void rn_past_free(ration_engine *engine)
{
    rn_world *world;

    while ((world = SLIST_FIRST(&engine->past)) != NULL) {
        SLIST_REMOVE_HEAD(&engine->past, older);
        rn_world_free(engine, world);
    }
}

static int world_make(reload *r, const ration_rules *rules, ration_fault *fault)
{
    ration_engine *engine = r->engine;
    rn_world *world = rn_mem_zalloc(&engine->mem, 1, sizeof *world);

    if (world == NULL)
        return RATION_ERR_NOMEM;

    int err = rn_book_init(&world->book, &engine->mem, rules, fault);

    if (err != RATION_OK) {
        rn_mem_free(&engine->mem, world);
        return err;
    }
    r->to = world;
    engine->timers_needed += world->book.account_count;
    err = rn_alarms_reserve(&engine->timers, engine->timers_needed);
    if (err == RATION_OK)
        err = rn_routes_init(&world->routes, &engine->mem, &world->book, &engine->timers, &engine->timers_needed);
    world->routes.started_at = r->from->routes.started_at;
    world->routes.unclean = r->from->routes.unclean;
    world->routes.lost_at = r->from->routes.lost_at;
    return err;
}

/* ---- counters and circuits that go on ---- */

static rn_counter *counter_of(rn_map_node *node)
{
    return (rn_counter *)(void *)((char *)node - offsetof(rn_counter, node));
}

static rn_map_node *counters_first(const rn_world *world)
{
    return rn_map_first(&world->routes.counters);
}

/* The limit that a key of an old one leads to now; NULL: none that means the same. */
static rn_limit *limit_like(const reload *r, const rn_limit *was, ration_text key)
{
    const rn_book *book = &r->to->book;
    const rn_provider *provider = rn_book_provider(book, ration_text_of(was->provider));
    rn_limit *limit = provider == NULL ? NULL : rn_book_limit(book, provider, ration_text_of(was->rule->name), key);

    return limit != NULL && rn_limit_is_like(limit, was) ? limit : NULL;
}

static int counters_make(const reload *r)
{
    int err = RATION_OK;

    for (rn_map_node *node = counters_first(r->from); node != NULL; node = rn_map_next(node))
        counter_of(node)->successor = NULL;
    for (rn_map_node *node = counters_first(r->from); node != NULL; node = rn_map_next(node)) {
        rn_counter *was = counter_of(node);
        rn_limit *limit = limit_like(r, was->limit, was->key);

        if (err == RATION_OK && limit != NULL && rn_routes_counter(&r->to->routes, limit, was->key) == NULL)
            err = rn_routes_make(&r->to->routes, r->engine->now, limit, was->key, &was->successor);
        /* It looks like a fresh one, and must not make room for another before it has been given its state. */
        if (was->successor != NULL)
            was->successor->pins++;
    }
    for (rn_map_node *node = counters_first(r->to); node != NULL; node = rn_map_next(node))
        rn_routes_follow(&r->to->routes, r->engine->now, counter_of(node));
    return err;
}

/* Whose health checks a circuit's are from now on: those of the account that they were, else of any. */
static const rn_account *circuit_account(const reload *r, const rn_circuit *was, const rn_provider *provider)
{
    const rn_account *account = rn_book_account(&r->to->book, was->account->name);

    for (size_t i = 0; i < r->to->book.account_count && (account == NULL || account->provider != provider); i++)
        account = &r->to->book.accounts[i];
    return account != NULL && account->provider == provider ? account : NULL;
}

static int circuits_make(const reload *r)
{
    rn_circuit *was;
    int err = RATION_OK;

    TAILQ_FOREACH (was, &r->from->routes.circuits.all, next) {
        const rn_provider *provider = rn_book_provider(&r->to->book, was->provider->name);
        const rn_account *account =
            provider == NULL || provider->circuit == NULL ? NULL : circuit_account(r, was, provider);
        rn_builder name;

        was->successor = NULL;
        if (err != RATION_OK || account == NULL ||
            !rn_scope_is_like(&provider->circuit->scope, &was->provider->circuit->scope))
            continue;
        rn_builder_init(&name, r->to->routes.scratch, was->name_size + 1);
        err = rn_circuits_make(&r->to->routes.circuits, r->engine->now, account, was->key, &name, &was->successor);
        if (was->successor != NULL)
            was->successor->pins++;
    }
    return err;
}

/* The limit of a number; accounts that replace it have one of their own. */
static const rn_limit *limit_of_number(const rn_book *book, uint32_t number)
{
    for (size_t i = 0; i < book->provider_count; i++) {
        for (size_t k = 0; k < book->providers[i].limit_count; k++) {
            if (book->providers[i].limits[k]->uid == number)
                return book->providers[i].limits[k];
        }
    }
    for (size_t i = 0; i < book->account_count; i++) {
        for (size_t k = 0; k < book->accounts[i].provider->limit_count; k++) {
            if (book->accounts[i].limits[k]->uid == number)
                return book->accounts[i].limits[k];
        }
    }
    return NULL;
}

/* What was kept and nobody has asked for yet waits on, under the new numbers. */
static bool kept_number(void *ctx, bool circuits, uint32_t was, ration_text key, uint32_t *out)
{
    const reload *r = ctx;

    if (circuits) {
        const rn_provider *provider = rn_book_provider(&r->to->book, r->from->book.providers[was].name);

        if (provider != NULL)
            *out = provider->index;
        return provider != NULL;
    }

    const rn_limit *old = limit_of_number(&r->from->book, was);
    const rn_limit *limit = old == NULL ? NULL : limit_like(r, old, key);

    if (limit != NULL)
        *out = limit->uid;
    return limit != NULL;
}

/* ---- leases and waiters ---- */

static int places_make(const reload *r, move *m, size_t count)
{
    m->count = count;
    m->places = rn_mem_zalloc(&r->engine->mem, count > 0 ? count : 1, sizeof *m->places);
    return m->places == NULL ? RATION_ERR_NOMEM : RATION_OK;
}

static void place_init(rn_place *place, rn_lease *lease, rn_counter *counter, uint32_t lane_index)
{
    place->lease = lease;
    place->counter = counter;
    place->lane_index = lane_index;
    place->lane = rn_lane_at(counter, lane_index);
    rn_heap_node_init(&place->node);
    rn_heap_node_init(&place->by_charge);
}

/* A lease holds what it held of the counters that go on, and nothing of new ones. */
static int held_make(const reload *r, move *m)
{
    rn_lease *lease = m->lease;
    rn_route *was = lease->route;
    size_t count = 0;

    if (was->successor == NULL) {
        rn_account *account = rn_book_ghost(&r->to->book, was->provider->name, was->account->name);
        rn_circuit *circuit = was->circuit != NULL ? was->circuit->successor : NULL;

        rn_route *bare = NULL;

        if (account == NULL || rn_routes_bare(&r->to->routes, account, circuit, was, &bare) != RATION_OK ||
            bare == NULL)
            return RATION_ERR_NOMEM;
        was->successor = bare;
    }
    m->route = was->successor;
    m->route->refs++;
    for (size_t i = 0; i < lease->place_count; i++)
        count += lease->places[i].counter->successor != NULL ? 1 : 0;
    if (places_make(r, m, count) != RATION_OK)
        return RATION_ERR_NOMEM;
    for (size_t i = 0, k = 0; i < lease->place_count; i++) {
        rn_place *place = &lease->places[i];

        place->heir = place->counter->successor != NULL ? &m->places[k++] : NULL;
        if (place->heir != NULL)
            place->heir->charge = place->charge;
    }
    return RATION_OK;
}

/* Room for a waiter at each counter and in the queue. Lanes count who has asked for room as who waits, for now. */
static int room_make(const move *m)
{
    for (size_t i = 0; i < m->count; i++) {
        const rn_place *place = &m->places[i];
        rn_lane *lane;

        if (place->lane_index == RN_LANE_UNKNOWN)
            continue;
        if (rn_lane_reserve(place->counter, place->lane_index, &lane) != RATION_OK)
            return RATION_ERR_NOMEM;
        lane->waiters++;
    }
    return rn_queue_reserve(&m->route->provider->queue, m->lease->rank.priority, m->route->tenant);
}

/* A waiter keeps the places that it has on counters that go on. */
static void places_keep(const move *m)
{
    for (size_t i = 0; i < m->lease->place_count; i++) {
        rn_place *was = &m->lease->places[i];

        for (size_t k = 0; k < m->count && rn_heap_contains(&was->node); k++) {
            if (m->places[k].counter == was->counter->successor)
                m->places[k].heir = was;
        }
    }
}

/* Is there a limit that does not know its tenant or class any more? No lane is there for it to wait in. */
static bool is_unknown_now(const reload *r, move *m)
{
    for (size_t i = 0; i < m->count; i++) {
        const rn_place *place = &m->places[i];
        const rn_ask ask = rn_ask_of(m->lease, place);
        rn_verdict verdict;

        if (place->lane_index != RN_LANE_UNKNOWN || !rn_place_binds(place))
            continue;
        place->counter->limit->kind->check(place->counter, r->engine->now, &ask, &verdict);
        if (verdict.fit == RN_FIT_REFUSED) {
            m->reason = verdict.reason;
            m->named = place->counter;
            return true;
        }
    }
    return false;
}

/* A waiter asks anew by its names. */
static int waiting_make(const reload *r, move *m)
{
    ration_request request = RATION_REQUEST_INIT;
    const rn_limit *limit;

    rn_route_request(m->lease->route, &request, r->vars);

    const int err = rn_routes_find(&r->to->routes, r->engine->now, &request, &m->route, &m->reason, &limit);

    /* Names that lead to a longer key than there may be find no room for it. */
    if (err == RATION_ERR_INVALID)
        m->reason = RATION_REASON_TOO_MANY_KEYS;
    if (err == RATION_ERR_NOMEM || m->route == NULL)
        return err == RATION_ERR_NOMEM ? err : RATION_OK;
    if (places_make(r, m, m->route->count) != RATION_OK)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < m->count; i++) {
        rn_counter *counter = m->route->links[i].counter;

        place_init(&m->places[i], m->lease, counter, m->route->links[i].lane);
        m->places[i].charge = counter->limit->rule->counts == RATION_COUNTS_COST ? m->lease->cost : RATION_UNIT;
    }
    if (is_unknown_now(r, m)) {
        rn_route_release(&r->to->routes, m->route);
        m->route = NULL;
        return RATION_OK;
    }
    places_keep(m);
    return room_make(m);
}

static bool is_waiting(const move *m)
{
    return m->lease->state == RN_LEASE_WAITING;
}

static int moves_make(reload *r)
{
    const rn_leases *leases = &r->engine->leases;
    rn_route *route;

    for (rn_map_node *node = rn_map_first(&r->from->routes.by_names); node != NULL; node = rn_map_next(node))
        ((rn_route *)(void *)node)->successor = NULL;
    TAILQ_FOREACH (route, &r->from->routes.bare, idle)
        route->successor = NULL;
    r->moves = rn_mem_zalloc(&r->engine->mem, (size_t)leases->used + 1, sizeof *r->moves);
    r->vars = rn_mem_zalloc(&r->engine->mem, RN_REQUEST_VARS_MAX, sizeof *r->vars);
    if (r->moves == NULL || r->vars == NULL)
        return RATION_ERR_NOMEM;
    for (uint32_t i = 0; i < leases->size; i++) {
        rn_lease *lease = rn_leases_at(leases, i);

        if (lease->state == RN_LEASE_FREE)
            continue;

        move *m = &r->moves[r->count++];

        m->lease = lease;

        const int err = is_waiting(m) ? waiting_make(r, m) : held_make(r, m);

        if (err != RATION_OK)
            return err;
    }
    for (size_t i = 0; i < r->count; i++) {
        for (size_t k = 0; is_waiting(&r->moves[i]) && k < r->moves[i].count; k++) {
            const rn_place *place = &r->moves[i].places[k];
            rn_lane *lane = rn_lane_at(place->counter, place->lane_index);

            if (lane != NULL)
                lane->waiters = 0;
        }
    }
    return RATION_OK;
}

static int build(reload *r, const ration_rules *rules, ration_fault *fault)
{
    int err = world_make(r, rules, fault);

    if (err == RATION_OK)
        err = rn_kept_copy(&r->to->routes.kept, &r->from->routes.kept, kept_number, r);
    if (err == RATION_OK)
        err = counters_make(r);
    if (err == RATION_OK)
        err = circuits_make(r);
    if (err == RATION_OK)
        err = moves_make(r);
    /* A refusal, or a grant and a loss, of each who waits, and a loss of each lease. */
    if (err == RATION_OK)
        err = rn_events_reserve(&r->engine->events, r->engine->events.count + rn_events_owed(r->engine));
    return err;
}

static void unbuild(reload *r)
{
    for (size_t i = 0; i < r->count; i++)
        rn_mem_free(&r->engine->mem, r->moves[i].places);
    if (r->to != NULL)
        rn_world_free(r->engine, r->to);
}

/* ---- the change: nothing of it can fail ---- */

static rn_lease *lease_of_look(rn_heap_node *node)
{
    return node == NULL ? NULL : (rn_lease *)(void *)((char *)node - offsetof(rn_lease, look));
}

/* There is room for all who wait. */
static void sort_in(ration_engine *engine, rn_lease *lease)
{
    rn_heap_remove(&engine->look, &lease->look);

    const int err = rn_heap_push(&engine->doomed, &lease->look);

    assert(err == RATION_OK);
    (void)err;
}

static move *move_of(const reload *r, const rn_lease *lease)
{
    size_t low = 0;
    size_t high = r->count;

    /* By growing index, and it is there. */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (r->moves[middle].lease->index <= lease->index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &r->moves[low];
}

/* Whose names lead nowhere any more, in waiting order. The old world still stands. */
static void refuse_the_lost(reload *r)
{
    ration_engine *engine = r->engine;
    rn_lease *lease;
    size_t kept = 0;

    for (size_t i = 0; i < r->count; i++) {
        if (r->moves[i].route == NULL)
            sort_in(engine, r->moves[i].lease);
    }
    while ((lease = lease_of_look(rn_heap_pop(&engine->doomed))) != NULL) {
        const move *m = move_of(r, lease);
        const rn_finding finding = {
            .reason = m->reason, .counter = m->named, .retry_at = {RATION_NEVER_US}, .facts = RN_NO_FACTS};

        rn_mem_free(&engine->mem, m->places);

        rn_waiter_refuse(engine, lease, &finding);
        rn_waiter_drop(engine, lease);
    }
    for (size_t i = 0; i < r->count; i++) {
        if (r->moves[i].route != NULL)
            r->moves[kept++] = r->moves[i];
    }
    r->count = kept;
}

/* The order among those who wait goes on. */
static void queues_carry(const reload *r)
{
    for (size_t i = 0; i < r->to->book.provider_count; i++) {
        rn_provider *provider = &r->to->book.providers[i];
        const rn_provider *was = rn_book_provider(&r->from->book, provider->name);

        for (size_t p = 0; was != NULL && p < RN_PRIORITIES; p++) {
            if (!provider->queue.fifo)
                provider->queue.of[p].virtual_time = was->queue.of[p].virtual_time;
        }
    }
}

static uint64_t throttled_of(const rn_provider *provider, const char *limit)
{
    for (size_t i = 0; i < provider->limit_count; i++) {
        if (rn_text_is(ration_text_of(limit), provider->rule.limits[i].name))
            return provider->throttled[i];
    }
    return 0;
}

/* What goes by a limit's name goes on under it, whatever the limit is now. */
static void throttled_carry(const reload *r)
{
    for (size_t i = 0; i < r->to->book.provider_count; i++) {
        const rn_provider *provider = &r->to->book.providers[i];
        const rn_provider *was = rn_book_provider(&r->from->book, provider->name);

        if (was == NULL)
            continue;
        provider->throttled[provider->limit_count] = was->throttled[was->limit_count];
        for (size_t k = 0; k < provider->limit_count; k++)
            provider->throttled[k] = throttled_of(was, provider->rule.limits[k].name);
    }
}

/* All who wait leave the old world; nobody is told. A probe that leads through another circuit now goes back. */
static void waiters_leave(const reload *r)
{
    ration_engine *engine = r->engine;

    for (size_t i = 0; i < r->count; i++) {
        move *m = &r->moves[i];
        const rn_circuit *was = m->lease->route->circuit;

        if (!is_waiting(m))
            continue;
        m->order = m->lease->timer.order;
        rn_unwait(engine, m->lease, false);
        if (was != NULL && was->successor != m->route->circuit)
            rn_circuit_leave(engine, m->lease);
    }
    while (rn_heap_pop(&engine->look) != NULL) {
    }
    TAILQ_INIT(&engine->dirty);
    TAILQ_INIT(&engine->shrunk);
    TAILQ_INIT(&engine->growing);
    TAILQ_INIT(&engine->changed);
    TAILQ_INIT(&engine->given);
    for (size_t i = 0; i < sizeof engine->needy / sizeof engine->needy[0]; i++)
        engine->needy[i] = 0;
}

static void timers_disarm(const reload *r)
{
    rn_alarms *timers = &r->engine->timers;
    rn_circuit *circuit;

    for (rn_map_node *node = counters_first(r->from); node != NULL; node = rn_map_next(node)) {
        rn_alarm_disarm(timers, &counter_of(node)->wake);
        rn_alarm_disarm(timers, &counter_of(node)->penalty_timer);
    }
    TAILQ_FOREACH (circuit, &r->from->routes.circuits.all, next)
        rn_alarm_disarm(timers, &circuit->alarm);
    for (size_t i = 0; i < r->from->book.account_count; i++)
        rn_alarm_disarm(timers, &r->from->book.accounts[i].penalty_timer);
}

static void counter_carry(const reload *r, rn_counter *was)
{
    ration_engine *engine = r->engine;
    rn_counter *counter = was->successor;
    rn_hold *hold;

    counter->pins--;
    counter->penalty = was->penalty;
    counter->paused = was->paused;
    counter->was_paused = was->was_paused;
    counter->shadowed = was->shadowed;
    counter->lost_at = was->lost_at;
    counter->unclean = was->unclean;
    counter->limit->kind->carry(counter, engine->now, was);
    TAILQ_FOREACH (hold, &was->holds, next) {
        const rn_place *place = (const rn_place *)(const void *)((char *)hold - offsetof(rn_place, hold));
        rn_place *heir = place->heir;

        heir->hold = *hold;
        heir->hold.counter = counter;
        counter->limit->kind->carry_hold(counter, was, hold, &heir->hold);
        TAILQ_INSERT_TAIL(&counter->holds, &heir->hold, next);
        place_init(heir, place->lease, counter, counter->lanes == NULL ? 0 : heir->hold.lane);
    }
    if (was->given && rn_limit_is_strict(counter->limit)) {
        counter->given = true;
        TAILQ_INSERT_TAIL(&engine->given, counter, in_given);
    }
}

static void accounts_carry(const reload *r)
{
    for (size_t i = 0; i < r->to->book.account_count; i++) {
        rn_account *account = &r->to->book.accounts[i];
        const rn_account *was = rn_book_account(&r->from->book, account->name);

        if (was == NULL || !rn_text_eq(was->provider->name, account->provider->name))
            continue;
        account->penalty = was->penalty;
        account->changed = account->penalty.any;
    }
}

static void circuits_carry(const reload *r)
{
    rn_circuit *was;

    TAILQ_FOREACH (was, &r->from->routes.circuits.all, next) {
        if (was->successor == NULL)
            continue;
        rn_breaker_carry(&was->successor->breaker, r->engine->now, &was->breaker);
        was->successor->pins--;
        was->successor->changed = true;
        rn_alarm_arm(&r->engine->timers, &was->successor->alarm, rn_breaker_next(&was->successor->breaker));
        rn_alarm_reorder(&r->engine->timers, &was->successor->alarm, was->alarm.order);
    }
}

/* Leases and waiters stand in the new world. */
static void moves_carry(const reload *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const move *m = &r->moves[i];
        rn_lease *lease = m->lease;
        const rn_route *was = lease->route;

        if (was->circuit == NULL || was->circuit->successor == NULL || was->circuit->successor != m->route->circuit)
            lease->pass = (rn_breaker_pass){0};
        if (is_waiting(m) && !rn_text_eq(was->provider->name, m->route->provider->name))
            lease->rank.tag = UINT64_MAX; /* of another queue */
        rn_mem_free(&r->engine->mem, lease->places);
        lease->places = m->places;
        lease->place_count = m->count;
        lease->place_capacity = m->count > 0 ? m->count : 1;
        lease->route = m->route;
    }
}

static void worlds_change(const reload *r)
{
    ration_engine *engine = r->engine;

    engine->world = r->to;
    SLIST_INSERT_HEAD(&engine->past, r->from, older);
    engine->leases.max = (uint32_t)r->to->book.max_leases;
    engine->keeps = engine->keeps || r->to->book.strict;
    for (rn_map_node *node = counters_first(r->from); node != NULL; node = rn_map_next(node)) {
        rn_counter *was = counter_of(node);
        rn_counter *counter = was->successor;
        const rn_kind *kind = was->limit->kind;
        rn_counter *follower;

        if (counter == NULL)
            continue;
        if (kind->level != NULL) {
            TAILQ_FOREACH (follower, &counter->lanes->followers, in_followers)
                rn_share_resize(follower, engine->now, kind->level(counter));
            rn_level_moved(engine, counter, kind->level(was), "the rules have changed");
        }
        rn_keep(engine, counter);
    }
}

/* One comes back. Room was made for it. */
static void waiter_return(ration_engine *engine, rn_lease *lease)
{
    const rn_route *route = lease->route;
    rn_queue *queue = &route->provider->queue;

    if (queue->fifo) {
        lease->rank.tag = 0;
    } else if (lease->rank.tag == UINT64_MAX) {
        lease->rank.tag = rn_queue_tag(queue, route->tenant, lease->rank.priority, lease->cost, route->weight);
    }
    if (lease->pass.generation == 0 && route->circuit != NULL && rn_breaker_lets(&route->circuit->breaker))
        rn_circuit_enter(engine, lease);

    const int err = rn_wait(engine, lease);

    assert(err == RATION_OK);
    (void)err;
}

static void waiters_return(const reload *r)
{
    ration_engine *engine = r->engine;
    rn_lease *lease;

    for (size_t i = 0; i < r->count; i++) {
        if (is_waiting(&r->moves[i]))
            sort_in(engine, r->moves[i].lease);
    }
    while ((lease = lease_of_look(rn_heap_pop(&engine->doomed))) != NULL)
        waiter_return(engine, lease);
    for (size_t i = 0; i < r->to->book.provider_count; i++) {
        rn_queue *queue = &r->to->book.providers[i].queue;

        for (size_t p = 0; p < RN_PRIORITIES; p++)
            queue->of[p].virtual_time = queue->of[p].count > 0 ? queue->of[p].virtual_time : 0;
    }
    for (size_t i = 0; i < r->count; i++) {
        const move *m = &r->moves[i];

        if (!is_waiting(m))
            continue;
        rn_alarm_reorder(&engine->timers, &m->lease->timer, m->order);
        rn_doom(engine, m->lease);
        rn_look_again(engine, m->lease);
        for (size_t k = 0; k < m->count; k++)
            rn_mark(engine, m->places[k].counter, true);
    }
}

static void change(reload *r)
{
    refuse_the_lost(r);
    queues_carry(r);
    throttled_carry(r);
    waiters_leave(r);
    timers_disarm(r);
    for (rn_map_node *node = counters_first(r->from); node != NULL; node = rn_map_next(node)) {
        if (counter_of(node)->successor != NULL)
            counter_carry(r, counter_of(node));
    }
    accounts_carry(r);
    circuits_carry(r);
    moves_carry(r);
    worlds_change(r);
    waiters_return(r);
    for (rn_map_node *node = counters_first(r->to); node != NULL; node = rn_map_next(node))
        rn_strict_changed(r->engine, counter_of(node));
}

int ration_engine_reload(ration_engine *engine, ration_time now, const ration_rules *rules, ration_fault *fault)
{
    if (engine == NULL || rules == NULL || !rn_time_is_valid(now))
        return RATION_ERR_INVALID;

    const ration_call call = {.op = RATION_OP_RELOAD, .at = rn_clock_clamp(engine, now), .rules = rules};

    rn_sink_call(engine, &call);
    rn_catch_up(engine, call.at);

    reload r = {.engine = engine, .from = engine->world};
    const int err = build(&r, rules, fault);

    rn_sink_answer(engine, &call, err, NULL);
    if (err == RATION_OK) {
        change(&r);
    } else {
        unbuild(&r);
    }
    rn_mem_free(&engine->mem, r.moves);
    rn_mem_free(&engine->mem, r.vars);
    rn_pump(engine);
    return err;
}
