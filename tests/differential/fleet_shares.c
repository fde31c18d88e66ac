/* SPDX-License-Identifier: MIT */
/*
 * usage: fleet_shares URL
 *
 * A share limit whose members have different rules, as while new ones are rolled out: the newest are in force for all,
 * what is held and lent goes on by the names of tenants, and old rules may come back. A ceiling that follows stands
 * where its limit does by the bounds of whoever asks. Time is told.
 */
#include "support/check.h"

#include <stdio.h>
#include <unistd.h>

#include <ration/config.h>

#include "fleet/answer_share.h"
#include "fleet/fleet.h"

#define MS INT64_C(1000)

#define RULES(TENANTS)                                                                                                 \
    "providers:\n"                                                                                                     \
    "  - name: p\n"                                                                                                    \
    "    baseUrl: http://127.0.0.1:1\n"                                                                                \
    "    limits: [ { name: s, kind: share, ceiling: 100, counts: cost, tenants: " TENANTS                              \
    ", reclaimHorizon: 100ms, idleAfter: 200ms } ]\n"                                                                  \
    "accounts: [ { name: a, provider: p } ]\n"

/* Two limits, the second of which is `CEILING`. */
#define FOLLOWING(MOST, CEILING)                                                                                       \
    "providers:\n"                                                                                                     \
    "  - name: p\n"                                                                                                    \
    "    baseUrl: http://127.0.0.1:1\n"                                                                                \
    "    limits:\n"                                                                                                    \
    "      - { name: l, kind: adaptive, initialLimit: " MOST ", maxLimit: " MOST ", counts: cost }\n"                  \
    "      - { name: s, kind: share, ceiling: " CEILING                                                                \
    ", counts: cost, tenants: { a: 1, b: 1 }, reclaimHorizon: 100ms, idleAfter: 200ms }\n"                             \
    "accounts: [ { name: a, provider: p } ]\n"

typedef struct member {
    ration_config *config;
    rn_fleet fleet;
    rn_route *routes[10]; /* of leases, by their digit */
} member;

static const char *url;
static member old;
static member new;

static void member_init(member *m, const char *rules)
{
    ration_config_faults faults = {0};
    char name[64];

    (void)snprintf(name, sizeof name, "shares %ld", (long)getpid());
    CHECK_EQ(ration_config_parse(ration_text_of(rules), "f", NULL, &m->config, &faults), RATION_OK);
    ration_config_faults_fini(&faults);

    const rn_fleet_options options = {
        .rules = ration_config_rules(m->config),
        .name = name,
        .redis = {.url = url, .timeout_us = 5000 * MS},
        .tells_time = true,
    };

    CHECK_EQ(rn_fleet_init(&m->fleet, &options, ration_time_of(0)), RATION_OK);
}

static int setup(void **state)
{
    (void)state;
    member_init(&old, RULES("{ a: 1, b: 1 }"));
    member_init(&new, RULES("{ c: 2, a: 1, b: 1 }"));
    return 0;
}

static int setup_bounds(void **state)
{
    (void)state;
    member_init(&old, FOLLOWING("4", "{ follows: l }"));
    member_init(&new, FOLLOWING("8", "{ follows: l }"));
    return 0;
}

static int setup_fixed(void **state)
{
    (void)state;
    member_init(&old, FOLLOWING("8", "{ follows: l }"));
    member_init(&new, FOLLOWING("8", "100"));
    return 0;
}

static int teardown(void **state)
{
    member *const members[] = {&old, &new};

    (void)state;
    CHECK_EQ(rn_fleet_erase(&old.fleet), RATION_OK);
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < 10; j++) {
            if (members[i]->routes[j] != NULL)
                rn_fleet_forget(&members[i]->fleet, members[i]->routes[j]);
        }
        rn_fleet_fini(&members[i]->fleet);
        ration_config_free(members[i]->config);
        *members[i] = (member){0};
    }
    return 0;
}

/* Why not; RATION_REASON_NONE: granted. */
static ration_reason ask(member *m, int64_t at_ms, const char *id, const char *tenant, int64_t units, int64_t hold_ms)
{
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision = {0};

    request.account = ration_text_of("a");
    request.tenant = ration_text_of(tenant);
    request.cost = units * RATION_UNIT;
    request.hold_us = hold_ms > 0 ? hold_ms * MS : RATION_UNSET;
    CHECK_EQ(rn_fleet_submit(&m->fleet, ration_time_of(at_ms * MS), &request, ration_text_of(id), &decision,
                             &m->routes[id[0] - '0']),
             RATION_OK);
    return decision.reason;
}

static void end(member *m, int64_t at_ms, const char *id)
{
    CHECK_EQ(rn_fleet_release(&m->fleet, ration_time_of(at_ms * MS), m->routes[id[0] - '0'], ration_text_of(id), NULL),
             RATION_OK);
}

/* Any that was granted. */
static size_t a_lease(const member *m)
{
    size_t i = 0;

    while (m->routes[i] == NULL)
        i++;
    return i;
}

/* Everything of the counter, in units. */
static const char *tell(member *m, int64_t at_ms)
{
    static char text[512];
    const ration_counter_name counter = {
        .provider = ration_text_of("p"),
        .limit = ration_text_of("s"),
        .key = m->routes[a_lease(m)]->links[0].counter->key,
    };
    rn_answer_share whole;
    ration_tenant_report tenant;
    int64_t weight;

    CHECK_EQ(rn_fleet_tenants(&m->fleet, ration_time_of(at_ms * MS), &counter, (ration_text){NULL, 0}), RATION_OK);
    CHECK(rn_answer_ceiling(m->fleet.reply, &whole));

    int used = snprintf(text, sizeof text, "held %d draining %d", (int)(whole.held / RATION_UNIT),
                        (int)(whole.draining / RATION_UNIT));

    for (size_t i = 0; rn_answer_tenant(m->fleet.reply, i, &tenant, &weight); i++) {
        used += snprintf(text + used, sizeof text - (size_t)used, ", %.*s %d of %d lent %d", (int)tenant.name.size,
                         tenant.name.data, (int)(tenant.held / RATION_UNIT), (int)(tenant.guarantee / RATION_UNIT),
                         (int)(tenant.lent / RATION_UNIT));
    }
    return text;
}

static void test_two_rules(void **state)
{
    (void)state;
    CHECK_EQ(ask(&old, 1000, "1", "a", 50, 0), RATION_REASON_NONE);
    CHECK_EQ(ask(&old, 1000, "2", "a", 20, 50), RATION_REASON_NONE);
    CHECK_STR(tell(&old, 1000), "held 70 draining 0, a 70 of 50 lent 0, b 0 of 50 lent 20");

    CHECK_ROW("the newer rules are in force at once, for all");
    CHECK_EQ(ask(&new, 1000, "3", "c", 10, 0), RATION_REASON_NONE);
    CHECK_STR(tell(&new, 1000), "held 80 draining 25, c 10 of 50 lent 0, a 70 of 25 lent 0, b 0 of 25 lent 20");
    CHECK_EQ(ask(&old, 1000, "4", "a", 1, 0), RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);

    CHECK_ROW("a loan goes back to whom it came from, whoever ends it");
    end(&old, 1010, "2");
    CHECK_STR(tell(&old, 1010), "held 60 draining 25, c 10 of 50 lent 0, a 50 of 25 lent 0, b 0 of 25 lent 0");
    CHECK_EQ(ask(&old, 1020, "5", "b", 25, 0), RATION_REASON_NONE);
    CHECK_EQ(ask(&old, 1020, "6", "b", 1, 0), RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);

    CHECK_ROW("the old ones come back when nobody has asked under the newer for 10 s");
    end(&old, 1030, "1");
    CHECK_EQ(ask(&old, 10999, "7", "a", 26, 0), RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON);
    CHECK_EQ(ask(&old, 11030, "8", "a", 50, 0), RATION_REASON_NONE);
    CHECK_STR(tell(&old, 11030), "held 75 draining 0, a 50 of 50 lent 0, b 25 of 50 lent 0");

    CHECK_ROW("of a tenant that is gone nothing is held, and its end changes nothing");
    end(&new, 11040, "3");
    CHECK_STR(tell(&old, 11040), "held 75 draining 0, a 50 of 50 lent 0, b 25 of 50 lent 0");
    CHECK_ROW(NULL);
}

static void test_two_bounds(void **state)
{
    (void)state;
    CHECK_EQ(ask(&new, 1000, "1", "a", 4, 0), RATION_REASON_NONE);
    CHECK_STR(tell(&new, 1000), "held 4 draining 0, a 4 of 4 lent 0, b 0 of 4 lent 0");

    CHECK_ROW("whoever has narrower bounds is decided by these");
    CHECK_EQ(ask(&old, 1000, "2", "b", 1, 0), RATION_REASON_ADAPTIVE_FULL);
    CHECK_STR(tell(&new, 1000), "held 4 draining 2, a 4 of 2 lent 0, b 0 of 2 lent 0");

    CHECK_ROW("a refusal has taken nothing from those with wider ones");
    CHECK_EQ(ask(&new, 1000, "3", "b", 3, 0), RATION_REASON_NONE);
    CHECK_STR(tell(&new, 1000), "held 7 draining 0, a 4 of 4 lent 0, b 3 of 4 lent 0");

    CHECK_ROW("an end brings the limit within the bounds of who tells it, and the ceiling with it");
    end(&new, 1010, "1");
    CHECK_STR(tell(&new, 1010), "held 3 draining 0, a 0 of 4 lent 0, b 3 of 4 lent 0");
    CHECK_EQ(ask(&old, 1010, "4", "a", 1, 0), RATION_REASON_NONE);
    CHECK_STR(tell(&new, 1010), "held 4 draining 1, a 1 of 2 lent 0, b 3 of 2 lent 0");
    end(&new, 1010, "3");
    CHECK_STR(tell(&new, 1010), "held 1 draining 0, a 1 of 2 lent 0, b 0 of 2 lent 0");
    CHECK_ROW(NULL);
}

static void test_no_longer_followed(void **state)
{
    (void)state;
    CHECK_EQ(ask(&old, 1000, "1", "a", 4, 0), RATION_REASON_NONE);
    CHECK_STR(tell(&old, 1000), "held 4 draining 0, a 4 of 4 lent 0, b 0 of 4 lent 0");

    CHECK_ROW("by the newest rules the ceiling has a size of its own, whatever the limit is that it once followed");
    CHECK_EQ(ask(&new, 1000, "2", "b", 1, 0), RATION_REASON_NONE);
    CHECK_STR(tell(&new, 1000), "held 5 draining 0, a 4 of 50 lent 0, b 1 of 50 lent 0");
    CHECK_EQ(ask(&old, 1000, "3", "b", 1, 0), RATION_REASON_NONE);
    CHECK_STR(tell(&new, 1000), "held 6 draining 0, a 4 of 50 lent 0, b 2 of 50 lent 0");

    CHECK_ROW("when nobody asks under them any more it follows again");
    CHECK_EQ(ask(&old, 12000, "4", "b", 1, 0), RATION_REASON_NONE);
    CHECK_STR(tell(&old, 12000), "held 7 draining 0, a 4 of 4 lent 0, b 3 of 4 lent 0");
    CHECK_ROW(NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_rules, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_bounds, setup_bounds, teardown),
        cmocka_unit_test_setup_teardown(test_no_longer_followed, setup_fixed, teardown),
    };

    if (argc != 2) {
        (void)fprintf(stderr, "usage: fleet_shares URL\n");
        return 2;
    }
    url = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
