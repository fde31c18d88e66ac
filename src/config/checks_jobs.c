/* SPDX-License-Identifier: MIT */
/*
 * What no single key of a job can know: its account, the values of its path's variables, the endpoint that its path is
 * of.
 *
 * Accounts and endpoints are looked up once the whole file has been read, by a map and by templates that are compiled
 * once a provider: a file may have a hundred thousand jobs. A path that is no template's is allowed, as it is in a
 * call, but limits that need its variables cannot count it; where the provider has templates, that is a warning.
 */
#include <string.h>

#include "config/loader.h"
#include "core/template.h"

/* one job */

static const rn_var_model *var_find(const rn_job_model *job, ration_text name)
{
    for (size_t i = 0; i < job->var_count; i++) {
        if (job->vars[i].name != NULL && rn_text_is(name, job->vars[i].name))
            return &job->vars[i];
    }
    return NULL;
}

/* The variables of a path, for guesses. */
typedef struct variable_names {
    const char *items[RN_SEGMENTS_MAX];
} variable_names;

static const char *variable_at(const void *names, size_t index)
{
    return ((const variable_names *)names)->items[index];
}

static void check_vars(rn_loader *loader, const rn_node *given, const rn_job_model *job, const rn_template *path)
{
    const rn_node *vars = rn_node_get(given, "vars");
    variable_names names = {{NULL}};
    const size_t at = rn_path_push(loader, ration_text_of("vars"));

    for (size_t i = 0; i < path->count; i++) {
        const ration_text text = path->segments[i].text;

        if (path->segments[i].kind == RN_SEGMENT_VAR)
            names.items[i] = rn_loader_format(loader, "%.*s", (int)text.size, text.data);
    }
    for (size_t i = 0; i < job->var_count; i++) {
        const char *name = job->vars[i].name;
        size_t k = 0;

        while (name != NULL && k < path->count && (names.items[k] == NULL || strcmp(names.items[k], name) != 0))
            k++;
        if (name == NULL || k < path->count)
            continue;

        const char *nearest = rn_nearest(ration_text_of(name), &names, path->count, variable_at);

        rn_fault_below(loader, vars, name,
                       nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest) : NULL,
                       "the path has no such variable");
    }
    rn_path_pop(loader, at);
}

/* The path with the values of `vars` in place of their names. */
static const char *path_fill(rn_loader *loader, const rn_job_model *job, const rn_template *path)
{
    size_t size = path->text.size + 2;
    rn_builder b;

    for (size_t i = 0; i < job->var_count; i++)
        size += ration_text_of(job->vars[i].value).size;

    char *text = rn_loader_alloc(loader, loader->arena, size, 1);

    if (text == NULL)
        return NULL;
    rn_builder_init(&b, text, size);
    for (size_t i = 0; i < path->count; i++) {
        const rn_segment *segment = &path->segments[i];
        const bool named = segment->kind == RN_SEGMENT_VAR;
        const rn_var_model *var = named ? var_find(job, segment->text) : NULL;

        rn_builder_char(&b, '/');
        rn_builder_str(&b, named && var == NULL ? "{" : "");
        rn_builder_text(&b, var != NULL ? ration_text_of(var->value) : segment->text);
        rn_builder_str(&b, named && var == NULL ? "}" : "");
    }
    if (path->count == 0)
        rn_builder_char(&b, '/');
    return text;
}

void rn_check_job(rn_loader *loader, const rn_node *given, void *self)
{
    rn_job_model *model = self;
    rn_job *job = &model->job;
    const char *blank = model->call != NULL ? strchr(model->call, ' ') : NULL;
    rn_template path;

    if (blank == NULL || rn_template_init(&path, &loader->work, ration_text_of(blank + 1)) != RATION_OK)
        return;

    const size_t method = (size_t)(blank - model->call);
    ration_var *vars = rn_loader_alloc(loader, loader->arena, model->var_count, sizeof *vars);

    check_vars(loader, given, model, &path);
    job->method = rn_loader_keep(loader, (ration_text){model->call, method});
    job->path = path_fill(loader, model, &path);
    for (size_t i = 0; vars != NULL && i < model->var_count; i++)
        vars[i] = (ration_var){ration_text_of(model->vars[i].name), ration_text_of(model->vars[i].value)};
    job->vars = vars;
    job->var_count = model->var_count;
}

/* all jobs of a file */

/* A provider's templates, compiled when the first job asks. */
typedef struct endpoints {
    rn_template *templates;
    bool made;
} endpoints;

typedef struct account_entry {
    rn_map_node node;
    size_t index;
} account_entry;

typedef struct job_check {
    rn_loader *loader;
    rn_map accounts;
    endpoints *endpoints; /* by provider */
} job_check;

static const char *account_at(const void *names, size_t index)
{
    const rn_account_model *accounts = names;

    return accounts[index].rule.name;
}

static const char *template_at(const void *names, size_t index)
{
    const rn_endpoint_model *list = names;

    return list[index].rule.path;
}

static const rn_template *templates_of(const job_check *check, size_t index)
{
    const rn_provider_model *provider = &check->loader->model->providers[index];
    endpoints *made = &check->endpoints[index];
    const size_t count = provider->rule.endpoint_count;

    if (made->made)
        return made->templates;
    made->made = true;
    made->templates = rn_loader_alloc(check->loader, &check->loader->work, count, sizeof *made->templates);
    for (size_t i = 0; made->templates != NULL && i < count; i++) {
        const char *path = provider->endpoints[i].rule.path;
        rn_template template;

        if (path != NULL && rn_template_init(&template, &check->loader->work, ration_text_of(path)) == RATION_OK)
            made->templates[i] = template;
    }
    return made->templates;
}

/* The most specific endpoint of the provider that a path is of, as calls find it; SIZE_MAX: none. */
static size_t endpoint_of(const job_check *check, size_t provider, const char *path)
{
    const rn_template *templates = templates_of(check, provider);
    const size_t count = check->loader->model->providers[provider].rule.endpoint_count;
    size_t best = SIZE_MAX;
    rn_path split;

    if (templates == NULL || !rn_path_split(ration_text_of(path), &split))
        return SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        if (templates[i].text.data != NULL && rn_template_match(&templates[i], &split, NULL) &&
            (best == SIZE_MAX || rn_template_beats(&templates[i], &templates[best])))
            best = i;
    }
    return best;
}

static void check_endpoint(const job_check *check, const rn_node *given, rn_job *job, size_t index)
{
    rn_loader *loader = check->loader;
    const rn_provider_model *provider = &loader->model->providers[index];
    const size_t count = provider->rule.endpoint_count;
    const size_t found = endpoint_of(check, index, job->path);

    if (job->priority == RATION_PRIORITY_UNSET && found != SIZE_MAX)
        job->priority = provider->endpoints[found].rule.defaults.priority;
    if (job->priority == RATION_PRIORITY_UNSET)
        job->priority = provider->rule.defaults.priority;
    if (job->priority == RATION_PRIORITY_UNSET)
        job->priority = RATION_PRIORITY_NORMAL;
    if (found != SIZE_MAX || count == 0)
        return;

    const rn_node *at = rn_node_get(given, "endpoint");
    const char *nearest = rn_nearest(ration_text_of(job->path), provider->endpoints, count, template_at);

    rn_loader_warn(loader, at != NULL ? at : given, "endpoint",
                   nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest) : NULL,
                   "none of the provider's endpoints matches this path: limits with a variable in their scope do not "
                   "count it");
}

static void check_account(const job_check *check, const rn_node *given, rn_job_model *model)
{
    rn_loader *loader = check->loader;
    const char *name = model->account;
    const rn_map_node *node = name != NULL ? rn_map_find(&check->accounts, name, strlen(name)) : NULL;

    if (name == NULL)
        return;
    if (node == NULL) {
        const char *nearest =
            rn_nearest(ration_text_of(name), loader->model->accounts, loader->model->rules.account_count, account_at);

        rn_fault_below(loader, given, "account",
                       nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest) : NULL,
                       "there is no account of this name");
        return;
    }

    const size_t index = ((const account_entry *)(const void *)node)->index;
    const rn_account_model *account = &loader->model->accounts[index];

    model->job.account = (uint32_t)index;
    if (model->job.path != NULL && account->net.provider < loader->model->rules.provider_count)
        check_endpoint(check, given, &model->job, account->net.provider);
}

static void accounts_gather(job_check *check)
{
    rn_loader *loader = check->loader;
    const rn_config_model *model = loader->model;
    account_entry *entries = rn_loader_alloc(loader, &loader->work, model->rules.account_count, sizeof *entries);

    for (size_t i = 0; entries != NULL && i < model->rules.account_count; i++) {
        const char *name = model->accounts[i].rule.name;

        entries[i].index = i;
        if (name != NULL && rn_map_find(&check->accounts, name, strlen(name)) == NULL &&
            rn_map_add(&check->accounts, &entries[i].node, name, strlen(name)) != RATION_OK)
            loader->nomem = true;
    }
}

/* Jobs of one file stand together: its name is kept once for each time that it changes. */
static void place_set(rn_loader *loader, const rn_node *given, rn_job *job, const rn_job *before)
{
    const rn_mark *at = &given->at;
    const bool same = before != NULL && before->place.file != NULL && strcmp(before->place.file, at->source->name) == 0;

    job->place =
        (rn_place){.file = same ? before->place.file : rn_loader_keep(loader, ration_text_of(at->source->name)),
                   .line = at->line,
                   .column = at->column};
}

void rn_check_jobs(rn_loader *loader, const rn_node *given, rn_config_model *model)
{
    const rn_node *list = rn_node_get(given, "jobs");
    const rn_entry *entry = list != NULL && list->kind == RN_NODE_LIST ? list->first : NULL;
    job_check check = {.loader = loader};

    if (entry == NULL)
        return;
    rn_map_init(&check.accounts, loader->mem);
    check.endpoints = rn_loader_alloc(loader, &loader->work, model->rules.provider_count, sizeof *check.endpoints);
    accounts_gather(&check);

    const size_t path = rn_path_push(loader, ration_text_of("jobs"));

    for (size_t i = 0; check.endpoints != NULL && i < model->job_count && entry != NULL; i++, entry = entry->next) {
        const size_t item = rn_path_index(loader, i);

        place_set(loader, entry->value, &model->jobs[i].job, i > 0 ? &model->jobs[i - 1].job : NULL);
        check_account(&check, entry->value, &model->jobs[i]);
        rn_path_pop(loader, item);
    }
    rn_path_pop(loader, path);
    rn_map_fini(&check.accounts);
}
