/* SPDX-License-Identifier: MIT */
/*
 * The kinds of scalars that costs need: JSON pointers and sizes of bodies.
 *
 * A pointer is read once, here: whoever walks a body compares its steps and parses nothing.
 */
#include <string.h>

#include "base/pointer.h"
#include "base/units.h"
#include "config/loader.h"

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define SIZE_MAX_BYTES (64 * MIB)

static int pointer_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    rn_pointer *pointer = rn_loader_alloc(loader, loader->arena, 1, sizeof *pointer);
    const rn_pointer **stored = out;
    const bool plain = text.size == 0 || memchr(text.data, '\0', text.size) == NULL;
    const int err = pointer == NULL ? RATION_ERR_NOMEM
                    : plain         ? rn_pointer_parse(loader->arena, text, pointer)
                                    : RATION_ERR_SYNTAX;

    (void)key;
    if (err == RATION_OK)
        *stored = pointer;
    return err;
}

static bool pointer_write(rn_out *out, const rn_key *key, const void *value)
{
    const rn_pointer *const *stored = value;
    const rn_pointer *pointer = *stored;

    (void)key;
    if (pointer != NULL)
        rn_out_json(out, pointer->text);
    return pointer != NULL;
}

static bool ends_with(ration_text text, const char *tail)
{
    const size_t size = strlen(tail);

    return text.size > size && memcmp(text.data + text.size - size, tail, size) == 0;
}

static int size_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    const int64_t unit = ends_with(text, "KiB") ? KIB : ends_with(text, "MiB") ? MIB : 1;
    int64_t count = 0;
    const int err = rn_parse_int(unit > 1 ? rn_text_slice(text, 0, text.size - 3) : text, &count);
    const int64_t bytes = rn_mul(count, unit);

    (void)loader;
    (void)key;
    if (err == RATION_OK && bytes >= 0 && bytes <= SIZE_MAX_BYTES) {
        memcpy(out, &bytes, sizeof bytes);
        return RATION_OK;
    }
    return err == RATION_ERR_SYNTAX ? err : RATION_ERR_RANGE;
}

static bool size_write(rn_out *out, const rn_key *key, const void *value)
{
    int64_t bytes = 0;

    (void)key;
    memcpy(&bytes, value, sizeof bytes);
    rn_out_int(out, bytes);
    return true;
}

const rn_type rn_type_pointer = {"JSON pointer",
                                 "a JSON pointer such as /usage/total_tokens",
                                 RN_FORM_TEXT,
                                 sizeof(rn_pointer *),
                                 "\"type\":\"string\",\"pattern\":\"^(/([^/~]|~[01])*)*$|[$][{]\"",
                                 pointer_read,
                                 pointer_write,
                                 NULL};
const rn_type rn_type_size = {"size",
                              "a size of at most 64MiB, such as 65536, 256KiB or 1MiB",
                              RN_FORM_ANY,
                              sizeof(int64_t),
                              "\"type\":[\"integer\",\"string\"],\"minimum\":0,\"maximum\":67108864,"
                              "\"pattern\":\"^[0-9]+(KiB|MiB)?$|[$][{]\"",
                              size_read,
                              size_write,
                              NULL};
