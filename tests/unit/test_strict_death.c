/* SPDX-License-Identifier: MIT */
/* What is counted after a process with strict quotas has died: no less than was granted, at most a block more. */
#include "support/strict_steps.h"

static void test_unclean(void **state)
{
    static const step steps[] = {
        DO("one of two", HOUR, ASK, "a x=1", "granted", SOON),
        DO("dies before any save", HOUR, DIE, "", "", NOTHING),
        DO("a block is taken as used, and there is no other", HOUR, ASK, "b x=1", "store_unavailable daily x=1 -",
           SOON),
        STANDS("as said", HOUR, 2 * UNIT, 2 * UNIT, SOON),
        DO("given out", HOUR, KEEP, "", "x=1 2 of 4;", NOTHING),
        DO("dies before it is kept, but it was written", HOUR, DIE, "", "", NOTHING),
        DO("it counts to its mark", HOUR, ASK, "c x=1", "store_unavailable daily x=1 -", SOON),
        STANDS("as said", HOUR, 4 * UNIT, 4 * UNIT, SOON),
        DO("given out", HOUR, KEEP, "", "x=1 4 of 6;", NOTHING),
        DO("kept", HOUR, MADE, "", "", NOTHING),
        DO("one of two", HOUR, ASK, "d x=1", "granted", SOON),
        DO("a clean stop saves it", HOUR, KEEP, "", "x=1 5 of 7;", NOTHING),
        DO("and stops", HOUR, STOP, "", "", NOTHING),
        DO("goes on as it was", HOUR, ASK, "e x=1", "granted", SOON),
        STANDS("up to the mark that is durable", HOUR, 6 * UNIT, 7 * UNIT, SOON),
        DO("dies in the next day", DAY + HOUR, DIE, "", "", NOTHING),
        DO("no record of that", DAY + HOUR, ASK, "f x=1", "store_unavailable daily x=1 -", SOON),
        STANDS("but a block", DAY + HOUR, 2 * UNIT, 2 * UNIT, SOON),
        DO("a day that begins later has not been there before", 2 * DAY, ASK, "g x=1", "granted", SOON),
        STANDS("as said", 2 * DAY, UNIT, 2 * UNIT, SOON),
        DO("dies at the begin of a day", 3 * DAY, DIE, "", "", NOTHING),
        DO("nothing was granted in it", 3 * DAY, ASK, "h x=1", "granted", SOON),
    };
    const ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    run(&limit, 1, STEPS(steps));
}

/* What was given out may or may not have been written when it dies; neither counts too few. */
static void test_unwritten(void **state)
{
    static const step steps[] = {
        DO("one", HOUR, ASK, "a x=1", "granted", SOON),
        DO("given out", HOUR, KEEP, "", "x=1 1 of 3;", NOTHING),
        DO("kept", HOUR, MADE, "", "", NOTHING),
        DO("two", HOUR, ASK, "b x=1", "granted", SOON),
        DO("given out, but not written", HOUR, KEEP, "", "x=1 2 of 4;", NOTHING),
        DO("three", HOUR, ASK, "c x=1", "granted", SOON),
        DO("no more until it is", HOUR, ASK, "d x=1", "store_unavailable daily x=1 -", SOON),
        DO("lost", HOUR, UNWRITTEN, "", "", SOON),
        DO("dies", HOUR, DIE, "", "", NOTHING),
        DO("three it is", HOUR, ASK, "e x=1", "store_unavailable daily x=1 -", SOON),
        STANDS("as said", HOUR, 3 * UNIT, 3 * UNIT, SOON),
    };
    const ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    run(&limit, 1, STEPS(steps));
}

/* A block may have been on its way into the window that has begun meanwhile. */
static void test_in_flight(void **state)
{
    static const step no_record[] = {
        DO("one, just before midnight", DAY - SECOND, ASK, "a x=1", "granted", SOON),
        DO("dies", DAY - SECOND, DIE, "", "", NOTHING),
        DO("asked when it is over, a block may have been under way", DAY, ASK, "b x=1", "store_unavailable daily x=1 -",
           SOON),
        STANDS("and counts", DAY, 2 * UNIT, 2 * UNIT, SOON),
        DO("given out", DAY, KEEP, "", "x=1 0 of 2;", NOTHING),
        DO("kept", DAY, MADE, "", "", NOTHING),
        STANDS("a block beside it", DAY, 2 * UNIT, 4 * UNIT, NOTHING),
    };
    static const step in_time[] = {
        DO("one, long before midnight", DAY - 2 * SECOND, ASK, "a x=1", "granted", SOON),
        DO("dies", DAY - 2 * SECOND, DIE, "", "", NOTHING),
        DO("what was under way has arrived", DAY, ASK, "b x=1", "granted", SOON),
        STANDS("so it counts no more", DAY, UNIT, 2 * UNIT, SOON),
    };
    static const step over[] = {
        DO("one, just before midnight", DAY - SECOND, ASK, "a x=1", "granted", SOON),
        DO("given out", DAY - SECOND, KEEP, "", "x=1 1 of 3;", NOTHING),
        DO("dies", DAY + SECOND, DIE, "", "", NOTHING),
        DO("the one is carried, and a block may have been granted since", DAY + SECOND, ASK, "b x=1",
           "store_unavailable daily x=1 -", SOON),
        STANDS("as said", DAY + SECOND, 3 * UNIT, 3 * UNIT, SOON),
    };
    ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    limit.arrival_us = 2 * SECOND;
    run(&limit, 1, STEPS(no_record));
    run(&limit, 1, STEPS(in_time));
    run(&limit, 1, STEPS(over));
}

/* What is ahead of a record's count was asked for at once, by one who costs more than a block. */
static void test_larger_than_a_block(void **state)
{
    static const step steps[] = {
        DO("waits", HOUR, ASK, "a x=1 cost=5 wait=9", "queued", NOW),
        DO("given out", HOUR, KEEP, "", "x=1 0 of 5;", NOTHING),
        DO("granted", HOUR, MADE, "", "granted a 0;", SOON),
        DO("dies in the next day", DAY + HOUR, DIE, "", "", NOTHING),
        DO("where as much may have been under way", DAY + HOUR, ASK, "b x=1 cost=1", "store_unavailable daily x=1 -",
           SOON),
        STANDS("and counts", DAY + HOUR, 5 * UNIT, 5 * UNIT, SOON),
    };
    ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    limit.counts = RATION_COUNTS_COST;
    run(&limit, 1, STEPS(steps));
}

/* The calendar has changed in between, or the limit was relaxed. */
static void test_other_rules(void **state)
{
    static const struct {
        const char *why;
        int64_t end_us, used, mark;
        bool unclean;
        int64_t count, left_at;
    } rows[] = {
        {"a window that is not over: to the mark", 30 * HOUR, 3 * UNIT, 9 * UNIT, true, 9 * UNIT, 9 * UNIT},
        {"at least a block", 30 * HOUR, UNIT, UNIT, true, 2 * UNIT, 2 * UNIT},
        {"in order: as it was", 30 * HOUR, 3 * UNIT, 5 * UNIT, false, 3 * UNIT, 5 * UNIT},
        {"one that is over: a block", HOUR, 3 * UNIT, 5 * UNIT, true, 2 * UNIT, 2 * UNIT},
        {"in order: nothing", HOUR, 3 * UNIT, 5 * UNIT, false, 0, 2 * UNIT},
        {"a relaxed one has promised nothing", DAY, 3 * UNIT, RATION_UNSET, true, 3 * UNIT, 3 * UNIT},
        {"so nothing is left to it", DAY, 3 * UNIT, RATION_UNSET, false, 3 * UNIT, 3 * UNIT},
        {"but there is a block", DAY, 0, RATION_UNSET, true, 2 * UNIT, 2 * UNIT},
        {"a mark below its count is none", DAY, 3 * UNIT, UNIT, false, 3 * UNIT, 3 * UNIT},
    };
    const ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        begin(0, &limit);
        snprintf(ledger.keys[0], sizeof ledger.keys[0], "x=1");
        ledger.count = 1;
        ledger.records[0] = (ration_record){.type = RATION_RECORD_QUOTA, .at = {HOUR / 2}};
        ledger.records[0].u.quota = (ration_quota_record){
            .window_end = {rows[i].end_us}, .used = rows[i].used, .mark = rows[i].mark, .max = RATION_UNSET};
        die(2 * HOUR, &limit, 1, rows[i].unclean);
        CHECK_STR(checked(2 * HOUR, "1", RATION_CHECK_ENFORCER), "granted");
        CHECK_EQ(report(2 * HOUR).used, rows[i].count);
        CHECK_EQ(report(2 * HOUR).mark, rows[i].left_at);
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

/* Rolling: what may have been granted since the record counts from the begin of the next process. */
static void test_rolling(void **state)
{
    static const step steps[] = {
        DO("one of two", 0, ASK, "a x=1", "granted", SOON),
        DO("given out", 0, KEEP, "", "x=1 1 of 3;", NOTHING),
        DO("dies half an hour later", HOUR / 2, DIE, "", "", NOTHING),
        DO("one and two", HOUR / 2, ASK, "b x=1", "store_unavailable daily x=1 -", SOON),
        STANDS("as said", HOUR / 2, 3 * UNIT, 3 * UNIT, SOON),
        STANDS("the one leaves", HOUR + 2 * MINUTE, 2 * UNIT, 2 * UNIT, SOON),
        STANDS("then the two", HOUR + HOUR / 2 + 2 * MINUTE, 0, 0, SOON),
        DO("dies again, with the first record still", HOUR + HOUR / 2 + 2 * MINUTE, DIE, "", "", NOTHING),
        DO("whose mark is a block ahead", HOUR + HOUR / 2 + 2 * MINUTE, ASK, "c x=1", "store_unavailable daily x=1 -",
           SOON),
        STANDS("as said", HOUR + HOUR / 2 + 2 * MINUTE, 2 * UNIT, 2 * UNIT, SOON),
        DO("another key, of which there is none", HOUR + HOUR / 2 + 2 * MINUTE, CHECKS, "2", "store_unavailable", SOON),
        DO("for an hour and a bucket", 2 * HOUR + 34 * MINUTE - 1, CHECKS, "3", "store_unavailable", SOON),
        DO("a key of which nothing counts any more is new", 2 * HOUR + 34 * MINUTE, CHECKS, "4", "granted", SOON),
    };
    ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    limit.window = (ration_window){.rolling_us = HOUR};
    run(&limit, 1, STEPS(steps));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unclean),     cmocka_unit_test(test_unwritten),
        cmocka_unit_test(test_in_flight),   cmocka_unit_test(test_larger_than_a_block),
        cmocka_unit_test(test_other_rules), cmocka_unit_test(test_rolling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
