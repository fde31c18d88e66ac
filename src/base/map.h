/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_MAP_H
#define RN_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include <ration/engine.h>

/*
 * Bytes to members: uthash with XXH3 behind a small door (uthash's macros are expanded in map.c alone). Intrusive; the
 * key's bytes live in the member and must not move or change while it is in the map. Iteration is in order of
 * insertion.
 */

typedef struct rn_map_node {
    UT_hash_handle hh;
} rn_map_node;

/* Must not move while it has had members. */
typedef struct rn_map {
    const ration_allocator *mem;
    rn_map_node *head;
    size_t size;
    rn_map_node anchor; /* a member that nobody sees, the first to come and the last to go */
} rn_map;

void rn_map_init(rn_map *map, const ration_allocator *mem);
void rn_map_fini(rn_map *map); /* forgets the members, frees the table */
rn_map_node *rn_map_find(const rn_map *map, const void *key, size_t size);
int rn_map_add(rn_map *map, rn_map_node *node, const void *key, size_t size); /* RATION_ERR_NOMEM: nothing changed */
void rn_map_remove(rn_map *map, rn_map_node *node);
rn_map_node *rn_map_first(const rn_map *map);
rn_map_node *rn_map_next(const rn_map_node *node);

/* One hash for the whole project: XXH3, 64 bits. */
uint64_t rn_hash(const void *data, size_t size);

#endif
