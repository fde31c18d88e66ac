/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_LEDGER_STAGE_H
#define TESTS_SUPPORT_LEDGER_STAGE_H

/* A folder of its own for a ledger, and records to put into it. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "ledger/ledger.h"

#include "support/check.h"

#define MINUTE_US INT64_C(60000000)
#define HOUR_US (60 * MINUTE_US)
#define DAY_US (24 * HOUR_US)
/* 2026-11-30 12:00 UTC, and the day's begin. */
#define NOON_US INT64_C(1796040000000000)
#define MORNING_US (NOON_US - 12 * HOUR_US)

typedef struct ledger_stage {
    char folder[32];
    char path[64];
    rn_loop *loop;
    rn_ledger *ledger;
    rn_ledger_error error;
    int done; /* how often it was called */
    int done_err;
} ledger_stage;

static inline ration_time at_us(int64_t us)
{
    return (ration_time){us};
}

static inline void ledger_stage_begin(ledger_stage *s)
{
    /* In memory where that can be: these tests are about files, not about disks. */
    *s = (ledger_stage){.folder = "/dev/shm/ration-test-XXXXXX"};
    if (mkdtemp(s->folder) == NULL) {
        (void)snprintf(s->folder, sizeof s->folder, "/tmp/ration-test-XXXXXX");
        assert_non_null(mkdtemp(s->folder));
    }
    (void)snprintf(s->path, sizeof s->path, "%s/ration.db", s->folder);
    CHECK_EQ(rn_loop_new(&s->loop), RATION_OK);
}

static inline void ledger_stage_end(ledger_stage *s)
{
    char path[sizeof s->folder + 256];
    DIR *folder = opendir(s->folder);
    struct dirent *entry;

    rn_ledger_close(s->ledger, at_us(NOON_US));
    rn_loop_free(s->loop);
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        (void)snprintf(path, sizeof path, "%s/%s", s->folder, entry->d_name);
        if (entry->d_name[0] != '.')
            (void)remove(path);
    }
    (void)closedir(folder);
    CHECK_EQ(rmdir(s->folder), 0);
}

static inline int ledger_try(ledger_stage *s, bool aside)
{
    const rn_ledger_options options = {.path = s->path, .now = at_us(NOON_US), .aside = aside};

    return rn_ledger_open(&options, &s->ledger, &s->error);
}

static inline void ledger_open(ledger_stage *s)
{
    const int err = ledger_try(s, false);

    if (err != RATION_OK)
        print_error("%s\n", s->error.text);
    CHECK_EQ(err, RATION_OK);
}

static inline void ledger_close(ledger_stage *s)
{
    rn_ledger_close(s->ledger, at_us(NOON_US));
    s->ledger = NULL;
}

/* As a kill would leave it. */
static inline void ledger_kill(ledger_stage *s)
{
    rn_ledger_abandon(s->ledger);
    s->ledger = NULL;
}

static inline void ledger_put(ledger_stage *s, ration_record record)
{
    CHECK_EQ(rn_ledger_put(s->ledger, &record), RATION_OK);
}

static inline void ledger_flush(ledger_stage *s)
{
    const int err = rn_ledger_flush_now(s->ledger, at_us(NOON_US));
    rn_ledger_status status;

    rn_ledger_look(s->ledger, &status);
    if (err != RATION_OK)
        print_error("%s\n", status.error);
    CHECK_EQ(err, RATION_OK);
    CHECK_EQ(status.pending, 0);
}

static inline ration_state ledger_load(ledger_stage *s)
{
    ration_state state;

    CHECK_EQ(rn_ledger_load(s->ledger, at_us(NOON_US), &state, &s->error), RATION_OK);
    return state;
}

static inline void ledger_done(void *user, int err)
{
    ledger_stage *s = user;

    s->done++;
    s->done_err = err;
}

/* Flush through the loop. */
static inline int ledger_flush_off(ledger_stage *s)
{
    s->done = 0;
    CHECK_EQ(rn_ledger_flush(s->ledger, s->loop, at_us(NOON_US), ledger_done, s), RATION_OK);
    CHECK_EQ(s->done, 0);
    rn_loop_run(s->loop);
    CHECK_EQ(s->done, 1);
    return s->done_err;
}

/* A day's quota with `used` units. */
static inline ration_record a_quota(const char *key, int64_t used)
{
    return (ration_record){
        .type = RATION_RECORD_QUOTA,
        .provider = ration_text_of("openai"),
        .limit = ration_text_of("rpd"),
        .key = ration_text_of(key),
        .at = at_us(NOON_US),
        .u.quota = {.window_start = at_us(MORNING_US),
                    .window_end = at_us(MORNING_US + DAY_US),
                    .used = used,
                    .remaining_until = at_us(RATION_NEVER_US),
                    .max = RATION_UNSET,
                    .exhausted_until = at_us(RATION_NEVER_US),
                    .mark = RATION_UNSET},
    };
}

static inline ration_record a_bucket(const char *key, int64_t available)
{
    return (ration_record){
        .type = RATION_RECORD_BUCKET,
        .provider = ration_text_of("openai"),
        .limit = ration_text_of("slow"),
        .key = ration_text_of(key),
        .at = at_us(NOON_US),
        .u.available = available,
    };
}

/* The place of a key's record; SIZE_MAX: there is none. */
static inline size_t place_of(const ration_state *state, const char *key)
{
    for (size_t i = 0; i < state->count; i++) {
        const ration_text got = state->records[i].key;

        if (got.size == strlen(key) && memcmp(got.data, key, got.size) == 0)
            return i;
    }
    return SIZE_MAX;
}

static inline int64_t used_of(const ration_state *state, const char *key)
{
    const size_t i = place_of(state, key);

    return i < state->count ? state->records[i].u.quota.used : -1;
}

/* A number that the file tells. */
static inline int64_t count_of(const ledger_stage *s, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    int64_t count = -1;

    CHECK_EQ(sqlite3_open_v2(s->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        count = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    return count;
}

static inline void check_parts(const ration_part *got, size_t got_count, const ration_part *want, size_t want_count)
{
    CHECK_EQ(got_count, want_count);
    for (size_t i = 0; i < want_count; i++) {
        CHECK_EQ(got[i].last.us, want[i].last.us);
        CHECK_EQ(got[i].units, want[i].units);
    }
}

/* Up to five rows of an array. */
typedef struct steps {
    size_t count;
    ration_part parts[5];
} steps;

/* A day's quota with arrays. */
static inline ration_record with_parts(const steps *parts, const steps *timeline)
{
    ration_record record = a_quota("k", 1);

    record.u.quota.parts = parts->parts;
    record.u.quota.part_count = parts->count;
    record.u.quota.timeline = timeline->parts;
    record.u.quota.timeline_count = timeline->count;
    return record;
}

#define P(minute, units)                                                                                               \
    {                                                                                                                  \
        {MORNING_US + (minute)*MINUTE_US}, (units)                                                                     \
    }

#endif
