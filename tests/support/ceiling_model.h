/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_CEILING_MODEL_H
#define TESTS_SUPPORT_CEILING_MODEL_H

/*
 * Chapter 2 as slowly and obviously as it can be written: everything is worked out from the list of leases whenever it
 * is asked for, lenders are found by looking at all tenants, deficits are added up microsecond by microsecond.
 */

#include "core/ceiling.h"

#define MODEL_TENANTS 5
#define MODEL_LEASES 24

typedef struct model_lease {
    bool live;
    uint32_t tenant;
    int64_t charge;
    int64_t ends_at;
    uint64_t serial;
    int64_t from[MODEL_TENANTS]; /* on loan from each */
    uint32_t lenders[MODEL_TENANTS];
    size_t lender_count; /* in the order in which they were drawn on */
} model_lease;

typedef struct model_tenant {
    int64_t guarantee, lendable;
    int64_t asked_at, used_at, cool_until;
    int64_t waiting, shorts, wait_most;
    bool wanting;
    int64_t want, refused_at, first_refused_at;
    bool reclaiming;
    int64_t reclaim_at, worst_us;
    uint64_t reclaims, granted;
    int64_t deficit; /* micro-units times microseconds */
} model_tenant;

typedef struct model {
    const ration_share_rule *rule;
    int64_t size;
    int64_t now;
    model_tenant tenants[MODEL_TENANTS];
    model_lease leases[MODEL_LEASES];
} model;

void model_init(model *m, const ration_share_rule *rule, int64_t now);
/* Time passes. */
void model_tick(model *m, int64_t now);
/* Other guarantees from now on. */
void model_resize(model *m, const ration_share_rule *rule, int64_t size);

int64_t model_own(const model *m, uint32_t tenant);
int64_t model_lent(const model *m, uint32_t tenant);
int64_t model_held(const model *m, uint32_t tenant);
int64_t model_held_by_all(const model *m);
bool model_is_idle(const model *m, uint32_t tenant, int64_t at);
bool model_may_lend(const model *m, uint32_t tenant, int64_t at);
/* What all others than `but` could lend at `at`, if nothing happened until then. */
int64_t model_pool(const model *m, uint32_t but, int64_t at);

ration_reason model_check(const model *m, const rn_ceiling_ask *ask, bool *hopeless);
/* When a refusal will have changed; `blocking` gets the serials of the leases in the way. */
int64_t model_when(const model *m, const rn_ceiling_ask *ask, ration_reason reason, uint64_t *blocking, size_t *count);

void model_take(model *m, const rn_ceiling_ask *ask, int64_t ends_at, uint64_t serial, int64_t left, size_t lease);
void model_settle(model *m, size_t lease, int64_t charge);
void model_give_back(model *m, size_t lease);
void model_asked(model *m, const rn_ceiling_ask *ask, ration_reason reason, bool is_short);
void model_wait(model *m, const rn_ceiling_ask *ask);
void model_short(model *m, const rn_ceiling_ask *ask);
void model_found(model *m, uint32_t tenant, ration_reason reason);
void model_leave(model *m, bool was_short, bool granted, uint32_t tenant);

#endif
