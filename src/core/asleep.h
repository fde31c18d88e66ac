/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_ASLEEP_H
#define RN_CORE_ASLEEP_H

#include "core/route.h"

/*
 * What was kept and nobody has asked for yet, for reports: as it would be if somebody asked now. The engine knows
 * nothing of what is made here, and nothing of it changes.
 */

/*
 * The counter that an entry of `kept.counters` stands for. NULL: `limit` (absent: any) and `key` (absent: any) ask for
 * another one, its key leads elsewhere, or it equals a new one. RATION_ERR_NOMEM.
 */
int rn_asleep_counter(rn_routes *routes, ration_time now, const rn_map_node *node, ration_text limit, ration_text key,
                      rn_counter **out);
void rn_asleep_counter_free(const rn_routes *routes, rn_counter *counter); /* NULL is fine */

/* The circuit that an entry of `kept.circuits` stands for. NULL: it is closed. RATION_ERR_NOMEM. */
int rn_asleep_circuit(rn_routes *routes, ration_time now, const rn_map_node *node, rn_circuit **out);
void rn_asleep_circuit_free(const rn_routes *routes, rn_circuit *circuit); /* NULL is fine */

#endif
