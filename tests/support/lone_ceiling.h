/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_LONE_CEILING_H
#define TESTS_SUPPORT_LONE_CEILING_H

/*
 * One ceiling without an engine: what the engine does around it, and no more. Tenants are numbers, leases letters;
 * units are micro-units, times microseconds.
 */

#include "support/check.h"

#include "base/mem.h"
#include "core/ceiling.h"

#define LONE_HOLDS 64

typedef struct lone_ceiling {
    ration_share_rule rule;
    rn_ceiling_spec spec;
    rn_ceiling *c;
    rn_ceiling_hold holds[LONE_HOLDS];
    uint64_t serial;
    char blocking[LONE_HOLDS + 1]; /* of the last refusal */
    int64_t retry_us;              /* of the last refusal; -1: not known */
} lone_ceiling;

static const ration_tenant_share lone_tenants[] = {
    {"a", 1, {0, 0}}, {"b", 1, {0, 0}}, {"c", 1, {0, 0}}, {"d", 1, {0, 0}}};

/* `count` tenants of weight 1 under a ceiling of 100, horizon 100, idle after 200. Change it before `lone_init`. */
static inline ration_share_rule lone_rule(size_t count)
{
    return (ration_share_rule){
        .ceiling = 100,
        .tenants = lone_tenants,
        .tenant_count = count,
        .reclaim_horizon_us = 100,
        .idle_after_us = 200,
    };
}

/* Everybody has been quiet for long at 0. */
static inline void lone_init(lone_ceiling *l, const ration_share_rule *rule)
{
    memset(l, 0, sizeof *l);
    l->rule = *rule;
    CHECK_EQ(rn_ceiling_spec_init(&l->spec, rn_mem_default(), &l->rule, NULL), RATION_OK);
    CHECK_EQ(rn_ceiling_new(rn_mem_default(), &l->spec, rule->ceiling, ration_time_of(-1000), &l->c), RATION_OK);
}

static inline void lone_fini(lone_ceiling *l)
{
    rn_ceiling_free(l->c);
    rn_ceiling_spec_fini(&l->spec);
}

static inline rn_ceiling_hold *lone_hold(lone_ceiling *l, char id)
{
    return &l->holds[(unsigned char)id % LONE_HOLDS];
}

static inline rn_ceiling_ask lone_ask(uint32_t tenant, int64_t charge, int64_t hold_us)
{
    return (rn_ceiling_ask){.tenant = tenant, .charge = charge, .cost = charge, .hold_us = hold_us};
}

static inline void lone_name(void *ctx, rn_ceiling_hold *hold)
{
    lone_ceiling *const l = (lone_ceiling *)ctx;
    const size_t used = strlen(l->blocking);
    const ptrdiff_t at = hold - l->holds;

    /* Letters of both cases have a place of their own among 64. */
    l->blocking[used] = (char)(at + 64);
    l->blocking[used + 1] = '\0';
}

/* The reason of a refusal, with its time and whom it names; RATION_REASON_NONE: it would be granted. */
static inline ration_reason lone_check(lone_ceiling *l, int64_t at_us, uint32_t tenant, int64_t charge, int64_t hold_us)
{
    const rn_ceiling_ask ask = lone_ask(tenant, charge, hold_us);
    const ration_time now = ration_time_of(at_us);
    rn_ceiling_when when = {.blocking = lone_name, .ctx = l};
    rn_ceiling_verdict verdict;

    rn_ceiling_check(l->c, now, &ask, &verdict);
    CHECK(!verdict.nomem);
    l->blocking[0] = '\0';
    rn_ceiling_when_free(l->c, now, &ask, verdict.reason, &when);
    l->retry_us = when.at.us == RATION_NEVER_US ? -1 : when.at.us - at_us;
    return verdict.reason;
}

/* Take, whatever `check` says. */
static inline void lone_take(lone_ceiling *l, int64_t at_us, char id, rn_ceiling_ask ask, int64_t left)
{
    (void)lone_check(l, at_us, ask.tenant, ask.charge, ask.hold_us);
    rn_ceiling_take(l->c, ration_time_of(at_us), &ask, ++l->serial, left, lone_hold(l, id));
}

/* Granted, or it has asked. */
static inline ration_reason lone_acquire(lone_ceiling *l, int64_t at_us, char id, uint32_t tenant, int64_t charge,
                                         int64_t hold_us)
{
    const rn_ceiling_ask ask = lone_ask(tenant, charge, hold_us);
    const ration_reason reason = lone_check(l, at_us, tenant, charge, hold_us);

    if (reason == RATION_REASON_NONE) {
        lone_take(l, at_us, id, ask, 0);
    } else {
        rn_ceiling_asked(l->c, ration_time_of(at_us), &ask, reason, true);
    }
    return reason;
}

static inline void lone_end(lone_ceiling *l, int64_t at_us, char id)
{
    rn_ceiling_give_back(l->c, ration_time_of(at_us), lone_hold(l, id));
}

/* It waits, and is short of this ceiling. */
static inline void lone_wait(lone_ceiling *l, int64_t at_us, uint32_t tenant, int64_t charge)
{
    const rn_ceiling_ask ask = lone_ask(tenant, charge, RATION_UNSET);

    rn_ceiling_wait(l->c, ration_time_of(at_us), &ask);
    rn_ceiling_short(l->c, ration_time_of(at_us), &ask);
}

static inline void lone_leave(lone_ceiling *l, int64_t at_us, uint32_t tenant, int64_t charge, bool granted)
{
    const rn_ceiling_ask ask = lone_ask(tenant, charge, RATION_UNSET);

    rn_ceiling_leave(l->c, ration_time_of(at_us), &ask, true, granted);
}

static inline ration_counter_report lone_stats(lone_ceiling *l, int64_t at_us)
{
    ration_counter_report report = {.max = 0};

    CHECK_EQ(rn_ceiling_stats(l->c, ration_time_of(at_us), &report), RATION_OK);
    return report;
}

static inline ration_tenant_report lone_row(lone_ceiling *l, int64_t at_us, uint32_t tenant)
{
    return lone_stats(l, at_us).tenants[tenant];
}

#endif
