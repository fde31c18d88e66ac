/* SPDX-License-Identifier: MIT */
/*
 * What a quota has spent by time: of this window and the one before, in minutes for windows up to a day, in hours for
 * longer ones. Chapter 3, "Timeline and projections".
 *
 * Buckets begin at multiples of their width since 1970, so a header that moves a window moves none of them; the window
 * before this one is as long as the calendar says, ending where this one begins.
 *
 * A rolling window has its charges by time of grant already. Its timeline has what has left it, and a look takes both
 * together. Where its buckets are not whole minutes or hours, what one has counts for the time at which it begins.
 */
#include "core/quota_parts.h"

#include <string.h>

#include "base/units.h"

/* More than two windows of any calendar, and of a rolling one of a year. */
#define TICKS_MAX 20000

static int64_t tick_of(const rn_counter *counter, ration_time at)
{
    return rn_div_floor(at.us, counter->limit->spec.quota.tick_us);
}

/* The first bucket that is of interest at `now`. */
static int64_t tick_first(const rn_counter *counter, ration_time now)
{
    const int64_t length_us = counter->limit->spec.quota.length_us;

    if (rn_quota_is_rolling(counter))
        return tick_of(counter, ration_time_of(rn_sub(now.us, rn_mul(2, length_us))));
    return tick_of(counter, counter->u.quota->previous);
}

void rn_quota_ticks(rn_counter *counter, ration_time at, int64_t amount)
{
    rn_timeline_add(&counter->u.quota->timeline, counter->mem, &counter->limit->timeline_bytes, tick_of(counter, at),
                    amount);
}

void rn_quota_ticks_forget(rn_counter *counter, ration_time now)
{
    rn_timeline_forget(&counter->u.quota->timeline, tick_first(counter, now));
}

size_t rn_quota_parts_max(const rn_counter *counter)
{
    const size_t parts = counter->limit->spec.quota.parts;

    return parts + counter->u.quota->timeline.count + (rn_quota_is_rolling(counter) ? parts : 0);
}

/* The first bucket of a look: of interest, and known. */
static int64_t look_first(const rn_counter *counter, ration_time now)
{
    const rn_quota *const quota = counter->u.quota;
    int64_t first = rn_max(tick_first(counter, now), tick_of(counter, quota->known));

    if (quota->timeline.lost)
        first = rn_max(first, quota->timeline.count > 0 ? quota->timeline.ticks[0].number : tick_of(counter, now));
    return rn_max(first, tick_of(counter, now) - TICKS_MAX + 1);
}

size_t rn_quota_timeline_count(rn_counter *counter, ration_time now)
{
    rn_quota_advance(counter, now);
    return (size_t)(tick_of(counter, now) - look_first(counter, now) + 1);
}

void rn_quota_timeline(rn_counter *counter, ration_time now, int64_t *units, ration_timeline *out)
{
    const rn_timeline *const timeline = &counter->u.quota->timeline;
    const int64_t tick_us = counter->limit->spec.quota.tick_us;
    const size_t count = rn_quota_timeline_count(counter, now);
    const int64_t first = look_first(counter, now);

    memset(units, 0, count * sizeof units[0]);
    for (size_t i = 0; i < timeline->count; i++) {
        const int64_t at = timeline->ticks[i].number - first;

        if (at >= 0 && at < (int64_t)count)
            units[at] = rn_add(units[at], timeline->ticks[i].units);
    }
    if (rn_quota_is_rolling(counter)) {
        rn_rolling_bucket bucket = {0};

        while (rn_rolling_next(counter, &bucket)) {
            const int64_t at = tick_of(counter, bucket.begin) - first;

            if (at >= 0 && at < (int64_t)count)
                units[at] = rn_add(units[at], bucket.units);
        }
    }
    *out = (ration_timeline){{first * tick_us}, tick_us, units, count};
}

/* One more part of a record, or more of the last one. */
static size_t part_put(const rn_counter *counter, ration_time now, ration_part *parts, size_t count, rn_tick tick)
{
    const int64_t tick_us = counter->limit->spec.quota.tick_us;
    const ration_time last = rn_time_min(ration_time_of((tick.number + 1) * tick_us - 1), now);

    if (tick.units <= 0)
        return count;
    if (count > 0 && parts[count - 1].last.us == last.us) {
        parts[count - 1].units = rn_min(rn_add(parts[count - 1].units, tick.units), RATION_UNITS_MAX);
        return count;
    }
    parts[count] = (ration_part){last, rn_min(tick.units, RATION_UNITS_MAX)};
    return count + 1;
}

size_t rn_quota_ticks_save(const rn_counter *counter, ration_time now, ration_part *out)
{
    const rn_timeline *const timeline = &counter->u.quota->timeline;
    const int64_t first = look_first(counter, now);
    size_t count = 0;

    for (size_t i = 0; i < timeline->count; i++) {
        if (timeline->ticks[i].number >= first)
            count = part_put(counter, now, out, count, timeline->ticks[i]);
    }
    if (rn_quota_is_rolling(counter)) {
        rn_rolling_bucket bucket = {0};

        while (rn_rolling_next(counter, &bucket))
            count = part_put(counter, now, out, count, (rn_tick){tick_of(counter, bucket.begin), bucket.units});
    }
    return count;
}

void rn_quota_ticks_load(rn_counter *counter, const ration_quota_record *record)
{
    rn_quota *const quota = counter->u.quota;
    rn_rolling_bucket bucket = {0};

    for (size_t i = 0; i < record->timeline_count; i++)
        rn_quota_ticks(counter, record->timeline[i].last, record->timeline[i].units);
    if (record->timeline_count > 0)
        quota->known = rn_time_min(quota->known, record->timeline[0].last);
    /* What a rolling window has in its own buckets is not the timeline's. */
    while (rn_quota_is_rolling(counter) && rn_rolling_next(counter, &bucket))
        rn_quota_ticks(counter, bucket.begin, -bucket.units);
}
