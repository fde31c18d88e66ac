/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_FIGURES_H
#define RN_FLEET_FIGURES_H

#include <hiredis/hiredis.h>

#include "core/engine.h"
#include "fleet/call.h"

/* What a counter has told of itself: from inspect.lua's answer to a report's row. */

#define RN_FIGURES_NUMBERS 9

typedef struct rn_figures {
    bool exists; /* it has a state in the store */
    bool paused;
    uint64_t waiting;
    ration_time penalty_until; /* the store's clock; RATION_NEVER_US: no penalty runs */
    uint32_t doublings;
    int64_t numbers[RN_FIGURES_NUMBERS]; /* of its kind, in the script's order */
    int64_t held[RN_CLASSES_MAX];        /* adaptive: by class of the rules here */
} rn_figures;

/* What the answer says of the counter of that place in the call. False: nothing, or nothing that can be read. */
bool rn_figures_read(const redisReply *reply, size_t index, const rn_limit *limit, rn_figures *out);

/* As a report tells it; `classes` has room for RN_CLASSES_MAX, and `out` borrows it. */
void rn_figures_report(const rn_figures *figures, const rn_limit *limit, ration_text key, ration_class_report *classes,
                       ration_counter_report *out);

#endif
