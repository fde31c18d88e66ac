/* SPDX-License-Identifier: MIT */
/*
 * A look at what sleeps.
 *
 * Counters are made when somebody asks for them, so what was kept of an earlier life is not there to be seen until
 * then. A report makes one for itself, as it would be now, and throws it away: so a look changes no decision, takes no
 * room of `maxKeys`, and a recording need not know of it.
 *
 * Invariant: what is made here is in no map and no list, and has no timer.
 */
#include "core/asleep.h"

#include <string.h>

#include "base/mem.h"
#include "core/book.h"
#include "core/lane.h"

static rn_limit *limit_in(rn_limit *const *limits, size_t count, uint32_t uid)
{
    for (size_t i = 0; i < count; i++) {
        if (limits[i]->uid == uid)
            return limits[i];
    }
    return NULL;
}

/* Of a provider, or of an account that replaces it. */
static rn_limit *limit_find(const rn_book *book, uint32_t uid)
{
    rn_limit *found = NULL;

    for (size_t i = 0; i < book->provider_count && found == NULL; i++)
        found = limit_in(book->providers[i].limits, book->providers[i].limit_count, uid);
    for (size_t i = 0; i < book->account_count && found == NULL; i++)
        found = limit_in(book->accounts[i].limits, book->accounts[i].provider->limit_count, uid);
    return found;
}

/* The limit of a name that was kept, if its key leads there: another's record waits under both names. */
static rn_limit *limit_of(const rn_book *book, ration_text name, ration_text *key)
{
    uint32_t uid;

    memcpy(&uid, name.data, sizeof uid);
    *key = rn_text_slice(name, sizeof uid, name.size);

    rn_limit *found = limit_find(book, uid);

    if (found == NULL)
        return NULL;

    const rn_provider *provider = rn_book_provider(book, ration_text_of(found->provider));

    return rn_book_limit(book, provider, ration_text_of(found->rule->name), *key) == found ? found : NULL;
}

static bool is_as_new(rn_counter *counter, ration_time now)
{
    return !counter->paused && !rn_penalty_runs(&counter->penalty, now) && counter->limit->kind->is_fresh(counter, now);
}

int rn_asleep_counter(rn_routes *routes, ration_time now, const rn_map_node *node, ration_text limit, ration_text key,
                      rn_counter **out)
{
    const ration_text name = rn_kept_name(node);
    ration_text own;
    rn_limit *of = limit_of(routes->book, name, &own);

    *out = NULL;
    if (of == NULL || (limit.data != NULL && !rn_text_is(limit, of->rule->name)) ||
        (key.data != NULL && !rn_text_eq(key, own)))
        return RATION_OK;

    rn_counter *counter = rn_mem_alloc(routes->mem, sizeof *counter);

    if (counter == NULL || rn_routes_prepare(routes, of, counter) != RATION_OK) {
        rn_mem_free(routes->mem, counter);
        return RATION_ERR_NOMEM;
    }
    counter->share = rn_book_share(routes->book, of, own);
    counter->key = own;
    if (of->kind->init(counter, now) != RATION_OK) {
        rn_lanes_fini(counter);
        rn_mem_free(routes->mem, counter);
        return RATION_ERR_NOMEM;
    }
    rn_kept_lend(node, counter, now);
    if (is_as_new(counter, now)) {
        rn_asleep_counter_free(routes, counter);
        counter = NULL;
    }
    *out = counter;
    return RATION_OK;
}

void rn_asleep_counter_free(const rn_routes *routes, rn_counter *counter)
{
    if (counter == NULL)
        return;
    counter->limit->kind->fini(counter);
    rn_lanes_fini(counter);
    rn_mem_free(routes->mem, counter);
}

int rn_asleep_circuit(rn_routes *routes, ration_time now, const rn_map_node *node, rn_circuit **out)
{
    const ration_text name = rn_kept_name(node);
    uint32_t index;

    memcpy(&index, name.data, sizeof index);

    const rn_provider *provider = &routes->book->providers[index];
    rn_circuit *circuit;

    *out = NULL;
    if (provider->circuit == NULL)
        return RATION_OK;
    circuit = rn_mem_zalloc(routes->mem, 1, sizeof *circuit);
    if (circuit == NULL ||
        rn_breaker_init(&circuit->breaker, &provider->circuit->breaker, routes->mem, now) != RATION_OK) {
        rn_mem_free(routes->mem, circuit);
        return RATION_ERR_NOMEM;
    }
    circuit->provider = provider;
    circuit->key = rn_text_slice(name, sizeof index, name.size);
    rn_kept_lend_circuit(node, circuit, now);
    if (circuit->breaker.state == RATION_BREAKER_CLOSED) {
        rn_asleep_circuit_free(routes, circuit);
        circuit = NULL;
    }
    *out = circuit;
    return RATION_OK;
}

void rn_asleep_circuit_free(const rn_routes *routes, rn_circuit *circuit)
{
    if (circuit == NULL)
        return;
    rn_breaker_fini(&circuit->breaker);
    rn_mem_free(routes->mem, circuit);
}
