/* SPDX-License-Identifier: MIT */
/*
 * What a person would look at first, as one number.
 *
 * From the highest bit on: somebody has stopped it (an operator, or the provider with "too many"); how many wait for
 * it, up to a million; how much of it is taken, in millionths, rounded down. So a full counter at which nobody waits
 * comes after every one at which somebody does.
 */
#include "core/weight.h"

#include "base/units.h"
#include "core/ceiling.h"
#include "core/penalty.h"

#define WAITERS_MAX ((UINT64_C(1) << 20) - 1)
#define STOPPED (UINT64_C(1) << 62)

/* A shared one is not described, which goes through all of its tenants: what is not free in it counts as taken. */
static void taken(rn_counter *counter, ration_time now, int64_t *used, int64_t *of)
{
    ration_counter_report report = {.kind = counter->limit->rule->kind};

    if (report.kind == RATION_KIND_SHARE) {
        *of = rn_ceiling_size(counter->u.share);
        *used = rn_sub(*of, rn_ceiling_pool(counter->u.share, now));
        return;
    }
    counter->limit->kind->describe(counter, now, &report);
    switch (report.kind) {
    case RATION_KIND_RATE:
        *of = report.max;
        *used = rn_sub(report.max, report.available);
        return;
    case RATION_KIND_QUOTA:
        *of = report.usable;
        *used = rn_sub(report.usable, report.remaining);
        return;
    case RATION_KIND_ADAPTIVE:
        *of = report.current;
        *used = report.held;
        return;
    case RATION_KIND_CONCURRENCY:
    case RATION_KIND_SHARE:
    case RATION_KIND_NONE:
    case RATION_KIND_COUNT:
        *of = report.max;
        *used = report.held;
        return;
    }
}

uint64_t rn_counter_weight(rn_counter *counter, ration_time now)
{
    const bool stopped = counter->paused || rn_penalty_runs(&counter->penalty, now);
    const uint64_t waiting = counter->place_count < WAITERS_MAX ? counter->place_count : WAITERS_MAX;
    int64_t used = 0;
    int64_t of = 0;

    taken(counter, now, &used, &of);
    used = rn_max(0, rn_min(used, of));

    const uint64_t part = of > 0 ? (uint64_t)(rn_mul(used, RATION_UNIT) / of) : RATION_UNIT;

    return (stopped ? STOPPED : 0) | waiting << 30 | part;
}
