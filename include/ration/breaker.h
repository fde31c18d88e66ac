/* SPDX-License-Identifier: MIT */
#ifndef RATION_BREAKER_H
#define RATION_BREAKER_H

/*
 * A circuit breaker alone: it cuts callers off from what fails, and lets them back when it answers again. Specification
 * chapter 5. Without a config file, for one process; sans I/O. One thread at a time.
 */

#include <ration/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ration_breaker ration_breaker;

/** What a call was let through under. Keep it until the call's result is known. */
typedef struct ration_breaker_pass {
    uint64_t generation;
    bool probe;
} ration_breaker_pass;

typedef struct ration_breaker_status {
    ration_breaker_state state;
    uint64_t generation;
    ration_time retry_at; /* RATION_NEVER_US: closed, or not known */
    bool check_due;       /* run a health check and report it with `ration_breaker_health` */
    const char *cause;    /* of the last change, in a few words */
} ration_breaker_status;

/** Errors: RATION_ERR_CONFIG with `*fault` (may be NULL), RATION_ERR_NOMEM, RATION_ERR_INVALID. */
RATION_API RATION_MUST_CHECK int ration_breaker_new(const ration_breaker_rule *rule, ration_time now,
                                                    const ration_allocator *allocator, ration_breaker **out,
                                                    ration_fault *fault);
RATION_API void ration_breaker_free(ration_breaker *breaker);

/** May a call go now? True: `*out` is its pass; end it with `result` or `leave`. False: `*status`, which may be NULL,
 * says when to retry. */
RATION_API bool ration_breaker_enter(ration_breaker *breaker, ration_time now, ration_breaker_pass *out,
                                     ration_breaker_status *status);
/** The call's result; one of an earlier generation changes nothing. True: the state has changed. */
RATION_API bool ration_breaker_result(ration_breaker *breaker, ration_time now, const ration_breaker_pass *pass,
                                      bool ok);
/** The call ended without a result (cancelled, throttled, refused elsewhere): a probe's permit goes back. */
RATION_API void ration_breaker_leave(ration_breaker *breaker, ration_time now, const ration_breaker_pass *pass);
/** What a health check came to. True: the state has changed. */
RATION_API bool ration_breaker_health(ration_breaker *breaker, ration_time now, bool ok);

/** When time alone does something: a probe, a health check. RATION_NEVER_US: never. */
RATION_API ration_time ration_breaker_next_deadline(const ration_breaker *breaker);
/** Carry out what is due; true: the state has changed, or a health check is due. */
RATION_API bool ration_breaker_advance(ration_breaker *breaker, ration_time now);
RATION_API void ration_breaker_get(ration_breaker *breaker, ration_time now, ration_breaker_status *out);

#ifdef __cplusplus
}
#endif

#endif
