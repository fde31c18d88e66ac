/* SPDX-License-Identifier: MIT */
/*
 * Records by what they are of: type, provider, limit and key. An entry is one block of memory with everything that the
 * record points to, so that it goes from the batch to what is durable by changing maps.
 *
 * Invariant: an entry is in exactly one of the two maps, and a thing has at most one entry in each.
 */
#include "simulate/store.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

typedef struct entry {
    rn_map_node node;
    ration_record record;
    size_t name_size;
    char *name;
    char room[]; /* parts first, for their alignment, then texts and the name */
} entry;

void rn_store_init(rn_store *store)
{
    *store = (rn_store){.err = 0};
    rn_map_init(&store->batch, rn_mem_default());
    rn_map_init(&store->durable, rn_mem_default());
}

static void map_empty(rn_map *map)
{
    rn_map_node *node;

    while ((node = rn_map_first(map)) != NULL) {
        rn_map_remove(map, node);
        rn_mem_free(rn_mem_default(), node);
    }
}

void rn_store_fini(rn_store *store)
{
    map_empty(&store->batch);
    map_empty(&store->durable);
    rn_map_fini(&store->batch);
    rn_map_fini(&store->durable);
    rn_mem_free(rn_mem_default(), store->loaded);
}

static ration_text text_copy(char **room, ration_text text)
{
    const ration_text copy = {text.data != NULL ? *room : NULL, text.size};

    if (text.data != NULL && text.size > 0)
        memcpy(*room, text.data, text.size);
    *room += text.size;
    return copy;
}

static const ration_part *parts_copy(char **room, const ration_part *parts, size_t count)
{
    char *const copy = *room;

    if (parts != NULL && count > 0)
        memcpy(copy, parts, count * sizeof *parts);
    *room += count * sizeof *parts;
    return (const ration_part *)(const void *)copy;
}

/* A type and three texts, each ended by a byte that no name has. */
static void name_write(char *name, const ration_record *record)
{
    const ration_text texts[] = {record->provider, record->limit, record->key};

    *name++ = (char)record->type;
    for (size_t i = 0; i < 3; i++) {
        if (texts[i].size > 0)
            memcpy(name, texts[i].data, texts[i].size);
        name += texts[i].size;
        *name++ = '\0';
    }
}

static entry *entry_new(const ration_record *record)
{
    const bool is_quota = record->type == RATION_RECORD_QUOTA;
    const size_t parts = is_quota ? record->u.quota.part_count + record->u.quota.timeline_count : 0;
    const size_t texts = record->provider.size + record->limit.size + record->key.size;
    const size_t name_size = texts + 4;
    entry *e = rn_mem_zalloc(rn_mem_default(), 1, sizeof *e + parts * sizeof(ration_part) + texts + name_size);

    if (e == NULL)
        return NULL;

    char *room = e->room;
    e->record = *record;
    if (is_quota) {
        e->record.u.quota.parts = parts_copy(&room, record->u.quota.parts, record->u.quota.part_count);
        e->record.u.quota.timeline = parts_copy(&room, record->u.quota.timeline, record->u.quota.timeline_count);
    }
    e->record.provider = text_copy(&room, record->provider);
    e->record.limit = text_copy(&room, record->limit);
    e->record.key = text_copy(&room, record->key);
    e->name = room;
    e->name_size = name_size;
    name_write(e->name, record);
    return e;
}

/* Into a map, in the place of one of the same name. */
static int entry_place(rn_map *map, entry *e)
{
    rn_map_node *before = rn_map_find(map, e->name, e->name_size);

    if (before != NULL) {
        rn_map_remove(map, before);
        rn_mem_free(rn_mem_default(), before);
    }
    return rn_map_add(map, &e->node, e->name, e->name_size);
}

void rn_store_put(void *ctx, const ration_record *record)
{
    rn_store *store = ctx;
    entry *e = entry_new(record);

    if (e == NULL || entry_place(&store->batch, e) != 0) {
        rn_mem_free(rn_mem_default(), e);
        store->err = RATION_ERR_NOMEM;
    }
}

int rn_store_commit(rn_store *store)
{
    rn_map_node *node;
    int err = store->err;

    while (err == 0 && (node = rn_map_first(&store->batch)) != NULL) {
        rn_map_remove(&store->batch, node);
        err = entry_place(&store->durable, (entry *)(void *)node);
        if (err != 0)
            rn_mem_free(rn_mem_default(), node);
    }
    return err;
}

void rn_store_drop(rn_store *store)
{
    map_empty(&store->batch);
    store->err = 0;
}

static const ration_record *record_of(const rn_map_node *node)
{
    return &((const entry *)(const void *)node)->record;
}

ration_time rn_store_newest(const rn_store *store)
{
    ration_time newest = {0};

    for (rn_map_node *node = rn_map_first(&store->durable); node != NULL; node = rn_map_next(node))
        newest = rn_time_max(newest, record_of(node)->at);
    return newest;
}

int rn_store_load(rn_store *store, bool unclean, ration_state *out)
{
    const size_t count = store->durable.size;
    ration_record *records = rn_mem_zalloc(rn_mem_default(), count, sizeof *records);
    size_t i = 0;

    if (records == NULL)
        return RATION_ERR_NOMEM;
    for (rn_map_node *node = rn_map_first(&store->durable); node != NULL; node = rn_map_next(node))
        records[i++] = *record_of(node);
    rn_mem_free(rn_mem_default(), store->loaded);
    store->loaded = records;
    *out = (ration_state){.records = records, .count = count, .unclean = unclean};
    return 0;
}
