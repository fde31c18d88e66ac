/* SPDX-License-Identifier: MIT */

/*
 * What binds a request: its counters, those who wait before it, and penalties.
 *
 * Examining changes nothing, so a refusal spends nothing anywhere. Of all that binds, the one named is: one that
 * refuses (not retryable before retryable), else one whose time is unknown, else the latest, ties to the one declared
 * first. The time to retry is the latest of all and unknown if one of them is; it is an estimate, too, where others
 * wait for a counter of the request: they may come before it then. A bucket that comes too late for the deadline counts
 * as one that refuses, with the reason `deadline`, since it is the cause.
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
        .demand = lease->demands,
        .lane = place->lane_index,
        .cost = lease->cost,
        .hold_us = lease->hold_us,
        .serial = lease->serial,
    };
}

bool rn_place_can_take(const ration_engine *engine, const rn_lease *lease, const rn_place *place)
{
    const rn_ask ask = rn_ask_of(lease, place);
    rn_counter *counter = place->counter;
    rn_verdict verdict;

    if (!rn_place_binds(place))
        return true;
    if (rn_lane_is_ahead(place->lane, &lease->rank))
        return false;
    counter->limit->kind->check(counter, engine->now, &ask, &verdict);
    if (verdict.nomem)
        counter->lanes->starved = true;
    return verdict.fit == RN_FIT_NOW && !verdict.nomem;
}

bool rn_is_penalized(const ration_engine *engine, const rn_lease *lease)
{
    if (rn_penalty_runs(&lease->route->account->penalty, engine->now))
        return true;
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];

        if (rn_place_binds(place) && (place->counter->paused || rn_penalty_runs(&place->counter->penalty, engine->now)))
            return true;
    }
    return false;
}

/* Does it come by time alone, but too late for the request? */
static bool is_late(const rn_kind *kind, const rn_ask *ask, const rn_verdict *verdict)
{
    return kind->timed && verdict->fit == RN_FIT_SHORT && ask->may_wait && rn_time_before(ask->deadline, verdict->at);
}

static bool penalty_is_late(const ration_engine *engine, const rn_penalty *penalty, const rn_lease *lease)
{
    return rn_penalty_runs(penalty, engine->now) && rn_time_before(lease->deadline, penalty->until);
}

bool rn_must_refuse(const ration_engine *engine, const rn_lease *lease)
{
    if (engine->draining || rn_circuit_bars(lease))
        return true;
    if (penalty_is_late(engine, &lease->route->account->penalty, lease))
        return true;
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];
        const rn_kind *kind = place->counter->limit->kind;
        const rn_ask ask = rn_ask_of(lease, place);
        rn_verdict verdict;

        if (!rn_place_binds(place))
            continue;
        kind->check(place->counter, engine->now, &ask, &verdict);
        if (verdict.fit == RN_FIT_REFUSED || is_late(kind, &ask, &verdict) ||
            penalty_is_late(engine, &place->counter->penalty, lease))
            return true;
    }
    return false;
}

/* One thing that binds. */
typedef struct binding {
    bool refuses;
    bool nomem;
    ration_reason reason;
    rn_counter *counter;
    const rn_place *place;
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
        finding->place = b->place;
        finding->named_at = b->at;
        finding->facts = b->facts;
    }
    finding->bound = true;
    finding->refuses = finding->refuses || b->refuses;
    finding->barred = finding->barred || (b->refuses && ration_reason_category(b->reason) != RATION_CATEGORY_FAIRNESS);
    finding->nomem = finding->nomem || b->nomem;
    finding->retry_at = latest;
    finding->estimate = finding->estimate || b->estimate;
}

static void examine_penalty(const rn_penalty *penalty, rn_counter *counter, const ration_engine *engine,
                            const rn_lease *lease, rn_stage stage, rn_finding *out)
{
    if (!rn_penalty_runs(penalty, engine->now))
        return;
    finding_add(out, &(binding){
                         .refuses = penalty_is_late(engine, penalty, lease),
                         .reason = stage == RN_STAGE_ARRIVAL ? RATION_REASON_PENALIZED : RATION_REASON_DEADLINE,
                         .counter = counter,
                         .at = penalty->until,
                         .facts = RN_NO_FACTS,
                     });
}

/* An operator's pause is like a penalty whose end nobody knows: it can be waited for, and no deadline is too early. */
static void examine_pause(rn_counter *counter, rn_stage stage, rn_finding *out)
{
    if (!counter->paused)
        return;
    finding_add(out, &(binding){
                         .reason = stage == RN_STAGE_ARRIVAL ? RATION_REASON_PAUSED : RATION_REASON_DEADLINE,
                         .counter = counter,
                         .at = {RATION_NEVER_US},
                         .facts = RN_NO_FACTS,
                     });
}

/* Those ahead take nothing here, so the verdict knows nothing of them: they are gone when the bucket has what they wait
 * for, and elsewhere nobody knows when. */
static void after_the_free(const rn_kind *kind, rn_verdict *verdict)
{
    verdict->estimate = true;
    if (verdict->fit == RN_FIT_NOW && !kind->timed)
        verdict->at.us = RATION_NEVER_US;
}

/* The numbers behind it. */
static ration_facts facts_of(const ration_engine *engine, const rn_place *place, const rn_ask *ask,
                             const rn_verdict *verdict)
{
    ration_facts facts = {
        .charge = place->charge,
        .available = verdict->available,
        .capacity = verdict->capacity,
        .ahead = ask->ahead,
    };

    if (ask->when && place->counter->limit->kind->lanes == RN_LANES_TENANTS && ask->lane != RN_LANE_UNKNOWN)
        rn_share_facts(place->counter, engine->now, ask, &facts);
    return facts;
}

static void examine_counter(const ration_engine *engine, const rn_lease *lease, const rn_place *place, rn_stage stage,
                            bool when, rn_finding *out)
{
    rn_counter *counter = place->counter;
    const rn_kind *kind = counter->limit->kind;
    const bool blocked = rn_lane_is_ahead(place->lane, &lease->rank);
    rn_ask ask = rn_ask_of(lease, place);
    rn_verdict verdict;

    ask.when = when;
    kind->check(counter, engine->now, &ask, &verdict);

    const bool refused = verdict.fit == RN_FIT_REFUSED;
    bool late = is_late(kind, &ask, &verdict);

    if (verdict.fit == RN_FIT_NOW && !blocked)
        return;
    if (!refused && blocked) {
        ask.ahead = rn_lane_ahead(place->lane, &lease->rank);
        kind->check(counter, engine->now, &ask, &verdict);
        if (ask.ahead == 0)
            after_the_free(kind, &verdict);
        if (stage == RN_STAGE_ARRIVAL && kind->timed && ask.may_wait)
            late = rn_time_before(ask.deadline, verdict.at);
    }
    finding_add(out, &(binding){
                         .refuses = refused || late,
                         .reason = !refused && late                       ? RATION_REASON_DEADLINE
                                   : verdict.reason != RATION_REASON_NONE ? verdict.reason
                                                                          : kind->reason,
                         .counter = counter,
                         .place = place,
                         .nomem = verdict.nomem,
                         .at = verdict.at,
                         .estimate = verdict.estimate,
                         .facts = facts_of(engine, place, &ask, &verdict),
                     });
}

/* A process that stops takes nothing new, whatever the limits say. */
static void find_draining(rn_finding *out)
{
    *out = (rn_finding){
        .bound = true,
        .refuses = true,
        .barred = true,
        .reason = RATION_REASON_DRAINING,
        .retry_at = {RATION_NEVER_US},
        .facts = RN_NO_FACTS,
    };
}

/* An open circuit refuses before any limit is looked at. */
static void find_circuit(rn_circuit *circuit, rn_finding *out)
{
    *out = (rn_finding){
        .bound = true,
        .refuses = true,
        .barred = true,
        .reason = RATION_REASON_CIRCUIT_OPEN,
        .circuit = circuit,
        .retry_at = rn_breaker_retry_at(&circuit->breaker),
        .facts = RN_NO_FACTS,
    };
}

void rn_examine(ration_engine *engine, const rn_lease *lease, rn_stage stage, bool when, rn_finding *out)
{
    const size_t itself = lease->state == RN_LEASE_WAITING ? 1 : 0;

    if (engine->draining) {
        find_draining(out);
        return;
    }
    if (rn_circuit_bars(lease)) {
        find_circuit(lease->route->circuit, out);
        return;
    }
    *out = (rn_finding){.retry_at = engine->now};
    examine_penalty(&lease->route->account->penalty, NULL, engine, lease, stage, out);
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];

        if (!rn_place_binds(place))
            continue;
        examine_penalty(&place->counter->penalty, place->counter, engine, lease, stage, out);
        examine_pause(place->counter, stage, out);
        examine_counter(engine, lease, place, stage, when, out);
        out->estimate = out->estimate || place->counter->watcher_count > itself;
    }
    /* Who waited for the ledger alone is not to blame for its deadline. */
    if (stage == RN_STAGE_DEADLINE && out->reason != RATION_REASON_STORE_UNAVAILABLE)
        out->reason = RATION_REASON_DEADLINE;
}

void rn_examine_as_enforcer(ration_engine *engine, const rn_lease *lease, rn_finding *out)
{
    *out = (rn_finding){0};
    examine_penalty(&lease->route->account->penalty, NULL, engine, lease, RN_STAGE_ARRIVAL, out);
    for (size_t i = 0; i < lease->place_count; i++) {
        const rn_place *place = &lease->places[i];
        rn_counter *counter = place->counter;
        rn_ask ask = rn_ask_of(lease, place);
        rn_verdict verdict;

        ask.enforcer = true;
        ask.when = true;
        examine_penalty(&counter->penalty, counter, engine, lease, RN_STAGE_ARRIVAL, out);
        counter->limit->kind->check(counter, engine->now, &ask, &verdict);
        if (verdict.fit == RN_FIT_NOW)
            continue;
        finding_add(out, &(binding){
                             .refuses = verdict.fit == RN_FIT_REFUSED,
                             .reason = verdict.reason,
                             .counter = counter,
                             .at = verdict.at,
                             .estimate = verdict.estimate,
                             .place = place,
                             .facts = {.charge = place->charge,
                                       .available = verdict.available,
                                       .capacity = verdict.capacity,
                                       .ahead = RATION_UNSET},
                         });
    }
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
