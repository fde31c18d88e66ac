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
#include "core/limit.h"

static void fault_below(rn_loader *loader, const rn_node *given, const char *key, const char *hint, const char *text)
{
    const rn_node *at = rn_node_get(given, key);

    rn_loader_fault(loader, at != NULL ? at : given, key, hint, "%s", text);
}

/* settings */

static void check_listener(rn_loader *loader, const rn_node *listen, const char *key, const rn_address *address)
{
    if (!address->local) {
        fault_below(loader, listen, key, "set `settings.token`, from the environment",
                    "an address that others can reach needs a token");
    }
}

void rn_check_settings(rn_loader *loader, const rn_node *given, void *self)
{
    const rn_settings *settings = &((const rn_config_model *)self)->settings;
    const rn_node *listen = rn_node_get(given, "listen");

    if (listen == NULL || listen->kind != RN_NODE_MAP || loader->options->recording)
        return;

    const size_t path = rn_path_push(loader, ration_text_of("listen"));

    if (rn_node_get(given, "token") == NULL) {
        check_listener(loader, listen, "gateway", &settings->gateway);
        check_listener(loader, listen, "control", &settings->control);
    }
    if (settings->gateway.text != NULL && settings->control.text != NULL &&
        (settings->gateway.port != 0 || settings->gateway.path != NULL) &&
        strcmp(settings->gateway.text, settings->control.text) == 0)
        fault_below(loader, listen, "control", NULL, "gateway and control have the same address");
    rn_path_pop(loader, path);
}

/* limits */

static void check_scope(rn_loader *loader, const rn_node *given, const ration_limit_rule *rule)
{
    for (size_t i = 0; i < rule->scope_count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (rule->scope[i] != NULL && rule->scope[j] != NULL && strcmp(rule->scope[i], rule->scope[j]) == 0) {
                fault_below(loader, given, "scope", NULL, "a dimension of the scope stands twice");
                return;
            }
        }
    }
}

/* Keys of a window that only some periods have. */
static const struct {
    const char *key;
    unsigned periods;
    const char *text;
} window_keys[] = {
    {"resetAt", 1U << RATION_PERIOD_DAY | 1U << RATION_PERIOD_WEEK | 1U << RATION_PERIOD_MONTH,
     "only a day, a week or a month has a time of its reset"},
    {"weekStart", 1U << RATION_PERIOD_WEEK, "only a week has a first day"},
    {"monthDay", 1U << RATION_PERIOD_MONTH, "only a month has a first day of its own"},
    {"timezone", ~1U, "a rolling window has no time zone"},
};

static void check_window(rn_loader *loader, const rn_node *given, const ration_window *window)
{
    const rn_node *at = rn_node_get(given, "window");
    const rn_node *period = rn_node_get(at, "period");
    const rn_node *rolling = rn_node_get(at, "rolling");

    if (at == NULL || at->kind != RN_NODE_MAP)
        return;

    const size_t path = rn_path_push(loader, ration_text_of("window"));

    if (period == NULL && rolling == NULL) {
        rn_loader_fault(loader, at, NULL, "such as { period: day } or { rolling: 24h }",
                        "a window needs 'period' or 'rolling'");
    }
    if (period != NULL && rolling != NULL)
        rn_loader_fault(loader, rolling, "rolling", NULL, "a window has either a period or a rolling length, not both");
    for (size_t i = 0; i < sizeof window_keys / sizeof window_keys[0]; i++) {
        const bool fits = (window_keys[i].periods >> window->period & 1) != 0;
        const bool known = window->period != RATION_PERIOD_NONE || period == NULL;

        if (rn_node_get(at, window_keys[i].key) != NULL && known && !fits)
            fault_below(loader, at, window_keys[i].key, NULL, window_keys[i].text);
    }
    rn_path_pop(loader, path);
}

static void check_max(rn_loader *loader, const rn_node *given, rn_limit_model *limit)
{
    ration_limit_rule *rule = &limit->rule;
    const bool learns = limit->max == RATION_UNSET;
    const bool has_initial = rn_node_get(given, "initialMax") != NULL;

    rule->max_auto = learns && rule->kind == RATION_KIND_QUOTA;
    rule->max = learns ? limit->initial_max : limit->max;
    if (learns && rule->kind != RATION_KIND_QUOTA) {
        fault_below(loader, given, "max", "give a number", "only a quota can learn its maximum");
    } else if (learns && !has_initial) {
        fault_below(loader, given, "max", "what holds until the first response says more",
                    "`max: auto` needs 'initialMax'");
    }
    if (rule->max_auto && rule->sync.limit_header == NULL && !rule->sync.standard) {
        fault_below(loader, given, "max", "the response field with the maximum",
                    "`max: auto` needs 'sync.limitHeader'");
    }
    if (!learns && has_initial && rule->kind == RATION_KIND_QUOTA && rn_node_get(given, "max") != NULL)
        fault_below(loader, given, "initialMax", NULL, "'initialMax' goes with `max: auto` only");
}

/* What the kind itself finds wrong, so that it does not take a second run to learn of it. */
static void check_kind(rn_loader *loader, const rn_node *given, const ration_limit_rule *rule)
{
    const rn_kind *kind = rn_kind_of(rule->kind);
    rn_limit limit = {.rule = rule, .kind = kind};
    ration_fault fault = {"", ""};

    if (kind == NULL || kind->prepare(&limit, &fault) != RATION_ERR_CONFIG)
        return;

    const rn_node *at = rn_node_at(given, fault.path);

    rn_loader_fault(loader, at, fault.path, NULL, "%s", fault.text);
}

void rn_check_limit(rn_loader *loader, const rn_node *given, void *self)
{
    rn_limit_model *limit = self;
    const ration_limit_rule *rule = &limit->rule;
    const size_t faults = loader->faults_before;

    check_scope(loader, given, rule);
    if (rule->kind == RATION_KIND_QUOTA)
        check_window(loader, given, &rule->window);
    if (rule->kind == RATION_KIND_QUOTA || rule->kind == RATION_KIND_CONCURRENCY)
        check_max(loader, given, limit);
    if (loader->faults.count == faults)
        check_kind(loader, given, rule);
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
        const char *path = provider->endpoints[i].path;
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

void rn_check_provider(rn_loader *loader, const rn_node *given, void *self)
{
    rn_provider_model *provider = self;

    provider->net.name = provider->rule.name;
    /* Whoever asks without a path may name any variable, and in a recording anybody may have. */
    if (provider->rule.endpoint_count > 0 && !loader->options->recording)
        check_variables(loader, given, provider);
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
        fault_below(loader, given, "key", NULL, "a credential is either a key or a header with its value");
    } else if (!has_key && !has_value) {
        rn_loader_fault(loader, given, NULL, "such as { header: Authorization, value: \"Bearer ${API_KEY}\" }",
                        "the key 'value' is missing");
    }
    if (has_value && (credential->header == NULL || credential->header[0] == '\0')) {
        fault_below(loader, given, "header", NULL, "a credential needs the name of its header field");
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

    fault_below(loader, given, "target",
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

static bool same_scope(const ration_limit_rule *a, const ration_limit_rule *b)
{
    if (a->scope_count != b->scope_count)
        return false;
    for (size_t i = 0; i < a->scope_count; i++) {
        if (a->scope[i] == NULL || b->scope[i] == NULL || strcmp(a->scope[i], b->scope[i]) != 0)
            return false;
    }
    return true;
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
            fault_below(loader, entry->value, "kind", NULL, "an account cannot change the kind of a limit");
        } else if (!same_scope(rule, &limit->rule)) {
            fault_below(loader, entry->value, "scope", NULL, "an account cannot change the scope of a limit");
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

        fault_below(loader, given, "provider",
                    nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest) : NULL,
                    "there is no provider of this name");
        return;
    }
    account->net.provider = (uint32_t)index;
    account->net.base_url = provider->net.base_url;
    if (account->rule.target != NULL)
        check_target(loader, given, account, provider);
    check_overrides(loader, given, account, provider);
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
