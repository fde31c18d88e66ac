/* SPDX-License-Identifier: MIT */
/*
 * The jobs of a running gateway.
 *
 * What is planned is the business of `jobs`; here is when, and who hears of it. One timer ticks once a second, while
 * there is anything to plan: it ends runs that have become quiet, asks the decider (O(1)) whether a quota's maximum has
 * changed, and plans when that, an inventory or the interval says so. So however many reports come, there is at most
 * one plan a second.
 *
 * Invariants: a meter is in `open` exactly while its run is; there is one plan at least after the start, unless
 * memory was short.
 */
#include "serve/planning.h"

#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "config/faults.h"
#include "serve/gateway.h"
#include "serve/projections.h"
#include "serve/run_meter.h"

#define TICK_US INT64_C(1000000)
#define LINES 20      /* of the log a second, of one class */
#define NEAREST 1000  /* names that are looked at for a message */
#define LISTED_MAX 20 /* scopes and jobs in the status */

typedef struct rn_planning_meter {
    TAILQ_ENTRY(rn_planning_meter) link;
    rn_run_meter run;
    bool listed; /* in `open` */
} meter;

TAILQ_HEAD(meters, rn_planning_meter);

struct rn_planning {
    rn_planning_options options;
    struct rn_gateway *gateway; /* NULL: not started */
    rn_jobs *jobs;
    meter *meters; /* by job */
    struct meters open;
    rn_planning_counts counts;
    rn_timer timer;
    bool due;             /* something has changed that the plan does not know */
    ration_time tried_at; /* when the last plan was made, or could not be */
    uint64_t maxima;      /* changes of quotas' maxima that have been seen */
    uint64_t told;        /* disagreements about them that have been seen */
    bool infeasible;      /* as the log has it */
    rn_log_gate change_gate, scope_gate, job_gate, fault_gate, maximum_gate;
};

static const rn_job *job_at(const rn_planning *p, size_t job)
{
    return rn_jobs_at(p->jobs, job);
}

/* ---- what the log and events say */

static void change_log(rn_planning *p, ration_time now, const rn_job_change *change)
{
    char from[48], to[48];
    rn_builder b;

    rn_builder_init(&b, from, sizeof from);
    if (change->before_us != RATION_UNSET)
        rn_builder_duration(&b, change->before_us);
    rn_builder_init(&b, to, sizeof to);
    rn_builder_duration(&b, change->after_us);
    rn_log_gated(p->options.log, &p->change_gate, now, "info", "a job's interval has changed", "job", change->job,
                 "from", change->before_us != RATION_UNSET ? from : NULL, "to", to, "limit", change->limit, NULL);
}

/* Who listens hears of each. */
static void change_tell(rn_planning *p, ration_time now, const rn_job_change *change)
{
    rn_bulletin *bulletin = rn_gateway_bulletin(p->gateway);
    rn_output *out = rn_bulletin_begin(bulletin, "interval", now);

    if (out == NULL)
        return;
    rn_output_str(out, "job", change->job);
    rn_output_ms(out, "effectiveMs", change->after_us);
    rn_output_ms(out, "beforeMs", change->before_us);
    if (change->limit != NULL)
        rn_output_str(out, "limit", change->limit);
    rn_bulletin_tell(bulletin);
}

static void feasibility_tell(rn_planning *p, ration_time now, bool feasible)
{
    rn_bulletin *bulletin = rn_gateway_bulletin(p->gateway);
    rn_output *out = rn_bulletin_begin(bulletin, "plan", now);

    if (out == NULL)
        return;
    rn_output_bool(out, "feasible", feasible);
    rn_bulletin_tell(bulletin);
}

static void scope_log(rn_planning *p, ration_time now, size_t index)
{
    const ration_scope_plan *scope = &rn_jobs_planned(p->jobs)->scopes[index];
    const rn_scope_name *name = rn_jobs_scope(p->jobs, index);
    char budget[32], projected[32], critical[32];
    rn_builder b;

    rn_builder_init(&b, budget, sizeof budget);
    rn_builder_micro(&b, scope->budget);
    rn_builder_init(&b, projected, sizeof projected);
    rn_builder_micro(&b, scope->projected);
    rn_builder_init(&b, critical, sizeof critical);
    rn_builder_micro(&b, scope->critical);
    rn_log_gated(p->options.log, &p->scope_gate, now, "warn",
                 "the plan is not feasible: jobs need more than a quota has, stretched to the utmost", "limit",
                 name->limit, "key", name->key, "budget", budget, "needed", projected, "critical", critical, NULL);
}

static void job_log(rn_planning *p, ration_time now, size_t index)
{
    const ration_job_plan *job = &rn_jobs_planned(p->jobs)->jobs[index];
    char interval[48], least[48];
    rn_builder b;

    rn_builder_init(&b, interval, sizeof interval);
    rn_builder_duration(&b, job->effective_us);
    rn_builder_init(&b, least, sizeof least);
    rn_builder_duration(&b, job->least_us);
    rn_log_gated(p->options.log, &p->job_gate, now, "warn",
                 "the plan is not feasible: a critical job's run does not fit into its interval at a rate limit", "job",
                 job_at(p, index)->name, "interval", interval, "least", least, NULL);
}

/* Loud, with every plan that is so. */
static void feasibility_log(rn_planning *p, ration_time now)
{
    const ration_plan *plan = rn_jobs_planned(p->jobs);

    if (plan->feasible == p->infeasible)
        feasibility_tell(p, now, plan->feasible);
    if (plan->feasible && p->infeasible)
        rn_log_line(p->options.log, now, "info", "the plan is feasible again", NULL);
    p->infeasible = !plan->feasible;
    for (size_t i = 0; i < plan->scope_count && !plan->feasible; i++) {
        if (!plan->scopes[i].feasible)
            scope_log(p, now, i);
    }
    for (size_t i = 0; i < plan->job_count && !plan->feasible; i++) {
        if (!plan->jobs[i].feasible)
            job_log(p, now, i);
    }
}

static void on_maximum(void *ctx, const ration_counter_report *counter)
{
    rn_planning *p = ctx;
    char told[32], declared[32], key[256];
    int64_t by = 0;
    rn_builder b;

    if (counter->disagreement <= p->told || !rn_quota_disagrees(ration_config_rules(p->options.config), counter, &by))
        return;
    rn_builder_init(&b, told, sizeof told);
    rn_builder_micro(&b, counter->max);
    rn_builder_init(&b, declared, sizeof declared);
    rn_builder_micro(&b, rn_sub(counter->max, by));
    rn_builder_init(&b, key, sizeof key);
    rn_builder_text(&b, counter->key);
    rn_log_gated(p->options.log, &p->maximum_gate, rn_loop_now(p->options.loop), "warn",
                 "a provider's maximum is not the declared one", "provider", counter->provider, "limit", counter->limit,
                 "key", key, "told", told, "declared", declared, NULL);
}

/* ---- planning */

static void on_change(void *ctx, const rn_job_change *change)
{
    rn_planning *p = ctx;
    const bool first = change->before_us == RATION_UNSET;
    const size_t job = rn_jobs_find(p->jobs, ration_text_of(change->job));

    if (first && change->after_us == job_at(p, job)->interval_us)
        return;
    change_log(p, p->tried_at, change);
    if (first)
        return;
    p->counts.changes++;
    change_tell(p, p->tried_at, change);
}

static void plan(rn_planning *p, ration_time now)
{
    ration_fault fault = {"", ""};

    p->due = false;
    p->tried_at = now;
    const int err = rn_jobs_plan(p->jobs, now, p->options.decider, p, on_change, &fault);
    rn_gateway_touch(p->gateway);
    if (err != RATION_OK) {
        p->counts.faults++;
        rn_log_gated(p->options.log, &p->fault_gate, now, "error", "no plan could be made", "error",
                     ration_err_text(err), "at", fault.path[0] != '\0' ? fault.path : NULL, "what",
                     fault.text[0] != '\0' ? fault.text : NULL, NULL);
        return;
    }
    p->counts.plans++;
    p->counts.feasible = rn_jobs_planned(p->jobs)->feasible;
    feasibility_log(p, now);
}

/* A quota's maximum is another one than before, somewhere, or in a new window not the declared one. */
static void maxima_look(rn_planning *p, ration_time now)
{
    const ration_reporter reporter = {.ctx = p, .kinds = 1u << RATION_KIND_QUOTA, .counter = on_maximum};
    rn_decider *d = p->options.decider;
    ration_totals totals;

    d->ops->totals(d, &totals);
    p->due = p->due || totals.maxima != p->maxima;
    p->maxima = totals.maxima;
    if (totals.disagreements == p->told)
        return;
    if (d->ops->report(d, now, RATION_REPORT_LIMITS, &reporter) == RATION_OK)
        p->told = totals.disagreements;
    rn_gateway_touch(p->gateway);
}

/* ---- runs */

static rn_run_pace pace_of(const rn_planning *p, size_t job)
{
    const ration_plan *plan = rn_jobs_planned(p->jobs);

    return rn_run_pace_of(job_at(p, job)->interval_us, plan != NULL ? plan->jobs[job].effective_us : 0);
}

/* A run is known: learn from it, and keep it. */
static int run_note(rn_planning *p, size_t job, ration_time begun, const ration_run *run)
{
    bool replan = false;
    const int err = rn_jobs_ran(p->jobs, job, run, &replan);

    if (err != RATION_OK)
        return err;
    p->due = p->due || replan;
    if (p->options.ran != NULL)
        p->options.ran(p->options.ctx, begun, ration_text_of(job_at(p, job)->name), run);
    return RATION_OK;
}

static void run_ended(rn_planning *p, size_t job, const rn_run_told *told)
{
    if (told->end == RN_RUN_WHOLE && run_note(p, job, told->begun, &told->run) == RATION_OK) {
        p->counts.counted++;
    } else if (told->end != RN_RUN_NONE) {
        p->counts.cut++;
    }
}

/* Into `open`, or out of it, as its run is. */
static void meter_list(rn_planning *p, meter *m)
{
    if (m->run.open == m->listed)
        return;
    m->listed = m->run.open;
    if (m->listed) {
        TAILQ_INSERT_TAIL(&p->open, m, link);
    } else {
        TAILQ_REMOVE(&p->open, m, link);
    }
}

static void quiet_end(rn_planning *p, ration_time now)
{
    meter *next;

    for (meter *m = TAILQ_FIRST(&p->open); m != NULL; m = next) {
        const size_t job = (size_t)(m - p->meters);
        const rn_run_told told = rn_run_over(&m->run, now, pace_of(p, job));

        next = TAILQ_NEXT(m, link);
        run_ended(p, job, &told);
        meter_list(p, m);
    }
}

void rn_planning_arrives(rn_planning *p, size_t job)
{
    const ration_time now = rn_loop_now(p->options.loop);
    meter *m = &p->meters[job];
    rn_run_told told;

    if (rn_run_arrive(&m->run, now, pace_of(p, job), &told))
        rn_jobs_begins(p->jobs, job, now);
    run_ended(p, job, &told);
    meter_list(p, m);
}

void rn_planning_sent(rn_planning *p, size_t job, bool retry)
{
    rn_run_sent(&p->meters[job].run, retry);
}

void rn_planning_leaves(rn_planning *p, size_t job, bool sent)
{
    rn_run_leave(&p->meters[job].run, rn_loop_now(p->options.loop), sent);
}

/* Something has changed: plan with the next tick, or now if that has been a while. */
static void hurry(rn_planning *p)
{
    if (p->due && p->gateway != NULL && rn_sub(rn_loop_now(p->options.loop).us, p->tried_at.us) >= TICK_US)
        (void)rn_timer_set(&p->timer, rn_loop_now(p->options.loop));
}

/* Nothing to do is no run to learn from, but an inventory. */
static int empty_note(rn_planning *p, size_t job)
{
    const char *name = job_at(p, job)->fan_out;
    const int err = name != NULL ? rn_jobs_inventory(p->jobs, ration_text_of(name), 0) : RATION_ERR_INVALID;

    p->due = p->due || err == RATION_OK;
    return err;
}

int rn_planning_reported(rn_planning *p, size_t job, const ration_run *run, int64_t children, int64_t took_us)
{
    const ration_time now = rn_loop_now(p->options.loop);
    meter *m = &p->meters[job];
    /* Requests that were seen have told when it began. */
    const ration_time begun = m->run.open ? m->run.begun : ration_time_of(rn_sub(now.us, took_us));
    const int err = children == 0 ? empty_note(p, job) : run_note(p, job, begun, run);

    if (err != RATION_OK)
        return err;
    p->counts.reported++;
    rn_run_drop(&m->run);
    meter_list(p, m);
    rn_jobs_begins(p->jobs, job, begun);
    hurry(p);
    return RATION_OK;
}

int rn_planning_restore(rn_planning *p, ration_text job, ration_time begun, const ration_run *run)
{
    const size_t index = rn_jobs_find(p->jobs, job);
    const int err = index != SIZE_MAX ? rn_jobs_ran(p->jobs, index, run, NULL) : RATION_ERR_UNKNOWN;

    if (err == RATION_OK)
        rn_jobs_begins(p->jobs, index, begun);
    return err;
}

/* ---- the whole */

static void on_tick(void *user, ration_time now)
{
    rn_planning *p = user;
    const int64_t age_us = rn_sub(now.us, p->tried_at.us);

    quiet_end(p, now);
    maxima_look(p, now);

    /* A clock that was set back does not put off the next plan. */
    const bool old = age_us < 0 || age_us >= rn_config_settings(p->options.config)->replan_us;
    if (p->counts.jobs > 0 && (p->due || old))
        plan(p, now);
    (void)rn_timer_set(&p->timer, rn_time_add(now, TICK_US));
}

static bool has_quota(const ration_rules *rules)
{
    for (size_t i = 0; i < rules->provider_count; i++) {
        for (size_t j = 0; j < rules->providers[i].limit_count; j++) {
            if (rules->providers[i].limits[j].kind == RATION_KIND_QUOTA)
                return true;
        }
    }
    return false;
}

/* Of a config; ticks follow while there is something that needs them. */
static void plan_first(rn_planning *p)
{
    const ration_time now = rn_loop_now(p->options.loop);

    plan(p, now);
    if (!rn_timer_is_set(&p->timer) && (p->counts.jobs > 0 || has_quota(ration_config_rules(p->options.config))))
        (void)rn_timer_set(&p->timer, rn_time_add(now, TICK_US));
}

int rn_planning_new(const rn_planning_options *options, rn_planning **out)
{
    rn_planning *p = rn_mem_zalloc(rn_mem_default(), 1, sizeof *p);

    if (p == NULL)
        return RATION_ERR_NOMEM;
    p->options = *options;
    p->counts.feasible = 1;
    TAILQ_INIT(&p->open);
    rn_timer_init(&p->timer, options->loop, on_tick, p);
    rn_log_gate *const gates[] = {&p->change_gate, &p->scope_gate, &p->job_gate, &p->maximum_gate};
    for (size_t i = 0; i < sizeof gates / sizeof gates[0]; i++)
        gates[i]->more = LINES - 1;
    int err = rn_jobs_new(options->config, &p->jobs);
    if (err == RATION_OK) {
        p->counts.jobs = rn_jobs_count(p->jobs);
        p->meters = rn_mem_zalloc(rn_mem_default(), p->counts.jobs + 1, sizeof *p->meters);
        if (p->meters == NULL)
            err = RATION_ERR_NOMEM;
    }
    if (err != RATION_OK) {
        rn_planning_free(p);
        return err;
    }
    *out = p;
    return RATION_OK;
}

void rn_planning_start(rn_planning *p, struct rn_gateway *gateway)
{
    p->gateway = gateway;
    plan_first(p);
}

/* ---- other rules */

int rn_planning_prepare(const rn_planning *p, const ration_config *config, rn_planning_next *out)
{
    rn_planning_next next = {.config = config};
    const size_t before = rn_jobs_count(p->jobs);

    int err = rn_jobs_new(config, &next.jobs);
    if (err == RATION_OK) {
        next.meters = rn_mem_zalloc(rn_mem_default(), rn_jobs_count(next.jobs) + 1, sizeof *next.meters);
        next.heirs = rn_mem_zalloc(rn_mem_default(), before + 1, sizeof *next.heirs);
        err = next.meters != NULL && next.heirs != NULL ? RATION_OK : RATION_ERR_NOMEM;
    }
    if (err != RATION_OK) {
        rn_planning_forget(&next);
        return err;
    }
    for (size_t i = 0; i < before; i++) {
        const size_t heir = rn_jobs_find(next.jobs, ration_text_of(job_at(p, i)->name));

        next.heirs[i] = rn_jobs_are_same(p->jobs, i, next.jobs, heir) ? heir : SIZE_MAX;
    }
    *out = next;
    return RATION_OK;
}

void rn_planning_forget(rn_planning_next *next)
{
    rn_jobs_free(next->jobs);
    rn_mem_free(rn_mem_default(), next->meters);
    rn_mem_free(rn_mem_default(), next->heirs);
    *next = (rn_planning_next){.jobs = NULL};
}

void rn_planning_adopt(rn_planning *p, rn_planning_next *next)
{
    rn_planning_next past = {.jobs = p->jobs, .meters = p->meters, .heirs = next->heirs};

    rn_jobs_adopt(next->jobs, p->jobs);
    TAILQ_INIT(&p->open);
    p->options.config = next->config;
    p->jobs = next->jobs;
    p->meters = next->meters;
    for (size_t i = 0; i < p->counts.jobs; i++) {
        if (past.heirs[i] == SIZE_MAX)
            continue;
        p->meters[past.heirs[i]].run = past.meters[i].run;
        meter_list(p, &p->meters[past.heirs[i]]);
    }
    p->counts.jobs = rn_jobs_count(p->jobs);
    *next = (rn_planning_next){.jobs = NULL};
    rn_planning_forget(&past);
    plan_first(p);
}

void rn_planning_free(rn_planning *p)
{
    if (p == NULL)
        return;
    rn_timer_stop(&p->timer);
    rn_jobs_free(p->jobs);
    rn_mem_free(rn_mem_default(), p->meters);
    rn_mem_free(rn_mem_default(), p);
}

const rn_jobs *rn_planning_jobs(const rn_planning *p)
{
    return p->jobs;
}

const rn_planning_counts *rn_planning_look(const rn_planning *p)
{
    return &p->counts;
}

static const char *name_at(const void *names, size_t index)
{
    return rn_jobs_at(names, index)->name;
}

const char *rn_planning_nearest(const rn_planning *p, ration_text name)
{
    const size_t count = p->counts.jobs < NEAREST ? (size_t)p->counts.jobs : NEAREST;

    return rn_nearest(name, p->jobs, count, name_at);
}

/* ---- the status */

static void scopes_write(const rn_planning *p, const ration_plan *plan, rn_output *out)
{
    size_t count = 0;

    rn_output_open(out, "infeasible", '[');
    for (size_t i = 0; i < plan->scope_count; i++) {
        const ration_scope_plan *scope = &plan->scopes[i];
        const rn_scope_name *name = rn_jobs_scope(p->jobs, i);

        if (scope->feasible || count++ >= LISTED_MAX)
            continue;
        rn_output_open(out, NULL, '{');
        rn_output_str(out, "limit", name->limit);
        rn_output_str(out, "key", name->key);
        rn_output_micro(out, "budget", scope->budget);
        rn_output_micro(out, "projected", scope->projected);
        rn_output_micro(out, "critical", scope->critical);
        rn_output_close(out, '}');
    }
    for (size_t i = 0; i < plan->job_count; i++) {
        if (plan->jobs[i].feasible || count++ >= LISTED_MAX)
            continue;
        rn_output_open(out, NULL, '{');
        rn_output_str(out, "job", job_at(p, i)->name);
        rn_output_ms(out, "intervalMs", plan->jobs[i].effective_us);
        rn_output_ms(out, "leastMs", plan->jobs[i].least_us);
        rn_output_close(out, '}');
    }
    rn_output_close(out, ']');
    if (count > LISTED_MAX)
        rn_output_int(out, "infeasibleOmitted", (int64_t)(count - LISTED_MAX));
}

static int64_t stretched_count(const ration_plan *plan)
{
    int64_t count = 0;

    for (size_t i = 0; i < plan->job_count; i++)
        count += plan->jobs[i].effective_us > plan->jobs[i].desired_us;
    return count;
}

void rn_planning_write(const rn_planning *p, rn_output *out)
{
    const ration_plan *plan = rn_jobs_planned(p->jobs);
    const rn_planning_counts *counts = &p->counts;

    if (counts->jobs == 0)
        return;
    rn_output_open(out, "plan", '{');
    rn_output_int(out, "jobs", (int64_t)counts->jobs);
    if (plan != NULL) {
        rn_output_bool(out, "feasible", plan->feasible);
        rn_output_ms(out, "madeAt", plan->made_at.us);
        rn_output_int(out, "stretched", stretched_count(plan));
        scopes_write(p, plan, out);
    }
    rn_output_int(out, "plans", (int64_t)counts->plans);
    rn_output_int(out, "faults", (int64_t)counts->faults);
    rn_output_int(out, "changes", (int64_t)counts->changes);
    rn_output_open(out, "runs", '{');
    rn_output_int(out, "counted", (int64_t)counts->counted);
    rn_output_int(out, "cut", (int64_t)counts->cut);
    rn_output_int(out, "reported", (int64_t)counts->reported);
    rn_output_close(out, '}');
    rn_output_close(out, '}');
}
