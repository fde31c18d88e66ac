/* SPDX-License-Identifier: MIT */
/*
 * What operators do: pause, resume, reset, grant, drain. Decision 0016.
 *
 * A pause behaves as a penalty without an end: it is no place in the queue, whoever could take everything else is
 * parked, and its end is told as a penalty's is. A reset and a grant change a counter from outside, so they mark it as
 * any call does that gives something back, or takes from it; what they do is the kind's. A drain is a reason to refuse
 * that comes before all others, for those who wait as for those who come.
 *
 * Each call goes as every other: recorded, time carried on, carried out, answered, then what it causes.
 */
#include <ration/operate.h>

#include "core/engine.h"

static int counter_find(ration_engine *engine, const ration_counter_name *name, rn_counter **out)
{
    rn_limit *limit;
    const int err = rn_book_named(&engine->world->book, name, &limit);

    return err == RATION_OK ? rn_routes_wake(&engine->world->routes, engine->now, limit, name->key, out) : err;
}

static int pause(ration_engine *engine, rn_counter *counter, int64_t units)
{
    (void)units;
    counter->paused = counter->was_paused = true;
    rn_keep(engine, counter);
    return RATION_OK;
}

static int resume(ration_engine *engine, rn_counter *counter, int64_t units)
{
    (void)units;
    counter->paused = false;
    rn_keep(engine, counter);
    rn_penalty_over(engine, counter);
    return RATION_OK;
}

static int reset(ration_engine *engine, rn_counter *counter, int64_t units)
{
    const rn_kind *kind = counter->limit->kind;
    const int64_t before = kind->level != NULL ? kind->level(counter) : 0;

    (void)units;
    rn_penalty_lift(&counter->penalty, engine->now);
    rn_alarm_disarm(&engine->timers, &counter->penalty_timer);
    counter->shadowed = 0;
    kind->reset(counter, engine->now);
    if (kind->level != NULL)
        rn_level_moved(engine, counter, before, "reset by an operator");
    rn_keep(engine, counter);
    rn_strict_changed(engine, counter);
    rn_mark(engine, counter, true);
    rn_penalty_over(engine, counter);
    return RATION_OK;
}

static int grant(ration_engine *engine, rn_counter *counter, int64_t units)
{
    const rn_kind *kind = counter->limit->kind;

    if (kind->grant == NULL)
        return RATION_ERR_INVALID;
    if (units <= 0 || units > RATION_UNITS_MAX ||
        (counter->limit->rule->counts != RATION_COUNTS_COST && units % RATION_UNIT != 0))
        return RATION_ERR_RANGE;

    const int err = kind->grant(counter, engine->now, units);

    if (err != RATION_OK)
        return err;
    rn_keep(engine, counter);
    rn_mark(engine, counter, false);
    return RATION_OK;
}

/* One of them, at a counter. */
static int operate(ration_engine *engine, ration_time now, ration_call *call,
                   int (*what)(ration_engine *engine, rn_counter *counter, int64_t units))
{
    rn_counter *counter;

    if (engine == NULL || !rn_time_is_valid(now) || !rn_counter_name_is_valid(call->counter))
        return RATION_ERR_INVALID;
    call->at = rn_clock_clamp(engine, now);
    rn_sink_call(engine, call);
    rn_catch_up(engine, call->at);

    int err = counter_find(engine, call->counter, &counter);

    if (err == RATION_OK)
        err = what(engine, counter, call->units);
    rn_sink_answer(engine, call, err, NULL);
    rn_pump(engine);
    return err;
}

int ration_engine_pause(ration_engine *engine, ration_time now, const ration_counter_name *counter)
{
    return operate(engine, now, &(ration_call){.op = RATION_OP_PAUSE, .counter = counter}, pause);
}

int ration_engine_resume(ration_engine *engine, ration_time now, const ration_counter_name *counter)
{
    return operate(engine, now, &(ration_call){.op = RATION_OP_RESUME, .counter = counter}, resume);
}

int ration_engine_reset(ration_engine *engine, ration_time now, const ration_counter_name *counter)
{
    return operate(engine, now, &(ration_call){.op = RATION_OP_RESET, .counter = counter}, reset);
}

int ration_engine_grant(ration_engine *engine, ration_time now, const ration_counter_name *counter, int64_t units)
{
    return operate(engine, now, &(ration_call){.op = RATION_OP_GRANT, .counter = counter, .units = units}, grant);
}

int ration_engine_drain(ration_engine *engine, ration_time now)
{
    if (engine == NULL || !rn_time_is_valid(now))
        return RATION_ERR_INVALID;

    const ration_call call = {.op = RATION_OP_DRAIN, .at = rn_clock_clamp(engine, now)};

    rn_sink_call(engine, &call);
    rn_catch_up(engine, call.at);
    engine->draining = true;
    for (uint32_t i = 0; i < engine->leases.size; i++) {
        rn_lease *lease = rn_leases_at(&engine->leases, i);

        if (lease->state == RN_LEASE_WAITING)
            rn_doom(engine, lease);
    }
    rn_sink_answer(engine, &call, RATION_OK, NULL);
    rn_pump(engine);
    return RATION_OK;
}
