/* SPDX-License-Identifier: MIT */
/* From a client's target to the provider's: what is cut off, and that nothing else is touched. */
#include "serve/route.h"

#include "support/check.h"

static void test_parse(void **state)
{
    static const struct {
        const char *why, *target, *account, *path, *rest;
    } rows[] = {
        {"usual", "/acme/v1/things?x=1", "acme", "/v1/things", "/v1/things?x=1"},
        {"no path", "/acme", "acme", "/", ""},
        {"only a slash", "/acme/", "acme", "/", "/"},
        {"only a query", "/acme?x=/y", "acme", "/", "?x=/y"},
        {"dots stay", "/acme/../globex/x", "acme", "/../globex/x", "/../globex/x"},
        {"an encoded slash stays", "/acme/a%2Fb", "acme", "/a%2Fb", "/a%2Fb"},
        {"an encoded slash is part of the account", "/acme%2Fglobex/x", "acme%2Fglobex", "/x", "/x"},
        {"doubled slashes stay", "/acme//x//y", "acme", "//x//y", "//x//y"},
        {"a second question mark stays", "/a/x?b?c", "a", "/x", "/x?b?c"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_route got;

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_route_parse(ration_text_of(rows[i].target), &got), RATION_OK);
        CHECK_TEXT(got.account, rows[i].account);
        CHECK_TEXT(got.path, rows[i].path);
        CHECK(got.rest.size == strlen(rows[i].rest) && memcmp(got.rest.data, rows[i].rest, got.rest.size) == 0);
    }
}

static void test_refused(void **state)
{
    static const char *const targets[] = {
        "",       "/",        "*",         "//acme/x",       "/?x",        "http://other.example/acme/x",
        "acme/x", "host:443", "/acme/a b", "/acme/\xc3\xa9", "/acme/\x7f", "/acme/\x01",
    };
    (void)state;

    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        rn_route got;

        CHECK_ROW(targets[i]);
        CHECK_EQ(rn_route_parse(ration_text_of(targets[i]), &got), RATION_ERR_SYNTAX);
    }
}

static void test_decode(void **state)
{
    static const struct {
        const char *why, *segment;
        int err;
        const char *want;
    } rows[] = {
        {"plain", "acme", RATION_OK, "acme"},
        {"escape", "ac%6De", RATION_OK, "acme"},
        {"small hex", "%c3%a9", RATION_OK, "\xc3\xa9"},
        {"a slash", "a%2Fb", RATION_OK, "a/b"},
        {"cut after the sign", "a%", RATION_ERR_SYNTAX, NULL},
        {"cut after one digit", "a%4", RATION_ERR_SYNTAX, NULL},
        {"no hex", "a%4g", RATION_ERR_SYNTAX, NULL},
        {"just fits", "12345678", RATION_OK, "12345678"},
        {"too long", "123456789", RATION_ERR_RANGE, NULL},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buffer[8];
        ration_text got = {NULL, 0};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_route_decode(ration_text_of(rows[i].segment), buffer, sizeof buffer, &got), rows[i].err);
        CHECK_TEXT(got, rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_decode),
    };

    return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
