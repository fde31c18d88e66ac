/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_BOOK_H
#define RN_CORE_BOOK_H

#include "base/arena.h"
#include "base/map.h"
#include "core/circuit.h"
#include "core/limit.h"
#include "core/queue.h"
#include "core/scope.h"

/* The rules of an engine, copied, checked and compiled. Immutable but for the queues and penalties that live in it. */

typedef struct rn_provider {
    rn_map_node node;
    ration_text name;
    uint32_t index;
    ration_provider_rule rule; /* the copy */
    rn_template *templates;    /* one an endpoint */
    rn_limit **limits;
    size_t limit_count;
    uint64_t *throttled;      /* 429s, by the index of the limit that was meant; one more for those that met none */
    rn_circuit_spec *circuit; /* NULL: no breaker */
    rn_queue queue;
} rn_provider;

typedef struct rn_account {
    rn_map_node node;
    ration_text name;
    ration_text target;
    ration_text credential;
    ration_ratio share;
    rn_provider *provider;
    rn_limit **limits; /* the provider's, but for those that this account replaces */
    rn_penalty penalty;
    rn_alarm penalty_timer;
    bool changed; /* since the last save */
    SLIST_ENTRY(rn_account) in_ghosts;
} rn_account;

typedef struct rn_tenant_weight {
    rn_map_node node;
    int64_t weight;
} rn_tenant_weight;

typedef struct rn_named_zone {
    const char *name;
    rn_zone *zone;
} rn_named_zone;

typedef struct rn_book {
    const ration_allocator *mem;
    rn_arena arena;
    ration_text instance;
    ration_ratio reserve;
    bool enforcer;
    bool fifo;
    int64_t max_waiters;
    int64_t max_waiters_per_tenant;
    int64_t max_leases;
    rn_provider *providers;
    size_t provider_count;
    rn_account *accounts;
    size_t account_count;
    uint32_t limit_count; /* of providers and accounts */
    bool strict;          /* some quota waits for marks */
    rn_named_zone *zones;
    size_t zone_count;
    rn_map providers_by_name;
    rn_map accounts_by_name;
    rn_map weights;
    SLIST_HEAD(, rn_account) ghosts; /* of leases whose account or provider a reload has removed */
    SLIST_HEAD(, rn_limit) prepared; /* limits that have something to free */
} rn_book;

/* Each limit once: the providers', then those that accounts have of their own. */
void rn_book_visit(const rn_book *book, void *ctx, void (*visit)(void *ctx, const rn_limit *limit));

/* Copy and compile. On error the book is empty and need not be freed; RATION_ERR_CONFIG fills `fault`. */
int rn_book_init(rn_book *book, const ration_allocator *mem, const ration_rules *rules, ration_fault *fault);
void rn_book_fini(rn_book *book);

rn_provider *rn_book_provider(const rn_book *book, ration_text name); /* NULL: none */
rn_account *rn_book_account(const rn_book *book, ration_text name);
/* The limit of that name whose counter a key leads to: some accounts have their own. NULL: the provider has none. */
rn_limit *rn_book_limit(const rn_book *book, const rn_provider *provider, ration_text name, ration_text key);
/* The account of that name at that provider; where the book has none, one without limits that nobody finds by its name,
 * for leases from before. NULL: no memory. */
rn_account *rn_book_ghost(rn_book *book, ration_text provider, ration_text name);
bool rn_counter_name_is_valid(const ration_counter_name *name);
/* The one that an operator's words lead to. RATION_ERR_UNKNOWN: none; RATION_ERR_INVALID: without a provider there
 * are several. */
int rn_book_named(const rn_book *book, const ration_counter_name *name, rn_limit **out);
/* Do the names of some account lead to that key, whoever asks? Then nobody need have. */
bool rn_book_leads(const rn_book *book, const rn_limit *limit, ration_text key);
/* Do two limits partition their requests alike, and count the same? Then a key means the same in both. */
bool rn_limit_is_like(const rn_limit *a, const rn_limit *b);
bool rn_scope_is_like(const rn_scope *a, const rn_scope *b);
/* The smallest share among the accounts that can reach the key by their own names; if none can, of all. */
ration_ratio rn_book_share(const rn_book *book, const rn_limit *limit, ration_text key);
/* Of a tenant among the waiters: from the first share limit that declares it, else from the rules, else 1. */
int64_t rn_book_weight(const rn_book *book, const rn_account *account, ration_text tenant);

#endif
