/* SPDX-License-Identifier: MIT */
/*
 * The door to the allocator.
 *
 * Every allocation of base, core and plan comes through here, so that a test can make any of them fail and a program
 * can bring its own memory. Sizes are multiplied here, once, with a check, and nowhere else. A request for nothing asks
 * for one byte, so that NULL always means "no memory" and never "nothing".
 */
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *default_allocate(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void *default_resize(void *ctx, void *block, size_t size)
{
    (void)ctx;
    return realloc(block, size);
}

static void default_release(void *ctx, void *block)
{
    (void)ctx;
    free(block);
}

static const ration_allocator default_mem = {default_allocate, default_resize, default_release, NULL};

const ration_allocator *rn_mem_default(void)
{
    return &default_mem;
}

void *rn_mem_alloc(const ration_allocator *mem, size_t size)
{
    return mem->allocate(mem->ctx, size > 0 ? size : 1);
}

static bool product(size_t count, size_t size, size_t *out)
{
    return !__builtin_mul_overflow(count, size, out) && *out <= PTRDIFF_MAX;
}

void *rn_mem_zalloc(const ration_allocator *mem, size_t count, size_t size)
{
    size_t bytes = 0;

    if (!product(count, size, &bytes))
        return NULL;

    void *const block = rn_mem_alloc(mem, bytes);

    if (block != NULL)
        memset(block, 0, bytes);
    return block;
}

void *rn_mem_resize(const ration_allocator *mem, void *block, size_t count, size_t size)
{
    size_t bytes = 0;

    if (!product(count, size, &bytes))
        return NULL;
    if (block == NULL)
        return rn_mem_alloc(mem, bytes);
    return mem->resize(mem->ctx, block, bytes > 0 ? bytes : 1);
}

void rn_mem_free(const ration_allocator *mem, void *block)
{
    mem->release(mem->ctx, block);
}

char *rn_mem_strdup(const ration_allocator *mem, const char *s)
{
    return rn_mem_textdup(mem, ration_text_of(s));
}

char *rn_mem_textdup(const ration_allocator *mem, ration_text text)
{
    if (text.data == NULL || text.size >= PTRDIFF_MAX)
        return NULL;

    char *const copy = rn_mem_alloc(mem, text.size + 1);

    if (copy == NULL)
        return NULL;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    return copy;
}
