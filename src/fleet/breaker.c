/* SPDX-License-Identifier: MIT */
/*
 * A breaker of the fleet: an agent (agent.h) whose provider has a breaker and no limits, so that a lease of it is a
 * pass through the circuit and nothing else.
 *
 * A call first gets its pass, then, where there is a semaphore, its slot, then it is made; its result goes to the
 * circuit with the pass, whatever becomes of the slot. Its wait for the slot has a cancel that is fired when the
 * circuit opens: who is barred by then, or before `fn` is called, is not called.
 *
 * While the store is away what was last known of the circuit decides. Calls that it lets through have no pass; their
 * results are kept, and told each with a pass of its own when the store is back.
 *
 * Invariants: a run is in `runs` from its pass to its end, which its own thread awaits. It is called or barred, never
 * both.
 */
#include "fleet/breaker_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "core/breaker.h"
#include "core/engine.h"
#include "fleet/acquire.h"
#include "net/clock.h"

#define KEPT_MAX 512

static ration_breaker *breaker_of(rn_agent *agent)
{
    return (ration_breaker *)(void *)agent;
}

/* ---- what it tells */

void rn_fleet_breaker_measure(ration_breaker *b, const ration_breaker_metric *metric)
{
    if (b->options.on_metric != NULL)
        b->options.on_metric(b->options.ctx, metric);
}

static void blocked(ration_breaker *b, int64_t waited_us)
{
    rn_fleet_breaker_measure(
        b,
        &(ration_breaker_metric){.kind = RATION_BREAKER_METRIC_BLOCKED, .state = b->known.state, .span_us = waited_us});
}

static void on_away(rn_agent *agent, const char *why)
{
    static const char *const names[] = {"closed", "open", "half-open"};
    ration_breaker *const b = breaker_of(agent);

    rn_fleet_breaker_measure(b, &(ration_breaker_metric){.kind = RATION_BREAKER_METRIC_AWAY, .state = b->known.state});
    rn_agent_complain(agent, "the store is away, and the circuit stays %s: %s", names[b->known.state], why);
}

static void on_back(rn_agent *agent)
{
    ration_breaker *const b = breaker_of(agent);

    rn_fleet_breaker_measure(b, &(ration_breaker_metric){.kind = RATION_BREAKER_METRIC_BACK, .state = b->known.state});
    rn_member_watch_now(agent->member);
}

/* ---- passes */

/* The store would say the same: until it tries again it lets nobody through. */
static bool on_decide(rn_agent *agent, ration_decision *out)
{
    const ration_breaker *const b = breaker_of(agent);

    if (b->known.state != RATION_BREAKER_OPEN || !rn_time_known(b->known.retry_at) ||
        !rn_time_before(out->at, b->known.retry_at))
        return false;
    out->reason = RATION_REASON_CIRCUIT_OPEN;
    out->retry_at = b->known.retry_at;
    return true;
}

static const rn_agent_ops ops = {
    .noun = "breaker", .decide = on_decide, .event = rn_fleet_breaker_event, .away = on_away, .back = on_back};

/* The store does not say. */
static void decide_alone(const ration_breaker *b, ration_decision *out)
{
    const bool closed = b->known.state == RATION_BREAKER_CLOSED;

    out->result = closed ? RATION_GRANTED : RATION_REFUSED;
    out->reason = closed ? RATION_REASON_NONE : RATION_REASON_CIRCUIT_OPEN;
    out->lease = (ration_lease){0, 0};
    out->retry_at.us = RATION_NEVER_US;
}

static bool is_refused(const rn_agent_ask *ask, ration_reason reason)
{
    return ask->err == RATION_OK && ask->decision.result == RATION_REFUSED && ask->decision.reason == reason;
}

static void run_settle(rn_agent_ask *ask)
{
    rn_fleet_breaker_run *const run = (rn_fleet_breaker_run *)(void *)ask;
    ration_breaker *const b = breaker_of(ask->agent);

    if (is_refused(ask, RATION_REASON_STORE_UNAVAILABLE))
        decide_alone(b, &ask->decision);
    if (is_refused(ask, RATION_REASON_CIRCUIT_OPEN)) {
        blocked(b, 0);
        if (b->known.state != RATION_BREAKER_OPEN)
            rn_member_watch_now(b->agent.member);
    }
    if (ask->err != RATION_OK || ask->decision.result != RATION_GRANTED)
        return;
    run->lease = ask->decision.lease;
    TAILQ_INSERT_TAIL(&b->runs, run, link);
}

/* No lock is held while a cancel is fired. */
void rn_fleet_breaker_bar(ration_breaker *b, ration_reason why)
{
    pthread_mutex_t *const lock = &b->agent.fleet->lock;
    rn_fleet_breaker_run *run;

    TAILQ_FOREACH (run, &b->runs, link) {
        bool bars;

        (void)pthread_mutex_lock(lock);
        bars = !run->called && run->barred == RATION_REASON_NONE;
        if (bars)
            run->barred = why;
        (void)pthread_mutex_unlock(lock);
        if (bars)
            ration_cancel_fire(&run->cancel);
    }
}

/* ---- results */

static void release(ration_breaker *b, ration_lease lease, ration_outcome outcome)
{
    rn_decider *const decider = b->agent.decider;
    const ration_completion completion = {.outcome = outcome, .cost = RATION_UNSET};

    (void)decider->ops->release(decider, rn_loop_now(b->agent.fleet->loop), lease, &completion);
    rn_agent_wake(&b->agent);
}

static void kept_drop(ration_breaker *b)
{
    rn_fleet_breaker_result *const first = STAILQ_FIRST(&b->kept);

    STAILQ_REMOVE_HEAD(&b->kept, link);
    b->kept_count--;
    rn_agent_ask_fini(&first->ask);
    rn_mem_free(rn_mem_default(), first);
}

static void kept_add(ration_breaker *b, rn_fleet_breaker_result *result)
{
    if (b->kept_count == KEPT_MAX)
        kept_drop(b);
    STAILQ_INSERT_TAIL(&b->kept, result, link);
    b->kept_count++;
}

static void kept_settle(rn_agent_ask *ask)
{
    rn_fleet_breaker_result *const result = (rn_fleet_breaker_result *)(void *)ask;
    ration_breaker *const b = breaker_of(ask->agent);

    if (is_refused(ask, RATION_REASON_STORE_UNAVAILABLE)) {
        kept_add(b, result);
        return;
    }
    if (ask->err == RATION_OK && ask->decision.result == RATION_GRANTED)
        release(b, ask->decision.lease, result->ok ? RATION_OUTCOME_SUCCESS : RATION_OUTCOME_FAILURE);
    rn_agent_ask_fini(&result->ask);
    rn_mem_free(rn_mem_default(), result);
}

/* Without memory it is not told. */
static void keep(ration_breaker *b, bool ok)
{
    rn_fleet_breaker_result *const result = rn_mem_zalloc(rn_mem_default(), 1, sizeof *result);

    if (result == NULL)
        return;
    rn_agent_ask_init(&result->ask, &b->agent, NULL, kept_settle);
    result->ask.alone = true;
    result->ok = ok;
    kept_add(b, result);
}

void rn_fleet_breaker_forget_kept(ration_breaker *b)
{
    while (!STAILQ_EMPTY(&b->kept))
        kept_drop(b);
}

void rn_fleet_breaker_tell_kept(ration_breaker *b)
{
    for (size_t count = b->kept_count; count > 0; count--) {
        rn_fleet_breaker_result *const result = STAILQ_FIRST(&b->kept);

        STAILQ_REMOVE_HEAD(&b->kept, link);
        b->kept_count--;
        rn_agent_ask_now(&result->ask);
    }
}

/* ---- a call's end */

typedef struct ending {
    rn_fleet_breaker_run *run;
    bool called, ok;
    int64_t span_us; /* of `fn`; of one that was not called, of its wait */
} ending;

static ration_outcome ending_outcome(const ending *e)
{
    if (!e->called)
        return RATION_OUTCOME_CANCELLED;
    return e->ok ? RATION_OUTCOME_SUCCESS : RATION_OUTCOME_FAILURE;
}

static void end_begin(rn_client_job *job)
{
    const ending *const e = job->with;
    rn_fleet_breaker_run *const run = e->run;
    ration_breaker *const b = breaker_of(run->ask.agent);

    TAILQ_REMOVE(&b->runs, run, link);
    if (run->lease.generation != 0) {
        release(b, run->lease, ending_outcome(e));
    } else if (e->called && !run->late) {
        keep(b, e->ok);
    }
    if (e->called) {
        rn_fleet_breaker_measure(
            b, &(ration_breaker_metric){.kind = RATION_BREAKER_METRIC_CALLED, .ok = e->ok, .span_us = e->span_us});
    } else if (run->barred == RATION_REASON_CIRCUIT_OPEN) {
        blocked(b, e->span_us);
    }
    rn_client_done(job, RATION_OK);
}

static void run_end(rn_fleet_breaker_run *run, const ending *how)
{
    ending e = *how;

    e.run = run;
    (void)rn_client_call(run->ask.agent->fleet, end_begin, &e);
}

/* ---- a call */

/* From here on it is called or it is not. */
static bool run_begins(rn_fleet_breaker_run *run)
{
    pthread_mutex_t *const lock = &run->ask.agent->fleet->lock;

    (void)pthread_mutex_lock(lock);
    run->called = run->barred == RATION_REASON_NONE;
    (void)pthread_mutex_unlock(lock);
    return run->called;
}

/* What ended the wait may be the circuit: `run->barred` is final, since the run has ended. */
static void refuse(const rn_fleet_breaker_run *run, ration_decision *out)
{
    if (run->barred == RATION_REASON_NONE)
        return;
    *out = run->ask.decision;
    out->result = RATION_REFUSED;
    out->reason = run->barred;
    out->lease = (ration_lease){0, 0};
    out->retry_at.us = RATION_NEVER_US;
}

/* The slot, if there is a semaphore. True: it may go, and `*out` is granted. */
static bool slot_take(ration_breaker *b, rn_fleet_breaker_run *run, const ration_acquire *how, ration_decision *out,
                      int *err)
{
    const int64_t began_us = rn_clock_ticks();

    *out = run->ask.decision;
    if (b->options.semaphore != NULL)
        *err = rn_semaphore_acquire(b->options.semaphore, how, &run->cancel, out);

    const bool granted = *err == RATION_OK && out->result == RATION_GRANTED;

    if (granted && run_begins(run))
        return true;
    if (granted && b->options.semaphore != NULL)
        (void)ration_semaphore_release(b->options.semaphore, out->lease, RATION_OUTCOME_CANCELLED);
    run_end(run, &(ending){.span_us = rn_clock_ticks() - began_us});
    refuse(run, out);
    return false;
}

typedef struct work {
    int (*fn)(void *ctx);
    void *ctx;
} work;

static int run_make(ration_breaker *b, rn_fleet_breaker_run *run, const ration_acquire *how, const work *what,
                    int *result, ration_decision *out)
{
    int err = RATION_OK;
    ration_decision decision;

    if (!slot_take(b, run, how, &decision, &err)) {
        if (err == RATION_OK)
            *out = decision;
        return err;
    }

    const int64_t began_us = rn_clock_ticks();

    *result = what->fn(what->ctx);
    run_end(run, &(ending){.called = true, .ok = *result == 0, .span_us = rn_clock_ticks() - began_us});
    if (b->options.semaphore != NULL)
        err = ration_semaphore_release(b->options.semaphore, decision.lease, rn_acquire_outcome(how, *result));
    decision.lease = (ration_lease){0, 0};
    *out = decision;
    return err;
}

int ration_breaker_execute(ration_breaker *breaker, int (*fn)(void *ctx), void *ctx, const ration_acquire *lease,
                           int *result, ration_decision *out)
{
    const ration_acquire usual = RATION_ACQUIRE_INIT;
    ration_acquire how = lease != NULL ? *lease : usual;
    rn_fleet_breaker_run run = {.barred = RATION_REASON_NONE};
    const work what = {.fn = fn, .ctx = ctx};

    if (breaker == NULL || fn == NULL || result == NULL || out == NULL ||
        (how.timeout_us < 0 && how.timeout_us != RATION_UNSET) || rn_client_is_inside(breaker->agent.fleet) ||
        !atomic_load(&breaker->begun))
        return RATION_ERR_INVALID;
    if (how.outcome_on_error == NULL) {
        how.outcome_on_error = breaker->options.outcome_on_error;
        how.ctx = breaker->options.ctx;
    }
    rn_agent_ask_init(&run.ask, &breaker->agent, NULL, run_settle);
    rn_cancel_init(&run.cancel);
    rn_agent_ask_sleep(&run.ask);

    int err = run.ask.err;

    if (err == RATION_OK && run.ask.decision.result == RATION_GRANTED) {
        err = run_make(breaker, &run, &how, &what, result, out);
    } else if (err == RATION_OK) {
        *out = run.ask.decision;
    }
    rn_cancel_fini(&run.cancel);
    rn_agent_ask_fini(&run.ask);
    return err;
}

ration_circuit_state ration_breaker_state(ration_breaker *breaker)
{
    return breaker != NULL ? (ration_circuit_state)atomic_load(&breaker->state) : RATION_BREAKER_CLOSED;
}

ration_role ration_breaker_role(ration_breaker *breaker)
{
    return breaker != NULL ? (ration_role)atomic_load(&breaker->role) : RATION_ROLE_FOLLOWER;
}

/* ---- life */

static rn_agent_rules rules_of(const ration_breaker *b)
{
    return (rn_agent_rules){.provider = {.breaker = b->options.rule}, .local_limit = RATION_UNSET};
}

static void start_begin(rn_client_job *job)
{
    ration_breaker *const b = job->with;
    const rn_agent_rules rules = rules_of(b);
    char text[RN_MEMBER_TEXT];
    ration_request request = RATION_REQUEST_INIT;
    int err;

    request.account = ration_text_of(RN_AGENT_ACCOUNT);
    b->known.at.us = INT64_MIN;
    b->check = b->own_check = 0;
    b->starting = job;
    err = rn_agent_open(&b->agent, &rules, text);
    if (err == RATION_OK)
        err = rn_member_watch(b->agent.member, &request, rn_fleet_breaker_seen);
    if (err == RATION_OK)
        return;
    b->starting = NULL;
    if (b->agent.decider != NULL)
        rn_agent_drop(&b->agent);
    rn_client_done(job, err);
}

static int start(ration_breaker *b)
{
    int err = rn_fleet_breaker_checker_start(b);

    if (err != RATION_OK)
        return err;
    err = rn_client_call(b->agent.fleet, start_begin, b);
    if (err != RATION_OK) {
        rn_fleet_breaker_checker_stop(b);
        return err;
    }
    b->active = true;
    atomic_store(&b->begun, true);
    return RATION_OK;
}

static bool is_callback(ration_breaker *b)
{
    return rn_client_is_inside(b->agent.fleet) || rn_fleet_breaker_is_checker(b);
}

int ration_breaker_start(ration_breaker *breaker)
{
    int err = RATION_OK;

    if (breaker == NULL || is_callback(breaker))
        return RATION_ERR_INVALID;
    (void)pthread_mutex_lock(&breaker->life);
    if (!breaker->active)
        err = start(breaker);
    (void)pthread_mutex_unlock(&breaker->life);
    return err;
}

/* Passes go back at once; what comes of the calls later is told nobody. */
static void stop_begin(rn_client_job *job)
{
    ration_breaker *const b = job->with;
    rn_decider *const decider = b->agent.decider;
    rn_fleet_breaker_run *run;

    rn_fleet_breaker_bar(b, RATION_REASON_DRAINING);
    (void)decider->ops->operate(decider, rn_loop_now(b->agent.fleet->loop), RATION_OP_DRAIN, NULL, 0);
    rn_agent_pump(&b->agent);
    TAILQ_FOREACH (run, &b->runs, link) {
        if (run->lease.generation != 0)
            release(b, run->lease, RATION_OUTCOME_CANCELLED);
        run->lease.generation = 0;
        run->late = true;
    }
    rn_fleet_breaker_forget_kept(b);
    atomic_store(&b->role, RATION_ROLE_FOLLOWER);
    rn_agent_close(&b->agent, job);
}

int ration_breaker_stop(ration_breaker *breaker)
{
    if (breaker == NULL || is_callback(breaker))
        return RATION_ERR_INVALID;
    (void)pthread_mutex_lock(&breaker->life);
    if (breaker->active) {
        rn_fleet_breaker_checker_stop(breaker);
        (void)rn_client_call(breaker->agent.fleet, stop_begin, breaker);
        breaker->active = false;
    }
    (void)pthread_mutex_unlock(&breaker->life);
    return RATION_OK;
}

/* What says nothing here is not kept: who makes the check knows how, and an id has one circuit. */
static void options_take(ration_breaker *b, const ration_breaker_options *options)
{
    static const char *const scope[] = {"provider"};
    ration_breaker_rule *const rule = &b->options.rule;

    b->options = *options;
    b->options.id = NULL;
    rule->check_method = rule->check_path = NULL;
    rule->check_expect = NULL;
    rule->check_expect_count = 0;
    rule->scope = scope;
    rule->scope_count = 1;
    b->has_checks = rule->recovery == RATION_RECOVERY_HEALTH_CHECK || rule->idle_interval_us > 0;
    b->agent.on_error = options->on_error;
    b->agent.ctx = options->ctx;
    b->known.retry_at.us = RATION_NEVER_US;
    TAILQ_INIT(&b->runs);
    STAILQ_INIT(&b->kept);
}

static int options_check(const ration_breaker_options *options, ration_fault *fault)
{
    const ration_breaker_rule *const rule = &options->rule;
    rn_breaker_spec spec;
    const int err = rn_breaker_spec_init(&spec, rule, fault);

    if (err != RATION_OK)
        return err;
    if (options->health == NULL && (rule->recovery == RATION_RECOVERY_HEALTH_CHECK || rule->idle_interval_us > 0)) {
        (void)snprintf(fault->path, sizeof fault->path, "health");
        (void)snprintf(fault->text, sizeof fault->text, "the rule wants health checks, and nobody makes them");
        return RATION_ERR_CONFIG;
    }
    return RATION_OK;
}

static void fini(ration_breaker *b)
{
    (void)pthread_cond_destroy(&b->due);
    (void)pthread_mutex_destroy(&b->life);
    rn_agent_fini(&b->agent);
    rn_mem_free(rn_mem_default(), b);
}

int ration_breaker_new(ration_fleet *fleet, const ration_breaker_options *options, ration_breaker **out,
                       ration_fault *fault)
{
    ration_fault ignored = {0};
    ration_fault *const told = fault != NULL ? fault : &ignored;
    char text[RN_MEMBER_TEXT] = "";

    if (fleet == NULL || options == NULL || out == NULL || options->id == NULL || options->id[0] == '\0')
        return RATION_ERR_INVALID;

    int err = options_check(options, told);

    if (err != RATION_OK)
        return err;

    ration_breaker *const b = rn_mem_zalloc(rn_mem_default(), 1, sizeof *b);

    if (b == NULL)
        return RATION_ERR_NOMEM;
    options_take(b, options);
    (void)pthread_mutex_init(&b->life, NULL);
    (void)pthread_cond_init(&b->due, NULL);
    err = rn_agent_init(&b->agent, &ops, fleet, options->id);
    if (err == RATION_OK) {
        const rn_agent_rules rules = rules_of(b);

        err = rn_agent_check(&b->agent, &rules, text);
    }
    if (err != RATION_OK) {
        rn_agent_fault(told, text);
        fini(b);
        return err;
    }
    *out = b;
    return RATION_OK;
}

void ration_breaker_free(ration_breaker *breaker)
{
    if (breaker == NULL)
        return;
    (void)ration_breaker_stop(breaker);
    fini(breaker);
}
