/* SPDX-License-Identifier: MIT */
/*
 * The rules of a fleet.
 *
 * The engine's own book and routes, so that a name leads to the same counters whoever decides. What the scripts cannot
 * do yet is a fault of the config here, with the limit's name, and never a surprise later.
 */
#include "fleet/rules.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/engine.h"

#define TENANTS_MAX 1000u

static void find_unsupported(void *ctx, const rn_limit *limit)
{
    rn_fleet_rules *const rules = ctx;
    const char *what = NULL;

    if (limit->rule->kind == RATION_KIND_SHARE && limit->rule->share.tenant_count > TENANTS_MAX) {
        what = "a share limit has at most 1000 tenants in a fleet";
    } else if (rn_limit_is_strict(limit)) {
        what = "`durability: strict` is what a ledger promises, and a store may lose what it has counted";
    }
    if (what != NULL && rules->text[0] == '\0') {
        (void)snprintf(rules->text, sizeof rules->text, "limit '%.60s' of provider '%.60s': %s", limit->rule->name,
                       limit->provider, what);
    }
}

static int check_supported(rn_fleet_rules *rules)
{
    rn_book_visit(&rules->book, rules, find_unsupported);
    if (rules->book.enforcer)
        (void)snprintf(rules->text, sizeof rules->text, "an enforcer's limits are not shared through a store");
    return rules->text[0] == '\0' ? RATION_OK : RATION_ERR_CONFIG;
}

static char *encoded(const ration_allocator *mem, const char *name)
{
    rn_pack pack;
    char *copy = NULL;

    rn_pack_init(&pack, mem);
    rn_call_name(&pack, (ration_text){name, strlen(name)});
    rn_pack_raw(&pack, (ration_text){"", 1});
    if (pack.err == RATION_OK)
        copy = rn_mem_strdup(mem, pack.data);
    rn_pack_fini(&pack);
    return copy;
}

int rn_fleet_rules_init(rn_fleet_rules *rules, const ration_allocator *mem, const char *name, const ration_rules *from,
                        ration_time start)
{
    ration_fault fault = {0};

    *rules = (rn_fleet_rules){.mem = *mem};
    rules->name = encoded(&rules->mem, name);
    if (rules->name == NULL)
        return RATION_ERR_NOMEM;

    int err = rn_book_init(&rules->book, &rules->mem, from, &fault);

    if (err != RATION_OK) {
        (void)snprintf(rules->text, sizeof rules->text, "%.100s: %.100s", fault.path, fault.text);
        return err;
    }
    rn_alarms_init(&rules->timers, &rules->mem);
    rules->routed = true;
    err = rn_routes_init(&rules->routes, &rules->mem, &rules->book, &rules->timers, &rules->timers_needed);
    rules->routes.started_at = start;
    return err == RATION_OK ? check_supported(rules) : err;
}

void rn_fleet_rules_fini(rn_fleet_rules *rules)
{
    if (rules->routed) {
        rn_routes_fini(&rules->routes);
        rn_alarms_fini(&rules->timers);
        rn_book_fini(&rules->book);
    }
    rn_mem_free(&rules->mem, rules->name);
    rules->name = NULL;
    rules->routed = false;
}

/* Names that lead nowhere. */
static void refuse_plain(ration_time now, ration_reason reason, const rn_limit *limit, ration_decision *out)
{
    *out = (ration_decision){
        .result = RATION_REFUSED,
        .at = now,
        .reason = reason,
        .retry_at = {RATION_NEVER_US},
        .limit = limit != NULL ? limit->rule->name : NULL,
        .facts = RN_NO_FACTS,
    };
}

int rn_fleet_rules_ask(rn_fleet_rules *rules, ration_time now, const ration_request *request, rn_call_ask *ask,
                       rn_route **out_route, ration_decision *out)
{
    const rn_limit *limit = NULL;
    ration_reason reason = RATION_REASON_NONE;
    rn_route *route = NULL;
    const int err = rn_routes_find(&rules->routes, now, request, &route, &reason, &limit);

    *out_route = NULL;
    if (err != RATION_OK)
        return err;
    if (route == NULL) {
        refuse_plain(now, reason, limit, out);
        return RATION_OK;
    }
    ask->cost = rn_request_cost(request, route->endpoint, &route->provider->rule.defaults);
    ask->hold_us = rn_request_hold(request, route);
    ask->ttl_us = request->ttl_us == RATION_FOREVER_US ? RATION_UNSET : request->ttl_us;
    ask->retry = request->retry;
    ask->priority = rn_request_priority(request, route);
    ask->wait_us = request->wait_us;
    ask->health = request->health;
    ask->tenant = route->tenant;
    ask->weight = route->weight;
    *out_route = route;
    return RATION_OK;
}

/* An account that has the limit; NULL: none, so nobody can ever ask for it. */
static rn_account *account_with(const rn_book *book, const rn_limit *limit)
{
    for (size_t i = 0; i < book->account_count; i++) {
        rn_account *account = &book->accounts[i];

        if (account->provider->name.data == limit->provider && account->limits[limit->index] == limit)
            return account;
    }
    return NULL;
}

int rn_fleet_rules_counter(const rn_fleet_rules *rules, const ration_counter_name *name, rn_call_counter *out)
{
    rn_limit *limit = NULL;
    const int err = rn_counter_name_is_valid(name) ? rn_book_named(&rules->book, name, &limit) : RATION_ERR_INVALID;

    if (err != RATION_OK)
        return err;

    rn_account *account = account_with(&rules->book, limit);
    if (account == NULL)
        return RATION_ERR_UNKNOWN;

    const bool own = account->provider->limits[limit->index] != limit;
    const rn_counter *known = rn_routes_counter(&rules->routes, limit, name->key);

    *out = (rn_call_counter){
        .counter = {.limit = limit,
                    .key = name->key,
                    .share = known != NULL ? known->share : rn_book_share(&rules->book, limit, name->key),
                    .started_at = rules->routes.started_at},
        .account = account,
        .owner = own ? account->name : (ration_text){NULL, 0},
        .known = known != NULL,
    };
    return RATION_OK;
}

void rn_fleet_rules_forget(rn_fleet_rules *rules, rn_route *route)
{
    rn_route_release(&rules->routes, route);
}
