/* SPDX-License-Identifier: MIT */

/*
 * The limit kind `share`: a fair-share ceiling among other limits. Chapter 2.
 *
 * The ceiling decides; here its tenants are lanes and its verdicts those of a limit. A refusal that a wait can cure is
 * short, and who waits asks for as long as it waits. Our provider knows nothing of our tenants, so to an enforcer a
 * share limit is always there.
 */

#include "core/limit.h"

#include "base/text.h"

static int share_prepare(rn_limit *limit, ration_fault *fault)
{
    const ration_limit_rule *rule = limit->rule;
    rn_share_spec *spec = &limit->spec.share;

    if (rule->counts == RATION_COUNTS_UNSET)
        return rn_rule_fault(fault, "counts", "a share limit must say what it counts: requests or cost");
    if ((rule->share.follows == NULL) == (rule->share.ceiling == 0))
        return rn_rule_fault(fault, "ceiling", "must be a number of units, or follow an adaptive limit");
    *spec = (rn_share_spec){.largest = rule->share.ceiling};
    return rn_ceiling_spec_init(&spec->ceiling, limit->mem, &rule->share, fault);
}

static void share_unprepare(rn_limit *limit)
{
    rn_ceiling_spec_fini(&limit->spec.share.ceiling);
}

static int share_init(rn_counter *counter, ration_time now)
{
    const rn_limit *limit = counter->limit;
    int64_t size = limit->rule->share.ceiling;

    /* Where it follows a limit that has not been asked yet, it begins where that one does. */
    if (limit->follows != NULL)
        size = rn_mul(limit->follows->spec.adaptive->aimd.initial, RATION_UNIT);
    /* Tenants have been quiet since the engine began, not since somebody first asked. */
    return rn_ceiling_new(counter->mem, &limit->spec.share.ceiling, size, rn_time_min(counter->started_at, now),
                          &counter->u.share);
}

static void share_fini(rn_counter *counter)
{
    rn_ceiling_free(counter->u.share);
}

static rn_ceiling_ask ceiling_ask(const rn_ask *ask)
{
    return (rn_ceiling_ask){
        .tenant = ask->lane,
        .charge = ask->charge,
        .cost = ask->cost,
        .hold_us = ask->hold_us,
    };
}

static void share_when(rn_counter *counter, ration_time now, const rn_ask *ask, rn_verdict *out)
{
    const rn_ceiling_ask asked = ceiling_ask(ask);
    rn_ceiling_when when = {.at = {RATION_NEVER_US}};

    rn_ceiling_when_free(counter->u.share, now, &asked, out->reason, &when);
    out->at = when.at;
    out->estimate = rn_time_known(when.at);
}

static void share_check(rn_counter *counter, ration_time now, const rn_ask *ask, rn_verdict *out)
{
    const rn_limit *limit = counter->limit;
    rn_ceiling_verdict verdict = {0};

    *out = (rn_verdict){.fit = RN_FIT_NOW, .at = now, .available = RATION_UNSET, .capacity = limit->spec.share.largest};
    if (ask->enforcer || limit->enforcer)
        return;
    if (ask->lane == RN_LANE_UNKNOWN || ask->charge > limit->spec.share.largest) {
        out->fit = RN_FIT_REFUSED;
        out->reason = ask->lane == RN_LANE_UNKNOWN ? RATION_REASON_UNKNOWN_TENANT : RATION_REASON_COST_EXCEEDS_LIMIT;
        out->at.us = RATION_NEVER_US;
        return;
    }

    const rn_ceiling_ask asked = ceiling_ask(ask);

    rn_ceiling_check(counter->u.share, now, &asked, &verdict);
    out->nomem = verdict.nomem;
    if (verdict.reason != RATION_REASON_NONE) {
        /* A ceiling that follows may be too small now, and grow. */
        const bool small = verdict.reason == RATION_REASON_COST_EXCEEDS_LIMIT;

        out->fit = verdict.hopeless && !small ? RN_FIT_REFUSED : RN_FIT_SHORT;
        out->reason = small ? RATION_REASON_NOTHING_TO_BORROW : verdict.reason;
        out->at.us = RATION_NEVER_US;
        if (ask->when && !small)
            share_when(counter, now, ask, out);
    } else if (ask->ahead > 0) {
        /* With units for all, those ahead wait for something else, and nobody knows how long. */
        out->reason = RATION_REASON_NOTHING_TO_BORROW;
        out->at.us = RATION_NEVER_US;
    }
}

static void share_take(rn_counter *counter, ration_time now, const rn_ask *ask, rn_hold *hold)
{
    const rn_ceiling_ask asked = ceiling_ask(ask);

    hold->charge = ask->charge;
    if (ask->lane != RN_LANE_UNKNOWN)
        rn_ceiling_take(counter->u.share, now, &asked, ask->serial, ask->left, &hold->share);
}

static void share_settle(rn_counter *counter, ration_time now, rn_hold *hold, int64_t charge)
{
    hold->charge = charge;
    if (hold->lane != RN_LANE_UNKNOWN)
        rn_ceiling_settle(counter->u.share, now, &hold->share, charge);
}

static void share_give_back(rn_counter *counter, ration_time now, rn_hold *hold)
{
    if (hold->lane != RN_LANE_UNKNOWN)
        rn_ceiling_give_back(counter->u.share, now, &hold->share);
}

/* Asked of the whole counter with rn_share_pool_change: time brings a tenant nothing of its own. */
static ration_time share_next_change(rn_counter *counter, ration_time now, const rn_ask *ask)
{
    (void)ask;
    return rn_ceiling_pool_change(counter->u.share, now);
}

static void share_observe(rn_counter *counter, ration_time now, rn_hold *hold, const rn_reply *reply)
{
    (void)counter;
    (void)now;
    (void)hold;
    (void)reply;
}

static void share_describe(rn_counter *counter, ration_time now, ration_counter_report *out)
{
    /* Without memory there are no tenants, which the report takes for what it is. */
    (void)rn_ceiling_stats(counter->u.share, now, out);
}

/*
 * Guarantees move by epochs: a loan ends under the guarantees of its time, and what is held above one that has shrunk
 * drains. With the same tenants the ceiling itself goes on; with others its account is carried over by their names.
 */
static void share_carry(rn_counter *counter, ration_time now, rn_counter *from)
{
    const rn_ceiling_spec *spec = &counter->limit->spec.share.ceiling;
    rn_ceiling *fresh = counter->u.share;
    const int64_t size = counter->limit->follows != NULL && from->limit->follows != NULL
                             ? rn_ceiling_size(from->u.share)
                             : rn_ceiling_size(fresh);

    if (rn_ceiling_reweight(from->u.share, now, spec, size) == RATION_OK) {
        counter->u.share = from->u.share;
        from->u.share = fresh;
        return;
    }
    rn_ceiling_resize(fresh, now, size);
    rn_ceiling_carry(fresh, now, from->u.share);
}

static void share_carry_hold(rn_counter *counter, const rn_counter *from, rn_hold *was, rn_hold *hold)
{
    (void)from;
    if (was->lane == RN_LANE_UNKNOWN)
        return;
    hold->lane = was->share.tenant;
    if (hold->lane != RN_LANE_UNKNOWN)
        rn_ceiling_move(counter->u.share, &was->share, &hold->share);
}

static void share_reset(rn_counter *counter, ration_time now)
{
    rn_ceiling_forget(counter->u.share, now);
}

static bool share_is_fresh(rn_counter *counter, ration_time now)
{
    return rn_ceiling_is_fresh(counter->u.share, now);
}

static uint32_t share_lane_of(const rn_limit *limit, ration_text tenant, ration_text class_name)
{
    (void)class_name;
    return rn_ceiling_spec_find(&limit->spec.share.ceiling, tenant);
}

static size_t share_lane_count(const rn_limit *limit)
{
    return limit->spec.share.ceiling.count;
}

static void share_note(rn_counter *counter, ration_time now, const rn_ask *ask, rn_note what, ration_reason reason,
                       bool is_short)
{
    rn_ceiling *ceiling = counter->u.share;
    const rn_ceiling_ask asked = ceiling_ask(ask);

    switch (what) {
    case RN_NOTE_ASKED:
        rn_ceiling_asked(ceiling, now, &asked, reason, is_short);
        break;
    case RN_NOTE_WAIT:
        rn_ceiling_wait(ceiling, now, &asked);
        break;
    case RN_NOTE_SHORT:
        rn_ceiling_short(ceiling, now, &asked);
        break;
    case RN_NOTE_FOUND:
        rn_ceiling_found(ceiling, now, asked.tenant, reason);
        break;
    case RN_NOTE_LEAVE:
        rn_ceiling_leave(ceiling, now, &asked, is_short, false);
        break;
    case RN_NOTE_GRANTED:
        rn_ceiling_leave(ceiling, now, &asked, is_short, true);
        break;
    case RN_NOTE_REFUSED:
        rn_ceiling_refused(ceiling, asked.tenant, reason);
        break;
    }
}

uint32_t rn_share_touched(rn_counter *counter)
{
    return rn_ceiling_touched(counter->u.share);
}

int64_t rn_share_pool(rn_counter *counter, ration_time now)
{
    return rn_ceiling_pool(counter->u.share, now);
}

int64_t rn_share_need(rn_counter *counter, const rn_ask *ask)
{
    const rn_ceiling_ask asked = ceiling_ask(ask);

    return rn_ceiling_need(counter->u.share, &asked);
}

ration_time rn_share_pool_change(rn_counter *counter, ration_time now)
{
    return rn_ceiling_pool_change(counter->u.share, now);
}

void rn_share_facts(rn_counter *counter, ration_time now, const rn_ask *ask, ration_facts *out)
{
    const rn_ceiling_ask asked = ceiling_ask(ask);

    rn_ceiling_facts(counter->u.share, now, &asked, out);
}

void rn_share_blocking(rn_counter *counter, ration_time now, const rn_ask *ask,
                       void (*blocking)(void *ctx, rn_ceiling_hold *hold), void *ctx)
{
    const rn_ceiling_ask asked = ceiling_ask(ask);
    rn_ceiling_when when = {.at = {RATION_NEVER_US}, .blocking = blocking, .ctx = ctx};

    rn_ceiling_when_free(counter->u.share, now, &asked, RATION_REASON_GUARANTEE_ON_LOAN, &when);
}

int rn_share_report(rn_counter *counter, ration_time now, ration_share_report *out)
{
    return rn_ceiling_shares(counter->u.share, now, out);
}

void rn_share_resize(rn_counter *counter, ration_time now, int64_t size)
{
    rn_ceiling_resize(counter->u.share, now, size);
}

int64_t rn_share_weight(const rn_limit *limit, ration_text tenant)
{
    const uint32_t number = rn_ceiling_spec_find(&limit->spec.share.ceiling, tenant);
    const ration_tenant_share *declared = number == RN_TENANT_NONE ? NULL : &limit->rule->share.tenants[number];

    return declared != NULL && rn_text_is(tenant, declared->name) ? declared->weight : 0;
}

const rn_kind rn_kind_share = {
    .name = "share",
    .reason = RATION_REASON_NOTHING_TO_BORROW,
    .lanes = RN_LANES_TENANTS,
    .prepare = share_prepare,
    .unprepare = share_unprepare,
    .init = share_init,
    .fini = share_fini,
    .check = share_check,
    .take = share_take,
    .settle = share_settle,
    .give_back = share_give_back,
    .next_change = share_next_change,
    .observe = share_observe,
    .describe = share_describe,
    .reset = share_reset,
    .carry = share_carry,
    .carry_hold = share_carry_hold,
    .is_fresh = share_is_fresh,
    .lane_of = share_lane_of,
    .lane_count = share_lane_count,
    .note = share_note,
};
