/* SPDX-License-Identifier: MIT */
/*
 * How a "no" looks over HTTP.
 *
 * 429 says "ask again later", 503 "this door is closed for now", 4xx "change the request". The table has one row per
 * reason; an index left out would be status 0, which the assertion of the tests and `rn_refusal_status` both refuse.
 *
 * A program must be able to act without reading English: reason, category, retryable and times are members of their
 * own.
 */
#include "serve/refusal.h"

#include <assert.h>

#include "base/text.h"
#include "base/units.h"
#include "serve/lease_name.h"

#define EXPLANATION_MAX 1024
#define BLOCKING_MAX 100 /* leases named; many small loans may be in the way */

static const struct reason_row {
    int status;
    const char *title;
} reasons[RATION_REASON_COUNT] = {
    [RATION_REASON_RATE_LIMITED] = {429, "Rate limit reached"},
    [RATION_REASON_CONCURRENCY_FULL] = {429, "Too many calls in flight"},
    [RATION_REASON_ADAPTIVE_FULL] = {429, "Too many calls in flight for the provider's present health"},
    [RATION_REASON_QUOTA_EXHAUSTED] = {429, "Quota used up"},
    [RATION_REASON_PENALIZED] = {429, "The provider asked to wait"},
    [RATION_REASON_CIRCUIT_OPEN] = {503, "The provider is failing"},
    [RATION_REASON_GUARANTEE_ON_LOAN] = {429, "The tenant's guarantee is on loan"},
    [RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON] = {422, "The hold is longer than the reclaim horizon"},
    [RATION_REASON_NOTHING_TO_BORROW] = {429, "Nothing to borrow"},
    [RATION_REASON_COST_EXCEEDS_LIMIT] = {422, "The cost can never fit"},
    [RATION_REASON_UNKNOWN_TENANT] = {400, "Unknown tenant"},
    [RATION_REASON_UNKNOWN_CLASS] = {400, "Unknown class"},
    [RATION_REASON_UNKNOWN_ACCOUNT] = {404, "Unknown account"},
    [RATION_REASON_UNKNOWN_PROVIDER] = {404, "Unknown provider"},
    [RATION_REASON_DEADLINE] = {429, "No lease before the deadline"},
    [RATION_REASON_CANCELLED] = {409, "The waiting request was withdrawn"},
    [RATION_REASON_DRAINING] = {503, "Shutting down"},
    [RATION_REASON_QUEUE_FULL] = {503, "Too many requests wait"},
    [RATION_REASON_TOO_MANY_KEYS] = {503, "Too many scope keys"},
    [RATION_REASON_PAUSED] = {503, "Paused by an operator"},
    [RATION_REASON_NOT_PERMITTED] = {403, "Not permitted"},
    [RATION_REASON_STORE_UNAVAILABLE] = {503, "The shared store cannot be reached"},
};

int rn_refusal_status(ration_reason reason)
{
    assert(reason > RATION_REASON_NONE && reason < RATION_REASON_COUNT && reasons[reason].status != 0);
    return reasons[reason].status;
}

static bool retry_known(const ration_decision *decision)
{
    return decision->retry_at.us != RATION_NEVER_US && ration_reason_retryable(decision->reason);
}

int64_t rn_refusal_retry_after(const ration_decision *decision, ration_time now)
{
    if (!retry_known(decision))
        return 0;
    return rn_max(1, rn_div_ceil(rn_max(0, rn_sub(decision->retry_at.us, now.us)), 1000000));
}

ration_decision rn_refusal_of(ration_reason reason, ration_time now)
{
    return (ration_decision){
        .result = RATION_REFUSED,
        .at = now,
        .reason = reason,
        .retry_at = {RATION_NEVER_US},
        .facts = {.charge = RATION_UNSET, .available = RATION_UNSET, .capacity = RATION_UNSET, .ahead = RATION_UNSET},
    };
}

static void problem_texts(rn_output *out, const rn_problem *problem)
{
    const ration_text members[] = {problem->request_id, problem->account, problem->field};
    static const char *const names[] = {"requestId", "account", "field"};

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (members[i].data != NULL)
            rn_output_text(out, names[i], members[i]);
    }
    if (problem->waited_us != RATION_UNSET)
        rn_output_ms(out, "waitedMs", problem->waited_us);
}

static void problem_units(rn_output *out, const char *const *names, const int64_t *values)
{
    for (size_t i = 0; i < 4; i++) {
        if (values[i] != RATION_UNSET)
            rn_output_micro(out, names[i], values[i]);
    }
}

static void problem_facts(rn_output *out, const ration_facts *facts)
{
    static const char *const names[] = {"charge", "available", "capacity", "ahead"};
    const int64_t values[] = {facts->charge, facts->available, facts->capacity, facts->ahead};

    problem_units(out, names, values);
}

/* Where a tenant stands at a share limit. */
static void problem_tenant(rn_output *out, const ration_facts *facts)
{
    static const char *const names[] = {"guarantee", "own", "lent", "pool"};
    const int64_t values[] = {facts->guarantee, facts->own, facts->lent, facts->pool};

    if (facts->tenant.data == NULL)
        return;
    rn_output_text(out, "tenant", facts->tenant);
    problem_units(out, names, values);
    if (facts->hold_us != RATION_UNSET && facts->hold_us != RATION_FOREVER_US)
        rn_output_ms(out, "holdMs", facts->hold_us);
    if (facts->horizon_us != RATION_UNSET)
        rn_output_ms(out, "reclaimHorizonMs", facts->horizon_us);
}

static void problem_blocking(rn_output *out, const ration_decision *d)
{
    char name[RN_LEASE_NAME_BYTES];

    if (d->blocking_count == 0)
        return;
    rn_output_open(out, "blockingLeases", '[');
    for (size_t i = 0; i < d->blocking_count && i < BLOCKING_MAX; i++)
        rn_output_text(out, NULL, rn_lease_name_write(d->blocking[i], name));
    rn_output_close(out, ']');
    if (d->blocking_count > BLOCKING_MAX)
        rn_output_int(out, "blockingLeasesOmitted", (int64_t)(d->blocking_count - BLOCKING_MAX));
}

void rn_refusal_write(rn_output *out, const ration_decision *d)
{
    rn_output_str(out, "reason", ration_reason_name(d->reason));
    rn_output_str(out, "category", ration_category_name(ration_reason_category(d->reason)));
    rn_output_bool(out, "retryable", ration_reason_retryable(d->reason));
    if (d->limit != NULL)
        rn_output_str(out, "limit", d->limit);
    if (d->key.data != NULL)
        rn_output_text(out, "key", d->key);
    if (retry_known(d))
        rn_output_ms(out, "retryAfterMs", rn_max(0, rn_sub(d->retry_at.us, d->at.us)));
    if (d->estimate)
        rn_output_bool(out, "estimate", true);
    problem_facts(out, &d->facts);
    problem_tenant(out, &d->facts);
    problem_blocking(out, d);
}

void rn_problem_write(rn_output *out, const rn_problem *problem)
{
    const ration_decision *d = problem->decision;
    const char *name = d != NULL ? ration_reason_name(d->reason) : problem->name;
    char explanation[EXPLANATION_MAX], urn[64];
    rn_builder type;
    ration_text detail = problem->detail;

    if (detail.data == NULL && d != NULL) {
        detail.size = ration_decision_explain(d, explanation, sizeof explanation);
        detail.data = explanation;
    }

    rn_output_open(out, NULL, '{');
    rn_builder_init(&type, urn, sizeof urn);
    rn_builder_str(&type, "urn:ration:problem:");
    rn_builder_str(&type, name);
    rn_output_text(out, "type", (ration_text){type.data, type.used});
    rn_output_str(out, "title", problem->title != NULL || d == NULL ? problem->title : reasons[d->reason].title);
    rn_output_int(out, "status", d != NULL ? rn_refusal_status(d->reason) : problem->status);
    rn_output_text(out, "detail", detail);
    if (d != NULL)
        rn_refusal_write(out, d);
    problem_texts(out, problem);
    if (problem->more != NULL)
        problem->more(out, problem->more_ctx);
    rn_output_close(out, '}');
    rn_output_newline(out);
}
