/* SPDX-License-Identifier: MIT */
/*
 * The table of keys for others to read: a JSON Schema (draft 2020-12) for editors, a page of Markdown for people.
 *
 * Both visit every object once, in the order in which it is first met. In the schema each is a definition of its own. A
 * key that only some kinds have is forbidden to the others by a condition on the kind; one that means something else to
 * each has all its meanings, and that condition narrows them down.
 */
#include <string.h>

#include <ration/rules.h>

#include "config/schema.h"

#define OBJECTS_MAX 64

typedef struct object_list {
    const rn_object *items[OBJECTS_MAX];
    size_t count;
} object_list;

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void objects_collect(object_list *list, const rn_object *object)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == object)
            return;
    }
    if (list->count == OBJECTS_MAX)
        return;
    list->items[list->count++] = object;
    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        if (key->object != NULL)
            objects_collect(list, key->object);
    }
}

static void words_schema(rn_out *out, const rn_key *key)
{
    rn_out_str(out, "\"anyOf\":[{\"enum\":[");
    for (const rn_word *word = key->words; word->name != NULL; word++) {
        rn_out_comma(out);
        rn_out_json(out, word->name);
    }
    rn_out_str(out, "]},{\"type\":\"string\",\"pattern\":\"[$][{]\"}]");
}

/* A whole number is its own bound, a number of units counts millionths; of durations the schema knows no order. */
static void range_schema(rn_out *out, const rn_key *key)
{
    if ((key->min == 0 && key->max == 0) || key->type->form == RN_FORM_TEXT || key->type == &rn_type_duration)
        return;
    rn_out_str(out, ",\"minimum\":");
    key->type->show(out, key->min);
    rn_out_str(out, ",\"maximum\":");
    key->type->show(out, key->max);
}

/* True if items of this list may be laid over other objects. */
static bool is_laid(const rn_key *key)
{
    return key->overlay != NULL || (key->flags & RN_KEY_LAID) != 0;
}

static void item_schema(rn_out *out, const rn_key *key)
{
    if (key->object != NULL) {
        rn_out_str(out, "\"$ref\":\"#/$defs/");
        rn_out_str(out, key->object->name);
        rn_out_str(out, is_laid(key) ? "Override\"" : "\"");
    } else if (key->words != NULL) {
        words_schema(out, key);
    } else {
        rn_out_str(out, key->type->json);
        range_schema(out, key);
    }
}

/* One row's meaning. */
static void row_schema(rn_out *out, const rn_key *key)
{
    const bool filled = (key->flags & RN_KEY_FILLED) != 0;

    rn_out_str(out, "{\"description\":");
    rn_out_json(out, key->doc);
    if (key->fallback != NULL && key->shape == RN_SHAPE_ONE && key->type->form != RN_FORM_NUMBER &&
        key->type->form != RN_FORM_BOOL) {
        rn_out_str(out, ",\"default\":");
        rn_out_json(out, key->fallback);
    } else if (key->fallback != NULL && key->shape == RN_SHAPE_ONE) {
        rn_out_str(out, ",\"default\":");
        rn_out_str(out, key->fallback);
    }
    rn_out_str(out, ",");
    if (key->shape == RN_SHAPE_LIST) {
        rn_out_str(out, filled ? "\"type\":\"array\",\"minItems\":1,\"items\":{" : "\"type\":\"array\",\"items\":{");
    }
    if (key->shape == RN_SHAPE_TABLE) {
        rn_out_str(out, filled ? "\"type\":\"object\",\"minProperties\":1,\"additionalProperties\":{"
                               : "\"type\":\"object\",\"additionalProperties\":{");
    }
    item_schema(out, key);
    rn_out_str(out, key->shape != RN_SHAPE_ONE ? "}}" : "}");
}

/* The rows of `kinds` that have the name of `key`. */
static void key_schema(rn_out *out, const rn_object *object, const rn_key *key, unsigned kinds)
{
    const bool several = kinds == ~0U && rn_object_key_varies(object, key);

    rn_out_comma(out);
    rn_out_json(out, key->name);
    rn_out_str(out, several ? ":{\"anyOf\":[" : ":");
    for (const rn_key *row = key; row->name != NULL; row++) {
        if (strcmp(row->name, key->name) != 0 || (row->kinds != 0 && (row->kinds & kinds) == 0))
            continue;
        if (several)
            rn_out_comma(out);
        row_schema(out, row);
    }
    rn_out_str(out, several ? "]}" : "");
}

/* True for the first of the rows that share a name. */
static bool is_first(const rn_object *object, const rn_key *key)
{
    return rn_object_key(object, ration_text_of(key->name), ~0U) == key;
}

/* What holds for objects of one kind. */
static void kind_schema(rn_out *out, const rn_object *object, const rn_word *word)
{
    const unsigned kind = RN_KIND_BIT((unsigned)word->value);

    rn_out_comma(out);
    rn_out_str(out, "{\"if\":{\"properties\":{");
    rn_out_json(out, object->kind);
    rn_out_str(out, ":{\"const\":");
    rn_out_json(out, word->name);
    rn_out_str(out, "}},\"required\":[");
    rn_out_json(out, object->kind);
    rn_out_str(out, "]},\"then\":{\"required\":[");
    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        if ((key->required & kind) != 0) {
            rn_out_comma(out);
            rn_out_json(out, key->name);
        }
    }
    rn_out_str(out, "],\"properties\":{");
    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        const rn_key *own = rn_object_key(object, ration_text_of(key->name), kind);
        const bool known = own->kinds == 0 || (own->kinds & kind) != 0;

        if (!known && is_first(object, key)) {
            rn_out_comma(out);
            rn_out_json(out, key->name);
            rn_out_str(out, ":false");
        } else if (known && own == key && rn_object_key_varies(object, key)) {
            key_schema(out, object, key, kind);
        }
    }
    rn_out_str(out, "}}}");
}

static void required_schema(rn_out *out, const rn_object *object)
{
    rn_out_str(out, "\"required\":[");
    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        if ((key->flags & (RN_KEY_REQUIRED | RN_KEY_NEEDED)) != 0) {
            rn_out_comma(out);
            rn_out_json(out, key->name);
        }
    }
    rn_out_str(out, "]");
}

/* What is asked of an object only if it is not laid over another: required keys, and whole items in its lists. */
static void base_schema(rn_out *out, const rn_object *object)
{
    rn_out_str(out, "\"if\":{\"required\":[");
    rn_out_json(out, object->base);
    rn_out_str(out, "]},\"else\":{");
    required_schema(out, object);
    rn_out_str(out, ",\"properties\":{");
    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        if ((key->flags & RN_KEY_LAID) == 0)
            continue;
        rn_out_comma(out);
        rn_out_json(out, key->name);
        rn_out_str(out, ":{\"items\":{\"$ref\":\"#/$defs/");
        rn_out_str(out, key->object->name);
        rn_out_str(out, "\"}}");
    }
    rn_out_str(out, "}}");
}

/* `partial`: as an account's override, which needs no more than its name. */
static void object_schema(rn_out *out, const rn_object *object, bool partial)
{
    rn_out_str(out, "{\"type\":\"object\",\"description\":");
    rn_out_json(out, object->doc);
    rn_out_str(out, ",\"properties\":{");
    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        if ((key->flags & RN_KEY_LATER) == 0 && is_first(object, key))
            key_schema(out, object, key, ~0U);
    }
    rn_out_str(out, "},\"additionalProperties\":false,");
    if (partial) {
        rn_out_str(out, "\"required\":[\"name\"]");
    } else if (object->base != NULL) {
        base_schema(out, object);
    } else {
        required_schema(out, object);
    }
    if (object->kind != NULL && !partial) {
        rn_out_str(out, ",\"allOf\":[");
        for (const rn_word *word = rn_object_kind(object)->words; word->name != NULL; word++)
            kind_schema(out, object, word);
        rn_out_str(out, "]");
    }
    rn_out_str(out, "}");
}

/* True if some list lays its items over other objects of this kind. */
static bool is_overlaid(const object_list *list, const rn_object *object)
{
    for (size_t i = 0; i < list->count; i++) {
        for (const rn_key *key = list->items[i]->keys; key->name != NULL; key++) {
            if (is_laid(key) && key->object == object)
                return true;
        }
    }
    return false;
}

static void definition_schema(rn_out *out, const object_list *list, const rn_object *object)
{
    rn_out_comma(out);
    rn_out_json(out, object->name);
    rn_out_str(out, ":");
    if (object->shorthand != NULL) {
        rn_out_str(out, "{\"anyOf\":[{");
        item_schema(out, rn_object_key(object, ration_text_of(object->shorthand), ~0U));
        rn_out_str(out, "},");
        object_schema(out, object, false);
        rn_out_str(out, "]}");
    } else {
        object_schema(out, object, false);
    }
    if (!is_overlaid(list, object))
        return;
    rn_out_str(out, ",\"");
    rn_out_str(out, object->name);
    rn_out_str(out, "Override\":");
    object_schema(out, object, true);
}

int rn_schema_json(const ration_allocator *mem, char **out, size_t *size)
{
    object_list list = {{NULL}, 0};
    rn_out json;

    rn_out_init(&json, mem);
    objects_collect(&list, &rn_schema_root);
    rn_out_str(&json, "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":\"ration config\","
                      "\"$ref\":\"#/$defs/config\",\"$defs\":{");
    for (size_t i = 0; i < list.count; i++)
        definition_schema(&json, &list, list.items[i]);
    rn_out_str(&json, "}}\n");
    return rn_out_take(&json, out, size);
}

static void cell_type(rn_out *out, const rn_key *key)
{
    if (key->shape == RN_SHAPE_LIST)
        rn_out_str(out, "list of ");
    if (key->shape == RN_SHAPE_TABLE)
        rn_out_str(out, "map of names to ");
    if (key->object != NULL) {
        rn_out_str(out, "[");
        rn_out_str(out, key->object->name);
        rn_out_str(out, "](#");
        for (const char *c = key->object->name; *c != '\0'; c++) {
            const bool upper = *c >= 'A' && *c <= 'Z';
            const char lower = (char)(*c + (upper ? 'a' - 'A' : 0));

            rn_out_text(out, (ration_text){&lower, 1});
        }
        rn_out_str(out, ")");
    } else if (key->words != NULL) {
        for (const rn_word *word = key->words; word->name != NULL; word++) {
            rn_out_str(out, word == key->words ? "`" : ", `");
            rn_out_str(out, word->name);
            rn_out_str(out, "`");
        }
    } else {
        rn_out_str(out, key->type->name);
    }
}

static void cell_range(rn_out *out, const rn_key *key)
{
    if ((key->min == 0 && key->max == 0) || key->type == NULL || key->max == RATION_UNITS_MAX)
        return;
    rn_out_str(out, ", ");
    key->type->show(out, key->min);
    rn_out_str(out, " to ");
    key->type->show(out, key->max);
}

static void cell_kinds(rn_out *out, const rn_object *object, unsigned kinds)
{
    bool first = true;

    for (const rn_word *word = rn_object_kind(object)->words; word->name != NULL; word++) {
        if ((kinds & RN_KIND_BIT((unsigned)word->value)) == 0)
            continue;
        rn_out_str(out, first ? "" : ", ");
        rn_out_str(out, word->name);
        first = false;
    }
}

static void cell_default(rn_out *out, const rn_object *object, const rn_key *key)
{
    const bool required = (key->flags & (RN_KEY_REQUIRED | RN_KEY_NEEDED)) != 0;

    if (required || (key->required != 0 && key->required == key->kinds)) {
        rn_out_str(out, "**required**");
        if (required && object->base != NULL) {
            rn_out_str(out, ", or from `");
            rn_out_str(out, object->base);
            rn_out_str(out, "`");
        }
        return;
    }
    if (key->fallback != NULL) {
        rn_out_str(out, "`");
        rn_out_str(out, key->fallback);
        rn_out_str(out, "`");
    } else {
        rn_out_str(out, key->otherwise != NULL ? key->otherwise : "—");
    }
    if (key->required != 0) {
        rn_out_str(out, "; *");
        cell_kinds(out, object, key->required);
        rn_out_str(out, ":* **required**");
    }
}

static void cell_doc(rn_out *out, const rn_object *object, const rn_key *key)
{
    if (key->kinds != 0) {
        rn_out_str(out, "*");
        cell_kinds(out, object, key->kinds);
        rn_out_str(out, ".* ");
    }
    rn_out_str(out, key->doc);
    if ((key->flags & RN_KEY_SECRET) != 0)
        rn_out_str(out, " **Secret.**");
}

static void object_page(rn_out *out, const rn_object *object)
{
    rn_out_str(out, "\n## ");
    rn_out_str(out, object->name);
    rn_out_str(out, "\n\n");
    rn_out_str(out, object->doc);
    rn_out_str(out, "\n\n| key | value | without it | meaning |\n|---|---|---|---|\n");
    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        if ((key->flags & RN_KEY_LATER) != 0)
            continue;
        rn_out_str(out, "| `");
        rn_out_str(out, key->name);
        rn_out_str(out, "` | ");
        cell_type(out, key);
        cell_range(out, key);
        rn_out_str(out, " | ");
        cell_default(out, object, key);
        rn_out_str(out, " | ");
        cell_doc(out, object, key);
        rn_out_str(out, " |\n");
    }
}

int rn_schema_markdown(const ration_allocator *mem, char **out, size_t *size)
{
    object_list list = {{NULL}, 0};
    rn_out page;

    rn_out_init(&page, mem);
    objects_collect(&list, &rn_schema_root);
    rn_out_str(
        &page,
        "# The config file\n\n"
        "YAML, or the same as JSON. This page is written by `ration schema --markdown`, from the table that the "
        "parser reads by; `ration validate FILE` checks a file against it and prints every fault.\n\n"
        "In every value `${NAME}` is an environment variable, `${file:/path}` the contents of a file (without a "
        "final line feed), `$${` the two characters themselves. What comes in that way is never repeated in a "
        "message.\n\n"
        "Values: *durations* are `250us`, `250ms`, `10s`, `5m`, `24h`, `7d` or sums such as `1h30m`; *rates* are "
        "`10/s` or `100/15m`; *ratios* are `80%`, `0.8` or `4/5`; *numbers* have at most six places.\n");
    for (size_t i = 0; i < list.count; i++)
        object_page(&page, list.items[i]);
    return rn_out_take(&page, out, size);
}
