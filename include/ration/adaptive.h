/* SPDX-License-Identifier: MIT */
#ifndef RATION_ADAPTIVE_H
#define RATION_ADAPTIVE_H

/*
 * An adaptive limit alone: how many calls at once a provider takes, learned from its "too many". Specification chapter
 * 5. Without a config file, for one process.
 *
 * Sans I/O: every call takes `now`, nothing is read or started. A `now` before one already seen counts as the latter. A
 * request may wait: then an event follows, as from an engine, when it is granted or refused. One thread at a time.
 *
 *     ration_adaptive_acquire(adaptive, now, &request, &decision)
 *     ... granted: call, and renew at 80 % of the ttl while it lasts ...
 *     ration_adaptive_release(adaptive, now, decision.lease, outcome, retry_at)
 */

#include <ration/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ration_adaptive ration_adaptive;

/** What to ask for. Start from RATION_ADAPTIVE_REQUEST_INIT. */
typedef struct ration_adaptive_request {
    ration_text class_name; /* absent: none */
    ration_priority priority;
    int64_t wait_us; /* 0: decide at once */
    int64_t ttl_us;  /* RATION_UNSET: the rule's `lease_ttl_us`; RATION_FOREVER_US: never taken back */
    int64_t hold_us; /* RATION_UNSET: not declared; only `lend` looks at it */
    void *user;      /* comes back in events */
} ration_adaptive_request;

#define RATION_ADAPTIVE_REQUEST_INIT                                                                                   \
    {                                                                                                                  \
        .ttl_us = RATION_UNSET, .hold_us = RATION_UNSET                                                                \
    }

/**
 * Make a limit.
 *
 * Ownership  Copies the rule and the allocator (NULL: the C library's). `*out` is the caller's, freed with `free`.
 * Errors     RATION_ERR_CONFIG with `*fault` (may be NULL) naming the key; RATION_ERR_NOMEM; RATION_ERR_INVALID.
 *            `*out` is untouched on error.
 */
RATION_API RATION_MUST_CHECK int ration_adaptive_new(const ration_adaptive_rule *rule, ration_time now,
                                                     const ration_allocator *allocator, ration_adaptive **out,
                                                     ration_fault *fault);
/** With all its leases and waiters. NULL is fine. */
RATION_API void ration_adaptive_free(ration_adaptive *adaptive);

/**
 * Ask for one slot: granted, queued (an event follows) or refused: `adaptive_full`, `unknown_class`; `penalized` during
 * a pause; `cost_exceeds_limit` for a class that no limit leaves anything; `queue_full` above 10 000 waiters.
 *
 * A granted or queued request is named by `out->lease` until it is released, cancelled, refused or lost.
 *
 * Errors     RATION_ERR_INVALID for a request outside its ranges (a ttl of 0 is); RATION_ERR_NOMEM, RATION_ERR_FULL:
 *            nothing changed.
 * Cost       O(classes + log waiters), no allocation after warm-up.
 */
RATION_API RATION_MUST_CHECK int ration_adaptive_acquire(ration_adaptive *adaptive, ration_time now,
                                                         const ration_adaptive_request *request, ration_decision *out);
/**
 * End a lease; its outcome is what the limit learns from.
 *
 * `retry_at` is when the provider said that one may come back, RATION_NEVER_US if it did not. With the outcome
 * `throttled` and the rule's `pause_on_retry_after` nothing is granted before it; else it is ignored.
 *
 * Errors     RATION_ERR_UNKNOWN if the handle is not that of a granted lease: nothing is changed.
 */
RATION_API int ration_adaptive_release(ration_adaptive *adaptive, ration_time now, ration_lease lease,
                                       ration_outcome outcome, ration_time retry_at);
/** Extend a lease's ttl from `now`; do so at 80 % of it. RATION_ERR_UNKNOWN: it is lost, or was never granted. */
RATION_API int ration_adaptive_renew(ration_adaptive *adaptive, ration_time now, ration_lease lease);
/** Withdraw one that waits; no event follows. RATION_ERR_UNKNOWN if it does not wait. */
RATION_API int ration_adaptive_cancel(ration_adaptive *adaptive, ration_time now, ration_lease lease);

/** When `advance` has something to do; RATION_NEVER_US: nothing. */
RATION_API ration_time ration_adaptive_next_deadline(const ration_adaptive *adaptive);
/** Carry out what is due up to `now`: leases lost, grants, deadlines. */
RATION_API int ration_adaptive_advance(ration_adaptive *adaptive, ration_time now);
/**
 * The next event: granted, refused, lost, limit (it moved to `value` micro-units), penalty (a pause of more than an
 * hour began). False: none is left. Its texts are borrowed until the next call.
 */
RATION_API bool ration_adaptive_next_event(ration_adaptive *adaptive, ration_event *out);

/** What the limit stands at, in whole units. */
RATION_API int64_t ration_adaptive_limit(const ration_adaptive *adaptive);
/** How many slots are held; after a decrease that may be more than the limit. */
RATION_API int64_t ration_adaptive_held(const ration_adaptive *adaptive);

#ifdef __cplusplus
}
#endif

#endif
