/* SPDX-License-Identifier: MIT */

/*
 * Marks of strict quotas, engine-wide: who has been given out, who waits, what is needed of whoever saves. Chapter 3,
 * "Ledger", `durability: strict`. What a mark is and how far it goes is quota_mark.c's.
 *
 * A counter says what it needs whenever it, or the first of those who wait there, has changed; how many need what is
 * counted, so that the question costs nothing. A counter that needs a save is among those that have changed, or a save
 * would not give it out.
 *
 * Invariants: `needy[n]` counts the strict counters whose `need` is n, but for those that need nothing, which are not
 * counted; `given` has those that were given out since the last save that was kept.
 */

#include "core/engine.h"

static void need_enter(ration_engine *engine, rn_counter *counter, ration_need need)
{
    if (counter->need != RATION_NEED_NOTHING)
        engine->needy[counter->need]--;
    counter->need = need;
    if (need != RATION_NEED_NOTHING)
        engine->needy[need]++;
}

/* The charge of the first that waits for the mark; 0: nobody does. */
static int64_t waiting_charge(const ration_engine *engine, rn_counter *counter)
{
    const rn_place *first = rn_lane_first(&counter->lane);
    rn_verdict verdict;

    if (first == NULL)
        return 0;

    const rn_ask ask = rn_ask_of(first->lease, first);

    counter->limit->kind->check(counter, engine->now, &ask, &verdict);
    return verdict.fit == RN_FIT_SHORT && verdict.reason == RATION_REASON_STORE_UNAVAILABLE ? ask.charge : 0;
}

void rn_strict_changed(ration_engine *engine, rn_counter *counter)
{
    if (!rn_limit_is_strict(counter->limit))
        return;

    const int64_t waiting = waiting_charge(engine, counter);
    const ration_need need = rn_quota_need(counter, waiting);

    if (need == RATION_NEED_SAVE_NOW)
        rn_quota_want(counter, waiting);
    need_enter(engine, counter, need);
    if (need != RATION_NEED_NOTHING && !counter->changed)
        rn_keep(engine, counter);
}

void rn_strict_refused(ration_engine *engine, rn_counter *counter, int64_t charge)
{
    rn_quota_want(counter, charge);
    rn_strict_changed(engine, counter);
}

void rn_strict_given(ration_engine *engine, rn_counter *counter)
{
    if (!counter->given) {
        counter->given = true;
        TAILQ_INSERT_TAIL(&engine->given, counter, in_given);
    }
    rn_strict_changed(engine, counter);
}

int ration_engine_kept(ration_engine *engine, ration_time now)
{
    rn_counter *counter;

    if (engine == NULL || !rn_time_is_valid(now))
        return RATION_ERR_INVALID;
    if (!engine->world->book.strict)
        return RATION_OK;

    const ration_call call = {.op = RATION_OP_KEPT, .at = rn_clock_clamp(engine, now)};

    rn_sink_call(engine, &call);
    rn_catch_up(engine, call.at);
    while ((counter = TAILQ_FIRST(&engine->given)) != NULL) {
        TAILQ_REMOVE(&engine->given, counter, in_given);
        counter->given = false;
        rn_quota_kept(counter, engine->now);
        rn_mark(engine, counter, false);
        rn_strict_changed(engine, counter);
    }
    rn_sink_answer(engine, &call, RATION_OK, NULL);
    rn_pump(engine);
    return RATION_OK;
}

ration_need ration_engine_need(const ration_engine *engine)
{
    if (engine == NULL)
        return RATION_NEED_NOTHING;
    if (engine->needy[RATION_NEED_SAVE_NOW] > 0)
        return RATION_NEED_SAVE_NOW;
    return engine->needy[RATION_NEED_SAVE] > 0 ? RATION_NEED_SAVE : RATION_NEED_NOTHING;
}
