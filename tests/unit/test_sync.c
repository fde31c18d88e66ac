/* SPDX-License-Identifier: MIT */
/* What a response tells about a quota, by the rule's own fields and by the IETF's in each of their forms. */
#include "support/check.h"

#include "core/sync.h"

#define UNIT RATION_UNIT
#define S INT64_C(1000000)
#define NOW (1700000000 * S)
#define NONE INT64_C(-1)
#define BAD INT64_C(-2)

typedef struct row {
    const char *why;
    const char *current, *policy;          /* RateLimit, RateLimit-Policy */
    const char *limit, *remaining, *reset; /* the three of older drafts */
    int64_t max, left, reset_s;            /* units, seconds from now */
} row;

static void set(ration_header *headers, size_t *count, const char *name, const char *value)
{
    if (value != NULL)
        headers[(*count)++] = (ration_header){ration_text_of(name), ration_text_of(value)};
}

static int64_t told(rn_field is, int64_t value)
{
    return is == RN_FIELD_ABSENT ? NONE : is == RN_FIELD_BAD ? BAD : value;
}

static void run(const ration_limit_rule *rule, int64_t window_us, const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ration_header headers[5];
        ration_response response = {.status = 200, .headers = headers};
        rn_told got;

        CHECK_ROW(rows[i].why);
        set(headers, &response.header_count, "ratelimit", rows[i].current);
        set(headers, &response.header_count, "RateLimit-Policy", rows[i].policy);
        set(headers, &response.header_count, "RateLimit-Limit", rows[i].limit);
        set(headers, &response.header_count, "RateLimit-Remaining", rows[i].remaining);
        set(headers, &response.header_count, "RateLimit-Reset", rows[i].reset);
        rn_sync_read(rule, window_us, &response, ration_time_of(NOW), &got);
        CHECK_EQ(told(got.max_is, got.max / UNIT), rows[i].max);
        CHECK_EQ(told(got.left_is, got.left / UNIT), rows[i].left);
        CHECK_EQ(told(got.reset_is, (got.reset.us - NOW) / S), rows[i].reset_s);
    }
}

#define RUN(rule, window_us, rows) run((rule), (window_us), (rows), sizeof(rows) / sizeof(rows)[0])

static void test_current(void **state)
{
    static const row rows[] = {
        {"nothing", NULL, NULL, NULL, NULL, NULL, NONE, NONE, NONE},
        {"one policy", "\"default\";r=50;t=30", "\"default\";q=100;w=60", NULL, NULL, NULL, 100, 50, 31},
        {"no policies", "\"default\";r=50;t=30", NULL, NULL, NULL, NULL, NONE, 50, 31},
        {"at its end", "\"default\";r=0;t=0", "\"default\";q=100", NULL, NULL, NULL, 100, 0, 0},
        {"no time", "\"default\";r=50", "\"default\";q=100", NULL, NULL, NULL, 100, 50, NONE},
        {"of its name", "\"daily\";r=9;t=3, \"hourly\";r=8;t=2", "\"daily\";q=20;w=3600, \"hourly\";q=10;w=86400", NULL,
         NULL, NULL, 10, 8, 3},
        {"its name beats its window", "\"a\";r=9;t=3, \"hourly\";r=8;t=2", "\"a\";q=20;w=3600, \"hourly\";q=10;w=1",
         NULL, NULL, NULL, 10, 8, 3},
        {"of its window", "\"a\";r=9;t=3, \"b\";r=8;t=2", "\"a\";q=20;w=60, \"b\";q=10;w=3600", NULL, NULL, NULL, 10, 8,
         3},
        {"the first of its window", "\"a\";r=9;t=3, \"b\";r=8;t=2", "\"a\";q=20;w=3600, \"b\";q=10;w=3600", NULL, NULL,
         NULL, 20, 9, 4},
        {"none of several", "\"a\";r=9;t=3, \"b\";r=8;t=2", "\"a\";q=20;w=60, \"b\";q=10;w=61", NULL, NULL, NULL, NONE,
         NONE, NONE},
        {"its policy has no state", "\"a\";r=9;t=3", "\"a\";q=20;w=60, \"hourly\";q=10;w=1", NULL, NULL, NULL, 10, NONE,
         NONE},
        {"of its name, without policies", "\"a\";r=9;t=3, \"hourly\";r=8;t=2", NULL, NULL, NULL, NULL, NONE, 8, 3},
        {"several, without policies", "\"a\";r=9;t=3, \"b\";r=8;t=2", NULL, NULL, NULL, NULL, NONE, NONE, NONE},
        {"a policy alone", NULL, "\"default\";q=100;w=60", NULL, NULL, NULL, 100, NONE, NONE},
        {"other parameters", "\"default\";pk=:YWJj:;r=50;x;y=?1;z=\"a\\\"b\";t=30", "\"default\";qu=\"requests\";q=100",
         NULL, NULL, NULL, 100, 50, 31},
        {"a blank before the semicolon", "\"default\";r=50", "\"default\" ;q=100", NULL, NULL, NULL, BAD, 50, NONE},
        {"blanks after the semicolon", "\"default\"; r=50; t=30", "\"default\";  q=100", NULL, NULL, NULL, 100, 50, 31},
        {"tokens", "default;r=50;t=30", "default;q=100", NULL, NULL, NULL, 100, 50, 31},
        {"a limit of none", "\"a\";r=5", "\"a\";q=0", NULL, NULL, NULL, BAD, 5, NONE},
        {"negative", "\"a\";r=-1;t=-5", "\"a\";q=-3", NULL, NULL, NULL, BAD, BAD, BAD},
        {"not whole", "\"a\";r=1.5;t=x", "\"a\";q=\"7\"", NULL, NULL, NULL, BAD, BAD, BAD},
        {"no value", "\"a\";r;t", "\"a\";q", NULL, NULL, NULL, BAD, BAD, BAD},
        {"too large", "\"a\";r=9007199255;t=99999999999999999999", "\"a\";q=99999999999999999999", NULL, NULL, NULL,
         BAD, BAD, BAD},
        {"the last of two counts", "\"a\";r=5;r=6", NULL, NULL, NULL, NULL, NONE, 6, NONE},
    };
    const ration_limit_rule rule = {.name = "hourly", .sync = {.standard = true}};

    (void)state;
    RUN(&rule, 3600 * S, rows);
}

static void test_malformed(void **state)
{
    static const row rows[] = {
        {"empty", "", "", NULL, NULL, NULL, BAD, BAD, NONE},
        {"an open text", "\"a;r=5", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"a quote hidden at the end", "\"a\\\"", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"a backslash at the end", "\"a\\", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"a comma at the end", "\"a\";r=5,", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"two commas", "\"a\";r=5,, \"b\";r=6", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"no comma", "\"a\";r=5 \"b\";r=6", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"a key without a name", "\"a\";=5", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"a value without a value", "\"a\";r=", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"an inner list", "(\"a\" \"b\");r=5", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"an open byte sequence", "\"a\";pk=:abc;r=5", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"no boolean", "\"a\";r=?2", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"no number", "\"a\";r=-", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"a point behind", "\"a\";r=5.", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"no UTF-8", "\xff", NULL, NULL, NULL, NULL, NONE, BAD, NONE},
        {"a bad policy spoils only itself", "\"a\";r=5;t=1", "\"a", NULL, NULL, NULL, BAD, 5, 2},
    };
    const ration_limit_rule rule = {.name = "hourly", .sync = {.standard = true}};

    (void)state;
    RUN(&rule, 3600 * S, rows);
}

static void test_older(void **state)
{
    static const row rows[] = {
        {"three fields", NULL, NULL, "100", "50", "30", 100, 50, 31},
        {"with the window in the first", NULL, NULL, "100, 100;w=60", "50", "30", 100, 50, 31},
        {"with several, of ours", NULL, NULL, "1000, 100;w=60, 1000;w=3600", "50", "30", 1000, 50, 31},
        {"with several, of another", NULL, NULL, "100, 100;w=60, 1000;w=3600", "50", "30", NONE, NONE, NONE},
        {"with several, none of ours", NULL, NULL, "100, 100;w=60, 1000;w=61", "50", "30", NONE, NONE, NONE},
        {"with a policy field", NULL, "1000;w=3600", "1000", "50", "30", 1000, 50, 31},
        {"with several in it", NULL, "100;w=60, 1000;w=3600", "1000", "50", "30", 1000, 50, 31},
        {"of another", NULL, "100;w=60, 1000;w=3600", "100", "50", "30", NONE, NONE, NONE},
        {"remaining alone", NULL, NULL, NULL, "50", NULL, NONE, 50, NONE},
        {"at its end", NULL, NULL, "5", "0", "0", 5, 0, 0},
        {"each by itself", NULL, NULL, "0", "NaN", "5", BAD, BAD, 6},
        {"malformed", NULL, NULL, ",", "5", "soon", BAD, 5, BAD},
        {"a dictionary", "limit=100, remaining=50, reset=30", NULL, NULL, NULL, NULL, 100, 50, 31},
        {"in any order", "reset=30, limit=100, remaining=50", "100;w=60", NULL, NULL, NULL, 100, 50, 31},
        {"without a limit", "remaining=50, reset=30", NULL, NULL, NULL, NULL, NONE, 50, 31},
        {"of another", "limit=100, remaining=50, reset=30", "100;w=60, 1000;w=3600", NULL, NULL, NULL, NONE, NONE,
         NONE},
        {"of ours", "limit=1000, remaining=50, reset=30", "100;w=60, 1000;w=3600", NULL, NULL, NULL, 1000, 50, 31},
        {"bad members", "limit=-1, remaining=x, reset=1.5", NULL, NULL, NULL, NULL, BAD, BAD, BAD},
        {"the new form goes first", "\"a\";r=5;t=1", NULL, "100", "50", "30", NONE, 5, 2},
    };
    const ration_limit_rule rule = {.name = "hourly", .sync = {.standard = true}};

    (void)state;
    RUN(&rule, 3600 * S, rows);
}

static void test_month(void **state)
{
    static const row rows[] = {
        {"28 days", "\"a\";r=5, \"b\";r=6", "\"a\";q=10;w=60, \"b\";q=20;w=2419200", NULL, NULL, NULL, 20, 6, NONE},
        {"31 days", "\"a\";r=5, \"b\";r=6", "\"a\";q=10;w=60, \"b\";q=20;w=2678400", NULL, NULL, NULL, 20, 6, NONE},
        {"32 days", "\"a\";r=5, \"b\";r=6", "\"a\";q=10;w=60, \"b\";q=20;w=2764800", NULL, NULL, NULL, NONE, NONE,
         NONE},
    };
    const ration_limit_rule rule = {.name = "x", .window = {.period = RATION_PERIOD_MONTH}, .sync = {.standard = true}};

    (void)state;
    RUN(&rule, INT64_C(31) * 86400 * S, rows);
}

/* The rule's own fields go before the standard ones, value by value. */
static void test_both(void **state)
{
    static const row rows[] = {
        {"own first", "\"a\";r=5;t=3", "\"a\";q=9", "100", "50", NULL, 100, 50, 4},
        {"own bad ones stay bad", "\"a\";r=5;t=3", "\"a\";q=9", "0", NULL, NULL, BAD, 5, 4},
    };
    const ration_limit_rule rule = {
        .name = "x",
        .sync = {.limit_header = "RateLimit-Limit", .remaining_header = "RateLimit-Remaining", .standard = true},
    };
    const ration_limit_rule off = {.name = "x"};
    static const row nothing[] = {
        {"no sync reads nothing", "\"a\";r=5;t=3", "\"a\";q=9", "100", "50", "3", NONE, NONE, NONE}};

    (void)state;
    RUN(&rule, 60 * S, rows);
    RUN(&off, 60 * S, nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_current), cmocka_unit_test(test_malformed), cmocka_unit_test(test_older),
        cmocka_unit_test(test_month),   cmocka_unit_test(test_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
