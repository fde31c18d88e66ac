/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_FIGURES_H
#define RN_FLEET_FIGURES_H

#include <hiredis/hiredis.h>

#include "core/engine.h"
#include "core/standing.h"
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

/* What has happened since they were told; instants of the store's clock. */
typedef struct rn_figures_since {
    ration_time at; /* they were told then */
    ration_time now;
    int64_t spent; /* micro-units that are known to have been taken since */
} rn_figures_since;

#define RN_FIGURES_OLD_US INT64_C(15000000) /* an idle member asks for them each tenth second */

/* Where the limit stands for a call that takes `charge`, above 0. False: it is of no such kind, or they are older than
 * that, or the window that they tell of has ended. */
bool rn_figures_standing(const rn_figures *figures, const rn_limit *limit, const rn_figures_since *since,
                         int64_t charge, rn_standing *out);

/* As a report tells it; `classes` has room for RN_CLASSES_MAX, and `out` borrows it. */
void rn_figures_report(const rn_figures *figures, const rn_limit *limit, ration_text key, ration_class_report *classes,
                       ration_counter_report *out);

#endif
