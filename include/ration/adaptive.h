/* SPDX-License-Identifier: MIT */
#ifndef RATION_ADAPTIVE_H
#define RATION_ADAPTIVE_H

/*
 * An adaptive limit alone: how many calls at once a provider takes, learned from its "too many". Specification
 * chapter 5. Without a config file, for one process; sans I/O: every call takes `now`, nothing is read or started. A
 * request may wait: then an event follows, as from an engine. One thread at a time.
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
    void *user;
} ration_adaptive_request;

#define RATION_ADAPTIVE_REQUEST_INIT                                                                                   \
    {                                                                                                                  \
        .ttl_us = RATION_UNSET, .hold_us = RATION_UNSET                                                                \
    }

/** Errors: RATION_ERR_CONFIG with `*fault` (may be NULL), RATION_ERR_NOMEM, RATION_ERR_INVALID. */
RATION_API RATION_MUST_CHECK int ration_adaptive_new(const ration_adaptive_rule *rule, ration_time now,
                                                     const ration_allocator *allocator, ration_adaptive **out,
                                                     ration_fault *fault);
RATION_API void ration_adaptive_free(ration_adaptive *adaptive);

/** Ask for one slot: granted, queued (an event follows) or refused (`adaptive_full`, `unknown_class`). */
RATION_API RATION_MUST_CHECK int ration_adaptive_acquire(ration_adaptive *adaptive, ration_time now,
                                                         const ration_adaptive_request *request, ration_decision *out);
/** End a lease. `retry_at`: with `throttled` and `pause_on_retry_after`, nothing is granted before it; else ignored. */
RATION_API int ration_adaptive_release(ration_adaptive *adaptive, ration_time now, ration_lease lease,
                                       ration_outcome outcome, ration_time retry_at);
/** Extend a lease's ttl; do so at 80 % of it. RATION_ERR_UNKNOWN: it is lost. */
RATION_API int ration_adaptive_renew(ration_adaptive *adaptive, ration_time now, ration_lease lease);
/** Withdraw one that waits. */
RATION_API int ration_adaptive_cancel(ration_adaptive *adaptive, ration_time now, ration_lease lease);

/** When `advance` has something to do; RATION_NEVER_US: nothing. */
RATION_API ration_time ration_adaptive_next_deadline(const ration_adaptive *adaptive);
RATION_API int ration_adaptive_advance(ration_adaptive *adaptive, ration_time now);
/** Granted, refused, lost, limit. False: none is left. */
RATION_API bool ration_adaptive_next_event(ration_adaptive *adaptive, ration_event *out);

/** What the limit stands at, in whole units, and how many slots are held. */
RATION_API int64_t ration_adaptive_limit(const ration_adaptive *adaptive);
RATION_API int64_t ration_adaptive_held(const ration_adaptive *adaptive);

#ifdef __cplusplus
}
#endif

#endif
