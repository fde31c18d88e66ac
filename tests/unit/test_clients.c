/* SPDX-License-Identifier: MIT */
/* Whose token that is, and what its bearer may claim. */
#include <string.h>

#include "base/text.h"
#include "serve/clients.h"
#include "serve/token.h"
#include "support/config.h"

#define RULES                                                                                                          \
    "providers: [{ name: p, baseUrl: \"http://h\" }]\n"                                                                \
    "accounts: [{ name: acme, provider: p }, { name: globex, provider: p }, { name: secret, provider: p }]\n"
#define CLIENTS                                                                                                        \
    "clients:\n"                                                                                                       \
    "- { name: any, token: t-any }\n"                                                                                  \
    "- { name: one, token: t-one, accounts: [acme], tenants: [t1], classes: [batch], priority: low }\n"                \
    "- { name: two, token: t-two, accounts: [acme, globex], tenants: [t1, t2] }\n"                                     \
    "- { name: none, token: t-none, accounts: [], tenants: [], classes: [], priority: normal }\n"

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};

static void tokens_are_compared_whole(void **state)
{
    static const struct {
        const char *given, *want;
        bool same;
    } rows[] = {
        {"abc", "abc", true},   {"abc", "abd", false}, {"xbc", "abc", false}, {"ab", "abc", false},
        {"abcd", "abc", false}, {"", "abc", false},    {"ABC", "abc", false}, {"abcabc", "abc", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].given);
        CHECK_EQ(rn_token_matches(ration_text_of(rows[i].given), rows[i].want), rows[i].same);
    }
}

static void whose_token_that_is(void **state)
{
    static const struct {
        const char *why, *more, *token;
        rn_bearer want;
        const char *client; /* NULL: one who may claim anything */
    } rows[] = {
        {"no tokens at all", "", NULL, RN_BEARER_KNOWN, NULL},
        {"one that nobody asked for", "", "x", RN_BEARER_KNOWN, NULL},
        {"the operator's", "settings: { token: own }\n", "own", RN_BEARER_KNOWN, NULL},
        {"it is asked for", "settings: { token: own }\n", NULL, RN_BEARER_SILENT, NULL},
        {"a wrong one", "settings: { token: own }\n", "owm", RN_BEARER_UNKNOWN, NULL},
        {"the operator's, beside clients", CLIENTS "settings: { token: own }\n", "own", RN_BEARER_KNOWN, NULL},
        {"the first client's", CLIENTS, "t-any", RN_BEARER_KNOWN, "any"},
        {"the last client's", CLIENTS, "t-none", RN_BEARER_KNOWN, "none"},
        {"one of the same length", CLIENTS, "t-ant", RN_BEARER_UNKNOWN, NULL},
        {"clients, and no token", CLIENTS, NULL, RN_BEARER_SILENT, NULL},
        {"clients, and an empty one", CLIENTS, "", RN_BEARER_SILENT, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[1024];
        rn_builder b;
        const rn_client *client = NULL;

        CHECK_ROW(rows[i].why);
        rn_builder_init(&b, text, sizeof text);
        rn_builder_str(&b, RULES);
        rn_builder_str(&b, rows[i].more);
        ration_config *config = config_of(text, &plain);
        CHECK_EQ(rn_bearer_find(config, ration_text_of(rows[i].token), &client), rows[i].want);
        CHECK_STR(client != NULL ? client->name : "", rows[i].client != NULL ? rows[i].client : "");
        ration_config_free(config);
    }
}

static void how_a_token_is_borne(void **state)
{
    static const struct {
        const char *first, *second;
        rn_bearer want;
    } rows[] = {
        {"Bearer t-one", NULL, RN_BEARER_KNOWN},
        {"bearer t-one", NULL, RN_BEARER_KNOWN},
        {"BEARER   t-one ", NULL, RN_BEARER_KNOWN},
        {NULL, NULL, RN_BEARER_SILENT},
        {"Bearer", NULL, RN_BEARER_UNKNOWN},
        {"Bearer ", NULL, RN_BEARER_UNKNOWN},
        {"t-one", NULL, RN_BEARER_UNKNOWN},
        {"Basic t-one", NULL, RN_BEARER_UNKNOWN},
        {"Bearer t-one, t-one", NULL, RN_BEARER_UNKNOWN},
        {"Bearer t-one", "Bearer t-one", RN_BEARER_UNKNOWN},
        {"Bearer t-\xff", NULL, RN_BEARER_UNKNOWN},
    };
    ration_config *config = config_of(RULES CLIENTS, &plain);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_http_field fields[] = {{ration_text_of("authorization"), ration_text_of(rows[i].first)},
                                        {ration_text_of("Authorization"), ration_text_of(rows[i].second)}};
        const rn_client *client = NULL;
        const size_t count = rows[i].second != NULL ? 2 : rows[i].first != NULL ? 1 : 0;

        CHECK_ROW(rows[i].first != NULL ? rows[i].first : "none");
        CHECK_EQ(rn_bearer_read(config, (rn_http_fields){fields, count}, &client), rows[i].want);
        CHECK_EQ(client != NULL, rows[i].want == RN_BEARER_KNOWN);
    }
    ration_config_free(config);
}

#define ASK "; `clients` in the config of ration says so, ask whoever keeps it"
#define UNSET RATION_PRIORITY_UNSET
#define LOW RATION_PRIORITY_LOW
#define NORMAL RATION_PRIORITY_NORMAL
#define HIGH RATION_PRIORITY_HIGH

static const struct {
    const char *why;
    const char *client, *account, *tenant, *class_name;
    ration_priority priority, usual;
    const char *part; /* that is refused; NULL: it is permitted */
    const char *text; /* its words; else the tenant that holds */
    ration_priority then;
} claims[] = {
    {"anything", "any", "secret", "t9", "x", HIGH, NORMAL, NULL, "t9", HIGH},
    {"nothing at all", "any", NULL, NULL, NULL, UNSET, NORMAL, NULL, NULL, UNSET},
    {"what is listed", "one", "acme", "t1", "batch", LOW, NORMAL, NULL, "t1", LOW},
    {"the only tenant is meant", "one", "acme", NULL, NULL, LOW, NORMAL, NULL, "t1", LOW},
    {"the usual priority is above the highest", "one", "acme", NULL, NULL, UNSET, NORMAL, NULL, "t1", LOW},
    {"and below it", "two", "acme", "t2", NULL, UNSET, LOW, NULL, "t2", UNSET},
    {"classes need not be named", "none", "acme", NULL, NULL, UNSET, NORMAL, "account",
     "client 'none' may claim no account" ASK, UNSET},
    {"an account of others", "one", "secret", "t1", NULL, UNSET, NORMAL, "account",
     "client 'one' may claim no account other than: acme" ASK, UNSET},
    {"a slip of the pen", "two", "globx", "t1", NULL, UNSET, NORMAL, "account",
     "client 'two' may claim no account other than: acme, globex (did you mean 'globex'?)" ASK, UNSET},
    {"a guess is never a name of others", "two", "secrets", "t1", NULL, UNSET, NORMAL, "account",
     "client 'two' may claim no account other than: acme, globex" ASK, UNSET},
    {"no account", "two", NULL, "t1", NULL, UNSET, NORMAL, "account",
     "client 'two' must name its account, one of: acme, globex" ASK, UNSET},
    {"names are exact", "one", "ACME", "t1", NULL, UNSET, NORMAL, "account",
     "client 'one' may claim no account other than: acme (did you mean 'acme'?)" ASK, UNSET},
    {"a tenant of others", "two", "acme", "globex", NULL, UNSET, NORMAL, "tenant",
     "client 'two' may claim no tenant other than: t1, t2" ASK, UNSET},
    {"an empty tenant", "two", "acme", "", NULL, UNSET, NORMAL, "tenant",
     "client 'two' may claim no tenant other than: t1, t2" ASK, UNSET},
    {"one of two must be named", "two", "acme", NULL, NULL, UNSET, NORMAL, "tenant",
     "client 'two' must name its tenant, one of: t1, t2" ASK, UNSET},
    {"a class of others", "one", "acme", "t1", "people", UNSET, NORMAL, "class",
     "client 'one' may claim no class other than: batch" ASK, UNSET},
    {"a priority above the highest", "one", "acme", "t1", NULL, NORMAL, NORMAL, "priority",
     "client 'one' may claim no priority above low" ASK, UNSET},
};

static const rn_client *client_of(const ration_config *config, const char *name)
{
    size_t count = 0;
    const rn_client *clients = rn_config_clients(config, &count);
    size_t i = 0;

    while (i < count && strcmp(clients[i].name, name) != 0)
        i++;
    CHECK(i < count);
    return &clients[i];
}

static void what_may_be_claimed(void **state)
{
    ration_config *config = config_of(RULES CLIENTS, &plain);

    (void)state;
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        rn_claim claim = {.account = ration_text_of(claims[i].account),
                          .tenant = ration_text_of(claims[i].tenant),
                          .class_name = ration_text_of(claims[i].class_name),
                          .priority = claims[i].priority,
                          .usual = claims[i].usual};
        rn_not_permitted why = {.part = NULL};

        CHECK_ROW(claims[i].why);
        CHECK_EQ(rn_client_permits(client_of(config, claims[i].client), &claim, &why), claims[i].part == NULL);
        if (claims[i].part != NULL) {
            CHECK_STR(why.part, claims[i].part);
            CHECK_STR(why.text, claims[i].text);
            CHECK(strstr(why.text, "secret") == NULL && strstr(why.text, "t-") == NULL);
            CHECK(claim.tenant.data == ration_text_of(claims[i].tenant).data);
        } else {
            CHECK(rn_text_eq(claim.tenant, ration_text_of(claims[i].text)));
            CHECK_EQ(claim.priority, claims[i].then);
        }
    }
    ration_config_free(config);
}

static void nobody_is_bound_without_clients(void **state)
{
    rn_claim claim = {.account = ration_text_of("x"), .usual = NORMAL};
    rn_not_permitted why = {.part = NULL};

    (void)state;
    CHECK(rn_client_permits(NULL, &claim, &why));
    CHECK(rn_client_permits_account(NULL, (ration_text){NULL, 0}, &why));
    CHECK(!rn_client_is_bound(NULL));
    CHECK(rn_client_knows_job(NULL, "acme", NULL));
    CHECK_EQ(rn_client_id(NULL), 0);
}

static void whose_jobs_are_known(void **state)
{
    static const struct {
        const char *client, *account, *tenant;
        bool want;
    } rows[] = {
        {"any", "secret", "t9", true}, {"one", "acme", "t1", true},    {"one", "acme", NULL, true},
        {"one", "acme", "t2", false},  {"one", "globex", "t1", false}, {"none", "acme", NULL, false},
    };
    ration_config *config = config_of(RULES CLIENTS, &plain);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_client *client = client_of(config, rows[i].client);

        CHECK_EQ(rn_client_knows_job(client, rows[i].account, rows[i].tenant), rows[i].want);
        CHECK_EQ(rn_client_is_bound(client), strcmp(rows[i].client, "any") != 0);
        CHECK(rn_client_id(client) != 0);
    }
    CHECK(rn_client_id(client_of(config, "one")) != rn_client_id(client_of(config, "two")));
    ration_config_free(config);
}

/* However many names there are, and however long: the words have an end. */
static void long_lists_are_cut(void **state)
{
    static const char *names[2000];
    char one[256];
    rn_client client = {.name = "c", .accounts = {names, 2000, false}, .tenants = {.any = true}};
    rn_not_permitted why;

    (void)state;
    memset(one, 'n', sizeof one - 1);
    one[sizeof one - 1] = '\0';
    for (size_t i = 0; i < 2000; i++)
        names[i] = i < 2 ? "a" : one;
    CHECK(!rn_client_permits_account(&client, ration_text_of("zz"), &why));
    CHECK(strstr(why.text, "a, a, nnn") != NULL);
    CHECK(strstr(why.text, " and 1997 more" ASK) != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_compared_whole),
        cmocka_unit_test(whose_token_that_is),
        cmocka_unit_test(how_a_token_is_borne),
        cmocka_unit_test(what_may_be_claimed),
        cmocka_unit_test(nobody_is_bound_without_clients),
        cmocka_unit_test(whose_jobs_are_known),
        cmocka_unit_test(long_lists_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
