/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_CIRCUIT_H
#define RN_CORE_CIRCUIT_H

#include "core/alarm.h"
#include "core/breaker.h"
#include "core/queue.h"
#include "core/scope.h"

/* Circuits: the breakers of a provider, one a scope key, and the waiters that they have let through. */

struct rn_account;
struct rn_provider;
struct rn_route;

/* A provider's breaker, and how it partitions its requests. */
typedef struct rn_circuit_spec {
    rn_breaker_spec breaker;
    rn_scope scope;
} rn_circuit_spec;

typedef struct rn_circuit {
    rn_map_node node;
    TAILQ_ENTRY(rn_circuit) next;
    const struct rn_provider *provider;
    const struct rn_account *account; /* that asked first: the health checks are its own */
    rn_breaker breaker;
    rn_alarm alarm;
    struct rn_lease_list waiting; /* that were let through and wait */
    TAILQ_HEAD(, rn_route) routes;
    uint32_t pins;                /* events not yet taken that name its key */
    struct rn_circuit *successor; /* during a reload: the same under the new rules; NULL: there is none */
    bool changed;                 /* since the last save */
    size_t name_size;
    char *name; /* the map's key: the provider's number and the scope key */
    ration_text key;
} rn_circuit;

TAILQ_HEAD(rn_circuit_list, rn_circuit);

typedef struct rn_circuits {
    const ration_allocator *mem;
    rn_alarms *timers;
    size_t *timers_needed;
    rn_map by_name;
    struct rn_circuit_list all; /* the next to be looked at for eviction first */
} rn_circuits;

#define RN_CIRCUITS_MAX 1000000

void rn_circuits_init(rn_circuits *circuits, const ration_allocator *mem, rn_alarms *timers, size_t *timers_needed);
void rn_circuits_fini(rn_circuits *circuits); /* no route leads to any */
/* One more, at a key of the account's provider, which has a breaker. `name` is room to write in. RATION_ERR_NOMEM. */
int rn_circuits_make(rn_circuits *circuits, ration_time now, const struct rn_account *account, ration_text key,
                     rn_builder *name, rn_circuit **out);

/*
 * The circuit of a subject: NULL where the provider has no breaker, or its scope does not apply. `key` is room to write
 * the key in. RATION_ERR_FULL: RN_CIRCUITS_MAX of them, and none can be forgotten; RATION_ERR_INVALID: the key is too
 * long; RATION_ERR_NOMEM.
 */
int rn_circuits_find(rn_circuits *circuits, ration_time now, const struct rn_account *account,
                     const rn_subject *subject, rn_builder *key, rn_circuit **out);

#endif
