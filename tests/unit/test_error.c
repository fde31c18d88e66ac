/* SPDX-License-Identifier: MIT */
#include "support/check.h"

static void errors(void **state)
{
    (void)state;
    CHECK_STR(ration_err_text(RATION_OK), "no error");
    CHECK_STR(ration_err_text(RATION_ERR_INVALID), "invalid argument");
    CHECK_STR(ration_err_text(RATION_ERR_NOMEM), "out of memory");
    CHECK_STR(ration_err_text(RATION_ERR_RANGE), "value out of range");
    CHECK_STR(ration_err_text(RATION_ERR_UNKNOWN), "no such request or lease");
    CHECK_STR(ration_err_text(RATION_ERR_FULL), "table full");
    CHECK_STR(ration_err_text(RATION_ERR_SYNTAX), "malformed text");
    CHECK_STR(ration_err_text(RATION_ERR_CONFIG), "the configuration has faults");
    CHECK_STR(ration_err_text(RATION_ERR_IO), "input or output failed");
    CHECK_STR(ration_err_text(1), "unknown error");
    CHECK_STR(ration_err_text(-99), "unknown error");
}

/* The reason table of the specification, chapter 1, by hand. */
static void reasons(void **state)
{
    static const struct {
        ration_reason reason;
        const char *name, *category;
        bool retryable;
    } rows[] = {
        {RATION_REASON_RATE_LIMITED, "rate_limited", "capacity", true},
        {RATION_REASON_CONCURRENCY_FULL, "concurrency_full", "capacity", true},
        {RATION_REASON_ADAPTIVE_FULL, "adaptive_full", "capacity", true},
        {RATION_REASON_QUOTA_EXHAUSTED, "quota_exhausted", "budget", true},
        {RATION_REASON_PENALIZED, "penalized", "provider", true},
        {RATION_REASON_CIRCUIT_OPEN, "circuit_open", "provider", true},
        {RATION_REASON_GUARANTEE_ON_LOAN, "guarantee_on_loan", "fairness", true},
        {RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON, "hold_exceeds_reclaim_horizon", "fairness", false},
        {RATION_REASON_NOTHING_TO_BORROW, "nothing_to_borrow", "fairness", true},
        {RATION_REASON_COST_EXCEEDS_LIMIT, "cost_exceeds_limit", "caller", false},
        {RATION_REASON_UNKNOWN_TENANT, "unknown_tenant", "caller", false},
        {RATION_REASON_UNKNOWN_CLASS, "unknown_class", "caller", false},
        {RATION_REASON_UNKNOWN_ACCOUNT, "unknown_account", "caller", false},
        {RATION_REASON_UNKNOWN_PROVIDER, "unknown_provider", "caller", false},
        {RATION_REASON_DEADLINE, "deadline", "caller", true},
        {RATION_REASON_CANCELLED, "cancelled", "caller", false},
        {RATION_REASON_DRAINING, "draining", "caller", true},
        {RATION_REASON_QUEUE_FULL, "queue_full", "capacity", true},
        {RATION_REASON_TOO_MANY_KEYS, "too_many_keys", "capacity", true},
        {RATION_REASON_PAUSED, "paused", "capacity", true},
        {RATION_REASON_NOT_PERMITTED, "not_permitted", "caller", false},
        {RATION_REASON_STORE_UNAVAILABLE, "store_unavailable", "store", true},
    };

    (void)state;
    CHECK_EQ(sizeof(rows) / sizeof(rows[0]), RATION_REASON_COUNT - 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW(rows[i].name);
        CHECK_STR(ration_reason_name(rows[i].reason), rows[i].name);
        CHECK_STR(ration_category_name(ration_reason_category(rows[i].reason)), rows[i].category);
        CHECK_EQ(ration_reason_retryable(rows[i].reason), rows[i].retryable);
    }
}

static void other_names(void **state)
{
    (void)state;
    CHECK_STR(ration_priority_name(RATION_PRIORITY_UNSET), "");
    CHECK_STR(ration_priority_name(RATION_PRIORITY_CRITICAL), "critical");
    CHECK_STR(ration_priority_name(RATION_PRIORITY_HIGH), "high");
    CHECK_STR(ration_priority_name(RATION_PRIORITY_NORMAL), "normal");
    CHECK_STR(ration_priority_name(RATION_PRIORITY_LOW), "low");
    CHECK_STR(ration_outcome_name(RATION_OUTCOME_SUCCESS), "success");
    CHECK_STR(ration_outcome_name(RATION_OUTCOME_THROTTLED), "throttled");
    CHECK_STR(ration_outcome_name(RATION_OUTCOME_FAILURE), "failure");
    CHECK_STR(ration_outcome_name(RATION_OUTCOME_CANCELLED), "cancelled");
}

/* What a newer library may hand to an older program, through an int. */
static void values_from_elsewhere(void **state)
{
    const int strange[] = {RATION_REASON_COUNT, 1000, -1};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        CHECK_STR(ration_reason_name((ration_reason)strange[i]), "");
        CHECK(!ration_reason_retryable((ration_reason)strange[i]));
        CHECK_EQ(ration_reason_category((ration_reason)strange[i]), RATION_CATEGORY_CAPACITY);
        CHECK_STR(ration_category_name((ration_category)strange[i]), "");
        CHECK_STR(ration_priority_name((ration_priority)strange[i]), "");
        CHECK_STR(ration_outcome_name((ration_outcome)strange[i]), "");
    }
    CHECK_STR(ration_reason_name(RATION_REASON_NONE), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors),
        cmocka_unit_test(reasons),
        cmocka_unit_test(other_names),
        cmocka_unit_test(values_from_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
