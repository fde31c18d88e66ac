/* SPDX-License-Identifier: MIT */
#ifndef RN_TRACE_STATE_H
#define RN_TRACE_STATE_H

#include <ration/state.h>

#include "base/arena.h"
#include "trace/json.h"
#include "trace/output.h"

/* Records of what outlived a process, as they stand in a trace's `state` line: one table for both ways. */

/* One record as an element of an array. */
void rn_record_write(rn_output *out, const ration_record *record);

/* What is wrong with a record, and where; `why` is a fixed text, `name` the member it is about (absent: none). */
typedef struct rn_record_fault {
    size_t at;
    const char *why;
    ration_text name;
} rn_record_fault;

/* The array of records that `value` is. RATION_ERR_SYNTAX with `*fault`, RATION_ERR_NOMEM. Lives in the arena; texts
 * are borrowed from `json` where they can be. */
int rn_records_read(const rn_json *json, const rn_json_value *value, rn_arena *arena, const ration_record **records,
                    size_t *count, rn_record_fault *fault);

#endif
