/* SPDX-License-Identifier: MIT */
#ifndef RN_TRACE_OUTPUT_H
#define RN_TRACE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ration/engine.h>

/*
 * JSON going out, into a buffer that grows up to a maximum. Commas are set by themselves. Once something did not fit
 * nothing more is written and `err` says why: check it once, at the end of a line.
 */
typedef struct rn_output {
    const ration_allocator *mem;
    char *data;
    size_t size; /* bytes written */
    size_t capacity;
    size_t max;
    bool comma; /* something stands before at this level */
    int err;    /* RATION_OK, RATION_ERR_NOMEM, RATION_ERR_FULL */
} rn_output;

void rn_output_init(rn_output *out, const ration_allocator *mem, size_t max);
void rn_output_fini(rn_output *out);
void rn_output_clear(rn_output *out); /* empty and without error; keeps its memory */

/* Structure. `name` NULL: an element of an array. */
void rn_output_open(rn_output *out, const char *name, char bracket); /* '{' or '[' */
void rn_output_close(rn_output *out, char bracket);                  /* '}' or ']' */
void rn_output_newline(rn_output *out);                              /* ends a line of JSON Lines */

/* Values. A text is escaped as JSON asks, and what is not UTF-8 in it becomes U+FFFD: the output is always valid. */
void rn_output_text(rn_output *out, const char *name, ration_text value);
void rn_output_str(rn_output *out, const char *name, const char *value);
void rn_output_bool(rn_output *out, const char *name, bool value);
void rn_output_null(rn_output *out, const char *name);
void rn_output_int(rn_output *out, const char *name, int64_t value);
void rn_output_micro(rn_output *out, const char *name, int64_t micro); /* micro-units as units: 48.5 */
void rn_output_ms(rn_output *out, const char *name, int64_t us);       /* microseconds as milliseconds: 333.334 */
/* A whole number and thousand-millionths of one, both at least 0: 4500.000000001 */
void rn_output_nano(rn_output *out, const char *name, int64_t whole, int64_t rest);
/* A member whose name is not ours, its value to follow as an element. */
void rn_output_key(rn_output *out, ration_text name);

/* JSON that was made elsewhere: as an element, and as bytes without a comma before them. */
void rn_output_element(rn_output *out, ration_text json);
void rn_output_raw(rn_output *out, ration_text bytes);

#endif
