/* SPDX-License-Identifier: MIT */
/*
 * Header fields from anywhere: lines of "name: value" are a response, and a quota learns from it, twice and out of
 * order.
 *
 * Whatever is read must be within the range of the engine, and a counter that has learned must still answer.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/fields.h"
#include "core/limit.h"

#define HEADERS 32
#define NOW INT64_C(1700000000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static size_t split(ration_text text, ration_header *headers)
{
    size_t count = 0;

    while (count < HEADERS && text.size > 0) {
        size_t line = 0;
        size_t colon = 0;

        if (!rn_text_find(text, ration_text_of("\n"), &line))
            line = text.size;

        const ration_text whole = rn_text_slice(text, 0, line);

        if (rn_text_find(whole, ration_text_of(":"), &colon)) {
            headers[count].name = rn_text_slice(whole, 0, colon);
            headers[count++].value = rn_text_slice(whole, colon + 1, whole.size);
        }
        text = rn_text_slice(text, line + 1, text.size);
    }
    return count;
}

static void read_all(const ration_response *response)
{
    const ration_time now = {NOW};
    ration_time at = {0};

    if (rn_field_retry_after(response, now, &at) == RN_FIELD_OK)
        must(at.us <= RATION_TIME_MAX_US);
    for (size_t i = 0; i < response->header_count; i++) {
        const ration_text value = response->headers[i].value;
        int64_t count = 0;

        if (rn_field_count(value, &count) == RN_FIELD_OK)
            must(count >= 0 && count <= RATION_UNITS_MAX);
        for (int format = RATION_RESET_AUTO; format <= (int)RATION_RESET_HTTP_DATE; format++) {
            if (rn_field_reset(value, (ration_reset_format)format, now, &at) == RN_FIELD_OK)
                must(at.us <= RATION_TIME_MAX_US && at.us >= -RATION_TIME_MAX_US);
        }
    }
}

static void grant(rn_counter *counter, ration_time now, rn_hold *hold, uint64_t order)
{
    const rn_ask ask = {.charge = RATION_UNIT};

    hold->granted_at = now;
    hold->ends_at.us = RATION_NEVER_US;
    hold->order = order;
    counter->limit->kind->take(counter, now, &ask, hold);
    TAILQ_INSERT_TAIL(&counter->holds, hold, next);
}

static void learn(const ration_response *response, ration_period period)
{
    const ration_limit_rule rule = {
        .name = "q",
        .kind = RATION_KIND_QUOTA,
        .max = 10 * RATION_UNIT,
        .arrival_us = RATION_UNSET,
        .window = {.period = period, .rolling_us = period == RATION_PERIOD_NONE ? INT64_C(3600000000) : 0},
        .sync = {.limit_header = "l", .remaining_header = "r", .reset_header = "t", .standard = true},
    };
    rn_limit limit = {.rule = &rule, .kind = &rn_kind_quota, .reserve = {1, 10}};
    rn_counter counter = {.limit = &limit, .mem = rn_mem_default(), .share = {1, 2}};
    ration_fault fault;
    rn_hold holds[3] = {0};
    ration_time now = {NOW};

    TAILQ_INIT(&counter.holds);
    must(limit.kind->prepare(&limit, &fault) == RATION_OK);
    must(limit.kind->init(&counter, now) == RATION_OK);
    for (size_t i = 0; i < 3; i++)
        grant(&counter, rn_time_add(now, (int64_t)i), &holds[i], i + 1);
    for (size_t i = 0; i < 6; i++) {
        const rn_reply reply = {.response = response, .rate_limited = i % 2 == 1};
        const rn_ask ask = {.charge = RATION_UNIT, .deadline = now};
        ration_counter_report report = {0};
        rn_verdict verdict;

        now = rn_time_add(now, (int64_t)(i * i * i) * 100000000);
        limit.kind->observe(&counter, now, &holds[(i * 2) % 3], &reply);
        limit.kind->describe(&counter, now, &report);
        limit.kind->check(&counter, now, &ask, &verdict);
        must(report.usable - report.reserve >= RATION_UNIT || report.max == rule.max);
        must(report.remaining >= 0 && report.external >= 0 && report.used >= 0);
        must(!report.has_window || (report.window_start.us <= now.us && now.us < report.window_end.us));
        must(verdict.fit == RN_FIT_NOW || verdict.at.us > now.us);
    }
    for (size_t i = 0; i < 3; i++) {
        limit.kind->give_back(&counter, now, &holds[i]);
        TAILQ_REMOVE(&counter.holds, &holds[i], next);
    }
    limit.kind->fini(&counter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ration_text text = {(const char *)data, size};
    ration_header headers[HEADERS];
    const ration_response response = {.status = 429, .headers = headers, .header_count = split(text, headers)};

    read_all(&response);
    learn(&response, RATION_PERIOD_HOUR);
    learn(&response, RATION_PERIOD_MONTH);
    learn(&response, RATION_PERIOD_NONE);
    return 0;
}
