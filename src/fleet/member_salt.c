/* SPDX-License-Identifier: MIT */
/*
 * The salt of credentials' keys, which all members of a fleet have from the store.
 *
 * Whoever has accounts with credentials brings a salt with each beat: its own random bytes, until it has learned what
 * the fleet has. The first that comes is everybody's, and a store that has lost it gets it back with the next beat of
 * any of them. Where limits or breakers go by credentials, nobody can be asked before it is known: until then it is
 * as if the store were away.
 *
 * Whoever made the member knows the secrets, so it is told the salt, and gives the rules with the keys under it.
 *
 * Invariant: once `salted`, the present rules have their keys under `salt`.
 */
#include "fleet/member_parts.h"

#include <string.h>
#include <sys/random.h>

#include "base/mem.h"

bool rn_member_salt_init(rn_member *m)
{
    return getrandom(m->salt, sizeof m->salt, 0) == (ssize_t)sizeof m->salt;
}

void rn_member_salt_fini(rn_member *m)
{
    explicit_bzero(m->salt, sizeof m->salt);
}

static void find_credential(void *ctx, const rn_limit *limit)
{
    bool *const found = ctx;

    *found = *found || rn_scope_has(limit->scope, RN_DIMENSION_CREDENTIAL);
}

bool rn_member_goes_by_credential(rn_book *book)
{
    bool found = false;

    rn_book_visit(book, &found, find_credential);
    for (size_t i = 0; i < book->provider_count; i++) {
        const rn_circuit_spec *const circuit = book->providers[i].circuit;

        found = found || (circuit != NULL && rn_scope_has(&circuit->scope, RN_DIMENSION_CREDENTIAL));
    }
    return found;
}

bool rn_member_lacks_salt(const rn_member *m)
{
    return m->world->by_credential && !m->salted;
}

bool rn_member_is_away(const rn_member *m)
{
    return rn_store_state_of(m->store) == RN_STORE_DOWN || rn_member_lacks_salt(m);
}

ration_text rn_member_salt(const rn_member *m)
{
    return m->salted ? (ration_text){m->salt, sizeof m->salt} : (ration_text){NULL, 0};
}

ration_text rn_member_salt_beat(const rn_member *m)
{
    return m->salt_known != NULL && m->leaves == RN_LEAVES_NOT ? (ration_text){m->salt, sizeof m->salt}
                                                               : (ration_text){NULL, 0};
}

/* What it was asked as leads elsewhere by the present rules. Without memory it stays as it is. */
static void reroute(rn_member *m, rn_member_world **world, rn_route **route, rn_call_ask *ask, ration_var *vars)
{
    ration_request request = RATION_REQUEST_INIT;
    rn_call_ask asked = {.id = {NULL, 0}};
    ration_decision decision;
    rn_route *to = NULL;

    rn_route_request(*route, &request, vars);
    if (rn_fleet_rules_ask(&m->world->rules, rn_member_now(m), &request, &asked, &to, &decision) != RATION_OK ||
        to == NULL)
        return;
    rn_fleet_rules_forget(&(*world)->rules, *route);
    rn_member_unhold(m, *world);
    rn_member_hold(m->world);
    *world = m->world;
    *route = to;
    ask->tenant = asked.tenant;
    ask->weight = asked.weight;
}

/* What was granted here before the salt was known has no counters in the store yet, nor has what is to be told. */
static void reroute_all(rn_member *m)
{
    ration_var *const vars = rn_mem_zalloc(&m->mem, RN_REQUEST_VARS_MAX, sizeof *vars);
    rn_member_lease *lease;
    rn_member_call *first;

    if (vars == NULL)
        return;
    TAILQ_FOREACH (lease, &m->stages[RN_OURS_LOCAL], link) {
        if (!lease->world->salted)
            reroute(m, &lease->world, &lease->route, &lease->ask, vars);
    }
    TAILQ_FOREACH (first, &m->later, link) {
        for (rn_member_call *call = first; call != NULL; call = call->then) {
            if (!call->world->salted && call->route != NULL)
                reroute(m, &call->world, &call->route, &call->ask, vars);
        }
    }
    rn_mem_free(&m->mem, vars);
}

int rn_member_rekey(rn_member *m, const ration_rules *rules)
{
    const bool was_salted = m->salted;
    char fault[RN_MEMBER_TEXT] = "";

    m->salted = true;

    const int err = rn_member_rules(m, rules, fault);

    if (err == RATION_OK) {
        reroute_all(m);
    } else {
        m->salted = was_salted;
    }
    return err;
}

void rn_member_salt_take(rn_member *m, const redisReply *salt)
{
    const bool lacked = rn_member_lacks_salt(m);

    if (m->salt_known == NULL || salt->elements != 1 || salt->element[0]->type != REDIS_REPLY_STRING ||
        salt->element[0]->len != sizeof m->salt)
        return;
    if (m->salted && memcmp(m->salt, salt->element[0]->str, sizeof m->salt) == 0)
        return;
    memcpy(m->salt, salt->element[0]->str, sizeof m->salt);
    m->salt_known(m->ctx, (ration_text){m->salt, sizeof m->salt});
    if (lacked && !rn_member_lacks_salt(m))
        rn_member_came_back(m);
}
