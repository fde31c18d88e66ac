/* SPDX-License-Identifier: MIT */
/*
 * The recorder alone, its sink called as an engine would: what is written and what never is, in which order, and that
 * it ends quietly when nothing can be written any more.
 */
#include "support/check.h"
#include "support/failalloc.h"

#include "base/mem.h"
#include "trace/output.h"
#include "trace/recorder.h"

#define TEXT(s)                                                                                                        \
    {                                                                                                                  \
        (s), sizeof(s) - 1                                                                                             \
    }

/* Where the recording goes. */
static rn_output file;
static int writes;
static int writes_that_succeed;
static int failures;
static int failure;

static int file_write(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    if (writes++ >= writes_that_succeed)
        return -1;
    CHECK_EQ(data[size - 1], '\n');
    rn_output_raw(&file, (ration_text){data, size});
    return 0;
}

static void file_failed(void *ctx, int err)
{
    (void)ctx;
    failures++;
    failure = err;
}

static const ration_limit_rule limits[] = {
    {.name = "q", .kind = RATION_KIND_QUOTA, .sync = {.limit_header = "X-Limit", .remaining_header = "Cookie"}}};
static const ration_limit_rule overrides[] = {
    {.name = "q", .kind = RATION_KIND_QUOTA, .sync = {.reset_header = "X-Reset"}}};
static ration_provider_rule provider = {.name = "p", .limits = limits, .limit_count = 1};
static const ration_account_rule account = {.name = "a", .provider = "p", .limits = overrides, .limit_count = 1};
static const ration_rules rules = {
    .providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};

static rn_recorder_options options = {
    .config = TEXT("{\"a\":1}"), .rules = &rules, .started_at = {-1000}, .write = file_write, .failed = file_failed};

#define HEAD "{\"op\":\"config\",\"startedAt\":-1,\"a\":1}\n"

static int fresh(void **state)
{
    (void)state;
    rn_output_init(&file, rn_mem_default(), SIZE_MAX / 2);
    writes = 0;
    writes_that_succeed = 1000;
    failures = 0;
    provider.errors.body_contains = NULL;
    options.allocator = NULL;
    return 0;
}

static int done(void **state)
{
    (void)state;
    rn_output_fini(&file);
    return 0;
}

static rn_recorder *recorder_of(void)
{
    rn_recorder *recorder = NULL;

    CHECK_EQ(rn_recorder_new(&options, &recorder), RATION_OK);
    return recorder;
}

/* One call and its answer. */
static void call_of(const rn_recorder *recorder, const ration_call *call, int err, const ration_decision *decision)
{
    const ration_sink *const sink = rn_recorder_sink(recorder);

    sink->call(sink->ctx, call);
    sink->answer(sink->ctx, call, err, decision);
}

static void submit_of(const rn_recorder *recorder, uint64_t serial)
{
    const ration_request request = RATION_REQUEST_INIT;
    const ration_call call = {.op = RATION_OP_SUBMIT, .serial = serial, .request = &request};
    const ration_decision decision = {.result = RATION_GRANTED, .serial = serial, .lease = {(uint32_t)serial, 1}};

    call_of(recorder, &call, RATION_OK, &decision);
}

static void wrote(rn_recorder *recorder, const char *want)
{
    rn_recorder_flush(recorder);
    CHECK_TEXT(((ration_text){file.data, file.size}), want);
    rn_output_clear(&file);
}

static void calls_stand_before_answers_before_events(void **state)
{
    static const ration_lease blocking[] = {{7, 1}, {7, 2}};
    const ration_request request = RATION_REQUEST_INIT;
    rn_recorder *const recorder = recorder_of();
    const ration_sink *const sink = rn_recorder_sink(recorder);
    const ration_event lost = {.type = RATION_EVENT_LOST, .at = {500}, .serial = 6};
    const ration_event granted = {.type = RATION_EVENT_GRANTED, .at = {1000}, .serial = 8, .waited_us = 10};
    const ration_decision refused = {.serial = 12,
                                     .reason = RATION_REASON_CANCELLED,
                                     .retry_at = {RATION_NEVER_US},
                                     .blocking = blocking,
                                     .blocking_count = 2};
    ration_call call = {.op = RATION_OP_RELEASE, .at = {1000}, .serial = 7};
    const ration_completion completion = RATION_COMPLETION_INIT;

    (void)state;
    wrote(recorder, HEAD);
    submit_of(recorder, 7);
    wrote(recorder, "{\"at\":0,\"op\":\"acquire\",\"id\":\"r7\",\"wait\":0}\n"
                    "{\"at\":0,\"op\":\"acquire\",\"id\":\"r7\",\"result\":\"granted\"}\n");

    call.completion = &completion;
    sink->call(sink->ctx, &call);
    sink->event(sink->ctx, &lost);
    sink->answer(sink->ctx, &call, RATION_OK, NULL);
    sink->event(sink->ctx, &granted);
    wrote(recorder, "{\"at\":1,\"op\":\"release\",\"id\":\"r7\",\"outcome\":\"success\"}\n"
                    "{\"at\":0.5,\"event\":\"lost\",\"id\":\"r6\"}\n"
                    "{\"at\":1,\"op\":\"release\",\"id\":\"r7\",\"result\":\"released\"}\n"
                    "{\"at\":1,\"event\":\"granted\",\"id\":\"r8\",\"waitedMs\":0.01}\n");

    /* Handles become ids; one of another life has none. */
    call = (ration_call){.op = RATION_OP_SUBMIT, .serial = 12, .request = &request};
    call_of(recorder, &call, RATION_OK, &refused);
    wrote(recorder, "{\"at\":0,\"op\":\"acquire\",\"id\":\"r12\",\"wait\":0}\n"
                    "{\"at\":0,\"op\":\"acquire\",\"id\":\"r12\",\"result\":\"refused\",\"reason\":\"cancelled\","
                    "\"category\":\"caller\",\"retryable\":false,\"blockingLeases\":[\"r7\"],"
                    "\"explanation\":\"The request was cancelled.\"}\n");
    rn_recorder_free(recorder);
}

static void handles_that_are_not_held_are_unknown(void **state)
{
    rn_recorder *const recorder = recorder_of();
    const ration_call renew = {.op = RATION_OP_RENEW};
    const ration_call cancel = {.op = RATION_OP_CANCEL, .serial = 3};

    (void)state;
    wrote(recorder, HEAD);
    call_of(recorder, &renew, RATION_ERR_UNKNOWN, NULL);
    call_of(recorder, &cancel, RATION_ERR_UNKNOWN, NULL);
    wrote(recorder, "{\"at\":0,\"op\":\"renew\",\"id\":\"r0\"}\n"
                    "{\"at\":0,\"op\":\"renew\",\"id\":\"r0\",\"result\":\"unknown\"}\n"
                    "{\"at\":0,\"op\":\"cancel\",\"id\":\"r3\"}\n"
                    "{\"at\":0,\"op\":\"cancel\",\"id\":\"r3\",\"result\":\"unknown\"}\n");
    rn_recorder_free(recorder);
}

static void health_is_told_by_its_account(void **state)
{
    rn_recorder *const recorder = recorder_of();
    const ration_call known = {.op = RATION_OP_HEALTH, .at = {1000}, .account = TEXT("acc"), .ok = true};
    const ration_call unknown = {.op = RATION_OP_HEALTH, .at = {1000}};
    const ration_call failed = {.op = RATION_OP_HEALTH, .at = {2000}, .account = TEXT("acc")};
    const ration_request request = {.health = true, .cost = RATION_UNSET, .hold_us = RATION_UNSET, .ttl_us = -1};
    const ration_call submit = {.op = RATION_OP_SUBMIT, .at = {2000}, .serial = 1, .request = &request};
    const ration_decision granted = {.result = RATION_GRANTED, .serial = 1, .lease = {1, 1}};

    (void)state;
    wrote(recorder, HEAD);
    call_of(recorder, &known, RATION_OK, NULL);
    call_of(recorder, &unknown, RATION_ERR_UNKNOWN, NULL);
    call_of(recorder, &failed, RATION_ERR_NOMEM, NULL);
    call_of(recorder, &submit, RATION_OK, &granted);
    wrote(recorder, "{\"at\":1,\"op\":\"health\",\"account\":\"acc\",\"ok\":true}\n"
                    "{\"at\":1,\"op\":\"health\",\"account\":\"acc\",\"ok\":true,\"result\":\"noted\"}\n"
                    "{\"at\":1,\"op\":\"health\",\"account\":\"\",\"ok\":false}\n"
                    "{\"at\":1,\"op\":\"health\",\"account\":\"\",\"ok\":false,\"result\":\"unknown\"}\n"
                    "{\"at\":2,\"op\":\"advance\"}\n"
                    "{\"at\":2,\"op\":\"acquire\",\"id\":\"r1\",\"wait\":0,\"health\":true}\n"
                    "{\"at\":2,\"op\":\"acquire\",\"id\":\"r1\",\"result\":\"granted\"}\n");
    rn_recorder_free(recorder);
}

/* They have no answer of their own; one that found no memory gave nothing out. */
static void saves_are_told(void **state)
{
    static const struct {
        ration_call call;
        int err;
    } calls[] = {
        {{.op = RATION_OP_SAVE}, RATION_OK},
        {{.op = RATION_OP_KEPT}, RATION_OK},
        {{.op = RATION_OP_SAVE, .all = true}, RATION_OK},
        {{.op = RATION_OP_SAVE, .all = true}, RATION_ERR_NOMEM},
    };
    rn_recorder *const recorder = recorder_of();

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        call_of(recorder, &calls[i].call, calls[i].err, NULL);
    wrote(recorder, HEAD "{\"at\":0,\"op\":\"save\",\"all\":false}\n"
                         "{\"at\":0,\"op\":\"kept\"}\n"
                         "{\"at\":0,\"op\":\"save\",\"all\":true}\n"
                         "{\"at\":0,\"op\":\"advance\"}\n");
    rn_recorder_free(recorder);
}

static void operators_are_told_as_they_were(void **state)
{
    static const ration_counter_name name = {.provider = TEXT("p"), .limit = TEXT("q"), .key = TEXT("a/b")};
    static const ration_counter_name bare = {.limit = TEXT("q"), .key = TEXT("local")};
    static const struct {
        ration_call call;
        int err;
    } calls[] = {
        {{.op = RATION_OP_PAUSE, .counter = &name}, RATION_OK},
        {{.op = RATION_OP_RESUME, .counter = &bare}, RATION_ERR_UNKNOWN},
        {{.op = RATION_OP_RESET, .counter = &bare}, RATION_OK},
        {{.op = RATION_OP_GRANT, .counter = &bare, .units = 2500000}, RATION_OK},
        {{.op = RATION_OP_GRANT, .counter = &bare, .units = -1}, RATION_ERR_RANGE},
        {{.op = RATION_OP_DRAIN}, RATION_OK},
    };
    rn_recorder *recorder = NULL;

    (void)state;
    CHECK_EQ(rn_recorder_new(&options, &recorder), RATION_OK);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        call_of(recorder, &calls[i].call, calls[i].err, NULL);
    wrote(recorder,
          HEAD "{\"at\":0,\"op\":\"pause\",\"provider\":\"p\",\"limit\":\"q\",\"key\":\"a/b\"}\n"
               "{\"at\":0,\"op\":\"pause\",\"provider\":\"p\",\"limit\":\"q\",\"key\":\"a/b\",\"result\":\"paused\"}\n"
               "{\"at\":0,\"op\":\"resume\",\"limit\":\"q\",\"key\":\"local\"}\n"
               "{\"at\":0,\"op\":\"resume\",\"limit\":\"q\",\"key\":\"local\",\"result\":\"unknown\"}\n"
               "{\"at\":0,\"op\":\"reset\",\"limit\":\"q\",\"key\":\"local\"}\n"
               "{\"at\":0,\"op\":\"reset\",\"limit\":\"q\",\"key\":\"local\",\"result\":\"reset\"}\n"
               "{\"at\":0,\"op\":\"grant\",\"limit\":\"q\",\"key\":\"local\",\"units\":2.5}\n"
               "{\"at\":0,\"op\":\"grant\",\"limit\":\"q\",\"key\":\"local\",\"units\":2.5,\"result\":\"granted\"}\n"
               "{\"at\":0,\"op\":\"advance\"}\n"
               "{\"at\":0,\"op\":\"drain\"}\n"
               "{\"at\":0,\"op\":\"drain\",\"result\":\"draining\"}\n");
    rn_recorder_free(recorder);
}

static void a_reload_has_its_config_or_ends_the_recording(void **state)
{
    static const ration_call call = {.op = RATION_OP_RELOAD, .rules = &rules};
    static const ration_text config = TEXT("{\"b\":2}");
    rn_recorder *recorder = NULL;

    (void)state;
    CHECK_EQ(rn_recorder_new(&options, &recorder), RATION_OK);
    CHECK_EQ(rn_recorder_reload(recorder, config, &rules), RATION_OK);
    call_of(recorder, &call, RATION_OK, NULL);
    CHECK_EQ(rn_recorder_reload(recorder, config, &rules), RATION_OK);
    call_of(recorder, &call, RATION_ERR_CONFIG, NULL);
    wrote(recorder, HEAD "{\"at\":0,\"op\":\"reload\",\"b\":2}\n"
                         "{\"at\":0,\"op\":\"reload\",\"result\":\"reloaded\"}\n"
                         "{\"at\":0,\"op\":\"advance\"}\n");
    call_of(recorder, &call, RATION_OK, NULL);
    CHECK_EQ(failures, 1);
    CHECK_EQ(failure, RATION_ERR_CONFIG);
    rn_recorder_free(recorder);
}

static void failed_calls_and_reports_only_advance(void **state)
{
    rn_recorder *const recorder = recorder_of();
    const ration_sink *const sink = rn_recorder_sink(recorder);
    const ration_request request = RATION_REQUEST_INIT;
    const ration_call submit = {.op = RATION_OP_SUBMIT, .at = {1000}, .serial = 1, .request = &request};
    const ration_call report = {.op = RATION_OP_REPORT, .at = {2000}};
    const ration_event lost = {.type = RATION_EVENT_LOST, .at = {500}, .serial = 6};

    (void)state;
    wrote(recorder, HEAD);
    submit_of(recorder, 5);
    sink->call(sink->ctx, &submit);
    sink->event(sink->ctx, &lost);
    sink->answer(sink->ctx, &submit, RATION_ERR_NOMEM, NULL);
    call_of(recorder, &report, RATION_OK, NULL);
    wrote(recorder, "{\"at\":0,\"op\":\"acquire\",\"id\":\"r5\",\"wait\":0}\n"
                    "{\"at\":0,\"op\":\"acquire\",\"id\":\"r5\",\"result\":\"granted\"}\n"
                    "{\"at\":1,\"op\":\"advance\"}\n"
                    "{\"at\":0.5,\"event\":\"lost\",\"id\":\"r6\"}\n"
                    "{\"at\":2,\"op\":\"advance\"}\n");
    rn_recorder_free(recorder);
}

static const ration_header headers[] = {
    {TEXT("Authorization"), TEXT("secret")},
    {TEXT("authorization"), TEXT("secret")},
    {TEXT("cookie"), TEXT("secret")},
    {TEXT("Set-Cookie"), TEXT("secret")},
    {TEXT("Proxy-Authorization"), TEXT("s")},
    {TEXT("Content-Type"), TEXT("text/plain")},
    {TEXT("x-limit"), TEXT("1")},
    {TEXT("X-RESET"), TEXT("2")},
    {TEXT("retry-after"), TEXT("3")},
    {TEXT("Retry-After-Ms"), TEXT("4")},
    {TEXT("RateLimit"), TEXT("5")},
    {TEXT("ratelimit-policy"), TEXT("6")},
    {TEXT("X-RateLimit-Remaining"), TEXT("7")},
    {TEXT("X-Rate"), TEXT("8")},
};

static void only_headers_that_matter_and_no_secret(void **state)
{
    const ration_response response = {
        .status = 200, .headers = headers, .header_count = sizeof headers / sizeof headers[0], .body = TEXT("secret")};
    const ration_call call = {.op = RATION_OP_OBSERVE, .serial = 1, .response = &response};
    rn_recorder *recorder = recorder_of();

#define KEPT                                                                                                           \
    "{\"at\":0,\"op\":\"observe\",\"id\":\"r1\",\"status\":200,\"headers\":{\"x-limit\":\"1\",\"X-RESET\":\"2\","      \
    "\"retry-after\":\"3\",\"Retry-After-Ms\":\"4\",\"RateLimit\":\"5\",\"ratelimit-policy\":\"6\","                   \
    "\"X-RateLimit-Remaining\":\"7\"}"
#define OBSERVED "{\"at\":0,\"op\":\"observe\",\"id\":\"r1\",\"result\":\"observed\"}\n"

    (void)state;
    call_of(recorder, &call, RATION_OK, NULL);
    wrote(recorder, HEAD KEPT "}\n" OBSERVED);
    rn_recorder_free(recorder);

    /* The body, only for one that looks into it. */
    provider.errors.body_contains = "slow";
    recorder = recorder_of();
    call_of(recorder, &call, RATION_OK, NULL);
    wrote(recorder, HEAD KEPT ",\"body\":\"secret\"}\n" OBSERVED);
    rn_recorder_free(recorder);
}

static void what_is_left_is_written_at_the_end(void **state)
{
    rn_recorder *const recorder = recorder_of();

    (void)state;
    submit_of(recorder, 1);
    CHECK_EQ(writes, 0);
    rn_recorder_free(recorder);
    CHECK_EQ(writes, 1);
    CHECK(file.size > sizeof HEAD);
    rn_recorder_free(NULL);
}

static void the_buffer_goes_out_by_itself(void **state)
{
    rn_recorder *const recorder = recorder_of();

    (void)state;
    for (uint64_t serial = 1; serial <= 10000; serial++)
        submit_of(recorder, serial);
    CHECK(writes >= 10);
    rn_recorder_free(recorder);
}

static void a_full_disk_ends_the_recording_once(void **state)
{
    rn_recorder *const recorder = recorder_of();

    (void)state;
    writes_that_succeed = 2;
    for (uint64_t serial = 1; serial <= 10000; serial++)
        submit_of(recorder, serial);
    rn_recorder_flush(recorder);
    rn_recorder_free(recorder);
    CHECK_EQ(writes, 3);
    CHECK_EQ(failures, 1);
    CHECK_EQ(failure, RATION_ERR_IO);
}

/* Whatever allocation fails: no recorder, or one that ends; what it wrote is whole lines. */
static void memory_that_is_missing_ends_the_recording(void **state)
{
    failalloc fail = {.failed = true};

    (void)state;
    for (uint64_t i = 0; fail.failed; i++) {
        rn_recorder *recorder = NULL;

        failalloc_init(&fail, i);
        failures = 0;
        options.allocator = &fail.allocator;
        if (rn_recorder_new(&options, &recorder) == RATION_OK) {
            for (uint64_t serial = 1; serial <= 200; serial++)
                submit_of(recorder, serial);
            CHECK_EQ(failures, fail.failed ? 1 : 0);
            if (fail.failed)
                CHECK_EQ(failure, RATION_ERR_NOMEM);
            rn_recorder_free(recorder);
        }
        CHECK_EQ(fail.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_stand_before_answers_before_events, fresh, done),
        cmocka_unit_test_setup_teardown(handles_that_are_not_held_are_unknown, fresh, done),
        cmocka_unit_test_setup_teardown(health_is_told_by_its_account, fresh, done),
        cmocka_unit_test_setup_teardown(saves_are_told, fresh, done),
        cmocka_unit_test_setup_teardown(operators_are_told_as_they_were, fresh, done),
        cmocka_unit_test_setup_teardown(a_reload_has_its_config_or_ends_the_recording, fresh, done),
        cmocka_unit_test_setup_teardown(failed_calls_and_reports_only_advance, fresh, done),
        cmocka_unit_test_setup_teardown(only_headers_that_matter_and_no_secret, fresh, done),
        cmocka_unit_test_setup_teardown(what_is_left_is_written_at_the_end, fresh, done),
        cmocka_unit_test_setup_teardown(the_buffer_goes_out_by_itself, fresh, done),
        cmocka_unit_test_setup_teardown(a_full_disk_ends_the_recording_once, fresh, done),
        cmocka_unit_test_setup_teardown(memory_that_is_missing_ends_the_recording, fresh, done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
