/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_QUOTA_H
#define RN_CORE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/types.h>

#include "core/window.h"

/* A quota of a window: chapter 3, "quota" and "Header sync". Its members are for quota.c and its neighbours only. */

typedef struct rn_quota_spec {
    rn_calendar calendar;
    int64_t arrival_us;
} rn_quota_spec;

typedef struct rn_quota {
    ration_time start;
    ration_time end;
    int64_t used;
} rn_quota;

/* What a lease remembers of a quota. */
typedef struct rn_quota_hold {
    uint64_t window;
} rn_quota_hold;

#endif
