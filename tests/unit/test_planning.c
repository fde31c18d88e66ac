/* SPDX-License-Identifier: MIT */
/*
 * A planning between a decider that is a script and whoever keeps its runs: what is told of which run, and what makes a
 * plan another one. Times are the loop's; nothing here rests on how long they are but that a millisecond passes.
 */
#include "serve/planning.h"

#include "serve/exchange.h"

#include "support/stage.h"

#define MINUTE INT64_C(60000000)

/* What the hooks have heard. */
typedef struct heard {
    size_t runs;
    ration_run run;
    ration_time begun;
    char job[16];
} heard;

static void on_ran(void *ctx, ration_time begun, ration_text job, const ration_run *run)
{
    heard *h = ctx;

    h->runs++;
    h->run = *run;
    h->begun = begun;
    script_keep(h->job, sizeof h->job, job);
}

/* ---- a decider without a counter, whose provider may tell another maximum */

static uint64_t maxima, disagreements;
static size_t reports;
static int report_err;

static int no_report(rn_decider *d, ration_time now, ration_report_kind kind, const ration_reporter *reporter)
{
    (void)d;
    (void)now;
    (void)kind;
    (void)reporter;
    reports++;
    return report_err;
}

static int grant(rn_decider *d, ration_time now, const ration_request *request, ration_check_mode mode,
                 ration_decision *out)
{
    (void)d;
    (void)now;
    (void)request;
    (void)mode;
    *out = (ration_decision){.result = RATION_GRANTED};
    return RATION_OK;
}

static void few_totals(const rn_decider *d, ration_totals *out)
{
    (void)d;
    *out = (ration_totals){.maxima = maxima, .disagreements = disagreements};
}

typedef struct scene {
    rn_loop *loop;
    ration_config *config;
    script decider;
    rn_decider_ops ops;
    rn_log log;
    heard heard;
    rn_planning *planning;
    rn_gateway *gateway;
} scene;

/* A quota of 1000 in 24 hours, of which a tenth is kept back, and these jobs. */
static ration_config *config_make(const char *jobs)
{
    ration_config_faults faults = {NULL, 0, NULL};
    ration_config *config = NULL;
    char text[1024];

    (void)snprintf(
        text, sizeof text,
        "{settings: {listen: {gateway: \"127.0.0.1:0\", control: \"127.0.0.1:0\"}}, providers: [{name: p, "
        "baseUrl: \"http://127.0.0.1:9\", endpoints: [/x], limits: [{name: daily, kind: quota, max: 1000, "
        "window: {rolling: 24h}, scope: {by: [account]}}]}], accounts: [{name: a, provider: p}], jobs: [%s]}",
        jobs);
    CHECK_EQ(ration_config_parse(ration_text_of(text), "test", NULL, &config, &faults), RATION_OK);
    ration_config_faults_fini(&faults);
    return config;
}

static void scene_open(scene *s, const char *jobs)
{
    rn_net_error error;

    memset(s, 0, sizeof *s);
    maxima = disagreements = 0;
    reports = 0;
    report_err = RATION_OK;
    s->ops = script_ops;
    s->ops.report = no_report;
    s->ops.totals = few_totals;
    s->ops.check = grant;
    s->decider.base.ops = &s->ops;
    s->log.descriptor = -1;
    s->config = config_make(jobs);
    CHECK_EQ(rn_loop_new(&s->loop), RATION_OK);

    const rn_planning_options options = {.loop = s->loop,
                                         .decider = &s->decider.base,
                                         .config = s->config,
                                         .log = &s->log,
                                         .ctx = &s->heard,
                                         .ran = on_ran};
    CHECK_EQ(rn_planning_new(&options, &s->planning), RATION_OK);
    const rn_gateway_options gateway = {
        .loop = s->loop, .decider = &s->decider.base, .config = s->config, .log = &s->log, .planning = s->planning};
    CHECK_EQ(rn_gateway_new(&gateway, &s->gateway, &error), RATION_OK);
}

static void scene_start(scene *s)
{
    rn_planning_start(s->planning, s->gateway);
}

static void scene_close(scene *s)
{
    rn_gateway_free(s->gateway);
    rn_planning_free(s->planning);
    rn_loop_free(s->loop);
    ration_config_free(s->config);
}

static const ration_job_plan *planned(const scene *s, size_t job)
{
    return &rn_jobs_planned(rn_planning_jobs(s->planning))->jobs[job];
}

#define TICK "{name: tick, account: a, endpoint: GET /x, interval: 10m}"
#define FAST "{name: fast, account: a, endpoint: GET /x, interval: 4ms, priority: critical}"
#define FAN "{name: fan, account: a, endpoint: GET /x, interval: 1h, fanOut: {name: orgs, estimate: 2}}"

/* ---- tests */

static void test_what_was_kept_is_known_at_the_start(void **state)
{
    const ration_run run = {.requests = 30};
    scene s;
    (void)state;

    scene_open(&s, TICK);
    const ration_time begun = {rn_loop_now(s.loop).us - MINUTE};
    CHECK_EQ(rn_planning_restore(s.planning, ration_text_of("tick"), begun, &run), RATION_OK);
    CHECK_EQ(rn_planning_restore(s.planning, ration_text_of("tock"), begun, &run), RATION_ERR_UNKNOWN);
    CHECK_EQ(rn_planning_restore(s.planning, ration_text_of("tick"), begun, &(ration_run){.requests = -1}),
             RATION_ERR_INVALID);
    scene_start(&s);
    CHECK_EQ(planned(&s, 0)->calls, 30 * RATION_UNIT);
    CHECK_EQ(rn_jobs_next_run(rn_planning_jobs(s.planning), 0, rn_loop_now(s.loop)).us,
             begun.us + planned(&s, 0)->effective_us);
    CHECK_EQ(s.heard.runs, 0);
    CHECK_EQ(rn_planning_look(s.planning)->plans, 1);
    CHECK_EQ(rn_planning_look(s.planning)->changes, 0);
    scene_close(&s);
}

static void test_a_report_is_kept(void **state)
{
    const ration_run run = {.requests = 7, .retries = 2};
    scene s;
    (void)state;

    scene_open(&s, TICK);
    scene_start(&s);
    const ration_time now = rn_loop_now(s.loop);
    CHECK_EQ(rn_planning_reported(s.planning, 0, &run, RATION_UNSET, MINUTE), RATION_OK);
    CHECK_EQ(s.heard.runs, 1);
    CHECK_STR(s.heard.job, "tick");
    CHECK_EQ(s.heard.run.requests, 7);
    CHECK_EQ(s.heard.run.retries, 2);
    CHECK_EQ(s.heard.begun.us, now.us - MINUTE);

    CHECK_ROW("a run that cannot be counted");
    CHECK_EQ(rn_planning_reported(s.planning, 0, &(ration_run){.requests = -1}, RATION_UNSET, 0), RATION_ERR_INVALID);
    CHECK_ROW("no children of a job that has none");
    CHECK_EQ(rn_planning_reported(s.planning, 0, &run, 0, 0), RATION_ERR_INVALID);
    CHECK_EQ(s.heard.runs, 1);
    CHECK_EQ(rn_planning_look(s.planning)->reported, 1);
    scene_close(&s);
}

static void test_a_report_in_the_place_of_what_is_counted(void **state)
{
    scene s;
    (void)state;

    scene_open(&s, TICK);
    scene_start(&s);
    const ration_time begun = rn_loop_now(s.loop);
    rn_planning_arrives(s.planning, 0);
    rn_planning_sent(s.planning, 0, false);
    RUN_UNTIL(s.loop, rn_loop_now(s.loop).us > begun.us);
    CHECK_EQ(rn_planning_reported(s.planning, 0, &(ration_run){.requests = 9}, RATION_UNSET, 0), RATION_OK);
    CHECK_EQ(s.heard.begun.us, begun.us);
    CHECK_EQ(s.heard.run.requests, 9);
    rn_planning_leaves(s.planning, 0, true);

    CHECK_ROW("the next request is of the next run");
    rn_planning_arrives(s.planning, 0);
    rn_planning_leaves(s.planning, 0, true);
    CHECK_EQ(s.heard.runs, 1);
    CHECK_EQ(rn_planning_reported(s.planning, 0, &(ration_run){.requests = 9}, RATION_UNSET, MINUTE), RATION_OK);
    CHECK_EQ(s.heard.begun.us, rn_loop_now(s.loop).us);
    CHECK_EQ(rn_planning_look(s.planning)->counted, 0);
    scene_close(&s);
}

/* One request of a job, here and gone. */
static void request(scene *s, bool sent, bool retry)
{
    rn_planning_arrives(s->planning, 0);
    if (sent)
        rn_planning_sent(s->planning, 0, retry);
    rn_planning_leaves(s->planning, 0, sent);
}

static void test_counted_runs_are_kept(void **state)
{
    scene s;
    (void)state;

    scene_open(&s, FAST);
    scene_start(&s);
    const ration_time first = rn_loop_now(s.loop);
    request(&s, true, false);
    request(&s, true, false);
    request(&s, true, true);
    RUN_UNTIL(s.loop, rn_loop_now(s.loop).us >= first.us + 1000);
    const ration_time second = rn_loop_now(s.loop);
    request(&s, true, false);
    CHECK_EQ(s.heard.runs, 1);
    CHECK_EQ(s.heard.run.requests, 2);
    CHECK_EQ(s.heard.run.retries, 1);
    CHECK_EQ(s.heard.begun.us, first.us);

    CHECK_ROW("a request that was not sent");
    request(&s, false, false);
    RUN_UNTIL(s.loop, rn_loop_now(s.loop).us >= second.us + 1000);
    request(&s, true, false);
    CHECK_EQ(s.heard.runs, 1);
    CHECK_EQ(rn_planning_look(s.planning)->counted, 1);
    CHECK_EQ(rn_planning_look(s.planning)->cut, 1);

    CHECK_ROW("a tick ends what is quiet");
    RUN_UNTIL(s.loop, s.heard.runs == 2);
    CHECK_EQ(s.heard.run.requests, 1);
    scene_close(&s);
}

/* 900 in a day are 37 an hour: two children with a request each are less, 80 are more. */
static void test_an_inventory_changes_the_plan(void **state)
{
    scene s;
    (void)state;

    scene_open(&s, FAN);
    scene_start(&s);
    CHECK_EQ(planned(&s, 0)->effective_us, 60 * MINUTE);
    const ration_time made = rn_jobs_planned(rn_planning_jobs(s.planning))->made_at;
    CHECK_EQ(rn_planning_reported(s.planning, 0, &(ration_run){.requests = 80, .fan_out = 80}, 80, 0), RATION_OK);
    CHECK_EQ(rn_planning_look(s.planning)->plans, 1);
    RUN_UNTIL(s.loop, rn_planning_look(s.planning)->changes == 1);
    CHECK(planned(&s, 0)->effective_us > 60 * MINUTE);
    CHECK(rn_jobs_planned(rn_planning_jobs(s.planning))->made_at.us >= made.us + 1000000);

    CHECK_ROW("nothing to do is known as well");
    CHECK_EQ(rn_planning_reported(s.planning, 0, &(ration_run){0}, 0, 0), RATION_OK);
    RUN_UNTIL(s.loop, rn_planning_look(s.planning)->changes == 2);
    CHECK_EQ(planned(&s, 0)->effective_us, 60 * MINUTE);
    CHECK_EQ(s.heard.runs, 1);
    CHECK_EQ(rn_planning_look(s.planning)->plans, 3);
    CHECK_EQ(rn_planning_look(s.planning)->changes, 2);
    scene_close(&s);
}

static void test_another_maximum_and_a_plan_that_fails(void **state)
{
    scene s;
    (void)state;

    scene_open(&s, TICK);
    scene_start(&s);
    const size_t before = reports;
    maxima = disagreements = 1;
    RUN_UNTIL(s.loop, rn_planning_look(s.planning)->plans == 2);
    CHECK(reports > before + 1);

    CHECK_ROW("the plan before stands, and the next is tried with its time, not with every tick");
    report_err = RATION_ERR_NOMEM;
    maxima = 2;
    RUN_UNTIL(s.loop, rn_planning_look(s.planning)->faults == 1);
    CHECK_EQ(rn_planning_look(s.planning)->plans, 2);
    CHECK(rn_jobs_planned(rn_planning_jobs(s.planning)) != NULL);

    CHECK_ROW("a disagreement is looked for until it could be, and brings no plan about");
    disagreements = 2;
    const size_t failed = reports;
    RUN_UNTIL(s.loop, reports >= failed + 2);
    report_err = RATION_OK;
    const size_t looked = reports;
    RUN_UNTIL(s.loop, reports > looked);
    CHECK_EQ(rn_planning_look(s.planning)->plans, 2);
    scene_close(&s);
}

static void test_other_jobs(void **state)
{
    const ration_run run = {.requests = 30};
    rn_planning_next next;
    scene s;
    (void)state;

    scene_open(&s, TICK ", {name: goes, account: a, endpoint: GET /x, interval: 1h}, "
                        "{name: other, account: a, endpoint: GET /x, interval: 1h}");
    scene_start(&s);
    CHECK_EQ(rn_planning_reported(s.planning, 0, &run, RATION_UNSET, 0), RATION_OK);
    for (size_t i = 0; i < 3; i++)
        rn_planning_arrives(s.planning, i);
    rn_planning_sent(s.planning, 0, false);

    ration_config *config = config_make("{name: new, account: a, endpoint: GET /x, interval: 1h}, "
                                        "{name: other, account: a, endpoint: POST /x, interval: 1h}, " TICK);
    CHECK_EQ(rn_planning_prepare(s.planning, config, &next), RATION_OK);
    rn_planning_forget(&next);
    CHECK_EQ(rn_jobs_count(rn_planning_jobs(s.planning)), 3);
    CHECK_EQ(rn_planning_prepare(s.planning, config, &next), RATION_OK);
    CHECK_ROW("by name, but not where it is another job");
    CHECK_EQ(next.heirs[0], 2);
    CHECK_EQ(next.heirs[1], SIZE_MAX);
    CHECK_EQ(next.heirs[2], SIZE_MAX);
    rn_planning_adopt(s.planning, &next);

    CHECK_ROW("what was learned goes on, and there is a plan at once");
    CHECK_EQ(rn_planning_look(s.planning)->jobs, 3);
    CHECK_EQ(rn_planning_look(s.planning)->plans, 2);
    CHECK_EQ(planned(&s, 2)->calls, 30 * RATION_UNIT);
    CHECK_EQ(planned(&s, 0)->calls, 1050000); /* one request, and what retries are taken to be */
    CHECK_ROW("a run under way is counted to its end, under its new number");
    s.heard.runs = 0;
    rn_planning_sent(s.planning, 2, false);
    rn_planning_leaves(s.planning, 2, true);
    CHECK_EQ(rn_planning_reported(s.planning, 2, &run, RATION_UNSET, 0), RATION_OK);
    CHECK_EQ(s.heard.runs, 1);
    CHECK_STR(s.heard.job, "tick");
    ration_config_free(s.config);
    s.config = config;
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_kept_is_known_at_the_start),
        cmocka_unit_test(test_a_report_is_kept),
        cmocka_unit_test(test_a_report_in_the_place_of_what_is_counted),
        cmocka_unit_test(test_counted_runs_are_kept),
        cmocka_unit_test(test_an_inventory_changes_the_plan),
        cmocka_unit_test(test_another_maximum_and_a_plan_that_fails),
        cmocka_unit_test(test_other_jobs),
    };

    return cmocka_run_group_tests_name("planning", tests, NULL, NULL);
}
