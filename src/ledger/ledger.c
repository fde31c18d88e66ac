/* SPDX-License-Identifier: MIT */
/*
 * A ledger: a batch in memory and a store for it.
 *
 * The loop puts; a flush lets all that waits take off, a thread writes it, and its end comes back to the loop, where
 * the batch lands. So the thread reads only what nobody changes, and nobody but the loop touches the rest.
 *
 * Invariants: at most one flight; `work` is set exactly while a thread has it. What the thread tells stands in `told`,
 * which the loop reads after the thread has returned.
 */
#include "ledger/ledger.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/units.h"
#include "ledger/batch.h"
#include "ledger/store.h"
#include "net/clock.h"
#include "net/work.h"

/* How a flight went. */
typedef struct told {
    int err;
    int64_t us;
    rn_ledger_error error;
} told;

struct rn_ledger {
    rn_batch batch;
    rn_store *store;
    char *path; /* NULL: none */
    rn_arena loaded;
    bool read_only;
    rn_work *work; /* NULL: no flight */
    ration_time took_off_at;
    void (*done)(void *user, int err);
    void *user;
    told told;
    bool failing;
    ration_time flushed_at;
    int64_t flush_us;
    uint64_t flushes, faults, rows;
    char error[256];
};

/* ---- opening and closing ---- */

int rn_ledger_open(const rn_ledger_options *options, rn_ledger **out, rn_ledger_error *error)
{
    rn_ledger *ledger = rn_mem_zalloc(rn_mem_default(), 1, sizeof *ledger);
    int err = RATION_ERR_NOMEM;

    error->text[0] = '\0';
    if (ledger == NULL)
        return RATION_ERR_NOMEM;
    rn_batch_init(&ledger->batch);
    rn_arena_init(&ledger->loaded, rn_mem_default());
    ledger->read_only = options->read_only;
    ledger->flushed_at.us = RATION_NEVER_US;
    ledger->path = rn_mem_strdup(rn_mem_default(), options->path);
    if (options->path == NULL) {
        err = rn_none_open(&ledger->store);
    } else if (ledger->path != NULL) {
        err = rn_sqlite_open(options, &ledger->batch, &ledger->store, error);
    }
    if (err != RATION_OK) {
        rn_ledger_abandon(ledger);
        return err;
    }
    *out = ledger;
    return RATION_OK;
}

static void ledger_free(rn_ledger *ledger)
{
    rn_batch_fini(&ledger->batch);
    rn_arena_fini(&ledger->loaded);
    rn_mem_free(rn_mem_default(), ledger->path);
    rn_mem_free(rn_mem_default(), ledger);
}

const char *rn_ledger_aside(const rn_ledger *ledger)
{
    return ledger->store->aside;
}

ration_text rn_ledger_salt(const rn_ledger *ledger)
{
    return (ration_text){ledger->store->salt, sizeof ledger->store->salt};
}

/* ---- loading ---- */

/* Parts of the future become one of now. */
static int parts_clamp(rn_arena *arena, ration_time now, const ration_part **parts, size_t *count)
{
    size_t kept = *count;
    ration_part late = {now, 0};

    while (kept > 0 && (*parts)[kept - 1].last.us >= now.us)
        late.units = rn_add(late.units, (*parts)[--kept].units);
    if (kept == *count)
        return RATION_OK;

    ration_part *made = rn_arena_zalloc(arena, kept + 1, sizeof *made);

    if (made == NULL)
        return RATION_ERR_NOMEM;
    if (kept > 0)
        memcpy(made, *parts, kept * sizeof *made);
    late.units = rn_min(late.units, RATION_UNITS_MAX);
    made[kept] = late;
    *parts = made;
    *count = kept + 1;
    return RATION_OK;
}

/* A record of the future: somebody has set the clock back. */
static int record_clamp(rn_arena *arena, ration_time now, ration_record *record)
{
    ration_quota_record *q = &record->u.quota;
    ration_adaptive_record *a = &record->u.adaptive;
    int err = RATION_OK;

    if (!rn_time_before(now, record->at))
        return RATION_OK;
    record->at = now;
    if (record->type == RATION_RECORD_QUOTA) {
        err = parts_clamp(arena, now, &q->parts, &q->part_count);
        if (err == RATION_OK)
            err = parts_clamp(arena, now, &q->timeline, &q->timeline_count);
    } else if (record->type == RATION_RECORD_ADAPTIVE) {
        a->grown_at = rn_time_min(a->grown_at, now);
        a->throttled_at = rn_time_min(a->throttled_at, now);
        a->decreased_at = rn_time_min(a->decreased_at, now);
    }
    return err;
}

static const rn_thing *thing_first(const rn_batch *batch)
{
    return (const rn_thing *)(const void *)rn_map_first(&batch->things);
}

static const rn_thing *thing_next(const rn_thing *thing)
{
    return (const rn_thing *)(const void *)rn_map_next(&thing->node);
}

/* `now` NULL: all, and as they are. */
static int records_load(rn_ledger *ledger, const ration_time *now, ration_state *out)
{
    ration_record *records = rn_arena_zalloc(&ledger->loaded, ledger->batch.things.size, sizeof *records);
    size_t count = 0;

    if (records == NULL)
        return RATION_ERR_NOMEM;
    for (const rn_thing *thing = thing_first(&ledger->batch); thing != NULL; thing = thing_next(thing)) {
        const rn_copy *copy = rn_thing_latest(thing);

        if (thing->type == RN_THING_RUNS || copy == &rn_copy_gone || (now != NULL && thing->ends_us <= now->us))
            continue;
        records[count] = copy->record;
        if (now != NULL && record_clamp(&ledger->loaded, *now, &records[count]) != RATION_OK)
            return RATION_ERR_NOMEM;
        count++;
    }
    *out = (ration_state){.records = records, .count = count, .unclean = ledger->store->unclean};
    out->unclean_at = ledger->store->story.unclean_at;
    if (now != NULL)
        out->unclean_at = rn_time_min(out->unclean_at, *now);
    return RATION_OK;
}

int rn_ledger_load(rn_ledger *ledger, ration_time now, ration_state *out, rn_ledger_error *error)
{
    error->text[0] = '\0';
    return records_load(ledger, &now, out);
}

int rn_ledger_load_all(rn_ledger *ledger, ration_state *out)
{
    return records_load(ledger, NULL, out);
}

const rn_ledger_story *rn_ledger_told(const rn_ledger *ledger)
{
    return &ledger->store->story;
}

int rn_ledger_load_runs(rn_ledger *ledger, const rn_ledger_run **out, size_t *count, rn_ledger_error *error)
{
    size_t most = 0;

    error->text[0] = '\0';
    for (const rn_thing *thing = thing_first(&ledger->batch); thing != NULL; thing = thing_next(thing))
        most += rn_thing_latest(thing)->run_count;

    rn_ledger_run *runs = rn_arena_zalloc(&ledger->loaded, most, sizeof *runs);
    size_t used = 0;

    if (runs == NULL)
        return RATION_ERR_NOMEM;
    for (const rn_thing *thing = thing_first(&ledger->batch); thing != NULL; thing = thing_next(thing)) {
        const rn_copy *copy = rn_thing_latest(thing);

        for (size_t i = 0; i < copy->run_count; i++)
            runs[used++] = (rn_ledger_run){rn_thing_job(thing), copy->runs[i].at, copy->runs[i].run};
    }
    *out = runs;
    *count = used;
    return RATION_OK;
}

/* ---- putting ---- */

/* What was loaded has been given back with the first put. */
static void loaded_end(rn_ledger *ledger)
{
    rn_arena_fini(&ledger->loaded);
    rn_arena_init(&ledger->loaded, rn_mem_default());
}

int rn_ledger_put(rn_ledger *ledger, const ration_record *record)
{
    if (ledger->read_only)
        return RATION_ERR_INVALID;
    loaded_end(ledger);
    return ledger->store->kind->keeps ? rn_batch_put(&ledger->batch, record) : RATION_OK;
}

int rn_ledger_put_run(rn_ledger *ledger, const rn_ledger_run *run)
{
    if (ledger->read_only)
        return RATION_ERR_INVALID;
    loaded_end(ledger);
    return ledger->store->kind->keeps ? rn_batch_put_run(&ledger->batch, run) : RATION_OK;
}

/* ---- flushing ---- */

/* On any thread: touches `told`, the store and what is in flight. */
static void flight_write(void *user)
{
    rn_ledger *ledger = user;
    const int64_t began_us = rn_clock_ticks();

    ledger->told.error.text[0] = '\0';
    ledger->told.err = ledger->store->kind->write(ledger->store, &ledger->batch, &ledger->told.error);
    ledger->told.us = rn_clock_ticks() - began_us;
}

static int flight_land(rn_ledger *ledger)
{
    const int err = ledger->told.err;

    ledger->work = NULL;
    rn_batch_land(&ledger->batch, err == RATION_OK);
    ledger->failing = err != RATION_OK;
    if (err == RATION_OK) {
        ledger->flushes++;
        ledger->flushed_at = ledger->took_off_at;
        ledger->flush_us = ledger->told.us;
        ledger->rows = ledger->store->rows;
        return RATION_OK;
    }
    ledger->faults++;
    (void)snprintf(ledger->error, sizeof ledger->error, "%.*s", (int)sizeof ledger->error - 1,
                   ledger->told.error.text[0] != '\0' ? ledger->told.error.text : ration_err_text(err));
    return RATION_ERR_IO;
}

static void flight_comes_back(void *user)
{
    rn_ledger *ledger = user;

    /* The last touch: who is told may close the ledger. */
    ledger->done(ledger->user, flight_land(ledger));
}

int rn_ledger_flush(rn_ledger *ledger, rn_loop *loop, ration_time now, void (*done)(void *user, int err), void *user)
{
    if (ledger->work != NULL || ledger->read_only)
        return RATION_ERR_INVALID;
    rn_batch_take_off(&ledger->batch, now);
    ledger->took_off_at = now;
    ledger->done = done;
    ledger->user = user;

    const int err = rn_work_start(loop, flight_write, flight_comes_back, ledger, &ledger->work);

    if (err != RATION_OK) {
        ledger->work = NULL;
        rn_batch_land(&ledger->batch, false);
    }
    return err;
}

static void flight_await(rn_ledger *ledger)
{
    if (ledger->work == NULL)
        return;
    rn_work_join(ledger->work);
    (void)flight_land(ledger);
}

int rn_ledger_flush_now(rn_ledger *ledger, ration_time now)
{
    if (ledger->read_only)
        return RATION_ERR_INVALID;
    flight_await(ledger);
    rn_batch_take_off(&ledger->batch, now);
    ledger->took_off_at = now;
    flight_write(ledger);
    return flight_land(ledger);
}

void rn_ledger_look(const rn_ledger *ledger, rn_ledger_status *out)
{
    *out = (rn_ledger_status){
        .path = ledger->path,
        .unclean = ledger->store->unclean,
        .flushing = ledger->work != NULL,
        .failing = ledger->failing,
        .flushed_at = ledger->flushed_at,
        .flush_us = ledger->flush_us,
        .flushes = ledger->flushes,
        .faults = ledger->faults,
        .rows = ledger->rows,
        .pending = ledger->batch.waiting_count + ledger->batch.flight_count,
    };
    memcpy(out->error, ledger->error, sizeof out->error);
}

void rn_ledger_close(rn_ledger *ledger, ration_time now)
{
    if (ledger == NULL)
        return;
    flight_await(ledger);
    ledger->store->kind->close(ledger->store, now,
                               ledger->batch.waiting_count == 0 ? RN_ENDING_CLEAN : RN_ENDING_UNCLEAN);
    ledger_free(ledger);
}

void rn_ledger_abandon(rn_ledger *ledger)
{
    if (ledger == NULL)
        return;
    flight_await(ledger);
    if (ledger->store != NULL)
        ledger->store->kind->close(ledger->store, ration_time_of(0), RN_ENDING_KILLED);
    ledger_free(ledger);
}
