/* SPDX-License-Identifier: MIT */
#include "support/check.h"

#include <ration/engine.h>

#include "base/units.h"

#define UNIT RATION_UNIT
#define NONE RATION_UNSET
#define SECOND INT64_C(1000000)
#define FACTS(CHARGE, AVAILABLE, CAPACITY, AHEAD)                                                                      \
    {                                                                                                                  \
        .charge = (CHARGE), .available = (AVAILABLE), .capacity = (CAPACITY), .ahead = (AHEAD)                         \
    }

/* 2024-01-02T03:04:05Z */
#define NOW (INT64_C(1704164645) * SECOND)

static ration_decision refusal(ration_reason reason, int64_t retry_us, bool estimate, ration_facts facts)
{
    return (ration_decision){
        .result = RATION_REFUSED,
        .at = {NOW},
        .reason = reason,
        .retry_at = {retry_us == RATION_NEVER_US ? RATION_NEVER_US : NOW + retry_us},
        .estimate = estimate,
        .limit = "daily",
        .key = ration_text_of("acme"),
        .facts = facts,
    };
}

static const char *explain(const ration_decision *d)
{
    static char text[1024];

    memset(text, '#', sizeof text);

    const size_t length = ration_decision_explain(d, text, sizeof text);

    CHECK_EQ(length, strlen(text));
    return text;
}

static const struct {
    ration_reason reason;
    int64_t retry_us;
    bool estimate;
    ration_facts facts;
    const char *text;
} sentences[] = {
    {RATION_REASON_RATE_LIMITED, 100000, false, FACTS(UNIT, 0, 2 * UNIT, 0),
     "The next token has not come yet in limit daily at acme: needs 1, 0 of 2 left. Try again in 100 ms, at "
     "2024-01-02T03:04:05.1Z."},
    {RATION_REASON_RATE_LIMITED, 333334, true, FACTS(UNIT, -UNIT / 2, 2 * UNIT, 3 * UNIT),
     "The next token has not come yet in limit daily at acme: needs 1, -0.5 of 2 left, waiters ahead need 3. Try "
     "again in about 333.334 ms, at 2024-01-02T03:04:05.333334Z."},
    {RATION_REASON_CONCURRENCY_FULL, RATION_NEVER_US, false, FACTS(2 * UNIT, UNIT, 5 * UNIT, 0),
     "All slots are taken in limit daily at acme: needs 2, 1 of 5 left. When that changes is not known."},
    {RATION_REASON_ADAPTIVE_FULL, RATION_NEVER_US, false, FACTS(UNIT, 0, NONE, NONE),
     "The adaptive limit is reached in limit daily at acme: needs 1, 0 left. When that changes is not known."},
    {RATION_REASON_QUOTA_EXHAUSTED, 2 * SECOND, false, FACTS(UNIT, 0, 5000 * UNIT, 0),
     "The quota is used up in limit daily at acme: needs 1, 0 of 5000 left. Try again in 2 s, at "
     "2024-01-02T03:04:07Z."},
    {RATION_REASON_PENALIZED, 0, false, FACTS(NONE, NONE, NONE, NONE),
     "The provider asked to pause limit daily at acme. Try again in 0 s, at 2024-01-02T03:04:05Z."},
    {RATION_REASON_CIRCUIT_OPEN, SECOND, false, FACTS(NONE, NONE, NONE, NONE),
     "The circuit is open for limit daily at acme. Try again in 1 s, at 2024-01-02T03:04:06Z."},
    {RATION_REASON_GUARANTEE_ON_LOAN, RATION_NEVER_US, false, FACTS(UNIT, NONE, NONE, NONE),
     "The tenant's guarantee is on loan in limit daily at acme: needs 1. When that changes is not known."},
    {RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON, RATION_NEVER_US, false, FACTS(UNIT, NONE, NONE, NONE),
     "The hold is longer than the reclaim horizon of limit daily at acme: needs 1. Waiting does not help."},
    {RATION_REASON_NOTHING_TO_BORROW, RATION_NEVER_US, false, FACTS(UNIT, NONE, NONE, NONE),
     "Nothing is left to borrow in limit daily at acme: needs 1. When that changes is not known."},
    {RATION_REASON_COST_EXCEEDS_LIMIT, RATION_NEVER_US, false, FACTS(9 * UNIT, 5 * UNIT, 5 * UNIT, 0),
     "The request can never fit into limit daily at acme: needs 9, 5 of 5 left. Waiting does not help."},
    {RATION_REASON_DEADLINE, SECOND, false, FACTS(UNIT, 0, 2 * UNIT, 0),
     "The deadline is too early for limit daily at acme: needs 1, 0 of 2 left. Try again in 1 s, at "
     "2024-01-02T03:04:06Z."},
    {RATION_REASON_TOO_MANY_KEYS, RATION_NEVER_US, false, FACTS(NONE, NONE, NONE, NONE),
     "There is no room for another scope key in limit daily at acme. When that changes is not known."},
    {RATION_REASON_UNKNOWN_TENANT,
     0,
     false,
     {0},
     "The limit knows no such tenant; add it to `tenants`, or say with `unknownTenant` what it counts as."},
    {RATION_REASON_UNKNOWN_CLASS,
     0,
     false,
     {0},
     "The limit knows no such class; add it to `classes`, or leave the class out."},
    {RATION_REASON_UNKNOWN_ACCOUNT,
     0,
     false,
     {0},
     "There is no such account at this provider; see `accounts` in the configuration."},
    {RATION_REASON_UNKNOWN_PROVIDER, 0, false, {0}, "There is no such provider; see `providers` in the configuration."},
    {RATION_REASON_CANCELLED, 0, false, {0}, "The request was cancelled."},
    {RATION_REASON_PAUSED, RATION_NEVER_US, false, FACTS(NONE, NONE, NONE, NONE),
     "An operator has paused limit daily at acme. When that changes is not known."},
    {RATION_REASON_DRAINING, 0, false, {0}, "The process is stopping and takes no new requests."},
    {RATION_REASON_QUEUE_FULL, 0, false, {0}, "Too many requests wait already; see `settings.queue`."},
    {RATION_REASON_NOT_PERMITTED, 0, false, {0}, "The bearer may not ask for this."},
    {RATION_REASON_STORE_UNAVAILABLE, RATION_NEVER_US, false, FACTS(3 * UNIT, 2 * UNIT, NONE, 0),
     "Requests wait until the ledger has written the next mark of limit daily at acme: needs 3, 2 left. When that "
     "changes is not known."},
};

static void every_reason_has_its_sentence(void **state)
{
    bool covered[RATION_REASON_COUNT] = {false};

    (void)state;
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++) {
        const ration_decision d =
            refusal(sentences[i].reason, sentences[i].retry_us, sentences[i].estimate, sentences[i].facts);

        CHECK_ROW(ration_reason_name(sentences[i].reason));
        CHECK_STR(explain(&d), sentences[i].text);
        covered[sentences[i].reason] = true;
    }
    CHECK_ROW(NULL);
    for (int reason = RATION_REASON_NONE + 1; reason < RATION_REASON_COUNT; reason++)
        CHECK(covered[reason]);
}

static void what_binds_may_have_no_limit_or_no_key(void **state)
{
    ration_decision d = refusal(RATION_REASON_PENALIZED, SECOND, false, (ration_facts)FACTS(NONE, NONE, NONE, NONE));

    (void)state;
    d.key = (ration_text){NULL, 0};
    CHECK_STR(explain(&d), "The provider asked to pause limit daily. Try again in 1 s, at 2024-01-02T03:04:06Z.");
    d.limit = NULL;
    CHECK_STR(explain(&d), "The provider asked to pause the account. Try again in 1 s, at 2024-01-02T03:04:06Z.");
}

static void a_store_that_is_no_limit_s_is_shared(void **state)
{
    ration_decision d = refusal(RATION_REASON_STORE_UNAVAILABLE, 0, false, (ration_facts)FACTS(NONE, NONE, NONE, NONE));

    (void)state;
    d.limit = NULL;
    CHECK_STR(explain(&d), "The store that holds the shared state does not answer.");
}

static void a_time_that_has_passed_is_now(void **state)
{
    const ration_decision d =
        refusal(RATION_REASON_PENALIZED, -SECOND, false, (ration_facts)FACTS(NONE, NONE, NONE, NONE));

    (void)state;
    CHECK_STR(explain(&d), "The provider asked to pause limit daily at acme. Try again in 0 s, at "
                           "2024-01-02T03:04:04Z.");
}

static void only_refusals_are_explained(void **state)
{
    ration_decision d = refusal(RATION_REASON_PENALIZED, 0, false, (ration_facts){0});

    (void)state;
    d.result = RATION_GRANTED;
    CHECK_STR(explain(&d), "");
    d.result = RATION_QUEUED;
    CHECK_STR(explain(&d), "");
    d.result = RATION_REFUSED;
    d.reason = RATION_REASON_NONE;
    CHECK_STR(explain(&d), "");
    d.reason = (ration_reason)99;
    CHECK_STR(explain(&d), "");
    CHECK_STR(explain(NULL), "");
}

static void buffers_of_any_size(void **state)
{
    const ration_decision d =
        refusal(RATION_REASON_RATE_LIMITED, 100000, true, (ration_facts)FACTS(UNIT, 0, UNIT, UNIT));
    char whole[512];
    const size_t length = ration_decision_explain(&d, whole, sizeof whole);

    (void)state;
    CHECK_EQ(ration_decision_explain(&d, NULL, 0), 0);
    for (size_t size = 0; size <= length + 2; size++) {
        char buffer[512];

        memset(buffer, '#', sizeof buffer);

        const size_t written = ration_decision_explain(&d, buffer, size);

        CHECK_EQ(buffer[size], '#'); /* nothing beyond */
        CHECK_EQ(written, size == 0 ? 0 : (size <= length ? size - 1 : length));
        if (size > 0) {
            CHECK_EQ(buffer[written], '\0');
            CHECK(memcmp(buffer, whole, written) == 0);
        }
    }
}

/* Of a share: what is the tenant's own, what is on loan, and what to change. */
static void fairness_has_its_numbers(void **state)
{
    static const struct {
        const char *why;
        ration_reason reason;
        int64_t retry_us;
        int64_t charge, own, lent, pool, hold_us, ahead;
        const char *text;
    } rows[] = {
        {"on loan", RATION_REASON_GUARANTEE_ON_LOAN, 90000, 50, 0, 50, 0, 50000, 0,
         "Tenant app asks limit daily at acme for 50, which it is entitled to: 0 of its guarantee of 50 is free, 50 is "
         "on "
         "loan since it was idle. Nothing more of it is lent while it asks. Try again in 90 ms, at "
         "2024-01-02T03:04:05.09Z."},
        {"an overrun in the way", RATION_REASON_GUARANTEE_ON_LOAN, RATION_NEVER_US, 50, 0, 30, 0, 50000, 0,
         "Tenant app asks limit daily at acme for 50, which it is entitled to: 20 of its guarantee of 50 is free, 30 "
         "is "
         "on loan since it was idle. Nothing more of it is lent while it asks, but a lease in the way is past its "
         "declared end or has none. When that changes is not known."},
        {"the ceiling has shrunk", RATION_REASON_GUARANTEE_ON_LOAN, 90000, 20, 0, 0, 0, 50000, 0,
         "Tenant app asks limit daily at acme for 20, which it is entitled to: 50 of its guarantee of 50 is free, but "
         "leases above guarantees that have shrunk fill the ceiling until they end. Try again in 90 ms, at "
         "2024-01-02T03:04:05.09Z."},
        {"too long a hold", RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON, RATION_NEVER_US, 50, 50, 0, 50, 1000000, 0,
         "Tenant app asks limit daily at acme for 50, to be held for 1 s. Only 0 of its guarantee of 50 is free, and "
         "nothing is lent for longer than the reclaim horizon of 100 ms, since its owner could not have it back in "
         "time. Declare a hold of 100 ms or less, ask for less at once, let it wait for the tenant's own leases to "
         "end, "
         "or raise `reclaimHorizon`."},
        {"no hold, more than its own", RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON, RATION_NEVER_US, 51, 0, 0, 50, NONE,
         0,
         "Tenant app asks limit daily at acme for 51 without declaring how long it will hold it. Only 50 of its "
         "guarantee of 50 is free, and nothing is lent for longer than the reclaim horizon of 100 ms, since its owner "
         "could not have it back in time. Declare a hold of 100 ms or less, ask for less at once, or raise "
         "`reclaimHorizon`."},
        {"nothing to borrow", RATION_REASON_NOTHING_TO_BORROW, 500000, 20, 40, 0, 5, 50000, 7,
         "Tenant app asks limit daily at acme for 20: 10 of its guarantee of 50 is free, and idle tenants can lend 5 "
         "of "
         "the 10 that are missing; waiters ahead need 7. Try again in 500 ms, at 2024-01-02T03:04:05.5Z."},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_decision d = refusal(rows[i].reason, rows[i].retry_us, false, (ration_facts){.charge = 0});

        CHECK_ROW(rows[i].why);
        d.facts = (ration_facts){.charge = rows[i].charge * UNIT,
                                 .ahead = rows[i].ahead * UNIT,
                                 .tenant = ration_text_of("app"),
                                 .guarantee = 50 * UNIT,
                                 .own = rows[i].own * UNIT,
                                 .lent = rows[i].lent * UNIT,
                                 .pool = rows[i].pool * UNIT,
                                 .hold_us = rows[i].hold_us,
                                 .horizon_us = 100000};
        CHECK_STR(explain(&d), rows[i].text);
    }
    CHECK_ROW(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reason_has_its_sentence),
        cmocka_unit_test(what_binds_may_have_no_limit_or_no_key),
        cmocka_unit_test(a_time_that_has_passed_is_now),
        cmocka_unit_test(only_refusals_are_explained),
        cmocka_unit_test(a_store_that_is_no_limit_s_is_shared),
        cmocka_unit_test(buffers_of_any_size),
        cmocka_unit_test(fairness_has_its_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
