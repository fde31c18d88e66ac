/* SPDX-License-Identifier: MIT */
/*
 * What a decision costs: submit and release of one request, with 1, 3 and 6 limits, over one hot key and a million,
 * refused, and through queues of 10 to 100 000. Wall time a round, and the bytes that the engine holds after the last.
 * bench_instructions.py counts instructions by the same program: two runs, and the difference of their counts.
 *
 * usage: bench_engine [NAME [ROUNDS]]
 */
#include <ration/ration.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define MILLION 1000000L

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
static const ration_limit_rule rate_of_key[] = {
    {.name = "calls",
     .kind = RATION_KIND_RATE,
     .scope = by_organization,
     .scope_count = 2,
     .rate = {UNIT, 3600 * SECOND},
     .burst = 100 * UNIT,
     .margin = RATION_UNSET},
};
static const ration_endpoint_rule endpoints[] = {{.path = "/organizations/{organizationId}/**"},
                                                 {.path = "/networks/{networkId}/**"}};

static ration_engine *engine_of(const ration_limit_rule *limits, size_t count)
{
    const ration_provider_rule provider = {
        .name = "meraki", .limits = limits, .limit_count = count, .endpoints = endpoints, .endpoint_count = 2};
    const ration_account_rule account = {.name = "acme", .provider = "meraki"};
    const ration_rules rules = {.max_waiters = 200000,
                                .max_waiters_per_tenant = 200000,
                                .providers = &provider,
                                .provider_count = 1,
                                .accounts = &account,
                                .account_count = 1};
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

/* What a queue took once it stood; 0 for the other benches. */
static double queue_seconds;

static double seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void granted(ration_engine *engine, long rounds)
{
    for (long i = 0; i < rounds; i++) {
        const ration_decision d = ask(engine, i * 3, "/organizations/549236/devices/statuses", 0);

        if (d.result != RATION_GRANTED)
            abort();
        give_back(engine, i * 3 + 1, d.lease);
    }
}

static void keys_of(ration_engine *engine, long rounds, long count)
{
    char path[64];

    for (long i = 0; i < rounds; i++) {
        (void)snprintf(path, sizeof path, "/organizations/%ld/devices/statuses", i * 7919 % count);
        give_back(engine, i * 3, ask(engine, i * 3, path, 0).lease);
    }
}

static void keys(ration_engine *engine, long rounds)
{
    keys_of(engine, rounds, 10000);
}

static void million(ration_engine *engine, long rounds)
{
    keys_of(engine, rounds, MILLION);
}

static void refused(ration_engine *engine, long rounds)
{
    (void)ask(engine, 0, "/", 0);
    for (long i = 0; i < rounds; i++) {
        if (ask(engine, i, "/", 0).result != RATION_REFUSED)
            abort();
    }
}

/* One holds, so many wait; each round ends one, which grants one, and one more begins to wait. */
static void queue_of(ration_engine *engine, long rounds, long waiters)
{
    ration_lease held = ask(engine, 0, "/", 0).lease;
    ration_event event;

    for (long i = 0; i < waiters; i++)
        (void)ask(engine, 0, "/", RATION_FOREVER_US);
    const double start = seconds();
    for (long i = 0; i < rounds; i++) {
        (void)ask(engine, i, "/", RATION_FOREVER_US);
        give_back(engine, i, held);
        if (!ration_engine_next_event(engine, &event) || event.type != RATION_EVENT_GRANTED)
            abort();
        held = event.lease;
    }
    queue_seconds = seconds() - start;
}

static void queue_10(ration_engine *engine, long rounds)
{
    queue_of(engine, rounds, 10);
}

static void queue_1000(ration_engine *engine, long rounds)
{
    queue_of(engine, rounds, 1000);
}

static void queue_100000(ration_engine *engine, long rounds)
{
    queue_of(engine, rounds, 100000);
}

static const struct {
    const char *name;
    const char *what;
    const ration_limit_rule *limits;
    size_t count;
    void (*play)(ration_engine *engine, long rounds);
    long rounds;
} benches[] = {
    {"none", "submit and release, no limit", six, 0, granted, 2 * MILLION},
    {"one", "submit and release, one limit", six, 1, granted, 2 * MILLION},
    {"three", "submit and release, three limits", six, 3, granted, MILLION},
    {"six", "submit and release, six limits", six, 6, granted, MILLION},
    {"keys", "six limits, two of them over 10 000 keys", six, 6, keys, MILLION},
    {"million", "six limits, two of them over a million keys", six, 6, million, 3 * MILLION},
    {"rates", "one rate limit over a million keys", rate_of_key, 1, million, 3 * MILLION},
    {"refused", "a refusal", slot, 1, refused, 2 * MILLION},
    {"queue10", "waiting behind 10, granted, released", slot, 1, queue_10, MILLION},
    {"queue1k", "waiting behind 1 000, granted, released", slot, 1, queue_1000, MILLION},
    {"queue100k", "waiting behind 100 000, granted, released", slot, 1, queue_100000, MILLION},
};

/* What malloc has given out. */
static size_t bytes_held(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

int main(int argc, char **argv)
{
    int status = EXIT_FAILURE; /* no bench has that name */

    for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++) {
        if (argc > 1 && strcmp(argv[1], benches[i].name) != 0)
            continue;

        const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : benches[i].rounds;
        const size_t before = bytes_held();
        ration_engine *engine = engine_of(benches[i].limits, benches[i].count);

        queue_seconds = 0;
        const double start = seconds();
        benches[i].play(engine, rounds);
        const double spent = queue_seconds > 0 ? queue_seconds : seconds() - start;
        (void)printf("%-9s %7.0f ns %11zu bytes  %s\n", benches[i].name, spent * 1e9 / (double)rounds,
                     bytes_held() - before, benches[i].what);
        ration_engine_free(engine);
        status = EXIT_SUCCESS;
    }
    return status;
}
