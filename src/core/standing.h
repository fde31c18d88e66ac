/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_STANDING_H
#define RN_CORE_STANDING_H

#include <ration/engine.h>

#define RN_STANDINGS_MAX 8 /* more than a client will read */

/*
 * Where the limits that a call has spent from stand, for whoever tells its client: those that count by time, rates and
 * quotas. Slots and shares come back with the calls themselves, so there is nothing for a client to wait for.
 */
typedef struct rn_standing {
    const char *limit; /* borrowed until the next call that changes the engine */
    bool cost;         /* it counts cost, else requests */
    int64_t quota; /* micro-units that a window, or the burst, holds for ordinary calls, reserve and margin taken off */
    int64_t window_us; /* its length; of a rate, the time in which the burst comes back */
    int64_t remaining; /* micro-units of it that are left; at least 0 */
    int64_t reset_us;  /* until the window ends; of a rate, until the burst is whole, or, where no such call fits, until
                          the next one does. RATION_UNSET: a rolling window */
} rn_standing;

struct rn_limit;

/* Is it one that binds and counts by time? */
bool rn_standing_is_of(const struct rn_limit *limit);
/* Where a limit stands of which `report` tells as of `now`, the credit of a rate's bucket being `credit`, for a call
 * that takes `charge`. False: it is none of those. */
bool rn_standing_of(const struct rn_limit *limit, const ration_counter_report *report, int64_t credit, ration_time now,
                    int64_t charge, rn_standing *out);

/* The tightest so far. Zeroed but for `items`, which has room for `max`, at most RN_STANDINGS_MAX. */
typedef struct rn_standings {
    rn_standing *items;
    size_t max, count;
    int64_t fits[RN_STANDINGS_MAX]; /* calls, of each */
} rn_standings;

/* `charge`, above 0, is what the call takes there. Limits come in order of declaration. */
void rn_standings_add(rn_standings *all, const rn_standing *one, int64_t charge);

/*
 * The tightest for a lease: those in which the fewest calls like it fit, ties declared first. At most `max`; returns
 * how many. 0 for a handle that is not alive, and of shadow limits nothing.
 *
 * Time   As of the newest instant that the engine has seen; it carries nothing out, so it is no call at its door.
 * Cost   O(limits of the request), no allocation.
 */
size_t rn_engine_standing(ration_engine *engine, ration_lease lease, rn_standing *out, size_t max);

/* The one that a refusal names, with `max` at least 1. Of another kind, or none: 0. O(limits of the rules). */
size_t rn_engine_standing_of(ration_engine *engine, const ration_decision *refused, rn_standing *out);

#endif
