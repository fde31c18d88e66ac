/* SPDX-License-Identifier: MIT */
/* Which `traceparent` names a trace, by W3C Trace Context 3.2, and which names none. */
#include "serve/trace_context.h"

#include "base/mem.h"
#include "support/check.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define ZEROS "0000000000000000"

static void test_values(void **state)
{
    static const struct {
        const char *why, *value;
        bool valid;
    } rows[] = {
        {"of the standard", "00-" TRACE "-" PARENT "-01", true},
        {"not sampled", "00-" TRACE "-" PARENT "-00", true},
        {"flags nobody knows yet", "00-" TRACE "-" PARENT "-ff", true},
        {"an id with one digit that is not zero", "00-" ZEROS "0000000000000001-0000000000000001-01", true},
        {"a later version", "01-" TRACE "-" PARENT "-01", true},
        {"that goes on", "cc-" TRACE "-" PARENT "-01-what-the-future-brings", true},
        {"after a dash", "cc-" TRACE "-" PARENT "-01-", true},
        {"not after anything else", "cc-" TRACE "-" PARENT "-01.what", false},
        {"version 00 does not go on", "00-" TRACE "-" PARENT "-01-what", false},
        {"no version ff", "ff-" TRACE "-" PARENT "-01", false},
        {"a version in hexadecimal", "0g-" TRACE "-" PARENT "-01", false},
        {"no trace", "00-" ZEROS ZEROS "-" PARENT "-01", false},
        {"no parent", "00-" TRACE "-" ZEROS "-01", false},
        {"capitals in the trace", "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01", false},
        {"capitals in the parent", "00-" TRACE "-00F067AA0BA902B7-01", false},
        {"flags in hexadecimal", "00-" TRACE "-" PARENT "-0x", false},
        {"another letter in an id", "00-" TRACE "-00f067aa0ba902bg-01", false},
        {"no first dash", "00 " TRACE "-" PARENT "-01", false},
        {"no second dash", "00-" TRACE " " PARENT "-01", false},
        {"no third dash", "00-" TRACE "-" PARENT " 01", false},
        {"too short by one", "00-" TRACE "-" PARENT "-0", false},
        {"a later version, too short by one", "01-" TRACE "-" PARENT "-0", false},
        {"nothing", "", false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_trace_context context = {{"untouched", 9}, {NULL, 0}};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_trace_context_read(ration_text_of(rows[i].value), &context),
                 rows[i].valid ? RATION_OK : RATION_ERR_SYNTAX);
        CHECK_EQ(context.trace_id.size, rows[i].valid ? 32 : 9);
        if (rows[i].valid) {
            CHECK(context.trace_id.data == rows[i].value + 3);
            CHECK(context.parent_id.data == rows[i].value + 36);
            CHECK_EQ(context.parent_id.size, 16);
        }
    }
}

static void test_fields(void **state)
{
    const rn_http_field fields[] = {
        {.name = {"Host", 4}, .value = {"x", 1}},
        {.name = {"TraceParent", 11}, .value = {"one", 3}},
        {.name = {"traceparent", 11}, .value = {"two", 3}},
    };
    (void)state;

    CHECK_ROW("in any case");
    CHECK_TEXT(rn_trace_context_find((rn_http_fields){.items = fields, .count = 2}), "one");
    CHECK_ROW("two of them say nothing");
    CHECK(rn_trace_context_find((rn_http_fields){.items = fields, .count = 3}).data == NULL);
    CHECK_ROW("none");
    CHECK(rn_trace_context_find((rn_http_fields){.items = fields, .count = 1}).data == NULL);
}

static void test_members(void **state)
{
    static const struct {
        const char *value, *want;
    } rows[] = {
        {"", "{}"},
        {"what", "{\"traceparent\":\"what\"}"},
        {"00-" TRACE "-" PARENT "-01",
         "{\"traceparent\":\"00-" TRACE "-" PARENT "-01\",\"traceId\":\"" TRACE "\",\"parentId\":\"" PARENT "\"}"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_output out;

        rn_output_init(&out, rn_mem_default(), 1024);
        rn_output_open(&out, NULL, '{');
        rn_trace_context_write(ration_text_of(rows[i].value), &out);
        rn_output_close(&out, '}');
        CHECK_ROW(rows[i].want);
        CHECK_TEXT(((ration_text){out.data, out.size}), rows[i].want);
        rn_output_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_members),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
