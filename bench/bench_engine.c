/* SPDX-License-Identifier: MIT */
/*
 * What a decision costs: submit and release of one request, with one limit, with six, with many keys, refused, and
 * through the queue. Wall time a pair; `perf stat` or callgrind tell instructions:
 *
 *     valgrind --tool=callgrind --toggle-collect=ration_engine_submit build-release/bench/bench_engine six 20000
 *
 * usage: bench_engine [NAME [ROUNDS]]
 */
#include <ration/ration.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)

static const char *const by_account[] = {"account"};
static const char *const by_provider[] = {"provider"};
static const char *const by_organization[] = {"account", "var:organizationId"};
static const char *const by_tenant[] = {"tenant"};
static const ration_limit_rule six[] = {
    {.name = "calls",
     .kind = RATION_KIND_RATE,
     .scope = by_account,
     .scope_count = 1,
     .rate = {UNIT * 1000000, SECOND},
     .burst = 1000 * UNIT,
     .margin = RATION_UNSET},
    {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_organization, .scope_count = 2, .max = 100 * UNIT},
    {.name = "day",
     .kind = RATION_KIND_QUOTA,
     .scope = by_account,
     .scope_count = 1,
     .max = INT64_C(1) << 50,
     .window = {.period = RATION_PERIOD_DAY},
     .arrival_us = RATION_UNSET},
    {.name = "cost",
     .kind = RATION_KIND_RATE,
     .counts = RATION_COUNTS_COST,
     .scope = by_tenant,
     .scope_count = 1,
     .rate = {UNIT * 1000000, SECOND},
     .burst = 1000 * UNIT,
     .margin = RATION_UNSET},
    {.name = "tokens",
     .kind = RATION_KIND_CONCURRENCY,
     .counts = RATION_COUNTS_COST,
     .scope = by_provider,
     .scope_count = 1,
     .max = 1000 * UNIT},
    {.name = "rolling",
     .kind = RATION_KIND_QUOTA,
     .scope = by_organization,
     .scope_count = 2,
     .max = INT64_C(1) << 50,
     .window = {.rolling_us = 3600 * SECOND},
     .arrival_us = RATION_UNSET},
};
static const ration_limit_rule slot[] = {
    {.name = "slot", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = UNIT},
};
static const ration_endpoint_rule endpoints[] = {{.path = "/organizations/{organizationId}/**"},
                                                 {.path = "/networks/{networkId}/**"}};

static ration_engine *engine_of(const ration_limit_rule *limits, size_t count)
{
    const ration_provider_rule provider = {
        .name = "meraki", .limits = limits, .limit_count = count, .endpoints = endpoints, .endpoint_count = 2};
    const ration_account_rule account = {.name = "acme", .provider = "meraki"};
    const ration_rules rules = {.providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const ration_engine_options options = {.rules = &rules};
    ration_engine *engine = NULL;

    if (ration_engine_new(&options, ration_time_of(0), &engine, NULL) != RATION_OK)
        abort();
    return engine;
}

static ration_decision ask(ration_engine *engine, int64_t now_us, const char *path, int64_t wait_us)
{
    ration_request r = RATION_REQUEST_INIT;
    ration_decision d = {.result = RATION_REFUSED};

    r.account = ration_text_of("acme");
    r.method = ration_text_of("GET");
    r.path = ration_text_of(path);
    r.tenant = ration_text_of("globex");
    r.wait_us = wait_us;
    if (ration_engine_submit(engine, ration_time_of(now_us), &r, &d) != RATION_OK)
        abort();
    return d;
}

static void give_back(ration_engine *engine, int64_t now_us, ration_lease lease)
{
    if (ration_engine_release(engine, ration_time_of(now_us), lease, NULL) != RATION_OK)
        abort();
}

/* ---- each plays so many rounds ---- */

static void granted(ration_engine *engine, long rounds)
{
    for (long i = 0; i < rounds; i++) {
        const ration_decision d = ask(engine, i * 3, "/organizations/549236/devices/statuses", 0);

        if (d.result != RATION_GRANTED)
            abort();
        give_back(engine, i * 3 + 1, d.lease);
    }
}

static void keys(ration_engine *engine, long rounds)
{
    char path[64];

    for (long i = 0; i < rounds; i++) {
        (void)snprintf(path, sizeof path, "/organizations/%ld/devices/statuses", i * 7919 % 10000);
        give_back(engine, i * 3, ask(engine, i * 3, path, 0).lease);
    }
}

static void refused(ration_engine *engine, long rounds)
{
    (void)ask(engine, 0, "/", 0);
    for (long i = 0; i < rounds; i++) {
        if (ask(engine, i, "/", 0).result != RATION_REFUSED)
            abort();
    }
}

/* One holds, a hundred wait; each round ends one, which grants one, and one more begins to wait. */
static void queued(ration_engine *engine, long rounds)
{
    ration_lease held = ask(engine, 0, "/", 0).lease;
    ration_event event;

    for (int i = 0; i < 100; i++)
        (void)ask(engine, 0, "/", RATION_FOREVER_US);
    for (long i = 0; i < rounds; i++) {
        (void)ask(engine, i, "/", RATION_FOREVER_US);
        give_back(engine, i, held);
        if (!ration_engine_next_event(engine, &event) || event.type != RATION_EVENT_GRANTED)
            abort();
        held = event.lease;
    }
}

static const struct {
    const char *name;
    const char *what;
    const ration_limit_rule *limits;
    size_t count;
    void (*play)(ration_engine *engine, long rounds);
    long rounds;
} benches[] = {
    {"none", "submit and release, no limit", six, 0, granted, 2000000},
    {"one", "submit and release, one limit", six, 1, granted, 2000000},
    {"six", "submit and release, six limits", six, 6, granted, 1000000},
    {"keys", "the same over 10 000 scope keys", six, 6, keys, 1000000},
    {"refused", "a refusal", slot, 1, refused, 2000000},
    {"queued", "waiting behind 100, granted, released", slot, 1, queued, 1000000},
};

static double seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++) {
        if (argc > 1 && strcmp(argv[1], benches[i].name) != 0)
            continue;

        const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : benches[i].rounds;
        ration_engine *engine = engine_of(benches[i].limits, benches[i].count);

        const double start = seconds();

        benches[i].play(engine, rounds);
        (void)printf("%-8s %7.0f ns  %s\n", benches[i].name, (seconds() - start) * 1e9 / (double)rounds,
                     benches[i].what);
        ration_engine_free(engine);
    }
    return EXIT_SUCCESS;
}
