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

void rn_buffer_fini(rn_buffer *b)
{
    free(b->data);
    memset(b, 0, sizeof *b);
}

ration_text rn_buffer_bytes(const rn_buffer *b)
{
    return (ration_text){b->data != NULL ? b->data + b->from : "", b->to - b->from};
}

size_t rn_buffer_size(const rn_buffer *b)
{
    return b->to - b->from;
}

bool rn_buffer_reserve(rn_buffer *b, size_t size)
{
    const size_t used = b->to - b->from;
    size_t capacity = b->capacity > 0 ? b->capacity : FIRST_BLOCK;

    if (size <= b->capacity - b->to)
        return true;
    if (size > SIZE_MAX / 4 || used > SIZE_MAX / 4)
        return false;
    while (capacity < used + size)
        capacity *= 2;
    if (capacity == b->capacity) {
        memmove(b->data, b->data + b->from, used);
    } else {
        char *data = malloc(capacity);

        if (data == NULL)
            return false;
        if (used > 0)
            memcpy(data, b->data + b->from, used);
        free(b->data);
        b->data = data;
        b->capacity = capacity;
    }
    b->from = 0;
    b->to = used;
    return true;
}

void rn_buffer_put(rn_buffer *b, ration_text text)
{
    if (text.size > 0)
        memcpy(b->data + b->to, text.data, text.size);
    b->to += text.size;
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
