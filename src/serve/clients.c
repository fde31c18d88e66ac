/* SPDX-License-Identifier: MIT */
/*
 * Who asks, and what it may claim.
 *
 * A token is compared with every one that the config has, whichever fits, so that the time tells nothing of them. A
 * name that is not on a client's list is answered with the names that are, never with those of others: whether such an
 * account or tenant exists is none of that client's business.
 *
 * Invariant: no text that is made here has a token in it, or a name that is not the client's own.
 */
#include "serve/clients.h"

#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "config/faults.h"
#include "serve/token.h"

#define NAMES_SHOWN 8
#define NAMES_BYTES 512 /* of a list; what is longer is counted */

/* ---- tokens */

/* No token is asked for: anybody may do anything. */
static bool is_open(const ration_config *config)
{
    size_t count = 0;

    (void)rn_config_clients(config, &count);
    return rn_config_settings(config)->token == NULL && count == 0;
}

rn_bearer rn_bearer_find(const ration_config *config, ration_text token, const rn_client **out)
{
    const char *const own = rn_config_settings(config)->token;
    const rn_client *found = NULL;
    size_t count = 0;
    const rn_client *clients = rn_config_clients(config, &count);

    *out = NULL;
    if (is_open(config))
        return RN_BEARER_KNOWN;
    if (token.size == 0)
        return RN_BEARER_SILENT;

    const bool operator_token = own != NULL && rn_token_matches(token, own);
    for (size_t i = 0; i < count; i++) {
        if (rn_token_matches(token, clients[i].token))
            found = &clients[i];
    }
    *out = found;
    return operator_token || found != NULL ? RN_BEARER_KNOWN : RN_BEARER_UNKNOWN;
}

rn_bearer rn_bearer_read(const ration_config *config, rn_http_fields fields, const rn_client **out)
{
    ration_text given;

    *out = NULL;
    if (is_open(config))
        return RN_BEARER_KNOWN;

    const size_t count = rn_http_look(fields, "Authorization", &given);
    const bool bears = given.size > 7 && rn_text_is_nocase(rn_text_slice(given, 0, 7), "Bearer ");
    const ration_text token = bears ? rn_text_trim(rn_text_slice(given, 7, given.size)) : (ration_text){NULL, 0};
    const rn_bearer bearer = rn_bearer_find(config, count <= 1 ? token : (ration_text){NULL, 0}, out);

    return bearer == RN_BEARER_SILENT && count > 0 ? RN_BEARER_UNKNOWN : bearer;
}

/* ---- claims */

static bool has_name(const rn_claimable *list, ration_text name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (rn_text_is(name, list->names[i]))
            return true;
    }
    return list->any;
}

static const char *name_at(const void *names, size_t index)
{
    const char *const *list = names;

    return list[index];
}

static void names_write(rn_builder *b, const rn_claimable *list)
{
    size_t i = 0;

    for (; i < list->count && i < NAMES_SHOWN && b->used + strlen(list->names[i]) < NAMES_BYTES; i++) {
        rn_builder_str(b, i > 0 ? ", " : "");
        rn_builder_str(b, list->names[i]);
    }
    if (i == list->count)
        return;
    rn_builder_str(b, i > 0 ? " and " : "");
    rn_builder_int(b, (int64_t)(list->count - i));
    rn_builder_str(b, i > 0 ? " more" : " that are listed there");
}

static void whom_to_ask(rn_builder *b)
{
    rn_builder_str(b, "; `clients` in the config of ration says so, ask whoever keeps it");
}

/* "client 'billing' may claim no account other than acme, globex (did you mean 'acme'?); ..." */
static bool list_refuses(const rn_client *client, const rn_claimable *list, const char *part, ration_text claimed,
                         rn_not_permitted *why)
{
    const char *near = rn_nearest(claimed, list->names, list->count, name_at);
    rn_builder b;

    why->part = part;
    rn_builder_init(&b, why->text, sizeof why->text);
    rn_builder_str(&b, "client '");
    rn_builder_str(&b, client->name);
    rn_builder_str(&b, claimed.data == NULL && list->count > 0 ? "' must name its " : "' may claim no ");
    rn_builder_str(&b, part);
    if (list->count > 0) {
        rn_builder_str(&b, claimed.data == NULL ? ", one of: " : " other than: ");
        names_write(&b, list);
    }
    if (near != NULL) {
        rn_builder_str(&b, " (did you mean '");
        rn_builder_str(&b, near);
        rn_builder_str(&b, "'?)");
    }
    whom_to_ask(&b);
    return false;
}

static bool priority_refuses(const rn_client *client, rn_not_permitted *why)
{
    rn_builder b;

    why->part = "priority";
    rn_builder_init(&b, why->text, sizeof why->text);
    rn_builder_str(&b, "client '");
    rn_builder_str(&b, client->name);
    rn_builder_str(&b, "' may claim no priority above ");
    rn_builder_str(&b, ration_priority_name(client->priority));
    whom_to_ask(&b);
    return false;
}

bool rn_client_permits_account(const rn_client *client, ration_text account, rn_not_permitted *why)
{
    if (client == NULL || has_name(&client->accounts, account))
        return true;
    return list_refuses(client, &client->accounts, "account", account, why);
}

bool rn_client_permits(const rn_client *client, rn_claim *claim, rn_not_permitted *why)
{
    ration_text tenant = claim->tenant;
    ration_priority priority = claim->priority;

    if (!rn_client_permits_account(client, claim->account, why))
        return false;
    if (client == NULL)
        return true;
    if (tenant.data == NULL && client->tenants.count == 1)
        tenant = ration_text_of(client->tenants.names[0]);
    if ((tenant.data != NULL || client->tenants.count > 0) && !has_name(&client->tenants, tenant))
        return list_refuses(client, &client->tenants, "tenant", tenant, why);
    if (claim->class_name.data != NULL && !has_name(&client->classes, claim->class_name))
        return list_refuses(client, &client->classes, "class", claim->class_name, why);
    /* The lower a priority, the larger its number; unset is none. */
    if (priority != RATION_PRIORITY_UNSET && priority < client->priority)
        return priority_refuses(client, why);
    if (priority == RATION_PRIORITY_UNSET && claim->usual < client->priority)
        priority = client->priority;
    claim->tenant = tenant;
    claim->priority = priority;
    return true;
}

bool rn_client_is_bound(const rn_client *client)
{
    return client != NULL && (!client->accounts.any || !client->tenants.any);
}

bool rn_client_knows_job(const rn_client *client, const char *account, const char *tenant)
{
    return client == NULL || (has_name(&client->accounts, ration_text_of(account)) &&
                              (tenant == NULL || has_name(&client->tenants, ration_text_of(tenant))));
}

uint64_t rn_client_id(const rn_client *client)
{
    return client != NULL ? rn_hash(client->name, strlen(client->name)) : 0;
}
