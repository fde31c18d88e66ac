/* SPDX-License-Identifier: MIT */
/* Jobs of a config: what they say, and every fault with its place. */
#include "support/config.h"

#define SECOND INT64_C(1000000)
#define DAY (86400 * SECOND)
#define YEAR (366 * DAY)

/* Lines 1 to 11; a job of one line is in line 12. */
#define HEAD                                                                                                           \
    "providers:\n"                                                                                                     \
    "- name: p\n"                                                                                                      \
    "  baseUrl: http://h\n"                                                                                            \
    "  priority: low\n"                                                                                                \
    "  endpoints:\n"                                                                                                   \
    "  - /orgs/{orgId}/**\n"                                                                                           \
    "  - { path: /orgs/{orgId}/keys, priority: critical }\n"                                                           \
    "  - /orgs/**\n"                                                                                                   \
    "  - /health\n"                                                                                                    \
    "accounts: [{ name: acme, provider: p }, { name: globex, provider: p }]\n"                                         \
    "jobs:\n"
#define JOB HEAD "- { name: j, account: acme, endpoint: /health, "

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};

static const struct {
    const char *why;
    const char *text;
    const char *want;
} rows[] = {
    {"a good one", JOB "interval: 1ms }\n", ""},
    {"none at all", HEAD " []\n", ""},
    {"what is needed", HEAD "- {}\n",
     "f:12:3: jobs[0]: the key 'name' is missing\n"
     "f:12:3: jobs[0]: the key 'account' is missing\n"
     "f:12:3: jobs[0]: the key 'endpoint' is missing\n"
     "f:12:3: jobs[0]: the key 'interval' is missing\n"},
    {"a key that nobody knows", JOB "interval: 60s, every: 60s }\n", "f:12:63: jobs[0].every: unknown key\n"},

    {"an unknown account", HEAD "- { name: j, account: acne, endpoint: /health, interval: 60s }\n",
     "f:12:23: jobs[0].account: there is no account of this name (did you mean 'acme'?)\n"},
    {"one that looks like no other", HEAD "- { name: j, account: meraki, endpoint: /health, interval: 60s }\n",
     "f:12:23: jobs[0].account: there is no account of this name\n"},
    {"the same name twice", JOB "interval: 60s }\n- { name: j, account: acme, endpoint: /health, interval: 60s }\n",
     "f:13:11: jobs[1].name: the name 'j' stands here a second time (the first is in line 12)\n"},

    {"no path", HEAD "- { name: j, account: acme, endpoint: GET, interval: 60s }\n",
     "f:12:39: jobs[0].endpoint: a path template must begin with '/' (/GET)\n"},
    {"no method", HEAD "- { name: j, account: acme, endpoint: \"G@T /health\", interval: 60s }\n",
     "f:12:39: jobs[0].endpoint: 'G@T /health' is not a method and a path such as GET /networks/{networkId}/devices\n"},
    {"a blank in the path", HEAD "- { name: j, account: acme, endpoint: GET /health now, interval: 60s }\n",
     "f:12:39: jobs[0].endpoint: 'GET /health now' is not a method and a path such as GET "
     "/networks/{networkId}/devices\n"},
    {"a query", HEAD "- { name: j, account: acme, endpoint: \"GET /health?all=1\", interval: 60s }\n",
     "f:12:39: jobs[0].endpoint: a path template has no query and no fragment (end it before the '?' or '#')\n"},
    {"a variable twice", HEAD "- { name: j, account: acme, endpoint: \"GET /orgs/{a}/{a}\", interval: 60s }\n",
     "f:12:39: jobs[0].endpoint: a variable of a path template must be a whole segment, its name stand once (such as "
     "/networks/{networkId}; a template has at most 64 segments)\n"},
    {"a path that no endpoint matches", HEAD "- { name: j, account: acme, endpoint: GET /heath, interval: 60s }\n",
     "f:12:39: warning: jobs[0].endpoint: none of the provider's endpoints matches this path: limits with a variable "
     "in "
     "their scope do not count it (did you mean '/health'?)\n"},
    {"nor resembles", HEAD "- { name: j, account: acme, endpoint: GET /somewhere/else, interval: 60s }\n",
     "f:12:39: warning: jobs[0].endpoint: none of the provider's endpoints matches this path: limits with a variable "
     "in "
     "their scope do not count it\n"},
    {"a provider without endpoints",
     "providers: [{ name: p, baseUrl: \"http://h\" }]\n"
     "accounts: [{ name: acme, provider: p }]\n"
     "jobs: [{ name: j, account: acme, endpoint: /any, interval: 60s }]\n",
     ""},

    {"no such variable", JOB "interval: 60s, vars: { orgId: 7 } }\n",
     "f:12:78: jobs[0].vars.orgId: the path has no such variable\n"},
    {"a slip of the pen",
     HEAD "- { name: j, account: acme, endpoint: \"GET /orgs/{orgId}/x\", interval: 60s, vars: { ogrId: 7 } }\n",
     "f:12:92: jobs[0].vars.ogrId: the path has no such variable (did you mean 'orgId'?)\n"},
    {"a value of two segments",
     HEAD "- { name: j, account: acme, endpoint: \"GET /orgs/{orgId}/x\", interval: 60s, vars: { orgId: a/b } }\n",
     "f:12:92: jobs[0].vars.orgId: 'a/b' is not one segment of a path, without blanks and any of / ? # { }\n"},

    {"no interval", JOB "interval: 0 }\n",
     "f:12:58: jobs[0].interval: '0' is out of range (at least 1 ms and at most 366 d)\n"},
    {"below a millisecond", JOB "interval: 999us }\n",
     "f:12:58: jobs[0].interval: '999us' is out of range (at least 1 ms and at most 366 d)\n"},
    {"below nothing", JOB "interval: -60s }\n",
     "f:12:58: jobs[0].interval: '-60s' is not a duration such as 250ms, 10s or 1h30m\n"},
    {"above a year", JOB "interval: 367d }\n",
     "f:12:58: jobs[0].interval: '367d' is out of range (at least 1 ms and at most 366 d)\n"},
    {"far above", JOB "interval: 99999999999999999999d }\n",
     "f:12:58: jobs[0].interval: '99999999999999999999d' is out of range (at least 1 ms and at most 366 d)\n"},
    {"without a unit", JOB "interval: 60 }\n",
     "f:12:58: jobs[0].interval: '60' is not a duration such as 250ms, 10s or 1h30m (write 60s for seconds)\n"},
    {"an unknown class", JOB "interval: 60s, priority: hihg }\n",
     "f:12:73: jobs[0].priority: 'hihg' is not one of: critical, high, normal, low (did you mean 'high'?)\n"},

    {"children of nothing", JOB "interval: 60s, fanOut: { estimate: 3 } }\n",
     "f:12:71: jobs[0].fanOut: the key 'name' is missing\n"},
    {"only the name of an inventory", JOB "interval: 60s, fanOut: orgs }\n",
     "f:12:71: jobs[0].fanOut: must be a map of keys\n"},
    {"no children", JOB "interval: 60s, fanOut: { name: orgs, estimate: 0 } }\n",
     "f:12:95: jobs[0].fanOut.estimate: '0' is out of range (at least 1 and at most 1000000000)\n"},
    {"fewer than none", JOB "interval: 60s, fanOut: { name: orgs, estimate: -1 } }\n",
     "f:12:95: jobs[0].fanOut.estimate: '-1' is out of range (at least 1 and at most 1000000000)\n"},
    {"a third of one", JOB "interval: 60s, fanOut: { name: orgs, estimate: 0.3 } }\n",
     "f:12:95: jobs[0].fanOut.estimate: '0.3' is not a whole number such as 100\n"},
    {"too many", JOB "interval: 60s, fanOut: { name: orgs, estimate: 1000000001 } }\n",
     "f:12:95: jobs[0].fanOut.estimate: '1000000001' is out of range (at least 1 and at most 1000000000)\n"},
    {"no pages", JOB "interval: 60s, estimate: { pagesPerRun: 0 } }\n",
     "f:12:88: jobs[0].estimate.pagesPerRun: '0' is out of range (at least 1 and at most 1000000)\n"},
    {"less than one", JOB "interval: 60s, estimate: { pagesPerRun: 0.999999 } }\n",
     "f:12:88: jobs[0].estimate.pagesPerRun: '0.999999' is out of range (at least 1 and at most 1000000)\n"},
    {"too many pages", JOB "interval: 60s, estimate: { pagesPerRun: 1000000.000001 } }\n",
     "f:12:88: jobs[0].estimate.pagesPerRun: '1000000.000001' is out of range (at least 1 and at most 1000000)\n"},
    {"a cost below nothing", JOB "interval: 60s, cost: -1 }\n",
     "f:12:69: jobs[0].cost: '-1' is out of range (at least 0 and at most 9007199254.740992)\n"},

    {"overhead above all", HEAD " []\nsettings: { budget: { retryOverhead: 101% } }\n",
     "f:13:38: settings.budget.retryOverhead: '101%' is out of range (it must be a ratio from 0 to 1 such as 80%, 0.8 "
     "or "
     "4/5)\n"},
    {"stretched by less than one", HEAD " []\nsettings: { budget: { maxStretch: 0 } }\n",
     "f:13:35: settings.budget.maxStretch: '0' is out of range (at least 1 and at most 1000)\n"},
    {"stretched without end", HEAD " []\nsettings: { budget: { maxStretch: 1001 } }\n",
     "f:13:35: settings.budget.maxStretch: '1001' is out of range (at least 1 and at most 1000)\n"},
    {"planned all the time", HEAD " []\nsettings: { budget: { replanInterval: 999ms } }\n",
     "f:13:39: settings.budget.replanInterval: '999ms' is out of range (at least 1 s and at most 1 d)\n"},
};

static void each_fault_has_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[4096];

        CHECK_ROW(rows[i].why);
        faults_of(rows[i].text, strlen(rows[i].text), &plain, got, sizeof got);
        CHECK_STR(got, rows[i].want);
    }
}

static void a_job_is_what_it_says(void **state)
{
    ration_config *config =
        config_of(HEAD "- name: devices\n"
                       "  account: globex\n"
                       "  endpoint: \"post  /orgs/{org}/{kind}/devices/\"\n"
                       "  vars: { kind: wireless, org: 549236 }\n"
                       "  interval: 366d\n"
                       "  priority: high\n"
                       "  tenant: t\n"
                       "  cost: 0\n"
                       "  fanOut: { name: sites, estimate: 3 }\n"
                       "  estimate: { pagesPerRun: 2.5 }\n"
                       "settings: { budget: { retryOverhead: 0, maxStretch: 3, replanInterval: 1m } }\n",
                  &plain);
    const rn_job *job = rn_config_job(config, 0);
    const rn_settings *settings = rn_config_settings(config);

    (void)state;
    CHECK_STR(job->name, "devices");
    CHECK_STR(job->place.file, "f");
    CHECK_EQ(job->place.line, 12);
    CHECK_EQ(job->place.column, 3);
    CHECK_EQ(job->account, 1);
    CHECK_STR(job->method, "post");
    CHECK_STR(job->path, "/orgs/549236/wireless/devices");
    CHECK_EQ(job->interval_us, YEAR);
    CHECK_EQ(job->priority, RATION_PRIORITY_HIGH);
    CHECK_STR(job->tenant, "t");
    CHECK_EQ(job->cost, 0);
    CHECK_STR(job->fan_out, "sites");
    CHECK_EQ(job->fan_out_estimate, 3);
    CHECK_EQ(job->pages_per_run, 2500000);
    CHECK_EQ(job->var_count, 2);
    CHECK_TEXT(job->vars[0].name, "kind");
    CHECK_TEXT(job->vars[1].value, "549236");
    CHECK(rn_config_job(config, 1) == NULL);
    CHECK_EQ(settings->retry_overhead.num, 0);
    CHECK_EQ(settings->retry_overhead.den, 1);
    CHECK_EQ(settings->max_stretch, 3);
    CHECK_EQ(settings->replan_us, 60 * SECOND);
    ration_config_free(config);
}

/* Name, priority: of the job, else of its endpoint, else of the provider. */
static void what_a_job_does_not_say(void **state)
{
    ration_config *config = config_of(HEAD "- { name: a, account: acme, endpoint: /health, interval: 1ms }\n"
                                           "- { name: b, account: acme, endpoint: \"/orgs/{o}/keys\", interval: 1s }\n"
                                           "- { name: c, account: acme, endpoint: /, interval: 1s }\n",
                                      &plain);
    const rn_job *job = rn_config_job(config, 0);
    const rn_settings *settings = rn_config_settings(config);

    (void)state;
    CHECK_STR(job->method, "GET");
    CHECK_STR(job->path, "/health");
    CHECK_EQ(job->interval_us, 1000);
    CHECK_EQ(job->priority, RATION_PRIORITY_LOW);
    CHECK_STR(job->tenant, NULL);
    CHECK_EQ(job->cost, RATION_UNSET);
    CHECK_STR(job->fan_out, NULL);
    CHECK_EQ(job->fan_out_estimate, 1);
    CHECK_EQ(job->pages_per_run, RATION_UNIT);
    CHECK_EQ(job->var_count, 0);
    CHECK_EQ(rn_config_job(config, 1)->priority, RATION_PRIORITY_CRITICAL);
    CHECK_STR(rn_config_job(config, 1)->path, "/orgs/{o}/keys");
    CHECK_STR(rn_config_job(config, 2)->path, "/");
    CHECK_EQ(settings->retry_overhead.num, 1);
    CHECK_EQ(settings->retry_overhead.den, 20);
    CHECK_EQ(settings->max_stretch, 12);
    CHECK_EQ(settings->replan_us, 300 * SECOND);
    ration_config_free(config);

    config = config_of("providers: [{ name: p, baseUrl: \"http://h\" }]\naccounts: [{ name: a, provider: p }]\n"
                       "jobs: [{ name: j, account: a, endpoint: /x, interval: 1s }]\n",
                       &plain);
    CHECK_EQ(rn_config_job(config, 0)->priority, RATION_PRIORITY_NORMAL);
    ration_config_free(config);
}

/* Jobs decide nothing, so a recording does not hold them. */
static void a_recording_has_no_jobs(void **state)
{
    ration_config *config = config_of(JOB "interval: 60s }\n", &plain);
    char *json = NULL;
    size_t size = 0;

    (void)state;
    CHECK_EQ(rn_config_json(config, &json, &size), RATION_OK);
    CHECK(strstr(json, "jobs") == NULL && strstr(json, "maxStretch") == NULL);
    free(json);
    ration_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_has_its_place),
        cmocka_unit_test(a_job_is_what_it_says),
        cmocka_unit_test(what_a_job_does_not_say),
        cmocka_unit_test(a_recording_has_no_jobs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
