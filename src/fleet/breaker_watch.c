/* SPDX-License-Identifier: MIT */
/*
 * What a process knows of a circuit that all of its fleet share, and the health checks that fall to it.
 *
 * The store moves the circuit; here is only what was last heard of it, newest by the store's instants. It decides
 * nothing but to block a call that the store would block, to end the waits of those that may not go any more, and what
 * is done while the store is away.
 *
 * A check is handed to one process, under a number. It runs on a thread of its own, since it may take its time, one at
 * a time; its answer goes with the newest number that this process has been handed, and the store takes it only if
 * nobody has been handed a newer one.
 */
#include "fleet/breaker_parts.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "base/units.h"
#include "net/clock.h"

/* ---- what is known */

static void role_look(ration_breaker *b)
{
    const bool asked = b->known.state != RATION_BREAKER_CLOSED || b->options.rule.idle_interval_us > 0;

    atomic_store(&b->role,
                 asked && b->own_check > 0 && b->own_check == b->check ? RATION_ROLE_CHECKER : RATION_ROLE_FOLLOWER);
}

static bool is_newer(const rn_member_circuit *a, const rn_member_circuit *b)
{
    return a->at.us > b->at.us || (a->at.us == b->at.us && a->generation >= b->generation);
}

static void circuit_take(ration_breaker *b, const rn_member_circuit *circuit)
{
    const ration_circuit_state from = b->known.state;
    rn_builder cause;

    b->known = *circuit;
    rn_builder_init(&cause, b->cause, sizeof b->cause);
    rn_builder_text(&cause, circuit->cause);
    b->known.cause = (ration_text){b->cause, strlen(b->cause)};
    if (circuit->checks != RATION_UNSET)
        b->check = circuit->checks;
    role_look(b);
    if (circuit->state == RATION_BREAKER_OPEN)
        rn_fleet_breaker_bar(b, RATION_REASON_CIRCUIT_OPEN);
    if (circuit->state == from)
        return;
    atomic_store(&b->state, (int)circuit->state);
    rn_fleet_breaker_measure(b, &(ration_breaker_metric){.kind = RATION_BREAKER_METRIC_STATE, .state = circuit->state});
    if (b->options.on_state_change != NULL)
        b->options.on_state_change(b->options.ctx, from, circuit->state, b->cause);
}

void rn_fleet_breaker_seen(void *ctx, const rn_member_circuit *circuit)
{
    ration_breaker *const b = ctx;
    rn_client_job *const starting = b->starting;

    if (circuit == NULL) {
        rn_agent_look(&b->agent);
    } else if (is_newer(circuit, &b->known)) {
        circuit_take(b, circuit);
    }
    /* Another process has opened it meanwhile: what was kept is from before, and must not open it when it closes. */
    if (circuit != NULL && b->known.state == RATION_BREAKER_CLOSED) {
        rn_fleet_breaker_tell_kept(b);
    } else if (circuit != NULL) {
        rn_fleet_breaker_forget_kept(b);
    }
    b->starting = NULL;
    if (starting != NULL)
        rn_client_done(starting, RATION_OK);
}

/* ---- health checks */

static void check_due(ration_breaker *b, int64_t number)
{
    ration_fleet *const fleet = b->agent.fleet;

    b->check = b->own_check = number;
    role_look(b);
    (void)pthread_mutex_lock(&fleet->lock);
    b->check_due = true;
    (void)pthread_cond_signal(&b->due);
    (void)pthread_mutex_unlock(&fleet->lock);
}

void rn_fleet_breaker_event(rn_agent *agent, const ration_event *event)
{
    ration_breaker *const b = (ration_breaker *)(void *)agent;

    if (event->type == RATION_EVENT_HEALTH) {
        check_due(b, event->value);
    } else if (event->type == RATION_EVENT_BREAKER) {
        rn_member_watch_now(agent->member); /* which change it was may have been published, or not */
    }                                       /* it has no limits, and what it holds is lost only when it is stopped */
}

typedef struct checked {
    ration_breaker *breaker;
    bool ok;
    int64_t span_us;
} checked;

/* What has fallen due meanwhile is answered with it. */
static void checked_begin(rn_client_job *job)
{
    const checked *const with = job->with;
    ration_breaker *const b = with->breaker;
    rn_decider *const decider = b->agent.decider;

    (void)pthread_mutex_lock(&b->agent.fleet->lock);
    b->check_due = false;
    (void)pthread_mutex_unlock(&b->agent.fleet->lock);
    (void)decider->ops->health(decider, rn_loop_now(b->agent.fleet->loop), ration_text_of(RN_AGENT_ACCOUNT), with->ok);
    rn_fleet_breaker_measure(
        b, &(ration_breaker_metric){.kind = RATION_BREAKER_METRIC_CHECKED, .ok = with->ok, .span_us = with->span_us});
    rn_agent_wake(&b->agent);
    rn_client_done(job, RATION_OK);
}

static bool check_await(ration_breaker *b)
{
    pthread_mutex_t *const lock = &b->agent.fleet->lock;
    bool due;

    (void)pthread_mutex_lock(lock);
    while (!b->check_due && !b->checker_ends)
        (void)pthread_cond_wait(&b->due, lock);
    due = !b->checker_ends;
    (void)pthread_mutex_unlock(lock);
    return due;
}

static void *checker_main(void *ctx)
{
    ration_breaker *const b = ctx;

    while (check_await(b)) {
        const int64_t began_us = rn_clock_ticks();
        checked with = {.breaker = b, .ok = b->options.health(b->options.ctx)};

        with.span_us = rn_clock_ticks() - began_us;
        (void)rn_client_call(b->agent.fleet, checked_begin, &with);
    }
    return NULL;
}

int rn_fleet_breaker_checker_start(ration_breaker *b)
{
    pthread_t thread;

    if (!b->has_checks)
        return RATION_OK;
    b->check_due = b->checker_ends = false;

    const int err = rn_client_thread(&thread, "ration-health", checker_main, b);

    if (err != RATION_OK)
        return err;
    (void)pthread_mutex_lock(&b->agent.fleet->lock);
    b->checker = thread;
    b->has_checker = true;
    (void)pthread_mutex_unlock(&b->agent.fleet->lock);
    return RATION_OK;
}

bool rn_fleet_breaker_is_checker(ration_breaker *b)
{
    bool is;

    (void)pthread_mutex_lock(&b->agent.fleet->lock);
    is = b->has_checker && pthread_equal(pthread_self(), b->checker) != 0;
    (void)pthread_mutex_unlock(&b->agent.fleet->lock);
    return is;
}

void rn_fleet_breaker_checker_stop(ration_breaker *b)
{
    if (!b->has_checks)
        return;
    (void)pthread_mutex_lock(&b->agent.fleet->lock);
    b->checker_ends = true;
    (void)pthread_cond_signal(&b->due);
    (void)pthread_mutex_unlock(&b->agent.fleet->lock);
    (void)pthread_join(b->checker, NULL);
    (void)pthread_mutex_lock(&b->agent.fleet->lock);
    b->has_checker = false;
    (void)pthread_mutex_unlock(&b->agent.fleet->lock);
}
