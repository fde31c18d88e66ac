/* SPDX-License-Identifier: MIT */
/*
 * The pause of one scope after its provider said "too many". Chapter 3, "429".
 *
 * What the provider asks for is taken as it is; where it asks for nothing usable, the pause doubles with every event.
 * An event is one burst: all the 429s of calls that had left before the penalty began. A success resets the doubling
 * only if its call left after the last event began, for an older one says nothing about the time since. A week after
 * its end nothing is remembered of a penalty, so that a fleet need not keep it for ever (decision 0024).
 *
 * Invariant: `until` never moves back but by an operator's word; `doublings` <= `events`.
 */
#include "core/penalty.h"

#include "base/units.h"

#define DEFAULT_PENALTY_US (2 * INT64_C(1000000))
#define DOUBLED_PENALTY_MAX_US (INT64_C(600) * 1000000)
#define PENALTY_MAX_US (INT64_C(24) * 3600 * 1000000)
#define REMEMBERED_US (7 * PENALTY_MAX_US)

bool rn_penalty_runs(const rn_penalty *penalty, ration_time now)
{
    return penalty->any && rn_time_before(now, penalty->until);
}

/* The pause that the rule gives after so many events in a row. */
static int64_t doubled_us(uint32_t doublings, const ration_error_rule *rule)
{
    int64_t wait_us = rule->default_penalty_us > 0 ? rule->default_penalty_us : DEFAULT_PENALTY_US;

    for (uint32_t i = 1; i < doublings && wait_us < DOUBLED_PENALTY_MAX_US; i++)
        wait_us *= 2;
    return rn_min(wait_us, DOUBLED_PENALTY_MAX_US);
}

bool rn_penalty_hit(rn_penalty *penalty, ration_time now, ration_time granted_at, ration_time retry_at,
                    const ration_error_rule *rule)
{
    const bool known = penalty->any && rn_time_before(now, rn_time_add(penalty->until, REMEMBERED_US));
    const int64_t max_us = rule->max_penalty_us > 0 ? rule->max_penalty_us : PENALTY_MAX_US;

    if (!known)
        penalty->doublings = 0;
    if (!known || rn_time_before(penalty->began, granted_at)) {
        penalty->any = true;
        penalty->began = now;
        penalty->doublings += penalty->doublings < UINT32_MAX ? 1 : 0;
        penalty->events += penalty->events < UINT32_MAX ? 1 : 0;
    }

    const bool asked = rn_time_known(retry_at) && rn_time_before(now, retry_at);
    const ration_time wanted = asked ? retry_at : rn_time_add(now, doubled_us(penalty->doublings, rule));
    const ration_time latest = rn_time_min(rn_time_add(now, max_us), ration_time_of(RATION_TIME_MAX_US));
    const ration_time end = rn_time_min(wanted, latest);

    if (known && !rn_time_before(penalty->until, end))
        return false;
    penalty->until = end;
    return true;
}

void rn_penalty_success(rn_penalty *penalty, ration_time granted_at)
{
    if (penalty->any && rn_time_before(penalty->began, granted_at))
        penalty->doublings = 0;
}

void rn_penalty_lift(rn_penalty *penalty, ration_time now)
{
    if (rn_penalty_runs(penalty, now))
        penalty->until = now;
    penalty->doublings = 0;
}
