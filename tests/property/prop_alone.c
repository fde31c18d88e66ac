/* SPDX-License-Identifier: MIT */
/*
 * A ceiling by itself and an engine whose only limit is that ceiling, asked the same by callers who do not wait, say
 * the same: verdicts, reasons, times, who is in the way, the numbers behind it, and every number of the reports.
 *
 * One rule differs on purpose and is left out: a charge above the ceiling is an attempt by itself, and in an engine no
 * asking (chapter 2, "Asking").
 */
#include "support/check.h"
#include "support/property.h"

#include <ration/ceiling.h>

#define UNIT RATION_UNIT
#define CALLS 120
#define TENANTS 4

typedef struct pair {
    choices *c;
    ration_tenant_share tenants[TENANTS];
    ration_limit_rule limit;
    ration_ceiling *alone;
    ration_engine *engine;
    struct {
        ration_lease alone, engine;
        bool held;
    } leases[CALLS];
    size_t count;
    ration_time now;
    bool by_cost;
} pair;

static const char *const names[TENANTS + 1] = {"a", "b", "c", "d", "nobody"};

static void rule_draw(pair *p)
{
    static const ration_ratio parts[] = {{0, 0}, {1, 2}, {0, 1}};
    choices *const c = p->c;
    const size_t count = (size_t)choose_from(c, 1, TENANTS);

    for (size_t i = 0; i < count; i++)
        p->tenants[i] = (ration_tenant_share){names[i], choose_from(c, 1, 5), parts[choose(c, 4) / 2]};
    p->by_cost = choose(c, 1) == 0;
    p->limit = (ration_limit_rule){
        .name = "fair",
        .kind = RATION_KIND_SHARE,
        .counts = p->by_cost ? RATION_COUNTS_COST : RATION_COUNTS_REQUESTS,
        .share = {.ceiling = choose_from(c, 1, 12) * UNIT,
                  .tenants = p->tenants,
                  .tenant_count = count,
                  .reclaim_horizon_us = choose_from(c, 1, 50),
                  .unknown_tenant = choose(c, 1) != 0 ? "a" : NULL,
                  .freeze_wanted = choose(c, 3) == 3,
                  .cooldown_us = choose(c, 3) == 3 ? choose_from(c, 1, 200) : 0,
                  .lend = parts[choose(c, 4) / 2]},
    };
    p->limit.share.idle_after_us = p->limit.share.reclaim_horizon_us + choose_from(c, 1, 50);
}

static void pair_init(pair *p)
{
    const ration_ceiling_options options = {
        .rule = p->limit.share, .counts = p->limit.counts, .started_at = p->now, .allocator = NULL};
    const ration_provider_rule provider = {.name = "p", .limits = &p->limit, .limit_count = 1};
    const ration_account_rule account = {.name = "acc", .provider = "p"};
    const ration_rules rules = {.providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options engine = {.rules = &rules};

    HOLDS(p->c, ration_ceiling_new(&options, &p->alone, NULL) == RATION_OK);
    HOLDS(p->c, ration_engine_new(&engine, p->now, &p->engine, NULL) == RATION_OK);
}

static bool same_lease(ration_lease a, ration_lease b)
{
    return a.index == b.index && a.generation == b.generation;
}

static void facts_are(const pair *p, const ration_facts *a, const ration_facts *b)
{
    HOLDS(p->c, a->charge == b->charge && a->available == b->available && a->capacity == b->capacity);
    HOLDS(p->c, a->guarantee == b->guarantee && a->own == b->own && a->lent == b->lent && a->pool == b->pool);
    HOLDS(p->c, a->hold_us == b->hold_us && a->horizon_us == b->horizon_us);
    HOLDS(p->c, a->tenant.size == b->tenant.size && memcmp(a->tenant.data, b->tenant.data, a->tenant.size) == 0);
}

static void blocking_is(const pair *p, const ration_decision *alone, const ration_decision *engine)
{
    HOLDS(p->c, alone->blocking_count == engine->blocking_count);
    for (size_t i = 0; i < alone->blocking_count; i++) {
        size_t at = p->count;

        while (at > 0 && !(p->leases[at - 1].held && same_lease(p->leases[at - 1].alone, alone->blocking[i])))
            at--;
        HOLDS(p->c, at > 0 && same_lease(p->leases[at - 1].engine, engine->blocking[i]));
    }
}

static void acquire(pair *p)
{
    choices *const c = p->c;
    const int64_t cost = (int64_t)choose(c, (uint64_t)p->limit.share.ceiling / UNIT * 2) * UNIT / 2;
    const int64_t hold_us = choose(c, 4) == 4 ? RATION_UNSET : (int64_t)choose(c, 60);
    const ration_text tenant = ration_text_of(names[choose(c, TENANTS)]);
    ration_request r = RATION_REQUEST_INIT;
    ration_decision alone = {.at = {0}};
    ration_decision engine = {.at = {0}};

    r.account = ration_text_of("acc");
    r.tenant = tenant;
    r.cost = cost;
    r.hold_us = hold_us;
    HOLDS(c, ration_ceiling_acquire(p->alone, p->now, tenant, cost, hold_us, &alone) == RATION_OK);
    HOLDS(c, ration_engine_submit(p->engine, p->now, &r, &engine) == RATION_OK);
    NOTE(c, "%" PRId64 " %s asks %" PRId64 " for %" PRId64 ": %s at %" PRId64 ", engine %s at %" PRId64, p->now.us,
         tenant.data, cost, hold_us, ration_reason_name(alone.reason), alone.retry_at.us,
         ration_reason_name(engine.reason), engine.retry_at.us);
    HOLDS(c, alone.result == engine.result);
    HOLDS(c, alone.reason == engine.reason);
    HOLDS(c, alone.serial == engine.serial);
    HOLDS(c, alone.at.us == engine.at.us);
    HOLDS(c, alone.retry_at.us == engine.retry_at.us);
    HOLDS(c, alone.estimate == engine.estimate);
    blocking_is(p, &alone, &engine);
    if (alone.result == RATION_GRANTED) {
        p->leases[p->count].alone = alone.lease;
        p->leases[p->count].engine = engine.lease;
        p->leases[p->count++].held = true;
    } else if (alone.reason != RATION_REASON_UNKNOWN_TENANT) {
        facts_are(p, &alone.facts, &engine.facts);
    }
}

static void release(pair *p)
{
    const size_t start = p->count == 0 ? 0 : (size_t)choose(p->c, p->count - 1);

    for (size_t i = 0; i < p->count; i++) {
        const size_t at = (start + i) % p->count;

        if (!p->leases[at].held)
            continue;
        NOTE(p->c, "%" PRId64 " release %zu", p->now.us, at);
        p->leases[at].held = false;
        HOLDS(p->c, ration_ceiling_release(p->alone, p->now, p->leases[at].alone) == RATION_OK);
        HOLDS(p->c, ration_engine_release(p->engine, p->now, p->leases[at].engine, NULL) == RATION_OK);
        return;
    }
}

/* ---- reports ---- */

typedef struct rows {
    ration_tenant_report tenants[TENANTS];
    size_t count;
    int64_t max, held, draining;
    uint64_t overrun[CALLS];
    size_t overrun_count;
    bool units_disagree;
} rows;

static void on_counter(void *ctx, const ration_counter_report *r)
{
    rows *out = ctx;

    out->count = r->tenant_count;
    memcpy(out->tenants, r->tenants, r->tenant_count * sizeof r->tenants[0]);
    out->max = r->max;
    out->held = r->held;
    out->draining = r->draining;
    out->overrun_count = r->overrun_count;
    if (r->overrun_count > 0)
        memcpy(out->overrun, r->overrun, r->overrun_count * sizeof r->overrun[0]);
}

static void on_share(void *ctx, const ration_share_report *r)
{
    rows *out = ctx;

    out->count = r->tenant_count;
    memcpy(out->tenants, r->tenants, r->tenant_count * sizeof r->tenants[0]);
    out->units_disagree = r->units_disagree;
}

static void row_is(const pair *p, const ration_tenant_report *a, const ration_tenant_report *b)
{
    choices *const c = p->c;

    HOLDS(c, a->guarantee == b->guarantee && a->held == b->held && a->own == b->own && a->lent == b->lent);
    HOLDS(c, a->borrowed == b->borrowed && a->want == b->want && a->target == b->target && a->idle == b->idle);
    HOLDS(c, a->waiting == b->waiting && a->deficit_unit_ms == b->deficit_unit_ms);
    HOLDS(c, a->deficit_rest == b->deficit_rest && a->reclaims == b->reclaims);
    HOLDS(c, a->worst_reclaim_us == b->worst_reclaim_us && a->granted == b->granted);
    HOLDS(c, memcmp(a->refused, b->refused, sizeof a->refused) == 0);
    HOLDS(c, a->configured_share == b->configured_share && a->cost_share == b->cost_share);
    HOLDS(c, a->request_share == b->request_share && a->cost_skew == b->cost_skew);
    HOLDS(c, a->request_skew == b->request_skew);
}

static void reports_are(pair *p)
{
    rows alone = {.count = 0};
    rows engine = {.count = 0};
    const ration_reporter to_alone = {.ctx = &alone, .counter = on_counter, .share = on_share};
    const ration_reporter to_engine = {.ctx = &engine, .counter = on_counter, .share = on_share};
    choices *const c = p->c;

    HOLDS(c, ration_ceiling_stats(p->alone, p->now, &to_alone) == RATION_OK);
    HOLDS(c, ration_engine_report(p->engine, p->now, RATION_REPORT_STATS, &to_engine) == RATION_OK);
    HOLDS(c, ration_ceiling_fairness(p->alone, p->now, &to_alone) == RATION_OK);
    HOLDS(c, ration_engine_report(p->engine, p->now, RATION_REPORT_FAIRNESS, &to_engine) == RATION_OK);
    if (engine.count == 0) /* nobody has asked yet, so there is no counter */
        return;
    HOLDS(c, alone.count == engine.count);
    for (size_t i = 0; i < alone.count; i++)
        row_is(p, &alone.tenants[i], &engine.tenants[i]);
    HOLDS(c, alone.max == engine.max && alone.held == engine.held && alone.draining == engine.draining);
    HOLDS(c, alone.overrun_count == engine.overrun_count && alone.units_disagree == engine.units_disagree);
    HOLDS(c, memcmp(alone.overrun, engine.overrun, sizeof alone.overrun) == 0);
}

static void the_two_say_the_same(choices *c, void *context)
{
    pair *p = calloc(1, sizeof *p);

    (void)context;
    if (p == NULL)
        abort();
    p->c = c;
    rule_draw(p);
    pair_init(p);
    while (choose(c, 100) != 0 && p->count < CALLS) {
        p->now.us += choose(c, 1) != 0 ? (int64_t)choose(c, 70) : 0;
        if (choose(c, 2) != 2) {
            acquire(p);
        } else {
            release(p);
        }
        reports_are(p);
    }
    ration_ceiling_free(p->alone);
    ration_engine_free(p->engine);
    free(p);
}

static void alone(void **state)
{
    (void)state;
    property_check("alone", the_two_say_the_same, NULL, 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(alone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
