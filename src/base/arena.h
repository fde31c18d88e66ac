/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_ARENA_H
#define RN_BASE_ARENA_H

#include <stddef.h>

#include <ration/engine.h>

/* Many small things that die together: rules, a config, one trace line. Blocks grow; nothing is freed singly. */
typedef struct rn_arena_block rn_arena_block;
typedef struct rn_arena {
    const ration_allocator *mem;
    rn_arena_block *head;
} rn_arena;

void rn_arena_init(rn_arena *arena, const ration_allocator *mem);
void rn_arena_fini(rn_arena *arena);
/* Zeroed, aligned for any type. NULL: no memory. A count of 0 gives a non-NULL pointer that holds nothing. */
void *rn_arena_zalloc(rn_arena *arena, size_t count, size_t size);
char *rn_arena_strdup(rn_arena *arena, const char *s); /* NULL for NULL */
char *rn_arena_textdup(rn_arena *arena, ration_text text);

#endif
