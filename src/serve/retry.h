/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_RETRY_H
#define RN_SERVE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "net/http.h"

/* Whether a call that has failed is sent again, and when. Chapter 7, "retries"; docs/decisions/0021. Pure. */

/* How an attempt has failed: what is known of the request at the provider follows from it. */
typedef enum rn_retry_cause {
    RN_RETRY_THROTTLED = 0, /* the provider said "too many": it has done nothing */
    RN_RETRY_UNSENT,        /* no connection: it has seen nothing */
    RN_RETRY_TRANSIENT,     /* it said "try again": it may have done something */
    RN_RETRY_BROKEN,        /* no answer, or none that came to its end: the same */
} rn_retry_cause;

/* Why a call is not sent again, or that it is. */
typedef enum rn_retry_verdict {
    RN_RETRY_AGAIN = 0,
    RN_RETRY_OFF,      /* the config has none for it */
    RN_RETRY_DRAINING, /* the gateway takes up nothing new */
    RN_RETRY_SPENT,    /* it had as many as it may have */
    RN_RETRY_UNSAFE,   /* doing it twice may be more than doing it once */
    RN_RETRY_BODY,     /* its body was too long to be kept */
    RN_RETRY_ANSWER,   /* the answer is too long to be kept back meanwhile */
    RN_RETRY_LATE,     /* it could not go before the call's deadline; so with all that may not wait */
    RN_RETRY_REFUSED,  /* the decider would not have it */
    RN_RETRY_VERDICTS,
} rn_retry_verdict;

const char *rn_retry_verdict_name(rn_retry_verdict verdict);

typedef struct rn_retry_facts {
    rn_retry_cause cause;
    bool idempotent;
    bool kept; /* all that was read of its body, or it has none */
    bool draining;
    int64_t attempts; /* so far, at least 1 */
    int64_t retries;  /* that it may have */
    ration_time now;
    ration_time after; /* the instant that the answer names; RATION_NEVER_US: none */
    ration_time deadline;
    uint64_t seed; /* another one for each call */
} rn_retry_facts;

/*
 * RN_RETRY_AGAIN sets `*at` to the instant at which to ask for the next lease, before the deadline: now, where the
 * provider said "too many", since its penalty makes the request wait; else after a pause that doubles.
 */
rn_retry_verdict rn_retry_decide(const rn_retry_facts *facts, ration_time *at);

/* The pause before the retry behind attempt number `attempts`: of 500 ms, 1 s, 2 s … 8 s a part from half to all. */
int64_t rn_retry_pause(int64_t attempts, uint64_t seed);

/* Doing it twice does no more than doing it once, by RFC 9110, 9.2.2, or by the client's word (`Idempotency-Key`). */
bool rn_request_is_idempotent(const rn_http_head *head);

/* How many retries a call may have. `endpoint`: the index of its template; SIZE_MAX: none matches. */
int64_t rn_retries_allowed(const rn_provider *provider, size_t endpoint, const rn_account *account);

#endif
