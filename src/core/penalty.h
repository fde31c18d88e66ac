/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_PENALTY_H
#define RN_CORE_PENALTY_H

#include <stdbool.h>

#include <ration/rules.h>
#include <ration/types.h>

/* A pause of one scope after a provider said "too many": chapter 3, "429". A zeroed one is no penalty. */
typedef struct rn_penalty {
    bool any;           /* `began` and `until` mean something */
    ration_time began;  /* the last event */
    ration_time until;  /* its end */
    uint32_t doublings; /* consecutive events since the last success */
    uint32_t events;    /* all of them */
} rn_penalty;

bool rn_penalty_runs(const rn_penalty *penalty, ration_time now);

/*
 * A 429 came at `now` for a lease granted at `granted_at`. `retry_at` is what the provider said, RATION_NEVER_US if
 * nothing usable. Returns true if the end moved.
 */
bool rn_penalty_hit(rn_penalty *penalty, ration_time now, ration_time granted_at, ration_time retry_at,
                    const ration_error_rule *rule);

/* A success of a lease granted at `granted_at`: resets the doubling if that was after the last event began. */
void rn_penalty_success(rn_penalty *penalty, ration_time granted_at);

/* It is over, by an operator's word, and the doubling begins anew. */
void rn_penalty_lift(rn_penalty *penalty, ration_time now);

#endif
