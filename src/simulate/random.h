/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_RANDOM_H
#define RN_SIMULATE_RANDOM_H

#include <stdint.h>

/*
 * Chance without state: draw `index` of `stream` under `seed` is the same number, whoever asks and in whatever order.
 */

/* Their values are part of what a seed means. */
typedef enum rn_stream {
    RN_STREAM_LATENCY = 1,
    RN_STREAM_ERROR = 2,
    RN_STREAM_ERROR_STATUS = 3,
    RN_STREAM_ARRIVAL = 5,
    RN_STREAM_PAGES = 6,
    RN_STREAM_OUT = 7,  /* travel to the provider */
    RN_STREAM_BACK = 8, /* and back */
    RN_STREAM_FAULT = 9,
    RN_STREAM_KEPT = 10, /* how long a ledger takes */
    RN_STREAM_TOKENS = 11,
} rn_stream;

uint64_t rn_random(uint64_t seed, rn_stream stream, uint64_t index);

/*
 * A whole number from `low` to `high`, both included; `low` <= `high`, the span below 2^40 (then the bias is below
 * 2^-24).
 */
int64_t rn_random_between(uint64_t seed, rn_stream stream, uint64_t index, int64_t low, int64_t high);

#endif
