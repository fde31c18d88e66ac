/* SPDX-License-Identifier: MIT */
/*
 * The public door to one ceiling by itself. Chapter 2.
 *
 * Nobody waits here, so every refused attempt is an asking. Everything that may need memory (a lease, the slices of a
 * loan, the list of those that block) has it before anything changes.
 *
 * Leases live in chunks that never move, for the ceiling's trees point into them. A handle is index and generation; the
 * generation grows with each life, so one of an earlier life finds nothing, and a lease whose generation is used up is
 * never given out again.
 */
#include <ration/ceiling.h>

#include "base/arena.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/book_copy.h"
#include "core/ceiling.h"

#define CHUNK 256u

typedef struct lone_lease {
    rn_ceiling_hold hold;
    ration_lease handle;
    bool held;
    SLIST_ENTRY(lone_lease) next;
} lone_lease;
SLIST_HEAD(lone_lease_list, lone_lease);

/* A rule with all that it points to. A ceiling that is reweighted gets another one. */
typedef struct lone_rule {
    rn_arena arena;
    ration_limit_rule copy;
    rn_ceiling_spec spec;
} lone_rule;

struct ration_ceiling {
    ration_allocator mem;
    ration_counts counts;
    ration_time now;
    uint64_t serial;
    lone_rule *rule;
    rn_ceiling *ceiling;
    lone_lease **chunks;
    uint32_t lease_count; /* free ones too */
    struct lone_lease_list free;
    ration_lease *blocking;
    size_t blocking_count;
    size_t blocking_room;
    bool blocking_failed; /* no memory for all of them */
};

static const ration_facts no_facts = {
    .charge = RATION_UNSET,
    .available = RATION_UNSET,
    .capacity = RATION_UNSET,
    .guarantee = RATION_UNSET,
    .own = RATION_UNSET,
    .lent = RATION_UNSET,
    .pool = RATION_UNSET,
    .hold_us = RATION_UNSET,
    .horizon_us = RATION_UNSET,
};

static bool time_is_valid(ration_time t)
{
    return t.us >= -RATION_TIME_MAX_US && t.us <= RATION_TIME_MAX_US;
}

static void clock_advance(ration_ceiling *ceiling, ration_time now)
{
    ceiling->now = rn_time_max(ceiling->now, now);
}

/* ---- life ---- */

static void rule_free(const ration_allocator *mem, lone_rule *rule)
{
    if (rule == NULL)
        return;
    rn_ceiling_spec_fini(&rule->spec);
    rn_arena_fini(&rule->arena);
    rn_mem_free(mem, rule);
}

/* A copy, checked. */
static int rule_new(const ration_allocator *mem, const ration_share_rule *from, lone_rule **out, ration_fault *fault)
{
    const ration_limit_rule limit = {.kind = RATION_KIND_SHARE, .share = *from};

    if (from->follows != NULL)
        return rn_rule_fault(fault, "follows", "there is no other limit here to follow: call ration_ceiling_reweight");
    if (from->tenants == NULL && from->tenant_count > 0)
        return rn_rule_fault(fault, "tenants", "a count without a list");

    lone_rule *const rule = rn_mem_zalloc(mem, 1, sizeof *rule);

    if (rule == NULL)
        return RATION_ERR_NOMEM;
    rn_arena_init(&rule->arena, mem);

    int err = rn_copy_limit(&rule->arena, &limit, &rule->copy);

    if (err == RATION_OK)
        err = rn_ceiling_spec_init(&rule->spec, mem, &rule->copy.share, fault);
    if (err != RATION_OK) {
        rn_arena_fini(&rule->arena);
        rn_mem_free(mem, rule);
        return err;
    }
    *out = rule;
    return RATION_OK;
}

static int ceiling_init(ration_ceiling *ceiling, const ration_ceiling_options *options, ration_fault *fault)
{
    const int err = rule_new(&ceiling->mem, &options->rule, &ceiling->rule, fault);

    if (err != RATION_OK)
        return err;
    return rn_ceiling_new(&ceiling->mem, &ceiling->rule->spec, options->rule.ceiling, options->started_at,
                          &ceiling->ceiling);
}

int ration_ceiling_new(const ration_ceiling_options *options, ration_ceiling **out, ration_fault *fault)
{
    if (options == NULL || out == NULL || !time_is_valid(options->started_at))
        return RATION_ERR_INVALID;
    if (options->counts != RATION_COUNTS_REQUESTS && options->counts != RATION_COUNTS_COST) {
        return rn_rule_fault(fault, "counts",
                             "say requests or cost, there is no default: the two admit different calls, "
                             "and which is fair depends on what the ceiling protects");
    }

    const ration_allocator *const mem = options->allocator != NULL ? options->allocator : rn_mem_default();
    ration_ceiling *const ceiling = rn_mem_zalloc(mem, 1, sizeof *ceiling);

    if (ceiling == NULL)
        return RATION_ERR_NOMEM;
    ceiling->mem = *mem;
    ceiling->counts = options->counts;
    ceiling->now = options->started_at;
    SLIST_INIT(&ceiling->free);

    const int err = ceiling_init(ceiling, options, fault);

    if (err != RATION_OK) {
        ration_ceiling_free(ceiling);
        return err;
    }
    *out = ceiling;
    return RATION_OK;
}

void ration_ceiling_free(ration_ceiling *ceiling)
{
    if (ceiling == NULL)
        return;

    const ration_allocator mem = ceiling->mem;

    rn_ceiling_free(ceiling->ceiling);
    rule_free(&mem, ceiling->rule);
    for (uint32_t i = 0; i < ceiling->lease_count / CHUNK; i++)
        rn_mem_free(&mem, ceiling->chunks[i]);
    rn_mem_free(&mem, ceiling->chunks);
    rn_mem_free(&mem, ceiling->blocking);
    rn_mem_free(&mem, ceiling);
}

/* ---- leases ---- */

/* Room for one more lease. */
static int leases_reserve(ration_ceiling *ceiling)
{
    if (!SLIST_EMPTY(&ceiling->free))
        return RATION_OK;
    if (ceiling->lease_count > UINT32_MAX - CHUNK)
        return RATION_ERR_NOMEM;

    const size_t chunk_count = ceiling->lease_count / CHUNK;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): the members are pointers. */
    lone_lease **const chunks = rn_mem_resize(&ceiling->mem, ceiling->chunks, chunk_count + 1, sizeof *chunks);

    if (chunks == NULL)
        return RATION_ERR_NOMEM;
    ceiling->chunks = chunks;

    lone_lease *const chunk = rn_mem_zalloc(&ceiling->mem, CHUNK, sizeof *chunk);

    if (chunk == NULL)
        return RATION_ERR_NOMEM;
    ceiling->chunks[chunk_count] = chunk;

    /* Backwards, so that the smallest index is taken first. */
    for (uint32_t i = CHUNK; i-- > 0;) {
        chunk[i].handle.index = ceiling->lease_count + i;
        SLIST_INSERT_HEAD(&ceiling->free, &chunk[i], next);
    }
    ceiling->lease_count += CHUNK;
    return RATION_OK;
}

static lone_lease *lease_take(ration_ceiling *ceiling)
{
    lone_lease *const lease = SLIST_FIRST(&ceiling->free);

    SLIST_REMOVE_HEAD(&ceiling->free, next);
    lease->handle.generation++;
    lease->held = true;
    return lease;
}

/* NULL: not one that is held. */
static lone_lease *lease_find(const ration_ceiling *ceiling, ration_lease handle)
{
    if (handle.index >= ceiling->lease_count)
        return NULL;

    lone_lease *const lease = &ceiling->chunks[handle.index / CHUNK][handle.index % CHUNK];

    return lease->held && lease->handle.generation == handle.generation ? lease : NULL;
}

int ration_ceiling_release(ration_ceiling *ceiling, ration_time now, ration_lease handle)
{
    if (ceiling == NULL || !time_is_valid(now))
        return RATION_ERR_INVALID;

    lone_lease *const lease = lease_find(ceiling, handle);

    if (lease == NULL)
        return RATION_ERR_UNKNOWN;
    clock_advance(ceiling, now);
    rn_ceiling_give_back(ceiling->ceiling, ceiling->now, &lease->hold);
    lease->held = false;
    if (lease->handle.generation < UINT32_MAX)
        SLIST_INSERT_HEAD(&ceiling->free, lease, next);
    return RATION_OK;
}

/* ---- asking ---- */

static bool blocking_grow(ration_ceiling *ceiling)
{
    const size_t room = ceiling->blocking_room < SIZE_MAX / 2 ? 2 * ceiling->blocking_room + 8 : SIZE_MAX;
    ration_lease *const grown = rn_mem_resize(&ceiling->mem, ceiling->blocking, room, sizeof *grown);

    if (grown == NULL)
        return false;
    ceiling->blocking = grown;
    ceiling->blocking_room = room;
    return true;
}

static void blocking_add(void *ctx, rn_ceiling_hold *hold)
{
    ration_ceiling *const ceiling = ctx;

    if (ceiling->blocking_count == ceiling->blocking_room && !blocking_grow(ceiling)) {
        ceiling->blocking_failed = true;
        return;
    }
    ceiling->blocking[ceiling->blocking_count++] = ((const lone_lease *)(const void *)hold)->handle;
}

static void decision_grant(ration_ceiling *ceiling, const rn_ceiling_ask *ask, ration_decision *out)
{
    lone_lease *const lease = lease_take(ceiling);

    rn_ceiling_take(ceiling->ceiling, ceiling->now, ask, out->serial, 0, &lease->hold);
    out->result = RATION_GRANTED;
    out->lease = lease->handle;
}

static int decision_refuse(ration_ceiling *ceiling, const rn_ceiling_ask *ask, ration_reason reason,
                           ration_decision *out)
{
    rn_ceiling_when when = {.blocking = blocking_add, .ctx = ceiling};

    ceiling->blocking_count = 0;
    ceiling->blocking_failed = false;
    rn_ceiling_when_free(ceiling->ceiling, ceiling->now, ask, reason, &when);
    if (ceiling->blocking_failed)
        return RATION_ERR_NOMEM;
    out->reason = reason;
    out->retry_at = when.at;
    out->estimate = rn_time_known(when.at);
    out->blocking = ceiling->blocking_count > 0 ? ceiling->blocking : NULL;
    out->blocking_count = ceiling->blocking_count;
    rn_ceiling_facts(ceiling->ceiling, ceiling->now, ask, &out->facts);
    rn_ceiling_asked(ceiling->ceiling, ceiling->now, ask, reason, reason != RATION_REASON_COST_EXCEEDS_LIMIT);
    rn_ceiling_refused(ceiling->ceiling, ask->tenant, reason);
    return RATION_OK;
}

static int decide(ration_ceiling *ceiling, const rn_ceiling_ask *ask, ration_decision *out)
{
    rn_ceiling_verdict verdict;

    if (leases_reserve(ceiling) != RATION_OK)
        return RATION_ERR_NOMEM;
    rn_ceiling_check(ceiling->ceiling, ceiling->now, ask, &verdict);
    if (verdict.nomem)
        return RATION_ERR_NOMEM;
    if (verdict.reason != RATION_REASON_NONE)
        return decision_refuse(ceiling, ask, verdict.reason, out);
    decision_grant(ceiling, ask, out);
    return RATION_OK;
}

static bool ask_is_valid(ration_time now, ration_text tenant, int64_t cost, int64_t hold_us)
{
    return time_is_valid(now) && (tenant.data != NULL || tenant.size == 0) && cost >= 0 && cost <= RATION_UNITS_MAX &&
           (hold_us == RATION_UNSET || hold_us == RATION_FOREVER_US || (hold_us >= 0 && hold_us <= RATION_TIME_MAX_US));
}

int ration_ceiling_acquire(ration_ceiling *ceiling, ration_time now, ration_text tenant, int64_t cost, int64_t hold_us,
                           ration_decision *out)
{
    if (ceiling == NULL || out == NULL || !ask_is_valid(now, tenant, cost, hold_us))
        return RATION_ERR_INVALID;
    clock_advance(ceiling, now);

    const rn_ceiling_ask ask = {
        .tenant = rn_ceiling_spec_find(&ceiling->rule->spec, tenant),
        .charge = ceiling->counts == RATION_COUNTS_COST ? cost : RATION_UNIT,
        .cost = cost,
        .hold_us = hold_us,
    };
    ration_decision decision = {
        .result = RATION_REFUSED,
        .serial = ceiling->serial + 1,
        .at = ceiling->now,
        .retry_at = {RATION_NEVER_US},
        .facts = no_facts,
    };
    int err = RATION_OK;

    if (ask.tenant == RN_TENANT_NONE) {
        decision.reason = RATION_REASON_UNKNOWN_TENANT;
    } else {
        err = decide(ceiling, &ask, &decision);
    }
    if (err != RATION_OK)
        return err;
    ceiling->serial++;
    *out = decision;
    return RATION_OK;
}

/* ---- other weights, reports ---- */

int ration_ceiling_reweight(ration_ceiling *ceiling, ration_time now, const ration_share_rule *rule,
                            ration_fault *fault)
{
    lone_rule *renewed = NULL;

    if (ceiling == NULL || rule == NULL || !time_is_valid(now))
        return RATION_ERR_INVALID;

    int err = rule_new(&ceiling->mem, rule, &renewed, fault);

    if (err != RATION_OK)
        return err;
    clock_advance(ceiling, now);
    err = rn_ceiling_reweight(ceiling->ceiling, ceiling->now, &renewed->spec, rule->ceiling);
    if (err != RATION_OK) {
        rule_free(&ceiling->mem, renewed);
        return rn_rule_fault(fault, "tenants", "a reweighted ceiling keeps its tenants, in the same order");
    }
    rule_free(&ceiling->mem, ceiling->rule);
    ceiling->rule = renewed;
    return RATION_OK;
}

int ration_ceiling_stats(ration_ceiling *ceiling, ration_time now, const ration_reporter *reporter)
{
    ration_counter_report report = {.kind = RATION_KIND_SHARE};

    if (ceiling == NULL || reporter == NULL || !time_is_valid(now))
        return RATION_ERR_INVALID;
    clock_advance(ceiling, now);

    const int err = rn_ceiling_stats(ceiling->ceiling, ceiling->now, &report);

    if (err == RATION_OK && reporter->counter != NULL)
        reporter->counter(reporter->ctx, &report);
    return err;
}

static int report_shares(ration_ceiling *ceiling, ration_time now, const ration_reporter *reporter)
{
    ration_share_report report = {.provider = NULL};

    if (ceiling == NULL || reporter == NULL || !time_is_valid(now))
        return RATION_ERR_INVALID;
    clock_advance(ceiling, now);

    const int err = rn_ceiling_shares(ceiling->ceiling, ceiling->now, &report);

    if (err == RATION_OK && reporter->share != NULL)
        reporter->share(reporter->ctx, &report);
    return err;
}

/* One report has both; its readers are told which members they are meant for. */
int ration_ceiling_allocation(ration_ceiling *ceiling, ration_time now, const ration_reporter *reporter)
{
    return report_shares(ceiling, now, reporter);
}

int ration_ceiling_fairness(ration_ceiling *ceiling, ration_time now, const ration_reporter *reporter)
{
    return report_shares(ceiling, now, reporter);
}
