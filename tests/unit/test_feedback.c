/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/world.h"

#include <stdio.h>

#define MS(n) ((int64_t)(n)*1000)
#define UNIT RATION_UNIT

static world w;
static ration_error_rule errors;

static const char *const by_account[] = {"account"};
static const char *const by_account_x[] = {"account", "var:x"};
static const char *const by_account_y[] = {"account", "var:y"};

/* wide: 1 dimension, x and y: 2 each, shadow: 3 but it only watches. */
static const char *const by_all[] = {"account", "var:x", "provider"};
#define SLOTS(NAME, SCOPE, COUNT)                                                                                      \
    {                                                                                                                  \
        .name = (NAME), .kind = RATION_KIND_CONCURRENCY, .scope = (SCOPE), .scope_count = (COUNT), .max = 50 * UNIT    \
    }
static const ration_limit_rule limits[] = {
    SLOTS("wide", by_account, 1),
    SLOTS("x", by_account_x, 2),
    SLOTS("y", by_account_y, 2),
    {.name = "shadow",
     .kind = RATION_KIND_CONCURRENCY,
     .scope = by_all,
     .scope_count = 3,
     .max = 50 * UNIT,
     .enforce = RATION_ENFORCE_SHADOW},
};

static void begin_with(const ration_limit_rule *some, size_t count)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    world_rules(&rules, &provider, accounts, some, count);
    provider.errors = errors;
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
}

static void begin(void)
{
    begin_with(limits, sizeof limits / sizeof limits[0]);
}

static void end(void)
{
    world_fini(&w);
    errors = (ration_error_rule){0};
}

static const char *end_call(int64_t at_ms, const char *name, ration_outcome outcome)
{
    return world_release(&w, MS(at_ms), name, outcome, RATION_UNSET);
}

static ration_totals totals(void)
{
    ration_totals t;

    ration_engine_totals(w.engine, &t);
    return t;
}

typedef struct pauses {
    size_t count;
    char text[256];
    uint32_t events;
} pauses;

static void note_penalty(void *ctx, const ration_penalty_report *r)
{
    pauses *p = ctx;
    char one[96];

    snprintf(one, sizeof one, "%s %.*s %lld;", r->limit != NULL ? r->limit : "-", (int)r->key.size, r->key.data,
             (long long)(r->until.us / 1000));
    strncat(p->text, one, sizeof p->text - strlen(p->text) - 1);
    p->count++;
    p->events = r->events;
}

/* "limit key untilMs;" of all that run. */
static pauses penalties(int64_t at_ms)
{
    pauses p = {0};
    const ration_reporter reporter = {.ctx = &p, .penalty = note_penalty};

    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(MS(at_ms)), RATION_REPORT_STATS, &reporter), RATION_OK);
    return p;
}

static void the_narrowest_scope_is_paused(void **state)
{
    static const struct {
        const char *why;
        const char *ask;
        const char *paused;
    } rows[] = {
        {"the one scope there is", "a", "wide acc 2000;"},
        {"the one with more dimensions", "a x=1", "x acc/x=1 2000;"},
        {"of equals the one declared first", "a x=1 y=2", "x acc/x=1 2000;"},
        {"the other one", "a y=2", "y acc/y=2 2000;"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        begin();
        CHECK_STR(world_ask(&w, 0, rows[i].ask), "granted");
        CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
        CHECK_STR(penalties(0).text, rows[i].paused);
        CHECK_STR(penalties(2000).text, "");
        end();
    }
    CHECK_ROW(NULL);
}

static void all_scopes_are_paused_where_the_rule_says_so(void **state)
{
    (void)state;
    errors.penalize = RATION_PENALIZE_ALL;
    begin();
    CHECK_STR(world_ask(&w, 0, "a x=1 y=2"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, "Retry-After", "3"), "observed");
    CHECK_STR(penalties(0).text, "wide acc 3000;x acc/x=1 3000;y acc/y=2 3000;");
    CHECK_STR(world_ask(&w, 0, "b"), "penalized wide acc 3000000us");
    CHECK_STR(world_ask(&w, 0, "b account=bcc"), "granted");
    end();
}

static void an_account_without_a_limit_is_paused_itself(void **state)
{
    static const ration_limit_rule watching = {
        .name = "shadow", .kind = RATION_KIND_CONCURRENCY, .max = UNIT, .enforce = RATION_ENFORCE_SHADOW};

    (void)state;
    begin_with(&watching, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
    CHECK_STR(penalties(0).text, "- acc 2000;");
    CHECK_STR(world_ask(&w, 0, "b"), "penalized - - 2000000us");
    CHECK_STR(world_ask(&w, 0, "b wait=1999"), "penalized - - 2000000us");
    CHECK_STR(world_ask(&w, 0, "b wait=2000"), "queued");
    world_advance(&w, MS(2000));
    CHECK_STR(world_events(&w), "granted b 2000;");
    end();
}

static void waiters_of_a_paused_account_are_refused_if_it_is_too_long(void **state)
{
    (void)state;
    begin_with(limits, 0);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "b"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, "Retry-After", "1"), "observed");
    CHECK_STR(world_ask(&w, 0, "short wait=1500"), "queued");
    CHECK_STR(world_ask(&w, 0, "long wait=9000 tenant=t"), "queued");
    CHECK_STR(world_observe(&w, 0, "b", 429, "Retry-After", "5"), "observed"); /* the same event: the end moves */
    CHECK_STR(world_events(&w), "refused short deadline - 0;");
    world_advance(&w, MS(4999));
    CHECK_STR(world_events(&w), "");
    world_advance(&w, MS(5000));
    CHECK_STR(world_events(&w), "granted long 5000;");
    end();
}

static void a_burst_is_one_event_and_a_later_success_ends_the_doubling(void **state)
{
    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "b x=1"), "granted");
    CHECK_STR(world_ask(&w, 0, "early x=1"), "granted");
    CHECK_STR(world_observe(&w, MS(10), "a", 429, NULL, NULL), "observed");
    CHECK_STR(world_observe(&w, MS(20), "b", 429, NULL, NULL), "observed");
    CHECK_STR(penalties(20).text, "x acc/x=1 2020;"); /* moved, not doubled */
    CHECK_EQ(penalties(20).events, 1);
    CHECK_STR(end_call(30, "early", RATION_OUTCOME_SUCCESS), "released"); /* left before: says nothing */
    CHECK_STR(world_ask(&w, MS(3000), "c x=1"), "granted");
    CHECK_STR(world_observe(&w, MS(3000), "c", 429, NULL, NULL), "observed");
    CHECK_STR(penalties(3000).text, "x acc/x=1 7000;");
    CHECK_EQ(penalties(3000).events, 2);
    CHECK_STR(world_ask(&w, MS(7000), "d x=1"), "granted");
    CHECK_STR(world_observe(&w, MS(7000), "d", 200, NULL, NULL), "observed");
    CHECK_STR(world_ask(&w, MS(7000), "e x=1"), "granted");
    CHECK_STR(world_observe(&w, MS(7000), "e", 429, NULL, NULL), "observed");
    CHECK_STR(penalties(7000).text, "x acc/x=1 9000;");
    CHECK_EQ(penalties(7000).events, 3);
    end();
}

/* What a status, or an outcome, of the lease before says about the next doubling: 2 s after a success, else 4. */
static void what_counts_as_a_success(void **state)
{
    static const int own_transient[] = {418};
    static const struct {
        const char *why;
        int status; /* 0: release with `outcome` */
        ration_outcome outcome;
        bool own;
        bool success;
    } rows[] = {
        {"200", 200, RATION_OUTCOME_SUCCESS, false, true},
        {"404: the provider took the call", 404, RATION_OUTCOME_SUCCESS, false, true},
        {"500 is transient", 500, RATION_OUTCOME_SUCCESS, false, false},
        {"503 is transient", 503, RATION_OUTCOME_SUCCESS, false, false},
        {"501 is not", 501, RATION_OUTCOME_SUCCESS, false, true},
        {"the rule's own list", 418, RATION_OUTCOME_SUCCESS, true, false},
        {"the rule's own list is all", 500, RATION_OUTCOME_SUCCESS, true, true},
        {"an outcome without a status", 0, RATION_OUTCOME_SUCCESS, false, true},
        {"a failure", 0, RATION_OUTCOME_FAILURE, false, false},
        {"cancelled", 0, RATION_OUTCOME_CANCELLED, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        if (rows[i].own) {
            errors.transient = own_transient;
            errors.transient_count = 1;
        }
        begin();
        CHECK_STR(world_ask(&w, 0, "a x=1"), "granted");
        CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
        CHECK_STR(world_ask(&w, MS(2000), "b x=1"), "granted");
        if (rows[i].status != 0)
            CHECK_STR(world_observe(&w, MS(2000), "b", rows[i].status, NULL, NULL), "observed");
        CHECK_STR(end_call(2000, "b", rows[i].outcome), "released");
        CHECK_STR(world_ask(&w, MS(2000), "c x=1"), "granted");
        CHECK_STR(world_observe(&w, MS(2000), "c", 429, NULL, NULL), "observed");
        CHECK_STR(penalties(2000).text, rows[i].success ? "x acc/x=1 4000;" : "x acc/x=1 6000;");
        end();
    }
    CHECK_ROW(NULL);
}

static const char *observe_body(const char *name, int status, const char *body)
{
    const ration_response response = {.status = status, .body = ration_text_of(body)};

    for (size_t i = 0; i < w.count; i++) {
        if (strcmp(w.names[i].name, name) == 0) {
            return ration_engine_observe(w.engine, ration_time_of(0), w.names[i].lease, &response) == RATION_OK
                       ? "ok"
                       : "error";
        }
    }
    return "?";
}

static void the_rule_says_what_is_rate_limited(void **state)
{
    static const int own[] = {403, 420};
    static const struct {
        const char *why;
        bool own;
        const char *contains;
        int status;
        const char *body;
        bool limited;
    } rows[] = {
        {"429 by default", false, NULL, 429, NULL, true},
        {"403 not", false, NULL, 403, NULL, false},
        {"the rule's list", true, NULL, 420, NULL, true},
        {"the rule's list is all", true, NULL, 429, NULL, false},
        {"the body has it", true, "slow down", 403, "{\"error\":\"please slow down\"}", true},
        {"the body does not", true, "slow down", 403, "{\"error\":\"go away\"}", false},
        {"no body was told", true, "slow down", 403, NULL, false},
        {"the status must match as well", false, "slow down", 500, "slow down", false},
        {"no status", false, NULL, 0, NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        errors.rate_limited = own;
        errors.rate_limited_count = rows[i].own ? 2 : 0;
        errors.body_contains = rows[i].contains;
        begin();
        CHECK_STR(world_ask(&w, 0, "a"), "granted");
        CHECK_STR(observe_body("a", rows[i].status, rows[i].body), "ok");
        CHECK_EQ(totals().rate_limited, rows[i].limited);
        CHECK_EQ(penalties(0).count, rows[i].limited);
        end();
    }
    CHECK_ROW(NULL);
}

static void a_status_counts_once(void **state)
{
    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 0, NULL, NULL), "observed"); /* headers alone: no status yet */
    CHECK_STR(world_observe(&w, 0, "a", 200, NULL, NULL), "observed");
    CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
    CHECK_STR(end_call(0, "a", RATION_OUTCOME_THROTTLED), "released");
    CHECK_EQ(totals().rate_limited, 0);
    CHECK_STR(world_ask(&w, 0, "b"), "granted");
    CHECK_STR(world_observe(&w, 0, "b", 429, NULL, NULL), "observed");
    CHECK_STR(world_observe(&w, 0, "b", 429, "Retry-After", "60"), "observed");
    CHECK_STR(end_call(0, "b", RATION_OUTCOME_THROTTLED), "released");
    CHECK_EQ(totals().rate_limited, 1);
    CHECK_STR(penalties(0).text, "wide acc 2000;");
    end();
}

static void throttled_at_a_release_is_a_429_without_headers(void **state)
{
    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a x=3"), "granted");
    CHECK_STR(end_call(0, "a", RATION_OUTCOME_THROTTLED), "released");
    CHECK_EQ(totals().rate_limited, 1);
    CHECK_STR(penalties(0).text, "x acc/x=3 2000;");
    end();
}

static void only_a_429_that_nobody_foresaw_is_unexpected(void **state)
{
    static const ration_limit_rule two = {
        .name = "two", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = 2 * UNIT};
    static const ration_limit_rule ten = {.name = "ten",
                                          .kind = RATION_KIND_QUOTA,
                                          .scope = by_account,
                                          .scope_count = 1,
                                          .max = 10 * UNIT,
                                          .window = {.rolling_us = 60000000},
                                          .arrival_us = RATION_UNSET};

    (void)state;
    begin_with(&two, 1);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "b"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed"); /* both slots taken: a third would wait */
    CHECK_EQ(totals().unexpected_429, 0);
    CHECK_STR(end_call(0, "a", RATION_OUTCOME_SUCCESS), "released");
    CHECK_STR(world_observe(&w, MS(1), "b", 429, NULL, NULL), "observed"); /* a pause runs */
    CHECK_EQ(totals().unexpected_429, 0);
    CHECK_STR(end_call(1, "b", RATION_OUTCOME_SUCCESS), "released");
    CHECK_STR(world_ask(&w, MS(9000), "c"), "granted");
    CHECK_STR(world_observe(&w, MS(9000), "c", 429, NULL, NULL), "observed");
    CHECK_EQ(totals().unexpected_429, 1);
    CHECK_EQ(totals().rate_limited, 3);
    end();

    /* Only the reserve is left, which a critical request may use: nothing foretold that it would be refused. */
    for (int critical = 0; critical < 2; critical++) {
        ration_account_rule accounts[2];
        ration_provider_rule provider;
        ration_rules rules;

        world_rules(&rules, &provider, accounts, &ten, 1);
        rules.retry_reserve = (ration_ratio){1, 5};
        CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
        CHECK_STR(world_ask(&w, 0, critical ? "a priority=critical" : "a"), "granted");
        for (int i = 0; i < 7; i++)
            CHECK_STR(world_ask(&w, 0, "b"), "granted");
        CHECK_STR(world_ask(&w, 0, "c"), "quota_exhausted ten acc 62000000us");
        CHECK_STR(world_observe(&w, 0, "a", 429, NULL, NULL), "observed");
        CHECK_EQ(totals().unexpected_429, critical);
        end();
    }
}

static void a_bad_retry_after_counts_as_missing_and_is_counted(void **state)
{
    static const struct {
        const char *why;
        const char *value;
        const char *paused;
        uint64_t rejected;
    } rows[] = {
        {"seconds", "7", "wide acc 7000;", 0},
        {"nonsense", "soon", "wide acc 2000;", 1},
        {"none", NULL, "wide acc 2000;", 0},
        {"not in the future", "0", "wide acc 2000;", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        begin();
        CHECK_STR(world_ask(&w, 0, "a"), "granted");
        CHECK_STR(world_observe(&w, 0, "a", 429, rows[i].value != NULL ? "Retry-After" : NULL, rows[i].value),
                  "observed");
        CHECK_STR(penalties(0).text, rows[i].paused);
        CHECK_EQ(totals().sync_rejected[RATION_TOLD_RETRY_AFTER], rows[i].rejected);
        end();
    }
    CHECK_ROW(NULL);
}

/* What the report has of the only quota. */
static void on_disagreement(void *ctx, const ration_counter_report *report)
{
    *(uint64_t *)ctx = report->disagreement;
}

static uint64_t disagreement(int64_t at_us)
{
    uint64_t found = UINT64_MAX;
    const ration_reporter reporter = {.ctx = &found, .counter = on_disagreement};

    CHECK_EQ(ration_engine_report(w.engine, ration_time_of(at_us), RATION_REPORT_LIMITS, &reporter), RATION_OK);
    return found;
}

/* 100 calls in a minute, by the config; what the provider says of that, and when. */
static void another_maximum_is_counted_once(void **state)
{
    static const ration_limit_rule quotas[] = {
        {.name = "minute",
         .kind = RATION_KIND_QUOTA,
         .max = 100 * RATION_UNIT,
         .window = {.period = RATION_PERIOD_MINUTE, .zone = "UTC"},
         .sync = {.limit_header = "X-Limit"}},
        {.name = "minute",
         .kind = RATION_KIND_QUOTA,
         .max = 100 * RATION_UNIT,
         .window = {.rolling_us = 60000000},
         .sync = {.limit_header = "X-Limit"}},
    };
    static const struct {
        const char *why, *value;
        int64_t at_s;
        uint64_t maxima, disagreements;
    } rows[] = {
        {"as declared", "100", 0, 0, 0},
        {"less", "90", 0, 1, 1},
        {"the same again", "90", 59, 1, 1},
        {"the same in the next minute", "90", 60, 1, 2},
        {"none", NULL, 61, 1, 2},
        {"what is none", "-1", 62, 1, 2},
        {"more, in the same minute", "110", 63, 2, 2},
        {"and in another one that says nothing at first", NULL, 120, 2, 2},
        {"until it does", "110", 121, 2, 3},
        {"as declared again", "100", 122, 3, 3},
        {"and in the next minute", "100", 182, 3, 3},
        {"more at first", "110", 242, 4, 4},
    };

    (void)state;
    for (size_t q = 0; q < 2; q++) {
        begin_with(&quotas[q], 1);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            const int64_t at_us = rows[i].at_s * 1000000;

            CHECK_ROW(rows[i].why);
            CHECK_STR(world_ask(&w, at_us, "a"), "granted");
            CHECK_STR(world_observe(&w, at_us, "a", 200, rows[i].value != NULL ? "X-Limit" : NULL, rows[i].value),
                      "observed");
            CHECK_STR(end_call(rows[i].at_s * 1000, "a", RATION_OUTCOME_SUCCESS), "released");
            CHECK_EQ(totals().maxima, rows[i].maxima);
            CHECK_EQ(totals().disagreements, rows[i].disagreements);
            CHECK_EQ(disagreement(at_us), rows[i].disagreements);
        }
        end();
    }
    CHECK_ROW(NULL);
}

static void a_pause_above_an_hour_is_an_event(void **state)
{
    (void)state;
    begin();
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_ask(&w, 0, "b"), "granted");
    CHECK_STR(world_ask(&w, 0, "c"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, "Retry-After", "3600"), "observed");
    CHECK_STR(world_events(&w), "");
    CHECK_STR(world_observe(&w, 0, "b", 429, "Retry-After", "3601"), "observed");
    CHECK_STR(world_events(&w), "penalty wide;");
    CHECK_STR(world_observe(&w, 0, "c", 429, "Retry-After", "3601"), "observed"); /* it does not move */
    CHECK_STR(world_events(&w), "");
    end();

    begin_with(limits, 0);
    CHECK_STR(world_ask(&w, 0, "a"), "granted");
    CHECK_STR(world_observe(&w, 0, "a", 429, "Retry-After", "999999"), "observed");
    CHECK_STR(penalties(0).text, "- acc 86400000;"); /* 24 h are the most */
    CHECK_STR(world_events(&w), "penalty -;");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_narrowest_scope_is_paused),
        cmocka_unit_test(all_scopes_are_paused_where_the_rule_says_so),
        cmocka_unit_test(an_account_without_a_limit_is_paused_itself),
        cmocka_unit_test(waiters_of_a_paused_account_are_refused_if_it_is_too_long),
        cmocka_unit_test(a_burst_is_one_event_and_a_later_success_ends_the_doubling),
        cmocka_unit_test(what_counts_as_a_success),
        cmocka_unit_test(the_rule_says_what_is_rate_limited),
        cmocka_unit_test(a_status_counts_once),
        cmocka_unit_test(throttled_at_a_release_is_a_429_without_headers),
        cmocka_unit_test(only_a_429_that_nobody_foresaw_is_unexpected),
        cmocka_unit_test(a_bad_retry_after_counts_as_missing_and_is_counted),
        cmocka_unit_test(another_maximum_is_counted_once),
        cmocka_unit_test(a_pause_above_an_hour_is_an_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
