/* SPDX-License-Identifier: MIT */
/*
 * Estimates against costs.
 *
 * Only calls whose response has told what they cost are compared: for the others the estimate is all there is, and
 * they would make every estimate look better than it is. Failed calls have no usage, and nobody misses it.
 *
 * Invariant: `estimated` and `actual` are sums over the same calls; they saturate.
 */
#include "serve/spending.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

rn_spending *rn_spending_of(struct rn_spendings *all, const char *provider)
{
    rn_spending *spending;

    TAILQ_FOREACH (spending, all, link) {
        if (strcmp(spending->provider, provider) == 0)
            return spending;
    }
    spending = rn_mem_zalloc(rn_mem_default(), 1, sizeof *spending);
    if (spending == NULL)
        return NULL;
    spending->provider = rn_mem_textdup(rn_mem_default(), ration_text_of(provider));
    if (spending->provider == NULL) {
        rn_mem_free(rn_mem_default(), spending);
        return NULL;
    }
    TAILQ_INSERT_TAIL(all, spending, link);
    return spending;
}

void rn_spendings_free(struct rn_spendings *all)
{
    rn_spending *spending;

    while ((spending = TAILQ_FIRST(all)) != NULL) {
        TAILQ_REMOVE(all, spending, link);
        rn_mem_free(rn_mem_default(), spending->provider);
        rn_mem_free(rn_mem_default(), spending);
    }
}

void rn_spendings_sum(const struct rn_spendings *all, rn_cost_counts *out)
{
    const rn_spending *spending;

    *out = (rn_cost_counts){.estimated = 0};
    TAILQ_FOREACH (spending, all, link) {
        for (int i = 0; i < RN_ESTIMATE_SOURCES; i++)
            out->estimates[i] += spending->counts.estimates[i];
        for (int i = 0; i < RN_COST_SOURCES; i++)
            out->settled[i] += spending->counts.settled[i];
        for (int i = 0; i < RN_USAGE_FAULTS; i++)
            out->unseen[i] += spending->counts.unseen[i];
    }
}

void rn_spending_settle(rn_spending *spending, const rn_usage_told *told, int64_t estimate, bool fine)
{
    rn_cost_counts *counts = &spending->counts;

    counts->settled[told->source]++;
    if (told->source != RN_COST_ESTIMATE) {
        counts->estimated = rn_add(counts->estimated, estimate);
        counts->actual = rn_add(counts->actual, told->micro);
    }
    if (told->fault != RN_USAGE_FINE && fine)
        counts->unseen[told->fault]++;
}

void rn_spending_write(const rn_spending *spending, rn_output *out)
{
    const rn_cost_counts *counts = &spending->counts;

    rn_output_open(out, NULL, '{');
    rn_output_str(out, "provider", spending->provider);
    rn_output_open(out, "estimates", '{');
    for (int i = 0; i < RN_ESTIMATE_SOURCES; i++)
        rn_output_int(out, rn_estimate_source_name((rn_estimate_source)i), (int64_t)counts->estimates[i]);
    rn_output_close(out, '}');
    rn_output_open(out, "settled", '{');
    for (int i = 0; i < RN_COST_SOURCES; i++)
        rn_output_int(out, rn_cost_source_name((rn_cost_source)i), (int64_t)counts->settled[i]);
    rn_output_close(out, '}');
    rn_output_open(out, "unseen", '{');
    for (int i = 0; i < RN_USAGE_FAULTS; i++)
        rn_output_int(out, rn_usage_fault_name((rn_usage_fault)i), (int64_t)counts->unseen[i]);
    rn_output_close(out, '}');
    rn_output_micro(out, "estimated", counts->estimated);
    rn_output_micro(out, "actual", counts->actual);
    rn_output_close(out, '}');
}
