/* SPDX-License-Identifier: MIT */
#include "support/ceiling_model.h"

#include <string.h>

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static uint32_t count_of(const model *m)
{
    return (uint32_t)m->rule->tenant_count;
}

/* ---- guarantees ---- */

void model_resize(model *m, const ration_share_rule *rule, int64_t size)
{
    int64_t rest[MODEL_TENANTS];
    int64_t sum = 0;
    int64_t left = size;

    m->rule = rule;
    m->size = size;
    for (uint32_t i = 0; i < count_of(m); i++)
        sum += rule->tenants[i].weight;
    for (uint32_t i = 0; i < count_of(m); i++) {
        m->tenants[i].guarantee = size * rule->tenants[i].weight / sum;
        rest[i] = size * rule->tenants[i].weight % sum;
        left -= m->tenants[i].guarantee;
    }
    for (; left > 0; left--) {
        uint32_t best = 0;

        for (uint32_t i = 1; i < count_of(m); i++)
            best = rest[i] > rest[best] ? i : best;
        m->tenants[best].guarantee++;
        rest[best] = -1;
    }
    for (uint32_t i = 0; i < count_of(m); i++) {
        const ration_ratio lend = rule->tenants[i].lend.den > 0 ? rule->tenants[i].lend : rule->lend;

        m->tenants[i].lendable = m->tenants[i].guarantee;
        if (lend.den > 0)
            m->tenants[i].lendable = m->tenants[i].guarantee * lend.num / lend.den;
    }
}

void model_init(model *m, const ration_share_rule *rule, int64_t now)
{
    memset(m, 0, sizeof *m);
    m->now = now;
    model_resize(m, rule, rule->ceiling);
    for (uint32_t i = 0; i < count_of(m); i++)
        m->tenants[i].asked_at = m->tenants[i].used_at = m->tenants[i].cool_until = now;
}

/* ---- what follows from the leases ---- */

static int64_t borrowed_of(const model_lease *lease)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < MODEL_TENANTS; i++)
        sum += lease->from[i];
    return sum;
}

int64_t model_own(const model *m, uint32_t tenant)
{
    int64_t sum = 0;

    for (size_t i = 0; i < MODEL_LEASES; i++) {
        if (m->leases[i].live && m->leases[i].tenant == tenant)
            sum += m->leases[i].charge - borrowed_of(&m->leases[i]);
    }
    return sum;
}

int64_t model_lent(const model *m, uint32_t tenant)
{
    int64_t sum = 0;

    for (size_t i = 0; i < MODEL_LEASES; i++)
        sum += m->leases[i].live ? m->leases[i].from[tenant] : 0;
    return sum;
}

int64_t model_held(const model *m, uint32_t tenant)
{
    int64_t sum = 0;

    for (size_t i = 0; i < MODEL_LEASES; i++)
        sum += m->leases[i].live && m->leases[i].tenant == tenant ? m->leases[i].charge : 0;
    return sum;
}

int64_t model_held_by_all(const model *m)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < count_of(m); i++)
        sum += model_held(m, i);
    return sum;
}

static bool has_lease(const model *m, uint32_t tenant)
{
    for (size_t i = 0; i < MODEL_LEASES; i++) {
        if (m->leases[i].live && m->leases[i].tenant == tenant)
            return true;
    }
    return false;
}

static int64_t free_of(const model *m, uint32_t tenant)
{
    return m->tenants[tenant].guarantee - model_own(m, tenant) - model_lent(m, tenant);
}

bool model_is_idle(const model *m, uint32_t tenant, int64_t at)
{
    const model_tenant *const t = &m->tenants[tenant];

    return !has_lease(m, tenant) && t->waiting == 0 && at - t->asked_at >= m->rule->idle_after_us;
}

static bool wants_at(const model *m, uint32_t tenant, int64_t at)
{
    const model_tenant *const t = &m->tenants[tenant];

    return t->wanting && (t->shorts > 0 || at - t->refused_at < m->rule->idle_after_us);
}

bool model_may_lend(const model *m, uint32_t tenant, int64_t at)
{
    const model_tenant *const t = &m->tenants[tenant];

    if (at < t->cool_until)
        return false;
    if (m->rule->freeze_wanted)
        return !has_lease(m, tenant) && at - t->used_at >= m->rule->idle_after_us;
    return model_is_idle(m, tenant, at);
}

/* What it may have on loan at most. */
static int64_t cap_of(const model *m, uint32_t tenant, int64_t at)
{
    const model_tenant *const t = &m->tenants[tenant];

    if (!m->rule->freeze_wanted)
        return t->lendable;
    return t->lendable - most(t->wait_most, wants_at(m, tenant, at) ? t->want : 0);
}

static int64_t available_of(const model *m, uint32_t tenant, int64_t at)
{
    return model_may_lend(m, tenant, at) ? most(0, cap_of(m, tenant, at) - model_lent(m, tenant)) : 0;
}

int64_t model_pool(const model *m, uint32_t but, int64_t at)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < count_of(m); i++)
        sum += i == but ? 0 : available_of(m, i, at);
    return sum;
}

/* ---- time ---- */

void model_tick(model *m, int64_t now)
{
    for (uint32_t i = 0; i < count_of(m); i++) {
        model_tenant *const t = &m->tenants[i];
        const int64_t rate = least(t->guarantee - model_held(m, i), t->want);

        for (int64_t us = m->now; us < now; us++)
            t->deficit += wants_at(m, i, us) ? most(0, rate) : 0;
        if (t->wanting && !wants_at(m, i, now)) {
            t->wanting = false;
            t->want = 0;
            t->reclaiming = false;
        }
    }
    m->now = now;
}

/* ---- admission ---- */

static bool may_borrow(const model *m, const rn_ceiling_ask *ask)
{
    return ask->hold_us != RATION_UNSET && ask->hold_us <= m->rule->reclaim_horizon_us;
}

ration_reason model_check(const model *m, const rn_ceiling_ask *ask, bool *hopeless)
{
    const int64_t free = free_of(m, ask->tenant);
    const int64_t c = ask->charge;
    const bool full = model_held_by_all(m) + c > m->size;

    *hopeless = false;
    if (c > m->size) {
        *hopeless = true;
        return RATION_REASON_COST_EXCEEDS_LIMIT;
    }
    if (!full && c <= free)
        return RATION_REASON_NONE;
    if (!full && may_borrow(m, ask) && c - free <= model_pool(m, ask->tenant, m->now))
        return RATION_REASON_NONE;
    if (model_own(m, ask->tenant) + c <= m->tenants[ask->tenant].guarantee)
        return RATION_REASON_GUARANTEE_ON_LOAN;
    if (!may_borrow(m, ask)) {
        *hopeless = c > m->tenants[ask->tenant].guarantee;
        return RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON;
    }
    return RATION_REASON_NOTHING_TO_BORROW;
}

/* The live lease that ends first after (`end`, `serial`); MODEL_LEASES: none. */
static size_t lease_after(const model *m, int64_t end, uint64_t serial)
{
    size_t best = MODEL_LEASES;

    for (size_t i = 0; i < MODEL_LEASES; i++) {
        const model_lease *const lease = &m->leases[i];
        const model_lease *const other = &m->leases[best < MODEL_LEASES ? best : 0];

        if (!lease->live || lease->ends_at < end || (lease->ends_at == end && lease->serial <= serial))
            continue;
        if (best == MODEL_LEASES || lease->ends_at < other->ends_at ||
            (lease->ends_at == other->ends_at && lease->serial < other->serial))
            best = i;
    }
    return best;
}

/* Is it a lease of somebody above the guarantee, or does it use units of such a one? As things stand in `m`. */
static bool drains(const model *m, const model_lease *lease)
{
    if (free_of(m, lease->tenant) < 0)
        return true;
    for (uint32_t i = 0; i < count_of(m); i++) {
        if (lease->from[i] > 0 && free_of(m, i) < 0)
            return true;
    }
    return false;
}

static bool helps(const model *m, const model_lease *lease, uint32_t tenant, bool borrows)
{
    if (lease->from[tenant] > 0 || (borrows && lease->tenant == tenant))
        return true;
    for (uint32_t i = 0; i < count_of(m); i++) {
        if (borrows && lease->from[i] > 0 && model_may_lend(m, i, m->now))
            return true;
    }
    return false;
}

/* What `who` could use if only the leases of `after` were left; who lends is as in `m`. */
static int64_t reach(const model *m, const model *after, uint32_t who, bool borrows)
{
    int64_t sum = m->tenants[who].guarantee - model_own(borrows ? after : m, who) - model_lent(after, who);

    for (uint32_t i = 0; i < count_of(m) && borrows; i++) {
        if (i != who && model_may_lend(m, i, m->now))
            sum += most(0, cap_of(m, i, m->now) - model_lent(after, i));
    }
    return sum;
}

int64_t model_when(const model *m, const rn_ceiling_ask *ask, ration_reason reason, uint64_t *blocking, size_t *count)
{
    const bool borrows = reason == RATION_REASON_NOTHING_TO_BORROW;
    model after = *m; /* with leases ended one by one; nobody becomes idle meanwhile */
    int64_t at = m->now;
    size_t next = MODEL_LEASES;
    bool known = true;

    *count = 0;
    if (!borrows && reason != RATION_REASON_GUARANTEE_ON_LOAN)
        return RATION_NEVER_US;
    for (;;) {
        const int64_t there = reach(m, &after, ask->tenant, borrows);
        const int64_t drain = model_held_by_all(&after) + ask->charge - m->size;

        if (there >= ask->charge && drain <= 0)
            return known ? at : RATION_NEVER_US;
        next = next == MODEL_LEASES ? lease_after(m, INT64_MIN, 0)
                                    : lease_after(m, m->leases[next].ends_at, m->leases[next].serial);
        if (next == MODEL_LEASES)
            return RATION_NEVER_US;

        const model_lease *const lease = &m->leases[next];

        if (!helps(m, lease, ask->tenant, borrows) && !(drain > 0 && drains(m, lease)))
            continue;
        after.leases[next].live = false;

        const int64_t gain = reach(m, &after, ask->tenant, borrows) - there;

        if ((gain == 0 || there >= ask->charge) && (drain <= 0 || lease->charge == 0))
            continue;
        at = lease->ends_at;
        known = known && at != RATION_NEVER_US && at >= m->now;
        if (!borrows)
            blocking[(*count)++] = lease->serial;
    }
}

/* ---- calls ---- */

void model_take(model *m, const rn_ceiling_ask *ask, int64_t ends_at, uint64_t serial, int64_t left, size_t lease)
{
    model_tenant *const t = &m->tenants[ask->tenant];
    const int64_t free = free_of(m, ask->tenant);
    bool hopeless = false;
    int64_t loan = 0;
    model_lease made = {
        .live = true, .tenant = ask->tenant, .charge = ask->charge, .ends_at = ends_at, .serial = serial};

    if (model_check(m, ask, &hopeless) == RATION_REASON_NONE)
        loan = most(0, ask->charge - most(0, free));
    while (loan > 0) {
        uint32_t best = MODEL_TENANTS;
        int64_t best_units = 0;

        for (uint32_t i = 0; i < count_of(m); i++) {
            const int64_t units = i == ask->tenant ? 0 : available_of(m, i, m->now) - made.from[i];

            if (units > best_units) {
                best = i;
                best_units = units;
            }
        }
        if (best == MODEL_TENANTS)
            break; /* not where `model_check` said that it fits */
        made.from[best] = least(loan, best_units);
        made.lenders[made.lender_count++] = best;
        loan -= made.from[best];
    }
    m->leases[lease] = made;
    t->asked_at = t->used_at = m->now;
    t->granted++;
    if (t->reclaiming) {
        t->reclaims++;
        t->worst_us = most(t->worst_us, m->now - t->reclaim_at);
        t->cool_until = m->now + m->rule->cooldown_us;
    }
    t->reclaiming = false;
    t->wanting = t->shorts > 0;
    t->want = left;
    t->first_refused_at = m->now;
}

void model_settle(model *m, size_t lease, int64_t charge)
{
    model_lease *const l = &m->leases[lease];
    int64_t back = least(most(0, l->charge - charge), borrowed_of(l));

    while (back > 0) {
        const uint32_t last = l->lenders[l->lender_count - 1];
        const int64_t part = least(back, l->from[last]);

        l->from[last] -= part;
        back -= part;
        if (l->from[last] == 0)
            l->lender_count--;
    }
    l->charge = charge;
}

void model_give_back(model *m, size_t lease)
{
    model_tenant *const t = &m->tenants[m->leases[lease].tenant];

    m->leases[lease] = (model_lease){.live = false};
    t->asked_at = t->used_at = m->now;
}

static void want_more(model *m, const rn_ceiling_ask *ask)
{
    model_tenant *const t = &m->tenants[ask->tenant];

    if (!t->wanting)
        t->first_refused_at = m->now;
    t->wanting = true;
    t->want = most(t->want, ask->charge);
    t->refused_at = m->now;
}

void model_found(model *m, uint32_t tenant, ration_reason reason)
{
    model_tenant *const t = &m->tenants[tenant];

    if (reason != RATION_REASON_GUARANTEE_ON_LOAN || t->reclaiming || !t->wanting)
        return;
    t->reclaiming = true;
    t->reclaim_at = m->now;
}

void model_asked(model *m, const rn_ceiling_ask *ask, ration_reason reason, bool is_short)
{
    m->tenants[ask->tenant].asked_at = m->now;
    if (!is_short)
        return;
    want_more(m, ask);
    model_found(m, ask->tenant, reason);
}

void model_wait(model *m, const rn_ceiling_ask *ask)
{
    model_tenant *const t = &m->tenants[ask->tenant];

    t->asked_at = m->now;
    t->waiting++;
    t->wait_most = most(t->wait_most, ask->charge);
}

void model_short(model *m, const rn_ceiling_ask *ask)
{
    want_more(m, ask);
    m->tenants[ask->tenant].shorts++;
}

void model_leave(model *m, bool was_short, bool granted, uint32_t tenant)
{
    model_tenant *const t = &m->tenants[tenant];

    if (--t->waiting == 0)
        t->wait_most = 0;
    if (was_short) {
        t->shorts--;
        t->refused_at = m->now;
    }
    if (!granted)
        t->asked_at = m->now;
}
