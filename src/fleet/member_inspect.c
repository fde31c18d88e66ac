/* SPDX-License-Identifier: MIT */
/*
 * What the store has to tell of counters, for those who look at this process. Breakers are asked for with them
 * (member_gates.c).
 *
 * Nobody who looks waits for Redis: figures are what the last answer has told. They are asked for with the beats, each
 * second while somebody looks, else each tenth one, of the counters that requests have asked for here last. A page that
 * wants them fresh is told when they are, or that nothing came.
 *
 * Invariants: a figure is in the map and in the list, the last one asked for first; its limit is of the present rules.
 * `asked_out` calls are under way, which belong to one round.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "fleet/member_parts.h"

#define FIGURES_MAX 256
#define FRESH_US INT64_C(1000000)
#define LOOKED_US (60 * FRESH_US)
#define IDLE_US (9 * FRESH_US + FRESH_US / 2)

void rn_member_figures_init(rn_member *m)
{
    rn_map_init(&m->figures, &m->mem);
    TAILQ_INIT(&m->figures_used);
    TAILQ_INIT(&m->listeners);
    m->figures_at.us = m->figures_asked_at.us = m->looked_at.us = RATION_NEVER_US;
}

static void figure_free(rn_member *m, rn_member_figure *figure)
{
    rn_map_remove(&m->figures, &figure->node);
    TAILQ_REMOVE(&m->figures_used, figure, link);
    rn_mem_free(&m->mem, figure);
}

void rn_member_figures_fini(rn_member *m)
{
    while (!TAILQ_EMPTY(&m->listeners))
        rn_member_forget(TAILQ_FIRST(&m->listeners));
    while (!TAILQ_EMPTY(&m->figures_used))
        figure_free(m, TAILQ_FIRST(&m->figures_used));
    rn_map_fini(&m->figures);
}

/* ---- which counters */

/* Their limit and key, as one text. */
static size_t name_write(const rn_limit *limit, ration_text key, char *out)
{
    memcpy(out, &limit->uid, sizeof limit->uid);
    if (key.size > 0)
        memcpy(out + sizeof limit->uid, key.data, key.size);
    return sizeof limit->uid + key.size;
}

static rn_member_figure *figure_new(rn_member *m, const rn_limit *limit, ration_text key)
{
    rn_member_figure *const figure = rn_mem_zalloc(&m->mem, 1, sizeof *figure + sizeof limit->uid + key.size);

    if (figure == NULL)
        return NULL;
    figure->limit = limit;
    figure->name_size = name_write(limit, key, figure->name);
    if (rn_map_find(&m->figures, figure->name, figure->name_size) != NULL ||
        rn_map_add(&m->figures, &figure->node, figure->name, figure->name_size) != RATION_OK) {
        rn_mem_free(&m->mem, figure);
        return NULL;
    }
    figure->serial = ++m->figure_serial;
    TAILQ_INSERT_HEAD(&m->figures_used, figure, link);
    if (m->figures.size > FIGURES_MAX)
        figure_free(m, TAILQ_LAST(&m->figures_used, rn_member_figures));
    return figure;
}

static ration_text key_of(const rn_member_figure *figure)
{
    const size_t before = sizeof figure->limit->uid;

    return (ration_text){figure->name + before, figure->name_size - before};
}

rn_member_figure *rn_member_figure_of(const rn_member *m, const rn_counter *counter)
{
    return (rn_member_figure *)(void *)rn_map_find(&m->figures, counter->name, counter->name_size);
}

rn_member_figure *rn_member_figure_like(const rn_member *m, const rn_counter *counter)
{
    const rn_limit *const limit = counter->limit;
    rn_member_figure *figure;

    TAILQ_FOREACH (figure, &m->figures_used, link) {
        if (strcmp(figure->limit->provider, limit->provider) == 0 &&
            strcmp(figure->limit->rule->name, limit->rule->name) == 0 && rn_text_eq(counter->key, key_of(figure)))
            return figure;
    }
    return NULL;
}

const rn_member_figure *rn_member_figure_named(const rn_member *m, const char *limit, ration_text key)
{
    const rn_member_figure *figure;

    TAILQ_FOREACH (figure, &m->figures_used, link) {
        if (figure->limit->rule->name == limit && rn_text_eq(key, key_of(figure)))
            return figure;
    }
    return NULL;
}

void rn_member_figures_touch(rn_member *m, const rn_route *route)
{
    for (size_t i = 0; i < route->count; i++) {
        const rn_counter *const counter = route->links[i].counter;
        rn_member_figure *const figure = rn_member_figure_of(m, counter);

        if (figure == NULL) {
            (void)figure_new(m, counter->limit, counter->key); /* without memory it is not shown */
            continue;
        }
        figure->named = false;
        TAILQ_REMOVE(&m->figures_used, figure, link);
        TAILQ_INSERT_HEAD(&m->figures_used, figure, link);
    }
}

void rn_member_figures_reload(rn_member *m)
{
    struct rn_member_figures old = TAILQ_HEAD_INITIALIZER(old);
    rn_member_figure *figure;

    while ((figure = TAILQ_LAST(&m->figures_used, rn_member_figures)) != NULL) {
        rn_map_remove(&m->figures, &figure->node);
        TAILQ_REMOVE(&m->figures_used, figure, link);
        TAILQ_INSERT_HEAD(&old, figure, link);
    }
    while ((figure = TAILQ_LAST(&old, rn_member_figures)) != NULL) {
        const ration_counter_name name = {ration_text_of(figure->limit->provider),
                                          ration_text_of(figure->limit->rule->name), key_of(figure)};
        rn_call_counter at;

        TAILQ_REMOVE(&old, figure, link);
        if (rn_member_counter(m->world, &name, &at) == RATION_OK)
            (void)figure_new(m, at.counter.limit, name.key);
        rn_mem_free(&m->mem, figure);
    }
}

/* ---- asking */

static bool is_fresh(const rn_member *m)
{
    return rn_time_known(m->figures_at) && rn_sub(rn_member_now(m).us, m->figures_at.us) < FRESH_US;
}

/* The round is over: whoever waited for it hears so. */
static void round_end(rn_member *m)
{
    rn_member_listener *listener;

    if (m->asked_out > 0)
        return;
    while ((listener = TAILQ_FIRST(&m->listeners)) != NULL) {
        rn_member_forget(listener);
        listener->told(listener, RATION_OK);
    }
}

void rn_member_round_answered(rn_member *m)
{
    m->asked_out--;
    round_end(m);
}

static rn_member_figure *figure_of(const rn_member *m, uint64_t serial)
{
    rn_member_figure *figure;

    TAILQ_FOREACH (figure, &m->figures_used, link) {
        if (figure->serial == serial)
            return figure;
    }
    return NULL;
}

void rn_member_inspected(rn_member *m, const rn_member_call *call, const redisReply *reply)
{
    const uint64_t *const serials = call->block;

    for (size_t i = 0; reply != NULL && call->world == m->world && i < call->figure_count; i++) {
        rn_member_figure *const figure = figure_of(m, serials[i]);

        if (figure == NULL)
            continue;
        figure->told = rn_figures_read(reply, i, figure->limit, &figure->figures);
        figure->told_at = rn_answer_at(reply);
        figure->spent = 0; /* what was answered before was done before */
        if (figure->named && !(figure->told && figure->figures.exists))
            figure_free(m, figure);
    }
    if (reply != NULL)
        m->figures_at = rn_member_now(m);
    rn_member_round_answered(m);
}

/* One call about some counters of one provider. */
static void ask_of(rn_member *m, const uint64_t *serials, size_t count)
{
    rn_member_call *const call = rn_member_call_plain(m, RN_SCRIPT_INSPECT, m->world);

    if (call != NULL)
        call->block = rn_mem_alloc(&m->mem, count * sizeof *serials);
    if (call == NULL || call->block == NULL) {
        if (call != NULL)
            rn_member_call_free(call);
        return;
    }
    memcpy(call->block, serials, count * sizeof *serials);
    call->figure_count = count;
    m->asked_out++;
    rn_member_call_send(m, call);
}

static void ask_provider(rn_member *m, const rn_provider *provider)
{
    uint64_t serials[RN_CALL_INSPECTED];
    rn_member_figure *figure;
    size_t count = 0;

    TAILQ_FOREACH (figure, &m->figures_used, link) {
        if (figure->limit->provider != provider->rule.name)
            continue;
        if (count == RN_CALL_INSPECTED) {
            ask_of(m, serials, count);
            count = 0;
        }
        serials[count++] = figure->serial;
    }
    if (count > 0)
        ask_of(m, serials, count);
}

static void ask(rn_member *m)
{
    if (m->asked_out > 0)
        return;
    m->figures_asked_at = rn_member_now(m);
    m->asked_out++; /* what fails at once does not end the round */
    for (size_t i = 0; i < m->world->rules.book.provider_count; i++)
        ask_provider(m, &m->world->rules.book.providers[i]);
    rn_member_gates_ask(m);
    rn_member_round_answered(m);
}

void rn_member_figures_beat(rn_member *m)
{
    const ration_time now = rn_member_now(m);
    const bool looked = rn_time_known(m->looked_at) && rn_sub(now.us, m->looked_at.us) < LOOKED_US;
    const bool due = !rn_time_known(m->figures_asked_at) || rn_sub(now.us, m->figures_asked_at.us) >= IDLE_US;

    if (looked || due || !TAILQ_EMPTY(&m->listeners))
        ask(m);
}

/* Nothing of a name that no request has brought here stays longer than it is asked for. */
static void name_put(rn_member *m, const ration_counter_name *name)
{
    rn_call_counter at;
    rn_member_figure *figure;

    if (rn_member_counter(m->world, name, &at) != RATION_OK)
        return;
    figure = figure_new(m, at.counter.limit, name->key);
    if (figure != NULL)
        figure->named = !at.known;
}

static bool has_name(const rn_member *m, const ration_counter_name *name)
{
    const rn_member_figure *figure;

    TAILQ_FOREACH (figure, &m->figures_used, link) {
        if (figure->told && rn_text_is(name->limit, figure->limit->rule->name) && rn_text_eq(name->key, key_of(figure)))
            return true;
    }
    return false;
}

bool rn_member_figures_want(rn_member *m, const ration_counter_name *name, rn_member_listener *listener)
{
    const ration_time now = rn_member_now(m);

    m->looked_at = now;
    if (rn_store_state_of(m->store) == RN_STORE_DOWN || (is_fresh(m) && (name == NULL || has_name(m, name))))
        return false;
    for (size_t i = 0; name != NULL && i < m->world->rules.book.provider_count; i++) {
        name_put(m, &(ration_counter_name){ration_text_of(m->world->rules.book.providers[i].rule.name), name->limit,
                                           name->key});
    }
    listener->member = m;
    TAILQ_INSERT_TAIL(&m->listeners, listener, link);
    if (!rn_time_known(m->figures_asked_at) || rn_sub(now.us, m->figures_asked_at.us) >= FRESH_US)
        ask(m); /* else with the next beat */
    return true;
}

/* ---- reports */

static int figure_order(const void *a, const void *b)
{
    const rn_member_figure *const x = *(rn_member_figure *const *)a;
    const rn_member_figure *const y = *(rn_member_figure *const *)b;

    return x->limit->uid != y->limit->uid ? (x->limit->uid < y->limit->uid ? -1 : 1)
                                          : rn_text_compare(key_of(x), key_of(y));
}

static bool is_wanted(const rn_member_figure *figure, const ration_reporter *reporter)
{
    const ration_limit_rule *const rule = figure->limit->rule;

    return figure->told && (reporter->kinds == 0 || (reporter->kinds >> rule->kind & 1) != 0) &&
           (reporter->limit.data == NULL || rn_text_is(reporter->limit, rule->name)) &&
           (reporter->key.data == NULL || rn_text_eq(reporter->key, key_of(figure)));
}

static void figure_report(const rn_member *m, const rn_member_figure *figure, const ration_reporter *reporter)
{
    ration_class_report classes[RN_CLASSES_MAX];
    ration_counter_report report;

    if (reporter->counter != NULL) {
        rn_figures_report(&figure->figures, figure->limit, key_of(figure), classes, &report);
        reporter->counter(reporter->ctx, &report);
    }
    if (reporter->penalty == NULL || !rn_time_known(figure->figures.penalty_until))
        return;

    const ration_penalty_report penalty = {key_of(figure), figure->limit->rule->name,
                                           rn_member_local(m, figure->figures.penalty_until),
                                           (uint32_t)rn_max(figure->figures.doublings, 1)};

    if (rn_time_before(rn_member_now(m), penalty.until))
        reporter->penalty(reporter->ctx, &penalty);
}

void rn_member_figures_report(rn_member *m, const ration_reporter *reporter)
{
    const rn_member_figure *found[FIGURES_MAX];
    const rn_member_figure *figure;
    size_t count = 0;

    if (reporter->kinds == 0) /* who counts only some kinds does so all the time */
        m->looked_at = rn_member_now(m);
    TAILQ_FOREACH (figure, &m->figures_used, link) {
        if (is_wanted(figure, reporter) && (reporter->most == 0 || count < reporter->most))
            found[count++] = figure;
    }
    qsort((void *)found, count, sizeof(const rn_member_figure *), figure_order);
    for (size_t i = 0; i < count; i++)
        figure_report(m, found[i], reporter);
}

int rn_member_inspect_write(rn_member *m, const rn_member_call *call)
{
    rn_call_counter *const counters = rn_mem_zalloc(&m->mem, call->figure_count, sizeof *counters);
    const uint64_t *const serials = call->block;
    int err = counters != NULL && call->world == m->world ? RATION_OK : RATION_ERR_NOMEM;

    for (size_t i = 0; err == RATION_OK && i < call->figure_count; i++) {
        const rn_member_figure *const figure = figure_of(m, serials[i]);
        ration_counter_name name;

        if (figure == NULL) {
            err = RATION_ERR_UNKNOWN;
            break;
        }
        name = (ration_counter_name){ration_text_of(figure->limit->provider), ration_text_of(figure->limit->rule->name),
                                     key_of(figure)};
        err = rn_member_counter(m->world, &name, &counters[i]);
    }
    if (err == RATION_OK) {
        rn_member_call_for(m, m->world);
        err = rn_call_inspect(&m->call, &(rn_call_inspection){counters, call->figure_count});
    }
    rn_mem_free(&m->mem, counters);
    return err;
}
