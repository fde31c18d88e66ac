/* SPDX-License-Identifier: MIT */
/*
 * Marks: what lets a count outlive a process that is killed. Chapter 3, "Ledger", `durability: strict`.
 *
 * A record of a strict quota says how far `used` may go before another record is durable: its mark, a block ahead.
 * Whoever loads records after an unclean stop counts up to the mark, and one block for a window that no record is of.
 * So the rule that holds at every instant is: what would be counted, were the process to die now, is no less than what
 * has been granted, and at most a block more.
 *
 * From the moment at which a record is given out until all are known to be durable it may be either it that will be
 * found, or the one before it: grants go no further than both allow. `left` is what is left to that; `next` to the mark
 * that was given out last, which is all that counts once it is kept.
 *
 * A block is 1 % of the maximum as it is known, that of a window without a record 1 % of the declared one, for a
 * maximum that was learned may be lost with its record. A charge that is larger than a block makes the next mark go as
 * far as that charge.
 *
 * What leaves a rolling window leaves the count and the record alike, so it changes nothing here; what a settlement
 * gives back would come back when its bucket leaves the record, so it is no room to grant in.
 */
#include "core/quota_parts.h"

#include "base/units.h"

/* 1 % of the maximum, at least a unit. */
static int64_t block_of(const ration_limit_rule *rule, int64_t max)
{
    const int64_t percent = rn_div_ceil(max, 100);
    const int64_t whole = rule->counts == RATION_COUNTS_COST ? percent : rn_whole_units(percent + RATION_UNIT - 1);

    return rn_max(whole, RATION_UNIT);
}

int64_t rn_quota_mark_block(const rn_counter *counter)
{
    return block_of(counter->limit->rule, counter->limit->rule->max);
}

void rn_quota_mark_begin(rn_counter *counter)
{
    rn_quota *const quota = counter->u.quota;

    if (!rn_limit_is_strict(counter->limit))
        return;
    quota->mark.left = rn_sub(rn_quota_mark_block(counter), rn_add(quota->used, quota->carried));
    quota->mark.given = false;
}

bool rn_quota_mark_covers(const rn_counter *counter, int64_t charge)
{
    return !rn_limit_is_strict(counter->limit) || charge == 0 || charge <= counter->u.quota->mark.left;
}

void rn_quota_mark_charge(rn_counter *counter, int64_t amount)
{
    rn_quota_mark *const mark = &counter->u.quota->mark;

    if (!rn_limit_is_strict(counter->limit) || (amount < 0 && rn_quota_is_rolling(counter)))
        return;
    mark->left = rn_sub(mark->left, amount);
    mark->next = rn_sub(mark->next, amount);
}

/* What will be left when all that was given out is durable. */
static int64_t left_then(const rn_quota_mark *mark)
{
    return mark->given ? mark->next : mark->left;
}

void rn_quota_want(rn_counter *counter, int64_t charge)
{
    rn_quota_mark *const mark = &counter->u.quota->mark;

    if (charge > left_then(mark))
        mark->wanted = rn_max(mark->wanted, charge);
}

int64_t rn_quota_mark_give(rn_counter *counter)
{
    rn_quota *const quota = counter->u.quota;
    rn_quota_mark *const mark = &quota->mark;
    const int64_t used = rn_min(quota->used, RATION_UNITS_MAX);

    if (!rn_limit_is_strict(counter->limit))
        return RATION_UNSET;
    mark->next = rn_max(block_of(counter->limit->rule, quota->max), mark->wanted);
    mark->next = rn_min(mark->next, RATION_UNITS_MAX - used);
    mark->left = rn_min(mark->left, mark->next);
    mark->given = true;
    mark->wanted = 0;
    return used + mark->next;
}

void rn_quota_kept(rn_counter *counter, ration_time now)
{
    rn_quota_mark *const mark = &counter->u.quota->mark;

    rn_quota_advance(counter, now);
    if (mark->given)
        mark->left = mark->next;
    mark->given = false;
}

ration_need rn_quota_need(const rn_counter *counter, int64_t waiting)
{
    const rn_quota_mark *const mark = &counter->u.quota->mark;
    const int64_t left = left_then(mark);

    /* A settlement that is past what is durable may not be told, whether it has been given out or not. */
    if (mark->left < 0 || left < 0 || waiting > left)
        return RATION_NEED_SAVE_NOW;
    if (mark->wanted > left || left <= block_of(counter->limit->rule, counter->u.quota->max) / 2)
        return RATION_NEED_SAVE;
    return RATION_NEED_NOTHING;
}

int64_t rn_quota_mark_ahead(const ration_quota_record *record)
{
    return record->mark == RATION_UNSET ? 0 : rn_max(0, rn_sub(record->mark, record->used));
}
