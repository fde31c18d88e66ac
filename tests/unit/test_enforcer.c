/* SPDX-License-Identifier: MIT */
/*
 * The provider's side: whole bursts and quotas, keys by credential, another client that spends quotas alone. One
 * provider with a limit of every kind; each test asks a fresh enforcer.
 */
#include "simulate/enforcer.h"

#include "support/check.h"

#define MS INT64_C(1000)
#define S INT64_C(1000000)
#define UNIT RATION_UNIT
#define START (INT64_C(1709208000) * S) /* 2024-02-29T12:00:00Z */

static const char *const by_account[] = {"account"};
static const char *const by_instance[] = {"instance"};
static const char *const by_target_and_credential[] = {"target", "credential"};
static const char *const by_variable[] = {"account", "var:id"};
static const char *const by_endpoint[] = {"endpoint"};
static const char *const by_tenant[] = {"tenant"};
static const char *const things[] = {"/things/**"};
static const char *const slow[] = {"/slow"};
static const char *const paths[] = {"/paths/*"};
static const char *const quotas[] = {"/quota", "/rolling"};
static const char *const rolling[] = {"/rolling"};

static const ration_limit_rule limits[] = {
    {.name = "rate",
     .kind = RATION_KIND_RATE,
     .rate = {10 * UNIT, S},
     .burst = 5 * UNIT,
     .margin = RATION_UNSET,
     .scope = by_account,
     .scope_count = 1,
     .arrival_us = RATION_UNSET},
    {.name = "slots",
     .kind = RATION_KIND_CONCURRENCY,
     .max = 2 * UNIT,
     .margin = RATION_UNSET,
     .scope = by_instance,
     .scope_count = 1,
     .endpoints = slow,
     .endpoint_count = 1,
     .arrival_us = RATION_UNSET},
    {.name = "hour",
     .kind = RATION_KIND_QUOTA,
     .max = 3 * UNIT,
     .margin = RATION_UNSET,
     .scope = by_target_and_credential,
     .scope_count = 2,
     .endpoints = quotas,
     .endpoint_count = 2,
     .window = {.period = RATION_PERIOD_HOUR},
     .arrival_us = RATION_UNSET},
    {.name = "rolling",
     .kind = RATION_KIND_QUOTA,
     .max = 100 * UNIT,
     .margin = RATION_UNSET,
     .endpoints = rolling,
     .endpoint_count = 1,
     .window = {.rolling_us = 3600 * S},
     .arrival_us = RATION_UNSET},
    {.name = "thing",
     .kind = RATION_KIND_CONCURRENCY,
     .max = UNIT,
     .margin = RATION_UNSET,
     .scope = by_variable,
     .scope_count = 2,
     .endpoints = things,
     .endpoint_count = 1,
     .enforce = RATION_ENFORCE_SHADOW,
     .arrival_us = RATION_UNSET},
    {.name = "path",
     .kind = RATION_KIND_CONCURRENCY,
     .max = UNIT,
     .margin = RATION_UNSET,
     .scope = by_endpoint,
     .scope_count = 1,
     .endpoints = paths,
     .endpoint_count = 1,
     .arrival_us = RATION_UNSET},
    {.name = "tenants",
     .kind = RATION_KIND_CONCURRENCY,
     .max = UNIT,
     .margin = RATION_UNSET,
     .scope = by_tenant,
     .scope_count = 1,
     .arrival_us = RATION_UNSET},
};

static const ration_endpoint_rule endpoints[] = {
    {.path = "/things/{id}/**", .defaults = {.cost = RATION_UNSET, .hold_us = RATION_UNSET}},
    {.path = "/paths/{path}", .defaults = {.cost = RATION_UNSET, .hold_us = RATION_UNSET}},
};

static const ration_limit_rule own_rate = {.name = "rate",
                                           .kind = RATION_KIND_RATE,
                                           .rate = {UNIT, S},
                                           .burst = UNIT,
                                           .margin = RATION_UNSET,
                                           .scope = by_account,
                                           .scope_count = 1,
                                           .arrival_us = RATION_UNSET};

static const ration_provider_rule providers[] = {
    {.name = "other", .defaults = {.cost = RATION_UNSET, .hold_us = RATION_UNSET}},
    {.name = "p",
     .endpoints = endpoints,
     .endpoint_count = 2,
     .limits = limits,
     .limit_count = 7,
     .defaults = {.cost = RATION_UNSET, .hold_us = RATION_UNSET, .tenant = "somebody"}},
};
static const ration_account_rule accounts[] = {
    {.name = "elsewhere", .provider = "other"},
    {.name = "half", .provider = "p", .share = {1, 2}},
    {.name = "own", .provider = "p", .limits = &own_rate, .limit_count = 1},
};
static const ration_rules rules = {
    .providers = providers, .provider_count = 2, .accounts = accounts, .account_count = 3};

static rn_enforcer *enforcer_new(void)
{
    rn_enforcer *enforcer = NULL;
    ration_fault fault = {.path = ""};

    CHECK_EQ(rn_enforcer_new(&rules, 1, ration_time_of(START), &enforcer, &fault), 0);
    CHECK_STR(fault.path, "");
    return enforcer;
}

static rn_arrival arrival(const char *credential, const char *path)
{
    return (rn_arrival){
        .credential = ration_text_of(credential), .method = ration_text_of("GET"), .path = ration_text_of(path)};
}

static rn_judgement ask(rn_enforcer *enforcer, int64_t after_us, const rn_arrival *call)
{
    rn_judgement judgement = {.granted = false};

    CHECK_EQ(rn_enforcer_ask(enforcer, ration_time_of(START + after_us), call, &judgement), 0);
    return judgement;
}

static void test_whole_burst_and_next_token(void **state)
{
    static const struct {
        const char *why;
        int64_t at_us;
        bool granted;
        int64_t retry_us;
    } steps[] = {
        {"one", 0, true, RATION_UNSET},
        {"two", 0, true, RATION_UNSET},
        {"three", 0, true, RATION_UNSET},
        {"four", 0, true, RATION_UNSET},
        {"the last one too: no margin", 0, true, RATION_UNSET},
        {"empty", 0, false, 100 * MS},
        {"just before", 100 * MS - 1, false, 1},
        {"on the dot", 100 * MS, true, RATION_UNSET},
    };
    rn_enforcer *enforcer = enforcer_new();
    const rn_arrival call = arrival("client-1", "/");

    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const rn_judgement judgement = ask(enforcer, steps[i].at_us, &call);

        CHECK_ROW(steps[i].why);
        CHECK_EQ(judgement.granted, steps[i].granted);
        CHECK_EQ(judgement.retry_us, steps[i].retry_us);
        CHECK_STR(judgement.limit, steps[i].granted ? NULL : "rate");
    }
    rn_enforcer_free(enforcer);
}

static void test_keys_are_credentials(void **state)
{
    rn_enforcer *enforcer = enforcer_new();
    const rn_arrival one = arrival("client-1", "/");
    const rn_arrival two = arrival("client-2", "/");

    (void)state;
    for (int i = 0; i < 5; i++)
        CHECK(ask(enforcer, 0, &one).granted);
    CHECK(!ask(enforcer, 0, &one).granted);
    CHECK_ROW("another credential has a bucket of its own");
    CHECK(ask(enforcer, 0, &two).granted);
    rn_enforcer_free(enforcer);
}

static void test_instance_is_the_whole_simulator(void **state)
{
    rn_enforcer *enforcer = enforcer_new();
    const rn_arrival one = arrival("client-1", "/slow");
    const rn_arrival two = arrival("client-2", "/slow?x=1");

    (void)state;
    const rn_judgement first = ask(enforcer, 0, &one);
    CHECK(first.granted);
    CHECK(ask(enforcer, 0, &two).granted);
    const rn_judgement third = ask(enforcer, 0, &two);
    CHECK(!third.granted);
    CHECK_EQ(third.reason, RATION_REASON_CONCURRENCY_FULL);
    CHECK_EQ(third.retry_us, RATION_UNSET);
    rn_enforcer_release(enforcer, ration_time_of(START), first.lease);
    CHECK(ask(enforcer, 0, &two).granted);
    rn_enforcer_free(enforcer);
}

static void test_variables_endpoints_and_shadow(void **state)
{
    static const struct {
        const char *why, *path;
        bool granted;
    } steps[] = {
        {"the first of thing 1", "/things/1/a", true},
        {"a second, by another path: shadow binds here", "/things/1/b?c", false},
        {"thing 2", "/things/2/a", true},
        {"an endpoint", "/paths/1", true},
        {"the same endpoint: its template is the key", "/paths/2", false},
    };
    rn_enforcer *enforcer = enforcer_new();

    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const rn_arrival call = arrival("client-1", steps[i].path);

        CHECK_ROW(steps[i].why);
        CHECK_EQ(ask(enforcer, 0, &call).granted, steps[i].granted);
    }
    rn_enforcer_free(enforcer);
}

/* The whole quota, though the account's share is a half and a tenth is a reserve. */
static void test_whole_quota_to_the_end_of_the_window(void **state)
{
    rn_enforcer *enforcer = enforcer_new();
    rn_arrival call = arrival("client-1", "/quota");
    rn_judgement last;

    (void)state;
    call.account = ration_text_of("half");
    for (int i = 0; i < 3; i++)
        CHECK(ask(enforcer, 600 * S, &call).granted);
    last = ask(enforcer, 600 * S, &call);
    CHECK_EQ(last.reason, RATION_REASON_QUOTA_EXHAUSTED);
    CHECK_STR(last.limit, "hour");
    CHECK_EQ(last.retry_us, 3000 * S);
    CHECK(!ask(enforcer, 3600 * S - 1, &call).granted);
    CHECK(ask(enforcer, 3600 * S, &call).granted);
    rn_enforcer_free(enforcer);
}

static void test_an_accounts_own_limit(void **state)
{
    rn_enforcer *enforcer = enforcer_new();
    rn_arrival call = arrival("client-1", "/");

    (void)state;
    call.account = ration_text_of("own");
    CHECK(ask(enforcer, 0, &call).granted);
    CHECK_EQ(ask(enforcer, 0, &call).retry_us, S);
    CHECK_ROW("an account of another provider is nobody's");
    call.account = ration_text_of("elsewhere");
    for (int i = 0; i < 5; i++)
        CHECK(ask(enforcer, 0, &call).granted);
    rn_enforcer_free(enforcer);
}

static void test_the_other_client_spends_quotas_alone(void **state)
{
    rn_enforcer *enforcer = enforcer_new();
    const rn_arrival call = arrival("client-1", "/quota");
    const rn_arrival free_call = arrival("client-1", "/");

    (void)state;
    for (int i = 0; i < 3; i++)
        CHECK(rn_enforcer_spend(enforcer, ration_time_of(START), &call));
    CHECK(!rn_enforcer_spend(enforcer, ration_time_of(START), &call));
    CHECK_EQ(ask(enforcer, 0, &call).reason, RATION_REASON_QUOTA_EXHAUSTED);
    CHECK_ROW("the bucket is still full");
    for (int i = 0; i < 5; i++)
        CHECK(ask(enforcer, 0, &free_call).granted);
    rn_enforcer_free(enforcer);
}

static void test_quotas_of_a_call(void **state)
{
    rn_enforcer *enforcer = enforcer_new();
    const rn_arrival both = arrival("client-1", "/rolling?page=2");
    const rn_arrival other = arrival("client-2", "/quota");
    const rn_arrival none = arrival("client-1", "/");
    const ration_time now = ration_time_of(START + 5 * S);
    rn_quota_state found[4];

    (void)state;
    CHECK(ask(enforcer, 0, &both).granted);
    CHECK(ask(enforcer, 0, &other).granted);
    CHECK(ask(enforcer, 0, &other).granted);
    CHECK(ask(enforcer, 0, &none).granted);

    CHECK_EQ(rn_enforcer_quotas(enforcer, now, &both, found, 4), 2);
    CHECK_STR(found[0].rule->name, "hour");
    CHECK_EQ(found[0].max, 3 * UNIT);
    CHECK_EQ(found[0].remaining, 2 * UNIT);
    CHECK_EQ(found[0].start.us, START);
    CHECK_EQ(found[0].end.us, START + 3600 * S);
    CHECK_STR(found[1].rule->name, "rolling");
    CHECK_EQ(found[1].remaining, 99 * UNIT);
    CHECK_EQ(found[1].end.us, RATION_NEVER_US);

    CHECK_EQ(rn_enforcer_quotas(enforcer, now, &other, found, 4), 1);
    CHECK_EQ(found[0].remaining, UNIT);
    CHECK_EQ(rn_enforcer_quotas(enforcer, now, &none, found, 4), 0);
    CHECK_ROW("no more than there is room for");
    CHECK_EQ(rn_enforcer_quotas(enforcer, now, &both, found, 1), 1);
    rn_enforcer_free(enforcer);
}

/* What of a client's own rules a provider keeps: of a share its ceiling, of an adaptive limit and a breaker nothing. */
static void test_a_clients_own_kinds(void **state)
{
    static const ration_tenant_share tenants[] = {{.name = "a", .weight = 1}, {.name = "b", .weight = 1}};
    static const char *const shared[] = {"/shared"};
    static const ration_limit_rule own_kinds[] = {
        {.name = "learned",
         .kind = RATION_KIND_ADAPTIVE,
         .adaptive = {.initial_limit = 1, .max_limit = 2},
         .scope = by_account,
         .scope_count = 1},
        {.name = "parts",
         .kind = RATION_KIND_SHARE,
         .counts = RATION_COUNTS_COST,
         .share = {.ceiling = 3 * UNIT,
                   .tenants = tenants,
                   .tenant_count = 2,
                   .reclaim_horizon_us = S,
                   .idle_after_us = 2 * S},
         .endpoints = shared,
         .endpoint_count = 1},
        {.name = "follower",
         .kind = RATION_KIND_SHARE,
         .counts = RATION_COUNTS_COST,
         .share = {.follows = "learned", .tenants = tenants, .tenant_count = 2, .reclaim_horizon_us = S},
         .scope = by_account,
         .scope_count = 1},
    };
    static const ration_limit_rule own_learned = {.name = "learned",
                                                  .kind = RATION_KIND_ADAPTIVE,
                                                  .adaptive = {.initial_limit = 1, .max_limit = 1},
                                                  .scope = by_account,
                                                  .scope_count = 1};
    static const ration_provider_rule provider = {
        .name = "p",
        .limits = own_kinds,
        .limit_count = 3,
        .breaker = {.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 1},
        .defaults = {.cost = RATION_UNSET, .hold_us = RATION_UNSET},
    };
    static const ration_account_rule account = {
        .name = "own", .provider = "p", .limits = &own_learned, .limit_count = 1};
    static const ration_rules own_rules = {
        .providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    rn_enforcer *enforcer = NULL;
    ration_fault fault = {.path = ""};
    rn_arrival call = arrival("client-1", "/");

    (void)state;
    CHECK_EQ(rn_enforcer_new(&own_rules, 0, ration_time_of(START), &enforcer, &fault), 0);
    call.account = ration_text_of("own");
    for (int i = 0; i < 100; i++)
        CHECK(ask(enforcer, 0, &call).granted);
    call.path = ration_text_of("/shared");
    for (int i = 0; i < 3; i++)
        CHECK(ask(enforcer, 0, &call).granted);
    const rn_judgement full = ask(enforcer, 0, &call);
    CHECK(!full.granted);
    CHECK_EQ(full.reason, RATION_REASON_CONCURRENCY_FULL);
    CHECK_STR(full.limit, "parts");
    rn_enforcer_free(enforcer);
}

static void test_rules_that_are_wrong(void **state)
{
    const ration_limit_rule bad = {.name = "bad", .kind = RATION_KIND_RATE};
    const ration_provider_rule provider = {.name = "p", .limits = &bad, .limit_count = 1};
    const ration_rules wrong = {.providers = &provider, .provider_count = 1};
    rn_enforcer *enforcer = NULL;
    ration_fault fault = {.path = ""};

    (void)state;
    CHECK_EQ(rn_enforcer_new(&wrong, 0, ration_time_of(START), &enforcer, &fault), RATION_ERR_CONFIG);
    CHECK(fault.text[0] != '\0');
    CHECK(enforcer == NULL);
    rn_enforcer_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_burst_and_next_token),
        cmocka_unit_test(test_keys_are_credentials),
        cmocka_unit_test(test_instance_is_the_whole_simulator),
        cmocka_unit_test(test_variables_endpoints_and_shadow),
        cmocka_unit_test(test_whole_quota_to_the_end_of_the_window),
        cmocka_unit_test(test_an_accounts_own_limit),
        cmocka_unit_test(test_the_other_client_spends_quotas_alone),
        cmocka_unit_test(test_quotas_of_a_call),
        cmocka_unit_test(test_a_clients_own_kinds),
        cmocka_unit_test(test_rules_that_are_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
