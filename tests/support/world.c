/* SPDX-License-Identifier: MIT */
#include "support/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void world_rules(ration_rules *rules, ration_provider_rule *provider, ration_account_rule accounts[2],
                 const ration_limit_rule *limits, size_t count)
{
    *provider = (ration_provider_rule){.name = "p", .limits = limits, .limit_count = count};
    accounts[0] = (ration_account_rule){.name = "acc", .provider = "p"};
    accounts[1] = (ration_account_rule){.name = "bcc", .provider = "p", .share = {1, 5}};
    *rules = (ration_rules){
        .retry_reserve = {0, 1},
        .providers = provider,
        .provider_count = 1,
        .accounts = accounts,
        .account_count = 2,
    };
}

int world_init_rules(world *w, const ration_rules *rules, const ration_allocator *mem)
{
    const ration_engine_options options = {.rules = rules, .allocator = mem};

    memset(w, 0, sizeof *w);
    return ration_engine_new(&options, ration_time_of(-1000000), &w->engine, NULL);
}

void world_init(world *w, const ration_limit_rule *limits, size_t count)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    world_rules(&rules, &provider, accounts, limits, count);
    if (world_init_rules(w, &rules, NULL) != RATION_OK)
        abort();
}

void world_fini(world *w)
{
    ration_engine_free(w->engine);
    w->engine = NULL;
}

static size_t name_find(world *w, const char *name)
{
    for (size_t i = w->count; i-- > 0;) {
        if (strcmp(w->names[i].name, name) == 0)
            return i;
    }
    if (w->count == WORLD_NAMES)
        abort();
    snprintf(w->names[w->count].name, sizeof w->names[0].name, "%s", name);
    return w->count++;
}

static const char *name_of(const world *w, ration_lease lease)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->names[i].lease.index == lease.index && w->names[i].lease.generation == lease.generation)
            return w->names[i].name;
    }
    return "?";
}

static ration_priority priority_of(const char *name)
{
    for (ration_priority p = RATION_PRIORITY_CRITICAL; p <= RATION_PRIORITY_LOW; p++) {
        if (strcmp(name, ration_priority_name(p)) == 0)
            return p;
    }
    abort();
}

static void word_apply(ration_request *r, ration_var *vars, const char *key, const char *value)
{
    const int64_t number = strtoll(value, NULL, 10);

    if (strcmp(key, "account") == 0) {
        r->account = ration_text_of(value);
    } else if (strcmp(key, "cost") == 0) {
        r->cost = number * RATION_UNIT;
    } else if (strcmp(key, "hold") == 0) {
        r->hold_us = number * 1000;
    } else if (strcmp(key, "wait") == 0) {
        r->wait_us = number * 1000;
    } else if (strcmp(key, "ttl") == 0) {
        r->ttl_us = number * 1000;
    } else if (strcmp(key, "tenant") == 0) {
        r->tenant = ration_text_of(value);
    } else if (strcmp(key, "class") == 0) {
        r->class_name = ration_text_of(value);
    } else if (strcmp(key, "health") == 0) {
        r->health = number != 0;
    } else if (strcmp(key, "priority") == 0) {
        r->priority = priority_of(value);
    } else if (strcmp(key, "retry") == 0) {
        r->retry = number != 0;
    } else if (strcmp(key, "auth") == 0) {
        r->auth = number != 0 ? RATION_AUTH_YES : RATION_AUTH_NO;
    } else if (strcmp(key, "path") == 0) {
        r->path = ration_text_of(value);
    } else if (strcmp(key, "method") == 0) {
        r->method = ration_text_of(value);
    } else if (strcmp(key, "provider") == 0) {
        r->provider = ration_text_of(value);
    } else {
        vars[r->var_count++] = (ration_var){ration_text_of(key), ration_text_of(value)};
    }
}

static const char *refusal_text(world *w, const ration_decision *d)
{
    char retry[32] = "-";

    if (d->retry_at.us != RATION_NEVER_US)
        snprintf(retry, sizeof retry, "%" PRId64 "us%s", d->retry_at.us - d->at.us, d->estimate ? "~" : "");
    snprintf(w->text, sizeof w->text, "%s %s %.*s %s", ration_reason_name(d->reason), d->limit != NULL ? d->limit : "-",
             d->key.data != NULL ? (int)d->key.size : 1, d->key.data != NULL ? d->key.data : "-", retry);
    return w->text;
}

const char *world_ask(world *w, int64_t at_us, const char *request)
{
    char words[512];
    ration_var vars[16];
    ration_request r = RATION_REQUEST_INIT;
    char *rest = NULL;

    snprintf(words, sizeof words, "%s", request);
    r.account = ration_text_of("acc");
    r.vars = vars;

    const char *name = strtok_r(words, " ", &rest);

    for (char *word; (word = strtok_r(NULL, " ", &rest)) != NULL;) {
        char *equals = strchr(word, '=');

        if (equals == NULL)
            abort();
        *equals = '\0';
        word_apply(&r, vars, word, equals + 1);
    }

    const int err = ration_engine_submit(w->engine, ration_time_of(at_us), &r, &w->last);

    if (err != RATION_OK) {
        snprintf(w->text, sizeof w->text, "error %d", err);
        return w->text;
    }
    if (w->last.result == RATION_REFUSED)
        return refusal_text(w, &w->last);
    w->names[name_find(w, name)].lease = w->last.lease;
    return w->last.result == RATION_GRANTED ? "granted" : "queued";
}

static const char *word_of(world *w, int err, const char *fine)
{
    if (err == RATION_OK)
        return fine;
    if (err == RATION_ERR_UNKNOWN)
        return "unknown";
    snprintf(w->text, sizeof w->text, "error %d", err);
    return w->text;
}

const char *world_release(world *w, int64_t at_us, const char *name, ration_outcome outcome, int64_t cost)
{
    const ration_completion how = {outcome, cost};

    return word_of(w, ration_engine_release(w->engine, ration_time_of(at_us), w->names[name_find(w, name)].lease, &how),
                   "released");
}

const char *world_observe(world *w, int64_t at_us, const char *name, int status, const char *header, const char *value)
{
    const ration_header headers[] = {{ration_text_of(header), ration_text_of(value)}};
    const ration_response response = {.status = status, .headers = headers, .header_count = header != NULL ? 1 : 0};

    return word_of(
        w, ration_engine_observe(w->engine, ration_time_of(at_us), w->names[name_find(w, name)].lease, &response),
        "observed");
}

const char *world_cancel(world *w, int64_t at_us, const char *name)
{
    return word_of(w, ration_engine_cancel(w->engine, ration_time_of(at_us), w->names[name_find(w, name)].lease),
                   "cancelled");
}

const char *world_renew(world *w, int64_t at_us, const char *name)
{
    return word_of(w, ration_engine_renew(w->engine, ration_time_of(at_us), w->names[name_find(w, name)].lease),
                   "renewed");
}

const char *world_health(world *w, int64_t at_us, const char *account, bool ok)
{
    return word_of(w, ration_engine_health(w->engine, ration_time_of(at_us), ration_text_of(account), ok), "noted");
}

void world_advance(world *w, int64_t at_us)
{
    if (ration_engine_advance(w->engine, ration_time_of(at_us)) != RATION_OK)
        abort();
}

const char *world_events(world *w)
{
    ration_event event;
    size_t used = 0;

    w->text[0] = '\0';
    while (ration_engine_next_event(w->engine, &event) && used < sizeof w->text - 256) {
        const char *name = name_of(w, event.lease);
        int n = 0;

        switch (event.type) {
        case RATION_EVENT_GRANTED:
            n = snprintf(w->text + used, sizeof w->text - used, "granted %s %" PRId64 ";", name,
                         event.waited_us / 1000);
            break;
        case RATION_EVENT_REFUSED:
            n = snprintf(w->text + used, sizeof w->text - used, "refused %s %s %s %" PRId64 ";", name,
                         ration_reason_name(event.decision.reason),
                         event.decision.limit != NULL ? event.decision.limit : "-", event.waited_us / 1000);
            break;
        case RATION_EVENT_LOST:
            n = snprintf(w->text + used, sizeof w->text - used, "lost %s;", name);
            break;
        case RATION_EVENT_PENALTY:
            n = snprintf(w->text + used, sizeof w->text - used, "penalty %s;",
                         event.decision.limit != NULL ? event.decision.limit : "-");
            break;
        case RATION_EVENT_LIMIT:
            n = snprintf(w->text + used, sizeof w->text - used, "limit %s %" PRId64 ";", event.decision.limit,
                         event.value / RATION_UNIT);
            break;
        case RATION_EVENT_BREAKER:
            n = snprintf(w->text + used, sizeof w->text - used, "%s %.*s;", ration_circuit_state_name(event.breaker),
                         (int)event.decision.key.size, event.decision.key.data);
            break;
        case RATION_EVENT_HEALTH:
            n = snprintf(w->text + used, sizeof w->text - used, "check %.*s;", (int)event.account.size,
                         event.account.data);
            break;
        }
        used += (size_t)n;
    }
    return w->text;
}
