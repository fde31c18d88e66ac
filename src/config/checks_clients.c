/* SPDX-License-Identifier: MIT */
/*
 * What no single key of a client can know: the names that it may claim, and that a token is one client's alone.
 *
 * An account must exist. Tenants and classes may be anything where no limit lists them, so an unknown one is a warning,
 * and only where the config knows some. A token stands in no message, not even in part: two that are the same are
 * called by the names of their clients.
 */
#include <string.h>

#include "config/loader.h"

#define CLIENTS_MAX 1000 /* each call's token is compared with all of theirs */

/* one client */

static bool is_visible(const char *token)
{
    for (const char *c = token; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~')
            return false;
    }
    return true;
}

void rn_check_client(rn_loader *loader, const rn_node *given, void *self)
{
    rn_client *client = self;
    const rn_node *view = rn_node_get(given, "view");

    client->accounts.any = rn_node_get(given, "accounts") == NULL;
    client->tenants.any = rn_node_get(given, "tenants") == NULL;
    client->classes.any = rn_node_get(given, "classes") == NULL;
    if (client->token != NULL && !is_visible(client->token)) {
        rn_fault_below(loader, given, "token", "such as 32 random characters of A-Z, a-z, 0-9",
                       "a token has visible ASCII characters only, and no blanks");
    }
    if (view != NULL && client->operates && !client->views && loader->faults.count == loader->faults_before)
        rn_fault_below(loader, given, "view", NULL, "an operator may look at everything");
    if (view == NULL)
        client->views = client->operates || (client->accounts.any && client->tenants.any);
}

/* names that must exist */

typedef struct known_name {
    rn_map_node node;
    const char *name;
} known_name;

/* Each name once, in the order of the config. */
typedef struct known {
    rn_loader *loader;
    rn_map map;
    known_name *names;
    size_t count;
    size_t room;
} known;

static const char *known_at(const void *names, size_t index)
{
    const known_name *list = names;

    return list[index].name;
}

static void known_add(known *all, const char *name)
{
    if (name == NULL || all->count == all->room || rn_map_find(&all->map, name, strlen(name)) != NULL)
        return;
    all->names[all->count].name = name;
    if (rn_map_add(&all->map, &all->names[all->count].node, name, strlen(name)) == RATION_OK) {
        all->count++;
    } else {
        all->loader->nomem = true;
    }
}

static bool known_init(known *all, rn_loader *loader, size_t room)
{
    *all = (known){.loader = loader, .room = room};
    all->names = rn_loader_alloc(loader, &loader->work, room, sizeof *all->names);
    rn_map_init(&all->map, loader->mem);
    return all->names != NULL;
}

/* What a limit declares: tenants of a share, classes of an adaptive one. */
typedef void limit_names(const ration_limit_rule *rule, known *all, size_t *count);

static void tenants_of(const ration_limit_rule *rule, known *all, size_t *count)
{
    *count += rule->share.tenant_count;
    for (size_t i = 0; all != NULL && i < rule->share.tenant_count; i++)
        known_add(all, rule->share.tenants[i].name);
}

static void classes_of(const ration_limit_rule *rule, known *all, size_t *count)
{
    *count += rule->adaptive.class_count;
    for (size_t i = 0; all != NULL && i < rule->adaptive.class_count; i++)
        known_add(all, rule->adaptive.classes[i].name);
}

/* Of all limits; `all` NULL: only how many there are, at most. */
static size_t limits_walk(const rn_config_model *model, limit_names *of, known *all)
{
    size_t count = 0;

    for (size_t i = 0; i < model->rules.provider_count; i++) {
        for (size_t k = 0; k < model->providers[i].rule.limit_count; k++)
            of(&model->providers[i].limits[k].rule, all, &count);
    }
    for (size_t i = 0; i < model->rules.account_count; i++) {
        for (size_t k = 0; k < model->accounts[i].limit_count; k++)
            of(&model->accounts[i].limits[k].rule, all, &count);
    }
    return count;
}

static bool accounts_gather(known *all, rn_loader *loader, const rn_config_model *model)
{
    if (!known_init(all, loader, model->rules.account_count))
        return false;
    for (size_t i = 0; i < model->rules.account_count; i++)
        known_add(all, model->accounts[i].rule.name);
    return true;
}

static bool tenants_gather(known *all, rn_loader *loader, const rn_config_model *model)
{
    const size_t room = model->rules.tenant_count + model->job_count + limits_walk(model, tenants_of, NULL);

    if (!known_init(all, loader, room))
        return false;
    for (size_t i = 0; i < model->rules.tenant_count; i++)
        known_add(all, model->rules.tenants[i].name);
    (void)limits_walk(model, tenants_of, all);
    for (size_t i = 0; i < model->job_count; i++)
        known_add(all, model->jobs[i].job.tenant);
    return true;
}

static bool classes_gather(known *all, rn_loader *loader, const rn_config_model *model)
{
    if (!known_init(all, loader, limits_walk(model, classes_of, NULL)))
        return false;
    (void)limits_walk(model, classes_of, all);
    return true;
}

/* One key of a client: whose names they are, and what it means that one is not known. */
typedef struct claim_key {
    const char *key;
    size_t offset; /* of the list in the client */
    bool (*gather)(known *all, rn_loader *loader, const rn_config_model *model);
    bool must; /* a fault, else a warning where any are known */
    const char *text;
} claim_key;

static const claim_key claim_keys[] = {
    {"accounts", offsetof(rn_client, accounts), accounts_gather, true, "there is no account of this name"},
    {"tenants", offsetof(rn_client, tenants), tenants_gather, false,
     "neither `tenants`, a limit nor a job knows a tenant of this name"},
    {"classes", offsetof(rn_client, classes), classes_gather, false, "no limit has a class of this name"},
};

static void check_names(rn_loader *loader, const rn_node *given, const rn_client *client, const claim_key *row,
                        const known *all)
{
    const rn_claimable *list = (const rn_claimable *)(const void *)((const char *)client + row->offset);
    const rn_node *node = rn_node_get(given, row->key);
    const rn_entry *entry = node != NULL && node->kind == RN_NODE_LIST ? node->first : NULL;
    const size_t path = rn_path_push(loader, ration_text_of(row->key));

    for (size_t i = 0; i < list->count && entry != NULL; i++, entry = entry->next) {
        const char *name = list->names[i];

        if (name == NULL || rn_map_find(&all->map, name, strlen(name)) != NULL || (!row->must && all->count == 0))
            continue;

        const char *near = rn_nearest(ration_text_of(name), all->names, all->count, known_at);
        const char *hint = near != NULL ? rn_loader_format(loader, "did you mean '%s'?", near) : NULL;
        const size_t item = rn_path_index(loader, i);

        if (row->must) {
            rn_loader_fault(loader, entry->value, NULL, hint, "%s", row->text);
        } else {
            rn_loader_warn(loader, entry->value, NULL, hint, "%s", row->text);
        }
        rn_path_pop(loader, item);
    }
    rn_path_pop(loader, path);
}

/* all clients of a file */

typedef struct token_entry {
    rn_map_node node;
    const rn_client *client;
} token_entry;

static void check_token(rn_loader *loader, const rn_node *given, const rn_client *client, rn_map *tokens,
                        token_entry *entry)
{
    const rn_config_model *model = loader->model;
    const char *token = client->token;

    if (token == NULL)
        return;
    if (model->settings.token != NULL && strcmp(token, model->settings.token) == 0)
        rn_fault_below(loader, given, "token", "its bearer may claim anything", "this is `settings.token`");

    const rn_map_node *first = rn_map_find(tokens, token, strlen(token));
    if (first != NULL) {
        const rn_client *other = ((const token_entry *)(const void *)first)->client;

        rn_fault_below(loader, given, "token", NULL,
                       rn_loader_format(loader, "client %s has the same token",
                                        rn_loader_quote(loader, ration_text_of(other->name))));
        return;
    }
    entry->client = client;
    if (rn_map_add(tokens, &entry->node, token, strlen(token)) != RATION_OK)
        loader->nomem = true;
}

static void check_tokens(rn_loader *loader, const rn_entry *entry, const rn_config_model *model)
{
    token_entry *entries = rn_loader_alloc(loader, &loader->work, model->client_count, sizeof *entries);
    rn_map tokens;

    rn_map_init(&tokens, loader->mem);
    for (size_t i = 0; entries != NULL && i < model->client_count && entry != NULL; i++, entry = entry->next) {
        const size_t item = rn_path_index(loader, i);

        check_token(loader, entry->value, &model->clients[i], &tokens, &entries[i]);
        rn_path_pop(loader, item);
    }
    rn_map_fini(&tokens);
}

static void check_claims(rn_loader *loader, const rn_entry *first, const rn_config_model *model, const claim_key *row)
{
    const rn_entry *entry = first;
    known all;

    if (row->gather(&all, loader, model)) {
        for (size_t i = 0; i < model->client_count && entry != NULL; i++, entry = entry->next) {
            const size_t item = rn_path_index(loader, i);

            check_names(loader, entry->value, &model->clients[i], row, &all);
            rn_path_pop(loader, item);
        }
    }
    rn_map_fini(&all.map);
}

void rn_check_clients(rn_loader *loader, const rn_node *given, const rn_config_model *model)
{
    const rn_node *list = rn_node_get(given, "clients");
    const rn_entry *entry = list != NULL && list->kind == RN_NODE_LIST ? list->first : NULL;

    if (entry == NULL)
        return;

    const size_t path = rn_path_push(loader, ration_text_of("clients"));

    if (model->client_count > CLIENTS_MAX) {
        rn_loader_fault(loader, list, NULL, NULL, "there may be at most %d clients", CLIENTS_MAX);
    } else {
        check_tokens(loader, entry, model);
        for (size_t i = 0; i < sizeof claim_keys / sizeof claim_keys[0]; i++)
            check_claims(loader, entry, model, &claim_keys[i]);
    }
    rn_path_pop(loader, path);
}
