/* SPDX-License-Identifier: MIT */
/*
 * Nodes to values, led by the table of keys.
 *
 * An object is walked in the order of its table and not of the file, so a row can rely on those before it. Every key
 * gets its default first and its value after; whatever is wrong becomes a fault and the walk goes on, so that one run
 * finds all of them.
 *
 * Invariants: a key without a value holds its default, even after a fault, so later checks never meet a half-made
 * value; memory for a list is spent only for items that are there.
 */
#include <stdlib.h>
#include <string.h>

#include "config/loader.h"

/* A row's value in the struct, or the struct itself for an object. */
static void *field_at(void *self, size_t offset)
{
    return (char *)self + offset;
}

static const char *key_name_at(const void *names, size_t index)
{
    const rn_key *keys = names;

    return keys[index].name;
}

static size_t keys_count(const rn_key *keys)
{
    size_t count = 0;

    while (keys[count].name != NULL)
        count++;
    return count;
}

const rn_key *rn_object_key(const rn_object *object, ration_text name, unsigned kinds)
{
    const rn_key *found = NULL;

    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        if (!rn_text_is(name, key->name))
            continue;
        if (key->kinds == 0 || (key->kinds & kinds) != 0)
            return key;
        found = key;
    }
    return found;
}

const rn_key *rn_object_kind(const rn_object *object)
{
    return object->kind != NULL ? rn_object_key(object, ration_text_of(object->kind), ~0U) : NULL;
}

unsigned rn_object_kind_bit(const rn_object *object, const void *self)
{
    const rn_key *key = rn_object_kind(object);
    int kind = 0;

    if (key == NULL)
        return ~0U;
    memcpy(&kind, (const char *)self + key->offset, sizeof kind);
    return kind != 0 ? RN_KIND_BIT((unsigned)kind) : 0;
}

bool rn_object_key_varies(const rn_object *object, const rn_key *key)
{
    for (const rn_key *other = object->keys; other->name != NULL; other++) {
        if (other != key && strcmp(other->name, key->name) == 0)
            return true;
    }
    return false;
}

static void out_of_range(rn_loader *loader, const rn_key *key, ration_text text)
{
    const char *value = loader->quiet_value ? "the value" : rn_loader_quote(loader, text);
    char *bounds = NULL;
    size_t size = 0;
    rn_out out;

    if (key->type->show == NULL || (key->min == 0 && key->max == 0)) {
        rn_loader_fault(loader, loader->at, NULL, rn_loader_format(loader, "it must be %s", key->type->what),
                        "%s is out of range", value);
        return;
    }
    rn_out_init(&out, loader->mem);
    rn_out_str(&out, "at least ");
    key->type->show(&out, key->min);
    rn_out_str(&out, " and at most ");
    key->type->show(&out, key->max);
    if (rn_out_take(&out, &bounds, &size) != RATION_OK) {
        loader->nomem = true;
        return;
    }
    rn_loader_fault(loader, loader->at, NULL, bounds, "%s is out of range", value);
    loader->mem->release(loader->mem->ctx, bounds);
}

/* A guess at what was meant by a value of the wrong form; NULL: none. */
static const char *form_hint(rn_loader *loader, const rn_key *key, const rn_node *node)
{
    if (loader->quiet_value)
        return NULL;
    if (key->type == &rn_type_duration && rn_node_is_number(node))
        return rn_loader_format(loader, "write %ss for seconds", node->text.data);
    if (key->type == &rn_type_rate && rn_node_is_number(node))
        return rn_loader_format(loader, "write %s/s for so many a second", node->text.data);
    if (key->type->form == RN_FORM_TEXT && (rn_node_is_number(node) || rn_node_is_bool(node)))
        return "put it in quotes to make it a text";
    if (key->type->form == RN_FORM_NUMBER && node->quoted)
        return "write it without quotes";
    return NULL;
}

static bool form_fits(const rn_key *key, const rn_node *node)
{
    switch (key->type->form) {
    case RN_FORM_TEXT:
        return node->quoted || (!rn_node_is_number(node) && !rn_node_is_bool(node));
    case RN_FORM_NUMBER:
        return !node->quoted;
    case RN_FORM_BOOL:
        return rn_node_is_bool(node);
    case RN_FORM_ANY:
        return true;
    }
    return true;
}

static void not_what(rn_loader *loader, const rn_key *key, const rn_node *node)
{
    const char *hint = form_hint(loader, key, node);

    if (node->kind != RN_NODE_SCALAR) {
        rn_loader_fault(loader, node, NULL, NULL, "a %s stands here; it must be %s",
                        node->kind == RN_NODE_LIST ? "list" : "map", key->type->what);
    } else if (loader->quiet_value) {
        rn_loader_fault(loader, node, NULL, NULL, "the value does not fit: it must be %s", key->type->what);
    } else {
        rn_loader_fault(loader, node, NULL, hint, "%s is not %s", rn_loader_quote(loader, node->text), key->type->what);
    }
}

/* One scalar into `out`. */
static void scalar_read(rn_loader *loader, const rn_key *key, const rn_node *node, void *out)
{
    ration_text text = {NULL, 0};
    bool expanded = false;

    loader->at = node;
    loader->quiet_value = (key->flags & RN_KEY_SECRET) != 0;
    if (node->kind != RN_NODE_SCALAR) {
        not_what(loader, key, node);
        return;
    }
    if (rn_node_is_null(node)) {
        rn_loader_fault(loader, node, NULL, "give it one, or leave the key out", "there is no value");
        return;
    }

    int err = rn_expand(loader, node, &text, &expanded);

    loader->quiet_value = loader->quiet_value || expanded;
    if (err == RATION_OK && !expanded && !form_fits(key, node))
        err = RATION_ERR_SYNTAX;
    if (err == RATION_OK)
        err = key->type->read(loader, key, text, out);
    if (err == RATION_ERR_SYNTAX) {
        not_what(loader, key, node);
    } else if (err == RATION_ERR_RANGE) {
        out_of_range(loader, key, text);
    } else if (err == RATION_ERR_NOMEM) {
        loader->nomem = true;
    }
}

static void count_set(void *self, const rn_key *key, void *items, size_t count)
{
    memcpy(field_at(self, key->offset), &items, sizeof items);
    memcpy(field_at(self, key->count), &count, sizeof count);
}

/* The name that an item of a list of objects begins with. */
static const char *item_name(const void *items, size_t size, size_t index)
{
    const char *name = NULL;

    memcpy(&name, (const char *)items + index * size, sizeof name);
    return name;
}

static void list_unique(rn_loader *loader, const rn_object *object, const rn_node *node, const void *items)
{
    rn_named *named = rn_loader_alloc(loader, &loader->work, node->count, sizeof *named);
    size_t count = 0;
    size_t index = 0;

    if (named == NULL)
        return;
    for (const rn_entry *entry = node->first; entry != NULL; entry = entry->next, index++) {
        const char *name = item_name(items, object->size, index);
        const rn_node *at = rn_node_get(entry->value, object->keys[0].name);

        if (name != NULL)
            named[count++] = (rn_named){ration_text_of(name), at != NULL ? at : entry->value, index};
    }
    rn_loader_unique(loader, named, count, object->keys[0].name);
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void list_read(rn_loader *loader, const rn_key *key, const rn_node *node, void *self)
{
    const size_t size = key->object != NULL ? key->object->size : key->type->size;
    char *items = NULL;
    size_t index = 0;

    if (node->kind != RN_NODE_LIST) {
        rn_loader_fault(loader, node, NULL, node->kind == RN_NODE_SCALAR ? "put it in [ ]" : NULL, "must be a list");
        return;
    }
    /* To the engine an empty list is one that was not given: its default would hold, against what is written. */
    if (node->count == 0 && (key->flags & RN_KEY_FILLED) != 0) {
        rn_loader_fault(loader, node, NULL, NULL, "the list is empty");
        return;
    }
    items = rn_loader_alloc(loader, loader->arena, node->count, size);
    if (items == NULL)
        return;
    count_set(self, key, items, node->count);
    for (const rn_entry *entry = node->first; entry != NULL; entry = entry->next, index++) {
        const size_t path = rn_path_index(loader, index);
        /* NULL: it has a fault already. */
        const rn_node *item = key->overlay != NULL ? key->overlay(loader, entry->value, self) : entry->value;

        if (item != NULL && key->object != NULL) {
            rn_read_object(loader, key->object, item, items + index * size);
        } else if (item != NULL) {
            scalar_read(loader, key, item, items + index * size);
        }
        rn_path_pop(loader, path);
    }
    if (key->object != NULL)
        list_unique(loader, key->object, node, items);
}

/* A fault for each key that stands twice. */
static void keys_unique(rn_loader *loader, const rn_node *node)
{
    rn_named *named = rn_loader_alloc(loader, &loader->work, node->count, sizeof *named);
    size_t count = 0;

    if (named == NULL)
        return;
    for (const rn_entry *entry = node->first; entry != NULL; entry = entry->next, count++)
        named[count] = (rn_named){entry->key->text, entry->key, count};
    rn_loader_unique(loader, named, count, NULL);
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void table_read(rn_loader *loader, const rn_key *key, const rn_node *node, void *self)
{
    char *items = NULL;
    size_t index = 0;

    if (node->kind != RN_NODE_MAP) {
        rn_loader_fault(loader, node, NULL, NULL, "must be a map from names to values");
        return;
    }
    if (node->count == 0 && (key->flags & RN_KEY_FILLED) != 0) {
        rn_loader_fault(loader, node, NULL, NULL, "the map is empty");
        return;
    }
    keys_unique(loader, node);
    items = rn_loader_alloc(loader, loader->arena, node->count, key->item);
    if (items == NULL)
        return;
    count_set(self, key, items, node->count);
    for (const rn_entry *entry = node->first; entry != NULL; entry = entry->next, index++) {
        const rn_key name = {.name = "name", .type = &rn_type_name};
        const size_t path = rn_path_push(loader, entry->key->text);
        char *item = items + index * key->item;
        rn_node quoted = *entry->key;

        quoted.quoted = true; /* a name may look like a number */
        scalar_read(loader, &name, &quoted, item);
        if (key->object != NULL) {
            rn_read_object(loader, key->object, entry->value, item);
        } else {
            scalar_read(loader, key, entry->value, item + key->value);
        }
        rn_path_pop(loader, path);
    }
}

/* The default of a scalar or of a list of scalars. */
static void fallback_read(rn_loader *loader, const rn_key *key, void *self)
{
    const int64_t unset = RATION_UNSET;
    ration_text rest = ration_text_of(key->fallback);

    if ((key->flags & RN_KEY_UNSET) != 0)
        memcpy(field_at(self, key->offset), &unset, sizeof unset);
    if (key->fallback == NULL || key->type == NULL)
        return;
    if (key->shape == RN_SHAPE_ONE) {
        if (key->type->read(loader, key, rest, field_at(self, key->offset)) == RATION_ERR_NOMEM)
            loader->nomem = true;
        return;
    }

    char *items = rn_loader_alloc(loader, loader->arena, rest.size, key->type->size);
    size_t count = 0;

    while (items != NULL && rest.size > 0) {
        size_t end = rest.size;

        (void)rn_text_find(rest, ration_text_of(" "), &end);
        if (key->type->read(loader, key, rn_text_slice(rest, 0, end), items + count * key->type->size) != RATION_OK)
            loader->nomem = true;
        count++;
        rest = rn_text_slice(rest, end < rest.size ? end + 1 : end, rest.size);
    }
    count_set(self, key, items, count);
}

/* Defaults of all keys, also of those below objects that are not there. */
/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void defaults_read(rn_loader *loader, const rn_object *object, void *self)
{
    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        if ((key->flags & RN_KEY_LATER) != 0)
            continue;
        if (key->object != NULL && key->shape == RN_SHAPE_ONE) {
            defaults_read(loader, key->object, field_at(self, key->offset));
        } else {
            fallback_read(loader, key, self);
        }
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void value_read(rn_loader *loader, const rn_key *key, const rn_node *node, void *self)
{
    if ((key->object != NULL || key->shape != RN_SHAPE_ONE) && rn_node_is_null(node)) {
        rn_loader_fault(loader, node, NULL, "give it one, or leave the key out", "there is no value");
        return;
    }
    switch (key->shape) {
    case RN_SHAPE_ONE:
        if (key->object != NULL) {
            rn_read_object(loader, key->object, node, field_at(self, key->offset));
        } else {
            scalar_read(loader, key, node, field_at(self, key->offset));
        }
        return;
    case RN_SHAPE_LIST:
        list_read(loader, key, node, self);
        return;
    case RN_SHAPE_TABLE:
        table_read(loader, key, node, self);
        return;
    }
}

static void unknown_key(rn_loader *loader, const rn_object *object, const rn_node *at)
{
    const char *nearest = rn_nearest(at->text, object->keys, keys_count(object->keys), key_name_at);

    /* A key of a credential may be the secret itself, put where it does not belong. */
    if (nearest == NULL && rn_schema_hides(ration_text_of(object->name))) {
        rn_loader_fault(loader, at, NULL, NULL, "unknown key");
        return;
    }

    const size_t path = rn_path_push(loader, at->text);

    rn_loader_fault(loader, at, NULL, nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest) : NULL,
                    "unknown key");
    rn_path_pop(loader, path);
}

/* Keys that are not in the table, not yet supported, or not of this kind. */
static void foreign_keys(rn_loader *loader, const rn_object *object, const rn_node *node, unsigned kind)
{
    for (const rn_entry *entry = node->first; entry != NULL; entry = entry->next) {
        const rn_key *key = rn_object_key(object, entry->key->text, kind);
        const bool skipped = loader->options->recording && node == loader->root &&
                             (rn_text_is(entry->key->text, "op") || rn_text_is(entry->key->text, "startedAt") ||
                              rn_text_is(entry->key->text, "at"));

        if (key == NULL && !skipped) {
            unknown_key(loader, object, entry->key);
        } else if (key != NULL && (key->flags & RN_KEY_LATER) != 0) {
            rn_loader_fault(loader, entry->key, key->name, NULL, "this key is not supported yet by this version");
        } else if (key != NULL && key->kinds != 0 && (key->kinds & kind) == 0) {
            rn_loader_fault(loader, entry->key, key->name, NULL, "a %s of this %s has no such key", object->name,
                            object->kind);
        }
    }
}

static bool key_required(const rn_loader *loader, const rn_key *key, unsigned kind)
{
    if ((key->flags & RN_KEY_REQUIRED) != 0)
        return true;
    if ((key->flags & RN_KEY_NEEDED) != 0 && !loader->options->recording)
        return true;
    return kind != ~0U && (key->required & kind) != 0;
}

/* The object's kind, read before all else; all bits where it has none, or none that could be read. */
/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static unsigned kind_read(rn_loader *loader, const rn_object *object, const rn_node *node, void *self)
{
    const rn_key *key = rn_object_kind(object);
    const rn_node *value = key != NULL ? rn_node_get(node, key->name) : NULL;

    if (value == NULL)
        return ~0U;

    const size_t path = rn_path_push(loader, ration_text_of(key->name));

    value_read(loader, key, value, self);
    rn_path_pop(loader, path);

    const unsigned kind = rn_object_kind_bit(object, self);

    return kind != 0 ? kind : ~0U;
}

/* Does the row hold for this kind? Of rows that share a name and an unknown kind nobody can tell. */
static bool key_holds(const rn_object *object, const rn_key *key, unsigned kind)
{
    if ((key->flags & RN_KEY_LATER) != 0 || (key->kinds != 0 && (key->kinds & kind) == 0))
        return false;
    return kind != ~0U || !rn_object_key_varies(object, key);
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void object_read(rn_loader *loader, const rn_object *object, const rn_node *node, void *self)
{
    const size_t faults = loader->faults.count;
    const unsigned kind = kind_read(loader, object, node, self);
    const rn_key *kind_key = rn_object_kind(object);

    keys_unique(loader, node);
    foreign_keys(loader, object, node, kind);
    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        const rn_node *value = rn_node_get(node, key->name);

        if (value == NULL && key_required(loader, key, kind))
            rn_loader_fault(loader, node, NULL, NULL, "the key '%s' is missing", key->name);
        if (value == NULL || key == kind_key || !key_holds(object, key, kind))
            continue;

        const size_t path = rn_path_push(loader, ration_text_of(key->name));

        value_read(loader, key, value, self);
        rn_path_pop(loader, path);
    }
    loader->faults_before = faults;
    if (object->check != NULL)
        object->check(loader, node, self);
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
void rn_read_object(rn_loader *loader, const rn_object *object, const rn_node *node, void *self)
{
    defaults_read(loader, object, self);
    if (node->kind == RN_NODE_MAP) {
        object_read(loader, object, node, self);
        return;
    }

    const rn_key *key =
        object->shorthand != NULL ? rn_object_key(object, ration_text_of(object->shorthand), ~0U) : NULL;

    if (node->kind == RN_NODE_SCALAR && key != NULL && !rn_node_is_null(node)) {
        scalar_read(loader, key, node, field_at(self, key->offset));
        return;
    }
    rn_loader_fault(loader, node, NULL, NULL, "must be a map of keys%s%s", key != NULL ? ", or " : "",
                    key != NULL ? key->type->what : "");
}
