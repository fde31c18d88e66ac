/* SPDX-License-Identifier: MIT */
#ifndef RN_FLEET_STORE_URL_H
#define RN_FLEET_STORE_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ration/types.h>

/*
 * Where a store is:
 *
 *   redis://HOST[:PORT][,HOST[:PORT]...]               the first that is there and takes writes
 *   redis+sentinel://HOST[:PORT][,...]/MASTER          whom these Sentinels name
 *   redis+cluster://HOST[:PORT][,...]                  the cluster of which these are members
 *   rediss://  rediss+sentinel://  rediss+cluster://   the same over TLS
 *   unix:PATH
 *
 * Ports are 6379, Sentinel's 26379. An IPv6 address stands in brackets. A user and a password do not belong here.
 */

#define RN_STORE_HOST_MAX 256
#define RN_STORE_PLACES_MAX 16
#define RN_STORE_NAME_MAX 128

typedef enum rn_store_kind {
    RN_STORE_SINGLE = 0,
    RN_STORE_SENTINEL,
    RN_STORE_CLUSTER,
} rn_store_kind;

typedef struct rn_store_place {
    char host[RN_STORE_HOST_MAX]; /* or the path of a socket */
    uint16_t port;                /* 0: a socket */
} rn_store_place;

typedef struct rn_store_url {
    rn_store_kind kind;
    bool tls;
    size_t count;
    rn_store_place places[RN_STORE_PLACES_MAX];
    char master[RN_STORE_NAME_MAX]; /* Sentinel: its name */
} rn_store_url;

/* NULL, or what is wrong with it; `out` is then of no use. The text does not repeat what was given. */
const char *rn_store_url_read(const char *text, rn_store_url *out);

/* "HOST:PORT" or the path: for people. */
#define RN_STORE_PLACE_TEXT (RN_STORE_HOST_MAX + 9)
void rn_store_place_text(const rn_store_place *place, char text[RN_STORE_PLACE_TEXT]);
bool rn_store_place_eq(const rn_store_place *a, const rn_store_place *b);
/* A number of at most five digits; -1: none. */
int64_t rn_store_number(ration_text text);
/* A host and a port as a server names them. False: no such place. */
bool rn_store_place_set(rn_store_place *place, ration_text host, int64_t port);

#endif
