/* SPDX-License-Identifier: MIT */

/* The engine behind the seam: each row hands on to the call of the same name. */

#include "core/decider.h"

#include <ration/operate.h>

static ration_engine *engine_of(const rn_decider *d)
{
    return ((const rn_engine_decider *)(const void *)d)->engine;
}

static int decider_submit(rn_decider *d, ration_time now, const ration_request *request, ration_decision *out)
{
    return ration_engine_submit(engine_of(d), now, request, out);
}

static int decider_check(rn_decider *d, ration_time now, const ration_request *request, ration_check_mode mode,
                         ration_decision *out)
{
    return ration_engine_check(engine_of(d), now, request, mode, out);
}

static int decider_release(rn_decider *d, ration_time now, ration_lease lease, const ration_completion *completion)
{
    return ration_engine_release(engine_of(d), now, lease, completion);
}

static int decider_observe(rn_decider *d, ration_time now, ration_lease lease, const ration_response *response)
{
    return ration_engine_observe(engine_of(d), now, lease, response);
}

static int decider_renew(rn_decider *d, ration_time now, ration_lease lease)
{
    return ration_engine_renew(engine_of(d), now, lease);
}

static int decider_cancel(rn_decider *d, ration_time now, ration_lease lease)
{
    return ration_engine_cancel(engine_of(d), now, lease);
}

static int decider_health(rn_decider *d, ration_time now, ration_text account, bool ok)
{
    return ration_engine_health(engine_of(d), now, account, ok);
}

static int decider_operate(rn_decider *d, ration_time now, ration_op op, const ration_counter_name *counter,
                           int64_t units)
{
    ration_engine *engine = engine_of(d);

    if (op == RATION_OP_PAUSE)
        return ration_engine_pause(engine, now, counter);
    if (op == RATION_OP_RESUME)
        return ration_engine_resume(engine, now, counter);
    if (op == RATION_OP_RESET)
        return ration_engine_reset(engine, now, counter);
    if (op == RATION_OP_GRANT)
        return ration_engine_grant(engine, now, counter, units);
    return op == RATION_OP_DRAIN ? ration_engine_drain(engine, now) : RATION_ERR_INVALID;
}

static int decider_advance(rn_decider *d, ration_time now)
{
    return ration_engine_advance(engine_of(d), now);
}

static ration_time decider_next_deadline(const rn_decider *d)
{
    return ration_engine_next_deadline(engine_of(d));
}

static bool decider_next_event(rn_decider *d, ration_event *out)
{
    return ration_engine_next_event(engine_of(d), out);
}

static size_t decider_standing(rn_decider *d, ration_lease lease, const ration_decision *refused, rn_standing *out,
                               size_t max)
{
    return refused != NULL ? rn_engine_standing_of(engine_of(d), refused, out)
                           : rn_engine_standing(engine_of(d), lease, out, max);
}

static int decider_report(rn_decider *d, ration_time now, ration_report_kind kind, const ration_reporter *reporter)
{
    return ration_engine_report(engine_of(d), now, kind, reporter);
}

static void decider_totals(const rn_decider *d, ration_totals *out)
{
    ration_engine_totals(engine_of(d), out);
}

static const rn_decider_ops engine_ops = {
    .submit = decider_submit,
    .check = decider_check,
    .release = decider_release,
    .observe = decider_observe,
    .renew = decider_renew,
    .cancel = decider_cancel,
    .health = decider_health,
    .operate = decider_operate,
    .advance = decider_advance,
    .next_deadline = decider_next_deadline,
    .next_event = decider_next_event,
    .standing = decider_standing,
    .report = decider_report,
    .totals = decider_totals,
};

rn_decider *rn_engine_decider_init(rn_engine_decider *decider, ration_engine *engine)
{
    *decider = (rn_engine_decider){.base = {&engine_ops}, .engine = engine};
    return &decider->base;
}
