/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_SPENDING_H
#define RN_SERVE_SPENDING_H

#include <sys/queue.h>

#include "serve/cost.h"
#include "trace/output.h"

/*
 * What the calls of a provider were estimated at, and what they came to. By the provider's name, since the start: a
 * reload changes nothing. Of providers apart, because what one counts in tokens the next may count in cents.
 */

typedef struct rn_cost_counts {
    uint64_t estimates[RN_ESTIMATE_SOURCES]; /* of requests for which the config has an estimate, by where it was */
    uint64_t settled[RN_COST_SOURCES];       /* calls for which it has an actual cost, by where that was */
    uint64_t unseen[RN_USAGE_FAULTS];        /* and those whose response had none to settle with */
    int64_t estimated;                       /* of those whose response has told it: what they were charged before, */
    int64_t actual;                          /* and what it told */
} rn_cost_counts;

typedef struct rn_spending {
    TAILQ_ENTRY(rn_spending) link;
    char *provider;
    rn_cost_counts counts;
} rn_spending;

TAILQ_HEAD(rn_spendings, rn_spending);

/* That of the provider, made if there is none yet; it lives as long as the list. NULL: no memory. */
rn_spending *rn_spending_of(struct rn_spendings *all, const char *provider);
void rn_spendings_free(struct rn_spendings *all);
/* Over all providers: counts of calls alone, since their units may not be added. */
void rn_spendings_sum(const struct rn_spendings *all, rn_cost_counts *out);

/* A call has ended. `fine`: with a status that has a usage to tell; `estimate` is what it was charged before. */
void rn_spending_settle(rn_spending *spending, const rn_usage_told *told, int64_t estimate, bool fine);

/* As an element of a list. */
void rn_spending_write(const rn_spending *spending, rn_output *out);

#endif
