/* SPDX-License-Identifier: MIT */
/* What a job's last runs teach of the next. */
#include <ration/plan.h>

#include "support/check.h"

#define UNIT RATION_UNIT
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void test_learn(void **state)
{
    (void)state;
    static const ration_run odd[] = {{2, 0, 0}, {900, 0, 0}, {3, 0, 0}};
    static const ration_run even[] = {{2, 1, 1}, {5, 0, 1}};
    static const ration_run children[] = {{10, 1, 3}};
    static const ration_run silent[] = {{0, 0, 0}, {0, 3, 0}};
    static const ration_run failing[] = {{2, 5, 0}};
    ration_run many[RATION_RUNS_MAX + 1];
    const struct {
        const char *why;
        const ration_run *runs;
        size_t count;
        int64_t requests;
        ration_ratio overhead;
    } rows[] = {
        {"no run: as estimated", NULL, 0, 7 * UNIT, {1, 4}},
        {"the middle one", odd, COUNT_OF(odd), 3 * UNIT, {0, 1000000}},
        {"the mean of the middle two; 1 retry to 7 requests, rounded up",
         even,
         COUNT_OF(even),
         3500000,
         {142858, 1000000}},
        {"by child, rounded up", children, COUNT_OF(children), 3333334, {100000, 1000000}},
        {"no request tells nothing of retries", silent, COUNT_OF(silent), 0, {1, 4}},
        {"at most one retry to a request", failing, COUNT_OF(failing), 2 * UNIT, {1000000, 1000000}},
        {"the last 20: 11 of 4, 9 of 6", many, COUNT_OF(many), 4 * UNIT, {0, 1000000}},
    };

    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = (ration_run){.requests = i < 10 ? 6 : 4};
    many[0] = (ration_run){.requests = 6, .retries = 50};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ration_plan_job job = {.requests = 7 * UNIT, .retry_overhead = {1, 4}};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(ration_job_learn(&job, rows[i].runs, rows[i].count), RATION_OK);
        CHECK_EQ(job.requests, rows[i].requests);
        CHECK_EQ(job.retry_overhead.num, rows[i].overhead.num);
        CHECK_EQ(job.retry_overhead.den, rows[i].overhead.den);
    }
    CHECK_ROW(NULL);
}

static void test_learn_invalid(void **state)
{
    (void)state;
    static const ration_run bad[] = {
        {-1, 0, 0}, {0, -1, 0}, {0, 0, -1}, {RATION_UNITS_MAX / UNIT + 1, 0, 0}, {0, RATION_UNITS_MAX / UNIT + 1, 0}};
    static const ration_run largest = {RATION_UNITS_MAX / UNIT, RATION_UNITS_MAX / UNIT, 1};
    ration_plan_job job = {.requests = 7};

    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK_EQ(ration_job_learn(&job, &bad[i], 1), RATION_ERR_INVALID);
    CHECK_EQ(ration_job_learn(NULL, &largest, 1), RATION_ERR_INVALID);
    CHECK_EQ(ration_job_learn(&job, NULL, 1), RATION_ERR_INVALID);
    CHECK_EQ(job.requests, 7);
    CHECK_EQ(ration_job_learn(&job, &largest, 1), RATION_OK);
    CHECK_EQ(job.requests, RATION_UNITS_MAX / UNIT * UNIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learn),
        cmocka_unit_test(test_learn_invalid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
