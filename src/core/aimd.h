/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_AIMD_H
#define RN_CORE_AIMD_H

#include <ration/engine.h>
#include <ration/rules.h>
#include <ration/types.h>

/* An adaptive limit: additive increase, multiplicative decrease, classes with reserved slices. Chapter 5. Each rule is
 * one pure function, so that it can be written again elsewhere in a few lines. Limits are whole units. */

typedef struct rn_aimd_spec {
    int64_t initial, min, max, step;
    ration_ratio factor;
    int64_t window_us;
    int64_t cooldown_us;
    int64_t lease_ttl_us;
    bool fast;
} rn_aimd_spec;

typedef struct rn_aimd {
    int64_t limit; /* L */
    bool started;
    bool throttled;       /* `throttled_at` means something */
    bool decreased;       /* `decreased_at` does */
    ration_time grown_at; /* the last increase, or the start */
    ration_time throttled_at;
    ration_time decreased_at;
    /* recovery: fast */
    int64_t stride;
    int64_t climb_to; /* 0: nothing to climb back to */
} rn_aimd;

/* With every default filled in. RATION_ERR_CONFIG with the key in `fault->path`, as in the config
 * ("aimd.decreaseFactor", "classes.bulk"); `*spec` is then untouched. */
int rn_aimd_spec_init(rn_aimd_spec *spec, const ration_adaptive_rule *rule, ration_fault *fault);

/* `now` never goes back. */
void rn_aimd_init(rn_aimd *aimd, const rn_aimd_spec *spec);
/* The first acquire: the first window begins with it. Later calls change nothing. */
void rn_aimd_start(rn_aimd *aimd, ration_time now);
/* The earliest instant at which demand at the cap makes it grow; RATION_NEVER_US: it is at the maximum, or not
 * started. */
ration_time rn_aimd_grows_at(const rn_aimd *aimd, const rn_aimd_spec *spec);
/* What it would be after growing now, whether or not it may. */
int64_t rn_aimd_next(const rn_aimd *aimd, const rn_aimd_spec *spec);
/* There is demand at the cap. True: it has grown. */
bool rn_aimd_demand(rn_aimd *aimd, const rn_aimd_spec *spec, ration_time now);
/* The provider said "too many". True: it has shrunk. */
bool rn_aimd_throttle(rn_aimd *aimd, const rn_aimd_spec *spec, ration_time now);

/* Micro-units reserved for a class when the limit stands at `limit`: ceil(share * limit) whole units. */
int64_t rn_class_reserved(int64_t limit, ration_ratio share);

#define RN_CLASS_NONE 0u /* of a request without a class; the classes count from 1 */

/* Held units by class: [0] those without one. */
typedef struct rn_class_held {
    int64_t total;
    int64_t of[]; /* rule->class_count + 1 */
} rn_class_held;

/*
 * What the other classes' reserves keep from a request of `class_index`, in micro-units: the sum over them of
 * max(0, reserved - held). `lending` has a bit for each class (bit 0: the first) whose reserve is lent to this request.
 */
int64_t rn_class_kept(const ration_adaptive_rule *rule, int64_t limit, const rn_class_held *held, uint32_t class_index,
                      uint64_t lending);

/* The largest charge that a class can ever be granted, at the best limit between min and max; negative: not even a
 * charge of nothing. Not for the decision path: it tries limits from the maximum down while a lower one may be
 * better. */
int64_t rn_class_most(const ration_adaptive_rule *rule, const rn_aimd_spec *spec, uint32_t class_index);

#endif
