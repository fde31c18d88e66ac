/* SPDX-License-Identifier: MIT */
/* What a provider's status means, with and without lists of its own. */
#include "serve/outcome.h"

#include "support/check.h"

static const int teapot[] = {418};
static const int overloaded[] = {429, 529};
static const int lost[] = {404, 410};

static void test_outcomes(void **state)
{
    static const ration_error_rule usual = {.rate_limited = NULL};
    static const ration_error_rule errors = {
        .rate_limited = teapot, .rate_limited_count = 1, .transient = lost, .transient_count = 2};
    static const ration_error_rule outcome = {
        .throttled = overloaded, .throttled_count = 2, .failure = lost, .failure_count = 2};
    static const struct {
        const char *why;
        const ration_error_rule *rule;
        int status;
        bool limited; /* by what the whole response said */
        ration_outcome want;
    } rows[] = {
        {"success", &usual, 200, false, RATION_OUTCOME_SUCCESS},
        {"the client's fault", &usual, 404, false, RATION_OUTCOME_SUCCESS},
        {"too many", &usual, 429, true, RATION_OUTCOME_THROTTLED},
        {"but for its body", &usual, 429, false, RATION_OUTCOME_SUCCESS},
        {"500", &usual, 500, false, RATION_OUTCOME_FAILURE},
        {"501", &usual, 501, false, RATION_OUTCOME_SUCCESS},
        {"502", &usual, 502, false, RATION_OUTCOME_FAILURE},
        {"503", &usual, 503, false, RATION_OUTCOME_FAILURE},
        {"504", &usual, 504, false, RATION_OUTCOME_FAILURE},
        {"505", &usual, 505, false, RATION_OUTCOME_SUCCESS},
        {"transient elsewhere", &errors, 410, false, RATION_OUTCOME_FAILURE},
        {"and 500 is not", &errors, 500, false, RATION_OUTCOME_SUCCESS},
        {"throttled and transient: throttled", &errors, 404, true, RATION_OUTCOME_THROTTLED},
        {"a list says what is throttled", &outcome, 529, false, RATION_OUTCOME_THROTTLED},
        {"whatever the body says", &outcome, 429, false, RATION_OUTCOME_THROTTLED},
        {"and what is not", &outcome, 418, true, RATION_OUTCOME_SUCCESS},
        {"a list says what is a failure", &outcome, 404, false, RATION_OUTCOME_FAILURE},
        {"and what is none", &outcome, 500, false, RATION_OUTCOME_SUCCESS},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_outcome_of(rows[i].rule, rows[i].status, rows[i].limited), rows[i].want);
    }
    CHECK_ROW("what says wait");
    CHECK(rn_status_says_wait(&usual, 429) && !rn_status_says_wait(&usual, 418));
    CHECK(rn_status_says_wait(&errors, 418) && !rn_status_says_wait(&errors, 429));
}

static void test_healthy(void **state)
{
    static const ration_breaker_rule usual = {.check_expect = NULL};
    static const ration_breaker_rule choosy = {.check_expect = lost, .check_expect_count = 2};
    static const struct {
        const ration_breaker_rule *rule;
        int status;
        bool want;
    } rows[] = {
        {&usual, 199, false}, {&usual, 200, true},   {&usual, 299, true},  {&usual, 300, false},
        {&choosy, 404, true}, {&choosy, 200, false}, {&choosy, 410, true}, {&choosy, 500, false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_EQ(rn_status_is_healthy(rows[i].rule, rows[i].status), rows[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_outcomes), cmocka_unit_test(test_healthy)};

    return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
