/* SPDX-License-Identifier: MIT */
/* What is put, flushed and loaded again: every member of every record, runs, and what a flight does to puts. */
#include "support/ledger_stage.h"

static bool texts_equal(ration_text a, ration_text b)
{
    if (a.data == NULL || b.data == NULL)
        return a.data == b.data;
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static void check_quota(const ration_quota_record *got, const ration_quota_record *want)
{
    CHECK_EQ(got->window_start.us, want->window_start.us);
    CHECK_EQ(got->window_end.us, want->window_end.us);
    CHECK_EQ(got->rolling_us, want->rolling_us);
    CHECK_EQ(got->offset_us, want->offset_us);
    CHECK_EQ(got->used, want->used);
    CHECK_EQ(got->carried, want->carried);
    CHECK_EQ(got->in_flight, want->in_flight);
    CHECK_EQ(got->has_remaining, want->has_remaining);
    CHECK_EQ(got->remaining, want->remaining);
    CHECK_EQ(got->remaining_until.us, want->remaining_until.us);
    CHECK_EQ(got->max, want->max);
    CHECK_EQ(got->external, want->external);
    CHECK_EQ(got->exhausted, want->exhausted);
    CHECK_EQ(got->exhausted_until.us, want->exhausted_until.us);
    CHECK_EQ(got->dipped, want->dipped);
    CHECK_EQ(got->dipped_at.us, want->dipped_at.us);
    CHECK_EQ(got->moved, want->moved);
    CHECK_EQ(got->moved_at.us, want->moved_at.us);
    CHECK_EQ(got->mark, want->mark);
    check_parts(got->parts, got->part_count, want->parts, want->part_count);
    check_parts(got->timeline, got->timeline_count, want->timeline, want->timeline_count);
}

static void check_record(const ration_record *got, const ration_record *want)
{
    CHECK(texts_equal(got->provider, want->provider));
    CHECK(texts_equal(got->limit, want->limit));
    CHECK(texts_equal(got->key, want->key));
    CHECK_EQ(got->at.us, want->at.us);
    CHECK_EQ(got->type, want->type);
    switch (want->type) {
    case RATION_RECORD_QUOTA:
        check_quota(&got->u.quota, &want->u.quota);
        break;
    case RATION_RECORD_BUCKET:
        CHECK_EQ(got->u.available, want->u.available);
        break;
    case RATION_RECORD_ADAPTIVE:
        CHECK_EQ(got->u.adaptive.limit, want->u.adaptive.limit);
        CHECK_EQ(got->u.adaptive.grown_at.us, want->u.adaptive.grown_at.us);
        CHECK_EQ(got->u.adaptive.throttled, want->u.adaptive.throttled);
        CHECK_EQ(got->u.adaptive.decreased, want->u.adaptive.decreased);
        CHECK_EQ(got->u.adaptive.throttled_at.us, want->u.adaptive.throttled_at.us);
        CHECK_EQ(got->u.adaptive.decreased_at.us, want->u.adaptive.decreased_at.us);
        CHECK_EQ(got->u.adaptive.stride, want->u.adaptive.stride);
        CHECK_EQ(got->u.adaptive.climb_to, want->u.adaptive.climb_to);
        break;
    case RATION_RECORD_PENALTY:
        CHECK_EQ(got->u.penalty.began.us, want->u.penalty.began.us);
        CHECK_EQ(got->u.penalty.until.us, want->u.penalty.until.us);
        CHECK_EQ(got->u.penalty.doublings, want->u.penalty.doublings);
        CHECK_EQ(got->u.penalty.events, want->u.penalty.events);
        break;
    case RATION_RECORD_BREAKER:
        CHECK_EQ(got->u.breaker.state, want->u.breaker.state);
        CHECK_EQ((int64_t)got->u.breaker.generation, (int64_t)want->u.breaker.generation);
        CHECK_EQ(got->u.breaker.until.us, want->u.breaker.until.us);
        CHECK_EQ(got->u.breaker.delay_us, want->u.breaker.delay_us);
        break;
    case RATION_RECORD_PAUSE:
        CHECK_EQ(got->u.paused, want->u.paused);
        break;
    }
}

static const ration_part some_parts[] = {
    {{NOON_US - 3 * HOUR_US}, 5000000}, {{NOON_US - HOUR_US}, 1}, {{NOON_US}, RATION_UNITS_MAX}};
static const ration_part some_timeline[] = {{{MORNING_US - HOUR_US}, 7}, {{NOON_US - 1}, 0}};

#define TEXT(s)                                                                                                        \
    {                                                                                                                  \
        (s), sizeof(s) - 1                                                                                             \
    }

static const struct {
    const char *why;
    ration_record record;
} records[] = {
    {"a quota with every member",
     {.type = RATION_RECORD_QUOTA,
      .provider = TEXT("p"),
      .limit = TEXT("l"),
      .key = TEXT("/user=a%2Fb"),
      .at = {NOON_US},
      .u.quota = {.window_start = {MORNING_US},
                  .window_end = {MORNING_US + DAY_US},
                  .offset_us = -5,
                  .used = RATION_UNITS_MAX,
                  .carried = 2,
                  .in_flight = 3,
                  .has_remaining = true,
                  .remaining = -4,
                  .remaining_until = {NOON_US + 5},
                  .max = 6,
                  .external = 7,
                  .exhausted = true,
                  .exhausted_until = {NOON_US + 8},
                  .dipped = true,
                  .dipped_at = {NOON_US + 9},
                  .moved = true,
                  .moved_at = {NOON_US + 10},
                  .mark = 11,
                  .parts = some_parts,
                  .part_count = 3,
                  .timeline = some_timeline,
                  .timeline_count = 2}}},
    {"a quota with none",
     {.type = RATION_RECORD_QUOTA,
      .provider = TEXT("p"),
      .limit = TEXT("l"),
      .key = TEXT(""),
      .at = {NOON_US},
      .u.quota = {.window_start = {MORNING_US},
                  .window_end = {MORNING_US + DAY_US},
                  .remaining_until = {RATION_NEVER_US},
                  .max = RATION_UNSET,
                  .exhausted_until = {RATION_NEVER_US},
                  .mark = RATION_UNSET}}},
    {"a rolling one, dipped at no known time",
     {.type = RATION_RECORD_QUOTA,
      .provider = TEXT("p"),
      .limit = TEXT("l2"),
      .key = TEXT("\xff\x00\x80 '\"\n"),
      .at = {NOON_US},
      .u.quota = {.rolling_us = HOUR_US,
                  .dipped = true,
                  .dipped_at = {RATION_NEVER_US},
                  .remaining_until = {RATION_NEVER_US},
                  .max = 1,
                  .exhausted_until = {RATION_NEVER_US},
                  .mark = 0,
                  .parts = some_parts + 2,
                  .part_count = 1}}},
    {"the same names, of another type",
     {.type = RATION_RECORD_BUCKET,
      .provider = TEXT("p"),
      .limit = TEXT("l"),
      .key = TEXT(""),
      .at = {0},
      .u.available = -RATION_UNITS_MAX}},
    {"an adaptive limit",
     {.type = RATION_RECORD_ADAPTIVE,
      .provider = TEXT("p"),
      .limit = TEXT("l"),
      .key = TEXT("k"),
      .at = {NOON_US},
      .u.adaptive = {RATION_UNITS_MAX, {1}, true, true, {2}, {3}, 4, 5}}},
    {"one that was never throttled",
     {.type = RATION_RECORD_ADAPTIVE,
      .provider = TEXT(""),
      .limit = TEXT("l"),
      .key = TEXT("k"),
      .at = {NOON_US},
      .u.adaptive = {1, {NOON_US}, false, false, {0}, {0}, 0, 0}}},
    {"a penalty of a limit",
     {.type = RATION_RECORD_PENALTY,
      .provider = TEXT("p"),
      .limit = TEXT("l"),
      .key = TEXT("main"),
      .at = {NOON_US},
      .u.penalty = {{NOON_US - 1}, {NOON_US + 1}, UINT32_MAX, 7}}},
    {"a penalty of an account of that name",
     {.type = RATION_RECORD_PENALTY,
      .provider = TEXT("p"),
      .key = TEXT("main"),
      .at = {NOON_US},
      .u.penalty = {{NOON_US - 2}, {NOON_US + 2}, 0, UINT32_MAX}}},
    {"an open circuit",
     {.type = RATION_RECORD_BREAKER,
      .provider = TEXT("p"),
      .key = TEXT("main"),
      .at = {NOON_US},
      .u.breaker = {RATION_BREAKER_OPEN, UINT64_MAX / 2 - 1, {NOON_US + 5}, RATION_TIME_MAX_US}}},
    {"a half-open one",
     {.type = RATION_RECORD_BREAKER,
      .provider = TEXT("q"),
      .key = TEXT("main"),
      .at = {NOON_US},
      .u.breaker = {RATION_BREAKER_HALF_OPEN, 0, {RATION_NEVER_US}, 0}}},
    {"a pause",
     {.type = RATION_RECORD_PAUSE,
      .provider = TEXT("p"),
      .limit = TEXT("l"),
      .key = TEXT("a"),
      .at = {NOON_US},
      .u.paused = true}},
    {"a pause that is over",
     {.type = RATION_RECORD_PAUSE, .provider = TEXT("p"), .limit = TEXT("l"), .key = TEXT("b"), .at = {NOON_US}}},
};
enum { RECORDS = sizeof records / sizeof records[0] };

static const ration_record *find(const ration_state *state, const ration_record *like)
{
    for (size_t i = 0; i < state->count; i++) {
        const ration_record *r = &state->records[i];

        if (r->type == like->type && texts_equal(r->provider, like->provider) && texts_equal(r->limit, like->limit) &&
            texts_equal(r->key, like->key))
            return r;
    }
    return NULL;
}

static void all_comes_back_as_it_was(void **state)
{
    ledger_stage s;

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    for (size_t i = 0; i < RECORDS; i++)
        ledger_put(&s, records[i].record);
    CHECK_EQ(ledger_flush_off(&s), RATION_OK);
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM quotas WHERE remaining_until IS NULL AND exhausted_until IS NULL"), 2);
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM quotas WHERE mark IS NULL AND observed_max IS NULL"), 1);
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM quotas WHERE dipped_at IS NULL AND observed_remaining IS NULL"), 1);
    ledger_close(&s);
    for (int again = 0; again < 2; again++) {
        ledger_open(&s);

        /* The bucket of 1970 is of no use at noon. */
        ration_state loaded;

        CHECK_EQ(rn_ledger_load(s.ledger, at_us(NOON_US), &loaded, &s.error), RATION_OK);
        CHECK_EQ(loaded.count, RECORDS - 1);
        CHECK(!loaded.unclean);
        for (size_t i = 0; i < RECORDS; i++) {
            const ration_record *got = find(&loaded, &records[i].record);

            CHECK_ROW(records[i].why);
            if (records[i].record.at.us == 0) {
                CHECK(got == NULL);
                continue;
            }
            CHECK(got != NULL);
            check_record(got, &records[i].record);
        }
        ledger_close(&s);
    }
    ledger_stage_end(&s);
}

/* Whole numbers at the ends of int64 are numbers of rows too. */
static void a_put_replaces(void **state)
{
    ledger_stage s;

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    ledger_put(&s, a_quota("k", 1));
    ledger_put(&s, a_quota("k", 2));
    ledger_flush(&s);
    ledger_put(&s, a_quota("k", 3));
    ledger_put(&s, a_quota("other", 9));
    ledger_flush(&s);
    ledger_kill(&s);
    ledger_open(&s);

    const ration_state loaded = ledger_load(&s);

    CHECK_EQ(loaded.count, 2);
    CHECK(loaded.unclean);
    CHECK_EQ(used_of(&loaded, "k"), 3);
    ledger_put(&s, a_quota("k", 4));
    ledger_flush(&s);
    ledger_close(&s);
    ledger_open(&s);

    const ration_state again = ledger_load(&s);

    CHECK_EQ(again.count, 2);
    CHECK_EQ(used_of(&again, "k"), 4);
    ledger_stage_end(&s);
}

/* ---- runs ---- */

static void put_run(ledger_stage *s, const char *job, int64_t i)
{
    const rn_ledger_run run = {ration_text_of(job), at_us(NOON_US + i), {i, i + 1, i + 2}};

    CHECK_EQ(rn_ledger_put_run(s->ledger, &run), RATION_OK);
}

static void check_runs(ledger_stage *s, int64_t first, int64_t last)
{
    const rn_ledger_run *runs = NULL;
    size_t count = 0;

    CHECK_EQ(rn_ledger_load_runs(s->ledger, &runs, &count, &s->error), RATION_OK);
    CHECK_EQ(count, 1 + (size_t)(last - first + 1));
    CHECK_TEXT(runs[0].job, "a");
    CHECK_EQ(runs[0].run.fan_out, 3);
    for (int64_t i = first; i <= last; i++) {
        const rn_ledger_run *run = &runs[1 + i - first];

        CHECK_TEXT(run->job, "sync");
        CHECK_EQ(run->at.us, NOON_US + i);
        CHECK_EQ(run->run.requests, i);
        CHECK_EQ(run->run.retries, i + 1);
        CHECK_EQ(run->run.fan_out, i + 2);
    }
}

static void of_each_job_the_last_runs_are_kept(void **state)
{
    ledger_stage s;
    int64_t i = 0;

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    for (; i < 7; i++)
        put_run(&s, "sync", i);
    put_run(&s, "a", 1);
    ledger_flush(&s);
    ledger_close(&s);
    ledger_open(&s);
    check_runs(&s, 0, 6);
    for (; i < RATION_RUNS_MAX; i++)
        put_run(&s, "sync", i);
    ledger_flush(&s);
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM runs"), 1 + RATION_RUNS_MAX);
    ledger_kill(&s);
    ledger_open(&s);
    check_runs(&s, 0, RATION_RUNS_MAX - 1);
    for (int k = 0; k < 50; k++) { /* more at once than are kept, between some that are flushed */
        put_run(&s, "sync", i++);
        if (k % 23 == 0)
            ledger_flush(&s);
    }
    ledger_flush(&s);
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM runs"), 1 + RATION_RUNS_MAX);
    ledger_kill(&s);
    ledger_open(&s);
    check_runs(&s, i - RATION_RUNS_MAX, i - 1);
    ledger_stage_end(&s);
}

/* ---- flights ---- */

static void puts_during_a_flight_are_of_the_next(void **state)
{
    ledger_stage s;
    rn_ledger_status status;

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    ledger_put(&s, a_quota("k", 1));
    CHECK_EQ(rn_ledger_flush(s.ledger, s.loop, at_us(NOON_US), ledger_done, &s), RATION_OK);
    CHECK_EQ(rn_ledger_flush(s.ledger, s.loop, at_us(NOON_US), ledger_done, &s), RATION_ERR_INVALID);
    ledger_put(&s, a_quota("k", 2));
    ledger_put(&s, a_quota("k", 3));
    ledger_put(&s, a_quota("new", 4));
    rn_ledger_look(s.ledger, &status);
    CHECK(status.flushing);
    CHECK_EQ(status.pending, 3);
    rn_loop_run(s.loop);
    CHECK_EQ(s.done, 1);
    CHECK_EQ(s.done_err, RATION_OK);
    rn_ledger_look(s.ledger, &status);
    CHECK(!status.flushing);
    CHECK_EQ(status.pending, 2);
    CHECK_EQ(status.flushes, 1);
    CHECK_EQ(status.rows, 1);
    CHECK_EQ(status.flushed_at.us, NOON_US);
    CHECK_EQ(count_of(&s, "SELECT used FROM quotas"), 1);
    CHECK_EQ(ledger_flush_off(&s), RATION_OK);
    CHECK_EQ(count_of(&s, "SELECT sum(used) FROM quotas"), 7);
    ledger_stage_end(&s);
}

static void flush_now_waits_for_the_flight(void **state)
{
    ledger_stage s;

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    for (int64_t i = 0; i < 20; i++) {
        ledger_put(&s, a_quota("k", 2 * i));
        CHECK_EQ(rn_ledger_flush(s.ledger, s.loop, at_us(NOON_US), ledger_done, &s), RATION_OK);
        ledger_put(&s, a_quota("k", 2 * i + 1));
        ledger_flush(&s);
        CHECK_EQ(count_of(&s, "SELECT used FROM quotas"), 2 * i + 1);
        if (i % 2 == 0)
            rn_loop_run(s.loop);
    }
    ledger_put(&s, a_quota("k", 100));
    CHECK_EQ(rn_ledger_flush(s.ledger, s.loop, at_us(NOON_US), ledger_done, &s), RATION_OK);
    ledger_close(&s);
    CHECK_EQ(s.done, 0);
    CHECK_EQ(count_of(&s, "SELECT used FROM quotas"), 100);
    rn_loop_run(s.loop);
    CHECK_EQ(s.done, 0);
    ledger_stage_end(&s);
}

static void open_at(ledger_stage *s, int64_t now_us)
{
    const rn_ledger_options options = {.path = s->path, .now = at_us(now_us)};

    CHECK_EQ(rn_ledger_open(&options, &s->ledger, &s->error), RATION_OK);
}

/* Each start: how the one before it ended, and what it is told of that. */
static void clean_and_unclean(void **state)
{
    enum { CLOSED, KILLED, NOT_FLUSHED };
    static const struct {
        const char *why;
        bool unclean;
        int64_t unclean_at_us; /* of an earlier process */
        int ends;
    } starts[] = {
        {"the first", false, 0, KILLED},
        {"after a kill", true, 0, CLOSED},
        {"one after that", false, NOON_US + 1, CLOSED},
        {"and one more", false, NOON_US + 1, NOT_FLUSHED},
        {"after a stop that left something unwritten", true, NOON_US + 1, KILLED},
        {"after the next kill", true, NOON_US + 4, CLOSED},
        {"in order again", false, NOON_US + 5, CLOSED},
    };
    ledger_stage s;
    rn_ledger_status status;
    char salt[32];

    (void)state;
    ledger_stage_begin(&s);
    for (int64_t i = 0; i < (int64_t)(sizeof starts / sizeof starts[0]); i++) {
        CHECK_ROW(starts[i].why);
        open_at(&s, NOON_US + i);
        rn_ledger_look(s.ledger, &status);
        CHECK_EQ(status.unclean, starts[i].unclean);
        CHECK_STR(status.path, s.path);
        CHECK_EQ(status.flushed_at.us, RATION_NEVER_US);

        ration_state loaded;

        CHECK_EQ(rn_ledger_load(s.ledger, at_us(NOON_US + i), &loaded, &s.error), RATION_OK);
        CHECK_EQ(loaded.unclean, starts[i].unclean);
        CHECK_EQ(loaded.unclean_at.us, starts[i].unclean_at_us);
        CHECK_EQ(loaded.count, 0);
        CHECK_EQ(rn_ledger_load(s.ledger, at_us(NOON_US), &loaded, &s.error), RATION_OK);
        CHECK(loaded.unclean_at.us <= NOON_US); /* the clock was set back */

        CHECK_EQ(rn_ledger_salt(s.ledger).size, sizeof salt);
        if (i == 0)
            memcpy(salt, rn_ledger_salt(s.ledger).data, sizeof salt);
        CHECK(memcmp(salt, rn_ledger_salt(s.ledger).data, sizeof salt) == 0);
        if (starts[i].ends == NOT_FLUSHED)
            ledger_put(&s, a_quota("k", 1));
        if (starts[i].ends == KILLED) {
            ledger_kill(&s);
        } else {
            ledger_close(&s);
        }
    }
    ledger_stage_end(&s);
}

static void without_a_ledger_nothing_is_kept(void **state)
{
    const rn_ledger_options options = {.now = at_us(NOON_US)};
    ledger_stage s;
    rn_ledger_status status;
    const rn_ledger_run *runs;
    size_t count = 1;

    (void)state;
    ledger_stage_begin(&s);
    CHECK_EQ(rn_ledger_open(&options, &s.ledger, &s.error), RATION_OK);
    ledger_put(&s, a_quota("k", 1));
    put_run(&s, "sync", 1);
    CHECK_EQ(ledger_flush_off(&s), RATION_OK);
    ledger_flush(&s);
    CHECK_EQ(ledger_load(&s).count, 0);
    CHECK(!ledger_load(&s).unclean);
    CHECK_EQ(rn_ledger_load_runs(s.ledger, &runs, &count, &s.error), RATION_OK);
    CHECK_EQ(count, 0);
    rn_ledger_look(s.ledger, &status);
    CHECK(status.path == NULL);
    CHECK_EQ(status.pending, 0);
    CHECK(rn_ledger_aside(s.ledger) == NULL);

    rn_ledger *other = NULL;

    CHECK_EQ(rn_ledger_open(&options, &other, &s.error), RATION_OK);
    CHECK(memcmp(rn_ledger_salt(other).data, rn_ledger_salt(s.ledger).data, 32) != 0);
    rn_ledger_abandon(other);
    rn_ledger_abandon(NULL);
    rn_ledger_close(NULL, at_us(0));
    ledger_stage_end(&s);
}

/* ---- what is not taken ---- */

static ration_record spoiled(int which)
{
    static const ration_part twice[] = {{{NOON_US}, 1}, {{NOON_US}, 2}};
    static const char huge[70000];
    ration_record record = a_quota("k", 1);

    switch (which) {
    case 0:
        record.u.quota.used = -1;
        break;
    case 1:
        record.limit = (ration_text){NULL, 0};
        break;
    case 2:
        record.limit.size = 0;
        break;
    case 3:
        record.key = (ration_text){NULL, 0};
        break;
    case 4:
        record.at.us = INT64_MIN;
        break;
    case 5:
        record.u.quota.timeline = twice;
        record.u.quota.timeline_count = 2;
        break;
    case 6:
        record = a_bucket("k", INT64_MAX);
        break;
    case 7:
        record.key = (ration_text){huge, sizeof huge};
        break;
    default:
        record = records[8].record;
        record.limit = ration_text_of("l");
        break;
    }
    return record;
}

static void what_a_load_would_refuse_is_not_taken(void **state)
{
    ledger_stage s;
    rn_ledger_status status;
    static char long_key[60000];
    static const rn_ledger_run bad_runs[] = {
        {{NULL, 0}, {0}, {0, 0, 0}}, {{"j", 1}, {-1}, {0, 0, 0}},        {{"j", 1}, {INT64_MAX}, {0, 0, 0}},
        {{"j", 1}, {0}, {-1, 0, 0}}, {{"j", 1}, {0}, {0, INT64_MIN, 0}}, {{"j", 1}, {0}, {0, 0, -1}},
    };

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    ledger_put(&s, a_quota("k", 1));
    for (int i = 0; i <= 8; i++) {
        const ration_record record = spoiled(i);

        CHECK_EQ(rn_ledger_put(s.ledger, &record), i == 7 ? RATION_ERR_RANGE : RATION_ERR_INVALID);
    }
    for (size_t i = 0; i < sizeof bad_runs / sizeof bad_runs[0]; i++)
        CHECK_EQ(rn_ledger_put_run(s.ledger, &bad_runs[i]), RATION_ERR_INVALID);
    rn_ledger_look(s.ledger, &status);
    CHECK_EQ(status.pending, 1);

    /* The longest goes in, and comes back. */
    memset(long_key, 'x', sizeof long_key - 1);
    ledger_put(&s, a_quota(long_key, 5));
    ledger_put(&s, a_bucket(long_key, 6));
    put_run(&s, long_key, INT64_C(1) << 52);
    ledger_flush(&s);
    ledger_close(&s);
    ledger_open(&s);

    const ration_state loaded = ledger_load(&s);

    CHECK_EQ(loaded.count, 3);
    CHECK_EQ(used_of(&loaded, long_key), 5);
    ledger_stage_end(&s);
}

/* 20 000 quotas with their arrays, 80 000 rows; in the order of their keys, so that none is mistaken for another. */
static void many(void **state)
{
    enum { COUNT = 20000 };
    ledger_stage s;
    char key[32];

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    for (int64_t i = 0; i < COUNT; i++) {
        const steps parts = {3, {P(i % 7, i), P(7 + i % 11, 2 * i), P(20, 1)}};
        ration_record record = with_parts(&parts, &parts);

        (void)snprintf(key, sizeof key, "/user=%07d", (int)i);
        record.key = ration_text_of(key);
        record.u.quota.used = i;
        record.u.quota.timeline_count = i % 2 == 0 ? 0 : 1;
        ledger_put(&s, record);
    }
    CHECK_EQ(ledger_flush_off(&s), RATION_OK);
    ledger_kill(&s);
    ledger_open(&s);

    const ration_state loaded = ledger_load(&s);

    CHECK_EQ(loaded.count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        const ration_quota_record *q = &loaded.records[i].u.quota;

        CHECK_EQ(q->used, i);
        CHECK_EQ(q->part_count, 3);
        CHECK_EQ(q->parts[0].units, i);
        CHECK_EQ(q->parts[1].units, 2 * i);
        CHECK_EQ(q->timeline_count, i % 2);
    }
    ledger_stage_end(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_comes_back_as_it_was),
        cmocka_unit_test(a_put_replaces),
        cmocka_unit_test(of_each_job_the_last_runs_are_kept),
        cmocka_unit_test(puts_during_a_flight_are_of_the_next),
        cmocka_unit_test(flush_now_waits_for_the_flight),
        cmocka_unit_test(clean_and_unclean),
        cmocka_unit_test(without_a_ledger_nothing_is_kept),
        cmocka_unit_test(what_a_load_would_refuse_is_not_taken),
        cmocka_unit_test(many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
