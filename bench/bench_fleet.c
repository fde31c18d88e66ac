/* SPDX-License-Identifier: MIT */
/*
 * usage: bench_fleet URL [ROW]
 *
 * What an admission and a release cost in a Redis: commands of scripts, time of scripts, and processor time of the
 * whole call, by kind of limit, beside a script that does nothing, in the same run. By the store's own figures (INFO),
 * so that neither the way there nor this program counts. The store should do nothing else meanwhile. The rate is that
 * of an empty script's processor time to the call's. With ROW only the rows whose names contain it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ration/config.h>

#include "base/text.h"
#include "fleet/fleet.h"

#define BATCHES 200
#define PER_BATCH 20
#define CALLS (PER_BATCH * BATCHES)
#define TIMEOUT_US (5 * INT64_C(1000000))

#define RULES(LIMITS)                                                                                                  \
    "providers: [ { name: p, baseUrl: 'http://127.0.0.1:1', limits: [ " LIMITS " ] } ]\n"                              \
    "accounts: [ { name: a, provider: p } ]\n"
#define RATE "{ name: r, kind: rate, rate: 1000000/s, burst: 1000, scope: { by: [account] } }"
#define SLOTS "{ name: c, kind: concurrency, max: 1000, scope: { by: [account] } }"
#define DAILY "{ name: q, kind: quota, max: 1000000, window: { period: day }, scope: { by: [account] } }"
#define ROLLING "{ name: o, kind: quota, max: 1000000, window: { rolling: 1h }, scope: { by: [account] } }"
#define SYNCED                                                                                                         \
    "{ name: s, kind: quota, max: 1000000, window: { period: day }, scope: { by: [account] },"                         \
    "  sync: { remainingHeader: X-Left, resetHeader: X-Reset } }"

#define ADAPTIVE "{ name: f, kind: adaptive, initialLimit: 1000, scope: { by: [account] } }"

static const struct row {
    const char *name;
    const char *rules; /* NULL: a share limit of so many tenants */
    int64_t hold_us;
    int tenants;
    int weight; /* of the one that asks; the others have 1000 */
} rows[] = {
    {.name = "no limit", .rules = RULES(""), .hold_us = RATION_UNSET},
    {.name = "rate", .rules = RULES(RATE), .hold_us = RATION_UNSET},
    {.name = "concurrency", .rules = RULES(SLOTS), .hold_us = RATION_UNSET},
    {.name = "concurrency, declared end", .rules = RULES(SLOTS), .hold_us = 1000000},
    {.name = "quota of a day", .rules = RULES(DAILY), .hold_us = RATION_UNSET},
    {.name = "quota of a rolling hour", .rules = RULES(ROLLING), .hold_us = RATION_UNSET},
    {.name = "quota with headers", .rules = RULES(SYNCED), .hold_us = RATION_UNSET},
    {.name = "adaptive", .rules = RULES(ADAPTIVE), .hold_us = RATION_UNSET},
    {.name = "rate, concurrency, quota", .rules = RULES(RATE ", " SLOTS ", " DAILY), .hold_us = RATION_UNSET},
    {.name = "share of 3, its own", .hold_us = RATION_UNSET, .tenants = 3, .weight = 1000},
    {.name = "share of 3, on loan", .hold_us = 1000, .tenants = 3, .weight = 1},
    {.name = "share of 1000, its own", .hold_us = RATION_UNSET, .tenants = 1000, .weight = 1000},
    {.name = "share of 1000, on loan", .hold_us = 1000, .tenants = 1000, .weight = 1},
};

/* What the store has spent since the figures were reset. */
typedef struct figures {
    double script_us; /* a script */
    double cpu_us;    /* of the server, a call with all that belongs to it */
    double commands;  /* of a script */
} figures;

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_fleet: %s\n", what);
    exit(1);
}

static redisReply *command(rn_redis *redis, size_t count, const ration_text *words)
{
    redisReply *reply = NULL;

    if (rn_redis_command(redis, (ration_text){"", 0}, count, words, &reply) != RATION_OK)
        die(redis->text);
    return reply;
}

static double cpu_spent(const char *info)
{
    const char *const user = strstr(info, "used_cpu_user:");
    const char *const system = strstr(info, "used_cpu_sys:");

    if (user == NULL || system == NULL)
        die("the store does not tell its processor time");
    return 1e6 * (strtod(user + strlen("used_cpu_user:"), NULL) + strtod(system + strlen("used_cpu_sys:"), NULL));
}

static double cpu_us(rn_redis *redis)
{
    redisReply *const reply = command(redis, 2, (const ration_text[]){{"INFO", 4}, {"cpu", 3}});
    const double us = cpu_spent(reply->str);

    freeReplyObject(reply);
    return us;
}

static double figures_reset(rn_redis *redis)
{
    freeReplyObject(command(redis, 2, (const ration_text[]){{"CONFIG", 6}, {"RESETSTAT", 9}}));
    return cpu_us(redis);
}

/* Since `figures_reset` has returned `cpu_before`. Of the time, what asking for it costs is taken away. */
static figures figures_read(rn_redis *redis, double cpu_before)
{
    const double cpu_asked = cpu_us(redis);
    const double asking = cpu_us(redis) - cpu_asked;
    redisReply *const reply = command(redis, 2, (const ration_text[]){{"INFO", 4}, {"commandstats", 12}});
    double commands = 0;
    double scripts = 0;
    double script_us = 0;

    for (const char *line = reply->str; (line = strstr(line, "cmdstat_")) != NULL; line++) {
        const char *const name = line + strlen("cmdstat_");
        const char *const calls = strstr(name, ":calls=");
        const char *const us = strstr(name, ",usec=");

        if (calls == NULL || us == NULL)
            break;
        if (strncmp(name, "evalsha:", 8) == 0) {
            scripts = strtod(calls + strlen(":calls="), NULL);
            script_us = strtod(us + strlen(",usec="), NULL);
        } else if (strncmp(name, "config", 6) != 0 && strncmp(name, "info:", 5) != 0) {
            commands += strtod(calls + strlen(":calls="), NULL);
        }
    }
    freeReplyObject(reply);
    if (scripts <= 0)
        return (figures){0};
    return (figures){script_us / scripts, (cpu_asked - cpu_before - asking) / scripts, commands / scripts};
}

static int by_size(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Times: a low quantile of all batches, for what else the machine does costs time, and no commands. */
static figures figures_of(const figures *batches)
{
    static double script_us[BATCHES];
    static double cpu[BATCHES];
    figures all = {0};

    for (int i = 0; i < BATCHES; i++) {
        script_us[i] = batches[i].script_us;
        cpu[i] = batches[i].cpu_us;
        all.commands += batches[i].commands / BATCHES;
    }
    qsort(script_us, BATCHES, sizeof script_us[0], by_size);
    qsort(cpu, BATCHES, sizeof cpu[0], by_size);
    all.script_us = script_us[BATCHES / 10];
    all.cpu_us = cpu[BATCHES / 10];
    return all;
}

static figures empty_script(rn_redis *redis)
{
    static figures batches[BATCHES];
    redisReply *const sha = command(redis, 3, (const ration_text[]){{"SCRIPT", 6}, {"LOAD", 4}, {"return 1", 8}});

    for (int batch = 0; batch < BATCHES; batch++) {
        const double before = figures_reset(redis);

        for (int i = 0; i < PER_BATCH; i++) {
            freeReplyObject(
                command(redis, 3, (const ration_text[]){{"EVALSHA", 7}, {sha->str, (size_t)sha->len}, {"0", 1}}));
        }
        batches[batch] = figures_read(redis, before);
    }
    freeReplyObject(sha);
    return figures_of(batches);
}

static void admit_all(rn_fleet *fleet, const struct row *row, int batch, rn_route **routes)
{
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision;
    char id[24] = "";

    request.account = (ration_text){"a", 1};
    request.hold_us = row->hold_us;
    if (row->tenants > 0)
        request.tenant = (ration_text){"t0", 2};
    request.ttl_us = 30 * INT64_C(1000000);
    for (int i = 0; i < PER_BATCH; i++) {
        const ration_text name = {id, (size_t)snprintf(id, sizeof id, "%d", PER_BATCH * batch + i)};

        if (rn_fleet_submit(fleet, (ration_time){0}, &request, name, &decision, &routes[i]) != RATION_OK)
            die(fleet->text);
        if (routes[i] == NULL)
            die("a request of the bench was refused");
    }
}

static void release_all(rn_fleet *fleet, int batch, rn_route *const *routes)
{
    char id[24] = "";

    for (int i = 0; i < PER_BATCH; i++) {
        const ration_text name = {id, (size_t)snprintf(id, sizeof id, "%d", PER_BATCH * batch + i)};

        if (rn_fleet_release(fleet, (ration_time){0}, routes[i], name, NULL) != RATION_OK)
            die(fleet->text);
        rn_fleet_forget(fleet, routes[i]);
    }
}

/* A ceiling of 100 units for each tenant but the one that asks, of which every loan has one lender. */
static char *share_rules(const struct row *row)
{
    const size_t size = 512 + 16 * (size_t)row->tenants;
    char *const text = malloc(size);
    rn_builder b;

    if (text == NULL)
        die("no memory");
    rn_builder_init(&b, text, size);
    rn_builder_str(&b,
                   "providers: [ { name: p, baseUrl: 'http://127.0.0.1:1', limits: [ { name: s, kind: share, counts: "
                   "requests, reclaimHorizon: 1s, idleAfter: 2s, ceiling: ");
    rn_builder_int(&b, 100 * (int64_t)row->tenants);
    rn_builder_str(&b, ", tenants: { t0: ");
    rn_builder_int(&b, row->weight);
    for (int i = 1; i < row->tenants; i++) {
        rn_builder_str(&b, ", t");
        rn_builder_int(&b, i);
        rn_builder_str(&b, ": 1000");
    }
    rn_builder_str(&b, " } } ] } ]\naccounts: [ { name: a, provider: p } ]\n");
    return text;
}

/* Some leases at a time, as often as it takes. */
static void measure(const char *url, const struct row *row, figures *admit, figures *release)
{
    static figures admits[BATCHES];
    static figures releases[BATCHES];
    ration_config *config = NULL;
    ration_config_faults faults = {0};
    rn_route *routes[PER_BATCH];
    rn_fleet fleet;
    char *const made = row->rules == NULL ? share_rules(row) : NULL;
    const char *const text = made != NULL ? made : row->rules;

    if (ration_config_parse(ration_text_of(text), "bench", NULL, &config, &faults) != RATION_OK)
        die("the rules of the bench have faults");
    free(made);

    const rn_fleet_options options = {
        .rules = ration_config_rules(config),
        .name = "bench",
        .redis = {.url = url, .timeout_us = TIMEOUT_US},
    };

    if (rn_fleet_init(&fleet, &options, (ration_time){0}) != RATION_OK)
        die(fleet.text);
    admit_all(&fleet, row, BATCHES, routes);
    release_all(&fleet, BATCHES, routes);
    for (int batch = 0; batch < BATCHES; batch++) {
        double before = figures_reset(&fleet.redis);

        admit_all(&fleet, row, batch, routes);
        admits[batch] = figures_read(&fleet.redis, before);
        before = figures_reset(&fleet.redis);
        release_all(&fleet, batch, routes);
        releases[batch] = figures_read(&fleet.redis, before);
    }
    *admit = figures_of(admits);
    *release = figures_of(releases);
    (void)rn_fleet_erase(&fleet);
    rn_fleet_fini(&fleet);
    ration_config_free(config);
}

int main(int argc, char **argv)
{
    rn_redis redis;

    if (argc != 2 && argc != 3) {
        (void)fprintf(stderr, "usage: bench_fleet URL [ROW]\n");
        return 2;
    }
    if (rn_redis_open(&redis, &(rn_redis_options){.url = argv[1], .timeout_us = TIMEOUT_US}) != RATION_OK)
        die(redis.text);

    const figures empty = empty_script(&redis);

    (void)printf(
        "an empty script: %.2f us, as a call %.1f us\n\n%-26s %33s %33s\n%-26s %8s %8s %8s %6s %8s %8s %8s %6s\n",
        empty.script_us, empty.cpu_us, "", "admit", "release", "", "commands", "script", "call", "rate", "commands",
        "script", "call", "rate");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        figures admit = {0};
        figures release = {0};

        if (argc == 3 && strstr(rows[i].name, argv[2]) == NULL)
            continue;
        measure(argv[1], &rows[i], &admit, &release);
        (void)printf("%-26s %8.1f %8.1f %8.1f %5.0f%% %8.1f %8.1f %8.1f %5.0f%%\n", rows[i].name, admit.commands,
                     admit.script_us, admit.cpu_us, 100 * empty.cpu_us / admit.cpu_us, release.commands,
                     release.script_us, release.cpu_us, 100 * empty.cpu_us / release.cpu_us);
    }
    rn_redis_close(&redis);
    return 0;
}
