/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_TOKEN_H
#define RN_SERVE_TOKEN_H

#include <ration/types.h>

/*
 * Whether a token that came from outside is the configured one, in a time that tells nothing about the latter's bytes.
 */
bool rn_token_matches(ration_text given, const char *want);

#endif
