/* SPDX-License-Identifier: MIT */
/*
 * Rolling windows of a quota: at most so much in any stretch of a length. Chapter 3, "Rolling windows".
 *
 * Charges are kept in buckets of equal width that begin at its multiples since 1970, in a ring. A bucket counts until
 * all of it is older than the window plus one bucket. The window's length alone would bound what leaves here; the
 * bucket more bounds what arrives at the provider as well, where a call may come up to a bucket late. (The enforcer is
 * the provider: nothing more.)
 *
 * What a calendar window ends with its end - a provider's word, a 429's exhaustion - ends here at a time of its own.
 *
 * Invariant: `used` is the sum of the buckets from `oldest` to `newest`; all others in the ring are zero.
 */
#include "core/quota_parts.h"

#include "base/units.h"

#define PARTS_FINE 60
#define PARTS_COARSE 1440
#define MINUTE_US (60 * INT64_C(1000000))
#define DAY_US (1440 * MINUTE_US)

void rn_rolling_prepare(rn_quota_spec *spec, bool enforcer)
{
    const int64_t length_us = spec->length_us;

    if (length_us <= DAY_US) {
        spec->width_us = rn_min(rn_div_ceil(length_us, PARTS_FINE), MINUTE_US);
    } else {
        spec->width_us = rn_div_ceil(length_us, PARTS_COARSE);
    }
    spec->counts_us = length_us + (enforcer ? 0 : spec->width_us);
    spec->parts = (uint32_t)rn_div_ceil(spec->counts_us, spec->width_us) + 1;
}

static int64_t *bucket_at(const rn_counter *counter, int64_t number)
{
    const int64_t size = counter->limit->spec.quota.parts;
    const int64_t place = number % size;

    return &counter->u.quota->parts[place < 0 ? place + size : place];
}

static int64_t bucket_of(const rn_counter *counter, ration_time at)
{
    return rn_div_floor(at.us, counter->limit->spec.quota.width_us);
}

/* The first bucket that counts at `now`. */
static int64_t first_at(const rn_counter *counter, ration_time now)
{
    const rn_quota_spec *const spec = &counter->limit->spec.quota;

    return rn_div_floor(rn_sub(now.us, spec->counts_us), spec->width_us);
}

/* When a bucket ceases to count. */
static ration_time leaves_at(const rn_counter *counter, int64_t number)
{
    const rn_quota_spec *const spec = &counter->limit->spec.quota;

    return ration_time_of((number + 1) * spec->width_us + spec->counts_us);
}

void rn_rolling_init(rn_counter *counter, ration_time now)
{
    counter->u.quota->rolling.newest = bucket_of(counter, now);
    counter->u.quota->rolling.oldest = first_at(counter, now);
}

/* What leaves the count stays in the timeline. */
static void bucket_leave(rn_counter *counter, int64_t number)
{
    rn_quota *const quota = counter->u.quota;
    int64_t *const bucket = bucket_at(counter, number);

    if (*bucket > 0)
        rn_quota_ticks(counter, ration_time_of(number * counter->limit->spec.quota.width_us), *bucket);
    quota->used = rn_sub(quota->used, *bucket);
    *bucket = 0;
}

void rn_rolling_advance(rn_counter *counter, ration_time now)
{
    rn_quota *const quota = counter->u.quota;
    rn_quota_rolling *const rolling = &quota->rolling;
    const int64_t first = first_at(counter, now);
    const int64_t last = rn_min(first - 1, rolling->newest);

    for (int64_t number = rolling->oldest; number <= last; number++)
        bucket_leave(counter, number);
    if (rolling->oldest <= last)
        rn_quota_ticks_forget(counter, now);
    rolling->oldest = rn_max(rolling->oldest, first);
    rolling->newest = rn_max(rolling->newest, bucket_of(counter, now));
    quota->extra = rn_time_before(now, quota->extra_until) ? quota->extra : 0;
    quota->exhausted = quota->exhausted && rn_time_before(now, rolling->exhausted_until);
    quota->dipped = quota->dipped && bucket_of(counter, quota->dipped_at) >= rolling->oldest;
    if (quota->left_known && !rn_time_before(now, rolling->learned_until)) {
        quota->left_known = false;
        quota->external = 0;
    }
}

bool rn_rolling_owns(const rn_counter *counter, ration_time granted_at)
{
    return bucket_of(counter, granted_at) >= counter->u.quota->rolling.oldest;
}

void rn_rolling_charge(rn_counter *counter, ration_time granted_at, int64_t amount)
{
    int64_t *const bucket = bucket_at(counter, bucket_of(counter, granted_at));

    *bucket = rn_add(*bucket, amount);
}

bool rn_rolling_next(const rn_counter *counter, rn_rolling_bucket *bucket)
{
    const rn_quota_rolling *const rolling = &counter->u.quota->rolling;

    bucket->number = bucket->any ? bucket->number + 1 : rolling->oldest;
    bucket->any = true;
    while (bucket->number <= rolling->newest && *bucket_at(counter, bucket->number) == 0)
        bucket->number++;
    if (bucket->number > rolling->newest)
        return false;
    bucket->begin.us = bucket->number * counter->limit->spec.quota.width_us;
    bucket->units = *bucket_at(counter, bucket->number);
    return true;
}

size_t rn_rolling_parts(const rn_counter *counter, ration_time now, ration_part *parts)
{
    const rn_quota_rolling *const rolling = &counter->u.quota->rolling;
    const int64_t width_us = counter->limit->spec.quota.width_us;
    size_t count = 0;

    for (int64_t number = rolling->oldest; number <= rolling->newest; number++) {
        const ration_time last = rn_time_min(ration_time_of((number + 1) * width_us - 1), now);

        if (*bucket_at(counter, number) > 0)
            parts[count++] = (ration_part){last, rn_min(*bucket_at(counter, number), RATION_UNITS_MAX)};
    }
    return count;
}

/* What a request will find at `at`, when `used` of the present count is left. */
static bool fits_at(const rn_counter *counter, ration_time at, int64_t used, const rn_ask *ask)
{
    const rn_quota *const quota = counter->u.quota;
    const rn_quota_rolling *const rolling = &quota->rolling;
    rn_quota_state state = {
        .room = rn_quota_room_of(counter, ask->enforcer),
        .exhausted = quota->exhausted && rn_time_before(at, rolling->exhausted_until),
        .dipped = quota->dipped && rn_time_before(at, leaves_at(counter, bucket_of(counter, quota->dipped_at))),
    };

    if (!ask->enforcer && !rn_time_before(at, quota->extra_until))
        state.room.usable = rn_sub(state.room.usable, quota->extra);
    state.remaining = rn_sub(state.room.usable, used);
    if (quota->left_known && rn_time_before(at, rolling->learned_until))
        state.remaining = rn_min(state.remaining, quota->left);
    return rn_quota_fits(&state, ask);
}

/*
 * What a request finds changes when a bucket leaves, and at the ends of what was learned and of what a 429 exhausted:
 * the first of these instants that will do.
 */
ration_time rn_rolling_when(const rn_counter *counter, ration_time now, const rn_ask *ask)
{
    const rn_quota_rolling *const rolling = &counter->u.quota->rolling;
    const ration_time early = rn_time_min(rolling->learned_until, rolling->exhausted_until);
    const ration_time late = rn_time_max(rolling->learned_until, rolling->exhausted_until);
    const int64_t dipped = bucket_of(counter, counter->u.quota->dipped_at);
    int64_t used = counter->u.quota->used;
    ration_time from = now;

    for (int64_t number = rolling->oldest; number <= rolling->newest + 1; number++) {
        const bool more = number <= rolling->newest;
        const ration_time to = more ? leaves_at(counter, number) : ration_time_of(RATION_NEVER_US);
        const ration_time candidates[] = {from, early, late};

        if (more && *bucket_at(counter, number) == 0 && number != dipped)
            continue;
        for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
            const ration_time at = candidates[i];

            if (!rn_time_before(at, from) && rn_time_before(at, to) && fits_at(counter, at, used, ask))
                return at;
        }
        if (more)
            used = rn_sub(used, *bucket_at(counter, number));
        from = to;
    }
    return ration_time_of(RATION_NEVER_US);
}
