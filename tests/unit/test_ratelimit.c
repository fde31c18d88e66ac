/* SPDX-License-Identifier: MIT */
/* The fields that tell a client where its limits stand. */
#include "serve/ratelimit.h"

#include <string.h>

#include "support/check.h"

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)

#define LONG64 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define LONG256 LONG64 LONG64 LONG64 LONG64

static const struct {
    const char *why;
    rn_standing all[3];
    size_t count;
    const char *policy, *limit; /* NULL: no fields */
} rows[] = {
    {"nothing to tell", {{0}}, 0, NULL, NULL},
    {"a day",
     {{"daily", false, 1000 * UNIT, 86400 * SECOND, 12 * UNIT, 3600 * SECOND}},
     1,
     "\"daily\";q=1000;w=86400",
     "\"daily\";r=12;t=3600"},
    {"units round down, seconds up",
     {{"r", false, 3 * UNIT + 999999, SECOND + 1, UNIT - 1, 1}},
     1,
     "\"r\";q=3;w=2",
     "\"r\";r=0;t=1"},
    {"a window is never nothing", {{"r", false, UNIT, 0, 0, 0}}, 1, "\"r\";q=1;w=1", "\"r\";r=0;t=0"},
    {"a rolling window",
     {{"roll", false, UNIT, 60 * SECOND, UNIT, RATION_UNSET}},
     1,
     "\"roll\";q=1;w=60",
     "\"roll\";r=1"},
    {"cost has its unit",
     {{"tokens", true, 90000 * UNIT, 60 * SECOND, 5 * UNIT, SECOND}},
     1,
     "\"tokens\";q=90000;qu=\"cost\";w=60",
     "\"tokens\";r=5;t=1"},
    {"several, in their order",
     {{"a", false, UNIT, SECOND, 0, SECOND}, {"b", false, 2 * UNIT, SECOND, UNIT, SECOND}},
     2,
     "\"a\";q=1;w=1, \"b\";q=2;w=1",
     "\"a\";r=0;t=1, \"b\";r=1;t=1"},
    {"the most that can be counted",
     {{"m", false, RATION_UNITS_MAX, RATION_TIME_MAX_US, RATION_UNITS_MAX, RATION_TIME_MAX_US}},
     1,
     "\"m\";q=9007199254;w=9007199255",
     "\"m\";r=9007199254;t=9007199255"},
    {"quotes and backslashes",
     {{"a\"b\\c", false, UNIT, SECOND, 0, SECOND}},
     1,
     "\"a\\\"b\\\\c\";q=1;w=1",
     "\"a\\\"b\\\\c\";r=0;t=1"},
    {"other letters, and what would end a line",
     {{"t\xc3\xa4glich\r\n", false, UNIT, SECOND, 0, SECOND}},
     1,
     "\"t%C3%A4glich%0D%0A\";q=1;w=1",
     "\"t%C3%A4glich%0D%0A\";r=0;t=1"},
    {"no room for a second long name",
     {{LONG256, false, UNIT, SECOND, 0, SECOND}, {LONG256, false, UNIT, SECOND, 0, SECOND}},
     2,
     "\"" LONG256 "\";q=1;w=1",
     "\"" LONG256 "\";r=0;t=1"},
    {"none for the first", {{LONG256 LONG256, false, UNIT, SECOND, 0, SECOND}}, 1, NULL, NULL},
};

static void what_is_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buffer[RN_RATELIMIT_BYTES];
        rn_http_field fields[RN_RATELIMIT_FIELDS];

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_ratelimit_write(rows[i].all, rows[i].count, buffer, fields), rows[i].policy != NULL ? 2 : 0);
        if (rows[i].policy == NULL)
            continue;
        CHECK_TEXT(fields[0].name, "RateLimit-Policy");
        CHECK_TEXT(fields[0].value, rows[i].policy);
        CHECK_TEXT(fields[1].name, "RateLimit");
        CHECK_TEXT(fields[1].value, rows[i].limit);
    }
}

static void what_a_provider_tells(void **state)
{
    static const struct {
        const char *name;
        bool told;
    } names[] = {
        {"RateLimit", true},        {"ratelimit-policy", true}, {"RateLimit-Remaining", true},
        {"RATELIMIT-LIMIT", true},  {"RateLimit-Reset", true},  {"X-RateLimit-Limit", false},
        {"RateLimit-Other", false}, {"Retry-After", false},     {"R", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const rn_http_field fields[] = {{ration_text_of("Date"), ration_text_of("x")},
                                        {ration_text_of(names[i].name), ration_text_of("x")}};

        CHECK_ROW(names[i].name);
        CHECK_EQ(rn_ratelimit_is_told((rn_http_fields){fields, 2}), names[i].told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written),
        cmocka_unit_test(what_a_provider_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
