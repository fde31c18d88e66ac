/* SPDX-License-Identifier: MIT */
/*
 * Calls of scripts, from when they are wanted until they are answered for good.
 *
 * A call keeps what it needs to be written again: a script that lacks a calendar window asks for it, and a call whose
 * answer was lost is repeated as it was, under the same name, which the scripts take once. What is told rather than
 * asked (a release, a response, a renewal) waits while the store is away, in order, until its lease has lapsed there:
 * then it means nothing.
 *
 * Invariants: a call is in `calls` while the store has it, in `later` while it waits to be told, or hangs on the one
 * that it follows; it holds its route and world once.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/engine.h"
#include "fleet/member_parts.h"

#define AGAIN_US (50 * INT64_C(1000))
#define DOWN_US (1000 * INT64_C(1000))

static void call_transmit(rn_member *m, rn_member_call *call);

rn_member_call *rn_member_call_plain(rn_member *m, rn_script_name script, rn_member_world *world)
{
    rn_member_call *const call = rn_mem_zalloc(&m->mem, 1, sizeof *call);

    if (call == NULL)
        return NULL;
    call->member = m;
    call->script = script;
    call->world = world;
    call->wanted_at = rn_member_now(m);
    call->give_up = rn_time_add(call->wanted_at, m->settings.lease_ttl_us);
    rn_member_hold(world);
    return call;
}

rn_member_call *rn_member_call_new(rn_member *m, rn_script_name script, const rn_member_lease *lease)
{
    rn_member_call *const call = rn_member_call_plain(m, script, lease->world);

    if (call == NULL)
        return NULL;
    call->route = lease->route;
    call->route->refs++;
    call->lease = lease->handle;
    memcpy(call->name, lease->name, sizeof call->name);
    call->ask = lease->ask;
    call->ask.id = ration_text_of(call->name);
    call->end.cost = RATION_UNSET;
    call->give_up = rn_time_add(call->wanted_at, lease->ask.ttl_us);
    return call;
}

/* The one that was to come after it. */
static rn_member_call *call_drop(rn_member_call *call)
{
    rn_member *const m = call->member;
    rn_member_lease *const lease = rn_member_lease_find(m, call->lease);
    rn_member_call *const then = call->then;

    if (lease != NULL && lease->told == call)
        lease->told = NULL;
    if (call->listener != NULL)
        rn_member_forget(call->listener);
    if (call->route != NULL)
        rn_fleet_rules_forget(&call->world->rules, call->route);
    rn_member_unhold(m, call->world);
    rn_mem_free(&m->mem, call->block);
    rn_mem_free(&m->mem, call->many);
    rn_mem_free(&m->mem, call->windows);
    rn_mem_free(&m->mem, call);
    return then;
}

void rn_member_call_free(rn_member_call *call)
{
    rn_member *const m = call->member;
    rn_member_call *then = call_drop(call);

    if (then != NULL && m->store != NULL) {
        call_transmit(m, then);
        return;
    }
    while (then != NULL) /* the end */
        then = call_drop(then);
}

/* ---- later */

static void call_put_off(rn_member_call *call)
{
    rn_member *const m = call->member;

    TAILQ_INSERT_TAIL(&m->later, call, link);
    m->later_count++;
    /* Without a timer it is told when the store comes back, or with the next one. */
    if (!rn_timer_is_set(&m->again))
        (void)rn_timer_set(&m->again, rn_time_add(rn_member_now(m), AGAIN_US + rn_member_jitter(m, AGAIN_US)));
}

static void call_give_up(rn_member_call *call)
{
    rn_member *const m = call->member;

    TAILQ_REMOVE(&m->later, call, link);
    m->later_count--;
    m->told_never++;
    rn_member_call_free(call);
}

void rn_member_call_flush(rn_member *m)
{
    const ration_time now = rn_member_now(m);

    for (size_t count = m->later_count; count > 0; count--) {
        rn_member_call *const call = TAILQ_FIRST(&m->later);

        if (rn_time_before(call->give_up, now)) {
            call_give_up(call);
            continue;
        }
        TAILQ_REMOVE(&m->later, call, link);
        m->later_count--;
        call_transmit(m, call);
    }
}

/* While the store is away nothing is sent, but what means nothing any more goes. */
static void on_again(void *user, ration_time now)
{
    rn_member *const m = user;
    rn_member_call *next;

    if (!rn_member_is_away(m)) {
        rn_member_call_flush(m);
        return;
    }
    for (rn_member_call *call = TAILQ_FIRST(&m->later); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        if (rn_time_before(call->give_up, now))
            call_give_up(call);
    }
    if (m->later_count > 0)
        (void)rn_timer_set(&m->again, rn_time_add(now, DOWN_US));
}

/* It is asked rather than told: without an answer there is none. */
static bool is_asked(const rn_member_call *call)
{
    switch (call->script) {
    case RN_SCRIPT_ADMIT:
    case RN_SCRIPT_PREFETCH:
    case RN_SCRIPT_COLLECT:
    case RN_SCRIPT_ADVANCE:
    case RN_SCRIPT_OPERATE:
    case RN_SCRIPT_INSPECT:
        return true;
    case RN_SCRIPT_OBSERVE:
    case RN_SCRIPT_RELEASE:
    case RN_SCRIPT_SETTLE:
    case RN_SCRIPT_RENEW:
    case RN_SCRIPT_CANCEL:
    case RN_SCRIPT_HEALTH:
    case RN_SCRIPT_BEAT:
    case RN_SCRIPT_TENANTS:
    case RN_SCRIPT_COUNT:
        break;
    }
    return false;
}

/* Whoever has asked for a circuit hears of it; `reply` NULL: there is none. */
static void advanced(rn_member *m, const rn_member_call *call, const redisReply *reply)
{
    if (call->route != NULL) {
        rn_member_watched(m, reply);
    } else if (call->gate.data != NULL) {
        rn_member_gate_told(m, call, reply);
    }
}

static void call_fail(rn_member_call *call)
{
    rn_member *const m = call->member;

    if (call->script == RN_SCRIPT_ADMIT) {
        rn_member_admitted(m, call, NULL);
    } else if (call->script == RN_SCRIPT_PREFETCH) {
        rn_member_block_answered(m, call, NULL);
    } else if (call->script == RN_SCRIPT_ADVANCE) {
        advanced(m, call, NULL);
    }
    if (is_asked(call)) {
        if (call->script == RN_SCRIPT_INSPECT)
            rn_member_inspected(m, call, NULL);
        rn_member_call_tell(call, RATION_ERR_IO);
        (void)call_drop(call); /* nothing comes after these */
    } else {
        call_put_off(call);
    }
}

/* ---- answers */

/*
 * Others' leases are their own members' affair. One of ours that its holder renews is over; a call that runs goes on
 * running, though its renewal came too late: it holds again what it holds.
 */
static void lost_one(rn_member *m, rn_member_lease *lease)
{
    if (lease->stage == RN_OURS_BLOCK) {
        rn_member_block_lost(m, lease);
    } else if (lease->stage == RN_OURS_HELD && lease->own) {
        rn_member_tell_lost(m, lease);
    } else if (lease->stage == RN_OURS_HELD) {
        rn_member_enter(m, lease);
    }
}

static void lost_take(rn_member *m, const redisReply *reply)
{
    rn_fleet_lost lost;

    for (size_t i = 0; rn_answer_lost(reply, i, &lost); i++) {
        rn_member_lease *const lease = rn_member_lease_named(m, lost.id);

        if (lease != NULL)
            lost_one(m, lease);
    }
}

/* What the call has brought about: an adaptive limit has moved, or somebody who waited is heard, perhaps ours. */
static void events_take(rn_member *m, const rn_member_call *call, const redisReply *reply)
{
    rn_fleet_event event;

    for (size_t i = 0; rn_answer_event(reply, i, &event); i++) {
        if (rn_text_is(event.what, "breaker") || rn_text_is(event.what, "health")) {
            rn_member_tell_circuit(m, call->world, &event);
        } else if (!rn_text_is(event.what, "limit")) {
            rn_member_heard(m, &event);
        } else if (call->script == RN_SCRIPT_OPERATE) {
            rn_member_tell_reset(m, call, &event);
        } else if (call->route != NULL) {
            rn_member_tell_limit(m, call->world, call->route, &event);
        }
    }
}

static bool window_take(rn_member *m, rn_member_call *call, const redisReply *reply)
{
    if (call->windows == NULL)
        call->windows = rn_mem_zalloc(&m->mem, RN_CALL_WINDOWS_MAX, sizeof *call->windows);
    return call->windows != NULL && rn_answer_window(reply, call->windows, &call->window_count);
}

static void renewed_take(rn_member *m, const rn_member_call *call, const redisReply *reply)
{
    for (size_t i = 0; rn_answer_number(reply, i, 0) > 0; i++) {
        const size_t gone = (size_t)rn_answer_number(reply, i, 0) - 1;
        rn_member_lease *const lease = gone < call->many_count ? rn_member_lease_find(m, call->many[gone]) : NULL;

        if (lease != NULL)
            lost_one(m, lease);
    }
}

static void call_done(rn_member_call *call, const redisReply *reply)
{
    rn_member *const m = call->member;

    if (call->script == RN_SCRIPT_ADMIT) {
        rn_member_admitted(m, call, reply);
    } else if (call->script == RN_SCRIPT_PREFETCH) {
        rn_member_block_answered(m, call, reply);
    } else if (call->script == RN_SCRIPT_RENEW) {
        renewed_take(m, call, reply);
    } else if (call->script == RN_SCRIPT_COLLECT) {
        rn_member_collected(m, call, reply);
    } else if (call->script == RN_SCRIPT_OPERATE) {
        rn_member_call_tell(call, rn_answer_operated(reply));
    } else if (call->script == RN_SCRIPT_INSPECT) {
        rn_member_inspected(m, call, reply);
    } else if (call->script == RN_SCRIPT_ADVANCE) {
        advanced(m, call, reply);
    }
    rn_member_call_free(call);
}

static void on_answered(void *ctx, int err, const redisReply *reply, const char *text)
{
    rn_member_call *const call = ctx;
    rn_member *const m = call->member;
    const ration_time now = rn_member_now(m);

    TAILQ_REMOVE(&m->calls, call, link);
    m->call_count--;
    if (m->store == NULL) { /* the end */
        rn_member_call_free(call);
        return;
    }
    m->woken(m->ctx); /* there may be events, and another deadline */
    if (err == RATION_OK && !rn_answer_is(reply)) {
        err = RATION_ERR_IO;
        text = "an answer that is none";
    }
    if (err != RATION_OK) {
        (void)snprintf(m->last_error, sizeof m->last_error, "%s", text);
        m->failed++;
        if (m->failed_call != NULL && rn_store_state_of(m->store) != RN_STORE_DOWN)
            m->failed_call(m->ctx, m->last_error);
        call_fail(call);
        rn_member_leave_look(m);
        return;
    }
    m->ahead_us = rn_sub(rn_answer_at(reply).us, now.us);
    rn_member_times_add(&m->times[call->script], rn_sub(now.us, call->sent_at.us));
    lost_take(m, reply);
    events_take(m, call, reply);
    if (rn_answer_result(reply) != RN_ANSWER_WINDOW) {
        call_done(call, reply);
    } else if (window_take(m, call, reply)) {
        call_transmit(m, call);
    } else {
        (void)snprintf(m->last_error, sizeof m->last_error, "a window that is none");
        call_fail(call);
    }
    rn_member_leave_look(m);
}

/* ---- sending */

void rn_member_call_for(rn_member *m, const rn_member_world *world)
{
    m->call.book = &world->rules.book;
    m->call.fleet = world->rules.name;
    m->call.member = ration_text_of(m->id);
    m->call.waiter_ttl_us = m->settings.waiter_ttl_us;
}

static int call_write(rn_member *m, const rn_member_call *call)
{
    ration_text ids[RN_CALL_IDS_MAX];
    const bool many = call->script == RN_SCRIPT_RENEW || call->script == RN_SCRIPT_COLLECT;
    rn_call_counter at;
    const rn_call_operation operation = {.op = call->op, .at = &at, .units = call->units};
    const rn_call_what what = {
        .script = call->script,
        .route = call->route,
        .id = many                                ? call->route->provider->name
              : call->script == RN_SCRIPT_ADVANCE ? call->provider
                                                  : ration_text_of(call->name),
        .circuit = call->circuit,
        .ask = &call->ask,
        .response = &call->response,
        .said = call->has_said ? &call->said : NULL,
        .end = &call->end,
        .health = &call->health,
        .operation = &operation,
        .ids = ids,
        .id_count = call->many_count,
    };
    char names[RN_CALL_IDS_MAX][RN_MEMBER_NAME];
    int err = RATION_OK;

    m->call.now = rn_time_add(rn_member_now(m), m->ahead_us);
    m->call.window_count = call->window_count;
    if (call->window_count > 0)
        memcpy(m->call.windows, call->windows, call->window_count * sizeof *call->windows);
    if (call->script == RN_SCRIPT_INSPECT)
        return rn_member_inspect_write(m, call);
    if (call->script == RN_SCRIPT_OPERATE)
        err = rn_member_counter(call->world, &call->counter, &at);
    if (err != RATION_OK)
        return err;
    for (size_t i = 0; i < call->many_count; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s.%u.%u", m->id, call->many[i].index, call->many[i].generation);
        ids[i] = ration_text_of(names[i]);
    }
    rn_member_call_for(m, call->world);
    return rn_call_write(&m->call, &what);
}

static void call_transmit(rn_member *m, rn_member_call *call)
{
    ration_text keys[RN_CALL_KEYS_MAX];
    int err = RATION_ERR_IO;

    if (!rn_member_is_away(m))
        err = call_write(m, call);
    if (err == RATION_OK) {
        rn_call_keys(&m->call, keys);
        call->sent_at = rn_member_now(m);
        err = rn_store_run(m->store,
                           &(rn_store_script){.name = call->script,
                                              .keys = keys,
                                              .key_count = m->call.key_count,
                                              .argument = {m->call.argument.data, m->call.argument.size},
                                              .brief = {m->call.brief.data, m->call.brief.size}},
                           on_answered, call);
    }
    if (err == RATION_OK) {
        TAILQ_INSERT_TAIL(&m->calls, call, link);
        m->call_count++;
    } else {
        call_fail(call);
    }
}

void rn_member_call_many(rn_member *m, rn_script_name script, const rn_member_lease *first, const ration_lease *leases,
                         size_t count)
{
    rn_member_call *const call = rn_member_call_new(m, script, first);
    ration_lease *const copy = call != NULL ? rn_mem_zalloc(&m->mem, count, sizeof *copy) : NULL;

    if (copy == NULL) {
        if (call != NULL)
            rn_member_call_free(call);
        return;
    }
    memcpy(copy, leases, count * sizeof *copy);
    call->many = copy;
    call->many_count = count;
    rn_member_call_send(m, call);
}

static bool is_told(rn_script_name script)
{
    return script == RN_SCRIPT_OBSERVE || script == RN_SCRIPT_SETTLE || script == RN_SCRIPT_RELEASE;
}

/*
 * What is told of a lease comes after what has been told of it: a script that a server does not know is given to it,
 * and is run after what was sent behind it. True: it is sent once that is answered.
 */
static bool call_follows(rn_member *m, rn_member_call *call)
{
    rn_member_lease *const lease = rn_member_lease_find(m, call->lease);
    rn_member_call *before;

    if (lease == NULL || !is_told(call->script))
        return false;
    before = lease->told;
    lease->told = call;
    if (before != NULL)
        before->then = call;
    return before != NULL;
}

/* What is told stays in order. */
void rn_member_call_send(rn_member *m, rn_member_call *call)
{
    if (call_follows(m, call))
        return;
    if (m->later_count > 0 && !is_asked(call)) {
        call_put_off(call);
    } else {
        call_transmit(m, call);
    }
}

void rn_member_calls_init(rn_member *m)
{
    TAILQ_INIT(&m->calls);
    TAILQ_INIT(&m->later);
    rn_timer_init(&m->again, m->loop, on_again, m);
}

/* Those that the store had have been answered by its end. */
void rn_member_calls_fini(rn_member *m)
{
    rn_timer_stop(&m->again);
    while (!TAILQ_EMPTY(&m->later)) {
        rn_member_call *const call = TAILQ_FIRST(&m->later);

        TAILQ_REMOVE(&m->later, call, link);
        rn_member_call_free(call);
    }
}
