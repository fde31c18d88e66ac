/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_SLOTS_H
#define RN_CORE_SLOTS_H

#include <stdint.h>

/* Concurrency: micro-units held by the leases that have not ended. */
typedef struct rn_slots {
    int64_t held;
} rn_slots;

#endif
