/* SPDX-License-Identifier: MIT */
/*
 * Breakers for those who look at this process: where the circuits that requests have gone through here stood when the
 * store was asked last. They are asked for together with the figures of counters (member_inspect.c), one call each, and
 * as the call lets time pass, one that time alone moves has been moved by it.
 *
 * Invariants: a gate is in the map and in the list, the last one asked for first. Its names are its own, so it outlives
 * the rules; one whose provider has no breaker any more is neither asked for nor told of.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "fleet/member_parts.h"

#define GATES_MAX 64
#define NAME_MAX_SIZE 1024

void rn_member_gates_init(rn_member *m)
{
    rn_map_init(&m->gates, &m->mem);
    TAILQ_INIT(&m->gates_used);
}

static void gate_free(rn_member *m, rn_member_gate *gate)
{
    rn_map_remove(&m->gates, &gate->node);
    TAILQ_REMOVE(&m->gates_used, gate, link);
    rn_mem_free(&m->mem, gate);
}

void rn_member_gates_fini(rn_member *m)
{
    while (!TAILQ_EMPTY(&m->gates_used))
        gate_free(m, TAILQ_FIRST(&m->gates_used));
    rn_map_fini(&m->gates);
}

/* ---- which circuits */

static rn_member_gate *gate_find(const rn_member *m, ration_text name)
{
    return (rn_member_gate *)(void *)rn_map_find(&m->gates, name.data, name.size);
}

static ration_text key_of(const rn_member_gate *gate)
{
    return rn_text_slice((ration_text){gate->name, gate->name_size}, strlen(gate->name) + 1, gate->name_size);
}

/* Without memory it is not shown. */
static void gate_add(rn_member *m, ration_text name)
{
    rn_member_gate *const gate = rn_mem_zalloc(&m->mem, 1, sizeof *gate + name.size);

    if (gate == NULL)
        return;
    memcpy(gate->name, name.data, name.size);
    gate->name_size = name.size;
    if (rn_map_add(&m->gates, &gate->node, gate->name, gate->name_size) != RATION_OK) {
        rn_mem_free(&m->mem, gate);
        return;
    }
    TAILQ_INSERT_HEAD(&m->gates_used, gate, link);
    if (m->gates.size > GATES_MAX)
        gate_free(m, TAILQ_LAST(&m->gates_used, rn_member_gates));
}

void rn_member_gates_touch(rn_member *m, const rn_route *route)
{
    const ration_text provider = route->provider->name;
    const ration_text key = route->circuit != NULL ? route->circuit->key : (ration_text){NULL, 0};
    const size_t size = provider.size + 1 + key.size;
    char text[NAME_MAX_SIZE];
    rn_member_gate *gate;

    if (route->circuit == NULL || size > sizeof text)
        return;
    memcpy(text, provider.data, provider.size);
    text[provider.size] = '\0';
    if (key.size > 0)
        memcpy(text + provider.size + 1, key.data, key.size);

    gate = gate_find(m, (ration_text){text, size});
    if (gate == NULL) {
        gate_add(m, (ration_text){text, size});
        return;
    }
    TAILQ_REMOVE(&m->gates_used, gate, link);
    TAILQ_INSERT_HEAD(&m->gates_used, gate, link);
}

/* By the present rules; NULL: it has no breaker by them. */
static const rn_provider *provider_of(const rn_member *m, const rn_member_gate *gate)
{
    const rn_book *const book = &m->world->rules.book;

    for (size_t i = 0; i < book->provider_count; i++) {
        if (book->providers[i].circuit != NULL && rn_text_is(book->providers[i].name, gate->name))
            return &book->providers[i];
    }
    return NULL;
}

/* ---- asking */

static void ask_of(rn_member *m, const rn_member_gate *gate, const rn_provider *provider)
{
    rn_member_call *const call = rn_member_call_plain(m, RN_SCRIPT_ADVANCE, m->world);
    char *const name = call != NULL ? rn_mem_alloc(&m->mem, gate->name_size) : NULL;

    if (name == NULL) {
        if (call != NULL)
            rn_member_call_free(call);
        return;
    }
    memcpy(name, gate->name, gate->name_size);
    call->block = name;
    call->gate = (ration_text){name, gate->name_size};
    call->circuit = rn_text_slice(call->gate, strlen(name) + 1, gate->name_size);
    call->provider = provider->name;
    m->asked_out++;
    rn_member_call_send(m, call);
}

void rn_member_gates_ask(rn_member *m)
{
    const rn_member_gate *gate;

    TAILQ_FOREACH (gate, &m->gates_used, link) {
        const rn_provider *const provider = provider_of(m, gate);

        if (provider != NULL)
            ask_of(m, gate, provider);
    }
}

void rn_member_gate_told(rn_member *m, const rn_member_call *call, const redisReply *reply)
{
    rn_member_gate *const gate = gate_find(m, call->gate);
    rn_member_circuit circuit;

    if (gate != NULL && reply != NULL) {
        rn_member_circuit_read(m, reply, &circuit);
        gate->told = true;
        gate->state = circuit.state;
        gate->generation = circuit.generation;
        gate->retry_at = circuit.retry_at;
        (void)snprintf(gate->cause, sizeof gate->cause, "%.*s", (int)circuit.cause.size, circuit.cause.data);
    }
    rn_member_round_answered(m);
}

/* ---- reports */

typedef struct shown {
    const rn_member_gate *gate;
    size_t provider; /* its place in the rules */
} shown;

static int shown_order(const void *a, const void *b)
{
    const shown *const x = a;
    const shown *const y = b;

    return x->provider != y->provider ? (x->provider < y->provider ? -1 : 1)
                                      : rn_text_compare(key_of(x->gate), key_of(y->gate));
}

void rn_member_gates_report(const rn_member *m, const ration_reporter *reporter)
{
    shown all[GATES_MAX];
    const rn_member_gate *gate;
    size_t count = 0;

    TAILQ_FOREACH (gate, &m->gates_used, link) {
        const rn_provider *const provider = gate->told ? provider_of(m, gate) : NULL;

        if (provider != NULL)
            all[count++] = (shown){gate, provider->index};
    }
    if (count == 0)
        return;
    qsort(all, count, sizeof all[0], shown_order);
    for (size_t i = 0; i < count; i++) {
        const ration_breaker_report report = {
            .provider = all[i].gate->name,
            .key = key_of(all[i].gate),
            .state = all[i].gate->state,
            .generation = all[i].gate->generation,
            .retry_at = all[i].gate->retry_at,
            .cause = all[i].gate->cause,
        };

        reporter->breaker(reporter->ctx, &report);
    }
}
