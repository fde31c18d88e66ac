/* SPDX-License-Identifier: MIT */
/*
 * Loading: text, nodes, values, and at the end an engine that is made and thrown away.
 *
 * The engine validates rules too, whoever wrote them; asking it last catches what only the core knows, with the place
 * of the node that its path leads to. A config is kept only when nothing is wrong; faults own all that they point to.
 *
 * Invariant: on success no pointer of the config leads into the arena of nodes; on failure none of a fault leads into
 * the config.
 */
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/loader.h"
#include "config/parse.h"

#define SALT_BYTES 32
#define HOST_NAME_MAX_BYTES 256
#define HOLD_FLOOR_US INT64_C(50000) /* the shortest hold that is learned, where the config does not say */

/* What a list of faults owns. */
typedef struct faults_owner {
    const ration_allocator *mem;
    rn_arena arena;
} faults_owner;

void ration_config_faults_fini(ration_config_faults *faults)
{
    faults_owner *owner = faults->owner;

    if (owner != NULL) {
        const ration_allocator *mem = owner->mem;

        rn_arena_fini(&owner->arena);
        rn_mem_free(mem, owner);
    }
    *faults = (ration_config_faults){NULL, 0, NULL};
}

void rn_config_place(const ration_config_fault *fault, rn_builder *b)
{
    rn_builder_str(b, fault->file);
    if (fault->line > 0) {
        rn_builder_char(b, ':');
        rn_builder_int(b, fault->line);
        rn_builder_char(b, ':');
        rn_builder_int(b, fault->column);
    }
}

size_t ration_config_fault_text(const ration_config_fault *fault, char *buffer, size_t size)
{
    rn_builder b;

    rn_builder_init(&b, buffer, size);
    rn_config_place(fault, &b);
    rn_builder_str(&b, fault->warning ? ": warning: " : ": ");
    if (fault->path[0] != '\0') {
        rn_builder_str(&b, fault->path);
        rn_builder_str(&b, ": ");
    }
    rn_builder_str(&b, fault->text);
    if (fault->hint[0] != '\0') {
        rn_builder_str(&b, " (");
        rn_builder_str(&b, fault->hint);
        rn_builder_str(&b, ")");
    }
    return b.used;
}

void ration_config_free(ration_config *config)
{
    if (config == NULL)
        return;

    const ration_allocator *mem = config->mem;

    rn_map_fini(&config->accounts);
    rn_arena_fini(&config->arena);
    rn_mem_free(mem, config);
}

const ration_config_fault *ration_config_warnings(const ration_config *config, size_t *count)
{
    *count = config->warnings.count;
    return config->warnings.items;
}

const ration_rules *ration_config_rules(const ration_config *config)
{
    return &config->model.rules;
}

const ration_allocator *rn_config_allocator(const ration_config *config)
{
    return config->mem;
}

const rn_settings *rn_config_settings(const ration_config *config)
{
    return &config->model.settings;
}

const rn_provider *rn_config_provider(const ration_config *config, size_t index)
{
    return index < config->model.rules.provider_count ? &config->model.providers[index].net : NULL;
}

const rn_account *rn_config_account(const ration_config *config, size_t index)
{
    return index < config->model.rules.account_count ? &config->model.accounts[index].net : NULL;
}

const rn_job *rn_config_job(const ration_config *config, size_t index)
{
    return index < config->model.job_count ? &config->model.jobs[index].job : NULL;
}

const rn_client *rn_config_clients(const ration_config *config, size_t *count)
{
    *count = config->model.client_count;
    return config->model.clients;
}

const rn_account *rn_config_find_account(const ration_config *config, ration_text name)
{
    const rn_map_node *node = rn_map_find(&config->accounts, name.data, name.size);

    if (node == NULL)
        return NULL;
    return &((const rn_account_model *)(const void *)((const char *)node - offsetof(rn_account_model, by_name)))->net;
}

int rn_loader_source(rn_loader *loader, const char *name, ration_text text, uint32_t first_line, const rn_node **out)
{
    rn_source *source = rn_loader_alloc(loader, &loader->work, 1, sizeof *source);

    if (source == NULL)
        return RATION_ERR_NOMEM;
    source->name = rn_arena_strdup(&loader->work, name);
    source->text = text;
    source->index = loader->sources++;
    source->first_line = first_line > 0 ? first_line : 1;
    if (source->name == NULL)
        return RATION_ERR_NOMEM;
    return rn_parse_source(source, &loader->work, &loader->faults, out);
}

/* The rules' plain arrays, from the members that the table filled. */
static ration_limit_rule *limits_collect(rn_loader *loader, const rn_limit_model *limits, size_t count)
{
    ration_limit_rule *rules = rn_loader_alloc(loader, loader->arena, count, sizeof *rules);

    for (size_t i = 0; rules != NULL && i < count; i++)
        rules[i] = limits[i].rule;
    return rules;
}

/* What the rules get of a request's defaults, and what is learned beside them; `above` holds where they are silent. */
static rn_hold_default defaults_finish(ration_defaults *defaults, int64_t floor_us, const rn_hold_default *above)
{
    const bool given = defaults->hold_us != RATION_UNSET;
    const rn_hold_default hold = {.hold_auto = given ? defaults->hold_us == RN_HOLD_AUTO : above->hold_auto,
                                  .hold_floor_us = floor_us != RATION_UNSET ? floor_us : above->hold_floor_us};

    if (defaults->hold_us == RN_HOLD_AUTO)
        defaults->hold_us = RATION_UNSET;
    defaults->has_cost = defaults->cost != RATION_UNSET;
    return hold;
}

/* An endpoint's estimate and actual cost; each is the provider's where the endpoint has none. */
static rn_cost_rule cost_finish(const rn_cost_rule *own, const rn_cost_rule *above)
{
    rn_cost_rule cost = *above;

    if (own->estimate_header != NULL || own->estimate_pointer != NULL || own->estimate_default != RATION_UNSET) {
        cost.estimate_header = own->estimate_header;
        cost.estimate_pointer = own->estimate_pointer;
        cost.estimate_default = own->estimate_default;
        cost.estimate_body = own->estimate_body;
    }
    if (own->actual_header != NULL || own->actual_pointer != NULL) {
        cost.actual_header = own->actual_header;
        cost.actual_pointer = own->actual_pointer;
    }
    return cost;
}

static void endpoints_collect(rn_loader *loader, rn_provider_model *provider, ration_provider_rule *rule)
{
    ration_endpoint_rule *rules = rn_loader_alloc(loader, loader->arena, rule->endpoint_count, sizeof *rules);
    rn_hold_default *holds = rn_loader_alloc(loader, loader->arena, rule->endpoint_count, sizeof *holds);
    rn_cost_rule *costs = rn_loader_alloc(loader, loader->arena, rule->endpoint_count, sizeof *costs);
    int64_t *retries = rn_loader_alloc(loader, loader->arena, rule->endpoint_count, sizeof *retries);
    const bool room = rules != NULL && holds != NULL && costs != NULL && retries != NULL;

    for (size_t i = 0; room && i < rule->endpoint_count; i++) {
        const rn_endpoint_model *endpoint = &provider->endpoints[i];

        rules[i] = endpoint->rule;
        holds[i] = defaults_finish(&rules[i].defaults, endpoint->hold_floor_us, &provider->net.hold);
        costs[i] = cost_finish(&endpoint->cost, &provider->net.cost);
        retries[i] = endpoint->retries;
    }
    rule->endpoints = rules;
    provider->net.endpoints = holds;
    provider->net.endpoint_costs = costs;
    provider->net.endpoint_retries = retries;
}

static void provider_collect(rn_loader *loader, rn_provider_model *provider, ration_provider_rule *rule)
{
    const rn_hold_default silent = {false, HOLD_FLOOR_US};

    *rule = provider->rule;
    provider->net.hold = defaults_finish(&rule->defaults, provider->hold_floor_us, &silent);
    endpoints_collect(loader, provider, rule);
    rule->limits = limits_collect(loader, provider->limits, rule->limit_count);
}

static void rules_collect(rn_loader *loader, ration_config *config)
{
    rn_config_model *model = &config->model;
    ration_provider_rule *providers =
        rn_loader_alloc(loader, loader->arena, model->rules.provider_count, sizeof *providers);
    ration_account_rule *accounts =
        rn_loader_alloc(loader, loader->arena, model->rules.account_count, sizeof *accounts);

    for (size_t i = 0; providers != NULL && i < model->rules.provider_count; i++)
        provider_collect(loader, &model->providers[i], &providers[i]);
    for (size_t i = 0; accounts != NULL && i < model->rules.account_count; i++) {
        rn_account_model *account = &model->accounts[i];

        account->rule.limit_count = account->limit_count;
        account->rule.limits = limits_collect(loader, account->limits, account->limit_count);
        accounts[i] = account->rule;
        if (rn_map_add(&config->accounts, &account->by_name, account->rule.name, strlen(account->rule.name)) !=
            RATION_OK)
            loader->nomem = true;
    }
    model->rules.providers = providers;
    model->rules.accounts = accounts;
}

/* Faults that only the core can find. */
static void engine_try(rn_loader *loader)
{
    const ration_engine_options options = {.rules = &loader->model->rules, .allocator = loader->mem};
    ration_engine *engine = NULL;
    ration_fault fault = {"", ""};
    const int err = ration_engine_new(&options, ration_time_of(0), &engine, &fault);

    ration_engine_free(engine);
    if (err == RATION_ERR_NOMEM) {
        loader->nomem = true;
    } else if (err != RATION_OK) {
        rn_faults_add(&loader->faults, rn_node_at(loader->root, fault.path)->at, fault.path,
                      fault.text[0] != '\0' ? fault.text : ration_err_text(err), NULL);
    }
}

static void instance_default(rn_loader *loader)
{
    rn_config_model *model = loader->model;
    char host[HOST_NAME_MAX_BYTES] = "";
    const char *name = loader->options->instance;

    if (model->rules.instance == NULL) {
        if (name == NULL && !loader->options->recording && gethostname(host, sizeof host - 1) == 0 && host[0] != '\0')
            name = host;
        if (name == NULL || !rn_text_is_utf8(ration_text_of(name)))
            name = "local";
        model->rules.instance = rn_loader_keep(loader, ration_text_of(name));
    }
    model->settings.instance = model->rules.instance;
}

static int root_read(rn_loader *loader, ration_config *config, const char *path)
{
    int err = rn_include(loader, path, &loader->root);

    if (err == RATION_OK)
        err = rn_presets(loader, path != NULL, &loader->root);
    if (err != RATION_OK)
        return err == RATION_ERR_CONFIG ? RATION_OK : err;
    rn_read_object(loader, &rn_schema_root, loader->root, loader->model);
    if (rn_node_get(loader->root, "providers") == NULL && !loader->options->recording)
        rn_loader_fault(loader, loader->root, NULL, NULL, "the key 'providers' is missing");
    instance_default(loader);
    if (loader->faults.count == 0 && !loader->nomem)
        rules_collect(loader, config);
    if (loader->faults.count == 0 && !loader->nomem)
        engine_try(loader);
    if (loader->running != NULL && loader->faults.count == 0 && !loader->nomem)
        rn_check_running(loader);
    return loader->nomem ? RATION_ERR_NOMEM : RATION_OK;
}

/* Hand the faults over, with the arena that holds them. */
static int faults_give(rn_loader *loader, ration_config_faults *out)
{
    faults_owner *owner = rn_mem_zalloc(loader->mem, 1, sizeof *owner);
    ration_config_faults faults = {NULL, 0, NULL};
    const int err = owner != NULL ? rn_faults_finish(&loader->faults, &faults) : RATION_ERR_NOMEM;

    if (err != RATION_OK) {
        rn_mem_free(loader->mem, owner);
        return err;
    }
    owner->mem = loader->mem;
    owner->arena = loader->work;
    rn_arena_init(&loader->work, loader->mem);
    faults.owner = owner;
    *out = faults;
    return RATION_ERR_CONFIG;
}

static ration_config *config_new(const ration_allocator *mem)
{
    ration_config *config = rn_mem_zalloc(mem, 1, sizeof *config);

    if (config == NULL)
        return NULL;
    config->mem = mem;
    rn_arena_init(&config->arena, mem);
    rn_map_init(&config->accounts, mem);
    return config;
}

typedef struct load_input {
    const char *name;
    const char *path; /* NULL: a text */
    ration_text text;
} load_input;

/* The text of the input; a file that cannot be read is a fault. */
static int input_read(rn_loader *loader, load_input *input)
{
    const char *why = NULL;

    if (input->path == NULL)
        return RATION_OK;

    const int err = rn_file_read(&loader->work, input->path, RN_SOURCE_MAX, &input->text, &why);

    if (err != RATION_ERR_IO)
        return err;

    rn_source *source = rn_loader_alloc(loader, &loader->work, 1, sizeof *source);
    const char *name = rn_arena_strdup(&loader->work, input->name);

    if (source == NULL || name == NULL)
        return RATION_ERR_NOMEM;
    source->name = name;
    rn_faults_add(&loader->faults, (rn_mark){source, 0, 0}, "", "the file cannot be read", why);
    return err;
}

static int load(rn_loader *loader, load_input *input, ration_config **out, ration_config_faults *faults)
{
    ration_config *config = config_new(loader->mem);

    if (config == NULL)
        return RATION_ERR_NOMEM;
    loader->arena = &config->arena;
    loader->model = &config->model;
    rn_faults_init(&loader->warnings, &config->arena);
    loader->warnings.warning = true;

    const int read = input_read(loader, input);
    int err = read;

    if (err == RATION_OK)
        err = rn_loader_source(loader, input->name, input->text, loader->options->first_line, &loader->root);
    if (err == RATION_OK && loader->root != NULL)
        err = root_read(loader, config, input->path);
    if (err != RATION_ERR_NOMEM && loader->faults.count > 0) {
        err = faults_give(loader, faults);
        err = err == RATION_ERR_CONFIG && read == RATION_ERR_IO ? RATION_ERR_IO : err;
    }
    if (err == RATION_OK)
        err = rn_faults_finish(&loader->warnings, &config->warnings);
    if (err != RATION_OK) {
        ration_config_free(config);
        return err;
    }
    *out = config;
    return RATION_OK;
}

static int load_with(load_input *input, const ration_config_options *given, const ration_config *running,
                     ration_config **out, ration_config_faults *faults)
{
    static const ration_config_options defaults;
    ration_config_options options = given != NULL ? *given : defaults;
    unsigned char salt[SALT_BYTES];
    rn_loader loader = {.options = &options, .running = running};

    if (options.salt == NULL) {
        if (RAND_bytes(salt, sizeof salt) != 1)
            return RATION_ERR_NOMEM;
        options.salt = salt;
        options.salt_size = sizeof salt;
    }
    loader.mem = options.allocator != NULL ? options.allocator : rn_mem_default();
    rn_arena_init(&loader.work, loader.mem);
    rn_faults_init(&loader.faults, &loader.work);

    const int err = load(&loader, input, out, faults);

    rn_arena_fini(&loader.work);
    return err;
}

int ration_config_load(const char *path, const ration_config_options *options, ration_config **out,
                       ration_config_faults *faults)
{
    if (path == NULL || out == NULL || faults == NULL)
        return RATION_ERR_INVALID;

    load_input input = {.name = path, .path = path};

    return load_with(&input, options, NULL, out, faults);
}

int rn_config_load_beside(const ration_config *running, const char *path, const ration_config_options *options,
                          ration_config **out, ration_config_faults *faults)
{
    ration_config_options with = *options;
    load_input input = {.name = path, .path = path};

    with.instance = running->model.settings.instance;
    return load_with(&input, &with, running, out, faults);
}

int ration_config_parse(ration_text text, const char *name, const ration_config_options *options, ration_config **out,
                        ration_config_faults *faults)
{
    if (name == NULL || out == NULL || faults == NULL || (text.data == NULL && text.size > 0))
        return RATION_ERR_INVALID;

    load_input input = {.name = name, .text = text.data != NULL ? text : ration_text_of("")};

    return load_with(&input, options, NULL, out, faults);
}
