/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"
#include "support/world.h"

#include <stdio.h>

#include <ration/state.h>

#define MS(n) ((int64_t)(n)*1000)
#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)

static world w;

static const char *const by_account[] = {"account"};
static const char *const by_x[] = {"var:x"};

static const ration_limit_rule limits[] = {
    {.name = "rate",
     .kind = RATION_KIND_RATE,
     .scope = by_account,
     .scope_count = 1,
     .rate = {UNIT, 60 * SECOND},
     .burst = 10 * UNIT,
     .margin = RATION_UNSET},
    {.name = "daily",
     .kind = RATION_KIND_QUOTA,
     .scope = by_x,
     .scope_count = 1,
     .max = 50 * UNIT,
     .window = {.period = RATION_PERIOD_DAY},
     .arrival_us = RATION_UNSET},
    {.name = "l", .kind = RATION_KIND_ADAPTIVE, .scope = by_x, .scope_count = 1, .adaptive = {.initial_limit = 4}},
};

static void begin_at(int64_t at_us, const ration_limit_rule *rules_of, size_t count, ration_breaker_rule breaker)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;
    const ration_engine_options options = {.rules = &rules, .keeps = true};

    world_rules(&rules, &provider, accounts, rules_of, count);
    provider.breaker = breaker;
    memset(&w, 0, sizeof w);
    CHECK_EQ(ration_engine_new(&options, ration_time_of(at_us), &w.engine, NULL), RATION_OK);
}

static void begin(int64_t at_us)
{
    begin_at(at_us, limits, 3, (ration_breaker_rule){.strategy = RATION_BREAKER_NONE});
}

static int load(int64_t at_us, const ration_record *records, size_t count, bool unclean, size_t *unknown)
{
    const ration_state state = {.records = records, .count = count, .unclean = unclean};

    return ration_engine_load(w.engine, ration_time_of(at_us), &state, unknown);
}

static ration_record of_limit(ration_record_type type, const char *limit, const char *key, int64_t at_us)
{
    return (ration_record){.type = type,
                           .provider = ration_text_of("p"),
                           .limit = ration_text_of(limit),
                           .key = ration_text_of(key),
                           .at = {at_us}};
}

static ration_record quota_used(int64_t used, int64_t at_us)
{
    ration_record record = of_limit(RATION_RECORD_QUOTA, "daily", "x=1", at_us);

    record.u.quota = (ration_quota_record){.window_end = {24 * HOUR}, .used = used * UNIT, .max = RATION_UNSET};
    return record;
}

/* ---- what is given out ---- */

static char told[1024];

static void tell(void *ctx, const ration_record *r)
{
    size_t *used = ctx;

    *used += (size_t)snprintf(told + *used, sizeof told - *used, "%d %.*s %.*s;", (int)r->type, (int)r->limit.size,
                              r->limit.data != NULL ? r->limit.data : "", (int)r->key.size, r->key.data);
}

static const char *save(int64_t at_us, bool all)
{
    size_t used = 0;

    told[0] = '\0';
    CHECK_EQ(ration_engine_save(w.engine, ration_time_of(at_us), all, &used, tell), RATION_OK);
    return told;
}

static void only_what_has_changed_is_given_out(void **state)
{
    const ration_breaker_rule breaker = {.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 1};

    (void)state;
    begin_at(0, limits, 3, breaker);
    CHECK_STR(save(0, true), "");
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(save(0, false), "1 rate acc;0 daily x=1;2 l x=1;");
    CHECK_STR(save(0, false), "");
    CHECK_STR(world_ask(&w, 1, "b"), "granted");
    CHECK_STR(save(1, false), "1 rate acc;");
    CHECK_STR(world_observe(&w, 2, "b", 429, "Retry-After", "60"), "observed");
    CHECK_STR(save(2, false), "1 rate acc;3 rate acc;"); /* the penalty of its narrowest scope */
    CHECK_STR(world_release(&w, 3, "a", RATION_OUTCOME_FAILURE, RATION_UNSET), "released");
    CHECK_STR(save(3, false), "4  acc;");
    CHECK_STR(save(3, true), "1 rate acc;3 rate acc;0 daily x=1;2 l x=1;4  acc;");
    CHECK_STR(save(3, false), "");
    world_fini(&w);
}

static void an_account_is_kept_too(void **state)
{
    (void)state;
    begin_at(0, NULL, 0, (ration_breaker_rule){.strategy = RATION_BREAKER_NONE});
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, "Retry-After", "60"), "observed");
    CHECK_STR(save(0, false), "3  acc;");

    ration_record record = {.type = RATION_RECORD_PENALTY,
                            .provider = ration_text_of("p"),
                            .key = ration_text_of("acc"),
                            .u.penalty = {{0}, {60 * SECOND}, 1, 1}};

    world_fini(&w);
    begin_at(SECOND, NULL, 0, (ration_breaker_rule){.strategy = RATION_BREAKER_NONE});
    CHECK_EQ(load(SECOND, &record, 1, false, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, SECOND, "a"), "penalized - - 59000000us");
    world_fini(&w);
}

/* ---- what is taken back ---- */

static void a_restart_is_no_amnesty(void **state)
{
    ration_record records[4];
    size_t unknown = 7;

    (void)state;
    records[0] = quota_used(8, HOUR);
    records[1] = of_limit(RATION_RECORD_BUCKET, "rate", "acc", HOUR);
    records[1].u.available = 2 * UNIT;
    records[2] = of_limit(RATION_RECORD_ADAPTIVE, "l", "x=1", HOUR);
    records[2].u.adaptive = (ration_adaptive_record){.limit = 1, .grown_at = {HOUR}};
    records[3] = of_limit(RATION_RECORD_PENALTY, "daily", "x=2", HOUR);
    records[3].u.penalty = (ration_penalty_record){{HOUR}, {HOUR + 30 * SECOND}, 2, 2};

    begin(HOUR + SECOND);
    CHECK_EQ(load(HOUR + SECOND, records, 4, false, &unknown), RATION_OK);
    CHECK_EQ(unknown, 0);
    CHECK_STR(world_ask(&w, HOUR + SECOND, "p x=2"), "penalized daily x=2 29000000us");
    CHECK_STR(world_ask(&w, HOUR + SECOND, "a x=1"), "granted");
    CHECK_STR(world_ask(&w, HOUR + SECOND, "b x=1"),
              "adaptive_full l x=1 -"); /* L is 1, and the bucket has one in hand */
    CHECK_STR(world_ask(&w, HOUR + SECOND, "c"), "rate_limited rate acc 59000000us");
    CHECK_STR(world_release(&w, HOUR + SECOND, "a", RATION_OUTCOME_SUCCESS, RATION_UNSET), "released");
    CHECK_STR(world_ask(&w, 2 * HOUR, "d x=1"), "granted");
    CHECK_STR(world_release(&w, 2 * HOUR, "d", RATION_OUTCOME_SUCCESS, RATION_UNSET), "released");
    CHECK_STR(world_ask(&w, 2 * HOUR, "e x=1"),
              "quota_exhausted daily x=1 79200000000us"); /* 8 and 2 of 10 are spent */
    world_fini(&w);
}

static void windows_that_are_over_are_over(void **state)
{
    const ration_record record = quota_used(10, HOUR);

    (void)state;
    begin(24 * HOUR);
    CHECK_EQ(load(24 * HOUR, &record, 1, false, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, 24 * HOUR, "a x=1"), "granted");
    world_fini(&w);

    begin(24 * HOUR - 1);
    CHECK_EQ(load(24 * HOUR - 1, &record, 1, false, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, 24 * HOUR - 1, "a x=1"), "quota_exhausted daily x=1 1us");
    world_fini(&w);
}

/* What was on its way when the process died counts in the window that has begun meanwhile. */
static void what_was_in_flight_is_carried(void **state)
{
    ration_record record = quota_used(10, 24 * HOUR - SECOND);

    (void)state;
    record.u.quota.in_flight = 9 * UNIT;
    begin(24 * HOUR);
    CHECK_EQ(load(24 * HOUR, &record, 1, false, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, 24 * HOUR, "a x=1"), "granted");
    CHECK_STR(world_ask(&w, 24 * HOUR, "b x=1"), "quota_exhausted daily x=1 86400000000us");
    world_fini(&w);
}

static void a_changed_calendar_forgets_nothing(void **state)
{
    ration_record record = quota_used(10, HOUR);

    (void)state;
    record.u.quota.window_end = ration_time_of(30 * HOUR); /* as if it had been reset at six o'clock */
    begin(2 * HOUR);
    CHECK_EQ(load(2 * HOUR, &record, 1, false, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, 2 * HOUR, "a x=1"), "quota_exhausted daily x=1 79200000000us");
    CHECK_STR(world_ask(&w, 24 * HOUR, "a x=1"), "granted");
    world_fini(&w);
}

static void after_an_unclean_stop_buckets_start_empty(void **state)
{
    ration_record record = of_limit(RATION_RECORD_BUCKET, "rate", "acc", HOUR);

    (void)state;
    begin(HOUR);
    CHECK_EQ(load(HOUR, NULL, 0, true, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, HOUR + 60 * SECOND, "a"), "rate_limited rate acc 60000000us"); /* one is left in hand */
    CHECK_STR(world_ask(&w, HOUR + 120 * SECOND, "a"), "granted");
    world_fini(&w);

    /* One that was kept may have been emptied since. */
    record.at = ration_time_of(HOUR - 5 * SECOND);
    record.u.available = 10 * UNIT;
    begin(HOUR);
    CHECK_EQ(load(HOUR, &record, 1, true, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, HOUR + 60 * SECOND, "a"), "rate_limited rate acc 60000000us");
    CHECK_STR(world_ask(&w, HOUR + 120 * SECOND, "a"), "granted");
    world_fini(&w);

    /* What it was in debt it still is, less what has come since: half a unit of two. */
    record.at = ration_time_of(HOUR - 30 * SECOND);
    record.u.available = -2 * UNIT;
    begin(HOUR);
    CHECK_EQ(load(HOUR, &record, 1, true, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, HOUR + 120 * SECOND, "a"), "rate_limited rate acc 90000000us");
    world_fini(&w);

    /* After a stop in order it is as it was. */
    record.u.available = 10 * UNIT;
    begin(HOUR);
    CHECK_EQ(load(HOUR, &record, 1, false, NULL), RATION_OK);
    CHECK_STR(world_ask(&w, HOUR, "a"), "granted");
    world_fini(&w);
}

static void circuits_stay_open(void **state)
{
    static const struct {
        const char *why;
        ration_breaker_record kept;
        int64_t at_us;
        const char *first, *second;
    } rows[] = {
        {"open",
         {RATION_BREAKER_OPEN, 7, {9 * SECOND}, SECOND},
         5 * SECOND,
         "circuit_open - acc 4000000us",
         "circuit_open - acc 4000000us"},
        {"a probe has fallen due",
         {RATION_BREAKER_OPEN, 7, {5 * SECOND}, SECOND},
         5 * SECOND,
         "granted",
         "circuit_open - acc 1000000us"},
        {"probes that were out are replaced",
         {RATION_BREAKER_HALF_OPEN, 7, {RATION_NEVER_US}, SECOND},
         5 * SECOND,
         "granted",
         "circuit_open - acc 1000000us"},
        {"closed", {RATION_BREAKER_CLOSED, 7, {RATION_NEVER_US}, 0}, 5 * SECOND, "granted", "granted"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_record record = of_limit(RATION_RECORD_BREAKER, NULL, "acc", SECOND);

        CHECK_ROW(rows[i].why);
        record.u.breaker = rows[i].kept;
        begin_at(rows[i].at_us, limits, 1, (ration_breaker_rule){.strategy = RATION_BREAKER_CONSECUTIVE});
        CHECK_EQ(load(rows[i].at_us, &record, 1, false, NULL), RATION_OK);
        CHECK_STR(world_ask(&w, rows[i].at_us, "a"), rows[i].first);
        CHECK_STR(world_ask(&w, rows[i].at_us, "b"), rows[i].second);
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

static void what_the_rules_do_not_have_is_left_out(void **state)
{
    ration_record records[6];
    size_t unknown = 0;

    (void)state;
    for (size_t i = 0; i < 6; i++)
        records[i] = quota_used(10, HOUR);
    records[0].provider = ration_text_of("q");
    records[1].limit = ration_text_of("weekly");
    records[2].limit = ration_text_of("rate"); /* which is no quota: taken, and of no use */
    records[2].key = ration_text_of("acc");
    records[3].type = RATION_RECORD_BREAKER;
    records[3].u.breaker = (ration_breaker_record){RATION_BREAKER_OPEN, 1, {2 * HOUR}, SECOND};
    records[4].type = RATION_RECORD_PENALTY;
    records[4].limit = (ration_text){NULL, 0};
    records[4].key = ration_text_of("zcc");
    records[4].u.penalty = (ration_penalty_record){{HOUR}, {2 * HOUR}, 1, 1};
    begin(HOUR);
    CHECK_EQ(load(HOUR, records, 6, false, &unknown), RATION_OK);
    CHECK_EQ(unknown, 4);
    CHECK_STR(world_ask(&w, HOUR, "a"), "granted");
    CHECK_STR(world_ask(&w, HOUR, "a x=1"), "quota_exhausted daily x=1 82800000000us");
    world_fini(&w);
}

/* One record, spoiled. */
#define SPOIL(name, ...)                                                                                               \
    static void name(ration_record *r)                                                                                 \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
    }
static const ration_part backwards[] = {{{2}, UNIT}, {{2}, UNIT}};
static const ration_part ahead[] = {{{HOUR + 1}, UNIT}};
static const ration_part debt[] = {{{1}, -1}};
SPOIL(no_key, r->key = (ration_text){NULL, 0})
SPOIL(no_text, r->provider = (ration_text){NULL, 3})
SPOIL(of_the_future, r->at.us = HOUR + 1)
SPOIL(of_no_time, r->at.us = RATION_NEVER_US)
SPOIL(no_type, r->type = (ration_record_type)6)
SPOIL(negative_use, r->u.quota.used = -1)
SPOIL(huge_use, r->u.quota.used = RATION_UNITS_MAX + 1)
SPOIL(negative_flight, r->u.quota.in_flight = -1)
SPOIL(negative_carried, r->u.quota.carried = -1)
SPOIL(no_maximum, r->u.quota.max = 0)
SPOIL(huge_remaining, r->u.quota.remaining = INT64_MIN)
SPOIL(end_beyond_time, r->u.quota.window_end.us = RATION_TIME_MAX_US + 1)
SPOIL(parts_missing, r->u.quota.part_count = 1)
SPOIL(parts_backwards, r->u.quota.parts = backwards; r->u.quota.part_count = 2)
SPOIL(parts_ahead, r->u.quota.parts = ahead; r->u.quota.part_count = 1)
SPOIL(parts_in_debt, r->u.quota.parts = debt; r->u.quota.part_count = 1)
SPOIL(huge_bucket, r->type = RATION_RECORD_BUCKET; r->u.available = INT64_MAX)
SPOIL(no_limit, r->type = RATION_RECORD_ADAPTIVE; r->u.adaptive = (ration_adaptive_record){.limit = 0})
SPOIL(grown_later, r->type = RATION_RECORD_ADAPTIVE;
      r->u.adaptive = (ration_adaptive_record){.limit = 1, .grown_at = {HOUR + 1}})
SPOIL(endless_penalty, r->type = RATION_RECORD_PENALTY; r->u.penalty.until.us = RATION_NEVER_US)
SPOIL(no_state, r->type = RATION_RECORD_BREAKER; r->u.breaker.state = (ration_circuit_state)3)
SPOIL(negative_delay, r->type = RATION_RECORD_BREAKER; r->u.breaker = (ration_breaker_record){.delay_us = -1})

static void bad_records_change_nothing(void **state)
{
    void (*const spoils[])(ration_record *) = {
        no_key,        no_text,         of_the_future,    of_no_time,    no_type,        negative_use,
        huge_use,      negative_flight, negative_carried, no_maximum,    huge_remaining, end_beyond_time,
        parts_missing, parts_backwards, parts_ahead,      parts_in_debt, huge_bucket,    no_limit,
        grown_later,   endless_penalty, no_state,         negative_delay};

    (void)state;
    for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
        ration_record records[2] = {quota_used(10, HOUR), quota_used(10, HOUR)};

        spoils[i](&records[1]);
        begin(HOUR);
        CHECK_EQ(load(HOUR, records, 2, true, NULL), RATION_ERR_INVALID);
        CHECK_STR(world_ask(&w, HOUR, "a x=1"), "granted");
        world_fini(&w);
    }
}

static void it_comes_before_the_first_request(void **state)
{
    const ration_record record = quota_used(10, HOUR);
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;
    size_t used = 0;

    (void)state;
    begin(HOUR);
    CHECK_STR(world_ask(&w, HOUR, "a"), "granted");
    CHECK_EQ(load(HOUR, &record, 1, false, NULL), RATION_ERR_INVALID);
    world_fini(&w);

    world_rules(&rules, &provider, accounts, limits, 3);
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
    CHECK_EQ(ration_engine_save(w.engine, ration_time_of(0), true, &used, tell),
             RATION_ERR_INVALID); /* it keeps none */
    world_fini(&w);
}

/* Every allocation of a load and of what follows fails in turn. */
static void without_memory(void **state)
{
    static const ration_part parts[] = {{{1}, UNIT}, {{2}, UNIT}};
    ration_record records[2] = {quota_used(10, HOUR), quota_used(10, HOUR)};
    int err = RATION_ERR_NOMEM;

    (void)state;
    records[0].u.quota.parts = parts;
    records[0].u.quota.part_count = 2;
    for (uint64_t i = 0; err != RATION_OK; i++) {
        const ration_state kept = {.records = records, .count = 2};
        ration_account_rule accounts[2];
        ration_provider_rule provider;
        failalloc memory;
        ration_rules rules;
        ration_engine *engine = NULL;

        failalloc_init(&memory, i);
        world_rules(&rules, &provider, accounts, limits, 3);

        const ration_engine_options options = {.rules = &rules, .allocator = &memory.allocator, .keeps = true};

        err = ration_engine_new(&options, ration_time_of(HOUR), &engine, NULL);
        if (err == RATION_OK)
            err = ration_engine_load(engine, ration_time_of(HOUR), &kept, NULL);
        CHECK(err == RATION_OK || err == RATION_ERR_NOMEM);
        ration_engine_free(engine);
        CHECK_EQ(memory.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_has_changed_is_given_out),
        cmocka_unit_test(an_account_is_kept_too),
        cmocka_unit_test(a_restart_is_no_amnesty),
        cmocka_unit_test(windows_that_are_over_are_over),
        cmocka_unit_test(what_was_in_flight_is_carried),
        cmocka_unit_test(a_changed_calendar_forgets_nothing),
        cmocka_unit_test(after_an_unclean_stop_buckets_start_empty),
        cmocka_unit_test(circuits_stay_open),
        cmocka_unit_test(what_the_rules_do_not_have_is_left_out),
        cmocka_unit_test(bad_records_change_nothing),
        cmocka_unit_test(it_comes_before_the_first_request),
        cmocka_unit_test(without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
