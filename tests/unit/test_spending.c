/* SPDX-License-Identifier: MIT */
/* Estimates against costs: which calls are compared, and how they are added up. */
#include "serve/spending.h"

#include "base/mem.h"
#include "support/check.h"

#define UNIT RATION_UNIT

static void test_settle(void **state)
{
    static const struct {
        const char *why;
        rn_usage_told told;
        bool fine;
        int64_t estimated, actual;
        uint64_t unseen;
    } rows[] = {
        {"a field", {RN_COST_HEADER, RN_USAGE_FINE, 7}, true, 5, 7, 0},
        {"a body", {RN_COST_POINTER, RN_USAGE_FINE, 0}, true, 5, 0, 0},
        {"one that failed, and told", {RN_COST_POINTER, RN_USAGE_FINE, 2}, false, 5, 2, 0},
        {"broken off", {RN_COST_ESTIMATE, RN_USAGE_FINE, RATION_UNSET}, true, 0, 0, 0},
        {"without one", {RN_COST_ESTIMATE, RN_USAGE_ENCODED, RATION_UNSET}, true, 0, 0, 1},
        {"a failure without one", {RN_COST_ESTIMATE, RN_USAGE_ENCODED, RATION_UNSET}, false, 0, 0, 0},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_spending spending = {.provider = NULL};

        CHECK_ROW(rows[i].why);
        rn_spending_settle(&spending, &rows[i].told, 5, rows[i].fine);
        CHECK_EQ(spending.counts.settled[rows[i].told.source], 1);
        CHECK_EQ(spending.counts.estimated, rows[i].estimated);
        CHECK_EQ(spending.counts.actual, rows[i].actual);
        CHECK_EQ(spending.counts.unseen[RN_USAGE_ENCODED], rows[i].unseen);
        CHECK_EQ(spending.counts.unseen[RN_USAGE_ABSENT], 0);
    }
    CHECK_ROW(NULL);
}

static void test_sums_saturate(void **state)
{
    const rn_usage_told told = {RN_COST_HEADER, RN_USAGE_FINE, INT64_MAX};
    rn_spending spending = {.provider = NULL};
    (void)state;

    rn_spending_settle(&spending, &told, INT64_MAX, true);
    rn_spending_settle(&spending, &told, 1, true);
    CHECK_EQ(spending.counts.estimated, INT64_MAX);
    CHECK_EQ(spending.counts.actual, INT64_MAX);
}

static void test_by_name(void **state)
{
    const rn_usage_told told = {RN_COST_HEADER, RN_USAGE_FINE, 3 * UNIT};
    struct rn_spendings all = TAILQ_HEAD_INITIALIZER(all);
    rn_cost_counts sum;
    rn_output out;
    (void)state;

    rn_spending *a = rn_spending_of(&all, "a");
    rn_spending *b = rn_spending_of(&all, "b");
    CHECK(a != NULL && b != NULL && a != b);
    CHECK(rn_spending_of(&all, "a") == a);
    a->counts.estimates[RN_ESTIMATE_DEFAULT]++;
    rn_spending_settle(a, &told, 2 * UNIT, true);
    rn_spending_settle(b, &told, UNIT, true);
    b->counts.unseen[RN_USAGE_UNUSABLE]++;
    rn_spendings_sum(&all, &sum);
    CHECK_EQ(sum.settled[RN_COST_HEADER], 2);
    CHECK_EQ(sum.estimates[RN_ESTIMATE_DEFAULT], 1);
    CHECK_EQ(sum.unseen[RN_USAGE_UNUSABLE], 1);
    CHECK_EQ(sum.estimated, 0); /* units of two providers are not of one kind */

    rn_output_init(&out, rn_mem_default(), 1024);
    rn_spending_write(a, &out);
    CHECK_TEXT(((ration_text){out.data, out.size}),
               "{\"provider\":\"a\",\"estimates\":{\"header\":0,\"pointer\":0,\"default\":1},"
               "\"settled\":{\"header\":1,\"pointer\":0,\"estimate\":0},"
               "\"unseen\":{\"absent\":0,\"encoded\":0,\"unusable\":0},\"estimated\":2,\"actual\":3}");
    rn_output_fini(&out);
    rn_spendings_free(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_sums_saturate),
        cmocka_unit_test(test_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
