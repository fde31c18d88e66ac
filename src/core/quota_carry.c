/* SPDX-License-Identifier: MIT */
/*
 * A quota goes on under other rules. Decision 0017.
 *
 * Where the window is the same, everything of it goes on. Where it is another one, all that may have been spent in it
 * counts there: what the old one knows by time of grant, as late as it may have been; what it knows no times of, all of
 * it. So the count may be too high for once and is never too low. What the provider said of the old window is
 * forgotten, but for a 429 that has exhausted it, which holds to the end that it had.
 *
 * A maximum that was learned stays learned; else the declared one holds at once.
 */
#include "core/quota_parts.h"

#include <string.h>

#include "base/units.h"

static bool same_window(const rn_counter *counter, const rn_counter *from)
{
    const rn_quota_spec *const spec = &counter->limit->spec.quota;
    const rn_quota_spec *const was = &from->limit->spec.quota;
    const rn_quota_window *const window = &from->u.quota->window;
    ration_time start;
    ration_time end;
    ration_time was_start;
    ration_time was_end;

    if (spec->length_us != was->length_us || spec->parts != was->parts || spec->counts_us != was->counts_us ||
        spec->tick_us != was->tick_us || rn_quota_is_rolling(counter) != rn_quota_is_rolling(from))
        return false;
    if (rn_quota_is_rolling(counter))
        return true;
    rn_calendar_window(&spec->calendar, rn_time_add(window->computed_end, -1), &start, &end);
    rn_calendar_window(&was->calendar, rn_time_add(window->computed_end, -1), &was_start, &was_end);
    return start.us == was_start.us && end.us == was_end.us;
}

/* The timelines of a limit are counted together. */
static void swap_quotas(rn_counter *counter, rn_counter *from)
{
    rn_quota *const fresh = counter->u.quota;
    const size_t size = sizeof fresh->timeline.ticks[0];
    const int64_t moved = (int64_t)(from->u.quota->timeline.capacity * size);
    const int64_t left = (int64_t)(fresh->timeline.capacity * size);

    counter->limit->timeline_bytes += moved - left;
    from->limit->timeline_bytes += left - moved;
    counter->u.quota = from->u.quota;
    from->u.quota = fresh;
}

/* Units spent at or before an instant that the new window may have to count. */
static void spent_by(rn_counter *counter, ration_time now, ration_time last, int64_t units)
{
    rn_quota *const quota = counter->u.quota;
    const ration_time at = rn_time_min(last, now);

    if (units == 0)
        return;
    if (rn_quota_is_rolling(counter)) {
        if (!rn_rolling_owns(counter, at))
            return;
        rn_rolling_charge(counter, at, units);
    } else {
        if (rn_time_before(at, quota->window.start))
            return;
        rn_window_charge(counter, at, units);
    }
    quota->used = rn_add(quota->used, units);
}

static void spent_carry(rn_counter *counter, ration_time now, const rn_counter *from)
{
    const rn_quota *const was = from->u.quota;
    const rn_quota_spec *const spec = &from->limit->spec.quota;
    const int64_t carried = rn_quota_is_rolling(from) ? 0 : was->carried;

    if (rn_quota_is_rolling(from)) {
        for (int64_t number = was->rolling.oldest; number <= was->rolling.newest; number++) {
            const int64_t place = number % spec->parts;

            spent_by(counter, now, ration_time_of((number + 1) * spec->width_us - 1),
                     was->parts[place < 0 ? place + spec->parts : place]);
        }
    } else if (spec->parts > 0) {
        for (int64_t i = 0; i < spec->parts; i++)
            spent_by(counter, now, rn_time_add(was->window.start, (i + 1) * was->window.part_us - 1), was->parts[i]);
        /* The history keeps what was given back. */
        if (!rn_quota_is_rolling(counter))
            counter->u.quota->used = rn_min(counter->u.quota->used, was->used);
    } else {
        spent_by(counter, now, now, was->used);
    }
    spent_by(counter, now, now, carried);
}

static void exhaustion_carry(rn_quota *quota, const rn_counter *from, bool rolling)
{
    const rn_quota *const was = from->u.quota;
    const ration_time until = rn_quota_is_rolling(from) ? was->rolling.exhausted_until
                                                        : rn_time_min(was->window.exhausted_until, was->window.end);

    quota->exhausted = was->exhausted;
    if (rolling) {
        quota->rolling.exhausted_until = until;
    } else {
        quota->window.exhausted_until = until;
    }
}

/* The first of the leases whose charges are counted. */
static uint64_t first_order(const rn_counter *counter, const rn_counter *from)
{
    const rn_quota *const was = from->u.quota;
    const rn_hold *hold;
    uint64_t first = was->newest_order + 1;

    if (rn_quota_is_rolling(counter))
        return was->first_order;
    TAILQ_FOREACH_REVERSE(hold, &from->holds, rn_hold_list, next)
    {
        if (hold->order < was->first_order || rn_time_before(hold->granted_at, counter->u.quota->window.start))
            break;
        first = hold->order;
    }
    return first;
}

static void convert(rn_counter *counter, ration_time now, const rn_counter *from)
{
    const rn_quota *const was = from->u.quota;
    rn_quota *const quota = counter->u.quota;

    rn_quota_advance(counter, now);
    memset(quota->parts, 0, counter->limit->spec.quota.parts * sizeof quota->parts[0]);
    quota->used = quota->carried = quota->external = 0;
    quota->left_known = quota->observed = false;
    quota->dipped = was->dipped;
    quota->dipped_at = was->dipped_at;
    quota->spent = was->spent;
    quota->returned = was->returned;
    quota->newest_order = was->newest_order;
    quota->moved_order = was->newest_order;
    quota->first_order = first_order(counter, from);
    quota->extra = was->extra;
    quota->extra_until =
        rn_time_min(rn_time_add(now, counter->limit->spec.quota.counts_us), ration_time_of(RATION_TIME_MAX_US));
    quota->max = was->max;
    quota->learned_max = was->learned_max;
    memcpy(quota->flight.ended, was->flight.ended, sizeof quota->flight.ended);
    quota->flight.ended_count = was->flight.ended_count;
    exhaustion_carry(quota, from, rn_quota_is_rolling(counter));
    spent_carry(counter, now, from);
    quota->mark = (rn_quota_mark){0};
}

void rn_quota_carry(rn_counter *counter, ration_time now, rn_counter *from)
{
    const ration_limit_rule *const rule = counter->limit->rule;
    const bool was_strict = rn_limit_is_strict(from->limit);

    rn_quota_advance(from, now);
    if (same_window(counter, from)) {
        swap_quotas(counter, from);
    } else {
        convert(counter, now, from);
    }

    rn_quota *const quota = counter->u.quota;

    if (!quota->learned_max || quota->max == from->limit->rule->max) {
        quota->max = rule->max;
        quota->learned_max = rule->max_auto;
    }
    /* Another word of the config's to disagree with. */
    if (rule->max != from->limit->rule->max)
        quota->disagreement = 0;
    /* What is known to be durable is no mark, so one is needed before anything is granted. */
    if (!was_strict)
        quota->mark = (rn_quota_mark){0};
    /* Its leases come one by one. */
    TAILQ_INIT(&quota->flight.live);
    quota->flight.charge = 0;
    for (uint32_t i = 0; i < quota->flight.ended_count; i++)
        quota->flight.charge = rn_add(quota->flight.charge, quota->flight.ended[i].charge);
}

void rn_quota_carry_hold(rn_counter *counter, const rn_counter *from, rn_hold *was, rn_hold *hold)
{
    rn_quota_flight *const flight = &counter->u.quota->flight;

    (void)from;
    (void)was;
    if (!hold->quota.flying)
        return;
    TAILQ_INSERT_TAIL(&flight->live, hold, quota.in_flight);
    flight->charge = rn_add(flight->charge, hold->charge);
}
