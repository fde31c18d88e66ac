/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_HOLDS_H
#define RN_SERVE_HOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "core/template.h"

/*
 * `hold: auto`: how long leases are held, learned where nobody declares it. Chapter 2 wants a declared end of every
 * lease that borrows; this one is a running 95th percentile, with a floor. Pure: times come in, nothing is read.
 */

/* ---- one learner */

#define RN_HOLD_BUCKETS 272    /* eight to each doubling, up to 2^36 us (19 hours) */
#define RN_HOLD_SAMPLES_MIN 20 /* before so many nothing is declared */
#define RN_HOLD_WINDOW_SAMPLES 200
#define RN_HOLD_WINDOW_US INT64_C(60000000)

typedef struct rn_hold_window {
    uint32_t counts[RN_HOLD_BUCKETS];
    uint64_t samples;
} rn_hold_window;

typedef struct rn_hold_learner {
    int64_t floor_us;
    rn_hold_window present, past;
    ration_time began_at;         /* the present window, with its first sample */
    int64_t p95_us;               /* of both windows; RATION_UNSET: too few samples */
    struct rn_hold_learner *heir; /* who learns in its place since rn_holds_adopt; NULL: nobody */
} rn_hold_learner;

void rn_hold_init(rn_hold_learner *hold, int64_t floor_us);

/*
 * A lease has ended after `held_us`.
 *
 * `whole`: its call came to its end and succeeded. Others (clients that left, broken connections, refusals of the
 * provider) say little about how long a call takes, unless they took longer than what is declared now: only then they
 * count, so neither an outage nor a storm of 429s can make the declared hold shorter.
 *
 * Cost  O(buckets).
 */
void rn_hold_learn(rn_hold_learner *hold, ration_time now, int64_t held_us, bool whole);

/*
 * What to declare: the percentile, at least the floor; RATION_UNSET with fewer than RN_HOLD_SAMPLES_MIN samples. Never
 * below the true 95th percentile of the samples that count, at most an eighth above it.
 */
int64_t rn_hold_declare(const rn_hold_learner *hold);
uint64_t rn_hold_samples(const rn_hold_learner *hold); /* that count now */

/* ---- the learners of one provider */

typedef struct rn_holds {
    const ration_provider_rule *rule;
    rn_arena arena;
    rn_template *templates;     /* one an endpoint */
    rn_hold_learner **learners; /* one an endpoint, NULL where nothing is learned; then that of all other paths. NULL:
                                   the provider learns nothing */
} rn_holds;

/*
 * A learner for each endpoint that has `hold: auto`, itself or from its provider, and one for paths that match none of
 * them. `rule` is borrowed for the life of `holds`, `provider` for the call. RATION_ERR_NOMEM, RATION_ERR_SYNTAX (a
 * template that is none). `fini` always; it is fine on a zeroed one.
 */
int rn_holds_init(rn_holds *holds, const ration_provider_rule *rule, const rn_provider *provider);
void rn_holds_fini(rn_holds *holds);

/*
 * The provider has other rules now: what `from` has learned is known to the learners of the same templates, who are its
 * learners' heirs from now on. Floors are the new ones. O(templates of both).
 */
void rn_holds_adopt(rn_holds *holds, const rn_holds *from);

/* The learner of calls to `path`: that of the most specific template that matches, as in the engine. NULL: their hold
 * is not learned. O(templates); O(1) where nothing is learned. */
rn_hold_learner *rn_holds_find(const rn_holds *holds, ration_text path);

#endif
