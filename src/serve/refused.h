/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_REFUSED_H
#define RN_SERVE_REFUSED_H

#include "trace/output.h"

/*
 * `GET /v1/refusals`: why was this refused an hour ago? The last RN_REFUSED_MAX refusals, each as its client got it.
 * Chapter 7. Memory is bounded: a ring of entries of one size, texts cut to fit.
 */

#define RN_REFUSED_MAX 4096

/* A refusal as it happens. All borrowed; absent texts are left out. */
typedef struct rn_refused {
    ration_text request_id;
    ration_text account;
    ration_text tenant;
    ration_text traceparent;
    int64_t waited_us; /* RATION_UNSET: it never waited */
    const ration_decision *decision;
    ration_text detail; /* absent: the decision's explanation */
} rn_refused;

/* Which of them are asked for. Absent texts: all. */
typedef struct rn_refused_filter {
    ration_text tenant;
    ration_text account;
    ration_text limit;
    ration_text key;
    ration_text reason;
    ration_time since; /* inclusive */
    size_t most;       /* the newest of those that match; 0: all */
} rn_refused_filter;

typedef struct rn_refusals rn_refusals;

/* RATION_ERR_NOMEM. The ring itself is made with the first refusal. */
int rn_refusals_new(rn_refusals **out);
void rn_refusals_free(rn_refusals *refusals); /* NULL is fine */

/* O(1). Where there is no memory for the ring it is not kept, but counted. NULL: nothing is kept. */
void rn_refusals_add(rn_refusals *refusals, ration_time now, const rn_refused *refused);

/* The members of one, into an object that is open. */
void rn_refused_write(const rn_refused *refused, rn_output *out);

/* The body of the page: `{"refusals":[...],"kept":N,"forgotten":N}`, the newest first. Linear in the ring. */
void rn_refusals_write(const rn_refusals *refusals, const rn_refused_filter *filter, rn_output *out);

/*
 * The query of a target into a filter: tenant, account, limit, key, reason, since (milliseconds since 1970), most.
 * Decoded texts are in `buffer`.
 *
 * Errors  RATION_ERR_SYNTAX with `*parameter` naming the one at fault: unknown, twice, not decodable, not a number, no
 *         reason of that name; RATION_ERR_FULL: longer than the buffer.
 */
int rn_refused_filter_read(ration_text query, char *buffer, size_t size, rn_refused_filter *out,
                           ration_text *parameter);

#endif
