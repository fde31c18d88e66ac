/* SPDX-License-Identifier: MIT */
#ifndef RATION_BREAKER_H
#define RATION_BREAKER_H

/*
 * A circuit breaker alone: it cuts callers off from what fails, and lets them back when it answers again. Specification
 * chapter 5. Without a config file, for one process.
 *
 * Sans I/O: every call takes `now`, and first carries out what time alone has brought about. A `now` before one already
 * seen counts as the latter; one that is no instant (RATION_NEVER_US), like a NULL where none is allowed, makes the
 * call do nothing. One thread at a time.
 *
 *     if (ration_breaker_enter(breaker, now, &pass, &status)) {
 *         ... call ...
 *         ration_breaker_result(breaker, now, &pass, ok);
 *     } else {
 *         ... refuse; try again at status.retry_at ...
 *     }
 */

#include <ration/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ration_breaker ration_breaker;

/** What a call was let through under. Keep it until the call's result is known. */
typedef struct ration_breaker_pass {
    uint64_t generation; /* 0: none */
    bool probe;
} ration_breaker_pass;

typedef struct ration_breaker_status {
    ration_breaker_state state;
    uint64_t generation;  /* from 1; grows with every change of state, and when probes that were lost are replaced */
    ration_time retry_at; /* RATION_NEVER_US: calls are let through, or not known */
    bool check_due;       /* run a health check and report it with `health`; true until then, also while it runs */
    const char *cause;    /* of the last change, in a few words; "": none yet. Lives as long as the breaker */
} ration_breaker_status;

/**
 * Make a breaker, closed.
 *
 * The rule's `check_method`, `check_path`, `check_expect` and `scope` say nothing here: who runs the check knows.
 *
 * Ownership  Copies the rule and the allocator (NULL: the C library's). `*out` is the caller's, freed with `free`.
 * Errors     RATION_ERR_CONFIG with `*fault` (may be NULL) naming the key; RATION_ERR_NOMEM; RATION_ERR_INVALID.
 *            `*out` is untouched on error.
 */
RATION_API RATION_MUST_CHECK int ration_breaker_new(const ration_breaker_rule *rule, ration_time now,
                                                    const ration_allocator *allocator, ration_breaker **out,
                                                    ration_fault *fault);
/** NULL is fine. */
RATION_API void ration_breaker_free(ration_breaker *breaker);

/**
 * May a call go now?
 *
 * True: `*out` is its pass, to be ended once, with `result` or `leave`. False: refuse it, and `*out` is untouched.
 * `status` may be NULL; else it tells where the breaker stands, either way.
 *
 * Cost       O(1), no allocation.
 */
RATION_API bool ration_breaker_enter(ration_breaker *breaker, ration_time now, ration_breaker_pass *out,
                                     ration_breaker_status *status);
/**
 * The call's result. One of an earlier generation changes nothing. True: the state is another than before.
 *
 * Saturation is no failure of what is called: end refusals and time-outs of one's own with `leave`.
 *
 * Cost       O(1) amortised. `sampling` allocates when it sees more instants than before; without memory it becomes
 *            coarser.
 */
RATION_API bool ration_breaker_result(ration_breaker *breaker, ration_time now, const ration_breaker_pass *pass,
                                      bool ok);
/** The call ended without a result (cancelled, throttled, refused elsewhere): a probe's permit goes back. */
RATION_API void ration_breaker_leave(ration_breaker *breaker, ration_time now, const ration_breaker_pass *pass);
/**
 * What a health check came to: a success closes an open circuit, a failure keeps it open for the next delay; while it
 * is closed and quiet, failures in a row open it, if the rule has an idle probe. True: the state is another.
 */
RATION_API bool ration_breaker_health(ration_breaker *breaker, ration_time now, bool ok);

/** When time alone does something: a probe, a health check. RATION_NEVER_US: never. */
RATION_API ration_time ration_breaker_next_deadline(const ration_breaker *breaker);
/** Carry out what is due; true: the state is another, or a health check has become due (again). */
RATION_API bool ration_breaker_advance(ration_breaker *breaker, ration_time now);
/** Where it stands at `now`. */
RATION_API void ration_breaker_get(ration_breaker *breaker, ration_time now, ration_breaker_status *out);

#ifdef __cplusplus
}
#endif

#endif
