/* SPDX-License-Identifier: MIT */
#ifndef RATION_CEILING_H
#define RATION_CEILING_H

/*
 * One ceiling across tenants: idle shares are lent, and come back within a stated horizon. Specification chapter 2.
 *
 * Usable alone, without an engine and without a config file: nobody waits here, a refusal says when to ask again. The
 * limit kind `share` of the engine keeps the same rules, among other limits, and lets requests wait.
 *
 * Every call takes `now`; a `now` older than the newest one seen counts as the newest. No clock is read, no thread
 * started. One thread at a time.
 */

#include <ration/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ration_ceiling ration_ceiling;

/** Start from RATION_CEILING_OPTIONS_INIT: `counts` has no default, so that nobody gets the other one by accident. */
typedef struct ration_ceiling_options {
    ration_share_rule rule; /* without `follows` */
    ration_counts counts;   /* what a charge is: one unit, or the request's cost */
    ration_time started_at;
    const ration_allocator *allocator; /* NULL: the C library's */
} ration_ceiling_options;

#define RATION_CEILING_OPTIONS_INIT                                                                                    \
    {                                                                                                                  \
        .counts = RATION_COUNTS_UNSET                                                                                  \
    }

/**
 * Make a ceiling.
 *
 * Ownership  Copies what it keeps of `options`; `*out` is the caller's, freed with `ration_ceiling_free`.
 * Errors     RATION_ERR_CONFIG with `*fault` (may be NULL) saying which option is wrong and why; RATION_ERR_NOMEM;
 *            RATION_ERR_INVALID. `*out` is untouched on error.
 * Cost       Linear in the tenants.
 */
RATION_API RATION_MUST_CHECK int ration_ceiling_new(const ration_ceiling_options *options, ration_ceiling **out,
                                                    ration_fault *fault);

/** Free a ceiling with all its leases. NULL is fine. */
RATION_API void ration_ceiling_free(ration_ceiling *ceiling);

/**
 * Ask for `cost`, to be held for `hold_us` (RATION_UNSET: not declared, which never borrows).
 *
 * Granted at once or refused; `out->lease` names a lease until it is released. A refusal has its reason, the time to
 * retry where it is known, and for `guarantee_on_loan` the leases that block (`out->blocking`), in order of their ends.
 * It counts as asking: what the tenant is entitled to is not lent again until it is served or its want lapses.
 * `ration_decision_explain` says all that in English.
 *
 * Units      `cost` in micro-units, times in microseconds.
 * Ownership  Texts and blocking leases in `*out` are borrowed until the next call.
 * Errors     RATION_ERR_INVALID for arguments out of range, which are no asking; RATION_ERR_NOMEM: nothing changed.
 * Cost       O(log tenants) and O(lenders of the loan); a refusal also O(leases that its time rests on).
 */
RATION_API RATION_MUST_CHECK int ration_ceiling_acquire(ration_ceiling *ceiling, ration_time now, ration_text tenant,
                                                        int64_t cost, int64_t hold_us, ration_decision *out);

/** End a lease; what it borrowed goes back to its lenders. RATION_ERR_UNKNOWN: not a lease that is held. */
RATION_API int ration_ceiling_release(ration_ceiling *ceiling, ration_time now, ration_lease lease);

/**
 * Give the tenants other weights, and the ceiling another size: `rule` is checked as by `ration_ceiling_new` and must
 * name the same tenants in the same order. Leases and loans stay; what is held above a guarantee that has shrunk
 * drains, is reported as `draining`, and nothing is granted beyond the ceiling meanwhile.
 */
RATION_API RATION_MUST_CHECK int ration_ceiling_reweight(ration_ceiling *ceiling, ration_time now,
                                                         const ration_share_rule *rule, ration_fault *fault);

/** The ceiling's state: `reporter->counter` is called once, with its tenants and the serials of overrun leases. */
RATION_API int ration_ceiling_stats(ration_ceiling *ceiling, ration_time now, const ration_reporter *reporter);

/** The weighted max-min allocation of what is held and wanted, as `target` of each tenant: `reporter->share`. */
RATION_API int ration_ceiling_allocation(ration_ceiling *ceiling, ration_time now, const ration_reporter *reporter);

/** Shares of granted cost and of granted requests side by side: `reporter->share`. */
RATION_API int ration_ceiling_fairness(ration_ceiling *ceiling, ration_time now, const ration_reporter *reporter);

#ifdef __cplusplus
}
#endif

#endif
