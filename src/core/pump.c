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

void rn_look_again(ration_engine *engine, rn_lease *lease)
{
    unpark(lease);
    look_push(engine, lease);
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

/* ---- marks ---- */

static void first_look(ration_engine *engine, const rn_lane *lane)
{
    const rn_place *first = lane == NULL ? NULL : rn_lane_first(lane);

    if (first != NULL)
        look_push(engine, first->lease);
}

/* The first of a tenant's lane, what it would have to borrow, or both may have changed. */
static void lane_borrow(rn_lane *lane)
{
    const rn_place *first = rn_lane_first(lane);
    int64_t need = 0;

    if (first != NULL) {
        const rn_ask ask = rn_ask_of(first->lease, first);

        need = rn_share_need(lane->counter, &ask);
    }
    rn_lane_borrows(lane, need);
}

/* Look at the next of the borrowers after `after` that the pool would do for; the chase ends when there is none. */
static void chase_on(ration_engine *engine, rn_counter *counter, const rn_rank *after)
{
    rn_lanes *lanes = counter->lanes;
    const rn_lane *lane = rn_lane_borrower(counter, after, rn_share_pool(counter, engine->now));

    lanes->chasing = lane != NULL;
    if (lane == NULL)
        return;

    const rn_place *first = rn_lane_first(lane);

    lanes->chase = first->lease->rank;
    look_push(engine, first->lease);
}

/* A waiter has been looked at, or is gone: if it was the one chased, the next of the borrowers is looked at. */
static void chase_passed(ration_engine *engine, const rn_lease *lease)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        rn_counter *counter = lease->places[i].counter;

        if (counter->lanes != NULL && counter->lanes->chasing && counter->lanes->chase.serial == lease->rank.serial)
            chase_on(engine, counter, &lease->rank);
    }
}

/* Tenants whose own units have come back, and borrowers if idle lenders can give more than they could. */
static void tenants_look(ration_engine *engine, rn_counter *counter)
{
    rn_lanes *lanes = counter->lanes;
    const int64_t pool = rn_share_pool(counter, engine->now);
    uint32_t tenant;

    while ((tenant = rn_share_touched(counter)) != RN_TENANT_NONE) {
        rn_lane *lane = rn_lane_at(counter, tenant);

        if (lane != NULL) {
            lane_borrow(lane);
            first_look(engine, lane);
        }
    }
    if (pool > lanes->pool_seen)
        chase_on(engine, counter, NULL);
    lanes->pool_seen = pool;
}

static void counter_look(ration_engine *engine, rn_counter *counter)
{
    switch (counter->limit->kind->lanes) {
    case RN_LANES_ONE:
        first_look(engine, &counter->lane);
        break;
    case RN_LANES_CLASSES:
        for (size_t i = 0; counter->place_count > 0 && i < counter->lanes->count; i++)
            first_look(engine, counter->lanes->at[i]);
        break;
    case RN_LANES_TENANTS:
        tenants_look(engine, counter);
        break;
    }
}

/* Its wake is to be set anew before the call ends; before that it may grow. */
static void counter_dirty(ration_engine *engine, rn_counter *counter)
{
    if (!counter->dirty) {
        counter->dirty = true;
        TAILQ_INSERT_TAIL(&engine->dirty, counter, in_dirty);
    }
    if (counter->limit->kind->demand != NULL && !counter->growing) {
        counter->growing = true;
        TAILQ_INSERT_TAIL(&engine->growing, counter, in_growing);
    }
}

void rn_mark(ration_engine *engine, rn_counter *counter, bool shrunk)
{
    if (counter->watcher_count == 0)
        return;
    counter_dirty(engine, counter);
    if (shrunk && !counter->shrunk) {
        counter->shrunk = true;
        TAILQ_INSERT_TAIL(&engine->shrunk, counter, in_shrunk);
    }
    counter_look(engine, counter);
}

void rn_mark_place(ration_engine *engine, const rn_place *place, bool shrunk)
{
    rn_counter *counter = place->counter;

    if (counter->watcher_count > 0 && counter->limit->kind->lanes == RN_LANES_TENANTS) {
        rn_lane *lane = rn_lane_at(counter, place->lane_index);

        if (lane != NULL) {
            lane_borrow(lane);
            first_look(engine, lane);
        }
    }
    rn_mark(engine, counter, shrunk);
}

static void place_note(ration_engine *engine, const rn_place *place, rn_note what, ration_reason reason, bool is_short)
{
    const rn_ask ask = rn_ask_of(place->lease, place);

    place->counter->limit->kind->note(place->counter, engine->now, &ask, what, reason, is_short);
}

/* Why the counter itself refuses; RATION_REASON_NONE: it does not. */
static ration_reason reason_at(const ration_engine *engine, const rn_place *place)
{
    const rn_ask ask = rn_ask_of(place->lease, place);
    rn_verdict verdict;

    place->counter->limit->kind->check(place->counter, engine->now, &ask, &verdict);
    return verdict.fit == RN_FIT_NOW ? RATION_REASON_NONE : verdict.reason;
}

/*
 * Somebody asks, so less is lent. Nobody can go by that, but those who could take everything while a penalty runs may
 * be short now; who finds a cap full may make it grow; and time will bring back later what it took.
 */
static void lenders_awake(ration_engine *engine, rn_counter *counter)
{
    if (counter->watcher_count == 0)
        return;
    if (counter->limit->kind->lanes == RN_LANES_TENANTS)
        counter->lanes->pool_seen = rn_min(counter->lanes->pool_seen, rn_share_pool(counter, engine->now));
    counter_rouse(engine, counter);
    counter_dirty(engine, counter);
}

void rn_note_all(ration_engine *engine, const rn_lease *lease, rn_note what)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];

        if (place->counter->limit->kind->note == NULL || place->lane_index == RN_LANE_UNKNOWN)
            continue;
        if (what == RN_NOTE_ASKED) {
            place_note(engine, place, what, reason_at(engine, place), !rn_place_can_take(engine, lease, place));
        } else {
            place_note(engine, place, what, RATION_REASON_NONE, rn_heap_contains(&place->node));
        }
        if (what == RN_NOTE_ASKED || what == RN_NOTE_WAIT)
            lenders_awake(engine, place->counter);
    }
}

void rn_note_refused(ration_engine *engine, const rn_lease *lease, rn_counter *named, ration_reason reason)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];

        if (place->counter == named && named->limit->kind->note != NULL && place->lane_index != RN_LANE_UNKNOWN)
            place_note(engine, place, RN_NOTE_REFUSED, reason, false);
    }
}

/* It keeps its place on the counter from now on: those behind it who need the counter must know. */
static void place_keep(ration_engine *engine, rn_place *place)
{
    rn_counter *counter = place->counter;

    rn_lane_enter(place->lane, place);
    counter_rouse(engine, counter);
    if (counter->limit->kind->note != NULL)
        place_note(engine, place, RN_NOTE_SHORT, RATION_REASON_NONE, true);
    if (rn_lane_first(place->lane) == place)
        rn_mark_place(engine, place, false);
}

static void place_leave(rn_place *place)
{
    if (rn_heap_contains(&place->node))
        rn_lane_leave(place->lane, place);
}

/* ---- coming and going ---- */

static int wait_reserve(ration_engine *engine, rn_lease *lease)
{
    const size_t waiters = (size_t)engine->totals.waiting + 1;
    int err = rn_heap_reserve(&engine->look, waiters);

    if (err == RATION_OK)
        err = rn_heap_reserve(&engine->doomed, waiters);
    for (size_t i = 0; i < lease->place_count && err == RATION_OK; i++) {
        rn_place *place = &lease->places[i];

        if (place->lane_index != RN_LANE_UNKNOWN)
            err = rn_lane_reserve(place->counter, place->lane_index, &place->lane);
    }
    return err;
}

static void watch(ration_engine *engine, rn_lease *lease, rn_place *place)
{
    rn_counter *counter = place->counter;

    if (counter->watcher_count == 0 && counter->limit->kind->lanes == RN_LANES_TENANTS)
        counter->lanes->pool_seen = rn_share_pool(counter, engine->now);
    TAILQ_INSERT_TAIL(&counter->watchers, place, watch);
    counter->watcher_count++;
    if (place->lane != NULL)
        place->lane->waiters++;
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
    if (place->lane != NULL)
        place->lane->waiters--;
    if (counter->watcher_count == 0) {
        rn_alarm_disarm(&engine->timers, &counter->wake);
        counter->watch_charge_max = 0;
        counter->watch_deadline_min.us = RATION_NEVER_US;
        rn_strict_changed(engine, counter);
    }
}

/* The short set as it begins: what it had before a reload, else all that it cannot take from. False: nothing. */
static bool places_begin(ration_engine *engine, rn_lease *lease)
{
    bool had = false;
    bool any = false;

    for (size_t i = 0; i < lease->place_count; i++)
        had = had || lease->places[i].heir != NULL;
    for (size_t i = 0; i < lease->place_count; i++) {
        rn_place *place = &lease->places[i];

        if (had ? place->heir != NULL : !rn_place_can_take(engine, lease, place)) {
            place_keep(engine, place);
            any = true;
        }
        place->heir = NULL;
    }
    return any;
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
    if (lease->pass.generation != 0)
        TAILQ_INSERT_TAIL(&lease->route->circuit->waiting, lease, in_circuit);
    for (size_t i = 0; i < lease->place_count; i++)
        watch(engine, lease, &lease->places[i]);
    if (lease->route->has_lanes)
        rn_note_all(engine, lease, RN_NOTE_WAIT);

    if (!places_begin(engine, lease))
        park(lease);
    return RATION_OK;
}

void rn_unwait(ration_engine *engine, rn_lease *lease, bool granted)
{
    unpark(lease);
    rn_heap_remove(&engine->look, &lease->look);
    rn_alarm_disarm(&engine->timers, &lease->timer);
    if (lease->pass.generation != 0)
        TAILQ_REMOVE(&lease->route->circuit->waiting, lease, in_circuit);
    if (lease->route->has_lanes)
        rn_note_all(engine, lease, granted ? RN_NOTE_GRANTED : RN_NOTE_LEAVE);
    rn_queue_leave(&lease->route->provider->queue, lease, granted);
    engine->totals.waiting--;
    for (size_t i = 0; i < lease->place_count; i++) {
        rn_place *place = &lease->places[i];

        place_leave(place);
        unwatch(engine, place);
        rn_mark_place(engine, place, false);
    }
    if (lease->route->has_lanes)
        chase_passed(engine, lease);
}

void rn_waiter_drop(ration_engine *engine, rn_lease *lease)
{
    rn_unwait(engine, lease, false);
    rn_lease_drop(engine, lease);
}

/* What the key of the decision names. */
static uint32_t *finding_pin(const rn_finding *finding)
{
    if (finding->circuit != NULL)
        return &finding->circuit->pins;
    return finding->counter != NULL ? &finding->counter->pins : NULL;
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
    rn_note_refused(engine, lease, finding->counter, finding->reason);
    rn_event_emit(engine, &event, finding_pin(finding));
}

/* ---- refusing those for whom it has become true ---- */

void rn_doom(ration_engine *engine, rn_lease *lease)
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
        rn_doom(engine, place->lease);
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
    /* What a lane can have is its own affair; it becomes too little for ever only where guarantees shrink. */
    rn_verdict verdict = {.fit = RN_FIT_SHORT};

    if (counter->watcher_count == 0 || counter->limit->rule->enforce != RATION_ENFORCE_ON)
        return;
    if (kind->lanes == RN_LANES_ONE)
        kind->check(counter, engine->now, &ask, &verdict);

    const bool late = kind->timed && verdict.fit == RN_FIT_SHORT && rn_time_before(ask.deadline, verdict.at);
    const bool paused =
        rn_penalty_runs(&counter->penalty, engine->now) && rn_time_before(ask.deadline, counter->penalty.until);

    if (verdict.fit == RN_FIT_REFUSED || late || paused)
        counter_doom(engine, counter);
    if (verdict.fit != RN_FIT_NOW)
        counter_rouse(engine, counter);
}

/* Refuse the first for whom it has become true. False: there is none. */
static bool refuse_doomed(ration_engine *engine)
{
    rn_counter *counter;
    rn_finding finding;

    while ((counter = TAILQ_FIRST(&engine->shrunk)) != NULL) {
        TAILQ_REMOVE(&engine->shrunk, counter, in_shrunk);
        counter->shrunk = false;
        counter_shrunk(engine, counter);
    }

    rn_lease *lease = lease_of_look(rn_heap_pop(&engine->doomed));

    if (lease == NULL)
        return false;
    rn_examine(engine, lease, RN_STAGE_WAITING, true, &finding);
    rn_waiter_refuse(engine, lease, &finding);
    rn_waiter_drop(engine, lease);
    return true;
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
                rn_doom(engine, lease);
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

/* The first of a tenant's or class's waiters is short of it still: that is when a reclaim begins. */
static void places_found(ration_engine *engine, const rn_lease *lease)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];

        if (place->counter->limit->kind->note != NULL && rn_heap_contains(&place->node) &&
            rn_lane_first(place->lane) == place)
            place_note(engine, place, RN_NOTE_FOUND, reason_at(engine, place), true);
    }
}

static void look_at(ration_engine *engine, rn_lease *lease)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];

        if (rn_heap_contains(&place->node) && !rn_place_can_take(engine, lease, place)) {
            if (lease->route->has_lanes)
                places_found(engine, lease);
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

/* When a lane's first waiter can take by time alone. */
static ration_time lane_wake(const ration_engine *engine, const rn_lane *lane)
{
    const rn_place *first = lane == NULL ? NULL : rn_lane_first(lane);

    if (first == NULL || rn_place_can_take(engine, first->lease, first))
        return ration_time_of(RATION_NEVER_US);

    const rn_ask ask = rn_ask_of(first->lease, first);

    return lane->counter->limit->kind->next_change(lane->counter, engine->now, &ask);
}

/* When time may help a borrower. Without memory to write a loan down, it is tried again at once. */
static ration_time borrowers_wake(const ration_engine *engine, rn_counter *counter)
{
    rn_lanes *lanes = counter->lanes;

    if (rn_tree_first(&lanes->borrowers) == NULL)
        return ration_time_of(RATION_NEVER_US);
    if (lanes->starved) {
        lanes->starved = false;
        lanes->pool_seen = 0;
        return engine->now;
    }
    return rn_share_pool_change(counter, engine->now);
}

static ration_time counter_wake(const ration_engine *engine, rn_counter *counter)
{
    ration_time at = {RATION_NEVER_US};

    switch (counter->limit->kind->lanes) {
    case RN_LANES_ONE:
        return lane_wake(engine, &counter->lane);
    case RN_LANES_CLASSES:
        for (size_t i = 0; counter->place_count > 0 && i < counter->lanes->count; i++)
            at = rn_time_min(at, lane_wake(engine, counter->lanes->at[i]));
        return at;
    case RN_LANES_TENANTS:
        return borrowers_wake(engine, counter);
    }
    return at;
}

static void wake_arm(ration_engine *engine, rn_counter *counter)
{
    ration_time at = counter_wake(engine, counter);

    /* An instant that has passed would be looked at for ever. */
    if (at.us <= engine->now.us)
        at = rn_time_add(engine->now, 1);
    rn_alarm_arm(&engine->timers, &counter->wake, at);
    rn_strict_changed(engine, counter);
}

/* ---- growing ---- */

void rn_level_moved(ration_engine *engine, rn_counter *counter, int64_t before, const char *cause)
{
    const int64_t level = counter->limit->kind->level(counter);
    rn_counter *follower;
    const ration_event event = {
        .type = RATION_EVENT_LIMIT,
        .at = engine->now,
        .decision = {.at = engine->now,
                     .limit = counter->limit->rule->name,
                     .key = counter->key,
                     .retry_at = {RATION_NEVER_US}},
        .value = level,
        .before = before,
        .cause = cause,
    };

    if (level == before)
        return;
    rn_keep(engine, counter);
    TAILQ_FOREACH (follower, &counter->lanes->followers, in_followers) {
        rn_share_resize(follower, engine->now, level);
        rn_mark(engine, follower, true);
    }
    /* A guarantee may have become too small for one whose hold is too long to borrow. None is looked at in between. */
    if (level < before) {
        TAILQ_FOREACH (follower, &counter->lanes->followers, in_followers)
            counter_doom(engine, follower);
    }
    rn_event_offer(engine, &event, &counter->pins);
}

/* True: the limit has grown by it, and those who wait there are looked at. */
static bool place_demands(ration_engine *engine, const rn_place *place)
{
    rn_counter *counter = place->counter;
    const rn_ask ask = rn_ask_of(place->lease, place);
    const int64_t before = counter->limit->kind->level(counter);

    if (!counter->limit->kind->demand(counter, engine->now, &ask))
        return false;
    rn_level_moved(engine, counter, before, "demand at the cap");
    rn_mark(engine, counter, false);
    return true;
}

bool rn_demand(ration_engine *engine, const rn_lease *lease)
{
    bool grown = false;

    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];

        if (place->counter->limit->kind->demand != NULL && place->lane_index != RN_LANE_UNKNOWN &&
            place_demands(engine, place))
            grown = true;
    }
    return grown;
}

/* Let the adaptive limits that changed grow by the demand of those who wait. True: one has grown. */
static bool grow_limits(ration_engine *engine)
{
    rn_counter *counter;

    while ((counter = TAILQ_FIRST(&engine->growing)) != NULL) {
        TAILQ_REMOVE(&engine->growing, counter, in_growing);
        counter->growing = false;
        for (size_t i = 0; counter->place_count > 0 && i < counter->lanes->count; i++) {
            const rn_place *first = counter->lanes->at[i] == NULL ? NULL : rn_lane_first(counter->lanes->at[i]);

            if (first != NULL && place_demands(engine, first))
                return true;
        }
    }
    return false;
}

void rn_pump(ration_engine *engine)
{
    rn_counter *counter;

    for (;;) {
        if (grow_limits(engine) || refuse_doomed(engine))
            continue;

        rn_lease *lease = lease_of_look(rn_heap_pop(&engine->look));

        if (lease == NULL)
            break;
        look_at(engine, lease);
        if (lease->route->has_lanes)
            chase_passed(engine, lease);
    }
    while ((counter = TAILQ_FIRST(&engine->dirty)) != NULL) {
        TAILQ_REMOVE(&engine->dirty, counter, in_dirty);
        counter->dirty = false;
        wake_arm(engine, counter);
    }
}
