/* SPDX-License-Identifier: MIT */

/*
 * The limit kind `adaptive`: as many calls at once as the provider takes. Chapter 5.
 *
 * AIMD says where the limit stands, classes what of it is kept for others; both are pure functions in aimd.c. Classes
 * are lanes. After a decrease more may be held than the limit: nothing is taken back, and nothing granted until it has
 * drained.
 *
 * Where idle classes lend, a class that holds nothing, waits for nothing and has been quiet long enough keeps nothing
 * from a request whose declared hold is within the horizon. Whoever asks keeps its slice from that moment on, so it is
 * whole again within the horizon.
 */

#include "core/limit.h"

#include "base/mem.h"
#include "base/text.h"

static const ration_adaptive_rule *rule_of(const rn_limit *limit)
{
    return &limit->rule->adaptive;
}

static size_t lanes_of(const rn_limit *limit)
{
    return rule_of(limit)->class_count + 1;
}

static int adaptive_prepare(rn_limit *limit, ration_fault *fault)
{
    const size_t lanes = lanes_of(limit);
    rn_aimd_spec aimd;
    const int err = rn_aimd_spec_init(&aimd, rule_of(limit), fault);

    if (err != RATION_OK)
        return err;

    rn_adaptive_spec *spec = rn_arena_zalloc(limit->arena, 1, sizeof *spec + lanes * sizeof spec->most[0]);

    if (spec == NULL)
        return RATION_ERR_NOMEM;
    spec->aimd = aimd;
    for (uint32_t i = 0; i < lanes; i++)
        spec->most[i] = rn_class_most(rule_of(limit), &spec->aimd, i);
    limit->spec.adaptive = spec;
    return RATION_OK;
}

static void adaptive_fini(rn_counter *counter)
{
    rn_adaptive *a = counter->u.adaptive;

    if (a == NULL)
        return;
    rn_mem_free(counter->mem, a->use);
    rn_mem_free(counter->mem, a->held);
    rn_mem_free(counter->mem, a);
    counter->u.adaptive = NULL;
}

static int adaptive_init(rn_counter *counter, ration_time now)
{
    const rn_limit *limit = counter->limit;
    const size_t lanes = lanes_of(limit);
    const bool lends = rule_of(limit)->lend_horizon_us > 0;
    rn_adaptive *a = rn_mem_zalloc(counter->mem, 1, sizeof *a);

    counter->u.adaptive = a;
    if (a == NULL)
        return RATION_ERR_NOMEM;
    a->held = rn_mem_zalloc(counter->mem, 1, sizeof *a->held + lanes * sizeof a->held->of[0]);
    a->use = lends ? rn_mem_zalloc(counter->mem, lanes, sizeof *a->use) : NULL;
    if (a->held == NULL || (lends && a->use == NULL)) {
        adaptive_fini(counter);
        return RATION_ERR_NOMEM;
    }
    for (size_t i = 0; lends && i < lanes; i++)
        a->use[i].last_activity = rn_time_min(counter->started_at, now);
    rn_aimd_init(&a->aimd, &limit->spec.adaptive->aimd);
    return RATION_OK;
}

/* When a class becomes idle, if nothing happens; RATION_NEVER_US: it is in use. */
static ration_time class_idle_at(const rn_counter *counter, size_t lane)
{
    const rn_adaptive *a = counter->u.adaptive;

    if (a->held->of[lane] > 0 || a->use[lane].waiting > 0)
        return ration_time_of(RATION_NEVER_US);
    return rn_time_add(a->use[lane].last_activity, rule_of(counter->limit)->lend_idle_us);
}

/* May the request run on what idle classes have reserved? */
static bool borrows(const rn_counter *counter, const rn_ask *ask)
{
    return counter->u.adaptive->use != NULL && ask->hold_us != RATION_UNSET &&
           ask->hold_us <= rule_of(counter->limit)->lend_horizon_us;
}

/* The classes, a bit each, whose reserve is lent to the request. */
static uint64_t lending(const rn_counter *counter, ration_time now, const rn_ask *ask)
{
    const ration_adaptive_rule *rule = rule_of(counter->limit);
    uint64_t classes = 0;

    if (!borrows(counter, ask))
        return 0;
    for (size_t i = 0; i < rule->class_count; i++) {
        if (class_idle_at(counter, i + 1).us <= now.us)
            classes |= UINT64_C(1) << i;
    }
    return classes;
}

/* What is left for the request when the limit stands at `limit`. */
static int64_t room(const rn_counter *counter, ration_time now, const rn_ask *ask, int64_t limit)
{
    const rn_adaptive *a = counter->u.adaptive;
    const int64_t kept = rn_class_kept(rule_of(counter->limit), limit, a->held, ask->lane, lending(counter, now, ask));

    return rn_sub(rn_sub(rn_mul(limit, RATION_UNIT), a->held->total), kept);
}

/* The largest charge that can ever be granted. Who borrows may come to find every other class idle. */
static int64_t most_of(const rn_counter *counter, const rn_ask *ask)
{
    const rn_adaptive_spec *spec = counter->limit->spec.adaptive;

    return borrows(counter, ask) ? rn_mul(spec->aimd.max, RATION_UNIT) : spec->most[ask->lane];
}

static void adaptive_check(rn_counter *counter, ration_time now, const rn_ask *ask, rn_verdict *out)
{
    const rn_limit *limit = counter->limit;
    const rn_adaptive_spec *spec = limit->spec.adaptive;
    const rn_aimd *aimd = &counter->u.adaptive->aimd;
    int64_t level = aimd->limit;

    *out = (rn_verdict){.fit = RN_FIT_NOW, .at = now};
    if (ask->enforcer || limit->enforcer)
        return;
    if (ask->lane == RN_LANE_UNKNOWN || ask->charge > most_of(counter, ask)) {
        out->fit = RN_FIT_REFUSED;
        out->reason = ask->lane == RN_LANE_UNKNOWN ? RATION_REASON_UNKNOWN_CLASS : RATION_REASON_COST_EXCEEDS_LIMIT;
        out->available = RATION_UNSET;
        out->capacity = ask->lane == RN_LANE_UNKNOWN ? RATION_UNSET : most_of(counter, ask);
        out->at.us = RATION_NEVER_US;
        return;
    }

    int64_t left = room(counter, now, ask, level);

    if (left < ask->charge && ask->demand && rn_aimd_grows_at(aimd, &spec->aimd).us <= now.us) {
        level = rn_aimd_next(aimd, &spec->aimd);
        left = room(counter, now, ask, level);
    }
    out->available = rn_max(left, 0);
    out->capacity = rn_mul(level, RATION_UNIT);
    if (left < ask->charge || ask->ahead > 0) {
        out->fit = left < ask->charge ? RN_FIT_SHORT : RN_FIT_NOW;
        out->reason = RATION_REASON_ADAPTIVE_FULL;
        out->at.us = RATION_NEVER_US;
    }
}

static void class_used(rn_counter *counter, ration_time now, uint32_t lane)
{
    if (counter->u.adaptive->use != NULL)
        counter->u.adaptive->use[lane].last_activity = now;
}

static void held_add(rn_counter *counter, uint32_t lane, int64_t charge)
{
    rn_class_held *held = counter->u.adaptive->held;

    held->total = rn_add(held->total, charge);
    if (lane != RN_LANE_UNKNOWN)
        held->of[lane] = rn_add(held->of[lane], charge);
}

static void adaptive_take(rn_counter *counter, ration_time now, const rn_ask *ask, rn_hold *hold)
{
    rn_aimd_start(&counter->u.adaptive->aimd, now);
    held_add(counter, ask->lane, ask->charge);
    hold->charge = ask->charge;
    if (ask->lane != RN_LANE_UNKNOWN)
        class_used(counter, now, ask->lane);
}

static void adaptive_settle(rn_counter *counter, ration_time now, rn_hold *hold, int64_t charge)
{
    (void)now;
    held_add(counter, hold->lane, rn_sub(charge, hold->charge));
    hold->charge = charge;
}

static void adaptive_give_back(rn_counter *counter, ration_time now, rn_hold *hold)
{
    held_add(counter, hold->lane, -hold->charge);
    if (hold->lane != RN_LANE_UNKNOWN)
        class_used(counter, now, hold->lane);
}

/* It grows by the demand of those who wait, or an idle class begins to lend. */
static ration_time adaptive_next_change(rn_counter *counter, ration_time now, const rn_ask *ask)
{
    const ration_adaptive_rule *rule = rule_of(counter->limit);
    const rn_adaptive *a = counter->u.adaptive;
    ration_time at = rn_aimd_grows_at(&a->aimd, &counter->limit->spec.adaptive->aimd);

    if (!borrows(counter, ask))
        return at;
    for (size_t i = 0; i < rule->class_count; i++) {
        const ration_time idle_at = class_idle_at(counter, i + 1);

        if (rn_time_before(now, idle_at))
            at = rn_time_min(at, idle_at);
    }
    return at;
}

static void adaptive_observe(rn_counter *counter, ration_time now, rn_hold *hold, const rn_reply *reply)
{
    (void)hold;
    if (reply->throttled)
        (void)rn_aimd_throttle(&counter->u.adaptive->aimd, &counter->limit->spec.adaptive->aimd, now);
}

static void adaptive_describe(rn_counter *counter, ration_time now, ration_counter_report *out)
{
    const rn_adaptive *a = counter->u.adaptive;

    (void)now;
    out->current = rn_mul(a->aimd.limit, RATION_UNIT);
    out->held = a->held->total;
    out->class_count = rule_of(counter->limit)->class_count;
}

void rn_adaptive_classes(const rn_counter *counter, ration_class_report *out)
{
    const ration_adaptive_rule *rule = rule_of(counter->limit);
    const rn_adaptive *a = counter->u.adaptive;

    for (size_t i = 0; i < rule->class_count; i++) {
        out[i] = (ration_class_report){
            .name = ration_text_of(rule->classes[i].name),
            .reserved = rn_class_reserved(a->aimd.limit, rule->classes[i].reserved),
            .held = a->held->of[i + 1],
        };
    }
}

/* The lane of a class by its name under other rules; no class stays none. */
static uint32_t lane_like(const rn_limit *limit, const rn_limit *from, uint32_t lane)
{
    if (lane == RN_CLASS_NONE || lane == RN_LANE_UNKNOWN)
        return lane;

    const char *name = rule_of(from)->classes[lane - 1].name;

    for (uint32_t i = 0; i < rule_of(limit)->class_count; i++) {
        if (rn_text_is(ration_text_of(name), rule_of(limit)->classes[i].name))
            return i + 1;
    }
    return RN_LANE_UNKNOWN;
}

/* Where it stands it stays, within the bounds that hold now; one that nobody has asked begins where it begins now. */
static void adaptive_carry(rn_counter *counter, ration_time now, rn_counter *from)
{
    const rn_aimd_spec *spec = &counter->limit->spec.adaptive->aimd;
    rn_adaptive *to = counter->u.adaptive;

    (void)now;
    if (from->u.adaptive->aimd.started) {
        to->aimd = from->u.adaptive->aimd;
        to->aimd.limit = rn_max(spec->min, rn_min(to->aimd.limit, spec->max));
        to->aimd.climb_to = spec->fast ? rn_min(to->aimd.climb_to, spec->max) : 0;
    }
    for (uint32_t i = 0; i < lanes_of(from->limit); i++) {
        const uint32_t lane = lane_like(counter->limit, from->limit, i);

        if (to->use != NULL && from->u.adaptive->use != NULL && lane != RN_LANE_UNKNOWN)
            to->use[lane].last_activity = from->u.adaptive->use[i].last_activity;
    }
}

static void adaptive_carry_hold(rn_counter *counter, const rn_counter *from, rn_hold *was, rn_hold *hold)
{
    hold->lane = lane_like(counter->limit, from->limit, was->lane);
    held_add(counter, hold->lane, hold->charge);
}

/* Its first window begins anew; one that nobody has asked begins with the first who does. */
static void adaptive_reset(rn_counter *counter, ration_time now)
{
    rn_aimd *aimd = &counter->u.adaptive->aimd;
    const bool started = aimd->started;

    rn_aimd_init(aimd, &counter->limit->spec.adaptive->aimd);
    if (started)
        rn_aimd_start(aimd, now);
}

/* Once it has begun it has learned something, be it only how long its window has run. */
static bool adaptive_is_fresh(rn_counter *counter, ration_time now)
{
    (void)now;
    return !counter->u.adaptive->aimd.started;
}

static uint32_t adaptive_lane_of(const rn_limit *limit, ration_text tenant, ration_text class_name)
{
    const ration_adaptive_rule *rule = rule_of(limit);

    (void)tenant;
    if (class_name.data == NULL || rule->class_count == 0)
        return RN_CLASS_NONE;
    for (uint32_t i = 0; i < rule->class_count; i++) {
        if (rn_text_is(class_name, rule->classes[i].name))
            return i + 1;
    }
    return RN_LANE_UNKNOWN;
}

static void adaptive_note(rn_counter *counter, ration_time now, const rn_ask *ask, rn_note what, ration_reason reason,
                          bool is_short)
{
    rn_class_use *use = counter->u.adaptive->use;

    (void)reason;
    (void)is_short;
    if (use == NULL)
        return;
    switch (what) {
    case RN_NOTE_ASKED:
        class_used(counter, now, ask->lane);
        break;
    case RN_NOTE_WAIT:
        use[ask->lane].waiting++;
        class_used(counter, now, ask->lane);
        break;
    case RN_NOTE_LEAVE:
    case RN_NOTE_GRANTED:
        use[ask->lane].waiting--;
        class_used(counter, now, ask->lane);
        break;
    case RN_NOTE_SHORT:
    case RN_NOTE_FOUND:
    case RN_NOTE_REFUSED:
        break;
    }
}

/* An attempt finds its cap full. */
static bool adaptive_demand(rn_counter *counter, ration_time now, const rn_ask *ask)
{
    rn_aimd *aimd = &counter->u.adaptive->aimd;
    const rn_adaptive_spec *spec = counter->limit->spec.adaptive;

    if (counter->limit->enforcer)
        return false;
    rn_aimd_start(aimd, now);
    return ask->charge <= most_of(counter, ask) && room(counter, now, ask, aimd->limit) < ask->charge &&
           rn_aimd_demand(aimd, &spec->aimd, now);
}

static int64_t adaptive_level(const rn_counter *counter)
{
    return rn_mul(counter->u.adaptive->aimd.limit, RATION_UNIT);
}

static bool adaptive_save(rn_counter *counter, ration_time now, ration_part *parts, ration_record *out)
{
    const rn_aimd *a = &counter->u.adaptive->aimd;

    (void)now;
    (void)parts;
    out->type = RATION_RECORD_ADAPTIVE;
    out->u.adaptive = (ration_adaptive_record){
        .limit = a->limit,
        .grown_at = a->grown_at,
        .throttled = a->throttled,
        .decreased = a->decreased,
        .throttled_at = a->throttled_at,
        .decreased_at = a->decreased_at,
        .stride = a->stride,
        .climb_to = a->climb_to,
    };
    return a->started;
}

/* Within the bounds that hold now. */
static void adaptive_load(rn_counter *counter, ration_time now, const ration_record *record)
{
    const ration_adaptive_record *kept = &record->u.adaptive;
    const rn_aimd_spec *spec = &counter->limit->spec.adaptive->aimd;

    (void)now;
    counter->u.adaptive->aimd = (rn_aimd){
        .limit = rn_max(spec->min, rn_min(kept->limit, spec->max)),
        .started = true,
        .throttled = kept->throttled,
        .decreased = kept->decreased,
        .grown_at = kept->grown_at,
        .throttled_at = kept->throttled_at,
        .decreased_at = kept->decreased_at,
        .stride = kept->stride,
        .climb_to = rn_min(kept->climb_to, spec->max),
    };
}

const rn_kind rn_kind_adaptive = {
    .name = "adaptive",
    .reason = RATION_REASON_ADAPTIVE_FULL,
    .lanes = RN_LANES_CLASSES,
    .prepare = adaptive_prepare,
    .init = adaptive_init,
    .fini = adaptive_fini,
    .check = adaptive_check,
    .take = adaptive_take,
    .settle = adaptive_settle,
    .give_back = adaptive_give_back,
    .next_change = adaptive_next_change,
    .observe = adaptive_observe,
    .describe = adaptive_describe,
    .reset = adaptive_reset,
    .carry = adaptive_carry,
    .carry_hold = adaptive_carry_hold,
    .is_fresh = adaptive_is_fresh,
    .lane_of = adaptive_lane_of,
    .lane_count = lanes_of,
    .note = adaptive_note,
    .demand = adaptive_demand,
    .level = adaptive_level,
    .save = adaptive_save,
    .load = adaptive_load,
};
