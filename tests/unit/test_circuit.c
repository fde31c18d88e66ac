/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/world.h"

#define MS(n) ((int64_t)(n)*1000)
#define UNIT RATION_UNIT

static world w;

static const char *const by_account[] = {"account"};
static const char *const by_provider[] = {"provider"};
static const char *const by_x[] = {"var:x"};

static const ration_limit_rule slot = {
    .name = "slot", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = UNIT};

/* Opens at the second failure in a row, tries again after 1 s, 2 s, 3 s. */
static const ration_breaker_rule probing = {
    .strategy = RATION_BREAKER_CONSECUTIVE,
    .threshold = 2,
    .backoff_initial_us = MS(1000),
    .backoff_multiplier = {2, 1},
    .backoff_max_us = MS(3000),
};

static void begin(const ration_limit_rule *limits, size_t count, ration_breaker_rule breaker)
{
    ration_account_rule accounts[2];
    ration_provider_rule provider;
    ration_rules rules;

    world_rules(&rules, &provider, accounts, limits, count);
    provider.breaker = breaker;
    CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
}

static const char *ask(int64_t at_ms, const char *request)
{
    return world_ask(&w, MS(at_ms), request);
}

static const char *end(int64_t at_ms, const char *name, ration_outcome outcome)
{
    return world_release(&w, MS(at_ms), name, outcome, RATION_UNSET);
}

/* Fail as often as it takes. */
static void trip(int64_t at_ms)
{
    for (int i = 0; i < 2; i++) {
        CHECK_STR(ask(at_ms, "t"), "granted");
        CHECK_STR(end(at_ms, "t", RATION_OUTCOME_FAILURE), "released");
    }
}

static void an_open_circuit_refuses_before_any_limit_is_looked_at(void **state)
{
    (void)state;
    begin(&slot, 1, probing);
    trip(0);
    CHECK_STR(world_events(&w), "open acc;");
    CHECK_STR(ask(0, "a cost=99 wait=5000"), "circuit_open - acc 1000000us");
    CHECK_STR(ask(999, "a"), "circuit_open - acc 1000us");
    CHECK_STR(ask(999, "b account=bcc"), "granted"); /* another circuit */
    CHECK_STR(world_events(&w), "");
    CHECK_STR(ask(1000, "p"), "granted"); /* the probe */
    CHECK_STR(world_events(&w), "half-open acc;");
    CHECK_STR(ask(1001, "q wait=5000"), "circuit_open - acc 999000us");
    CHECK_STR(end(1500, "p", RATION_OUTCOME_SUCCESS), "released");
    CHECK_STR(world_events(&w), "closed acc;");
    CHECK_STR(ask(1500, "c"), "granted");
    world_fini(&w);
}

static void opening_refuses_who_waits(void **state)
{
    (void)state;
    begin(&slot, 1, probing);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(ask(0, "low wait=9000 priority=low"), "queued");
    CHECK_STR(ask(0, "one wait=9000"), "queued");
    CHECK_STR(ask(0, "other account=bcc"), "granted");
    CHECK_STR(ask(0, "waits account=bcc wait=9000"), "queued");
    CHECK_STR(world_observe(&w, MS(10), "a", 500, NULL, NULL), "observed");
    CHECK_STR(end(10, "a", RATION_OUTCOME_FAILURE), "released"); /* the same call: one result */
    CHECK_STR(world_events(&w), "granted one 10;");
    CHECK_STR(end(20, "one", RATION_OUTCOME_FAILURE), "released");
    CHECK_STR(world_events(&w), "open acc;refused low circuit_open - 20;");
    CHECK_STR(end(30, "other", RATION_OUTCOME_SUCCESS), "released");
    CHECK_STR(world_events(&w), "granted waits 30;");
    world_fini(&w);
}

static void no_probe_is_lost_to_another_limit(void **state)
{
    (void)state;
    begin(&slot, 1, probing);
    CHECK_STR(ask(0, "holder"), "granted"); /* of the only slot, from before */
    CHECK_STR(end(0, "holder", RATION_OUTCOME_SUCCESS), "released");
    trip(0);
    CHECK_STR(ask(1000, "p"), "granted");
    CHECK_STR(end(1000, "p", RATION_OUTCOME_THROTTLED), "released"); /* no result; and a pause of 2 s */
    CHECK_STR(ask(1000, "no"), "penalized slot acc 2000000us");
    CHECK_STR(ask(1000, "w wait=2500"), "queued"); /* has the permit while it waits */
    CHECK_STR(ask(1000, "x wait=9000"), "circuit_open - acc 1000000us");
    CHECK_STR(world_cancel(&w, MS(1500), "w"), "cancelled");
    CHECK_STR(ask(1500, "y wait=5000"), "queued");
    CHECK_STR(ask(1500, "z wait=100"), "circuit_open - acc 1000000us"); /* from y on, which is out */
    world_fini(&w);
}

static void lost_probes_are_replaced(void **state)
{
    (void)state;
    begin(&slot, 1, probing);
    trip(0);
    CHECK_STR(ask(1200, "p ttl=60000"), "granted");
    CHECK_STR(ask(2199, "q"), "circuit_open - acc 1000us");
    CHECK_STR(ask(2200, "q"), "concurrency_full slot acc -");      /* a fresh permit, and it is not lost */
    CHECK_STR(end(2300, "p", RATION_OUTCOME_FAILURE), "released"); /* of an earlier generation */
    CHECK_STR(ask(2300, "q"), "granted");
    CHECK_STR(end(2301, "q", RATION_OUTCOME_FAILURE), "released");
    CHECK_STR(world_events(&w), "open acc;half-open acc;open acc;");
    CHECK_STR(ask(2301, "r"), "circuit_open - acc 2000000us"); /* the next delay */
    world_fini(&w);
}

static void late_results_and_saturation_change_nothing(void **state)
{
    static const ration_limit_rule many = {
        .name = "slots", .kind = RATION_KIND_CONCURRENCY, .scope = by_account, .scope_count = 1, .max = 9 * UNIT};

    (void)state;
    begin(&many, 1, probing);
    CHECK_STR(ask(0, "late"), "granted");
    CHECK_STR(ask(0, "later"), "granted");
    trip(0);
    CHECK_STR(ask(1000, "p"), "granted");
    CHECK_STR(end(1000, "late", RATION_OUTCOME_FAILURE), "released");
    CHECK_STR(end(1001, "p", RATION_OUTCOME_SUCCESS), "released");
    CHECK_STR(end(1002, "later", RATION_OUTCOME_FAILURE), "released");
    CHECK_STR(ask(1002, "one"), "granted");
    CHECK_STR(end(1002, "one", RATION_OUTCOME_FAILURE), "released");
    CHECK_STR(ask(1002, "two"), "granted"); /* one in a row only */
    for (int i = 0; i < 20; i++) {
        CHECK_STR(ask(1002, "c ttl=1"), "granted");
        CHECK_STR(end(1002, "c", RATION_OUTCOME_CANCELLED), "released");
    }
    CHECK_STR(ask(1002, "l ttl=1"), "granted");
    CHECK_STR(ask(1004, "m"), "granted"); /* l is lost */
    CHECK_STR(world_events(&w), "open acc;half-open acc;closed acc;lost l;");
    for (int i = 0; i < 20; i++)
        (void)ask(1004, "n cost=1");
    CHECK_STR(world_observe(&w, MS(1005), "m", 429, NULL, NULL), "observed");
    CHECK_STR(end(1005, "two", RATION_OUTCOME_FAILURE), "released");
    CHECK_STR(world_events(&w), "open acc;"); /* now: two in a row */
    world_fini(&w);
}

static void health_checks_close_it(void **state)
{
    ration_breaker_rule rule = probing;

    (void)state;
    rule.recovery = RATION_RECOVERY_HEALTH_CHECK;
    rule.check_path = "/health";
    begin(&slot, 1, rule);
    CHECK_STR(world_health(&w, 0, "nobody", true), "unknown");
    CHECK_STR(world_health(&w, 0, "acc", true), "noted"); /* nothing has been asked yet */
    trip(0);
    world_advance(&w, MS(999));
    CHECK_STR(world_events(&w), "open acc;");
    world_advance(&w, MS(1000));
    CHECK_STR(world_events(&w), "check acc;");
    CHECK_STR(ask(1000, "a"), "circuit_open - acc 1000000us");
    CHECK_STR(ask(1000, "h health=1 priority=critical"), "granted"); /* budgeted, and let through */
    CHECK_STR(end(1100, "h", RATION_OUTCOME_FAILURE), "released");
    CHECK_STR(world_health(&w, MS(1100), "acc", false), "noted");
    CHECK_STR(ask(1100, "a"), "circuit_open - acc 2000000us");
    world_advance(&w, MS(3100));
    CHECK_STR(world_events(&w), "check acc;");
    world_advance(&w, MS(5100)); /* the check never came back */
    CHECK_STR(world_events(&w), "check acc;");
    CHECK_STR(world_health(&w, MS(5200), "acc", true), "noted");
    CHECK_STR(world_events(&w), "closed acc;");
    CHECK_STR(ask(5200, "a"), "granted");
    world_fini(&w);
}

/* A program that stood still for a year is told of one check, not of one for each delay of it. */
static void checks_that_nobody_could_run(void **state)
{
    ration_breaker_rule rule = probing;
    const int64_t year_ms = INT64_C(365) * 86400 * 1000;

    (void)state;
    rule.recovery = RATION_RECOVERY_HEALTH_CHECK;
    rule.check_path = "/health";
    rule.backoff_initial_us = 300;
    rule.backoff_multiplier = (ration_ratio){0, 0};
    begin(&slot, 1, rule);
    trip(0);
    CHECK_STR(world_events(&w), "open acc;");
    world_advance(&w, MS(year_ms) + 1);
    CHECK_STR(world_events(&w), "check acc;");
    CHECK_STR(world_ask(&w, MS(year_ms) + 1, "a"), "circuit_open - acc 299us"); /* the delays have gone on */
    world_advance(&w, MS(year_ms) + 300);
    CHECK_STR(world_events(&w), "check acc;");
    world_advance(&w, MS(year_ms) + 900); /* these could have been run */
    CHECK_STR(world_events(&w), "check acc;check acc;");
    world_fini(&w);
}

static void idle_probes_open_a_quiet_circuit(void **state)
{
    ration_breaker_rule rule = probing;

    (void)state;
    rule.check_path = "/health";
    rule.idle_interval_us = MS(500);
    rule.idle_failures = 2;
    begin(&slot, 1, rule);
    CHECK_STR(ask(0, "a"), "granted");
    CHECK_STR(end(100, "a", RATION_OUTCOME_SUCCESS), "released");
    world_advance(&w, MS(599));
    CHECK_STR(world_events(&w), "");
    world_advance(&w, MS(600));
    CHECK_STR(world_events(&w), "check acc;");
    CHECK_STR(world_health(&w, MS(610), "acc", false), "noted");
    CHECK_STR(world_events(&w), "");
    world_advance(&w, MS(1110));
    CHECK_STR(world_events(&w), "check acc;");
    CHECK_STR(world_health(&w, MS(1110), "acc", false), "noted");
    CHECK_STR(world_events(&w), "open acc;");
    world_fini(&w);
}

static void scopes(void **state)
{
    ration_breaker_rule rule = probing;

    (void)state;
    rule.scope = by_provider;
    rule.scope_count = 1;
    begin(&slot, 1, rule);
    trip(0);
    CHECK_STR(ask(0, "b account=bcc"), "circuit_open - p 1000000us");
    CHECK_STR(world_health(&w, 0, "bcc", true), "noted");
    CHECK_STR(ask(0, "b account=bcc"), "granted");
    world_fini(&w);

    rule.scope = by_x;
    begin(&slot, 1, rule);
    for (int i = 0; i < 2; i++) {
        CHECK_STR(ask(0, "a x=1"), "granted");
        CHECK_STR(end(0, "a", RATION_OUTCOME_FAILURE), "released");
    }
    CHECK_STR(ask(0, "a x=1"), "circuit_open - x=1 1000000us");
    CHECK_STR(ask(0, "a x=2"), "granted");
    CHECK_STR(end(0, "a", RATION_OUTCOME_FAILURE), "released");
    trip(0); /* no x, no circuit: any number may fail */
    trip(0);
    CHECK_STR(ask(0, "a"), "granted");
    world_fini(&w);
}

static void what_a_status_means_can_be_said(void **state)
{
    static const int throttled[] = {429, 529};
    static const int failure[] = {500};
    static const struct {
        const char *why;
        int status;
        bool opens;
    } rows[] = {
        {"a failure", 500, true},
        {"transient, but no failure here", 503, false},
        {"throttled is no result", 529, false},
        {"nor is 429", 429, false},
        {"a client's error is a success", 404, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_account_rule accounts[2];
        ration_provider_rule provider;
        ration_rules rules;

        CHECK_ROW(rows[i].why);
        world_rules(&rules, &provider, accounts, NULL, 0);
        provider.breaker = probing;
        provider.breaker.threshold = 1;
        provider.errors.throttled = throttled;
        provider.errors.throttled_count = 2;
        provider.errors.failure = failure;
        provider.errors.failure_count = 1;
        CHECK_EQ(world_init_rules(&w, &rules, NULL), RATION_OK);
        CHECK_STR(ask(0, "a"), "granted");
        CHECK_STR(world_observe(&w, 0, "a", rows[i].status, NULL, NULL), "observed");
        CHECK_STR(end(0, "a", RATION_OUTCOME_SUCCESS), "released");
        CHECK_STR(world_events(&w), rows[i].opens ? "open acc;" : "");
        world_fini(&w);
    }
    CHECK_ROW(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_circuit_refuses_before_any_limit_is_looked_at),
        cmocka_unit_test(opening_refuses_who_waits),
        cmocka_unit_test(no_probe_is_lost_to_another_limit),
        cmocka_unit_test(lost_probes_are_replaced),
        cmocka_unit_test(late_results_and_saturation_change_nothing),
        cmocka_unit_test(health_checks_close_it),
        cmocka_unit_test(checks_that_nobody_could_run),
        cmocka_unit_test(idle_probes_open_a_quiet_circuit),
        cmocka_unit_test(scopes),
        cmocka_unit_test(what_a_status_means_can_be_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
