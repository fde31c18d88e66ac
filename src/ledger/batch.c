/* SPDX-License-Identifier: MIT */
/*
 * What is to be kept, in memory.
 *
 * A thing is known by its type and its texts. A put makes a new copy and drops the one that waited; so what cannot be
 * written for hours takes no more room than what there is. A copy is never changed, so the thread that writes can read
 * it while the loop makes others, and can tell from the copy that is in the store which rows of an array have changed.
 *
 * Things are of use for a time. A heap knows which ends first, so a take-off finds those that are over without a look
 * at the rest; they leave the store like anything else that is written.
 *
 * Invariants: a thing is in `waiting` if and only if it has a waiting copy, and in `flight` if and only if it has a
 * flying one. It has at least one of the three copies. Between a take-off and its landing, `stored` and `flying` are
 * not changed.
 */
#include "ledger/batch.h"

#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "core/state.h"

#define NAME_MAX_BYTES 65536u
#define DAY_US INT64_C(86400000000)
#define STALE_US (400 * DAY_US) /* the longest bucket, and then some */

const rn_copy rn_copy_gone = {.run_count = 0};

/* ---- names ---- */

/* How a name begins; then come the texts. */
typedef struct name_head {
    uint32_t type;
    uint32_t provider_size;
    uint32_t limit_size; /* UINT32_MAX: the limit is absent */
} name_head;

#define NAME_ROOM (sizeof(name_head) + NAME_MAX_BYTES)

static char *text_add(char *at, ration_text text)
{
    if (text.size > 0)
        memcpy(at, text.data, text.size);
    return at + text.size;
}

/* RATION_ERR_RANGE: too long. `name` has NAME_ROOM bytes. */
static int name_make(unsigned type, const ration_text texts[3], char *name, uint32_t *size)
{
    const bool limited = texts[1].data != NULL;

    if (texts[0].size > NAME_MAX_BYTES || texts[1].size > NAME_MAX_BYTES || texts[2].size > NAME_MAX_BYTES ||
        texts[0].size + texts[1].size + texts[2].size > NAME_MAX_BYTES)
        return RATION_ERR_RANGE;

    const name_head head = {type, (uint32_t)texts[0].size, limited ? (uint32_t)texts[1].size : UINT32_MAX};
    char *end = name + sizeof head;

    memcpy(name, &head, sizeof head);
    for (size_t i = 0; i < 3; i++)
        end = text_add(end, texts[i]);
    *size = (uint32_t)(end - name);
    return RATION_OK;
}

/* The texts of a thing, as they stand in its name. */
static void name_texts(const rn_thing *thing, ration_text texts[3])
{
    name_head head;
    const char *at = thing->name + sizeof head;

    memcpy(&head, thing->name, sizeof head);
    texts[0] = (ration_text){at, head.provider_size};
    at += head.provider_size;
    texts[1] = (ration_text){NULL, 0};
    if (head.limit_size != UINT32_MAX) {
        texts[1] = (ration_text){at, head.limit_size};
        at += head.limit_size;
    }
    texts[2] = (ration_text){at, (size_t)(thing->name + thing->name_size - at)};
}

ration_text rn_thing_job(const rn_thing *thing)
{
    ration_text texts[3];

    name_texts(thing, texts);
    return texts[2];
}

/* ---- copies ---- */

static void copy_free(const rn_copy *copy)
{
    union {
        const rn_copy *shared;
        void *own;
    } mine = {.shared = copy};

    if (copy != &rn_copy_gone)
        rn_mem_free(rn_mem_default(), mine.own);
}

static rn_copy *copy_make(const rn_thing *thing, const ration_record *record)
{
    const ration_quota_record *q = record->type == RATION_RECORD_QUOTA ? &record->u.quota : NULL;
    const size_t parts = q != NULL ? q->part_count : 0;
    const size_t spans = q != NULL ? q->timeline_count : 0;
    rn_copy *copy = NULL;

    if (parts <= SIZE_MAX / sizeof(ration_part) / 4 && spans <= SIZE_MAX / sizeof(ration_part) / 4)
        copy = rn_mem_alloc(rn_mem_default(), sizeof *copy + (parts + spans) * sizeof(ration_part));
    if (copy == NULL)
        return NULL;
    *copy = (rn_copy){.record = *record};

    ration_text texts[3];

    name_texts(thing, texts);
    copy->record.provider = texts[0];
    copy->record.limit = texts[1];
    copy->record.key = texts[2];
    if (q != NULL) {
        ration_part *array = (ration_part *)(void *)(copy + 1);

        if (parts > 0)
            memcpy(array, q->parts, parts * sizeof *array);
        if (spans > 0)
            memcpy(array + parts, q->timeline, spans * sizeof *array);
        copy->record.u.quota.parts = array;
        copy->record.u.quota.timeline = array + parts;
    }
    return copy;
}

static rn_copy *runs_make(const rn_kept_run *runs, size_t count, const rn_kept_run *more)
{
    const size_t drop = more != NULL && count == RATION_RUNS_MAX ? 1 : 0;
    rn_copy *copy = rn_mem_alloc(rn_mem_default(), sizeof *copy + RATION_RUNS_MAX * sizeof *runs);

    if (copy == NULL)
        return NULL;
    *copy = (rn_copy){.run_count = count - drop};
    copy->runs = (rn_kept_run *)(void *)(copy + 1);
    if (copy->run_count > 0)
        memcpy(copy->runs, runs + drop, copy->run_count * sizeof *runs);
    if (more != NULL)
        copy->runs[copy->run_count++] = *more;
    return copy;
}

/* From when on is it of no use? A window's end is not enough: what was used in it is reported through the next one, and
 * what had not arrived by its end may count there. */
static int64_t record_ends_us(const ration_record *record)
{
    const ration_quota_record *q = &record->u.quota;

    switch (record->type) {
    case RATION_RECORD_QUOTA:
        if (q->rolling_us > 0)
            return rn_add(record->at.us, rn_mul(q->rolling_us, 3));
        if (rn_time_before(q->window_start, q->window_end))
            return rn_add(q->window_end.us, rn_sub(q->window_end.us, q->window_start.us));
        break;
    case RATION_RECORD_PENALTY:
        return rn_add(record->u.penalty.until.us, DAY_US);
    case RATION_RECORD_PAUSE:
        /* Until an operator ends it, however long nobody asks. */
        if (record->u.paused)
            return RATION_NEVER_US;
        break;
    case RATION_RECORD_BUCKET:
    case RATION_RECORD_ADAPTIVE:
    case RATION_RECORD_BREAKER:
        break;
    }
    return rn_add(record->at.us, STALE_US);
}

static int64_t copy_ends_us(const rn_copy *copy)
{
    if (copy->runs != NULL)
        return rn_add(copy->runs[copy->run_count - 1].at.us, STALE_US);
    return record_ends_us(&copy->record);
}

/* ---- things ---- */

static rn_thing *thing_of(const rn_map_node *node)
{
    union {
        const rn_map_node *node;
        rn_thing *thing; /* the first member */
    } cast = {.node = node};

    return cast.thing;
}

static rn_thing *thing_in_ends(rn_heap_node *node)
{
    return (rn_thing *)(void *)((char *)node - offsetof(rn_thing, in_ends));
}

static bool ends_before(const rn_heap_node *a, const rn_heap_node *b)
{
    const rn_thing *x = (const rn_thing *)(const void *)((const char *)a - offsetof(rn_thing, in_ends));
    const rn_thing *y = (const rn_thing *)(const void *)((const char *)b - offsetof(rn_thing, in_ends));

    return x->ends_us < y->ends_us;
}

void rn_batch_init(rn_batch *batch)
{
    *batch = (rn_batch){.last_id = 0};
    rn_map_init(&batch->things, rn_mem_default());
    rn_heap_init(&batch->ends, rn_mem_default(), ends_before);
    TAILQ_INIT(&batch->waiting);
    TAILQ_INIT(&batch->flight);
}

static void thing_free(rn_batch *batch, rn_thing *thing)
{
    rn_heap_remove(&batch->ends, &thing->in_ends);
    rn_map_remove(&batch->things, &thing->node);
    copy_free(thing->stored);
    copy_free(thing->flying);
    copy_free(thing->waiting);
    rn_mem_free(rn_mem_default(), thing);
}

void rn_batch_fini(rn_batch *batch)
{
    rn_map_node *node;

    while ((node = rn_map_first(&batch->things)) != NULL)
        thing_free(batch, thing_of(node));
    rn_map_fini(&batch->things);
    rn_heap_fini(&batch->ends);
}

const rn_copy *rn_thing_latest(const rn_thing *thing)
{
    if (thing->waiting != NULL)
        return thing->waiting;
    return thing->flying != NULL ? thing->flying : thing->stored;
}

/* A thing without a copy yet. NULL: no memory. */
static rn_thing *thing_new(rn_batch *batch, unsigned type, const char *name, uint32_t size)
{
    rn_thing *thing = rn_mem_zalloc(rn_mem_default(), 1, sizeof *thing + size);

    if (thing == NULL)
        return NULL;
    thing->type = type;
    thing->name_size = size;
    memcpy(thing->name, name, size);
    rn_heap_node_init(&thing->in_ends);
    if (rn_map_add(&batch->things, &thing->node, thing->name, size) != RATION_OK) {
        rn_mem_free(rn_mem_default(), thing);
        return NULL;
    }
    if (rn_heap_push(&batch->ends, &thing->in_ends) != RATION_OK) {
        thing_free(batch, thing);
        return NULL;
    }
    return thing;
}

/* Find a thing or make one, which has no copy yet; `*made` tells. RATION_ERR_NOMEM, RATION_ERR_RANGE. */
static int thing_make(rn_batch *batch, unsigned type, const ration_text texts[3], rn_thing **out, bool *made)
{
    char name[1024];
    char *full = name;
    uint32_t size = 0;

    if (texts[0].size > 256 || texts[1].size > 256 || texts[2].size > 256) {
        full = rn_mem_alloc(rn_mem_default(), NAME_ROOM);
        if (full == NULL)
            return RATION_ERR_NOMEM;
    }

    int err = name_make(type, texts, full, &size);

    if (err == RATION_OK) {
        rn_map_node *node = rn_map_find(&batch->things, full, size);

        *made = node == NULL;
        *out = node != NULL ? thing_of(node) : thing_new(batch, type, full, size);
        err = *out != NULL ? RATION_OK : RATION_ERR_NOMEM;
    }
    if (full != name)
        rn_mem_free(rn_mem_default(), full);
    return err;
}

static void thing_ends(rn_batch *batch, rn_thing *thing, const rn_copy *copy)
{
    thing->ends_us = copy_ends_us(copy);
    if (rn_heap_contains(&thing->in_ends))
        rn_heap_moved(&batch->ends, &thing->in_ends);
}

static void thing_waits(rn_batch *batch, rn_thing *thing, const rn_copy *copy)
{
    if (thing->waiting == NULL) {
        TAILQ_INSERT_TAIL(&batch->waiting, thing, in_waiting);
        batch->waiting_count++;
    } else {
        copy_free(thing->waiting);
    }
    thing->waiting = copy;
}

/* A copy that has been made, or not: the thing takes it, or goes as it came. */
static int thing_put(rn_batch *batch, rn_thing *thing, const rn_copy *copy)
{
    if (copy != NULL && !rn_heap_contains(&thing->in_ends) &&
        rn_heap_push(&batch->ends, &thing->in_ends) != RATION_OK) {
        copy_free(copy);
        copy = NULL;
    }
    if (copy == NULL) {
        if (rn_thing_latest(thing) == NULL)
            thing_free(batch, thing);
        return RATION_ERR_NOMEM;
    }
    thing_waits(batch, thing, copy);
    thing_ends(batch, thing, copy);
    return RATION_OK;
}

/* A limit is absent or has a name, as its type asks. */
static bool is_named(const ration_record *record)
{
    const bool limited = record->limit.data != NULL;

    if (limited && record->limit.size == 0)
        return false;
    if (record->type == RATION_RECORD_PENALTY)
        return true;
    return limited == (record->type != RATION_RECORD_BREAKER);
}

/* The thing that a record is of, as it can be written and loaded. */
static int thing_of_record(rn_batch *batch, const ration_record *record, rn_thing **thing, bool *made)
{
    const ration_text texts[] = {record->provider, record->limit, record->key};

    if (!rn_record_is_valid(record, ration_time_of(RATION_TIME_MAX_US)) || !is_named(record))
        return RATION_ERR_INVALID;
    return thing_make(batch, (unsigned)record->type, texts, thing, made);
}

int rn_batch_put(rn_batch *batch, const ration_record *record)
{
    rn_thing *thing = NULL;
    bool made;
    const int err = thing_of_record(batch, record, &thing, &made);

    if (err != RATION_OK)
        return err;
    if (made && record->type == RATION_RECORD_QUOTA)
        thing->id = ++batch->last_id;
    return thing_put(batch, thing, copy_make(thing, record));
}

static bool run_is_valid(const rn_kept_run *run)
{
    return run->number >= 0 && run->number < INT64_MAX / 2 && run->at.us >= 0 && run->at.us <= RATION_TIME_MAX_US &&
           run->run.requests >= 0 && run->run.retries >= 0 && run->run.fan_out >= 0;
}

int rn_batch_put_run(rn_batch *batch, const rn_ledger_run *run)
{
    const ration_text texts[] = {{NULL, 0}, {NULL, 0}, run->job};
    rn_kept_run kept = {0, run->at, run->run};
    rn_thing *thing = NULL;
    bool made;

    if (run->job.data == NULL || !run_is_valid(&kept))
        return RATION_ERR_INVALID;

    const int err = thing_make(batch, RN_THING_RUNS, texts, &thing, &made);

    if (err != RATION_OK)
        return err;

    const rn_copy *last = rn_thing_latest(thing);

    if (last == NULL || last->runs == NULL)
        return thing_put(batch, thing, runs_make(NULL, 0, &kept));
    kept.number = last->runs[last->run_count - 1].number + 1;
    return thing_put(batch, thing, runs_make(last->runs, last->run_count, &kept));
}

static int thing_restore(rn_batch *batch, rn_thing *thing, const rn_copy *copy)
{
    if (copy == NULL) {
        thing_free(batch, thing);
        return RATION_ERR_NOMEM;
    }
    thing->stored = copy;
    thing_ends(batch, thing, copy);
    return RATION_OK;
}

int rn_batch_restore(rn_batch *batch, const ration_record *record, int64_t id)
{
    rn_thing *thing = NULL;
    bool made;
    const int err = thing_of_record(batch, record, &thing, &made);

    if (err != RATION_OK)
        return err;
    if (!made)
        return RATION_ERR_FULL;
    thing->id = id;
    batch->last_id = rn_max(batch->last_id, id);
    return thing_restore(batch, thing, copy_make(thing, record));
}

int rn_batch_restore_runs(rn_batch *batch, ration_text job, const rn_kept_run *runs, size_t count)
{
    const ration_text texts[] = {{NULL, 0}, {NULL, 0}, job};
    rn_thing *thing = NULL;
    bool made;

    for (size_t i = 0; i < count; i++) {
        if (!run_is_valid(&runs[i]))
            return RATION_ERR_INVALID;
    }

    const int err = thing_make(batch, RN_THING_RUNS, texts, &thing, &made);

    if (err != RATION_OK)
        return err;
    if (!made)
        return RATION_ERR_FULL;
    return thing_restore(batch, thing, runs_make(runs, count, NULL));
}

/* ---- flights ---- */

void rn_batch_take_off(rn_batch *batch, ration_time now)
{
    rn_heap_node *node;
    rn_thing *thing;

    while ((node = rn_heap_top(&batch->ends)) != NULL && thing_in_ends(node)->ends_us <= now.us) {
        thing = thing_in_ends(node);
        rn_heap_remove(&batch->ends, node);
        thing_waits(batch, thing, &rn_copy_gone);
    }
    while ((thing = TAILQ_FIRST(&batch->waiting)) != NULL) {
        TAILQ_REMOVE(&batch->waiting, thing, in_waiting);
        TAILQ_INSERT_TAIL(&batch->flight, thing, in_flight);
        thing->flying = thing->waiting;
        thing->waiting = NULL;
    }
    batch->flight_count = batch->waiting_count;
    batch->waiting_count = 0;
}

static void thing_lands(rn_batch *batch, rn_thing *thing, bool stored)
{
    const rn_copy *copy = thing->flying;

    thing->flying = NULL;
    if (stored) {
        copy_free(thing->stored);
        thing->stored = copy == &rn_copy_gone ? NULL : copy;
    } else if (thing->waiting == NULL) {
        thing_waits(batch, thing, copy);
    } else {
        copy_free(copy);
    }
    if (rn_thing_latest(thing) == NULL)
        thing_free(batch, thing);
}

void rn_batch_land(rn_batch *batch, bool stored)
{
    rn_thing *thing;

    while ((thing = TAILQ_FIRST(&batch->flight)) != NULL) {
        TAILQ_REMOVE(&batch->flight, thing, in_flight);
        thing_lands(batch, thing, stored);
    }
    batch->flight_count = 0;
}
