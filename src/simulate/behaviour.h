/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_BEHAVIOUR_H
#define RN_SIMULATE_BEHAVIOUR_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/rules.h>
#include <ration/types.h>

#include "simulate/capacity.h"

/* What a simulated provider does besides keeping its limits: chapter 10. Everything is a function of the seed. */

typedef struct rn_latency {
    int64_t mean_us;
    int64_t spread_us; /* at most the mean; evenly between mean - spread and mean + spread */
} rn_latency;

typedef struct rn_behaviour {
    uint64_t seed;
    rn_latency latency;
    ration_ratio errors;  /* of the calls let in; den 0: none */
    ration_rate external; /* calls of another client on the same quotas; units 0: none */
    rn_capacity ceiling;  /* low 0: none */
    int64_t retry_us;     /* what a refusal by the ceiling says; 0: nothing */
} rn_behaviour;

/*
 * Readers of options as people write them. Each takes the whole text and returns 0, RATION_ERR_SYNTAX or
 * RATION_ERR_RANGE; `*out` is untouched on error.
 */
int rn_latency_parse(ration_text text, rn_latency *out);   /* "50ms", "50ms±20ms", "50ms+-20ms"; at most an hour */
int rn_external_parse(ration_text text, ration_rate *out); /* "100/h"; at most 10 000 a second */
int rn_retry_parse(ration_text text, int64_t *out);        /* "2s"; 1 ms to a day */
int rn_seed_parse(ration_text text, uint64_t *out);        /* a whole number, not negative */

/* How long the call takes that was the `ordinal`-th to arrive. */
int64_t rn_behaviour_latency(const rn_behaviour *behaviour, uint64_t ordinal);

/* Whether that call fails, and with which of `count` statuses. */
bool rn_behaviour_fails(const rn_behaviour *behaviour, uint64_t ordinal, uint64_t count, uint64_t *status_index);

/*
 * When the `ordinal`-th call of the other client comes, from 1, after the start; RATION_NEVER_US: there is no such
 * client.
 */
int64_t rn_behaviour_external_at(const rn_behaviour *behaviour, int64_t ordinal);

#endif
