/* SPDX-License-Identifier: MIT */
/*
 * A semaphore of the fleet: an agent (agent.h) with one adaptive limit, and a door to it for threads that block.
 *
 * An acquire is an ask that a cancel may give up: that posts a second task, and whoever sleeps goes only once that has
 * run.
 *
 * As the in-process limit (core/adaptive_alone.c): a throttled call means what the limit makes of it, no penalty.
 */
#include "fleet/acquire.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "core/aimd.h"
#include "core/engine.h"
#include "fleet/agent.h"
#include "fleet/cancel.h"

#define THROTTLED 429
#define NO_STATUS 999 /* none is ever observed */

typedef struct holding {
    uint32_t generation; /* 0: none */
    ration_time since;
} holding;

struct ration_semaphore {
    rn_agent agent;
    ration_semaphore_options options; /* callbacks and numbers; its texts are not kept */
    holding *held;                    /* by a lease's index */
    size_t held_size;
    atomic_int_least64_t limit, held_count;
};

static ration_semaphore *semaphore_of(rn_agent *agent)
{
    return (ration_semaphore *)(void *)agent;
}

/* ---- what it tells */

static void measure(ration_semaphore *s, const ration_semaphore_metric *metric)
{
    if (s->options.on_metric != NULL)
        s->options.on_metric(s->options.ctx, metric);
}

static void on_away(rn_agent *agent, const char *why)
{
    ration_semaphore *const s = semaphore_of(agent);
    const int64_t local = s->options.local_limit;

    measure(s, &(ration_semaphore_metric){.kind = RATION_SEMAPHORE_AWAY, .value = local});
    if (local > 0) {
        rn_agent_complain(agent, "the store is away, and this process grants up to %lld by itself: %s",
                          (long long)local, why);
    } else {
        rn_agent_complain(agent, "the store is away, and acquires are refused: %s", why);
    }
}

static void on_back(rn_agent *agent)
{
    measure(semaphore_of(agent), &(ration_semaphore_metric){.kind = RATION_SEMAPHORE_BACK});
}

/* ---- what is held */

/* False: no memory. */
static bool hold(ration_semaphore *s, ration_lease lease, ration_time now)
{
    if (lease.index >= s->held_size) {
        const size_t size = 2 * ((size_t)lease.index + 8);
        holding *const more = rn_mem_zalloc(rn_mem_default(), size, sizeof *more);

        if (more == NULL)
            return false;
        if (s->held_size > 0)
            memcpy(more, s->held, s->held_size * sizeof *more);
        rn_mem_free(rn_mem_default(), s->held);
        s->held = more;
        s->held_size = size;
    }
    s->held[lease.index] = (holding){lease.generation, now};
    (void)atomic_fetch_add(&s->held_count, 1);
    return true;
}

/* NULL: it is not held, or not any more. */
static holding *held_find(ration_semaphore *s, ration_lease lease)
{
    holding *const at = lease.index < s->held_size ? &s->held[lease.index] : NULL;

    return at != NULL && at->generation == lease.generation ? at : NULL;
}

static void held_end(ration_semaphore *s, holding *at)
{
    at->generation = 0;
    (void)atomic_fetch_sub(&s->held_count, 1);
}

/* ---- the fleet's thread */

static void lost(ration_semaphore *s, ration_lease lease)
{
    holding *const at = held_find(s, lease);

    if (at == NULL)
        return;
    held_end(s, at);
    measure(s, &(ration_semaphore_metric){.kind = RATION_SEMAPHORE_LOST});
    rn_agent_complain(&s->agent, "a lease was lost: it had not been renewed within its time to live");
}

static void limit_moved(ration_semaphore *s, int64_t units)
{
    const int64_t limit = units / RATION_UNIT;

    atomic_store(&s->limit, limit);
    measure(s, &(ration_semaphore_metric){.kind = RATION_SEMAPHORE_LIMIT, .value = limit});
    if (s->options.on_limit_change != NULL)
        s->options.on_limit_change(s->options.ctx, limit);
}

static void on_event(rn_agent *agent, const ration_event *event)
{
    if (event->type == RATION_EVENT_LOST) {
        lost(semaphore_of(agent), event->lease);
    } else if (event->type == RATION_EVENT_LIMIT) {
        limit_moved(semaphore_of(agent), event->value);
    } /* it has neither penalties nor breakers */
}

static const rn_agent_ops ops = {.noun = "semaphore", .event = on_event, .away = on_away, .back = on_back};

typedef struct acquire {
    rn_agent_ask ask;
    rn_task give_up;
    rn_watch watches[2];
    bool cancelled; /* `give_up` is posted ... */
    bool gave_up;   /* ... and has run; both under the fleet's lock */
} acquire;

static void acquire_settle(rn_agent_ask *ask)
{
    ration_semaphore *const s = semaphore_of(ask->agent);
    const ration_time now = rn_loop_now(s->agent.fleet->loop);
    const int64_t span_us = rn_sub(now.us, ask->since.us);
    const ration_completion unused = {.outcome = RATION_OUTCOME_CANCELLED, .cost = RATION_UNSET};
    const bool granted = ask->err == RATION_OK && ask->decision.result == RATION_GRANTED;

    if (granted && !hold(s, ask->decision.lease, now)) {
        (void)s->agent.decider->ops->release(s->agent.decider, now, ask->decision.lease, &unused);
        ask->err = RATION_ERR_NOMEM;
    } else if (granted) {
        measure(s, &(ration_semaphore_metric){.kind = RATION_SEMAPHORE_ACQUIRED, .span_us = span_us});
    } else if (ask->err == RATION_OK) {
        measure(s, &(ration_semaphore_metric){
                       .kind = RATION_SEMAPHORE_REFUSED, .reason = ask->decision.reason, .span_us = span_us});
    }
}

static ration_decision cancelled_at(ration_time now)
{
    return (ration_decision){.result = RATION_REFUSED,
                             .reason = RATION_REASON_CANCELLED,
                             .at = now,
                             .retry_at = {RATION_NEVER_US},
                             .facts = RN_NO_FACTS};
}

/* It may have been given up before it is here. */
static void acquire_ask(rn_task *task)
{
    acquire *const a = (acquire *)(void *)task;
    const ration_decision decision = cancelled_at(rn_loop_now(a->ask.agent->fleet->loop));

    a->ask.since = decision.at;
    if (a->gave_up) {
        rn_agent_answer(&a->ask, RATION_OK, &decision);
    } else {
        rn_agent_ask_now(&a->ask);
    }
}

static void acquire_give_up(rn_task *task)
{
    acquire *const a = (acquire *)(void *)((char *)task - offsetof(acquire, give_up));
    rn_agent *const agent = a->ask.agent;
    const ration_decision decision = cancelled_at(rn_loop_now(agent->fleet->loop));

    if (a->ask.lease.generation != 0 &&
        agent->decider->ops->cancel(agent->decider, decision.at, a->ask.lease) == RATION_OK)
        rn_agent_answer(&a->ask, RATION_OK, &decision);
    rn_agent_wake(agent);
    (void)pthread_mutex_lock(&agent->fleet->lock);
    a->gave_up = true;
    (void)pthread_cond_signal(&a->ask.woken);
    (void)pthread_mutex_unlock(&agent->fleet->lock);
}

/* ---- acquiring */

/* The cancel's lock is held, so the acquire is still there. */
static void on_fired(rn_watch *watch)
{
    acquire *const a = watch->user;
    ration_fleet *const fleet = a->ask.agent->fleet;
    bool post;

    (void)pthread_mutex_lock(&fleet->lock);
    post = !a->ask.answered && !a->cancelled;
    a->cancelled = a->cancelled || post;
    (void)pthread_mutex_unlock(&fleet->lock);
    if (post)
        rn_client_post(fleet, &a->give_up);
}

/* False: one of them has been fired, and none is watched. */
static bool watch(acquire *a, ration_cancel *const cancels[2])
{
    for (size_t i = 0; i < 2; i++) {
        a->watches[i] = (rn_watch){.fired = on_fired, .user = a};
        if (rn_cancel_watch(cancels[i], &a->watches[i]))
            continue;
        if (i == 1)
            rn_cancel_unwatch(cancels[0], &a->watches[0]);
        return false;
    }
    return true;
}

/* Until it is answered, and nobody has it any more. */
static void acquire_sleep(acquire *a, ration_cancel *const cancels[2])
{
    pthread_mutex_t *const lock = &a->ask.agent->fleet->lock;

    rn_agent_ask_sleep(&a->ask);
    for (size_t i = 0; i < 2; i++)
        rn_cancel_unwatch(cancels[i], &a->watches[i]);
    (void)pthread_mutex_lock(lock);
    while (a->cancelled && !a->gave_up)
        (void)pthread_cond_wait(&a->ask.woken, lock);
    (void)pthread_mutex_unlock(lock);
}

int rn_semaphore_acquire(ration_semaphore *semaphore, const ration_acquire *how, ration_cancel *also,
                         ration_decision *out)
{
    const ration_acquire usual = RATION_ACQUIRE_INIT;
    acquire a = {.give_up = {.run = acquire_give_up}};

    if (how == NULL)
        how = &usual;
    if (semaphore == NULL || out == NULL || (how->timeout_us < 0 && how->timeout_us != RATION_UNSET) ||
        rn_client_is_inside(semaphore->agent.fleet))
        return RATION_ERR_INVALID;

    ration_cancel *const cancels[2] = {how->cancel, also};

    rn_agent_ask_init(&a.ask, &semaphore->agent, how, acquire_settle);
    a.ask.task.run = acquire_ask;
    if (watch(&a, cancels)) {
        acquire_sleep(&a, cancels);
    } else {
        a.ask.decision = cancelled_at(ration_time_of(0));
    }
    rn_agent_ask_fini(&a.ask);
    if (a.ask.err == RATION_OK)
        *out = a.ask.decision;
    return a.ask.err;
}

int ration_semaphore_acquire(ration_semaphore *semaphore, const ration_acquire *how, ration_decision *out)
{
    return rn_semaphore_acquire(semaphore, how, NULL, out);
}

/* ---- releasing */

typedef struct ending {
    ration_semaphore *semaphore;
    ration_lease lease;
    ration_outcome outcome;
} ending;

/* Only a response can say that a call was throttled and is no penalty. */
static void release_begin(rn_client_job *job)
{
    const ending *const e = job->with;
    ration_semaphore *const s = e->semaphore;
    rn_decider *const decider = s->agent.decider;
    const ration_time now = rn_loop_now(s->agent.fleet->loop);
    const ration_completion completion = {.outcome = e->outcome, .cost = RATION_UNSET};
    const ration_response throttled = {.status = THROTTLED};
    holding *const at = held_find(s, e->lease);
    int err = RATION_OK;

    if (at == NULL) {
        rn_client_done(job, RATION_OK);
        return;
    }
    if (e->outcome == RATION_OUTCOME_THROTTLED)
        err = decider->ops->observe(decider, now, e->lease, &throttled);
    if (err != RATION_ERR_NOMEM) {
        (void)decider->ops->release(decider, now, e->lease, &completion);
        measure(s, &(ration_semaphore_metric){.kind = RATION_SEMAPHORE_RELEASED,
                                              .outcome = e->outcome,
                                              .span_us = rn_sub(now.us, at->since.us)});
        held_end(s, at);
        err = RATION_OK;
    }
    rn_agent_wake(&s->agent);
    rn_client_done(job, err);
}

int ration_semaphore_release(ration_semaphore *semaphore, ration_lease lease, ration_outcome outcome)
{
    ending e = {.semaphore = semaphore, .lease = lease, .outcome = outcome};

    if (semaphore == NULL || lease.generation == 0 || (unsigned)outcome > RATION_OUTCOME_CANCELLED)
        return RATION_ERR_INVALID;
    return rn_client_call(semaphore->agent.fleet, release_begin, &e);
}

ration_outcome rn_acquire_outcome(const ration_acquire *how, int result)
{
    if (result == 0)
        return RATION_OUTCOME_SUCCESS;
    return how != NULL && how->outcome_on_error != NULL ? how->outcome_on_error(how->ctx, result)
                                                        : RATION_OUTCOME_FAILURE;
}

int ration_semaphore_with_lease(ration_semaphore *semaphore, const ration_acquire *how, int (*fn)(void *ctx), void *ctx,
                                int *result, ration_decision *out)
{
    if (fn == NULL || result == NULL)
        return RATION_ERR_INVALID;

    const int err = ration_semaphore_acquire(semaphore, how, out);

    if (err != RATION_OK || out->result != RATION_GRANTED)
        return err;
    *result = fn(ctx);
    return ration_semaphore_release(semaphore, out->lease, rn_acquire_outcome(how, *result));
}

int64_t ration_semaphore_limit(ration_semaphore *semaphore)
{
    return semaphore != NULL ? atomic_load(&semaphore->limit) : 0;
}

int64_t ration_semaphore_held(ration_semaphore *semaphore)
{
    return semaphore != NULL ? atomic_load(&semaphore->held_count) : 0;
}

/* ---- life */

static void dispose_begin(rn_client_job *job)
{
    rn_agent *const agent = job->with;

    (void)agent->decider->ops->operate(agent->decider, rn_loop_now(agent->fleet->loop), RATION_OP_DRAIN, NULL, 0);
    rn_member_lapse(agent->member);
    rn_agent_wake(agent);
    rn_client_done(job, RATION_OK);
}

void ration_semaphore_dispose(ration_semaphore *semaphore)
{
    if (semaphore != NULL)
        (void)rn_client_call(semaphore->agent.fleet, dispose_begin, &semaphore->agent);
}

typedef struct making {
    ration_semaphore *semaphore;
    const ration_adaptive_rule *rule;
    char text[RN_MEMBER_TEXT];
} making;

static void new_begin(rn_client_job *job)
{
    static const int none[] = {NO_STATUS};
    static const int throttled[] = {THROTTLED};
    static const char *const scope[] = {"provider"};
    making *const with = job->with;
    const ration_limit_rule limit = {
        .name = "adaptive",
        .kind = RATION_KIND_ADAPTIVE,
        .counts = RATION_COUNTS_REQUESTS,
        .scope = scope,
        .scope_count = 1,
        .margin = RATION_UNSET,
        .arrival_us = RATION_UNSET,
        .adaptive = *with->rule,
    };
    const int64_t local = with->semaphore->options.local_limit;
    const rn_agent_rules rules = {
        .provider =
            {.limits = &limit,
             .limit_count = 1,
             .errors = {.rate_limited = none, .rate_limited_count = 1, .throttled = throttled, .throttled_count = 1}},
        .local_limit = local > 0 ? local : RATION_UNSET,
        .lease_ttl_us = with->rule->lease_ttl_us,
    };

    rn_client_done(job, rn_agent_open(&with->semaphore->agent, &rules, with->text));
}

static int rule_check(const ration_semaphore_options *options, ration_fault *fault, int64_t *initial)
{
    rn_aimd_spec spec;
    const int err = rn_aimd_spec_init(&spec, &options->rule, fault);

    if (err != RATION_OK)
        return err;
    *initial = spec.initial;
    if (options->rule.pause_on_retry_after || options->local_limit < 0) {
        (void)snprintf(fault->path, sizeof fault->path, "%s",
                       options->local_limit < 0 ? "localLimit" : "pauseOnRetryAfter");
        (void)snprintf(fault->text, sizeof fault->text, "%s",
                       options->local_limit < 0 ? "cannot be negative" : "a semaphore is told no times");
        return RATION_ERR_CONFIG;
    }
    return RATION_OK;
}

int ration_semaphore_new(ration_fleet *fleet, const ration_semaphore_options *options, ration_semaphore **out,
                         ration_fault *fault)
{
    ration_fault ignored = {0};
    ration_fault *const told = fault != NULL ? fault : &ignored;
    int64_t initial = 0;

    if (fleet == NULL || options == NULL || out == NULL || options->id == NULL || options->id[0] == '\0')
        return RATION_ERR_INVALID;

    int err = rule_check(options, told, &initial);

    if (err != RATION_OK)
        return err;

    ration_semaphore *const s = rn_mem_zalloc(rn_mem_default(), 1, sizeof *s);
    making with = {.semaphore = s, .rule = &options->rule};

    if (s == NULL)
        return RATION_ERR_NOMEM;
    s->options = *options;
    s->agent.on_error = options->on_error;
    s->agent.ctx = options->ctx;
    atomic_init(&s->limit, initial);
    err = rn_agent_init(&s->agent, &ops, fleet, options->id);
    if (err == RATION_OK)
        err = rn_client_call(fleet, new_begin, &with);
    if (err != RATION_OK) {
        rn_agent_fault(told, with.text);
        rn_agent_fini(&s->agent);
        rn_mem_free(rn_mem_default(), s);
        return err;
    }
    *out = s;
    return RATION_OK;
}

static void free_begin(rn_client_job *job)
{
    rn_agent_close(job->with, job);
}

void ration_semaphore_free(ration_semaphore *semaphore)
{
    if (semaphore == NULL)
        return;
    (void)rn_client_call(semaphore->agent.fleet, free_begin, &semaphore->agent);
    rn_agent_fini(&semaphore->agent);
    rn_mem_free(rn_mem_default(), semaphore->held);
    rn_mem_free(rn_mem_default(), semaphore);
}
