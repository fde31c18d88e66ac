/* SPDX-License-Identifier: MIT */

/*
 * Asking: from a request to a decision, for good (submit) or only to know (check).
 *
 * A lease is taken from the pool and filled before anything is decided, so that the decision looks at one thing,
 * whether it is for a newcomer or a waiter. Nobody knows of it yet: after a refusal or a check it goes back, and its
 * life does not count. All memory that granting or queueing may need is there by then.
 */

#include "core/engine.h"

#include <assert.h>

#include "base/mem.h"

static bool span_is_valid(int64_t us)
{
    return us == RATION_UNSET || (us >= 0 && (us <= RATION_TIME_MAX_US || us == RATION_FOREVER_US));
}

static bool texts_are_valid(const ration_request *r)
{
    const ration_text texts[] = {r->provider, r->account,  r->target, r->credential, r->method,
                                 r->path,     r->endpoint, r->tenant, r->class_name};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].data == NULL && texts[i].size > 0)
            return false;
    }
    for (size_t i = 0; i < r->var_count; i++) {
        if (r->vars[i].name.data == NULL || r->vars[i].value.data == NULL)
            return false;
    }
    return true;
}

bool rn_request_is_valid(const ration_request *r)
{
    return r != NULL && (unsigned)r->priority <= RATION_PRIORITY_LOW && (unsigned)r->auth <= RATION_AUTH_YES &&
           (r->cost == RATION_UNSET || (r->cost >= 0 && r->cost <= RATION_UNITS_MAX)) && span_is_valid(r->hold_us) &&
           span_is_valid(r->ttl_us) && r->wait_us >= 0 && (r->vars != NULL || r->var_count == 0) && r->ttl_us != 0 &&
           texts_are_valid(r);
}

int64_t rn_request_hold(const ration_request *request, const rn_route *route)
{
    const int64_t general = route->provider->rule.defaults.hold_us;
    int64_t hold = request->hold_us;

    if (hold == RATION_UNSET && route->endpoint != NULL && route->endpoint->hold_us > 0)
        hold = route->endpoint->hold_us;
    if (hold == RATION_UNSET && general > 0)
        hold = general;
    return hold == RATION_FOREVER_US ? RATION_UNSET : hold;
}

ration_priority rn_request_priority(const ration_request *request, const rn_route *route)
{
    const ration_priority general = route->provider->rule.defaults.priority;

    if (request->priority != RATION_PRIORITY_UNSET)
        return request->priority;
    if (route->endpoint != NULL && route->endpoint->priority != RATION_PRIORITY_UNSET)
        return route->endpoint->priority;
    return general != RATION_PRIORITY_UNSET ? general : RATION_PRIORITY_NORMAL;
}

static void lease_fill(ration_engine *engine, rn_lease *lease, rn_route *route, const ration_request *request)
{
    lease->serial = engine->serial;
    lease->user = request->user;
    lease->route = route;
    lease->retry = request->retry;
    lease->health = request->health;
    lease->cost = rn_request_cost(request, route->endpoint, &route->provider->rule.defaults);
    lease->hold_us = rn_request_hold(request, route);
    lease->ttl_us = request->ttl_us == RATION_FOREVER_US ? RATION_UNSET : request->ttl_us;
    lease->since = engine->now;
    lease->deadline = rn_time_after(engine->now, request->wait_us);
    lease->rank.priority = rn_request_priority(request, route);
    lease->rank.tag =
        rn_queue_tag(&route->provider->queue, route->tenant, lease->rank.priority, lease->cost, route->weight);
    lease->rank.serial = engine->serial;

    lease->place_count = route->count;
    for (size_t i = 0; i < route->count; i++) {
        rn_counter *counter = route->links[i].counter;

        rn_place *place = &lease->places[i];

        /* Member by member: what it holds is written when it is granted. */
        place->lease = lease;
        place->counter = counter;
        place->lane = rn_lane_at(counter, route->links[i].lane);
        place->lane_index = route->links[i].lane;
        place->charge = counter->limit->rule->counts == RATION_COUNTS_COST ? lease->cost : RATION_UNIT;
        rn_heap_node_init(&place->node);
        rn_heap_node_init(&place->by_charge);
        place->heir = NULL;
    }
}

size_t rn_events_owed(const ration_engine *engine)
{
    return (size_t)engine->leases.used + (size_t)engine->totals.waiting;
}

static int submit_reserve(ration_engine *engine, const rn_route *route)
{
    int err = rn_leases_reserve(&engine->leases, route->count);

    if (err == RATION_OK)
        err = rn_alarms_reserve(&engine->timers, engine->timers_needed + 1);
    if (err == RATION_OK)
        err = rn_events_reserve(&engine->events, engine->events.count + rn_events_owed(engine) + 2);
    return err;
}

static void refuse_plain(ration_engine *engine, ration_reason reason, const rn_limit *limit, ration_decision *out)
{
    const rn_finding finding = {
        .reason = reason,
        .retry_at = {RATION_NEVER_US},
        .facts = RN_NO_FACTS,
    };

    rn_decision_refuse(engine, &finding, out);
    out->limit = limit != NULL ? limit->rule->name : NULL;
}

static bool queue_is_full(const ration_engine *engine, const rn_lease *lease)
{
    const rn_queue *queue = &lease->route->provider->queue;

    return queue->count >= engine->world->book.max_waiters ||
           rn_queue_waiting(queue, lease->route->tenant) >= engine->world->book.max_waiters_per_tenant;
}

static void blocking_add(void *ctx, rn_ceiling_hold *hold)
{
    ration_engine *engine = ctx;
    const rn_hold *at = (const rn_hold *)(const void *)((char *)hold - offsetof(rn_hold, share));
    const rn_place *place = (const rn_place *)(const void *)((const char *)at - offsetof(rn_place, hold));

    if (engine->blocking_failed)
        return;
    if (engine->blocking_count == engine->blocking_capacity) {
        const size_t capacity = engine->blocking_capacity == 0 ? 16 : 2 * engine->blocking_capacity;
        ration_lease *grown = rn_mem_resize(&engine->mem, engine->blocking, capacity, sizeof *grown);

        engine->blocking_failed = grown == NULL;
        if (grown == NULL)
            return;
        engine->blocking = grown;
        engine->blocking_capacity = capacity;
    }
    engine->blocking[engine->blocking_count++] = rn_lease_handle(place->lease);
}

/* Whose leases stand in the way. Without memory for all of them `finding->nomem` is set. */
static void name_blocking(ration_engine *engine, const rn_lease *lease, rn_finding *finding, ration_decision *out)
{
    if (finding->reason != RATION_REASON_GUARANTEE_ON_LOAN)
        return;

    const rn_ask ask = rn_ask_of(lease, finding->place);

    engine->blocking_count = 0;
    engine->blocking_failed = false;
    rn_share_blocking(finding->counter, engine->now, &ask, blocking_add, engine);
    out->blocking = engine->blocking;
    out->blocking_count = engine->blocking_count;
    finding->nomem = engine->blocking_failed;
}

static bool is_refused(const rn_lease *lease, const rn_finding *finding)
{
    return finding->refuses || (finding->bound && !rn_time_before(lease->since, lease->deadline));
}

/* What the finding comes to. Takes nothing. */
static void answer(ration_engine *engine, const rn_lease *lease, rn_finding *finding, ration_decision *out)
{
    if (is_refused(lease, finding)) {
        rn_decision_refuse(engine, finding, out);
        name_blocking(engine, lease, finding, out);
        return;
    }
    if (finding->bound && queue_is_full(engine, lease)) {
        refuse_plain(engine, RATION_REASON_QUEUE_FULL, NULL, out);
        return;
    }
    *out = (ration_decision){
        .result = finding->bound ? RATION_QUEUED : RATION_GRANTED,
        .serial = engine->serial,
        .at = engine->now,
        .priority = lease->rank.priority,
        .retry_at = {RATION_NEVER_US},
    };
    if (finding->bound && finding->counter != NULL) {
        out->limit = finding->counter->limit->rule->name;
        out->key = finding->counter->key;
    }
}

/* Does it take what a waiter of its priority keeps a place for? Nobody ahead of it does, or it would not be granted. */
static bool passes_a_waiter(const rn_lease *lease)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_lane *lane = lease->places[i].lane;
        const rn_place *first = lane == NULL ? NULL : rn_lane_first(lane);

        if (first != NULL && first->lease->rank.priority == lease->rank.priority)
            return true;
    }
    return false;
}

static void note_shadows(ration_engine *engine, const rn_lease *lease, const rn_finding *finding)
{
    if (lease->route->has_shadows && finding->circuit == NULL)
        engine->totals.shadowed += rn_note_shadows(engine, lease);
}

static void note_refusal(ration_engine *engine, const rn_lease *lease, const rn_finding *finding,
                         const ration_decision *out)
{
    if (!finding->barred)
        rn_note_all(engine, lease, RN_NOTE_ASKED);
    if (out->limit != NULL)
        rn_note_refused(engine, lease, finding->counter, out->reason);
}

static int enqueue(ration_engine *engine, rn_lease *lease)
{
    rn_circuit_enter(engine, lease);

    const int err = rn_wait(engine, lease);

    if (err == RATION_OK) {
        engine->totals.queued++;
    } else {
        rn_circuit_leave(engine, lease);
    }
    return err;
}

/* Decide for a filled lease that nobody knows of yet. */
static int decide(ration_engine *engine, rn_lease *lease, ration_decision *out)
{
    /* The times are wanted by those who are refused: of who may not wait, that is all that is bound. */
    const bool may_wait = rn_time_before(lease->since, lease->deadline);
    rn_finding finding;
    int err = RATION_OK;

    rn_examine(engine, lease, RN_STAGE_ARRIVAL, !may_wait, &finding);
    if (lease->route->has_lanes && !finding.barred && rn_demand(engine, lease))
        rn_examine(engine, lease, RN_STAGE_ARRIVAL, !may_wait, &finding);
    if (may_wait && finding.refuses)
        rn_examine(engine, lease, RN_STAGE_ARRIVAL, true, &finding);
    if (!finding.nomem)
        answer(engine, lease, &finding, out);
    if (finding.nomem)
        return RATION_ERR_NOMEM;
    if (out->result == RATION_QUEUED)
        err = enqueue(engine, lease);
    if (err != RATION_OK)
        return err;
    note_shadows(engine, lease, &finding);
    if (out->result == RATION_REFUSED) {
        if (lease->route->has_lanes)
            note_refusal(engine, lease, &finding, out);
        if (out->reason == RATION_REASON_STORE_UNAVAILABLE)
            rn_strict_refused(engine, finding.counter, finding.place->charge);
        return RATION_OK;
    }
    out->lease = rn_lease_handle(lease);
    if (out->result == RATION_GRANTED) {
        rn_circuit_enter(engine, lease);
        if (passes_a_waiter(lease))
            rn_queue_pass(&lease->route->provider->queue, &lease->rank);
        rn_lease_take(engine, lease);
    }
    return RATION_OK;
}

/* A lease for the request, filled and known to nobody; NULL with `*out` a refusal where its names lead nowhere. */
static int lease_prepare(ration_engine *engine, const ration_request *request, rn_lease **lease, ration_decision *out)
{
    const rn_limit *limit;
    ration_reason reason;
    rn_route *route;
    int err = rn_routes_find(&engine->world->routes, engine->now, request, &route, &reason, &limit);

    *lease = NULL;
    if (err != RATION_OK)
        return err;
    if (route == NULL) {
        refuse_plain(engine, reason, limit, out);
        return RATION_OK;
    }
    err = submit_reserve(engine, route);
    if (err != RATION_OK) {
        rn_route_release(&engine->world->routes, route);
        return err;
    }
    *lease = rn_leases_take(&engine->leases);
    assert(*lease != NULL); /* reserved above */
    engine->timers_needed++;
    lease_fill(engine, *lease, route, request);
    return RATION_OK;
}

static void lease_unprepare(ration_engine *engine, rn_lease *lease)
{
    rn_route *route = lease->route;

    engine->timers_needed--;
    rn_leases_untake(&engine->leases, lease);
    rn_route_release(&engine->world->routes, route);
}

static int submit(ration_engine *engine, const ration_request *request, ration_decision *out)
{
    rn_lease *lease;
    int err = lease_prepare(engine, request, &lease, out);

    if (err != RATION_OK || lease == NULL)
        return err;
    err = decide(engine, lease, out);
    if (err != RATION_OK || out->result == RATION_REFUSED)
        lease_unprepare(engine, lease);
    return err;
}

/* Ceilings that follow an adaptive limit stand where the request's demand would put them; `foresee` false: back. */
static void followers_foresee(const ration_engine *engine, const rn_lease *lease, bool foresee)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        rn_counter *counter = lease->places[i].counter;
        const rn_kind *kind = counter->limit->kind;
        const rn_ask ask = rn_ask_of(lease, &lease->places[i]);
        rn_counter *follower;
        rn_verdict verdict;

        if (kind->level == NULL || TAILQ_EMPTY(&counter->lanes->followers))
            continue;
        kind->check(counter, engine->now, &ask, &verdict);
        if (verdict.fit == RN_FIT_REFUSED || verdict.capacity == kind->level(counter))
            continue;
        TAILQ_FOREACH (follower, &counter->lanes->followers, in_followers)
            rn_share_resize(follower, engine->now, foresee ? verdict.capacity : kind->level(counter));
    }
}

static int check(ration_engine *engine, const ration_request *request, ration_check_mode mode, ration_decision *out)
{
    rn_lease *lease;
    rn_finding finding;
    const int err = lease_prepare(engine, request, &lease, out);

    if (err != RATION_OK || lease == NULL)
        return err;
    if (mode == RATION_CHECK_ENFORCER) {
        lease->deadline = lease->since;
        rn_examine_as_enforcer(engine, lease, &finding);
    } else {
        rn_examine(engine, lease, RN_STAGE_ARRIVAL, true, &finding);
        if (finding.bound && !finding.barred) {
            lease->demands = true;
            followers_foresee(engine, lease, true);
            rn_examine(engine, lease, RN_STAGE_ARRIVAL, true, &finding);
        }
    }
    if (!finding.nomem)
        answer(engine, lease, &finding, out);
    if (lease->demands)
        followers_foresee(engine, lease, false);
    lease_unprepare(engine, lease);
    return finding.nomem ? RATION_ERR_NOMEM : RATION_OK;
}

int ration_engine_check(ration_engine *engine, ration_time now, const ration_request *request, ration_check_mode mode,
                        ration_decision *out)
{
    if (engine == NULL || out == NULL || !rn_time_is_valid(now) || !rn_request_is_valid(request) ||
        (unsigned)mode > RATION_CHECK_ENFORCER)
        return RATION_ERR_INVALID;

    ration_decision decision;
    const ration_call call = {
        .op = RATION_OP_CHECK,
        .at = rn_clock_clamp(engine, now),
        .serial = ++engine->serial,
        .request = request,
        .check = mode,
    };

    rn_sink_call(engine, &call);
    rn_catch_up(engine, call.at);

    const int err = check(engine, request, mode, &decision);

    if (err == RATION_OK)
        *out = decision;
    rn_sink_answer(engine, &call, err, err == RATION_OK ? &decision : NULL);
    return err;
}

int ration_engine_submit(ration_engine *engine, ration_time now, const ration_request *request, ration_decision *out)
{
    if (engine == NULL || out == NULL || !rn_time_is_valid(now) || !rn_request_is_valid(request))
        return RATION_ERR_INVALID;

    ration_decision decision;
    const ration_call call = {
        .op = RATION_OP_SUBMIT,
        .at = rn_clock_clamp(engine, now),
        .serial = ++engine->serial,
        .request = request,
    };

    rn_sink_call(engine, &call);
    rn_catch_up(engine, call.at);

    const int err = submit(engine, request, &decision);

    if (err == RATION_OK) {
        engine->totals.submitted++;
        if (decision.result == RATION_REFUSED) {
            engine->totals.refused++;
            engine->totals.refusals[decision.reason]++;
        }
        *out = decision;
    }
    rn_sink_answer(engine, &call, err, err == RATION_OK ? &decision : NULL);
    rn_pump(engine);
    return err;
}
