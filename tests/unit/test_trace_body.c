/* SPDX-License-Identifier: MIT */
/* Bodies of the decision API: the members of lines by their own words, and faults that name the member. */
#include "support/check.h"
#include "support/failalloc.h"

#include "base/mem.h"
#include "trace/reader.h"

static rn_trace_reader reader;
static rn_trace_line asked;
static rn_trace_fault fault;

static int fresh(void **state)
{
    (void)state;
    rn_trace_reader_init(&reader, rn_mem_default());
    return 0;
}

static int done(void **state)
{
    (void)state;
    rn_trace_reader_fini(&reader);
    return 0;
}

static int body_read(rn_trace_op op, const char *text)
{
    return rn_trace_read_body(&reader, op, ration_text_of(text), &asked, &fault);
}

static void what_is_asked(void **state)
{
    (void)state;
    CHECK_EQ(
        body_read(RN_TRACE_ACQUIRE, "{\"account\":\"a\",\"timeout\":1500.5,\"ttl\":0.001,\"hold\":null,\"cost\":0}"),
        RATION_OK);
    CHECK_EQ(asked.op, RN_TRACE_ACQUIRE);
    CHECK_TEXT(asked.request.account, "a");
    CHECK_EQ(asked.request.wait_us, 1500500);
    CHECK_EQ(asked.request.ttl_us, 1);
    CHECK_EQ(asked.request.hold_us, RATION_FOREVER_US);
    CHECK_EQ(asked.request.cost, 0);

    CHECK_EQ(body_read(RN_TRACE_ACQUIRE, "{}"), RATION_OK);
    CHECK_EQ(asked.request.wait_us, 0);
    CHECK_EQ(asked.request.ttl_us, RATION_UNSET);
    CHECK_EQ(asked.request.cost, RATION_UNSET);
    CHECK_TEXT(asked.request.account, NULL);

    CHECK_EQ(body_read(RN_TRACE_CHECK, "{\"mode\":\"enforcer\",\"timeout\":1}"), RATION_OK);
    CHECK_EQ(asked.check, RATION_CHECK_ENFORCER);
    CHECK_EQ(asked.request.wait_us, 1000);
}

static void what_is_told_of_a_lease(void **state)
{
    (void)state;
    CHECK_EQ(body_read(RN_TRACE_RELEASE,
                       "{\"status\":429,\"lease\":\"3-1\",\"headers\":{\"A\":[\"1\",\"2\"]},\"cost\":2,"
                       "\"outcome\":\"failure\",\"body\":\"b\"}"),
             RATION_OK);
    CHECK_TEXT(asked.id, "3-1");
    CHECK_EQ(asked.response.status, 429);
    CHECK_EQ(asked.response.header_count, 2);
    CHECK_TEXT(asked.response.body, "b");
    CHECK_EQ(asked.completion.outcome, RATION_OUTCOME_FAILURE);
    CHECK_EQ(asked.completion.cost, 2000000);

    CHECK_EQ(body_read(RN_TRACE_RELEASE, "{\"lease\":\"3-1\"}"), RATION_OK);
    CHECK_EQ(asked.response.status, 0);
    CHECK_EQ(asked.response.header_count, 0);
    CHECK_EQ(asked.completion.outcome, RATION_OUTCOME_SUCCESS);
    CHECK_EQ(asked.completion.cost, RATION_UNSET);

    CHECK_EQ(body_read(RN_TRACE_OBSERVE, "{\"lease\":\"3-1\",\"status\":200}"), RATION_OK);
    CHECK_EQ(asked.response.status, 200);
    CHECK_EQ(body_read(RN_TRACE_RENEW, "{\"lease\":\"\\u0033-1\"}"), RATION_OK);
    CHECK_TEXT(asked.id, "3-1");
}

static void lines_and_bodies_do_not_mix(void **state)
{
    (void)state;
    /* A body has no time: what was read before does not bind it, and it binds no line. */
    CHECK_EQ(rn_trace_read(&reader, ration_text_of("{\"at\":5,\"op\":\"advance\"}"), &asked, &fault), RATION_OK);
    CHECK_EQ(body_read(RN_TRACE_ACQUIRE, "{}"), RATION_OK);
    CHECK_EQ(rn_trace_read(&reader, ration_text_of("{\"at\":5,\"op\":\"advance\"}"), &asked, &fault), RATION_OK);
    /* Words of the API are none of a trace. */
    CHECK_EQ(rn_trace_read(&reader, ration_text_of("{\"at\":5,\"op\":\"acquire\",\"id\":\"a\",\"timeout\":1}"), &asked,
                           &fault),
             RATION_ERR_SYNTAX);
    CHECK_EQ(rn_trace_read(&reader, ration_text_of("{\"at\":5,\"op\":\"release\",\"id\":\"a\",\"status\":1}"), &asked,
                           &fault),
             RATION_ERR_SYNTAX);
    CHECK_STR(fault.member, "status");
}

static const struct {
    const char *why;
    rn_trace_op op;
    const char *text;
    const char *member;
    const char *fault;
} faults[] = {
    {"nothing", RN_TRACE_ACQUIRE, "", "", "the body is one JSON object"},
    {"an array", RN_TRACE_ACQUIRE, "[]", "", "the body is one JSON object"},
    {"cut short", RN_TRACE_ACQUIRE, "{\"cost\":1", "", "a comma or } should be here"},
    {"two", RN_TRACE_ACQUIRE, "{}{}", "", "something follows the value"},
    {"no lease", RN_TRACE_RENEW, "{}", "lease", "renew without \"lease\""},
    {"no lease to release", RN_TRACE_RELEASE, "{\"status\":200}", "lease", "release without \"lease\""},
    {"no lease observed", RN_TRACE_OBSERVE, "{\"status\":200}", "lease", "observe without \"lease\""},
    {"a lease of no type", RN_TRACE_RENEW, "{\"lease\":31}", "lease", "a number where a text should be"},
    {"a name that is empty", RN_TRACE_RENEW, "{\"lease\":\"\"}", "lease", "an empty id"},
    {"an id", RN_TRACE_RENEW, "{\"id\":\"3-1\"}", "id", "renew has no member \"id\""},
    {"a line's member", RN_TRACE_ACQUIRE, "{\"op\":\"acquire\"}", "op", "acquire has no member \"op\""},
    {"a line's time", RN_TRACE_ACQUIRE, "{\"at\":1}", "at", "acquire has no member \"at\""},
    {"a line's wait", RN_TRACE_ACQUIRE, "{\"wait\":1}", "wait", "acquire has no member \"wait\""},
    {"a check of health", RN_TRACE_ACQUIRE, "{\"health\":true}", "health", "acquire has no member \"health\" (path?)"},
    {"a lease to acquire", RN_TRACE_ACQUIRE, "{\"lease\":\"1-1\"}", "lease", "acquire has no member \"lease\""},
    {"a mode to acquire", RN_TRACE_ACQUIRE, "{\"mode\":\"acquire\"}", "mode", "acquire has no member \"mode\""},
    {"no such mode", RN_TRACE_CHECK, "{\"mode\":\"x\"}", "mode", "\"x\" is none of acquire, enforcer"},
    {"no such outcome", RN_TRACE_RELEASE, "{\"lease\":\"1-1\",\"outcome\":\"x\"}", "outcome",
     "\"x\" is none of success, throttled, failure, cancelled"},
    {"nearly known", RN_TRACE_ACQUIRE, "{\"timeuot\":1}", "timeuot", "acquire has no member \"timeuot\" (timeout?)"},
    {"twice", RN_TRACE_ACQUIRE, "{\"cost\":1,\"cost\":1}", "cost", "\"cost\" occurs twice"},
    {"a name within", RN_TRACE_ACQUIRE, "{\"vars\":{\"a\":1}}", "vars", "a number where a text should be"},
    {"a member that is long", RN_TRACE_ACQUIRE, "{\"0123456789012345678901234567890123456789012345678901\":1}",
     "0123456789012345678901234567890123456789", "acquire has no member \"0123456789012345678901234567890123456789\""},
    {"cut between characters", RN_TRACE_ACQUIRE, "{\"012345678901234567890123456789012345678\xc3\xa9\":1}",
     "012345678901234567890123456789012345678", "acquire has no member \"012345678901234567890123456789012345678\""},
    {"too late for a member", RN_TRACE_ACQUIRE, "{\"cost\":1}x", "", "something follows the value"},
};

static void faults_name_the_member(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        CHECK_ROW(faults[i].why);
        CHECK_EQ(body_read(faults[i].op, faults[i].text), RATION_ERR_SYNTAX);
        CHECK_STR(fault.text, faults[i].fault);
        CHECK_STR(fault.member, faults[i].member);
    }
}

static void memory_that_is_missing_is_an_error(void **state)
{
    failalloc fail = {.failed = true};

    (void)state;
    for (uint64_t i = 0; fail.failed; i++) {
        rn_trace_reader poor;

        failalloc_init(&fail, i);
        rn_trace_reader_init(&poor, &fail.allocator);
        const int err = rn_trace_read_body(
            &poor, RN_TRACE_OBSERVE, ration_text_of("{\"lease\":\"\\u0031-1\",\"headers\":{\"\\u0041\":[\"\\n\"]}}"),
            &asked, &fault);
        CHECK_EQ(err, fail.failed ? RATION_ERR_NOMEM : RATION_OK);
        rn_trace_reader_fini(&poor);
        CHECK_EQ(fail.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_asked, fresh, done),
        cmocka_unit_test_setup_teardown(what_is_told_of_a_lease, fresh, done),
        cmocka_unit_test_setup_teardown(lines_and_bodies_do_not_mix, fresh, done),
        cmocka_unit_test_setup_teardown(faults_name_the_member, fresh, done),
        cmocka_unit_test(memory_that_is_missing_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
