/* SPDX-License-Identifier: MIT */
/*
 * How long the store takes: counts in buckets that grow with what they hold, eight to each doubling, so a percentile
 * is exact to an eighth whatever the traffic.
 */
#include "fleet/member_parts.h"

#include "base/units.h"

/* 0 to 7 us one each, then eight to each doubling. */
static size_t bucket_of(int64_t us)
{
    const uint64_t v = (uint64_t)rn_max(us, 0);

    if (v < 8)
        return (size_t)v;

    const unsigned top = 63U - (unsigned)__builtin_clzll(v);
    const size_t bucket = (size_t)(top - 2) * 8 + (size_t)((v >> (top - 3)) & 7);

    return bucket < RN_MEMBER_BUCKETS ? bucket : RN_MEMBER_BUCKETS - 1;
}

/* The largest value in a bucket. */
static int64_t bucket_end(size_t bucket)
{
    if (bucket < 8)
        return (int64_t)bucket;
    return (int64_t)((((uint64_t)(8 + bucket % 8) + 1) << (bucket / 8 - 1)) - 1);
}

/* When one is full all are halved: what was long ago weighs less. */
void rn_member_times_add(rn_member_times *times, int64_t us)
{
    uint32_t *const count = &times->counts[bucket_of(us)];

    times->calls++;
    if (++*count < UINT32_MAX)
        return;
    for (size_t i = 0; i < RN_MEMBER_BUCKETS; i++)
        times->counts[i] /= 2;
}

int64_t rn_member_times_percentile(const rn_member_times *times, int percent)
{
    uint64_t all = 0;
    uint64_t seen = 0;

    for (size_t i = 0; i < RN_MEMBER_BUCKETS; i++)
        all += times->counts[i];
    for (size_t i = 0; i < RN_MEMBER_BUCKETS; i++) {
        seen += times->counts[i];
        if (seen > 0 && seen * 100 >= all * (uint64_t)percent)
            return bucket_end(i);
    }
    return 0;
}
