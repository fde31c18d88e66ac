/* SPDX-License-Identifier: MIT */
#ifndef RN_TRACE_JSON_H
#define RN_TRACE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ration/types.h>

#include "base/arena.h"

/*
 * A strict pull reader of JSON (RFC 8259) that keeps numbers as they are written. It copies and allocates nothing:
 * what it hands out is borrowed from the text that it reads. UTF-8 only; a lone surrogate, a bare control character,
 * a number such as 01 or 1. or NaN, a comma too many are faults.
 */

/* How deep arrays and objects may stand in one another. */
#define RN_JSON_DEPTH_MAX 64

typedef enum rn_json_type {
    RN_JSON_NULL = 0,
    RN_JSON_FALSE,
    RN_JSON_TRUE,
    RN_JSON_NUMBER,
    RN_JSON_STRING,
    RN_JSON_ARRAY,
    RN_JSON_OBJECT,
} rn_json_type;

typedef struct rn_json_value {
    rn_json_type type;
    bool escaped;    /* a string with a backslash in it */
    size_t at;       /* where it begins in the text */
    ration_text raw; /* as written; of a string, what is between the quotes */
} rn_json_value;

typedef struct rn_json {
    const char *data;
    size_t size;
    size_t pos;
    bool first;        /* nothing of the opened array or object has been read yet */
    const char *fault; /* what is wrong, as words; NULL: nothing so far */
    size_t fault_at;
} rn_json;

void rn_json_init(rn_json *json, ration_text text);

/* The next value whole, checked to its end. False: `fault` is set, and everything after it is false too. */
bool rn_json_value_next(rn_json *json, rn_json_value *out);
/* Nothing but white space is left, else `fault` is set. */
bool rn_json_end(rn_json *json);

/* Go into the array or object that comes next; false, and a fault, if something else does. */
bool rn_json_enter(rn_json *json, rn_json_type type);
/* A second reader, over an array or object that was read before. Positions stay those of the text. */
void rn_json_reopen(const rn_json *json, const rn_json_value *value, rn_json *inner);
/* The next member of the object, or element of the array, that was entered. False: at its end, or at a fault. */
bool rn_json_member(rn_json *json, rn_json_value *name, rn_json_value *value);
bool rn_json_element(rn_json *json, rn_json_value *value);

/* What a string says. Writes at most `raw.size` bytes and returns their number. */
size_t rn_json_unescape(const rn_json_value *string, char *out);
int rn_json_text_copy(const rn_json_value *string, rn_arena *arena, ration_text *out);
/* The same, borrowed where it can be, else from the arena; never an absent text. RATION_ERR_NOMEM. */
static inline int rn_json_text(const rn_json_value *string, rn_arena *arena, ration_text *out)
{
    if (string->escaped)
        return rn_json_text_copy(string, arena, out);
    *out = string->raw;
    return RATION_OK;
}

/*
 * A number times 10^places, exact: "48.5" at six places is 48500000, so is "485e-1". RATION_ERR_SYNTAX: it has more
 * places; RATION_ERR_RANGE: it does not fit. `*out` is then untouched. The number was read by this reader.
 */
int rn_json_fixed(ration_text number, int places, int64_t *out);

/* "a number", "an object": for messages. */
const char *rn_json_type_name(rn_json_type type);

#endif
