/* SPDX-License-Identifier: MIT */
/*
 * Hash map: uthash's macros, expanded here and nowhere else.
 *
 * uthash keeps members in a list in order of insertion, with a table beside it that grows before chains get long. Its
 * memory comes from the map's own allocator, through the parameter that every function here calls `map`; a failure
 * leaves list and table as they were and the member outside.
 *
 * uthash frees its table with the last member. A map that goes to and fro between none and one would allocate each
 * time, on paths that must not; so a member that nobody sees, the anchor, comes before the first and stays until the
 * map's end. Its key is of a length that no other key has, so no search finds it.
 *
 * Invariants: `size` is the number of members without the anchor; `head` is NULL or the anchor.
 */
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, keylen, hashv) ((hashv) = (unsigned)rn_hash((key), (keylen)))
#define uthash_malloc(bytes) rn_mem_alloc(map->mem, (bytes))
#define uthash_free(block, bytes) rn_mem_free(map->mem, (block))

#include "base/map.h"

#include <limits.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"

#define ANCHOR_SIZE UINT_MAX

uint64_t rn_hash(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

void rn_map_init(rn_map *map, const ration_allocator *mem)
{
    map->mem = mem;
    map->head = NULL;
    map->size = 0;
}

void rn_map_fini(rn_map *map)
{
    HASH_CLEAR(hh, map->head);
    map->size = 0;
}

/* NOLINTBEGIN(readability-function-size): uthash's macros expand to more than a function may hold. */

rn_map_node *rn_map_find(const rn_map *map, const void *key, size_t size)
{
    rn_map_node *found = NULL;

    if (size < ANCHOR_SIZE)
        HASH_FIND(hh, map->head, key, (unsigned)size, found);
    return found;
}

static int anchor_add(rn_map *map)
{
    rn_map_node *anchor = &map->anchor;

    HASH_ADD_KEYPTR_BYHASHVALUE(hh, map->head, anchor, ANCHOR_SIZE, 0, anchor);
    return anchor->hh.tbl == NULL ? RATION_ERR_NOMEM : RATION_OK;
}

int rn_map_add(rn_map *map, rn_map_node *node, const void *key, size_t size)
{
    if (size >= ANCHOR_SIZE || (map->head == NULL && anchor_add(map) != RATION_OK))
        return RATION_ERR_NOMEM;
    HASH_ADD_KEYPTR(hh, map->head, key, (unsigned)size, node);
    if (node->hh.tbl == NULL)
        return RATION_ERR_NOMEM;
    map->size++;
    return RATION_OK;
}

void rn_map_remove(rn_map *map, rn_map_node *node)
{
    HASH_DELETE(hh, map->head, node);
    map->size--;
}

/* NOLINTEND(readability-function-size) */

rn_map_node *rn_map_first(const rn_map *map)
{
    return map->head == NULL ? NULL : rn_map_next(map->head);
}

rn_map_node *rn_map_next(const rn_map_node *node)
{
    return node->hh.next;
}
