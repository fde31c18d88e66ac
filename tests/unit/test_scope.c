/* SPDX-License-Identifier: MIT */
#include "support/check.h"

#include <stdio.h>

#include "base/mem.h"
#include "core/scope.h"

static rn_arena arena;

static int setup(void **state)
{
    (void)state;
    rn_arena_init(&arena, rn_mem_default());
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rn_arena_fini(&arena);
    return 0;
}

/* A request whose every name is known. */
static rn_subject subject(void)
{
    return (rn_subject){
        .dimension =
            {
                [RN_DIMENSION_INSTANCE] = ration_text_of("web-1"),
                [RN_DIMENSION_PROVIDER] = ration_text_of("meraki"),
                [RN_DIMENSION_ACCOUNT] = ration_text_of("acme-meraki"),
                [RN_DIMENSION_TARGET] = ration_text_of("eu"),
                [RN_DIMENSION_CREDENTIAL] = ration_text_of("0123456789abcdef"),
                [RN_DIMENSION_ENDPOINT] = ration_text_of("/organizations/{organizationId}"),
                [RN_DIMENSION_TENANT] = ration_text_of("globex"),
            },
        .method = ration_text_of("GET"),
        .path = ration_text_of("/organizations/{organizationId}"),
        .vars = {{ration_text_of("organizationId"), ration_text_of("549236")},
                 {ration_text_of("a/b"), ration_text_of("50%=1/2")},
                 {ration_text_of("empty"), ration_text_of("")}},
        .var_count = 3,
    };
}

/* The key, or "-" where the limit does not apply. */
static const char *key_of(const ration_limit_rule *rule, const rn_subject *s)
{
    static char text[128];
    char bad_name[64];
    rn_builder bad;
    rn_builder key;
    rn_scope scope;

    rn_builder_init(&bad, bad_name, sizeof bad_name);
    CHECK_EQ(rn_scope_init(&scope, &arena, rule, &bad), RATION_OK);
    rn_builder_init(&key, text, sizeof text);
    return rn_scope_key(&scope, s, &key) ? text : "-";
}

static void every_dimension_makes_a_key(void **state)
{
    static const struct {
        const char *why;
        const char *scope[3];
        size_t count;
        const char *key;
    } rows[] = {
        {"none is the instance", {NULL}, 0, "web-1"},
        {"instance", {"instance"}, 1, "web-1"},
        {"provider", {"provider"}, 1, "meraki"},
        {"account", {"account"}, 1, "acme-meraki"},
        {"target", {"target"}, 1, "eu"},
        {"credential", {"credential"}, 1, "0123456789abcdef"},
        {"endpoint: its slashes are part of a value", {"endpoint"}, 1, "%2Forganizations%2F{organizationId}"},
        {"tenant", {"tenant"}, 1, "globex"},
        {"a variable with its name", {"var:organizationId"}, 1, "organizationId=549236"},
        {"in order of declaration", {"account", "var:organizationId"}, 2, "acme-meraki/organizationId=549236"},
        {"in the other order", {"var:organizationId", "account"}, 2, "organizationId=549236/acme-meraki"},
        {"three", {"tenant", "provider", "instance"}, 3, "globex/meraki/web-1"},
        {"signs in names and values", {"var:a/b"}, 1, "a%2Fb=50%25%3D1%2F2"},
        {"an empty value is a value", {"var:empty"}, 1, "empty="},
        {"a variable that is not set", {"var:other"}, 1, "-"},
        {"one of two that is not set", {"account", "var:other"}, 2, "-"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_limit_rule rule = {.scope = rows[i].scope, .scope_count = rows[i].count};
        const rn_subject s = subject();

        CHECK_ROW(rows[i].why);
        CHECK_STR(key_of(&rule, &s), rows[i].key);
    }
    CHECK_ROW(NULL);
}

static void a_dimension_that_is_not_resolved_does_not_apply(void **state)
{
    static const char *const names[] = {"target", "credential", "endpoint", "tenant"};
    static const rn_dimension_kind kinds[] = {RN_DIMENSION_TARGET, RN_DIMENSION_CREDENTIAL, RN_DIMENSION_ENDPOINT,
                                              RN_DIMENSION_TENANT};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const ration_limit_rule rule = {.scope = &names[i], .scope_count = 1};
        rn_subject s = subject();

        CHECK_ROW(names[i]);
        s.dimension[kinds[i]] = (ration_text){NULL, 0};
        CHECK_STR(key_of(&rule, &s), "-");
    }
    CHECK_ROW(NULL);
}

static void filters(void **state)
{
    static const char *const get_only[] = {"get"};
    static const char *const get_head[] = {"HEAD", "GET"};
    static const char *const post[] = {"POST"};
    static const char *const organizations[] = {"/organizations/**"};
    static const char *const literal_var[] = {"/organizations/{organizationId}"};
    static const char *const two[] = {"/networks/*", "/organizations/*"};
    static const char *const networks[] = {"/networks/**"};
    static const struct {
        const char *why;
        ration_limit_rule rule;
        bool auth;
        bool applies;
    } rows[] = {
        {"methods do not mind case", {.methods = get_only, .method_count = 1}, false, true},
        {"one of several methods", {.methods = get_head, .method_count = 2}, false, true},
        {"another method", {.methods = post, .method_count = 1}, false, false},
        {"a glob on the template", {.endpoints = organizations, .endpoint_count = 1}, false, true},
        {"the template itself", {.endpoints = literal_var, .endpoint_count = 1}, false, true},
        {"one of two globs", {.endpoints = two, .endpoint_count = 2}, false, true},
        {"another glob", {.endpoints = networks, .endpoint_count = 1}, false, false},
        {"a variable that is set", {.requests_with_var = "organizationId"}, false, true},
        {"a variable that is set to nothing", {.requests_with_var = "empty"}, false, true},
        {"a variable that is not set", {.requests_with_var = "networkId"}, false, false},
        {"include: others", {.auth_requests = RATION_AUTH_INCLUDE}, false, true},
        {"include: auth", {.auth_requests = RATION_AUTH_INCLUDE}, true, true},
        {"only: others", {.auth_requests = RATION_AUTH_ONLY}, false, false},
        {"only: auth", {.auth_requests = RATION_AUTH_ONLY}, true, true},
        {"exclude: others", {.auth_requests = RATION_AUTH_EXCLUDE}, false, true},
        {"exclude: auth", {.auth_requests = RATION_AUTH_EXCLUDE}, true, false},
        {"all of them must match",
         {.methods = get_only, .method_count = 1, .endpoints = networks, .endpoint_count = 1},
         false,
         false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rn_subject s = subject();

        CHECK_ROW(rows[i].why);
        s.auth = rows[i].auth;
        CHECK_STR(key_of(&rows[i].rule, &s), rows[i].applies ? "web-1" : "-");
    }
    CHECK_ROW(NULL);
}

static void a_filter_on_what_is_not_told_does_not_match(void **state)
{
    static const char *const any_path[] = {"/**"};
    static const char *const get[] = {"GET"};
    const ration_limit_rule by_path = {.endpoints = any_path, .endpoint_count = 1};
    const ration_limit_rule by_method = {.methods = get, .method_count = 1};
    char deep[2 * (RN_SEGMENTS_MAX + 1)];
    rn_subject s = subject();

    (void)state;
    s.path = (ration_text){NULL, 0};
    s.method = (ration_text){NULL, 0};
    CHECK_STR(key_of(&by_path, &s), "-");
    CHECK_STR(key_of(&by_method, &s), "-");
    for (size_t i = 0; i < sizeof deep; i++)
        deep[i] = i % 2 == 0 ? '/' : 'a';
    s.path = (ration_text){deep, sizeof deep};
    CHECK_STR(key_of(&by_path, &s), "-");
}

static void keys_never_run_into_each_other(void **state)
{
    static const char *const two[] = {"account", "tenant"};
    const ration_limit_rule rule = {.scope = two, .scope_count = 2};
    char first[128];
    rn_subject a = subject();
    rn_subject b = subject();

    (void)state;
    a.dimension[RN_DIMENSION_ACCOUNT] = ration_text_of("x/y");
    a.dimension[RN_DIMENSION_TENANT] = ration_text_of("z");
    b.dimension[RN_DIMENSION_ACCOUNT] = ration_text_of("x");
    b.dimension[RN_DIMENSION_TENANT] = ration_text_of("y/z");
    (void)snprintf(first, sizeof first, "%s", key_of(&rule, &a));
    CHECK_STR(first, "x%2Fy/z");
    CHECK_STR(key_of(&rule, &b), "x/y%2Fz");
}

static void bad_scopes_name_the_key(void **state)
{
    static const char *const unknown[] = {"account", "organisation"};
    static const char *const empty_var[] = {"var:"};
    static const char *const cased[] = {"Account"};
    static const char *const nothing[] = {""};
    static const char *const globs[] = {"/a", "b"};
    static const struct {
        ration_limit_rule rule;
        const char *bad;
    } rows[] = {
        {{.scope = unknown, .scope_count = 2}, "scope.by[1]"},
        {{.scope = empty_var, .scope_count = 1}, "scope.by[0]"},
        {{.scope = cased, .scope_count = 1}, "scope.by[0]"},
        {{.scope = nothing, .scope_count = 1}, "scope.by[0]"},
        {{.endpoints = globs, .endpoint_count = 2}, "appliesTo.endpoints[1]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char bad_name[64] = "";
        rn_builder bad;
        rn_scope scope;

        rn_builder_init(&bad, bad_name, sizeof bad_name);
        CHECK_EQ(rn_scope_init(&scope, &arena, &rows[i].rule, &bad), RATION_ERR_CONFIG);
        CHECK_STR(bad_name, rows[i].bad);
    }
}

static void a_scope_knows_its_dimensions(void **state)
{
    static const char *const two[] = {"account", "var:x"};
    const ration_limit_rule rule = {.scope = two, .scope_count = 2};
    const ration_limit_rule none = {0};
    char bad_name[64];
    rn_builder bad;
    rn_scope scope;

    (void)state;
    rn_builder_init(&bad, bad_name, sizeof bad_name);
    CHECK_EQ(rn_scope_init(&scope, &arena, &rule, &bad), RATION_OK);
    CHECK(rn_scope_has(&scope, RN_DIMENSION_ACCOUNT));
    CHECK(rn_scope_has(&scope, RN_DIMENSION_VAR));
    CHECK(!rn_scope_has(&scope, RN_DIMENSION_INSTANCE));
    CHECK_EQ(rn_scope_init(&scope, &arena, &none, &bad), RATION_OK);
    CHECK(rn_scope_has(&scope, RN_DIMENSION_INSTANCE));
    CHECK_EQ(scope.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dimension_makes_a_key),
        cmocka_unit_test(a_dimension_that_is_not_resolved_does_not_apply),
        cmocka_unit_test(filters),
        cmocka_unit_test(a_filter_on_what_is_not_told_does_not_match),
        cmocka_unit_test(keys_never_run_into_each_other),
        cmocka_unit_test(bad_scopes_name_the_key),
        cmocka_unit_test(a_scope_knows_its_dimensions),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
