/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_API_H
#define RN_SERVE_API_H

#include "fleet/member.h"
#include "serve/clients.h"
#include "serve/gateway.h"
#include "serve/keeper.h"
#include "serve/planning.h"
#include "serve/reload.h"

/*
 * The decision API of chapter 7: leases for whoever makes the calls itself, and what the decider knows. It has no
 * listener of its own; the control port hands requests on.
 */
typedef struct rn_api rn_api;

/* Who reads the config anew. `by`: who wanted it. `out`, from rn_reload_init, is filled in. */
typedef struct rn_api_reloader {
    void (*reload)(void *user, const char *by, rn_reload *out);
    void *user;
} rn_api_reloader;

/* Everything is borrowed for the API's life. */
typedef struct rn_api_options {
    rn_loop *loop;
    rn_decider *decider;
    rn_gateway *gateway;
    rn_planning *planning;           /* NULL: there are no jobs */
    rn_member *member;               /* NULL: the limits are this process' own */
    rn_keeper *keeper;               /* NULL: nothing is kept */
    const rn_api_reloader *reloader; /* NULL: there is no file to read anew */
} rn_api_options;

/* RATION_ERR_NOMEM. */
int rn_api_new(const rn_api_options *options, rn_api **out);
/*
 * Its leases and waiters end, as if their clients had gone. The server is freed before, the gateway and the decider
 * after it. NULL is fine.
 */
void rn_api_free(rn_api *api);

/*
 * A request, if its target is one of the API's; else false, and nothing is done. `path` is the target without its
 * query; `client` is who asks, NULL one who may claim anything.
 */
bool rn_api_request(rn_api *api, rn_inbound *in, const rn_http_head *head, ration_text path, const rn_client *client);
/* Answer 401: the token is none, or nobody's. */
void rn_api_unauthorized(rn_api *api, rn_inbound *in, rn_bearer bearer);
/* May the client look at pages that tell of everybody? False: it was answered. */
bool rn_api_may_view(rn_api *api, rn_inbound *in, const rn_client *client);
/* What the server says about a request, if it was taken: its user is then the API's, else NULL. */
void rn_api_body(rn_inbound *in, ration_text bytes);
void rn_api_end(rn_inbound *in);
void rn_api_gone(rn_inbound *in);

/* The gateway is about to go by another config; nothing is borrowed of the present one after this. */
void rn_api_part(rn_api *api);

#endif
