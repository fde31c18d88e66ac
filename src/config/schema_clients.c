/* SPDX-License-Identifier: MIT */
/*
 * The table of keys: clients. schema.c says what the table is.
 *
 * Who may ask decides nothing about what is answered, so recordings leave clients out, tokens and all.
 */
#include "config/table.h"

static const rn_key client_keys[] = {
    {.name = "name",
     .type = &rn_type_name,
     .flags = RN_KEY_REQUIRED | RN_KEY_LOCAL,
     AT(rn_client, name),
     .doc = "What refusals call it. No secret."},
    {.name = "token",
     .type = &rn_type_header_value,
     .flags = RN_KEY_REQUIRED | RN_KEY_LOCAL | RN_KEY_SECRET,
     AT(rn_client, token),
     .doc = "What it shows: `Ration-Token: TOKEN` at the gateway, `Authorization: Bearer TOKEN` at the control port. "
            "Take it from the environment: `${BILLING_TOKEN}`. Visible ASCII characters without blanks."},
    {.name = "accounts",
     .type = &rn_type_name,
     .shape = RN_SHAPE_LIST,
     .flags = RN_KEY_LOCAL,
     .otherwise = "any",
     ITEMS(rn_client, accounts.names, accounts.count),
     .doc = "The accounts that it may use. An empty list: none."},
    {.name = "tenants",
     .type = &rn_type_name,
     .shape = RN_SHAPE_LIST,
     .flags = RN_KEY_LOCAL,
     .otherwise = "any, and none",
     ITEMS(rn_client, tenants.names, tenants.count),
     .doc = "The tenants that it may speak for. It must name one of them, but where there is only one: that is meant "
            "when it names none. An empty list: it may name none."},
    {.name = "classes",
     .type = &rn_type_name,
     .shape = RN_SHAPE_LIST,
     .flags = RN_KEY_LOCAL,
     .otherwise = "any",
     ITEMS(rn_client, classes.names, classes.count),
     .doc = "The classes that it may name. It need not name one. An empty list: none."},
    {.name = "priority",
     .type = &rn_type_word,
     .words = rn_words_priority,
     .fallback = "critical",
     .flags = RN_KEY_LOCAL,
     AT(rn_client, priority),
     .doc = "The highest priority that it may claim. A call that claims none has at most this one."},
    {.name = "operator",
     .type = &rn_type_bool,
     .fallback = "false",
     .flags = RN_KEY_LOCAL,
     AT(rn_client, operates),
     .doc = "It may pause, resume, reset and grant, drain and reload, look at everything, and end leases of others."},
    {.name = "view",
     .type = &rn_type_bool,
     .flags = RN_KEY_LOCAL,
     .otherwise = "true for an operator, and where neither `accounts` nor `tenants` is given",
     AT(rn_client, views),
     .doc = "It may look at the control port's pages: status, metrics, limits, leases, waiters, refusals, plans, "
            "events. They tell of all accounts and tenants."},
    END,
};
const rn_object rn_schema_client = {.name = "client",
                                    .doc = "Whoever shows its token, and what it may claim.",
                                    .keys = client_keys,
                                    .size = sizeof(rn_client),
                                    .check = rn_check_client};
