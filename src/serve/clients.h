/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_CLIENTS_H
#define RN_SERVE_CLIENTS_H

#include "config/config.h"
#include "net/http.h"

/*
 * Who asks, by its token, and what it may claim. Chapter 7; docs/decisions, "Who may claim what".
 *
 * A client is borrowed from the config: nobody keeps one beyond the turn in which it was found.
 */

typedef enum rn_bearer {
    RN_BEARER_KNOWN = 0, /* let in */
    RN_BEARER_SILENT,    /* a token is needed, and there is none */
    RN_BEARER_UNKNOWN,   /* that is nobody's token */
} rn_bearer;

/*
 * Whose token that is. `*out` is NULL for one who may claim anything: the bearer of `settings.token`, and everybody
 * where no token is asked for.
 *
 * Cost  Linear in the clients, and the same for each token of one length.
 */
rn_bearer rn_bearer_find(const ration_config *config, ration_text token, const rn_client **out);
/* The same for the control port: one `Authorization: Bearer TOKEN`, the scheme in any case. */
rn_bearer rn_bearer_read(const ration_config *config, rn_http_fields fields, const rn_client **out);

/* What a call says of itself; absent texts are not said. */
typedef struct rn_claim {
    ration_text account;
    ration_text tenant;
    ration_text class_name;
    ration_priority priority;
    ration_priority usual; /* what it has that claims none */
} rn_claim;

/* A claim that is not permitted. */
typedef struct rn_not_permitted {
    const char *part; /* "account", "tenant", "class", "priority" */
    char text[1024];  /* what may be claimed */
} rn_not_permitted;

/*
 * May `client` claim that? NULL may all. Fills in what the claim leaves open and the client settles: its only tenant,
 * and a priority where the usual one is above its highest. False: `*why` is filled, the claim is as it was.
 */
bool rn_client_permits(const rn_client *client, rn_claim *claim, rn_not_permitted *why);
/* The account alone; absent is none of a client's whose accounts are listed. */
bool rn_client_permits_account(const rn_client *client, ration_text account, rn_not_permitted *why);

/* Is there something that it may not even know of? */
bool rn_client_is_bound(const rn_client *client);
/* May it know of a job of that account and tenant (NULL: none)? */
bool rn_client_knows_job(const rn_client *client, const char *account, const char *tenant);
/* Stands for a client's name where the client itself cannot be kept; 0: of NULL. */
uint64_t rn_client_id(const rn_client *client);

#endif
