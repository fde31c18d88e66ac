/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_KEEPER_H
#define RN_SERVE_KEEPER_H

#include <sys/queue.h>

#include <ration/engine.h>

#include "ledger/ledger.h"
#include "net/loop.h"
#include "net/server.h" /* rn_net_error */
#include "serve/log.h"

/*
 * Between the engine and the ledger: what was kept goes in before the first call; what changes comes out every `flush`,
 * and sooner when a strict quota wants it. Chapter 3, "Ledger".
 *
 * It never delays a call. What cannot be written is tried again, reported and shown; only a strict quota at its mark
 * waits, and that is the engine's doing.
 */
typedef struct rn_keeper rn_keeper;

/* All is borrowed; texts for the call, the rest for the keeper's life. */
typedef struct rn_keeper_options {
    rn_loop *loop;
    const rn_log *log;
    const char *path; /* NULL: nothing is kept */
    bool aside;       /* a ledger that cannot be read is put aside, and a new one begun */
    int64_t flush_us;
} rn_keeper_options;

/* Somebody who may not be told before what was done is durable. */
typedef struct rn_keeper_waiter { /* members are private, but for `kept` */
    TAILQ_ENTRY(rn_keeper_waiter) link;
    void (*kept)(struct rn_keeper_waiter *waiter);
    struct rn_keeper_waiters *in; /* NULL: it does not wait */
} rn_keeper_waiter;

typedef struct rn_keeper_status {
    rn_ledger_status ledger;
    int64_t age_us;    /* since nothing was missing in it */
    ration_need need;  /* of strict quotas */
    bool behind;       /* marks that were given out could not be written */
    size_t waiting;    /* answers that wait until it is written */
    uint64_t attempts; /* in a row that failed */
} rn_keeper_status;

/* Some quota has a mark that must be kept. */
bool rn_rules_are_strict(const ration_rules *rules);

/* The ledger of `path`, locked. RATION_ERR_IO with `*error` filled: see rn_ledger_open; RATION_ERR_NOMEM. */
RATION_MUST_CHECK int rn_keeper_open(const rn_keeper_options *options, rn_keeper **out, rn_net_error *error);

/* Is anything kept? Else no engine needs `keeps`, and all that follows does nothing. */
bool rn_keeper_keeps(const rn_keeper *keeper);
ration_text rn_keeper_salt(const rn_keeper *keeper);
/* For what is kept beside the engine's records: runs are put into it, and go with the next flush. NULL: abandoned. */
rn_ledger *rn_keeper_ledger(rn_keeper *keeper);

/*
 * What was kept, into the engine, which has had no request yet. RATION_ERR_IO with `*error` filled: there is a row that
 * cannot be; RATION_ERR_NOMEM.
 */
RATION_MUST_CHECK int rn_keeper_load(rn_keeper *keeper, ration_engine *engine, rn_net_error *error);

/*
 * From now on. `touched` is called whenever the engine may have events after a call of the keeper's.
 * RATION_ERR_NOMEM.
 */
RATION_MUST_CHECK int rn_keeper_start(rn_keeper *keeper, ration_engine *engine, const ration_rules *rules,
                                      void (*touched)(void *user), void *user);

/* The engine has other rules; what is kept goes on. */
void rn_keeper_reloaded(rn_keeper *keeper, const ration_rules *rules, int64_t flush_us);

/* After each turn's events: does a strict quota need something? O(1) if not. */
void rn_keeper_look(rn_keeper *keeper);

/*
 * What was just settled may be above a mark. True: `waiter->kept` is called once it is durable, never from inside;
 * until then, or rn_keeper_forget, the waiter stays where it is. False: there is nothing to wait for.
 */
bool rn_keeper_hold(rn_keeper *keeper, rn_keeper_waiter *waiter);
void rn_keeper_forget(rn_keeper *keeper, rn_keeper_waiter *waiter); /* one that does not wait is fine */

void rn_keeper_look_at(rn_keeper *keeper, rn_keeper_status *out);

/* The last word, before the engine goes: all that has changed is written, on this thread. What cannot be is logged. */
void rn_keeper_stop(rn_keeper *keeper);

/* As if the process were killed now: what is not written yet is lost. Then close. */
void rn_keeper_abandon(rn_keeper *keeper);

/*
 * Frees. After a stop that wrote everything the ledger is marked so; else it is as after a kill, and RATION_ERR_IO says
 * so. One that was never started leaves the mark as it was. NULL is fine.
 */
int rn_keeper_close(rn_keeper *keeper);

#endif
