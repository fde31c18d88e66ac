/* SPDX-License-Identifier: MIT */
/* The token bucket: exact credit, margins, debt, and waits that are right to the microsecond. */
#include "support/counter.h"
#include "support/property.h"

#include "base/units.h"

__extension__ typedef __int128 wide;

#define UNIT RATION_UNIT
#define U(x) ((int64_t)((x)*1000000))

typedef enum op { TAKE, SETTLE, HAS } op;

typedef struct step {
    const char *why;
    int64_t at_us;
    op op;
    char id;
    int64_t amount; /* charge; for HAS: what is available */
    rn_fit fit;
    int64_t wait_us; /* -1: no time */
} step;

static ration_limit_rule rate_rule(int64_t units, int64_t per_us, int64_t burst)
{
    const ration_limit_rule rule = {
        .name = "rate",
        .kind = RATION_KIND_RATE,
        .rate = {.units = units, .per_us = per_us},
        .burst = burst,
        .margin = RATION_UNSET,
        .arrival_us = RATION_UNSET,
    };

    return rule;
}

static void run(const ration_limit_rule *rule, bool enforcer, const step *steps, size_t count)
{
    lone l;

    CHECK_EQ(lone_prepare(&l, rule), RATION_OK);
    l.limit.enforcer = enforcer;
    CHECK_EQ(l.limit.kind->prepare(&l.limit, &l.fault), RATION_OK);
    CHECK_EQ(l.limit.kind->init(&l.counter, ration_time_of(steps[0].at_us)), RATION_OK);
    for (size_t i = 0; i < count; i++) {
        const step *const s = &steps[i];
        const rn_ask ask = {.charge = s->amount};

        CHECK_ROW(s->why);
        if (s->op == SETTLE) {
            lone_settle(&l, s->at_us, s->id, s->amount);
        } else if (s->op == HAS) {
            CHECK_EQ(lone_report(&l, s->at_us).available, s->amount);
        } else {
            const rn_verdict verdict = lone_take(&l, s->at_us, &ask, s->id, RATION_UNSET);

            CHECK_EQ(verdict.fit, s->fit);
            CHECK_EQ(rn_time_known(verdict.at) ? verdict.at.us - s->at_us : -1, s->wait_us);
            CHECK(!verdict.estimate);
        }
    }
    lone_fini(&l);
}

#define RUN(rule, steps) run((rule), false, (steps), sizeof(steps) / sizeof(steps)[0])

static void test_steps(void **state)
{
    static const step steps[] = {
        {"starts full", 0, TAKE, 'a', 5 * UNIT, RN_FIT_NOW, 0},
        {"empty: one unit is 100 ms away", 0, TAKE, 'b', UNIT, RN_FIT_SHORT, 100000},
        {"a refusal takes nothing", 0, TAKE, 'c', UNIT, RN_FIT_SHORT, 100000},
        {"1 us before", 99999, TAKE, 'd', UNIT, RN_FIT_SHORT, 1},
        {"on the dot", 100000, TAKE, 'e', UNIT, RN_FIT_NOW, 0},
        {"time running back earns nothing", 50000, HAS, 0, 0, 0, 0},
        {"half a unit", 150000, HAS, 0, U(0.5), 0, 0},
        {"a charge of nothing with credit there", 150000, TAKE, 'f', 0, RN_FIT_NOW, 0},
        {"idling stops at the burst", 60 * SECOND_US, TAKE, 'g', 5 * UNIT, RN_FIT_NOW, 0},
        {"years too", INT64_C(20) * 366 * DAY_US, TAKE, 'h', 5 * UNIT, RN_FIT_NOW, 0},
        {"not more than the burst", INT64_C(20) * 366 * DAY_US, HAS, 0, 0, 0, 0},
        {"the last instant there is", RATION_TIME_MAX_US, HAS, 0, 5 * UNIT, 0, 0},
        {"above the burst: no wait is enough", RATION_TIME_MAX_US, TAKE, 'i', 5 * UNIT + 1, RN_FIT_REFUSED, -1},
    };
    ration_limit_rule rule = rate_rule(10 * UNIT, SECOND_US, 5 * UNIT);

    (void)state;
    rule.margin = 0;
    RUN(&rule, steps);
}

static void test_margin(void **state)
{
    static const step requests[] = {
        {"burst 2 leaves one in hand", 0, TAKE, 'a', UNIT, RN_FIT_NOW, 0},
        {"the one in hand is not given", 0, TAKE, 'b', UNIT, RN_FIT_SHORT, 100000},
        {"nor is nothing, with less than the margin there", 0, SETTLE, 'a', 2 * UNIT, 0, 0},
        {"so a charge of 0 waits for the margin", 0, TAKE, 'c', 0, RN_FIT_SHORT, 100000},
        {"and gets it", 100000, TAKE, 'd', 0, RN_FIT_NOW, 0},
        {"above burst less margin", 100000, TAKE, 'e', UNIT + 1, RN_FIT_REFUSED, -1},
    };
    static const step single[] = {
        {"burst 1 has no margin", 0, TAKE, 'a', UNIT, RN_FIT_NOW, 0},
        {"the next", 0, TAKE, 'b', UNIT, RN_FIT_SHORT, 100000},
    };
    static const step whole[] = {
        {"the enforcer gives the whole burst", 0, TAKE, 'a', 2 * UNIT, RN_FIT_NOW, 0},
        {"and not more", 0, TAKE, 'b', UNIT, RN_FIT_SHORT, 100000},
    };
    const ration_limit_rule two = rate_rule(10 * UNIT, SECOND_US, 2 * UNIT);
    const ration_limit_rule one = rate_rule(10 * UNIT, SECOND_US, UNIT);

    (void)state;
    RUN(&two, requests);
    RUN(&one, single);
    run(&two, true, whole, sizeof whole / sizeof whole[0]);
}

/* The golden trace margin-and-debt. */
static void test_debt(void **state)
{
    static const step steps[] = {
        {"cost has no margin", 0, TAKE, 'a', 5 * UNIT, RN_FIT_NOW, 0},
        {"a micro-unit too much", 0, TAKE, 'b', 5 * UNIT + 1, RN_FIT_REFUSED, -1},
        {"half a unit away", 0, TAKE, 'c', U(0.5), RN_FIT_SHORT, 50000},
        {"settling gives back", 0, SETTLE, 'a', 3 * UNIT, 0, 0},
        {"two", 0, HAS, 0, 2 * UNIT, 0, 0},
        {"take them", 0, TAKE, 'd', 2 * UNIT, RN_FIT_NOW, 0},
        {"and spend more", 0, SETTLE, 'd', U(4.5), 0, 0},
        {"debt", 0, HAS, 0, -U(2.5), 0, 0},
        {"in debt even nothing waits", 0, TAKE, 'e', 0, RN_FIT_SHORT, 250000},
        {"until it is made up", 250000, TAKE, 'f', 0, RN_FIT_NOW, 0},
        {"far into debt", 250000, SETTLE, 'f', 1000 * UNIT, 0, 0},
        {"what is beyond a burst is forgiven", 250000, HAS, 0, -5 * UNIT, 0, 0},
        {"a burst and one unit", 250000, TAKE, 'g', UNIT, RN_FIT_SHORT, 600000},
        {"giving back never goes above the burst", 250000, SETTLE, 'f', 0, 0, 0},
        {"full", 250000, HAS, 0, 5 * UNIT, 0, 0},
    };
    ration_limit_rule rule = rate_rule(10 * UNIT, SECOND_US, 5 * UNIT);

    (void)state;
    rule.counts = RATION_COUNTS_COST;
    RUN(&rule, steps);
}

static void test_exact(void **state)
{
    static const step thirds[] = {
        {"one", 0, TAKE, 'a', UNIT, RN_FIT_NOW, 0},
        {"two", 0, TAKE, 'b', UNIT, RN_FIT_NOW, 0},
        {"a third of a second, rounded up", 0, TAKE, 'c', UNIT, RN_FIT_SHORT, 333334},
        {"1 us before", 333333, TAKE, 'd', UNIT, RN_FIT_SHORT, 1},
        {"then", 333334, TAKE, 'e', UNIT, RN_FIT_NOW, 0},
        {"the third of a microsecond is not lost", 333334, TAKE, 'f', UNIT, RN_FIT_SHORT, 333333},
        {"two thirds", 666667, TAKE, 'g', UNIT, RN_FIT_NOW, 0},
        {"asked often", 800000, TAKE, 'h', UNIT, RN_FIT_SHORT, 200000},
        {"all three", 1000000, TAKE, 'i', UNIT, RN_FIT_NOW, 0},
        {"nothing is left", 1000000, HAS, 0, 0, 0, 0},
    };
    static const step fast[] = {
        {"a million a second: one each microsecond", 0, TAKE, 'a', 1000000 * UNIT, RN_FIT_NOW, 0},
        {"the next one", 0, TAKE, 'b', UNIT, RN_FIT_SHORT, 1},
        {"is there", 1, TAKE, 'c', UNIT, RN_FIT_NOW, 0},
        {"and no more", 1, HAS, 0, 0, 0, 0},
    };
    static const step slow[] = {
        {"one in 30 days", 0, TAKE, 'a', UNIT, RN_FIT_NOW, 0},
        {"the next", 0, TAKE, 'b', UNIT, RN_FIT_SHORT, 30 * DAY_US},
        {"1 us before", 30 * DAY_US - 1, TAKE, 'c', UNIT, RN_FIT_SHORT, 1},
        {"rounded down", 30 * DAY_US - 1, HAS, 0, UNIT - 1, 0, 0},
        {"then", 30 * DAY_US, TAKE, 'd', UNIT, RN_FIT_NOW, 0},
        {"spent twice", 30 * DAY_US, SETTLE, 'd', 2 * UNIT, 0, 0},
        {"of a debt too, rounded down", 30 * DAY_US + 1, HAS, 0, -UNIT, 0, 0},
    };
    ration_limit_rule rule = rate_rule(3 * UNIT, SECOND_US, 2 * UNIT);

    (void)state;
    rule.margin = 0;
    RUN(&rule, thirds);
    rule = rate_rule(1000000 * UNIT, SECOND_US, 1000000 * UNIT);
    rule.margin = 0;
    RUN(&rule, fast);
    rule = rate_rule(UNIT, 30 * DAY_US, 0);
    RUN(&rule, slow);
}

static void test_ahead(void **state)
{
    static const struct {
        const char *why;
        int64_t spent, charge, ahead;
        rn_fit fit;
        int64_t wait_us; /* -1: no time */
        bool estimate;
    } rows[] = {
        {"nobody ahead", 0, UNIT, 0, RN_FIT_NOW, 0, false},
        {"there, but one ahead who needs it all", 0, UNIT, 5 * UNIT, RN_FIT_NOW, 100000, true},
        {"there for all", 0, UNIT, UNIT, RN_FIT_NOW, 0, true},
        {"those ahead are served first", 5 * UNIT, UNIT, 2 * UNIT, RN_FIT_SHORT, 300000, true},
        {"a line longer than the burst", 5 * UNIT, UNIT, 100 * UNIT, RN_FIT_SHORT, 10100000, true},
        {"a line without end", 5 * UNIT, UNIT, INT64_MAX, RN_FIT_SHORT, RATION_TIME_MAX_US, true},
        {"never, whoever is ahead", 0, 6 * UNIT, UNIT, RN_FIT_REFUSED, -1, false},
    };
    ration_limit_rule rule = rate_rule(10 * UNIT, SECOND_US, 5 * UNIT);
    lone l;

    (void)state;
    rule.margin = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_ask spent = {.charge = rows[i].spent};
        const rn_ask ask = {.charge = rows[i].charge, .ahead = rows[i].ahead};

        CHECK_ROW(rows[i].why);
        lone_init(&l, &rule, 0);
        lone_force(&l, 0, &spent, 'a', RATION_UNSET);

        const rn_verdict verdict = lone_check(&l, 0, &ask);

        CHECK_EQ(verdict.fit, rows[i].fit);
        CHECK_EQ(rn_time_known(verdict.at) ? verdict.at.us : -1, rows[i].wait_us);
        CHECK_EQ(verdict.estimate, rows[i].estimate);
        CHECK_EQ(l.limit.kind->next_change(&l.counter, ration_time_of(0), &ask).us,
                 rows[i].fit == RN_FIT_SHORT ? rows[i].wait_us : RATION_NEVER_US);
        lone_fini(&l);
    }
}

static void test_prepare(void **state)
{
    static const struct {
        const char *why;
        int64_t units, per_us, burst, margin;
        ration_counts counts;
        const char *path;     /* NULL: fine */
        int64_t want, leaves; /* burst and margin */
    } rows[] = {
        {"default burst: the rate per second", 10 * UNIT, SECOND_US, 0, -1, RATION_COUNTS_REQUESTS, NULL, 10 * UNIT,
         UNIT},
        {"floored to whole units", 5 * UNIT, 2 * SECOND_US, 0, -1, RATION_COUNTS_REQUESTS, NULL, 2 * UNIT, UNIT},
        {"at least one", UNIT, HOUR_US, 0, -1, RATION_COUNTS_REQUESTS, NULL, UNIT, 0},
        {"a margin of one's own", 10 * UNIT, SECOND_US, 8 * UNIT, 3 * UNIT, RATION_COUNTS_REQUESTS, NULL, 8 * UNIT,
         3 * UNIT},
        {"cost has none by default", 10 * UNIT, SECOND_US, 8 * UNIT, -1, RATION_COUNTS_COST, NULL, 8 * UNIT, 0},
        {"burst below two has none", 10 * UNIT, SECOND_US, 2 * UNIT - 1, -1, RATION_COUNTS_REQUESTS, NULL, 2 * UNIT - 1,
         0},
        {"2^53 is allowed", UNIT, UNIT, RATION_UNITS_MAX, 0, RATION_COUNTS_COST, NULL, RATION_UNITS_MAX, 0},
        {"and reducing counts first", 7 * UNIT, 7 * UNIT, RATION_UNITS_MAX, 0, RATION_COUNTS_COST, NULL,
         RATION_UNITS_MAX, 0},
        {"above 2^53", UNIT, 2 * UNIT, RATION_UNITS_MAX / 2 + 1, 0, RATION_COUNTS_COST, "burst", 0, 0},
        {"no rate", 0, SECOND_US, UNIT, -1, RATION_COUNTS_REQUESTS, "rate", 0, 0},
        {"no time", UNIT, 0, UNIT, -1, RATION_COUNTS_REQUESTS, "rate", 0, 0},
        {"a negative burst", UNIT, SECOND_US, -1, -1, RATION_COUNTS_REQUESTS, "burst", 0, 0},
        {"a negative margin", UNIT, SECOND_US, UNIT, -2, RATION_COUNTS_REQUESTS, "margin", 0, 0},
        {"a margin of all", UNIT, SECOND_US, 5 * UNIT, 5 * UNIT, RATION_COUNTS_COST, "margin", 0, 0},
        {"a margin that leaves no request", UNIT, SECOND_US, 5 * UNIT, 4 * UNIT + 1, RATION_COUNTS_REQUESTS, "margin",
         0, 0},
        {"a burst below a request", UNIT, SECOND_US, UNIT - 1, -1, RATION_COUNTS_REQUESTS, "burst", 0, 0},
    };
    lone l;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_limit_rule rule = rate_rule(rows[i].units, rows[i].per_us, rows[i].burst);

        CHECK_ROW(rows[i].why);
        rule.margin = rows[i].margin;
        rule.counts = rows[i].counts;
        CHECK_EQ(lone_prepare(&l, &rule), rows[i].path == NULL ? RATION_OK : RATION_ERR_CONFIG);
        if (rows[i].path != NULL) {
            CHECK_STR(l.fault.path, rows[i].path);
            CHECK(l.fault.text[0] != '\0');
            continue;
        }
        CHECK_EQ(l.limit.spec.bucket.burst, rows[i].want);
        CHECK_EQ(l.limit.spec.bucket.margin, rows[i].leaves);
    }
}

static void test_fresh(void **state)
{
    const ration_limit_rule rule = rate_rule(10 * UNIT, SECOND_US, 5 * UNIT);
    const rn_ask ask = {.charge = UNIT};
    lone l;

    (void)state;
    lone_init(&l, &rule, 0);
    CHECK(l.limit.kind->is_fresh(&l.counter, ration_time_of(0)));
    lone_force(&l, 0, &ask, 'a', RATION_UNSET);
    lone_observe(&l, 0, 'a', NULL, false);
    lone_end(&l, 0, 'a');
    CHECK(!l.limit.kind->is_fresh(&l.counter, ration_time_of(99999)));
    CHECK(l.limit.kind->is_fresh(&l.counter, ration_time_of(100000)));
    lone_fini(&l);
}

/*
 * Against the obvious model: credit in micro-units times the rate's denominator, as a wide integer, refilled
 * microsecond by microsecond in one multiplication. What the model grants the bucket grants, and the stated wait is
 * exact.
 */
static void as_the_model(choices *c, void *context)
{
    const int64_t units = choose_from(c, 1, 50) * UNIT;
    const int64_t per_us = choose_from(c, 1, 5000000);
    const int64_t burst = choose_from(c, 1, 20) * UNIT;
    ration_limit_rule rule = rate_rule(units, per_us, burst);
    wide credit = (wide)burst * per_us;
    int64_t now = 0;
    lone l;

    (void)context;
    rule.margin = 0;
    rule.counts = RATION_COUNTS_COST;
    lone_init(&l, &rule, now);
    while (choose(c, 40) != 0) {
        const int64_t idle = (int64_t)choose_wide(c, 10000000);
        const rn_ask ask = {.charge = (int64_t)choose_wide(c, (uint64_t)burst)};

        now += idle;
        credit += (wide)idle * units;
        if (credit > (wide)burst * per_us)
            credit = (wide)burst * per_us;

        const rn_verdict verdict = lone_check(&l, now, &ask);
        const bool granted = credit >= (wide)ask.charge * per_us;

        NOTE(c, "at %lld take %lld", (long long)now, (long long)ask.charge);
        HOLDS(c, (verdict.fit == RN_FIT_NOW) == granted);
        if (granted) {
            lone_force(&l, now, &ask, 'a', RATION_UNSET);
            lone_end(&l, now, 'a');
            credit -= (wide)ask.charge * per_us;
        } else {
            const int64_t wait = verdict.at.us - now;

            HOLDS(c, credit + (wide)wait * units >= (wide)ask.charge * per_us);
            HOLDS(c, credit + (wide)(wait - 1) * units < (wide)ask.charge * per_us);
        }
    }
    lone_fini(&l);
}

static void test_model(void **state)
{
    (void)state;
    property_check("a bucket is its model", as_the_model, NULL, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps), cmocka_unit_test(test_margin), cmocka_unit_test(test_debt),
        cmocka_unit_test(test_exact), cmocka_unit_test(test_ahead),  cmocka_unit_test(test_prepare),
        cmocka_unit_test(test_fresh), cmocka_unit_test(test_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
