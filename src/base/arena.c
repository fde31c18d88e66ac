/* SPDX-License-Identifier: MIT */
/*
 * Arena: things that die together, cut from blocks.
 *
 * A block is twice as large as the one before it, up to a maximum, so a small arena stays small and a large one makes
 * few calls to the allocator. Something that would take more than half of the next block gets a block of its own, which
 * goes behind the head: the head's free space stays in use.
 *
 * Invariants: `used <= size` and `used` is a multiple of the strictest alignment; bytes at and after `used` are unused.
 */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

#define BLOCK_MIN 1024u
#define BLOCK_MAX ((size_t)64 * 1024)
#define ALIGNMENT (_Alignof(max_align_t))

struct rn_arena_block {
    rn_arena_block *next;
    size_t size;
    size_t used;
    max_align_t data[];
};

void rn_arena_init(rn_arena *arena, const ration_allocator *mem)
{
    arena->mem = mem;
    arena->head = NULL;
}

void rn_arena_fini(rn_arena *arena)
{
    while (arena->head != NULL) {
        rn_arena_block *const block = arena->head;

        arena->head = block->next;
        rn_mem_free(arena->mem, block);
    }
}

static rn_arena_block *block_new(const rn_arena *arena, size_t size)
{
    rn_arena_block *const block = rn_mem_alloc(arena->mem, sizeof(*block) + size);

    if (block == NULL)
        return NULL;
    block->next = NULL;
    block->size = size;
    block->used = 0;
    return block;
}

/* A block with room for `bytes`, linked in. */
static rn_arena_block *arena_block_for(rn_arena *arena, size_t bytes)
{
    rn_arena_block *const head = arena->head;

    if (head != NULL && bytes <= head->size - head->used)
        return head;

    const size_t usual = head == NULL ? BLOCK_MIN : (head->size < BLOCK_MAX / 2 ? head->size * 2 : BLOCK_MAX);
    const bool alone = bytes > usual / 2;
    rn_arena_block *const block = block_new(arena, alone ? bytes : usual);

    if (block == NULL)
        return NULL;
    if (alone && head != NULL) {
        block->next = head->next;
        head->next = block;
    } else {
        block->next = head;
        arena->head = block;
    }
    return block;
}

/* `bytes` of unset memory. */
static void *arena_take(rn_arena *arena, size_t bytes)
{
    if (bytes > PTRDIFF_MAX - sizeof(rn_arena_block) - ALIGNMENT)
        return NULL;

    const size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    rn_arena_block *const block = arena_block_for(arena, rounded);

    if (block == NULL)
        return NULL;

    void *const start = (unsigned char *)block->data + block->used;

    block->used += rounded;
    return start;
}

void *rn_arena_zalloc(rn_arena *arena, size_t count, size_t size)
{
    size_t bytes = 0;

    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;

    void *const start = arena_take(arena, bytes);

    if (start != NULL)
        memset(start, 0, bytes);
    return start;
}

char *rn_arena_strdup(rn_arena *arena, const char *s)
{
    return rn_arena_textdup(arena, ration_text_of(s));
}

char *rn_arena_textdup(rn_arena *arena, ration_text text)
{
    if (text.data == NULL || text.size >= PTRDIFF_MAX)
        return NULL;

    char *const copy = arena_take(arena, text.size + 1);

    if (copy == NULL)
        return NULL;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    return copy;
}
