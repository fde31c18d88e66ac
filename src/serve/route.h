/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_ROUTE_H
#define RN_SERVE_ROUTE_H

#include <stddef.h>

#include <ration/types.h>

/*
 * From the request target of a client to the one of the provider: `/ACCOUNT/PATH?QUERY`. Chapter 7.
 *
 * Bytes after the account are kept as sent. Nothing is decoded, resolved or normalised, so that "..", "%2F" and "//"
 * reach the provider as the client wrote them and can never name another account.
 */

typedef struct rn_route {
    ration_text account; /* as written, percent-encoded */
    ration_text path;    /* "/PATH", or "/" where the target ends with the account */
    ration_text rest;    /* what follows the account: "/PATH?QUERY", "?QUERY" or "" */
} rn_route;

/*
 * RATION_ERR_SYNTAX for anything but an origin-form target with an account in it (absolute-form, authority-form, "*").
 */
int rn_route_parse(ration_text target, rn_route *out);

/*
 * Percent-decode a segment into `buffer`; `*out` is borrowed from it.
 * Errors  RATION_ERR_SYNTAX for a malformed escape, RATION_ERR_RANGE if it does not fit.
 */
int rn_route_decode(ration_text segment, char *buffer, size_t size, ration_text *out);

#endif
