/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_BREAKER_H
#define RN_CORE_BREAKER_H

#include <ration/engine.h>
#include <ration/rules.h>
#include <ration/state.h>

/* A circuit breaker: closed, open, half-open, by explicit time. Chapter 5. */

/* With every default filled in. Outlives the breakers that are made of it. */
typedef struct rn_breaker_spec {
    ration_breaker_rule rule; /* lists and texts in it are borrowed */
    char tripped[64];         /* causes with the rule's numbers in them: "5 failures in a row" */
    char recovered[32];
    char unwell[64];
} rn_breaker_spec;

/* RATION_ERR_CONFIG with the key in `fault->path` ("breaker.threshold"); `*spec` is then untouched. */
int rn_breaker_spec_init(rn_breaker_spec *spec, const ration_breaker_rule *rule, ration_fault *fault);

/* What a request was let through under; zeroed: nothing. */
typedef struct rn_breaker_pass {
    uint64_t generation; /* 0: none */
    bool probe;          /* it has one of the permits of a half-open circuit */
} rn_breaker_pass;

/* What a call did. */
typedef enum rn_breaker_change {
    RN_BREAKER_SAME = 0,
    RN_BREAKER_OPENED,
    RN_BREAKER_HALF_OPENED,
    RN_BREAKER_CLOSED,
    RN_BREAKER_REPLACED, /* half-open: probes that never came back have been replaced */
    RN_BREAKER_CHECK,    /* a health check is due */
} rn_breaker_change;

/* sampling: results of one instant. */
typedef struct rn_breaker_entry {
    ration_time at;
    int64_t failures, successes;
} rn_breaker_entry;

typedef struct rn_breaker {
    const rn_breaker_spec *spec;
    const ration_allocator *mem;
    ration_circuit_state state;
    uint64_t generation;   /* from 1, grows with every state and with every replacement of probes */
    ration_time until;     /* closed: the next idle check; open: the next probe or check; half-open: probes are lost */
    const char *cause;     /* of the last change, in a few words; "" before the first. The spec's, `was`, or static */
    char was[64];          /* the cause, if other rules have come since: the numbers in it are those it came about by */
    int64_t delay_us;      /* the back-off that runs, or ran last; 0: closed */
    int64_t permits;       /* half-open: not given out */
    int64_t successes;     /* half-open */
    bool check_out;        /* a health check is due or runs: until its answer */
    int64_t failures;      /* consecutive: in a row */
    int64_t idle_failures; /* health checks in a row, while closed and quiet */
    ration_time quiet_since; /* the last result, while closed */
    uint64_t *results;       /* count: a ring of bits, set for a failure */
    rn_breaker_entry *ring;  /* sampling: results by their instants, which increase */
    size_t capacity, first, count;
    int64_t calls, failed; /* in the ring */
} rn_breaker;

/* Closed. RATION_ERR_NOMEM. `now` never goes back, here and below; any call that is given it may move
 * `rn_breaker_next`, and so may `leave`. */
int rn_breaker_init(rn_breaker *breaker, const rn_breaker_spec *spec, const ration_allocator *mem, ration_time now);
void rn_breaker_fini(rn_breaker *breaker);

/* Go on where an earlier one was. Probes that were out then are replaced by fresh ones. */
void rn_breaker_restore(rn_breaker *breaker, ration_time now, const ration_breaker_record *record);

/* Go on where `from` is, a breaker of other rules; its results too, if both count them alike. `from` is good for
 * nothing afterwards but to be finished. */
void rn_breaker_carry(rn_breaker *breaker, ration_time now, rn_breaker *from);

/* Is a request let through now? Changes nothing. Call `rn_breaker_advance` first. */
bool rn_breaker_lets(const rn_breaker *breaker);
/* Let one through that `rn_breaker_lets`; a half-open circuit gives it a permit. */
rn_breaker_pass rn_breaker_enter(rn_breaker *breaker, ration_time now);
/* It ends without a result: a permit goes back. */
void rn_breaker_leave(rn_breaker *breaker, const rn_breaker_pass *pass);
/* A result. One of an earlier generation changes nothing. */
rn_breaker_change rn_breaker_result(rn_breaker *breaker, ration_time now, const rn_breaker_pass *pass, bool ok);
/* What a health check came to; nobody need have asked for it. */
rn_breaker_change rn_breaker_health(rn_breaker *breaker, ration_time now, bool ok);

/* When time alone does something; RATION_NEVER_US: never. */
ration_time rn_breaker_next(const rn_breaker *breaker);
/* Do one thing that is due at `now`; SAME: nothing was. After CHECK the next is due one back-off delay later. */
rn_breaker_change rn_breaker_advance(rn_breaker *breaker, ration_time now);
/* Where very many checks fall due until `last` while one is out, the next is the first after it: nobody is there who
 * would run the others. */
void rn_breaker_skip(rn_breaker *breaker, ration_time last);
/* When a refused request may try again; RATION_NEVER_US: closed, or not known. */
ration_time rn_breaker_retry_at(const rn_breaker *breaker);
/* Equals a new one: nothing that it knows would be missed. Never with an idle probe, whose checks would end. */
bool rn_breaker_is_fresh(rn_breaker *breaker, ration_time now);

#endif
