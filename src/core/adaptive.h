/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_ADAPTIVE_H
#define RN_CORE_ADAPTIVE_H

#include "core/aimd.h"

/* The limit kind `adaptive`: AIMD and classes behind the doors of a limit. */

typedef struct rn_adaptive_spec {
    rn_aimd_spec aimd;
    int64_t most[]; /* by lane: the largest charge that can ever be granted */
} rn_adaptive_spec;

/* What a class does, where idle ones lend. */
typedef struct rn_class_use {
    ration_time last_activity;
    uint64_t waiting;
} rn_class_use;

typedef struct rn_adaptive {
    rn_aimd aimd;
    rn_class_use *use; /* by lane; NULL: nothing is lent */
    rn_class_held *held;
} rn_adaptive;

struct rn_counter;

/* The classes as reports tell of them: one for each that the limit declares, at most RN_CLASSES_MAX. */
#define RN_CLASSES_MAX 64
void rn_adaptive_classes(const struct rn_counter *counter, ration_class_report *out);

#endif
