/* SPDX-License-Identifier: MIT */

/*
 * What binds a request: its counters, those who wait before it, and penalties.
 *
 * Examining changes nothing, so a refusal spends nothing anywhere. Of all that binds, the one named is: one that
 * refuses (not retryable before retryable), else one whose time is unknown, else the latest, ties to the one declared
 * first. The time to retry is the latest of all and unknown if one of them is. A bucket that comes too late for the
 * deadline counts as one that refuses, with the reason `deadline`, since it is the cause.
 *
 * Chapter 1, "Admission" and "Decisions".
 */

#include "core/engine.h"

bool rn_place_binds(const rn_place *place)
{
    return place->counter->limit->rule->enforce == RATION_ENFORCE_ON;
}

rn_ask rn_ask_of(const rn_lease *lease, const rn_place *place)
{
    return (rn_ask){
        .charge = place->charge,
        .deadline = lease->deadline,
        .may_wait = rn_time_before(lease->since, lease->deadline),
        .retry = lease->retry,
        .critical = lease->rank.priority == RATION_PRIORITY_CRITICAL,
    };
}

/* Does a waiter that is ahead keep its place on the counter? */
static bool counter_is_ahead(const rn_counter *counter, const rn_rank *rank)
{
    const rn_heap_node *top = rn_heap_top(&counter->places);

    return top != NULL && rn_rank_before(&((const rn_place *)(const void *)top)->lease->rank, rank);
}

/* The charges of those ahead. O(places), but only where somebody is ahead. */
static int64_t counter_ahead(const rn_counter *counter, const rn_rank *rank)
{
    int64_t sum = 0;

    for (size_t i = 0; i < counter->places.size; i++) {
        const rn_place *place = (const rn_place *)(const void *)counter->places.items[i];

        if (rn_rank_before(&place->lease->rank, rank))
            sum = rn_add(sum, place->charge);
    }
    return sum;
}

bool rn_place_can_take(const ration_engine *engine, const rn_lease *lease, const rn_place *place)
{
    const rn_ask ask = rn_ask_of(lease, place);
    rn_counter *counter = place->counter;
    rn_verdict verdict;

    if (!rn_place_binds(place))
        return true;
    if (counter_is_ahead(counter, &lease->rank))
        return false;
    counter->limit->kind->check(counter, engine->now, &ask, &verdict);
    return verdict.fit == RN_FIT_NOW;
}

bool rn_is_penalized(const ration_engine *engine, const rn_lease *lease)
{
    if (rn_penalty_runs(&lease->route->account->penalty, engine->now))
        return true;
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];

        if (rn_place_binds(place) && rn_penalty_runs(&place->counter->penalty, engine->now))
            return true;
    }
    return false;
}

/* One thing that binds. */
typedef struct binding {
    bool refuses;
    ration_reason reason;
    rn_counter *counter;
    ration_time at;
    bool estimate;
    ration_facts facts;
} binding;

/* Is `b` to be named rather than what is named already? Called in order of declaration, so ties stay. */
static bool binding_beats(const binding *b, const rn_finding *named)
{
    if (!named->bound)
        return true;
    if (b->refuses != named->refuses)
        return b->refuses;
    if (b->refuses && ration_reason_retryable(b->reason) != ration_reason_retryable(named->reason))
        return !ration_reason_retryable(b->reason);
    return rn_time_before(named->named_at, b->at);
}

static void finding_add(rn_finding *finding, const binding *b)
{
    const ration_time latest = finding->bound ? rn_time_max(finding->retry_at, b->at) : b->at;

    if (binding_beats(b, finding)) {
        finding->reason = b->reason;
        finding->counter = b->counter;
        finding->named_at = b->at;
        finding->facts = b->facts;
    }
    finding->bound = true;
    finding->refuses = finding->refuses || b->refuses;
    finding->retry_at = latest;
    finding->estimate = finding->estimate || b->estimate;
}

static void examine_penalty(const rn_penalty *penalty, rn_counter *counter, const ration_engine *engine,
                            const rn_lease *lease, rn_stage stage, rn_finding *out)
{
    if (!rn_penalty_runs(penalty, engine->now))
        return;
    finding_add(out, &(binding){
                         .refuses = rn_time_before(lease->deadline, penalty->until),
                         .reason = stage == RN_STAGE_ARRIVAL ? RATION_REASON_PENALIZED : RATION_REASON_DEADLINE,
                         .counter = counter,
                         .at = penalty->until,
                         .facts = {RATION_UNSET, RATION_UNSET, RATION_UNSET, RATION_UNSET},
                     });
}

static void examine_counter(const ration_engine *engine, const rn_lease *lease, const rn_place *place, rn_stage stage,
                            rn_finding *out)
{
    rn_counter *counter = place->counter;
    const rn_kind *kind = counter->limit->kind;
    const bool blocked = counter_is_ahead(counter, &lease->rank);
    rn_ask ask = rn_ask_of(lease, place);
    rn_verdict verdict;

    kind->check(counter, engine->now, &ask, &verdict);

    const bool refused = verdict.fit == RN_FIT_REFUSED;
    bool late =
        kind->timed && verdict.fit == RN_FIT_SHORT && ask.may_wait && rn_time_before(lease->deadline, verdict.at);

    if (verdict.fit == RN_FIT_NOW && !blocked)
        return;
    if (!refused && blocked) {
        ask.ahead = counter_ahead(counter, &lease->rank);
        kind->check(counter, engine->now, &ask, &verdict);
        if (ask.ahead == 0) {
            verdict.at = engine->now;
            verdict.estimate = true;
        }
        if (stage == RN_STAGE_ARRIVAL && kind->timed && ask.may_wait)
            late = rn_time_before(lease->deadline, verdict.at);
    }
    finding_add(out, &(binding){
                         .refuses = refused || late,
                         .reason = !refused && (late || stage == RN_STAGE_DEADLINE) ? RATION_REASON_DEADLINE
                                   : verdict.reason != RATION_REASON_NONE           ? verdict.reason
                                                                                    : kind->reason,
                         .counter = counter,
                         .at = verdict.at,
                         .estimate = verdict.estimate,
                         .facts = {place->charge, verdict.available, verdict.capacity, ask.ahead},
                     });
}

void rn_examine(ration_engine *engine, const rn_lease *lease, rn_stage stage, rn_finding *out)
{
    *out = (rn_finding){0};
    examine_penalty(&lease->route->account->penalty, NULL, engine, lease, stage, out);
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];

        if (!rn_place_binds(place))
            continue;
        examine_penalty(&place->counter->penalty, place->counter, engine, lease, stage, out);
        examine_counter(engine, lease, place, stage, out);
    }
    if (stage == RN_STAGE_DEADLINE)
        out->reason = RATION_REASON_DEADLINE;
}

uint64_t rn_note_shadows(const ration_engine *engine, const rn_lease *lease)
{
    uint64_t noted = 0;

    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];
        const rn_ask ask = rn_ask_of(lease, place);
        rn_verdict verdict;

        if (rn_place_binds(place))
            continue;
        place->counter->limit->kind->check(place->counter, engine->now, &ask, &verdict);
        if (verdict.fit != RN_FIT_NOW) {
            place->counter->shadowed++;
            noted = 1;
        }
    }
    return noted;
}
