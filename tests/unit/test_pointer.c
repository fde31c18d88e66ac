/* SPDX-License-Identifier: MIT */
/* JSON pointers: what is one, and its steps. The examples of RFC 6901 among them. */
#include "support/check.h"

#include "base/mem.h"
#include "base/pointer.h"

static const struct {
    const char *why;
    const char *text;
    int err;
    size_t count;
    const char *first; /* step; NULL: none */
    const char *last;
} rows[] = {
    {"the whole text", "", RATION_OK, 0, NULL, NULL},
    {"one step", "/foo", RATION_OK, 1, "foo", "foo"},
    {"two", "/usage/total_tokens", RATION_OK, 2, "usage", "total_tokens"},
    {"an index is a step", "/foo/0", RATION_OK, 2, "foo", "0"},
    {"an empty step", "/", RATION_OK, 1, "", ""},
    {"two empty ones", "//", RATION_OK, 2, "", ""},
    {"an escaped slash", "/a~1b", RATION_OK, 1, "a/b", "a/b"},
    {"an escaped tilde", "/m~0n", RATION_OK, 1, "m~n", "m~n"},
    {"from left to right, once", "/~01", RATION_OK, 1, "~1", "~1"},
    {"other signs stand for themselves", "/c%d/ /k\"l", RATION_OK, 3, "c%d", "k\"l"},
    {"no slash before it", "foo", RATION_ERR_SYNTAX, 0, NULL, NULL},
    {"of a URL", "#/foo", RATION_ERR_SYNTAX, 0, NULL, NULL},
    {"a tilde at the end", "/a~", RATION_ERR_SYNTAX, 0, NULL, NULL},
    {"a tilde before another step", "/a~/b", RATION_ERR_SYNTAX, 0, NULL, NULL},
    {"a tilde that stands for nothing", "/a~2", RATION_ERR_SYNTAX, 0, NULL, NULL},
    {"as many steps as there may be", "////////////////////////////////a", RATION_OK, 32, "", "a"},
    {"one more",
     "////////////////////////////////"
     "/",
     RATION_ERR_RANGE, 0, NULL, NULL},
};

static void each_pointer_has_its_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_pointer pointer = {"untouched", NULL, 99};
        rn_arena arena;

        CHECK_ROW(rows[i].why);
        rn_arena_init(&arena, rn_mem_default());
        CHECK_EQ(rn_pointer_parse(&arena, ration_text_of(rows[i].text), &pointer), rows[i].err);
        CHECK_EQ(pointer.count, rows[i].err == RATION_OK ? rows[i].count : 99);
        CHECK_STR(pointer.text, rows[i].err == RATION_OK ? rows[i].text : "untouched");
        if (rows[i].first != NULL) {
            CHECK_TEXT(pointer.tokens[0], rows[i].first);
            CHECK_TEXT(pointer.tokens[pointer.count - 1], rows[i].last);
        }
        rn_arena_fini(&arena);
    }
}

static void its_length_has_an_end(void **state)
{
    char text[RN_POINTER_BYTES + 2];
    rn_pointer pointer;
    rn_arena arena;

    (void)state;
    memset(text, 'a', sizeof text);
    text[0] = '/';
    rn_arena_init(&arena, rn_mem_default());
    CHECK_EQ(rn_pointer_parse(&arena, (ration_text){text, RN_POINTER_BYTES}, &pointer), RATION_OK);
    CHECK_EQ(pointer.tokens[0].size, RN_POINTER_BYTES - 1);
    CHECK_EQ(rn_pointer_parse(&arena, (ration_text){text, RN_POINTER_BYTES + 1}, &pointer), RATION_ERR_RANGE);
    rn_arena_fini(&arena);
}

static void an_index_is_its_digits(void **state)
{
    static const struct {
        const char *token;
        uint64_t index;
        bool is;
    } indices[] = {
        {"0", 0, true},   {"7", 7, true},   {"10", 10, true},  {"18446744073709551615", UINT64_MAX, true},
        {"00", 0, false}, {"07", 7, false}, {"1", 10, false},  {"", 0, false},
        {"-", 0, false},  {"-0", 0, false}, {"1.0", 1, false}, {"18446744073709551616", 0, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof indices / sizeof indices[0]; i++) {
        CHECK_ROW(indices[i].token);
        CHECK_EQ(rn_pointer_is_index(ration_text_of(indices[i].token), indices[i].index), indices[i].is);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pointer_has_its_steps),
        cmocka_unit_test(its_length_has_an_end),
        cmocka_unit_test(an_index_is_its_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
