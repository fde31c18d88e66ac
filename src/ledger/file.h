/* SPDX-License-Identifier: MIT */
#ifndef RN_LEDGER_FILE_H
#define RN_LEDGER_FILE_H

#include <sys/stat.h>

#include "ledger/ledger.h"

/* The file of a ledger as a file: where it is, whose it is, and out of the way. */

typedef struct rn_file {
    char *path; /* absolute and without links */
    int lock;   /* a descriptor that holds the lock; -1: none */
    struct stat at_open;
} rn_file;

/* One line into `error`, `path` before it. */
void rn_ledger_fault(rn_ledger_error *error, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Where `path` leads. RATION_ERR_IO with `*error`: to nothing that could be a ledger. `*exists`: there is a file. */
int rn_file_find(const char *path, rn_file *out, bool *exists, rn_ledger_error *error);
/*
 * Open the file, or make it, and lock it for this process. RATION_ERR_FULL: it is locked.
 *
 * The lock is on the ledger itself, so it goes wherever that goes. A process that closes any descriptor of a file gives
 * up the locks that SQLite has on it; so close this one after SQLite's, and never open a ledger twice in one process.
 */
int rn_file_lock(rn_file *file, const char *path, rn_ledger_error *error);
/* Nobody has moved, deleted or replaced it since. */
bool rn_file_is_there(const rn_file *file);
/* Rename it, and what belongs to it, to a name with the time; the lock goes with it, and is given up. `*out` is that
 * name, to be freed. */
int rn_file_put_aside(rn_file *file, const char *path, ration_time now, char **out, rn_ledger_error *error);
void rn_file_close(rn_file *file);

#endif
