/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_WORK_H
#define RN_NET_WORK_H

#include "net/loop.h"

/* What may block, done on another thread; its end comes back to the loop. */
typedef struct rn_work rn_work;

/**
 * Call `run` on a thread of the pool, then `done` on the loop, never from inside. Keeps the loop running.
 *
 * Ownership  `*out` is the work's own and gone once `done` has returned. What `user` points to is `run`'s alone until
 *            then.
 * Errors     RATION_ERR_NOMEM.
 */
RATION_MUST_CHECK int rn_work_start(rn_loop *loop, void (*run)(void *user), void (*done)(void *user), void *user,
                                    rn_work **out);

/** Return when `run` has; it is called here if no thread has taken it up yet. `done` is not called any more, and `work`
 *  is the loop's to free. On the loop's thread. */
void rn_work_join(rn_work *work);

#endif
