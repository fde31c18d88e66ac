/* SPDX-License-Identifier: MIT */
#ifndef RATION_TYPES_H
#define RATION_TYPES_H

/*
 * The words that every other header uses: instants, units, texts, errors, reasons.
 *
 * Time is in microseconds since the Unix epoch, capacity in micro-units (1 unit = 1 000 000). Both are exact integers:
 * the same calls give the same decisions on every machine.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RATION_API __attribute__((visibility("default")))
#define RATION_MUST_CHECK __attribute__((warn_unused_result))
#else
#define RATION_API
#define RATION_MUST_CHECK
#endif

/** An instant. A struct, so that an instant cannot be added to an instant. */
typedef struct ration_time {
    int64_t us;
} ration_time;

/** The largest instant: Lua's doubles are exact up to here, so a fleet agrees with the core. */
#define RATION_TIME_MAX_US (INT64_C(1) << 53)
/** "At no known time". Never a legal `now`. */
#define RATION_NEVER_US INT64_MAX
/** Spans: a hold that is not declared, a wait without end. */
#define RATION_FOREVER_US INT64_MAX

/** One unit of cost or capacity in micro-units. */
#define RATION_UNIT INT64_C(1000000)
/** The largest number of micro-units that a rule or a request may name. */
#define RATION_UNITS_MAX (INT64_C(1) << 53)
/** "Not given" for costs, holds, waits, margins. */
#define RATION_UNSET INT64_C(-1)

/** Pointer and length; not NUL-terminated. An absent text has `data == NULL`. Always borrowed. */
typedef struct ration_text {
    const char *data;
    size_t size;
} ration_text;

/** A reduced fraction; both parts from 0 (numerator) or 1 (denominator) to 1 000 000. */
typedef struct ration_ratio {
    int32_t num;
    int32_t den;
} ration_ratio;

/* Operating errors: code, value, text. */
#define RATION_ERRORS(X)                                                                                               \
    X(RATION_ERR_INVALID, -1, "invalid argument")                                                                      \
    X(RATION_ERR_NOMEM, -2, "out of memory")                                                                           \
    X(RATION_ERR_RANGE, -3, "value out of range")                                                                      \
    X(RATION_ERR_UNKNOWN, -4, "no such request or lease")                                                              \
    X(RATION_ERR_FULL, -5, "table full")                                                                               \
    X(RATION_ERR_SYNTAX, -6, "malformed text")                                                                         \
    X(RATION_ERR_CONFIG, -7, "the configuration has faults")                                                           \
    X(RATION_ERR_IO, -8, "input or output failed")

typedef enum ration_err {
    RATION_OK = 0,
#define RATION_X(code, value, text) code = (value),
    RATION_ERRORS(RATION_X)
#undef RATION_X
} ration_err;

/** The text of an error code; never NULL. */
RATION_API const char *ration_err_text(int err);

typedef enum ration_priority {
    RATION_PRIORITY_UNSET = 0, /* the endpoint's, else the provider's, else normal */
    RATION_PRIORITY_CRITICAL,
    RATION_PRIORITY_HIGH,
    RATION_PRIORITY_NORMAL,
    RATION_PRIORITY_LOW,
} ration_priority;

typedef enum ration_outcome {
    RATION_OUTCOME_SUCCESS = 0,
    RATION_OUTCOME_THROTTLED, /* the provider said "too many" */
    RATION_OUTCOME_FAILURE,
    RATION_OUTCOME_CANCELLED, /* the client went away: feeds nothing */
} ration_outcome;

typedef enum ration_circuit_state {
    RATION_BREAKER_CLOSED = 0,
    RATION_BREAKER_OPEN,
    RATION_BREAKER_HALF_OPEN, /* a few requests try */
} ration_circuit_state;

typedef enum ration_category {
    RATION_CATEGORY_CAPACITY = 0,
    RATION_CATEGORY_BUDGET,
    RATION_CATEGORY_PROVIDER,
    RATION_CATEGORY_FAIRNESS,
    RATION_CATEGORY_CALLER,
    RATION_CATEGORY_STORE,
} ration_category;

/* The reason table of the specification, chapter 1, and `paused`, which is what an operator's pause is called: code,
 * name, category, can waiting help? */
#define RATION_REASONS(X)                                                                                              \
    X(RATION_REASON_RATE_LIMITED, "rate_limited", RATION_CATEGORY_CAPACITY, true)                                      \
    X(RATION_REASON_CONCURRENCY_FULL, "concurrency_full", RATION_CATEGORY_CAPACITY, true)                              \
    X(RATION_REASON_ADAPTIVE_FULL, "adaptive_full", RATION_CATEGORY_CAPACITY, true)                                    \
    X(RATION_REASON_QUOTA_EXHAUSTED, "quota_exhausted", RATION_CATEGORY_BUDGET, true)                                  \
    X(RATION_REASON_PENALIZED, "penalized", RATION_CATEGORY_PROVIDER, true)                                            \
    X(RATION_REASON_CIRCUIT_OPEN, "circuit_open", RATION_CATEGORY_PROVIDER, true)                                      \
    X(RATION_REASON_GUARANTEE_ON_LOAN, "guarantee_on_loan", RATION_CATEGORY_FAIRNESS, true)                            \
    X(RATION_REASON_HOLD_EXCEEDS_RECLAIM_HORIZON, "hold_exceeds_reclaim_horizon", RATION_CATEGORY_FAIRNESS, false)     \
    X(RATION_REASON_NOTHING_TO_BORROW, "nothing_to_borrow", RATION_CATEGORY_FAIRNESS, true)                            \
    X(RATION_REASON_COST_EXCEEDS_LIMIT, "cost_exceeds_limit", RATION_CATEGORY_CALLER, false)                           \
    X(RATION_REASON_UNKNOWN_TENANT, "unknown_tenant", RATION_CATEGORY_CALLER, false)                                   \
    X(RATION_REASON_UNKNOWN_CLASS, "unknown_class", RATION_CATEGORY_CALLER, false)                                     \
    X(RATION_REASON_UNKNOWN_ACCOUNT, "unknown_account", RATION_CATEGORY_CALLER, false)                                 \
    X(RATION_REASON_UNKNOWN_PROVIDER, "unknown_provider", RATION_CATEGORY_CALLER, false)                               \
    X(RATION_REASON_DEADLINE, "deadline", RATION_CATEGORY_CALLER, true)                                                \
    X(RATION_REASON_CANCELLED, "cancelled", RATION_CATEGORY_CALLER, false)                                             \
    X(RATION_REASON_DRAINING, "draining", RATION_CATEGORY_CALLER, true)                                                \
    X(RATION_REASON_QUEUE_FULL, "queue_full", RATION_CATEGORY_CAPACITY, true)                                          \
    X(RATION_REASON_TOO_MANY_KEYS, "too_many_keys", RATION_CATEGORY_CAPACITY, true)                                    \
    X(RATION_REASON_PAUSED, "paused", RATION_CATEGORY_CAPACITY, true)                                                  \
    X(RATION_REASON_NOT_PERMITTED, "not_permitted", RATION_CATEGORY_CALLER, false)                                     \
    X(RATION_REASON_STORE_UNAVAILABLE, "store_unavailable", RATION_CATEGORY_STORE, true)

typedef enum ration_reason {
    RATION_REASON_NONE = 0,
#define RATION_X(code, name, category, retryable) code,
    RATION_REASONS(RATION_X)
#undef RATION_X
        RATION_REASON_COUNT,
} ration_reason;

/** The name of a reason as it stands in traces and headers; "" for RATION_REASON_NONE and unknown values. */
RATION_API const char *ration_reason_name(ration_reason reason);
/** The category of a reason. */
RATION_API ration_category ration_reason_category(ration_reason reason);
/** "capacity", "budget", "provider", "fairness", "caller" or "store". */
RATION_API const char *ration_category_name(ration_category category);
/** Whether asking again later can help. False for what only the caller can change. */
RATION_API bool ration_reason_retryable(ration_reason reason);
/** "critical", "high", "normal", "low"; "" for RATION_PRIORITY_UNSET. */
RATION_API const char *ration_priority_name(ration_priority priority);
/** "success", "throttled", "failure", "cancelled". */
RATION_API const char *ration_outcome_name(ration_outcome outcome);
/** "closed", "open", "half-open". */
RATION_API const char *ration_circuit_state_name(ration_circuit_state state);

/** A text from a NUL-terminated string; an absent text from NULL. */
static inline ration_text ration_text_of(const char *s)
{
    const ration_text text = {s, s != NULL ? strlen(s) : 0};

    return text;
}

static inline ration_time ration_time_of(int64_t us)
{
    ration_time t = {us};

    return t;
}

#ifdef __cplusplus
}
#endif

#endif
