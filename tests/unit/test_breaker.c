/* SPDX-License-Identifier: MIT */
/* Circuit breakers: each state with each event, recovery and back-off to the microsecond. */
#include "support/check.h"

#include "base/mem.h"
#include "base/units.h"
#include "core/breaker.h"

#define S INT64_C(1000000)
#define NEVER RATION_NEVER_US
#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

#define CLOSED RATION_BREAKER_CLOSED
#define OPEN RATION_BREAKER_OPEN
#define HALF RATION_BREAKER_HALF_OPEN

typedef enum op {
    ENTER, /* let through, as `id` */
    BARRED,
    OK,
    FAIL,
    LEAVE,
    WELL, /* a health check */
    ILL,
    TIME,
} op;

typedef struct step {
    const char *why;
    int64_t at_us;
    op op;
    char id; /* of the pass */
    rn_breaker_change change;
    ration_circuit_state state;
    int64_t next_us;
} step;

typedef struct world {
    rn_breaker_spec spec;
    rn_breaker breaker;
    rn_breaker_pass passes[32];
} world;

static void world_init(world *w, const ration_breaker_rule *rule, int64_t at_us)
{
    ration_fault fault = {{0}, {0}};

    memset(w, 0, sizeof *w);
    CHECK_EQ(rn_breaker_spec_init(&w->spec, rule, &fault), RATION_OK);
    CHECK_EQ(rn_breaker_init(&w->breaker, &w->spec, rn_mem_default(), ration_time_of(at_us)), RATION_OK);
}

static rn_breaker_change world_do(world *w, const step *s)
{
    rn_breaker_pass *const pass = &w->passes[(unsigned char)s->id % COUNT(w->passes)];
    const ration_time now = ration_time_of(s->at_us);

    switch (s->op) {
    case ENTER:
        CHECK(rn_breaker_lets(&w->breaker));
        *pass = rn_breaker_enter(&w->breaker, now);
        CHECK_EQ(pass->generation, w->breaker.generation);
        CHECK_EQ(pass->probe, w->breaker.state == HALF);
        return RN_BREAKER_SAME;
    case BARRED:
        CHECK(!rn_breaker_lets(&w->breaker));
        return RN_BREAKER_SAME;
    case OK:
    case FAIL:
        return rn_breaker_result(&w->breaker, now, pass, s->op == OK);
    case LEAVE:
        rn_breaker_leave(&w->breaker, pass);
        return RN_BREAKER_SAME;
    case WELL:
    case ILL:
        return rn_breaker_health(&w->breaker, now, s->op == WELL);
    case TIME:
        return rn_breaker_advance(&w->breaker, now);
    }
    return RN_BREAKER_SAME;
}

static void world_run(world *w, const step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t generation = w->breaker.generation;

        CHECK_ROW(steps[i].why);

        const rn_breaker_change change = world_do(w, &steps[i]);

        CHECK_EQ(change, steps[i].change);
        CHECK_EQ(w->breaker.state, steps[i].state);
        CHECK_EQ(rn_breaker_next(&w->breaker).us, steps[i].next_us);
        CHECK_EQ(w->breaker.generation - generation, change != RN_BREAKER_SAME && change != RN_BREAKER_CHECK ? 1 : 0);
    }
    CHECK_ROW(NULL);
}

static void run(const ration_breaker_rule *rule, const step *steps, size_t count)
{
    world w;

    world_init(&w, rule, steps[0].at_us);
    world_run(&w, steps, count);
    rn_breaker_fini(&w.breaker);
}

#define RUN(rule, steps) run((rule), (steps), COUNT(steps))

/* ---- each state with each event ---- */

/* Two probes, one failure opens, delays of 1 s, 2 s, 4 s; a health check after 10 s of quiet. */
static const ration_breaker_rule cells_rule = {
    .strategy = RATION_BREAKER_CONSECUTIVE,
    .threshold = 1,
    .probes = 2,
    .backoff_multiplier = {2, 1},
    .idle_interval_us = 10 * S,
};

/* Each begins at 100 s; 'o' is a pass of an earlier generation, 'p' of this one. */
static const step to_closed[] = {
    {"a failure", 97 * S, FAIL, 'o', RN_BREAKER_OPENED, OPEN, 98 * S},
    {"a second later", 98 * S, TIME, 0, RN_BREAKER_HALF_OPENED, HALF, NEVER},
    {"a probe", 98 * S, ENTER, 'a', RN_BREAKER_SAME, HALF, 99 * S},
    {"that succeeds", 98 * S, OK, 'a', RN_BREAKER_SAME, HALF, NEVER},
    {"another", 98 * S, ENTER, 'o', RN_BREAKER_SAME, HALF, 99 * S},
    {"this closes", 98 * S, OK, 'o', RN_BREAKER_CLOSED, CLOSED, 108 * S},
    {"a call", 99 * S, ENTER, 'p', RN_BREAKER_SAME, CLOSED, 108 * S},
};
static const step to_open[] = {
    {"a failure", 100 * S, FAIL, 'o', RN_BREAKER_OPENED, OPEN, 101 * S},
};
static const step to_half_open[] = {
    {"a failure", 99 * S, FAIL, 'o', RN_BREAKER_OPENED, OPEN, 100 * S},
    {"a second later", 100 * S, TIME, 0, RN_BREAKER_HALF_OPENED, HALF, NEVER},
    {"a probe", 100 * S, ENTER, 'p', RN_BREAKER_SAME, HALF, 101 * S},
};

typedef struct cell {
    step step;
    int64_t permits, successes;
} cell;

static void cells_run(const ration_breaker_rule *rule, const step *before, size_t before_count, const cell *cells,
                      size_t count)
{
    static const step first = {"a call", 97 * S, ENTER, 'o', RN_BREAKER_SAME, CLOSED, 17 * S};

    for (size_t i = 0; i < count; i++) {
        world w;

        world_init(&w, rule, 7 * S);
        CHECK_EQ(world_do(&w, &first), RN_BREAKER_SAME);
        world_run(&w, before, before_count);
        world_run(&w, &cells[i].step, 1);
        CHECK_ROW(cells[i].step.why);
        CHECK_EQ(w.breaker.permits, cells[i].permits);
        CHECK_EQ(w.breaker.successes, cells[i].successes);
        CHECK_ROW(NULL);
        rn_breaker_fini(&w.breaker);
    }
}

#define CELLS(rule, before, cells) cells_run((rule), (before), COUNT(before), (cells), COUNT(cells))

static void test_closed(void **state)
{
    static const cell cells[] = {
        {{"a call goes", 100 * S, ENTER, 'q', RN_BREAKER_SAME, CLOSED, 108 * S}, 0, 0},
        {{"a success begins the quiet anew", 100 * S, OK, 'p', RN_BREAKER_SAME, CLOSED, 110 * S}, 0, 0},
        {{"a failure opens, with the first delay", 100 * S, FAIL, 'p', RN_BREAKER_OPENED, OPEN, 101 * S}, 0, 0},
        {{"no result", 100 * S, LEAVE, 'p', RN_BREAKER_SAME, CLOSED, 108 * S}, 0, 0},
        {{"an earlier success", 100 * S, OK, 'o', RN_BREAKER_SAME, CLOSED, 108 * S}, 0, 0},
        {{"an earlier failure", 100 * S, FAIL, 'o', RN_BREAKER_SAME, CLOSED, 108 * S}, 0, 0},
        {{"an earlier probe without a result", 100 * S, LEAVE, 'o', RN_BREAKER_SAME, CLOSED, 108 * S}, 0, 0},
        {{"no pass", 100 * S, FAIL, 'z', RN_BREAKER_SAME, CLOSED, 108 * S}, 0, 0},
        {{"a good health check", 100 * S, WELL, 0, RN_BREAKER_SAME, CLOSED, 108 * S}, 0, 0},
        {{"a bad one that nobody asked for, not quiet yet", 108 * S - 1, ILL, 0, RN_BREAKER_SAME, CLOSED, 108 * S},
         0,
         0},
        {{"a bad one, quiet", 108 * S, ILL, 0, RN_BREAKER_OPENED, OPEN, 109 * S}, 0, 0},
        {{"1 us before the check", 108 * S - 1, TIME, 0, RN_BREAKER_SAME, CLOSED, 108 * S}, 0, 0},
        {{"the check is due", 108 * S, TIME, 0, RN_BREAKER_CHECK, CLOSED, 118 * S}, 0, 0},
        {{"looked at late: the next one interval later", 150 * S, TIME, 0, RN_BREAKER_CHECK, CLOSED, 160 * S}, 0, 0},
    };

    (void)state;
    CELLS(&cells_rule, to_closed, cells);
}

static void test_open(void **state)
{
    static const cell probe[] = {
        {{"no call goes", 100 * S, BARRED, 0, RN_BREAKER_SAME, OPEN, 101 * S}, 0, 0},
        {{"an earlier success", 100 * S, OK, 'o', RN_BREAKER_SAME, OPEN, 101 * S}, 0, 0},
        {{"an earlier failure", 100 * S, FAIL, 'o', RN_BREAKER_SAME, OPEN, 101 * S}, 0, 0},
        {{"an earlier one without a result", 100 * S, LEAVE, 'o', RN_BREAKER_SAME, OPEN, 101 * S}, 0, 0},
        {{"no pass", 100 * S, OK, 'z', RN_BREAKER_SAME, OPEN, 101 * S}, 0, 0},
        {{"a good health check", 100 * S, WELL, 0, RN_BREAKER_CLOSED, CLOSED, 110 * S}, 0, 0},
        {{"a bad one: the next delay", 100 * S, ILL, 0, RN_BREAKER_SAME, OPEN, 102 * S}, 0, 0},
        {{"1 us before the delay is over", 101 * S - 1, TIME, 0, RN_BREAKER_SAME, OPEN, 101 * S}, 0, 0},
        {{"over: two permits", 101 * S, TIME, 0, RN_BREAKER_HALF_OPENED, HALF, NEVER}, 2, 0},
        {{"over, looked at late", 500 * S, TIME, 0, RN_BREAKER_HALF_OPENED, HALF, NEVER}, 2, 0},
    };
    static const cell check[] = {
        {{"no call goes", 100 * S, BARRED, 0, RN_BREAKER_SAME, OPEN, 101 * S}, 0, 0},
        {{"an earlier success", 100 * S, OK, 'o', RN_BREAKER_SAME, OPEN, 101 * S}, 0, 0},
        {{"an earlier failure", 100 * S, FAIL, 'o', RN_BREAKER_SAME, OPEN, 101 * S}, 0, 0},
        {{"a good check", 100 * S, WELL, 0, RN_BREAKER_CLOSED, CLOSED, 110 * S}, 0, 0},
        {{"a bad one: the next delay", 100 * S, ILL, 0, RN_BREAKER_SAME, OPEN, 102 * S}, 0, 0},
        {{"1 us before the check", 101 * S - 1, TIME, 0, RN_BREAKER_SAME, OPEN, 101 * S}, 0, 0},
        {{"a check is due, and the next one the same delay later", 101 * S, TIME, 0, RN_BREAKER_CHECK, OPEN, 102 * S},
         0,
         0},
        {{"looked at late", 500 * S, TIME, 0, RN_BREAKER_CHECK, OPEN, 501 * S}, 0, 0},
    };
    ration_breaker_rule rule = cells_rule;

    (void)state;
    CELLS(&cells_rule, to_open, probe);
    rule.recovery = RATION_RECOVERY_HEALTH_CHECK;
    CELLS(&rule, to_open, check);
}

static void test_half_open(void **state)
{
    static const cell cells[] = {
        {{"the second probe goes, and the first is waited for", 100 * S + 1, ENTER, 'q', RN_BREAKER_SAME, HALF,
          101 * S},
         0,
         0},
        {{"a success is not enough, and none is out", 100 * S + 1, OK, 'p', RN_BREAKER_SAME, HALF, NEVER}, 1, 1},
        {{"a failure opens, with the second delay", 100 * S + 1, FAIL, 'p', RN_BREAKER_OPENED, OPEN, 102 * S + 1},
         0,
         0},
        {{"no result: the permit goes back, and none is out", 100 * S + 1, LEAVE, 'p', RN_BREAKER_SAME, HALF, NEVER},
         2,
         0},
        {{"an earlier success", 100 * S + 1, OK, 'o', RN_BREAKER_SAME, HALF, 101 * S}, 1, 0},
        {{"an earlier failure", 100 * S + 1, FAIL, 'o', RN_BREAKER_SAME, HALF, 101 * S}, 1, 0},
        {{"an earlier one without a result", 100 * S + 1, LEAVE, 'o', RN_BREAKER_SAME, HALF, 101 * S}, 1, 0},
        {{"no pass", 100 * S + 1, OK, 'z', RN_BREAKER_SAME, HALF, 101 * S}, 1, 0},
        {{"a good health check: the probes will tell", 100 * S + 1, WELL, 0, RN_BREAKER_SAME, HALF, 101 * S}, 1, 0},
        {{"a bad one", 100 * S + 1, ILL, 0, RN_BREAKER_SAME, HALF, 101 * S}, 1, 0},
        {{"1 us before the probe is lost", 101 * S - 1, TIME, 0, RN_BREAKER_SAME, HALF, 101 * S}, 1, 0},
        {{"lost: fresh permits", 101 * S, TIME, 0, RN_BREAKER_REPLACED, HALF, NEVER}, 2, 0},
    };
    static const step none_left[] = {
        {"a failure", 99 * S, FAIL, 'o', RN_BREAKER_OPENED, OPEN, 100 * S},
        {"a second later", 100 * S, TIME, 0, RN_BREAKER_HALF_OPENED, HALF, NEVER},
        {"a probe", 100 * S, ENTER, 'p', RN_BREAKER_SAME, HALF, 101 * S},
        {"another", 100 * S + 5, ENTER, 'q', RN_BREAKER_SAME, HALF, 101 * S},
        {"a success of the second", 100 * S + 6, OK, 'q', RN_BREAKER_SAME, HALF, 101 * S},
    };
    static const cell last[] = {
        {{"no third", 100 * S + 7, BARRED, 0, RN_BREAKER_SAME, HALF, 101 * S}, 0, 1},
        {{"the second has said all it has to say", 100 * S + 7, LEAVE, 'o', RN_BREAKER_SAME, HALF, 101 * S}, 0, 1},
        {{"the first closes", 100 * S + 7, OK, 'p', RN_BREAKER_CLOSED, CLOSED, 110 * S + 7}, 0, 0},
        {{"or opens, whatever the second said", 100 * S + 7, FAIL, 'p', RN_BREAKER_OPENED, OPEN, 102 * S + 7}, 0, 0},
        {{"or has no result", 100 * S + 7, LEAVE, 'p', RN_BREAKER_SAME, HALF, NEVER}, 1, 1},
        {{"or is lost: n successes are needed again", 101 * S, TIME, 0, RN_BREAKER_REPLACED, HALF, NEVER}, 2, 0},
    };

    (void)state;
    CELLS(&cells_rule, to_half_open, cells);
    CELLS(&cells_rule, none_left, last);
}

/* A pass that is used twice, or made up, never gives out a third permit or a second success. */
static void test_forged(void **state)
{
    static const step steps[] = {
        {"a call", 0, ENTER, 'o', RN_BREAKER_SAME, CLOSED, NEVER},
        {"a failure", 0, FAIL, 'o', RN_BREAKER_OPENED, OPEN, S},
        {"half-open", S, TIME, 0, RN_BREAKER_HALF_OPENED, HALF, NEVER},
        {"a probe", S, ENTER, 'p', RN_BREAKER_SAME, HALF, 2 * S},
        {"a success", S, OK, 'p', RN_BREAKER_SAME, HALF, NEVER},
        {"again", S, OK, 'p', RN_BREAKER_SAME, HALF, NEVER},
        {"it cannot fail too", S, FAIL, 'p', RN_BREAKER_SAME, HALF, NEVER},
        {"nor give back", S, LEAVE, 'p', RN_BREAKER_SAME, HALF, NEVER},
    };
    ration_breaker_rule rule = cells_rule;
    world w;

    (void)state;
    rule.idle_interval_us = 0;
    world_init(&w, &rule, 0);
    world_run(&w, steps, COUNT(steps));
    CHECK_EQ(w.breaker.permits, 1);
    CHECK_EQ(w.breaker.successes, 1);

    const rn_breaker_pass no_probe = {w.breaker.generation, false};
    const rn_breaker_pass out = rn_breaker_enter(&w.breaker, ration_time_of(S));

    CHECK_EQ(rn_breaker_result(&w.breaker, ration_time_of(S), &no_probe, true), RN_BREAKER_SAME);
    rn_breaker_leave(&w.breaker, &no_probe);
    CHECK_EQ(w.breaker.permits, 0);
    CHECK_EQ(rn_breaker_result(&w.breaker, ration_time_of(S), &out, true), RN_BREAKER_CLOSED);

    const rn_breaker_pass call = rn_breaker_enter(&w.breaker, ration_time_of(S));

    CHECK_EQ(rn_breaker_result(&w.breaker, ration_time_of(S), &call, false), RN_BREAKER_OPENED);

    const rn_breaker_pass while_open = {w.breaker.generation, true};

    CHECK_EQ(rn_breaker_result(&w.breaker, ration_time_of(S), &while_open, true), RN_BREAKER_SAME);
    CHECK_EQ(rn_breaker_result(&w.breaker, ration_time_of(S), &while_open, false), RN_BREAKER_SAME);
    rn_breaker_leave(&w.breaker, &while_open);
    CHECK_EQ(w.breaker.permits, 0);
    CHECK_EQ(rn_breaker_next(&w.breaker).us, 2 * S);
    rn_breaker_fini(&w.breaker);
}

/* ---- recovery ---- */

/* The golden trace breaker-and-waiters, and on: 1 s, 2 s, then 3 s as the bound has it; closing begins anew. */
static void test_probe(void **state)
{
    static const step steps[] = {
        {"a call", 0, ENTER, 'a', RN_BREAKER_SAME, CLOSED, NEVER},
        {"fails", 100000, FAIL, 'a', RN_BREAKER_OPENED, OPEN, 1100000},
        {"half-open", 1100000, TIME, 0, RN_BREAKER_HALF_OPENED, HALF, NEVER},
        {"nothing falls due while nobody asks", 90 * S, TIME, 0, RN_BREAKER_SAME, HALF, NEVER},
        {"a probe", 90 * S, ENTER, 'b', RN_BREAKER_SAME, HALF, 91 * S},
        {"fails: two seconds", 90 * S, FAIL, 'b', RN_BREAKER_OPENED, OPEN, 92 * S},
        {"half-open", 92 * S, TIME, 0, RN_BREAKER_HALF_OPENED, HALF, NEVER},
        {"a probe", 92 * S, ENTER, 'c', RN_BREAKER_SAME, HALF, 94 * S},
        {"fails: three, not four", 92 * S, FAIL, 'c', RN_BREAKER_OPENED, OPEN, 95 * S},
        {"half-open", 95 * S, TIME, 0, RN_BREAKER_HALF_OPENED, HALF, NEVER},
        {"a probe", 95 * S, ENTER, 'd', RN_BREAKER_SAME, HALF, 98 * S},
        {"that never comes back: another, a delay later", 98 * S, TIME, 0, RN_BREAKER_REPLACED, HALF, NEVER},
        {"which is waited for as long", 98 * S, ENTER, 'e', RN_BREAKER_SAME, HALF, 101 * S},
        {"the lost one comes back after all", 99 * S, FAIL, 'd', RN_BREAKER_SAME, HALF, 101 * S},
        {"the other succeeds", 99 * S, OK, 'e', RN_BREAKER_CLOSED, CLOSED, NEVER},
        {"a call", 99 * S, ENTER, 'f', RN_BREAKER_SAME, CLOSED, NEVER},
        {"fails: one second again", 99 * S, FAIL, 'f', RN_BREAKER_OPENED, OPEN, 100 * S},
        {"still fails for two", 100 * S, TIME, 0, RN_BREAKER_HALF_OPENED, HALF, NEVER},
        {"a probe", 100 * S, ENTER, 'g', RN_BREAKER_SAME, HALF, 101 * S},
        {"two", 100 * S, FAIL, 'g', RN_BREAKER_OPENED, OPEN, 102 * S},
    };
    const ration_breaker_rule rule = {
        .strategy = RATION_BREAKER_CONSECUTIVE,
        .threshold = 1,
        .backoff_multiplier = {2, 1},
        .backoff_max_us = 3 * S,
    };

    (void)state;
    RUN(&rule, steps);
}

static void test_health_check(void **state)
{
    static const step steps[] = {
        {"a call", 0, ENTER, 'a', RN_BREAKER_SAME, CLOSED, NEVER},
        {"fails", 0, FAIL, 'a', RN_BREAKER_OPENED, OPEN, S},
        {"a check is due after one delay", S, TIME, 0, RN_BREAKER_CHECK, OPEN, 2 * S},
        {"it never answers: another", 2 * S, TIME, 0, RN_BREAKER_CHECK, OPEN, 3 * S},
        {"that fails: two seconds from then", 2500000, ILL, 0, RN_BREAKER_SAME, OPEN, 4500000},
        {"a check", 4500000, TIME, 0, RN_BREAKER_CHECK, OPEN, 6500000},
        {"that fails: four", 4500000, ILL, 0, RN_BREAKER_SAME, OPEN, 8500000},
        {"a check", 8500000, TIME, 0, RN_BREAKER_CHECK, OPEN, 12500000},
        {"that is good", 9 * S, WELL, 0, RN_BREAKER_CLOSED, CLOSED, NEVER},
        {"a good one that nobody asked for", 9 * S, WELL, 0, RN_BREAKER_SAME, CLOSED, NEVER},
        {"bad ones change nothing where there is no idle probe", 99 * S, ILL, 0, RN_BREAKER_SAME, CLOSED, NEVER},
        {"a call", 99 * S, ENTER, 'b', RN_BREAKER_SAME, CLOSED, NEVER},
        {"fails: one second again", 99 * S, FAIL, 'b', RN_BREAKER_OPENED, OPEN, 100 * S},
    };
    const ration_breaker_rule rule = {
        .strategy = RATION_BREAKER_CONSECUTIVE,
        .threshold = 1,
        .recovery = RATION_RECOVERY_HEALTH_CHECK,
        .backoff_multiplier = {2, 1},
    };

    (void)state;
    RUN(&rule, steps);
}

static void test_idle_probe(void **state)
{
    static const step steps[] = {
        {"quiet", 0, TIME, 0, RN_BREAKER_SAME, CLOSED, 10 * S},
        {"a check", 10 * S, TIME, 0, RN_BREAKER_CHECK, CLOSED, 20 * S},
        {"bad: one", 11 * S, ILL, 0, RN_BREAKER_SAME, CLOSED, 20 * S},
        {"a check", 20 * S, TIME, 0, RN_BREAKER_CHECK, CLOSED, 30 * S},
        {"good: none", 21 * S, WELL, 0, RN_BREAKER_SAME, CLOSED, 30 * S},
        {"a check", 30 * S, TIME, 0, RN_BREAKER_CHECK, CLOSED, 40 * S},
        {"bad: one", 31 * S, ILL, 0, RN_BREAKER_SAME, CLOSED, 40 * S},
        {"a call is no result", 35 * S, ENTER, 'a', RN_BREAKER_SAME, CLOSED, 40 * S},
        {"nor is one that is cancelled", 35 * S, LEAVE, 'a', RN_BREAKER_SAME, CLOSED, 40 * S},
        {"a call", 35 * S, ENTER, 'a', RN_BREAKER_SAME, CLOSED, 40 * S},
        {"fails: not quiet any more, and not in the row", 35 * S, FAIL, 'a', RN_BREAKER_SAME, CLOSED, 45 * S},
        {"a bad check too late to say anything", 36 * S, ILL, 0, RN_BREAKER_SAME, CLOSED, 45 * S},
        {"quiet again", 45 * S, TIME, 0, RN_BREAKER_CHECK, CLOSED, 55 * S},
        {"bad: two in a row", 45 * S, ILL, 0, RN_BREAKER_OPENED, OPEN, 46 * S},
        {"open as ever", 46 * S, TIME, 0, RN_BREAKER_HALF_OPENED, HALF, NEVER},
        {"a probe", 46 * S, ENTER, 'b', RN_BREAKER_SAME, HALF, 47 * S},
        {"closes", 46 * S, OK, 'b', RN_BREAKER_CLOSED, CLOSED, 56 * S},
        {"a check", 56 * S, TIME, 0, RN_BREAKER_CHECK, CLOSED, 66 * S},
        {"bad: one", 56 * S, ILL, 0, RN_BREAKER_SAME, CLOSED, 66 * S},
        {"a call", 60 * S, ENTER, 'c', RN_BREAKER_SAME, CLOSED, 66 * S},
        {"succeeds: none", 60 * S, OK, 'c', RN_BREAKER_SAME, CLOSED, 70 * S},
        {"a check", 70 * S, TIME, 0, RN_BREAKER_CHECK, CLOSED, 80 * S},
        {"bad: one", 70 * S, ILL, 0, RN_BREAKER_SAME, CLOSED, 80 * S},
        {"two", 71 * S, ILL, 0, RN_BREAKER_OPENED, OPEN, 72 * S},
    };
    const ration_breaker_rule rule = {
        .strategy = RATION_BREAKER_CONSECUTIVE,
        .idle_interval_us = 10 * S,
        .idle_failures = 2,
    };

    (void)state;
    RUN(&rule, steps);
}

static void test_check_out(void **state)
{
    const ration_breaker_rule rule = {
        .strategy = RATION_BREAKER_CONSECUTIVE, .recovery = RATION_RECOVERY_HEALTH_CHECK, .idle_interval_us = S};
    world w;

    (void)state;
    world_init(&w, &rule, 0);
    CHECK(!w.breaker.check_out);
    CHECK_EQ(rn_breaker_advance(&w.breaker, ration_time_of(S)), RN_BREAKER_CHECK);
    CHECK(w.breaker.check_out);
    CHECK_EQ(rn_breaker_health(&w.breaker, ration_time_of(S), true), RN_BREAKER_SAME);
    CHECK(!w.breaker.check_out);
    CHECK_EQ(rn_breaker_advance(&w.breaker, ration_time_of(2 * S)), RN_BREAKER_CHECK);
    CHECK_EQ(rn_breaker_health(&w.breaker, ration_time_of(2 * S), false), RN_BREAKER_OPENED);
    CHECK(!w.breaker.check_out);
    CHECK_EQ(rn_breaker_advance(&w.breaker, ration_time_of(3 * S)), RN_BREAKER_CHECK);
    CHECK(w.breaker.check_out);
    CHECK_EQ(rn_breaker_health(&w.breaker, ration_time_of(3 * S), false), RN_BREAKER_SAME);
    CHECK(!w.breaker.check_out);

    /* What was asked while closed is no longer asked when calls have opened it. */
    CHECK_EQ(rn_breaker_health(&w.breaker, ration_time_of(3 * S), true), RN_BREAKER_CLOSED);
    CHECK_EQ(rn_breaker_advance(&w.breaker, ration_time_of(4 * S)), RN_BREAKER_CHECK);

    const rn_breaker_pass pass = rn_breaker_enter(&w.breaker, ration_time_of(4 * S));

    for (int i = 0; i < 5; i++)
        rn_breaker_result(&w.breaker, ration_time_of(4 * S), &pass, false);
    CHECK_EQ(w.breaker.state, OPEN);
    CHECK(!w.breaker.check_out);
    rn_breaker_fini(&w.breaker);
}

/* How long each opening in a row lasts. */
static void test_backoff(void **state)
{
    static const struct {
        const char *why;
        int64_t initial_us;
        ration_ratio multiplier;
        int64_t max_us;
        int64_t want[5];
    } rows[] = {
        {"a second by default, always", 0, {0, 0}, 0, {S, S, S, S, S}},
        {"a constant", 250, {0, 0}, 0, {250, 250, 250, 250, 250}},
        {"times one", 250, {1, 1}, 0, {250, 250, 250, 250, 250}},
        {"doubling", 3, {2, 1}, 0, {3, 6, 12, 24, 48}},
        {"half as much again, rounded up each time", 5, {3, 2}, 0, {5, 8, 12, 18, 27}},
        {"never stuck at 1 us", 1, {1000000, 999999}, 0, {1, 2, 3, 4, 5}},
        {"a bound", 1000, {2, 1}, 3000, {1000, 2000, 3000, 3000, 3000}},
        {"a bound that is the first", 1000, {2, 1}, 1000, {1000, 1000, 1000, 1000, 1000}},
        {"a bound just above", 1000, {3, 1}, 9001, {1000, 3000, 9000, 9001, 9001}},
        {"no bound but the last instant",
         RATION_TIME_MAX_US / 2,
         {1000000, 1},
         0,
         {RATION_TIME_MAX_US / 2, RATION_TIME_MAX_US, RATION_TIME_MAX_US, RATION_TIME_MAX_US, RATION_TIME_MAX_US}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const ration_breaker_rule rule = {
            .strategy = RATION_BREAKER_CONSECUTIVE,
            .threshold = 1,
            .backoff_initial_us = rows[i].initial_us,
            .backoff_multiplier = rows[i].multiplier,
            .backoff_max_us = rows[i].max_us,
        };
        world w;

        CHECK_ROW(rows[i].why);
        world_init(&w, &rule, 0);

        rn_breaker_pass pass = rn_breaker_enter(&w.breaker, ration_time_of(0));

        for (size_t k = 0; k < 5; k++) {
            CHECK_EQ(rn_breaker_result(&w.breaker, ration_time_of(0), &pass, false), RN_BREAKER_OPENED);
            CHECK_EQ(rn_breaker_next(&w.breaker).us, rows[i].want[k]);
            CHECK_EQ(rn_breaker_advance(&w.breaker, rn_breaker_next(&w.breaker)), RN_BREAKER_HALF_OPENED);
            pass = rn_breaker_enter(&w.breaker, ration_time_of(0));
            CHECK_EQ(rn_breaker_next(&w.breaker).us, rows[i].want[k]);
        }
        rn_breaker_fini(&w.breaker);
    }
}

/* At the last instant nothing falls due any more, so that time always ends. */
static void test_end_of_time(void **state)
{
    static const step steps[] = {
        {"a call", RATION_TIME_MAX_US - 1, ENTER, 'a', RN_BREAKER_SAME, CLOSED, RATION_TIME_MAX_US},
        {"fails", RATION_TIME_MAX_US - 1, FAIL, 'a', RN_BREAKER_OPENED, OPEN, RATION_TIME_MAX_US},
        {"a check", RATION_TIME_MAX_US, TIME, 0, RN_BREAKER_CHECK, OPEN, NEVER},
        {"and no other", RATION_TIME_MAX_US, TIME, 0, RN_BREAKER_SAME, OPEN, NEVER},
        {"bad", RATION_TIME_MAX_US, ILL, 0, RN_BREAKER_SAME, OPEN, NEVER},
        {"good", RATION_TIME_MAX_US, WELL, 0, RN_BREAKER_CLOSED, CLOSED, NEVER},
        {"no idle check either", RATION_TIME_MAX_US, TIME, 0, RN_BREAKER_SAME, CLOSED, NEVER},
    };
    const ration_breaker_rule rule = {
        .strategy = RATION_BREAKER_CONSECUTIVE,
        .threshold = 1,
        .recovery = RATION_RECOVERY_HEALTH_CHECK,
        .idle_interval_us = 10 * S,
    };

    (void)state;
    RUN(&rule, steps);
}

static void test_retry_at(void **state)
{
    ration_breaker_rule rule = cells_rule;
    world w;

    (void)state;
    rule.idle_interval_us = 0;
    world_init(&w, &rule, 0);
    CHECK_EQ(rn_breaker_retry_at(&w.breaker).us, NEVER);

    rn_breaker_pass pass = rn_breaker_enter(&w.breaker, ration_time_of(0));

    rn_breaker_result(&w.breaker, ration_time_of(0), &pass, false);
    CHECK_EQ(rn_breaker_retry_at(&w.breaker).us, S);
    rn_breaker_advance(&w.breaker, ration_time_of(S));
    CHECK_EQ(rn_breaker_retry_at(&w.breaker).us, NEVER);
    pass = rn_breaker_enter(&w.breaker, ration_time_of(S));
    CHECK_EQ(rn_breaker_retry_at(&w.breaker).us, NEVER); /* another permit is left */
    rn_breaker_enter(&w.breaker, ration_time_of(S + 9));
    CHECK_EQ(rn_breaker_retry_at(&w.breaker).us, 2 * S);
    rn_breaker_leave(&w.breaker, &pass);
    CHECK_EQ(rn_breaker_retry_at(&w.breaker).us, NEVER);
    rn_breaker_fini(&w.breaker);

    rule.idle_interval_us = S;
    world_init(&w, &rule, 0);
    CHECK_EQ(rn_breaker_next(&w.breaker).us, S);
    CHECK_EQ(rn_breaker_retry_at(&w.breaker).us, NEVER); /* closed, whatever is due */
    rn_breaker_fini(&w.breaker);
}

/* ---- the rest ---- */

static void test_fresh(void **state)
{
    ration_breaker_rule rule = {.strategy = RATION_BREAKER_SAMPLING, .duration_us = 10 * S, .minimum_calls = 1};
    world w;

    (void)state;
    world_init(&w, &rule, 0);
    CHECK(rn_breaker_is_fresh(&w.breaker, ration_time_of(0)));

    rn_breaker_pass pass = rn_breaker_enter(&w.breaker, ration_time_of(0));

    CHECK(rn_breaker_is_fresh(&w.breaker, ration_time_of(0)));
    rn_breaker_result(&w.breaker, ration_time_of(0), &pass, true);
    CHECK(!rn_breaker_is_fresh(&w.breaker, ration_time_of(10 * S - 1)));
    CHECK(rn_breaker_is_fresh(&w.breaker, ration_time_of(10 * S)));
    rn_breaker_result(&w.breaker, ration_time_of(10 * S), &pass, false);
    CHECK_EQ(w.breaker.state, OPEN);
    CHECK(!rn_breaker_is_fresh(&w.breaker, ration_time_of(10 * S)));
    rn_breaker_advance(&w.breaker, ration_time_of(11 * S));
    CHECK_EQ(w.breaker.state, HALF);
    CHECK(!rn_breaker_is_fresh(&w.breaker, ration_time_of(11 * S)));
    pass = rn_breaker_enter(&w.breaker, ration_time_of(11 * S));
    rn_breaker_result(&w.breaker, ration_time_of(11 * S), &pass, true);
    CHECK(rn_breaker_is_fresh(&w.breaker, ration_time_of(11 * S)));
    rn_breaker_fini(&w.breaker);

    rule = (ration_breaker_rule){.strategy = RATION_BREAKER_CONSECUTIVE};
    world_init(&w, &rule, 0);
    pass = rn_breaker_enter(&w.breaker, ration_time_of(0));
    rn_breaker_result(&w.breaker, ration_time_of(0), &pass, false);
    CHECK(!rn_breaker_is_fresh(&w.breaker, ration_time_of(99 * S)));
    rn_breaker_result(&w.breaker, ration_time_of(0), &pass, true);
    CHECK(rn_breaker_is_fresh(&w.breaker, ration_time_of(99 * S)));
    rn_breaker_fini(&w.breaker);

    rule.idle_interval_us = S;
    world_init(&w, &rule, 0);
    CHECK(!rn_breaker_is_fresh(&w.breaker, ration_time_of(0)));
    rn_breaker_fini(&w.breaker);
}

static void test_causes(void **state)
{
    const ration_breaker_rule rule = {.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 1, .idle_interval_us = S};

    world w;

    (void)state;
    world_init(&w, &rule, 0);
    CHECK_STR(w.breaker.cause, "");

    rn_breaker_pass pass = rn_breaker_enter(&w.breaker, ration_time_of(0));

    rn_breaker_result(&w.breaker, ration_time_of(0), &pass, false);
    CHECK_STR(w.breaker.cause, "1 failure");
    rn_breaker_advance(&w.breaker, ration_time_of(S));
    CHECK_STR(w.breaker.cause, "the back-off is over");
    pass = rn_breaker_enter(&w.breaker, ration_time_of(S));
    rn_breaker_advance(&w.breaker, ration_time_of(2 * S));
    CHECK_STR(w.breaker.cause, "probes were lost");
    pass = rn_breaker_enter(&w.breaker, ration_time_of(2 * S));
    rn_breaker_result(&w.breaker, ration_time_of(2 * S), &pass, false);
    CHECK_STR(w.breaker.cause, "a probe failed");
    rn_breaker_health(&w.breaker, ration_time_of(2 * S), true);
    CHECK_STR(w.breaker.cause, "health check succeeded");
    rn_breaker_health(&w.breaker, ration_time_of(3 * S), false);
    CHECK_STR(w.breaker.cause, "1 health check failed while idle");
    rn_breaker_advance(&w.breaker, ration_time_of(4 * S));
    pass = rn_breaker_enter(&w.breaker, ration_time_of(4 * S));
    rn_breaker_result(&w.breaker, ration_time_of(4 * S), &pass, true);
    CHECK_STR(w.breaker.cause, "1 probe succeeded");
    rn_breaker_fini(&w.breaker);
}

/* A circuit under other rules tells what brought it about, in the numbers of that time. */
static void test_a_cause_outlives_its_rule(void **state)
{
    static const ration_breaker_rule rules[] = {
        {.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 2},
        {.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 9},
        {.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 7},
        {.strategy = RATION_BREAKER_COUNT, .size = 10},
    };
    const ration_time start = ration_time_of(0), later = ration_time_of(S);
    world lives[4];

    (void)state;
    for (size_t i = 0; i < 4; i++)
        world_init(&lives[i], &rules[i], 0);
    for (int i = 0; i < 2; i++) {
        rn_breaker_pass pass = rn_breaker_enter(&lives[0].breaker, start);

        rn_breaker_result(&lives[0].breaker, start, &pass, false);
    }
    for (size_t i = 1; i < 4; i++) {
        rn_breaker_carry(&lives[i].breaker, start, &lives[i - 1].breaker);
        rn_breaker_fini(&lives[i - 1].breaker);
        memset(&lives[i - 1], 'x', sizeof lives[i - 1]); /* the rules of before are gone */
        CHECK_EQ(lives[i].breaker.state, RATION_BREAKER_OPEN);
        CHECK_STR(lives[i].breaker.cause, "2 failures in a row");
    }
    rn_breaker_advance(&lives[3].breaker, later);
    CHECK_STR(lives[3].breaker.cause, "the back-off is over");
    rn_breaker_fini(&lives[3].breaker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cause_outlives_its_rule),
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_half_open),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_health_check),
        cmocka_unit_test(test_idle_probe),
        cmocka_unit_test(test_check_out),
        cmocka_unit_test(test_backoff),
        cmocka_unit_test(test_end_of_time),
        cmocka_unit_test(test_retry_at),
        cmocka_unit_test(test_fresh),
        cmocka_unit_test(test_causes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
