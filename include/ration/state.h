/* SPDX-License-Identifier: MIT */
#ifndef RATION_STATE_H
#define RATION_STATE_H

/*
 * What of an engine outlives a process, so that a restart is no amnesty: what windows have spent, penalties, where
 * adaptive limits stand, circuits that are not closed, buckets that are slow to refill. Specification chapter 3,
 * "Ledger". The engine does no I/O: it gives records out and takes them back; where they are kept is somebody else's.
 */

#include <ration/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ration_record_type {
    RATION_RECORD_QUOTA = 0,
    RATION_RECORD_BUCKET,
    RATION_RECORD_ADAPTIVE,
    RATION_RECORD_PENALTY, /* of a limit's scope key; of an account, where there is no limit */
    RATION_RECORD_BREAKER,
    RATION_RECORD_PAUSE, /* of a limit's scope key: whether an operator has paused it */
} ration_record_type;

/** Charges of a quota, granted at or before an instant and after that of the part before. Micro-units. */
typedef struct ration_part {
    ration_time last;
    int64_t units;
} ration_part;

/** A quota's window, or what of a rolling one still counts. Micro-units and microseconds. */
typedef struct ration_quota_record {
    ration_time window_start, window_end; /* calendar */
    int64_t rolling_us;                   /* the length of a rolling one; 0: calendar, or not told */
    int64_t offset_us;                    /* learned: how far the window's end is from the calendar's */
    int64_t used;
    int64_t carried;   /* of the window before, what may count in this one too */
    int64_t in_flight; /* of both, what the provider may not have counted yet */
    bool has_remaining;
    int64_t remaining;           /* what the provider said, less what it may not have counted */
    ration_time remaining_until; /* RATION_NEVER_US: to the window's end */
    int64_t max;                 /* as learned; RATION_UNSET: as declared */
    int64_t external;
    bool exhausted; /* a 429 said so */
    ration_time exhausted_until;
    bool dipped; /* a critical request has gone into the reserve */
    ration_time dipped_at;
    bool moved; /* a header has brought a window's end about */
    ration_time moved_at;
    int64_t mark; /* strict: what `used` counts as after an unclean stop; RATION_UNSET: relaxed */
    const ration_part *parts;
    size_t part_count;
    const ration_part *timeline; /* use by bucket, the oldest first, of this window and the one before; for reports */
    size_t timeline_count;
} ration_quota_record;

typedef struct ration_adaptive_record {
    int64_t limit; /* whole units */
    ration_time grown_at;
    bool throttled, decreased; /* the two instants mean something */
    ration_time throttled_at, decreased_at;
    int64_t stride, climb_to;
} ration_adaptive_record;

typedef struct ration_penalty_record {
    ration_time began, until;
    uint32_t doublings, events;
} ration_penalty_record;

typedef struct ration_breaker_record {
    ration_circuit_state state;
    uint64_t generation;
    ration_time until; /* open: the next probe or check */
    int64_t delay_us;
} ration_breaker_record;

/** One thing. `u` by `type`. Texts and parts are borrowed for the call. */
typedef struct ration_record {
    ration_record_type type;
    ration_text provider;
    ration_text limit; /* absent: a breaker, or an account's penalty */
    ration_text key;   /* the scope key, or the account */
    ration_time at;    /* when this was so */
    union {
        ration_quota_record quota;
        int64_t available; /* bucket: micro-units, negative in debt */
        ration_adaptive_record adaptive;
        ration_penalty_record penalty;
        ration_breaker_record breaker;
        bool paused;
    } u;
} ration_record;

/** All that was kept. */
typedef struct ration_state {
    const ration_record *records;
    size_t count;
    /* The last process did not stop in order: a bucket starts empty or in its debt, a strict quota with its
     * mark used, or one block of it where there is no record of its window. */
    bool unclean;
    /* When the last process began that found an unclean stop, if that is not the one that begins now; 0: none did. What
     * it has not saved anew since, and windows that reach back before it, are for strict quotas as if it were this one.
     */
    ration_time unclean_at;
} ration_state;

/**
 * Give the engine what was kept, before its first request. What belongs to a key waits until somebody asks for it.
 *
 * Time       Everything goes on as if the engine had been idle since each record's `at`, which may not be after `now`.
 * Ownership  Copies what it keeps.
 * Errors     RATION_ERR_INVALID for a record out of its ranges, or for an engine that has had requests: nothing is
 *            changed. RATION_ERR_NOMEM: some records may have been taken; the engine is of no use any more.
 *            `*unknown` (may be NULL) counts records whose provider, limit or account the rules do not have; these are
 *            left out.
 * Cost       Linear.
 */
RATION_API RATION_MUST_CHECK int ration_engine_load(ration_engine *engine, ration_time now, const ration_state *state,
                                                    size_t *unknown);

/**
 * Give out what has changed since the last call, or everything. Only for an engine made with `keeps`, or one with a
 * strict quota, which keeps by itself.
 *
 * Errors     RATION_ERR_NOMEM: nothing has been given out.
 * Cost       Linear in what has changed.
 */
RATION_API RATION_MUST_CHECK int ration_engine_save(ration_engine *engine, ration_time now, bool all, void *ctx,
                                                    void (*record)(void *ctx, const ration_record *record));

/**
 * All that has been given out by `ration_engine_save` so far is durable. Grants of strict quotas may go on up to the
 * marks that were given out; those who waited for that are granted now, in the events that follow.
 *
 * Errors     RATION_ERR_INVALID for an instant out of range. It needs no memory.
 * Cost       Linear in the strict quotas that were given out since the last call.
 */
RATION_API RATION_MUST_CHECK int ration_engine_kept(ration_engine *engine, ration_time now);

/** What strict quotas want of whoever saves. */
typedef enum ration_need {
    RATION_NEED_NOTHING = 0,
    RATION_NEED_SAVE,     /* half of a block is used: save soon, or requests will wait */
    RATION_NEED_SAVE_NOW, /* requests wait for a mark, or settlements went above one: nobody should be told of them
                             before the next `ration_engine_kept` */
} ration_need;

/**
 * What is needed now. A quota that was given out and waits for `ration_engine_kept` needs nothing, unless a settlement
 * is past the mark that is durable, or a request waits for one past the mark that was given out. O(1).
 */
RATION_API ration_need ration_engine_need(const ration_engine *engine);

#ifdef __cplusplus
}
#endif

#endif
