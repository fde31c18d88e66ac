/* SPDX-License-Identifier: MIT */
/* What people read of a plan, and what would have to change for it to fit: each figure worked out by hand. */
#include "support/config.h"

#include "base/mem.h"
#include "base/text.h"
#include "jobs/parts.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};

#define HEAD                                                                                                           \
    "settings: { budget: { retryOverhead: 0 } }\nproviders:\n- name: p\n  baseUrl: http://h\n  endpoints: "            \
    "[\"/a/{x}\", /c]\n  limits:\n"
#define DAILY "kind: quota, window: { period: day }, "
#define TAIL "accounts: [{ name: me, provider: p, budget: { share: 80% } }]\njobs:\n"

static const struct {
    const char *why;
    const char *config;
    const char *want;
} tables[] = {
    {"no jobs", HEAD "    []\n" TAIL " []\n", "There are no jobs to plan.\n"},
    {"all is well",
     HEAD "  - { name: q, " DAILY "max: 2000 }\n" TAIL "- { name: j, account: me, endpoint: /c, interval: 60s }\n",
     "The plan fits: every job runs as often as wanted.\n\n"
     "job  priority  wanted  planned  stretch  calls a run  because of\n"
     "j    normal       60s      60s        1            1  -\n\n"
     "limit     for jobs  within  wanted  planned  lasts\n"
     "q (here)      1440     24h    1440     1440  yes\n"},
    {"without limits",
     HEAD "    []\n" TAIL "- { name: j, account: me, endpoint: /c, interval: 1ms, priority: critical }\n",
     "The plan fits: every job runs as often as wanted.\n\n"
     "job  priority  wanted  planned  stretch  calls a run  because of\n"
     "j    critical     1ms      1ms        1            1  -\n"},
    /*
     * 1000 leave 720 for jobs. `j` uses 60 of them at its utmost of 24 minutes, so `größe` has 660 of its 720 runs:
     * 120 s * 720 / 660. For both as wanted 1440 are needed: 1999 has 1599 - 159. Names are as wide as they look.
     */
    {"stretched",
     HEAD "  - { name: q, " DAILY "max: 1000 }\n" TAIL
          "- { name: größe, account: me, endpoint: /c, interval: 2m, priority: high }\n"
          "- { name: j, account: me, endpoint: /c, interval: 120s, priority: low, estimate: { pagesPerRun: 1 } }\n",
     "The plan fits: 2 of 2 jobs run less often than wanted.\n\n"
     "job    priority  wanted  planned  stretch  calls a run  because of\n"
     "größe  high          2m  130.91s      1.1            1  q (here)\n"
     "j      low           2m      24m       12            1  q (here)\n\n"
     "limit     for jobs  within  wanted  planned  lasts\n"
     "q (here)       720     24h    1440      720  yes\n\n"
     "What would have to change:\n"
     "  größe at 2m fits when q (here) is 1999 or the interval is 130.91s\n"
     "  j at 2m fits when q (here) is 1999 or the interval is 24m\n"},
    /*
     * A run takes 90 s: at a rate of 1.5 a second it would take 60, as it does at `t`. The critical one stays as it is.
     * Each child of `k` has a bucket of its own at `s`.
     */
    {"rates",
     HEAD
     "  - { name: r, kind: rate, rate: 1/s, appliesTo: { endpoints: [/c] } }\n"
     "  - { name: s, kind: rate, rate: 60/m, scope: { by: [\"var:x\"] } }\n"
     "  - { name: t, kind: rate, rate: 1.5/s, appliesTo: { endpoints: [/c] } }\n" TAIL
     "- { name: i, account: me, endpoint: /c, interval: 60s, estimate: { pagesPerRun: 90 } }\n"
     "- { name: j, account: me, endpoint: /c, interval: 60s, estimate: { pagesPerRun: 90 }, priority: critical }\n"
     "- { name: k, account: me, endpoint: \"/a/{x}\", interval: 60s, estimate: { pagesPerRun: 90 }, fanOut: { name: "
     "n, estimate: 9 } }\n",
     "The plan DOES NOT FIT: 2 of 3 jobs run less often than wanted.\n\n"
     "job  priority  wanted  planned  stretch  calls a run  because of\n"
     "i    normal       60s      90s      1.5           90  r (here)\n"
     "j    critical     60s      60s        1           90  DOES NOT FIT: a run takes 90s\n"
     "k    normal       60s      90s      1.5          810  s (x={x})\n\n"
     "What would have to change:\n"
     "  i at 60s fits when r (here) is 1.5/s or the interval is 90s\n"
     "  j at 60s fits when r (here) is 1.5/s or the interval is 90s\n"
     "  k at 60s fits when s (x={x}) is 90/m or the interval is 90s\n"},
    /*
     * `must` wants 1440 of 720, and `may` uses 8.333334 at its utmost of 10368 s:
     * 2012 has U = 1609 and R = 160, and 1449 is enough. 720 are gone after 86400 * 720 / 1448.333333 = 42951.4 s. That
     * `may` takes leaves 711.67 for `must`: 60 s * 1440 / 711.666666 = 121.406 s. For all as wanted 1540 are needed:
     * 2139 has 1711 - 171.
     */
    {"critical alone too much",
     HEAD "  - { name: q, " DAILY "max: 1000 }\n" TAIL
          "- { name: must, account: me, endpoint: /c, interval: 60s, priority: critical }\n"
          "- { name: may, account: me, endpoint: /c, interval: 864s }\n",
     "The plan DOES NOT FIT: 1 of 2 jobs runs less often than wanted.\n\n"
     "job   priority  wanted  planned  stretch  calls a run  because of\n"
     "must  critical     60s      60s        1            1  -\n"
     "may   normal      864s   10368s       12            1  q (here)\n\n"
     "limit     for jobs  within  wanted  planned  lasts\n"
     "q (here)       720     24h    1540  1448.34  NO: until 1970-01-01T11:55:51Z\n\n"
     "What would have to change:\n"
     "  must at 60s fits when q (here) is 2012 or the interval is 121.406s\n"
     "  may at 864s fits when q (here) is 2139\n"},
    {"only critical ones",
     HEAD "  - { name: q, " DAILY "max: 1000 }\n" TAIL
          "- { name: must, account: me, endpoint: /c, interval: 60s, priority: critical }\n",
     "The plan DOES NOT FIT: there is no job that may be stretched.\n\n"
     "job   priority  wanted  planned  stretch  calls a run  because of\n"
     "must  critical     60s      60s        1            1  -\n\n"
     "limit     for jobs  within  wanted  planned  lasts\n"
     "q (here)       720     24h    1440     1440  NO: until 1970-01-01T12:00:00Z\n\n"
     "What would have to change:\n"
     "  must at 60s fits when q (here) is 1999 or the interval is 2m\n"},
    /*
     * All but the last must grow; 85 an hour have 68 - 6 = 62 for 62 minutes. Of more than three limits only the number
     * is told.
     */
    {"several limits",
     HEAD "  - { name: a, " DAILY "max: 1000 }\n  - { name: b, " DAILY "max: 500, scope: { by: [account] } }\n"
          "  - { name: c, kind: quota, window: { rolling: 1h }, max: 62 }\n  - { name: d, " DAILY "max: 750 }\n"
          "  - { name: e, " DAILY "max: 625 }\n  - { name: f, " DAILY "max: 1999 }\n" TAIL
          "- { name: j, account: me, endpoint: /c, interval: 60s }\n",
     "The plan fits: 1 of 1 jobs runs less often than wanted.\n\n"
     "job  priority  wanted  planned  stretch  calls a run  because of\n"
     "j    normal       60s       4m        4            1  b (me)\n\n"
     "limit     for jobs  within  wanted  planned  lasts\n"
     "a (here)       720     24h    1440      360  yes\n"
     "b (me)         360     24h    1440      360  yes\n"
     "c (here)        45     62m      62     15.5  yes\n"
     "d (here)       540     24h    1440      360  yes\n"
     "e (here)       450     24h    1440      360  yes\n"
     "f (here)      1440     24h    1440      360  yes\n\n"
     "What would have to change:\n"
     "  j at 60s fits when a (here) is 1999 and b (me) is 1999 and c (here) is 85 and 2 more are larger or the "
     "interval "
     "is 4m\n"},
    /* No maximum is enough, and no interval while the critical one takes all. */
    {"hopeless",
     HEAD "  - { name: q, kind: quota, window: { period: day }, max: 1, counts: cost }\n" TAIL
          "- { name: i, account: me, endpoint: /c, interval: 1ms, cost: 100000, priority: critical }\n"
          "- { name: j, account: me, endpoint: /c, interval: 1s }\n",
     "The plan DOES NOT FIT: 1 of 2 jobs runs less often than wanted.\n\n"
     "job  priority  wanted  planned  stretch  calls a run  because of\n"
     "i    critical     1ms      1ms        1            1  -\n"
     "j    normal        1s      12s       12            1  q (here)\n\n"
     "limit     for jobs  within         wanted        planned  lasts\n"
     "q (here)      0.72     24h  8640000086400  8640000007200  NO: until 1970-01-01T00:00:00Z\n\n"
     "What would have to change:\n"
     "  i at 1ms cannot be made to fit\n"
     "  j at 1s cannot be made to fit\n"},
};

static void table_of(const char *text, char *out, size_t room)
{
    ration_config *config = config_of(text, &plain);
    ration_fault fault = {"", ""};
    rn_jobs *jobs = NULL;
    rn_output table;

    rn_output_init(&table, rn_mem_default(), room);
    CHECK_EQ(rn_jobs_new(config, &jobs), RATION_OK);
    CHECK_EQ(rn_jobs_plan(jobs, ration_time_of(0), NULL, NULL, NULL, &fault), RATION_OK);
    rn_jobs_table(jobs, &table);
    CHECK_EQ(table.err, RATION_OK);
    CHECK(table.size < room);
    memcpy(out, table.data, table.size);
    out[table.size] = '\0';
    rn_output_fini(&table);
    rn_jobs_free(jobs);
    ration_config_free(config);
}

static void tables_say_what_would_have_to_change(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char got[8192];

        CHECK_ROW(tables[i].why);
        table_of(tables[i].config, got, sizeof got);
        CHECK_STR(got, tables[i].want);
    }
}

static void fault_write(void *ctx, size_t index, const char *text, const char *hint)
{
    rn_builder *b = ctx;

    rn_builder_int(b, (int64_t)index);
    rn_builder_str(b, ": ");
    rn_builder_str(b, text);
    rn_builder_str(b, " (");
    rn_builder_str(b, hint);
    rn_builder_str(b, ")\n");
}

static void faults_stand_at_the_heaviest_job(void **state)
{
    ration_config *config =
        config_of(HEAD "  - { name: q, " DAILY "max: 1000 }\n  - { name: r, kind: rate, rate: 1/s }\n  - { name: s, "
                       "kind: quota, window: { rolling: 24h }, max: 200000 }\n" TAIL
                       "- { name: i, account: me, endpoint: /c, interval: 10s }\n"
                       "- { name: j, account: me, endpoint: /c, interval: 60s, priority: critical, estimate: { "
                       "pagesPerRun: 61 } }\n",
                  &plain);
    ration_fault fault = {"", ""};
    rn_jobs *jobs = NULL;
    char text[2048] = "";
    rn_builder b;

    (void)state;
    rn_builder_init(&b, text, sizeof text);
    CHECK_EQ(rn_jobs_new(config, &jobs), RATION_OK);
    CHECK_EQ(rn_jobs_faults(jobs, &b, fault_write), RATION_OK); /* there is no plan */
    CHECK_EQ(rn_jobs_plan(jobs, ration_time_of(0), NULL, NULL, NULL, &fault), RATION_OK);
    CHECK_EQ(rn_jobs_faults(jobs, &b, fault_write), RATION_OK);

    /*
     * 1440 * 61 + 86400 / 120. At `q` 88560 are needed: 122999 has U - R = 98399 - 9839. What `i` takes, 720, is all
     * there is: no interval of `j` alone is enough. `s` does not matter: it has room.
     */
    CHECK_STR(text,
              "1: the plan does not fit: q (here) has 720 for jobs in 24h and they use 88560, stretched to the "
              "utmost; critical ones, which never are, 87840 (j at 60s fits when q (here) is 122999 and r (here) "
              "is 1.016667/s)\n"
              "1: the plan does not fit: a run takes 61s, and its interval is 60s (j at 60s fits when q (here) is "
              "122999 and r (here) is 1.016667/s)\n");
    rn_jobs_free(jobs);
    ration_config_free(config);
}

static void of_equal_jobs_the_first(void **state)
{
    ration_config *config = config_of(HEAD "  - { name: q, " DAILY "max: 10 }\n" TAIL
                                           "- { name: i, account: me, endpoint: /c, interval: 1s }\n"
                                           "- { name: j, account: me, endpoint: /c, interval: 1s }\n",
                                      &plain);
    ration_fault fault = {"", ""};
    rn_jobs *jobs = NULL;
    char text[2048] = "";
    rn_builder b;

    (void)state;
    rn_builder_init(&b, text, sizeof text);
    CHECK_EQ(rn_jobs_new(config, &jobs), RATION_OK);
    CHECK_EQ(rn_jobs_plan(jobs, ration_time_of(0), NULL, NULL, NULL, &fault), RATION_OK);
    CHECK_EQ(rn_jobs_faults(jobs, &b, fault_write), RATION_OK);
    CHECK_STR(text,
              "0: the plan does not fit: q (here) has 8 for jobs in 24h and they use 14400, stretched to the utmost "
              "(i at 1s fits when q (here) is 239999)\n");
    rn_jobs_free(jobs);
    ration_config_free(config);
}

static void spans_as_a_config_has_them(void **state)
{
    static const struct {
        int64_t us;
        const char *want;
    } rows[] = {
        {1, "1ms"},
        {1000, "1ms"},
        {1001, "2ms"},
        {999999, "1s"},
        {1500000, "1.5s"},
        {60 * SECOND, "60s"},
        {119 * SECOND, "119s"},
        {120 * SECOND, "2m"},
        {HOUR, "60m"},
        {2 * HOUR, "2h"},
        {24 * HOUR, "24h"},
        {25 * HOUR, "25h"},
        {INT64_C(7) * 24 * HOUR, "7d"},
        {HOUR + 1, "3600.001s"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[64];
        rn_builder b;

        rn_builder_init(&b, text, sizeof text);
        rn_builder_span(&b, rows[i].us);
        CHECK_STR(text, rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_say_what_would_have_to_change),
        cmocka_unit_test(faults_stand_at_the_heaviest_job),
        cmocka_unit_test(of_equal_jobs_the_first),
        cmocka_unit_test(spans_as_a_config_has_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
