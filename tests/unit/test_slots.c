/* SPDX-License-Identifier: MIT */
/* Concurrency: what is held, and when the declared ends will have freed enough. */
#include "support/counter.h"
#include "support/property.h"

#include "base/units.h"

#define UNIT RATION_UNIT
#define MS INT64_C(1000)

typedef enum op { TAKE, END, SETTLE, HELD } op;

typedef struct step {
    const char *why;
    int64_t at_us;
    op op;
    char id;
    int64_t amount;  /* charge; for HELD: what is held */
    int64_t hold_us; /* declared; -1: none */
    int64_t ahead;
    rn_fit fit;
    int64_t wait_us; /* when it does not fit: -1: no time */
} step;

static ration_limit_rule slots_rule(int64_t max, ration_counts counts)
{
    const ration_limit_rule rule = {
        .name = "slots",
        .kind = RATION_KIND_CONCURRENCY,
        .counts = counts,
        .max = max,
        .margin = RATION_UNSET,
        .arrival_us = RATION_UNSET,
    };

    return rule;
}

static void run(const ration_limit_rule *rule, const step *steps, size_t count)
{
    lone l;

    lone_init(&l, rule, steps[0].at_us);
    for (size_t i = 0; i < count; i++) {
        const step *const s = &steps[i];
        const rn_ask ask = {.charge = s->amount, .ahead = s->ahead};

        CHECK_ROW(s->why);
        if (s->op == END) {
            lone_end(&l, s->at_us, s->id);
        } else if (s->op == SETTLE) {
            lone_settle(&l, s->at_us, s->id, s->amount);
        } else if (s->op == HELD) {
            CHECK_EQ(lone_report(&l, s->at_us).held, s->amount);
            CHECK_EQ(lone_report(&l, s->at_us).max, rule->max);
        } else {
            const rn_verdict verdict = lone_take(&l, s->at_us, &ask, s->id, s->hold_us);

            CHECK_EQ(verdict.fit, s->fit);
            CHECK_EQ(rn_time_known(verdict.at) ? verdict.at.us - s->at_us : -1, s->wait_us);
            CHECK_EQ(verdict.estimate, verdict.reason == RATION_REASON_CONCURRENCY_FULL && s->wait_us >= 0);
            CHECK_EQ(l.limit.kind->next_change(&l.counter, ration_time_of(s->at_us), &ask).us, RATION_NEVER_US);
        }
    }
    lone_fini(&l);
}

#define RUN(rule, steps) run((rule), (steps), sizeof(steps) / sizeof(steps)[0])

/* The golden trace declared-ends, and what surrounds it. */
static void test_steps(void **state)
{
    static const step ends[] = {
        {"one with an end", 0, TAKE, 'a', UNIT, 100 * MS, 0, RN_FIT_NOW, 0},
        {"one without", 0, TAKE, 'b', UNIT, -1, 0, RN_FIT_NOW, 0},
        {"the declared end", 0, TAKE, 'c', UNIT, -1, 0, RN_FIT_SHORT, 100 * MS},
        {"at its end it is due now", 100 * MS, TAKE, 'd', UNIT, -1, 0, RN_FIT_SHORT, 0},
        {"overrun: nobody knows", 100 * MS + 1, TAKE, 'e', UNIT, -1, 0, RN_FIT_SHORT, -1},
        {"it ends", 101 * MS, END, 'a', 0, 0, 0, 0, 0},
        {"its slot is there", 101 * MS, TAKE, 'f', UNIT, 50 * MS, 0, RN_FIT_NOW, 0},
        {"its end", 101 * MS, TAKE, 'g', UNIT, -1, 0, RN_FIT_SHORT, 50 * MS},
        {"two held", 101 * MS, HELD, 0, 2 * UNIT, 0, 0, 0, 0},
    };
    static const step costs[] = {
        {"six of ten", 0, TAKE, 'a', 6 * UNIT, 300 * MS, 0, RN_FIT_NOW, 0},
        {"three more", 0, TAKE, 'b', 3 * UNIT, 200 * MS, 0, RN_FIT_NOW, 0},
        {"two are one too many: the first end will do", 0, TAKE, 'c', 2 * UNIT, -1, 0, RN_FIT_SHORT, 200 * MS},
        {"five need both", 0, TAKE, 'c', 5 * UNIT, -1, 0, RN_FIT_SHORT, 300 * MS},
        {"two, after two others", 0, TAKE, 'c', 2 * UNIT, -1, 2 * UNIT, RN_FIT_SHORT, 200 * MS},
        {"two, after three others", 0, TAKE, 'c', 2 * UNIT, -1, 3 * UNIT, RN_FIT_SHORT, 300 * MS},
        {"after more than there is", 0, TAKE, 'c', 2 * UNIT, -1, 9 * UNIT, RN_FIT_SHORT, -1},
        {"there, but others come first", 0, TAKE, 'c', UNIT, -1, UNIT, RN_FIT_NOW, 200 * MS},
        {"more than there can be", 0, TAKE, 'c', 10 * UNIT + 1, -1, 0, RN_FIT_REFUSED, -1},
        {"a charge of nothing needs nothing", 0, TAKE, 'z', 0, 1 * MS, 0, RN_FIT_NOW, 0},
        {"and its overrun hides no time", 2 * MS, TAKE, 'c', 2 * UNIT, -1, 0, RN_FIT_SHORT, 198 * MS},
        {"it cost more than it said", 2 * MS, SETTLE, 'b', 5 * UNIT, 0, 0, 0, 0},
        {"so more is held than may be", 2 * MS, HELD, 0, 11 * UNIT, 0, 0, 0, 0},
        {"and not even nothing fits", 2 * MS, TAKE, 'c', 0, -1, 0, RN_FIT_SHORT, 198 * MS},
        {"b gives back what it held", 3 * MS, END, 'b', 0, 0, 0, 0, 0},
        {"six", 3 * MS, HELD, 0, 6 * UNIT, 0, 0, 0, 0},
        {"less than it said", 3 * MS, SETTLE, 'a', UNIT, 0, 0, 0, 0},
        {"one", 3 * MS, HELD, 0, UNIT, 0, 0, 0, 0},
    };
    static const step idle[] = {
        {"room for all: those ahead wait for something else", 0, TAKE, 'a', UNIT, -1, UNIT, RN_FIT_NOW, -1},
        {"one ahead, and nobody holds", 0, TAKE, 'a', UNIT, -1, 2 * UNIT, RN_FIT_NOW, -1},
    };
    const ration_limit_rule two = slots_rule(2 * UNIT, RATION_COUNTS_REQUESTS);
    const ration_limit_rule ten = slots_rule(10 * UNIT, RATION_COUNTS_COST);

    (void)state;
    RUN(&two, ends);
    RUN(&ten, costs);
    RUN(&two, idle);
}

static void test_prepare(void **state)
{
    static const struct {
        const char *why;
        int64_t max;
        ration_counts counts;
        int err;
    } rows[] = {
        {"one", UNIT, RATION_COUNTS_REQUESTS, RATION_OK},
        {"less than a request", UNIT - 1, RATION_COUNTS_REQUESTS, RATION_ERR_CONFIG},
        {"a fraction of cost", 1, RATION_COUNTS_COST, RATION_OK},
        {"none", 0, RATION_COUNTS_COST, RATION_ERR_CONFIG},
        {"negative", -UNIT, RATION_COUNTS_COST, RATION_ERR_CONFIG},
        {"2^53", RATION_UNITS_MAX, RATION_COUNTS_COST, RATION_OK},
        {"above", RATION_UNITS_MAX + 1, RATION_COUNTS_COST, RATION_ERR_CONFIG},
    };
    lone l;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_limit_rule rule = slots_rule(rows[i].max, rows[i].counts);

        CHECK_ROW(rows[i].why);
        CHECK_EQ(lone_prepare(&l, &rule), rows[i].err);
        CHECK_STR(l.fault.path, rows[i].err == RATION_OK ? "" : "max");
    }
}

static void test_fresh(void **state)
{
    const ration_limit_rule rule = slots_rule(2 * UNIT, RATION_COUNTS_REQUESTS);
    const rn_ask ask = {.charge = UNIT};
    lone l;

    (void)state;
    lone_init(&l, &rule, 0);
    lone_force(&l, 0, &ask, 'a', RATION_UNSET);
    lone_observe(&l, 0, 'a', NULL, false);
    CHECK(!l.limit.kind->is_fresh(&l.counter, ration_time_of(0)));
    lone_end(&l, 0, 'a');
    CHECK(l.limit.kind->is_fresh(&l.counter, ration_time_of(0)));
    lone_fini(&l);
}

/* The time named is the first at which the leases that have declared to end by then free enough. */
static void first_end_that_frees_enough(choices *c, void *context)
{
    const ration_limit_rule rule = slots_rule(1000 * UNIT, RATION_COUNTS_COST);
    const int64_t count = choose_from(c, 1, 12);
    int64_t held = 0;
    lone l;

    (void)context;
    lone_init(&l, &rule, 0);
    for (int64_t i = 0; i < count; i++) {
        const rn_ask ask = {.charge = choose_from(c, 0, 80) * UNIT};

        lone_force(&l, 0, &ask, (char)('a' + i), choose(c, 9) == 0 ? RATION_UNSET : choose_from(c, 0, 50));
        held += ask.charge;
    }

    const rn_ask ask = {.charge = 1000 * UNIT - held + choose_from(c, 1, 80) * UNIT};
    const rn_verdict verdict = lone_check(&l, 0, &ask);
    int64_t want = RATION_NEVER_US;

    for (int64_t end = 50; end >= 0; end--) {
        int64_t free = 1000 * UNIT - held;
        const rn_hold *hold = NULL;

        TAILQ_FOREACH (hold, &l.counter.holds, next)
            free += hold->ends_at.us <= end ? hold->charge : 0;
        if (free >= ask.charge)
            want = end;
    }
    if (ask.charge <= 1000 * UNIT) {
        NOTE(c, "held %lld, asks %lld", (long long)held, (long long)ask.charge);
        HOLDS(c, verdict.fit == RN_FIT_SHORT);
        HOLDS(c, verdict.at.us == want);
    }
    lone_fini(&l);
}

static void test_ends(void **state)
{
    (void)state;
    property_check("the first end that frees enough", first_end_that_frees_enough, NULL, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_prepare),
        cmocka_unit_test(test_fresh),
        cmocka_unit_test(test_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
