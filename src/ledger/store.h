/* SPDX-License-Identifier: MIT */
#ifndef RN_LEDGER_STORE_H
#define RN_LEDGER_STORE_H

#include "ledger/batch.h"

/* Where a batch lands: SQLite, nothing at all, or what is only looked into. */

#define RN_SALT_BYTES 32

typedef struct rn_store rn_store;

typedef enum rn_ending {
    RN_ENDING_CLEAN = 0, /* all that was put is written */
    RN_ENDING_UNCLEAN,
    RN_ENDING_KILLED, /* as if nobody had closed it */
} rn_ending;

typedef struct rn_store_kind {
    bool keeps; /* what is put should be gathered for it */
    /* Write what is in flight, all of it or nothing. On any thread, one at a time. RATION_ERR_IO with `*error`. */
    int (*write)(rn_store *store, const rn_batch *batch, rn_ledger_error *error);
    void (*close)(rn_store *store, ration_time now, rn_ending ending); /* and free */
} rn_store_kind;

struct rn_store {
    const rn_store_kind *kind;
    uint64_t rows; /* written */
    bool unclean;
    rn_ledger_story story;
    char *aside; /* where a broken file went, or NULL */
    char salt[RN_SALT_BYTES];
};

/* RATION_ERR_NOMEM, RATION_ERR_IO. */
int rn_none_open(rn_store **out);
/* What is in the file goes into the batch, which is empty before. RATION_ERR_NOMEM, RATION_ERR_IO with `*error`. */
int rn_sqlite_open(const rn_ledger_options *options, rn_batch *batch, rn_store **out, rn_ledger_error *error);

#endif
