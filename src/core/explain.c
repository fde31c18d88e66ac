/* SPDX-License-Identifier: MIT */

/*
 * Refusals in plain English, with the numbers in them. A pure function of the decision: whoever shows it asks for it,
 * so a refusal that nobody reads costs no text.
 */

#include <ration/engine.h>

#include "base/text.h"
#include "base/units.h"

static void put_where(rn_builder *b, const ration_decision *d)
{
    if (d->limit == NULL && d->key.size > 0) {
        rn_builder_text(b, d->key);
        return;
    }
    if (d->limit == NULL) {
        rn_builder_str(b, d->facts.tenant.data != NULL ? "the ceiling" : "the account");
        return;
    }
    rn_builder_str(b, "limit ");
    rn_builder_str(b, d->limit);
    if (d->key.size > 0) {
        rn_builder_str(b, " at ");
        rn_builder_text(b, d->key);
    }
}

static void put_needs(rn_builder *b, const ration_decision *d)
{
    if (d->facts.charge == RATION_UNSET)
        return;
    rn_builder_str(b, ": needs ");
    rn_builder_micro(b, d->facts.charge);
    if (d->facts.available != RATION_UNSET) {
        rn_builder_str(b, ", ");
        rn_builder_micro(b, d->facts.available);
    }
    if (d->facts.available != RATION_UNSET && d->facts.capacity != RATION_UNSET) {
        rn_builder_str(b, " of ");
        rn_builder_micro(b, d->facts.capacity);
    }
    if (d->facts.available != RATION_UNSET)
        rn_builder_str(b, " left");
    if (d->facts.ahead > 0) {
        rn_builder_str(b, ", waiters ahead need ");
        rn_builder_micro(b, d->facts.ahead);
    }
}

static void put_when(rn_builder *b, const ration_decision *d)
{
    if (!ration_reason_retryable(d->reason)) {
        rn_builder_str(b, ". Waiting does not help.");
        return;
    }
    if (!rn_time_known(d->retry_at)) {
        rn_builder_str(b, ". When that changes is not known.");
        return;
    }
    rn_builder_str(b, d->estimate ? ". Try again in about " : ". Try again in ");
    rn_builder_duration(b, rn_max(0, rn_sub(d->retry_at.us, d->at.us)));
    rn_builder_str(b, ", at ");
    rn_builder_instant(b, d->retry_at);
    rn_builder_char(b, '.');
}

/* What happened, where. The rest of the sentence is the same for all. */
static const char *what(ration_reason reason)
{
    switch (reason) {
    case RATION_REASON_RATE_LIMITED:
        return "The next token has not come yet in ";
    case RATION_REASON_CONCURRENCY_FULL:
        return "All slots are taken in ";
    case RATION_REASON_ADAPTIVE_FULL:
        return "The adaptive limit is reached in ";
    case RATION_REASON_QUOTA_EXHAUSTED:
        return "The quota is used up in ";
    case RATION_REASON_PENALIZED:
        return "The provider asked to pause ";
    case RATION_REASON_PAUSED:
        return "An operator has paused ";
    case RATION_REASON_CIRCUIT_OPEN:
        return "The circuit is open for ";
    case RATION_REASON_GUARANTEE_ON_LOAN:
        return "The tenant's guarantee is on loan in ";
    case RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON:
        return "The hold is longer than the reclaim horizon of ";
    case RATION_REASON_NOTHING_TO_BORROW:
        return "Nothing is left to borrow in ";
    case RATION_REASON_COST_EXCEEDS_LIMIT:
        return "The request can never fit into ";
    case RATION_REASON_DEADLINE:
        return "The deadline is too early for ";
    case RATION_REASON_TOO_MANY_KEYS:
        return "There is no room for another scope key in ";
    case RATION_REASON_NONE:
    case RATION_REASON_UNKNOWN_TENANT:
    case RATION_REASON_UNKNOWN_CLASS:
    case RATION_REASON_UNKNOWN_ACCOUNT:
    case RATION_REASON_UNKNOWN_PROVIDER:
    case RATION_REASON_CANCELLED:
    case RATION_REASON_DRAINING:
    case RATION_REASON_QUEUE_FULL:
    case RATION_REASON_NOT_PERMITTED:
    case RATION_REASON_STORE_UNAVAILABLE:
    case RATION_REASON_COUNT:
        break;
    }
    return NULL;
}

/* Reasons that no limit gives. */
static const char *plain(ration_reason reason)
{
    switch (reason) {
    case RATION_REASON_UNKNOWN_TENANT:
        return "The limit knows no such tenant; add it to `tenants`, or say with `unknownTenant` what it counts as.";
    case RATION_REASON_UNKNOWN_CLASS:
        return "The limit knows no such class; add it to `classes`, or leave the class out.";
    case RATION_REASON_UNKNOWN_ACCOUNT:
        return "There is no such account at this provider; see `accounts` in the configuration.";
    case RATION_REASON_UNKNOWN_PROVIDER:
        return "There is no such provider; see `providers` in the configuration.";
    case RATION_REASON_CANCELLED:
        return "The request was cancelled.";
    case RATION_REASON_DRAINING:
        return "The process is stopping and takes no new requests.";
    case RATION_REASON_QUEUE_FULL:
        return "Too many requests wait already; see `settings.queue`.";
    case RATION_REASON_NOT_PERMITTED:
        return "The bearer may not ask for this.";
    case RATION_REASON_STORE_UNAVAILABLE:
        return "The store that holds the shared state does not answer.";
    case RATION_REASON_NONE:
    case RATION_REASON_RATE_LIMITED:
    case RATION_REASON_CONCURRENCY_FULL:
    case RATION_REASON_ADAPTIVE_FULL:
    case RATION_REASON_QUOTA_EXHAUSTED:
    case RATION_REASON_PENALIZED:
    case RATION_REASON_CIRCUIT_OPEN:
    case RATION_REASON_GUARANTEE_ON_LOAN:
    case RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON:
    case RATION_REASON_NOTHING_TO_BORROW:
    case RATION_REASON_COST_EXCEEDS_LIMIT:
    case RATION_REASON_DEADLINE:
    case RATION_REASON_PAUSED:
    case RATION_REASON_TOO_MANY_KEYS:
    case RATION_REASON_COUNT:
        break;
    }
    return "";
}

/* ---- fairness: what is the tenant's own, what is on loan, and what to change ---- */

/* "Tenant a asks limit tokens at acc for 50" */
static void put_asks(rn_builder *b, const ration_decision *d)
{
    rn_builder_str(b, "Tenant ");
    rn_builder_text(b, d->facts.tenant);
    rn_builder_str(b, " asks ");
    put_where(b, d);
    rn_builder_str(b, " for ");
    rn_builder_micro(b, d->facts.charge);
}

static int64_t free_of(const ration_facts *f)
{
    return rn_max(0, rn_sub(f->guarantee, rn_add(f->own, f->lent)));
}

static void put_guarantee(rn_builder *b, const ration_facts *f)
{
    rn_builder_micro(b, free_of(f));
    rn_builder_str(b, " of its guarantee of ");
    rn_builder_micro(b, f->guarantee);
    rn_builder_str(b, " is free");
}

static void explain_on_loan(rn_builder *b, const ration_decision *d)
{
    put_asks(b, d);
    rn_builder_str(b, ", which it is entitled to: ");
    put_guarantee(b, &d->facts);
    if (d->facts.charge <= free_of(&d->facts)) {
        rn_builder_str(b, ", but leases above guarantees that have shrunk fill the ceiling until they end");
    } else {
        rn_builder_str(b, ", ");
        rn_builder_micro(b, d->facts.lent);
        rn_builder_str(b, " is on loan since it was idle. Nothing more of it is lent while it asks");
    }
    if (!rn_time_known(d->retry_at))
        rn_builder_str(b, ", but a lease in the way is past its declared end or has none");
    put_when(b, d);
}

static void explain_hold(rn_builder *b, const ration_decision *d)
{
    const ration_facts *f = &d->facts;

    put_asks(b, d);
    if (f->hold_us == RATION_UNSET || f->hold_us == RATION_FOREVER_US) {
        rn_builder_str(b, " without declaring how long it will hold it");
    } else {
        rn_builder_str(b, ", to be held for ");
        rn_builder_duration(b, f->hold_us);
    }
    rn_builder_str(b, ". Only ");
    put_guarantee(b, f);
    rn_builder_str(b, ", and nothing is lent for longer than the reclaim horizon of ");
    rn_builder_duration(b, f->horizon_us);
    rn_builder_str(b, ", since its owner could not have it back in time. Declare a hold of ");
    rn_builder_duration(b, f->horizon_us);
    rn_builder_str(b, " or less, ask for less at once, ");
    if (f->charge <= f->guarantee)
        rn_builder_str(b, "let it wait for the tenant's own leases to end, ");
    rn_builder_str(b, "or raise `reclaimHorizon`.");
}

static void explain_pool(rn_builder *b, const ration_decision *d)
{
    const ration_facts *f = &d->facts;

    put_asks(b, d);
    rn_builder_str(b, ": ");
    put_guarantee(b, f);
    rn_builder_str(b, ", and idle tenants can lend ");
    rn_builder_micro(b, f->pool);
    rn_builder_str(b, " of the ");
    rn_builder_micro(b, rn_max(0, rn_sub(f->charge, free_of(f))));
    rn_builder_str(b, " that are missing");
    if (f->ahead > 0) {
        rn_builder_str(b, "; waiters ahead need ");
        rn_builder_micro(b, f->ahead);
    }
    put_when(b, d);
}

/* False: not about fairness. */
static bool explain_fairness(rn_builder *b, const ration_decision *d)
{
    if (d->facts.tenant.data == NULL)
        return false;
    if (d->reason == RATION_REASON_GUARANTEE_ON_LOAN) {
        explain_on_loan(b, d);
    } else if (d->reason == RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON) {
        explain_hold(b, d);
    } else if (d->reason == RATION_REASON_NOTHING_TO_BORROW) {
        explain_pool(b, d);
    } else {
        return false;
    }
    return true;
}

size_t ration_decision_explain(const ration_decision *decision, char *buffer, size_t size)
{
    rn_builder b;

    rn_builder_init(&b, buffer, size);
    if (decision == NULL || decision->result != RATION_REFUSED || explain_fairness(&b, decision))
        return b.used;

    const bool unmarked = decision->reason == RATION_REASON_STORE_UNAVAILABLE && decision->limit != NULL;
    const char *start =
        unmarked ? "Requests wait until the ledger has written the next mark of " : what(decision->reason);

    if (start == NULL) {
        rn_builder_str(&b, plain(decision->reason));
        return b.used;
    }
    rn_builder_str(&b, start);
    put_where(&b, decision);
    put_needs(&b, decision);
    put_when(&b, decision);
    return b.used;
}
