/* SPDX-License-Identifier: MIT */
#ifndef RN_TRACE_REPLAY_H
#define RN_TRACE_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

#include <ration/config.h>
#include <ration/engine.h>

#include "core/decider.h"
#include "trace/reader.h"
#include "trace/verify.h"

/*
 * A trace run through a fresh engine: bytes in, lines of decisions and events out. No file, no clock: whoever calls
 * reads and writes.
 */

typedef struct rn_replay rn_replay;

/* All is borrowed until the replay is freed. */
typedef struct rn_replay_options {
    const ration_allocator *allocator; /* NULL: the C library's */
    const char *name;                  /* of the trace, for faults in its config line; NULL: "trace" */
    const ration_rules *rules;         /* instead of the trace's own config; NULL: that one */
    const ration_sink *sink;           /* of the engine; NULL: none */
    bool verify;                       /* compare with the lines recorded in the trace, write nothing */
    /* A whole line with its line feed. Not 0: it could not be written. NULL: nobody wants them. */
    int (*write)(void *ctx, const char *line, size_t size);
    void *ctx;
    /* Who decides in the engine's place, made once, when the first operation comes; NULL: the engine. Borrows both. Of
     * what a trace can do, states, steps and reloads are the engine's alone, and then faults. */
    int (*decide)(void *decide_ctx, rn_decider *engine, const ration_rules *rules, ration_time start, rn_decider **out);
    void *decide_ctx;
} rn_replay_options;

/* RATION_ERR_NOMEM. Freed with rn_replay_free. */
int rn_replay_new(const rn_replay_options *options, rn_replay **out);
void rn_replay_free(rn_replay *replay);

/*
 * More of the trace, cut anywhere; then its end.
 *
 * Errors     RATION_ERR_SYNTAX: `rn_replay_fault` says where and what. RATION_ERR_CONFIG: the config line has the
 *            faults of `rn_replay_config_faults`. RATION_ERR_IO: `write` failed. RATION_ERR_NOMEM. RATION_ERR_FULL:
 *            the lines that `verify` must keep are too many. After an error, or a difference, nothing more is done.
 */
int rn_replay_feed(rn_replay *replay, const char *data, size_t size);
int rn_replay_finish(rn_replay *replay);

const rn_trace_fault *rn_replay_fault(const rn_replay *replay);
const ration_config_faults *rn_replay_config_faults(const rn_replay *replay);
/* With `verify`: the first difference, NULL while there is none; how many lines were equal. */
const rn_verify_difference *rn_replay_difference(const rn_replay *replay);
size_t rn_replay_matched(const rn_replay *replay);
/* The number of the last line that was read. */
size_t rn_replay_line(const rn_replay *replay);

#endif
