/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_ENFORCER_H
#define RN_SIMULATE_ENFORCER_H

#include <stdbool.h>
#include <stddef.h>

#include <ration/engine.h>
#include <ration/rules.h>

#include "simulate/answer.h"

/*
 * A provider's own judgement of a call: the engine in enforcer mode, with the scope keys that a provider sees.
 * Account, target and credential are the presented credential; instance and provider are the whole simulator. Chapter
 * 3, "Enforcer".
 */
typedef struct rn_enforcer rn_enforcer;

/* A call as it reaches the provider. All borrowed. */
typedef struct rn_arrival {
    ration_text account;    /* whose credential it is, for an account's own limits; absent: not known */
    ration_text credential; /* a name for what was presented, never the secret */
    ration_text method;
    ration_text path;
    bool has_cost; /* false: it costs what its endpoint does */
    int64_t cost;  /* micro-units */
} rn_arrival;

typedef struct rn_judgement {
    bool granted;
    ration_lease lease; /* if granted */
    int64_t cost;       /* of the call, micro-units */
    ration_reason reason;
    const char *limit; /* that refused; NULL: none. Lives as long as the enforcer */
    int64_t retry_us;  /* until asking again succeeds; RATION_UNSET: not known */
} rn_judgement;

/*
 * An enforcer of one provider of `rules`.
 *
 * Ownership  Copies what it keeps. `*out` is the caller's, freed with `rn_enforcer_free`.
 * Errors     As `ration_engine_new`.
 */
RATION_MUST_CHECK int rn_enforcer_new(const ration_rules *rules, size_t provider, ration_time now, rn_enforcer **out,
                                      ration_fault *fault);
void rn_enforcer_free(rn_enforcer *enforcer); /* NULL is fine */

/* Let it in, or not; nobody waits. Errors as `ration_engine_submit`. */
RATION_MUST_CHECK int rn_enforcer_ask(rn_enforcer *enforcer, ration_time now, const rn_arrival *arrival,
                                      rn_judgement *out);
/* The call has been answered, or its client is gone. */
void rn_enforcer_release(rn_enforcer *enforcer, ration_time now, ration_lease lease);

/* Another client makes this call: it spends the same quotas, and touches no other limit. False: they are used up. */
bool rn_enforcer_spend(rn_enforcer *enforcer, ration_time now, const rn_arrival *arrival);

/* The quotas that apply to the call, as they stand, in order of declaration. Returns their number, at most `max`. */
size_t rn_enforcer_quotas(rn_enforcer *enforcer, ration_time now, const rn_arrival *arrival, rn_quota_state *out,
                          size_t max);

#endif
