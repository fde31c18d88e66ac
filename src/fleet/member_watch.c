/* SPDX-License-Identifier: MIT */
/*
 * A circuit that a member keeps an eye on, whoever moves it.
 *
 * Changes are published with their instant and generation, and once a second the member lets time pass and is told
 * where the circuit stands: so a message that was lost is made good, and a circuit that only time moves is moved
 * though nobody calls. Message and answer come on different connections in any order; which of two is newer their
 * instants say, which the store never repeats in the wrong order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fleet/member_parts.h"

#define MESSAGE_MAX 512

/* "STATE\nGENERATION\nINSTANT\nRETRY\nCAUSE\nKEY", RETRY "-": not known. False: it is none. */
static bool message_read(const rn_member *m, char *text, rn_member_circuit *out, ration_text *key)
{
    char *parts[6] = {text};

    for (size_t i = 1; i < sizeof parts / sizeof parts[0]; i++) {
        char *const end = strchr(parts[i - 1], '\n');

        if (end == NULL)
            return false;
        *end = '\0';
        parts[i] = end + 1;
    }

    const long state = strtol(parts[0], NULL, 10);

    if (state < RATION_BREAKER_CLOSED || state > RATION_BREAKER_HALF_OPEN)
        return false;
    *out = (rn_member_circuit){
        .at = ration_time_of(strtoll(parts[2], NULL, 10)),
        .generation = strtoull(parts[1], NULL, 10),
        .state = (ration_circuit_state)state,
        .retry_at = {RATION_NEVER_US},
        .checks = RATION_UNSET,
        .cause = ration_text_of(parts[4]),
    };
    if (parts[3][0] != '-')
        out->retry_at = rn_member_local(m, ration_time_of(strtoll(parts[3], NULL, 10)));
    *key = ration_text_of(parts[5]);
    return true;
}

static void on_message(void *ctx, ration_text channel, ration_text payload)
{
    rn_member *const m = ctx;
    char text[MESSAGE_MAX + 1];
    rn_member_circuit circuit;
    ration_text key;

    (void)channel;
    if (payload.size > MESSAGE_MAX)
        return; /* it is asked for, within a second */
    memcpy(text, payload.data, payload.size);
    text[payload.size] = '\0';
    if (message_read(m, text, &circuit, &key) && rn_text_eq(key, m->watch.route->circuit->key))
        m->watch.seen(m->ctx, &circuit);
}

int rn_member_watch(rn_member *m, const ration_request *request,
                    void (*seen)(void *ctx, const rn_member_circuit *circuit))
{
    rn_call_ask ask = {.id = {"", 0}};
    ration_decision decision;
    rn_route *route = NULL;
    const int err = rn_fleet_rules_ask(&m->world->rules, rn_member_now(m), request, &ask, &route, &decision);

    if (err != RATION_OK)
        return err;
    if (route == NULL)
        return RATION_ERR_UNKNOWN;
    if (route->circuit == NULL) {
        rn_fleet_rules_forget(&m->world->rules, route);
        return RATION_ERR_UNKNOWN;
    }
    m->watch.world = m->world;
    m->watch.route = route;
    m->watch.seen = seen;
    rn_member_hold(m->world);
    rn_member_call_for(m, m->world);
    rn_member_listen_at(m, route->provider->name, "circuit", (ration_text){"", 0}, on_message);
    rn_member_watch_now(m);
    return RATION_OK;
}

/* One call at a time. */
void rn_member_watch_now(rn_member *m)
{
    rn_member_call *call;

    if (m->watch.asked) {
        m->watch.again = true;
        return;
    }
    call = rn_member_call_plain(m, RN_SCRIPT_ADVANCE, m->watch.world);
    if (call == NULL)
        return; /* in a second */
    call->route = m->watch.route;
    call->route->refs++;
    call->provider = call->route->provider->name;
    call->circuit = call->route->circuit->key;
    m->watch.asked = true;
    rn_member_call_send(m, call);
}

void rn_member_circuit_read(const rn_member *m, const redisReply *reply, rn_member_circuit *out)
{
    const int64_t state = rn_answer_number(reply, 0, RATION_BREAKER_CLOSED);
    const ration_time retry_at = {rn_answer_number(reply, 2, RATION_NEVER_US)};

    *out = (rn_member_circuit){
        .at = rn_answer_at(reply),
        .generation = (uint64_t)rn_answer_number(reply, 1, 1),
        .state = state < 0 || state > RATION_BREAKER_HALF_OPEN ? RATION_BREAKER_OPEN : (ration_circuit_state)state,
        .retry_at = rn_member_local(m, retry_at),
        .checks = rn_answer_number(reply, 3, 0),
        .cause = rn_answer_text(reply, 4),
    };
}

void rn_member_watched(rn_member *m, const redisReply *reply)
{
    const bool again = m->watch.again;
    rn_member_circuit circuit;

    m->watch.asked = m->watch.again = false;
    if (reply == NULL) {
        m->watch.seen(m->ctx, NULL);
        return;
    }
    rn_member_circuit_read(m, reply, &circuit);
    m->watch.seen(m->ctx, &circuit);
    if (again)
        rn_member_watch_now(m);
}

void rn_member_watch_fini(rn_member *m)
{
    if (m->watch.route == NULL)
        return;
    rn_fleet_rules_forget(&m->watch.world->rules, m->watch.route);
    rn_member_unhold(m, m->watch.world);
    m->watch.route = NULL;
}
