/* SPDX-License-Identifier: MIT */

/*
 * A circuit breaker. Chapter 5.
 *
 * Closed, it counts results and opens when the strategy says so. Open, it waits for one back-off delay; then either a
 * few real requests may try (half-open), or a health check is due, and again one delay later if none answers.
 * Half-open, so many permits there are in all: as many successes close, one failure opens for the next delay, and a
 * probe that ends without a result gives its permit back. Probes that never come back are replaced one delay after the
 * first of those that are out was let through: the circuit is half-open anew, and counts from nothing.
 *
 * Every change of state, and every replacement, begins a generation. A result belongs to the generation in which its
 * call was let through, so a late one can never speak for a state that it has not seen.
 *
 * Invariants: `enter` alone writes `state` and `generation`. Half-open, permits + successes + those out = probes, and
 * `until` is known just while some are out. Counts are of the present generation. `until` is always after the instant
 * at which it was set, so that time cannot stand still.
 */
#include "core/breaker.h"

#include <string.h>

#include "base/fault.h"
#include "base/text.h"
#include "base/units.h"
#include "core/breaker_ring.h"

#define NUMBER_MAX 1000000
#define SIZE_MAX_RESULTS 65536
#define PART_MAX 1000000
#define QUORUM_MAX 1000

/* ---- the rule ---- */

static bool is_number(int64_t n, int64_t most)
{
    return n >= 1 && n <= most;
}

static bool is_fraction(ration_ratio ratio)
{
    return ratio.num >= 1 && ratio.num <= PART_MAX && ratio.den >= 1 && ratio.den <= PART_MAX;
}

static void rule_fill(ration_breaker_rule *rule)
{
    const ration_ratio half = {1, 2};

    if (rule->threshold == 0)
        rule->threshold = 5;
    if (rule->ratio.den == 0)
        rule->ratio = half;
    if (rule->size == 0)
        rule->size = 100;
    if (rule->duration_us == 0)
        rule->duration_us = 60000000;
    /* Fewer results than that are never kept: more would mean a circuit that cannot open. */
    if (rule->minimum_calls == 0)
        rule->minimum_calls = rule->strategy == RATION_BREAKER_COUNT ? rn_max(1, rn_min(rule->size, 10)) : 10;
    if (rule->quorum == 0)
        rule->quorum = 1;
    if (rule->probes == 0)
        rule->probes = 1;
    if (rule->backoff_initial_us == 0)
        rule->backoff_initial_us = 1000000;
    if (rule->idle_failures == 0)
        rule->idle_failures = 1;
}

static int strategy_check(const ration_breaker_rule *rule, ration_fault *fault)
{
    if (rule->strategy != RATION_BREAKER_CONSECUTIVE && rule->strategy != RATION_BREAKER_COUNT &&
        rule->strategy != RATION_BREAKER_SAMPLING)
        return rn_rule_fault(fault, "breaker.strategy", "a breaker is consecutive, count or sampling");
    if (!is_number(rule->threshold, NUMBER_MAX))
        return rn_rule_fault(fault, "breaker.threshold", "the threshold must be from 1 to 1000000 failures");
    if (!is_fraction(rule->ratio) || rule->ratio.num > rule->ratio.den)
        return rn_rule_fault(fault, "breaker.threshold", "the threshold must be above 0 and at most 1 (100 %)");
    if (!is_number(rule->size, SIZE_MAX_RESULTS))
        return rn_rule_fault(fault, "breaker.size", "the size must be from 1 to 65536 results");
    if (!is_number(rule->duration_us, RATION_TIME_MAX_US))
        return rn_rule_fault(fault, "breaker.duration", "the duration must be above zero");
    if (!is_number(rule->minimum_calls, NUMBER_MAX))
        return rn_rule_fault(fault, "breaker.minimumCalls", "the minimum must be from 1 to 1000000 calls");
    if (!is_number(rule->quorum, QUORUM_MAX))
        return rn_rule_fault(fault, "breaker.quorum", "the quorum must be from 1 to 1000 processes");
    if (rule->strategy == RATION_BREAKER_COUNT && rule->minimum_calls > rule->size) {
        return rn_rule_fault(fault, "breaker.minimumCalls",
                             "the minimum is above the size: so many results are never kept, and it could never open");
    }
    return RATION_OK;
}

static int recovery_check(const ration_breaker_rule *rule, ration_fault *fault)
{
    if (rule->recovery != RATION_RECOVERY_PROBE && rule->recovery != RATION_RECOVERY_HEALTH_CHECK)
        return rn_rule_fault(fault, "breaker.recovery", "recovery is by probe or by health check");
    if (!is_number(rule->probes, NUMBER_MAX))
        return rn_rule_fault(fault, "breaker.probe.n", "there must be from 1 to 1000000 probes");
    if (!is_number(rule->backoff_initial_us, RATION_TIME_MAX_US))
        return rn_rule_fault(fault, "breaker.backoff.initial", "the back-off must be above zero");
    if (rule->backoff_multiplier.den != 0 &&
        (!is_fraction(rule->backoff_multiplier) || rule->backoff_multiplier.num < rule->backoff_multiplier.den))
        return rn_rule_fault(fault, "breaker.backoff.multiplier", "the multiplier must be at least 1");
    if (rule->backoff_max_us < 0 || rule->backoff_max_us > RATION_TIME_MAX_US)
        return rn_rule_fault(fault, "breaker.backoff.max", "the longest back-off must be above zero");
    if (rule->backoff_max_us != 0 && rule->backoff_max_us < rule->backoff_initial_us)
        return rn_rule_fault(fault, "breaker.backoff.max", "the longest back-off is below the first");
    if (rule->idle_interval_us < 0 || rule->idle_interval_us > RATION_TIME_MAX_US)
        return rn_rule_fault(fault, "breaker.idleProbe.interval", "the interval must be above zero");
    if (!is_number(rule->idle_failures, NUMBER_MAX))
        return rn_rule_fault(fault, "breaker.idleProbe.failures", "there must be from 1 to 1000000 failures");
    return RATION_OK;
}

/* "50 %", or "2/3" of what has no whole percentage. */
static void say_ratio(rn_builder *text, ration_ratio ratio)
{
    if ((int64_t)ratio.num * 100 % ratio.den == 0) {
        rn_builder_int(text, (int64_t)ratio.num * 100 / ratio.den);
        rn_builder_str(text, " %");
        return;
    }
    rn_builder_int(text, ratio.num);
    rn_builder_char(text, '/');
    rn_builder_int(text, ratio.den);
}

static void say_count(char *buffer, size_t size, int64_t count, const char *one, const char *many)
{
    rn_builder text;

    rn_builder_init(&text, buffer, size);
    rn_builder_int(&text, count);
    rn_builder_char(&text, ' ');
    rn_builder_str(&text, count == 1 ? one : many);
}

static void spec_say(rn_breaker_spec *spec)
{
    const ration_breaker_rule *const rule = &spec->rule;
    rn_builder text;

    say_count(spec->recovered, sizeof spec->recovered, rule->probes, "probe succeeded", "probes succeeded");
    say_count(spec->unwell, sizeof spec->unwell, rule->idle_failures, "health check failed while idle",
              "health checks in a row failed while idle");
    if (rule->strategy == RATION_BREAKER_CONSECUTIVE) {
        say_count(spec->tripped, sizeof spec->tripped, rule->threshold, "failure", "failures in a row");
        return;
    }
    rn_builder_init(&text, spec->tripped, sizeof spec->tripped);
    rn_builder_str(&text, "failures reached ");
    say_ratio(&text, rule->ratio);
    if (rule->strategy == RATION_BREAKER_COUNT) {
        rn_builder_str(&text, " of the last ");
        rn_builder_int(&text, rule->size);
    } else {
        rn_builder_str(&text, " within ");
        rn_builder_duration(&text, rule->duration_us);
    }
}

int rn_breaker_spec_init(rn_breaker_spec *spec, const ration_breaker_rule *rule, ration_fault *fault)
{
    rn_breaker_spec filled = {.rule = *rule};

    rule_fill(&filled.rule);

    int err = strategy_check(&filled.rule, fault);

    if (err == RATION_OK)
        err = recovery_check(&filled.rule, fault);
    if (err != RATION_OK)
        return err;
    spec_say(&filled);
    *spec = filled;
    return RATION_OK;
}

#define CHECKS_MISSED 1000 /* in one leap of time: nobody was there who would have run them */

/* ---- states ---- */

/* `us` after `now`, at most the last instant there is; never, if that is not after `now`. */
static ration_time breaker_after(ration_time now, int64_t us)
{
    const ration_time at = rn_time_min(rn_time_add(now, us), ration_time_of(RATION_TIME_MAX_US));

    return rn_time_before(now, at) ? at : ration_time_of(RATION_NEVER_US);
}

static ration_time breaker_idle_check(const rn_breaker *b, ration_time now)
{
    const int64_t interval_us = b->spec->rule.idle_interval_us;

    return interval_us > 0 ? breaker_after(now, interval_us) : ration_time_of(RATION_NEVER_US);
}

/* The next back-off delay: the first, or the last one multiplied, rounded up, within the bound. */
static int64_t breaker_delay(const rn_breaker *b)
{
    const ration_breaker_rule *const rule = &b->spec->rule;
    const int64_t bound = rule->backoff_max_us > 0 ? rule->backoff_max_us : RATION_TIME_MAX_US;
    const ration_ratio by = rule->backoff_multiplier;

    if (b->delay_us == 0)
        return rule->backoff_initial_us;
    if (by.den == 0)
        return b->delay_us;

    const int64_t whole = rn_mul(b->delay_us / by.den, by.num);
    const int64_t rest = rn_div_ceil(b->delay_us % by.den * by.num, by.den);

    return rn_min(rn_add(whole, rest), bound);
}

/* Open, or still open, for the next delay. */
static void breaker_back_off(rn_breaker *b, ration_time now)
{
    b->delay_us = breaker_delay(b);
    b->until = breaker_after(now, b->delay_us);
}

/* The only writer of `state`. Also begins half-open anew, with fresh permits. */
static void enter(rn_breaker *b, ration_circuit_state state, ration_time now, const char *cause)
{
    b->state = state;
    b->generation++;
    b->cause = cause;
    b->permits = 0;
    b->successes = 0;
    b->failures = 0;
    b->idle_failures = 0;
    b->check_out = false;
    rn_breaker_ring_clear(b);

    switch (state) {
    case RATION_BREAKER_CLOSED:
        b->delay_us = 0;
        b->quiet_since = now;
        b->until = breaker_idle_check(b, now);
        break;
    case RATION_BREAKER_OPEN:
        breaker_back_off(b, now);
        break;
    case RATION_BREAKER_HALF_OPEN:
        b->permits = b->spec->rule.probes;
        b->until.us = RATION_NEVER_US;
        break;
    }
}

int rn_breaker_init(rn_breaker *b, const rn_breaker_spec *spec, const ration_allocator *mem, ration_time now)
{
    *b = (rn_breaker){.spec = spec, .mem = mem};

    const int err = rn_breaker_ring_init(b);

    if (err == RATION_OK)
        enter(b, RATION_BREAKER_CLOSED, now, "");
    return err;
}

void rn_breaker_restore(rn_breaker *b, ration_time now, const ration_breaker_record *record)
{
    const bool tries = record->state == RATION_BREAKER_OPEN && b->spec->rule.recovery == RATION_RECOVERY_PROBE &&
                       !rn_time_before(now, record->until);

    b->generation = record->generation;
    if (record->state == RATION_BREAKER_CLOSED)
        return;
    /* Nobody was there when the probe fell due. */
    enter(b, tries ? RATION_BREAKER_HALF_OPEN : record->state, now, "as before the restart");
    b->delay_us = rn_max(record->delay_us, 1);
    if (b->state == RATION_BREAKER_OPEN)
        b->until = rn_time_max(record->until, now);
}

void rn_breaker_fini(rn_breaker *b)
{
    rn_breaker_ring_fini(b);
}

/* ---- calls ---- */

/* Half-open: probes let through of which nothing has been heard. */
static int64_t breaker_out(const rn_breaker *b)
{
    return b->spec->rule.probes - b->permits - b->successes;
}

bool rn_breaker_lets(const rn_breaker *b)
{
    switch (b->state) {
    case RATION_BREAKER_CLOSED:
        return true;
    case RATION_BREAKER_OPEN:
        return false;
    case RATION_BREAKER_HALF_OPEN:
        return b->permits > 0;
    }
    return false;
}

rn_breaker_pass rn_breaker_enter(rn_breaker *b, ration_time now)
{
    const rn_breaker_pass pass = {.generation = b->generation, .probe = b->state == RATION_BREAKER_HALF_OPEN};

    if (pass.probe) {
        if (breaker_out(b) == 0)
            b->until = breaker_after(now, b->delay_us);
        b->permits--;
    }
    return pass;
}

/* Does a pass name a probe that is out? */
static bool breaker_has_out(const rn_breaker *b, const rn_breaker_pass *pass)
{
    return b->state == RATION_BREAKER_HALF_OPEN && pass->generation == b->generation && pass->probe &&
           breaker_out(b) > 0;
}

/* A probe has come back: with none out, none can be lost. */
static void breaker_probe_back(rn_breaker *b)
{
    if (breaker_out(b) == 0)
        b->until.us = RATION_NEVER_US;
}

void rn_breaker_leave(rn_breaker *b, const rn_breaker_pass *pass)
{
    if (!breaker_has_out(b, pass))
        return;
    b->permits++;
    breaker_probe_back(b);
}

static bool breaker_trips(const rn_breaker *b)
{
    const ration_breaker_rule *const rule = &b->spec->rule;

    if (rule->strategy == RATION_BREAKER_CONSECUTIVE)
        return b->failures >= rule->threshold;
    return b->calls >= rule->minimum_calls && rn_mul(b->failed, rule->ratio.den) >= rn_mul(b->calls, rule->ratio.num);
}

static rn_breaker_change closed_result(rn_breaker *b, ration_time now, bool ok)
{
    rn_breaker_ring_add(b, now, ok);
    b->quiet_since = now;
    b->until = breaker_idle_check(b, now);
    if (ok) {
        b->failures = 0;
        b->idle_failures = 0;
        return RN_BREAKER_SAME;
    }
    b->failures++;
    if (!breaker_trips(b))
        return RN_BREAKER_SAME;
    enter(b, RATION_BREAKER_OPEN, now, b->spec->tripped);
    return RN_BREAKER_OPENED;
}

static rn_breaker_change probe_result(rn_breaker *b, ration_time now, bool ok)
{
    if (!ok) {
        enter(b, RATION_BREAKER_OPEN, now, "a probe failed");
        return RN_BREAKER_OPENED;
    }
    b->successes++;
    breaker_probe_back(b);
    if (b->successes < b->spec->rule.probes)
        return RN_BREAKER_SAME;
    enter(b, RATION_BREAKER_CLOSED, now, b->spec->recovered);
    return RN_BREAKER_CLOSED;
}

rn_breaker_change rn_breaker_result(rn_breaker *b, ration_time now, const rn_breaker_pass *pass, bool ok)
{
    if (pass->generation != b->generation)
        return RN_BREAKER_SAME;

    switch (b->state) {
    case RATION_BREAKER_CLOSED:
        return closed_result(b, now, ok);
    case RATION_BREAKER_OPEN:
        return RN_BREAKER_SAME; /* nobody was let through */
    case RATION_BREAKER_HALF_OPEN:
        return breaker_has_out(b, pass) ? probe_result(b, now, ok) : RN_BREAKER_SAME;
    }
    return RN_BREAKER_SAME;
}

/* Health checks count while closed only where they are asked for, and no result has come since: results say more. */
static bool breaker_is_quiet(const rn_breaker *b, ration_time now)
{
    const int64_t interval_us = b->spec->rule.idle_interval_us;

    return interval_us > 0 && !rn_time_before(now, rn_time_add(b->quiet_since, interval_us));
}

static rn_breaker_change closed_health(rn_breaker *b, ration_time now, bool ok)
{
    if (ok) {
        b->idle_failures = 0;
        return RN_BREAKER_SAME;
    }
    if (!breaker_is_quiet(b, now) || ++b->idle_failures < b->spec->rule.idle_failures)
        return RN_BREAKER_SAME;
    enter(b, RATION_BREAKER_OPEN, now, b->spec->unwell);
    return RN_BREAKER_OPENED;
}

rn_breaker_change rn_breaker_health(rn_breaker *b, ration_time now, bool ok)
{
    b->check_out = false;
    switch (b->state) {
    case RATION_BREAKER_CLOSED:
        return closed_health(b, now, ok);
    case RATION_BREAKER_OPEN:
        if (!ok) {
            breaker_back_off(b, now);
            return RN_BREAKER_SAME;
        }
        enter(b, RATION_BREAKER_CLOSED, now, "health check succeeded");
        return RN_BREAKER_CLOSED;
    case RATION_BREAKER_HALF_OPEN:
        return RN_BREAKER_SAME; /* the probes will tell */
    }
    return RN_BREAKER_SAME;
}

/* ---- time ---- */

ration_time rn_breaker_next(const rn_breaker *b)
{
    return b->until;
}

static rn_breaker_change breaker_check(rn_breaker *b, ration_time next)
{
    b->check_out = true;
    b->until = next;
    return RN_BREAKER_CHECK;
}

rn_breaker_change rn_breaker_advance(rn_breaker *b, ration_time now)
{
    if (!rn_time_known(b->until) || rn_time_before(now, b->until))
        return RN_BREAKER_SAME;

    switch (b->state) {
    case RATION_BREAKER_CLOSED:
        return breaker_check(b, breaker_idle_check(b, now));
    case RATION_BREAKER_OPEN:
        if (b->spec->rule.recovery == RATION_RECOVERY_HEALTH_CHECK)
            return breaker_check(b, breaker_after(now, b->delay_us));
        enter(b, RATION_BREAKER_HALF_OPEN, now, "the back-off is over");
        return RN_BREAKER_HALF_OPENED;
    case RATION_BREAKER_HALF_OPEN:
        enter(b, RATION_BREAKER_HALF_OPEN, now, "probes were lost");
        return RN_BREAKER_REPLACED;
    }
    return RN_BREAKER_SAME;
}

void rn_breaker_skip(rn_breaker *b, ration_time last)
{
    const bool closed = b->state == RATION_BREAKER_CLOSED;
    const int64_t span_us = closed ? b->spec->rule.idle_interval_us : b->delay_us;

    if (!b->check_out || !rn_time_known(b->until) || rn_time_before(last, b->until))
        return;

    const int64_t missed = (last.us - b->until.us) / span_us;

    if (missed >= CHECKS_MISSED)
        b->until = breaker_after(rn_time_add(b->until, missed * span_us), span_us);
}

ration_time rn_breaker_retry_at(const rn_breaker *b)
{
    const bool refuses = b->state == RATION_BREAKER_OPEN || (b->state == RATION_BREAKER_HALF_OPEN && b->permits == 0);

    return refuses ? b->until : ration_time_of(RATION_NEVER_US);
}

bool rn_breaker_is_fresh(rn_breaker *b, ration_time now)
{
    rn_breaker_ring_expire(b, now);
    return b->state == RATION_BREAKER_CLOSED && b->failures == 0 && b->calls == 0 && !b->check_out &&
           b->spec->rule.idle_interval_us == 0;
}

/* The rule that its numbers are of goes. */
static void cause_keep(rn_breaker *b, const char *cause)
{
    rn_builder text;

    rn_builder_init(&text, b->was, sizeof b->was);
    rn_builder_str(&text, cause);
    b->cause = b->was;
}

static bool counts_alike(const ration_breaker_rule *a, const ration_breaker_rule *b)
{
    return a->strategy == b->strategy && a->size == b->size && a->duration_us == b->duration_us &&
           a->recovery == b->recovery && a->probes == b->probes && a->idle_interval_us == b->idle_interval_us;
}

void rn_breaker_carry(rn_breaker *b, ration_time now, rn_breaker *from)
{
    const rn_breaker_spec *const spec = b->spec;
    const ration_breaker_record record = {from->state, from->generation, from->until, from->delay_us};
    const rn_breaker fresh = *b;

    if (!counts_alike(&spec->rule, &from->spec->rule)) {
        rn_breaker_restore(b, now, &record);
        cause_keep(b, from->cause);
        return;
    }
    *b = *from;
    b->spec = spec;
    cause_keep(b, from->cause);
    from->results = fresh.results;
    from->ring = fresh.ring;
}
