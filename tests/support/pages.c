/* SPDX-License-Identifier: MIT */
#include "support/pages.h"

#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE ((size_t)64 * 1024)
#define BLOCKS_MAX 512
#define PAGE ((size_t)4096)

static struct {
    unsigned char *start;
    size_t size; /* whole pages */
} blocks[BLOCKS_MAX];
static size_t block_count;
static size_t touched;

static size_t block_of(const void *at)
{
    for (size_t i = 0; i < block_count; i++) {
        if ((uintptr_t)at - (uintptr_t)blocks[i].start < blocks[i].size)
            return i;
    }
    return BLOCKS_MAX;
}

static void on_touch(int signal_number, siginfo_t *info, void *context)
{
    unsigned char *const page = (unsigned char *)info->si_addr - (uintptr_t)info->si_addr % PAGE;

    (void)context;
    if (block_of(page) == BLOCKS_MAX || mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0) {
        (void)signal(signal_number, SIG_DFL);
        return;
    }
    touched++;
}

static void *large_new(size_t size)
{
    const size_t rounded = (size + PAGE - 1) / PAGE * PAGE;
    void *const start = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (start == MAP_FAILED || block_count == BLOCKS_MAX)
        abort();
    blocks[block_count].start = start;
    blocks[block_count++].size = rounded;
    return start;
}

static void *pages_allocate(void *ctx, size_t size)
{
    (void)ctx;
    return size >= LARGE ? large_new(size) : malloc(size);
}

static void pages_release(void *ctx, void *block)
{
    const size_t at = block_of(block);

    (void)ctx;
    if (block == NULL || at == BLOCKS_MAX) {
        free(block);
        return;
    }
    (void)munmap(blocks[at].start, blocks[at].size);
    blocks[at] = blocks[--block_count];
}

static size_t room_of(void *block)
{
    const size_t at = block_of(block);

    if (block == NULL)
        return 0;
    return at < BLOCKS_MAX ? blocks[at].size : malloc_usable_size(block);
}

static void *pages_resize(void *ctx, void *block, size_t size)
{
    const size_t room = room_of(block);

    if (room >= size)
        return block;

    void *const grown = pages_allocate(ctx, size);

    if (grown == NULL)
        return NULL;
    if (room > 0)
        memcpy(grown, block, room);
    pages_release(ctx, block);
    return grown;
}

const ration_allocator *pages_allocator(void)
{
    static const ration_allocator allocator = {pages_allocate, pages_resize, pages_release, NULL};

    return &allocator;
}

/* ---- small blocks, one behind the other ---- */

#define SLAB ((size_t)16 * 1024 * 1024)
#define HEAD ((size_t)16) /* in front of each, its size */

static unsigned char *slab;
static size_t slab_left;

static void *packed_allocate(void *ctx, size_t size)
{
    const size_t rounded = HEAD + (size + HEAD - 1) / HEAD * HEAD;
    unsigned char *at;

    (void)ctx;
    if (size >= LARGE)
        return large_new(size);
    if (rounded > slab_left) {
        slab = large_new(SLAB);
        slab_left = SLAB;
    }
    at = slab;
    slab += rounded;
    slab_left -= rounded;
    memcpy(at, &size, sizeof size);
    return at + HEAD;
}

/* Does a block have large pages of its own? */
static bool is_large(const void *block)
{
    const size_t at = block_of(block);

    return at < BLOCKS_MAX && blocks[at].start == block;
}

/* Small ones stay where they are: nobody else will have their place. */
static void packed_release(void *ctx, void *block)
{
    if (block != NULL && is_large(block))
        pages_release(ctx, block);
}

static void *packed_resize(void *ctx, void *block, size_t size)
{
    size_t room = 0;
    void *grown;

    if (block != NULL && is_large(block)) {
        room = blocks[block_of(block)].size;
    } else if (block != NULL) {
        memcpy(&room, (const unsigned char *)block - HEAD, sizeof room);
    }
    if (room >= size)
        return block;
    grown = packed_allocate(ctx, size);
    if (room > 0)
        memcpy(grown, block, room);
    packed_release(ctx, block);
    return grown;
}

const ration_allocator *pages_packed(void)
{
    static const ration_allocator allocator = {packed_allocate, packed_resize, packed_release, NULL};

    return &allocator;
}

size_t pages_total(void)
{
    size_t sum = 0;

    for (size_t i = 0; i < block_count; i++)
        sum += blocks[i].size / PAGE;
    return sum;
}

void pages_lock(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};

    action.sa_sigaction = on_touch;
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(SIGSEGV, &action, NULL) != 0)
        abort();
    touched = 0;
    for (size_t i = 0; i < block_count; i++) {
        if (mprotect(blocks[i].start, blocks[i].size, PROT_NONE) != 0)
            abort();
    }
}

size_t pages_unlock(void)
{
    for (size_t i = 0; i < block_count; i++) {
        if (mprotect(blocks[i].start, blocks[i].size, PROT_READ | PROT_WRITE) != 0)
            abort();
    }
    return touched;
}
