/* SPDX-License-Identifier: MIT */
#ifndef RN_LEDGER_LEDGER_H
#define RN_LEDGER_LEDGER_H

/*
 * Where what must outlive the process is kept: the engine's records, the runs of jobs, the salt of credential keys.
 * Specification chapter 3, "Ledger". Two implementations: SQLite, and none.
 *
 * What is put goes into a batch in memory; a flush hands the batch to a thread, which writes it in one transaction. The
 * loop never waits for a disk. What could not be written stays in the batch: a later put of the same thing takes its
 * place, so the batch is never larger than what there is to keep.
 */

#include <ration/plan.h>
#include <ration/state.h>

#include "net/loop.h"

#define RN_LEDGER_VERSION 1 /* of the tables: `user_version` of the file */

typedef struct rn_ledger rn_ledger;

typedef struct rn_ledger_error {
    char text[512]; /* one line, begins with the path */
} rn_ledger_error;

typedef struct rn_ledger_options {
    const char *path; /* NULL: none is kept */
    ration_time now;  /* the wall clock; names what is put aside */
    bool aside;       /* a file that is not a ledger, or a broken one, is renamed, and a new one begun */
    bool read_only;   /* to look inside: nothing is created, locked, migrated or changed */
} rn_ledger_options;

/* A job's run; of each job the last RATION_RUNS_MAX are kept. */
typedef struct rn_ledger_run {
    ration_text job;
    ration_time at;
    ration_run run;
} rn_ledger_run;

/* How it is doing; O(1). */
typedef struct rn_ledger_status {
    const char *path; /* NULL: none */
    bool unclean;     /* the stop before this start was not in order */
    bool flushing;
    bool failing;             /* the last flush was not written, or not wholly */
    ration_time flushed_at;   /* the last that was; RATION_NEVER_US: none yet */
    int64_t flush_us;         /* how long it took */
    uint64_t flushes, faults; /* since the start */
    uint64_t rows;            /* written since the start */
    size_t pending;           /* things in the batch, and in flight */
    char error[256];          /* of the last fault; "": there was none */
} rn_ledger_status;

/* How it was left, as it was found when it was opened. */
typedef struct rn_ledger_story {
    ration_time opened_at, closed_at; /* RATION_NEVER_US: it does not say */
    ration_time unclean_at;           /* when the last process began that found it not in order; 0: none did */
    int64_t pid;                      /* of who opened it; 0: it does not say */
    bool clean;
    char version[32]; /* of the program */
} rn_ledger_story;

/*
 * Open, or make, a ledger, and lock it for this process.
 *
 * Errors  RATION_ERR_IO with `*error` filled: locked by another process (which is named), corrupt, not a ledger,
 *         written by a newer version, cannot be opened or written. Nothing in the file is changed. RATION_ERR_NOMEM.
 */
RATION_MUST_CHECK int rn_ledger_open(const rn_ledger_options *options, rn_ledger **out, rn_ledger_error *error);

/* Where a broken file went with `aside`; NULL: nothing was put aside. */
const char *rn_ledger_aside(const rn_ledger *ledger);

/* For credential keys; 32 bytes, made with the ledger. Without a ledger: anew at each start. */
ration_text rn_ledger_salt(const rn_ledger *ledger);

/*
 * All records that were kept, without those that are of no use any more at `now`: a window that is over stays for the
 * length of one more, because its use is reported and may be carried. Instants after `now`, from a clock that has been
 * set back since, become `now`. Borrowed until the first put. RATION_ERR_NOMEM. Every row has been read and checked
 * when the ledger was opened; 100 000 take less than a second.
 */
RATION_MUST_CHECK int rn_ledger_load(rn_ledger *ledger, ration_time now, ration_state *out, rn_ledger_error *error);

/* All runs, by job in the order of names, the oldest first. Borrowed as above. */
RATION_MUST_CHECK int rn_ledger_load_runs(rn_ledger *ledger, const rn_ledger_run **out, size_t *count,
                                          rn_ledger_error *error);

/* For who looks inside: all records as they are, those of no use any more among them; and its story. As above. */
RATION_MUST_CHECK int rn_ledger_load_all(rn_ledger *ledger, ration_state *out);
const rn_ledger_story *rn_ledger_told(const rn_ledger *ledger);

/* Into the batch; a copy. RATION_ERR_INVALID: a load would refuse it, or the ledger is read only; RATION_ERR_RANGE:
 * names of more than 64 KiB; RATION_ERR_NOMEM. What was in the batch still is. */
int rn_ledger_put(rn_ledger *ledger, const ration_record *record);
int rn_ledger_put_run(rn_ledger *ledger, const rn_ledger_run *run);

/*
 * Write the batch, off the loop. `done` is called once, on the loop, never from inside; `err` is RATION_OK, or
 * RATION_ERR_IO, when the batch is kept. Puts during a flush are of the next. RATION_ERR_INVALID: one is under way.
 */
int rn_ledger_flush(rn_ledger *ledger, rn_loop *loop, ration_time now, void (*done)(void *user, int err), void *user);

/* The same at once, on this thread: at a start or an end. Waits for one that is under way; its `done` is not called. */
int rn_ledger_flush_now(rn_ledger *ledger, ration_time now);

void rn_ledger_look(const rn_ledger *ledger, rn_ledger_status *out);

/* The process stops in order: marks it clean, if the batch is empty. Then frees. NULL is fine. */
void rn_ledger_close(rn_ledger *ledger, ration_time now);

/* Frees without a mark, as if the process had been killed. NULL is fine. */
void rn_ledger_abandon(rn_ledger *ledger);

#endif
