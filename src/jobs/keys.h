/* SPDX-License-Identifier: MIT */
#ifndef RN_JOBS_KEYS_H
#define RN_JOBS_KEYS_H

#include <ration/plan.h>

#include "base/arena.h"
#include "core/limit.h"
#include "jobs/scope_name.h"

struct rn_book; /* core/book.h: it and config/config.h use the same words */

/*
 * The limits that jobs' calls meet, each at its keys: what a plan calls scopes and rate limits. Made once a config, by
 * the very steps that the engine takes to find a call's counters.
 */

typedef struct rn_plan_key rn_plan_key;

/* A key of the same limit with fewer variables left open, at which calls of this one may count as well. */
typedef struct rn_narrower {
    SLIST_ENTRY(rn_narrower) next;
    rn_plan_key *key;
} rn_narrower;

/* Variables that some key of a limit leaves open: a bit for each dimension of its scope. */
typedef struct rn_open {
    SLIST_ENTRY(rn_open) next;
    uint64_t mask;
} rn_open;

/* The limits of one name of a provider: its own, and those that accounts have in its place. */
typedef struct rn_plan_group {
    const rn_limit *limit; /* the provider's */
    uint32_t number;
    SLIST_HEAD(, rn_open) opens; /* all that occur */
} rn_plan_group;

struct rn_plan_key {
    rn_map_node node; /* by group and key */
    STAILQ_ENTRY(rn_plan_key) next;
    const rn_limit *limit;
    rn_plan_group *group;
    ration_text key;
    rn_scope_name name;
    ration_ratio share;
    uint64_t open;
    size_t place; /* among the plan's scopes, or its rates */
    SLIST_HEAD(, rn_narrower) narrower;

    /* Of a quota, as it stands when it is planned: stand.c */
    ration_plan_scope state;
    int64_t max;
    bool learns;    /* the maximum has been, or may be, learned */
    bool counted;   /* it is a counter's state */
    int64_t *units; /* of the timeline */
    size_t unit_room;
};

typedef struct rn_plan_keys {
    const ration_allocator *mem;
    struct rn_book *book; /* the rules, compiled */
    rn_arena arena;
    rn_map by_name;
    STAILQ_HEAD(, rn_plan_key) all;
    rn_plan_group **groups; /* by provider, then by limit */
    char *scratch;
    size_t limits_max; /* of a provider */
    size_t scope_count;
    size_t rate_count;
    rn_plan_key **scopes; /* by place, once it is closed */
    rn_plan_key **rates;
} rn_plan_keys;

/* What the calls of a job use at one key. */
typedef struct rn_plan_call {
    rn_plan_key *key;
    int64_t charge; /* of one call, above 0 */
    bool apart;     /* each child has a key of its own */
} rn_plan_call;

/* The rules are good ones, a config's. RATION_ERR_NOMEM; to be freed all the same. */
int rn_plan_keys_init(rn_plan_keys *keys, const ration_allocator *mem, const ration_rules *rules);
void rn_plan_keys_fini(rn_plan_keys *keys);

/*
 * The quotas and rate limits that bind calls of an account like `request`, in whose path what only children know stands
 * in braces. `out` has room for `limits_max`. RATION_ERR_NOMEM.
 */
int rn_plan_keys_of(rn_plan_keys *keys, size_t account, const ration_request *request, rn_plan_call *out,
                    size_t *count);
/* All jobs are known: every key gets its place and its narrower ones. RATION_ERR_NOMEM. */
int rn_plan_keys_close(rn_plan_keys *keys);

/* `ration_rules.retry_reserve`, or its default. */
ration_ratio rn_plan_keys_reserve(const rn_plan_keys *keys);

/* NULL: there is no such limit. */
rn_plan_group *rn_plan_group_of(const rn_plan_keys *keys, ration_text provider, const char *limit);
/* Of all keys that stand for this one of a counter: the next after `*open`, which is NULL at first; NULL: no more. */
rn_plan_key *rn_plan_keys_next(rn_plan_keys *keys, const rn_plan_group *group, ration_text key, const rn_open **open);

#endif
