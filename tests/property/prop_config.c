/* SPDX-License-Identifier: MIT */
/*
 * A config that is written for a recording and read again gives the same rules, whatever keys it has.
 *
 * A config is drawn as JSON from the keys that chapter 8 knows: each is there or not, with a value that its kind
 * allows. What the loader makes of it is written, read as a recording, compared member by member, and written once
 * more: the same line.
 */
#include "support/config.h"
#include "support/property.h"

#include <stdio.h>

#include "base/mem.h"

#define TEXT_MAX ((size_t)64 * 1024)

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};
static const ration_config_options recording = {.recording = true};

/* A JSON text that grows. */
typedef struct drawn {
    choices *c;
    char *text;
    size_t size;
} drawn;

__attribute__((format(printf, 2, 3))) static void put(drawn *d, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    d->size += (size_t)vsnprintf(d->text + d->size, TEXT_MAX - d->size, format, args);
    va_end(args);
    CHECK(d->size < TEXT_MAX);
}

static bool maybe(drawn *d)
{
    return choose(d->c, 1) == 1;
}

#define PICK(d, words) ((words)[choose((d)->c, sizeof(words) / sizeof((words)[0]) - 1)])

static const char *duration(drawn *d)
{
    static const char *const words[] = {"1s", "250ms", "1500us", "2m30s", "24h", "1.5s", "7d"};

    return PICK(d, words);
}

static const char *number(drawn *d)
{
    static const char *const words[] = {"1", "10", "2.5", "1000000", "3.000001", "9007199254.740992"};

    return PICK(d, words);
}

static const char *name(drawn *d)
{
    static const char *const words[] = {"x",      "a b", "\\u00e9", "quote\\\"d", "back\\\\slash", "\\ud83d\\ude00",
                                        "a/b=c%d"};

    return PICK(d, words);
}

static void put_defaults(drawn *d)
{
    static const char *const priorities[] = {"critical", "high", "normal", "low"};

    if (maybe(d))
        put(d, ",\"cost\":%s", maybe(d) ? number(d) : "0");
    if (maybe(d))
        put(d, ",\"hold\":\"%s\"", maybe(d) ? "auto" : duration(d));
    if (maybe(d))
        put(d, ",\"auth\":%s", maybe(d) ? "true" : "false");
    if (maybe(d))
        put(d, ",\"class\":\"%s\"", name(d));
    if (maybe(d))
        put(d, ",\"tenant\":\"%s\"", name(d));
    if (maybe(d))
        put(d, ",\"priority\":\"%s\"", PICK(d, priorities));
}

static void put_rate(drawn *d)
{
    static const char *const rates[] = {"10/s", "1/30d", "100/15m", "2.5/1h30m"};

    put(d, ",\"kind\":\"rate\",\"rate\":\"%s\"", PICK(d, rates));
    if (maybe(d))
        put(d, ",\"burst\":%" PRIu64 ",\"margin\":%" PRIu64, choose(d->c, 99) + 2, choose(d->c, 1));
}

static void put_window(drawn *d)
{
    static const char *const periods[] = {"minute", "hour", "day", "week", "month"};
    static const char *const days[] = {"monday", "wednesday", "sunday"};
    static const char *const zones[] = {"UTC", "America/New_York", "Europe/Paris"};
    const char *period = PICK(d, periods);

    if (maybe(d)) {
        put(d, ",\"window\":{\"rolling\":\"%s\"}", maybe(d) ? "1h" : "90s");
        return;
    }
    put(d, ",\"window\":{\"period\":\"%s\"", period);
    if (maybe(d))
        put(d, ",\"timezone\":\"%s\"", PICK(d, zones));
    if (maybe(d) && strlen(period) != 6 && strcmp(period, "hour") != 0)
        put(d, ",\"resetAt\":\"%02" PRIu64 ":%02" PRIu64 "\"", choose(d->c, 23), choose(d->c, 59));
    if (maybe(d) && strcmp(period, "week") == 0)
        put(d, ",\"weekStart\":\"%s\"", PICK(d, days));
    if (maybe(d) && strcmp(period, "month") == 0)
        put(d, ",\"monthDay\":%" PRIu64, choose(d->c, 30) + 1);
    put(d, "}");
}

static void put_quota(drawn *d)
{
    static const char *const formats[] = {"auto", "epoch", "epochMs", "delta", "duration", "iso8601", "httpDate"};
    const bool learns = maybe(d);

    put(d, ",\"kind\":\"quota\"");
    put_window(d);
    if (learns) {
        put(d, ",\"max\":\"auto\",\"initialMax\":%s", number(d));
    } else {
        put(d, ",\"max\":%s", number(d));
    }
    if (learns || maybe(d)) {
        put(d, ",\"sync\":{\"limitHeader\":\"X-L\",\"resetFormat\":\"%s\",\"standard\":%s}", PICK(d, formats),
            maybe(d) ? "true" : "false");
    }
    if (maybe(d))
        put(d, ",\"whenExhausted\":\"wait\"");
    if (maybe(d))
        put(d, ",\"arrival\":\"%s\"", maybe(d) ? "0" : "90s");
}

static const char *ratio(drawn *d)
{
    static const char *const words[] = {"1/3", "50%", "0.125", "999999/1000000", "0%"};

    return PICK(d, words);
}

static void put_share(drawn *d)
{
    static const char *const weights[] = {"1", "1000000", "{}", "{\"weight\":3,\"lend\":\"1/3\"}", "{\"lend\":\"0%\"}"};
    const uint64_t horizon = choose(d->c, 1000) + 1;

    put(d, ",\"kind\":\"share\",\"reclaimHorizon\":\"%" PRIu64 "us\",\"idleAfter\":\"%" PRIu64 "us\"", horizon,
        horizon + choose(d->c, 1000) + 1);
    put(d, ",\"ceiling\":%s", number(d));
    put(d, ",\"tenants\":{\"%s\":%s,\"12\":%s}", name(d), PICK(d, weights), PICK(d, weights));
    if (maybe(d))
        put(d, ",\"unknownTenant\":\"%s\"", maybe(d) ? "12" : "refuse");
    if (maybe(d))
        put(d, ",\"lend\":\"%s\"", ratio(d));
    if (maybe(d))
        put(d, ",\"freeze\":\"%s\"", maybe(d) ? "tenant" : "wanted");
    if (maybe(d))
        put(d, ",\"cooldown\":\"%s\"", duration(d));
}

static void put_adaptive(drawn *d)
{
    const uint64_t lowest = choose(d->c, 9) + 1;
    const uint64_t initial = lowest + choose(d->c, 100);

    put(d, ",\"kind\":\"adaptive\",\"initialLimit\":%" PRIu64, initial);
    if (maybe(d))
        put(d, ",\"minLimit\":%" PRIu64 ",\"maxLimit\":%" PRIu64, lowest, initial + choose(d->c, 100));
    if (maybe(d))
        put(d, ",\"leaseTtl\":\"%s\"", duration(d));
    if (maybe(d)) {
        put(d,
            ",\"aimd\":{\"decreaseFactor\":\"1/%" PRIu64 "\",\"increaseStep\":2,\"window\":\"%s\",\"cooldown\":\"%s\"}",
            choose(d->c, 9) + 2, duration(d), duration(d));
    }
    if (maybe(d))
        put(d, ",\"classes\":{\"%s\":{\"reservedShare\":\"%s\"},\"12\":{}}", name(d), ratio(d));
    if (maybe(d))
        put(d, ",\"recovery\":\"%s\"", maybe(d) ? "step" : "fast");
    if (maybe(d))
        put(d, ",\"lend\":{\"reclaimHorizon\":\"100ms\",\"idleAfter\":\"1%s\"}", maybe(d) ? "s" : "m");
    if (maybe(d))
        put(d, ",\"pauseOnRetryAfter\":%s", maybe(d) ? "true" : "false");
}

static void put_recovery(drawn *d)
{
    const bool by_check = maybe(d);
    const bool idle = maybe(d);

    if (by_check || maybe(d))
        put(d, ",\"recovery\":\"%s\"", by_check ? "healthCheck" : "probe");
    if (!by_check && maybe(d))
        put(d, ",\"probe\":{\"n\":%" PRIu64 "}", choose(d->c, 4) + 1);
    if (by_check || idle) {
        put(d, ",\"healthCheck\":{\"path\":\"/health\"%s%s}", maybe(d) ? ",\"method\":\"HEAD\"" : "",
            maybe(d) ? ",\"expect\":[200,204]" : "");
    }
    if (idle)
        put(d, ",\"idleProbe\":{\"interval\":\"%s\"%s}", duration(d), maybe(d) ? ",\"failures\":3" : "");
    if (maybe(d))
        put(d, ",\"scope\":{\"by\":[\"account\"%s]}", by_check || idle ? ",\"target\"" : ",\"var:x\"");
}

static void put_breaker(drawn *d)
{
    static const char *const factors[] = {"1", "2", "1.5", "1.00001", "1000"};

    put(d, ",\"breaker\":{");
    switch (choose(d->c, 2)) {
    case 0:
        put(d, "\"strategy\":\"consecutive\",\"threshold\":%" PRIu64, choose(d->c, 9) + 1);
        break;
    case 1:
        put(d, "\"strategy\":\"count\",\"threshold\":\"1/%" PRIu64 "\",\"size\":%" PRIu64, choose(d->c, 9) + 1,
            choose(d->c, 99) + 10);
        break;
    default:
        put(d, "\"strategy\":\"sampling\",\"duration\":\"%s\",\"minimumCalls\":%" PRIu64, duration(d),
            choose(d->c, 99) + 1);
        break;
    }
    put_recovery(d);
    if (maybe(d)) {
        put(d, ",\"backoff\":{\"delay\":\"%s\"}", duration(d));
    } else if (maybe(d)) {
        put(d, ",\"backoff\":{\"initial\":\"1s\",\"multiplier\":%s%s}", PICK(d, factors),
            maybe(d) ? ",\"max\":\"1h\"" : "");
    }
    put(d, "}");
}

static void put_limit(drawn *d, size_t index)
{
    static const char *const scopes[] = {"\"account\"", "\"account\",\"var:x\"", "\"instance\"",
                                         "\"credential\",\"tenant\"", ""};

    const uint64_t kind = choose(d->c, 4);

    put(d, "%s{\"name\":\"l%zu\"", index > 0 ? "," : "", index);
    switch (kind) {
    case 0:
        put(d, ",\"kind\":\"concurrency\",\"max\":%s", number(d));
        break;
    case 1:
        put_rate(d);
        break;
    case 2:
        put_share(d);
        break;
    case 3:
        put_adaptive(d);
        break;
    default:
        put_quota(d);
        break;
    }
    put(d, ",\"scope\":{\"by\":[%s]}", index == 0 ? "\"account\"" : PICK(d, scopes));
    if (kind == 2 || maybe(d))
        put(d, ",\"counts\":\"%s\"", maybe(d) ? "cost" : "requests");
    if (maybe(d))
        put(d, ",\"enforce\":\"%s\"", maybe(d) ? "shadow" : "on");
    if (maybe(d))
        put(d, ",\"maxKeys\":%" PRIu64, choose(d->c, 1000) + 1);
    if (maybe(d)) {
        put(d, ",\"appliesTo\":{\"endpoints\":[\"/**\",\"/a/*\"],\"methods\":[\"GET\"],\"authRequests\":\"%s\"%s}",
            maybe(d) ? "only" : "exclude", maybe(d) ? ",\"requestsWithVar\":\"x\"" : "");
    }
    put(d, "}");
}

static void put_provider(drawn *d, size_t index)
{
    const uint64_t limits = choose(d->c, 4);

    put(d, "%s{\"name\":\"p%zu\",\"baseUrl\":\"https://h%zu/v1\",\"endpoints\":[\"/a/{x}\"", index > 0 ? "," : "",
        index, index);
    if (maybe(d)) {
        put(d, ",{\"path\":\"/b/**\"");
        put_defaults(d);
        put(d, "}");
    }
    put(d, "],\"targets\":{\"eu\":\"http://eu:81/x/\"}");
    put_defaults(d);
    if (maybe(d)) {
        put(d,
            ",\"errors\":{\"rateLimited\":{\"statuses\":[429,403],\"bodyContains\":\"%s\",\"defaultPenalty\":\"%s\","
            "\"penalize\":\"all\"},\"transient\":{\"statuses\":[500]}}",
            name(d), duration(d));
    }
    if (maybe(d))
        put(d, ",\"outcome\":{\"throttled\":[429,529]%s}", maybe(d) ? ",\"failure\":[500]" : "");
    if (maybe(d))
        put_breaker(d);
    put(d, ",\"limits\":[");
    for (size_t i = 0; i <= limits; i++)
        put_limit(d, i);
    put(d, "]}");
}

static void put_account(drawn *d, size_t index, uint64_t providers)
{
    put(d, "%s{\"name\":\"a%zu\",\"provider\":\"p%" PRIu64 "\"", index > 0 ? "," : "", index, choose(d->c, providers));
    if (maybe(d))
        put(d, ",\"target\":\"%s\"", maybe(d) ? "eu" : "https://other");
    if (maybe(d))
        put(d, ",\"credential\":{\"value\":\"hunter2%s\"}", name(d));
    if (maybe(d))
        put(d, ",\"budget\":{\"share\":\"1/%" PRIu64 "\"}", choose(d->c, 9) + 1);
    if (maybe(d))
        put(d, ",\"limits\":[{\"name\":\"l0\",\"maxKeys\":7}]");
    put(d, "}");
}

static void put_config(drawn *d)
{
    const uint64_t providers = choose(d->c, 2);
    const uint64_t accounts = choose(d->c, 3);

    put(d, "{\"providers\":[");
    for (size_t i = 0; i <= providers; i++)
        put_provider(d, i);
    put(d, "],\"accounts\":[");
    for (size_t i = 0; i < accounts; i++)
        put_account(d, i, providers);
    put(d, "]");
    if (maybe(d))
        put(d, ",\"tenants\":{\"%s\":3,\"12\":1}", name(d));
    if (maybe(d)) {
        put(d,
            ",\"settings\":{\"instance\":\"%s\",\"token\":\"hunter2\",\"budget\":{\"retryReserve\":\"%" PRIu64
            "%%\"},\"queue\":{\"order\":\"fifo\",\"maxWaiters\":%" PRIu64 "}}",
            name(d), choose(d->c, 100), choose(d->c, 999) + 1);
    }
    put(d, "}");
}

static void written_and_read_it_is_the_same(choices *c, void *context)
{
    drawn d = {c, malloc(TEXT_MAX), 0};
    char *line = NULL;
    char *again = NULL;
    size_t size = 0;

    (void)context;
    CHECK(d.text != NULL);
    put_config(&d);
    NOTE(c, "%s", d.text);

    ration_config *config = config_of(d.text, &plain);

    HOLDS(c, rn_config_json(config, &line, &size) == RATION_OK);
    NOTE(c, "%s", line);
    HOLDS(c, strlen(line) == size && strchr(line, '\n') == NULL && strstr(line, "hunter2") == NULL);

    ration_config *copy = config_of(line, &recording);
    const char *differs = rules_differ(ration_config_rules(config), ration_config_rules(copy));

    if (differs != NULL)
        NOTE(c, "differs: %s", differs);
    HOLDS(c, differs == NULL);
    HOLDS(c, rn_config_json(copy, &again, &size) == RATION_OK);
    HOLDS(c, strcmp(line, again) == 0);
    rn_mem_free(rn_mem_default(), line);
    rn_mem_free(rn_mem_default(), again);
    ration_config_free(config);
    ration_config_free(copy);
    free(d.text);
}

static void recordings_hold_the_config(void **state)
{
    (void)state;
    property_check("written and read it is the same", written_and_read_it_is_the_same, NULL, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recordings_hold_the_config)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
