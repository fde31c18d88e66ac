/* SPDX-License-Identifier: MIT */
/* What a calendar quota learns from headers: the golden traces, and the cases between them. */
#include "support/quota_steps.h"

#define N NULL

static ration_limit_rule hourly(int64_t max)
{
    return quota_rule(max * UNIT, RATION_COUNTS_REQUESTS, RATION_PERIOD_HOUR, 0);
}

/* The golden trace seen-and-in-flight. */
static void test_in_flight(void **state)
{
    static const quota_step steps[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        ASK("b", 0, 'b', UNIT, NORMAL, GRANTED),
        END("a is answered", 5 * MS, 'a'),
        ASK("c knows a", 10 * MS, 'c', UNIT, NORMAL, GRANTED),
        ASK("d", 10 * MS, 'd', UNIT, NORMAL, GRANTED),
        TELL("b is answered after c left", 15 * MS, 'b', N, N, N, 0),
        TELL("b was in flight, d came since", 20 * MS, 'c', N, "90", N, 0),
        IS("88", 20 * MS, 100 * UNIT, 4 * UNIT, 8 * UNIT, 88 * UNIT),
        END("ending tells nothing more", 30 * MS, 'c'),
        IS("88", 30 * MS, 100 * UNIT, 4 * UNIT, 8 * UNIT, 88 * UNIT),
        ASK("each grant costs one", 31 * MS, 'e', UNIT, NORMAL, GRANTED),
        IS("87", 31 * MS, 100 * UNIT, 5 * UNIT, 8 * UNIT, 87 * UNIT),
    };
    static const quota_step aged[] = {
        ASK("a never answers", 0, 'a', UNIT, NORMAL, GRANTED),
        ASK("1 us too early to be sure", 2 * SECOND_US - 1, 'b', UNIT, NORMAL, GRANTED),
        TELL("a is not counted", 2 * SECOND_US - 1, 'b', N, "90", N, 0),
        IS("89", 2 * SECOND_US - 1, 100 * UNIT, 2 * UNIT, 9 * UNIT, 89 * UNIT),
        ASK("2 s later it must have arrived", 2 * SECOND_US, 'c', UNIT, NORMAL, GRANTED),
        TELL("and is in r", 2 * SECOND_US, 'c', N, "89", N, 0),
        IS("89", 2 * SECOND_US, 100 * UNIT, 3 * UNIT, 8 * UNIT, 89 * UNIT),
        ASK("lost without an answer", 10 * SECOND_US, 'd', UNIT, NORMAL, GRANTED),
        LOSE("it may be on its way", 10 * SECOND_US, 'd'),
        ASK("so to e it is not counted", 11 * SECOND_US, 'e', UNIT, NORMAL, GRANTED),
        TELL("e", 11 * SECOND_US, 'e', N, "50", N, 0),
        IS("49", 11 * SECOND_US, 100 * UNIT, 5 * UNIT, 46 * UNIT, 49 * UNIT),
        ASK("to f it is", 12 * SECOND_US, 'f', UNIT, NORMAL, GRANTED),
        TELL("f", 12 * SECOND_US, 'f', N, "50", N, 0),
        IS("50", 12 * SECOND_US, 100 * UNIT, 6 * UNIT, 44 * UNIT, 50 * UNIT),
    };
    static const quota_step at_once[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        ASK("b", 0, 'b', UNIT, NORMAL, GRANTED),
        TELL("no arrival: a is there at once", 0, 'b', N, "90", N, 0),
        IS("90", 0, 100 * UNIT, 2 * UNIT, 8 * UNIT, 90 * UNIT),
    };
    ration_limit_rule rule = hourly(100);

    (void)state;
    QUOTA_RUN(&rule, steps);
    QUOTA_RUN(&rule, aged);
    rule.arrival_us = 0;
    QUOTA_RUN(&rule, at_once);
}

/* The golden trace out-of-order. */
static void test_order(void **state)
{
    static const quota_step steps[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        ASK("b", 0, 'b', UNIT, NORMAL, GRANTED),
        ASK("c", 0, 'c', UNIT, NORMAL, GRANTED),
        TELL("b", 10 * MS, 'b', N, "60", N, 0),
        IS("a and c may not be counted", 10 * MS, 100 * UNIT, 3 * UNIT, 39 * UNIT, 58 * UNIT),
        TELL("a is earlier: ignored whole", 20 * MS, 'a', "7", "99", N, 0),
        IS("as it was", 20 * MS, 100 * UNIT, 3 * UNIT, 39 * UNIT, 58 * UNIT),
        TELL("b again", 30 * MS, 'b', N, "61", N, 0),
        IS("59", 30 * MS, 100 * UNIT, 3 * UNIT, 38 * UNIT, 59 * UNIT),
        TELL("c", 40 * MS, 'c', N, "70", N, 0),
        IS("68", 40 * MS, 100 * UNIT, 3 * UNIT, 29 * UNIT, 68 * UNIT),
        TELL("a tells of a new window: that is looked at first", 50 * MS, 'a', "50", "20", "5400.5", 0),
        WINDOW("it began with a", 50 * MS, 50 * UNIT, 3 * UNIT, 29 * UNIT, 18 * UNIT, 0, 5400 * SECOND_US + 550 * MS),
    };
    const ration_limit_rule rule = hourly(100);

    (void)state;
    QUOTA_RUN(&rule, steps);
}

/* The golden trace minus-one. */
static void test_bad_values(void **state)
{
    static const quota_step steps[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        TELL("-1, and a limit of 0", 1 * MS, 'a', "0", "-1", N, 2),
        WINDOW("nothing learned", 1 * MS, 100 * UNIT, UNIT, 0, 99 * UNIT, 0, HOUR_US),
        TELL("NaN", 2 * MS, 'a', "-1", "NaN", N, 2),
        IS("nothing learned", 2 * MS, 100 * UNIT, UNIT, 0, 99 * UNIT),
        TELL("too many digits", 3 * MS, 'a', "50", "99999999999999999999999999", N, 1),
        IS("the limit is", 3 * MS, 50 * UNIT, UNIT, 0, 49 * UNIT),
        TELL("a reset more than a window late", 4 * MS, 'a', N, "20", "7200.5", 1),
        WINDOW("the remaining is", 4 * MS, 50 * UNIT, UNIT, 29 * UNIT, 20 * UNIT, 0, HOUR_US),
        TELL("a negative reset", 5 * MS, 'a', N, "19", "-1", 1),
        IS("the remaining is", 5 * MS, 50 * UNIT, UNIT, 30 * UNIT, 19 * UNIT),
        TELL("nothing at all", 6 * MS, 'a', N, N, N, 0),
        TELL("empty ones", 6 * MS, 'a', "", "", "", 3),
        IS("no change", 6 * MS, 50 * UNIT, UNIT, 30 * UNIT, 19 * UNIT),
    };
    const ration_limit_rule rule = hourly(100);

    (void)state;
    QUOTA_RUN(&rule, steps);
}

/* The golden trace cost-quota. */
static void test_settlements(void **state)
{
    static const quota_step steps[] = {
        ASK("a", 0, 'a', 10 * UNIT, NORMAL, GRANTED),
        END("a", 0, 'a'),
        ASK("b", 0, 'b', 10 * UNIT, NORMAL, GRANTED),
        ASK("c", 0, 'c', 10 * UNIT, NORMAL, GRANTED),
        TELL("b", 1 * MS, 'b', N, "60", N, 0),
        IS("c may not be counted", 1 * MS, 100 * UNIT, 30 * UNIT, 20 * UNIT, 50 * UNIT),
        SETTLE("c cost less", 2 * MS, 'c', UNIT),
        IS("the provider's word stands", 2 * MS, 100 * UNIT, 21 * UNIT, 20 * UNIT, 50 * UNIT),
        SETTLE("b cost more", 3 * MS, 'b', 15 * UNIT),
        IS("that lowers it", 3 * MS, 100 * UNIT, 26 * UNIT, 20 * UNIT, 45 * UNIT),
        END("b", 3 * MS, 'b'),
        ASK("d", 4 * MS, 'd', 45 * UNIT, NORMAL, GRANTED),
        ASK("nothing", 4 * MS, 'e', 0, NORMAL, GRANTED),
        SETTLE("d cost half a unit more", 4 * MS, 'd', 45500000),
        ASK("a debt refuses even nothing", 4 * MS, 'f', 0, NORMAL, REFUSED(HOUR_US - 4 * MS)),
        TELL("e", 5 * MS, 'e', "40", N, N, 0),
        IS("a new maximum", 5 * MS, 40 * UNIT, 71500000, 20 * UNIT, 0),
        ASK("no window holds it, for all we know", 6 * MS, 'g', 50 * UNIT, NORMAL, REFUSED(NO_TIME)),
        ASK("one would", 6 * MS, 'g', 40 * UNIT, NORMAL, REFUSED(HOUR_US - 6 * MS)),
    };
    static const quota_step between[] = {
        ASK("a", 0, 'a', 10 * UNIT, NORMAL, GRANTED),
        TELL("a is answered", 1, 'a', N, N, N, 0),
        ASK("b knows it", 2, 'b', 10 * UNIT, NORMAL, GRANTED),
        ASK("c came since", 3, 'c', 10 * UNIT, NORMAL, GRANTED),
        SETTLE("a cost less: that was in b's r anyway", 4, 'a', UNIT),
        SETTLE("c cost less: b's r lacks one", 5, 'c', UNIT),
        TELL("b", 6, 'b', N, "60", N, 0),
        IS("59", 6, 100 * UNIT, 12 * UNIT, 20 * UNIT, 59 * UNIT),
    };
    static const quota_step arrived[] = {
        ASK("a", 0, 'a', 10 * UNIT, NORMAL, GRANTED),
        ASK("b: a has not been answered, but was there", 2 * SECOND_US, 'b', 10 * UNIT, NORMAL, GRANTED),
        SETTLE("a cost less: b's r knows it or is too low", 3 * SECOND_US, 'a', UNIT),
        TELL("b", 4 * SECOND_US, 'b', N, "60", N, 0),
        IS("60", 4 * SECOND_US, 100 * UNIT, 11 * UNIT, 20 * UNIT, 60 * UNIT),
    };
    const ration_limit_rule rule = quota_rule(100 * UNIT, RATION_COUNTS_COST, RATION_PERIOD_HOUR, 0);

    (void)state;
    QUOTA_RUN(&rule, steps);
    QUOTA_RUN(&rule, between);
    QUOTA_RUN(&rule, arrived);
}

/* The golden trace truncated-delta, and resets that move the end. */
static void test_moved_end(void **state)
{
    static const quota_step truncated[] = {
        ASK("a", 600 * SECOND_US, 'a', UNIT, NORMAL, GRANTED),
        ASK("b", 600 * SECOND_US, 'b', UNIT, NORMAL, GRANTED),
        TELL("one second is added", 600 * SECOND_US, 'a', N, N, "2999", 0),
        WINDOW("so the end is as it was", 600 * SECOND_US, 10 * UNIT, 2 * UNIT, 0, 8 * UNIT, 0, HOUR_US),
        TELL("sliding", 601500 * MS, 'b', N, N, "2999", 0),
        WINDOW("moves the end", 601500 * MS, 10 * UNIT, 2 * UNIT, 0, 8 * UNIT, 0, 3601500 * MS),
        WINDOW("and those after", 7201499 * MS, 10 * UNIT, 0, 0, 10 * UNIT, 3601500 * MS, 7201500 * MS),
    };
    static const quota_step nearer[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        ASK("b", 0, 'b', UNIT, NORMAL, GRANTED),
        TELL("nearer", 1, 'a', N, "5", "1970-01-01T00:50:00Z", 0),
        WINDOW("moved", 1, 10 * UNIT, 2 * UNIT, 4 * UNIT, 4 * UNIT, 0, 3000 * SECOND_US),
        TELL("nearer still: not twice in half a window", 2, 'b', N, "5", "1970-01-01T00:40:00Z", 0),
        WINDOW("the remaining counts", 2, 10 * UNIT, 2 * UNIT, 4 * UNIT, 4 * UNIT, 0, 3000 * SECOND_US),
        TELL("later is allowed", 3, 'b', N, N, "1970-01-01T00:55:00Z", 0),
        WINDOW("moved again", 3, 10 * UNIT, 2 * UNIT, 4 * UNIT, 4 * UNIT, 0, 3300 * SECOND_US),
        ASK("next window", 3300 * SECOND_US, 'c', UNIT, NORMAL, GRANTED),
        WINDOW("keeps the offset", 3300 * SECOND_US, 10 * UNIT, UNIT, 0, 9 * UNIT, 3300 * SECOND_US, 6900 * SECOND_US),
        TELL("half a window after 3000 s, a nearer one counts", 3301 * SECOND_US, 'c', N, N, "1970-01-01T01:20:00Z", 0),
        WINDOW("moved", 3301 * SECOND_US, 10 * UNIT, UNIT, 0, 9 * UNIT, 3300 * SECOND_US, 4800 * SECOND_US),
    };
    static const quota_step stale[] = {
        ASK("a", HOUR_US + 1, 'a', UNIT, NORMAL, GRANTED),
        TELL("five", HOUR_US + 1, 'a', N, "5", N, 0),
        TELL("a reset at the start is stale, and so is what remained", HOUR_US + 2, 'a', "20", "3",
             "1970-01-01T01:00:00Z", 0),
        WINDOW("the limit counts", HOUR_US + 2, 20 * UNIT, UNIT, 4 * UNIT, 5 * UNIT, HOUR_US, 2 * HOUR_US),
        TELL("in the year 1", HOUR_US + 3, 'a', N, "3", "0099-01-01T01:00:00Z", 1),
        IS("the remaining counts", HOUR_US + 3, 20 * UNIT, UNIT, 16 * UNIT, 3 * UNIT),
        TELL("1 us too late", HOUR_US + 3, 'a', N, N, "1970-01-01T03:00:00.000001Z", 1),
        WINDOW("ignored", HOUR_US + 3, 20 * UNIT, UNIT, 16 * UNIT, 3 * UNIT, HOUR_US, 2 * HOUR_US),
        TELL("the latest that can be", HOUR_US + 3, 'a', N, N, "1970-01-01T03:00:00Z", 0),
        WINDOW("a new window", HOUR_US + 3, 20 * UNIT, UNIT, 0, 19 * UNIT, HOUR_US + 1, 3 * HOUR_US),
    };
    const ration_limit_rule rule = hourly(10);

    (void)state;
    QUOTA_RUN(&rule, truncated);
    QUOTA_RUN(&rule, nearer);
    QUOTA_RUN(&rule, stale);
}

/* What came with a reset that may not move the end is of a window that is over by then. */
static void test_word_until(void **state)
{
    static const quota_step remains[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        TELL("nearer", 1, 'a', N, N, "1970-01-01T00:50:00Z", 0),
        TELL("nearer still, of an earlier window", 2, 'a', N, "2", "1970-01-01T00:10:00Z", 0),
        WINDOW("the end is as it was", 2, 10 * UNIT, UNIT, 7 * UNIT, 2 * UNIT, 0, 3000 * SECOND_US),
        ASK("three are more than were left there", 3, 'b', 3 * UNIT, NORMAL, REFUSED(600 * SECOND_US - 3)),
        ASK("more than the count has", 3, 'b', 9500000, NORMAL, REFUSED(3000 * SECOND_US - 3)),
        ASK("1 us before", 600 * SECOND_US - 1, 'b', 3 * UNIT, NORMAL, REFUSED(1)),
        ASK("forgotten", 600 * SECOND_US, 'b', 3 * UNIT, NORMAL, GRANTED),
        WINDOW("what is counted stays", 600 * SECOND_US, 10 * UNIT, 4 * UNIT, 0, 6 * UNIT, 0, 3000 * SECOND_US),
    };
    static const quota_step exhausted[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        TELL("nearer", 1, 'a', N, N, "1970-01-01T00:50:00Z", 0),
        TELL_429("nothing remains until then", 2, 'a', N, "0", "1970-01-01T00:10:00Z"),
        ASK("none", 3, 'b', UNIT, NORMAL, REFUSED(600 * SECOND_US - 3)),
        TELL_429("until later", 4, 'a', N, "0", "1970-01-01T00:12:00Z"),
        TELL("what remains is another matter", 5, 'a', N, "3", "1970-01-01T00:11:00Z", 0),
        ASK("none", 5, 'b', UNIT, NORMAL, REFUSED(720 * SECOND_US - 5)),
        TELL_429("until the end", 6, 'a', N, "0", N),
        ASK("none", 720 * SECOND_US, 'b', UNIT, NORMAL, REFUSED(2280 * SECOND_US)),
        ASK("the next window", 3000 * SECOND_US, 'b', UNIT, NORMAL, GRANTED),
    };
    const ration_limit_rule rule = hourly(10);

    (void)state;
    QUOTA_RUN(&rule, remains);
    QUOTA_RUN(&rule, exhausted);
}

/* A reset at least half a window later than the end we know: a window of which we have not seen the begin. */
static void test_new_window(void **state)
{
    static const quota_step steps[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        END("a", 1, 'a'),
        ASK("b", 2 * SECOND_US, 'b', UNIT, NORMAL, GRANTED),
        ASK("c, unanswered", 2001 * MS, 'c', UNIT, NORMAL, GRANTED),
        ASK("d", 2002 * MS, 'd', UNIT, NORMAL, GRANTED),
        ASK("e", 2003 * MS, 'e', UNIT, NORMAL, GRANTED),
        TELL("less than half a window moves the end", 2004 * MS, 'b', N, N, "1970-01-01T01:29:59Z", 0),
        WINDOW("moved", 2004 * MS, 10 * UNIT, 5 * UNIT, 0, 5 * UNIT, 0, 5399 * SECOND_US),
        TELL("half a window begins one", 2005 * MS, 'd', N, "7", "1970-01-01T01:59:59Z", 0),
        WINDOW("d and e belong to it, c may; d knew neither b nor c", 2005 * MS, 10 * UNIT, 3 * UNIT, 2 * UNIT,
               4 * UNIT, 2002 * MS, 7199 * SECOND_US),
        TELL("c is of the window before", 2006 * MS, 'c', "8", "1", N, 0),
        IS("it teaches its limit", 2006 * MS, 8 * UNIT, 3 * UNIT, 2 * UNIT, 4 * UNIT),
        TELL("e is of this one", 2007 * MS, 'e', "10", "6", N, 0),
        IS("b, c and d were in flight", 2007 * MS, 10 * UNIT, 3 * UNIT, 3 * UNIT, 3 * UNIT),
    };
    static const quota_step long_call[] = {
        ASK("a long call of the first window", 0, 'a', UNIT, NORMAL, GRANTED),
        ASK("a short one", 1 * SECOND_US, 'x', UNIT, NORMAL, GRANTED),
        END("x", 1 * SECOND_US, 'x'),
        ASK("one of the second", HOUR_US, 'b', UNIT, NORMAL, GRANTED),
        TELL("a is answered with the second's reset", HOUR_US, 'a', N, "6", "1970-01-01T02:00:00Z", 0),
        IS("x is of no matter, b is", HOUR_US, 10 * UNIT, UNIT, 3 * UNIT, 5 * UNIT),
    };
    static const quota_step older[] = {
        ASK("a, of the first window", 0, 'a', UNIT, NORMAL, GRANTED),
        ASK("b, of the second", HOUR_US, 'b', UNIT, NORMAL, GRANTED),
        TELL("a reset to come makes a an observation of this window", HOUR_US, 'a', N, "6", "1970-01-01T02:00:00Z", 0),
        WINDOW("b is not in its r", HOUR_US, 10 * UNIT, UNIT, 3 * UNIT, 5 * UNIT, HOUR_US, 2 * HOUR_US),
        TELL("b comes later by grant", HOUR_US, 'b', N, "9", N, 0),
        IS("nine", HOUR_US, 10 * UNIT, UNIT, 0, 9 * UNIT),
        TELL("a is older than all", HOUR_US, 'a', N, "2", "1970-01-01T02:00:00Z", 0),
        IS("nine", HOUR_US, 10 * UNIT, UNIT, 0, 9 * UNIT),
    };
    static const quota_step across[] = {
        ASK("z", 0, 'z', UNIT, NORMAL, GRANTED),
        TELL("the end is told a second late", 0, 'z', N, N, "3601.0", 0),
        ASK("a", 3599 * SECOND_US, 'a', UNIT, NORMAL, GRANTED),
        ASK("b", 3599 * SECOND_US, 'b', UNIT, NORMAL, GRANTED),
        TELL("a was counted in the new window", 3600500 * MS, 'a', N, N, "3600.0", 0),
        WINDOW("it has begun with a", 3600500 * MS, 10 * UNIT, 2 * UNIT, 0, 8 * UNIT, 3599 * SECOND_US, 7200500 * MS),
        TELL("b, in the old one: no second end in half a window", 3600600 * MS, 'b', N, "3", "0.2", 0),
        WINDOW("what remained there", 3600600 * MS, 10 * UNIT, 2 * UNIT, 6 * UNIT, 2 * UNIT, 3599 * SECOND_US,
               7200500 * MS),
        WINDOW("until its own end", 3600800 * MS, 10 * UNIT, 2 * UNIT, 0, 8 * UNIT, 3599 * SECOND_US, 7200500 * MS),
        TELL("nor by a reset that has passed", 3600900 * MS, 'b', N, N, "1970-01-01T01:00:00Z", 0),
        WINDOW("a and b count", 3600900 * MS, 10 * UNIT, 2 * UNIT, 0, 8 * UNIT, 3599 * SECOND_US, 7200500 * MS),
    };
    const ration_limit_rule rule = hourly(10);

    (void)state;
    QUOTA_RUN(&rule, steps);
    QUOTA_RUN(&rule, long_call);
    QUOTA_RUN(&rule, older);
    QUOTA_RUN(&rule, across);
}

/* The golden trace reset-in-the-past. */
static void test_past_reset(void **state)
{
    static const quota_step steps[] = {
        ASK("before", 600 * SECOND_US, 'a', UNIT, NORMAL, GRANTED),
        END("and answered", 600 * SECOND_US, 'a'),
        ASK("after", 1200 * SECOND_US, 'b', UNIT, NORMAL, GRANTED),
        TELL("a window began between", 1200 * SECOND_US, 'b', N, "3", "1970-01-01T00:15:00Z", 0),
        WINDOW("b belongs to it", 1200 * SECOND_US, 10 * UNIT, UNIT, 0, 9 * UNIT, 900 * SECOND_US, 4500 * SECOND_US),
        ASK("c", 1800 * SECOND_US, 'c', UNIT, NORMAL, GRANTED),
        TELL("not twice in half a window", 1800 * SECOND_US, 'c', N, "3", "0.0", 0),
        WINDOW("what remained is dropped", 1800 * SECOND_US, 10 * UNIT, 2 * UNIT, 0, 8 * UNIT, 900 * SECOND_US,
               4500 * SECOND_US),
        ASK("d", 2700 * SECOND_US, 'd', UNIT, NORMAL, GRANTED),
        TELL("half a window later", 2700 * SECOND_US + 1 * MS, 'd', N, N, "0.0", 0),
        WINDOW("it is empty", 2700 * SECOND_US + 1 * MS, 10 * UNIT, 0, 0, 10 * UNIT, 2700 * SECOND_US + 1 * MS,
               6300 * SECOND_US + 1 * MS),
    };
    static const quota_step carried[] = {
        ASK("unanswered, 1 s before the reset", 1000 * SECOND_US, 'a', UNIT, NORMAL, GRANTED),
        ASK("lost, 1 s before the reset", 1000 * SECOND_US, 'l', UNIT, NORMAL, GRANTED),
        LOSE("l", 1000 * SECOND_US, 'l'),
        ASK("since", 1001 * SECOND_US, 'b', UNIT, NORMAL, GRANTED),
        TELL("b", 1001500 * MS, 'b', N, N, "1970-01-01T00:16:41Z", 0),
        WINDOW("a and l may count here", 1001500 * MS, 10 * UNIT, 3 * UNIT, 0, 7 * UNIT, 1001 * SECOND_US,
               4601 * SECOND_US),
        SETTLE("b is of this window", 1001600 * MS, 'b', 3 * UNIT),
        SETTLE("a is not", 1001600 * MS, 'a', 3 * UNIT),
        IS("five", 1001600 * MS, 10 * UNIT, 5 * UNIT, 0, 5 * UNIT),
    };
    static const quota_step long_ago[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        TELL("the end moves back", 0, 'a', N, N, "1970-01-01T01:20:00Z", 0),
        ASK("b, in the 78th minute", 4698 * SECOND_US, 'b', UNIT, NORMAL, GRANTED),
        ASK("c", 4701 * SECOND_US, 'c', UNIT, NORMAL, GRANTED),
        TELL("the window that began then is over as well", 4702 * SECOND_US, 'c', N, N, "1970-01-01T00:00:01Z", 0),
        WINDOW("b and c are of the one after it", 4702 * SECOND_US, 10 * UNIT, 2 * UNIT, 0, 8 * UNIT, 3601 * SECOND_US,
               7201 * SECOND_US),
        ASK("d", 4703 * SECOND_US, 'd', UNIT, NORMAL, GRANTED),
        TELL("after b", 4704 * SECOND_US, 'd', N, N, "1970-01-01T01:18:21Z", 0),
        WINDOW("c and d", 4704 * SECOND_US, 10 * UNIT, 2 * UNIT, 0, 8 * UNIT, 4701 * SECOND_US, 8301 * SECOND_US),
    };
    const ration_limit_rule rule = hourly(10);

    (void)state;
    QUOTA_RUN(&rule, steps);
    QUOTA_RUN(&rule, carried);
    QUOTA_RUN(&rule, long_ago);
}

/* Carried leases are let go by an observation, with a remaining that counts, of a lease granted long enough after. */
static void test_carried(void **state)
{
    static const quota_step steps[] = {
        ASK("1 s before the end", HOUR_US - 1 * SECOND_US, 'a', 2 * UNIT, NORMAL, GRANTED),
        ASK("at once", HOUR_US, 'b', UNIT, NORMAL, GRANTED),
        TELL("too early: a may be counted here yet", HOUR_US + 1, 'b', N, "50", N, 0),
        IS("it is subtracted", HOUR_US + 1, 100 * UNIT, 3 * UNIT, 49 * UNIT, 48 * UNIT),
        ASK("2 s after the begin", HOUR_US + 2 * SECOND_US, 'c', UNIT, NORMAL, GRANTED),
        TELL("without a remaining", HOUR_US + 2 * SECOND_US, 'c', "100", N, N, 0),
        IS("nothing is let go", HOUR_US + 2 * SECOND_US, 100 * UNIT, 4 * UNIT, 49 * UNIT, 47 * UNIT),
        TELL("with one", HOUR_US + 2 * SECOND_US, 'c', N, "48", N, 0),
        IS("a is let go", HOUR_US + 2 * SECOND_US, 100 * UNIT, 2 * UNIT, 48 * UNIT, 48 * UNIT),
    };
    static const quota_step returned[] = {
        ASK("1 s before the end", HOUR_US - 1 * SECOND_US, 'a', 2 * UNIT, NORMAL, GRANTED),
        ASK("b", HOUR_US, 'b', UNIT, NORMAL, GRANTED),
        ASK("c", HOUR_US, 'c', 5 * UNIT, NORMAL, GRANTED),
        SETTLE("cost less", HOUR_US, 'c', UNIT),
        TELL("with leases carried, what was given back is not added", HOUR_US, 'b', N, "50", N, 0),
        IS("50 - a - c", HOUR_US, 100 * UNIT, 4 * UNIT, 49 * UNIT, 43 * UNIT),
    };
    static const quota_step answered_late[] = {
        ASK("1 s before the end", HOUR_US - 1 * SECOND_US, 'a', 2 * UNIT, NORMAL, GRANTED),
        TELL("answered in the next, with its reset", HOUR_US + 1, 'a', N, "90", "1970-01-01T02:00:00Z", 0),
        IS("still carried", HOUR_US + 1, 100 * UNIT, 2 * UNIT, 8 * UNIT, 90 * UNIT),
        ASK("to a new lease it is answered", HOUR_US + 2, 'b', UNIT, NORMAL, GRANTED),
        TELL("so r has it", HOUR_US + 3, 'b', N, "89", N, 0),
        IS("89", HOUR_US + 3, 100 * UNIT, 3 * UNIT, 8 * UNIT, 89 * UNIT),
    };
    const ration_limit_rule rule = quota_rule(100 * UNIT, RATION_COUNTS_COST, RATION_PERIOD_HOUR, 0);

    (void)state;
    QUOTA_RUN(&rule, steps);
    QUOTA_RUN(&rule, returned);
    QUOTA_RUN(&rule, answered_late);
}

/* The golden trace 429-exhausts. */
static void test_exhausts(void **state)
{
    static const quota_step steps[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        ASK("b", 0, 'b', UNIT, NORMAL, GRANTED),
        TELL("b", 10 * MS, 'b', N, "60", N, 0),
        TELL("a 200 that leaves nothing is out of order", 15 * MS, 'a', N, "0", N, 0),
        IS("so it is ignored", 15 * MS, 100 * UNIT, 2 * UNIT, 39 * UNIT, 59 * UNIT),
        TELL_429("a 429 counts whatever its order", 20 * MS, 'a', N, "0", N),
        IS("nothing remains", 20 * MS, 100 * UNIT, 2 * UNIT, 39 * UNIT, 0),
        ASK("critical too", 21 * MS, 'c', UNIT, CRITICAL, REFUSED(HOUR_US - 21 * MS)),
        ASK("a charge of nothing is granted", 21 * MS, 'c', 0, NORMAL, GRANTED),
        TELL("a later 200 changes nothing", 22 * MS, 'c', N, "50", N, 0),
        ASK("exhausted", 22 * MS, 'd', UNIT, RETRY, REFUSED(HOUR_US - 22 * MS)),
        ASK("to its end", HOUR_US, 'd', UNIT, NORMAL, GRANTED),
    };
    static const quota_step not [] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        TELL_429("with some left", 1, 'a', N, "5", N),
        IS("five", 1, 100 * UNIT, UNIT, 94 * UNIT, 5 * UNIT),
        TELL_429("with a reset that has passed", 2, 'a', N, "0", "0"),
        WINDOW("that window is over", 2, 100 * UNIT, 0, 0, 100 * UNIT, 2, HOUR_US + 2),
        ASK("b", 2 * HOUR_US, 'b', UNIT, NORMAL, GRANTED),
        TELL_429("of a window long past", 2 * HOUR_US, 'a', N, "0", N),
        IS("not this one", 2 * HOUR_US, 100 * UNIT, UNIT, 0, 99 * UNIT),
    };
    const ration_limit_rule rule = hourly(100);

    (void)state;
    QUOTA_RUN(&rule, steps);
    QUOTA_RUN(&rule, not );
}

static void test_learned_max(void **state)
{
    static const quota_step learned[] = {
        ASK("auto refuses nobody for good", 0, 'a', 6 * UNIT, NORMAL, REFUSED(NO_TIME)),
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        TELL("the real one", 1, 'a', "1000", N, N, 0),
        ASK("fits", 2, 'b', 900 * UNIT, NORMAL, GRANTED),
        WINDOW("later windows too", 3 * HOUR_US, 1000 * UNIT, 0, 0, 1000 * UNIT, 3 * HOUR_US, 4 * HOUR_US),
        TELL("of a window long past: its limit counts", 3 * HOUR_US, 'a', "900", "1", N, 0),
        IS("900", 3 * HOUR_US, 900 * UNIT, 0, 0, 900 * UNIT),
    };
    static const quota_step declared[] = {
        ASK("a", 0, 'a', UNIT, NORMAL, GRANTED),
        TELL("less than declared", 1, 'a', "3", N, N, 0),
        ASK("not for good", 2, 'b', 4 * UNIT, NORMAL, REFUSED(NO_TIME)),
        TELL("as declared", 3, 'a', "5", N, N, 0),
        ASK("for good", 4, 'b', 6 * UNIT, NORMAL, TOO_MUCH),
        TELL("fractions", 5, 'a', "2.5", N, N, 0),
        IS("two and a half", 6, 2500000, UNIT, 0, 1500000),
    };
    ration_limit_rule rule = quota_rule(5 * UNIT, RATION_COUNTS_COST, RATION_PERIOD_HOUR, 0);
    lone l;

    (void)state;
    QUOTA_RUN(&rule, declared);
    rule.max_auto = true;
    QUOTA_RUN(&rule, learned);

    lone_init(&l, &rule, 0);
    CHECK(l.limit.kind->is_fresh(&l.counter, ration_time_of(0)));
    quota_run(&l, learned, 3);
    CHECK(!l.limit.kind->is_fresh(&l.counter, ration_time_of(5 * HOUR_US)));
    lone_fini(&l);
}

/*
 * However a provider's resets slide, are cut or stand still, a window's count is not emptied more than twice an hour.
 */
static void test_no_emptying(void **state)
{
    static const char *const resets[] = {"0", "1", "0.0", "1.5", "1970-01-01T00:30:00Z", "30", "1ms", "3599.5"};
    const ration_limit_rule rule = hourly(10);

    (void)state;
    for (size_t i = 0; i < sizeof resets / sizeof resets[0]; i++) {
        int64_t granted = 0;
        lone l;

        CHECK_ROW(resets[i]);
        lone_init(&l, &rule, 0);
        for (int64_t now = 0; now < 10 * HOUR_US; now += 20 * SECOND_US) {
            const quota_step tell = TELL("", now, 'a', NULL, NULL, resets[i], 0);
            const rn_ask ask = {.charge = UNIT};
            const ration_header header = {ration_text_of("X-Reset"), ration_text_of(tell.reset)};
            const ration_response response = {.status = 200, .headers = &header, .header_count = 1};

            if (lone_take(&l, now, &ask, 'a', RATION_UNSET).fit != RN_FIT_NOW)
                continue;
            granted++;
            lone_observe(&l, now, 'a', &response, false);
            lone_end(&l, now, 'a');
        }
        CHECK(granted <= 210); /* 10 in each of 21 half hours */
        lone_fini(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_flight),   cmocka_unit_test(test_order),       cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_settlements), cmocka_unit_test(test_moved_end),   cmocka_unit_test(test_new_window),
        cmocka_unit_test(test_past_reset),  cmocka_unit_test(test_carried),     cmocka_unit_test(test_exhausts),
        cmocka_unit_test(test_learned_max), cmocka_unit_test(test_no_emptying), cmocka_unit_test(test_word_until),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
