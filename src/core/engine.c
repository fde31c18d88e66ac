/* SPDX-License-Identifier: MIT */

/*
 * The engine: calls in, decisions and events out.
 *
 * Every call first carries out what falls due up to its `now`, one instant after the other: leases lost, then grants to
 * waiters, then deadlines. So a decision depends on the calls and their times alone, never on how often somebody
 * looked. Then comes the call itself, its answer, and the events that it causes.
 *
 * All memory that a call may need is taken before it changes anything; what follows cannot fail. Admission checks every
 * counter of the request and then takes from all of them or from none.
 */

#include "core/engine.h"

#include <assert.h>

#include "base/mem.h"

bool rn_time_is_valid(ration_time t)
{
    return t.us >= -RATION_TIME_MAX_US && t.us <= RATION_TIME_MAX_US;
}

/* Instants are capped where a double still holds them exactly. */
ration_time rn_time_after(ration_time t, int64_t us)
{
    return rn_time_min(rn_time_add(t, us), ration_time_of(RATION_TIME_MAX_US));
}

/* ---- life ---- */

static int engine_init(ration_engine *engine, const ration_engine_options *options, ration_time now,
                       ration_fault *fault)
{
    const ration_allocator *mem = &engine->mem;

    engine->world = rn_mem_zalloc(mem, 1, sizeof *engine->world);
    if (engine->world == NULL)
        return RATION_ERR_NOMEM;

    const int err = rn_book_init(&engine->world->book, mem, options->rules, fault);

    if (err != RATION_OK)
        return err;
    engine->now = now;
    rn_alarms_init(&engine->timers, mem);
    rn_leases_init(&engine->leases, mem, (uint32_t)engine->world->book.max_leases, options->first_generation);
    rn_events_init(&engine->events, mem);
    rn_heap_init(&engine->look, mem, rn_look_less);
    rn_heap_init(&engine->doomed, mem, rn_look_less);
    TAILQ_INIT(&engine->dirty);
    TAILQ_INIT(&engine->shrunk);
    TAILQ_INIT(&engine->growing);
    TAILQ_INIT(&engine->changed);
    TAILQ_INIT(&engine->given);
    SLIST_INIT(&engine->past);
    engine->keeps = options->keeps || engine->world->book.strict;
    engine->timers_needed = engine->world->book.account_count;
    const int routed =
        rn_routes_init(&engine->world->routes, mem, &engine->world->book, &engine->timers, &engine->timers_needed);

    engine->world->routes.started_at = now;
    return routed;
}

int ration_engine_new(const ration_engine_options *options, ration_time now, ration_engine **out, ration_fault *fault)
{
    if (options == NULL || options->rules == NULL || out == NULL || !rn_time_is_valid(now))
        return RATION_ERR_INVALID;

    const ration_allocator *mem = options->allocator != NULL ? options->allocator : rn_mem_default();
    ration_engine *engine = rn_mem_zalloc(mem, 1, sizeof *engine);

    if (engine == NULL)
        return RATION_ERR_NOMEM;
    engine->mem = *mem;
    if (options->sink != NULL)
        engine->sink = *options->sink;

    const int err = engine_init(engine, options, now, fault);

    if (err != RATION_OK) {
        ration_engine_free(engine);
        return err;
    }
    *out = engine;
    return RATION_OK;
}

void ration_engine_free(ration_engine *engine)
{
    if (engine == NULL)
        return;

    const ration_allocator mem = engine->mem;

    rn_past_free(engine);
    if (engine->world != NULL && engine->world->routes.mem != NULL)
        rn_routes_fini(&engine->world->routes);
    /* Heaps before what is in them: a heap lets go of its members. */
    if (engine->timers.heap.mem != NULL)
        rn_alarms_fini(&engine->timers);
    if (engine->look.mem != NULL) {
        rn_heap_fini(&engine->look);
        rn_heap_fini(&engine->doomed);
    }
    if (engine->leases.mem != NULL)
        rn_leases_fini(&engine->leases);
    if (engine->events.mem != NULL)
        rn_events_fini(&engine->events);
    if (engine->world != NULL)
        rn_book_fini(&engine->world->book);
    rn_mem_free(&mem, engine->world);
    rn_mem_free(&mem, engine->blocking);
    rn_mem_free(&mem, engine);
}

/* ---- what the recorder sees ---- */

void rn_sink_call(const ration_engine *engine, const ration_call *call)
{
    if (engine->sink.call != NULL)
        engine->sink.call(engine->sink.ctx, call);
}

void rn_sink_answer(const ration_engine *engine, const ration_call *call, int err, const ration_decision *decision)
{
    if (engine->sink.answer != NULL)
        engine->sink.answer(engine->sink.ctx, call, err, decision);
}

void rn_event_emit(ration_engine *engine, const ration_event *event, uint32_t *pin)
{
    rn_events_push(&engine->events, event, pin);
    if (engine->sink.event != NULL)
        engine->sink.event(engine->sink.ctx, event);
}

void rn_event_offer(ration_engine *engine, const ration_event *event, uint32_t *pin)
{
    if (rn_events_reserve(&engine->events, engine->events.count + rn_events_owed(engine) + 1) == RATION_OK)
        rn_event_emit(engine, event, pin);
}

/* ---- leases ---- */

void rn_decision_refuse(const ration_engine *engine, const rn_finding *finding, ration_decision *out)
{
    const rn_counter *counter = finding->counter;
    const bool retryable = ration_reason_retryable(finding->reason);

    *out = (ration_decision){
        .result = RATION_REFUSED,
        .serial = engine->serial,
        .at = engine->now,
        .reason = finding->reason,
        .retry_at = {retryable ? finding->retry_at.us : RATION_NEVER_US},
        .facts = finding->facts,
    };
    out->estimate = finding->estimate && rn_time_known(out->retry_at);
    if (counter != NULL) {
        out->limit = counter->limit->rule->name;
        out->key = counter->key;
    } else if (finding->circuit != NULL) {
        out->key = finding->circuit->key;
    }
}

void rn_lease_drop(ration_engine *engine, rn_lease *lease)
{
    rn_route *route = lease->route;

    rn_alarm_disarm(&engine->timers, &lease->timer);
    rn_circuit_leave(engine, lease);
    engine->timers_needed--;
    rn_leases_put(&engine->leases, lease);
    rn_route_release(&engine->world->routes, route);
}

void rn_lease_end(ration_engine *engine, rn_lease *lease)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        rn_place *place = &lease->places[i];
        rn_counter *counter = place->counter;

        counter->limit->kind->give_back(counter, engine->now, &place->hold);
        TAILQ_REMOVE(&counter->holds, &place->hold, next);
        rn_mark_place(engine, place, false);
    }
    engine->totals.held--;
    rn_lease_drop(engine, lease);
}

static void lease_lose(ration_engine *engine, rn_lease *lease)
{
    const ration_event event = {
        .type = RATION_EVENT_LOST,
        .at = engine->now,
        .serial = lease->serial,
        .lease = rn_lease_handle(lease),
        .user = lease->user,
    };

    engine->totals.lost++;
    rn_event_emit(engine, &event, NULL);
    rn_lease_end(engine, lease);
}

/* Take from every counter. All of them have said that it fits. */
void rn_lease_take(ration_engine *engine, rn_lease *lease)
{
    const uint64_t order = ++engine->grants;

    lease->state = RN_LEASE_HELD;
    lease->since = engine->now;
    lease->ends_at.us =
        lease->hold_us == RATION_UNSET ? RATION_NEVER_US : rn_time_after(engine->now, lease->hold_us).us;
    for (size_t i = 0; i < lease->place_count; i++) {
        rn_place *place = &lease->places[i];
        rn_counter *counter = place->counter;
        rn_hold *hold = &place->hold;
        rn_ask ask = rn_ask_of(lease, place);

        hold->counter = counter;
        hold->charge = place->charge;
        hold->granted_at = engine->now;
        hold->ends_at = lease->ends_at;
        hold->order = order;
        hold->retry = lease->retry;
        hold->critical = ask.critical;
        hold->seen = false;
        hold->lane = place->lane_index;
        ask.left = rn_lane_largest(place->lane);
        counter->limit->kind->take(counter, engine->now, &ask, hold);
        TAILQ_INSERT_TAIL(&counter->holds, hold, next);
        rn_keep(engine, counter);
        rn_mark_place(engine, place, true);
    }
    rn_alarm_init(&lease->timer, RN_ALARM_TTL);
    if (lease->ttl_us != RATION_UNSET)
        rn_alarm_arm(&engine->timers, &lease->timer, rn_time_after(engine->now, lease->ttl_us));
    engine->totals.held++;
    engine->totals.granted++;
}

void rn_grant(ration_engine *engine, rn_lease *lease)
{
    const ration_event event = {
        .type = RATION_EVENT_GRANTED,
        .at = engine->now,
        .serial = lease->serial,
        .lease = rn_lease_handle(lease),
        .user = lease->user,
        .waited_us = engine->now.us - lease->since.us,
        .decision = {.result = RATION_GRANTED,
                     .lease = rn_lease_handle(lease),
                     .serial = lease->serial,
                     .at = engine->now,
                     .retry_at = {RATION_NEVER_US}},
    };

    rn_event_emit(engine, &event, NULL);
    rn_unwait(engine, lease, true);
    rn_lease_take(engine, lease);
}

/* ---- time ---- */

static rn_lease *lease_of_timer(rn_alarm *timer)
{
    return (rn_lease *)(void *)((char *)timer - offsetof(rn_lease, timer));
}

/* One due timer that is not a deadline. */
static void timer_fire(ration_engine *engine, rn_alarm *timer)
{
    switch (timer->kind) {
    case RN_ALARM_TTL:
        lease_lose(engine, lease_of_timer(timer));
        break;
    case RN_ALARM_CIRCUIT:
        rn_alarm_disarm(&engine->timers, timer);
        rn_circuit_due(engine, (rn_circuit *)(void *)((char *)timer - offsetof(rn_circuit, alarm)));
        break;
    case RN_ALARM_WAKE:
        rn_alarm_disarm(&engine->timers, timer);
        rn_mark(engine, (rn_counter *)(void *)((char *)timer - offsetof(rn_counter, wake)), true);
        break;
    case RN_ALARM_PENALTY:
        rn_alarm_disarm(&engine->timers, timer);
        rn_penalty_over(engine, (rn_counter *)(void *)((char *)timer - offsetof(rn_counter, penalty_timer)));
        break;
    case RN_ALARM_ACCOUNT:
        rn_alarm_disarm(&engine->timers, timer);
        rn_account_penalty_over(engine, (rn_account *)(void *)((char *)timer - offsetof(rn_account, penalty_timer)));
        break;
    case RN_ALARM_DEADLINE:
        break;
    }
}

static rn_alarm *due_timer(const ration_engine *engine)
{
    rn_alarm *timer = rn_alarms_first(&engine->timers);

    return timer != NULL && timer->at.us <= engine->now.us ? timer : NULL;
}

/*
 * All deadlines of one instant. Each waiter says what it is short of while the others are still there: nobody gains by
 * one of them, so the last is not told that it was short of nothing.
 */
static void deadlines_pass(ration_engine *engine)
{
    struct rn_lease_free_list leaving = SLIST_HEAD_INITIALIZER(leaving);
    rn_alarm *timer;
    rn_lease *lease;

    while ((timer = due_timer(engine)) != NULL && timer->kind == RN_ALARM_DEADLINE) {
        rn_finding finding;

        lease = lease_of_timer(timer);
        rn_alarm_disarm(&engine->timers, timer);
        rn_examine(engine, lease, RN_STAGE_DEADLINE, true, &finding);
        rn_waiter_refuse(engine, lease, &finding);
        SLIST_INSERT_HEAD(&leaving, lease, in_free);
    }
    while ((lease = SLIST_FIRST(&leaving)) != NULL) {
        SLIST_REMOVE_HEAD(&leaving, in_free);
        rn_waiter_drop(engine, lease);
    }
}

/* Everything of one instant: leases lost, then what time brings, grants, then deadlines, then who gains by those. */
static void instant_pass(ration_engine *engine)
{
    rn_alarm *timer;

    while ((timer = due_timer(engine)) != NULL && timer->kind != RN_ALARM_DEADLINE)
        timer_fire(engine, timer);
    rn_pump(engine);
    deadlines_pass(engine);
    rn_pump(engine);
}

ration_time rn_clock_clamp(ration_engine *engine, ration_time now)
{
    if (rn_time_before(now, engine->now)) {
        engine->totals.clock_went_back++;
        return engine->now;
    }
    return now;
}

void rn_catch_up(ration_engine *engine, ration_time now)
{
    ration_time next;

    engine->until = now;
    while ((next = rn_alarms_next(&engine->timers)).us <= now.us) {
        engine->now = rn_time_max(engine->now, next);
        instant_pass(engine);
    }
    engine->now = now;
}

/* ---- the other calls ---- */

/* A call about a request, up to its own part: recorded, time carried on. NULL: not in that state. */
static rn_lease *call_begin(ration_engine *engine, ration_call *call, ration_time now, ration_lease handle,
                            rn_lease_state state)
{
    const rn_lease *named = rn_leases_find(&engine->leases, handle);

    call->at = rn_clock_clamp(engine, now);
    call->serial = named != NULL ? named->serial : 0;
    rn_sink_call(engine, call);
    rn_catch_up(engine, call->at);

    rn_lease *lease = rn_leases_find(&engine->leases, handle);

    return lease != NULL && lease->state == state ? lease : NULL;
}

static int call_end(ration_engine *engine, const ration_call *call, int err)
{
    rn_sink_answer(engine, call, err, NULL);
    rn_pump(engine);
    return err;
}

static void settle(ration_engine *engine, rn_lease *lease, int64_t cost)
{
    for (size_t i = 0; i < lease->place_count; i++) {
        rn_place *place = &lease->places[i];
        rn_counter *counter = place->counter;

        if (counter->limit->rule->counts == RATION_COUNTS_COST) {
            counter->limit->kind->settle(counter, engine->now, &place->hold, cost);
            rn_keep(engine, counter);
            rn_mark_place(engine, place, true);
        }
    }
}

int ration_engine_release(ration_engine *engine, ration_time now, ration_lease handle,
                          const ration_completion *completion)
{
    const ration_completion usual = RATION_COMPLETION_INIT;
    const ration_completion *how = completion != NULL ? completion : &usual;

    if (engine == NULL || !rn_time_is_valid(now) || (unsigned)how->outcome > RATION_OUTCOME_CANCELLED ||
        (how->cost != RATION_UNSET && (how->cost < 0 || how->cost > RATION_UNITS_MAX)))
        return RATION_ERR_INVALID;

    ration_call call = {.op = RATION_OP_RELEASE, .completion = how};
    rn_lease *lease = call_begin(engine, &call, now, handle, RN_LEASE_HELD);

    if (lease == NULL)
        return call_end(engine, &call, RATION_ERR_UNKNOWN);
    if (!lease->status_seen)
        rn_feed_outcome(engine, lease, how->outcome);
    if (how->cost != RATION_UNSET)
        settle(engine, lease, how->cost);
    rn_lease_end(engine, lease);
    engine->totals.released++;
    return call_end(engine, &call, RATION_OK);
}

static bool response_is_valid(const ration_response *r)
{
    if (r == NULL || r->status < 0 || r->status > 999 || (r->headers == NULL && r->header_count > 0))
        return false;
    for (size_t i = 0; i < r->header_count; i++) {
        if (r->headers[i].name.data == NULL || (r->headers[i].value.data == NULL && r->headers[i].value.size > 0))
            return false;
    }
    return true;
}

int ration_engine_observe(ration_engine *engine, ration_time now, ration_lease handle, const ration_response *response)
{
    if (engine == NULL || !rn_time_is_valid(now) || !response_is_valid(response))
        return RATION_ERR_INVALID;

    ration_call call = {.op = RATION_OP_OBSERVE, .response = response};
    rn_lease *lease = call_begin(engine, &call, now, handle, RN_LEASE_HELD);

    if (lease == NULL)
        return call_end(engine, &call, RATION_ERR_UNKNOWN);
    rn_feed_response(engine, lease, response);
    return call_end(engine, &call, RATION_OK);
}

int ration_engine_renew(ration_engine *engine, ration_time now, ration_lease handle)
{
    if (engine == NULL || !rn_time_is_valid(now))
        return RATION_ERR_INVALID;

    ration_call call = {.op = RATION_OP_RENEW};
    rn_lease *lease = call_begin(engine, &call, now, handle, RN_LEASE_HELD);

    if (lease == NULL)
        return call_end(engine, &call, RATION_ERR_UNKNOWN);
    if (lease->ttl_us != RATION_UNSET)
        rn_alarm_arm(&engine->timers, &lease->timer, rn_time_after(engine->now, lease->ttl_us));
    return call_end(engine, &call, RATION_OK);
}

int ration_engine_cancel(ration_engine *engine, ration_time now, ration_lease handle)
{
    if (engine == NULL || !rn_time_is_valid(now))
        return RATION_ERR_INVALID;

    ration_call call = {.op = RATION_OP_CANCEL};
    rn_lease *lease = call_begin(engine, &call, now, handle, RN_LEASE_WAITING);

    if (lease == NULL)
        return call_end(engine, &call, RATION_ERR_UNKNOWN);
    rn_waiter_drop(engine, lease);
    engine->totals.cancelled++;
    return call_end(engine, &call, RATION_OK);
}

int ration_engine_health(ration_engine *engine, ration_time now, ration_text account, bool ok)
{
    if (engine == NULL || !rn_time_is_valid(now) || account.data == NULL)
        return RATION_ERR_INVALID;

    const ration_call call = {
        .op = RATION_OP_HEALTH,
        .at = rn_clock_clamp(engine, now),
        .account = account,
        .ok = ok,
    };

    rn_sink_call(engine, &call);
    rn_catch_up(engine, call.at);
    return call_end(engine, &call, rn_circuit_health(engine, account, ok));
}

ration_time ration_engine_next_deadline(const ration_engine *engine)
{
    return engine == NULL ? ration_time_of(RATION_NEVER_US) : rn_alarms_next(&engine->timers);
}

int ration_engine_advance(ration_engine *engine, ration_time now)
{
    if (engine == NULL || !rn_time_is_valid(now))
        return RATION_ERR_INVALID;

    const ration_call call = {.op = RATION_OP_ADVANCE, .at = rn_clock_clamp(engine, now)};

    if (rn_alarms_next(&engine->timers).us > call.at.us) {
        engine->now = call.at;
        return RATION_OK;
    }
    rn_sink_call(engine, &call);
    rn_catch_up(engine, call.at);
    rn_sink_answer(engine, &call, RATION_OK, NULL);
    return RATION_OK;
}

int ration_engine_report(ration_engine *engine, ration_time now, ration_report_kind kind,
                         const ration_reporter *reporter)
{
    if (engine == NULL || reporter == NULL || !rn_time_is_valid(now) || (unsigned)kind > RATION_REPORT_ALLOCATION)
        return RATION_ERR_INVALID;

    const ration_call call = {.op = RATION_OP_REPORT, .at = rn_clock_clamp(engine, now), .report = kind};

    rn_sink_call(engine, &call);
    rn_catch_up(engine, call.at);

    const int err = rn_report(engine, kind, reporter);

    rn_sink_answer(engine, &call, err, NULL);
    return err;
}

bool ration_engine_next_event(ration_engine *engine, ration_event *out)
{
    if (engine == NULL || out == NULL)
        return false;
    if (rn_events_take(&engine->events, out))
        return true;
    rn_past_free(engine);
    return false;
}

void ration_engine_totals(const ration_engine *engine, ration_totals *out)
{
    *out = engine->totals;
    out->counters = engine->world->routes.counters.size;
    out->asleep = engine->world->routes.kept.counters.size;
    out->events_pending = engine->events.count;
}
