/* SPDX-License-Identifier: MIT */
/* Rules that are wrong, each told which member and why; names; guarantees. */
#include "support/failalloc.h"
#include "support/lone_ceiling.h"

#include <ration/ceiling.h>

#define UNIT RATION_UNIT

typedef struct fault_case {
    const char *why;
    ration_share_rule rule;
    const char *path;
    const char *text; /* how it begins */
} fault_case;

static const ration_tenant_share fine[] = {{"acme", 3, {0, 0}}, {"globex", 1, {0, 0}}};
static const ration_tenant_share twice[] = {{"acme", 3, {0, 0}}, {"acme", 1, {0, 0}}};
static const ration_tenant_share unnamed[] = {{"acme", 3, {0, 0}}, {NULL, 1, {0, 0}}};
static const ration_tenant_share empty[] = {{"", 3, {0, 0}}};
static const ration_tenant_share garbled[] = {{"ac\xffme", 3, {0, 0}}};
static const ration_tenant_share weightless[] = {{"acme", 0, {0, 0}}};
static const ration_tenant_share negative[] = {{"acme", -1, {0, 0}}};
static const ration_tenant_share heavy[] = {{"acme", 1000001, {0, 0}}};
static const ration_tenant_share generous[] = {{"acme", 1, {3, 2}}};
static const ration_tenant_share stingy[] = {{"acme", 1, {-1, 2}}};
static const ration_tenant_share halved[] = {{"acme", 1, {1, -2}}};

#define RULE(size, list, count, horizon, idle, ...)                                                                    \
    {                                                                                                                  \
        .ceiling = (size), .tenants = (list), .tenant_count = (count), .reclaim_horizon_us = (horizon),                \
        .idle_after_us = (idle), __VA_ARGS__                                                                           \
    }
#define FINE(...) RULE(100 * UNIT, fine, 2, 100, 200, __VA_ARGS__)
#define LISTED(list, count) RULE(100 * UNIT, list, count, 100, 200, .follows = NULL)
#define SIZED(size) RULE(size, fine, 2, 100, 200, .follows = NULL)
#define TIMED(horizon, idle) RULE(100 * UNIT, fine, 2, horizon, idle, .follows = NULL)

static const fault_case faults[] = {
    {"no ceiling", SIZED(0), "ceiling", "must be above 0"},
    {"a negative ceiling", SIZED(-1), "ceiling", "must be above 0"},
    {"a ceiling too large", SIZED(RATION_UNITS_MAX + 1), "ceiling", "must be at most"},
    {"a ceiling and one to follow", FINE(.follows = "L"), "ceiling", "either a number"},
    {"no tenants", LISTED(fine, 0), "tenants", "at least one tenant"},
    {"no list of tenants", LISTED(NULL, 2), "tenants", "at least one tenant"},
    {"too many tenants", LISTED(fine, 1000001), "tenants", "at most"},
    {"no horizon", TIMED(0, 200), "reclaimHorizon", "must be above 0"},
    {"a negative horizon", TIMED(-1, 200), "reclaimHorizon", "must be above 0"},
    {"a horizon without end", TIMED(RATION_FOREVER_US, 200), "reclaimHorizon", "is longer than time"},
    {"idle as soon as the horizon", TIMED(100, 100), "idleAfter", "must be longer than reclaimHorizon: "},
    {"idle sooner", TIMED(100, 99), "idleAfter", "must be longer than reclaimHorizon: "},
    {"never idle", TIMED(100, RATION_FOREVER_US), "idleAfter", "is longer than time"},
    {"more than all may be lent", FINE(.lend = {2, 1}), "lend", "must be a part"},
    {"a negative part", FINE(.lend = {-1, 1}), "lend", "must be a part"},
    {"no ratio at all", FINE(.lend = {1, -1}), "lend", "must be a part"},
    {"a negative cooldown", FINE(.cooldown_us = -1), "cooldown", "must not be below 0"},
    {"a cooldown without end", FINE(.cooldown_us = RATION_FOREVER_US), "cooldown", "is longer than time"},
    {"declared twice", LISTED(twice, 2), "tenants.acme", "this tenant is declared twice"},
    {"without a name", LISTED(unnamed, 2), "tenants", "a tenant needs a name"},
    {"with an empty one", LISTED(empty, 1), "tenants", "a tenant needs a name"},
    {"not UTF-8", LISTED(garbled, 1), "tenants", "the name of a tenant is not UTF-8"},
    {"weight 0", LISTED(weightless, 1), "tenants.acme", "the weight must be"},
    {"weight below 0", LISTED(negative, 1), "tenants.acme", "the weight must be"},
    {"weight above a million", LISTED(heavy, 1), "tenants.acme", "the weight must be"},
    {"a tenant that lends more than it has", LISTED(generous, 1), "tenants.acme.lend", "must be a part"},
    {"a tenant that lends less than nothing", LISTED(stingy, 1), "tenants.acme.lend", "must be a part"},
    {"a tenant with no ratio at all", LISTED(halved, 1), "tenants.acme.lend", "must be a part"},
    {"nobody of that name", FINE(.unknown_tenant = "initech"), "unknownTenant", "must be `refuse` or one of"},
};

static void each_fault_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const fault_case *const f = &faults[i];
        ration_fault fault = {.path = ""};
        rn_ceiling_spec spec;

        CHECK_ROW(f->why);
        CHECK_EQ(rn_ceiling_spec_init(&spec, rn_mem_default(), &f->rule, &fault), RATION_ERR_CONFIG);
        CHECK_STR(fault.path, f->path);
        CHECK(strlen(fault.text) >= strlen(f->text));
        fault.text[strlen(f->text)] = '\0';
        CHECK_STR(fault.text, f->text);
        CHECK_EQ(rn_ceiling_spec_init(&spec, rn_mem_default(), &f->rule, NULL), RATION_ERR_CONFIG);
    }
    CHECK_ROW(NULL);
}

/* The boundary case is told in full. */
static void why_idle_after_must_be_longer(void **state)
{
    const ration_share_rule rule = TIMED(100, 100);
    ration_fault fault = {.path = ""};
    rn_ceiling_spec spec;

    (void)state;
    CHECK_EQ(rn_ceiling_spec_init(&spec, rn_mem_default(), &rule, &fault), RATION_ERR_CONFIG);
    CHECK_STR(fault.text, "must be longer than reclaimHorizon: if equal, a borrower could renew the moment its loan "
                          "ends, just as the returning tenant's protection ends");
}

static void the_edges_are_allowed(void **state)
{
    static const ration_tenant_share edges[] = {{"a", 1, {0, 1}}, {"b", 1000000, {1, 1}}};
    const ration_share_rule rule = {
        .ceiling = RATION_UNITS_MAX,
        .tenants = edges,
        .tenant_count = 2,
        .reclaim_horizon_us = RATION_TIME_MAX_US - 1,
        .idle_after_us = RATION_TIME_MAX_US,
        .cooldown_us = RATION_TIME_MAX_US,
        .lend = {1000000, 1000000},
        .unknown_tenant = "b",
    };
    rn_ceiling_spec spec;

    (void)state;
    CHECK_EQ(rn_ceiling_spec_init(&spec, rn_mem_default(), &rule, NULL), RATION_OK);
    CHECK_EQ(spec.count, 2);
    rn_ceiling_spec_fini(&spec);
}

static void names_are_found(void **state)
{
    ration_share_rule rule = FINE(.unknown_tenant = NULL);
    rn_ceiling_spec spec;

    (void)state;
    CHECK_EQ(rn_ceiling_spec_init(&spec, rn_mem_default(), &rule, NULL), RATION_OK);
    CHECK_EQ(rn_ceiling_spec_find(&spec, ration_text_of("acme")), 0);
    CHECK_EQ(rn_ceiling_spec_find(&spec, ration_text_of("globex")), 1);
    CHECK_EQ(rn_ceiling_spec_find(&spec, (ration_text){"acmes", 4}), 0);
    CHECK_EQ(rn_ceiling_spec_find(&spec, ration_text_of("Acme")), RN_TENANT_NONE);
    CHECK_EQ(rn_ceiling_spec_find(&spec, ration_text_of("")), RN_TENANT_NONE);
    CHECK_EQ(rn_ceiling_spec_find(&spec, ration_text_of(NULL)), RN_TENANT_NONE);
    rn_ceiling_spec_fini(&spec);

    rule.unknown_tenant = "globex";
    CHECK_EQ(rn_ceiling_spec_init(&spec, rn_mem_default(), &rule, NULL), RATION_OK);
    CHECK_EQ(rn_ceiling_spec_find(&spec, ration_text_of("acme")), 0);
    CHECK_EQ(rn_ceiling_spec_find(&spec, ration_text_of("initech")), 1);
    CHECK_EQ(rn_ceiling_spec_find(&spec, ration_text_of(NULL)), 1);
    rn_ceiling_spec_fini(&spec);
}

/* Guarantees add up to the ceiling, the largest remainders first, ties to those declared first. */
static void guarantees(void **state)
{
    static const struct {
        const char *why;
        int64_t ceiling;
        int64_t weights[4];
        int64_t want[4];
    } rows[] = {
        {"no remainder", 100, {1, 1, 1, 1}, {25, 25, 25, 25}},
        {"ties to the first", 102, {1, 1, 1, 1}, {26, 26, 25, 25}},
        {"the largest remainder", 10, {1, 1, 1, 3}, {2, 2, 1, 5}},
        {"1.25 2.5 3.75 2.5", 10, {1, 2, 3, 2}, {1, 3, 4, 2}},
        {"less than the tenants", 1, {1, 1, 1, 1}, {1, 0, 0, 0}},
        {"the heaviest comes first", 1, {1, 1, 2, 1}, {0, 0, 1, 0}},
        {"nothing", 0, {1, 2, 3, 4}, {0, 0, 0, 0}},
        {"as large as they come",
         RATION_UNITS_MAX,
         {1, 1000000, 1000000, 999999},
         {INT64_C(3002399751), INT64_C(3002399751580331), INT64_C(3002399751580331), INT64_C(3002396749180579)}},
    };
    static const char *const names[] = {"a", "b", "c", "d"};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_tenant_share tenants[4];
        ration_share_rule rule = lone_rule(4);
        int64_t sum = 0;
        lone_ceiling l;

        CHECK_ROW(rows[i].why);
        for (size_t k = 0; k < 4; k++)
            tenants[k] = (ration_tenant_share){names[k], rows[i].weights[k], {0, 0}};
        rule.tenants = tenants;
        lone_init(&l, &rule);
        rn_ceiling_resize(l.c, ration_time_of(0), rows[i].ceiling);
        for (uint32_t k = 0; k < 4; k++) {
            CHECK_EQ(lone_row(&l, 0, k).guarantee, rows[i].want[k]);
            sum += rows[i].want[k];
        }
        CHECK_EQ(sum, rows[i].ceiling);
        lone_fini(&l);
    }
    CHECK_ROW(NULL);
}

/* The weighted max-min of what is wanted. */
static void targets(void **state)
{
    static const struct {
        const char *why;
        int64_t wants[4];
        int64_t want[4];
    } rows[] = {
        {"nobody wants anything", {0, 0, 0, 0}, {0, 0, 0, 0}},
        {"all fit", {10, 20, 30, 40}, {10, 20, 30, 40}},
        {"one wants all", {0, 0, 0, 100}, {0, 0, 0, 100}},
        {"what the small ones leave goes to the others by weight", {10, 100, 100, 10}, {10, 32, 48, 10}},
        {"all want more: by weight", {100, 100, 100, 100}, {13, 25, 37, 25}},
        {"one just at its part", {100, 25, 100, 100}, {13, 25, 37, 25}},
        {"one just below it", {100, 24, 100, 100}, {13, 24, 38, 25}},
    };
    static const ration_tenant_share tenants[] = {
        {"a", 1, {0, 0}}, {"b", 2, {0, 0}}, {"c", 3, {0, 0}}, {"d", 2, {0, 0}}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_share_rule rule = lone_rule(4);
        ration_share_report report = {.tenants = NULL};
        lone_ceiling l;

        CHECK_ROW(rows[i].why);
        rule.tenants = tenants;
        lone_init(&l, &rule);
        for (uint32_t k = 0; k < 4; k++) {
            const rn_ceiling_ask ask = lone_ask(k, rows[i].wants[k], 50);

            rn_ceiling_asked(l.c, ration_time_of(0), &ask, RATION_REASON_NOTHING_TO_BORROW, true);
        }
        CHECK_EQ(rn_ceiling_shares(l.c, ration_time_of(0), &report), RATION_OK);
        for (uint32_t k = 0; k < 4; k++) {
            CHECK_EQ(report.tenants[k].target, rows[i].want[k]);
            CHECK_EQ(lone_row(&l, 0, k).target, rows[i].want[k]);
        }
        lone_fini(&l);
    }
    CHECK_ROW(NULL);
}

static void any_allocation_may_fail(void **state)
{
    const ration_share_rule rule = FINE(.unknown_tenant = "acme");
    failalloc fail = {.failed = true};

    (void)state;
    for (uint64_t i = 0; fail.failed; i++) {
        rn_ceiling *ceiling = NULL;
        rn_ceiling_spec spec;

        failalloc_init(&fail, i);

        int err = rn_ceiling_spec_init(&spec, &fail.allocator, &rule, NULL);

        if (err == RATION_OK) {
            err = rn_ceiling_new(&fail.allocator, &spec, rule.ceiling, ration_time_of(0), &ceiling);
            rn_ceiling_free(ceiling);
            rn_ceiling_spec_fini(&spec);
        }
        CHECK_EQ(err, fail.failed ? RATION_ERR_NOMEM : RATION_OK);
        CHECK_EQ(fail.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_is_named),
        cmocka_unit_test(why_idle_after_must_be_longer),
        cmocka_unit_test(the_edges_are_allowed),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(guarantees),
        cmocka_unit_test(targets),
        cmocka_unit_test(any_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
