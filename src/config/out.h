/* SPDX-License-Identifier: MIT */
#ifndef RN_CONFIG_OUT_H
#define RN_CONFIG_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/engine.h>
#include <ration/types.h>

/* A text that grows. After a failure nothing more is written and `failed` stays set. */
typedef struct rn_out {
    const ration_allocator *mem;
    char *data;
    size_t size;
    size_t room;
    bool failed;
} rn_out;

void rn_out_init(rn_out *out, const ration_allocator *mem);
void rn_out_fini(rn_out *out);
void rn_out_text(rn_out *out, ration_text text);
void rn_out_str(rn_out *out, const char *s);
void rn_out_int(rn_out *out, int64_t value);
void rn_out_micro(rn_out *out, int64_t value); /* "48.5" */
void rn_out_json(rn_out *out, const char *s);  /* in quotes, escaped */
/* A comma, unless an opening bracket stands before. */
void rn_out_comma(rn_out *out);
/* The text with a final NUL, now the caller's. RATION_ERR_NOMEM; `out` is empty afterwards in any case. */
int rn_out_take(rn_out *out, char **data, size_t *size);

#endif
