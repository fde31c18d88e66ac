/* SPDX-License-Identifier: MIT */
/*
 * A config as one line of JSON, for the `config` line of a recording, and what differs between two of them.
 *
 * The table is walked again, with each type's writer: what the parser can read is written. A recording goes without
 * what decides nothing and without secrets, which the table marks as local. Values equal to "not given" are left out,
 * so the reader fills in the same again.
 *
 * Two configs are compared by hashes of such texts, one for each thing that has a name, with all that a recording goes
 * without. No such text leaves this file.
 *
 * Invariant: read as a recording, the text gives equal rules.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/model.h"
#include "config/schema.h"

/* What is left out: keys with any of these flags, and, at the top, the key of this name (NULL: none). */
typedef struct omission {
    unsigned flags;
    const char *key;
} omission;

static const void *field_of(const void *self, size_t offset)
{
    return (const char *)self + offset;
}

static void member_name(rn_out *out, const char *name)
{
    rn_out_comma(out);
    rn_out_json(out, name);
    rn_out_str(out, ":");
}

/* Forget what was written since `size`. */
static void out_rewind(rn_out *out, size_t size)
{
    if (!out->failed)
        out->size = size;
}

static void object_write(rn_out *out, const rn_object *object, const void *self, omission without);

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void members_write(rn_out *out, const rn_key *key, const void *self, omission without)
{
    const char *items = NULL;
    size_t count = 0;
    const bool table = key->shape == RN_SHAPE_TABLE;
    const size_t size = table ? key->item : key->object != NULL ? key->object->size : key->type->size;

    memcpy(&items, field_of(self, key->offset), sizeof items);
    memcpy(&count, field_of(self, key->count), sizeof count);
    if (count == 0)
        return;
    member_name(out, key->name);
    rn_out_str(out, table ? "{" : "[");
    for (size_t i = 0; i < count; i++) {
        const char *item = items + i * size;

        if (table) {
            const char *name = NULL;

            memcpy(&name, item, sizeof name);
            member_name(out, name);
            item += key->value; /* 0 where the value is an object */
        } else {
            rn_out_comma(out);
        }
        if (key->object != NULL) {
            object_write(out, key->object, item, (omission){without.flags, NULL});
        } else {
            (void)key->type->write(out, key, item);
        }
    }
    rn_out_str(out, table ? "}" : "]");
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void one_write(rn_out *out, const rn_key *key, const void *self, omission without)
{
    const size_t before = out->size;

    /* Without a kind it is not there, whatever its defaults. */
    if (key->object != NULL && rn_object_kind_bit(key->object, field_of(self, key->offset)) == 0)
        return;
    member_name(out, key->name);
    if (key->object == NULL) {
        if (!key->type->write(out, key, field_of(self, key->offset)))
            out_rewind(out, before);
        return;
    }

    const size_t empty = out->size + 2;

    object_write(out, key->object, field_of(self, key->offset), (omission){without.flags, NULL});
    if (out->size == empty)
        out_rewind(out, before);
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void object_write(rn_out *out, const rn_object *object, const void *self, omission without)
{
    const unsigned kind = rn_object_kind_bit(object, self);

    rn_out_str(out, "{");
    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        if ((key->flags & without.flags) != 0 || (key->kinds != 0 && (key->kinds & kind) == 0) ||
            (without.key != NULL && strcmp(key->name, without.key) == 0))
            continue;
        if (key->shape == RN_SHAPE_ONE) {
            one_write(out, key, self, without);
        } else {
            members_write(out, key, self, without);
        }
    }
    rn_out_str(out, "}");
}

int rn_config_json(const ration_config *config, char **out, size_t *size)
{
    rn_out json;

    rn_out_init(&json, config->mem);
    object_write(&json, &rn_schema_root, &config->model, (omission){RN_KEY_LATER | RN_KEY_LOCAL, NULL});
    return rn_out_take(&json, out, size);
}

int rn_config_fingerprint(const ration_config *config, char out[RN_CONFIG_FINGERPRINT])
{
    static const char digits[] = "0123456789abcdef";
    const unsigned flags = RN_KEY_LATER | RN_KEY_LOCAL | RN_KEY_SECRET;
    const rn_object *settings = rn_object_key(&rn_schema_root, ration_text_of("settings"), ~0U)->object;
    rn_out json;

    rn_out_init(&json, config->mem);
    object_write(&json, &rn_schema_root, &config->model, (omission){flags, "settings"});
    object_write(&json, settings, &config->model, (omission){flags, "instance"});

    const bool failed = json.failed;
    const uint64_t hash = failed ? 0 : rn_hash(json.data, json.size);

    rn_out_fini(&json);
    if (failed)
        return RATION_ERR_NOMEM;
    for (int i = 0; i < 16; i++)
        out[i] = digits[hash >> (60 - 4 * i) & 15];
    out[16] = '\0';
    return RATION_OK;
}

/* ---- what differs */

/* Something that has a name, and what it says. */
typedef struct piece {
    const char *kind;
    const char *owner;
    const char *name;
    uint64_t hash;
} piece;

typedef struct pieces {
    const ration_allocator *mem;
    piece *items;
    size_t count, room;
    rn_out text; /* of the piece at hand */
    bool nomem;
} pieces;

static int piece_order(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    int order = strcmp(x->kind, y->kind);

    order = order != 0 ? order : strcmp(x->owner, y->owner);
    return order != 0 ? order : strcmp(x->name, y->name);
}

/* What was written since the last one. Its kind is a word of ours, its names are borrowed. */
static void piece_end(pieces *all, piece named)
{
    if (all->count == all->room) {
        const size_t room = all->room + all->room / 2 + 64;
        piece *items = rn_mem_resize(all->mem, all->items, room, sizeof *items);

        if (items == NULL) {
            all->nomem = true;
            return;
        }
        all->items = items;
        all->room = room;
    }
    named.hash = rn_hash(all->text.data, all->text.size);
    all->items[all->count++] = named;
    all->text.size = 0;
}

static void piece_add(pieces *all, piece named, const rn_object *object, const void *self, const char *without)
{
    object_write(&all->text, object, self, (omission){RN_KEY_LATER, without});
    piece_end(all, named);
}

static const rn_key *key_of(const rn_object *object, const char *name)
{
    return rn_object_key(object, ration_text_of(name), ~0U);
}

static void providers_gather(pieces *all, const rn_config_model *model)
{
    const rn_object *object = key_of(&rn_schema_root, "providers")->object;
    const rn_object *limits = key_of(object, "limits")->object;

    for (size_t i = 0; i < model->rules.provider_count; i++) {
        const rn_provider_model *provider = &model->providers[i];

        piece_add(all, (piece){"provider", "", provider->rule.name, 0}, object, provider, "limits");
        for (size_t k = 0; k < provider->rule.limit_count; k++) {
            const rn_limit_model *limit = &provider->limits[k];

            piece_add(all, (piece){"limit", provider->rule.name, limit->rule.name, 0}, limits, limit, NULL);
        }
    }
}

static int pieces_gather(pieces *all, const ration_config *config)
{
    const rn_config_model *model = &config->model;
    const rn_object *accounts = key_of(&rn_schema_root, "accounts")->object;
    const rn_object *clients = key_of(&rn_schema_root, "clients")->object;
    const rn_object *jobs = key_of(&rn_schema_root, "jobs")->object;

    all->mem = config->mem;
    rn_out_init(&all->text, config->mem);
    providers_gather(all, model);
    for (size_t i = 0; i < model->rules.account_count; i++)
        piece_add(all, (piece){"account", "", model->accounts[i].rule.name, 0}, accounts, &model->accounts[i], NULL);
    for (size_t i = 0; i < model->client_count; i++)
        piece_add(all, (piece){"client", "", model->clients[i].name, 0}, clients, &model->clients[i], NULL);
    for (size_t i = 0; i < model->job_count; i++)
        piece_add(all, (piece){"job", "", model->jobs[i].job.name, 0}, jobs, &model->jobs[i], NULL);
    for (size_t i = 0; i < model->rules.tenant_count; i++) {
        rn_out_int(&all->text, (int64_t)model->rules.tenants[i].weight);
        piece_end(all, (piece){"tenant", "", model->rules.tenants[i].name, 0});
    }
    piece_add(all, (piece){"settings", "", "settings", 0}, key_of(&rn_schema_root, "settings")->object, model, NULL);
    if (all->text.failed || all->nomem)
        return RATION_ERR_NOMEM;
    qsort(all->items, all->count, sizeof *all->items, piece_order);
    return RATION_OK;
}

static void pieces_fini(pieces *all)
{
    rn_out_fini(&all->text);
    rn_mem_free(all->mem, all->items);
}

static void pieces_compare(const pieces *was, const pieces *now, void *ctx, rn_config_changed *changed)
{
    size_t i = 0, k = 0;

    while (i < was->count || k < now->count) {
        const int order = i == was->count ? 1 : k == now->count ? -1 : piece_order(&was->items[i], &now->items[k]);
        const piece *at = order > 0 ? &now->items[k] : &was->items[i];
        rn_config_change change = {.kind = at->kind, .owner = at->owner, .name = at->name};

        change.how = order < 0 ? RN_CONFIG_REMOVED : order > 0 ? RN_CONFIG_ADDED : RN_CONFIG_CHANGED;
        if (order != 0 || was->items[i].hash != now->items[k].hash)
            changed(ctx, &change);
        i += order <= 0 ? 1 : 0;
        k += order >= 0 ? 1 : 0;
    }
}

int rn_config_compare(const ration_config *was, const ration_config *now, void *ctx, rn_config_changed *changed)
{
    pieces before = {.count = 0}, after = {.count = 0};

    int err = pieces_gather(&before, was);
    const int second = pieces_gather(&after, now);

    err = err != RATION_OK ? err : second;
    if (err == RATION_OK)
        pieces_compare(&before, &after, ctx, changed);
    pieces_fini(&before);
    pieces_fini(&after);
    return err;
}
