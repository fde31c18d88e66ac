/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_REFUSAL_H
#define RN_SERVE_REFUSAL_H

#include <ration/engine.h>

#include "trace/output.h"

/*
 * How a "no" looks over HTTP: the one table from reasons to statuses, and RFC 9457 problem documents. Chapter 7.
 */

#define RN_PROBLEM_TYPE "application/problem+json"
#define RN_PROBLEM_MAX ((size_t)512 << 10)

/* The status of a refusal. What is not retryable is never a 429: clients retry those. */
int rn_refusal_status(ration_reason reason);

/*
 * `Retry-After` in whole seconds, rounded up, at least 1; 0: none, because the time is not known or waiting will not
 * help.
 */
int64_t rn_refusal_retry_after(const ration_decision *decision, ration_time now);

/* What a problem document says beside the decision. Absent texts leave their member out. */
typedef struct rn_problem {
    int status;
    const char *name;   /* the last part of `type`: a reason, or what went wrong */
    const char *title;  /* NULL with a decision: the reason's */
    ration_text detail; /* absent with a decision: its explanation */
    ration_text request_id;
    ration_text account;
    ration_text field;                             /* of the request, that is at fault */
    int64_t waited_us;                             /* RATION_UNSET: it never waited */
    const ration_decision *decision;               /* NULL: no refusal */
    void (*more)(rn_output *out, const void *ctx); /* writes members of its own; NULL: there are none */
    const void *more_ctx;
} rn_problem;

/* A refusal of the gateway itself, in the decision's form, so that both are reported by the same code. */
ration_decision rn_refusal_of(ration_reason reason, ration_time now);

/* The members of a refusal that are for programs, into an object that is open. */
void rn_refusal_write(rn_output *out, const ration_decision *decision);

/* Write the document. Its `status` and `name` come from the decision where there is one. */
void rn_problem_write(rn_output *out, const rn_problem *problem);

#endif
