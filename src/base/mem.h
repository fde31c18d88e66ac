/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_MEM_H
#define RN_BASE_MEM_H

#include <stddef.h>

#include <ration/engine.h>

/* The only door to an allocator. `mem.c` is the one file of base, core and plan that may call the C library's. */

/* The C library's malloc, realloc and free as an allocator. */
const ration_allocator *rn_mem_default(void);

/* All return NULL when there is no memory; a product that overflows counts as none. */
void *rn_mem_alloc(const ration_allocator *mem, size_t size);
void *rn_mem_zalloc(const ration_allocator *mem, size_t count, size_t size);
void *rn_mem_resize(const ration_allocator *mem, void *block, size_t count, size_t size);
void rn_mem_free(const ration_allocator *mem, void *block);

/* A NUL-terminated copy; NULL for an absent text or no memory. */
char *rn_mem_strdup(const ration_allocator *mem, const char *s);
char *rn_mem_textdup(const ration_allocator *mem, ration_text text);

#endif
