/* SPDX-License-Identifier: MIT */
/* What differs between two configs, and what a file may not say beside a running one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "support/config.h"
#include "support/failalloc.h"

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};

#define P "providers:\n- name: p\n  baseUrl: http://h\n"
#define SLOTS "  limits:\n  - { name: slots, kind: concurrency, max: 3, scope: { by: [account] } }\n"
#define A "accounts:\n- { name: a, provider: p }\n"

static const struct {
    const char *why;
    const char *was;
    const char *now;
    const char *want;
} rows[] = {
    {"nothing", P SLOTS A, P SLOTS A, ""},
    {"written otherwise", P SLOTS A,
     "{accounts: [{provider: p, name: a}], "
     "providers: [{name: p, baseUrl: 'http://h', "
     "limits: [{max: 3, kind: concurrency, name: slots, scope: {by: [account]}}]}]}",
     ""},
    {"a limit is its own thing", P SLOTS A,
     P "  limits:\n  - { name: slots, kind: concurrency, max: 4, scope: { by: [account] } }\n" A,
     "limit p/slots changed\n"},
    {"another name is another thing", P SLOTS A,
     P "  limits:\n  - { name: places, kind: concurrency, max: 3, scope: { by: [account] } }\n" A,
     "limit p/places added\nlimit p/slots removed\n"},
    {"what recordings leave out: a base URL", P SLOTS A, "providers:\n- name: p\n  baseUrl: http://i\n" SLOTS A,
     "provider /p changed\n"},
    {"time-outs", P A, P "  timeouts: { idle: 7s }\n" A, "provider /p changed\n"},
    {"a secret", P "accounts: [{ name: a, provider: p, credential: { value: one } }]\n",
     P "accounts: [{ name: a, provider: p, credential: { value: two } }]\n", "account /a changed\n"},
    {"a token", P A, P A "settings: { token: one }\n", "settings /settings changed\n"},
    {"a setting", P A, P A "settings: { drain: 31s }\n", "settings /settings changed\n"},
    {"a setting of an object", P A, P A "settings: { timeouts: { idle: 76s } }\n", "settings /settings changed\n"},
    {"a default that is written", P A, P A "settings: { drain: 30s }\n", ""},
    {"accounts by name, whatever their order", P "accounts: [{ name: a, provider: p }, { name: b, provider: p }]\n",
     P "accounts: [{ name: b, provider: p }, { name: a, provider: p }, { name: c, provider: p }]\n",
     "account /c added\n"},
    {"a provider with all that it has",
     P SLOTS "- name: q\n  baseUrl: http://i\n" SLOTS
             "accounts: [{ name: a, provider: p }, { name: b, provider: q }]\n",
     P SLOTS A, "account /b removed\nlimit q/slots removed\nprovider /q removed\n"},
    {"tenants", P A "tenants: { x: 1, y: 2 }\n", P A "tenants: { y: 3, z: 1 }\n",
     "tenant /x removed\ntenant /y changed\ntenant /z added\n"},
    {"jobs", P A "jobs: [{ name: j, account: a, endpoint: /x, interval: 1h }]\n",
     P A "jobs: [{ name: j, account: a, endpoint: /x, interval: 2h }, { name: k, account: a, endpoint: /x, "
         "interval: 1h }]\n",
     "job /j changed\njob /k added\n"},
    {"clients", P A "clients: [{ name: c, token: one }]\n",
     P A "clients: [{ name: c, token: two }, { name: d, token: three }]\n", "client /c changed\nclient /d added\n"},
};

typedef struct told {
    char text[1024];
    rn_builder b;
} told;

static void on_change(void *ctx, const rn_config_change *change)
{
    static const char *const hows[] = {"added", "removed", "changed"};
    told *t = ctx;

    rn_builder_str(&t->b, change->kind);
    rn_builder_char(&t->b, ' ');
    rn_builder_str(&t->b, change->owner);
    rn_builder_char(&t->b, '/');
    rn_builder_str(&t->b, change->name);
    rn_builder_char(&t->b, ' ');
    rn_builder_str(&t->b, hows[change->how]);
    rn_builder_char(&t->b, '\n');
}

static void each_change_is_told_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ration_config *was = config_of(rows[i].was, &plain);
        ration_config *now = config_of(rows[i].now, &plain);
        told t;

        CHECK_ROW(rows[i].why);
        rn_builder_init(&t.b, t.text, sizeof t.text);
        CHECK_EQ(rn_config_compare(was, now, &t, on_change), RATION_OK);
        CHECK_STR(t.text, rows[i].want);
        ration_config_free(was);
        ration_config_free(now);
    }
}

static void without_memory_nothing_is_told(void **state)
{
    failalloc fail = {.failed = true};
    failalloc_init(&fail, UINT64_MAX);
    ration_config_options options = plain;
    options.allocator = &fail.allocator;
    ration_config *was = config_of(P SLOTS A, &options);
    ration_config *now = config_of(P A, &options);
    const size_t live = fail.live;

    (void)state;
    fail.failed = true;
    for (uint64_t i = 0; fail.failed; i++) {
        told t;

        rn_builder_init(&t.b, t.text, sizeof t.text);
        fail.countdown = i;
        fail.failed = false;
        const int err = rn_config_compare(was, now, &t, on_change);
        CHECK_EQ(err, fail.failed ? RATION_ERR_NOMEM : RATION_OK);
        CHECK_STR(t.text, fail.failed ? "" : "limit p/slots removed\n");
        CHECK_EQ(fail.live, live);
    }
    fail.countdown = UINT64_MAX;
    ration_config_free(was);
    ration_config_free(now);
}

/* ---- beside a running one */

#define RUNNING                                                                                                        \
    P A "settings:\n  listen: { gateway: 127.0.0.1:1, control: \"unix:/c\" }\n"                                        \
        "  ledger: { path: l.db }\n  instance: me\n"

static const struct {
    const char *why;
    const char *text;
    const char *want; /* without the name of the file */
} beside[] = {
    {"the same", RUNNING, ""},
    {"all that may change",
     P A "settings:\n  listen: { gateway: 127.0.0.1:1, control: \"unix:/c\" }\n"
         "  ledger: { path: l.db, flush: 9s }\n  instance: me\n  drain: 1s\n  token: t\n  maxLeases: 7\n",
     ""},
    {"an instance that is not given is the running one",
     P A "settings:\n  listen: { gateway: 127.0.0.1:1, control: \"unix:/c\" }\n  ledger: { path: l.db }\n", ""},
    {"each has its place",
     P A "settings:\n  listen: { gateway: 127.0.0.1:2, control: \"unix:/d\" }\n"
         "  ledger: { path: m.db }\n  instance: you\n",
     ":7:22: settings.listen.gateway: it cannot change while the process runs with '127.0.0.1:1' (that takes a "
     "restart)\n"
     ":7:44: settings.listen.control: it cannot change while the process runs with 'unix:/c' (that takes a restart)\n"
     ":8:19: settings.ledger.path: it cannot change while the process runs with 'l.db' (that takes a restart)\n"
     ":9:13: settings.instance: it cannot change while the process runs with 'me' (that takes a restart)\n"},
    {"what is no more there has the place of what it would stand in", P A "settings: { instance: me }\n",
     ":6:11: settings.ledger.path: it cannot change while the process runs with 'l.db' (that takes a restart)\n"
     ":6:11: settings.listen.control: it cannot change while the process runs with 'unix:/c' (that takes a restart)\n"
     ":6:11: settings.listen.gateway: it cannot change while the process runs with '127.0.0.1:1' (that takes a "
     "restart)\n"},
    {"no fleet comes in", RUNNING "  fleet: { redis: \"redis://h\" }\n",
     ":10:19: settings.fleet.redis: it cannot change while the process runs with none (that takes a restart)\n"},
    {"other faults come first", P A "settings: { instance: you, drain: never }\n",
     ":6:35: settings.drain: 'never' is not a duration such as 250ms, 10s or 1h30m\n"},
};

static void the_fingerprint_is_of_what_decides(void **state)
{
    static const struct {
        const char *why, *text;
        bool same;
    } with[] = {
        {"itself", P SLOTS A, true},
        {"another machine", P SLOTS A "settings: { instance: there }\n", true},
        {"another port", P SLOTS A "settings: { listen: { gateway: 127.0.0.1:9 } }\n", true},
        {"a secret", P SLOTS "accounts: [{ name: a, provider: p, credential: { value: one } }]\n", true},
        {"another limit", P "  limits:\n  - { name: slots, kind: concurrency, max: 4, scope: { by: [account] } }\n" A,
         false},
        {"another account", P SLOTS "accounts:\n- { name: b, provider: p }\n", false},
        {"another reserve", P SLOTS A "settings: { budget: { retryReserve: 11% } }\n", false},
    };
    ration_config *config = config_of(P SLOTS A, &plain);
    char want[RN_CONFIG_FINGERPRINT], got[RN_CONFIG_FINGERPRINT];

    (void)state;
    CHECK_EQ(rn_config_fingerprint(config, want), RATION_OK);
    CHECK_EQ(strspn(want, "0123456789abcdef"), RN_CONFIG_FINGERPRINT - 1);
    for (size_t i = 0; i < sizeof with / sizeof with[0]; i++) {
        ration_config *other = config_of(with[i].text, &plain);

        CHECK_ROW(with[i].why);
        CHECK_EQ(rn_config_fingerprint(other, got), RATION_OK);
        CHECK_EQ(strcmp(got, want) == 0, with[i].same);
        ration_config_free(other);
    }
    ration_config_free(config);
}

static int line_order(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void what_is_settled_must_stay(void **state)
{
    ration_config *running = config_of(RUNNING, &plain);
    char path[] = "changes-XXXXXX";
    const int descriptor = mkstemp(path);

    (void)state;
    CHECK(descriptor >= 0);
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        const ration_config_options options = {.salt = "salt", .salt_size = 4, .instance = "elsewhere"};
        ration_config_faults faults = {NULL, 0, NULL};
        ration_config *config = NULL;
        char lines[8][400] = {""}, got[2048] = "";
        const size_t size = strlen(beside[i].text);
        rn_builder b;

        rn_builder_init(&b, got, sizeof got);
        CHECK_ROW(beside[i].why);
        CHECK_EQ(ftruncate(descriptor, 0), 0);
        CHECK_EQ(pwrite(descriptor, beside[i].text, size, 0), (ssize_t)size);
        const int err = rn_config_load_beside(running, path, &options, &config, &faults);
        CHECK_EQ(err, faults.count > 0 ? RATION_ERR_CONFIG : RATION_OK);
        CHECK(faults.count <= 8);
        for (size_t k = 0; k < faults.count; k++)
            (void)ration_config_fault_text(&faults.items[k], lines[k], sizeof lines[k]);
        if (faults.count > 1 && faults.items[0].line == faults.items[1].line)
            qsort(lines, faults.count, sizeof lines[0], line_order);
        for (size_t k = 0; k < faults.count; k++) {
            rn_builder_str(&b, lines[k] + strlen(path));
            rn_builder_char(&b, '\n');
        }
        CHECK_STR(got, beside[i].want);
        if (config != NULL)
            CHECK_STR(rn_config_settings(config)->instance, "me");
        ration_config_faults_fini(&faults);
        ration_config_free(config);
    }
    (void)close(descriptor);
    (void)unlink(path);
    ration_config_free(running);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_change_is_told_by_name),
        cmocka_unit_test(without_memory_nothing_is_told),
        cmocka_unit_test(the_fingerprint_is_of_what_decides),
        cmocka_unit_test(what_is_settled_must_stay),
    };

    return cmocka_run_group_tests_name("config changes", tests, NULL, NULL);
}
