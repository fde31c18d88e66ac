/* SPDX-License-Identifier: MIT */
/*
 * The last quarter of an hour as samples of counts that only grow.
 *
 * A sample has what the status has at that instant, under the same names: a reader subtracts two of them, and needs to
 * know one form only. Nothing is averaged or rounded here.
 *
 * Invariant: the sample number n, for all that are kept, stands at n % RN_HISTORY_MAX.
 */
#include "serve/history.h"

#include "base/mem.h"

typedef struct sample {
    ration_time at;
    rn_history_counts counts;
} sample;

struct rn_history {
    uint64_t added;
    sample ring[RN_HISTORY_MAX];
};

int rn_history_new(rn_history **out)
{
    *out = rn_mem_zalloc(rn_mem_default(), 1, sizeof **out);
    return *out != NULL ? RATION_OK : RATION_ERR_NOMEM;
}

void rn_history_free(rn_history *history)
{
    rn_mem_free(rn_mem_default(), history);
}

void rn_history_add(rn_history *history, ration_time at, const rn_history_counts *counts)
{
    history->ring[history->added % RN_HISTORY_MAX] = (sample){.at = at, .counts = *counts};
    history->added++;
}

/* How long granted calls had waited, by priority: counts below each bound. Two of them tell of the time between. */
void rn_history_waits_write(const rn_history_counts *counts, rn_output *out)
{
    rn_output_open(out, "waits", '{');
    rn_output_open(out, "boundsMs", '[');
    for (size_t i = 0; i < RN_HISTOGRAM_BUCKETS; i++)
        rn_output_ms(out, NULL, rn_histogram_bound(i));
    rn_output_close(out, ']');
    for (int i = RATION_PRIORITY_CRITICAL; i <= RATION_PRIORITY_LOW; i++) {
        rn_output_open(out, ration_priority_name((ration_priority)i), '[');
        for (size_t j = 0; j <= RN_HISTOGRAM_BUCKETS; j++)
            rn_output_int(out, NULL, (int64_t)counts->waits[i].counts[j]);
        rn_output_close(out, ']');
    }
    rn_output_close(out, '}');
}

void rn_history_refusals_write(const rn_history_counts *counts, rn_output *out)
{
    rn_output_open(out, "refusals", '{');
    for (int i = RATION_REASON_NONE + 1; i < RATION_REASON_COUNT; i++) {
        if (counts->refusals[i] > 0)
            rn_output_int(out, ration_reason_name((ration_reason)i), (int64_t)counts->refusals[i]);
    }
    rn_output_close(out, '}');
}

void rn_history_outcomes_write(const rn_history_counts *counts, rn_output *out)
{
    rn_output_open(out, "outcomes", '{');
    for (int i = 0; i < RN_OUTCOMES; i++)
        rn_output_int(out, ration_outcome_name((ration_outcome)i), (int64_t)counts->outcomes[i]);
    rn_output_close(out, '}');
}

void rn_history_write(const rn_history *history, ration_time started_at, rn_output *out)
{
    const uint64_t oldest = history->added > RN_HISTORY_MAX ? history->added - RN_HISTORY_MAX : 0;

    rn_output_open(out, NULL, '{');
    rn_output_ms(out, "startedAt", started_at.us);
    rn_output_open(out, "samples", '[');
    for (uint64_t i = oldest; i < history->added; i++) {
        const sample *one = &history->ring[i % RN_HISTORY_MAX];

        rn_output_open(out, NULL, '{');
        rn_output_ms(out, "at", one->at.us);
        rn_history_waits_write(&one->counts, out);
        rn_history_refusals_write(&one->counts, out);
        rn_history_outcomes_write(&one->counts, out);
        rn_output_close(out, '}');
    }
    rn_output_close(out, ']');
    rn_output_close(out, '}');
    rn_output_newline(out);
}
