/* SPDX-License-Identifier: MIT */
/*
 * Consumption by time. Chapter 3, "Timeline and projections".
 *
 * A day in minutes, and the day before, are 2880 numbers, and there may be a million keys of which each spends now and
 * then. So only buckets in which something was spent are kept, in one array that doubles. Nearly all that is added
 * belongs to the last of them or comes after it; a settlement looks for its own. What is forgotten makes room at the
 * end, so a timeline that has seen two windows allocates no more.
 *
 * A timeline tells, it decides nothing: without memory, or beyond the bound of its limit, it loses what is oldest.
 *
 * Invariants: numbers grow; no units are negative; count <= capacity.
 */
#include "core/timeline.h"

#include <string.h>

#include "base/mem.h"
#include "base/units.h"

#define FIRST_CAPACITY 4

void rn_timeline_fini(rn_timeline *timeline, const ration_allocator *mem, int64_t *bytes)
{
    *bytes -= (int64_t)(timeline->capacity * sizeof timeline->ticks[0]);
    rn_mem_free(mem, timeline->ticks);
    *timeline = (rn_timeline){.ticks = NULL};
}

static void forget_first(rn_timeline *timeline, size_t count)
{
    timeline->count -= count;
    if (count > 0 && timeline->count > 0)
        memmove(timeline->ticks, timeline->ticks + count, timeline->count * sizeof timeline->ticks[0]);
}

void rn_timeline_forget(rn_timeline *timeline, int64_t number)
{
    size_t old = 0;

    while (old < timeline->count && timeline->ticks[old].number < number)
        old++;
    forget_first(timeline, old);
}

/* Where the bucket is, or would be. */
static size_t place_of(const rn_timeline *timeline, int64_t number)
{
    size_t from = 0;
    size_t to = timeline->count;

    if (to == 0 || timeline->ticks[to - 1].number < number)
        return to;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;

        if (timeline->ticks[middle].number < number) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static bool grow(rn_timeline *timeline, const ration_allocator *mem, int64_t *bytes)
{
    const size_t capacity = timeline->capacity == 0 ? FIRST_CAPACITY : 2 * timeline->capacity;
    const int64_t more = (int64_t)((capacity - timeline->capacity) * sizeof timeline->ticks[0]);

    if (more > RN_TIMELINE_BYTES_MAX - *bytes)
        return false;

    rn_tick *const grown = rn_mem_resize(mem, timeline->ticks, capacity, sizeof *grown);

    if (grown == NULL)
        return false;
    *bytes += more;
    timeline->ticks = grown;
    timeline->capacity = capacity;
    return true;
}

static void insert(rn_timeline *timeline, size_t at, rn_tick tick)
{
    memmove(timeline->ticks + at + 1, timeline->ticks + at, (timeline->count - at) * sizeof timeline->ticks[0]);
    timeline->ticks[at] = tick;
    timeline->count++;
}

void rn_timeline_add(rn_timeline *timeline, const ration_allocator *mem, int64_t *bytes, int64_t number, int64_t amount)
{
    size_t at = place_of(timeline, number);

    if (at < timeline->count && timeline->ticks[at].number == number) {
        timeline->ticks[at].units = rn_max(0, rn_add(timeline->ticks[at].units, amount));
        return;
    }
    if (amount <= 0)
        return;
    if (timeline->count == timeline->capacity && !grow(timeline, mem, bytes)) {
        forget_first(timeline, (timeline->count + 1) / 2);
        timeline->lost = true;
        at = place_of(timeline, number);
        /* What is older than all that is left would stand for a whole that it is not. */
        if (timeline->count == timeline->capacity || (at == 0 && timeline->count > 0))
            return;
    }
    insert(timeline, at, (rn_tick){number, amount});
}
