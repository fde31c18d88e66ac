/* SPDX-License-Identifier: MIT */
/* No ledger: nothing is kept, and the salt is made anew at each start. */
#include <sys/random.h>

#include "base/mem.h"
#include "ledger/store.h"

static int none_write(rn_store *store, const rn_batch *batch, rn_ledger_error *error)
{
    (void)store;
    (void)batch;
    (void)error;
    return RATION_OK;
}

static void none_close(rn_store *store, ration_time now, rn_ending ending)
{
    (void)now;
    (void)ending;
    rn_mem_free(rn_mem_default(), store);
}

static const rn_store_kind none = {.keeps = false, .write = none_write, .close = none_close};

int rn_none_open(rn_store **out)
{
    rn_store *store = rn_mem_zalloc(rn_mem_default(), 1, sizeof *store);

    if (store == NULL)
        return RATION_ERR_NOMEM;
    store->kind = &none;
    if (getrandom(store->salt, sizeof store->salt, 0) != (ssize_t)sizeof store->salt) {
        rn_mem_free(rn_mem_default(), store);
        return RATION_ERR_IO;
    }
    *out = store;
    return RATION_OK;
}
