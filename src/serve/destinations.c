/* SPDX-License-Identifier: MIT */
/*
 * The destinations of one config.
 *
 * Connections outlive a config where they may: a pool is shared with the config before, by the provider's name, if its
 * time-outs are the same. One with a file of certificates is not, since that file may have been written anew.
 *
 * Invariants: `holders` is above 0, or `end` is due; a pool has one holder for each of the destinations it is in.
 */
#include "serve/destinations.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "serve/exchange.h"

/* ---- pools */

static bool pool_fits(const rn_provider *a, const rn_provider *b)
{
    return strcmp(a->name, b->name) == 0 && a->connect_us == b->connect_us && a->first_byte_us == b->first_byte_us &&
           a->idle_us == b->idle_us && a->ca == NULL && b->ca == NULL;
}

/* That of the present config, if it fits; NULL: a new one is needed. */
static rn_shared_pool *pool_find(const rn_gateway *gw, const rn_provider *provider)
{
    const rn_destinations *present = gw->destinations;

    for (size_t i = 0; present != NULL && i < present->pool_count; i++) {
        if (pool_fits(rn_config_provider(present->config, i), provider))
            return present->pools[i];
    }
    return NULL;
}

static int pool_make(rn_gateway *gw, const rn_provider *provider, rn_shared_pool **out)
{
    const rn_upstream_options options = {.connect_timeout_us = provider->connect_us,
                                         .first_byte_timeout_us = provider->first_byte_us,
                                         .idle_timeout_us = provider->idle_us};
    rn_shared_pool *pool = rn_mem_zalloc(rn_mem_default(), 1, sizeof *pool);

    if (pool == NULL)
        return RATION_ERR_NOMEM;
    const int err = rn_upstream_pool_new(gw->loop, &options, &pool->pool);
    if (err != RATION_OK) {
        rn_mem_free(rn_mem_default(), pool);
        return err;
    }
    TAILQ_INSERT_TAIL(&gw->pools, pool, link);
    *out = pool;
    return RATION_OK;
}

/* With the last holder; what it has counted stays counted. */
static void pool_release(rn_gateway *gw, rn_shared_pool *pool)
{
    rn_upstream_stats stats;

    if (--pool->holders > 0)
        return;
    rn_upstream_pool_stats(pool->pool, &stats);
    gw->past_upstream.connects += stats.connects;
    gw->past_upstream.reuses += stats.reuses;
    gw->past_upstream.retries += stats.retries;
    TAILQ_REMOVE(&gw->pools, pool, link);
    rn_upstream_pool_free(pool->pool);
    rn_mem_free(rn_mem_default(), pool);
}

static int pools_make(rn_destinations *all, size_t count)
{
    all->pools = rn_mem_zalloc(rn_mem_default(), count + 1, sizeof(rn_shared_pool *));
    if (all->pools == NULL)
        return RATION_ERR_NOMEM;
    for (; all->pool_count < count; all->pool_count++) {
        const rn_provider *provider = rn_config_provider(all->config, all->pool_count);
        rn_shared_pool *pool = pool_find(all->gateway, provider);
        const int err = pool == NULL ? pool_make(all->gateway, provider, &pool) : RATION_OK;

        if (err != RATION_OK)
            return err;
        pool->holders++;
        all->pools[all->pool_count] = pool;
    }
    return RATION_OK;
}

/* ---- what providers learn and tell */

static int holds_make(rn_destinations *all, size_t count)
{
    all->holds = rn_mem_zalloc(rn_mem_default(), count + 1, sizeof *all->holds);
    if (all->holds == NULL)
        return RATION_ERR_NOMEM;
    while (all->hold_count < count) {
        const ration_provider_rule *rule = &ration_config_rules(all->config)->providers[all->hold_count];
        const rn_provider *provider = rn_config_provider(all->config, all->hold_count);
        const int err = rn_holds_init(&all->holds[all->hold_count++], rule, provider);
        if (err != RATION_OK)
            return err;
    }
    return RATION_OK;
}

static int costs_make(rn_destinations *all, size_t count)
{
    all->costs = rn_mem_zalloc(rn_mem_default(), count + 1, sizeof *all->costs);
    if (all->costs == NULL)
        return RATION_ERR_NOMEM;
    while (all->cost_count < count) {
        const ration_provider_rule *rule = &ration_config_rules(all->config)->providers[all->cost_count];
        const rn_provider *provider = rn_config_provider(all->config, all->cost_count);
        rn_costs *costs = &all->costs[all->cost_count++];
        const int err = rn_costs_init(costs, rule, provider);
        if (err != RATION_OK)
            return err;
        costs->spending = rn_spending_of(&all->gateway->spendings, rule->name);
        if (costs->spending == NULL)
            return RATION_ERR_NOMEM;
    }
    return RATION_OK;
}

/* ---- accounts */

static int item_make(rn_destinations *all, rn_destination *to, const rn_account *account)
{
    const ration_rules *rules = ration_config_rules(all->config);
    const rn_provider *provider = rn_config_provider(all->config, account->provider);
    const rn_origin_options options = {.tls = account->base_url.tls,
                                       .host = account->base_url.host,
                                       .port = account->base_url.port,
                                       .ca_file = provider->ca,
                                       .proxy = provider->proxy};

    if (!account->base_url.given)
        return RATION_ERR_CONFIG;
    to->all = all;
    to->account = account;
    to->errors = &rules->providers[account->provider].errors;
    to->breaker = &rules->providers[account->provider].breaker;
    to->holds = &all->holds[account->provider];
    to->costs = &all->costs[account->provider];
    to->pool = all->pools[account->provider]->pool;
    rn_check_init(&to->check, all->gateway, to);
    const int err = rn_origin_acquire(to->pool, &options, &to->origin);
    return err != RATION_OK ? err : rn_map_add(&all->accounts, &to->node, account->name, strlen(account->name));
}

static int items_make(rn_destinations *all, size_t count, rn_net_error *error)
{
    all->items = rn_mem_zalloc(rn_mem_default(), count + 1, sizeof *all->items);
    if (all->items == NULL)
        return RATION_ERR_NOMEM;
    while (all->count < count) {
        const rn_account *account = rn_config_account(all->config, all->count);
        const int err = item_make(all, &all->items[all->count++], account);
        if (err == RATION_OK)
            continue;

        rn_builder b;
        rn_builder_init(&b, error->text, sizeof error->text);
        rn_builder_str(&b, "account ");
        rn_builder_str(&b, account->name);
        rn_builder_str(&b, ": ");
        rn_builder_str(&b, err == RATION_ERR_CONFIG ? "its provider has no baseUrl" : ration_err_text(err));
        return err;
    }
    return RATION_OK;
}

rn_destination *rn_destinations_find(const rn_destinations *all, ration_text name)
{
    rn_map_node *node = rn_map_find(&all->accounts, name.data, name.size);

    return node != NULL ? (rn_destination *)(void *)((char *)node - offsetof(rn_destination, node)) : NULL;
}

void rn_destinations_adopt(rn_destinations *all, const rn_destinations *from)
{
    for (size_t i = 0; i < all->hold_count; i++) {
        for (size_t k = 0; k < from->hold_count; k++) {
            if (strcmp(all->holds[i].rule->name, from->holds[k].rule->name) == 0)
                rn_holds_adopt(&all->holds[i], &from->holds[k]);
        }
    }
}

void rn_destinations_stop_checks(rn_destinations *all)
{
    for (size_t i = 0; i < all->count; i++)
        rn_check_stop(&all->items[i].check);
}

/* ---- the whole */

static void on_end(rn_deferred *work)
{
    rn_destinations_free((rn_destinations *)(void *)((char *)work - offsetof(rn_destinations, end)));
}

int rn_destinations_new(rn_gateway *gw, const ration_config *config, rn_destinations **out, rn_net_error *error)
{
    const ration_rules *rules = ration_config_rules(config);
    rn_destinations *all = rn_mem_zalloc(rn_mem_default(), 1, sizeof *all);

    if (all == NULL)
        return RATION_ERR_NOMEM;
    all->gateway = gw;
    all->config = config;
    all->holders = 1;
    all->end.fn = on_end;
    rn_map_init(&all->accounts, rn_mem_default());
    TAILQ_INSERT_TAIL(&gw->all_destinations, all, link);

    int err = pools_make(all, rules->provider_count);
    if (err == RATION_OK)
        err = holds_make(all, rules->provider_count);
    if (err == RATION_OK)
        err = costs_make(all, rules->provider_count);
    if (err == RATION_OK)
        err = items_make(all, rules->account_count, error);
    if (err != RATION_OK) {
        rn_destinations_free(all);
        return err;
    }
    *out = all;
    return RATION_OK;
}

void rn_destinations_hold(rn_destinations *all)
{
    all->holders++;
}

void rn_destinations_release(rn_destinations *all)
{
    if (--all->holders == 0)
        rn_loop_defer(all->gateway->loop, &all->end);
}

void rn_destinations_free(rn_destinations *all)
{
    rn_gateway *gw = all->gateway;

    rn_loop_forget(gw->loop, &all->end);
    TAILQ_REMOVE(&gw->all_destinations, all, link);
    for (size_t i = 0; i < all->count; i++)
        rn_origin_release(all->items[i].origin);
    for (size_t i = 0; i < all->pool_count; i++)
        pool_release(gw, all->pools[i]);
    for (size_t i = 0; i < all->hold_count; i++)
        rn_holds_fini(&all->holds[i]);
    for (size_t i = 0; i < all->cost_count; i++)
        rn_costs_fini(&all->costs[i]);
    rn_map_fini(&all->accounts);
    rn_mem_free(rn_mem_default(), all->items);
    rn_mem_free(rn_mem_default(), all->pools);
    rn_mem_free(rn_mem_default(), all->holds);
    rn_mem_free(rn_mem_default(), all->costs);
    ration_config_free(all->owned);
    rn_mem_free(rn_mem_default(), all);
}
