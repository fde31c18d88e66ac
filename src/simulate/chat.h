/* SPDX-License-Identifier: MIT */
#ifndef RN_SIMULATE_CHAT_H
#define RN_SIMULATE_CHAT_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/types.h>

#include "trace/output.h"

/*
 * Chat completions as OpenAI's API has them, without a model: what a request asks for, how many tokens it takes, and
 * the texts of its answer. No sockets, no clock.
 */

#define RN_CHAT_PATH "/chat/completions"
#define RN_CHAT_ANSWER_MAX 4096  /* tokens of an answer, whatever is allowed */
#define RN_CHAT_ANSWER_USUAL 256 /* where the request allows no other number */

typedef struct rn_chat {
    char model[64]; /* as named; a longer one is cut */
    bool stream;
    bool tells_usage;      /* of a stream: a chunk before its end says what was used */
    int64_t most;          /* tokens that the answer may have, 1 to RN_CHAT_ANSWER_MAX */
    int64_t prompt_tokens; /* one for every four bytes of `messages`, rounded up */
    int64_t answer_tokens; /* 0: not drawn yet */
    uint64_t ordinal;      /* of the call; its id and its words come from it */
} rn_chat;

/*
 * The body of a request. RATION_ERR_SYNTAX: it cannot be served, and `*fault` says why, for people; RATION_ERR_NOMEM is
 * not known here. `*out` is untouched on error.
 */
int rn_chat_read(ration_text body, rn_chat *out, const char **fault);

/* How long the answer is: from 1 to `most` tokens, by seed and ordinal. */
void rn_chat_draw(rn_chat *chat, uint64_t seed, uint64_t ordinal);
int64_t rn_chat_tokens(const rn_chat *chat); /* of both; what a limit by tokens counts */

/* The answer whole. `created_s` in seconds since the epoch. */
void rn_chat_write(const rn_chat *chat, int64_t created_s, rn_output *out);
/* The same as a stream: so many server-sent events, the last of which is its end; and the `index`-th of them. */
int64_t rn_chat_events(const rn_chat *chat);
void rn_chat_event_write(const rn_chat *chat, int64_t created_s, int64_t index, rn_output *out);

/* An error as this API tells it. `code` NULL: null. */
void rn_chat_error_write(const char *message, const char *type, const char *code, rn_output *out);

#endif
