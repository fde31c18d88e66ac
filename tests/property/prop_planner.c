/* SPDX-License-Identifier: MIT */
/*
 * What chapter 4 says of every plan, on small random ones; nothing of the planner's but its answer is used.
 *
 * Of each plan: sums are as reported, and a scope is exceeded only where all of its jobs that may be stretched are at
 * the utmost. Critical jobs keep their intervals, no other runs more often than desired or than its rates allow. A
 * stretched job names one of its scopes; there, lower classes are at the utmost, all of its class are stretched by
 * the same factor or more, and no smaller factor would do.
 *
 * A job's interval E comes from the factors in ((E - 1 ms) / D, E / D], D being as desired. So jobs have one factor in
 * common if the largest of the lower bounds, `low` here, is below the smallest of the upper ones; and with the factor
 * `low` itself the jobs that it belongs to get a millisecond less, the others nothing.
 *
 * Two more: where no job has more than one scope, a plan is what stretching class by class from the lowest up gives,
 * done in the plainest way; and the order of the jobs makes no difference to any.
 */
#include <ration/plan.h>

#include "support/check.h"
#include "support/property.h"

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define STEP RATION_PLAN_STEP_US
#define JOBS 8
#define SCOPES 4
#define USES 3
#define RATES 2

__extension__ typedef __int128 wide;

typedef struct instance {
    ration_plan_options options;
    ration_plan_job jobs[JOBS];
    ration_plan_use uses[JOBS][USES];
    ration_plan_use rate_uses[JOBS][1];
    ration_plan_scope scopes[SCOPES];
    ration_rate rates[RATES];
    int64_t buckets[SCOPES][6];
    int64_t utmost; /* the largest factor */
} instance;

/* What the planner has answered, and what follows from it. */
typedef struct facts {
    choices *c;
    const instance *in;
    const ration_plan *plan;
} facts;

static struct {
    uint64_t plans, feasible, stretched, bound_by_two, by_rate;
} seen;

/* ---- instances ---- */

static void draw_scope(choices *c, instance *in, size_t i)
{
    ration_plan_scope *const scope = &in->scopes[i];
    const int64_t window_us = choose_from(c, 1, 48) * 1800 * SECOND;

    *scope = (ration_plan_scope){.usable = (int64_t)choose_wide(c, 20000) * UNIT};
    scope->reserve = scope->usable / 10 * (int64_t)choose(c, 1);
    scope->end.us = in->options.now.us + window_us;
    if (choose(c, 2) == 0)
        return;
    scope->start.us = in->options.now.us - (int64_t)choose(c, (uint64_t)window_us);
    scope->spent = (int64_t)choose(c, (uint64_t)(scope->usable + scope->usable / 4));
    scope->external = (int64_t)choose_wide(c, 2000) * UNIT;
    scope->has_left = choose(c, 1) != 0;
    scope->left = (int64_t)choose_wide(c, 20000) * UNIT;
    if (choose(c, 3) != 3)
        return;
    scope->rolling_us = window_us;
    scope->timeline = (ration_timeline){.width_us = 60 * SECOND, .units = in->buckets[i], .count = 6};
    scope->timeline.start.us = in->options.now.us - (int64_t)choose(c, (uint64_t)window_us);
    for (size_t b = 0; b < 6; b++)
        in->buckets[i][b] = scope->spent / 6;
}

static void draw_job(choices *c, instance *in, size_t i, size_t most)
{
    ration_plan_job *const job = &in->jobs[i];

    *job = (ration_plan_job){.interval_us = (1 + (int64_t)choose_wide(c, 99999)) * STEP};
    if (choose(c, 9) == 9)
        job->interval_us += (int64_t)choose(c, STEP - 1);
    job->priority = (ration_priority)choose_from(c, RATION_PRIORITY_UNSET, RATION_PRIORITY_LOW);
    job->fan_out = (int64_t)choose_wide(c, 20);
    job->requests = (int64_t)choose_wide(c, 10 * UNIT);
    job->retry_overhead = (ration_ratio){(int32_t)choose(c, 3), (int32_t)choose(c, 7)};
    job->scopes = in->uses[i];
    job->scope_count = in->options.scope_count > 0 ? (size_t)choose(c, most) : 0;
    for (size_t u = 0; u < job->scope_count; u++) {
        in->uses[i][u] = (ration_plan_use){.limit = (size_t)choose(c, in->options.scope_count - 1)};
        in->uses[i][u].charge = choose(c, 3) == 3 ? (int64_t)choose_wide(c, 5 * UNIT) : 0;
        in->uses[i][u].children = (int64_t)choose(c, (uint64_t)job->fan_out);
    }
    if (in->options.rate_count == 0 || choose(c, 3) != 3)
        return;
    job->rates = in->rate_uses[i];
    job->rate_count = 1;
    in->rate_uses[i][0] = (ration_plan_use){.limit = (size_t)choose(c, in->options.rate_count - 1)};
}

static void draw(choices *c, instance *in, size_t most_uses)
{
    static const int64_t utmosts[] = {12, 1, 2, 3, 100};
    const size_t stretch = (size_t)choose(c, 4);

    memset(in, 0, sizeof *in);
    in->options = (ration_plan_options){.now = {INT64_C(1700000000) * SECOND},
                                        .jobs = in->jobs,
                                        .scopes = in->scopes,
                                        .rates = in->rates,
                                        .job_count = (size_t)choose(c, JOBS),
                                        .scope_count = (size_t)choose(c, SCOPES),
                                        .rate_count = (size_t)choose(c, RATES),
                                        .max_stretch = stretch == 0 ? 0 : utmosts[stretch]};
    in->utmost = utmosts[stretch];
    for (size_t i = 0; i < in->options.rate_count; i++)
        in->rates[i] = (ration_rate){(1 + (int64_t)choose_wide(c, 100)) * UNIT, (1 + (int64_t)choose(c, 59)) * SECOND};
    for (size_t i = 0; i < in->options.scope_count; i++)
        draw_scope(c, in, i);
    for (size_t i = 0; i < in->options.job_count; i++)
        draw_job(c, in, i, most_uses);
}

static void tell(choices *c, const instance *in)
{
    for (size_t i = 0; i < in->options.scope_count; i++) {
        const ration_plan_scope *const s = &in->scopes[i];

        NOTE(c,
             "scope %zu: U %" PRId64 " R %" PRId64 " spent %" PRId64 " left %" PRId64 " external %" PRId64
             " elapsed %" PRId64 " to come %" PRId64 " rolling %" PRId64,
             i, s->usable, s->reserve, s->spent, s->has_left ? s->left : -1, s->external,
             in->options.now.us - s->start.us, s->end.us - in->options.now.us, s->rolling_us);
    }
    for (size_t i = 0; i < in->options.job_count; i++) {
        const ration_plan_job *const j = &in->jobs[i];

        NOTE(c, "job %zu: %s every %" PRId64 ", fan-out %" PRId64 ", requests %" PRId64 ", overhead %d/%d", i,
             ration_priority_name(j->priority), j->interval_us, j->fan_out, j->requests, j->retry_overhead.num,
             j->retry_overhead.den);
        for (size_t u = 0; u < j->scope_count; u++) {
            NOTE(c, "    in %zu, charge %" PRId64 ", children %" PRId64, j->scopes[u].limit, j->scopes[u].charge,
                 j->scopes[u].children);
        }
    }
}

/* ---- arithmetic of its own ---- */

static wide ceil_div(wide a, wide b)
{
    return (a + b - 1) / b;
}

static wide amount_of(const ration_plan_job *job, const ration_plan_use *use)
{
    const bool given = job->retry_overhead.den != 0;
    const wide num = given ? job->retry_overhead.num : 1;
    const wide den = given ? job->retry_overhead.den : 20;
    const wide children = use->children != 0 ? use->children : job->fan_out != 0 ? job->fan_out : 1;
    const wide requests = job->requests != 0 ? job->requests : UNIT;

    return ceil_div(ceil_div(requests * children * (den + num), den) * (use->charge != 0 ? use->charge : UNIT), UNIT);
}

static int class_of(const ration_plan_job *job)
{
    return job->priority == RATION_PRIORITY_UNSET ? RATION_PRIORITY_NORMAL : (int)job->priority;
}

static wide round_up(wide us)
{
    return ceil_div(us, STEP) * STEP;
}

/* The shortest interval that the plan may give. */
static wide least_of(const instance *in, const ration_plan_job *job)
{
    wide least = job->interval_us;

    for (size_t i = 0; i < job->rate_count && class_of(job) != RATION_PRIORITY_CRITICAL; i++) {
        const ration_rate rate = in->rates[job->rates[i].limit];
        const wide run = ceil_div(amount_of(job, &job->rates[i]) * rate.per_us, rate.units);

        if (run > least)
            least = round_up(run);
    }
    return least;
}

/* At the utmost. */
static wide widest_of(const instance *in, const ration_plan_job *job)
{
    const wide least = least_of(in, job);
    const wide widest = in->utmost == 1 ? job->interval_us : round_up((wide)job->interval_us * in->utmost);

    return widest > least && class_of(job) != RATION_PRIORITY_CRITICAL ? widest : least;
}

/* What a job uses of a scope within a span, in 65536ths of a micro-unit. */
static wide use_of(const instance *in, size_t job, size_t scope, wide span_us, wide interval_us)
{
    wide sum = 0;

    for (size_t u = 0; u < in->jobs[job].scope_count; u++) {
        const ration_plan_use *const use = &in->jobs[job].scopes[u];

        if (use->limit == scope)
            sum += amount_of(&in->jobs[job], use) * span_us * 65536 / interval_us;
    }
    return sum;
}

static bool has_use(const instance *in, size_t job, size_t scope)
{
    for (size_t u = 0; u < in->jobs[job].scope_count; u++) {
        if (in->jobs[job].scopes[u].limit == scope)
            return true;
    }
    return false;
}

/* ---- what holds of every plan ---- */

static void check_job(const facts *f, size_t i)
{
    const ration_plan_job *const job = &f->in->jobs[i];
    const ration_job_plan *const got = &f->plan->jobs[i];
    const wide least = least_of(f->in, job);

    HOLDS(f->c, got->desired_us == job->interval_us);
    HOLDS(f->c, got->effective_us >= least);
    HOLDS(f->c, got->effective_us <= widest_of(f->in, job));
    HOLDS(f->c, got->effective_us == least || got->effective_us % STEP == 0);
    HOLDS(f->c, (got->effective_us > least) == (got->scope != RATION_PLAN_NONE));
    HOLDS(f->c, got->scope == RATION_PLAN_NONE || has_use(f->in, i, got->scope));
    HOLDS(f->c, got->scope == RATION_PLAN_NONE || got->rate == RATION_PLAN_NONE);
    if (class_of(job) == RATION_PRIORITY_CRITICAL)
        HOLDS(f->c, got->effective_us == job->interval_us);
    HOLDS(f->c, got->stretch == ceil_div((wide)got->effective_us * UNIT, job->interval_us));
    seen.by_rate += got->rate != RATION_PLAN_NONE;
}

static wide scope_sum(const facts *f, size_t scope)
{
    wide sum = 0;

    for (size_t i = 0; i < f->plan->job_count; i++)
        sum += use_of(f->in, i, scope, f->plan->scopes[scope].horizon_us, f->plan->jobs[i].effective_us);
    return sum;
}

static void check_scope(const facts *f, size_t s)
{
    const ration_scope_plan *const got = &f->plan->scopes[s];
    const wide sum = scope_sum(f, s);
    const bool fits = sum <= (wide)got->budget * 65536;

    HOLDS(f->c, got->projected == ceil_div(sum, 65536));
    HOLDS(f->c, got->feasible == fits);
    HOLDS(f->c, (got->exhausted_at.us == RATION_NEVER_US) == fits);
    for (size_t i = 0; i < f->plan->job_count && !fits; i++)
        HOLDS(f->c, !has_use(f->in, i, s) || f->plan->jobs[i].effective_us == widest_of(f->in, &f->in->jobs[i]));
}

/* The jobs of class `number` whose interval comes from scope `s`: a factor in common, that is not too small. */
typedef struct group {
    int number;
    size_t scope;
    wide low_num, low_den; /* above this, and above 1 */
    wide high_num, high_den;
    size_t count;
} group;

static group group_of(const facts *f, int number, size_t scope)
{
    group g = {.number = number, .scope = scope, .low_num = 1, .low_den = 1, .high_num = INT64_MAX, .high_den = 1};

    for (size_t i = 0; i < f->plan->job_count; i++) {
        const ration_job_plan *const job = &f->plan->jobs[i];

        if (class_of(&f->in->jobs[i]) != number || job->scope != scope)
            continue;
        g.count++;
        if ((job->effective_us - STEP) * g.low_den > g.low_num * job->desired_us) {
            g.low_num = job->effective_us - STEP;
            g.low_den = job->desired_us;
        }
        if (job->effective_us * g.high_den < g.high_num * job->desired_us) {
            g.high_num = job->effective_us;
            g.high_den = job->desired_us;
        }
    }
    return g;
}

/* The sum of a scope with its group at the factor `low`: at least one job gets less than it has. */
static wide sum_at_low(const facts *f, const group *g)
{
    wide sum = 0;

    for (size_t i = 0; i < f->plan->job_count; i++) {
        const ration_plan_job *const job = &f->in->jobs[i];
        wide interval = f->plan->jobs[i].effective_us;

        if (class_of(job) == g->number && f->plan->jobs[i].scope == g->scope) {
            interval = g->low_num == g->low_den ? job->interval_us
                                                : round_up(ceil_div((wide)job->interval_us * g->low_num, g->low_den));
            if (interval < least_of(f->in, job))
                interval = least_of(f->in, job);
        }
        sum += use_of(f->in, i, g->scope, f->plan->scopes[g->scope].horizon_us, interval);
    }
    return sum;
}

static void check_group(const facts *f, const group *g)
{
    bool higher = false;

    HOLDS(f->c, g->low_num * g->high_den < g->high_num * g->low_den);
    for (size_t i = 0; i < f->plan->job_count; i++) {
        const ration_plan_job *const job = &f->in->jobs[i];
        const wide interval = f->plan->jobs[i].effective_us;

        if (!has_use(f->in, i, g->scope))
            continue;
        if (class_of(job) > g->number)
            HOLDS(f->c, interval == widest_of(f->in, job));
        if (class_of(job) == g->number)
            HOLDS(f->c, interval * g->low_den > g->low_num * job->interval_us);
        higher = higher || (class_of(job) < g->number && f->plan->jobs[i].scope == g->scope);
    }
    if (!higher)
        HOLDS(f->c, sum_at_low(f, g) > (wide)f->plan->scopes[g->scope].budget * 65536);
}

static void check_groups(const facts *f)
{
    for (size_t s = 0; s < f->plan->scope_count; s++) {
        int classes = 0;

        for (int number = RATION_PRIORITY_HIGH; number <= RATION_PRIORITY_LOW; number++) {
            const group g = group_of(f, number, s);

            if (g.count == 0)
                continue;
            check_group(f, &g);
            classes++;
            seen.stretched++;
        }
        seen.bound_by_two += classes > 1;
    }
}

static ration_plan *plan_of(choices *c, const instance *in)
{
    ration_plan *plan = NULL;

    tell(c, in);
    HOLDS(c, ration_plan_new(&in->options, &plan, NULL) == RATION_OK);
    for (size_t i = 0; i < plan->job_count; i++)
        NOTE(c, "job %zu gets %" PRId64 " from %zd", i, plan->jobs[i].effective_us, (ssize_t)plan->jobs[i].scope);
    for (size_t i = 0; i < plan->scope_count; i++)
        NOTE(c, "scope %zu: %" PRId64 " of %" PRId64, i, plan->scopes[i].projected, plan->scopes[i].budget);
    return plan;
}

static void plans_are_as_chapter_4_says(choices *c, void *context)
{
    static instance in;
    (void)context;

    draw(c, &in, USES);

    ration_plan *const plan = plan_of(c, &in);
    const facts f = {c, &in, plan};
    bool feasible = true;

    for (size_t i = 0; i < plan->job_count; i++) {
        check_job(&f, i);
        feasible = feasible && plan->jobs[i].feasible;
    }
    for (size_t i = 0; i < plan->scope_count; i++) {
        check_scope(&f, i);
        feasible = feasible && plan->scopes[i].feasible;
    }
    check_groups(&f);
    HOLDS(c, plan->feasible == feasible);
    seen.plans++;
    seen.feasible += feasible;
    ration_plan_free(plan);
}

/* ---- one scope a job: from the lowest class up ---- */

static wide interval_with(const instance *in, const ration_plan_job *job, wide factor)
{
    const wide one = (wide)1 << 44;
    const wide least = least_of(in, job);
    const wide us = factor == one ? job->interval_us : round_up(ceil_div((wide)job->interval_us * factor, one));

    return us > least ? us : least;
}

typedef struct ladder {
    const instance *in;
    size_t scope;
    wide horizon_us, budget;
    wide factor[RATION_PRIORITY_LOW + 1];
} ladder;

static bool ladder_fits(const ladder *l)
{
    wide sum = 0;

    for (size_t i = 0; i < l->in->options.job_count; i++) {
        const ration_plan_job *const job = &l->in->jobs[i];

        sum += use_of(l->in, i, l->scope, l->horizon_us, interval_with(l->in, job, l->factor[class_of(job)]));
    }
    return sum <= l->budget * 65536;
}

static void ladder_climb(ladder *l)
{
    for (int number = RATION_PRIORITY_LOW; number > RATION_PRIORITY_CRITICAL && !ladder_fits(l); number--) {
        wide low = l->factor[number];
        wide high = (wide)l->in->utmost << 44;

        l->factor[number] = high;
        while (high - low > 1) {
            l->factor[number] = low + (high - low) / 2;
            if (ladder_fits(l)) {
                high = l->factor[number];
            } else {
                low = l->factor[number];
            }
        }
        l->factor[number] = high;
    }
}

static void one_scope_is_a_ladder(choices *c, void *context)
{
    static instance in;
    (void)context;

    draw(c, &in, 1);

    ration_plan *const plan = plan_of(c, &in);

    for (size_t s = 0; s < plan->scope_count; s++) {
        const wide one = (wide)1 << 44;
        ladder l = {&in, s, plan->scopes[s].horizon_us, plan->scopes[s].budget, {one, one, one, one, one}};

        ladder_climb(&l);
        for (size_t i = 0; i < plan->job_count; i++) {
            const wide want = interval_with(&in, &in.jobs[i], l.factor[class_of(&in.jobs[i])]);

            HOLDS(c, !has_use(&in, i, s) || plan->jobs[i].effective_us == want);
        }
    }
    ration_plan_free(plan);
}

static void the_order_of_jobs_does_not_matter(choices *c, void *context)
{
    static instance in, turned;
    (void)context;

    draw(c, &in, USES);
    turned = in;
    turned.options.jobs = turned.jobs;
    turned.options.scopes = turned.scopes;
    for (size_t i = 0; i < in.options.job_count; i++)
        turned.jobs[i] = in.jobs[in.options.job_count - 1 - i];

    ration_plan *const plan = plan_of(c, &in);
    ration_plan *const other = plan_of(c, &turned);

    for (size_t i = 0; i < plan->job_count; i++)
        HOLDS(c, plan->jobs[i].effective_us == other->jobs[plan->job_count - 1 - i].effective_us);
    for (size_t i = 0; i < plan->scope_count; i++)
        HOLDS(c, plan->scopes[i].projected == other->scopes[i].projected);
    ration_plan_free(plan);
    ration_plan_free(other);
}

static void test_plans(void **state)
{
    (void)state;
    property_check("plans are as chapter 4 says", plans_are_as_chapter_4_says, NULL, 100000);
    if (getenv("PROPERTY_SEED") != NULL)
        return;
    /* That all of it was looked at, often enough. */
    CHECK(seen.feasible * 4 > seen.plans);
    CHECK(seen.feasible * 4 < 3 * seen.plans);
    CHECK(seen.stretched * 2 > seen.plans);
    CHECK(seen.bound_by_two * 20 > seen.plans);
    CHECK(seen.by_rate * 20 > seen.plans);
}

static void test_ladder(void **state)
{
    (void)state;
    property_check("one scope a job: from the lowest class up", one_scope_is_a_ladder, NULL, 10000);
}

static void test_order(void **state)
{
    (void)state;
    property_check("the order of jobs does not matter", the_order_of_jobs_does_not_matter, NULL, 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_ladder),
        cmocka_unit_test(test_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
