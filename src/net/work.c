/* SPDX-License-Identifier: MIT */
/*
 * Work for libuv's thread pool, with a way to wait for it.
 *
 * Who waits takes the work back if no thread has it yet, and does it itself: so nobody waits for a pool that is busy
 * with something else. Otherwise a semaphore tells when `run` has returned. Either way libuv still has the request, and
 * the loop frees it when it comes back.
 *
 * Invariant: `run` is called exactly once; `done` at most once, after it.
 */
#include "net/work.h"

#include <signal.h>
#include <stdlib.h>

#include <uv.h>

struct rn_work {
    uv_work_t uv;
    uv_sem_t has_run;
    void (*run)(void *user);
    void (*done)(void *user);
    void *user;
};

static void work_runs(uv_work_t *uv)
{
    rn_work *work = uv->data;

    work->run(work->user);
    uv_sem_post(&work->has_run);
}

/* `status` is UV_ECANCELED for what was taken back; then `done` is not wanted either. */
static void work_comes_back(uv_work_t *uv, int status)
{
    rn_work *work = uv->data;

    (void)status;
    if (work->done != NULL)
        work->done(work->user);
    uv_sem_destroy(&work->has_run);
    free(work);
}

int rn_work_start(rn_loop *loop, void (*run)(void *user), void (*done)(void *user), void *user, rn_work **out)
{
    rn_work *work = calloc(1, sizeof *work);
    sigset_t all, before;

    if (work == NULL)
        return RATION_ERR_NOMEM;
    work->run = run;
    work->done = done;
    work->user = user;
    work->uv.data = work;
    if (uv_sem_init(&work->has_run, 0) != 0) {
        free(work);
        return RATION_ERR_NOMEM;
    }
    *out = work;
    /* The first work starts the pool's threads, which inherit the mask: signals are for the loop's thread. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    /* Fails only where there is no function to run. */
    (void)uv_queue_work(rn_loop_uv(loop), &work->uv, work_runs, work_comes_back);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return RATION_OK;
}

void rn_work_join(rn_work *work)
{
    work->done = NULL;
    if (uv_cancel((uv_req_t *)&work->uv) == 0) {
        work->run(work->user);
    } else {
        uv_sem_wait(&work->has_run);
    }
}
