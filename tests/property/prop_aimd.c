/* SPDX-License-Identifier: MIT */

/*
 * Adaptive limits over random streams of demand and throttles, against a model that keeps the whole history and looks
 * through it each time; classes against what their reserves promise; the sum of shares and the largest charge against
 * plain arithmetic.
 */
#include "support/check.h"
#include "support/property.h"

#include "core/aimd.h"

#define UNIT RATION_UNIT
#define MOMENTS 400
#define CLASSES 4

typedef struct moment {
    int64_t at;
    char what;     /* 's'tart, 'u'p, 'd'own, 't'hrottle */
    int64_t limit; /* 'd': what it stood at before */
} moment;

typedef struct history {
    ration_adaptive_rule rule;
    rn_aimd_spec spec;
    int64_t limit;
    moment moments[MOMENTS];
    int count;
} history;

static struct {
    uint64_t grown, shrunk, kept, granted;
} seen;

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void note(history *h, int64_t at, char what)
{
    h->moments[h->count++] = (moment){at, what, h->limit};
}

/* May it grow? Only if the whole of the last window, its first instant aside, saw no start, increase or throttle. */
static bool window_is_clean(const history *h, int64_t now)
{
    bool started = false;

    for (int i = 0; i < h->count; i++) {
        const moment *const m = &h->moments[i];

        started = started || m->what == 's';
        if (m->what != 'd' && now - m->at < h->spec.window_us)
            return false;
    }
    return started;
}

static bool is_cooling(const history *h, int64_t now)
{
    for (int i = 0; i < h->count; i++) {
        if (h->moments[i].what == 'd' && now - h->moments[i].at < h->spec.cooldown_us)
            return true;
    }
    return false;
}

/* What it grows to: a step more; in a fast recovery twice as many with each increase since the last decrease, up to
 * nine tenths of what that found. */
static int64_t model_next(const history *h)
{
    int64_t top = 0;
    int64_t stride = h->spec.step;
    int64_t limit = 0;

    for (int i = 0; i < h->count; i++) {
        const moment *const m = &h->moments[i];

        if (m->what == 'd') {
            limit = most(h->spec.min, m->limit * h->rule.decrease_factor.num / 10);
            top = h->spec.fast ? m->limit * 9 / 10 : 0;
            stride = h->spec.step;
        } else if (m->what == 'u' && limit < top) {
            limit = least(limit + stride, top);
            stride *= 2;
        } else if (m->what == 'u') {
            top = 0;
        }
    }
    if (h->limit < top)
        return least(h->limit + stride, top);
    return least(h->limit + h->spec.step, h->spec.max);
}

static void rule_draw(choices *c, history *h)
{
    ration_fault fault;

    h->rule = (ration_adaptive_rule){
        .min_limit = choose_from(c, 1, 5),
        .increase_step = choose_from(c, 1, 4),
        .decrease_factor = {(int32_t)choose_from(c, 1, 9), 10},
        .window_us = choose_from(c, 1, 20),
        .cooldown_us = choose_from(c, 1, 40),
        .recovery_fast = choose(c, 1) == 1,
    };
    h->rule.max_limit = h->rule.min_limit + (int64_t)choose(c, 100);
    h->rule.initial_limit = choose_from(c, h->rule.min_limit, h->rule.max_limit);
    HOLDS(c, rn_aimd_spec_init(&h->spec, &h->rule, &fault) == RATION_OK);
    h->limit = h->rule.initial_limit;
}

static void demand(choices *c, history *h, rn_aimd *aimd, int64_t now)
{
    const int64_t next = model_next(h);
    const bool grows = window_is_clean(h, now) && h->limit < h->spec.max;

    NOTE(c, "at %lld demand at %lld", (long long)now, (long long)h->limit);
    HOLDS(c, rn_aimd_demand(aimd, &h->spec, ration_time_of(now)) == grows);
    if (grows) {
        HOLDS(c, next > h->limit);
        h->limit = next;
        note(h, now, 'u');
        seen.grown++;
    }
}

static void throttle(choices *c, history *h, rn_aimd *aimd, int64_t now)
{
    const int64_t before = h->limit;
    const bool counts = !is_cooling(h, now);

    NOTE(c, "at %lld throttled at %lld", (long long)now, (long long)h->limit);
    if (counts) {
        note(h, now, 'd');
        seen.shrunk++;
        h->limit = most(h->spec.min, h->limit * h->rule.decrease_factor.num / 10);
    }
    note(h, now, 't');
    HOLDS(c, rn_aimd_throttle(aimd, &h->spec, ration_time_of(now)) == (h->limit < before));
}

static void follows_its_history(choices *c, void *context)
{
    history h = {.count = 0};
    rn_aimd aimd;
    int64_t now = 0;

    (void)context;
    rule_draw(c, &h);
    rn_aimd_init(&aimd, &h.spec);
    HOLDS(c, !rn_aimd_demand(&aimd, &h.spec, ration_time_of(now)));
    rn_aimd_start(&aimd, ration_time_of(now));
    note(&h, now, 's');
    while (h.count < MOMENTS - 4 && choose(c, 60) != 0) {
        const ration_time grows_at = rn_aimd_grows_at(&aimd, &h.spec);

        switch (choose(c, 4)) {
        case 0: /* the first instant at which it may grow, and the one before */
            if (h.limit < h.spec.max) {
                HOLDS(c, !window_is_clean(&h, most(now, grows_at.us - 1)) || grows_at.us <= now);
                now = most(now, grows_at.us);
                HOLDS(c, window_is_clean(&h, now));
            } else {
                HOLDS(c, grows_at.us == RATION_NEVER_US);
            }
            demand(c, &h, &aimd, now);
            break;
        case 1:
            throttle(c, &h, &aimd, now);
            break;
        case 2:
            now += (int64_t)choose(c, 30);
            throttle(c, &h, &aimd, now);
            break;
        default:
            now += (int64_t)choose(c, 30);
            demand(c, &h, &aimd, now);
            break;
        }
        HOLDS(c, aimd.limit == h.limit);
        HOLDS(c, h.spec.min <= h.limit && h.limit <= h.spec.max);
    }
}

/* ---- classes ---- */

#define COMMON 720720 /* every denominator to 16 divides it */

/* Shares of which the sum may be above 1: the sum, in parts of COMMON. */
static int64_t shares_draw(choices *c, ration_adaptive_rule *rule, ration_class_rule *classes)
{
    static const char *const names[CLASSES] = {"a", "b", "c", "d"};
    int64_t sum = 0;

    rule->classes = classes;
    rule->class_count = choose(c, CLASSES);
    for (size_t i = 0; i < rule->class_count; i++) {
        const int32_t den = (int32_t)choose_from(c, 1, 16);
        const int32_t num = (int32_t)choose_from(c, 0, den);

        classes[i] = (ration_class_rule){names[i], {num, den}};
        sum += (int64_t)num * COMMON / den;
    }
    return sum;
}

static void shares_add_up(choices *c, void *context)
{
    ration_adaptive_rule rule = {.initial_limit = 1};
    ration_class_rule classes[CLASSES];
    const int64_t sum = shares_draw(c, &rule, classes);
    rn_aimd_spec spec;
    ration_fault fault;

    (void)context;
    HOLDS(c, rn_aimd_spec_init(&spec, &rule, &fault) == (sum > COMMON ? RATION_ERR_CONFIG : RATION_OK));
}

/* Units reserved by counting: the fewest that are at least the share. */
static int64_t reserved_by_counting(int64_t limit, ration_ratio share)
{
    int64_t units = 0;

    while (units * share.den < limit * share.num)
        units++;
    return units;
}

static void most_is_the_most(choices *c, void *context)
{
    ration_adaptive_rule rule = {.initial_limit = 1};
    ration_class_rule classes[CLASSES];
    const int64_t min = choose_from(c, 1, 60);
    const int64_t max = min + (int64_t)choose(c, 60);
    const rn_aimd_spec spec = {.min = min, .max = max};
    int64_t want = INT64_MIN;

    (void)context;
    if (shares_draw(c, &rule, classes) > COMMON)
        return;

    const uint32_t index = (uint32_t)choose(c, rule.class_count);

    for (int64_t limit = min; limit <= max; limit++) {
        int64_t left = limit;

        for (uint32_t i = 1; i <= rule.class_count; i++) {
            if (i != index)
                left -= reserved_by_counting(limit, classes[i - 1].reserved);
        }
        want = most(want, left);
    }
    HOLDS(c, rn_class_most(&rule, &spec, index) == want * UNIT);
}

typedef struct holding {
    int64_t total;
    int64_t of[CLASSES + 1];
} holding;

typedef struct crowd {
    ration_adaptive_rule rule;
    ration_class_rule classes[CLASSES];
    int64_t limit;
    holding held;
} crowd;

static int64_t reserve_of(const crowd *w, uint32_t index)
{
    return index > 0 ? reserved_by_counting(w->limit, w->classes[index - 1].reserved) * UNIT : 0;
}

/* What is held, and what is kept for the reserves that are not used. */
static int64_t spoken_for(const crowd *w)
{
    int64_t sum = w->held.of[RN_CLASS_NONE];

    for (uint32_t i = 1; i <= w->rule.class_count; i++)
        sum += most(w->held.of[i], reserve_of(w, i));
    return sum;
}

static void class_asks(choices *c, crowd *w, uint32_t index)
{
    const rn_class_held *const view = (const rn_class_held *)(const void *)&w->held;
    const int64_t all = w->limit * UNIT;
    const bool fits = spoken_for(w) <= all;
    const int64_t charge = choose_from(c, 0, 3 * UNIT);
    const int64_t kept = rn_class_kept(&w->rule, w->limit, view, index, 0);
    const bool granted = w->held.total + charge + kept <= all;

    NOTE(c, "at %lld class %u of %lld asks for %lld: %d", (long long)w->limit, index, (long long)w->held.of[index],
         (long long)charge, granted);
    HOLDS(c, granted || !fits || w->held.of[index] + charge > reserve_of(w, index));
    seen.granted += granted ? 1 : 0;
    seen.kept += granted || w->held.total + charge > all ? 0 : 1;
    if (!granted)
        return;
    w->held.total += charge;
    w->held.of[index] += charge;
    HOLDS(c, w->held.total <= all);
    HOLDS(c, !fits || spoken_for(w) <= all);
}

/* While no more than L is spoken for, that stays so; and then each class can use its reserve to the last unit, whatever
 * the others do. Nobody is ever granted above L. */
static void reserves_are_there(choices *c, void *context)
{
    crowd w = {.rule = {.initial_limit = 1}, .limit = choose_from(c, 1, 40)};

    (void)context;
    if (shares_draw(c, &w.rule, w.classes) > COMMON)
        return;
    while (choose(c, 80) != 0) {
        const uint32_t index = (uint32_t)choose(c, w.rule.class_count);

        switch (choose(c, 3)) {
        case 0:
            NOTE(c, "class %u gives back %lld", index, (long long)w.held.of[index]);
            w.held.total -= w.held.of[index];
            w.held.of[index] = 0;
            break;
        case 1:
            w.limit = choose(c, 3) == 0 ? choose_from(c, 1, 40) : w.limit;
            break;
        default:
            class_asks(c, &w, index);
            break;
        }
    }
}

static void test_history(void **state)
{
    (void)state;
    property_check("an adaptive limit follows its history", follows_its_history, NULL, 8000);
    print_message("# %" PRIu64 " increases, %" PRIu64 " decreases\n", seen.grown, seen.shrunk);
}

static void test_classes(void **state)
{
    (void)state;
    _Static_assert(offsetof(holding, of) == offsetof(rn_class_held, of), "the same shape");
    property_check("shares add up", shares_add_up, NULL, 4000);
    property_check("most is the most", most_is_the_most, NULL, 2000);
    property_check("reserves are there", reserves_are_there, NULL, 4000);
    print_message("# %" PRIu64 " granted, %" PRIu64 " refused for a reserve alone\n", seen.granted, seen.kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
