/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_CANCEL_H
#define RN_FLEET_CANCEL_H

#include <pthread.h>
#include <sys/queue.h>

#include <ration/fleet.h>

/* Giving up a wait: who watches a cancel is told, on the thread that fires it and under the cancel's lock. */

typedef struct rn_watch {
    TAILQ_ENTRY(rn_watch) link;
    void (*fired)(struct rn_watch *watch);
    void *user;
} rn_watch;

struct ration_cancel {
    pthread_mutex_t lock;
    bool fired;
    TAILQ_HEAD(, rn_watch) watches;
};

void rn_cancel_init(ration_cancel *cancel);
void rn_cancel_fini(ration_cancel *cancel);
/* False: it has been fired, and is not watched. NULL never is. */
bool rn_cancel_watch(ration_cancel *cancel, rn_watch *watch);
/* Once this is back it is told no more. */
void rn_cancel_unwatch(ration_cancel *cancel, rn_watch *watch);

#endif
