/* SPDX-License-Identifier: MIT */
/*
 * Limits of kind `concurrency`: so many micro-units may be held at once. Chapter 3, "concurrency".
 *
 * Nothing here changes by time. When a slot will be free is a guess from what the holders declared, and only as good as
 * their word: the ends are gone through in order, and if one of those needed has passed or was never declared, no time
 * is named. As an end that has passed comes before all others, one overrun lease is enough for that.
 *
 * The holds are in order of grants, not of ends, and sorting them would need memory. So the end that frees enough is
 * found by halving the span of the ends: a walk over the holds for each halving, and only where there is a choice.
 *
 * Invariant: `held` is the sum of the charges of the counter's holds.
 */
#include "core/limit.h"

#include "base/units.h"

static int slots_prepare(rn_limit *limit, ration_fault *fault)
{
    const ration_limit_rule *const rule = limit->rule;

    if (rule->max <= 0 || rule->max > RATION_UNITS_MAX)
        return rn_rule_fault(fault, "max", "a concurrency limit needs a max above zero");
    if (rule->counts != RATION_COUNTS_COST && rule->max < RATION_UNIT)
        return rn_rule_fault(fault, "max", "a limit that counts requests needs a max of at least one");
    return RATION_OK;
}

static int slots_init(rn_counter *counter, ration_time now)
{
    (void)now;
    counter->u.slots.held = 0;
    return RATION_OK;
}

static void slots_fini(rn_counter *counter)
{
    (void)counter;
}

/* What the leases that end up to `end` will have given back. */
static int64_t slots_freed_by(const rn_counter *counter, int64_t end_us)
{
    const rn_hold *hold = NULL;
    int64_t freed = 0;

    TAILQ_FOREACH (hold, &counter->holds, next) {
        if (hold->ends_at.us <= end_us)
            freed = rn_add(freed, hold->charge);
    }
    return freed;
}

/* When, by the declared ends in order, `needed` more will be free. */
static ration_time slots_when(const rn_counter *counter, ration_time now, int64_t needed)
{
    const ration_time unknown = {RATION_NEVER_US};
    const rn_hold *hold = NULL;
    int64_t first = RATION_NEVER_US;
    int64_t last = INT64_MIN;

    TAILQ_FOREACH (hold, &counter->holds, next) {
        if (hold->charge == 0 || !rn_time_known(hold->ends_at))
            continue;
        if (rn_time_before(hold->ends_at, now))
            return unknown;
        first = rn_min(first, hold->ends_at.us);
        last = rn_max(last, hold->ends_at.us);
    }
    if (first == RATION_NEVER_US || slots_freed_by(counter, last) < needed)
        return unknown;
    if (slots_freed_by(counter, first) >= needed)
        return ration_time_of(first);

    /* Too little by `first`, enough by `last`. */
    while (last - first > 1) {
        const int64_t middle = first + (last - first) / 2;

        if (slots_freed_by(counter, middle) >= needed) {
            last = middle;
        } else {
            first = middle;
        }
    }
    return ration_time_of(last);
}

static void slots_check(rn_counter *counter, ration_time now, const rn_ask *ask, rn_verdict *out)
{
    const int64_t max = counter->limit->rule->max;
    const int64_t left = rn_sub(max, counter->u.slots.held);
    rn_verdict verdict = {.fit = RN_FIT_NOW, .at = now, .available = rn_max(left, 0), .capacity = max};

    if (ask->charge > max) {
        verdict.fit = RN_FIT_REFUSED;
        verdict.reason = RATION_REASON_COST_EXCEEDS_LIMIT;
        verdict.at.us = RATION_NEVER_US;
    } else if (ask->ahead > 0 || ask->charge > left) {
        const int64_t needed = rn_sub(rn_add(ask->charge, ask->ahead), left);

        /* With room for all, those ahead wait for something else, and nobody knows how long. */
        verdict.fit = ask->charge > left ? RN_FIT_SHORT : RN_FIT_NOW;
        verdict.reason = RATION_REASON_CONCURRENCY_FULL;
        verdict.at = needed > 0 ? slots_when(counter, now, needed) : ration_time_of(RATION_NEVER_US);
        verdict.estimate = rn_time_known(verdict.at);
    }
    *out = verdict;
}

static void slots_take(rn_counter *counter, ration_time now, const rn_ask *ask, rn_hold *hold)
{
    (void)now;
    counter->u.slots.held = rn_add(counter->u.slots.held, ask->charge);
    hold->charge = ask->charge;
}

static void slots_settle(rn_counter *counter, ration_time now, rn_hold *hold, int64_t charge)
{
    (void)now;
    counter->u.slots.held = rn_add(counter->u.slots.held, rn_sub(charge, hold->charge));
    hold->charge = charge;
}

static void slots_give_back(rn_counter *counter, ration_time now, rn_hold *hold)
{
    (void)now;
    counter->u.slots.held = rn_sub(counter->u.slots.held, hold->charge);
}

/* Time alone frees nothing: a declared end is a promise, not a release. */
static ration_time slots_next_change(rn_counter *counter, ration_time now, const rn_ask *ask)
{
    (void)counter;
    (void)now;
    (void)ask;
    return ration_time_of(RATION_NEVER_US);
}

static void slots_observe(rn_counter *counter, ration_time now, rn_hold *hold, const rn_reply *reply)
{
    (void)counter;
    (void)now;
    (void)hold;
    (void)reply;
}

static void slots_describe(rn_counter *counter, ration_time now, ration_counter_report *out)
{
    (void)now;
    out->max = counter->limit->rule->max;
    out->held = counter->u.slots.held;
}

static void slots_carry(rn_counter *counter, ration_time now, rn_counter *from)
{
    (void)now;
    (void)from;
    counter->u.slots.held = 0;
}

static void slots_carry_hold(rn_counter *counter, const rn_counter *from, rn_hold *was, rn_hold *hold)
{
    (void)from;
    (void)was;
    counter->u.slots.held = rn_add(counter->u.slots.held, hold->charge);
}

/* Whatever is counted here is held. */
static void slots_reset(rn_counter *counter, ration_time now)
{
    (void)counter;
    (void)now;
}

static bool slots_is_fresh(rn_counter *counter, ration_time now)
{
    (void)now;
    return counter->u.slots.held == 0;
}

const rn_kind rn_kind_concurrency = {
    .name = "concurrency",
    .reason = RATION_REASON_CONCURRENCY_FULL,
    .prepare = slots_prepare,
    .init = slots_init,
    .fini = slots_fini,
    .check = slots_check,
    .take = slots_take,
    .settle = slots_settle,
    .give_back = slots_give_back,
    .next_change = slots_next_change,
    .observe = slots_observe,
    .describe = slots_describe,
    .reset = slots_reset,
    .carry = slots_carry,
    .carry_hold = slots_carry_hold,
    .is_fresh = slots_is_fresh,
};
