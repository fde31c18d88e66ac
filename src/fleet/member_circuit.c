/* SPDX-License-Identifier: MIT */
/*
 * Breakers of a fleet as one member sees them.
 *
 * A change is told by whose call has brought it about, so each stands in the log of one member. A health check is made
 * by the member whose call has found it due, and by nobody else: it keeps the circuit's key and the check's number
 * until whoever made it says what it came to, and both go with the answer, so that a late one counts for nothing. To
 * find checks due while nobody calls, every member lets time pass once a second where there are any.
 */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "fleet/member_parts.h"

/* An event with texts of its own. */
typedef struct told {
    rn_member_event event;
    char text[];
} told;

static void check_add(rn_member *m, ration_text account, const rn_fleet_event *what)
{
    rn_member_due_check *const check = rn_mem_zalloc(&m->mem, 1, sizeof *check + account.size + what->key.size);

    if (check == NULL)
        return;
    check->number = what->before;
    check->account_size = account.size;
    check->key_size = what->key.size;
    memcpy(check->text, account.data, account.size);
    memcpy(check->text + account.size, what->key.data, what->key.size);
    SLIST_INSERT_HEAD(&m->checks, check, link);
}

static void check_unlink(rn_member *m, rn_member_due_check *check)
{
    SLIST_REMOVE(&m->checks, check, rn_member_due_check, link);
}

/* The newest of that account, which with all older ones is forgotten. Freed by the caller; NULL: there is none. */
static rn_member_due_check *check_take(rn_member *m, ration_text account)
{
    rn_member_due_check *found = NULL;
    rn_member_due_check *next = NULL;

    for (rn_member_due_check *check = SLIST_FIRST(&m->checks); check != NULL; check = next) {
        next = SLIST_NEXT(check, link);
        if (!rn_text_eq((ration_text){check->text, check->account_size}, account))
            continue;
        check_unlink(m, check);
        if (found == NULL) {
            found = check;
        } else {
            rn_mem_free(&m->mem, check);
        }
    }
    return found;
}

void rn_member_tell_circuit(rn_member *m, rn_member_world *world, const rn_fleet_event *what)
{
    const bool due = rn_text_is(what->what, "health");
    const rn_account *const account = due ? rn_book_account(&world->rules.book, what->cause) : NULL;

    if (due && account == NULL)
        return; /* by rules that this member does not have */

    told *const one = rn_mem_zalloc(&m->mem, 1, sizeof *one + what->key.size + what->cause.size + 1);

    if (one == NULL)
        return;
    memcpy(one->text, what->key.data, what->key.size);
    memcpy(one->text + what->key.size, what->cause.data, what->cause.size);
    one->event.world = world;
    one->event.event = (ration_event){
        .type = due ? RATION_EVENT_HEALTH : RATION_EVENT_BREAKER,
        .at = rn_member_local(m, what->at),
        .breaker = due || what->before < 0 || what->before > RATION_BREAKER_HALF_OPEN
                       ? RATION_BREAKER_OPEN
                       : (ration_circuit_state)what->before,
        .decision = {.key = {one->text, what->key.size}, .retry_at = {RATION_NEVER_US}},
        .cause = due ? NULL : one->text + what->key.size,
    };
    if (due) {
        one->event.event.account = account->name;
        one->event.event.value = what->before;
        check_add(m, account->name, what);
    } else if (rn_time_known(ration_time_of(what->value))) {
        one->event.event.decision.retry_at = rn_member_local(m, ration_time_of(what->value));
    }
    rn_member_tell(m, &one->event);
}

int rn_member_health(rn_decider *d, ration_time now, ration_text account, bool ok)
{
    rn_member *const m = (rn_member *)(void *)d;
    const rn_account *const named = rn_book_account(&m->world->rules.book, account);
    rn_member_due_check *const check = check_take(m, account);
    rn_member_call *call = NULL;

    (void)now;
    if (named != NULL && named->provider->circuit != NULL)
        call = rn_member_call_plain(m, RN_SCRIPT_HEALTH, m->world);
    if (call == NULL) {
        rn_mem_free(&m->mem, check);
        return named == NULL || named->provider->circuit == NULL ? RATION_ERR_UNKNOWN : RATION_ERR_NOMEM;
    }
    call->health = (rn_call_health){.account = named, .ok = ok};
    if (check != NULL) {
        call->block = check;
        call->health.circuit = (ration_text){check->text + check->account_size, check->key_size};
        call->health.number = check->number;
    }
    rn_member_call_send(m, call);
    return RATION_OK;
}

static bool has_checks(const rn_provider *provider)
{
    const ration_breaker_rule *const rule = provider->circuit != NULL ? &provider->circuit->breaker.rule : NULL;

    return rule != NULL && (rule->recovery == RATION_RECOVERY_HEALTH_CHECK || rule->idle_interval_us > 0);
}

void rn_member_circuits_advance(rn_member *m)
{
    const rn_book *const book = &m->world->rules.book;

    if (m->watch.route != NULL) {
        rn_member_watch_now(m);
        return;
    }
    for (size_t i = 0; i < book->provider_count; i++) {
        rn_member_call *const call =
            has_checks(&book->providers[i]) ? rn_member_call_plain(m, RN_SCRIPT_ADVANCE, m->world) : NULL;

        if (call == NULL)
            continue;
        call->provider = book->providers[i].name;
        rn_member_call_send(m, call);
    }
}

void rn_member_circuits_fini(rn_member *m)
{
    while (!SLIST_EMPTY(&m->checks)) {
        rn_member_due_check *const check = SLIST_FIRST(&m->checks);

        SLIST_REMOVE_HEAD(&m->checks, link);
        rn_mem_free(&m->mem, check);
    }
}
