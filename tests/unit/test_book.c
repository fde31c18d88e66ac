/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"
#include "support/tzif.h"

#include "base/mem.h"
#include "core/book.h"

/* Rules that are fine, to be spoiled in one place. */
typedef struct sample {
    ration_limit_rule limits[2];
    ration_endpoint_rule endpoints[2];
    ration_provider_rule providers[2];
    ration_limit_rule override;
    ration_account_rule accounts[2];
    ration_tenant_rule tenants[2];
    tzif zone;
    ration_zone_data zones[1];
    ration_rules rules;
} sample;

static const char *const by_account[] = {"account"};
static const char *const by_nonsense[] = {"account", "planet"};
static const char *const relative_glob[] = {"/a", "b/**"};
static void sample_init(sample *s)
{
    *s = (sample){
        .limits = {{.name = "slots",
                    .kind = RATION_KIND_CONCURRENCY,
                    .scope = by_account,
                    .scope_count = 1,
                    .max = 5 * RATION_UNIT},
                   {.name = "all", .kind = RATION_KIND_CONCURRENCY, .max = 9 * RATION_UNIT}},
        .endpoints = {{.path = "/o/{org}"}, {.path = "/n/**"}},
        .override = {.name = "slots",
                     .kind = RATION_KIND_CONCURRENCY,
                     .scope = by_account,
                     .scope_count = 1,
                     .max = RATION_UNIT},
        .tenants = {{"a", 1}, {"b", 1000000}},
    };
    tzif_write_rule(&s->zone, "<+03>-3");
    s->zones[0] = (ration_zone_data){"Etc/Fixed", s->zone.bytes, s->zone.size};
    s->providers[0] = (ration_provider_rule){
        .name = "p", .limits = s->limits, .limit_count = 2, .endpoints = s->endpoints, .endpoint_count = 2};
    s->providers[1] = (ration_provider_rule){.name = "q"};
    s->accounts[0] = (ration_account_rule){.name = "acc", .provider = "p", .limits = &s->override, .limit_count = 1};
    s->accounts[1] = (ration_account_rule){.name = "bcc", .provider = "p", .share = {1, 5}};
    s->rules = (ration_rules){
        .providers = s->providers,
        .provider_count = 2,
        .accounts = s->accounts,
        .account_count = 2,
        .tenants = s->tenants,
        .tenant_count = 2,
        .zones = s->zones,
        .zone_count = 1,
    };
}

/* Each spoils one thing. */
#define SPOIL(name, ...)                                                                                               \
    static void name(sample *s)                                                                                        \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
    }

SPOIL(no_provider_name, s->providers[1].name = NULL)
SPOIL(empty_provider_name, s->providers[1].name = "")
SPOIL(provider_twice, s->providers[1].name = "p")
SPOIL(provider_cost, s->providers[0].defaults.cost = -2)
SPOIL(provider_hold, s->providers[0].defaults.hold_us = RATION_TIME_MAX_US + 1)
SPOIL(provider_priority, s->providers[1].defaults.priority = (ration_priority)9)
SPOIL(penalize, s->providers[0].errors.penalize = (ration_penalize)2)
SPOIL(endpoint_path, s->endpoints[1].path = "n/**")
SPOIL(no_endpoint_path, s->endpoints[1].path = NULL)
SPOIL(endpoint_cost, s->endpoints[1].defaults.cost = RATION_UNITS_MAX + 1)
SPOIL(endpoint_hold, s->endpoints[0].defaults.hold_us = -2)
SPOIL(endpoint_priority, s->endpoints[0].defaults.priority = (ration_priority)-1)
SPOIL(no_limit_name, s->limits[1].name = NULL)
SPOIL(empty_limit_name, s->limits[0].name = "")
SPOIL(limit_twice, s->limits[1].name = "slots")
SPOIL(no_kind, s->limits[0].kind = RATION_KIND_NONE)
SPOIL(strange_kind, s->limits[0].kind = (ration_kind)77)
SPOIL(strange_counts, s->limits[1].counts = (ration_counts)3)
SPOIL(strange_enforce, s->limits[1].enforce = (ration_enforce)-1)
SPOIL(strange_auth, s->limits[1].auth_requests = (ration_auth_filter)3)
SPOIL(strange_exhausted, s->limits[1].when_exhausted = (ration_exhausted)2)
SPOIL(strange_reset, s->limits[1].sync.reset_format = (ration_reset_format)99)
SPOIL(max_keys, s->limits[1].max_keys = -1)
SPOIL(no_max, s->limits[1].max = 0)
SPOIL(zone, s->limits[1].window.zone = "Mars/Olympus")
SPOIL(scope, s->limits[0].scope = by_nonsense; s->limits[0].scope_count = 2)
SPOIL(glob, s->limits[0].endpoints = relative_glob; s->limits[0].endpoint_count = 2)
SPOIL(no_account_name, s->accounts[0].name = NULL)
SPOIL(account_twice, s->accounts[1].name = "acc")
SPOIL(account_provider, s->accounts[1].provider = "r")
SPOIL(no_account_provider, s->accounts[1].provider = NULL)
SPOIL(share_above_one, s->accounts[1].share.num = 6)
SPOIL(share_negative, s->accounts[1].share.num = -1)
SPOIL(share_denominator, s->accounts[1].share.den = -5)
SPOIL(share_fine_grained, s->accounts[1].share.den = 1000001)
SPOIL(override_unknown, s->override.name = "slotz")
SPOIL(override_unnamed, s->override.name = NULL)
SPOIL(override_scope, s->override.scope_count = 0)
SPOIL(override_max, s->override.max = -1)
SPOIL(tenant_unnamed, s->tenants[1].name = "")
SPOIL(tenant_twice, s->tenants[1].name = "a")
SPOIL(weight_none, s->tenants[0].weight = 0)
SPOIL(weight_above, s->tenants[1].weight = 1000001)
SPOIL(zone_unnamed, s->zones[0].name = NULL)
SPOIL(zone_bytes, s->zones[0].size = 10)
SPOIL(instance, s->rules.instance = "")
SPOIL(reserve, s->rules.retry_reserve.num = 2; s->rules.retry_reserve.den = 1)
SPOIL(waiters, s->rules.max_waiters = -1)
SPOIL(waiters_per_tenant, s->rules.max_waiters_per_tenant = -1)
SPOIL(order, s->rules.queue_order = (ration_queue_order)2)
SPOIL(leases, s->rules.max_leases = -1)
SPOIL(leases_above, s->rules.max_leases = INT64_C(1) << 32)

static const struct {
    void (*spoil)(sample *s);
    const char *path;
} faults[] = {
    {no_provider_name, "providers[1].name"},
    {empty_provider_name, "providers[1].name"},
    {provider_twice, "providers[1].name"},
    {provider_cost, "providers[0].cost"},
    {provider_hold, "providers[0].hold"},
    {provider_priority, "providers[1].priority"},
    {penalize, "providers[0].errors.rateLimited.penalize"},
    {endpoint_path, "providers[0].endpoints[1].path"},
    {no_endpoint_path, "providers[0].endpoints[1].path"},
    {endpoint_cost, "providers[0].endpoints[1].cost"},
    {endpoint_hold, "providers[0].endpoints[0].hold"},
    {endpoint_priority, "providers[0].endpoints[0].priority"},
    {no_limit_name, "providers[0].limits[1].name"},
    {empty_limit_name, "providers[0].limits[0].name"},
    {limit_twice, "providers[0].limits[1].name"},
    {no_kind, "providers[0].limits[0].kind"},
    {strange_kind, "providers[0].limits[0].kind"},
    {strange_counts, "providers[0].limits[1].counts"},
    {strange_enforce, "providers[0].limits[1].enforce"},
    {strange_auth, "providers[0].limits[1].appliesTo.authRequests"},
    {strange_exhausted, "providers[0].limits[1].whenExhausted"},
    {strange_reset, "providers[0].limits[1].sync.resetFormat"},
    {max_keys, "providers[0].limits[1].maxKeys"},
    {no_max, "providers[0].limits[1].max"},
    {zone, "providers[0].limits[1].window.timezone"},
    {scope, "providers[0].limits[0].scope.by[1]"},
    {glob, "providers[0].limits[0].appliesTo.endpoints[1]"},
    {no_account_name, "accounts[0].name"},
    {account_twice, "accounts[1].name"},
    {account_provider, "accounts[1].provider"},
    {no_account_provider, "accounts[1].provider"},
    {share_above_one, "accounts[1].budget.share"},
    {share_negative, "accounts[1].budget.share"},
    {share_denominator, "accounts[1].budget.share"},
    {share_fine_grained, "accounts[1].budget.share"},
    {override_unknown, "accounts[0].limits[0].name"},
    {override_unnamed, "accounts[0].limits[0].name"},
    {override_scope, "accounts[0].limits[0].scope"},
    {override_max, "accounts[0].limits[0].max"},
    {tenant_unnamed, "tenants[1].name"},
    {tenant_twice, "tenants[1].name"},
    {weight_none, "tenants[0].weight"},
    {weight_above, "tenants[1].weight"},
    {zone_unnamed, "zones[0]"},
    {zone_bytes, "zones[0]"},
    {instance, "instance"},
    {reserve, "settings.budget.retryReserve"},
    {waiters, "settings.queue.maxWaiters"},
    {waiters_per_tenant, "settings.queue.maxWaiters"},
    {order, "settings.queue.order"},
    {leases, "maxLeases"},
    {leases_above, "maxLeases"},
};

static void every_fault_has_its_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        ration_fault fault = {"", ""};
        rn_book book;
        sample s;

        sample_init(&s);
        faults[i].spoil(&s);
        CHECK_ROW(faults[i].path);
        CHECK_EQ(rn_book_init(&book, rn_mem_default(), &s.rules, &fault), RATION_ERR_CONFIG);
        CHECK_STR(fault.path, faults[i].path);
        CHECK(strlen(fault.text) > 5);
        CHECK_EQ(rn_book_init(&book, rn_mem_default(), &s.rules, NULL), RATION_ERR_CONFIG);
    }
    CHECK_ROW(NULL);
}

SPOIL(lost_providers, s->rules.providers = NULL)
SPOIL(lost_accounts, s->rules.accounts = NULL)
SPOIL(lost_tenants, s->rules.tenants = NULL)
SPOIL(lost_zones, s->rules.zones = NULL)
SPOIL(lost_zone, s->zones[0].data = NULL)
SPOIL(lost_endpoints, s->providers[0].endpoints = NULL)
SPOIL(lost_limits, s->providers[0].limits = NULL)
SPOIL(lost_statuses, s->providers[0].errors.rate_limited_count = 1)
SPOIL(lost_transient, s->providers[0].errors.transient_count = 1)
SPOIL(lost_scope, s->limits[1].scope_count = 1)
SPOIL(lost_globs, s->limits[1].endpoint_count = 1)
SPOIL(lost_methods, s->limits[1].method_count = 1)
SPOIL(lost_overrides, s->accounts[0].limits = NULL)
SPOIL(lost_override_scope, s->override.scope = NULL)

static void a_count_without_a_list_is_an_error(void **state)
{
    static void (*const rows[])(sample * s) = {
        lost_providers, lost_accounts,  lost_tenants, lost_zones, lost_zone,    lost_endpoints, lost_limits,
        lost_statuses,  lost_transient, lost_scope,   lost_globs, lost_methods, lost_overrides, lost_override_scope,
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_book book;
        sample s;

        sample_init(&s);
        rows[i](&s);
        CHECK_EQ(rn_book_init(&book, rn_mem_default(), &s.rules, NULL), RATION_ERR_INVALID);
    }
}

static void a_long_path_is_cut_and_still_a_text(void **state)
{
    char name[400];
    ration_fault fault;
    rn_book book;
    sample s;

    (void)state;
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    sample_init(&s);
    s.accounts[1].provider = name;
    CHECK_EQ(rn_book_init(&book, rn_mem_default(), &s.rules, &fault), RATION_ERR_CONFIG);
    CHECK(strlen(fault.path) < sizeof fault.path);
    CHECK(strlen(fault.text) < sizeof fault.text);
}

static void a_book_is_a_copy(void **state)
{
    char name[] = "changes";
    rn_book book;
    sample s;

    (void)state;
    sample_init(&s);
    s.limits[1].name = name;
    s.limits[1].window.zone = "UTC"; /* known without its bytes */
    s.limits[0].window.zone = "Etc/Fixed";
    CHECK_EQ(rn_book_init(&book, rn_mem_default(), &s.rules, NULL), RATION_OK);
    memset(name, 'x', sizeof name - 1);
    memset(&s, 0xff, sizeof s);

    const rn_provider *p = rn_book_provider(&book, ration_text_of("p"));
    const rn_account *acc = rn_book_account(&book, ration_text_of("acc"));
    const rn_account *bcc = rn_book_account(&book, ration_text_of("bcc"));

    CHECK_STR(p->limits[1]->rule->name, "changes");
    CHECK_EQ(p->limit_count, 2);
    CHECK(p->limits[1]->zone == NULL);
    CHECK(p->limits[0]->zone != NULL);
    CHECK_EQ(p->limits[1]->depth, 1);
    CHECK(acc->provider == p);
    CHECK_TEXT(acc->target, NULL);
    CHECK(acc->limits[0] != p->limits[0]); /* its own */
    CHECK_EQ(acc->limits[0]->rule->max, RATION_UNIT);
    CHECK_EQ(acc->limits[0]->index, 0);
    CHECK(acc->limits[1] == p->limits[1]);
    CHECK(bcc->limits[0] == p->limits[0]);
    CHECK_EQ(book.limit_count, 3);
    CHECK(acc->limits[0]->uid != p->limits[0]->uid);
    CHECK(rn_book_provider(&book, ration_text_of("r")) == NULL);
    CHECK(rn_book_provider(&book, ration_text_of("")) == NULL);
    CHECK(rn_book_account(&book, (ration_text){NULL, 0}) == NULL);
    rn_book_fini(&book);
    rn_book_fini(&book); /* is fine twice */
}

static void defaults(void **state)
{
    const ration_rules none = {0};
    rn_book book;
    sample s;

    (void)state;
    CHECK_EQ(rn_book_init(&book, rn_mem_default(), &none, NULL), RATION_OK);
    CHECK_TEXT(book.instance, "local");
    CHECK_EQ(book.reserve.num * 10, book.reserve.den);
    CHECK_EQ(book.max_waiters, 10000);
    CHECK_EQ(book.max_waiters_per_tenant, 10000);
    CHECK_EQ(book.max_leases, 1000000);
    CHECK(!book.fifo);
    rn_book_fini(&book);

    sample_init(&s);
    s.rules.instance = "web-1";
    s.rules.retry_reserve = (ration_ratio){0, 1};
    s.rules.max_waiters = 1;
    s.rules.max_waiters_per_tenant = 2;
    s.rules.max_leases = UINT32_MAX;
    s.rules.queue_order = RATION_QUEUE_FIFO;
    s.providers[0].defaults.hold_us = RATION_FOREVER_US;
    s.endpoints[0].defaults.cost = RATION_UNSET;
    CHECK_EQ(rn_book_init(&book, rn_mem_default(), &s.rules, NULL), RATION_OK);
    CHECK_TEXT(book.instance, "web-1");
    CHECK_EQ(book.reserve.num, 0);
    CHECK_EQ(book.max_waiters, 1);
    CHECK_EQ(book.max_waiters_per_tenant, 2);
    CHECK_EQ(book.max_leases, UINT32_MAX);
    CHECK(book.fifo);
    CHECK_EQ(rn_book_weight(&book, &book.accounts[0], ration_text_of("a")), 1);
    CHECK_EQ(rn_book_weight(&book, &book.accounts[0], ration_text_of("b")), 1000000);
    CHECK_EQ(rn_book_weight(&book, &book.accounts[0], ration_text_of("c")), 1);
    CHECK_EQ(rn_book_weight(&book, &book.accounts[0], (ration_text){NULL, 0}), 1);
    rn_book_fini(&book);
}

/* `s` drawn out to `length` bytes, so that it needs a good part of a block of the arena. */
static const char *stretched(const char *s, size_t length)
{
    static char pool[24][33000];
    static size_t next;
    char *text = pool[next++ % 24];
    const size_t used = strlen(s);

    memset(text, 'x', length);
    memcpy(text, s, used < length ? used : length);
    text[length] = '\0';
    return text;
}

static const char *const some_scope[] = {"account", "var:x"};
static const char *const some_methods[] = {"GET"};
static const int some_statuses[] = {429, 420};

/* Every member that is copied is there, and every text long. */
static void sample_stretch(sample *s, size_t length)
{
    static const char *globs[1];

    globs[0] = stretched("/a", length);
    for (size_t i = 0; i < 2; i++) {
        s->endpoints[i].path = stretched(i == 0 ? "/o/{org}/" : "/n/**/", length);
        s->tenants[i].name = stretched(s->tenants[i].name, length);
    }
    s->limits[0].name = s->override.name = stretched("slots", length);
    s->limits[1].name = stretched("all", length);
    s->zones[0].name = s->limits[1].window.zone = stretched("Zone", length);
    s->override.scope = some_scope;
    s->override.scope_count = 2;
    s->override.endpoints = globs;
    s->override.endpoint_count = 1;
    s->override.methods = some_methods;
    s->override.method_count = 1;
    s->override.requests_with_var = stretched("x", length);
    s->override.sync.limit_header = stretched("limit", length);
    s->override.sync.remaining_header = stretched("left", length);
    s->override.sync.reset_header = stretched("reset", length);
    s->endpoints[1].defaults.tenant = stretched("tenant", length);
    s->endpoints[0].defaults.class_name = stretched("class", length);
    s->providers[0].name = s->accounts[0].provider = s->accounts[1].provider = stretched("p", length);
    s->providers[0].defaults = (ration_defaults){.class_name = stretched("c", length), .tenant = "t"};
    s->providers[0].errors = (ration_error_rule){.rate_limited = some_statuses,
                                                 .rate_limited_count = 2,
                                                 .transient = some_statuses,
                                                 .transient_count = 2,
                                                 .body_contains = stretched("slow", length)};
    s->accounts[0].name = stretched("acc", length);
    s->accounts[0].target = stretched("eu", length);
    s->accounts[0].credential_key = stretched("k", length);
    s->rules.instance = stretched("web", length);
}

/* Texts of many lengths fill the arena's blocks, so that each copy is once the one for which there is no room. */
static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    for (size_t length = 50; length < 33000; length += length < 2000 ? 130 : 1500) {
        failalloc memory = {.failed = true};

        for (uint64_t at = 0; memory.failed; at++) {
            rn_book book;
            sample s;

            sample_init(&s);
            sample_stretch(&s, length);
            failalloc_init(&memory, at);

            const int err = rn_book_init(&book, &memory.allocator, &s.rules, NULL);

            CHECK_EQ(err, memory.failed ? RATION_ERR_NOMEM : RATION_OK);
            if (err == RATION_OK)
                rn_book_fini(&book);
            CHECK_EQ(memory.live, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_has_its_path),
        cmocka_unit_test(a_count_without_a_list_is_an_error),
        cmocka_unit_test(a_long_path_is_cut_and_still_a_text),
        cmocka_unit_test(a_book_is_a_copy),
        cmocka_unit_test(defaults),
        cmocka_unit_test(without_memory_nothing_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
