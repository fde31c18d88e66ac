/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_GATEWAY_H
#define RN_SERVE_GATEWAY_H

#include "config/config.h"
#include "core/decider.h"
#include "net/connection.h"
#include "net/server.h"
#include "serve/bulletin.h"
#include "serve/cost.h"
#include "serve/histogram.h"
#include "serve/holds.h"
#include "serve/log.h"
#include "serve/refused.h"
#include "serve/retry.h"
#include "serve/spending.h"

/*
 * The gateway: a listener, and the calls that go through it. Chapter 7.
 *
 * It asks a decider and obeys; it holds no rule of its own. One thread, the loop's.
 */
typedef struct rn_gateway rn_gateway;
struct rn_destinations;

/* Who asks the decider: the first member of whatever a request's `user` points to. */
typedef struct rn_party {
    /* What the waiter, or the lease, gets to hear. */
    void (*event)(struct rn_party *party, const ration_event *event);
} rn_party;

/* What a call is doing. Each state is a list of the gateway; only `exchange_enter` moves a call. */
typedef enum rn_exchange_state {
    RN_EXCHANGE_OPEN = 0,   /* its head was read; it holds nothing */
    RN_EXCHANGE_ESTIMATING, /* its body is read for what it will cost; it holds nothing but that */
    RN_EXCHANGE_WAITING,    /* a waiter of the decider */
    RN_EXCHANGE_SENDING,    /* it holds a lease; nothing has come back yet */
    RN_EXCHANGE_LOOKING,    /* the response is kept back: until the beginning of its body was seen or, where the call
                               may be made again, until its end */
    RN_EXCHANGE_RESPONDING, /* the response runs */
    RN_EXCHANGE_RESTING,    /* between two attempts; it holds nothing but what the last one came to, and its body */
    RN_EXCHANGE_LEAVING,    /* its client went while its grant was on the way; holds nothing but its memory */
    RN_EXCHANGE_STATES,
} rn_exchange_state;

/* What a health check of a breaker came to. */
typedef enum rn_check_result {
    RN_CHECK_HEALTHY = 0,
    RN_CHECK_UNHEALTHY,
    RN_CHECK_NO_RESULT, /* the provider was not asked, or said "too many" */
    RN_CHECK_RESULTS,
} rn_check_result;

#define RN_PRIORITIES (RATION_PRIORITY_LOW + 1)
#define RN_OUTCOMES (RATION_OUTCOME_CANCELLED + 1)

/* Counters since the start. */
typedef struct rn_gateway_counters {
    uint64_t requests;
    uint64_t malformed;                     /* answered 400 or 501 by the gateway itself */
    uint64_t refusals[RATION_REASON_COUNT]; /* by the gateway itself, beside the decider's */
    uint64_t tokens_refused;                /* requests, at either port, without a token that is somebody's */
    uint64_t responses[6];                  /* sent to clients by class, 2xx at [2] */
    uint64_t faults[RN_UPSTREAM_BROKEN + 1];
    uint64_t gone_waiting; /* clients that left while they waited */
    uint64_t gone_running; /* and while their call ran */
    uint64_t errors;       /* no memory, or an error code from the decider */
    uint64_t checks[RN_CHECK_RESULTS];
    uint64_t circuits[RATION_BREAKER_HALF_OPEN + 1]; /* changes, by the state that was entered */
    uint64_t sent_again;                             /* attempts behind the first one of a call */
    uint64_t retries[RATION_OUTCOME_CANCELLED + 1];  /* those that are over, by what they came to */
    uint64_t withheld[RN_RETRY_VERDICTS];            /* attempts that failed and had none behind them, by why not */
    rn_histogram waits[RN_PRIORITIES];               /* of the calls granted, by their priority */
    uint64_t outcomes[RN_OUTCOMES];                  /* of attempts that were sent */
} rn_gateway_counters;

/* Everything is borrowed for the gateway's life; the config at least until another takes its place. */
typedef struct rn_gateway_options {
    rn_loop *loop;
    rn_decider *decider;
    const ration_config *config;
    const rn_log *log;
    struct rn_planning *planning; /* hears of requests that name a job; NULL: such names mean nothing */
    rn_bulletin *bulletin;        /* NULL: nobody ever listens */
    rn_refusals *refusals;        /* NULL: none are kept */
    void (*settled)(void *user);  /* at the end of a turn in which the decider was called; NULL: nobody wants to know */
    void *user;
    int descriptor; /* a socket that listens already; 0: as the config says */
} rn_gateway_options;

/*
 * RATION_ERR_NOMEM; RATION_ERR_IO with `*error` filled; RATION_ERR_CONFIG where the config has a base URL that cannot
 * be used.
 */
int rn_gateway_new(const rn_gateway_options *options, rn_gateway **out, rn_net_error *error);

/* How long a listener waits for clients, by the config. */
void rn_gateway_patience(const ration_config *config, rn_server_options *out);
/* The bound TCP port; 0 on a Unix socket. */
uint16_t rn_gateway_port(const rn_gateway *gw);

/*
 * Stop: accept no more, refuse new requests and those not decided on with `draining`, let calls and waiters end.
 * Whoever wants waiters refused too tells the decider (RATION_OP_DRAIN). `on_closed` (may be NULL) is called once,
 * never from inside.
 */
void rn_gateway_close(rn_gateway *gw, void (*on_closed)(void *user), void *user);
bool rn_gateway_draining(const rn_gateway *gw);

/*
 * Other rules, made ready by rn_destinations_new, from now on; the decider has them already. Who waits goes by them
 * when it is granted; what is sent ends by what it began with.
 *
 * `jobs`      of each old job the index that it has now, or SIZE_MAX.
 * Ownership   Takes `*next`. `was` (may be NULL) is the config that is replaced, if it is to be freed with the last
 *             call that goes by it.
 */
void rn_gateway_adopt(rn_gateway *gw, struct rn_destinations *next, const size_t *jobs, ration_config *was);
/* The present one, which an adoption changes: not to be kept. */
const ration_config *rn_gateway_config(const rn_gateway *gw);

/* Break what still runs; leases go back. `rn_gateway_close` must have been called. */
void rn_gateway_abort(rn_gateway *gw);

/* Ends all calls, waiters included, without a word to anybody. NULL is fine. */
void rn_gateway_free(rn_gateway *gw);

/* The decider was called by somebody else: its events are due at the end of this turn. */
void rn_gateway_touch(rn_gateway *gw);
/* Take them now: for whoever is about to end with requests of its own under way. Not from inside a handler. */
void rn_gateway_settle(rn_gateway *gw);

/* The API has refused somebody by itself, without the decider: it counts as the gateway's own refusals do. */
void rn_gateway_turned_away(rn_gateway *gw, ration_reason reason);
/* A request, here or at the control port, has no token that is somebody's. */
void rn_gateway_token_refused(rn_gateway *gw);
/* An operator did that: into the log. `counter` NULL: to the whole. */
void rn_gateway_operated(rn_gateway *gw, const char *did, const ration_counter_name *counter, int64_t units);
/* Take no new calls, as when it closes, but keep the listener: those who come hear `draining`. */
void rn_gateway_quiesce(rn_gateway *gw);
/* Somebody was refused, here or by the API: into the log, the ring and the stream. */
void rn_gateway_refused(rn_gateway *gw, const rn_refused *refused);
rn_bulletin *rn_gateway_bulletin(const rn_gateway *gw);
struct rn_history *rn_gateway_history(const rn_gateway *gw); /* it hears of moves; samples are the owner's to add */
const rn_refusals *rn_gateway_refusals(const rn_gateway *gw);

const rn_gateway_counters *rn_gateway_counts(const rn_gateway *gw);
/* How many calls are in a state now. */
size_t rn_gateway_in_state(const rn_gateway *gw, rn_exchange_state state);
const char *rn_exchange_state_name(rn_exchange_state state);
const char *rn_check_result_name(rn_check_result result);
/* Bytes of bodies and answers that calls keep now, for estimates and for other attempts. */
size_t rn_gateway_kept(const rn_gateway *gw);
/* Connections of clients, and those turned away. */
size_t rn_gateway_connections(const rn_gateway *gw, uint64_t *turned_away);
/* Where a provider learns how long its leases are held; by its index, NULL past the end. */
const rn_holds *rn_gateway_holds(const rn_gateway *gw, size_t provider);
/* What calls to a provider cost, and which priority they have, by its index in the rules; NULL past the end. */
const rn_costs *rn_gateway_costs(const rn_gateway *gw, size_t provider);
/* What calls were estimated at and came to, over all providers. */
void rn_gateway_cost_counts(const rn_gateway *gw, rn_cost_counts *out);
/* Sums over all providers. */
void rn_gateway_upstream_stats(const rn_gateway *gw, rn_upstream_stats *out);

#endif
