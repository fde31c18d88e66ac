/* SPDX-License-Identifier: MIT */
/*
 * What each call, decision, event and report looks like as a line, member by member; and that every call that is
 * written reads as the call that it was.
 */
#include "support/check.h"

#include "base/mem.h"
#include "trace/reader.h"
#include "trace/writer.h"

static rn_output out;

static int fresh(void **state)
{
    (void)state;
    rn_output_init(&out, rn_mem_default(), 1 << 20);
    return 0;
}

static int done(void **state)
{
    (void)state;
    rn_output_fini(&out);
    return 0;
}

/* The lease of index i is called "abc"[i]. */
static ration_text name_of(void *ctx, ration_lease lease)
{
    const char *const letters = ctx;

    return lease.index < strlen(letters) ? (ration_text){letters + lease.index, 1} : (ration_text){NULL, 0};
}

static char letters[] = "abc";

/* Request n is called after the n-th letter; 0 and those beyond are not known. */
static ration_text serial_of(void *ctx, uint64_t serial)
{
    const char *const all = ctx;

    return serial > 0 && serial <= strlen(all) ? (ration_text){all + serial - 1, 1} : (ration_text){NULL, 0};
}

static const rn_trace_names names = {letters, name_of, serial_of};
static const rn_trace_names nameless = {.ctx = letters, .name = name_of};

/* What has been written since the last time. */
static void wrote(const char *want)
{
    CHECK_EQ(out.err, RATION_OK);
    CHECK_TEXT(((ration_text){out.data, out.size}), want);
    rn_output_clear(&out);
}

static const ration_lease blocking[] = {{1, 7}, {9, 1}, {2, 7}};

static const struct {
    const char *why;
    ration_decision decision;
    const char *want;
} decisions[] = {
    {"granted",
     {.result = RATION_GRANTED, .retry_at = {RATION_NEVER_US}},
     "{\"at\":10,\"op\":\"acquire\",\"id\":\"x\",\"result\":\"granted\"}\n"},
    {"queued",
     {.result = RATION_QUEUED, .retry_at = {RATION_NEVER_US}},
     "{\"at\":10,\"op\":\"acquire\",\"id\":\"x\",\"result\":\"queued\"}\n"},
    {"everything that a refusal can have",
     {.reason = RATION_REASON_GUARANTEE_ON_LOAN,
      .retry_at = {100001},
      .estimate = true,
      .limit = "tokens",
      .key = {"acc\"", 4},
      .blocking = blocking,
      .blocking_count = 3},
     "{\"at\":10,\"op\":\"acquire\",\"id\":\"x\",\"result\":\"refused\",\"reason\":\"guarantee_on_loan\","
     "\"category\":\"fairness\",\"retryable\":true,\"limit\":\"tokens\",\"key\":\"acc\\\"\",\"retryAfterMs\":90.001,"
     "\"estimate\":true,\"blockingLeases\":[\"b\",\"c\"]"},
    {"nothing but a reason",
     {.reason = RATION_REASON_UNKNOWN_ACCOUNT, .retry_at = {RATION_NEVER_US}},
     "{\"at\":10,\"op\":\"acquire\",\"id\":\"x\",\"result\":\"refused\",\"reason\":\"unknown_account\","
     "\"category\":\"caller\",\"retryable\":false"},
    {"a breaker has a key and no limit",
     {.reason = RATION_REASON_CIRCUIT_OPEN, .retry_at = {1010000}, .key = {"acc", 3}},
     "{\"at\":10,\"op\":\"acquire\",\"id\":\"x\",\"result\":\"refused\",\"reason\":\"circuit_open\","
     "\"category\":\"provider\",\"retryable\":true,\"key\":\"acc\",\"retryAfterMs\":1000"},
    {"a retry time that has come",
     {.reason = RATION_REASON_CONCURRENCY_FULL, .retry_at = {9000}},
     "{\"at\":10,\"op\":\"acquire\",\"id\":\"x\",\"result\":\"refused\",\"reason\":\"concurrency_full\","
     "\"category\":\"capacity\",\"retryable\":true,\"retryAfterMs\":0"},
};

static void decisions_have_their_members_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof decisions / sizeof decisions[0]; i++) {
        const size_t size = strlen(decisions[i].want);

        CHECK_ROW(decisions[i].why);
        rn_trace_write_decision(&out, ration_time_of(10000), "acquire", ration_text_of("x"), &decisions[i].decision,
                                &names);
        CHECK(out.size >= size);
        CHECK_EQ(memcmp(out.data, decisions[i].want, size), 0);
        /* The rest of a refusal is its explanation. */
        if (decisions[i].decision.result == RATION_REFUSED)
            CHECK_EQ(memcmp(out.data + size, ",\"explanation\":\"", 16), 0);
        rn_output_clear(&out);
    }
}

static void answers(void **state)
{
    (void)state;
    rn_trace_write_answer(&out, ration_time_of(-1500), "release", ration_text_of("x"), "released");
    wrote("{\"at\":-1.5,\"op\":\"release\",\"id\":\"x\",\"result\":\"released\"}\n");
    rn_trace_write_health_answer(&out, ration_time_of(1), ration_text_of("acc"), false, "noted");
    wrote("{\"at\":0.001,\"op\":\"health\",\"account\":\"acc\",\"ok\":false,\"result\":\"noted\"}\n");
}

static void events_have_their_members_in_order(void **state)
{
    static const ration_event_type quiet[] = {RATION_EVENT_PENALTY, RATION_EVENT_LIMIT, RATION_EVENT_BREAKER,
                                              RATION_EVENT_HEALTH};
    ration_event event = {.type = RATION_EVENT_GRANTED, .at = {100000}, .waited_us = 90000};
    static const char refused[] = "{\"at\":100,\"event\":\"refused\",\"id\":\"x\",\"reason\":\"deadline\",\"category\":"
                                  "\"caller\",\"retryable\":true,"
                                  "\"limit\":\"org-rate\",\"key\":\"acc\",\"waitedMs\":90,\"explanation\":\"";

    (void)state;
    rn_trace_write_event(&out, ration_text_of("x"), &event, &names);
    wrote("{\"at\":100,\"event\":\"granted\",\"id\":\"x\",\"waitedMs\":90}\n");
    event.type = RATION_EVENT_LOST;
    rn_trace_write_event(&out, ration_text_of("x"), &event, &names);
    wrote("{\"at\":100,\"event\":\"lost\",\"id\":\"x\"}\n");
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++) {
        event.type = quiet[i];
        rn_trace_write_event(&out, ration_text_of("x"), &event, &names);
        CHECK_EQ(out.size, 0);
    }

    event.type = RATION_EVENT_REFUSED;
    event.decision = (ration_decision){
        .reason = RATION_REASON_DEADLINE, .retry_at = {RATION_NEVER_US}, .limit = "org-rate", .key = {"acc", 3}};
    rn_trace_write_event(&out, ration_text_of("x"), &event, &names);
    CHECK(out.size > sizeof refused);
    CHECK_EQ(memcmp(out.data, refused, sizeof refused - 1), 0);
}

static const ration_counter_report rate = {
    .limit = "r", .kind = RATION_KIND_RATE, .key = {"acc", 3}, .available = -2500000};
static const ration_counter_report slots = {
    .limit = "c", .kind = RATION_KIND_CONCURRENCY, .key = {"", 0}, .max = 10000000, .held = 1000000};
static const ration_counter_report quota = {.limit = "q",
                                            .kind = RATION_KIND_QUOTA,
                                            .key = {"acc", 3},
                                            .max = 5000000,
                                            .usable = 4000000,
                                            .reserve = 500000,
                                            .used = 1,
                                            .external = 2000000,
                                            .remaining = 1999999,
                                            .has_window = true,
                                            .window_start = {-1000},
                                            .window_end = {3600000000}};
static const ration_counter_report rolling = {.limit = "q", .kind = RATION_KIND_QUOTA, .key = {"acc", 3}};

static void counters_have_the_members_of_their_kind(void **state)
{
    const ration_penalty_report penalty = {{"acc", 3}, "r", {12001000}, 2};
    const ration_penalty_report general = {{"acc", 3}, NULL, {12001000}, 1};
    rn_trace_report report;

    (void)state;
    rn_trace_report_begin(&report, &out, ration_time_of(0), RATION_REPORT_STATS, &names);
    report.reporter.counter(report.reporter.ctx, &rate);
    report.reporter.counter(report.reporter.ctx, &slots);
    report.reporter.counter(report.reporter.ctx, &quota);
    report.reporter.counter(report.reporter.ctx, &rolling);
    report.reporter.penalty(report.reporter.ctx, &penalty);
    report.reporter.penalty(report.reporter.ctx, &general);
    rn_trace_report_end(&report);
    wrote("{\"at\":0,\"op\":\"stats\",\"result\":{\"limits\":[{\"limit\":\"r\",\"key\":\"acc\",\"available\":-2.5},"
          "{\"limit\":\"c\",\"key\":\"\",\"max\":10,\"held\":1},"
          "{\"limit\":\"q\",\"key\":\"acc\",\"max\":5,\"usable\":4,\"reserve\":0.5,\"used\":0.000001,\"external\":2,"
          "\"remaining\":1.999999,\"windowStart\":-1,\"windowEnd\":3600000},"
          "{\"limit\":\"q\",\"key\":\"acc\",\"max\":0,\"usable\":0,\"reserve\":0,\"used\":0,\"external\":0,"
          "\"remaining\":0},"
          "{\"penalty\":\"acc\",\"limit\":\"r\",\"until\":12001,\"events\":2},"
          "{\"penalty\":\"acc\",\"until\":12001,\"events\":1}]}}\n");

    rn_trace_report_begin(&report, &out, ration_time_of(0), RATION_REPORT_LIMITS, &names);
    report.reporter.counter(report.reporter.ctx, &slots);
    rn_trace_report_end(&report);
    wrote("{\"at\":0,\"op\":\"limits\",\"result\":{\"limits\":[{\"limit\":\"c\",\"kind\":\"concurrency\",\"key\":\"\","
          "\"max\":10,\"held\":1}]}}\n");
}

static void shares_have_their_tenants_in_order(void **state)
{
    static ration_tenant_report tenants[] = {
        {.name = {"b", 1},
         .guarantee = 50000000,
         .held = 60500000,
         .own = 49000000,
         .lent = 1000000,
         .borrowed = 11500000,
         .want = 7000000,
         .target = 67500000,
         .deficit_unit_ms = 4500,
         .deficit_rest = 10000000,
         .reclaims = 2,
         .worst_reclaim_us = 90001,
         .granted = 3},
        {.name = {"a\"", 2}, .idle = true, .deficit_unit_ms = INT64_MAX, .deficit_rest = 999999999},
    };
    static const uint64_t overrun[] = {3, 1, 4};
    ration_counter_report share = {.limit = "t",
                                   .kind = RATION_KIND_SHARE,
                                   .key = {"acc", 3},
                                   .max = 100000000,
                                   .held = 60500000,
                                   .tenants = tenants,
                                   .tenant_count = 2,
                                   .overrun = overrun,
                                   .overrun_count = 3};
    rn_trace_report report;

    (void)state;
    tenants[0].refused[RATION_REASON_DEADLINE] = 1;
    tenants[0].refused[RATION_REASON_GUARANTEE_ON_LOAN] = 12;
    tenants[1].refused[RATION_REASON_STORE_UNAVAILABLE] = 1; /* the last of them */
    rn_trace_report_begin(&report, &out, ration_time_of(0), RATION_REPORT_STATS, &names);
    report.reporter.counter(report.reporter.ctx, &share);
    rn_trace_report_end(&report);
    wrote("{\"at\":0,\"op\":\"stats\",\"result\":{\"limits\":[{\"limit\":\"t\",\"key\":\"acc\",\"tenants\":{"
          "\"b\":{\"guarantee\":50,\"held\":60.5,\"own\":49,\"lent\":1,\"borrowed\":11.5,\"want\":7,\"idle\":false,"
          "\"target\":67.5,\"deficitUnitMs\":4500.01,\"reclaims\":2,\"worstReclaimMs\":90.001,\"granted\":3,"
          "\"refused\":{\"guarantee_on_loan\":12,\"deadline\":1}},"
          "\"a\\\"\":{\"guarantee\":0,\"held\":0,\"own\":0,\"lent\":0,\"borrowed\":0,\"want\":0,\"idle\":true,"
          "\"target\":0,\"deficitUnitMs\":9223372036854775807.999999999,\"reclaims\":0,\"worstReclaimMs\":0,"
          "\"granted\":0,\"refused\":{\"store_unavailable\":1}}},\"overrunLeases\":[\"c\",\"a\"]}]}}\n");

    /* Where nobody has names they are called as in a recording. */
    share = (ration_counter_report){.limit = "t",
                                    .kind = RATION_KIND_SHARE,
                                    .key = {"acc", 3},
                                    .draining = 1,
                                    .overrun = overrun,
                                    .overrun_count = 3};
    for (size_t i = 0; i < 2; i++) {
        rn_trace_report_begin(&report, &out, ration_time_of(0), RATION_REPORT_LIMITS, i == 0 ? &nameless : NULL);
        report.reporter.counter(report.reporter.ctx, &share);
        rn_trace_report_end(&report);
        wrote("{\"at\":0,\"op\":\"limits\",\"result\":{\"limits\":[{\"limit\":\"t\",\"kind\":\"share\",\"key\":\"acc\","
              "\"tenants\":{},\"overrunLeases\":[\"r3\",\"r1\",\"r4\"],\"draining\":0.000001}]}}\n");
    }
}

static void adaptive_limits_have_their_classes(void **state)
{
    static const ration_class_report classes[] = {{{"x", 1}, 4000000, 3000000}, {{"y", 1}, 0, 1000000}};
    static const ration_counter_report rows[] = {
        {.limit = "l",
         .kind = RATION_KIND_ADAPTIVE,
         .key = {"acc", 3},
         .current = 12000000,
         .held = 5000000,
         .classes = classes,
         .class_count = 2},
        {.limit = "m", .kind = RATION_KIND_ADAPTIVE, .key = {"local", 5}, .current = 1000000},
    };
    rn_trace_report report;

    (void)state;
    rn_trace_report_begin(&report, &out, ration_time_of(0), RATION_REPORT_LIMITS, &names);
    report.reporter.counter(report.reporter.ctx, &rows[0]);
    report.reporter.counter(report.reporter.ctx, &rows[1]);
    rn_trace_report_end(&report);
    wrote(
        "{\"at\":0,\"op\":\"limits\",\"result\":{\"limits\":[{\"limit\":\"l\",\"kind\":\"adaptive\",\"key\":\"acc\","
        "\"current\":12,\"held\":5,\"classes\":{\"x\":{\"reserved\":4,\"held\":3},\"y\":{\"reserved\":0,\"held\":1}}},"
        "{\"limit\":\"m\",\"kind\":\"adaptive\",\"key\":\"local\",\"current\":1,\"held\":0,\"classes\":{}}]}}\n");
}

static void breakers_have_a_time_where_it_is_known(void **state)
{
    static const ration_breaker_report rows[] = {
        {"p", {"acc", 3}, RATION_BREAKER_OPEN, 2, {1100500}, NULL, false},
        {"p", {"b", 1}, RATION_BREAKER_HALF_OPEN, 3, {RATION_NEVER_US}, NULL, false},
        {"p", {"c", 1}, RATION_BREAKER_CLOSED, 1, {RATION_NEVER_US}, NULL, false},
    };
    rn_trace_report report;

    (void)state;
    rn_trace_report_begin(&report, &out, ration_time_of(0), RATION_REPORT_LIMITS, &names);
    for (size_t i = 0; i < 3; i++)
        report.reporter.breaker(report.reporter.ctx, &rows[i]);
    rn_trace_report_end(&report);
    wrote(
        "{\"at\":0,\"op\":\"limits\",\"result\":{\"limits\":[{\"breaker\":\"acc\",\"state\":\"open\",\"generation\":2,"
        "\"retryAt\":1100.5},{\"breaker\":\"b\",\"state\":\"half-open\",\"generation\":3},"
        "{\"breaker\":\"c\",\"state\":\"closed\",\"generation\":1}]}}\n");
}

static void fairness_and_allocation(void **state)
{
    static const ration_tenant_report tenants[] = {
        {.name = {"a", 1},
         .target = 33333333,
         .cost_share = 998004,
         .request_share = 500000,
         .configured_share = 333333,
         .cost_skew = 2994015,
         .request_skew = 1500000},
        {.name = {"b", 1}, .configured_share = 1000000},
    };
    static const ration_share_report share = {"p", "t", {"acc", 3}, tenants, 2, true};
    static const ration_share_report none = {.provider = "p", .limit = "u", .key = {"acc", 3}};
    rn_trace_report report;

    (void)state;
    rn_trace_report_begin(&report, &out, ration_time_of(0), RATION_REPORT_FAIRNESS, &names);
    report.reporter.share(report.reporter.ctx, &share);
    report.reporter.share(report.reporter.ctx, &none);
    rn_trace_report_end(&report);
    wrote("{\"at\":0,\"op\":\"fairness\",\"result\":{\"limits\":[{\"limit\":\"t\",\"key\":\"acc\",\"tenants\":{"
          "\"a\":{\"costShare\":0.998004,\"requestShare\":0.5,\"configuredShare\":0.333333,\"costSkew\":2.994015,"
          "\"requestSkew\":1.5},"
          "\"b\":{\"costShare\":0,\"requestShare\":0,\"configuredShare\":1,\"costSkew\":0,\"requestSkew\":0}},"
          "\"unitsDisagree\":true},{\"limit\":\"u\",\"key\":\"acc\",\"tenants\":{},\"unitsDisagree\":false}]}}\n");

    rn_trace_report_begin(&report, &out, ration_time_of(0), RATION_REPORT_ALLOCATION, &names);
    report.reporter.share(report.reporter.ctx, &share);
    rn_trace_report_end(&report);
    wrote("{\"at\":0,\"op\":\"allocation\",\"result\":{\"limits\":[{\"limit\":\"t\",\"key\":\"acc\",\"tenants\":{"
          "\"a\":33.333333,\"b\":0}}]}}\n");
}

static void thousand_millionths_are_exact(void **state)
{
    static const struct {
        int64_t whole;
        int64_t rest;
        const char *want;
    } rows[] = {
        {0, 0, "0"},
        {7, 0, "7"},
        {0, 1, "0.000000001"},
        {10, 100000000, "10.1"},
        {0, 120000000, "0.12"},
        {1, 999999999, "1.999999999"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].want);
        rn_output_nano(&out, NULL, rows[i].whole, rows[i].rest);
        wrote(rows[i].want);
    }
}

static void leases_without_waiters(void **state)
{
    ration_lease_report lease = {.lease = {1, 1},
                                 .account = {"acc", 3},
                                 .tenant = {"t", 1},
                                 .class_name = {"c", 1},
                                 .priority = RATION_PRIORITY_LOW,
                                 .cost = 1500000,
                                 .since = {1000},
                                 .ends_at = {2000},
                                 .ttl_until = {3000},
                                 .overrun = true};
    rn_trace_report report;

    (void)state;
    rn_trace_report_begin(&report, &out, ration_time_of(0), RATION_REPORT_LEASES, &names);
    report.reporter.lease(report.reporter.ctx, &lease);
    lease = (ration_lease_report){.lease = {0, 1},
                                  .account = {"acc", 3},
                                  .priority = RATION_PRIORITY_NORMAL,
                                  .ends_at = {RATION_NEVER_US},
                                  .ttl_until = {RATION_NEVER_US}};
    report.reporter.lease(report.reporter.ctx, &lease);
    lease.waiting = true;
    report.reporter.lease(report.reporter.ctx, &lease);
    rn_trace_report_end(&report);
    wrote(
        "{\"at\":0,\"op\":\"leases\",\"result\":{\"leases\":[{\"id\":\"b\",\"account\":\"acc\",\"tenant\":\"t\","
        "\"class\":\"c\",\"priority\":\"low\",\"cost\":1.5,\"grantedAt\":1,\"endsAt\":2,\"ttlUntil\":3,\"overrun\":"
        "true},"
        "{\"id\":\"a\",\"account\":\"acc\",\"priority\":\"normal\",\"cost\":0,\"grantedAt\":0,\"overrun\":false}]}}\n");
}

#define TEXT(s)                                                                                                        \
    {                                                                                                                  \
        (s), sizeof(s) - 1                                                                                             \
    }

static const ration_var vars[] = {{TEXT("org"), TEXT("7")}, {TEXT("net"), TEXT("\xff")}, {TEXT("org"), TEXT("8")}};
static const ration_header headers[] = {
    {TEXT("X-A"), TEXT("1")}, {TEXT("Cookie"), TEXT("secret")}, {TEXT("X-B"), TEXT("2")}, {TEXT("X-A"), TEXT("3")}};

static bool no_cookie(void *ctx, ration_text header)
{
    return header.size != strlen(ctx);
}

static void calls_are_written_as_they_are_read(void **state)
{
    const ration_time at = {1500};
    const ration_text id = TEXT("r1");
    const ration_request bare = RATION_REQUEST_INIT;
    ration_request request = {.provider = TEXT("p"),
                              .account = TEXT("acc"),
                              .target = TEXT("t"),
                              .credential = TEXT("0123"),
                              .method = TEXT("GET"),
                              .path = TEXT("/a?key=secret#x"),
                              .endpoint = TEXT("/{x}"),
                              .vars = vars,
                              .var_count = 3,
                              .tenant = TEXT(""),
                              .class_name = TEXT("c"),
                              .priority = RATION_PRIORITY_HIGH,
                              .auth = RATION_AUTH_YES,
                              .retry = true,
                              .cost = 48500000,
                              .hold_us = 50000,
                              .wait_us = INT64_MAX,
                              .ttl_us = 1};

    (void)state;
    rn_trace_write_acquire(&out, at, id, &bare);
    wrote("{\"at\":1.5,\"op\":\"acquire\",\"id\":\"r1\",\"wait\":0}\n");
    rn_trace_write_acquire(&out, at, id, &request);
    wrote(
        "{\"at\":1.5,\"op\":\"acquire\",\"id\":\"r1\",\"provider\":\"p\",\"account\":\"acc\",\"target\":\"t\","
        "\"credential\":\"0123\",\"tenant\":\"\",\"class\":\"c\",\"cost\":48.5,\"hold\":50,\"wait\":9007199254740.992,"
        "\"ttl\":0.001,\"priority\":\"high\",\"method\":\"GET\",\"path\":\"/a\",\"endpoint\":\"/{x}\","
        "\"vars\":{\"org\":\"7\",\"net\":\"\xef\xbf\xbd\"},\"retry\":true,\"auth\":true}\n");
    request = bare;
    request.hold_us = RATION_FOREVER_US;
    request.ttl_us = RATION_FOREVER_US;
    request.auth = RATION_AUTH_NO;
    request.health = true;
    rn_trace_write_acquire(&out, at, id, &request);
    wrote("{\"at\":1.5,\"op\":\"acquire\",\"id\":\"r1\",\"hold\":null,\"wait\":0,\"auth\":false,\"health\":true}\n");
    rn_trace_write_check(&out, at, id, &request, RATION_CHECK_ENFORCER);
    wrote("{\"at\":1.5,\"op\":\"check\",\"id\":\"r1\",\"mode\":\"enforcer\",\"hold\":null,\"wait\":0,"
          "\"auth\":false,\"health\":true}\n");
}

static void responses_keep_what_matters(void **state)
{
    const ration_time at = {0};
    const ration_text id = TEXT("r1");
    const ration_response response = {.status = 429, .headers = headers, .header_count = 4, .body = TEXT("slow\n")};
    const ration_response nothing = {.status = -1};
    static char cookie[] = "Cookie";
    const rn_trace_filter few = {cookie, no_cookie, true};
    const rn_trace_filter all = {NULL, NULL, false};

    (void)state;
    rn_trace_write_observe(&out, at, id, &response, &few);
    wrote("{\"at\":0,\"op\":\"observe\",\"id\":\"r1\",\"status\":429,\"headers\":{\"X-A\":[\"1\",\"3\"],\"X-B\":\"2\"},"
          "\"body\":\"slow\\n\"}\n");
    rn_trace_write_observe(&out, at, id, &nothing, &all);
    wrote("{\"at\":0,\"op\":\"observe\",\"id\":\"r1\",\"headers\":{}}\n");
}

static void the_other_calls(void **state)
{
    const ration_time at = {0};
    const ration_text id = TEXT("r1");
    const ration_completion completion = {RATION_OUTCOME_THROTTLED, 500000};
    const ration_completion usual = RATION_COMPLETION_INIT;

    (void)state;
    rn_trace_write_release(&out, at, id, &completion);
    wrote("{\"at\":0,\"op\":\"release\",\"id\":\"r1\",\"outcome\":\"throttled\",\"cost\":0.5}\n");
    rn_trace_write_release(&out, at, id, &usual);
    wrote("{\"at\":0,\"op\":\"release\",\"id\":\"r1\",\"outcome\":\"success\"}\n");
    rn_trace_write_op(&out, at, "renew", id);
    wrote("{\"at\":0,\"op\":\"renew\",\"id\":\"r1\"}\n");
    rn_trace_write_op(&out, at, "advance", (ration_text){NULL, 0});
    wrote("{\"at\":0,\"op\":\"advance\"}\n");
    rn_trace_write_health(&out, at, ration_text_of("acc\n"), true);
    wrote("{\"at\":0,\"op\":\"health\",\"account\":\"acc\\n\",\"ok\":true}\n");
    rn_trace_write_health(&out, at, (ration_text){NULL, 0}, false);
    wrote("{\"at\":0,\"op\":\"health\",\"account\":\"\",\"ok\":false}\n");
    rn_trace_write_config(&out, ration_time_of(-1000000), ration_text_of("{\"providers\":[]}"));
    wrote("{\"op\":\"config\",\"startedAt\":-1000,\"providers\":[]}\n");
    rn_trace_write_config(&out, at, ration_text_of("{}"));
    wrote("{\"op\":\"config\",\"startedAt\":0}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(decisions_have_their_members_in_order, fresh, done),
        cmocka_unit_test_setup_teardown(answers, fresh, done),
        cmocka_unit_test_setup_teardown(events_have_their_members_in_order, fresh, done),
        cmocka_unit_test_setup_teardown(counters_have_the_members_of_their_kind, fresh, done),
        cmocka_unit_test_setup_teardown(shares_have_their_tenants_in_order, fresh, done),
        cmocka_unit_test_setup_teardown(adaptive_limits_have_their_classes, fresh, done),
        cmocka_unit_test_setup_teardown(breakers_have_a_time_where_it_is_known, fresh, done),
        cmocka_unit_test_setup_teardown(fairness_and_allocation, fresh, done),
        cmocka_unit_test_setup_teardown(thousand_millionths_are_exact, fresh, done),
        cmocka_unit_test_setup_teardown(leases_without_waiters, fresh, done),
        cmocka_unit_test_setup_teardown(calls_are_written_as_they_are_read, fresh, done),
        cmocka_unit_test_setup_teardown(responses_keep_what_matters, fresh, done),
        cmocka_unit_test_setup_teardown(the_other_calls, fresh, done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
