/* SPDX-License-Identifier: MIT */
/* How a "no" looks over HTTP: status, Retry-After, document. */
#include <stdio.h>

#include "base/mem.h"
#include "base/text.h"
#include "serve/refusal.h"

#include "support/check.h"

static void test_statuses(void **state)
{
    static const struct {
        ration_reason reason;
        int status;
    } rows[] = {
        {RATION_REASON_RATE_LIMITED, 429},      {RATION_REASON_CONCURRENCY_FULL, 429},
        {RATION_REASON_ADAPTIVE_FULL, 429},     {RATION_REASON_QUOTA_EXHAUSTED, 429},
        {RATION_REASON_PENALIZED, 429},         {RATION_REASON_GUARANTEE_ON_LOAN, 429},
        {RATION_REASON_NOTHING_TO_BORROW, 429}, {RATION_REASON_DEADLINE, 429},
        {RATION_REASON_CIRCUIT_OPEN, 503},      {RATION_REASON_STORE_UNAVAILABLE, 503},
        {RATION_REASON_DRAINING, 503},          {RATION_REASON_QUEUE_FULL, 503},
        {RATION_REASON_TOO_MANY_KEYS, 503},     {RATION_REASON_COST_EXCEEDS_LIMIT, 422},
        {RATION_REASON_UNKNOWN_ACCOUNT, 404},   {RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON, 422},
        {RATION_REASON_UNKNOWN_TENANT, 400},    {RATION_REASON_UNKNOWN_CLASS, 400},
        {RATION_REASON_NOT_PERMITTED, 403},     {RATION_REASON_PAUSED, 503},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(ration_reason_name(rows[i].reason));
        CHECK_EQ(rn_refusal_status(rows[i].reason), rows[i].status);
    }
    for (int i = RATION_REASON_NONE + 1; i < RATION_REASON_COUNT; i++) {
        CHECK_ROW(ration_reason_name((ration_reason)i));
        const int status = rn_refusal_status((ration_reason)i);
        CHECK(status != 429 || ration_reason_retryable((ration_reason)i));
    }
}

static void test_retry_after(void **state)
{
    static const struct {
        const char *why;
        ration_reason reason;
        int64_t now_us, retry_us, want;
    } rows[] = {
        {"a whole second", RATION_REASON_RATE_LIMITED, 0, 1000000, 1},
        {"rounded up", RATION_REASON_RATE_LIMITED, 0, 1000001, 2},
        {"at least one", RATION_REASON_RATE_LIMITED, 0, 1, 1},
        {"the time has come", RATION_REASON_RATE_LIMITED, 5, 5, 1},
        {"the time is over", RATION_REASON_RATE_LIMITED, 5000000, 1, 1},
        {"not known", RATION_REASON_DRAINING, 0, RATION_NEVER_US, 0},
        {"waiting does not help", RATION_REASON_COST_EXCEEDS_LIMIT, 0, 1000000, 0},
        {"a day", RATION_REASON_QUOTA_EXHAUSTED, 0, INT64_C(86400000000), 86400},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_decision d = rn_refusal_of(rows[i].reason, ration_time_of(rows[i].now_us));

        CHECK_ROW(rows[i].why);
        d.retry_at.us = rows[i].retry_us;
        CHECK_EQ(rn_refusal_retry_after(&d, ration_time_of(rows[i].now_us)), rows[i].want);
    }
}

static void check_document(const rn_problem *problem, const char *want)
{
    rn_output out;

    rn_output_init(&out, rn_mem_default(), RN_PROBLEM_MAX);
    rn_problem_write(&out, problem);
    CHECK_EQ(out.err, RATION_OK);
    CHECK_TEXT(((ration_text){out.data, out.size}), want);
    rn_output_fini(&out);
}

static void test_decision(void **state)
{
    static const ration_lease blocking[] = {{3, 1}, {70, 2}};
    ration_decision d = rn_refusal_of(RATION_REASON_RATE_LIMITED, ration_time_of(1000000));
    const rn_problem problem = {.decision = &d,
                                .detail = {"said \"no\"", 9},
                                .request_id = {"r-1", 3},
                                .account = {"acme", 4},
                                .waited_us = 2500};
    (void)state;

    d.retry_at.us = 1333334;
    d.limit = "org-rate";
    d.key = ration_text_of("acme");
    d.estimate = true;
    d.blocking = blocking;
    d.blocking_count = 2;
    d.facts.charge = 1000000;
    d.facts.available = 500000;
    d.facts.capacity = 10000000;
    check_document(&problem,
                   "{\"type\":\"urn:ration:problem:rate_limited\",\"title\":\"Rate limit reached\",\"status\":429,"
                   "\"detail\":\"said \\\"no\\\"\",\"reason\":\"rate_limited\",\"category\":\"capacity\","
                   "\"retryable\":true,\"limit\":\"org-rate\",\"key\":\"acme\",\"retryAfterMs\":333.334,"
                   "\"estimate\":true,\"charge\":1,\"available\":0.5,\"capacity\":10,"
                   "\"blockingLeases\":[\"3-1\",\"70-2\"],\"requestId\":\"r-1\",\"account\":\"acme\","
                   "\"waitedMs\":2.5}\n");
}

/* Where a tenant stands, with and without what is not known. */
static void test_tenant(void **state)
{
    static const struct {
        const char *why;
        int64_t hold_us, horizon_us, pool;
        const char *want;
    } rows[] = {
        {"all of it", 200000, 100500, 0,
         "\"tenant\":\"acme\",\"guarantee\":50,\"own\":10,\"lent\":40,\"pool\":0,\"holdMs\":200,"
         "\"reclaimHorizonMs\":100.5"},
        {"no hold was declared", RATION_UNSET, 100500, 7,
         "\"tenant\":\"acme\",\"guarantee\":50,\"own\":10,\"lent\":40,\"pool\":0.000007,"
         "\"reclaimHorizonMs\":100.5"},
        {"nor is it, without an end", RATION_FOREVER_US, 100500, RATION_UNSET,
         "\"tenant\":\"acme\",\"guarantee\":50,\"own\":10,\"lent\":40,\"reclaimHorizonMs\":100.5"},
        {"a hold of nothing is declared", 0, RATION_UNSET, RATION_UNSET,
         "\"tenant\":\"acme\",\"guarantee\":50,\"own\":10,\"lent\":40,\"holdMs\":0"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_decision d = rn_refusal_of(RATION_REASON_NOTHING_TO_BORROW, ration_time_of(0));
        const rn_problem problem = {.decision = &d, .detail = {"x", 1}, .waited_us = RATION_UNSET};
        char want[512];

        CHECK_ROW(rows[i].why);
        d.facts.tenant = ration_text_of("acme");
        d.facts.guarantee = 50 * RATION_UNIT;
        d.facts.own = 10 * RATION_UNIT;
        d.facts.lent = 40 * RATION_UNIT;
        d.facts.pool = rows[i].pool;
        d.facts.hold_us = rows[i].hold_us;
        d.facts.horizon_us = rows[i].horizon_us;
        (void)snprintf(want, sizeof want,
                       "{\"type\":\"urn:ration:problem:nothing_to_borrow\",\"title\":\"Nothing to borrow\","
                       "\"status\":429,\"detail\":\"x\",\"reason\":\"nothing_to_borrow\",\"category\":\"fairness\","
                       "\"retryable\":true,%s}\n",
                       rows[i].want);
        check_document(&problem, want);
    }
}

/* However many leases are in the way, the document stays small enough to be sent. */
static void test_many_that_block(void **state)
{
    static ration_lease blocking[100000];
    ration_decision d = rn_refusal_of(RATION_REASON_GUARANTEE_ON_LOAN, ration_time_of(0));
    const rn_problem problem = {.decision = &d, .waited_us = RATION_UNSET};
    size_t at;
    (void)state;

    for (size_t i = 0; i < 100000; i++)
        blocking[i] = (ration_lease){UINT32_MAX, UINT32_MAX};
    d.blocking = blocking;
    for (size_t count = 99; count <= 100000; count = count < 101 ? count + 1 : count * 10) {
        rn_output out;

        rn_output_init(&out, rn_mem_default(), RN_PROBLEM_MAX);
        d.blocking_count = count;
        rn_problem_write(&out, &problem);
        CHECK_EQ(out.err, RATION_OK);
        CHECK_EQ(rn_text_find((ration_text){out.data, out.size}, ration_text_of("Omitted"), &at), count > 100);
        rn_output_fini(&out);
    }
}

static void test_fault(void **state)
{
    const rn_problem problem = {.status = 504,
                                .name = "upstream_timeout",
                                .title = "The provider took too long",
                                .detail = {"no byte in 60 s", 15},
                                .waited_us = RATION_UNSET};
    (void)state;

    check_document(&problem,
                   "{\"type\":\"urn:ration:problem:upstream_timeout\",\"title\":\"The provider took too long\","
                   "\"status\":504,\"detail\":\"no byte in 60 s\"}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses), cmocka_unit_test(test_retry_after),     cmocka_unit_test(test_decision),
        cmocka_unit_test(test_tenant),   cmocka_unit_test(test_many_that_block), cmocka_unit_test(test_fault),
    };

    return cmocka_run_group_tests_name("refusal", tests, NULL, NULL);
}
