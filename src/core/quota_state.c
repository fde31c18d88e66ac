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
 * A strict quota that was not stopped in order may have granted up to its mark, at the latest when the engine began.
 *
 * If the calendar has changed in between, nothing is known of the new window but what may have been spent in it: all
 * that the old one had, if that is not over.
 */
#include "core/quota_parts.h"

#include <string.h>

#include "base/units.h"

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

/* True: what the record has used counts in the window that is set now. */
static bool window_load(rn_counter *counter, ration_time now, const ration_record *record)
{
    const ration_quota_record *const kept = &record->u.quota;
    rn_quota *const quota = counter->u.quota;
    rn_quota_window *const window = &quota->window;

    if (!is_window(counter, kept)) {
        quota->used = rn_time_before(now, kept->window_end) ? kept->used : 0;
        return rn_time_before(now, kept->window_end);
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
    rn_window_look_back(counter);
    return true;
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

/* So much had been granted when all was lost, to whom nobody knows, and nothing more is covered. */
static void assume(rn_counter *counter, int64_t amount)
{
    rn_quota *const quota = counter->u.quota;

    quota->used = rn_add(quota->used, amount);
    if (rn_quota_is_rolling(counter)) {
        rn_rolling_charge(counter, counter->lost_at, amount);
    } else {
        rn_window_charge(counter, counter->lost_at, amount);
        rn_quota_ticks(counter, counter->lost_at, amount);
    }
    rn_flight_lose(counter, counter->lost_at, amount);
    quota->mark.left = 0;
}

/* The same of a window that no record is of, where it had begun by then. */
static void assume_of_window(rn_counter *counter, int64_t amount)
{
    if (rn_quota_is_rolling(counter) || rn_time_before(counter->u.quota->window.start, counter->lost_at))
        assume(counter, amount);
}

/*
 * What may have been granted after the record: as much as lies between its count and its mark, in its window or, where
 * that was over by then, on its way into the next.
 */
static void mark_assume(rn_counter *counter, const ration_quota_record *kept, bool current)
{
    const rn_quota *const quota = counter->u.quota;
    const int64_t ahead = rn_quota_mark_ahead(kept);
    const int64_t block = rn_quota_mark_block(counter);
    const bool rolling = rn_quota_is_rolling(counter);
    const bool over = !rolling && !rn_time_before(counter->lost_at, quota->window.end);

    if (current)
        rn_quota_advance(counter, counter->lost_at);
    if (!rolling && current && !over) {
        assume(counter, rn_max(ahead, rn_sub(block, quota->used)));
    } else {
        assume_of_window(counter, rn_max(ahead, block));
    }
}

/* Time goes on; where all that was assumed has left a rolling window by now, it is as good as new. */
static void assumed_until(rn_counter *counter, ration_time now)
{
    rn_quota_advance(counter, now);
    if (rn_quota_is_rolling(counter) && counter->u.quota->used == 0)
        rn_quota_mark_begin(counter);
}

void rn_quota_lose(rn_counter *counter, ration_time now)
{
    if (!rn_limit_is_strict(counter->limit) || counter->lost_at.us == RN_NEVER_LOST)
        return;
    if (rn_quota_is_rolling(counter)) {
        rn_rolling_init(counter, counter->lost_at);
    } else {
        rn_window_init(counter, counter->lost_at);
    }
    assume_of_window(counter, rn_quota_mark_block(counter));
    assumed_until(counter, now);
}

void rn_quota_load(rn_counter *counter, ration_time now, const ration_record *record)
{
    const ration_quota_record *const kept = &record->u.quota;
    rn_quota *const quota = counter->u.quota;
    bool current = true;

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
    if (kept->in_flight > 0)
        rn_flight_lose(counter, record->at, kept->in_flight);
    if (rn_quota_is_rolling(counter)) {
        rolling_load(counter, record);
    } else {
        current = window_load(counter, now, record);
    }
    rn_quota_ticks_load(counter, kept);
    if (rn_limit_is_strict(counter->limit) && counter->lost_at.us != RN_NEVER_LOST &&
        !rn_time_before(counter->lost_at, record->at)) {
        mark_assume(counter, kept, current);
        assumed_until(counter, now);
        return;
    }
    if (current)
        quota->mark.left = rn_quota_mark_ahead(kept);
    rn_quota_advance(counter, now);
}

/* Behind the parts that are there already. */
static void timeline_save(const rn_counter *counter, ration_time now, ration_part *parts, ration_quota_record *out)
{
    out->timeline = parts + out->part_count;
    out->timeline_count = rn_quota_ticks_save(counter, now, parts + out->part_count);
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
        .mark = rn_quota_mark_give(counter),
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
        timeline_save(counter, now, parts, &out->u.quota);
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
    timeline_save(counter, now, parts, &out->u.quota);
    return true;
}
