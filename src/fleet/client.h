/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_CLIENT_H
#define RN_FLEET_CLIENT_H

#include <pthread.h>
#include <sys/queue.h>
#include <uv.h>

#include <ration/fleet.h>

#include "net/loop.h"

/* The thread of a `ration_fleet`, and how others have it do something. */

typedef struct rn_task {
    STAILQ_ENTRY(rn_task) link;
    void (*run)(struct rn_task *task); /* on the fleet's thread */
} rn_task;

STAILQ_HEAD(rn_tasks, rn_task);

/* What comes after `rn_client_call`'s function has begun something that ends later. */
typedef struct rn_client_job {
    rn_task task;
    ration_fleet *fleet;
    void (*begin)(struct rn_client_job *job); /* on the fleet's thread; ends with rn_client_done, at once or later */
    void *with;
    int err;
    bool done;
} rn_client_job;

struct ration_fleet {
    pthread_t thread;
    pthread_mutex_t lock; /* of `tasks`, of jobs, and of what is said to be under it */
    pthread_cond_t ended; /* a job is done */
    rn_loop *loop;
    uv_async_t called;
    struct rn_tasks tasks;
    bool ending;
    char *redis, *name, *user, *password, *ca_file; /* the options, with every default filled in */
    int64_t connect_timeout_us, command_timeout_us, waiter_ttl_us;
    unsigned replicas;
};

/* Have the thread do it; in order. From any thread, also from within. */
void rn_client_post(ration_fleet *fleet, rn_task *task);
/* Have the thread do it and wait until it is done. Its `err`; RATION_ERR_INVALID: from within. */
int rn_client_call(ration_fleet *fleet, void (*begin)(rn_client_job *job), void *with);
void rn_client_done(rn_client_job *job, int err);
/* A named thread with all signals blocked. RATION_ERR_IO. */
int rn_client_thread(pthread_t *out, const char *name, void *(*run)(void *ctx), void *ctx);
bool rn_client_is_inside(const ration_fleet *fleet);

#endif
