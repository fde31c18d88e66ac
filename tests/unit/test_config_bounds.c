/* SPDX-License-Identifier: MIT */
/*
 * Texts that are too large, too deep or too many, and a machine without memory: an error each time, and nothing lost.
 */
#include "support/config.h"
#include "support/failalloc.h"

#include <stdio.h>

#include "base/mem.h"

#define MIB ((size_t)1024 * 1024)

static const ration_config_options recording = {.recording = true};

/* The first fault of a text, or "" if it loads. */
static void first_fault(ration_text text, char *line, size_t size, size_t *count)
{
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};
    const int err = ration_config_parse(text, "f", &recording, &config, &faults);

    CHECK_EQ(err, faults.count > 0 ? RATION_ERR_CONFIG : RATION_OK);
    line[0] = '\0';
    if (faults.count > 0)
        (void)ration_config_fault_text(&faults.items[0], line, size);
    *count = faults.count;
    ration_config_faults_fini(&faults);
    ration_config_free(config);
}

/* `head`, then `piece` so often, then `tail`. */
static char *repeated(const char *head, const char *piece, size_t times, const char *tail)
{
    char *text = malloc(strlen(head) + strlen(piece) * times + strlen(tail) + 1);
    char *end = text;

    CHECK(text != NULL);
    end = stpcpy(end, head);
    for (size_t i = 0; i < times; i++)
        end = stpcpy(end, piece);
    (void)stpcpy(end, tail);
    return text;
}

static const struct {
    const char *why;
    const char *head;
    const char *piece;
    size_t times;
    const char *tail;
    const char *want; /* its beginning */
} large[] = {
    {"too many bytes", "# ", "0123456789abcdef", MIB, "\n", "f: the file is larger than 16 MiB"},
    {"as many as allowed", "# ", "0123456789abcdef", MIB - 1, "\n", "f:1:1: the file is empty"},
    {"too deep, YAML", "a: ", "[ ", 100, "", "f:1:130: the file has too many values"},
    {"too deep, JSON", "{\"a\":", "[", 100, "", "f:1:69: the file has too many values"},
    {"so deep that a machine would fall over", "a: ", "[", 15 * MIB, "", "f:1:"},
    {"deep and JSON", "{\"a\":", "[", 15 * MIB, "", "f:1:69: the file has too many values"},
    {"too many", "{\"a\":[", "1,", 1000000, "1]}", "f:1:2000001: the file has too many values"},
    {"a long line", "providers: [", "{}, ", 3000, "]", "f:1:13: providers[0]: the key 'name' is missing"},
    {"a long name", "{\"providers\":[{\"name\":\"", "n", 1000, "\"}]}", "f:1:23: providers[0].name: 'nnnnnnnnnn"},
    {"a long key", "{\"", "k", 2000, "\":1}", "f:1:2: kkkkkkkkkk"},
};

static void too_much_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        char *text = repeated(large[i].head, large[i].piece, large[i].times, large[i].tail);
        char line[1024];
        size_t count = 0;

        CHECK_ROW(large[i].why);
        first_fault(ration_text_of(text), line, sizeof line, &count);
        line[strlen(large[i].want)] = '\0';
        CHECK_STR(line, large[i].want);
        free(text);
    }
}

static void faults_have_an_end(void **state)
{
    char *text = repeated("tenants: {a: 1", ", a: 0", 5000, "}");
    char line[1024];
    size_t count = 0;

    (void)state;
    first_fault(ration_text_of(text), line, sizeof line, &count);
    CHECK_EQ(count, 1001);
    free(text);
}

static void aliases_of_aliases_are_counted(void **state)
{
    char text[4096] = "a0: &a0 [x]\n";
    char line[1024];
    size_t count = 0;

    (void)state;
    for (size_t i = 1; i < 12; i++) {
        const size_t used = strlen(text);

        (void)snprintf(text + used, sizeof text - used,
                       "a%zu: &a%zu [*a%zu,*a%zu,*a%zu,*a%zu,*a%zu,*a%zu,*a%zu,*a%zu]\n", i, i, i - 1, i - 1, i - 1,
                       i - 1, i - 1, i - 1, i - 1, i - 1);
    }
    first_fault(ration_text_of(text), line, sizeof line, &count);
    line[4] = '\0';
    CHECK_STR(line, "f:8:");
}

/* A hundred thousand tenants and accounts are no reason to wait. */
static void many_names_take_no_time(void **state)
{
    const size_t count = 50000;
    char *text = malloc(count * 64 + 256);
    size_t used = 0;

    (void)state;
    CHECK(text != NULL);
    used += (size_t)sprintf(text, "{\"providers\":[{\"name\":\"p\"}],\"tenants\":{\"t\":1");
    for (size_t i = 0; i < count; i++)
        used += (size_t)sprintf(text + used, ",\"t%zu\":%zu", i, i % 7 + 1);
    used += (size_t)sprintf(text + used, "},\"accounts\":[{\"name\":\"a\",\"provider\":\"p\"}");
    for (size_t i = 0; i < count; i++)
        used += (size_t)sprintf(text + used, ",{\"name\":\"a%zu\",\"provider\":\"p\"}", i);
    (void)sprintf(text + used, "]}");

    ration_config *config = config_of(text, &recording);

    CHECK_EQ(ration_config_rules(config)->tenant_count, count + 1);
    CHECK_STR(rn_config_find_account(config, ration_text_of("a4711"))->name, "a4711");
    ration_config_free(config);
    free(text);
}

static const char whole[] =
    "settings: { instance: i, token: \"${T}\", queue: { order: fifo } }\n"
    "tenants: { a: 1, b: 2 }\n"
    "providers:\n"
    "- name: p\n"
    "  baseUrl: http://h/v1\n"
    "  targets: { eu: http://eu }\n"
    "  endpoints: [ /a/{x}, { path: /b/**, hold: auto } ]\n"
    "  outcome: { throttled: [429], failure: [500] }\n"
    "  breaker: { strategy: count, recovery: healthCheck, healthCheck: { path: /, expect: [200] }, scope: { by: "
    "[account] "
    "} }\n"
    "  limits:\n"
    "  - { name: r, kind: rate, rate: 10/s, scope: { by: [account, \"var:x\"] } }\n"
    "  - { name: q, kind: quota, max: 5, window: { period: day, timezone: Europe/Paris }, scope: { by: [account] } }\n"
    "  - { name: s, kind: share, counts: cost, ceiling: { follows: d }, tenants: { a: 1, b: { lend: 50% } }, "
    "reclaimHorizon: 1s, idleAfter: 2s, unknownTenant: a, scope: { by: [account] } }\n"
    "  - { name: d, kind: adaptive, initialLimit: 2, classes: { x: { reservedShare: 50% }, y: {} }, scope: { by: "
    "[account] } }\n"
    "accounts:\n"
    "- { name: a, provider: p, target: eu, credential: { value: s }, limits: [ { name: q, max: 6 }, { name: d, "
    "minLimit: 2 } ] "
    "}\n";

static const char faulty[] = "settings: { queue: { order: fiar } }\nproviders: [ { name: p, name: q, colour: red } ]\n";

static const char used[] =
    "providers: [ { use: stripe, limits: [ { name: global, max: 25 }, { name: n, kind: concurrency, max: 1 } ], "
    "errors: { transient: { statuses: [500] } } } ]\n";

static const char unused[] = "providers: [ { use: srtipe }, { use: ./here.yaml } ]\n";

static const char *variable(void *ctx, const char *name)
{
    (void)ctx;
    return strcmp(name, "T") == 0 ? "t" : NULL;
}

/* One load whose allocation number `at` fails. */
static int load_without(failalloc *fail, uint64_t at, const char *text)
{
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};
    ration_config_options options = {
        .salt = "s", .salt_size = 1, .instance = "i", .variable = variable, .provider_dir = "share/ration/providers"};

    failalloc_init(fail, at);
    options.allocator = &fail->allocator;

    const int err = ration_config_parse(ration_text_of(text), "f", &options, &config, &faults);

    if (err == RATION_OK) {
        char *line = NULL;
        size_t size = 0;

        if (rn_config_json(config, &line, &size) == RATION_OK)
            rn_mem_free(&fail->allocator, line);
    }
    CHECK((config != NULL) == (err == RATION_OK));
    CHECK((faults.count > 0) == (err == RATION_ERR_CONFIG));
    ration_config_faults_fini(&faults);
    ration_config_free(config);
    CHECK_EQ(fail->live, 0);
    return err;
}

static void without_memory_nothing_is_lost(void **state)
{
    static const struct {
        const char *text;
        int want;
    } loads[] = {{whole, RATION_OK}, {faulty, RATION_ERR_CONFIG}, {used, RATION_OK}, {unused, RATION_ERR_CONFIG}};

    (void)state;
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        failalloc fail = {.failed = true};
        int err = RATION_OK;

        for (uint64_t at = 0; fail.failed; at++) {
            err = load_without(&fail, at, loads[i].text);
            CHECK(err == loads[i].want || (fail.failed && err == RATION_ERR_NOMEM));
        }
        CHECK_EQ(err, loads[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(faults_have_an_end),
        cmocka_unit_test(aliases_of_aliases_are_counted),
        cmocka_unit_test(many_names_take_no_time),
        cmocka_unit_test(without_memory_nothing_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
