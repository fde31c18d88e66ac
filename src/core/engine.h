/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_ENGINE_H
#define RN_CORE_ENGINE_H

/* The engine's inside, shared by the files that make it: admit, pump, feedback, report, engine. */

#include "core/book.h"
#include "core/circuit.h"
#include "core/events.h"
#include "core/lane.h"
#include "core/lease.h"
#include "core/route.h"

/* The rules and what has been made of them. One of its own, since a reload builds the next beside it. */
typedef struct rn_world {
    rn_book book;
    rn_routes routes;
    SLIST_ENTRY(rn_world) older; /* of the past ones */
} rn_world;

struct ration_engine {
    ration_allocator mem;
    ration_sink sink;
    rn_world *world;
    SLIST_HEAD(, rn_world) past; /* which a reload has replaced, but events that nobody has taken name */
    rn_alarms timers;
    size_t timers_needed;
    rn_leases leases;
    rn_events events;
    rn_heap look;                           /* waiters that may have become able to go or to grow */
    rn_heap doomed;                         /* waiters that must be refused */
    struct rn_counter_list dirty;           /* counters that changed in this call */
    struct rn_counter_list shrunk;          /* those of them where less may be there */
    struct rn_counter_list growing;         /* adaptive counters that demand may make grow */
    struct rn_counter_list changed;         /* since the last save */
    struct rn_counter_list given;           /* strict quotas, since the last save that was kept */
    size_t needy[RATION_NEED_SAVE_NOW + 1]; /* strict quotas, by what they need */
    bool keeps;
    bool draining;          /* nothing new is taken */
    ration_lease *blocking; /* of the last decision */
    size_t blocking_count, blocking_capacity;
    bool blocking_failed; /* there was no memory for all of them */
    ration_time now;      /* the newest instant seen */
    ration_time until;    /* the instant that time is being carried on to, while it is */
    uint64_t serial;
    uint64_t grants;
    uint64_t held;
    ration_totals totals;
};

/* ---- admit.c: what binds a request ---- */

/* No numbers stand behind it. */
#define RN_NO_FACTS                                                                                                    \
    {                                                                                                                  \
        .charge = RATION_UNSET, .available = RATION_UNSET, .capacity = RATION_UNSET, .ahead = RATION_UNSET             \
    }

typedef enum rn_stage {
    RN_STAGE_ARRIVAL = 0,
    RN_STAGE_WAITING,
    RN_STAGE_DEADLINE,
} rn_stage;

/* All that binds a request at one instant, and which of it is named: chapter 1, "Decisions". */
typedef struct rn_finding {
    bool bound;   /* something is short, or refuses */
    bool refuses; /* something refuses whatever the deadline, or comes after it */
    bool barred;  /* something other than fairness does: so it has not asked for its share (chapter 2) */
    bool nomem;   /* there is no memory to say yes */
    ration_reason reason;
    rn_counter *counter;   /* of what is named; NULL: an account's penalty, or a circuit */
    rn_circuit *circuit;   /* the one that is open */
    const rn_place *place; /* at the counter that is named */
    ration_time named_at;  /* of what is named */
    ration_time retry_at;  /* the latest of all; RATION_NEVER_US: one is unknown */
    bool estimate;
    ration_facts facts;
} rn_finding;

rn_ask rn_ask_of(const rn_lease *lease, const rn_place *place);
/* Examine every counter and penalty of a request. `when`: the times are wanted, too. */
void rn_examine(ration_engine *engine, const rn_lease *lease, rn_stage stage, bool when, rn_finding *out);
/* Examine as the provider would: its units and penalties alone. */
void rn_examine_as_enforcer(ration_engine *engine, const rn_lease *lease, rn_finding *out);
/* Count at each shadow limit that would have bound. 1 if there is one, else 0. */
uint64_t rn_note_shadows(const ration_engine *engine, const rn_lease *lease);
/* Is there now what refuses a waiter whatever comes, or comes too late for it? */
bool rn_must_refuse(const ration_engine *engine, const rn_lease *lease);
/* Could it take from this counter now: units there, and nobody ahead who keeps a place? */
bool rn_place_can_take(const ration_engine *engine, const rn_lease *lease, const rn_place *place);
/* Does a penalty hold it back now? */
bool rn_is_penalized(const ration_engine *engine, const rn_lease *lease);
/* Does the limit bind at all, or only watch? */
bool rn_place_binds(const rn_place *place);

/* ---- submit.c: asking ---- */

/* Within the ranges of what a request may say? */
bool rn_request_is_valid(const ration_request *r);
/* What the request says, else its endpoint, else its provider. The hold: RATION_UNSET, no declared end. */
int64_t rn_request_hold(const ration_request *request, const rn_route *route);
ration_priority rn_request_priority(const ration_request *request, const rn_route *route);

/* ---- pump.c: waiters ---- */

/* A counter changed: look at those who wait there before the call ends. `shrunk`: less may be there, the time of its
 * next change moved, or a penalty came. */
void rn_mark(ration_engine *engine, rn_counter *counter, bool shrunk);
/* The same, and what the lane of a place has or is short of changed. */
void rn_mark_place(ration_engine *engine, const rn_place *place, bool shrunk);
/* Refuse a waiter if it has become true that no wait helps. */
void rn_doom(ration_engine *engine, rn_lease *lease);
/* Tell the counters that keep account of it what happens to a request: all of them, or the one that was named. */
void rn_note_all(ration_engine *engine, const rn_lease *lease, rn_note what);
void rn_note_refused(ration_engine *engine, const rn_lease *lease, rn_counter *named, ration_reason reason);
/* There is demand for what is short: adaptive limits may grow by it. True: one has. */
bool rn_demand(ration_engine *engine, const rn_lease *lease);
/* An adaptive limit may have moved from `before`: followers are resized, and it is told. */
void rn_level_moved(ration_engine *engine, rn_counter *counter, int64_t before, const char *cause);
/* It may have become able to go, for whatever reason. */
void rn_look_again(ration_engine *engine, rn_lease *lease);
/* A penalty is over: those who waited for that alone may go. */
void rn_penalty_over(ration_engine *engine, rn_counter *counter);
void rn_account_penalty_over(ration_engine *engine, rn_account *account);
/* Look at every waiter that may have become able to go, refuse those who no longer can, until nothing changes. */
void rn_pump(ration_engine *engine);
/* A penalty of the account came: refuse those for whom it is too long. */
void rn_account_penalized(ration_engine *engine, rn_account *account);
/* Let a new request wait. RATION_ERR_NOMEM: nothing changed. */
int rn_wait(ration_engine *engine, rn_lease *lease);
/* Take it out of the queue and all lists; `granted` says why. */
void rn_unwait(ration_engine *engine, rn_lease *lease, bool granted);
/* Tell a waiter that it is refused. It keeps its places until `rn_waiter_drop`. */
void rn_waiter_refuse(ration_engine *engine, const rn_lease *lease, const rn_finding *finding);
/* A waiter leaves with nothing; its handle dies. */
void rn_waiter_drop(ration_engine *engine, rn_lease *lease);

/* ---- circuit.c: breakers ---- */

/* Time does something to the circuit. */
void rn_circuit_due(ration_engine *engine, rn_circuit *circuit);
/* Does an open circuit refuse it? */
bool rn_circuit_bars(const rn_lease *lease);
/* It is let through. */
void rn_circuit_enter(ration_engine *engine, rn_lease *lease);
/* It ends without a result; nothing if it has had one. */
void rn_circuit_leave(ration_engine *engine, rn_lease *lease);
void rn_circuit_result(ration_engine *engine, rn_lease *lease, bool ok);
int rn_circuit_health(ration_engine *engine, ration_text account, bool ok);

/* ---- reload.c ---- */

/* Nothing names the past any more. */
void rn_past_free(ration_engine *engine);
void rn_world_free(ration_engine *engine, rn_world *world);

/* ---- state.c ---- */

/* The counter has changed so that it should be kept. */
void rn_keep(ration_engine *engine, rn_counter *counter);

/* ---- strict.c: marks ---- */

/* A counter may need more, or less, of whoever saves than before. Nothing but for a strict quota. */
void rn_strict_changed(ration_engine *engine, rn_counter *counter);
/* A request was refused for want of a mark at the counter: the next one will do for it. */
void rn_strict_refused(ration_engine *engine, rn_counter *counter, int64_t charge);
/* A strict quota's record has been given out. */
void rn_strict_given(ration_engine *engine, rn_counter *counter);

/* ---- report.c ---- */

int rn_report(ration_engine *engine, ration_report_kind kind, const ration_reporter *reporter);

/* ---- engine.c ---- */

bool rn_time_is_valid(ration_time t);
/* `t` plus a span, not beyond the largest instant. */
ration_time rn_time_after(ration_time t, int64_t us);
void rn_sink_call(const ration_engine *engine, const ration_call *call);
void rn_sink_answer(const ration_engine *engine, const ration_call *call, int err, const ration_decision *decision);
/* A `now` older than the newest one counts as that, and is counted. */
ration_time rn_clock_clamp(ration_engine *engine, ration_time now);
/* Carry out all that is due up to `now`, instant by instant. */
void rn_catch_up(ration_engine *engine, ration_time now);
/* Take from every counter. All of them have said that it fits. */
void rn_lease_take(ration_engine *engine, rn_lease *lease);

void rn_grant(ration_engine *engine, rn_lease *lease);
void rn_lease_end(ration_engine *engine, rn_lease *lease);  /* holds go back, the handle dies */
void rn_lease_drop(ration_engine *engine, rn_lease *lease); /* the handle dies; nothing is held */
void rn_decision_refuse(const ration_engine *engine, const rn_finding *finding, ration_decision *out);
void rn_event_emit(ration_engine *engine, const ration_event *event, uint32_t *pin);
/* The same of what no request owes: lost for want of memory, for what it tells can be asked or comes again. */
void rn_event_offer(ration_engine *engine, const ration_event *event, uint32_t *pin);
/* Events that the requests now alive may still cause by themselves: a waiter is granted and then lost, a lease is
 * lost. */
size_t rn_events_owed(const ration_engine *engine);

/* ---- feedback.c ---- */

/* What a response says by its status alone, were it the first of its lease. */
typedef struct rn_reading {
    bool rate_limited;
    bool success; /* it ends the doubling of penalties */
    ration_outcome outcome;
} rn_reading;

rn_reading rn_response_read(const ration_error_rule *rule, const ration_response *response);

/* A response to a held lease. */
void rn_feed_response(ration_engine *engine, rn_lease *lease, const ration_response *response);
/* A release whose call's status had not been observed. */
void rn_feed_outcome(ration_engine *engine, rn_lease *lease, ration_outcome outcome);

#endif
