/* SPDX-License-Identifier: MIT */
/* What a request will cost, and what its response says that it has cost: by fields, bodies and streams, in pieces. */
#include "serve/cost.h"

#include "base/mem.h"
#include "base/text.h"

#include "support/check.h"

static const ration_text usage_token[] = {{"usage", 5}, {"total", 5}};
static const rn_pointer usage_pointer = {"/usage/total", usage_token, 2};
static const ration_text max_token[] = {{"max", 3}};
static const rn_pointer max_pointer = {"/max", max_token, 1};

#define UNIT RATION_UNIT

/* ---- usage */

typedef struct usage_row {
    const char *why;
    bool header, pointer; /* what the rule has */
    const char *field;    /* X-Cost of the response; NULL: none */
    const char *type;     /* its Content-Type */
    const char *coding;   /* its Content-Encoding; NULL: none */
    const char *body;
    bool broken; /* it does not come to its end */
    rn_cost_source source;
    rn_usage_fault fault;
    int64_t micro;
} usage_row;

#define JSON_TYPE "application/json"
#define STREAM_TYPE "text/event-stream"
#define NONE RN_COST_ESTIMATE

static const usage_row usage_rows[] = {
    {"in a field", true, false, "12.5", JSON_TYPE, NULL, "x", false, RN_COST_HEADER, RN_USAGE_FINE, 12500000},
    {"a field before the body", true, true, "3", JSON_TYPE, NULL, "{\"usage\":{\"total\":7}}", false, RN_COST_HEADER,
     RN_USAGE_FINE, 3 * UNIT},
    {"no field: the body", true, true, NULL, JSON_TYPE, NULL, "{\"usage\":{\"total\":7}}", false, RN_COST_POINTER,
     RN_USAGE_FINE, 7 * UNIT},
    {"a field that is no number: the body", true, true, "many", JSON_TYPE, NULL, "{\"usage\":{\"total\":7}}", false,
     RN_COST_POINTER, RN_USAGE_FINE, 7 * UNIT},
    {"zero is a cost", true, true, "0", JSON_TYPE, NULL, "", false, RN_COST_HEADER, RN_USAGE_FINE, 0},
    {"a field below zero", true, false, "-1", JSON_TYPE, NULL, "", false, NONE, RN_USAGE_UNUSABLE, RATION_UNSET},
    {"NaN", true, false, "NaN", JSON_TYPE, NULL, "", false, NONE, RN_USAGE_UNUSABLE, RATION_UNSET},
    {"an empty field", true, false, "", JSON_TYPE, NULL, "", false, NONE, RN_USAGE_UNUSABLE, RATION_UNSET},
    {"a number and more", true, false, "7 tokens", JSON_TYPE, NULL, "", false, NONE, RN_USAGE_UNUSABLE, RATION_UNSET},
    {"huge", true, false, "1e300", JSON_TYPE, NULL, "", false, NONE, RN_USAGE_UNUSABLE, RATION_UNSET},
    {"the largest", true, false, "9007199254.740992", JSON_TYPE, NULL, "", false, RN_COST_HEADER, RN_USAGE_FINE,
     RATION_UNITS_MAX},
    {"above the largest", true, false, "9007199254.740993", JSON_TYPE, NULL, "", false, NONE, RN_USAGE_UNUSABLE,
     RATION_UNSET},
    {"no field", true, false, NULL, JSON_TYPE, NULL, "", false, NONE, RN_USAGE_ABSENT, RATION_UNSET},
    {"no number in the body", false, true, "3", JSON_TYPE, NULL, "{\"usage\":null}", false, NONE, RN_USAGE_ABSENT,
     RATION_UNSET},
    {"a text in the body", false, true, NULL, JSON_TYPE, NULL, "{\"usage\":{\"total\":\"7\"}}", false, NONE,
     RN_USAGE_UNUSABLE, RATION_UNSET},
    {"a body below zero", false, true, NULL, JSON_TYPE, NULL, "{\"usage\":{\"total\":-7}}", false, NONE,
     RN_USAGE_UNUSABLE, RATION_UNSET},
    {"a body too large", false, true, NULL, JSON_TYPE, NULL, "{\"usage\":{\"total\":1e99}}", false, NONE,
     RN_USAGE_UNUSABLE, RATION_UNSET},
    {"no JSON", false, true, NULL, "text/plain", NULL, "hello", false, NONE, RN_USAGE_ABSENT, RATION_UNSET},
    {"no body", false, true, NULL, JSON_TYPE, NULL, "", false, NONE, RN_USAGE_ABSENT, RATION_UNSET},
    {"whatever the type", false, true, NULL, NULL, NULL, "{\"usage\":{\"total\":7}}", false, RN_COST_POINTER,
     RN_USAGE_FINE, 7 * UNIT},
    {"ends before the body does", false, true, NULL, JSON_TYPE, NULL, "{\"usage\":{\"total\":7}", false, NONE,
     RN_USAGE_ABSENT, RATION_UNSET},
    {"broken off behind it", false, true, NULL, JSON_TYPE, NULL, "{\"usage\":{\"total\":7}", true, RN_COST_POINTER,
     RN_USAGE_FINE, 7 * UNIT},
    {"broken off before it", false, true, NULL, JSON_TYPE, NULL, "{\"usage\":{", true, NONE, RN_USAGE_FINE,
     RATION_UNSET},
    {"broken off amid it", false, true, NULL, JSON_TYPE, NULL, "{\"usage\":{\"total\":12", true, NONE, RN_USAGE_FINE,
     RATION_UNSET},
    {"ends amid it", false, true, NULL, JSON_TYPE, NULL, "{\"usage\":{\"total\":12", false, NONE, RN_USAGE_ABSENT,
     RATION_UNSET},
    {"compressed", false, true, NULL, JSON_TYPE, "gzip", "{\"usage\":{\"total\":7}}", false, NONE, RN_USAGE_ENCODED,
     RATION_UNSET},
    {"compressed and broken", false, true, NULL, JSON_TYPE, "br", "", true, NONE, RN_USAGE_ENCODED, RATION_UNSET},
    {"compressed, but a field tells", true, true, "3", JSON_TYPE, "gzip", "", false, RN_COST_HEADER, RN_USAGE_FINE,
     3 * UNIT},
    {"identity is none", false, true, NULL, JSON_TYPE, "Identity", "{\"usage\":{\"total\":7}}", false, RN_COST_POINTER,
     RN_USAGE_FINE, 7 * UNIT},
    {"the last event that has it", false, true, NULL, STREAM_TYPE, NULL,
     "data: {\"usage\":{\"total\":1}}\n\ndata: {\"usage\":{\"total\":9}}\n\ndata: {\"usage\":null}\n\ndata: [DONE]\n\n",
     false, RN_COST_POINTER, RN_USAGE_FINE, 9 * UNIT},
    {"a stream by a longer name", false, true, NULL, "Text/Event-Stream ; charset=utf-8", NULL,
     "event: x\r\ndata: {\"usage\":\r\ndata: {\"total\":9}}\r\n\r\n", false, RN_COST_POINTER, RN_USAGE_FINE, 9 * UNIT},
    {"a stream without", false, true, NULL, STREAM_TYPE, NULL, "data: {}\n\ndata: [DONE]\n\n", false, NONE,
     RN_USAGE_ABSENT, RATION_UNSET},
    {"a stream that breaks off", false, true, NULL, STREAM_TYPE, NULL,
     "data: {\"usage\":{\"total\":4}}\n\ndata: {\"usa", true, RN_COST_POINTER, RN_USAGE_FINE, 4 * UNIT},
    {"a stream that breaks off amid it", false, true, NULL, STREAM_TYPE, NULL,
     "data: {\"usage\":{\"total\":4}}\n\ndata: {\"usage\":{\"total\":12", true, RN_COST_POINTER, RN_USAGE_FINE,
     4 * UNIT},
    {"a stream that breaks off before it", false, true, NULL, STREAM_TYPE, NULL, "data: {}\n\nda", true, NONE,
     RN_USAGE_FINE, RATION_UNSET},
};

static rn_usage_told usage_of(const usage_row *row, size_t cut, size_t step)
{
    const rn_cost_rule rule = {.actual_header = row->header ? "X-Cost" : NULL,
                               .actual_pointer = row->pointer ? &usage_pointer : NULL};
    const ration_text body = ration_text_of(row->body);
    rn_http_field fields[3];
    size_t count = 0;
    rn_usage usage;

    if (row->field != NULL)
        fields[count++] = (rn_http_field){ration_text_of("x-cost"), ration_text_of(row->field)};
    if (row->type != NULL)
        fields[count++] = (rn_http_field){ration_text_of("Content-Type"), ration_text_of(row->type)};
    if (row->coding != NULL)
        fields[count++] = (rn_http_field){ration_text_of("Content-Encoding"), ration_text_of(row->coding)};
    rn_usage_begin(&usage, &rule, (rn_http_fields){fields, count});
    rn_usage_feed(&usage, rn_text_slice(body, 0, cut));
    for (size_t at = cut; at < body.size; at += step)
        rn_usage_feed(&usage, rn_text_slice(body, at, at + step));
    return rn_usage_end(&usage, !row->broken);
}

/* In one piece, in two cut at every byte, byte by byte. */
static void test_usage(void **state)
{
    (void)state;

    for (size_t i = 0; i < sizeof usage_rows / sizeof usage_rows[0]; i++) {
        const usage_row *row = &usage_rows[i];
        const size_t size = strlen(row->body);

        CHECK_ROW(row->why);
        for (size_t cut = 0; cut <= size; cut++) {
            const rn_usage_told told = usage_of(row, cut, cut == 0 ? 1 : size);

            CHECK_EQ(told.source, row->source);
            CHECK_EQ(told.fault, row->fault);
            CHECK_EQ(told.micro, row->micro);
        }
    }
    CHECK_ROW(NULL);
}

/* ---- estimates */

static void test_fields(void **state)
{
    static const struct {
        const char *why, *value;
        bool found;
        int64_t micro;
    } rows[] = {
        {"a number", "40", true, 40 * UNIT},
        {"with places", "0.0000001", true, 1},
        {"an exponent", " 2e3 ", true, 2000 * UNIT},
        {"zero", "0", true, 0},
        {"too large to be counted is the largest", "1e30", true, RATION_UNITS_MAX},
        {"below zero", "-1", false, 5},
        {"no number", "x", false, 5},
        {"part of one", "1e", false, 5},
        {"empty", "", false, 5},
        {"absent", NULL, false, 5},
    };
    const rn_cost_rule rule = {.estimate_header = "X-Size", .estimate_default = RATION_UNSET};
    const rn_cost_rule none = {.estimate_default = RATION_UNSET};
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_http_field field = {ration_text_of("x-size"), ration_text_of(rows[i].value)};
        const rn_http_fields fields = {&field, rows[i].value != NULL ? 1 : 0};
        int64_t micro = 5;

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_cost_in_fields(&rule, fields, &micro), rows[i].found);
        CHECK_EQ(micro, rows[i].micro);
        CHECK(!rn_cost_in_fields(&none, fields, &micro));
    }
    CHECK_ROW(NULL);
}

static void test_bodies(void **state)
{
    static const struct {
        const char *why, *body;
        bool found;
        int64_t micro;
    } rows[] = {
        {"a number", "{\"model\":\"m\",\"max\":40}", true, 40 * UNIT},
        {"the last of two", "{\"max\":40,\"max\":50}", true, 50 * UNIT},
        {"too large to be counted is the largest", "{\"max\":1e30}", true, RATION_UNITS_MAX},
        {"broken", "{\"max\":40", false, 5},
        {"null", "{\"max\":null}", false, 5},
        {"a text", "{\"max\":\"40\"}", false, 5},
        {"below zero", "{\"max\":-40}", false, 5},
        {"no JSON", "max=40", false, 5},
        {"empty", "", false, 5},
    };
    const rn_cost_rule rule = {.estimate_pointer = &max_pointer, .estimate_default = RATION_UNSET};
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_text body = ration_text_of(rows[i].body);

        CHECK_ROW(rows[i].why);
        for (size_t cut = 0; cut <= body.size; cut++) {
            rn_estimate *estimate = rn_estimate_new(&rule);
            int64_t micro = 5;

            rn_estimate_feed(estimate, rn_text_slice(body, 0, cut));
            rn_estimate_feed(estimate, rn_text_slice(body, cut, body.size));
            CHECK_EQ(rn_cost_in_body(estimate, &micro), rows[i].found);
            CHECK_EQ(micro, rows[i].micro);
            rn_estimate_free(estimate);
        }
    }
    rn_estimate_free(NULL);
    CHECK_ROW(NULL);
}

/* ---- whose rule holds */

static void test_found(void **state)
{
    static const char config[] =
        "{providers: [{name: p, baseUrl: \"http://h\", cost: 3, estimate: {default: 9}, actual: {header: X-Cost}, "
        "endpoints: ["
        "{path: /free, cost: 0}, {path: \"/m/{id}\", estimate: {pointer: /max}, cost: 4}, {path: /m/**},"
        "{path: \"/m/{id}/use\", actual: {pointer: /usage/total}}]},"
        "{name: q, baseUrl: \"http://h\", endpoints: [/x]}, {name: r, baseUrl: \"http://h\", endpoints: [{path: /x, "
        "actual: {header: X-Cost}}]},"
        "{name: s, baseUrl: \"http://h\", endpoints: [{path: /x, estimate: 1}]}],"
        "accounts: [{name: a, provider: p}]}";
    static const struct {
        const char *why, *path;
        int64_t usual;
        bool pointer, by_default, actual_pointer;
    } rows[] = {
        {"no template", "/other", 3 * UNIT, false, true, false},
        {"costs nothing", "/free", 0, false, true, false},
        {"an estimate of its own takes the place of the whole", "/m/7", 4 * UNIT, true, false, false},
        {"the more specific one", "/m/7/9", 3 * UNIT, false, true, false},
        {"an actual of its own", "/m/7/use?x", 3 * UNIT, false, true, true},
    };
    ration_config *parsed = NULL;
    ration_config_faults faults = {NULL, 0, NULL};
    rn_costs costs[4];
    (void)state;

    CHECK_EQ(ration_config_parse(ration_text_of(config), "test", NULL, &parsed, &faults), RATION_OK);
    ration_config_faults_fini(&faults);
    for (size_t i = 0; i < 4; i++) {
        const ration_provider_rule *rule = &ration_config_rules(parsed)->providers[i];
        CHECK_EQ(rn_costs_init(&costs[i], rule, rn_config_provider(parsed, i)), RATION_OK);
        CHECK_EQ(costs[i].any, i != 1);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_cost_found found = rn_costs_find(&costs[0], ration_text_of(rows[i].path));

        CHECK_ROW(rows[i].why);
        CHECK_EQ(found.usual, rows[i].usual);
        CHECK_EQ(found.rule->estimate_pointer != NULL, rows[i].pointer);
        CHECK_EQ(found.rule->estimate_default == 9 * UNIT, rows[i].by_default);
        CHECK_EQ(found.rule->actual_pointer != NULL, rows[i].actual_pointer);
    }
    CHECK_ROW(NULL);
    CHECK_EQ(rn_costs_find(&costs[1], ration_text_of("/x")).usual, UNIT);
    for (size_t i = 0; i < 4; i++)
        rn_costs_fini(&costs[i]);
    rn_costs_fini(&(rn_costs){.rule = NULL});
    ration_config_free(parsed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
