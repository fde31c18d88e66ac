/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_BUCKET_H
#define RN_CORE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/types.h>

/* Token bucket in exact integers. One microsecond earns `earn` of credit, one micro-unit costs `price`. */

typedef struct rn_bucket_spec {
    int64_t earn;
    int64_t price;
    int64_t cap;    /* burst * price, at most 2^53 */
    int64_t burst;  /* micro-units */
    int64_t margin; /* micro-units that a grant must leave */
} rn_bucket_spec;

typedef struct rn_bucket {
    ration_time at; /* the instant `credit` is true for */
    int64_t credit; /* -cap to cap */
} rn_bucket;

struct rn_counter;

/* The time between the two has not passed: what is there `before` is there `after`. */
void rn_bucket_step(struct rn_counter *counter, ration_time before, ration_time after);

#endif
