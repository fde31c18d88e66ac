/* SPDX-License-Identifier: MIT */
/*
 * The calls of an engine, decided by scripts in Redis, with one connection that waits for each answer.
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

/* ---- life ---- */

int rn_fleet_init(rn_fleet *fleet, const rn_fleet_options *options, ration_time start)
{
    const ration_allocator *const mem = options->allocator != NULL ? options->allocator : rn_mem_default();

    *fleet = (rn_fleet){.reply = NULL};

    int err = rn_fleet_rules_init(&fleet->rules, mem, options->name, options->rules, start);

    rn_call_init(&fleet->call, &fleet->rules.mem, &fleet->rules.book, fleet->rules.name, options->tells_time);
    fleet->call.member = options->member;
    fleet->call.waiter_ttl_us = options->waiter_ttl_us;
    if (err != RATION_OK) {
        (void)snprintf(fleet->text, sizeof fleet->text, "%s", fleet->rules.text);
        return err;
    }
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
    rn_fleet_rules_fini(&fleet->rules);
}

/* ---- answers ---- */

static int store_failed(rn_fleet *fleet, const char *what)
{
    (void)snprintf(fleet->text, sizeof fleet->text, "the store: %.440s", what);
    return RATION_ERR_IO;
}

/* The call as it has been written, carried out once. */
static int run_once(rn_fleet *fleet, rn_script_name script)
{
    ration_text keys[RN_CALL_KEYS_MAX];
    const rn_store_script run = {
        .name = script,
        .keys = keys,
        .key_count = fleet->call.key_count,
        .argument = {fleet->call.argument.data, fleet->call.argument.size},
        .brief = {fleet->call.brief.data, fleet->call.brief.size},
    };

    forget_reply(fleet);
    rn_call_keys(&fleet->call, keys);

    const int err = rn_redis_run(&fleet->redis, &run, &fleet->reply);

    fleet->tries++;
    if (err == RATION_ERR_FULL)
        return err;
    if (err != RATION_OK)
        return store_failed(fleet, fleet->redis.text);
    if (rn_answer_is(fleet->reply))
        return RATION_OK;
    forget_reply(fleet);
    return store_failed(fleet, "an answer that is none");
}

bool rn_fleet_next_lost(const rn_fleet *fleet, size_t index, rn_fleet_lost *out)
{
    return fleet->reply != NULL && rn_answer_lost(fleet->reply, index, out);
}

bool rn_fleet_next_event(const rn_fleet *fleet, size_t index, rn_fleet_event *out)
{
    return fleet->reply != NULL && rn_answer_event(fleet->reply, index, out);
}

/* ---- calls ---- */

static int run(rn_fleet *fleet, ration_time now, const rn_call_what *what)
{
    rn_call *const call = &fleet->call;

    call->now = rn_time_add(now, fleet->ahead_us);
    call->window_count = 0;
    fleet->tries = 0;
    do {
        int err = rn_call_write(call, what);

        if (err == RATION_OK)
            err = run_once(fleet, what->script);
        if (err == RATION_OK && !call->tells_time)
            fleet->ahead_us = rn_sub(rn_answer_at(fleet->reply).us, now.us);
        if (err != RATION_OK || rn_answer_result(fleet->reply) != RN_ANSWER_WINDOW)
            return err;
    } while (rn_answer_window(fleet->reply, call->windows, &call->window_count));
    return store_failed(fleet, "a window that is none");
}

static int ask_store(rn_fleet *fleet, ration_time now, const ration_request *request, rn_call_ask *ask,
                     ration_decision *out, rn_route **found)
{
    const rn_script_name script = ask->units > 0 ? RN_SCRIPT_PREFETCH : RN_SCRIPT_ADMIT;

    rn_route *route = NULL;
    int err = RATION_OK;

    *found = NULL;
    forget_reply(fleet);
    err = rn_fleet_rules_ask(&fleet->rules, now, request, ask, &route, out);
    if (err != RATION_OK || route == NULL)
        return err;
    err = run(fleet, now, &(rn_call_what){.script = script, .route = route, .id = ask->id, .ask = ask});
    if (err == RATION_OK && rn_answer_result(fleet->reply) == RN_ANSWER_DONE)
        err = RATION_ERR_UNKNOWN; /* a lease of that name has been released */
    if (err == RATION_OK)
        rn_answer_decide(fleet->reply, route, ask, out);
    if (err == RATION_OK && out->result != RATION_REFUSED && !ask->dry) {
        *found = route;
    } else {
        rn_fleet_rules_forget(&fleet->rules, route);
    }
    return err;
}

int rn_fleet_submit(rn_fleet *fleet, ration_time now, const ration_request *request, ration_text id,
                    ration_decision *out, rn_route **route)
{
    rn_call_ask ask = {.id = id};

    return ask_store(fleet, now, request, &ask, out, route);
}

int rn_fleet_prefetch(rn_fleet *fleet, ration_time now, const ration_request *request, ration_text id, int64_t units,
                      rn_route **route)
{
    rn_call_ask ask = {.id = id, .units = units};
    ration_decision decision;

    return ask_store(fleet, now, request, &ask, &decision, route);
}

int rn_fleet_check(rn_fleet *fleet, ration_time now, const ration_request *request, ration_check_mode mode,
                   ration_decision *out)
{
    rn_call_ask ask = {.id = {"", 0}, .dry = true, .enforcer = mode == RATION_CHECK_ENFORCER};
    rn_route *route;

    return ask_store(fleet, now, request, &ask, out, &route);
}

/* A call about a lease. */
static int run_lease(rn_fleet *fleet, ration_time now, const rn_call_what *what)
{
    const int err = run(fleet, now, what);

    if (err != RATION_OK)
        return err;
    return rn_answer_result(fleet->reply) == RN_ANSWER_DONE ? RATION_OK : RATION_ERR_UNKNOWN;
}

int rn_fleet_observe(rn_fleet *fleet, ration_time now, rn_route *route, ration_text id, const ration_response *response)
{
    const rn_call_what what = {.script = RN_SCRIPT_OBSERVE, .route = route, .id = id, .response = response};

    return run_lease(fleet, now, &what);
}

int rn_fleet_release(rn_fleet *fleet, ration_time now, rn_route *route, ration_text id,
                     const ration_completion *completion)
{
    const ration_completion usual = RATION_COMPLETION_INIT;
    const ration_completion *const how = completion != NULL ? completion : &usual;
    const rn_call_end end = {.outcome = how->outcome, .cost = how->cost};
    const rn_call_what what = {.script = RN_SCRIPT_RELEASE, .route = route, .id = id, .end = &end};

    return run_lease(fleet, now, &what);
}

int rn_fleet_renew(rn_fleet *fleet, ration_time now, rn_route *route, ration_text id)
{
    const rn_call_what what = {.script = RN_SCRIPT_RENEW, .id = route->provider->name, .ids = &id, .id_count = 1};

    return run_lease(fleet, now, &what);
}

int rn_fleet_cancel(rn_fleet *fleet, ration_time now, rn_route *route, ration_text id)
{
    return run_lease(fleet, now, &(rn_call_what){.script = RN_SCRIPT_CANCEL, .route = route, .id = id});
}

int rn_fleet_collect(rn_fleet *fleet, ration_time now, ration_text provider, const ration_text *ids, size_t count)
{
    const rn_call_what what = {.script = RN_SCRIPT_COLLECT, .id = provider, .ids = ids, .id_count = count};

    return run_lease(fleet, now, &what);
}

bool rn_fleet_collected_at(const rn_fleet *fleet, size_t index, rn_fleet_collected *out)
{
    return fleet->reply != NULL && rn_answer_collected(fleet->reply, index, out);
}

int rn_fleet_health(rn_fleet *fleet, ration_time now, ration_text account, bool ok)
{
    const rn_account *const named = rn_book_account(&fleet->rules.book, account);
    const rn_call_health health = {.account = named, .ok = ok};

    if (named == NULL || named->provider->circuit == NULL)
        return RATION_ERR_UNKNOWN;
    return run_lease(fleet, now, &(rn_call_what){.script = RN_SCRIPT_HEALTH, .health = &health});
}

int rn_fleet_advance(rn_fleet *fleet, ration_time now, ration_text provider)
{
    return run_lease(fleet, now, &(rn_call_what){.script = RN_SCRIPT_ADVANCE, .id = provider});
}

int rn_fleet_tenants(rn_fleet *fleet, ration_time now, const ration_counter_name *counter, ration_text account)
{
    return run_lease(fleet, now, &(rn_call_what){.script = RN_SCRIPT_TENANTS, .counter = counter, .id = account});
}

int rn_fleet_operate(rn_fleet *fleet, ration_time now, ration_op op, const ration_counter_name *counter, int64_t units)
{
    rn_call_counter at;
    const rn_call_operation operation = {.op = op, .at = &at, .units = units};
    int err = rn_fleet_rules_counter(&fleet->rules, counter, &at);

    forget_reply(fleet);
    if (err == RATION_OK)
        err = run_lease(fleet, now, &(rn_call_what){.script = RN_SCRIPT_OPERATE, .operation = &operation});
    return err == RATION_OK ? rn_answer_operated(fleet->reply) : err;
}

int rn_fleet_inspect(rn_fleet *fleet, ration_time now, const rn_call_inspection *what)
{
    return run_lease(fleet, now, &(rn_call_what){.script = RN_SCRIPT_INSPECT, .inspection = what});
}

void rn_fleet_forget(rn_fleet *fleet, rn_route *route)
{
    rn_fleet_rules_forget(&fleet->rules, route);
}

/* ---- tests ---- */

/* One page of the names at the server that has `key`, and all of them removed. `cursor` is for the next one. */
static int erase_page(rn_fleet *fleet, ration_text key, const char *pattern, char *cursor, size_t cursor_size)
{
    const ration_text scan[] = {
        {"SCAN", 4}, {cursor, strlen(cursor)}, {"MATCH", 5}, {pattern, strlen(pattern)}, {"COUNT", 5}, {"500", 3}};
    redisReply *page = NULL;
    int err = rn_redis_command(&fleet->redis, key, sizeof scan / sizeof scan[0], scan, &page);

    if (err != RATION_OK)
        return store_failed(fleet, fleet->redis.text);
    if (page->type != REDIS_REPLY_ARRAY || page->elements != 2 || page->element[0]->type != REDIS_REPLY_STRING)
        err = store_failed(fleet, "an answer that is none");
    for (size_t i = 0; err == RATION_OK && i < page->element[1]->elements; i++) {
        const redisReply *const found = page->element[1]->element[i];
        const ration_text name = {found->str, (size_t)found->len};
        const ration_text remove[] = {{"DEL", 3}, name};
        redisReply *done = NULL;

        err = rn_redis_command(&fleet->redis, name, 2, remove, &done);
        if (err == RATION_OK)
            freeReplyObject(done);
    }
    if (err == RATION_OK)
        (void)snprintf(cursor, cursor_size, "%s", page->element[0]->str);
    freeReplyObject(page);
    return err;
}

/* All of the fleet's keys at the server that has those of a provider. */
static int erase_at(rn_fleet *fleet, const char *provider)
{
    char pattern[300];
    char cursor[32] = "0";
    rn_pack key;
    int err = RATION_OK;

    (void)snprintf(pattern, sizeof pattern, "ration:%d:{%.200s/*", RN_FLEET_LAYOUT, fleet->rules.name);
    rn_pack_init(&key, &fleet->rules.mem);
    rn_pack_raw(&key, (ration_text){pattern, strlen(pattern) - 1});
    rn_call_name(&key, ration_text_of(provider));
    rn_pack_raw(&key, ration_text_of("}"));
    err = key.err;
    while (err == RATION_OK) {
        err = erase_page(fleet, (ration_text){key.data, key.size}, pattern, cursor, sizeof cursor);
        if (strcmp(cursor, "0") == 0)
            break;
    }
    rn_pack_fini(&key);
    return err;
}

int rn_fleet_erase(rn_fleet *fleet)
{
    int err = RATION_OK;

    for (size_t i = 0; err == RATION_OK && i < fleet->rules.book.provider_count; i++)
        err = erase_at(fleet, fleet->rules.book.providers[i].rule.name);
    return err;
}
