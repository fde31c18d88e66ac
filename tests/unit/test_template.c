/* SPDX-License-Identifier: MIT */
#include "support/check.h"

#include "base/mem.h"
#include "core/template.h"

static rn_arena arena;

static rn_template compiled(const char *text)
{
    rn_template template;

    CHECK_EQ(rn_template_init(&template, &arena, ration_text_of(text)), RATION_OK);
    return template;
}

static int setup(void **state)
{
    (void)state;
    rn_arena_init(&arena, rn_mem_default());
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rn_arena_fini(&arena);
    return 0;
}

static void paths_are_split(void **state)
{
    static const struct {
        const char *why;
        const char *path;
        size_t count;
        const char *last;
    } rows[] = {
        {"nothing", "", 0, NULL},
        {"the root", "/", 0, NULL},
        {"one segment", "/a", 1, "a"},
        {"a slash at the end", "/a/", 1, "a"},
        {"empty segments do not count", "//a///b//", 2, "b"},
        {"without a slash", "a/b", 2, "b"},
        {"up to a query", "/a/b?c=/d/e", 2, "b"},
        {"up to a fragment", "/a/b#/c", 2, "b"},
        {"a query alone", "?a/b", 0, NULL},
        {"dots are names", "/../.", 2, "."},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_path path;

        CHECK_ROW(rows[i].why);
        CHECK(rn_path_split(ration_text_of(rows[i].path), &path));
        CHECK_EQ(path.count, rows[i].count);
        if (path.count > 0)
            CHECK_TEXT(path.segment[path.count - 1], rows[i].last);
    }
    CHECK_ROW(NULL);
}

/* "/a" so many times. */
static ration_text long_path(char *buffer, size_t segments)
{
    for (size_t i = 0; i < segments; i++) {
        buffer[2 * i] = '/';
        buffer[2 * i + 1] = 'a';
    }
    return (ration_text){buffer, 2 * segments};
}

static void segments_are_bounded(void **state)
{
    char buffer[2 * (RN_SEGMENTS_MAX + 1)];
    rn_template template;
    rn_path path;

    (void)state;
    CHECK(rn_path_split(long_path(buffer, RN_SEGMENTS_MAX), &path));
    CHECK_EQ(path.count, RN_SEGMENTS_MAX);
    CHECK_EQ(rn_template_init(&template, &arena, long_path(buffer, RN_SEGMENTS_MAX)), RATION_OK);
    CHECK(rn_template_match(&template, &path, NULL));
    CHECK(!rn_path_split(long_path(buffer, RN_SEGMENTS_MAX + 1), &path));
    CHECK_EQ(rn_template_init(&template, &arena, long_path(buffer, RN_SEGMENTS_MAX + 1)), RATION_ERR_SYNTAX);
}

static void bad_templates_are_refused(void **state)
{
    static const struct {
        const char *why;
        const char *text;
    } rows[] = {
        {"nothing", ""},
        {"no slash in front", "a/b"},
        {"a star in front", "**"},
        {"a query", "/a?b"},
        {"a fragment", "/a#b"},
        {"an empty name", "/{}"},
        {"a variable that is not a whole segment", "/a{b}"},
        {"text behind a variable", "/{b}a"},
        {"two variables in a segment", "/{a}{b}"},
        {"a brace that stays open", "/{a"},
        {"a brace that was never opened", "/a}"},
        {"the other way round", "/}a{"},
        {"an opened brace alone", "/{"},
        {"a brace in a name", "/{a{b}"},
        {"a name that repeats", "/{a}/b/{a}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_template template;

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_template_init(&template, &arena, ration_text_of(rows[i].text)), RATION_ERR_SYNTAX);
    }
    CHECK_ROW(NULL);
}

static void matches(void **state)
{
    static const struct {
        const char *why;
        const char *template;
        const char *path;
        bool match;
    } rows[] = {
        {"the root", "/", "/", true},
        {"the root is not all", "/", "/a", false},
        {"letter by letter", "/a/b", "/a/b", true},
        {"case counts", "/a/b", "/a/B", false},
        {"a beginning is not enough", "/a/b", "/a", false},
        {"nor is more", "/a", "/a/b", false},
        {"a slash more at the end", "/a", "/a/", true},
        {"slashes doubled", "/a/b", "//a//b", true},
        {"the query is no part", "/a", "/a?x=1", true},
        {"a variable is one segment", "/o/{id}", "/o/7", true},
        {"not none", "/o/{id}", "/o/", false},
        {"not two", "/o/{id}", "/o/7/8", false},
        {"* is a whole segment", "/o/*/d", "/o/7/d", true},
        {"* is not none", "/o/*/d", "/o/d", false},
        {"* does not cross a slash", "/o/*", "/o/7/d", false},
        {"* within a segment", "/v*/x", "/v12/x", true},
        {"* may be nothing there", "/v*", "/v", true},
        {"* in the middle", "/a*z", "/abcz", true},
        {"* in the middle, nothing", "/a*z", "/az", true},
        {"* in the middle, no end", "/a*z", "/abc", false},
        {"two stars, tried again", "/*ab*ab", "/abxabab", true},
        {"stars at both ends", "/*b*", "/abc", true},
        {"the last of several", "/a*b*c", "/abbbcbc", true},
        {"nothing left for the last", "/a*b*c", "/abbb", false},
        {"*** is a star, within a segment", "/***", "/a", true},
        {"*** does not cross either", "/***", "/a/b", false},
        {"** is everything", "/**", "/a/b/c", true},
        {"** is nothing", "/**", "/", true},
        {"** behind a name is nothing", "/a/**", "/a", true},
        {"** behind a name is much", "/a/**", "/a/b/c/d", true},
        {"** does not eat the name", "/a/**", "/b", false},
        {"** in the middle", "/a/**/z", "/a/b/c/z", true},
        {"** in the middle, nothing", "/a/**/z", "/a/z", true},
        {"** in the middle, tried again", "/a/**/y/z", "/a/y/y/y/z", true},
        {"** in the middle, in vain", "/a/**/y/z", "/a/y/z/y", false},
        {"** twice", "/**/b/**/d", "/a/b/c/b/c/d", true},
        {"** twice, in vain", "/**/b/**/d", "/a/b/c/b/c", false},
        {"** at the end twice", "/a/**/**", "/a", true},
        {"a variable behind **", "/**/{id}", "/a/b", true},
        {"a variable behind ** needs one", "/**/{id}", "/", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_template template = compiled(rows[i].template);
        rn_path path;

        CHECK_ROW(rows[i].why);
        CHECK(rn_path_split(ration_text_of(rows[i].path), &path));
        CHECK_EQ(rn_template_match(&template, &path, NULL), rows[i].match);
    }
    CHECK_ROW(NULL);
}

static void variables_have_the_values_of_the_match(void **state)
{
    ration_text values[RN_SEGMENTS_MAX];
    const rn_template plain = compiled("/o/{org}/n/{net}");
    const rn_template late = compiled("/**/x/{id}");
    rn_path path;

    (void)state;
    CHECK(rn_path_split(ration_text_of("/o/7%2F/n/a=b"), &path));
    CHECK(rn_template_match(&plain, &path, values));
    CHECK_TEXT(values[1], "7%2F"); /* as it stands in the path */
    CHECK_TEXT(values[3], "a=b");

    /* The first x seems to do, the second does. */
    CHECK(rn_path_split(ration_text_of("/x/1/x/2"), &path));
    CHECK(rn_template_match(&late, &path, values));
    CHECK_TEXT(values[2], "2");
}

/* Nothing is exponential: this ends at once, or never. */
static void matching_does_not_blow_up(void **state)
{
    static const char hard[] = "/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b";
    char buffer[2 * RN_SEGMENTS_MAX];
    char stars[128] = "/";
    char letters[1 + 4000] = "/";
    const rn_template rest = compiled(hard);
    rn_path path;

    (void)state;
    CHECK(rn_path_split(long_path(buffer, RN_SEGMENTS_MAX), &path));
    CHECK(!rn_template_match(&rest, &path, NULL));

    for (size_t i = 1; i < 121; i += 2) {
        stars[i] = '*';
        stars[i + 1] = 'a';
    }
    memcpy(stars + 121, "*b", sizeof "*b");
    memset(letters + 1, 'a', sizeof letters - 1);

    const rn_template glob = compiled(stars);

    CHECK(rn_path_split((ration_text){letters, sizeof letters}, &path));
    CHECK(!rn_template_match(&glob, &path, NULL));
}

static void the_more_specific_one_is_known(void **state)
{
    static const struct {
        const char *why;
        const char *better;
        const char *worse;
    } rows[] = {
        {"a name before a variable", "/a/b", "/a/{x}"},   {"a variable before a star", "/a/{x}", "/a/*"},
        {"a star before the rest", "/a/*", "/a/**"},      {"the first difference counts", "/a/{x}/**", "/a/*/b"},
        {"one that ends before the rest", "/a", "/a/**"}, {"one that goes on by name", "/**/a", "/**"},
        {"the longer one", "/**/a/b", "/**/a"},
    };
    static const char *const equal[][2] = {{"/a/{x}", "/a/{y}"}, {"/a/x*", "/a/*y"}, {"/a", "/b"}, {"/", "/"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_template better = compiled(rows[i].better);
        const rn_template worse = compiled(rows[i].worse);

        CHECK_ROW(rows[i].why);
        CHECK(rn_template_beats(&better, &worse));
        CHECK(!rn_template_beats(&worse, &better));
    }
    CHECK_ROW(NULL);
    for (size_t i = 0; i < sizeof equal / sizeof equal[0]; i++) {
        const rn_template a = compiled(equal[i][0]);
        const rn_template b = compiled(equal[i][1]);

        CHECK_ROW(equal[i][0]);
        CHECK(!rn_template_beats(&a, &b));
        CHECK(!rn_template_beats(&b, &a));
    }
    CHECK_ROW(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_split),
        cmocka_unit_test(segments_are_bounded),
        cmocka_unit_test(bad_templates_are_refused),
        cmocka_unit_test(matches),
        cmocka_unit_test(variables_have_the_values_of_the_match),
        cmocka_unit_test(matching_does_not_blow_up),
        cmocka_unit_test(the_more_specific_one_is_known),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
