/* SPDX-License-Identifier: MIT */
#ifndef RATION_CIRCUIT_H
#define RATION_CIRCUIT_H

/*
 * A circuit breaker alone: it cuts callers off from what fails, and lets them back when it answers again. Specification
 * chapter 5. Without a config file, for one process.
 *
 * Sans I/O: every call takes `now`, and first carries out what time alone has brought about. A `now` before one already
 * seen counts as the latter; one that is no instant (RATION_NEVER_US), like a NULL where none is allowed, makes the
 * call do nothing. One thread at a time.
 *
 *     if (ration_circuit_enter(breaker, now, &pass, &status)) {
 *         ... call ...
 *         ration_circuit_result(breaker, now, &pass, ok);
 *     } else {
 *         ... refuse; try again at status.retry_at ...
 *     }
 */

#include <ration/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ration_circuit ration_circuit;

/** What a call was let through under. Keep it until the call's result is known. */
typedef struct ration_circuit_pass {
    uint64_t generation; /* 0: none */
    bool probe;
} ration_circuit_pass;

typedef struct ration_circuit_status {
    ration_circuit_state state;
    uint64_t generation;  /* from 1; grows with every change of state, and when probes that were lost are replaced */
    ration_time retry_at; /* RATION_NEVER_US: calls are let through, or not known */
    bool check_due;       /* run a health check and report it with `health`; true until then, also while it runs */
    const char *cause;    /* of the last change, in a few words; "": none yet. Lives as long as the breaker */
} ration_circuit_status;

/**
 * Make a breaker, closed.
 *
 * The rule's `check_method`, `check_path`, `check_expect` and `scope` say nothing here: who runs the check knows.
 *
 * Ownership  Copies the rule and the allocator (NULL: the C library's). `*out` is the caller's, freed with `free`.
 * Errors     RATION_ERR_CONFIG with `*fault` (may be NULL) naming the key; RATION_ERR_NOMEM; RATION_ERR_INVALID.
 *            `*out` is untouched on error.
 */
RATION_API RATION_MUST_CHECK int ration_circuit_new(const ration_breaker_rule *rule, ration_time now,
                                                    const ration_allocator *allocator, ration_circuit **out,
                                                    ration_fault *fault);
/** NULL is fine. */
RATION_API void ration_circuit_free(ration_circuit *breaker);

/**
 * May a call go now?
 *
 * True: `*out` is its pass, to be ended once, with `result` or `leave`. False: refuse it, and `*out` is untouched.
 * `status` may be NULL; else it tells where the breaker stands, either way.
 *
 * Cost       O(1), no allocation.
 */
RATION_API bool ration_circuit_enter(ration_circuit *breaker, ration_time now, ration_circuit_pass *out,
                                     ration_circuit_status *status);
/**
 * The call's result. One of an earlier generation changes nothing. True: the state is another than before.
 *
 * Saturation is no failure of what is called: end refusals and time-outs of one's own with `leave`.
 *
 * Cost       O(1) amortised. `sampling` allocates when it sees more instants than before; without memory it becomes
 *            coarser.
 */
RATION_API bool ration_circuit_result(ration_circuit *breaker, ration_time now, const ration_circuit_pass *pass,
                                      bool ok);
/** The call ended without a result (cancelled, throttled, refused elsewhere): a probe's permit goes back. */
RATION_API void ration_circuit_leave(ration_circuit *breaker, ration_time now, const ration_circuit_pass *pass);
/**
 * What a health check came to: a success closes an open circuit, a failure keeps it open for the next delay; while it
 * is closed and quiet, failures in a row open it, if the rule has an idle probe. True: the state is another.
 */
RATION_API bool ration_circuit_health(ration_circuit *breaker, ration_time now, bool ok);

/** When time alone does something: a probe, a health check. RATION_NEVER_US: never. */
RATION_API ration_time ration_circuit_next_deadline(const ration_circuit *breaker);
/** Carry out what is due; true: the state is another, or a health check has become due (again). */
RATION_API bool ration_circuit_advance(ration_circuit *breaker, ration_time now);
/** Where it stands at `now`. */
RATION_API void ration_circuit_get(ration_circuit *breaker, ration_time now, ration_circuit_status *out);

#ifdef __cplusplus
}
#endif

#endif
