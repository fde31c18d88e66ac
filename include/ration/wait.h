/* SPDX-License-Identifier: MIT */
#ifndef RATION_WAIT_H
#define RATION_WAIT_H

/*
 * A blocking, thread-safe door to one engine, for programs whose threads make the calls.
 *
 * The only part of libration that reads a clock and takes a lock. Each blocked thread sleeps until its own event.
 */

#include <ration/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ration_wait ration_wait;

/** Wrap an engine of its own made from `options`. Errors as `ration_engine_new`. Free with `ration_wait_free`. */
RATION_API RATION_MUST_CHECK int ration_wait_new(const ration_engine_options *options, ration_wait **out,
                                                 ration_fault *fault);

/** Free it. No thread may be inside a call; NULL is fine. */
RATION_API void ration_wait_free(ration_wait *wait);

/**
 * Ask, and block until the request is granted or refused, at most `request->wait_us`.
 *
 * `out->result` is RATION_GRANTED or RATION_REFUSED. `out->limit` lives as long as `wait`; `out->key` is always absent,
 * since the counter that it names belongs to other threads too. `why`, if not NULL, gets the explanation of a refusal,
 * cut to `why_size` bytes with the final NUL.
 *
 * Ownership  Borrows `request` for the call; `request->user` is not used.
 * Errors     as `ration_engine_submit`.
 * Cost       One lock; a blocked thread is woken for its own answer only.
 */
RATION_API RATION_MUST_CHECK int ration_wait_acquire(ration_wait *wait, const ration_request *request,
                                                     ration_decision *out, char *why, size_t why_size);

/** `ration_engine_observe`, from any thread. */
RATION_API int ration_wait_observe(ration_wait *wait, ration_lease lease, const ration_response *response);

/** `ration_engine_renew`, from any thread. */
RATION_API int ration_wait_renew(ration_wait *wait, ration_lease lease);

/** `ration_engine_release`, from any thread; wakes those who can go now. */
RATION_API int ration_wait_release(ration_wait *wait, ration_lease lease, const ration_completion *completion);

/** Refuse every blocked and every later acquire with `draining`. Leases stay until they are released. */
RATION_API void ration_wait_close(ration_wait *wait);

#ifdef __cplusplus
}
#endif

#endif
