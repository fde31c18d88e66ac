/* SPDX-License-Identifier: MIT */
/*
 * What no single key can know: keys that need or exclude each other, names that must exist.
 *
 * Each check runs once its object has been read, faults and all, and looks at the nodes to tell what was given and at
 * the values for what they are. A value that could not be read is its default here; checks say nothing about what
 * already has a fault.
 */
#include <string.h>

#include "config/loader.h"

void rn_fault_below(rn_loader *loader, const rn_node *given, const char *key, const char *hint, const char *text)
{
    const rn_node *at = rn_node_get(given, key);

    rn_loader_fault(loader, at != NULL ? at : given, key, hint, "%s", text);
}

/* settings */

static void check_listener(rn_loader *loader, const rn_node *listen, const char *key, const rn_address *address)
{
    if (!address->local) {
        rn_fault_below(loader, listen, key, "set `settings.token`, from the environment, or name `clients`",
                       "an address that others can reach needs a token");
    }
}

/* The word is no path: a file of that name is `./none`. */
void rn_check_ledger(rn_loader *loader, const rn_node *given, void *self)
{
    rn_settings *settings = &((rn_config_model *)self)->settings;

    (void)loader;
    (void)given;
    if (settings->ledger != NULL && strcmp(settings->ledger, "none") == 0)
        settings->ledger = NULL;
}

void rn_check_settings(rn_loader *loader, const rn_node *given, void *self)
{
    const rn_settings *settings = &((const rn_config_model *)self)->settings;
    const rn_node *listen = rn_node_get(given, "listen");

    if (listen == NULL || listen->kind != RN_NODE_MAP || loader->options->recording)
        return;

    const size_t path = rn_path_push(loader, ration_text_of("listen"));

    if (rn_node_get(given, "token") == NULL && rn_node_get(loader->root, "clients") == NULL) {
        check_listener(loader, listen, "gateway", &settings->gateway);
        check_listener(loader, listen, "control", &settings->control);
    }
    if (settings->gateway.text != NULL && settings->control.text != NULL &&
        (settings->gateway.port != 0 || settings->gateway.path != NULL) &&
        strcmp(settings->gateway.text, settings->control.text) == 0)
        rn_fault_below(loader, listen, "control", NULL, "gateway and control have the same address");
    rn_path_pop(loader, path);
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_address(const rn_address *a, const rn_address *b)
{
    return same_text(a->host, b->host) && same_text(a->path, b->path) && a->port == b->port;
}

/* Not in the file: the place of what it would stand in. */
static void fault_settled(rn_loader *loader, const char *path, const char *was)
{
    const size_t size = rn_path_push(loader, ration_text_of(path));

    rn_loader_fault(loader, rn_node_at(loader->root, path), NULL, "that takes a restart",
                    "it cannot change while the process runs with %s",
                    was != NULL ? rn_loader_quote(loader, ration_text_of(was)) : "none");
    rn_path_pop(loader, size);
}

void rn_settled_text(rn_loader *loader, const char *path, const char *was, const char *now)
{
    if (!same_text(was, now))
        fault_settled(loader, path, was);
}

void rn_settled_us(rn_loader *loader, const char *path, int64_t was, int64_t now)
{
    char text[64];
    rn_builder b;

    rn_builder_init(&b, text, sizeof text);
    rn_builder_duration(&b, was);
    if (was != now)
        fault_settled(loader, path, text);
}

void rn_check_running(rn_loader *loader)
{
    const rn_settings *was = rn_config_settings(loader->running);
    const rn_settings *now = &loader->model->settings;

    if (!same_address(&was->gateway, &now->gateway))
        fault_settled(loader, "settings.listen.gateway", was->gateway.text);
    if (!same_address(&was->control, &now->control))
        fault_settled(loader, "settings.listen.control", was->control.text);
    rn_settled_text(loader, "settings.ledger.path", was->ledger, now->ledger);
    rn_settled_text(loader, "settings.instance", was->instance, now->instance);
    rn_check_fleet_running(loader);
}

/* providers */

typedef struct variables {
    const char **names;
    size_t count;
} variables;

static const char *variable_at(const void *names, size_t index)
{
    return ((const char *const *)names)[index];
}

/* The names in braces of all templates; with `names` NULL only their number. */
static void variables_gather(rn_loader *loader, const rn_provider_model *provider, variables *out)
{
    out->count = 0;
    for (size_t i = 0; i < provider->rule.endpoint_count; i++) {
        const char *path = provider->endpoints[i].rule.path;
        const char *open = path != NULL ? strchr(path, '{') : NULL;

        while (open != NULL && strchr(open, '}') != NULL) {
            if (out->names != NULL) {
                const int size = (int)(strchr(open, '}') - open - 1);
                out->names[out->count] = rn_loader_format(loader, "%.*s", size, open + 1);
            }
            out->count++;
            open = strchr(open + 1, '{');
        }
    }
}

/* Misspelt, a limit would apply to no request at all, and nobody would notice. */
static void check_variable(rn_loader *loader, const rn_node *given, const variables *known, size_t limit, size_t scope,
                           const char *name)
{
    char path[80];
    rn_builder b;

    for (size_t i = 0; i < known->count; i++) {
        if (known->names[i] != NULL && strcmp(known->names[i], name) == 0)
            return;
    }
    rn_builder_init(&b, path, sizeof path);
    rn_builder_str(&b, "limits[");
    rn_builder_int(&b, (int64_t)limit);
    rn_builder_str(&b, scope == SIZE_MAX ? "].appliesTo.requestsWithVar" : "].scope.by[");
    if (scope != SIZE_MAX) {
        rn_builder_int(&b, (int64_t)scope);
        rn_builder_str(&b, "]");
    }

    const char *nearest = rn_nearest(ration_text_of(name), known->names, known->count, variable_at);

    rn_loader_fault(loader, rn_node_at(given, path), path,
                    nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest) : NULL,
                    "none of the provider's endpoints has the variable '%s'", name);
}

static void check_variables(rn_loader *loader, const rn_node *given, const rn_provider_model *provider)
{
    variables known = {NULL, 0};

    variables_gather(loader, provider, &known);
    known.names = rn_loader_alloc(loader, &loader->work, known.count + 1, sizeof *known.names);
    if (known.names == NULL)
        return;
    variables_gather(loader, provider, &known);
    for (size_t i = 0; i < provider->rule.limit_count; i++) {
        const ration_limit_rule *limit = &provider->limits[i].rule;

        for (size_t j = 0; j < limit->scope_count; j++) {
            if (limit->scope[j] != NULL && strncmp(limit->scope[j], "var:", 4) == 0)
                check_variable(loader, given, &known, i, j, limit->scope[j] + 4);
        }
        if (limit->requests_with_var != NULL)
            check_variable(loader, given, &known, i, SIZE_MAX, limit->requests_with_var);
    }
}

static const char *limit_at(const void *names, size_t index)
{
    const rn_limit_model *limits = names;

    return limits[index].rule.name;
}

static const rn_limit_model *limit_find(const rn_provider_model *provider, ration_text name, size_t *index)
{
    for (size_t i = 0; i < provider->rule.limit_count; i++) {
        const char *other = provider->limits[i].rule.name;

        if (other != NULL && rn_text_is(name, other)) {
            *index = i;
            return &provider->limits[i];
        }
    }
    return NULL;
}

/* Only adaptive limits are guesses for one that is followed. */
static const char *adaptive_at(const void *names, size_t index)
{
    const rn_limit_model *limits = names;

    return limits[index].rule.kind == RATION_KIND_ADAPTIVE ? limits[index].rule.name : NULL;
}

/* A ceiling that follows a limit moves with it, so both must have a counter each for the same requests. */
static void check_follow(rn_loader *loader, const rn_node *given, const rn_provider_model *provider, const char *path,
                         const ration_limit_rule *rule)
{
    const ration_text name = ration_text_of(rule->share.follows);
    const rn_node *at = rn_node_at(given, path);
    size_t index = 0;
    const rn_limit_model *leader = limit_find(provider, name, &index);
    const char *wrong = rn_follow_fault(rule, leader != NULL ? &leader->rule : NULL);

    if (wrong != NULL) {
        const char *nearest = rn_nearest(name, provider->limits, provider->rule.limit_count, adaptive_at);
        const bool guess = nearest != NULL && leader == NULL;

        rn_loader_fault(loader, at, path, guess ? rn_loader_format(loader, "did you mean '%s'?", nearest) : NULL, "%s",
                        wrong);
    } else if (leader != NULL && leader->rule.kind == RATION_KIND_ADAPTIVE && leader->rule.counts != rule->counts) {
        rn_loader_warn(loader, at, path, "give both the same 'counts'",
                       "this limit counts %s and the one that it follows counts %s",
                       rule->counts == RATION_COUNTS_COST ? "cost" : "requests",
                       leader->rule.counts == RATION_COUNTS_COST ? "cost" : "requests");
    }
}

static void check_follows(rn_loader *loader, const rn_node *given, const rn_provider_model *provider)
{
    for (size_t i = 0; i < provider->rule.limit_count; i++) {
        const ration_limit_rule *rule = &provider->limits[i].rule;
        const char *path = rn_loader_format(loader, "limits[%zu].ceiling.follows", i);

        if (rule->kind == RATION_KIND_SHARE && rule->share.follows != NULL && path != NULL)
            check_follow(loader, given, provider, path, rule);
    }
}

/* One number can come from one place. */
static void check_place(rn_loader *loader, const rn_node *given)
{
    if (rn_node_get(given, "header") != NULL && rn_node_get(given, "pointer") != NULL)
        rn_fault_below(loader, given, "pointer", NULL, "a cost comes from a header or from a pointer, not from both");
}

void rn_check_estimate(rn_loader *loader, const rn_node *given, void *self)
{
    (void)self;
    check_place(loader, given);
    if (rn_node_get(given, "header") == NULL && rn_node_get(given, "pointer") == NULL &&
        rn_node_get(given, "default") == NULL) {
        rn_loader_fault(loader, given, NULL, "such as { pointer: /max_tokens, default: 1000 }",
                        "an estimate needs 'header', 'pointer' or 'default'");
    }
    if (rn_node_get(given, "body") != NULL && rn_node_get(given, "pointer") == NULL)
        rn_fault_below(loader, given, "body", NULL, "'body' goes with 'pointer' only");
}

void rn_check_actual(rn_loader *loader, const rn_node *given, void *self)
{
    (void)self;
    check_place(loader, given);
    if (rn_node_get(given, "header") == NULL && rn_node_get(given, "pointer") == NULL) {
        rn_loader_fault(loader, given, NULL, "such as { pointer: /usage/total_tokens }",
                        "an actual cost needs 'header' or 'pointer'");
    }
}

void rn_check_endpoint(rn_loader *loader, const rn_node *given, void *self)
{
    const rn_endpoint_model *endpoint = self;
    const int64_t hold_us = endpoint->rule.defaults.hold_us;

    if (rn_node_get(given, "holdFloor") != NULL && hold_us != RN_HOLD_AUTO && hold_us != RATION_UNSET)
        rn_fault_below(loader, given, "holdFloor", NULL, "'holdFloor' goes with `hold: auto` only");
}

void rn_check_provider(rn_loader *loader, const rn_node *given, void *self)
{
    rn_provider_model *provider = self;

    provider->net.name = provider->rule.name;
    /* Whoever asks without a path may name any variable, and in a recording anybody may have. */
    if (provider->rule.endpoint_count > 0 && !loader->options->recording)
        check_variables(loader, given, provider);
    check_follows(loader, given, provider);
}

static const char *provider_at(const void *names, size_t index)
{
    const rn_provider_model *providers = names;

    return providers[index].rule.name;
}

static const rn_provider_model *provider_find(const rn_loader *loader, const char *name, size_t *index)
{
    const rn_config_model *model = loader->model;

    for (size_t i = 0; name != NULL && i < model->rules.provider_count; i++) {
        const char *other = model->providers[i].rule.name;

        if (other != NULL && strcmp(other, name) == 0) {
            *index = i;
            return &model->providers[i];
        }
    }
    return NULL;
}

/* accounts */

void rn_check_credential(rn_loader *loader, const rn_node *given, void *self)
{
    rn_credential *credential = &((rn_account_model *)self)->net.credential;
    const bool has_value = rn_node_get(given, "value") != NULL;
    const bool has_key = rn_node_get(given, "key") != NULL;

    if (has_key && (has_value || rn_node_get(given, "header") != NULL)) {
        rn_fault_below(loader, given, "key", NULL, "a credential is either a key or a header with its value");
    } else if (!has_key && !has_value) {
        rn_loader_fault(loader, given, NULL, "such as { header: Authorization, value: \"Bearer ${API_KEY}\" }",
                        "the key 'value' is missing");
    }
    if (has_value && (credential->header == NULL || credential->header[0] == '\0')) {
        rn_fault_below(loader, given, "header", NULL, "a credential needs the name of its header field");
    } else if (credential->value != NULL && !has_key &&
               rn_credential_key(loader->options, loader->arena, credential, &credential->key) != RATION_OK) {
        loader->nomem = true;
    }
}

static const char *target_at(const void *names, size_t index)
{
    const rn_target_model *targets = names;

    return targets[index].name;
}

/* The base URL of an account's target, by name or as it stands. */
static void check_target(rn_loader *loader, const rn_node *given, rn_account_model *account,
                         const rn_provider_model *provider)
{
    const char *target = account->rule.target;

    for (size_t i = 0; i < provider->target_count; i++) {
        if (provider->targets[i].name != NULL && strcmp(provider->targets[i].name, target) == 0) {
            account->net.base_url = provider->targets[i].url;
            return;
        }
    }

    const int err = rn_url_read(loader, ration_text_of(target), &account->net.base_url);

    if (err == RATION_ERR_NOMEM)
        loader->nomem = true;
    if (err != RATION_ERR_SYNTAX || loader->options->recording)
        return;

    const char *nearest = rn_nearest(ration_text_of(target), provider->targets, provider->target_count, target_at);

    rn_fault_below(loader, given, "target",
                   nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest)
                                   : "such as https://eu.example.com",
                   "the provider has no such target, and it is not a URL");
}

static bool has_account(const ration_limit_rule *rule)
{
    for (size_t i = 0; i < rule->scope_count; i++) {
        if (rule->scope[i] != NULL && strcmp(rule->scope[i], "account") == 0)
            return true;
    }
    return false;
}

/* A limit as it is for one account. */
static const ration_limit_rule *limit_of(const rn_account_model *account, const rn_provider_model *provider, size_t i)
{
    const ration_limit_rule *rule = &provider->limits[i].rule;

    for (size_t k = 0; k < account->limit_count; k++) {
        const char *name = account->limits[k].rule.name;

        if (name != NULL && rule->name != NULL && strcmp(name, rule->name) == 0)
            return &account->limits[k].rule;
    }
    return rule;
}

/* An account may have changed a ceiling that follows, the limit that is followed, or both. */
static void check_followed(rn_loader *loader, const rn_node *given, const rn_account_model *account,
                           const rn_provider_model *provider)
{
    for (size_t i = 0; i < provider->rule.limit_count && account->limit_count > 0; i++) {
        const ration_limit_rule *rule = limit_of(account, provider, i);
        const ration_text name = ration_text_of(rule->share.follows);
        size_t index = 0;

        if (rule->kind != RATION_KIND_SHARE || name.size == 0)
            continue;

        const rn_limit_model *found = limit_find(provider, name, &index);
        const ration_limit_rule *leader = found != NULL ? limit_of(account, provider, index) : NULL;
        const bool changed = rule != &provider->limits[i].rule || (found != NULL && leader != &found->rule);
        const char *wrong = rn_follow_fault(rule, leader);

        /* What is wrong without the account's changes is said at the provider. */
        if (wrong != NULL && changed) {
            rn_fault_below(loader, given, "limits", NULL,
                           rn_loader_format(loader, "limit %s follows %s: %s",
                                            rn_loader_quote(loader, ration_text_of(rule->name)),
                                            rn_loader_quote(loader, name), wrong));
        }
    }
}

static void check_overrides(rn_loader *loader, const rn_node *given, const rn_account_model *account,
                            const rn_provider_model *provider)
{
    const rn_node *list = rn_node_get(given, "limits");
    const rn_entry *entry = list != NULL && list->kind == RN_NODE_LIST ? list->first : NULL;
    const size_t path = rn_path_push(loader, ration_text_of("limits"));

    for (size_t i = 0; i < account->limit_count && entry != NULL; i++, entry = entry->next) {
        const ration_limit_rule *rule = &account->limits[i].rule;
        size_t index = 0;
        const rn_limit_model *limit =
            rule->name != NULL ? limit_find(provider, ration_text_of(rule->name), &index) : NULL;

        if (limit == NULL)
            continue;

        const size_t item = rn_path_index(loader, i);

        if (!has_account(&limit->rule)) {
            rn_loader_fault(loader, entry->value, NULL, "its counters are shared with other accounts",
                            "only a limit whose scope has 'account' can be changed for one");
        } else if (rule->kind != limit->rule.kind) {
            rn_fault_below(loader, entry->value, "kind", NULL, "an account cannot change the kind of a limit");
        } else if (!rn_same_scope(rule, &limit->rule)) {
            rn_fault_below(loader, entry->value, "scope", NULL, "an account cannot change the scope of a limit");
        }
        rn_path_pop(loader, item);
    }
    rn_path_pop(loader, path);
}

void rn_check_account(rn_loader *loader, const rn_node *given, void *self)
{
    rn_account_model *account = self;
    size_t index = 0;
    const rn_provider_model *provider = provider_find(loader, account->rule.provider, &index);

    account->net.name = account->rule.name;
    account->net.target = account->rule.target;
    account->rule.credential_key = account->net.credential.key;
    if (account->net.credential.value == NULL)
        account->net.credential.header = NULL;
    if (account->rule.provider == NULL)
        return;
    if (provider == NULL) {
        const char *nearest = rn_nearest(ration_text_of(account->rule.provider), loader->model->providers,
                                         loader->model->rules.provider_count, provider_at);

        rn_fault_below(loader, given, "provider",
                       nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest) : NULL,
                       "there is no provider of this name");
        return;
    }
    account->net.provider = (uint32_t)index;
    account->net.base_url = provider->net.base_url;
    if (account->rule.target != NULL)
        check_target(loader, given, account, provider);
    check_overrides(loader, given, account, provider);
    check_followed(loader, given, account, provider);
}

/* The node of a provider's limit. */
static const rn_node *limit_node(const rn_loader *loader, size_t provider, size_t limit)
{
    char path[64];
    rn_builder b;

    rn_builder_init(&b, path, sizeof path);
    rn_builder_str(&b, "providers[");
    rn_builder_int(&b, (int64_t)provider);
    rn_builder_str(&b, "].limits[");
    rn_builder_int(&b, (int64_t)limit);
    rn_builder_str(&b, "]");
    return rn_node_at(loader->root, path);
}

const rn_node *rn_overlay_limit(rn_loader *loader, const rn_node *item, const void *owner)
{
    const rn_account_model *account = owner;
    const rn_node *name = rn_node_get(item, "name");
    size_t index = 0;
    size_t number = 0;
    const rn_provider_model *provider = provider_find(loader, account->rule.provider, &index);

    /* Without them there is nothing to lay it over; what is wrong is said where it stands. */
    if (provider == NULL)
        return NULL;
    if (name == NULL || name->kind != RN_NODE_SCALAR) {
        rn_loader_fault(loader, item, NULL, NULL, "must be a map with the name of one of the provider's limits");
        return NULL;
    }
    if (limit_find(provider, name->text, &number) == NULL) {
        const char *nearest = rn_nearest(name->text, provider->limits, provider->rule.limit_count, limit_at);

        rn_loader_fault(loader, name, "name",
                        nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest) : NULL,
                        "the provider has no limit of this name");
        return NULL;
    }

    const rn_node *base = limit_node(loader, index, number);
    rn_node *laid = rn_loader_alloc(loader, &loader->work, 1, sizeof *laid);

    if (laid == NULL)
        return NULL;
    *laid = (rn_node){.kind = RN_NODE_MAP, .at = item->at};
    for (const rn_entry *e = item->first; e != NULL; e = e->next)
        loader->nomem |= rn_node_append(&loader->work, laid, e->key, e->value) != RATION_OK;
    for (const rn_entry *e = base->kind == RN_NODE_MAP ? base->first : NULL; e != NULL; e = e->next) {
        if (rn_node_find(item, e->key->text) == NULL)
            loader->nomem |= rn_node_append(&loader->work, laid, e->key, e->value) != RATION_OK;
    }
    return laid;
}

/* the file */

void rn_check_file(rn_loader *loader, const rn_node *given, void *self)
{
    rn_check_jobs(loader, given, self);
    rn_check_clients(loader, given, self);
}
