/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_LOAD_H
#define RN_SIMULATE_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/connection.h"
#include "net/loop.h"
#include "simulate/schedule.h"

/*
 * A client that plays a schedule against a base URL, on the loop, over real connections: each call leaves at its
 * instant, whether or not those before it have been answered, and is made once. One that breaks off without an answer
 * may be made again, as if the server were restarted.
 */
typedef struct rn_load rn_load;

/* What became of one call, in the order of the schedule. */
typedef struct rn_load_result {
    int status; /* 0: no answer */
    int64_t sent_us;
    int64_t done_us;   /* both after the start */
    int64_t waited_us; /* what the gateway says that it waited, and what went before a call that was made again */
    int repeats;       /* how often it broke off and was made again */
} rn_load_result;

typedef void rn_load_done_fn(void *user, rn_load *load);

/* All is borrowed for the life of the load, texts too. */
typedef struct rn_load_options {
    rn_loop *loop;
    rn_upstream_pool *pool;
    const char *host;
    uint16_t port;
    const char *prefix;        /* before each path; "" for none */
    const char *authorization; /* the value of Authorization; NULL: none */
    bool ration_fields;        /* tell tenant and priority to a gateway */
    int64_t wait_us;           /* with them: how long a call may wait */
    int64_t again_us;          /* after this long a call that broke off is made again; 0: it has failed */
    const rn_schedule *schedule;
    rn_load_done_fn *on_done; /* after the last answer; the load may be freed in it */
    void *user;
} rn_load_options;

/* Start now. RATION_ERR_NOMEM, RATION_ERR_INVALID. `*out` is the caller's, freed with `rn_load_free`. */
RATION_MUST_CHECK int rn_load_new(const rn_load_options *options, rn_load **out);
/* What still runs is aborted. NULL is fine. */
void rn_load_free(rn_load *load);

const rn_load_result *rn_load_results(const rn_load *load);
/* How many calls have been answered or have failed. */
size_t rn_load_finished(const rn_load *load);

#endif
