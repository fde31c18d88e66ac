/* SPDX-License-Identifier: MIT */
/*
 * Limits of kind `quota`: so much in a window of the calendar, or in any stretch of a length. Chapter 3, "quota".
 *
 * Of the maximum M, U = floor(M * share) is ours, and R = floor(U * reserve) of that is kept for retries and critical
 * requests. What remains is U less what has been granted in the window, or less than that if the provider said so
 * (quota_sync.c). It may be negative, for a settlement charges what was really spent.
 *
 * The window itself is rolled lazily: every operation first brings it up to `now`. As nothing can happen to a counter
 * between two operations, this gives what a clock at the window's end would have given.
 *
 * Invariant: `used` is the sum of what the leases of this window were charged, `carried` what leases of the window
 * before may count here as well.
 */
#include "core/quota_parts.h"

#include <string.h>

#include "base/mem.h"
#include "base/units.h"

#define ARRIVAL_US (2 * INT64_C(1000000))
#define ROLLING_MIN_US INT64_C(1000000)
#define MINUTE_US (60 * INT64_C(1000000))
#define HOUR_US (60 * MINUTE_US)
#define DAY_US (24 * HOUR_US)

static int window_prepare(rn_limit *limit, ration_fault *fault)
{
    const ration_window *const window = &limit->rule->window;
    const bool by_clock = window->period == RATION_PERIOD_MINUTE || window->period == RATION_PERIOD_HOUR;

    if ((unsigned)window->period > RATION_PERIOD_MONTH)
        return rn_rule_fault(fault, "window.period", "there is no such period");
    if (window->rolling_us != 0)
        return rn_rule_fault(fault, "window.rolling_us", "a window has a period or is rolling, not both");
    if (window->reset_minute < 0 || window->reset_minute > 1439)
        return rn_rule_fault(fault, "window.reset_minute", "the reset must be from 00:00 to 23:59");
    if (window->reset_minute != 0 && by_clock)
        return rn_rule_fault(fault, "window.reset_minute", "windows of a minute or an hour have no reset time");
    if (window->week_start < 0 || window->week_start > 6)
        return rn_rule_fault(fault, "window.week_start", "a week starts on day 0 (Monday) to 6 (Sunday)");
    if (window->month_day < 0 || window->month_day > 31)
        return rn_rule_fault(fault, "window.month_day", "a month's day is from 1 to 31");

    limit->spec.quota.calendar = rn_calendar_of(window, limit->zone);
    limit->spec.quota.length_us = rn_quota_length(limit->rule);
    if (limit->rule->sync.reset_header != NULL || limit->rule->sync.standard)
        limit->spec.quota.parts = RN_QUOTA_PARTS;
    return RATION_OK;
}

static int rolling_prepare(rn_limit *limit, ration_fault *fault)
{
    const int64_t rolling_us = limit->rule->window.rolling_us;

    if (rolling_us < ROLLING_MIN_US || rolling_us > RATION_TIME_MAX_US) {
        return rn_rule_fault(fault, "window.rolling_us", "a quota needs a period, or a rolling window of at least 1 s");
    }
    limit->spec.quota.length_us = rn_quota_length(limit->rule);
    rn_rolling_prepare(&limit->spec.quota, limit->enforcer);
    return RATION_OK;
}

static int quota_prepare(rn_limit *limit, ration_fault *fault)
{
    const ration_limit_rule *const rule = limit->rule;
    const int64_t arrival_us = rule->arrival_us != RATION_UNSET ? rule->arrival_us : ARRIVAL_US;

    memset(&limit->spec.quota, 0, sizeof limit->spec.quota);
    if (rule->max <= 0 || rule->max > RATION_UNITS_MAX)
        return rn_rule_fault(fault, "max", "a quota needs a max, or an initial max, above zero");
    if (rule->counts != RATION_COUNTS_COST && rule->max < RATION_UNIT)
        return rn_rule_fault(fault, "max", "a limit that counts requests needs a max of at least one");
    if (rule->max_auto && rule->sync.limit_header == NULL && !rule->sync.standard)
        return rn_rule_fault(fault, "sync.limit_header", "a max that is learned needs a header to learn it from");
    if (arrival_us < 0 || arrival_us > RATION_TIME_MAX_US)
        return rn_rule_fault(fault, "arrival_us", "the arrival must not be negative");

    limit->spec.quota.arrival_us = limit->enforcer ? 0 : arrival_us;
    /* Nobody waits for a limit that only watches, and a provider needs no marks to know what it has counted. */
    limit->spec.quota.strict =
        rule->durability == RATION_DURABILITY_STRICT && rule->enforce == RATION_ENFORCE_ON && !limit->enforcer;

    const int err =
        rule->window.period == RATION_PERIOD_NONE ? rolling_prepare(limit, fault) : window_prepare(limit, fault);

    /* Only a window that has been found to be one has a length. */
    if (err == RATION_OK)
        limit->spec.quota.tick_us = rn_quota_length(rule) <= DAY_US ? MINUTE_US : HOUR_US;
    return err;
}

bool rn_quota_is_rolling(const rn_counter *counter)
{
    return counter->limit->spec.quota.calendar.period == RATION_PERIOD_NONE;
}

static int quota_init(rn_counter *counter, ration_time now)
{
    const rn_quota_spec *const spec = &counter->limit->spec.quota;
    rn_quota *const quota = rn_mem_zalloc(counter->mem, 1, sizeof *quota + spec->parts * sizeof quota->parts[0]);

    if (quota == NULL)
        return RATION_ERR_NOMEM;
    quota->max = counter->limit->rule->max;
    quota->learned_max = counter->limit->rule->max_auto;
    counter->u.quota = quota;
    quota->known = counter->started_at;
    rn_flight_init(counter);
    if (rn_quota_is_rolling(counter)) {
        rn_rolling_init(counter, now);
    } else {
        rn_window_init(counter, now);
    }
    rn_quota_mark_begin(counter);
    return RATION_OK;
}

static void quota_fini(rn_counter *counter)
{
    rn_timeline_fini(&counter->u.quota->timeline, counter->mem, &counter->limit->timeline_bytes);
    rn_mem_free(counter->mem, counter->u.quota);
}

void rn_quota_advance(rn_counter *counter, ration_time now)
{
    if (rn_quota_is_rolling(counter)) {
        rn_rolling_advance(counter, now);
    } else {
        rn_window_advance(counter, now);
    }
    rn_flight_advance(counter, now);
}

bool rn_quota_owns(const rn_counter *counter, const rn_hold *hold)
{
    return hold->order >= counter->u.quota->first_order &&
           (!rn_quota_is_rolling(counter) || rn_rolling_owns(counter, hold->granted_at));
}

rn_quota_budget rn_quota_room_of(const rn_counter *counter, bool enforcer)
{
    const rn_quota *const quota = counter->u.quota;
    const rn_limit *const limit = counter->limit;

    if (limit->enforcer || enforcer)
        return (rn_quota_budget){quota->learned_max ? rn_max(quota->max, RATION_UNIT) : quota->max, 0};

    rn_quota_budget room =
        rn_quota_budget_of(limit->rule, quota->max, quota->learned_max, counter->share, limit->reserve);

    room.usable = rn_add(room.usable, quota->extra);
    return room;
}

static int64_t quota_remaining(const rn_counter *counter, const rn_quota_budget *room)
{
    const rn_quota *const quota = counter->u.quota;
    const int64_t own = rn_sub(room->usable, rn_add(quota->used, quota->carried));

    return quota->left_known ? rn_min(own, quota->left) : own;
}

static rn_quota_state quota_state(const rn_counter *counter, bool enforcer)
{
    const rn_quota_budget room = rn_quota_room_of(counter, enforcer);
    const rn_quota_state state = {
        .room = room,
        .remaining = quota_remaining(counter, &room),
        .exhausted = counter->u.quota->exhausted,
        .dipped = counter->u.quota->dipped,
    };

    return state;
}

/* What a request must leave untouched. */
static int64_t kept_from(const rn_ask *ask, const rn_quota_budget *room, bool dipped)
{
    if (ask->critical)
        return 0;
    return ask->retry && !dipped ? 0 : room->reserve;
}

bool rn_quota_fits(const rn_quota_state *state, const rn_ask *ask)
{
    if (ask->charge == 0)
        return state->remaining >= 0;
    return !state->exhausted && ask->charge <= rn_sub(state->remaining, kept_from(ask, &state->room, state->dipped));
}

/* Whether `ask` fits when only what the provider said is forgotten by `at`. */
static bool fits_at(const rn_counter *counter, ration_time at, const rn_ask *ask)
{
    const rn_quota *const quota = counter->u.quota;
    rn_quota_state state = quota_state(counter, ask->enforcer);

    if (!rn_time_before(at, quota->window.left_until))
        state.remaining = rn_sub(state.room.usable, rn_add(quota->used, quota->carried));
    state.exhausted = state.exhausted && rn_time_before(at, quota->window.exhausted_until);
    return rn_quota_fits(&state, ask);
}

/* The first instant at which `ask` fits in a calendar window: its end, if what the provider said does not end
 * before. */
static ration_time window_when(const rn_counter *counter, const rn_ask *ask)
{
    const rn_quota *const quota = counter->u.quota;
    ration_time first = quota->window.end;

    if (quota->left_known && rn_time_before(quota->window.left_until, first) &&
        fits_at(counter, quota->window.left_until, ask))
        first = quota->window.left_until;
    if (quota->exhausted && rn_time_before(quota->window.exhausted_until, first) &&
        fits_at(counter, quota->window.exhausted_until, ask))
        first = quota->window.exhausted_until;
    return first;
}

/* A quota that does not hold `ask` now, but in time. */
static void quota_refuse(const rn_counter *counter, ration_time now, const rn_ask *ask, rn_verdict *out)
{
    const bool rolling = rn_quota_is_rolling(counter);
    const ration_time end = counter->u.quota->window.end;

    out->at = rolling ? rn_rolling_when(counter, now, ask) : window_when(counter, ask);
    out->estimate = ask->ahead > 0 || (!rolling && out->at.us == end.us && rn_flight_reaches(counter, end));

    const bool waits = counter->limit->rule->when_exhausted == RATION_EXHAUSTED_WAIT && ask->may_wait &&
                       rn_time_known(out->at) && !rn_time_before(ask->deadline, out->at);

    out->fit = waits ? RN_FIT_SHORT : RN_FIT_REFUSED;
}

/* Why those who keep a place come first: for want of the quota, or of its mark alone. */
static ration_reason reason_of_those_ahead(const rn_counter *counter, const rn_quota_state *state, const rn_ask *ask)
{
    rn_ask all = *ask;

    all.charge = rn_add(ask->charge, ask->ahead);
    return rn_quota_fits(state, &all) && !rn_quota_mark_covers(counter, all.charge) ? RATION_REASON_STORE_UNAVAILABLE
                                                                                    : RATION_REASON_QUOTA_EXHAUSTED;
}

/* The quota would do, but it is past its mark then: there is more as soon as the ledger has written another. */
static void mark_binds(const rn_counter *counter, rn_verdict *out)
{
    out->fit = RN_FIT_SHORT;
    out->reason = RATION_REASON_STORE_UNAVAILABLE;
    out->at.us = RATION_NEVER_US;
    out->available = rn_max(counter->u.quota->mark.left, 0);
    out->capacity = RATION_UNSET;
}

static void quota_check(rn_counter *counter, ration_time now, const rn_ask *ask, rn_verdict *out)
{
    rn_quota_advance(counter, now);

    const rn_quota_state state = quota_state(counter, ask->enforcer);
    const int64_t capacity = state.room.usable - kept_from(ask, &state.room, false);
    const int64_t available = rn_sub(state.remaining, kept_from(ask, &state.room, state.dipped));
    rn_verdict verdict = {
        .fit = RN_FIT_NOW,
        .at = now,
        .available = state.exhausted ? 0 : rn_max(available, 0),
        .capacity = capacity,
    };

    if (rn_quota_fits(&state, ask)) {
        if (!ask->enforcer && !rn_quota_mark_covers(counter, ask->charge)) {
            mark_binds(counter, &verdict);
        } else if (ask->ahead > 0) {
            verdict.reason = reason_of_those_ahead(counter, &state, ask);
            verdict.at.us = RATION_NEVER_US;
        }
    } else if (ask->charge > capacity) {
        /* What was learned may be learned anew, so it refuses nobody for good. */
        verdict.fit = RN_FIT_REFUSED;
        verdict.reason =
            counter->u.quota->learned_max ? RATION_REASON_QUOTA_EXHAUSTED : RATION_REASON_COST_EXCEEDS_LIMIT;
        verdict.at.us = RATION_NEVER_US;
    } else {
        verdict.reason = RATION_REASON_QUOTA_EXHAUSTED;
        quota_refuse(counter, now, ask, &verdict);
    }
    *out = verdict;
}

static void quota_charge(rn_counter *counter, ration_time granted_at, int64_t amount)
{
    rn_quota *const quota = counter->u.quota;

    const int64_t before = quota->used;

    quota->used = rn_max(rn_add(quota->used, amount), 0);
    rn_quota_mark_charge(counter, rn_sub(quota->used, before));
    if (amount > 0) {
        quota->spent += (uint64_t)amount;
        quota->left = rn_sub(quota->left, amount);
    } else {
        quota->returned += (uint64_t)-amount;
    }
    if (rn_quota_is_rolling(counter)) {
        rn_rolling_charge(counter, granted_at, amount);
    } else {
        rn_window_charge(counter, granted_at, amount);
        rn_quota_ticks(counter, granted_at, amount);
    }
}

static void quota_take(rn_counter *counter, ration_time now, const rn_ask *ask, rn_hold *hold)
{
    rn_quota *const quota = counter->u.quota;

    rn_quota_advance(counter, now);

    const rn_quota_budget room = rn_quota_room_of(counter, false);

    if (ask->critical && ask->charge > 0 && ask->charge > rn_sub(quota_remaining(counter, &room), room.reserve)) {
        quota->dipped = true;
        quota->dipped_at = now;
    }
    memset(&hold->quota, 0, sizeof hold->quota);
    hold->charge = ask->charge;
    hold->quota.unseen = quota->flight.charge;
    hold->quota.seen = rn_sub(rn_add(quota->used, quota->carried), quota->flight.charge);
    quota->newest_order = hold->order;
    quota_charge(counter, now, ask->charge);
    hold->quota.spent = quota->spent;
    hold->quota.returned = quota->returned;
    rn_flight_add(counter, hold);
}

/* Had it surely reached the provider when `other` was granted? */
static bool was_seen_by(const rn_counter *counter, const rn_hold *hold, const rn_hold *other)
{
    const ration_time arrived = rn_time_add(hold->granted_at, counter->limit->spec.quota.arrival_us);

    return (hold->quota.answered && other->order > hold->quota.answered_order) ||
           !rn_time_before(other->granted_at, arrived);
}

/*
 * What a lease gives back that others had seen when they were granted was no part of what they had not seen: for them
 * it counts as returned before their grant.
 */
static void returned_before(const rn_counter *counter, const rn_hold *hold, uint64_t amount)
{
    rn_hold *other = NULL;

    TAILQ_FOREACH_REVERSE(other, &counter->holds, rn_hold_list, next)
    {
        if (other->order <= hold->order || !was_seen_by(counter, hold, other))
            break;
        other->quota.returned += amount;
    }
}

/* Changes the window of the grant; nothing, if that is over. */
static void quota_settle(rn_counter *counter, ration_time now, rn_hold *hold, int64_t charge)
{
    const int64_t added = rn_sub(charge, hold->charge);

    rn_quota_advance(counter, now);
    if (added == 0)
        return;
    rn_flight_settle(counter, hold, added);
    hold->charge = charge;
    if (!rn_quota_owns(counter, hold))
        return;
    quota_charge(counter, hold->granted_at, added);
    if (added < 0)
        returned_before(counter, hold, (uint64_t)-added);
}

/* What has been spent stays spent; without a response it may even arrive yet. */
static void quota_give_back(rn_counter *counter, ration_time now, rn_hold *hold)
{
    rn_quota_advance(counter, now);
    rn_flight_end(counter, hold);
}

static ration_time quota_next_change(rn_counter *counter, ration_time now, const rn_ask *ask)
{
    rn_verdict verdict;

    quota_check(counter, now, ask, &verdict);
    if (verdict.fit == RN_FIT_NOW)
        return ration_time_of(RATION_NEVER_US);
    /* Nobody knows when the ledger writes; but a window that begins has a block of its own. */
    if (verdict.reason == RATION_REASON_STORE_UNAVAILABLE && !rn_quota_is_rolling(counter))
        return counter->u.quota->window.end;
    return verdict.at;
}

static void quota_describe(rn_counter *counter, ration_time now, ration_counter_report *out)
{
    rn_quota_advance(counter, now);

    const rn_quota *const quota = counter->u.quota;
    const rn_quota_state state = quota_state(counter, false);

    out->max = quota->max;
    out->usable = state.room.usable;
    out->reserve = state.room.reserve;
    out->used = rn_add(quota->used, quota->carried);
    out->external = quota->external;
    out->disagreement = quota->disagreement;
    out->extra = quota->extra;
    out->remaining = state.exhausted ? 0 : rn_max(state.remaining, 0);
    out->has_window = !rn_quota_is_rolling(counter);
    out->rolling_us = counter->limit->rule->window.rolling_us;
    out->strict = rn_limit_is_strict(counter->limit);
    out->mark = out->strict ? rn_add(out->used, quota->mark.left) : 0;
    if (out->has_window) {
        out->zone = counter->limit->rule->window.zone;
        out->window_start = quota->window.start;
        out->window_end = quota->window.end;
    }
}

static bool quota_is_fresh(rn_counter *counter, ration_time now)
{
    rn_quota_advance(counter, now);

    const rn_quota *const quota = counter->u.quota;
    const bool unused = quota->used == 0 && quota->carried == 0 && quota->flight.charge == 0 && quota->extra == 0;
    const bool untaught = !quota->exhausted && !quota->left_known && !quota->observed && !quota->dipped &&
                          quota->max == counter->limit->rule->max;

    /* What is left to a mark that goes further than a fresh one's may be forgotten: it is safe, and rare. */
    const bool unmarked =
        !rn_limit_is_strict(counter->limit) || (!quota->mark.given && quota->mark.left >= rn_quota_mark_block(counter));

    return unused && untaught && unmarked && (rn_quota_is_rolling(counter) || rn_window_is_fresh(counter));
}

const rn_kind rn_kind_quota = {
    .name = "quota",
    .reason = RATION_REASON_QUOTA_EXHAUSTED,
    .prepare = quota_prepare,
    .init = quota_init,
    .fini = quota_fini,
    .check = quota_check,
    .take = quota_take,
    .settle = quota_settle,
    .give_back = quota_give_back,
    .next_change = quota_next_change,
    .observe = rn_quota_observe,
    .describe = quota_describe,
    .reset = rn_quota_reset,
    .carry = rn_quota_carry,
    .carry_hold = rn_quota_carry_hold,
    .grant = rn_quota_grant,
    .is_fresh = quota_is_fresh,
    .save = rn_quota_save,
    .load = rn_quota_load,
    .lose = rn_quota_lose,
};
