/* SPDX-License-Identifier: MIT */
/* Arrays, of which only what has changed is written; windows that follow one another, and what is over. */
#include "support/ledger_stage.h"

static void check_loaded(const ration_quota_record *got, const ration_quota_record *want)
{
    CHECK_EQ(got->window_start.us, want->window_start.us);
    CHECK_EQ(got->used, want->used);
    check_parts(got->parts, got->part_count, want->parts, want->part_count);
    check_parts(got->timeline, got->timeline_count, want->timeline, want->timeline_count);
}

static void arrays_are_written_by_what_changed(void **state)
{
    static const struct {
        const char *why;
        steps to;
        uint64_t rows; /* written, beside the quota's own, for each of both arrays */
    } table[] = {
        {"all are new", {3, {P(1, 1), P(2, 2), P(3, 3)}}, 3},
        {"nothing has changed", {3, {P(1, 1), P(2, 2), P(3, 3)}}, 0},
        {"the newest grows", {3, {P(1, 1), P(2, 2), P(3, 4)}}, 1},
        {"the newest ends later: one leaves, one comes", {3, {P(1, 1), P(2, 2), P(4, 4)}}, 2},
        {"one more", {4, {P(1, 1), P(2, 2), P(4, 4), P(5, 1)}}, 1},
        {"the oldest leaves", {3, {P(2, 2), P(4, 4), P(5, 1)}}, 1},
        {"one in the middle was settled", {3, {P(2, 2), P(4, 3), P(5, 1)}}, 1},
        {"one in the middle has gone to nothing", {2, {P(2, 2), P(5, 1)}}, 1},
        {"one has come before all", {3, {P(0, 9), P(2, 2), P(5, 1)}}, 1},
        {"all have left", {0, {P(0, 0)}}, 3},
        {"and come again", {2, {P(7, 1), P(8, 0)}}, 2},
    };
    ledger_stage s;
    uint64_t rows = 0;

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const ration_record record = with_parts(&table[i].to, &table[i].to);
        rn_ledger_status status;

        CHECK_ROW(table[i].why);
        ledger_put(&s, record);
        ledger_flush(&s);
        rn_ledger_look(s.ledger, &status);
        CHECK_EQ(status.rows - rows, 1 + 2 * table[i].rows);
        rows = status.rows;
        CHECK_EQ(count_of(&s, "SELECT count(*) FROM quota_parts"), table[i].to.count);
        if (i % 2 == 0) { /* the next one knows what is stored as well */
            ledger_kill(&s);
            ledger_open(&s);
            rows = 0;

            const ration_state loaded = ledger_load(&s);

            CHECK_EQ(loaded.count, 1);
            check_loaded(&loaded.records[0].u.quota, &record.u.quota);
        }
    }
    ledger_stage_end(&s);
}

static void a_new_window_takes_the_place_of_the_old_one(void **state)
{
    static const steps before = {2, {P(1, 1), P(2, 2)}};
    static const steps after = {1, {P(60 * 24 + 1, 3)}};
    ration_record record = with_parts(&before, &before);
    ledger_stage s;

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    ledger_put(&s, record);
    ledger_flush(&s);
    record = with_parts(&after, &after);
    record.u.quota.window_start.us += DAY_US;
    record.u.quota.window_end.us += DAY_US;
    record.at.us = MORNING_US + DAY_US + 1 * MINUTE_US;
    ledger_put(&s, record);
    ledger_flush(&s);
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM quotas"), 1);
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM quota_parts"), 1);
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM quota_timeline"), 1);
    ledger_kill(&s);
    ledger_open(&s);

    ration_state loaded;

    CHECK_EQ(rn_ledger_load(s.ledger, record.at, &loaded, &s.error), RATION_OK);
    CHECK_EQ(loaded.count, 1);
    check_loaded(&loaded.records[0].u.quota, &record.u.quota);
    ledger_stage_end(&s);
}

/* ---- what is over ---- */

static ration_record quota_until(const char *key, int64_t start_us, int64_t end_us)
{
    ration_record record = a_quota(key, 1);

    record.u.quota.window_start.us = start_us;
    record.u.quota.window_end.us = end_us;
    return record;
}

static ration_record penalty_until(const char *key, int64_t until_us)
{
    return (ration_record){
        .type = RATION_RECORD_PENALTY,
        .provider = ration_text_of("p"),
        .key = ration_text_of(key),
        .at = at_us(NOON_US - 30 * DAY_US),
        .u.penalty = {at_us(NOON_US - 30 * DAY_US), at_us(until_us), 0, 1},
    };
}

static void what_is_over_goes(void **state)
{
    static const steps none = {0, {P(0, 0)}};
    ration_record rolling = with_parts(&none, &none);
    ledger_stage s;

    (void)state;
    rolling.u.quota.window_start.us = rolling.u.quota.window_end.us = 0;
    rolling.u.quota.rolling_us = HOUR_US;

    ration_record old_rolling = rolling;

    rolling.key = ration_text_of("rolling, of use");
    rolling.at.us = NOON_US - 3 * HOUR_US + 1;
    old_rolling.key = ration_text_of("rolling, over");
    old_rolling.at.us = NOON_US - 3 * HOUR_US;

    const ration_record table[] = {
        quota_until("now", NOON_US - HOUR_US, NOON_US + HOUR_US),
        quota_until("the window before", NOON_US - HOUR_US - HOUR_US + 1, NOON_US - HOUR_US + 1),
        quota_until("over", NOON_US - 2 * HOUR_US, NOON_US - HOUR_US),
        rolling,
        old_rolling,
        penalty_until("penalty, of yesterday", NOON_US - DAY_US + 1),
        penalty_until("penalty, over", NOON_US - DAY_US),
    };
    enum { COUNT = sizeof table / sizeof table[0], OVER = 3 };

    ledger_stage_begin(&s);
    ledger_open(&s);
    for (size_t i = 0; i < COUNT; i++)
        ledger_put(&s, table[i]);
    /* An hour before, all were of use. */
    CHECK_EQ(rn_ledger_flush_now(s.ledger, at_us(NOON_US - 2 * HOUR_US)), RATION_OK);
    CHECK_EQ(count_of(&s, "SELECT (SELECT count(*) FROM quotas) + (SELECT count(*) FROM penalties)"), COUNT);
    ledger_kill(&s);
    ledger_open(&s);

    const ration_state loaded = ledger_load(&s);

    CHECK_EQ(loaded.count, COUNT - OVER);
    for (size_t i = 0; i < COUNT; i++) {
        const bool over = strstr(table[i].key.data, "over") != NULL;

        CHECK_ROW(table[i].key.data);
        CHECK((place_of(&loaded, table[i].key.data) == SIZE_MAX) == over);
    }
    CHECK_ROW(NULL);
    ledger_flush(&s);
    CHECK_EQ(count_of(&s, "SELECT (SELECT count(*) FROM quotas) + (SELECT count(*) FROM penalties)"), COUNT - OVER);

    /* What is put again comes back. */
    ledger_put(&s, quota_until("over", NOON_US - HOUR_US, NOON_US + HOUR_US));
    ledger_flush(&s);
    ledger_kill(&s);
    ledger_open(&s);

    const ration_state again = ledger_load(&s);

    CHECK_EQ(again.count, COUNT - OVER + 1);
    ledger_stage_end(&s);
}

static void a_clock_that_was_set_back(void **state)
{
    static const steps parts = {4, {P(1, 1), P(719, 2), P(720, 3), P(721, 4)}};
    ration_record record = with_parts(&parts, &parts);
    ration_record adaptive = {
        .type = RATION_RECORD_ADAPTIVE,
        .provider = ration_text_of("p"),
        .limit = ration_text_of("l"),
        .key = ration_text_of("k"),
        .u.adaptive = {5, {1}, true, true, {2}, {3}, 4, 5},
    };
    ledger_stage s;

    (void)state;
    record.at.us = NOON_US + HOUR_US;
    adaptive.at.us = NOON_US + HOUR_US;
    adaptive.u.adaptive.grown_at.us = adaptive.u.adaptive.throttled_at.us = NOON_US + 1;
    ledger_stage_begin(&s);
    ledger_open(&s);
    ledger_put(&s, record);
    ledger_put(&s, adaptive);
    ledger_flush(&s);
    ledger_close(&s);
    ledger_open(&s);

    const ration_state loaded = ledger_load(&s);
    static const steps want = {3, {P(1, 1), P(719, 2), P(720, 7)}};

    CHECK_EQ(loaded.count, 2);
    CHECK_EQ(loaded.records[0].at.us, NOON_US);
    check_parts(loaded.records[0].u.quota.parts, loaded.records[0].u.quota.part_count, want.parts, want.count);
    check_parts(loaded.records[0].u.quota.timeline, loaded.records[0].u.quota.timeline_count, want.parts, want.count);
    CHECK_EQ(loaded.records[1].at.us, NOON_US);
    CHECK_EQ(loaded.records[1].u.adaptive.grown_at.us, NOON_US);
    CHECK_EQ(loaded.records[1].u.adaptive.throttled_at.us, NOON_US);
    CHECK_EQ(loaded.records[1].u.adaptive.decreased_at.us, 3);
    ledger_stage_end(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_written_by_what_changed),
        cmocka_unit_test(a_new_window_takes_the_place_of_the_old_one),
        cmocka_unit_test(what_is_over_goes),
        cmocka_unit_test(a_clock_that_was_set_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
