/* SPDX-License-Identifier: MIT */
/*
 * The ceiling against chapter 2 as slowly as it can be written: any tenants, any calls, verdicts, times and every
 * number of the reports the same; and what must hold whatever happens.
 *
 * In a tame run leases cost what they asked for and guarantees stay: then nobody uses more than its guarantee and what
 * it borrows. In others both may change.
 */
#include "support/ceiling_model.h"
#include "support/check.h"
#include "support/property.h"

#include "base/mem.h"

#define WAITERS 8
#define RULES 4

typedef struct lease {
    rn_ceiling_hold hold;
    bool live;
    int64_t granted_at;
} lease;

typedef struct waiter {
    rn_ceiling_ask ask;
    bool live;
    bool is_short;
    bool fits; /* as of the last look */
} waiter;

typedef struct rule {
    ration_tenant_share tenants[MODEL_TENANTS];
    ration_share_rule rule;
    rn_ceiling_spec spec;
} rule;

typedef struct pair {
    choices *c;
    rule rules[RULES];
    size_t rule_count;
    rn_ceiling *real;
    model m;
    lease leases[MODEL_LEASES];
    waiter waiters[WAITERS];
    uint64_t serial;
    bool tame;
    uint64_t refused[MODEL_TENANTS][RATION_REASON_COUNT];
} pair;

static ration_time now_of(const pair *p)
{
    return ration_time_of(p->m.now);
}

/* ---- rules ---- */

static ration_ratio some_ratio(choices *c)
{
    static const ration_ratio ratios[] = {{0, 0}, {1, 2}, {0, 1}, {2, 3}, {1, 1}};

    return ratios[choose(c, 4)];
}

/* Another rule with `count` tenants. */
static rule *rule_add(pair *p, size_t count)
{
    static const char *const names[MODEL_TENANTS] = {"a", "b", "c", "d", "e"};
    choices *const c = p->c;
    rule *const r = &p->rules[p->rule_count++];

    for (size_t i = 0; i < count; i++) {
        r->tenants[i] = (ration_tenant_share){names[i], choose_from(c, 1, 4), {0, 0}};
        if (choose(c, 3) == 3)
            r->tenants[i].lend = some_ratio(c);
    }
    r->rule = (ration_share_rule){
        .ceiling = choose_from(c, 1, 40),
        .tenants = r->tenants,
        .tenant_count = count,
        .reclaim_horizon_us = choose_from(c, 1, 8),
        .freeze_wanted = choose(c, 3) == 3,
        .cooldown_us = choose(c, 3) == 3 ? choose_from(c, 1, 20) : 0,
        .lend = choose(c, 3) == 3 ? some_ratio(c) : (ration_ratio){0, 0},
    };
    r->rule.idle_after_us = r->rule.reclaim_horizon_us + choose_from(c, 1, 8);
    HOLDS(c, rn_ceiling_spec_init(&r->spec, rn_mem_default(), &r->rule, NULL) == RATION_OK);
    NOTE(c, "rule: ceiling %lld, %zu tenants, horizon %lld, idle after %lld%s, cooldown %lld",
         (long long)r->rule.ceiling, count, (long long)r->rule.reclaim_horizon_us, (long long)r->rule.idle_after_us,
         r->rule.freeze_wanted ? ", freeze wanted" : "", (long long)r->rule.cooldown_us);
    return r;
}

/* ---- what must hold ---- */

static void guarantees_hold(const pair *p, const ration_counter_report *report)
{
    int64_t sum = 0;

    for (size_t i = 0; i < report->tenant_count; i++) {
        const ration_tenant_report *const row = &report->tenants[i];

        sum += row->guarantee;
        HOLDS(p->c, !p->tame || row->own + row->lent <= row->guarantee);
    }
    HOLDS(p->c, sum == p->m.size);
    HOLDS(p->c, !p->tame || report->held <= report->max);
    HOLDS(p->c, !p->tame || report->draining == 0);
}

/* Who wants something has no loan on its units that was written since, and none that ends past the horizon. */
static void bound_holds(const pair *p)
{
    for (uint32_t t = 0; t < p->m.rule->tenant_count; t++) {
        const model_tenant *const tenant = &p->m.tenants[t];

        for (size_t i = 0; i < MODEL_LEASES && tenant->wanting; i++) {
            if (!p->leases[i].live || p->m.leases[i].from[t] == 0)
                continue;
            HOLDS(p->c, p->leases[i].granted_at <= tenant->first_refused_at);
            HOLDS(p->c, p->m.leases[i].ends_at <= tenant->first_refused_at + p->rules[0].rule.reclaim_horizon_us);
        }
    }
}

/* Nobody could be given more but by taking from one who has no more for its weight, up to a micro-unit. */
static void targets_hold(const pair *p, const ration_counter_report *report)
{
    int64_t demands = 0;
    int64_t sum = 0;

    for (size_t i = 0; i < report->tenant_count; i++) {
        const ration_tenant_report *const row = &report->tenants[i];

        demands += row->held + row->want;
        sum += row->target;
        HOLDS(p->c, row->target <= row->held + row->want);
        for (size_t k = 0; k < report->tenant_count && row->target < row->held + row->want; k++) {
            HOLDS(p->c, (report->tenants[k].target - 1) * p->m.rule->tenants[i].weight <
                            (row->target + 1) * p->m.rule->tenants[k].weight);
        }
    }
    HOLDS(p->c, sum == (demands < p->m.size ? demands : p->m.size));
}

static void row_is(const pair *p, uint32_t i, const ration_tenant_report *row)
{
    const model_tenant *const t = &p->m.tenants[i];
    choices *const c = p->c;

    HOLDS(c, row->guarantee == t->guarantee);
    HOLDS(c, row->own == model_own(&p->m, i));
    HOLDS(c, row->lent == model_lent(&p->m, i));
    HOLDS(c, row->held == model_held(&p->m, i));
    HOLDS(c, row->borrowed == row->held - row->own);
    HOLDS(c, row->want == t->want);
    HOLDS(c, row->idle == model_is_idle(&p->m, i, p->m.now));
    HOLDS(c, row->waiting == (uint64_t)t->waiting);
    HOLDS(c, row->deficit_unit_ms == t->deficit / 1000000000 && row->deficit_rest == t->deficit % 1000000000);
    HOLDS(c, row->reclaims == t->reclaims);
    HOLDS(c, row->worst_reclaim_us == t->worst_us);
    HOLDS(c, row->granted == t->granted);
    for (size_t r = 0; r < RATION_REASON_COUNT; r++)
        HOLDS(c, row->refused[r] == p->refused[i][r]);
}

static void overruns_are(const pair *p, const ration_counter_report *report)
{
    int64_t last_end = INT64_MIN;
    size_t count = 0;

    for (size_t i = 0; i < MODEL_LEASES; i++)
        count += p->m.leases[i].live && p->m.leases[i].ends_at < p->m.now;
    HOLDS(p->c, report->overrun_count == count);
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < MODEL_LEASES; i++) {
            if (!p->m.leases[i].live || p->m.leases[i].serial != report->overrun[k])
                continue;
            HOLDS(p->c, p->m.leases[i].ends_at < p->m.now && p->m.leases[i].ends_at >= last_end);
            last_end = p->m.leases[i].ends_at;
            count--;
            break;
        }
        count++;
    }
}

static void reports_are(pair *p)
{
    ration_counter_report report = {.max = 0};

    HOLDS(p->c, rn_ceiling_stats(p->real, now_of(p), &report) == RATION_OK);
    HOLDS(p->c, report.tenant_count == p->m.rule->tenant_count);
    HOLDS(p->c, report.held == model_held_by_all(&p->m));
    for (uint32_t i = 0; i < report.tenant_count; i++)
        row_is(p, i, &report.tenants[i]);
    guarantees_hold(p, &report);
    targets_hold(p, &report);
    overruns_are(p, &report);
    if (p->tame && !p->m.rule->freeze_wanted)
        bound_holds(p);
}

/* The pool, and when it grows by time alone: the instant told is never too late. */
static void pool_is(const pair *p)
{
    const int64_t pool = model_pool(&p->m, RN_TENANT_NONE, p->m.now);
    const ration_time change = rn_ceiling_pool_change(p->real, now_of(p));

    HOLDS(p->c, rn_ceiling_pool(p->real, now_of(p)) == pool);
    HOLDS(p->c, change.us > p->m.now);
    for (int64_t at = p->m.now + 1; at < p->m.now + 40 && at < change.us; at++)
        HOLDS(p->c, model_pool(&p->m, RN_TENANT_NONE, at) <= pool);
}

/* ---- asking ---- */

static rn_ceiling_ask some_ask(pair *p)
{
    rn_ceiling_ask ask = {
        .tenant = (uint32_t)choose(p->c, p->m.rule->tenant_count - 1),
        .charge = choose_from(p->c, 0, p->m.size / 2 + 2),
        .hold_us = choose(p->c, 4) == 4 ? RATION_UNSET : choose_from(p->c, 0, 12),
    };

    ask.cost = ask.charge;
    return ask;
}

typedef struct names {
    uint64_t serials[MODEL_LEASES];
    size_t count;
} names;

static void name_add(void *ctx, rn_ceiling_hold *hold)
{
    names *const n = ctx;

    n->serials[n->count++] = hold->serial;
}

static void when_is(pair *p, const rn_ceiling_ask *ask, ration_reason reason)
{
    names got = {.count = 0};
    uint64_t want[MODEL_LEASES];
    size_t want_count = 0;
    rn_ceiling_when when = {.blocking = name_add, .ctx = &got};
    const int64_t at = model_when(&p->m, ask, reason, want, &want_count);

    rn_ceiling_when_free(p->real, now_of(p), ask, reason, &when);
    NOTE(p->c, "  retry at %lld, model %lld", (long long)when.at.us, (long long)at);
    HOLDS(p->c, when.at.us == at);
    HOLDS(p->c, got.count == want_count);
    for (size_t i = 0; i < want_count; i++)
        HOLDS(p->c, got.serials[i] == want[i]);
    when.blocking = NULL;
    rn_ceiling_when_free(p->real, now_of(p), ask, reason, &when);
    HOLDS(p->c, when.at.us == at);
}

/* What the ceiling says to a request, which the model says too. */
static ration_reason check(pair *p, const rn_ceiling_ask *ask)
{
    rn_ceiling_verdict verdict;
    ration_facts facts;
    bool hopeless = false;
    const ration_reason want = model_check(&p->m, ask, &hopeless);
    const int64_t need = rn_ceiling_need(p->real, ask);

    rn_ceiling_check(p->real, now_of(p), ask, &verdict);
    NOTE(p->c, "at %lld: %u asks %lld for %lld: %s", (long long)p->m.now, ask->tenant, (long long)ask->charge,
         (long long)ask->hold_us, ration_reason_name(verdict.reason));
    HOLDS(p->c, verdict.reason == want && verdict.hopeless == hopeless && !verdict.nomem);
    when_is(p, ask, want);
    rn_ceiling_facts(p->real, now_of(p), ask, &facts);
    HOLDS(p->c, facts.pool == model_pool(&p->m, ask->tenant, p->m.now));
    HOLDS(p->c, (need <= facts.pool) == (want == RATION_REASON_NONE));
    return want;
}

static int64_t left_by(const pair *p, uint32_t tenant)
{
    int64_t left = 0;

    for (size_t i = 0; i < WAITERS; i++) {
        const waiter *const w = &p->waiters[i];

        if (w->live && w->is_short && w->ask.tenant == tenant && w->ask.charge > left)
            left = w->ask.charge;
    }
    return left;
}

static bool lease_spare(const pair *p, size_t *at)
{
    for (*at = 0; *at < MODEL_LEASES; ++*at) {
        if (!p->leases[*at].live)
            return true;
    }
    return false;
}

static void take(pair *p, const rn_ceiling_ask *ask, size_t at)
{
    const int64_t ends_at = ask->hold_us == RATION_UNSET ? RATION_NEVER_US : p->m.now + ask->hold_us;
    const int64_t left = left_by(p, ask->tenant);

    p->serial++;
    p->leases[at].live = true;
    p->leases[at].granted_at = p->m.now;
    rn_ceiling_take(p->real, now_of(p), ask, p->serial, left, &p->leases[at].hold);
    model_take(&p->m, ask, ends_at, p->serial, left, at);
}

static void acquire(pair *p)
{
    const rn_ceiling_ask ask = some_ask(p);
    const ration_reason reason = check(p, &ask);
    size_t at = 0;

    if (reason == RATION_REASON_NONE && lease_spare(p, &at)) {
        take(p, &ask, at);
        return;
    }

    const bool is_short = reason != RATION_REASON_COST_EXCEEDS_LIMIT && choose(p->c, 5) != 5;

    rn_ceiling_asked(p->real, now_of(p), &ask, reason, is_short);
    model_asked(&p->m, &ask, reason, is_short);
    if (reason != RATION_REASON_NONE) {
        rn_ceiling_refused(p->real, ask.tenant, reason);
        p->refused[ask.tenant][reason]++;
    }
}

/* A shadow limit's: it does not bind. */
static void force(pair *p)
{
    const rn_ceiling_ask ask = some_ask(p);
    size_t at = 0;

    if (p->tame || !lease_spare(p, &at))
        return;
    (void)check(p, &ask);
    take(p, &ask, at);
}

static void release(pair *p)
{
    const size_t at = choose(p->c, MODEL_LEASES - 1);

    if (!p->leases[at].live)
        return;
    NOTE(p->c, "at %lld: release %llu", (long long)p->m.now, (unsigned long long)p->m.leases[at].serial);
    rn_ceiling_give_back(p->real, now_of(p), &p->leases[at].hold);
    model_give_back(&p->m, at);
    p->leases[at].live = false;
}

static void settle(pair *p)
{
    const size_t at = choose(p->c, MODEL_LEASES - 1);
    const int64_t most = p->tame ? p->m.leases[at].charge : 20;

    if (!p->leases[at].live)
        return;

    const int64_t charge = choose_from(p->c, 0, most);

    NOTE(p->c, "at %lld: settle %llu to %lld", (long long)p->m.now, (unsigned long long)p->m.leases[at].serial,
         (long long)charge);
    rn_ceiling_settle(p->real, now_of(p), &p->leases[at].hold, charge);
    model_settle(&p->m, at, charge);
}

/* ---- waiting ---- */

static void become_short(pair *p, waiter *w)
{
    w->is_short = true;
    rn_ceiling_short(p->real, now_of(p), &w->ask);
    model_short(&p->m, &w->ask);
}

static void found(pair *p, const waiter *w, ration_reason reason)
{
    rn_ceiling_found(p->real, now_of(p), w->ask.tenant, reason);
    model_found(&p->m, w->ask.tenant, reason);
}

static void leave(pair *p, waiter *w, bool granted)
{
    w->live = false;
    rn_ceiling_leave(p->real, now_of(p), &w->ask, w->is_short, granted);
    model_leave(&p->m, w->is_short, granted, w->ask.tenant);
}

static void begin_to_wait(pair *p)
{
    waiter *const w = &p->waiters[choose(p->c, WAITERS - 1)];

    if (w->live)
        return;
    *w = (waiter){.ask = some_ask(p), .live = true};

    const ration_reason reason = check(p, &w->ask);

    NOTE(p->c, "at %lld: it waits", (long long)p->m.now);
    w->fits = reason == RATION_REASON_NONE;
    rn_ceiling_wait(p->real, now_of(p), &w->ask);
    model_wait(&p->m, &w->ask);
    if (reason == RATION_REASON_NONE && choose(p->c, 3) != 3)
        return;
    become_short(p, w);
    found(p, w, reason);
}

/* Looked at again: it goes, or is told why not. */
static void look(pair *p)
{
    waiter *const w = &p->waiters[choose(p->c, WAITERS - 1)];
    size_t at = 0;

    if (!w->live)
        return;

    const ration_reason reason = check(p, &w->ask);

    w->fits = reason == RATION_REASON_NONE;
    if (w->fits && lease_spare(p, &at)) {
        NOTE(p->c, "at %lld: it goes", (long long)p->m.now);
        leave(p, w, true);
        take(p, &w->ask, at);
        return;
    }
    if (!w->is_short)
        become_short(p, w);
    found(p, w, reason);
}

static void give_up(pair *p)
{
    waiter *const w = &p->waiters[choose(p->c, WAITERS - 1)];

    if (!w->live)
        return;
    NOTE(p->c, "at %lld: %u gives up", (long long)p->m.now, w->ask.tenant);
    leave(p, w, false);
}

/* A waiter that did not fit, and would now without a loan, is named; whoever is named is looked at again. */
static void touched_are_named(pair *p)
{
    bool named[MODEL_TENANTS] = {false};

    for (uint32_t t = rn_ceiling_touched(p->real); t != RN_TENANT_NONE; t = rn_ceiling_touched(p->real))
        named[t] = true;
    for (size_t i = 0; i < WAITERS; i++) {
        waiter *const w = &p->waiters[i];

        if (!w->live)
            continue;
        HOLDS(p->c, w->fits || rn_ceiling_need(p->real, &w->ask) > 0 || named[w->ask.tenant]);
        if (named[w->ask.tenant])
            w->fits = check(p, &w->ask) == RATION_REASON_NONE;
    }
}

/* ---- runs ---- */

static void resize(pair *p)
{
    const int64_t size = choose_from(p->c, 1, 50);

    if (p->tame)
        return;
    NOTE(p->c, "at %lld: resize to %lld", (long long)p->m.now, (long long)size);
    rn_ceiling_resize(p->real, now_of(p), size);
    model_resize(&p->m, p->m.rule, size);
}

static void reweight(pair *p)
{
    if (p->tame || p->rule_count == RULES)
        return;

    const rule *const r = rule_add(p, p->m.rule->tenant_count);

    NOTE(p->c, "at %lld: reweight", (long long)p->m.now);
    HOLDS(p->c, rn_ceiling_reweight(p->real, now_of(p), &r->spec, r->rule.ceiling) == RATION_OK);
    model_resize(&p->m, &r->rule, r->rule.ceiling);
    /* What has lapsed under the new rule has lapsed now. */
    model_tick(&p->m, p->m.now);
}

static void pass(pair *p)
{
    model_tick(&p->m, p->m.now + (choose(p->c, 7) == 7 ? choose_from(p->c, 1, 40) : choose_from(p->c, 1, 4)));
}

/* Everybody may lend, nobody wants anything. */
static bool is_at_rest(const pair *p)
{
    for (uint32_t i = 0; i < p->m.rule->tenant_count; i++) {
        if (!model_may_lend(&p->m, i, p->m.now) || p->m.tenants[i].wanting)
            return false;
    }
    return true;
}

static bool some_wait(const pair *p)
{
    for (size_t i = 0; i < WAITERS; i++) {
        if (p->waiters[i].live)
            return true;
    }
    return false;
}

static void step(pair *p, uint64_t action)
{
    static void (*const steps[])(pair *) = {NULL,    pass,    acquire,       acquire, release, pass,   begin_to_wait,
                                            look,    give_up, settle,        release, resize,  force,  reweight,
                                            acquire, look,    begin_to_wait, release, pass,    acquire};

    steps[action](p);
    touched_are_named(p);
    pool_is(p);
    if (choose(p->c, 1) == 1)
        reports_are(p);
    HOLDS(p->c, rn_ceiling_is_fresh(p->real, now_of(p)) == is_at_rest(p) || some_wait(p));
}

static void like_the_model(choices *c, void *context)
{
    static pair p; /* a property that breaks leaves by a jump */

    (void)context;
    memset(&p, 0, sizeof p);
    p.c = c;
    p.tame = choose(c, 1) == 0;

    const rule *const first = rule_add(&p, (size_t)choose_from(c, 1, MODEL_TENANTS));

    model_init(&p.m, &first->rule, choose_from(c, -40, 0));
    HOLDS(c, rn_ceiling_new(rn_mem_default(), &first->spec, first->rule.ceiling, now_of(&p), &p.real) == RATION_OK);
    for (uint64_t action = choose(c, 76); action != 0; action = choose(c, 76))
        step(&p, (action - 1) % 19 + 1);
    reports_are(&p);
    rn_ceiling_free(p.real);
    for (size_t i = 0; i < p.rule_count; i++)
        rn_ceiling_spec_fini(&p.rules[i].spec);
}

static void test_model(void **state)
{
    (void)state;
    property_check("ceiling", like_the_model, NULL, 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
