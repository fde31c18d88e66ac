/* SPDX-License-Identifier: MIT */
/* Calendar quotas without headers: share, reserve, dip, debt, windows, carry, waiting. */
#include "support/failalloc.h"
#include "support/quota_steps.h"

static ration_limit_rule per_minute(int64_t max)
{
    return quota_rule(max, RATION_COUNTS_REQUESTS, RATION_PERIOD_MINUTE, 0);
}

static void run_with(const ration_limit_rule *rule, ration_ratio share, ration_ratio reserve, const quota_step *steps,
                     size_t count)
{
    lone l;

    lone_init(&l, rule, steps[0].at_us);
    l.counter.share = share;
    l.limit.reserve = reserve;
    quota_run(&l, steps, count);
    lone_fini(&l);
}

static void test_no_dip(void **state)
{
    static const quota_step steps[] = {
        ASK("critical, to the last of the normal part", 0, 'a', 8 * UNIT, CRITICAL, GRANTED),
        ASK("is no dip, so a retry goes on", 0, 'b', UNIT, RETRY, GRANTED),
        ASK("nor is a critical charge of nothing", 0, 'c', 0, CRITICAL, GRANTED),
        ASK("so another retry goes on", 0, 'd', UNIT, RETRY, GRANTED),
        ASK("to the end", 0, 'e', UNIT, RETRY, REFUSED(MINUTE_US)),
    };
    ration_limit_rule rule = per_minute(10 * UNIT);

    (void)state;
    rule.counts = RATION_COUNTS_COST;
    rule.arrival_us = 0;
    run_with(&rule, (ration_ratio){1, 1}, (ration_ratio){1, 5}, steps, sizeof steps / sizeof steps[0]);
}

/* The golden trace critical-dip in short: reserve 2 of 10, and 8 gone at once as the cost of one. */
static void test_dip(void **state)
{
    static const quota_step steps[] = {
        ASK("all of the normal part", 0, 'a', 8 * UNIT, NORMAL, GRANTED),
        END("seen", 0, 'a'),
        ASK("normal stops at U - R", 1 * MS, 'b', UNIT, NORMAL, REFUSED(MINUTE_US - 1 * MS)),
        ASK("nothing is always there", 1 * MS, 'z', 0, NORMAL, GRANTED),
        ASK("a critical charge of nothing is no dip", 1 * MS, 'y', 0, CRITICAL, GRANTED),
        ASK("a retry may go on", 1 * MS, 'c', UNIT / 2, RETRY, GRANTED),
        ASK("critical dips", 1 * MS, 'd', UNIT / 2, CRITICAL, GRANTED),
        ASK("now retries stop", 2 * MS, 'e', UNIT, RETRY, REFUSED(MINUTE_US - 2 * MS)),
        ASK("not critical ones", 2 * MS, 'f', UNIT, CRITICAL_RETRY, GRANTED),
        ASK("until nothing is left", 3 * MS, 'g', UNIT, CRITICAL, REFUSED(MINUTE_US - 3 * MS)),
        IS("all used", 3 * MS, 10 * UNIT, 10 * UNIT, 0, 0),
        END("z", 3 * MS, 'z'),
        END("y", 3 * MS, 'y'),
        END("c", 3 * MS, 'c'),
        END("d", 3 * MS, 'd'),
        END("f", 3 * MS, 'f'),
        ASK("1 us before the end", MINUTE_US - 1, 'h', UNIT, NORMAL, REFUSED(1)),
        ASK("a new window", MINUTE_US, 'h', 8 * UNIT, NORMAL, GRANTED),
        ASK("has forgotten the dip", MINUTE_US, 'i', 2 * UNIT, RETRY, GRANTED),
        ASK("and is used up", MINUTE_US, 'j', UNIT, CRITICAL, REFUSED(MINUTE_US)),
        ASK("no window holds it", MINUTE_US, 'j', 8 * UNIT + 1, NORMAL, TOO_MUCH),
        ASK("for a retry a window has more", MINUTE_US, 'j', 8 * UNIT + 1, RETRY, REFUSED(MINUTE_US)),
        ASK("but not that much", MINUTE_US, 'j', 10 * UNIT + 1, CRITICAL, TOO_MUCH),
    };
    ration_limit_rule rule = per_minute(10 * UNIT);

    (void)state;
    rule.counts = RATION_COUNTS_COST;
    run_with(&rule, (ration_ratio){1, 1}, (ration_ratio){1, 5}, steps, sizeof steps / sizeof steps[0]);
}

static void test_room(void **state)
{
    static const struct {
        const char *why;
        int64_t max;
        ration_counts counts;
        ration_ratio share, reserve;
        bool learned, enforcer;
        int64_t usable, kept;
    } rows[] = {
        {"whole", 10 * UNIT, RATION_COUNTS_REQUESTS, {1, 1}, {0, 1}, false, false, 10 * UNIT, 0},
        {"a third, floored", 10 * UNIT, RATION_COUNTS_REQUESTS, {1, 3}, {0, 1}, false, false, 3 * UNIT, 0},
        {"a reserve of the floored",
         100 * UNIT,
         RATION_COUNTS_REQUESTS,
         {1, 3},
         {1, 10},
         false,
         false,
         33 * UNIT,
         3 * UNIT},
        {"cost to micro-units", 10 * UNIT, RATION_COUNTS_COST, {1, 3}, {1, 10}, false, false, 3333333, 333333},
        {"a share of none", 5 * UNIT, RATION_COUNTS_REQUESTS, {1, 10}, {1, 10}, false, false, 0, 0},
        {"a learned one leaves a unit", 5 * UNIT, RATION_COUNTS_REQUESTS, {1, 10}, {1, 10}, true, false, UNIT, 0},
        {"beside the reserve", 2 * UNIT, RATION_COUNTS_REQUESTS, {1, 1}, {1, 1}, true, false, 2 * UNIT, UNIT},
        {"all in reserve", 2 * UNIT, RATION_COUNTS_REQUESTS, {1, 1}, {1, 1}, false, false, 2 * UNIT, 2 * UNIT},
        {"the enforcer has no share and no reserve",
         10 * UNIT,
         RATION_COUNTS_COST,
         {1, 3},
         {1, 2},
         false,
         true,
         10 * UNIT,
         0},
        {"the largest",
         RATION_UNITS_MAX,
         RATION_COUNTS_COST,
         {999999, 1000000},
         {1, 1000000},
         false,
         false,
         9007190247541737,
         9007190247},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_limit_rule rule = per_minute(rows[i].max);
        lone l;

        CHECK_ROW(rows[i].why);
        rule.counts = rows[i].counts;
        rule.max_auto = rows[i].learned;
        lone_init(&l, &rule, 0);
        l.counter.share = rows[i].share;
        l.limit.reserve = rows[i].reserve;
        l.limit.enforcer = rows[i].enforcer;
        CHECK_EQ(lone_report(&l, 0).usable, rows[i].usable);
        CHECK_EQ(lone_report(&l, 0).reserve, rows[i].kept);
        lone_fini(&l);
    }
}

/* The golden trace smallest-share, and what a share of nothing means. */
static void test_share(void **state)
{
    static const quota_step fifth[] = {
        ASK("one", 0, 'a', UNIT, NORMAL, GRANTED),
        ASK("two", 0, 'b', UNIT, NORMAL, GRANTED),
        ASK("a fifth of ten is two", 0, 'c', UNIT, NORMAL, REFUSED(MINUTE_US)),
    };
    static const quota_step none[] = {
        ASK("no window will ever hold one", 0, 'a', UNIT, NORMAL, TOO_MUCH),
        ASK("but nothing is there", 0, 'b', 0, NORMAL, GRANTED),
    };
    const ration_limit_rule ten = per_minute(10 * UNIT);
    const ration_limit_rule one = per_minute(1 * UNIT);

    (void)state;
    run_with(&ten, (ration_ratio){1, 5}, (ration_ratio){0, 1}, fifth, 3);
    run_with(&one, (ration_ratio){1, 2}, (ration_ratio){0, 1}, none, 2);
}

static void test_settle(void **state)
{
    static const quota_step steps[] = {
        ASK("a guess", 0, 'a', 50 * UNIT, NORMAL, GRANTED),
        SETTLE("was too much", 1, 'a', 20 * UNIT),
        IS("twenty", 1, 100 * UNIT, 20 * UNIT, 0, 80 * UNIT),
        SETTLE("was too little", 2, 'a', 130 * UNIT),
        IS("the maximum may be passed by what was spent", 2, 100 * UNIT, 130 * UNIT, 0, 0),
        ASK("in debt even nothing is refused", 3, 'b', 0, CRITICAL, REFUSED(HOUR_US - 3)),
        SETTLE("less", 4, 'a', 100 * UNIT),
        ASK("used up is no debt", 4, 'b', 0, NORMAL, GRANTED),
        ASK("but used up", 4, 'c', 1, NORMAL, REFUSED(HOUR_US - 4)),
        END("a", 5, 'a'),
        END("b", 5, 'b'),
        ASK("in the next window", HOUR_US, 'c', 40 * UNIT, NORMAL, GRANTED),
        ASK("a third", HOUR_US, 'd', 10 * UNIT, NORMAL, GRANTED),
        END("d", HOUR_US + 1, 'd'),
        END("c", HOUR_US + 1, 'c'),
        ASK("late in it", 2 * HOUR_US - 3 * SECOND_US, 'e', 40 * UNIT, NORMAL, GRANTED),
        SETTLE("after its window is over it changes nothing", 2 * HOUR_US, 'e', 100 * UNIT),
        IS("empty", 2 * HOUR_US, 100 * UNIT, 0, 0, 100 * UNIT),
    };
    const ration_limit_rule rule = quota_rule(100 * UNIT, RATION_COUNTS_COST, RATION_PERIOD_HOUR, 0);

    (void)state;
    QUOTA_RUN(&rule, steps);
}

/* What was granted within `arrival` of the end, and not answered, counts in the next window as well. */
static void test_carry(void **state)
{
    static const quota_step steps[] = {
        ASK("3 s before the end", MINUTE_US - 3 * SECOND_US, 'a', 1 * UNIT, NORMAL, GRANTED),
        ASK("2 s before: it has arrived by then", MINUTE_US - 2 * SECOND_US, 'b', 1 * UNIT, NORMAL, GRANTED),
        ASK("the end is certain", MINUTE_US - 2 * SECOND_US, 'x', 9 * UNIT, NORMAL, REFUSED(2 * SECOND_US)),
        ASK("1 us later", MINUTE_US - 2 * SECOND_US + 1, 'c', 1 * UNIT, NORMAL, GRANTED),
        ASK("the end is a guess", MINUTE_US - 1 * SECOND_US, 'x', 9 * UNIT, ESTIMATE, REFUSED(1 * SECOND_US)),
        ASK("answered in time", MINUTE_US - 1 * SECOND_US, 'd', 1 * UNIT, NORMAL, GRANTED),
        END("so it is certain where it counts", MINUTE_US - 1, 'd'),
        ASK("lost on the way", MINUTE_US - 1 * SECOND_US, 'e', 1 * UNIT, NORMAL, GRANTED),
        SETTLE("at what it cost in the end", MINUTE_US - 1, 'e', 3 * UNIT),
        LOSE("nobody knows where it counts", MINUTE_US - 1, 'e'),
        IS("seven in the old window", MINUTE_US - 1, 10 * UNIT, 7 * UNIT, 0, 3 * UNIT),
        WINDOW("c and e in the new one", MINUTE_US, 10 * UNIT, 4 * UNIT, 0, 6 * UNIT, MINUTE_US, 2 * MINUTE_US),
        SETTLE("as they were at the end", MINUTE_US + 1, 'c', 9 * UNIT),
        IS("still four", MINUTE_US + 1, 10 * UNIT, 4 * UNIT, 0, 6 * UNIT),
        ASK("six fit", MINUTE_US + 1, 'f', 6 * UNIT, NORMAL, GRANTED),
        ASK("no more", MINUTE_US + 1, 'g', UNIT, NORMAL, REFUSED(MINUTE_US - 1)),
        END("no header, so they stay", MINUTE_US + 3 * SECOND_US, 'f'),
        IS("ten", MINUTE_US + 3 * SECOND_US, 10 * UNIT, 10 * UNIT, 0, 0),
        IS("until the window ends", 2 * MINUTE_US, 10 * UNIT, 0, 0, 10 * UNIT),
    };
    static const quota_step off[] = {
        ASK("just before the end", MINUTE_US - 1, 'a', 10 * UNIT, NORMAL, GRANTED),
        ASK("certain", MINUTE_US - 1, 'b', UNIT, NORMAL, REFUSED(1)),
        IS("off: nothing is carried", MINUTE_US, 10 * UNIT, 0, 0, 10 * UNIT),
    };
    static const quota_step twice[] = {
        ASK("an arrival longer than a window", 0, 'a', 4 * UNIT, NORMAL, GRANTED),
        IS("carried", MINUTE_US, 10 * UNIT, 4 * UNIT, 0, 6 * UNIT),
        IS("and again", 2 * MINUTE_US, 10 * UNIT, 4 * UNIT, 0, 6 * UNIT),
        IS("until it must have arrived", 3 * MINUTE_US, 10 * UNIT, 0, 0, 10 * UNIT),
    };
    static const quota_step jump[] = {
        ASK("before a long pause", MINUTE_US - 1, 'a', 4 * UNIT, NORMAL, GRANTED),
        WINDOW("years later", 1000 * DAY_US, 10 * UNIT, 0, 0, 10 * UNIT, 1000 * DAY_US, 1000 * DAY_US + MINUTE_US),
    };
    ration_limit_rule rule = per_minute(10 * UNIT);

    (void)state;
    rule.counts = RATION_COUNTS_COST;
    QUOTA_RUN(&rule, steps);
    QUOTA_RUN(&rule, jump);
    rule.arrival_us = 0;
    QUOTA_RUN(&rule, off);
    rule.arrival_us = 150 * SECOND_US;
    QUOTA_RUN(&rule, twice);
}

/* More leases lost than there are numbers for: some count as younger than they are, none as older. */
static void test_many_lost(void **state)
{
    const ration_limit_rule rule = per_minute(100 * UNIT);
    const rn_ask ask = {.charge = UNIT};
    lone l;

    (void)state;
    lone_init(&l, &rule, MINUTE_US - 2 * SECOND_US);
    for (int64_t i = 0; i < 30; i++) {
        lone_force(&l, MINUTE_US - 2 * SECOND_US + i * 2, &ask, 'a', RATION_UNSET);
        lone_force(&l, MINUTE_US - 2 * SECOND_US + i * 2 + 1, &ask, 'b', RATION_UNSET);
        lone_end(&l, MINUTE_US - 2 * SECOND_US + i * 2 + 1, 'b');
        lone_end(&l, MINUTE_US - 2 * SECOND_US + i * 2 + 1, 'a');
    }
    CHECK_EQ(l.counter.u.quota->flight.charge, 60 * UNIT);
    CHECK_EQ(lone_report(&l, MINUTE_US).used, 60 * UNIT);
    CHECK_EQ(lone_report(&l, 2 * MINUTE_US).used, 0);
    CHECK_EQ(l.counter.u.quota->flight.charge, 0);
    CHECK(l.limit.kind->is_fresh(&l.counter, ration_time_of(2 * MINUTE_US)));
    lone_fini(&l);
}

static void test_waiting(void **state)
{
    static const quota_step steps[] = {
        ASK("all", 0, 'a', 10 * UNIT, NORMAL, GRANTED),
        END("seen", 0, 'a'),
        ASK("may not wait", 1, 'b', UNIT, NORMAL, REFUSED(MINUTE_US - 1)),
        ASK("waits for the end", 1, 'b', UNIT, WAITS, SHORT_OF(MINUTE_US - 1)),
        ASK("its deadline lies before", 1, 'b', UNIT, WAITS_1US, REFUSED(MINUTE_US - 1)),
        ASK("no window would hold it", 1, 'b', 11 * UNIT, WAITS, TOO_MUCH),
        ASK("at the end", MINUTE_US, 'b', UNIT, WAITS, GRANTED),
    };
    ration_limit_rule rule = per_minute(10 * UNIT);
    lone l;
    const rn_ask all = {.charge = 10 * UNIT};
    const rn_ask behind = {.charge = UNIT, .ahead = UNIT, .may_wait = true, .deadline = {RATION_NEVER_US}};

    (void)state;
    rule.when_exhausted = RATION_EXHAUSTED_WAIT;
    QUOTA_RUN(&rule, steps);

    lone_init(&l, &rule, 0);
    CHECK_EQ(lone_check(&l, 0, &behind).fit, RN_FIT_NOW);
    CHECK_EQ(lone_check(&l, 0, &behind).reason, RATION_REASON_QUOTA_EXHAUSTED);
    CHECK_EQ(lone_check(&l, 0, &behind).at.us, RATION_NEVER_US);
    lone_force(&l, 0, &all, 'a', RATION_UNSET);
    CHECK_EQ(lone_check(&l, 0, &behind).fit, RN_FIT_SHORT);
    CHECK_EQ(lone_check(&l, 0, &behind).at.us, MINUTE_US);
    CHECK(lone_check(&l, 0, &behind).estimate);
    lone_fini(&l);
}

/* The golden trace leap-day: 29 February is a day, and day 29 of a month is the last where a month is shorter. */
static void test_calendar(void **state)
{
    static const quota_step day[] = {
        ASK("1 ms before the end", 1677542399999 * MS, 'a', UNIT, NORMAL, GRANTED),
        END("seen", 1677542399999 * MS, 'a'),
        WINDOW("28 February 2023", 1677542400000 * MS, UNIT, 0, 0, UNIT, 1677542400000 * MS, 1677628800000 * MS),
        ASK("28 February 2024", 1709121600000 * MS, 'b', UNIT, NORMAL, GRANTED),
        END("seen", 1709121600000 * MS, 'b'),
        ASK("that day", 1709164800000 * MS - 1, 'c', UNIT, NORMAL, REFUSED(1)),
        ASK("the 29th", 1709164800000 * MS, 'd', UNIT, NORMAL, GRANTED),
    };
    static const quota_step month[] = {
        WINDOW("day 29 in 2023", 1677542400000 * MS, UNIT, 0, 0, UNIT, 1677542400000 * MS, 1680048000000 * MS),
        ASK("the last of the month", 1709121600000 * MS, 'a', UNIT, NORMAL, GRANTED),
        WINDOW("the 29th", 1709164800000 * MS, UNIT, 0, 0, UNIT, 1709164800000 * MS, 1711670400000 * MS),
    };
    const ration_limit_rule daily = quota_rule(UNIT, RATION_COUNTS_REQUESTS, RATION_PERIOD_DAY, 0);
    ration_limit_rule monthly = quota_rule(UNIT, RATION_COUNTS_REQUESTS, RATION_PERIOD_MONTH, 0);

    (void)state;
    QUOTA_RUN(&daily, day);
    monthly.window.month_day = 29;
    QUOTA_RUN(&monthly, month);
}

static void test_shadow(void **state)
{
    const ration_limit_rule rule = per_minute(2 * UNIT);
    const rn_ask ask = {.charge = UNIT};
    lone l;

    (void)state;
    lone_init(&l, &rule, 0);
    for (int id = 'a'; id < 'f'; id++)
        lone_force(&l, 0, &ask, (char)id, RATION_UNSET);
    CHECK_EQ(lone_report(&l, 0).used, 5 * UNIT);
    CHECK_EQ(lone_report(&l, 0).remaining, 0);
    lone_fini(&l);
}

static void test_fresh(void **state)
{
    const ration_limit_rule rule = per_minute(2 * UNIT);
    const rn_ask ask = {.charge = UNIT};
    lone l;

    (void)state;
    lone_init(&l, &rule, 0);
    CHECK(l.limit.kind->is_fresh(&l.counter, ration_time_of(0)));
    lone_force(&l, 1, &ask, 'a', RATION_UNSET);
    lone_observe(&l, 2, 'a', NULL, false);
    lone_end(&l, 2, 'a');
    CHECK(!l.limit.kind->is_fresh(&l.counter, ration_time_of(MINUTE_US - 1)));
    CHECK(l.limit.kind->is_fresh(&l.counter, ration_time_of(MINUTE_US)));
    lone_fini(&l);
}

static void test_prepare(void **state)
{
    static const struct {
        const char *why;
        int64_t max;
        ration_window window;
        bool max_auto, headless;
        int64_t arrival_us;
        const char *path; /* NULL: fine */
    } rows[] = {
        {"a day", UNIT, {.period = RATION_PERIOD_DAY}, false, false, -1, NULL},
        {"rolling", UNIT, {.rolling_us = SECOND_US}, false, false, 0, NULL},
        {"the 31st", UNIT, {.period = RATION_PERIOD_MONTH, .month_day = 31}, false, false, -1, NULL},
        {"learned", UNIT, {.period = RATION_PERIOD_DAY}, true, false, -1, NULL},
        {"learned from nothing", UNIT, {.period = RATION_PERIOD_DAY}, true, true, -1, "sync.limit_header"},
        {"no max", 0, {.period = RATION_PERIOD_DAY}, false, false, -1, "max"},
        {"less than a request", UNIT - 1, {.period = RATION_PERIOD_DAY}, false, false, -1, "max"},
        {"above 2^53", RATION_UNITS_MAX + 1, {.period = RATION_PERIOD_DAY}, false, false, -1, "max"},
        {"no window", UNIT, {.period = RATION_PERIOD_NONE}, false, false, -1, "window.rolling_us"},
        {"below a second", UNIT, {.rolling_us = SECOND_US - 1}, false, false, -1, "window.rolling_us"},
        {"both", UNIT, {.period = RATION_PERIOD_DAY, .rolling_us = HOUR_US}, false, false, -1, "window.rolling_us"},
        {"24:00", UNIT, {.period = RATION_PERIOD_DAY, .reset_minute = 1440}, false, false, -1, "window.reset_minute"},
        {"before midnight",
         UNIT,
         {.period = RATION_PERIOD_DAY, .reset_minute = -1},
         false,
         false,
         -1,
         "window.reset_minute"},
        {"hours have none",
         UNIT,
         {.period = RATION_PERIOD_HOUR, .reset_minute = 30},
         false,
         false,
         -1,
         "window.reset_minute"},
        {"day 7 of a week",
         UNIT,
         {.period = RATION_PERIOD_WEEK, .week_start = 7},
         false,
         false,
         -1,
         "window.week_start"},
        {"the 32nd", UNIT, {.period = RATION_PERIOD_MONTH, .month_day = 32}, false, false, -1, "window.month_day"},
        {"arrival before leaving", UNIT, {.period = RATION_PERIOD_DAY}, false, false, -2, "arrival_us"},
        {"no such period", UNIT, {.period = (ration_period)6}, false, false, -1, "window.period"},
    };
    lone l;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_limit_rule rule = per_minute(rows[i].max);

        CHECK_ROW(rows[i].why);
        rule.window = rows[i].window;
        rule.max_auto = rows[i].max_auto;
        rule.arrival_us = rows[i].arrival_us;
        if (rows[i].headless)
            rule.sync.limit_header = NULL;
        CHECK_EQ(lone_prepare(&l, &rule), rows[i].path == NULL ? RATION_OK : RATION_ERR_CONFIG);
        CHECK_STR(l.fault.path, rows[i].path == NULL ? "" : rows[i].path);
    }
}

static void test_no_memory(void **state)
{
    const ration_limit_rule rules[] = {
        per_minute(UNIT),
        quota_rule(UNIT, RATION_COUNTS_REQUESTS, RATION_PERIOD_NONE, HOUR_US),
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        failalloc fail = {.failed = true};

        for (uint64_t at = 0; fail.failed; at++) {
            lone l;

            failalloc_init(&fail, at);
            CHECK_EQ(lone_prepare(&l, &rules[i]), RATION_OK);
            l.counter.mem = &fail.allocator;

            const int err = l.limit.kind->init(&l.counter, ration_time_of(0));

            CHECK_EQ(err, fail.failed ? RATION_ERR_NOMEM : RATION_OK);
            if (err == RATION_OK)
                lone_fini(&l);
            CHECK_EQ(fail.live, 0);
        }
    }
}

static void test_kinds(void **state)
{
    (void)state;
    CHECK_STR(rn_kind_of(RATION_KIND_RATE)->name, "rate");
    CHECK_STR(rn_kind_of(RATION_KIND_CONCURRENCY)->name, "concurrency");
    CHECK_STR(rn_kind_of(RATION_KIND_QUOTA)->name, "quota");
    CHECK(rn_kind_of(RATION_KIND_NONE) == NULL);
    CHECK(rn_kind_of(RATION_KIND_COUNT) == NULL);
    CHECK(rn_kind_of((ration_kind)99) == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dip),       cmocka_unit_test(test_no_dip),  cmocka_unit_test(test_room),
        cmocka_unit_test(test_share),     cmocka_unit_test(test_settle),  cmocka_unit_test(test_carry),
        cmocka_unit_test(test_many_lost), cmocka_unit_test(test_waiting), cmocka_unit_test(test_calendar),
        cmocka_unit_test(test_shadow),    cmocka_unit_test(test_fresh),   cmocka_unit_test(test_prepare),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_kinds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
