/* SPDX-License-Identifier: MIT */
#include "support/check.h"

#include "base/text.h"
#include "base/units.h"

#define UNTOUCHED INT64_C(-77)
#define SYNTAX RATION_ERR_SYNTAX
#define RANGE RATION_ERR_RANGE
#define S INT64_C(1000000)

typedef struct row {
    const char *input;
    int rc;
    int64_t want;
} row;

static void check_rows(int (*parse)(ration_text, int64_t *), const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t got = UNTOUCHED;

        CHECK_ROW(rows[i].input);
        CHECK_EQ(parse(ration_text_of(rows[i].input), &got), rows[i].rc);
        CHECK_EQ(got, rows[i].rc == RATION_OK ? rows[i].want : UNTOUCHED);
    }
}

#define CHECK_ROWS(parse, rows) check_rows((parse), (rows), sizeof(rows) / sizeof((rows)[0]))

static void amounts(void **state)
{
    static const row rows[] = {
        {"0", 0, 0},
        {"1", 0, S},
        {"48.5", 0, 48500000},
        {"0.000001", 0, 1},
        {"007.10", 0, 7100000},
        {"0.123456", 0, 123456},
        {"9007199254.740992", 0, RATION_UNITS_MAX},
        {"9007199254.740993", RANGE, 0},
        {"9007199255", RANGE, 0},
        {"99999999999999999999999999999999", RANGE, 0},
        {"99999999999999999999999999999999.5", RANGE, 0},
        {"00000000000000000000000000000001", 0, S},
        {"0.1234567", SYNTAX, 0},
        {"0.0000000", SYNTAX, 0},
        {"1.00000000000000000000000000000000", SYNTAX, 0},
        {"99999999999999999999999999999999x", SYNTAX, 0},
        {"", SYNTAX, 0},
        {NULL, SYNTAX, 0},
        {"-1", SYNTAX, 0},
        {"+1", SYNTAX, 0},
        {"-0", SYNTAX, 0},
        {".5", SYNTAX, 0},
        {"5.", SYNTAX, 0},
        {".", SYNTAX, 0},
        {"1.2.3", SYNTAX, 0},
        {" 1", SYNTAX, 0},
        {"1 ", SYNTAX, 0},
        {"1\n", SYNTAX, 0},
        {"x1", SYNTAX, 0},
        {"1x", SYNTAX, 0},
        {"1e3", SYNTAX, 0},
        {"0x10", SYNTAX, 0},
        {"1,5", SYNTAX, 0},
        {"NaN", SYNTAX, 0},
        {"inf", SYNTAX, 0},
        {"\xd9\xa1", SYNTAX, 0},
    };

    (void)state;
    CHECK_ROWS(rn_parse_micro, rows);
}

static void integers(void **state)
{
    static const row rows[] = {
        {"0", 0, 0},
        {"-0", 0, 0},
        {"12", 0, 12},
        {"-12", 0, -12},
        {"0012", 0, 12},
        {"9223372036854775807", 0, INT64_MAX},
        {"-9223372036854775808", 0, INT64_MIN},
        {"9223372036854775808", RANGE, 0},
        {"-9223372036854775809", RANGE, 0},
        {"99999999999999999999999999", RANGE, 0},
        {"99999999999999999999999999 ", SYNTAX, 0},
        {"", SYNTAX, 0},
        {NULL, SYNTAX, 0},
        {"-", SYNTAX, 0},
        {"--1", SYNTAX, 0},
        {"+1", SYNTAX, 0},
        {"1.0", SYNTAX, 0},
        {" 1", SYNTAX, 0},
        {"1-", SYNTAX, 0},
    };

    (void)state;
    CHECK_ROWS(rn_parse_int, rows);
}

static void milliseconds(void **state)
{
    static const row rows[] = {
        {"0", 0, 0},
        {"333.334", 0, 333334},
        {"-1000", 0, -S},
        {"-0.001", 0, -1},
        {"0.5", 0, 500},
        {"9007199254740.992", 0, RATION_TIME_MAX_US},
        {"-9007199254740.992", 0, -RATION_TIME_MAX_US},
        {"9007199254740.993", RANGE, 0},
        {"99999999999999999999999999", RANGE, 0},
        {"0.0001", SYNTAX, 0},
        {"", SYNTAX, 0},
        {"-", SYNTAX, 0},
        {"- 1", SYNTAX, 0},
        {"1e3", SYNTAX, 0},
    };

    (void)state;
    CHECK_ROWS(rn_parse_ms, rows);
}

static void durations(void **state)
{
    static const row rows[] = {
        {"0", 0, 0},
        {"0s", 0, 0},
        {"250us", 0, 250},
        {"20ms", 0, 20000},
        {"10s", 0, 10 * S},
        {"1.5s", 0, 1500000},
        {"0.000001s", 0, 1},
        {"1h30m", 0, 5400 * S},
        {"1h0.5m", 0, 3630 * S},
        {"6m0s", 0, 360 * S},
        {"1m30ms", 0, 60030000},
        {"7d", 0, 604800 * S},
        {"1d2h3m4s5ms6us", 0, INT64_C(93784005006)},
        {"0.1d", 0, 8640 * S},
        {"90m", 0, 5400 * S},
        {"9007199254740992us", 0, RATION_TIME_MAX_US},
        {"9007199254740993us", RANGE, 0},
        {"104249d", 0, 104249 * (86400 * S)},
        {"104250d", RANGE, 0},
        {"104249d99999999999999999999999h", RANGE, 0},
        {"99999999999999999999999999s", RANGE, 0},
        {"1.5us", SYNTAX, 0},
        {"0.0000001s", SYNTAX, 0},
        {"0.0001ms", SYNTAX, 0},
        {"1.5h30m", SYNTAX, 0},
        {"30m1h", SYNTAX, 0},
        {"1h1h", SYNTAX, 0},
        {"1us1ms", SYNTAX, 0},
        {"10", SYNTAX, 0},
        {"00", SYNTAX, 0},
        {"0.0", SYNTAX, 0},
        {"s", SYNTAX, 0},
        {"", SYNTAX, 0},
        {NULL, SYNTAX, 0},
        {"-1s", SYNTAX, 0},
        {"+1s", SYNTAX, 0},
        {"1 s", SYNTAX, 0},
        {" 1s", SYNTAX, 0},
        {"1s ", SYNTAX, 0},
        {"1h 30m", SYNTAX, 0},
        {"1.s", SYNTAX, 0},
        {".5s", SYNTAX, 0},
        {"1S", SYNTAX, 0},
        {"1w", SYNTAX, 0},
        {"1sec", SYNTAX, 0},
        {"1h30", SYNTAX, 0},
        {"1e3s", SYNTAX, 0},
    };

    (void)state;
    CHECK_ROWS(rn_parse_duration, rows);
}

static void rates(void **state)
{
    static const struct {
        const char *input;
        int rc;
        int64_t units, per_us;
    } rows[] = {
        {"10/s", 0, 10 * S, S},
        {"600/m", 0, 600 * S, 60 * S},
        {"0.5/h", 0, 500000, 3600 * S},
        {"1/d", 0, S, 86400 * S},
        {"100/15m", 0, 100 * S, 900 * S},
        {"1/1h30m", 0, S, 5400 * S},
        {"1/250us", 0, S, 250},
        {"1/1.5s", 0, S, 1500000},
        {"0.000001/s", 0, 1, S},
        {"0/s", RANGE, 0, 0},
        {"0.000000/s", RANGE, 0, 0},
        {"1/0", RANGE, 0, 0},
        {"1/0s", RANGE, 0, 0},
        {"9007199255/s", RANGE, 0, 0},
        {"1/104250d", RANGE, 0, 0},
        {"9007199255/x", SYNTAX, 0, 0},
        {"", SYNTAX, 0, 0},
        {"/", SYNTAX, 0, 0},
        {"10", SYNTAX, 0, 0},
        {"10/", SYNTAX, 0, 0},
        {"/s", SYNTAX, 0, 0},
        {"10/s/s", SYNTAX, 0, 0},
        {"10/ms", SYNTAX, 0, 0},
        {"10/1", SYNTAX, 0, 0},
        {"10/w", SYNTAX, 0, 0},
        {"-1/s", SYNTAX, 0, 0},
        {"1/-1s", SYNTAX, 0, 0},
        {"10 /s", SYNTAX, 0, 0},
        {"10/ s", SYNTAX, 0, 0},
        {"10/s ", SYNTAX, 0, 0},
        {"10/second", SYNTAX, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ration_rate got = {UNTOUCHED, UNTOUCHED};

        CHECK_ROW(rows[i].input);
        CHECK_EQ(rn_parse_rate(ration_text_of(rows[i].input), &got), rows[i].rc);
        CHECK_EQ(got.units, rows[i].rc == RATION_OK ? rows[i].units : UNTOUCHED);
        CHECK_EQ(got.per_us, rows[i].rc == RATION_OK ? rows[i].per_us : UNTOUCHED);
    }
}

static void ratios(void **state)
{
    static const struct {
        const char *input;
        int rc;
        int32_t num, den;
    } rows[] = {
        {"80%", 0, 4, 5},
        {"0.8", 0, 4, 5},
        {"4/5", 0, 4, 5},
        {"8/10", 0, 4, 5},
        {"33.3%", 0, 333, 1000},
        {"33.3333%", 0, 333333, 1000000},
        {"12.50000%", 0, 1, 8},
        {"100%", 0, 1, 1},
        {"1", 0, 1, 1},
        {"1.000000", 0, 1, 1},
        {"0", 0, 0, 1},
        {"0%", 0, 0, 1},
        {"0/5", 0, 0, 1},
        {"5/5", 0, 1, 1},
        {"1/1000000", 0, 1, 1000000},
        {"2000000/4000000", 0, 1, 2},
        {"0.000001", 0, 1, 1000000},
        {"1/0", RANGE, 0, 0},
        {"0/0", RANGE, 0, 0},
        {"5/4", RANGE, 0, 0},
        {"101%", RANGE, 0, 0},
        {"100.0001%", RANGE, 0, 0},
        {"1.000001", RANGE, 0, 0},
        {"2", RANGE, 0, 0},
        {"1/1000001", RANGE, 0, 0},
        {"33.33333%", RANGE, 0, 0},
        {"99999999999999999999/99999999999999999999", RANGE, 0, 0},
        {"1/99999999999999999999", RANGE, 0, 0},
        {"99999999999999999999%", RANGE, 0, 0},
        {"", SYNTAX, 0, 0},
        {NULL, SYNTAX, 0, 0},
        {"%", SYNTAX, 0, 0},
        {"/", SYNTAX, 0, 0},
        {"1/", SYNTAX, 0, 0},
        {"/2", SYNTAX, 0, 0},
        {"1/2/3", SYNTAX, 0, 0},
        {"1/2%", SYNTAX, 0, 0},
        {"0.5/1", SYNTAX, 0, 0},
        {"1/2.0", SYNTAX, 0, 0},
        {"-1/2", SYNTAX, 0, 0},
        {"1/-2", SYNTAX, 0, 0},
        {"+50%", SYNTAX, 0, 0},
        {"50 %", SYNTAX, 0, 0},
        {"50%%", SYNTAX, 0, 0},
        {" 50%", SYNTAX, 0, 0},
        {"0.8000000", SYNTAX, 0, 0},
        {".8", SYNTAX, 0, 0},
        {"NaN", SYNTAX, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ration_ratio got = {-77, -77};

        CHECK_ROW(rows[i].input);
        CHECK_EQ(rn_parse_ratio(ration_text_of(rows[i].input), &got), rows[i].rc);
        CHECK_EQ(got.num, rows[i].rc == RATION_OK ? rows[i].num : -77);
        CHECK_EQ(got.den, rows[i].rc == RATION_OK ? rows[i].den : -77);
    }
}

/* A text is pointer and length: what stands behind it does not count, and a NUL inside is no end. */
static void only_the_text_counts(void **state)
{
    const ration_text front = {"12345", 2};
    const ration_text nul = {"1\0002", 3};
    int64_t got = UNTOUCHED;

    (void)state;
    CHECK_EQ(rn_parse_int(front, &got), RATION_OK);
    CHECK_EQ(got, 12);
    CHECK_EQ(rn_parse_int(nul, &got), RATION_ERR_SYNTAX);
    CHECK_EQ(rn_parse_micro(nul, &got), RATION_ERR_SYNTAX);
    CHECK_EQ(rn_parse_duration(nul, &got), RATION_ERR_SYNTAX);
    CHECK_EQ(got, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts),
        cmocka_unit_test(integers),
        cmocka_unit_test(milliseconds),
        cmocka_unit_test(durations),
        cmocka_unit_test(rates),
        cmocka_unit_test(ratios),
        cmocka_unit_test(only_the_text_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
