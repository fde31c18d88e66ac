/* SPDX-License-Identifier: MIT */
/*
 * The ids that a trace has in use. An entry is in all three maps or in none, and owns its text.
 */
#include "trace/ids.h"

#include <string.h>

#include "base/mem.h"

static rn_trace_id *of_text(rn_map_node *node)
{
    return node != NULL ? (void *)((char *)node - offsetof(rn_trace_id, by_text)) : NULL;
}

static rn_trace_id *of_lease(rn_map_node *node)
{
    return node != NULL ? (void *)((char *)node - offsetof(rn_trace_id, by_lease)) : NULL;
}

static rn_trace_id *of_serial(rn_map_node *node)
{
    return node != NULL ? (void *)((char *)node - offsetof(rn_trace_id, by_serial)) : NULL;
}

void rn_ids_init(rn_ids *ids, const ration_allocator *mem)
{
    ids->mem = mem;
    rn_map_init(&ids->texts, mem);
    rn_map_init(&ids->leases, mem);
    rn_map_init(&ids->serials, mem);
}

void rn_ids_fini(rn_ids *ids)
{
    for (rn_map_node *node = rn_map_first(&ids->texts); node != NULL; node = rn_map_first(&ids->texts))
        rn_ids_remove(ids, of_text(node));
    rn_map_fini(&ids->texts);
    rn_map_fini(&ids->leases);
    rn_map_fini(&ids->serials);
}

rn_trace_id *rn_ids_find(const rn_ids *ids, ration_text text)
{
    return of_text(rn_map_find(&ids->texts, text.data, text.size));
}

rn_trace_id *rn_ids_find_lease(const rn_ids *ids, ration_lease lease)
{
    return of_lease(rn_map_find(&ids->leases, &lease, sizeof lease));
}

rn_trace_id *rn_ids_find_serial(const rn_ids *ids, uint64_t serial)
{
    return of_serial(rn_map_find(&ids->serials, &serial, sizeof serial));
}

ration_text rn_trace_id_text(const rn_trace_id *id)
{
    return (ration_text){id->data, id->size};
}

rn_trace_id *rn_ids_new(const rn_ids *ids, ration_text text)
{
    rn_trace_id *const id = rn_mem_alloc(ids->mem, sizeof *id + text.size);

    if (id == NULL)
        return NULL;
    *id = (rn_trace_id){.size = text.size};
    memcpy(id->data, text.data, text.size);
    return id;
}

void rn_ids_drop(const rn_ids *ids, rn_trace_id *id)
{
    rn_mem_free(ids->mem, id);
}

int rn_ids_add(rn_ids *ids, rn_trace_id *id, ration_lease lease, uint64_t serial)
{
    id->lease = lease;
    id->serial = serial;
    if (rn_map_add(&ids->texts, &id->by_text, id->data, id->size) != RATION_OK)
        goto fail;
    if (rn_map_add(&ids->leases, &id->by_lease, &id->lease, sizeof id->lease) != RATION_OK)
        goto fail_lease;
    if (rn_map_add(&ids->serials, &id->by_serial, &id->serial, sizeof id->serial) != RATION_OK)
        goto fail_serial;
    return RATION_OK;
fail_serial:
    rn_map_remove(&ids->leases, &id->by_lease);
fail_lease:
    rn_map_remove(&ids->texts, &id->by_text);
fail:
    rn_ids_drop(ids, id);
    return RATION_ERR_NOMEM;
}

void rn_ids_remove(rn_ids *ids, rn_trace_id *id)
{
    rn_map_remove(&ids->texts, &id->by_text);
    rn_map_remove(&ids->leases, &id->by_lease);
    rn_map_remove(&ids->serials, &id->by_serial);
    rn_ids_drop(ids, id);
}
