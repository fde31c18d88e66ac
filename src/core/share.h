/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_SHARE_H
#define RN_CORE_SHARE_H

#include "core/ceiling.h"

/* The limit kind `share`: a ceiling behind the doors of a limit. What only a ceiling has is asked for here. */

struct rn_counter;
struct rn_limit;
struct rn_ask;

typedef struct rn_share_spec {
    rn_ceiling_spec ceiling;
    int64_t largest; /* that the ceiling can ever be; what is above it fits never */
} rn_share_spec;

/* See the functions of the same names in ceiling.h. */
uint32_t rn_share_touched(struct rn_counter *counter);
int64_t rn_share_pool(struct rn_counter *counter, ration_time now);
int64_t rn_share_need(struct rn_counter *counter, const struct rn_ask *ask);
ration_time rn_share_pool_change(struct rn_counter *counter, ration_time now);
void rn_share_facts(struct rn_counter *counter, ration_time now, const struct rn_ask *ask, ration_facts *out);
/* The holds that block the request, in order of their ends. */
void rn_share_blocking(struct rn_counter *counter, ration_time now, const struct rn_ask *ask,
                       void (*blocking)(void *ctx, rn_ceiling_hold *hold), void *ctx);
int rn_share_report(struct rn_counter *counter, ration_time now, ration_share_report *out);
/* The ceiling that it follows stands at `size` now. */
void rn_share_resize(struct rn_counter *counter, ration_time now, int64_t size);
/* The weight that the limit gives a tenant; 0: it does not declare it. */
int64_t rn_share_weight(const struct rn_limit *limit, ration_text tenant);

#endif
