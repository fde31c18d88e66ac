/* SPDX-License-Identifier: MIT */
/*
 * Asking for a lease.
 *
 * A request's answer is an event, always: what the store says, or, where it says nothing in time, what this process
 * says by itself. That is a refusal, or a lease of the few that it may grant alone, which is entered into the store
 * as soon as that is back. A refusal for want of an answer leaves a release behind, for the store may have granted it
 * all the same.
 *
 * Whoever waits does so in the store. What has come of it is collected when somebody says that there is something,
 * and once in a while in any case; one that the store has forgotten is asked for anew. Those who wait while the store
 * goes away go on waiting: it may be back in time.
 */
#include "fleet/member_parts.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/engine.h"

#define MS INT64_C(1000)
#define LOOK_US (1000 * MS)  /* at a waiter of which nobody has told anything */
#define LATE_US (20 * MS)    /* behind its deadline, by which the store has refused it */
#define GRACE_US (1000 * MS) /* and a command's time: then it is not refused by the store any more */
#define TRIES 2              /* of an admission whose connection broke */

/* ---- decisions of this process */

static void refuse(const rn_member *m, ration_reason reason, ration_decision *out)
{
    *out = (ration_decision){.result = RATION_REFUSED,
                             .at = rn_member_now(m),
                             .reason = reason,
                             .retry_at = {RATION_NEVER_US},
                             .facts = RN_NO_FACTS};
    if (reason == RATION_REASON_STORE_UNAVAILABLE)
        out->retry_at = rn_time_add(out->at, m->settings.backoff_us);
}

void rn_member_decide(rn_member *m, rn_member_lease *lease, ration_decision *out)
{
    const int64_t limit = m->settings.local_limit;

    if (limit == RATION_UNSET || m->stage_sizes[RN_OURS_LOCAL] >= (size_t)limit) {
        refuse(m, RATION_REASON_STORE_UNAVAILABLE, out);
        return;
    }
    *out = (ration_decision){
        .result = RATION_GRANTED, .at = rn_member_now(m), .retry_at = {RATION_NEVER_US}, .facts = RN_NO_FACTS};
    lease->granted_at = out->at;
    rn_member_lease_enter(m, lease, RN_OURS_LOCAL);
    rn_member_lease_alive(m, lease);
}

static void count_refusal(rn_member *m, ration_reason reason)
{
    m->totals.refused++;
    m->totals.refusals[reason]++;
}

/* The answer is there at once, or the store's comes later. Takes the route's reference. */
static int ask_for(rn_member *m, rn_route *route, const ration_request *request, const rn_call_ask *ask,
                   ration_decision *out)
{
    rn_member_lease *lease = NULL;

    rn_member_figures_touch(m, route);
    rn_member_gates_touch(m, route);

    const int err = rn_member_lease_new(m, route, request, ask, &lease);

    if (err != RATION_OK) {
        rn_fleet_rules_forget(&m->world->rules, route);
        return err;
    }

    const ration_lease handle = lease->handle;
    const ration_priority priority = lease->priority;

    const rn_member_served served = rn_member_block_serve(m, lease);

    if (served == RN_SERVED_GRANTED) {
        *out = (ration_decision){
            .result = RATION_GRANTED, .at = rn_member_now(m), .retry_at = {RATION_NEVER_US}, .facts = RN_NO_FACTS};
    } else if (served == RN_SERVED_NOT && rn_member_is_away(m)) {
        rn_member_decide(m, lease, out);
    } else if (served == RN_SERVED_PARKED || rn_member_ask(m, lease)) {
        *out = (ration_decision){.result = RATION_PENDING, .at = rn_member_now(m), .facts = RN_NO_FACTS};
    } else {
        rn_member_lease_free(m, lease);
        return RATION_ERR_NOMEM;
    }
    if (out->result == RATION_REFUSED || (ask->dry && out->result == RATION_GRANTED)) {
        rn_member_lease_free(m, lease);
        return RATION_OK;
    }
    out->lease = handle;
    out->priority = priority;
    return RATION_OK;
}

int rn_member_check(rn_decider *d, ration_time now, const ration_request *request, ration_check_mode mode,
                    ration_decision *out)
{
    rn_member *const m = (rn_member *)(void *)d;
    rn_call_ask ask = {.id = {"", 0}, .dry = true, .enforcer = mode == RATION_CHECK_ENFORCER};
    rn_route *route = NULL;
    int err = rn_request_is_valid(request) ? RATION_OK : RATION_ERR_INVALID;

    if (err == RATION_OK)
        err = rn_fleet_rules_ask(&m->world->rules, now, request, &ask, &route, out);
    if (err == RATION_OK)
        m->serial++;
    return err == RATION_OK && route != NULL ? ask_for(m, route, request, &ask, out) : err;
}

int rn_member_submit(rn_decider *d, ration_time now, const ration_request *request, ration_decision *out)
{
    rn_member *const m = (rn_member *)(void *)d;
    rn_call_ask ask = {.id = {NULL, 0}};
    rn_route *route = NULL;
    int err = rn_request_is_valid(request) ? RATION_OK : RATION_ERR_INVALID;

    if (err == RATION_OK)
        err = rn_fleet_rules_ask(&m->world->rules, now, request, &ask, &route, out);
    if (err != RATION_OK)
        return err;
    m->serial++;
    m->totals.submitted++;
    if (route != NULL && m->draining) {
        rn_fleet_rules_forget(&m->world->rules, route);
        refuse(m, RATION_REASON_DRAINING, out);
        route = NULL;
    }

    const uint64_t serial = m->serial;

    if (route != NULL)
        err = ask_for(m, route, request, &ask, out);
    if (err != RATION_OK)
        return err;
    out->serial = serial;
    if (out->result == RATION_REFUSED)
        count_refusal(m, out->reason);
    m->totals.granted += out->result == RATION_GRANTED;
    return RATION_OK;
}

/* ---- the store */

bool rn_member_ask(rn_member *m, rn_member_lease *lease)
{
    rn_member_call *const call = rn_member_call_new(m, RN_SCRIPT_ADMIT, lease);

    if (call == NULL)
        return false;
    lease->asked = true;
    call->ask.wait_us = rn_max(0, rn_sub(lease->deadline.us, rn_member_now(m).us));
    rn_member_lease_due(m, lease, (ration_time){RATION_NEVER_US});
    if (lease->stage != RN_OURS_ASKING)
        rn_member_lease_enter(m, lease, RN_OURS_ASKING);
    rn_member_call_send(m, call);
    return true;
}

/* Nobody wants what the store has granted or lets wait, or may have. */
static void withdraw(rn_member *m, const rn_member_call *from, rn_script_name script)
{
    rn_member_call *const call = rn_member_call_plain(m, script, from->world);

    if (call == NULL)
        return; /* it lapses */
    call->route = from->route;
    call->route->refs++;
    memcpy(call->name, from->name, sizeof call->name);
    call->end = (rn_call_end){.outcome = RATION_OUTCOME_CANCELLED, .cost = RATION_UNSET};
    call->give_up = rn_time_add(call->wanted_at, from->ask.ttl_us);
    rn_member_call_send(m, call);
}

static void granted(rn_member *m, rn_member_lease *lease)
{
    if (lease->ask.dry) {
        rn_member_tell_granted(m, lease);
        rn_member_lease_end(m, lease);
        return;
    }
    lease->granted_at = rn_member_now(m);
    if (lease->ask.hold_us != RATION_UNSET)
        lease->ends_at = rn_time_add(lease->granted_at, lease->ask.hold_us);
    rn_member_spent(m, lease, 1);
    rn_member_lease_enter(m, lease, RN_OURS_HELD);
    rn_member_lease_alive(m, lease);
    rn_member_tell_granted(m, lease);
}

/* What was granted to a waiter lives for a short time only, until its member shows that it knows. */
static void granted_later(rn_member *m, rn_member_lease *lease)
{
    const ration_lease handle = lease->handle;

    granted(m, lease);
    rn_member_call_many(m, RN_SCRIPT_RENEW, lease, &handle, 1);
}

/* ---- waiting */

/* Others say when it is to be asked for, if no message is lost; it is all the same, once in a while. */
static void wait_for(rn_member *m, rn_member_lease *lease)
{
    const ration_time now = rn_member_now(m);
    const int64_t left_us = rn_sub(lease->deadline.us, now.us);
    const int64_t look_us =
        left_us > 0 ? rn_min(LOOK_US - rn_member_jitter(m, LOOK_US / 4), left_us + LATE_US) : LATE_US;

    lease->waits = true;
    if (lease->stage != RN_OURS_WAITING)
        rn_member_lease_enter(m, lease, RN_OURS_WAITING);
    rn_member_lease_due(m, lease, lease->called ? now : rn_time_add(now, look_us));
    lease->called = false;
}

/* The store refuses at the deadline. One that answers with errors, or has lost what it knew of it, does not. */
bool rn_member_wait_due(rn_member *m, rn_member_lease *lease, ration_time now)
{
    const bool away = rn_member_is_away(m);
    const bool is_over = rn_sub(now.us, lease->deadline.us) >= m->settings.command_us + GRACE_US;
    rn_member_call *const call = is_over ? rn_member_call_new(m, RN_SCRIPT_CANCEL, lease) : NULL;
    ration_decision decision;

    if (call != NULL)
        rn_member_call_send(m, call);
    if (is_over || (away && now.us >= lease->deadline.us)) {
        refuse(m, RATION_REASON_STORE_UNAVAILABLE, &decision);
        rn_member_tell_refused(m, lease, &decision);
        return false;
    }
    wait_for(m, lease);
    return !away;
}

/* ---- no answer */

bool rn_member_alone(rn_member *m, rn_member_lease *lease)
{
    ration_decision decision;

    rn_member_decide(m, lease, &decision);
    if (decision.result == RATION_GRANTED) {
        rn_member_tell_granted(m, lease);
        if (lease->ask.dry)
            rn_member_lease_end(m, lease);
        return true;
    }
    if (lease->waits && rn_time_before(rn_member_now(m), lease->deadline)) {
        wait_for(m, lease);
        return true;
    }
    rn_member_tell_refused(m, lease, &decision);
    return false;
}

static void unanswered(rn_member *m, const rn_member_call *call, rn_member_lease *lease)
{
    const bool broke = rn_sub(rn_member_now(m).us, call->sent_at.us) < m->settings.command_us / 2;

    if (broke && !rn_member_is_away(m) && lease->tries < TRIES) {
        lease->tries++;
        if (rn_member_ask(m, lease))
            return;
    }
    if (!rn_member_alone(m, lease) && !call->ask.dry) {
        withdraw(m, call, RN_SCRIPT_CANCEL);
        withdraw(m, call, RN_SCRIPT_RELEASE);
    }
}

/* ---- answers */

/* The clock of whoever reads it is ours. */
static void decision_move(const rn_member *m, ration_decision *decision)
{
    decision->at = rn_member_now(m);
    decision->retry_at = rn_member_local(m, decision->retry_at);
}

/* Who only wants to know hears that it would wait. */
static void queued(rn_member *m, rn_member_lease *lease, const ration_decision *decision)
{
    if (lease->ask.dry) {
        rn_member_tell_refused(m, lease, decision);
    } else {
        m->totals.queued += !lease->waits;
        wait_for(m, lease);
    }
}

void rn_member_heard(rn_member *m, const rn_fleet_event *event)
{
    rn_member_lease *const lease = rn_member_lease_named(m, event->key);
    ration_decision decision;

    if (lease == NULL || (lease->stage != RN_OURS_WAITING && lease->stage != RN_OURS_ASKING))
        return;
    lease->waits = true;
    if (rn_text_is(event->what, "granted")) {
        granted_later(m, lease);
    } else if (rn_text_is(event->what, "refused")) {
        rn_answer_refuse(event->why, event->at, lease->route, &lease->ask, &decision);
        decision_move(m, &decision);
        rn_member_tell_refused(m, lease, &decision);
    }
}

static void collected(rn_member *m, rn_member_lease *lease, const rn_fleet_collected *what)
{
    ration_decision decision;

    if (what->result == RN_ANSWER_GRANTED) {
        granted(m, lease);
    } else if (what->result == RN_ANSWER_REFUSED) {
        rn_answer_refuse(what->why, what->at, lease->route, &lease->ask, &decision);
        decision_move(m, &decision);
        rn_member_tell_refused(m, lease, &decision);
    } else if (what->result != RN_ANSWER_QUEUED) {
        (void)rn_member_ask(m, lease); /* the store has forgotten it; without memory it is again, later */
    }
}

void rn_member_collected(rn_member *m, const rn_member_call *call, const redisReply *reply)
{
    rn_fleet_collected what;

    for (size_t i = 0; i < call->many_count && rn_answer_collected(reply, i, &what); i++) {
        rn_member_lease *const lease = rn_member_lease_find(m, call->many[i]);

        if (lease != NULL && lease->stage == RN_OURS_WAITING)
            collected(m, lease, &what);
    }
}

static void entered(rn_member *m, rn_member_lease *lease)
{
    if (lease->stage != RN_OURS_LOCAL)
        return;
    rn_member_lease_enter(m, lease, RN_OURS_HELD);
    rn_member_lease_alive(m, lease);
}

void rn_member_admitted(rn_member *m, rn_member_call *call, const redisReply *reply)
{
    rn_member_lease *const lease = rn_member_lease_find(m, call->lease);
    const int64_t result = reply != NULL ? rn_answer_result(reply) : RN_ANSWER_UNKNOWN;
    ration_decision decision;

    if (lease == NULL) {
        /* Cancelled, or ended, before the answer came. */
        if (!call->ask.dry && (reply == NULL || result == RN_ANSWER_QUEUED))
            withdraw(m, call, RN_SCRIPT_CANCEL);
        if (!call->ask.dry && (reply == NULL || result == RN_ANSWER_GRANTED))
            withdraw(m, call, RN_SCRIPT_RELEASE);
        return;
    }
    if (call->ask.enter) {
        if (result == RN_ANSWER_GRANTED)
            entered(m, lease);
        return;
    }
    if (lease->stage != RN_OURS_ASKING)
        return;
    if (result == RN_ANSWER_REFUSED || result == RN_ANSWER_QUEUED) {
        rn_answer_decide(reply, call->route, &call->ask, &decision);
        decision_move(m, &decision);
    }
    if (result == RN_ANSWER_GRANTED && (lease->waits || lease->tries > 0)) {
        granted_later(m, lease);
    } else if (result == RN_ANSWER_GRANTED) {
        granted(m, lease);
    } else if (result == RN_ANSWER_REFUSED) {
        rn_member_tell_refused(m, lease, &decision);
    } else if (result == RN_ANSWER_QUEUED) {
        queued(m, lease, &decision);
    } else {
        unanswered(m, call, lease);
    }
}

/* ---- what was granted here */

void rn_member_enter(rn_member *m, rn_member_lease *lease)
{
    rn_member_call *const call = rn_member_call_new(m, RN_SCRIPT_ADMIT, lease);

    if (call == NULL)
        return; /* at its next renewal */
    lease->asked = true;
    call->ask.enter = true;
    call->ask.again = lease->stage != RN_OURS_LOCAL;
    rn_member_call_send(m, call);
}

/* A store that has come back may have forgotten what it knew: whatever it still has it only says again. */
void rn_member_enter_all(rn_member *m)
{
    static const rn_member_stage stages[] = {RN_OURS_LOCAL, RN_OURS_HELD};
    rn_member_lease *lease;

    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        TAILQ_FOREACH (lease, &m->stages[stages[i]], link)
            rn_member_enter(m, lease);
    }
    rn_member_blocks_enter(m);
}
