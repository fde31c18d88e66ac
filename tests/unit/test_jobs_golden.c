/* SPDX-License-Identifier: MIT */
/*
 * Plans from a config's text to the JSON that `GET /v1/plan` gives, each worked out by hand from chapter 4.
 *
 * All windows are days of UTC and `now` is midnight unless said otherwise, so a job that runs every T seconds runs
 * 86400 / T times. R is 10 % of U.
 */
#include "support/config.h"

#include "base/mem.h"
#include "base/text.h"
#include "jobs/jobs.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};

static const struct {
    const char *why;
    const char *config;
    const char *want; /* without `nextRunAt` and `provider`, which say the same everywhere */
} rows[] = {
    /*
     * U = 80 % of 5000 = 4000, R = 400, so 3600 are to be had. A run makes 2 pages * 1.05 * 3 children = 6.3 calls;
     * 1440 runs want 9072. k = 9072 / 3600 = 2.52, and 2.52 * 60 s = 151.2 s: 571.43 runs, 3600 calls. Others have
     * nothing, the day lasts.
     */
    {"one scope",
     "providers: [{ name: p, baseUrl: \"http://h\", limits: [{ name: daily, kind: quota, max: 5000, window: { period: "
     "day }, scope: { by: [account] } }] }]\n"
     "accounts: [{ name: a, provider: p, budget: { share: 80% } }]\n"
     "jobs: [{ name: devices, account: a, endpoint: GET /x, interval: 60s, fanOut: { name: orgs, estimate: 3 }, "
     "estimate: { pagesPerRun: 2 } }]\n",
     "{'madeAt':0,'feasible':true,'jobs':["
     "{'name':'devices','account':'a','priority':'normal','desiredMs':60000,'fanOut':3,'effectiveMs':151200,"
     "'stretch':2.52,'calls':6.3,'feasible':true,'boundBy':{'limit':'daily','key':'a'},"
     "'scopes':[{'limit':'daily','key':'a','perWindow':3600,'projected':3600}]}],"
     "'scopes':[{'limit':'daily','key':'a','usable':4000,'reserve':400,'used':0,'budget':3600,'horizonMs':86400000,"
     "'others':0,'wanted':9072,'critical':0,'projected':3600,'feasible':true}]}"},
    /*
     * 900 to be had. `high` wants 86400 / 144 = 600, `low` 86400 / 96 = 900. Of the 600 too many `low` can give 300 and
     * more: k = 900 / 300 = 3 is below 12, so `high` runs as desired.
     */
    {"two classes, the lower gives all",
     "settings: { budget: { retryOverhead: 0 } }\n"
     "providers: [{ name: p, baseUrl: \"http://h\", limits: [{ name: daily, kind: quota, max: 1000, window: { period: "
     "day }, scope: { by: [account] } }] }]\n"
     "accounts: [{ name: a, provider: p }]\n"
     "jobs:\n"
     "- { name: low, account: a, endpoint: GET /x, interval: 96s, priority: low }\n"
     "- { name: high, account: a, endpoint: GET /y, interval: 144s, priority: high }\n",
     "{'madeAt':0,'feasible':true,'jobs':["
     "{'name':'low','account':'a','priority':'low','desiredMs':96000,'effectiveMs':288000,'stretch':3,'calls':1,"
     "'feasible':true,'boundBy':{'limit':'daily','key':'a'},"
     "'scopes':[{'limit':'daily','key':'a','perWindow':300,'projected':300}]},"
     "{'name':'high','account':'a','priority':'high','desiredMs':144000,'effectiveMs':144000,'stretch':1,'calls':1,"
     "'feasible':true,'scopes':[{'limit':'daily','key':'a','perWindow':600,'projected':600}]}],"
     "'scopes':[{'limit':'daily','key':'a','usable':1000,'reserve':100,'used':0,'budget':900,'horizonMs':86400000,"
     "'others':0,'wanted':1500,'critical':0,'projected':900,'feasible':true}]}"},
    /*
     * The same, but nothing may be stretched to more than twice: `low` still uses 450 at 192 s, which leaves 450 for
     * `high`: k = 600 / 450 = 4/3, 192 s.
     */
    {"two classes, the lower at the utmost",
     "settings: { budget: { retryOverhead: 0, maxStretch: 2 } }\n"
     "providers: [{ name: p, baseUrl: \"http://h\", limits: [{ name: daily, kind: quota, max: 1000, window: { period: "
     "day }, scope: { by: [account] } }] }]\n"
     "accounts: [{ name: a, provider: p }]\n"
     "jobs:\n"
     "- { name: low, account: a, endpoint: GET /x, interval: 96s, priority: low }\n"
     "- { name: high, account: a, endpoint: GET /y, interval: 144s, priority: high }\n",
     "{'madeAt':0,'feasible':true,'jobs':["
     "{'name':'low','account':'a','priority':'low','desiredMs':96000,'effectiveMs':192000,'stretch':2,'calls':1,"
     "'feasible':true,'boundBy':{'limit':'daily','key':'a'},"
     "'scopes':[{'limit':'daily','key':'a','perWindow':450,'projected':450}]},"
     "{'name':'high','account':'a','priority':'high','desiredMs':144000,'effectiveMs':192000,'stretch':1.333334,"
     "'calls':1,'feasible':true,'boundBy':{'limit':'daily','key':'a'},"
     "'scopes':[{'limit':'daily','key':'a','perWindow':450,'projected':450}]}],"
     "'scopes':[{'limit':'daily','key':'a','usable':1000,'reserve':100,'used':0,'budget':900,'horizonMs':86400000,"
     "'others':0,'wanted':1500,'critical':0,'projected':900,'feasible':true}]}"},
    /*
     * `both` runs once for each of two organizations: each child is alone at its own `org`, of which 90 are to be had.
     * There one child wants 86400 / 360 = 240, so k = 240 / 90 = 8/3: 960 s. In `daily` both children want 480 and
     * `one` 720, together 1200 of 900, for which 4/3 would do. The larger k holds; at 960 s the children use 180 of
     * `daily`, and the 720 that are left are what `one` wants.
     */
    {"a job in two scopes",
     "settings: { budget: { retryOverhead: 0 } }\n"
     "providers:\n"
     "- name: p\n"
     "  baseUrl: http://h\n"
     "  endpoints: [/orgs/{orgId}/**, /other]\n"
     "  limits:\n"
     "  - { name: daily, kind: quota, max: 1000, window: { period: day }, scope: { by: [account] } }\n"
     "  - { name: org, kind: quota, max: 100, window: { period: day }, scope: { by: [account, \"var:orgId\"] } }\n"
     "accounts: [{ name: a, provider: p }]\n"
     "jobs:\n"
     "- { name: both, account: a, endpoint: \"GET /orgs/{orgId}/x\", interval: 360s, fanOut: { name: orgs, estimate: 2 "
     "} }\n"
     "- { name: one, account: a, endpoint: GET /other, interval: 120s }\n",
     "{'madeAt':0,'feasible':true,'jobs':["
     "{'name':'both','account':'a','priority':'normal','desiredMs':360000,'fanOut':2,'effectiveMs':960000,"
     "'stretch':2.666667,'calls':2,'feasible':true,'boundBy':{'limit':'org','key':'a/orgId={orgId}'},"
     "'scopes':[{'limit':'daily','key':'a','perWindow':180,'projected':180},"
     "{'limit':'org','key':'a/orgId={orgId}','perWindow':90,'projected':90}]},"
     "{'name':'one','account':'a','priority':'normal','desiredMs':120000,'effectiveMs':120000,'stretch':1,'calls':1,"
     "'feasible':true,'scopes':[{'limit':'daily','key':'a','perWindow':720,'projected':720}]}],"
     "'scopes':[{'limit':'daily','key':'a','usable':1000,'reserve':100,'used':0,'budget':900,'horizonMs':86400000,"
     "'others':0,'wanted':1200,'critical':0,'projected':900,'feasible':true},"
     "{'limit':'org','key':'a/orgId={orgId}','usable':100,'reserve':10,'used':0,'budget':90,'horizonMs':86400000,"
     "'others':0,'wanted':240,'critical':0,'projected':90,'feasible':true}]}"},
    /*
     * 86400 runs a day are 96 times the 900 that are to be had, and 12 is the most: 7200 a day. The 1000 that are left
     * with the reserve do not count; 900 of 7200 a day are gone after an eighth of it, 3 hours.
     */
    {"maxStretch reached",
     "settings: { budget: { retryOverhead: 0 } }\n"
     "providers: [{ name: p, baseUrl: \"http://h\", limits: [{ name: daily, kind: quota, max: 1000, window: { period: "
     "day }, scope: { by: [account] } }] }]\n"
     "accounts: [{ name: a, provider: p }]\n"
     "jobs: [{ name: j, account: a, endpoint: GET /x, interval: 1s }]\n",
     "{'madeAt':0,'feasible':false,'jobs':["
     "{'name':'j','account':'a','priority':'normal','desiredMs':1000,'effectiveMs':12000,'stretch':12,'calls':1,"
     "'feasible':true,'boundBy':{'limit':'daily','key':'a'},"
     "'scopes':[{'limit':'daily','key':'a','perWindow':7200,'projected':7200}]}],"
     "'scopes':[{'limit':'daily','key':'a','usable':1000,'reserve':100,'used':0,'budget':900,'horizonMs':86400000,"
     "'others':0,'wanted':86400,'critical':0,'projected':7200,'feasible':false,'exhaustedAt':10800000}]}"},
    /*
     * The critical job alone wants 1440 of 900 and is never stretched; the other goes to 12 times its 864 s, 10368 s,
     * and still uses 86400 / 10368 = 8.333334 of 100. Together 1448.333334 a day: 900 are gone after
     * 86400 s * 900 / 1448.333333333 = 53689.298 s.
     */
    {"critical alone too much",
     "settings: { budget: { retryOverhead: 0 } }\n"
     "providers: [{ name: p, baseUrl: \"http://h\", limits: [{ name: daily, kind: quota, max: 1000, window: { period: "
     "day }, scope: { by: [account] } }] }]\n"
     "accounts: [{ name: a, provider: p }]\n"
     "jobs:\n"
     "- { name: must, account: a, endpoint: GET /x, interval: 60s, priority: critical }\n"
     "- { name: may, account: a, endpoint: GET /y, interval: 864s }\n",
     "{'madeAt':0,'feasible':false,'jobs':["
     "{'name':'must','account':'a','priority':'critical','desiredMs':60000,'effectiveMs':60000,'stretch':1,'calls':1,"
     "'feasible':true,'scopes':[{'limit':'daily','key':'a','perWindow':1440,'projected':1440}]},"
     "{'name':'may','account':'a','priority':'normal','desiredMs':864000,'effectiveMs':10368000,'stretch':12,'calls':1,"
     "'feasible':true,'boundBy':{'limit':'daily','key':'a'},"
     "'scopes':[{'limit':'daily','key':'a','perWindow':8.333334,'projected':8.333334}]}],"
     "'scopes':[{'limit':'daily','key':'a','usable':1000,'reserve':100,'used':0,'budget':900,'horizonMs':86400000,"
     "'others':0,'wanted':1540,'critical':1440,'projected':1448.333334,'feasible':false,'exhaustedAt':53689298.043}]}"},
    /*
     * 90 calls at one a second take 90 s: the normal job's interval becomes that, the critical one's stays, which does
     * not fit. 30 calls fit into a minute. Each child of `spread` has a bucket of its own at `org`, so its 90 calls for
     * 9 children take 10 s there.
     */
    {"rates",
     "settings: { budget: { retryOverhead: 0 } }\n"
     "providers:\n"
     "- name: p\n"
     "  baseUrl: http://h\n"
     "  endpoints: [/orgs/{orgId}, /other]\n"
     "  limits:\n"
     "  - { name: all, kind: rate, rate: 1/s, scope: { by: [account] }, appliesTo: { endpoints: [/other] } }\n"
     "  - { name: org, kind: rate, rate: 1/s, scope: { by: [\"var:orgId\"] } }\n"
     "accounts: [{ name: a, provider: p }]\n"
     "jobs:\n"
     "- { name: large, account: a, endpoint: GET /other, interval: 60s, estimate: { pagesPerRun: 90 } }\n"
     "- { name: must, account: a, endpoint: GET /other, interval: 60s, estimate: { pagesPerRun: 90 }, priority: "
     "critical "
     "}\n"
     "- { name: small, account: a, endpoint: GET /other, interval: 60s, estimate: { pagesPerRun: 30 } }\n"
     "- { name: spread, account: a, endpoint: \"GET /orgs/{orgId}\", interval: 60s, estimate: { pagesPerRun: 10 }, "
     "fanOut: { name: orgs, estimate: 9 } }\n",
     "{'madeAt':0,'feasible':false,'jobs':["
     "{'name':'large','account':'a','priority':'normal','desiredMs':60000,'effectiveMs':90000,'stretch':1.5,'calls':90,"
     "'leastMs':90000,'feasible':true,'boundBy':{'limit':'all','key':'a'},'scopes':[]},"
     "{'name':'must','account':'a','priority':'critical','desiredMs':60000,'effectiveMs':60000,'stretch':1,'calls':90,"
     "'leastMs':90000,'feasible':false,'scopes':[]},"
     "{'name':'small','account':'a','priority':'normal','desiredMs':60000,'effectiveMs':60000,'stretch':1,'calls':30,"
     "'leastMs':30000,'feasible':true,'scopes':[]},"
     "{'name':'spread','account':'a','priority':'normal','desiredMs':60000,'fanOut':9,'effectiveMs':60000,'stretch':1,"
     "'calls':90,'leastMs':10000,'feasible':true,'scopes':[]}],"
     "'scopes':[]}"},
};

/* Double quotes to single ones; without members that say the same everywhere. */
static void plan_text(const rn_jobs *jobs, ration_time now, char *out, size_t room)
{
    static const char *const dull[] = {"\"provider\":\"p\",", ",\"nextRunAt\":0"};
    rn_output json;
    size_t used = 0;

    rn_output_init(&json, rn_mem_default(), 1 << 20);
    rn_jobs_json(jobs, now, &json);
    CHECK_EQ(json.err, RATION_OK);
    for (size_t i = 0; i < json.size;) {
        const ration_text rest = {json.data + i, json.size - i};
        size_t skip = 0;

        for (size_t d = 0; d < 2 && skip == 0; d++) {
            const size_t size = strlen(dull[d]);

            skip = rest.size >= size && memcmp(rest.data, dull[d], size) == 0 ? size : 0;
        }
        i += skip;
        CHECK(used + 1 < room);
        if (skip == 0) {
            out[used++] = json.data[i++];
        }
    }
    out[used] = '\0';
    for (char *quote = strchr(out, '"'); quote != NULL; quote = strchr(quote, '"'))
        *quote = '\'';
    rn_output_fini(&json);
}

static void table_text(const rn_jobs *jobs, char *out, size_t room)
{
    rn_output table;

    rn_output_init(&table, rn_mem_default(), room);
    rn_jobs_table(jobs, &table);
    CHECK(table.err == RATION_OK && table.size < room);
    memcpy(out, table.data, table.size);
    out[table.size] = '\0';
    rn_output_fini(&table);
}

static void plans_of_a_config(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_config *config;
        rn_jobs *jobs = NULL;
        ration_fault fault = {"", ""};
        char got[8192];

        CHECK_ROW(rows[i].why);
        config = config_of(rows[i].config, &plain);
        CHECK_EQ(rn_jobs_new(config, &jobs), RATION_OK);
        CHECK_EQ(rn_jobs_plan(jobs, ration_time_of(0), NULL, NULL, NULL, &fault), RATION_OK);
        plan_text(jobs, ration_time_of(0), got, sizeof got);
        CHECK_STR(got, rows[i].want);
        rn_jobs_free(jobs);
        ration_config_free(config);
    }
}

/* An engine with the rules of a config. */
typedef struct house {
    ration_config *config;
    rn_jobs *jobs;
    ration_engine *engine;
    rn_engine_decider decider;
} house;

static void house_init(house *h, const char *text)
{
    ration_engine_options options = {0};
    ration_fault fault = {"", ""};

    h->config = config_of(text, &plain);
    options.rules = ration_config_rules(h->config);
    CHECK_EQ(rn_jobs_new(h->config, &h->jobs), RATION_OK);
    CHECK_EQ(ration_engine_new(&options, ration_time_of(0), &h->engine, &fault), RATION_OK);
    (void)rn_engine_decider_init(&h->decider, h->engine);
}

static void house_fini(house *h)
{
    ration_engine_free(h->engine);
    rn_jobs_free(h->jobs);
    ration_config_free(h->config);
}

/* A call of account `a` to `path` that is answered at once, with one header or none. */
static void call(house *h, ration_time at, const char *path, const char *name, const char *value)
{
    const ration_header header = {ration_text_of(name), ration_text_of(value)};
    const ration_response response = {.status = 200, .headers = &header, .header_count = name != NULL ? 1 : 0};
    ration_completion completion = RATION_COMPLETION_INIT;
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision;

    request.account = ration_text_of("a");
    request.path = ration_text_of(path);
    request.method = ration_text_of("GET");
    CHECK_EQ(ration_engine_submit(h->engine, at, &request, &decision), RATION_OK);
    CHECK_EQ(decision.result, RATION_GRANTED);

    const ration_lease lease = decision.lease;

    CHECK_EQ(ration_engine_observe(h->engine, at, lease, &response), RATION_OK);
    CHECK_EQ(ration_engine_release(h->engine, at, lease, &completion), RATION_OK);
}

/*
 * Noon. 600 of 2400 are ours, and the provider says that 1500 remain: others have spent 300 in 12 hours and will spend
 * 300 more. So min(2400 - 600, 1500) - 240 - 300 = 960 are to be had in 12 hours, in which the job wants
 * 43200 / 30 = 1440: k = 1.5, 45 s. In a whole day that would be 1920. For 30 s the 1500 would have to be as many more
 * as the maximum is, less a tenth of it: 1500 + (2933 - 2400) - 293 = 1440 + 300.
 */
static void what_was_spent_and_others_will_spend(void **state)
{
    const ration_time noon = ration_time_of(12 * HOUR);
    ration_fault fault = {"", ""};
    char got[4096];
    house h;

    (void)state;
    house_init(&h, "settings: { budget: { retryOverhead: 0 } }\n"
                   "providers: [{ name: p, baseUrl: \"http://h\", limits: [{ name: daily, kind: quota, max: 2400, "
                   "window: { period: day }, scope: { by: [account] }, sync: { remainingHeader: X-Left } }] }]\n"
                   "accounts: [{ name: a, provider: p }]\n"
                   "jobs: [{ name: j, account: a, endpoint: GET /x, interval: 30s }]\n");
    for (int i = 0; i < 599; i++)
        call(&h, noon, "/x", NULL, NULL);
    call(&h, noon, "/x", "X-Left", "1500");
    CHECK_EQ(rn_jobs_plan(h.jobs, noon, &h.decider.base, NULL, NULL, &fault), RATION_OK);
    rn_jobs_begins(h.jobs, 0, ration_time_of(noon.us - 45 * SECOND));
    table_text(h.jobs, got, sizeof got);
    CHECK(strstr(got, "\n  j at 30s fits when daily (a) is 2933 or the interval is 45s\n") != NULL);
    plan_text(h.jobs, noon, got, sizeof got);
    CHECK_STR(got, "{'madeAt':43200000,'feasible':true,'jobs':["
                   "{'name':'j','account':'a','priority':'normal','desiredMs':30000,'effectiveMs':45000,'stretch':1.5,"
                   "'calls':1,'feasible':true,'boundBy':{'limit':'daily','key':'a'},"
                   "'scopes':[{'limit':'daily','key':'a','perWindow':1920,'projected':960}],'nextRunAt':43200000}],"
                   "'scopes':[{'limit':'daily','key':'a','usable':2400,'reserve':240,'used':600,'budget':960,"
                   "'horizonMs':43200000,'others':300,'wanted':1440,'critical':0,'projected':960,'feasible':true}]}");
    house_fini(&h);
}

static void change_write(void *ctx, const rn_job_change *change)
{
    char *text = ctx;
    rn_builder b;

    rn_builder_init(&b, text, 100);
    rn_builder_str(&b, change->job);
    rn_builder_char(&b, ' ');
    rn_builder_int(&b, change->before_us);
    rn_builder_char(&b, ' ');
    rn_builder_int(&b, change->after_us);
    rn_builder_char(&b, ' ');
    rn_builder_str(&b, change->limit != NULL ? change->limit : "-");
}

/*
 * 86400 / 96 = 900 runs fit what is to be had of 1000. Then a response says that the maximum is 500: of 450 that
 * remain without the reserve one is spent, and 96 s * 900 / 449 = 192.42761 s, rounded up to the millisecond. What is
 * used at 192.428 s is 86400 / 192.428 = 448.99910616...
 */
static void a_maximum_that_is_learned(void **state)
{
    const ration_time now = ration_time_of(0);
    ration_fault fault = {"", ""};
    char got[4096];
    char change[100] = "none";
    house h;

    (void)state;
    house_init(&h, "settings: { budget: { retryOverhead: 0 } }\n"
                   "providers: [{ name: p, baseUrl: \"http://h\", limits: [{ name: daily, kind: quota, max: 1000, "
                   "window: { period: day }, scope: { by: [account] }, sync: { limitHeader: X-Max } }] }]\n"
                   "accounts: [{ name: a, provider: p }]\n"
                   "jobs: [{ name: j, account: a, endpoint: GET /x, interval: 96s }]\n");
    CHECK_EQ(rn_jobs_plan(h.jobs, now, &h.decider.base, change, change_write, &fault), RATION_OK);
    CHECK_STR(change, "j -1 96000000 -");
    call(&h, now, "/x", "X-Max", "500");
    CHECK_EQ(rn_jobs_plan(h.jobs, now, &h.decider.base, change, change_write, &fault), RATION_OK);
    CHECK_STR(change, "j 96000000 192428000 daily");
    plan_text(h.jobs, now, got, sizeof got);
    CHECK_STR(got,
              "{'madeAt':0,'feasible':true,'jobs':["
              "{'name':'j','account':'a','priority':'normal','desiredMs':96000,'effectiveMs':192428,"
              "'stretch':2.004459,'calls':1,'feasible':true,'boundBy':{'limit':'daily','key':'a'},"
              "'scopes':[{'limit':'daily','key':'a','perWindow':448.999107,'projected':448.999107}]}],"
              "'scopes':[{'limit':'daily','key':'a','usable':500,'reserve':50,'used':1,'budget':449,"
              "'horizonMs':86400000,'others':0,'wanted':900,'critical':0,'projected':448.999107,'feasible':true}]}");
    change[0] = '\0';
    CHECK_EQ(rn_jobs_plan(h.jobs, now, &h.decider.base, change, change_write, &fault), RATION_OK);
    CHECK_STR(change, "");
    house_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_a_config),
        cmocka_unit_test(what_was_spent_and_others_will_spend),
        cmocka_unit_test(a_maximum_that_is_learned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
