/* SPDX-License-Identifier: MIT */
#ifndef RN_CONFIG_MODEL_H
#define RN_CONFIG_MODEL_H

#include "base/arena.h"
#include "base/map.h"
#include "config/config.h"

/*
 * A loaded config in memory, as the table of keys fills it. The rules' own structs stand at the front of each member,
 * so that the table writes into them directly; the plain arrays of `ration_rules` are copied together at the end.
 */

/* Begins with its name, as all members of lists do. */
typedef struct rn_limit_model {
    ration_limit_rule rule; /* `max` and `max_auto` are set from the two below */
    int64_t max;            /* RATION_UNSET: auto */
    int64_t initial_max;    /* RATION_UNSET: not given */
    int freeze;             /* `freeze_wanted` and `recovery_fast` of the rule are set from these */
    int recovery;
} rn_limit_model;

#define RN_HOLD_AUTO INT64_C(-2) /* `hold: auto`, in the model only */

typedef struct rn_endpoint_model {
    ration_endpoint_rule rule; /* `defaults.hold_us` may be RN_HOLD_AUTO; the rules get RATION_UNSET */
    int64_t hold_floor_us;     /* RATION_UNSET: not given */
    rn_cost_rule cost;         /* as written; the provider's holds where it is silent */
    int64_t retries;           /* RATION_UNSET: not given */
} rn_endpoint_model;

typedef struct rn_target_model {
    const char *name;
    rn_url url;
} rn_target_model;

typedef struct rn_provider_model {
    ration_provider_rule rule; /* holds as in rn_endpoint_model */
    rn_provider net;
    const char *use; /* its provider file; NULL: none */
    int64_t hold_floor_us;
    int64_t backoff_delay_us; /* `breaker.backoff_initial_us` is set from one of these */
    int64_t backoff_initial_us;
    rn_endpoint_model *endpoints;
    rn_limit_model *limits;
    rn_target_model *targets;
    size_t target_count;
} rn_provider_model;

typedef struct rn_account_model {
    ration_account_rule rule;
    rn_account net;
    rn_limit_model *limits;
    size_t limit_count;
    rn_map_node by_name;
} rn_account_model;

typedef struct rn_var_model {
    const char *name;
    const char *value;
} rn_var_model;

typedef struct rn_job_model {
    rn_job job; /* its method, path, vars and account are set from the others */
    const char *account;
    const char *call; /* "GET /a/{b}" */
    rn_var_model *vars;
    size_t var_count;
} rn_job_model;

typedef struct rn_config_model {
    rn_settings settings;
    ration_rules rules;
    rn_provider_model *providers;
    rn_account_model *accounts;
    rn_job_model *jobs;
    size_t job_count;
    rn_client *clients;
    size_t client_count;
} rn_config_model;

struct ration_config {
    const ration_allocator *mem;
    rn_arena arena;
    rn_config_model model;
    rn_map accounts;
    ration_config_faults warnings; /* in the arena */
};

#endif
