/* SPDX-License-Identifier: MIT */
/*
 * A ledger's file, read whole and doubted: is it one, of this version, unharmed, with every value in its range?
 *
 * It is opened for reading only, before anybody writes: so what is refused stays as it is to the byte. A file without a
 * log is opened as one that does not change, else SQLite would make a log to read it. All is read in one transaction,
 * so who looks into the ledger of a running process sees one moment of it.
 *
 * The arrays come first, into one list that is sorted by quota; then each quota takes its own. Rows of an array whose
 * quota is gone are what somebody leaves behind who deletes one by hand: they are passed over and told of.
 */
#include "ledger/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "ledger/file.h"
#include "ledger/rows.h"

#define BUSY_MS 1000

/* A row of an array. */
typedef struct array_row {
    int64_t quota;
    ration_part part;
} array_row;

typedef struct array_rows {
    array_row *items;
    size_t count;
    size_t room;
    size_t taken; /* by quotas */
} array_rows;

typedef struct reading {
    const char *path;
    sqlite3 *db;
    rn_batch *batch;
    rn_ledger_error *error;
    array_rows arrays[RN_ARRAYS];
    ration_part *parts; /* room for the arrays of one quota, one behind the other */
    size_t part_room;
} reading;

/* ---- what is wrong ---- */

static rn_verdict shut(const reading *r, const char *why)
{
    rn_ledger_fault(r->error, r->path, "%s", why);
    return RN_FILE_SHUT;
}

static rn_verdict no_memory(const reading *r)
{
    return shut(r, "no memory to read it");
}

static rn_verdict broken(const reading *r, const char *why)
{
    rn_ledger_fault(r->error, r->path, "is broken: %s", why);
    return RN_FILE_BROKEN;
}

/* What SQLite says it is. */
static rn_verdict fault_of_sqlite(const reading *r, int rc)
{
    switch (rc & 0xff) {
    case SQLITE_NOTADB:
        rn_ledger_fault(r->error, r->path, "is not a ledger: %s", sqlite3_errstr(rc));
        return RN_FILE_BROKEN;
    case SQLITE_CORRUPT:
    case SQLITE_ERROR: /* a table or column that is not there */
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
        return broken(r, r->db != NULL ? sqlite3_errmsg(r->db) : sqlite3_errstr(rc));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return shut(r, "is locked by another program");
    case SQLITE_NOMEM:
        return no_memory(r);
    default:
        rn_ledger_fault(r->error, r->path, "cannot be read: %s",
                        r->db != NULL ? sqlite3_errmsg(r->db) : sqlite3_errstr(rc));
        return RN_FILE_SHUT;
    }
}

/* "quotas, openai/rpd of '/user=7': used is out of range" */
static rn_verdict fault_of_row(const reading *r, const rn_table *table, const ration_record *record, const char *what)
{
    rn_ledger_fault(r->error, r->path, "is broken: %s, the row of %.*s%s%.*s, '%.*s': %s", table->name,
                    (int)record->provider.size, record->provider.data != NULL ? record->provider.data : "",
                    record->limit.data != NULL ? "/" : "", (int)record->limit.size,
                    record->limit.data != NULL ? record->limit.data : "", (int)record->key.size,
                    record->key.data != NULL ? record->key.data : "", what);
    return RN_FILE_BROKEN;
}

/* ---- opening ---- */

/* "file:" and the path, with what has a meaning in a URI escaped. NULL: no memory. */
static char *uri_of(const char *real, bool immutable)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-";
    const size_t size = strlen(real) * 3 + 32;
    char *uri = rn_mem_alloc(rn_mem_default(), size);
    rn_builder b;

    if (uri == NULL)
        return NULL;
    rn_builder_init(&b, uri, size);
    rn_builder_str(&b, "file:");
    for (const char *c = real; *c != '\0'; c++) {
        if (strchr(plain, *c) != NULL) {
            rn_builder_char(&b, *c);
        } else {
            rn_builder_char(&b, '%');
            rn_builder_char(&b, "0123456789ABCDEF"[(unsigned char)*c >> 4]);
            rn_builder_char(&b, "0123456789ABCDEF"[(unsigned char)*c & 15]);
        }
    }
    rn_builder_str(&b, immutable ? "?immutable=1" : "");
    return uri;
}

static bool has_log(const char *real)
{
    char name[4096];
    struct stat at;

    (void)snprintf(name, sizeof name, "%s-wal", real);
    return stat(name, &at) == 0 && at.st_size > 0;
}

static int open_to_read(const char *real, sqlite3 **out)
{
    static const int flags =
        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    char *uri = uri_of(real, !has_log(real));

    *out = NULL;
    if (uri == NULL)
        return SQLITE_NOMEM;

    int rc = sqlite3_open_v2(uri, out, flags, NULL);

    rn_mem_free(rn_mem_default(), uri);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(*out, BUSY_MS);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(*out, "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; BEGIN", NULL, NULL, NULL);
    return rc;
}

/* ---- is it one? ---- */

static int number_read(sqlite3 *db, const char *sql, int64_t *out)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            *out = sqlite3_column_int64(stmt, 0);
            rc = SQLITE_OK;
        }
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

static rn_verdict check_version(const reading *r)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t things = 0;
    int rc = number_read(r->db, "SELECT count(*) FROM sqlite_schema", &things);

    if (rc == SQLITE_OK)
        rc = number_read(r->db, "PRAGMA application_id", &application);
    if (rc == SQLITE_OK)
        rc = number_read(r->db, "PRAGMA user_version", &version);
    if (rc != SQLITE_OK)
        return fault_of_sqlite(r, rc);
    if (application == 0 && version == 0 && things == 0)
        return RN_FILE_NEW;
    if (application != RN_APPLICATION_ID) {
        rn_ledger_fault(r->error, r->path, "is not a ledger, but a database of something else");
        return RN_FILE_BROKEN;
    }
    if (version > RN_SCHEMA_VERSION) {
        rn_ledger_fault(r->error, r->path,
                        "was written by a newer version of ration (ledger version %lld, this one knows %d)",
                        (long long)version, RN_SCHEMA_VERSION);
        return RN_FILE_NEWER;
    }
    return version == RN_SCHEMA_VERSION ? RN_FILE_GOOD : broken(r, "its version is none that there was");
}

/* Every table is there, made as this version makes it. Others may be there too. */
static rn_verdict check_schema(const reading *r)
{
    rn_verdict verdict = RN_FILE_GOOD;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(r->db, "SELECT name FROM sqlite_schema WHERE sql = ?", -1, &stmt, NULL);

    for (size_t i = 0; rn_schema[i] != NULL && rc == SQLITE_OK && verdict == RN_FILE_GOOD; i++) {
        rc = sqlite3_bind_text(stmt, 1, rn_schema[i], -1, SQLITE_STATIC);
        if (rc == SQLITE_OK)
            rc = sqlite3_step(stmt);
        if (rc == SQLITE_DONE) {
            const char *name = rn_schema[i] + strlen("CREATE TABLE ");

            rn_ledger_fault(r->error, r->path, "is broken: the table %.*s is missing, or is not as it was made",
                            (int)strcspn(name, " "), name);
            verdict = RN_FILE_BROKEN;
        }
        if (rc == SQLITE_ROW || rc == SQLITE_DONE)
            rc = sqlite3_reset(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return rc != SQLITE_OK ? fault_of_sqlite(r, rc) : verdict;
}

static rn_verdict check_pages(const reading *r)
{
    rn_verdict verdict = RN_FILE_GOOD;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(r->db, "PRAGMA quick_check(1)", -1, &stmt, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        const char *said = (const char *)sqlite3_column_text(stmt, 0);

        rc = SQLITE_OK;
        if (said == NULL || strcmp(said, "ok") != 0)
            verdict = broken(r, said != NULL ? said : "it cannot be checked");
    }
    (void)sqlite3_finalize(stmt);
    return rc != SQLITE_OK ? fault_of_sqlite(r, rc) : verdict;
}

/* ---- meta ---- */

/* What is not as it should be is not told; the salt and `clean` must be. */
typedef struct meta_seen {
    bool salt, clean;
} meta_seen;

static void meta_number(const char *name, int64_t value, rn_ledger_story *out, meta_seen *seen)
{
    if (strcmp(name, "clean") == 0) {
        out->clean = value == 1;
        seen->clean = true;
    } else if (strcmp(name, "pid") == 0) {
        out->pid = value;
    } else if (strcmp(name, "opened_at") == 0) {
        out->opened_at.us = value;
    } else if (strcmp(name, "closed_at") == 0) {
        out->closed_at.us = value;
    } else if (strcmp(name, "unclean_at") == 0) {
        out->unclean_at.us = value;
    }
}

static void meta_row(sqlite3_stmt *stmt, rn_found *out, meta_seen *seen)
{
    const char *name = (const char *)sqlite3_column_text(stmt, 0);
    const int type = sqlite3_column_type(stmt, 1);

    if (name == NULL)
        return;
    if (type == SQLITE_INTEGER) {
        meta_number(name, sqlite3_column_int64(stmt, 1), &out->story, seen);
    } else if (strcmp(name, "salt") == 0 && type == SQLITE_BLOB && sqlite3_column_bytes(stmt, 1) == RN_SALT_BYTES) {
        memcpy(out->salt, sqlite3_column_blob(stmt, 1), RN_SALT_BYTES);
        seen->salt = true;
    } else if (strcmp(name, "version") == 0 && type == SQLITE_TEXT) {
        (void)snprintf(out->story.version, sizeof out->story.version, "%s", (const char *)sqlite3_column_text(stmt, 1));
    }
}

static rn_verdict read_meta(const reading *r, rn_found *out)
{
    meta_seen seen = {false, false};
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(r->db, "SELECT name, value FROM meta", -1, &stmt, NULL);

    out->story.opened_at.us = out->story.closed_at.us = RATION_NEVER_US;
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        rc = SQLITE_OK;
        meta_row(stmt, out, &seen);
    }
    (void)sqlite3_finalize(stmt);
    if (rc != SQLITE_DONE)
        return fault_of_sqlite(r, rc);
    if (out->story.unclean_at.us < 0 || out->story.unclean_at.us > RATION_TIME_MAX_US)
        return broken(r, "meta names no time as that of the last unclean stop");
    return seen.salt && seen.clean ? RN_FILE_GOOD : broken(r, "meta has no salt, or does not say how it was left");
}

/* ---- arrays ---- */

static int array_add(array_rows *rows, const array_row *row)
{
    if (rows->count == rows->room) {
        const size_t room = rows->room > 0 ? rows->room * 2 : 1024;
        array_row *grown = rn_mem_resize(rn_mem_default(), rows->items, room, sizeof *grown);

        if (grown == NULL)
            return RATION_ERR_NOMEM;
        rows->items = grown;
        rows->room = room;
    }
    rows->items[rows->count++] = *row;
    return RATION_OK;
}

static int array_compare(const void *a, const void *b)
{
    const array_row *x = a;
    const array_row *y = b;

    if (x->quota != y->quota)
        return x->quota < y->quota ? -1 : 1;
    return x->part.last.us < y->part.last.us ? -1 : x->part.last.us > y->part.last.us;
}

static rn_verdict read_array(reading *r, int which)
{
    array_rows *rows = &r->arrays[which];
    rn_verdict verdict = RN_FILE_GOOD;
    sqlite3_stmt *stmt = NULL;
    char sql[64];

    (void)snprintf(sql, sizeof sql, "SELECT quota_id, last, units FROM %s", rn_array_names[which]);

    int rc = sqlite3_prepare_v2(r->db, sql, -1, &stmt, NULL);

    while (rc == SQLITE_OK && verdict == RN_FILE_GOOD && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const array_row row = {sqlite3_column_int64(stmt, 0),
                               {{sqlite3_column_int64(stmt, 1)}, sqlite3_column_int64(stmt, 2)}};

        rc = SQLITE_OK;
        for (int i = 0; i < 3; i++) {
            if (sqlite3_column_type(stmt, i) != SQLITE_INTEGER)
                verdict = broken(r, "an array has something that is not a number");
        }
        if (verdict == RN_FILE_GOOD && array_add(rows, &row) != RATION_OK)
            verdict = no_memory(r);
    }
    (void)sqlite3_finalize(stmt);
    if (verdict == RN_FILE_GOOD && rc != SQLITE_DONE)
        return fault_of_sqlite(r, rc);
    if (rows->count > 0)
        qsort(rows->items, rows->count, sizeof *rows->items, array_compare);
    return verdict;
}

/* The first row of a quota; the list is sorted. */
static size_t array_find(const array_rows *rows, int64_t quota)
{
    size_t low = 0;
    size_t high = rows->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (rows->items[middle].quota < quota) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Give a quota its arrays, in `r->parts`. */
static int arrays_give(reading *r, int64_t id, ration_quota_record *quota)
{
    size_t from[RN_ARRAYS];
    size_t count[RN_ARRAYS] = {0};

    for (int a = 0; a < RN_ARRAYS; a++) {
        const array_rows *rows = &r->arrays[a];

        from[a] = array_find(rows, id);
        while (from[a] + count[a] < rows->count && rows->items[from[a] + count[a]].quota == id)
            count[a]++;
    }

    const size_t wanted = count[RN_ARRAY_PARTS] + count[RN_ARRAY_TIMELINE];

    if (wanted > r->part_room) {
        ration_part *grown = rn_mem_resize(rn_mem_default(), r->parts, wanted, sizeof *grown);

        if (grown == NULL)
            return RATION_ERR_NOMEM;
        r->parts = grown;
        r->part_room = wanted;
    }

    size_t used = 0;

    for (int a = 0; a < RN_ARRAYS; a++) {
        for (size_t i = 0; i < count[a]; i++)
            r->parts[used++] = r->arrays[a].items[from[a] + i].part;
        r->arrays[a].taken += count[a];
    }
    quota->parts = r->parts;
    quota->part_count = count[RN_ARRAY_PARTS];
    quota->timeline = r->parts != NULL ? r->parts + count[RN_ARRAY_PARTS] : NULL;
    quota->timeline_count = count[RN_ARRAY_TIMELINE];
    return RATION_OK;
}

/* ---- records and runs ---- */

static rn_verdict read_row(reading *r, const rn_table *table, sqlite3_stmt *stmt)
{
    ration_record record;
    int64_t id = 0;
    const char *column = "";
    char what[64];

    if (!rn_row_read(stmt, table, &record, &id, &column)) {
        (void)snprintf(what, sizeof what, "%s is not what it may be", column);
        return fault_of_row(r, table, &record, what);
    }
    if (table->type == RATION_RECORD_QUOTA && arrays_give(r, id, &record.u.quota) != RATION_OK)
        return no_memory(r);
    switch (rn_batch_restore(r->batch, &record, id)) {
    case RATION_OK:
        return RN_FILE_GOOD;
    case RATION_ERR_NOMEM:
        return no_memory(r);
    case RATION_ERR_FULL:
        return fault_of_row(r, table, &record, "has two windows");
    default:
        return fault_of_row(r, table, &record, "is out of range");
    }
}

static rn_verdict read_table(reading *r, const rn_table *table)
{
    rn_verdict verdict = RN_FILE_GOOD;
    sqlite3_stmt *stmt = NULL;
    char sql[1024];
    rn_builder b;

    rn_builder_init(&b, sql, sizeof sql);
    rn_sql_read(&b, table);

    int rc = sqlite3_prepare_v2(r->db, sql, -1, &stmt, NULL);

    while (rc == SQLITE_OK && verdict == RN_FILE_GOOD && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        rc = SQLITE_OK;
        verdict = read_row(r, table, stmt);
    }
    (void)sqlite3_finalize(stmt);
    if (verdict == RN_FILE_GOOD && rc != SQLITE_DONE)
        return fault_of_sqlite(r, rc);
    return verdict;
}

/* A job's runs, as they are read. */
typedef struct job_runs {
    char *job; /* NULL: none yet */
    size_t size;
    size_t count;
    rn_kept_run runs[RATION_RUNS_MAX];
} job_runs;

static rn_verdict runs_end(const reading *r, job_runs *runs)
{
    int err = RATION_OK;

    if (runs->job != NULL && runs->count > 0)
        err = rn_batch_restore_runs(r->batch, (ration_text){runs->job, runs->size}, runs->runs, runs->count);
    rn_mem_free(rn_mem_default(), runs->job);
    runs->job = NULL;
    runs->count = 0;
    if (err == RATION_ERR_NOMEM)
        return no_memory(r);
    return err == RATION_OK ? RN_FILE_GOOD : broken(r, "a run is out of range");
}

static rn_verdict read_run(const reading *r, job_runs *runs, sqlite3_stmt *stmt)
{
    const char *job = (const char *)sqlite3_column_text(stmt, 0);
    const size_t size = (size_t)sqlite3_column_bytes(stmt, 0);
    bool sound = job != NULL && sqlite3_column_type(stmt, 0) == SQLITE_TEXT;

    for (int i = 1; i < 6; i++)
        sound = sound && sqlite3_column_type(stmt, i) == SQLITE_INTEGER;
    if (!sound)
        return broken(r, "a run is not what it may be");
    if (runs->job == NULL || runs->size != size || memcmp(runs->job, job, size) != 0) {
        const rn_verdict verdict = runs_end(r, runs);

        if (verdict != RN_FILE_GOOD)
            return verdict;
        runs->job = rn_mem_textdup(rn_mem_default(), (ration_text){job, size});
        if (runs->job == NULL)
            return no_memory(r);
        runs->size = size;
    }
    if (runs->count == RATION_RUNS_MAX)
        return broken(r, "the runs of a job are too many");
    runs->runs[runs->count++] = (rn_kept_run){
        sqlite3_column_int64(stmt, 1),
        {sqlite3_column_int64(stmt, 2)},
        {sqlite3_column_int64(stmt, 3), sqlite3_column_int64(stmt, 4), sqlite3_column_int64(stmt, 5)},
    };
    return RN_FILE_GOOD;
}

static rn_verdict read_runs(reading *r)
{
    static const char sql[] = "SELECT job, number, at, requests, retries, fan_out FROM runs ORDER BY job, number";
    rn_verdict verdict = RN_FILE_GOOD;
    job_runs runs = {.job = NULL};
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(r->db, sql, -1, &stmt, NULL);

    while (rc == SQLITE_OK && verdict == RN_FILE_GOOD && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        rc = SQLITE_OK;
        verdict = read_run(r, &runs, stmt);
    }
    if (verdict == RN_FILE_GOOD && rc == SQLITE_DONE)
        verdict = runs_end(r, &runs);
    rn_mem_free(rn_mem_default(), runs.job);
    (void)sqlite3_finalize(stmt);
    if (verdict == RN_FILE_GOOD && rc != SQLITE_DONE)
        return fault_of_sqlite(r, rc);
    return verdict;
}

/* ---- all of it ---- */

static rn_verdict read_all(reading *r, rn_found *out)
{
    rn_verdict verdict = check_version(r);

    if (verdict == RN_FILE_GOOD)
        verdict = check_schema(r);
    if (verdict == RN_FILE_GOOD)
        verdict = check_pages(r);
    if (verdict == RN_FILE_GOOD)
        verdict = read_meta(r, out);
    for (int a = 0; a < RN_ARRAYS && verdict == RN_FILE_GOOD; a++)
        verdict = read_array(r, a);
    for (size_t t = 0; t < RN_TABLES && verdict == RN_FILE_GOOD; t++)
        verdict = read_table(r, &rn_tables[t]);
    if (verdict == RN_FILE_GOOD)
        verdict = read_runs(r);
    for (int a = 0; a < RN_ARRAYS; a++)
        out->orphans = out->orphans || r->arrays[a].taken < r->arrays[a].count;
    return verdict;
}

rn_verdict rn_sqlite_read(const char *path, const char *real, rn_batch *batch, rn_found *out, rn_ledger_error *error)
{
    reading r = {.path = path, .batch = batch, .error = error};

    *out = (rn_found){.orphans = false};

    const int rc = open_to_read(real, &r.db);
    const rn_verdict verdict = rc != SQLITE_OK ? fault_of_sqlite(&r, rc) : read_all(&r, out);

    (void)sqlite3_close(r.db);
    for (int a = 0; a < RN_ARRAYS; a++)
        rn_mem_free(rn_mem_default(), r.arrays[a].items);
    rn_mem_free(rn_mem_default(), r.parts);
    return verdict;
}

int64_t rn_sqlite_pid(const char *real)
{
    sqlite3 *db = NULL;
    int64_t pid = 0;

    if (open_to_read(real, &db) == SQLITE_OK)
        (void)number_read(db, "SELECT value FROM meta WHERE name = 'pid'", &pid);
    (void)sqlite3_close(db);
    return pid;
}
