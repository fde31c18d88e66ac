/* SPDX-License-Identifier: MIT */
/*
 * Limits of kind `rate`: a token bucket in exact integers. Chapter 3, "rate".
 *
 * Credit is kept in units in which one microsecond earns `earn` and one micro-unit costs `price`; both are the rate's
 * own numbers, reduced. Neither refill nor payment divides, so no fraction is ever lost, whatever the rate and however
 * often the bucket is asked. Only a wait divides, and rounds up: at the stated time there is enough, 1 us before there
 * is not.
 *
 * One unit in hand: where requests are counted, a grant leaves a unit in the bucket, so that the provider's bucket
 * stays one ahead of ours and a request that travels faster than the one before it is not refused there.
 *
 * Invariant: -cap <= credit <= cap <= 2^53, and `at` never moves back.
 */
#include "core/limit.h"

#include "base/units.h"

#define KEPT_ABOVE_US (10 * INT64_C(1000000)) /* to refill */

static int64_t default_burst(const ration_limit_rule *rule)
{
    /* units / per_us is in micro-units per microsecond, which is units per second. */
    return rn_mul(rn_max(rule->rate.units / rule->rate.per_us, 1), RATION_UNIT);
}

static int64_t default_margin(const ration_limit_rule *rule, int64_t burst)
{
    return rule->counts != RATION_COUNTS_COST && burst >= 2 * RATION_UNIT ? RATION_UNIT : 0;
}

static int bucket_prepare(rn_limit *limit, ration_fault *fault)
{
    const ration_limit_rule *const rule = limit->rule;
    rn_bucket_spec spec = {0};

    if (rule->rate.units <= 0 || rule->rate.per_us <= 0 || rule->rate.units > RATION_UNITS_MAX ||
        rule->rate.per_us > RATION_TIME_MAX_US)
        return rn_rule_fault(fault, "rate", "a rate limit needs a rate above zero");
    if (rule->burst < 0 || rule->burst > RATION_UNITS_MAX)
        return rn_rule_fault(fault, "burst", "the burst must be from 0 to 2^53 micro-units");
    if (rule->margin < RATION_UNSET)
        return rn_rule_fault(fault, "margin", "the margin must not be negative");

    spec.burst = rule->burst != 0 ? rule->burst : default_burst(rule);
    if (!limit->enforcer)
        spec.margin = rule->margin != RATION_UNSET ? rule->margin : default_margin(rule, spec.burst);
    if (rule->counts != RATION_COUNTS_COST && spec.burst < RATION_UNIT)
        return rn_rule_fault(fault, "burst", "a limit that counts requests needs a burst of at least one unit");
    if (rule->counts != RATION_COUNTS_COST && spec.burst - spec.margin < RATION_UNIT)
        return rn_rule_fault(fault, "margin", "the margin must leave one unit of the burst for a request");
    if (spec.margin >= spec.burst)
        return rn_rule_fault(fault, "margin", "the margin must be below the burst");

    const int64_t divisor = (int64_t)rn_gcd((uint64_t)rule->rate.units, (uint64_t)rule->rate.per_us);

    spec.earn = rule->rate.units / divisor;
    spec.price = rule->rate.per_us / divisor;
    spec.cap = rn_mul(spec.burst, spec.price);
    if (spec.cap > RATION_UNITS_MAX)
        return rn_rule_fault(fault, "burst", "the burst times the microseconds per unit of the rate is above 2^53");
    limit->spec.bucket = spec;
    return RATION_OK;
}

static int bucket_init(rn_counter *counter, ration_time now)
{
    counter->u.bucket.at = now;
    counter->u.bucket.credit = counter->limit->spec.bucket.cap;
    /* The process before may have emptied it a moment before it died. */
    if (counter->unclean) {
        counter->u.bucket.at = counter->started_at;
        counter->u.bucket.credit = 0;
    }
    return RATION_OK;
}

static void bucket_fini(rn_counter *counter)
{
    (void)counter;
}

static void bucket_refill(rn_bucket *bucket, const rn_bucket_spec *spec, ration_time now)
{
    if (now.us <= bucket->at.us)
        return;

    const uint64_t idle_us = (uint64_t)now.us - (uint64_t)bucket->at.us;
    const uint64_t room = (uint64_t)(spec->cap - bucket->credit);

    /* Compare before multiplying: a product that would overflow fills the bucket anyway. */
    bucket->credit = idle_us > room / (uint64_t)spec->earn ? spec->cap : bucket->credit + (int64_t)idle_us * spec->earn;
    bucket->at = now;
}

void rn_bucket_step(rn_counter *counter, ration_time before, ration_time after)
{
    bucket_refill(&counter->u.bucket, &counter->limit->spec.bucket, before);
    counter->u.bucket.at = after;
}

/* Take `amount` micro-units, or give them back if it is negative, and stay within a burst of debt and a burst of
 * credit. */
static void bucket_pay(rn_bucket *bucket, const rn_bucket_spec *spec, int64_t amount)
{
    const int64_t credit = rn_sub(bucket->credit, rn_mul(amount, spec->price));

    bucket->credit = rn_max(-spec->cap, rn_min(credit, spec->cap));
}

/* When there will be `amount` micro-units above `margin`, if nobody takes any; `now` if they are there. */
static ration_time bucket_when(const rn_counter *counter, ration_time now, int64_t amount, int64_t margin)
{
    const rn_bucket_spec *const spec = &counter->limit->spec.bucket;
    const int64_t needed = rn_mul(rn_add(amount, margin), spec->price);
    const int64_t missing = rn_sub(needed, counter->u.bucket.credit);

    if (missing <= 0)
        return now;

    const ration_time at = rn_time_add(now, rn_div_ceil(missing, spec->earn));

    return rn_time_min(at, ration_time_of(RATION_TIME_MAX_US));
}

static void bucket_check(rn_counter *counter, ration_time now, const rn_ask *ask, rn_verdict *out)
{
    const rn_bucket_spec *const spec = &counter->limit->spec.bucket;
    rn_bucket *const bucket = &counter->u.bucket;
    const int64_t margin = ask->enforcer ? 0 : spec->margin;
    rn_verdict verdict = {.fit = RN_FIT_NOW, .at = now, .capacity = spec->burst - margin};

    bucket_refill(bucket, spec, now);
    verdict.available = rn_div_floor(bucket->credit, spec->price) - margin;
    if (ask->charge > verdict.capacity) {
        verdict.fit = RN_FIT_REFUSED;
        verdict.reason = RATION_REASON_COST_EXCEEDS_LIMIT;
        verdict.at.us = RATION_NEVER_US;
    } else if (ask->ahead > 0 || bucket_when(counter, now, ask->charge, margin).us > now.us) {
        verdict.fit = bucket_when(counter, now, ask->charge, margin).us > now.us ? RN_FIT_SHORT : RN_FIT_NOW;
        verdict.reason = RATION_REASON_RATE_LIMITED;
        verdict.at = bucket_when(counter, now, rn_add(ask->charge, ask->ahead), margin);
        verdict.estimate = ask->ahead > 0;
    }
    *out = verdict;
}

static void bucket_take(rn_counter *counter, ration_time now, const rn_ask *ask, rn_hold *hold)
{
    bucket_refill(&counter->u.bucket, &counter->limit->spec.bucket, now);
    bucket_pay(&counter->u.bucket, &counter->limit->spec.bucket, ask->charge);
    hold->charge = ask->charge;
}

/* Into debt by at most one burst; what is beyond is forgiven. */
static void bucket_settle(rn_counter *counter, ration_time now, rn_hold *hold, int64_t charge)
{
    bucket_refill(&counter->u.bucket, &counter->limit->spec.bucket, now);
    bucket_pay(&counter->u.bucket, &counter->limit->spec.bucket, rn_sub(charge, hold->charge));
    hold->charge = charge;
}

/* What has been spent stays spent. */
static void bucket_give_back(rn_counter *counter, ration_time now, rn_hold *hold)
{
    (void)counter;
    (void)now;
    (void)hold;
}

static ration_time bucket_next_change(rn_counter *counter, ration_time now, const rn_ask *ask)
{
    rn_verdict verdict;

    bucket_check(counter, now, ask, &verdict);
    return verdict.fit == RN_FIT_SHORT ? verdict.at : ration_time_of(RATION_NEVER_US);
}

static void bucket_observe(rn_counter *counter, ration_time now, rn_hold *hold, const rn_reply *reply)
{
    (void)counter;
    (void)now;
    (void)hold;
    (void)reply;
}

static void bucket_describe(rn_counter *counter, ration_time now, ration_counter_report *out)
{
    bucket_refill(&counter->u.bucket, &counter->limit->spec.bucket, now);
    out->available = rn_div_floor(counter->u.bucket.credit, counter->limit->spec.bucket.price);
    out->max = counter->limit->spec.bucket.burst;
    out->reserve = counter->limit->spec.bucket.margin;
    out->unit_us =
        rn_div_ceil(rn_mul(counter->limit->spec.bucket.price, RATION_UNIT), counter->limit->spec.bucket.earn);
}

static bool bucket_is_fresh(rn_counter *counter, ration_time now)
{
    bucket_refill(&counter->u.bucket, &counter->limit->spec.bucket, now);
    return counter->u.bucket.credit == counter->limit->spec.bucket.cap;
}

/* The level stays, as far as the burst has room for it: a reload never refills. */
static void bucket_carry(rn_counter *counter, ration_time now, rn_counter *from)
{
    const rn_bucket_spec *const spec = &counter->limit->spec.bucket;
    const rn_bucket_spec *const was = &from->limit->spec.bucket;

    bucket_refill(&from->u.bucket, was, now);

    const int64_t exact = from->u.bucket.credit;
    const int64_t credit = was->price == spec->price ? exact : rn_mul(rn_div_floor(exact, was->price), spec->price);

    counter->u.bucket.at = from->u.bucket.at;
    counter->u.bucket.credit = rn_max(-spec->cap, rn_min(credit, spec->cap));
}

static void bucket_carry_hold(rn_counter *counter, const rn_counter *from, rn_hold *was, rn_hold *hold)
{
    (void)counter;
    (void)from;
    (void)was;
    (void)hold;
}

static void bucket_reset(rn_counter *counter, ration_time now)
{
    counter->u.bucket.at = rn_time_max(counter->u.bucket.at, now);
    counter->u.bucket.credit = counter->limit->spec.bucket.cap;
}

static int bucket_grant(rn_counter *counter, ration_time now, int64_t units)
{
    bucket_refill(&counter->u.bucket, &counter->limit->spec.bucket, now);
    bucket_pay(&counter->u.bucket, &counter->limit->spec.bucket, -units);
    return RATION_OK;
}

/* One that is full again within seconds is not worth keeping. */
static bool bucket_save(rn_counter *counter, ration_time now, ration_part *parts, ration_record *out)
{
    const rn_bucket_spec *const spec = &counter->limit->spec.bucket;

    (void)parts;
    bucket_refill(&counter->u.bucket, spec, now);
    out->type = RATION_RECORD_BUCKET;
    out->u.available = rn_div_floor(counter->u.bucket.credit, spec->price);
    return spec->cap / spec->earn > KEPT_ABOVE_US;
}

static void bucket_load(rn_counter *counter, ration_time now, const ration_record *record)
{
    const rn_bucket_spec *const spec = &counter->limit->spec.bucket;
    const int64_t credit = rn_mul(record->u.available, spec->price);

    (void)now;
    counter->u.bucket.at = record->at;
    counter->u.bucket.credit = rn_max(-spec->cap, rn_min(credit, spec->cap));
    /* What was there then may have been taken since, a moment before the process died. */
    if (counter->unclean) {
        bucket_refill(&counter->u.bucket, spec, counter->started_at);
        counter->u.bucket.credit = rn_min(counter->u.bucket.credit, 0);
    }
}

const rn_kind rn_kind_rate = {
    .name = "rate",
    .reason = RATION_REASON_RATE_LIMITED,
    .timed = true,
    .prepare = bucket_prepare,
    .init = bucket_init,
    .fini = bucket_fini,
    .check = bucket_check,
    .take = bucket_take,
    .settle = bucket_settle,
    .give_back = bucket_give_back,
    .next_change = bucket_next_change,
    .observe = bucket_observe,
    .describe = bucket_describe,
    .reset = bucket_reset,
    .carry = bucket_carry,
    .carry_hold = bucket_carry_hold,
    .grant = bucket_grant,
    .is_fresh = bucket_is_fresh,
    .save = bucket_save,
    .load = bucket_load,
};
