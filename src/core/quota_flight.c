/* SPDX-License-Identifier: MIT */
/*
 * The flight of a quota: charges that the provider may not have counted yet. Chapter 3, "arrival" and "Learned
 * remaining".
 *
 * A lease is in flight from its grant until its response is seen, at the latest for `arrival`: by then its call must
 * have reached the provider. A lease that ends without a response stays in flight as a number, for its call may be on
 * the way still; where no headers teach, only if the end of the window may find it there. There is room for a few such
 * numbers; where there are more, the oldest two count as one that is as young as the younger, so that the count errs on
 * the side of waiting.
 *
 * Invariant: `charge` is the sum of the live leases' and the ended ones' charges; both are in order of their grants.
 */
#include "core/quota_parts.h"

#include <string.h>

#include "base/units.h"

void rn_flight_init(rn_counter *counter)
{
    TAILQ_INIT(&counter->u.quota->flight.live);
}

static bool has_arrived(const rn_counter *counter, ration_time granted_at, ration_time now)
{
    return !rn_time_before(now, rn_time_add(granted_at, counter->limit->spec.quota.arrival_us));
}

static void flight_remove(rn_quota_flight *flight, rn_hold *hold)
{
    if (!hold->quota.flying)
        return;
    TAILQ_REMOVE(&flight->live, hold, quota.in_flight);
    hold->quota.flying = false;
    flight->charge = rn_sub(flight->charge, hold->charge);
}

static void ended_remove_first(rn_quota_flight *flight)
{
    flight->ended_count--;
    memmove(&flight->ended[0], &flight->ended[1], flight->ended_count * sizeof flight->ended[0]);
}

void rn_flight_advance(rn_counter *counter, ration_time now)
{
    rn_quota_flight *const flight = &counter->u.quota->flight;

    while (!TAILQ_EMPTY(&flight->live) && has_arrived(counter, TAILQ_FIRST(&flight->live)->granted_at, now))
        flight_remove(flight, TAILQ_FIRST(&flight->live));
    while (flight->ended_count > 0 && has_arrived(counter, flight->ended[0].granted_at, now)) {
        flight->charge = rn_sub(flight->charge, flight->ended[0].charge);
        ended_remove_first(flight);
    }
}

void rn_flight_add(rn_counter *counter, rn_hold *hold)
{
    rn_quota_flight *const flight = &counter->u.quota->flight;

    if (counter->limit->spec.quota.arrival_us == 0)
        return;
    TAILQ_INSERT_TAIL(&flight->live, hold, quota.in_flight);
    hold->quota.flying = true;
    flight->charge = rn_add(flight->charge, hold->charge);
}

void rn_flight_answer(rn_counter *counter, rn_hold *hold)
{
    if (hold->quota.answered)
        return;
    flight_remove(&counter->u.quota->flight, hold);
    hold->quota.answered = true;
    hold->quota.answered_order = counter->u.quota->newest_order;
}

void rn_flight_settle(rn_counter *counter, const rn_hold *hold, int64_t added)
{
    if (hold->quota.flying)
        counter->u.quota->flight.charge = rn_add(counter->u.quota->flight.charge, added);
}

static bool is_of_account(const rn_counter *counter, const rn_hold *hold)
{
    return rn_quota_learns(counter->limit->rule) ||
           (!rn_quota_is_rolling(counter) && !has_arrived(counter, hold->granted_at, counter->u.quota->window.end));
}

void rn_flight_end(rn_counter *counter, rn_hold *hold)
{
    if (!hold->quota.flying)
        return;
    flight_remove(&counter->u.quota->flight, hold);
    if (is_of_account(counter, hold))
        rn_flight_lose(counter, hold->granted_at, hold->charge);
}

void rn_flight_lose(rn_counter *counter, ration_time granted_at, int64_t charge)
{
    rn_quota_flight *const flight = &counter->u.quota->flight;
    const rn_quota_ended ended = {granted_at, charge};

    if (flight->ended_count == RN_QUOTA_ENDED) {
        flight->ended[1].charge = rn_add(flight->ended[1].charge, flight->ended[0].charge);
        ended_remove_first(flight);
    }

    uint32_t at = flight->ended_count;

    for (; at > 0 && rn_time_before(ended.granted_at, flight->ended[at - 1].granted_at); at--)
        flight->ended[at] = flight->ended[at - 1];
    flight->ended[at] = ended;
    flight->ended_count++;
    flight->charge = rn_add(flight->charge, ended.charge);
}

int64_t rn_flight_over(const rn_counter *counter, ration_time boundary, uint64_t order)
{
    const rn_quota_flight *const flight = &counter->u.quota->flight;
    const rn_hold *hold = NULL;
    int64_t over = 0;

    TAILQ_FOREACH_REVERSE(hold, &counter->holds, rn_hold_list, next)
    {
        if (has_arrived(counter, hold->granted_at, boundary))
            break;
        if (!hold->quota.answered && hold->order < order)
            over = rn_add(over, hold->charge);
    }
    for (uint32_t i = 0; i < flight->ended_count; i++) {
        const ration_time granted_at = flight->ended[i].granted_at;

        if (rn_time_before(granted_at, boundary) && !has_arrived(counter, granted_at, boundary))
            over = rn_add(over, flight->ended[i].charge);
    }
    return over;
}

bool rn_flight_reaches(const rn_counter *counter, ration_time end)
{
    const rn_quota_flight *const flight = &counter->u.quota->flight;
    const rn_hold *const live = TAILQ_LAST(&flight->live, rn_flight_list);

    if (live != NULL && !has_arrived(counter, live->granted_at, end))
        return true;
    return flight->ended_count > 0 && !has_arrived(counter, flight->ended[flight->ended_count - 1].granted_at, end);
}
