/* SPDX-License-Identifier: MIT */

/*
 * Waiters: who is looked at, who goes, who must be refused.
 *
 * Whoever changes a counter marks it. A mark puts the first of the waiters that keep a place there into the heap
 * `look`, ordered by waiting order, and remembers whether less is there than before. The pump then makes one change at
 * a time: first it refuses those for whom that has become true, then it looks at the first of `look`. Waiters that are
 * not first on some counter of their short set cannot go and are not looked at, so a wake costs O(limits of that
 * request), not O(waiters).
 *
 * A waiter that could take everything while a penalty runs is `parked`: it may be first nowhere, so it is looked at
 * when the penalty ends, and when a counter that it needs runs short (then its short set grows). To look at one is to
 * take it out of the lists of the parked first; so however often these are gone through, each is found there once.
 *
 * Those to be refused are found by walking a counter's watchers, but only when the bounds kept over them (largest
 * charge, nearest deadline) say that there may be one.
 *
 * Invariant, between calls: every waiter either has a counter in its short set that it cannot take from, or is parked.
 */

#include "core/engine.h"

#include <assert.h>

static rn_lease *lease_of_look(rn_heap_node *node)
{
    return node == NULL ? NULL : (rn_lease *)(void *)((char *)node - offsetof(rn_lease, look));
}

/* Room for every waiter was made when it came, so this cannot fail. */
static void look_push(ration_engine *engine, rn_lease *lease)
{
    if (!rn_heap_contains(&lease->look)) {
        const int err = rn_heap_push(&engine->look, &lease->look);

        assert(err == RATION_OK);
        (void)err;
    }
}

static void park(rn_lease *lease)
{
    if (lease->parked)
        return;
    lease->parked = true;
    TAILQ_INSERT_TAIL(&lease->route->provider->queue.parked, lease, in_parked);
    for (size_t i = 0; i < lease->place_count; i++) {
        rn_place *place = &lease->places[i];

        TAILQ_REMOVE(&place->counter->watchers, place, watch);
        TAILQ_INSERT_TAIL(&place->counter->parked, place, watch);
    }
}

static void unpark(rn_lease *lease)
{
    if (!lease->parked)
        return;
    lease->parked = false;
    TAILQ_REMOVE(&lease->route->provider->queue.parked, lease, in_parked);
    for (size_t i = 0; i < lease->place_count; i++) {
        rn_place *place = &lease->places[i];

        TAILQ_REMOVE(&place->counter->parked, place, watch);
        TAILQ_INSERT_TAIL(&place->counter->watchers, place, watch);
    }
}

/* Look at every parked waiter that needs the counter. */
static void counter_rouse(ration_engine *engine, rn_counter *counter)
{
    rn_place *place;

    while ((place = TAILQ_FIRST(&counter->parked)) != NULL) {
        unpark(place->lease);
        look_push(engine, place->lease);
    }
}

void rn_penalty_over(ration_engine *engine, rn_counter *counter)
{
    counter_rouse(engine, counter);
    rn_mark(engine, counter, false);
}

void rn_account_penalty_over(ration_engine *engine, rn_account *account)
{
    struct rn_lease_list *parked = &account->provider->queue.parked;
    rn_lease *lease;

    while ((lease = TAILQ_FIRST(parked)) != NULL) {
        unpark(lease);
        look_push(engine, lease);
    }
}

void rn_mark(ration_engine *engine, rn_counter *counter, bool shrunk)
{
    rn_heap_node *top = rn_heap_top(&counter->places);

    if (counter->watcher_count == 0)
        return;
    if (!counter->dirty) {
        counter->dirty = true;
        TAILQ_INSERT_TAIL(&engine->dirty, counter, in_dirty);
    }
    if (shrunk && !counter->shrunk) {
        counter->shrunk = true;
        TAILQ_INSERT_TAIL(&engine->shrunk, counter, in_shrunk);
    }
    if (top != NULL)
        look_push(engine, ((rn_place *)(void *)top)->lease);
}

/* It keeps its place on the counter from now on: those behind it who need the counter must know. */
static void place_keep(ration_engine *engine, rn_place *place)
{
    rn_counter *counter = place->counter;
    const int err = rn_heap_push(&counter->places, &place->node);

    assert(err == RATION_OK);
    (void)err;
    if (counter->places.size == 1 || rn_rank_before(&counter->places_last, &place->lease->rank))
        counter->places_last = place->lease->rank;
    counter->places_charge = rn_add(counter->places_charge, place->charge);
    counter_rouse(engine, counter);
    if (rn_heap_top(&counter->places) == &place->node)
        rn_mark(engine, counter, false);
}

static void place_leave(rn_place *place)
{
    rn_counter *counter = place->counter;

    if (!rn_heap_contains(&place->node))
        return;
    rn_heap_remove(&counter->places, &place->node);
    counter->places_charge = counter->places.size == 0 ? 0 : rn_sub(counter->places_charge, place->charge);
}

/* ---- coming and going ---- */

static int wait_reserve(ration_engine *engine, const rn_lease *lease)
{
    const size_t waiters = (size_t)engine->totals.waiting + 1;
    int err = rn_heap_reserve(&engine->look, waiters);

    if (err == RATION_OK)
        err = rn_heap_reserve(&engine->doomed, waiters);
    for (size_t i = 0; i < lease->place_count && err == RATION_OK; i++) {
        rn_counter *counter = lease->places[i].counter;

        err = rn_heap_reserve(&counter->places, counter->watcher_count + 1);
    }
    return err;
}

static void watch(ration_engine *engine, rn_lease *lease, rn_place *place)
{
    rn_counter *counter = place->counter;

    TAILQ_INSERT_TAIL(&counter->watchers, place, watch);
    counter->watcher_count++;
    counter->watch_charge_max = rn_max(counter->watch_charge_max, place->charge);
    counter->watch_deadline_min = rn_time_min(counter->watch_deadline_min, lease->deadline);
    if (rn_penalty_runs(&counter->penalty, engine->now))
        rn_alarm_arm(&engine->timers, &counter->penalty_timer, counter->penalty.until);
}

static void unwatch(ration_engine *engine, rn_place *place)
{
    rn_counter *counter = place->counter;

    TAILQ_REMOVE(&counter->watchers, place, watch);
    counter->watcher_count--;
    if (counter->watcher_count == 0) {
        rn_alarm_disarm(&engine->timers, &counter->wake);
        counter->watch_charge_max = 0;
        counter->watch_deadline_min.us = RATION_NEVER_US;
    }
}

int rn_wait(ration_engine *engine, rn_lease *lease)
{
    rn_account *account = lease->route->account;
    int err = wait_reserve(engine, lease);

    if (err == RATION_OK)
        err = rn_queue_enter(&lease->route->provider->queue, lease, lease->route->tenant);
    if (err != RATION_OK)
        return err;

    lease->state = RN_LEASE_WAITING;
    engine->totals.waiting++;
    rn_alarm_init(&lease->timer, RN_ALARM_DEADLINE);
    rn_alarm_arm(&engine->timers, &lease->timer, lease->deadline);
    if (rn_penalty_runs(&account->penalty, engine->now))
        rn_alarm_arm(&engine->timers, &account->penalty_timer, account->penalty.until);
    for (size_t i = 0; i < lease->place_count; i++)
        watch(engine, lease, &lease->places[i]);

    bool all = true;

    for (size_t i = 0; i < lease->place_count; i++) {
        if (!rn_place_can_take(engine, lease, &lease->places[i])) {
            place_keep(engine, &lease->places[i]);
            all = false;
        }
    }
    if (all)
        park(lease);
    return RATION_OK;
}

void rn_unwait(ration_engine *engine, rn_lease *lease, bool granted)
{
    unpark(lease);
    rn_heap_remove(&engine->look, &lease->look);
    rn_alarm_disarm(&engine->timers, &lease->timer);
    rn_queue_leave(&lease->route->provider->queue, lease, granted);
    engine->totals.waiting--;
    for (size_t i = 0; i < lease->place_count; i++) {
        rn_place *place = &lease->places[i];

        place_leave(place);
        unwatch(engine, place);
        rn_mark(engine, place->counter, false);
    }
}

void rn_waiter_drop(ration_engine *engine, rn_lease *lease)
{
    rn_unwait(engine, lease, false);
    rn_lease_drop(engine, lease);
}

void rn_waiter_refuse(ration_engine *engine, const rn_lease *lease, const rn_finding *finding)
{
    ration_event event = {
        .type = RATION_EVENT_REFUSED,
        .at = engine->now,
        .serial = lease->serial,
        .lease = rn_lease_handle(lease),
        .user = lease->user,
        .waited_us = engine->now.us - lease->since.us,
    };

    rn_decision_refuse(engine, finding, &event.decision);
    event.decision.serial = lease->serial;
    engine->totals.refused++;
    engine->totals.refusals[finding->reason]++;
    rn_event_emit(engine, &event, finding->counter);
}

/* ---- refusing those for whom it has become true ---- */

static void doom_if_true(ration_engine *engine, rn_lease *lease)
{
    if (lease->doomed || !rn_must_refuse(engine, lease))
        return;
    lease->doomed = true;
    rn_heap_remove(&engine->look, &lease->look);

    const int err = rn_heap_push(&engine->doomed, &lease->look);

    assert(err == RATION_OK);
    (void)err;
}

static void places_doom(ration_engine *engine, rn_counter *counter, const struct rn_place_list *places)
{
    rn_place *place;

    TAILQ_FOREACH (place, places, watch) {
        counter->watch_charge_max = rn_max(counter->watch_charge_max, place->charge);
        counter->watch_deadline_min = rn_time_min(counter->watch_deadline_min, place->lease->deadline);
        doom_if_true(engine, place->lease);
    }
}

static void counter_doom(ration_engine *engine, rn_counter *counter)
{
    counter->watch_charge_max = 0;
    counter->watch_deadline_min.us = RATION_NEVER_US;
    places_doom(engine, counter, &counter->watchers);
    places_doom(engine, counter, &counter->parked);
}

/* Less may be there. Asked for the largest charge and the nearest deadline: if that is still fine, all are. */
static void counter_shrunk(ration_engine *engine, rn_counter *counter)
{
    const rn_kind *kind = counter->limit->kind;
    const rn_ask ask = {
        .charge = counter->watch_charge_max,
        .deadline = counter->watch_deadline_min,
        .may_wait = true,
    };
    rn_verdict verdict;

    if (counter->watcher_count == 0 || counter->limit->rule->enforce != RATION_ENFORCE_ON)
        return;
    kind->check(counter, engine->now, &ask, &verdict);

    const bool late = kind->timed && verdict.fit == RN_FIT_SHORT && rn_time_before(ask.deadline, verdict.at);
    const bool paused =
        rn_penalty_runs(&counter->penalty, engine->now) && rn_time_before(ask.deadline, counter->penalty.until);

    if (verdict.fit == RN_FIT_REFUSED || late || paused)
        counter_doom(engine, counter);
    if (verdict.fit != RN_FIT_NOW)
        counter_rouse(engine, counter);
}

static void refuse_doomed(ration_engine *engine)
{
    rn_counter *counter;
    rn_lease *lease;

    while ((counter = TAILQ_FIRST(&engine->shrunk)) != NULL) {
        TAILQ_REMOVE(&engine->shrunk, counter, in_shrunk);
        counter->shrunk = false;
        counter_shrunk(engine, counter);
    }
    while ((lease = lease_of_look(rn_heap_pop(&engine->doomed))) != NULL) {
        rn_finding finding;

        rn_examine(engine, lease, RN_STAGE_WAITING, &finding);
        rn_waiter_refuse(engine, lease, &finding);
        rn_waiter_drop(engine, lease);
    }
}

void rn_account_penalized(ration_engine *engine, rn_account *account)
{
    rn_queue *queue = &account->provider->queue;

    if (queue->count == 0)
        return;
    rn_alarm_arm(&engine->timers, &account->penalty_timer, account->penalty.until);
    for (size_t i = 0; i < RN_PRIORITIES; i++) {
        for (rn_map_node *node = rn_map_first(&queue->of[i].lines); node != NULL; node = rn_map_next(node)) {
            rn_lease *lease;

            TAILQ_FOREACH (lease, &((rn_line *)(void *)node)->waiting, in_line)
                doom_if_true(engine, lease);
        }
    }
}

/* ---- looking ---- */

/* Add to the short set what it cannot take from, as the rule says: only while it could take from everything in the
 * set. */
static bool grow(ration_engine *engine, rn_lease *lease)
{
    bool grown = false;

    for (size_t i = 0; i < lease->place_count; i++) {
        rn_place *place = &lease->places[i];

        if (!rn_heap_contains(&place->node) && !rn_place_can_take(engine, lease, place)) {
            place_keep(engine, place);
            grown = true;
        }
    }
    return grown;
}

static void look_at(ration_engine *engine, rn_lease *lease)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];

        if (rn_heap_contains(&place->node) && !rn_place_can_take(engine, lease, place)) {
            unpark(lease);
            return;
        }
    }
    if (grow(engine, lease)) {
        unpark(lease);
    } else if (rn_is_penalized(engine, lease)) {
        park(lease);
    } else {
        rn_grant(engine, lease);
    }
}

/* When the first waiter of the counter can take by time alone. */
static void wake_arm(ration_engine *engine, rn_counter *counter)
{
    const rn_heap_node *top = rn_heap_top(&counter->places);
    ration_time at = {RATION_NEVER_US};

    if (top != NULL) {
        const rn_place *place = (const rn_place *)(const void *)top;

        if (!rn_place_can_take(engine, place->lease, place)) {
            const rn_ask ask = rn_ask_of(place->lease, place);

            at = counter->limit->kind->next_change(counter, engine->now, &ask);
            /* An instant that has passed would be looked at for ever. */
            if (at.us <= engine->now.us)
                at = rn_time_add(engine->now, 1);
        }
    }
    rn_alarm_arm(&engine->timers, &counter->wake, at);
}

void rn_pump(ration_engine *engine)
{
    rn_counter *counter;

    for (;;) {
        refuse_doomed(engine);

        rn_lease *lease = lease_of_look(rn_heap_pop(&engine->look));

        if (lease == NULL)
            break;
        look_at(engine, lease);
    }
    while ((counter = TAILQ_FIRST(&engine->dirty)) != NULL) {
        TAILQ_REMOVE(&engine->dirty, counter, in_dirty);
        counter->dirty = false;
        wake_arm(engine, counter);
    }
}
