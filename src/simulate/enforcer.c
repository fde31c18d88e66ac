/* SPDX-License-Identifier: MIT */
/*
 * The provider's side of the same rules.
 *
 * The engine decides; what differs is who is who. A provider knows no accounts and tenants but only credentials, so
 * the scopes are rewritten before the engine sees them: `account`, `target` and `credential` become the pair
 * [account, credential], where the account follows from the credential and stands there only because an account may
 * have limits of its own; `instance` and `provider` become [provider]. A limit by tenant is the user's own and
 * applies to nothing here. A shadow limit is enforced: a provider does not care what its client makes of its limits.
 *
 * An adaptive limit is its client's guess and a breaker its client's caution: here they bind nothing. Of a share the
 * provider knows the ceiling alone, as slots. What binds nothing stays in the table as slots without end, so that
 * what an account replaces keeps its place.
 *
 * The other client of `rn_enforcer_spend` must touch the quotas alone. All limits that are no quota get one more
 * dimension, a variable that only real calls carry.
 *
 * Invariant: `limits[a]` has the provider's limits in their order, with what account `a` replaces; the last `a` is
 * the account of all credentials that the config does not know.
 */
#include "simulate/enforcer.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/scope.h"
#include "core/template.h"

#define ANYBODY "(client)" /* no name of an account: those cannot have parentheses */
#define DIRECT "direct call"
#define KEY_MAX 8192

typedef struct enforcer_limit {
    const ration_limit_rule *rule;
    rn_scope scope;
} enforcer_limit;

struct rn_enforcer {
    const ration_allocator *mem;
    rn_arena arena;
    ration_rules rules;
    ration_provider_rule provider;
    ration_account_rule *accounts;
    rn_template *templates;
    enforcer_limit **limits; /* by account, then by limit */
    ration_engine *engine;
};

/* A call with its route found. Texts are borrowed from the call and the enforcer. */
typedef struct routed_call {
    size_t account;
    const ration_endpoint_rule *endpoint; /* NULL: no template matches */
    rn_subject subject;
} routed_call;

static bool has_dimension(const char *const *scope, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (rn_text_is(ration_text_of(name), scope[i]))
            return true;
    }
    return false;
}

static void add_dimension(const char **scope, size_t *count, const char *name)
{
    if (!has_dimension(scope, *count, name))
        scope[(*count)++] = name;
}

static int scope_rewrite(rn_arena *arena, ration_limit_rule *rule)
{
    const char **scope = rn_arena_zalloc(arena, 2 * rule->scope_count + 2, sizeof *scope);
    size_t count = 0;

    if (scope == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < rule->scope_count; i++) {
        const ration_text name = ration_text_of(rule->scope[i]);

        if (rn_text_is(name, "account") || rn_text_is(name, "target") || rn_text_is(name, "credential")) {
            add_dimension(scope, &count, "account");
            add_dimension(scope, &count, "credential");
        } else if (rn_text_is(name, "instance") || rn_text_is(name, "provider")) {
            add_dimension(scope, &count, "provider");
        } else {
            add_dimension(scope, &count, rule->scope[i]);
        }
    }
    if (count == 0)
        add_dimension(scope, &count, "provider");
    if (rule->kind != RATION_KIND_QUOTA)
        add_dimension(scope, &count, "var:" DIRECT);
    rule->scope = scope;
    rule->scope_count = count;
    return 0;
}

/* What the provider itself keeps of a limit that its client has. */
static void kind_rewrite(ration_limit_rule *rule)
{
    const bool is_share = rule->kind == RATION_KIND_SHARE;

    if (!is_share && rule->kind != RATION_KIND_ADAPTIVE)
        return;
    rule->max = is_share && rule->share.follows == NULL ? rule->share.ceiling : RATION_UNITS_MAX;
    rule->kind = RATION_KIND_CONCURRENCY;
}

static int limits_rewrite(rn_arena *arena, const ration_limit_rule **limits, size_t count)
{
    ration_limit_rule *copy = rn_arena_zalloc(arena, count, sizeof *copy);

    if (copy == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        copy[i] = (*limits)[i];
        copy[i].enforce = RATION_ENFORCE_ON;
        kind_rewrite(&copy[i]);
        const int err = scope_rewrite(arena, &copy[i]);
        if (err != 0)
            return err;
    }
    *limits = copy;
    return 0;
}

/* The accounts of this provider, and one for everybody else. */
static int accounts_rewrite(rn_enforcer *e, const ration_rules *rules)
{
    ration_account_rule *accounts = rn_arena_zalloc(&e->arena, rules->account_count + 1, sizeof *accounts);
    size_t count = 0;

    if (accounts == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < rules->account_count; i++) {
        if (!rn_text_is(ration_text_of(rules->accounts[i].provider), e->provider.name))
            continue;
        accounts[count] = rules->accounts[i];
        accounts[count].share = (ration_ratio){0};
        accounts[count].credential_key = NULL;
        const int err = limits_rewrite(&e->arena, &accounts[count].limits, accounts[count].limit_count);
        if (err != 0)
            return err;
        count++;
    }
    accounts[count++] = (ration_account_rule){.name = ANYBODY, .provider = e->provider.name};
    e->accounts = accounts;
    e->rules.accounts = accounts;
    e->rules.account_count = count;
    return 0;
}

static int rules_rewrite(rn_enforcer *e, const ration_rules *rules, size_t provider)
{
    e->provider = rules->providers[provider];
    e->provider.defaults.tenant = NULL;
    e->provider.breaker = (ration_breaker_rule){0};
    e->rules = (ration_rules){
        .providers = &e->provider,
        .provider_count = 1,
        .zones = rules->zones,
        .zone_count = rules->zone_count,
        .enforcer = true,
    };

    ration_endpoint_rule *endpoints = rn_arena_zalloc(&e->arena, e->provider.endpoint_count, sizeof *endpoints);
    if (endpoints == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < e->provider.endpoint_count; i++) {
        endpoints[i] = e->provider.endpoints[i];
        endpoints[i].path = rn_arena_strdup(&e->arena, endpoints[i].path);
        endpoints[i].defaults.tenant = NULL;
        if (endpoints[i].path == NULL)
            return RATION_ERR_NOMEM;
    }
    e->provider.endpoints = endpoints;

    const int err = limits_rewrite(&e->arena, &e->provider.limits, e->provider.limit_count);
    return err != 0 ? err : accounts_rewrite(e, rules);
}

static const ration_limit_rule *rule_of(const rn_enforcer *e, size_t account, const ration_limit_rule *base)
{
    const ration_account_rule *rule = &e->accounts[account];

    for (size_t i = 0; i < rule->limit_count; i++) {
        if (rn_text_is(ration_text_of(rule->limits[i].name), base->name))
            return &rule->limits[i];
    }
    return base;
}

/* The engine has accepted the rules, so that only memory can be missing here. */
static int scopes_compile(rn_enforcer *e)
{
    const size_t count = e->provider.limit_count;
    char bad_text[64];
    rn_builder bad;

    rn_builder_init(&bad, bad_text, sizeof bad_text);
    e->limits = rn_arena_zalloc(&e->arena, e->rules.account_count, sizeof(enforcer_limit *));
    if (e->limits == NULL)
        return RATION_ERR_NOMEM;
    for (size_t a = 0; a < e->rules.account_count; a++) {
        e->limits[a] = rn_arena_zalloc(&e->arena, count, sizeof(enforcer_limit));
        if (e->limits[a] == NULL)
            return RATION_ERR_NOMEM;
        for (size_t i = 0; i < count; i++) {
            enforcer_limit *limit = &e->limits[a][i];

            limit->rule = rule_of(e, a, &e->provider.limits[i]);
            const int err = rn_scope_init(&limit->scope, &e->arena, limit->rule, &bad);
            if (err != 0)
                return err;
        }
    }
    return 0;
}

static int templates_compile(rn_enforcer *e)
{
    const size_t count = e->provider.endpoint_count;

    e->templates = rn_arena_zalloc(&e->arena, count, sizeof *e->templates);
    if (e->templates == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const int err = rn_template_init(&e->templates[i], &e->arena, ration_text_of(e->provider.endpoints[i].path));
        if (err != 0)
            return err;
    }
    return 0;
}

int rn_enforcer_new(const ration_rules *rules, size_t provider, ration_time now, rn_enforcer **out, ration_fault *fault)
{
    const ration_allocator *mem = rn_mem_default();
    rn_enforcer *e = rn_mem_zalloc(mem, 1, sizeof *e);

    if (e == NULL)
        return RATION_ERR_NOMEM;
    e->mem = mem;
    rn_arena_init(&e->arena, mem);

    const ration_engine_options options = {.rules = &e->rules};
    int err = rules_rewrite(e, rules, provider);
    if (err == 0)
        err = ration_engine_new(&options, now, &e->engine, fault);
    if (err == 0)
        err = templates_compile(e);
    if (err == 0)
        err = scopes_compile(e);
    if (err != 0) {
        rn_enforcer_free(e);
        return err;
    }
    *out = e;
    return 0;
}

void rn_enforcer_free(rn_enforcer *enforcer)
{
    if (enforcer == NULL)
        return;
    ration_engine_free(enforcer->engine);
    rn_arena_fini(&enforcer->arena);
    rn_mem_free(enforcer->mem, enforcer);
}

static size_t account_find(const rn_enforcer *e, ration_text name)
{
    size_t account = e->rules.account_count - 1;

    for (size_t i = 0; i < account; i++) {
        if (rn_text_is(name, e->accounts[i].name))
            account = i;
    }
    return account;
}

/* The most specific template that matches, and the values of its variables. */
static void endpoint_find(const rn_enforcer *e, ration_text path, routed_call *call)
{
    rn_path split;
    ration_text values[RN_SEGMENTS_MAX];
    const rn_template *best = NULL;

    if (!rn_path_split(path, &split))
        return;
    for (size_t i = 0; i < e->provider.endpoint_count; i++) {
        if ((best == NULL || rn_template_beats(&e->templates[i], best)) &&
            rn_template_match(&e->templates[i], &split, NULL))
            best = &e->templates[i];
    }
    if (best == NULL || !rn_template_match(best, &split, values))
        return;

    call->endpoint = &e->provider.endpoints[best - e->templates];
    for (size_t i = 0; i < best->count && call->subject.var_count < RN_VARS_MAX; i++) {
        if (best->segments[i].kind == RN_SEGMENT_VAR)
            call->subject.vars[call->subject.var_count++] = (ration_var){best->segments[i].text, values[i]};
    }
}

static ration_text path_alone(ration_text path)
{
    for (size_t i = 0; i < path.size; i++) {
        if (path.data[i] == '?' || path.data[i] == '#')
            return rn_text_slice(path, 0, i);
    }
    return path;
}

static void call_route(const rn_enforcer *e, const rn_arrival *arrival, routed_call *call)
{
    *call = (routed_call){.account = account_find(e, arrival->account)};
    endpoint_find(e, arrival->path, call);

    rn_subject *subject = &call->subject;
    subject->method = arrival->method;
    subject->path = call->endpoint != NULL ? ration_text_of(call->endpoint->path) : path_alone(arrival->path);
    subject->auth = (call->endpoint != NULL && call->endpoint->defaults.auth) || e->provider.defaults.auth;
    subject->dimension[RN_DIMENSION_PROVIDER] = ration_text_of(e->provider.name);
    subject->dimension[RN_DIMENSION_ACCOUNT] = ration_text_of(e->accounts[call->account].name);
    subject->dimension[RN_DIMENSION_CREDENTIAL] = arrival->credential;
    if (call->endpoint != NULL)
        subject->dimension[RN_DIMENSION_ENDPOINT] = subject->path;
}

/* Ask the engine; `direct` calls carry the variable that rate and concurrency limits want. */
static int call_submit(rn_enforcer *e, ration_time now, const rn_arrival *arrival, bool direct, ration_decision *out)
{
    const ration_var mark = {ration_text_of(DIRECT), ration_text_of("1")};
    ration_request request = RATION_REQUEST_INIT;

    request.account = ration_text_of(e->accounts[account_find(e, arrival->account)].name);
    request.credential = arrival->credential;
    request.method = arrival->method;
    request.path = arrival->path;
    request.cost = arrival->has_cost ? arrival->cost : RATION_UNSET;
    request.vars = &mark;
    request.var_count = direct ? 1 : 0;
    return ration_engine_submit(e->engine, now, &request, out);
}

/* As the engine has it: the call's own cost, else its endpoint's, else the provider's, else one unit. */
static int64_t cost_of(const rn_enforcer *e, const rn_arrival *arrival)
{
    routed_call call;

    if (arrival->has_cost)
        return arrival->cost;
    call_route(e, arrival, &call);
    const ration_defaults *own = call.endpoint != NULL ? &call.endpoint->defaults : &e->provider.defaults;
    if (own->has_cost || own->cost > 0)
        return own->cost;
    return e->provider.defaults.has_cost || e->provider.defaults.cost > 0 ? e->provider.defaults.cost : RATION_UNIT;
}

int rn_enforcer_ask(rn_enforcer *enforcer, ration_time now, const rn_arrival *arrival, rn_judgement *out)
{
    ration_decision decision;
    const int err = call_submit(enforcer, now, arrival, true, &decision);

    if (err != 0)
        return err;
    *out = (rn_judgement){
        .granted = decision.result == RATION_GRANTED,
        .lease = decision.lease,
        .cost = cost_of(enforcer, arrival),
        .reason = decision.reason,
        .limit = decision.limit,
        .retry_us = rn_time_known(decision.retry_at) ? rn_max(decision.retry_at.us - now.us, 0) : RATION_UNSET,
    };
    return 0;
}

void rn_enforcer_release(rn_enforcer *enforcer, ration_time now, ration_lease lease)
{
    const ration_completion completion = RATION_COMPLETION_INIT;

    (void)ration_engine_release(enforcer->engine, now, lease, &completion);
}

bool rn_enforcer_spend(rn_enforcer *enforcer, ration_time now, const rn_arrival *arrival)
{
    ration_decision decision;

    if (call_submit(enforcer, now, arrival, false, &decision) != 0 || decision.result != RATION_GRANTED)
        return false;
    rn_enforcer_release(enforcer, now, decision.lease);
    return true;
}

/* Looks through a report for the counters of one call. */
typedef struct quota_search {
    const rn_enforcer *enforcer;
    const routed_call *call;
    rn_quota_state *out;
    size_t max;
    size_t count;
} quota_search;

static bool applies(const enforcer_limit *limit, const rn_subject *subject, ration_text key)
{
    char text[KEY_MAX];
    rn_builder b;

    rn_builder_init(&b, text, sizeof text);
    return rn_scope_key(&limit->scope, subject, &b) && !b.full && rn_text_eq(key, (ration_text){text, b.used});
}

static void on_counter(void *ctx, const ration_counter_report *report)
{
    quota_search *search = ctx;
    const rn_enforcer *e = search->enforcer;
    rn_builder key;

    if (report->kind != RATION_KIND_QUOTA || search->count == search->max)
        return;
    for (size_t i = 0; i < e->provider.limit_count; i++) {
        const enforcer_limit *limit = &e->limits[search->call->account][i];

        if (!rn_text_is(ration_text_of(report->limit), limit->rule->name) ||
            !applies(limit, &search->call->subject, report->key))
            continue;
        rn_quota_state *out = &search->out[search->count++];
        *out = (rn_quota_state){
            .rule = limit->rule,
            .max = report->max,
            .remaining = report->remaining,
            .start = report->window_start,
            .end = report->has_window ? report->window_end : ration_time_of(RATION_NEVER_US),
            .id = rn_hash(report->key.data, report->key.size) ^ rn_hash(report->limit, strlen(report->limit)),
        };
        rn_builder_init(&key, out->key, sizeof out->key);
        rn_builder_text(&key, report->key);
        return;
    }
}

size_t rn_enforcer_quotas(rn_enforcer *enforcer, ration_time now, const rn_arrival *arrival, rn_quota_state *out,
                          size_t max)
{
    routed_call call;
    quota_search search = {.enforcer = enforcer, .call = &call, .out = out, .max = max};
    const ration_reporter reporter = {.ctx = &search, .kinds = 1u << RATION_KIND_QUOTA, .counter = on_counter};

    call_route(enforcer, arrival, &call);
    if (ration_engine_report(enforcer->engine, now, RATION_REPORT_STATS, &reporter) != 0)
        return 0;
    return search.count;
}
