/* SPDX-License-Identifier: MIT */
#include "support/check.h"

#include "base/text.h"

static const ration_text absent;

static ration_text of(const char *s)
{
    return ration_text_of(s);
}

static void equality(void **state)
{
    static const struct {
        const char *why, *a, *b;
        bool same, same_nocase;
        int order;
    } rows[] = {
        {"same", "abc", "abc", true, true, 0},
        {"another letter", "abc", "abd", false, false, -1},
        {"case", "Content-TYPE", "content-type", false, true, -1},
        {"only ASCII has cases", "\xc3\x84", "\xc3\xa4", false, false, -1},
        {"no case next to the letters", "@[`{", "`{@[", false, false, -1},
        {"shorter first", "ab", "abc", false, false, -1},
        {"bytes before length", "b", "abc", false, false, 1},
        {"bytes are unsigned", "\x80", "z", false, false, 1},
        {"absent like empty", NULL, "", true, true, 0},
        {"both absent", NULL, NULL, true, true, 0},
        {"absent first", NULL, "a", false, false, -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_text_eq(of(rows[i].a), of(rows[i].b)), rows[i].same);
        CHECK_EQ(rn_text_is(of(rows[i].b), rows[i].a), rows[i].same);
        CHECK_EQ(rn_text_eq_nocase(of(rows[i].a), of(rows[i].b)), rows[i].same_nocase);
        CHECK_EQ(rn_text_is_nocase(of(rows[i].b), rows[i].a), rows[i].same_nocase);
        CHECK_EQ(rn_text_compare(of(rows[i].a), of(rows[i].b)), rows[i].order);
        CHECK_EQ(rn_text_compare(of(rows[i].b), of(rows[i].a)), -rows[i].order);
    }
}

static void parts(void **state)
{
    size_t at = 77;

    (void)state;
    CHECK_TEXT(rn_text_trim(of(" \t a b\t ")), "a b");
    CHECK_TEXT(rn_text_trim(of(" \t ")), "");
    CHECK_TEXT(rn_text_trim(of("\na\r")), "\na\r");
    CHECK_TEXT(rn_text_trim(absent), NULL);
    CHECK_TEXT(rn_text_slice(of("abcdef"), 2, 4), "cd");
    CHECK_TEXT(rn_text_slice(of("abc"), 1, 99), "bc");
    CHECK_TEXT(rn_text_slice(of("abc"), 98, 99), "");
    CHECK_TEXT(rn_text_slice(of("abc"), 2, 1), "");
    CHECK_TEXT(rn_text_slice(absent, 0, 5), NULL);

    CHECK(rn_text_find(of("aabab"), of("ab"), &at));
    CHECK_EQ(at, 1);
    CHECK(rn_text_find(of("abc"), of("c"), NULL));
    CHECK(rn_text_find(of("abc"), of(""), &at));
    CHECK_EQ(at, 0);
    CHECK(rn_text_find(absent, absent, &at));
    at = 77;
    CHECK(!rn_text_find(of("abc"), of("abcd"), &at));
    CHECK(!rn_text_find(of("abc"), of("x"), &at));
    CHECK(!rn_text_find(absent, of("x"), &at));
    CHECK_EQ(at, 77);
}

static void utf8(void **state)
{
    static const struct {
        const char *why, *input;
        bool good;
    } rows[] = {
        {"nothing", "", true},
        {"absent", NULL, true},
        {"ASCII", "plain \x7f", true},
        {"two to four bytes", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", true},
        {"the ends of each form",
         "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", true},
        {"a lone continuation", "a\x80", false},
        {"overlong two", "\xc0\xaf", false},
        {"overlong two, c1", "\xc1\xbf", false},
        {"overlong three", "\xe0\x9f\xbf", false},
        {"overlong four", "\xf0\x8f\xbf\xbf", false},
        {"a surrogate", "\xed\xa0\x80", false},
        {"beyond the last", "\xf4\x90\x80\x80", false},
        {"no such first byte", "\xf5\x80\x80\x80", false},
        {"cut after one", "\xe2", false},
        {"cut after two", "\xe2\x82", false},
        {"a letter in third place", "\xe2\x82z", false},
        {"a letter in fourth place", "\xf0\x9f\x98z", false},
        {"latin-1", "\xe4pfel", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_text_is_utf8(of(rows[i].input)), rows[i].good);
    }
    CHECK_EQ(rn_text_character(of("")), 0);
    CHECK_EQ(rn_text_character(of("ab")), 1);
    CHECK_EQ(rn_text_character(of("\xf0\x9f\x98\x80z")), 4);
    CHECK_EQ(rn_text_character((ration_text){"\xe2\x82\xac", 2}), 0);
    CHECK_EQ(rn_text_character(of("\x80z")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equality),
        cmocka_unit_test(parts),
        cmocka_unit_test(utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
