/* SPDX-License-Identifier: MIT */
/*
 * A day in virtual time.
 *
 * Everything that will happen is an event in one heap, by its instant and then by the order in which it was foreseen.
 * Nothing else moves time, and chance is a function of the seed and of names, so a day is a pure function of its
 * options. After each event the gateway is looked at once: what its engine has done by itself, what it wants kept, when
 * it wants to be woken.
 *
 * Two clocks: true time is the providers' and orders the events; the gateway believes what `rn_clock_follow` makes of
 * it and of its machine's wall clock, which faults may put wrong.
 *
 * The hash takes in each answer and event of the engine, in order, and each status that comes back. Two days with one
 * hash have decided alike.
 *
 * Invariants: `now` never falls; an event is in the heap or not scheduled; a wire is in the heap and in `wires`.
 */
#include "simulate/day_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/quota_budget.h"
#include "simulate/summary.h"

/* A Monday, in the past of every reader. */
#define START_US INT64_C(1767571200000000) /* 2026-01-05T00:00:00Z */

/* ---- events */

static bool event_before(const rn_heap_node *a, const rn_heap_node *b)
{
    const rn_day_event *x = (const rn_day_event *)(const void *)a;
    const rn_day_event *y = (const rn_day_event *)(const void *)b;

    return x->at.us != y->at.us ? x->at.us < y->at.us : x->order < y->order;
}

int rn_day_at(rn_day *day, rn_day_event *event, ration_time at)
{
    event->at = rn_time_max(at, day->now);
    event->order = day->order++;
    if (rn_heap_contains(&event->node)) {
        rn_heap_moved(&day->events, &event->node);
        return 0;
    }
    return rn_heap_push(&day->events, &event->node);
}

void rn_day_not(rn_day *day, rn_day_event *event)
{
    rn_heap_remove(&day->events, &event->node);
}

int64_t rn_day_since(const rn_day *day)
{
    return rn_sub(day->now.us, day->start.us);
}

size_t rn_day_slot(const rn_day *day)
{
    const int64_t slot = rn_day_since(day) / rn_max(day->options->span_us / RN_DAY_SLOTS, 1);

    return (size_t)rn_min(slot, RN_DAY_SLOTS - 1);
}

/* ---- lists, the hash, faults */

void *rn_day_grow(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;

    const size_t wanted = *capacity > 0 ? 2 * *capacity : 16;
    void *grown = rn_mem_resize(rn_mem_default(), items, wanted, size);

    if (grown != NULL)
        *capacity = wanted;
    return grown;
}

/* FNV-1a by bytes, the lowest first, so that the machine's order of bytes does not matter. */
void rn_day_mix(rn_day *day, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        day->result.hash ^= value >> (8 * i) & 0xff;
        day->result.hash *= UINT64_C(0x100000001b3);
    }
}

static void text_mix(rn_day *day, ration_text text)
{
    rn_day_mix(day, text.size);
    for (size_t i = 0; i < text.size; i++) {
        day->result.hash ^= (unsigned char)text.data[i];
        day->result.hash *= UINT64_C(0x100000001b3);
    }
}

int rn_day_fail(rn_day *day, int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(day->error->text, sizeof day->error->text, format, args);
    va_end(args);
    return err;
}

static void decision_mix(rn_day *day, const ration_decision *decision)
{
    rn_day_mix(day, (uint64_t)decision->result);
    rn_day_mix(day, (uint64_t)decision->reason);
    rn_day_mix(day, (uint64_t)decision->retry_at.us);
    text_mix(day, ration_text_of(decision->limit));
    text_mix(day, decision->key);
}

static void on_call(void *ctx, const ration_call *call)
{
    rn_day *day = ctx;

    if (day->recorder != NULL)
        rn_recorder_sink(day->recorder)->call(rn_recorder_sink(day->recorder)->ctx, call);
}

static void on_answer(void *ctx, const ration_call *call, int err, const ration_decision *decision)
{
    rn_day *day = ctx;

    /* How often the engine is only looked at decides nothing. */
    if (call->op != RATION_OP_ADVANCE && call->op != RATION_OP_REPORT) {
        rn_day_mix(day, (uint64_t)call->op);
        rn_day_mix(day, (uint64_t)call->at.us);
        rn_day_mix(day, call->serial);
        rn_day_mix(day, (uint64_t)err);
        if (err == 0 && decision != NULL)
            decision_mix(day, decision);
    }
    if (day->recorder != NULL)
        rn_recorder_sink(day->recorder)->answer(rn_recorder_sink(day->recorder)->ctx, call, err, decision);
}

static void on_event(void *ctx, const ration_event *event)
{
    rn_day *day = ctx;

    if (day->options->watcher != NULL)
        day->options->watcher->event(day->options->watcher->ctx, event);

    rn_day_mix(day, (uint64_t)event->type);
    rn_day_mix(day, (uint64_t)event->at.us);
    rn_day_mix(day, event->serial);
    rn_day_mix(day, (uint64_t)event->waited_us);
    if (event->type == RATION_EVENT_REFUSED)
        decision_mix(day, &event->decision);
    if (day->recorder != NULL)
        rn_recorder_sink(day->recorder)->event(rn_recorder_sink(day->recorder)->ctx, event);
}

/* ---- a day begins */

/* What jobs would like to call at their desired intervals. */
static int wanted_count(rn_day *day)
{
    int64_t all = 0;

    for (size_t i = 0; i < day->runner_count; i++) {
        const rn_job *job = day->runners[i].job;
        rn_day_class *class = &day->result.classes[job->priority];
        const int64_t children = job->fan_out != NULL ? job->fan_out_estimate : 1;
        const int64_t runs = rn_max(day->options->span_us / job->interval_us, 1);
        const int64_t calls = rn_mul(rn_mul(runs, children), job->pages_per_run) / RATION_UNIT;

        class->present = true;
        class->wanted = rn_add(class->wanted, calls);
        all = rn_add(all, calls);
    }
    if (all > RN_DAY_CALLS_MAX) {
        return rn_day_fail(day, RATION_ERR_FULL,
                           "the jobs want %lld calls in that time, and a simulated day takes %d at most; make the "
                           "span shorter",
                           (long long)all, RN_DAY_CALLS_MAX);
    }
    return 0;
}

static int config_check(rn_day *day)
{
    if (rn_config_job(day->config, 0) == NULL)
        return rn_day_fail(day, RATION_ERR_CONFIG, "the config has no jobs: a simulated day is about them");
    for (size_t p = 0; p < day->rules->provider_count; p++) {
        const ration_provider_rule *provider = &day->rules->providers[p];

        for (size_t i = 0; i < provider->limit_count; i++) {
            if (provider->limits[i].kind == RATION_KIND_QUOTA)
                return 0;
        }
    }
    return rn_day_fail(day, RATION_ERR_CONFIG, "no provider has a quota: there is nothing to plan a day by");
}

static int zone_find(const rn_day *day, const char *name, rn_zone **out)
{
    for (size_t i = 0; name != NULL && i < day->rules->zone_count; i++) {
        const ration_zone_data *zone = &day->rules->zones[i];

        if (strcmp(zone->name, name) == 0)
            return rn_zone_new(rn_mem_default(), zone->data, zone->size, out);
    }
    return 0;
}

static const ration_limit_rule *daily_of(const ration_provider_rule *provider)
{
    for (size_t i = 0; i < provider->limit_count; i++) {
        if (provider->limits[i].kind == RATION_KIND_QUOTA && provider->limits[i].window.period == RATION_PERIOD_DAY)
            return &provider->limits[i];
    }
    return NULL;
}

/* A day begins with a window of the first daily quota of a provider that a job calls, so that it is a whole one. */
static int start_find(rn_day *day)
{
    const ration_limit_rule *daily = NULL;
    const rn_job *job;
    ration_time start;
    rn_zone *zone = NULL;

    day->start = ration_time_of(START_US);
    for (size_t i = 0; daily == NULL && (job = rn_config_job(day->config, i)) != NULL; i++)
        daily = daily_of(&day->rules->providers[rn_config_account(day->config, job->account)->provider]);
    if (daily == NULL)
        return 0;

    day->result.zone = daily->window.zone;
    const int err = zone_find(day, daily->window.zone, &zone);
    if (err == 0 && rn_quota_window_at(daily, zone, day->start, &start, &day->end) && start.us != day->start.us)
        day->start = day->end;
    rn_zone_free(zone);
    return err;
}

/* The engine is asked at an instant that it has been at: one that moved its time would make another day of it. */
static int look_take(rn_day *day, bool last)
{
    const rn_day_watcher *watcher = day->options->watcher;
    const bool up = day->gateway.engine != NULL;

    if (watcher == NULL)
        return 0;
    rn_day_look look = {.at = last ? day->end : day->now,
                        .last = last,
                        .believed = up ? day->gateway.clock.now : day->now,
                        .decider = up ? &day->gateway.decider.base : NULL,
                        .jobs = up ? day->gateway.jobs : NULL,
                        .counted = &day->result};
    for (size_t p = 0; p < RN_DAY_PRIORITIES; p++) {
        look.waits[p].us = day->waits[p].items;
        look.waits[p].count = day->waits[p].count;
    }
    return watcher->look(watcher->ctx, &look);
}

static int on_sample(rn_day *day, rn_day_event *event)
{
    int err = rn_day_audit_sample(day);

    if (err == 0)
        err = look_take(day, false);
    return err == 0 ? rn_day_at(day, event, rn_time_add(day->now, rn_max(day->options->span_us / RN_DAY_SAMPLES, 1)))
                    : err;
}

static int recorder_start(rn_day *day)
{
    size_t size;
    int err = rn_config_json(day->config, &day->config_json, &size);

    if (err != 0)
        return err;
    const rn_recorder_options options = {
        .config = {day->config_json, size},
        .rules = day->rules,
        .started_at = day->start,
        .write = day->options->record,
        .ctx = day->options->record_ctx,
    };
    return rn_recorder_new(&options, &day->recorder);
}

static int day_begin(rn_day *day)
{
    int err = config_check(day);

    if (err == 0)
        err = start_find(day);
    if (err != 0)
        return err;
    day->now = day->start;
    day->end = rn_time_add(day->start, day->options->span_us);
    day->result.start = day->start;
    if (day->options->record != NULL)
        err = recorder_start(day);
    if (err == 0)
        err = rn_day_runners_init(day);
    if (err == 0)
        err = wanted_count(day);
    if (err == 0)
        err = rn_day_providers_init(day);
    if (err == 0)
        err = rn_day_faults_init(day);
    if (err == 0)
        err = rn_day_gateway_start(day);
    if (err == 0) {
        day->sample.fire = on_sample;
        rn_heap_node_init(&day->sample.node);
        err = rn_day_at(day, &day->sample, day->now);
    }
    return err;
}

static int day_play(rn_day *day)
{
    int err = rn_day_gateway_settle(day);

    while (err == 0) {
        rn_day_event *next = (rn_day_event *)(void *)rn_heap_top(&day->events);

        if (next == NULL || !rn_time_before(next->at, day->end))
            break;
        (void)rn_heap_pop(&day->events);
        day->now = next->at;
        err = next->fire(day, next);
        if (err == 0)
            err = rn_day_gateway_settle(day);
    }
    day->now = day->end;
    return err;
}

static void waits_count(rn_day *day)
{
    for (size_t p = 0; p < RN_DAY_PRIORITIES; p++) {
        rn_day_waits *waits = &day->waits[p];
        rn_day_class *class = &day->result.classes[p];

        class->wait_p50_us = rn_percentile(waits->items, waits->count, 50);
        class->wait_p99_us = rn_percentile(waits->items, waits->count, 99);
        class->wait_max_us = rn_percentile(waits->items, waits->count, 100);
    }
}

static int day_end(rn_day *day)
{
    int err = rn_day_audit_finish(day);

    if (err == 0)
        err = look_take(day, true);
    if (err != 0)
        return err;
    waits_count(day);
    for (size_t p = 0; p < RN_DAY_PRIORITIES; p++) {
        for (size_t cause = 0; cause < RN_DAY_CAUSES; cause++)
            day->result.limited[cause] += day->result.classes[p].limited[cause];
    }
    return 0;
}

static void day_fini(rn_day *day)
{
    rn_heap_fini(&day->events);
    rn_day_gateway_fini(day);
    rn_recorder_free(day->recorder);
    rn_day_providers_fini(day);
    rn_day_audit_fini(day);
    rn_store_fini(&day->store);
    for (size_t p = 0; p < RN_DAY_PRIORITIES; p++)
        rn_mem_free(rn_mem_default(), day->waits[p].items);
    rn_mem_free(rn_mem_default(), day->config_json);
    rn_arena_fini(&day->arena);
}

static bool options_are_fine(const rn_day_options *o)
{
    return o->span_us >= RN_DAY_SPAN_MIN_US && o->span_us <= RN_DAY_SPAN_MAX_US && (o->faults & ~RN_DAY_ALL) == 0 &&
           (o->record == NULL || (o->faults & (RN_DAY_RESTART | RN_DAY_KILL)) == 0);
}

int rn_day_run(const rn_day_options *options, rn_day_result *out, rn_day_error *error)
{
    rn_day_error unheard = {""};
    rn_day day = {
        .options = options,
        .config = options->config,
        .rules = ration_config_rules(options->config),
        .settings = rn_config_settings(options->config),
        .latency_times = 1,
        .error = error != NULL ? error : &unheard,
        .sink = {.ctx = &day, .call = on_call, .answer = on_answer, .event = on_event},
        .result = {.span_us = options->span_us,
                   .seed = options->behaviour.seed,
                   .faults = options->faults,
                   .hash = UINT64_C(0xcbf29ce484222325)},
    };

    if (!options_are_fine(options))
        return rn_day_fail(&day, RATION_ERR_INVALID, "a simulated day lasts from a minute to 31 days");
    day.error->text[0] = '\0';
    rn_arena_init(&day.arena, rn_mem_default());
    rn_heap_init(&day.events, rn_mem_default(), event_before);
    rn_store_init(&day.store);
    LIST_INIT(&day.wires);

    int err = day_begin(&day);
    if (err == 0)
        err = day_play(&day);
    if (err == 0)
        err = day_end(&day);
    if (err != 0 && day.error->text[0] == '\0')
        (void)rn_day_fail(&day, err, "%s", ration_err_text(err));
    day_fini(&day);
    if (err != 0) {
        rn_day_result_fini(&day.result);
        return err;
    }
    *out = day.result;
    return 0;
}

void rn_day_result_fini(rn_day_result *result)
{
    const ration_allocator *mem = rn_mem_default();

    for (size_t i = 0; i < result->quota_count; i++) {
        rn_mem_free(mem, result->quotas[i].key);
        rn_mem_free(mem, result->quotas[i].points);
    }
    for (size_t i = 0; i < result->job_count; i++)
        rn_mem_free(mem, result->jobs[i].intervals);
    rn_mem_free(mem, result->quotas);
    rn_mem_free(mem, result->jobs);
    rn_mem_free(mem, result->episodes);
    *result = (rn_day_result){.hash = 0};
}

bool rn_day_passed(const rn_day_result *result)
{
    bool passed = result->limited[RN_DAY_BY_QUOTA] == 0;

    for (size_t i = 0; i < result->quota_count; i++)
        passed = passed && result->quotas[i].overspent == 0;
    return passed;
}

const char *rn_day_cause_name(rn_day_cause cause)
{
    static const char *const names[RN_DAY_CAUSES] = {"quota", "rate", "concurrency", "other"};

    return names[cause];
}
