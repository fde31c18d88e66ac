/* SPDX-License-Identifier: MIT */
#ifndef RN_TRACE_READER_H
#define RN_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ration/state.h>

#include "base/arena.h"

/*
 * Lines of a trace to typed operations (specification, chapter 9), and bodies of the decision API, which have the same
 * members. Strict: an unknown or missing member, one that
 * occurs twice, a wrong type, a number with more places than count, time that runs back are faults with line, column
 * and words.
 */

#define RN_TRACE_VERSION 1                   /* of the form: docs/reference/versions.md */
#define RN_TRACE_LINE_MAX ((size_t)16 << 20) /* bytes in a line */
#define RN_TRACE_MEMBERS_MAX 64              /* of a line */
#define RN_TRACE_NAME_MAX 16                 /* bytes in the longest name of a member */
#define RN_TRACE_PAIRS_MAX 4096              /* headers or variables of a request */

typedef enum rn_trace_op {
    RN_TRACE_BLANK = 0, /* an empty line */
    RN_TRACE_OUTPUT,    /* a recorded decision, event or report: `text` */
    RN_TRACE_CONFIG,
    RN_TRACE_ACQUIRE,
    RN_TRACE_OBSERVE,
    RN_TRACE_RELEASE,
    RN_TRACE_RENEW,
    RN_TRACE_CANCEL,
    RN_TRACE_CHECK,
    RN_TRACE_ADVANCE,
    RN_TRACE_STATS,
    RN_TRACE_LIMITS,
    RN_TRACE_LEASES,
    RN_TRACE_FAIRNESS,
    RN_TRACE_ALLOCATION,
    RN_TRACE_HEALTH,
    RN_TRACE_STATE,
    RN_TRACE_SAVE,
    RN_TRACE_KEPT,
    RN_TRACE_STEP,
    RN_TRACE_PAUSE,
    RN_TRACE_RESUME,
    RN_TRACE_RESET,
    RN_TRACE_GRANT,
    RN_TRACE_DRAIN,
    RN_TRACE_RELOAD,
    RN_TRACE_OP_COUNT,
} rn_trace_op;

/* One line, understood. All texts are borrowed from the line or the reader, until its next line. */
typedef struct rn_trace_line {
    rn_trace_op op;
    size_t number;    /* from 1 */
    ration_time at;   /* of an operation */
    ration_text id;   /* acquire, observe, release, renew, cancel */
    size_t id_at;     /* the byte at which it stands */
    ration_text text; /* the line itself, without its end */
    ration_request request;
    ration_response response;
    ration_completion completion;
    ration_check_mode check;
    ration_text account;         /* health */
    bool ok;                     /* health */
    ration_state state;          /* state */
    bool all;                    /* save */
    int64_t by_us;               /* step */
    ration_counter_name counter; /* pause, resume, reset, grant */
    int64_t units;               /* grant */
    bool has_started_at;         /* config */
    ration_time started_at;
} rn_trace_line;

/* Where and what; `text` is printable UTF-8. */
typedef struct rn_trace_fault {
    size_t line;
    size_t column; /* in characters, from 1 */
    char text[240];
    char member[48]; /* the outermost one that is at fault, perhaps cut; "": none */
} rn_trace_fault;

/* Rows of the reader's table of members, a bit each. */
typedef struct rn_trace_rows {
    uint64_t of_op[RN_TRACE_OP_COUNT]; /* that belong to it */
    uint64_t needed[RN_TRACE_OP_COUNT];
    uint64_t of_size[RN_TRACE_NAME_MAX + 1]; /* whose names have so many bytes */
    uint64_t in_lines;
    uint64_t in_bodies;
} rn_trace_rows;

typedef struct rn_trace_reader {
    rn_arena arena; /* of the line */
    rn_trace_rows rows;
    size_t number;
    bool started; /* an operation has been read */
    ration_time newest;
} rn_trace_reader;

void rn_trace_reader_init(rn_trace_reader *reader, const ration_allocator *mem);
void rn_trace_reader_fini(rn_trace_reader *reader);

/*
 * The next line, without its line feed.
 *
 * Errors     RATION_ERR_SYNTAX with `*fault` filled; RATION_ERR_NOMEM. `*out` is then not to be used.
 */
int rn_trace_read(rn_trace_reader *reader, ration_text line, rn_trace_line *out, rn_trace_fault *fault);

/*
 * The body of a call of the decision API: an object with the members that a line of `op` has, but for `op`, `at` and
 * `health`; `lease` in the place of `id` where a lease is named, `timeout` in that of `wait`; a release may also have
 * the members of an observation. `op` is one of acquire, check, release, observe, renew, or of pause, resume,
 * reset, grant, whose `limit` and `key` are not in the body. Nothing is known of time, and
 * nothing of lines read before is kept. Errors as rn_trace_read.
 */
int rn_trace_read_body(rn_trace_reader *reader, rn_trace_op op, ration_text body, rn_trace_line *out,
                       rn_trace_fault *fault);

/* A fault at a byte of a line. */
void rn_trace_fault_set(rn_trace_fault *fault, size_t number, ration_text line, size_t at, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* "acquire", "stats"; "" for what is no operation. */
const char *rn_trace_op_name(rn_trace_op op);

#endif
