/* SPDX-License-Identifier: MIT */
/*
 * What a call through the gateway claims, before the decider is asked: its token, its account, its job, its tenant.
 *
 * A client whose accounts are listed gets the same answer for an account of others and for one that does not exist.
 * What the config gives to a call that claims nothing (a job's tenant, a path's priority) is held against what the
 * client may claim, too: by naming a job nobody gets more than by naming its parts.
 */
#include <string.h>

#include "base/text.h"
#include "serve/exchange.h"

#define TOKEN_FIELD "Ration-Token"

bool rn_exchange_identify(rn_exchange *x, const rn_client **out)
{
    rn_gateway *gw = x->gateway;

    switch (rn_bearer_find(gw->config, x->directives.token, out)) {
    case RN_BEARER_KNOWN:
        return true;
    case RN_BEARER_SILENT:
        rn_exchange_turn_away(x, RATION_REASON_NOT_PERMITTED, "a token is needed here: send it as Ration-Token",
                              TOKEN_FIELD);
        break;
    case RN_BEARER_UNKNOWN:
        rn_exchange_turn_away(x, RATION_REASON_NOT_PERMITTED, "the token in Ration-Token is nobody's", TOKEN_FIELD);
        break;
    }
    rn_gateway_token_refused(gw);
    return false;
}

/* The account as the client wrote it, for a list of the same names. */
static ration_text account_name(const rn_route *route, char buffer[RN_ACCOUNT_MAX_BYTES])
{
    ration_text name;

    return rn_route_decode(route->account, buffer, RN_ACCOUNT_MAX_BYTES, &name) == RATION_OK ? name : route->account;
}

/* "WORDS (did you mean 'NAME'?)"; NULL: no name is near. */
static const char *with_guess(char buffer[RN_MEANT_BYTES], const char *words, const char *near)
{
    rn_builder b;

    rn_builder_init(&b, buffer, RN_MEANT_BYTES);
    rn_builder_str(&b, words);
    if (near != NULL) {
        rn_builder_str(&b, " (did you mean '");
        rn_builder_str(&b, near);
        rn_builder_str(&b, "'?)");
    }
    return buffer;
}

bool rn_exchange_address(rn_exchange *x, const rn_client *client)
{
    char buffer[RN_ACCOUNT_MAX_BYTES];
    rn_not_permitted why;

    if (client != NULL && !rn_client_permits_account(client, account_name(&x->route, buffer), &why)) {
        rn_exchange_turn_away(x, RATION_REASON_NOT_PERMITTED, why.text, NULL);
        return false;
    }
    rn_exchange_bind(x, rn_gateway_find(x->gateway, x->route.account));
    if (x->to != NULL)
        return true;
    const ration_decision unknown = rn_refusal_of(RATION_REASON_UNKNOWN_ACCOUNT, rn_loop_now(x->gateway->loop));
    const rn_said said = {.config = x->gateway->config, .client = client, .account = account_name(&x->route, buffer)};
    char detail[RN_MEANT_BYTES];

    rn_exchange_turn_away(x, RATION_REASON_UNKNOWN_ACCOUNT,
                          with_guess(detail, "no account of this name is configured", rn_meant_name(&said, &unknown)),
                          NULL);
    return false;
}

/* Ration-Job. `*out` is NULL without one. False: it is none that the client may name for this account. */
static bool job_find(rn_exchange *x, const rn_client *client, ration_text name, const rn_job **out)
{
    rn_gateway *gw = x->gateway;
    const char *why = "the config has no job of this name";
    char detail[RN_MEANT_BYTES];

    *out = NULL;
    if (name.data == NULL || gw->planning == NULL)
        return true;
    const rn_said said = {.config = gw->config, .client = client, .account = ration_text_of(x->to->account->name)};
    const rn_jobs *jobs = rn_planning_jobs(gw->planning);
    const size_t index = rn_jobs_find(jobs, name);
    const rn_job *job = index != SIZE_MAX ? rn_jobs_at(jobs, index) : NULL;
    if (job != NULL && rn_said_may_name(&said, job)) {
        x->job = index;
        *out = job;
        return true;
    }
    if (rn_client_is_bound(client)) {
        why = "this account has no job of this name that the client may name";
    } else if (job != NULL) {
        why = "this job is another account's";
    }
    const char *near = rn_meant_job(&said, jobs, (size_t)rn_planning_look(gw->planning)->jobs, name);
    rn_exchange_reject(x, 400, "No such job", with_guess(detail, why, near), ration_text_of("Ration-Job"));
    return false;
}

ration_text rn_exchange_explain(const rn_exchange *x, const ration_decision *refused, char buffer[RN_MEANT_BYTES],
                                const char **field)
{
    const bool tenant = refused->reason == RATION_REASON_UNKNOWN_TENANT;
    rn_said said = {.config = x->gateway->config,
                    .account = ration_text_of(x->to->account->name),
                    .tenant = x->directives.tenant,
                    .class_name = x->directives.class_name};

    *field = NULL;
    if (!tenant && refused->reason != RATION_REASON_UNKNOWN_CLASS)
        return (ration_text){NULL, 0};
    *field = tenant ? "Ration-Tenant" : "Ration-Class";
    /* Whoever's token is nobody's by now is told no names. */
    if (rn_bearer_find(said.config, x->directives.token, &said.client) != RN_BEARER_KNOWN)
        return (ration_text){NULL, 0};
    return rn_meant_explain(&said, refused, buffer);
}

/* The field of a request that has a part of its claim; NULL: it is the path. */
static const char *field_of(const char *part)
{
    static const char *const fields[][2] = {
        {"tenant", "Ration-Tenant"}, {"class", "Ration-Class"}, {"priority", "Ration-Priority"}};

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcmp(fields[i][0], part) == 0)
            return fields[i][1];
    }
    return NULL;
}

bool rn_exchange_permit(rn_exchange *x, const rn_client *client)
{
    rn_directives *directives = &x->directives;
    const rn_job *job = NULL;
    rn_not_permitted why;

    if (!job_find(x, client, directives->job, &job))
        return false;

    rn_claim claim = {.account = ration_text_of(x->to->account->name),
                      .tenant = directives->tenant,
                      .class_name = directives->class_name,
                      .priority = directives->priority,
                      .usual = job != NULL ? job->priority : RATION_PRIORITY_NORMAL};
    if (job != NULL && claim.tenant.data == NULL && job->tenant != NULL)
        claim.tenant = ration_text_of(job->tenant);
    if (job == NULL && client != NULL && client->priority != RATION_PRIORITY_CRITICAL)
        claim.usual = rn_costs_find(x->to->costs, x->route.path).priority;
    if (!rn_client_permits(client, &claim, &why)) {
        x->job = RN_NO_JOB;
        rn_exchange_turn_away(x, RATION_REASON_NOT_PERMITTED, why.text, field_of(why.part));
        return false;
    }
    x->tenant_of_config = directives->tenant.data == NULL && claim.tenant.data != NULL;
    directives->tenant = claim.tenant;
    directives->priority = claim.priority;
    if (job == NULL)
        return true;
    if (directives->priority == RATION_PRIORITY_UNSET)
        directives->priority = job->priority;
    if (directives->cost == RATION_UNSET)
        directives->cost = job->cost;
    rn_planning_arrives(x->gateway->planning, x->job);
    return true;
}
