/* SPDX-License-Identifier: MIT */
#ifndef RN_TRACE_WRITER_H
#define RN_TRACE_WRITER_H

#include <stdbool.h>

#include <ration/state.h>

#include "trace/output.h"

/*
 * Calls, decisions, events and reports as lines of a trace (specification, chapter 9), in the order of members that its
 * examples have. Each function writes one whole line. What is not known is absent.
 */

/*
 * Leases have numbers, traces have ids. `name` gives the id of a lease, `serial` that of a request by its number; an
 * absent text for one that they do not know. Without `serial`, and where there are no names at all, a report calls a
 * request as a recording does: r and its number.
 */
typedef struct rn_trace_names {
    void *ctx;
    ration_text (*name)(void *ctx, ration_lease lease);
    ration_text (*serial)(void *ctx, uint64_t serial);
} rn_trace_names;

/* Out: what an engine answered. */
void rn_trace_write_decision(rn_output *out, ration_time at, const char *op, ration_text id,
                             const ration_decision *decision, const rn_trace_names *names);
/* "released", "unknown" ... as the answer to `op`. */
void rn_trace_write_answer(rn_output *out, ration_time at, const char *op, ration_text id, const char *result);
/* "noted" or "unknown": the answer to what a health check came to. */
void rn_trace_write_health_answer(rn_output *out, ration_time at, ration_text account, bool ok, const char *result);
/* "paused", "resumed", "reset", "granted", "draining",
 * "reloaded"; with an error "unknown": the answer to what an operator did. */
void rn_trace_write_operate_answer(rn_output *out, const ration_call *call, int err);
/* The answer to a state that was loaded. */
void rn_trace_write_state_answer(rn_output *out, ration_time at);
/* Granted, refused, lost; nothing for an event that has no line: what follows from the calls for limits, penalties and
 * breakers, and that a health check is due. */
void rn_trace_write_event(rn_output *out, ration_text id, const ration_event *event, const rn_trace_names *names);

/* Out: a report. Give `reporter` to the engine between begin and end. `more` (NULL: none) writes what a counter's row
 * has beyond its members in a trace; `ctx` is its own. */
typedef struct rn_trace_report {
    rn_output *out;
    void (*more)(void *ctx, rn_output *out, const ration_counter_report *counter);
    void *ctx;
    ration_report_kind kind;
    const rn_trace_names *names;
    ration_reporter reporter;
} rn_trace_report;

/* Only the rows: whoever calls opens and closes the array around them. */
void rn_trace_report_init(rn_trace_report *report, rn_output *out, ration_report_kind kind,
                          const rn_trace_names *names);
void rn_trace_report_begin(rn_trace_report *report, rn_output *out, ration_time at, ration_report_kind kind,
                           const rn_trace_names *names);
void rn_trace_report_end(rn_trace_report *report);

/* In: calls, as a recorder writes them. */

/* Whether a response's header may stand in a recording; a NULL function: all may. */
typedef struct rn_trace_filter {
    void *ctx;
    bool (*keep)(void *ctx, ration_text header);
    bool body;
} rn_trace_filter;

void rn_trace_write_acquire(rn_output *out, ration_time at, ration_text id, const ration_request *request);
void rn_trace_write_check(rn_output *out, ration_time at, ration_text id, const ration_request *request,
                          ration_check_mode mode);
void rn_trace_write_observe(rn_output *out, ration_time at, ration_text id, const ration_response *response,
                            const rn_trace_filter *filter);
void rn_trace_write_release(rn_output *out, ration_time at, ration_text id, const ration_completion *completion);
/* renew, cancel; without an id: advance, kept. */
void rn_trace_write_op(rn_output *out, ration_time at, const char *op, ration_text id);
/* pause, resume, reset, grant, drain */
void rn_trace_write_operate(rn_output *out, const ration_call *call);
/* `json`: the new config as an object, from rn_config_json. */
void rn_trace_write_reload(rn_output *out, ration_time at, ration_text json);
void rn_trace_write_health(rn_output *out, ration_time at, ration_text account, bool ok);
void rn_trace_write_step(rn_output *out, ration_time at, int64_t by_us);
void rn_trace_write_save(rn_output *out, ration_time at, bool all);
void rn_trace_write_state(rn_output *out, ration_time at, const ration_state *state);
/* `json`: the config as an object, from rn_config_json. */
void rn_trace_write_config(rn_output *out, ration_time started_at, ration_text json);

#endif
