/* SPDX-License-Identifier: MIT */
/* Quota fields, resets in every format and Retry-After, as a simulated provider writes them. */
#include "simulate/answer.h"

#include "support/check.h"

#define MS INT64_C(1000)
#define S INT64_C(1000000)
#define UNIT RATION_UNIT

/* 2024-02-29T12:00:00.5Z, and resets after it. */
#define NOW (INT64_C(1709208000) * S + 500 * MS)

static void test_resets(void **state)
{
    static const struct {
        const char *why;
        ration_reset_format format;
        int64_t in_us;
        const char *want;
    } rows[] = {
        {"epoch seconds round up", RATION_RESET_EPOCH, 60 * S, "1709208061"},
        {"auto is epoch seconds", RATION_RESET_AUTO, 59500 * MS, "1709208060"},
        {"epoch milliseconds", RATION_RESET_EPOCH_MS, 1, "1709208000501"},
        {"a delta rounds up", RATION_RESET_DELTA, 1, "1"},
        {"a whole delta", RATION_RESET_DELTA, 60 * S, "60"},
        {"a reset that is now", RATION_RESET_DELTA, 0, "0"},
        {"a reset that is over", RATION_RESET_DELTA, -5 * S, "0"},
        {"seconds", RATION_RESET_DURATION, 59 * S, "59s"},
        {"minutes", RATION_RESET_DURATION, 360 * S, "6m0s"},
        {"hours", RATION_RESET_DURATION, 3600 * S + 2 * S, "1h0m2s"},
        {"a day", RATION_RESET_DURATION, 86400 * S, "24h0m0s"},
        {"ISO 8601", RATION_RESET_ISO8601, 60 * S, "2024-02-29T12:01:01Z"},
        {"HTTP date", RATION_RESET_HTTP_DATE, 60 * S, "Thu, 29 Feb 2024 12:01:01 GMT"},
        {"the day after", RATION_RESET_HTTP_DATE, 86400 * S, "Fri, 01 Mar 2024 12:00:01 GMT"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        rn_builder b;

        CHECK_ROW(rows[i].why);
        rn_builder_init(&b, text, sizeof text);
        rn_reset_write(&b, rows[i].format, ration_time_of(NOW + rows[i].in_us), ration_time_of(NOW));
        CHECK_STR(text, rows[i].want);
    }
}

static void check_field(const rn_answer *answer, const char *name, const char *want)
{
    const rn_http_fields fields = {answer->fields, answer->count};

    CHECK_ROW(name);
    CHECK_TEXT(rn_http_find(fields, name), want);
    CHECK_EQ(rn_http_count(fields, name), want != NULL ? 1 : 0);
}

static void test_retry(void **state)
{
    static const struct {
        const char *why;
        int64_t wait_us;
        const char *seconds, *ms;
    } rows[] = {
        {"not known", RATION_UNSET, NULL, NULL},    {"now", 0, "0", "0"},
        {"one microsecond rounds up", 1, "1", "1"}, {"a second", S, "1", "1000"},
        {"a bit more", S + 1, "2", "1001"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rn_answer answer;

        CHECK_ROW(rows[i].why);
        rn_answer_init(&answer);
        rn_answer_retry(&answer, rows[i].wait_us);
        check_field(&answer, "Retry-After", rows[i].seconds);
        check_field(&answer, "Retry-After-Ms", rows[i].ms);
    }
}

static void test_quota_fields(void **state)
{
    const ration_limit_rule requests = {
        .name = "minute",
        .sync = {.limit_header = "X-Limit",
                 .remaining_header = "X-Remaining",
                 .reset_header = "X-Reset",
                 .reset_format = RATION_RESET_DELTA},
    };
    const ration_limit_rule cost = {
        .name = "tokens",
        .counts = RATION_COUNTS_COST,
        .window = {.rolling_us = 3600 * S},
        .sync = {.limit_header = "X-Tokens", .remaining_header = "X-Tokens-Left", .reset_header = "X-Tokens-Reset"},
    };
    const ration_limit_rule same = {.name = "day", .sync = {.limit_header = "x-limit", .remaining_header = "X-Day"}};
    const ration_limit_rule silent = {.name = "silent"};
    const ration_time now = ration_time_of(NOW);
    const ration_time never = ration_time_of(RATION_NEVER_US);
    const rn_quota_state quotas[] = {
        {.rule = &requests,
         .max = 600 * UNIT,
         .remaining = 599 * UNIT + UNIT / 2,
         .start = ration_time_of(NOW - 30 * S),
         .end = ration_time_of(NOW + 30 * S)},
        {.rule = &cost, .max = 1000 * UNIT, .remaining = 48 * UNIT + UNIT / 2, .start = never, .end = never},
        {.rule = &same, .max = 5 * UNIT, .remaining = -3 * UNIT, .start = never, .end = never},
        {.rule = &silent, .max = 7 * UNIT, .remaining = 7 * UNIT, .start = never, .end = never},
    };
    rn_answer answer;

    (void)state;
    rn_answer_init(&answer);
    rn_answer_quotas(&answer, quotas, 4, now);
    check_field(&answer, "X-Limit", "600");
    check_field(&answer, "X-Remaining", "599");
    check_field(&answer, "X-Reset", "30");
    check_field(&answer, "X-Tokens", "1000");
    check_field(&answer, "X-Tokens-Left", "48.5");
    check_field(&answer, "X-Tokens-Reset", NULL);
    check_field(&answer, "X-Day", "0");
    check_field(&answer, "RateLimit", NULL);
    check_field(&answer, "RateLimit-Policy", NULL);
    CHECK_EQ(answer.count, 6);
}

static void test_standard_fields(void **state)
{
    const ration_limit_rule day = {.name = "day", .sync = {.standard = true}};
    const ration_limit_rule rolling = {
        .name = "a \"rolling\" one", .window = {.rolling_us = 90 * S}, .sync = {.standard = true}};
    const ration_time never = ration_time_of(RATION_NEVER_US);
    const rn_quota_state quotas[] = {
        {.rule = &day,
         .max = 5000 * UNIT,
         .remaining = 4990 * UNIT,
         .start = ration_time_of(NOW - 3600 * S),
         .end = ration_time_of(NOW + 82800 * S)},
        {.rule = &rolling, .max = 10 * UNIT, .remaining = 0, .start = never, .end = never},
    };
    rn_answer answer;

    (void)state;
    rn_answer_init(&answer);
    rn_answer_quotas(&answer, quotas, 2, ration_time_of(NOW));
    check_field(&answer, "RateLimit-Policy", "\"day\";q=5000;w=86400, \"a \\\"rolling\\\" one\";q=10;w=90");
    check_field(&answer, "RateLimit", "\"day\";r=4990;t=82800, \"a \\\"rolling\\\" one\";r=0");
}

/* More than there is room for: what fits stands whole, the rest is left out. */
static void test_full(void **state)
{
    static const char value[] = "0123456789012345678901234567890123456789012345678901234567890123456789";
    rn_answer answer;

    (void)state;
    rn_answer_init(&answer);
    for (int i = 0; i < 200; i++)
        rn_answer_add(&answer, "X-Fill", ration_text_of(value));
    CHECK_EQ(answer.count, RN_ANSWER_FIELDS_MAX);
    for (size_t i = 0; i < answer.count; i++)
        CHECK_TEXT(answer.fields[i].value, value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resets),          cmocka_unit_test(test_retry), cmocka_unit_test(test_quota_fields),
        cmocka_unit_test(test_standard_fields), cmocka_unit_test(test_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
