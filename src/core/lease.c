/* SPDX-License-Identifier: MIT */

/*
 * The table of requests that wait or hold.
 *
 * Leases live in chunks that never move, so that lists and heaps can point at them; a freed one keeps the memory of its
 * places for its next life. The generation grows with every life, so a handle of an earlier one finds nothing:
 * releasing twice is reported and changes nothing. A lease whose generation is used up is retired.
 */

#include "core/lease.h"

#include "base/mem.h"

#define CHUNK 256u

void rn_leases_init(rn_leases *leases, const ration_allocator *mem, uint32_t max, uint32_t first)
{
    *leases = (rn_leases){.mem = mem, .max = max, .before = first > 0 ? first - 1 : 0};
    SLIST_INIT(&leases->free);
}

void rn_leases_fini(rn_leases *leases)
{
    for (uint32_t i = 0; i < leases->size; i++)
        rn_mem_free(leases->mem, rn_leases_at(leases, i)->places);
    for (size_t i = 0; i < leases->chunk_count; i++)
        rn_mem_free(leases->mem, leases->chunks[i]);
    rn_mem_free(leases->mem, leases->chunks);
    *leases = (rn_leases){.mem = leases->mem};
}

rn_lease *rn_leases_at(const rn_leases *leases, uint32_t index)
{
    return &leases->chunks[index / CHUNK][index % CHUNK];
}

static int chunk_add(rn_leases *leases)
{
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): the members are pointers. */
    rn_lease **chunks = rn_mem_resize(leases->mem, leases->chunks, leases->chunk_count + 1, sizeof *chunks);

    if (chunks == NULL)
        return RATION_ERR_NOMEM;
    leases->chunks = chunks;

    rn_lease *chunk = rn_mem_zalloc(leases->mem, CHUNK, sizeof *chunk);

    if (chunk == NULL)
        return RATION_ERR_NOMEM;
    leases->chunks[leases->chunk_count++] = chunk;

    /* Backwards, so that the smallest index is taken first. */
    for (uint32_t i = CHUNK; i-- > 0;) {
        chunk[i].index = leases->size + i;
        chunk[i].generation = leases->before;
        SLIST_INSERT_HEAD(&leases->free, &chunk[i], in_free);
    }
    leases->size += CHUNK;
    return RATION_OK;
}

int rn_leases_reserve(rn_leases *leases, size_t places)
{
    if (leases->used >= leases->max)
        return RATION_ERR_FULL;
    if (SLIST_EMPTY(&leases->free)) {
        const int err = leases->size > UINT32_MAX - CHUNK ? RATION_ERR_FULL : chunk_add(leases);

        if (err != RATION_OK)
            return err;
    }

    rn_lease *lease = SLIST_FIRST(&leases->free);

    if (lease->place_capacity < places) {
        rn_place *grown = rn_mem_resize(leases->mem, lease->places, places, sizeof *grown);

        if (grown == NULL)
            return RATION_ERR_NOMEM;
        lease->places = grown;
        lease->place_capacity = places;
    }
    return RATION_OK;
}

rn_lease *rn_leases_take(rn_leases *leases)
{
    rn_lease *lease = SLIST_FIRST(&leases->free);
    const rn_lease keep = *lease;

    SLIST_REMOVE_HEAD(&leases->free, in_free);
    leases->used++;
    *lease = (rn_lease){
        .index = keep.index,
        .generation = keep.generation + 1,
        .places = keep.places,
        .place_capacity = keep.place_capacity,
    };
    rn_alarm_init(&lease->timer, RN_ALARM_DEADLINE);
    rn_heap_node_init(&lease->look);
    return lease;
}

void rn_leases_put(rn_leases *leases, rn_lease *lease)
{
    lease->state = RN_LEASE_FREE;
    lease->place_count = 0;
    leases->used--;
    if (lease->generation < UINT32_MAX)
        SLIST_INSERT_HEAD(&leases->free, lease, in_free);
}

void rn_leases_untake(rn_leases *leases, rn_lease *lease)
{
    lease->generation--;
    rn_leases_put(leases, lease);
}

rn_lease *rn_leases_find(const rn_leases *leases, ration_lease handle)
{
    if (handle.generation == 0 || handle.index >= leases->size)
        return NULL;

    rn_lease *lease = rn_leases_at(leases, handle.index);

    return lease->state != RN_LEASE_FREE && lease->generation == handle.generation ? lease : NULL;
}

ration_lease rn_lease_handle(const rn_lease *lease)
{
    return (ration_lease){lease->index, lease->generation};
}

bool rn_place_less(const rn_heap_node *a, const rn_heap_node *b)
{
    const rn_place *x = (const rn_place *)(const void *)a;
    const rn_place *y = (const rn_place *)(const void *)b;

    return rn_rank_before(&x->lease->rank, &y->lease->rank);
}

static const rn_lease *lease_of_look(const rn_heap_node *node)
{
    return (const rn_lease *)(const void *)((const char *)node - offsetof(rn_lease, look));
}

bool rn_look_less(const rn_heap_node *a, const rn_heap_node *b)
{
    const rn_lease *x = lease_of_look(a);
    const rn_lease *y = lease_of_look(b);

    if (x->route->provider != y->route->provider)
        return x->route->provider->index < y->route->provider->index;
    return rn_rank_before(&x->rank, &y->rank);
}

rn_place *rn_place_by_charge(rn_heap_node *node)
{
    return node == NULL ? NULL : (rn_place *)(void *)((char *)node - offsetof(rn_place, by_charge));
}

bool rn_charge_more(const rn_heap_node *a, const rn_heap_node *b)
{
    const rn_place *x = (const rn_place *)(const void *)((const char *)a - offsetof(rn_place, by_charge));
    const rn_place *y = (const rn_place *)(const void *)((const char *)b - offsetof(rn_place, by_charge));

    return x->charge > y->charge;
}
