/* SPDX-License-Identifier: MIT */
/*
 * Who runs the jobs: a plain loop as anybody would write it.
 *
 * A runner asks the plan when its job's next run should begin, sleeps until then, asks again, runs. A run takes each
 * child in turn, some at once; a child's pages are called one after the other, because a page names the next. A call
 * waits as long as the gateway lets one wait; one that fails or meets a 429 is made again as a retry, within the same
 * time; a child whose call is refused or fails for good is given up until the next run. While a run lasts no other of
 * the job begins.
 *
 * The gateway's absence is no failure of a call that was never made: it is made when the gateway is back. One that was
 * out is a failure.
 *
 * Invariants: `busy` lanes are not IDLE; a lane that is OUT has a wire, one that WAITS has a waiter in the engine.
 */
#include "simulate/day_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "simulate/random.h"

static rn_day_class *class_of(rn_day *day, const rn_day_runner *runner)
{
    return &day->result.classes[runner->job->priority];
}

static ration_text method_of(const rn_job *job)
{
    return ration_text_of(job->method != NULL ? job->method : "GET");
}

/* ---- a child */

/* Half as many pages as estimated, to half as many more, evenly. */
static int64_t pages_draw(const rn_day *day, const rn_day_runner *runner, int64_t child)
{
    const int64_t pages = runner->job->pages_per_run;
    const int64_t low = rn_max(rn_div_ceil(pages, 2 * RATION_UNIT), 1);
    const int64_t high = rn_max(rn_add(pages, pages / 2) / RATION_UNIT, low);
    const uint64_t name[] = {runner->index, runner->run, (uint64_t)child};
    uint64_t index = 0;

    for (size_t i = 0; i < 3; i++)
        index = rn_random(index, RN_STREAM_PAGES, name[i]);
    return rn_random_between(day->options->behaviour.seed, RN_STREAM_PAGES, index, low, high);
}

/* The template with its variables filled in: the job's own, else one of this child's. */
static void path_write(rn_day_lane *lane)
{
    const rn_job *job = lane->runner->job;
    rn_builder b;

    rn_builder_init(&b, lane->path, lane->path_size);
    for (const char *c = job->path; *c != '\0'; c++) {
        const char *end = *c == '{' ? strchr(c, '}') : NULL;
        bool known = false;

        if (end == NULL) {
            rn_builder_char(&b, *c);
            continue;
        }
        const ration_text name = {c + 1, (size_t)(end - c - 1)};
        for (size_t i = 0; i < job->var_count && !known; i++) {
            known = rn_text_eq(job->vars[i].name, name);
            if (known)
                rn_builder_text(&b, job->vars[i].value);
        }
        if (!known)
            rn_builder_int(&b, lane->child + 1);
        c = end;
    }
}

/* ---- a run */

static int runner_look(rn_day *day, rn_day_runner *runner);

static int run_end(rn_day *day, rn_day_runner *runner)
{
    rn_day_job *job = &day->result.jobs[runner->index];
    bool replan = false;
    int err = 0;

    runner->running = false;
    job->runs++;
    job->requests += (uint64_t)runner->counted.requests;
    job->retries += (uint64_t)runner->counted.retries;
    if (runner->kept_count == RATION_RUNS_MAX) {
        runner->kept_count--;
        memmove(runner->kept, runner->kept + 1, runner->kept_count * sizeof *runner->kept);
    }
    runner->kept[runner->kept_count++] = runner->counted;
    /* Where the gateway is gone it hears of the run when it is back. */
    if (day->gateway.engine != NULL)
        err = rn_jobs_ran(day->gateway.jobs, runner->index, &runner->counted, &replan);
    if (err == 0 && replan)
        err = rn_day_gateway_replan(day);
    return err == 0 ? runner_look(day, runner) : err;
}

static void lane_idle(rn_day_lane *lane)
{
    lane->state = RN_LANE_IDLE;
    lane->runner->busy--;
}

/* The next child is this lane's; false: there is none. */
static bool child_take(rn_day *day, rn_day_lane *lane)
{
    rn_day_runner *runner = lane->runner;
    const int64_t children = rn_max(runner->counted.fan_out, 1);

    if (runner->next_child == children)
        return false;
    lane->child = runner->next_child++;
    lane->pages = pages_draw(day, runner, lane->child);
    lane->attempt = 0;
    lane->on_time = false;
    path_write(lane);
    return true;
}

static int lane_send(rn_day *day, rn_day_lane *lane, int64_t waited_us)
{
    const rn_job *job = lane->runner->job;
    const rn_account *account = rn_config_account(day->config, job->account);
    rn_day_class *class = class_of(day, lane->runner);
    rn_day_waits *waits = &day->waits[job->priority];
    const rn_arrival arrival = {
        .account = ration_text_of(account->name),
        .credential = ration_text_of(account->name),
        .method = method_of(job),
        .path = ration_text_of(lane->path),
        .has_cost = job->cost != RATION_UNSET,
        .cost = job->cost,
    };
    int64_t *items = rn_day_grow(waits->items, waits->count, &waits->capacity, sizeof *items);

    if (items == NULL)
        return RATION_ERR_NOMEM;
    waits->items = items;
    items[waits->count++] = waited_us;
    lane->state = RN_LANE_OUT;
    class->sent++;
    class->retries += lane->attempt > 0 ? 1 : 0;
    class->slot_sent[rn_day_slot(day)]++;
    lane->runner->counted.requests += lane->attempt > 0 ? 0 : 1;
    lane->runner->counted.retries += lane->attempt > 0 ? 1 : 0;
    return rn_day_send(day, &lane->caller, &day->providers[account->provider], &arrival, job->priority);
}

static void refusal_count(rn_day *day, const rn_day_lane *lane, ration_reason reason)
{
    rn_day_class *class = class_of(day, lane->runner);

    class->refused++;
    class->refusals[reason]++;
    class->given_up++;
    class->slot_refused[rn_day_slot(day)]++;
}

static int lane_ask(rn_day *day, rn_day_lane *lane, ration_decision *out)
{
    const rn_job *job = lane->runner->job;
    const ration_time now = rn_day_clock(day);
    ration_request request = RATION_REQUEST_INIT;

    if (!lane->on_time)
        lane->deadline = rn_time_add(now, day->settings->wait_us);
    lane->on_time = true;
    request.account = ration_text_of(rn_config_account(day->config, job->account)->name);
    request.method = method_of(job);
    request.path = ration_text_of(lane->path);
    request.tenant = ration_text_of(job->tenant);
    request.priority = job->priority;
    request.retry = lane->attempt > 0;
    request.cost = job->cost;
    request.wait_us = rn_max(rn_sub(lane->deadline.us, now.us), 0);
    return rn_day_ask(day, &lane->caller, &request, out);
}

/* Ask for the page that is next; whoever is refused takes the next child; whoever has none is done. */
static int lane_go(rn_day *day, rn_day_lane *lane)
{
    ration_decision decision;

    for (;;) {
        if (!rn_day_is_up(day)) {
            lane->state = RN_LANE_PARKED;
            return 0;
        }
        const int err = lane_ask(day, lane, &decision);

        if (err != 0)
            return err;
        if (decision.result == RATION_GRANTED)
            return lane_send(day, lane, 0);
        if (decision.result == RATION_QUEUED) {
            lane->state = RN_LANE_WAITING;
            return 0;
        }
        refusal_count(day, lane, decision.reason);
        if (!child_take(day, lane))
            break;
    }
    lane_idle(lane);
    return lane->runner->busy == 0 ? run_end(day, lane->runner) : 0;
}

/* This child is over, or given up. */
static int lane_next(rn_day *day, rn_day_lane *lane)
{
    if (child_take(day, lane))
        return lane_go(day, lane);
    lane_idle(lane);
    return lane->runner->busy == 0 ? run_end(day, lane->runner) : 0;
}

static int on_granted(rn_day *day, rn_day_caller *caller, int64_t waited_us)
{
    return lane_send(day, (rn_day_lane *)(void *)caller, waited_us);
}

static int on_refused(rn_day *day, rn_day_caller *caller, ration_reason reason)
{
    rn_day_lane *lane = (rn_day_lane *)(void *)caller;

    refusal_count(day, lane, reason);
    return lane_next(day, lane);
}

static int lane_retry(rn_day *day, rn_day_lane *lane)
{
    if (lane->attempt == RN_DAY_RETRIES) {
        class_of(day, lane->runner)->given_up++;
        return lane_next(day, lane);
    }
    lane->attempt++;
    return lane_go(day, lane);
}

static int on_answered(rn_day *day, rn_day_caller *caller, int status)
{
    rn_day_lane *lane = (rn_day_lane *)(void *)caller;
    rn_day_class *class = class_of(day, lane->runner);
    const rn_account *account = rn_config_account(day->config, lane->runner->job->account);
    const ration_error_rule *errors = &day->rules->providers[account->provider].errors;
    const int limited = errors->rate_limited_count > 0 ? errors->rate_limited[0] : 429;

    if (status != 200) {
        class->failed += status != limited ? 1 : 0;
        return lane_retry(day, lane);
    }
    class->answered++;
    lane->attempt = 0;
    lane->on_time = false;
    lane->pages--;
    return lane->pages > 0 ? lane_go(day, lane) : lane_next(day, lane);
}

static int run_begin(rn_day *day, rn_day_runner *runner)
{
    const rn_job *job = runner->job;
    int err = 0;

    rn_jobs_begins(day->gateway.jobs, runner->index, rn_day_clock(day));
    runner->running = true;
    runner->run++;
    runner->next_child = 0;
    runner->counted = (ration_run){.fan_out = job->fan_out != NULL ? job->fan_out_estimate : 0};
    /* All lanes first: one that is through at once must not end the run. */
    for (size_t i = 0; i < RN_DAY_LANES; i++) {
        if (!child_take(day, &runner->lanes[i]))
            break;
        runner->lanes[i].state = RN_LANE_PARKED;
        runner->busy++;
    }
    for (size_t i = 0; i < RN_DAY_LANES && err == 0 && runner->running; i++) {
        if (runner->lanes[i].state == RN_LANE_PARKED)
            err = lane_go(day, &runner->lanes[i]);
    }
    return err;
}

/* ---- when */

/* Whether the next run is due; else sleep until then. */
static int runner_look(rn_day *day, rn_day_runner *runner)
{
    const ration_time now = rn_day_clock(day);

    if (runner->running || !rn_day_is_up(day))
        return 0;
    return rn_day_at(day, &runner->due, rn_day_when(day, rn_jobs_next_run(day->gateway.jobs, runner->index, now)));
}

static int on_due(rn_day *day, rn_day_event *event)
{
    rn_day_runner *runner = (rn_day_runner *)(void *)event;
    const ration_time now = rn_day_clock(day);

    if (runner->running || !rn_day_is_up(day))
        return 0;
    if (rn_time_before(now, rn_jobs_next_run(day->gateway.jobs, runner->index, now)))
        return runner_look(day, runner);
    return run_begin(day, runner);
}

int rn_day_runners_look(rn_day *day)
{
    int err = 0;

    for (size_t i = 0; i < day->runner_count && err == 0; i++)
        err = runner_look(day, &day->runners[i]);
    return err;
}

/* ---- the gateway goes and comes */

/* Those lanes that are in a state that `pick` has a bit for. */
static int lanes_each(rn_day *day, unsigned pick, int (*what)(rn_day *day, rn_day_lane *lane))
{
    int err = 0;

    for (size_t i = 0; i < day->runner_count; i++) {
        for (size_t k = 0; k < RN_DAY_LANES && err == 0; k++) {
            rn_day_lane *lane = &day->runners[i].lanes[k];

            if ((pick & 1u << lane->state) != 0)
                err = what(day, lane);
        }
    }
    return err;
}

int rn_day_runners_unpark(rn_day *day)
{
    return lanes_each(day, 1u << RN_LANE_PARKED, lane_go);
}

static int lane_withdraw(rn_day *day, rn_day_lane *lane)
{
    lane->state = RN_LANE_PARKED;
    lane->on_time = false;
    return rn_day_let_go(day, &lane->caller);
}

int rn_day_runners_drain(rn_day *day)
{
    return lanes_each(day, 1u << RN_LANE_WAITING, lane_withdraw);
}

static int lane_break(rn_day *day, rn_day_lane *lane)
{
    rn_day_class *class = class_of(day, lane->runner);
    const int err = rn_day_let_go(day, &lane->caller);

    class->broken++;
    lane->on_time = false;
    return err == 0 ? lane_retry(day, lane) : err;
}

int rn_day_runners_cut(rn_day *day)
{
    const int err = lanes_each(day, 1u << RN_LANE_WAITING, lane_withdraw);

    return err == 0 ? lanes_each(day, 1u << RN_LANE_OUT, lane_break) : err;
}

size_t rn_day_runners_out(const rn_day *day)
{
    size_t out = 0;

    for (size_t i = 0; i < day->runner_count; i++) {
        for (size_t k = 0; k < RN_DAY_LANES; k++)
            out += day->runners[i].lanes[k].state == RN_LANE_OUT ? 1 : 0;
    }
    return out;
}

static int runner_init(rn_day *day, rn_day_runner *runner, size_t index)
{
    static const rn_day_caller_ops ops = {.granted = on_granted, .refused = on_refused, .answered = on_answered};
    const rn_job *job = rn_config_job(day->config, index);
    size_t size = strlen(job->path) + 1;

    runner->index = index;
    runner->job = job;
    runner->due.fire = on_due;
    rn_heap_node_init(&runner->due.node);
    day->result.jobs[index].job = job;
    /* A variable is at least two braces; what stands in its place is at most 20 digits or a value of the job's. */
    for (const char *c = job->path; *c != '\0'; c++)
        size += *c == '{' ? 20 : 0;
    for (size_t i = 0; i < job->var_count; i++)
        size += job->vars[i].value.size;
    for (size_t i = 0; i < RN_DAY_LANES; i++) {
        rn_day_lane *lane = &runner->lanes[i];

        lane->caller.ops = &ops;
        lane->runner = runner;
        lane->path_size = size;
        lane->path = rn_arena_zalloc(&day->arena, size, 1);
        if (lane->path == NULL)
            return RATION_ERR_NOMEM;
    }
    return 0;
}

int rn_day_runners_init(rn_day *day)
{
    size_t count = 0;
    int err = 0;

    while (rn_config_job(day->config, count) != NULL)
        count++;
    day->result.jobs = rn_mem_zalloc(rn_mem_default(), count, sizeof *day->result.jobs);
    day->runners = rn_arena_zalloc(&day->arena, count, sizeof *day->runners);
    if (day->runners == NULL || day->result.jobs == NULL)
        return RATION_ERR_NOMEM;
    day->result.job_count = count;
    day->runner_count = count;
    for (size_t i = 0; i < count && err == 0; i++)
        err = runner_init(day, &day->runners[i], i);
    return err;
}
