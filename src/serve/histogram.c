/* SPDX-License-Identifier: MIT */
/*
 * How long things took. Counts per bucket are kept apart and added up when they are written: an observation is one
 * increment. Integers throughout; a bound of 2 500 µs prints as 0.0025 by the same code that prints units.
 */
#include "serve/histogram.h"

#include "base/units.h"

static const int64_t bounds_us[RN_HISTOGRAM_BUCKETS] = {
    500,    1000,   2500,    5000,    10000,   25000,    50000,    100000,
    250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000,
};

void rn_histogram_add(rn_histogram *histogram, int64_t us)
{
    size_t i = 0;

    while (i < RN_HISTOGRAM_BUCKETS && us > bounds_us[i])
        i++;
    histogram->counts[i]++;
    histogram->sum_us += (uint64_t)rn_max(0, us);
}

int64_t rn_histogram_bound(size_t bucket)
{
    return bucket < RN_HISTOGRAM_BUCKETS ? bounds_us[bucket] : -1;
}
