/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_POINTER_H
#define RN_BASE_POINTER_H

#include <ration/types.h>

#include "base/arena.h"

/* A JSON pointer (RFC 6901): which value of a text is meant. */

#define RN_POINTER_TOKENS 32 /* steps at most */
#define RN_POINTER_BYTES 1024

typedef struct rn_pointer {
    const char *text;          /* as written */
    const ration_text *tokens; /* its steps, unescaped */
    size_t count;              /* 0: the whole text */
} rn_pointer;

/*
 * Reads a pointer; all of it is in the arena. RATION_ERR_SYNTAX: it begins with no '/', or has a '~' that is neither
 * "~0" nor "~1"; RATION_ERR_RANGE: too long, or too many steps; RATION_ERR_NOMEM. `*out` is untouched on error.
 */
int rn_pointer_parse(rn_arena *arena, ration_text text, rn_pointer *out);

/* True if the step names element `index` of an array: its digits, without zeros before them. */
bool rn_pointer_is_index(ration_text token, uint64_t index);

#endif
