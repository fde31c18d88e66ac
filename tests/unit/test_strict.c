/* SPDX-License-Identifier: MIT */
/* Quotas whose grants wait for a durable mark: blocks, saves, who waits. `test_strict_death`: what a death leaves. */
#include "support/strict_steps.h"

/* ---- what waits ---- */

/* 200 a day: a block is 2. */
static void test_blocks(void **state)
{
    static const step steps[] = {
        DO("a fresh window has a block", 0, ASK, "a x=1", "granted", SOON),
        STANDS("two is its mark", 0, UNIT, 2 * UNIT, SOON),
        DO("its second half", 0, ASK, "b x=1", "granted", SOON),
        DO("beyond it nobody who may not wait", 0, ASK, "c x=1", "store_unavailable daily x=1 -", SOON),
        DO("a check says the same", 0, CHECKS, "1", "store_unavailable", SOON),
        DO("another key has its own", 0, CHECKS, "2", "granted", SOON),
        DO("who may wait does", 1, ASK, "d x=1 wait=10", "queued", NOW),
        DO("given out is not kept", 2, KEEP, "", "x=1 2 of 4;", NOTHING),
        DO("so nobody goes", 3, HEAR, "", "", NOTHING),
        DO("kept", 4, MADE, "", "granted d 0;", SOON),
        STANDS("and the mark is four", 4, 3 * UNIT, 4 * UNIT, SOON),
        DO("up to it", 5, ASK, "e x=1", "granted", SOON),
        DO("no further", 5, ASK, "f x=1", "store_unavailable daily x=1 -", SOON),
        DO("what has changed", 6, KEEP, "", "x=1 4 of 6;", NOTHING),
        DO("is kept", 6, MADE, "", "", NOTHING),
        DO("kept twice changes nothing", 6, MADE, "", "", NOTHING),
        STANDS("the mark is six", 6, 4 * UNIT, 6 * UNIT, NOTHING),
        DO("saved again though nothing has changed", 7, KEEP_ALL, "", "x=1 4 of 6;x=2 0 of 2;", NOTHING),
        DO("a new day has a block of its own", DAY, ASK, "g x=1", "granted", SOON),
        DO("all of it", DAY, ASK, "h x=1", "granted", SOON),
        DO("what was given out of the day before is none of its", DAY, MADE, "", "", SOON),
        DO("so it waits", DAY, ASK, "i x=1", "store_unavailable daily x=1 -", SOON),
        DO("everything is given out once", DAY, KEEP_ALL, "", "x=1 2 of 4;x=2 0 of 2;", NOTHING),
    };
    const ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    run(&limit, 1, STEPS(steps));
}

static void test_size_of_a_block(void **state)
{
    static const struct {
        const char *why;
        int64_t max;
        ration_counts counts;
        int64_t block;
    } rows[] = {
        {"1 %", 500 * UNIT, RATION_COUNTS_REQUESTS, 5 * UNIT},
        {"rounded up to whole units", 501 * UNIT, RATION_COUNTS_REQUESTS, 6 * UNIT},
        {"cost to micro-units", 501 * UNIT, RATION_COUNTS_COST, 5010000},
        {"rounded up", 500 * UNIT + 1, RATION_COUNTS_COST, 5 * UNIT + 1},
        {"at least one unit", 99 * UNIT, RATION_COUNTS_REQUESTS, UNIT},
        {"of cost too", 99 * UNIT, RATION_COUNTS_COST, UNIT},
        {"even where there is less", UNIT / 2, RATION_COUNTS_COST, UNIT},
        {"the largest", RATION_UNITS_MAX, RATION_COUNTS_COST, (RATION_UNITS_MAX + 99) / 100},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_limit_rule limit = strict(rows[i].max);

        CHECK_ROW(rows[i].why);
        limit.counts = rows[i].counts;
        begin(0, &limit);
        CHECK_STR(world_ask(&w, 0, rows[i].max < UNIT ? "a x=1 cost=0" : "a x=1"), "granted");
        CHECK_EQ(report(0).mark, rows[i].block);
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

static void test_deadline(void **state)
{
    static const step steps[] = {
        DO("all of the block", 0, ASK, "a x=1", "granted", SOON),
        DO("waits", 0, ASK, "b x=1 wait=50", "queued", NOW),
        DO("behind it", 0, ASK, "c x=1 wait=100", "queued", NOW),
        DO("not yet", 49999, HEAR, "", "", NOW),
        DO("its deadline names the ledger", 50000, HEAR, "", "refused b store_unavailable daily 50;", NOW),
        DO("and the next", 100000, HEAR, "", "refused c store_unavailable daily 100;", SOON),
        DO("a save then", 100000, KEEP, "", "x=1 1 of 2;", NOTHING),
        DO("is for the next", 100001, MADE, "", "", NOTHING),
        DO("one", 100001, ASK, "d x=1", "granted", SOON),
    };
    const ration_limit_rule limit = strict(100 * UNIT);

    (void)state;
    run(&limit, 1, STEPS(steps));
}

/* Time alone does not help, but a new window does. */
static void test_new_window_lets_go(void **state)
{
    static const step steps[] = {
        DO("all of the block", DAY - SECOND, ASK, "a x=1", "granted", SOON),
        DO("waits", DAY - SECOND, ASK, "b x=1 wait=5000", "queued", NOW),
        DO("and another", DAY - SECOND, ASK, "c x=1 wait=5000", "queued", NOW),
        DO("a new day, a new block", DAY, HEAR, "", "granted b 1000;", NOW),
        DO("given out", DAY, KEEP, "", "x=1 1 of 2;", NOTHING),
        DO("kept", DAY, MADE, "", "granted c 1000;", SOON),
    };
    const ration_limit_rule limit = strict(100 * UNIT);

    (void)state;
    run(&limit, 1, STEPS(steps));
}

/* Costs larger than a block of 2: the next mark goes as far as the one who waits, or was refused. */
static void test_larger_than_a_block(void **state)
{
    static const step steps[] = {
        DO("waits", 0, ASK, "a x=1 cost=5 wait=100", "queued", NOW),
        DO("behind it, though it would fit", 0, ASK, "b x=1 cost=1 wait=100", "queued", NOW),
        DO("nor may one pass who does not wait", 0, ASK, "z x=1 cost=1", "store_unavailable daily x=1 -", NOW),
        DO("the mark is for the first", 0, KEEP, "", "x=1 0 of 5;", NOTHING),
        DO("kept", 1, MADE, "", "granted a 0;", NOW),
        DO("again", 1, KEEP, "", "x=1 5 of 7;", NOTHING),
        DO("kept", 2, MADE, "", "granted b 0;", SOON),
        DO("who may not wait is refused", 3, ASK, "c x=1 cost=4", "store_unavailable daily x=1 -", SOON),
        DO("but remembered", 3, KEEP, "", "x=1 6 of 10;", NOTHING),
        DO("kept", 3, MADE, "", "", NOTHING),
        DO("so the next time it is there", 4, ASK, "d x=1 cost=4", "granted", SOON),
        DO("once", 4, KEEP, "", "x=1 10 of 12;", NOTHING),
        DO("more than that", 4, ASK, "g x=1 cost=5", "store_unavailable daily x=1 -", SOON),
        DO("is given out", 4, KEEP, "", "x=1 10 of 15;", NOTHING),
        DO("but not kept", 4, ASK, "h x=1 cost=5", "store_unavailable daily x=1 -", NOTHING),
        DO("kept", 4, MADE, "", "", NOTHING),
        DO("there", 4, ASK, "i x=1 cost=5", "granted", SOON),
        DO("who asked in between wants no more", 4, KEEP, "", "x=1 15 of 17;", NOTHING),
        DO("what no window holds is not", 4, ASK, "e x=1 cost=41", "cost_exceeds_limit daily x=1 -", NOTHING),
        DO("nor what this one does not", 4, ASK, "f x=1 cost=26", "quota_exhausted daily x=1 86399999996us", NOTHING),
    };
    ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    limit.counts = RATION_COUNTS_COST;
    run(&limit, 1, STEPS(steps));
}

/* Those ahead may wait for the quota itself. */
static void test_behind_the_window(void **state)
{
    static const step steps[] = {
        DO("nearly all", 0, ASK, "a x=1 cost=39 wait=9", "queued", NOW),
        DO("given out", 0, KEEP, "", "x=1 0 of 39;", NOTHING),
        DO("kept", 0, MADE, "", "granted a 0;", SOON),
        DO("given out", 0, KEEP, "", "x=1 39 of 41;", NOTHING),
        DO("kept", 0, MADE, "", "", NOTHING),
        DO("more than is there waits for the day's end", 0, ASK, "b x=1 cost=2 wait=90000000", "queued", NOTHING),
        DO("and one behind it for that", 0, ASK, "c x=1 cost=1", "quota_exhausted daily x=1 -", NOTHING),
        DO("at its end both could go", DAY, HEAR, "", "granted b 86400000;", SOON),
    };
    ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    limit.counts = RATION_COUNTS_COST;
    limit.when_exhausted = RATION_EXHAUSTED_WAIT;
    run(&limit, 1, STEPS(steps));
}

static void test_priorities(void **state)
{
    static const step steps[] = {
        DO("a critical one", 0, ASK, "a x=1 priority=critical", "granted", SOON),
        DO("waits as others do", 0, ASK, "b x=1 priority=critical", "store_unavailable daily x=1 -", SOON),
        DO("a retry too", 0, ASK, "c x=1 retry=1", "store_unavailable daily x=1 -", SOON),
        DO("one waits", 0, ASK, "d x=1 wait=10", "queued", NOW),
        DO("a critical one before it", 0, ASK, "e x=1 wait=10 priority=critical", "queued", NOW),
        DO("given out", 0, KEEP, "", "x=1 1 of 2;", NOTHING),
        DO("goes first", 0, MADE, "", "granted e 0;", NOW),
    };
    const ration_limit_rule limit = strict(100 * UNIT);

    (void)state;
    run(&limit, 1, STEPS(steps));
}

static void test_nothing_costs_nothing(void **state)
{
    static const step steps[] = {
        DO("more than the block", 0, ASK, "a x=1 cost=1", "granted", SOON),
        SETTLE("as it turns out", 0, "a", 3 * UNIT, NOW),
        DO("nothing needs no mark", 0, ASK, "b x=1 cost=0", "granted", NOW),
        DO("something does", 0, ASK, "c x=1 cost=1", "store_unavailable daily x=1 -", NOW),
    };
    ration_limit_rule limit = strict(100 * UNIT);

    (void)state;
    limit.counts = RATION_COUNTS_COST;
    run(&limit, 1, STEPS(steps));
}

/* ---- settlements ---- */

static void test_settlements(void **state)
{
    static const step steps[] = {
        DO("two of two", 0, ASK, "a x=1 cost=2", "granted", SOON),
        SETTLE("one comes back", 1, "a", UNIT, SOON),
        DO("and is there again", 1, ASK, "b x=1 cost=1", "granted", SOON),
        SETTLE("five more than the mark allows", 2, "b", 6 * UNIT, NOW),
        STANDS("it counts at once", 2, 7 * UNIT, 2 * UNIT, NOW),
        DO("nobody is granted", 2, ASK, "c x=1 cost=1", "store_unavailable daily x=1 -", NOW),
        DO("given out, which nobody may be told", 3, KEEP, "", "x=1 7 of 9;", NOW),
        DO("still nobody", 3, ASK, "c x=1 cost=1", "store_unavailable daily x=1 -", NOW),
        DO("kept", 4, MADE, "", "", NOTHING),
        DO("now", 4, ASK, "c x=1 cost=2", "granted", SOON),
        DO("given out", 5, KEEP, "", "x=1 9 of 11;", NOTHING),
        SETTLE("past the mark that was given out", 6, "c", 5 * UNIT, NOW),
        DO("kept, but not far enough", 7, MADE, "", "", NOW),
        STANDS("the mark is eleven", 7, 12 * UNIT, 11 * UNIT, NOW),
    };
    ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    limit.counts = RATION_COUNTS_COST;
    run(&limit, 1, STEPS(steps));
}

/* Until it is kept, either of two records may be the one that is found: no grant goes past the lower mark. */
static void test_the_lower_of_two_marks(void **state)
{
    static const step steps[] = {
        DO("up to the block", 0, ASK, "a x=1 cost=2", "granted", SOON),
        DO("given out", 0, KEEP, "", "x=1 2 of 4;", NOTHING),
        DO("kept", 0, MADE, "", "", NOTHING),
        DO("to four", 0, ASK, "b x=1 cost=2", "granted", SOON),
        SETTLE("all but one comes back", 1, "b", 0, NOTHING),
        SETTLE("and of the other", 1, "a", UNIT, NOTHING),
        STANDS("the mark is still four", 1, UNIT, 4 * UNIT, NOTHING),
        DO("one that is lower is given out", 1, KEEP, "", "x=1 1 of 3;", NOTHING),
        STANDS("it may be the one that is found", 1, UNIT, 3 * UNIT, NOTHING),
        DO("three more are too many", 1, ASK, "c x=1 cost=3", "store_unavailable daily x=1 -", SOON),
        DO("two are not", 1, ASK, "d x=1 cost=2", "granted", SOON),
    };
    ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    limit.counts = RATION_COUNTS_COST;
    run(&limit, 1, STEPS(steps));
}

/* ---- windows ---- */

/* A rolling hour; buckets of a minute. Its own passing gives back what is used, but no room to the mark. */
static void test_rolling(void **state)
{
    static const step steps[] = {
        DO("a block", 0, ASK, "a x=1 cost=2", "granted", SOON),
        DO("no more", 0, ASK, "b x=1 cost=1 wait=7200000", "queued", NOW),
        DO("not when all has left", 2 * HOUR - MINUTE, HEAR, "", "", NOW),
        STANDS("though nothing is used", 2 * HOUR - MINUTE, 0, 0, NOW),
        DO("given out", 2 * HOUR - MINUTE, KEEP, "", "x=1 0 of 2;", NOTHING),
        DO("kept", 2 * HOUR - MINUTE, MADE, "", "granted b 7140000;", SOON),
        DO("to the mark", 2 * HOUR - MINUTE, ASK, "c x=1 cost=1", "granted", SOON),
        SETTLE("what comes back is no room", 2 * HOUR - MINUTE, "c", 0, SOON),
        STANDS("as said", 2 * HOUR - MINUTE, UNIT, UNIT, SOON),
        DO("given out", 2 * HOUR, KEEP, "", "x=1 1 of 3;", NOTHING),
        DO("kept", 2 * HOUR, MADE, "", "", NOTHING),
        DO("one", 2 * HOUR, ASK, "d x=1 cost=1", "granted", SOON),
        STANDS("the mark is three", 2 * HOUR, 2 * UNIT, 3 * UNIT, SOON),
        STANDS("and two when b has left", 3 * HOUR + MINUTE, UNIT, 2 * UNIT, SOON),
    };
    ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    limit.counts = RATION_COUNTS_COST;
    limit.window = (ration_window){.rolling_us = HOUR};
    run(&limit, 1, STEPS(steps));
}

static ration_limit_rule told(int64_t max)
{
    ration_limit_rule limit = strict(max);

    limit.sync = (ration_sync){"x-limit", "x-left", "x-reset", RATION_RESET_EPOCH, false};
    return limit;
}

/* A header that begins a window: what is known of it is nothing that is durable, but a block. */
static void test_header_begins_a_window(void **state)
{
    static const step steps[] = {
        DO("two", HOUR, ASK, "a x=1", "granted", SOON),
        DO("", HOUR, ASK, "b x=1", "granted", SOON),
        DO("given out", HOUR, KEEP, "", "x=1 2 of 4;", NOTHING),
        DO("kept", HOUR, MADE, "", "", NOTHING),
        DO("one more", 3 * HOUR, ASK, "c x=1", "granted", SOON),
        DO("given out", 3 * HOUR, KEEP, "", "x=1 3 of 5;", NOTHING),
        DO("a window began at two", 3 * HOUR, TELL, "c x-reset 7200", "observed", SOON),
        STANDS("in which one is used, of a block", 3 * HOUR, UNIT, 2 * UNIT, SOON),
        DO("what is kept is the other's", 3 * HOUR, MADE, "", "", SOON),
        STANDS("so the mark is what it was", 3 * HOUR, UNIT, 2 * UNIT, SOON),
        DO("one more", 3 * HOUR, ASK, "d x=1", "granted", SOON),
        DO("and no other", 3 * HOUR, ASK, "e x=1", "store_unavailable daily x=1 -", SOON),
        DO("given out", 3 * HOUR, KEEP, "", "x=1 2 of 4;", NOTHING),
        DO("kept", 3 * HOUR, MADE, "", "", NOTHING),
        DO("goes on", 3 * HOUR, ASK, "f x=1", "granted", SOON),
    };
    const ration_limit_rule limit = told(200 * UNIT);

    (void)state;
    run(&limit, 1, STEPS(steps));
}

/* An end that only moves changes no mark; a waiter is let go when it comes. */
static void test_header_moves_the_end(void **state)
{
    static const step steps[] = {
        DO("a block", HOUR, ASK, "a x=1", "granted", SOON),
        DO("a waiter", HOUR, ASK, "b x=1 wait=86400000", "queued", NOW),
        DO("the end is at two", HOUR, TELL, "a x-reset 7200", "observed", NOW),
        STANDS("the mark stands", HOUR, UNIT, UNIT, NOW),
        DO("a new window", 2 * HOUR, HEAR, "", "granted b 3600000;", SOON),
    };
    const ration_limit_rule limit = told(100 * UNIT);

    (void)state;
    run(&limit, 1, STEPS(steps));
}

/* What may count in two windows counts against the second one's block. */
static void test_carried(void **state)
{
    static const step steps[] = {
        DO("three, late", MINUTE - SECOND, ASK, "a x=1", "granted", SOON),
        DO("", MINUTE - SECOND, ASK, "b x=1", "granted", SOON),
        DO("", MINUTE - SECOND, KEEP, "", "x=1 2 of 4;", NOTHING),
        DO("", MINUTE - SECOND, MADE, "", "", NOTHING),
        DO("", MINUTE - SECOND, ASK, "c x=1", "granted", SOON),
        STANDS("all may count in the next", MINUTE, 3 * UNIT, 2 * UNIT, SOON),
        DO("which is more than its block", MINUTE, ASK, "d x=1", "store_unavailable daily x=1 -", NOW),
        DO("given out", MINUTE, KEEP, "", "x=1 0 of 2;", NOW),
        DO("kept", MINUTE, MADE, "", "", NOTHING),
        DO("a block beyond them", MINUTE, ASK, "e x=1", "granted", SOON),
        STANDS("as said", MINUTE, 4 * UNIT, 5 * UNIT, SOON),
    };
    ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    limit.window.period = RATION_PERIOD_MINUTE;
    limit.arrival_us = 2 * SECOND;
    run(&limit, 1, STEPS(steps));
}

/* A block is of the maximum as it is known; a window that no record is of has one of the declared. */
static void test_learned_maximum(void **state)
{
    static const step steps[] = {
        DO("one", HOUR, ASK, "a x=1", "granted", SOON),
        DO("a thousand are there", HOUR, TELL, "a x-limit 1000", "observed", SOON),
        STANDS("no mark moves by that", HOUR, UNIT, 2 * UNIT, SOON),
        DO("given out", HOUR, KEEP, "", "x=1 1 of 11;", NOTHING),
        DO("kept", HOUR, MADE, "", "", NOTHING),
        STANDS("ten more", HOUR, UNIT, 11 * UNIT, NOTHING),
        DO("two fewer", HOUR, ASK, "b x=1", "granted", NOTHING),
        DO("a new day begins as the first did", DAY, ASK, "c x=1", "granted", SOON),
        STANDS("as said", DAY, UNIT, 2 * UNIT, SOON),
        DO("given out", DAY, KEEP, "", "x=1 1 of 11;", NOTHING),
    };
    const ration_limit_rule limit = told(200 * UNIT);

    (void)state;
    run(&limit, 1, STEPS(steps));
}

/* ---- whom it does not bind ---- */

/* Nobody waits for a limit that only watches, and a provider needs no marks. */
static void test_nothing_waits(void **state)
{
    static const struct {
        const char *why;
        ration_enforce enforce;
        bool enforcer;
    } rows[] = {
        {"a shadow", RATION_ENFORCE_SHADOW, false},
        {"the enforcer", RATION_ENFORCE_ON, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_limit_rule limit = strict(100 * UNIT);

        CHECK_ROW(rows[i].why);
        limit.enforce = rows[i].enforce;
        begin_rules(0, &limit, 1, rows[i].enforcer);
        CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
        CHECK_STR(world_ask(&w, 0, "b x=1"), "granted");
        CHECK(!report(0).strict);
        CHECK_EQ(report(0).mark, 0);
        CHECK_EQ(report(0).shadowed, 0);
        CHECK_EQ(ration_engine_need(w.engine), NOTHING);
        /* Nothing waits for a save, so nothing keeps of itself. */
        CHECK_EQ(ration_engine_save(w.engine, ration_time_of(0), true, NULL, keep), RATION_ERR_INVALID);
        CHECK_EQ(ration_engine_kept(w.engine, ration_time_of(0)), RATION_OK);
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

static void test_what_the_provider_would_say(void **state)
{
    static const step steps[] = {
        DO("a block", 0, ASK, "a x=1", "granted", SOON),
        DO("we wait", 0, CHECKS, "1", "store_unavailable", SOON),
        DO("it would not", 0, CHECKS_ENFORCER, "1", "granted", SOON),
    };
    const ration_limit_rule limit = strict(100 * UNIT);

    (void)state;
    run(&limit, 1, STEPS(steps));
}

/* A 429 is as unexpected as ever: that no mark is written says nothing of the provider. */
static void test_unexpected_429(void **state)
{
    const ration_limit_rule limit = strict(100 * UNIT);
    ration_totals totals;

    (void)state;
    begin(0, &limit);
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, "x", "y"), "observed");
    ration_engine_totals(w.engine, &totals);
    CHECK_EQ(totals.unexpected_429, 1);
    world_fini(&w);
}

/* ---- who is asked to save ---- */

static void test_need(void **state)
{
    static const step steps[] = {
        DO("one of four", 0, ASK, "a x=1", "granted", NOTHING),
        DO("half", 0, ASK, "b x=1", "granted", SOON),
        DO("another key does not change that", 0, ASK, "c x=2", "granted", SOON),
        DO("both are given out", 0, KEEP, "", "x=1 2 of 6;x=2 1 of 5;", NOTHING),
        DO("half of what was given out, of one", 0, ASK, "d x=1", "granted", NOTHING),
        DO("is not there yet, for it is not kept", 0, ASK, "e x=1", "granted", SOON),
        DO("so this waits", 0, ASK, "f x=1 wait=9", "queued", SOON),
        DO("kept", 0, MADE, "", "granted f 0;", SOON),
        DO("one waits for another limit's end", 0, ASK, "g x=1", "granted", SOON),
        DO("one waits", 0, ASK, "h x=1 wait=9", "queued", NOW),
        DO("and leaves", 0, LEAVE, "h", "cancelled", SOON),
    };
    const ration_limit_rule limit = strict(400 * UNIT);

    (void)state;
    run(&limit, 1, STEPS(steps));
}

static void test_two_limits(void **state)
{
    static const char *const by_account[] = {"account"};
    ration_limit_rule limits[] = {strict(200 * UNIT), strict(100 * UNIT)};
    size_t used = 0;

    (void)state;
    limits[0].name = "hourly";
    limits[0].window.period = RATION_PERIOD_HOUR;
    limits[1].scope = by_account;
    begin_rules(0, limits, 2, false);
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b x=1"), "store_unavailable daily acc -");
    CHECK_EQ(report(0).used, UNIT); /* a refusal spends nothing at the other */
    CHECK_STR(world_ask(&w, 0, "c x=1 wait=9"), "queued");
    CHECK_EQ(ration_engine_need(w.engine), NOW);
    CHECK_EQ(ration_engine_save(w.engine, ration_time_of(0), false, &used, keep), RATION_OK);
    CHECK_EQ(ration_engine_need(w.engine), NOTHING);
    CHECK_STR(kept(0), "granted c 0;");
    world_fini(&w);
}

/* A counter is not forgotten while what it has given out is not kept. */
static void test_forgotten(void **state)
{
    static const step steps[] = {
        DO("the only key", 0, ASK, "a x=1", "granted", SOON),
        SETTLE("which ends as it began", 0, "a", 0, NOTHING),
        DO("has not been saved", 0, ASK, "b x=2", "too_many_keys daily - -", NOTHING),
        DO("given out", 0, KEEP, "", "x=1 0 of 1;", NOTHING),
        DO("not kept", 0, ASK, "b x=2", "too_many_keys daily - -", NOTHING),
        DO("kept", 0, MADE, "", "", NOTHING),
        DO("now it makes room", 0, ASK, "b x=2", "granted", SOON),
        SETTLE("this one too", 0, "b", 0, NOTHING),
        DO("given out", 0, KEEP, "", "x=2 0 of 1;", NOTHING),
        DO("a new day does not change that", DAY, ASK, "c x=3", "too_many_keys daily - -", NOTHING),
        DO("kept", DAY, MADE, "", "", NOTHING),
        DO("now", DAY, ASK, "c x=3", "granted", SOON),
    };
    ration_limit_rule limit = strict(100 * UNIT);

    (void)state;
    limit.counts = RATION_COUNTS_COST;
    limit.max_keys = 1;
    run(&limit, 1, STEPS(steps));
}

/* ---- errors ---- */

static void test_bad_arguments(void **state)
{
    const ration_limit_rule limit = strict(100 * UNIT);

    (void)state;
    begin(0, &limit);
    CHECK_EQ(ration_engine_kept(NULL, ration_time_of(0)), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_kept(w.engine, ration_time_of(RATION_NEVER_US)), RATION_ERR_INVALID);
    CHECK_EQ(ration_engine_need(NULL), NOTHING);
    world_fini(&w);
}

/* A save that finds no memory gives nothing out. */
static void test_without_memory(void **state)
{
    const ration_limit_rule limit = strict(100 * UNIT);
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;
    failalloc memory;
    size_t used = 0;

    (void)state;
    failalloc_init(&memory, UINT64_MAX);
    world_rules(&rules, &provider, accounts, &limit, 1);
    CHECK_EQ(world_init_rules(&w, &rules, &memory.allocator), RATION_OK);
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b x=1 wait=9"), "queued");
    memory.countdown = 0;
    CHECK_EQ(ration_engine_save(w.engine, ration_time_of(0), false, &used, keep), RATION_ERR_NOMEM);
    CHECK_EQ(used, 0);
    CHECK_EQ(ration_engine_need(w.engine), NOW);
    CHECK_STR(kept(0), "");
    memory.countdown = UINT64_MAX;
    CHECK_STR(save(0, false), "x=1 1 of 2;");
    memory.countdown = 0;
    CHECK_STR(kept(0), "granted b 0;");
    world_fini(&w);
    CHECK_EQ(memory.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_size_of_a_block),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_new_window_lets_go),
        cmocka_unit_test(test_larger_than_a_block),
        cmocka_unit_test(test_behind_the_window),
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_nothing_costs_nothing),
        cmocka_unit_test(test_settlements),
        cmocka_unit_test(test_the_lower_of_two_marks),
        cmocka_unit_test(test_rolling),
        cmocka_unit_test(test_header_begins_a_window),
        cmocka_unit_test(test_header_moves_the_end),
        cmocka_unit_test(test_carried),
        cmocka_unit_test(test_learned_maximum),
        cmocka_unit_test(test_nothing_waits),
        cmocka_unit_test(test_what_the_provider_would_say),
        cmocka_unit_test(test_unexpected_429),
        cmocka_unit_test(test_need),
        cmocka_unit_test(test_two_limits),
        cmocka_unit_test(test_forgotten),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
