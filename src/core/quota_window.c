/* SPDX-License-Identifier: MIT */
/*
 * Calendar windows of a quota, and how headers move them. Chapter 3, "Calendar windows" and "Reset".
 *
 * The windows are the calendar's, shifted by an offset that is zero until a header says otherwise. The offset stays for
 * the windows after, so that shifted windows tile time as the calendar's do, and a counter that nobody asked for a year
 * finds its window in one step.
 *
 * A header may move the end of the window, bring it about, or tell of a window that began without us noticing. A
 * provider whose resets slide, are cut to seconds or never change must not be able to empty the count again and again:
 * an end is brought about at most once per half window, measured between the ends. A later reset that begins a window
 * is not held back by that, but it has brought an end about too: so answers of the window before, which are still on
 * their way, cannot end the new one.
 *
 * Where a header may not move the end, what it tells beside its reset holds until that reset, if it is before the end:
 * it speaks of a window that is over by then, however late it came.
 *
 * To know what of the count belongs to a window that began in the past, charges are kept by time of grant in 64 equal
 * parts of the window. Where a part straddles the begin, what has ended of it counts in the new window.
 *
 * Invariants: start <= now < end; end - computed_end == offset_us; neither start nor first_order moves back.
 */
#include "core/quota_parts.h"

#include <string.h>

#include "base/units.h"

typedef struct beginning {
    ration_time start;
    ration_time computed_end;
    int64_t offset_us;
    uint64_t first_order; /* leases from here on belong to it */
    int64_t used;         /* by them */
} beginning;

static size_t part_of(const rn_quota_window *window, ration_time at)
{
    const int64_t part = rn_div_floor(rn_sub(at.us, window->start.us), window->part_us);

    return (size_t)rn_max(0, rn_min(part, RN_QUOTA_PARTS - 1));
}

/*
 * The window's span is anew; charges of parts that end in it move to where they lie in it. The last part has no end but
 * `now`, for the window's end may have moved since the parts were made.
 */
static void history_begin(rn_counter *counter, ration_time now, ration_time start)
{
    rn_quota *const quota = counter->u.quota;
    rn_quota_window *const window = &quota->window;
    const ration_time old_start = window->start;
    const int64_t old_part_us = window->part_us;
    int64_t old[RN_QUOTA_PARTS];

    window->start = start;
    window->part_us = rn_max(rn_div_ceil(rn_sub(window->end.us, start.us), RN_QUOTA_PARTS), 1);
    if (counter->limit->spec.quota.parts == 0)
        return;
    memcpy(old, quota->parts, sizeof old);
    memset(quota->parts, 0, sizeof old);
    for (size_t i = 0; i < RN_QUOTA_PARTS; i++) {
        const bool open = i == RN_QUOTA_PARTS - 1;
        const ration_time last = open ? now : rn_time_add(old_start, (int64_t)(i + 1) * old_part_us - 1);

        if (old[i] != 0 && !rn_time_before(last, start))
            quota->parts[part_of(window, last)] = rn_add(quota->parts[part_of(window, last)], old[i]);
    }
}

void rn_window_look_back(rn_counter *counter)
{
    rn_quota *const quota = counter->u.quota;
    const ration_time start = rn_time_add(quota->window.start, rn_sub(0, quota->window.offset_us));
    ration_time before;
    ration_time end;

    rn_calendar_window(&counter->limit->spec.quota.calendar, rn_time_add(start, -1), &before, &end);
    quota->previous = rn_time_add(quota->window.start, rn_sub(before.us, end.us));
}

static void window_begin(rn_counter *counter, ration_time now, const beginning *b)
{
    rn_quota *const quota = counter->u.quota;

    quota->carried = rn_flight_over(counter, b->start, b->first_order);
    quota->used = b->used;
    quota->external = quota->extra = 0;
    quota->left_known = quota->exhausted = quota->dipped = quota->observed = false;
    quota->first_order = b->first_order;
    quota->moved_order = quota->newest_order;
    quota->window.computed_end = b->computed_end;
    quota->window.offset_us = b->offset_us;
    quota->window.end = rn_time_add(b->computed_end, b->offset_us);
    history_begin(counter, now, b->start);
    rn_window_look_back(counter);
    rn_quota_ticks_forget(counter, now);
    rn_quota_mark_begin(counter);
}

void rn_window_init(rn_counter *counter, ration_time now)
{
    rn_quota_window *const window = &counter->u.quota->window;

    rn_calendar_window(&counter->limit->spec.quota.calendar, now, &window->start, &window->computed_end);
    window->end = window->computed_end;
    window->part_us = rn_max(rn_div_ceil(rn_sub(window->end.us, window->start.us), RN_QUOTA_PARTS), 1);
    rn_window_look_back(counter);
}

/* The window that `now` is in, if the calendar's are shifted by so much. */
static beginning window_shifted(const rn_counter *counter, ration_time now, int64_t offset_us)
{
    beginning next = {.offset_us = offset_us, .first_order = counter->u.quota->newest_order + 1};

    rn_calendar_window(&counter->limit->spec.quota.calendar, rn_time_add(now, -offset_us), &next.start,
                       &next.computed_end);
    next.start = rn_time_add(next.start, offset_us);
    return next;
}

void rn_window_advance(rn_counter *counter, ration_time now)
{
    rn_quota *const quota = counter->u.quota;

    if (quota->left_known && !rn_time_before(now, quota->window.left_until)) {
        quota->left_known = false;
        quota->external = 0;
    }
    quota->exhausted = quota->exhausted && rn_time_before(now, quota->window.exhausted_until);
    if (rn_time_before(now, quota->window.end))
        return;

    const beginning next = window_shifted(counter, now, quota->window.offset_us);

    memset(quota->parts, 0, counter->limit->spec.quota.parts * sizeof quota->parts[0]);
    window_begin(counter, now, &next);
}

void rn_window_charge(rn_counter *counter, ration_time granted_at, int64_t amount)
{
    rn_quota *const quota = counter->u.quota;

    /* What is given back stays in the history, which may count too much and never too little. */
    if (counter->limit->spec.quota.parts != 0 && amount > 0) {
        int64_t *const part = &quota->parts[part_of(&quota->window, granted_at)];

        *part = rn_add(*part, amount);
    }
}

size_t rn_window_parts(const rn_counter *counter, ration_time now, ration_part *parts)
{
    const rn_quota *const quota = counter->u.quota;
    const rn_quota_window *const window = &quota->window;
    size_t count = 0;

    for (int64_t i = 0; i < counter->limit->spec.quota.parts; i++) {
        const ration_time last = rn_time_min(rn_time_add(window->start, (i + 1) * window->part_us - 1), now);

        if (quota->parts[i] > 0)
            parts[count++] = (ration_part){last, rn_min(quota->parts[i], RATION_UNITS_MAX)};
    }
    return count;
}

rn_reset rn_window_classify(const rn_counter *counter, ration_time now, ration_time reset)
{
    const rn_quota_spec *const spec = &counter->limit->spec.quota;
    ration_time start;
    ration_time end;

    rn_calendar_window(&spec->calendar, now, &start, &end);
    if (rn_time_before(rn_time_add(end, spec->length_us), reset))
        return RN_RESET_FAR;
    if (!rn_time_before(counter->u.quota->window.start, reset))
        return RN_RESET_STALE;
    return rn_time_before(now, reset) ? RN_RESET_COMING : RN_RESET_PAST;
}

/* At most once per half window may a header bring an end about; `at` would be one. */
static bool may_bring(const rn_counter *counter, ration_time at)
{
    const rn_quota_window *const window = &counter->u.quota->window;

    return !window->brought || rn_sub(at.us, window->brought_at.us) >= counter->limit->spec.quota.length_us / 2;
}

bool rn_window_is_fresh(const rn_counter *counter)
{
    return counter->u.quota->window.offset_us == 0 && may_bring(counter, counter->u.quota->window.start);
}

static void bring(rn_quota_window *window, ration_time at)
{
    window->brought = true;
    window->brought_at = at;
}

/* Of the part that straddles `reset`, what is known to have been granted before it. */
static int64_t known_before(const rn_counter *counter, ration_time reset)
{
    const rn_quota *const quota = counter->u.quota;
    const size_t straddling = part_of(&quota->window, reset);
    const rn_hold *hold = NULL;
    int64_t before = 0;

    TAILQ_FOREACH_REVERSE(hold, &counter->holds, rn_hold_list, next)
    {
        if (hold->order < quota->first_order || part_of(&quota->window, hold->granted_at) < straddling)
            break;
        if (rn_time_before(hold->granted_at, reset))
            before = rn_add(before, hold->charge);
    }
    for (uint32_t i = 0; i < quota->flight.ended_count; i++) {
        const rn_quota_ended *const ended = &quota->flight.ended[i];

        if (!rn_time_before(ended->granted_at, quota->window.start) && rn_time_before(ended->granted_at, reset) &&
            part_of(&quota->window, ended->granted_at) == straddling)
            before = rn_add(before, ended->charge);
    }
    return before;
}

/*
 * A window began at `reset`, in the past: what was granted since belongs to it. Where the end had been moved back by
 * much, that window is over as well, and the one after it has begun.
 */
static void begin_in_the_past(rn_counter *counter, ration_time now, ration_time reset)
{
    rn_quota *const quota = counter->u.quota;
    const rn_hold *hold = NULL;
    beginning next = window_shifted(counter, now, rn_sub(reset.us, quota->window.computed_end.us));

    TAILQ_FOREACH_REVERSE(hold, &counter->holds, rn_hold_list, next)
    {
        if (hold->order < quota->first_order || rn_time_before(hold->granted_at, next.start))
            break;
        next.first_order = hold->order;
    }
    for (size_t i = part_of(&quota->window, next.start); i < RN_QUOTA_PARTS; i++)
        next.used = rn_add(next.used, quota->parts[i]);
    next.used = rn_sub(next.used, known_before(counter, next.start));
    next.used = rn_max(0, rn_min(next.used, quota->used));
    window_begin(counter, now, &next);
}

/* A window began that ends at `reset`; `hold` is the first that we know to belong to it. */
static void begin_with(rn_counter *counter, ration_time now, const rn_hold *hold, ration_time reset)
{
    rn_quota *const quota = counter->u.quota;
    ration_time start;
    beginning next = {
        .start = rn_time_max(hold->granted_at, quota->window.start),
        .first_order = hold->order,
        .used = rn_add(hold->charge, (int64_t)(quota->spent - hold->quota.spent)),
    };

    rn_calendar_window(&counter->limit->spec.quota.calendar, quota->window.computed_end, &start, &next.computed_end);
    next.offset_us = rn_sub(reset.us, next.computed_end.us);
    bring(&quota->window, quota->window.brought ? rn_time_max(quota->window.brought_at, now) : now);
    window_begin(counter, now, &next);
}

void rn_window_reset(rn_counter *counter, ration_time now, const rn_hold *hold, ration_time reset)
{
    rn_quota_window *const window = &counter->u.quota->window;
    const int64_t later_us = rn_sub(reset.us, window->end.us);

    if (later_us >= counter->limit->spec.quota.length_us / 2) {
        begin_with(counter, now, hold, reset);
        return;
    }
    if (later_us < 0) {
        if (!may_bring(counter, reset))
            return;
        bring(window, reset);
    }
    if (!rn_time_before(now, reset)) {
        begin_in_the_past(counter, now, reset);
        return;
    }
    window->end = reset;
    window->offset_us = rn_sub(reset.us, window->computed_end.us);
}
