/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_WEIGHT_H
#define RN_CORE_WEIGHT_H

#include "core/limit.h"

/*
 * How much a counter matters to somebody who can only look at some of them: ration_engine_report, `most`. Brings it up
 * to `now`, as describing it does. O(1).
 */
uint64_t rn_counter_weight(rn_counter *counter, ration_time now);

#endif
