/* SPDX-License-Identifier: MIT */

/*
 * One circuit among the limits: who is let through, what their calls come to, and who is refused when it opens.
 *
 * An open circuit refuses before any limit is looked at. Who was let through carries a pass until the call has a
 * result; whoever ends without one (refused, cancelled, throttled, lost) gives it back, so that no probe is lost to
 * another limit. Whatever changes a breaker goes through `circuit_changed`: the alarm, the event, the waiters.
 */

#include "core/engine.h"

static void circuit_tell(ration_engine *engine, rn_circuit *circuit, ration_event_type type)
{
    const ration_event event = {
        .type = type,
        .at = engine->now,
        .decision = {.at = engine->now, .key = circuit->key, .retry_at = rn_breaker_retry_at(&circuit->breaker)},
        .breaker = circuit->breaker.state,
        .cause = circuit->breaker.cause,
        .account = circuit->account->name,
    };

    rn_event_offer(engine, &event, &circuit->pins);
}

static void circuit_changed(ration_engine *engine, rn_circuit *circuit, rn_breaker_change change)
{
    rn_lease *lease;

    rn_alarm_arm(&engine->timers, &circuit->alarm, rn_breaker_next(&circuit->breaker));
    circuit->changed = circuit->changed || change != RN_BREAKER_SAME;
    switch (change) {
    case RN_BREAKER_SAME:
    case RN_BREAKER_REPLACED:
        break;
    case RN_BREAKER_CHECK:
        circuit_tell(engine, circuit, RATION_EVENT_HEALTH);
        break;
    case RN_BREAKER_OPENED:
        circuit_tell(engine, circuit, RATION_EVENT_BREAKER);
        TAILQ_FOREACH (lease, &circuit->waiting, in_circuit)
            rn_doom(engine, lease);
        break;
    case RN_BREAKER_HALF_OPENED:
    case RN_BREAKER_CLOSED:
        circuit_tell(engine, circuit, RATION_EVENT_BREAKER);
        break;
    }
}

void rn_circuit_due(ration_engine *engine, rn_circuit *circuit)
{
    const rn_breaker_change change = rn_breaker_advance(&circuit->breaker, engine->now);

    rn_breaker_skip(&circuit->breaker, engine->until);
    circuit_changed(engine, circuit, change);
}

bool rn_circuit_bars(const rn_lease *lease)
{
    const rn_circuit *circuit = lease->route->circuit;

    if (circuit == NULL || lease->health)
        return false;
    if (lease->state == RN_LEASE_WAITING)
        return circuit->breaker.state == RATION_BREAKER_OPEN;
    return !rn_breaker_lets(&circuit->breaker);
}

void rn_circuit_enter(ration_engine *engine, rn_lease *lease)
{
    rn_circuit *circuit = lease->route->circuit;

    if (circuit == NULL || lease->health)
        return;
    lease->pass = rn_breaker_enter(&circuit->breaker, engine->now);
    circuit_changed(engine, circuit, RN_BREAKER_SAME);
}

void rn_circuit_leave(ration_engine *engine, rn_lease *lease)
{
    rn_circuit *circuit = lease->route->circuit;

    if (lease->pass.generation == 0)
        return;
    rn_breaker_leave(&circuit->breaker, &lease->pass);
    lease->pass = (rn_breaker_pass){0};
    circuit_changed(engine, circuit, RN_BREAKER_SAME);
}

void rn_circuit_result(ration_engine *engine, rn_lease *lease, bool ok)
{
    rn_circuit *circuit = lease->route->circuit;

    if (lease->pass.generation == 0)
        return;

    const rn_breaker_pass pass = lease->pass;

    lease->pass = (rn_breaker_pass){0};
    circuit_changed(engine, circuit, rn_breaker_result(&circuit->breaker, engine->now, &pass, ok));
}

/* Is it a circuit that requests of the account go through? */
static bool circuit_is_of(const rn_circuit *circuit, const rn_account *account)
{
    const rn_account *first = circuit->account;
    const rn_scope *scope = &account->provider->circuit->scope;

    return circuit->provider == account->provider && (first == account || !rn_scope_has(scope, RN_DIMENSION_ACCOUNT)) &&
           (rn_text_eq(first->target, account->target) || !rn_scope_has(scope, RN_DIMENSION_TARGET)) &&
           (rn_text_eq(first->credential, account->credential) || !rn_scope_has(scope, RN_DIMENSION_CREDENTIAL));
}

int rn_circuit_health(ration_engine *engine, ration_text account, bool ok)
{
    const rn_account *named = rn_book_account(&engine->world->book, account);
    rn_circuit *circuit;

    if (named == NULL || named->provider->circuit == NULL)
        return RATION_ERR_UNKNOWN;
    TAILQ_FOREACH (circuit, &engine->world->routes.circuits.all, next) {
        if (circuit_is_of(circuit, named))
            circuit_changed(engine, circuit, rn_breaker_health(&circuit->breaker, engine->now, ok));
    }
    return RATION_OK;
}
