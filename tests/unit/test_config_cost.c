/* SPDX-License-Identifier: MIT */
/* Where a call's cost is told: what a config says of it, for a provider and for its endpoints, and what is wrong. */
#include "support/config.h"

#include <stdio.h>

#include "base/mem.h"

#define UNIT RATION_UNIT
#define MIB INT64_C(1048576)

static const ration_config_options plain = {.salt = "salt", .salt_size = 4, .instance = "here"};

static const struct {
    const char *why;
    const char *provider;
    const char *endpoint;
    /* of the endpoint, as it is looked up */
    const char *estimate_header;
    const char *estimate_pointer;
    int64_t estimate_default;
    int64_t estimate_body;
    const char *actual_header;
    const char *actual_pointer;
} rows[] = {
    {"nothing", "", "", NULL, NULL, RATION_UNSET, MIB, NULL, NULL},
    {"a number alone", "estimate: 250", "", NULL, NULL, 250 * UNIT, MIB, NULL, NULL},
    {"the provider's", "estimate: { pointer: /max_tokens, default: 1.5, body: 64KiB }, actual: { header: X-Cost }", "",
     NULL, "/max_tokens", 1500000, 65536, "X-Cost", NULL},
    {"the endpoint's", "", "estimate: { header: X-Size }, actual: { pointer: /usage/total_tokens }", "X-Size", NULL,
     RATION_UNSET, MIB, NULL, "/usage/total_tokens"},
    {"the endpoint's estimate whole, the provider's actual",
     "estimate: { pointer: /a, default: 5, body: 0 }, actual: { pointer: /b }", "estimate: { header: E }", "E", NULL,
     RATION_UNSET, MIB, NULL, "/b"},
    {"the provider's estimate, the endpoint's actual whole", "estimate: 5, actual: { pointer: /b }",
     "actual: { header: A }", NULL, NULL, 5 * UNIT, MIB, "A", NULL},
    {"a default of nothing is one", "estimate: 5", "estimate: 0", NULL, NULL, 0, MIB, NULL, NULL},
    {"the whole body", "actual: { pointer: \"\" }", "", NULL, NULL, RATION_UNSET, MIB, NULL, ""},
    {"escapes", "actual: { pointer: /a~1b/~0 }", "", NULL, NULL, RATION_UNSET, MIB, NULL, "/a~1b/~0"},
    {"sizes", "estimate: { pointer: /a, body: 64MiB }", "estimate: { pointer: /b, body: 17 }", NULL, "/b", RATION_UNSET,
     17, NULL, NULL},
};

static const char *text_of(const rn_pointer *pointer)
{
    return pointer != NULL ? pointer->text : NULL;
}

static void each_endpoint_has_its_rule(void **state)
{
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        (void)snprintf(text, sizeof text,
                       "providers: [ { name: p, baseUrl: http://h, %s%s endpoints: [ /other, { path: /a, %s } ] } ]",
                       rows[i].provider, rows[i].provider[0] != '\0' ? "," : "", rows[i].endpoint);

        ration_config *config = config_of(text, &plain);
        const rn_provider *provider = rn_config_provider(config, 0);
        const rn_cost_rule *cost = &provider->endpoint_costs[1];

        CHECK_STR(cost->estimate_header, rows[i].estimate_header);
        CHECK_STR(text_of(cost->estimate_pointer), rows[i].estimate_pointer);
        CHECK_EQ(cost->estimate_default, rows[i].estimate_default);
        CHECK_EQ(cost->estimate_body, rows[i].estimate_body);
        CHECK_STR(cost->actual_header, rows[i].actual_header);
        CHECK_STR(text_of(cost->actual_pointer), rows[i].actual_pointer);
        /* One that is silent has the provider's. */
        CHECK_EQ(memcmp(&provider->endpoint_costs[0], &provider->cost, sizeof provider->cost), 0);
        ration_config_free(config);
    }
}

static void steps_are_ready_to_compare(void **state)
{
    ration_config *config =
        config_of("providers: [ { name: p, baseUrl: http://h, actual: { pointer: /a~1b/0 } } ]", &plain);
    const rn_pointer *pointer = rn_config_provider(config, 0)->cost.actual_pointer;

    (void)state;
    CHECK_EQ(pointer->count, 2);
    CHECK_TEXT(pointer->tokens[0], "a/b");
    CHECK_TEXT(pointer->tokens[1], "0");
    ration_config_free(config);
}

/* A recording's calls say what they cost. */
static void a_recording_leaves_them_out(void **state)
{
    ration_config *config = config_of("providers: [ { name: p, baseUrl: http://h, estimate: 7, actual: { header: A }, "
                                      "endpoints: [ { path: /a, estimate: { pointer: /b } } ] } ]",
                                      &plain);
    char *line = NULL;
    size_t size = 0;

    (void)state;
    CHECK_EQ(rn_config_json(config, &line, &size), RATION_OK);
    CHECK(strstr(line, "estimate") == NULL && strstr(line, "actual") == NULL);
    rn_mem_free(rn_mem_default(), line);
    ration_config_free(config);
}

static const struct {
    const char *why;
    const char *provider;
    const char *want; /* behind "f:1:COLUMN: providers[0]." */
} faulty[] = {
    {"not a pointer", "actual: { pointer: usage }",
     "64: providers[0].actual.pointer: 'usage' is not a JSON pointer such as /usage/total_tokens\n"},
    {"a tilde that stands for nothing", "actual: { pointer: /a~b }",
     "64: providers[0].actual.pointer: '/a~b' is not a JSON pointer such as /usage/total_tokens\n"},
    {"too many steps", "actual: { pointer: /////////////////////////////////a }",
     "64: providers[0].actual.pointer: '/////////////////////////////////a' is out of range (it must be a JSON pointer "
     "such as /usage/total_tokens)\n"},
    {"from both", "actual: { pointer: /a, header: B }",
     "64: providers[0].actual.pointer: a cost comes from a header or from a pointer, not from both\n"},
    {"from both, for an estimate", "estimate: { header: B, pointer: /a }",
     "77: providers[0].estimate.pointer: a cost comes from a header or from a pointer, not from both\n"},
    {"from nowhere", "actual: {}",
     "53: providers[0].actual: an actual cost needs 'header' or 'pointer' (such as { pointer: /usage/total_tokens "
     "})\n"},
    {"an estimate from nowhere", "estimate: { body: 1MiB }",
     "55: providers[0].estimate: an estimate needs 'header', 'pointer' or 'default' (such as { pointer: /max_tokens, "
     "default: 1000 })\n"
     "63: providers[0].estimate.body: 'body' goes with 'pointer' only\n"},
    {"a size of other units", "estimate: { pointer: /a, body: 1MB }",
     "76: providers[0].estimate.body: '1MB' is not a size of at most 64MiB, such as 65536, 256KiB or 1MiB\n"},
    {"a unit alone", "estimate: { pointer: /a, body: MiB }",
     "76: providers[0].estimate.body: 'MiB' is not a size of at most 64MiB, such as 65536, 256KiB or 1MiB\n"},
    {"too large", "estimate: { pointer: /a, body: 65MiB }",
     "76: providers[0].estimate.body: '65MiB' is out of range (it must be a size of at most 64MiB, such as 65536, "
     "256KiB or 1MiB)\n"},
    {"far too large", "estimate: { pointer: /a, body: 9223372036854775807MiB }",
     "76: providers[0].estimate.body: '9223372036854775807MiB' is out of range (it must be a size of at most 64MiB, "
     "such "
     "as 65536, 256KiB or 1MiB)\n"},
    {"below zero", "estimate: { pointer: /a, body: -1 }",
     "76: providers[0].estimate.body: '-1' is out of range (it must be a size of at most 64MiB, such as 65536, 256KiB "
     "or "
     "1MiB)\n"},
    {"a list", "actual: [ /a ]", "53: providers[0].actual: must be a map of keys\n"},
};

static void each_fault_is_told(void **state)
{
    char text[512];
    char want[1024];
    char got[2048];

    (void)state;
    for (size_t i = 0; i < sizeof faulty / sizeof faulty[0]; i++) {
        const char *line = faulty[i].want;
        size_t used = 0;

        CHECK_ROW(faulty[i].why);
        (void)snprintf(text, sizeof text, "providers: [ { name: p, baseUrl: http://h,  %s } ]", faulty[i].provider);
        for (; *line != '\0'; line = strchr(line, '\n') + 1)
            used += (size_t)snprintf(want + used, sizeof want - used, "f:1:%.*s\n", (int)strcspn(line, "\n"), line);
        faults_of(text, strlen(text), &plain, got, sizeof got);
        CHECK_STR(got, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_endpoint_has_its_rule),
        cmocka_unit_test(steps_are_ready_to_compare),
        cmocka_unit_test(a_recording_leaves_them_out),
        cmocka_unit_test(each_fault_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
