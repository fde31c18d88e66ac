/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_RATELIMIT_H
#define RN_SERVE_RATELIMIT_H

#include "core/standing.h"
#include "net/http.h"

/*
 * `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers: lists of structured fields (RFC 9651),
 * such as `"daily";q=1000;w=86400` and `"daily";r=12;t=3600`. Units and seconds are whole: what is left rounds down,
 * times round up.
 */

#define RN_RATELIMIT_SHOWN 3 /* the tightest of a call */
#define RN_RATELIMIT_FIELDS 2
#define RN_RATELIMIT_BYTES 2048

/*
 * Both fields, appended to `fields`; their values are in `buffer`. Returns how many: none where there is nothing to
 * tell. A limit for whose name there is no room is left out, and those after it.
 */
size_t rn_ratelimit_write(const rn_standing *standings, size_t count, char buffer[RN_RATELIMIT_BYTES],
                          rn_http_field *fields);

/* Whether a provider has told where its limits stand, in these fields or those of earlier drafts. */
bool rn_ratelimit_is_told(rn_http_fields fields);

#endif
