/* SPDX-License-Identifier: MIT */
#ifndef RN_TRACE_CANONICAL_H
#define RN_TRACE_CANONICAL_H

#include <ration/types.h>

#include "trace/output.h"

/*
 * One form for all lines that mean the same: members in order of their names, no blanks, numbers without trailing
 * zeros, texts escaped as we escape them; the member `explanation` of the outermost object is left out. Equal forms
 * are what `--verify` calls equal.
 *
 * Errors: RATION_ERR_SYNTAX if it is not JSON, RATION_ERR_NOMEM, RATION_ERR_FULL. Appends to `out`.
 */
int rn_trace_canonical(ration_text line, const ration_allocator *mem, rn_output *out);

#endif
