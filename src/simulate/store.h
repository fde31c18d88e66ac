/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_STORE_H
#define RN_SIMULATE_STORE_H

#include <ration/state.h>

#include "base/map.h"

/*
 * A ledger without a file: an engine's records as a batch, and what of them is durable. What is put lies in the batch,
 * the last of each thing; a commit makes the batch durable as a whole, a drop loses it as a whole.
 */
typedef struct rn_store {
    rn_map batch;
    rn_map durable;
    ration_record *loaded;
    int err; /* of the puts since the last commit or drop; such a batch is not to be committed */
} rn_store;

void rn_store_init(rn_store *store);
void rn_store_fini(rn_store *store);

/* For `ration_engine_save`: `ctx` is the store. Copies. */
void rn_store_put(void *ctx, const ration_record *record);
int rn_store_commit(rn_store *store); /* RATION_ERR_NOMEM */
void rn_store_drop(rn_store *store);
/* The latest instant that anything durable is of; 0: there is nothing. */
ration_time rn_store_newest(const rn_store *store);
/* All that is durable. Borrowed until the next commit. RATION_ERR_NOMEM. */
int rn_store_load(rn_store *store, bool unclean, ration_state *out);

#endif
