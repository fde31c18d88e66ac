/* SPDX-License-Identifier: MIT */
/*
 * usage: fleet_waits unix:PATH
 *
 * Requests that wait in a fleet, against a real store and by its time: two members, who is told of what and how, the
 * order across them, members that die, waiters whose answers were lost.
 */
#include "support/check.h"

#include <stdio.h>
#include <unistd.h>

#include <ration/config.h>

#include "base/mem.h"
#include "fleet/fleet.h"

#define MS INT64_C(1000)
#define LONG (600000 * MS)
#define DEADLINE_MS 30000
#define PATIENCE (2000 * MS)

static const char *url;
static ration_config *config;
static rn_fleet one;
static rn_fleet two;

static const char rules[] = "providers:\n"
                            "  - name: p\n"
                            "    baseUrl: http://127.0.0.1:1\n"
                            "    limits:\n"
                            "      - { name: slots, kind: concurrency, max: 1 }\n"
                            "      - { name: daily, kind: quota, max: 1000, window: { period: day } }\n"
                            "accounts: [ { name: a, provider: p } ]\n";

/* The caller's own clock is of no account. */
static const ration_time any_time = {0};

static void open_fleet(rn_fleet *fleet, const char *name, const char *member, int64_t waiter_ttl_us)
{
    const rn_fleet_options options = {
        .rules = ration_config_rules(config),
        .name = name,
        .redis = {.url = url, .timeout_us = 5000 * MS},
        .member = ration_text_of(member),
        .waiter_ttl_us = waiter_ttl_us,
    };

    CHECK_EQ(rn_fleet_init(fleet, &options, ration_time_of(0)), RATION_OK);
}

static void setup_with(int64_t ttl_of_one, int64_t ttl_of_two)
{
    ration_config_faults faults = {0};
    char name[64];

    (void)snprintf(name, sizeof name, "waits %ld", (long)getpid());
    CHECK_EQ(ration_config_parse(ration_text_of(rules), "f", NULL, &config, &faults), RATION_OK);
    ration_config_faults_fini(&faults);
    open_fleet(&one, name, "m1", ttl_of_one);
    open_fleet(&two, name, "m2", ttl_of_two);
}

static int setup(void **state)
{
    (void)state;
    setup_with(LONG, LONG);
    return 0;
}

/* The second member is thought dead soon. */
static int setup_mortal(void **state)
{
    (void)state;
    setup_with(LONG, 300 * MS);
    return 0;
}

/* It is thought dead only when it is silent for longer than this machine ever pauses. */
static int setup_patient(void **state)
{
    (void)state;
    setup_with(LONG, PATIENCE);
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

typedef struct asked {
    rn_route *route; /* NULL: it was refused */
    ration_decision decision;
} asked;

static asked ask(rn_fleet *fleet, const char *id, int64_t wait_us, ration_priority priority)
{
    ration_request request = RATION_REQUEST_INIT;
    asked out = {0};

    request.account = ration_text_of("a");
    request.ttl_us = LONG;
    request.wait_us = wait_us;
    request.priority = priority;
    CHECK_EQ(rn_fleet_submit(fleet, any_time, &request, ration_text_of(id), &out.decision, &out.route), RATION_OK);
    return out;
}

/* One that is granted at once. */
static asked acquire(rn_fleet *fleet, const char *id)
{
    const asked out = ask(fleet, id, 0, RATION_PRIORITY_UNSET);

    CHECK_EQ(out.decision.result, RATION_GRANTED);
    return out;
}

static asked queue(rn_fleet *fleet, const char *id, ration_priority priority)
{
    const asked out = ask(fleet, id, LONG, priority);

    CHECK_EQ(out.decision.result, RATION_QUEUED);
    CHECK_STR(out.decision.limit, "slots");
    return out;
}

static void release(rn_fleet *fleet, const char *id, const asked *lease)
{
    CHECK_EQ(rn_fleet_release(fleet, any_time, lease->route, ration_text_of(id), NULL), RATION_OK);
}

static void forget(rn_fleet *fleet, const asked *lease)
{
    if (lease->route != NULL)
        rn_fleet_forget(fleet, lease->route);
}

static rn_fleet_collected collect(rn_fleet *fleet, const char *id)
{
    const ration_text ids[] = {ration_text_of(id)};
    rn_fleet_collected out;

    CHECK_EQ(rn_fleet_collect(fleet, any_time, ration_text_of("p"), ids, 1), RATION_OK);
    CHECK(rn_fleet_collected_at(fleet, 0, &out));
    CHECK(!rn_fleet_collected_at(fleet, 1, &(rn_fleet_collected){0}));
    return out;
}

/* Ask until it waits no longer. */
static rn_fleet_collected collect_end(rn_fleet *fleet, const char *id)
{
    rn_fleet_collected out = collect(fleet, id);

    for (int i = 0; out.result == RN_ANSWER_QUEUED; i++) {
        CHECK(i < DEADLINE_MS);
        (void)usleep(1000);
        out = collect(fleet, id);
    }
    return out;
}

/* A release at one member grants to another's waiter, in the order of priority and age. */
static void test_order(void **state)
{
    (void)state;

    const asked a = acquire(&one, "a");
    const asked b = queue(&two, "b", RATION_PRIORITY_NORMAL);
    const asked c = queue(&one, "c", RATION_PRIORITY_NORMAL);
    const asked d = queue(&two, "d", RATION_PRIORITY_CRITICAL);

    CHECK_EQ(collect(&two, "d").result, RN_ANSWER_QUEUED);
    release(&one, "a", &a);
    CHECK_EQ(collect(&two, "b").result, RN_ANSWER_QUEUED);
    CHECK_EQ(collect(&two, "d").result, RN_ANSWER_GRANTED);
    CHECK_EQ(collect(&two, "d").result, RN_ANSWER_GRANTED);
    release(&two, "d", &d);
    CHECK_EQ(collect(&two, "d").result, RN_ANSWER_DONE);
    CHECK_EQ(collect(&one, "c").result, RN_ANSWER_QUEUED);
    CHECK_EQ(collect(&two, "b").result, RN_ANSWER_GRANTED);
    release(&two, "b", &b);
    CHECK_EQ(collect(&one, "c").result, RN_ANSWER_GRANTED);
    CHECK_EQ(collect(&one, "nobody").result, RN_ANSWER_UNKNOWN);
    release(&one, "c", &c);
    CHECK_EQ(rn_fleet_release(&one, any_time, c.route, ration_text_of("nobody"), NULL), RATION_ERR_UNKNOWN);
    forget(&one, &a);
    forget(&two, &b);
    forget(&one, &c);
    forget(&two, &d);
}

/* A waiter that was asked for twice waits once; so is one that has been refused answered again. */
static void test_repeated(void **state)
{
    (void)state;

    const asked a = acquire(&one, "a");
    const asked b = queue(&two, "b", RATION_PRIORITY_UNSET);
    const asked again = queue(&two, "b", RATION_PRIORITY_UNSET);
    const asked late = ask(&two, "late", 20 * MS, RATION_PRIORITY_UNSET);
    const rn_fleet_collected refused = collect_end(&two, "late");

    CHECK_EQ(late.decision.result, RATION_QUEUED);
    CHECK_EQ(refused.result, RN_ANSWER_REFUSED);
    CHECK_EQ(refused.at.us, late.decision.at.us + 20 * MS);

    ration_decision decision;
    const rn_call_ask cheap = {.cost = RATION_UNIT, .hold_us = RATION_UNSET};

    rn_answer_refuse(refused.why, refused.at, late.route, &cheap, &decision);
    CHECK_EQ(decision.reason, RATION_REASON_DEADLINE);
    CHECK_STR(decision.limit, "slots");
    CHECK_EQ(decision.facts.ahead, RATION_UNIT); /* b, once */

    const asked refused_again = ask(&two, "late", LONG, RATION_PRIORITY_UNSET);

    CHECK_EQ(refused_again.decision.result, RATION_REFUSED);
    CHECK_EQ(refused_again.decision.reason, RATION_REASON_DEADLINE);

    CHECK_EQ(rn_fleet_cancel(&two, any_time, b.route, ration_text_of("b")), RATION_OK);
    CHECK_EQ(rn_fleet_cancel(&two, any_time, b.route, ration_text_of("b")), RATION_ERR_UNKNOWN);
    CHECK_EQ(collect(&two, "b").result, RN_ANSWER_UNKNOWN);
    release(&one, "a", &a);
    release(&one, "c", &(asked){.route = acquire(&one, "c").route});
    forget(&one, &a);
    forget(&two, &b);
    forget(&two, &again);
    forget(&two, &late);
}

/* Its member dies while it is first and waits: whoever comes next refuses it. */
static void test_dies_waiting(void **state)
{
    (void)state;

    const asked a = acquire(&one, "a");
    const asked b = queue(&two, "b", RATION_PRIORITY_CRITICAL);
    const asked c = queue(&one, "c", RATION_PRIORITY_NORMAL);
    const rn_fleet_collected gone = collect_end(&one, "b");
    ration_decision decision;

    CHECK_EQ(gone.result, RN_ANSWER_REFUSED);
    CHECK_EQ(gone.at.us, b.decision.at.us + 300 * MS);
    rn_answer_refuse(gone.why, gone.at, b.route, &(rn_call_ask){0}, &decision);
    CHECK_EQ(decision.reason, RATION_REASON_STORE_UNAVAILABLE);
    release(&one, "a", &a);
    CHECK_EQ(collect(&one, "c").result, RN_ANSWER_GRANTED);
    forget(&one, &a);
    forget(&two, &b);
    forget(&one, &c);
}

/* The store's time, by a call that changes nothing. */
static int64_t store_us(rn_fleet *fleet)
{
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision;

    request.account = ration_text_of("a");
    CHECK_EQ(rn_fleet_check(fleet, any_time, &request, RATION_CHECK_ACQUIRE, &decision), RATION_OK);
    return decision.at.us;
}

/*
 * Its member dies as it is granted: the lease is lost one waiter's time to live later, and the next one has it at that
 * instant. That is the longest for which a dead process can hold the others up.
 */
static void test_dies_granted(void **state)
{
    (void)state;

    const asked a = acquire(&one, "a");
    const asked b = queue(&two, "b", RATION_PRIORITY_CRITICAL);
    const asked c = queue(&one, "c", RATION_PRIORITY_NORMAL);

    const int64_t before = store_us(&one);

    release(&one, "a", &a);

    const int64_t after = store_us(&one);
    const rn_fleet_collected granted = collect_end(&one, "c");

    CHECK_EQ(granted.result, RN_ANSWER_GRANTED);
    CHECK(before + 300 * MS <= granted.at.us && granted.at.us <= after + 300 * MS);
    CHECK_EQ(collect(&two, "b").result, RN_ANSWER_UNKNOWN);
    forget(&one, &a);
    forget(&two, &b);
    forget(&one, &c);
}

/* Whoever collects shows that it lives, and what it has been told of lives as long as it should. */
static void test_lives(void **state)
{
    (void)state;

    const asked a = acquire(&one, "a");
    const asked b = queue(&two, "b", RATION_PRIORITY_UNSET);

    release(&one, "a", &a);
    CHECK_EQ(collect(&two, "b").result, RN_ANSWER_GRANTED);
    (void)usleep(PATIENCE + 50 * MS);
    CHECK_EQ(rn_fleet_renew(&two, any_time, b.route, ration_text_of("b")), RATION_OK);
    forget(&one, &a);
    forget(&two, &b);
}

/* It waits on for as long as its member asks. */
static void test_heard(void **state)
{
    (void)state;

    const asked a = acquire(&one, "a");
    const asked b = queue(&two, "b", RATION_PRIORITY_UNSET);

    for (int64_t us = 0; us < PATIENCE + 300 * MS; us += 100 * MS) {
        (void)usleep(100 * MS);
        CHECK_EQ(collect(&two, "b").result, RN_ANSWER_QUEUED);
    }
    release(&one, "a", &a);
    CHECK_EQ(collect(&two, "b").result, RN_ANSWER_GRANTED);
    forget(&one, &a);
    forget(&two, &b);
}

/* The message is the waiter's name, on its member's channel. */
static void test_wake(void **state)
{
    char channel[128];

    (void)state;
    (void)snprintf(channel, sizeof channel, "ration:1:{%s/p}:wake:m2", one.rules.name);

    redisContext *const listener = redisConnectUnix(url + strlen("unix:"));
    redisReply *reply = NULL;

    CHECK(listener != NULL && listener->err == 0);
    freeReplyObject(redisCommand(listener, "SUBSCRIBE %s", channel));

    const asked a = acquire(&one, "a");
    const asked b = queue(&two, "b", RATION_PRIORITY_UNSET);
    const asked c = queue(&one, "c", RATION_PRIORITY_UNSET);

    release(&one, "a", &a);
    CHECK_EQ(redisGetReply(listener, (void **)&reply), REDIS_OK);
    CHECK_EQ(reply->elements, 3);
    CHECK_STR(reply->element[2]->str, "b");
    freeReplyObject(reply);
    redisFree(listener);
    forget(&one, &a);
    forget(&two, &b);
    forget(&one, &c);
}

/* Every key has an end while somebody waits, and nothing of it is left when nobody does. */
static void test_keys_end(void **state)
{
    static const char *const left[] = {"queue", "waiters", "lines", "alarms", "wait:slots:p", "watch:slots:p"};
    const ration_text all[] = {{"KEYS", 4}, {"ration:1:{waits%20*", 19}};
    redisReply *keys = NULL;
    redisReply *reply = NULL;

    (void)state;

    const asked a = acquire(&one, "a");
    const asked b = queue(&two, "b", RATION_PRIORITY_UNSET);

    CHECK_EQ(rn_redis_command(&one.redis, (ration_text){"", 0}, 2, all, &keys), RATION_OK);
    CHECK(keys->elements > 10);
    for (size_t i = 0; i < keys->elements; i++) {
        const ration_text ttl[] = {{"PTTL", 4}, ration_text_of(keys->element[i]->str)};

        CHECK_ROW(keys->element[i]->str);
        CHECK_EQ(rn_redis_command(&one.redis, ttl[1], 2, ttl, &reply), RATION_OK);
        CHECK(reply->integer > 0);
        freeReplyObject(reply);
    }
    CHECK_ROW(NULL);
    freeReplyObject(keys);
    release(&one, "a", &a);
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        char key[128];

        (void)snprintf(key, sizeof key, "ration:1:{%s/p}:%s", one.rules.name, left[i]);

        const ration_text exists[] = {{"EXISTS", 6}, ration_text_of(key)};

        CHECK_ROW(left[i]);
        CHECK_EQ(rn_redis_command(&one.redis, exists[1], 2, exists, &reply), RATION_OK);
        CHECK_EQ(reply->integer, 0);
        freeReplyObject(reply);
    }
    CHECK_ROW(NULL);
    forget(&one, &a);
    forget(&two, &b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_repeated, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dies_waiting, setup_mortal, teardown),
        cmocka_unit_test_setup_teardown(test_dies_granted, setup_mortal, teardown),
        cmocka_unit_test_setup_teardown(test_lives, setup_patient, teardown),
        cmocka_unit_test_setup_teardown(test_heard, setup_patient, teardown),
        cmocka_unit_test_setup_teardown(test_wake, setup, teardown),
        cmocka_unit_test_setup_teardown(test_keys_end, setup, teardown),
    };

    if (argc != 2)
        return 2;
    url = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
