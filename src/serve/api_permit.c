/* SPDX-License-Identifier: MIT */
/*
 * What a call of the API claims.
 *
 * The client is looked up anew when a body is whole: a reload may have come since its head, and nothing of a config is
 * kept between turns. A lease remembers whose it is by a hash of the client's name; it is that client's, and an
 * operator's, to renew, observe and release.
 */
#include "base/text.h"
#include "serve/api_parts.h"

void rn_api_forbid(rn_api *api, rn_inbound *in, const rn_claim *claim, const rn_not_permitted *why)
{
    const ration_time now = rn_loop_now(api->loop);
    const ration_decision decision = rn_refusal_of(RATION_REASON_NOT_PERMITTED, now);
    const rn_problem problem = {.decision = &decision,
                                .detail = ration_text_of(why->text),
                                .field = ration_text_of(why->part),
                                .waited_us = RATION_UNSET};
    const rn_refused refused = {.account = claim != NULL ? claim->account : (ration_text){NULL, 0},
                                .tenant = claim != NULL ? claim->tenant : (ration_text){NULL, 0},
                                .traceparent = rn_trace_context_find(rn_inbound_head(in)->fields),
                                .waited_us = RATION_UNSET,
                                .decision = &decision,
                                .detail = problem.detail};

    rn_gateway_turned_away(api->gateway, RATION_REASON_NOT_PERMITTED);
    rn_gateway_refused(api->gateway, &refused);
    rn_reply_refusal(in, &problem, now);
}

/* The same where the claim is of no account or tenant. */
static void forbid(rn_api *api, rn_inbound *in, const rn_client *client, const char *what)
{
    rn_not_permitted why = {.part = NULL};
    rn_builder b;

    rn_builder_init(&b, why.text, sizeof why.text);
    rn_builder_str(&b, "client '");
    rn_builder_str(&b, client->name);
    rn_builder_str(&b, "' may not ");
    rn_builder_str(&b, what);
    rn_builder_str(&b, "; `clients` in the config of ration says so, ask whoever keeps it");
    rn_api_forbid(api, in, NULL, &why);
}

void rn_api_unauthorized(rn_api *api, rn_inbound *in, rn_bearer bearer)
{
    const rn_http_field challenge = {ration_text_of("WWW-Authenticate"), ration_text_of("Bearer")};
    const rn_problem problem = {.status = 401,
                                .name = "unauthorized",
                                .title = "A token is needed",
                                .detail = ration_text_of(bearer == RN_BEARER_SILENT
                                                             ? "send Authorization: Bearer TOKEN"
                                                             : "the token in Authorization is nobody's"),
                                .waited_us = RATION_UNSET};

    rn_gateway_token_refused(api->gateway);
    rn_reply_problem(in, &problem, &challenge);
}

bool rn_api_may_view(rn_api *api, rn_inbound *in, const rn_client *client)
{
    if (client == NULL || client->views)
        return true;
    forbid(api, in, client, "look at what is not its own: its entry has no `view: true`");
    return false;
}

bool rn_api_may_operate(rn_api_call *call)
{
    if (call->client == NULL || call->client->operates)
        return true;
    forbid(call->api, call->in, call->client, "make operator calls: its entry has no `operator: true`");
    rn_api_call_end(call);
    return false;
}

bool rn_api_owns(rn_api_call *call, const rn_api_lease *lease)
{
    if (call->client == NULL || call->client->operates || lease->owner == rn_client_id(call->client))
        return true;
    forbid(call->api, call->in, call->client, "use a lease of another client");
    rn_api_call_end(call);
    return false;
}

/* The priority of a request that claims none, as the engine will have it. */
static ration_priority usual_priority(const rn_api *api, const ration_request *request)
{
    const ration_rules *rules = ration_config_rules(rn_gateway_config(api->gateway));
    const rn_account *account = rn_config_find_account(rn_gateway_config(api->gateway), request->account);
    size_t provider = account != NULL ? account->provider : 0;

    while (account == NULL && provider < rules->provider_count &&
           !rn_text_is(request->provider, rules->providers[provider].name))
        provider++;
    if (provider >= rules->provider_count)
        return RATION_PRIORITY_NORMAL;

    const rn_costs *costs = rn_gateway_costs(api->gateway, provider);
    return request->path.data != NULL ? rn_costs_find(costs, request->path).priority
                                      : rn_costs_priority(costs, request->endpoint);
}

bool rn_api_permits(rn_api_call *call, ration_request *request)
{
    static const rn_not_permitted other = {
        .part = "credential", .text = "a client whose accounts are listed calls with their own credentials"};
    const rn_client *client = call->client;
    rn_claim claim = {.account = request->account,
                      .tenant = request->tenant,
                      .class_name = request->class_name,
                      .priority = request->priority};
    rn_not_permitted why;

    if (client == NULL)
        return true;
    claim.usual = client->priority != RATION_PRIORITY_CRITICAL ? usual_priority(call->api, request) : client->priority;
    if (!rn_client_permits(client, &claim, &why)) {
        rn_api_forbid(call->api, call->in, &claim, &why);
    } else if (!client->accounts.any && request->credential.data != NULL) {
        rn_api_forbid(call->api, call->in, &claim, &other);
    } else {
        request->tenant = claim.tenant;
        request->priority = claim.priority;
        return true;
    }
    rn_api_call_end(call);
    return false;
}

const char *rn_api_explain(const rn_api_call *call, const ration_request *request, const ration_decision *refused,
                           char buffer[RN_MEANT_BYTES])
{
    const rn_said said = {.config = rn_gateway_config(call->api->gateway),
                          .client = call->client,
                          .account = request->account,
                          .provider = request->provider,
                          .tenant = request->tenant,
                          .class_name = request->class_name};

    return rn_meant_explain(&said, refused, buffer).data;
}

bool rn_api_knows_job(rn_api *api, rn_inbound *in, const rn_client *client, const rn_job *job)
{
    if (!rn_client_is_bound(client))
        return true;
    if (job != NULL && rn_client_knows_job(
                           client, rn_config_account(rn_gateway_config(api->gateway), job->account)->name, job->tenant))
        return true;
    forbid(api, in, client, "name this job: its accounts and tenants are listed, and no such job is theirs");
    return false;
}
