/* SPDX-License-Identifier: MIT */
#ifndef RN_LEDGER_BATCH_H
#define RN_LEDGER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/heap.h"
#include "base/map.h"
#include "ledger/ledger.h"

/*
 * What is to be kept, by thing: a record of the engine, or the last runs of a job. Of each thing there are up to three
 * copies: as it is in the store, as it is on its way there, and as it was put last.
 */

/* Of a job's runs, beside the types of records. */
#define RN_THING_RUNS (RATION_RECORD_PAUSE + 1)

typedef struct rn_kept_run {
    int64_t number; /* of a job's runs, upwards */
    ration_time at;
    ration_run run;
} rn_kept_run;

/* One allocation. Texts of a record are those of its thing, arrays stand behind. Never changed once made. */
typedef struct rn_copy {
    ration_record record;
    rn_kept_run *runs; /* instead of a record: the oldest first */
    size_t run_count;
} rn_copy;

/* Stands for "it is to go". */
extern const rn_copy rn_copy_gone;

typedef struct rn_thing {
    rn_map_node node;
    rn_heap_node in_ends;
    TAILQ_ENTRY(rn_thing) in_waiting;
    TAILQ_ENTRY(rn_thing) in_flight;
    const rn_copy *stored; /* NULL: it is not in the store */
    const rn_copy *flying; /* NULL: nothing is under way; &rn_copy_gone: that it goes */
    const rn_copy *waiting;
    int64_t id;      /* of a quota: its arrays are stored under this number */
    int64_t ends_us; /* from then on it is of no use */
    unsigned type;
    uint32_t name_size;
    char name[];
} rn_thing;

typedef TAILQ_HEAD(rn_things, rn_thing) rn_things;

typedef struct rn_batch {
    rn_map things;
    rn_heap ends;
    rn_things waiting;
    rn_things flight;
    size_t waiting_count;
    size_t flight_count;
    int64_t last_id;
} rn_batch;

void rn_batch_init(rn_batch *batch);
void rn_batch_fini(rn_batch *batch);

/* RATION_ERR_INVALID for what could not be loaded again, RATION_ERR_RANGE for names beyond all measure,
 * RATION_ERR_NOMEM; nothing is then changed. */
int rn_batch_put(rn_batch *batch, const ration_record *record);
int rn_batch_put_run(rn_batch *batch, const rn_ledger_run *run);

/* What a store has: as if it had been put and written. RATION_ERR_FULL: there is such a thing already. */
int rn_batch_restore(rn_batch *batch, const ration_record *record, int64_t id);
int rn_batch_restore_runs(rn_batch *batch, ration_text job, const rn_kept_run *runs, size_t count);

/*
 * All that waits takes off, and what is of no use at `now` is to go. Until it has landed, what is in flight may be read
 * by another thread.
 */
void rn_batch_take_off(rn_batch *batch, ration_time now);
/* It is in the store; or not, and then waits again where nothing newer does. */
void rn_batch_land(rn_batch *batch, bool stored);

/* A thing's last copy that is not under way. */
const rn_copy *rn_thing_latest(const rn_thing *thing);
/* Of runs. */
ration_text rn_thing_job(const rn_thing *thing);

#endif
