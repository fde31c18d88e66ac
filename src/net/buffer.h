/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_BUFFER_H
#define RN_NET_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <ration/types.h>

/* Blocks that queues gave back, kept for the next: where hundreds of answers are under way, the allocator is slow to
 * find theirs. Zeroed is ready for use. */
typedef struct rn_spare {
    struct rn_spare_block *first;
    size_t count;
} rn_spare;

/* When no queue that has it holds a block any more. */
void rn_spare_fini(rn_spare *spare);

/* A queue of bytes: appended at one end, used up at the other. Empty, it holds no memory. Zeroed is ready for use. */
typedef struct rn_buffer {
    char *data;
    size_t from; /* the bytes are [from, to) */
    size_t to;
    size_t capacity;
    rn_spare *spare; /* where its blocks come from and go to; NULL: the allocator */
} rn_buffer;

void rn_buffer_fini(rn_buffer *b);
ration_text rn_buffer_bytes(const rn_buffer *b);
size_t rn_buffer_size(const rn_buffer *b);
bool rn_buffer_grow(rn_buffer *b, size_t size);
/* Room for `size` more bytes; false: no memory, nothing changed. */
static inline bool rn_buffer_reserve(rn_buffer *b, size_t size)
{
    return size <= b->capacity - b->to || rn_buffer_grow(b, size);
}
bool rn_buffer_append(rn_buffer *b, const void *data, size_t size);
/* Append into room that was reserved. Inline, because most of what is put is short and its length known. */
static inline void rn_buffer_put(rn_buffer *b, ration_text text)
{
    if (text.size > 0)
        memcpy(b->data + b->to, text.data, text.size);
    b->to += text.size;
}
/* The first `size` bytes are done with. */
void rn_buffer_consume(rn_buffer *b, size_t size);

#endif
