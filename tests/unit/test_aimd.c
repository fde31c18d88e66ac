/* SPDX-License-Identifier: MIT */
/* Adaptive limits: when they grow and shrink, to the microsecond; what classes keep from each other; rules. */
#include "support/check.h"

#include "base/units.h"
#include "core/aimd.h"

#define UNIT RATION_UNIT
#define S INT64_C(1000000)
#define NEVER RATION_NEVER_US
#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

typedef enum op { START, DEMAND, THROTTLE } op;

typedef struct step {
    const char *why;
    int64_t at_us;
    op op;
    bool moves;
    int64_t limit;
    int64_t grows_at;
} step;

static ration_adaptive_rule rule_of(int64_t initial)
{
    const ration_adaptive_rule rule = {.initial_limit = initial};

    return rule;
}

static void run(const ration_adaptive_rule *rule, const step *steps, size_t count)
{
    ration_fault fault = {{0}, {0}};
    rn_aimd_spec spec;
    rn_aimd aimd;

    CHECK_EQ(rn_aimd_spec_init(&spec, rule, &fault), RATION_OK);
    rn_aimd_init(&aimd, &spec);
    for (size_t i = 0; i < count; i++) {
        const step *const s = &steps[i];
        const ration_time now = ration_time_of(s->at_us);
        const int64_t next = rn_aimd_next(&aimd, &spec);
        bool moved = false;

        CHECK_ROW(s->why);
        switch (s->op) {
        case START:
            rn_aimd_start(&aimd, now);
            break;
        case DEMAND:
            moved = rn_aimd_demand(&aimd, &spec, now);
            CHECK(!moved || aimd.limit == next);
            break;
        case THROTTLE:
            moved = rn_aimd_throttle(&aimd, &spec, now);
            break;
        }
        CHECK_EQ(moved, s->moves);
        CHECK_EQ(aimd.limit, s->limit);
        CHECK_EQ(rn_aimd_grows_at(&aimd, &spec).us, s->grows_at);
    }
}

#define RUN(rule, steps) run((rule), (steps), COUNT(steps))

/* The golden trace aimd-sawtooth, and what it leaves out. */
static void test_sawtooth(void **state)
{
    static const step steps[] = {
        {"no window before the first acquire", 0, DEMAND, false, 4, NEVER},
        {"which begins it", 1 * S, START, false, 4, 6 * S},
        {"and no other does", 2 * S, START, false, 4, 6 * S},
        {"1 us before the window's end", 6 * S - 1, DEMAND, false, 4, 6 * S},
        {"exactly a window after the start", 6 * S, DEMAND, true, 5, 11 * S},
        {"once a window", 6 * S, DEMAND, false, 5, 11 * S},
        {"1 us before the next", 11 * S - 1, DEMAND, false, 5, 11 * S},
        {"exactly a window after the increase", 11 * S, DEMAND, true, 6, 16 * S},
        {"too many: half", 12 * S, THROTTLE, true, 3, 17 * S},
        {"the window of the increase is over, that of the throttle is not", 17 * S - 1, DEMAND, false, 3, 17 * S},
        {"1 us within the cooldown: no second decrease, but a window without growth", 22 * S - 1, THROTTLE, false, 3,
         27 * S - 1},
        {"exactly a cooldown: floor(3 / 2)", 22 * S, THROTTLE, true, 1, 27 * S},
        {"1 us within the window of the throttle", 27 * S - 1, DEMAND, false, 1, 27 * S},
        {"exactly a window ago is outside", 27 * S, DEMAND, true, 2, 32 * S},
        {"quiet for an hour", 3600 * S, START, false, 2, 32 * S},
        {"is one step, not many", 3600 * S, DEMAND, true, 3, 3605 * S},
    };
    const ration_adaptive_rule rule = rule_of(4);

    (void)state;
    RUN(&rule, steps);
}

static void test_bounds(void **state)
{
    static const step low[] = {
        {"start", 0, START, false, 3, 5 * S},
        {"floor(1.5) is below the minimum", 0, THROTTLE, true, 2, 5 * S},
        {"nothing changes at the minimum", 10 * S, THROTTLE, false, 2, 15 * S},
        {"up", 15 * S, DEMAND, true, 3, 20 * S},
        {"but that one began a cooldown", 20 * S - 1, THROTTLE, false, 3, 25 * S - 1},
        {"until now", 20 * S, THROTTLE, true, 2, 25 * S},
    };
    static const step high[] = {
        {"start", 0, START, false, 8, 5 * S},
        {"a step of 3 stops at the maximum", 5 * S, DEMAND, true, 10, NEVER},
        {"where nothing grows", 50 * S, DEMAND, false, 10, NEVER},
        {"nine tenths", 50 * S, THROTTLE, true, 9, 55 * S},
    };
    static const step before[] = {
        {"a throttle before any acquire starts it too", 7 * S, THROTTLE, true, 50, 12 * S},
        {"so the first acquire comes late", 8 * S, START, false, 50, 12 * S},
        {"its window is that of the throttle", 12 * S, DEMAND, true, 51, 17 * S},
    };
    static const step far[] = {
        {"the last instant there is", RATION_TIME_MAX_US, START, false, 1, RATION_TIME_MAX_US + 5 * S},
        {"a throttle then", RATION_TIME_MAX_US, THROTTLE, false, 1, RATION_TIME_MAX_US + 5 * S},
    };
    ration_adaptive_rule rule = rule_of(3);

    (void)state;
    rule.min_limit = 2;
    RUN(&rule, low);
    rule = rule_of(8);
    rule.max_limit = 10;
    rule.increase_step = 3;
    rule.decrease_factor = (ration_ratio){9, 10};
    RUN(&rule, high);
    rule = rule_of(100);
    RUN(&rule, before);
    rule = rule_of(1);
    RUN(&rule, far);
}

/* A burst of a hundred is one event. */
static void test_burst(void **state)
{
    const ration_adaptive_rule rule = rule_of(64);
    ration_fault fault;
    rn_aimd_spec spec;
    rn_aimd aimd;
    int decreases = 0;

    (void)state;
    CHECK_EQ(rn_aimd_spec_init(&spec, &rule, &fault), RATION_OK);
    rn_aimd_init(&aimd, &spec);
    rn_aimd_start(&aimd, ration_time_of(0));
    for (int i = 0; i < 100; i++)
        decreases += rn_aimd_throttle(&aimd, &spec, ration_time_of(S + i)) ? 1 : 0;
    CHECK_EQ(decreases, 1);
    CHECK_EQ(aimd.limit, 32);
    CHECK_EQ(rn_aimd_grows_at(&aimd, &spec).us, 6 * S + 99);
}

static void test_fast(void **state)
{
    static const step doubling[] = {
        {"start", 0, START, false, 40, 5 * S},
        {"no climb before a decrease", 5 * S, DEMAND, true, 41, 10 * S},
        {"41 was too much: 20, and back up to 36", 6 * S, THROTTLE, true, 20, 11 * S},
        {"a step", 11 * S, DEMAND, true, 21, 16 * S},
        {"two", 16 * S, DEMAND, true, 23, 21 * S},
        {"four", 21 * S, DEMAND, true, 27, 26 * S},
        {"eight", 26 * S, DEMAND, true, 35, 31 * S},
        {"sixteen would be above floor(36.9)", 31 * S, DEMAND, true, 36, 36 * S},
        {"from there by single steps", 36 * S, DEMAND, true, 37, 41 * S},
        {"and again", 41 * S, DEMAND, true, 38, 46 * S},
        {"38: back up to 34", 42 * S, THROTTLE, true, 19, 47 * S},
        {"a step", 47 * S, DEMAND, true, 20, 52 * S},
        {"a throttle in the cooldown costs a window", 52 * S - 1, THROTTLE, false, 20, 57 * S - 1},
        {"and no more: two", 57 * S - 1, DEMAND, true, 22, 62 * S - 1},
        {"22 was too much: the climb begins anew, to 19", 60 * S, THROTTLE, true, 11, 65 * S},
        {"a step", 65 * S, DEMAND, true, 12, 70 * S},
        {"two", 70 * S, DEMAND, true, 14, 75 * S},
        {"four", 75 * S, DEMAND, true, 18, 80 * S},
        {"one is left", 80 * S, DEMAND, true, 19, 85 * S},
        {"by steps", 85 * S, DEMAND, true, 20, 90 * S},
    };
    static const step exact[] = {
        {"start", 0, START, false, 10, 5 * S},
        {"10 was too much: 6, and back up to 9", 0, THROTTLE, true, 6, 5 * S},
        {"a step", 5 * S, DEMAND, true, 7, 10 * S},
        {"two reach 9 exactly", 10 * S, DEMAND, true, 9, 15 * S},
        {"then by steps", 15 * S, DEMAND, true, 10, 20 * S},
    };
    static const step stepping[] = {
        {"start", 0, START, false, 10, 5 * S},
        {"10 was too much: 5, and back up to 9", 0, THROTTLE, true, 5, 5 * S},
        {"even one step of 6 is above that", 5 * S, DEMAND, true, 9, 10 * S},
        {"then by steps", 10 * S, DEMAND, true, 15, 15 * S},
    };
    static const step nothing[] = {
        {"start", 0, START, false, 10, 5 * S},
        {"a factor above nine tenths leaves nothing to climb", 0, THROTTLE, true, 9, 5 * S},
        {"a step", 5 * S, DEMAND, true, 10, 10 * S},
        {"a step", 10 * S, DEMAND, true, 11, 15 * S},
    };
    ration_adaptive_rule rule = rule_of(40);

    (void)state;
    rule.recovery_fast = true;
    RUN(&rule, doubling);
    rule = rule_of(10);
    rule.recovery_fast = true;
    rule.decrease_factor = (ration_ratio){3, 5};
    RUN(&rule, exact);
    rule.decrease_factor = (ration_ratio){0, 0};
    rule.increase_step = 6;
    RUN(&rule, stepping);
    rule.increase_step = 0;
    rule.decrease_factor = (ration_ratio){19, 20};
    RUN(&rule, nothing);
}

/* ---- rules ---- */

static void test_defaults(void **state)
{
    const ration_adaptive_rule rule = rule_of(10);
    ration_fault fault;
    rn_aimd_spec spec;

    (void)state;
    CHECK_EQ(rn_aimd_spec_init(&spec, &rule, &fault), RATION_OK);
    CHECK_EQ(spec.initial, 10);
    CHECK_EQ(spec.min, 1);
    CHECK_EQ(spec.max, 1000);
    CHECK_EQ(spec.step, 1);
    CHECK_EQ(spec.factor.num, 1);
    CHECK_EQ(spec.factor.den, 2);
    CHECK_EQ(spec.window_us, 5 * S);
    CHECK_EQ(spec.cooldown_us, 10 * S);
    CHECK_EQ(spec.lease_ttl_us, 30 * S);
    CHECK(!spec.fast);
}

static void check_fault(const char *why, const ration_adaptive_rule *rule, const char *path)
{
    ration_fault fault = {{0}, {0}};
    rn_aimd_spec spec = {.initial = 77};

    CHECK_ROW(why);
    CHECK_EQ(rn_aimd_spec_init(&spec, rule, &fault), path == NULL ? RATION_OK : RATION_ERR_CONFIG);
    CHECK_STR(fault.path, path == NULL ? "" : path);
    CHECK((fault.text[0] == '\0') == (path == NULL));
    CHECK_EQ(spec.initial, path == NULL ? rule->initial_limit : 77);
}

static void test_faults(void **state)
{
    static const struct {
        const char *why, *path;
        ration_adaptive_rule rule;
    } rows[] = {
        {"no initial limit", "initialLimit", {.initial_limit = 0}},
        {"a negative one", "initialLimit", {.initial_limit = -1}},
        {"below the minimum", "initialLimit", {.initial_limit = 4, .min_limit = 5}},
        {"at the minimum", NULL, {.initial_limit = 5, .min_limit = 5}},
        {"above the maximum", "initialLimit", {.initial_limit = 8, .max_limit = 7}},
        {"above the default maximum", "initialLimit", {.initial_limit = 1001}},
        {"at the maximum", NULL, {.initial_limit = 1000}},
        {"a minimum below 1", "minLimit", {.initial_limit = 4, .min_limit = -1}},
        {"a minimum above the maximum", "minLimit", {.initial_limit = 8, .min_limit = 8, .max_limit = 7}},
        {"a minimum above a million", "minLimit", {.initial_limit = 8, .min_limit = 1000001, .max_limit = 1000000}},
        {"a million", NULL, {.initial_limit = 1000000, .min_limit = 1000000, .max_limit = 1000000}},
        {"above a million", "maxLimit", {.initial_limit = 8, .max_limit = 1000001}},
        {"a negative maximum", "maxLimit", {.initial_limit = 8, .max_limit = -1}},
        {"the largest numbers", "maxLimit", {.initial_limit = INT64_MAX, .max_limit = INT64_MAX}},
        {"a factor of 0", "aimd.decreaseFactor", {.initial_limit = 8, .decrease_factor = {0, 1}}},
        {"a factor of 1", "aimd.decreaseFactor", {.initial_limit = 8, .decrease_factor = {1, 1}}},
        {"a factor above 1", "aimd.decreaseFactor", {.initial_limit = 8, .decrease_factor = {3, 2}}},
        {"a negative factor", "aimd.decreaseFactor", {.initial_limit = 8, .decrease_factor = {-1, 2}}},
        {"a negative part", "aimd.decreaseFactor", {.initial_limit = 8, .decrease_factor = {1, -2}}},
        {"a part above a million", "aimd.decreaseFactor", {.initial_limit = 8, .decrease_factor = {1, 1000001}}},
        {"just below 1", NULL, {.initial_limit = 8, .decrease_factor = {999999, 1000000}}},
        {"a step below 1", "aimd.increaseStep", {.initial_limit = 8, .increase_step = -1}},
        {"a step above a million", "aimd.increaseStep", {.initial_limit = 8, .increase_step = 1000001}},
        {"a step of a million", NULL, {.initial_limit = 8, .increase_step = 1000000}},
        {"a negative window", "aimd.window", {.initial_limit = 8, .window_us = -1}},
        {"the longest window", NULL, {.initial_limit = 8, .window_us = RATION_TIME_MAX_US}},
        {"a window of 1 us", NULL, {.initial_limit = 8, .window_us = 1}},
        {"a window without end", "aimd.window", {.initial_limit = 8, .window_us = RATION_FOREVER_US}},
        {"a negative cooldown", "aimd.cooldown", {.initial_limit = 8, .cooldown_us = -1}},
        {"a cooldown without end", "aimd.cooldown", {.initial_limit = 8, .cooldown_us = RATION_TIME_MAX_US + 1}},
        {"a negative ttl", "leaseTtl", {.initial_limit = 8, .lease_ttl_us = -1}},
        {"a ttl without end", "leaseTtl", {.initial_limit = 8, .lease_ttl_us = RATION_FOREVER_US}},
        {"a negative horizon", "lend.reclaimHorizon", {.initial_limit = 8, .lend_horizon_us = -1, .lend_idle_us = 5}},
        {"no horizon", "lend.reclaimHorizon", {.initial_limit = 8, .lend_idle_us = 5}},
        {"a horizon without end", "lend.reclaimHorizon", {.initial_limit = 8, .lend_horizon_us = RATION_FOREVER_US}},
        {"no idle time", "lend.idleAfter", {.initial_limit = 8, .lend_horizon_us = 5}},
        {"a negative one", "lend.idleAfter", {.initial_limit = 8, .lend_horizon_us = 5, .lend_idle_us = -1}},
        {"one without end",
         "lend.idleAfter",
         {.initial_limit = 8, .lend_horizon_us = 5, .lend_idle_us = RATION_FOREVER_US}},
        {"not longer than the horizon",
         "lend.idleAfter",
         {.initial_limit = 8, .lend_horizon_us = 5, .lend_idle_us = 5}},
        {"the longest one", NULL, {.initial_limit = 8, .lend_horizon_us = 5, .lend_idle_us = RATION_TIME_MAX_US}},
        {"the longest horizon leaves none",
         "lend.idleAfter",
         {.initial_limit = 8, .lend_horizon_us = RATION_TIME_MAX_US, .lend_idle_us = RATION_TIME_MAX_US}},
        {"1 us longer", NULL, {.initial_limit = 8, .lend_horizon_us = 5, .lend_idle_us = 6}},
        {"classes without classes", "classes", {.initial_limit = 8, .class_count = 1}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check_fault(rows[i].why, &rows[i].rule, rows[i].path);
}

static void test_class_faults(void **state)
{
    static const struct {
        const char *why, *path;
        size_t count;
        ration_class_rule classes[4];
    } rows[] = {
        {"no reserve", NULL, 1, {{"a", {0, 0}}}},
        {"a reserve of 0", NULL, 2, {{"a", {0, 1}}, {"b", {0, 1}}}},
        {"all of it", NULL, 2, {{"a", {1, 1}}, {"b", {0, 0}}}},
        {"all of it, and a millionth", "classes", 2, {{"a", {1, 1}}, {"b", {1, 1000000}}}},
        {"thirds", NULL, 3, {{"a", {1, 3}}, {"b", {1, 3}}, {"c", {1, 3}}}},
        {"a hair above 1, which rounding would hide",
         "classes",
         3,
         {{"a", {1, 3}}, {"b", {1, 3}}, {"c", {333334, 1000000}}}},
        {"and a hair below", NULL, 3, {{"a", {1, 3}}, {"b", {1, 3}}, {"c", {333333, 1000000}}}},
        {"primes: a millionth of a millionth below 1", NULL, 2, {{"a", {249996, 999983}}, {"b", {749984, 999979}}}},
        {"primes: a millionth of a millionth above 1",
         "classes",
         2,
         {{"a", {749987, 999983}}, {"b", {249995, 999979}}}},
        {"no name", "classes", 1, {{NULL, {0, 1}}}},
        {"an empty name", "classes", 2, {{"a", {0, 1}}, {"", {0, 1}}}},
        {"twice the same", "classes.bulk", 3, {{"bulk", {0, 1}}, {"b", {0, 1}}, {"bulk", {0, 1}}}},
        {"a negative reserve", "classes.a.reservedShare", 1, {{"a", {-1, 2}}}},
        {"above 1", "classes.b.reservedShare", 2, {{"a", {1, 2}}, {"b", {3, 2}}}},
        {"a part above a million", "classes.a.reservedShare", 1, {{"a", {1, 1000001}}}},
        {"a negative part", "classes.a.reservedShare", 1, {{"a", {1, -1}}}},
        {"no part", "classes.a.reservedShare", 1, {{"a", {1, 0}}}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        ration_adaptive_rule rule = rule_of(8);

        rule.classes = rows[i].classes;
        rule.class_count = rows[i].count;
        check_fault(rows[i].why, &rule, rows[i].path);
    }
}

/* 64 classes, whose shares have as long a common denominator as there is. */
static void test_many_classes(void **state)
{
    ration_class_rule classes[65];
    char names[65][4];
    ration_adaptive_rule rule = rule_of(8);

    (void)state;
    for (size_t i = 0; i < 65; i++) {
        names[i][0] = 'c';
        names[i][1] = (char)('0' + i / 10);
        names[i][2] = (char)('0' + i % 10);
        names[i][3] = '\0';
        classes[i] = (ration_class_rule){names[i], {1, 64}};
    }
    rule.classes = classes;
    rule.class_count = 64;
    check_fault("64 of 1/64", &rule, NULL);
    rule.class_count = 65;
    check_fault("65", &rule, "classes");
    rule.class_count = 64;
    for (int32_t i = 0; i < 63; i++)
        classes[i].reserved = (ration_ratio){15624, 1000000 - i};
    classes[63].reserved = (ration_ratio){15657, 1000000};
    check_fault("63 that add up to 0.984342515, and the last", &rule, NULL);
    classes[63].reserved = (ration_ratio){15658, 1000000};
    check_fault("and one that is just too large", &rule, "classes");
}

/* ---- classes ---- */

static void test_reserved(void **state)
{
    static const struct {
        const char *why;
        int64_t limit;
        ration_ratio share;
        int64_t want;
    } rows[] = {
        {"none", 10, {0, 0}, 0},
        {"none of 0/1", 10, {0, 1}, 0},
        {"a quarter of 20", 20, {1, 4}, 5},
        {"rounded up", 21, {1, 4}, 6},
        {"to the next whole unit", 1, {1, 1000000}, 1},
        {"all", 7, {1, 1}, 7},
        {"of a million", 1000000, {999999, 1000000}, 999999},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_class_reserved(rows[i].limit, rows[i].share), rows[i].want * UNIT);
    }
}

typedef struct held4 {
    int64_t total;
    int64_t of[5];
} held4;

static rn_class_held *held_of(held4 *held)
{
    _Static_assert(offsetof(held4, of) == offsetof(rn_class_held, of), "the same shape");
    return (rn_class_held *)(void *)held;
}

/* One more unit for a class at `limit`? */
static bool class_take(const ration_adaptive_rule *rule, int64_t limit, held4 *held, uint32_t index)
{
    const int64_t kept = rn_class_kept(rule, limit, held_of(held), index, 0);

    if (held->total + UNIT + kept > limit * UNIT)
        return false;
    held->total += UNIT;
    held->of[index] += UNIT;
    return true;
}

/* How many a class gets with nobody else there. */
static int64_t class_cap(const ration_adaptive_rule *rule, int64_t limit, uint32_t index)
{
    held4 held = {0, {0}};

    while (class_take(rule, limit, &held, index))
        ;
    return held.total / UNIT;
}

/* x 1/4, y 1/10, z nothing: the limit and the caps of x, y, z. Who has no class has the cap of z. */
static const int64_t caps_of_two[40][4] = {
    {1, 0, 0, 0},     {2, 1, 1, 0},     {3, 2, 2, 1},     {4, 3, 3, 2},     {5, 4, 3, 2},     {6, 5, 4, 3},
    {7, 6, 5, 4},     {8, 7, 6, 5},     {9, 8, 6, 5},     {10, 9, 7, 6},    {11, 9, 8, 6},    {12, 10, 9, 7},
    {13, 11, 9, 7},   {14, 12, 10, 8},  {15, 13, 11, 9},  {16, 14, 12, 10}, {17, 15, 12, 10}, {18, 16, 13, 11},
    {19, 17, 14, 12}, {20, 18, 15, 13}, {21, 18, 15, 12}, {22, 19, 16, 13}, {23, 20, 17, 14}, {24, 21, 18, 15},
    {25, 22, 18, 15}, {26, 23, 19, 16}, {27, 24, 20, 17}, {28, 25, 21, 18}, {29, 26, 21, 18}, {30, 27, 22, 19},
    {31, 27, 23, 19}, {32, 28, 24, 20}, {33, 29, 24, 20}, {34, 30, 25, 21}, {35, 31, 26, 22}, {36, 32, 27, 23},
    {37, 33, 27, 23}, {38, 34, 28, 24}, {39, 35, 29, 25}, {40, 36, 30, 26},
};

/* a 1/3, b 1/5, c 1/7: the limit, the caps of a, b, c, and of those without a class. */
static const int64_t caps_of_three[40][5] = {
    {1, 0, 0, 0, 0},      {2, 0, 0, 0, 0},      {3, 1, 1, 1, 0},      {4, 2, 1, 1, 0},      {5, 3, 2, 2, 1},
    {6, 3, 3, 2, 1},      {7, 4, 3, 2, 1},      {8, 4, 3, 3, 1},      {9, 5, 4, 4, 2},      {10, 6, 4, 4, 2},
    {11, 6, 5, 4, 2},     {12, 7, 6, 5, 3},     {13, 8, 6, 5, 3},     {14, 9, 7, 6, 4},     {15, 9, 7, 7, 4},
    {16, 9, 7, 6, 3},     {17, 10, 8, 7, 4},    {18, 11, 9, 8, 5},    {19, 12, 9, 8, 5},    {20, 13, 10, 9, 6},
    {21, 13, 11, 9, 6},   {22, 13, 10, 9, 5},   {23, 14, 11, 10, 6},  {24, 15, 12, 11, 7},  {25, 16, 12, 11, 7},
    {26, 16, 13, 11, 7},  {27, 17, 14, 12, 8},  {28, 18, 14, 12, 8},  {29, 18, 14, 13, 8},  {30, 19, 15, 14, 9},
    {31, 19, 15, 13, 8},  {32, 20, 16, 14, 9},  {33, 21, 17, 15, 10}, {34, 22, 17, 15, 10}, {35, 23, 18, 16, 11},
    {36, 22, 18, 16, 10}, {37, 23, 18, 16, 10}, {38, 24, 19, 17, 11}, {39, 25, 20, 18, 12}, {40, 26, 20, 18, 12},
};

static const ration_class_rule two[] = {{"x", {1, 4}}, {"y", {1, 10}}, {"z", {0, 0}}};
static const ration_class_rule three[] = {{"a", {1, 3}}, {"b", {1, 5}}, {"c", {1, 7}}};

static void test_caps(void **state)
{
    ration_adaptive_rule rule = rule_of(8);

    (void)state;
    rule.class_count = 3;
    for (size_t i = 0; i < 40; i++) {
        const int64_t limit = (int64_t)i + 1;

        CHECK_ROW("two reserved classes");
        rule.classes = two;
        CHECK_EQ(caps_of_two[i][0], limit);
        for (uint32_t k = 1; k <= 3; k++)
            CHECK_EQ(class_cap(&rule, limit, k), caps_of_two[i][k]);
        CHECK_EQ(class_cap(&rule, limit, RN_CLASS_NONE), caps_of_two[i][3]);

        CHECK_ROW("three reserved classes");
        rule.classes = three;
        CHECK_EQ(caps_of_three[i][0], limit);
        for (uint32_t k = 1; k <= 3; k++)
            CHECK_EQ(class_cap(&rule, limit, k), caps_of_three[i][k]);
        CHECK_EQ(class_cap(&rule, limit, RN_CLASS_NONE), caps_of_three[i][4]);
    }
}

/* The golden trace classes: what others hold of their reserve need not be kept free a second time. */
static void test_kept(void **state)
{
    static const ration_class_rule classes[] = {{"x", {1, 3}}, {"y", {1, 4}}, {"z", {0, 0}}};
    static const struct {
        const char *why;
        uint32_t index;
        bool granted;
    } steps[] = {
        {"z", 3, true},
        {"z", 3, true},
        {"z", 3, true},
        {"no class", RN_CLASS_NONE, true},
        {"no class", RN_CLASS_NONE, true},
        {"no class: 5 held, 4 and 3 reserved", RN_CLASS_NONE, false},
        {"z neither", 3, false},
        {"x has its reserve", 1, true},
        {"x", 1, true},
        {"x", 1, true},
        {"x, the whole of it", 1, true},
        {"x: the rest is y's", 1, false},
        {"y", 2, true},
        {"y", 2, true},
        {"y", 2, true},
        {"full", 2, false},
    };
    ration_adaptive_rule rule = rule_of(12);
    held4 held = {0, {0}};

    (void)state;
    rule.classes = classes;
    rule.class_count = 3;
    for (size_t i = 0; i < COUNT(steps); i++) {
        CHECK_ROW(steps[i].why);
        CHECK_EQ(class_take(&rule, 12, &held, steps[i].index), steps[i].granted);
    }
    CHECK_ROW(NULL);
    CHECK_EQ(held.total, 12 * UNIT);

    const held4 some = {6500000, {0, 3500000, 0, 3000000, 0}};
    held4 copy = some;

    CHECK_EQ(rn_class_kept(&rule, 12, held_of(&copy), 3, 0), 500000 + 3 * UNIT);
    CHECK_EQ(rn_class_kept(&rule, 12, held_of(&copy), RN_CLASS_NONE, 0), 500000 + 3 * UNIT);
    CHECK_EQ(rn_class_kept(&rule, 12, held_of(&copy), 1, 0), 3 * UNIT);
    CHECK_EQ(rn_class_kept(&rule, 12, held_of(&copy), 2, 0), 500000);
    /* What is lent to this request is not kept from it. */
    CHECK_EQ(rn_class_kept(&rule, 12, held_of(&copy), 3, 1), 3 * UNIT);
    CHECK_EQ(rn_class_kept(&rule, 12, held_of(&copy), 3, 2), 500000);
    CHECK_EQ(rn_class_kept(&rule, 12, held_of(&copy), 3, 3), 0);
    CHECK_EQ(rn_class_kept(&rule, 12, held_of(&copy), 1, 1), 3 * UNIT);
    /* More held than reserved keeps nothing, and gives nothing to others. */
    copy.of[1] = 9 * UNIT;
    CHECK_EQ(rn_class_kept(&rule, 12, held_of(&copy), 3, 0), 3 * UNIT);
}

static void test_most(void **state)
{
    static const ration_class_rule hundreds[] = {{"a", {1, 100}}, {"b", {99, 100}}, {"c", {0, 0}}};
    static const ration_class_rule primes[] = {{"a", {1, 2}}, {"b", {1, 7}}, {"c", {1, 11}}};
    static const struct {
        const char *why;
        const ration_class_rule *classes;
        int64_t min, max;
        uint32_t index;
        int64_t want;
    } rows[] = {
        {"x leaves y's tenth: at the maximum", two, 1, 40, 1, 36},
        {"z", two, 1, 40, 3, 26},
        {"no class", two, 1, 40, RN_CLASS_NONE, 26},
        {"20 is better than 21", two, 1, 21, 3, 13},
        {"20 may be the least", two, 20, 21, 3, 13},
        {"but not if 21 is the least", two, 21, 21, 3, 12},
        {"35 is better than 36 and 37", three, 1, 37, RN_CLASS_NONE, 11},
        {"and the first of them where 35 is too low", three, 36, 37, RN_CLASS_NONE, 10},
        {"for c 35 is as good as 37", three, 35, 37, 3, 16},
        {"44 is better than 45", primes, 1, 45, 2, 18},
        {"nothing but at hundreds, and there 0", hundreds, 1, 1000000, 3, 0},
        {"a charge of nothing does not fit below", hundreds, 1, 99, 3, -1},
        {"a has what b leaves", hundreds, 1, 1000, 1, 10},
        {"at 2 nobody has anything", three, 1, 2, 2, 0},
        {"those without a class less than that", three, 2, 2, RN_CLASS_NONE, -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const rn_aimd_spec spec = {.initial = rows[i].min, .min = rows[i].min, .max = rows[i].max};
        ration_adaptive_rule rule = rule_of(rows[i].min);

        CHECK_ROW(rows[i].why);
        rule.classes = rows[i].classes;
        rule.class_count = 3;
        CHECK_EQ(rn_class_most(&rule, &spec, rows[i].index), rows[i].want * UNIT);
    }

    const rn_aimd_spec spec = {.initial = 1, .min = 1, .max = 50};
    const ration_adaptive_rule classless = rule_of(1);

    CHECK_EQ(rn_class_most(&classless, &spec, RN_CLASS_NONE), 50 * UNIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sawtooth),     cmocka_unit_test(test_bounds),       cmocka_unit_test(test_burst),
        cmocka_unit_test(test_fast),         cmocka_unit_test(test_defaults),     cmocka_unit_test(test_faults),
        cmocka_unit_test(test_class_faults), cmocka_unit_test(test_many_classes), cmocka_unit_test(test_reserved),
        cmocka_unit_test(test_caps),         cmocka_unit_test(test_kept),         cmocka_unit_test(test_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
