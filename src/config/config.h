/* SPDX-License-Identifier: MIT */
#ifndef RN_CONFIG_CONFIG_H
#define RN_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/config.h>

#include "base/arena.h"
#include "base/pointer.h"
#include "base/text.h"

/*
 * What the config says beyond the rules: to the gateway, the simulator and the recorder. All of it is borrowed from the
 * `ration_config` and lives as long. Texts are NUL-terminated.
 */

/* Where to listen. `path` is a Unix socket's; `host` is NULL then. */
typedef struct rn_address {
    const char *text; /* as written, for messages */
    const char *host; /* a numeric address or "localhost", without brackets */
    const char *path;
    uint16_t port; /* 0: any free one */
    bool local;    /* loopback or a Unix socket */
} rn_address;

/* An http or https URL without user, query and fragment. */
typedef struct rn_url {
    const char *text;   /* as written, for messages */
    const char *host;   /* lower case, an IPv6 address without its brackets */
    const char *prefix; /* of the path: "" or "/api/v1", never with a final slash */
    uint16_t port;      /* always set: 80 and 443 by default */
    bool tls;
    bool given; /* false: there is none, `text`, `host` and `prefix` are NULL */
} rn_url;

/* The field that authenticates a call. `value` is a secret: never print, log or report it. */
typedef struct rn_credential {
    const char *header; /* NULL: none is added */
    const char *value;
    const char *key; /* 16 hex characters; NULL: none */
} rn_credential;

/* What is declared for a request that does not say how long it keeps its lease. */
typedef struct rn_hold_default {
    bool hold_auto;        /* learn it from the calls that were; the rules have no hold then */
    int64_t hold_floor_us; /* never declare less */
} rn_hold_default;

/* Where a call's cost is told. A request's own `Ration-Cost` comes before all of it. Chapter 7, "Cost". */
typedef struct rn_cost_rule {
    const char *estimate_header;        /* a field of the request; NULL: none */
    const rn_pointer *estimate_pointer; /* to a number in the request's body; NULL: none */
    int64_t estimate_default;           /* where there is no such number; RATION_UNSET: the defaults' cost, else 1 */
    int64_t estimate_body;              /* bodies up to so many bytes are looked at */
    const char *actual_header;          /* a field of the response; NULL: none */
    const rn_pointer *actual_pointer;   /* to a number in the response's body or events; NULL: none */
} rn_cost_rule;

#define RN_RETRIES_MAX 10 /* of one call */

typedef struct rn_provider {
    const char *name;
    rn_hold_default hold; /* of a path without a template */
    rn_cost_rule cost;    /* of a path without a template */
    const rn_cost_rule
        *endpoint_costs; /* of each of `ration_provider_rule.endpoints`, the provider's where it is silent */
    const rn_hold_default
        *endpoints; /* of each of `ration_provider_rule.endpoints`, the provider's where it is silent */
    rn_url base_url;
    int64_t connect_us;              /* time-outs of a call upstream */
    int64_t first_byte_us;           /* from the request's end to the response's first byte */
    int64_t idle_us;                 /* between two pieces of a body */
    int64_t retries;                 /* of a call that failed, of a path without a template */
    int64_t replay_body;             /* bodies of requests up to so many bytes are kept for them */
    const int64_t *endpoint_retries; /* of each of `ration_provider_rule.endpoints`; RATION_UNSET: not given */
    const char *ca;    /* path of a file of PEM certificates to trust instead of the system's; NULL: the system's */
    const char *proxy; /* a URL, may hold a secret; NULL: none, whatever the environment says */
} rn_provider;

typedef struct rn_account {
    const char *name;
    const char *target; /* NULL: the provider's own base URL */
    uint32_t provider;  /* its index, in `ration_rules.providers` and in rn_config_provider */
    rn_url base_url;    /* the target's, else the provider's */
    rn_credential credential;
    int64_t retries; /* RATION_UNSET: not given */
} rn_account;

/* Where something stands in the files of a config. */
typedef struct rn_place {
    const char *file;
    uint32_t line, column; /* from 1 */
} rn_place;

/* A job that somebody runs again and again. Chapter 4. */
typedef struct rn_job {
    const char *name;
    rn_place place;
    uint32_t account;    /* its index */
    const char *method;  /* of `endpoint`, "GET /a/{b}"; GET, where that is a bare path */
    const char *path;    /* its path with `vars` put in; what still stands in braces only children know */
    int64_t interval_us; /* as desired */
    ration_priority priority;
    const char *tenant;       /* NULL: none */
    const char *fan_out;      /* names an inventory; NULL: the job has no children */
    int64_t fan_out_estimate; /* until the inventory is known; at least 1 */
    int64_t pages_per_run;    /* requests of a run until runs are known, in millionths; at least one */
    int64_t cost;             /* of a request, micro-units; RATION_UNSET: the endpoint's, else one unit */
    const ration_var *vars;   /* values of variables of the path that are the same for all children */
    size_t var_count;
} rn_job;

typedef enum rn_log_format { RN_LOG_LOGFMT = 0, RN_LOG_JSON } rn_log_format;
typedef enum rn_log_level { RN_LOG_INFO = 0, RN_LOG_WARN, RN_LOG_ERROR } rn_log_level;

/* Which names a client may claim. */
typedef struct rn_claimable {
    const char *const *names;
    size_t count;
    bool any; /* no list is given */
} rn_claimable;

/* Whoever shows its token, and what it may claim. Chapter 7. */
typedef struct rn_client {
    const char *name;
    const char *token; /* a secret */
    rn_claimable accounts;
    rn_claimable tenants;
    rn_claimable classes;
    ration_priority priority; /* the highest */
    bool operates;            /* may make operator calls */
    bool views;               /* may look at what is not its own */
} rn_client;

typedef enum rn_on_unavailable { RN_UNAVAILABLE_REFUSE = 0 } rn_on_unavailable;

/* Limits shared through a Redis. Chapter 6. */
typedef struct rn_fleet_settings {
    const char *redis; /* its URL; NULL: there is no fleet, and all else means nothing */
    const char *name;
    const char *user_env; /* names of environment variables; NULL: none */
    const char *password_env;
    const char *ca; /* path of a file of PEM certificates to trust instead of the system's; NULL: the system's */
    int64_t connect_us, command_us; /* time-outs */
    int64_t backoff_us;             /* the longest pause between two attempts to connect */
    rn_on_unavailable on_unavailable;
    int64_t local_limit; /* leases that are granted while it is away; RATION_UNSET: none */
    int64_t lease_ttl_us, waiter_ttl_us;
    int64_t replicas; /* that must have a grant before it is given out */
    int64_t prefetch; /* units of rate and quota limits that are taken at once; 1: each request asks for its own */
    int64_t prefetch_ttl_us;
} rn_fleet_settings;

/* How long the listeners wait for clients. */
typedef struct rn_patience {
    int64_t head_us;  /* from the first byte of a request's head, or the connection's beginning, to its end */
    int64_t idle_us;  /* between two requests */
    int64_t body_us;  /* between two pieces of a body that is being read */
    int64_t write_us; /* in which nothing of an answer could be sent */
} rn_patience;

typedef struct rn_settings {
    rn_address gateway;
    rn_address control;
    const char *token; /* a secret; NULL: none */
    const char *instance;
    int64_t wait_us;  /* how long a request waits that does not say: `queue.wait` */
    int64_t drain_us; /* how long calls may take to end after SIGTERM */
    rn_patience patience;
    const char *ledger;          /* the file, "ration.db" unless it is told; NULL: none is kept */
    int64_t ledger_flush_us;     /* how often what has changed is written */
    ration_ratio retry_overhead; /* of jobs, until runs are known */
    int64_t max_stretch;         /* of jobs' intervals */
    int64_t replan_us;           /* how often jobs are planned anew */
    rn_log_format log_format;
    rn_log_level log_level; /* the least that is written */
    rn_fleet_settings fleet;
} rn_settings;

const rn_settings *rn_config_settings(const ration_config *config);
/* In order of declaration, as in the rules; NULL past the end. */
const rn_provider *rn_config_provider(const ration_config *config, size_t index);
const rn_account *rn_config_account(const ration_config *config, size_t index);
/* In order of declaration; NULL past the end. */
const rn_job *rn_config_job(const ration_config *config, size_t index);
/* In order of declaration; none: whoever is let in may claim anything. */
const rn_client *rn_config_clients(const ration_config *config, size_t *count);
const ration_allocator *rn_config_allocator(const ration_config *config);
/* NULL: no such account. O(1). */
const rn_account *rn_config_find_account(const ration_config *config, ration_text name);

/*
 * The keys of its credentials anew, under another salt than that of the load: the config names the ledger in which the
 * salt is. Before anybody has borrowed the rules. RATION_ERR_NOMEM: nothing is changed.
 */
RATION_MUST_CHECK int rn_config_resalt(ration_config *config, ration_text salt);
/*
 * Its rules as they would be then; what is not the config's is in `arena`. `*out` is a copy, of which the accounts have
 * other keys. RATION_ERR_NOMEM.
 */
RATION_MUST_CHECK int rn_config_salted(const ration_config *config, ration_text salt, rn_arena *arena,
                                       ration_rules *out);

/*
 * `ration_config_load` for a process that runs with another config: that must not say otherwise of what is settled for
 * the life of a process (listeners, ledger, instance), or it has a fault there. An instance that it does not give is
 * the running one's.
 */
RATION_MUST_CHECK int rn_config_load_beside(const ration_config *running, const char *path,
                                            const ration_config_options *options, ration_config **out,
                                            ration_config_faults *faults);

/* FILE:LINE:COLUMN, or FILE alone where a fault is of the whole. */
void rn_config_place(const ration_config_fault *fault, rn_builder *b);

/* What differs between two configs: something with a name, of a kind. */
typedef enum rn_config_how {
    RN_CONFIG_ADDED = 0,
    RN_CONFIG_REMOVED,
    RN_CONFIG_CHANGED,
    RN_CONFIG_HOWS,
} rn_config_how;

typedef struct rn_config_change {
    const char *kind;  /* "account", "client", "job", "limit", "provider", "settings", "tenant" */
    const char *owner; /* a limit's provider; else "" */
    const char *name;
    rn_config_how how;
} rn_config_change;

typedef void rn_config_changed(void *ctx, const rn_config_change *change);

/*
 * Tells `changed` of each, in order of kind, owner and name; texts are borrowed from the configs. A provider's limits
 * stand for themselves. Secrets are compared, and never told. RATION_ERR_NOMEM: nothing was told.
 */
RATION_MUST_CHECK int rn_config_compare(const ration_config *was, const ration_config *now, void *ctx,
                                        rn_config_changed *changed);

/* A hash of all in it that decides, but for the instance and secrets: equal for processes that go by the same rules. */
#define RN_CONFIG_FINGERPRINT 17
RATION_MUST_CHECK int rn_config_fingerprint(const ration_config *config, char out[RN_CONFIG_FINGERPRINT]);

/*
 * The config as one line of JSON, for a recording: providers, accounts, tenants and settings with every default written
 * out, credentials as keys, no secret. Read again with `options.recording` it gives equal rules.
 *
 * Ownership  `*out` is the caller's, from the config's allocator, freed with rn_mem_free. NUL-terminated, no line feed.
 * Errors     RATION_ERR_NOMEM.
 */
int rn_config_json(const ration_config *config, char **out, size_t *size);

#endif
