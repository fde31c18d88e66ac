/* SPDX-License-Identifier: MIT */
/*
 * A closed loop of callers against a hidden ceiling.
 *
 * The engine decides, as it does in the gateway: an answer is observed with its status and Retry-After, which is what
 * limits learn from, then its lease is released, and only then does its caller ask again. So a 429 pauses what the
 * rules say that it pauses, and moves an adaptive limit, without anything of either in here.
 *
 * A call reaches the provider at the instant of its grant. With as many in flight as the ceiling it is refused and
 * holds its lease for as long as that takes; otherwise it is worked on for its latency. Between two calls a caller
 * does not think, so that there is demand at every instant.
 *
 * Invariants: a caller waits in the engine or its call is out, never both; `out` has the callers whose calls are out,
 * by the ends of these; held = those; in_flight = those of them that were accepted.
 */
#include "simulate/closed_loop.h"

#include "base/heap.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

#define OK 200
#define TOO_MANY 429
#define UNAVAILABLE 503

typedef struct caller {
    rn_heap_node node;
    size_t number;
    ration_time ends_at;
    ration_lease lease;
    int status; /* of the call that is out */
} caller;

typedef struct closed_loop {
    const rn_closed_options *options;
    ration_engine *engine;
    caller *callers;
    rn_heap out;
    uint64_t calls; /* that have gone out */
    int64_t in_flight;
    int64_t limit;
    rn_closed_result result;
} closed_loop;

static bool ends_before(const rn_heap_node *a, const rn_heap_node *b)
{
    const caller *x = (const caller *)(const void *)a;
    const caller *y = (const caller *)(const void *)b;

    return x->ends_at.us != y->ends_at.us ? x->ends_at.us < y->ends_at.us : x->number < y->number;
}

static void meters_set(closed_loop *l, ration_time now)
{
    rn_capacity_meter_set(&l->result.accepted, now.us, l->in_flight);
    rn_capacity_meter_set(&l->result.held, now.us, (int64_t)l->out.size);
}

static void limit_set(closed_loop *l, ration_time now, int64_t limit)
{
    rn_closed_result *r = &l->result;

    r->limit_rises += limit > l->limit ? 1 : 0;
    r->limit_falls += limit < l->limit ? 1 : 0;
    r->limit_low = rn_min(r->limit_low, limit);
    r->limit_high = rn_max(r->limit_high, limit);
    l->limit = limit;
    rn_capacity_meter_set(&r->limit, now.us, limit);
}

static int call_begin(closed_loop *l, ration_time now, caller *c, ration_lease lease)
{
    const rn_behaviour *behaviour = l->options->behaviour;
    const uint64_t ordinal = l->calls++;
    uint64_t index;

    c->lease = lease;
    if (l->in_flight >= rn_capacity_at(&behaviour->ceiling, now.us)) {
        c->status = TOO_MANY;
        c->ends_at = rn_time_add(now, l->options->refusal_us);
    } else {
        c->status = rn_behaviour_fails(behaviour, ordinal, 1, &index) ? UNAVAILABLE : OK;
        c->ends_at = rn_time_add(now, rn_behaviour_latency(behaviour, ordinal));
        l->in_flight++;
    }
    const int err = rn_heap_push(&l->out, &c->node);
    meters_set(l, now);
    return err;
}

/* What the engine has done by itself. */
static int events_take(closed_loop *l)
{
    ration_event event;
    int err = 0;

    while (err == 0 && ration_engine_next_event(l->engine, &event)) {
        if (event.type == RATION_EVENT_GRANTED) {
            err = call_begin(l, event.at, event.user, event.lease);
        } else if (event.type == RATION_EVENT_LIMIT) {
            limit_set(l, event.at, event.value / RATION_UNIT);
        } else if (event.type == RATION_EVENT_REFUSED) {
            err = RATION_ERR_INVALID;
        }
    }
    return err;
}

static int call_ask(closed_loop *l, ration_time now, caller *c)
{
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision;

    request.account = ration_text_of(l->options->rules->accounts[0].name);
    request.method = ration_text_of("GET");
    request.path = ration_text_of("/");
    request.wait_us = RATION_FOREVER_US;
    request.user = c;
    int err = ration_engine_submit(l->engine, now, &request, &decision);
    if (err == 0 && decision.result == RATION_GRANTED)
        err = call_begin(l, now, c, decision.lease);
    if (err == 0 && decision.result == RATION_REFUSED)
        err = RATION_ERR_INVALID;
    return err == 0 ? events_take(l) : err;
}

static int answer_observe(closed_loop *l, ration_time now, const caller *c)
{
    char text[32];
    rn_builder b;

    rn_builder_init(&b, text, sizeof text);
    rn_builder_int(&b, rn_div_ceil(l->options->behaviour->retry_us, 1000));
    const ration_header header = {ration_text_of("Retry-After-Ms"), {b.data, b.used}};
    const ration_response response = {
        .status = c->status,
        .headers = &header,
        .header_count = c->status == TOO_MANY && l->options->behaviour->retry_us > 0 ? 1 : 0,
    };
    return ration_engine_observe(l->engine, now, c->lease, &response);
}

/* The call that ends first has its answer, and its caller asks again. */
static int call_end(closed_loop *l)
{
    caller *c = (caller *)(void *)rn_heap_pop(&l->out);
    const ration_time now = c->ends_at;

    l->in_flight -= c->status != TOO_MANY ? 1 : 0;
    meters_set(l, now);
    if (c->status == OK) {
        l->result.done++;
    } else if (c->status == TOO_MANY) {
        l->result.rate_limited++;
    } else {
        l->result.failed++;
    }

    int err = answer_observe(l, now, c);
    if (err == 0)
        err = ration_engine_release(l->engine, now, c->lease, NULL);
    if (err == 0)
        err = events_take(l);
    return err == 0 ? call_ask(l, now, c) : err;
}

/* Whatever is next: something falls due in the engine, or an answer comes. */
static int loop_run(closed_loop *l)
{
    const ration_time end = ration_time_of(l->options->span_us);
    int err = 0;

    for (size_t i = 0; i < l->options->callers && err == 0; i++)
        err = call_ask(l, ration_time_of(0), &l->callers[i]);
    while (err == 0) {
        const caller *first = (const caller *)(const void *)rn_heap_top(&l->out);
        const ration_time answer_at = first != NULL ? first->ends_at : ration_time_of(RATION_NEVER_US);
        const ration_time due = ration_engine_next_deadline(l->engine);

        if (rn_time_before(end, rn_time_min(answer_at, due)))
            break;
        if (rn_time_before(due, answer_at)) {
            err = ration_engine_advance(l->engine, due);
            if (err == 0)
                err = events_take(l);
        } else {
            err = call_end(l);
        }
    }
    if (err == 0) {
        meters_set(l, end);
        limit_set(l, end, l->limit);
    }
    return err;
}

/* What the first limit stands at in the beginning; 0: it is of no such kind. */
static int64_t limit_at_first(const ration_rules *rules)
{
    const ration_provider_rule *provider = rules->provider_count > 0 ? &rules->providers[0] : NULL;

    if (provider == NULL || provider->limit_count == 0 || rules->account_count == 0)
        return 0;

    const ration_limit_rule *limit = &provider->limits[0];
    if (limit->kind == RATION_KIND_ADAPTIVE)
        return limit->adaptive.initial_limit;
    return limit->kind == RATION_KIND_CONCURRENCY ? limit->max / RATION_UNIT : 0;
}

static bool options_are_fine(const rn_closed_options *o)
{
    const rn_latency *latency = &o->behaviour->latency;

    return limit_at_first(o->rules) > 0 && o->callers > 0 && o->refusal_us > 0 && o->span_us > 0 &&
           latency->mean_us > latency->spread_us;
}

static int loop_prepare(closed_loop *l)
{
    const rn_closed_options *o = l->options;
    const ration_engine_options engine = {.rules = o->rules};

    l->limit = limit_at_first(o->rules);
    l->result = (rn_closed_result){.limit_low = l->limit, .limit_high = l->limit};
    rn_capacity_meter_init(&l->result.accepted, &o->behaviour->ceiling);
    rn_capacity_meter_init(&l->result.held, &o->behaviour->ceiling);
    rn_capacity_meter_init(&l->result.limit, &o->behaviour->ceiling);
    limit_set(l, ration_time_of(0), l->limit);

    l->callers = rn_mem_zalloc(rn_mem_default(), o->callers, sizeof *l->callers);
    if (l->callers == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < o->callers; i++) {
        l->callers[i].number = i;
        rn_heap_node_init(&l->callers[i].node);
    }
    const int err = rn_heap_reserve(&l->out, o->callers);
    return err == 0 ? ration_engine_new(&engine, ration_time_of(0), &l->engine, NULL) : err;
}

int rn_closed_loop_run(const rn_closed_options *options, rn_closed_result *out)
{
    closed_loop l = {.options = options};

    if (!options_are_fine(options))
        return RATION_ERR_INVALID;
    rn_heap_init(&l.out, rn_mem_default(), ends_before);
    int err = loop_prepare(&l);
    if (err == 0)
        err = loop_run(&l);
    if (err == 0)
        *out = l.result;
    ration_engine_free(l.engine);
    rn_heap_fini(&l.out);
    rn_mem_free(rn_mem_default(), l.callers);
    return err;
}
