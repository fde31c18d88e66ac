/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_REPLY_H
#define RN_SERVE_REPLY_H

#include "net/server.h"
#include "serve/refusal.h"

/* Whole answers of the control port. Each finishes the inbound; what cannot be answered is broken off. */

/* `extra` (NULL: none) is one more field. */
void rn_reply(rn_inbound *in, int status, const char *type, const rn_http_field *extra, const rn_output *body);
void rn_reply_problem(rn_inbound *in, const rn_problem *problem, const rn_http_field *extra);
/* A refusal, with Ration-Refused and, where it helps, Retry-After. `problem->decision` is the refusal. */
void rn_reply_refusal(rn_inbound *in, const rn_problem *problem, ration_time now);

#endif
