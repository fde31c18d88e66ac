/* SPDX-License-Identifier: MIT */
/* Percent-encoding in segments of paths: one name, however it is written, and one text of a key for one value. */
#include "base/percent.h"

#include "support/check.h"

static void test_equal(void **state)
{
    static const struct {
        const char *a, *b;
        bool want;
    } rows[] = {
        {"", "", true},          {"abc", "abc", true},   {"abc", "abd", false},  {"abc", "ab", false},
        {"ab", "abc", false},    {"a%62c", "abc", true}, {"abc", "a%62c", true}, {"%61", "%61", true},
        {"%2f", "%2F", true},    {"a/b", "a%2Fb", true}, {"%25", "%", true},     {"%2561", "a", false},
        {"%2561", "%61", false}, {"%4", "%4", true},     {"%g1", "%g1", true},   {"%4g", "Jg", false},
        {"%", "%", true},        {"a%", "a", false},     {"%00", "", false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].a);
        CHECK_EQ(rn_percent_eq(ration_text_of(rows[i].a), ration_text_of(rows[i].b)), rows[i].want);
    }
    CHECK_ROW(NULL);
}

static void test_keys(void **state)
{
    static const struct {
        const char *why, *value, *encoded, *plain; /* what becomes of it in a path, and as it is meant */
    } rows[] = {
        {"nothing", "", "", ""},
        {"a name", "549236", "549236", "549236"},
        {"a name with needless codes", "54%39236", "549236", "54%2539236"},
        {"a quote", "%22", "\"", "%2522"},
        {"a slash", "a%2fb", "a%2Fb", "a%252fb"},
        {"one that is no code", "a/b", "a%2Fb", "a%2Fb"},
        {"an equals sign", "a=b%3D", "a%3Db%3D", "a%3Db%253D"},
        {"a percent sign", "100%25", "100%25", "100%2525"},
        {"one that begins no code", "100%", "100%25", "100%25"},
        {"nor here", "%zz%4", "%25zz%254", "%25zz%254"},
        {"a blank", "a%20b", "a b", "a%2520b"},
        {"a control character", "a%0Ab", "a%0Ab", "a%250Ab"},
        {"itself", "a\nb\x7F", "a%0Ab%7F", "a%0Ab%7F"},
        {"UTF-8", "%C3%A9%e2%82%ac", "\xC3\xA9\xE2\x82\xAC", "%25C3%25A9%25e2%2582%25ac"},
        {"itself again", "\xC3\xA9", "\xC3\xA9", "\xC3\xA9"},
        {"C1", "%C2%9B[2J", "%C2%9B[2J", "%25C2%259B[2J"},
        {"half of a character", "%C3x", "%C3x", "%25C3x"},
        {"at the end", "x%E2%82", "x%E2%82", "x%25E2%2582"},
        {"no UTF-8", "\xFF%ff", "%FF%FF", "%FF%25ff"},
        {"four bytes and more", "%F0%9F%98%80%F0%9F%98%80", "\xF0\x9F\x98\x80\xF0\x9F\x98\x80",
         "%25F0%259F%2598%2580%25F0%259F%2598%2580"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_text value = ration_text_of(rows[i].value);
        char buffer[128];
        rn_builder b;

        CHECK_ROW(rows[i].why);
        rn_builder_init(&b, buffer, sizeof buffer);
        rn_percent_key(&b, value, true);
        CHECK_TEXT(((ration_text){buffer, b.used}), rows[i].encoded);
        rn_builder_init(&b, buffer, sizeof buffer);
        rn_percent_key(&b, value, false);
        CHECK_TEXT(((ration_text){buffer, b.used}), rows[i].plain);
    }
    CHECK_ROW(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
