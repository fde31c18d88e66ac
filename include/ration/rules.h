/* SPDX-License-Identifier: MIT */
#ifndef RATION_RULES_H
#define RATION_RULES_H

/*
 * What an engine is told to keep: providers with their limits, accounts, tenants.
 *
 * Plain data. The config loader fills these structs from YAML or JSON; a program may fill them by hand. The engine
 * copies what it keeps, so everything here is borrowed for the call of `ration_engine_new` only. Zeroed members mean
 * the default named beside them. Specification chapters 1, 3 and 8.
 */

#include <ration/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ration_kind {
    RATION_KIND_NONE = 0,
    RATION_KIND_RATE,        /* token bucket */
    RATION_KIND_CONCURRENCY, /* slots */
    RATION_KIND_QUOTA,       /* calendar or rolling window */
    RATION_KIND_SHARE,       /* one ceiling across tenants, idle shares lent */
    RATION_KIND_ADAPTIVE,    /* concurrency that follows what the provider takes (AIMD) */
    RATION_KIND_COUNT,
} ration_kind;

typedef enum ration_counts {
    RATION_COUNTS_UNSET = 0, /* requests; a fault for `share`, which has no default */
    RATION_COUNTS_REQUESTS,  /* a charge is one unit */
    RATION_COUNTS_COST,      /* a charge is the request's cost */
} ration_counts;

typedef enum ration_enforce {
    RATION_ENFORCE_ON = 0,
    RATION_ENFORCE_SHADOW, /* decides and reports, never binds */
} ration_enforce;

typedef enum ration_auth_filter {
    RATION_AUTH_INCLUDE = 0,
    RATION_AUTH_ONLY,
    RATION_AUTH_EXCLUDE,
} ration_auth_filter;

typedef enum ration_period {
    RATION_PERIOD_NONE = 0, /* then `rolling_us` */
    RATION_PERIOD_MINUTE,
    RATION_PERIOD_HOUR,
    RATION_PERIOD_DAY,
    RATION_PERIOD_WEEK,
    RATION_PERIOD_MONTH,
} ration_period;

typedef enum ration_exhausted {
    RATION_EXHAUSTED_REFUSE = 0,
    RATION_EXHAUSTED_WAIT, /* wait for the window's end if the deadline lies behind it */
} ration_exhausted;

/** What a crash may take back of a count. Chapter 3, "Ledger". */
typedef enum ration_durability {
    RATION_DURABILITY_RELAXED = 0, /* what was not saved yet */
    RATION_DURABILITY_STRICT,      /* nothing: a saved mark runs ahead of what is granted; see ration/state.h */
} ration_durability;

typedef enum ration_reset_format {
    RATION_RESET_AUTO = 0,
    RATION_RESET_EPOCH,
    RATION_RESET_EPOCH_MS,
    RATION_RESET_DELTA,
    RATION_RESET_DURATION,
    RATION_RESET_ISO8601,
    RATION_RESET_HTTP_DATE,
} ration_reset_format;

typedef enum ration_penalize {
    RATION_PENALIZE_NARROWEST = 0,
    RATION_PENALIZE_ALL,
} ration_penalize;

typedef enum ration_queue_order {
    RATION_QUEUE_FAIR = 0,
    RATION_QUEUE_FIFO,
} ration_queue_order;

/** `units` micro-units in every `per_us` microseconds. Both > 0. */
typedef struct ration_rate {
    int64_t units;
    int64_t per_us;
} ration_rate;

/** The window of a quota. Calendar when `period` is set, rolling otherwise. */
typedef struct ration_window {
    ration_period period;
    int64_t rolling_us;   /* at least 1 s */
    int32_t reset_minute; /* minutes after local midnight, 0 to 1439; day, week and month only */
    const char *zone;     /* IANA name, one of `ration_rules.zones`; NULL: UTC */
    int32_t week_start;   /* 0 Monday (default) to 6 Sunday */
    int32_t month_day;    /* 1 to 31; 0: 1. The last day where a month is shorter */
} ration_window;

/** Response headers that tell of a quota. NULL: not read. */
typedef struct ration_sync {
    const char *limit_header;
    const char *remaining_header;
    const char *reset_header;
    ration_reset_format reset_format;
    bool standard; /* the IETF RateLimit fields */
} ration_sync;

/** A tenant of a `share` limit. */
typedef struct ration_tenant_share {
    const char *name;
    int64_t weight;    /* 1 to 1 000 000 */
    ration_ratio lend; /* the part of its guarantee that may ever be lent; den 0: the limit's */
} ration_tenant_share;

/** `share`: one ceiling across tenants. Chapter 2. */
typedef struct ration_share_rule {
    int64_t ceiling;     /* micro-units; not with `follows` */
    const char *follows; /* an adaptive limit of the same provider and scope: the ceiling is what it stands at */
    const ration_tenant_share *tenants;
    size_t tenant_count;
    int64_t reclaim_horizon_us; /* > 0: how long a returning tenant can be kept waiting */
    int64_t idle_after_us;      /* how long quiet counts as gone; longer than the horizon */
    const char *unknown_tenant; /* what callers with no known tenant count as; NULL: they are refused */
    ration_ratio lend;          /* of each tenant's guarantee; den 0: all of it */
    bool freeze_wanted;         /* who was refused keeps back what it wants, not its whole guarantee */
    int64_t cooldown_us;        /* after a reclaim the lender lends nothing for that long; 0: off */
} ration_share_rule;

/** A class of an `adaptive` limit. */
typedef struct ration_class_rule {
    const char *name;
    ration_ratio reserved; /* its slice, that other classes leave free; den 0: none */
} ration_class_rule;

/** `adaptive`: AIMD on the number of calls at once. Chapter 5. Limits are whole units. */
typedef struct ration_adaptive_rule {
    int64_t initial_limit;        /* >= 1 */
    int64_t min_limit;            /* 0: 1 */
    int64_t max_limit;            /* 0: 1000; at most 1 000 000 */
    int64_t lease_ttl_us;         /* 0: 30 s; of leases that their holder renews */
    ration_ratio decrease_factor; /* den 0: 1/2 */
    int64_t increase_step;        /* 0: 1 */
    int64_t window_us;            /* 0: 5 s */
    int64_t cooldown_us;          /* 0: 10 s */
    const ration_class_rule *classes;
    size_t class_count; /* at most 64 */
    bool recovery_fast;
    bool pause_on_retry_after;
    int64_t lend_horizon_us; /* 0: reserved slices are never lent */
    int64_t lend_idle_us;    /* longer than the horizon */
} ration_adaptive_rule;

/** One limit of a provider. */
typedef struct ration_limit_rule {
    const char *name;
    ration_kind kind;
    ration_counts counts;
    ration_enforce enforce;
    const char *const *scope; /* "instance" "provider" "account" "target" "credential" "endpoint" "tenant" "var:NAME" */
    size_t scope_count;       /* 0: [instance] */

    /* appliesTo; 0 or NULL: everything. */
    const char *const *endpoints; /* globs on the template */
    size_t endpoint_count;
    const char *const *methods;
    size_t method_count;
    const char *requests_with_var;
    ration_auth_filter auth_requests;

    ration_rate rate; /* rate */
    int64_t burst;    /* rate: micro-units; 0: the rate per second, floored to whole units, at least one */
    int64_t margin;   /* rate: micro-units left in the bucket; RATION_UNSET: chapter 3's default */
    int64_t max;      /* concurrency, quota: micro-units */
    bool max_auto;    /* quota: `max` is the initial maximum, learned from headers */
    ration_window window;
    ration_exhausted when_exhausted;
    ration_durability durability; /* quota */
    int64_t arrival_us;           /* quota: RATION_UNSET: 2 s; 0: off */
    ration_sync sync;
    ration_share_rule share;
    ration_adaptive_rule adaptive;
    int64_t max_keys; /* 0: 1 000 000 */
} ration_limit_rule;

/** What a request without them gets. Zero, NULL and RATION_UNSET: not given. */
typedef struct ration_defaults {
    int64_t cost;
    bool has_cost; /* `cost` is given although it is 0: these requests cost nothing */
    int64_t hold_us;
    ration_priority priority;
    const char *class_name;
    const char *tenant;
    bool auth;
} ration_defaults;

/** A path template such as "/networks/{networkId}/devices". */
typedef struct ration_endpoint_rule {
    const char *path;
    ration_defaults defaults;
} ration_endpoint_rule;

/** How a provider says "too many" and "try again". */
typedef struct ration_error_rule {
    const int *rate_limited; /* statuses; count 0: 429 */
    size_t rate_limited_count;
    const char *body_contains;  /* NULL: any body */
    int64_t default_penalty_us; /* 0: 2 s */
    int64_t max_penalty_us;     /* 0: 24 h */
    ration_penalize penalize;
    const int *transient; /* statuses; count 0: 500 502 503 504 */
    size_t transient_count;
    /* What adaptive limits and breakers make of a status; count 0: rate-limited is throttled, transient a failure. */
    const int *throttled;
    size_t throttled_count;
    const int *failure;
    size_t failure_count;
} ration_error_rule;

typedef enum ration_breaker_strategy {
    RATION_BREAKER_NONE = 0,
    RATION_BREAKER_CONSECUTIVE, /* `threshold` failures in a row */
    RATION_BREAKER_COUNT,       /* of the last `size` results */
    RATION_BREAKER_SAMPLING,    /* of the results of the last `duration_us` */
} ration_breaker_strategy;

typedef enum ration_recovery {
    RATION_RECOVERY_PROBE = 0,    /* half-open: real requests try */
    RATION_RECOVERY_HEALTH_CHECK, /* a request of the gateway's own tries */
} ration_recovery;

/** A circuit breaker. Chapter 5. */
typedef struct ration_breaker_rule {
    ration_breaker_strategy strategy; /* NONE: there is no breaker */
    int64_t threshold;                /* consecutive; 0: 5 */
    ration_ratio ratio;               /* count, sampling; den 0: 1/2 */
    int64_t size;                     /* count; 0: 100; at most 65 536 */
    int64_t duration_us;              /* sampling; 0: 60 s */
    int64_t minimum_calls;            /* count, sampling; 0: 10 */
    int64_t quorum;                   /* processes of a fleet that must have seen a failure; 0: 1; alone it is 1 */
    ration_recovery recovery;
    int64_t probes;           /* probe; 0: 1 */
    const char *check_method; /* health check; NULL: GET */
    const char *check_path;   /* health check: below the account's base URL */
    const int *check_expect;  /* statuses that are healthy; count 0: 200 to 299 */
    size_t check_expect_count;
    int64_t backoff_initial_us;      /* 0: 1 s */
    ration_ratio backoff_multiplier; /* may be above 1; den 0: constant */
    int64_t backoff_max_us;          /* 0: no bound */
    int64_t idle_interval_us;        /* 0: no idle probe */
    int64_t idle_failures;           /* 0: 1 */
    const char *const *scope;        /* as of a limit; count 0: [account] */
    size_t scope_count;
} ration_breaker_rule;

typedef struct ration_provider_rule {
    const char *name;
    const ration_endpoint_rule *endpoints;
    size_t endpoint_count;
    const ration_limit_rule *limits;
    size_t limit_count;
    ration_error_rule errors;
    ration_breaker_rule breaker;
    ration_defaults defaults;
} ration_provider_rule;

typedef struct ration_account_rule {
    const char *name;
    const char *provider;
    const char *target;              /* names another base URL of the provider; NULL: the provider's own */
    const char *credential_key;      /* 16 hex characters, never the secret; NULL: none */
    ration_ratio share;              /* den 0: all of it */
    const ration_limit_rule *limits; /* whole rules that replace the provider's of the same name */
    size_t limit_count;
} ration_account_rule;

typedef struct ration_tenant_rule {
    const char *name;
    int64_t weight; /* 1 to 1 000 000 */
} ration_tenant_rule;

/** A time zone: the bytes of its TZif file. The engine does no I/O, so it cannot read them itself. */
typedef struct ration_zone_data {
    const char *name;
    const void *data;
    size_t size;
} ration_zone_data;

typedef struct ration_rules {
    const char *instance;       /* NULL: "local" */
    ration_ratio retry_reserve; /* den 0: 10 % */
    ration_queue_order queue_order;
    int64_t max_waiters;            /* per provider; 0: 10 000 */
    int64_t max_waiters_per_tenant; /* 0: 10 000 */
    int64_t max_leases;             /* 0: 1 000 000 */
    const ration_tenant_rule *tenants;
    size_t tenant_count;
    const ration_provider_rule *providers;
    size_t provider_count;
    const ration_account_rule *accounts;
    size_t account_count;
    const ration_zone_data *zones;
    size_t zone_count;
    bool enforcer; /* answer as the provider would: whole bursts, no margin, share, reserve, arrival (chapter 3) */
} ration_rules;

#ifdef __cplusplus
}
#endif

#endif
