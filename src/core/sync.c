/* SPDX-License-Identifier: MIT */
/*
 * Reading what a response tells about a quota: from the fields that the rule names, then from the standard ones.
 *
 * Each of the three values stands for itself: a bad one spoils no other. Whether a value makes sense for the quota as
 * it is (a reset too far away, an answer out of order) is decided by quota_sync.c.
 */
#include "core/sync.h"

static rn_field read_count(const ration_response *response, const char *name, int64_t least, int64_t *out)
{
    ration_text value = {0};
    int64_t count = 0;
    const rn_field found = rn_field_find(response, name, &value);

    if (found != RN_FIELD_OK)
        return found;
    if (rn_field_count(value, &count) != RN_FIELD_OK || count < least)
        return RN_FIELD_BAD;
    *out = count;
    return RN_FIELD_OK;
}

static rn_field read_reset(const ration_response *response, const ration_sync *sync, ration_time now, ration_time *out)
{
    ration_text value = {0};
    const rn_field found = rn_field_find(response, sync->reset_header, &value);

    return found == RN_FIELD_OK ? rn_field_reset(value, sync->reset_format, now, out) : found;
}

void rn_sync_read(const ration_limit_rule *rule, int64_t window_us, const ration_response *response, ration_time now,
                  rn_told *out)
{
    rn_told told = {0};
    rn_told standard = {0};

    told.max_is = read_count(response, rule->sync.limit_header, 1, &told.max);
    told.left_is = read_count(response, rule->sync.remaining_header, 0, &told.left);
    told.reset_is = read_reset(response, &rule->sync, now, &told.reset);
    if (rule->sync.standard)
        rn_sync_standard(rule, window_us, response, now, &standard);
    if (told.max_is == RN_FIELD_ABSENT) {
        told.max_is = standard.max_is;
        told.max = standard.max;
    }
    if (told.left_is == RN_FIELD_ABSENT) {
        told.left_is = standard.left_is;
        told.left = standard.left;
    }
    if (told.reset_is == RN_FIELD_ABSENT) {
        told.reset_is = standard.reset_is;
        told.reset = standard.reset;
    }
    *out = told;
}
