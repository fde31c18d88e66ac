/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_ANSWER_SHARE_H
#define RN_FLEET_ANSWER_SHARE_H

#include <hiredis/hiredis.h>

#include "core/route.h"
#include "fleet/call.h"

/* What scripts say of share limits; texts are the reply's. */

/* The numbers behind a refusal by the limit, as they stand in it; none where there are none. */
void rn_answer_facts_of_share(const redisReply *said, const rn_route_link *link, const rn_call_ask *ask,
                              ration_facts *out);
/* How many leases block what was refused with `guarantee_on_loan`, and the name of one of them. */
size_t rn_answer_blocking(const redisReply *reply, size_t index, ration_text *out);

/* A whole counter: the answer to rn_call_tenants. Micro-units. */
typedef struct rn_answer_share {
    int64_t size;
    int64_t held;
    int64_t draining; /* held above guarantees */
    size_t overrun_count;
    size_t tenant_count; /* by the rule in force, which may be another member's */
} rn_answer_share;

/* False: nobody has asked there for a day. */
bool rn_answer_ceiling(const redisReply *reply, rn_answer_share *out);
/* The name of a lease past its declared end, in order of these. */
ration_text rn_answer_overrun(const redisReply *reply, size_t index);
/* One of the tenants, in order of declaration; `target` and the shares are not told. False: there is none. */
bool rn_answer_tenant(const redisReply *reply, size_t index, ration_tenant_report *out, int64_t *weight);

#endif
