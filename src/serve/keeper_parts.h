/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_KEEPER_PARTS_H
#define RN_SERVE_KEEPER_PARTS_H

#include "serve/keeper.h"

/* Between keeper.c (rounds) and keeper_load.c (what was kept, at the start). */

TAILQ_HEAD(rn_keeper_waiters, rn_keeper_waiter);

struct rn_keeper {
    rn_loop *loop;
    const rn_log *log;
    rn_ledger *ledger;
    int64_t flush_us;
    ration_engine *engine;
    void (*touched)(void *user);
    void *user;
    rn_timer timer; /* the next round */
    bool strict;    /* some quota is */
    bool flushing;
    bool whole;    /* all that the last save gave out was put */
    bool owed;     /* something was given out that the engine does not know to be kept */
    bool all;      /* the next save gives everything */
    bool troubled; /* the last round failed */
    bool began;    /* rounds have begun */
    bool stopped;  /* and ended with everything written */
    uint64_t attempts;
    ration_time complained_at;
    ration_time round_at;                   /* the last began */
    ration_time written_at;                 /* nothing was missing in it then */
    struct rn_keeper_waiters present, next; /* for the round that is under way, and for the one after it */
    size_t waiting;
};

/* NULL: nothing is kept. */
const char *rn_keeper_path(const rn_keeper *keeper);
void rn_keeper_error(rn_net_error *error, const char *what, const char *more);

#endif
