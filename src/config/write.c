/* SPDX-License-Identifier: MIT */
/*
 * A config as one line of JSON, for the `config` line of a recording.
 *
 * The table is walked again, with each type's writer: what the parser can read is written, but for what decides nothing
 * and for secrets, which the table marks as local. Values equal to "not given" are left out, so the reader fills in the
 * same again.
 *
 * Invariant: read as a recording, the text gives equal rules.
 */
#include <string.h>

#include "base/mem.h"
#include "config/model.h"
#include "config/schema.h"

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

static void object_write(rn_out *out, const rn_object *object, const void *self);

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void members_write(rn_out *out, const rn_key *key, const void *self)
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
            object_write(out, key->object, item);
        } else {
            (void)key->type->write(out, key, item);
        }
    }
    rn_out_str(out, table ? "}" : "]");
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void one_write(rn_out *out, const rn_key *key, const void *self)
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

    object_write(out, key->object, field_of(self, key->offset));
    if (out->size == empty)
        out_rewind(out, before);
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void object_write(rn_out *out, const rn_object *object, const void *self)
{
    const unsigned kind = rn_object_kind_bit(object, self);

    rn_out_str(out, "{");
    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        if ((key->flags & (RN_KEY_LATER | RN_KEY_LOCAL)) != 0 || (key->kinds != 0 && (key->kinds & kind) == 0))
            continue;
        if (key->shape == RN_SHAPE_ONE) {
            one_write(out, key, self);
        } else {
            members_write(out, key, self);
        }
    }
    rn_out_str(out, "}");
}

int rn_config_json(const ration_config *config, char **out, size_t *size)
{
    rn_out json;

    rn_out_init(&json, config->mem);
    object_write(&json, &rn_schema_root, &config->model);
    return rn_out_take(&json, out, size);
}
