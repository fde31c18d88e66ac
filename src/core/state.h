/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_STATE_H
#define RN_CORE_STATE_H

#include <ration/state.h>

#include "base/map.h"
#include "core/limit.h"

/* What was kept from an earlier life and nobody has asked for yet, by the names of counters and circuits. */

struct rn_circuit;

typedef struct rn_kept {
    rn_map counters;
    rn_map circuits;
    const ration_allocator *mem;
} rn_kept;

void rn_kept_init(rn_kept *kept, const ration_allocator *mem);
void rn_kept_fini(rn_kept *kept);
/* Keep a copy for the name, instead of an earlier record of its type. RATION_ERR_NOMEM. */
int rn_kept_put(rn_kept *kept, rn_map *map, ration_text name, const ration_record *record);
/*
 * All that still waits, under the numbers of other rules: `number` gives the one of a limit (or, where `circuits`, of a
 * provider) at a key, and is false where there is none. RATION_ERR_NOMEM.
 */
int rn_kept_copy(rn_kept *kept, const rn_kept *from,
                 bool (*number)(void *ctx, bool circuits, uint32_t was, ration_text key, uint32_t *out), void *ctx);
/* A counter or circuit has been made: it goes on where it was. What was kept for it is forgotten. */
void rn_kept_give(rn_kept *kept, rn_counter *counter, ration_time now);
void rn_kept_give_circuit(rn_kept *kept, struct rn_circuit *circuit, ration_time now);

/* For a look: the name that an entry of one of the maps waits under, and what was kept for it, which stays kept. */
ration_text rn_kept_name(const rn_map_node *node);
void rn_kept_lend(const rn_map_node *node, rn_counter *counter, ration_time now);
void rn_kept_lend_circuit(const rn_map_node *node, struct rn_circuit *circuit, ration_time now);

/* Is it in its ranges, and of no time after `now`? What is not would be refused by a load. */
bool rn_record_is_valid(const ration_record *record, ration_time now);

/* The penalty of a scope, to and from a record. */
void rn_penalty_save(const rn_penalty *penalty, ration_record *out);
void rn_penalty_load(rn_penalty *penalty, const ration_record *record);

#endif
