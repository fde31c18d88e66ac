/* SPDX-License-Identifier: MIT */
/* Quotas whose grants wait for a durable mark: blocks, saves, who waits, what a death leaves. */
#include "support/check.h"
#include "support/world.h"

#include <inttypes.h>
#include <stdio.h>

#include <ration/state.h>

#include "base/text.h"

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define KEPT_MAX 16

/* The other account's share is a fifth, and both reach every key: of what limits here have, a fifth is usable. */
static world w;

/* The last record of each key that was given out, and whether it is durable: a ledger. */
static struct {
    ration_record records[KEPT_MAX];
    char keys[KEPT_MAX][32];
    ration_part parts[KEPT_MAX][64];
    size_t count;
} ledger;

static const char *const by_x[] = {"var:x"};

static ration_limit_rule strict(int64_t max)
{
    return (ration_limit_rule){.name = "daily",
                               .kind = RATION_KIND_QUOTA,
                               .scope = by_x,
                               .scope_count = 1,
                               .max = max,
                               .window = {.period = RATION_PERIOD_DAY},
                               .durability = RATION_DURABILITY_STRICT,
                               .arrival_us = 0};
}

static void begin_rules(int64_t at_us, const ration_limit_rule *limits, size_t count, bool enforcer)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;
    const ration_engine_options options = {.rules = &rules};

    world_rules(&rules, &provider, accounts, limits, count);
    rules.enforcer = enforcer;
    memset(&w, 0, sizeof w);
    CHECK_EQ(ration_engine_new(&options, ration_time_of(at_us), &w.engine, NULL), RATION_OK);
}

static void keep(void *ctx, const ration_record *record)
{
    size_t i = 0;
    size_t *used = ctx;

    if (record->type != RATION_RECORD_QUOTA)
        return;
    while (i < ledger.count && strncmp(ledger.keys[i], record->key.data, record->key.size) != 0)
        i++;
    CHECK(i < KEPT_MAX && record->key.size < sizeof ledger.keys[0] && record->u.quota.part_count <= 64);
    ledger.count = i == ledger.count ? i + 1 : ledger.count;
    ledger.records[i] = *record;
    snprintf(ledger.keys[i], sizeof ledger.keys[i], "%.*s", (int)record->key.size, record->key.data);
    ledger.records[i].key = ration_text_of(ledger.keys[i]);
    memcpy(ledger.parts[i], record->u.quota.parts, record->u.quota.part_count * sizeof ledger.parts[0][0]);
    ledger.records[i].u.quota.parts = ledger.parts[i];
    ledger.records[i].u.quota.timeline_count = 0;
    *used += (size_t)snprintf(w.text + *used, sizeof w.text - *used, "%s %.6g of %.6g;", ledger.keys[i],
                              (double)record->u.quota.used / (double)UNIT, (double)record->u.quota.mark / (double)UNIT);
}

static const char *save(int64_t at_us, bool all)
{
    size_t used = 0;

    w.text[0] = '\0';
    CHECK_EQ(ration_engine_save(w.engine, ration_time_of(at_us), all, &used, keep), RATION_OK);
    return w.text;
}

static const char *kept(int64_t at_us)
{
    CHECK_EQ(ration_engine_kept(w.engine, ration_time_of(at_us)), RATION_OK);
    return world_events(&w);
}

static void found(void *ctx, const ration_counter_report *report)
{
    ration_counter_report *out = ctx;

    if (report->kind == RATION_KIND_QUOTA && rn_text_is(report->key, "x=1"))
        *out = *report;
}

static ration_counter_report report(int64_t at_us)
{
    ration_counter_report out = {0};
    const ration_reporter reporter = {.ctx = &out, .counter = found};

    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(at_us), RATION_REPORT_LIMITS, &reporter), RATION_OK);
    return out;
}

/* The process dies and another one begins with what the ledger has. */
static void die(int64_t at_us, const ration_limit_rule *limits, size_t count, bool unclean)
{
    const ration_state state = {.records = ledger.records, .count = ledger.count, .unclean = unclean};
    size_t unknown = 9;

    world_fini(&w);
    begin_rules(at_us, limits, count, false);
    CHECK_EQ(ration_engine_load(w.engine, ration_time_of(at_us), &state, &unknown), RATION_OK);
    CHECK_EQ(unknown, 0);
}

static void begin(int64_t at_us, const ration_limit_rule *limit)
{
    memset(&ledger, 0, sizeof ledger);
    begin_rules(at_us, limit, 1, false);
}

/* ---- steps ---- */

typedef enum op { ASK = 0, CHECKS, KEEP, KEEP_ALL, MADE, END, HEAR, USED, MARK, DIE, STOP } op;

/* A request, the id of a lease, or nothing; `units` is what END settles. */
typedef struct step {
    const char *why;
    int64_t at_us;
    op op;
    const char *what;
    int64_t units;
    const char *want;   /* the answer; of MADE and HEAR the events; of KEEP what is given out */
    ration_need need;   /* after it */
    int64_t used, mark; /* of USED */
} step;

static ration_decision checked(int64_t at_us, const char *x)
{
    const ration_var var = {ration_text_of("x"), ration_text_of(x)};
    ration_request r = RATION_REQUEST_INIT;
    ration_decision d;

    r.account = ration_text_of("acc");
    r.vars = &var;
    r.var_count = 1;
    CHECK_EQ(ration_engine_check(w.engine, ration_time_of(at_us), &r, RATION_CHECK_ACQUIRE, &d), RATION_OK);
    return d;
}

static const char *step_do(const step *s, const ration_limit_rule *limits, size_t count)
{
    switch (s->op) {
    case ASK:
        return world_ask(&w, s->at_us, s->what);
    case CHECKS: {
        const ration_decision d = checked(s->at_us, s->what);

        return d.result == RATION_GRANTED ? "granted" : ration_reason_name(d.reason);
    }
    case KEEP:
        return save(s->at_us, false);
    case KEEP_ALL:
        return save(s->at_us, true);
    case MADE:
        return kept(s->at_us);
    case END:
        return world_release(&w, s->at_us, s->what, RATION_OUTCOME_SUCCESS,
                             s->units == RATION_UNSET ? RATION_UNSET : s->units);
    case HEAR:
        world_advance(&w, s->at_us);
        return world_events(&w);
    case USED:
        CHECK_EQ(report(s->at_us).used, s->used);
        CHECK_EQ(report(s->at_us).mark, s->mark);
        return s->want;
    case MARK:
        CHECK(report(s->at_us).strict);
        CHECK_EQ(report(s->at_us).mark, s->mark);
        return s->want;
    case DIE:
        die(s->at_us, limits, count, true);
        return s->want;
    case STOP:
        die(s->at_us, limits, count, false);
        return s->want;
    }
    return NULL;
}

static void run(const ration_limit_rule *limits, size_t count, const step *steps, size_t step_count)
{
    memset(&ledger, 0, sizeof ledger);
    begin_rules(steps[0].at_us, limits, count, false);
    for (size_t i = 0; i < step_count; i++) {
        CHECK_ROW(steps[i].why);
        CHECK_STR(step_do(&steps[i], limits, count), steps[i].want);
        CHECK_EQ(ration_engine_need(w.engine), steps[i].need);
    }
    CHECK_ROW(NULL);
    world_fini(&w);
}

#define STEPS(a) (a), sizeof(a) / sizeof((a)[0])
#define NOTHING RATION_NEED_NOTHING
#define SOON RATION_NEED_SAVE
#define NOW RATION_NEED_SAVE_NOW
#define DO(why, at, op, what, want, need)                                                                              \
    {                                                                                                                  \
        why, at, op, what, RATION_UNSET, want, need, 0, 0                                                              \
    }
#define SETTLE(why, at, what, units, need)                                                                             \
    {                                                                                                                  \
        why, at, END, what, units, "released", need, 0, 0                                                              \
    }
#define STANDS(why, at, used, mark, need)                                                                              \
    {                                                                                                                  \
        why, at, USED, "", 0, "", need, used, mark                                                                     \
    }

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
        DO("what no window holds is not", 4, ASK, "e x=1 cost=41", "cost_exceeds_limit daily x=1 -", NOTHING),
        DO("nor what this one does not", 4, ASK, "f x=1 cost=31", "quota_exhausted daily x=1 86399999996us", NOTHING),
    };
    ration_limit_rule limit = strict(200 * UNIT);

    (void)state;
    limit.counts = RATION_COUNTS_COST;
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
        DO("given out", 3, KEEP, "", "x=1 7 of 9;", NOTHING),
        DO("still nobody", 3, ASK, "c x=1 cost=1", "store_unavailable daily x=1 -", NOTHING),
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

/* ---- death ---- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_size_of_a_block),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_new_window_lets_go),
        cmocka_unit_test(test_larger_than_a_block),
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_nothing_costs_nothing),
        cmocka_unit_test(test_settlements),
        cmocka_unit_test(test_the_lower_of_two_marks),
        cmocka_unit_test(test_unclean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
