/* SPDX-License-Identifier: MIT */
/*
 * A clock that stepped: what of an engine must not take the step for time that has passed.
 *
 * Only credit is earned by time alone. Everything else stands at instants that somebody named: a window's end, a
 * penalty's, a deadline. Those that lie in the gap are due now, at the instant after it: nobody was there before.
 */
#include "core/engine.h"

typedef struct gap {
    ration_time before, after;
} gap;

static void limit_step(void *ctx, const rn_limit *limit)
{
    const gap *left_out = ctx;
    rn_counter *counter;

    if (limit->rule->kind != RATION_KIND_RATE)
        return;
    TAILQ_FOREACH (counter, &limit->counters, in_limit)
        rn_bucket_step(counter, left_out->before, left_out->after);
}

int ration_engine_step(ration_engine *engine, ration_time now, int64_t by_us)
{
    if (engine == NULL || !rn_time_is_valid(now) || by_us <= 0)
        return RATION_ERR_INVALID;

    const ration_call call = {.op = RATION_OP_STEP, .at = rn_clock_clamp(engine, now), .by_us = by_us};

    rn_sink_call(engine, &call);

    gap left_out = {rn_time_max(engine->now, ration_time_of(rn_sub(call.at.us, by_us))), call.at};

    rn_catch_up(engine, left_out.before);
    rn_book_visit(&engine->world->book, &left_out, limit_step);
    engine->now = call.at;
    rn_catch_up(engine, call.at);
    rn_sink_answer(engine, &call, RATION_OK, NULL);
    rn_pump(engine);
    return RATION_OK;
}
