/* SPDX-License-Identifier: MIT */
/*
 * The calls of an engine, decided by scripts in Redis.
 *
 * The rules are compiled as the engine compiles them, and its routes find a request's counters; but these are names
 * here, their states are never looked at. An answer is an array: what came of the call, when, which leases were taken
 * back, and what belongs to the first.
 *
 * A script that does not know a calendar window asks for it; the call is made again with that. It has then done
 * nothing. So that this is rare, what the last answer said of the server's clock is kept: the
 * caller's is good for the time since then and for nothing else.
 */
#include "fleet/fleet.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/engine.h"

#define TRIES 6

/* As lease.lua numbers them. */
enum { ANSWER_REFUSED = 0, ANSWER_GRANTED, ANSWER_WINDOW, ANSWER_UNKNOWN, ANSWER_DONE };

/* ---- life ---- */

static void find_unsupported(void *ctx, const rn_limit *limit)
{
    static const char *const kinds[] = {[RATION_KIND_SHARE] = "share", [RATION_KIND_ADAPTIVE] = "adaptive"};
    rn_fleet *const fleet = ctx;
    const ration_kind kind = limit->rule->kind;
    const char *what = NULL;

    if (kind == RATION_KIND_SHARE || kind == RATION_KIND_ADAPTIVE) {
        what = kinds[kind];
    } else if (rn_limit_is_strict(limit)) {
        what = "strict";
    }
    if (what != NULL && fleet->text[0] == '\0') {
        (void)snprintf(fleet->text, sizeof fleet->text,
                       "limit '%.60s' of provider '%.60s': %s limits are not shared through a store yet",
                       limit->rule->name, limit->provider, what);
    }
}

static int check_supported(rn_fleet *fleet)
{
    rn_book_visit(&fleet->book, fleet, find_unsupported);
    for (size_t i = 0; i < fleet->book.provider_count && fleet->text[0] == '\0'; i++) {
        if (fleet->book.providers[i].circuit != NULL) {
            (void)snprintf(fleet->text, sizeof fleet->text,
                           "provider '%.60s': breakers are not shared through a store yet",
                           fleet->book.providers[i].rule.name);
        }
    }
    if (fleet->book.enforcer)
        (void)snprintf(fleet->text, sizeof fleet->text, "an enforcer's limits are not shared through a store");
    return fleet->text[0] == '\0' ? RATION_OK : RATION_ERR_CONFIG;
}

static int rules_init(rn_fleet *fleet, const ration_rules *rules, ration_time start)
{
    ration_fault fault = {0};
    int err = rn_book_init(&fleet->book, &fleet->mem, rules, &fault);

    if (err != RATION_OK) {
        (void)snprintf(fleet->text, sizeof fleet->text, "%.100s: %.100s", fault.path, fault.text);
        return err;
    }
    rn_alarms_init(&fleet->timers, &fleet->mem);
    fleet->routed = true;
    err = rn_routes_init(&fleet->routes, &fleet->mem, &fleet->book, &fleet->timers, &fleet->timers_needed);
    fleet->routes.started_at = start;
    return err == RATION_OK ? check_supported(fleet) : err;
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

int rn_fleet_init(rn_fleet *fleet, const rn_fleet_options *options, ration_time start)
{
    *fleet = (rn_fleet){.mem = options->allocator != NULL ? *options->allocator : *rn_mem_default()};
    fleet->name = encoded(&fleet->mem, options->name);
    rn_call_init(&fleet->call, &fleet->mem, fleet->name, options->tells_time);
    if (fleet->name == NULL)
        return RATION_ERR_NOMEM;

    int err = rules_init(fleet, options->rules, start);

    if (err != RATION_OK)
        return err;
    err = rn_redis_open(&fleet->redis, &options->redis);
    if (err != RATION_OK)
        (void)snprintf(fleet->text, sizeof fleet->text, "%s", fleet->redis.text);
    return err;
}

static void forget_reply(rn_fleet *fleet)
{
    if (fleet->reply != NULL)
        freeReplyObject(fleet->reply);
    fleet->reply = NULL;
}

void rn_fleet_fini(rn_fleet *fleet)
{
    forget_reply(fleet);
    rn_redis_close(&fleet->redis);
    rn_call_fini(&fleet->call);
    if (fleet->routed) {
        rn_routes_fini(&fleet->routes);
        rn_alarms_fini(&fleet->timers);
        rn_book_fini(&fleet->book);
    }
    rn_mem_free(&fleet->mem, fleet->name);
    fleet->name = NULL;
    fleet->routed = false;
}

/* ---- answers ---- */

static int store_failed(rn_fleet *fleet, const char *what)
{
    (void)snprintf(fleet->text, sizeof fleet->text, "the store: %.200s", what);
    return RATION_ERR_IO;
}

static bool is_answer(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 4 && reply->element[0]->type == REDIS_REPLY_INTEGER &&
           reply->element[1]->type == REDIS_REPLY_INTEGER && reply->element[2]->type == REDIS_REPLY_ARRAY &&
           reply->element[3]->type == REDIS_REPLY_ARRAY;
}

/* The call as it has been written, carried out once. */
static int run_once(rn_fleet *fleet, rn_script_name script)
{
    ration_text keys[RN_CALL_KEYS_MAX];
    const ration_text argument = {fleet->call.argument.data, fleet->call.argument.size};

    forget_reply(fleet);
    rn_call_keys(&fleet->call, keys);

    const int err = rn_redis_run(&fleet->redis, script, keys, fleet->call.key_count, argument, &fleet->reply);

    fleet->tries++;
    if (err == RATION_ERR_FULL)
        return err;
    if (err != RATION_OK)
        return store_failed(fleet, fleet->redis.text);
    if (is_answer(fleet->reply))
        return RATION_OK;
    forget_reply(fleet);
    return store_failed(fleet, "an answer that is none");
}

static int64_t answer_of(const rn_fleet *fleet)
{
    return fleet->reply->element[0]->integer;
}

static const redisReply *rest_of(const rn_fleet *fleet, size_t index)
{
    const redisReply *const rest = fleet->reply->element[3];

    return index < rest->elements ? rest->element[index] : NULL;
}

/* A whole number, or `none` where there is none. */
static int64_t rest_number(const rn_fleet *fleet, size_t index, int64_t none)
{
    const redisReply *const number = rest_of(fleet, index);

    return number != NULL && number->type == REDIS_REPLY_INTEGER ? number->integer : none;
}

bool rn_fleet_next_lost(const rn_fleet *fleet, size_t index, rn_fleet_lost *out)
{
    if (fleet->reply == NULL)
        return false;

    const redisReply *const lost = fleet->reply->element[2];

    if (2 * index + 1 >= lost->elements || lost->element[2 * index]->type != REDIS_REPLY_STRING)
        return false;
    out->id = (ration_text){lost->element[2 * index]->str, (size_t)lost->element[2 * index]->len};
    out->at = ration_time_of(lost->element[2 * index + 1]->integer);
    return true;
}

static ration_reason reason_of(const redisReply *name)
{
    for (unsigned i = 0; name != NULL && name->type == REDIS_REPLY_STRING && i < RATION_REASON_COUNT; i++) {
        if (strcmp(ration_reason_name((ration_reason)i), name->str) == 0)
            return (ration_reason)i;
    }
    return RATION_REASON_NONE;
}

/* ---- calls ---- */

typedef struct fleet_call {
    rn_script_name script;
    const rn_route *route;
    ration_text id;
    const rn_call_ask *ask;
    const ration_response *response;
    const rn_call_end *end;
} fleet_call;

static int call_write(rn_fleet *fleet, const fleet_call *what)
{
    switch (what->script) {
    case RN_SCRIPT_ADMIT:
        return rn_call_admit(&fleet->call, what->route, what->ask);
    case RN_SCRIPT_OBSERVE:
        return rn_call_observe(&fleet->call, what->route, what->id, what->response);
    case RN_SCRIPT_RELEASE:
        return rn_call_release(&fleet->call, what->route, what->id, what->end);
    case RN_SCRIPT_RENEW:
        return rn_call_renew(&fleet->call, what->route, what->id);
    case RN_SCRIPT_ADVANCE:
        return rn_call_advance(&fleet->call, what->id);
    case RN_SCRIPT_COUNT:
        break;
    }
    return RATION_ERR_INVALID;
}

static int run(rn_fleet *fleet, ration_time now, const fleet_call *what)
{
    rn_call *const call = &fleet->call;

    call->now = rn_time_add(now, fleet->ahead_us);
    call->window_count = 0;
    fleet->tries = 0;
    for (int i = 0; i < TRIES; i++) {
        int err = call_write(fleet, what);

        if (err == RATION_OK)
            err = run_once(fleet, what->script);
        if (err == RATION_OK && !call->tells_time)
            fleet->ahead_us = rn_sub(fleet->reply->element[1]->integer, now.us);
        if (err != RATION_OK || answer_of(fleet) != ANSWER_WINDOW)
            return err;
        call->windows[call->window_count++] = (rn_call_window){
            .index = (size_t)rest_number(fleet, 0, 0),
            .at = {rest_number(fleet, 1, 0)},
        };
    }
    return store_failed(fleet, "a window that is none");
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

static void decide(const rn_fleet *fleet, const rn_route *route, const rn_call_ask *ask, ration_decision *out)
{
    const int64_t index = rest_number(fleet, 1, 0);
    const rn_counter *counter = NULL;

    *out = (ration_decision){
        .result = answer_of(fleet) == ANSWER_REFUSED ? RATION_REFUSED : RATION_GRANTED,
        .at = ration_time_of(fleet->reply->element[1]->integer),
        .retry_at = {RATION_NEVER_US},
    };
    if (out->result == RATION_GRANTED)
        return;
    out->reason = reason_of(rest_of(fleet, 0));
    out->facts = (ration_facts)RN_NO_FACTS;
    if (ration_reason_retryable(out->reason))
        out->retry_at.us = rest_number(fleet, 2, RATION_NEVER_US);
    out->estimate = rest_number(fleet, 3, 0) != 0 && rn_time_known(out->retry_at);
    if (index < 1 || (size_t)index > route->count)
        return;
    counter = route->links[index - 1].counter;
    out->limit = counter->limit->rule->name;
    out->key = counter->key;
    if (rest_of(fleet, 4) != NULL && rest_of(fleet, 4)->type == REDIS_REPLY_INTEGER) {
        out->facts = (ration_facts){
            .charge = counter->limit->rule->counts == RATION_COUNTS_COST ? ask->cost : RATION_UNIT,
            .available = rest_number(fleet, 4, RATION_UNSET),
            .capacity = rest_number(fleet, 5, RATION_UNSET),
            .ahead = ask->enforcer ? RATION_UNSET : 0,
        };
    }
}

static int ask_store(rn_fleet *fleet, ration_time now, const ration_request *request, rn_call_ask *ask,
                     ration_decision *out, rn_route **found)
{
    const rn_limit *limit = NULL;
    ration_reason reason = RATION_REASON_NONE;
    rn_route *route = NULL;
    int err = rn_routes_find(&fleet->routes, now, request, &route, &reason, &limit);

    *found = NULL;
    forget_reply(fleet);
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
    ask->critical = rn_request_priority(request, route) == RATION_PRIORITY_CRITICAL;
    err = run(fleet, now, &(fleet_call){.script = RN_SCRIPT_ADMIT, .route = route, .id = ask->id, .ask = ask});
    if (err == RATION_OK && answer_of(fleet) != ANSWER_GRANTED && answer_of(fleet) != ANSWER_REFUSED)
        err = RATION_ERR_UNKNOWN;
    if (err == RATION_OK)
        decide(fleet, route, ask, out);
    if (err == RATION_OK && out->result == RATION_GRANTED && !ask->dry) {
        *found = route;
    } else {
        rn_route_release(&fleet->routes, route);
    }
    return err;
}

int rn_fleet_submit(rn_fleet *fleet, ration_time now, const ration_request *request, ration_text id,
                    ration_decision *out, rn_route **route)
{
    rn_call_ask ask = {.id = id};

    return ask_store(fleet, now, request, &ask, out, route);
}

int rn_fleet_check(rn_fleet *fleet, ration_time now, const ration_request *request, ration_check_mode mode,
                   ration_decision *out)
{
    rn_call_ask ask = {.id = {"", 0}, .dry = true, .enforcer = mode == RATION_CHECK_ENFORCER};
    rn_route *route;

    return ask_store(fleet, now, request, &ask, out, &route);
}

/* A call about a lease. */
static int run_lease(rn_fleet *fleet, ration_time now, const fleet_call *what)
{
    const int err = run(fleet, now, what);

    if (err != RATION_OK)
        return err;
    return answer_of(fleet) == ANSWER_DONE ? RATION_OK : RATION_ERR_UNKNOWN;
}

int rn_fleet_observe(rn_fleet *fleet, ration_time now, rn_route *route, ration_text id, const ration_response *response)
{
    const fleet_call what = {.script = RN_SCRIPT_OBSERVE, .route = route, .id = id, .response = response};

    return run_lease(fleet, now, &what);
}

int rn_fleet_release(rn_fleet *fleet, ration_time now, rn_route *route, ration_text id,
                     const ration_completion *completion)
{
    const ration_completion usual = RATION_COMPLETION_INIT;
    const ration_completion *const how = completion != NULL ? completion : &usual;
    const rn_call_end end = {.outcome = how->outcome, .cost = how->cost};
    const fleet_call what = {.script = RN_SCRIPT_RELEASE, .route = route, .id = id, .end = &end};

    return run_lease(fleet, now, &what);
}

int rn_fleet_renew(rn_fleet *fleet, ration_time now, rn_route *route, ration_text id)
{
    return run_lease(fleet, now, &(fleet_call){.script = RN_SCRIPT_RENEW, .route = route, .id = id});
}

int rn_fleet_advance(rn_fleet *fleet, ration_time now, ration_text provider)
{
    return run_lease(fleet, now, &(fleet_call){.script = RN_SCRIPT_ADVANCE, .id = provider});
}

void rn_fleet_forget(rn_fleet *fleet, rn_route *route)
{
    rn_route_release(&fleet->routes, route);
}

/* ---- tests ---- */

/* One page of the names, and all of them removed. `cursor` is for the next one. */
static int erase_page(rn_fleet *fleet, const char *pattern, char *cursor, size_t cursor_size)
{
    const ration_text scan[] = {
        {"SCAN", 4}, {cursor, strlen(cursor)}, {"MATCH", 5}, {pattern, strlen(pattern)}, {"COUNT", 5}, {"500", 3}};
    redisReply *page = NULL;
    int err = rn_redis_command(&fleet->redis, sizeof scan / sizeof scan[0], scan, &page);

    if (err != RATION_OK)
        return store_failed(fleet, fleet->redis.text);
    if (page->type != REDIS_REPLY_ARRAY || page->elements != 2 || page->element[0]->type != REDIS_REPLY_STRING)
        err = store_failed(fleet, "an answer that is none");
    for (size_t i = 0; err == RATION_OK && i < page->element[1]->elements; i++) {
        const redisReply *const name = page->element[1]->element[i];
        const ration_text remove[] = {{"DEL", 3}, {name->str, (size_t)name->len}};
        redisReply *done = NULL;

        err = rn_redis_command(&fleet->redis, 2, remove, &done);
        if (err == RATION_OK)
            freeReplyObject(done);
    }
    if (err == RATION_OK)
        (void)snprintf(cursor, cursor_size, "%s", page->element[0]->str);
    freeReplyObject(page);
    return err;
}

int rn_fleet_erase(rn_fleet *fleet)
{
    char pattern[300];
    char cursor[32] = "0";
    int err = RATION_OK;

    (void)snprintf(pattern, sizeof pattern, "ration:%d:{%.200s/*", RN_FLEET_LAYOUT, fleet->name);
    do {
        err = erase_page(fleet, pattern, cursor, sizeof cursor);
    } while (err == RATION_OK && strcmp(cursor, "0") != 0);
    return err;
}
