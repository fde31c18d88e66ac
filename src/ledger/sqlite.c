/* SPDX-License-Identifier: MIT */
/*
 * The ledger in a file of SQLite: opening it to write, and one transaction for each flush.
 *
 * The reader has looked through the file before anything is written, under our lock. Statements are prepared once. Of
 * an array only the rows that differ from what is stored are written; of everything else, its row.
 *
 * Write-ahead log, and `synchronous = FULL`: a commit that has returned is as safe as the disk. A commit that failed
 * has left nothing, and is tried again whole with the next flush. A file that has been moved, deleted or replaced
 * meanwhile is not written: SQLite would go on in what nobody will ever open.
 *
 * Invariants: the lock's descriptor is closed after SQLite's; no transaction is open between two calls.
 */
#include "ledger/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/mem.h"
#include "ledger/file.h"
#include "ledger/rows.h"

#define BUSY_MS 1000

/* The log is cut to 64 MiB after it was longer; 16 MiB of cache. */
static const char pragmas[] = "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
                              "PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384";

enum { BEGIN = 0, COMMIT, ROLLBACK, META_PUT, RUN_PUT, RUN_DROP, STATEMENTS };

/* A run does not change once it has its number. */
static const char *const statements[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [META_PUT] = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)",
    [RUN_PUT] = "INSERT OR REPLACE INTO runs (job, number, at, requests, retries, fan_out) VALUES (?, ?, ?, ?, ?, ?)",
    [RUN_DROP] = "DELETE FROM runs WHERE job = ? AND number = ?",
};

typedef struct sqlite_store {
    rn_store base;
    rn_file file;
    struct stat log; /* of its write-ahead log, when it was opened */
    char *log_path;
    char *path; /* as it was given */
    sqlite3 *db;
    sqlite3_stmt *fixed[STATEMENTS];
    sqlite3_stmt *put[RN_TABLES];
    sqlite3_stmt *drop[RN_TABLES];
    sqlite3_stmt *array_put[RN_ARRAYS];
    sqlite3_stmt *array_drop[RN_ARRAYS];
} sqlite_store;

static sqlite_store *store_of(rn_store *store)
{
    return (sqlite_store *)(void *)store; /* the first member */
}

/* ---- statements ---- */

static int prepare(sqlite_store *s, const char *sql, sqlite3_stmt **out)
{
    return sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
}

static int prepare_all(sqlite_store *s)
{
    char sql[2048];
    rn_builder b;
    int rc = SQLITE_OK;

    for (size_t i = 0; i < STATEMENTS && rc == SQLITE_OK; i++)
        rc = prepare(s, statements[i], &s->fixed[i]);
    for (size_t t = 0; t < RN_TABLES && rc == SQLITE_OK; t++) {
        rn_builder_init(&b, sql, sizeof sql);
        rn_sql_put(&b, &rn_tables[t]);
        rc = prepare(s, sql, &s->put[t]);
        rn_builder_init(&b, sql, sizeof sql);
        rn_sql_drop(&b, &rn_tables[t]);
        if (rc == SQLITE_OK)
            rc = prepare(s, sql, &s->drop[t]);
    }
    for (size_t a = 0; a < RN_ARRAYS && rc == SQLITE_OK; a++) {
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO %s (last, quota_id, units) VALUES (?, ?, ?)"
                       " ON CONFLICT (last, quota_id) DO UPDATE SET units = excluded.units",
                       rn_array_names[a]);
        rc = prepare(s, sql, &s->array_put[a]);
        (void)snprintf(sql, sizeof sql, "DELETE FROM %s WHERE last = ? AND quota_id = ?", rn_array_names[a]);
        if (rc == SQLITE_OK)
            rc = prepare(s, sql, &s->array_drop[a]);
    }
    return rc;
}

static void finalize_all(sqlite_store *s)
{
    for (size_t i = 0; i < STATEMENTS; i++)
        (void)sqlite3_finalize(s->fixed[i]);
    for (size_t t = 0; t < RN_TABLES; t++) {
        (void)sqlite3_finalize(s->put[t]);
        (void)sqlite3_finalize(s->drop[t]);
    }
    for (size_t a = 0; a < RN_ARRAYS; a++) {
        (void)sqlite3_finalize(s->array_put[a]);
        (void)sqlite3_finalize(s->array_drop[a]);
    }
}

/* Run a statement that has been bound, for its effect. */
static int run(sqlite3_stmt *stmt)
{
    (void)sqlite3_step(stmt);
    return sqlite3_reset(stmt);
}

static int run_row(sqlite_store *s, sqlite3_stmt *stmt)
{
    s->base.rows++;
    return run(stmt);
}

/* ---- transactions ---- */

/* Put an end to a transaction: kept if `rc` is SQLITE_OK and the commit goes well, else undone. */
static int end_transaction(sqlite_store *s, int rc)
{
    if (rc == SQLITE_OK)
        rc = run(s->fixed[COMMIT]);
    if (rc != SQLITE_OK && sqlite3_get_autocommit(s->db) == 0)
        (void)run(s->fixed[ROLLBACK]);
    return rc;
}

static bool is_at(const char *path, const struct stat *then)
{
    struct stat now;

    return stat(path, &now) == 0 && now.st_dev == then->st_dev && now.st_ino == then->st_ino;
}

static int fault_of_sqlite(const sqlite_store *s, int rc, const char *what, rn_ledger_error *error)
{
    if ((rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED) {
        rn_ledger_fault(error, s->path, "%s: another program has it locked", what);
    } else {
        rn_ledger_fault(error, s->path, "%s: %s", what, s->db != NULL ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc));
    }
    return (rc & 0xff) == SQLITE_NOMEM ? RATION_ERR_NOMEM : RATION_ERR_IO;
}

/* Nobody has taken the file away, or its log. */
static int check_there(const sqlite_store *s, rn_ledger_error *error)
{
    if (rn_file_is_there(&s->file) && is_at(s->log_path, &s->log))
        return RATION_OK;
    rn_ledger_fault(error, s->path,
                    "is not written: it, or its log, was moved, deleted or replaced; put it back, or start anew");
    return RATION_ERR_IO;
}

static int meta_bind_name(sqlite_store *s, const char *name)
{
    return sqlite3_bind_text(s->fixed[META_PUT], 1, name, -1, SQLITE_STATIC);
}

static int meta_put_number(sqlite_store *s, const char *name, int64_t value)
{
    int rc = meta_bind_name(s, name);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(s->fixed[META_PUT], 2, value);
    return rc == SQLITE_OK ? run(s->fixed[META_PUT]) : rc;
}

static int meta_put_text(sqlite_store *s, const char *name, const char *value)
{
    int rc = meta_bind_name(s, name);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(s->fixed[META_PUT], 2, value, -1, SQLITE_STATIC);
    return rc == SQLITE_OK ? run(s->fixed[META_PUT]) : rc;
}

static int meta_put_bytes(sqlite_store *s, const char *name, const char *value, int size)
{
    int rc = meta_bind_name(s, name);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob(s->fixed[META_PUT], 2, value, size, SQLITE_STATIC);
    return rc == SQLITE_OK ? run(s->fixed[META_PUT]) : rc;
}

/* ---- writing ---- */

static int array_run(sqlite_store *s, sqlite3_stmt *stmt, int64_t id, const ration_part *part, bool with_units)
{
    int rc = sqlite3_bind_int64(stmt, 1, part->last.us);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(stmt, 2, id);
    if (rc == SQLITE_OK && with_units)
        rc = sqlite3_bind_int64(stmt, 3, part->units);
    return rc == SQLITE_OK ? run_row(s, stmt) : rc;
}

typedef struct span {
    const ration_part *items;
    size_t count;
} span;

/* Both are in order of time, so one walk finds what has left, come or changed. */
static int array_write(sqlite_store *s, int which, int64_t id, span was, span is)
{
    size_t i = 0;
    size_t k = 0;
    int rc = SQLITE_OK;

    while ((i < was.count || k < is.count) && rc == SQLITE_OK) {
        if (k == is.count || (i < was.count && was.items[i].last.us < is.items[k].last.us)) {
            rc = array_run(s, s->array_drop[which], id, &was.items[i++], false);
        } else if (i == was.count || is.items[k].last.us < was.items[i].last.us) {
            rc = array_run(s, s->array_put[which], id, &is.items[k++], true);
        } else {
            if (was.items[i].units != is.items[k].units)
                rc = array_run(s, s->array_put[which], id, &is.items[k], true);
            i++;
            k++;
        }
    }
    return rc;
}

static span array_of(const rn_copy *copy, int which)
{
    if (copy == NULL || copy == &rn_copy_gone)
        return (span){NULL, 0};
    if (which == RN_ARRAY_PARTS)
        return (span){copy->record.u.quota.parts, copy->record.u.quota.part_count};
    return (span){copy->record.u.quota.timeline, copy->record.u.quota.timeline_count};
}

static int record_write(sqlite_store *s, const rn_thing *thing)
{
    const rn_table *table = &rn_tables[thing->type];
    const rn_copy *was = thing->stored;
    const rn_copy *is = thing->flying;
    const bool goes = is == &rn_copy_gone;
    int rc = SQLITE_OK;

    /* A window's start is part of its row's key. */
    if (was != NULL && (goes || (table->type == RATION_RECORD_QUOTA &&
                                 was->record.u.quota.window_start.us != is->record.u.quota.window_start.us))) {
        rc = rn_row_bind(s->drop[thing->type], table, table->keys, &was->record, thing->id);
        if (rc == SQLITE_OK)
            rc = run_row(s, s->drop[thing->type]);
    }
    if (rc == SQLITE_OK && !goes) {
        rc = rn_row_bind(s->put[thing->type], table, table->count, &is->record, thing->id);
        if (rc == SQLITE_OK)
            rc = run_row(s, s->put[thing->type]);
    }
    for (int a = 0; a < RN_ARRAYS && rc == SQLITE_OK && table->type == RATION_RECORD_QUOTA; a++)
        rc = array_write(s, a, thing->id, array_of(was, a), array_of(is, a));
    return rc;
}

static int run_write(sqlite_store *s, ration_text job, const rn_kept_run *r, sqlite3_stmt *stmt)
{
    const int64_t numbers[] = {r->number, r->at.us, r->run.requests, r->run.retries, r->run.fan_out};
    int rc = sqlite3_bind_text(stmt, 1, job.size > 0 ? job.data : "", (int)job.size, SQLITE_STATIC);

    for (int i = 0; i + 2 <= sqlite3_bind_parameter_count(stmt) && rc == SQLITE_OK; i++)
        rc = sqlite3_bind_int64(stmt, i + 2, numbers[i]);
    return rc == SQLITE_OK ? run_row(s, stmt) : rc;
}

static bool has_number(const rn_copy *copy, int64_t number)
{
    for (size_t i = 0; copy != NULL && i < copy->run_count; i++) {
        if (copy->runs[i].number == number)
            return true;
    }
    return false;
}

/* A run does not change: what has left is dropped, what is new is put. */
static int runs_write(sqlite_store *s, const rn_thing *thing)
{
    const ration_text job = rn_thing_job(thing);
    const rn_copy *was = thing->stored;
    const rn_copy *is = thing->flying;
    int rc = SQLITE_OK;

    for (size_t i = 0; was != NULL && i < was->run_count && rc == SQLITE_OK; i++) {
        if (!has_number(is, was->runs[i].number))
            rc = run_write(s, job, &was->runs[i], s->fixed[RUN_DROP]);
    }
    for (size_t i = 0; i < is->run_count && rc == SQLITE_OK; i++) {
        if (!has_number(was, is->runs[i].number))
            rc = run_write(s, job, &is->runs[i], s->fixed[RUN_PUT]);
    }
    return rc;
}

static int sqlite_write(rn_store *store, const rn_batch *batch, rn_ledger_error *error)
{
    sqlite_store *s = store_of(store);
    const uint64_t rows = store->rows;
    const rn_thing *thing;

    if (TAILQ_EMPTY(&batch->flight))
        return RATION_OK;
    if (check_there(s, error) != RATION_OK)
        return RATION_ERR_IO;

    int rc = run(s->fixed[BEGIN]);

    TAILQ_FOREACH (thing, &batch->flight, in_flight) {
        if (rc != SQLITE_OK)
            break;
        rc = thing->type == RN_THING_RUNS ? runs_write(s, thing) : record_write(s, thing);
    }
    if (rc != SQLITE_OK) { /* told before the rollback changes what SQLite says */
        const int err = fault_of_sqlite(s, rc, "cannot be written", error);

        (void)end_transaction(s, rc);
        store->rows = rows;
        return err;
    }
    rc = end_transaction(s, SQLITE_OK);
    if (rc == SQLITE_OK)
        return RATION_OK;
    store->rows = rows;
    rn_ledger_fault(error, s->path, "cannot be written: %s", sqlite3_errstr(rc));
    return RATION_ERR_IO;
}

/* ---- opening ---- */

static void store_free(sqlite_store *s)
{
    finalize_all(s);
    (void)sqlite3_close(s->db);
    rn_file_close(&s->file);
    rn_mem_free(rn_mem_default(), s->log_path);
    rn_mem_free(rn_mem_default(), s->path);
    rn_mem_free(rn_mem_default(), s->base.aside);
    rn_mem_free(rn_mem_default(), s);
}

static int mark_closed(sqlite_store *s, ration_time now)
{
    int rc = run(s->fixed[BEGIN]);

    if (rc == SQLITE_OK)
        rc = meta_put_number(s, "clean", 1);
    if (rc == SQLITE_OK)
        rc = meta_put_number(s, "closed_at", now.us);
    return end_transaction(s, rc);
}

static void sqlite_close(rn_store *store, ration_time now, rn_ending ending)
{
    sqlite_store *s = store_of(store);
    if (ending == RN_ENDING_KILLED || !is_at(s->log_path, &s->log)) {
        store_free(s);
        return;
    }
    if (!rn_file_is_there(&s->file)) {
        /* SQLite leaves the log of a file that has gone, and it would be taken for that of whatever comes there. */
        (void)sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    } else if (ending == RN_ENDING_CLEAN) {
        (void)mark_closed(s, now); /* if that fails, the next start is the wiser for it */
    }
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    store_free(s);
}

static const rn_store_kind sqlite_kind = {.keeps = true, .write = sqlite_write, .close = sqlite_close};

/* What is only looked into is not written. */
static int looking_write(rn_store *store, const rn_batch *batch, rn_ledger_error *error)
{
    (void)batch;
    rn_ledger_fault(error, store_of(store)->path, "is open to be read only");
    return RATION_ERR_IO;
}

static void looking_close(rn_store *store, ration_time now, rn_ending ending)
{
    (void)now;
    (void)ending;
    store_free(store_of(store));
}

static const rn_store_kind looking_kind = {.keeps = false, .write = looking_write, .close = looking_close};

static int exec(sqlite_store *s, const char *sql)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL);
}

static int make_tables(sqlite_store *s)
{
    char sql[96];
    int rc = exec(s, "BEGIN IMMEDIATE");

    (void)snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", RN_APPLICATION_ID,
                   RN_SCHEMA_VERSION);
    if (rc == SQLITE_OK)
        rc = exec(s, sql);
    for (size_t i = 0; rn_schema[i] != NULL && rc == SQLITE_OK; i++)
        rc = exec(s, rn_schema[i]);
    return rc;
}

/* A new ledger: its tables, its salt. The transaction stays open. */
static int make(sqlite_store *s)
{
    if (getrandom(s->base.salt, sizeof s->base.salt, 0) != (ssize_t)sizeof s->base.salt)
        return SQLITE_IOERR;
    return make_tables(s);
}

static int mark_opened(sqlite_store *s, ration_time now)
{
    int rc = meta_put_number(s, "clean", 0);

    if (rc == SQLITE_OK && s->base.unclean)
        rc = meta_put_number(s, "unclean_at", now.us);
    if (rc == SQLITE_OK)
        rc = meta_put_number(s, "opened_at", now.us);
    if (rc == SQLITE_OK)
        rc = meta_put_number(s, "pid", (int64_t)getpid());
    if (rc == SQLITE_OK)
        rc = meta_put_text(s, "version", RATION_VERSION);
    return rc;
}

static int drop_orphans(sqlite_store *s)
{
    char sql[96];
    int rc = SQLITE_OK;

    for (int a = 0; a < RN_ARRAYS && rc == SQLITE_OK; a++) {
        (void)snprintf(sql, sizeof sql, "DELETE FROM %s WHERE quota_id NOT IN (SELECT id FROM quotas)",
                       rn_array_names[a]);
        rc = exec(s, sql);
    }
    return rc;
}

/* "ration.db-wal", as it is now that something has been written. */
static int log_find(sqlite_store *s)
{
    const size_t size = strlen(s->file.path) + sizeof "-wal";

    s->log_path = rn_mem_alloc(rn_mem_default(), size);
    if (s->log_path == NULL)
        return SQLITE_NOMEM;
    (void)snprintf(s->log_path, size, "%s-wal", s->file.path);
    return stat(s->log_path, &s->log) == 0 ? SQLITE_OK : SQLITE_IOERR;
}

static int wal_callback(void *is_wal, int columns, char **values, char **names)
{
    (void)names;
    *(bool *)is_wal = columns == 1 && values[0] != NULL && strcmp(values[0], "wal") == 0;
    return 0;
}

/* Open what has been looked through, and say in it that it is open. */
static int open_to_write(sqlite_store *s, ration_time now, bool is_new, bool orphans)
{
    static const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    bool is_wal = false;
    int rc = sqlite3_open_v2(s->file.path, &s->db, flags, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(s->db, BUSY_MS);
    /* The log is merged into the file by a close; whatever ends without one leaves both as a kill would. */
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(s->db, "PRAGMA journal_mode = WAL", wal_callback, &is_wal, NULL);
    if (rc == SQLITE_OK && !is_wal)
        rc = SQLITE_CANTOPEN;
    if (rc == SQLITE_OK)
        rc = exec(s, pragmas);
    if (rc == SQLITE_OK)
        rc = is_new ? make(s) : exec(s, "BEGIN IMMEDIATE");
    if (rc == SQLITE_OK)
        rc = prepare_all(s);
    if (rc == SQLITE_OK && is_new)
        rc = meta_put_bytes(s, "salt", s->base.salt, RN_SALT_BYTES);
    if (rc == SQLITE_OK && orphans)
        rc = drop_orphans(s);
    if (rc == SQLITE_OK)
        rc = mark_opened(s, now);
    if (rc == SQLITE_OK)
        rc = exec(s, "COMMIT");
    return rc == SQLITE_OK ? log_find(s) : rc;
}

static int fault_of_lock(const char *path, const char *real, rn_ledger_error *error)
{
    const int64_t pid = rn_sqlite_pid(real);
    char by[32] = "";

    if (pid > 0)
        (void)snprintf(by, sizeof by, ", %lld", (long long)pid);
    rn_ledger_fault(error, path, "is locked by another process%s: end it, or name another settings.ledger.path", by);
    return RATION_ERR_IO;
}

/* Find the file, lock it and look through it. RATION_OK: it is good or new. */
static int look_through(sqlite_store *s, const rn_ledger_options *options, rn_batch *batch, rn_found *found,
                        rn_verdict *verdict, rn_ledger_error *error)
{
    bool exists = false;
    int err = rn_file_find(s->path, &s->file, &exists, error);

    if (err != RATION_OK)
        return err;

    char *real = rn_mem_strdup(rn_mem_default(), s->file.path);

    if (real == NULL)
        return RATION_ERR_NOMEM;
    if (options->read_only) {
        err = exists ? RATION_OK : RATION_ERR_IO;
        if (!exists)
            rn_ledger_fault(error, s->path, "there is no such file");
    } else {
        err = rn_file_lock(&s->file, s->path, error);
    }
    if (err == RATION_ERR_FULL)
        err = fault_of_lock(s->path, real, error);
    if (err == RATION_OK)
        *verdict = rn_sqlite_read(s->path, real, batch, found, error);
    rn_mem_free(rn_mem_default(), real);
    return err;
}

/* A broken file goes out of the way, and a new one takes its place. What it knew is lost, so the last stop counts as
 * not in order. */
static int begin_anew(sqlite_store *s, const rn_ledger_options *options, rn_batch *batch, rn_ledger_error *error)
{
    rn_found found;
    rn_verdict verdict = RN_FILE_SHUT;
    int err = rn_file_put_aside(&s->file, s->path, options->now, &s->base.aside, error);

    if (err != RATION_OK)
        return err;
    rn_batch_fini(batch);
    rn_batch_init(batch);
    rn_file_close(&s->file);
    err = look_through(s, options, batch, &found, &verdict, error);
    if (err == RATION_OK && verdict != RN_FILE_NEW) {
        rn_ledger_fault(error, s->path, "was made by somebody else just now");
        err = RATION_ERR_IO;
    }
    s->base.unclean = true;
    return err;
}

static int store_open(sqlite_store *s, const rn_ledger_options *options, rn_batch *batch, rn_ledger_error *error)
{
    rn_found found = {.orphans = false};
    rn_verdict verdict = RN_FILE_SHUT;
    int err = look_through(s, options, batch, &found, &verdict, error);

    if (err != RATION_OK)
        return err;
    if (verdict == RN_FILE_BROKEN && options->aside && !options->read_only) {
        err = begin_anew(s, options, batch, error);
        if (err != RATION_OK)
            return err;
        verdict = RN_FILE_NEW;
    } else if (verdict != RN_FILE_GOOD && verdict != RN_FILE_NEW) {
        return RATION_ERR_IO;
    }
    if (verdict == RN_FILE_GOOD) {
        s->base.unclean = !found.story.clean;
        memcpy(s->base.salt, found.salt, sizeof s->base.salt);
        s->base.story = found.story;
    }
    if (options->read_only) {
        s->base.kind = &looking_kind;
        return RATION_OK;
    }

    const int rc = open_to_write(s, options->now, verdict == RN_FILE_NEW, found.orphans);

    return rc == SQLITE_OK ? RATION_OK : fault_of_sqlite(s, rc, "cannot be opened to be written", error);
}

int rn_sqlite_open(const rn_ledger_options *options, rn_batch *batch, rn_store **out, rn_ledger_error *error)
{
    sqlite_store *s = rn_mem_zalloc(rn_mem_default(), 1, sizeof *s);

    if (s == NULL)
        return RATION_ERR_NOMEM;
    s->base.kind = &sqlite_kind;
    s->file.lock = -1;
    s->path = rn_mem_strdup(rn_mem_default(), options->path);

    const int err = s->path != NULL ? store_open(s, options, batch, error) : RATION_ERR_NOMEM;

    if (err != RATION_OK) {
        store_free(s);
        return err;
    }
    *out = &s->base;
    return RATION_OK;
}
