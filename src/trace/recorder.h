/* SPDX-License-Identifier: MIT */
#ifndef RN_TRACE_RECORDER_H
#define RN_TRACE_RECORDER_H

#include <ration/engine.h>
#include <ration/rules.h>

/*
 * An engine's calls as a trace that `ration replay --verify` finds equal: the sink of `ration_engine_options`. It never
 * disturbs the engine: what cannot be written ends the recording and nothing else.
 *
 * What is written: the config line, each call with "r" and its serial as id, each answer, each event. Credentials stand
 * as keys. Of a response's headers only those that a decision can rest on, its body only where a provider has
 * `bodyContains`. A call that failed (no memory, out of range) and a report stand as `advance`: they change nothing
 * else.
 */

typedef struct rn_recorder rn_recorder;

/* All is borrowed for rn_recorder_new, but for the functions and the allocator. */
typedef struct rn_recorder_options {
    const ration_allocator *allocator; /* NULL: the C library's */
    ration_text config;                /* from rn_config_json */
    const ration_rules *rules;         /* of the engine: name the headers that count */
    ration_time started_at;            /* the engine's first `now` */

    /*
     * Bytes that end at the end of a call, so that a file may end and the next begin between any two of them. Not 0:
     * they could not be written; the recording ends.
     */
    int (*write)(void *ctx, const char *data, size_t size);
    /* Once, when the recording ends by itself: RATION_ERR_IO, RATION_ERR_NOMEM, RATION_ERR_FULL. May be NULL. */
    void (*failed)(void *ctx, int err);
    void *ctx;
} rn_recorder_options;

/* RATION_ERR_NOMEM. Freed with rn_recorder_free, after the engine. */
int rn_recorder_new(const rn_recorder_options *options, rn_recorder **out);
/* Writes what is left. NULL is fine. */
void rn_recorder_free(rn_recorder *recorder);

/*
 * The engine is about to be given other rules, of this config (from rn_config_json): right before each
 * `ration_engine_reload`, or the recording ends there with RATION_ERR_CONFIG. Both are borrowed for the call.
 * RATION_ERR_NOMEM: nothing changed.
 */
RATION_MUST_CHECK int rn_recorder_reload(rn_recorder *recorder, ration_text config, const ration_rules *rules);

/* For `ration_engine_options.sink`. Borrowed. */
const ration_sink *rn_recorder_sink(const rn_recorder *recorder);

/* Write what is buffered: now and then, so that a recording is not far behind. Not from within a call of the engine. */
void rn_recorder_flush(rn_recorder *recorder);

#endif
