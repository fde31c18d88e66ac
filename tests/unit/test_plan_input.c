/* SPDX-License-Identifier: MIT */
/* What a planner is given: every member that is wrong is named, and memory may run out. */
#include <ration/plan.h>

#include "support/check.h"
#include "support/failalloc.h"

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Each row spoils one member of a good input. */
typedef struct bad_row {
    const char *path;
    int64_t value;
} bad_row;

typedef struct bad_input {
    ration_plan_options options;
    ration_plan_job jobs[2];
    ration_plan_scope scopes[2];
    ration_rate rates[1];
    ration_plan_use uses[2], rate_uses[1];
    int64_t units[2];
} bad_input;

static void good_input(bad_input *in)
{
    *in = (bad_input){.rates = {{UNIT, SECOND}}};
    in->jobs[0] = (ration_plan_job){.interval_us = SECOND};
    in->jobs[1] = (ration_plan_job){.interval_us = SECOND, .scopes = in->uses, .scope_count = 2};
    in->uses[0].children = 1;
    in->jobs[1].rates = in->rate_uses;
    in->jobs[1].rate_count = 1;
    in->scopes[0] = (ration_plan_scope){.usable = 10 * UNIT, .reserve = UNIT, .end = {24 * HOUR}};
    in->scopes[1] = (ration_plan_scope){.usable = 10 * UNIT, .reserve = UNIT, .end = {24 * HOUR}};
    in->scopes[1].timeline = (ration_timeline){.width_us = SECOND, .units = in->units, .count = 2};
    in->options = (ration_plan_options){.now = {HOUR},
                                        .jobs = in->jobs,
                                        .job_count = 2,
                                        .scopes = in->scopes,
                                        .scope_count = 2,
                                        .rates = in->rates,
                                        .rate_count = 1};
}

static void spoil(bad_input *in, const bad_row *row)
{
    const struct {
        const char *path;
        int64_t *number;
    } members[] = {
        {"now", &in->options.now.us},
        {"max_stretch", &in->options.max_stretch},
        {"jobs[1].interval_us", &in->jobs[1].interval_us},
        {"jobs[1].fan_out", &in->jobs[1].fan_out},
        {"jobs[1].requests", &in->jobs[1].requests},
        {"jobs[1].scopes[1].charge", &in->uses[1].charge},
        {"jobs[1].scopes[1].children", &in->uses[1].children},
        {"jobs[1].rates[0].charge", &in->rate_uses[0].charge},
        {"rates[0].units", &in->rates[0].units},
        {"rates[0].per_us", &in->rates[0].per_us},
        {"scopes[1].usable", &in->scopes[1].usable},
        {"scopes[1].reserve", &in->scopes[1].reserve},
        {"scopes[1].spent", &in->scopes[1].spent},
        {"scopes[1].external", &in->scopes[1].external},
        {"scopes[1].start", &in->scopes[1].start.us},
        {"scopes[1].end", &in->scopes[1].end.us},
        {"scopes[1].rolling_us", &in->scopes[1].rolling_us},
        {"scopes[1].timeline.start", &in->scopes[1].timeline.start.us},
        {"scopes[1].timeline.width_us", &in->scopes[1].timeline.width_us},
        {"scopes[1].timeline.units", &in->units[1]},
    };

    for (size_t i = 0; i < COUNT_OF(members); i++) {
        if (strcmp(members[i].path, row->path) == 0)
            *members[i].number = row->value;
    }
    if (strcmp(row->path, "jobs[1].scopes[1].limit") == 0)
        in->uses[1].limit = (size_t)row->value;
    if (strcmp(row->path, "jobs[1].rates[0].limit") == 0)
        in->rate_uses[0].limit = (size_t)row->value;
    if (strcmp(row->path, "jobs[1].priority") == 0)
        in->jobs[1].priority = (ration_priority)row->value;
    if (strcmp(row->path, "job_count") == 0)
        in->options.job_count = (size_t)row->value;
    if (strcmp(row->path, "scope_count") == 0)
        in->options.scope_count = (size_t)row->value;
    if (strcmp(row->path, "rate_count") == 0)
        in->options.rate_count = (size_t)row->value;
    if (strcmp(row->path, "jobs[1].scope_count") == 0)
        in->jobs[1].scope_count = (size_t)row->value;
    if (strcmp(row->path, "scopes[1].timeline.count") == 0)
        in->scopes[1].timeline.count = (size_t)row->value;
}

static void test_faults(void **state)
{
    (void)state;
    static const bad_row rows[] = {
        {"now", RATION_TIME_MAX_US + 1},
        {"now", -RATION_TIME_MAX_US - 1},
        {"max_stretch", -1},
        {"max_stretch", RATION_PLAN_STRETCH_MAX + 1},
        {"job_count", RATION_PLAN_COUNT_MAX + 1},
        {"scope_count", RATION_PLAN_COUNT_MAX + 1},
        {"rate_count", RATION_PLAN_COUNT_MAX + 1},
        {"jobs[1].interval_us", 0},
        {"jobs[1].interval_us", RATION_PLAN_STEP_US - 1},
        {"jobs[1].interval_us", INT64_MIN},
        {"jobs[1].interval_us", RATION_TIME_MAX_US + 1},
        {"jobs[1].priority", RATION_PRIORITY_LOW + 1},
        {"jobs[1].priority", -1},
        {"jobs[1].fan_out", -1},
        {"jobs[1].fan_out", RATION_UNITS_MAX + 1},
        {"jobs[1].requests", -1},
        {"jobs[1].requests", RATION_UNITS_MAX + 1},
        {"jobs[1].scope_count", RATION_PLAN_USES_MAX + 1},
        {"jobs[1].scopes[1].limit", 2},
        {"jobs[1].scopes[1].limit", -1},
        {"jobs[1].scopes[1].charge", -1},
        {"jobs[1].scopes[1].charge", RATION_UNITS_MAX + 1},
        {"jobs[1].scopes[1].children", -1},
        {"jobs[1].scopes[1].children", 2},
        {"jobs[1].rates[0].limit", 1},
        {"jobs[1].rates[0].charge", -1},
        {"rates[0].units", 0},
        {"rates[0].units", RATION_UNITS_MAX + 1},
        {"rates[0].per_us", 0},
        {"rates[0].per_us", RATION_TIME_MAX_US + 1},
        {"scopes[1].usable", -1},
        {"scopes[1].usable", RATION_UNITS_MAX + 1},
        {"scopes[1].reserve", -1},
        {"scopes[1].reserve", 10 * UNIT + 1},
        {"scopes[1].spent", -1},
        {"scopes[1].external", -1},
        {"scopes[1].start", HOUR + 1},
        {"scopes[1].start", INT64_MIN},
        {"scopes[1].end", HOUR - 1},
        {"scopes[1].end", RATION_NEVER_US},
        {"scopes[1].rolling_us", -1},
        {"scopes[1].rolling_us", RATION_TIME_MAX_US + 1},
        {"scopes[1].timeline.start", INT64_MIN},
        {"scopes[1].timeline.width_us", 0},
        {"scopes[1].timeline.width_us", RATION_TIME_MAX_US + 1},
        {"scopes[1].timeline.units", -1},
    };
    bad_input in;
    ration_fault fault;
    ration_plan *plan = NULL;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        good_input(&in);
        spoil(&in, &rows[i]);
        CHECK_ROW(rows[i].path);
        CHECK_EQ(ration_plan_new(&in.options, &plan, &fault), RATION_ERR_CONFIG);
        CHECK_STR(fault.path, rows[i].path);
        CHECK(fault.text[0] != '\0');
        CHECK_EQ(ration_plan_new(&in.options, &plan, NULL), RATION_ERR_CONFIG);
        CHECK(plan == NULL);
    }
    CHECK_ROW(NULL);
    good_input(&in);
    CHECK_EQ(ration_plan_new(&in.options, &plan, &fault), RATION_OK);
    ration_plan_free(plan);
}

/* Windows without length, buckets beyond time, runs beyond count. */
static void test_more_faults(void **state)
{
    (void)state;
    static const struct {
        const char *path, *why;
        bad_row first, second;
    } rows[] = {
        {"scopes[1].end", "an empty window", {"scopes[1].start", HOUR}, {"scopes[1].end", HOUR}},
        {"scopes[1].timeline.count",
         "three times a third of all time and more",
         {"scopes[1].timeline.width_us", RATION_TIME_MAX_US},
         {"scopes[1].timeline.count", 3}},
        {"jobs[1].requests", "2^53 + 5 % and more", {"jobs[1].requests", RATION_UNITS_MAX}, {"jobs[1].fan_out", 2}},
        {"jobs[1].scopes[1].charge",
         "2 * 2^53 a run",
         {"jobs[1].scopes[1].charge", RATION_UNITS_MAX},
         {"jobs[1].fan_out", 2}},
        {"jobs[1].rates[0].charge",
         "2 * 2^53 a run",
         {"jobs[1].rates[0].charge", RATION_UNITS_MAX},
         {"jobs[1].fan_out", 2}},
        {"jobs[1].rates[0].limit",
         "two units at one in all time",
         {"rates[0].per_us", RATION_TIME_MAX_US},
         {"jobs[1].fan_out", 2}},
    };
    static const ration_ratio ratios[] = {{-1, 2}, {1, -1}, {1, 1000001}, {1000001, 1}};
    bad_input in;
    ration_fault fault;
    ration_plan *plan = NULL;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        good_input(&in);
        spoil(&in, &rows[i].first);
        spoil(&in, &rows[i].second);
        CHECK_ROW(rows[i].why);
        CHECK_EQ(ration_plan_new(&in.options, &plan, &fault), RATION_ERR_CONFIG);
        CHECK_STR(fault.path, rows[i].path);
    }
    CHECK_ROW("retry_overhead");
    for (size_t i = 0; i < COUNT_OF(ratios); i++) {
        good_input(&in);
        in.jobs[1].retry_overhead = ratios[i];
        CHECK_EQ(ration_plan_new(&in.options, &plan, &fault), RATION_ERR_CONFIG);
        CHECK_STR(fault.path, "jobs[1].retry_overhead");
    }
    CHECK_ROW(NULL);
}

/* Pointers that are not there. */
static void test_invalid(void **state)
{
    (void)state;
    bad_input in;
    ration_plan *plan = NULL;

    good_input(&in);
    CHECK_EQ(ration_plan_new(NULL, &plan, NULL), RATION_ERR_INVALID);
    CHECK_EQ(ration_plan_new(&in.options, NULL, NULL), RATION_ERR_INVALID);
    for (int i = 0; i < 6; i++) {
        good_input(&in);
        in.options.jobs = i == 0 ? NULL : in.jobs;
        in.options.scopes = i == 1 ? NULL : in.scopes;
        in.options.rates = i == 2 ? NULL : in.rates;
        in.jobs[1].scopes = i == 3 ? NULL : in.uses;
        in.jobs[1].rates = i == 4 ? NULL : in.rate_uses;
        in.scopes[1].timeline.units = i == 5 ? NULL : in.units;
        CHECK_EQ(ration_plan_new(&in.options, &plan, NULL), RATION_ERR_INVALID);
    }
    CHECK(plan == NULL);
}

/* More uses than may be, though no job has too many: the count is what matters, none is looked at. */
static void test_too_many_uses(void **state)
{
    (void)state;
    ration_plan_use *const uses = calloc(RATION_PLAN_USES_MAX / 2 + 1, sizeof *uses);
    const ration_plan_scope scope = {.usable = UNIT, .end = {HOUR}};
    ration_plan_job jobs[2];
    ration_fault fault;
    ration_plan *plan = NULL;
    const ration_plan_options options = {.jobs = jobs, .job_count = 2, .scopes = &scope, .scope_count = 1};

    CHECK(uses != NULL);
    jobs[0] = (ration_plan_job){.interval_us = SECOND, .scopes = uses, .scope_count = RATION_PLAN_USES_MAX / 2};
    jobs[1] = (ration_plan_job){.interval_us = SECOND, .scopes = uses, .scope_count = RATION_PLAN_USES_MAX / 2 + 1};
    CHECK_EQ(ration_plan_new(&options, &plan, &fault), RATION_ERR_CONFIG);
    CHECK_STR(fault.path, "jobs");
    free(uses);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    bad_input in;
    failalloc fail = {.failed = true};
    uint64_t runs = 0;

    for (uint64_t i = 0; fail.failed; i++, runs++) {
        ration_plan *plan = NULL;

        good_input(&in);
        failalloc_init(&fail, i);
        in.options.allocator = &fail.allocator;

        const int err = ration_plan_new(&in.options, &plan, NULL);

        CHECK_EQ(err, fail.failed ? RATION_ERR_NOMEM : RATION_OK);
        CHECK((plan != NULL) == (err == RATION_OK));
        ration_plan_free(plan);
        CHECK_EQ(fail.live, 0);
    }
    CHECK(runs > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),        cmocka_unit_test(test_more_faults),     cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_too_many_uses), cmocka_unit_test(test_memory_runs_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
