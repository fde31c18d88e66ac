/* SPDX-License-Identifier: MIT */
#ifndef RN_TRACE_VERIFY_H
#define RN_TRACE_VERIFY_H

#include <stdbool.h>
#include <stddef.h>

#include <sys/queue.h>

#include <ration/engine.h>

#include "trace/output.h"

/*
 * Recorded lines against those that come out, in order. Either may run ahead of the other: a recording has each answer
 * behind its call, a trace written by hand may have all answers at its end.
 */

#define RN_VERIFY_PENDING_MAX ((size_t)256 << 20) /* bytes of lines that wait for their counterpart */

typedef struct rn_verify_line rn_verify_line;
STAILQ_HEAD(rn_verify_lines, rn_verify_line);

/* What differs. Texts are borrowed from the verify; an absent one: that side has no line here. */
typedef struct rn_verify_difference {
    size_t line; /* of the recorded line, or of the call that gave the line which is not recorded */
    ration_text recorded;
    ration_text produced;
} rn_verify_difference;

typedef struct rn_verify {
    const ration_allocator *mem;
    struct rn_verify_lines recorded;
    struct rn_verify_lines produced;
    size_t pending; /* bytes in both lists */
    size_t matched; /* pairs found equal */
    rn_output left, right;
    bool differs;
    rn_verify_difference difference;
} rn_verify;

void rn_verify_init(rn_verify *verify, const ration_allocator *mem);
void rn_verify_fini(rn_verify *verify);

/*
 * One more line of either side; `number` is that of the trace line it stands on or comes from. After the first
 * difference nothing is looked at any more.
 *
 * Errors     RATION_ERR_NOMEM, RATION_ERR_FULL (RN_VERIFY_PENDING_MAX).
 */
int rn_verify_recorded(rn_verify *verify, size_t number, ration_text line);
int rn_verify_produced(rn_verify *verify, size_t number, ration_text line);
/* Both sides are at their end: what is left over differs. */
void rn_verify_end(rn_verify *verify);

#endif
