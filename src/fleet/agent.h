/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_AGENT_H
#define RN_FLEET_AGENT_H

#include "fleet/client.h"
#include "fleet/member.h"

/*
 * A member of the fleet on the thread of a `ration_fleet`, with rules that are made in C: one provider, named after an
 * id, and one account. What semaphores and breakers have in common.
 */
typedef struct rn_agent rn_agent;

/* A request for a lease. It lies on the stack of who sleeps in it; but for `answered` it is the fleet's thread's. */
typedef struct rn_agent_ask {
    rn_task task;
    rn_agent *agent;
    ration_request request;
    /* It has come to `err` and `decision`, which may still be changed here. */
    void (*settle)(struct rn_agent_ask *ask);
    bool alone;         /* nobody sleeps in it: `settle` frees it */
    ration_lease lease; /* while it waits: generation 0: it does not */
    ration_time since;
    int err;
    ration_decision decision; /* without what was borrowed */
    pthread_cond_t woken;
    bool answered; /* under the fleet's lock */
} rn_agent_ask;

typedef struct rn_agent_ops {
    const char *noun; /* in errors */
    /* May be NULL. True: `*out` is the answer, and the store is not asked. */
    bool (*decide)(rn_agent *agent, ration_decision *out);
    void (*event)(rn_agent *agent, const ration_event *event); /* that is no answer */
    void (*away)(rn_agent *agent, const char *why);            /* the store is, once each time */
    void (*back)(rn_agent *agent);
} rn_agent_ops;

struct rn_agent {
    const rn_agent_ops *ops;
    ration_fleet *fleet;
    char *id;
    void (*on_error)(void *ctx, const char *what); /* NULL: standard error */
    void *ctx;
    rn_member *member;
    rn_decider *decider; /* NULL: there is no member */
    rn_timer timer;
    rn_deferred pump;
    bool away; /* and that has been told */
};

typedef struct rn_agent_rules {
    ration_provider_rule provider; /* its name is filled in */
    int64_t local_limit;           /* RATION_UNSET: none */
    int64_t lease_ttl_us;          /* 0: 30 s */
} rn_agent_rules;

/* The name of the account. */
#define RN_AGENT_ACCOUNT "account"

/* `on_error` and `ctx` are set before. RATION_ERR_NOMEM. */
int rn_agent_init(rn_agent *agent, const rn_agent_ops *ops, ration_fleet *fleet, const char *id);
void rn_agent_fini(rn_agent *agent);
/* Would `open` take them? As `rn_member_may`. From any thread. */
int rn_agent_check(const rn_agent *agent, const rn_agent_rules *rules, char *text);
/* What `open` and `check` say is wrong, as the program hears it. */
void rn_agent_fault(ration_fault *fault, const char *text);
void rn_agent_complain(const rn_agent *agent, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ask, from any other thread, and sleep until it is answered. */
void rn_agent_ask_init(rn_agent_ask *ask, rn_agent *agent, const ration_acquire *how,
                       void (*settle)(rn_agent_ask *ask));
void rn_agent_ask_fini(rn_agent_ask *ask);
void rn_agent_ask_sleep(rn_agent_ask *ask);

/* ---- on the fleet's thread */

int rn_agent_open(rn_agent *agent, const rn_agent_rules *rules, char *text); /* as rn_member_new */
/* Take leave; then there is no member, and the job is done. */
void rn_agent_close(rn_agent *agent, rn_client_job *job);
/* The same without a word to the store. */
void rn_agent_drop(rn_agent *agent);
void rn_agent_ask_now(rn_agent_ask *ask);
void rn_agent_answer(rn_agent_ask *ask, int err, const ration_decision *decision);
/* There may be events, and another deadline. */
void rn_agent_wake(rn_agent *agent);
/* Take the events that there are, now. */
void rn_agent_pump(rn_agent *agent);
/* Is the store away? If nobody has been told, it is told. */
void rn_agent_look(rn_agent *agent);

#endif
