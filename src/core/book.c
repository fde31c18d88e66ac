/* SPDX-License-Identifier: MIT */

/*
 * From rules to a book: everything is copied into one arena (book_copy.c), names become maps, limits are compiled by
 * their kinds, zones are parsed once.
 *
 * What an account replaces is a limit of its own with counters of its own, at the index of the limit that it replaces;
 * so every account has exactly as many limits as its provider. Faults name the rule as a path:
 * "providers[0].limits[2].window".
 */

#include "core/book.h"

#include "core/book_copy.h"
#include "core/quota_budget.h"

#define DEFAULT_WAITERS 10000
#define DEFAULT_LEASES 1000000

typedef struct compiler {
    rn_book *book;
    ration_fault *fault;
    rn_builder path;
} compiler;

static int fail(const compiler *c, const char *text)
{
    rn_builder b;

    rn_builder_init(&b, c->fault->path, sizeof c->fault->path);
    rn_builder_text(&b, (ration_text){c->path.data, c->path.used});
    rn_builder_init(&b, c->fault->text, sizeof c->fault->text);
    rn_builder_str(&b, text);
    return RATION_ERR_CONFIG;
}

static void path_push(compiler *c, const char *name)
{
    if (c->path.used > 0)
        rn_builder_char(&c->path, '.');
    rn_builder_str(&c->path, name);
}

static void path_element(compiler *c, const char *list, size_t index)
{
    path_push(c, list);
    rn_builder_char(&c->path, '[');
    rn_builder_int(&c->path, (int64_t)index);
    rn_builder_char(&c->path, ']');
}

static void path_cut(compiler *c, size_t used)
{
    c->path.used = used;
    c->path.data[used] = '\0';
}

static int fail_at(compiler *c, const char *name, const char *text)
{
    path_push(c, name);
    return fail(c, text);
}

static bool is_named(const char *name)
{
    return name != NULL && name[0] != '\0';
}

static int zones_init(compiler *c, const ration_rules *rules)
{
    rn_book *book = c->book;

    book->zones = rn_arena_zalloc(&book->arena, rules->zone_count, sizeof *book->zones);
    if (book->zones == NULL)
        return RATION_ERR_NOMEM;

    for (size_t i = 0; i < rules->zone_count; i++) {
        const ration_zone_data *data = &rules->zones[i];

        path_element(c, "zones", i);
        if (!is_named(data->name))
            return fail(c, "a zone needs a name");
        book->zones[i].name = rn_arena_strdup(&book->arena, data->name);
        if (book->zones[i].name == NULL)
            return RATION_ERR_NOMEM;

        const int err = rn_zone_new(book->mem, data->data, data->size, &book->zones[i].zone);

        if (err == RATION_ERR_SYNTAX)
            return fail(c, "not a TZif time zone file");
        if (err != RATION_OK)
            return err;
        book->zone_count = i + 1;
        path_cut(c, 0);
    }
    return RATION_OK;
}

static bool zone_find(const rn_book *book, const char *name, const rn_zone **out)
{
    *out = NULL;
    if (name == NULL)
        return true;
    for (size_t i = 0; i < book->zone_count; i++) {
        if (rn_text_is(ration_text_of(name), book->zones[i].name)) {
            *out = book->zones[i].zone;
            return true;
        }
    }
    return rn_text_is(ration_text_of(name), "UTC");
}

static int scope_init(compiler *c, rn_limit *limit)
{
    char bad_name[64];
    rn_builder bad;

    rn_builder_init(&bad, bad_name, sizeof bad_name);
    limit->scope = rn_arena_zalloc(&c->book->arena, 1, sizeof *limit->scope);
    if (limit->scope == NULL)
        return RATION_ERR_NOMEM;

    const int err = rn_scope_init(limit->scope, &c->book->arena, limit->rule, &bad);

    if (err == RATION_ERR_CONFIG)
        return fail_at(c, bad_name, "not a scope dimension or path pattern");
    limit->depth = (uint32_t)limit->scope->count;
    return err;
}

/* What no enumerator stands for would otherwise mean one silently. */
static int enums_check(compiler *c, const ration_limit_rule *rule)
{
    const struct {
        const char *name;
        unsigned value;
        unsigned last;
    } members[] = {
        {"counts", rule->counts, RATION_COUNTS_COST},
        {"enforce", rule->enforce, RATION_ENFORCE_SHADOW},
        {"appliesTo.authRequests", rule->auth_requests, RATION_AUTH_EXCLUDE},
        {"whenExhausted", rule->when_exhausted, RATION_EXHAUSTED_WAIT},
        {"durability", rule->durability, RATION_DURABILITY_STRICT},
        {"sync.resetFormat", rule->sync.reset_format, RATION_RESET_HTTP_DATE},
    };

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (members[i].value > members[i].last)
            return fail_at(c, members[i].name, "there is no such value");
    }
    return RATION_OK;
}

/* Compile one limit; the path names it already. */
static int limit_init(compiler *c, rn_limit *limit, const ration_limit_rule *rule, const rn_provider *provider,
                      size_t index)
{
    rn_book *book = c->book;

    if (!is_named(rule->name))
        return fail_at(c, "name", "a limit needs a name");

    limit->rule = rule;
    limit->kind = rn_kind_of(rule->kind);
    limit->provider = provider->name.data;
    limit->index = (uint32_t)index;
    limit->uid = book->limit_count++;
    TAILQ_INIT(&limit->counters);
    limit->enforcer = book->enforcer;
    limit->reserve = book->reserve;
    limit->arena = &book->arena;
    limit->mem = book->mem;
    if (limit->kind == NULL)
        return fail_at(c, "kind", "not a kind of limit");
    if (rule->max_keys < 0)
        return fail_at(c, "maxKeys", "must not be negative");
    if (!zone_find(book, rule->window.zone, &limit->zone))
        return fail_at(c, "window.timezone", "no such time zone among the rules' zones");

    int err = enums_check(c, rule);

    if (err == RATION_OK)
        err = scope_init(c, limit);
    if (err != RATION_OK)
        return err;

    ration_fault bad = {{0}, {0}};
    const int prepared = limit->kind->prepare(limit, &bad);

    if (prepared == RATION_OK && limit->kind->unprepare != NULL)
        SLIST_INSERT_HEAD(&book->prepared, limit, next);
    book->strict = book->strict || (prepared == RATION_OK && rn_limit_is_strict(limit));
    return prepared == RATION_ERR_CONFIG ? fail_at(c, bad.path, bad.text) : prepared;
}

/* Find the adaptive limit among `limits` that a ceiling follows. It must apply wherever the ceiling does, at the same
 * key. */
static int follow(compiler *c, rn_limit *limit, rn_limit *const *limits, size_t count)
{
    const char *name = limit->rule->kind == RATION_KIND_SHARE ? limit->rule->share.follows : NULL;

    if (name == NULL)
        return RATION_OK;
    for (size_t i = 0; i < count; i++) {
        rn_limit *leader = limits[i];

        if (leader == NULL || !rn_text_is(ration_text_of(name), leader->rule->name))
            continue;
        if (leader->rule->kind != RATION_KIND_ADAPTIVE)
            return fail_at(c, "ceiling.follows", "must name an adaptive limit");
        if (!rn_scope_is_like(limit->scope, leader->scope) ||
            leader->rule->endpoint_count + leader->rule->method_count > 0 || leader->rule->requests_with_var != NULL ||
            leader->rule->auth_requests != RATION_AUTH_INCLUDE) {
            return fail_at(c, "ceiling.follows",
                           "the adaptive limit must have the same scope and apply to all requests, so that both have "
                           "the same keys");
        }
        limit->follows = leader;
        limit->spec.share.largest =
            rn_max(limit->spec.share.largest, rn_mul(leader->spec.adaptive->aimd.max, RATION_UNIT));
        return RATION_OK;
    }
    return fail_at(c, "ceiling.follows", "the provider has no limit of that name");
}

static int follows_init(compiler *c, rn_limit *const *limits, size_t count)
{
    const size_t used = c->path.used;

    for (size_t i = 0; i < count; i++) {
        path_element(c, "limits", i);

        const int err = follow(c, limits[i], limits, count);

        if (err != RATION_OK)
            return err;
        path_cut(c, used);
    }
    return RATION_OK;
}

static int circuit_init(compiler *c, rn_provider *provider)
{
    static const char *const account[] = {"account"};
    const ration_breaker_rule *rule = &provider->rule.breaker;
    const ration_limit_rule scope = {.scope = rule->scope_count > 0 ? rule->scope : account,
                                     .scope_count = rule->scope_count > 0 ? rule->scope_count : 1};
    rn_arena *arena = &c->book->arena;
    ration_fault bad = {{0}, {0}};
    char bad_name[64];
    rn_builder name;

    if (rule->strategy == RATION_BREAKER_NONE || c->book->enforcer)
        return RATION_OK;
    provider->circuit = rn_arena_zalloc(arena, 1, sizeof *provider->circuit);
    if (provider->circuit == NULL)
        return RATION_ERR_NOMEM;

    int err = rn_breaker_spec_init(&provider->circuit->breaker, rule, &bad);

    if (err == RATION_ERR_CONFIG)
        return fail_at(c, bad.path, bad.text);
    if (err != RATION_OK)
        return err;
    rn_builder_init(&name, bad_name, sizeof bad_name);
    err = rn_scope_init(&provider->circuit->scope, arena, &scope, &name);
    return err == RATION_ERR_CONFIG ? fail_at(c, "breaker.scope", "not a scope dimension") : err;
}

static int limits_init(compiler *c, rn_provider *provider)
{
    const size_t used = c->path.used;
    const size_t count = provider->rule.limit_count;
    rn_arena *arena = &c->book->arena;
    rn_limit *limits = rn_arena_zalloc(arena, count, sizeof *limits);

    provider->limits = rn_arena_zalloc(arena, count, sizeof(rn_limit *));
    provider->throttled = rn_arena_zalloc(arena, count + 1, sizeof *provider->throttled);
    if (limits == NULL || provider->limits == NULL || provider->throttled == NULL)
        return RATION_ERR_NOMEM;

    for (size_t i = 0; i < count; i++) {
        const ration_limit_rule *rule = &provider->rule.limits[i];

        path_element(c, "limits", i);
        for (size_t k = 0; k < i; k++) {
            if (is_named(rule->name) && rn_text_is(ration_text_of(rule->name), provider->rule.limits[k].name))
                return fail_at(c, "name", "another limit of this provider has that name");
        }

        const int err = limit_init(c, &limits[i], rule, provider, i);

        if (err != RATION_OK)
            return err;
        provider->limits[i] = &limits[i];
        path_cut(c, used);
    }
    provider->limit_count = count;
    return follows_init(c, provider->limits, count);
}

static int defaults_check(compiler *c, const ration_defaults *defaults)
{
    if (defaults->cost < RATION_UNSET || defaults->cost > RATION_UNITS_MAX)
        return fail_at(c, "cost", "must be from 0 to 2^53 micro-units");
    if (defaults->hold_us < RATION_UNSET ||
        (defaults->hold_us > RATION_TIME_MAX_US && defaults->hold_us != RATION_FOREVER_US))
        return fail_at(c, "hold", "must be from 0 to 2^53 microseconds");
    if ((unsigned)defaults->priority > RATION_PRIORITY_LOW)
        return fail_at(c, "priority", "there is no such priority");
    return RATION_OK;
}

static int templates_init(compiler *c, rn_provider *provider)
{
    const size_t used = c->path.used;
    const size_t count = provider->rule.endpoint_count;
    rn_arena *arena = &c->book->arena;

    provider->templates = rn_arena_zalloc(arena, count, sizeof *provider->templates);
    if (provider->templates == NULL)
        return RATION_ERR_NOMEM;

    for (size_t i = 0; i < count; i++) {
        path_element(c, "endpoints", i);

        const ration_text path = ration_text_of(provider->rule.endpoints[i].path);
        const int err = rn_template_init(&provider->templates[i], arena, path);

        if (err == RATION_ERR_SYNTAX)
            return fail_at(c, "path", "not a path template: it begins with / and a variable is a whole {segment}");
        if (err != RATION_OK)
            return err;

        const int checked = defaults_check(c, &provider->rule.endpoints[i].defaults);

        if (checked != RATION_OK)
            return checked;
        path_cut(c, used);
    }
    return RATION_OK;
}

static int provider_init(compiler *c, const ration_provider_rule *rule, size_t index)
{
    rn_book *book = c->book;
    rn_provider *provider = &book->providers[index];

    path_element(c, "providers", index);
    if (!is_named(rule->name))
        return fail_at(c, "name", "a provider needs a name");
    if (rn_book_provider(book, ration_text_of(rule->name)) != NULL)
        return fail_at(c, "name", "another provider has that name");
    if ((unsigned)rule->errors.penalize > RATION_PENALIZE_ALL)
        return fail_at(c, "errors.rateLimited.penalize", "there is no such value");

    int err = defaults_check(c, &rule->defaults);

    if (err == RATION_OK)
        err = rn_copy_provider(&book->arena, rule, &provider->rule);
    if (err != RATION_OK)
        return err;
    provider->index = (uint32_t)index;
    provider->name = ration_text_of(provider->rule.name);
    rn_queue_init(&provider->queue, book->mem, book->fifo);
    book->provider_count = index + 1;

    err = rn_map_add(&book->providers_by_name, &provider->node, provider->name.data, provider->name.size);
    if (err == RATION_OK)
        err = templates_init(c, provider);
    if (err == RATION_OK)
        err = limits_init(c, provider);
    if (err == RATION_OK)
        err = circuit_init(c, provider);
    if (err == RATION_OK)
        path_cut(c, 0);
    return err;
}

static int override_init(compiler *c, rn_account *account, const ration_limit_rule *rule)
{
    rn_provider *provider = account->provider;

    for (size_t i = 0; i < provider->limit_count; i++) {
        if (!is_named(rule->name) || !rn_text_is(ration_text_of(rule->name), provider->rule.limits[i].name))
            continue;

        ration_limit_rule *copy = rn_arena_zalloc(&c->book->arena, 1, sizeof *copy);
        rn_limit *limit = rn_arena_zalloc(&c->book->arena, 1, sizeof *limit);

        if (copy == NULL || limit == NULL)
            return RATION_ERR_NOMEM;

        const int copied = rn_copy_limit(&c->book->arena, rule, copy);

        if (copied != RATION_OK)
            return copied;

        const int err = limit_init(c, limit, copy, provider, i);

        if (err == RATION_OK && !rn_scope_has(limit->scope, RN_DIMENSION_ACCOUNT))
            return fail_at(c, "scope", "an account can replace only a limit whose scope has account");
        account->limits[i] = limit;
        return err;
    }
    return fail_at(c, "name", "the provider has no limit of that name");
}

static int account_limits_init(compiler *c, rn_account *account, const ration_account_rule *rule)
{
    const size_t used = c->path.used;
    rn_provider *provider = account->provider;

    account->limits = rn_arena_zalloc(&c->book->arena, provider->limit_count, sizeof(rn_limit *));
    if (account->limits == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < provider->limit_count; i++)
        account->limits[i] = provider->limits[i];

    for (size_t i = 0; i < rule->limit_count; i++) {
        path_element(c, "limits", i);

        const int err = override_init(c, account, &rule->limits[i]);

        if (err != RATION_OK)
            return err;
        path_cut(c, used);
    }
    return follows_init(c, account->limits, provider->limit_count);
}

static bool ratio_is_share(ration_ratio r)
{
    return r.den == 0 || (r.den > 0 && r.den <= RATION_UNIT && r.num >= 0 && r.num <= r.den);
}

static int account_init(compiler *c, const ration_account_rule *rule, size_t index)
{
    rn_book *book = c->book;
    rn_account *account = &book->accounts[index];

    path_element(c, "accounts", index);
    if (!is_named(rule->name))
        return fail_at(c, "name", "an account needs a name");
    if (rn_book_account(book, ration_text_of(rule->name)) != NULL)
        return fail_at(c, "name", "another account has that name");
    account->provider = rn_book_provider(book, ration_text_of(rule->provider));
    if (account->provider == NULL)
        return fail_at(c, "provider", "no such provider");
    if (!ratio_is_share(rule->share))
        return fail_at(c, "budget.share", "must be from 0 to 1");

    account->name = ration_text_of(rn_arena_strdup(&book->arena, rule->name));
    account->target = ration_text_of(rn_arena_strdup(&book->arena, rule->target));
    account->credential = ration_text_of(rn_arena_strdup(&book->arena, rule->credential_key));
    account->share = rule->share;
    rn_alarm_init(&account->penalty_timer, RN_ALARM_ACCOUNT);
    if (account->name.data == NULL || (rule->target != NULL && account->target.data == NULL) ||
        (rule->credential_key != NULL && account->credential.data == NULL))
        return RATION_ERR_NOMEM;
    book->account_count = index + 1;

    int err = rn_map_add(&book->accounts_by_name, &account->node, account->name.data, account->name.size);

    if (err == RATION_OK)
        err = account_limits_init(c, account, rule);
    if (err == RATION_OK)
        path_cut(c, 0);
    return err;
}

static int tenants_init(compiler *c, const ration_rules *rules)
{
    rn_book *book = c->book;
    rn_tenant_weight *weights = rn_arena_zalloc(&book->arena, rules->tenant_count, sizeof *weights);

    if (weights == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < rules->tenant_count; i++) {
        const ration_tenant_rule *rule = &rules->tenants[i];

        path_element(c, "tenants", i);
        if (!is_named(rule->name))
            return fail_at(c, "name", "a tenant needs a name");
        if (rule->weight < 1 || rule->weight > RATION_UNIT)
            return fail_at(c, "weight", "must be from 1 to 1000000");

        const ration_text name = ration_text_of(rn_arena_strdup(&book->arena, rule->name));

        if (name.data == NULL)
            return RATION_ERR_NOMEM;
        if (rn_map_find(&book->weights, name.data, name.size) != NULL)
            return fail_at(c, "name", "another tenant has that name");
        weights[i].weight = rule->weight;

        const int err = rn_map_add(&book->weights, &weights[i].node, name.data, name.size);

        if (err != RATION_OK)
            return err;
        path_cut(c, 0);
    }
    return RATION_OK;
}

static int settings_init(compiler *c, const ration_rules *rules)
{
    rn_book *book = c->book;
    const char *instance = rules->instance != NULL ? rules->instance : "local";

    if (instance[0] == '\0')
        return fail_at(c, "instance", "must not be empty");
    if (!ratio_is_share(rules->retry_reserve))
        return fail_at(c, "settings.budget.retryReserve", "must be from 0 to 1");
    if (rules->max_waiters < 0 || rules->max_waiters_per_tenant < 0)
        return fail_at(c, "settings.queue.maxWaiters", "must not be negative");
    if ((unsigned)rules->queue_order > RATION_QUEUE_FIFO)
        return fail_at(c, "settings.queue.order", "there is no such order");
    if (rules->max_leases < 0 || rules->max_leases > UINT32_MAX)
        return fail_at(c, "maxLeases", "out of range");

    book->instance = ration_text_of(rn_arena_strdup(&book->arena, instance));
    book->reserve = rn_quota_reserve(rules->retry_reserve);
    book->enforcer = rules->enforcer;
    book->fifo = rules->queue_order == RATION_QUEUE_FIFO;
    book->max_waiters = rules->max_waiters == 0 ? DEFAULT_WAITERS : rules->max_waiters;
    book->max_waiters_per_tenant = rules->max_waiters_per_tenant == 0 ? DEFAULT_WAITERS : rules->max_waiters_per_tenant;
    book->max_leases = rules->max_leases == 0 ? DEFAULT_LEASES : rules->max_leases;
    return book->instance.data == NULL ? RATION_ERR_NOMEM : RATION_OK;
}

static int compile(compiler *c, const ration_rules *rules)
{
    rn_book *book = c->book;

    if (!rn_rules_have_lists(rules))
        return RATION_ERR_INVALID;

    int err = settings_init(c, rules);

    if (err == RATION_OK)
        err = zones_init(c, rules);
    if (err == RATION_OK)
        err = tenants_init(c, rules);
    if (err != RATION_OK)
        return err;

    book->providers = rn_arena_zalloc(&book->arena, rules->provider_count, sizeof *book->providers);
    book->accounts = rn_arena_zalloc(&book->arena, rules->account_count, sizeof *book->accounts);
    if (book->providers == NULL || book->accounts == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < rules->provider_count && err == RATION_OK; i++)
        err = provider_init(c, &rules->providers[i], i);
    for (size_t i = 0; i < rules->account_count && err == RATION_OK; i++)
        err = account_init(c, &rules->accounts[i], i);
    return err;
}

int rn_book_init(rn_book *book, const ration_allocator *mem, const ration_rules *rules, ration_fault *fault)
{
    ration_fault unused = {.path = ""};
    char path[sizeof unused.path];
    compiler c = {.book = book, .fault = fault != NULL ? fault : &unused};

    *book = (rn_book){.mem = mem};
    rn_arena_init(&book->arena, mem);
    rn_map_init(&book->providers_by_name, mem);
    rn_map_init(&book->accounts_by_name, mem);
    rn_map_init(&book->weights, mem);
    SLIST_INIT(&book->prepared);
    SLIST_INIT(&book->ghosts);
    rn_builder_init(&c.path, path, sizeof path);

    const int err = compile(&c, rules);

    if (err != RATION_OK)
        rn_book_fini(book);
    return err;
}

void rn_book_fini(rn_book *book)
{
    rn_limit *limit;

    SLIST_FOREACH (limit, &book->prepared, next)
        limit->kind->unprepare(limit);
    for (size_t i = 0; i < book->zone_count; i++)
        rn_zone_free(book->zones[i].zone);
    for (size_t i = 0; i < book->provider_count; i++)
        rn_queue_fini(&book->providers[i].queue);
    rn_map_fini(&book->providers_by_name);
    rn_map_fini(&book->accounts_by_name);
    rn_map_fini(&book->weights);
    rn_arena_fini(&book->arena);
    *book = (rn_book){.mem = book->mem};
}

static bool text_present(ration_text text)
{
    return text.data != NULL && text.size > 0;
}

rn_provider *rn_book_provider(const rn_book *book, ration_text name)
{
    rn_map_node *node = text_present(name) ? rn_map_find(&book->providers_by_name, name.data, name.size) : NULL;

    return node == NULL ? NULL : (rn_provider *)(void *)((char *)node - offsetof(rn_provider, node));
}

rn_account *rn_book_account(const rn_book *book, ration_text name)
{
    rn_map_node *node = text_present(name) ? rn_map_find(&book->accounts_by_name, name.data, name.size) : NULL;

    return node == NULL ? NULL : (rn_account *)(void *)((char *)node - offsetof(rn_account, node));
}

int64_t rn_book_weight(const rn_book *book, const rn_account *account, ration_text tenant)
{
    if (!text_present(tenant))
        return 1;
    for (size_t i = 0; i < account->provider->limit_count; i++) {
        const rn_limit *limit = account->limits[i];
        const int64_t weight = limit->rule->kind == RATION_KIND_SHARE ? rn_share_weight(limit, tenant) : 0;

        if (weight > 0)
            return weight;
    }

    const rn_map_node *node = rn_map_find(&book->weights, tenant.data, tenant.size);

    return node == NULL ? 1 : ((const rn_tenant_weight *)(const void *)node)->weight;
}

void rn_book_visit(const rn_book *book, void *ctx, void (*visit)(void *ctx, const rn_limit *limit))
{
    for (size_t i = 0; i < book->provider_count; i++) {
        for (size_t j = 0; j < book->providers[i].limit_count; j++)
            visit(ctx, book->providers[i].limits[j]);
    }
    for (size_t i = 0; i < book->account_count; i++) {
        const rn_account *account = &book->accounts[i];

        for (size_t j = 0; j < account->provider->limit_count; j++) {
            if (account->limits[j] != account->provider->limits[j])
                visit(ctx, account->limits[j]);
        }
    }
}
