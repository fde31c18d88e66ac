/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_COUNTER_H
#define TESTS_SUPPORT_COUNTER_H

/*
 * One counter of one limit without an engine: what the engine does around a kind, and no more. Leases are named by a
 * letter.
 */

#include "support/check.h"

#include "base/mem.h"
#include "core/limit.h"

#define SECOND_US INT64_C(1000000)
#define MINUTE_US (60 * SECOND_US)
#define HOUR_US (60 * MINUTE_US)
#define DAY_US (24 * HOUR_US)
#define LEASES 32

typedef struct lone {
    ration_limit_rule rule;
    rn_limit limit;
    rn_counter counter;
    uint64_t order;
    uint64_t rejected[RATION_TOLD_COUNT];
    ration_fault fault;
    rn_hold holds[LEASES];
    bool held[LEASES];
} lone;

/* Set up `rule` with all of the maximum and no reserve; change `limit` and `counter` after it where that matters. */
static inline int lone_prepare(lone *l, const ration_limit_rule *rule)
{
    memset(l, 0, sizeof *l);
    l->rule = *rule;
    l->limit.rule = &l->rule;
    l->limit.kind = rn_kind_of(rule->kind);
    l->limit.reserve = (ration_ratio){0, 1};
    l->counter.limit = &l->limit;
    l->counter.mem = rn_mem_default();
    l->counter.share = (ration_ratio){1, 1};
    l->counter.lost_at.us = RN_NEVER_LOST;
    TAILQ_INIT(&l->counter.holds);
    return l->limit.kind->prepare(&l->limit, &l->fault);
}

static inline void lone_init(lone *l, const ration_limit_rule *rule, int64_t now_us)
{
    CHECK_EQ(lone_prepare(l, rule), RATION_OK);
    CHECK_EQ(l->limit.kind->init(&l->counter, ration_time_of(now_us)), RATION_OK);
}

static inline void lone_fini(lone *l)
{
    l->limit.kind->fini(&l->counter);
}

static inline rn_hold *lone_hold(lone *l, char id)
{
    return &l->holds[(unsigned char)id % LEASES];
}

static inline rn_verdict lone_check(lone *l, int64_t now_us, const rn_ask *ask)
{
    rn_verdict verdict;

    l->limit.kind->check(&l->counter, ration_time_of(now_us), ask, &verdict);
    return verdict;
}

/* Take whatever `check` says. */
static inline void lone_force(lone *l, int64_t now_us, const rn_ask *ask, char id, int64_t hold_us)
{
    rn_hold *const hold = lone_hold(l, id);

    CHECK(!l->held[(unsigned char)id % LEASES]);
    memset(hold, 0, sizeof *hold);
    hold->counter = &l->counter;
    hold->granted_at.us = now_us;
    hold->ends_at.us = hold_us == RATION_UNSET ? RATION_NEVER_US : now_us + hold_us;
    hold->order = ++l->order;
    hold->retry = ask->retry;
    hold->critical = ask->critical;
    l->limit.kind->take(&l->counter, ration_time_of(now_us), ask, hold);
    TAILQ_INSERT_TAIL(&l->counter.holds, hold, next);
    l->held[(unsigned char)id % LEASES] = true;
}

/* Take if it fits; the verdict. */
static inline rn_verdict lone_take(lone *l, int64_t now_us, const rn_ask *ask, char id, int64_t hold_us)
{
    const rn_verdict verdict = lone_check(l, now_us, ask);

    if (verdict.fit == RN_FIT_NOW && ask->ahead == 0)
        lone_force(l, now_us, ask, id, hold_us);
    return verdict;
}

/* What came back for a lease; `response` NULL: it ended well without an observation. */
static inline void lone_observe(lone *l, int64_t now_us, char id, const ration_response *response, bool rate_limited)
{
    const rn_reply reply = {.response = response, .rate_limited = rate_limited, .rejected = l->rejected};

    l->limit.kind->observe(&l->counter, ration_time_of(now_us), lone_hold(l, id), &reply);
    lone_hold(l, id)->seen = true;
}

static inline void lone_settle(lone *l, int64_t now_us, char id, int64_t charge)
{
    l->limit.kind->settle(&l->counter, ration_time_of(now_us), lone_hold(l, id), charge);
}

/* End a lease; whether its response is known is told by `lone_observe` before. */
static inline void lone_end(lone *l, int64_t now_us, char id)
{
    CHECK(l->held[(unsigned char)id % LEASES]);
    l->limit.kind->give_back(&l->counter, ration_time_of(now_us), lone_hold(l, id));
    TAILQ_REMOVE(&l->counter.holds, lone_hold(l, id), next);
    l->held[(unsigned char)id % LEASES] = false;
}

static inline ration_counter_report lone_report(lone *l, int64_t now_us)
{
    ration_counter_report report = {0};

    l->limit.kind->describe(&l->counter, ration_time_of(now_us), &report);
    return report;
}

#endif
