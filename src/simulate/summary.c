/* SPDX-License-Identifier: MIT */
/*
 * Figures from results. Percentiles are by nearest rank: a wait that some call really had, never one between two.
 *
 * Invariant: sent = answered + rate_limited + failed, in all and for every tenant.
 */
#include "simulate/summary.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

static int compare(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

int64_t rn_percentile(int64_t *values, size_t count, unsigned percent)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare);

    const size_t rank = (count * percent + 99) / 100;
    return values[rank > 0 ? rank - 1 : 0];
}

/* Count the calls of one tenant, or of all; `waits` has room for the whole schedule. */
static void tally_make(rn_tally *tally, const rn_schedule *schedule, const rn_load_result *results, int64_t *waits)
{
    for (size_t i = 0; i < schedule->count; i++) {
        if (tally->tenant != NULL && !rn_text_is(ration_text_of(tally->tenant), schedule->calls[i].stream->tenant))
            continue;
        tally->sent++;
        tally->repeated += results[i].repeats > 0 ? 1 : 0;
        if (results[i].status == 429) {
            tally->rate_limited++;
        } else if (results[i].status >= 200 && results[i].status < 300) {
            waits[tally->answered++] = results[i].waited_us;
            tally->early += results[i].done_us <= schedule->span_us ? 1 : 0;
        } else {
            tally->failed++;
        }
    }
    tally->wait_p50_us = rn_percentile(waits, tally->answered, 50);
    tally->wait_p99_us = rn_percentile(waits, tally->answered, 99);
}

static int tenant_add(rn_summary *summary, const char *tenant)
{
    for (size_t i = 0; i < summary->tenant_count; i++) {
        if (rn_text_is(ration_text_of(tenant), summary->tenants[i].tenant))
            return 0;
    }
    if (summary->tenant_count == RN_SUMMARY_TENANTS_MAX)
        return RATION_ERR_FULL;
    summary->tenants[summary->tenant_count++].tenant = tenant;
    return 0;
}

int rn_summary_make(const rn_schedule *schedule, const rn_load_result *results, rn_summary *out)
{
    rn_summary summary = {.took_us = 0};
    int64_t *waits = rn_mem_zalloc(rn_mem_default(), schedule->count + 1, sizeof *waits);
    int err = waits == NULL ? RATION_ERR_NOMEM : 0;

    for (size_t i = 0; i < schedule->stream_count && err == 0; i++)
        err = tenant_add(&summary, schedule->streams[i].tenant);
    if (err == 0) {
        tally_make(&summary.all, schedule, results, waits);
        for (size_t i = 0; i < summary.tenant_count; i++)
            tally_make(&summary.tenants[i], schedule, results, waits);
        for (size_t i = 0; i < schedule->count; i++)
            summary.took_us = rn_max(summary.took_us, results[i].done_us);
        *out = summary;
    }
    rn_mem_free(rn_mem_default(), waits);
    return err;
}
