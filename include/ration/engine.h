/* SPDX-License-Identifier: MIT */
#ifndef RATION_ENGINE_H
#define RATION_ENGINE_H

/*
 * The engine: a pure function of recorded calls.
 *
 * It reads no clock, opens nothing, starts no thread. Every call takes `now`; a `now` older than the newest one seen
 * counts as the newest and is counted. What falls due between two calls happens at its own instant, in order, before
 * the later call: so it does not matter for any decision how often `ration_engine_advance` is called. One thread at a
 * time.
 */

#include <ration/rules.h>
#include <ration/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ration_engine ration_engine;

/** Names one request from its queueing to the end of its lease. A later request never has the same pair. */
typedef struct ration_lease {
    uint32_t index;
    uint32_t generation; /* 0: none */
} ration_lease;

/** Where memory comes from. `release(ctx, NULL)` must do nothing. */
typedef struct ration_allocator {
    void *(*allocate)(void *ctx, size_t size);
    void *(*resize)(void *ctx, void *block, size_t size);
    void (*release)(void *ctx, void *block);
    void *ctx;
} ration_allocator;

typedef struct ration_var {
    ration_text name;
    ration_text value;
} ration_var;

typedef struct ration_header {
    ration_text name;
    ration_text value;
} ration_header;

typedef enum ration_auth {
    RATION_AUTH_UNSET = 0, /* the endpoint's */
    RATION_AUTH_NO,
    RATION_AUTH_YES,
} ration_auth;

/** What is asked. Absent texts and RATION_UNSET mean "not given". Start from RATION_REQUEST_INIT. */
typedef struct ration_request {
    ration_text provider; /* may be absent: the account's */
    ration_text account;
    ration_text target;     /* absent: the account's */
    ration_text credential; /* a key, never a secret; absent: the account's */
    ration_text method;
    ration_text path;     /* matched against the templates; a query is ignored */
    ration_text endpoint; /* the template itself, instead of a path */
    const ration_var *vars;
    size_t var_count;
    ration_text tenant;
    ration_text class_name;
    ration_priority priority;
    ration_auth auth;
    bool retry;
    bool health;     /* a breaker's health check: an open circuit lets it through */
    int64_t cost;    /* micro-units; RATION_UNSET: the endpoint's, else one unit */
    int64_t hold_us; /* RATION_UNSET: the endpoint's, else never ends by declaration */
    int64_t wait_us; /* how long it may wait from `now`; 0: decide at once */
    int64_t ttl_us;  /* RATION_UNSET: never taken back */
    void *user;      /* comes back in events */
} ration_request;

#define RATION_REQUEST_INIT                                                                                            \
    {                                                                                                                  \
        .cost = RATION_UNSET, .hold_us = RATION_UNSET, .wait_us = 0, .ttl_us = RATION_UNSET                            \
    }

typedef enum ration_result {
    RATION_REFUSED = 0,
    RATION_GRANTED,
    RATION_QUEUED,  /* an event will follow */
    RATION_PENDING, /* the answer itself comes as an event (fleet) */
} ration_result;

/** The numbers behind a refusal, in micro-units; RATION_UNSET where they mean nothing. */
typedef struct ration_facts {
    int64_t charge;
    int64_t available;
    int64_t capacity;
    int64_t ahead; /* charges of those who wait before it */
    /* `share` only, where `tenant` is not absent. */
    ration_text tenant;
    int64_t guarantee;
    int64_t own;        /* of it in use by the tenant itself */
    int64_t lent;       /* of it on loan */
    int64_t pool;       /* what idle lenders can give */
    int64_t hold_us;    /* as declared; RATION_UNSET: none */
    int64_t horizon_us; /* the reclaim horizon */
} ration_facts;

/** The answer to a request. Texts and leases are borrowed until the next call that changes the engine. */
typedef struct ration_decision {
    ration_result result;
    ration_lease lease;       /* unless refused */
    uint64_t serial;          /* counts the requests of this engine from 1 */
    ration_time at;           /* the instant of the decision */
    ration_priority priority; /* it was asked with, defaults filled in; UNSET: refused */
    ration_reason reason;     /* why refused; RATION_REASON_NONE otherwise */
    ration_time retry_at;     /* RATION_NEVER_US: unknown, or waiting does not help */
    bool estimate;            /* `retry_at` rests on what others declared */
    const char *limit;        /* the limit that bound, of a queued request too; NULL: none or an account's penalty */
    ration_text key;          /* its scope key */
    const ration_lease *blocking;
    size_t blocking_count;
    ration_facts facts;
} ration_decision;

typedef enum ration_event_type {
    RATION_EVENT_GRANTED = 0, /* a waiter got its lease */
    RATION_EVENT_REFUSED,     /* a waiter will not get one; its handle is dead */
    RATION_EVENT_LOST,        /* a lease was not renewed in time; its handle is dead */
    RATION_EVENT_PENALTY,     /* a penalty began or moved: `decision.limit`, `key`, `retry_at` (its end) */
    RATION_EVENT_LIMIT,       /* an adaptive limit moved: `decision.limit`, `key`; `value` is what it stands at now */
    RATION_EVENT_BREAKER,     /* a breaker changed: `decision.key`, `decision.retry_at`, `breaker`, `cause` */
    RATION_EVENT_HEALTH,      /* a health check is due for `account`, whose answer goes to `ration_engine_health` */
} ration_event_type;

typedef struct ration_event {
    ration_event_type type;
    ration_time at;
    uint64_t serial;
    ration_lease lease;
    void *user;
    int64_t waited_us;        /* granted, refused */
    ration_decision decision; /* refused: why */
    int64_t value;            /* limit: micro-units; health, in a fleet: the check's number */
    int64_t before;           /* limit: what it stood at */
    ration_circuit_state breaker;
    const char *cause;   /* limit, breaker: what brought it about, in a few words */
    ration_text account; /* health */
} ration_event;

/** What came back from the provider. */
typedef struct ration_response {
    int status; /* 0: not known; at most 999 */
    const ration_header *headers;
    size_t header_count;
    ration_text body; /* its beginning, for `errors.rateLimited.bodyContains`; may be absent */
} ration_response;

/** How a call ended. Start from RATION_COMPLETION_INIT. */
typedef struct ration_completion {
    ration_outcome outcome;
    int64_t cost; /* what it really cost; RATION_UNSET: as asked */
} ration_completion;

#define RATION_COMPLETION_INIT                                                                                         \
    {                                                                                                                  \
        .outcome = RATION_OUTCOME_SUCCESS, .cost = RATION_UNSET                                                        \
    }

typedef enum ration_op {
    RATION_OP_SUBMIT = 0,
    RATION_OP_RELEASE,
    RATION_OP_OBSERVE,
    RATION_OP_RENEW,
    RATION_OP_CANCEL,
    RATION_OP_ADVANCE,
    RATION_OP_REPORT,
    RATION_OP_CHECK,
    RATION_OP_HEALTH,
    RATION_OP_LOAD,
    RATION_OP_SAVE, /* only where a limit is strict: nothing else depends on it */
    RATION_OP_KEPT, /* the same */
    RATION_OP_STEP,
    RATION_OP_PAUSE, /* these and the next: ration/operate.h */
    RATION_OP_RESUME,
    RATION_OP_RESET,
    RATION_OP_GRANT,
    RATION_OP_DRAIN,
    RATION_OP_RELOAD,
} ration_op;

/** What `ration_engine_check` asks. */
typedef enum ration_check_mode {
    RATION_CHECK_ACQUIRE = 0, /* what a submit would be answered */
    RATION_CHECK_ENFORCER,    /* what the provider would answer: whole bursts, no margin, share, reserve or waiters */
} ration_check_mode;

typedef enum ration_report_kind {
    RATION_REPORT_STATS = 0,
    RATION_REPORT_LIMITS,
    RATION_REPORT_LEASES,
    RATION_REPORT_FAIRNESS,   /* of share limits: who got what, by cost and by requests */
    RATION_REPORT_ALLOCATION, /* of share limits: weighted max-min of what is asked for */
} ration_report_kind;

/** A counter by its names: one limit at one scope key. */
typedef struct ration_counter_name {
    ration_text provider; /* absent: the only one that has a limit of that name */
    ration_text limit;
    ration_text key;
} ration_counter_name;

/** One call at the engine's door, as a recorder sees it. Everything is borrowed for the callback. */
typedef struct ration_call {
    ration_op op;
    ration_time at;  /* never decreasing */
    uint64_t serial; /* of the request the call is about; 0: a handle that is not held */
    const ration_request *request;
    const ration_response *response;
    const ration_completion *completion;
    ration_report_kind report;
    ration_check_mode check;
    ration_text account;                /* health */
    bool ok;                            /* health */
    const struct ration_state *state;   /* load; ration/state.h */
    bool all;                           /* save */
    const ration_counter_name *counter; /* pause, resume, reset, grant */
    int64_t units;                      /* grant */
    int64_t by_us;                      /* step */
    const ration_rules *rules;          /* reload */
} ration_call;

/**
 * Sees every call before it is carried out (`call`), its answer (`answer`: the error code of the call and, for a
 * submit, the decision) and every event as it happens (`event`). A recording can miss nothing. Callbacks must not call
 * the engine.
 */
typedef struct ration_sink {
    void *ctx;
    void (*call)(void *ctx, const ration_call *call);
    void (*answer)(void *ctx, const ration_call *call, int err, const ration_decision *decision);
    void (*event)(void *ctx, const ration_event *event);
} ration_sink;

/** A fault in rules that a program filled in. */
typedef struct ration_fault {
    char path[160]; /* such as "providers[0].limits[2].window.zone" */
    char text[160];
} ration_fault;

typedef struct ration_engine_options {
    const ration_rules *rules;
    const ration_allocator *allocator; /* NULL: the C library's */
    const ration_sink *sink;           /* NULL: none; copied */
    /* Remember what changes, for `ration_engine_save` (ration/state.h). With a strict quota it does anyway. */
    bool keeps;
    /*
     * Where the generations of leases begin; 0: at 1. A program whose leases have names outside begins elsewhere in
     * each run, so that a name of an earlier run means no lease of this one. No decision depends on it.
     */
    uint32_t first_generation;
} ration_engine_options;

/**
 * Make an engine from rules.
 *
 * Ownership  Copies what it keeps of `options`; `*out` is the caller's, freed with `ration_engine_free`.
 * Errors     RATION_ERR_CONFIG with `*fault` filled (may be NULL) naming the first bad rule; RATION_ERR_NOMEM;
 *            RATION_ERR_INVALID. `*out` is untouched on error.
 * Cost       Linear in the rules.
 */
RATION_API RATION_MUST_CHECK int ration_engine_new(const ration_engine_options *options, ration_time now,
                                                   ration_engine **out, ration_fault *fault);

/** Free an engine with all its leases and waiters. NULL is fine. */
RATION_API void ration_engine_free(ration_engine *engine);

/**
 * Ask for a lease: granted, queued (an event follows), or refused with the reason. Chapter 1, "Admission".
 *
 * A refusal spends nothing anywhere. A granted or queued request is named by `out->lease` until it is released,
 * cancelled, refused or lost.
 *
 * Time       A `now` before one already seen counts as the latter.
 * Errors     RATION_ERR_INVALID for a request outside its ranges; RATION_ERR_NOMEM, RATION_ERR_FULL: nothing changed.
 * Cost       O(limits of the request · log waiters), no allocation once its counters exist, but where the timeline of a
 *            quota has more to tell than ever before; without memory for that it tells less.
 */
RATION_API RATION_MUST_CHECK int ration_engine_submit(ration_engine *engine, ration_time now,
                                                      const ration_request *request, ration_decision *out);

/**
 * What would be answered if this were asked now? Takes nothing, and nobody waits for it. Chapter 3, "Enforcer".
 *
 * `out->result` is RATION_GRANTED, RATION_QUEUED (a submit would wait) or RATION_REFUSED; `out->lease` names nothing.
 * In mode RATION_CHECK_ENFORCER the request does not wait; a rolling window still counts its extra bucket.
 *
 * Errors     as for submit.
 * Cost       as for submit.
 */
RATION_API RATION_MUST_CHECK int ration_engine_check(ration_engine *engine, ration_time now,
                                                     const ration_request *request, ration_check_mode mode,
                                                     ration_decision *out);

/**
 * End a lease: slots go back, the actual cost is settled, the outcome feeds what learns from it.
 *
 * Errors     RATION_ERR_UNKNOWN if the handle is not that of a granted lease (released, lost, refused, still waiting):
 *            nothing is changed.
 */
RATION_API int ration_engine_release(ration_engine *engine, ration_time now, ration_lease lease,
                                     const ration_completion *completion);

/** Tell what the provider answered to a lease's call: headers teach quotas, a 429 penalizes. Errors as for release. */
RATION_API int ration_engine_observe(ration_engine *engine, ration_time now, ration_lease lease,
                                     const ration_response *response);

/**
 * Extend a lease's ttl from `now`; nothing for a lease without one. At its expiry it is already lost.
 * Errors as release.
 */
RATION_API int ration_engine_renew(ration_engine *engine, ration_time now, ration_lease lease);

/** Withdraw a waiter; no event follows. RATION_ERR_UNKNOWN if it does not wait. */
RATION_API int ration_engine_cancel(ration_engine *engine, ration_time now, ration_lease lease);

/**
 * What a health check of an account's breaker came to: a success closes an open circuit, a failure keeps it open for
 * the next delay; while it is closed and quiet, failures in a row open it. Chapter 5.
 *
 * Errors     RATION_ERR_UNKNOWN for an account that does not exist or has no breaker: nothing is changed.
 */
RATION_API int ration_engine_health(ration_engine *engine, ration_time now, ration_text account, bool ok);

/** When `ration_engine_advance` has something to do next; RATION_NEVER_US: nothing by time alone. */
RATION_API ration_time ration_engine_next_deadline(const ration_engine *engine);

/** Carry out what is due up to `now`: leases lost, grants, deadlines. Events follow from `ration_engine_next_event`. */
RATION_API int ration_engine_advance(ration_engine *engine, ration_time now);

/**
 * The clock that `now` comes from has stepped: the last `by_us` microseconds before `now` have not passed.
 *
 * Buckets earn nothing for them, since providers' clocks did not step. All else goes by the instants it was told:
 * windows, penalties, deadlines and times to live that end in between are due at `now`. A clock that never steps
 * forward needs no such call; steps backward cannot be told, `now` never falls.
 *
 * Errors     RATION_ERR_INVALID: `by_us` is not above 0.
 * Cost       Linear in the counters of rate limits.
 */
RATION_API int ration_engine_step(ration_engine *engine, ration_time now, int64_t by_us);

/** Take the next event, in order of time. False: none is left. Its texts are borrowed until the next call. */
RATION_API bool ration_engine_next_event(ration_engine *engine, ration_event *out);

/**
 * Explain a refusal in plain English, with its numbers; "" for anything else.
 *
 * Writes at most `size` bytes with a final NUL and returns the length written without it.
 */
RATION_API size_t ration_decision_explain(const ration_decision *decision, char *buffer, size_t size);

/** Consumption by time: `units[i]` was spent in the `width_us` from `start` + i * `width_us`. */
typedef struct ration_timeline {
    ration_time start;
    int64_t width_us;
    const int64_t *units;
    size_t count; /* 0: nothing is known */
} ration_timeline;

/** One counter in a report. Micro-units and microseconds. */
typedef struct ration_counter_report {
    const char *provider;
    const char *limit;
    ration_kind kind;
    ration_enforce enforce;
    ration_text key;
    bool paused;       /* by an operator */
    bool asleep;       /* as it was kept: nobody has asked for it since the engine began */
    uint64_t waiting;  /* that have a place here */
    uint64_t shadowed; /* requests that it would have refused or delayed, were it not a shadow limit */
    int64_t available; /* rate: rounded down, negative in debt */
    int64_t unit_us;   /* rate: in so long one unit comes back, rounded up */
    int64_t max;       /* concurrency, quota, share: the ceiling; rate: the burst */
    int64_t held;      /* concurrency, share, adaptive */
    int64_t current;   /* adaptive: what the limit stands at, in whole units times 1 000 000 */
    int64_t draining;  /* share: held above guarantees that have shrunk */
    const struct ration_class_report *classes; /* adaptive, in order of declaration; borrowed for the callback */
    size_t class_count;
    const struct ration_tenant_report *tenants; /* share, in order of declaration; borrowed for the callback */
    size_t tenant_count;
    const uint64_t *overrun; /* share: serials of leases past their declared end, in order of their ends */
    size_t overrun_count;
    int64_t usable, used, external, remaining; /* quota */
    int64_t reserve;                           /* quota; rate: what a grant must leave, its margin */
    const char *zone;                          /* quota: the time zone of its calendar window; NULL: UTC, or it rolls */
    uint64_t disagreement; /* quota: the last of `totals.disagreements` that is its own, by number; 0: there was none */
    int64_t extra;         /* quota: of what is usable, what an operator granted for this window */
    bool has_window;
    ration_time window_start, window_end;
    int64_t rolling_us; /* quota: the length of a rolling window; 0: a calendar window */
    bool strict;        /* quota: `mark` means something */
    int64_t mark;       /* quota: no more than that is granted before a save has been kept */
    /* quota, if the reporter wants timelines: this window and the one before, up to now; borrowed for the callback */
    ration_timeline timeline;
} ration_counter_report;

/** A class of an adaptive limit. Micro-units. */
typedef struct ration_class_report {
    ration_text name;
    int64_t reserved;
    int64_t held;
} ration_class_report;

/** One tenant of a share limit. Micro-units. */
typedef struct ration_tenant_report {
    ration_text name;
    int64_t guarantee;
    int64_t held;     /* all units of its leases */
    int64_t own;      /* of its guarantee, in use by itself */
    int64_t lent;     /* of its guarantee, on loan */
    int64_t borrowed; /* of others' guarantees */
    int64_t want;     /* the largest refused charge outstanding */
    int64_t target;   /* its part of the weighted max-min allocation */
    bool idle;
    uint64_t waiting;
    int64_t deficit_unit_ms; /* whole unit-milliseconds, and ... */
    int64_t deficit_rest;    /* ... thousand-millionths of one */
    uint64_t reclaims;
    int64_t worst_reclaim_us;
    uint64_t granted;
    int64_t granted_cost;
    uint64_t refused[RATION_REASON_COUNT]; /* that named this limit, by their final reason */
    /* Fairness: millionths, rounded to the nearest. Skew: the share against the configured one. */
    int64_t configured_share, cost_share, request_share, cost_skew, request_skew;
} ration_tenant_report;

/** A share limit's fairness or allocation. */
typedef struct ration_share_report {
    const char *provider;
    const char *limit;
    ration_text key;
    const ration_tenant_report *tenants;
    size_t tenant_count;
    bool units_disagree; /* for some tenant the two shares differ by more than one percentage point */
} ration_share_report;

typedef struct ration_breaker_report {
    const char *provider;
    ration_text key;
    ration_circuit_state state;
    uint64_t generation;
    ration_time retry_at; /* the next probe; RATION_NEVER_US: closed, or not known */
    const char *cause;    /* of the last change, in a few words; "": there was none */
    bool asleep;          /* as it was kept: nobody has asked for it since the engine began */
} ration_breaker_report;

typedef struct ration_penalty_report {
    ration_text key;
    const char *limit; /* NULL: an account's */
    ration_time until;
    uint32_t events;
} ration_penalty_report;

/** How often a provider has said "too many", by the limit that was taken to be meant: the narrowest. */
typedef struct ration_throttled_report {
    const char *provider;
    const char *limit; /* NULL: no limit applied to these calls */
    uint64_t count;    /* since the engine was made, or the limit came with a reload */
} ration_throttled_report;

/** One lease or waiter. */
typedef struct ration_lease_report {
    uint64_t serial;
    ration_lease lease;
    bool waiting;
    ration_text provider, account, tenant, class_name;
    ration_priority priority;
    int64_t cost;
    ration_time since;     /* granted, or began to wait */
    ration_time ends_at;   /* the declared end, or a waiter's deadline; RATION_NEVER_US: none */
    ration_time ttl_until; /* RATION_NEVER_US: none */
    bool overrun;
} ration_lease_report;

/** What a provider tells in the fields of a response, each of which can be unusable. */
typedef enum ration_told {
    RATION_TOLD_LIMIT = 0,
    RATION_TOLD_REMAINING,
    RATION_TOLD_RESET,
    RATION_TOLD_RETRY_AFTER,
    RATION_TOLD_COUNT,
} ration_told;

/** Totals since the engine was made. */
typedef struct ration_totals {
    uint64_t submitted, granted, queued, refused, released, lost, cancelled;
    uint64_t refusals[RATION_REASON_COUNT];
    uint64_t rate_limited;                     /* 429s that reached the engine */
    uint64_t unexpected_429;                   /* of those, where no counter would have refused */
    uint64_t shadowed;                         /* requests that a shadow limit would have refused or delayed */
    uint64_t sync_rejected[RATION_TOLD_COUNT]; /* header values ignored */
    uint64_t maxima;        /* times that a provider told another maximum of a quota than was known */
    uint64_t disagreements; /* windows of quotas in which a provider told another maximum than the declared one */
    uint64_t clock_went_back;
    uint64_t held, waiting; /* now */
    uint64_t counters;      /* now */
    uint64_t asleep;        /* now: kept ones that nobody has asked for yet; of a limit with others of accounts, each */
    uint64_t events_pending;
} ration_totals;

/** Callbacks of a report; any may be NULL. Order: declaration, then key; leases by serial. */
typedef struct ration_reporter {
    void *ctx;
    uint32_t kinds;         /* of limits whose counters are wanted, a bit (1u << kind) for each; 0: all */
    ration_text limit, key; /* only the counters of limits of this name, at this key, and their leases; absent: all */
    size_t most;            /* so many counters at most, those that matter most, see below; 0: all */
    bool timelines;         /* of quotas; each costs its length */
    bool asleep;            /* also what was kept and nobody has asked for yet; without `kinds` and `most` only */
    void (*counter)(void *ctx, const ration_counter_report *report);
    void (*penalty)(void *ctx, const ration_penalty_report *report);
    void (*lease)(void *ctx, const ration_lease_report *report);
    void (*breaker)(void *ctx, const ration_breaker_report *report);
    void (*share)(void *ctx, const ration_share_report *report);
    void (*throttled)(void *ctx, const ration_throttled_report *report);
} ration_reporter;

/**
 * Report the engine's state at `now`. STATS and LIMITS call `counter`, `penalty` and `breaker`, LEASES calls `lease`
 * (leases and waiters), FAIRNESS and ALLOCATION call `share`. STATS reports the breakers that are not closed, LIMITS
 * all of them. Callbacks must not call the engine. Errors: RATION_ERR_NOMEM. Cost: linear, sorted; with `kinds`, linear
 * in the counters of these kinds. Where `kinds`, `limit` or `key` choose counters, penalties are told of these alone;
 * those of accounts only without `limit` and `key`. LIMITS and STATS call `throttled` for each limit of the rules, and
 * once for each provider.
 *
 * With `most` the counters of LIMITS and STATS are those that matter most, in the same order: paused ones and those
 * with a penalty before those with waiters, of these the ones with more of them first, then the fullest; penalties are
 * told of these alone. Memory is then for `most` of them, and only these are sorted.
 */
RATION_API int ration_engine_report(ration_engine *engine, ration_time now, ration_report_kind kind,
                                    const ration_reporter *reporter);

/** Totals; O(1). */
RATION_API void ration_engine_totals(const ration_engine *engine, ration_totals *out);

#ifdef __cplusplus
}
#endif

#endif
