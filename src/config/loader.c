/* SPDX-License-Identifier: MIT */
/*
 * What all readers of keys share: the path, faults at nodes, texts that stay, names that must be unique.
 *
 * Invariant: `path[path_size]` is NUL. A path that does not fit is cut and popped back to the same length.
 */
#include "config/loader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUOTE_CHARS 40
#define KEY_CHARS 64
#define MESSAGE_MAX 400

static size_t path_append(rn_loader *loader, const char *before, ration_text text, const char *after)
{
    const size_t size = loader->path_size;
    rn_builder b;

    rn_builder_init(&b, loader->path + size, sizeof loader->path - size);
    rn_builder_str(&b, size == 0 && before[0] == '.' ? "" : before);
    rn_plain_text(&b, text, KEY_CHARS);
    rn_builder_str(&b, after);
    loader->path_size = size + b.used;
    return size;
}

size_t rn_path_push(rn_loader *loader, ration_text key)
{
    return path_append(loader, ".", key, "");
}

size_t rn_path_index(rn_loader *loader, size_t index)
{
    char digits[24];

    (void)snprintf(digits, sizeof digits, "%zu", index);
    return path_append(loader, "[", ration_text_of(digits), "]");
}

void rn_path_pop(rn_loader *loader, size_t size)
{
    loader->path_size = size;
    loader->path[size] = '\0';
}

static void loader_add(rn_loader *loader, rn_faults *faults, const rn_node *at, const char *key, const char *hint,
                       const char *text)
{
    const size_t size = key != NULL ? rn_path_push(loader, ration_text_of(key)) : loader->path_size;

    rn_faults_add(faults, at->at, loader->path, text, hint);
    rn_path_pop(loader, size);
}

void rn_loader_fault(rn_loader *loader, const rn_node *at, const char *key, const char *hint, const char *text, ...)
{
    char buffer[MESSAGE_MAX];
    va_list args;

    va_start(args, text);
    (void)vsnprintf(buffer, sizeof buffer, text, args);
    va_end(args);
    loader_add(loader, &loader->faults, at, key, hint, buffer);
}

void rn_loader_warn(rn_loader *loader, const rn_node *at, const char *key, const char *hint, const char *text, ...)
{
    char buffer[MESSAGE_MAX];
    va_list args;

    va_start(args, text);
    (void)vsnprintf(buffer, sizeof buffer, text, args);
    va_end(args);
    loader_add(loader, &loader->warnings, at, key, hint, buffer);
}

const char *rn_loader_quote(rn_loader *loader, ration_text text)
{
    char buffer[QUOTE_CHARS + 8];
    rn_builder b;

    rn_builder_init(&b, buffer, sizeof buffer);
    rn_builder_char(&b, '\'');
    rn_plain_text(&b, text, QUOTE_CHARS);
    rn_builder_char(&b, '\'');

    const char *quoted = rn_arena_strdup(&loader->work, buffer);

    loader->nomem = loader->nomem || quoted == NULL;
    return quoted != NULL ? quoted : "";
}

const char *rn_loader_format(rn_loader *loader, const char *format, ...)
{
    char buffer[4352];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);

    const char *text = rn_arena_strdup(&loader->work, buffer);

    loader->nomem = loader->nomem || text == NULL;
    return text;
}

const char *rn_loader_keep(rn_loader *loader, ration_text text)
{
    const ration_text empty = {"", 0};
    const char *copy = rn_arena_textdup(loader->arena, text.data != NULL ? text : empty);

    loader->nomem = loader->nomem || copy == NULL;
    return copy;
}

void *rn_loader_alloc(rn_loader *loader, rn_arena *arena, size_t count, size_t size)
{
    void *block = rn_arena_zalloc(arena, count, size);

    loader->nomem = loader->nomem || block == NULL;
    return block;
}

static int named_compare(const void *a, const void *b)
{
    const rn_named *x = a;
    const rn_named *y = b;
    const int order = rn_text_compare(x->name, y->name);

    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

void rn_loader_unique(rn_loader *loader, rn_named *items, size_t count, const char *key)
{
    size_t first = 0;

    qsort(items, count, sizeof *items, named_compare);
    for (size_t i = 1; i < count; i++) {
        const rn_mark there = items[first].at->at;

        if (!rn_text_eq(items[i].name, items[first].name)) {
            first = i;
            continue;
        }

        const bool same_file = there.source == items[i].at->at.source;
        const char *hint = rn_loader_format(loader, "the first is in %s%sline %u", same_file ? "" : there.source->name,
                                            same_file ? "" : ", ", there.line);
        const size_t path = key != NULL ? rn_path_index(loader, items[i].order) : rn_path_push(loader, items[i].name);

        rn_loader_fault(loader, items[i].at, key, hint, "%s%s%s stands here a second time", key != NULL ? "the " : "",
                        key != NULL ? key : "the key",
                        key != NULL ? rn_loader_format(loader, " %s", rn_loader_quote(loader, items[i].name)) : "");
        rn_path_pop(loader, path);
    }
}
