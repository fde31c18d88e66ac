/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_CLOSED_LOOP_H
#define RN_SIMULATE_CLOSED_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include <ration/rules.h>

#include "simulate/behaviour.h"
#include "simulate/capacity.h"

/*
 * Callers in a closed loop, in virtual time: each asks the engine, waits for its turn, calls a provider with a hidden
 * ceiling, and asks again when it has its answer. No socket, no clock; the same options give the same result.
 */

/* All is borrowed for the run; the behaviour for the life of the result. */
typedef struct rn_closed_options {
    const ration_rules *rules;     /* the calls are GET / of the first account */
    const rn_behaviour *behaviour; /* its latency is never 0; `external` is not looked at */
    size_t callers;
    int64_t refusal_us; /* how long the provider takes to refuse; above 0 */
    int64_t span_us;
} rn_closed_options;

typedef struct rn_closed_result {
    uint64_t done;              /* answered with 200 */
    uint64_t rate_limited;      /* by the hidden ceiling */
    uint64_t failed;            /* with a transient status */
    rn_capacity_meter accepted; /* calls that the provider works on */
    rn_capacity_meter held;     /* leases out: those, and the calls that it is about to refuse */
    rn_capacity_meter limit;    /* what the provider's first limit stood at, in calls */
    int64_t limit_low;          /* where that limit has been */
    int64_t limit_high;
    uint64_t limit_rises;
    uint64_t limit_falls;
} rn_closed_result;

/*
 * Play it.
 *
 * Errors     RATION_ERR_INVALID for options outside their ranges, a first limit that is neither `concurrency` nor
 *            `adaptive`, and rules under which a call that may wait for ever is refused; as `ration_engine_new`.
 *            `*out` is untouched.
 * Cost       O(calls * log callers).
 */
RATION_MUST_CHECK int rn_closed_loop_run(const rn_closed_options *options, rn_closed_result *out);

#endif
