/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_BUFFER_H
#define RN_NET_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include <ration/types.h>

/* A queue of bytes: appended at one end, used up at the other. Empty, it holds no memory. Zeroed is ready for use. */
typedef struct rn_buffer {
    char *data;
    size_t from; /* the bytes are [from, to) */
    size_t to;
    size_t capacity;
} rn_buffer;

void rn_buffer_fini(rn_buffer *b);
ration_text rn_buffer_bytes(const rn_buffer *b);
size_t rn_buffer_size(const rn_buffer *b);
/* Room for `size` more bytes; false: no memory, nothing changed. */
bool rn_buffer_reserve(rn_buffer *b, size_t size);
bool rn_buffer_append(rn_buffer *b, const void *data, size_t size);
/* Append into room that was reserved. */
void rn_buffer_put(rn_buffer *b, ration_text text);
/* The first `size` bytes are done with. */
void rn_buffer_consume(rn_buffer *b, size_t size);

#endif
