/* SPDX-License-Identifier: MIT */
/*
 * How far each interval is stretched, so that what all jobs use fits every scope. Chapter 4.
 *
 * One walk from the highest class down. The class at work finds the intervals of those above decided, and counts
 * those below as stretched to the utmost: so it is stretched in a scope only where that does not do. What it leaves
 * is then the next class's. That is where stretching from the lowest class up, and giving back from the highest down,
 * ends; in one pass, and with the lower classes still at the utmost in a scope that stretches a higher one (`bound`).
 *
 * In a class the scope that needs the largest factor goes first: all of its jobs that are not decided get that factor,
 * and what they use now counts as decided in their other scopes too. There, the factor needed can only become smaller.
 * So a factor once found is an upper bound until its scope is looked at again, and that is done only when it comes out
 * on top.
 *
 * A factor is a count of 2^-44, which misses no interval of a job: those that give it one and the same number of
 * milliseconds span at least 1000 / 2^53. The smallest that fits is found by halving, on the very sums that the plan
 * reports.
 *
 * Uses are counted in 65536ths of a micro-unit (fine units), rounded down: so thirds add up to a whole, and a sum of n
 * is less than n / 65536 micro-units too small. Budgets are whole, and reports round up: a sum fits if its report does.
 *
 * Termination: a round either decides all jobs left in a scope, which then leaves the heap, or looks again at a scope
 * that has become stale. A scope becomes so only when a job with a use there is decided, and a job is decided once. So
 * a class takes at most scopes + uses rounds, which is asserted.
 */
#include <ration/plan.h>

#include <assert.h>

#include "base/mem.h"
#include "base/units.h"
#include "plan/problem.h"

#define FACTOR_BITS 44
#define FACTOR_ONE (UINT64_C(1) << FACTOR_BITS)

typedef struct planner {
    rn_plan_problem problem;
    rn_heap heap; /* scopes in which the class at work must be stretched */
    uint64_t utmost;
    size_t rounds; /* of the class at work */
} planner;

/* What the caller gets, and where it is kept. */
typedef struct plan_box {
    ration_plan plan;
    rn_arena arena;
} plan_box;

static int64_t interval_at(const rn_plan_job *job, uint64_t factor)
{
    if (factor == FACTOR_ONE)
        return job->least_us;

    const rn_wide product = (rn_wide)(uint64_t)job->desired_us * factor;
    const int64_t us = (int64_t)(product >> FACTOR_BITS) + ((product & (FACTOR_ONE - 1)) != 0);

    return rn_max(rn_plan_round_up(us), job->least_us);
}

/* The most that one use is taken for, so that sums of all uses stay in 128 bits: far more than can be reported. */
#define FINE_BITS 16
#define FINE_MAX ((rn_wide)1 << 100)

static rn_wide fine_in(int64_t amount, int64_t span_us, int64_t interval_us)
{
    const rn_wide fine = (((rn_wide)(uint64_t)amount * (uint64_t)span_us) << FINE_BITS) / (uint64_t)interval_us;

    return fine < FINE_MAX ? fine : FINE_MAX;
}

static int64_t fine_report(rn_wide fine)
{
    return rn_wide_int((fine >> FINE_BITS) + ((fine & ((1u << FINE_BITS) - 1)) != 0));
}

/* What a class's uses of a scope come to, of the jobs that are not decided. Stops above `most`. */
static rn_wide sum_at(const planner *p, const rn_plan_scope *scope, size_t class_number, uint64_t factor, rn_wide most)
{
    rn_wide sum = 0;

    for (uint32_t i = scope->first[class_number]; i < scope->first[class_number + 1] && sum <= most; i++) {
        const rn_plan_use *const use = &p->problem.by_scope[i];
        const rn_plan_job *const job = &p->problem.jobs[use->job];

        if (!job->decided)
            sum += fine_in(use->amount, scope->budget.horizon_us, interval_at(job, factor));
    }
    return sum;
}

static int64_t units_of(const rn_budget *budget)
{
    return rn_max(0, rn_sub(budget->own, budget->others));
}

/* The smallest factor for the jobs of a class in a scope that are not decided; the utmost if none will do. */
static uint64_t factor_of(const planner *p, const rn_plan_scope *scope, size_t class_number)
{
    const rn_wide units = (rn_wide)(uint64_t)units_of(&scope->budget) << FINE_BITS;
    const rn_wide taken = scope->decided + scope->sunk;
    uint64_t low = FACTOR_ONE; /* too little */
    uint64_t high = p->utmost; /* will do, or nothing does */

    if (scope->first[class_number] == scope->first[class_number + 1])
        return FACTOR_ONE;
    if (scope->bound || taken > units)
        return p->utmost;

    const rn_wide room = units - taken;

    if (sum_at(p, scope, class_number, FACTOR_ONE, room) <= room)
        return FACTOR_ONE;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;

        if (sum_at(p, scope, class_number, middle, room) <= room) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return high;
}

static rn_plan_scope *scope_of(rn_heap_node *node)
{
    return (rn_plan_scope *)(void *)((char *)node - offsetof(rn_plan_scope, node));
}

/* The larger factor first, of equal ones the scope declared first. */
static bool factor_less(const rn_heap_node *a, const rn_heap_node *b)
{
    const rn_plan_scope *const x =
        (const rn_plan_scope *)(const void *)((const char *)a - offsetof(rn_plan_scope, node));
    const rn_plan_scope *const y =
        (const rn_plan_scope *)(const void *)((const char *)b - offsetof(rn_plan_scope, node));

    return x->factor != y->factor ? x->factor > y->factor : x < y;
}

/* A job's interval is known: its use counts as decided wherever it has one. */
static void job_decide(planner *p, rn_plan_job *job, uint64_t factor)
{
    job->effective_us = interval_at(job, factor);
    job->decided = true;
    for (uint32_t i = 0; i < job->use_count; i++) {
        const rn_plan_use *const use = &p->problem.uses[job->first_use + i];
        rn_plan_scope *const scope = &p->problem.scopes[use->scope];

        scope->decided += fine_in(use->amount, scope->budget.horizon_us, job->effective_us);
        scope->stale = true;
    }
}

/* Stretch all jobs of the class in this scope that are not decided. */
static void scope_decide(planner *p, rn_plan_scope *scope, size_t class_number)
{
    for (uint32_t i = scope->first[class_number]; i < scope->first[class_number + 1]; i++) {
        rn_plan_job *const job = &p->problem.jobs[p->problem.by_scope[i].job];

        if (job->decided)
            continue;
        job_decide(p, job, scope->factor);
        if (job->effective_us > job->least_us)
            job->scope = (uint32_t)(scope - p->problem.scopes);
    }
    scope->bound = true;
}

/* Every scope's factor for the class; the class itself no longer counts as sunk. */
static void class_begin(planner *p, size_t class_number)
{
    for (size_t i = 0; i < p->problem.options->scope_count; i++) {
        rn_plan_scope *const scope = &p->problem.scopes[i];

        scope->sunk -= sum_at(p, scope, class_number, p->utmost, scope->sunk);
        scope->factor = factor_of(p, scope, class_number);
        scope->stale = false;
        if (scope->factor == FACTOR_ONE)
            continue;

        const int err = rn_heap_push(&p->heap, &scope->node);

        assert(err == RATION_OK); /* room was made */
        (void)err;
    }
    p->rounds = 0;
}

/* One round: the scope on top is decided, or its factor found anew. */
static void class_round(planner *p, rn_plan_scope *scope, size_t class_number)
{
    assert(p->rounds < p->problem.options->scope_count + p->problem.use_count);
    p->rounds++;
    if (!scope->stale) {
        (void)rn_heap_pop(&p->heap);
        scope_decide(p, scope, class_number);
        return;
    }

    const uint64_t factor = factor_of(p, scope, class_number);

    assert(factor <= scope->factor);
    scope->factor = factor;
    scope->stale = false;
    if (factor == FACTOR_ONE) {
        (void)rn_heap_pop(&p->heap);
    } else {
        rn_heap_moved(&p->heap, &scope->node);
    }
}

static void class_decide(planner *p, size_t class_number)
{
    class_begin(p, class_number);
    for (rn_heap_node *node = rn_heap_top(&p->heap); node != NULL; node = rn_heap_top(&p->heap))
        class_round(p, scope_of(node), class_number);
    for (size_t i = 0; i < p->problem.options->job_count; i++) {
        rn_plan_job *const job = &p->problem.jobs[i];

        if (job->class_number == class_number && !job->decided)
            job_decide(p, job, FACTOR_ONE);
    }
}

/* What is wanted, and what the classes come to at the utmost. Nothing is decided yet. */
static void scopes_begin(planner *p)
{
    const rn_wide all = ~(rn_wide)0;

    for (size_t i = 0; i < p->problem.options->scope_count; i++) {
        rn_plan_scope *const scope = &p->problem.scopes[i];

        rn_heap_node_init(&scope->node);
        scope->critical = sum_at(p, scope, RN_CLASS_CRITICAL, FACTOR_ONE, all);
        scope->wanted = scope->critical;
        for (size_t c = RN_CLASS_CRITICAL + 1; c < RN_CLASSES; c++) {
            scope->wanted += sum_at(p, scope, c, FACTOR_ONE, all);
            scope->sunk += sum_at(p, scope, c, p->utmost, all);
        }
    }
}

static int planner_run(planner *p)
{
    p->utmost = (uint64_t)p->problem.max_stretch << FACTOR_BITS;
    if (rn_heap_reserve(&p->heap, p->problem.options->scope_count) != RATION_OK)
        return RATION_ERR_NOMEM;
    scopes_begin(p);
    for (size_t i = 0; i < p->problem.options->job_count; i++) {
        if (p->problem.jobs[i].class_number == RN_CLASS_CRITICAL)
            job_decide(p, &p->problem.jobs[i], FACTOR_ONE);
    }
    for (size_t c = RN_CLASS_CRITICAL + 1; c < RN_CLASSES; c++)
        class_decide(p, c);
    return RATION_OK;
}

/* When what is left is gone, if jobs and others use so much of it within the horizon, evenly. */
static ration_time exhausted_at(const rn_plan_scope *scope, ration_time now)
{
    const rn_wide left = (rn_wide)(uint64_t)rn_max(0, scope->budget.own);
    const rn_wide others = (rn_wide)(uint64_t)scope->budget.others << FINE_BITS;
    const rn_wide use = scope->decided + others;

    if (scope->decided == 0 || use <= left << FINE_BITS)
        return ration_time_of(RATION_NEVER_US);
    return rn_time_add(now, (int64_t)(((left * (uint64_t)scope->budget.horizon_us) << FINE_BITS) / use));
}

static ration_scope_plan scope_result(const rn_plan_scope *scope, ration_time now)
{
    return (ration_scope_plan){
        .budget = units_of(&scope->budget),
        .horizon_us = scope->budget.horizon_us,
        .others = scope->budget.others,
        .wanted = fine_report(scope->wanted),
        .critical = fine_report(scope->critical),
        .projected = fine_report(scope->decided),
        .feasible = fine_report(scope->decided) <= units_of(&scope->budget),
        .exhausted_at = exhausted_at(scope, now),
    };
}

static ration_use_plan use_result(const planner *p, const rn_plan_use *use)
{
    const int64_t interval_us = p->problem.jobs[use->job].effective_us;
    const int64_t window_us = rn_scope_window(&p->problem.options->scopes[use->scope]);
    const int64_t horizon_us = p->problem.scopes[use->scope].budget.horizon_us;

    return (ration_use_plan){
        .scope = use->scope,
        .per_window = fine_report(fine_in(use->amount, window_us, interval_us)),
        .projected = fine_report(fine_in(use->amount, horizon_us, interval_us)),
    };
}

static ration_job_plan job_result(const rn_plan_job *job, const ration_use_plan *uses)
{
    const rn_wide millionths = (rn_wide)(uint64_t)job->effective_us * RATION_UNIT;
    const bool by_rate = job->scope == RN_NONE && job->effective_us > job->desired_us;

    return (ration_job_plan){
        .desired_us = job->desired_us,
        .effective_us = job->effective_us,
        .stretch = rn_wide_int(rn_wide_div_ceil(millionths, (uint64_t)job->desired_us)),
        .calls = job->calls,
        .scope = job->scope != RN_NONE ? job->scope : RATION_PLAN_NONE,
        .rate = by_rate ? job->rate : RATION_PLAN_NONE,
        .feasible = job->fits_us <= job->effective_us,
        .least_us = job->fits_us,
        .uses = &uses[job->first_use],
        .use_count = job->use_count,
    };
}

/* Write the answer into the box's arena. */
static int box_fill(plan_box *box, const planner *p)
{
    const ration_plan_options *const options = p->problem.options;
    ration_use_plan *const uses = rn_arena_zalloc(&box->arena, p->problem.use_count, sizeof *uses);
    ration_job_plan *const jobs = rn_arena_zalloc(&box->arena, options->job_count, sizeof *jobs);
    ration_scope_plan *const scopes = rn_arena_zalloc(&box->arena, options->scope_count, sizeof *scopes);

    if (uses == NULL || jobs == NULL || scopes == NULL)
        return RATION_ERR_NOMEM;
    box->plan = (ration_plan){.feasible = true,
                              .made_at = options->now,
                              .jobs = jobs,
                              .job_count = options->job_count,
                              .scopes = scopes,
                              .scope_count = options->scope_count};
    for (size_t i = 0; i < p->problem.use_count; i++)
        uses[i] = use_result(p, &p->problem.uses[i]);
    for (size_t i = 0; i < options->job_count; i++) {
        jobs[i] = job_result(&p->problem.jobs[i], uses);
        box->plan.feasible = box->plan.feasible && jobs[i].feasible;
    }
    for (size_t i = 0; i < options->scope_count; i++) {
        scopes[i] = scope_result(&p->problem.scopes[i], options->now);
        box->plan.feasible = box->plan.feasible && scopes[i].feasible;
    }
    return RATION_OK;
}

int ration_plan_new(const ration_plan_options *options, ration_plan **out, ration_fault *fault)
{
    if (options == NULL || out == NULL)
        return RATION_ERR_INVALID;

    const ration_allocator *const mem = options->allocator != NULL ? options->allocator : rn_mem_default();
    planner p = {.rounds = 0};
    rn_arena scratch;
    plan_box *box = NULL;

    rn_arena_init(&scratch, mem);
    rn_heap_init(&p.heap, mem, factor_less);

    int err = rn_plan_problem_init(&p.problem, options, &scratch, fault);

    if (err == RATION_OK)
        err = planner_run(&p);
    if (err == RATION_OK) {
        box = rn_mem_zalloc(mem, 1, sizeof *box);
        err = box == NULL ? RATION_ERR_NOMEM : RATION_OK;
    }
    if (err == RATION_OK) {
        rn_arena_init(&box->arena, mem);
        err = box_fill(box, &p);
    }
    rn_heap_fini(&p.heap);
    rn_arena_fini(&scratch);
    if (err == RATION_OK) {
        *out = &box->plan;
    } else if (box != NULL) {
        ration_plan_free(&box->plan);
    }
    return err;
}

void ration_plan_free(ration_plan *plan)
{
    if (plan == NULL)
        return;

    plan_box *const box = (plan_box *)(void *)plan;
    const ration_allocator *const mem = box->arena.mem;

    rn_arena_fini(&box->arena);
    rn_mem_free(mem, box);
}
