/* SPDX-License-Identifier: MIT */
/*
 * What operators do to a quota. Decision 0016.
 *
 * A reset begins the window anew as if nobody had ever asked: the calendar's bounds, the declared maximum, nothing
 * spent. Leases from before belong to no window any more, so neither what they cost in the end nor what the provider
 * answers them counts here; only a maximum, or a reset that is still to come, teaches as ever.
 *
 * A mark stays where it is: whoever loads the record of before counts more than what is used now, never less. Where the
 * window begins elsewhere there is no record of it yet.
 *
 * What is granted beyond U ends with the window. A rolling window has none, so there it ends when all that could have
 * been spent at once has left the count again.
 *
 * Invariant: extra >= 0, and 0 where `usable` is not ours to set (an enforcer).
 */
#include "core/quota_parts.h"

#include <string.h>

#include "base/units.h"

static void flight_forget(rn_quota *quota)
{
    rn_hold *hold;

    while ((hold = TAILQ_FIRST(&quota->flight.live)) != NULL) {
        TAILQ_REMOVE(&quota->flight.live, hold, quota.in_flight);
        hold->quota.flying = false;
    }
    quota->flight.charge = 0;
    quota->flight.ended_count = 0;
}

void rn_quota_reset(rn_counter *counter, ration_time now)
{
    const rn_limit *const limit = counter->limit;
    rn_quota *const quota = counter->u.quota;

    rn_quota_advance(counter, now);
    flight_forget(quota);
    memset(quota->parts, 0, limit->spec.quota.parts * sizeof quota->parts[0]);
    quota->max = limit->rule->max;
    quota->learned_max = limit->rule->max_auto;
    quota->exhausted = quota->dipped = quota->left_known = quota->observed = false;
    quota->used = quota->carried = quota->left = quota->external = quota->extra = 0;
    quota->first_order = quota->newest_order + 1;
    quota->moved_order = quota->newest_order;
    if (!rn_quota_is_rolling(counter)) {
        const ration_time start = quota->window.start;

        memset(&quota->window, 0, sizeof quota->window);
        rn_window_init(counter, now);
        if (quota->window.start.us != start.us)
            rn_quota_mark_begin(counter);
    }
}

int rn_quota_grant(rn_counter *counter, ration_time now, int64_t units)
{
    rn_quota *const quota = counter->u.quota;

    rn_quota_advance(counter, now);
    if (units > RATION_UNITS_MAX - quota->extra)
        return RATION_ERR_RANGE;
    quota->extra += units;
    quota->extra_until =
        rn_time_min(rn_time_add(now, counter->limit->spec.quota.counts_us), ration_time_of(RATION_TIME_MAX_US));
    return RATION_OK;
}
