/* SPDX-License-Identifier: MIT */
/*
 * usage: fleet_circuits URL
 *
 * What no trace can tell of a fleet's breakers, against a real store: members that a quorum counts, members with
 * other rules, answers to health checks by their number, the bound on instants, and which keys stand how long. Time is
 * told, but where it is about the ends of keys.
 */
#include "support/check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ration/config.h>

#include "fleet/fleet.h"

#define MS INT64_C(1000)
#define SECOND (1000 * MS)
#define HOUR_MS INT64_C(3600000)
#define WEEK_MS (168 * HOUR_MS)
#define SLACK_MS 60000

#define RULES(BREAKER)                                                                                                 \
    "providers:\n"                                                                                                     \
    "  - name: p\n"                                                                                                    \
    "    baseUrl: http://127.0.0.1:1\n"                                                                                \
    "    limits: [ { name: l, kind: concurrency, max: 100 } ]\n"                                                       \
    "    breaker: { " BREAKER " }\n"                                                                                   \
    "accounts: [ { name: a, provider: p }, { name: b, provider: p } ]\n"
#define CONSECUTIVE(N) "strategy: consecutive, threshold: " N ", recovery: probe, backoff: { delay: 1h }"
#define COUNT(SIZE) "strategy: count, threshold: 1/1000, minimumCalls: 2, size: " SIZE ", recovery: probe"
#define SAMPLING(DURATION)                                                                                             \
    "strategy: sampling, threshold: 1/1000, minimumCalls: 2, duration: " DURATION ", recovery: probe"
#define CHECKED "healthCheck: { path: /h }"

#define MEMBERS 3

typedef struct member {
    ration_config *config;
    rn_fleet fleet;
    rn_route *routes[10]; /* of leases that are held, by their digit */
} member;

static const char *url;
static member members[MEMBERS];
static size_t member_count;
static int leases;
static const char *account = "a"; /* that calls */

/* As one more of the fleet. */
static member *join(const char *rules, const char *name, bool tells_time)
{
    static char fleet[64];
    ration_config_faults faults = {0};
    member *const m = &members[member_count++];

    (void)snprintf(fleet, sizeof fleet, "circuits %ld", (long)getpid());
    CHECK_EQ(ration_config_parse(ration_text_of(rules), "f", NULL, &m->config, &faults), RATION_OK);
    ration_config_faults_fini(&faults);

    const rn_fleet_options options = {
        .rules = ration_config_rules(m->config),
        .name = fleet,
        .redis = {.url = url, .timeout_us = 5000 * MS},
        .tells_time = tells_time,
        .member = ration_text_of(name),
        .waiter_ttl_us = 10 * SECOND,
    };

    CHECK_EQ(rn_fleet_init(&m->fleet, &options, ration_time_of(0)), RATION_OK);
    return m;
}

static int part(void **state)
{
    (void)state;
    CHECK_ROW(NULL);
    if (member_count == 0)
        return 0;
    CHECK_EQ(rn_fleet_erase(&members[0].fleet), RATION_OK);
    for (size_t i = 0; i < member_count; i++) {
        for (size_t j = 0; j < 10; j++) {
            if (members[i].routes[j] != NULL)
                rn_fleet_forget(&members[i].fleet, members[i].routes[j]);
        }
        rn_fleet_fini(&members[i].fleet);
        ration_config_free(members[i].config);
        members[i] = (member){0};
    }
    member_count = 0;
    return 0;
}

/* ---- calls ---- */

/* Let through? Then it is held under that digit. */
static bool enter(member *m, int64_t at_us, int digit)
{
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision = {0};
    char id[32];

    (void)snprintf(id, sizeof id, "%d-%d", digit, leases);
    request.account = ration_text_of(account);
    CHECK_EQ(
        rn_fleet_submit(&m->fleet, ration_time_of(at_us), &request, ration_text_of(id), &decision, &m->routes[digit]),
        RATION_OK);
    CHECK(decision.result == RATION_GRANTED || decision.reason == RATION_REASON_CIRCUIT_OPEN);
    return decision.result == RATION_GRANTED;
}

static void end(member *m, int64_t at_us, int digit, ration_outcome outcome)
{
    ration_completion completion = RATION_COMPLETION_INIT;
    char id[32];

    (void)snprintf(id, sizeof id, "%d-%d", digit, leases);
    completion.outcome = outcome;
    CHECK_EQ(rn_fleet_release(&m->fleet, ration_time_of(at_us), m->routes[digit], ration_text_of(id), &completion),
             RATION_OK);
    rn_fleet_forget(&m->fleet, m->routes[digit]);
    m->routes[digit] = NULL;
}

static void leave(member *m, int64_t at_us, int digit, bool ok)
{
    end(m, at_us, digit, ok ? RATION_OUTCOME_SUCCESS : RATION_OUTCOME_FAILURE);
}

/* A whole call. Is the circuit open afterwards? */
static bool opens(member *m, int64_t at_us, bool ok)
{
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision = {0};

    leases++;
    if (enter(m, at_us, 0))
        leave(m, at_us, 0, ok);
    request.account = ration_text_of(account);
    CHECK_EQ(rn_fleet_check(&m->fleet, ration_time_of(at_us), &request, RATION_CHECK_ACQUIRE, &decision), RATION_OK);
    return decision.reason == RATION_REASON_CIRCUIT_OPEN;
}

/* ---- a quorum ---- */

/* Calls, each 1 ms or as long as it says after the last: A, B, C fail; a, b, c succeed. It opens with the last. */
static const struct {
    const char *why;
    const char *rule;
    const char *calls;
    bool opens;
} quorums[] = {
    {"one alone does not open it", CONSECUTIVE("2") ", quorum: 2", "AAA", false},
    {"two do", CONSECUTIVE("2") ", quorum: 2", "AB", true},
    {"nor is the threshold forgotten", CONSECUTIVE("3") ", quorum: 2", "AB", false},
    {"in a row: a success forgets who failed", CONSECUTIVE("2") ", quorum: 2", "AaBB", false},
    {"and begins anew", CONSECUTIVE("2") ", quorum: 2", "AaBBA", true},
    {"two are not three", CONSECUTIVE("2") ", quorum: 3", "ABAB", false},
    {"three are", CONSECUTIVE("2") ", quorum: 3", "ABC", true},
    {"of one, any opens it", CONSECUTIVE("2") ", quorum: 1", "AA", true},
    {"count: a failure among the last four", COUNT("4") ", quorum: 2", "AaaB", true},
    {"count: the fifth finds it gone", COUNT("4") ", quorum: 2", "AaaaB", false},
    {"count: the newest failure of each", COUNT("4") ", quorum: 2", "AAaaB", true},
    {"count: successes of others forget nothing", COUNT("4") ", quorum: 2", "AbcB", true},
    {"count: three", COUNT("4") ", quorum: 3", "ABaC", true},
    {"count: three, of whom one is gone", COUNT("4") ", quorum: 3", "ABaaC", false},
    {"count: the minimum still holds", "strategy: count, threshold: 1/2, minimumCalls: 3, size: 4, quorum: 2", "AB",
     false},
    {"sampling: a failure that still counts", SAMPLING("10ms") ", quorum: 2", "A........B", true},
    {"sampling: it is gone at its end", SAMPLING("10ms") ", quorum: 2", "Aaaaaaaaa.B", false},
    {"sampling: the newest failure of each", SAMPLING("10ms") ", quorum: 2", "A.....A.....B", true},
    {"sampling: three", SAMPLING("10ms") ", quorum: 3", "AB.......C", true},
    {"sampling: three, of whom one is gone", SAMPLING("10ms") ", quorum: 3", "AB........B.C", false},
};

static void test_quorum(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof quorums / sizeof quorums[0]; i++) {
        char rules[512];
        bool open = false;

        (void)snprintf(rules, sizeof rules, RULES("%s"), quorums[i].rule);
        (void)join(rules, "a", true);
        (void)join(rules, "b", true);
        (void)join(rules, "c", true);
        CHECK_ROW(quorums[i].why);
        for (size_t j = 0; quorums[i].calls[j] != '\0'; j++) {
            const char call = quorums[i].calls[j];

            if (call == '.')
                continue;
            CHECK(!open);
            open = opens(&members[(call | 0x20) - 'a'], (int64_t)j * MS, call >= 'a');
        }
        CHECK_EQ(open, quorums[i].opens);
        (void)part(NULL);
    }
}

/* Where no member is named, as in a replay, all are one. */
static void test_quorum_of_nobody(void **state)
{
    member *const m = join(RULES(CONSECUTIVE("2") ", quorum: 2"), "", true);

    (void)state;
    CHECK(!opens(m, 0, false));
    CHECK(opens(m, 0, false));
}

/* Who failed before it opened counts no more when it has closed. */
static void test_quorum_after(void **state)
{
    member *const a = join(RULES(CONSECUTIVE("1") ", quorum: 2"), "a", true);
    member *const b = join(RULES(CONSECUTIVE("1") ", quorum: 2"), "b", true);

    (void)state;
    CHECK(!opens(a, 0, false));
    CHECK(opens(b, 0, false));
    CHECK(!opens(a, 3600 * SECOND, true));
    CHECK(!opens(b, 3600 * SECOND, false));
    CHECK(!opens(a, 3601 * SECOND, true)); /* forgets b's */
    CHECK(!opens(a, 3602 * SECOND, false));
    CHECK(opens(b, 3603 * SECOND, false));
}

/* ---- other rules ---- */

/* One failure by the first rules, then by the second: it opens with so many of them. */
static const struct {
    const char *why;
    const char *first, *second;
    int failures;
} changes[] = {
    {"another back-off: nothing begins anew", CONSECUTIVE("2"),
     "strategy: consecutive, threshold: 2, backoff: { delay: 2h }", 1},
    {"another threshold", CONSECUTIVE("5"), CONSECUTIVE("2"), 1},
    {"another strategy", COUNT("4"), CONSECUTIVE("2"), 2},
    {"to it", CONSECUTIVE("2"), COUNT("4"), 2},
    {"a size", COUNT("4"), COUNT("5"), 2},
    {"the same size", COUNT("4"), COUNT("4"), 1},
    {"a duration", SAMPLING("1m"), SAMPLING("2m"), 2},
    {"recovery", CONSECUTIVE("2"), "strategy: consecutive, threshold: 2, recovery: healthCheck, " CHECKED, 2},
    {"probes", CONSECUTIVE("2"), CONSECUTIVE("2") ", probe: { n: 2 }", 2},
    {"checks while idle", CONSECUTIVE("2"), CONSECUTIVE("2") ", idleProbe: { interval: 1m }, " CHECKED, 2},
};

static void test_other_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char rules[512];

        (void)snprintf(rules, sizeof rules, RULES("%s"), changes[i].first);

        member *const first = join(rules, "a", true);

        (void)snprintf(rules, sizeof rules, RULES("%s"), changes[i].second);

        member *const second = join(rules, "b", true);

        CHECK_ROW(changes[i].why);
        CHECK(!opens(first, 0, false));
        for (int j = 1; j < changes[i].failures; j++)
            CHECK(!opens(second, j * MS, false));
        CHECK(opens(second, changes[i].failures * MS, false));
        (void)part(NULL);
    }
}

/* Half-open, probes begin anew, as many as the newer rules have; what is out by the older says nothing. */
static void test_other_probes(void **state)
{
    member *const one = join(RULES(CONSECUTIVE("1")), "a", true);
    member *const two = join(RULES(CONSECUTIVE("1") ", probe: { n: 2 }"), "b", true);

    (void)state;
    CHECK(opens(one, 0, false));
    CHECK(enter(one, 3600 * SECOND, 1));
    CHECK(!enter(one, 3600 * SECOND, 2));
    CHECK(enter(two, 3601 * SECOND, 3));
    CHECK(enter(two, 3601 * SECOND, 4));
    CHECK(!enter(two, 3601 * SECOND, 5));
    leave(one, 3602 * SECOND, 1, false); /* of an older generation; by the older rules they begin anew once more */
    CHECK(enter(one, 3603 * SECOND, 6));
    CHECK(!enter(one, 3603 * SECOND, 7));
    leave(one, 3604 * SECOND, 6, true);
    CHECK(enter(one, 3605 * SECOND, 8));
    CHECK(enter(one, 3605 * SECOND, 9));
}

/* ---- probes ---- */

/* A probe that was lost gives nothing back to those that came in its place. */
static void test_probe_of_before(void **state)
{
    member *const m = join(RULES(CONSECUTIVE("1") ", probe: { n: 2 }"), "a", true);

    (void)state;
    CHECK(opens(m, 0, false));
    CHECK(enter(m, 3600 * SECOND, 1));
    CHECK(enter(m, 7200 * SECOND, 2));
    end(m, 7200 * SECOND, 1, RATION_OUTCOME_CANCELLED);
    CHECK(enter(m, 7200 * SECOND, 3));
    CHECK(!enter(m, 7200 * SECOND, 4));
}

/* Where none is out, none is lost: what has succeeded counts for as long as it takes. */
static void test_no_probe_out(void **state)
{
    member *const m = join(RULES(CONSECUTIVE("1") ", probe: { n: 2 }"), "a", true);

    (void)state;
    CHECK(opens(m, 0, false));
    CHECK(enter(m, 3600 * SECOND, 1));
    leave(m, 3601 * SECOND, 1, true);
    CHECK(enter(m, 9000 * SECOND, 2));
    leave(m, 9001 * SECOND, 2, true);
    for (int i = 3; i < 6; i++)
        CHECK(enter(m, 9002 * SECOND, i)); /* it has closed */
}

/* Each of two circuits is tried when its own back-off is over. */
static void test_two_circuits(void **state)
{
    member *const m = join(RULES(CONSECUTIVE("1") ", scope: { by: [account] }"), "a", true);

    (void)state;
    CHECK(opens(m, 0, false));
    account = "b";
    CHECK(opens(m, 10 * SECOND, false));
    account = "a";
    CHECK(enter(m, 3600 * SECOND, 1));
    account = "b";
    CHECK(!enter(m, 3610 * SECOND - 1, 2));
    CHECK(enter(m, 3610 * SECOND, 2));
    account = "a";
}

/* A failure that has left counts no more, in neither of the sums. */
static void test_sample_leaves(void **state)
{
    member *const m =
        join(RULES("strategy: sampling, threshold: 60%, minimumCalls: 3, duration: 10ms, recovery: probe"), "a", true);

    (void)state;
    CHECK(!opens(m, 0, false));
    CHECK(!opens(m, 1 * MS, true));
    CHECK(!opens(m, 2 * MS, true));
    CHECK(!opens(m, 10 * MS, false)); /* 1 of 3 */
    CHECK(opens(m, 11 * MS, false));  /* 2 of 3 */
}

/* ---- health checks ---- */

static bool event_is(const rn_fleet_event *event, const char *what)
{
    return event->what.size == strlen(what) && memcmp(event->what.data, what, event->what.size) == 0;
}

/* The number of the check that time has made due; 0: none is. */
static int64_t check_due(member *m, int64_t at_us)
{
    rn_fleet_event event;
    int64_t number = 0;

    CHECK_EQ(rn_fleet_advance(&m->fleet, ration_time_of(at_us), ration_text_of("p")), RATION_OK);
    for (size_t i = 0; rn_fleet_next_event(&m->fleet, i, &event); i++) {
        if (event_is(&event, "health")) {
            CHECK_EQ(number, 0);
            CHECK_TEXT(event.cause, "a");
            number = event.before;
        }
    }
    return number;
}

static void test_idle_by_other_rules(void **state)
{
    member *const one = join(RULES(CONSECUTIVE("2") ", idleProbe: { interval: 1s }, " CHECKED), "a", true);
    member *const two = join(RULES(CONSECUTIVE("2") ", idleProbe: { interval: 3s }, " CHECKED), "b", true);
    member *const none = join(RULES(CONSECUTIVE("2")), "c", true);

    (void)state;
    CHECK(!opens(one, 0, true));
    CHECK_EQ(check_due(one, SECOND - 1), 0);
    CHECK_EQ(check_due(one, SECOND), 1);
    CHECK(enter(two, SECOND + 1, 1));
    CHECK_EQ(check_due(two, 4 * SECOND), 0);
    CHECK_EQ(check_due(two, 4 * SECOND + 1), 2);
    CHECK(enter(none, 5 * SECOND, 2));
    CHECK_EQ(check_due(none, 100 * SECOND), 0);
}

/* An answer to the check of that number; 0: to none. */
static void answer(member *m, int64_t at_us, bool ok, int64_t number)
{
    const rn_call_health health = {
        .account = rn_book_account(&m->fleet.rules.book, ration_text_of("a")),
        .ok = ok,
        .circuit = ration_text_of("a"),
        .number = number,
    };
    ration_text keys[RN_CALL_KEYS_MAX];
    redisReply *reply = NULL;

    m->fleet.call.now = ration_time_of(at_us);
    CHECK_EQ(rn_call_health_write(&m->fleet.call, &health), RATION_OK);
    rn_call_keys(&m->fleet.call, keys);

    const rn_store_script run = {
        .name = RN_SCRIPT_HEALTH,
        .keys = keys,
        .key_count = m->fleet.call.key_count,
        .argument = {m->fleet.call.argument.data, m->fleet.call.argument.size},
    };

    CHECK_EQ(rn_redis_run(&m->fleet.redis, &run, &reply), RATION_OK);
    CHECK_EQ(rn_answer_result(reply), RN_ANSWER_DONE);
    freeReplyObject(reply);
}

/* Each result puts the check off. */
static void test_not_idle(void **state)
{
    member *const m = join(RULES(CONSECUTIVE("2") ", idleProbe: { interval: 1s }, " CHECKED), "a", true);

    (void)state;
    CHECK(!opens(m, 0, true));
    CHECK(!opens(m, 500 * MS, true));
    CHECK_EQ(check_due(m, 1500 * MS - 1), 0);
    CHECK_EQ(check_due(m, 1500 * MS), 1);
}

static void test_numbers_of_checks(void **state)
{
    member *const m = join(RULES("strategy: consecutive, threshold: 1, recovery: healthCheck, backoff: { initial: 1s, "
                                 "multiplier: 2 }, " CHECKED),
                           "a", true);

    (void)state;
    CHECK(opens(m, 0, false));
    CHECK_EQ(check_due(m, SECOND), 1);
    CHECK_EQ(check_due(m, 2 * SECOND), 2);
    answer(m, 2 * SECOND, true, 1); /* too late */
    CHECK(opens(m, 2 * SECOND, true));
    answer(m, 2 * SECOND, false, 2);
    CHECK_EQ(check_due(m, 4 * SECOND - 1), 0);
    CHECK_EQ(check_due(m, 4 * SECOND), 3);
    CHECK_EQ(check_due(m, 11 * SECOND), 4); /* of 6 s, 8 s and 10 s the last */
    CHECK_EQ(check_due(m, 12 * SECOND - 1), 0);
    answer(m, 12 * SECOND - 1, true, 4);
    CHECK(!opens(m, 12 * SECOND, true));
    answer(m, 12 * SECOND, false, 4); /* closed, it is not asked about */
    CHECK(!opens(m, 12 * SECOND, true));
}

/* ---- keys ---- */

/* The answer to a command about a key of the provider: a number; of an array its length. */
static int64_t about(member *m, const char *command, const char *key)
{
    char name[160];
    redisReply *reply = NULL;

    (void)snprintf(name, sizeof name, "ration:1:{%s/p}:%s", m->fleet.rules.name, key);

    const ration_text words[] = {ration_text_of(command), ration_text_of(name)};

    CHECK_EQ(rn_redis_command(&m->fleet.redis, (ration_text){"", 0}, 2, words, &reply), RATION_OK);

    const int64_t number = reply->type == REDIS_REPLY_ARRAY ? (int64_t)reply->elements : reply->integer;

    freeReplyObject(reply);
    return number;
}

/* By the server's time: does the key end so many milliseconds from now, a little later at most? */
static bool lasts(member *m, const char *key, int64_t ms)
{
    const int64_t left = about(m, "PTTL", key);

    return left > ms - SLACK_MS && left < ms + SLACK_MS;
}

static void test_keys(void **state)
{
    member *m = join(RULES(CONSECUTIVE("2")), "a", false);

    (void)state;
    CHECK(!opens(m, 0, true));
    CHECK_EQ(about(m, "EXISTS", "circuit:a"), 0);
    CHECK(!opens(m, 0, false));
    CHECK(lasts(m, "circuit:a", WEEK_MS));
    CHECK_EQ(about(m, "EXISTS", "circuits"), 0);
    CHECK(!opens(m, 0, true)); /* equal to a fresh one again */
    CHECK_EQ(about(m, "EXISTS", "circuit:a"), 0);
    CHECK(!opens(m, 0, false));
    CHECK(opens(m, 0, false));
    CHECK(lasts(m, "circuit:a", HOUR_MS + WEEK_MS));
    CHECK(lasts(m, "circuits", HOUR_MS + WEEK_MS));
    (void)part(NULL);

    m = join(RULES(COUNT("4")), "a", false);
    CHECK(!opens(m, 0, true));
    CHECK(lasts(m, "circuit:a", WEEK_MS));
    CHECK(lasts(m, "results:a", WEEK_MS));
    (void)part(NULL);

    m = join(RULES("strategy: sampling, threshold: 1, minimumCalls: 9, duration: 1h"), "a", false);
    CHECK(!opens(m, 0, true));
    CHECK_EQ(about(m, "EXISTS", "samples:a"), 0);
    CHECK(!opens(m, 0, true));
    CHECK(lasts(m, "circuit:a", WEEK_MS));
    CHECK(lasts(m, "samples:a", HOUR_MS + WEEK_MS));
    (void)part(NULL);

    m = join(RULES(CONSECUTIVE("2") ", idleProbe: { interval: 2h }, " CHECKED), "a", false);
    CHECK(!opens(m, 0, true));
    CHECK(lasts(m, "circuit:a", 2 * HOUR_MS + WEEK_MS));
    CHECK(lasts(m, "circuits", 2 * HOUR_MS + WEEK_MS));
}

/* A circuit that has closed again is no fresh one: late results speak for the first generation. */
static void test_keys_of_later_generations(void **state)
{
    member *const m = join(RULES(CONSECUTIVE("1") ", probe: { n: 1 }"), "a", true);

    (void)state;
    CHECK(opens(m, 0, false));
    CHECK_EQ(about(m, "ZCARD", "circuits"), 1);
    CHECK(!opens(m, 3600 * SECOND, true));
    CHECK_EQ(about(m, "EXISTS", "circuit:a"), 1);
    CHECK_EQ(about(m, "EXISTS", "circuits"), 0);
}

/* ---- the bound on instants ---- */

/* The stored circuit has so many instants from now on, whatever there are. */
static void instants_set(member *m, const char *count)
{
    static const char script[] = "local t = { cmsgpack.unpack(redis.call('GET', KEYS[1])) }\n"
                                 "t[17] = tonumber(ARGV[1])\n"
                                 "redis.call('SET', KEYS[1], cmsgpack.pack(unpack(t, 1, 22)))\n"
                                 "return 1";
    char name[160];
    redisReply *reply = NULL;

    (void)snprintf(name, sizeof name, "ration:1:{%s/p}:circuit:a", m->fleet.rules.name);

    const ration_text words[] = {ration_text_of("EVAL"), ration_text_of(script), ration_text_of("1"),
                                 ration_text_of(name), ration_text_of(count)};

    CHECK_EQ(rn_redis_command(&m->fleet.redis, (ration_text){"", 0}, 5, words, &reply), RATION_OK);
    CHECK_EQ(reply->integer, 1);
    freeReplyObject(reply);
}

/* Is that a sample of the circuit? */
static bool has_sample(member *m, const char *sample)
{
    char name[160];
    redisReply *reply = NULL;

    (void)snprintf(name, sizeof name, "ration:1:{%s/p}:samples:a", m->fleet.rules.name);

    const ration_text words[] = {ration_text_of("ZSCORE"), ration_text_of(name), ration_text_of(sample)};

    CHECK_EQ(rn_redis_command(&m->fleet.redis, (ration_text){"", 0}, 3, words, &reply), RATION_OK);

    const bool has = reply->type == REDIS_REPLY_STRING && strtoll(reply->str, NULL, 10) == strtoll(sample, NULL, 10);

    freeReplyObject(reply);
    return has;
}

/* At the bound the two oldest become one, the later; none is lost before its time. */
static void test_bound(void **state)
{
    member *const m = join(RULES("strategy: sampling, threshold: 1, minimumCalls: 100, duration: 1s"), "a", true);

    (void)state;
    CHECK(!opens(m, 1, false));
    CHECK(!opens(m, 1, true));
    CHECK(!opens(m, 2, true));
    CHECK(!opens(m, 2, true));
    CHECK(!opens(m, 2, false));
    CHECK(!opens(m, 3, true));
    CHECK(!opens(m, 4, true));
    CHECK_EQ(about(m, "ZCARD", "samples:a"), 3);
    instants_set(m, "65535");
    CHECK(!opens(m, 5, true));
    CHECK_EQ(about(m, "ZCARD", "samples:a"), 4);
    CHECK(!opens(m, 6, true)); /* 65536 there were */
    CHECK_EQ(about(m, "ZCARD", "samples:a"), 4);
    CHECK(has_sample(m, "2:2:3"));
    CHECK(has_sample(m, "3:0:1"));
    CHECK(!opens(m, 6, true)); /* no new instant */
    CHECK_EQ(about(m, "ZCARD", "samples:a"), 4);
    CHECK(!opens(m, 7, true));
    CHECK(has_sample(m, "3:2:4"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_quorum, part),
        cmocka_unit_test_teardown(test_quorum_of_nobody, part),
        cmocka_unit_test_teardown(test_quorum_after, part),
        cmocka_unit_test_teardown(test_other_rules, part),
        cmocka_unit_test_teardown(test_other_probes, part),
        cmocka_unit_test_teardown(test_probe_of_before, part),
        cmocka_unit_test_teardown(test_no_probe_out, part),
        cmocka_unit_test_teardown(test_two_circuits, part),
        cmocka_unit_test_teardown(test_sample_leaves, part),
        cmocka_unit_test_teardown(test_idle_by_other_rules, part),
        cmocka_unit_test_teardown(test_not_idle, part),
        cmocka_unit_test_teardown(test_numbers_of_checks, part),
        cmocka_unit_test_teardown(test_keys, part),
        cmocka_unit_test_teardown(test_keys_of_later_generations, part),
        cmocka_unit_test_teardown(test_bound, part),
    };

    if (argc != 2)
        return 2;
    url = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
