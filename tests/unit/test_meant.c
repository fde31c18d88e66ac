/* SPDX-License-Identifier: MIT */
/* The name that was meant by one that nobody has. */
#include "serve/meant.h"

#include <string.h>

#include "serve/refusal.h"
#include "support/config.h"

#define RULES                                                                                                          \
    "providers:\n"                                                                                                     \
    "- name: meraki\n"                                                                                                 \
    "  baseUrl: \"http://h\"\n"                                                                                        \
    "  limits:\n"                                                                                                      \
    "  - { name: s, kind: share, counts: cost, ceiling: 9, tenants: { acme: 1, globex: 1 }, reclaimHorizon: 1s,\n"     \
    "      idleAfter: 2s, scope: { by: [account] } }\n"                                                                \
    "  - { name: l, kind: adaptive, initialLimit: 5, classes: { people: {}, batch: {} } }\n"                           \
    "accounts:\n"                                                                                                      \
    "- { name: first, provider: meraki }\n"                                                                            \
    "- { name: second, provider: meraki, limits: [{ name: s, tenants: { hooli: 1 } }] }\n"                             \
    "clients:\n"                                                                                                       \
    "- { name: c, token: t0, accounts: [first], tenants: [acme], classes: [batch] }\n"

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};

static const struct {
    const char *why;
    ration_reason reason;
    const char *limit, *account, *name;
    bool bound; /* by the client's lists */
    const char *want;
} rows[] = {
    {"an account", RATION_REASON_UNKNOWN_ACCOUNT, NULL, "frist", "frist", false, "first"},
    {"one that is like no other", RATION_REASON_UNKNOWN_ACCOUNT, NULL, "xyz", "xyz", false, NULL},
    {"none at all", RATION_REASON_UNKNOWN_ACCOUNT, NULL, NULL, NULL, false, NULL},
    {"never one of others", RATION_REASON_UNKNOWN_ACCOUNT, NULL, "secnd", "secnd", true, NULL},
    {"its own", RATION_REASON_UNKNOWN_ACCOUNT, NULL, "frist", "frist", true, "first"},
    {"a provider", RATION_REASON_UNKNOWN_PROVIDER, NULL, NULL, "merakl", false, "meraki"},
    {"a tenant", RATION_REASON_UNKNOWN_TENANT, "s", "first", "acne", false, "acme"},
    {"in other letters", RATION_REASON_UNKNOWN_TENANT, "s", "first", "ACME", false, "acme"},
    {"a tenant of the other account", RATION_REASON_UNKNOWN_TENANT, "s", "first", "holi", false, NULL},
    {"of the limit that the account has changed", RATION_REASON_UNKNOWN_TENANT, "s", "second", "holi", false, "hooli"},
    {"a tenant of others", RATION_REASON_UNKNOWN_TENANT, "s", "first", "globx", true, NULL},
    {"a limit that nobody has", RATION_REASON_UNKNOWN_TENANT, "t", "first", "acne", false, NULL},
    {"a class", RATION_REASON_UNKNOWN_CLASS, "l", "first", "peopel", false, "people"},
    {"a class of others", RATION_REASON_UNKNOWN_CLASS, "l", "first", "peopel", true, NULL},
    {"another reason", RATION_REASON_DRAINING, NULL, "frist", "frist", false, NULL},
};

static void what_was_meant(void **state)
{
    ration_config *config = config_of(RULES, &plain);
    size_t count = 0;
    const rn_client *client = rn_config_clients(config, &count);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_text name = ration_text_of(rows[i].name);
        const rn_said said = {.config = config,
                              .client = rows[i].bound ? client : NULL,
                              .account = ration_text_of(rows[i].account),
                              .provider = name,
                              .tenant = name,
                              .class_name = name};
        ration_decision refused = rn_refusal_of(rows[i].reason, ration_time_of(0));
        char buffer[RN_MEANT_BYTES];

        CHECK_ROW(rows[i].why);
        refused.limit = rows[i].limit;
        const char *near = rn_meant_name(&said, &refused);
        CHECK_STR(near != NULL ? near : "", rows[i].want != NULL ? rows[i].want : "");

        const ration_text words = rn_meant_explain(&said, &refused, buffer);
        CHECK_EQ(words.data != NULL, near != NULL);
        if (near != NULL)
            CHECK(strstr(words.data, near) != NULL && words.data[words.size - 1] == '?');
    }
    ration_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_meant)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
