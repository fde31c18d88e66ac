/* SPDX-License-Identifier: MIT */
/*
 * A quota's window to and from a record. Chapter 3, "Ledger".
 *
 * A window is put back as it was at the record's time, and then time goes on: so one that is over by now rolls over as
 * it would have, with its learned offset, and with what may still be on its way to the provider.
 *
 * Who held leases then is gone. What they had in flight is one charge that ended without a response at the record's
 * time. What the provider had said is what remains of it; leases granted from now on are judged by it as ever.
 *
 * If the calendar has changed in between, nothing is known of the new window but what may have been spent in it: all
 * that the old one had, if that is not over.
 */
#include "core/quota_parts.h"

#include <string.h>

#include "base/units.h"

static void flight_load(rn_quota *quota, const ration_record *record)
{
    const int64_t charge = record->u.quota.in_flight;

    if (charge == 0)
        return;
    quota->flight.ended[0] = (rn_quota_ended){record->at, charge};
    quota->flight.ended_count = 1;
    quota->flight.charge = charge;
}

/* Is it a window of this calendar? */
static bool is_window(const rn_counter *counter, const ration_quota_record *kept)
{
    const ration_time computed_end = rn_time_add(kept->window_end, rn_sub(0, kept->offset_us));
    ration_time start;
    ration_time end;

    if (!rn_time_before(kept->window_start, kept->window_end))
        return false;
    rn_calendar_window(&counter->limit->spec.quota.calendar, rn_time_add(computed_end, -1), &start, &end);
    return end.us == computed_end.us;
}

static void window_load(rn_counter *counter, ration_time now, const ration_record *record)
{
    const ration_quota_record *const kept = &record->u.quota;
    rn_quota *const quota = counter->u.quota;
    rn_quota_window *const window = &quota->window;

    if (!is_window(counter, kept)) {
        quota->used = rn_time_before(now, kept->window_end) ? kept->used : 0;
        return;
    }
    window->start = kept->window_start;
    window->end = kept->window_end;
    window->offset_us = kept->offset_us;
    window->computed_end = rn_time_add(window->end, -window->offset_us);
    window->part_us = rn_max(rn_div_ceil(rn_sub(window->end.us, window->start.us), RN_QUOTA_PARTS), 1);
    window->brought = kept->moved;
    window->brought_at = kept->moved_at;
    window->left_until = kept->remaining_until;
    window->exhausted_until = kept->exhausted_until;
    quota->used = kept->used;
    quota->carried = kept->carried;
    for (size_t i = 0; i < kept->part_count; i++)
        rn_window_charge(counter, kept->parts[i].last, kept->parts[i].units);
}

static void rolling_load(rn_counter *counter, const ration_record *record)
{
    const ration_quota_record *const kept = &record->u.quota;
    rn_quota *const quota = counter->u.quota;

    rn_rolling_init(counter, record->at);
    quota->rolling.exhausted_until = kept->exhausted_until;
    quota->rolling.learned_until = kept->remaining_until;
    for (size_t i = 0; i < kept->part_count; i++) {
        if (!rn_rolling_owns(counter, kept->parts[i].last))
            continue;
        rn_rolling_charge(counter, kept->parts[i].last, kept->parts[i].units);
        quota->used = rn_add(quota->used, kept->parts[i].units);
    }
}

void rn_quota_load(rn_counter *counter, ration_time now, const ration_record *record)
{
    const ration_quota_record *const kept = &record->u.quota;
    rn_quota *const quota = counter->u.quota;

    if (kept->max != RATION_UNSET) {
        quota->max = kept->max;
        quota->learned_max = true;
    }
    quota->left_known = kept->has_remaining;
    quota->observed = kept->has_remaining;
    quota->left = kept->remaining;
    quota->external = kept->external;
    quota->exhausted = kept->exhausted;
    quota->dipped = kept->dipped;
    quota->dipped_at = kept->dipped_at;
    flight_load(quota, record);
    if (rn_quota_is_rolling(counter)) {
        rolling_load(counter, record);
    } else {
        window_load(counter, now, record);
    }
    rn_quota_advance(counter, now);
}

bool rn_quota_save(rn_counter *counter, ration_time now, ration_part *parts, ration_record *out)
{
    const rn_limit *const limit = counter->limit;
    const rn_quota *const quota = counter->u.quota;
    const bool rolling = rn_quota_is_rolling(counter);

    rn_quota_advance(counter, now);
    out->type = RATION_RECORD_QUOTA;
    out->u.quota = (ration_quota_record){
        .used = rn_min(quota->used, RATION_UNITS_MAX),
        .carried = rn_min(quota->carried, RATION_UNITS_MAX),
        .in_flight = rn_min(quota->flight.charge, RATION_UNITS_MAX),
        .has_remaining = quota->left_known,
        .remaining = quota->left_known ? rn_max(-RATION_UNITS_MAX, rn_min(quota->left, RATION_UNITS_MAX)) : 0,
        .max = quota->learned_max && quota->max != limit->rule->max ? quota->max : RATION_UNSET,
        .external = quota->external,
        .exhausted = quota->exhausted,
        .dipped = quota->dipped,
        .dipped_at = quota->dipped_at,
        .parts = parts,
    };
    if (rolling) {
        out->u.quota.rolling_us = limit->rule->window.rolling_us;
        out->u.quota.remaining_until = quota->rolling.learned_until;
        out->u.quota.exhausted_until = quota->rolling.exhausted_until;
        out->u.quota.part_count = rn_rolling_parts(counter, now, parts);
        return true;
    }
    out->u.quota.window_start = quota->window.start;
    out->u.quota.window_end = quota->window.end;
    out->u.quota.offset_us = quota->window.offset_us;
    out->u.quota.moved = quota->window.brought;
    out->u.quota.moved_at = quota->window.brought_at;
    out->u.quota.remaining_until = quota->window.left_until;
    out->u.quota.exhausted_until = quota->window.exhausted_until;
    out->u.quota.part_count = rn_window_parts(counter, now, parts);
    return true;
}
