/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_HEAP_H
#define RN_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#include <ration/engine.h>

/* A binary min-heap whose members know their place, so that any leaves in O(log n). Intrusive; owns no member. */

#define RN_HEAP_OUT SIZE_MAX

typedef struct rn_heap_node {
    size_t index; /* RN_HEAP_OUT: in no heap */
} rn_heap_node;

typedef bool rn_heap_less(const rn_heap_node *a, const rn_heap_node *b);

typedef struct rn_heap {
    const ration_allocator *mem;
    rn_heap_less *less;
    rn_heap_node **items;
    size_t size;
    size_t capacity;
} rn_heap;

void rn_heap_init(rn_heap *heap, const ration_allocator *mem, rn_heap_less *less);
void rn_heap_fini(rn_heap *heap);
void rn_heap_node_init(rn_heap_node *node);
bool rn_heap_contains(const rn_heap_node *node);
/* Room for `capacity` members, so that pushes up to it cannot fail. RATION_ERR_NOMEM leaves the heap as it was. */
int rn_heap_reserve(rn_heap *heap, size_t capacity);
int rn_heap_push(rn_heap *heap, rn_heap_node *node); /* RATION_ERR_NOMEM: nothing changed */
rn_heap_node *rn_heap_top(const rn_heap *heap);      /* NULL: empty */
rn_heap_node *rn_heap_pop(rn_heap *heap);
void rn_heap_remove(rn_heap *heap, rn_heap_node *node); /* nothing if it is in no heap */
void rn_heap_moved(rn_heap *heap, rn_heap_node *node);  /* its key changed: restore the order */

#endif
