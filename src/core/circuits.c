/* SPDX-License-Identifier: MIT */

/*
 * The table of circuits: one breaker a provider and scope key, made when a request first leads there.
 *
 * A circuit that equals a new one, and that no route in use and no untaken event names, may be forgotten; that happens
 * only at the bound, and then the routes that lead there have been forgotten before it.
 */

#include "core/circuit.h"

#include <string.h>

#include "base/mem.h"
#include "core/book.h"
#include "core/route.h"

#define EVICT_LOOKS 1024

void rn_circuits_init(
    rn_circuits *circuits, const ration_allocator *mem, rn_alarms *timers,
    size_t *timers_needed) /* NOLINT(readability-non-const-parameter): the struct keeps it, to count */
{
    *circuits = (rn_circuits){.mem = mem, .timers = timers, .timers_needed = timers_needed};
    rn_map_init(&circuits->by_name, mem);
    TAILQ_INIT(&circuits->all);
}

static void circuit_free(rn_circuits *circuits, rn_circuit *circuit)
{
    rn_alarm_disarm(circuits->timers, &circuit->alarm);
    --*circuits->timers_needed;
    TAILQ_REMOVE(&circuits->all, circuit, next);
    rn_map_remove(&circuits->by_name, &circuit->node);
    rn_breaker_fini(&circuit->breaker);
    rn_mem_free(circuits->mem, circuit->name);
    rn_mem_free(circuits->mem, circuit);
}

void rn_circuits_fini(rn_circuits *circuits)
{
    rn_circuit *circuit;

    while ((circuit = TAILQ_FIRST(&circuits->all)) != NULL)
        circuit_free(circuits, circuit);
    rn_map_fini(&circuits->by_name);
}

/* Forget one that equals a new one. Looks at a bounded number, and at others the next time. */
static bool circuit_evict(rn_circuits *circuits, ration_time now)
{
    for (int looks = 0; looks < EVICT_LOOKS; looks++) {
        rn_circuit *circuit = TAILQ_FIRST(&circuits->all);

        if (TAILQ_EMPTY(&circuit->routes) && circuit->pins == 0 && rn_breaker_is_fresh(&circuit->breaker, now)) {
            circuit_free(circuits, circuit);
            return true;
        }
        TAILQ_REMOVE(&circuits->all, circuit, next);
        TAILQ_INSERT_TAIL(&circuits->all, circuit, next);
    }
    return false;
}

static int circuit_new(rn_circuits *circuits, ration_time now, const rn_account *account, ration_text name,
                       rn_circuit **out)
{
    rn_circuit *circuit = rn_mem_zalloc(circuits->mem, 1, sizeof *circuit);

    if (circuit == NULL)
        return RATION_ERR_NOMEM;
    circuit->provider = account->provider;
    circuit->account = account;
    rn_alarm_init(&circuit->alarm, RN_ALARM_CIRCUIT);
    TAILQ_INIT(&circuit->waiting);
    TAILQ_INIT(&circuit->routes);
    circuit->name_size = name.size;
    circuit->name = rn_mem_textdup(circuits->mem, name);

    int err = circuit->name == NULL
                  ? RATION_ERR_NOMEM
                  : rn_breaker_init(&circuit->breaker, &account->provider->circuit->breaker, circuits->mem, now);

    if (err == RATION_OK) {
        err = rn_alarms_reserve(circuits->timers, *circuits->timers_needed + 1);
        if (err == RATION_OK)
            err = rn_map_add(&circuits->by_name, &circuit->node, circuit->name, circuit->name_size);
        if (err != RATION_OK)
            rn_breaker_fini(&circuit->breaker);
    }
    if (err != RATION_OK) {
        rn_mem_free(circuits->mem, circuit->name);
        rn_mem_free(circuits->mem, circuit);
        return err;
    }
    ++*circuits->timers_needed;
    circuit->key = rn_text_slice((ration_text){circuit->name, name.size}, sizeof account->provider->index, name.size);
    TAILQ_INSERT_TAIL(&circuits->all, circuit, next);
    rn_alarm_arm(circuits->timers, &circuit->alarm, rn_breaker_next(&circuit->breaker));
    *out = circuit;
    return RATION_OK;
}

int rn_circuits_make(rn_circuits *circuits, ration_time now, const rn_account *account, ration_text key,
                     rn_builder *name, rn_circuit **out)
{
    char number[sizeof account->provider->index];

    memcpy(number, &account->provider->index, sizeof number);
    rn_builder_text(name, (ration_text){number, sizeof number});
    rn_builder_text(name, key);
    return circuit_new(circuits, now, account, (ration_text){name->data, name->used}, out);
}

int rn_circuits_find(rn_circuits *circuits, ration_time now, const rn_account *account, const rn_subject *subject,
                     rn_builder *key, rn_circuit **out)
{
    const rn_provider *provider = account->provider;
    char number[sizeof provider->index];

    *out = NULL;
    if (provider->circuit == NULL)
        return RATION_OK;
    memcpy(number, &provider->index, sizeof number);
    rn_builder_text(key, (ration_text){number, sizeof number});
    if (!rn_scope_key(&provider->circuit->scope, subject, key))
        return RATION_OK;
    if (key->full)
        return RATION_ERR_INVALID;

    rn_map_node *node = rn_map_find(&circuits->by_name, key->data, key->used);

    if (node != NULL) {
        *out = (rn_circuit *)(void *)node;
        return RATION_OK;
    }
    if (circuits->by_name.size >= RN_CIRCUITS_MAX && !circuit_evict(circuits, now))
        return RATION_ERR_FULL;
    return circuit_new(circuits, now, account, (ration_text){key->data, key->used}, out);
}
