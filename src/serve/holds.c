/* SPDX-License-Identifier: MIT */
/*
 * How long leases are held: a running percentile in integers.
 *
 * Samples are counted in buckets that grow with what they hold, eight to each doubling, so the answer is exact to an
 * eighth over ten orders of magnitude, in 2 KiB, whatever the traffic. The answer is the upper end of the bucket that
 * holds the percentile: it errs towards longer, since a hold that is declared too short makes an overrun.
 *
 * Old samples go in whole windows. A window ends when it has both its minute and its 200 samples; what is known rests
 * on the present one and the one before. So a busy endpoint is judged by its last one or two minutes, a quiet one by
 * its last 200 to 400 calls, however long ago they were.
 *
 * Invariants: `p95_us` is that of both windows together; only the first sample after its end ends a window, so time
 * alone changes nothing.
 */
#include "serve/holds.h"

#include <string.h>

#include "base/mem.h"
#include "base/units.h"

#define HELD_MAX_US ((INT64_C(1) << 36) - 1)
#define PERCENT 95

/* ---- buckets: 0 to 7 us one each, then eight to each doubling */

static size_t bucket_of(int64_t us)
{
    const uint64_t v = (uint64_t)rn_min(rn_max(us, 0), HELD_MAX_US);

    if (v < 8)
        return (size_t)v;
    const unsigned top = 63u - (unsigned)__builtin_clzll(v);
    return (size_t)(top - 2) * 8 + (size_t)((v >> (top - 3)) & 7);
}

/* The largest value in a bucket. */
static int64_t bucket_end(size_t bucket)
{
    if (bucket < 8)
        return (int64_t)bucket;
    const size_t shift = bucket / 8 - 1;
    return (int64_t)((((uint64_t)(8 + bucket % 8) + 1) << shift) - 1);
}

/* ---- one learner */

void rn_hold_init(rn_hold_learner *hold, int64_t floor_us)
{
    *hold = (rn_hold_learner){.floor_us = floor_us, .p95_us = RATION_UNSET};
}

uint64_t rn_hold_samples(const rn_hold_learner *hold)
{
    return hold->present.samples + hold->past.samples;
}

/* The end of the bucket in which the sample stands that has 95 % of all at or below it. */
static int64_t hold_percentile(const rn_hold_learner *hold)
{
    const uint64_t samples = rn_hold_samples(hold);
    const uint64_t rank = samples - samples / 100 * (100 - PERCENT) - samples % 100 * (100 - PERCENT) / 100;
    uint64_t count = 0;
    size_t i = 0;

    if (samples < RN_HOLD_SAMPLES_MIN)
        return RATION_UNSET;
    while ((count += (uint64_t)hold->present.counts[i] + hold->past.counts[i]) < rank)
        i++;
    return bucket_end(i);
}

static void hold_turn(rn_hold_learner *hold, ration_time now)
{
    if (hold->present.samples >= RN_HOLD_WINDOW_SAMPLES && rn_sub(now.us, hold->began_at.us) >= RN_HOLD_WINDOW_US) {
        hold->past = hold->present;
        hold->present = (rn_hold_window){.samples = 0};
    }
    if (hold->present.samples == 0)
        hold->began_at = now;
}

void rn_hold_learn(rn_hold_learner *hold, ration_time now, int64_t held_us, bool whole)
{
    if (!whole && (hold->p95_us == RATION_UNSET || held_us <= rn_hold_declare(hold)))
        return;
    hold_turn(hold, now);

    uint32_t *const count = &hold->present.counts[bucket_of(held_us)];
    if (*count == UINT32_MAX)
        return;
    (*count)++;
    hold->present.samples++;
    hold->p95_us = hold_percentile(hold);
}

int64_t rn_hold_declare(const rn_hold_learner *hold)
{
    return hold->p95_us == RATION_UNSET ? RATION_UNSET : rn_max(hold->floor_us, hold->p95_us);
}

/* ---- the learners of one provider */

static int learner_make(rn_holds *holds, size_t index, const rn_hold_default *word)
{
    if (!word->hold_auto)
        return RATION_OK;
    holds->learners[index] = rn_arena_zalloc(&holds->arena, 1, sizeof **holds->learners);
    if (holds->learners[index] == NULL)
        return RATION_ERR_NOMEM;
    rn_hold_init(holds->learners[index], word->hold_floor_us);
    return RATION_OK;
}

static bool learns(const rn_provider *provider, size_t endpoints)
{
    bool any = provider->hold.hold_auto;

    for (size_t i = 0; i < endpoints && !any; i++)
        any = provider->endpoints[i].hold_auto;
    return any;
}

int rn_holds_init(rn_holds *holds, const ration_provider_rule *rule, const rn_provider *provider)
{
    const size_t count = rule->endpoint_count;

    *holds = (rn_holds){.rule = rule};
    rn_arena_init(&holds->arena, rn_mem_default());
    if (!learns(provider, count))
        return RATION_OK;
    holds->templates = rn_arena_zalloc(&holds->arena, count, sizeof *holds->templates);
    holds->learners = rn_arena_zalloc(&holds->arena, count + 1, sizeof(rn_hold_learner *));
    if (holds->templates == NULL || holds->learners == NULL)
        return RATION_ERR_NOMEM;

    int err = learner_make(holds, count, &provider->hold);
    for (size_t i = 0; i < count && err == RATION_OK; i++) {
        err = rn_template_init(&holds->templates[i], &holds->arena, ration_text_of(rule->endpoints[i].path));
        if (err == RATION_OK)
            err = learner_make(holds, i, &provider->endpoints[i]);
    }
    return err;
}

void rn_holds_fini(rn_holds *holds)
{
    rn_arena_fini(&holds->arena);
    *holds = (rn_holds){.rule = NULL};
}

static void learner_adopt(rn_hold_learner *learner, rn_hold_learner *from)
{
    const int64_t floor_us = learner->floor_us;

    *learner = *from;
    learner->floor_us = floor_us;
    learner->heir = NULL;
    from->heir = learner;
}

/* That of the template; NULL: there is none. */
static rn_hold_learner *learner_of(const rn_holds *holds, const char *path)
{
    for (size_t i = 0; i < holds->rule->endpoint_count; i++) {
        if (strcmp(holds->rule->endpoints[i].path, path) == 0)
            return holds->learners[i];
    }
    return NULL;
}

void rn_holds_adopt(rn_holds *holds, const rn_holds *from)
{
    if (holds->learners == NULL || from->learners == NULL)
        return;
    for (size_t i = 0; i <= from->rule->endpoint_count; i++) {
        rn_hold_learner *was = from->learners[i];
        rn_hold_learner *now = i < from->rule->endpoint_count ? learner_of(holds, from->rule->endpoints[i].path)
                                                              : holds->learners[holds->rule->endpoint_count];

        if (was != NULL && now != NULL)
            learner_adopt(now, was);
    }
}

rn_hold_learner *rn_holds_find(const rn_holds *holds, ration_text path)
{
    rn_path split;

    if (holds->learners == NULL || !rn_path_split(path, &split))
        return NULL;
    return holds->learners[rn_template_find(holds->templates, holds->rule->endpoint_count, &split)];
}
