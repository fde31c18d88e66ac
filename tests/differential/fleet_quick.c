/* SPDX-License-Identifier: MIT */
/*
 * usage: fleet_quick URL [SEEDS]
 *
 * The quick paths of the scripts against the whole ones: two fleets of the same rules get the same random calls at the
 * same instants. One may only take the whole scripts, the other takes the quick path of each where there is one.
 * Answers, what has happened, all values and all ends of keys must be the same after each call; and a good share of the
 * calls must have taken the quick path.
 *
 * The test tells the time, ahead of Redis' own, so that keys get their ends and none goes away.
 */
#include "support/check.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <ration/config.h>

#include "fleet/fleet.h"

#define US_PER_S INT64_C(1000000)
#define STEPS 300
#define CLOCK_MS 10000 /* other ends move by more than that */
#define HELD_MAX 12

#define ALL(LIMITS)                                                                                                    \
    "providers: [ { name: p, baseUrl: 'http://127.0.0.1:1', errors: { rateLimited: { defaultPenalty: 2s } },"          \
    " limits: [ " LIMITS " ] } ]\n"                                                                                    \
    "accounts: [ { name: a, provider: p }, { name: b, provider: p, budget: { share: 1/3 } } ]\n"
#define BY "scope: { by: [account] }"
#define RATE "{ name: r, kind: rate, rate: 50/s, burst: 20, " BY " }"
#define RATE_COST "{ name: rc, kind: rate, rate: 7/2s, burst: 30, margin: 0, counts: cost, scope: { by: [provider] } }"
#define SLOTS "{ name: c, kind: concurrency, max: 9, " BY " }"
#define SLOTS_COST "{ name: cc, kind: concurrency, max: 20, counts: cost }"
#define DAILY "{ name: q, kind: quota, max: 5000, window: { period: day }, " BY " }"
#define MINUTE "{ name: m, kind: quota, max: 60, window: { period: minute }, counts: cost, arrival: 20s, " BY " }"
#define SMALL "{ name: k, kind: quota, max: 14, window: { period: hour }, counts: cost, " BY " }"
#define LARGE                                                                                                          \
    "{ name: g, kind: quota, max: 60000, window: { period: day }, counts: cost, " BY " }, "                            \
    "{ name: gc, kind: concurrency, max: 20000, counts: cost, " BY " }"
#define SLOW "{ name: z, kind: rate, rate: 3/s, burst: 4, margin: 1, counts: cost, " BY " }"
#define FEW "{ name: t, kind: concurrency, max: 3, " BY " }"
#define RESERVE "settings: { budget: { retryReserve: 1/3 } }\n"
#define ROLLING "{ name: o, kind: quota, max: 60, window: { rolling: 1m }, " BY " }"
#define SYNCED "{ name: s, kind: quota, max: 60, window: { period: hour }, sync: { remainingHeader: X-Left }, " BY " }"
#define ADAPTIVE "{ name: f, kind: adaptive, initialLimit: 6, maxLimit: 8, " BY " }"
#define SHADOW "{ name: w, kind: concurrency, max: 1, enforce: shadow, " BY " }"

static const struct row {
    const char *why;
    const char *rules;
    int grants, news; /* of a hundred grants, of responses and releases, so many at least take the quick path */
    bool blocks;      /* some are taken for many requests at once; of their responses a quarter */
    int64_t larger;   /* a request costs so many times what it draws */
} rows[] = {
    {"rate, concurrency, quota", ALL(RATE ", " SLOTS ", " DAILY), 40, 15, false, 1},
    {"by cost, of the provider", ALL(RATE_COST ", " SLOTS_COST), 30, 15, false, 1},
    {"a short window, calls on their way", ALL(MINUTE), 10, 5, false, 1},
    {"a quota with a reserve, soon used up", RESERVE ALL(SMALL), 5, 5, false, 1},
    {"sums of every length", ALL(LARGE), 10, 5, false, 1000},
    {"a slow rate", ALL(SLOW), 10, 10, false, 1},
    {"few slots", ALL(FEW), 10, 10, false, 1},
    {"no limit", ALL(""), 50, 25, false, 1},
    {"blocks", ALL(RATE ", " DAILY), 20, 15, true, 1},
    {"blocks by cost, in short windows", ALL(MINUTE ", " RATE_COST), 5, 2, true, 1},
    {"rolling", ALL(RATE ", " ROLLING), 0, 0, false, 1},
    {"with headers", ALL(SYNCED ", " SLOTS), 0, 0, false, 1},
    {"adaptive", ALL(ADAPTIVE ", " RATE), 0, 0, false, 1},
    {"one only watches", ALL(SHADOW ", " RATE), 0, 0, false, 1},
};

typedef struct rig {
    const struct row *row;
    uint64_t random;
    ration_time now;
    ration_config *config;
    rn_fleet quick, whole;
    char names[HELD_MAX][16];
    rn_route *routes[HELD_MAX][2];
    bool blocks[HELD_MAX];
    int64_t last_name;
    int granted, observed, released;
    int short_granted, short_observed, short_released; /* of them by the quick path */
    int told, short_told;                              /* responses to blocks' calls */
} rig;

static const char *url;
static size_t seeds = 1;

static uint64_t draw(rig *r, uint64_t below)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return (r->random >> 11) % below;
}

static bool chance(rig *r, uint64_t percent)
{
    return draw(r, 100) < percent;
}

#define PICK(r, array) ((array)[draw((r), sizeof(array) / sizeof((array)[0]))])

static void open_fleet(rig *r, rn_fleet *fleet, const char *which)
{
    char name[64];
    const rn_fleet_options options = {
        .rules = ration_config_rules(r->config),
        .name = name,
        .redis = {.url = url, .timeout_us = 5 * US_PER_S},
        .tells_time = true,
    };

    (void)snprintf(name, sizeof name, "%s %ld", which, (long)getpid());
    CHECK_EQ(rn_fleet_init(fleet, &options, r->now), RATION_OK);
    fleet->call.keys_end = true;
}

static void rig_open(rig *r, const struct row *row, uint64_t seed)
{
    ration_config_faults faults = {0};

    *r = (rig){.row = row, .random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1};
    r->now.us = ((int64_t)time(NULL) / 86400 + 2) * 86400 * US_PER_S + 37000 * US_PER_S;
    CHECK_EQ(ration_config_parse(ration_text_of(row->rules), "q", NULL, &r->config, &faults), RATION_OK);
    ration_config_faults_fini(&faults);
    open_fleet(r, &r->quick, "quick");
    open_fleet(r, &r->whole, "whole");
    r->whole.call.path = RN_CALL_WHOLE;
}

static void rig_close(rig *r)
{
    for (size_t i = 0; i < HELD_MAX; i++) {
        if (r->routes[i][0] != NULL) {
            rn_fleet_forget(&r->quick, r->routes[i][0]);
            rn_fleet_forget(&r->whole, r->routes[i][1]);
        }
    }
    CHECK_EQ(rn_fleet_erase(&r->quick), RATION_OK);
    CHECK_EQ(rn_fleet_erase(&r->whole), RATION_OK);
    rn_fleet_fini(&r->quick);
    rn_fleet_fini(&r->whole);
    ration_config_free(r->config);
}

/* ---- what must be the same ---- */

/* All keys of a fleet in order: names behind the fleet's, ends, values. */
static redisReply *dump(rn_fleet *fleet)
{
    static const char script[] = "local found = redis.call('KEYS', ARGV[1] .. '*') table.sort(found) local out = {} "
                                 "for _, key in ipairs(found) do out[#out + 1] = string.sub(key, #ARGV[1] + 1) "
                                 "out[#out + 1] = tostring(redis.call('PEXPIRETIME', key)) out[#out + 1] = "
                                 "redis.call('DUMP', key) end return out";
    char prefix[128];
    redisReply *reply = NULL;

    (void)snprintf(prefix, sizeof prefix, "ration:%d:{%s/p}:", RN_FLEET_LAYOUT, fleet->rules.name);

    const ration_text words[] = {{"EVAL", 4}, {script, sizeof script - 1}, {"0", 1}, ration_text_of(prefix)};

    CHECK_EQ(rn_redis_command(&fleet->redis, (ration_text){"", 0}, 4, words, &reply), RATION_OK);
    CHECK_EQ(reply->type, REDIS_REPLY_ARRAY);
    return reply;
}

static void check_same_keys(rig *r)
{
    redisReply *const quick = dump(&r->quick);
    redisReply *const whole = dump(&r->whole);

    CHECK_EQ(quick->elements, whole->elements);
    for (size_t i = 0; i < quick->elements; i++) {
        const redisReply *const a = quick->element[i];
        const redisReply *const b = whole->element[i];

        if (i % 3 == 1 && llabs(strtoll(a->str, NULL, 10) - strtoll(b->str, NULL, 10)) < CLOCK_MS)
            continue; /* lives of leases are told to Redis by its own clock */
        if (a->len != b->len || memcmp(a->str, b->str, a->len) != 0)
            print_error("%s differs\n", quick->element[i - i % 3]->str);
        CHECK(a->len == b->len && memcmp(a->str, b->str, a->len) == 0);
    }
    freeReplyObject(quick);
    freeReplyObject(whole);
}

static bool is_same_text(ration_text a, ration_text b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static void check_same_news(rig *r)
{
    bool more = true;

    CHECK_EQ(rn_answer_result(r->quick.reply), rn_answer_result(r->whole.reply));
    CHECK_EQ(rn_answer_at(r->quick.reply).us, rn_answer_at(r->whole.reply).us);
    for (size_t i = 0; more; i++) {
        rn_fleet_lost a = {0};
        rn_fleet_lost b = {0};

        more = rn_fleet_next_lost(&r->quick, i, &a);
        CHECK_EQ(rn_fleet_next_lost(&r->whole, i, &b), more);
        CHECK(!more || (is_same_text(a.id, b.id) && a.at.us == b.at.us));
    }
    more = true;
    for (size_t i = 0; more; i++) {
        rn_fleet_event a = {0};
        rn_fleet_event b = {0};

        more = rn_fleet_next_event(&r->quick, i, &a);
        CHECK_EQ(rn_fleet_next_event(&r->whole, i, &b), more);
        CHECK(!more || (is_same_text(a.what, b.what) && is_same_text(a.key, b.key) && is_same_text(a.cause, b.cause)));
        CHECK(a.at.us == b.at.us && a.before == b.before && a.value == b.value);
    }
}

static void check_same_decision(const ration_decision *a, const ration_decision *b)
{
    CHECK_EQ(a->result, b->result);
    CHECK_EQ(a->reason, b->reason);
    CHECK_EQ(a->at.us, b->at.us);
    CHECK_EQ(a->priority, b->priority);
    CHECK_EQ(a->retry_at.us, b->retry_at.us);
    CHECK_EQ(a->estimate, b->estimate);
    CHECK_STR(a->limit, b->limit);
    CHECK(is_same_text(a->key, b->key));
    CHECK(a->facts.charge == b->facts.charge && a->facts.available == b->facts.available);
    CHECK(a->facts.capacity == b->facts.capacity && a->facts.ahead == b->facts.ahead);
}

/* ---- calls ---- */

/* The quick path left the last call to the whole script. */
static bool is_left(const rig *r)
{
    return rn_answer_result(r->quick.reply) == RN_ANSWER_UNKNOWN && rn_answer_at(r->quick.reply).us == 0;
}

/* The last call was the quick path's. */
static bool is_taken(const rig *r)
{
    return r->quick.call.path == RN_CALL_ONLY && r->quick.call.brief.size > 0;
}

static void pass_time(rig *r)
{
    static const int64_t steps[] = {0, 1, 137, 1000, 9000, 20000, 100000, 300000, US_PER_S, 7 * US_PER_S};

    if (chance(r, 60))
        r->now.us += PICK(r, steps);
    if (chance(r, 2))
        r->now.us += (chance(r, 80) ? INT64_C(61) : INT64_C(3700)) * US_PER_S;
}

/* Units for many requests at once. No quick path takes them, but what comes of their calls. */
static void take_block(rig *r, size_t at)
{
    const int64_t units = 1 + (int64_t)draw(r, 9);
    ration_request request = RATION_REQUEST_INIT;

    request.account = ration_text_of("a");
    request.cost = 333333;
    request.ttl_us = 30 * US_PER_S;
    (void)snprintf(r->names[at], sizeof r->names[at], "i%d", (int)++r->last_name);

    const ration_text name = ration_text_of(r->names[at]);

    CHECK_EQ(rn_fleet_prefetch(&r->quick, r->now, &request, name, units, &r->routes[at][0]), RATION_OK);
    CHECK_EQ(rn_fleet_prefetch(&r->whole, r->now, &request, name, units, &r->routes[at][1]), RATION_OK);
    check_same_news(r);
    CHECK_EQ(r->routes[at][0] != NULL, r->routes[at][1] != NULL);
    r->blocks[at] = true;
}

static void admit(rig *r, size_t at)
{
    static const int64_t costs[] = {0, 1, 333333, 333333, US_PER_S, US_PER_S, US_PER_S, 2 * US_PER_S, 5 * US_PER_S};
    static const int64_t times[] = {5 * US_PER_S, 30 * US_PER_S, 90 * US_PER_S, INT64_C(10800) * US_PER_S};
    ration_request request = RATION_REQUEST_INIT;
    ration_decision quick;
    ration_decision whole;

    request.account = chance(r, 70) ? ration_text_of("a") : ration_text_of("b");
    request.cost = PICK(r, costs) * r->row->larger;
    request.ttl_us = draw(r, 400) > 0 ? PICK(r, times) : RATION_UNSET;
    request.hold_us = chance(r, 15) ? PICK(r, times) : RATION_UNSET;
    request.wait_us = chance(r, 6) ? US_PER_S : 0;
    request.retry = chance(r, 10);
    request.priority = chance(r, 10) ? RATION_PRIORITY_CRITICAL : RATION_PRIORITY_UNSET;
    /* Now and then a name that is known. */
    if (r->names[at][0] == '\0' || chance(r, 95))
        (void)snprintf(r->names[at], sizeof r->names[at], "i%d", (int)++r->last_name);

    const ration_text name = ration_text_of(r->names[at]);

    r->blocks[at] = false;
    r->quick.call.path = RN_CALL_ONLY;

    int err = rn_fleet_submit(&r->quick, r->now, &request, name, &quick, &r->routes[at][0]);

    if (err == RATION_OK && is_left(r)) {
        rn_fleet_forget(&r->quick, r->routes[at][0]);
        r->quick.call.path = RN_CALL_WHOLE;
        err = rn_fleet_submit(&r->quick, r->now, &request, name, &quick, &r->routes[at][0]);
    }
    CHECK_EQ(rn_fleet_submit(&r->whole, r->now, &request, name, &whole, &r->routes[at][1]), err);
    check_same_news(r);
    if (err != RATION_OK)
        return;
    check_same_decision(&quick, &whole);
    r->granted += quick.result == RATION_GRANTED ? 1 : 0;
    r->short_granted += is_taken(r) ? 1 : 0;
}

static void respond(rig *r, size_t at)
{
    static const int statuses[] = {200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 404, 429, 500};
    static const ration_header headers[] = {{{"X-Left", 6}, {"5", 1}}};
    const ration_response response = {
        .status = PICK(r, statuses),
        .headers = headers,
        .header_count = chance(r, 50) ? 1 : 0,
    };
    const ration_text name = ration_text_of(r->names[at]);

    r->quick.call.path = RN_CALL_ONLY;

    int err = rn_fleet_observe(&r->quick, r->now, r->routes[at][0], name, &response);

    if (is_left(r)) {
        r->quick.call.path = RN_CALL_WHOLE;
        err = rn_fleet_observe(&r->quick, r->now, r->routes[at][0], name, &response);
    }
    CHECK_EQ(rn_fleet_observe(&r->whole, r->now, r->routes[at][1], name, &response), err);
    check_same_news(r);
    r->observed++;
    r->short_observed += is_taken(r) ? 1 : 0;
    r->told += r->blocks[at] ? 1 : 0;
    r->short_told += r->blocks[at] && is_taken(r) ? 1 : 0;
}

static void end(rig *r, size_t at)
{
    static const ration_outcome outcomes[] = {RATION_OUTCOME_SUCCESS,  RATION_OUTCOME_SUCCESS, RATION_OUTCOME_SUCCESS,
                                              RATION_OUTCOME_SUCCESS,  RATION_OUTCOME_SUCCESS, RATION_OUTCOME_FAILURE,
                                              RATION_OUTCOME_CANCELLED};
    static const int64_t costs[] = {0, 333333, US_PER_S, 12 * US_PER_S};
    const ration_completion how = {
        .outcome = chance(r, 2) ? RATION_OUTCOME_THROTTLED : PICK(r, outcomes),
        .cost = chance(r, 10) ? PICK(r, costs) : RATION_UNSET,
    };
    const ration_text name = ration_text_of(r->names[at]);

    r->quick.call.path = RN_CALL_ONLY;

    int err = rn_fleet_release(&r->quick, r->now, r->routes[at][0], name, &how);

    if (is_left(r)) {
        r->quick.call.path = RN_CALL_WHOLE;
        err = rn_fleet_release(&r->quick, r->now, r->routes[at][0], name, &how);
    }
    CHECK_EQ(rn_fleet_release(&r->whole, r->now, r->routes[at][1], name, &how), err);
    check_same_news(r);
    r->released++;
    r->short_released += is_taken(r) ? 1 : 0;
    if (chance(r, 5))
        return; /* it may be repeated, or used by a newcomer */
    rn_fleet_forget(&r->quick, r->routes[at][0]);
    rn_fleet_forget(&r->whole, r->routes[at][1]);
    r->routes[at][0] = r->routes[at][1] = NULL;
}

static void renew(rig *r, size_t at)
{
    const ration_text name = ration_text_of(r->names[at]);
    const int err = rn_fleet_renew(&r->quick, r->now, r->routes[at][0], name);

    CHECK_EQ(rn_fleet_renew(&r->whole, r->now, r->routes[at][1], name), err);
    check_same_news(r);
}

static void step(rig *r)
{
    const size_t at = (size_t)draw(r, HELD_MAX);

    pass_time(r);
    if (r->routes[at][0] == NULL && r->row->blocks && chance(r, 30)) {
        take_block(r, at);
    } else if (r->routes[at][0] == NULL) {
        admit(r, at);
    } else if (chance(r, 50)) {
        respond(r, at);
    } else if (chance(r, 10)) {
        renew(r, at);
    } else {
        end(r, at);
    }
    check_same_keys(r);
}

static void check_row_same(const struct row *row, size_t first_seed)
{
    rig sum = {0};

    for (size_t seed = 0; seed < seeds; seed++) {
        static rig r;

        rig_open(&r, row, first_seed + seed);
        for (int n = 0; n < STEPS; n++)
            step(&r);
        rig_close(&r);
        sum.granted += r.granted;
        sum.observed += r.observed;
        sum.released += r.released;
        sum.told += r.told;
        sum.short_told += r.short_told;
        sum.short_granted += r.short_granted;
        sum.short_observed += r.short_observed;
        sum.short_released += r.short_released;
    }
    print_message("%s: %d of %d grants, %d of %d responses, %d of %d releases, %d of %d of blocks\n", row->why,
                  sum.short_granted, sum.granted, sum.short_observed, sum.observed, sum.short_released, sum.released,
                  sum.short_told, sum.told);
    CHECK(sum.granted > 10 && 100 * sum.short_granted >= row->grants * sum.granted);
    CHECK(100 * sum.short_observed >= row->news * sum.observed);
    CHECK(100 * sum.short_released >= row->news * sum.released);
    CHECK(!row->blocks || (sum.told >= 5 && 4 * sum.short_told >= sum.told));
}

static void test_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        check_row_same(&rows[i], 1 + i * seeds);
    }
    CHECK_ROW(NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same)};

    if (argc != 2 && argc != 3)
        return 2;
    url = argv[1];
    if (argc == 3)
        seeds = strtoul(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
