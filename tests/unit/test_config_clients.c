/* SPDX-License-Identifier: MIT */
/* Clients of a config: what they may claim, and every fault with its place and without a token. */
#include "base/mem.h"
#include "base/text.h"
#include "support/config.h"

/* Lines 1 to 10; a client of one line is in line 11. */
#define HEAD                                                                                                           \
    "tenants: { acme: 3, globex: 1 }\n"                                                                                \
    "providers:\n"                                                                                                     \
    "- name: p\n"                                                                                                      \
    "  baseUrl: http://h\n"                                                                                            \
    "  limits:\n"                                                                                                      \
    "  - { name: s, kind: share, counts: cost, ceiling: 9, tenants: { initech: 1 }, reclaimHorizon: 1s, idleAfter: "   \
    "2s }\n"                                                                                                           \
    "  - { name: l, kind: adaptive, initialLimit: 5, classes: { people: {} } }\n"                                      \
    "accounts: [{ name: first, provider: p }, { name: second, provider: p }]\n"                                        \
    "jobs: [{ name: j, account: first, endpoint: /x, interval: 60s, tenant: hooli }]\n"                                \
    "clients:\n"
#define CLIENT HEAD "- { name: c, token: t0, "

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};

static const struct {
    const char *why;
    const char *text;
    const char *want;
} rows[] = {
    {"a good one", CLIENT "accounts: [first, second], tenants: [acme, initech, hooli], classes: [people] }\n", ""},
    {"what is needed", HEAD "- {}\n",
     "f:11:3: clients[0]: the key 'name' is missing\n"
     "f:11:3: clients[0]: the key 'token' is missing\n"},
    {"none at all", HEAD " []\n", "f:11:2: clients: the list is empty\n"},
    {"a key that nobody knows", CLIENT "account: first }\n",
     "f:11:25: clients[0].account: unknown key (did you mean 'accounts'?)\n"},
    {"a token under a key like it is hidden", HEAD "- { name: c, token: t0, tokn: s3cret }\n",
     "f:11:25: clients[0].tokn: unknown key (did you mean 'token'?)\n"},

    {"an unknown account", CLIENT "accounts: [first, secund] }\n",
     "f:11:43: clients[0].accounts[1]: there is no account of this name (did you mean 'second'?)\n"},
    {"one that looks like no other", CLIENT "accounts: [meraki] }\n",
     "f:11:36: clients[0].accounts[0]: there is no account of this name\n"},
    {"an unknown tenant", CLIENT "tenants: [glopex] }\n",
     "f:11:35: warning: clients[0].tenants[0]: neither `tenants`, a limit nor a job knows a tenant of this name "
     "(did you mean 'globex'?)\n"},
    {"an unknown class", CLIENT "classes: [peeple] }\n",
     "f:11:35: warning: clients[0].classes[0]: no limit has a class of this name (did you mean 'people'?)\n"},
    {"tenants where the config knows none",
     "providers: [{ name: p, baseUrl: \"http://h\" }]\n"
     "clients: [{ name: c, token: t0, tenants: [any] }]\n",
     ""},
    {"no such priority", CLIENT "priority: urgent }\n",
     "f:11:35: clients[0].priority: 'urgent' is not one of: critical, high, normal, low\n"},
    {"an operator that may not look", CLIENT "operator: true, view: false }\n",
     "f:11:47: clients[0].view: an operator may look at everything\n"},

    {"a name twice", HEAD "- { name: c, token: t0 }\n- { name: c, token: t1 }\n",
     "f:12:11: clients[1].name: the name 'c' stands here a second time (the first is in line 11)\n"},
    {"a token twice", HEAD "- { name: c, token: t0 }\n- { name: d, token: t0 }\n",
     "f:12:21: clients[1].token: client 'c' has the same token\n"},
    {"the operator's token", HEAD "- { name: c, token: t0 }\nsettings: { token: t0 }\n",
     "f:11:21: clients[0].token: this is `settings.token` (its bearer may claim anything)\n"},
    {"a token with a blank", HEAD "- { name: c, token: \"t 0\" }\n",
     "f:11:21: clients[0].token: a token has visible ASCII characters only, and no blanks (such as 32 random "
     "characters of A-Z, a-z, 0-9)\n"},
    {"a token of other letters", HEAD "- { name: c, token: \"t\xc3\xa9\" }\n",
     "f:11:21: clients[0].token: a token has visible ASCII characters only, and no blanks (such as 32 random "
     "characters of A-Z, a-z, 0-9)\n"},
    {"an empty token", HEAD "- { name: c, token: \"\" }\n",
     "f:11:21: clients[0].token: the value does not fit: it must be one line of text, and not empty\n"},
    {"a token from a variable that is not set", HEAD "- { name: c, token: \"${NO_SUCH_TOKEN}\" }\n",
     "f:11:21: clients[0].token: the environment variable NO_SUCH_TOKEN is not set\n"},

    {"others can reach it, and need a token of a client",
     HEAD "- { name: c, token: t0 }\nsettings: { listen: { control: \"0.0.0.0:1\" } }\n", ""},
};

static void each_fault_has_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[4096];

        CHECK_ROW(rows[i].why);
        faults_of(rows[i].text, strlen(rows[i].text), &plain, got, sizeof got);
        CHECK_STR(got, rows[i].want);
    }
}

static void a_client_is_what_it_says(void **state)
{
    ration_config *config = config_of(HEAD "- { name: a, token: t0 }\n"
                                           "- { name: b, token: t1, accounts: [second], priority: normal }\n"
                                           "- { name: c, token: t2, tenants: [acme, globex], operator: true }\n"
                                           "- { name: d, token: t3, accounts: [], classes: [], view: true }\n",
                                      &plain);
    size_t count = 0;
    const rn_client *clients = rn_config_clients(config, &count);

    (void)state;
    CHECK_EQ(count, 4);
    CHECK_STR(clients[0].name, "a");
    CHECK_STR(clients[0].token, "t0");
    CHECK(clients[0].accounts.any && clients[0].tenants.any && clients[0].classes.any);
    CHECK(clients[0].views && !clients[0].operates);
    CHECK_EQ(clients[0].priority, RATION_PRIORITY_CRITICAL);
    CHECK(!clients[1].accounts.any && clients[1].tenants.any && !clients[1].views);
    CHECK_STR(clients[1].accounts.names[0], "second");
    CHECK_EQ(clients[1].priority, RATION_PRIORITY_NORMAL);
    CHECK_EQ(clients[2].tenants.count, 2);
    CHECK(clients[2].operates && clients[2].views);
    CHECK(!clients[3].accounts.any && !clients[3].classes.any && clients[3].views);
    CHECK_EQ(clients[3].accounts.count, 0);
    ration_config_free(config);
}

static void recordings_leave_them_out(void **state)
{
    ration_config *config = config_of(HEAD "- { name: a, token: s3cret }\n", &plain);
    char *json = NULL;
    size_t size = 0;

    (void)state;
    CHECK_EQ(rn_config_json(config, &json, &size), RATION_OK);
    CHECK(strstr(json, "s3cret") == NULL && strstr(json, "clients") == NULL);
    rn_mem_free(rn_config_allocator(config), json);
    ration_config_free(config);
}

static void there_are_not_too_many(void **state)
{
    static char text[64 * 1024];
    rn_builder b;
    char got[4096];

    (void)state;
    rn_builder_init(&b, text, sizeof text);
    rn_builder_str(&b, HEAD);
    for (int i = 0; i < 1001; i++) {
        rn_builder_str(&b, "- { name: c");
        rn_builder_int(&b, i);
        rn_builder_str(&b, ", token: t");
        rn_builder_int(&b, i);
        rn_builder_str(&b, " }\n");
    }
    faults_of(text, b.used, &plain, got, sizeof got);
    CHECK_STR(got, "f:11:1: clients: there may be at most 1000 clients\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_has_its_place),
        cmocka_unit_test(a_client_is_what_it_says),
        cmocka_unit_test(recordings_leave_them_out),
        cmocka_unit_test(there_are_not_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
