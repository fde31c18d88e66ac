/* SPDX-License-Identifier: MIT */
/*
 * The thread of a `ration_fleet`: a loop on which all that is made with it lives.
 *
 * Other threads touch nothing of that. They leave tasks in a list and wake the loop, which takes the whole list and
 * does one after the other; where they need what comes of it they sleep until it is there. A wake may stand for many
 * tasks.
 *
 * Signals are the program's affair: threads of the library have all of them blocked.
 */
#include "fleet/client.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define WAIT_US (250 * INT64_C(1000))
#define WAITER_US (3000 * INT64_C(1000))

int rn_client_thread(pthread_t *out, const char *name, void *(*run)(void *ctx), void *ctx)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);

    const int err = pthread_create(out, NULL, run, ctx);

    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err != 0)
        return RATION_ERR_IO;
    (void)pthread_setname_np(*out, name);
    return RATION_OK;
}

static void on_called(uv_async_t *async)
{
    ration_fleet *const fleet = async->data;
    struct rn_tasks tasks = STAILQ_HEAD_INITIALIZER(tasks);
    rn_task *task;
    bool ending;

    (void)pthread_mutex_lock(&fleet->lock);
    STAILQ_CONCAT(&tasks, &fleet->tasks);
    ending = fleet->ending;
    (void)pthread_mutex_unlock(&fleet->lock);

    while ((task = STAILQ_FIRST(&tasks)) != NULL) {
        STAILQ_REMOVE_HEAD(&tasks, link); /* it may be gone once it has run */
        task->run(task);
    }
    if (ending) {
        uv_close((uv_handle_t *)async, NULL);
        rn_loop_stop(fleet->loop);
    }
}

void rn_client_post(ration_fleet *fleet, rn_task *task)
{
    (void)pthread_mutex_lock(&fleet->lock);
    STAILQ_INSERT_TAIL(&fleet->tasks, task, link);
    (void)pthread_mutex_unlock(&fleet->lock);
    (void)uv_async_send(&fleet->called);
}

static void job_run(rn_task *task)
{
    rn_client_job *const job = (rn_client_job *)(void *)task;

    job->begin(job);
}

void rn_client_done(rn_client_job *job, int err)
{
    ration_fleet *const fleet = job->fleet;

    (void)pthread_mutex_lock(&fleet->lock);
    job->err = err;
    job->done = true;
    (void)pthread_cond_broadcast(&fleet->ended);
    (void)pthread_mutex_unlock(&fleet->lock);
}

bool rn_client_is_inside(const ration_fleet *fleet)
{
    return pthread_equal(pthread_self(), fleet->thread) != 0;
}

int rn_client_call(ration_fleet *fleet, void (*begin)(rn_client_job *job), void *with)
{
    rn_client_job job = {.task = {.run = job_run}, .fleet = fleet, .begin = begin, .with = with};

    if (rn_client_is_inside(fleet))
        return RATION_ERR_INVALID;
    rn_client_post(fleet, &job.task);
    (void)pthread_mutex_lock(&fleet->lock);
    while (!job.done)
        (void)pthread_cond_wait(&fleet->ended, &fleet->lock);
    (void)pthread_mutex_unlock(&fleet->lock);
    return job.err;
}

static void *thread_main(void *ctx)
{
    ration_fleet *const fleet = ctx;

    rn_loop_run(fleet->loop);
    return NULL;
}

/* ---- life */

static void options_free(ration_fleet *fleet)
{
    const ration_allocator *const mem = rn_mem_default();

    if (fleet->password != NULL)
        explicit_bzero(fleet->password, strlen(fleet->password));
    rn_mem_free(mem, fleet->redis);
    rn_mem_free(mem, fleet->name);
    rn_mem_free(mem, fleet->user);
    rn_mem_free(mem, fleet->password);
    rn_mem_free(mem, fleet->ca_file);
}

/* False: no memory. */
static bool text_copy(char **to, const char *from)
{
    *to = from != NULL ? rn_mem_strdup(rn_mem_default(), from) : NULL;
    return *to != NULL || from == NULL;
}

static bool options_copy(ration_fleet *fleet, const ration_fleet_options *from)
{
    const bool redis = text_copy(&fleet->redis, from->redis);
    const bool name = text_copy(&fleet->name, from->name != NULL ? from->name : "default");
    const bool user = text_copy(&fleet->user, from->user);
    const bool password = text_copy(&fleet->password, from->password);
    const bool ca_file = text_copy(&fleet->ca_file, from->ca_file);

    fleet->connect_timeout_us = from->connect_timeout_us > 0 ? from->connect_timeout_us : WAIT_US;
    fleet->command_timeout_us = from->command_timeout_us > 0 ? from->command_timeout_us : WAIT_US;
    fleet->waiter_ttl_us = from->waiter_ttl_us > 0 ? from->waiter_ttl_us : WAITER_US;
    fleet->replicas = from->replicas;
    return redis && name && user && password && ca_file;
}

static int loop_start(ration_fleet *fleet)
{
    int err = rn_loop_new(&fleet->loop);

    if (err != RATION_OK)
        return err;
    if (uv_async_init(rn_loop_uv(fleet->loop), &fleet->called, on_called) != 0) {
        rn_loop_free(fleet->loop);
        return RATION_ERR_IO;
    }
    fleet->called.data = fleet;
    err = rn_client_thread(&fleet->thread, "ration-fleet", thread_main, fleet);
    if (err != RATION_OK) {
        uv_close((uv_handle_t *)&fleet->called, NULL);
        rn_loop_free(fleet->loop);
    }
    return err;
}

int ration_fleet_new(const ration_fleet_options *options, ration_fleet **out)
{
    if (out == NULL || options == NULL || options->redis == NULL || options->connect_timeout_us < 0 ||
        options->command_timeout_us < 0 || options->waiter_ttl_us < 0)
        return RATION_ERR_INVALID;

    ration_fleet *const fleet = rn_mem_zalloc(rn_mem_default(), 1, sizeof *fleet);

    if (fleet == NULL)
        return RATION_ERR_NOMEM;
    STAILQ_INIT(&fleet->tasks);
    (void)pthread_mutex_init(&fleet->lock, NULL);
    (void)pthread_cond_init(&fleet->ended, NULL);

    const int err = options_copy(fleet, options) ? loop_start(fleet) : RATION_ERR_NOMEM;

    if (err != RATION_OK) {
        (void)pthread_cond_destroy(&fleet->ended);
        (void)pthread_mutex_destroy(&fleet->lock);
        options_free(fleet);
        rn_mem_free(rn_mem_default(), fleet);
        return err;
    }
    *out = fleet;
    return RATION_OK;
}

void ration_fleet_free(ration_fleet *fleet)
{
    if (fleet == NULL)
        return;
    (void)pthread_mutex_lock(&fleet->lock);
    fleet->ending = true;
    (void)pthread_mutex_unlock(&fleet->lock);
    (void)uv_async_send(&fleet->called);
    (void)pthread_join(fleet->thread, NULL);
    rn_loop_free(fleet->loop);
    (void)pthread_cond_destroy(&fleet->ended);
    (void)pthread_mutex_destroy(&fleet->lock);
    options_free(fleet);
    rn_mem_free(rn_mem_default(), fleet);
}
