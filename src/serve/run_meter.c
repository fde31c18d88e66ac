/* SPDX-License-Identifier: MIT */
/*
 * Where one run of a job ends and the next begins. docs/decisions/0015.
 *
 * Nobody says so; what can be seen is when requests come and go. A run is over when nothing of it has been under way
 * for a quarter of the interval, and at the latest when it has lasted a whole one and another request comes: runs that
 * follow each other without a pause are told apart by the plan alone. Waiting for a lease is being under way, so a run
 * that is slowed down by limits stays one run.
 *
 * A run of which a request was not sent is shorter than runs are. To learn from it would make the plan promise more
 * than it can keep, and cut the next runs too.
 *
 * Invariants: `under_way` is at least 0; what is not open has counted nothing.
 */
#include "serve/run_meter.h"

#include "base/units.h"

#define QUIET_PART 4

rn_run_pace rn_run_pace_of(int64_t interval_us, int64_t effective_us)
{
    return (rn_run_pace){.quiet_us = rn_max(interval_us / QUIET_PART, 1),
                         .longest_us = rn_max(rn_max(interval_us, effective_us), 1)};
}

static bool is_after(ration_time now, ration_time from, int64_t span_us)
{
    return !rn_time_before(now, rn_time_add(from, span_us));
}

static rn_run_told run_close(rn_run_meter *meter)
{
    const bool whole = !meter->cut && meter->run.requests > 0;
    const rn_run_told told = {.end = whole ? RN_RUN_WHOLE : RN_RUN_CUT, .begun = meter->begun, .run = meter->run};

    rn_run_drop(meter);
    return told;
}

rn_run_told rn_run_over(rn_run_meter *meter, ration_time now, rn_run_pace pace)
{
    if (!meter->open || meter->under_way > 0 || !is_after(now, meter->quiet_since, pace.quiet_us))
        return (rn_run_told){.end = RN_RUN_NONE};
    return run_close(meter);
}

bool rn_run_arrive(rn_run_meter *meter, ration_time now, rn_run_pace pace, rn_run_told *told)
{
    *told = rn_run_over(meter, now, pace);
    if (meter->open && is_after(now, meter->begun, pace.longest_us))
        *told = run_close(meter);
    meter->under_way++;
    if (meter->open)
        return false;
    meter->open = true;
    meter->begun = now;
    return true;
}

void rn_run_sent(rn_run_meter *meter, bool retry)
{
    if (!meter->open)
        return;
    if (retry) {
        meter->run.retries++;
    } else {
        meter->run.requests++;
    }
}

void rn_run_leave(rn_run_meter *meter, ration_time now, bool sent)
{
    meter->under_way--;
    meter->quiet_since = now;
    if (meter->open && !sent)
        meter->cut = true;
}

void rn_run_drop(rn_run_meter *meter)
{
    meter->open = false;
    meter->cut = false;
    meter->run = (ration_run){0};
}
