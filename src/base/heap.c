/* SPDX-License-Identifier: MIT */
/*
 * Binary min-heap of intrusive members.
 *
 * Each member knows its place, so any of them can leave or move in O(log n) without a search. Members that compare
 * equal come out in no particular order: who needs one puts an order into the key.
 *
 * Invariants: items[node->index] == node for every member; no member is less than its parent; `index` is RN_HEAP_OUT
 * for everything outside. Removing never allocates, and neither does pushing into reserved room.
 */
#include "base/heap.h"

#include <stdint.h>

#include "base/mem.h"

#define CAPACITY_MIN 16u

void rn_heap_init(rn_heap *heap, const ration_allocator *mem, rn_heap_less *less)
{
    heap->mem = mem;
    heap->less = less;
    heap->items = NULL;
    heap->size = 0;
    heap->capacity = 0;
}

void rn_heap_fini(rn_heap *heap)
{
    for (size_t i = 0; i < heap->size; i++)
        heap->items[i]->index = RN_HEAP_OUT;
    rn_mem_free(heap->mem, heap->items);
    heap->items = NULL;
    heap->size = 0;
    heap->capacity = 0;
}

void rn_heap_node_init(rn_heap_node *node)
{
    node->index = RN_HEAP_OUT;
}

bool rn_heap_contains(const rn_heap_node *node)
{
    return node->index != RN_HEAP_OUT;
}

int rn_heap_reserve(rn_heap *heap, size_t capacity)
{
    if (capacity <= heap->capacity)
        return RATION_OK;

    /* At least doubling keeps pushes at O(1) allocations a member, whatever steps a caller reserves in. */
    const size_t doubled = heap->capacity < SIZE_MAX / 2 ? heap->capacity * 2 : SIZE_MAX;
    size_t wanted = capacity > doubled ? capacity : doubled;

    if (wanted < CAPACITY_MIN)
        wanted = CAPACITY_MIN;

    /* NOLINTNEXTLINE(bugprone-sizeof-expression): the members are pointers. */
    rn_heap_node **const items = rn_mem_resize(heap->mem, heap->items, wanted, sizeof(*items));

    if (items == NULL)
        return RATION_ERR_NOMEM;
    heap->items = items;
    heap->capacity = wanted;
    return RATION_OK;
}

static void heap_put(rn_heap *heap, size_t at, rn_heap_node *node)
{
    heap->items[at] = node;
    node->index = at;
}

static void heap_rise(rn_heap *heap, rn_heap_node *node)
{
    size_t at = node->index;

    while (at > 0) {
        const size_t parent = (at - 1) / 2;

        if (!heap->less(node, heap->items[parent]))
            break;
        heap_put(heap, at, heap->items[parent]);
        at = parent;
    }
    heap_put(heap, at, node);
}

static void heap_sink(rn_heap *heap, rn_heap_node *node)
{
    size_t at = node->index;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= heap->size)
            break;
        if (child + 1 < heap->size && heap->less(heap->items[child + 1], heap->items[child]))
            child++;
        if (!heap->less(heap->items[child], node))
            break;
        heap_put(heap, at, heap->items[child]);
        at = child;
    }
    heap_put(heap, at, node);
}

int rn_heap_push(rn_heap *heap, rn_heap_node *node)
{
    const int rc = rn_heap_reserve(heap, heap->size + 1);

    if (rc != RATION_OK)
        return rc;
    heap_put(heap, heap->size, node);
    heap->size++;
    heap_rise(heap, node);
    return RATION_OK;
}

rn_heap_node *rn_heap_top(const rn_heap *heap)
{
    return heap->size > 0 ? heap->items[0] : NULL;
}

rn_heap_node *rn_heap_pop(rn_heap *heap)
{
    rn_heap_node *const top = rn_heap_top(heap);

    if (top != NULL)
        rn_heap_remove(heap, top);
    return top;
}

void rn_heap_remove(rn_heap *heap, rn_heap_node *node)
{
    if (!rn_heap_contains(node))
        return;

    const size_t hole = node->index;
    rn_heap_node *const last = heap->items[heap->size - 1];

    heap->size--;
    node->index = RN_HEAP_OUT;
    if (last == node)
        return;
    heap_put(heap, hole, last);
    rn_heap_moved(heap, last);
}

void rn_heap_moved(rn_heap *heap, rn_heap_node *node)
{
    if (!rn_heap_contains(node))
        return;
    heap_rise(heap, node);
    heap_sink(heap, node);
}
