/* SPDX-License-Identifier: MIT */

/*
 * A breaker over random streams, against a slow and obvious one.
 *
 * The model keeps every result since the last change of state and counts them anew each time, every pass ever given out
 * and whether it has come back, and computes each back-off delay from the first. Time moves by random steps and to the
 * instants that matter, one microsecond before and on the dot.
 */
#include "support/check.h"
#include "support/property.h"

#include "base/mem.h"
#include "core/breaker.h"

#define NEVER RATION_NEVER_US
#define PASSES 512
#define RESULTS 1024

__extension__ typedef __int128 wide;

typedef struct result {
    int64_t at;
    bool ok;
} result;

typedef struct call {
    rn_breaker_pass pass;
    bool back; /* a probe's result or leave has been heard */
} call;

typedef struct world {
    ration_breaker_rule rule;
    rn_breaker_spec spec;
    rn_breaker breaker;
    int64_t now;
    /* the model */
    ration_circuit_state state;
    uint64_t generation;
    int openings; /* delays begun without closing */
    int64_t until;
    result results[RESULTS];
    int result_count;
    call calls[PASSES];
    int call_count;
    int successes; /* of probes of this generation */
    int ill;       /* health checks in a row */
    int64_t heard; /* the last result, or when it closed */
} world;

static struct {
    uint64_t steps, late, changes[RN_BREAKER_CHECK + 1];
} seen;

static int64_t delay_of(const world *w)
{
    wide delay = w->rule.backoff_initial_us;

    for (int i = 1; i < w->openings && w->rule.backoff_multiplier.den != 0; i++) {
        delay *= w->rule.backoff_multiplier.num;
        delay = (delay + w->rule.backoff_multiplier.den - 1) / w->rule.backoff_multiplier.den;
        if (w->rule.backoff_max_us > 0 && delay > w->rule.backoff_max_us)
            delay = w->rule.backoff_max_us;
        if (delay > RATION_TIME_MAX_US)
            delay = RATION_TIME_MAX_US;
    }
    return (int64_t)delay;
}

static int64_t capped(const world *w, int64_t us)
{
    const wide at = (wide)w->now + us;

    return at < RATION_TIME_MAX_US ? (int64_t)at : RATION_TIME_MAX_US;
}

static void model_enter(world *w, ration_circuit_state state)
{
    w->state = state;
    w->generation++;
    w->result_count = 0;
    w->successes = 0;
    w->ill = 0;
    switch (state) {
    case RATION_BREAKER_CLOSED:
        w->openings = 0;
        w->heard = w->now;
        w->until = w->rule.idle_interval_us > 0 ? capped(w, w->rule.idle_interval_us) : NEVER;
        break;
    case RATION_BREAKER_OPEN:
        w->openings++;
        w->until = capped(w, delay_of(w));
        break;
    case RATION_BREAKER_HALF_OPEN:
        w->until = NEVER;
        break;
    }
}

static int probes_out(const world *w)
{
    int out = 0;

    for (int i = 0; i < w->call_count; i++)
        out += w->calls[i].pass.probe && w->calls[i].pass.generation == w->generation && !w->calls[i].back ? 1 : 0;
    return out;
}

static bool model_trips(const world *w)
{
    int64_t calls = 0;
    int64_t failed = 0;

    for (int i = w->result_count; i-- > 0;) {
        const result *const r = &w->results[i];

        if (w->rule.strategy == RATION_BREAKER_CONSECUTIVE && r->ok)
            break;
        if (w->rule.strategy == RATION_BREAKER_COUNT && calls == w->rule.size)
            break;
        if (w->rule.strategy == RATION_BREAKER_SAMPLING && w->now - r->at >= w->rule.duration_us)
            break;
        calls++;
        failed += r->ok ? 0 : 1;
    }
    if (w->rule.strategy == RATION_BREAKER_CONSECUTIVE)
        return failed >= w->rule.threshold;
    return calls >= w->rule.minimum_calls && failed * w->rule.ratio.den >= calls * w->rule.ratio.num;
}

static rn_breaker_change model_result(world *w, call *which, bool ok)
{
    if (which->pass.generation != w->generation || which->back)
        return RN_BREAKER_SAME;
    which->back = which->pass.probe;
    if (w->state == RATION_BREAKER_CLOSED) {
        w->results[w->result_count++] = (result){w->now, ok};
        w->heard = w->now;
        w->until = w->rule.idle_interval_us > 0 ? capped(w, w->rule.idle_interval_us) : NEVER;
        w->ill = ok ? 0 : w->ill;
        if (ok || !model_trips(w))
            return RN_BREAKER_SAME;
        model_enter(w, RATION_BREAKER_OPEN);
        return RN_BREAKER_OPENED;
    }
    if (!ok) {
        model_enter(w, RATION_BREAKER_OPEN);
        return RN_BREAKER_OPENED;
    }
    if (probes_out(w) == 0)
        w->until = NEVER;
    if (++w->successes < w->rule.probes)
        return RN_BREAKER_SAME;
    model_enter(w, RATION_BREAKER_CLOSED);
    return RN_BREAKER_CLOSED;
}

static rn_breaker_change model_health(world *w, bool ok)
{
    if (w->state == RATION_BREAKER_OPEN && ok) {
        model_enter(w, RATION_BREAKER_CLOSED);
        return RN_BREAKER_CLOSED;
    }
    if (w->state == RATION_BREAKER_OPEN) {
        w->openings++;
        w->until = capped(w, delay_of(w));
    }
    if (w->state != RATION_BREAKER_CLOSED)
        return RN_BREAKER_SAME;
    if (ok)
        w->ill = 0;
    if (ok || w->rule.idle_interval_us == 0 || w->now - w->heard < w->rule.idle_interval_us)
        return RN_BREAKER_SAME;
    if (++w->ill < w->rule.idle_failures)
        return RN_BREAKER_SAME;
    model_enter(w, RATION_BREAKER_OPEN);
    return RN_BREAKER_OPENED;
}

static rn_breaker_change model_advance(world *w)
{
    if (w->until == NEVER || w->now < w->until)
        return RN_BREAKER_SAME;
    if (w->state == RATION_BREAKER_CLOSED) {
        w->until = capped(w, w->rule.idle_interval_us);
        return RN_BREAKER_CHECK;
    }
    if (w->state == RATION_BREAKER_OPEN && w->rule.recovery == RATION_RECOVERY_HEALTH_CHECK) {
        w->until = capped(w, delay_of(w));
        return RN_BREAKER_CHECK;
    }

    const rn_breaker_change change = w->state == RATION_BREAKER_OPEN ? RN_BREAKER_HALF_OPENED : RN_BREAKER_REPLACED;

    model_enter(w, RATION_BREAKER_HALF_OPEN);
    return change;
}

static bool model_lets(const world *w)
{
    return w->state == RATION_BREAKER_CLOSED ||
           (w->state == RATION_BREAKER_HALF_OPEN && probes_out(w) + w->successes < w->rule.probes);
}

/* ---- both ---- */

static void rule_draw(choices *c, world *w)
{
    ration_fault fault;

    w->rule = (ration_breaker_rule){
        .strategy = (ration_breaker_strategy)choose_from(c, RATION_BREAKER_CONSECUTIVE, RATION_BREAKER_SAMPLING),
        .threshold = choose_from(c, 1, 4),
        .ratio = {(int32_t)choose_from(c, 1, 4), 4},
        .size = choose_from(c, 1, 70),
        .duration_us = choose_from(c, 1, 60),
        .recovery = choose(c, 1) == 0 ? RATION_RECOVERY_PROBE : RATION_RECOVERY_HEALTH_CHECK,
        .probes = choose_from(c, 1, 3),
        .backoff_initial_us = choose_from(c, 1, 20),
        .idle_interval_us = (int64_t)choose(c, 25),
        .idle_failures = choose_from(c, 1, 3),
    };
    w->rule.minimum_calls = choose_from(c, 1, w->rule.size < 8 ? w->rule.size : 8);
    if (choose(c, 1) == 1)
        w->rule.backoff_multiplier = (ration_ratio){(int32_t)choose_from(c, 3, 9), 3};
    if (choose(c, 1) == 1)
        w->rule.backoff_max_us = w->rule.backoff_initial_us + (int64_t)choose(c, 100);
    HOLDS(c, rn_breaker_spec_init(&w->spec, &w->rule, &fault) == RATION_OK);
}

static void move(choices *c, world *w)
{
    switch (choose(c, 3)) {
    case 0:
        break;
    case 1:
        w->now += (int64_t)choose(c, 12);
        break;
    case 2:
        w->now = w->until != NEVER && w->until > w->now ? w->until : w->now;
        break;
    default:
        w->now = w->until != NEVER && w->until - 1 > w->now ? w->until - 1 : w->now;
        break;
    }
    NOTE(c, "at %lld, state %d, until %lld", (long long)w->now, w->state, (long long)w->until);
    for (;;) {
        const rn_breaker_change change = model_advance(w);

        HOLDS(c, rn_breaker_advance(&w->breaker, ration_time_of(w->now)) == change);
        seen.changes[change]++;
        if (change == RN_BREAKER_SAME)
            break;
    }
}

static void submit(choices *c, world *w)
{
    const ration_time now = ration_time_of(w->now);

    HOLDS(c, rn_breaker_lets(&w->breaker) == model_lets(w));
    if (!model_lets(w)) {
        HOLDS(c, rn_breaker_retry_at(&w->breaker).us == w->until);
        return;
    }
    HOLDS(c, rn_breaker_retry_at(&w->breaker).us == NEVER);
    if (w->state == RATION_BREAKER_HALF_OPEN && probes_out(w) == 0)
        w->until = capped(w, delay_of(w));

    const rn_breaker_pass pass = rn_breaker_enter(&w->breaker, now);

    NOTE(c, "pass %d", w->call_count);
    HOLDS(c, pass.generation == w->generation);
    HOLDS(c, pass.probe == (w->state == RATION_BREAKER_HALF_OPEN));
    w->calls[w->call_count++] = (call){.pass = pass};
}

/* One of the last few calls, or of all; more of them are late then. */
static call *pick(choices *c, world *w)
{
    const uint64_t last = (uint64_t)w->call_count - 1;
    const uint64_t back = choose(c, 4) == 0 || last < 4 ? last : 4;
    call *const which = &w->calls[last - choose(c, back)];

    seen.late += which->pass.generation != w->generation ? 1 : 0;
    return which;
}

static void finish(choices *c, world *w, bool ok)
{
    if (w->call_count == 0)
        return;

    call *const which = pick(c, w);

    NOTE(c, "pass %d %s", (int)(which - w->calls), ok ? "ok" : "failed");
    if (which->back)
        return;

    const rn_breaker_change change = model_result(w, which, ok);

    HOLDS(c, rn_breaker_result(&w->breaker, ration_time_of(w->now), &which->pass, ok) == change);
    seen.changes[change]++;
}

static void leave(choices *c, world *w)
{
    if (w->call_count == 0)
        return;

    call *const which = pick(c, w);

    NOTE(c, "pass %d leaves", (int)(which - w->calls));
    if (which->back)
        return;
    which->back = which->pass.probe;
    if (w->state == RATION_BREAKER_HALF_OPEN && which->pass.generation == w->generation && probes_out(w) == 0)
        w->until = NEVER;
    rn_breaker_leave(&w->breaker, &which->pass);
}

static void check(choices *c, world *w, bool ok)
{
    const rn_breaker_change change = model_health(w, ok);

    NOTE(c, "health check %s", ok ? "ok" : "failed");
    HOLDS(c, rn_breaker_health(&w->breaker, ration_time_of(w->now), ok) == change);
}

static void is_its_model(choices *c, void *context)
{
    static world w;

    (void)context;
    memset(&w, 0, sizeof w);
    rule_draw(c, &w);
    model_enter(&w, RATION_BREAKER_CLOSED);
    HOLDS(c, rn_breaker_init(&w.breaker, &w.spec, rn_mem_default(), ration_time_of(w.now)) == RATION_OK);
    while (w.call_count < PASSES && w.result_count < RESULTS && choose(c, 200) != 0) {
        move(c, &w);
        switch (choose(c, 9)) {
        case 0:
        case 1:
        case 2:
            submit(c, &w);
            break;
        case 3:
        case 4:
            finish(c, &w, true);
            break;
        case 5:
        case 6:
        case 7:
            finish(c, &w, false);
            break;
        case 8:
            leave(c, &w);
            break;
        default:
            check(c, &w, choose(c, 2) == 0);
            break;
        }
        seen.steps++;
        HOLDS(c, w.breaker.state == w.state);
        HOLDS(c, w.breaker.generation == w.generation);
        HOLDS(c, rn_breaker_next(&w.breaker).us == w.until);
    }
    rn_breaker_fini(&w.breaker);
}

static void test_model(void **state)
{
    (void)state;
    property_check("a breaker is its model", is_its_model, NULL, 8000);
    print_message("# %" PRIu64 " steps: opened %" PRIu64 ", half-opened %" PRIu64 ", closed %" PRIu64
                  ", replaced %" PRIu64 ", checks %" PRIu64 ", late results %" PRIu64 "\n",
                  seen.steps, seen.changes[RN_BREAKER_OPENED], seen.changes[RN_BREAKER_HALF_OPENED],
                  seen.changes[RN_BREAKER_CLOSED], seen.changes[RN_BREAKER_REPLACED], seen.changes[RN_BREAKER_CHECK],
                  seen.late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
