/* SPDX-License-Identifier: MIT */
/* Bodies of POST /v1/runs: those that are understood, and what is said of the others. */
#include "serve/run_body.h"

#include "base/mem.h"
#include "base/text.h"

#include "support/check.h"

static void test_read(void **state)
{
    static const struct {
        const char *body, *job;
        int64_t requests, retries, fan_out, children, took_us;
    } rows[] = {
        {"{\"job\":\"a\",\"requests\":3}", "a", 3, 0, 0, RATION_UNSET, 0},
        {"{\"took\":1.5,\"fanOut\":7,\"retries\":2,\"requests\":3,\"job\":\"a\"}", "a", 3, 2, 7, 7, 1500},
        {" { \"job\" : \"\\u00e9/\\\"\" , \"requests\" : 0 , \"fanOut\" : 0 } ", "\xC3\xA9/\"", 0, 0, 0, 0, 0},
        {"{\"j\\u006fb\":\"a\",\"requests\":3e2}", "a", 300, 0, 0, RATION_UNSET, 0},
        {"{\"job\":\"a\",\"requests\":9007199254,\"took\":9007199254740.992}", "a", 9007199254, 0, 0, RATION_UNSET,
         RATION_TIME_MAX_US},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_run_body got = {.took_us = -1};
        rn_trace_fault fault;
        rn_arena arena;

        CHECK_ROW(rows[i].body);
        rn_arena_init(&arena, rn_mem_default());
        CHECK_EQ(rn_run_body_read(ration_text_of(rows[i].body), &arena, &got, &fault), RATION_OK);
        CHECK_TEXT(got.job, rows[i].job);
        CHECK_EQ(got.run.requests, rows[i].requests);
        CHECK_EQ(got.run.retries, rows[i].retries);
        CHECK_EQ(got.run.fan_out, rows[i].fan_out);
        CHECK_EQ(got.children, rows[i].children);
        CHECK_EQ(got.took_us, rows[i].took_us);
        rn_arena_fini(&arena);
    }
}

#define LONG "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"

static void test_faults(void **state)
{
    static const struct {
        const char *body, *member, *text;
        size_t column;
    } rows[] = {
        {"", "", "the body is one JSON object", 1},
        {"[]", "", "the body is one JSON object", 1},
        {"{}", "job", "a run without \"job\"", 1},
        {"{\"job\":\"a\"}", "requests", "a run without \"requests\"", 1},
        {"{\"requests\":1}", "job", "a run without \"job\"", 1},
        {"{\"job\":7,\"requests\":1}", "job", "a number where a text should be", 8},
        {"{\"job\":\"\",\"requests\":1}", "job", "an empty name", 8},
        {"{\"job\":\"a\",\"requests\":\"1\"}", "requests", "a text where a number should be", 23},
        {"{\"job\":\"a\",\"requests\":null}", "requests", "null where a number should be", 23},
        {"{\"job\":\"a\",\"requests\":1.5}", "requests", "1.5 is no whole number", 23},
        {"{\"job\":\"a\",\"requests\":-1}", "requests", "-1 is too small", 23},
        {"{\"job\":\"a\",\"requests\":9007199255}", "requests", "9007199255 is too large", 23},
        {"{\"job\":\"a\",\"requests\":1e400}", "requests", "1e400 is too large", 23},
        {"{\"job\":\"a\",\"requests\":1,\"retries\":-2}", "retries", "-2 is too small", 35},
        {"{\"job\":\"a\",\"requests\":1,\"fanOut\":[1]}", "fanOut", "an array where a number should be", 34},
        {"{\"job\":\"a\",\"requests\":1,\"fanOut\":1000000001}", "fanOut", "1000000001 is too large", 34},
        {"{\"job\":\"a\",\"requests\":1,\"took\":0.0001}", "took", "0.0001 has more than 3 places", 32},
        {"{\"job\":\"a\",\"requests\":1,\"took\":9007199254740.993}", "took", "9007199254740.993 is too large", 32},
        {"{\"job\":\"a\",\"requests\":1,\"requests\":1}", "requests", "\"requests\" occurs twice", 25},
        {"{\"job\":\"a\",\"requests\":1,\"request\":1}", "request", "a run has no member \"request\" (requests?)", 25},
        {"{\"job\":\"a\",\"requests\":1,\"\xC3\xA9\":1}", "\xC3\xA9", "a run has no member \"\xC3\xA9\"", 25},
        {"{\"" LONG "\":1}", "abcdefghijklmnopqrstuvwxyzabcdefghijklmn",
         "a run has no member \"abcdefghijklmnopqrstuvwxyzabcdefghijklmn\"", 2},
        {"{\"job\":\"a\",\"requests\":01}", "", NULL, 23},
        {"{\"job\":\"a\",\"requests\":1", "", NULL, 24},
        {"{\"job\":\"a\",\"requests\":1}x", "", NULL, 25},
        {"{\"job\":\"\\ud800\",\"requests\":1}", "", NULL, 9},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_run_body got = {.took_us = -1};
        rn_trace_fault fault = {0};
        rn_arena arena;

        CHECK_ROW(rows[i].body);
        rn_arena_init(&arena, rn_mem_default());
        CHECK_EQ(rn_run_body_read(ration_text_of(rows[i].body), &arena, &got, &fault), RATION_ERR_SYNTAX);
        CHECK_STR(fault.member, rows[i].member);
        CHECK_EQ(fault.column, rows[i].column);
        if (rows[i].text != NULL) {
            CHECK_STR(fault.text, rows[i].text);
        } else {
            CHECK(fault.text[0] != '\0');
        }
        CHECK_EQ(got.took_us, -1);
        rn_arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests_name("run_body", tests, NULL, NULL);
}
