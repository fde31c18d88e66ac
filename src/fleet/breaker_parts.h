/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_BREAKER_PARTS_H
#define RN_FLEET_BREAKER_PARTS_H

#include <stdatomic.h>

#include "fleet/agent.h"
#include "fleet/cancel.h"

/* The inside of a breaker, shared by the files that make it. */

#define RN_BREAKER_CAUSE 64

/* A call of `execute`, on the stack of its thread. The fleet's thread has it from its admission to its end. */
typedef struct rn_fleet_breaker_run {
    rn_agent_ask ask;
    TAILQ_ENTRY(rn_fleet_breaker_run) link; /* in `runs`, since its admission */
    ration_lease lease;                     /* its pass through the circuit; generation 0: none */
    bool late;                              /* the breaker was stopped meanwhile: its result belongs nowhere */
    ration_cancel cancel;                   /* of its wait for a slot */
    bool called;                            /* `fn` is or was; under the fleet's lock, as `barred` */
    ration_reason barred;                   /* why it may not be called after all; NONE: it may */
} rn_fleet_breaker_run;

/* A result that the store has not been told of: there was none to ask. */
typedef struct rn_fleet_breaker_result {
    rn_agent_ask ask;
    STAILQ_ENTRY(rn_fleet_breaker_result) link;
    bool ok;
} rn_fleet_breaker_result;

struct ration_breaker {
    rn_agent agent;
    ration_breaker_options options; /* callbacks and numbers; its texts are not kept */
    bool has_checks;

    pthread_mutex_t life; /* one `start` or `stop` at a time */
    bool active;          /* under `life` */
    atomic_bool begun;    /* it was started once */
    atomic_int state, role;

    /* the fleet's thread */
    rn_client_job *starting; /* ends when it is known where the circuit stands, or that nobody says */
    rn_member_circuit known; /* `cause` is below */
    char cause[RN_BREAKER_CAUSE];
    int64_t check, own_check; /* numbers of the last that was handed out, and of ours; 0: none */
    TAILQ_HEAD(, rn_fleet_breaker_run) runs;
    STAILQ_HEAD(, rn_fleet_breaker_result) kept; /* the oldest first */
    size_t kept_count;

    /* under the fleet's lock */
    pthread_t checker;
    bool has_checker;
    pthread_cond_t due;
    bool check_due, checker_ends;
};

/* ---- breaker.c */

void rn_fleet_breaker_measure(ration_breaker *b, const ration_breaker_metric *metric);
/* None of those that have not been called is. */
void rn_fleet_breaker_bar(ration_breaker *b, ration_reason why);
/* The circuit is closed and the store there: what was kept is told. */
void rn_fleet_breaker_tell_kept(ration_breaker *b);
/* The circuit has opened since: they are told nobody. */
void rn_fleet_breaker_forget_kept(ration_breaker *b);

/* ---- breaker_watch.c */

/* What the member has seen of the circuit; NULL: nothing, the store is away. `ctx` is the agent. */
void rn_fleet_breaker_seen(void *ctx, const rn_member_circuit *circuit);
void rn_fleet_breaker_event(rn_agent *agent, const ration_event *event);
/* The thread of the health checks. RATION_ERR_IO: there is none. */
int rn_fleet_breaker_checker_start(ration_breaker *b);
/* Waits for a check that runs. */
void rn_fleet_breaker_checker_stop(ration_breaker *b);
bool rn_fleet_breaker_is_checker(ration_breaker *b);

#endif
