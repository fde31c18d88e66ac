/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_DECIDER_H
#define RN_CORE_DECIDER_H

/*
 * The one seam between those who carry calls (gateway, API, simulator, replay) and who decides: the engine in memory,
 * or a fleet whose answer comes later (RATION_PENDING, then an event). Semantics, ownership and errors are those of
 * `ration_engine_*`, which this mirrors.
 */

#include <ration/engine.h>

#include "core/standing.h"

typedef struct rn_decider rn_decider;

typedef struct rn_decider_ops {
    int (*submit)(rn_decider *d, ration_time now, const ration_request *request, ration_decision *out);
    int (*check)(rn_decider *d, ration_time now, const ration_request *request, ration_check_mode mode,
                 ration_decision *out);
    int (*release)(rn_decider *d, ration_time now, ration_lease lease, const ration_completion *completion);
    int (*observe)(rn_decider *d, ration_time now, ration_lease lease, const ration_response *response);
    int (*renew)(rn_decider *d, ration_time now, ration_lease lease);
    int (*cancel)(rn_decider *d, ration_time now, ration_lease lease);
    int (*health)(rn_decider *d, ration_time now, ration_text account, bool ok);
    /* What operators do: RATION_OP_PAUSE, RESUME, RESET, GRANT, DRAIN; ration/operate.h. `counter` NULL for a drain. */
    int (*operate)(rn_decider *d, ration_time now, ration_op op, const ration_counter_name *counter, int64_t units);
    int (*advance)(rn_decider *d, ration_time now);
    ration_time (*next_deadline)(const rn_decider *d);
    bool (*next_event)(rn_decider *d, ration_event *out);
    /*
     * Where the limits stand that a lease has spent from, or, with `refused`, the one that it names; core/standing.h.
     * NULL: that is not known.
     */
    size_t (*standing)(rn_decider *d, ration_lease lease, const ration_decision *refused, rn_standing *out, size_t max);
    int (*report)(rn_decider *d, ration_time now, ration_report_kind kind, const ration_reporter *reporter);
    void (*totals)(const rn_decider *d, ration_totals *out);
} rn_decider_ops;

struct rn_decider {
    const rn_decider_ops *ops;
};

/* The engine as a decider. Borrows the engine. */
typedef struct rn_engine_decider {
    rn_decider base;
    ration_engine *engine;
} rn_engine_decider;

rn_decider *rn_engine_decider_init(rn_engine_decider *decider, ration_engine *engine);

#endif
