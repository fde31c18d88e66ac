/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_TIMELINE_H
#define RN_CORE_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include <ration/engine.h>

/* Consumption by time, where most of the time there is none: the buckets in which there was, in order. */

/* The most that the timelines of one limit take together; beyond it they lose what is oldest. */
#define RN_TIMELINE_BYTES_MAX (INT64_C(64) << 20)

typedef struct rn_tick {
    int64_t number; /* of the bucket: its begin since 1970, in widths of one */
    int64_t units;  /* never negative */
} rn_tick;

typedef struct rn_timeline {
    rn_tick *ticks; /* by growing number */
    size_t count;
    size_t capacity;
    bool lost; /* something, for want of memory: nothing is known of what is before the first */
} rn_timeline;

/* `*bytes` is what the timelines of the limit take together. */
void rn_timeline_fini(rn_timeline *timeline, const ration_allocator *mem, int64_t *bytes);

/*
 * So much more was spent in the bucket, or less. Cannot fail: without memory the older half is forgotten, or what is
 * added if that is all there would be. Allocates only when it grows past what it has ever held.
 */
void rn_timeline_add(rn_timeline *timeline, const ration_allocator *mem, int64_t *bytes, int64_t number,
                     int64_t amount);

/* Forget all buckets before `number`. */
void rn_timeline_forget(rn_timeline *timeline, int64_t number);

#endif
