/* SPDX-License-Identifier: MIT */
#include "support/check.h"

#include "base/text.h"

#define US INT64_C(1)
#define MS INT64_C(1000)
#define S INT64_C(1000000)
#define MIN (60 * S)
#define H (60 * MIN)
#define D (24 * H)

typedef struct row {
    int64_t value;
    const char *want;
} row;

static void check_rows(void (*write)(rn_builder *, int64_t), const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char buffer[64];
        rn_builder b;

        rn_builder_init(&b, buffer, sizeof(buffer));
        write(&b, rows[i].value);
        CHECK_ROW(rows[i].want);
        CHECK_STR(buffer, rows[i].want);
        CHECK_EQ(b.used, strlen(buffer));
        CHECK(!b.full);
    }
}

#define CHECK_ROWS(write, rows) check_rows((write), (rows), sizeof(rows) / sizeof((rows)[0]))

static void integers(void **state)
{
    static const row rows[] = {
        {0, "0"}, {7, "7"}, {-10, "-10"}, {INT64_MAX, "9223372036854775807"}, {INT64_MIN, "-9223372036854775808"},
    };

    (void)state;
    CHECK_ROWS(rn_builder_int, rows);
}

static void amounts(void **state)
{
    static const row rows[] = {
        {48500000, "48.5"},
        {0, "0"},
        {S, "1"},
        {1, "0.000001"},
        {-1, "-0.000001"},
        {-48500000, "-48.5"},
        {100 * S, "100"},
        {RATION_UNITS_MAX, "9007199254.740992"},
        {INT64_MIN, "-9223372036854.775808"},
    };

    (void)state;
    CHECK_ROWS(rn_builder_micro, rows);
}

static void milliseconds(void **state)
{
    static const row rows[] = {
        {333334, "333.334"},
        {0, "0"},
        {1, "0.001"},
        {-1500, "-1.5"},
        {INT64_C(1710046800000000), "1710046800000"},
        {INT64_MIN, "-9223372036854775.808"},
    };

    (void)state;
    CHECK_ROWS(rn_builder_ms, rows);
}

static void durations(void **state)
{
    static const row rows[] = {
        {0, "0 s"},
        {1, "1 us"},
        {999, "999 us"},
        {MS, "1 ms"},
        {1500, "1.5 ms"},
        {250 * MS, "250 ms"},
        {999999, "999.999 ms"},
        {S, "1 s"},
        {1500 * MS, "1.5 s"},
        {S + 1, "1.001 s"},
        {59999 * MS, "59.999 s"},
        {59999 * MS + 1, "1 min"},
        {MIN, "1 min"},
        {90 * S, "1 min 30 s"},
        {90 * S + 1, "1 min 31 s"},
        {H - 1, "1 h"},
        {H, "1 h"},
        {2 * H + 5 * MIN, "2 h 5 min"},
        {2 * H + 5 * MIN + 1, "2 h 6 min"},
        {D - 1, "1 d"},
        {D, "1 d"},
        {25 * H, "1 d 1 h"},
        {30 * D, "30 d"},
        {-1500 * MS, "-1.5 s"},
        {RATION_TIME_MAX_US, "104250 d"},
        {RATION_FOREVER_US, "for ever"},
    };

    (void)state;
    CHECK_ROWS(rn_builder_duration, rows);
}

static void write_instant(rn_builder *b, int64_t us)
{
    rn_builder_instant(b, ration_time_of(us));
}

static void instants(void **state)
{
    static const row rows[] = {
        {0, "1970-01-01T00:00:00Z"},
        {1730611800 * S, "2024-11-03T05:30:00Z"},
        {1730611800 * S + 250 * MS, "2024-11-03T05:30:00.25Z"},
        {1730611800 * S + 1, "2024-11-03T05:30:00.000001Z"},
        {-1, "1969-12-31T23:59:59.999999Z"},
        {951782400 * S, "2000-02-29T00:00:00Z"},
        {951868800 * S, "2000-03-01T00:00:00Z"},
        {INT64_C(-2203891200) * S, "1900-03-01T00:00:00Z"},
        {INT64_C(4107542400) * S, "2100-03-01T00:00:00Z"},
        {RATION_TIME_MAX_US, "2255-06-05T23:47:34.740992Z"},
        {INT64_C(253402300799999999), "9999-12-31T23:59:59.999999Z"},
        {INT64_C(253402300800000000), "9999-12-31T23:59:59.999999Z"},
        {INT64_MAX - 1, "9999-12-31T23:59:59.999999Z"},
        {INT64_C(-62135596800) * S, "0001-01-01T00:00:00Z"},
        {INT64_C(-62135596800) * S - 1, "0001-01-01T00:00:00Z"},
        {INT64_MIN, "0001-01-01T00:00:00Z"},
        {RATION_NEVER_US, "never"},
    };

    (void)state;
    CHECK_ROWS(write_instant, rows);
}

static void what_does_not_fit_is_cut(void **state)
{
    static const struct {
        const char *why;
        size_t size;
        const char *first, *second, *want;
        bool full;
    } rows[] = {
        {"just fits", 7, "abc", "def", "abcdef", false},
        {"one too many", 6, "abc", "def", "abcde", true},
        {"nothing after a cut", 4, "abcdef", "x", "abc", true},
        {"not even one", 1, "a", "", "", true},
        {"nothing into nothing", 1, "", "", "", false},
        {"never inside a character", 4, "ab\xe2\x82\xac", "c", "ab", true},
        {"nor at its second byte", 5, "ab\xe2\x82\xac", "c", "ab", true},
        {"a whole one stays", 6, "ab\xe2\x82\xac", "c", "ab\xe2\x82\xac", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char buffer[16];
        rn_builder b;

        memset(buffer, '#', sizeof(buffer));
        rn_builder_init(&b, buffer, rows[i].size);
        rn_builder_str(&b, rows[i].first);
        rn_builder_str(&b, rows[i].second);
        CHECK_ROW(rows[i].why);
        CHECK_STR(buffer, rows[i].want);
        CHECK_EQ(b.full, rows[i].full);
        CHECK_EQ(buffer[rows[i].size], '#');
    }
}

static void no_buffer_at_all(void **state)
{
    const ration_text absent = {NULL, 0};
    rn_builder b;

    (void)state;
    rn_builder_init(&b, NULL, 0);
    rn_builder_text(&b, absent);
    rn_builder_str(&b, NULL);
    CHECK(!b.full);
    rn_builder_int(&b, 12);
    CHECK(b.full);
    CHECK_EQ(b.used, 0);
}

static void keys(void **state)
{
    char buffer[64];
    rn_builder b;

    (void)state;
    rn_builder_init(&b, buffer, sizeof(buffer));
    rn_builder_key(&b, ration_text_of("a/b=c%d"));
    rn_builder_char(&b, '|');
    rn_builder_key(&b, ration_text_of(""));
    rn_builder_key(&b, ration_text_of("=="));
    rn_builder_char(&b, '|');
    rn_builder_key(&b, ration_text_of("plain"));
    CHECK_STR(buffer, "a%2Fb%3Dc%25d|%3D%3D|plain");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),     cmocka_unit_test(amounts),          cmocka_unit_test(durations),
        cmocka_unit_test(milliseconds), cmocka_unit_test(instants),         cmocka_unit_test(what_does_not_fit_is_cut),
        cmocka_unit_test(keys),         cmocka_unit_test(no_buffer_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
