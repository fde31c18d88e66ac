/* SPDX-License-Identifier: MIT */
/*
 * A clock that stepped: what of an engine must not take the step for time that has passed.
 *
 * Only credit is earned by time alone. Everything else stands at instants that somebody named: a window's end, a
 * penalty's, a deadline. Those that lie in the gap are due now, at the instant after it: nobody was there before.
 */
#include "core/engine.h"

/* Up to `before`, and then as of `after`. */
static void limit_step(const rn_limit *limit, ration_time before, ration_time after)
{
    rn_counter *counter;

    TAILQ_FOREACH (counter, &limit->counters, in_limit)
        rn_bucket_step(counter, before, after);
}

static void buckets_step(const rn_book *book, ration_time before, ration_time after)
{
    for (size_t i = 0; i < book->provider_count; i++) {
        const rn_provider *provider = &book->providers[i];

        for (size_t j = 0; j < provider->limit_count; j++) {
            if (provider->limits[j]->rule->kind == RATION_KIND_RATE)
                limit_step(provider->limits[j], before, after);
        }
    }
    for (size_t i = 0; i < book->account_count; i++) {
        const rn_account *account = &book->accounts[i];

        for (size_t j = 0; j < account->provider->limit_count; j++) {
            const rn_limit *limit = account->limits[j];

            if (limit != account->provider->limits[j] && limit->rule->kind == RATION_KIND_RATE)
                limit_step(limit, before, after);
        }
    }
}

int ration_engine_step(ration_engine *engine, ration_time now, int64_t by_us)
{
    if (engine == NULL || !rn_time_is_valid(now) || by_us <= 0)
        return RATION_ERR_INVALID;

    const ration_call call = {.op = RATION_OP_STEP, .at = rn_clock_clamp(engine, now), .by_us = by_us};

    rn_sink_call(engine, &call);

    const ration_time before = rn_time_max(engine->now, ration_time_of(rn_sub(call.at.us, by_us)));

    rn_catch_up(engine, before);
    buckets_step(&engine->world->book, before, call.at);
    engine->now = call.at;
    rn_catch_up(engine, call.at);
    rn_sink_answer(engine, &call, RATION_OK, NULL);
    rn_pump(engine);
    return RATION_OK;
}
