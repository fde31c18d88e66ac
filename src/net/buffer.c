/* SPDX-License-Identifier: MIT */
/*
 * A queue of bytes in one block.
 *
 * Used bytes are not moved up until room is needed, so that sending a long queue in parts copies nothing. An empty
 * queue gives its block back: thousands of connections wait with nothing to say.
 *
 * Invariant: from <= to <= capacity; data is NULL exactly if capacity is 0.
 */

#include "net/buffer.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BLOCK 1024
#define MAX_SPARE 64

typedef struct rn_spare_block {
    struct rn_spare_block *next;
    char unused[FIRST_BLOCK - sizeof(void *)];
} rn_spare_block;

void rn_spare_fini(rn_spare *spare)
{
    rn_spare_block *block;

    while ((block = spare->first) != NULL) {
        spare->first = block->next;
        free(block);
    }
    spare->count = 0;
}

static void *block_new(rn_spare *spare, size_t capacity)
{
    if (capacity != FIRST_BLOCK || spare == NULL || spare->first == NULL)
        return malloc(capacity);

    rn_spare_block *block = spare->first;
    spare->first = block->next;
    spare->count--;
    return block;
}

static void block_free(rn_spare *spare, void *data, size_t capacity)
{
    if (capacity != FIRST_BLOCK || spare == NULL || spare->count == MAX_SPARE) {
        free(data);
        return;
    }

    rn_spare_block *block = data;
    block->next = spare->first;
    spare->first = block;
    spare->count++;
}

void rn_buffer_fini(rn_buffer *b)
{
    block_free(b->spare, b->data, b->capacity);
    *b = (rn_buffer){.spare = b->spare};
}

ration_text rn_buffer_bytes(const rn_buffer *b)
{
    return (ration_text){b->data != NULL ? b->data + b->from : "", b->to - b->from};
}

size_t rn_buffer_size(const rn_buffer *b)
{
    return b->to - b->from;
}

/* There is not the room yet. */
bool rn_buffer_grow(rn_buffer *b, size_t size)
{
    const size_t used = b->to - b->from;
    size_t capacity = b->capacity > 0 ? b->capacity : FIRST_BLOCK;

    if (size > SIZE_MAX / 4 || used > SIZE_MAX / 4)
        return false;
    while (capacity < used + size)
        capacity *= 2;
    if (capacity == b->capacity) {
        memmove(b->data, b->data + b->from, used);
    } else {
        char *data = block_new(b->spare, capacity);

        if (data == NULL)
            return false;
        if (used > 0)
            memcpy(data, b->data + b->from, used);
        block_free(b->spare, b->data, b->capacity);
        b->data = data;
        b->capacity = capacity;
    }
    b->from = 0;
    b->to = used;
    return true;
}

bool rn_buffer_append(rn_buffer *b, const void *data, size_t size)
{
    if (!rn_buffer_reserve(b, size))
        return false;
    rn_buffer_put(b, (ration_text){data, size});
    return true;
}

void rn_buffer_consume(rn_buffer *b, size_t size)
{
    b->from += size;
    if (b->from == b->to)
        rn_buffer_fini(b);
}
