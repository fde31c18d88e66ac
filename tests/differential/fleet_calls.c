/* SPDX-License-Identifier: MIT */
/*
 * usage: fleet_calls URL
 *
 * What no trace can tell of a fleet, against a real store and by its time: calls that are repeated, scripts that are
 * forgotten, keys that go away, a clock that is behind, two processes on one limit.
 */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <ration/config.h>

#include "base/mem.h"
#include "fleet/fleet.h"

#define MS INT64_C(1000)
#define DEADLINE_MS 30000

static const char *url;
static ration_config *config;
static rn_fleet one;
static rn_fleet two;

static const char rules[] =
    "providers:\n"
    "  - name: p\n"
    "    baseUrl: http://127.0.0.1:1\n"
    "    limits:\n"
    "      - { name: slots, kind: concurrency, max: 2, scope: { by: [account] } }\n"
    "      - { name: rate, kind: rate, rate: 1/m, burst: 1000, scope: { by: [account] } }\n"
    "      - { name: daily, kind: quota, max: 1000, window: { period: day } }\n"
    "  - name: q\n"
    "    baseUrl: http://127.0.0.1:1\n"
    "    limits: [ { name: cap, kind: adaptive, initialLimit: 3, maxLimit: 3, scope: { by: [account] } } ]\n"
    "accounts: [ { name: a, provider: p }, { name: b, provider: p }, { name: c, provider: q } ]\n";

static void open_fleet(rn_fleet *fleet, const char *name)
{
    const rn_fleet_options options = {
        .rules = ration_config_rules(config),
        .name = name,
        .redis = {.url = url, .timeout_us = 5000 * MS},
    };

    CHECK_EQ(rn_fleet_init(fleet, &options, ration_time_of(0)), RATION_OK);
}

/* The caller's own clock is of no account. */
static const ration_time any_time = {0};

static int setup(void **state)
{
    ration_config_faults faults = {0};
    char name[64];

    (void)state;
    (void)snprintf(name, sizeof name, "calls %ld}", (long)getpid());
    CHECK_EQ(ration_config_parse(ration_text_of(rules), "f", NULL, &config, &faults), RATION_OK);
    ration_config_faults_fini(&faults);
    open_fleet(&one, name);
    open_fleet(&two, name);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    CHECK_EQ(rn_fleet_erase(&one), RATION_OK);
    rn_fleet_fini(&one);
    rn_fleet_fini(&two);
    ration_config_free(config);
    return 0;
}

/* What is asked for by an account; the route is the caller's if it was granted. */
static ration_decision ask(rn_fleet *fleet, const char *id, int64_t ttl_us, rn_route **route)
{
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision = {0};

    request.provider = ration_text_of("p");
    request.account = ration_text_of("a");
    request.ttl_us = ttl_us;
    CHECK_EQ(rn_fleet_submit(fleet, any_time, &request, ration_text_of(id), &decision, route), RATION_OK);
    return decision;
}

/* Granted? */
static bool acquire(rn_fleet *fleet, const char *id, rn_route **route)
{
    return ask(fleet, id, 600000 * MS, route).result == RATION_GRANTED;
}

static void test_repeated(void **state)
{
    rn_route *a = NULL;
    rn_route *again = NULL;
    rn_route *b = NULL;
    rn_route *c = NULL;

    (void)state;
    CHECK(acquire(&one, "a", &a));
    CHECK(acquire(&one, "a", &again)); /* its answer was lost */
    CHECK(acquire(&two, "b", &b));     /* so this is the second of two */
    CHECK(!acquire(&two, "c", &c));

    CHECK_EQ(rn_fleet_release(&one, any_time, a, ration_text_of("a"), NULL), RATION_OK);
    CHECK_EQ(rn_fleet_release(&one, any_time, again, ration_text_of("a"), NULL), RATION_OK);
    CHECK(acquire(&two, "c", &c));
    CHECK(!acquire(&two, "d", &again)); /* one came back, not two */

    CHECK_EQ(rn_fleet_release(&two, any_time, b, ration_text_of("nobody"), NULL), RATION_ERR_UNKNOWN);
    CHECK_EQ(rn_fleet_renew(&two, any_time, b, ration_text_of("a")), RATION_ERR_UNKNOWN);

    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision;

    request.account = ration_text_of("a");
    CHECK_EQ(rn_fleet_submit(&one, any_time, &request, ration_text_of("a"), &decision, &again), RATION_ERR_UNKNOWN);
    rn_fleet_forget(&one, a);
    rn_fleet_forget(&two, b);
    rn_fleet_forget(&two, c);
}

/* The answer to a command, a number: of an array the length. */
static int64_t command(size_t count, const char *const *words)
{
    ration_text texts[8];
    redisReply *reply = NULL;

    for (size_t i = 0; i < count; i++)
        texts[i] = ration_text_of(words[i]);
    CHECK_EQ(rn_redis_command(&one.redis, (ration_text){"", 0}, count, texts, &reply), RATION_OK);

    const int64_t number = reply->type == REDIS_REPLY_ARRAY ? (int64_t)reply->elements : reply->integer;

    freeReplyObject(reply);
    return number;
}

static void test_scripts_forgotten(void **state)
{
    rn_route *route = NULL;

    (void)state;
    CHECK(acquire(&one, "a", &route));
    (void)command(2, (const char *const[]){"SCRIPT", "FLUSH"});
    CHECK_EQ(rn_fleet_renew(&one, any_time, route, ration_text_of("a")), RATION_OK);
    CHECK_EQ(rn_fleet_release(&one, any_time, route, ration_text_of("a"), NULL), RATION_OK);
    rn_fleet_forget(&one, route);
}

/* Every key has an end, whatever has happened. */
static void test_keys_end(void **state)
{
    static const ration_header headers[] = {{{"Retry-After", 11}, {"5", 1}}};
    const ration_response response = {.status = 429, .headers = headers, .header_count = 1};
    const ration_text all[] = {{"KEYS", 4}, {"ration:1:{calls%20*", 19}};
    rn_route *a = NULL;
    rn_route *b = NULL;
    redisReply *keys = NULL;

    (void)state;
    CHECK(acquire(&one, "a", &a));
    CHECK(acquire(&one, "b", &b));
    CHECK_EQ(rn_fleet_release(&one, any_time, a, ration_text_of("a"), NULL), RATION_OK);
    CHECK_EQ(rn_fleet_observe(&one, any_time, b, ration_text_of("b"), &response), RATION_OK);
    CHECK_EQ(rn_redis_command(&one.redis, (ration_text){"", 0}, 2, all, &keys), RATION_OK);
    CHECK_EQ(keys->elements, 7); /* head, leases, both leases, slots, rate, daily */
    for (size_t i = 0; i < keys->elements; i++) {
        const char *const name = keys->element[i]->str;

        CHECK_ROW(name);
        CHECK(strncmp(name, "ration:1:{calls%20", 18) == 0 && strstr(name, "%7D/p}:") != NULL);
        CHECK(command(2, (const char *const[]){"PTTL", name}) > 0);
    }
    CHECK_ROW(NULL);
    freeReplyObject(keys);
    CHECK_EQ(rn_fleet_release(&one, any_time, b, ration_text_of("b"), NULL), RATION_OK);
    rn_fleet_forget(&one, a);
    rn_fleet_forget(&one, b);
}

/* What an adaptive limit has learned stays for a week, and what is held as long as it may be. */
static void test_adaptive_ends(void **state)
{
    static const int64_t day_ms = 86400 * MS;
    const struct {
        const char *why;
        int64_t ttl_us; /* of one more lease */
        int64_t days;
    } rows[] = {
        {"held for an hour", 3600000 * MS, 7},
        {"held for ten days, and ten more", 10 * day_ms * MS, 20},
        {"another for less", 3600000 * MS, 20},
    };
    rn_route *routes[3];
    char key[128];

    (void)state;
    (void)snprintf(key, sizeof key, "ration:1:{%s/q}:limit:cap:c", one.rules.name);
    for (size_t i = 0; i <= 3; i++) {
        const char *const id = (const char *const[]){"a", "b", "c", "d"}[i];
        ration_request request = RATION_REQUEST_INIT;
        ration_decision decision = {0};

        CHECK_ROW(i < 3 ? rows[i].why : "all are back");
        request.account = ration_text_of("c");
        if (i < 3) {
            request.ttl_us = rows[i].ttl_us;
            CHECK_EQ(rn_fleet_submit(&one, any_time, &request, ration_text_of(id), &decision, &routes[i]), RATION_OK);
            CHECK_EQ(decision.result, RATION_GRANTED);
        } else {
            CHECK_EQ(rn_fleet_release(&one, any_time, routes[1], ration_text_of("b"), NULL), RATION_OK);
            CHECK_EQ(rn_fleet_release(&one, any_time, routes[2], ration_text_of("c"), NULL), RATION_OK);
            CHECK_EQ(rn_fleet_release(&one, any_time, routes[0], ration_text_of("a"), NULL), RATION_OK);
        }

        const int64_t left = command(2, (const char *const[]){"PTTL", key});
        const int64_t wanted = (i < 3 ? rows[i].days : 7) * day_ms;

        CHECK(left > wanted - 60 * MS && left < wanted + 60 * MS);
    }
    CHECK_ROW(NULL);
    for (size_t i = 0; i < 3; i++)
        rn_fleet_forget(&one, routes[i]);
}

/* A holder that died gives back its slot, to whoever asks after its time to live. */
static void test_lost(void **state)
{
    rn_route *a = NULL;
    rn_route *b = NULL;
    rn_route *c = NULL;
    rn_fleet_lost lost;

    (void)state;
    CHECK_EQ(ask(&one, "a", 50 * MS, &a).result, RATION_GRANTED);
    CHECK_EQ(ask(&one, "b", 600000 * MS, &b).result, RATION_GRANTED);
    for (int i = 0; !acquire(&two, "c", &c); i++) {
        CHECK(i < DEADLINE_MS);
        (void)usleep(1000);
    }
    CHECK(rn_fleet_next_lost(&two, 0, &lost));
    CHECK_TEXT(lost.id, "a");
    CHECK(!rn_fleet_next_lost(&two, 1, &lost));
    CHECK_EQ(rn_fleet_release(&one, any_time, a, ration_text_of("a"), NULL), RATION_ERR_UNKNOWN);
    rn_fleet_forget(&one, a);
    rn_fleet_forget(&one, b);
    rn_fleet_forget(&two, c);
}

/* The callers' clocks say 1970: one window is asked for, and then the server's time is known. */
static void test_round_trips(void **state)
{
    rn_route *route = NULL;

    (void)state;
    CHECK(acquire(&one, "a", &route));
    CHECK_EQ(one.tries, 2);
    CHECK_EQ(rn_fleet_release(&one, any_time, route, ration_text_of("a"), NULL), RATION_OK);
    CHECK_EQ(one.tries, 1);
    rn_fleet_forget(&one, route);
    CHECK(acquire(&one, "b", &route));
    CHECK_EQ(one.tries, 1);
    rn_fleet_forget(&one, route);
}

static int64_t server_us(void)
{
    const ration_text words[] = {{"TIME", 4}};
    redisReply *reply = NULL;

    CHECK_EQ(rn_redis_command(&one.redis, (ration_text){"", 0}, 1, words, &reply), RATION_OK);
    CHECK_EQ(reply->elements, 2);

    const int64_t second_us = strtoll(reply->element[0]->str, NULL, 10) * 1000 * MS;
    const int64_t us = second_us + strtoll(reply->element[1]->str, NULL, 10);

    freeReplyObject(reply);
    return us;
}

/* The fleet's time, and between which instants of the server's it was that. */
typedef struct reading {
    int64_t from;
    int64_t fleet;
    int64_t to;
} reading;

static reading look(void)
{
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision;
    reading out = {.from = server_us()};

    request.account = ration_text_of("b");
    CHECK_EQ(rn_fleet_check(&two, any_time, &request, RATION_CHECK_ACQUIRE, &decision), RATION_OK);
    out.fleet = decision.at.us;
    out.to = server_us();
    return out;
}

/*
 * A head that is ahead of the server's clock, as after a fail-over: time goes on from there at 99 hundredths, and never
 * back.
 */
static void test_clock(void **state)
{
    char key[128];
    rn_route *a = NULL;
    rn_pack head;
    redisReply *reply = NULL;

    (void)state;

    const ration_time before = ask(&one, "a", 600000 * MS, &a).at;
    const int64_t told[] = {before.us + 3600000 * MS, 1, RATION_TIME_MAX_US, before.us, before.us};

    rn_pack_init(&head, rn_mem_default());
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        rn_pack_int(&head, told[i]);
    rn_pack_bool(&head, false);
    rn_pack_bool(&head, false);
    rn_pack_int(&head, 0); /* nobody waits */
    rn_pack_int(&head, RATION_TIME_MAX_US);
    rn_pack_int(&head, RATION_TIME_MAX_US); /* nor does a circuit */
    (void)snprintf(key, sizeof key, "ration:1:{%s/p}:head", one.rules.name);

    const ration_text set[] = {{"SET", 3}, ration_text_of(key), {head.data, head.size}};

    CHECK_EQ(rn_redis_command(&one.redis, (ration_text){"", 0}, 3, set, &reply), RATION_OK);
    freeReplyObject(reply);
    rn_pack_fini(&head);

    const reading first = look();

    CHECK(first.fleet >= told[0] && first.fleet < told[0] + 3600000 * MS);
    (void)usleep(500 * MS);

    const reading last = look();
    const int64_t passed = last.fleet - first.fleet;

    CHECK(passed >= (last.from - first.to) * 99 / 100 - 1);
    CHECK(passed <= (last.to - first.from) * 99 / 100 + 1);
    rn_fleet_forget(&one, a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_repeated, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scripts_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(test_keys_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_adaptive_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_round_trips, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clock, setup, teardown),
    };

    if (argc != 2)
        return 2;
    url = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
