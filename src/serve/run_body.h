/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_RUN_BODY_H
#define RN_SERVE_RUN_BODY_H

#include <ration/plan.h>

#include "trace/reader.h"

/* The body of `POST /v1/runs`, as strict as those of the other operations. */
typedef struct rn_run_body {
    ration_text job;
    ration_run run;   /* `fan_out` 0: not told, or none */
    int64_t children; /* RATION_UNSET: not told; 0: there are none */
    int64_t took_us;  /* how long ago it began */
} rn_run_body;

/*
 * Texts are borrowed from `body` or `arena`.
 *
 * Errors  RATION_ERR_SYNTAX with `*fault` filled, and `*out` untouched; RATION_ERR_NOMEM.
 */
int rn_run_body_read(ration_text body, rn_arena *arena, rn_run_body *out, rn_trace_fault *fault);

#endif
