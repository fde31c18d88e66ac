/* SPDX-License-Identifier: MIT */
/* What a provider's status means: lists of statuses, and what they are where a config says nothing. */
#include "serve/outcome.h"

bool rn_status_among(int status, const int *statuses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (statuses[i] == status)
            return true;
    }
    return false;
}

bool rn_status_says_wait(const ration_error_rule *errors, int status)
{
    return errors->rate_limited_count == 0 ? status == 429
                                           : rn_status_among(status, errors->rate_limited, errors->rate_limited_count);
}

bool rn_status_is_transient(const ration_error_rule *errors, int status)
{
    static const int usual[] = {500, 502, 503, 504};

    return errors->transient_count == 0 ? rn_status_among(status, usual, sizeof usual / sizeof usual[0])
                                        : rn_status_among(status, errors->transient, errors->transient_count);
}

ration_outcome rn_outcome_of(const ration_error_rule *errors, int status, bool rate_limited)
{
    const bool throttled = errors->throttled_count == 0
                               ? rate_limited
                               : rn_status_among(status, errors->throttled, errors->throttled_count);

    if (throttled)
        return RATION_OUTCOME_THROTTLED;
    const bool failed = errors->failure_count == 0 ? rn_status_is_transient(errors, status)
                                                   : rn_status_among(status, errors->failure, errors->failure_count);
    return failed ? RATION_OUTCOME_FAILURE : RATION_OUTCOME_SUCCESS;
}

bool rn_status_is_healthy(const ration_breaker_rule *breaker, int status)
{
    return breaker->check_expect_count == 0
               ? status >= 200 && status < 300
               : rn_status_among(status, breaker->check_expect, breaker->check_expect_count);
}
