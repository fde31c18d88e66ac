/* SPDX-License-Identifier: MIT */
/* Which failed calls are sent again, when, and how often. */
#include "serve/retry.h"

#include "base/text.h"
#include "base/units.h"

#include "support/check.h"

#define SECOND INT64_C(1000000)
#define NOW (100 * SECOND)
#define NEVER RATION_NEVER_US

static void test_decisions(void **state)
{
    /* A POST without a key, kept, that may have two retries until 130 s. */
    static const struct {
        const char *why;
        rn_retry_cause cause;
        bool idempotent, lost, draining; /* lost: its body was not kept */
        int64_t attempts, retries;
        int64_t after, deadline;
        rn_retry_verdict want;
        int64_t at; /* at the earliest */
    } rows[] = {
        {"429", RN_RETRY_THROTTLED, false, false, false, 1, 2, NEVER, 130 * SECOND, RN_RETRY_AGAIN, NOW},
        {"no connection", RN_RETRY_UNSENT, false, false, false, 1, 2, NEVER, 130 * SECOND, RN_RETRY_AGAIN,
         NOW + SECOND / 4},
        {"503 to a POST", RN_RETRY_TRANSIENT, false, false, false, 1, 2, NEVER, 130 * SECOND, RN_RETRY_UNSAFE, 0},
        {"a POST that broke", RN_RETRY_BROKEN, false, false, false, 1, 2, NEVER, 130 * SECOND, RN_RETRY_UNSAFE, 0},
        {"503 to a GET", RN_RETRY_TRANSIENT, true, false, false, 1, 2, NEVER, 130 * SECOND, RN_RETRY_AGAIN,
         NOW + SECOND / 4},
        {"a GET that broke", RN_RETRY_BROKEN, true, false, false, 2, 2, NEVER, 130 * SECOND, RN_RETRY_AGAIN,
         NOW + SECOND / 2},
        {"a 429 names its time: the decider keeps it", RN_RETRY_THROTTLED, false, false, false, 1, 2, 110 * SECOND,
         130 * SECOND, RN_RETRY_AGAIN, NOW},
        {"a 503 names its time", RN_RETRY_TRANSIENT, true, false, false, 1, 2, 110 * SECOND, 130 * SECOND,
         RN_RETRY_AGAIN, 110 * SECOND},
        {"one that is over", RN_RETRY_TRANSIENT, true, false, false, 1, 2, 90 * SECOND, 130 * SECOND, RN_RETRY_AGAIN,
         NOW + SECOND / 4},
        {"a 429 until the deadline", RN_RETRY_THROTTLED, false, false, false, 1, 2, 130 * SECOND, 130 * SECOND,
         RN_RETRY_LATE, 0},
        {"a microsecond before", RN_RETRY_THROTTLED, false, false, false, 1, 2, 130 * SECOND - 1, 130 * SECOND,
         RN_RETRY_AGAIN, NOW},
        {"a 503 until the deadline", RN_RETRY_TRANSIENT, true, false, false, 1, 2, 130 * SECOND, 130 * SECOND,
         RN_RETRY_LATE, 0},
        {"the deadline is now", RN_RETRY_THROTTLED, true, false, false, 1, 2, NEVER, NOW, RN_RETRY_LATE, 0},
        {"no time for the pause", RN_RETRY_UNSENT, true, false, false, 1, 2, NEVER, NOW + SECOND / 4, RN_RETRY_LATE, 0},
        {"none allowed", RN_RETRY_THROTTLED, true, false, false, 1, 0, NEVER, 130 * SECOND, RN_RETRY_OFF, 0},
        {"the last one", RN_RETRY_THROTTLED, true, false, false, 2, 2, NEVER, 130 * SECOND, RN_RETRY_AGAIN, NOW},
        {"one too many", RN_RETRY_THROTTLED, true, false, false, 3, 2, NEVER, 130 * SECOND, RN_RETRY_SPENT, 0},
        {"its body is gone", RN_RETRY_THROTTLED, true, true, false, 1, 2, NEVER, 130 * SECOND, RN_RETRY_BODY, 0},
        {"draining", RN_RETRY_THROTTLED, true, false, true, 1, 2, NEVER, 130 * SECOND, RN_RETRY_DRAINING, 0},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_retry_facts facts = {.cause = rows[i].cause,
                                      .idempotent = rows[i].idempotent,
                                      .kept = !rows[i].lost,
                                      .draining = rows[i].draining,
                                      .attempts = rows[i].attempts,
                                      .retries = rows[i].retries,
                                      .now = {NOW},
                                      .after = {rows[i].after},
                                      .deadline = {rows[i].deadline},
                                      .seed = 7};
        const bool exact = rows[i].cause == RN_RETRY_THROTTLED || (rows[i].after != NEVER && rows[i].after > NOW);
        ration_time at = {5};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_retry_decide(&facts, &at), rows[i].want);
        if (rows[i].want != RN_RETRY_AGAIN) {
            CHECK_EQ(at.us, 5);
        } else if (exact) {
            CHECK_EQ(at.us, rows[i].at);
        } else {
            CHECK_EQ(at.us, NOW + rn_retry_pause(rows[i].attempts, 7));
            CHECK(at.us >= rows[i].at);
        }
    }
    CHECK_ROW(NULL);
}

/* Half of each pause is certain; the other half spreads calls, and is the same for the same call. */
static void test_pauses(void **state)
{
    static const struct {
        int64_t attempts, most;
    } rows[] = {{1, SECOND / 2}, {2, SECOND},     {3, 2 * SECOND},  {4, 4 * SECOND},
                {5, 8 * SECOND}, {6, 8 * SECOND}, {11, 8 * SECOND}, {INT64_MAX, 8 * SECOND}};
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t least = INT64_MAX, most = 0;

        for (uint64_t seed = 0; seed < 2000; seed++) {
            const int64_t pause = rn_retry_pause(rows[i].attempts, seed);

            CHECK_EQ(pause, rn_retry_pause(rows[i].attempts, seed));
            least = rn_min(least, pause);
            most = rn_max(most, pause);
        }
        CHECK(least >= rows[i].most / 2 && least < rows[i].most * 51 / 100);
        CHECK(most <= rows[i].most && most > rows[i].most * 99 / 100);
    }
    CHECK(rn_retry_pause(1, 1) != rn_retry_pause(1, 2));
}

static void test_methods(void **state)
{
    static const rn_http_field key = {{"idempotency-key", 15}, {"k", 1}};
    static const struct {
        const char *method;
        bool key, want;
    } rows[] = {
        {"GET", false, true},    {"HEAD", false, true},      {"OPTIONS", false, true}, {"PUT", false, true},
        {"DELETE", false, true}, {"POST", false, false},     {"PATCH", false, false},  {"get", false, false},
        {"POST", true, true},    {"PROPFIND", false, false}, {"PATCH", true, true},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_http_head head = {.method = ration_text_of(rows[i].method), .fields = {&key, rows[i].key ? 1 : 0}};

        CHECK_ROW(rows[i].method);
        CHECK_EQ(rn_request_is_idempotent(&head), rows[i].want);
    }
    CHECK_ROW(NULL);
}

static void test_how_many(void **state)
{
    static const int64_t own[] = {RATION_UNSET, 0, 5};
    const rn_provider provider = {.retries = 2, .endpoint_retries = own};
    static const struct {
        const char *why;
        size_t endpoint;
        int64_t account, want;
    } rows[] = {
        {"the provider's", SIZE_MAX, RATION_UNSET, 2},
        {"an endpoint that is silent", 0, RATION_UNSET, 2},
        {"the endpoint's", 1, RATION_UNSET, 0},
        {"also if it is more", 2, RATION_UNSET, 5},
        {"the account's", SIZE_MAX, 3, 3},
        {"also none", 0, 0, 0},
        {"either may forbid: the endpoint", 1, 3, 0},
        {"or the account", 2, 1, 1},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_account account = {.retries = rows[i].account};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_retries_allowed(&provider, rows[i].endpoint, &account), rows[i].want);
    }
    CHECK_ROW(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_how_many),
    };

    return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
