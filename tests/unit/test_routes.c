/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"

#include <stdio.h>

#include "core/route.h"

#define UNIT RATION_UNIT

static failalloc memory;
static rn_book book;
static rn_alarms timers;
static rn_routes routes;
static size_t timers_needed;

static const char *const by_account[] = {"account"};
static const char *const by_org[] = {"var:org"};
static const char *const by_target[] = {"target"};
static const char *const by_credential[] = {"credential"};
static const char *const by_provider[] = {"provider"};
static const char *const by_tenant[] = {"tenant"};
static const ration_endpoint_rule endpoints[] = {
    {.path = "/o/{org}/**", .defaults = {.class_name = "batch"}},
    {.path = "/o/{org}/d/{org2}", .defaults = {.tenant = "devices"}},
    {.path = "/o/all"},
    {.path = "/token", .defaults = {.auth = true}},
};
#define SLOTS(NAME, SCOPE)                                                                                             \
    {                                                                                                                  \
        .name = (NAME), .kind = RATION_KIND_CONCURRENCY, .scope = (SCOPE), .scope_count = 1, .max = 10 * UNIT          \
    }

static const ration_limit_rule limits[] = {
    SLOTS("account", by_account),
    SLOTS("org", by_org),
    SLOTS("target", by_target),
    SLOTS("credential", by_credential),
    SLOTS("provider", by_provider),
    SLOTS("tenant", by_tenant),
    {.name = "auth", .kind = RATION_KIND_CONCURRENCY, .max = 10 * UNIT, .auth_requests = RATION_AUTH_ONLY},
};

static const ration_provider_rule providers[] = {
    {.name = "p",
     .limits = limits,
     .limit_count = 7,
     .endpoints = endpoints,
     .endpoint_count = 4,
     .defaults = {.class_name = "usual"}},
    {.name = "q"},
};
static const ration_account_rule accounts[] = {
    {.name = "whole", .provider = "p", .target = "eu", .credential_key = "k1"},
    {.name = "half", .provider = "p", .target = "eu", .credential_key = "k2", .share = {1, 2}},
    {.name = "third", .provider = "p", .target = "us", .credential_key = "k1", .share = {1, 3}},
    {.name = "other", .provider = "q"},
};

static void begin_with(int64_t max_keys)
{
    ration_limit_rule bounded[7];
    ration_provider_rule two[2] = {providers[0], providers[1]};
    const ration_rules rules = {.providers = two, .provider_count = 2, .accounts = accounts, .account_count = 4};

    memcpy(bounded, limits, sizeof bounded);
    bounded[1].max_keys = max_keys;
    two[0].limits = bounded;
    failalloc_init(&memory, UINT64_MAX);
    timers_needed = 4;
    rn_alarms_init(&timers, &memory.allocator);
    CHECK_EQ(rn_book_init(&book, &memory.allocator, &rules, NULL), RATION_OK);
    CHECK_EQ(rn_routes_init(&routes, &memory.allocator, &book, &timers, &timers_needed), RATION_OK);
}

static void begin(void)
{
    begin_with(0);
}

static void end(void)
{
    rn_routes_fini(&routes);
    rn_book_fini(&book);
    rn_alarms_fini(&timers);
    CHECK_EQ(memory.live, 0);
}

static ration_request request(const char *account, const char *path)
{
    ration_request r = RATION_REQUEST_INIT;

    r.account = ration_text_of(account);
    r.path = ration_text_of(path);
    return r;
}

static rn_route *find(const ration_request *r)
{
    const rn_limit *limit;
    ration_reason reason;
    rn_route *route;

    CHECK_EQ(rn_routes_find(&routes, ration_time_of(0), r, &route, &reason, &limit), RATION_OK);
    CHECK_EQ(reason, RATION_REASON_NONE);
    CHECK(limit == NULL);
    CHECK(route != NULL);
    return route;
}

static const rn_counter *counter_of(const rn_route *route, const char *limit)
{
    for (size_t i = 0; i < route->count; i++) {
        if (strcmp(route->links[i].counter->limit->rule->name, limit) == 0)
            return route->links[i].counter;
    }
    return NULL;
}

/* The key of the route's counter of a limit; NULL where it does not apply. */
static const char *key_of(const rn_route *route, const char *limit)
{
    static char key[128];
    const rn_counter *counter = counter_of(route, limit);

    if (counter == NULL)
        return NULL;
    memcpy(key, counter->key.data, counter->key.size);
    key[counter->key.size] = '\0';
    return key;
}

static void the_same_names_have_the_same_route(void **state)
{
    ration_request r = request("whole", "/o/7/x");

    (void)state;
    begin();

    rn_route *first = find(&r);
    const size_t live = memory.live;

    rn_route_release(&routes, first);
    CHECK_EQ(routes.idle_count, 1);
    r.path = ration_text_of("/o/7/x?page=2"); /* a query changes nothing */
    CHECK(find(&r) == first);
    CHECK_EQ(routes.idle_count, 0);
    CHECK(find(&r) == first);
    CHECK_EQ(first->refs, 2);
    CHECK_EQ(memory.live, live);
    rn_route_release(&routes, first);
    CHECK_EQ(routes.idle_count, 0);
    rn_route_release(&routes, first);
    CHECK_EQ(routes.idle_count, 1);
    end();
}

static void every_name_makes_a_difference(void **state)
{
    const ration_var x = {ration_text_of("x"), ration_text_of("1")};
    const ration_text v = ration_text_of("v");
    const ration_request base = request("whole", "/o/7/x");
    rn_route *seen[11];
    ration_request r[11];

    (void)state;
    begin();
    for (size_t i = 0; i < 11; i++)
        r[i] = base;
    r[1].account = ration_text_of("half");
    r[2].target = v;
    r[3].credential = v;
    r[4].method = v;
    r[5].path = v;
    r[6].tenant = v;
    r[7].class_name = v;
    r[8].auth = RATION_AUTH_YES;
    r[9].vars = &x;
    r[9].var_count = 1;
    r[10].provider = ration_text_of("p");
    for (size_t i = 0; i < 11; i++) {
        seen[i] = find(&r[i]);
        for (size_t k = 0; k < i; k++)
            CHECK(seen[k] != seen[i]);
    }
    end();
}

static void absent_and_empty_names_differ(void **state)
{
    ration_request r = request("whole", "/");

    (void)state;
    begin();

    const rn_route *without = find(&r);

    r.tenant = ration_text_of("");

    const rn_route *with = find(&r);

    CHECK(with != without);
    CHECK_STR(key_of(without, "tenant"), NULL);
    CHECK_STR(key_of(with, "tenant"), "");
    end();
}

static void templates_name_variables_and_defaults(void **state)
{
    static const struct {
        const char *why;
        const char *path;
        const char *org;
        const char *class_name;
        const char *tenant;
    } rows[] = {
        {"a variable of the template", "/o/7/anything/else", "org=7", "batch", NULL},
        {"the more specific template", "/o/7/d/8", "org=7", "usual", "devices"},
        {"by name before by variable", "/o/all", NULL, "usual", NULL},
        {"no template", "/x", NULL, "usual", NULL},
        {"a variable has the value that the provider reads", "/o/a%2fb/", "org=a%2Fb", "batch", NULL},
        {"however it is encoded", "/o/%61%2Fb", "org=a%2Fb", "batch", NULL},
        {"a quote", "/o/%22", "org=\"", "batch", NULL},
        {"a percent sign", "/o/100%25", "org=100%25", "batch", NULL},
        {"so is a name", "/%6F/7/%64/8", "org=7", "usual", "devices"},
    };

    (void)state;
    begin();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_request r = request("whole", rows[i].path);
        const rn_route *route = find(&r);

        CHECK_ROW(rows[i].why);
        CHECK_STR(key_of(route, "org"), rows[i].org);
        CHECK_TEXT(route->class_name, rows[i].class_name);
        CHECK_TEXT(route->tenant, rows[i].tenant);
        CHECK_STR(key_of(route, "tenant"), rows[i].tenant);
    }
    CHECK_ROW(NULL);
    end();
}

static void what_the_request_says_goes_first(void **state)
{
    const ration_var vars[] = {{ration_text_of("org"), ration_text_of("given")},
                               {ration_text_of("org"), ration_text_of("again")}};
    ration_request r = request("whole", "/o/7/d/8");

    (void)state;
    begin();
    r.vars = vars;
    r.var_count = 2;
    r.tenant = ration_text_of("mine");
    r.class_name = ration_text_of("own");
    r.target = ration_text_of("asia");
    r.credential = ration_text_of("k9");

    const rn_route *route = find(&r);

    CHECK_STR(key_of(route, "org"), "org=given"); /* of two, the first */
    CHECK_STR(key_of(route, "tenant"), "mine");
    CHECK_STR(key_of(route, "target"), "asia");
    CHECK_STR(key_of(route, "credential"), "k9");
    CHECK_TEXT(route->tenant, "mine");
    CHECK_TEXT(route->class_name, "own");
    end();
}

static void an_endpoint_stands_for_a_path(void **state)
{
    ration_request r = request("whole", NULL);
    const ration_var org = {ration_text_of("org"), ration_text_of("5")};

    (void)state;
    begin();
    r.path = (ration_text){NULL, 0};
    r.endpoint = ration_text_of("/o/{org}/d/{org2}");
    r.vars = &org;
    r.var_count = 1;
    CHECK_STR(key_of(find(&r), "org"), "org=5");
    CHECK_TEXT(find(&r)->tenant, "devices");
    r.endpoint = ration_text_of("/not/declared");
    CHECK_STR(key_of(find(&r), "org"), "org=5");
    CHECK(find(&r)->endpoint == NULL);
    end();
}

static void auth_is_the_requests_or_the_endpoints(void **state)
{
    static const struct {
        const char *path;
        ration_auth auth;
        bool is;
    } rows[] = {{"/token", RATION_AUTH_UNSET, true},
                {"/token", RATION_AUTH_NO, false},
                {"/o/all", RATION_AUTH_UNSET, false},
                {"/o/all", RATION_AUTH_YES, true}};

    (void)state;
    begin();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_request r = request("whole", rows[i].path);

        r.auth = rows[i].auth;
        CHECK_EQ(key_of(find(&r), "auth") != NULL, rows[i].is);
    }
    end();
}

/* The account that asks first must not matter, so both orders are tried. */
static void a_shared_key_has_the_smallest_share(void **state)
{
    static const char *const orders[][3] = {{"whole", "half", "third"}, {"third", "half", "whole"}};
    static const struct {
        const char *limit;
        int64_t parts; /* of the request of "whole": 1 / parts */
    } rows[] = {{"account", 1}, {"target", 2}, {"credential", 3}, {"provider", 3}};

    (void)state;
    for (size_t order = 0; order < 2; order++) {
        begin();
        for (size_t i = 0; i < 3; i++) {
            const ration_request r = request(orders[order][i], "/");

            find(&r);
        }
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            const ration_request r = request("whole", "/");
            const rn_counter *counter = counter_of(find(&r), rows[i].limit);
            const ration_ratio share = counter != NULL ? counter->share : (ration_ratio){0, 1};

            CHECK_ROW(rows[i].limit);
            CHECK_EQ(rn_ratio_of(6 * UNIT, share), 6 * UNIT / rows[i].parts);
        }
        CHECK_ROW(NULL);
        end();
    }
}

static void names_that_lead_nowhere(void **state)
{
    static const struct {
        const char *why;
        const char *provider;
        const char *account;
        ration_reason reason;
    } rows[] = {
        {"no such account", NULL, "nobody", RATION_REASON_UNKNOWN_ACCOUNT},
        {"no account", NULL, NULL, RATION_REASON_UNKNOWN_ACCOUNT},
        {"an empty account", NULL, "", RATION_REASON_UNKNOWN_ACCOUNT},
        {"no such provider", "r", "whole", RATION_REASON_UNKNOWN_PROVIDER},
        {"neither", "r", "nobody", RATION_REASON_UNKNOWN_PROVIDER},
        {"an empty provider", "", "whole", RATION_REASON_UNKNOWN_PROVIDER},
        {"another provider's account", "p", "other", RATION_REASON_UNKNOWN_ACCOUNT},
    };

    (void)state;
    begin();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_request r = request(rows[i].account, "/");
        const rn_limit *limit;
        ration_reason reason;
        rn_route *route;

        CHECK_ROW(rows[i].why);
        r.provider = ration_text_of(rows[i].provider);
        CHECK_EQ(rn_routes_find(&routes, ration_time_of(0), &r, &route, &reason, &limit), RATION_OK);
        CHECK(route == NULL);
        CHECK_EQ(reason, rows[i].reason);
    }
    CHECK_ROW(NULL);
    CHECK_EQ(routes.counters.size, 0);
    end();
}

static int error_of(const ration_request *r)
{
    const rn_limit *limit;
    ration_reason reason;
    rn_route *route;
    const int err = rn_routes_find(&routes, ration_time_of(0), r, &route, &reason, &limit);

    CHECK((route == NULL) == (err != RATION_OK));
    return err;
}

static void names_have_bounds(void **state)
{
    static char large[20000];
    ration_var vars[RN_VARS_MAX + 1];
    char names[RN_VARS_MAX + 1][4];
    ration_request r = request("whole", "/");

    (void)state;
    begin();
    memset(large, 'a', sizeof large);
    r.tenant = (ration_text){large, 16000};
    CHECK_EQ(error_of(&r), RATION_ERR_INVALID); /* as part of a scope key */
    r.tenant = (ration_text){large, 8000};
    CHECK_EQ(error_of(&r), RATION_OK);
    r.tenant = (ration_text){large, sizeof large};
    CHECK_EQ(error_of(&r), RATION_ERR_INVALID);

    r = request("whole", "/");
    for (size_t i = 0; i <= RN_VARS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "v%zu", i);
        vars[i] = (ration_var){ration_text_of(names[i]), ration_text_of("1")};
    }
    r.vars = vars;
    r.var_count = RN_VARS_MAX;
    CHECK_EQ(error_of(&r), RATION_OK);
    r.path = ration_text_of("/o/7/x"); /* one more by the template */
    CHECK_EQ(error_of(&r), RATION_ERR_INVALID);
    r.path = ration_text_of("/");
    r.var_count = RN_VARS_MAX + 1;
    CHECK_EQ(error_of(&r), RATION_ERR_INVALID);

    r = request("whole", "/");
    for (size_t i = 0; i < 130; i += 2)
        large[i] = '/';
    r.path = (ration_text){large, 130};
    CHECK_EQ(error_of(&r), RATION_ERR_INVALID); /* too many segments */
    end();
}

static void idle_routes_are_bounded(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 20000; i++) {
        char path[32];
        ration_request r;

        snprintf(path, sizeof path, "/x/%d", i);
        r = request("whole", path);
        rn_route_release(&routes, find(&r));
    }
    CHECK_EQ(routes.idle_count, 16384);
    CHECK_EQ(routes.by_names.size, 16384);

    const ration_request oldest = request("whole", "/x/3616");
    const size_t live = memory.live;

    rn_route_release(&routes, find(&oldest)); /* still there */
    CHECK_EQ(memory.live, live);
    CHECK_EQ(routes.idle_count, 16384);
    end();
}

static void a_limit_at_its_keys_forgets_fresh_counters(void **state)
{
    const ration_request r[] = {request("whole", "/o/1/x"), request("whole", "/o/2/x"), request("whole", "/o/3/x")};
    const rn_limit *limit;
    ration_reason reason;
    rn_route *route;

    (void)state;
    begin_with(2);
    rn_route_release(&routes, find(&r[0]));

    rn_route *second = find(&r[1]);
    const ration_request same_key = request("whole", "/o/1/y");

    rn_route_release(&routes, find(&same_key)); /* two idle routes at one counter */
    CHECK_EQ(routes.idle_count, 2);

    route = find(&r[2]); /* forgets org 1 and both its routes */
    CHECK_EQ(routes.idle_count, 0);
    CHECK_EQ(book.providers[0].limits[1]->counter_count, 2);
    CHECK_EQ(rn_routes_find(&routes, ration_time_of(0), &r[0], &route, &reason, &limit), RATION_OK);
    CHECK(route == NULL); /* the other two are in use */
    CHECK_EQ(reason, RATION_REASON_TOO_MANY_KEYS);
    CHECK_STR(limit->rule->name, "org");
    rn_route_release(&routes, second);
    CHECK_STR(key_of(find(&r[0]), "org"), "org=1");
    end();
}

/* What keeps a counter from being forgotten, one at a time. */
static void a_counter_that_is_needed_is_not_forgotten(void **state)
{
    const ration_request first = request("whole", "/o/1/x");
    const ration_request second = request("whole", "/o/2/x");
    const rn_limit *limit;
    ration_reason reason;
    rn_hold hold = {.charge = UNIT};

    (void)state;
    for (int what = 0; what < 7; what++) {
        rn_route *route;

        begin_with(1);
        route = find(&first);
        rn_route_release(&routes, route);

        rn_counter *counter = route->links[1].counter;

        CHECK_STR(counter->limit->rule->name, "org");
        switch (what) {
        case 0:
            counter->pins = 1;
            break;
        case 1:
            TAILQ_INSERT_TAIL(&counter->holds, &hold, next);
            break;
        case 2:
            counter->watcher_count = 1;
            break;
        case 3:
            counter->penalty = (rn_penalty){.any = true, .until = {1}};
            break;
        case 4:
            counter->dirty = true;
            break;
        case 5:
            counter->u.slots.held = 1;
            break;
        default:
            break;
        }
        CHECK_EQ(rn_routes_find(&routes, ration_time_of(0), &second, &route, &reason, &limit), RATION_OK);
        CHECK_EQ(reason, what < 6 ? RATION_REASON_TOO_MANY_KEYS : RATION_REASON_NONE);
        if (what < 6) /* else it has gone to make room */
            TAILQ_INIT(&counter->holds);
        end();
    }
}

static void without_memory_nothing_changes(void **state)
{
    const ration_request r = request("whole", "/o/1/x");
    bool failed = true;

    (void)state;
    for (uint64_t at = 0; failed; at++) {
        const rn_limit *limit;
        ration_reason reason;
        rn_route *route;

        begin();
        memory.countdown = at;

        const int err = rn_routes_find(&routes, ration_time_of(0), &r, &route, &reason, &limit);

        failed = memory.failed;
        CHECK_EQ(err, failed ? RATION_ERR_NOMEM : RATION_OK);
        CHECK((route == NULL) == failed);
        CHECK_EQ(routes.by_names.size, !failed);
        CHECK_EQ(find(&r)->count, 5);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_names_have_the_same_route),
        cmocka_unit_test(every_name_makes_a_difference),
        cmocka_unit_test(absent_and_empty_names_differ),
        cmocka_unit_test(templates_name_variables_and_defaults),
        cmocka_unit_test(what_the_request_says_goes_first),
        cmocka_unit_test(an_endpoint_stands_for_a_path),
        cmocka_unit_test(auth_is_the_requests_or_the_endpoints),
        cmocka_unit_test(a_shared_key_has_the_smallest_share),
        cmocka_unit_test(names_that_lead_nowhere),
        cmocka_unit_test(names_have_bounds),
        cmocka_unit_test(idle_routes_are_bounded),
        cmocka_unit_test(a_limit_at_its_keys_forgets_fresh_counters),
        cmocka_unit_test(a_counter_that_is_needed_is_not_forgotten),
        cmocka_unit_test(without_memory_nothing_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
