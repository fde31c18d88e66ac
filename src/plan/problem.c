/* SPDX-License-Identifier: MIT */
/*
 * The planner's input, checked member by member and laid out for it.
 *
 * A run's calls are requests * (1 + overhead) * children, its amount at a limit that times the charge of a call; both
 * round up to the millionth, so no plan is made with less than is needed. What a run takes at a rate is the least
 * interval that the job can have; a job that is critical keeps its interval all the same.
 *
 * Uses are copied twice: by job, to find the scopes that a decision about it changes, and by scope and class, so that
 * what is summed up again and again lies side by side. A counting sort does it: it keeps the order of the jobs.
 *
 * Bounds, on which sums in 128 bits rest: charges, amounts and budgets are at most 2^53, spans 2^55, uses 2^22.
 */
#include "plan/problem.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

#define PART_MAX 1000000 /* of a ratio */
#define MAX_STRETCH 12

int rn_plan_fault(ration_fault *fault, const rn_plan_place *at, const char *member, const char *text)
{
    rn_builder b;

    if (fault == NULL)
        return RATION_ERR_CONFIG;
    rn_builder_init(&b, fault->path, sizeof fault->path);
    if (at != NULL) {
        rn_builder_str(&b, at->list);
        rn_builder_char(&b, '[');
        rn_builder_int(&b, (int64_t)at->index);
        rn_builder_str(&b, "].");
    }
    if (at != NULL && at->within != NULL) {
        rn_builder_str(&b, at->within);
        rn_builder_char(&b, '[');
        rn_builder_int(&b, (int64_t)at->place);
        rn_builder_str(&b, "].");
    }
    rn_builder_str(&b, member);
    rn_builder_init(&b, fault->text, sizeof fault->text);
    rn_builder_str(&b, text);
    return RATION_ERR_CONFIG;
}

int64_t rn_plan_round_up(int64_t us)
{
    return rn_mul(rn_div_ceil(us, RATION_PLAN_STEP_US), RATION_PLAN_STEP_US);
}

static int check_options(const ration_plan_options *options, ration_fault *fault)
{
    const bool missing = (options->jobs == NULL && options->job_count > 0) ||
                         (options->scopes == NULL && options->scope_count > 0) ||
                         (options->rates == NULL && options->rate_count > 0);

    if (missing)
        return RATION_ERR_INVALID;
    if (options->now.us < -RATION_TIME_MAX_US || options->now.us > RATION_TIME_MAX_US)
        return rn_plan_fault(fault, NULL, "now", "is no instant");
    if (options->job_count > RATION_PLAN_COUNT_MAX)
        return rn_plan_fault(fault, NULL, "job_count", "at most 1000000 jobs");
    if (options->scope_count > RATION_PLAN_COUNT_MAX)
        return rn_plan_fault(fault, NULL, "scope_count", "at most 1000000 scopes");
    if (options->rate_count > RATION_PLAN_COUNT_MAX)
        return rn_plan_fault(fault, NULL, "rate_count", "at most 1000000 rates");
    if (options->max_stretch < 0 || options->max_stretch > RATION_PLAN_STRETCH_MAX)
        return rn_plan_fault(fault, NULL, "max_stretch", "must be a whole number from 1 to 1000");
    return RATION_OK;
}

static int check_limits(const ration_plan_options *options, ration_fault *fault)
{
    for (size_t i = 0; i < options->scope_count; i++) {
        const ration_plan_scope *const scope = &options->scopes[i];
        const rn_plan_place at = {.list = "scopes", .index = i};
        const char *member = NULL;

        if (scope->timeline.units == NULL && scope->timeline.count > 0)
            return RATION_ERR_INVALID;

        const char *const text = rn_scope_fault(scope, options->now, &member);

        if (text != NULL)
            return rn_plan_fault(fault, &at, member, text);
    }
    for (size_t i = 0; i < options->rate_count; i++) {
        const ration_rate rate = options->rates[i];
        const rn_plan_place at = {.list = "rates", .index = i};

        if (rate.units <= 0 || rate.units > RATION_UNITS_MAX)
            return rn_plan_fault(fault, &at, "units", "must be above 0, and at most 9007199254.740992 units");
        if (rate.per_us <= 0 || rate.per_us > RATION_TIME_MAX_US)
            return rn_plan_fault(fault, &at, "per_us", "must be above 0, and no longer than time is counted");
    }
    return RATION_OK;
}

static int check_use(const ration_plan_job *job, const ration_plan_use *use, size_t limits, const rn_plan_place *at,
                     ration_fault *fault)
{
    if (use->limit >= limits)
        return rn_plan_fault(fault, at, "limit", "there is no such place in the array");
    if (use->charge < 0 || use->charge > RATION_UNITS_MAX)
        return rn_plan_fault(fault, at, "charge", "must be from 0 to 9007199254.740992 units");
    if (use->children < 0 || use->children > rn_max(job->fan_out, 1))
        return rn_plan_fault(fault, at, "children", "must be from 0 to the job's fan-out");
    return RATION_OK;
}

static bool is_ratio(ration_ratio ratio)
{
    return ratio.num >= 0 && ratio.num <= PART_MAX && ratio.den > 0 && ratio.den <= PART_MAX;
}

static int check_job(const ration_plan_options *options, size_t index, ration_fault *fault)
{
    const ration_plan_job *const job = &options->jobs[index];
    const ration_ratio overhead = job->retry_overhead;
    rn_plan_place at = {.list = "jobs", .index = index};
    int err = RATION_OK;

    if ((job->scopes == NULL && job->scope_count > 0) || (job->rates == NULL && job->rate_count > 0))
        return RATION_ERR_INVALID;
    if (job->interval_us < RATION_PLAN_STEP_US || job->interval_us > RATION_TIME_MAX_US)
        return rn_plan_fault(fault, &at, "interval_us", "must be at least 1 ms, and no longer than time is counted");
    if ((unsigned)job->priority > RATION_PRIORITY_LOW)
        return rn_plan_fault(fault, &at, "priority", "there is no such priority");
    if (job->fan_out < 0 || job->fan_out > RATION_UNITS_MAX)
        return rn_plan_fault(fault, &at, "fan_out", "must be from 0 to 9007199254740992");
    if (job->requests < 0 || job->requests > RATION_UNITS_MAX)
        return rn_plan_fault(fault, &at, "requests", "must be from 0 to 9007199254.740992 requests");
    if (overhead.den != 0 && !is_ratio(overhead)) {
        return rn_plan_fault(fault, &at, "retry_overhead",
                             "both parts of a ratio are at most 1000000, and none below 0");
    }
    if (job->scope_count > RATION_PLAN_USES_MAX)
        return rn_plan_fault(fault, &at, "scope_count", "at most 4000000 uses");
    at.within = "scopes";
    for (at.place = 0; at.place < job->scope_count && err == RATION_OK; at.place++)
        err = check_use(job, &job->scopes[at.place], options->scope_count, &at, fault);
    at.within = "rates";
    for (at.place = 0; at.place < job->rate_count && err == RATION_OK; at.place++)
        err = check_use(job, &job->rates[at.place], options->rate_count, &at, fault);
    return err;
}

/* The calls of a run, in millionths; RATION_UNSET: more than can be counted. */
static int64_t calls_of(const ration_plan_job *job, int64_t children)
{
    const ration_ratio overhead = job->retry_overhead.den == 0 ? (ration_ratio){1, 20} : job->retry_overhead;
    const uint64_t requests = (uint64_t)(job->requests == 0 ? RATION_UNIT : job->requests);
    const uint64_t all = (uint64_t)(children != 0 ? children : rn_max(job->fan_out, 1));
    const uint64_t part = (uint64_t)overhead.num + (uint64_t)overhead.den;
    const rn_wide calls = rn_wide_div_ceil((rn_wide)requests * all * part, (uint64_t)overhead.den);

    return calls > RATION_UNITS_MAX ? RATION_UNSET : (int64_t)calls;
}

/* What a run takes of one limit; RATION_UNSET: more than can be counted, though the calls of the whole run can be. */
static int64_t amount_of(const ration_plan_job *job, const ration_plan_use *use)
{
    const int64_t calls = calls_of(job, use->children);
    const uint64_t charge = (uint64_t)(use->charge == 0 ? RATION_UNIT : use->charge);
    const rn_wide amount = rn_wide_div_ceil((rn_wide)(uint64_t)calls * charge, (uint64_t)RATION_UNIT);

    return amount > RATION_UNITS_MAX ? RATION_UNSET : (int64_t)amount;
}

#define TOO_MUCH "a run uses more than 9007199254.740992 units"

/* The shortest interval into which a run fits at every rate. */
static int fit_rates(const rn_plan_problem *problem, size_t index, ration_fault *fault)
{
    const ration_plan_job *const given = &problem->options->jobs[index];
    rn_plan_job *const job = &problem->jobs[index];
    rn_plan_place at = {.list = "jobs", .index = index, .within = "rates"};

    for (at.place = 0; at.place < given->rate_count; at.place++) {
        const ration_plan_use *const use = &given->rates[at.place];
        const ration_rate rate = problem->options->rates[use->limit];
        const int64_t amount = amount_of(given, use);

        if (amount == RATION_UNSET)
            return rn_plan_fault(fault, &at, "charge", TOO_MUCH);

        const rn_wide run_us =
            rn_wide_div_ceil((rn_wide)(uint64_t)amount * (uint64_t)rate.per_us, (uint64_t)rate.units);

        if (run_us > RATION_TIME_MAX_US - RATION_PLAN_STEP_US)
            return rn_plan_fault(fault, &at, "limit", "a run would take longer at this rate than time is counted");
        if ((int64_t)run_us > job->fits_us) {
            job->fits_us = (int64_t)run_us;
            job->rate = (uint32_t)use->limit;
        }
    }
    if (job->fits_us > job->desired_us)
        job->fits_us = rn_plan_round_up(job->fits_us);
    return RATION_OK;
}

static int add_uses(rn_plan_problem *problem, size_t index, ration_fault *fault)
{
    const ration_plan_job *const given = &problem->options->jobs[index];
    rn_plan_place at = {.list = "jobs", .index = index, .within = "scopes"};

    for (at.place = 0; at.place < given->scope_count; at.place++) {
        const ration_plan_use *const use = &given->scopes[at.place];
        const int64_t amount = amount_of(given, use);

        if (amount == RATION_UNSET)
            return rn_plan_fault(fault, &at, "charge", TOO_MUCH);
        problem->uses[problem->use_count++] =
            (rn_plan_use){.job = (uint32_t)index, .scope = (uint32_t)use->limit, .amount = amount};
    }
    return RATION_OK;
}

static int add_job(rn_plan_problem *problem, size_t index, ration_fault *fault)
{
    const ration_plan_job *const given = &problem->options->jobs[index];
    const ration_priority priority =
        given->priority != RATION_PRIORITY_UNSET ? given->priority : RATION_PRIORITY_NORMAL;
    rn_plan_job *const job = &problem->jobs[index];
    rn_plan_place at = {.list = "jobs", .index = index};

    *job = (rn_plan_job){.desired_us = given->interval_us,
                         .calls = calls_of(given, 0),
                         .first_use = (uint32_t)problem->use_count,
                         .use_count = (uint32_t)given->scope_count,
                         .rate = RN_NONE,
                         .scope = RN_NONE,
                         .class_number = (uint8_t)(priority - RATION_PRIORITY_CRITICAL)};
    if (job->calls == RATION_UNSET)
        return rn_plan_fault(fault, &at, "requests", "a run makes more than 9007199254.740992 calls");

    int err = fit_rates(problem, index, fault);

    if (err == RATION_OK)
        err = add_uses(problem, index, fault);
    job->least_us = job->class_number == RN_CLASS_CRITICAL ? job->desired_us : rn_max(job->desired_us, job->fits_us);
    return err;
}

/* Lay the uses out by scope and class. */
static void sort_uses(rn_plan_problem *problem)
{
    const size_t scope_count = problem->options->scope_count;
    uint32_t next = 0;

    for (size_t i = 0; i < problem->use_count; i++) {
        const rn_plan_use *const use = &problem->uses[i];

        problem->scopes[use->scope].first[problem->jobs[use->job].class_number]++;
    }
    /* From how many to where the first of them goes; then each moves its class's mark on to the next. */
    for (size_t i = 0; i < scope_count; i++) {
        uint32_t *const first = problem->scopes[i].first;

        for (size_t c = 0; c < RN_CLASSES; c++) {
            const uint32_t count = first[c];

            first[c] = next;
            next += count;
        }
        first[RN_CLASSES] = next;
    }
    for (size_t i = 0; i < problem->use_count; i++) {
        const rn_plan_use *const use = &problem->uses[i];

        problem->by_scope[problem->scopes[use->scope].first[problem->jobs[use->job].class_number]++] = *use;
    }
    for (size_t i = 0; i < scope_count; i++) {
        uint32_t *const first = problem->scopes[i].first;

        for (size_t c = RN_CLASSES - 1; c > 0; c--)
            first[c] = first[c - 1];
        first[0] = i > 0 ? problem->scopes[i - 1].first[RN_CLASSES] : 0;
    }
}

static int make_room(rn_plan_problem *problem, rn_arena *arena, size_t use_count)
{
    const ration_plan_options *const options = problem->options;

    problem->jobs = rn_arena_zalloc(arena, options->job_count, sizeof *problem->jobs);
    problem->scopes = rn_arena_zalloc(arena, options->scope_count, sizeof *problem->scopes);
    problem->uses = rn_arena_zalloc(arena, use_count, sizeof *problem->uses);
    problem->by_scope = rn_arena_zalloc(arena, use_count, sizeof *problem->by_scope);
    if (problem->jobs == NULL || problem->scopes == NULL || problem->uses == NULL || problem->by_scope == NULL)
        return RATION_ERR_NOMEM;
    return RATION_OK;
}

int rn_plan_problem_init(rn_plan_problem *problem, const ration_plan_options *options, rn_arena *arena,
                         ration_fault *fault)
{
    size_t use_count = 0;
    int err = check_options(options, fault);

    if (err == RATION_OK)
        err = check_limits(options, fault);
    for (size_t i = 0; i < options->job_count && err == RATION_OK; i++) {
        err = check_job(options, i, fault);
        use_count += options->jobs[i].scope_count;
        if (err == RATION_OK && use_count > RATION_PLAN_USES_MAX)
            err = rn_plan_fault(fault, NULL, "jobs", "at most 4000000 uses of scopes by all jobs together");
    }
    if (err != RATION_OK)
        return err;
    *problem = (rn_plan_problem){.options = options,
                                 .max_stretch = options->max_stretch != 0 ? options->max_stretch : MAX_STRETCH};
    err = make_room(problem, arena, use_count);
    for (size_t i = 0; i < options->scope_count && err == RATION_OK; i++)
        problem->scopes[i].budget = rn_scope_budget(&options->scopes[i], options->now);
    for (size_t i = 0; i < options->job_count && err == RATION_OK; i++)
        err = add_job(problem, i, fault);
    if (err == RATION_OK)
        sort_uses(problem);
    return err;
}
