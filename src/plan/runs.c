/* SPDX-License-Identifier: MIT */
/*
 * What a job's last runs tell of the next: requests by their median, so that one odd run moves nothing, and the
 * overhead of retries as one ratio over all of them. Chapter 4, "Requests per run".
 *
 * Runs are few, so they are sorted by insertion as they are read. Everything rounds up to the millionth.
 */
#include <ration/plan.h>

#include "base/units.h"
#include "plan/budget.h"

static bool is_count(int64_t n)
{
    return n >= 0 && n <= RATION_UNITS_MAX / RATION_UNIT;
}

/* Requests of one child, in millionths. */
static int64_t requests_of(const ration_run *run)
{
    return rn_div_ceil(run->requests * RATION_UNIT, rn_max(run->fan_out, 1));
}

static void insert(int64_t *sorted, size_t count, int64_t value)
{
    size_t at = count;

    while (at > 0 && sorted[at - 1] > value) {
        sorted[at] = sorted[at - 1];
        at--;
    }
    sorted[at] = value;
}

int ration_job_learn(ration_plan_job *job, const ration_run *runs, size_t count)
{
    int64_t sorted[RATION_RUNS_MAX];
    int64_t requests = 0;
    int64_t retries = 0;
    const size_t used = count < RATION_RUNS_MAX ? count : RATION_RUNS_MAX;

    if (job == NULL || (runs == NULL && count > 0))
        return RATION_ERR_INVALID;
    for (size_t i = 0; i < used; i++) {
        const ration_run *const run = &runs[count - used + i];

        if (!is_count(run->requests) || !is_count(run->retries) || run->fan_out < 0)
            return RATION_ERR_INVALID;
        insert(sorted, i, requests_of(run));
        requests += run->requests;
        retries += run->retries;
    }
    if (used == 0)
        return RATION_OK;
    job->requests = (sorted[(used - 1) / 2] + sorted[used / 2] + 1) / 2;
    if (requests == 0)
        return RATION_OK;

    const rn_wide part = rn_wide_div_ceil((rn_wide)(uint64_t)retries * RATION_UNIT, (uint64_t)requests);

    job->retry_overhead = (ration_ratio){(int32_t)rn_min(rn_wide_int(part), RATION_UNIT), (int32_t)RATION_UNIT};
    return RATION_OK;
}
