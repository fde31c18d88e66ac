/* SPDX-License-Identifier: MIT */
/*
 * usage: bench_fleet_waits URL
 *
 * What it costs in a Redis to begin to wait, and to release what somebody waits for, with few and with many that wait:
 * server time of a script by the store's own figures (INFO commandstats), and commands. The store should do nothing
 * else meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ration/config.h>

#include "base/text.h"
#include "fleet/fleet.h"

#define ROUNDS 300
#define TIMEOUT_US (30 * INT64_C(1000000))
#define WAITERS_MAX 10000

static const char rules[] = "providers: [ { name: p, baseUrl: 'http://127.0.0.1:1', limits: [\n"
                            "  { name: c, kind: concurrency, max: 1 }, { name: r, kind: rate, rate: 1000000/s,\n"
                            "    burst: 100000 } ] } ]\n"
                            "settings: { queue: { maxWaiters: 1000000, maxWaitersPerTenant: 1000000 } }\n"
                            "accounts: [ { name: a, provider: p } ]\n";

static rn_route *routes[WAITERS_MAX + ROUNDS + 2];

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_fleet_waits: %s\n", what);
    exit(1);
}

static redisReply *command(rn_redis *redis, const char *name, const char *what)
{
    const ration_text words[] = {ration_text_of(name), ration_text_of(what)};
    redisReply *reply = NULL;

    if (rn_redis_command(redis, (ration_text){"", 0}, 2, words, &reply) != RATION_OK)
        die(redis->text);
    return reply;
}

/* Since the figures were reset: a script's time, and its commands. */
static void figures_print(rn_redis *redis, const char *what, size_t waiters)
{
    redisReply *const reply = command(redis, "INFO", "commandstats");
    double commands = 0;
    double scripts = 1;
    double script_us = 0;

    for (const char *line = reply->str; (line = strstr(line, "cmdstat_")) != NULL; line++) {
        const char *const calls = strstr(line, ":calls=");
        const char *const us = strstr(line, ",usec=");

        if (calls == NULL || us == NULL)
            break;
        if (strncmp(line, "cmdstat_evalsha:", 16) == 0) {
            scripts = strtod(calls + strlen(":calls="), NULL);
            script_us = strtod(us + strlen(",usec="), NULL);
        } else if (strncmp(line, "cmdstat_config", 14) != 0) {
            commands += strtod(calls + strlen(":calls="), NULL);
        }
    }
    freeReplyObject(reply);
    (void)printf("%6zu wait: %-20s %8.1f us %6.1f commands\n", waiters, what, script_us / scripts, commands / scripts);
}

static ration_text name_of(size_t i, char *buffer, size_t size)
{
    return (ration_text){buffer, (size_t)snprintf(buffer, size, "%zu", i)};
}

static void submit(rn_fleet *fleet, size_t i)
{
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision;
    char id[24];

    request.account = (ration_text){"a", 1};
    request.ttl_us = 600 * INT64_C(1000000);
    request.wait_us = 600 * INT64_C(1000000);
    if (rn_fleet_submit(fleet, (ration_time){0}, &request, name_of(i, id, sizeof id), &decision, &routes[i]) !=
        RATION_OK)
        die(fleet->text);
    if (routes[i] == NULL)
        die("a request of the bench was refused");
}

static void release(rn_fleet *fleet, size_t i)
{
    char id[24];

    if (rn_fleet_release(fleet, (ration_time){0}, routes[i], name_of(i, id, sizeof id), NULL) != RATION_OK)
        die(fleet->text);
    rn_fleet_forget(fleet, routes[i]);
}

/* The first holds, `waiters` wait; then each round one more comes and the holder goes. */
static void measure(const char *url, const ration_config *config, size_t waiters)
{
    const rn_fleet_options options = {
        .rules = ration_config_rules(config),
        .name = "bench",
        .redis = {.url = url, .timeout_us = TIMEOUT_US},
    };
    rn_fleet fleet;

    if (rn_fleet_init(&fleet, &options, (ration_time){0}) != RATION_OK)
        die(fleet.text);
    for (size_t i = 0; i <= waiters; i++)
        submit(&fleet, i);
    freeReplyObject(command(&fleet.redis, "CONFIG", "RESETSTAT"));
    for (size_t i = 1; i <= ROUNDS; i++)
        submit(&fleet, waiters + i);
    figures_print(&fleet.redis, "one more waits", waiters);
    freeReplyObject(command(&fleet.redis, "CONFIG", "RESETSTAT"));
    for (size_t i = 0; i < ROUNDS; i++)
        release(&fleet, i);
    figures_print(&fleet.redis, "a release grants one", waiters);
    for (size_t i = ROUNDS; i <= waiters + ROUNDS; i++)
        rn_fleet_forget(&fleet, routes[i]);
    (void)rn_fleet_erase(&fleet);
    rn_fleet_fini(&fleet);
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {1, 100, WAITERS_MAX};
    ration_config_faults faults = {0};
    ration_config *config = NULL;

    if (argc != 2)
        die("the URL of a Redis is needed");
    if (ration_config_parse(ration_text_of(rules), "bench", NULL, &config, &faults) != RATION_OK)
        die("the rules of the bench have faults");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        measure(argv[1], config, counts[i]);
    ration_config_free(config);
    return 0;
}
