/* SPDX-License-Identifier: MIT */
#ifndef RN_TRACE_IDS_H
#define RN_TRACE_IDS_H

#include <ration/engine.h>

#include "base/map.h"

/* The ids that a trace has in use: from the id to the lease, and from the lease or its serial to the id. */

typedef struct rn_trace_id {
    rn_map_node by_text;
    rn_map_node by_lease;
    rn_map_node by_serial;
    ration_lease lease;
    uint64_t serial;
    size_t size;
    char data[];
} rn_trace_id;

typedef struct rn_ids {
    const ration_allocator *mem;
    rn_map texts;
    rn_map leases;
    rn_map serials;
} rn_ids;

void rn_ids_init(rn_ids *ids, const ration_allocator *mem);
void rn_ids_fini(rn_ids *ids);

rn_trace_id *rn_ids_find(const rn_ids *ids, ration_text text); /* NULL: not in use */
rn_trace_id *rn_ids_find_lease(const rn_ids *ids, ration_lease lease);
rn_trace_id *rn_ids_find_serial(const rn_ids *ids, uint64_t serial);
ration_text rn_trace_id_text(const rn_trace_id *id);

/* An id that is not in use yet; NULL: no memory. Then either into use with its lease and serial, or dropped. */
rn_trace_id *rn_ids_new(const rn_ids *ids, ration_text text);
void rn_ids_drop(const rn_ids *ids, rn_trace_id *id);
int rn_ids_add(rn_ids *ids, rn_trace_id *id, ration_lease lease, uint64_t serial); /* RATION_ERR_NOMEM: dropped */
/* Out of use, and gone. */
void rn_ids_remove(rn_ids *ids, rn_trace_id *id);

#endif
