/* SPDX-License-Identifier: MIT */
/*
 * Which limits bind which jobs at which keys, what runs and inventories teach, when the next run is, and what of a plan
 * would have to change.
 */
#include "support/config.h"
#include "support/failalloc.h"

#include "base/mem.h"
#include "base/text.h"
#include <ration/state.h>

#include "jobs/jobs.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};

/* Retries count nothing, reserves nothing; U is the maximum. */
#define HEAD "settings: { budget: { retryOverhead: 0, retryReserve: 0 } }\n"
#define PROVIDER                                                                                                       \
    HEAD "providers:\n- name: p\n  baseUrl: http://h\n  endpoints: [/a/{x}/**, /a/{x}/b/{y}, /c]\n  limits:\n"
#define ACCOUNTS "accounts: [{ name: me, provider: p }, { name: you, provider: p, budget: { share: 50% } }]\njobs:\n"
#define DAILY "kind: quota, window: { period: day }, "

static const struct {
    const char *why;
    const char *config;
    const char *want; /* jobs: effective milliseconds, what binds; then scopes: budget, wanted */
} rows[] = {
    {"no jobs", PROVIDER "  - { name: q, " DAILY "max: 10 }\n" ACCOUNTS " []\n", ""},
    {"a limit of the provider counts for all",
     PROVIDER "  - { name: q, " DAILY "max: 2880 }\n" ACCOUNTS
              "- { name: i, account: me, endpoint: /c, interval: 60s }\n"
              "- { name: j, account: you, endpoint: /d, interval: 60s }\n",
     /* You have half of it, so it is half for both: 1440, of which 2880 are wanted. */
     "i 120000 q here; j 120000 q here; q here 1440/2880; "},
    {"one of each account",
     PROVIDER "  - { name: q, " DAILY "max: 1440, scope: { by: [account] } }\n" ACCOUNTS
              "- { name: i, account: me, endpoint: /c, interval: 60s }\n"
              "- { name: j, account: you, endpoint: /c, interval: 60s }\n",
     "i 60000 -; j 120000 q you; q me 1440/1440; q you 720/1440; "},
    {"an account has another maximum",
     PROVIDER "  - { name: q, " DAILY "max: 1440, scope: { by: [account] } }\n"
              "accounts: [{ name: me, provider: p, limits: [{ name: q, max: 720 }] }]\njobs:\n"
              "- { name: i, account: me, endpoint: /c, interval: 60s }\n",
     "i 120000 q me; q me 720/1440; "},
    {"by method and path, as calls are matched",
     PROVIDER "  - { name: q, " DAILY "max: 720, appliesTo: { methods: [post], endpoints: [\"/a/**\"] } }\n" ACCOUNTS
              "- { name: get, account: me, endpoint: GET /a/1, interval: 60s }\n"
              "- { name: post, account: me, endpoint: POST /a/1, interval: 60s }\n"
              "- { name: other, account: me, endpoint: POST /c, interval: 60s }\n",
     "get 60000 -; post 240000 q here; other 60000 -; q here 360/1440; "},
    {"only with a variable",
     PROVIDER "  - { name: q, " DAILY "max: 720, appliesTo: { requestsWithVar: y } }\n" ACCOUNTS
              "- { name: i, account: me, endpoint: \"/a/1/b/2\", interval: 60s }\n"
              "- { name: j, account: me, endpoint: \"/a/1/c\", interval: 60s }\n",
     "i 240000 q here; j 60000 -; q here 360/1440; "},
    {"of a tenant",
     PROVIDER "  - { name: q, " DAILY "max: 720, scope: { by: [account, tenant] } }\n" ACCOUNTS
              "- { name: i, account: me, endpoint: /c, interval: 60s, tenant: t/1 }\n"
              "- { name: j, account: me, endpoint: /c, interval: 60s }\n",
     "i 120000 q me/t%2F1; j 60000 -; q me/t%2F1 720/1440; "},
    {"what only watches binds nobody",
     PROVIDER "  - { name: q, " DAILY
              "max: 1, enforce: shadow }\n  - { name: r, kind: rate, rate: 1/d, enforce: shadow "
              "}\n" ACCOUNTS "- { name: i, account: me, endpoint: /c, interval: 60s }\n",
     "i 60000 -; "},
    {"nor what counts calls in flight",
     PROVIDER "  - { name: c, kind: concurrency, max: 1 }\n" ACCOUNTS
              "- { name: i, account: me, endpoint: /c, interval: 1ms }\n",
     "i 1 -; "},
    {"a maximum that is to be learned",
     PROVIDER "  - { name: q, " DAILY "max: auto, initialMax: 720, sync: { limitHeader: X } }\n" ACCOUNTS
              "- { name: i, account: me, endpoint: /c, interval: 60s }\n",
     "i 240000 q here; q here 360/1440; "},
    {"a rolling window",
     PROVIDER "  - { name: q, kind: quota, window: { rolling: 1h }, max: 122 }\n" ACCOUNTS
              "- { name: i, account: me, endpoint: /c, interval: 60s }\n",
     /* U = 61, and a charge counts for 62 minutes: 1 h and two buckets of a minute. 62 of 61: 60 s * 62 / 61. */
     "i 60984 q here; q here 61/62; "},
    {"by cost: of the job, its endpoint, the provider",
     HEAD
     "providers:\n- name: p\n  baseUrl: http://h\n  cost: 2\n  endpoints: [{ path: /a, cost: 3 }, { path: /f, cost: 0 "
     "}, /c]\n  limits: [{ name: q, " DAILY "max: 10000, counts: cost }]\n"
     "accounts: [{ name: me, provider: p }]\njobs:\n"
     "- { name: own, account: me, endpoint: /a, interval: 60s, cost: 0.5 }\n"
     "- { name: path, account: me, endpoint: /a, interval: 60s }\n"
     "- { name: all, account: me, endpoint: /c, interval: 60s }\n"
     "- { name: free, account: me, endpoint: /f, interval: 1ms }\n",
     /* 1440 * (0.5 + 3 + 2) */
     "own 60000 -; path 60000 -; all 60000 -; free 1 -; q here 10000/7920; "},
    {"children at keys of their own",
     PROVIDER "  - { name: q, " DAILY "max: 1440, scope: { by: [\"var:x\"] } }\n" ACCOUNTS
              "- { name: i, account: me, endpoint: \"/a/{ex}/d\", interval: 30s, fanOut: { name: n, estimate: 9 } }\n"
              "- { name: j, account: me, endpoint: \"/a/{x}/e\", interval: 30s }\n",
     "i 240000 q x={x}; j 240000 q x={x}; q x={x} 720/5760; "},
    {"of two open variables one makes no key of its own: all children may have the same x",
     PROVIDER
     "  - { name: q, " DAILY "max: 2880, scope: { by: [\"var:x\"] } }\n" ACCOUNTS
     "- { name: i, account: me, endpoint: \"/a/{x}/b/{y}\", interval: 60s, fanOut: { name: n, estimate: 3 } }\n",
     "i 180000 q x={x}; q x={x} 1440/4320; "},
    {"but with both it is",
     PROVIDER
     "  - { name: q, " DAILY "max: 2880, scope: { by: [\"var:y\", \"var:x\"] } }\n" ACCOUNTS
     "- { name: i, account: me, endpoint: \"/a/{x}/b/{y}\", interval: 60s, fanOut: { name: n, estimate: 3 } }\n",
     "i 60000 -; q y={y}/x={x} 1440/1440; "},
    {"or when the other is said",
     PROVIDER "  - { name: q, " DAILY "max: 2880, scope: { by: [\"var:x\"] } }\n" ACCOUNTS
              "- { name: i, account: me, endpoint: \"/a/{x}/b/{y}\", interval: 60s, vars: { y: 7 }, fanOut: { name: n, "
              "estimate: 3 } }\n",
     "i 60000 -; q x={x} 1440/1440; "},
    {"a child meets the job that says its variable",
     PROVIDER "  - { name: q, " DAILY "max: 2880, scope: { by: [account, \"var:x\"] } }\n" ACCOUNTS
              "- { name: any, account: me, endpoint: \"/a/{x}/d\", interval: 60s, fanOut: { name: n, estimate: 3 } }\n"
              "- { name: seven, account: me, endpoint: \"/a/{x}/d\", vars: { x: 7 }, interval: 30s }\n"
              "- { name: eight, account: me, endpoint: \"/a/8/d\", interval: 60s }\n"
              "- { name: yours, account: you, endpoint: \"/a/7/d\", interval: 60s }\n",
     "any 90000 q me/x=7; seven 45000 q me/x=7; eight 60000 -; yours 60000 -; q me/x={x} 2880/1440; q me/x=7 "
     "2880/4320; "
     "q me/x=8 2880/2880; q you/x=7 1440/1440; "},
    {"rates: the slowest that applies",
     PROVIDER "  - { name: r, kind: rate, rate: 1/m }\n  - { name: s, kind: rate, rate: 1/s }\n" ACCOUNTS
              "- { name: i, account: me, endpoint: /c, interval: 60s, estimate: { pagesPerRun: 2.5 } }\n",
     "i 150000 r here; "},
};

static void bound_write(const rn_jobs *jobs, const ration_job_plan *plan, rn_builder *b)
{
    const rn_scope_name *name = plan->scope != RATION_PLAN_NONE  ? rn_jobs_scope(jobs, plan->scope)
                                : plan->rate != RATION_PLAN_NONE ? rn_jobs_rate(jobs, plan->rate)
                                                                 : NULL;

    rn_builder_str(b, name != NULL ? name->limit : "-");
    if (name != NULL) {
        rn_builder_char(b, ' ');
        rn_builder_str(b, name->key);
    }
}

static void plan_text(const rn_jobs *jobs, rn_builder *b)
{
    const ration_plan *plan = rn_jobs_planned(jobs);

    for (size_t i = 0; i < plan->job_count; i++) {
        rn_builder_str(b, rn_jobs_at(jobs, i)->name);
        rn_builder_char(b, ' ');
        rn_builder_int(b, plan->jobs[i].effective_us / 1000);
        rn_builder_char(b, ' ');
        bound_write(jobs, &plan->jobs[i], b);
        rn_builder_str(b, "; ");
    }
    for (size_t i = 0; i < plan->scope_count; i++) {
        const rn_scope_name *name = rn_jobs_scope(jobs, i);

        rn_builder_str(b, name->limit);
        rn_builder_char(b, ' ');
        rn_builder_str(b, name->key);
        rn_builder_char(b, ' ');
        rn_builder_micro(b, plan->scopes[i].budget);
        rn_builder_char(b, '/');
        rn_builder_micro(b, plan->scopes[i].wanted);
        rn_builder_str(b, "; ");
    }
}

static void plan_at(rn_jobs *jobs, ration_time now, rn_decider *decider)
{
    ration_fault fault = {"", ""};
    const int err = rn_jobs_plan(jobs, now, decider, NULL, NULL, &fault);

    CHECK_STR(fault.text, "");
    CHECK_EQ(err, RATION_OK);
}

static void each_limit_binds_whom_it_binds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_config *config;
        rn_jobs *jobs = NULL;
        char text[2048];
        rn_builder b;

        CHECK_ROW(rows[i].why);
        config = config_of(rows[i].config, &plain);
        CHECK_EQ(rn_jobs_new(config, &jobs), RATION_OK);
        plan_at(jobs, ration_time_of(0), NULL);
        rn_builder_init(&b, text, sizeof text);
        plan_text(jobs, &b);
        CHECK_STR(text, rows[i].want);
        rn_jobs_free(jobs);
        ration_config_free(config);
    }
}

/* A config with its jobs. */
typedef struct house {
    ration_config *config;
    rn_jobs *jobs;
} house;

static house house_of(const char *text)
{
    house h = {.config = config_of(text, &plain)};

    CHECK_EQ(rn_jobs_new(h.config, &h.jobs), RATION_OK);
    return h;
}

static void house_end(house *h)
{
    rn_jobs_free(h->jobs);
    ration_config_free(h->config);
}

#define FANNED                                                                                                         \
    PROVIDER "  - { name: q, " DAILY "max: 100000, scope: { by: [account] } }\n" ACCOUNTS                              \
             "- { name: i, account: me, endpoint: \"/a/{x}/d\", interval: 60s, fanOut: { name: n, estimate: 3 }, "     \
             "estimate: { pagesPerRun: 2 } }\n"                                                                        \
             "- { name: j, account: me, endpoint: \"/a/{x}/e\", interval: 60s, fanOut: { name: n, estimate: 5 } }\n"   \
             "- { name: k, account: me, endpoint: \"/c\", interval: 60s }\n"

/* Calls of a run, in millionths. */
static int64_t calls_of(house *h, size_t index)
{
    plan_at(h->jobs, ration_time_of(0), NULL);
    return rn_jobs_planned(h->jobs)->jobs[index].calls;
}

static void runs_teach_what_a_run_takes(void **state)
{
    const ration_run run = {.requests = 12, .retries = 3, .fan_out = 4};
    const ration_run unsaid = {.requests = 40};
    const ration_run *runs = NULL;
    house h = house_of(FANNED);
    bool replan = false;

    (void)state;
    CHECK_EQ(calls_of(&h, 0), 6 * RATION_UNIT);
    CHECK_EQ(calls_of(&h, 1), 5 * RATION_UNIT);

    /* 12 of 4 children are 3 each, with a quarter more: 4 * 3.75. The other job has as many children now. */
    CHECK_EQ(rn_jobs_ran(h.jobs, 0, &run, &replan), RATION_OK);
    CHECK(replan);
    CHECK_EQ(calls_of(&h, 0), 15 * RATION_UNIT);
    CHECK_EQ(calls_of(&h, 1), 4 * RATION_UNIT);
    CHECK_EQ(rn_jobs_ran(h.jobs, 0, &run, &replan), RATION_OK);
    CHECK(!replan);
    CHECK_EQ(rn_jobs_ran(h.jobs, 0, &run, NULL), RATION_OK);

    /* Not told how many children it had: as many as there are, so 10 of each; a job without children has one. */
    CHECK_EQ(rn_jobs_ran(h.jobs, 1, &unsaid, &replan), RATION_OK);
    CHECK(!replan);
    CHECK_EQ(rn_jobs_runs(h.jobs, 1, &runs), 1);
    CHECK_EQ(runs[0].fan_out, 4);
    CHECK_EQ(rn_jobs_ran(h.jobs, 2, &run, &replan), RATION_OK);
    CHECK(!replan);
    CHECK_EQ(rn_jobs_runs(h.jobs, 2, &runs), 1);
    CHECK_EQ(runs[0].fan_out, 1);
    CHECK_EQ(calls_of(&h, 1), 40 * RATION_UNIT);
    CHECK_EQ(calls_of(&h, 2), 15 * RATION_UNIT);

    CHECK_EQ(rn_jobs_inventory(h.jobs, ration_text_of("n"), 2), RATION_OK);
    CHECK_EQ(calls_of(&h, 1), 20 * RATION_UNIT);
    CHECK_EQ(rn_jobs_runs(h.jobs, 3, &runs), 0);
    house_end(&h);
}

static void the_last_twenty_runs_count(void **state)
{
    const ration_run *runs = NULL;
    house h = house_of(FANNED);

    (void)state;
    for (int64_t i = 1; i <= 25; i++) {
        const ration_run run = {.requests = i};

        CHECK_EQ(rn_jobs_ran(h.jobs, 2, &run, NULL), RATION_OK);
    }
    CHECK_EQ(rn_jobs_runs(h.jobs, 2, &runs), 20);
    CHECK_EQ(runs[0].requests, 6);
    CHECK_EQ(runs[18].requests, 24);
    CHECK_EQ(runs[19].requests, 25);
    CHECK_EQ(calls_of(&h, 2), 15500000); /* the median of 6 to 25 */
    house_end(&h);
}

static void numbers_out_of_range_change_nothing(void **state)
{
    static const struct {
        const char *why;
        size_t index;
        ration_run run;
    } bad[] = {
        {"no such job", 3, {.requests = 1}},
        {"requests below 0", 0, {.requests = -1}},
        {"retries below 0", 0, {.retries = -1}},
        {"children below 0", 0, {.fan_out = -1}},
        {"more children than there can be", 0, {.fan_out = 1000000001}},
        {"more requests than can be counted", 0, {.requests = RATION_UNITS_MAX / RATION_UNIT + 1}},
        {"more retries", 0, {.retries = INT64_MAX}},
    };
    const ration_run *runs = NULL;
    house h = house_of(FANNED);
    bool replan = true;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_ROW(bad[i].why);
        CHECK_EQ(rn_jobs_ran(h.jobs, bad[i].index, &bad[i].run, &replan), RATION_ERR_INVALID);
    }
    CHECK_EQ(rn_jobs_runs(h.jobs, 0, &runs), 0);
    CHECK_EQ(rn_jobs_inventory(h.jobs, ration_text_of("m"), 1), RATION_ERR_UNKNOWN);
    CHECK_EQ(rn_jobs_inventory(h.jobs, ration_text_of("n"), -1), RATION_ERR_INVALID);
    CHECK_EQ(rn_jobs_inventory(h.jobs, ration_text_of("n"), 1000000001), RATION_ERR_INVALID);
    CHECK_EQ(calls_of(&h, 0), 6 * RATION_UNIT);
    CHECK(rn_jobs_at(h.jobs, 3) == NULL);
    CHECK(rn_jobs_scope(h.jobs, 1) == NULL && rn_jobs_rate(h.jobs, 0) == NULL);
    CHECK_EQ(rn_jobs_find(h.jobs, ration_text_of("j")), 1);
    CHECK_EQ(rn_jobs_find(h.jobs, ration_text_of("jj")), SIZE_MAX);
    CHECK_EQ(rn_jobs_find(h.jobs, ration_text_of(NULL)), SIZE_MAX);
    house_end(&h);
}

/* What is learned may be absurd; a plan is made all the same. What the config says is a fault of the config. */
static void no_run_can_stop_the_planning(void **state)
{
    const ration_run most = {.requests = RATION_UNITS_MAX / RATION_UNIT, .retries = RATION_UNITS_MAX / RATION_UNIT};
    ration_fault fault = {"", ""};
    house h = house_of(FANNED);

    (void)state;
    CHECK_EQ(rn_jobs_ran(h.jobs, 0, &most, NULL), RATION_OK);
    CHECK_EQ(rn_jobs_inventory(h.jobs, ration_text_of("n"), 1000000000), RATION_OK);
    plan_at(h.jobs, ration_time_of(0), NULL);
    CHECK(!rn_jobs_planned(h.jobs)->feasible);
    house_end(&h);

    h = house_of(PROVIDER "  - { name: q, " DAILY "max: 1, counts: cost }\n" ACCOUNTS
                          "- { name: i, account: me, endpoint: /c, interval: 60s }\n"
                          "- { name: j, account: me, endpoint: /c, interval: 60s, cost: 9007199254, estimate: { "
                          "pagesPerRun: 2 } }\n");
    CHECK_EQ(rn_jobs_plan(h.jobs, ration_time_of(0), NULL, NULL, NULL, &fault), RATION_ERR_CONFIG);
    CHECK_STR(fault.path, "jobs[1]");
    CHECK_STR(fault.text, "a run uses more than 9007199254.740992 units");
    CHECK(rn_jobs_planned(h.jobs) == NULL);
    CHECK_EQ(rn_jobs_plan(h.jobs, ration_time_of(0), NULL, NULL, NULL, NULL), RATION_ERR_CONFIG);
    house_end(&h);
}

static void an_inventory_of_nothing_is_nothing_to_do(void **state)
{
    house h = house_of(FANNED);

    (void)state;
    CHECK_EQ(rn_jobs_inventory(h.jobs, ration_text_of("n"), 0), RATION_OK);
    plan_at(h.jobs, ration_time_of(0), NULL);
    CHECK_EQ(rn_jobs_planned(h.jobs)->jobs[0].use_count, 0);
    CHECK_EQ(rn_jobs_planned(h.jobs)->scopes[0].wanted, 1440 * RATION_UNIT);
    house_end(&h);
}

static void the_next_run_is_one_interval_after_the_last(void **state)
{
    house h = house_of(FANNED);
    const int64_t t = 1000 * SECOND;

    (void)state;
    CHECK_EQ(rn_jobs_next_run(h.jobs, 0, ration_time_of(t)).us, t); /* nothing is planned */
    CHECK_EQ(rn_jobs_next_run(h.jobs, 3, ration_time_of(t)).us, RATION_NEVER_US);
    plan_at(h.jobs, ration_time_of(t), NULL);

    /* Nobody has run it: at the plan, and every interval from there. */
    CHECK_EQ(rn_jobs_next_run(h.jobs, 0, ration_time_of(t - 1)).us, t - 1);
    CHECK_EQ(rn_jobs_next_run(h.jobs, 0, ration_time_of(t)).us, t);
    CHECK_EQ(rn_jobs_next_run(h.jobs, 0, ration_time_of(t + 1)).us, t + 60 * SECOND);
    CHECK_EQ(rn_jobs_next_run(h.jobs, 0, ration_time_of(t + 60 * SECOND)).us, t + 60 * SECOND);
    CHECK_EQ(rn_jobs_next_run(h.jobs, 0, ration_time_of(t + 60 * SECOND + 1)).us, t + 120 * SECOND);

    /* A later plan is not where it counts from. */
    plan_at(h.jobs, ration_time_of(t + 7 * SECOND), NULL);
    CHECK_EQ(rn_jobs_next_run(h.jobs, 0, ration_time_of(t + 8 * SECOND)).us, t + 60 * SECOND);

    rn_jobs_begins(h.jobs, 0, ration_time_of(t + 5 * SECOND));
    rn_jobs_begins(h.jobs, 0, ration_time_of(t + 4 * SECOND)); /* time does not run back */
    rn_jobs_begins(h.jobs, 9, ration_time_of(t));
    CHECK_EQ(rn_jobs_next_run(h.jobs, 0, ration_time_of(t + 6 * SECOND)).us, t + 65 * SECOND);
    CHECK_EQ(rn_jobs_next_run(h.jobs, 0, ration_time_of(t + 65 * SECOND)).us, t + 65 * SECOND);
    CHECK_EQ(rn_jobs_next_run(h.jobs, 0, ration_time_of(t + 66 * SECOND)).us, t + 66 * SECOND); /* late: at once */
    CHECK_EQ(rn_jobs_next_run(h.jobs, 1, ration_time_of(t + 6 * SECOND)).us, t + 60 * SECOND);
    house_end(&h);
}

static void begun_before_any_plan(void **state)
{
    house h = house_of(FANNED);

    (void)state;
    rn_jobs_begins(h.jobs, 0, ration_time_of(SECOND));
    CHECK_EQ(rn_jobs_next_run(h.jobs, 0, ration_time_of(2 * SECOND)).us, 61 * SECOND);
    house_end(&h);
}

static void count_changes(void *ctx, const rn_job_change *change)
{
    int *count = ctx;

    (void)change;
    ++*count;
}

/* After a reload: what was learned of jobs that are still the same. */
static void jobs_of_another_config_take_over(void **state)
{
    const ration_run run = {.requests = 12, .fan_out = 4};
    const ration_run *runs = NULL;
    ration_fault fault = {"", ""};
    int changes = 0;
    house h = house_of(FANNED);
    house other =
        house_of(PROVIDER "  - { name: q, " DAILY "max: 100000, scope: { by: [account] } }\n" ACCOUNTS
                          "- { name: new, account: me, endpoint: /c, interval: 60s, fanOut: { name: m } }\n"
                          "- { name: i, account: me, endpoint: \"/a/{x}/d\", interval: 60s, fanOut: { name: n } }\n"
                          "- { name: k, account: me, endpoint: \"/c/d\", interval: 60s }\n"
                          "- { name: j, account: you, endpoint: \"/a/{x}/e\", interval: 60s }\n");

    (void)state;
    for (size_t i = 0; i < 3; i++)
        CHECK_EQ(rn_jobs_ran(h.jobs, i, &run, NULL), RATION_OK);
    plan_at(h.jobs, ration_time_of(SECOND), NULL);
    rn_jobs_begins(h.jobs, 0, ration_time_of(2 * SECOND));
    rn_jobs_adopt(other.jobs, h.jobs);
    CHECK_EQ(rn_jobs_runs(other.jobs, 0, &runs), 0);
    CHECK_EQ(rn_jobs_runs(other.jobs, 1, &runs), 1);
    CHECK_EQ(runs[0].requests, 12);
    CHECK_EQ(rn_jobs_runs(other.jobs, 2, &runs), 0); /* another path */
    CHECK_EQ(rn_jobs_runs(other.jobs, 3, &runs), 0); /* another account */
    CHECK_EQ(rn_jobs_next_run(other.jobs, 1, ration_time_of(3 * SECOND)).us, 62 * SECOND);

    CHECK_EQ(rn_jobs_plan(other.jobs, ration_time_of(3 * SECOND), NULL, &changes, count_changes, &fault), RATION_OK);
    CHECK_EQ(changes, 3); /* all but `i` are new */
    CHECK_EQ(rn_jobs_planned(other.jobs)->jobs[1].calls, 12 * RATION_UNIT);
    house_end(&other);
    house_end(&h);
}

/* Calls through an engine, one after the other. */
static void spend(ration_engine *engine, ration_time at, const char *path, int count)
{
    ration_completion completion = RATION_COMPLETION_INIT;

    for (int i = 0; i < count; i++) {
        ration_request request = RATION_REQUEST_INIT;
        ration_decision decision;

        request.account = ration_text_of("me");
        request.path = ration_text_of(path);
        CHECK_EQ(ration_engine_submit(engine, at, &request, &decision), RATION_OK);
        CHECK_EQ(decision.result, RATION_GRANTED);
        CHECK_EQ(ration_engine_release(engine, at, decision.lease, &completion), RATION_OK);
    }
}

static ration_engine *engine_of(const house *h, rn_engine_decider *decider)
{
    const ration_engine_options options = {.rules = ration_config_rules(h->config)};
    ration_fault fault = {"", ""};
    ration_engine *engine = NULL;

    CHECK_EQ(ration_engine_new(&options, ration_time_of(0), &engine, &fault), RATION_OK);
    (void)rn_engine_decider_init(decider, engine);
    return engine;
}

/* Of all counters of the children the tightest; a job that names its variable has its own, and a new one nothing
 * spent. */
static void counters_stand_for_their_keys(void **state)
{
    rn_engine_decider decider;
    char text[1024];
    rn_builder b;
    house h = house_of(PROVIDER
                       "  - { name: q, " DAILY "max: 200, scope: { by: [\"var:x\"] } }\n"
                       "  - { name: w, kind: quota, max: 200, window: { rolling: 24h }, scope: { by: [\"var:x\"] } }\n"
                       "  - { name: s, kind: quota, max: 1, enforce: shadow, window: { period: day } }\n"
                       "accounts: [{ name: me, provider: p }]\njobs:\n"
                       "- { name: i, account: me, endpoint: \"/a/{x}/d\", interval: 24h, fanOut: { name: n } }\n"
                       "- { name: j, account: me, endpoint: \"/a/9/d\", interval: 24h }\n"
                       "- { name: k, account: me, endpoint: \"/a/8/d\", interval: 24h }\n");
    ration_engine *engine = engine_of(&h, &decider);

    (void)state;
    spend(engine, ration_time_of(0), "/a/1/d", 10);
    spend(engine, ration_time_of(0), "/a/2/d", 30);
    spend(engine, ration_time_of(0), "/a/3/d", 20);
    spend(engine, ration_time_of(0), "/a/8/d", 5);
    plan_at(h.jobs, ration_time_of(0), &decider.base);
    rn_builder_init(&b, text, sizeof text);
    plan_text(h.jobs, &b);

    /* What was spent now leaves a rolling window after 24 h and 2 minutes: until then there are 170. */
    CHECK_STR(
        text,
        "i 86400000 -; j 86400000 -; k 86400000 -; "
        "q x={x} 170/1; w x={x} 170/1.001389; q x=9 200/2; w x=9 200/2.002778; q x=8 195/2; w x=8 195/2.002778; ");
    house_end(&h);
    ration_engine_free(engine);
}

/* At noon half a day is left, of a counter and where there is none. */
static void a_window_in_the_middle(void **state)
{
    rn_engine_decider decider;
    char text[1024];
    rn_builder b;
    house h = house_of(PROVIDER "  - { name: q, " DAILY "max: 200, scope: { by: [\"var:x\"] } }\n"
                                "accounts: [{ name: me, provider: p }]\njobs:\n"
                                "- { name: i, account: me, endpoint: \"/a/1/d\", interval: 1h }\n"
                                "- { name: j, account: me, endpoint: \"/a/2/d\", interval: 1h }\n");
    ration_engine *engine = engine_of(&h, &decider);

    (void)state;
    spend(engine, ration_time_of(HOUR), "/a/1/d", 10);
    plan_at(h.jobs, ration_time_of(12 * HOUR), &decider.base);
    rn_builder_init(&b, text, sizeof text);
    plan_text(h.jobs, &b);
    CHECK_STR(text, "i 3600000 -; j 3600000 -; q x=1 190/12; q x=2 200/12; ");

    /* Without a decider the window is whole. */
    plan_at(h.jobs, ration_time_of(12 * HOUR), NULL);
    rn_builder_init(&b, text, sizeof text);
    plan_text(h.jobs, &b);
    CHECK_STR(text, "i 3600000 -; j 3600000 -; q x=1 200/24; q x=2 200/24; ");

    /* The engine's clock is ahead. */
    plan_at(h.jobs, ration_time_of(HOUR), &decider.base);
    rn_builder_init(&b, text, sizeof text);
    plan_text(h.jobs, &b);
    CHECK_STR(text, "i 3600000 -; j 3600000 -; q x=1 190/23; q x=2 200/23; ");

    /* By more than what is left of the day: what it knows of is the day after. */
    spend(engine, ration_time_of(DAY + HOUR), "/a/1/d", 20);
    plan_at(h.jobs, ration_time_of(12 * HOUR), &decider.base);
    rn_builder_init(&b, text, sizeof text);
    plan_text(h.jobs, &b);
    CHECK_STR(text, "i 3600000 -; j 3600000 -; q x=1 180/36; q x=2 200/36; ");
    house_end(&h);
    ration_engine_free(engine);
}

/* What an engine has been given to keep counts in the first plan, before anybody has called. */
static void what_was_kept_counts_at_once(void **state)
{
    const ration_record record = {
        .type = RATION_RECORD_QUOTA,
        .provider = ration_text_of("p"),
        .limit = ration_text_of("q"),
        .key = ration_text_of("me"),
        .at = {11 * HOUR},
        .u.quota = {.window_end = {24 * HOUR}, .used = 150 * RATION_UNIT, .max = RATION_UNSET, .mark = RATION_UNSET},
    };
    ration_record records[] = {record, record};
    const ration_state kept = {.records = records, .count = 2};
    rn_engine_decider decider;
    ration_totals totals;
    char text[1024];
    rn_builder b;
    house h = house_of(PROVIDER "  - { name: q, " DAILY "max: 200, scope: { by: [account] } }\n  - { name: w, " DAILY
                                "max: 200, scope: { by: [\"var:x\"] } }\n"
                                "accounts: [{ name: me, provider: p }]\njobs:\n"
                                "- { name: i, account: me, endpoint: \"/a/{x}/d\", interval: 1h }\n"
                                "- { name: j, account: me, endpoint: \"/a/7/d\", interval: 1h }\n");
    ration_engine *engine = engine_of(&h, &decider);

    (void)state;
    records[1].limit = ration_text_of("w");
    records[1].key = ration_text_of("x=7");
    CHECK_EQ(ration_engine_load(engine, ration_time_of(12 * HOUR), &kept, NULL), RATION_OK);
    plan_at(h.jobs, ration_time_of(12 * HOUR), &decider.base);
    rn_builder_init(&b, text, sizeof text);
    plan_text(h.jobs, &b);
    CHECK_STR(text, "i 3600000 -; j 3600000 -; q me 50/24; w x={x} 50/12; w x=7 50/24; ");
    ration_engine_totals(engine, &totals);
    CHECK_EQ(totals.submitted, 0);
    house_end(&h);
    ration_engine_free(engine);
}

static void memory_that_runs_out(void **state)
{
    failalloc fail = {.failed = true};
    uint64_t i = 0;

    (void)state;
    for (; fail.failed; i++) {
        ration_config_options options = plain;
        ration_config_faults faults = {NULL, 0, NULL};
        ration_config *config = NULL;
        rn_jobs *jobs = NULL;
        ration_fault fault = {"", ""};

        failalloc_init(&fail, UINT64_MAX);
        options.allocator = &fail.allocator;
        CHECK_EQ(ration_config_parse(ration_text_of(FANNED), "f", &options, &config, &faults), RATION_OK);
        fail.countdown = i;

        int err = rn_jobs_new(config, &jobs);

        if (err == RATION_OK)
            err = rn_jobs_plan(jobs, ration_time_of(0), NULL, NULL, NULL, &fault);
        if (err == RATION_OK)
            err = rn_jobs_faults(jobs, NULL, NULL);
        CHECK_EQ(err, fail.failed ? RATION_ERR_NOMEM : RATION_OK);
        rn_jobs_free(jobs);
        ration_config_free(config);
        CHECK_EQ(fail.live, 0);
    }
    CHECK(i > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_limit_binds_whom_it_binds),
        cmocka_unit_test(runs_teach_what_a_run_takes),
        cmocka_unit_test(the_last_twenty_runs_count),
        cmocka_unit_test(numbers_out_of_range_change_nothing),
        cmocka_unit_test(no_run_can_stop_the_planning),
        cmocka_unit_test(an_inventory_of_nothing_is_nothing_to_do),
        cmocka_unit_test(the_next_run_is_one_interval_after_the_last),
        cmocka_unit_test(begun_before_any_plan),
        cmocka_unit_test(jobs_of_another_config_take_over),
        cmocka_unit_test(counters_stand_for_their_keys),
        cmocka_unit_test(a_window_in_the_middle),
        cmocka_unit_test(what_was_kept_counts_at_once),
        cmocka_unit_test(memory_that_runs_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
