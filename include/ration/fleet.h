/* SPDX-License-Identifier: MIT */
#ifndef RATION_FLEET_H
#define RATION_FLEET_H

/*
 * What all processes of a fleet share through Redis, without a config file. Specification chapter 6.
 *
 * A `ration_fleet` is a process' way to the store: one thread of its own, named "ration-fleet", which renews leases and
 * wakes those who wait. Semaphores and breakers are made with it and share that thread. All calls may come from any
 * thread but that one: within a callback they are RATION_ERR_INVALID where they would block.
 *
 * A process that forks has no fleet in its child: make it after the fork.
 */

#include <ration/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ration_fleet ration_fleet;

/** Zero and NULL mean the default named beside a member. Start from `= {0}`. */
typedef struct ration_fleet_options {
    const char *redis;    /* redis:// rediss:// unix: redis+sentinel:// redis+cluster://; no user or password in it */
    const char *name;     /* of the fleet, the first part of its keys; "default" */
    const char *user;     /* the default user */
    const char *password; /* none; appears in no output */
    const char *ca_file;  /* of trusted CAs; the system's */
    int64_t connect_timeout_us; /* 250 ms */
    int64_t command_timeout_us; /* 250 ms */
    int64_t waiter_ttl_us;      /* how long a process that is not heard of may stand before others in a queue; 3 s */
    unsigned replicas;          /* that should have a grant before it is answered (`WAIT`); 0 */
} ration_fleet_options;

/**
 * Start the thread. Nothing is connected before something is made with it.
 *
 * Ownership  Copies the options. Free with `ration_fleet_free`, after all that was made with it.
 * Errors     RATION_ERR_INVALID (no `redis`, a negative time); RATION_ERR_NOMEM; RATION_ERR_IO (no thread).
 */
RATION_API RATION_MUST_CHECK int ration_fleet_new(const ration_fleet_options *options, ration_fleet **out);
/** End the thread. NULL is fine. */
RATION_API void ration_fleet_free(ration_fleet *fleet);

/* ---- giving up a wait */

/** Ends waits from outside; one may be given to any number of them. */
typedef struct ration_cancel ration_cancel;

/** RATION_ERR_NOMEM. */
RATION_API RATION_MUST_CHECK int ration_cancel_new(ration_cancel **out);
/** No wait may have it any more. NULL is fine. */
RATION_API void ration_cancel_free(ration_cancel *cancel);
/** All waits that have it, now and later, are refused with `cancelled`. Again changes nothing. From any thread. */
RATION_API void ration_cancel_fire(ration_cancel *cancel);

/* ---- semaphores */

/** Bounds how much is under way at once in all processes, by a limit that learns from outcomes. Chapter 5. */
typedef struct ration_semaphore ration_semaphore;

typedef enum ration_semaphore_metric_kind {
    RATION_SEMAPHORE_ACQUIRED = 1, /* `span_us`: the wait */
    RATION_SEMAPHORE_REFUSED,      /* `reason`; `span_us`: the wait */
    RATION_SEMAPHORE_RELEASED,     /* `outcome`; `span_us`: how long it was held */
    RATION_SEMAPHORE_LOST,         /* its semaphore was disposed of, and its time to live is over */
    RATION_SEMAPHORE_LIMIT,        /* `value`: the limit, whole units */
    RATION_SEMAPHORE_AWAY,         /* the store is; `value`: the local limit, 0: none */
    RATION_SEMAPHORE_BACK,
} ration_semaphore_metric_kind;

typedef struct ration_semaphore_metric {
    ration_semaphore_metric_kind kind;
    ration_reason reason;
    ration_outcome outcome;
    int64_t span_us, value;
} ration_semaphore_metric;

/** Start from RATION_SEMAPHORE_OPTIONS_INIT. The callbacks run on the fleet's thread and must not block. */
typedef struct ration_semaphore_options {
    const char *id;            /* what is limited: the provider of its keys, so a gateway's of that name, too */
    ration_adaptive_rule rule; /* `pause_on_retry_after` is not possible here */
    int64_t local_limit; /* leases that this process grants by itself while the store is away; 0: none, acquires are
                            refused with `store_unavailable` */
    void (*on_error)(void *ctx, const char *what); /* NULL: a line on standard error */
    void (*on_limit_change)(void *ctx, int64_t limit);
    void (*on_metric)(void *ctx, const ration_semaphore_metric *metric);
    void *ctx;
} ration_semaphore_options;

#define RATION_SEMAPHORE_OPTIONS_INIT                                                                                  \
    {                                                                                                                  \
        .id = NULL                                                                                                     \
    }

/** One acquire. Start from RATION_ACQUIRE_INIT. */
typedef struct ration_acquire {
    ration_text class_name; /* absent: none */
    ration_priority priority;
    int64_t timeout_us;                                       /* of the wait; 0: decide at once; RATION_UNSET: 10 s */
    ration_cancel *cancel;                                    /* NULL: only its time ends the wait */
    ration_outcome (*outcome_on_error)(void *ctx, int error); /* `with_lease`; NULL: `failure` */
    void *ctx;
} ration_acquire;

#define RATION_ACQUIRE_INIT                                                                                            \
    {                                                                                                                  \
        .timeout_us = RATION_UNSET                                                                                     \
    }

/**
 * Make a semaphore. Nothing of it is written to the store before the first acquire, which seeds the limit, only that
 * this process is there; and an unreachable store is no error.
 *
 * Ownership  Copies the options; borrows the fleet.
 * Errors     RATION_ERR_CONFIG with `*fault` (may be NULL) naming the key; RATION_ERR_INVALID; RATION_ERR_NOMEM.
 */
RATION_API RATION_MUST_CHECK int ration_semaphore_new(ration_fleet *fleet, const ration_semaphore_options *options,
                                                      ration_semaphore **out, ration_fault *fault);
/** Dispose of it and free it. No other thread may be in a call of it. NULL is fine. */
RATION_API void ration_semaphore_free(ration_semaphore *semaphore);

/**
 * Acquire a slot, and block until it is granted or refused.
 *
 * Who waits stands in a queue that all processes share: by priority, then by age. `out->result` is RATION_GRANTED, with
 * `out->lease`, or RATION_REFUSED: `deadline` (time-out), `adaptive_full` (no wait was wanted), `cancelled`,
 * `unknown_class`, `store_unavailable`, `draining` (disposed of). A lease is renewed by itself until it is released.
 *
 * Errors     RATION_ERR_INVALID (arguments, or from within a callback); RATION_ERR_NOMEM; RATION_ERR_FULL.
 * Cost       One round trip to the store, and another where it waits.
 */
RATION_API RATION_MUST_CHECK int ration_semaphore_acquire(ration_semaphore *semaphore, const ration_acquire *how,
                                                          ration_decision *out);
/**
 * End a lease; the outcome is what the limit learns from. Does not wait for the store: an outcome that cannot be
 * delivered is kept until it can be, or until the lease has lapsed; and an acquire that follows at once and may not
 * wait may still find the slot taken.
 *
 * Idempotent: a lease that has ended, however, stays so, and RATION_OK is returned. RATION_ERR_INVALID: no lease.
 */
RATION_API int ration_semaphore_release(ration_semaphore *semaphore, ration_lease lease, ration_outcome outcome);
/**
 * Acquire, call `fn`, release: with `success` if it returns 0, else as `how->outcome_on_error` says.
 *
 * `*result` is what `fn` returned, untouched where it was not called (`out->result` is RATION_REFUSED). Errors as
 * `acquire`.
 */
RATION_API RATION_MUST_CHECK int ration_semaphore_with_lease(ration_semaphore *semaphore, const ration_acquire *how,
                                                             int (*fn)(void *ctx), void *ctx, int *result,
                                                             ration_decision *out);
/** The limit of the whole fleet, as this process has last heard of it; whole units. */
RATION_API int64_t ration_semaphore_limit(ration_semaphore *semaphore);
/** How many leases of this process are held. */
RATION_API int64_t ration_semaphore_held(ration_semaphore *semaphore);
/** Refuse all who wait, and all who come, with `draining`. Held leases may be released still; they are not renewed any
 *  more. Again changes nothing. */
RATION_API void ration_semaphore_dispose(ration_semaphore *semaphore);

/* ---- breakers */

/**
 * Cuts all processes off from what fails, and lets them back when it answers again: `ration_circuit_*` for a fleet.
 * Chapter 5.
 */
typedef struct ration_breaker ration_breaker;

typedef enum ration_role {
    RATION_ROLE_FOLLOWER = 0,
    RATION_ROLE_CHECKER, /* the last health check that was due fell to this process */
} ration_role;

typedef enum ration_breaker_metric_kind {
    RATION_BREAKER_METRIC_BLOCKED =
        1,                         /* an open circuit let a call not go; `span_us`: how long it had waited by then */
    RATION_BREAKER_METRIC_CALLED,  /* `fn` is back: `ok`; `span_us`: how long it took, without any wait */
    RATION_BREAKER_METRIC_CHECKED, /* so is `health` */
    RATION_BREAKER_METRIC_STATE,   /* `state`: another than before */
    RATION_BREAKER_METRIC_AWAY,    /* the store is; `state`: which holds meanwhile */
    RATION_BREAKER_METRIC_BACK,
} ration_breaker_metric_kind;

typedef struct ration_breaker_metric {
    ration_breaker_metric_kind kind;
    ration_circuit_state state;
    bool ok;
    int64_t span_us;
} ration_breaker_metric;

/**
 * Start from RATION_BREAKER_OPTIONS_INIT. The callbacks run on the fleet's thread and must not block, but `health`,
 * which has one of its own ("ration-health"), and `outcome_on_error`, which runs where `execute` was called.
 */
typedef struct ration_breaker_options {
    const char *id;           /* whose failures are counted; may be that of a semaphore */
    ration_breaker_rule rule; /* what concerns the check's request, and `scope`, say nothing here */
    /* Is it well again? May block; slower than the rule's back-off, another process may be asked before it answers.
     * Needed where the rule recovers by health checks, or has an idle probe. */
    bool (*health)(void *ctx);
    ration_semaphore *semaphore; /* whose slots its calls take; borrowed, never disposed of; NULL: none */
    ration_outcome (*outcome_on_error)(void *ctx, int error); /* of the slot alone; NULL: `failure` */
    void (*on_error)(void *ctx, const char *what);            /* NULL: a line on standard error */
    void (*on_state_change)(void *ctx, ration_circuit_state from, ration_circuit_state to, const char *cause);
    void (*on_metric)(void *ctx, const ration_breaker_metric *metric);
    void *ctx;
} ration_breaker_options;

#define RATION_BREAKER_OPTIONS_INIT                                                                                    \
    {                                                                                                                  \
        .id = NULL                                                                                                     \
    }

/**
 * Make a breaker. Nothing is connected before it is started.
 *
 * Ownership  Copies the options; borrows the fleet and the semaphore, which are freed after it.
 * Errors     RATION_ERR_CONFIG with `*fault` (may be NULL) naming the key; RATION_ERR_INVALID; RATION_ERR_NOMEM.
 */
RATION_API RATION_MUST_CHECK int ration_breaker_new(ration_fleet *fleet, const ration_breaker_options *options,
                                                    ration_breaker **out, ration_fault *fault);
/** Stop it and free it. No other thread may be in a call of it: not in `execute`, nor in the `fn` that it calls. NULL
 *  is fine. */
RATION_API void ration_breaker_free(ration_breaker *breaker);

/**
 * Take part: hear of the circuit, and make health checks that fall to this process.
 *
 * Blocks until it is known where the circuit stands; a store that is not there is no error, and the circuit counts as
 * closed then, or as it was when it was stopped. Started again it goes on; started twice changes nothing.
 *
 * Errors     RATION_ERR_INVALID (from within a callback); RATION_ERR_NOMEM; RATION_ERR_IO (no thread).
 */
RATION_API RATION_MUST_CHECK int ration_breaker_start(ration_breaker *breaker);
/**
 * Take part no more, and block until the store knows. A check that runs is awaited, and its answer counts. Calls that
 * have not begun are refused with `draining`, as are all that come; those that are under way go on, and their results
 * are told nobody. Twice changes nothing.
 *
 * Errors     RATION_ERR_INVALID (from within a callback or a health check).
 */
RATION_API int ration_breaker_stop(ration_breaker *breaker);

/** Where the circuit stands, as this process has last heard; `closed` before it was started. */
RATION_API ration_circuit_state ration_breaker_state(ration_breaker *breaker);
/** Who makes the health checks: at most one process of a fleet at a time, as far as it has heard of the others. */
RATION_API ration_role ration_breaker_role(ration_breaker *breaker);

/**
 * Call `fn`, unless the circuit is open. With a semaphore, wait for a slot first.
 *
 * What `fn` returns is the call's result: 0 is a success, all else a failure of the breaker, whatever the slot's
 * outcome is. `out->result` is RATION_GRANTED if it was called, and `*result` what it returned; else RATION_REFUSED,
 * nothing was counted, and `out->reason` is `circuit_open` (with `retry_at`, where that is known), `draining`
 * (stopped), or what the semaphore refuses with. A circuit that opens during the wait ends it at once. A probe's wait
 * for a slot counts as time of the probe, of which the rule gives it one back-off.
 *
 * While the store is away the state that was last known holds: closed, calls go, and the newest 512 results are told
 * when it is back, if no other process has opened it by then; open or half-open, none goes, for only the store lets
 * one try.
 *
 * `lease` may be NULL: ten seconds, no class. Where it has no `outcome_on_error` the breaker's counts.
 *
 * Errors     RATION_ERR_INVALID (arguments, never started, or from within a callback), RATION_ERR_NOMEM,
 *            RATION_ERR_FULL: `fn` was not called; and `*out`, `*result` are untouched.
 * Cost       One round trip to the store, and the semaphore's; none while it is known to be open.
 */
RATION_API RATION_MUST_CHECK int ration_breaker_execute(ration_breaker *breaker, int (*fn)(void *ctx), void *ctx,
                                                        const ration_acquire *lease, int *result, ration_decision *out);

#ifdef __cplusplus
}
#endif

#endif
