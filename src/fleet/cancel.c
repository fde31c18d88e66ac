/* SPDX-License-Identifier: MIT */
/*
 * Giving up a wait.
 *
 * A cancel keeps a list of those that watch it, under a lock of its own: whoever is told is still there, since it has
 * to take that lock to leave.
 *
 * Invariant: the lock of a cancel is taken before a fleet's, never the other way round.
 */
#include "fleet/cancel.h"

#include "base/mem.h"

void rn_cancel_init(ration_cancel *cancel)
{
    (void)pthread_mutex_init(&cancel->lock, NULL);
    cancel->fired = false;
    TAILQ_INIT(&cancel->watches);
}

void rn_cancel_fini(ration_cancel *cancel)
{
    (void)pthread_mutex_destroy(&cancel->lock);
}

bool rn_cancel_watch(ration_cancel *cancel, rn_watch *watch)
{
    bool fired;

    if (cancel == NULL)
        return true;
    (void)pthread_mutex_lock(&cancel->lock);
    fired = cancel->fired;
    if (!fired)
        TAILQ_INSERT_TAIL(&cancel->watches, watch, link);
    (void)pthread_mutex_unlock(&cancel->lock);
    return !fired;
}

void rn_cancel_unwatch(ration_cancel *cancel, rn_watch *watch)
{
    if (cancel == NULL)
        return;
    (void)pthread_mutex_lock(&cancel->lock);
    TAILQ_REMOVE(&cancel->watches, watch, link);
    (void)pthread_mutex_unlock(&cancel->lock);
}

int ration_cancel_new(ration_cancel **out)
{
    if (out == NULL)
        return RATION_ERR_INVALID;

    ration_cancel *const cancel = rn_mem_zalloc(rn_mem_default(), 1, sizeof *cancel);

    if (cancel == NULL)
        return RATION_ERR_NOMEM;
    rn_cancel_init(cancel);
    *out = cancel;
    return RATION_OK;
}

void ration_cancel_free(ration_cancel *cancel)
{
    if (cancel == NULL)
        return;
    rn_cancel_fini(cancel);
    rn_mem_free(rn_mem_default(), cancel);
}

void ration_cancel_fire(ration_cancel *cancel)
{
    rn_watch *watch;

    if (cancel == NULL)
        return;
    (void)pthread_mutex_lock(&cancel->lock);
    cancel->fired = true;
    TAILQ_FOREACH (watch, &cancel->watches, link)
        watch->fired(watch);
    (void)pthread_mutex_unlock(&cancel->lock);
}
