/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a trace: first as JSON, with jansson as the judge of what is valid and what it means; then as the lines
 * of a trace and through an engine, where nothing may crash, hang or leak whatever they say.
 *
 * jansson refuses numbers that do not fit its types and names with a NUL, and nests deeper than we do: there the two
 * may differ. It overlooks a NUL between values, too.
 */
#include <jansson.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "trace/canonical.h"
#include "trace/json.h"
#include "trace/reader.h"
#include "trace/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

static const size_t flags = JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL;

/* jansson and we find the same valid. */
static void validity(ration_text text, const json_t *judged, const json_error_t *error)
{
    rn_json json;
    rn_json_value value;

    rn_json_init(&json, text);

    const bool good = rn_json_value_next(&json, &value) && rn_json_end(&json);
    const bool deep = !good && strcmp(json.fault, "nested too deeply") == 0;
    const enum json_error_code code = judged == NULL ? json_error_code(error) : json_error_unknown;
    const bool beyond = code == json_error_numeric_overflow || code == json_error_null_byte_in_key;

    MUST(good == (json.fault == NULL));
    MUST(json.fault_at <= text.size);
    if (!deep && !beyond && (good || memchr(text.data, 0, text.size) == NULL))
        MUST(good == (judged != NULL));
}

/* Our one form of a value means to jansson what the value means. */
static void meaning(ration_text text, json_t *judged)
{
    json_error_t error;
    rn_output out;

    rn_output_init(&out, rn_mem_default(), SIZE_MAX / 2);
    if (rn_trace_canonical(text, rn_mem_default(), &out) == RATION_OK) {
        json_t *const again = json_loadb(out.data, out.size, flags, &error);

        MUST(again != NULL);
        if (json_is_object(judged))
            (void)json_object_del(judged, "explanation");
        MUST(json_equal(judged, again));
        json_decref(again);
    }
    rn_output_fini(&out);
}

static void lines(ration_text text)
{
    rn_trace_reader reader;
    rn_trace_line line;
    rn_trace_fault fault;

    rn_trace_reader_init(&reader, rn_mem_default());
    while (text.size > 0) {
        const char *const end = memchr(text.data, '\n', text.size);
        const size_t used = end != NULL ? (size_t)(end - text.data) : text.size;
        const int err = rn_trace_read(&reader, (ration_text){text.data, used}, &line, &fault);

        if (err == RATION_ERR_SYNTAX)
            MUST(fault.line == reader.number && fault.column >= 1 && fault.text[0] != '\0');
        text.data += end != NULL ? used + 1 : used;
        text.size -= end != NULL ? used + 1 : used;
    }
    rn_trace_reader_fini(&reader);
}

/* The whole as a body of each call of the API: a fault has words and a member that is UTF-8. */
static void bodies(ration_text text)
{
    static const rn_trace_op ops[] = {RN_TRACE_ACQUIRE, RN_TRACE_CHECK, RN_TRACE_RELEASE, RN_TRACE_OBSERVE,
                                      RN_TRACE_RENEW};
    rn_trace_reader reader;
    rn_trace_line asked;
    rn_trace_fault fault;

    rn_trace_reader_init(&reader, rn_mem_default());
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        const int err = rn_trace_read_body(&reader, ops[i], text, &asked, &fault);

        if (err == RATION_ERR_SYNTAX) {
            MUST(fault.column >= 1 && fault.text[0] != '\0');
            MUST(rn_text_is_utf8(ration_text_of(fault.member)));
        } else if (err == RATION_OK) {
            MUST(asked.op == ops[i]);
            MUST(asked.id.size > 0 || ops[i] == RN_TRACE_ACQUIRE || ops[i] == RN_TRACE_CHECK);
        }
    }
    rn_trace_reader_fini(&reader);
}

/* What comes out is JSON, a line at a time. */
static int line_check(void *ctx, const char *line, size_t size)
{
    rn_json json;
    rn_json_value value;

    (void)ctx;
    rn_json_init(&json, (ration_text){line, size});
    MUST(line[size - 1] == '\n' && rn_json_value_next(&json, &value) && rn_json_end(&json));
    return 0;
}

/* The same lines through an engine, whose rules are not the input's to choose: that is another target. */
static void replay(ration_text text)
{
    static const char *const by_account[] = {"account"};
    static const ration_tenant_share tenants[] = {{.name = "a", .weight = 1}, {.name = "b", .weight = 1}};
    static const ration_class_rule classes[] = {{"x", {1, 2}}, {"y", {0, 0}}};
    static const ration_limit_rule limits[] = {
        {.name = "rate",
         .kind = RATION_KIND_RATE,
         .rate = {10000000, 1000000},
         .burst = 2000000,
         .margin = RATION_UNSET,
         .scope = by_account,
         .scope_count = 1},
        {.name = "slots", .kind = RATION_KIND_CONCURRENCY, .max = 1000000, .scope = by_account, .scope_count = 1},
        {.name = "quota",
         .kind = RATION_KIND_QUOTA,
         .max = 5000000,
         .window = {.period = RATION_PERIOD_MINUTE},
         .arrival_us = RATION_UNSET,
         .sync = {"X-Limit", "X-Remaining", "X-Reset", RATION_RESET_AUTO, false}},
        {.name = "share",
         .kind = RATION_KIND_SHARE,
         .counts = RATION_COUNTS_COST,
         .scope = by_account,
         .scope_count = 1,
         .requests_with_var = "s",
         .share = {.ceiling = 10000000,
                   .tenants = tenants,
                   .tenant_count = 2,
                   .reclaim_horizon_us = 100000,
                   .idle_after_us = 200000,
                   .unknown_tenant = "b"}},
        {.name = "adaptive",
         .kind = RATION_KIND_ADAPTIVE,
         .scope = by_account,
         .scope_count = 1,
         .requests_with_var = "a",
         .adaptive = {.initial_limit = 2, .window_us = 1000000, .classes = classes, .class_count = 2}},
    };
    static const ration_provider_rule provider = {
        .name = "p",
        .limits = limits,
        .limit_count = 5,
        .breaker = {.strategy = RATION_BREAKER_CONSECUTIVE, .threshold = 2, .idle_interval_us = 1000000},
        .defaults = {.cost = RATION_UNSET, .hold_us = RATION_UNSET}};
    static const ration_account_rule account = {.name = "acc", .provider = "p"};
    static const ration_rules rules = {
        .providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const rn_replay_options options = {.rules = &rules, .write = line_check};
    rn_replay *run = NULL;

    MUST(rn_replay_new(&options, &run) == RATION_OK);

    const int err = rn_replay_feed(run, text.data, text.size);

    MUST(rn_replay_finish(run) == err || err == RATION_OK);
    MUST(err == RATION_OK || err == RATION_ERR_SYNTAX);
    rn_replay_free(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ration_text text = {(const char *)data, size};
    json_error_t error;
    json_t *const judged = json_loadb(text.data, size, flags | JSON_REJECT_DUPLICATES, &error);

    if (judged != NULL || json_error_code(&error) != json_error_duplicate_key)
        validity(text, judged, &error);
    if (judged != NULL)
        meaning(text, judged);
    json_decref(judged);
    lines(text);
    bodies(text);
    replay(text);
    return 0;
}
