/* SPDX-License-Identifier: MIT */
/* Share and adaptive limits: what their keys give, what is refused, and what is warned of. */
#include "support/config.h"

#define SECOND INT64_C(1000000)
#define MS INT64_C(1000)

#define PROVIDER "providers:\n- name: p\n  baseUrl: http://h\n"               /* lines 1 to 3 */
#define LIMIT PROVIDER "  limits:\n  - { name: l, scope: { by: [account] }, " /* line 5 */
#define SHARE LIMIT "kind: share, counts: cost, "
#define SPANS "reclaimHorizon: 100ms, idleAfter: 200ms"
#define ADAPTIVE LIMIT "kind: adaptive, "

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};
static const ration_config_options recording = {.recording = true};

static const ration_limit_rule *limit_of(const ration_config *config, size_t index)
{
    return &ration_config_rules(config)->providers[0].limits[index];
}

static void check_ratio(ration_ratio got, int32_t num, int32_t den)
{
    CHECK_EQ(got.num, num);
    CHECK_EQ(got.den, den);
}

static void a_share_is_as_the_chapter_writes_it(void **state)
{
    ration_config *config = config_of(PROVIDER "  limits:\n"
                                               "  - name: tokens-in-flight\n"
                                               "    kind: share\n"
                                               "    ceiling: 100000\n"
                                               "    counts: cost                   # required, no default\n"
                                               "    tenants: { acme: 3, globex: 1 }\n"
                                               "    reclaimHorizon: 250ms          # a comment\n"
                                               "    idleAfter: 1s\n"
                                               "    unknownTenant: refuse\n",
                                      &plain);
    const ration_limit_rule *limit = limit_of(config, 0);

    (void)state;
    CHECK_EQ(limit->kind, RATION_KIND_SHARE);
    CHECK_EQ(limit->counts, RATION_COUNTS_COST);
    CHECK_EQ(limit->share.ceiling, 100000 * RATION_UNIT);
    CHECK_STR(limit->share.follows, NULL);
    CHECK_EQ(limit->share.tenant_count, 2);
    CHECK_STR(limit->share.tenants[0].name, "acme");
    CHECK_EQ(limit->share.tenants[0].weight, 3);
    check_ratio(limit->share.tenants[0].lend, 0, 0);
    CHECK_EQ(limit->share.tenants[1].weight, 1);
    CHECK_EQ(limit->share.reclaim_horizon_us, 250 * MS);
    CHECK_EQ(limit->share.idle_after_us, SECOND);
    CHECK_STR(limit->share.unknown_tenant, NULL);
    check_ratio(limit->share.lend, 0, 0);
    CHECK(!limit->share.freeze_wanted);
    CHECK_EQ(limit->share.cooldown_us, 0);
    ration_config_free(config);
}

static void a_share_may_say_more(void **state)
{
    ration_config *config = config_of(
        LIMIT "kind: share, counts: requests, ceiling: { units: 10.5 }, tenants: { a: { weight: 2, lend: 1/3 }, b: {}, "
              "c: { lend: 0% }, \"7\": 5 }, reclaimHorizon: 1us, idleAfter: 2us, unknownTenant: \"7\", lend: 80%, "
              "freeze: wanted, cooldown: 3s, maxKeys: 9 }\n",
        &plain);
    const ration_share_rule *share = &limit_of(config, 0)->share;

    (void)state;
    CHECK_EQ(limit_of(config, 0)->counts, RATION_COUNTS_REQUESTS);
    CHECK_EQ(share->ceiling, 10500000);
    CHECK_EQ(share->tenant_count, 4);
    CHECK_EQ(share->tenants[0].weight, 2);
    check_ratio(share->tenants[0].lend, 1, 3);
    CHECK_STR(share->tenants[1].name, "b");
    CHECK_EQ(share->tenants[1].weight, 1);
    check_ratio(share->tenants[1].lend, 0, 0);
    check_ratio(share->tenants[2].lend, 0, 1);
    CHECK_STR(share->tenants[3].name, "7");
    CHECK_EQ(share->tenants[3].weight, 5);
    CHECK_STR(share->unknown_tenant, "7");
    check_ratio(share->lend, 4, 5);
    CHECK(share->freeze_wanted);
    CHECK_EQ(share->cooldown_us, 3 * SECOND);
    CHECK_EQ(limit_of(config, 0)->max_keys, 9);
    CHECK_EQ(limit_of(config, 0)->adaptive.lend_horizon_us, 0);
    ration_config_free(config);
}

static void a_ceiling_can_follow(void **state)
{
    ration_config *config = config_of(
        PROVIDER
        "  limits:\n"
        "  - { name: s, kind: share, counts: requests, ceiling: { follows: l }, tenants: { a: 1 }, " SPANS
        ", scope: { by: [account] }, appliesTo: { methods: [GET] } }\n"
        "  - { name: l, kind: adaptive, initialLimit: 4, scope: { by: [account] } }\n"
        "accounts: [{ name: a, provider: p, limits: [{ name: l, maxLimit: 9 }, { name: s, cooldown: 1s }] }]\n",
        &plain);
    const ration_account_rule *account = &ration_config_rules(config)->accounts[0];

    (void)state;
    CHECK_EQ(limit_of(config, 0)->share.ceiling, 0);
    CHECK_STR(limit_of(config, 0)->share.follows, "l");
    CHECK_EQ(account->limit_count, 2);
    CHECK_EQ(account->limits[0].kind, RATION_KIND_ADAPTIVE);
    CHECK_EQ(account->limits[0].adaptive.initial_limit, 4);
    CHECK_EQ(account->limits[0].adaptive.max_limit, 9);
    CHECK_STR(account->limits[1].share.follows, "l");
    CHECK_EQ(account->limits[1].share.tenant_count, 1);
    CHECK_EQ(account->limits[1].share.cooldown_us, SECOND);
    ration_config_free(config);
}

static void an_adaptive_limit_has_the_defaults_of_the_chapter(void **state)
{
    ration_config *config =
        config_of("{\"providers\":[{\"name\":\"p\",\"limits\":[{\"name\":\"l\",\"kind\":\"adaptive\","
                  "\"initialLimit\":4}]}]}",
                  &recording);
    const ration_adaptive_rule *rule = &limit_of(config, 0)->adaptive;

    (void)state;
    CHECK_EQ(limit_of(config, 0)->counts, RATION_COUNTS_REQUESTS);
    CHECK_EQ(rule->initial_limit, 4);
    CHECK_EQ(rule->min_limit, 1);
    CHECK_EQ(rule->max_limit, 1000);
    CHECK_EQ(rule->lease_ttl_us, 30 * SECOND);
    check_ratio(rule->decrease_factor, 1, 2);
    CHECK_EQ(rule->increase_step, 1);
    CHECK_EQ(rule->window_us, 5 * SECOND);
    CHECK_EQ(rule->cooldown_us, 10 * SECOND);
    CHECK_EQ(rule->class_count, 0);
    CHECK(!rule->recovery_fast);
    CHECK(!rule->pause_on_retry_after);
    CHECK_EQ(rule->lend_horizon_us, 0);
    CHECK_EQ(rule->lend_idle_us, 0);
    ration_config_free(config);
}

static void an_adaptive_limit_may_say_more(void **state)
{
    ration_config *config = config_of(
        ADAPTIVE "initialLimit: 12, minLimit: 12, maxLimit: 12, leaseTtl: 1m, aimd: { decreaseFactor: 70%, "
                 "increaseStep: 3, window: 1s, cooldown: 2s }, classes: { y: { reservedShare: 1/4 }, x: { "
                 "reservedShare: 0.375 }, z: {} }, recovery: fast, lend: { reclaimHorizon: 100ms, idleAfter: 100001us "
                 "}, pauseOnRetryAfter: true }\n",
        &plain);
    const ration_adaptive_rule *rule = &limit_of(config, 0)->adaptive;

    (void)state;
    CHECK_EQ(rule->min_limit, 12);
    CHECK_EQ(rule->max_limit, 12);
    CHECK_EQ(rule->lease_ttl_us, 60 * SECOND);
    check_ratio(rule->decrease_factor, 7, 10);
    CHECK_EQ(rule->increase_step, 3);
    CHECK_EQ(rule->window_us, SECOND);
    CHECK_EQ(rule->cooldown_us, 2 * SECOND);
    CHECK_EQ(rule->class_count, 3);
    CHECK_STR(rule->classes[0].name, "y");
    check_ratio(rule->classes[0].reserved, 1, 4);
    CHECK_STR(rule->classes[1].name, "x");
    check_ratio(rule->classes[1].reserved, 3, 8);
    CHECK_STR(rule->classes[2].name, "z");
    check_ratio(rule->classes[2].reserved, 0, 0);
    CHECK(rule->recovery_fast);
    CHECK(rule->pause_on_retry_after);
    CHECK_EQ(rule->lend_horizon_us, 100 * MS);
    CHECK_EQ(rule->lend_idle_us, 100 * MS + 1);
    CHECK_EQ(limit_of(config, 0)->share.lend.den, 0);
    ration_config_free(config);
}

#define FULL "ceiling: 10, tenants: { a: 1, b: 1 }, " SPANS
#define LEADER "  - { name: a, kind: adaptive, initialLimit: 4, scope: { by: [account] } }\n"
#define FILTERED                                                                                                       \
    PROVIDER "  limits:\n  - { name: a, kind: adaptive, initialLimit: 4, scope: { by: [account] }, appliesTo: { "
#define FOLLOWER                                                                                                       \
    "  - { name: s, kind: share, tenants: { t: 1 }, " SPANS ", ceiling: { follows: a }, counts: requests, scope: { "   \
    "by: "

/* What is wrong or, where a config loads, what may not be meant. */
static const struct {
    const char *why;
    const char *text;
    const char *want;
} rows[] = {
    /* share */
    {"whole", SHARE FULL " }\n", ""},
    {"nothing of it", LIMIT "kind: share }\n",
     "f:5:5: providers[0].limits[0]: the key 'counts' is missing\n"
     "f:5:5: providers[0].limits[0]: the key 'ceiling' is missing\n"
     "f:5:5: providers[0].limits[0]: the key 'tenants' is missing\n"
     "f:5:5: providers[0].limits[0]: the key 'reclaimHorizon' is missing\n"
     "f:5:5: providers[0].limits[0]: the key 'idleAfter' is missing\n"},
    {"counts has no default", LIMIT "kind: share, " FULL " }\n",
     "f:5:5: providers[0].limits[0]: the key 'counts' is missing\n"},
    {"no tenants", SHARE "ceiling: 10, tenants: {}, " SPANS " }\n",
     "f:5:91: providers[0].limits[0].tenants: the map is empty\n"},
    {"a weight",
     SHARE "ceiling: 10, tenants: { a: 0, b: x, c: { weight: 1.5 }, d: { wieght: 1 }, e: [], f: }, " SPANS " }\n",
     "f:5:96: providers[0].limits[0].tenants.a: '0' is out of range (at least 1 and at most 1000000)\n"
     "f:5:102: providers[0].limits[0].tenants.b: 'x' is not a whole number such as 100\n"
     "f:5:118: providers[0].limits[0].tenants.c.weight: '1.5' is not a whole number such as 100\n"
     "f:5:130: providers[0].limits[0].tenants.d.wieght: unknown key (did you mean 'weight'?)\n"
     "f:5:146: providers[0].limits[0].tenants.e: must be a map of keys, or a whole number such as 100\n"
     "f:5:153: providers[0].limits[0].tenants.f: must be a map of keys, or a whole number such as 100\n"},
    {"a tenant twice", SHARE "ceiling: 10, tenants: { a: 1, a: 2 }, " SPANS " }\n",
     "f:5:99: providers[0].limits[0].tenants.a: the key stands here a second time (the first is in line 5)\n"},
    {"as long as the horizon", SHARE "ceiling: 10, tenants: { a: 1 }, reclaimHorizon: 200ms, idleAfter: 200ms }\n",
     "f:5:135: providers[0].limits[0].idleAfter: 'idleAfter' must be longer than 'reclaimHorizon': whoever asks for "
     "units on loan may be told to come back one horizon later, and would count as gone at that very instant, when the "
     "borrower can renew (such as four times as long)\n"},
    {"just longer than the horizon",
     SHARE "ceiling: 10, tenants: { a: 1 }, reclaimHorizon: 200ms, idleAfter: 200001us }\n", ""},
    {"an unknown unknown tenant", SHARE FULL ", unknownTenant: bb }\n",
     "f:5:163: providers[0].limits[0].unknownTenant: none of the tenants has this name (did you mean 'b'?)\n"},
    {"refused", SHARE FULL ", unknownTenant: refuse }\n", ""},
    {"a ceiling of nothing", SHARE "ceiling: 0, tenants: { a: 1 }, " SPANS " }\n",
     "f:5:78: providers[0].limits[0].ceiling: '0' is out of range (at least 0.000001 and at most 9007199254.740992)\n"},
    {"a ceiling of two ways", SHARE "ceiling: { units: 1, follows: x }, tenants: { a: 1 }, " SPANS " }\n",
     "f:5:78: providers[0].limits[0].ceiling: a ceiling is either a number or follows an adaptive limit (such as 100 "
     "or { follows: NAME })\n"
     "f:5:99: providers[0].limits[0].ceiling.follows: the provider has no limit of this name\n"},
    {"a ceiling of no way", SHARE "ceiling: {}, tenants: { a: 1 }, " SPANS " }\n",
     "f:5:78: providers[0].limits[0].ceiling: a ceiling is either a number or follows an adaptive limit (such as 100 "
     "or { follows: NAME })\n"},
    {"a ceiling below one request",
     LIMIT "kind: share, counts: requests, ceiling: 0.5, tenants: { a: 1 }, " SPANS " }\n",
     "f:5:82: providers[0].limits[0].ceiling: a limit that counts requests needs a ceiling of at least 1\n"},
    {"lending of the other kind", SHARE FULL ", lend: { reclaimHorizon: 1s, idleAfter: 2s } }\n",
     "f:5:154: providers[0].limits[0].lend: a map stands here; it must be a ratio from 0 to 1 such as 80%, 0.8 or "
     "4/5\n"},
    {"lending too much", SHARE FULL ", lend: 101% }\n",
     "f:5:154: providers[0].limits[0].lend: '101%' is out of range (it must be a ratio from 0 to 1 such as 80%, 0.8 or "
     "4/5)\n"},
    {"keys of the other kind", SHARE FULL ", minLimit: 1, classes: {} }\n",
     "f:5:148: providers[0].limits[0].minLimit: a limit of this kind has no such key\n"
     "f:5:161: providers[0].limits[0].classes: a limit of this kind has no such key\n"},
    {"an unknown key", SHARE FULL ", reclaimHorzon: 1s }\n",
     "f:5:148: providers[0].limits[0].reclaimHorzon: unknown key (did you mean 'reclaimHorizon'?)\n"},
    {"freezing", SHARE FULL ", freeze: all }\n",
     "f:5:156: providers[0].limits[0].freeze: 'all' is not one of: tenant, wanted\n"},

    /* follows */
    {"followed", PROVIDER "  limits:\n" LEADER FOLLOWER "[account] } }\n", ""},
    {"declared after what follows it", PROVIDER "  limits:\n" FOLLOWER "[account] } }\n" LEADER, ""},
    {"nobody to follow", PROVIDER "  limits:\n" FOLLOWER "[account] } }\n  - { name: aa, kind: concurrency, max: 1 }\n",
     "f:5:109: providers[0].limits[0].ceiling.follows: the provider has no limit of this name\n"},
    {"not adaptive", PROVIDER "  limits:\n" FOLLOWER "[account] } }\n  - { name: a, kind: concurrency, max: 1 }\n",
     "f:5:109: providers[0].limits[0].ceiling.follows: only an adaptive limit can be followed\n"},
    {"another scope", PROVIDER "  limits:\n" LEADER FOLLOWER "[account, tenant] } }\n",
     "f:6:109: providers[0].limits[1].ceiling.follows: a ceiling can only follow a limit with the same scope\n"},
    {"fewer requests", PROVIDER "  limits:\n" LEADER FOLLOWER "[account] }, appliesTo: { methods: [GET] } }\n", ""},
    {"more endpoints", FILTERED "endpoints: [/a/**] } }\n" FOLLOWER "[account] } }\n",
     "f:6:109: providers[0].limits[1].ceiling.follows: a ceiling can only follow a limit that applies to all "
     "requests\n"},
    {"more methods", FILTERED "methods: [GET] } }\n" FOLLOWER "[account] } }\n",
     "f:6:109: providers[0].limits[1].ceiling.follows: a ceiling can only follow a limit that applies to all "
     "requests\n"},
    {"more variables", FILTERED "requestsWithVar: x } }\n" FOLLOWER "[account] } }\n",
     "f:6:109: providers[0].limits[1].ceiling.follows: a ceiling can only follow a limit that applies to all "
     "requests\n"},
    {"more that fetch tokens", FILTERED "authRequests: exclude } }\n" FOLLOWER "[account] } }\n",
     "f:6:109: providers[0].limits[1].ceiling.follows: a ceiling can only follow a limit that applies to all "
     "requests\n"},
    {"another ceiling for an account",
     PROVIDER
     "  limits:\n" LEADER FOLLOWER "[account] } }\n  - { name: c, kind: concurrency, max: 1 }\naccounts:\n- { name: x, "
     "provider: p, limits: [{ name: s, ceiling: { follows: c } }] }\n- { name: y, provider: p, limits: [{ name: "
     "s, ceiling: { follows: d } }] }\n- { name: z, provider: p, limits: [{ name: s, ceiling: 5 }] }\n",
     "f:9:35: accounts[0].limits: limit 's' follows 'c': only an adaptive limit can be followed\n"
     "f:10:35: accounts[1].limits: limit 's' follows 'd': the provider has no limit of this name\n"},
    {"other units",
     PROVIDER
     "  limits:\n  - { name: a, kind: adaptive, counts: cost, initialLimit: 4, scope: { by: [account] } }\n" FOLLOWER
     "[account] } }\n",
     "f:6:109: warning: providers[0].limits[1].ceiling.follows: this limit counts requests and the one that it follows "
     "counts cost (give both the same 'counts')\n"},
    {"otherwise for an account",
     PROVIDER
     "  limits:\n" LEADER FOLLOWER
     "[account] } }\naccounts: [{ name: x, provider: p, limits: [{ name: a, appliesTo: { methods: [GET] } }] }]\n",
     "f:7:44: accounts[0].limits: limit 's' follows 'a': a ceiling can only follow a limit that applies to all "
     "requests\n"},

    /* adaptive */
    {"nothing of it", LIMIT "kind: adaptive }\n", "f:5:5: providers[0].limits[0]: the key 'initialLimit' is missing\n"},
    {"below the lowest", ADAPTIVE "initialLimit: 4, minLimit: 5 }\n",
     "f:5:72: providers[0].limits[0].initialLimit: 'initialLimit' must lie between 'minLimit' and 'maxLimit' (from 5 "
     "to 1000)\n"},
    {"above the highest", ADAPTIVE "initialLimit: 4, maxLimit: 3 }\n",
     "f:5:72: providers[0].limits[0].initialLimit: 'initialLimit' must lie between 'minLimit' and 'maxLimit' (from 1 "
     "to 3)\n"},
    {"the lowest above the highest", ADAPTIVE "initialLimit: 4, minLimit: 9, maxLimit: 3 }\n",
     "f:5:85: providers[0].limits[0].minLimit: 'minLimit' is above 'maxLimit'\n"},
    {"a limit of nothing", ADAPTIVE "initialLimit: 0 }\n",
     "f:5:72: providers[0].limits[0].initialLimit: '0' is out of range (at least 1 and at most 1000000)\n"},
    {"half a slot", ADAPTIVE "initialLimit: 1.5 }\n",
     "f:5:72: providers[0].limits[0].initialLimit: '1.5' is not a whole number such as 100\n"},
    {"lending of the other kind", ADAPTIVE "initialLimit: 4, lend: 50% }\n",
     "f:5:81: providers[0].limits[0].lend: must be a map of keys\n"},
    {"lending without a word", ADAPTIVE "initialLimit: 4, lend: {} }\n",
     "f:5:81: providers[0].limits[0].lend: the key 'reclaimHorizon' is missing\n"
     "f:5:81: providers[0].limits[0].lend: the key 'idleAfter' is missing\n"},
    {"lending for too long", ADAPTIVE "initialLimit: 4, lend: { reclaimHorizon: 1s, idleAfter: 1s } }\n",
     "f:5:114: providers[0].limits[0].lend.idleAfter: 'idleAfter' must be longer than 'reclaimHorizon': whoever asks "
     "for units on loan may be told to come back one horizon later, and would count as gone at that very instant, when "
     "the borrower can renew (such as four times as long)\n"},
    {"no cooldown", ADAPTIVE "initialLimit: 4, aimd: { cooldown: 0 } }\n",
     "f:5:93: providers[0].limits[0].aimd.cooldown: '0' is out of range (at least 1 us and at most 366 d)\n"},
    {"nothing left of it", ADAPTIVE "initialLimit: 4, aimd: { decreaseFactor: 0% } }\n",
     "f:5:99: providers[0].limits[0].aimd.decreaseFactor: the factor must lie between 0 and 1, and be neither\n"},
    {"nothing taken from it", ADAPTIVE "initialLimit: 4, aimd: { decreaseFactor: 1 } }\n",
     "f:5:99: providers[0].limits[0].aimd.decreaseFactor: the factor must lie between 0 and 1, and be neither\n"},
    {"more than all",
     ADAPTIVE "initialLimit: 4, classes: { x: { reservedShare: 1/3 }, y: { reservedShare: 666667/1000000 } } }\n",
     "f:5:84: providers[0].limits[0].classes: the reserved shares add up to more than 1 (100 %)\n"},
    {"exactly all",
     ADAPTIVE "initialLimit: 4, minLimit: 2, classes: { x: { reservedShare: 1/2 }, y: { reservedShare: 0.5 } } }\n",
     ""},
    {"a misspelt class", ADAPTIVE "initialLimit: 4, classes: { x: { reservedShre: 50% } } }\n",
     "f:5:91: providers[0].limits[0].classes.x.reservedShre: unknown key (did you mean 'reservedShare'?)\n"},
    {"a class without a map", ADAPTIVE "initialLimit: 4, classes: { x: 50% } }\n",
     "f:5:89: providers[0].limits[0].classes.x: must be a map of keys\n"},
    {"keys of the other kind", ADAPTIVE "initialLimit: 4, ceiling: 4, window: { period: day } }\n",
     "f:5:75: providers[0].limits[0].ceiling: a limit of this kind has no such key\n"
     "f:5:87: providers[0].limits[0].window: a limit of this kind has no such key\n"},
    {"nothing for two",
     ADAPTIVE "initialLimit: 4, classes: { x: { reservedShare: 1/2 }, y: { reservedShare: 1/2 } } }\n",
     "f:5:89: warning: providers[0].limits[0].classes.x: at the 'minLimit' of 1 the reserves of the other classes "
     "leave nothing to this one (each class can from a 'minLimit' of 2 on)\n"
     "f:5:116: warning: providers[0].limits[0].classes.y: at the 'minLimit' of 1 the reserves of the other classes "
     "leave nothing to this one (each class can from a 'minLimit' of 2 on)\n"},
    {"nothing for one", ADAPTIVE "initialLimit: 4, minLimit: 3, classes: { x: { reservedShare: 90% }, y: {} } }\n",
     "f:5:129: warning: providers[0].limits[0].classes.y: at the 'minLimit' of 3 the reserves of the other classes "
     "leave nothing to this one (each class can from a 'minLimit' of 10 on)\n"},
    {"nothing for one but at the highest",
     ADAPTIVE "initialLimit: 4, maxLimit: 10, classes: { x: { reservedShare: 90% }, y: {} } }\n",
     "f:5:130: warning: providers[0].limits[0].classes.y: at the 'minLimit' of 1 the reserves of the other classes "
     "leave "
     "nothing to this one (each class can from a 'minLimit' of 10 on)\n"},
    {"never anything for one", ADAPTIVE "initialLimit: 4, classes: { x: { reservedShare: 100% }, y: {} } }\n",
     "f:5:117: warning: providers[0].limits[0].classes.y: at the 'minLimit' of 1 the reserves of the other classes "
     "leave nothing to this one (lower the shares)\n"},
    {"something for each", ADAPTIVE "initialLimit: 4, minLimit: 2, classes: { x: { reservedShare: 50% }, y: {} } }\n",
     ""},
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
        cmocka_unit_test(a_share_is_as_the_chapter_writes_it),
        cmocka_unit_test(a_share_may_say_more),
        cmocka_unit_test(a_ceiling_can_follow),
        cmocka_unit_test(an_adaptive_limit_has_the_defaults_of_the_chapter),
        cmocka_unit_test(an_adaptive_limit_may_say_more),
        cmocka_unit_test(each_fault_has_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
