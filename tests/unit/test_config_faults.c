/* SPDX-License-Identifier: MIT */
/* Every fault of a config with its place, its words and what was meant; and that no secret is in any of them. */
#include "support/config.h"

#include <stdio.h>

#define LOCAL "settings: { instance: i }\n"
#define PROVIDER "providers:\n- name: p\n  baseUrl: http://h\n"                     /* lines 1 to 3 */
#define LIMIT PROVIDER "  limits:\n  - { name: l, scope: { by: [account] }, "       /* line 5 */
#define WINDOW PROVIDER "  limits:\n  - { name: q, kind: quota, max: 5, window: { " /* line 5 */
#define ACCOUNT PROVIDER "  limits: [{ name: l, kind: concurrency, max: 5, scope: { by: [account] } }]\n" /* line 4 */

static const char *variable(void *ctx, const char *name)
{
    (void)ctx;
    if (strcmp(name, "SECRET") == 0)
        return "hunter2-from-outside";
    return strcmp(name, "TEN") == 0 ? "10" : NULL;
}

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here", .variable = variable};

static const struct {
    const char *why;
    const char *text;
    const char *want;
} rows[] = {
    {"a good one", PROVIDER, ""},

    /* the text itself */
    {"empty", "", "f:1:1: the file is empty (a config has `providers:` and `accounts:`)\n"},
    {"only a comment", "# nothing\n", "f:1:1: the file is empty (a config has `providers:` and `accounts:`)\n"},
    {"null", "---\n~\n", "f:1:1: the file is empty (a config has `providers:` and `accounts:`)\n"},
    {"a list", "- a\n", "f:1:1: the file must be a map of keys (such as `providers:`)\n"},
    {"a text", "\n\n  hello\n", "f:3:3: the file must be a map of keys (such as `providers:`)\n"},
    {"two documents", PROVIDER "---\nproviders: []\n",
     "f:4:1: a second document begins here (one file holds one config; `include:` takes a folder of files)\n"},
    {"not UTF-8", "providers:\n# \xC3\xA9\n  - \xFF\n", "f:3:5: this is not UTF-8 text (save the file as UTF-8)\n"},
    {"a control character", "providers:\n  - \"\x01\"\n",
     "f:2:6: a control character is not allowed here (write it as an escape in double quotes)\n"},
    {"never closed", "providers:\n- { name: p, baseUrl: \"http://h }\n",
     "f:2:23: found unexpected end of stream while scanning a quoted scalar\n"},
    {"a list that ends as a map", "providers: [ a }\n",
     "f:1:16: did not find expected ',' or ']' while parsing a flow sequence\n"},
    {"a tab", "providers:\n\t- a\n",
     "f:2:1: found character that cannot start any token while scanning for the next "
     "token\n"},
    {"merge keys", "a: &a { b: c }\nd: { <<: *a }\n",
     "f:2:6: merge keys are not supported (repeat the keys, or use an alias for a whole value)\n"},
    {"tags", "providers: !!set []\n", "f:1:12: tags are not supported\n"},
    {"a list as a key", "? [a]\n: b\n", "f:1:3: a key must be a text\n"},
    {"an alias as a key", "a: &a b\n*a : c\n", "f:2:1: an alias cannot be a key\n"},
    {"an alias of nothing", "providers: *p\n",
     "f:1:12: an alias of an anchor that is not there (an anchor stands before its aliases)\n"},
    {"an alias in itself", "providers: &p [ *p ]\n", "f:1:17: an alias inside of what it stands for\n"},

    /* keys */
    {"unknown, with a guess", PROVIDER "  limmits: []\n",
     "f:4:3: providers[0].limmits: unknown key (did you mean "
     "'limits'?)\n"},
    {"unknown, without", PROVIDER "  colour: red\n", "f:4:3: providers[0].colour: unknown key\n"},
    {"twice", PROVIDER "  name: q\n",
     "f:4:3: providers[0].name: the key stands here a second time (the first is in line 2)\n"},
    {"not yet supported", PROVIDER "  limits: [ { name: l, kind: rate, rate: 1/s, prefetch: 2 } ]\n",
     "f:4:47: providers[0].limits[0].prefetch: this key is not supported yet by this version\n"},
    {"missing", "providers: [{}]\n",
     "f:1:13: providers[0]: the key 'name' is missing\nf:1:13: providers[0]: the key 'baseUrl' is missing\n"},
    {"no providers", "settings: { drain: 5s }\n", "f:1:1: the key 'providers' is missing\n"},
    {"no value", "providers:\n- name:\n  baseUrl: http://h\n",
     "f:2:8: providers[0].name: there is no value (give it one, or leave the key out)\n"},
    {"no list", "providers:\nsettings: {}\n",
     "f:1:11: providers: there is no value (give it one, or leave the key "
     "out)\n"},

    /* types */
    {"a map for a list", "providers: { a: b }\n", "f:1:12: providers: must be a list\n"},
    {"a text for a list", PROVIDER "  limits: all\n", "f:4:11: providers[0].limits: must be a list (put it in [ ])\n"},
    {"a text for a map", PROVIDER "settings: none\n", "f:4:11: settings: must be a map of keys\n"},
    {"a list for a map", "tenants: [a]\n" PROVIDER, "f:1:10: tenants: must be a map from names to values\n"},
    {"a list for a text", "providers:\n- name: [p]\n  baseUrl: http://h\n",
     "f:2:9: providers[0].name: a list stands here; it must be a name of 1 to 255 bytes without control characters\n"},
    {"a number for a text", "providers:\n- name: 12\n  baseUrl: http://h\n",
     "f:2:9: providers[0].name: '12' is not a name of 1 to 255 bytes without control characters (put it in quotes to "
     "make it a text)\n"},
    {"a text for a number", "tenants: { a: \"3\" }\n" PROVIDER,
     "f:1:15: tenants.a: '3' is not a whole number such as 100 (write it without quotes)\n"},
    {"yes", PROVIDER "  auth: yes\n", "f:4:9: providers[0].auth: 'yes' is not true or false\n"},
    {"strict without a ledger",
     LIMIT "kind: quota, max: 5, window: { period: day }, durability: strict }\n"
           "settings: { ledger: { path: none } }\n",
     "f:5:100: providers[0].limits[0].durability: a strict limit needs a ledger that its mark is kept in "
     "(`settings.ledger.path` says `none`)\n"},
    {"strict with the ledger that is there unless it is told",
     LIMIT "kind: quota, max: 5, window: { period: day }, durability: strict }\n", ""},
    {"only a quota is durable", LIMIT "kind: concurrency, max: 5, durability: strict }\n",
     "f:5:69: providers[0].limits[0].durability: a limit of this kind has no such key\n"},
    {"another durability", LIMIT "kind: quota, max: 5, window: { period: day }, durability: fsync }\n",
     "f:5:100: providers[0].limits[0].durability: 'fsync' is not one of: relaxed, strict\n"},
    {"a flush without end", PROVIDER "settings: { ledger: { flush: 0s } }\n",
     "f:4:30: settings.ledger.flush: '0s' is out of range (at least 10 ms and at most 1 h)\n"},
    {"no patience", PROVIDER "settings: { timeouts: { head: 0s } }\n",
     "f:4:31: settings.timeouts.head: '0s' is out of range (at least 1 ms and at most 1 d)\n"},
    {"a ledger without a name", PROVIDER "settings: { ledger: { path: \"\" } }\n",
     "f:4:29: settings.ledger.path: '' is not a path\n"},
    {"a number for a duration", PROVIDER "settings: { drain: 30 }\n",
     "f:4:20: settings.drain: '30' is not a duration such as 250ms, 10s or 1h30m (write 30s for seconds)\n"},
    {"a word that is none of a few", PROVIDER "settings: { log: { format: xml } }\n",
     "f:4:28: settings.log.format: 'xml' is not one of: logfmt, json\n"},
    {"a duration that is none", PROVIDER "settings: { drain: -1s }\n",
     "f:4:20: settings.drain: '-1s' is not a duration such as 250ms, 10s or 1h30m\n"},
    {"a word that is none", PROVIDER "settings: { queue: { order: fiar } }\n",
     "f:4:29: settings.queue.order: 'fiar' is not one of: fair, fifo (did you mean 'fair'?)\n"},
    {"NaN", "tenants: { a: .nan }\n" PROVIDER, "f:1:15: tenants.a: '.nan' is not a whole number such as 100\n"},

    /* ranges */
    {"below", "tenants: { a: 0 }\n" PROVIDER,
     "f:1:15: tenants.a: '0' is out of range (at least 1 and at most 1000000)\n"},
    {"negative", "tenants: { a: -3 }\n" PROVIDER,
     "f:1:15: tenants.a: '-3' is out of range (at least 1 and at most 1000000)\n"},
    {"above", "tenants: { a: 1000001 }\n" PROVIDER,
     "f:1:15: tenants.a: '1000001' is out of range (at least 1 and at most 1000000)\n"},
    {"huge", "tenants: { a: 99999999999999999999999 }\n" PROVIDER,
     "f:1:15: tenants.a: '99999999999999999999999' is out of range (at least 1 and at most 1000000)\n"},
    {"a fraction", "tenants: { a: 1.5 }\n" PROVIDER, "f:1:15: tenants.a: '1.5' is not a whole number such as 100\n"},
    {"more than Lua's doubles hold", LIMIT "kind: concurrency, max: 9007199254.740993 }\n",
     "f:5:66: providers[0].limits[0].max: '9007199254.740993' is out of range (at least 0.000001 and at most "
     "9007199254.740992)\n"},
    {"seven places", LIMIT "kind: concurrency, max: 1.0000001 }\n",
     "f:5:66: providers[0].limits[0].max: '1.0000001' is not a number such as 5000, or auto\n"},
    {"a share of more than all", ACCOUNT "accounts: [{ name: a, provider: p, budget: { share: 101% } }]\n",
     "f:5:53: accounts[0].budget.share: '101%' is out of range (it must be a ratio from 0 to 1 such as 80%, 0.8 or "
     "4/5)\n"},
    {"a rate of nothing", LIMIT "kind: rate, rate: 0/s }\n",
     "f:5:60: providers[0].limits[0].rate: '0/s' is out of range (it must be a rate such as 10/s or 100/15m)\n"},
    {"a status", PROVIDER "  errors: { transient: { statuses: [99] } }\n",
     "f:4:37: providers[0].errors.transient.statuses[0]: '99' is out of range (at least 100 and at most 599)\n"},
    {"no status at all", PROVIDER "  errors: { transient: { statuses: [] } }\n",
     "f:4:36: providers[0].errors.transient.statuses: the list is empty\n"},

    /* names */
    {"two providers of one name", PROVIDER "- { name: p, baseUrl: http://g }\n",
     "f:4:11: providers[1].name: the name 'p' stands here a second time (the first is in line 2)\n"},
    {"two limits of one name",
     ACCOUNT "- { name: q, baseUrl: http://g, limits: [{ name: l, kind: concurrency, max: 1 },"
             " { name: l, kind: concurrency, max: 2 }] }\n",
     "f:5:90: providers[1].limits[1].name: the name 'l' stands here a second time (the first is in line 5)\n"},
    {"two accounts of one name", PROVIDER "accounts: [{ name: a, provider: p }, { name: a, provider: p }]\n",
     "f:4:46: accounts[1].name: the name 'a' stands here a second time (the first is in line 4)\n"},
    {"two templates", PROVIDER "  endpoints: [/a, /b, { path: /a }]\n",
     "f:4:31: providers[0].endpoints[2].path: the path '/a' stands here a second time (the first is in line 4)\n"},
    {"one tenant twice", "tenants: { a: 1, a: 2 }\n" PROVIDER,
     "f:1:18: tenants.a: the key stands here a second time (the first is in line 1)\n"},
    {"an unknown provider", PROVIDER "accounts: [{ name: a, provider: pp }]\n",
     "f:4:33: accounts[0].provider: there is no provider of this name (did you mean 'p'?)\n"},
    {"an empty name", "providers:\n- { name: \"\", baseUrl: http://h }\n",
     "f:2:11: providers[0].name: '' is not a name of 1 to 255 bytes without control characters\n"},
    {"an empty instance", PROVIDER "settings: { instance: \"\" }\n",
     "f:4:23: settings.instance: '' is not a name of 1 to 255 bytes without control characters\n"},

    /* limits */
    {"without a kind", LIMIT "max: 3 }\n", "f:5:5: providers[0].limits[0]: the key 'kind' is missing\n"},
    {"a kind that does not exist", LIMIT "kind: quotta }\n",
     "f:5:48: providers[0].limits[0].kind: 'quotta' is not one of: rate, concurrency, quota, share, adaptive (did you "
     "mean 'quota'?)\n"},
    {"without what its kind needs", LIMIT "kind: quota }\n",
     "f:5:5: providers[0].limits[0]: the key 'max' is missing\n"
     "f:5:5: providers[0].limits[0]: the key 'window' is missing\n"},
    {"with what its kind has not", LIMIT "kind: concurrency, max: 3, burst: 2 }\n",
     "f:5:69: providers[0].limits[0].burst: a limit of this kind has no such key\n"},
    {"a dimension that does not exist",
     PROVIDER "  limits: [{ name: l, kind: concurrency, max: 1, scope: { by: "
              "[acount, \"var:\"] } }]\n",
     "f:4:64: providers[0].limits[0].scope.by[0]: 'acount' is no dimension of a scope (did you mean 'account'?)\n"
     "f:4:72: providers[0].limits[0].scope.by[1]: 'var:' needs the name of a variable (such as var:organizationId)\n"},
    {"variables that no endpoint has",
     PROVIDER
     "  endpoints: [\"/o/{organizationId}/**\", \"/n/{networkId}/{organizationId}\"]\n"
     "  limits: [{ name: l, kind: concurrency, max: 1, scope: { by: [\"var:organisationId\", \"var:networkId\"] },"
     " appliesTo: { requestsWithVar: colour } }]\n",
     "f:5:64: providers[0].limits[0].scope.by[0]: none of the provider's endpoints has the variable 'organisationId' "
     "(did you mean 'organizationId'?)\n"
     "f:5:136: providers[0].limits[0].appliesTo.requestsWithVar: none of the provider's endpoints has the variable "
     "'colour'\n"},
    {"a variable where there are no endpoints",
     PROVIDER "  limits: [{ name: l, kind: concurrency, max: 1, scope: { by: [\"var:x\"] } }]\n", ""},
    {"a dimension twice",
     PROVIDER "  limits: [{ name: l, kind: concurrency, max: 1, scope: { by: [account, account] "
              "} }]\n",
     "f:4:57: providers[0].limits[0].scope: a dimension of the scope stands twice\n"},
    {"auto without more", LIMIT "kind: quota, max: auto, window: { period: day } }\n",
     "f:5:60: providers[0].limits[0].max: `max: auto` needs 'initialMax' (what holds until the first response says "
     "more)\n"
     "f:5:60: providers[0].limits[0].max: `max: auto` needs 'sync.limitHeader' (the response field with the "
     "maximum)\n"},
    {"auto for slots", LIMIT "kind: concurrency, max: auto }\n",
     "f:5:66: providers[0].limits[0].max: only a quota can learn its maximum (give a number)\n"},
    {"a first maximum for nothing", LIMIT "kind: quota, max: 5, initialMax: 4, window: { period: day } }\n",
     "f:5:75: providers[0].limits[0].initialMax: 'initialMax' goes with `max: auto` only\n"},
    {"a window of nothing", WINDOW "} }\n",
     "f:5:45: providers[0].limits[0].window: a window needs 'period' or 'rolling' (such as { period: day } or { "
     "rolling: 24h })\n"},
    {"a window of both", WINDOW "period: day, rolling: 1h } }\n",
     "f:5:69: providers[0].limits[0].window.rolling: a window has either a period or a rolling length, not both\n"},
    {"a rolling window in a zone", WINDOW "rolling: 1h, timezone: Europe/Paris } }\n",
     "f:5:70: providers[0].limits[0].window.timezone: a rolling window has no time zone\n"},
    {"a reset of an hour", WINDOW "period: hour, resetAt: \"00:30\" } }\n",
     "f:5:70: providers[0].limits[0].window.resetAt: only a day, a week or a month has a time of its reset\n"},
    {"a week's start of a day", WINDOW "period: day, weekStart: sunday } }\n",
     "f:5:71: providers[0].limits[0].window.weekStart: only a week has a first day\n"},
    {"a month's day of a week", WINDOW "period: week, monthDay: 3 } }\n",
     "f:5:71: providers[0].limits[0].window.monthDay: only a month has a first day of its own\n"},
    {"a time that is none", WINDOW "period: day, resetAt: \"24:00\" } }\n",
     "f:5:69: providers[0].limits[0].window.resetAt: '24:00' is not a time of day such as 00:00 or 23:30\n"},
    {"too short to roll", WINDOW "rolling: 999ms } }\n",
     "f:5:56: providers[0].limits[0].window.rolling: '999ms' is out of range (at least 1 s and at most 366 d)\n"},
    {"an unknown zone", WINDOW "period: day, timezone: Europe/Pariss } }\n",
     "f:5:70: providers[0].limits[0].window.timezone: 'Europe/Pariss' is not a known time zone (did you mean "
     "'Europe/Paris'?)\n"},
    {"a zone that climbs", WINDOW "period: day, timezone: ../../etc/passwd } }\n",
     "f:5:70: providers[0].limits[0].window.timezone: '../../etc/passwd' is not a known time zone (such as "
     "America/Los_Angeles)\n"},
    {"an absolute zone", WINDOW "period: day, timezone: /etc/localtime } }\n",
     "f:5:70: providers[0].limits[0].window.timezone: '/etc/localtime' is not a known time zone (such as "
     "America/Los_Angeles)\n"},
    {"a margin that leaves nothing", LIMIT "kind: rate, rate: 10/s, burst: 5, margin: 5 }\n",
     "f:5:84: providers[0].limits[0].margin: the margin must leave one unit of the burst for a request\n"},
    {"less than one request", LIMIT "kind: concurrency, max: 0.5 }\n",
     "f:5:66: providers[0].limits[0].max: a limit that counts requests needs a max of at least one\n"},
    {"what only the core knows, twice",
     LIMIT "kind: rate, rate: 1/7d, burst: 1000000 }\n"
           "  - { name: m, kind: rate, rate: 1/7d, burst: 1000000 }\n",
     "f:5:73: providers[0].limits[0].burst: the burst times the microseconds per unit of the rate is above 2^53\n"
     "f:6:47: providers[0].limits[1].burst: the burst times the microseconds per unit of the rate is above 2^53\n"},
    {"a glob that is none", LIMIT "kind: concurrency, max: 1, appliesTo: { endpoints: [a] } }\n",
     "f:5:94: providers[0].limits[0].appliesTo.endpoints[0]: 'a' is not a glob that begins with '/', such as "
     "/networks/*/devices or /oauth/**\n"},

    /* templates, URLs, addresses */
    {"a part of a segment, and a name twice", PROVIDER "  endpoints: [\"/a/{b}.json\", \"/{a}/{a}\"]\n",
     "f:4:15: providers[0].endpoints[0]: a variable of a path template must be a whole segment, its name stand once "
     "(such as /networks/{networkId}; a template has at most 64 segments)\n"
     "f:4:30: providers[0].endpoints[1]: a variable of a path template must be a whole segment, its name stand once "
     "(such as /networks/{networkId}; a template has at most 64 segments)\n"},
    {"no slash", PROVIDER "  endpoints: [a/b]\n",
     "f:4:15: providers[0].endpoints[0]: a path template must begin with '/' (/a/b)\n"},
    {"no slash, and lines in a hint", PROVIDER "  endpoints: [\"a\\nb\\x7F\"]\n",
     "f:4:15: providers[0].endpoints[0]: a path template must begin with '/' (/a?b?)\n"},
    {"braces", PROVIDER "  endpoints: [\"/a/{b\", \"/a/b}\", \"/a/{}\", \"/{a/b}\"]\n",
     "f:4:15: providers[0].endpoints[0]: the braces of a path template do not match (a variable is a name in braces, "
     "such as /networks/{networkId})\n"
     "f:4:24: providers[0].endpoints[1]: the braces of a path template do not match (a variable is a name in braces, "
     "such as /networks/{networkId})\n"
     "f:4:33: providers[0].endpoints[2]: the braces of a path template do not match (a variable is a name in braces, "
     "such as /networks/{networkId})\n"
     "f:4:42: providers[0].endpoints[3]: the braces of a path template do not match (a variable is a name in braces, "
     "such as /networks/{networkId})\n"},
    {"no URL", "providers:\n- { name: p, baseUrl: \"ftp://h\" }\n",
     "f:2:23: providers[0].baseUrl: 'ftp://h' is not a URL such as https://api.example.com/v1 (http or https, no "
     "query)\n"},
    {"a URL with a password", "providers:\n- { name: p, baseUrl: \"http://u:hunter2@h\" }\n",
     "f:2:23: providers[0].baseUrl: a URL here holds no user and no password (put what authenticates a call into the "
     "account's `credential`)\n"},
    {"a port of a URL", "providers:\n- { name: p, baseUrl: \"http://h:65536/\" }\n",
     "f:2:23: providers[0].baseUrl: 'http://h:65536/' is not a URL such as https://api.example.com/v1 (http or https, "
     "no query)\n"},
    {"a target", PROVIDER "  targets: { eu: http://e }\naccounts: [{ name: a, provider: p, target: ue }]\n",
     "f:5:44: accounts[0].target: the provider has no such target, and it is not a URL (did you mean 'eu'?)\n"},
    {"listening to all without a token", PROVIDER "settings: { listen: { gateway: \"0.0.0.0:7600\" } }\n",
     "f:4:32: settings.listen.gateway: an address that others can reach needs a token (set `settings.token`, from the "
     "environment, or name `clients`)\n"},
    {"listening to all with one",
     PROVIDER "settings: { listen: { gateway: \"0.0.0.0:7600\" }, token: \"${SECRET}\" }\n", ""},
    {"an address that is none", PROVIDER "settings: { listen: { gateway: localhost, control: \"h:1\" } }\n",
     "f:4:32: settings.listen.gateway: 'localhost' is not an address such as 127.0.0.1:7600, [::1]:7600, "
     "localhost:7600 or unix:/run/ration.sock\n"
     "f:4:52: settings.listen.control: 'h:1' is not an address such as 127.0.0.1:7600, [::1]:7600, localhost:7600 or "
     "unix:/run/ration.sock\n"},
    {"a fleet without a store", PROVIDER "settings: { fleet: {} }\n",
     "f:4:20: settings.fleet: the key 'redis' is missing\n"},
    {"no URL of a store", PROVIDER "settings: { fleet: { redis: \"http://h\" } }\n",
     "f:4:29: settings.fleet.redis: this is no URL of a Redis (such as redis://10.0.0.7:6379, rediss://redis.example "
     "or unix:/run/redis)\n"},
    {"a scheme and nothing more", PROVIDER "settings: { fleet: { redis: \"redis://\" } }\n",
     "f:4:29: settings.fleet.redis: this is no URL of a Redis (such as redis://10.0.0.7:6379, rediss://redis.example "
     "or unix:/run/redis)\n"},
    {"a password in it", PROVIDER "settings: { fleet: { redis: \"redis://:hunter2@h\" } }\n",
     "f:4:29: settings.fleet.redis: user and password have no place in the URL (name the variables that have them: "
     "`userEnv`, `passwordEnv`)\n"},
    {"a password in place of the variable",
     PROVIDER "settings: { fleet: { redis: \"redis://h\", passwordEnv: hunter2! } }\n",
     "f:4:55: settings.fleet.passwordEnv: the value does not fit: it must be the name of an environment variable, such "
     "as REDIS_PASSWORD\n"},
    {"a user without a password", PROVIDER "settings: { fleet: { redis: \"redis://h\", userEnv: U } }\n",
     "f:4:51: settings.fleet.userEnv: a user needs a password: 'passwordEnv'\n"},
    {"two ways to go on",
     PROVIDER "settings: { fleet: { redis: \"redis://h\", onUnavailable: { mode: refuse, localLimit: 3 } } }\n",
     "f:4:85: settings.fleet.onUnavailable.localLimit: it is either `refuse` or a 'localLimit'\n"},
    {"no way to go on", PROVIDER "settings: { fleet: { redis: \"redis://h\", onUnavailable: allow } }\n",
     "f:4:57: settings.fleet.onUnavailable: 'allow' is not one of: refuse\n"},
    {"a block of nothing", PROVIDER "settings: { fleet: { redis: \"redis://h\", prefetch: 0 } }\n",
     "f:4:52: settings.fleet.prefetch: '0' is out of range (at least 1 and at most 10000)\n"},
    {"a block of less", PROVIDER "settings: { fleet: { redis: \"redis://h\", prefetch: -1 } }\n",
     "f:4:52: settings.fleet.prefetch: '-1' is out of range (at least 1 and at most 10000)\n"},
    {"a block of everything", PROVIDER "settings: { fleet: { redis: \"redis://h\", prefetch: 10001 } }\n",
     "f:4:52: settings.fleet.prefetch: '10001' is out of range (at least 1 and at most 10000)\n"},
    {"a block for ever", PROVIDER "settings: { fleet: { redis: \"redis://h\", prefetchTtl: 61s } }\n",
     "f:4:55: settings.fleet.prefetchTtl: '61s' is out of range (at least 10 ms and at most 1 min)\n"},
    {"a block without a fleet", PROVIDER "settings: { fleet: { prefetch: 100 } }\n",
     "f:4:20: settings.fleet: the key 'redis' is missing\n"},
    {"a fleet of every form",
     PROVIDER
     "settings: { fleet: { redis: \"rediss://h:1,[::1]:2\", userEnv: U, passwordEnv: P_1, caFile: c.pem, name: f,\n"
     "  connectTimeout: 1s, commandTimeout: 10ms, backoff: 2s, onUnavailable: { localLimit: 3 }, leaseTtl: 1s,\n"
     "  waiterTtl: 2s, wait: 1, prefetch: 100, prefetchTtl: 10ms } }\n",
     ""},
    {"one address for both", PROVIDER "settings: { listen: { gateway: \"[::1]:80\", control: \"[::1]:80\" } }\n",
     "f:4:53: settings.listen.control: gateway and control have the same address\n"},

    /* accounts */
    {"a credential of nothing", PROVIDER "accounts: [{ name: a, provider: p, credential: {} }]\n",
     "f:4:48: accounts[0].credential: the key 'value' is missing (such as { header: Authorization, value: \"Bearer "
     "${API_KEY}\" })\n"},
    {"a credential in a field of HTTP's own",
     PROVIDER "accounts: [{ name: a, provider: p, credential: { header: content-LENGTH, value: x } }]\n",
     "f:4:58: accounts[0].credential.header: 'content-LENGTH' is not a header field that may carry a secret, such as "
     "Authorization or X-Api-Key\n"},
    {"a credential in a field of ration's own",
     PROVIDER "accounts: [{ name: a, provider: p, credential: { header: Ration-Token, value: x } }]\n",
     "f:4:58: accounts[0].credential.header: 'Ration-Token' is not a header field that may carry a secret, such as "
     "Authorization or X-Api-Key\n"},
    {"a credential of both",
     PROVIDER "accounts: [{ name: a, provider: p, credential: { value: x, key: "
              "0123456789abcdef } }]\n",
     "f:4:65: accounts[0].credential.key: a credential is either a key or a header with its value\n"},
    {"a limit of another provider", ACCOUNT "accounts: [{ name: a, provider: p, limits: [{ name: k, max: 1 }] }]\n",
     "f:5:53: accounts[0].limits[0].name: the provider has no limit of this name (did you mean 'l'?)\n"},
    {"a limit of all accounts",
     PROVIDER "  limits: [{ name: l, kind: concurrency, max: 5 }]\n"
              "accounts: [{ name: a, provider: p, limits: [{ name: l, max: 1 }] }]\n",
     "f:5:45: accounts[0].limits[0]: only a limit whose scope has 'account' can be changed for one (its counters are "
     "shared with other accounts)\n"},
    {"another kind for an account",
     ACCOUNT "accounts: [{ name: a, provider: p, limits: [{ name: l, kind: quota, "
             "window: { period: day } }] }]\n",
     "f:5:62: accounts[0].limits[0].kind: an account cannot change the kind of a limit\n"},

    /* from outside */
    {"a variable that is not set", PROVIDER "settings: { instance: \"${NOWHERE}\" }\n",
     "f:4:23: settings.instance: the environment variable NOWHERE is not set\n"},
    {"not closed", PROVIDER "settings: { instance: \"${SECRET\" }\n",
     "f:4:23: settings.instance: '${' is not closed (write $${ for the characters themselves)\n"},
    {"no name", PROVIDER "settings: { instance: \"${}\" }\n",
     "f:4:23: settings.instance: '${' is not followed by the name of a variable (write ${NAME}, ${file:/path}, or $${ "
     "for the characters themselves)\n"},
    {"a file that is not there", PROVIDER "settings: { instance: \"${file:/nowhere/at/all}\" }\n",
     "f:4:23: settings.instance: the file /nowhere/at/all cannot be read (No such file or directory)\n"},
    {"a folder for a file", PROVIDER "settings: { instance: \"${file:/etc}\" }\n",
     "f:4:23: settings.instance: the file /etc cannot be read (it is not a regular file)\n"},
    {"beside nothing", PROVIDER "settings: { instance: \"${file:secret}\" }\n",
     "f:4:23: settings.instance: '${file:' needs a path that begins with '/' (such as ${file:/run/secrets/key})\n"},
    {"what comes in is not repeated", "tenants: { a: \"${SECRET}\" }\n" PROVIDER,
     "f:1:15: tenants.a: the value does not fit: it must be a whole number such as 100\n"},
    {"a number may come in", "tenants: { a: \"${TEN}\" }\n" PROVIDER, ""},
    {"including from a text", "include: conf.d\n" PROVIDER, "f:1:10: include: only a file can include others\n"},
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

/* Every line of these texts that a fault shows, and the stars in place of what is secret. */
static const struct {
    const char *why;
    const char *text;
    const char *want; /* source lines of the faults, each with its caret as a '^' before the character it points to */
} shown[] = {
    {"a plain line", PROVIDER "  auth: yes\n", "  auth: ^yes\n"},
    {"a secret beside the fault",
     PROVIDER "accounts: [{ name: a, provider: q, credential: { header: X-Key, value: hunter2 } }]\n",
     "accounts: [{ name: a, provider: ^q, credential: { header: ***, value: *** } }]\n"},
    {"a misspelt key of a secret", PROVIDER "accounts: [{ name: a, provider: p, credential: { vaule: hunter2 } }]\n",
     "accounts: [{ name: a, provider: p, credential: ^{ vaule: *** } }]\n"
     "accounts: [{ name: a, provider: p, credential: { ^vaule: *** } }]\n"},
    {"a secret in place of a key", PROVIDER "accounts: [{ name: a, provider: p, credential: { hunter2: } }]\n",
     "accounts: [{ name: a, provider: p, credential: ^{ ***: } }]\n"
     "accounts: [{ name: a, provider: p, credential: { ^***: } }]\n"},
    {"a secret in place of the map", PROVIDER "accounts: [{ name: a, provider: p, credential: hunter2 }]\n",
     "accounts: [{ name: a, provider: p, credential: ^*** }]\n"},
    {"a token of a wrong type", PROVIDER "settings: { token: [hunter2] }\n", "settings: { token: ^[***] }\n"},
    {"a secret of two lines", PROVIDER "settings:\n  token: \"hunter2\n    more\" \n  drian: 5s\n", "  ^drian: 5s\n"},
    {"a proxy", PROVIDER "  proxy: ftp://u:hunter2@h\n", "  proxy: ^***\n"},
    {"a password in a URL", "providers:\n- { name: p, baseUrl: \"http://u:hunter2@h\" }\n",
     "- { name: p, baseUrl: ^*** }\n"},
    {"a text that breaks off in a secret", "settings:\n  token: \"hunter2\n", "  token^***\n"},
    {"a secret that breaks the text", "settings:\n  token: hunter2\n    and: more\n", "^\n"},
    {"not UTF-8 behind a secret", "settings:\n  token: hunter2\n  instance: \xFF\n", "^\n"},
    {"not UTF-8 in a secret", "settings:\n  token: hunter2\xFF\n", "^\n"},
    {"tabs and far columns", PROVIDER "  tls:\t{ ca: a }\n  errors:\t{ x: y }\n", "  errors: { ^x: y }\n"},
};

static void lines_of(const char *text, char *out, size_t room)
{
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};
    const int err = ration_config_parse(ration_text_of(text), "f", &plain, &config, &faults);
    size_t used = 0;

    CHECK_EQ(err, RATION_ERR_CONFIG);
    for (size_t i = 0; i < faults.count; i++) {
        const ration_config_fault *fault = &faults.items[i];

        CHECK(strstr(fault->text, "hunter2") == NULL && strstr(fault->hint, "hunter2") == NULL);
        CHECK(strstr(fault->path, "hunter2") == NULL && strstr(fault->source, "hunter2") == NULL);
        used += (size_t)snprintf(out + used, room - used, "%.*s^%s\n", (int)fault->caret, fault->source,
                                 fault->source +
                                     (fault->caret < strlen(fault->source) ? fault->caret : strlen(fault->source)));
    }
    ration_config_faults_fini(&faults);
}

static void no_line_shows_a_secret(void **state)
{
    char got[4096];

    (void)state;
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        CHECK_ROW(shown[i].why);
        lines_of(shown[i].text, got, sizeof got);
        CHECK_STR(got, shown[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_has_its_place),
        cmocka_unit_test(no_line_shows_a_secret),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
