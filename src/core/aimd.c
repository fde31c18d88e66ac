/* SPDX-License-Identifier: MIT */

/*
 * An adaptive limit: what it stands at, and what its classes keep from each other. Chapter 5.
 *
 * The limit L grows by demand, one step a window in which the provider never said "too many", and shrinks by a factor
 * when it does, once a cooldown, because one burst fails many calls at once. Nothing moves by time alone: time only
 * says what demand, or the next throttle, will do. With `recovery: fast` the steps after a decrease double until L is
 * back at nine tenths of what was too much; from there it feels its way again.
 *
 * A reserve is kept as what its class has not yet used of it: whoever else asks must leave that much free. So no set of
 * other classes, however many, can sit on a reserved slice.
 *
 * Units: L and its spec in whole units, charges and reserves in micro-units.
 * Invariants: min <= L <= max once started; `climb_to` is 0 or above L; `stride` is at least one step.
 */
#include "core/aimd.h"

#include "base/fault.h"
#include "base/text.h"
#include "base/units.h"

#define LIMIT_MAX 1000000
#define CLASSES_MAX 64

/* A number of up to CLASSES_MAX times 20 bits and what a sum of as many such fractions adds to it. */
#define LIMBS 44

typedef struct wide {
    uint32_t limb[LIMBS]; /* the lowest first */
} wide;

/* ---- the rule ---- */

static int class_fault(ration_fault *fault, const char *name, const char *key, const char *text)
{
    rn_builder builder;

    rn_builder_init(&builder, fault->path, sizeof fault->path);
    rn_builder_str(&builder, "classes.");
    rn_builder_str(&builder, name);
    rn_builder_str(&builder, key);
    rn_builder_init(&builder, fault->text, sizeof fault->text);
    rn_builder_str(&builder, text);
    return RATION_ERR_CONFIG;
}

static wide wide_times(const wide *a, uint32_t factor)
{
    wide product = {{0}};
    uint64_t carry = 0;

    for (size_t i = 0; i < LIMBS; i++) {
        carry += (uint64_t)a->limb[i] * factor;
        product.limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return product;
}

static wide wide_plus(const wide *a, const wide *b)
{
    wide sum = {{0}};
    uint64_t carry = 0;

    for (size_t i = 0; i < LIMBS; i++) {
        carry += (uint64_t)a->limb[i] + b->limb[i];
        sum.limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return sum;
}

static bool wide_above(const wide *a, const wide *b)
{
    for (size_t i = LIMBS; i-- > 0;) {
        if (a->limb[i] != b->limb[i])
            return a->limb[i] > b->limb[i];
    }
    return false;
}

/* Is the sum of the shares above 1? Exactly: as one fraction whose denominator is the product of all of theirs. */
static bool shares_exceed_one(const ration_adaptive_rule *rule)
{
    wide over = {{0}};
    wide under = {{1}};

    for (size_t i = 0; i < rule->class_count; i++) {
        const ration_ratio share = rule->classes[i].reserved;

        if (share.num == 0)
            continue;

        const wide added = wide_times(&under, (uint32_t)share.num);

        over = wide_times(&over, (uint32_t)share.den);
        over = wide_plus(&over, &added);
        under = wide_times(&under, (uint32_t)share.den);
    }
    return wide_above(&over, &under);
}

/* A fraction with parts from 0 and 1 to a million, at most 1. */
static bool is_share(ration_ratio ratio)
{
    return ratio.num >= 0 && ratio.den >= 1 && ratio.den <= 1000000 && ratio.num <= ratio.den;
}

static int classes_check(const ration_adaptive_rule *rule, ration_fault *fault)
{
    if (rule->class_count > CLASSES_MAX)
        return rn_rule_fault(fault, "classes", "there may be at most 64 classes");
    if (rule->class_count > 0 && rule->classes == NULL)
        return rn_rule_fault(fault, "classes", "the classes are missing");
    for (size_t i = 0; i < rule->class_count; i++) {
        const char *const name = rule->classes[i].name;
        const ration_ratio share = rule->classes[i].reserved;

        if (name == NULL || name[0] == '\0')
            return rn_rule_fault(fault, "classes", "every class needs a name");
        for (size_t k = 0; k < i; k++) {
            if (rn_text_is(ration_text_of(name), rule->classes[k].name))
                return class_fault(fault, name, "", "another class has that name");
        }
        if (!(share.den == 0 && share.num == 0) && !is_share(share))
            return class_fault(fault, name, ".reservedShare", "a reserved share is from 0 to 1");
    }
    if (shares_exceed_one(rule))
        return rn_rule_fault(fault, "classes", "the reserved shares add up to more than 1 (100 %)");
    return RATION_OK;
}

static int lend_check(const ration_adaptive_rule *rule, ration_fault *fault)
{
    if (rule->lend_horizon_us < 0 || rule->lend_horizon_us > RATION_TIME_MAX_US)
        return rn_rule_fault(fault, "lend.reclaimHorizon", "the horizon must be above zero");
    if (rule->lend_idle_us < 0 || rule->lend_idle_us > RATION_TIME_MAX_US)
        return rn_rule_fault(fault, "lend.idleAfter", "idleAfter must be above zero");
    if (rule->lend_horizon_us == 0 && rule->lend_idle_us != 0)
        return rn_rule_fault(fault, "lend.reclaimHorizon", "lending needs a horizon above zero");
    if (rule->lend_horizon_us != 0 && rule->lend_idle_us <= rule->lend_horizon_us) {
        return rn_rule_fault(fault, "lend.idleAfter",
                             "idleAfter must be longer than the horizon: a class quiet for just the horizon may be one "
                             "that waits for a loan to end");
    }
    return RATION_OK;
}

static int limits_check(const rn_aimd_spec *spec, ration_fault *fault)
{
    if (spec->min < 1 || spec->min > LIMIT_MAX)
        return rn_rule_fault(fault, "minLimit", "the lowest limit must be from 1 to 1000000");
    if (spec->max < 1 || spec->max > LIMIT_MAX)
        return rn_rule_fault(fault, "maxLimit", "the highest limit must be from 1 to 1000000");
    if (spec->min > spec->max)
        return rn_rule_fault(fault, "minLimit", "the lowest limit is above the highest");
    if (spec->initial == 0)
        return rn_rule_fault(fault, "initialLimit", "an adaptive limit needs an initial limit");
    if (spec->initial < 1)
        return rn_rule_fault(fault, "initialLimit", "the initial limit must be at least 1");
    if (spec->initial < spec->min || spec->initial > spec->max)
        return rn_rule_fault(fault, "initialLimit", "the initial limit must lie between minLimit and maxLimit");
    return RATION_OK;
}

static bool is_span(int64_t us)
{
    return us >= 1 && us <= RATION_TIME_MAX_US;
}

int rn_aimd_spec_init(rn_aimd_spec *spec, const ration_adaptive_rule *rule, ration_fault *fault)
{
    const ration_ratio half = {1, 2};
    const rn_aimd_spec filled = {
        .initial = rule->initial_limit,
        .min = rule->min_limit != 0 ? rule->min_limit : 1,
        .max = rule->max_limit != 0 ? rule->max_limit : 1000,
        .step = rule->increase_step != 0 ? rule->increase_step : 1,
        .factor = rule->decrease_factor.den != 0 ? rule->decrease_factor : half,
        .window_us = rule->window_us != 0 ? rule->window_us : 5000000,
        .cooldown_us = rule->cooldown_us != 0 ? rule->cooldown_us : 10000000,
        .lease_ttl_us = rule->lease_ttl_us != 0 ? rule->lease_ttl_us : 30000000,
        .fast = rule->recovery_fast,
    };
    int err = limits_check(&filled, fault);

    if (err != RATION_OK)
        return err;
    if (filled.step < 1 || filled.step > LIMIT_MAX)
        return rn_rule_fault(fault, "aimd.increaseStep", "the step must be from 1 to 1000000");
    if (!is_share(filled.factor) || filled.factor.num == 0 || filled.factor.num == filled.factor.den)
        return rn_rule_fault(fault, "aimd.decreaseFactor", "the factor must lie between 0 and 1, and be neither");
    if (!is_span(filled.window_us))
        return rn_rule_fault(fault, "aimd.window", "the window must be above zero");
    if (!is_span(filled.cooldown_us))
        return rn_rule_fault(fault, "aimd.cooldown", "the cooldown must be above zero");
    if (!is_span(filled.lease_ttl_us))
        return rn_rule_fault(fault, "leaseTtl", "the time to live of a lease must be above zero");
    err = classes_check(rule, fault);
    if (err == RATION_OK)
        err = lend_check(rule, fault);
    if (err == RATION_OK)
        *spec = filled;
    return err;
}

/* ---- the limit ---- */

void rn_aimd_init(rn_aimd *aimd, const rn_aimd_spec *spec)
{
    *aimd = (rn_aimd){.limit = spec->initial, .stride = spec->step};
}

void rn_aimd_start(rn_aimd *aimd, ration_time now)
{
    if (aimd->started)
        return;
    aimd->started = true;
    aimd->grown_at = now;
}

ration_time rn_aimd_grows_at(const rn_aimd *aimd, const rn_aimd_spec *spec)
{
    if (!aimd->started || aimd->limit >= spec->max)
        return ration_time_of(RATION_NEVER_US);

    const ration_time since = aimd->throttled ? rn_time_max(aimd->grown_at, aimd->throttled_at) : aimd->grown_at;

    return rn_time_add(since, spec->window_us);
}

int64_t rn_aimd_next(const rn_aimd *aimd, const rn_aimd_spec *spec)
{
    if (aimd->climb_to > 0)
        return rn_min(rn_add(aimd->limit, aimd->stride), aimd->climb_to);
    return rn_min(rn_add(aimd->limit, spec->step), spec->max);
}

bool rn_aimd_demand(rn_aimd *aimd, const rn_aimd_spec *spec, ration_time now)
{
    if (rn_time_before(now, rn_aimd_grows_at(aimd, spec)))
        return false;

    aimd->limit = rn_aimd_next(aimd, spec);
    aimd->grown_at = now;
    if (aimd->climb_to > aimd->limit) {
        aimd->stride = rn_min(rn_mul(aimd->stride, 2), spec->max);
    } else {
        aimd->climb_to = 0;
    }
    return true;
}

bool rn_aimd_throttle(rn_aimd *aimd, const rn_aimd_spec *spec, ration_time now)
{
    const bool cooling = aimd->decreased && rn_time_before(now, rn_time_add(aimd->decreased_at, spec->cooldown_us));
    const int64_t before = aimd->limit;
    const ration_ratio nine_tenths = {9, 10};

    rn_aimd_start(aimd, now);
    aimd->throttled = true;
    aimd->throttled_at = now;
    if (cooling)
        return false;

    aimd->decreased = true;
    aimd->decreased_at = now;
    aimd->limit = rn_max(spec->min, rn_ratio_of(before, spec->factor));
    if (spec->fast) {
        const int64_t back = rn_ratio_of(before, nine_tenths);

        aimd->climb_to = back > aimd->limit ? back : 0;
        aimd->stride = spec->step;
    }
    return aimd->limit < before;
}

/* ---- classes ---- */

int64_t rn_class_reserved(int64_t limit, ration_ratio share)
{
    if (share.num == 0)
        return 0;
    return rn_mul(rn_div_ceil(rn_mul(limit, share.num), share.den), RATION_UNIT);
}

int64_t rn_class_kept(const ration_adaptive_rule *rule, int64_t limit, const rn_class_held *held, uint32_t class_index,
                      uint64_t lending)
{
    int64_t kept = 0;

    for (uint32_t i = 1; i <= rule->class_count; i++) {
        if (i == class_index || (lending >> (i - 1) & 1) != 0)
            continue;
        kept = rn_add(kept, rn_max(0, rn_sub(rn_class_reserved(limit, rule->classes[i - 1].reserved), held->of[i])));
    }
    return kept;
}

/* What is left at `limit` when nothing is held and the others' reserves are kept; with `floored` ones, a bound over
 * what is left at this or any lower limit: limit less its shares, which only grows with the limit, is below it. */
static int64_t class_left(const ration_adaptive_rule *rule, int64_t limit, uint32_t class_index, bool floored)
{
    int64_t left = limit;

    for (uint32_t i = 1; i <= rule->class_count; i++) {
        const ration_ratio share = rule->classes[i - 1].reserved;

        if (i == class_index || share.num == 0)
            continue;
        left -= floored ? rn_ratio_of(limit, share) : rn_div_ceil(limit * share.num, share.den);
    }
    return left;
}

int64_t rn_class_most(const ration_adaptive_rule *rule, const rn_aimd_spec *spec, uint32_t class_index)
{
    int64_t most = class_left(rule, spec->max, class_index, false);

    for (int64_t limit = spec->max - 1; limit >= spec->min; limit--) {
        if (class_left(rule, limit, class_index, true) <= most)
            break;
        most = rn_max(most, class_left(rule, limit, class_index, false));
    }
    return rn_mul(most, RATION_UNIT);
}
