/* SPDX-License-Identifier: MIT */
/* Breakers, outcomes, holds that are learned: what their keys give, and what is refused. */
#include "support/config.h"

#include <stdio.h>

#define SECOND INT64_C(1000000)
#define MS INT64_C(1000)

#define PROVIDER "providers:\n- name: p\n  baseUrl: http://h\n" /* lines 1 to 3 */
#define BREAKER PROVIDER "  breaker: { "                        /* line 4 */

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};
static const ration_config_options recording = {.recording = true};

static void check_ratio(ration_ratio got, int32_t num, int32_t den)
{
    CHECK_EQ(got.num, num);
    CHECK_EQ(got.den, den);
}

static const ration_breaker_rule *breaker_of(const ration_config *config)
{
    return &ration_config_rules(config)->providers[0].breaker;
}

static void without_a_breaker_there_is_none(void **state)
{
    ration_config *config = config_of(PROVIDER, &plain);

    (void)state;
    CHECK_EQ(breaker_of(config)->strategy, RATION_BREAKER_NONE);
    ration_config_free(config);
}

static void a_breaker_of_failures_in_a_row(void **state)
{
    ration_config *config = config_of(BREAKER "strategy: consecutive, threshold: 3, recovery: probe, probe: { n: 2 }, "
                                              "backoff: { initial: 1s, multiplier: 1.5, max: 30s } }\n",
                                      &plain);
    const ration_breaker_rule *rule = breaker_of(config);

    (void)state;
    CHECK_EQ(rule->strategy, RATION_BREAKER_CONSECUTIVE);
    CHECK_EQ(rule->threshold, 3);
    CHECK_EQ(rule->recovery, RATION_RECOVERY_PROBE);
    CHECK_EQ(rule->probes, 2);
    CHECK_EQ(rule->backoff_initial_us, SECOND);
    check_ratio(rule->backoff_multiplier, 3, 2);
    CHECK_EQ(rule->backoff_max_us, 30 * SECOND);
    CHECK_EQ(rule->scope_count, 0);
    CHECK_STR(rule->check_path, NULL);
    ration_config_free(config);
}

static void a_breaker_of_the_last_results(void **state)
{
    ration_config *config =
        config_of(BREAKER "strategy: count, threshold: 2/3, size: 30, minimumCalls: 20, recovery: healthCheck, "
                          "healthCheck: { method: HEAD, path: \"/health?deep=1\", expect: [200, 204] }, backoff: { "
                          "delay: 5s }, idleProbe: { interval: 1m, failures: 4 }, scope: { by: [account, target] } }\n",
                  &plain);
    const ration_breaker_rule *rule = breaker_of(config);

    (void)state;
    CHECK_EQ(rule->strategy, RATION_BREAKER_COUNT);
    check_ratio(rule->ratio, 2, 3);
    CHECK_EQ(rule->size, 30);
    CHECK_EQ(rule->minimum_calls, 20);
    CHECK_EQ(rule->recovery, RATION_RECOVERY_HEALTH_CHECK);
    CHECK_STR(rule->check_method, "HEAD");
    CHECK_STR(rule->check_path, "/health?deep=1");
    CHECK_EQ(rule->check_expect_count, 2);
    CHECK_EQ(rule->check_expect[1], 204);
    CHECK_EQ(rule->backoff_initial_us, 5 * SECOND);
    CHECK_EQ(rule->backoff_multiplier.den, 0);
    CHECK_EQ(rule->idle_interval_us, 60 * SECOND);
    CHECK_EQ(rule->idle_failures, 4);
    CHECK_EQ(rule->scope_count, 2);
    CHECK_STR(rule->scope[1], "target");
    ration_config_free(config);
}

static void a_breaker_of_the_last_seconds(void **state)
{
    ration_config *config = config_of(
        "{\"providers\":[{\"name\":\"p\",\"breaker\":{\"strategy\":\"sampling\",\"duration\":\"10s\",\"idleProbe\":"
        "{\"interval\":\"30s\"},\"healthCheck\":{\"path\":\"/\"}}}]}",
        &recording);
    const ration_breaker_rule *rule = breaker_of(config);

    (void)state;
    CHECK_EQ(rule->strategy, RATION_BREAKER_SAMPLING);
    check_ratio(rule->ratio, 1, 2);
    CHECK_EQ(rule->duration_us, 10 * SECOND);
    CHECK_EQ(rule->minimum_calls, 10);
    CHECK_EQ(rule->recovery, RATION_RECOVERY_PROBE);
    CHECK_STR(rule->check_path, "/");
    CHECK_EQ(rule->idle_interval_us, 30 * SECOND);
    ration_config_free(config);
}

static void outcomes_are_the_providers(void **state)
{
    ration_config *config = config_of(PROVIDER "  outcome: { throttled: [429, 529], failure: [500] }\n", &plain);
    const ration_error_rule *errors = &ration_config_rules(config)->providers[0].errors;

    (void)state;
    CHECK_EQ(errors->throttled_count, 2);
    CHECK_EQ(errors->throttled[1], 529);
    CHECK_EQ(errors->failure_count, 1);
    CHECK_EQ(errors->failure[0], 500);
    CHECK_EQ(errors->rate_limited_count, 1);
    ration_config_free(config);
}

/* The provider's `hold` and `holdFloor`, an endpoint's, and what the gateway and the rules make of it. */
static const struct {
    const char *why;
    const char *provider;
    const char *endpoint;
    bool provider_auto, endpoint_auto;
    int64_t floor_ms, hold_ms; /* of the endpoint; hold -1: none */
} holds[] = {
    {"nothing", "", "", false, false, 50, -1},
    {"a hold", "hold: 5s", "", false, false, 50, -1},
    {"learned", "hold: auto", "", true, true, 50, -1},
    {"learned but for one", "hold: auto", ", hold: 2s", true, false, 50, 2000},
    {"only one is learned", "hold: 5s", ", hold: auto", false, true, 50, -1},
    {"a floor", "hold: auto\n  holdFloor: 100ms", "", true, true, 100, -1},
    {"a floor of its own", "hold: auto\n  holdFloor: 100ms", ", holdFloor: 0", true, true, 0, -1},
    {"a floor beside it", "", ", hold: auto, holdFloor: 7ms", false, true, 7, -1},
    {"a floor for what is learned", "holdFloor: 70ms", ", hold: auto", false, true, 70, -1},
};

static void holds_are_learned_where_it_says_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof holds / sizeof holds[0]; i++) {
        char text[512];

        CHECK_ROW(holds[i].why);
        (void)snprintf(text, sizeof text, PROVIDER "  %s\n  endpoints: [ { path: /a, cost: 2%s } ]\n",
                       holds[i].provider, holds[i].endpoint);

        ration_config *config = config_of(text, &plain);
        const rn_provider *provider = rn_config_provider(config, 0);
        const int64_t hold_us = ration_config_rules(config)->providers[0].endpoints[0].defaults.hold_us;

        CHECK_EQ(provider->hold.hold_auto, holds[i].provider_auto);
        CHECK_EQ(provider->endpoints[0].hold_auto, holds[i].endpoint_auto);
        CHECK_EQ(provider->endpoints[0].hold_floor_us, holds[i].floor_ms * MS);
        CHECK_EQ(hold_us, holds[i].hold_ms < 0 ? RATION_UNSET : holds[i].hold_ms * MS);
        if (holds[i].provider_auto)
            CHECK_EQ(ration_config_rules(config)->providers[0].defaults.hold_us, RATION_UNSET);
        ration_config_free(config);
    }
}

/* What is wrong. */
static const struct {
    const char *why;
    const char *text;
    const char *want;
} rows[] = {
    /* breaker */
    {"of no strategy", PROVIDER "  breaker: {}\n", "f:4:12: providers[0].breaker: the key 'strategy' is missing\n"},
    {"of an unknown one", BREAKER "strategy: cuont, threshold: 5 }\n",
     "f:4:24: providers[0].breaker.strategy: 'cuont' is not one of: consecutive, count, sampling (did you mean "
     "'count'?)\n"},
    {"a part of a row", BREAKER "strategy: consecutive, threshold: 50% }\n",
     "f:4:48: providers[0].breaker.threshold: '50%' is not a whole number such as 100\n"},
    {"a number of a part", BREAKER "strategy: count, threshold: 5 }\n",
     "f:4:42: providers[0].breaker.threshold: '5' is out of range (it must be a ratio from 0 to 1 such as 80%, 0.8 or "
     "4/5)\n"},
    {"keys of the other strategy", BREAKER "strategy: consecutive, size: 5, duration: 1s }\n",
     "f:4:37: providers[0].breaker.size: a breaker of this strategy has no such key\n"
     "f:4:46: providers[0].breaker.duration: a breaker of this strategy has no such key\n"},
    {"a part of nothing", BREAKER "strategy: sampling, threshold: 0% }\n",
     "f:4:45: providers[0].breaker.threshold: the threshold must be above 0 and at most 1 (100 %)\n"},
    {"more calls than are kept", BREAKER "strategy: count, size: 9 }\n",
     "f:4:37: providers[0].breaker.size: fewer results are kept than 'minimumCalls' asks for, so the circuit could "
     "never open (give a lower 'minimumCalls' too: without it it is 10)\n"},
    {"as many calls as are kept", BREAKER "strategy: count, size: 10 }\n", ""},
    {"no health check to recover by", BREAKER "strategy: count, recovery: healthCheck }\n",
     "f:4:41: providers[0].breaker.recovery: health checks need 'healthCheck' (such as { path: /health })\n"},
    {"no health check for quiet times", BREAKER "strategy: count, idleProbe: { interval: 1s } }\n",
     "f:4:42: providers[0].breaker.idleProbe: health checks need 'healthCheck' (such as { path: /health })\n"},
    {"a health check for nothing", BREAKER "strategy: count, healthCheck: { path: / } }\n",
     "f:4:44: providers[0].breaker.healthCheck: 'healthCheck' goes with `recovery: healthCheck` or an 'idleProbe' "
     "only\n"},
    {"a health check of nothing",
     BREAKER "strategy: count, recovery: healthCheck, healthCheck: { path: \"health #\", expect: [] } }\n",
     "f:4:75: providers[0].breaker.healthCheck.path: 'health #' is not a path that begins with '/', such as /health, "
     "without blanks and fragment\n"
     "f:4:95: providers[0].breaker.healthCheck.expect: the list is empty\n"},
    {"probes and a health check",
     BREAKER "strategy: count, recovery: healthCheck, healthCheck: { path: / }, probe: { n: 2 } }\n",
     "f:4:87: providers[0].breaker.probe: 'probe' goes with `recovery: probe` only\n"},
    {"a scope that is no health check's",
     BREAKER "strategy: count, recovery: healthCheck, healthCheck: { path: / }, scope: { by: [account, \"var:x\", "
             "tenant] } }\n",
     "f:4:103: providers[0].breaker.scope.by[1]: this circuit is tried by health checks, and they have no such "
     "dimension (they have instance, provider, account, target and credential)\n"
     "f:4:112: providers[0].breaker.scope.by[2]: this circuit is tried by health checks, and they have no such "
     "dimension (they have instance, provider, account, target and credential)\n"},
    {"a scope that is no idle probe's",
     BREAKER "strategy: count, idleProbe: { interval: 1s }, healthCheck: { path: / }, scope: { by: [endpoint] } }\n",
     "f:4:100: providers[0].breaker.scope.by[0]: this circuit is tried by health checks, and they have no such "
     "dimension "
     "(they have instance, provider, account, target and credential)\n"},
    {"a scope for probes", BREAKER "strategy: count, scope: { by: [account, \"var:x\", tenant] } }\n", ""},
    {"no scope", BREAKER "strategy: count, scope: { by: [] } }\n",
     "f:4:44: providers[0].breaker.scope.by: the list is empty\n"},
    {"a back-off of nothing", BREAKER "strategy: count, backoff: {} }\n",
     "f:4:40: providers[0].breaker.backoff: a back-off is either a 'delay', or an 'initial' with its 'multiplier' "
     "(such as { delay: 1s } or { initial: 1s, multiplier: 2, max: 30s })\n"},
    {"a back-off of both", BREAKER "strategy: count, backoff: { delay: 1s, initial: 1s } }\n",
     "f:4:40: providers[0].breaker.backoff: a back-off is either a 'delay', or an 'initial' with its 'multiplier' "
     "(such as { delay: 1s } or { initial: 1s, multiplier: 2, max: 30s })\n"},
    {"a back-off that starts nowhere", BREAKER "strategy: count, backoff: { multiplier: 2 } }\n",
     "f:4:40: providers[0].breaker.backoff: a back-off is either a 'delay', or an 'initial' with its 'multiplier' "
     "(such as { delay: 1s } or { initial: 1s, multiplier: 2, max: 30s })\n"},
    {"a back-off that shrinks", BREAKER "strategy: count, backoff: { initial: 1s, multiplier: 0.999999 } }\n",
     "f:4:67: providers[0].breaker.backoff.multiplier: '0.999999' is out of range (at least 1 and at most 1000)\n"},
    {"a back-off of too many digits", BREAKER "strategy: count, backoff: { initial: 1s, multiplier: 1.000001 } }\n",
     "f:4:67: providers[0].breaker.backoff.multiplier: the number has too many digits (it must be a fraction of whole "
     "numbers up to a million)\n"},
    {"a back-off that does not grow", BREAKER "strategy: count, backoff: { initial: 1s, multiplier: 2, max: 1s } }\n",
     ""},
    {"a back-off that ends before it begins",
     BREAKER "strategy: count, backoff: { initial: 1s, multiplier: 2, max: 1ms } }\n",
     "f:4:75: providers[0].breaker.backoff.max: 'max' is below 'initial'\n"},
    {"of an account", PROVIDER "accounts: [{ name: a, provider: p, breaker: { strategy: count } }]\n",
     "f:4:36: accounts[0].breaker: unknown key\n"},

    /* outcome */
    {"no status", PROVIDER "  outcome: { throttled: [] }\n",
     "f:4:25: providers[0].outcome.throttled: the list is empty\n"},
    {"both at once", PROVIDER "  outcome: { throttled: [429, 503], failure: [500, 503] }\n",
     "f:4:52: providers[0].outcome.failure[1]: a status is either throttled or a failure, not both\n"},

    /* hold */
    {"a misspelt auto", PROVIDER "  hold: atuo\n",
     "f:4:9: providers[0].hold: 'atuo' is not a duration such as 250ms, 10s or 1h30m, or auto\n"},
    {"a floor for nothing", PROVIDER "  endpoints: [ { path: /a, hold: 1s, holdFloor: 1ms } ]\n",
     "f:4:49: providers[0].endpoints[0].holdFloor: 'holdFloor' goes with `hold: auto` only\n"},
};

static void each_fault_has_its_place(void **state)
{
    char got[4096];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        faults_of(rows[i].text, strlen(rows[i].text), &plain, got, sizeof got);
        CHECK_STR(got, rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_breaker_there_is_none), cmocka_unit_test(a_breaker_of_failures_in_a_row),
        cmocka_unit_test(a_breaker_of_the_last_results),   cmocka_unit_test(a_breaker_of_the_last_seconds),
        cmocka_unit_test(outcomes_are_the_providers),      cmocka_unit_test(holds_are_learned_where_it_says_so),
        cmocka_unit_test(each_fault_has_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
