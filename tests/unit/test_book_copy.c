/* SPDX-License-Identifier: MIT */
/* A copy of rules owes nothing to what it was copied from: that may be overwritten, and the copy stays as it was. */
#include "support/config.h"
#include "support/failalloc.h"

#include "base/mem.h"
#include "core/book_copy.h"

/* One provider with something in every list and text, all of it in this one block. */
typedef struct world {
    char texts[1024];
    size_t used;
    int statuses[5];
    const char *scopes[2];
    ration_endpoint_rule endpoint;
    ration_tenant_share tenants[2];
    ration_class_rule classes[2];
    ration_limit_rule limits[2];
    ration_provider_rule provider;
} world;

static const char *text(world *w, const char *s)
{
    char *copy = w->texts + w->used;
    const size_t size = strlen(s) + 1;

    w->used += size;
    CHECK(w->used <= sizeof w->texts);
    return memcpy(copy, s, size);
}

static void limits_make(world *w)
{
    w->tenants[0] = (ration_tenant_share){text(w, "acme"), 3, {1, 2}};
    w->tenants[1] = (ration_tenant_share){text(w, "globex"), 1, {0, 0}};
    w->classes[0] = (ration_class_rule){text(w, "interactive"), {1, 4}};
    w->classes[1] = (ration_class_rule){text(w, "batch"), {0, 0}};
    w->limits[0] = (ration_limit_rule){.name = text(w, "tokens"),
                                       .kind = RATION_KIND_SHARE,
                                       .scope = w->scopes,
                                       .scope_count = 2,
                                       .endpoints = w->scopes,
                                       .endpoint_count = 1,
                                       .methods = w->scopes,
                                       .method_count = 1,
                                       .requests_with_var = text(w, "x"),
                                       .window = {.zone = text(w, "Europe/Paris")},
                                       .sync = {text(w, "L"), text(w, "Rem"), text(w, "Res"), RATION_RESET_AUTO, false},
                                       .share = {.follows = text(w, "at-once"),
                                                 .tenants = w->tenants,
                                                 .tenant_count = 2,
                                                 .unknown_tenant = text(w, "globex")}};
    w->limits[1] = (ration_limit_rule){.name = text(w, "at-once"),
                                       .kind = RATION_KIND_ADAPTIVE,
                                       .adaptive = {.initial_limit = 7, .classes = w->classes, .class_count = 2}};
}

static void world_make(world *w)
{
    *w = (world){.statuses = {429, 500, 529, 501, 204}};
    w->scopes[0] = text(w, "account");
    w->scopes[1] = text(w, "target");
    w->endpoint = (ration_endpoint_rule){.path = text(w, "/a/{x}"),
                                         .defaults = {.class_name = text(w, "batch"), .tenant = text(w, "acme")}};
    limits_make(w);
    w->provider = (ration_provider_rule){.name = text(w, "p"),
                                         .endpoints = &w->endpoint,
                                         .endpoint_count = 1,
                                         .limits = w->limits,
                                         .limit_count = 2,
                                         .errors = {.rate_limited = &w->statuses[0],
                                                    .rate_limited_count = 1,
                                                    .body_contains = text(w, "slow"),
                                                    .transient = &w->statuses[1],
                                                    .transient_count = 1,
                                                    .throttled = &w->statuses[1],
                                                    .throttled_count = 2,
                                                    .failure = &w->statuses[3],
                                                    .failure_count = 1},
                                         .breaker = {.strategy = RATION_BREAKER_COUNT,
                                                     .check_method = text(w, "HEAD"),
                                                     .check_path = text(w, "/health"),
                                                     .check_expect = &w->statuses[4],
                                                     .check_expect_count = 1,
                                                     .scope = w->scopes,
                                                     .scope_count = 2},
                                         .defaults = {.class_name = text(w, "interactive"), .tenant = text(w, "acme")}};
}

static void a_copy_stands_alone(void **state)
{
    static world from;
    static world pristine;
    ration_provider_rule copy;
    rn_arena arena;

    (void)state;
    world_make(&from);
    world_make(&pristine);
    rn_arena_init(&arena, rn_mem_default());
    CHECK_EQ(rn_copy_provider(&arena, &from.provider, &copy), RATION_OK);
    memset(&from, 0x5A, sizeof from);

    const ration_rules a = {.providers = &copy, .provider_count = 1};
    const ration_rules b = {.providers = &pristine.provider, .provider_count = 1};

    CHECK_STR(rules_differ(&a, &b), NULL);
    rn_arena_fini(&arena);
}

static void without_memory_there_is_no_copy(void **state)
{
    static world from;
    failalloc fail = {.failed = true};

    (void)state;
    world_make(&from);
    for (uint64_t i = 0; fail.failed; i++) {
        ration_provider_rule copy;
        rn_arena arena;

        failalloc_init(&fail, i);
        rn_arena_init(&arena, &fail.allocator);

        const int err = rn_copy_provider(&arena, &from.provider, &copy);

        CHECK_EQ(err, fail.failed ? RATION_ERR_NOMEM : RATION_OK);
        rn_arena_fini(&arena);
        CHECK_EQ(fail.live, 0);
    }
}

/* Each list of the rules in turn: a number of items, and no items. */
static void lists_that_are_not_there_are_found(void **state)
{
    static world w;
    const struct {
        const char *why;
        size_t *count;
    } lists[] = {
        {"endpoints", &w.provider.endpoint_count},
        {"limits", &w.provider.limit_count},
        {"rateLimited", &w.provider.errors.rate_limited_count},
        {"transient", &w.provider.errors.transient_count},
        {"throttled", &w.provider.errors.throttled_count},
        {"failure", &w.provider.errors.failure_count},
        {"expect", &w.provider.breaker.check_expect_count},
        {"the breaker's scope", &w.provider.breaker.scope_count},
        {"scope", &w.limits[0].scope_count},
        {"globs", &w.limits[0].endpoint_count},
        {"methods", &w.limits[0].method_count},
        {"tenants", &w.limits[0].share.tenant_count},
        {"classes", &w.limits[1].adaptive.class_count},
    };
    const ration_rules rules = {.providers = &w.provider, .provider_count = 1};

    (void)state;
    w.provider = (ration_provider_rule){.limits = w.limits, .limit_count = 2};
    CHECK(rn_rules_have_lists(&rules));
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        CHECK_ROW(lists[i].why);
        w = (world){.provider = {.limits = w.limits, .limit_count = 2}};
        if (lists[i].count == &w.provider.limit_count)
            w.provider.limits = NULL;
        *lists[i].count = 1;
        CHECK(!rn_rules_have_lists(&rules));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_stands_alone),
        cmocka_unit_test(without_memory_there_is_no_copy),
        cmocka_unit_test(lists_that_are_not_there_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
