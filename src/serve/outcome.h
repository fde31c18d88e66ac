/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_OUTCOME_H
#define RN_SERVE_OUTCOME_H

#include <ration/rules.h>
#include <ration/types.h>

/* What a provider's status means, by the rules of that provider. Pure. */

bool rn_status_among(int status, const int *statuses, size_t count);

/* It says "too many", as far as the status alone tells. */
bool rn_status_says_wait(const ration_error_rule *errors, int status);

/* It is one of `errors.transient`: "try again". */
bool rn_status_is_transient(const ration_error_rule *errors, int status);

/*
 * How a call ended whose response came to its end. `rate_limited`: the provider said "too many". The provider's
 * `outcome` lists, where there are any, come in the place of that and of `errors.transient`.
 */
ration_outcome rn_outcome_of(const ration_error_rule *errors, int status, bool rate_limited);

/* Whether a health check's response shows a healthy provider. Without a list: 200 to 299. */
bool rn_status_is_healthy(const ration_breaker_rule *breaker, int status);

#endif
