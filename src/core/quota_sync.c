/* SPDX-License-Identifier: MIT */
/*
 * What a quota learns from responses. Chapter 3, "Learned maximum", "Learned remaining", "Order" and "Reset".
 *
 * A provider's `remaining` is true for the instant at which it was written, which nobody knows. What is certain is
 * that the call that it answers has been counted, and so has whatever had been answered, or been on the way for
 * `arrival`, when that call was granted. All else - in flight then, granted since - is taken as not yet counted, and
 * subtracted. So with many in flight we may wait a little and never overspend.
 *
 * Observations count in the order of the grants: the answer to an earlier call says less than that to a later one,
 * whichever came first. Only a reset later than the end we know is looked at first, for it may tell of a window in
 * which all begins anew, and a 429 that leaves nothing ends the window for everybody.
 */
#include "core/quota_parts.h"

#include "base/units.h"
#include "core/sync.h"

/* What remains by the word of a response to `hold`. */
static int64_t left_after(const rn_counter *counter, const rn_hold *hold, int64_t told)
{
    const rn_quota *const quota = counter->u.quota;
    const int64_t since = (int64_t)(quota->spent - hold->quota.spent);
    const int64_t returned = (int64_t)(quota->returned - hold->quota.returned);
    const bool one_window = !rn_quota_is_rolling(counter) && quota->carried == 0;
    const int64_t uncounted = rn_add(hold->quota.unseen, since);

    /* Of a window whose leases all came later than this one, nothing is counted for certain. */
    if (one_window && !rn_quota_owns(counter, hold))
        return rn_sub(told, quota->used);
    return rn_sub(told, one_window ? rn_sub(uncounted, returned) : uncounted);
}

/* What others have spent of the quota, as far as the response tells. */
static int64_t external_by(const rn_counter *counter, const rn_hold *hold, int64_t told)
{
    const rn_quota *const quota = counter->u.quota;
    const bool in_window = rn_quota_owns(counter, hold) && hold->order > quota->moved_order;
    const int64_t seen = in_window ? rn_max(hold->quota.seen, 0) : 0;

    return rn_max(0, rn_sub(rn_sub(rn_sub(quota->max, told), seen), hold->charge));
}

static void learn_max(rn_counter *counter, const rn_told *told)
{
    rn_quota *const quota = counter->u.quota;

    if (told->max_is != RN_FIELD_OK)
        return;
    quota->max = told->max;
    quota->learned_max = counter->limit->rule->max_auto || told->max != counter->limit->rule->max;
}

static void learn_left(rn_counter *counter, const rn_hold *hold, int64_t told)
{
    rn_quota *const quota = counter->u.quota;

    quota->left = left_after(counter, hold, told);
    quota->left_known = true;
    quota->external = external_by(counter, hold, told);
}

/* When `hold` was granted, all that had left in the window before had arrived, and was counted there or here. */
static bool lets_go(const rn_counter *counter, const rn_hold *hold)
{
    const ration_time reached = rn_time_add(counter->u.quota->window.start, counter->limit->spec.quota.arrival_us);

    return rn_quota_owns(counter, hold) && !rn_time_before(hold->granted_at, reached);
}

static bool is_out_of_order(const rn_quota *quota, const rn_hold *hold)
{
    return quota->observed && hold->order < quota->used_order;
}

static void mark_used(rn_quota *quota, const rn_hold *hold)
{
    quota->observed = true;
    quota->used_order = hold->order;
}

static void observe_window(rn_counter *counter, ration_time now, const rn_hold *hold, const rn_told *told,
                           bool exhausts)
{
    rn_quota *const quota = counter->u.quota;
    const bool resets = told->reset_is == RN_FIELD_OK;
    const rn_reset reset = resets ? rn_window_classify(counter, now, told->reset) : RN_RESET_COMING;
    const bool coming = resets && reset == RN_RESET_COMING;

    if (!rn_quota_owns(counter, hold) && !coming) {
        learn_max(counter, told);
        return;
    }

    const bool later = coming && rn_time_before(quota->window.end, told->reset);

    if (resets && reset != RN_RESET_STALE && (later || !is_out_of_order(quota, hold)))
        rn_window_reset(counter, now, hold, told->reset);
    /* What remained before a reset that has passed says nothing about what remains after it. */
    const bool current = told->left_is == RN_FIELD_OK && (!resets || coming);

    const ration_time until = {coming && rn_time_before(told->reset, quota->window.end) ? told->reset.us
                                                                                        : RATION_NEVER_US};

    if (exhausts && current) {
        quota->window.exhausted_until = quota->exhausted ? rn_time_max(quota->window.exhausted_until, until) : until;
        quota->exhausted = true;
    }
    if (is_out_of_order(quota, hold))
        return;
    learn_max(counter, told);
    if (current) {
        learn_left(counter, hold, told->left);
        quota->window.left_until = until;
        quota->carried = lets_go(counter, hold) ? 0 : quota->carried;
    }
    if (current || coming || (told->max_is == RN_FIELD_OK && rn_quota_owns(counter, hold)))
        mark_used(quota, hold);
}

/*
 * A rolling window has no end: what is learned holds until the reset that came with it, else for a part of the window.
 */
static void observe_rolling(rn_counter *counter, ration_time now, const rn_hold *hold, const rn_told *told,
                            bool exhausts)
{
    rn_quota *const quota = counter->u.quota;
    const bool coming = told->reset_is == RN_FIELD_OK && rn_time_before(now, told->reset);
    const bool current = told->left_is == RN_FIELD_OK && (told->reset_is != RN_FIELD_OK || coming);
    const ration_time until =
        coming ? told->reset : rn_time_add(now, rn_div_ceil(counter->limit->spec.quota.length_us, 24));

    if (!rn_quota_owns(counter, hold)) {
        learn_max(counter, told);
        return;
    }
    if (exhausts) {
        quota->rolling.exhausted_until = quota->exhausted ? rn_time_max(quota->rolling.exhausted_until, until) : until;
        quota->exhausted = true;
    }
    if (is_out_of_order(quota, hold))
        return;
    learn_max(counter, told);
    if (current) {
        learn_left(counter, hold, told->left);
        quota->rolling.learned_until = until;
    }
    if (current || told->max_is == RN_FIELD_OK)
        mark_used(quota, hold);
}

/*
 * A reset that no window could have is as bad as one that cannot be read. What a rolling window has counted by now has
 * left it a window from now: that is its end, and a reset written as seconds, rounded up, lies a little behind it.
 */
static void reject_far_reset(const rn_counter *counter, ration_time now, rn_told *told)
{
    const int64_t length_us = counter->limit->spec.quota.length_us;
    const bool far = rn_quota_is_rolling(counter)
                         ? rn_time_before(rn_time_add(rn_time_add(now, length_us), length_us), told->reset)
                         : rn_window_classify(counter, now, told->reset) == RN_RESET_FAR;

    if (told->reset_is == RN_FIELD_OK && far)
        told->reset_is = RN_FIELD_BAD;
}

/* The provider's maximum is not the config's: counted once in a window, so that it can be told once. */
static void count_disagreement(rn_counter *counter, ration_time now, uint64_t *count)
{
    rn_quota *const quota = counter->u.quota;
    const ration_limit_rule *const rule = counter->limit->rule;
    const int64_t length_us = counter->limit->spec.quota.length_us;
    const ration_time last = quota->disagreed_at;
    const bool over = rn_quota_is_rolling(counter) ? !rn_time_before(now, rn_time_add(last, length_us))
                                                   : rn_time_before(last, quota->window.start);

    if (rule->max_auto || quota->max == rule->max || (quota->disagreement > 0 && !over))
        return;
    quota->disagreement = ++*count;
    quota->disagreed_at = now;
}

void rn_quota_observe(rn_counter *counter, ration_time now, rn_hold *hold, const rn_reply *reply)
{
    rn_told told;

    rn_quota_advance(counter, now);
    rn_flight_answer(counter, hold);
    if (reply->response == NULL)
        return;
    rn_sync_read(counter->limit->rule, counter->limit->spec.quota.length_us, reply->response, now, &told);
    reject_far_reset(counter, now, &told);
    if (reply->rejected != NULL) {
        reply->rejected[RATION_TOLD_LIMIT] += told.max_is == RN_FIELD_BAD;
        reply->rejected[RATION_TOLD_REMAINING] += told.left_is == RN_FIELD_BAD;
        reply->rejected[RATION_TOLD_RESET] += told.reset_is == RN_FIELD_BAD;
    }
    if (told.max_is != RN_FIELD_OK && told.left_is != RN_FIELD_OK && told.reset_is != RN_FIELD_OK)
        return;

    const bool exhausts = reply->rate_limited && told.left_is == RN_FIELD_OK && told.left == 0;
    const int64_t max = counter->u.quota->max;

    if (rn_quota_is_rolling(counter)) {
        observe_rolling(counter, now, hold, &told, exhausts);
    } else {
        observe_window(counter, now, hold, &told, exhausts);
    }
    if (reply->maxima != NULL)
        *reply->maxima += counter->u.quota->max != max;
    if (reply->disagreements != NULL && told.max_is == RN_FIELD_OK)
        count_disagreement(counter, now, reply->disagreements);
}
