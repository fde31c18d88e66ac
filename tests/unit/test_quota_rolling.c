/* SPDX-License-Identifier: MIT */
/* Rolling quotas: buckets, when they leave, what headers teach, and that no stretch sees more than the maximum. */
#include "support/property.h"
#include "support/quota_steps.h"

#define N NULL

static ration_limit_rule rolling(int64_t max, ration_counts counts, int64_t rolling_us)
{
    return quota_rule(max * UNIT, counts, RATION_PERIOD_NONE, rolling_us);
}

static void test_widths(void **state)
{
    static const struct {
        const char *why;
        int64_t rolling_us;
        bool enforcer;
        int64_t width_us, counts_us;
    } rows[] = {
        {"1 s: a sixtieth, rounded up", SECOND_US, false, 16667, SECOND_US + 16667},
        {"1 min", MINUTE_US, false, SECOND_US, MINUTE_US + SECOND_US},
        {"1 h", HOUR_US, false, MINUTE_US, HOUR_US + MINUTE_US},
        {"above an hour at most a minute", 5 * HOUR_US, false, MINUTE_US, 5 * HOUR_US + MINUTE_US},
        {"24 h", DAY_US, false, MINUTE_US, DAY_US + MINUTE_US},
        {"above a day a 1440th", 30 * DAY_US, false, 30 * MINUTE_US, 30 * DAY_US + 30 * MINUTE_US},
        {"rounded up", DAY_US + 1, false, MINUTE_US + 1, DAY_US + 1 + MINUTE_US + 1},
        {"the enforcer counts no bucket more", HOUR_US, true, MINUTE_US, HOUR_US},
    };
    lone l;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_limit_rule rule = rolling(10, RATION_COUNTS_REQUESTS, rows[i].rolling_us);

        CHECK_ROW(rows[i].why);
        CHECK_EQ(lone_prepare(&l, &rule), RATION_OK);
        l.limit.enforcer = rows[i].enforcer;
        CHECK_EQ(l.limit.kind->prepare(&l.limit, &l.fault), RATION_OK);
        CHECK_EQ(l.limit.spec.quota.width_us, rows[i].width_us);
        CHECK_EQ(l.limit.spec.quota.counts_us, rows[i].counts_us);
    }
}

/* An hour in minutes: the bucket that begins at k minutes leaves at k + 62. */
static void test_leaving(void **state)
{
    static const quota_step steps[] = {
        ASK("in the first minute", 59 * SECOND_US, 'a', 4 * UNIT, NORMAL, GRANTED),
        ASK("in the next", 60 * SECOND_US, 'b', 4 * UNIT, NORMAL, GRANTED),
        END("a", 60 * SECOND_US, 'a'),
        END("b", 60 * SECOND_US, 'b'),
        ASK("two are left", 61 * SECOND_US, 'c', 3 * UNIT, NORMAL, REFUSED(62 * MINUTE_US - 61 * SECOND_US)),
        ASK("for seven both must leave", 61 * SECOND_US, 'c', 7 * UNIT, NORMAL,
            REFUSED(63 * MINUTE_US - 61 * SECOND_US)),
        IS("no window", 61 * SECOND_US, 10 * UNIT, 8 * UNIT, 0, 2 * UNIT),
        ASK("1 us before", 62 * MINUTE_US - 1, 'c', 3 * UNIT, NORMAL, REFUSED(1)),
        ASK("then", 62 * MINUTE_US, 'c', 3 * UNIT, NORMAL, GRANTED),
        IS("seven", 62 * MINUTE_US, 10 * UNIT, 7 * UNIT, 0, 3 * UNIT),
        SETTLE("a is over", 62 * MINUTE_US, 'a', 9 * UNIT),
        SETTLE("b is not", 62 * MINUTE_US, 'b', 1 * UNIT),
        IS("four", 62 * MINUTE_US, 10 * UNIT, 4 * UNIT, 0, 6 * UNIT),
        IS("its bucket leaves with what is left of it", 63 * MINUTE_US, 10 * UNIT, 3 * UNIT, 0, 7 * UNIT),
        ASK("more than any stretch holds", 63 * MINUTE_US, 'd', 11 * UNIT, NORMAL, TOO_MUCH),
        SETTLE("debt", 63 * MINUTE_US, 'c', 12 * UNIT),
        ASK("refuses nothing too", 63 * MINUTE_US, 'd', 0, NORMAL, REFUSED(61 * MINUTE_US)),
        IS("years later", 3000 * DAY_US, 10 * UNIT, 0, 0, 10 * UNIT),
    };
    static const quota_step waits[] = {
        ASK("all", 0, 'a', 10 * UNIT, NORMAL, GRANTED),
        ASK("waits for the bucket", 30 * SECOND_US, 'b', UNIT, WAITS, SHORT_OF(62 * MINUTE_US - 30 * SECOND_US)),
        ASK("not that long", 30 * SECOND_US, 'b', UNIT, WAITS_1US, REFUSED(62 * MINUTE_US - 30 * SECOND_US)),
    };
    ration_limit_rule rule = rolling(10, RATION_COUNTS_COST, HOUR_US);
    lone l;

    (void)state;
    lone_init(&l, &rule, 0);
    quota_run(&l, steps, sizeof steps / sizeof steps[0]);
    CHECK(!lone_report(&l, 3000 * DAY_US).has_window);
    CHECK(l.limit.kind->is_fresh(&l.counter, ration_time_of(3000 * DAY_US)));
    lone_fini(&l);
    rule.when_exhausted = RATION_EXHAUSTED_WAIT;
    QUOTA_RUN(&rule, waits);
}

/* A critical dip lasts until the bucket of that lease leaves. */
static void test_dip(void **state)
{
    static const quota_step steps[] = {
        ASK("the normal part", 0, 'a', 4 * UNIT, NORMAL, GRANTED),
        ASK("of a later minute", 5 * MINUTE_US, 'b', 4 * UNIT, NORMAL, GRANTED),
        ASK("critical dips", 10 * MINUTE_US, 'c', UNIT, CRITICAL, GRANTED),
        ASK("so retries wait for what is normal", 10 * MINUTE_US, 'd', UNIT, RETRY, REFUSED(52 * MINUTE_US)),
        ASK("for much they wait for the dip's end", 10 * MINUTE_US, 'd', 9 * UNIT, RETRY, REFUSED(62 * MINUTE_US)),
        ASK("normal waits for what is normal", 10 * MINUTE_US, 'd', UNIT, NORMAL, REFUSED(52 * MINUTE_US)),
        SETTLE("even if the dip cost nothing in the end", 10 * MINUTE_US, 'c', 0),
        ASK("it lasts", 10 * MINUTE_US, 'd', UNIT, RETRY, REFUSED(52 * MINUTE_US)),
        ASK("much of it", 10 * MINUTE_US, 'd', 9 * UNIT, RETRY, REFUSED(62 * MINUTE_US)),
        ASK("not after", 72 * MINUTE_US, 'd', 9 * UNIT, RETRY, GRANTED),
    };
    const ration_limit_rule rule = rolling(10, RATION_COUNTS_COST, HOUR_US);
    lone l;

    (void)state;
    lone_init(&l, &rule, 0);
    l.limit.reserve = (ration_ratio){1, 5};
    quota_run(&l, steps, sizeof steps / sizeof steps[0]);
    lone_fini(&l);
}

/* The golden trace rolling-429, and what is learned between. */
static void test_headers(void **state)
{
    static const quota_step exhausted[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        TELL_429("nothing remains", 1 * SECOND_US, 'a', N, "0", N),
        IS("nothing", 1 * SECOND_US, 100 * UNIT, UNIT, 99 * UNIT, 0),
        ASK("for a 24th of the window", 1 * SECOND_US, 'b', UNIT, NORMAL, REFUSED(150 * SECOND_US)),
        ASK("nothing is granted", 1 * SECOND_US, 'b', 0, NORMAL, GRANTED),
        ASK("then", 151 * SECOND_US, 'c', UNIT, NORMAL, GRANTED),
        IS("what was learned is over", 151 * SECOND_US, 100 * UNIT, 2 * UNIT, 0, 98 * UNIT),
        TELL_429("until the reset", 151 * SECOND_US, 'c', N, "0", "20.0"),
        ASK("twenty seconds", 151 * SECOND_US, 'd', UNIT, NORMAL, REFUSED(20 * SECOND_US)),
        TELL_429("a reset that has passed is none, and the later end holds", 152 * SECOND_US, 'a', N, "0", "0"),
        ASK("for a 24th", 152 * SECOND_US, 'd', UNIT, NORMAL, REFUSED(150 * SECOND_US)),
        TELL_429("a reset more than a window away is none", 152 * SECOND_US, 'c', N, "5", N),
        ASK("five are left, but a 429 said none", 171 * SECOND_US, 'e', UNIT, NORMAL, REFUSED(131 * SECOND_US)),
        ASK("over", 302 * SECOND_US, 'e', UNIT, NORMAL, GRANTED),
    };
    static const quota_step learned[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        ASK("b", 0, 'b', UNIT, NORMAL, GRANTED),
        TELL("a was in flight", 1 * SECOND_US, 'b', "50", "3", "60.0", 0),
        IS("two", 1 * SECOND_US, 50 * UNIT, 2 * UNIT, 46 * UNIT, 2 * UNIT),
        TELL("earlier", 2 * SECOND_US, 'a', "70", "40", N, 0),
        IS("ignored", 2 * SECOND_US, 50 * UNIT, 2 * UNIT, 46 * UNIT, 2 * UNIT),
        SETTLE("what is given back does not raise it", 2 * SECOND_US, 'a', 0),
        IS("two", 2 * SECOND_US, 50 * UNIT, 1 * UNIT, 46 * UNIT, 2 * UNIT),
        ASK("one", 3 * SECOND_US, 'c', UNIT, NORMAL, GRANTED),
        ASK("the reset brings more", 3 * SECOND_US, 'd', 2 * UNIT, NORMAL, REFUSED(58 * SECOND_US)),
        ASK("1 us before", 61 * SECOND_US - 1, 'd', 2 * UNIT, NORMAL, REFUSED(1)),
        ASK("as much as we know", 61 * SECOND_US, 'd', 2 * UNIT, NORMAL, GRANTED),
        TELL("a whole window, and the second that was added", 61 * SECOND_US, 'd', "40", "9", "3600", 0),
        TELL("a window more is the furthest", 61 * SECOND_US, 'd', "40", "9", "7200.0", 0),
        TELL("too far a reset is rejected, the rest is not", 61 * SECOND_US, 'd', "40", "9", "7200.1", 1),
        IS("nine", 61 * SECOND_US, 40 * UNIT, 4 * UNIT, 27 * UNIT, 9 * UNIT),
        TELL("a window later: its limit", 70 * MINUTE_US, 'd', "30", "1", N, 0),
        IS("thirty", 70 * MINUTE_US, 30 * UNIT, 0, 0, 30 * UNIT),
    };
    static const quota_step returned[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        ASK("b", 0, 'b', 5 * UNIT, NORMAL, GRANTED),
        SETTLE("cost less", 1, 'b', UNIT),
        TELL("what was given back since is not added", 2, 'a', N, "50", N, 0),
        IS("45", 2, 100 * UNIT, 2 * UNIT, 49 * UNIT, 45 * UNIT),
    };
    ration_limit_rule rule = rolling(100, RATION_COUNTS_REQUESTS, HOUR_US);

    (void)state;
    QUOTA_RUN(&rule, exhausted);
    rule.counts = RATION_COUNTS_COST;
    QUOTA_RUN(&rule, learned);
    QUOTA_RUN(&rule, returned);
}

/* Instants before 1970 and buckets of negative numbers are like all others. */
static void test_before_1970(void **state)
{
    static const quota_step steps[] = {
        ASK("all", -MINUTE_US - 1, 'a', 10 * UNIT, NORMAL, GRANTED),
        ASK("its bucket is that of minute -2", -MINUTE_US - 1, 'b', UNIT, NORMAL, REFUSED(61 * MINUTE_US + 1)),
        ASK("then", 60 * MINUTE_US, 'b', UNIT, NORMAL, GRANTED),
    };
    const ration_limit_rule rule = rolling(10, RATION_COUNTS_REQUESTS, HOUR_US);

    (void)state;
    QUOTA_RUN(&rule, steps);
}

#define GRANTS 200

/*
 * Whatever is asked and settled, no stretch of the window's length plus a bucket has seen more than the maximum
 * granted; a refusal's time is right to the microsecond; and what is refused would have been too much for the buckets
 * that count.
 */
static void never_above(choices *c, void *context)
{
    const int64_t length_us = choose_from(c, 0, 3) == 0 ? choose_from(c, SECOND_US, 100 * SECOND_US) : 10 * SECOND_US;
    const int64_t max = choose_from(c, 1, 20) * UNIT;
    ration_limit_rule rule = quota_rule(max, RATION_COUNTS_COST, RATION_PERIOD_NONE, length_us);
    int64_t at[GRANTS];
    int64_t charge[GRANTS];
    size_t grants = 0;
    int64_t now = 1000 * SECOND_US + choose_from(c, 0, 1000000);
    lone l;

    (void)context;
    lone_init(&l, &rule, now);
    while (choose(c, 60) != 0 && grants < GRANTS) {
        const rn_ask ask = {.charge = choose_from(c, 1, max / 2 + 1)};
        const int64_t width_us = l.limit.spec.quota.width_us;
        int64_t counted = 0;
        int64_t stretch = 0;

        now += (int64_t)choose_wide(c, (uint64_t)length_us);
        for (size_t i = 0; i < grants; i++) {
            counted += rn_div_floor(at[i], width_us) * width_us + 2 * width_us + length_us > now ? charge[i] : 0;
            stretch += at[i] >= now - length_us - width_us ? charge[i] : 0;
        }

        const rn_verdict verdict = lone_check(&l, now, &ask);

        NOTE(c, "at %lld ask %lld", (long long)now, (long long)ask.charge);
        HOLDS(c, (verdict.fit == RN_FIT_NOW) == (counted + ask.charge <= max));
        if (verdict.fit == RN_FIT_NOW) {
            lone_force(&l, now, &ask, 'a', RATION_UNSET);
            at[grants] = now;
            charge[grants] = ask.charge;
            if (choose(c, 3) == 1) {
                charge[grants] = choose_from(c, 0, ask.charge);
                lone_settle(&l, now, 'a', charge[grants]);
            }
            lone_observe(&l, now, 'a', NULL, false);
            lone_end(&l, now, 'a');
            HOLDS(c, stretch + charge[grants] <= max);
            grants++;
        } else if (choose(c, 2) == 1) {
            HOLDS(c, lone_check(&l, verdict.at.us - 1, &ask).fit != RN_FIT_NOW);
            HOLDS(c, lone_check(&l, verdict.at.us, &ask).fit == RN_FIT_NOW);
            now = verdict.at.us;
        }
    }
    lone_fini(&l);
}

static void test_model(void **state)
{
    (void)state;
    property_check("no stretch above the maximum", never_above, NULL, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),  cmocka_unit_test(test_leaving),     cmocka_unit_test(test_dip),
        cmocka_unit_test(test_headers), cmocka_unit_test(test_before_1970), cmocka_unit_test(test_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
