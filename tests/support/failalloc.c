/* SPDX-License-Identifier: MIT */
/*
 * The C library's allocator with a countdown before it.
 *
 * A resize that fails leaves the block as it was, as realloc does. Only the one allocation fails: the code under test
 * may ask for more on its way out, and an object that survived must work on.
 */

#include "support/failalloc.h"

#include <stdlib.h>

static bool counts_down(failalloc *fail)
{
    if (fail->failed || fail->countdown == UINT64_MAX)
        return false;
    if (fail->countdown > 0) {
        fail->countdown--;
        return false;
    }
    fail->failed = true;
    return true;
}

static void *fail_allocate(void *ctx, size_t size)
{
    failalloc *fail = ctx;
    void *block = counts_down(fail) ? NULL : malloc(size);

    fail->live += block != NULL;
    return block;
}

static void *fail_resize(void *ctx, void *block, size_t size)
{
    failalloc *fail = ctx;

    if (block == NULL)
        return fail_allocate(ctx, size);
    return counts_down(fail) ? NULL : realloc(block, size);
}

static void fail_release(void *ctx, void *block)
{
    failalloc *fail = ctx;

    fail->live -= block != NULL;
    free(block);
}

void failalloc_init(failalloc *fail, uint64_t at)
{
    *fail = (failalloc){
        .allocator = {.allocate = fail_allocate, .resize = fail_resize, .release = fail_release, .ctx = fail},
        .countdown = at,
    };
}
