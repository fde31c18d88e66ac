/* SPDX-License-Identifier: MIT */
#include "support/sole.h"

#include <stdlib.h>

ration_engine *sole_engine(const ration_limit_rule *limit, bool enforcer, ration_ratio reserve, int64_t at_us)
{
    const ration_provider_rule provider = {.name = "p", .limits = limit, .limit_count = 1};
    const ration_account_rule account = {.name = "acc", .provider = "p"};
    const ration_rules rules = {
        .retry_reserve = reserve.den != 0 ? reserve : (ration_ratio){0, 1},
        .providers = &provider,
        .provider_count = 1,
        .accounts = &account,
        .account_count = 1,
        .enforcer = enforcer,
    };
    const ration_engine_options options = {.rules = &rules};
    ration_engine *engine = NULL;

    if (ration_engine_new(&options, ration_time_of(at_us), &engine, NULL) != RATION_OK)
        abort();
    return engine;
}

ration_decision sole_ask(ration_engine *engine, int64_t at_us, int64_t cost, const ration_request *how)
{
    const ration_request plain = RATION_REQUEST_INIT;
    ration_request request = how != NULL ? *how : plain;
    ration_decision decision;

    request.account = ration_text_of("acc");
    request.cost = cost;
    if (ration_engine_submit(engine, ration_time_of(at_us), &request, &decision) != RATION_OK)
        abort();
    return decision;
}

static void counter_keep(void *ctx, const ration_counter_report *report)
{
    *(ration_counter_report *)ctx = *report;
}

ration_counter_report sole_report(ration_engine *engine, int64_t at_us)
{
    ration_counter_report report = {0};
    const ration_reporter reporter = {.ctx = &report, .counter = counter_keep};

    if (ration_engine_report(engine, ration_time_of(at_us), RATION_REPORT_STATS, &reporter) != RATION_OK)
        abort();
    return report;
}
