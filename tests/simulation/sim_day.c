/* SPDX-License-Identifier: MIT */
/*
 * Simulated days, many seeds: what must hold of every one of them. `sim_day [SEEDS [FIRST]]`.
 *
 * Three configs. The first is plain: one daily quota that gives a third of what four jobs want. The second has what is
 * easy to get wrong: shares, an hourly and a rolling quota, one in cost, a bucket that is slow to refill, a circuit
 * breaker, two accounts. In the third nothing is left over that could hide a call that was forgotten.
 */
#include "support/config.h"

#include <stdio.h>

#include "simulate/day.h"

#define DAY_US (INT64_C(86400) * 1000000)

static uint64_t first = 1;
static uint64_t seeds = 20;

static const char plain[] =
    "settings: { ledger: { path: day.db } }\n"
    "providers:\n"
    "  - name: fleet\n"
    "    baseUrl: https://api.example.com\n"
    "    endpoints: [ '/organizations/{organizationId}/**' ]\n"
    "    limits:\n"
    "      - { name: rate, kind: rate, rate: 10/s, burst: 10, scope: { by: [account] } }\n"
    "      - { name: slots, kind: concurrency, max: 10, scope: { by: [account] } }\n"
    "      - { name: daily, kind: quota, max: 8000, window: { period: day, resetAt: '00:00' }, scope: { by: [account] "
    "},\n"
    "          sync: { limitHeader: X-Limit, remainingHeader: X-Remaining }, durability: strict }\n"
    "accounts: [ { name: a, provider: fleet } ]\n"
    "jobs:\n"
    "  - { name: heartbeat, account: a, endpoint: 'GET /organizations/{organizationId}/heartbeat', interval: 60s,\n"
    "      priority: critical }\n"
    "  - { name: status, account: a, endpoint: 'GET /organizations/{organizationId}/status', interval: 60s,\n"
    "      priority: high, fanOut: { name: orgs, estimate: 3 }, estimate: { pagesPerRun: 2 } }\n"
    "  - { name: clients, account: a, endpoint: 'GET /organizations/{organizationId}/clients', interval: 3m,\n"
    "      priority: normal, fanOut: { name: orgs, estimate: 3 }, estimate: { pagesPerRun: 4 } }\n"
    "  - { name: inventory, account: a, endpoint: 'GET /organizations/{organizationId}/inventory', interval: 5m,\n"
    "      priority: low, fanOut: { name: orgs, estimate: 3 }, estimate: { pagesPerRun: 6 } }\n";

static const char hard[] =
    "settings: { ledger: { path: day.db }, budget: { retryReserve: 10% } }\n"
    "providers:\n"
    "  - name: shop\n"
    "    baseUrl: https://shop.example.com\n"
    "    endpoints: [ '/shops/{shopId}/**', { path: '/reports/**', cost: 2.5 } ]\n"
    "    limits:\n"
    "      - { name: slow, kind: rate, rate: 150/15m, burst: 20, scope: { by: [account] } }\n"
    "      - { name: slots, kind: concurrency, max: 4, scope: { by: [account] } }\n"
    "      - { name: hourly, kind: quota, max: 400, window: { period: hour }, scope: { by: [account] },\n"
    "          sync: { limitHeader: X-Limit, remainingHeader: X-Left, resetHeader: X-Reset },\n"
    "          durability: strict }\n"
    "      - { name: daily, kind: quota, max: 6000, counts: cost, scope: { by: [account] },\n"
    "          window: { period: day, resetAt: '00:00', timezone: America/Los_Angeles },\n"
    "          sync: { remainingHeader: X-Day-Left }, durability: strict }\n"
    "    breaker: { strategy: consecutive, threshold: 5, recovery: probe, backoff: { initial: 1s, multiplier: 2,\n"
    "        max: 30s } }\n"
    "  - name: mail\n"
    "    baseUrl: https://mail.example.com\n"
    "    endpoints: [ '/lists/{list}' ]\n"
    "    limits:\n"
    "      - { name: rate, kind: rate, rate: 5/s, scope: { by: [account] } }\n"
    "      - { name: rolling, kind: quota, max: 600, window: { rolling: 1h }, scope: { by: [account] },\n"
    "          sync: { standard: true }, durability: strict }\n"
    "accounts:\n"
    "  - { name: eu, provider: shop, budget: { share: 80% } }\n"
    "  - { name: us, provider: shop }\n"
    "  - { name: news, provider: mail }\n"
    "jobs:\n"
    "  - { name: eu-orders, account: eu, endpoint: 'GET /shops/{shopId}/orders', interval: 60s, priority: high,\n"
    "      fanOut: { name: shops, estimate: 5 }, estimate: { pagesPerRun: 2 } }\n"
    "  - { name: eu-stock, account: eu, endpoint: 'GET /shops/{shopId}/stock', interval: 10m, priority: low,\n"
    "      fanOut: { name: shops, estimate: 5 }, estimate: { pagesPerRun: 3 } }\n"
    "  - { name: eu-alive, account: eu, endpoint: 'GET /shops/{shopId}/alive', interval: 2m, priority: critical }\n"
    "  - { name: us-orders, account: us, endpoint: 'GET /shops/{shopId}/orders', interval: 30s, priority: normal,\n"
    "      estimate: { pagesPerRun: 4 } }\n"
    "  - { name: us-report, account: us, endpoint: 'GET /reports/daily', interval: 20m, priority: high,\n"
    "      estimate: { pagesPerRun: 10 } }\n"
    "  - { name: letters, account: news, endpoint: 'GET /lists/{list}', interval: 60s, priority: normal,\n"
    "      fanOut: { name: lists, estimate: 8 }, estimate: { pagesPerRun: 3 } }\n"
    "  - { name: bounces, account: news, endpoint: 'GET /lists/{list}', interval: 30s, priority: low }\n";

/* One job that wants twice what there is, nothing kept in reserve, and a provider that tells nothing: whatever a death
 * makes the gateway forget is spent twice. */
#define SHARP(durability)                                                                                              \
    "settings: { ledger: { path: day.db }, budget: { retryReserve: 0% } }\n"                                           \
    "providers:\n"                                                                                                     \
    "  - name: fleet\n"                                                                                                \
    "    baseUrl: https://api.example.com\n"                                                                           \
    "    limits:\n"                                                                                                    \
    "      - { name: daily, kind: quota, max: 20000, window: { period: day }, durability: " durability " }\n"          \
    "accounts: [ { name: a, provider: fleet } ]\n"                                                                     \
    "jobs: [ { name: j, account: a, endpoint: 'GET /x', interval: 2s, priority: critical } ]\n"

static void play(const ration_config *config, uint64_t seed, unsigned faults, rn_day_result *out)
{
    const rn_day_options options = {
        .config = config,
        .span_us = DAY_US,
        .behaviour = {.seed = seed, .latency = {150000, 50000}, .errors = {faults != 0 ? 1 : 0, 100}},
        .faults = faults,
    };
    rn_day_error error;
    const int err = rn_day_run(&options, out, &error);

    CHECK_STR(error.text, "");
    CHECK_EQ(err, 0);
}

static void row(const char *config, uint64_t seed, unsigned faults)
{
    static char text[80];

    (void)snprintf(text, sizeof text, "config %s, seed %" PRIu64 ", faults %#x", config, seed, faults);
    CHECK_ROW(text);
}

/* ---- what holds of a day */

static const rn_day_job *job_of(const rn_day_result *r, ration_priority priority)
{
    const rn_day_job *found = r->jobs;

    for (size_t i = 0; i < r->job_count; i++)
        found = r->jobs[i].job->priority == priority ? &r->jobs[i] : found;
    return found;
}

static int64_t stretch_at(const rn_day_job *job, int64_t at_us)
{
    int64_t effective_us = job->job->interval_us;

    for (size_t i = 0; i < job->interval_count && job->intervals[i].at_us <= at_us; i++)
        effective_us = job->intervals[i].effective_us;
    return effective_us * 1000 / job->job->interval_us;
}

/* Where all jobs have one quota, none is stretched while a lower one is not at its utmost. */
static void check_ladder(const rn_day_result *r, int64_t utmost)
{
    for (size_t i = 0; i < r->job_count; i++) {
        const rn_day_job *moved = &r->jobs[i];

        for (size_t k = 0; k < moved->interval_count; k++) {
            const int64_t at_us = moved->intervals[k].at_us;

            for (int p = RATION_PRIORITY_CRITICAL; p < RATION_PRIORITY_LOW; p++) {
                const rn_day_job *higher = job_of(r, (ration_priority)p);
                const rn_day_job *lower = job_of(r, (ration_priority)(p + 1));

                if (stretch_at(higher, at_us) > 1000)
                    CHECK_EQ(stretch_at(lower, at_us), utmost * 1000);
            }
        }
    }
}

/* A restart is no new day: who is stretched to the utmost stays so, until the window's end is near. */
static void check_lowest(const rn_day_result *r, int64_t utmost)
{
    const rn_day_job *lowest = job_of(r, RATION_PRIORITY_LOW);

    for (size_t i = 0; i < lowest->interval_count && lowest->intervals[i].at_us < DAY_US / 10 * 9; i++)
        CHECK_EQ(lowest->intervals[i].effective_us, utmost * lowest->job->interval_us);
}

static void check_critical(const rn_day_result *r)
{
    for (size_t i = 0; i < r->job_count; i++) {
        if (r->jobs[i].job->priority == RATION_PRIORITY_CRITICAL)
            CHECK_EQ(r->jobs[i].stretch_most, RATION_UNIT);
    }
}

/* No provider saw more than it allows, of anything. */
static void check_kept(const rn_day_result *r)
{
    CHECK_EQ(r->limited[RN_DAY_BY_QUOTA], 0);
    CHECK_EQ(r->limited[RN_DAY_BY_RATE], 0);
    CHECK_EQ(r->limited[RN_DAY_BY_CONCURRENCY], 0);
    CHECK_EQ(r->limited[RN_DAY_BY_OTHER], 0);
    for (size_t i = 0; i < r->quota_count; i++)
        CHECK_EQ(r->quotas[i].overspent, 0);
    CHECK(rn_day_passed(r));
}

static void test_a_third_of_what_is_wanted(void **state)
{
    ration_config *config = config_of(plain, NULL);

    (void)state;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        rn_day_result r;

        row("plain", seed, 0);
        play(config, seed, 0, &r);
        check_kept(&r);
        check_critical(&r);
        check_ladder(&r, 12);
        CHECK_EQ(r.classes[RATION_PRIORITY_CRITICAL].refused, 0);
        CHECK_EQ(r.classes[RATION_PRIORITY_CRITICAL].sent, 1440);
        CHECK_EQ(r.quota_count, 1);
        CHECK_EQ(r.quotas[0].windows, 1);
        CHECK(r.quotas[0].spent * 100 >= (r.quotas[0].usable - r.quotas[0].reserve) * 95);
        rn_day_result_fini(&r);
    }
    ration_config_free(config);
}

static void test_every_fault(void **state)
{
    ration_config *config = config_of(plain, NULL);

    (void)state;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        rn_day_result r;

        row("plain", seed, RN_DAY_ALL);
        play(config, seed, RN_DAY_ALL, &r);
        check_kept(&r);
        check_critical(&r);
        check_ladder(&r, 12);
        check_lowest(&r, 12);
        CHECK(r.kills >= 3);
        CHECK(r.restarts >= 1);
        CHECK(r.quotas[0].external >= 700 * RATION_UNIT);
        CHECK((r.quotas[0].spent + r.quotas[0].external) * 100 >= (r.quotas[0].usable - r.quotas[0].reserve) * 95);
        rn_day_result_fini(&r);
    }
    ration_config_free(config);
}

static void test_hard_quotas(void **state)
{
    ration_config *config = config_of(hard, NULL);

    (void)state;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        rn_day_result r;

        row("hard", seed, 0);
        play(config, seed, 0, &r);
        check_kept(&r);
        check_critical(&r);
        rn_day_result_fini(&r);
    }
    ration_config_free(config);
}

static void test_hard_quotas_and_every_fault(void **state)
{
    ration_config *config = config_of(hard, NULL);

    (void)state;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        rn_day_result r;

        row("hard", seed, RN_DAY_ALL);
        play(config, seed, RN_DAY_ALL, &r);
        CHECK(rn_day_passed(&r));
        check_kept(&r);
        check_critical(&r);
        rn_day_result_fini(&r);
    }
    ration_config_free(config);
}

static void test_a_strict_quota_forgets_nothing(void **state)
{
    const unsigned faults = RN_DAY_LATENCY | RN_DAY_ERRORS | RN_DAY_RESTART | RN_DAY_KILL;
    const int64_t block = 200 * RATION_UNIT;
    ration_config *config = config_of(SHARP("strict"), NULL);

    (void)state;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        rn_day_result r;

        row("strict", seed, faults);
        play(config, seed, faults, &r);
        check_kept(&r);
        CHECK(r.kills >= 3);
        CHECK(r.quotas[0].spent <= r.quotas[0].usable);
        CHECK(r.quotas[0].spent >= r.quotas[0].usable - (int64_t)r.kills * block);
        CHECK(r.classes[RATION_PRIORITY_CRITICAL].refusals[RATION_REASON_QUOTA_EXHAUSTED] > 0);
        rn_day_result_fini(&r);
    }
    ration_config_free(config);
}

/* The same day without: so the one above can fail. */
static void test_a_relaxed_quota_forgets(void **state)
{
    ration_config *config = config_of(SHARP("relaxed"), NULL);
    uint64_t refused = 0;

    (void)state;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        rn_day_result r;

        row("relaxed", seed, RN_DAY_KILL);
        play(config, seed, RN_DAY_KILL, &r);
        CHECK(r.quotas[0].refused == r.limited[RN_DAY_BY_QUOTA]);
        CHECK((r.quotas[0].overspent > 0) == (r.limited[RN_DAY_BY_QUOTA] > 0));
        CHECK(rn_day_passed(&r) == (r.limited[RN_DAY_BY_QUOTA] == 0));
        refused += r.limited[RN_DAY_BY_QUOTA];
        rn_day_result_fini(&r);
    }
    CHECK(refused > 0);
    ration_config_free(config);
}

static void test_a_seed_is_a_day(void **state)
{
    ration_config *config = config_of(hard, NULL);
    uint64_t hashes[3];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        rn_day_result r;

        play(config, first + i / 2, RN_DAY_ALL, &r);
        hashes[i] = r.hash;
        rn_day_result_fini(&r);
    }
    CHECK(hashes[0] == hashes[1]);
    CHECK(hashes[0] != hashes[2]);
    ration_config_free(config);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_third_of_what_is_wanted),
        cmocka_unit_test(test_every_fault),
        cmocka_unit_test(test_hard_quotas),
        cmocka_unit_test(test_hard_quotas_and_every_fault),
        cmocka_unit_test(test_a_strict_quota_forgets_nothing),
        cmocka_unit_test(test_a_relaxed_quota_forgets),
        cmocka_unit_test(test_a_seed_is_a_day),
    };

    if (argc > 1)
        seeds = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        first = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
