/* SPDX-License-Identifier: MIT */
/*
 * Plans worked out by hand, and edges. A day has 86 400 s, so a job that runs every 60 s runs
 * 1440 times. Where a job does not say otherwise it makes one call a run, and `NONE` is an overhead of nothing.
 */
#include <ration/plan.h>

#include "support/check.h"

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define NONE                                                                                                           \
    {                                                                                                                  \
        0, 1                                                                                                           \
    }
#define LEN(array) (array), COUNT_OF(array)

static const ration_plan_use in_a[] = {{.limit = 0}};
static const ration_plan_use in_b[] = {{.limit = 1}};
static const ration_plan_use in_both[] = {{.limit = 0}, {.limit = 1}};

static ration_plan_job job_of(ration_priority priority, int64_t interval_us, const ration_plan_use *scopes,
                              size_t count)
{
    return (ration_plan_job){.interval_us = interval_us,
                             .priority = priority,
                             .retry_overhead = NONE,
                             .scopes = scopes,
                             .scope_count = count};
}

/* A day at its beginning. */
static ration_plan_scope day_of(int64_t usable, int64_t reserve)
{
    return (ration_plan_scope){.usable = usable * UNIT, .reserve = reserve * UNIT, .end = {DAY}};
}

static ration_plan *made(const ration_plan_options *options)
{
    ration_fault fault = {"", ""};
    ration_plan *plan = NULL;

    CHECK_EQ(ration_plan_new(options, &plan, &fault), RATION_OK);
    CHECK_STR(fault.path, "");
    return plan;
}

static ration_plan *plan_of(const ration_plan_job *jobs, size_t job_count, const ration_plan_scope *scopes,
                            size_t scope_count)
{
    const ration_plan_options options = {
        .jobs = jobs, .job_count = job_count, .scopes = scopes, .scope_count = scope_count};

    return made(&options);
}

/*
 * 5000 a day, 80 % of it ours: U = 4000, R = 400, so 3600 may be planned. The job asks 3 organisations for 2 pages each
 * minute, and 5 % of its calls are retries: 6.3 calls a run, 1440 runs, 9072 calls. 9072 / 3600 = 2.52, and
 * 60 s * 2.52 = 151.2 s, at which 86 400 / 151.2 * 6.3 = 3600 exactly.
 */
static void test_one_scope(void **state)
{
    (void)state;
    const ration_plan_job job = {.interval_us = 60 * SECOND,
                                 .priority = RATION_PRIORITY_HIGH,
                                 .fan_out = 3,
                                 .requests = 2 * UNIT,
                                 .scopes = in_a,
                                 .scope_count = 1};
    const ration_plan_scope scope = day_of(4000, 400);
    ration_plan *const plan = plan_of(&job, 1, &scope, 1);

    CHECK(plan->feasible);
    CHECK_EQ(plan->job_count, 1);
    CHECK_EQ(plan->scope_count, 1);
    CHECK_EQ(plan->jobs[0].desired_us, 60 * SECOND);
    CHECK_EQ(plan->jobs[0].effective_us, 151200000);
    CHECK_EQ(plan->jobs[0].stretch, 2520000);
    CHECK_EQ(plan->jobs[0].calls, 6300000);
    CHECK_EQ(plan->jobs[0].scope, 0);
    CHECK_EQ(plan->jobs[0].rate, RATION_PLAN_NONE);
    CHECK_EQ(plan->jobs[0].least_us, 0);
    CHECK(plan->jobs[0].feasible);
    CHECK_EQ(plan->jobs[0].use_count, 1);
    CHECK_EQ(plan->jobs[0].uses[0].scope, 0);
    CHECK_EQ(plan->jobs[0].uses[0].per_window, 3600 * UNIT);
    CHECK_EQ(plan->scopes[0].budget, 3600 * UNIT);
    CHECK_EQ(plan->scopes[0].horizon_us, DAY);
    CHECK_EQ(plan->scopes[0].wanted, 9072 * UNIT);
    CHECK_EQ(plan->scopes[0].critical, 0);
    CHECK_EQ(plan->scopes[0].projected, 3600 * UNIT);
    CHECK_EQ(plan->scopes[0].exhausted_at.us, RATION_NEVER_US);
    CHECK(plan->scopes[0].feasible);
    ration_plan_free(plan);
}

/* The same day with room for all 9072: U - R = 9072 fits, a millionth less does not, and 60.001 s will do for that. */
static void test_desired_to_the_last_unit(void **state)
{
    (void)state;
    const ration_plan_job job = {
        .interval_us = 60 * SECOND, .fan_out = 3, .requests = 2 * UNIT, .scopes = in_a, .scope_count = 1};
    ration_plan_scope scope = day_of(10072, 1000);
    ration_plan *plan = plan_of(&job, 1, &scope, 1);

    CHECK_EQ(plan->jobs[0].effective_us, 60 * SECOND);
    CHECK_EQ(plan->jobs[0].scope, RATION_PLAN_NONE);
    CHECK_EQ(plan->jobs[0].stretch, UNIT);
    ration_plan_free(plan);
    scope.usable--;
    plan = plan_of(&job, 1, &scope, 1);
    CHECK_EQ(plan->jobs[0].effective_us, 60001000);
    CHECK_EQ(plan->jobs[0].scope, 0);
    CHECK_EQ(plan->jobs[0].stretch, 1000017);
    CHECK(plan->feasible);
    ration_plan_free(plan);
}

/*
 * 1000 a day. The high job uses 720 and keeps them; the low one wants 1440 and gets 280: 1440 / 280 = 5.142857...,
 * 308.571428... s, rounded up to the millisecond. At 308.571 s it would use 280.00038.
 */
static void test_two_classes(void **state)
{
    (void)state;
    const ration_plan_job jobs[] = {job_of(RATION_PRIORITY_LOW, 60 * SECOND, LEN(in_a)),
                                    job_of(RATION_PRIORITY_HIGH, 120 * SECOND, LEN(in_a))};
    const ration_plan_scope scope = day_of(1000, 0);
    ration_plan *const plan = plan_of(LEN(jobs), &scope, 1);

    CHECK_EQ(plan->jobs[0].effective_us, 308572000);
    CHECK_EQ(plan->jobs[1].effective_us, 120 * SECOND);
    CHECK_EQ(plan->jobs[1].scope, RATION_PLAN_NONE);
    CHECK(plan->feasible);
    ration_plan_free(plan);
}

/* Two jobs of a class, without a priority, are stretched alike: (1440 + 720) / 1000 = 2.16. */
static void test_one_factor_for_a_class(void **state)
{
    (void)state;
    const ration_plan_job jobs[] = {job_of(RATION_PRIORITY_UNSET, 60 * SECOND, LEN(in_a)),
                                    job_of(RATION_PRIORITY_NORMAL, 120 * SECOND, LEN(in_a))};
    const ration_plan_scope scope = day_of(1000, 0);
    ration_plan *const plan = plan_of(LEN(jobs), &scope, 1);

    CHECK_EQ(plan->jobs[0].effective_us, 129600000);
    CHECK_EQ(plan->jobs[1].effective_us, 259200000);
    ration_plan_free(plan);
}

/*
 * a has 1000, b 600. The first job wants 1440 of both, the second 720 of a. Alone, a needs 2160 / 1000 = 2.16 and b
 * needs 1440 / 600 = 2.4. b goes first: 144 s, and 600 of a are used. Of a the second job gets the other 400:
 * 720 / 400 = 1.8, 216 s.
 */
static void test_a_job_in_two_scopes(void **state)
{
    (void)state;
    const ration_plan_job jobs[] = {job_of(RATION_PRIORITY_NORMAL, 60 * SECOND, LEN(in_both)),
                                    job_of(RATION_PRIORITY_NORMAL, 120 * SECOND, LEN(in_a))};
    const ration_plan_scope scopes[] = {day_of(1000, 0), day_of(600, 0)};
    ration_plan *const plan = plan_of(LEN(jobs), LEN(scopes));

    CHECK_EQ(plan->jobs[0].effective_us, 144 * SECOND);
    CHECK_EQ(plan->jobs[0].scope, 1);
    CHECK_EQ(plan->jobs[1].effective_us, 216 * SECOND);
    CHECK_EQ(plan->jobs[1].scope, 0);
    CHECK_EQ(plan->jobs[0].uses[1].scope, 1);
    CHECK_EQ(plan->scopes[0].projected, 1000 * UNIT);
    CHECK_EQ(plan->scopes[1].projected, 600 * UNIT);
    ration_plan_free(plan);
}

/*
 * a has 1584; the normal job wants 1440 of it, the low one 1440 too, which alone would stretch it by 1440 / 144 = 10.
 * But in b, of 2160, a critical job takes 1440, so the normal one is stretched by 1440 / 720 = 2. Of a it leaves
 * 1584 - 720 = 864, and the low job needs 1440 / 864 = 1.666... only: 100 s.
 */
static void test_what_is_left_is_given_back(void **state)
{
    (void)state;
    const ration_plan_job jobs[] = {job_of(RATION_PRIORITY_LOW, 60 * SECOND, LEN(in_a)),
                                    job_of(RATION_PRIORITY_NORMAL, 60 * SECOND, LEN(in_both)),
                                    job_of(RATION_PRIORITY_CRITICAL, 60 * SECOND, LEN(in_b))};
    const ration_plan_scope scopes[] = {day_of(1584, 0), day_of(2160, 0)};
    ration_plan *const plan = plan_of(LEN(jobs), LEN(scopes));

    CHECK_EQ(plan->jobs[0].effective_us, 100 * SECOND);
    CHECK_EQ(plan->jobs[1].effective_us, 120 * SECOND);
    CHECK_EQ(plan->jobs[2].effective_us, 60 * SECOND);
    CHECK_EQ(plan->scopes[1].critical, 1440 * UNIT);
    CHECK_EQ(plan->scopes[1].wanted, 2880 * UNIT);
    ration_plan_free(plan);
}

/*
 * 900 a day. The low job at its utmost, 12 * 60 s, still uses 120; the normal one at 12 * 120 s uses 60; so the high
 * one gets 720 of its 1440: 120 s. With at most 4: 360 and 180 are used, 360 are left, and 1440 / 360 = 4 is just
 * enough.
 */
static void test_max_stretch(void **state)
{
    (void)state;
    const ration_plan_job jobs[] = {job_of(RATION_PRIORITY_LOW, 60 * SECOND, LEN(in_a)),
                                    job_of(RATION_PRIORITY_NORMAL, 120 * SECOND, LEN(in_a)),
                                    job_of(RATION_PRIORITY_HIGH, 60 * SECOND, LEN(in_a))};
    const ration_plan_scope scope = day_of(900, 0);
    ration_plan_options options = {.jobs = jobs, .job_count = 3, .scopes = &scope, .scope_count = 1};
    ration_plan *plan = made(&options);

    CHECK_EQ(plan->jobs[0].effective_us, 720 * SECOND);
    CHECK_EQ(plan->jobs[1].effective_us, 1440 * SECOND);
    CHECK_EQ(plan->jobs[2].effective_us, 120 * SECOND);
    CHECK(plan->feasible);
    ration_plan_free(plan);

    options.max_stretch = 4;
    plan = made(&options);
    CHECK_EQ(plan->jobs[0].effective_us, 240 * SECOND);
    CHECK_EQ(plan->jobs[1].effective_us, 480 * SECOND);
    CHECK_EQ(plan->jobs[2].effective_us, 240 * SECOND);
    CHECK(plan->feasible);
    ration_plan_free(plan);
}

/*
 * What rounding leaves does not go to a lower class: 86 400 s at 1 call each 30 s are 2880, the high job. Of 1007, the
 * low one keeps 120 at its utmost, and 887 are left: 30 s * 2880 / 887 = 97.40698... s. At 97.407 s 886.9999 are used.
 */
static void test_the_lower_class_stays_at_the_utmost(void **state)
{
    (void)state;
    const ration_plan_job jobs[] = {job_of(RATION_PRIORITY_HIGH, 30 * SECOND, LEN(in_a)),
                                    job_of(RATION_PRIORITY_LOW, 60 * SECOND, LEN(in_a))};
    const ration_plan_scope scope = day_of(1007, 0);
    ration_plan *const plan = plan_of(LEN(jobs), &scope, 1);

    CHECK_EQ(plan->jobs[0].effective_us, 97407000);
    CHECK_EQ(plan->jobs[1].effective_us, 720 * SECOND);
    CHECK(plan->scopes[0].projected < plan->scopes[0].budget);
    ration_plan_free(plan);
}

/*
 * The critical job uses 1440, there are 1000. It is not stretched; the low one is, to its utmost: 120. 1560 a day use
 * up 1000 after 86 400 * 1000 / 1560 = 55 384.615384... s.
 */
static void test_critical_alone_is_too_much(void **state)
{
    (void)state;
    const ration_plan_job jobs[] = {job_of(RATION_PRIORITY_CRITICAL, 60 * SECOND, LEN(in_a)),
                                    job_of(RATION_PRIORITY_LOW, 60 * SECOND, LEN(in_a))};
    const ration_plan_scope scope = day_of(1000, 0);
    ration_plan *const plan = plan_of(LEN(jobs), &scope, 1);

    CHECK(!plan->feasible);
    CHECK(!plan->scopes[0].feasible);
    CHECK(plan->jobs[0].feasible);
    CHECK_EQ(plan->jobs[0].effective_us, 60 * SECOND);
    CHECK_EQ(plan->jobs[1].effective_us, 720 * SECOND);
    CHECK_EQ(plan->scopes[0].critical, 1440 * UNIT);
    CHECK_EQ(plan->scopes[0].projected, 1560 * UNIT);
    CHECK_EQ(plan->scopes[0].wanted, 2880 * UNIT);
    CHECK_EQ(plan->scopes[0].exhausted_at.us, INT64_C(55384615384));
    ration_plan_free(plan);
}

/*
 * 10 calls a second for the account, 1 a second for each organisation. A run asks 100 organisations for 40 pages, 5 %
 * more for retries: 4200 calls, 420 s; for one organisation 42 calls, 42 s. So it runs each 420 s instead of each 60 s.
 * It then uses 86 400 / 420 * 4200 = 864 000; the other normal job shares 864 720 with it and gets 720: 120 s. A
 * critical job of the same size keeps its minute, and that is said.
 */
static void test_rates(void **state)
{
    (void)state;
    const ration_rate rates[] = {{10 * UNIT, SECOND}, {UNIT, SECOND}};
    const ration_plan_use uses[] = {{.limit = 1, .children = 1}, {.limit = 0}};
    ration_plan_job jobs[] = {job_of(RATION_PRIORITY_NORMAL, 60 * SECOND, LEN(in_a)),
                              job_of(RATION_PRIORITY_NORMAL, 60 * SECOND, LEN(in_a)),
                              job_of(RATION_PRIORITY_CRITICAL, 60 * SECOND, NULL, 0)};
    const ration_plan_scope scope = day_of(864720, 0);
    const ration_plan_options options = {
        .jobs = jobs, .job_count = 3, .scopes = &scope, .scope_count = 1, .rates = rates, .rate_count = 2, .now = {0}};

    for (size_t i = 0; i < 3; i += 2) {
        jobs[i].fan_out = 100;
        jobs[i].requests = 40 * UNIT;
        jobs[i].retry_overhead = (ration_ratio){0, 0};
        jobs[i].rates = uses;
        jobs[i].rate_count = 2;
    }

    ration_plan *const plan = made(&options);

    CHECK_EQ(plan->jobs[0].effective_us, 420 * SECOND);
    CHECK_EQ(plan->jobs[0].least_us, 420 * SECOND);
    CHECK_EQ(plan->jobs[0].calls, 4200 * UNIT);
    CHECK_EQ(plan->jobs[0].rate, 0);
    CHECK_EQ(plan->jobs[0].scope, RATION_PLAN_NONE);
    CHECK(plan->jobs[0].feasible);
    CHECK_EQ(plan->jobs[1].effective_us, 120 * SECOND);
    CHECK_EQ(plan->jobs[1].scope, 0);
    CHECK(plan->scopes[0].feasible);
    CHECK_EQ(plan->jobs[2].effective_us, 60 * SECOND);
    CHECK_EQ(plan->jobs[2].least_us, 420 * SECOND);
    CHECK_EQ(plan->jobs[2].rate, RATION_PLAN_NONE);
    CHECK(!plan->jobs[2].feasible);
    CHECK(!plan->feasible);
    ration_plan_free(plan);
}

/*
 * Two rates say the same, the first is named. A rate's interval is rounded up like any other, and a quota may stretch
 * it further. 7 calls at 3 a second take 2.333... s, so 2.334 s instead of 1 s. 86 400 / 2.334 * 7 = 259 125.96; of
 * 86 400, the job needs 7 s.
 */
static void test_a_rate_and_a_quota(void **state)
{
    (void)state;
    const ration_rate rates[] = {{6 * UNIT, 2 * SECOND}, {3 * UNIT, SECOND}};
    ration_plan_job job = job_of(RATION_PRIORITY_LOW, SECOND, LEN(in_a));
    ration_plan_scope scope = day_of(300000, 0);
    const ration_plan_options options = {
        .jobs = &job, .job_count = 1, .scopes = &scope, .scope_count = 1, .rates = rates, .rate_count = 2};

    job.requests = 7 * UNIT;
    job.rates = in_both;
    job.rate_count = 2;

    ration_plan *plan = made(&options);

    CHECK_EQ(plan->jobs[0].effective_us, 2334000);
    CHECK_EQ(plan->jobs[0].rate, 0);
    CHECK_EQ(plan->scopes[0].wanted, INT64_C(259125964011));
    ration_plan_free(plan);
    scope.usable = 86400 * UNIT;
    plan = made(&options);
    CHECK_EQ(plan->jobs[0].effective_us, 7 * SECOND);
    CHECK_EQ(plan->jobs[0].rate, RATION_PLAN_NONE);
    CHECK_EQ(plan->jobs[0].scope, 0);
    ration_plan_free(plan);
}

/*
 * 18:00, M = 5000, U = 4000, R = 400. We have spent 1000; the provider says 2500 are left, so others have spent 1500 in
 * 18 hours and will spend 500 in the 6 to come. min(4000 - 1000, 2500) - 400 - 500 = 1600 are left for a job that wants
 * 21 600 / 10 = 2160: 2160 / 1600 = 1.35, 13.5 s.
 */
static void test_mid_window(void **state)
{
    (void)state;
    const ration_plan_job job = job_of(RATION_PRIORITY_NORMAL, 10 * SECOND, LEN(in_a));
    ration_plan_scope scope = day_of(4000, 400);
    ration_plan_options options = {
        .now = {18 * HOUR}, .jobs = &job, .job_count = 1, .scopes = &scope, .scope_count = 1};

    scope.spent = 1000 * UNIT;
    scope.has_left = true;
    scope.left = 2500 * UNIT;
    scope.external = 1500 * UNIT;

    ration_plan *plan = made(&options);

    CHECK_EQ(plan->jobs[0].effective_us, 13500000);
    CHECK_EQ(plan->jobs[0].uses[0].projected, 1600 * UNIT);
    CHECK_EQ(plan->jobs[0].uses[0].per_window, 6400 * UNIT);
    CHECK_EQ(plan->scopes[0].budget, 1600 * UNIT);
    CHECK_EQ(plan->scopes[0].others, 500 * UNIT);
    CHECK_EQ(plan->scopes[0].horizon_us, 6 * HOUR);
    CHECK_EQ(plan->made_at.us, 18 * HOUR);
    ration_plan_free(plan);

    /* What the provider has not said does not bind: 3000 - 400 - 500 = 2100, 2160 / 2100 * 10 s = 10.285714... s. */
    scope.has_left = false;
    plan = made(&options);
    CHECK_EQ(plan->jobs[0].effective_us, 10286000);
    ration_plan_free(plan);

    /* Half an hour into the day counts as an hour: 10 in it are 10 * 84 600 / 3600 = 235 in what is left. */
    options.now.us = HOUR / 2;
    scope.external = 10 * UNIT;
    plan = made(&options);
    CHECK_EQ(plan->scopes[0].others, 235 * UNIT);
    CHECK_EQ(plan->scopes[0].budget, (4000 - 1000 - 400 - 235) * UNIT);
    ration_plan_free(plan);
}

/*
 * The morning has used more than its part: at noon 3500 of 3600 are gone, and nothing that may be stretched can help.
 */
static void test_spent_before_the_end(void **state)
{
    (void)state;
    const ration_plan_job job = job_of(RATION_PRIORITY_NORMAL, 10 * SECOND, LEN(in_a));
    ration_plan_scope scope = day_of(4000, 400);
    const ration_plan_options options = {
        .now = {12 * HOUR}, .jobs = &job, .job_count = 1, .scopes = &scope, .scope_count = 1};

    /* 43 200 / 120 = 360 at the utmost, 100 are left: gone after 12 000 s. */
    scope.spent = 3500 * UNIT;

    ration_plan *plan = made(&options);

    CHECK_EQ(plan->jobs[0].effective_us, 120 * SECOND);
    CHECK(!plan->feasible);
    CHECK_EQ(plan->scopes[0].exhausted_at.us, 12 * HOUR + 12000 * SECOND);
    ration_plan_free(plan);

    /* Others, who spend 180 in the second half, share these 100: 100 of 540 are gone after 8000 s. */
    scope.external = 180 * UNIT;
    plan = made(&options);
    CHECK_EQ(plan->scopes[0].budget, 0);
    CHECK_EQ(plan->scopes[0].exhausted_at.us, 12 * HOUR + 8000 * SECOND);
    ration_plan_free(plan);

    /* In debt: nothing is left, from now on. */
    scope.spent = 5000 * UNIT;
    plan = made(&options);
    CHECK_EQ(plan->scopes[0].budget, 0);
    CHECK_EQ(plan->scopes[0].exhausted_at.us, 12 * HOUR);
    ration_plan_free(plan);
}

/*
 * The job of the first plan wants 9072. The provider says that its maximum is 3000, not 5000: U = 2400, R = 240, and
 * 9072 / 2160 = 4.2. Later it says 12 000: U = 9600, R = 960, 9072 / 8640 = 1.05.
 */
static void test_learned_maximum(void **state)
{
    (void)state;
    const ration_plan_job job = {
        .interval_us = 60 * SECOND, .fan_out = 3, .requests = 2 * UNIT, .scopes = in_a, .scope_count = 1};
    static const struct {
        int64_t usable, reserve, want_us;
    } rows[] = {{4000, 400, 151200000}, {2400, 240, 252000000}, {9600, 960, 63000000}};

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const ration_plan_scope scope = day_of(rows[i].usable, rows[i].reserve);
        ration_plan *const plan = plan_of(&job, 1, &scope, 1);

        CHECK_EQ(plan->jobs[0].effective_us, rows[i].want_us);
        ration_plan_free(plan);
    }
}

/*
 * A limit that counts cost, used by two endpoints of one job: 3 children at 2.5 units and one at 10 are 17.5 units a
 * run, 25 200 a day; of 12 600 it gets half.
 */
static void test_charges(void **state)
{
    (void)state;
    static const ration_plan_use uses[] = {{.limit = 0, .charge = 2500000, .children = 3},
                                           {.limit = 0, .charge = 10 * UNIT, .children = 1}};
    ration_plan_job job = job_of(RATION_PRIORITY_NORMAL, 60 * SECOND, LEN(uses));
    const ration_plan_scope scope = day_of(12600, 0);

    job.fan_out = 3;

    ration_plan *const plan = plan_of(&job, 1, &scope, 1);

    CHECK_EQ(plan->jobs[0].effective_us, 120 * SECOND);
    CHECK_EQ(plan->jobs[0].use_count, 2);
    CHECK_EQ(plan->jobs[0].uses[0].per_window, 5400 * UNIT);
    CHECK_EQ(plan->jobs[0].uses[1].per_window, 7200 * UNIT);
    ration_plan_free(plan);
}

/*
 * Rolling windows. A charge counts for at most the window and two buckets (here of a minute), so a day's 3600 last for
 * 86 520 s: a job of 10 s needs 86 520 / 3600 s = 24.033333... s.
 *
 * An hour with 400, of which 300 have been spent: 100 are left. If they were spent in the last minute, they come back
 * after 3600 + 60 s, and until then 100 must do: 36.6 s. If they were spent an hour ago but for 2 minutes, they come
 * back after 3 minutes: then 400 in 3720 s bind, 9.3 s. So they do if all 400 were spent and come back in 2 minutes,
 * which is nearer than a 24th of the hour. If 400 come back in 3 minutes there is nothing until then.
 */
static void test_rolling(void **state)
{
    (void)state;
    const ration_plan_job job = job_of(RATION_PRIORITY_NORMAL, 5 * SECOND, LEN(in_a));
    static const struct {
        const char *why;
        int64_t rolling_us, usable, spent, bucket_s, want_us;
    } rows[] = {
        {"an empty day", DAY, 3600, 0, 0, 24034000},
        {"spent just now", HOUR, 400, 300, 3600 - 60, 36600000},
        {"spent in the minute that begins now", HOUR, 400, 300, 3600, 37200000},
        {"spent long ago", HOUR, 400, 300, 60, 9300000},
        {"nothing for two minutes", HOUR, 400, 400, 0, 9300000},
        {"nothing for three minutes", HOUR, 400, 400, 60, 60000000},
        {"a 24th of an hour is near enough", HOUR, 400, 400, 30, 60000000},
        {"in debt for three minutes", HOUR, 400, 500, 60, 60000000},
        {"a bucket that is yet to come tells nothing", HOUR, 400, 300, 7200, 9300000},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const int64_t units[] = {rows[i].spent * UNIT};
        const ration_plan_scope scope = {
            .usable = rows[i].usable * UNIT,
            .spent = rows[i].spent * UNIT,
            .rolling_us = rows[i].rolling_us,
            .timeline = {.start = {rows[i].bucket_s * SECOND}, .width_us = 60 * SECOND, .units = units, .count = 1},
        };
        const ration_plan_options options = {
            .now = {HOUR}, .jobs = &job, .job_count = 1, .scopes = &scope, .scope_count = 1};
        ration_plan *const plan = made(&options);

        CHECK_ROW(rows[i].why);
        CHECK_EQ(plan->jobs[0].effective_us, rows[i].want_us);
        CHECK_ROW(NULL);
        ration_plan_free(plan);
    }
}

/* A bucket that has left does not come back again: of 62 that end now, only the last counts. */
static void test_rolling_forgets(void **state)
{
    (void)state;
    const ration_plan_job job = job_of(RATION_PRIORITY_NORMAL, 5 * SECOND, LEN(in_a));
    int64_t units[62] = {[0] = 300 * UNIT, [61] = 300 * UNIT};
    ration_plan_scope scope = {.usable = 400 * UNIT, .spent = 300 * UNIT, .rolling_us = HOUR};
    const ration_plan_options options = {
        .now = {2 * HOUR}, .jobs = &job, .job_count = 1, .scopes = &scope, .scope_count = 1};

    scope.timeline = (ration_timeline){.start = {2 * HOUR - 3720 * SECOND}, .width_us = 60 * SECOND, LEN(units)};

    ration_plan *const plan = made(&options);

    CHECK_EQ(plan->jobs[0].effective_us, 36600000);
    CHECK_EQ(plan->scopes[0].horizon_us, 3660 * SECOND);
    CHECK_EQ(plan->scopes[0].budget, 100 * UNIT);
    ration_plan_free(plan);
}

/* Without a timeline, what was spent is taken to leave as evenly as it comes; what the provider says is left counts. */
static void test_rolling_without_a_timeline(void **state)
{
    (void)state;
    const ration_plan_job job = job_of(RATION_PRIORITY_NORMAL, 5 * SECOND, LEN(in_a));
    ration_plan_scope scope = {.usable = 400 * UNIT, .spent = 300 * UNIT, .rolling_us = HOUR, .external = 77 * UNIT};
    const ration_plan_options options = {
        .now = {HOUR}, .jobs = &job, .job_count = 1, .scopes = &scope, .scope_count = 1};
    ration_plan *plan = made(&options);

    CHECK_EQ(plan->jobs[0].effective_us, 9300000);
    CHECK_EQ(plan->scopes[0].others, 0);
    CHECK_EQ(plan->scopes[0].horizon_us, 3720 * SECOND);
    ration_plan_free(plan);

    /* 10 left and 300 that come back: 310 in 3720 s. */
    scope.has_left = true;
    scope.left = 10 * UNIT;
    plan = made(&options);
    CHECK_EQ(plan->jobs[0].effective_us, 12 * SECOND);
    ration_plan_free(plan);
}

/* Nothing to plan, nothing to plan for, nothing to plan with. */
static void test_nothing(void **state)
{
    (void)state;
    const ration_plan_options none = {.now = {0}};
    const ration_plan_job jobs[] = {job_of(RATION_PRIORITY_LOW, 60 * SECOND, NULL, 0),
                                    job_of(RATION_PRIORITY_LOW, 1500, LEN(in_b))};
    const ration_plan_scope scopes[] = {day_of(0, 0), day_of(0, 0)};
    ration_plan *plan = made(&none);

    CHECK(plan->feasible);
    CHECK_EQ(plan->job_count, 0);
    CHECK_EQ(plan->scope_count, 0);
    ration_plan_free(plan);

    plan = plan_of(jobs, 1, NULL, 0);
    CHECK_EQ(plan->jobs[0].effective_us, 60 * SECOND);
    CHECK_EQ(plan->jobs[0].use_count, 0);
    ration_plan_free(plan);

    plan = plan_of(LEN(jobs), LEN(scopes));
    CHECK(!plan->feasible);
    CHECK(plan->scopes[0].feasible);
    CHECK_EQ(plan->scopes[0].exhausted_at.us, RATION_NEVER_US);
    CHECK(!plan->scopes[1].feasible);
    CHECK_EQ(plan->scopes[1].exhausted_at.us, 0);
    CHECK_EQ(plan->jobs[0].effective_us, 60 * SECOND);
    CHECK_EQ(plan->jobs[1].effective_us, 18000);
    ration_plan_free(plan);
    ration_plan_free(NULL);
}

/* A window that ends now asks for nothing, whatever is left. */
static void test_the_end_of_a_window(void **state)
{
    (void)state;
    const ration_plan_job job = job_of(RATION_PRIORITY_LOW, SECOND, LEN(in_a));
    const ration_plan_scope scope = day_of(0, 0);
    const ration_plan_options options = {
        .now = {DAY}, .jobs = &job, .job_count = 1, .scopes = &scope, .scope_count = 1};
    ration_plan *const plan = made(&options);

    CHECK(plan->feasible);
    CHECK_EQ(plan->jobs[0].effective_us, SECOND);
    CHECK_EQ(plan->jobs[0].uses[0].projected, 0);
    ration_plan_free(plan);
}

/* 360 days with 7 runs, of a job that would run each 30 days: 31 104 000 s / 7 = 4 443 428.571428... s. */
static void test_a_long_interval_to_the_millisecond(void **state)
{
    (void)state;
    const ration_plan_job job = job_of(RATION_PRIORITY_LOW, 30 * DAY, LEN(in_a));
    const ration_plan_scope scope = {.usable = 7 * UNIT, .end = {360 * DAY}};
    ration_plan *const plan = plan_of(&job, 1, &scope, 1);

    CHECK_EQ(plan->jobs[0].effective_us, INT64_C(4443428572000));
    ration_plan_free(plan);
}

/* 2^16 uses of 2^53 * 2^53 * 2^16 / 2^10: their sum would be 2^128, which is 0 to whoever does not look. */
static void test_sums_do_not_wrap(void **state)
{
    (void)state;
    ration_plan_use *const uses = calloc(1u << 16, sizeof *uses);
    const ration_plan_job job = job_of(RATION_PRIORITY_CRITICAL, 1024, uses, 1u << 16);
    const ration_plan_scope scope = {.end = {RATION_TIME_MAX_US}};

    CHECK(uses != NULL);
    for (size_t i = 0; i < 1u << 16; i++)
        uses[i].charge = RATION_UNITS_MAX;

    ration_plan *const plan = plan_of(&job, 1, &scope, 1);

    CHECK(!plan->feasible);
    CHECK_EQ(plan->scopes[0].projected, INT64_MAX);
    ration_plan_free(plan);
    free(uses);
}

/* The largest of everything at once: answers saturate, nothing wraps. */
static void test_the_largest(void **state)
{
    (void)state;
    const ration_plan_use use = {.limit = 0, .charge = RATION_UNITS_MAX};
    ration_plan_job jobs[] = {job_of(RATION_PRIORITY_LOW, RATION_TIME_MAX_US, &use, 1),
                              job_of(RATION_PRIORITY_HIGH, 1000, &use, 1)};
    ration_plan_scope scope = {.usable = RATION_UNITS_MAX,
                               .spent = INT64_MAX,
                               .external = INT64_MAX,
                               .start = {-RATION_TIME_MAX_US},
                               .end = {RATION_TIME_MAX_US}};
    const ration_plan_options options = {
        .jobs = jobs, .job_count = 2, .scopes = &scope, .scope_count = 1, .max_stretch = RATION_PLAN_STRETCH_MAX};
    ration_plan *plan = made(&options);

    CHECK_EQ(plan->jobs[0].effective_us, RATION_TIME_MAX_US * 1000);
    CHECK_EQ(plan->jobs[0].stretch, 1000 * UNIT);
    CHECK_EQ(plan->jobs[1].effective_us, SECOND);
    CHECK_EQ(plan->jobs[1].uses[0].per_window, INT64_MAX);
    CHECK_EQ(plan->scopes[0].wanted, INT64_MAX);
    CHECK_EQ(plan->scopes[0].projected, INT64_MAX);
    CHECK_EQ(plan->scopes[0].others, INT64_MAX);
    CHECK_EQ(plan->scopes[0].budget, 0);
    CHECK(!plan->feasible);
    ration_plan_free(plan);

    /* A rolling window as long as time is counted, of which all is back by its end. */
    scope.rolling_us = RATION_TIME_MAX_US;
    plan = made(&options);
    CHECK(!plan->feasible);
    CHECK_EQ(plan->scopes[0].budget, RATION_UNITS_MAX);
    ration_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_scope),
        cmocka_unit_test(test_desired_to_the_last_unit),
        cmocka_unit_test(test_two_classes),
        cmocka_unit_test(test_one_factor_for_a_class),
        cmocka_unit_test(test_a_job_in_two_scopes),
        cmocka_unit_test(test_what_is_left_is_given_back),
        cmocka_unit_test(test_max_stretch),
        cmocka_unit_test(test_the_lower_class_stays_at_the_utmost),
        cmocka_unit_test(test_critical_alone_is_too_much),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_a_rate_and_a_quota),
        cmocka_unit_test(test_mid_window),
        cmocka_unit_test(test_spent_before_the_end),
        cmocka_unit_test(test_learned_maximum),
        cmocka_unit_test(test_charges),
        cmocka_unit_test(test_rolling),
        cmocka_unit_test(test_rolling_forgets),
        cmocka_unit_test(test_rolling_without_a_timeline),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_the_end_of_a_window),
        cmocka_unit_test(test_a_long_interval_to_the_millisecond),
        cmocka_unit_test(test_sums_do_not_wrap),
        cmocka_unit_test(test_the_largest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
