/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_HISTOGRAM_H
#define RN_SERVE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/* How long things took, in buckets of exact microseconds, which Prometheus adds up. */

#define RN_HISTOGRAM_BUCKETS 16

typedef struct rn_histogram {
    uint64_t counts[RN_HISTOGRAM_BUCKETS + 1]; /* the last one: above all bounds */
    uint64_t sum_us;
} rn_histogram;

void rn_histogram_add(rn_histogram *histogram, int64_t us);
/* The bound of a bucket, inclusive; -1: the last one, which has none. */
int64_t rn_histogram_bound(size_t bucket);
#endif
