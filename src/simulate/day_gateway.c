/* SPDX-License-Identifier: MIT */
/*
 * The process that decides, as `ration serve` is one: an engine, a planner, a clock that follows the machine's, and a
 * ledger that is written every few seconds.
 *
 * What was saved is durable a little later, as a disk has it; until then a kill loses it, or does not: the seed says.
 * In order, it takes no more requests, lets calls end, saves and goes. Killed, it is gone at once, with its leases,
 * its waiters and whatever was not durable; the calls that are out go on without it.
 *
 * A new process may find records that are later than its machine's clock, if that was set back in between. Its clock
 * begins at the latest of them and runs slower until the machine has caught up, as after any step backward.
 *
 * Invariant: without an engine nothing of this is scheduled but `up`.
 */
#include "simulate/day_parts.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "simulate/random.h"

#define FLUSH_US INT64_C(5000000) /* where the config has no ledger */
#define KEPT_MIN_US 2000
#define KEPT_MAX_US 40000
#define DOWN_MIN_US 1000000
#define DOWN_MAX_US 6000000
#define DRAIN_LOOK_US 100000
#define FIELDS_MAX (RN_ANSWER_FIELDS_MAX)

/* ---- time */

ration_time rn_day_clock(rn_day *day)
{
    rn_clock *clock = &day->gateway.clock;
    const int64_t stepped_us = clock->stepped_us;
    const ration_time now = rn_clock_follow(clock, day->now.us, rn_add(day->now.us, day->wall_off_us));

    if (clock->stepped_us > stepped_us && day->gateway.engine != NULL)
        (void)ration_engine_step(day->gateway.engine, now, clock->stepped_us - stepped_us);
    return now;
}

ration_time rn_day_when(rn_day *day, ration_time at)
{
    const int64_t left_us = rn_sub(at.us, rn_day_clock(day).us);

    return rn_time_add(day->now, rn_max(left_us, 0));
}

bool rn_day_is_up(const rn_day *day)
{
    return day->gateway.engine != NULL && !day->gateway.draining;
}

/* ---- the ledger */

static int flush_begin(rn_day *day)
{
    rn_day_gateway *gw = &day->gateway;
    const int64_t takes_us =
        rn_random_between(day->options->behaviour.seed, RN_STREAM_KEPT, day->result.flushes, KEPT_MIN_US, KEPT_MAX_US);
    const int err = ration_engine_save(gw->engine, rn_day_clock(day), false, &day->store, rn_store_put);

    if (err != 0)
        return err;
    day->result.flushes++;
    gw->flushing = true;
    return rn_day_at(day, &gw->kept, rn_time_add(day->now, takes_us));
}

static int on_kept(rn_day *day, rn_day_event *event)
{
    const int err = rn_store_commit(&day->store);

    (void)event;
    day->gateway.flushing = false;
    return err == 0 ? ration_engine_kept(day->gateway.engine, rn_day_clock(day)) : err;
}

static int on_flush(rn_day *day, rn_day_event *event)
{
    const int64_t every_us = day->settings->ledger_flush_us > 0 ? day->settings->ledger_flush_us : FLUSH_US;
    const int err = day->gateway.flushing ? 0 : flush_begin(day);

    return err == 0 ? rn_day_at(day, event, rn_time_add(day->now, every_us)) : err;
}

/* ---- the plan */

/* The name of the limit that `scope` is of, as the config has it: the plan's own ends with its gateway. */
static const char *limit_name(const rn_day *day, const rn_job *job, size_t scope)
{
    const ration_provider_rule *provider;

    if (scope == RATION_PLAN_NONE)
        return NULL;
    provider = &day->rules->providers[rn_config_account(day->config, job->account)->provider];
    for (size_t i = 0; i < provider->limit_count; i++) {
        if (rn_text_is(ration_text_of(rn_jobs_scope(day->gateway.jobs, scope)->limit), provider->limits[i].name))
            return provider->limits[i].name;
    }
    return NULL;
}

static int plan_note(rn_day *day)
{
    const ration_plan *plan = rn_jobs_planned(day->gateway.jobs);

    day->result.plans++;
    day->result.infeasible += plan->feasible ? 0 : 1;
    for (size_t i = 0; i < day->runner_count; i++) {
        rn_day_runner *runner = &day->runners[i];
        rn_day_job *job = &day->result.jobs[i];
        const ration_job_plan *planned = &plan->jobs[i];

        job->stretch_most = rn_max(job->stretch_most, planned->stretch);
        job->limit = limit_name(day, job->job, planned->scope);
        if (planned->effective_us == runner->last_effective_us)
            continue;
        rn_day_interval *intervals =
            rn_day_grow(job->intervals, job->interval_count, &runner->interval_capacity, sizeof *intervals);
        if (intervals == NULL)
            return RATION_ERR_NOMEM;
        job->intervals = intervals;
        intervals[job->interval_count++] = (rn_day_interval){rn_day_since(day), planned->effective_us};
        runner->last_effective_us = planned->effective_us;
    }
    return 0;
}

int rn_day_gateway_replan(rn_day *day)
{
    rn_day_gateway *gw = &day->gateway;
    ration_fault fault = {.path = ""};
    int err = rn_jobs_plan(gw->jobs, rn_day_clock(day), &gw->decider.base, NULL, NULL, &fault);

    if (err == RATION_ERR_CONFIG)
        return rn_day_fail(day, err, "%s: %s", fault.path, fault.text);
    if (err == 0)
        err = plan_note(day);
    return err == 0 ? rn_day_runners_look(day) : err;
}

static int on_replan(rn_day *day, rn_day_event *event)
{
    const int err = rn_day_gateway_replan(day);

    return err == 0 ? rn_day_at(day, event, rn_time_add(day->now, day->settings->replan_us)) : err;
}

/* ---- requests */

int rn_day_ask(rn_day *day, rn_day_caller *caller, ration_request *request, ration_decision *out)
{
    request->user = caller;
    const int err = ration_engine_submit(day->gateway.engine, rn_day_clock(day), request, out);

    if (err == 0) {
        caller->lease = out->lease;
        caller->waiting = out->result == RATION_QUEUED;
    }
    return err;
}

int rn_day_gateway_answer(rn_day *day, rn_day_caller *caller, const rn_day_wire *wire)
{
    const ration_completion completion = RATION_COMPLETION_INIT;
    const ration_error_rule *errors = &wire->provider->rule->errors;
    ration_engine *engine = day->gateway.engine;
    const ration_time now = rn_day_clock(day);
    ration_header headers[FIELDS_MAX];
    ration_response response = {.status = wire->status, .headers = headers, .header_count = wire->answer.count};

    for (size_t i = 0; i < wire->answer.count; i++)
        headers[i] = (ration_header){wire->answer.fields[i].name, wire->answer.fields[i].value};
    if (!wire->judgement.granted && errors->body_contains != NULL)
        response.body = ration_text_of(errors->body_contains);
    int err = ration_engine_observe(engine, now, caller->lease, &response);
    if (err == 0)
        err = ration_engine_release(engine, now, caller->lease, &completion);
    caller->lease = (ration_lease){0, 0};
    return err;
}

int rn_day_let_go(rn_day *day, rn_day_caller *caller)
{
    const ration_completion completion = {.outcome = RATION_OUTCOME_FAILURE, .cost = RATION_UNSET};
    const ration_lease lease = caller->lease;
    const bool waited = caller->waiting;
    int err = rn_day_hang_up(day, caller);

    caller->lease = (ration_lease){0, 0};
    caller->waiting = false;
    if (err != 0 || day->gateway.engine == NULL || lease.generation == 0)
        return err;
    if (waited) {
        /* One that has been granted meanwhile is given back when it hears of it. */
        (void)ration_engine_cancel(day->gateway.engine, rn_day_clock(day), lease);
        return 0;
    }
    return ration_engine_release(day->gateway.engine, rn_day_clock(day), lease, &completion);
}

/* ---- what the engine does by itself */

static bool waits_for(const rn_day_caller *caller, ration_lease lease)
{
    return caller->waiting && caller->lease.index == lease.index && caller->lease.generation == lease.generation;
}

static int event_take(rn_day *day, const ration_event *event)
{
    const ration_completion withdrawn = {.outcome = RATION_OUTCOME_CANCELLED, .cost = RATION_UNSET};
    rn_day_caller *caller = event->user;

    switch (event->type) {
    case RATION_EVENT_GRANTED:
        if (!waits_for(caller, event->lease))
            return ration_engine_release(day->gateway.engine, rn_day_clock(day), event->lease, &withdrawn);
        caller->waiting = false;
        return caller->ops->granted(day, caller, event->waited_us);
    case RATION_EVENT_REFUSED:
        if (!waits_for(caller, event->lease))
            return 0;
        caller->lease = (ration_lease){0, 0};
        caller->waiting = false;
        return caller->ops->refused(day, caller, event->decision.reason);
    case RATION_EVENT_HEALTH:
        return rn_day_check_start(day, event);
    case RATION_EVENT_LOST:
    case RATION_EVENT_PENALTY:
    case RATION_EVENT_LIMIT:
    case RATION_EVENT_BREAKER:
        break;
    }
    return 0;
}

static int on_wake(rn_day *day, rn_day_event *event)
{
    (void)event;
    return ration_engine_advance(day->gateway.engine, rn_day_clock(day));
}

int rn_day_gateway_settle(rn_day *day)
{
    rn_day_gateway *gw = &day->gateway;
    ration_event event;
    int err = 0;

    if (gw->engine == NULL)
        return 0;
    while (err == 0 && ration_engine_next_event(gw->engine, &event))
        err = event_take(day, &event);
    if (err == 0 && !gw->flushing && ration_engine_need(gw->engine) != RATION_NEED_NOTHING)
        err = flush_begin(day);
    if (err != 0)
        return err;

    const ration_time due = ration_engine_next_deadline(gw->engine);
    if (rn_time_known(due))
        return rn_day_at(day, &gw->wake, rn_day_when(day, due));
    rn_day_not(day, &gw->wake);
    return 0;
}

/* ---- its life */

static void totals_keep(rn_day *day)
{
    ration_totals totals;

    ration_engine_totals(day->gateway.engine, &totals);
    day->result.unexpected += totals.unexpected_429;
}

/* Nothing of the process is left, but for what is durable. */
static void process_end(rn_day *day)
{
    rn_day_gateway *gw = &day->gateway;

    if (gw->engine == NULL)
        return;
    totals_keep(day);
    ration_engine_free(gw->engine);
    rn_jobs_free(gw->jobs);
    gw->engine = NULL;
    gw->jobs = NULL;
    gw->draining = false;
    gw->flushing = false;
    rn_day_not(day, &gw->wake);
    rn_day_not(day, &gw->flush);
    rn_day_not(day, &gw->kept);
    rn_day_not(day, &gw->replan);
    rn_day_not(day, &gw->drain);
}

static int up_later(rn_day *day)
{
    const uint64_t number = day->result.restarts + day->result.kills;

    return rn_day_at(day, &day->gateway.up,
                     rn_time_add(day->now, rn_random_between(day->options->behaviour.seed, RN_STREAM_FAULT,
                                                             (UINT64_C(1) << 32) + number, DOWN_MIN_US, DOWN_MAX_US)));
}

static int stop_finish(rn_day *day)
{
    rn_day_gateway *gw = &day->gateway;
    int err = rn_day_runners_cut(day);

    if (err == 0)
        err = rn_day_checks_cut(day);
    /* A flush that is under way is waited for, and what has come since goes into a last one. */
    if (err == 0)
        err = rn_store_commit(&day->store);
    if (err == 0)
        err = ration_engine_save(gw->engine, rn_day_clock(day), false, &day->store, rn_store_put);
    if (err == 0)
        err = rn_store_commit(&day->store);
    if (err != 0)
        return err;
    process_end(day);
    gw->unclean = false;
    day->result.restarts++;
    return up_later(day);
}

static int on_drain(rn_day *day, rn_day_event *event)
{
    if (rn_day_runners_out(day) == 0 || !rn_time_before(day->now, day->gateway.stop_by))
        return stop_finish(day);
    return rn_day_at(day, event, rn_time_add(day->now, DRAIN_LOOK_US));
}

int rn_day_gateway_stop(rn_day *day)
{
    rn_day_gateway *gw = &day->gateway;

    if (!rn_day_is_up(day))
        return 0;
    gw->draining = true;
    gw->stop_by = rn_time_add(day->now, day->settings->drain_us);
    const int err = rn_day_runners_drain(day);
    return err == 0 ? rn_day_at(day, &gw->drain, day->now) : err;
}

int rn_day_gateway_kill(rn_day *day)
{
    rn_day_gateway *gw = &day->gateway;
    int err = 0;

    if (gw->engine == NULL)
        return 0;
    /* What was on its way to the disk is there as a whole, or not at all. */
    if (gw->flushing && (rn_random(day->options->behaviour.seed, RN_STREAM_KEPT, ~day->result.flushes) & 1) != 0)
        err = rn_store_commit(&day->store);
    rn_store_drop(&day->store);
    process_end(day);
    gw->unclean = true;
    day->result.kills++;
    if (err == 0)
        err = rn_day_runners_cut(day);
    if (err == 0)
        err = rn_day_checks_cut(day);
    return err == 0 ? up_later(day) : err;
}

static int engine_start(rn_day *day)
{
    rn_day_gateway *gw = &day->gateway;
    const ration_engine_options options = {.rules = day->rules, .sink = &day->sink, .keeps = true};
    const int64_t wall_us = rn_add(day->now.us, day->wall_off_us);
    ration_fault fault = {.path = ""};
    ration_state state;

    rn_clock_init(&gw->clock, day->now.us, rn_max(wall_us, rn_store_newest(&day->store).us));
    int err = ration_engine_new(&options, rn_day_clock(day), &gw->engine, &fault);
    if (err == RATION_ERR_CONFIG)
        return rn_day_fail(day, err, "%s: %s", fault.path, fault.text);
    if (err == 0)
        err = rn_store_load(&day->store, gw->unclean, &state);
    if (err == 0)
        err = ration_engine_load(gw->engine, rn_day_clock(day), &state, NULL);
    if (err == 0)
        (void)rn_engine_decider_init(&gw->decider, gw->engine);
    return err;
}

static int jobs_start(rn_day *day)
{
    rn_day_gateway *gw = &day->gateway;
    int err = rn_jobs_new(day->config, &gw->jobs);

    for (size_t i = 0; i < day->runner_count && err == 0; i++) {
        const rn_day_runner *runner = &day->runners[i];

        for (size_t k = 0; k < runner->kept_count && err == 0; k++)
            err = rn_jobs_ran(gw->jobs, i, &runner->kept[k], NULL);
    }
    return err;
}

static int on_up(rn_day *day, rn_day_event *event)
{
    rn_day_gateway *gw = &day->gateway;
    int err = engine_start(day);

    (void)event;
    if (err == 0)
        err = jobs_start(day);
    if (err == 0)
        err = on_replan(day, &gw->replan);
    if (err == 0)
        err = on_flush(day, &gw->flush);
    return err == 0 ? rn_day_runners_unpark(day) : err;
}

int rn_day_gateway_start(rn_day *day)
{
    rn_day_gateway *gw = &day->gateway;
    const struct {
        rn_day_event *event;
        int (*fire)(rn_day *day, rn_day_event *event);
    } events[] = {{&gw->wake, on_wake},     {&gw->flush, on_flush}, {&gw->kept, on_kept},
                  {&gw->replan, on_replan}, {&gw->drain, on_drain}, {&gw->up, on_up}};

    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        rn_heap_node_init(&events[i].event->node);
        events[i].event->fire = events[i].fire;
    }
    const int err = rn_day_checks_init(day);
    return err == 0 ? on_up(day, &gw->up) : err;
}

void rn_day_gateway_fini(rn_day *day)
{
    if (day->gateway.engine != NULL)
        totals_keep(day);
    ration_engine_free(day->gateway.engine);
    rn_jobs_free(day->gateway.jobs);
}
