/* SPDX-License-Identifier: MIT */
/*
 * usage: bench_fleet_rate URL [CONNECTIONS [PIPELINE]]     URL: redis://HOST:PORT or unix:PATH, of a Redis that does
 *                                                          nothing else; 64 and 1
 *
 * How many calls of scripts a Redis that is busy with nothing else does in a second: empty ones, admissions, releases;
 * by kind of limit. So many connections have so many calls under way each, all the time. All is written out before the
 * clock starts, so that what is measured is the server; that it was, its share of a processor says. A round is an
 * empty batch, one of admissions and one of their releases, one behind the other; a ratio is that of one round, and
 * what is printed are medians of rounds, since a machine that others use is another one a second later.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ration/config.h>

#include "base/text.h"
#include "fleet/fleet.h"
#include "fleet/store_url.h"

#define ROUNDS 31
#define CALLS 500 /* of a batch, and so many leases are held at once */
#define CONNECTIONS_MAX 256
#define WORDS_MAX 32
#define TIMEOUT_US (5 * INT64_C(1000000))

#define RULES(LIMITS)                                                                                                  \
    "providers: [ { name: p, baseUrl: 'http://127.0.0.1:1', limits: [ " LIMITS " ] } ]\n"                              \
    "accounts: [ { name: a, provider: p } ]\n"
#define RATE "{ name: r, kind: rate, rate: 1000000/s, burst: 1000000, scope: { by: [account] } }"
#define SLOTS "{ name: c, kind: concurrency, max: 1000000, scope: { by: [account] } }"
#define DAILY "{ name: q, kind: quota, max: 1000000000, window: { period: day }, scope: { by: [account] } }"
#define ROLLING "{ name: o, kind: quota, max: 1000000000, window: { rolling: 1h }, scope: { by: [account] } }"
#define SYNCED                                                                                                         \
    "{ name: s, kind: quota, max: 1000000000, window: { period: day }, scope: { by: [account] },"                      \
    "  sync: { remainingHeader: X-Left, resetHeader: X-Reset } }"
#define ADAPTIVE "{ name: f, kind: adaptive, initialLimit: 100000, maxLimit: 100000, scope: { by: [account] } }"
#define SHARE                                                                                                          \
    "{ name: h, kind: share, counts: requests, ceiling: 100000, reclaimHorizon: 1s, idleAfter: 2s,"                    \
    "  tenants: { t0: 98, t1: 1, t2: 1 } }"

static const struct row {
    const char *name;
    const char *rules;
    bool has_tenant;
} rows[] = {
    {"no limit", RULES(""), false},
    {"rate", RULES(RATE), false},
    {"concurrency", RULES(SLOTS), false},
    {"quota of a day", RULES(DAILY), false},
    {"rate, concurrency, quota", RULES(RATE ", " SLOTS ", " DAILY), false},
    {"quota of a rolling hour", RULES(ROLLING), false},
    {"quota with headers", RULES(SYNCED), false},
    {"adaptive", RULES(ADAPTIVE), false},
    {"share of 3, its own", RULES(SHARE), true},
};

/* Calls as they are sent. */
typedef struct batch {
    char *bytes[CALLS];
    size_t sizes[CALLS];
} batch;

typedef struct peer {
    int fd;
    redisReader *reader;
    int out; /* under way */
} peer;

static peer peers[CONNECTIONS_MAX];
static int peer_count = 64;
static int pipeline = 1;

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_fleet_rate: %s\n", what);
    exit(EXIT_FAILURE);
}

static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- calls, made before they are sent */

static void batch_put(batch *all, int at, size_t count, const ration_text *words)
{
    const char *data[WORDS_MAX];
    size_t sizes[WORDS_MAX];

    if (count > WORDS_MAX)
        die("a call of too many words");
    for (size_t i = 0; i < count; i++) {
        data[i] = words[i].data != NULL ? words[i].data : "";
        sizes[i] = words[i].size;
    }

    const int size = redisFormatCommandArgv(&all->bytes[at], (int)count, data, sizes);

    if (size < 0)
        die("no memory");
    all->sizes[at] = (size_t)size;
}

/* The call as `fleet` has just made it. */
static void batch_copy(batch *all, int at, rn_fleet *fleet, rn_script_name script)
{
    ration_text keys[RN_CALL_KEYS_MAX];
    ration_text words[WORDS_MAX];
    size_t count = 3 + fleet->call.key_count;
    char number[24];

    rn_call_keys(&fleet->call, keys);
    words[0] = (ration_text)RN_TEXT("EVALSHA");
    words[1] = ration_text_of(rn_scripts[script].digest);
    words[2] = (ration_text){number, (size_t)snprintf(number, sizeof number, "%zu", fleet->call.key_count)};
    for (size_t i = 0; i < fleet->call.key_count; i++)
        words[3 + i] = keys[i];
    words[count++] = (ration_text){fleet->call.argument.data, fleet->call.argument.size};
    if (fleet->call.brief.size > 0)
        words[count++] = (ration_text){fleet->call.brief.data, fleet->call.brief.size};
    batch_put(all, at, count, words);
}

static void batch_free(batch *all)
{
    for (int i = 0; i < CALLS; i++)
        redisFreeCommand(all->bytes[i]);
}

/* ---- sending them */

static void connect_all(const char *url)
{
    rn_store_url where;
    const char *const wrong = rn_store_url_read(url, &where);

    if (wrong != NULL || where.kind != RN_STORE_SINGLE || where.tls)
        die(wrong != NULL ? wrong : "the URL of one server, without TLS");
    for (int i = 0; i < peer_count; i++) {
        const rn_store_place *const place = &where.places[0];
        redisContext *const context =
            place->port == 0 ? redisConnectUnix(place->host) : redisConnect(place->host, place->port);

        if (context == NULL || context->err != 0)
            die("no connection");
        peers[i].fd = redisFreeKeepFd(context);
        peers[i].reader = redisReaderCreate();
        if (peers[i].reader == NULL)
            die("no memory");
    }
}

static void peer_send(peer *to, const batch *all, int at)
{
    size_t sent = 0;

    while (sent < all->sizes[at]) {
        const ssize_t got = write(to->fd, all->bytes[at] + sent, all->sizes[at] - sent);

        if (got < 0 && errno != EINTR)
            die("the connection broke");
        sent += got > 0 ? (size_t)got : 0;
    }
    to->out++;
}

/* An answer of ours has what came of it in front; an empty script's is a number. */
static void check_answer(const redisReply *reply, bool empty)
{
    const bool good = empty ? reply->type == REDIS_REPLY_INTEGER
                            : rn_answer_is(reply) && (rn_answer_result(reply) == RN_ANSWER_GRANTED ||
                                                      rn_answer_result(reply) == RN_ANSWER_DONE);

    if (!good)
        die(reply->type == REDIS_REPLY_ERROR ? reply->str : "a call was refused, or asked for a window");
}

static int peer_read(peer *from, bool empty)
{
    static char bytes[16384];
    const ssize_t got = read(from->fd, bytes, sizeof bytes);
    void *reply = NULL;
    int answers = 0;

    if (got <= 0 || redisReaderFeed(from->reader, bytes, (size_t)got) != REDIS_OK)
        die("the connection broke");
    while (redisReaderGetReply(from->reader, &reply) == REDIS_OK && reply != NULL) {
        check_answer(reply, empty);
        freeReplyObject(reply);
        answers++;
    }
    from->out -= answers;
    return answers;
}

/* How many a second. */
static double drive(const batch *all, bool empty)
{
    struct pollfd polled[CONNECTIONS_MAX];
    const double began = seconds();
    int sent = 0;

    for (int i = 0; i < peer_count; i++)
        polled[i] = (struct pollfd){.fd = peers[i].fd, .events = POLLIN};
    for (int answered = 0; answered < CALLS;) {
        for (int i = 0; i < peer_count; i++) {
            while (peers[i].out < pipeline && sent < CALLS)
                peer_send(&peers[i], all, sent++);
        }
        if (poll(polled, (nfds_t)peer_count, 5000) <= 0)
            die("no answer");
        for (int i = 0; i < peer_count; i++) {
            if ((polled[i].revents & POLLIN) != 0)
                answered += peer_read(&peers[i], empty);
        }
    }
    return CALLS / (seconds() - began);
}

/* ---- rounds */

typedef struct round {
    double empty, admit, release; /* a second */
    double admit_ratio, release_ratio;
} round;

static double cpu_spent(rn_redis *redis)
{
    const ration_text words[] = {RN_TEXT("INFO"), RN_TEXT("cpu")};
    redisReply *reply = NULL;

    if (rn_redis_command(redis, (ration_text){"", 0}, 2, words, &reply) != RATION_OK)
        die(redis->text);

    const char *const user = strstr(reply->str, "used_cpu_user:");
    const char *const system = strstr(reply->str, "used_cpu_sys:");

    if (user == NULL || system == NULL)
        die("the store does not tell its processor time");

    const double spent = strtod(user + strlen("used_cpu_user:"), NULL) + strtod(system + strlen("used_cpu_sys:"), NULL);

    freeReplyObject(reply);
    return spent;
}

static void batch_empty(rn_redis *redis, batch *all)
{
    const ration_text load[] = {RN_TEXT("SCRIPT"), RN_TEXT("LOAD"), RN_TEXT("return 1")};
    redisReply *sha = NULL;

    if (rn_redis_command(redis, (ration_text){"", 0}, 3, load, &sha) != RATION_OK)
        die(redis->text);

    const ration_text words[] = {RN_TEXT("EVALSHA"), {sha->str, sha->len}, RN_TEXT("0")};

    for (int i = 0; i < CALLS; i++)
        batch_put(all, i, 3, words);
    freeReplyObject(sha);
}

static void make_calls(rn_fleet *fleet, const struct row *row, int turn, batch *admits, batch *releases)
{
    ration_request request = RATION_REQUEST_INIT;

    request.account = (ration_text)RN_TEXT("a");
    request.ttl_us = 30 * INT64_C(1000000);
    if (row->has_tenant)
        request.tenant = (ration_text)RN_TEXT("t0");
    for (int i = 0; i < CALLS; i++) {
        const rn_call_end end = {.outcome = RATION_OUTCOME_SUCCESS, .cost = RATION_UNSET};
        char name[32];
        rn_call_ask ask = {.id = {name, (size_t)snprintf(name, sizeof name, "%d.%d", turn, i)}};
        ration_decision decision;
        rn_route *route = NULL;

        if (rn_fleet_rules_ask(&fleet->rules, (ration_time){0}, &request, &ask, &route, &decision) != RATION_OK ||
            route == NULL || rn_call_admit(&fleet->call, route, &ask) != RATION_OK)
            die("no memory");
        batch_copy(admits, i, fleet, RN_SCRIPT_ADMIT);
        if (rn_call_release(&fleet->call, route, ask.id, &end) != RATION_OK)
            die("no memory");
        batch_copy(releases, i, fleet, RN_SCRIPT_RELEASE);
        rn_fleet_forget(fleet, route);
    }
}

/* Scripts and windows are known to the server, and the call's clock is the server's. */
static void warm_up(rn_fleet *fleet, const struct row *row)
{
    ration_request request = RATION_REQUEST_INIT;
    const ration_text name = RN_TEXT("first");
    ration_decision decision;
    rn_route *route = NULL;

    request.account = (ration_text)RN_TEXT("a");
    request.ttl_us = 30 * INT64_C(1000000);
    if (row->has_tenant)
        request.tenant = (ration_text)RN_TEXT("t0");
    if (rn_fleet_submit(fleet, (ration_time){0}, &request, name, &decision, &route) != RATION_OK)
        die(fleet->text);
    if (route == NULL || rn_fleet_release(fleet, (ration_time){0}, route, name, NULL) != RATION_OK)
        die("a call was refused");
    rn_fleet_forget(fleet, route);
}

static int by_size(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double median(const round *rounds, size_t offset)
{
    double values[ROUNDS];

    for (int i = 0; i < ROUNDS; i++)
        values[i] = *(const double *)(const void *)((const char *)&rounds[i] + offset);
    qsort(values, ROUNDS, sizeof values[0], by_size);
    return values[ROUNDS / 2];
}

static void measure(const char *url, const struct row *row)
{
    static batch empties, admits, releases;
    round rounds[ROUNDS];
    ration_config *config = NULL;
    ration_config_faults faults = {0};
    rn_fleet fleet;

    if (ration_config_parse(ration_text_of(row->rules), "bench", NULL, &config, &faults) != RATION_OK)
        die("the rules of the bench have faults");

    char name[32]; /* a run that was broken off has left its leases */
    const rn_fleet_options options = {
        .rules = ration_config_rules(config), .name = name, .redis = {.url = url, .timeout_us = TIMEOUT_US}};

    (void)snprintf(name, sizeof name, "bench %ld", (long)getpid());

    if (rn_fleet_init(&fleet, &options, (ration_time){0}) != RATION_OK)
        die(fleet.text);
    warm_up(&fleet, row);
    batch_empty(&fleet.redis, &empties);

    double busy = 0, lasted = 0;

    for (int i = 0; i < ROUNDS; i++) {
        round *const r = &rounds[i];

        make_calls(&fleet, row, i, &admits, &releases);

        const double cpu_before = cpu_spent(&fleet.redis), began = seconds();

        r->empty = drive(&empties, true);
        r->admit = drive(&admits, false);
        r->release = drive(&releases, false);
        lasted += seconds() - began;
        busy += cpu_spent(&fleet.redis) - cpu_before;
        r->admit_ratio = r->admit / r->empty;
        r->release_ratio = r->release / r->empty;
        batch_free(&admits);
        batch_free(&releases);
    }
    batch_free(&empties);
    (void)printf("%-26s %9.0f %9.0f %6.0f%% %9.0f %6.0f%% %6.0f%%\n", row->name, median(rounds, offsetof(round, empty)),
                 median(rounds, offsetof(round, admit)), 100 * median(rounds, offsetof(round, admit_ratio)),
                 median(rounds, offsetof(round, release)), 100 * median(rounds, offsetof(round, release_ratio)),
                 100 * busy / lasted);
    (void)fflush(stdout);
    (void)rn_fleet_erase(&fleet);
    rn_fleet_fini(&fleet);
    ration_config_free(config);
}

int main(int argc, char **argv)
{
    if (argc > 2)
        peer_count = (int)strtol(argv[2], NULL, 10);
    if (argc > 3)
        pipeline = (int)strtol(argv[3], NULL, 10);
    if (argc < 2 || argc > 4 || peer_count < 1 || peer_count > CONNECTIONS_MAX || pipeline < 1) {
        (void)fprintf(stderr, "usage: bench_fleet_rate URL [CONNECTIONS [PIPELINE]]\n");
        return 2;
    }
    connect_all(argv[1]);
    (void)printf("a second, %d connections with %d calls under way each\n%-26s %9s %9s %7s %9s %7s %7s\n", peer_count,
                 pipeline, "", "empty", "admit", "", "release", "", "server");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        measure(argv[1], &rows[i]);
    return 0;
}
