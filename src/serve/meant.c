/* SPDX-License-Identifier: MIT */
/*
 * What was meant by a name that nobody has.
 *
 * A tenant or class is unknown to one limit, so the guess is among that limit's own names: the account's where it
 * replaces the provider's. A client with a list gets guesses from its list alone.
 */
#include "serve/meant.h"

#include <string.h>

#include "base/text.h"
#include "config/faults.h"

#define LOOKED_AT 1000

/* Names of one sort, from wherever they stand. */
typedef struct names {
    const rn_said *said;
    const ration_limit_rule *limit;
} names;

static bool may_claim(const rn_claimable *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], name) == 0)
            return true;
    }
    return list->any;
}

static const char *account_at(const void *all, size_t index)
{
    const names *n = all;
    const char *name = rn_config_account(n->said->config, index)->name;

    return n->said->client == NULL || may_claim(&n->said->client->accounts, name) ? name : NULL;
}

static const char *provider_at(const void *all, size_t index)
{
    const names *n = all;

    return ration_config_rules(n->said->config)->providers[index].name;
}

static const char *tenant_at(const void *all, size_t index)
{
    const names *n = all;
    const char *name = n->limit->share.tenants[index].name;

    return n->said->client == NULL || may_claim(&n->said->client->tenants, name) ? name : NULL;
}

static const char *class_at(const void *all, size_t index)
{
    const names *n = all;
    const char *name = n->limit->adaptive.classes[index].name;

    return n->said->client == NULL || may_claim(&n->said->client->classes, name) ? name : NULL;
}

static const ration_limit_rule *limit_among(const ration_limit_rule *limits, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(limits[i].name, name) == 0)
            return &limits[i];
    }
    return NULL;
}

/* The limit that a refusal names, as it is for the account that was asked for. NULL: it is not known. */
static const ration_limit_rule *limit_of(const rn_said *said, const char *name)
{
    const ration_rules *rules = ration_config_rules(said->config);
    const ration_limit_rule *found = NULL;

    for (size_t i = 0; name != NULL && i < rules->account_count; i++) {
        const ration_account_rule *account = &rules->accounts[i];
        const ration_provider_rule *provider = &rules->providers[rn_config_account(said->config, i)->provider];

        if (!rn_text_is(said->account, account->name))
            continue;
        found = limit_among(account->limits, account->limit_count, name);
        return found != NULL ? found : limit_among(provider->limits, provider->limit_count, name);
    }
    return NULL;
}

static const char *nearest(ration_text word, const names *all, size_t count, rn_name_at *at)
{
    return word.data != NULL ? rn_nearest(word, all, count < LOOKED_AT ? count : LOOKED_AT, at) : NULL;
}

const char *rn_meant_name(const rn_said *said, const ration_decision *refused)
{
    const ration_rules *rules = ration_config_rules(said->config);
    const names all = {.said = said, .limit = limit_of(said, refused->limit)};

    if (refused->reason == RATION_REASON_UNKNOWN_ACCOUNT)
        return nearest(said->account, &all, rules->account_count, account_at);
    if (refused->reason == RATION_REASON_UNKNOWN_PROVIDER)
        return nearest(said->provider, &all, rules->provider_count, provider_at);
    if (refused->reason == RATION_REASON_UNKNOWN_TENANT && all.limit != NULL)
        return nearest(said->tenant, &all, all.limit->share.tenant_count, tenant_at);
    if (refused->reason == RATION_REASON_UNKNOWN_CLASS && all.limit != NULL)
        return nearest(said->class_name, &all, all.limit->adaptive.class_count, class_at);
    return NULL;
}

bool rn_said_may_name(const rn_said *said, const rn_job *job)
{
    const char *account = rn_config_account(said->config, job->account)->name;

    return rn_text_is(said->account, account) && rn_client_knows_job(said->client, account, job->tenant);
}

/* The jobs among which a guess is looked for. */
typedef struct own_jobs {
    const rn_said *said;
    const rn_jobs *jobs;
} own_jobs;

static const char *job_at(const void *all, size_t index)
{
    const own_jobs *own = all;
    const rn_job *job = rn_jobs_at(own->jobs, index);

    return rn_said_may_name(own->said, job) ? job->name : NULL;
}

const char *rn_meant_job(const rn_said *said, const rn_jobs *jobs, size_t count, ration_text name)
{
    const own_jobs own = {.said = said, .jobs = jobs};

    return rn_nearest(name, &own, count < LOOKED_AT ? count : LOOKED_AT, job_at);
}

ration_text rn_meant_explain(const rn_said *said, const ration_decision *refused, char buffer[RN_MEANT_BYTES])
{
    const char *near = rn_meant_name(said, refused);
    rn_builder b;

    if (near == NULL)
        return (ration_text){NULL, 0};
    const size_t size = ration_decision_explain(refused, buffer, RN_MEANT_BYTES);
    rn_builder_init(&b, buffer + size, RN_MEANT_BYTES - size);
    rn_builder_str(&b, " Did you mean '");
    rn_builder_str(&b, near);
    rn_builder_str(&b, "'?");
    return (ration_text){buffer, size + b.used};
}
