/* SPDX-License-Identifier: MIT */
/*
 * What a plan costs: 10 000 jobs in 1000 scopes, wall time.
 *
 *   fits       every job as desired
 *   spread     each job in three scopes at random, all of them short: the many small decisions
 *   one        every job in one scope that all share, and in two others: the one is looked at again and again
 *   staircase  as `one`, and the factors of the others are all different, near to that of the one: the worst known
 *   hopeless   nothing left in any scope
 *
 * usage: bench_plan [NAME [ROUNDS]]
 */
#include <ration/ration.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define JOBS 10000
#define SCOPES 1000
#define USES 3

typedef struct input {
    ration_plan_options options;
    ration_plan_job jobs[JOBS];
    ration_plan_use uses[JOBS][USES];
    ration_plan_scope scopes[SCOPES];
} input;

static uint64_t state = 1;

static uint64_t draw(uint64_t bound)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % bound;
}

static double now_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Jobs of all classes that want some 29 000 calls of each scope a day. */
static void fill(input *in, bool shared)
{
    memset(in, 0, sizeof *in);
    in->options = (ration_plan_options){
        .jobs = in->jobs, .job_count = JOBS, .scopes = in->scopes, .scope_count = SCOPES, .max_stretch = 100};
    for (size_t i = 0; i < JOBS; i++) {
        in->jobs[i] = (ration_plan_job){.interval_us = (int64_t)(30 + draw(270)) * SECOND,
                                        .priority = (ration_priority)(RATION_PRIORITY_CRITICAL + (draw(20) + 6) / 7),
                                        .requests = (int64_t)(1 + draw(3)) * UNIT,
                                        .scopes = in->uses[i],
                                        .scope_count = USES};
        for (size_t u = 0; u < USES; u++)
            in->uses[i][u].limit = u == 0 && shared ? 0 : (size_t)draw(SCOPES);
    }
    for (size_t i = 0; i < SCOPES; i++)
        in->scopes[i].end.us = 86400 * SECOND;
}

static void budgets(input *in, int64_t low, int64_t high)
{
    for (size_t i = 0; i < SCOPES; i++)
        in->scopes[i].usable = (low + (int64_t)draw((uint64_t)(high - low + 1))) * UNIT;
}

static void fits(input *in)
{
    fill(in, false);
    budgets(in, 1000000, 1000000);
}

static void spread(input *in)
{
    fill(in, false);
    budgets(in, 4000, 30000);
}

static void one(input *in)
{
    fill(in, true);
    budgets(in, 4000, 30000);
    in->scopes[0].usable = 6000000 * UNIT;
}

/* Ten jobs of one class in each scope, all of them in scope 0, whose factor falls from one of theirs to the next. */
static void staircase(input *in)
{
    fill(in, true);
    for (size_t i = 0; i < JOBS; i++) {
        in->jobs[i].interval_us = 60 * SECOND;
        in->jobs[i].priority = RATION_PRIORITY_NORMAL;
        in->jobs[i].requests = UNIT;
        in->jobs[i].scope_count = 2;
        in->uses[i][1].limit = 1 + i % (SCOPES - 1);
    }
    for (size_t i = 1; i < SCOPES; i++)
        in->scopes[i].usable = (1000 + 5 * (int64_t)i) * UNIT;
    in->scopes[0].usable = 3000000 * UNIT;
}

static void hopeless(input *in)
{
    fill(in, true);
}

static const struct {
    const char *name;
    void (*make)(input *in);
} benches[] = {{"fits", fits}, {"spread", spread}, {"one", one}, {"staircase", staircase}, {"hopeless", hopeless}};

static size_t stretched_in(const ration_plan *plan)
{
    size_t count = 0;

    for (size_t i = 0; i < plan->job_count; i++)
        count += plan->jobs[i].effective_us > plan->jobs[i].desired_us;
    return count;
}

static void run(const input *in, const char *name, long rounds)
{
    double best = 1e9, worst = 0;
    size_t stretched = 0;
    bool feasible = false;

    for (long i = 0; i < rounds; i++) {
        ration_plan *plan = NULL;
        const double from = now_s();

        if (ration_plan_new(&in->options, &plan, NULL) != RATION_OK)
            abort();

        const double took = now_s() - from;

        best = took < best ? took : best;
        worst = took > worst ? took : worst;
        stretched = stretched_in(plan);
        feasible = plan->feasible;
        ration_plan_free(plan);
    }
    printf("%-10s %8.1f to %.1f ms, %zu of %d jobs stretched, %s\n", name, best * 1e3, worst * 1e3, stretched, JOBS,
           feasible ? "feasible" : "not feasible");
}

int main(int argc, char **argv)
{
    input *const in = malloc(sizeof *in);
    const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 5;

    if (in == NULL)
        return 1;
    for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++) {
        if (argc > 1 && strcmp(argv[1], benches[i].name) != 0)
            continue;
        benches[i].make(in);
        run(in, benches[i].name, rounds);
    }
    free(in);
    return 0;
}
