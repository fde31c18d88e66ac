/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_LOG_H
#define RN_SERVE_LOG_H

#include <stdarg.h>

#include <ration/types.h>

#include "config/config.h"

/*
 * Lines for the operator in logfmt or JSON, one write each. Times are the loop's, so that a line agrees with the
 * recording.
 */

/* One class of lines that may come in floods: at most one a second, and `more`; the next one tells how many were left
 * out. */
typedef struct rn_log_gate {
    uint32_t more;
    uint32_t passed; /* in this second, beyond the first */
    int64_t second;
    uint64_t left_out;
} rn_log_gate;

typedef struct rn_log {
    int descriptor; /* below 0: nothing is written */
    rn_log_format format;
    rn_log_level level; /* the least that is written */
} rn_log;

/*
 * `time level msg KEY…`, each with its value: pairs of texts, ended by NULL; a pair whose value is NULL is left out.
 * `level` is "info", "warn" or "error". Values may be any bytes.
 */
void rn_log_line(const rn_log *log, ration_time now, const char *level, const char *message, ...)
    __attribute__((sentinel));

/* The same through a gate. */
void rn_log_gated(const rn_log *log, rn_log_gate *gate, ration_time now, const char *level, const char *message, ...)
    __attribute__((sentinel));

#endif
