/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_EXCHANGE_H
#define RN_SERVE_EXCHANGE_H

#include <sys/queue.h>

#include "serve/clients.h"
#include "serve/cost.h"
#include "serve/destinations.h"
#include "serve/directives.h"
#include "serve/meant.h"
#include "serve/planning.h"
#include "serve/ratelimit.h"
#include "serve/refusal.h"
#include "serve/retry.h"
#include "serve/route.h"

/*
 * One call's life. Private to gateway.c, destinations.c, exchange.c, permit.c, rebind.c, span.c, attempt.c, upstream.c
 * and check.c.
 */

/* What the event of a call tells beside what the exchange knows anyway. */
typedef struct rn_span {
    ration_time began_at;
    int64_t cost;           /* as asked for, or as the config has it */
    int64_t spent;          /* of all attempts that are over: as settled, else that */
    int64_t ran_us;         /* at the provider, in all */
    bool held;              /* it had a lease */
    ration_outcome outcome; /* of the last attempt that is over */
    char method[16];
    char tenant[64];
    char limit[64];       /* that made it wait; "": none did */
    char traceparent[64]; /* as the client sent it: it goes on to the provider */
} rn_span;

/* A request's body, from its beginning as far as it was read, while it may be needed. */
typedef struct rn_kept {
    rn_output bytes;
    size_t relayed;          /* so much of that has gone on, in this attempt */
    rn_http_fields trailers; /* the inbound's */
    bool whole;              /* the body has ended */
    bool again;              /* what has gone on stays, for a retry */
} rn_kept;

/* What an attempt came to that is followed by another one: the client's answer, if that one is not to be had. */
typedef struct rn_fallen {
    rn_arena arena;    /* of all texts */
    const char *words; /* of a fault; NULL: it was an answer */
    rn_upstream_fault fault;
    rn_http_head head;
    rn_http_fields trailers;
    rn_output body;
    size_t bytes; /* of the gateway's `kept_bytes` */
} rn_fallen;

typedef struct rn_exchange {
    rn_party party;
    TAILQ_ENTRY(rn_exchange) link;
    rn_gateway *gateway;
    rn_exchange_state state;
    rn_inbound *in;                /* NULL: answered, or gone */
    rn_upstream *up;               /* NULL: not started, or over */
    const rn_destination *to;      /* NULL until the account is known; holds its destinations */
    ration_lease lease;            /* generation 0: none */
    ration_time granted_at;        /* with a lease */
    rn_hold_learner *hold;         /* that declared its hold, or would have; NULL: it is declared otherwise, or not */
    rn_directives directives;      /* texts are the inbound's */
    bool tenant_of_config;         /* but the tenant is its job's or its client's, borrowed from the config, or ... */
    char *own_tenant;              /* ... this, since a reload has replaced that config; else NULL */
    rn_route route;                /* the same */
    const rn_http_head *answer;    /* the response's, borrowed from `up` */
    rn_output seen;                /* LOOKING: what has come of its body */
    bool judged;                   /* what the response means is known, and the decider was told */
    const rn_cost_rule *cost_rule; /* NULL: the config says nothing of what calls cost */
    int64_t cost;                  /* as asked for; RATION_UNSET: as the config has it */
    rn_estimate *estimate;         /* ESTIMATING: looks for the number in the body; else NULL */
    rn_kept kept;
    rn_fallen *fallen;        /* while another attempt is under way that has not been granted; else NULL */
    rn_timer timer;           /* RESTING: the next attempt */
    ration_time rests_at;     /* since when */
    ration_time deadline;     /* of all its waiting */
    int64_t attempts;         /* granted so far */
    int64_t retries;          /* that it may have */
    rn_usage *usage;          /* from the response's head on; NULL: none tells what it has cost */
    bool ended;               /* the response has come to its end */
    uint64_t id;              /* the second half of Ration-Request-Id */
    int64_t waited_us;        /* RATION_UNSET: it never waited */
    ration_priority priority; /* as it was decided on */
    size_t job;               /* whose request it is, counted as one; RN_NO_JOB: nobody's */
    int status;               /* of the provider; 0: none yet */
    bool throttled;           /* the provider said "too many" */
    rn_span *span;            /* NULL: nobody listened when it was asked for */
} rn_exchange;

#define RN_NO_JOB SIZE_MAX
#define RN_ACCOUNT_MAX_BYTES 256
#define RN_KEPT_MAX_BYTES ((size_t)128 << 20) /* of all calls; beyond it defaults hold, and no retry follows */

TAILQ_HEAD(rn_exchange_list, rn_exchange);

#define RN_FAULT_KINDS (RN_UPSTREAM_BROKEN + 1)

struct rn_gateway {
    struct rn_history *history;
    rn_loop *loop;
    rn_decider *decider;
    const ration_config *config;
    const rn_log *log;
    rn_planning *planning;
    rn_server *server;
    size_t kept_bytes;             /* of bodies, and of answers kept back, now */
    rn_destinations *destinations; /* of the present config */
    struct rn_destinations_list all_destinations;
    struct rn_shared_pools pools;
    rn_upstream_stats past_upstream; /* counted by pools that are no more */
    struct rn_spendings spendings;   /* of every provider that there was */
    struct rn_exchange_list states[RN_EXCHANGE_STATES];
    size_t state_sizes[RN_EXCHANGE_STATES];
    rn_gateway_counters counts;
    rn_timer timer;        /* the decider's next deadline */
    rn_deferred settle;    /* take the decider's events, set the timer; once per turn */
    char run_id[17];       /* the first half of Ration-Request-Id */
    rn_http_field *fields; /* scratch for a head on its way; net copies at once */
    ration_header *headers;
    size_t fields_capacity;
    rn_output target; /* scratch for the upstream target */
    bool draining;
    bool quiet; /* an operator said so: as draining, with the listener open */
    void (*settled)(void *user);
    void *settled_user;
    void (*on_closed)(void *user);
    void *closed_user;
    rn_log_gate refusal_gates[RATION_REASON_COUNT];
    rn_log_gate fault_gates[RN_FAULT_KINDS];
    rn_log_gate malformed_gate;
    rn_log_gate token_gate;
    rn_log_gate penalty_gate;
    rn_log_gate limit_gate;
    rn_log_gate breaker_gate;
    rn_log_gate check_gate;
    rn_log_gate retry_gate;
    struct rn_steps_told {
        uint64_t count;
        rn_log_gate gate;
    } forward, backward; /* steps of the wall clock that the log knows of */
    rn_log_gate error_gate;
    rn_bulletin *bulletin;
    rn_refusals *refusals;
};

/* ---- gateway.c */

/* Room for `count` fields in both scratch arrays. RATION_ERR_NOMEM. */
int rn_gateway_reserve(rn_gateway *gw, size_t count);
/* NULL: the present config has no such account. `name` as it stands in the target. */
const rn_destination *rn_gateway_find(rn_gateway *gw, ration_text name);
/* Tell the decider of a response to a lease's call. Room for its fields was made with `rn_gateway_reserve`. */
void rn_gateway_observe(rn_gateway *gw, ration_lease lease, const rn_http_head *head, ration_text body);
/* The credential of the account, appended to `fields`. Returns how many. */
size_t rn_gateway_credential(const rn_destination *to, rn_http_field *fields);

/* ---- exchange.c */

extern const rn_server_handlers rn_exchange_handlers; /* `user` is the gateway */

/*
 * Answer with a problem document, unless the response runs already: then break it, so that it does not look complete.
 */
void rn_exchange_fail(rn_exchange *x, const rn_problem *problem);
/* Count and log what broke upstream. */
void rn_exchange_note(rn_exchange *x, rn_upstream_fault fault, const char *words);
/* Answer so, and end. */
void rn_exchange_blame(rn_exchange *x, rn_upstream_fault fault, const char *words);
/* Both. */
void rn_exchange_broken(rn_exchange *x, rn_upstream_fault fault, const char *words);
/* The call was granted and could not even be started: `err` is net's. Answers and ends. */
void rn_exchange_unsent(rn_exchange *x, int err);
void rn_exchange_enter(rn_exchange *x, rn_exchange_state state);
/* It was not granted yet, and never will be: refused with `draining`. */
void rn_exchange_drain(rn_exchange *x);
/* A refusal that needs no decider: answers and ends. `field` is at fault; NULL: none of the request's. */
void rn_exchange_turn_away(rn_exchange *x, ration_reason reason, const char *detail, const char *field);
/* A request that cannot be carried out whatever the limits are: the same. `field` absent: none is at fault. */
void rn_exchange_reject(rn_exchange *x, int status, const char *title, const char *detail, ration_text field);
/* The one way out, from every state. The exchange is dead afterwards. */
void rn_exchange_end(rn_exchange *x, ration_outcome outcome);
/* Ration-Request-Id; at least 40 bytes. */
ration_text rn_exchange_name(const rn_exchange *x, char *buffer, size_t size);
/* Ration-Request-Id and Ration-Waited, appended to `fields`. Returns how many. */
size_t rn_exchange_stamp(const rn_exchange *x, rn_http_field *fields, char *buffer, size_t size);

/*
 * RateLimit-Policy and RateLimit: of the limits that the lease has spent from, or of the one that refused. At most
 * RN_RATELIMIT_FIELDS, appended to `fields`; `buffer` has RN_RATELIMIT_BYTES. Returns how many.
 */
size_t rn_exchange_rate_limits(rn_exchange *x, const ration_decision *refused, rn_http_field *fields, char *buffer);

/* Ask the decider for a lease: for the first attempt, or for the next. */
void rn_exchange_submit(rn_exchange *x);
/* The attempt is over: its lease goes back, with what it has cost. */
void rn_exchange_release(rn_exchange *x, ration_outcome outcome);

/* ---- rebind.c */

/* Go by that one from now on; NULL: by none. */
void rn_exchange_bind(rn_exchange *x, const rn_destination *to);
/* Go by what its account is now. False: there is no such account any more. */
bool rn_exchange_rebind(rn_exchange *x);
/* The gateway has other rules; `jobs` as for rn_gateway_adopt. A call that waits goes by them from now on. */
void rn_exchange_reloaded(rn_exchange *x, const size_t *jobs);

/* What the decider charges the call, or did: the estimate, the client's word, or the config's. O(templates) at most. */
int64_t rn_exchange_charged(const rn_exchange *x);

/* ---- span.c: what the event of a call tells */

/* If somebody is there to hear it. A call without a span has no event. */
void rn_span_begin(rn_exchange *x);
/* It waits for that limit; the first one is told. */
void rn_span_waits(rn_exchange *x, const char *limit);
/* An attempt is over. */
void rn_span_add(rn_exchange *x, const ration_completion *how);
/* The call is. */
void rn_span_tell(const rn_exchange *x);

/* ---- attempt.c */

/* Keep a part of the request's body. RATION_ERR_FULL: it is kept, and all calls together keep more than they may.
 * RATION_ERR_NOMEM. */
int rn_kept_add(rn_exchange *x, ration_text bytes);
/* Nothing of the body will be needed any more. */
void rn_kept_forget(rn_exchange *x);
/* The answer of the last attempt will not be needed any more. */
void rn_fallen_forget(rn_exchange *x);

/* The answer's head is there and judged: whether it says that the attempt has failed, and another may follow. */
bool rn_attempt_may_follow(rn_exchange *x);
/* This one has ended with the answer that was kept back. False: pass it on, no other follows. */
bool rn_attempt_answered(rn_exchange *x, rn_http_fields trailers);
/* This one has broken before anything was passed on. False: no other follows. */
bool rn_attempt_broke(rn_exchange *x, rn_upstream_fault fault, const char *words);
/* No other attempt after all: the client gets what the last one came to. Ends the exchange. */
void rn_attempt_give(rn_exchange *x, rn_retry_verdict why);
/* The gateway drains: no attempt that has not asked for its lease yet is made. */
void rn_attempts_stop(rn_gateway *gw);

/* ---- permit.c; false: it was answered, and the exchange is over */

/* Whose token the request shows. */
bool rn_exchange_identify(rn_exchange *x, const rn_client **out);
/* The account that it is for. */
bool rn_exchange_address(rn_exchange *x, const rn_client *client);
/* Its job, tenant, class and priority; what it leaves open of them is filled in. */
bool rn_exchange_permit(rn_exchange *x, const rn_client *client);

/* The words for a refusal for an unknown tenant or class, with the name that may have been meant, in `buffer`, and the
 * field that has it; absent and NULL for others. */
ration_text rn_exchange_explain(const rn_exchange *x, const ration_decision *refused, char buffer[RN_MEANT_BYTES],
                                const char **field);

/* ---- check.c */

void rn_check_init(rn_check *check, rn_gateway *gw, const rn_destination *to);
/* The decider asks for one (RATION_EVENT_HEALTH). Nothing happens while one is out. */
void rn_check_start(rn_check *check, const ration_event *event);
/* Give it up, without a result. */
void rn_check_stop(rn_check *check);

/* ---- upstream.c */

/* Send the call that was granted. */
void rn_exchange_send(rn_exchange *x);
/* The head of a response goes to the client. False: the exchange is over. */
bool rn_exchange_start(rn_exchange *x, const rn_http_head *head);
/* All of it has: the last part. Finishes the inbound. */
void rn_exchange_finish(rn_exchange *x, rn_http_fields trailers);
/* The client's body goes on. */
void rn_exchange_relay(rn_exchange *x, ration_text bytes);
void rn_exchange_relay_end(rn_exchange *x, rn_http_fields trailers);

#endif
