/* SPDX-License-Identifier: MIT */
/*
 * What was kept, into the engine.
 *
 * In portions, each a line of a recording, which may have 16 MiB.
 */
#include "base/text.h"
#include "serve/keeper_parts.h"

#define LOAD_BYTES ((size_t)4 << 20)
/* No more than so many bytes of a line: a record without its texts and parts, a part, a byte of a text. */
#define RECORD_BYTES 1024
#define PART_BYTES 64
#define BYTE_BYTES 6

static size_t record_bytes(const ration_record *record)
{
    const size_t parts =
        record->type == RATION_RECORD_QUOTA ? record->u.quota.part_count + record->u.quota.timeline_count : 0;

    return RECORD_BYTES + BYTE_BYTES * (record->provider.size + record->limit.size + record->key.size) +
           PART_BYTES * parts;
}

typedef struct loading {
    ration_engine *engine;
    ration_time now;
    ration_state all;
    size_t done, unknown;
} loading;

/* How many records are the next portion. */
static size_t portion_size(const loading *l)
{
    size_t count = 0, bytes = 0;

    while (l->done + count < l->all.count) {
        bytes += record_bytes(&l->all.records[l->done + count]);
        if (count > 0 && bytes > LOAD_BYTES)
            break;
        count++;
    }
    return count;
}

static int portion_load(loading *l)
{
    const ration_state some = {
        .records = l->all.records + l->done, .count = portion_size(l), .unclean = l->all.unclean};
    size_t unknown = 0;
    const int err = ration_engine_load(l->engine, l->now, &some, &unknown);

    l->unknown += unknown;
    l->done += some.count;
    return err;
}

static void load_log(const rn_keeper *k, const loading *l)
{
    char count[24], unknown[24];
    rn_builder b;

    rn_builder_init(&b, count, sizeof count);
    rn_builder_int(&b, (int64_t)l->all.count);
    rn_builder_init(&b, unknown, sizeof unknown);
    rn_builder_int(&b, (int64_t)l->unknown);
    rn_log_line(k->log, l->now, "info", "ledger read", "ledger", rn_keeper_path(k), "records", count, "unknown",
                l->unknown > 0 ? unknown : NULL, "last_stop", l->all.unclean ? "unclean" : "in order", NULL);
}

/* At least one portion, so that a recording begins with a state even where that is nothing. */
int rn_keeper_load(rn_keeper *k, ration_engine *engine, rn_net_error *error)
{
    loading l = {.engine = engine, .now = rn_loop_now(k->loop)};
    rn_ledger_error fault = {""};

    if (!rn_keeper_keeps(k))
        return RATION_OK;
    int err = rn_ledger_load(k->ledger, l.now, &l.all, &fault);
    if (err != RATION_OK) {
        rn_keeper_error(error, fault.text, NULL);
        return err;
    }
    do {
        err = portion_load(&l);
    } while (l.done < l.all.count && err == RATION_OK);
    if (err == RATION_ERR_INVALID) {
        rn_keeper_error(error, rn_keeper_path(k), "a record in it is out of its range; --ledger-aside begins anew");
        return RATION_ERR_IO;
    }
    if (err == RATION_OK)
        load_log(k, &l);
    return err;
}
