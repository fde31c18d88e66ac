/* SPDX-License-Identifier: MIT */
/* What a config says is what the engine and the gateway are told; from YAML, from JSON, from files. */
#include "support/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND INT64_C(1000000)

static const char *variable(void *ctx, const char *name)
{
    (void)ctx;
    if (strcmp(name, "MERAKI_KEY") == 0 || strcmp(name, "MODEL_KEY") == 0 || strcmp(name, "KEY") == 0)
        return "k-123";
    return strcmp(name, "EMPTY") == 0 ? "" : NULL;
}

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here", .variable = variable};
static const ration_config_options recording = {.recording = true};

static ration_config *loaded(const char *path)
{
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};
    const int err = ration_config_load(path, &plain, &config, &faults);
    char line[1024] = "";

    if (faults.count > 0)
        (void)ration_config_fault_text(&faults.items[0], line, sizeof line);
    CHECK_STR(line, "");
    CHECK_EQ(err, RATION_OK);
    ration_config_faults_fini(&faults);
    return config;
}

static void check_meraki_limits(const ration_provider_rule *p)
{
    const ration_limit_rule *l = p->limits;

    CHECK_EQ(p->limit_count, 3);
    CHECK_STR(l[0].name, "org-rate");
    CHECK_EQ(l[0].kind, RATION_KIND_RATE);
    CHECK_EQ(l[0].rate.units, 10 * RATION_UNIT);
    CHECK_EQ(l[0].rate.per_us, SECOND);
    CHECK_EQ(l[0].burst, 10 * RATION_UNIT);
    CHECK_EQ(l[0].margin, RATION_UNSET);
    CHECK_EQ(l[0].scope_count, 2);
    CHECK_STR(l[0].scope[0], "account");
    CHECK_STR(l[0].scope[1], "var:organizationId");
    CHECK_EQ(l[0].max_keys, 1000000);
    CHECK_EQ(l[1].kind, RATION_KIND_CONCURRENCY);
    CHECK_EQ(l[1].max, 10 * RATION_UNIT);
    CHECK_EQ(l[2].kind, RATION_KIND_QUOTA);
    CHECK_EQ(l[2].max, 5000 * RATION_UNIT);
    CHECK(!l[2].max_auto);
    CHECK_EQ(l[2].arrival_us, 2 * SECOND);
    CHECK_EQ(l[2].when_exhausted, RATION_EXHAUSTED_REFUSE);
    CHECK_EQ(l[2].durability, RATION_DURABILITY_RELAXED);
    CHECK_EQ(l[2].window.period, RATION_PERIOD_DAY);
    CHECK_EQ(l[2].window.reset_minute, 0);
    CHECK_STR(l[2].window.zone, "America/Los_Angeles");
    CHECK_STR(l[2].sync.limit_header, "X-RateLimit-Limit-day");
    CHECK_STR(l[2].sync.remaining_header, "X-RateLimit-Remaining-day");
    CHECK_STR(l[2].sync.reset_header, NULL);
}

static void check_meraki_provider(const ration_provider_rule *p)
{
    CHECK_EQ(p->endpoint_count, 3);
    CHECK_STR(p->endpoints[0].path, "/organizations/{organizationId}/**");
    CHECK_EQ(p->endpoints[0].defaults.cost, RATION_UNSET);
    CHECK_EQ(p->endpoints[0].defaults.hold_us, RATION_UNSET);
    CHECK(!p->endpoints[0].defaults.auth);
    CHECK(p->endpoints[1].defaults.auth);
    CHECK_EQ(p->endpoints[2].defaults.cost, 2 * RATION_UNIT);
    CHECK_EQ(p->endpoints[2].defaults.hold_us, 5 * SECOND);
    CHECK_EQ(p->errors.rate_limited_count, 1);
    CHECK_EQ(p->errors.rate_limited[0], 429);
    CHECK_EQ(p->errors.default_penalty_us, 2 * SECOND);
    CHECK_EQ(p->errors.max_penalty_us, 86400 * SECOND);
    CHECK_EQ(p->errors.penalize, RATION_PENALIZE_NARROWEST);
    CHECK_EQ(p->errors.transient_count, 4);
    CHECK_EQ(p->errors.transient[3], 504);
}

static void the_example_says_what_it_says(void **state)
{
    ration_config *config = loaded("examples/meraki.yaml");
    const ration_rules *rules = ration_config_rules(config);
    const rn_settings *settings = rn_config_settings(config);
    const rn_account *account = rn_config_find_account(config, ration_text_of("acme-meraki"));

    (void)state;
    CHECK_STR(rules->instance, "web-1");
    CHECK_EQ(rules->retry_reserve.num, 1);
    CHECK_EQ(rules->retry_reserve.den, 10);
    CHECK_EQ(rules->tenant_count, 2);
    CHECK_STR(rules->tenants[0].name, "acme");
    CHECK_EQ(rules->tenants[0].weight, 3);
    CHECK_EQ(rules->provider_count, 1);
    check_meraki_provider(&rules->providers[0]);
    check_meraki_limits(&rules->providers[0]);
    CHECK_EQ(rules->zone_count, 1);
    CHECK_STR(rules->zones[0].name, "America/Los_Angeles");
    CHECK_EQ(rules->account_count, 1);
    CHECK_EQ(rules->accounts[0].share.num, 4);
    CHECK_EQ(rules->accounts[0].share.den, 5);
    CHECK_STR(rules->accounts[0].credential_key, "2398e6a3d021c363");

    CHECK_STR(settings->gateway.host, "127.0.0.1");
    CHECK_EQ(settings->gateway.port, 7600);
    CHECK_EQ(settings->control.port, 7601);
    CHECK_STR(settings->token, NULL);
    CHECK_EQ(settings->wait_us, 30 * SECOND);
    CHECK_EQ(settings->drain_us, 30 * SECOND);
    CHECK_EQ(settings->patience.head_us, 30 * SECOND);
    CHECK_EQ(settings->patience.idle_us, 75 * SECOND);
    CHECK_EQ(settings->patience.body_us, 60 * SECOND);
    CHECK_EQ(settings->patience.write_us, 60 * SECOND);
    CHECK_STR(settings->ledger, "ration.db");
    CHECK_EQ(settings->ledger_flush_us, 5 * SECOND);
    CHECK_STR(settings->fleet.redis, NULL);
    CHECK_EQ(settings->log_format, RN_LOG_LOGFMT);
    CHECK_EQ(settings->log_level, RN_LOG_INFO);
    CHECK(account != NULL && account == rn_config_account(config, 0));
    CHECK(rn_config_account(config, 1) == NULL && rn_config_provider(config, 1) == NULL);
    CHECK(rn_config_find_account(config, ration_text_of("acme")) == NULL);
    CHECK_STR(account->credential.header, "Authorization");
    CHECK_STR(account->credential.value, "Bearer k-123");
    CHECK_STR(account->base_url.host, "api.meraki.com");
    CHECK_STR(account->base_url.prefix, "/api/v1");
    CHECK_EQ(account->base_url.port, 443);
    CHECK(account->base_url.tls);
    CHECK_EQ(rn_config_provider(config, 0)->first_byte_us, 60 * SECOND);
    ration_config_free(config);
}

static void defaults_need_no_key(void **state)
{
    ration_config *config =
        config_of("{\"providers\":[{\"name\":\"p\",\"limits\":[{\"name\":\"l\",\"kind\":"
                  "\"concurrency\",\"max\":1}]}],\"accounts\":[{\"name\":\"a\",\"provider\":\"p\"}]}",
                  &recording);
    const ration_rules *rules = ration_config_rules(config);
    const ration_limit_rule *limit = &rules->providers[0].limits[0];

    (void)state;
    CHECK_STR(rules->instance, "local");
    CHECK_EQ(rules->max_waiters, 10000);
    CHECK_EQ(rules->max_waiters_per_tenant, 10000);
    CHECK_EQ(rules->max_leases, 1000000);
    CHECK_EQ(rules->queue_order, RATION_QUEUE_FAIR);
    CHECK_EQ(rules->accounts[0].share.num, 1);
    CHECK_EQ(rules->accounts[0].share.den, 1);
    CHECK_STR(rules->accounts[0].credential_key, NULL);
    CHECK_EQ(limit->counts, RATION_COUNTS_REQUESTS);
    CHECK_EQ(limit->enforce, RATION_ENFORCE_ON);
    CHECK_EQ(limit->scope_count, 0);
    CHECK_STR(rn_config_account(config, 0)->credential.header, NULL);
    CHECK(!rn_config_provider(config, 0)->base_url.given);
    ration_config_free(config);
}

static void lines_of_the_log(void **state)
{
    ration_config *config = config_of("providers: []\nsettings: { log: { format: json, level: error } }\n", &plain);

    (void)state;
    CHECK_EQ(rn_config_settings(config)->log_format, RN_LOG_JSON);
    CHECK_EQ(rn_config_settings(config)->log_level, RN_LOG_ERROR);
    ration_config_free(config);
}

/* The value of `settings.instance`, in YAML or JSON. */
static const struct {
    const char *why;
    const char *text;
    const char *want;
} texts[] = {
    {"plain", "settings: { instance: a b }", "a b"},
    {"JSON", "{\"settings\":{\"instance\":\"a\"}}", "a"},
    {"an escape", "{\"settings\":{\"instance\":\"\\u0041\\u00e9\\u20ac\"}}", "A\xC3\xA9\xE2\x82\xAC"},
    {"a surrogate pair", "{\"settings\":{\"instance\":\"\\ud83d\\uDE00!\"}}", "\xF0\x9F\x98\x80!"},
    {"short escapes", "{\"settings\":{\"instance\":\"\\\"\\\\\\/\"}}", "\"\\/"},
    {"tabs and feeds between", "\t{\t\"settings\"\n:\r\n{\t\"instance\" :\t\"a\"\n}\t}\n", "a"},
    {"a byte order mark",
     "\xEF\xBB\xBF"
     "settings: { instance: a }",
     "a"},
    {"a byte order mark before JSON",
     "\xEF\xBB\xBF"
     "{\"settings\":{\"instance\":\"a\"}}",
     "a"},
    {"a flow map that is no JSON", "{settings: {instance: a,},}", "a"},
    {"a number in quotes", "settings: { instance: '12' }", "12"},
    {"the tag of a text", "settings: { instance: !!str 12 }", "12"},
    {"a block", "settings:\n  instance: >-\n    a\n    b\n", "a b"},
    {"an alias", "tenants: &x { a: 1 }\nsettings: { instance: &i a, queue: {} }\n", "a"},
    {"a variable", "settings: { instance: \"x-${KEY}-y\" }", "x-k-123-y"},
    {"two of them", "settings: { instance: \"${KEY}${EMPTY}${KEY}\" }", "k-123k-123"},
    {"the characters themselves", "settings: { instance: \"$${KEY} $5 $$ $\" }", "${KEY} $5 $$ $"},
    {"Windows line ends", "settings:\r\n  instance: a\r\n", "a"},
};

static void texts_come_as_they_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[512];

        CHECK_ROW(texts[i].why);
        if (texts[i].text[strspn(texts[i].text, "\t\xEF\xBB\xBF")] == '{') {
            (void)snprintf(text, sizeof text, "%s", texts[i].text);
        } else {
            (void)snprintf(text, sizeof text, "%s\nproviders: []\n", texts[i].text);
        }

        ration_config_options options = plain;
        const bool json = strchr(text, '{') != NULL && strstr(text, "providers") == NULL;

        /* A recording needs no providers; it expands nothing, which no text of these has. */
        options.recording = json;

        ration_config *config = config_of(text, &options);

        CHECK_STR(ration_config_rules(config)->instance, texts[i].want);
        ration_config_free(config);
    }
}

static void recordings_expand_nothing(void **state)
{
    ration_config *config = config_of("{\"op\":\"config\",\"startedAt\":-1000,\"settings\":{\"instance\":"
                                      "\"${KEY}${file:/etc/passwd}\"}}",
                                      &recording);

    (void)state;
    CHECK_STR(ration_config_rules(config)->instance, "${KEY}${file:/etc/passwd}");
    ration_config_free(config);
}

static void aliases_stand_for_whole_values(void **state)
{
    ration_config *config =
        config_of("providers:\n"
                  "- { name: p, baseUrl: http://h, limits: &l [ { name: l, kind: concurrency, max: 3, "
                  "scope: { by: &by [account] } } ] }\n"
                  "- { name: q, baseUrl: http://h, limits: *l }\n"
                  "- { name: r, baseUrl: http://h, limits: [ { name: m, kind: rate, rate: 5/m, scope: "
                  "{ by: *by } } ] }\n",
                  &plain);
    const ration_rules *rules = ration_config_rules(config);

    (void)state;
    CHECK_EQ(rules->providers[1].limits[0].max, 3 * RATION_UNIT);
    CHECK_STR(rules->providers[2].limits[0].scope[0], "account");
    CHECK_EQ(rules->providers[2].limits[0].rate.per_us, 60 * SECOND);
    ration_config_free(config);
}

static const struct {
    const char *text;
    int64_t want;
} numbers[] = {
    {"9007199254.740992", INT64_C(9007199254740992)},
    {"9007199254", INT64_C(9007199254000000)},
    {"0.000001", 1},
    {"1", RATION_UNIT},
    {"2.50", 2500000},
};

static void numbers_lose_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[256];

        CHECK_ROW(numbers[i].text);
        (void)snprintf(
            text, sizeof text,
            "{\"providers\":[{\"name\":\"p\",\"limits\":[{\"name\":\"l\",\"kind\":\"concurrency\",\"max\":%s,"
            "\"counts\":\"cost\"}]}]}",
            numbers[i].text);

        ration_config *config = config_of(text, &recording);

        CHECK_EQ(ration_config_rules(config)->providers[0].limits[0].max, numbers[i].want);
        ration_config_free(config);
    }
}

static const struct {
    const char *url;
    const char *host;
    const char *prefix;
    uint16_t port;
    bool tls;
} urls[] = {
    {"http://h", "h", "", 80, false},
    {"HTTPS://Api.Example.COM/", "api.example.com", "", 443, true},
    {"https://h:8443/a/b//", "h", "/a/b", 8443, true},
    {"http://[::1]:8080/x", "::1", "/x", 8080, false},
    {"http://127.0.0.1:1/%20@me", "127.0.0.1", "/%20@me", 1, false},
};

static void urls_are_taken_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        char text[256];

        CHECK_ROW(urls[i].url);
        (void)snprintf(text, sizeof text, "providers: [{ name: p, baseUrl: \"%s\" }]\n", urls[i].url);

        ration_config *config = config_of(text, &plain);
        const rn_url *url = &rn_config_provider(config, 0)->base_url;

        CHECK(url->given);
        CHECK_STR(url->host, urls[i].host);
        CHECK_STR(url->prefix, urls[i].prefix);
        CHECK_STR(url->text, urls[i].url);
        CHECK_EQ(url->port, urls[i].port);
        CHECK_EQ(url->tls, urls[i].tls);
        ration_config_free(config);
    }
}

static const struct {
    const char *address;
    const char *host;
    const char *path;
    uint16_t port;
    bool local;
} addresses[] = {
    {"127.0.0.1:7600", "127.0.0.1", NULL, 7600, true}, {"127.8.8.8:0", "127.8.8.8", NULL, 0, true},
    {"localhost:1", "localhost", NULL, 1, true},       {"[::1]:65535", "::1", NULL, 65535, true},
    {"0.0.0.0:80", "0.0.0.0", NULL, 80, false},        {"[::]:80", "::", NULL, 80, false},
    {"10.0.0.1:80", "10.0.0.1", NULL, 80, false},      {"unix:/run/ration.sock", NULL, "/run/ration.sock", 0, true},
};

static void addresses_know_whether_others_reach_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        char text[256];

        CHECK_ROW(addresses[i].address);
        (void)snprintf(text, sizeof text, "providers: []\nsettings: { token: t, listen: { gateway: \"%s\" } }\n",
                       addresses[i].address);

        ration_config *config = config_of(text, &plain);
        const rn_address *address = &rn_config_settings(config)->gateway;

        CHECK_STR(address->host, addresses[i].host);
        CHECK_STR(address->path, addresses[i].path);
        CHECK_EQ(address->port, addresses[i].port);
        CHECK_EQ(address->local, addresses[i].local);
        ration_config_free(config);
    }
}

static void accounts_have_targets_and_limits_of_their_own(void **state)
{
    ration_config *config = config_of(
        "providers:\n"
        "- name: p\n"
        "  baseUrl: http://main/v1\n"
        "  targets: { eu: https://eu/v2 }\n"
        "  timeouts: { connect: 1s, firstByte: 2s, idle: 3s }\n"
        "  tls: { ca: /ca.pem }\n"
        "  proxy: http://u:p@proxy:3128\n"
        "  limits:\n"
        "  - { name: l, kind: quota, max: 10, window: { period: week, weekStart: sunday }, scope: { by: [account] } }\n"
        "  - { name: m, kind: concurrency, max: 3 }\n"
        "accounts:\n"
        "- { name: a, provider: p }\n"
        "- { name: b, provider: p, target: eu, limits: [{ name: l, max: 50, enforce: shadow }] }\n"
        "- { name: c, provider: p, target: \"http://other:81\", credential: { value: s } }\n"
        "- { name: d, provider: p, credential: { key: 0123456789abcdef } }\n",
        &plain);
    const ration_rules *rules = ration_config_rules(config);
    const ration_limit_rule *own = &rules->accounts[1].limits[0];

    (void)state;
    CHECK_STR(rn_config_account(config, 0)->base_url.host, "main");
    CHECK_STR(rn_config_account(config, 1)->base_url.prefix, "/v2");
    CHECK_STR(rn_config_account(config, 1)->target, "eu");
    CHECK_EQ(rn_config_account(config, 2)->base_url.port, 81);
    CHECK_STR(rn_config_account(config, 2)->credential.header, "Authorization");
    CHECK(rules->accounts[2].credential_key != NULL);
    CHECK_STR(rn_config_account(config, 3)->credential.header, NULL);
    CHECK_STR(rules->accounts[3].credential_key, "0123456789abcdef");
    CHECK_EQ(rules->accounts[0].limit_count, 0);
    CHECK_EQ(rules->accounts[1].limit_count, 1);
    CHECK_EQ(own->kind, RATION_KIND_QUOTA);
    CHECK_EQ(own->max, 50 * RATION_UNIT);
    CHECK_EQ(own->enforce, RATION_ENFORCE_SHADOW);
    CHECK_EQ(own->window.week_start, 6);
    CHECK_STR(own->scope[0], "account");
    CHECK_EQ(rn_config_provider(config, 0)->connect_us, SECOND);
    CHECK_EQ(rn_config_provider(config, 0)->idle_us, 3 * SECOND);
    CHECK_STR(rn_config_provider(config, 0)->ca, "/ca.pem");
    CHECK_STR(rn_config_provider(config, 0)->proxy, "http://u:p@proxy:3128");
    ration_config_free(config);
}

/* A template may stand in a flow map without quotes, which YAML alone would refuse. */
static void variables_need_no_quotes(void **state)
{
    ration_config *config = config_of(
        "providers:\n- { name: p, baseUrl: http://h, endpoints: [ /a/{x}/b/{y}, { path: /c/{z}, cost: 2 } ] }\n",
        &plain);
    const ration_provider_rule *provider = &ration_config_rules(config)->providers[0];

    (void)state;
    CHECK_STR(provider->endpoints[0].path, "/a/{x}/b/{y}");
    CHECK_STR(provider->endpoints[1].path, "/c/{z}");
    CHECK_EQ(provider->endpoints[1].defaults.cost, 2 * RATION_UNIT);
    ration_config_free(config);
}

static void auto_starts_with_its_initial_maximum(void **state)
{
    ration_config *config = loaded("examples/tokens.yaml");
    const ration_limit_rule *limit = &ration_config_rules(config)->providers[0].limits[0];

    (void)state;
    CHECK(limit->max_auto);
    CHECK_EQ(limit->max, 40000 * RATION_UNIT);
    CHECK_EQ(limit->sync.reset_format, RATION_RESET_DURATION);
    ration_config_free(config);
}

/* Files: a secret, an included folder. */

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    CHECK(file != NULL);
    (void)fputs(text, file);
    CHECK_EQ(fclose(file), 0);
}

static void remove_file(const char *folder, const char *name)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)remove(path);
}

static const char *const written[] = {"ration.yaml",       "conf/a.yaml",    "conf/b.json", "conf/c.yml",
                                      "conf/.hidden.yaml", "conf/notes.txt", "secret"};

static void the_ledger_is_a_file_or_none(void **state)
{
    ration_config *config = config_of("providers: [{ name: p, baseUrl: http://h }]\n"
                                      "settings: { ledger: { path: none, flush: 250ms } }\n",
                                      &plain);

    (void)state;
    CHECK_STR(rn_config_settings(config)->ledger, NULL);
    CHECK_EQ(rn_config_settings(config)->ledger_flush_us, SECOND / 4);
    ration_config_free(config);

    config = config_of("providers:\n- name: p\n  baseUrl: http://h\n  limits:\n"
                       "  - { name: l, kind: quota, max: 5, window: { period: day }, durability: strict }\n"
                       "settings: { ledger: { path: ./none } }\n",
                       &plain);
    CHECK_STR(rn_config_settings(config)->ledger, "./none");
    CHECK_EQ(ration_config_rules(config)->providers[0].limits[0].durability, RATION_DURABILITY_STRICT);
    ration_config_free(config);
}

/* As if it had been loaded with the other salt; what has no secret keeps its key, or has none. */
static void keys_under_another_salt(void **state)
{
    static const char text[] = "providers: [{ name: p, baseUrl: http://h }]\n"
                               "accounts:\n"
                               "- { name: a, provider: p, credential: { value: s } }\n"
                               "- { name: b, provider: p, credential: { key: 0123456789abcdef } }\n"
                               "- { name: c, provider: p }\n";
    ration_config_options other = plain;
    ration_config *config = config_of(text, &plain);

    (void)state;
    other.salt = "pepper";
    other.salt_size = 6;

    ration_config *want = config_of(text, &other);
    const char *const key = ration_config_rules(want)->accounts[0].credential_key;

    CHECK(strcmp(ration_config_rules(config)->accounts[0].credential_key, key) != 0);
    CHECK_EQ(rn_config_resalt(config, ration_text_of("pepper")), RATION_OK);
    CHECK_STR(ration_config_rules(config)->accounts[0].credential_key, key);
    CHECK_STR(rn_config_account(config, 0)->credential.key, key);
    CHECK_STR(rn_config_account(config, 0)->credential.value, "s");
    CHECK_STR(ration_config_rules(config)->accounts[1].credential_key, "0123456789abcdef");
    CHECK_STR(ration_config_rules(config)->accounts[2].credential_key, NULL);
    CHECK_STR(ration_config_rules(config)->accounts[2].name, "c");

    char *json = NULL;
    size_t size = 0;

    CHECK_EQ(rn_config_json(config, &json, &size), RATION_OK);
    CHECK(strstr(json, key) != NULL);
    free(json);
    ration_config_free(want);
    ration_config_free(config);
}

static void folder_make(char *folder)
{
    char conf[512];

    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(conf, sizeof conf, "%s/conf", folder);
    CHECK_EQ(mkdir(conf, 0700), 0);
}

static void folder_remove(const char *folder)
{
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++)
        remove_file(folder, written[i]);
    remove_file(folder, "conf");
    (void)rmdir(folder);
}

static void included_files_join_in(void **state)
{
    char folder[] = "/tmp/ration-test-XXXXXX";
    char text[1024];
    char path[512];

    (void)state;
    folder_make(folder);
    (void)snprintf(text, sizeof text,
                   "include: conf\nsettings: { token: \"${file:%s/secret}\" }\ntenants: { a: 1 }\n"
                   "providers: [{ name: p, baseUrl: http://h }]\n",
                   folder);
    write_file(folder, "ration.yaml", text);
    write_file(folder, "secret", "s3cret\n");
    write_file(folder, "conf/a.yaml", "accounts: [{ name: a, provider: q }]\ntenants: { b: 2 }\n");
    write_file(folder, "conf/b.json", "{\"providers\":[{\"name\":\"q\",\"baseUrl\":\"http://q\"}]}");
    write_file(folder, "conf/c.yml",
               "accounts: [{ name: c, provider: p }]\n"
               "settings: { drain: 1s, timeouts: { head: 2s, idle: 3s, body: 4s, write: 5s } }\n");
    write_file(folder, "conf/.hidden.yaml", "nonsense");
    write_file(folder, "conf/notes.txt", "nonsense");
    (void)snprintf(path, sizeof path, "%s/ration.yaml", folder);

    ration_config *config = loaded(path);
    const ration_rules *rules = ration_config_rules(config);

    folder_remove(folder);
    CHECK_EQ(rules->provider_count, 2);
    CHECK_STR(rules->providers[1].name, "q");
    CHECK_EQ(rules->account_count, 2);
    CHECK_STR(rules->accounts[0].name, "a");
    CHECK_STR(rules->accounts[1].name, "c");
    CHECK_EQ(rules->tenant_count, 2);
    CHECK_EQ(rn_config_settings(config)->drain_us, SECOND);
    CHECK_EQ(rn_config_settings(config)->patience.head_us, 2 * SECOND);
    CHECK_EQ(rn_config_settings(config)->patience.idle_us, 3 * SECOND);
    CHECK_EQ(rn_config_settings(config)->patience.body_us, 4 * SECOND);
    CHECK_EQ(rn_config_settings(config)->patience.write_us, 5 * SECOND);
    CHECK_STR(rn_config_settings(config)->token, "s3cret");
    ration_config_free(config);
}

static void faults_know_their_files(void **state)
{
    char folder[] = "/tmp/ration-test-XXXXXX";
    char path[512];
    char lines[2048] = "";
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};

    (void)state;
    folder_make(folder);
    write_file(folder, "ration.yaml",
               "include: conf\nproviders: [{ name: p, baseUrl: http://h }]\ntenants: { a: 1 }\n");
    write_file(folder, "conf/a.yaml", "\nproviders: [{ name: p, baseUrl: http://h }]\n");
    write_file(folder, "conf/b.json", "{\"include\":\"x\",\n \"tenants\":{\"a\":2}}");
    write_file(folder, "conf/c.yml", "accounts: [\n");
    (void)snprintf(path, sizeof path, "%s/ration.yaml", folder);
    CHECK_EQ(ration_config_load(path, &plain, &config, &faults), RATION_ERR_CONFIG);
    for (size_t i = 0; i < faults.count; i++) {
        char line[512];

        (void)ration_config_fault_text(&faults.items[i], line, sizeof line);
        (void)strncat(lines, line + strlen(folder) + 1, sizeof lines - strlen(lines) - 2);
        (void)strncat(lines, "\n", sizeof lines - strlen(lines) - 1);
    }
    folder_remove(folder);
    ration_config_faults_fini(&faults);
    ration_config_faults_fini(&faults);

    char wanted[2048];

    (void)snprintf(
        wanted, sizeof wanted,
        "conf/a.yaml:2:21: providers[1].name: the name 'p' stands here a second time (the first is in "
        "%s/ration.yaml, line 2)\n"
        "conf/b.json:1:2: include: an included file cannot include others (name it in the first file)\n"
        "conf/b.json:2:13: tenants.a: the key stands here a second time (the first is in %s/ration.yaml, line "
        "3)\n"
        "conf/c.yml:2:1: did not find expected node content while parsing a flow node\n",
        folder, folder);
    CHECK_STR(lines, wanted);
}

static void files_that_cannot_be_read(void **state)
{
    static const struct {
        const char *path;
        const char *want;
    } unreadable[] = {
        {"/nowhere/ration.yaml", "/nowhere/ration.yaml: the file cannot be read (No such file or directory)"},
        {"/etc", "/etc: the file cannot be read (it is not a regular file)"},
        {"/dev/zero", "/dev/zero: the file cannot be read (it is not a regular file)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof unreadable / sizeof unreadable[0]; i++) {
        ration_config *config = NULL;
        ration_config_faults faults = {NULL, 0, NULL};
        char line[256];

        CHECK_ROW(unreadable[i].path);
        CHECK_EQ(ration_config_load(unreadable[i].path, NULL, &config, &faults), RATION_ERR_IO);
        CHECK_EQ(faults.count, 1);
        (void)ration_config_fault_text(&faults.items[0], line, sizeof line);
        CHECK_STR(line, unreadable[i].want);
        CHECK_STR(faults.items[0].source, "");
        ration_config_faults_fini(&faults);
    }
}

static void arguments_are_checked(void **state)
{
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};
    const ration_text nothing = {NULL, 0};

    (void)state;
    CHECK_EQ(ration_config_load(NULL, NULL, &config, &faults), RATION_ERR_INVALID);
    CHECK_EQ(ration_config_parse(nothing, NULL, NULL, &config, &faults), RATION_ERR_INVALID);
    CHECK_EQ(ration_config_parse((ration_text){NULL, 1}, "f", NULL, &config, &faults), RATION_ERR_INVALID);
    CHECK_EQ(ration_config_parse(nothing, "f", NULL, &config, &faults), RATION_ERR_CONFIG);
    ration_config_faults_fini(&faults);
    ration_config_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_says_what_it_says),
        cmocka_unit_test(defaults_need_no_key),
        cmocka_unit_test(lines_of_the_log),
        cmocka_unit_test(texts_come_as_they_are),
        cmocka_unit_test(recordings_expand_nothing),
        cmocka_unit_test(aliases_stand_for_whole_values),
        cmocka_unit_test(numbers_lose_nothing),
        cmocka_unit_test(urls_are_taken_apart),
        cmocka_unit_test(addresses_know_whether_others_reach_them),
        cmocka_unit_test(accounts_have_targets_and_limits_of_their_own),
        cmocka_unit_test(variables_need_no_quotes),
        cmocka_unit_test(auto_starts_with_its_initial_maximum),
        cmocka_unit_test(included_files_join_in),
        cmocka_unit_test(the_ledger_is_a_file_or_none),
        cmocka_unit_test(keys_under_another_salt),
        cmocka_unit_test(faults_know_their_files),
        cmocka_unit_test(files_that_cannot_be_read),
        cmocka_unit_test(arguments_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
