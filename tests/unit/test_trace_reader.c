/* SPDX-License-Identifier: MIT */
/*
 * Lines of a trace: what every member becomes, and for every way in which a line can be wrong, where and in which words
 * that is said.
 */
#include "support/check.h"
#include "support/failalloc.h"

#include <stdio.h>

#include "base/mem.h"
#include "trace/reader.h"

static rn_trace_reader reader;
static rn_trace_line line;
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

static void read_good(const char *text)
{
    const int err = rn_trace_read(&reader, ration_text_of(text), &line, &fault);

    if (err != RATION_OK)
        print_error("%zu:%zu: %s\n", fault.line, fault.column, fault.text);
    CHECK_EQ(err, RATION_OK);
}

static void acquire_takes_all_its_members(void **state)
{
    (void)state;
    read_good("{\"at\":10.25,\"op\":\"acquire\",\"id\":\"a1\",\"provider\":\"p\",\"account\":\"acc\",\"target\":\"t\","
              "\"credential\":\"0123\",\"tenant\":\"a\",\"class\":\"c\",\"cost\":48.5,\"hold\":50,\"wait\":2000.001,"
              "\"ttl\":30000,\"priority\":\"high\",\"method\":\"GET\",\"path\":\"/a\\u002fb\",\"endpoint\":\"/{x}\","
              "\"vars\":{\"org\":\"7\",\"net\":\"\"},\"retry\":true,\"auth\":false,\"health\":true}");
    CHECK_EQ(line.op, RN_TRACE_ACQUIRE);
    CHECK_EQ(line.number, 1);
    CHECK_EQ(line.at.us, 10250);
    CHECK_TEXT(line.id, "a1");
    CHECK_TEXT(line.request.provider, "p");
    CHECK_TEXT(line.request.account, "acc");
    CHECK_TEXT(line.request.target, "t");
    CHECK_TEXT(line.request.credential, "0123");
    CHECK_TEXT(line.request.tenant, "a");
    CHECK_TEXT(line.request.class_name, "c");
    CHECK_EQ(line.request.cost, 48500000);
    CHECK_EQ(line.request.hold_us, 50000);
    CHECK_EQ(line.request.wait_us, 2000001);
    CHECK_EQ(line.request.ttl_us, 30000000);
    CHECK_EQ(line.request.priority, RATION_PRIORITY_HIGH);
    CHECK_TEXT(line.request.method, "GET");
    CHECK_TEXT(line.request.path, "/a/b");
    CHECK_TEXT(line.request.endpoint, "/{x}");
    CHECK_EQ(line.request.var_count, 2);
    CHECK_TEXT(line.request.vars[0].name, "org");
    CHECK_TEXT(line.request.vars[0].value, "7");
    CHECK_TEXT(line.request.vars[1].value, "");
    CHECK(line.request.retry);
    CHECK(line.request.health);
    CHECK_EQ(line.request.auth, RATION_AUTH_NO);
}

static void check_takes_what_acquire_takes(void **state)
{
    (void)state;
    read_good("{\"at\":0,\"op\":\"check\",\"id\":\"a\",\"mode\":\"enforcer\",\"health\":true,\"cost\":2}");
    CHECK_EQ(line.op, RN_TRACE_CHECK);
    CHECK_EQ(line.check, RATION_CHECK_ENFORCER);
    CHECK(line.request.health);
    CHECK_EQ(line.request.cost, 2000000);
    read_good("{\"at\":0,\"op\":\"check\",\"id\":\"a\"}");
    CHECK_EQ(line.check, RATION_CHECK_ACQUIRE);
}

static void acquire_leaves_out_what_is_not_given(void **state)
{
    (void)state;
    read_good("{\"id\":\"a1\",\"op\":\"acquire\",\"at\":0}");
    CHECK_TEXT(line.request.account, NULL);
    CHECK_TEXT(line.request.path, NULL);
    CHECK_EQ(line.request.cost, RATION_UNSET);
    CHECK_EQ(line.request.hold_us, RATION_UNSET);
    CHECK_EQ(line.request.ttl_us, RATION_UNSET);
    CHECK_EQ(line.request.wait_us, 0);
    CHECK_EQ(line.request.priority, RATION_PRIORITY_UNSET);
    CHECK_EQ(line.request.auth, RATION_AUTH_UNSET);
    CHECK_EQ(line.request.var_count, 0);
    CHECK(!line.request.retry);
    CHECK(!line.request.health);

    read_good("{\"id\":\"a1\",\"op\":\"acquire\",\"at\":0,\"hold\":null}");
    CHECK_EQ(line.request.hold_us, RATION_FOREVER_US);
}

static void observe_takes_headers_and_lists_of_them(void **state)
{
    (void)state;
    read_good("{\"at\":0,\"op\":\"observe\",\"id\":\"a\",\"status\":429,\"body\":\"slow\\ndown\","
              "\"headers\":{\"X-A\":\"1\",\"X-B\":[\"2\",\"3\"],\"X-C\":[]}}");
    CHECK_EQ(line.response.status, 429);
    CHECK_TEXT(line.response.body, "slow\ndown");
    CHECK_EQ(line.response.header_count, 3);
    CHECK_TEXT(line.response.headers[0].name, "X-A");
    CHECK_TEXT(line.response.headers[1].name, "X-B");
    CHECK_TEXT(line.response.headers[1].value, "2");
    CHECK_TEXT(line.response.headers[2].name, "X-B");
    CHECK_TEXT(line.response.headers[2].value, "3");

    read_good("{\"at\":0,\"op\":\"observe\",\"id\":\"a\"}");
    CHECK_EQ(line.response.status, 0);
    CHECK_EQ(line.response.header_count, 0);
    CHECK_TEXT(line.response.body, NULL);
}

static void the_other_operations(void **state)
{
    static const struct {
        const char *text;
        rn_trace_op op;
    } rows[] = {
        {"{\"at\":1,\"op\":\"renew\",\"id\":\"a\"}", RN_TRACE_RENEW},
        {"{\"at\":1,\"op\":\"cancel\",\"id\":\"a\"}", RN_TRACE_CANCEL},
        {"{\"at\":1,\"op\":\"advance\"}", RN_TRACE_ADVANCE},
        {"{\"at\":1,\"op\":\"stats\"}", RN_TRACE_STATS},
        {"{\"at\":1,\"op\":\"limits\"}", RN_TRACE_LIMITS},
        {"{\"at\":1,\"op\":\"leases\"}\r", RN_TRACE_LEASES},
        {"{\"at\":1,\"op\":\"fairness\"}", RN_TRACE_FAIRNESS},
        {"{\"at\":1,\"op\":\"allocation\"}", RN_TRACE_ALLOCATION},
        {"{\"at\":1,\"op\":\"health\",\"account\":\"acc\",\"ok\":true,\"result\":\"noted\"}", RN_TRACE_OUTPUT},
        {"", RN_TRACE_BLANK},
        {" \t\r", RN_TRACE_BLANK},
        {"{\"at\":1,\"op\":\"stats\",\"result\":{\"limits\":[]}}", RN_TRACE_OUTPUT},
        {"{\"at\":-5,\"event\":\"lost\",\"id\":\"y\"}", RN_TRACE_OUTPUT},
        {"{\"at\":1,\"op\":\"fairness\",\"result\":{}}", RN_TRACE_OUTPUT},
    };

    (void)state;
    read_good("{\"at\":0,\"op\":\"health\",\"account\":\"acc\",\"ok\":true}");
    CHECK_EQ(line.op, RN_TRACE_HEALTH);
    CHECK_TEXT(line.account, "acc");
    CHECK(line.ok);
    read_good("{\"at\":0,\"op\":\"health\",\"account\":\"\",\"ok\":false}");
    CHECK_TEXT(line.account, "");
    CHECK(!line.ok);
    read_good("{\"at\":0,\"op\":\"save\",\"all\":true}");
    CHECK_EQ(line.op, RN_TRACE_SAVE);
    CHECK(line.all);
    read_good("{\"at\":0,\"op\":\"save\"}");
    CHECK(!line.all);
    read_good("{\"at\":0,\"op\":\"kept\"}");
    CHECK_EQ(line.op, RN_TRACE_KEPT);
    read_good("{\"at\":0,\"op\":\"release\",\"id\":\"a\",\"outcome\":\"throttled\",\"cost\":0.000001}");
    CHECK_EQ(line.op, RN_TRACE_RELEASE);
    CHECK_EQ(line.completion.outcome, RATION_OUTCOME_THROTTLED);
    CHECK_EQ(line.completion.cost, 1);
    read_good("{\"at\":0,\"op\":\"release\",\"id\":\"a\"}");
    CHECK_EQ(line.completion.outcome, RATION_OUTCOME_SUCCESS);
    CHECK_EQ(line.completion.cost, RATION_UNSET);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].text);
        read_good(rows[i].text);
        CHECK_EQ(line.op, rows[i].op);
    }
}

static void config_says_when_it_starts(void **state)
{
    (void)state;
    read_good("{\"op\":\"config\",\"startedAt\":-1000,\"providers\":[{\"any\":1}],\"whatever\":null}");
    CHECK_EQ(line.op, RN_TRACE_CONFIG);
    CHECK(line.has_started_at);
    CHECK_EQ(line.started_at.us, -1000000);
    CHECK_EQ(rn_trace_read(&reader, ration_text_of("{\"at\":-1001,\"op\":\"advance\"}"), &line, &fault),
             RATION_ERR_SYNTAX);
    CHECK_STR(fault.text, "time runs back by 1000 us");
    read_good("{\"at\":-1000,\"op\":\"advance\"}");
}

static const struct {
    const char *why;
    const char *text;
    size_t column;
    const char *fault;
} faults[] = {
    {"no JSON", "hello", 1, "a line of a trace is one JSON object"},
    {"an array", "[1]", 1, "a line of a trace is one JSON object"},
    {"cut short", "{\"at\":1", 8, "a comma or } should be here"},
    {"two objects", "{\"at\":1} {}", 10, "something follows the value"},
    {"columns count characters", "{\"\xe2\x82\xac\":x}", 6, "not a value"},
    {"a member twice", "{\"at\":1,\"op\":\"stats\",\"at\":2}", 22, "\"at\" occurs twice"},
    {"twice, in disguise", "{\"at\":1,\"op\":\"stats\",\"\\u0061t\":2}", 22, "\"\\u0061t\" occurs twice"},

    {"no op", "{\"at\":1}", 1, "no op"},
    {"op is a number", "{\"at\":1,\"op\":2}", 14, "a number where a text should be"},
    {"nearly an op", "{\"at\":1,\"op\":\"aquire\",\"id\":\"a\"}", 14, "no op \"aquire\" (acquire?)"},
    {"no op at all", "{\"at\":1,\"op\":\"tango\",\"id\":\"a\"}", 14, "no op \"tango\""},
    {"a member nearly known", "{\"at\":1,\"op\":\"acquire\",\"id\":\"a\",\"hodl\":1}", 33,
     "acquire has no member \"hodl\" (hold?)"},
    {"a member of another op", "{\"at\":1,\"op\":\"renew\",\"id\":\"a\",\"outcome\":1}", 31,
     "renew has no member \"outcome\""},
    {"no id", "{\"at\":1,\"op\":\"cancel\"}", 1, "cancel without \"id\""},
    {"no time", "{\"op\":\"stats\"}", 1, "stats without \"at\""},
    {"an empty id", "{\"at\":1,\"op\":\"renew\",\"id\":\"\"}", 27, "an empty id"},

    {"health of nobody", "{\"at\":1,\"op\":\"health\",\"ok\":true}", 1, "health without \"account\""},
    {"health without a result", "{\"at\":1,\"op\":\"health\",\"account\":\"a\"}", 1, "health without \"ok\""},
    {"health in words", "{\"at\":1,\"op\":\"health\",\"account\":\"a\",\"ok\":\"yes\"}", 42,
     "a text where true or false should be"},
    {"health with an id", "{\"at\":1,\"op\":\"health\",\"id\":\"a\",\"ok\":true}", 23, "health has no member \"id\""},
    {"a health check that is a number", "{\"at\":1,\"op\":\"acquire\",\"id\":\"a\",\"health\":1}", 42,
     "a number where true or false should be"},
    {"a health check of no request", "{\"at\":1,\"op\":\"release\",\"id\":\"a\",\"health\":true}", 33,
     "release has no member \"health\""},
    {"kept with what is a save's", "{\"at\":1,\"op\":\"kept\",\"all\":true}", 21, "kept has no member \"all\""},
    {"a save of how much", "{\"at\":1,\"op\":\"save\",\"all\":1}", 27, "a number where true or false should be"},
    {"a report with an id", "{\"at\":1,\"op\":\"fairness\",\"id\":\"a\"}", 25, "fairness has no member \"id\""},

    {"a time in quotes", "{\"at\":\"1\",\"op\":\"stats\"}", 7, "a text where a number should be"},
    {"a time that is null", "{\"at\":null,\"op\":\"stats\"}", 7, "null where a number should be"},
    {"a time that is NaN", "{\"at\":NaN,\"op\":\"stats\"}", 7, "not a value"},
    {"four places of a millisecond", "{\"at\":1.0001,\"op\":\"stats\"}", 7, "1.0001 has more than 3 places"},
    {"too late", "{\"at\":9007199254740.993,\"op\":\"stats\"}", 7, "9007199254740.993 is too large"},
    {"far too late", "{\"at\":1e300,\"op\":\"stats\"}", 7, "1e300 is too large"},
    {"too early", "{\"at\":-9007199254740.993,\"op\":\"stats\"}", 7, "-9007199254740.993 is too far in the past"},
    {"time runs back", "{\"at\":0.999,\"op\":\"stats\"}", 7, "time runs back by 1 us"},

    {"seven places of a unit", "{\"at\":1,\"op\":\"acquire\",\"id\":\"a\",\"cost\":0.0000001}", 40,
     "0.0000001 has more than 6 places"},
    {"a negative cost", "{\"at\":1,\"op\":\"acquire\",\"id\":\"a\",\"cost\":-1}", 40, "-1 is too small"},
    {"too dear", "{\"at\":1,\"op\":\"release\",\"id\":\"a\",\"cost\":9007199254.740993}", 40,
     "9007199254.740993 is too large"},
    {"a negative wait", "{\"at\":1,\"op\":\"acquire\",\"id\":\"a\",\"wait\":-0.001}", 40, "-0.001 is too small"},
    {"a ttl of 0", "{\"at\":1,\"op\":\"acquire\",\"id\":\"a\",\"ttl\":0}", 39, "0 is too small"},
    {"a priority that is none", "{\"at\":1,\"op\":\"acquire\",\"id\":\"a\",\"priority\":\"urgent\"}", 44,
     "\"urgent\" is none of critical, high, normal, low"},
    {"an outcome that is none", "{\"at\":1,\"op\":\"release\",\"id\":\"a\",\"outcome\":\"ok\"}", 43,
     "\"ok\" is none of success, throttled, failure, cancelled"},
    {"retry as a text", "{\"at\":1,\"op\":\"acquire\",\"id\":\"a\",\"retry\":\"yes\"}", 41,
     "a text where true or false should be"},
    {"vars as a list", "{\"at\":1,\"op\":\"acquire\",\"id\":\"a\",\"vars\":[]}", 40,
     "an array where an object should be"},
    {"a var that is a number", "{\"at\":1,\"op\":\"acquire\",\"id\":\"a\",\"vars\":{\"org\":7}}", 47,
     "a number where a text should be"},
    {"a var as a list", "{\"at\":1,\"op\":\"acquire\",\"id\":\"a\",\"vars\":{\"org\":[]}}", 47,
     "an array where a text should be"},
    {"a var twice", "{\"at\":1,\"op\":\"acquire\",\"id\":\"a\",\"vars\":{\"a\":\"1\",\"a\":\"1\"}}", 49,
     "\"a\" occurs twice"},
    {"a header that is a number", "{\"at\":1,\"op\":\"observe\",\"id\":\"a\",\"headers\":{\"A\":1}}", 48,
     "a number where a text should be"},
    {"a list of headers that is not of texts", "{\"at\":1,\"op\":\"observe\",\"id\":\"a\",\"headers\":{\"A\":[true]}}",
     49, "true where a text should be"},
    {"a header twice", "{\"at\":1,\"op\":\"observe\",\"id\":\"a\",\"headers\":{\"A\":[\"1\",\"2\"],\"A\":\"1\"}}", 58,
     "\"A\" occurs twice"},
    {"a status with a fraction", "{\"at\":1,\"op\":\"observe\",\"id\":\"a\",\"status\":200.5}", 42,
     "200.5 has more than 0 places"},
    {"a status that is none", "{\"at\":1,\"op\":\"observe\",\"id\":\"a\",\"status\":1000}", 42, "1000 is no status"},
    {"a config behind the first line", "{\"op\":\"config\"}", 1, "a config line may only be the first of a trace"},
    {"an output that is not JSON", "{\"result\":}", 11, "not a value"},
    {"a long name is cut between characters",
     "{\"at\":1,\"op\":\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
     "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9x\xc3\xa9\"}",
     14,
     "no op \"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
     "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9x\""},
};

static void faults_say_where_and_what(void **state)
{
    (void)state;
    read_good("{\"at\":1,\"op\":\"advance\"}");
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        CHECK_ROW(faults[i].why);
        CHECK_EQ(rn_trace_read(&reader, ration_text_of(faults[i].text), &line, &fault), RATION_ERR_SYNTAX);
        CHECK_STR(fault.text, faults[i].fault);
        CHECK_EQ(fault.line, i + 2);
        CHECK_EQ(fault.column, faults[i].column);
    }
}

/* `count` numbers in quotes, with something behind each, between `head` and `tail`. */
static void read_many(const char *head, size_t count, const char *behind, const char *tail, const char *want)
{
    const size_t size = strlen(head) + strlen(tail) + count * 16;
    char *const text = rn_mem_zalloc(rn_mem_default(), size + 1, 1);
    size_t used = (size_t)snprintf(text, size, "%s", head);

    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, size - used, "%s\"%zu\"%s", i > 0 ? "," : "", i, behind);
    used += (size_t)snprintf(text + used, size - used, "%s", tail);

    const int err = rn_trace_read(&reader, (ration_text){text, used}, &line, &fault);

    CHECK_EQ(err, want == NULL ? RATION_OK : RATION_ERR_SYNTAX);
    if (want != NULL)
        CHECK_STR(fault.text, want);
    rn_mem_free(rn_mem_default(), text);
}

static void there_is_a_maximum_of_everything(void **state)
{
    static const char observe[] = "{\"at\":1,\"op\":\"observe\",\"id\":\"a\",\"headers\":{";
    static const char list[] = "{\"at\":1,\"op\":\"observe\",\"id\":\"a\",\"headers\":{\"A\":[";
    char *const long_line = rn_mem_zalloc(rn_mem_default(), RN_TRACE_LINE_MAX + 1, 1);

    (void)state;
    read_many(observe, RN_TRACE_PAIRS_MAX, ":\"\"", "}}", NULL);
    CHECK_EQ(line.response.header_count, RN_TRACE_PAIRS_MAX);
    read_many(observe, RN_TRACE_PAIRS_MAX + 1, ":\"\"", "}}", "more than 4096 of them");
    read_many(list, RN_TRACE_PAIRS_MAX + 1, "", "]}}", "more than 4096 of them");
    read_many("{", RN_TRACE_MEMBERS_MAX + 1, ":1", "}", "more than 64 members");

    memset(long_line, 'x', RN_TRACE_LINE_MAX + 1);
    CHECK_EQ(rn_trace_read(&reader, (ration_text){long_line, RN_TRACE_LINE_MAX + 1}, &line, &fault), RATION_ERR_SYNTAX);
    CHECK_STR(fault.text, "a line of more than 16777216 bytes");
    rn_mem_free(rn_mem_default(), long_line);
}

static void memory_that_is_missing_is_an_error(void **state)
{
    static const char text[] = "{\"at\":1,\"op\":\"acquire\",\"i\\u0064\":\"\\u0061\",\"vars\":{\"a\":\"\\u0061\"}}";
    failalloc fail = {.failed = true};

    (void)state;
    for (uint64_t i = 0; fail.failed; i++) {
        rn_trace_reader poor;

        failalloc_init(&fail, i);
        rn_trace_reader_init(&poor, &fail.allocator);

        const int err = rn_trace_read(&poor, ration_text_of(text), &line, &fault);

        CHECK_EQ(err, fail.failed ? RATION_ERR_NOMEM : RATION_OK);
        rn_trace_reader_fini(&poor);
        CHECK_EQ(fail.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(acquire_takes_all_its_members, fresh, done),
        cmocka_unit_test_setup_teardown(check_takes_what_acquire_takes, fresh, done),
        cmocka_unit_test_setup_teardown(acquire_leaves_out_what_is_not_given, fresh, done),
        cmocka_unit_test_setup_teardown(observe_takes_headers_and_lists_of_them, fresh, done),
        cmocka_unit_test_setup_teardown(the_other_operations, fresh, done),
        cmocka_unit_test_setup_teardown(config_says_when_it_starts, fresh, done),
        cmocka_unit_test_setup_teardown(faults_say_where_and_what, fresh, done),
        cmocka_unit_test_setup_teardown(there_is_a_maximum_of_everything, fresh, done),
        cmocka_unit_test(memory_that_is_missing_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
