/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_PROVIDER_H
#define RN_SIMULATE_PROVIDER_H

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "net/server.h"
#include "simulate/behaviour.h"

/*
 * A fake provider on a real port: it keeps the limits of a configured provider and answers as that provider would.
 * Chapter 10.
 *
 * `GET /__ration/counts` on the same port tells what it has seen.
 */
typedef struct rn_simulator rn_simulator;

typedef struct rn_simulator_counts {
    uint64_t requests; /* arrived */
    uint64_t ok;       /* answered 200 */
    uint64_t rate_limited;
    uint64_t errors; /* answered with a transient status */
    uint64_t gone;   /* the client went away before the answer's end */
    /* Of a shape that has them. */
    uint64_t rejected; /* no key, no such path, no such body */
    int64_t prompt_tokens;
    int64_t answer_tokens; /* told as used, both, in answers that were sent to their end */
} rn_simulator_counts;

/* What its calls and answers look like. */
typedef enum rn_shape {
    RN_SHAPE_PLAIN = 0, /* any request is taken, and told back */
    RN_SHAPE_OPENAI,    /* POST /chat/completions of OpenAI's API */
} rn_shape;

/* All borrowed for the simulator's life. */
typedef struct rn_simulator_options {
    const ration_config *config;
    size_t provider;  /* its index in the config */
    const char *host; /* NULL: 127.0.0.1 */
    uint16_t port;    /* 0: any free one */
    rn_shape shape;
    rn_behaviour behaviour;
} rn_simulator_options;

/*
 * Listen and answer. RATION_ERR_NOMEM, RATION_ERR_IO, RATION_ERR_CONFIG, RATION_ERR_INVALID; `error` says it for
 * people.
 */
RATION_MUST_CHECK int rn_simulator_new(rn_loop *loop, const rn_simulator_options *options, rn_simulator **out,
                                       rn_net_error *error);
/* Breaks what is open. NULL is fine. */
void rn_simulator_free(rn_simulator *sim);

uint16_t rn_simulator_port(const rn_simulator *sim);
const rn_simulator_counts *rn_simulator_counts_of(const rn_simulator *sim);

#endif
