/* SPDX-License-Identifier: MIT */
/*
 * Provider files: what `use:` names is laid below the provider that says so, before anything is read.
 *
 * A provider file is one item of `providers`. It is joined as nodes, so what it says is read and checked like all else
 * and every fault knows the file in which its key stands. What the user writes beside `use` counts:
 *
 *     limits, endpoints             items of the same name (path) key by key, new ones behind the file's
 *     errors, outcome, timeouts,    key by key at every depth
 *     tls, targets, estimate
 *     any other key                 the user's in place of the file's
 *
 * A file that cannot be used ends the load with the faults so far, as a text that breaks off does: what is missing
 * without it would be only noise. Provider files use no others, so there is no circle.
 *
 * Invariant: nodes of a file are never changed, for several providers may use it.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "config/loader.h"

#define USES_MAX 1000  /* providers with `use` */
#define ITEMS_MAX 1000 /* of a list that is joined item by item */
#define SUFFIX ".yaml"

/* A provider file that has been read. */
typedef struct preset {
    struct preset *next;
    const char *path;
    const rn_node *root;
} preset;

typedef struct presets {
    preset *first;
    size_t uses;
    bool from_file; /* paths beside the file that names them have a meaning */
} presets;

/* What of the user's joins the file's instead of taking its place. */
static const struct {
    const char *key;
    const char *id; /* of the items of a list; NULL: a map */
} joined[] = {
    {"limits", "name"}, {"endpoints", "path"}, {"errors", NULL},  {"outcome", NULL},
    {"timeouts", NULL}, {"tls", NULL},         {"targets", NULL}, {"estimate", NULL},
};

static rn_node *node_new(rn_loader *loader, rn_node_kind kind, rn_mark at)
{
    rn_node *node = rn_loader_alloc(loader, &loader->work, 1, sizeof *node);

    if (node != NULL)
        *node = (rn_node){.kind = kind, .at = at};
    return node;
}

static void append(rn_loader *loader, rn_node *node, const rn_node *key, const rn_node *value)
{
    if (node != NULL && rn_node_append(&loader->work, node, key, value) != RATION_OK)
        loader->nomem = true;
}

/* Keys of `mine` with those of `base` that it does not have. `deep`: maps of both are joined in the same way. */
/* NOLINTNEXTLINE(misc-no-recursion): no deeper than RN_DEPTH_MAX */
static rn_node *map_join(rn_loader *loader, const rn_node *mine, const rn_node *base, bool deep)
{
    rn_node *map = node_new(loader, RN_NODE_MAP, mine->at);

    for (const rn_entry *e = mine->first; e != NULL; e = e->next) {
        const rn_entry *below = rn_node_find(base, e->key->text);
        const bool both = deep && below != NULL && below->value->kind == RN_NODE_MAP && e->value->kind == RN_NODE_MAP;

        append(loader, map, e->key, both ? map_join(loader, e->value, below->value, true) : e->value);
    }
    for (const rn_entry *e = base->first; e != NULL; e = e->next) {
        if (rn_node_find(mine, e->key->text) == NULL)
            append(loader, map, e->key, e->value);
    }
    return map;
}

/* What an item of a list is called: the value of `id`, or the bare text that stands for it. */
static ration_text item_id(const rn_node *item, const char *id)
{
    const rn_node *at = item->kind == RN_NODE_SCALAR ? item : rn_node_get(item, id);

    return at != NULL && at->kind == RN_NODE_SCALAR ? at->text : (ration_text){NULL, 0};
}

static const rn_entry *item_find(const rn_node *list, ration_text name, const char *id)
{
    for (const rn_entry *e = list->first; e != NULL && name.data != NULL; e = e->next) {
        if (rn_text_eq(item_id(e->value, id), name))
            return e;
    }
    return NULL;
}

/* An item of the file as the user has it, who may have written more about it at `mine` (NULL: nothing). */
static const rn_node *item_join(rn_loader *loader, const rn_node *mine, const rn_node *base, const rn_node *use)
{
    rn_node *item = NULL;

    if (base->kind != RN_NODE_MAP)
        return mine != NULL && mine->kind == RN_NODE_MAP ? mine : base;
    if (mine != NULL && mine->kind == RN_NODE_MAP) {
        item = map_join(loader, mine, base, false);
    } else {
        item = node_new(loader, RN_NODE_MAP, base->at);
        for (const rn_entry *e = base->first; e != NULL; e = e->next)
            append(loader, item, e->key, e->value);
    }
    if (item != NULL)
        item->used_by = mine != NULL ? mine : use;
    return item;
}

/* Items of the file in their order, each with what the user says of it, then the user's other items. */
static const rn_node *list_join(rn_loader *loader, const rn_node *mine, const rn_node *base, const char *id,
                                const rn_node *use)
{
    static const rn_node none = {.kind = RN_NODE_LIST};
    const rn_node *own = mine != NULL ? mine : &none;
    rn_node *list = node_new(loader, RN_NODE_LIST, mine != NULL ? mine->at : base->at);

    if (own->count > ITEMS_MAX || base->count > ITEMS_MAX) {
        rn_loader_fault(loader, own->count > ITEMS_MAX ? own : base, NULL, NULL, "more than %d items beside 'use'",
                        ITEMS_MAX);
        return base;
    }
    for (const rn_entry *e = base->first; e != NULL && !loader->nomem; e = e->next) {
        const rn_entry *over = item_find(own, item_id(e->value, id), id);

        append(loader, list, NULL, item_join(loader, over != NULL ? over->value : NULL, e->value, use));
    }
    for (const rn_entry *e = own->first; e != NULL && !loader->nomem; e = e->next) {
        const ration_text name = item_id(e->value, id);

        /* One that stands twice stays, for its fault. */
        if (item_find(base, name, id) == NULL || item_find(own, name, id) != e)
            append(loader, list, NULL, e->value);
    }
    return list;
}

/* The value of a key that either has. `mine` or `base` may be NULL. */
static const rn_node *value_join(rn_loader *loader, const rn_node *key, const rn_node *mine, const rn_node *base,
                                 const rn_node *use)
{
    for (size_t i = 0; i < sizeof joined / sizeof joined[0]; i++) {
        const rn_node_kind kind = joined[i].id != NULL ? RN_NODE_LIST : RN_NODE_MAP;

        if (!rn_text_is(key->text, joined[i].key) || base == NULL || base->kind != kind ||
            (mine != NULL && mine->kind != kind))
            continue;
        if (kind == RN_NODE_LIST)
            return list_join(loader, mine, base, joined[i].id, use);
        return mine != NULL ? map_join(loader, mine, base, true) : base;
    }
    return mine != NULL ? mine : base;
}

static const rn_node *provider_join(rn_loader *loader, const rn_node *mine, const rn_node *base, const rn_node *use)
{
    rn_node *provider = node_new(loader, RN_NODE_MAP, mine->at);

    for (const rn_entry *e = mine->first; e != NULL; e = e->next) {
        const rn_entry *below = rn_node_find(base, e->key->text);

        append(loader, provider, e->key,
               value_join(loader, e->key, e->value, below != NULL ? below->value : NULL, use));
    }
    for (const rn_entry *e = base->first; e != NULL; e = e->next) {
        if (rn_node_find(mine, e->key->text) == NULL)
            append(loader, provider, e->key, value_join(loader, e->key, NULL, e->value, use));
    }
    return provider;
}

static bool is_name(ration_text text)
{
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && i > 0)))
            return false;
    }
    return text.size > 0 && text.size < 64;
}

static const char *folder_of(const rn_loader *loader)
{
    const char *folder = loader->options->provider_dir;

    if (folder == NULL)
        folder = getenv("RATION_PROVIDERS");
    return folder != NULL && folder[0] != '\0' ? folder : RN_PROVIDER_DIR;
}

static const char *name_at(const void *names, size_t index)
{
    return ((const char *const *)names)[index];
}

/* What may have been meant by a name that is no file of the folder. */
static const char *name_hint(rn_loader *loader, ration_text name, const char *folder)
{
    const char **names = rn_loader_alloc(loader, &loader->work, ITEMS_MAX, sizeof *names);
    DIR *dir = names != NULL ? opendir(folder) : NULL;
    const struct dirent *entry = NULL;
    size_t count = 0;

    if (dir == NULL)
        return rn_loader_format(loader, "the folder %s cannot be read; RATION_PROVIDERS names another", folder);
    while (count < ITEMS_MAX && (entry = readdir(dir)) != NULL) {
        const size_t size = strlen(entry->d_name);

        if (size <= strlen(SUFFIX) || strcmp(entry->d_name + size - strlen(SUFFIX), SUFFIX) != 0)
            continue;
        names[count] = rn_arena_textdup(&loader->work, (ration_text){entry->d_name, size - strlen(SUFFIX)});
        count += names[count] != NULL;
    }
    (void)closedir(dir);

    const char *nearest = rn_nearest(name, names, count, name_at);

    return nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest)
                           : rn_loader_format(loader, "provider files are in %s", folder);
}

/* The path of what `use` names; NULL: it has a fault. `*named`: by a name alone. */
static const char *path_of(rn_loader *loader, const presets *all, const rn_node *use, bool *named)
{
    const ration_text text = use->text;
    const char *here = use->at.source->name;
    const char *slash = strrchr(here, '/');

    *named = is_name(text);
    if (*named)
        return rn_loader_format(loader, "%s/%s" SUFFIX, folder_of(loader), text.data);
    if (memchr(text.data, '/', text.size) == NULL || memchr(text.data, '\0', text.size) != NULL) {
        rn_loader_fault(loader, use, NULL, "such as github, or ./my.yaml for a file beside this one",
                        "%s is neither the name of a provider file nor a path", rn_loader_quote(loader, text));
        return NULL;
    }
    if (text.data[0] == '/')
        return text.data;
    if (!all->from_file) {
        rn_loader_fault(loader, use, NULL, NULL, "only a file can name another beside it");
        return NULL;
    }
    return slash != NULL ? rn_loader_format(loader, "%.*s/%s", (int)(slash - here), here, text.data) : text.data;
}

/* The file as a map; NULL: it has faults. */
static const rn_node *file_load(rn_loader *loader, const rn_node *use, const char *path, bool named)
{
    ration_text content = {NULL, 0};
    const char *why = NULL;
    const rn_node *root = NULL;
    int err = rn_file_read(&loader->work, path, RN_SOURCE_MAX, &content, &why);

    if (err == RATION_ERR_IO && named) {
        rn_loader_fault(loader, use, NULL, name_hint(loader, use->text, folder_of(loader)),
                        "there is no provider file %s", rn_loader_quote(loader, use->text));
    } else if (err == RATION_ERR_IO) {
        rn_loader_fault(loader, use, NULL, why, "the file %s cannot be read",
                        rn_loader_quote(loader, ration_text_of(path)));
    } else if (err == RATION_OK) {
        err = rn_loader_source(loader, path, content, 1, &root);
    }
    loader->nomem = loader->nomem || err == RATION_ERR_NOMEM;

    const rn_entry *nested = rn_node_find(root, ration_text_of("use"));

    if (nested == NULL)
        return root;
    rn_loader_fault(loader, nested->key, NULL, "name it in the config", "a provider file cannot use another");
    return NULL;
}

static const rn_node *preset_get(rn_loader *loader, presets *all, const rn_node *use)
{
    bool named = false;
    size_t at = 0;

    if (use->kind != RN_NODE_SCALAR || rn_node_is_null(use)) {
        rn_loader_fault(loader, use, NULL, "such as github", "must be the name of a provider file");
        return NULL;
    }

    /* A name from outside could be shown by no message, and every fault of the file would have to. */
    if (rn_text_find(use->text, ration_text_of("${"), &at)) {
        rn_loader_fault(loader, use, NULL, NULL, "the name of a provider file must be written out, without '${...}'");
        return NULL;
    }

    const char *path = path_of(loader, all, use, &named);

    for (preset *known = all->first; path != NULL && known != NULL; known = known->next) {
        if (strcmp(known->path, path) == 0)
            return known->root;
    }

    preset *fresh = path != NULL ? rn_loader_alloc(loader, &loader->work, 1, sizeof *fresh) : NULL;

    if (fresh == NULL)
        return NULL;
    *fresh = (preset){all->first, path, file_load(loader, use, path, named)};
    all->first = fresh;
    return fresh->root;
}

/* The provider with its file below it; itself where it uses none. */
static const rn_node *provider_expand(rn_loader *loader, presets *all, const rn_node *item)
{
    const rn_node *use = rn_node_get(item, "use");
    const rn_node *base = NULL;

    if (use == NULL)
        return item;

    const size_t path = rn_path_push(loader, ration_text_of("use"));

    if (loader->options->recording) {
        rn_loader_fault(loader, use, NULL, NULL, "a recording holds all of a provider and uses no file");
    } else if (++all->uses > USES_MAX) {
        rn_loader_fault(loader, use, NULL, NULL, "more than %d providers use a file", USES_MAX);
    } else {
        base = preset_get(loader, all, use);
    }
    rn_path_pop(loader, path);
    return base != NULL ? provider_join(loader, item, base, use) : item;
}

int rn_presets(rn_loader *loader, bool from_file, const rn_node **root)
{
    const rn_node *list = rn_node_get(*root, "providers");
    const size_t faults = loader->faults.count;
    presets all = {NULL, 0, from_file};
    size_t index = 0;

    if (list == NULL || list->kind != RN_NODE_LIST)
        return RATION_OK;

    rn_node *expanded = node_new(loader, RN_NODE_LIST, list->at);
    rn_node *copy = node_new(loader, RN_NODE_MAP, (*root)->at);
    const size_t outer = rn_path_push(loader, ration_text_of("providers"));

    for (const rn_entry *e = list->first; e != NULL && all.uses <= USES_MAX && !loader->nomem; e = e->next) {
        const size_t path = rn_path_index(loader, index++);

        append(loader, expanded, NULL, provider_expand(loader, &all, e->value));
        rn_path_pop(loader, path);
    }
    rn_path_pop(loader, outer);
    for (const rn_entry *e = (*root)->first; e != NULL; e = e->next)
        append(loader, copy, e->key, e->value == list ? expanded : e->value);
    if (loader->nomem)
        return RATION_ERR_NOMEM;
    if (all.uses > 0)
        *root = copy;
    return loader->faults.count > faults ? RATION_ERR_CONFIG : RATION_OK;
}
