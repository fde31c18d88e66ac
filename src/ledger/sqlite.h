/* SPDX-License-Identifier: MIT */
#ifndef RN_LEDGER_SQLITE_H
#define RN_LEDGER_SQLITE_H

#include <sqlite3.h>

#include "ledger/store.h"

/* What the two halves of the SQLite store share: the reader, which changes nothing, and the writer. */

#define RN_APPLICATION_ID 0x7261746e /* "ratn" */
#define RN_SCHEMA_VERSION RN_LEDGER_VERSION

typedef enum rn_verdict {
    RN_FILE_GOOD = 0,
    RN_FILE_NEW,    /* nothing has been written into it yet */
    RN_FILE_BROKEN, /* or no ledger at all */
    RN_FILE_NEWER,
    RN_FILE_SHUT, /* it cannot be read now: locked, or the system says no, or no memory */
} rn_verdict;

typedef struct rn_found {
    char salt[RN_SALT_BYTES];
    rn_ledger_story story;
    bool orphans; /* of arrays, whose quota is gone */
} rn_found;

/* Read all that is in the file at `real` into `batch`; nothing is changed, and nothing made. `*error` says what is
 * wrong, with `path` for its name. */
rn_verdict rn_sqlite_read(const char *path, const char *real, rn_batch *batch, rn_found *out, rn_ledger_error *error);
/* Only who had it last; 0: it does not say. */
int64_t rn_sqlite_pid(const char *real);

#endif
